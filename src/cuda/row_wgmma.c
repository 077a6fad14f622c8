/* SPDX-License-Identifier: Apache-2.0 */
/* row_wgmma.c - matrix products and convolutions on Hopper's warpgroups: large ones in f16 and bf16.
 *
 * The right side is n x k in memory: a constant is packed so, tile by tile as the kernel reads it, anything else must
 * lie so. The left side is rows of k elements at one pitch. */
#include "cuda/device/wgmma_args.h"
#include "cuda/emit.h"
#include "cuda/kernels.h"

#include <math.h>
#include <string.h>

enum { BK = 64, PART = 4 * 16 * 68 * 4, SWIZZLE_128 = 3 }; /* PART: staging of a warpgroup */

typedef struct wgmma_tactic {
    uint8_t bn8, stages, groups; /* columns of a tile over 8; 64 rows of it for each group */
    uint8_t units;               /* multiprocessors of the chip that it was chosen for: blocks stay on them */
    uint8_t zero[TACTIC_SIZE - 4];
} wgmma_tactic;
_Static_assert(sizeof(wgmma_tactic) == TACTIC_SIZE, "a tactic is overlaid");

static wgmma_tactic tactic_of(const tactic *t)
{
    wgmma_tactic w;
    memcpy(&w, t, sizeof w);
    return w;
}

/* The problem as d[m, n] = a[m, k] b[n, k]: axes of the space that are rows, outermost first, and the column axis. */
typedef struct form {
    uint8_t row[WGMMA_ROW_AXES + 1], rows, column, k_axis; /* k_axis: of operand 0 */
    uint8_t b_n, b_k;                                      /* axes of operand 1 */
    int64_t n, k;                                          /* k: of one tap */
    int64_t taps_y, taps_x;                                /* 1 where it is no convolution */
    bool is_im2col;
} form;

/* Rows of a strided operand lie at one pitch for certain only where a single axis numbers them. */
static bool is_one_pitch(const problem_operand *o, uint32_t k_axis)
{
    uint32_t axes = 0;
    for (uint32_t i = 0; i < o->rank; i++) axes += i != k_axis && o->dim[i].max != 1;
    return !o->is_strided || axes <= 1;
}

static int64_t listed(const attr_ints *list, uint32_t i, int64_t otherwise)
{
    return i < list->count ? list->at[i] : otherwise;
}

/* What a tensor map of image patches can say. */
static const char *im2col_limits(const problem *p)
{
    const attrs_conv *c = p->attrs;
    const problem_operand *a = &p->in[0], *b = &p->in[1];
    REJECT_UNLESS(a->rank == 4, "not an image");
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t reach = (b->dim[2 + i].max - 1) * listed(&c->dilation, i, 1), low = listed(&c->pad, i, 0),
                      high = listed(&c->pad, i + 2, 0);
        REJECT_UNLESS(listed(&c->stride, i, 1) <= 8, "strides above 8");
        REJECT_UNLESS(reach <= 127 && low >= 0 && low <= 127 && high >= 0 && high <= 127, "a filter too wide");
    }
    const uint8_t wanted[4] = { 0, 2, 3, 1 };
    REJECT_UNLESS(!memcmp(a->order, wanted, 4) && !memcmp(p->out[0].order, wanted, 4), "channels do not lie innermost");
    return NULL;
}

static const char *form_of(const problem *p, form *f)
{
    *f = (form){ .taps_y = 1, .taps_x = 1 };
    const problem_operand *a = &p->in[0], *b = &p->in[1], *d = &p->out[0];
    if (p->op == OP_matmul) {
        const attrs_matmul *attrs = p->attrs;
        REJECT_UNLESS(b->rank == 2 && a->rank >= 2 && a->rank <= WGMMA_ROW_AXES && d->rank == a->rank,
                      "not a matrix on the right");
        REJECT_UNLESS(!attrs->trans_a, "the left side is turned");
        f->k_axis = f->column = (uint8_t)(a->rank - 1);
        REJECT_UNLESS(is_one_pitch(a, f->k_axis), "rows of several pitches");
        f->b_n = attrs->trans_b ? 0 : 1;
        f->b_k = 1 - f->b_n;
    } else if (p->op == OP_conv) {
        const attrs_conv *attrs = p->attrs;
        REJECT_UNLESS(a->rank >= 3 && a->rank <= 5 && attrs->groups == 1, "not a plain convolution");
        f->is_im2col = !is_one_pitch(a, 1); /* patches may lie at any strides */
        for (uint32_t i = 2; i < a->rank; i++) {
            REJECT_UNLESS(problem_dim_is_static(b->dim[i]), "a filter of varying size");
            f->is_im2col = f->is_im2col || b->dim[i].max != 1 || (attrs->stride.count && attrs->stride.at[i - 2] != 1);
        }
        for (uint32_t i = 0; i < attrs->pad.count; i++) f->is_im2col = f->is_im2col || attrs->pad.at[i];
        if (f->is_im2col) {
            const char *why = im2col_limits(p);
            if (why) return why;
            f->taps_y = b->dim[2].max;
            f->taps_x = b->dim[3].max;
        }
        REJECT_UNLESS(b->is_const, "filters are no constant");
        f->k_axis = f->column = 1;
        f->b_n = 0;
        f->b_k = 1;
    } else {
        return "neither a matrix product nor a convolution";
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

static void space_of(const problem *p, const form *f, emit_space *s)
{
    emit_space_of(p, s);
    s->inner = f->column;
    s->width = 8;
    s->acc = SINTER_DTYPE_F32;
}

static int64_t steps_of(const form *f)
{
    return (f->k + BK - 1) / BK * f->taps_y * f->taps_x;
}

static int64_t rows_of(const problem *p, const form *f)
{
    int64_t m = 1;
    for (uint32_t i = 0; i < f->rows; i++) m *= p->out[0].dim[f->row[i]].opt;
    return m;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    REJECT_UNLESS(t->isa == 90, "not Hopper");
    REJECT_UNLESS(p->op == OP_matmul || p->op == OP_conv, "neither a matrix product nor a convolution");
    REJECT_UNLESS(!p->prologue && p->count_out == 1, "has a prologue, or several results");
    const problem_operand *a = &p->in[0], *b = &p->in[1];
    REJECT_UNLESS((a->dtype == SINTER_DTYPE_F16 || a->dtype == SINTER_DTYPE_BF16) && a->dtype == b->dtype,
                  "not in f16 or bf16");
    form f;
    const char *why = form_of(p, &f);
    if (why) return why;
    REJECT_UNLESS(!a->is_gapped && !p->out[0].is_gapped, "an operand has gaps");
    REJECT_UNLESS(f.k % 8 == 0 && f.k >= 48, "depth is under 48 or no multiple of 8");
    REJECT_UNLESS(b->is_const || (!b->is_gapped && b->order[1] == f.b_k), "the right side does not lie along k");
    REJECT_UNLESS(rows_of(p, &f) >= 64, "few rows");
    emit_space s;
    space_of(p, &f, &s);
    REJECT_UNLESS(s.p->out[0].dtype != SINTER_DTYPE_F64, "f64");
    return emit_reject(&s);
}

static uint32_t shared_of(wgmma_tactic w)
{
    return w.stages * (uint32_t)(w.groups * 64 + w.bn8 * 8) * BK * 2 + w.groups * PART + 16u * w.stages;
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    static const uint8_t shapes[][3] = { { 32, 4, 2 }, { 16, 5, 2 }, { 8, 6, 2 }, { 16, 3, 2 }, { 8, 4, 2 },
                                         { 8, 6, 1 },  { 16, 5, 1 }, { 8, 4, 1 }, { 16, 4, 1 } };
    (void)p;
    const uint8_t units = t->units == 0 || t->units > UINT8_MAX ? UINT8_MAX : (uint8_t)t->units;
    for (uint32_t i = 0; i < COUNT_OF(shapes); i++) {
        const wgmma_tactic w = { .bn8 = shapes[i][0], .stages = shapes[i][1], .groups = shapes[i][2], .units = units };
        if (shared_of(w) <= t->shared) memcpy(&out->at[out->count++], &w, sizeof w);
    }
}

static bool check(const problem *p, const tactic *t)
{
    (void)p;
    const wgmma_tactic w = tactic_of(t);
    for (uint32_t i = 0; i < sizeof w.zero; i++)
        if (w.zero[i]) return false;
    return w.units > 0 && (w.groups == 1 || w.groups == 2) && (w.bn8 == 8 || w.bn8 == 16 || w.bn8 == 32) &&
           w.stages >= 2 && w.stages <= 8 && shared_of(w) <= 227 * 1024;
}

static void print(const tactic *t, text *out)
{
    const wgmma_tactic w = tactic_of(t);
    text_printf(out, "%ux%u s%u", w.groups * 64u, w.bn8 * 8u, w.stages);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    form f;
    if (form_of(p, &f)) return 1e12;
    const wgmma_tactic w = tactic_of(t);
    const double bm = w.groups * 64.0, bn = w.bn8 * 8.0, m = (double)rows_of(p, &f),
                 units = target->units ? target->units : 132;
    const double tiles =
        (double)(((int64_t)m + (int64_t)bm - 1) / (int64_t)bm) * (double)((f.n + (int64_t)bn - 1) / (int64_t)bn);
    const double waves = ceil(tiles / units);
    /* 4096 operations a clock, 85 % of it with wide tiles; 1.5 us until the first product, the epilogue of the last. */
    const double rate = bn >= 256 ? 0.85 : bn >= 128 ? 0.75 : 0.5, steps = (double)steps_of(&f);
    const double tile = steps * (2 * bm * bn * BK / (4096 * 1.7 * rate * (w.groups > 1 ? 1 : 0.7)) + 20) + 300;
    double bytes = 0;
    for (uint32_t i = 0; i < p->count_in; i++) bytes += cuda_operand_bytes(&p->in[i]);
    const double memory = cuda_cost_ns(target, bytes + cuda_operand_bytes(&p->out[0]), 0);
    const double work = 3500 + waves * tile + bn * 4;
    return work > memory ? work : memory;
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    form f;
    if (index || form_of(p, &f)) return false;
    const wgmma_tactic w = tactic_of(t);
    emit_space s;
    space_of(p, &f, &s);
    c->source = "wgmma.cu";
    c->entry = "wgmma";
    int64_t order = 0;
    for (uint32_t i = 0; i < f.rows; i++) order |= (int64_t)f.row[f.rows - 1 - i] << 4 * i;
    cuda_code_define(c, "BN", w.bn8 * 8);
    cuda_code_define(c, "CONSUMERS", w.groups);
    cuda_code_define(c, "STAGES", w.stages);
    cuda_code_define(c, "IS_BF16", p->in[0].dtype == SINTER_DTYPE_BF16);
    cuda_code_define(c, "PACKED", p->in[1].is_const);
    cuda_code_define(c, "ROW_AXES", f.rows);
    cuda_code_define(c, "ROW_ORDER", order);
    cuda_code_define(c, "COLUMN_AXIS", f.column);
    cuda_code_define(c, "IM2COL", f.is_im2col);
    cuda_code_define(c, "TAPS_X", f.taps_x);
    cuda_code_define(c, "CHUNKS", (f.k + BK - 1) / BK);
    emit_text(&s, c->generated);
    return true;
}

/* ---- packing: [tiles][steps][BN][64], the 16-byte units of a row exchanged by its number ---- */

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    form f;
    if (input != 1 || form_of(p, &f)) return 0;
    const int64_t bn = tactic_of(t).bn8 * 8;
    return (size_t)((f.n + bn - 1) / bn * bn * steps_of(&f) * BK * 2);
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)input;
    form f;
    if (form_of(p, &f)) return;
    const int64_t bn = tactic_of(t).bn8 * 8, steps = steps_of(&f), chunks = (f.k + BK - 1) / BK;
    const uint16_t *from = src->data;
    uint16_t *to = dst;
    for (int64_t tile = 0; tile * bn < f.n; tile++)
        for (int64_t step = 0; step < steps; step++) {
            const int64_t tap = step / chunks, first = step % chunks * BK;
            const int64_t offset = f.is_im2col ? tap / f.taps_x * src->stride[2] + tap % f.taps_x * src->stride[3] : 0;
            for (int64_t row = 0; row < bn; row++)
                for (int64_t i = 0; i < BK; i++) {
                    const int64_t n = tile * bn + row, k = first + i;
                    uint16_t *at =
                        to + ((tile * steps + step) * bn + row) * BK + (((i >> 3) ^ (row & 7)) << 3) + (i & 7);
                    *at = n < f.n && k < f.k ? from[n * src->stride[f.b_n] + k * src->stride[f.b_k] + offset] : 0;
                }
        }
}

/* ---- launches ---- */

/* The pitch of the rows of `v`, in elements; of a single row, what it would be. */
static int64_t row_pitch(const form *f, const view *v)
{
    for (uint32_t i = f->rows; i-- > 0;)
        if (v->dim[f->row[i]] != 1) return v->stride[f->row[i]];
    return v->dim[f->k_axis];
}

static void rows128(cuda_map *map, uint8_t operand, sinter_dtype dtype, int64_t k, int64_t rows, int64_t pitch,
                    uint32_t box)
{
    map->operand = operand;
    map->rank = 2;
    map->swizzle = SWIZZLE_128;
    map->dtype = (uint8_t)dtype;
    map->dim[0] = (uint64_t)k;
    map->dim[1] = (uint64_t)rows;
    map->stride[1] = (uint64_t)pitch * 2;
    map->box[0] = BK;
    map->box[1] = box;
    map->step[0] = map->step[1] = 1;
}

static void patches128(cuda_map *map, const problem *p, const attrs_conv *c, const view *x, uint32_t pixels)
{
    const int64_t y_reach = (p->in[1].dim[2].max - 1) * listed(&c->dilation, 0, 1),
                  x_reach = (p->in[1].dim[3].max - 1) * listed(&c->dilation, 1, 1);
    map->operand = 0;
    map->rank = 4;
    map->swizzle = SWIZZLE_128;
    map->is_im2col = 1;
    map->dtype = (uint8_t)x->dtype;
    map->pixels = (uint8_t)pixels;
    map->channels = BK;
    map->low[0] = (int16_t)-listed(&c->pad, 1, 0);
    map->low[1] = (int16_t)-listed(&c->pad, 0, 0);
    map->high[0] = (int16_t)(listed(&c->pad, 3, 0) - x_reach);
    map->high[1] = (int16_t)(listed(&c->pad, 2, 0) - y_reach);
    const uint32_t axis[4] = { 1, 3, 2, 0 };
    for (uint32_t i = 0; i < 4; i++) {
        map->dim[i] = (uint64_t)x->dim[axis[i]];
        map->stride[i] = (uint64_t)x->stride[axis[i]] * 2;
        map->step[i] = 1;
    }
    map->step[1] = (uint32_t)listed(&c->stride, 1, 1);
    map->step[2] = (uint32_t)listed(&c->stride, 0, 1);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    cuda_record *r = to;
    const wgmma_tactic w = tactic_of(t);
    form f;
    int64_t m = 1;
    if (form_of(p, &f)) return FAIL(e, INTERNAL, "no matrix product");
    for (uint32_t i = 0; i < f.rows; i++) m *= out[0].dim[f.row[i]];
    const int64_t bm = w.groups * 64, bn = w.bn8 * 8, tiles_m = (m + bm - 1) / bm, tiles_n = (f.n + bn - 1) / bn,
                  tiles = tiles_m * tiles_n;
    if (m > INT32_MAX / 2 || tiles > INT32_MAX) return FAIL(e, UNSUPPORTED, "%lld rows are too many", (long long)m);
    /* Half as many threads and memory: two blocks share a multiprocessor. */
    const uint64_t most = w.units * (w.groups == 1 && shared_of(w) <= 113 * 1024 ? 2u : 1u),
                   blocks = tiles < (int64_t)most ? (uint64_t)tiles : most;
    if (!cuda_launch_add(r, 0, blocks, 1, 1, 128u + 128u * w.groups, shared_of(w)))
        return FAIL(e, INTERNAL, "a launch too many");
    struct wgmma_args *x = cuda_param_add(r, sizeof *x);
    if (!x) return FAIL(e, INTERNAL, "parameters do not fit");
    x->m = (small)m;
    x->n = (small)f.n;
    x->steps = (small)steps_of(&f);
    x->tiles_m = (small)tiles_m;
    x->tiles_n = (small)tiles_n;
    x->tiles = (small)tiles;
    for (uint32_t i = 0; i + 1 < f.rows; i++) x->row_div[i] = cuda_fast_div(out[0].dim[f.row[f.rows - 1 - i]]);
    cuda_map *map = cuda_map_add(r, x, offsetof(struct wgmma_args, map_a));
    if (!map) return FAIL(e, INTERNAL, "a tensor map too many");
    if (f.is_im2col) {
        const attrs_conv *c = attrs;
        x->stride_y = (small)listed(&c->stride, 0, 1);
        x->stride_x = (small)listed(&c->stride, 1, 1);
        x->pad_y = (small)listed(&c->pad, 0, 0);
        x->pad_x = (small)listed(&c->pad, 1, 0);
        x->dilation_y = (small)listed(&c->dilation, 0, 1);
        x->dilation_x = (small)listed(&c->dilation, 1, 1);
        patches128(map, p, c, &in[0], (uint32_t)bm);
    } else {
        rows128(map, 0, in[0].dtype, f.k, m, row_pitch(&f, &in[0]), (uint32_t)bm);
    }
    if (p->in[1].is_const) {
        CUDA_PATCH(r, x, b, PATCH_IN, 1);
    } else {
        map = cuda_map_add(r, x, offsetof(struct wgmma_args, map_b));
        if (!map) return FAIL(e, INTERNAL, "a tensor map too many");
        rows128(map, 1, in[1].dtype, f.k, f.n, in[1].stride[f.b_n], (uint32_t)bn);
    }
    emit_space s;
    space_of(p, &f, &s);
    return emit_bind(e, &s, in, out, r);
}

const cuda_kernel cuda_wgmma = {
    .base = { .name = "cuda_wgmma",
              .abi = 3,
              .is_strided_out = true,
              .reject = reject,
              .tactics = tactics,
              .check = check,
              .print = print,
              .cost_ns = cost_ns,
              .pack_size = pack_size,
              .pack = pack,
              .record_size = cuda_record_size,
              .bind = bind },
    .code = code,
};
