/* SPDX-License-Identifier: Apache-2.0 */
/* lower_scalar.c - layers that look at one element at a time. */
#include "network/network.h"

#include <math.h>

static ir_value_id with(network_call *n, op_id op, ir_value_id x, double alpha)
{
    return build_binary(&n->c.b, op, x, build_scalar_like(&n->c.b, x, alpha));
}

static ir_value_id with_two(network_call *n, op_id op, ir_value_id x, double alpha, double beta)
{
    ir_builder *b = &n->c.b;
    ir_value_id in[3] = { x, build_scalar_like(b, x, alpha) };
    in[2] = build_scalar_like(b, x, beta);
    return build_emit(b, op, NULL, in, 3);
}

void lower_activation(network_call *n)
{
    const ir_value_id x = n->c.in[0];
    ir_builder *b = &n->c.b;
    ir_value_id y = 0;
    switch ((sinter_activation)network_int(n, "type")) {
    case SINTER_ACTIVATION_RELU: y = build_relu(b, x); break;
    case SINTER_ACTIVATION_SIGMOID: y = build_sigmoid(b, x); break;
    case SINTER_ACTIVATION_TANH: y = build_tanh(b, x); break;
    case SINTER_ACTIVATION_LEAKY_RELU: y = with(n, OP_prelu, x, network_real(n, "alpha", 0.01)); break;
    case SINTER_ACTIVATION_ELU: y = with(n, OP_elu, x, network_real(n, "alpha", 1)); break;
    case SINTER_ACTIVATION_SELU:
        y = with_two(n, OP_selu, x, network_real(n, "alpha", 1.67326324), network_real(n, "beta", 1.05070098));
        break;
    case SINTER_ACTIVATION_SOFTSIGN: y = build_softsign(b, x); break;
    case SINTER_ACTIVATION_SOFTPLUS: {
        const double alpha = network_real(n, "alpha", 1), beta = network_real(n, "beta", 1);
        y = beta == 1 ? x : build_mul(b, x, build_scalar_like(b, x, beta));
        y = build_softplus(b, y);
        y = alpha == 1 ? y : build_mul(b, y, build_scalar_like(b, x, alpha));
        break;
    }
    case SINTER_ACTIVATION_CLIP:
        y = with_two(n, OP_clip, x, network_real(n, "alpha", -INFINITY), network_real(n, "beta", INFINITY));
        break;
    case SINTER_ACTIVATION_HARD_SIGMOID:
        y = with_two(n, OP_hard_sigmoid, x, network_real(n, "alpha", 0.2), network_real(n, "beta", 0.5));
        break;
    case SINTER_ACTIVATION_SCALED_TANH:
        y = build_tanh(b, build_mul(b, x, build_scalar_like(b, x, network_real(n, "beta", 1))));
        y = build_mul(b, y, build_scalar_like(b, x, network_real(n, "alpha", 1)));
        break;
    case SINTER_ACTIVATION_THRESHOLDED_RELU: y = with(n, OP_thresholded_relu, x, network_real(n, "alpha", 1)); break;
    case SINTER_ACTIVATION_GELU_ERF: y = build_gelu(b, x); break;
    case SINTER_ACTIVATION_GELU_TANH: y = build_gelu_tanh(b, x); break;
    }
    n->c.out[0] = y;
}

/* Rounds towards minus infinity, as no op does for integers. */
static ir_value_id floor_div(network_call *n, ir_value_id x, ir_value_id y)
{
    ir_builder *b = &n->c.b;
    if (dtype_is_float(call_type(&n->c, x))) return build_floor(b, build_div(b, x, y));
    return build_div(b, build_sub(b, x, build_mod(b, x, y)), y);
}

void lower_elementwise(network_call *n)
{
    static const op_id op[] = {
        [SINTER_ELEMENTWISE_SUM] = OP_add, [SINTER_ELEMENTWISE_PROD] = OP_mul, [SINTER_ELEMENTWISE_MAX] = OP_max,
        [SINTER_ELEMENTWISE_MIN] = OP_min, [SINTER_ELEMENTWISE_SUB] = OP_sub,  [SINTER_ELEMENTWISE_DIV] = OP_div,
        [SINTER_ELEMENTWISE_POW] = OP_pow, [SINTER_ELEMENTWISE_AND] = OP_and,  [SINTER_ELEMENTWISE_OR] = OP_or,
        [SINTER_ELEMENTWISE_XOR] = OP_xor, [SINTER_ELEMENTWISE_EQUAL] = OP_eq, [SINTER_ELEMENTWISE_GREATER] = OP_gt,
        [SINTER_ELEMENTWISE_LESS] = OP_lt
    };
    const int64_t which = network_int(n, "op");
    if (which != SINTER_ELEMENTWISE_POW) network_widen_sizes(n); /* ONNX's Pow has the type of the base */
    const ir_value_id x = n->c.in[0], y = n->c.in[1];
    if (call_type(&n->c, x) != call_type(&n->c, y) && which != SINTER_ELEMENTWISE_POW)
        REJECT(&n->c, INVALID_ARG, "inputs of types %s and %s, wanted are equal types",
               sinter_dtype_name(call_type(&n->c, x)), sinter_dtype_name(call_type(&n->c, y)));
    if (n->c.b.status) return;
    n->c.out[0] = which == SINTER_ELEMENTWISE_FLOOR_DIV ? floor_div(n, x, y) : build_binary(&n->c.b, op[which], x, y);
}

void lower_unary(network_call *n)
{
    static const op_id op[] = {
        [SINTER_UNARY_EXP] = OP_exp,          [SINTER_UNARY_LOG] = OP_log,     [SINTER_UNARY_SQRT] = OP_sqrt,
        [SINTER_UNARY_RECIP] = OP_reciprocal, [SINTER_UNARY_ABS] = OP_abs,     [SINTER_UNARY_NEG] = OP_neg,
        [SINTER_UNARY_SIN] = OP_sin,          [SINTER_UNARY_COS] = OP_cos,     [SINTER_UNARY_TAN] = OP_tan,
        [SINTER_UNARY_SINH] = OP_sinh,        [SINTER_UNARY_COSH] = OP_cosh,   [SINTER_UNARY_ASIN] = OP_asin,
        [SINTER_UNARY_ACOS] = OP_acos,        [SINTER_UNARY_ATAN] = OP_atan,   [SINTER_UNARY_ASINH] = OP_asinh,
        [SINTER_UNARY_ACOSH] = OP_acosh,      [SINTER_UNARY_ATANH] = OP_atanh, [SINTER_UNARY_CEIL] = OP_ceil,
        [SINTER_UNARY_FLOOR] = OP_floor,      [SINTER_UNARY_ERF] = OP_erf,     [SINTER_UNARY_NOT] = OP_not,
        [SINTER_UNARY_SIGN] = OP_sign,        [SINTER_UNARY_ROUND] = OP_round, [SINTER_UNARY_ISINF] = OP_is_inf,
        [SINTER_UNARY_ISNAN] = OP_is_nan
    };
    n->c.out[0] = build_unary(&n->c.b, op[network_int(n, "op")], n->c.in[0]);
}

void lower_identity(network_call *n)
{
    n->c.out[0] = build_identity(&n->c.b, n->c.in[0]);
}

void lower_cast(network_call *n)
{
    if (!network_param_of(n->layer, "to_type")->is_set) REJECT(&n->c, INVALID_ARG, "parameter to_type is not set");
    n->c.out[0] = build_typed(&n->c.b, n->c.in[0], (sinter_dtype)network_int(n, "to_type"));
}

void lower_select(network_call *n)
{
    network_widen_sizes(n);
    n->c.out[0] = build_where(&n->c.b, n->c.in[0], n->c.in[1], n->c.in[2]);
}
