/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_index.c - operators that take positions, operators whose result's size the data decides, and those that make
 * tensors. */
#include "onnx/quirks.h"
#include <math.h>
#include <string.h>

void convert_gather(onnx_call *c)
{
    attrs_gather *a = ATTRS(c, gather);
    a->axis = call_axis(c, call_int(c, "axis", 0), call_rank(c, call_in(c, 0)));
    c->out[0] = call_emit(c, OP_gather, a, (ir_value_id[]){ call_in(c, 0), call_in(c, 1) }, 2);
}

void convert_gather_elements(onnx_call *c)
{
    attrs_gather_elements *a = ATTRS(c, gather_elements);
    a->axis = call_axis(c, call_int(c, "axis", 0), call_rank(c, call_in(c, 0)));
    c->out[0] = call_emit(c, OP_gather_elements, a, (ir_value_id[]){ call_in(c, 0), call_in(c, 1) }, 2);
}

void convert_gather_nd(onnx_call *c)
{
    attrs_gather_nd *a = ATTRS(c, gather_nd);
    a->batch_dims = call_int(c, "batch_dims", 0);
    if (a->batch_dims < 0 || a->batch_dims > SINTER_RANK_MAX)
        REJECT(c, INVALID_MODEL, "attribute batch_dims is %lld", (long long)a->batch_dims);
    c->out[0] = call_emit(c, OP_gather_nd, a, (ir_value_id[]){ call_in(c, 0), call_in(c, 1) }, 2);
}

static int64_t scatter_kind_of(onnx_call *c)
{
    static const char *const names[] = { "none", "add", "mul", "max", "min" };
    const char *how = call_text(c, "reduction", "none");
    for (int64_t i = 0; i < 5; i++)
        if (strcmp(names[i], how) == 0) return i;
    REJECT(c, UNSUPPORTED, "attribute reduction is '%s'", how);
    return 0;
}

void convert_scatter_elements(onnx_call *c)
{
    attrs_scatter_elements *a = ATTRS(c, scatter_elements);
    a->axis = call_axis(c, call_int(c, "axis", 0), call_rank(c, call_in(c, 0)));
    a->kind = scatter_kind_of(c);
    c->out[0] = call_emit(c, OP_scatter_elements, a, (ir_value_id[]){ call_in(c, 0), call_in(c, 1), call_in(c, 2) }, 3);
}

void convert_scatter_nd(onnx_call *c)
{
    attrs_scatter_nd *a = ATTRS(c, scatter_nd);
    a->kind = scatter_kind_of(c);
    c->out[0] = call_emit(c, OP_scatter_nd, a, (ir_value_id[]){ call_in(c, 0), call_in(c, 1), call_in(c, 2) }, 3);
}

void convert_tensor_scatter(onnx_call *c)
{
    attrs_tensor_scatter *a = ATTRS(c, tensor_scatter);
    const char *mode = call_text(c, "mode", "linear");
    a->axis = call_axis(c, call_int(c, "axis", -2), call_rank(c, call_in(c, 0)));
    a->circular = strcmp(mode, "circular") == 0;
    if (!a->circular && strcmp(mode, "linear") != 0) REJECT(c, INVALID_MODEL, "attribute mode is '%s'", mode);
    c->out[0] = call_emit(c, OP_tensor_scatter, a, (ir_value_id[]){ call_in(c, 0), call_in(c, 1), call_in(c, 2) },
                          call_in(c, 2) ? 3 : 2);
}

void convert_one_hot(onnx_call *c)
{
    attrs_one_hot *a = ATTRS(c, one_hot);
    dim depth = DIM_NONE;
    uint32_t count = 0;
    ir_value_id size = call_in(c, 1);
    a->axis = call_axis(c, call_int(c, "axis", -1), call_rank(c, call_in(c, 0)) + 1);
    if (!size) REJECT(c, INVALID_MODEL, "the depth is missing");
    if (c->status) return;
    if (!dtype_is_int(call_type(c, size))) { /* any number is allowed */
        double value = 0;
        if (ir_const_scalar(c->g, size, &value) && value >= 0 && value < 1e15)
            size = call_i64(c, SINTER_DTYPE_I64, (int64_t)value);
        else size = call_cast(c, size, SINTER_DTYPE_I64);
    }
    if (!call_sizes(c, size, "the depth", DIM_NONE, &depth, 1, &count) || count != 1)
        REJECT(c, INVALID_MODEL, "the depth is not one number");
    a->depth = call_dims(c, &depth, 1);
    ir_value_id index = call_in(c, 0);
    if (call_type(c, index) == SINTER_DTYPE_U64) /* what i64 cannot hold would count from the back */
        index = call_cast(c, call_2(c, OP_min, index, call_i64(c, SINTER_DTYPE_U64, INT64_MAX)), SINTER_DTYPE_I64);
    if (!dtype_is_int(call_type(c, index))) index = call_cast(c, index, SINTER_DTYPE_I64);
    c->out[0] = call_emit(c, OP_one_hot, a, (ir_value_id[]){ index, call_in(c, 2) }, 2);
}

void convert_trilu(onnx_call *c)
{
    attrs_trilu *a = ATTRS(c, trilu);
    dim k = call_k(c, 0);
    uint32_t count = 1;
    a->upper = call_int(c, "upper", 1) != 0;
    if (call_in(c, 1) && (!call_numbers(c, call_in(c, 1), "k", &k, 1, &count) || count != 1))
        REJECT(c, INVALID_MODEL, "k is not one number");
    a->k = call_dims(c, &k, 1);
    c->out[0] = call_emit(c, OP_trilu, a, (ir_value_id[]){ call_in(c, 0) }, 1);
}

void convert_reverse_sequence(onnx_call *c)
{
    attrs_reverse_sequence *a = ATTRS(c, reverse_sequence);
    a->batch_axis = call_int(c, "batch_axis", 1);
    a->time_axis = call_int(c, "time_axis", 0);
    if ((uint64_t)a->batch_axis > 1 || (uint64_t)a->time_axis > 1 || a->batch_axis == a->time_axis)
        REJECT(c, INVALID_MODEL, "batch_axis %lld and time_axis %lld", (long long)a->batch_axis,
               (long long)a->time_axis);
    c->out[0] = call_emit(c, OP_reverse_sequence, a, (ir_value_id[]){ call_in(c, 0), call_in(c, 1) }, 2);
}

void convert_compress(onnx_call *c)
{
    attrs_compress *a = ATTRS(c, compress);
    const ir_value_id x = call_in(c, 0);
    a->axis = call_attr(c, "axis") ? call_axis(c, call_int(c, "axis", 0), call_rank(c, x)) : -1;
    c->out[0] = call_emit(c, OP_compress, a, (ir_value_id[]){ x, call_in(c, 1) }, 2);
}

void convert_unique(onnx_call *c)
{
    attrs_unique *a = ATTRS(c, unique);
    const ir_value_id x = call_in(c, 0);
    a->axis = call_attr(c, "axis") ? call_axis(c, call_int(c, "axis", 0), call_rank(c, x)) : -1;
    a->sorted = call_int(c, "sorted", 1) != 0;
    uint32_t outputs = 1;
    for (uint32_t i = 1; i < 4; i++)
        if (call_wants(c, i)) outputs = i + 1;
    const ir_node_id n = call_node(c, OP_unique, a, &x, 1, outputs);
    for (uint32_t i = 0; i < outputs && i < c->count_out; i++) c->out[i] = call_result(c, n, i);
}

void convert_array_feature_extractor(onnx_call *c)
{
    attrs_gather *a = ATTRS(c, gather);
    const uint32_t rank = call_rank(c, call_in(c, 0));
    a->axis = rank ? rank - 1 : 0;
    ir_value_id index = call_in(c, 1);
    if (call_rank(c, index) > 1) {
        dim d[SINTER_RANK_MAX];
        const dim flat = dim_product(c->g->dims, d, call_shape(c, index, d));
        index = call_reshape(c, index, &flat, 1);
    }
    c->out[0] = call_emit(c, OP_gather, a, (ir_value_id[]){ call_in(c, 0), index }, 2);
    if (rank == 1) c->out[0] = call_unsqueeze(c, c->out[0], 0);
}

/* ---- made from nothing ---- */
static void lists(onnx_call *c, const onnx_attr *a)
{
    view v;
    const bool ints = a->type == ONNX_INTS;
    const int64_t count = ints ? a->ints.count : a->floats.count;
    if (!view_init(&v, ints ? SINTER_DTYPE_I64 : SINTER_DTYPE_F32, 1, &count, NULL)) return;
    v.data = arena_alloc(&c->g->a, size_mul((size_t)count, ints ? 8 : 4), 8);
    if (!v.data) {
        c->status = FAIL_MEMORY(c->e, "a constant");
        return;
    }
    if (count && ints) memcpy(v.data, a->ints.at, (size_t)count * 8);
    if (count && !ints) memcpy(v.data, a->floats.at, (size_t)count * 4);
    c->out[0] = call_const(c, &v);
}

void convert_constant(onnx_call *c)
{
    static const char *const names[] = { "value",      "value_float",  "value_int",    "value_floats",
                                         "value_ints", "sparse_value", "value_string", "value_strings" };
    const onnx_attr *a = NULL;
    for (uint32_t i = 0; i < COUNT_OF(names) && !a; i++) a = call_attr(c, names[i]);
    view v;
    if (!a) REJECT(c, INVALID_MODEL, "no value");
    if (c->status) return;
    if (a->type == ONNX_STRING || a->type == ONNX_STRINGS ||
        (a->type == ONNX_TENSOR && a->t && a->t->type == ONNX_TYPE_STRING)) {
        c->out[0] = quirk_constant_text(c, a);
        return;
    }
    switch (a->type) {
    case ONNX_TENSOR:
        if (!a->t) REJECT(c, INVALID_MODEL, "no value");
        if (!c->status && call_tensor(c, a->t, &v)) c->out[0] = call_const(c, &v);
        break;
    case ONNX_SPARSE:
        if (!a->sparse) REJECT(c, INVALID_MODEL, "no value");
        if (!c->status && call_sparse(c, a->sparse, &v)) c->out[0] = call_const(c, &v);
        break;
    case ONNX_FLOAT: c->out[0] = call_scalar(c, SINTER_DTYPE_F32, (double)a->f); break;
    case ONNX_INT: c->out[0] = call_i64(c, SINTER_DTYPE_I64, a->i); break;
    case ONNX_FLOATS:
    case ONNX_INTS: lists(c, a); break;
    default: REJECT(c, INVALID_MODEL, "attribute %s has type %d", a->name, a->type); break;
    }
}

void convert_constant_of_shape(onnx_call *c)
{
    dim d[SINTER_RANK_MAX];
    uint32_t rank = 0;
    const onnx_attr *a = call_attr(c, "value");
    view v;
    ir_value_id value = 0;
    if (a && a->t) {
        if (!call_tensor(c, a->t, &v)) return;
        if (view_count(&v) != 1)
            REJECT(c, INVALID_MODEL, "attribute value has %lld elements, 1 is wanted", (long long)view_count(&v));
        v.rank = 0;
        value = call_const(c, &v);
    } else {
        value = call_scalar(c, SINTER_DTYPE_F32, 0);
    }
    if (!call_in(c, 0)) REJECT(c, INVALID_MODEL, "the shape is missing");
    if (c->status || !call_sizes(c, call_in(c, 0), "the shape", DIM_NONE, d, SINTER_RANK_MAX, &rank)) {
        REJECT(c, UNSUPPORTED, "a shape of that rank");
        return;
    }
    int64_t size = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (dim_is_const(c->g->dims, d[i], &size) && size < 0)
            REJECT(c, INVALID_MODEL, "the shape has a size of %lld", (long long)size);
    c->out[0] = rank ? call_expand(c, value, d, rank) : call_1(c, OP_identity, value);
}

void convert_range(onnx_call *c)
{
    dim_table *t = c->g->dims;
    ir_value_id in[3];
    dim at[3], count = DIM_NONE;
    double v[3];
    bool known = true, real = true;
    for (uint32_t i = 0; i < 3; i++) {
        in[i] = call_in(c, i);
        if (!in[i]) REJECT(c, INVALID_MODEL, "input %u is missing", i);
        if (c->status) return;
        if (call_rank(c, in[i])) in[i] = call_reshape(c, in[i], NULL, 0);
        uint32_t n = 0;
        known = call_known(c, in[i], &at[i], 1, &n) && n == 1 && known;
        real = ir_const_scalar(c->g, in[i], &v[i]) && real;
    }
    const sinter_dtype type = call_type(c, in[0]);
    int64_t step = 0;
    if (known && dtype_is_int(type) && dim_is_const(t, at[2], &step)) {
        if (step == 0 || step == INT64_MIN) REJECT(c, INVALID_MODEL, "a step of %lld", (long long)step);
        if (c->status) return;
        const dim span = step > 0 ? dim_sub(t, at[1], at[0]) : dim_sub(t, at[0], at[1]);
        count = call_clamp_max(c, dim_ceildiv(t, span, call_k(c, step > 0 ? step : -step)), call_k(c, 0));
    } else if (real) {
        const double n = ceil((v[1] - v[0]) / v[2]);
        if (!(n < 1e15)) REJECT(c, INVALID_MODEL, "a range from %g to %g by %g", v[0], v[1], v[2]);
        count = call_k(c, n > 0 ? (int64_t)n : 0);
    } else {
        const sinter_dtype f64 = SINTER_DTYPE_F64;
        const ir_value_id span = call_2(c, OP_sub, call_cast(c, in[1], f64), call_cast(c, in[0], f64));
        const ir_value_id n =
            call_cast(c, call_1(c, OP_ceil, call_2(c, OP_div, span, call_cast(c, in[2], f64))), SINTER_DTYPE_I64);
        const ir_value_id whole = call_2(c, OP_max, n, call_i64(c, SINTER_DTYPE_I64, 0));
        uint32_t one = 0;
        if (c->status || !call_sizes(c, whole, "the length", DIM_NONE, &count, 1, &one)) return;
    }
    attrs_range *a = ATTRS(c, range);
    a->count = call_dims(c, &count, 1);
    c->out[0] = call_emit(c, OP_range, a, (ir_value_id[]){ in[0], in[2] }, 2);
}

void convert_eye_like(onnx_call *c)
{
    dim d[SINTER_RANK_MAX];
    attrs_eye_like *a = ATTRS(c, eye_like);
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_shape(c, x, d);
    if (!x || rank != 2) REJECT(c, INVALID_MODEL, "an input of rank %u", rank);
    a->shape = call_dims(c, d, rank);
    a->type = call_attr(c, "dtype") ? call_dtype(c, call_int(c, "dtype", 1)) : call_type(c, x);
    a->k = call_int(c, "k", 0);
    c->out[0] = call_emit(c, OP_eye_like, a, NULL, 0);
}

/* ---- random ---- */
static ir_value_id random_of(onnx_call *c, bool normal, double low, double high, sinter_dtype type, const dim *d,
                             uint32_t rank)
{
    attrs_random *a = ATTRS(c, random);
    const double seed = call_real(c, "seed", 0);
    int64_t bits = 0;
    memcpy(&bits, &seed, sizeof bits);
    a->normal = normal;
    a->low = low;
    a->high = high;
    a->seed = call_attr(c, "seed") ? bits : (int64_t)c->g->node.count; /* different nodes, different numbers */
    a->type = type;
    a->shape = call_dims(c, d, rank);
    return call_emit(c, OP_random, a, NULL, 0);
}

void convert_random(onnx_call *c) /* arg: 1 normal, 2 like an input */
{
    dim d[SINTER_RANK_MAX];
    uint32_t rank = 0;
    attr_ints list;
    const bool normal = c->arg & 1;
    sinter_dtype type = call_dtype(c, call_int(c, "dtype", 1));
    if (c->arg & 2) {
        rank = call_shape(c, call_in(c, 0), d);
        if (!call_in(c, 0)) REJECT(c, INVALID_MODEL, "input 0 is missing");
        if (!call_attr(c, "dtype")) type = call_type(c, call_in(c, 0));
    } else {
        call_ints(c, "shape", &list);
        rank = list.count;
        if (rank > SINTER_RANK_MAX) REJECT(c, UNSUPPORTED, "rank %u", rank);
        for (uint32_t i = 0; i < rank && !c->status; i++) {
            if (list.at[i] < 0) REJECT(c, INVALID_MODEL, "a size of %lld", (long long)list.at[i]);
            d[i] = call_k(c, list.at[i]);
        }
    }
    if (c->status) return;
    c->out[0] = random_of(c, normal, normal ? call_real(c, "mean", 0) : call_real(c, "low", 0),
                          normal ? call_real(c, "scale", 1) : call_real(c, "high", 1), type, d, rank);
}

void convert_bernoulli(onnx_call *c)
{
    dim d[SINTER_RANK_MAX];
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_shape(c, x, d);
    if (!x) REJECT(c, INVALID_MODEL, "input 0 is missing");
    if (c->status) return;
    const sinter_dtype type = call_attr(c, "dtype") ? call_dtype(c, call_int(c, "dtype", 1)) : call_type(c, x);
    const ir_value_id dice = random_of(c, false, 0, 1, call_type(c, x), d, rank);
    c->out[0] = call_cast(c, call_2(c, OP_lt, dice, x), type);
}
