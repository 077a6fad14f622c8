/* SPDX-License-Identifier: Apache-2.0 */
/* simt_reduce.cu - adds the sums that simt.cu left in the workspace for slices of depth, and runs the epilogue.
 *
 *   thread: four columns of a row; grid: batches * rows * ceil(columns / 4) over blocks of THREADS
 *
 * -D: as simt.cuh, THREADS */
#include "simt.cuh"

KERNEL void __launch_bounds__(THREADS, 8)
    simt_reduce(const __grid_constant__ simt_args a, const __grid_constant__ epi_args e)
{
    grid_wait();
    i32 line, col, batch, row;
    divmod_fast((i32)(blockIdx.x * THREADS + threadIdx.x), a.quads, line, col);
    divmod_fast(line, a.rows, batch, row);
    col *= 4;
    if (batch >= a.batch.count) return;
    place where;
    finish_row f;
    finish_quad g;
    place_batch(a, batch, where);
    finish_begin(a, e, where, row, f);
    finish_fetch(a, e, f, col, g);
    quad total = {};
    const sum *part = (const sum *)a.part + (i64)line * a.col_pitch + col;
    const i64 pitch = (i64)a.batch.count * a.row.count * a.col_pitch;
    for (u32 s = 0; s < a.split.d; s++) {
        const vec<sum, 4> v = *(const vec<sum, 4> *)(part + s * pitch);
#pragma unroll
        for (i32 j = 0; j < 4; j++) total.at[j] += v.at[j];
    }
    finish_apply(a, e, f, col, g, total);
}
