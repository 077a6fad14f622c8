/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_elementwise.c - ONNX's elementwise operators: attributes that are arguments here, and the old forms of
 * broadcasting. */
#include "onnx/quirks.h"
#include <string.h>

void convert_unary(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    const sinter_dtype type = call_type(c, x);
    if (c->arg == OP_erf && dtype_is_int(type)) /* the one function of reals that ONNX allows on integers */
        c->out[0] = build_typed(&c->b, build_erf(&c->b, build_typed(&c->b, x, SINTER_DTYPE_F32)), type);
    else c->out[0] = build_unary(&c->b, (op_id)c->arg, x);
}

/* Before version 7 the second operand was aligned at `axis`, and only where `broadcast` said so. */
static ir_value_id aligned(onnx_call *c, ir_value_id a, ir_value_id b)
{
    if (c->version >= 7 || !call_int(c, "broadcast", 0) || !call_attr(c, "axis")) return b;
    dim d[SINTER_RANK_MAX], from[SINTER_RANK_MAX];
    const uint32_t rank = call_rank(c, a), rank_b = call_shape(c, b, from);
    const int64_t axis = call_axis(c, call_int(c, "axis", 0), rank ? rank : 1);
    if (rank_b + (uint64_t)axis > rank) {
        REJECT(c, INVALID_MODEL, "axis %lld leaves no room for an operand of rank %u in rank %u", (long long)axis,
               rank_b, rank);
        return 0;
    }
    const uint32_t wide = rank - (uint32_t)axis;
    for (uint32_t i = 0; i < wide; i++) d[i] = i < rank_b ? from[i] : call_k(c, 1);
    return build_shaped(&c->b, b, d, wide);
}

void convert_binary(onnx_call *c)
{
    const ir_value_id a = call_in(c, 0);
    c->out[0] = build_binary(&c->b, (op_id)c->arg, a, aligned(c, a, call_in(c, 1)));
}

/* Sum, Max, Min: any number of operands. */
void convert_fold(onnx_call *c)
{
    ir_value_id v = call_in(c, 0);
    if (!c->count_in) REJECT(c, INVALID_MODEL, "no inputs");
    for (uint32_t i = 1; i < c->count_in; i++) v = build_binary(&c->b, (op_id)c->arg, v, call_in(c, i));
    c->out[0] = c->count_in == 1 ? build_identity(&c->b, v) : v;
}

void convert_mean(onnx_call *c)
{
    ir_value_id v = call_in(c, 0);
    for (uint32_t i = 1; i < c->count_in; i++) v = build_add(&c->b, v, call_in(c, i));
    c->out[0] = build_div(&c->b, v, build_scalar_like(&c->b, v, c->count_in));
}

void convert_pow(onnx_call *c)
{
    const ir_value_id a = call_in(c, 0);
    ir_value_id b = aligned(c, a, call_in(c, 1));
    const sinter_dtype type = call_type(c, a), exponent = call_type(c, b);
    if (dtype_is_int(type) && dtype_is_float(exponent)) {
        c->out[0] = build_typed(&c->b, build_pow(&c->b, build_typed(&c->b, a, exponent), b), type);
        return;
    }
    if (b) b = build_typed(&c->b, b, type);
    c->out[0] = build_pow(&c->b, a, b);
}

void convert_mod(onnx_call *c)
{
    c->out[0] = build_binary(&c->b, call_int(c, "fmod", 0) ? OP_fmod : OP_mod, call_in(c, 0), call_in(c, 1));
}

void convert_prelu(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    ir_value_id slope = call_in(c, 1);
    if (c->version < 7 && call_rank(c, slope) == 1 && call_rank(c, x) > 1)
        slope = build_along(&c->b, slope, 1, call_rank(c, x));
    c->out[0] = build_prelu(&c->b, x, slope);
}

void convert_leaky_relu(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    c->out[0] = build_prelu(&c->b, x, build_scalar_like(&c->b, x, call_real(c, "alpha", (double)0.01f)));
}

void convert_alpha(onnx_call *c) /* Elu, Celu, ThresholdedRelu: alpha is 1 by default */
{
    const ir_value_id x = call_in(c, 0);
    c->out[0] = build_binary(&c->b, (op_id)c->arg, x, build_scalar_like(&c->b, x, call_real(c, "alpha", 1)));
}

void convert_selu(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    const double alpha = call_real(c, "alpha", c->version < 6 ? 1.6732 : 1.67326319217681884765625);
    const double gamma = call_real(c, "gamma", c->version < 6 ? 1.0507 : 1.05070102214813232421875);
    const ir_value_id factor = build_scalar_like(&c->b, x, gamma);
    c->out[0] = build_selu(&c->b, x, build_scalar_like(&c->b, x, alpha), factor);
}

void convert_hard_sigmoid(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    const ir_value_id beta = build_scalar_like(&c->b, x, call_real(c, "beta", 0.5));
    const ir_value_id alpha = build_scalar_like(&c->b, x, call_real(c, "alpha", (double)0.2f));
    c->out[0] = build_hard_sigmoid(&c->b, x, alpha, beta);
}

/* The attributes are numbers with a fraction for integers too, which lose that of the result. */
void convert_shrink(onnx_call *c)
{
    const sinter_dtype type = call_type(c, call_in(c, 0));
    const ir_value_id x = dtype_is_float(type) ? call_in(c, 0) : build_typed(&c->b, call_in(c, 0), SINTER_DTYPE_F64);
    const ir_value_id lambda = build_scalar_like(&c->b, x, call_real(c, "lambd", 0.5));
    const ir_value_id bias = build_scalar_like(&c->b, x, call_real(c, "bias", 0));
    c->out[0] = build_typed(&c->b, build_shrink(&c->b, x, bias, lambda), type);
}

void convert_gelu(onnx_call *c)
{
    const char *how = call_text(c, "approximate", "none");
    const bool is_tanh = strcmp(how, "tanh") == 0;
    if (!is_tanh && strcmp(how, "none") != 0) REJECT(c, UNSUPPORTED, "attribute approximate is '%s'", how);
    c->out[0] = build_unary(&c->b, is_tanh ? OP_gelu_tanh : OP_gelu, call_in(c, 0));
}

void convert_swish(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    const double alpha = call_real(c, "alpha", c->arg ? (double)1.702f : 1); /* arg: QuickGelu */
    if (alpha == 1) c->out[0] = build_silu(&c->b, x);
    else c->out[0] = build_mul(&c->b, x, build_sigmoid(&c->b, build_mul(&c->b, x, build_scalar_like(&c->b, x, alpha))));
}

void convert_swiglu(onnx_call *c) /* Swish of the first input, times the second */
{
    convert_swish(c);
    if (!c->b.status) c->out[0] = build_mul(&c->b, c->out[0], call_in(c, 1));
}

/* Gelu of x plus an optional bias: com.microsoft's BiasGelu and FastGelu. */
void convert_bias_gelu(onnx_call *c)
{
    ir_value_id x = call_in(c, 0);
    if (call_in(c, 1)) x = build_add(&c->b, x, call_in(c, 1));
    c->out[0] = build_unary(&c->b, (op_id)c->arg, x);
}

static ir_value_id as_scalar(onnx_call *c, ir_value_id v)
{
    return v && call_rank(c, v) ? build_shaped(&c->b, v, NULL, 0) : v;
}

void convert_clip(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    ir_value_id lo = 0, hi = 0;
    if (c->version < 11) {
        if (call_attr(c, "min")) lo = build_scalar_like(&c->b, x, call_real(c, "min", 0));
        if (call_attr(c, "max")) hi = build_scalar_like(&c->b, x, call_real(c, "max", 0));
    } else {
        lo = as_scalar(c, call_in(c, 1));
        hi = as_scalar(c, call_in(c, 2));
    }
    if (lo && hi) c->out[0] = build_clip(&c->b, x, lo, hi);
    else if (lo) c->out[0] = build_max(&c->b, x, lo);
    else if (hi) c->out[0] = build_min(&c->b, x, hi);
    else c->out[0] = build_identity(&c->b, x);
}

void convert_where(onnx_call *c)
{
    c->out[0] = build_where(&c->b, call_in(c, 0), call_in(c, 1), call_in(c, 2));
}

/* The number of an element type by its name, which the first version of Cast has. */
static int64_t type_named(onnx_call *c, const char *name)
{
    for (int32_t type = 1; type <= 16; type++) {
        const char *own = onnx_type_name(type);
        size_t i = 0;
        while (own[i] && name[i] && (own[i] ^ name[i]) % 32 == 0) i++;
        if (!own[i] && !name[i]) return type;
    }
    REJECT(c, UNSUPPORTED, "element type '%s'", name);
    return 1;
}

/* To powers of two that are not the next above: numbers are rounded in their bits as f32 first. */
static ir_value_id to_power(onnx_call *c, ir_value_id x, bool is_down, bool saturates)
{
    attrs_bit_cast *in = DEFAULTS(bit_cast), *back = DEFAULTS(bit_cast);
    in->type = SINTER_DTYPE_U32;
    back->type = SINTER_DTYPE_F32;
    x = build_abs(&c->b, build_typed(&c->b, x, SINTER_DTYPE_F32));
    const ir_value_id bits = build_emit(&c->b, OP_bit_cast, in, &x, 1),
                      least = build_scalar_i64(&c->b, SINTER_DTYPE_U32, 0x800000);
    ir_value_id y = bits;
    if (!is_down) { /* ties go up, but for the least power, which is half of the least with an exponent of its own */
        const ir_value_id half = build_scalar_i64(&c->b, SINTER_DTYPE_U32, 0x400000),
                          below_half = build_scalar_i64(&c->b, SINTER_DTYPE_U32, 0x3fffff);
        y = build_add(&c->b, bits, build_where(&c->b, build_lt(&c->b, bits, least), below_half, half));
    }
    y = build_bit_and(&c->b, y, build_scalar_i64(&c->b, SINTER_DTYPE_U32, 0x7f800000));
    if (saturates) y = build_min(&c->b, y, build_scalar_i64(&c->b, SINTER_DTYPE_U32, 0x7f000000));
    const ir_value_id special = build_ge(&c->b, bits, build_scalar_i64(&c->b, SINTER_DTYPE_U32, 0x7f800000));
    y = build_where(&c->b, special, bits, y);
    return build_emit(&c->b, OP_bit_cast, back, &y, 1);
}

/* Numbers out of the range of an integer of 2 or 4 bits keep their low bits, as between integers; ONNX leaves that
 * open. */
static ir_value_id casted(onnx_call *c, ir_value_id x, sinter_dtype type)
{
    const bool is_tiny = dtype_is_int(type) && sinter_dtype_bits(type) < 8;
    if (call_type(c, x) == type) return build_identity(&c->b, x);
    if (type == SINTER_DTYPE_F8E8M0) {
        const char *mode = call_text(c, "round_mode", "up");
        const bool is_down = strcmp(mode, "down") == 0;
        if (is_down || strcmp(mode, "nearest") == 0) x = to_power(c, x, is_down, call_int(c, "saturate", 1) != 0);
        else if (strcmp(mode, "up") != 0) REJECT(c, INVALID_MODEL, "attribute round_mode is '%s'", mode);
    }
    if (is_tiny && dtype_is_float(call_type(c, x))) x = build_typed(&c->b, x, SINTER_DTYPE_I32);
    return build_emit(&c->b, call_int(c, "saturate", 1) ? OP_cast : OP_cast_wrap, &(attrs_typed){ .type = type }, &x,
                      1);
}

void convert_cast(onnx_call *c)
{
    const ir_value_id x = quirk_text_numbers(c, call_in(c, 0));
    const onnx_attr *to = call_attr(c, "to");
    if (!to) REJECT(c, INVALID_MODEL, "attribute to is missing");
    if (c->b.status) return;
    const int64_t type = to->type == ONNX_STRING ? type_named(c, to->s.at) : call_int(c, "to", 0);
    if (!c->b.status && !quirk_cast_text(c, x, type)) c->out[0] = casted(c, x, call_dtype(c, type));
}

void convert_cast_like(onnx_call *c)
{
    const ir_value_id x = quirk_text_numbers(c, call_in(c, 0));
    if (!call_in(c, 1)) REJECT(c, INVALID_MODEL, "input 1 is missing");
    if (c->b.status) return;
    const bool to_text = call_strings_at(c, call_in(c, 1)) != NULL;
    const sinter_dtype type = to_text ? SINTER_DTYPE_NONE : call_type(c, call_in(c, 1));
    if (!quirk_cast_text(c, x, to_text ? ONNX_TYPE_STRING : onnx_dtype_to(type))) c->out[0] = casted(c, x, type);
}

void convert_bit_cast(onnx_call *c)
{
    if (!call_attr(c, "to")) REJECT(c, INVALID_MODEL, "attribute to is missing");
    if (c->b.status) return;
    attrs_bit_cast *a = DEFAULTS(bit_cast);
    a->type = call_dtype(c, call_int(c, "to", 0));
    c->out[0] = build_bit_cast(&c->b, call_in(c, 0), a);
}

void convert_is_inf(onnx_call *c)
{
    const bool negative = call_int(c, "detect_negative", 1) != 0, positive = call_int(c, "detect_positive", 1) != 0;
    const ir_value_id x = call_in(c, 0);
    const ir_value_id no = negative || positive ? 0 : build_scalar(&c->b, SINTER_DTYPE_BOOL, 0);
    if (negative && positive) c->out[0] = build_is_inf(&c->b, x);
    else if (negative) c->out[0] = build_is_inf_neg(&c->b, x);
    else if (positive) c->out[0] = build_is_inf_pos(&c->b, x);
    else c->out[0] = build_and(&c->b, build_is_inf(&c->b, x), no);
}

void convert_bit_shift(onnx_call *c)
{
    const char *direction = call_text(c, "direction", "");
    const bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        REJECT(c, INVALID_MODEL, "attribute direction is '%s', LEFT or RIGHT is wanted", direction);
    c->out[0] = build_binary(&c->b, left ? OP_shift_left : OP_shift_right, call_in(c, 0), call_in(c, 1));
}

/* While training: elements stay by chance, 1 / (1 - ratio) times what they were. `training` 0: it always is. */
static void drop(onnx_call *c, ir_value_id x, ir_value_id ratio, ir_value_id training)
{
    ir_builder *b = &c->b;
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, d);
    const ir_value_id share = ratio ? quirk_scalar_in(c, build_typed(b, ratio, SINTER_DTYPE_F32))
                                    : build_scalar(b, SINTER_DTYPE_F32, 0.5),
                      dice = quirk_random(c, false, 0, 1, SINTER_DTYPE_F32, d, rank),
                      one = build_scalar(b, SINTER_DTYPE_F32, 1), zero = build_scalar_like(b, x, 0),
                      factor = build_typed(b, build_div(b, one, build_sub(b, one, share)), call_type(c, x));
    ir_value_id stays = build_not(b, build_lt(b, dice, share));
    c->out[0] = build_where(b, stays, build_mul(b, x, factor), zero);
    if (training) {
        training = quirk_scalar_in(c, training);
        c->out[0] = build_where(b, training, c->out[0], x);
        stays = build_or(b, stays, build_not(b, training));
    }
    if (call_wants(c, 1)) c->out[1] = stays;
}

void convert_dropout(onnx_call *c) /* arg 1: com.microsoft's BiasDropout: bias and residual come in between */
{
    ir_value_id x = call_in(c, 0);
    const uint32_t first = c->arg ? 3 : 1;
    const bool is_new = c->arg || c->version >= 12;
    const ir_value_id ratio = is_new ? call_in(c, first) : 0, training = is_new ? call_in(c, first + 1) : 0;
    double on = 0, share = 0.5;
    if (!x) REJECT(c, INVALID_MODEL, "input 0 is missing");
    if (c->arg) x = build_add(&c->b, x, call_in(c, 1));
    if (c->arg && call_in(c, 2)) x = build_add(&c->b, x, call_in(c, 2));
    if (c->b.status) return;
    const bool is_known = !training || ir_const_scalar(c->b.g, training, &on);
    if (ratio) ir_const_scalar(c->b.g, ratio, &share);
    if ((!is_known || on != 0) && share != 0) {
        drop(c, x, ratio, is_known ? 0 : training);
        return;
    }
    c->out[0] = c->arg ? x : build_identity(&c->b, x);
    if (!call_wants(c, 1)) return;
    dim d[SINTER_RANK_MAX];
    const uint32_t rank = call_shape(c, x, d);
    /* What was dropped is not said before version 12: there, as in ONNX Runtime, the mask holds zeros. */
    c->out[1] = build_expanded(
        &c->b, build_scalar(&c->b, c->arg || c->version >= 10 ? SINTER_DTYPE_BOOL : call_type(c, x), is_new), d, rank);
}

void convert_binarizer(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    c->out[0] = build_typed(&c->b, build_gt(&c->b, x, build_scalar_like(&c->b, x, call_real(c, "threshold", 0))),
                            call_type(c, x));
}
