/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_image.c - Resize and Upsample in all their forms, and the other samplers of images. */
#include "onnx/quirks.h"
#include <math.h>
#include <string.h>

static int64_t item_of(onnx_call *c, const char *name, const char *given, const char *const *items)
{
    for (int64_t i = 0; items[i]; i++)
        if (strcmp(items[i], given) == 0) return i;
    REJECT(c, UNSUPPORTED, "attribute %s is '%s'", name, given);
    return 0;
}

/* Kernels resize all axes but the first two, images and channels. Where others keep their size, since channels lie last
 * or there are none, these are put first, behind axes of one element where they are less than two. */
ir_value_id quirk_resize(onnx_call *c, ir_value_id x, attrs_resize *a, const dim *size, const double *scale)
{
    const bool has_scale = scale != NULL;
    enum { LEAD = 2, RANK_MAX = LEAD + 3 };
    int64_t perm[SINTER_RANK_MAX], back[SINTER_RANK_MAX];
    dim from[SINTER_RANK_MAX] = { 0 }, in[SINTER_RANK_MAX], out[SINTER_RANK_MAX];
    double by[SINTER_RANK_MAX];
    uint32_t kept = 0, n = 0, first = 0;
    const uint32_t rank = call_shape(c, x, from);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < rank; i++) {
            const bool is_kept = from[i] == size[i] && (!has_scale || scale[i] == 1);
            if (is_kept != !pass) continue;
            if (is_kept) kept++;
            perm[n++] = i;
        }
    }
    for (uint32_t i = 0; i < rank; i++) back[perm[i]] = i;
    while (first < kept && first < LEAD && perm[first] == first) first++;
    const uint32_t lead = kept < LEAD ? LEAD - kept : 0;
    const bool turns =
        first < LEAD && kept < rank && lead + rank <= RANK_MAX && a->coordinate != resize_coordinate_tf_crop_and_resize;
    for (uint32_t i = 0; i < lead && turns; i++) {
        in[i] = out[i] = call_k(c, 1);
        by[i] = 1;
    }
    n = turns ? lead : 0;
    for (uint32_t i = 0; i < rank; i++, n++) {
        const int64_t axis = turns ? perm[i] : i;
        in[n] = from[axis];
        out[n] = size[axis];
        by[n] = has_scale ? scale[axis] : 1;
    }
    if (turns) x = build_shaped(&c->b, build_permuted(&c->b, x, perm, rank), in, n);
    a->size = build_dims(&c->b, out, n);
    a->scale.count = has_scale ? n : 0;
    for (uint32_t i = 0; has_scale && i < n; i++) a->scale.at[i] = by[i];
    ir_value_id y = build_resize(&c->b, x, a);
    if (turns) y = build_permuted(&c->b, build_shaped(&c->b, y, out + lead, rank), back, rank);
    return y;
}

/* ---- scales ---- */
typedef struct scales {
    uint32_t count;
    double at[SINTER_RANK_MAX];
    bool is_late[SINTER_RANK_MAX], any_late; /* computed while the model runs */
} scales;

/* Reads a list of `want` scales; where it is a concatenation, the constant parts of it are known. */
static void scales_read(onnx_call *c, ir_value_id v, uint32_t want, scales *out)
{
    *out = (scales){ 0 };
    view w;
    if (c->b.status) return;
    const ir_node *maker = ir_node_at(c->b.g, ir_value_at(c->b.g, v)->producer);
    bool is_joined = !ir_const_view(c->b.g, v, &w) && maker->op == OP_concat;
    int64_t length = 0, count = 0;
    if (call_rank(c, v) != 1 || (call_size(c, v, 0, &length) && length != want))
        REJECT(c, INVALID_MODEL, "the list of scales has %lld elements and rank %u; a list of %u is wanted",
               (long long)length, call_rank(c, v), want);
    for (uint32_t i = 0; is_joined && i < maker->count_in; i++) is_joined = call_size(c, maker->in[i], 0, &count);
    for (uint32_t i = 0; i < (is_joined ? maker->count_in : 1); i++) {
        const ir_value_id part = is_joined ? maker->in[i] : v;
        const bool is_known = ir_const_view(c->b.g, part, &w) && ir_look(c->b.g, part);
        if (!is_joined) count = want;
        else if (!call_size(c, part, 0, &count)) count = 0;
        for (int64_t k = 0; k < count && out->count < want; k++, out->count++) {
            out->is_late[out->count] = !is_known;
            out->any_late = out->any_late || !is_known;
            if (is_known) out->at[out->count] = view_load_f64(&w, k * w.stride[0]);
        }
    }
}

/* Element i of a list, as a scalar of f64. */
static ir_value_id real_at(onnx_call *c, ir_value_id list, uint32_t i)
{
    const ir_value_id one = build_part(&c->b, list, 0, call_k(c, i), 1, call_k(c, 1));
    return build_typed(&c->b, build_shaped(&c->b, one, NULL, 0), SINTER_DTYPE_F64);
}

/* floor(value) as a size that the run binds. */
static dim size_bound(onnx_call *c, ir_value_id value)
{
    dim d = DIM_NONE;
    uint32_t count = 0;
    call_sizes(c, build_typed(&c->b, build_floor(&c->b, value), SINTER_DTYPE_I64), "a scaled size", DIM_NONE, &d, 1,
               &count);
    return d;
}

/* The size that a scale makes of an axis, where only the run knows. The product is one of f32, as `scaled` has it. */
static dim size_late(onnx_call *c, dim size, ir_value_id scale)
{
    const ir_value_id product = build_mul(&c->b, quirk_size_real(c, size), scale);
    return size_bound(c, build_typed(&c->b, product, SINTER_DTYPE_F32));
}

/* floor(d * scale) as an expression, where the scale is a fraction with a small denominator; else the run computes it.
 */
static dim scaled(onnx_call *c, dim d, double scale)
{
    dim_table *t = c->b.g->dims;
    int64_t size = 0;
    if (!(scale > 0) || scale > 1e6) {
        REJECT(c, INVALID_MODEL, "a scale of %g", scale);
        return d;
    }
    if (dim_is_const(t, d, &size) && size < INT32_MAX)
        return call_k(c, (int64_t)floor((double)(float)((double)size * scale)));
    for (int64_t q = 1; q <= 64; q++) {
        const double p = nearbyint(scale * (double)q);
        if (p >= 1 && (float)(p / (double)q) == (float)scale)
            return dim_floordiv(t, dim_mul(t, d, call_k(c, (int64_t)p)), call_k(c, q));
    }
    return size_late(c, d, build_scalar(&c->b, SINTER_DTYPE_F64, scale));
}

/* Sizes by scales of which the run computes some, and the scales as values; 0 where an axis stays as it is. */
static void sizes_late(onnx_call *c, ir_value_id list, const scales *s, const int64_t *axis, quirk_scales *out)
{
    const dim want = call_k(c, s->count);
    list = build_shaped(&c->b, list, &want, 1);
    for (uint32_t i = 0; i < s->count && !c->b.status; i++) {
        dim *d = &out->size[axis[i]];
        if (!s->is_late[i] && s->at[i] == 1) continue;
        const ir_value_id scale = s->is_late[i] ? real_at(c, list, i) : build_scalar(&c->b, SINTER_DTYPE_F64, s->at[i]);
        out->scale[axis[i]] = scale;
        *d = s->is_late[i] ? size_late(c, *d, scale) : scaled(c, *d, s->at[i]);
    }
}

/* Before opset 11 the nearest is the one before a place, or the one behind it along an axis that shrinks: those axes go
 * first, and have a scale of 1 afterwards. True: nothing is left to do. */
static bool shrink_first(onnx_call *c, ir_value_id *x, const dim *size, double *scale, uint32_t rank)
{
    attrs_resize *a = DEFAULTS(resize);
    dim first[SINTER_RANK_MAX];
    double by[SINTER_RANK_MAX];
    bool shrinks = false, grows = false;
    if (c->b.status) return false;
    call_shape(c, *x, first);
    for (uint32_t i = 0; i < rank; i++) {
        by[i] = fmin(scale[i], 1);
        if (by[i] < 1) first[i] = size[i];
        shrinks |= by[i] < 1;
        grows |= scale[i] > 1;
        scale[i] = fmax(scale[i], 1);
    }
    if (!shrinks) return false;
    a->mode = resize_mode_nearest;
    a->coordinate = resize_coordinate_asymmetric;
    a->nearest = resize_nearest_ceil;
    *x = quirk_resize(c, *x, a, first, by);
    c->out[0] = *x;
    return !grows;
}

void convert_upsample(onnx_call *c)
{
    static const char *const modes[] = { "nearest", "linear", "cubic", NULL };
    ir_value_id x = call_in(c, 0);
    attrs_resize *a = DEFAULTS(resize);
    dim size[SINTER_RANK_MAX];
    double scale[SINTER_RANK_MAX] = { 0 };
    int64_t axis[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, size);
    for (uint32_t i = 0; i < rank; i++) axis[i] = i;
    uint32_t count = 0;
    const char *mode = call_text(c, "mode", "nearest");
    a->mode = item_of(c, "mode", strcmp(mode, "bilinear") == 0 ? "linear" : mode, modes);
    a->coordinate = resize_coordinate_asymmetric;
    a->nearest = resize_nearest_floor;
    attr_reals list;
    scales read = { 0 };
    if (c->version >= 9) {
        if (!call_in(c, 1)) REJECT(c, INVALID_MODEL, "the scales are missing");
        scales_read(c, call_in(c, 1), rank, &read);
        count = read.count;
        memcpy(scale, read.at, sizeof scale);
    } else if (c->version >= 7 || call_attr(c, "scales")) {
        call_reals(c, "scales", &list);
        count = list.count;
        for (uint32_t i = 0; i < count && i < SINTER_RANK_MAX; i++) scale[i] = list.at[i];
    } else {
        scale[0] = scale[1] = 1;
        scale[2] = call_real(c, "height_scale", 1);
        scale[3] = call_real(c, "width_scale", 1);
        count = 4;
    }
    if (count != rank) REJECT(c, INVALID_MODEL, "%u scales for rank %u", count, rank);
    if (c->b.status) return;
    if (read.any_late) {
        quirk_scales late = { .is_upsample = a->mode == resize_mode_nearest };
        memcpy(late.size, size, sizeof size);
        sizes_late(c, call_in(c, 1), &read, axis, &late);
        c->out[0] = quirk_resize_scaled(c, x, a, &late);
        return;
    }
    for (uint32_t i = 0; i < rank && !c->b.status; i++) size[i] = scaled(c, size[i], scale[i]);
    if (a->mode == resize_mode_nearest && shrink_first(c, &x, size, scale, rank)) return;
    c->out[0] = quirk_resize(c, x, a, size, scale);
}

/* Sizes in which one scale serves all the axes, the smallest or the largest of those asked for. False: the run computes
 * some of the sizes. */
static bool keep_aspect(onnx_call *c, ir_value_id x, dim *size, double *scale, const attr_ints *axes, bool larger)
{
    double best = larger ? 0 : INFINITY;
    for (uint32_t i = 0; i < axes->count; i++) {
        int64_t have = 0, want = 0;
        if (!call_size(c, x, (uint32_t)axes->at[i], &have) || !dim_is_const(c->b.g->dims, size[axes->at[i]], &want) ||
            have < 1)
            return false;
        const double s = (double)want / (double)have;
        best = larger ? fmax(best, s) : fmin(best, s);
    }
    for (uint32_t i = 0; i < axes->count; i++) {
        int64_t have = 0;
        call_size(c, x, (uint32_t)axes->at[i], &have);
        scale[axes->at[i]] = best;
        size[axes->at[i]] = call_k(c, (int64_t)floor(best * (double)have + 0.5));
    }
    return true;
}

/* The same, by the run. */
static void keep_aspect_late(onnx_call *c, const attr_ints *axes, bool larger, quirk_scales *s)
{
    ir_builder *b = &c->b;
    ir_value_id best = 0, have[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < axes->count && !b->status; i++) {
        have[i] = quirk_size_real(c, call_dim(c, call_in(c, 0), (uint32_t)axes->at[i]));
        const ir_value_id by = build_div(b, quirk_size_real(c, s->size[axes->at[i]]), have[i]);
        best = !best ? by : larger ? build_max(b, best, by) : build_min(b, best, by);
    }
    for (uint32_t i = 0; i < axes->count && !b->status; i++) {
        const ir_value_id product = build_mul(b, best, have[i]);
        s->scale[axes->at[i]] = best;
        s->size[axes->at[i]] = size_bound(c, build_add(b, product, build_scalar_like(b, product, 0.5)));
    }
    s->is_apart = true;
}

/* A Resize as it is read. size and scale: of all axes; late: the same as values, where the run knows some of them. */
typedef struct resizing {
    onnx_call *c;
    attrs_resize *a;
    ir_value_id x, box;
    uint32_t rank;
    attr_ints axes; /* those that are resized */
    dim size[SINTER_RANK_MAX];
    double scale[SINTER_RANK_MAX];
    quirk_scales late;
    bool has_box, is_box_late, has_scale, is_late;
} resizing;

static void resize_attributes(resizing *r)
{
    static const char *const modes[] = { "nearest", "linear", "cubic", NULL };
    static const char *const coordinates[] = { "half_pixel",           "half_pixel_symmetric",
                                               "pytorch_half_pixel",   "align_corners",
                                               "asymmetric",           "tf_crop_and_resize",
                                               "tf_half_pixel_for_nn", NULL };
    static const char *const roundings[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL };
    onnx_call *c = r->c;
    attrs_resize *a = r->a;
    a->mode = item_of(c, "mode", call_text(c, "mode", "nearest"), modes);
    a->coordinate = item_of(c, "coordinate_transformation_mode",
                            call_text(c, "coordinate_transformation_mode", "half_pixel"), coordinates);
    a->nearest = item_of(c, "nearest_mode", call_text(c, "nearest_mode", "round_prefer_floor"), roundings);
    a->cubic_a = call_real(c, "cubic_coeff_a", -0.75);
    a->exclude_outside = call_int(c, "exclude_outside", 0) != 0;
    a->extrapolation = call_real(c, "extrapolation_value", 0);
    a->antialias = call_int(c, "antialias", 0) != 0;
    if (!call_ints(c, "axes", &r->axes)) {
        r->axes.count = r->rank;
        for (uint32_t i = 0; i < r->rank; i++) r->axes.at[i] = i;
    }
    for (uint32_t i = 0; i < r->axes.count; i++) r->axes.at[i] = call_axis(c, r->axes.at[i], r->rank);
    for (uint32_t i = 0; i < r->rank; i++) r->scale[i] = 1;
    r->has_box = a->coordinate == resize_coordinate_tf_crop_and_resize;
}

static void resize_box(resizing *r)
{
    onnx_call *c = r->c;
    const attr_ints *axes = &r->axes;
    double list[2 * SINTER_RANK_MAX];
    uint32_t count = 0;
    r->box = call_of_length(c, call_in(c, 1), 2 * axes->count);
    r->is_box_late = !c->b.status && !ir_is_const(c->b.g, r->box);
    if (!r->is_box_late) call_const_reals(c, r->box, "roi", list, 2 * SINTER_RANK_MAX, &count);
    if (!r->is_box_late && count != 2 * axes->count)
        REJECT(c, INVALID_MODEL, "roi has %u values for %u axes", count, axes->count);
    r->a->roi.count = 2 * r->rank;
    for (uint32_t i = 0; i < r->rank; i++) r->a->roi.at[r->rank + i] = 1;
    for (uint32_t i = 0; i < axes->count && !c->b.status && !r->is_box_late; i++) {
        r->a->roi.at[axes->at[i]] = list[i];
        r->a->roi.at[r->rank + axes->at[i]] = list[axes->count + i];
    }
}

/* A box that the run computes. Axes that have no scale yet are scaled by their sizes. */
static void box_late(resizing *r)
{
    onnx_call *c = r->c;
    quirk_scales *s = &r->late;
    for (uint32_t i = 0; i < r->axes.count && !c->b.status; i++) {
        const uint32_t axis = (uint32_t)r->axes.at[i];
        s->low[axis] = real_at(c, r->box, i);
        s->high[axis] = real_at(c, r->box, r->axes.count + i);
        if (s->scale[axis]) continue;
        const ir_value_id wanted = quirk_size_real(c, s->size[axis]);
        s->scale[axis] = build_div(&c->b, wanted, quirk_size_real(c, call_dim(c, r->x, axis)));
    }
    s->is_apart = true;
}

/* The sizes are those of the box, scaled. */
static void resize_box_sizes(resizing *r, const scales *read)
{
    onnx_call *c = r->c;
    const bool is_late = read->any_late || r->is_box_late;
    for (uint32_t i = 0; i < r->axes.count && !c->b.status; i++) {
        int64_t have = 0;
        const int64_t axis = r->axes.at[i];
        const dim from = call_dim(c, r->x, (uint32_t)axis);
        if (!is_late && dim_is_const(c->b.g->dims, from, &have)) {
            const double part = r->a->roi.at[r->rank + axis] - r->a->roi.at[axis];
            r->size[axis] = call_k(c, (int64_t)floor((double)have * part * read->at[i]));
            continue;
        }
        const ir_value_id low = real_at(c, r->box, i), high = real_at(c, r->box, r->axes.count + i),
                          part = build_sub(&c->b, high, low),
                          product = build_mul(&c->b, quirk_size_real(c, from), part);
        ir_value_id *by = &r->late.scale[axis];
        if (!*by) *by = build_scalar(&c->b, SINTER_DTYPE_F64, r->scale[axis]);
        r->late.size[axis] = r->size[axis] = size_bound(c, build_mul(&c->b, product, *by));
    }
}

static void resize_by_scales(resizing *r, ir_value_id list)
{
    onnx_call *c = r->c;
    scales read;
    r->has_scale = true;
    scales_read(c, list, r->axes.count, &read);
    if (read.any_late) sizes_late(c, list, &read, r->axes.at, &r->late);
    for (uint32_t i = 0; i < read.count && !c->b.status && !read.any_late; i++) {
        const int64_t axis = r->axes.at[i];
        r->scale[axis] = read.at[i];
        r->size[axis] = scaled(c, r->size[axis], read.at[i]);
        if (r->is_box_late) r->late.scale[axis] = build_scalar(&c->b, SINTER_DTYPE_F64, read.at[i]);
    }
    if (r->has_box) resize_box_sizes(r, &read);
    r->is_late = read.any_late || r->is_box_late;
}

static void resize_to_sizes(resizing *r, ir_value_id list)
{
    static const char *const policies[] = { "stretch", "not_larger", "not_smaller", NULL };
    onnx_call *c = r->c;
    const attr_ints *axes = &r->axes;
    dim given[SINTER_RANK_MAX];
    uint32_t count = 0;
    call_sizes(c, call_of_length(c, list, axes->count), "the list of sizes", DIM_NONE, given, SINTER_RANK_MAX, &count);
    if (count != axes->count) REJECT(c, INVALID_MODEL, "%u sizes for %u axes", count, axes->count);
    for (uint32_t i = 0; i < count && !c->b.status; i++) r->late.size[axes->at[i]] = r->size[axes->at[i]] = given[i];
    const int64_t policy =
        item_of(c, "keep_aspect_ratio_policy", call_text(c, "keep_aspect_ratio_policy", "stretch"), policies);
    if (c->b.status) return;
    r->has_scale = policy != 0;
    const bool is_late = policy && (r->is_box_late || !keep_aspect(c, r->x, r->size, r->scale, axes, policy == 2));
    if (is_late) keep_aspect_late(c, axes, policy == 2, &r->late);
    r->is_late = r->is_box_late || is_late;
}

void convert_resize(onnx_call *c)
{
    if (c->version == 10) {
        convert_upsample(c);
        return;
    }
    resizing r = { .c = c, .a = DEFAULTS(resize), .x = call_in(c, 0) };
    ir_value_id scale_list = call_in(c, 2);
    const ir_value_id size_list = call_in(c, 3);
    int64_t length = 0;
    r.rank = call_shape(c, r.x, r.size);
    memcpy(r.late.size, r.size, sizeof r.size);
    resize_attributes(&r);
    if (scale_list && call_size(c, scale_list, 0, &length) && length == 0) scale_list = 0;
    if (r.has_box) {
        if (!call_in(c, 1)) REJECT(c, INVALID_MODEL, "roi is missing");
        if (!c->b.status && quirk_crop_late(c, r.a, &r.axes)) return;
        resize_box(&r);
    }
    if (!scale_list && !size_list) REJECT(c, INVALID_MODEL, "neither scales nor sizes");
    if (c->b.status) return;
    if (scale_list) resize_by_scales(&r, scale_list);
    else resize_to_sizes(&r, size_list);
    if (r.is_late && r.has_box) box_late(&r);
    if (c->b.status) return;
    c->out[0] = r.is_late ? quirk_resize_scaled(c, r.x, r.a, &r.late)
                          : quirk_resize(c, r.x, r.a, r.size, r.has_scale ? r.scale : NULL);
}

void convert_grid_sample(onnx_call *c)
{
    static const char *const modes[] = { "nearest", "linear", "cubic", NULL };
    static const char *const paddings[] = { "zeros", "reflection", "border", NULL };
    const char *mode = call_text(c, "mode", c->version < 20 ? "bilinear" : "linear");
    attrs_grid_sample *a = DEFAULTS(grid_sample);
    if (strcmp(mode, "bilinear") == 0) mode = "linear";
    if (strcmp(mode, "bicubic") == 0) mode = "cubic";
    a->mode = item_of(c, "mode", mode, modes);
    a->padding = item_of(c, "padding_mode", call_text(c, "padding_mode", "zeros"), paddings);
    a->align_corners = call_int(c, "align_corners", 0) != 0;
    c->out[0] = build_grid_sample(&c->b, call_in(c, 0), call_in(c, 1), a);
}

void convert_affine_grid(onnx_call *c)
{
    dim size[SINTER_RANK_MAX];
    uint32_t count = 0;
    int64_t axes = 0;
    ir_value_id list = call_in(c, 1);
    if (!call_in(c, 0) || !list) REJECT(c, INVALID_MODEL, "theta or the size is missing");
    if (!c->b.status && call_size(c, call_in(c, 0), 1, &axes)) list = call_of_length(c, list, (uint32_t)axes + 2);
    call_sizes(c, list, "the size", DIM_NONE, size, SINTER_RANK_MAX, &count);
    attrs_affine_grid *a = DEFAULTS(affine_grid);
    a->size = build_dims(&c->b, size, count);
    a->align_corners = call_int(c, "align_corners", 0) != 0;
    c->out[0] = build_affine_grid(&c->b, call_in(c, 0), a);
}

static void roi_align(onnx_call *c, bool is_max, bool half_pixel)
{
    attrs_roi_align *a = DEFAULTS(roi_align);
    a->is_max = is_max;
    a->half_pixel = half_pixel;
    a->out_h = call_int(c, "output_height", 1);
    a->out_w = call_int(c, "output_width", 1);
    a->sampling = call_int(c, "sampling_ratio", 0);
    a->scale = call_real(c, "spatial_scale", 1);
    if (a->out_h < 1 || a->out_w < 1 || a->sampling < 0 || a->out_h > INT32_MAX || a->out_w > INT32_MAX ||
        a->sampling > INT16_MAX)
        REJECT(c, INVALID_MODEL, "an output of %lldx%lld with %lld samples", (long long)a->out_h, (long long)a->out_w,
               (long long)a->sampling);
    c->out[0] = build_roi_align(&c->b, call_in(c, 0), call_in(c, 1), call_in(c, 2), a);
}

void convert_roi_align(onnx_call *c)
{
    static const char *const modes[] = { "avg", "max", NULL };
    static const char *const coordinates[] = { "output_half_pixel", "half_pixel", NULL };
    const bool is_max = item_of(c, "mode", call_text(c, "mode", "avg"), modes) != 0;
    roi_align(c, is_max,
              c->version >= 16 && item_of(c, "coordinate_transformation_mode",
                                          call_text(c, "coordinate_transformation_mode", "half_pixel"), coordinates));
}

/* The same with numbers in the place of words. */
void convert_roi_align_plugin(onnx_call *c)
{
    const int64_t is_average = call_int(c, "mode", 1), is_shifted = call_int(c, "coordinate_transformation_mode", 1);
    if ((is_average & ~1) || (is_shifted & ~1))
        REJECT(c, INVALID_MODEL, "mode %lld and coordinate_transformation_mode %lld, 0 or 1 is wanted",
               (long long)is_average, (long long)is_shifted);
    roi_align(c, !is_average, is_shifted != 0);
}

/* Deformable attention over maps of several sizes, which stand one behind the other in the values: a sample of each
 * map, weighted and added. level_start_index says where each map begins, which their sizes say, too. */
void convert_multiscale_attention(onnx_call *c)
{
    static const int64_t to_maps[4] = { 0, 2, 3, 1 }, to_places[6] = { 0, 2, 3, 1, 4, 5 }, last = 3,
                         back[4] = { 0, 3, 1, 2 };
    enum { LEVELS_MAX = 64 };
    dim_table *t = c->b.g->dims;
    dim size[2 * LEVELS_MAX], v[SINTER_RANK_MAX], p[SINTER_RANK_MAX];
    int64_t levels = 0;
    uint32_t count = 0;
    const ir_value_id maps = call_in(c, 1);
    for (uint32_t i = 0; i < 5; i++) {
        static const uint32_t rank[5] = { 4, 2, 1, 6, 5 };
        if (!call_in(c, i)) REJECT(c, INVALID_MODEL, "input %u is missing", i);
        if (!c->b.status && call_rank(c, call_in(c, i)) != rank[i])
            REJECT(c, INVALID_MODEL, "input %u is of rank %u, %u is wanted", i, call_rank(c, call_in(c, i)), rank[i]);
    }
    if (c->b.status) return;
    call_shape(c, call_in(c, 0), v);
    call_shape(c, call_in(c, 3), p);
    if (!(call_size(c, maps, 0, &levels) || dim_is_const(t, p[3], &levels)) || levels < 1 || levels > LEVELS_MAX)
        REJECT(c, UNSUPPORTED, "%lld maps, or how many is not known; 1 to %d are wanted", (long long)levels,
               LEVELS_MAX);
    const dim twice = call_k(c, 2 * levels);
    call_sizes(c, build_shaped(&c->b, maps, &twice, 1), "the sizes of the maps", DIM_NONE, size, 2 * LEVELS_MAX,
               &count);
    if (!c->b.status && count != 2 * (uint32_t)levels)
        REJECT(c, INVALID_MODEL, "%u sizes of %lld maps", count, (long long)levels);
    const ir_value_id all = build_permuted(&c->b, call_in(c, 0), to_maps, 4);
    const ir_value_id weights = build_permuted(&c->b, call_in(c, 4), to_places, 5);
    if (c->b.status) return;
    const ir_value_id two = build_scalar_like(&c->b, call_in(c, 3), 2),
                      one = build_scalar_like(&c->b, call_in(c, 3), 1);
    const ir_value_id places =
        build_sub(&c->b, build_mul(&c->b, build_permuted(&c->b, call_in(c, 3), to_places, 6), two), one);
    const dim rows = dim_mul(t, v[0], v[2]);
    dim start = call_k(c, 0);
    ir_value_id sum = 0;
    for (uint32_t i = 0; i < levels && !c->b.status; i++) {
        const dim area = dim_mul(t, size[2 * i], size[2 * i + 1]),
                  map[4] = { rows, v[3], size[2 * i], size[2 * i + 1] }, grid[4] = { rows, p[1], p[4], call_k(c, 2) },
                  each[4] = { rows, call_k(c, 1), p[1], p[4] };
        attrs_grid_sample *a = DEFAULTS(grid_sample);
        a->mode = resize_mode_linear;
        a->padding = pad_mode_constant;
        const ir_value_id image = build_shaped(&c->b, build_part(&c->b, all, 3, start, 1, area), map, 4);
        const ir_value_id at =
            build_shaped(&c->b, build_part(&c->b, places, 2, call_k(c, i), 1, call_k(c, 1)), grid, 4);
        const ir_value_id by =
            build_shaped(&c->b, build_part(&c->b, weights, 2, call_k(c, i), 1, call_k(c, 1)), each, 4);
        const ir_value_id seen = build_mul(&c->b, build_grid_sample(&c->b, image, at, a), by);
        const ir_value_id one_map = build_reduced(&c->b, reduce_kind_sum, seen, &last, 1, false);
        sum = sum ? build_add(&c->b, sum, one_map) : one_map;
        start = dim_add(t, start, area);
    }
    if (c->b.status) return;
    const dim apart[4] = { v[0], v[2], v[3], p[1] };
    c->out[0] = build_permuted(&c->b, build_shaped(&c->b, sum, apart, 4), back, 4);
}

void convert_nms(onnx_call *c)
{
    attrs_nms *a = DEFAULTS(nms);
    ir_value_id in[5];
    uint32_t count = 2;
    a->center_box = call_int(c, "center_point_box", 0) != 0;
    for (uint32_t i = 0; i < 5; i++) {
        in[i] = call_in(c, i);
        if (in[i]) count = i + 1 > count ? i + 1 : count;
        if (i >= 2 && in[i] && call_rank(c, in[i])) in[i] = build_shaped(&c->b, in[i], NULL, 0);
    }
    c->out[0] = build_emit(&c->b, OP_nms, a, in, count);
}
