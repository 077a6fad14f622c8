/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_core.h - what matrix products and convolutions share: cutting M and N, and running one work tile.
 *
 * The owner supplies where the rows of A lie (a function that fills pointers for a few rows and all taps); the core
 * walks register tiles and panels, and reports finished blocks. */
#ifndef CPU_GEMM_CORE_H
#define CPU_GEMM_CORE_H

#include "cpu/gemm.h"

/* Fills out[tap * rows + i] for rows [row, row + rows) of A. */
typedef void gemm_rows_fn(const void *source, int64_t row, int32_t rows, const float **out);

typedef struct gemm_core {
    const gemm_tile_set *set;
    gemm_tactic tactic;
    gemm_rows_fn *rows;
    const void *source;
    int64_t m, n, k, taps;
    int64_t a_row, a_col; /* a_row: usual distance of rows, for prefetching only */
    const float *b;       /* packed, panel 0                          */
    float *c;
    int64_t ldc;
    const float *bias, *residual;
    const gemm_epilogue *epilogue; /* bias and residual of it are not read     */
    int64_t batch, col;            /* what the hook is told                    */
    const float *zeros;            /* NULL, or a row of A that adds nothing: first and last taps of that alone are left
                                    * out */
} gemm_core;

/* The cut of [m, n]: register tiles of nearly equal height, panels, and the blocks of both that are work tiles. */
typedef struct gemm_grid {
    int64_t rows_small, rows_extra; /* the first `rows_extra` register tiles are one row higher */
    int64_t m_tiles, panels, m_blocks, n_blocks;
    int64_t lanes, width; /* floats of a vector and of a full panel */
} gemm_grid;

gemm_grid gemm_grid_of(const gemm_tile_set *set, gemm_tactic t, int64_t m, int64_t n);
/* Floats of a packed matrix before panel `panel` (panel == panels: all of it). Exact only below INT64_MAX. */
int64_t gemm_panel_at(const gemm_grid *g, int64_t taps, int64_t k, int64_t n, int64_t panel);
/* Bytes of scratch for one work tile without a raw B. */
size_t gemm_core_scratch_size(const gemm_tile_set *set, gemm_tactic t, int64_t taps, int64_t k);
/* Runs block (m_block, n_block); `b_first` is the panel that core->b points at (0 unless B was packed for this block).
 */
void gemm_core_block(const gemm_core *core, const gemm_grid *g, int64_t m_block, int64_t n_block, int64_t b_first,
                     void *scratch, void *post_user);

/* Whether every count is 1 or more (0 too where `empty`) and their product is a number of floats that memory could
 * hold, so that no arithmetic on sizes here can overflow. */
bool gemm_counts_fit(const int64_t *counts, int count, bool empty);

#endif
