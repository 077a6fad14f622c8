/* SPDX-License-Identifier: Apache-2.0 */
/* codes.c - weights in codes: what their program says, how they are packed, and one panel of a product. */
#include "cpu/codes.h"
#include "cpu/level.h"

#include "backend/kernel.h"
#include "cpu/gemm_core.h"

#include <string.h>

static int64_t width_of(isa_level isa)
{
    return (int64_t)CODES_VECTORS * level_of(isa)->codes->lanes;
}

static int64_t round_up(int64_t a, int64_t unit)
{
    return (a + unit - 1) / unit * unit;
}

/* ---- what the program says ---- */

/* The bits of a float are those of an f32 with this much less of a bias. */
static bool kind_of(sinter_dtype t, codes_form *f)
{
    static const struct {
        sinter_dtype type;
        code_kind kind;
        float unit;
    } row[] = {
        { SINTER_DTYPE_U4, CODE_4, 1 },
        { SINTER_DTYPE_I4, CODE_4, 1 },
        { SINTER_DTYPE_U8, CODE_U8, 1 },
        { SINTER_DTYPE_I8, CODE_S8, 1 },
        { SINTER_DTYPE_F4E2M1, CODE_F4, 0x1p126f },
        { SINTER_DTYPE_F8E4M3FN, CODE_F8_3, 0x1p120f },
        { SINTER_DTYPE_F8E4M3FNUZ, CODE_F8_3, 0x1p119f },
        { SINTER_DTYPE_F8E5M2, CODE_F8_2, 0x1p112f },
        { SINTER_DTYPE_F8E5M2FNUZ, CODE_F8_2, 0x1p111f },
    };
    for (size_t i = 0; i < COUNT_OF(row); i++) {
        if (row[i].type != t) continue;
        f->kind = row[i].kind;
        f->unit = row[i].unit;
        return true;
    }
    return false;
}

const char *codes_form_of(const problem *p, codes_form *f)
{
    *f = (codes_form){ 0 };
    const char *why = packed_form_of(p, &f->w);
    if (why) return why;
    packed_form *w = &f->w;
    REJECT_UNLESS(w->product == SINTER_DTYPE_F32, "not in f32");
    REJECT_UNLESS(kind_of(w->type, f), "its weight is not of 4 or 8 bits");
    const bool varies = w->scale_varies || w->zero_varies;
    REJECT_UNLESS(!varies || w->block % CODES_UNIT == 0, "its weight is in blocks of other than a multiple of 8 terms");
    if (!varies) w->block = round_up(w->k, CODES_UNIT);
    /* Signed codes of 4 bits are packed with 8 added. */
    f->zero_point = w->zero_point + (w->type == SINTER_DTYPE_I4 ? 8 : 0);
    return NULL;
}

const codes_dot_set *codes_dot_of(isa_level isa, const codes_form *f)
{
    const int32_t zero = f->zero_point + (f->kind == CODE_S8 ? 128 : 0);
    if ((int)f->kind >= CODES_DOT_KINDS || zero < 0 || zero > UINT8_MAX) return NULL;
#if CPU_HAS_X86
    if (isa == ISA_AVX512) return level_avx512_codes_dot;
    if (isa == ISA_AVX2) return level_avx2_codes_dot;
#endif
    (void)isa;
    return NULL;
}

/* ---- packing ---- */

static int64_t panels_of(const codes_form *f, isa_level isa)
{
    return (f->w.n + width_of(isa) - 1) / width_of(isa);
}

static int64_t words_of(const codes_form *f)
{
    return round_up(f->w.k, CODES_UNIT) / (32 / f->w.bits);
}

size_t codes_pack_size(const problem *p, const codes_form *f, isa_level isa, uint32_t input)
{
    (void)p;
    const size_t columns = size_mul((size_t)panels_of(f, isa), (size_t)width_of(isa));
    size_t each = 0;
    if (input == 1) each = size_mul((size_t)words_of(f), sizeof(int32_t));
    else if (input == f->w.scale)
        each = size_mul(f->w.scale_varies ? (size_t)f->w.blocks : 1, sinter_dtype_bits(f->w.scale_type) / 8);
    else if (input && input == f->w.zero) each = f->w.zero_varies ? (size_t)f->w.blocks : 1;
    return each ? size_align(size_mul(columns, each), 64) : 0;
}

/* Codes of columns that there are not are 0, and so are terms: their factors of A are 0. */
static void pack_codes(const codes_form *f, isa_level isa, uint32_t axis, const view *src, uint32_t *dst)
{
    const int64_t width = width_of(isa), words = words_of(f), each = 32 / f->w.bits;
    const int64_t step_k = src->stride[axis], step_n = src->stride[1 - axis];
    const uint32_t bits = f->w.bits, flip = f->w.type == SINTER_DTYPE_I4 ? 8 : 0;
    for (int64_t panel = 0; panel < panels_of(f, isa); panel++, dst += words * width) {
        for (int64_t j = 0; j < width && panel * width + j < f->w.n; j++) {
            const int64_t column = (panel * width + j) * step_n;
            for (int64_t k = 0; k < f->w.k; k++)
                dst[k / each * width + j] |= (packed_code(src->data, bits, column + k * step_k) ^ flip)
                                             << (k % each * bits);
        }
    }
}

/* What is said once for each column and block, or more seldom. */
static void pack_along(const codes_form *f, isa_level isa, uint32_t axis, bool varies, const view *src, void *dst)
{
    const int64_t width = width_of(isa), blocks = varies ? f->w.blocks : 1;
    const uint32_t bits = (uint32_t)sinter_dtype_bits(src->dtype), size = bits / 8,
                   flip = f->w.type == SINTER_DTYPE_I4 ? 8 : 0;
    view wide = *src;
    int64_t dim_at[2] = { 0 };
    dim_at[axis] = blocks;
    dim_at[1 - axis] = f->w.n;
    if (!view_broadcast(src, 2, dim_at, &wide)) return;
    for (int64_t panel = 0; panel < panels_of(f, isa); panel++) {
        for (int64_t b = 0; b < blocks; b++) {
            for (int64_t j = 0; j < width && panel * width + j < f->w.n; j++) {
                const int64_t from = b * wide.stride[axis] + (panel * width + j) * wide.stride[1 - axis],
                              to = (panel * blocks + b) * width + j;
                if (dtype_is_float(src->dtype))
                    memcpy((char *)dst + to * size, (const char *)src->data + from * size, size);
                else ((uint8_t *)dst)[to] = (uint8_t)(packed_code(src->data, bits, from) ^ flip);
            }
        }
    }
}

void codes_pack(const problem *p, const codes_form *f, isa_level isa, uint32_t input, const view *src, void *dst)
{
    memset(dst, 0, codes_pack_size(p, f, isa, input));
    if (input == 1) pack_codes(f, isa, packed_axis(p), src, dst);
    else pack_along(f, isa, packed_axis(p), input == f->w.scale ? f->w.scale_varies : f->w.zero_varies, src, dst);
}

/* ---- running ---- */

static int64_t terms_of(const codes_form *f)
{
    return round_up(f->w.k, CODES_UNIT);
}

/* The largest that divides a block, so that no chunk has two scales. */
static int64_t chunk_of(const codes_form *f)
{
    if (f->w.block <= CODES_CHUNK || f->w.blocks == 1) return f->w.block < CODES_CHUNK ? f->w.block : CODES_CHUNK;
    int64_t chunk = CODES_CHUNK;
    while (f->w.block % chunk) chunk -= CODES_UNIT;
    return chunk;
}

static int64_t chunks_of(const codes_form *f)
{
    return (terms_of(f) + chunk_of(f) - 1) / chunk_of(f);
}

int64_t codes_panels(const gemm_params *p)
{
    return panels_of(&p->codes->form, p->isa);
}

static size_t x_size(const codes_form *f, int64_t rows)
{
    return size_align(size_mul(size_mul((size_t)rows, (size_t)terms_of(f)), sizeof(float)), 64);
}

/* One of each chunk, and one of each place. */
static size_t sum_size(const codes_form *f, int64_t rows)
{
    return size_align(size_mul(size_mul((size_t)rows, (size_t)chunks_of(f)), (1 + CODES_PLACES) * sizeof(float)), 64);
}

size_t codes_scratch_size(const gemm_params *p, int64_t rows)
{
    const codes_form *f = &p->codes->form;
    const size_t c = (size_t)(CODES_ROWS * width_of(p->isa)) * sizeof(float);
    return size_add(size_add(x_size(f, rows), sum_size(f, rows)), c);
}

static codes_tile tile_of(const gemm_params *p, int64_t panel)
{
    const gemm_codes *g = p->codes;
    const codes_form *f = &g->form;
    const int64_t width = width_of(p->isa);
    const size_t scale_size = sinter_dtype_bits(f->w.scale_type) / 8;
    return (codes_tile){
        .code = (const int32_t *)g->code + panel * words_of(f) * width,
        .scale = (const char *)g->scale + (size_t)(panel * (f->w.scale_varies ? f->w.blocks : 1) * width) * scale_size,
        .zero = f->w.zero ? (const uint8_t *)g->zero + panel * (f->w.zero_varies ? f->w.blocks : 1) * width : NULL,
        .terms = terms_of(f),
        .block = f->w.block,
        .chunk = chunk_of(f),
        .chunks = chunks_of(f),
        .ldx = terms_of(f),
        .scale_step = f->w.scale_varies ? width : 0,
        .zero_step = f->w.zero_varies ? width : 0,
        .zero_point = f->zero_point,
        .unit = f->unit,
        .scale_type = f->w.scale_type,
    };
}

int64_t codes_depth(const gemm_params *p)
{
    const codes_form *f = &p->codes->form;
    if (f->w.blocks == 1) return CODES_DEPTH;
    return f->w.block < CODES_DEPTH ? CODES_DEPTH / f->w.block * f->w.block : f->w.block;
}

void codes_expand(const gemm_params *p, int64_t width, int64_t col, int64_t end, int64_t k, int64_t terms, float *b)
{
    const codes_form *f = &p->codes->form;
    const codes_set *set = level_of(p->isa)->codes;
    const int64_t panel_width = width_of(p->isa), block = k / f->w.block;
    while (col < end) {
        const int64_t left = end - col < width ? end - col : width;
        const int64_t cols = round_up(left, set->lanes);
        codes_tile t = tile_of(p, col / panel_width);
        t.code += k / (32 / f->w.bits) * panel_width;
        t.scale = (const char *)t.scale + (size_t)(block * t.scale_step) * (sinter_dtype_bits(f->w.scale_type) / 8);
        if (t.zero) t.zero += block * t.zero_step;
        set->expand[f->kind](&t, (int32_t)(col % panel_width / set->lanes), (int32_t)(cols / set->lanes), terms, b);
        b += terms * cols;
        col += left;
    }
}

/* Rows of digits, then their steps, then their sums. */
static int dot_prepare(const gemm_params *p, const float *a, char *scratch)
{
    const codes_form *f = &p->codes->form;
    const codes_dot_set *set = codes_dot_of(p->isa, f);
    int32_t *digit = (int32_t *)(void *)scratch;
    float *step = (float *)(void *)(scratch + x_size(f, p->m));
    int32_t *sum = (int32_t *)(void *)(step + p->m * chunks_of(f));
    int places = 3;
    for (int64_t r = 0; r < p->m; r++) {
        const int own = set->places(a + r * p->a_row, p->a_col, p->k, terms_of(f), chunk_of(f));
        if (!own) return 0;
        if (own > places) places = own;
    }
    for (int64_t r = 0; r < p->m; r++)
        set->digits(a + r * p->a_row, p->a_col, p->k, terms_of(f), chunk_of(f), f->kind == CODE_4, places,
                    digit + r * terms_of(f), sum + r * chunks_of(f) * CODES_PLACES, step + r * chunks_of(f));
    return places;
}

int codes_prepare(const gemm_params *p, const float *a, void *scratch)
{
    const codes_form *f = &p->codes->form;
    if (p->tactic.dot) return dot_prepare(p, a, scratch);
    float *x = scratch, *sum = (float *)(void *)((char *)scratch + x_size(f, p->m));
    bool is_finite = true;
    for (int64_t r = 0; r < p->m; r++)
        is_finite = level_of(p->isa)->codes->prepare(a + r * p->a_row, p->a_col, p->k, terms_of(f), chunk_of(f),
                                                     f->kind == CODE_4, x + r * terms_of(f), sum + r * chunks_of(f)) &&
                    is_finite;
    return is_finite || f->kind != CODE_4;
}

/* Sums become results: scaled, with what is added, clipped. */
static void finish(const gemm_params *p, int64_t row, int64_t rows, int64_t col, int64_t cols, int64_t residual_at,
                   const float *from, int64_t ld, float *c)
{
    const gemm_epilogue *e = &p->epilogue;
    for (int64_t r = 0; r < rows; r++, from += ld) {
        float *to = c + (row + r) * p->ldc + col;
        const float *residual = e->residual ? e->residual + residual_at + (row + r) * e->ldr + col : NULL;
        const float alpha = e->scale ? e->alpha : 1;
        for (int64_t j = 0; j < cols; j++) {
            float y = alpha * from[j];
            if (e->bias) y += e->bias[col + j];
            if (residual) y += residual[j];
            if (e->clip) {
                y = y < e->lo ? e->lo : y;
                y = y > e->hi ? e->hi : y;
            }
            to[j] = y;
        }
    }
}

void codes_panel(const gemm_params *p, int64_t batch, int64_t panel, int places, int64_t residual_at, float *c,
                 void *scratch, void *post_user)
{
    const codes_form *f = &p->codes->form;
    const codes_set *set = level_of(p->isa)->codes;
    const bool is_dot = p->tactic.dot;
    codes_tile_fn *const *run = is_dot ? &codes_dot_of(p->isa, f)->run[f->kind][places - 3] : set->run[f->kind];
    const int64_t most = is_dot ? 1 : set->rows;
    const float *x = scratch, *sum = (const float *)(const void *)((const char *)scratch + x_size(f, p->m));
    const int32_t *digit = scratch, *digit_sum = (const int32_t *)(const void *)(sum + p->m * chunks_of(f));
    const int64_t width = width_of(p->isa), col = panel * width, cols = f->w.n - col < width ? f->w.n - col : width;
    codes_tile t = tile_of(p, panel);
    t.c = (float *)(void *)((char *)scratch + x_size(f, p->m) + sum_size(f, p->m));
    const int64_t parts = (p->m + most - 1) / most;
    for (int64_t i = 0; i < parts; i++) {
        const int64_t row = p->m * i / parts, rows = p->m * (i + 1) / parts - row;
        t.x = x + row * t.ldx;
        t.sum = sum + row * t.chunks;
        t.digit = digit + row * t.ldx;
        t.digit_sum = digit_sum + row * t.chunks * CODES_PLACES;
        t.step = t.sum;
        run[rows - 1](&t);
        finish(p, row, rows, col, cols, residual_at, t.c, width, c);
        if (p->epilogue.post) p->epilogue.post(post_user, batch, row, rows, col, cols, c + row * p->ldc + col, p->ldc);
    }
}
