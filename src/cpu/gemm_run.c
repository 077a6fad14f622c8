/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_run.c - matrix products on the core: packing B, counting tiles, walking batches. */
#include "base/env.h"
#include "cpu/gemm_core.h"

size_t gemm_pack_size(isa_level isa, gemm_tactic tactic, int64_t taps, int64_t k, int64_t n)
{
    const size_t lanes = (size_t)gemm_tile_set_of(isa)->lanes;
    const size_t cols = size_align((size_t)n, lanes);
    const size_t floats = size_mul(size_mul((size_t)taps, (size_t)k), cols);
    (void)tactic; /* whatever the width of a panel, only the last vector is padded */
    return size_align(size_mul(floats, sizeof(float)), 64);
}

static void pack_panels(const gemm_tile_set *set, const gemm_grid *g, int64_t taps, int64_t k, int64_t n,
                        int64_t panel_begin, int64_t panel_end, const float *src, int64_t tap_stride,
                        int64_t row_stride, int64_t col_stride, float *dst)
{
    for (int64_t panel = panel_begin; panel < panel_end; panel++) {
        const int64_t col = panel * g->width, left = n - col < g->width ? n - col : g->width;
        const int64_t width = (left + g->lanes - 1) / g->lanes * g->lanes;
        for (int64_t tap = 0; tap < taps; tap++, dst += k * width) {
            set->pack(dst, src + tap * tap_stride + col * col_stride, k, (int32_t)left, (int32_t)width, row_stride,
                      col_stride);
        }
    }
}

void gemm_pack(isa_level isa, gemm_tactic tactic, int64_t taps, int64_t k, int64_t n, const float *src,
               int64_t tap_stride, int64_t row_stride, int64_t col_stride, float *dst)
{
    const gemm_tile_set *set = gemm_tile_set_of(isa);
    const gemm_grid g = gemm_grid_of(set, tactic, 1, n);
    pack_panels(set, &g, taps, k, n, 0, g.panels, src, tap_stride, row_stride, col_stride, dst);
}

/* Floats of scratch for the panels of one block of a raw B. */
static size_t raw_size(const gemm_params *p, const gemm_grid *g)
{
    if (!p->b_raw || g->n_blocks == 0) return 0;
    const size_t panels = (size_t)((g->panels + g->n_blocks - 1) / g->n_blocks);
    return size_mul(size_mul(size_mul(panels, (size_t)g->width), (size_t)p->k), sizeof(float));
}

static int64_t batch_count(const gemm_params *p)
{
    int64_t count = 1;
    for (int i = 0; i < GEMM_BATCH_RANK; i++) count *= p->batch[i] ? p->batch[i] : 1;
    return count;
}

size_t gemm_scratch_size(const gemm_params *p)
{
    const gemm_tile_set *set = gemm_tile_set_of(p->isa);
    const gemm_grid g = gemm_grid_of(set, p->tactic, p->m, p->n);
    return size_add(gemm_core_scratch_size(set, p->tactic, 1, p->k), size_align(raw_size(p, &g), 64));
}

int64_t gemm_tile_count(const gemm_params *p)
{
    const gemm_grid g = gemm_grid_of(gemm_tile_set_of(p->isa), p->tactic, p->m, p->n);
    return batch_count(p) * g.m_blocks * g.n_blocks;
}

typedef struct dense_rows {
    const float *a;
    int64_t stride;
} dense_rows;

static void dense_rows_fill(const void *source, int64_t row, int32_t rows, const float **out)
{
    const dense_rows *s = source;
    const float *a = s->a + row * s->stride;
    for (int32_t i = 0; i < rows; i++) out[i] = a + i * s->stride;
}

void gemm_run(const gemm_params *p, int64_t begin, int64_t end, void *scratch, void *post_user)
{
    const gemm_tile_set *set = gemm_tile_set_of(p->isa);
    const gemm_grid g = gemm_grid_of(set, p->tactic, p->m, p->n);
    const int64_t blocks = g.m_blocks * g.n_blocks;
    float *packed = (float *)((char *)scratch + gemm_core_scratch_size(set, p->tactic, 1, p->k));
    int64_t packed_key = -1; /* the block of B that `packed` holds */
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t batch = tile / blocks, n_block = tile % blocks / g.m_blocks, m_block = tile % g.m_blocks;
        int64_t a_at = 0, b_at = 0, c_at = 0, residual_at = 0, left = batch;
        for (int i = GEMM_BATCH_RANK - 1; i >= 0; i--) {
            const int64_t size = p->batch[i] ? p->batch[i] : 1, at = left % size;
            left /= size;
            a_at += at * p->a_batch[i];
            b_at += at * p->b_batch[i];
            c_at += at * p->c_batch[i];
            residual_at += at * p->residual_batch[i];
        }
        const dense_rows rows = { .a = p->a + a_at, .stride = p->a_row };
        int64_t b_first = 0;
        const float *b = p->b + b_at;
        if (p->b_raw) {
            b_first = g.panels * n_block / g.n_blocks;
            if (packed_key != batch * g.n_blocks + n_block) {
                packed_key = batch * g.n_blocks + n_block;
                pack_panels(set, &g, 1, p->k, p->n, b_first, g.panels * (n_block + 1) / g.n_blocks, b, 0, p->b_row,
                            p->b_col, packed);
            }
            b = packed;
        }
        const gemm_core core = {
            .set = set,
            .tactic = p->tactic,
            .rows = dense_rows_fill,
            .source = &rows,
            .m = p->m,
            .n = p->n,
            .k = p->k,
            .taps = 1,
            .a_row = p->a_row,
            .a_col = p->a_col,
            .b = b,
            .c = p->c + c_at,
            .ldc = p->ldc,
            .bias = p->epilogue.bias,
            .residual = p->epilogue.residual ? p->epilogue.residual + residual_at : NULL,
            .epilogue = &p->epilogue,
            .batch = batch,
        };
        gemm_core_block(&core, &g, m_block, n_block, b_first, scratch, post_user);
    }
}
