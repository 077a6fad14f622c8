/* SPDX-License-Identifier: Apache-2.0 */
/* map_image.c - plans of pools, resizing, and what samples images at computed places. */
#include "cuda/map.h"

#include "cuda/device/map_args.h"

#include <inttypes.h>
#include <string.h>

/* ---- pools ---- */

static const char *plan_window(map_plan *m, uint32_t spatial, const attr_ints *window, const attr_ints *stride,
                               const attr_ints *dilation, const attr_ints *pad)
{
    static const char *const name[3][6] = { { "K0", "S0", "D0", "P0", "Q0", NULL },
                                            { "K1", "S1", "D1", "P1", "Q1", NULL },
                                            { "K2", "S2", "D2", "P2", "Q2", NULL } };
    if (spatial < 1 || spatial > 3) return "more than three spatial axes";
    if (window->count != spatial || stride->count != spatial || dilation->count != spatial || pad->count != 2 * spatial)
        return "a window of another rank";
    map_define(m, "SPATIAL", spatial);
    m->work = 1;
    for (uint32_t k = 0; k < 3; k++) {
        const uint32_t gone = 3 - spatial, i = k - gone;
        const bool has = k >= gone;
        const int64_t value[5] = { has ? window->at[i] : 1, has ? stride->at[i] : 1, has ? dilation->at[i] : 1,
                                   has ? pad->at[i] : 0, has ? pad->at[spatial + i] : 0 };
        for (uint32_t j = 0; j < 5; j++) {
            if (value[j] > INT32_MAX / 4 || value[j] < (j < 3)) return "a window out of range";
            map_define(m, name[k][j], value[j]);
        }
        m->work *= (double)value[0];
    }
    return NULL;
}

static const char *plan_pool(const problem *p, map_plan *m)
{
    const problem_operand *x = &p->in[0];
    const uint32_t inner = map_inner(p), spatial = x->rank < 2 ? 0 : x->rank - 2u;
    const char *why = NULL;
    int64_t count_pad = 0, power = 2, has_index = 0;
    m->map = MAP_POOL;
    if (p->op == OP_max_pool) {
        const attrs_max_pool *a = p->attrs;
        why = plan_window(m, spatial, &a->kernel, &a->stride, &a->dilation, &a->pad);
        has_index = p->count_out > 1 && p->out[1].dtype != SINTER_DTYPE_NONE;
        if (has_index && p->out[1].dtype != SINTER_DTYPE_I64) return "indices that are not i64";
    } else if (p->op == OP_avg_pool) {
        const attrs_avg_pool *a = p->attrs;
        why = plan_window(m, spatial, &a->kernel, &a->stride, &a->dilation, &a->pad);
        count_pad = a->count_pad != 0;
    } else {
        const attrs_lp_pool *a = p->attrs;
        why = plan_window(m, spatial, &a->kernel, &a->stride, &a->dilation, &a->pad);
        power = a->p;
    }
    if (p->op != OP_max_pool && !dtype_is_float(x->dtype)) return "an average of integers";
    map_define(m, "POOL", p->op == OP_max_pool ? 0 : p->op == OP_avg_pool ? 1 : 2);
    map_define(m, "COUNT_PAD", count_pad);
    map_define(m, "POWER", power);
    map_define(m, "HAS_INDEX", has_index);
    if (inner < 2) m->inner_in = (uint8_t)inner;
    return why;
}

/* ---- resize ---- */

static const char *plan_resize(const problem *p, map_plan *m)
{
    const attrs_resize *a = p->attrs;
    const uint32_t inner = map_inner(p), rank = p->in[0].rank;
    int64_t moved = 0;
    uint32_t count = 0;
    bool is_rational = a->coordinate != resize_coordinate_tf_crop_and_resize &&
                       (dtype_is_float(p->in[0].dtype) || a->mode == resize_mode_nearest);
    m->map = MAP_RESIZE;
    if (rank > 7 || p->out[0].rank != rank) return "more than 7 axes";
    if (a->antialias) return "antialias";
    if (a->scale.count && a->scale.count != rank) return "scales of another rank";
    for (uint32_t i = 0; i < rank; i++) {
        const dim_range x = p->in[0].dim[i], y = p->out[0].dim[i];
        const bool is_same = problem_dim_is_static(x) && problem_dim_is_static(y) && x.max == y.max &&
                             (!a->scale.count || a->scale.at[i] == 1) &&
                             a->coordinate != resize_coordinate_tf_crop_and_resize;
        if (is_same) continue;
        moved |= (int64_t)1 << i;
        count++;
        /* Sizes in the ratio of the scale, and no tie that rounding in double would have broken. */
        const bool is_static = problem_dim_is_static(x) && problem_dim_is_static(y);
        const double scale = a->scale.count ? a->scale.at[i] : 0;
        const bool is_whole = scale >= 1 ? scale == (double)(int64_t)scale && scale < 16384
                                         : !a->scale.count && is_static && x.max && y.max % x.max == 0;
        const bool is_ratio = !a->scale.count || (is_static && scale * (double)x.max == (double)y.max);
        if (x.max > 16384 || y.max > 16384 || !(is_whole || (is_ratio && a->mode != resize_mode_nearest)))
            is_rational = false;
    }
    /* The weights of cubic want more than f32 has. */
    if (a->mode == resize_mode_cubic && sinter_dtype_bits(p->in[0].dtype) != 16) is_rational = false;
    map_define(m, "IS_RATIONAL", is_rational);
    if (count > 4 && a->mode != resize_mode_nearest) return "more than 4 axes that are resized";
    map_define(m, "MODE", a->mode);
    map_define(m, "COORDINATE", a->coordinate);
    map_define(m, "NEAREST", a->nearest);
    map_define(m, "EXCLUDE", a->exclude_outside != 0);
    map_define(m, "MOVED", moved);
    map_define(m, "IS_FLOAT", dtype_is_float(p->in[0].dtype));
    if (!(moved >> inner & 1)) m->inner_in = (uint8_t)inner;
    m->work = 1;
    for (uint32_t i = 0; i < count; i++) m->work *= a->mode == resize_mode_nearest ? 1 : 2 * (double)a->mode;
    return NULL;
}

static sinter_status fill_resize(env *e, const attrs_resize *a, const view *in, const view *out, struct map_args *args)
{
    if (a->coordinate == resize_coordinate_tf_crop_and_resize && a->roi.count != 2 * in->rank)
        return FAIL(e, INVALID_ARG, "resize: roi has %u entries, wanted %u", a->roi.count, 2 * in->rank);
    if (view_count(out) > 0 && view_count(in) == 0) return FAIL(e, INVALID_ARG, "resize: the input is empty");
    for (uint32_t i = 0; i < in->rank; i++) {
        const double scale =
            a->scale.count ? a->scale.at[i] : (double)out->dim[i] / (double)(in->dim[i] ? in->dim[i] : 1);
        if (!(scale > 0) && view_count(out) > 0)
            return FAIL(e, INVALID_ARG, "resize: the scale of axis %u is %g", i, scale);
        args->f[i] = scale;
        /* A whole scale, as the kernel was made for it. */
        if (a->scale.count && scale == (double)(int64_t)scale && (double)in->dim[i] * scale != (double)out->dim[i] &&
            view_count(out) > 0 && a->coordinate != resize_coordinate_tf_crop_and_resize)
            return FAIL(e, INVALID_ARG, "resize: axis %u of %" PRId64 " times %g is not %" PRId64, i, in->dim[i], scale,
                        out->dim[i]);
        if (a->coordinate == resize_coordinate_tf_crop_and_resize) {
            args->f[8 + i] = a->roi.at[i];
            args->f[16 + i] = a->roi.at[in->rank + i];
        }
    }
    args->f[7] = a->cubic_a;
    args->f[15] = a->extrapolation;
    return SINTER_OK;
}

/* ---- sampling ---- */

static const char *plan_grid(const problem *p, map_plan *m)
{
    const attrs_grid_sample *a = p->attrs;
    const uint32_t rank = p->in[0].rank, inner = map_inner(p);
    m->map = MAP_GRID;
    if (rank < 3 || rank > 5) return "other than one to three spatial axes";
    map_define(m, "SPATIAL", rank - 2);
    map_define(m, "MODE", a->mode);
    map_define(m, "PADDING", a->padding);
    map_define(m, "CORNERS", a->align_corners != 0);
    map_define(m, "IS_NARROW", p->in[1].dtype != SINTER_DTYPE_F64);
    map_define(m, "IS_FLOAT", dtype_is_float(p->in[0].dtype));
    if (!dtype_is_float(p->in[1].dtype)) return "a grid of integers";
    if (inner == 1) m->inner_in = 1;
    m->work = 1;
    for (uint32_t i = 2; i < rank; i++) m->work *= a->mode == resize_mode_nearest ? 1 : 2 * (double)a->mode;
    return NULL;
}

static const char *plan_roi(const problem *p, map_plan *m)
{
    const attrs_roi_align *a = p->attrs;
    m->map = MAP_ROI;
    if (p->in[0].rank != 4 || p->in[1].rank != 2 || p->in[2].rank != 1 || p->out[0].rank != 4) return "other ranks";
    if (!dtype_is_float(p->in[0].dtype) || !dtype_is_float(p->in[1].dtype)) return "integers";
    map_define(m, "IS_MAX", a->is_max != 0);
    map_define(m, "HALF_PIXEL", a->half_pixel != 0);
    map_define(m, "SAMPLING", a->sampling);
    map_define(m, "IS_NARROW", sinter_dtype_bits(p->in[0].dtype) == 16);
    if (a->sampling > 1024) return "more than 1024 samples";
    if (map_inner(p) == 1) m->inner_in = 1;
    m->work = 4 * (double)(a->sampling > 0 ? a->sampling * a->sampling : 4);
    return NULL;
}

static const char *plan_misc(const problem *p, map_plan *m)
{
    m->map = MAP_MISC;
    m->work = 4;
    if (!dtype_is_float(p->in[0].dtype)) return "integers";
    if (p->op == OP_affine_grid) {
        map_define(m, "KIND", 0);
        map_define(m, "CORNERS", ((const attrs_affine_grid *)p->attrs)->align_corners != 0);
        if (p->out[0].rank < 4 || p->out[0].rank > 5) return "other than two or three spatial axes";
    } else if (p->op == OP_lrn) {
        const uint32_t inner = map_inner(p);
        const attrs_lrn *a = p->attrs;
        map_define(m, "KIND", 1);
        if (p->in[0].rank < 2 || a->size < 1) return "no channels";
        if (inner != 1) m->inner_in = (uint8_t)inner;
        m->work = (double)a->size;
    } else if (p->op == OP_dft) {
        const attrs_dft *a = p->attrs;
        map_define(m, "KIND", 3);
        map_define(m, "AXIS", a->axis);
        map_define(m, "INVERSE", a->inverse != 0);
        map_define(m, "MIRRORED", a->inverse && a->onesided);
        if (a->axis < 0 || a->axis + 1 >= (int64_t)p->in[0].rank || p->out[0].rank != p->in[0].rank)
            return "no axis beside that of the parts";
        m->work = (double)p->in[0].dim[a->axis].opt * 4;
    } else if (p->op == OP_det) {
        const uint32_t rank = p->in[0].rank;
        if (rank < 2 || p->out[0].rank == 0) return "a single matrix";
        const dim_range d = p->in[0].dim[rank - 1];
        if (!problem_dim_is_static(d) || d.max < 1 || d.max > 6) return "matrices of more than 6 x 6";
        map_define(m, "KIND", 4);
        map_define(m, "SIDE", d.max);
        map_define(m, "LEAD", rank - 2);
        m->work = (double)(d.max * d.max * d.max);
    } else {
        const attrs_col2im *a = p->attrs;
        const uint32_t spatial = p->out[0].rank < 3 ? 0 : p->out[0].rank - 2u;
        map_define(m, "KIND", 2);
        if (spatial < 1 || spatial > 3 || a->block.count != spatial || p->in[0].rank != 3)
            return "other than one to three spatial axes";
        map_define(m, "SPATIAL", spatial);
        for (uint32_t i = 0; i < spatial; i++) m->work *= (double)a->block.at[i];
    }
    return NULL;
}

static sinter_status fill_col2im(env *e, const attrs_col2im *a, const view *in, const view *out, struct map_args *args)
{
    const uint32_t spatial = out->rank - 2;
    int64_t elements = 1, places = 1;
    for (uint32_t i = 0; i < spatial; i++) {
        const int64_t block = a->block.at[i], dilation = a->dilation.count > i ? a->dilation.at[i] : 1,
                      stride = a->stride.count > i ? a->stride.at[i] : 1, pad = a->pad.count > i ? a->pad.at[i] : 0,
                      after = a->pad.count > i + spatial ? a->pad.at[i + spatial] : 0;
        int64_t span = 0, room = 0;
        if (block < 1 || dilation < 1 || stride < 1 || pad < 0 || after < 0 || !i64_mul(block - 1, dilation, &span) ||
            !i64_add(out->dim[i + 2], pad, &room) || !i64_add(room, after, &room) || span > room - 1)
            return FAIL(e, INVALID_ARG, "col2im: a block is larger than the padded image");
        args->k[i] = block;
        args->k[4 + i] = dilation;
        args->k[8 + i] = stride;
        args->k[12 + i] = pad;
        args->k[16 + i] = (room - 1 - span) / stride + 1;
        if (!i64_mul(elements, block, &elements) || !i64_mul(places, args->k[16 + i], &places))
            return FAIL(e, INVALID_ARG, "col2im: the block has too many elements");
    }
    if (in->dim[0] != out->dim[0] || in->dim[1] % elements || in->dim[1] / elements != out->dim[1] ||
        in->dim[2] != places)
        return FAIL(e, INVALID_ARG, "col2im: input and image do not have shapes that go together");
    args->k[20] = elements;
    return SINTER_OK;
}

static const char *plan_deform(const problem *p, map_plan *m)
{
    const attrs_deform_conv *a = p->attrs;
    m->map = MAP_DEFORM;
    if (p->in[0].rank != 4 || a->stride.count != 2 || a->pad.count != 4 || a->dilation.count != 2) return "other ranks";
    for (uint32_t i = 0; i < p->count_in; i++)
        if (p->in[i].dtype != SINTER_DTYPE_NONE && !dtype_is_float(p->in[i].dtype)) return "integers";
    if (p->in[0].dtype != p->in[1].dtype) return "operands of different types";
    m->work = (double)cuda_operand_count(&p->in[1]) / (double)(p->out[0].dim[1].opt ? p->out[0].dim[1].opt : 1) * 8;
    return NULL;
}

const char *map_plan_image(const problem *p, map_plan *m)
{
    switch (p->op) {
    case OP_max_pool:
    case OP_avg_pool:
    case OP_lp_pool: return plan_pool(p, m);
    case OP_resize: return plan_resize(p, m);
    case OP_grid_sample: return plan_grid(p, m);
    case OP_roi_align: return plan_roi(p, m);
    case OP_affine_grid:
    case OP_lrn:
    case OP_dft:
    case OP_det:
    case OP_col2im: return plan_misc(p, m);
    case OP_deform_conv: return plan_deform(p, m);
    default: return NULL;
    }
}

/* ---- text and numbers ---- */

void map_text(const problem *p, const map_plan *m, text *out)
{
    if (p->count_in == 0 || m->map < MAP_POOL) return;
    const sinter_dtype x = p->in[0].dtype;
    int64_t least, most;
    dtype_int_range(x, &least, &most);
    if (x == SINTER_DTYPE_F64) text_printf(out, "#define LEAST double_of_bits(0xfff0000000000000ull)\n");
    else if (dtype_is_float(x)) text_printf(out, "#define LEAST float_of_bits(0xff800000u)\n");
    else text_printf(out, "#define LEAST (i64)0x%" PRIx64 "ull\n", (uint64_t)least);
    /* Integers are rounded at the end, so that ties must be exact. */
    const bool is_float = dtype_is_float(x) && x != SINTER_DTYPE_F64;
    text_printf(out, "typedef %s map_real;\n", is_float ? "float" : "double");
    if (dtype_is_float(x)) text_printf(out, "#define OUT_CAST(x) (x)\n");
    else text_printf(out, "#define OUT_CAST(x) emit_cast_%s(x)\n", sinter_dtype_name(x));
}

static void fill_pool(const problem *p, const attrs_max_pool *a, const view *in, struct map_args *args)
{
    const uint32_t spatial = in->rank - 2, gone = 3 - spatial;
    int64_t size = 1;
    for (uint32_t j = 0; j < spatial; j++) {
        const uint32_t i = p->op == OP_max_pool && a->column_major ? j : spatial - 1 - j;
        args->k[gone + i] = size;
        size *= in->dim[2 + i];
    }
    args->k[3] = size;
}

sinter_status map_fill(env *e, const problem *p, const map_plan *m, const void *attrs, const view *in, const view *out,
                       struct map_args *a)
{
    switch (m->map) {
    case MAP_POOL: fill_pool(p, attrs, in, a); return SINTER_OK;
    case MAP_RESIZE: return fill_resize(e, attrs, in, out, a);
    case MAP_ROI: {
        const attrs_roi_align *own = attrs;
        if (out->dim[2] != own->out_h || out->dim[3] != own->out_w || out->dim[0] != in[1].dim[0] ||
            in[2].dim[0] != in[1].dim[0] || in[1].dim[1] != 4 || out->dim[1] != in[0].dim[1])
            return FAIL(e, INVALID_ARG, "roi_align: the shapes of input, rois, batch indices and output do not agree");
        a->f[0] = own->scale;
        return SINTER_OK;
    }
    case MAP_GRID:
        if (view_count(out) > 0 && view_count(in) == 0) return FAIL(e, INVALID_ARG, "grid_sample: the input is empty");
        return SINTER_OK;
    case MAP_MISC:
        if (p->op == OP_col2im) return fill_col2im(e, attrs, in, out, a);
        if (p->op == OP_dft) {
            const attrs_dft *own = attrs;
            const int64_t bins = out->dim[own->axis], size = in->dim[own->axis];
            const int64_t length = own->length.count ? own->length.at[0] : own->onesided && !own->inverse ? size : bins;
            if (bins > 1 << 28) return FAIL(e, UNSUPPORTED, "dft: %" PRId64 " bins, the most are 2^28", bins);
            if (length < 1 || length > 1 << 29) return FAIL(e, INVALID_ARG, "dft: a length of %" PRId64, length);
            a->k[0] = length;
        }
        if (p->op == OP_det && in->dim[in->rank - 2] != in->dim[in->rank - 1])
            return FAIL(e, INVALID_ARG, "det: a matrix that is not square");
        if (p->op == OP_lrn) {
            const attrs_lrn *own = attrs;
            const int64_t channels = in->dim[1], size = own->size < 2 * channels + 1 ? own->size : 2 * channels + 1;
            a->k[0] = (size - 1) / 2;
            a->k[1] = size - 1 - (size - 1) / 2;
            a->f[0] = own->bias;
            a->f[1] = own->alpha / (double)own->size;
            a->f[2] = own->beta;
        }
        return SINTER_OK;
    case MAP_DEFORM: {
        const attrs_deform_conv *own = attrs;
        const int64_t value[8] = { own->stride.at[0],   own->stride.at[1],   own->pad.at[0], own->pad.at[1],
                                   own->dilation.at[0], own->dilation.at[1], own->groups,    own->offset_groups };
        memcpy(a->k, value, sizeof value);
        return SINTER_OK;
    }
    default: return map_fill_move(e, p, m, attrs, in, out, a);
    }
}
