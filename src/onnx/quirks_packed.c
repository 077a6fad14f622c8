/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_packed.c - com.microsoft's operators on numbers that are packed in bytes: products with weights of 2, 4
 * and 8 bits, and gathers from tables in blocks. */
#include "onnx/quirks.h"
#include <string.h>

/* A constant's bytes seen as [rows, columns] of another type: numbers of 4 bits come two in a byte, those of 2 bits
 * four, the low ones first, as they do here. */
ir_value_id quirk_bits_seen(onnx_call *c, ir_value_id v, const char *what, sinter_dtype type, int64_t rows,
                            int64_t columns)
{
    view w, as;
    const int64_t d[2] = { rows, columns };
    if (c->b.status) return 0;
    if (!ir_const_view(c->b.g, v, &w)) {
        REJECT(c, UNSUPPORTED, "%s is computed while the model runs; a constant is wanted", what);
        return 0;
    }
    if (w.dtype != SINTER_DTYPE_U8 || !view_init(&as, type, 2, d, w.data) ||
        view_count(&as) / (8 / (int64_t)sinter_dtype_bits(type)) != view_count(&w)) {
        REJECT(c, INVALID_MODEL, "%s has %lld elements of %s, bytes for %lld times %lld numbers are wanted", what,
               (long long)view_count(&w), sinter_dtype_name(w.dtype), (long long)rows, (long long)columns);
        return 0;
    }
    const ir_value_id id = ir_const_as(c->b.g, v, type, 2, d);
    if (!id) build_fail(&c->b, FAIL_MEMORY(c->b.g->e, "the graph"));
    return id;
}

/* One of each block, [n, blocks]: [n, blocks, 1], or that of each row, [n, rows]. */
static ir_value_id of_blocks(onnx_call *c, ir_value_id v, ir_value_id order)
{
    return order ? build_gather(&c->b, v, order, &(attrs_gather){ .axis = 1 }) : build_unsqueezed(&c->b, v, 2);
}

/* com.microsoft's weights of 2, 4 or 8 bits in blocks along K: dequantised, then an ordinary product. g_idx says of
 * each row the block whose scale and zero point it has. */
void convert_matmul_nbits(onnx_call *c)
{
    const int64_t k = call_int(c, "K", 0), n = call_int(c, "N", 0), bits = call_int(c, "bits", 4),
                  block = call_int(c, "block_size", 0);
    const ir_value_id x = call_in(c, 0), zero_in = call_in(c, 3);
    if (!x || !call_in(c, 1) || !call_in(c, 2)) REJECT(c, INVALID_MODEL, "an input is missing");
    if (bits != 2 && bits != 4 && bits != 8) REJECT(c, UNSUPPORTED, "numbers of %lld bits", (long long)bits);
    if (call_int(c, "weight_prepacked", 0))
        REJECT(c, UNSUPPORTED, "weight_prepacked is %lld: weights in the order of one kind of GPU",
               (long long)call_int(c, "weight_prepacked", 0));
    if (k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX || block < 16 || block > 1 << 16 || block & (block - 1))
        REJECT(c, INVALID_MODEL, "weights of %lld times %lld in blocks of %lld", (long long)n, (long long)k,
               (long long)block);
    if (c->b.status) return;
    const sinter_dtype type = bits == 2 ? SINTER_DTYPE_U2 : bits == 4 ? SINTER_DTYPE_U4 : SINTER_DTYPE_U8;
    const ir_value_id order = call_in(c, 4);
    const int64_t blocks = (k + block - 1) / block, pack = 8 / bits, padded = (blocks + pack - 1) / pack * pack;
    const dim wide[3] = { call_k(c, n), call_k(c, blocks), call_k(c, block) };
    const dim each[2] = { call_k(c, n), call_k(c, blocks) };
    const dim flat[2] = { call_k(c, n), call_k(c, blocks * block) };
    ir_value_id w = quirk_bits_seen(c, call_in(c, 1), "the weight", type, n, blocks * block);
    const ir_value_id scale = of_blocks(c, build_shaped(&c->b, call_in(c, 2), each, 2), order);
    ir_value_id zero = build_scalar(&c->b, type, 1 << (bits - 1));
    if (!order) w = build_shaped(&c->b, w, wide, 3);
    else if (blocks * block != k) w = build_part(&c->b, w, 1, call_k(c, 0), 1, call_k(c, k));
    const bool is_number = zero_in && !c->b.status && dtype_is_float(call_type(c, zero_in));
    if (is_number) {
        zero = build_shaped(&c->b, zero_in, each, 2);
    } else if (zero_in) {
        zero = quirk_bits_seen(c, zero_in, "the zero points", type, n, padded);
        if (padded != blocks) zero = build_part(&c->b, zero, 1, call_k(c, 0), 1, call_k(c, blocks));
    }
    if (is_number || order) {
        const sinter_dtype number = call_type(c, scale);
        zero = build_typed(&c->b, zero, number);
        if (zero_in) zero = of_blocks(c, zero, order);
        w = build_mul(&c->b, build_sub(&c->b, build_typed(&c->b, w, number), zero), scale);
    } else {
        w = quirk_dequantize(c, w, scale, zero_in ? of_blocks(c, zero, 0) : zero);
    }
    if (!order) {
        w = build_shaped(&c->b, w, flat, 2);
        if (blocks * block != k) w = build_part(&c->b, w, 1, call_k(c, 0), 1, call_k(c, k));
    }
    const ir_value_id y =
        build_matmul(&c->b, x, build_typed(&c->b, w, call_type(c, x)), &(attrs_matmul){ .trans_b = true });
    c->out[0] = call_in(c, 5) ? build_add(&c->b, y, call_in(c, 5)) : y;
}

/* ---- bytes taken apart while the model runs ---- */

/* Bytes [..., n] as the numbers that are packed in them, the low bits first: u8 [..., n * 8 / bits]. */
static ir_value_id unpacked(onnx_call *c, ir_value_id v, int64_t bits)
{
    dim d[SINTER_RANK_MAX];
    ir_value_id part[4];
    if (bits == 8 || c->b.status) return v;
    const uint32_t rank = call_shape(c, v, d), parts = (uint32_t)(8 / bits);
    if (!rank || rank == SINTER_RANK_MAX) {
        REJECT(c, UNSUPPORTED, "packed numbers of rank %u", rank);
        return 0;
    }
    const ir_value_id mask = build_scalar_like(&c->b, v, (double)((1 << bits) - 1));
    for (uint32_t i = 0; i < parts; i++) {
        part[i] = v;
        if (i) part[i] = build_shift_right(&c->b, v, build_scalar_like(&c->b, v, (double)(i * bits)));
        if (i + 1 < parts) part[i] = build_bit_and(&c->b, part[i], mask);
        part[i] = build_unsqueezed(&c->b, part[i], rank);
    }
    d[rank - 1] = dim_mul(c->b.g->dims, d[rank - 1], call_k(c, parts));
    return build_shaped(&c->b, build_concat(&c->b, part, parts, &(attrs_concat){ .axis = rank }), d, rank);
}

/* A constant of 4-bit numbers as the bytes that it has. 0: it is no such constant, or a row ends inside of a byte. */
static ir_value_id bytes_of(onnx_call *c, ir_value_id v)
{
    view w;
    int64_t d[SINTER_RANK_MAX];
    if (c->b.status || !ir_const_view(c->b.g, v, &w) || sinter_dtype_bits(w.dtype) != 4 || !w.rank ||
        w.dim[w.rank - 1] % 2)
        return 0;
    memcpy(d, w.dim, sizeof d);
    d[w.rank - 1] /= 2;
    const ir_value_id id = ir_const_as(c->b.g, v, SINTER_DTYPE_U8, w.rank, d);
    if (!id) build_fail(&c->b, FAIL_MEMORY(c->b.g->e, "the graph"));
    return id;
}

/* ---- GatherBlockQuantized ---- */
typedef struct table {
    int64_t gather, quantize, block, bits;
    uint32_t rank;
    ir_value_id at, is_inside; /* the indices, all of them inside, and which of them were */
} table;

/* Indices may count from the back. The rows of indices outside of the table are zeros. */
static void indices_of(onnx_call *c, table *t, dim size)
{
    const ir_value_id given = build_typed(&c->b, call_in(c, 1), SINTER_DTYPE_I64),
                      zero = build_scalar_i64(&c->b, SINTER_DTYPE_I64, 0), end = build_sizes(&c->b, &size, 1, true),
                      last = build_sub(&c->b, end, build_scalar_i64(&c->b, SINTER_DTYPE_I64, 1)),
                      from_back = build_add(&c->b, given, end), is_back = build_lt(&c->b, given, zero),
                      at = build_where(&c->b, is_back, from_back, given), below = build_lt(&c->b, at, end);
    t->is_inside = build_and(&c->b, below, build_ge(&c->b, at, zero));
    t->at = build_clip(&c->b, at, zero, last);
}

static ir_value_id taken(onnx_call *c, const table *t, ir_value_id v)
{
    return v ? build_gather(&c->b, v, t->at, &(attrs_gather){ .axis = t->gather }) : 0;
}

/* Scales or zero points of each index: where the blocks are along the axis that is gathered, those of its block. */
static ir_value_id parameters_taken(onnx_call *c, const table *t, ir_value_id v)
{
    if (t->gather != t->quantize) return taken(c, t, v);
    table by_block = *t;
    by_block.at = build_div(&c->b, t->at, build_scalar_i64(&c->b, SINTER_DTYPE_I64, t->block));
    return taken(c, &by_block, v);
}

/* Rows are taken first, then taken apart and dequantised: the table stays packed. */
void convert_gather_block_quantized(onnx_call *c)
{
    const ir_value_id data = call_in(c, 0), scales = call_in(c, 2);
    table t = { .block = call_int(c, "block_size", 128), .bits = call_int(c, "bits", 4) };
    if (!data || !call_in(c, 1) || !scales) REJECT(c, INVALID_MODEL, "an input is missing");
    if (c->b.status) return;
    const sinter_dtype type = call_type(c, data);
    const bool is_packed = type == SINTER_DTYPE_U8, is_signed = type == SINTER_DTYPE_I4;
    t.rank = call_rank(c, data);
    t.gather = call_axis(c, call_int(c, "gather_axis", 0), t.rank);
    t.quantize = call_axis(c, call_int(c, "quantize_axis", 1), t.rank);
    if (!is_packed && !is_signed && type != SINTER_DTYPE_U4)
        REJECT(c, UNSUPPORTED, "data of %s; u8, i4 or u4 is wanted", sinter_dtype_name(type));
    if (!is_packed) t.bits = 4;
    if (t.bits != 2 && t.bits != 4 && t.bits != 8)
        REJECT(c, INVALID_MODEL, "attribute bits is %lld; 2, 4 or 8 is wanted", (long long)t.bits);
    if (t.block < 16 || t.block > 1 << 20 || t.block & (t.block - 1))
        REJECT(c, INVALID_MODEL, "attribute block_size is %lld; a power of 2 from 16 on is wanted", (long long)t.block);
    if (call_rank(c, scales) != t.rank)
        REJECT(c, INVALID_MODEL, "scales of rank %u for data of rank %u", call_rank(c, scales), t.rank);
    if (is_packed && t.bits < 8 && t.gather + 1 == (int64_t)t.rank)
        REJECT(c, UNSUPPORTED, "gather_axis is the axis of the packed numbers");
    if (c->b.status) return;
    indices_of(c, &t, call_dim(c, data, (uint32_t)t.gather));
    const bool is_last = t.gather + 1 == (int64_t)t.rank;
    ir_value_id zero = call_in(c, 3), q, bytes = is_packed || is_last ? 0 : bytes_of(c, data);
    if (is_packed && zero) {
        const dim blocks = call_dim(c, scales, t.rank - 1);
        zero = unpacked(c, zero, t.bits);
        if (!c->b.status && call_dim(c, zero, t.rank - 1) != blocks)
            zero = build_part(&c->b, zero, t.rank - 1, call_k(c, 0), 1, blocks);
    }
    if (is_packed || bytes) {
        /* A signed number moved by 8 is one without a sign, and so is its zero point. */
        if (bytes) zero = zero ? build_typed(&c->b, zero, SINTER_DTYPE_I32) : build_scalar(&c->b, SINTER_DTYPE_I32, 0);
        if (bytes && is_signed) {
            zero = build_add(&c->b, zero, build_scalar_like(&c->b, zero, 8));
            const ir_value_id signs = build_scalar(&c->b, SINTER_DTYPE_U8, 0x88);
            bytes = build_bit_xor(&c->b, taken(c, &t, bytes), signs);
        } else {
            bytes = taken(c, &t, bytes ? bytes : data);
        }
        if (bytes && !zero) zero = build_scalar(&c->b, SINTER_DTYPE_U8, (double)(1 << (t.bits - 1)));
        zero = build_typed(&c->b, zero, SINTER_DTYPE_U8);
        q = unpacked(c, bytes, t.bits);
    } else {
        q = taken(c, &t, data);
    }
    if (c->b.status) return;
    const uint32_t more = call_rank(c, t.at);
    if (zero && call_rank(c, zero)) zero = parameters_taken(c, &t, zero);
    const ir_value_id scale = parameters_taken(c, &t, scales);
    if (c->b.status) return;
    ir_value_id y;
    if (t.gather == t.quantize) {
        y = quirk_dequantize(c, q, scale, zero);
    } else {
        const int64_t axis = t.quantize < t.gather ? t.quantize : t.quantize + (int64_t)more - 1;
        y = quirk_dequantize_blocks(c, q, scale, zero, axis, t.block);
    }
    dim d[SINTER_RANK_MAX];
    const uint32_t after = t.rank - 1 - (uint32_t)t.gather;
    (void)call_shape(c, t.is_inside, d);
    for (uint32_t i = 0; i < after; i++) d[more + i] = call_k(c, 1);
    const ir_value_id inside = build_shaped(&c->b, t.is_inside, d, more + after);
    c->out[0] = build_where(&c->b, inside, y, build_scalar_like(&c->b, y, 0));
}

/* ---- MatMulBnb4 ---- */
/* The numbers that the codes of bitsandbytes stand for: FP4, which has a sign and seven magnitudes, and NF4, quantiles
 * of the normal distribution. */
static const float bnb4[2][16] = {
    { 0, 0.005208333333F, 0.66666667F, 1, 0.33333333F, 0.5F, 0.16666667F, 0.25F, -0.0F, -0.005208333333F, -0.66666667F,
      -1, -0.33333333F, -0.5F, -0.16666667F, -0.25F },
    { -1, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F, -0.28444138169288635F,
      -0.18477343022823334F, -0.09105003625154495F, 0, 0.07958029955625534F, 0.16093020141124725F, 0.24611230194568634F,
      0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F, 0.7229568362236023F, 1 },
};

/* Two codes in a byte, the first one in the high bits; a scale for each block of the weight as one row. */
void convert_matmul_bnb4(onnx_call *c)
{
    const int64_t k = call_int(c, "K", 0), n = call_int(c, "N", 0), block = call_int(c, "block_size", 0),
                  kind = call_int(c, "quant_type", -1);
    const ir_value_id x = call_in(c, 0), codes = call_in(c, 1), scales = call_in(c, 2);
    if (!x || !codes || !scales) REJECT(c, INVALID_MODEL, "an input is missing");
    if (kind != 0 && kind != 1) REJECT(c, INVALID_MODEL, "attribute quant_type is %lld", (long long)kind);
    if (k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX || block < 16 || block > 1 << 20 || block & (block - 1))
        REJECT(c, INVALID_MODEL, "weights of %lld times %lld in blocks of %lld", (long long)n, (long long)k,
               (long long)block);
    if (c->b.status) return;
    const int64_t count = n * k, bytes = (count + 1) / 2, blocks = (count + block - 1) / block;
    if (call_type(c, codes) != SINTER_DTYPE_U8 || call_rank(c, codes) != 1 ||
        !dim_is(c->b.g->dims, call_dim(c, codes, 0), bytes) || call_rank(c, scales) != 1 ||
        !dim_is(c->b.g->dims, call_dim(c, scales, 0), blocks))
        REJECT(c, INVALID_MODEL, "the weight is not %lld bytes with %lld scales", (long long)bytes, (long long)blocks);
    if (c->b.status) return;
    const dim zero = call_k(c, 0), all = call_k(c, 2 * bytes), padded = call_k(c, blocks * block),
              apart[2] = { call_k(c, blocks), call_k(c, block) }, whole[2] = { call_k(c, n), call_k(c, k) };
    ir_value_id part[2] = { build_shift_right(&c->b, codes, build_scalar_like(&c->b, codes, 4)) };
    part[1] = build_bit_and(&c->b, codes, build_scalar_like(&c->b, codes, 15));
    for (uint32_t i = 0; i < 2; i++) part[i] = build_unsqueezed(&c->b, part[i], 1);
    ir_value_id w = build_shaped(&c->b, build_concat(&c->b, part, 2, &(attrs_concat){ .axis = 1 }), &all, 1);
    if (2 * bytes != count) w = build_part(&c->b, w, 0, zero, 1, call_k(c, count));
    const dim rest = call_k(c, blocks * block - count);
    if (blocks * block != count) w = build_padded(&c->b, w, pad_mode_constant, &zero, &rest, 0);
    w = build_typed(&c->b, w, SINTER_DTYPE_I32);
    w = build_gather(&c->b, quirk_reals(c, bnb4[kind], 16, 1), w, NULL);
    w = build_shaped(&c->b, w, apart, 2);
    w = build_mul(&c->b, w, build_unsqueezed(&c->b, build_typed(&c->b, scales, SINTER_DTYPE_F32), 1));
    w = build_shaped(&c->b, w, &padded, 1);
    if (blocks * block != count) w = build_part(&c->b, w, 0, zero, 1, call_k(c, count));
    w = build_typed(&c->b, build_shaped(&c->b, w, whole, 2), call_type(c, x));
    c->out[0] = build_matmul(&c->b, x, w, &(attrs_matmul){ .trans_b = call_int(c, "transB", 1) != 0 });
}
