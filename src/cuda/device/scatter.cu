/* SPDX-License-Identifier: Apache-2.0 */
/* scatter.cu - updates of what was copied before, with the result of doing them one after the other.
 *
 * OP: 0 scatter_elements along AXIS, 1 scatter_nd of tuples of TUPLE numbers, LEAD axes of them, 2 tensor_scatter,
 * 3 max_unpool, whose result is zero where no update names it: the phase that writes goes over the result.
 * MODE says how order is kept: 0: a thread does all updates that can meet in one place; 1: all at once, where the last
 * update that names a place was found before (phases clear, find, write); 2: all at once, by exchange, for operations
 * that may come in any order; 3: no two updates meet; 4: each place gets a list of its updates, and a thread of the
 * result does them in their order. Phases of 4: clear; find counts the updates of each place; offsets gives each place
 * a part of one array; list writes the numbers of the updates there, in any order; rank sorts each part; write.
 * KIND: 0 set, 1 add, 2 mul, 3 max, 4 min.
 * RANK: of the data, URANK: of the updates. Generated: VALUE_SIZE, VALUE_GET, VALUE_PACK, value_t, INDEX_SIZE, INDEX_GET,
 * index_t; IS_BOOL. */
#include "prelude.cuh"
#include "generated.cuh"
#include "emit.cuh"
#include "scatter_args.h"

DEVICE i64 scatter_index(const scatter_args &p, i64 at)
{
    u32 w[EMIT_WORDS(INDEX_SIZE, 1)];
    emit_load<INDEX_SIZE, 1, 1>(w, (const u8 *)p.indices + at * INDEX_SIZE, 0, 1);
    return (i64)INDEX_GET(w, 0);
}
DEVICE value_t scatter_value(address base, i64 at)
{
    u32 w[EMIT_WORDS(VALUE_SIZE, 1)];
    emit_load<VALUE_SIZE, 1, 1>(w, (const u8 *)base + at * VALUE_SIZE, 0, 1);
    return VALUE_GET(w, 0);
}
DEVICE void scatter_store(const scatter_args &p, i64 at, value_t value)
{
    const value_t v[1] = { value };
    u32 w[EMIT_WORDS(VALUE_SIZE, 1)];
    VALUE_PACK<1>(w, v);
    emit_store<VALUE_SIZE, 1, 1>(w, (u8 *)p.out + at * VALUE_SIZE, 0, 1);
}
/* What a load gives after the value was stored. */
DEVICE value_t scatter_rounded(value_t value)
{
    const value_t v[1] = { value };
    u32 w[EMIT_WORDS(VALUE_SIZE, 1)];
    VALUE_PACK<1>(w, v);
    return VALUE_GET(w, 0);
}
DEVICE value_t scatter_combine(value_t old, value_t own)
{
#if KIND == 0
    return own;
#elif IS_BOOL
    return KIND == 1 || KIND == 3 ? old | own : old & own;
#elif KIND == 1
    return op_add(old, own);
#elif KIND == 2
    return op_mul(old, own);
#elif KIND == 3
    return op_max(old, own);
#else
    return op_min(old, own);
#endif
}

/* An index, told where it is out of range. */
DEVICE bool scatter_pick(const scatter_args &p, i64 at, i64 position, i64 limit, bool tells, i64 &index)
{
    const i64 value = scatter_index(p, at);
    index = value < 0 ? value + limit : value;
    if (index >= 0 && index < limit) return true;
    if (tells) report_fault(p.fault, p.step, position, value, limit);
    return false;
}

/* Where the update at u goes: the element, the place as a number, and the number of the update. */
DEVICE bool scatter_place(const scatter_args &p, const i32 (&u)[URANK], bool tells, i64 &to, i64 &place, i64 &number)
{
    i64 at = 0, index;
    to = place = number = 0;
#if OP == 0
#pragma unroll
    for (int k = 0; k < RANK; k++) {
        at += u[k] * p.index_step[k];
        number = number * p.update_dim[k] + u[k];
    }
    if (!scatter_pick(p, at, number, p.out_dim[AXIS], tells, index)) return false;
#pragma unroll
    for (int k = 0; k < RANK; k++) {
        const i64 own = k == AXIS ? index : u[k];
        to += own * p.out_step[k];
        place = place * p.out_dim[k] + own;
    }
#elif OP == 1
#pragma unroll
    for (int k = 0; k < LEAD; k++) {
        at += u[k] * p.index_step[k];
        number = number * p.update_dim[k] + u[k];
    }
#pragma unroll
    for (int k = 0; k < TUPLE; k++) {
        if (!scatter_pick(p, at + k * p.index_step[LEAD], number * TUPLE + k, p.out_dim[k], tells, index)) return false;
        to += index * p.out_step[k];
        place = place * p.out_dim[k] + index;
    }
#pragma unroll
    for (int k = LEAD; k < URANK; k++) to += u[k] * p.out_step[k - LEAD + TUPLE];
#elif OP == 3
    i64 limit = 1;
#pragma unroll
    for (int k = 0; k < RANK; k++) {
        at += u[k] * p.index_step[k];
        number = number * p.update_dim[k] + u[k];
        limit *= p.out_dim[k];
    }
    place = index = scatter_index(p, at);
    if (index < 0 || index >= limit) {
        report_fault(p.fault, p.step, number, index, limit);
        return false;
    }
#else
    const i64 limit = p.out_dim[AXIS], length = p.update_dim[AXIS];
    i64 start = 0;
    if (p.indices) {
        start = scatter_index(p, u[0] * p.index_step[0]);
        if ((start < 0 || (!CIRCULAR && start > limit - length)) && tells)
            report_fault(p.fault, p.step, u[0], start, CIRCULAR ? 0x7fffffffffffffffll : limit - length + 1);
        if (start < 0) return false;
    }
    if (CIRCULAR) index = (start % limit + u[AXIS]) % limit;
    else if (start >= limit || u[AXIS] >= limit - start) return false;
    else index = start + u[AXIS];
#pragma unroll
    for (int k = 0; k < RANK; k++) to += (k == AXIS ? index : u[k]) * p.out_step[k];
#endif
    return true;
}

#if OP == 1
enum { COUNTED = LEAD }; /* axes of the updates that their numbers count */
#else
enum { COUNTED = URANK };
#endif
/* Where the update of that number lies. */
DEVICE i64 scatter_from(const scatter_args &p, u32 number)
{
    i64 from = 0;
#pragma unroll
    for (int k = COUNTED - 1; k > 0; k--) {
        from += number % (u32)p.update_dim[k] * p.update_step[k];
        number /= (u32)p.update_dim[k];
    }
    return COUNTED ? from + number * p.update_step[0] : 0;
}

#if MODE == 4 && PHASE == SCATTER_WRITE
/* `sum` with the first `count` updates of a list, up to N, one after the other. All are loaded before the first is
 * added. */
template <u32 N> DEVICE value_t scatter_some(const scatter_args &p, const u32 *list, u32 count, i64 column, value_t sum)
{
    value_t own[N];
#pragma unroll
    for (u32 j = 0; j < N; j++)
        if (j < count) own[j] = scatter_value(p.updates, scatter_from(p, list[j]) + column);
#pragma unroll
    for (u32 j = 0; j < N; j++)
        if (j < count) sum = scatter_rounded(scatter_combine(sum, own[j]));
    return sum;
}

/* The element of the result at u: all updates of its place, in their order. */
DEVICE void scatter_listed(const scatter_args &p, const i32 (&u)[RANK])
{
    enum { MANY = 32, FEW = 8, NAMED = OP == 1 ? RANK - (URANK - COUNTED) : RANK };
    i64 to = 0, place = 0, column = 0;
#pragma unroll
    for (int k = 0; k < RANK; k++) {
        to += u[k] * p.out_step[k];
        if (k < NAMED) place = place * p.out_dim[k] + u[k];
        else column += u[k] * p.update_step[k - NAMED + COUNTED];
    }
    const u32 count = ((const u32 *)p.winners)[place];
    if (count == 0) return;
    const u32 *const order = (const u32 *)p.order + ((const u32 *)p.offsets)[place];
    value_t sum = scatter_value(p.out, to);
    u32 i = 0;
    for (; i + MANY <= count; i += MANY) sum = scatter_some<MANY>(p, order + i, MANY, column, sum);
    for (; i < count; i += FEW) sum = scatter_some<FEW>(p, order + i, smaller(count - i, (u32)FEW), column, sum);
    scatter_store(p, to, sum);
}
#endif

#if OP == 3
/* The element of the result at u, of the update that won it. */
DEVICE void scatter_back(const scatter_args &p, const i32 (&u)[URANK])
{
    i64 to = 0, place = 0;
#pragma unroll
    for (int k = 0; k < RANK; k++) {
        to += u[k] * p.out_step[k];
        place = place * p.out_dim[k] + u[k];
    }
    const u32 winner = ((const u32 *)p.winners)[place];
    scatter_store(p, to, winner ? scatter_value(p.updates, scatter_from(p, winner - 1)) : (value_t)0);
}
#endif

DEVICE void scatter_one(const scatter_args &p, const i32 (&u)[URANK], bool tells)
{
    i64 to, place, number, from = 0;
    if (!scatter_place(p, u, tells, to, place, number)) return;
#if MODE == 1
    if (((const u32 *)p.winners)[place] != (u32)number + 1) return;
#endif
#pragma unroll
    for (int k = 0; k < URANK; k++) from += u[k] * p.update_step[k];
    const value_t own = scatter_value(p.updates, from);
#if MODE == 2
    /* Exchanged as words of its size. */
    u32 old_words[EMIT_WORDS(VALUE_SIZE, 1)], new_words[EMIT_WORDS(VALUE_SIZE, 1)];
    emit_load<VALUE_SIZE, 1, 1>(old_words, (const u8 *)p.out + to * VALUE_SIZE, 0, 1);
    for (;;) {
        const value_t v[1] = { scatter_combine(VALUE_GET(old_words, 0), own) };
        VALUE_PACK<1>(new_words, v);
#if VALUE_SIZE == 4
        const u32 seen = atomic_cas((u32 *)p.out + to, old_words[0], new_words[0]);
        if (seen == old_words[0]) break;
        old_words[0] = seen;
#else
        const u64 old = (u64)old_words[1] << 32 | old_words[0];
        const u64 seen = atomic_cas((u64 *)p.out + to, old, (u64)new_words[1] << 32 | new_words[0]);
        if (seen == old) break;
        old_words[0] = (u32)seen;
        old_words[1] = (u32)(seen >> 32);
#endif
    }
#elif KIND == 0
    scatter_store(p, to, own);
#else
    scatter_store(p, to, scatter_combine(scatter_value(p.out, to), own));
#endif
}

#if PHASE == SCATTER_FIND || PHASE == SCATTER_LIST || PHASE == SCATTER_RANK
/* What is kept of the update at u before any is done. */
DEVICE void scatter_note(const scatter_args &p, const i32 (&u)[URANK])
{
    i64 to, place, number;
    if (!scatter_place(p, u, MODE == 4 && PHASE == SCATTER_FIND, to, place, number)) return;
    u32 *const winner = (u32 *)p.winners + place;
#if MODE == 4
    u32 *const order = (u32 *)p.order;
    const u32 own = (u32)number;
#if PHASE == SCATTER_FIND
    order[own] = atomic_add(winner, 1);
#else
    const u32 first = ((const u32 *)p.offsets)[place];
    u32 *const list = (u32 *)p.list + first;
#if PHASE == SCATTER_LIST
    list[order[own]] = own;
#else
    const u32 count = *winner;
    u32 before = 0;
#pragma unroll 8
    for (u32 i = 0; i < count; i++) before += list[i] < own;
    order[first + before] = own;
#endif
#endif
#else
    for (u32 old = 0, wanted = (u32)number + 1; old < wanted;) {
        const u32 seen = atomic_cas(winner, old, wanted);
        if (seen == old) break;
        old = seen;
    }
#endif
}
#endif

#if PHASE == SCATTER_OFFSETS
/* Where the list of place t begins. A warp adds up its counts and takes one part of the array for all of them. All
 * lanes come here. */
DEVICE void scatter_offset(const scatter_args &p, u32 t)
{
    u32 *const counts = (u32 *)p.winners;
    const u32 own = t < p.total ? counts[t] : 0;
    u32 sum = own, first = 0;
    for (u32 by = 1; by < 32; by *= 2) {
        const u32 before = shuffle_up(sum, by);
        if (lane_id() >= by) sum += before;
    }
    if (lane_id() == 31 && sum) first = atomic_add(counts + p.total, sum);
    first = shuffle(first, 31);
    if (t < p.total) ((u32 *)p.offsets)[t] = first + sum - own;
}
#endif

/* Four blocks a multiprocessor leave 128 registers a thread. With fewer the compiler loads one update after the other. */
KERNEL void __launch_bounds__(SCATTER_BLOCK, 4) scatter(const __grid_constant__ scatter_args p)
{
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    if (p.trigger == 1) grid_trigger();
    grid_wait();
#if PHASE == SCATTER_OFFSETS
    scatter_offset(p, t);
#else
    if (t >= p.total) return;
#if PHASE == SCATTER_CLEAR
    ((u32 *)p.winners)[t] = 0;
#else
    enum { AXES = MODE == 4 && PHASE == SCATTER_WRITE ? RANK : URANK };
    i32 u[AXES], rest = (i32)t, line;
#pragma unroll
    for (int k = AXES - 1; k >= 0; k--) {
        divmod_fast(rest, p.dim[k], line, u[k]);
        rest = line;
    }
#if PHASE != SCATTER_WRITE
    scatter_note(p, u);
#elif MODE == 4
    scatter_listed(p, u);
#elif OP == 3
    scatter_back(p, u);
#elif MODE == 0
    for (u32 i = 0; i < p.walk; i++) {
#if OP == 0
        u[AXIS] = (i32)i;
        scatter_one(p, u, true);
#else
        i32 number = (i32)i;
#pragma unroll
        for (int k = LEAD - 1; k >= 0; k--) {
            u[k] = number % p.update_dim[k];
            number /= p.update_dim[k];
        }
        scatter_one(p, u, t == 0);
#endif
    }
#else
    scatter_one(p, u, true);
#endif
#endif
#endif
}
