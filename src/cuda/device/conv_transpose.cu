/* SPDX-License-Identifier: Apache-2.0 */
/* conv_transpose.cu - transposed convolution with any filter, stride and layout: a thread sums what reaches an element.
 *
 *   grid    x: ceil(elements / 128), channels innermost
 *
 * -D: SPATIAL; generated.cuh: type_x, sum */
#include "prelude.cuh"
#include "direct_args.h"
#include "generated.cuh"

enum { THREADS = 128 };

DEVICE sum widen(f16 x) { return (sum)to_float(x); }
DEVICE sum widen(bf16 x) { return (sum)to_float(x); }
template <class T> DEVICE sum widen(T x) { return (sum)x; }

/* The position of the image that tap k sends to result o; false: none. */
DEVICE bool source_of(const transpose_args &a, i32 i, i32 o, i32 k, i32 &from)
{
    const i32 moved = o + a.pad[i] - k * a.dilation[i];
    if (moved < 0) return false;
    i32 r;
    divmod_fast(moved, a.stride[i], from, r);
    return r == 0 && from < a.in[i];
}

KERNEL void __launch_bounds__(THREADS)
    conv_transpose(const __grid_constant__ transpose_args a, const __grid_constant__ epi_args e)
{
    const i64 index = (i64)blockIdx.x * THREADS + threadIdx.x;
    i32 at[EPI_RANK], rest = (i32)index;
    divmod_fast(rest, a.channels_out, rest, at[1]);
#pragma unroll
    for (i32 i = SPATIAL - 1; i >= 0; i--) divmod_fast(rest, a.out[i], rest, at[2 + i]);
    at[0] = rest;
    grid_wait();
    if (index >= a.count) return;
    i32 group, filter;
    divmod_fast(at[1], a.group, group, filter);
    const type_x *const x = (const type_x *)a.x + at[0] * a.x_image + (i64)group * a.channels * a.x_channel;
    const type_x *const w = (const type_x *)a.w + filter * a.w_filter + (i64)group * a.channels * a.w_channel;
    sum total = 0;
    i32 k[SPATIAL];
    for (k[0] = 0; k[0] < a.kernel[0]; k[0]++) {
        i32 from[SPATIAL];
        if (!source_of(a, 0, at[2], k[0], from[0])) continue;
#if SPATIAL > 1
        for (k[1] = 0; k[1] < a.kernel[1]; k[1]++) {
            if (!source_of(a, 1, at[3], k[1], from[1])) continue;
#endif
#if SPATIAL > 2
            for (k[2] = 0; k[2] < a.kernel[2]; k[2]++) {
                if (!source_of(a, 2, at[4], k[2], from[2])) continue;
#endif
                i64 x_at = 0, w_at = 0;
#pragma unroll
                for (i32 i = 0; i < SPATIAL; i++) {
                    x_at += from[i] * a.x_step[i];
                    w_at += k[i] * a.w_step[i];
                }
                for (i32 c = 0; c < a.channels; c++)
                    total += widen(x[x_at + c * a.x_channel]) * widen(w[w_at + c * a.w_channel]);
#if SPATIAL > 2
            }
#endif
#if SPATIAL > 1
        }
#endif
    }
    epi_row row;
    epi_begin(e, row, at);
    epi_acc v[1] = { (epi_acc)total };
    epi_run<1>(e, row, 0, 1, v);
}
