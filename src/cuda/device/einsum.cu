/* SPDX-License-Identifier: Apache-2.0 */
/* einsum.cu - an einsum of any number of operands up to four: an element of the result is a sum of products over the
 * labels that it lacks.
 *
 *   WIDTH lanes (1 or 32) sum an element together, by way of shared memory: THREADS sums
 *   grid    x: ceil(elements * WIDTH / THREADS)
 *
 * -D: OPERANDS OUT_AXES SUM_AXES WIDTH; generated.cuh: type_x, sum */
#include "prelude.cuh"
#include "direct_args.h"
#include "generated.cuh"

enum { THREADS = 128 };

DEVICE sum widen(f16 x) { return (sum)to_float(x); }
DEVICE sum widen(bf16 x) { return (sum)to_float(x); }
template <class T> DEVICE sum widen(T x) { return (sum)x; }

KERNEL void __launch_bounds__(THREADS) einsum(const __grid_constant__ einsum_args a, const __grid_constant__ epi_args e)
{
    sum *const part = (sum *)shared_base();
    const i64 index = ((i64)blockIdx.x * THREADS + threadIdx.x) / WIDTH;
    const i32 lane = (i32)threadIdx.x % WIDTH;
    i32 at[EPI_RANK] = {};
    i64 base[OPERANDS] = {};
    i32 rest = (i32)index;
#pragma unroll
    for (i32 i = OUT_AXES - 1; i >= 0; i--) {
        i32 q = 0, r = rest;
        if (i) divmod_fast(rest, a.out_div[i], q, r);
        rest = q;
        at[i] = r;
#pragma unroll
        for (i32 k = 0; k < OPERANDS; k++) base[k] += r * a.out_stride[k][i];
    }
    grid_wait();
    sum total = 0;
    for (i32 term = lane; index < a.count && term < a.terms; term += WIDTH) {
        i64 from[OPERANDS];
#pragma unroll
        for (i32 k = 0; k < OPERANDS; k++) from[k] = base[k];
        i32 left = term;
#pragma unroll
        for (i32 i = SUM_AXES - 1; i >= 0; i--) {
            i32 q = 0, r = left;
            if (i) divmod_fast(left, a.sum_div[i], q, r);
            left = q;
#pragma unroll
            for (i32 k = 0; k < OPERANDS; k++) from[k] += r * a.sum_stride[k][i];
        }
        sum product = widen(((const type_x *)a.in[0])[from[0]]);
#pragma unroll
        for (i32 k = 1; k < OPERANDS; k++) product *= widen(((const type_x *)a.in[k])[from[k]]);
        total += product;
    }
#if WIDTH > 1
    part[threadIdx.x] = total;
    sync_warp();
    if (lane == 0)
        for (i32 i = 1; i < WIDTH; i++) total += part[threadIdx.x + i];
#else
    (void)part;
#endif
    if (lane || index >= a.count) return;
    epi_row row;
    epi_begin(e, row, at);
    epi_acc v[1] = { (epi_acc)total };
    epi_run<1>(e, row, 0, 1, v);
}
