/* SPDX-License-Identifier: Apache-2.0 */
/* export_move.c - ops that move elements, and those that take sizes: attributes here are tensors in ONNX. */
#include "onnx/exporter.h"

#include <string.h>

static export_node begin(exporter *x, const ir_node *n, const char *type)
{
    export_node to = node_begin(x, type);
    node_ins(x, &to, n, 0);
    node_outs(x, &to, n);
    return to;
}

static void end(exporter *x, export_node *to)
{
    node_end(x, to, x->scope);
}

/* A node with the inputs of `n` and one more. */
static void with_input(exporter *x, const ir_node *n, const char *type, const char *input)
{
    export_node to = begin(x, n, type);
    node_in(x, &to, input);
    end(x, &to);
}

static bool is_k(const exporter *x, dim d, int64_t value)
{
    return dim_is(x->g->dims, d, value);
}

/* ---- Reshape and its kin ---- */

/* A shape without arithmetic, where there is one: 0 keeps an axis of the input, -1 is what is left. It is left only
 * beside sizes that are never 0. */
static bool shape_short(exporter *x, const ir_value *from, const attr_dims *to, int64_t *out)
{
    uint32_t open = UINT32_MAX;
    for (uint32_t i = 0; i < to->count; i++) {
        const dim d = export_dim(to, i);
        if (dim_is_const(x->g->dims, d, &out[i]) && out[i] > 0) continue;
        if (i < from->rank && from->dim[i] == d) {
            out[i] = 0;
            continue;
        }
        if (dim_is_const(x->g->dims, d, NULL) || open != UINT32_MAX) return false;
        open = i;
        out[i] = -1;
    }
    if (open == UINT32_MAX) return true;
    for (uint32_t i = 0; i < to->count; i++)
        if (i != open && dim_range_of(x->g->dims, export_dim(to, i)).min < 1) return false;
    return true;
}

void export_reshape(exporter *x, const ir_node *n, const export_row *row)
{
    const attr_dims *shape = &((const attrs_reshape *)n->attrs)->shape;
    const ir_value *from = ir_value_at(x->g, n->in[0]);
    int64_t short_form[SINTER_RANK_MAX];
    const bool is_short = shape->count <= SINTER_RANK_MAX && shape_short(x, from, shape, short_form);
    const char *to_shape = is_short ? export_ints(x, short_form, shape->count) : export_dims(x, shape);
    export_node to = begin(x, n, row->type);
    node_in(x, &to, to_shape);
    if (!is_short) node_int(x, &to, "allowzero", 1);
    end(x, &to);
}

void export_transpose(exporter *x, const ir_node *n, const export_row *row)
{
    const attr_ints *perm = &((const attrs_transpose *)n->attrs)->perm;
    export_node to = begin(x, n, row->type);
    node_ints(x, &to, "perm", perm->at, perm->count);
    end(x, &to);
}

void export_expand(exporter *x, const ir_node *n, const export_row *row)
{
    with_input(x, n, row->type, export_dims(x, &((const attrs_expand *)n->attrs)->shape));
}

void export_tile(exporter *x, const ir_node *n, const export_row *row)
{
    with_input(x, n, row->type, export_dims(x, &((const attrs_tile *)n->attrs)->repeats));
}

/* The end of an axis of a slice. Forwards, an end behind the axis is cut. */
static dim slice_end(exporter *x, dim size, dim start, int64_t step, dim count)
{
    dim_table *t = x->g->dims;
    const dim stop = dim_add(t, start, dim_mul(t, count, dim_const(t, step)));
    return step > 0 && stop == size ? dim_const(t, INT64_MAX) : stop;
}

/* size - k as -k, where k is a constant over 0: counted from the end. */
static dim from_end(exporter *x, dim d, dim size)
{
    int64_t k;
    const dim away = dim_sub(x->g->dims, d, size);
    if (!dim_is_const(x->g->dims, d, NULL) && dim_is_const(x->g->dims, away, &k) && k < 0) return away;
    return d;
}

/* Backwards, an end before the first element is a number that no size reaches: -1 would mean the last element. */
static const char *end_backwards(exporter *x, dim stop)
{
    const dim_range r = dim_range_of(x->g->dims, stop);
    const char *least = export_ints(x, &(int64_t){ INT64_MIN }, 1);
    if (r.max < 0) return least;
    const char *at = export_size(x, stop);
    if (r.min >= 0 || x->status) return at;
    const char *zero = export_ints(x, &(int64_t){ 0 }, 1);
    const char *is_before = export_emit(x, x->scope, "Less", (const char *[]){ at, zero }, 2);
    return export_emit(x, x->scope, "Where", (const char *[]){ is_before, least, at }, 3);
}

static const char *joined(exporter *x, const char *const *part, uint32_t count)
{
    if (count == 1) return part[0];
    const char *name = export_fresh(x, "sizes");
    export_node to = node_begin(x, "Concat");
    for (uint32_t i = 0; i < count; i++) node_in(x, &to, part[i]);
    node_out(x, &to, name);
    node_int(x, &to, "axis", 0);
    node_end(x, &to, x->scope);
    return name;
}

void export_slice(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_slice *a = n->attrs;
    const ir_value *from = ir_value_at(x->g, n->in[0]);
    dim start[SINTER_RANK_MAX], stop[SINTER_RANK_MAX];
    const char *last[SINTER_RANK_MAX];
    int64_t axes[SINTER_RANK_MAX], step[SINTER_RANK_MAX];
    uint32_t count = 0;
    bool is_backwards = false;
    for (uint32_t i = 0; i < from->rank && i < a->step.count; i++) {
        const dim first = export_dim(&a->start, i), size = export_dim(&a->size, i);
        if (is_k(x, first, 0) && a->step.at[i] == 1 && size == from->dim[i]) continue;
        axes[count] = i;
        step[count] = a->step.at[i];
        stop[count] = slice_end(x, from->dim[i], first, step[count], size);
        if (step[count] > 0) stop[count] = from_end(x, stop[count], from->dim[i]);
        is_backwards = is_backwards || step[count] < 0;
        start[count++] = from_end(x, first, from->dim[i]);
    }
    if (!count) { /* nothing is cut */
        const export_row same = { .type = "Identity" };
        export_plain(x, n, &same);
        return;
    }
    for (uint32_t i = 0; is_backwards && i < count; i++)
        last[i] = step[i] < 0 ? end_backwards(x, stop[i]) : export_size(x, stop[i]);
    const char *in[4] = { export_sizes(x, start, count) };
    in[2] = export_ints(x, axes, count);
    in[3] = export_ints(x, step, count);
    in[1] = is_backwards ? joined(x, last, count) : export_sizes(x, stop, count);
    bool has_steps = false;
    for (uint32_t i = 0; i < count; i++) has_steps = has_steps || step[i] != 1;
    export_node to = begin(x, n, row->type);
    for (uint32_t i = 0; i < (has_steps ? 4u : 3u); i++) node_in(x, &to, in[i]);
    end(x, &to);
}

void export_concat(exporter *x, const ir_node *n, const export_row *row)
{
    export_node to = begin(x, n, row->type);
    node_int(x, &to, "axis", ((const attrs_concat *)n->attrs)->axis);
    end(x, &to);
}

void export_pad(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_pad *a = n->attrs;
    dim pads[2 * SINTER_RANK_MAX];
    const uint32_t rank = a->begin.count;
    for (uint32_t i = 0; i < rank && i < SINTER_RANK_MAX; i++) {
        pads[i] = export_dim(&a->begin, i);
        pads[rank + i] = export_dim(&a->end, i);
    }
    const char *list = export_sizes(x, pads, 2 * rank);
    export_node to = node_begin(x, row->type);
    node_in(x, &to, export_name(x, n->in[0]));
    node_in(x, &to, list);
    if (n->count_in > 1 && n->in[1]) node_in(x, &to, export_name(x, n->in[1]));
    node_outs(x, &to, n);
    node_text(x, &to, "mode", attr_items_pad_mode[a->mode]);
    end(x, &to);
}

/* ---- indices ---- */

static void with_axis(exporter *x, const ir_node *n, const export_row *row, const char *name, int64_t axis)
{
    export_node to = begin(x, n, row->type);
    node_int(x, &to, name, axis);
    end(x, &to);
}

void export_gather(exporter *x, const ir_node *n, const export_row *row)
{
    with_axis(x, n, row, "axis", ((const attrs_gather *)n->attrs)->axis);
}

void export_gather_elements(exporter *x, const ir_node *n, const export_row *row)
{
    with_axis(x, n, row, "axis", ((const attrs_gather_elements *)n->attrs)->axis);
}

void export_gather_nd(exporter *x, const ir_node *n, const export_row *row)
{
    with_axis(x, n, row, "batch_dims", ((const attrs_gather_nd *)n->attrs)->batch_dims);
}

static void reduction(exporter *x, export_node *to, int64_t kind)
{
    if (kind != scatter_kind_set) node_text(x, to, "reduction", attr_items_scatter_kind[kind]);
}

void export_scatter_elements(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_scatter_elements *a = n->attrs;
    export_node to = begin(x, n, row->type);
    node_int(x, &to, "axis", a->axis);
    reduction(x, &to, a->kind);
    end(x, &to);
}

void export_scatter_nd(exporter *x, const ir_node *n, const export_row *row)
{
    export_node to = begin(x, n, row->type);
    reduction(x, &to, ((const attrs_scatter_nd *)n->attrs)->kind);
    end(x, &to);
}

void export_tensor_scatter(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_tensor_scatter *a = n->attrs;
    export_node to = begin(x, n, row->type);
    node_int(x, &to, "axis", a->axis);
    if (a->circular) node_text(x, &to, "mode", "circular");
    end(x, &to);
}

void export_one_hot(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_one_hot *a = n->attrs;
    const char *depth = export_size_scalar(x, export_dim(&a->depth, 0));
    export_node to = node_begin(x, row->type);
    node_in(x, &to, export_name(x, n->in[0]));
    node_in(x, &to, depth);
    node_in(x, &to, export_name(x, n->in[1]));
    node_outs(x, &to, n);
    node_int(x, &to, "axis", a->axis);
    end(x, &to);
}

void export_unique(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_unique *a = n->attrs;
    export_node to = begin(x, n, row->type);
    if (a->axis != -1) node_int(x, &to, "axis", a->axis);
    if (!a->sorted) node_int(x, &to, "sorted", 0);
    end(x, &to);
}

void export_compress(exporter *x, const ir_node *n, const export_row *row)
{
    const int64_t axis = ((const attrs_compress *)n->attrs)->axis;
    export_node to = begin(x, n, row->type);
    if (axis != -1) node_int(x, &to, "axis", axis);
    end(x, &to);
}

void export_reverse_sequence(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_reverse_sequence *a = n->attrs;
    export_node to = begin(x, n, row->type);
    node_int(x, &to, "batch_axis", a->batch_axis);
    node_int(x, &to, "time_axis", a->time_axis);
    end(x, &to);
}

void export_trilu(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_trilu *a = n->attrs;
    const bool has_k = a->k.count && !is_k(x, export_dim(&a->k, 0), 0);
    const char *k = has_k ? export_size_scalar(x, export_dim(&a->k, 0)) : NULL;
    export_node to = begin(x, n, row->type);
    if (k) node_in(x, &to, k);
    if (!a->upper) node_int(x, &to, "upper", 0);
    end(x, &to);
}

/* ---- made from nothing ---- */

/* 0, 1, 2 …: export_lower.c leaves no others. */
void export_range(exporter *x, const ir_node *n, const export_row *row)
{
    const char *count = export_size_scalar(x, export_dim(&((const attrs_range *)n->attrs)->count, 0));
    export_node to = node_begin(x, row->type);
    node_in(x, &to, export_name(x, n->in[0]));
    node_in(x, &to, count);
    node_in(x, &to, export_name(x, n->in[1]));
    node_outs(x, &to, n);
    end(x, &to);
}

void export_eye_like(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_eye_like *a = n->attrs;
    const char *shape = export_dims(x, &a->shape);
    const char *zeros = export_emit(x, x->scope, "ConstantOfShape", &shape, 1);
    export_node to = node_begin(x, row->type);
    node_in(x, &to, zeros);
    node_outs(x, &to, n);
    node_int(x, &to, "dtype", export_type(x, (sinter_dtype)a->type));
    if (a->k) node_int(x, &to, "k", a->k);
    end(x, &to);
}

static void random_attrs(exporter *x, export_node *to, const attrs_random *a)
{
    node_float(x, to, a->normal ? "mean" : "low", a->low);
    node_float(x, to, a->normal ? "scale" : "high", a->high);
    node_int(x, to, "dtype", export_type(x, (sinter_dtype)a->type));
    if (a->seed) node_float(x, to, "seed", (double)a->seed);
}

void export_random(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_random *a = n->attrs;
    const ir_value *y = ir_value_at(x->g, n->out[0]);
    int64_t shape[SINTER_RANK_MAX];
    bool is_static = y->rank > 0; /* a list of no sizes would read as a missing one */
    (void)row;
    for (uint32_t i = 0; i < y->rank; i++) is_static = is_static && dim_is_const(x->g->dims, y->dim[i], &shape[i]);
    const char *like = NULL;
    if (!is_static) {
        const char *sizes = export_sizes(x, y->dim, y->rank);
        like = export_emit(x, x->scope, "ConstantOfShape", &sizes, 1);
    }
    export_node to = node_begin(x, is_static ? (a->normal ? "RandomNormal" : "RandomUniform")
                                             : (a->normal ? "RandomNormalLike" : "RandomUniformLike"));
    if (like) node_in(x, &to, like);
    else node_ints(x, &to, "shape", shape, y->rank);
    node_outs(x, &to, n);
    random_attrs(x, &to, a);
    end(x, &to);
}

/* The value takes the name of the size, unless it needs one of its own. */
static void name_as(exporter *x, const ir_node *n, const char *name)
{
    const ir_region *r = ir_region_at(x->g, n->parent);
    bool is_result = false;
    for (uint32_t i = 0; i < r->result.count; i++) is_result = is_result || r->result.at[i] == n->out[0];
    if (!is_result && !x->name[n->out[0]]) {
        x->name[n->out[0]] = name;
        return;
    }
    export_node to = node_begin(x, "Identity");
    node_in(x, &to, name);
    node_outs(x, &to, n);
    end(x, &to);
}

void export_shape_value(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_shape_value *a = n->attrs;
    (void)row;
    const char *name = a->scalar ? export_size_scalar(x, export_dim(&a->value, 0)) : export_dims(x, &a->value);
    if (a->type == SINTER_DTYPE_I64) {
        name_as(x, n, name);
        return;
    }
    export_node to = node_begin(x, "Cast");
    node_in(x, &to, name);
    node_outs(x, &to, n);
    node_int(x, &to, "to", export_type(x, (sinter_dtype)a->type));
    end(x, &to);
}

/* ---- images and signals ---- */

/* Does each scale give the size that the op has? */
static bool scales_fit(exporter *x, const attrs_resize *a, const ir_value *in)
{
    for (uint32_t i = 0; i < a->scale.count; i++) {
        int64_t from, to;
        if ((double)(float)a->scale.at[i] != a->scale.at[i]) return false;
        if (a->coordinate == resize_coordinate_tf_crop_and_resize) continue;
        if (!dim_is_const(x->g->dims, in->dim[i], &from) || !dim_is_const(x->g->dims, export_dim(&a->size, i), &to))
            continue;
        if ((int64_t)((float)a->scale.at[i] * (float)from) != to) return false;
    }
    return true;
}

static const char *floats(exporter *x, const attr_reals *list)
{
    float *copy = ARENA_NEW(&x->a, float, (size_t)list->count + 1);
    if (!copy) EXPORT_FAIL(x, NO_MEMORY, "out of memory for constants");
    if (x->status) return "";
    for (uint32_t i = 0; i < list->count; i++) copy[i] = (float)list->at[i];
    return export_constant(x, NULL, SINTER_DTYPE_F32, 1, (const int64_t[]){ list->count }, copy);
}

void export_resize(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_resize *a = n->attrs;
    if (a->scale.count && !scales_fit(x, a, ir_value_at(x->g, n->in[0])))
        EXPORT_FAIL(x, UNSUPPORTED, "a resize whose scales do not give its sizes has no form in ONNX");
    const char *roi = a->roi.count ? floats(x, &a->roi) : "";
    const char *scales = a->scale.count ? floats(x, &a->scale) : "";
    const char *sizes = a->scale.count ? NULL : export_dims(x, &a->size);
    export_node to = begin(x, n, row->type);
    node_in(x, &to, roi);
    node_in(x, &to, scales);
    if (sizes) node_in(x, &to, sizes);
    node_text(x, &to, "mode", attr_items_resize_mode[a->mode]);
    node_text(x, &to, "coordinate_transformation_mode", attr_items_resize_coordinate[a->coordinate]);
    node_text(x, &to, "nearest_mode", attr_items_resize_nearest[a->nearest]);
    if (a->mode == resize_mode_cubic) node_float(x, &to, "cubic_coeff_a", a->cubic_a);
    if (a->exclude_outside) node_int(x, &to, "exclude_outside", 1);
    if (a->extrapolation != 0) node_float(x, &to, "extrapolation_value", a->extrapolation);
    if (a->antialias) node_int(x, &to, "antialias", 1);
    end(x, &to);
}

void export_nms(exporter *x, const ir_node *n, const export_row *row)
{
    export_node to = begin(x, n, row->type);
    if (((const attrs_nms *)n->attrs)->center_box) node_int(x, &to, "center_point_box", 1);
    end(x, &to);
}

void export_roi_align(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_roi_align *a = n->attrs;
    export_node to = begin(x, n, row->type);
    if (a->is_max) node_text(x, &to, "mode", "max");
    node_int(x, &to, "output_height", a->out_h);
    node_int(x, &to, "output_width", a->out_w);
    node_int(x, &to, "sampling_ratio", a->sampling);
    node_float(x, &to, "spatial_scale", a->scale);
    node_text(x, &to, "coordinate_transformation_mode", a->half_pixel ? "half_pixel" : "output_half_pixel");
    end(x, &to);
}

void export_grid_sample(exporter *x, const ir_node *n, const export_row *row)
{
    static const char *const padding[pad_mode_count] = { "zeros", "reflection", "border", "" };
    const attrs_grid_sample *a = n->attrs;
    export_node to = begin(x, n, row->type);
    node_text(x, &to, "mode", attr_items_resize_mode[a->mode]);
    node_text(x, &to, "padding_mode", padding[a->padding]);
    if (a->align_corners) node_int(x, &to, "align_corners", 1);
    end(x, &to);
}

void export_affine_grid(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_affine_grid *a = n->attrs;
    const char *size = export_dims(x, &a->size);
    export_node to = begin(x, n, row->type);
    node_in(x, &to, size);
    if (a->align_corners) node_int(x, &to, "align_corners", 1);
    end(x, &to);
}

void export_col2im(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_col2im *a = n->attrs;
    const char *image = export_dims(x, &a->image), *block = export_ints(x, a->block.at, a->block.count);
    export_node to = begin(x, n, row->type);
    node_in(x, &to, image);
    node_in(x, &to, block);
    node_list(x, &to, "dilations", &a->dilation);
    node_list(x, &to, "pads", &a->pad);
    node_list(x, &to, "strides", &a->stride);
    end(x, &to);
}

void export_dft(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_dft *a = n->attrs;
    const char *length = a->length.count ? export_size_scalar(x, export_dim(&a->length, 0)) : "";
    const char *axis = export_int(x, a->axis);
    export_node to = begin(x, n, row->type);
    node_in(x, &to, length);
    node_in(x, &to, axis);
    if (a->inverse) node_int(x, &to, "inverse", 1);
    if (a->onesided) node_int(x, &to, "onesided", 1);
    end(x, &to);
}

void export_bit_cast(exporter *x, const ir_node *n, const export_row *row)
{
    export_node to = begin(x, n, row->type);
    node_int(x, &to, "to", export_type(x, (sinter_dtype)((const attrs_bit_cast *)n->attrs)->type));
    end(x, &to);
}
