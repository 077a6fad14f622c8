/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_call.c - attributes with defaults, and sizes that are known or bound. */
#include "onnx/onnx_call.h"
#include "onnx/importer.h"
#include <math.h>
#include <string.h>

bool call_wants(const onnx_call *c, uint32_t output)
{
    return output < c->node->out.count && c->node->out.at[output][0];
}

static bool typed(onnx_call *c, const onnx_attr *a, onnx_attr_type type, const char *wanted)
{
    if (!a) return false;
    if (a->type == (int32_t)type) return true;
    REJECT(c, INVALID_MODEL, "attribute %s has type %d, %s is wanted", a->name, a->type, wanted);
    return false;
}

int64_t call_int(onnx_call *c, const char *name, int64_t initial)
{
    const onnx_attr *a = call_attr(c, name);
    return typed(c, a, ONNX_INT, "an integer") ? a->i : initial;
}

double call_real(onnx_call *c, const char *name, double initial)
{
    const onnx_attr *a = call_attr(c, name);
    return typed(c, a, ONNX_FLOAT, "a number") ? (double)a->f : initial;
}

const char *call_text(onnx_call *c, const char *name, const char *initial)
{
    const onnx_attr *a = call_attr(c, name);
    return typed(c, a, ONNX_STRING, "a string") ? a->s.at : initial;
}

bool call_ints(onnx_call *c, const char *name, attr_ints *out)
{
    *out = (attr_ints){ 0 };
    const onnx_attr *a = call_attr(c, name);
    if (!a) return false;
    if (a->type == 0) return true; /* an empty list of an old file */
    if (!typed(c, a, ONNX_INTS, "a list of integers")) return false;
    if (a->ints.count > ATTR_INTS_MAX) {
        REJECT(c, UNSUPPORTED, "attribute %s has %u values, up to %d are supported", name, a->ints.count,
               ATTR_INTS_MAX);
        return false;
    }
    out->count = a->ints.count;
    if (out->count) memcpy(out->at, a->ints.at, out->count * sizeof(int64_t));
    return true;
}

bool call_reals(onnx_call *c, const char *name, attr_reals *out)
{
    *out = (attr_reals){ 0 };
    const onnx_attr *a = call_attr(c, name);
    if (!a) return false;
    if (a->type == 0) return true;
    if (!typed(c, a, ONNX_FLOATS, "a list of numbers")) return false;
    if (a->floats.count > ATTR_REALS_MAX) {
        REJECT(c, UNSUPPORTED, "attribute %s has %u values, up to %d are supported", name, a->floats.count,
               ATTR_REALS_MAX);
        return false;
    }
    out->count = a->floats.count;
    for (uint32_t i = 0; i < out->count; i++) out->at[i] = (double)a->floats.at[i];
    return true;
}

bool call_tensor(onnx_call *c, const onnx_tensor *t, view *out)
{
    if (c->b.status) return false;
    c->b.status = importer_tensor(c->im, t, out);
    return !c->b.status;
}

bool call_sparse(onnx_call *c, const onnx_sparse *t, view *out)
{
    if (c->b.status) return false;
    c->b.status = importer_sparse(c->im, t, out);
    return !c->b.status;
}

sinter_dtype call_dtype(onnx_call *c, int64_t onnx_type)
{
    sinter_dtype type = SINTER_DTYPE_NONE;
    const int32_t number = onnx_type < 0 || onnx_type > 1000 ? -1 : (int32_t)onnx_type;
    if (!onnx_dtype_of(number, &type)) {
        REJECT(c, UNSUPPORTED, "element type %lld (%s)", (long long)onnx_type, onnx_type_name(number));
        return SINTER_DTYPE_F32;
    }
    return type;
}

int64_t call_axis(onnx_call *c, int64_t axis, uint32_t rank)
{
    if (axis >= -(int64_t)rank && axis < (int64_t)rank) return axis < 0 ? axis + (int64_t)rank : axis;
    REJECT(c, INVALID_MODEL, "axis %lld of a tensor of rank %u", (long long)axis, rank);
    return 0;
}

/* ---- values ---- */
uint32_t call_shape(const onnx_call *c, ir_value_id v, dim *out)
{
    const ir_value *x = ir_value_at(c->b.g, v);
    memcpy(out, x->dim, sizeof x->dim);
    return x->rank;
}

ir_value_id call_pairs(onnx_call *c, uint32_t input)
{
    dim d[SINTER_RANK_MAX];
    int64_t parts = 2;
    const ir_value_id v = call_in(c, input);
    const uint32_t rank = v ? call_shape(c, v, d) : 0;
    if (!rank) REJECT(c, INVALID_MODEL, "input %u is missing or has no axis", input);
    else if (dim_is_const(c->b.g->dims, d[rank - 1], &parts) && parts != 2)
        REJECT(c, INVALID_MODEL, "the last axis of input %u has %lld elements, not a real and an imaginary part", input,
               (long long)parts);
    if (c->b.status) return 0;
    d[rank - 1] = call_k(c, 2);
    return build_shaped(&c->b, v, d, rank);
}

bool call_size(const onnx_call *c, ir_value_id v, uint32_t axis, int64_t *out)
{
    const ir_value *x = ir_value_at(c->b.g, v);
    return axis < x->rank && dim_is_const(c->b.g->dims, x->dim[axis], out);
}

bool call_is_empty(const onnx_call *c, ir_value_id list)
{
    int64_t length;
    return call_rank(c, list) == 1 && call_size(c, list, 0, &length) && !length;
}

ir_value_id call_of_length(onnx_call *c, ir_value_id list, uint32_t want)
{
    int64_t length;
    if (c->b.status || !list || call_rank(c, list) != 1 || call_size(c, list, 0, &length)) return list;
    const dim d = call_k(c, want);
    return build_shaped(&c->b, list, &d, 1);
}

static bool const_view(onnx_call *c, ir_value_id v, const char *what, uint32_t max, view *out)
{
    if (c->b.status) return false;
    if (!ir_const_view(c->b.g, v, out)) {
        REJECT(c, UNSUPPORTED, "%s is computed while the model runs; a constant is wanted", what);
        return false;
    }
    (void)ir_look(c->b.g, v);
    if (view_count(out) > (int64_t)max) {
        REJECT(c, UNSUPPORTED, "%s has %lld elements, up to %u are supported", what, (long long)view_count(out), max);
        return false;
    }
    return true;
}

bool call_const_ints(onnx_call *c, ir_value_id v, const char *what, int64_t *out, uint32_t max, uint32_t *count)
{
    *count = 0;
    const ir_value *x = ir_value_at(c->b.g, v);
    if (v && !c->b.status && x->shape_value && x->shape_count <= max) {
        bool all = true;
        for (uint32_t i = 0; i < x->shape_count; i++)
            all = all && dim_is_const(c->b.g->dims, x->shape_value[i], &out[i]);
        *count = x->shape_count;
        if (all) return true;
        *count = 0;
    }
    if (v && call_is_empty(c, v)) return !c->b.status;
    view w;
    if (!const_view(c, v, what, max, &w)) return false;
    *count = (uint32_t)view_count(&w);
    for (uint32_t i = 0; i < *count; i++) out[i] = dtype_load_i64(w.dtype, w.data, i);
    return true;
}

bool call_const_reals(onnx_call *c, ir_value_id v, const char *what, double *out, uint32_t max, uint32_t *count)
{
    view w;
    *count = 0;
    if (!const_view(c, v, what, max, &w)) return false;
    *count = (uint32_t)view_count(&w);
    for (uint32_t i = 0; i < *count; i++) out[i] = dtype_load_f64(w.dtype, w.data, i);
    return true;
}

bool call_known(onnx_call *c, ir_value_id v, dim *out, uint32_t max, uint32_t *count)
{
    *count = 0;
    if (c->b.status || !v) return false;
    const ir_value *x = ir_value_at(c->b.g, v);
    if (x->shape_value) {
        if (x->shape_count > max) return false;
        *count = x->shape_count;
        for (uint32_t i = 0; i < *count; i++) out[i] = x->shape_value[i];
        return true;
    }
    view w;
    if (!dtype_is_int(x->dtype) || !ir_const_view(c->b.g, v, &w) || view_count(&w) > (int64_t)max) return false;
    (void)ir_look(c->b.g, v);
    *count = (uint32_t)view_count(&w);
    for (uint32_t i = 0; i < *count; i++) out[i] = call_k(c, dtype_load_i64(w.dtype, w.data, i));
    return true;
}

static bool bound_late(onnx_call *c, ir_value_id v, const char *what, dim bound, bool is_signed, dim *out, uint32_t max,
                       uint32_t *count)
{
    if (call_known(c, v, out, max, count)) return true;
    if (c->b.status) return false;
    int64_t length = 1;
    if (max == 1) v = call_of_length(c, v, 1);
    if (c->b.status) return false;
    const ir_value *x = ir_value_at(c->b.g, v);
    if (!dtype_is_int(x->dtype) || x->rank > 1) {
        REJECT(c, INVALID_MODEL, "%s has type %s and rank %u; a list of integers is wanted", what,
               sinter_dtype_name(x->dtype), x->rank);
        return false;
    }
    if (x->rank == 1 && (!dim_is_const(c->b.g->dims, x->dim[0], &length) || length > (int64_t)max)) {
        REJECT(c, UNSUPPORTED, "%s has a length that is not known, or over %u", what, max);
        return false;
    }
    attrs_bind *b = DEFAULTS(bind);
    for (uint32_t i = 0; i < (uint32_t)length; i++)
        out[i] = is_signed ? dim_symbol_late_signed(c->b.g->dims, "k") : dim_symbol_late(c->b.g->dims, "n", bound);
    b->kind = bind_kind_raw;
    b->symbols = build_dims(&c->b, out, (uint32_t)length);
    build_bind(&c->b, v, b);
    *count = (uint32_t)length;
    return !c->b.status;
}

bool call_sizes(onnx_call *c, ir_value_id v, const char *what, dim bound, dim *out, uint32_t max, uint32_t *count)
{
    return bound_late(c, v, what, bound, false, out, max, count);
}

bool call_numbers(onnx_call *c, ir_value_id v, const char *what, dim *out, uint32_t max, uint32_t *count)
{
    return bound_late(c, v, what, DIM_NONE, true, out, max, count);
}

dim call_clamp_min(onnx_call *c, dim a, dim b)
{
    dim_table *t = c->b.g->dims;
    if (a == b) return a;
    const dim_range r = dim_range_of(t, dim_sub(t, b, a));
    return r.min >= 0 ? a : r.max <= 0 ? b : dim_min(t, a, b);
}

dim call_clamp_max(onnx_call *c, dim a, dim b)
{
    dim_table *t = c->b.g->dims;
    if (a == b) return a;
    const dim_range r = dim_range_of(t, dim_sub(t, b, a));
    return r.min >= 0 ? b : r.max <= 0 ? a : dim_max(t, a, b);
}

dim call_quotient(onnx_call *c, dim a, dim b)
{
    dim exact = DIM_NONE;
    return dim_divide_exact(c->b.g->dims, a, b, &exact) ? exact : dim_floordiv(c->b.g->dims, a, b);
}
