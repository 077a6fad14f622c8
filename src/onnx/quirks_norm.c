/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_norm.c - normalisations, reductions, softmaxes, and what selects along an axis. */
#include "onnx/quirks.h"
#include <string.h>

static uint32_t axes_from(int64_t first, uint32_t rank, int64_t *axes)
{
    uint32_t count = 0;
    for (int64_t i = first; i < (int64_t)rank; i++) axes[count++] = i;
    return count;
}

/* Training mode: the batch's own mean and variance, and the running ones, of type `stored`, moved towards them. */
static void batch_statistics(onnx_call *c, ir_value_id x, ir_value_id *mean, ir_value_id *var, sinter_dtype stored)
{
    int64_t axes[SINTER_RANK_MAX];
    const sinter_dtype own = call_type(c, *var);
    const uint32_t rank = call_rank(c, x);
    uint32_t count = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (i != 1) axes[count++] = i;
    const ir_value_id wide = call_cast(c, x, own),
                      batch_mean = call_reduce(c, reduce_kind_mean, wide, axes, count, false);
    const ir_value_id off = call_2(c, OP_sub, wide, call_along(c, batch_mean, 1, rank));
    const ir_value_id batch_var = call_reduce(c, reduce_kind_mean, call_2(c, OP_mul, off, off), axes, count, false);
    const double momentum = call_real(c, "momentum", (double)0.9f);
    const ir_value_id before = call_scalar(c, own, momentum), now = call_scalar(c, own, 1 - momentum);
    c->out[1] =
        call_cast(c, call_2(c, OP_add, call_2(c, OP_mul, *mean, before), call_2(c, OP_mul, batch_mean, now)), stored);
    c->out[2] =
        call_cast(c, call_2(c, OP_add, call_2(c, OP_mul, *var, before), call_2(c, OP_mul, batch_var, now)), stored);
    *mean = batch_mean;
    *var = batch_var;
}

/* y = (x - mean) / sqrt(var + epsilon) * scale + bias, on the parameters first, so that folding leaves one mul and one
 * add. */
void convert_batch_norm(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0), scale = call_in(c, 1), bias = call_in(c, 2);
    ir_value_id mean = call_in(c, 3), var = call_in(c, 4);
    const uint32_t rank = call_rank(c, x);
    if (!x || !scale || !bias || !mean || !var) REJECT(c, INVALID_MODEL, "an input is missing");
    if (c->version < 7 && !call_int(c, "is_test", 0) && call_wants(c, 1)) REJECT(c, UNSUPPORTED, "training mode");
    if (rank < 1) REJECT(c, INVALID_MODEL, "a scalar input");
    if (c->status) return;
    /* With spatial 0 each element of an image has parameters of its own: they broadcast over the batch alone. */
    const bool is_spatial = c->version >= 9 || call_int(c, "spatial", 1);
    const sinter_dtype type = call_type(c, x), stored = call_type(c, var);
    const sinter_dtype own = sinter_dtype_bits(type) > sinter_dtype_bits(stored) ? type : stored;
    mean = call_cast(c, mean, own);
    var = call_cast(c, var, own);
    if (call_int(c, "training_mode", 0)) batch_statistics(c, x, &mean, &var, stored);
    const ir_value_id deviation =
        call_1(c, OP_sqrt, call_2(c, OP_add, var, call_scalar(c, own, call_real(c, "epsilon", (double)1e-5f))));
    const ir_value_id s = call_2(c, OP_div, call_cast(c, scale, own), deviation);
    const ir_value_id t = call_2(c, OP_sub, call_cast(c, bias, own), call_2(c, OP_mul, mean, s));
    const uint32_t axis = rank > 1 ? 1 : 0;
    const ir_value_id scaled = call_2(c, OP_mul, call_cast(c, x, own), is_spatial ? call_along(c, s, axis, rank) : s);
    const ir_value_id y = call_2(c, OP_add, scaled, is_spatial ? call_along(c, t, axis, rank) : t);
    c->out[0] = type == own ? y : call_cast(c, y, type);
}

void convert_instance_norm(onnx_call *c)
{
    attrs_group_norm *a = ATTRS(c, group_norm);
    a->groups = 0;
    a->epsilon = call_real(c, "epsilon", (double)1e-5f);
    c->out[0] = call_emit(c, OP_group_norm, a, (ir_value_id[]){ call_in(c, 0), call_in(c, 1), call_in(c, 2) }, 3);
}

void convert_group_norm(onnx_call *c)
{
    dim_table *t = c->g->dims;
    const ir_value_id x = call_in(c, 0);
    ir_value_id part[2] = { call_in(c, 1), call_in(c, 2) };
    attrs_group_norm *a = ATTRS(c, group_norm);
    a->groups = call_int(c, "num_groups", 0);
    a->epsilon = call_real(c, "epsilon", (double)1e-5f);
    if (a->groups < 1) REJECT(c, INVALID_MODEL, "attribute num_groups is %lld", (long long)a->groups);
    if (call_rank(c, x) < 2) REJECT(c, INVALID_MODEL, "an input of rank %u", call_rank(c, x));
    /* Version 18 has scale and bias for each group. */
    for (uint32_t i = 0; i < 2 && c->version < 21 && !c->status; i++) {
        const dim group = call_dim(c, part[i], 0), channels = call_dim(c, x, 1);
        if (group == channels || call_rank(c, part[i]) != 1) continue;
        const dim each = call_quotient(c, channels, group), wide[2] = { group, each };
        part[i] = call_reshape(c, call_expand(c, call_unsqueeze(c, part[i], 1), wide, 2),
                               (dim[]){ dim_mul(t, group, each) }, 1);
    }
    c->out[0] = call_emit(c, OP_group_norm, a, (ir_value_id[]){ x, part[0], part[1] }, 3);
}

/* Is `v` shaped like the axes of x from `axis` on? */
static bool fits(onnx_call *c, ir_value_id v, ir_value_id x, uint32_t axis)
{
    dim dx[SINTER_RANK_MAX], dv[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, dx), n = call_shape(c, v, dv);
    return n == rank - axis && memcmp(dv, dx + axis, n * sizeof dv[0]) == 0;
}

void quirk_layer_norm(onnx_call *c, ir_value_id x, ir_value_id scale, ir_value_id bias, int64_t axis, double epsilon,
                      uint32_t outputs, ir_value_id *out)
{
    attrs_layer_norm *a = ATTRS(c, layer_norm);
    a->axis = axis;
    a->epsilon = epsilon;
    const bool inside = scale && fits(c, scale, x, (uint32_t)axis) && (!bias || fits(c, bias, x, (uint32_t)axis));
    const uint32_t count = !inside ? 1 : bias ? 3 : 2;
    const ir_node_id n = call_node(c, OP_layer_norm, a, (ir_value_id[]){ x, scale, bias }, count, outputs);
    for (uint32_t i = 0; i < outputs; i++) out[i] = call_result(c, n, i);
    if (inside) return;
    if (scale) out[0] = call_2(c, OP_mul, out[0], scale);
    if (bias) out[0] = call_2(c, OP_add, out[0], bias);
}

ir_value_id quirk_rms_norm(onnx_call *c, ir_value_id x, ir_value_id scale, int64_t axis, double epsilon)
{
    attrs_rms_norm *a = ATTRS(c, rms_norm);
    a->axis = axis;
    a->epsilon = epsilon;
    const bool inside = scale && fits(c, scale, x, (uint32_t)axis) && call_type(c, scale) == call_type(c, x);
    const ir_value_id y = call_emit(c, OP_rms_norm, a, (ir_value_id[]){ x, scale }, inside ? 2 : 1);
    return inside || !scale ? y : call_2(c, OP_mul, y, call_cast(c, scale, call_type(c, y)));
}

void convert_layer_norm(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    ir_value_id out[3] = { 0 };
    const int64_t axis = call_axis(c, call_int(c, "axis", -1), call_rank(c, x));
    const uint32_t outputs = call_wants(c, 2) ? 3 : call_wants(c, 1) ? 2 : 1;
    if (c->status) return;
    quirk_layer_norm(c, x, call_in(c, 1), call_in(c, 2), axis, call_real(c, "epsilon", (double)1e-5f), outputs, out);
    const sinter_dtype stash = call_dtype(c, call_int(c, "stash_type", 1)); /* of the mean and the deviation */
    for (uint32_t i = 0; i < outputs; i++) c->out[i] = i ? call_cast(c, out[i], stash) : out[i];
}

void convert_rms_norm(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    const int64_t axis = call_axis(c, call_int(c, "axis", -1), call_rank(c, x));
    if (!c->status) c->out[0] = quirk_rms_norm(c, x, call_in(c, 1), axis, call_real(c, "epsilon", (double)1e-5f));
}

void convert_lrn(onnx_call *c)
{
    attrs_lrn *a = ATTRS(c, lrn);
    a->size = call_int(c, "size", 0);
    a->alpha = call_real(c, "alpha", (double)1e-4f);
    a->beta = call_real(c, "beta", 0.75);
    a->bias = call_real(c, "bias", 1);
    if (a->size < 1 || a->size > INT32_MAX) REJECT(c, INVALID_MODEL, "attribute size is %lld", (long long)a->size);
    c->out[0] = call_emit(c, OP_lrn, a, (ir_value_id[]){ call_in(c, 0) }, 1);
}

void convert_lp_norm(onnx_call *c)
{
    attrs_lp_norm *a = ATTRS(c, lp_norm);
    a->axis = call_axis(c, call_int(c, "axis", -1), call_rank(c, call_in(c, 0)));
    a->p = call_int(c, "p", 2);
    if (a->p != 1 && a->p != 2) REJECT(c, INVALID_MODEL, "attribute p is %lld", (long long)a->p);
    c->out[0] = call_emit(c, OP_lp_norm, a, (ir_value_id[]){ call_in(c, 0) }, 1);
}

void convert_mean_variance_norm(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    attr_ints axes;
    if (!call_ints(c, "axes", &axes)) axes = (attr_ints){ .count = 3, .at = { 0, 2, 3 } };
    for (uint32_t i = 0; i < axes.count; i++) axes.at[i] = call_axis(c, axes.at[i], call_rank(c, x));
    if (c->status) return;
    const ir_value_id mean = call_reduce(c, reduce_kind_mean, x, axes.at, axes.count, true);
    const ir_value_id off = call_2(c, OP_sub, x, mean);
    const ir_value_id var = call_reduce(c, reduce_kind_mean, call_2(c, OP_mul, off, off), axes.at, axes.count, true);
    c->out[0] = call_2(c, OP_div, off, call_2(c, OP_add, call_1(c, OP_sqrt, var), call_scalar_of(c, x, 1e-9)));
}

/* ---- softmax ---- */
/* Before version 13 the input was a matrix: the axes before `axis` by those from it on. */
static ir_value_id as_rows(onnx_call *c, ir_value_id x, uint32_t *axis)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, d);
    *axis = (uint32_t)call_axis(c, call_int(c, "axis", c->version < 13 ? 1 : -1), rank ? rank : 1);
    if (c->version >= 13 || c->status || *axis + 1 >= rank) return x;
    const dim rows[2] = { dim_product(c->g->dims, d, *axis), dim_product(c->g->dims, d + *axis, rank - *axis) };
    *axis = 1;
    return call_reshape(c, x, rows, 2);
}

static ir_value_id as_before(onnx_call *c, ir_value_id y, ir_value_id x)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, d);
    return call_reshape(c, y, d, rank);
}

void convert_softmax(onnx_call *c) /* arg: OP_softmax or OP_log_softmax */
{
    uint32_t axis = 0;
    const ir_value_id x = call_in(c, 0), rows = as_rows(c, x, &axis);
    c->out[0] = as_before(c, call_softmax(c, (op_id)c->arg, rows, axis), x);
}

ir_value_id quirk_one_hot(onnx_call *c, ir_value_id index, sinter_dtype type, int64_t axis, dim depth)
{
    attrs_one_hot *a = ATTRS(c, one_hot);
    const ir_value_id pair[2] = { call_unsqueeze(c, call_scalar(c, type, 0), 0),
                                  call_unsqueeze(c, call_scalar(c, type, 1), 0) };
    a->axis = axis;
    a->depth = call_dims(c, &depth, 1);
    return call_emit(c, OP_one_hot, a, (ir_value_id[]){ index, call_concat(c, pair, 2, 0) }, 2);
}

void convert_hardmax(onnx_call *c)
{
    uint32_t axis = 0;
    const ir_value_id x = call_in(c, 0), rows = as_rows(c, x, &axis);
    attrs_arg_reduce *a = ATTRS(c, arg_reduce);
    a->is_max = 1;
    a->axis = axis;
    a->keep = 0;
    const ir_value_id best = call_emit(c, OP_arg_reduce, a, &rows, 1);
    c->out[0] = as_before(c, quirk_one_hot(c, best, call_type(c, x), axis, call_dim(c, rows, axis)), x);
}

/* ---- reductions ---- */
void convert_reduce(onnx_call *c) /* arg: reduce_kind, plus 100 where axes became an input in version 13 */
{
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_rank(c, x);
    const reduce_kind kind = (reduce_kind)(c->arg % 100);
    attr_ints axes;
    if (!x) REJECT(c, INVALID_MODEL, "input 0 is missing");
    quirk_axes(c, c->arg >= 100 ? 13 : 18, 1, rank, &axes);
    if (!axes.count && call_int(c, "noop_with_empty_axes", 0)) {
        c->out[0] = kind == reduce_kind_sum || kind == reduce_kind_mean || kind == reduce_kind_max ||
                            kind == reduce_kind_min || kind == reduce_kind_prod
                        ? call_1(c, OP_identity, x)
                        : call_reduce(c, kind, call_unsqueeze(c, x, rank), (int64_t[]){ rank }, 1, false);
        return;
    }
    if (!axes.count) axes.count = axes_from(0, rank, axes.at);
    c->out[0] = rank ? call_reduce(c, kind, x, axes.at, axes.count, call_int(c, "keepdims", 1) != 0)
                     : call_reduce(c, kind, call_unsqueeze(c, x, 0), (int64_t[]){ 0 }, 1, false);
}

void convert_arg_reduce(onnx_call *c) /* arg: is_max */
{
    const ir_value_id x = call_in(c, 0);
    attrs_arg_reduce *a = ATTRS(c, arg_reduce);
    a->is_max = c->arg;
    a->axis = call_axis(c, call_int(c, "axis", 0), call_rank(c, x));
    a->keep = call_int(c, "keepdims", 1) != 0;
    a->last = call_int(c, "select_last_index", 0) != 0;
    c->out[0] = call_emit(c, OP_arg_reduce, a, &x, 1);
}

void convert_top_k(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    attrs_top_k *a = ATTRS(c, top_k);
    a->axis = call_axis(c, call_int(c, "axis", -1), call_rank(c, x));
    a->largest = call_int(c, "largest", 1) != 0;
    a->sorted = call_int(c, "sorted", 1) != 0;
    dim k = DIM_NONE;
    uint32_t count = 1;
    if (c->version < 10) {
        const int64_t value = call_int(c, "k", -1);
        if (value < 0) REJECT(c, INVALID_MODEL, "attribute k is %lld", (long long)value);
        k = call_k(c, value);
    } else {
        if (!call_in(c, 1)) REJECT(c, INVALID_MODEL, "k is missing");
        if (c->status || !call_sizes(c, call_in(c, 1), "k", call_dim(c, x, (uint32_t)a->axis), &k, 1, &count) ||
            count != 1)
            REJECT(c, INVALID_MODEL, "k is not one number");
    }
    a->k = call_dims(c, &k, 1);
    const ir_node_id n = call_node(c, OP_top_k, a, &x, 1, 2);
    for (uint32_t i = 0; i < c->count_out && i < 2; i++) c->out[i] = call_result(c, n, i);
}

void convert_cumulate(onnx_call *c) /* arg: is_product */
{
    const ir_value_id x = call_in(c, 0);
    attrs_cumulate *a = ATTRS(c, cumulate);
    int64_t axis = 0;
    uint32_t count = 0;
    if (!call_in(c, 1) || !call_const_ints(c, call_in(c, 1), "the axis", &axis, 1, &count) || count != 1)
        REJECT(c, INVALID_MODEL, "the axis is missing");
    a->axis = call_axis(c, axis, call_rank(c, x));
    a->is_product = c->arg;
    a->exclusive = call_int(c, "exclusive", 0) != 0;
    a->reverse = call_int(c, "reverse", 0) != 0;
    c->out[0] = call_emit(c, OP_cumulate, a, &x, 1);
}
