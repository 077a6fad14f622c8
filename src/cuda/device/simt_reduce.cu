/* SPDX-License-Identifier: Apache-2.0 */
/* simt_reduce.cu - adds the sums that simt.cu left in the workspace for slices of depth, and runs the epilogue.
 *
 *   thread: four columns of a row; grid: batches * rows * ceil(columns / 4) over blocks of THREADS
 *
 * -D: as simt.cuh, THREADS */
#include "simt.cuh"

KERNEL void __launch_bounds__(THREADS) simt_reduce(const __grid_constant__ simt_args a, const __grid_constant__ epi_args e)
{
    grid_wait();
    const i64 index = (i64)blockIdx.x * THREADS + threadIdx.x;
    const i32 quads = a.col_pitch / 4;
    const i64 line = index / quads;
    const i32 col = (i32)(index - line * quads) * 4;
    const i32 batch = (i32)(line / a.row.count), row = (i32)(line - (i64)batch * a.row.count);
    if (batch >= a.batch.count) return;
    place where;
    finish_row f;
    finish_quad g;
    place_batch(a, batch, where);
    finish_begin(a, e, where, row, f);
    finish_fetch(a, e, f, col, g);
    quad total = {};
    const sum *part = (const sum *)a.part + line * a.col_pitch + col;
    const i64 pitch = (i64)a.batch.count * a.row.count * a.col_pitch;
    for (u32 s = 0; s < a.split.d; s++) {
        const vec<sum, 4> v = *(const vec<sum, 4> *)(part + s * pitch);
#pragma unroll
        for (i32 j = 0; j < 4; j++) total.at[j] += v.at[j];
    }
    finish_apply(a, e, f, col, g, total);
}
