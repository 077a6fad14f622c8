/* SPDX-License-Identifier: Apache-2.0 */
/* scan.cu - sums and products of all elements of a line up to each one.
 *
 * A block takes a line in tiles of BLOCK * EACH elements: each thread its own in order, then warps, then the block, and
 * what has come together so far is carried on. -DALONG: instead a thread takes a line alone; for many lines that lie
 * side by side. PARTS: a block takes a part of a line; 1: only its sum, 2: what goes before it are the sums of the parts
 * before it. Floats are carried in double: a long sum would lose too much. */
#include "order.cuh"

enum { IS_FLOAT = X_TYPE <= LINE_BF16, EACH = 4 };
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
DEVICE acc shuffle_up_acc(acc v, u32 by)
{
    union { acc v; u32 at[2]; } x;
    x.v = v;
    x.at[0] = shuffle_up(x.at[0], by);
    x.at[1] = shuffle_up(x.at[1], by);
    return x.v;
}

DEVICE void along(const order_args &a)
{
    const i32 row = blockIdx.x * BLOCK + threadIdx.x;
    if (row >= a.rows) return;
    const line_at line = line_of(a, row);
    const element *x = (const element *)a.x + line.x;
    element *y = (element *)a.values + line.values;
    acc sum = none();
    for (i32 first = 0; first < a.n; first += EACH) {
        acc v[EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i32 j = REVERSE ? a.n - 1 - first - k : first + k;
            v[k] = first + k < a.n ? widen(x[j * a.step]) : none();
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i32 j = REVERSE ? a.n - 1 - first - k : first + k;
            const acc last = sum;
            sum = join(sum, v[k]);
            if (first + k < a.n) narrow(EXCLUSIVE ? last : sum, y[j * a.value_step]);
        }
    }
}

DEVICE void together(const order_args &a)
{
    enum { WARPS = BLOCK / 32 };
    acc *spare = (acc *)shared_base();
    i32 row = blockIdx.x, part = 0;
    if (PARTS) divmod_fast(row, a.parts, row, part);
    const line_at line = line_of(a, row);
    const element *x = (const element *)a.x + line.x;
    element *y = (element *)a.values + line.values;
    acc carry = none();
    if (PARTS == 2)
        for (i32 i = 0; i < part; i++) carry = join(carry, ((const acc *)a.sums)[blockIdx.x - part + i]);
    const i32 end = PARTS ? smaller(a.n, (part + 1) * a.size) : a.n;
    for (i32 tile = part * a.size; tile < end; tile += BLOCK * EACH) {
        const i32 first = tile + (i32)threadIdx.x * EACH;
        acc v[EACH], sum = none();
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i32 j = REVERSE ? a.n - 1 - first - k : first + k;
            v[k] = first + k < a.n ? widen(x[j * a.step]) : none();
            sum = join(sum, v[k]);
        }
        acc up = sum;
#pragma unroll
        for (u32 by = 1; by < 32; by *= 2) {
            const acc lower = shuffle_up_acc(up, by);
            if (lane_id() >= by) up = join(lower, up);
        }
        sync_block();
        if (lane_id() == 31) spare[warp_id()] = up;
        const acc own = shuffle_up_acc(up, 1);
        sync_block();
        acc low = carry;
        for (u32 w = 0; w < WARPS; w++) {
            if (w == warp_id()) low = carry;
            carry = join(carry, spare[w]);
        }
        if (PARTS == 1) continue;
        acc run = lane_id() ? join(low, own) : low;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const i32 j = REVERSE ? a.n - 1 - first - k : first + k;
            const acc last = run;
            run = join(run, v[k]);
            if (first + k < a.n) narrow(EXCLUSIVE ? last : run, y[j * a.value_step]);
        }
    }
    if (PARTS == 1 && threadIdx.x == 0) ((acc *)a.sums)[blockIdx.x] = carry;
}

KERNEL void __launch_bounds__(BLOCK) scan(const __grid_constant__ order_args a)
{
    grid_wait();
    if (TRIGGER == 1) grid_trigger();
    if (ALONG) along(a);
    else together(a);
}
