/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_index.c - operators that take positions, operators whose result's size the data decides, and those that make
 * tensors. */
#include "onnx/quirks.h"
#include <math.h>
#include <string.h>

void convert_gather(onnx_call *c)
{
    attrs_gather *a = DEFAULTS(gather);
    a->axis = call_axis(c, call_int(c, "axis", 0), call_rank(c, call_in(c, 0)));
    c->out[0] = build_gather(&c->b, call_in(c, 0), call_in(c, 1), a);
}

void convert_gather_elements(onnx_call *c)
{
    attrs_gather_elements *a = DEFAULTS(gather_elements);
    a->axis = call_axis(c, call_int(c, "axis", 0), call_rank(c, call_in(c, 0)));
    c->out[0] = build_gather_elements(&c->b, call_in(c, 0), call_in(c, 1), a);
}

void convert_gather_nd(onnx_call *c)
{
    attrs_gather_nd *a = DEFAULTS(gather_nd);
    a->batch_dims = call_int(c, "batch_dims", 0);
    if (a->batch_dims < 0 || a->batch_dims > SINTER_RANK_MAX)
        REJECT(c, INVALID_MODEL, "attribute batch_dims is %lld", (long long)a->batch_dims);
    c->out[0] = build_gather_nd(&c->b, call_in(c, 0), call_in(c, 1), a);
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
    attrs_scatter_elements *a = DEFAULTS(scatter_elements);
    a->axis = call_axis(c, call_int(c, "axis", 0), call_rank(c, call_in(c, 0)));
    a->kind = scatter_kind_of(c);
    c->out[0] = build_scatter_elements(&c->b, call_in(c, 0), call_in(c, 1), call_in(c, 2), a);
}

void convert_scatter_nd(onnx_call *c)
{
    attrs_scatter_nd *a = DEFAULTS(scatter_nd);
    a->kind = scatter_kind_of(c);
    c->out[0] = build_scatter_nd(&c->b, call_in(c, 0), call_in(c, 1), call_in(c, 2), a);
}

void convert_tensor_scatter(onnx_call *c)
{
    attrs_tensor_scatter *a = DEFAULTS(tensor_scatter);
    const char *mode = call_text(c, "mode", "linear");
    a->axis = call_axis(c, call_int(c, "axis", -2), call_rank(c, call_in(c, 0)));
    a->circular = strcmp(mode, "circular") == 0;
    if (!a->circular && strcmp(mode, "linear") != 0) REJECT(c, INVALID_MODEL, "attribute mode is '%s'", mode);
    c->out[0] = build_tensor_scatter(&c->b, call_in(c, 0), call_in(c, 1), call_in(c, 2), a);
}

void convert_one_hot(onnx_call *c)
{
    attrs_one_hot *a = DEFAULTS(one_hot);
    dim depth = DIM_NONE;
    uint32_t count = 0;
    ir_value_id size = call_in(c, 1);
    a->axis = call_axis(c, call_int(c, "axis", -1), call_rank(c, call_in(c, 0)) + 1);
    if (!size) REJECT(c, INVALID_MODEL, "the depth is missing");
    if (c->b.status) return;
    if (!dtype_is_int(call_type(c, size))) { /* any number is allowed */
        double value = 0;
        if (ir_const_scalar(c->b.g, size, &value) && value >= 0 && value < 1e15)
            size = build_scalar_i64(&c->b, SINTER_DTYPE_I64, (int64_t)value);
        else size = build_typed(&c->b, size, SINTER_DTYPE_I64);
    }
    if (!call_sizes(c, size, "the depth", DIM_NONE, &depth, 1, &count) || count != 1)
        REJECT(c, INVALID_MODEL, "the depth is not one number");
    a->depth = build_dims(&c->b, &depth, 1);
    ir_value_id index = call_in(c, 0);
    if (call_type(c, index) == SINTER_DTYPE_U64) /* what i64 cannot hold would count from the back */
        index = build_typed(&c->b, build_min(&c->b, index, build_scalar_i64(&c->b, SINTER_DTYPE_U64, INT64_MAX)),
                            SINTER_DTYPE_I64);
    if (!dtype_is_int(call_type(c, index))) index = build_typed(&c->b, index, SINTER_DTYPE_I64);
    c->out[0] = build_one_hot(&c->b, index, call_in(c, 2), a);
}

void convert_trilu(onnx_call *c)
{
    attrs_trilu *a = DEFAULTS(trilu);
    dim k = call_k(c, 0);
    uint32_t count = 1;
    a->upper = call_int(c, "upper", 1) != 0;
    if (call_in(c, 1) && (!call_numbers(c, call_in(c, 1), "k", &k, 1, &count) || count != 1))
        REJECT(c, INVALID_MODEL, "k is not one number");
    a->k = build_dims(&c->b, &k, 1);
    c->out[0] = build_trilu(&c->b, call_in(c, 0), a);
}

void convert_reverse_sequence(onnx_call *c)
{
    attrs_reverse_sequence *a = DEFAULTS(reverse_sequence);
    a->batch_axis = call_int(c, "batch_axis", 1);
    a->time_axis = call_int(c, "time_axis", 0);
    if ((uint64_t)a->batch_axis > 1 || (uint64_t)a->time_axis > 1 || a->batch_axis == a->time_axis)
        REJECT(c, INVALID_MODEL, "batch_axis %lld and time_axis %lld", (long long)a->batch_axis,
               (long long)a->time_axis);
    c->out[0] = build_reverse_sequence(&c->b, call_in(c, 0), call_in(c, 1), a);
}

void convert_compress(onnx_call *c)
{
    attrs_compress *a = DEFAULTS(compress);
    const ir_value_id x = call_in(c, 0);
    ir_value_id condition = call_in(c, 1);
    dim d[SINTER_RANK_MAX];
    a->axis = call_attr(c, "axis") ? call_axis(c, call_int(c, "axis", 0), call_rank(c, x)) : -1;
    if (condition && call_rank(c, condition) != 1) { /* a mask of x's shape; ONNX Runtime reads it flat */
        const uint32_t rank = call_shape(c, condition, d);
        const dim all = dim_product(c->b.g->dims, d, rank);
        condition = build_shaped(&c->b, condition, &all, 1);
    }
    c->out[0] = build_compress(&c->b, x, condition, a);
}

void convert_unique(onnx_call *c) /* arg 1: com.microsoft's, without the indices of what comes first */
{
    attrs_unique *a = DEFAULTS(unique);
    const ir_value_id x = call_in(c, 0);
    a->axis = call_attr(c, "axis") ? call_axis(c, call_int(c, "axis", 0), call_rank(c, x)) : -1;
    a->sorted = c->arg ? 0 : call_int(c, "sorted", 1) != 0;
    uint32_t outputs = 1;
    const uint32_t left_out = c->arg ? 1 : 0;
    for (uint32_t i = 1; i + left_out < 4; i++)
        if (call_wants(c, i)) outputs = i + left_out + 1;
    const ir_node_id n = build_unique(&c->b, x, a, outputs);
    for (uint32_t i = 0; i < outputs && i < c->count_out; i++) c->out[i] = build_result(&c->b, n, i ? i + left_out : 0);
}

void convert_array_feature_extractor(onnx_call *c)
{
    attrs_gather *a = DEFAULTS(gather);
    const uint32_t rank = call_rank(c, call_in(c, 0));
    a->axis = rank ? rank - 1 : 0;
    ir_value_id index = call_in(c, 1);
    if (call_rank(c, index) != 1) {
        dim d[SINTER_RANK_MAX];
        const dim flat = dim_product(c->b.g->dims, d, call_shape(c, index, d));
        index = build_shaped(&c->b, index, &flat, 1);
    }
    c->out[0] = build_gather(&c->b, call_in(c, 0), index, a);
    if (rank == 1) c->out[0] = build_unsqueezed(&c->b, c->out[0], 0);
}

/* ---- made from nothing ---- */
static void lists(onnx_call *c, const onnx_attr *a)
{
    view v;
    const bool ints = a->type == ONNX_INTS;
    const int64_t count = ints ? a->ints.count : a->floats.count;
    if (!view_init(&v, ints ? SINTER_DTYPE_I64 : SINTER_DTYPE_F32, 1, &count, NULL)) return;
    v.data = arena_alloc(&c->b.g->a, size_mul((size_t)count, ints ? 8 : 4), 8);
    if (!v.data) {
        c->b.status = FAIL_MEMORY(c->e, "a constant");
        return;
    }
    if (count && ints) memcpy(v.data, a->ints.at, (size_t)count * 8);
    if (count && !ints) memcpy(v.data, a->floats.at, (size_t)count * 4);
    c->out[0] = build_const(&c->b, NULL, &v);
}

void convert_constant(onnx_call *c)
{
    static const char *const names[] = { "value",      "value_float",  "value_int",    "value_floats",
                                         "value_ints", "sparse_value", "value_string", "value_strings" };
    const onnx_attr *a = NULL;
    for (uint32_t i = 0; i < COUNT_OF(names) && !a; i++) a = call_attr(c, names[i]);
    view v;
    if (!a) REJECT(c, INVALID_MODEL, "no value");
    if (c->b.status) return;
    if (a->type == ONNX_STRING || a->type == ONNX_STRINGS ||
        (a->type == ONNX_TENSOR && a->t && a->t->type == ONNX_TYPE_STRING)) {
        c->out[0] = quirk_constant_text(c, a);
        return;
    }
    switch (a->type) {
    case ONNX_TENSOR:
        if (!a->t) REJECT(c, INVALID_MODEL, "no value");
        if (!c->b.status && call_tensor(c, a->t, &v)) c->out[0] = build_const(&c->b, NULL, &v);
        if (c->out[0]) ir_value_at(c->b.g, c->out[0])->initializer = v.dtype;
        break;
    case ONNX_SPARSE:
        if (!a->sparse) REJECT(c, INVALID_MODEL, "no value");
        if (!c->b.status && call_sparse(c, a->sparse, &v)) c->out[0] = build_const(&c->b, NULL, &v);
        break;
    case ONNX_FLOAT: c->out[0] = build_scalar(&c->b, SINTER_DTYPE_F32, (double)a->f); break;
    case ONNX_INT: c->out[0] = build_scalar_i64(&c->b, SINTER_DTYPE_I64, a->i); break;
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
        value = build_const(&c->b, NULL, &v);
    } else {
        value = build_scalar(&c->b, SINTER_DTYPE_F32, 0);
    }
    if (!call_in(c, 0)) REJECT(c, INVALID_MODEL, "the shape is missing");
    if (c->b.status || !call_sizes(c, call_in(c, 0), "the shape", DIM_NONE, d, SINTER_RANK_MAX, &rank)) {
        REJECT(c, UNSUPPORTED, "a shape of that rank");
        return;
    }
    int64_t size = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (dim_is_const(c->b.g->dims, d[i], &size) && size < 0)
            REJECT(c, INVALID_MODEL, "the shape has a size of %lld", (long long)size);
    c->out[0] = rank ? build_expanded(&c->b, value, d, rank) : build_identity(&c->b, value);
}

void convert_range(onnx_call *c)
{
    dim_table *t = c->b.g->dims;
    ir_value_id in[3];
    dim at[3], count = DIM_NONE;
    double v[3];
    bool real = true;
    for (uint32_t i = 0; i < 3; i++) {
        in[i] = call_in(c, i);
        if (!in[i] && i == 2 && c->arg)
            in[i] = build_scalar_like(&c->b, in[0], 1); /* com.microsoft's step has a default */
        if (!in[i]) REJECT(c, INVALID_MODEL, "input %u is missing", i);
        if (c->b.status) return;
        if (call_rank(c, in[i])) in[i] = build_shaped(&c->b, in[i], NULL, 0);
        real = ir_const_scalar(c->b.g, in[i], &v[i]) && real;
    }
    const sinter_dtype type = call_type(c, in[0]);
    int64_t step = 0;
    uint32_t one = 0;
    if (dtype_is_int(type) && call_known(c, in[2], &at[2], 1, &one) && one == 1 && dim_is_const(t, at[2], &step)) {
        for (uint32_t i = 0; i < 2; i++)
            if (!call_numbers(c, in[i], "an end of the range", &at[i], 1, &one)) return;
        if (step == 0 || step == INT64_MIN) REJECT(c, INVALID_MODEL, "a step of %lld", (long long)step);
        if (c->b.status) return;
        const dim span = step > 0 ? dim_sub(t, at[1], at[0]) : dim_sub(t, at[0], at[1]);
        count = call_clamp_max(c, dim_ceildiv(t, span, call_k(c, step > 0 ? step : -step)), call_k(c, 0));
    } else if (real) {
        const double n = ceil((v[1] - v[0]) / v[2]);
        if (!(n < 1e15)) REJECT(c, INVALID_MODEL, "a range from %g to %g by %g", v[0], v[1], v[2]);
        count = call_k(c, n > 0 ? (int64_t)n : 0);
    } else {
        const sinter_dtype f64 = SINTER_DTYPE_F64;
        const ir_value_id first = build_typed(&c->b, in[0], f64);
        const ir_value_id span = build_sub(&c->b, build_typed(&c->b, in[1], f64), first);
        const ir_value_id n = build_typed(
            &c->b, build_ceil(&c->b, build_div(&c->b, span, build_typed(&c->b, in[2], f64))), SINTER_DTYPE_I64);
        const ir_value_id whole = build_max(&c->b, n, build_scalar_i64(&c->b, SINTER_DTYPE_I64, 0));
        if (c->b.status || !call_sizes(c, whole, "the length", DIM_NONE, &count, 1, &one)) return;
    }
    attrs_range *a = DEFAULTS(range);
    a->count = build_dims(&c->b, &count, 1);
    c->out[0] = build_range(&c->b, in[0], in[2], a);
}

void convert_eye_like(onnx_call *c)
{
    dim d[SINTER_RANK_MAX];
    attrs_eye_like *a = DEFAULTS(eye_like);
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_shape(c, x, d);
    if (!x || rank != 2) REJECT(c, INVALID_MODEL, "an input of rank %u", rank);
    a->shape = build_dims(&c->b, d, rank);
    a->type = call_attr(c, "dtype") ? call_dtype(c, call_int(c, "dtype", 1)) : call_type(c, x);
    a->k = call_int(c, "k", 0);
    c->out[0] = build_eye_like(&c->b, a);
}

/* ---- random ---- */
ir_value_id quirk_random(onnx_call *c, bool normal, double low, double high, sinter_dtype type, const dim *d,
                         uint32_t rank)
{
    attrs_random *a = DEFAULTS(random);
    const onnx_attr *seed = call_attr(c, "seed"); /* Dropout's is an integer */
    const bool is_int = seed && seed->type == ONNX_INT;
    const double number = seed && !is_int ? call_real(c, "seed", 0) : 0;
    int64_t bits = is_int ? call_int(c, "seed", 0) : 0;
    if (!is_int) memcpy(&bits, &number, sizeof bits);
    a->normal = normal;
    a->low = low;
    a->high = high;
    a->seed = seed ? bits : (int64_t)c->b.g->node.count; /* different nodes, different numbers */
    a->type = type;
    a->shape = build_dims(&c->b, d, rank);
    return build_random(&c->b, 0, a);
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
        for (uint32_t i = 0; i < rank && !c->b.status; i++) {
            if (list.at[i] < 0) REJECT(c, INVALID_MODEL, "a size of %lld", (long long)list.at[i]);
            d[i] = call_k(c, list.at[i]);
        }
    }
    if (c->b.status) return;
    c->out[0] = quirk_random(c, normal, normal ? call_real(c, "mean", 0) : call_real(c, "low", 0),
                             normal ? call_real(c, "scale", 1) : call_real(c, "high", 1), type, d, rank);
}

/* The largest of logits plus Gumbel's noise is a class drawn by its probability. */
void convert_multinomial(onnx_call *c)
{
    ir_builder *b = &c->b;
    dim d[SINTER_RANK_MAX];
    const ir_value_id x = build_typed(b, call_in(c, 0), SINTER_DTYPE_F32);
    if (c->b.status) return;
    const int64_t samples = call_int(c, "sample_size", 1);
    if (call_shape(c, x, d) != 2 || samples < 1)
        REJECT(c, INVALID_MODEL, "%lld samples of an input of rank %u", (long long)samples, call_rank(c, x));
    if (c->b.status) return;
    const dim noise[3] = { d[0], call_k(c, samples), d[1] };
    const ir_value_id dice = quirk_random(c, false, 0, 1, SINTER_DTYPE_F32, noise, 3),
                      gumbel = build_neg(b, build_log(b, build_neg(b, build_log(b, dice))));
    attrs_arg_reduce *a = DEFAULTS(arg_reduce);
    a->is_max = 1;
    a->axis = 2;
    a->keep = 0;
    const ir_value_id drawn = build_arg_reduce(b, build_add(b, gumbel, build_unsqueezed(b, x, 1)), a);
    c->out[0] = build_typed(b, drawn, call_dtype(c, call_int(c, "dtype", 6)));
}

void convert_bernoulli(onnx_call *c)
{
    dim d[SINTER_RANK_MAX];
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_shape(c, x, d);
    if (!x) REJECT(c, INVALID_MODEL, "input 0 is missing");
    if (c->b.status) return;
    const sinter_dtype type = call_attr(c, "dtype") ? call_dtype(c, call_int(c, "dtype", 1)) : call_type(c, x);
    const ir_value_id dice = quirk_random(c, false, 0, 1, call_type(c, x), d, rank);
    c->out[0] = build_typed(&c->b, build_lt(&c->b, dice, x), type);
}
