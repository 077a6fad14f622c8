/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - see values.h. One function for what indexes, one for what passes elements on, one for scalar functions. */
#include "ops/values.h"

#include "core/dtype.h"
#include <math.h>

enum { CONST_MAX = 1 << 16, SMALL = 9 };

static void narrow(values_call *c, uint32_t i, double min, double max)
{
    if (i >= c->count_in) return;
    value_range *r = &c->operand[i];
    if (min > r->min) r->min = min;
    if (max < r->max) r->max = max;
}

static void narrow_to(values_call *c, uint32_t i, value_range r)
{
    narrow(c, i, r.min, r.max);
}

static int64_t dim_least(const values_call *c, dim d)
{
    const dim_range r = dim_range_of(c->dims, d);
    return r.min > 0 ? r.min : 0;
}

static double dim_most(const values_call *c, dim d)
{
    const dim_range r = dim_range_of(c->dims, d);
    return r.max == INT64_MAX ? INFINITY : (double)r.max;
}

/* The smallest and the largest element of an operand that is known while building. */
static bool known(const values_call *c, uint32_t i, value_range *out)
{
    const infer_value *v = &c->in[i];
    int64_t count = 1;
    *out = (value_range){ INFINITY, -INFINITY };
    if (v->shape_value) {
        for (uint32_t k = 0; k < v->shape_count; k++) {
            const dim_range r = dim_range_of(c->dims, v->shape_value[k]);
            if ((double)r.min < out->min) out->min = (double)r.min;
            if (dim_most(c, v->shape_value[k]) > out->max) out->max = dim_most(c, v->shape_value[k]);
        }
        return out->min <= out->max && isfinite(out->max);
    }
    for (uint32_t k = 0; k < v->rank && count <= CONST_MAX; k++) count *= dim_least(c, v->dim[k]);
    if (!v->data || count > CONST_MAX) return false;
    for (int64_t k = 0; k < count; k++) {
        const double x = dtype_load_f64(v->dtype, v->data, k);
        if (!isfinite(x)) return false;
        if (x < out->min) out->min = x;
        if (x > out->max) out->max = x;
    }
    return out->min <= out->max;
}

/* ---- indices, lengths, sizes ---- */

/* Operand i indexes an axis of so many elements; ONNX counts from the end, too. */
static void index_of(values_call *c, uint32_t i, int64_t size)
{
    narrow(c, i, size ? -(double)size : 0, size ? (double)size - 1 : 0);
}

static int64_t axis_size(const values_call *c, int64_t axis)
{
    return axis >= 0 && axis < (int64_t)c->in[0].rank ? dim_least(c, c->in[0].dim[axis]) : 0;
}

/* Rows of coordinates: one range serves all of them. */
static void coordinates(values_call *c, int64_t first_axis)
{
    const infer_value *v = &c->in[1];
    const double parts = v->rank ? dim_most(c, v->dim[v->rank - 1]) : 0;
    int64_t least = INT64_MAX;
    for (int64_t k = first_axis; (double)(k - first_axis) < parts && k < (int64_t)c->in[0].rank; k++) {
        if (axis_size(c, k) < least) least = axis_size(c, k);
    }
    if (least != INT64_MAX) index_of(c, 1, least);
}

static void unpooled(values_call *c)
{
    double count = 1;
    for (uint32_t k = 0; k < c->out[0].rank; k++) count *= (double)dim_least(c, c->out[0].dim[k]);
    narrow(c, 1, 0, count > 0 ? count - 1 : 0);
}

/* Sizes that a run reads from data: small ones, where that is permitted. */
static void sizes(values_call *c, const attrs_bind *a)
{
    if (a->kind != bind_kind_raw) return;
    for (uint32_t k = 0; k < a->symbols.count; k++) {
        const dim_range r = dim_range_of(c->dims, (dim)a->symbols.at[k]);
        const int64_t min = r.min > 0 ? r.min : 0, small = min > SMALL ? min : SMALL;
        narrow(c, 0, (double)min, (double)(r.max < small ? r.max : small));
    }
}

/* Narrows input `start`: all rows of input `rows`, from there on, have to fit into input `cache`. */
static void narrow_start(values_call *c, uint32_t cache, uint32_t rows, uint32_t start, int64_t axis)
{
    if (axis < 0 || axis >= (int64_t)c->in[cache].rank || axis >= (int64_t)c->in[rows].rank) return;
    const double room = (double)dim_least(c, c->in[cache].dim[axis]) - dim_most(c, c->in[rows].dim[axis]);
    narrow(c, start, 0, room > 0 ? room : 0);
}

static void indices(values_call *c)
{
    const void *a = c->attrs;
    switch (c->op) {
    case OP_gather: index_of(c, 1, axis_size(c, ((const attrs_gather *)a)->axis)); break;
    case OP_gather_elements: index_of(c, 1, axis_size(c, ((const attrs_gather_elements *)a)->axis)); break;
    case OP_gather_nd: coordinates(c, ((const attrs_gather_nd *)a)->batch_dims); break;
    case OP_scatter_elements: index_of(c, 1, axis_size(c, ((const attrs_scatter_elements *)a)->axis)); break;
    case OP_scatter_nd: coordinates(c, 0); break;
    case OP_tensor_scatter: narrow_start(c, 0, 1, 2, ((const attrs_tensor_scatter *)a)->axis); break;
    case OP_attention:
        if (c->count_in > 4 && c->in[1].rank == 4) narrow(c, 4, 0, (double)dim_least(c, c->in[1].dim[2]));
        if (c->count_in > 7) narrow_start(c, 1, 5, 7, 2);
        break;
    case OP_reverse_sequence: {
        const int64_t size = axis_size(c, ((const attrs_reverse_sequence *)a)->time_axis);
        narrow(c, 1, size > 0, (double)size);
        break;
    }
    case OP_lstm:
    case OP_gru:
    case OP_rnn: narrow(c, 4, axis_size(c, 0) > 0, (double)axis_size(c, 0)); break;
    case OP_roi_align: narrow(c, 2, 0, axis_size(c, 0) ? (double)axis_size(c, 0) - 1 : 0); break;
    case OP_max_unpool: unpooled(c); break;
    case OP_one_hot: {
        const attrs_one_hot *o = a;
        const int64_t depth = o->depth.count ? dim_least(c, (dim)o->depth.at[0]) : 0;
        if (depth) narrow(c, 0, 0, (double)depth - 1);
        break;
    }
    case OP_bind: sizes(c, a); break;
    default: break;
    }
}

/* ---- results whose elements are elements of operands, or sums of them ---- */

static value_range part_of(value_range r, double count)
{
    if (!(count > 1)) return r;
    return (value_range){ r.min < 0 ? r.min / count : r.min > 0 ? r.min : 0, r.max > 0 ? r.max / count : r.max };
}

static double reduced(const values_call *c)
{
    double from = 1, to = 1;
    for (uint32_t k = 0; k < c->in[0].rank; k++) from *= dim_most(c, c->in[0].dim[k]);
    for (uint32_t k = 0; k < c->out[0].rank; k++) to *= (double)dim_least(c, c->out[0].dim[k]);
    return to > 0 ? from / to : INFINITY;
}

static void passed_on(values_call *c)
{
    const value_range r = c->result[0];
    switch (c->op) {
    case OP_copy:
    case OP_reshape:
    case OP_transpose:
    case OP_slice:
    case OP_expand:
    case OP_tile:
    case OP_trilu:
    case OP_gather:
    case OP_gather_elements:
    case OP_gather_nd:
    case OP_reverse_sequence:
    case OP_compress:
    case OP_unique:
    case OP_top_k:
    case OP_max_pool: narrow_to(c, 0, r); break;
    case OP_concat:
    case OP_pad:
        for (uint32_t i = 0; i < c->count_in; i++) narrow_to(c, i, r);
        break;
    case OP_scatter_elements:
    case OP_scatter_nd:
        narrow_to(c, 0, r);
        narrow_to(c, 2, r);
        break;
    case OP_tensor_scatter:
        narrow_to(c, 0, r);
        narrow_to(c, 1, r);
        break;
    case OP_one_hot: narrow_to(c, 1, r); break;
    case OP_reduce: {
        const int64_t kind = ((const attrs_reduce *)c->attrs)->kind;
        if (kind == reduce_kind_max || kind == reduce_kind_min || kind == reduce_kind_mean) narrow_to(c, 0, r);
        if (kind == reduce_kind_sum || kind == reduce_kind_l1) narrow_to(c, 0, part_of(r, reduced(c)));
        break;
    }
    case OP_cumulate: {
        const attrs_cumulate *a = c->attrs;
        const bool is_there = a->axis >= 0 && a->axis < (int64_t)c->in[0].rank;
        if (!a->is_product && is_there) narrow_to(c, 0, part_of(r, dim_most(c, c->in[0].dim[a->axis])));
        break;
    }
    case OP_range:
        narrow_to(c, 0, part_of(r, 2));
        if (c->out[0].rank == 1) narrow_to(c, 1, part_of(r, 2 * dim_most(c, c->out[0].dim[0])));
        break;
    default: break;
    }
}

/* ---- scalar functions ---- */

/* x * y for all y of a range stays in r. */
static void times(values_call *c, uint32_t i, value_range r, value_range y)
{
    const double most = fmax(fabs(y.min), fabs(y.max)), bound = fmin(fabs(r.min), fabs(r.max));
    if (most == 0) return;
    if (y.min > 0) narrow(c, i, r.min > 0 ? r.min / y.min : r.min / most, r.max < 0 ? r.max / y.min : r.max / most);
    else if (y.max < 0) narrow(c, i, -r.max / most, -r.min / most);
    else narrow(c, i, -bound / most, bound / most);
}

static void binary(values_call *c, value_range r)
{
    value_range x, y;
    const bool has_x = known(c, 0, &x), has_y = known(c, 1, &y);
    const value_range half = { r.min / 2, r.max / 2 };
    switch (c->op) {
    case OP_add:
        if (has_y) narrow(c, 0, r.min - y.min, r.max - y.max);
        else if (has_x) narrow(c, 1, r.min - x.min, r.max - x.max);
        else narrow_to(c, 0, half), narrow_to(c, 1, half);
        break;
    case OP_sub:
        if (has_y) narrow(c, 0, r.min + y.max, r.max + y.min);
        else if (has_x) narrow(c, 1, x.max - r.max, x.min - r.min);
        else narrow_to(c, 0, half), narrow(c, 1, -half.max, -half.min);
        break;
    case OP_mul: {
        const double root = sqrt(fmin(fabs(r.min), fabs(r.max))), least = r.min > 0 ? sqrt(r.min) : -root;
        if (has_y) times(c, 0, r, y);
        else if (has_x) times(c, 1, r, x);
        else if (r.max >= 0) {
            const double most = r.min > 0 ? sqrt(r.max) : root;
            narrow(c, 0, least, most);
            narrow(c, 1, least, most);
        }
        break;
    }
    case OP_div:
        if (has_y && y.min > 0) narrow(c, 0, r.min * y.min, r.max * y.min);
        break;
    case OP_mod:
        if (has_y && y.min > 0 && (r.min > 0 || r.max < y.max - 1)) narrow_to(c, 0, r);
        break;
    case OP_min:
        narrow(c, 0, r.min, has_y && y.max <= r.max ? INFINITY : r.max);
        narrow(c, 1, r.min, has_x && x.max <= r.max ? INFINITY : r.max);
        break;
    case OP_max:
        narrow(c, 0, has_y && y.min >= r.min ? -INFINITY : r.min, r.max);
        narrow(c, 1, has_x && x.min >= r.min ? -INFINITY : r.min, r.max);
        break;
    default: break;
    }
}

static void scalar_function(values_call *c)
{
    const value_range r = c->result[0];
    value_range low, high;
    const double most = fmin(fabs(r.min), fabs(r.max));
    switch (c->op) {
    case OP_identity:
    case OP_cast:
    case OP_cast_wrap:
    case OP_ceil:
    case OP_floor:
    case OP_round: narrow_to(c, 0, r); break;
    case OP_neg: narrow(c, 0, -r.max, -r.min); break;
    case OP_abs: narrow(c, 0, -r.max, r.max); break;
    case OP_sign: break;
    case OP_relu: narrow(c, 0, r.min > 0 ? r.min : -INFINITY, r.max); break;
    case OP_where:
        narrow_to(c, 1, r);
        narrow_to(c, 2, r);
        break;
    case OP_clip:
        narrow(c, 0, known(c, 1, &low) && low.min >= r.min ? -INFINITY : r.min,
               known(c, 2, &high) && high.max <= r.max ? INFINITY : r.max);
        break;
    case OP_prelu: narrow(c, 0, -most, most); break;
    default:
        if (c->count_in == 2) binary(c, r);
        break;
    }
}

static bool is_bound(value_range r)
{
    return isfinite(r.min) || isfinite(r.max);
}

void op_values(values_call *c)
{
    if (op_is_scalar(c->op)) {
        if (is_bound(c->result[0])) scalar_function(c);
        return;
    }
    indices(c);
    if (c->count_out && is_bound(c->result[0])) passed_on(c);
}
