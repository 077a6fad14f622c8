/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_call.c - the vocabulary of conversions: attributes with defaults, sizes known or bound, and the nodes that
 * recur. */
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
    if (c->status) return false;
    c->status = importer_tensor(c->im, t, out);
    return !c->status;
}

bool call_sparse(onnx_call *c, const onnx_sparse *t, view *out)
{
    if (c->status) return false;
    c->status = importer_sparse(c->im, t, out);
    return !c->status;
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
    const ir_value *x = ir_value_at(c->g, v);
    memcpy(out, x->dim, sizeof x->dim);
    return x->rank;
}

bool call_size(const onnx_call *c, ir_value_id v, uint32_t axis, int64_t *out)
{
    const ir_value *x = ir_value_at(c->g, v);
    return axis < x->rank && dim_is_const(c->g->dims, x->dim[axis], out);
}

static bool const_view(onnx_call *c, ir_value_id v, const char *what, uint32_t max, view *out)
{
    if (c->status) return false;
    if (!ir_const_view(c->g, v, out)) {
        REJECT(c, UNSUPPORTED, "%s is computed while the model runs; a constant is wanted", what);
        return false;
    }
    if (view_count(out) > (int64_t)max) {
        REJECT(c, UNSUPPORTED, "%s has %lld elements, up to %u are supported", what, (long long)view_count(out), max);
        return false;
    }
    return true;
}

bool call_const_ints(onnx_call *c, ir_value_id v, const char *what, int64_t *out, uint32_t max, uint32_t *count)
{
    *count = 0;
    const ir_value *x = ir_value_at(c->g, v);
    if (v && !c->status && x->shape_value && x->shape_count <= max) {
        bool all = true;
        for (uint32_t i = 0; i < x->shape_count; i++) all = all && dim_is_const(c->g->dims, x->shape_value[i], &out[i]);
        *count = x->shape_count;
        if (all) return true;
        *count = 0;
    }
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
    if (c->status || !v) return false;
    const ir_value *x = ir_value_at(c->g, v);
    if (x->shape_value) {
        if (x->shape_count > max) return false;
        *count = x->shape_count;
        for (uint32_t i = 0; i < *count; i++) out[i] = x->shape_value[i];
        return true;
    }
    view w;
    if (!dtype_is_int(x->dtype) || !ir_const_view(c->g, v, &w) || view_count(&w) > (int64_t)max) return false;
    *count = (uint32_t)view_count(&w);
    for (uint32_t i = 0; i < *count; i++) out[i] = call_k(c, dtype_load_i64(w.dtype, w.data, i));
    return true;
}

static bool bound_late(onnx_call *c, ir_value_id v, const char *what, dim bound, bool is_signed, dim *out, uint32_t max,
                       uint32_t *count)
{
    if (call_known(c, v, out, max, count)) return true;
    if (c->status) return false;
    int64_t length = 1;
    const ir_value *x = ir_value_at(c->g, v);
    if (!dtype_is_int(x->dtype) || x->rank > 1) {
        REJECT(c, INVALID_MODEL, "%s has type %s and rank %u; a list of integers is wanted", what,
               sinter_dtype_name(x->dtype), x->rank);
        return false;
    }
    if (x->rank == 1 && (!dim_is_const(c->g->dims, x->dim[0], &length) || length > (int64_t)max)) {
        REJECT(c, UNSUPPORTED, "%s has a length that is not known, or over %u", what, max);
        return false;
    }
    attrs_bind *b = ATTRS(c, bind);
    for (uint32_t i = 0; i < (uint32_t)length; i++)
        out[i] = is_signed ? dim_symbol_late_signed(c->g->dims, "k") : dim_symbol_late(c->g->dims, "n", bound);
    b->kind = bind_kind_raw;
    b->symbols = call_dims(c, out, (uint32_t)length);
    call_node(c, OP_bind, b, &v, 1, 0);
    *count = (uint32_t)length;
    return !c->status;
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
    dim_table *t = c->g->dims;
    if (a == b) return a;
    const dim_range r = dim_range_of(t, dim_sub(t, b, a));
    return r.min >= 0 ? a : r.max <= 0 ? b : dim_min(t, a, b);
}

dim call_clamp_max(onnx_call *c, dim a, dim b)
{
    dim_table *t = c->g->dims;
    if (a == b) return a;
    const dim_range r = dim_range_of(t, dim_sub(t, b, a));
    return r.min >= 0 ? b : r.max <= 0 ? a : dim_max(t, a, b);
}

dim call_quotient(onnx_call *c, dim a, dim b)
{
    dim exact = DIM_NONE;
    return dim_divide_exact(c->g->dims, a, b, &exact) ? exact : dim_floordiv(c->g->dims, a, b);
}

attr_dims call_dims(onnx_call *c, const dim *d, uint32_t count)
{
    int64_t *at = ARENA_NEW(&c->g->a, int64_t, count);
    if (!at) {
        if (!c->status) c->status = FAIL_MEMORY(c->e, "the graph");
        return (attr_dims){ 0 };
    }
    for (uint32_t i = 0; i < count; i++) at[i] = d[i];
    return (attr_dims){ .count = count, .at = at };
}

/* ---- building ---- */
void *call_attrs(onnx_call *c, op_id op)
{
    void *attrs = op_attrs_new(&c->g->a, op);
    if (attrs) return attrs;
    if (!c->status) c->status = FAIL_MEMORY(c->e, "the graph");
    return importer_spare(c->im);
}

/* Exporters compute sizes, pads and conditions with chains of ordinary operators. What such a chain says decides ranks
 * and branches, so it is computed as it is made. Weights are left to the optimiser, which folds without this limit. */
enum { FOLD_MAX = 4096 };

ir_node_id call_node(onnx_call *c, op_id op, void *attrs, const ir_value_id *in, uint32_t count_in, uint32_t count_out)
{
    if (c->status) return 0;
    for (uint32_t i = 0; i < op_at(op)->in_min && i < count_in; i++) {
        if (in[i] || op == OP_loop) continue;
        REJECT(c, INVALID_MODEL, "input %u is missing", i);
        return 0;
    }
    const ir_node_id n = ir_node_new(c->g, c->region, op, attrs, in, count_in, count_out);
    if (!n) {
        c->status = c->e->error->status ? c->e->error->status : FAIL_MEMORY(c->e, "the graph");
        return 0;
    }
    c->status = ir_infer(c->g, n);
    if (c->status) return 0;
    bool folded = false;
    c->status = ir_fold(c->g, n, FOLD_MAX, &folded);
    return n;
}

ir_value_id call_result(const onnx_call *c, ir_node_id n, uint32_t i)
{
    return n ? ir_node_at(c->g, n)->out[i] : 0;
}

ir_value_id call_emit(onnx_call *c, op_id op, void *attrs, const ir_value_id *in, uint32_t count_in)
{
    return call_result(c, call_node(c, op, attrs, in, count_in, op_at(op)->out_min), 0);
}

ir_value_id call_1(onnx_call *c, op_id op, ir_value_id x)
{
    return call_emit(c, op, NULL, &x, 1);
}
ir_value_id call_2(onnx_call *c, op_id op, ir_value_id x, ir_value_id y)
{
    return call_emit(c, op, NULL, (ir_value_id[]){ x, y }, 2);
}
ir_value_id call_3(onnx_call *c, op_id op, ir_value_id x, ir_value_id y, ir_value_id z)
{
    return call_emit(c, op, NULL, (ir_value_id[]){ x, y, z }, 3);
}

ir_value_id call_typed(onnx_call *c, op_id op, sinter_dtype type, const ir_value_id *in, uint32_t count_in)
{
    attrs_typed *a = call_attrs(c, op);
    a->type = type;
    return call_emit(c, op, a, in, count_in);
}

ir_value_id call_cast(onnx_call *c, ir_value_id v, sinter_dtype type)
{
    if (call_type(c, v) == type) return v;
    return call_typed(c, OP_cast, type, &v, 1);
}

ir_value_id call_scalar(onnx_call *c, sinter_dtype type, double value)
{
    if (c->status) return 0;
    const ir_value_id v = ir_const_f64(c->g, type, value);
    if (!v) c->status = FAIL_MEMORY(c->e, "the graph");
    return v;
}

ir_value_id call_scalar_of(onnx_call *c, ir_value_id like, double value)
{
    const sinter_dtype type = call_type(c, like);
    return call_scalar(c, type ? type : SINTER_DTYPE_F32, value);
}

ir_value_id call_i64(onnx_call *c, sinter_dtype type, int64_t value)
{
    view v;
    void *at = arena_alloc(&c->g->a, 8, 8);
    if (!at || !view_init(&v, type, 0, NULL, at)) {
        if (!c->status) c->status = FAIL_MEMORY(c->e, "the graph");
        return 0;
    }
    dtype_store_i64(type, at, 0, value);
    return call_const(c, &v);
}

ir_value_id call_const(onnx_call *c, const view *v)
{
    if (c->status) return 0;
    const ir_value_id id = ir_const(c->g, NULL, v->dtype, v->rank, v->dim, v->data);
    if (!id) c->status = FAIL_MEMORY(c->e, "the graph");
    return id;
}

ir_value_id call_reshape(onnx_call *c, ir_value_id v, const dim *d, uint32_t rank)
{
    if (c->status) return 0;
    const ir_value *x = ir_value_at(c->g, v);
    if (x->rank == rank && memcmp(x->dim, d, rank * sizeof *d) == 0) return v;
    int64_t size[SINTER_RANK_MAX], total = 1;
    bool is_static = x->data && rank <= SINTER_RANK_MAX;
    for (uint32_t i = 0; is_static && i < rank; i++)
        is_static = dim_is_const(c->g->dims, d[i], &size[i]) && size[i] >= 0 && i64_mul(total, size[i], &total);
    view w;
    if (is_static && ir_const_view(c->g, v, &w) && view_count(&w) == total) {
        const ir_value_id id = ir_const(c->g, x->name, w.dtype, rank, size, w.data);
        if (!id) c->status = FAIL_MEMORY(c->e, "the graph");
        return id;
    }
    attrs_reshape *a = ATTRS(c, reshape);
    a->shape = call_dims(c, d, rank);
    return call_emit(c, OP_reshape, a, &v, 1);
}

ir_value_id call_transpose(onnx_call *c, ir_value_id v, const int64_t *perm, uint32_t rank)
{
    bool is_same = true;
    attrs_transpose *a = ATTRS(c, transpose);
    a->perm.count = rank;
    for (uint32_t i = 0; i < rank; i++) {
        a->perm.at[i] = perm[i];
        is_same = is_same && perm[i] == (int64_t)i;
    }
    return is_same ? v : call_emit(c, OP_transpose, a, &v, 1);
}

ir_value_id call_expand(onnx_call *c, ir_value_id v, const dim *d, uint32_t rank)
{
    attrs_expand *a = ATTRS(c, expand);
    const ir_value *x = ir_value_at(c->g, v);
    if (x->rank == rank && memcmp(x->dim, d, rank * sizeof *d) == 0) return v;
    a->shape = call_dims(c, d, rank);
    return call_emit(c, OP_expand, a, &v, 1);
}

ir_value_id call_slice(onnx_call *c, ir_value_id v, uint32_t axis, dim start, int64_t step, dim size)
{
    dim first[SINTER_RANK_MAX], count[SINTER_RANK_MAX];
    attrs_slice *a = ATTRS(c, slice);
    const uint32_t rank = call_shape(c, v, count);
    a->step.count = rank;
    for (uint32_t i = 0; i < rank; i++) {
        first[i] = call_k(c, 0);
        a->step.at[i] = 1;
    }
    first[axis] = start;
    count[axis] = size;
    a->step.at[axis] = step;
    a->start = call_dims(c, first, rank);
    a->size = call_dims(c, count, rank);
    return call_emit(c, OP_slice, a, &v, 1);
}

ir_value_id call_concat(onnx_call *c, const ir_value_id *in, uint32_t count, uint32_t axis)
{
    attrs_concat *a = ATTRS(c, concat);
    a->axis = axis;
    return call_emit(c, OP_concat, a, in, count);
}

ir_value_id call_reduce(onnx_call *c, reduce_kind kind, ir_value_id v, const int64_t *axes, uint32_t count, bool keep)
{
    attrs_reduce *a = ATTRS(c, reduce);
    a->kind = kind;
    a->keep = keep;
    a->axes.count = count;
    for (uint32_t i = 0; i < count; i++) a->axes.at[i] = axes[i];
    return call_emit(c, OP_reduce, a, &v, 1);
}

ir_value_id call_along(onnx_call *c, ir_value_id v, uint32_t axis, uint32_t rank)
{
    dim d[SINTER_RANK_MAX];
    if (c->status) return 0;
    if (call_rank(c, v) == 0) return v;
    if (call_rank(c, v) != 1 || axis >= rank || rank > SINTER_RANK_MAX) {
        REJECT(c, INVALID_MODEL, "a parameter has rank %u, 1 is wanted", call_rank(c, v));
        return 0;
    }
    for (uint32_t i = 0; i < rank; i++) d[i] = i == axis ? call_dim(c, v, 0) : call_k(c, 1);
    return call_reshape(c, v, d, rank);
}

ir_value_id call_unsqueeze(onnx_call *c, ir_value_id v, uint32_t axis)
{
    dim from[SINTER_RANK_MAX], to[SINTER_RANK_MAX + 1];
    const uint32_t rank = call_shape(c, v, from);
    for (uint32_t i = 0, k = 0; i <= rank; i++) to[i] = i == axis ? call_k(c, 1) : from[k++];
    if (rank == SINTER_RANK_MAX) REJECT(c, UNSUPPORTED, "rank %u", rank + 1);
    return call_reshape(c, v, to, rank + 1);
}

ir_value_id call_squeeze(onnx_call *c, ir_value_id v, uint32_t axis)
{
    dim from[SINTER_RANK_MAX], to[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, v, from);
    uint32_t k = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (i != axis) to[k++] = from[i];
    return call_reshape(c, v, to, k);
}

ir_value_id call_softmax(onnx_call *c, op_id op, ir_value_id v, uint32_t axis)
{
    attrs_softmax *a = call_attrs(c, op); /* softmax and log_softmax have the same attributes */
    a->axis = axis;
    return call_emit(c, op, a, &v, 1);
}

ir_value_id call_matmul(onnx_call *c, ir_value_id a, ir_value_id b, bool trans_a, bool trans_b)
{
    attrs_matmul *at = ATTRS(c, matmul);
    at->trans_a = trans_a;
    at->trans_b = trans_b;
    return call_emit(c, OP_matmul, at, (ir_value_id[]){ a, b }, 2);
}

ir_value_id call_pad(onnx_call *c, ir_value_id v, pad_mode mode, const dim *begin, const dim *end, ir_value_id value)
{
    attrs_pad *a = ATTRS(c, pad);
    const uint32_t rank = call_rank(c, v);
    a->mode = mode;
    a->begin = call_dims(c, begin, rank);
    a->end = call_dims(c, end, rank);
    return call_emit(c, OP_pad, a, (ir_value_id[]){ v, value }, value ? 2 : 1);
}

ir_value_id call_shape_value(onnx_call *c, const dim *d, uint32_t count, bool is_scalar)
{
    attrs_shape_value *a = ATTRS(c, shape_value);
    a->value = call_dims(c, d, count);
    a->scalar = is_scalar;
    return call_emit(c, OP_shape_value, a, NULL, 0);
}

ir_value_id call_iota(onnx_call *c, dim count)
{
    attrs_range *a = ATTRS(c, range);
    a->count = call_dims(c, &count, 1);
    return call_emit(c, OP_range, a,
                     (ir_value_id[]){ call_i64(c, SINTER_DTYPE_I64, 0), call_i64(c, SINTER_DTYPE_I64, 1) }, 2);
}
