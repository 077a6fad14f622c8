/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_core.c - the loops around the micro-kernels.
 *
 * A work tile walks its register tiles, and for each its panels: the panels of a block stay in the L2 cache while the
 * rows pass by, and one tile's rows of A stay in L1 while the panels pass by. K is never cut, so C is written once. */
#include "cpu/gemm_core.h"
#include "base/env.h"
#include <string.h>

enum { SCRATCH_ALIGN = 64, POST_BYTES = 4096 };

static int64_t i64_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

gemm_grid gemm_grid_of(const gemm_tile_set *set, gemm_tactic t, int64_t m, int64_t n)
{
    gemm_grid g = { .lanes = set->lanes, .width = (int64_t)set->lanes * t.vectors };
    g.m_tiles = ceil_div(m, t.rows);
    g.panels = ceil_div(n, g.width);
    if (g.m_tiles == 0 || g.panels == 0) return (gemm_grid){ .lanes = g.lanes, .width = g.width };
    g.rows_small = m / g.m_tiles;
    g.rows_extra = m % g.m_tiles;
    g.m_blocks = t.block_m ? ceil_div(g.m_tiles, t.block_m) : 1;
    g.n_blocks = t.block_n ? ceil_div(g.panels, t.block_n) : 1;
    return g;
}

/* The last panel is only as many vectors wide as its columns need. */
static int64_t panel_width(const gemm_grid *g, int64_t n, int64_t panel)
{
    const int64_t cols = i64_min(n - panel * g->width, g->width);
    return ceil_div(cols, g->lanes) * g->lanes;
}

int64_t gemm_panel_at(const gemm_grid *g, int64_t taps, int64_t k, int64_t n, int64_t panel)
{
    if (panel == 0) return 0;
    return taps * k * ((panel - 1) * g->width + panel_width(g, n, panel - 1));
}

static size_t rows_size(gemm_tactic t, int64_t taps)
{
    return size_align(size_mul(size_mul((size_t)taps, t.rows), sizeof(const float *)), SCRATCH_ALIGN);
}

/* Rows of a copied A lie an odd number of cache lines apart, so no two collide in the L1 cache. */
static int64_t copy_stride(int64_t k)
{
    return (k + 15) / 16 * 16 | 16;
}

size_t gemm_core_scratch_size(const gemm_tile_set *set, gemm_tactic t, int64_t taps, int64_t k)
{
    (void)set;
    size_t size = rows_size(t, taps);
    if (t.copy_a) {
        const size_t row = size_mul((size_t)copy_stride(k), sizeof(float));
        size = size_add(size, size_mul(size_mul((size_t)taps, t.rows), row));
    }
    return size_align(size, SCRATCH_ALIGN);
}

/* Replaces row pointers by pointers to copies in `to`. */
static void rows_copy(const gemm_core *core, int32_t rows, const float **from, float *to)
{
    const int64_t stride = copy_stride(core->k), count = core->taps * rows;
    const int64_t step = core->a_col;
    if (step == 1) {
        for (int64_t i = 0; i < count; i++, to += stride) {
            memcpy(to, from[i], (size_t)core->k * sizeof(float));
            from[i] = to;
        }
        return;
    }
    /* With rows next to each other in memory (a transposed A) the inner loop runs along them. */
    for (int64_t tap = 0; tap < core->taps; tap++, from += rows, to += stride * rows) {
        for (int64_t k = 0; k < core->k; k++) {
            for (int32_t i = 0; i < rows; i++) to[i * stride + k] = from[i][k * step];
        }
        for (int32_t i = 0; i < rows; i++) from[i] = to + i * stride;
    }
}

/* The taps from the first to the last that have a row beside the zeros; one at least. */
static void taps_trim(const gemm_core *core, int32_t rows, const float *const *at, int64_t *begin, int64_t *end)
{
    *begin = 0;
    *end = core->taps;
    if (!core->zeros) return;
    for (int64_t left = core->taps * rows, i = 0; i < left && at[i] == core->zeros; i++) *begin = (i + 1) / rows;
    for (int64_t i = core->taps * rows; i > 0 && at[i - 1] == core->zeros; i--) *end = (i - 1 + rows - 1) / rows;
    if (*begin < *end) return;
    *begin = 0;
    *end = 1;
}

void gemm_core_block(const gemm_core *core, const gemm_grid *g, int64_t m_block, int64_t n_block, int64_t b_first,
                     void *scratch, void *post_user)
{
    const gemm_epilogue *e = core->epilogue;
    const float **rows_at = scratch;
    float *copy = (float *)((char *)scratch + rows_size(core->tactic, core->taps));
    /* Blocks are cut evenly: products of counts fit, both are bounded by the number of elements in memory. */
    const int64_t tile_end = g->m_tiles * (m_block + 1) / g->m_blocks;
    const int64_t panel_begin = g->panels * n_block / g->n_blocks;
    const int64_t panel_end = g->panels * (n_block + 1) / g->n_blocks;
    const float *b_begin = core->b + gemm_panel_at(g, core->taps, core->k, core->n, panel_begin) -
                           gemm_panel_at(g, core->taps, core->k, core->n, b_first);
    for (int64_t i = g->m_tiles * m_block / g->m_blocks; i < tile_end; i++) {
        const int64_t row = i * g->rows_small + i64_min(i, g->rows_extra);
        const int32_t rows = (int32_t)(g->rows_small + (i < g->rows_extra));
        int64_t tap_begin, tap_end;
        core->rows(core->source, row, rows, rows_at);
        taps_trim(core, rows, rows_at, &tap_begin, &tap_end);
        if (core->tactic.copy_a) rows_copy(core, rows, rows_at, copy);
        gemm_tile t = {
            .a = rows_at + tap_begin * rows,
            .ldc = core->ldc,
            .ldr = e->ldr,
            .taps = tap_end - tap_begin,
            .k = core->k,
            .ahead = core->tactic.copy_a ? 0 : core->a_row * rows,
            .flags = (e->scale ? GEMM_TILE_ALPHA : 0u) | (e->clip ? GEMM_TILE_CLIP : 0u),
            .alpha = e->alpha,
            .lo = e->lo,
            .hi = e->hi,
        };
        const float *b = b_begin;
        int64_t done = panel_begin * g->width; /* first column that the hook has not seen */
        for (int64_t panel = panel_begin; panel < panel_end; panel++) {
            const int64_t col = panel * g->width, width = panel_width(g, core->n, panel);
            t.cols = (int32_t)i64_min(core->n - col, width);
            t.c = core->c + row * core->ldc + col;
            t.bias = core->bias ? core->bias + col : NULL;
            t.residual = core->residual ? core->residual + row * e->ldr + col : NULL;
            t.b = b + tap_begin * core->k * width;
            core->set->run[width / g->lanes - 1][rows - 1](&t);
            b += core->taps * core->k * width;
            t.ahead = 0;
            const int64_t cols = col + t.cols - done;
            if (e->post && (panel + 1 == panel_end || cols * rows * (int64_t)sizeof(float) >= POST_BYTES)) {
                e->post(post_user, core->batch, row, rows, core->col + done, cols, core->c + row * core->ldc + done,
                        core->ldc);
                done += cols;
            }
        }
    }
}
