/* SPDX-License-Identifier: Apache-2.0 */
/* export_lower.c - ops that ONNX has not, or not for these operands, become compositions of ops that it has.
 *
 * A row names an op and a function that gives the new value, or 0 where the operator takes the node as it is. New nodes
 * are looked at, too: a composition may use what another row rewrites. The result keeps its value, and with it its
 * name. */
#include "onnx/exporter.h"

#include <math.h>
#include <string.h>

typedef struct lowering {
    exporter *x;
    ir_graph *g;
    ir_builder *b;
    ir_node_id id;
    op_id op;
    const void *attrs;
    ir_value_id in[8];
    uint32_t count_in, count_out;
    ir_value_id out[8]; /* the values that stand for the outputs; set by the functions */
    ir_value_id old[8]; /* the outputs */
} lowering;

static const ir_value *value_of(const lowering *l, ir_value_id v)
{
    return ir_value_at(l->g, v);
}

static const ir_value *result(const lowering *l)
{
    return value_of(l, ir_node_at(l->g, l->id)->out[0]);
}

static bool same_dims(const ir_value *a, const ir_value *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

static bool is_output_used(const lowering *l, uint32_t i)
{
    const ir_node *n = ir_node_at(l->g, l->id);
    return i < n->count_out && (value_of(l, n->out[i])->use_count || value_of(l, n->out[i])->is_output);
}

static ir_value_id like(lowering *l, double value)
{
    return build_scalar_like(l->b, l->in[0], value);
}

/* ---- scalar functions ---- */

static ir_value_id low_rsqrt(lowering *l)
{
    return build_reciprocal(l->b, build_sqrt(l->b, l->in[0]));
}

static ir_value_id low_silu(lowering *l)
{
    return build_mul(l->b, l->in[0], build_sigmoid(l->b, l->in[0]));
}

/* The remainder with the sign of the divisor; ONNX's Mod takes floats with the sign of the dividend alone. */
static ir_value_id low_mod(lowering *l)
{
    if (!dtype_is_float(value_of(l, l->in[0])->dtype)) return 0;
    ir_builder *b = l->b;
    const ir_value_id r = build_fmod(b, l->in[0], l->in[1]), zero = like(l, 0);
    const ir_value_id is_negative = build_lt(b, l->in[1], zero);
    const ir_value_id differs = build_xor(b, build_lt(b, r, zero), is_negative);
    const ir_value_id wrong = build_and(b, differs, build_not(b, build_eq(b, r, zero)));
    return build_where(b, wrong, build_add(b, r, l->in[1]), r);
}

/* PRelu's slope does not grow the result. */
static ir_value_id low_prelu(lowering *l)
{
    static const sinter_dtype types[] = { SINTER_DTYPE_F32, SINTER_DTYPE_F16, SINTER_DTYPE_F64, SINTER_DTYPE_BF16,
                                          SINTER_DTYPE_I32, SINTER_DTYPE_I64, SINTER_DTYPE_U32, SINTER_DTYPE_U64 };
    bool is_taken = same_dims(value_of(l, l->in[0]), result(l));
    bool has_type = false;
    for (uint32_t i = 0; i < COUNT_OF(types); i++) has_type = has_type || result(l)->dtype == types[i];
    if (is_taken && has_type) return 0;
    ir_builder *b = l->b;
    const ir_value_id low = build_mul(b, l->in[1], l->in[0]);
    return build_where(b, build_lt(b, l->in[0], like(l, 0)), low, l->in[0]);
}

/* Clip's bounds are scalars. */
static ir_value_id low_clip(lowering *l)
{
    if (!value_of(l, l->in[1])->rank && !value_of(l, l->in[2])->rank) return 0;
    return build_min(l->b, build_max(l->b, l->in[0], l->in[1]), l->in[2]);
}

/* Are the parameters attributes: scalar constants that f32 holds? */
static bool has_attributes(const lowering *l)
{
    const sinter_dtype type = value_of(l, l->in[0])->dtype;
    for (uint32_t i = 1; i < l->count_in; i++) {
        double value;
        if (!ir_const_scalar(l->g, l->in[i], &value) || value_of(l, l->in[i])->rank > result(l)->rank) return false;
        if ((double)(float)value != value && !isnan(value)) return false;
    }
    return same_dims(value_of(l, l->in[0]), result(l)) && (l->op != OP_celu || type == SINTER_DTYPE_F32);
}

/* alpha * (e^x - 1) */
static ir_value_id exponential(lowering *l, ir_value_id x, ir_value_id alpha)
{
    const ir_value_id one = like(l, 1);
    return build_mul(l->b, alpha, build_sub(l->b, build_exp(l->b, x), one));
}

static ir_value_id low_elu(lowering *l)
{
    if (has_attributes(l)) return 0;
    const ir_value_id low = exponential(l, l->in[0], l->in[1]);
    return build_where(l->b, build_lt(l->b, l->in[0], like(l, 0)), low, l->in[0]);
}

static ir_value_id low_celu(lowering *l)
{
    if (has_attributes(l)) return 0;
    ir_builder *b = l->b;
    const ir_value_id zero = like(l, 0);
    const ir_value_id low = exponential(l, build_div(b, l->in[0], l->in[1]), l->in[1]);
    const ir_value_id negative = build_min(b, low, zero);
    return build_add(b, build_max(b, l->in[0], zero), negative);
}

static ir_value_id low_selu(lowering *l)
{
    if (has_attributes(l)) return 0;
    ir_builder *b = l->b;
    const ir_value_id low = exponential(l, l->in[0], l->in[1]);
    return build_mul(b, l->in[2], build_where(b, build_gt(b, l->in[0], like(l, 0)), l->in[0], low));
}

static ir_value_id low_thresholded(lowering *l)
{
    if (has_attributes(l)) return 0;
    const ir_value_id zero = like(l, 0);
    return build_where(l->b, build_gt(l->b, l->in[0], l->in[1]), l->in[0], zero);
}

static ir_value_id low_hard_sigmoid(lowering *l)
{
    if (has_attributes(l)) return 0;
    ir_builder *b = l->b;
    const ir_value_id one = like(l, 1), zero = like(l, 0);
    return build_clip(b, build_add(b, build_mul(b, l->in[1], l->in[0]), l->in[2]), zero, one);
}

static ir_value_id low_shrink(lowering *l)
{
    if (has_attributes(l)) return 0;
    ir_builder *b = l->b;
    const ir_value_id x = l->in[0], bias = l->in[1], lambda = l->in[2];
    const ir_value_id zero = like(l, 0), above = build_sub(b, x, bias);
    const ir_value_id inner = build_where(b, build_gt(b, x, lambda), above, zero), below = build_add(b, x, bias);
    return build_where(b, build_lt(b, x, build_neg(b, lambda)), below, inner);
}

/* ---- quantisation ---- */

/* The axis along which a scale varies; -1: one scale. False: neither. */
static bool quant_axis(const lowering *l, const ir_value *v, uint32_t rank, int64_t *axis, int64_t *count)
{
    *axis = -1;
    *count = 1;
    for (uint32_t i = 0; i < v->rank; i++) {
        int64_t size;
        if (!dim_is_const(l->g->dims, v->dim[i], &size)) return false;
        if (size == 1) continue;
        if (*axis >= 0) return false;
        *axis = (int64_t)rank - v->rank + i;
        *count = size;
    }
    return true;
}

/* Do scale and zero point have ONNX's forms: both one value, or both a list along one axis? */
static bool is_quant_form(const lowering *l)
{
    int64_t axis[2], count[2];
    const ir_value *x = value_of(l, l->in[0]), *y = result(l);
    const sinter_dtype wide = l->op == OP_quantize ? x->dtype : y->dtype;
    if (!same_dims(x, y) || wide == SINTER_DTYPE_F64 || value_of(l, l->in[1])->dtype == SINTER_DTYPE_F64) return false;
    if (l->op == OP_dequantize && value_of(l, l->in[1])->dtype != y->dtype) return false;
    if (l->op == OP_quantize && value_of(l, l->in[1])->dtype != x->dtype) return false;
    for (uint32_t i = 0; i < 2; i++)
        if (!quant_axis(l, value_of(l, l->in[1 + i]), y->rank, &axis[i], &count[i])) return false;
    return axis[0] == axis[1] && count[0] == count[1];
}

/* (x - zero) * scale */
static ir_value_id low_dequantize(lowering *l)
{
    export_blocks blocks;
    if (is_quant_form(l) || export_blocks_find(l->x, l->id, &blocks)) return 0;
    ir_builder *b = l->b;
    const sinter_dtype type = result(l)->dtype == SINTER_DTYPE_F64 ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32;
    const ir_value_id x = build_typed(b, l->in[0], type), zero = build_typed(b, l->in[2], type);
    const ir_value_id scale = build_typed(b, l->in[1], type);
    return build_typed(b, build_mul(b, build_sub(b, x, zero), scale), result(l)->dtype);
}

/* saturate(round(x / scale) + zero); Cast saturates floats of 8 bits itself. */
static ir_value_id low_quantize(lowering *l)
{
    if (is_quant_form(l)) return 0;
    ir_builder *b = l->b;
    const sinter_dtype to = result(l)->dtype;
    const sinter_dtype type = value_of(l, l->in[0])->dtype == SINTER_DTYPE_F64 ? SINTER_DTYPE_F64 : SINTER_DTYPE_F32;
    const ir_value_id scale = build_typed(b, l->in[1], type);
    const ir_value_id x = build_div(b, build_typed(b, l->in[0], type), scale);
    const ir_value_id zero = build_typed(b, l->in[2], type);
    if (dtype_is_float(to)) return build_typed(b, build_add(b, x, zero), to);
    int64_t least, most;
    dtype_int_range(to, &least, &most);
    const ir_value_id sum = build_add(b, build_round(b, x), zero);
    const ir_value_id low = build_scalar(b, type, (double)least), high = build_scalar(b, type, (double)most);
    return build_typed(b, build_clip(b, sum, low, high), to);
}

/* ---- products ---- */

static ir_value_id swapped(lowering *l, ir_value_id v)
{
    int64_t perm[SINTER_RANK_MAX];
    const uint32_t rank = value_of(l, v)->rank;
    for (uint32_t i = 0; i < rank; i++) perm[i] = i;
    if (rank > 1) {
        perm[rank - 2] = rank - 1;
        perm[rank - 1] = rank - 2;
    }
    return build_permuted(l->b, v, perm, rank);
}

/* MatMul transposes nothing and computes in the type of its operands; Gemm transposes two matrices. */
static ir_value_id low_matmul(lowering *l)
{
    const attrs_matmul *a = l->attrs;
    const sinter_dtype from = value_of(l, l->in[0])->dtype, to = result(l)->dtype;
    if (from == to && ((!a->trans_a && !a->trans_b) || export_is_gemm(l->x, ir_node_at(l->g, l->id)))) return 0;
    const bool trans_a = a->trans_a, trans_b = a->trans_b;
    const ir_value_id x = build_typed(l->b, trans_a ? swapped(l, l->in[0]) : l->in[0], to);
    return build_matmul(l->b, x, build_typed(l->b, trans_b ? swapped(l, l->in[1]) : l->in[1], to), NULL);
}

/* A negative pad asks for more than there is: zeros behind the result. */
static ir_value_id low_conv_transpose(lowering *l)
{
    attrs_conv_transpose a = *(const attrs_conv_transpose *)l->attrs;
    dim begin[SINTER_RANK_MAX], end[SINTER_RANK_MAX];
    const uint32_t rank = result(l)->rank, spatial = rank - 2;
    bool is_grown = false;
    for (uint32_t i = 0; i < SINTER_RANK_MAX; i++) begin[i] = end[i] = dim_const(l->g->dims, 0);
    for (uint32_t i = 0; i < a.pad.count; i++) {
        if (a.pad.at[i] >= 0) continue;
        dim *to = i < spatial ? &begin[2 + i] : &end[2 + i - spatial];
        *to = dim_const(l->g->dims, -a.pad.at[i]);
        a.pad.at[i] = 0;
        is_grown = true;
    }
    if (!is_grown) return 0;
    const ir_value_id y = build_conv_transpose(l->b, l->in[0], l->in[1], &a);
    return build_padded(l->b, y, pad_mode_constant, begin, end, build_scalar_like(l->b, y, 0));
}

/* Runtimes want a row of the mask for each query. */
static ir_value_id with_rows(lowering *l, ir_value_id mask, dim rows)
{
    ir_value v = *value_of(l, mask);
    dim_table *t = l->g->dims;
    if (v.rank < 2 || v.dim[v.rank - 2] == rows || !dim_is(t, v.dim[v.rank - 2], 1)) return mask;
    v.dim[v.rank - 2] = rows;
    return build_expanded(l->b, mask, v.dim, v.rank);
}

/* A mask of ONNX has two axes at least and the type of the query, or is bool. Causal counts from the last key. The
 * scale is an f32: of f64, the query takes one that is none. */
static ir_value_id low_attention(lowering *l)
{
    attrs_attention a = *(const attrs_attention *)l->attrs;
    const ir_value *q = value_of(l, l->in[0]), *k = value_of(l, l->in[1]);
    const ir_value_id given = l->count_in > 3 ? l->in[3] : 0;
    const dim rows = q->dim[2], keys = k->dim[2];
    const sinter_dtype type = q->dtype;
    ir_builder *b = l->b;
    ir_value_id mask = given, query = l->in[0];
    if (l->count_in > 4 && l->in[4]) return 0;
    if (type == SINTER_DTYPE_F64 && (double)(float)a.scale != a.scale) {
        query = build_mul(b, query, build_scalar(b, type, a.scale));
        a.scale = 1;
    }
    if (mask && value_of(l, mask)->dtype != SINTER_DTYPE_BOOL) mask = build_typed(b, mask, type);
    while (mask && value_of(l, mask)->rank < 2) mask = build_unsqueezed(b, mask, 0);
    if (mask) mask = with_rows(l, mask, rows);
    if (a.causal && rows != keys) {
        a.causal = 0;
        const ir_value_id ahead = build_sizes(b, &(dim){ dim_sub(l->g->dims, keys, rows) }, 1, true);
        const ir_value_id last = build_add(b, build_unsqueezed(b, build_iota(b, rows), 1), ahead);
        const ir_value_id allowed = build_le(b, build_unsqueezed(b, build_iota(b, keys), 0), last);
        if (!mask) mask = allowed;
        else if (value_of(l, mask)->dtype == SINTER_DTYPE_BOOL) mask = build_and(b, mask, allowed);
        else mask = build_where(b, allowed, mask, build_scalar(b, type, -INFINITY));
    }
    if (mask == given && query == l->in[0]) return 0;
    const ir_value_id in[4] = { query, l->in[1], l->in[2], mask };
    return build_emit(b, OP_attention, &a, in, mask ? 4 : 3);
}

/* ---- normalisations ---- */

static ir_value_id mean_of(lowering *l, ir_value_id v, int64_t axis)
{
    int64_t axes[SINTER_RANK_MAX];
    uint32_t count = 0;
    for (int64_t i = axis; i < value_of(l, v)->rank; i++) axes[count++] = i;
    return build_reduced(l->b, reduce_kind_mean, v, axes, count, true);
}

/* Are scale and bias exactly as the axes from `axis` on, of the input's type? */
static bool is_affine_form(const lowering *l, int64_t axis)
{
    const ir_value *x = value_of(l, l->in[0]);
    for (uint32_t i = 1; i < l->count_in; i++) {
        const ir_value *v = value_of(l, l->in[i]);
        if (!l->in[i]) {
            if (i == 1) return false;
            continue;
        }
        if (v->dtype != x->dtype || v->rank + axis != x->rank) return false;
        for (uint32_t k = 0; k < v->rank; k++)
            if (v->dim[k] != x->dim[(uint32_t)axis + k]) return false;
    }
    return l->count_in > 1;
}

static ir_value_id affine(lowering *l, ir_value_id y, sinter_dtype type, sinter_dtype to)
{
    ir_builder *b = l->b;
    if (l->count_in > 1 && l->in[1]) y = build_mul(b, y, build_typed(b, l->in[1], type));
    if (l->count_in > 2 && l->in[2]) y = build_add(b, y, build_typed(b, l->in[2], type));
    return build_typed(b, y, to);
}

static ir_value_id low_layer_norm(lowering *l)
{
    const attrs_layer_norm a = *(const attrs_layer_norm *)l->attrs;
    const sinter_dtype from = value_of(l, l->in[0])->dtype;
    if (from != SINTER_DTYPE_F64 && is_affine_form(l, a.axis)) return 0;
    const sinter_dtype type = from == SINTER_DTYPE_F64 ? from : SINTER_DTYPE_F32;
    ir_builder *b = l->b;
    const ir_value_id x = build_typed(b, l->in[0], type), mean = mean_of(l, x, a.axis), d = build_sub(b, x, mean);
    const ir_value_id var = mean_of(l, build_mul(b, d, d), a.axis);
    const ir_value_id inverse = build_rsqrt(b, build_add(b, var, build_scalar(b, type, a.epsilon)));
    if (is_output_used(l, 1)) l->out[1] = mean;
    if (is_output_used(l, 2)) l->out[2] = inverse;
    return affine(l, build_mul(b, d, inverse), type, from);
}

static ir_value_id low_rms_norm(lowering *l)
{
    const attrs_rms_norm a = *(const attrs_rms_norm *)l->attrs;
    const sinter_dtype from = value_of(l, l->in[0])->dtype;
    const bool is_new = l->x->opset >= export_row_at(OP_rms_norm)->since;
    if (is_new && from != SINTER_DTYPE_F64 && is_affine_form(l, a.axis)) return 0;
    const sinter_dtype type = from == SINTER_DTYPE_F64 ? from : SINTER_DTYPE_F32;
    ir_builder *b = l->b;
    const ir_value_id x = build_typed(b, l->in[0], type);
    const ir_value_id epsilon = build_scalar(b, type, a.epsilon);
    const ir_value_id square = build_add(b, mean_of(l, build_mul(b, x, x), a.axis), epsilon);
    return affine(l, build_mul(b, x, build_rsqrt(b, square)), type, from);
}

/* ONNX wants scale and bias, of the input's type. */
static ir_value_id low_group_norm(lowering *l)
{
    const attrs_group_norm a = *(const attrs_group_norm *)l->attrs;
    const ir_value *x = value_of(l, l->in[0]);
    const sinter_dtype type = x->dtype;
    const dim channels = x->dim[1];
    ir_value_id in[3] = { l->in[0], 0, 0 };
    bool is_taken = l->count_in == 3 && x->rank > 2;
    for (uint32_t i = 1; i < 3; i++) {
        const ir_value_id v = i < l->count_in ? l->in[i] : 0;
        is_taken = is_taken && v && value_of(l, v)->dtype == type;
        in[i] = v ? build_typed(l->b, v, type) : build_expanded(l->b, build_scalar(l->b, type, i == 1), &channels, 1);
    }
    if (is_taken) return 0;
    if (value_of(l, in[0])->rank > 2) return build_emit(l->b, OP_group_norm, &a, in, 3);
    const dim wide[3] = { value_of(l, in[0])->dim[0], channels, dim_const(l->g->dims, 1) };
    in[0] = build_shaped(l->b, in[0], wide, 3);
    return build_shaped(l->b, build_emit(l->b, OP_group_norm, &a, in, 3), wide, 2);
}

/* ---- indices and lists ---- */

/* 0, 1, 2 … in i64, then step and start in the type of the result. */
static ir_value_id low_range(lowering *l)
{
    const attrs_range *a = l->attrs;
    const sinter_dtype type = result(l)->dtype;
    double start, step;
    ir_builder *b = l->b;
    const bool is_plain = type == SINTER_DTYPE_I64 && ir_const_scalar(l->g, l->in[0], &start) &&
                          ir_const_scalar(l->g, l->in[1], &step) && start == 0 && step == 1 &&
                          !value_of(l, l->in[0])->rank && !value_of(l, l->in[1])->rank;
    if (is_plain) return 0;
    const sinter_dtype wide = dtype_is_float(type) ? SINTER_DTYPE_F64 : type;
    const ir_value_id count = build_typed(b, build_iota(b, (dim)a->count.at[0]), wide);
    const ir_value_id pace = build_typed(b, build_shaped(b, l->in[1], NULL, 0), wide);
    const ir_value_id first = build_typed(b, build_shaped(b, l->in[0], NULL, 0), wide);
    return build_typed(b, build_add(b, build_mul(b, count, pace), first), type);
}

static ir_value_id wide_index(lowering *l, uint32_t at, bool may_be_i32)
{
    const sinter_dtype type = value_of(l, l->in[at])->dtype;
    if (type == SINTER_DTYPE_I64 || (type == SINTER_DTYPE_I32 && may_be_i32)) return 0;
    ir_value_id in[3] = { l->in[0], l->in[1], l->in[2] };
    in[at] = build_typed(l->b, in[at], SINTER_DTYPE_I64);
    return build_again(l->b, l->id, in, l->count_in);
}

/* Gather and its kin take i32 and i64. */
static ir_value_id low_index(lowering *l)
{
    return wide_index(l, 1, true);
}

/* GatherND and ScatterND take i64 alone. */
static ir_value_id low_index_nd(lowering *l)
{
    return wide_index(l, 1, false);
}

/* The depth is i64. OneHot takes indices of other types, but runtimes have it for few combinations. */
static ir_value_id low_one_hot(lowering *l)
{
    return wide_index(l, 0, false);
}

static ir_value_id low_nms(lowering *l)
{
    static const sinter_dtype types[5] = { SINTER_DTYPE_F32, SINTER_DTYPE_F32, SINTER_DTYPE_I64, SINTER_DTYPE_F32,
                                           SINTER_DTYPE_F32 };
    bool is_changed = false;
    ir_value_id in[5] = { 0 };
    for (uint32_t i = 0; i < l->count_in; i++) {
        in[i] = l->in[i] ? build_typed(l->b, l->in[i], types[i]) : 0;
        is_changed = is_changed || in[i] != l->in[i];
    }
    return is_changed ? build_again(l->b, l->id, in, l->count_in) : 0;
}

/* Without a window: each element goes to its place among zeros. */
static ir_value_id low_max_unpool(lowering *l)
{
    attr_ints kernel;
    ir_builder *b = l->b;
    dim_table *t = l->g->dims;
    if (export_unpool_window(l->x, ir_node_at(l->g, l->id), &kernel)) return 0;
    const ir_value in = *value_of(l, l->in[0]), out = *result(l);
    const dim given = dim_product(t, in.dim, in.rank), all = dim_product(t, out.dim, out.rank);
    const ir_value_id zeros = build_expanded(b, build_scalar(b, in.dtype, 0), &all, 1);
    const ir_value_id data = build_shaped(b, l->in[0], &given, 1);
    const ir_value_id y = build_scatter_elements(b, zeros, build_shaped(b, l->in[1], &given, 1), data, NULL);
    return build_shaped(b, y, out.dim, out.rank);
}

/* ---- the table ---- */

/* clang-format off */
static const struct { op_id op; ir_value_id (*lower)(lowering *l); } table[] = {
    { OP_rsqrt,            low_rsqrt },
    { OP_silu,             low_silu },
    { OP_mod,              low_mod },
    { OP_prelu,            low_prelu },
    { OP_clip,             low_clip },
    { OP_elu,              low_elu },
    { OP_celu,             low_celu },
    { OP_selu,             low_selu },
    { OP_thresholded_relu, low_thresholded },
    { OP_hard_sigmoid,     low_hard_sigmoid },
    { OP_shrink,           low_shrink },
    { OP_quantize,         low_quantize },
    { OP_dequantize,       low_dequantize },
    { OP_matmul,           low_matmul },
    { OP_conv_transpose,   low_conv_transpose },
    { OP_attention,        low_attention },
    { OP_layer_norm,       low_layer_norm },
    { OP_rms_norm,         low_rms_norm },
    { OP_group_norm,       low_group_norm },
    { OP_max_unpool,       low_max_unpool },
    { OP_range,            low_range },
    { OP_gather,           low_index },
    { OP_gather_elements,  low_index },
    { OP_gather_nd,        low_index_nd },
    { OP_scatter_elements, low_index },
    { OP_scatter_nd,       low_index_nd },
    { OP_one_hot,          low_one_hot },
    { OP_nms,              low_nms },
};
/* clang-format on */

/* The old value becomes the output of the new node. Where another node made the new value before, a copy stands
 * between. */
static void put_result(lowering *l, uint32_t i, ir_value_id to, uint32_t node_first)
{
    const ir_value_id old = l->old[i] = ir_node_at(l->g, l->id)->out[i];
    for (uint32_t k = 0; k < i; k++)
        if (l->out[k] == to) to = l->old[k]; /* what its producer gives now */
    const ir_value *v = value_of(l, to);
    l->b->fold_max = 0;
    if (!v->producer || v->producer < node_first || v->use_count || l->out[i] != to) to = build_identity(l->b, to);
    if (l->b->status) return;
    v = value_of(l, to);
    l->b->status = ir_node_set_out(l->g, v->producer, v->producer_out, old);
}

static void lower_node(exporter *x, ir_node_id id, ir_value_id (*lower)(lowering *l))
{
    const ir_node *n = ir_node_at(x->g, id);
    ir_builder b = { .g = x->g, .region = n->parent, .name = n->name, .fold_max = 4096 };
    lowering l = { .x = x, .g = x->g, .b = &b, .id = id, .op = n->op, .attrs = n->attrs, .count_out = n->count_out };
    const uint32_t node_first = x->g->node.count;
    for (; l.count_in < n->count_in && l.count_in < COUNT_OF(l.in); l.count_in++) l.in[l.count_in] = n->in[l.count_in];
    build_from(&b, &id, 1);
    l.out[0] = lower(&l);
    if (!b.status && !l.out[0]) return;
    for (uint32_t i = 0; i < l.count_out && i < COUNT_OF(l.out) && !b.status; i++)
        if (l.out[i]) put_result(&l, i, l.out[i], node_first);
    if (b.status) x->status = NOTE(x->e, b.status, "while writing node '%s'", ir_node_label(x->g, id));
    else ir_node_kill(x->g, id);
}

static ir_value_id low_program(lowering *l)
{
    const ir_node n = *ir_node_at(l->g, l->id);
    export_program(l->b, &n, l->out);
    return l->out[0];
}

sinter_status export_lower(exporter *x)
{
    export_unfold(x);
    for (ir_node_id id = 1; id < x->g->node.count && !x->status; id++) {
        const ir_node *n = ir_node_at(x->g, id);
        if (n->is_dead) continue;
        if (n->prologue || n->epilogue) {
            lower_node(x, id, low_program);
            continue;
        }
        for (uint32_t i = 0; i < COUNT_OF(table); i++) {
            if (table[i].op != n->op) continue;
            lower_node(x, id, table[i].lower);
            break;
        }
    }
    return x->status ? x->status : ir_sweep(x->g);
}
