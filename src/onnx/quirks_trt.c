/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_trt.c - the domain `trt`: operators that quantise in blocks, as Model Optimizer writes them for TensorRT.
 *
 * Quantising while the model runs is a composition: the largest magnitude of each block gives its scale, and the scale
 * is rounded to its type before it is used. Bytes stand for numbers of 8 bits where the file has no other type. */
#include "onnx/quirks.h"

/* `type` for scales that are powers of two: the next one that is not smaller. */
static ir_value_id rounded_scale(ir_builder *b, ir_value_id v, sinter_dtype type)
{
    const ir_value_id made = build_cast(b, v, type);
    if (type != SINTER_DTYPE_F8E8M0) return made;
    const ir_value_id back = build_cast(b, made, SINTER_DTYPE_F32);
    const ir_value_id twice = build_mul(b, back, build_scalar(b, SINTER_DTYPE_F32, 2));
    return build_cast(b, build_where(b, build_lt(b, back, v), twice, back), type);
}

void quirk_dynamic_blocks(onnx_call *c, ir_value_id given, ir_value_id second, const quirk_blocks *how)
{
    ir_builder *b = &c->b;
    dim d[SINTER_RANK_MAX], split[SINTER_RANK_MAX + 1], wide[SINTER_RANK_MAX + 1];
    const ir_value_id x = build_typed(b, given, SINTER_DTYPE_F32);
    const uint32_t rank = call_shape(c, x, d);
    const uint32_t axis = rank ? (uint32_t)call_axis(c, how->axis, rank) : 0;
    const double most = how->type == SINTER_DTYPE_F4E2M1 ? 6 : how->type == SINTER_DTYPE_F8E4M3FN ? 448 : 0;
    if (most == 0) REJECT(c, INVALID_ARG, "to_type is %s, wanted is f4e2m1 or f8e4m3fn", sinter_dtype_name(how->type));
    if (!rank || rank == SINTER_RANK_MAX || how->size < 1)
        REJECT(c, INVALID_ARG, "blocks of %lld of rank %u", (long long)how->size, rank);
    if (b->status) return;
    const dim size = call_k(c, how->size), parts = call_quotient(c, d[axis], size);
    if (dim_mul(b->g->dims, parts, size) != d[axis])
        REJECT(c, INVALID_ARG, "axis %u is no whole number of blocks of %lld", axis, (long long)how->size);
    for (uint32_t i = 0, k = 0; i < rank; i++) {
        split[k] = wide[k] = i == axis ? parts : d[i];
        k++;
        if (i == axis) split[k] = size, wide[k++] = call_k(c, 1);
    }
    const int64_t inner = axis + 1;
    const ir_value_id apart = build_shaped(b, x, split, rank + 1);
    const ir_value_id peak = build_reduced(b, reduce_kind_max, build_abs(b, apart), &inner, 1, false);
    const ir_value_id twice = second ? quirk_scalar_in(c, build_typed(b, second, SINTER_DTYPE_F32)) : 0;
    ir_value_id scale = build_div(b, peak, build_scalar(b, SINTER_DTYPE_F32, most));
    if (twice) scale = build_div(b, scale, twice);
    const ir_value_id stored = rounded_scale(b, scale, how->scale_type);
    ir_value_id used = build_cast(b, stored, SINTER_DTYPE_F32);
    if (twice) used = build_mul(b, used, twice);
    const ir_value_id zero = build_scalar(b, SINTER_DTYPE_F32, 0), one = build_scalar(b, SINTER_DTYPE_F32, 1);
    used = build_where(b, build_eq(b, used, zero), one, used); /* a block of zeros */
    const ir_value_id codes = quirk_quantize(c, apart, build_shaped(b, used, wide, rank + 1), 0, how->type);
    c->out[0] = build_shaped(b, codes, d, rank);
    if (c->count_out > 1) c->out[1] = stored;
}

/* Does an attribute say the only type that there is? */
static void type_check(onnx_call *c, const char *name, sinter_dtype wanted)
{
    const int64_t type = call_int(c, name, 0);
    if (type && call_dtype(c, type) != wanted)
        REJECT(c, UNSUPPORTED, "%s is %lld, wanted is %s", name, (long long)type, sinter_dtype_name(wanted));
}

void convert_trt_fp4_dynamic_quantize(onnx_call *c)
{
    const quirk_blocks how = { .axis = call_int(c, "axis", -1),
                               .size = call_int(c, "block_size", 16),
                               .type = SINTER_DTYPE_F4E2M1,
                               .scale_type = SINTER_DTYPE_F8E4M3FN };
    if (!call_in(c, 0) || !call_in(c, 1)) REJECT(c, INVALID_MODEL, "input %d is missing", call_in(c, 0) ? 1 : 0);
    type_check(c, "scale_type", SINTER_DTYPE_F8E4M3FN);
    quirk_dynamic_blocks(c, call_in(c, 0), call_in(c, 1), &how);
}

void convert_trt_mxfp8_dynamic_quantize(onnx_call *c)
{
    const quirk_blocks how = { .axis = call_int(c, "axis", -1),
                               .size = call_int(c, "block_size", 32),
                               .type = SINTER_DTYPE_F8E4M3FN,
                               .scale_type = SINTER_DTYPE_F8E8M0 };
    if (!call_in(c, 0)) REJECT(c, INVALID_MODEL, "input 0 is missing");
    type_check(c, "output_dtype", SINTER_DTYPE_F8E4M3FN);
    quirk_dynamic_blocks(c, call_in(c, 0), 0, &how);
}

/* Bytes as the numbers that they stand for. */
static ir_value_id bits_of(onnx_call *c, uint32_t i, sinter_dtype type)
{
    const ir_value_id v = call_in(c, i);
    if (!v || c->b.status || call_type(c, v) != SINTER_DTYPE_U8) return v;
    return build_bit_cast(&c->b, v, &(attrs_bit_cast){ .type = type });
}

/* arg: the type of bytes in input 0. Bytes in input 1 are powers of two. */
void convert_trt_dequantize(onnx_call *c)
{
    const bool is_mx = c->arg == SINTER_DTYPE_F8E8M0;
    const int64_t axis = call_int(c, "axis", is_mx ? -1 : 1), block = call_int(c, "block_size", is_mx ? 32 : 0),
                  wanted = call_int(c, "output_dtype", 0);
    const sinter_dtype bytes = is_mx || c->arg == SINTER_DTYPE_F8E4M3FN ? SINTER_DTYPE_F8E4M3FN : SINTER_DTYPE_U8;
    if (!call_in(c, 0) || !call_in(c, 1)) REJECT(c, INVALID_MODEL, "input %d is missing", call_in(c, 0) ? 1 : 0);
    const ir_value_id q = bytes == SINTER_DTYPE_U8 ? call_in(c, 0) : bits_of(c, 0, bytes);
    ir_value_id scale = bits_of(c, 1, SINTER_DTYPE_F8E8M0);
    if (c->b.status) return;
    if (sinter_dtype_bits(call_type(c, scale)) < 16) scale = build_typed(&c->b, scale, SINTER_DTYPE_F32);
    const ir_value_id y = quirk_dequantize_blocks(c, q, scale, call_in(c, 2), axis, block);
    c->out[0] = wanted ? build_typed(&c->b, y, call_dtype(c, wanted)) : y;
}

/* arg: the type of the result. */
void convert_trt_quantize(onnx_call *c)
{
    if (!call_in(c, 0) || !call_in(c, 1)) REJECT(c, INVALID_MODEL, "input %d is missing", call_in(c, 0) ? 1 : 0);
    type_check(c, "output_dtype", (sinter_dtype)c->arg);
    if (c->b.status) return;
    c->out[0] = quirk_quantize_blocks(c, call_in(c, 0), call_in(c, 1), (sinter_dtype)c->arg);
}
