/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_core.c - the loops around the micro-kernels.
 *
 * A work tile walks its register tiles, and for each its panels: the panels of a block stay in the L2 cache while the
 * rows pass by, and one tile's rows of A stay in L1 while the panels pass by. C is written once, unless the tactic cuts
 * K: then it is written once a part. */
#include "cpu/gemm_core.h"
#include "base/env.h"
#include "cpu/cpu_move.h"
#include "cpu/integer.h"
#include "cpu/level.h"
#include "cpu/vm.h"

enum { SCRATCH_ALIGN = 64, POST_BYTES = 4096, NARROW_POST_BYTES = 12288 };

const gemm_tile_set *gemm_unit_set(isa_level level, gemm_unit unit)
{
    if ((unsigned)unit >= GEMM_UNITS) return NULL;
#if CPU_HAS_X86
    if (level == ISA_AVX512 && unit == GEMM_BF16_DOT) return level_avx512_bf16;
    if (level == ISA_AVX512 && unit == GEMM_U8_DOT) return level_avx512_vnni;
    if (level == ISA_AVX512 && unit == GEMM_BF16_AMX) return level_avx512_amx_bf16;
    if (level == ISA_AVX512 && unit == GEMM_U8_AMX) return level_avx512_amx_u8;
    if (level == ISA_AVX512 && unit == GEMM_F32_AMX) return level_avx512_amx_f32;
    if (level == ISA_AVX512 && unit == GEMM_F32_AMX_SHORT) return level_avx512_amx_f32_short;
    if (level == ISA_AVX2 && unit == GEMM_U8_DOT) return level_avx2_vnni;
#endif
#if CPU_HAS_NEON
    if (level == ISA_NEON && unit == GEMM_BF16_DOT) return level_neon_bf16;
    if (level == ISA_NEON && unit == GEMM_U8_DOT) return level_neon_dot;
    if (level == ISA_NEON && unit == GEMM_U8_SUDOT) return level_neon_i8mm;
#endif
    return level_of(level)->unit[unit];
}

isa_features gemm_unit_needs(isa_level level, gemm_unit unit)
{
    if (unit == GEMM_BF16_DOT) return level == ISA_NEON ? ISA_NEON_BF16 : ISA_BF16;
    if (unit == GEMM_U8_DOT) return level == ISA_NEON ? ISA_DOT : level == ISA_AVX512 ? ISA_VNNI : ISA_AVX_VNNI;
    if (unit == GEMM_BF16_AMX || gemm_unit_splits(unit)) return ISA_AMX_TILE | ISA_AMX_BF16 | ISA_BF16;
    if (unit == GEMM_U8_AMX) return ISA_AMX_TILE | ISA_AMX_INT8;
    return unit == GEMM_U8_SUDOT ? ISA_I8MM : 0;
}

static bool has_unit(isa_choice machine, gemm_unit unit)
{
    return gemm_unit_set(machine.level, unit) && !(gemm_unit_needs(machine.level, unit) & ~machine.features);
}

int gemm_units_best(isa_choice machine, gemm_unit unit, bool exact, gemm_unit out[2])
{
    /* The best first; what follows the last one runs everywhere. */
    static const gemm_unit narrow[] = { GEMM_BF16_AMX, GEMM_BF16_DOT, GEMM_BF16 };
    static const gemm_unit bytes[] = { GEMM_U8_AMX, GEMM_U8_SUDOT, GEMM_U8_DOT, GEMM_U8_PAIRS, GEMM_U8 };
    const gemm_unit *list = unit == GEMM_BF16 ? narrow : bytes;
    int count = 0;
    if (unit != GEMM_BF16 && unit != GEMM_U8) {
        out[0] = unit;
        return 1;
    }
    for (uint32_t i = 0; count < 2; i++) {
        if (list[i] != unit && (!has_unit(machine, list[i]) || (exact && gemm_unit_flushes(list[i])))) continue;
        out[count++] = list[i];
        if (list[i] != GEMM_BF16_AMX && list[i] != GEMM_U8_AMX && list[i] != GEMM_U8_PAIRS) break;
    }
    return count;
}

int64_t gemm_cuts(gemm_unit unit, int64_t k)
{
    enum { STEP_TERMS = 32 };
    const int64_t cuts = k / GEMM_CUT + (k % GEMM_CUT != 0);
    if (unit == GEMM_F32) return cuts;
    return gemm_unit_splits(unit) && cuts && k % (STEP_TERMS * cuts) == 0 ? cuts : 0;
}

sinter_dtype gemm_unit_type(gemm_unit unit)
{
    if (unit == GEMM_U8_PAIRS) return SINTER_DTYPE_I16;
    if (unit == GEMM_F32 || gemm_unit_splits(unit)) return SINTER_DTYPE_F32;
    return gemm_unit_is_integer(unit) ? SINTER_DTYPE_U8 : SINTER_DTYPE_BF16;
}

const char *gemm_unit_name(gemm_unit unit)
{
    static const char *const names[GEMM_UNITS] = {
        [GEMM_F32] = "",
        [GEMM_BF16] = "bf16",
        [GEMM_U8] = "u8",
        [GEMM_BF16_DOT] = "bf16_dot",
        [GEMM_U8_DOT] = "u8_dot",
        [GEMM_U8_SUDOT] = "u8_sudot",
        [GEMM_BF16_AMX] = "bf16_amx",
        [GEMM_F32_AMX] = "f32_amx",
        [GEMM_F32_AMX_SHORT] = "f32_amx_short",
        [GEMM_U8_AMX] = "u8_amx",
        [GEMM_U8_PAIRS] = "u8_pairs",
        [GEMM_U8_NARROW] = "u8_narrow",
    };
    return (unsigned)unit < GEMM_UNITS && names[unit] ? names[unit] : "unknown";
}

bool gemm_load_of(isa_level isa, gemm_unit unit, sinter_dtype from, gemm_load_fn **out)
{
    const sinter_dtype to = gemm_unit_type(unit);
    const vm_set *set = level_of(isa)->vm;
    const integer_set *integer = level_of(isa)->integer;
    *out = NULL;
    if (from == SINTER_DTYPE_NONE || from == to) return true;
    if (to == SINTER_DTYPE_F32 && (from == SINTER_DTYPE_F16 || from == SINTER_DTYPE_BF16)) *out = set->load[from];
    if (to == SINTER_DTYPE_BF16 && from == SINTER_DTYPE_F32) *out = set->store[to];
    if (to == SINTER_DTYPE_U8 && from == SINTER_DTYPE_I8) *out = integer->load_signed;
    if (to == SINTER_DTYPE_I16 && from == SINTER_DTYPE_U8) *out = integer->widen;
    if (to == SINTER_DTYPE_I16 && from == SINTER_DTYPE_I8) *out = integer->widen_signed;
    return *out != NULL;
}

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
    const gemm_grid none = { .lanes = set->lanes,
                             .width = (int64_t)set->lanes * t.vectors,
                             .terms = set->terms,
                             .step = set->step,
                             .parts = gemm_parts_of(set) };
    gemm_grid g = none;
    g.m_tiles = ceil_div(m, t.rows);
    g.panels = ceil_div(n, g.width);
    if (g.m_tiles == 0 || g.panels == 0) return none;
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
    return taps * g->parts * gemm_words_of(g->terms, g->step, k) *
           ((panel - 1) * g->width + panel_width(g, n, panel - 1));
}

static size_t rows_size(gemm_tactic t, int64_t taps)
{
    return size_align(size_mul(size_mul((size_t)taps, t.rows), sizeof(const void *)), SCRATCH_ALIGN);
}

/* Bytes of one part of a copied row: whole cache lines. */
int64_t gemm_copied_plane(const gemm_tile_set *set, int64_t k)
{
    return (gemm_words_of(set->terms, set->step, k) + 15) / 16 * 64;
}

/* Rows of a copied A lie an odd number of cache lines apart, so no two collide in the L1 cache. In bytes. */
int64_t gemm_copied_stride(const gemm_tile_set *set, int64_t k)
{
    return gemm_parts_of(set) * gemm_copied_plane(set, k) | 64;
}

/* Bytes of the copies of a register tile's rows. */
static size_t copy_size(const gemm_tile_set *set, gemm_tactic t, int64_t taps, int64_t k)
{
    if (t.copy_a != GEMM_COPY_EACH) return 0;
    return size_align(size_mul(size_mul((size_t)taps, t.rows), (size_t)gemm_copied_stride(set, k)), SCRATCH_ALIGN);
}

/* Panels whose sums are drained at once. */
static int64_t drain_panels(const gemm_tile_set *set, gemm_tactic t)
{
    return ceil_div(POST_BYTES, (int64_t)t.rows * t.vectors * set->lanes * (int64_t)sizeof(float));
}

size_t gemm_core_scratch_size(const gemm_tile_set *set, gemm_tactic t, int64_t taps, int64_t k, bool drain)
{
    size_t size = size_add(rows_size(t, taps), copy_size(set, t, taps, k));
    if (drain) size = size_add(size, (size_t)(drain_panels(set, t) * t.rows * t.vectors * set->lanes) * sizeof(float));
    return size_align(size, SCRATCH_ALIGN);
}

/* Elements of a transposed A: rows next to each other in memory, so that the inner loop runs along them. */
#define ROWS_GATHER(type)                                                                                              \
    static void rows_gather_##type(type *to, int64_t stride, const void *const *from, int32_t rows, int64_t begin,     \
                                   int64_t count, int64_t step)                                                        \
    {                                                                                                                  \
        for (int64_t k = 0; k < count; k++)                                                                            \
            for (int32_t i = 0; i < rows; i++) to[i * stride + k] = ((const type *)from[i])[(begin + k) * step];       \
    }
ROWS_GATHER(uint32_t)
ROWS_GATHER(uint16_t)
ROWS_GATHER(uint8_t)

static void rows_gather(void *to, int64_t stride, const void *const *from, int32_t rows, int64_t begin, int64_t count,
                        int64_t step, int64_t size)
{
    bool is_side = true; /* rows lie side by side: a transposed block */
    for (int32_t i = 1; i < rows && is_side; i++) is_side = (const char *)from[i] == (const char *)from[0] + i * size;
    if (is_side)
        move_transpose((uint32_t)size, to, stride, (const char *)from[0] + begin * step * size, step * size, rows,
                       count);
    else if (size == 4) rows_gather_uint32_t(to, stride / 4, from, rows, begin, count, step);
    else if (size == 2) rows_gather_uint16_t(to, stride / 2, from, rows, begin, count, step);
    else rows_gather_uint8_t(to, stride, from, rows, begin, count, step);
}

enum { GATHERED = 64 };

/* Terms of a copied row: those of sets with parts are followed by zeros, to the end of the last word. */
static int64_t copied_terms(const gemm_tile_set *set, int64_t k)
{
    return set->split ? set->terms * gemm_words_of(set->terms, set->step, k) : k;
}

/* Zeros behind each part of copied rows. */
static void rows_fill(const gemm_core *core, int64_t rows, char *to)
{
    const gemm_tile_set *set = core->set;
    const int64_t stride = gemm_copied_stride(set, core->k), plane = gemm_copied_plane(set, core->k);
    const int64_t term = (int64_t)sizeof(float) / set->terms, left = copied_terms(set, core->k) - core->k;
    to += core->k * term;
    for (int64_t i = 0; i < rows && left; i++, to += stride) {
        for (int64_t part = 0; part < gemm_parts_of(set); part++) memset(to + part * plane, 0, (size_t)(left * term));
    }
}

/* Replaces row pointers by pointers to copies in `to`, in the type of the terms. */
static void rows_copy(const gemm_core *core, int32_t rows, const void **from, char *to)
{
    const gemm_tile_set *set = core->set;
    const int64_t stride = gemm_copied_stride(set, core->k), plane = gemm_copied_plane(set, core->k);
    const int64_t term = (int64_t)sizeof(float) / set->terms, size = core->a_size ? core->a_size : term;
    const int64_t step = core->a_col;
    if (set->split) rows_fill(core, core->taps * rows, to);
    if (step == 1) {
        for (int64_t i = 0; i < core->taps * rows; i++, to += stride) {
            if (core->plane) { /* split before */
                for (int64_t part = 0; part < gemm_parts_of(set); part++)
                    memcpy(to + part * plane, (const char *)from[i] + part * core->plane, (size_t)(core->k * term));
            } else {
                gemm_terms_copy(set, core->load, to, plane, from[i], core->k, size);
            }
            from[i] = to;
        }
        return;
    }
    for (int64_t tap = 0; tap < core->taps; tap++, from += rows, to += stride * rows) {
        if (!core->load && !set->split) {
            rows_gather(to, stride, from, rows, 0, core->k, step, size);
        } else {
            _Alignas(64) char part[GEMM_ROWS_MAX * GATHERED * sizeof(float)];
            for (int64_t k = 0; k < core->k; k += GATHERED) {
                const int64_t count = i64_min(core->k - k, GATHERED);
                rows_gather(part, GATHERED * size, from, rows, k, count, step, size);
                for (int32_t i = 0; i < rows; i++)
                    gemm_terms_copy(set, core->load, to + i * stride + k * term, plane, part + i * GATHERED * size,
                                    count, size);
            }
        }
        for (int32_t i = 0; i < rows; i++) from[i] = to + i * stride;
    }
}

void gemm_core_copy(const gemm_core *core, int64_t row, int32_t rows, const void **at, char *to)
{
    core->rows(core->source, row, rows, at);
    rows_copy(core, rows, at, to);
}

/* The taps from the first to the last that have a row beside the zeros; one at least. */
static void taps_trim(const gemm_core *core, int32_t rows, const void *const *at, int64_t *begin, int64_t *end)
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

/* The kernel of a panel so many vectors wide, of which so many columns are written. */
static gemm_tile_fn *tile_fn_of(const gemm_core *core, int64_t vectors, int64_t cols, const gemm_tile *t)
{
    const gemm_tile_set *set = core->set;
    if (core->step) return set->lines[core->step - 1][vectors - 1];
    if (set->set_up) return set->any[vectors - 1];
    const bool is_half = 2 * (cols - (vectors - 1) * set->lanes) <= set->lanes && !core->tactic.ahead;
    if (is_half && set->half[vectors - 1][t->rows - 1]) return set->half[vectors - 1][t->rows - 1];
    return set->run[vectors - 1][t->rows - 1];
}

/* Where K is cut, what follows a panel's part is its next part, and behind the last one the first of a panel of the
 * next block, `block` words on. Each register tile prefetches a piece of it. */
static const void *next_part(const gemm_core *core, int64_t width, const float *b, int64_t block, int64_t tile,
                             int64_t next_lines)
{
    const int64_t end = core->b_begin + core->k, left = core->b_depth - end;
    const int64_t next = (left && left < core->k ? left : core->k) * width * (int64_t)sizeof(float),
                  at = tile * gemm_next_bytes(next_lines, 1, core->k);
    const float *from = left ? b + core->k * width : b - core->b_begin * width + block;
    if (at >= next || from - (const float *)core->b >= core->b_words) return NULL;
    return (const char *)from + at;
}

void gemm_core_block(const gemm_core *core, const gemm_grid *g, int64_t m_block, int64_t n_block, int64_t b_first,
                     void *scratch, void *post_user)
{
    const gemm_epilogue *e = core->epilogue;
    const void **rows_at = scratch;
    char *copy = (char *)scratch + rows_size(core->tactic, core->taps);
    char *drained = copy + copy_size(core->set, core->tactic, core->taps, core->k);
    const int64_t depth = core->b_depth ? core->b_depth : core->k;
    const int64_t words = gemm_words(core->set, depth), part = gemm_words(core->set, core->k);
    const int64_t a_size = core->a_size ? core->a_size : 4 / core->set->terms;
    const int64_t c_size = core->narrow_c ? 2 : 4, bias_size = e->narrow_bias ? 2 : 4,
                  residual_size = e->narrow_residual ? 2 : 4;
    const bool is_copied = core->tactic.copy_a == GEMM_COPY_EACH;
    const bool is_whole = e->drain && gemm_unit_is_integer((gemm_unit)core->tactic.unit);
    const int64_t drain_width = drain_panels(core->set, core->tactic) * g->width;
    /* Blocks are cut evenly: products of counts fit, both are bounded by the number of elements in memory. */
    const int64_t tile_begin = g->m_tiles * m_block / g->m_blocks, tile_end = g->m_tiles * (m_block + 1) / g->m_blocks;
    const int64_t panel_begin = g->panels * n_block / g->n_blocks;
    const int64_t panel_end = g->panels * (n_block + 1) / g->n_blocks;
    const float *b_begin = (const float *)core->b + gemm_panel_at(g, core->taps, depth, core->n, panel_begin) -
                           gemm_panel_at(g, core->taps, depth, core->n, b_first);
    /* The next block's panels lie behind this block's. Each register tile prefetches a part of them. */
    const int64_t block_end = gemm_panel_at(g, core->taps, depth, core->n, panel_end),
                  block_words = block_end - gemm_panel_at(g, core->taps, depth, core->n, panel_begin),
                  next_most = i64_min(core->b_words - block_end, block_words) * (int64_t)sizeof(float),
                  next_lines = gemm_next_lines(g->width, core->b_depth ? tile_end - tile_begin : g->m_tiles),
                  next_each = gemm_next_bytes(next_lines, core->taps, part);
    const int64_t wide = i64_min(panel_end * g->width, core->n) - panel_begin * g->width;
    /* Programs are fastest where rows lie behind each other. */
    const int64_t drain_ld = is_whole || wide > drain_width ? drain_width : wide;
    const int64_t last_width = panel_width(g, core->n, g->panels - 1);
    gemm_tile t = {
        .ldc = e->drain ? drain_ld : core->ldc,
        .ldr = e->ldr,
        .taps = 1,
        .k = is_copied ? copied_terms(core->set, core->k) : core->k,
        .plane = is_copied ? gemm_copied_plane(core->set, core->k) : core->plane,
        .at = core->at,
        .next_lines = next_lines,
        .flags = (e->scale ? GEMM_TILE_ALPHA : 0u) | (e->clip ? GEMM_TILE_CLIP : 0u) |
                 (core->narrow_c && !e->drain ? GEMM_TILE_NARROW_C : 0u) |
                 (e->narrow_bias ? GEMM_TILE_NARROW_BIAS : 0u) | (e->narrow_residual ? GEMM_TILE_NARROW_RESIDUAL : 0u) |
                 (core->tactic.ahead == GEMM_AHEAD_ALL     ? GEMM_TILE_AHEAD
                  : core->tactic.ahead == GEMM_AHEAD_PAGES ? GEMM_TILE_PAGES
                                                           : 0u),
        .alpha = e->alpha,
        .lo = e->lo,
        .hi = e->hi,
    };
    /* Tiles that are narrow altogether meet the hook some at a time. */
    int64_t first = -1; /* row that the hook has not seen yet; -1: none waits */
    for (int64_t i = tile_begin; i < tile_end; i++) {
        const int64_t row = i * g->rows_small + i64_min(i, g->rows_extra);
        const int32_t rows = (int32_t)(g->rows_small + (i < g->rows_extra));
        int64_t tap_begin = 0, tap_end = 1;
        if (!core->step) {
            core->rows(core->source, row, rows, rows_at);
            taps_trim(core, rows, rows_at, &tap_begin, &tap_end);
        }
        if (is_copied) rows_copy(core, rows, rows_at, copy);
        t.a = rows_at + tap_begin * rows;
        t.taps = tap_end - tap_begin;
        t.rows = rows;
        t.line = core->step ? core->line + row * core->step * a_size : NULL;
        t.ahead = is_copied ? 0 : core->a_row * rows * a_size;
        if (core->set->set_up) core->set->set_up(rows, core->k, core->state);
        gemm_tile_fn *const run = tile_fn_of(core, core->tactic.vectors, g->width, &t);
        char *const c = e->drain ? NULL : (char *)core->c + row * core->ldc * c_size;
        const char *const residual =
            core->residual ? (const char *)core->residual + row * e->ldr * residual_size : NULL;
        const float *b = b_begin;
        int64_t next = i * (panel_end - panel_begin) * next_each;
        int64_t done = panel_begin * g->width; /* first column that the hook has not seen */
        for (int64_t panel = panel_begin; panel < panel_end; panel++) {
            const bool is_last = panel + 1 == g->panels;
            const int64_t col = panel * g->width, width = is_last ? last_width : g->width;
            const int64_t some = i64_min(core->n - col, width);
            /* Scratch has room for whole vectors, which are stored in one instruction. */
            t.cols = (int32_t)(is_whole ? width : some);
            t.c = e->drain ? drained + (col - done) * (int64_t)sizeof(float) : c + col * c_size;
            t.bias = core->bias ? (const char *)core->bias + col * bias_size : NULL;
            t.residual = residual ? residual + col * residual_size : NULL;
            t.b = b + tap_begin * words * width + gemm_words(core->set, core->b_begin) * width;
            if (core->b_depth) {
                t.next =
                    next_part(core, width, t.b, (panel_end - panel_begin) * words * width, i - tile_begin, next_lines);
            } else {
                t.next = next < next_most ? (const char *)(b_begin + block_words) + next : NULL;
                next += next_each;
            }
            if (is_last) tile_fn_of(core, width / g->lanes, t.cols, &t)(&t);
            else run(&t);
            b += core->taps * words * width;
            t.ahead = 0;
            if (!e->post) continue;
            const int64_t cols = col + some - done;
            const bool is_full =
                e->drain ? cols + g->width > drain_width : cols * rows * (int64_t)sizeof(float) >= POST_BYTES;
            if (!e->drain && (first >= 0 || wide * rows * c_size < POST_BYTES)) {
                if (first < 0) first = row;
                if (panel + 1 < panel_end) continue;
                const int64_t waiting = row + rows - first;
                if (i + 1 < tile_end && waiting * wide * c_size < NARROW_POST_BYTES) continue;
                e->post(post_user, core->batch, core->row + first, waiting, core->col + done, wide,
                        (char *)core->c + (first * core->ldc + done) * c_size, t.ldc);
                first = -1;
            } else if (panel + 1 == panel_end || is_full) {
                void *at = e->drain ? drained : c + done * c_size;
                e->post(post_user, core->batch, core->row + row, rows, core->col + done, cols, at, t.ldc);
                done += cols;
            }
        }
    }
}
