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

/* Before version 14, a node that has further outputs is in training mode. */
static bool is_trained(onnx_call *c)
{
    return c->version >= 14 ? call_int(c, "training_mode", 0) != 0 : c->count_out > 1;
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
    const ir_value_id wide = build_typed(&c->b, x, own),
                      batch_mean = build_reduced(&c->b, reduce_kind_mean, wide, axes, count, false);
    const ir_value_id off = build_sub(&c->b, wide, build_along(&c->b, batch_mean, 1, rank));
    const ir_value_id batch_var =
        build_reduced(&c->b, reduce_kind_mean, build_mul(&c->b, off, off), axes, count, false);
    const double momentum = call_real(c, "momentum", (double)0.9f);
    const ir_value_id before = build_scalar(&c->b, own, momentum), now = build_scalar(&c->b, own, 1 - momentum);
    const ir_value_id mean_now = build_mul(&c->b, batch_mean, now);
    c->out[1] = build_typed(&c->b, build_add(&c->b, build_mul(&c->b, *mean, before), mean_now), stored);
    const ir_value_id var_now = build_mul(&c->b, batch_var, now);
    c->out[2] = build_typed(&c->b, build_add(&c->b, build_mul(&c->b, *var, before), var_now), stored);
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
    if (c->b.status) return;
    /* With spatial 0 each element of an image has parameters of its own: they broadcast over the batch alone. */
    const bool is_spatial = c->version >= 9 || call_int(c, "spatial", 1);
    const sinter_dtype type = call_type(c, x), stored = call_type(c, var);
    const sinter_dtype own = sinter_dtype_bits(type) > sinter_dtype_bits(stored) ? type : stored;
    mean = build_typed(&c->b, mean, own);
    var = build_typed(&c->b, var, own);
    if (is_trained(c)) batch_statistics(c, x, &mean, &var, stored);
    const ir_value_id deviation =
        build_sqrt(&c->b, build_add(&c->b, var, build_scalar(&c->b, own, call_real(c, "epsilon", (double)1e-5f))));
    if (c->count_out > 3) c->out[3] = build_typed(&c->b, mean, stored);
    if (c->count_out > 4) c->out[4] = build_typed(&c->b, build_reciprocal(&c->b, deviation), stored);
    const ir_value_id s = build_div(&c->b, build_typed(&c->b, scale, own), deviation);
    const ir_value_id moved = build_mul(&c->b, mean, s);
    const ir_value_id t = build_sub(&c->b, build_typed(&c->b, bias, own), moved);
    const uint32_t axis = rank > 1 ? 1 : 0;
    const ir_value_id factor = is_spatial ? build_along(&c->b, s, axis, rank) : s;
    const ir_value_id scaled = build_mul(&c->b, build_typed(&c->b, x, own), factor);
    const ir_value_id y = build_add(&c->b, scaled, is_spatial ? build_along(&c->b, t, axis, rank) : t);
    c->out[0] = type == own ? y : build_typed(&c->b, y, type);
}

void convert_instance_norm(onnx_call *c)
{
    attrs_group_norm *a = DEFAULTS(group_norm);
    a->groups = 0;
    a->epsilon = call_real(c, "epsilon", (double)1e-5f);
    c->out[0] = build_group_norm(&c->b, call_in(c, 0), call_in(c, 1), call_in(c, 2), a);
}

void convert_group_norm(onnx_call *c)
{
    dim_table *t = c->b.g->dims;
    const ir_value_id x = call_in(c, 0);
    ir_value_id part[2] = { call_in(c, 1), call_in(c, 2) };
    attrs_group_norm *a = DEFAULTS(group_norm);
    a->groups = call_int(c, "num_groups", 0);
    a->epsilon = call_real(c, "epsilon", (double)1e-5f);
    if (a->groups < 1) REJECT(c, INVALID_MODEL, "attribute num_groups is %lld", (long long)a->groups);
    if (call_rank(c, x) < 2) REJECT(c, INVALID_MODEL, "an input of rank %u", call_rank(c, x));
    /* Version 18 has scale and bias for each group. */
    for (uint32_t i = 0; i < 2 && c->version < 21 && !c->b.status; i++) {
        const dim group = call_dim(c, part[i], 0), channels = call_dim(c, x, 1);
        if (group == channels || call_rank(c, part[i]) != 1) continue;
        const dim each = call_quotient(c, channels, group), wide[2] = { group, each };
        part[i] = build_shaped(&c->b, build_expanded(&c->b, build_unsqueezed(&c->b, part[i], 1), wide, 2),
                               (dim[]){ dim_mul(t, group, each) }, 1);
    }
    c->out[0] = build_group_norm(&c->b, x, part[0], part[1], a);
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
    attrs_layer_norm *a = DEFAULTS(layer_norm);
    a->axis = axis;
    a->epsilon = epsilon;
    const bool inside = scale && fits(c, scale, x, (uint32_t)axis) && (!bias || fits(c, bias, x, (uint32_t)axis));
    const ir_node_id n = build_layer_norm(&c->b, x, inside ? scale : 0, inside ? bias : 0, a, outputs);
    for (uint32_t i = 0; i < outputs; i++) out[i] = build_result(&c->b, n, i);
    if (inside) return;
    if (scale) out[0] = build_mul(&c->b, out[0], scale);
    if (bias) out[0] = build_add(&c->b, out[0], bias);
}

ir_value_id quirk_rms_norm(onnx_call *c, ir_value_id x, ir_value_id scale, int64_t axis, double epsilon)
{
    attrs_rms_norm *a = DEFAULTS(rms_norm);
    a->axis = axis;
    a->epsilon = epsilon;
    const bool inside = scale && fits(c, scale, x, (uint32_t)axis) && call_type(c, scale) == call_type(c, x);
    const ir_value_id y = build_rms_norm(&c->b, x, inside ? scale : 0, a);
    return inside || !scale ? y : build_mul(&c->b, y, build_typed(&c->b, scale, call_type(c, y)));
}

void convert_layer_norm(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    ir_value_id out[3] = { 0 };
    const int64_t axis = call_axis(c, call_int(c, "axis", -1), call_rank(c, x));
    const uint32_t outputs = call_wants(c, 2) ? 3 : call_wants(c, 1) ? 2 : 1;
    if (c->b.status) return;
    quirk_layer_norm(c, x, call_in(c, 1), call_in(c, 2), axis, call_real(c, "epsilon", (double)1e-5f), outputs, out);
    const sinter_dtype stash = call_dtype(c, call_int(c, "stash_type", 1)); /* of the mean and the deviation */
    for (uint32_t i = 0; i < outputs; i++) c->out[i] = i ? build_typed(&c->b, out[i], stash) : out[i];
}

void convert_rms_norm(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    const int64_t axis = call_axis(c, call_int(c, "axis", -1), call_rank(c, x));
    if (!c->b.status) c->out[0] = quirk_rms_norm(c, x, call_in(c, 1), axis, call_real(c, "epsilon", (double)1e-5f));
}

void convert_lrn(onnx_call *c)
{
    attrs_lrn *a = DEFAULTS(lrn);
    a->size = call_int(c, "size", 0);
    a->alpha = call_real(c, "alpha", (double)1e-4f);
    a->beta = call_real(c, "beta", 0.75);
    a->bias = call_real(c, "bias", 1);
    if (a->size < 1 || a->size > INT32_MAX) REJECT(c, INVALID_MODEL, "attribute size is %lld", (long long)a->size);
    c->out[0] = build_lrn(&c->b, call_in(c, 0), a);
}

void convert_lp_norm(onnx_call *c)
{
    attrs_lp_norm *a = DEFAULTS(lp_norm);
    a->axis = call_axis(c, call_int(c, "axis", -1), call_rank(c, call_in(c, 0)));
    a->p = call_int(c, "p", 2);
    if (a->p != 1 && a->p != 2) REJECT(c, INVALID_MODEL, "attribute p is %lld", (long long)a->p);
    c->out[0] = build_lp_norm(&c->b, call_in(c, 0), a);
}

void convert_mean_variance_norm(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    attr_ints axes;
    if (!call_ints(c, "axes", &axes)) axes = (attr_ints){ .count = 3, .at = { 0, 2, 3 } };
    for (uint32_t i = 0; i < axes.count; i++) axes.at[i] = call_axis(c, axes.at[i], call_rank(c, x));
    if (c->b.status) return;
    const ir_value_id mean = build_reduced(&c->b, reduce_kind_mean, x, axes.at, axes.count, true);
    const ir_value_id off = build_sub(&c->b, x, mean);
    const ir_value_id var =
        build_reduced(&c->b, reduce_kind_mean, build_mul(&c->b, off, off), axes.at, axes.count, true);
    const ir_value_id epsilon = build_scalar_like(&c->b, x, 1e-9);
    c->out[0] = build_div(&c->b, off, build_add(&c->b, build_sqrt(&c->b, var), epsilon));
}

/* ---- softmax ---- */
/* Before version 13 the input was a matrix: the axes before `axis` by those from it on. */
static ir_value_id as_rows(onnx_call *c, ir_value_id x, uint32_t *axis)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, d);
    *axis = (uint32_t)call_axis(c, call_int(c, "axis", c->version < 13 ? 1 : -1), rank ? rank : 1);
    if (c->version >= 13 || c->b.status || *axis + 1 >= rank) return x;
    const dim rows[2] = { dim_product(c->b.g->dims, d, *axis), dim_product(c->b.g->dims, d + *axis, rank - *axis) };
    *axis = 1;
    return build_shaped(&c->b, x, rows, 2);
}

static ir_value_id as_before(onnx_call *c, ir_value_id y, ir_value_id x)
{
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, d);
    return build_shaped(&c->b, y, d, rank);
}

void convert_softmax(onnx_call *c) /* arg: OP_softmax or OP_log_softmax */
{
    uint32_t axis = 0;
    const ir_value_id x = call_in(c, 0), rows = as_rows(c, x, &axis);
    c->out[0] =
        as_before(c, build_emit(&c->b, (op_id)c->arg, &(attrs_softmax){ .axis = axis }, &(ir_value_id){ rows }, 1), x);
}

ir_value_id quirk_one_hot(onnx_call *c, ir_value_id index, sinter_dtype type, int64_t axis, dim depth)
{
    attrs_one_hot *a = DEFAULTS(one_hot);
    ir_value_id pair[2];
    for (uint32_t i = 0; i < 2; i++) pair[i] = build_unsqueezed(&c->b, build_scalar(&c->b, type, i), 0);
    a->axis = axis;
    a->depth = build_dims(&c->b, &depth, 1);
    return build_one_hot(&c->b, index, build_concat(&c->b, pair, 2, &(attrs_concat){ .axis = 0 }), a);
}

void convert_hardmax(onnx_call *c)
{
    uint32_t axis = 0;
    const ir_value_id x = call_in(c, 0), rows = as_rows(c, x, &axis);
    attrs_arg_reduce *a = DEFAULTS(arg_reduce);
    if (c->b.status) return;
    a->is_max = 1;
    a->axis = axis;
    a->keep = 0;
    const dim length = call_dim(c, rows, axis);
    const ir_value_id best = build_arg_reduce(&c->b, quirk_not_empty(c, rows, axis), a);
    c->out[0] = as_before(c, quirk_one_hot(c, best, call_type(c, x), axis, length), x);
}

/* ---- reductions ---- */
void convert_reduce(onnx_call *c) /* arg: reduce_kind, plus 100 where axes became an input in version 13 */
{
    const ir_value_id x = call_in(c, 0);
    const uint32_t rank = call_rank(c, x);
    const reduce_kind kind = (reduce_kind)(c->arg % 100);
    attr_ints axes;
    if (!x) REJECT(c, INVALID_MODEL, "input 0 is missing");
    const int64_t since = c->arg >= 100 ? 13 : 18;
    if (c->version >= since && quirk_axes_late(c, call_in(c, 1))) {
        c->out[0] = quirk_reduce_late(c, kind, x, call_in(c, 1), call_int(c, "keepdims", 1) != 0);
        return;
    }
    quirk_axes(c, since, 1, rank, &axes);
    if (!axes.count && call_int(c, "noop_with_empty_axes", 0)) {
        c->out[0] = kind == reduce_kind_sum || kind == reduce_kind_mean || kind == reduce_kind_max ||
                            kind == reduce_kind_min || kind == reduce_kind_prod
                        ? build_identity(&c->b, x)
                        : build_reduced(&c->b, kind, build_unsqueezed(&c->b, x, rank), (int64_t[]){ rank }, 1, false);
        return;
    }
    if (!axes.count) axes.count = axes_from(0, rank, axes.at);
    c->out[0] = rank ? build_reduced(&c->b, kind, x, axes.at, axes.count, call_int(c, "keepdims", 1) != 0)
                     : build_reduced(&c->b, kind, build_unsqueezed(&c->b, x, 0), (int64_t[]){ 0 }, 1, false);
}

void convert_arg_reduce(onnx_call *c) /* arg: is_max */
{
    const ir_value_id x = call_in(c, 0);
    attrs_arg_reduce *a = DEFAULTS(arg_reduce);
    a->is_max = c->arg;
    a->axis = call_axis(c, call_int(c, "axis", 0), call_rank(c, x));
    a->keep = call_int(c, "keepdims", 1) != 0;
    a->last = call_int(c, "select_last_index", 0) != 0;
    c->out[0] = build_arg_reduce(&c->b, x, a);
}

void convert_top_k(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    attrs_top_k *a = DEFAULTS(top_k);
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
        if (c->b.status || !call_sizes(c, call_in(c, 1), "k", call_dim(c, x, (uint32_t)a->axis), &k, 1, &count) ||
            count != 1)
            REJECT(c, INVALID_MODEL, "k is not one number");
    }
    a->k = build_dims(&c->b, &k, 1);
    const ir_node_id n = build_top_k(&c->b, x, a, 2);
    for (uint32_t i = 0; i < c->count_out && i < 2; i++) c->out[i] = build_result(&c->b, n, i);
}

/* An axis that the model computes chooses among the results of all axes. One that is out of range stops the run. */
static ir_value_id cumulate_computed(onnx_call *c, ir_value_id x, const attrs_cumulate *a)
{
    const uint32_t rank = call_rank(c, x);
    ir_value_id each[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank && !c->b.status; i++) {
        attrs_cumulate *of = DEFAULTS(cumulate);
        if (c->b.status) return 0;
        *of = *a;
        of->axis = i;
        each[i] = build_unsqueezed(&c->b, build_cumulate(&c->b, x, of), 0);
    }
    if (c->b.status) return 0;
    const ir_value_id all = rank == 1 ? each[0] : build_concat(&c->b, each, rank, &(attrs_concat){ .axis = 0 }),
                      axis = build_shaped(&c->b, call_in(c, 1), NULL, 0);
    return build_gather(&c->b, all, axis, &(attrs_gather){ .axis = 0 });
}

void convert_cumulate(onnx_call *c) /* arg: is_product */
{
    const ir_value_id x = call_in(c, 0), axis = call_in(c, 1);
    attrs_cumulate *a = DEFAULTS(cumulate);
    if (!axis || !call_rank(c, x)) REJECT(c, INVALID_MODEL, "the axis is missing, or the input has none");
    if (c->b.status) return;
    a->is_product = c->arg;
    a->exclusive = call_int(c, "exclusive", 0) != 0;
    a->reverse = call_int(c, "reverse", 0) != 0;
    int64_t at = 0;
    uint32_t count = 0;
    if (quirk_axes_late(c, axis)) {
        if (call_rank(c, x) == SINTER_RANK_MAX)
            REJECT(c, UNSUPPORTED, "the axis is computed, and the input has %u axes; at most %u are supported then",
                   call_rank(c, x), SINTER_RANK_MAX - 1);
        c->out[0] = cumulate_computed(c, x, a);
    } else if (call_const_ints(c, axis, "the axis", &at, 1, &count)) {
        if (count != 1) REJECT(c, INVALID_MODEL, "the axis has %u elements", count);
        a->axis = call_axis(c, at, call_rank(c, x));
        c->out[0] = build_cumulate(&c->b, x, a);
    }
}
