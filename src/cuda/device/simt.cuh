/* SPDX-License-Identifier: Apache-2.0 */
/* simt.cuh - what simt.cu, simt_reduce.cu and gemv.cu share: where an element of the result is, and its epilogue; with a
 * prologue, where what it makes is.
 *
 * -D: BATCH_AXES ROW_AXES COL_AXES SPATIAL EPI_V PHASES
 * generated.cuh: batch_out, row_out, col_out (the result's axis of each; -1: none), INNER, types sum and acc_type */
#ifndef SIMT_CUH
#define SIMT_CUH

#include "prelude.cuh"
#include "simt_args.h"
#include "generated.cuh"

/* The batch of a block: indices of its axes, and its part of the result's coordinates. */
struct place { i32 index[BATCH_AXES]; i32 at[EPI_RANK]; };

DEVICE void place_batch(const simt_args &a, i32 batch, place &x)
{
#pragma unroll
    for (i32 i = 0; i < EPI_RANK; i++) x.at[i] = 0;
    i32 rest = batch;
#pragma unroll
    for (i32 i = BATCH_AXES - 1; i >= 0; i--) {
        i32 q = 0, r = rest;
        if (i) divmod_fast(rest, a.batch.div[i], q, r);
        rest = q;
        x.index[i] = r;
#pragma unroll
        for (i32 k = 0; k < EPI_RANK; k++)
            if (batch_out[i] == k) x.at[k] += r * a.batch.out_step[i];
    }
}

/* Adds the coordinates of position `index` along rows or columns. */
template <i32 AXES> DEVICE void place_add(const simt_lines &s, const i32 (&out)[AXES], i32 index, i32 (&at)[EPI_RANK])
{
    i32 rest = index;
#pragma unroll
    for (i32 i = AXES - 1; i >= 0; i--) {
        i32 q = 0, r = rest;
        if (i) divmod_fast(rest, s.div[i], q, r);
        rest = q;
#pragma unroll
        for (i32 k = 0; k < EPI_RANK; k++)
            if (out[i] == k) at[k] += r * s.out_step[i];
    }
}

/* Phases are rounded up: some positions lie beyond the result. */
DEVICE bool place_is_inside(const simt_args &a, const i32 (&at)[EPI_RANK])
{
#if PHASES
#pragma unroll
    for (i32 i = 0; i < SPATIAL; i++)
        if (at[2 + i] >= a.out_size[i]) return false;
#endif
    return true;
}

/* A kernel with a prologue has its parameters, too, and hands them on. */
#ifdef PRO_RANK
#define PRO_PARAM , const __grid_constant__ pro_args pa
#define PRO_TYPE , const pro_args &pa
#define PRO_PASS , pa

/* Adds the coordinates of position k of depth in what the program makes. */
DEVICE void pro_add_depth(const simt_args &a, i32 k, i32 (&at)[PRO_RANK])
{
    i32 rest = k;
#pragma unroll
    for (i32 i = DEPTH_AXES - 1; i >= 0; i--) {
        i32 q = 0, r = rest;
        if (i) divmod_fast(rest, a.depth_div[i], q, r);
        rest = q;
        if (pro_depth_axis[i] >= 0) at[pro_depth_axis[i]] += r * a.pro.depth[i];
    }
}
#else
#define PRO_PARAM
#define PRO_TYPE
#define PRO_PASS
#endif

struct quad { sum at[4]; };

/* A row of the result, and how its columns are finished four at a time. With EPI_V 4 the last column axis is the
 * result's innermost one, and four columns from a multiple of 4 lie in one run of it or at the end of all columns. */
struct finish_row {
    i32 at[EPI_RANK];
    bool is_live;
#if EPI_V > 1 && COL_AXES == 1
    epi_row row;
    i32 first;
#endif
};

DEVICE void finish_begin(const simt_args &a, const epi_args &e, const place &batch, i32 row, finish_row &f)
{
    f.is_live = row < a.row.count;
#pragma unroll
    for (i32 i = 0; i < EPI_RANK; i++) f.at[i] = batch.at[i];
    if (f.is_live) place_add(a.row, row_out, row, f.at);
    f.is_live = f.is_live && place_is_inside(a, f.at);
#if EPI_V > 1 && COL_AXES == 1
    f.first = f.at[INNER];
    f.at[INNER] = 0;
    if (f.is_live) epi_begin(e, f.row, f.at);
#endif
}

/* What the epilogue of four columns reads, and where. */
struct finish_quad {
    i32 count;                                      /* of columns; 0: none */
#if EPI_V > 1
    epi_regs<4> x;
    i32 first;
#if COL_AXES > 1
    epi_row row;
#endif
#endif
};

DEVICE void finish_fetch(const simt_args &a, const epi_args &e, const finish_row &f, i32 col, finish_quad &g)
{
    const i32 left = a.col.count - col;
    g.count = !f.is_live || left <= 0 ? 0 : left < 4 ? left : 4;
#if EPI_V > 1
    if (!g.count) return;
#if COL_AXES > 1
    i32 at[EPI_RANK];
#pragma unroll
    for (i32 i = 0; i < EPI_RANK; i++) at[i] = f.at[i];
    place_add(a.col, col_out, col, at);
    if (!place_is_inside(a, at)) g.count = 0;
    if (!g.count) return;
    g.first = at[INNER];
    at[INNER] = 0;
    epi_begin(e, g.row, at);
    epi_fetch<4>(e, g.row, g.first, g.count, g.x);
#else
    g.first = f.first + col;
    epi_fetch<4>(e, f.row, g.first, g.count, g.x);
#endif
#endif
}

DEVICE void finish_apply(const simt_args &a, const epi_args &e, const finish_row &f, i32 col, const finish_quad &g,
                         const quad &v)
{
    if (!g.count) return;
#if EPI_V > 1
    epi_acc acc[4];
#pragma unroll
    for (i32 j = 0; j < 4; j++) acc[j] = (epi_acc)(acc_type)v.at[j];
#if COL_AXES > 1
    epi_apply<4>(e, g.row, g.first, g.count, g.x, acc);
#else
    epi_apply<4>(e, f.row, g.first, g.count, g.x, acc);
#endif
#else
#pragma unroll
    for (i32 j = 0; j < 4; j++) {
        if (j >= g.count) break;
        i32 at[EPI_RANK];
#pragma unroll
        for (i32 i = 0; i < EPI_RANK; i++) at[i] = f.at[i];
        place_add(a.col, col_out, col + j, at);
        if (!place_is_inside(a, at)) continue;
        epi_row row;
        epi_begin(e, row, at);
        epi_acc acc[1] = { (epi_acc)(acc_type)v.at[j] };
        epi_run<1>(e, row, 0, 1, acc);
    }
#endif
}

#endif
