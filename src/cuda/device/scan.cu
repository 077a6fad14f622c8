/* SPDX-License-Identifier: Apache-2.0 */
/* scan.cu - sums and products of all elements of a line up to each one.
 *
 * LANES threads of a block take a line in tiles of LANES * EACH elements: each thread its own in order, then the threads
 * before it, and what has come together so far is carried on. ACROSS: lines lie side by side, so neighbouring threads
 * take neighbouring lines; otherwise they take neighbouring elements, VECTOR at once. PARTS: a block takes a part of its
 * lines; 1: only the sums, 2: what goes before it are the sums of the parts before it. Floats are carried in double: a
 * long sum would lose too much. */
#include "order.cuh"

enum { IS_FLOAT = X_TYPE <= LINE_BF16, LINES = BLOCK / LANES, WARPS = LANES > 32 ? LANES / 32 : 1 };
typedef vec<element, VECTOR> vector;
template <bool FLOAT> struct carrier { typedef u64 type; };
template <> struct carrier<true> { typedef double type; };
typedef carrier<IS_FLOAT>::type acc;

template <class T> DEVICE acc widen(T x) { return (acc)x; }
DEVICE acc widen(f16 x) { return (acc)to_float(x); }
DEVICE acc widen(bf16 x) { return (acc)to_float(x); }
template <class T> DEVICE void narrow(acc v, T &y) { y = (T)v; }
DEVICE void narrow(acc v, f16 &y) { y = to_f16((float)v); }
DEVICE void narrow(acc v, bf16 &y) { y = to_bf16((float)v); }
DEVICE acc join(acc a, acc b) { return PRODUCT ? a * b : a + b; }
DEVICE acc none() { return PRODUCT ? 1 : 0; }
/* What `move`, a shuffle of 32 bits, makes of both halves. */
template <class F> DEVICE acc moved(acc v, const F &move)
{
    union { acc v; u32 at[2]; } x;
    x.v = v;
    x.at[0] = move(x.at[0]);
    x.at[1] = move(x.at[1]);
    return x.v;
}

/* What the threads of a line before this one, its `own`-th, have together; `all`: what all of them have. */
DEVICE acc before(acc x, i32 own, acc &all)
{
    acc *const spare = (acc *)shared_base();
    acc lower = none();
    all = x;
    if (LANES == 1) return lower;
    if (ACROSS) {
        const acc *const line = spare + threadIdx.x % LINES;
        sync_block();
        spare[threadIdx.x] = x;
        sync_block();
        all = none();
#pragma unroll 8
        for (i32 i = 0; i < LANES; i++) {
            if (i == own) lower = all;
            all = join(all, line[i * LINES]);
        }
        return lower;
    }
    enum { NEAR = LANES < 32 ? LANES : 32 };
    acc up = x;
#pragma unroll
    for (u32 by = 1; by < NEAR; by *= 2) {
        const acc other = moved(up, [&](u32 x) { return shuffle_up(x, by); });
        if (lane_id() % NEAR >= by) up = join(other, up);
    }
    const acc near = moved(up, [](u32 x) { return shuffle_up(x, 1u); });
    if (lane_id() % NEAR) lower = near;
    if (LANES <= 32) {
        all = moved(up, [](u32 x) { return shuffle(x, lane_id() | (NEAR - 1)); }); /* of the last */
        return lower;
    }
    const u32 warp = warp_id() % WARPS;
    sync_block();
    if (lane_id() == 31) spare[warp_id()] = up;
    sync_block();
    all = none();
    for (u32 w = 0; w < WARPS; w++) {
        if (w == warp) lower = join(all, lower);
        all = join(all, spare[warp_id() - warp + w]);
    }
    return lower;
}

/* Elements `first` and on of a line of n, EACH of them: none behind the end. */
DEVICE void load(const order_args &a, const element *x, i32 first, i32 n, acc (&v)[EACH])
{
    if (VECTOR > 1 && first + EACH <= n) {
        const vector *const from = (const vector *)(x + (REVERSE ? n - first - EACH : first));
#pragma unroll
        for (int i = 0; i < EACH / VECTOR; i++) {
            const vector part = from[i];
#pragma unroll
            for (int k = 0; k < VECTOR; k++)
                v[REVERSE ? EACH - 1 - i * VECTOR - k : i * VECTOR + k] = widen(part.at[k]);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        v[k] = first + k < n ? widen(x[(REVERSE ? n - 1 - first - k : first + k) * a.step]) : none();
}

DEVICE void store(const order_args &a, element *y, i32 first, i32 n, const acc (&v)[EACH])
{
    if (VECTOR > 1 && first + EACH <= n) {
        vector *const to = (vector *)(y + (REVERSE ? n - first - EACH : first));
#pragma unroll
        for (int i = 0; i < EACH / VECTOR; i++) {
            vector part;
#pragma unroll
            for (int k = 0; k < VECTOR; k++)
                narrow(v[REVERSE ? EACH - 1 - i * VECTOR - k : i * VECTOR + k], part.at[k]);
            to[i] = part;
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + k < n) narrow(v[k], y[(REVERSE ? n - 1 - first - k : first + k) * a.value_step]);
}

KERNEL void __launch_bounds__(BLOCK) scan(const __grid_constant__ order_args a)
{
    const i32 thread = (i32)threadIdx.x, own = ACROSS ? thread / LINES : thread % LANES;
    i32 row, part;
    divmod_fast((i32)blockIdx.x, a.parts, row, part);
    row = row * LINES + (ACROSS ? thread % LINES : thread / LANES);
    const bool is_there = row < a.rows;
    const i32 n = is_there ? a.n : 0;
    const line_at line = line_of(a, is_there ? row : 0);
    acc *const sums = (acc *)a.sums + (i64)(is_there ? row : 0) * a.parts.d;
    grid_wait();
    if (TRIGGER == 1) grid_trigger();
    const element *x = (const element *)a.x + line.x;
    element *y = (element *)a.values + line.values;
    acc carry = none(), all;
    if (PARTS == 2) {
        acc some = none();
        for (i32 i = own; i < part; i += LANES) some = join(some, sums[i]);
        (void)before(some, own, carry);
    }
    const i32 begin = part * a.size, end = smaller(a.n, begin + a.size);
    for (i32 tile = begin; tile < end; tile += LANES * EACH) {
        const i32 first = tile + own * EACH;
        acc v[EACH], sum = none();
        load(a, x, first, n, v);
#pragma unroll
        for (int k = 0; k < EACH; k++) sum = join(sum, v[k]);
        acc run = join(carry, before(sum, own, all));
        carry = join(carry, all);
        if (PARTS == 1) continue;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const acc last = run;
            run = join(run, v[k]);
            v[k] = EXCLUSIVE ? last : run;
        }
        store(a, y, first, n, v);
    }
    if (PARTS == 1 && is_there && !own) sums[part] = carry;
}
