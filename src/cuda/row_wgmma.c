/* SPDX-License-Identifier: Apache-2.0 */
/* row_wgmma.c - matrix products and convolutions on Hopper's warpgroups, in f16, bf16 and 8-bit integers.
 *
 * The right side is n x k in memory: a constant is packed so, tile by tile as the kernel reads it, anything else must
 * lie so. The left side is rows of k elements at one pitch. */
#include "cuda/row_wgmma.h"
#include "cuda/cuda_emit.h"
#include "cuda/cuda_kernels.h"
#include "cuda/product.h"

#include <string.h>

enum { STEP = WGMMA_STEP, STAGED_ROWS = 16, SWIZZLE_32 = 1, SWIZZLE_64 = 2, SWIZZLE_128 = 3 };

/* Rows of a strided operand lie at one pitch for certain only where a single axis numbers them. */
static bool is_one_pitch(const problem_operand *o, uint32_t k_axis)
{
    uint32_t axes = 0;
    for (uint32_t i = 0; i < o->rank; i++) axes += i != k_axis && o->dim[i].max != 1;
    return !o->is_strided || axes <= 1;
}

/* What a tensor map of image patches can say: with more axes there are fewer bits for each of their corners. */
static const char *im2col_limits(const problem *p, const product_slide *c)
{
    static const int64_t most[4] = { 0, 32767, 127, 15 };
    static const uint8_t wanted[4][5] = { { 0 }, { 0, 2, 1 }, { 0, 2, 3, 1 }, { 0, 2, 3, 4, 1 } };
    const problem_operand *a = &p->in[0], *b = &p->in[1];
    REJECT_UNLESS(a->rank >= 3 && a->rank <= 5, "other than one to three axes of an image");
    const uint32_t spatial = a->rank - 2u;
    for (uint32_t i = 0; i < spatial; i++) {
        const int64_t reach = (b->dim[2 + i].max - 1) * c->dilation->at[i], low = c->pad->at[i],
                      high = c->pad->at[i + spatial], limit = most[spatial];
        REJECT_UNLESS(c->stride->at[i] <= 8, "strides above 8");
        REJECT_UNLESS(reach <= limit && low >= 0 && low <= limit && high >= 0 && high <= limit, "a filter too wide");
    }
    REJECT_UNLESS(!memcmp(a->order, wanted[spatial], a->rank) && !memcmp(p->out[0].order, wanted[spatial], a->rank),
                  "channels do not lie innermost");
    return NULL;
}

/* Products of a batch, each with a right side of its own, one after another in all operands. */
static const char *batch_of(const problem *p, wgmma_form *f)
{
    const problem_operand *a = &p->in[0], *b = &p->in[1], *d = &p->out[0];
    const uint32_t axes = a->rank - 2u;
    REJECT_UNLESS(b->rank == a->rank && d->rank == a->rank, "operands of different ranks");
    REJECT_UNLESS(!a->is_strided && (b->is_const || !b->is_strided), "strided batches");
    REJECT_UNLESS(a->order[axes] == axes && d->order[axes] == axes, "rows of a product do not lie together");
    for (uint32_t i = 0; i < axes; i++) {
        REJECT_UNLESS(problem_dim_is_static(a->dim[i]) && problem_dim_is_static(b->dim[i]) && a->dim[i].max > 0 &&
                          a->dim[i].max == b->dim[i].max,
                      "batches vary, are of none, or one is repeated");
        REJECT_UNLESS(b->is_const || b->order[i] == d->order[i], "operands lie in different orders");
        if (!i64_mul(f->batch, a->dim[i].max, &f->batch)) return "a batch too large";
    }
    f->is_batched = f->batch > 1;
    return NULL;
}

/* Types, and zero points of integers: one of a, none of b. */
static const char *types_of(const problem *p, const product *d, wgmma_form *f)
{
    const sinter_dtype a = d->type_x, b = d->type_w;
    if (d->is_integer && b == SINTER_DTYPE_I8 && a == SINTER_DTYPE_I8) f->type = WGMMA_S8;
    else if (d->is_integer && b == SINTER_DTYPE_I8 && a == SINTER_DTYPE_U8) f->type = WGMMA_U8_S8;
    else if (!d->is_integer && a == SINTER_DTYPE_F16 && b == a) f->type = WGMMA_F16;
    else if (!d->is_integer && a == SINTER_DTYPE_BF16 && b == a) f->type = WGMMA_BF16;
    else return "not in f16, bf16 or by signed 8-bit integers";
    f->element = d->is_integer ? 1 : 2;
    f->bk = STEP / f->element;
    f->has_zero = d->zero_x;
    REJECT_UNLESS(!d->zero_w, "the right side has zero points");
    REJECT_UNLESS(d->zero_x <= ZERO_ONE, "several zero points");
    REJECT_UNLESS(!d->zero_x || p->in[1].is_const, "a zero point by what is no constant");
    return NULL;
}

const char *wgmma_form_of(const problem *p, wgmma_form *f)
{
    *f = (wgmma_form){ .batch = 1, .taps = { 1, 1, 1 } };
    product own;
    const char *wrong = product_of(p, &own);
    if (!wrong) wrong = types_of(p, &own, f);
    if (wrong) return wrong;
    const problem_operand *a = &p->in[0], *b = &p->in[1], *d = &p->out[0];
    f->k_axis = f->column = own.x_k;
    f->b_n = own.w_n;
    f->b_k = own.w_k;
    if (own.kind == PRODUCT_MATRICES) {
        REJECT_UNLESS(a->rank <= WGMMA_ROW_AXES, "too many axes");
        REJECT_UNLESS(b->rank <= a->rank && d->rank == a->rank, "a left side that is repeated");
        REJECT_UNLESS(own.x_k == a->rank - 1, "the left side is turned");
        bool is_matrix = true;
        for (uint32_t i = 0; i + 2 < b->rank; i++) is_matrix = is_matrix && b->dim[i].max == 1;
        const char *why = is_matrix ? NULL : batch_of(p, f);
        if (why) return why;
        REJECT_UNLESS(is_one_pitch(a, f->k_axis), "rows of several pitches");
    } else {
        const product_slide attrs = own.slide;
        REJECT_UNLESS(own.kind == PRODUCT_CONV && attrs.groups == 1, "not a plain convolution");
        REJECT_UNLESS(own.is_w_fixed, "the filter is no constant of fixed size");
        bool has_patches = !is_one_pitch(a, 1); /* patches may lie at any strides */
        for (uint32_t i = 2; i < a->rank; i++)
            has_patches = has_patches || b->dim[i].max != 1 || attrs.stride->at[i - 2] != 1;
        for (uint32_t i = 0; i < attrs.pad->count; i++) {
            REJECT_UNLESS(!f->has_zero || !attrs.pad->at[i], "pads are zero points"); /* copies fill them with 0 */
            has_patches = has_patches || attrs.pad->at[i];
        }
        if (has_patches) {
            const char *why = im2col_limits(p, &attrs);
            if (why) return why;
            f->spatial = a->rank - 2u;
            for (uint32_t i = 2; i < a->rank; i++) f->taps[3 - a->rank + i] = b->dim[i].max;
        }
    }
    REJECT_UNLESS(a->order[a->rank - 1] == f->k_axis && d->order[d->rank - 1] == f->column,
                  "rows do not lie innermost");
    for (uint32_t i = 0; i + 1 < d->rank; i++) {
        REJECT_UNLESS(a->order[i] == d->order[i], "operand and result lie in different orders");
        f->row[f->rows++] = d->order[i];
    }
    REJECT_UNLESS(problem_dim_is_static(a->dim[f->k_axis]) && problem_dim_is_static(b->dim[f->b_n]),
                  "columns or depth vary");
    f->k = a->dim[f->k_axis].max;
    f->n = b->dim[f->b_n].max;
    return NULL;
}

static void space_of(const problem *p, const wgmma_form *f, bool is_staged, emit_space *s)
{
    emit_space_of(p, s);
    s->inner = f->column;
    s->width = 8;
    s->acc = f->element == 1 ? SINTER_DTYPE_I32 : SINTER_DTYPE_F32;
    for (uint32_t i = 0; i < f->rows; i++) s->turns |= 1u << f->row[i];
    s->is_staged = is_staged;
}

/* Rows of whole 16 bytes at one pitch, as a tensor map can say. */
static bool is_copied_whole(const problem_operand *o, const wgmma_form *f)
{
    const uint32_t bits = sinter_dtype_bits(o->dtype);
    return (bits == 8 || bits == 16) && f->n * bits % 128 == 0 && !o->is_gapped && is_one_pitch(o, f->column) &&
           o->order[o->rank - 1] == f->column;
}

wgmma_staging wgmma_staging_of(const problem *p, const wgmma_form *f)
{
    wgmma_staging g = { 0 };
    emit_space s;
    const problem_operand *d = &p->out[0];
    space_of(p, f, false, &s);
    const uint32_t moving = emit_moving(&s, &g.residual);
    if (!is_copied_whole(d, f) || moving > 1) return g;
    g.has_residual = moving == 1;
    g.is_possible = true;
    if (!g.has_residual) return g;
    const problem_operand *r = &p->in[g.residual];
    g.is_possible = r->rank == d->rank && is_copied_whole(r, f) && !memcmp(r->order, d->order, d->rank) &&
                    sinter_dtype_bits(r->dtype) == sinter_dtype_bits(d->dtype);
    for (uint32_t i = 0; g.is_possible && i < d->rank; i++) {
        const dim_range x = r->dim[i], y = d->dim[i];
        g.is_possible = x.min == y.min && x.max == y.max && x.divisor == y.divisor;
        g.may_repeat = g.may_repeat || (!problem_dim_is_static(y) && y.min <= 1);
    }
    return g;
}

int64_t wgmma_steps(const wgmma_form *f)
{
    return (f->k + f->bk - 1) / f->bk * f->taps[0] * f->taps[1] * f->taps[2];
}

int64_t wgmma_depth(const wgmma_form *f)
{
    const int64_t bytes = f->k * f->element;
    return bytes < STEP ? (bytes + 31) / 32 : STEP / 32;
}

int64_t wgmma_rows(const problem *p, const wgmma_form *f)
{
    int64_t m = 1;
    for (uint32_t i = 0; i < f->rows; i++) m *= p->out[0].dim[f->row[i]].opt;
    m /= f->batch;
    return m;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    REJECT_UNLESS(t->isa == 90, "not Hopper");
    REJECT_UNLESS(!p->prologue && p->count_out == 1, "has a prologue, or several results");
    const problem_operand *a = &p->in[0], *b = &p->in[1];
    wgmma_form f;
    const char *why = wgmma_form_of(p, &f);
    if (why) return why;
    REJECT_UNLESS(!a->is_gapped && !p->out[0].is_gapped, "an operand has gaps");
    for (uint32_t i = 0; f.spatial && i < a->rank; i++)
        REJECT_UNLESS(a->dim[i].min > 0, "an image that may be empty, of which there is no tensor map");
    REJECT_UNLESS(f.k * f.element % 16 == 0 && f.k >= 48, "depth is under 48 or no multiple of 16 bytes");
    REJECT_UNLESS(b->is_const || (!b->is_gapped && b->order[b->rank - 1] == f.b_k),
                  "the right side does not lie along k");
    emit_space s;
    space_of(p, &f, false, &s);
    REJECT_UNLESS(s.p->out[0].dtype != SINTER_DTYPE_F64, "f64");
    return emit_reject(&s);
}

static bool wgmma_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    wgmma_form f;
    if (index > 1 || wgmma_form_of(p, &f)) return false;
    const wgmma_tactic w = TACTIC_AS(wgmma_tactic, t);
    const wgmma_staging g = wgmma_staging_of(p, &f);
    if (index && (!w.is_staged || !g.may_repeat)) return false;
    const bool is_staged = w.is_staged && !index;
    emit_space s;
    space_of(p, &f, is_staged, &s);
    c->source = w.is_once ? "wgmma_once.cu" : "wgmma.cu";
    c->entry = w.is_once ? "wgmma_once" : "wgmma";
    int64_t order = 0;
    for (uint32_t i = 0; i < f.rows; i++) order |= (int64_t)f.row[f.rows - 1 - i] << 4 * i;
    cuda_code_define(c, "BN", w.bn8 * 8);
    cuda_code_define(c, "LINES", w.lines);
    cuda_code_define(c, "TYPE", f.type);
    cuda_code_define(c, "DEPTH", wgmma_depth(&f));
    cuda_code_define(c, "HAS_ZERO_X", f.has_zero);
    cuda_code_define(c, "PACKED", p->in[1].is_const);
    cuda_code_define(c, "BATCHED", f.is_batched);
    cuda_code_define(c, "KEPT", w.is_kept ? wgmma_steps(&f) : 0);
    cuda_code_define(c, "ROW_AXES", f.rows);
    cuda_code_define(c, "ROW_ORDER", order);
    cuda_code_define(c, "SPATIAL", f.spatial);
    if (w.is_once) {
        cuda_code_define(c, "SWAPPED", w.is_swapped);
        cuda_code_define(c, "GROUPS", w.groups);
        cuda_code_define(c, "CLUSTER", w.split_log > 0);
        cuda_code_define(c, "MIN_BLOCKS", wgmma_resident(p, &w));
    } else {
        cuda_code_define(c, "STAGES", w.stages);
        cuda_code_define(c, "PINGPONG", w.is_pingpong);
        cuda_code_define(c, "PAIRED", w.is_paired);
        cuda_code_define(c, "IS_WHOLE", f.n % 8 == 0);
        cuda_code_define(c, "STAGED", is_staged ? sinter_dtype_bits(p->out[0].dtype) / 8 : 0);
        cuda_code_define(c, "RESIDUAL", g.has_residual);
        cuda_code_define(c, "STILL_WORDS", emit_operand_words(&s, false));
        cuda_code_define(c, "MOVING_WORDS", emit_operand_words(&s, true));
    }
    emit_text(&s, c->generated);
    return true;
}

/* ---- packing: [batch][tiles][steps][TN][128 bytes], the 16-byte units of a row exchanged by its number, rows dealt
 * (product.h) where blocks stay; with a zero point of the other side the sums of rows, i32 [batch][tiles][TN] ---- */

static int64_t packed_rows(const wgmma_form *f, const wgmma_tactic *w)
{
    const int64_t tn = wgmma_tn(w);
    return f->batch * ((f->n + tn - 1) / tn * tn);
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    wgmma_form f;
    if (input != 1 || wgmma_form_of(p, &f)) return 0;
    const wgmma_tactic w = TACTIC_AS(wgmma_tactic, t);
    const int64_t rows = packed_rows(&f, &w);
    return (size_t)(rows * wgmma_steps(&f) * STEP + (f.has_zero ? rows * 4 : 0));
}

/* Where the right side of product z begins, in elements: the row axes number the products, the last outermost. */
static int64_t matrix_at(const wgmma_form *f, const view *b, int64_t z)
{
    int64_t at = 0;
    for (uint32_t i = f->rows - 1u; f->is_batched && i-- > 0;) {
        at += z % b->dim[f->row[i]] * b->stride[f->row[i]];
        z /= b->dim[f->row[i]];
    }
    return at;
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    wgmma_form f;
    if (wgmma_form_of(p, &f)) return;
    const wgmma_tactic w = TACTIC_AS(wgmma_tactic, t);
    product_columns x = { .element = f.element,
                          .bn = wgmma_tn(&w),
                          .is_dealt = !w.is_once,
                          .cols = f.n,
                          .taps = { f.taps[0], f.taps[1], f.taps[2] },
                          .inner = 1,
                          .channels = f.k,
                          .run = (f.k + f.bk - 1) / f.bk * f.bk,
                          .stride_n = src->stride[f.b_n],
                          .stride_c = src->stride[f.b_k] };
    for (uint32_t i = 0; i < f.spatial; i++) x.stride_tap[3 - f.spatial + i] = src->stride[2 + i];
    const int64_t columns = packed_rows(&f, &w) / f.batch, size = columns * wgmma_steps(&f) * STEP;
    uint8_t *to = dst;
    int32_t *sums = f.has_zero ? (int32_t *)(void *)(to + f.batch * size) : NULL;
    memset(dst, 0, pack_size(p, t, input));
    for (int64_t z = 0; z < f.batch; z++)
        product_pack(&x, (const uint8_t *)src->data + matrix_at(&f, src, z) * f.element, to + z * size,
                     sums ? sums + z * columns : NULL);
}

/* ---- launches ---- */

/* The pitch of the rows of `v`, in elements; of a single row, what it would be. */
static int64_t row_pitch(const wgmma_form *f, const view *v)
{
    for (uint32_t i = f->rows; i-- > 0;)
        if (v->dim[f->row[i]] != 1) return v->stride[f->row[i]];
    return v->dim[f->column]; /* the axis of k in operand 0 */
}

/* Rows of one matrix, or of `batch` that follow one another. */
static void rows128(cuda_map *map, uint8_t operand, const wgmma_form *f, sinter_dtype dtype, int64_t columns,
                    int64_t rows, int64_t pitch, int64_t box)
{
    const int64_t element = sinter_dtype_bits(dtype) / 8;
    map->operand = operand;
    map->rank = f->is_batched ? 3 : 2;
    map->swizzle = SWIZZLE_128;
    map->dtype = (uint8_t)dtype;
    map->dim[0] = (uint64_t)columns;
    map->dim[1] = (uint64_t)rows;
    map->dim[2] = (uint64_t)f->batch;
    map->stride[1] = (uint64_t)(pitch * element);
    map->stride[2] = (uint64_t)(rows * pitch * element);
    map->box[0] = (uint32_t)(STEP / element);
    map->box[1] = (uint32_t)box;
    map->box[2] = map->step[0] = map->step[1] = map->step[2] = 1;
}

/* The same of results, or of a residual, in boxes of 16 rows by a strip of columns. */
static sinter_status map_result(env *e, cuda_record *r, const wgmma_form *f, const struct wgmma_args *x, size_t at,
                                bool is_out, uint8_t operand, const view *v, uint32_t strip)
{
    cuda_map *map = cuda_map_add(r, x, at);
    if (!map) return FAIL(e, INTERNAL, "a tensor map too many");
    rows128(map, operand, f, v->dtype, f->n, x->m, row_pitch(f, v), STAGED_ROWS);
    map->is_out = is_out;
    map->box[0] = strip / (sinter_dtype_bits(v->dtype) / 8);
    map->swizzle = strip == 128 ? SWIZZLE_128 : strip == 64 ? SWIZZLE_64 : SWIZZLE_32;
    return SINTER_OK;
}

static void patches128(cuda_map *map, const problem *p, const wgmma_form *f, const product_slide *c, const view *x,
                       uint32_t pixels)
{
    map->operand = 0;
    map->rank = (uint8_t)(f->spatial + 2);
    map->swizzle = SWIZZLE_128;
    map->is_im2col = 1;
    map->dtype = (uint8_t)x->dtype;
    map->pixels = (uint8_t)pixels;
    map->channels = (uint8_t)f->bk;
    for (uint32_t i = 0; i < map->rank; i++) {
        const uint32_t axis = i == 0 ? 1 : i + 1 == map->rank ? 0 : map->rank - i;
        map->dim[i] = (uint64_t)x->dim[axis];
        map->stride[i] = (uint64_t)(x->stride[axis] * f->element);
        map->step[i] = 1;
    }
    for (uint32_t i = 0; i < f->spatial; i++) {
        const uint32_t axis = f->spatial - 1 - i;
        const int64_t reach = (p->in[1].dim[2 + axis].max - 1) * c->dilation->at[axis];
        map->low[i] = (int16_t)-c->pad->at[axis];
        map->high[i] = (int16_t)(c->pad->at[f->spatial + axis] - reach);
        map->step[1 + i] = (uint32_t)c->stride->at[axis];
    }
}

static sinter_status wgmma_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                const view *out, void *to)
{
    cuda_record *r = to;
    const wgmma_tactic w = TACTIC_AS(wgmma_tactic, t);
    wgmma_form f;
    int64_t m = 1;
    if (wgmma_form_of(p, &f)) return FAIL(e, INTERNAL, "no matrix product");
    for (uint32_t i = 0; i < f.rows; i++) m *= out[0].dim[f.row[i]];
    const int64_t each = m / f.batch, tm = wgmma_tm(&w), tn = wgmma_tn(&w), tiles_m = (each + tm - 1) / tm,
                  tiles_n = (f.n + tn - 1) / tn, tiles = tiles_m * tiles_n * f.batch;
    if (m > INT32_MAX / 2 || f.n > INT32_MAX / 2 || tiles > INT32_MAX >> 3)
        return FAIL(e, UNSUPPORTED, "%lld rows by %lld columns are too many", (long long)m, (long long)f.n);
    /* A residual that is repeated does not come by copies of whole tiles. */
    const wgmma_staging g = wgmma_staging_of(p, &f);
    bool is_staged = w.is_staged;
    for (uint32_t i = 0; is_staged && g.has_residual && i < out[0].rank; i++)
        is_staged = in[g.residual].dim[i] == out[0].dim[i];
    uint32_t sums_at, barriers_at;
    const uint32_t shared = wgmma_shared(p, &w, &sums_at, &barriers_at), groups = w.lines * (w.is_once ? w.groups : 1u);
    const bool is_pair = w.is_paired || (w.lines == 1 && shared <= WGMMA_TWO_BLOCKS);
    int64_t most = w.units * (is_pair ? 2 : 1);
    if (w.is_kept) most -= most % tiles_n;
    const uint64_t blocks = (uint64_t)(w.is_once ? tiles << w.split_log : tiles < most ? tiles : most);
    struct wgmma_args *x;
    TRY(cuda_launch_begin(e, r, w.is_staged && !is_staged, blocks, 1, 1, groups * 128 + (w.is_once ? 32 : 128), shared,
                          sizeof *x, &x));
    cuda_launch_last(r)->cluster = 1u << w.split_log;
    x->m = (small)each;
    x->n = (small)f.n;
    x->steps = (small)wgmma_steps(&f);
    x->tiles_m = (small)tiles_m;
    x->tiles_n = (small)tiles_n;
    x->tiles = (small)tiles;
    x->tile_div = cuda_fast_div(tiles_m * tiles_n);
    x->stages = w.stages;
    x->sums_at = (small)sums_at;
    x->barriers_at = (small)barriers_at;
    x->split_log = w.split_log;
    x->trigger = w.trigger;
    for (uint32_t i = 0; i + 1 < f.rows; i++) x->row_div[i] = cuda_fast_div(out[0].dim[f.row[f.rows - 1 - i]]);
    cuda_map *map = cuda_map_add(r, x, offsetof(struct wgmma_args, map_a));
    if (!map) return FAIL(e, INTERNAL, "a tensor map too many");
    if (f.spatial) {
        const product_slide c = product_slide_of(p->op, attrs);
        x->chunk_div = cuda_fast_div((f.k + f.bk - 1) / f.bk);
        for (uint32_t i = 0; i < f.spatial; i++) {
            const uint32_t axis = f.spatial - 1 - i;
            x->tap_div[i] = cuda_fast_div(f.taps[2 - i]);
            x->stride[i] = (small)c.stride->at[axis];
            x->pad[i] = (small)c.pad->at[axis];
            x->dilation[i] = (small)c.dilation->at[axis];
        }
        patches128(map, p, &f, &c, &in[0], (uint32_t)tm);
    } else {
        rows128(map, 0, &f, in[0].dtype, f.k, each, row_pitch(&f, &in[0]), tm);
    }
    if (p->in[1].is_const) {
        CUDA_PATCH(r, x, b, PATCH_IN, 1);
    } else {
        map = cuda_map_add(r, x, offsetof(struct wgmma_args, map_b));
        if (!map) return FAIL(e, INTERNAL, "a tensor map too many");
        rows128(map, 1, &f, in[1].dtype, f.k, f.n, f.n == 1 ? f.k : in[1].stride[f.b_n], tn);
    }
    if (is_staged) {
        const uint32_t strip = wgmma_strip(p, &w);
        TRY(map_result(e, r, &f, x, offsetof(struct wgmma_args, map_d), true, 0, &out[0], strip));
        if (g.has_residual)
            TRY(map_result(e, r, &f, x, offsetof(struct wgmma_args, map_r), false, g.residual, &in[g.residual], strip));
    }
    x->sums = packed_rows(&f, &w) * wgmma_steps(&f) * STEP;
    if (f.has_zero) CUDA_PATCH(r, x, zero_x, PATCH_IN, 2);
    emit_space s;
    space_of(p, &f, is_staged, &s);
    return emit_bind(e, &s, in, out, r);
}

CUDA_ROW(cuda_wgmma, 9, reject, wgmma_, .out_strides = STRIDES_ROWS, .pack_size = pack_size, .pack = pack,
         .lets_in = wgmma_lets_in);
