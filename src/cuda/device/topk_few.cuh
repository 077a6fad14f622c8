/* SPDX-License-Identifier: Apache-2.0 */
/* topk_few.cuh - of topk.cu (-DKIND=2): the first few of each of many short lines, or of parts of long ones.
 *
 * LANES threads take a line. Each keeps the first K of the elements that it sees, in order and in registers; then such
 * lists come together in pairs, through shuffles or, between warps, shared memory: of two lists in order, the lower of
 * one's i-th and the other's i-th from the end are the first K of both, and lack only a few steps of a bitonic sort.
 *
 * ACROSS: lines lie side by side, so neighbouring threads take neighbouring lines and each reads along its own;
 * otherwise neighbouring threads take neighbouring elements of a line, VECTOR at once. */
#ifndef TOPK_FEW_CUH
#define TOPK_FEW_CUH

enum { LINES = BLOCK / LANES, STEP = ACROSS ? LINES : 1, EACH = (K + LANES - 1) / LANES };

/* Into a list in order, whose last is dropped. */
DEVICE void insert(entry (&list)[K], entry e)
{
    if (!is_before(e, list[K - 1])) return;
#pragma unroll
    for (int i = K - 1; i > 0; i--)
        list[i] = is_before(e, list[i - 1]) ? list[i - 1] : is_before(e, list[i]) ? e : list[i];
    if (is_before(e, list[0])) list[0] = e;
}

/* Makes the list of the first K of it and of that of thread `mask` away, which does the same. */
DEVICE void meet(entry (&list)[K], u32 mask)
{
    entry other[K];
    if (mask < 32) {
#pragma unroll
        for (int i = 0; i < K; i++) other[i] = shuffle_entry(list[i], mask);
    } else {
        entry *desk = (entry *)shared_base();
        sync_block();
#pragma unroll
        for (int i = 0; i < K; i++) desk[i * BLOCK + threadIdx.x] = list[i];
        sync_block();
#pragma unroll
        for (int i = 0; i < K; i++) other[i] = desk[i * BLOCK + (threadIdx.x ^ mask)];
    }
#pragma unroll
    for (int i = 0; i < K; i++)
        if (is_before(other[K - 1 - i], list[i])) list[i] = other[K - 1 - i];
#pragma unroll
    for (int gap = K / 2; gap; gap /= 2)
#pragma unroll
        for (int i = 0; i < K; i++) {
            if (i & gap || !is_before(list[i | gap], list[i])) continue;
            const entry e = list[i];
            list[i] = list[i | gap];
            list[i | gap] = e;
        }
}

DEVICE void few(const order_args &a)
{
    const i32 thread = (i32)threadIdx.x, own = ACROSS ? thread / LINES : thread % LANES;
    i32 row, part;
    divmod_fast((i32)blockIdx.x, a.parts, row, part);
    row = row * LINES + (ACROSS ? thread % LINES : thread / LANES);
    const bool is_there = row < a.rows;
    if (!is_there) row = 0;
    const line_at line = line_of(a, row);
    const i32 first = part * a.span, n = is_there ? smaller(a.span, a.n - first) : 0, most = smaller(a.k, n);
    grid_wait();
    if (TRIGGER == 1) grid_trigger();
    const element *const x = (const element *)a.x + line.x;
#if PARTS == 2
    const key *const keys = (const key *)a.from + (i64)row * a.room;
    const i32 *const at = (const i32 *)((const key *)a.from + a.entries) + (i64)row * a.room;
#endif
    entry list[K];
#pragma unroll
    for (int i = 0; i < K; i++) list[i] = no_entry();
    for (i32 base = own * VECTOR; base < n; base += LANES * AHEAD) {
        entry e[AHEAD];
#pragma unroll
        for (int j = 0; j < AHEAD; j += VECTOR) {
            const i32 i = base + j * LANES;
#if VECTOR > 1
            if (i + VECTOR <= n) {
                const vec<element, VECTOR> v = *(const vec<element, VECTOR> *)(x + first + i);
#pragma unroll
                for (int k = 0; k < VECTOR; k++) make_entry(key_of(v.at[k]), i + k, e[j + k]);
                continue;
            }
#endif
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                e[j + k] = no_entry();
#if PARTS == 2
                if (i + k < n) make_entry(keys[i + k], at[i + k], e[j + k]);
#else
                if (i + k < n) make_entry(key_of(x[(first + i + k) * a.step]), i + k, e[j + k]);
#endif
            }
        }
#pragma unroll
        for (int j = 0; j < AHEAD; j++) insert(list, e[j]);
    }
#pragma unroll
    for (u32 mask = STEP; mask < STEP * LANES; mask *= 2) meet(list, mask);
    /* Every thread of a line has its list; each writes every LANES-th of it. */
    entry mine[EACH];
    element value[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        mine[i] = list[i * LANES];
#pragma unroll
        for (int j = 1; j < LANES && i * LANES + j < K; j++)
            if (own == j) mine[i] = list[i * LANES + j];
        if (PARTS != 1 && a.values && i * LANES + own < most) value[i] = x[place_in(mine[i]) * a.step];
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const i32 to = i * LANES + own, from = first + place_in(mine[i]);
        if (to >= most) continue;
#if PARTS == 1
        const i64 place = (i64)row * a.room + (i64)part * a.kept_out + to;
        ((key *)a.to)[place] = key_in(mine[i]);
        ((i32 *)((key *)a.to + a.entries))[place] = from;
#else
        if (a.values) ((element *)a.values)[line.values + to * a.value_step] = value[i];
        if (a.indices) ((i64 *)a.indices)[line.indices + to * a.index_step] = from;
#endif
    }
}

#endif
