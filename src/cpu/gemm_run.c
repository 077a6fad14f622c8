/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_run.c - matrix products on the core: packing B, counting tiles, walking batches. */
#include "base/env.h"
#include "cpu/codes.h"
#include "cpu/gemm_core.h"

size_t gemm_pack_size(isa_level isa, gemm_tactic tactic, int64_t taps, int64_t k, int64_t n)
{
    const gemm_tile_set *set = gemm_set_of(isa, tactic);
    const size_t cols = size_align((size_t)n, (size_t)set->lanes);
    /* Whatever the width of a panel, only the last vector is padded. */
    const size_t words = size_mul(size_mul((size_t)taps, (size_t)gemm_words(set, k)), cols);
    return size_align(size_mul(words, sizeof(float)), 64);
}

static void pack_panels(const gemm_tile_set *set, const gemm_grid *g, int64_t taps, int64_t k, int64_t n,
                        int64_t panel_begin, int64_t panel_end, const void *src, int64_t tap_stride, int64_t row_stride,
                        int64_t col_stride, float *dst)
{
    const int64_t size = gemm_b_size(set), words = gemm_words(set, k);
    for (int64_t panel = panel_begin; panel < panel_end; panel++) {
        const int64_t col = panel * g->width, left = n - col < g->width ? n - col : g->width;
        const int64_t width = (left + g->lanes - 1) / g->lanes * g->lanes;
        for (int64_t tap = 0; tap < taps; tap++, dst += words * width) {
            set->pack(dst, (const char *)src + (tap * tap_stride + col * col_stride) * size, k, (int32_t)left,
                      (int32_t)width, row_stride, col_stride);
        }
    }
}

void gemm_pack(isa_level isa, gemm_tactic tactic, int64_t taps, int64_t k, int64_t n, const void *src,
               int64_t tap_stride, int64_t row_stride, int64_t col_stride, void *dst)
{
    const gemm_tile_set *set = gemm_set_of(isa, tactic);
    const gemm_grid g = gemm_grid_of(set, tactic, 1, n);
    pack_panels(set, &g, taps, k, n, 0, g.panels, src, tap_stride, row_stride, col_stride, dst);
}

/* Bytes of scratch for the panels of one block of a raw B, or of one in codes. */
static size_t raw_size(const gemm_params *p, const gemm_grid *g)
{
    if ((!p->b_raw && !p->codes) || g->n_blocks == 0) return 0;
    const size_t panels = (size_t)((g->panels + g->n_blocks - 1) / g->n_blocks);
    const int64_t depth =
        p->codes && codes_depth(p) < p->k ? codes_depth(p) : gemm_words(gemm_set_of(p->isa, p->tactic), p->k);
    return size_mul(size_mul(size_mul(panels, (size_t)g->width), (size_t)depth), sizeof(float));
}

static int64_t batch_count(const gemm_params *p)
{
    int64_t count = 1;
    for (int i = 0; i < GEMM_BATCH_RANK; i++) count *= p->batch[i] ? p->batch[i] : 1;
    return count;
}

size_t gemm_scratch_size(const gemm_params *p)
{
    const gemm_tile_set *set = gemm_set_of(p->isa, p->tactic);
    const gemm_grid g = gemm_grid_of(set, p->tactic, p->m, p->n);
    size_t own = size_align(raw_size(p, &g), 64);
    if (p->codes) { /* for few rows, too, of which one panel of f32 may be wanted all the same */
        const size_t direct = codes_scratch_size(p, p->m < p->tactic.direct ? p->m : p->tactic.direct),
                     panel = size_mul(size_mul((size_t)g.width, (size_t)codes_depth(p)), sizeof(float));
        if (own < direct) own = size_align(direct, 64);
        if (own < panel) own = size_align(panel, 64);
    }
    return size_add(gemm_core_scratch_size(set, p->tactic, 1, p->k, p->epilogue.drain), own);
}

size_t gemm_copied_size(const gemm_params *p)
{
    if (p->tactic.copy_a != GEMM_COPY_FIRST) return 0;
    const size_t rows = size_mul((size_t)batch_count(p), (size_t)p->m);
    return size_mul(rows, (size_t)gemm_copied_stride(gemm_set_of(p->isa, p->tactic), p->k));
}

int64_t gemm_copy_count(const gemm_params *p)
{
    if (p->tactic.copy_a != GEMM_COPY_FIRST) return 0;
    return batch_count(p) * gemm_grid_of(gemm_set_of(p->isa, p->tactic), p->tactic, p->m, p->n).m_tiles;
}

int64_t gemm_tile_count(const gemm_params *p)
{
    if (p->codes && p->codes->is_direct) return batch_count(p) * codes_panels(p);
    const gemm_grid g = gemm_grid_of(gemm_set_of(p->isa, p->tactic), p->tactic, p->m, p->n);
    return batch_count(p) * g.m_blocks * g.n_blocks;
}

typedef struct dense_rows {
    const char *a;
    int64_t stride; /* bytes */
} dense_rows;

static void dense_rows_fill(const void *source, int64_t row, int32_t rows, const void **out)
{
    const dense_rows *s = source;
    const char *a = s->a + row * s->stride;
    for (int32_t i = 0; i < rows; i++) out[i] = a + i * s->stride;
}

/* Bytes of an element of A in memory. */
static int64_t a_size_of(const gemm_params *p)
{
    const sinter_dtype t = p->a_type == SINTER_DTYPE_NONE ? gemm_unit_type((gemm_unit)p->tactic.unit) : p->a_type;
    return sinter_dtype_bits(t) / 8;
}

typedef struct matrix_at {
    int64_t a, b, c, residual;
} matrix_at;

static matrix_at matrix_of(const gemm_params *p, int64_t batch)
{
    matrix_at m = { 0 };
    for (int i = GEMM_BATCH_RANK - 1; i >= 0; i--) {
        const int64_t size = p->batch[i] ? p->batch[i] : 1, at = batch % size;
        batch /= size;
        m.a += at * p->a_batch[i];
        m.b += at * p->b_batch[i];
        m.c += at * p->c_batch[i];
        m.residual += at * p->residual_batch[i];
    }
    return m;
}

/* What multiplies rows of one matrix's A with terms [k, k + terms) of B. Rows are those of A, or of its copy. */
static gemm_core core_of(const gemm_params *p, const matrix_at *at, int64_t batch, int64_t k, int64_t terms,
                         const void *copied, dense_rows *rows)
{
    const gemm_tile_set *set = gemm_set_of(p->isa, p->tactic);
    const int64_t a_size = a_size_of(p);
    gemm_core core = {
        .set = set,
        .tactic = p->tactic,
        .rows = dense_rows_fill,
        .source = rows,
        .m = p->m,
        .n = p->n,
        .k = terms,
        .taps = 1,
        .a_row = p->a_row,
        .a_col = p->a_col,
        .a_size = a_size,
    };
    if (copied) {
        const int64_t stride = gemm_copied_stride(set, p->k), term = (int64_t)sizeof(float) / set->terms;
        rows->a = (const char *)copied + batch * p->m * stride + k * term;
        rows->stride = stride;
        core.a_row = stride / term;
        core.a_col = 1;
        core.a_size = term;
        core.plane = gemm_copied_plane(set, p->k);
        return core;
    }
    (void)gemm_load_of(p->isa, (gemm_unit)p->tactic.unit, p->a_type, &core.load);
    rows->a = (const char *)p->a + (at->a + k * p->a_col) * a_size;
    rows->stride = p->a_row * a_size;
    return core;
}

/* Block (m_block, n_block) of one matrix, of terms [k, k + terms): what was summed before lies in C. packed: holds B of
 * that block, where B is not packed as a whole. */
static void run_block(const gemm_params *p, const gemm_grid *g, int64_t batch, int64_t m_block, int64_t n_block,
                      int64_t k, int64_t terms, const float *packed, int32_t *state, void *scratch, void *post_user)
{
    const matrix_at at = matrix_of(p, batch);
    const int64_t b_size = gemm_b_size(gemm_set_of(p->isa, p->tactic));
    gemm_epilogue e = p->epilogue;
    void *c = (char *)p->c + at.c * (p->narrow_c ? 2 : 4);
    const void *residual = e.residual ? e.residual + at.residual : NULL;
    if (e.narrow_residual) residual = e.narrow_residual + at.residual;
    if (k) {
        e.ldr = p->ldc;
        residual = c;
    }
    if (k + terms < p->k) {
        e.clip = false;
        e.post = NULL;
    }
    dense_rows rows;
    gemm_core core = core_of(p, &at, batch, k, terms, p->copied, &rows);
    core.b_words = packed ? 0 : gemm_panel_at(g, 1, p->k, p->n, g->panels);
    core.b_depth = packed || terms == p->k ? 0 : p->k;
    core.b_begin = packed ? 0 : k;
    core.b = packed ? (const void *)packed : (const char *)p->b + at.b * b_size;
    core.c = c;
    core.ldc = p->ldc;
    core.narrow_c = p->narrow_c;
    if (!k) core.bias = e.narrow_bias ? (const void *)e.narrow_bias : (const void *)e.bias;
    core.residual = residual;
    core.epilogue = &e;
    core.batch = batch;
    core.state = state;
    gemm_core_block(&core, g, m_block, n_block, packed ? g->panels * n_block / g->n_blocks : 0, scratch, post_user);
}

/* The same with codes, which are expanded to `packed` a part of the terms at a time. */
static void run_expanded(const gemm_params *p, const gemm_grid *g, int64_t batch, int64_t m_block, int64_t n_block,
                         float *packed, void *scratch, void *post_user)
{
    const int64_t first = g->panels * n_block / g->n_blocks, end = g->panels * (n_block + 1) / g->n_blocks;
    const int64_t depth = codes_depth(p), column_end = end == g->panels ? p->n : end * g->width;
    for (int64_t k = 0; k < p->k; k += depth) {
        const int64_t terms = p->k - k < depth ? p->k - k : depth;
        codes_expand(p, g->width, first * g->width, column_end, k, terms, packed);
        run_block(p, g, batch, m_block, n_block, k, terms, packed, NULL, scratch, post_user);
    }
}

/* Panels of codes, each with all rows of a matrix. */
static void run_codes(const gemm_params *p, const gemm_grid *g, int64_t begin, int64_t end, void *scratch, char *own,
                      void *post_user)
{
    const int64_t panels = codes_panels(p);
    const int64_t wide = (int64_t)CODES_VECTORS * g->lanes / g->width; /* panels of f32 in one of codes */
    gemm_grid each = *g;
    each.n_blocks = each.panels;
    each.m_blocks = 1;
    int places = 0;
    for (int64_t tile = begin, seen = -1; tile < end; tile++) {
        const int64_t batch = tile / panels, panel = tile % panels;
        const matrix_at at = matrix_of(p, batch);
        if (batch != seen) places = codes_prepare(p, (const float *)p->a + at.a, own);
        seen = batch;
        if (places) {
            codes_panel(p, batch, panel, places, at.residual, (float *)p->c + at.c, own, post_user);
            continue;
        }
        for (int64_t i = panel * wide; i < (panel + 1) * wide && i < each.panels; i++)
            run_expanded(p, &each, batch, 0, i, (float *)(void *)own, scratch, post_user);
        seen = -1; /* the rows were there */
    }
}

/* Parts that K is cut into. Sums that are drained, or of a B that is packed block by block, are never cut. */
static int64_t gemm_parts(const gemm_params *p)
{
    if (!p->tactic.cut || p->b_raw || p->codes || p->epilogue.drain || p->k <= GEMM_CUT) return 1;
    const int64_t cuts = gemm_cuts((gemm_unit)p->tactic.unit, p->k);
    return cuts ? cuts : 1;
}

void gemm_copy(const gemm_params *p, int64_t begin, int64_t end, void *copied, void *scratch)
{
    const gemm_tile_set *set = gemm_set_of(p->isa, p->tactic);
    const gemm_grid g = gemm_grid_of(set, p->tactic, p->m, p->n);
    const int64_t stride = gemm_copied_stride(set, p->k);
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t batch = piece / g.m_tiles, i = piece % g.m_tiles;
        const int64_t row = i * g.rows_small + (i < g.rows_extra ? i : g.rows_extra);
        const matrix_at at = matrix_of(p, batch);
        dense_rows rows;
        const gemm_core core = core_of(p, &at, batch, 0, p->k, NULL, &rows);
        gemm_core_copy(&core, row, (int32_t)(g.rows_small + (i < g.rows_extra)), scratch,
                       (char *)copied + (batch * p->m + row) * stride);
    }
}

void gemm_run(const gemm_params *p, int64_t begin, int64_t end, void *scratch, void *post_user)
{
    const gemm_tile_set *set = gemm_set_of(p->isa, p->tactic);
    const gemm_grid g = gemm_grid_of(set, p->tactic, p->m, p->n);
    char *own = (char *)scratch + gemm_core_scratch_size(set, p->tactic, 1, p->k, p->epilogue.drain);
    if (p->codes && p->codes->is_direct) {
        run_codes(p, &g, begin, end, scratch, own, post_user);
        return;
    }
    const int64_t blocks = g.m_blocks * g.n_blocks;
    float *packed = p->b_raw || p->codes ? (float *)(void *)own : NULL;
    const int64_t parts = gemm_parts(p);
    int32_t state = 0;
    int64_t packed_key = -1; /* the block of B that `packed` holds */
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t batch = tile / blocks, n_block = tile % blocks / g.m_blocks, m_block = tile % g.m_blocks;
        if (p->codes) {
            run_expanded(p, &g, batch, m_block, n_block, packed, scratch, post_user);
            continue;
        }
        if (p->b_raw && packed_key != batch * g.n_blocks + n_block) {
            packed_key = batch * g.n_blocks + n_block;
            pack_panels(set, &g, 1, p->k, p->n, g.panels * n_block / g.n_blocks, g.panels * (n_block + 1) / g.n_blocks,
                        (const char *)p->b + matrix_of(p, batch).b * gemm_b_size(set), 0, p->b_row, p->b_col, packed);
        }
        for (int64_t part = 0; part < parts; part++) {
            const int64_t k = p->k * part / parts, k_end = p->k * (part + 1) / parts;
            run_block(p, &g, batch, m_block, n_block, k, k_end - k, packed, &state, scratch, post_user);
        }
    }
    if (state) set->give_back();
}
