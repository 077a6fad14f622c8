/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.cu - a program over a space: each thread takes UNROLL vectors of WIDTH elements, a block apart.
 *
 * EVEN: rows are whole vectors. All operands of a thread are under way before it computes, and all its results come after all its reads, so that a
 * result may lie where an operand lies. */
#include "prelude.cuh"
#include "generated.cuh"
#include "pointwise_args.h"

#ifdef ACROSS
/* An operand's elements are adjacent along ACROSS, the result's along the last axis: threads take vectors along the one
 * and stand side by side along the other, XT of them, so that both sides move whole sectors. */
KERNEL void pointwise(const __grid_constant__ pointwise_args p, const __grid_constant__ epi_args a)
{
    constexpr i32 YT = 256 / XT;
    i32 at[EPI_RANK], rest, line, tile_x, tile_y;
    divmod_fast((i32)blockIdx.x, p.tiles_x, line, tile_x);
    divmod_fast(line, p.tiles_y, rest, tile_y);
#pragma unroll
    for (int k = EPI_RANK - 2; k >= 0; k--) {
        if (k == ACROSS) continue;
        divmod_fast(rest, p.dim[k], line, at[k]);
        rest = line;
    }
    const i32 i = (tile_y * YT + (i32)threadIdx.x / XT) * WIDTH, left = p.across - i;
    at[ACROSS] = 0;
    at[EPI_RANK - 1] = tile_x * XT + (i32)threadIdx.x % XT;
    const bool is_there = at[EPI_RANK - 1] < p.inner && left > 0;
    epi_row row;
    epi_begin(a, row, at);
    if (TRIGGER == 1) grid_trigger();
    grid_wait();
    epi_regs<WIDTH> x;
    if (is_there) epi_fetch(a, row, i, left, x);
    if (TRIGGER == 2) grid_trigger();
    if (!is_there) return;
    epi_acc v[WIDTH];
#pragma unroll
    for (int k = 0; k < WIDTH; k++) v[k] = 0;
    epi_apply(a, row, i, left, x, v);
}
#else
KERNEL void pointwise(const __grid_constant__ pointwise_args p, const __grid_constant__ epi_args a)
{
    const vector_id first = (vector_id)blockIdx.x * (blockDim.x * UNROLL) + threadIdx.x;
    epi_row row[UNROLL];
    i32 begin[UNROLL], left[UNROLL];
    epi_regs<WIDTH> x[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        const vector_id t = first + u * blockDim.x;
        i32 at[EPI_RANK];
        vector_at rest = (vector_at)t, line;
        begin[u] = (i32)rest;
        if (EPI_RANK > 1) vector_divmod(rest, p.row, line, begin[u]), rest = line;
        at[EPI_RANK - 1] = 0;
#pragma unroll
        for (int k = EPI_RANK - 2; k > 0; k--) {
            vector_divmod(rest, p.dim[k], line, at[k]);
            rest = line;
        }
        if (EPI_RANK > 1) at[0] = (i32)rest;
        begin[u] *= WIDTH;
        left[u] = t >= (vector_id)p.total ? 0 : EVEN ? WIDTH : p.inner - begin[u];
        epi_begin(a, row[u], at);
    }
    if (TRIGGER == 1) grid_trigger();
    grid_wait();
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
        if (left[u] > 0) epi_fetch(a, row[u], begin[u], EVEN ? WIDTH : left[u], x[u]);
    if (TRIGGER == 2) grid_trigger();
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        if (left[u] <= 0) continue;
        epi_acc v[WIDTH];
#pragma unroll
        for (int k = 0; k < WIDTH; k++) v[k] = 0;
        epi_apply(a, row[u], begin[u], EVEN ? WIDTH : left[u], x[u], v);
    }
}
#endif
