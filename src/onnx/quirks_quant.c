/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_quant.c - quantisation: parameters shaped for broadcasting, and the Q operators in terms of integer products.
 *
 * com.microsoft's operators on quantised tensors become dequantise, operator, quantise. */
#include "onnx/quirks.h"
#include <string.h>

/* A scale or zero point shaped to broadcast against x: per tensor, along one axis, or in blocks of an axis. */
static ir_value_id param_shaped(onnx_call *c, ir_value_id p, ir_value_id x, int64_t axis, int64_t block)
{
    dim_table *t = c->b.g->dims;
    dim dx[SINTER_RANK_MAX], dp[SINTER_RANK_MAX], wide[SINTER_RANK_MAX + 1];
    if (!p || c->b.status) return p;
    const uint32_t rank = call_shape(c, x, dx), n = call_shape(c, p, dp);
    if (n == 0) return p;
    if (n == 1 && dim_is(t, dp[0], 1)) return build_shaped(&c->b, p, NULL, 0);
    axis = call_axis(c, axis, rank);
    if (n == 1 && rank >= 1 && (rank > 1 || block < 1)) return build_along(&c->b, p, (uint32_t)axis, rank);
    if (n != rank || c->b.status) {
        REJECT(c, INVALID_MODEL, "a scale of rank %u for a tensor of rank %u", n, rank);
        return 0;
    }
    if (dp[axis] == dx[axis] && block <= 1) return p;
    if (rank == SINTER_RANK_MAX) {
        REJECT(c, UNSUPPORTED, "blocks of a tensor of rank %u", rank);
        return 0;
    }
    if (block <= 0) {
        int64_t whole = 0, parts = 0;
        if (!dim_is_const(t, dx[axis], &whole) || !dim_is_const(t, dp[axis], &parts) || parts < 1) {
            REJECT(c, UNSUPPORTED, "blocks of a size that is not known");
            return 0;
        }
        block = (whole + parts - 1) / parts;
    }
    /* Each value is repeated `block` times along the axis, and the last block may be short. */
    for (uint32_t i = 0, k = 0; i < rank; i++) {
        wide[k++] = dp[i];
        if ((int64_t)i == axis) wide[k++] = call_k(c, block);
    }
    const dim full = dim_mul(t, dp[axis], call_k(c, block));
    ir_value_id v = build_expanded(&c->b, build_unsqueezed(&c->b, p, (uint32_t)axis + 1), wide, rank + 1);
    dp[axis] = full;
    v = build_shaped(&c->b, v, dp, rank);
    return full == dx[axis] ? v : build_part(&c->b, v, (uint32_t)axis, call_k(c, 0), 1, dx[axis]);
}

ir_value_id quirk_quantize(onnx_call *c, ir_value_id x, ir_value_id scale, ir_value_id zero, sinter_dtype type)
{
    if (!zero) zero = build_scalar(&c->b, type, 0);
    return build_quantize(&c->b, x, scale, zero, type);
}

ir_value_id quirk_dequantize(onnx_call *c, ir_value_id q, ir_value_id scale, ir_value_id zero)
{
    if (!zero) zero = build_scalar_like(&c->b, q, 0);
    return build_dequantize(&c->b, q, scale, zero, call_type(c, scale));
}

void convert_quantize(onnx_call *c)
{
    const ir_value_id x = call_in(c, 0);
    const int64_t axis = call_int(c, "axis", 1), block = call_int(c, "block_size", 0),
                  wanted = call_int(c, "output_dtype", 0);
    const sinter_dtype type = call_in(c, 2) ? call_type(c, call_in(c, 2))
                              : wanted      ? call_dtype(c, wanted)
                                            : SINTER_DTYPE_U8;
    if (!x || !call_in(c, 1)) REJECT(c, INVALID_MODEL, "an input is missing");
    if (call_in(c, 2) && wanted && call_dtype(c, wanted) != type)
        REJECT(c, INVALID_MODEL, "output_dtype is not the type of the zero point");
    ir_value_id scale = param_shaped(c, call_in(c, 1), x, axis, block);
    const ir_value_id zero = param_shaped(c, call_in(c, 2), x, axis, block);
    if (dtype_is_int(call_type(c, scale))) scale = build_typed(&c->b, scale, SINTER_DTYPE_F32);
    if (!call_int(c, "saturate", 1) && dtype_is_float(type) && sinter_dtype_bits(type) == 8) {
        const ir_value_id scaled = build_div(&c->b, x, build_typed(&c->b, scale, call_type(c, x)));
        c->out[0] = build_cast_wrap(&c->b, scaled, type); /* the zero point of float8 is 0 */
        return;
    }
    c->out[0] = quirk_quantize(c, x, scale, zero, type);
}

/* A constant in blocks along an axis, dequantised with the blocks as an axis of their own: nothing is repeated, so that
 * folding makes one tensor of it. The last block is padded where it is short. 0: it is not such a constant. */
static ir_value_id dequantized_blocks(onnx_call *c, ir_value_id q, ir_value_id scales, ir_value_id zeros, int64_t axis,
                                      int64_t block)
{
    dim_table *t = c->b.g->dims;
    dim dq[SINTER_RANK_MAX], dp[SINTER_RANK_MAX], wide[SINTER_RANK_MAX + 1], none[SINTER_RANK_MAX],
        rest[SINTER_RANK_MAX];
    if (c->b.status || !ir_is_const(c->b.g, q)) return 0;
    const uint32_t rank = call_shape(c, q, dq), n = call_shape(c, scales, dp);
    int64_t whole = 0, parts = 0;
    if (n != rank || !rank || rank >= SINTER_RANK_MAX) return 0;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= (int64_t)rank) return 0; /* one scale for all: the axis does not count */
    if (!dim_is_const(t, dq[axis], &whole) || !dim_is_const(t, dp[axis], &parts)) return 0;
    if (parts < 1 || parts == whole || whole < 1) return 0;
    if (block <= 0 || parts == 1) block = (whole + parts - 1) / parts;
    if (block > whole || parts != (whole + block - 1) / block) return 0;
    for (uint32_t i = 0; i < rank; i++) none[i] = rest[i] = call_k(c, 0);
    rest[axis] = call_k(c, parts * block - whole);
    if (parts * block != whole) q = build_padded(&c->b, q, pad_mode_constant, none, rest, 0);
    for (uint32_t i = 0, k = 0; i < rank; i++) {
        wide[k++] = (int64_t)i == axis ? dp[i] : dq[i];
        if ((int64_t)i == axis) wide[k++] = call_k(c, block);
    }
    const ir_value_id zero = zeros && call_rank(c, zeros) ? build_unsqueezed(&c->b, zeros, (uint32_t)axis + 1) : zeros;
    const ir_value_id scale = build_unsqueezed(&c->b, scales, (uint32_t)axis + 1);
    const ir_value_id y = quirk_dequantize(c, build_shaped(&c->b, q, wide, rank + 1), scale, zero);
    const dim end = dq[axis];
    dq[axis] = call_k(c, parts * block);
    const ir_value_id flat = build_shaped(&c->b, y, dq, rank);
    return parts * block == whole ? flat : build_part(&c->b, flat, (uint32_t)axis, call_k(c, 0), 1, end);
}

ir_value_id quirk_dequantize_blocks(onnx_call *c, ir_value_id q, ir_value_id scale, ir_value_id zero, int64_t axis,
                                    int64_t block)
{
    const ir_value_id y = dequantized_blocks(c, q, scale, zero, axis, block);
    if (y) return y;
    const ir_value_id wide = param_shaped(c, scale, q, axis, block);
    return quirk_dequantize(c, q, wide, param_shaped(c, zero, q, axis, block));
}

ir_value_id quirk_quantize_blocks(onnx_call *c, ir_value_id x, ir_value_id scale, sinter_dtype type)
{
    const ir_value_id wide = param_shaped(c, scale, x, call_int(c, "axis", 1), call_int(c, "block_size", 0));
    return quirk_quantize(c, x, wide, 0, type);
}

void convert_dequantize(onnx_call *c)
{
    const ir_value_id q = call_in(c, 0);
    const int64_t axis = call_int(c, "axis", 1), block = call_int(c, "block_size", 0),
                  wanted = call_int(c, "output_dtype", 0);
    if (!q || !call_in(c, 1)) REJECT(c, INVALID_MODEL, "an input is missing");
    const ir_value_id y = quirk_dequantize_blocks(c, q, call_in(c, 1), call_in(c, 2), axis, block);
    c->out[0] = wanted ? build_typed(&c->b, y, call_dtype(c, wanted)) : y;
}

/* Version 11's function: the range is widened to hold 0, and split into 255 steps. A range of nothing has the scale 1.
 */
static ir_value_id dynamic_quantize(onnx_call *c, ir_value_id x, ir_value_id *scale, ir_value_id *zero)
{
    int64_t axes[SINTER_RANK_MAX];
    const uint32_t rank = call_rank(c, x);
    for (uint32_t i = 0; i < rank; i++) axes[i] = i;
    if (!x) REJECT(c, INVALID_MODEL, "input 0 is missing");
    const sinter_dtype f32 = SINTER_DTYPE_F32;
    const ir_value_id nil = build_scalar(&c->b, f32, 0);
    const ir_value_id low =
        build_min(&c->b, rank ? build_reduced(&c->b, reduce_kind_min, x, axes, rank, false) : x, nil);
    const ir_value_id high =
        build_max(&c->b, rank ? build_reduced(&c->b, reduce_kind_max, x, axes, rank, false) : x, nil);
    const ir_value_id span = build_sub(&c->b, high, low), steps = build_scalar(&c->b, f32, 255);
    const ir_value_id step = build_div(&c->b, span, steps), one = build_scalar(&c->b, f32, 1);
    *scale = build_where(&c->b, build_eq(&c->b, span, nil), one, step);
    const ir_value_id at = build_round(&c->b, build_div(&c->b, build_sub(&c->b, nil, low), *scale));
    *zero = build_typed(&c->b, build_clip(&c->b, at, nil, steps), SINTER_DTYPE_U8);
    return quirk_quantize(c, x, *scale, *zero, SINTER_DTYPE_U8);
}

void convert_dynamic_quantize(onnx_call *c)
{
    ir_value_id scale = 0, zero = 0;
    c->out[0] = dynamic_quantize(c, call_in(c, 0), &scale, &zero);
    if (c->count_out > 1) c->out[1] = scale;
    if (c->count_out > 2) c->out[2] = zero;
}

static ir_value_id zero_in(onnx_call *c, ir_value_id v)
{
    return v && call_rank(c, v) == 1 && dim_is(c->b.g->dims, call_dim(c, v, 0), 1) ? build_shaped(&c->b, v, NULL, 0)
                                                                                   : v;
}

static ir_value_id product_integer(onnx_call *c, ir_value_id a, ir_value_id b, ir_value_id a_zero, ir_value_id b_zero)
{
    a_zero = zero_in(c, a_zero);
    b_zero = zero_in(c, b_zero);
    return build_matmul_integer(&c->b, a, b, a_zero, b_zero, NULL);
}

void convert_matmul_integer16(onnx_call *c) /* com.microsoft's, of 16 bits, whose sums have 32 */
{
    if (!call_in(c, 0) || !call_in(c, 1)) REJECT(c, INVALID_MODEL, "an input is missing");
    const ir_value_id a = build_typed(&c->b, call_in(c, 0), SINTER_DTYPE_I32);
    c->out[0] = build_matmul(&c->b, a, build_typed(&c->b, call_in(c, 1), SINTER_DTYPE_I32), NULL);
}

void convert_matmul_integer(onnx_call *c)
{
    c->out[0] = product_integer(c, call_in(c, 0), call_in(c, 1), call_in(c, 2), call_in(c, 3));
}

/* [M] against the rows of a product; a [N] broadcasts along its columns as it is. */
static ir_value_id by_rows(onnx_call *c, ir_value_id v)
{
    v = zero_in(c, v);
    return v && call_rank(c, v) == 1 ? build_unsqueezed(&c->b, v, 1) : v;
}

void convert_qlinear_matmul(onnx_call *c)
{
    const sinter_dtype f32 = SINTER_DTYPE_F32;
    for (uint32_t i = 0; i < 8; i++)
        if (!call_in(c, i)) REJECT(c, INVALID_MODEL, "input %u is missing", i);
    if (c->b.status) return;
    const ir_value_id sum =
        build_typed(&c->b, product_integer(c, call_in(c, 0), call_in(c, 3), call_in(c, 2), call_in(c, 5)), f32);
    const ir_value_id b_scale = build_typed(&c->b, zero_in(c, call_in(c, 4)), f32);
    const ir_value_id factor = build_mul(&c->b, build_typed(&c->b, by_rows(c, call_in(c, 1)), f32), b_scale);
    const ir_value_id step = build_div(&c->b, factor, build_typed(&c->b, by_rows(c, call_in(c, 6)), f32));
    const ir_value_id zero = by_rows(c, call_in(c, 7)), one = build_scalar(&c->b, f32, 1);
    c->out[0] = quirk_quantize(c, build_mul(&c->b, sum, step), one, zero, call_type(c, call_in(c, 7)));
}

void convert_qlinear_conv(onnx_call *c)
{
    const sinter_dtype f32 = SINTER_DTYPE_F32;
    for (uint32_t i = 0; i < 8; i++)
        if (!call_in(c, i)) REJECT(c, INVALID_MODEL, "input %u is missing", i);
    if (c->b.status) return;
    ir_value_id sum = quirk_conv_integer(c, call_in(c, 0), call_in(c, 3), call_in(c, 2), zero_in(c, call_in(c, 5)));
    sum = build_typed(&c->b, quirk_bias(c, sum, call_in(c, 8)), f32);
    const ir_value_id w_scale = zero_in(c, call_in(c, 4));
    const ir_value_id factor = build_mul(&c->b, zero_in(c, call_in(c, 1)), w_scale);
    const ir_value_id step = build_div(&c->b, factor, zero_in(c, call_in(c, 6)));
    const ir_value_id y = build_mul(&c->b, sum, build_along(&c->b, step, 1, call_rank(c, sum)));
    const ir_value_id zero = zero_in(c, call_in(c, 7));
    c->out[0] = quirk_quantize(c, y, build_scalar(&c->b, f32, 1), zero, call_type(c, call_in(c, 7)));
}

/* ---- com.microsoft ---- */
static ir_value_id dequantized(onnx_call *c, uint32_t i)
{
    const ir_value_id zero = zero_in(c, call_in(c, i + 2));
    return quirk_dequantize(c, call_in(c, i), zero_in(c, call_in(c, i + 1)), zero);
}

static void requantize(onnx_call *c, ir_value_id y, uint32_t i, ir_value_id like)
{
    const ir_value_id zero = zero_in(c, call_in(c, i + 1));
    c->out[0] = quirk_quantize(c, y, zero_in(c, call_in(c, i)), zero, call_type(c, zero ? zero : like));
}

/* Codes less their zero point, as f32. */
static ir_value_id code_of(onnx_call *c, uint32_t i)
{
    const ir_value_id one = build_scalar(&c->b, SINTER_DTYPE_F32, 1);
    return quirk_dequantize(c, call_in(c, i), one, zero_in(c, call_in(c, i + 2)));
}

/* The codes are multiplied, and their scales by themselves: f32 may not hold what a code of a mask of the least numbers
 * stands for. */
static void qlinear_mul(onnx_call *c)
{
    const ir_value_id a = code_of(c, 0), b = code_of(c, 3), a_scale = zero_in(c, call_in(c, 1)),
                      b_scale = zero_in(c, call_in(c, 4)), y_scale = zero_in(c, call_in(c, 6)),
                      zero = zero_in(c, call_in(c, 7)), scale = build_mul(&c->b, a_scale, b_scale),
                      step = build_div(&c->b, scale, y_scale), product = build_mul(&c->b, a, b),
                      y = build_mul(&c->b, product, step), one = build_scalar(&c->b, SINTER_DTYPE_F32, 1);
    c->out[0] = quirk_quantize(c, y, one, zero, call_type(c, zero ? zero : call_in(c, 0)));
}

void convert_qlinear_binary(onnx_call *c) /* arg: op */
{
    if (!call_in(c, 0) || !call_in(c, 1) || !call_in(c, 3) || !call_in(c, 4) || !call_in(c, 6))
        REJECT(c, INVALID_MODEL, "an input is missing");
    if (c->b.status) return;
    if (c->arg == OP_mul) {
        qlinear_mul(c);
        return;
    }
    const ir_value_id second = dequantized(c, 3);
    requantize(c, build_binary(&c->b, (op_id)c->arg, dequantized(c, 0), second), 6, call_in(c, 0));
}

void convert_qlinear_unary(onnx_call *c) /* arg: op; LeakyRelu is prelu */
{
    const ir_value_id x = dequantized(c, 0);
    const ir_value_id y = c->arg == OP_prelu
                              ? build_prelu(&c->b, x, build_scalar_like(&c->b, x, call_real(c, "alpha", (double)0.01f)))
                              : build_unary(&c->b, (op_id)c->arg, x);
    requantize(c, y, 3, call_in(c, 0));
}

void quirk_qlinear_pool(onnx_call *c) /* arg: global */
{
    const ir_value_id x = dequantized(c, 0);
    int64_t axes[SINTER_RANK_MAX];
    uint32_t count = 0;
    for (uint32_t i = 2; i < call_rank(c, x); i++) axes[count++] = i;
    requantize(c, c->arg ? build_reduced(&c->b, reduce_kind_mean, x, axes, count, true) : quirk_avg_pool(c, x), 3,
               call_in(c, 0));
}

void convert_qlinear_reduce_mean(onnx_call *c)
{
    const ir_value_id x = dequantized(c, 0);
    attr_ints axes;
    if (!call_ints(c, "axes", &axes)) axes.count = 0;
    const uint32_t rank = call_rank(c, x);
    for (uint32_t i = 0; i < axes.count; i++) axes.at[i] = call_axis(c, axes.at[i], rank);
    for (uint32_t i = 0; i < rank && !axes.count; i++) axes.at[i] = i;
    if (c->b.status) return;
    const bool keep = call_int(c, "keepdims", 1) != 0;
    requantize(c, build_reduced(&c->b, reduce_kind_mean, x, axes.at, axes.count ? axes.count : rank, keep), 3,
               call_in(c, 0));
}

void convert_qlinear_concat(onnx_call *c)
{
    const uint32_t n = c->count_in >= 5 ? (c->count_in - 2) / 3 : 0;
    ir_value_id *part = ARENA_NEW(&c->b.g->a, ir_value_id, n);
    if (!n || !part) {
        REJECT(c, INVALID_MODEL, "%u inputs", c->count_in);
        return;
    }
    for (uint32_t i = 0; i < n; i++) part[i] = dequantized(c, 2 + 3 * i);
    const int64_t axis = call_axis(c, call_int(c, "axis", 0), call_rank(c, part[0]));
    requantize(c, build_concat(&c->b, part, n, &(attrs_concat){ .axis = (uint32_t)axis }), 0, call_in(c, 2));
}

/* Before version 13 a softmax was over all axes from `axis` on. A probability of 1 is a whole number of steps, as ONNX
 * Runtime has it: 1 over y_scale, rounded down. */
void convert_qlinear_softmax(onnx_call *c)
{
    const ir_value_id x = dequantized(c, 0);
    dim d[SINTER_RANK_MAX];
    const bool is_old = call_int(c, "opset", 13) < 13;
    const uint32_t rank = call_shape(c, x, d);
    const int64_t axis = call_axis(c, call_int(c, "axis", is_old ? 1 : -1), rank);
    if (c->b.status) return;
    dim_table *t = c->b.g->dims;
    const dim rows[2] = { dim_product(t, d, (uint32_t)axis), dim_product(t, d + axis, rank - (uint32_t)axis) };
    const ir_value_id flat = is_old ? build_shaped(&c->b, x, rows, 2) : x,
                      y = build_softmax(&c->b, flat, &(attrs_softmax){ .axis = is_old ? 1 : axis });
    if (!call_in(c, 3)) REJECT(c, INVALID_MODEL, "input 3 is missing");
    if (c->b.status) return;
    const ir_value_id zero = zero_in(c, call_in(c, 4)),
                      steps = build_floor(&c->b, build_reciprocal(&c->b, quirk_scalar_in(c, call_in(c, 3)))),
                      scale = build_reciprocal(&c->b, steps), shaped = is_old ? build_shaped(&c->b, y, d, rank) : y;
    c->out[0] = quirk_quantize(c, shaped, scale, zero, call_type(c, zero ? zero : call_in(c, 0)));
}

void convert_qlinear_where(onnx_call *c)
{
    const ir_value_id second = dequantized(c, 4);
    const ir_value_id y = build_where(&c->b, call_in(c, 0), dequantized(c, 1), second);
    requantize(c, y, 7, call_in(c, 1));
}

/* alpha * (A B + C), where C has the scale of the product; numbers of f32 where no scale of the result is given. */
void convert_qgemm(onnx_call *c)
{
    static const int64_t swap[2] = { 1, 0 };
    const sinter_dtype f32 = SINTER_DTYPE_F32;
    ir_value_id a = call_in(c, 0), b = call_in(c, 3);
    if (!a || !b || call_rank(c, a) != 2 || call_rank(c, b) != 2) REJECT(c, INVALID_MODEL, "an operand is no matrix");
    if (c->b.status) return;
    if (call_int(c, "transA", 0)) a = build_permuted(&c->b, a, swap, 2);
    if (call_int(c, "transB", 0)) b = build_permuted(&c->b, b, swap, 2);
    ir_value_id sum = product_integer(c, a, b, call_in(c, 2), call_in(c, 5));
    if (call_in(c, 6)) sum = build_add(&c->b, sum, call_in(c, 6));
    ir_value_id factor = build_mul(&c->b, call_in(c, 1), zero_in(c, call_in(c, 4)));
    const double alpha = call_real(c, "alpha", 1);
    if (alpha != 1) factor = build_mul(&c->b, factor, build_scalar_like(&c->b, factor, alpha));
    const ir_value_id y = build_mul(&c->b, build_typed(&c->b, sum, f32), factor);
    if (call_in(c, 7)) requantize(c, y, 7, call_in(c, 0));
    else c->out[0] = y;
}

void convert_matmul_integer_to_float(onnx_call *c)
{
    const ir_value_id sum = build_typed(
        &c->b, product_integer(c, call_in(c, 0), call_in(c, 1), call_in(c, 4), call_in(c, 5)), SINTER_DTYPE_F32);
    const ir_value_id b_scale = zero_in(c, call_in(c, 3));
    const ir_value_id y = build_mul(&c->b, sum, build_mul(&c->b, by_rows(c, call_in(c, 2)), b_scale));
    c->out[0] = call_in(c, 6) ? build_add(&c->b, y, call_in(c, 6)) : y;
}

void convert_dynamic_quantize_matmul(onnx_call *c)
{
    ir_value_id scale = 0, zero = 0;
    const ir_value_id q = dynamic_quantize(c, call_in(c, 0), &scale, &zero);
    const ir_value_id sum =
        build_typed(&c->b, product_integer(c, q, call_in(c, 1), zero, call_in(c, 3)), SINTER_DTYPE_F32);
    const ir_value_id y = build_mul(&c->b, sum, build_mul(&c->b, scale, zero_in(c, call_in(c, 2))));
    c->out[0] = call_in(c, 4) ? build_add(&c->b, y, call_in(c, 4)) : y;
}
