/* SPDX-License-Identifier: Apache-2.0 */
/* quantize.h - from an ONNX model to the same model with QuantizeLinear and DequantizeLinear around its products. */
#ifndef SINTER_QUANTIZE_H
#define SINTER_QUANTIZE_H

#include "calibrate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sinter_quantize_mode {
    SINTER_QUANTIZE_INT8 = 0,       /* data and weights in i8 */
    SINTER_QUANTIZE_FP8 = 1,        /* data and weights in f8e4m3fn */
    SINTER_QUANTIZE_INT4 = 2        /* weights of matrix products in i4; data stays f32 */
} sinter_quantize_mode;

/* How the scales of int4 weights are chosen. The data of AWQ_... are rows of what each product reads, at most 128. */
typedef enum sinter_weight_method {
    SINTER_WEIGHT_AUTO = 0,         /* AWQ_CLIP where there are samples, else RTN */
    SINTER_WEIGHT_RTN = 1,          /* round to nearest: the largest magnitude of a block / 7 */
    /* The largest magnitude of a block may become less, in steps of 5 % down to a half, where that brings the block's
     * part of the product nearer. */
    SINTER_WEIGHT_AWQ_CLIP = 2,
    /* Terms are multiplied by the mean magnitude of their data to a power, 0 to 1 in steps of 1/20, and the data is
     * divided by that (a Mul before the products that read it). */
    SINTER_WEIGHT_AWQ_LITE = 3,
    SINTER_WEIGHT_AWQ_FULL = 4      /* AWQ_LITE, then AWQ_CLIP */
} sinter_weight_method;

/* X(kind, type, field, initial, most, words, text): option.h says how to read it. */
#define SINTER_QUANTIZE_SCALARS(X)                                                                                   \
    X(CHOICE, sinter_quantize_mode, quantize_mode, SINTER_QUANTIZE_INT8, SINTER_QUANTIZE_INT4, "int8|fp8|int4",      \
      "The type of quantised data and weights: int8 (default) or fp8 (f8e4m3fn). int4: weights alone, in blocks.")   \
    X(COUNT, uint32_t, block_size, 128, 65536, "N",                                                                  \
      "Terms of an int4 weight that share a scale: a power of 2 from 16 on. Default 128.")                           \
    X(CHOICE, sinter_weight_method, weight_method, SINTER_WEIGHT_AUTO, SINTER_WEIGHT_AWQ_FULL,                       \
      "auto|rtn_dq|awq_clip|awq_lite|awq_full",                                                                      \
      "How the scales of int4 weights are chosen: rtn_dq by the weights alone, awq_... by what they do to products "  \
      "of the data. auto (default): awq_clip where there is data.")                                                  \
    X(FLAG, uint32_t, use_external_data_format, 0, 1, "",                                                            \
      "Writes large weights to FILE.data beside the model; above 2 GiB always.")

typedef struct sinter_quantize_options {
    size_t                    struct_size;
    const sinter_env_options *env;              /* NULL: defaults */
    SINTER_QUANTIZE_SCALARS(SINTER_FIELD)
    const sinter_calibration *calibration;      /* the ranges of data, by name; borrowed for the call. Not of int4 */
    const sinter_shape_range *shape;            /* other shapes of inputs; min == max fixes an axis */
    uint32_t                  shape_count;
    /* Says whether a product is quantised. op: "conv" or "matmul" (also what was Gemm); node: the name of its node.
     * NULL: every product is. */
    int                     (*chosen)(void *user, const char *op, const char *node);
    /* Called for each product with a constant weight, before the model is written. why: NULL, or why the product stays
     * as it is. NULL: not wanted. */
    void                    (*told)(void *user, const char *op, const char *node, const char *why);
    void                     *user;             /* passed to chosen and to told */
    /* What the model is run with to see the data of products, as in sinter_calibrate_options; `sample` has the data.
     * Of int4 alone. NULL: there is no data. */
    const sinter_build_options *build;
} sinter_quantize_options;
#define SINTER_QUANTIZE_OPTIONS \
    { sizeof(sinter_quantize_options), 0, SINTER_QUANTIZE_SCALARS(SINTER_INITIAL) 0, 0, 0, 0, 0, 0, 0 }

/* Row `index` of the table; NULL behind the last. The library's own memory. */
SINTER_API const sinter_option *sinter_quantize_option(uint32_t index);

/* Reads the ONNX file `path`, simplifies it as sinter_simplify_file does, puts QuantizeLinear and DequantizeLinear
 * before the data of each f32 product and convolution with constant weights, stores the weights in 8 bits before a
 * DequantizeLinear, and writes the model to the file `to`. Data has one scale, range / 127 (fp8: range / 448); weights
 * have one for each output channel; zero points are 0. What a sum adds to such a product is quantised,
 * too, where it has a range. Outputs of products stay f32. Opset 21 or above.
 *
 * int4: only weights of matrix products change. A weight is stored in i4 before a DequantizeLinear with block_size,
 * which has a scale for each block of terms of each column; the last block may be short.
 *
 *   options   the calibration is needed; int4: samples, where the method is AWQ_...
 *
 * Errors: as sinter_simplify_file; INVALID_ARG (no calibration; a block_size that is none; a method of AWQ without
 * samples; no product was quantised). */
SINTER_API sinter_status sinter_quantize_file(const char *path, const sinter_quantize_options *options, const char *to,
                                              sinter_error *error) SINTER_MUST_USE;

/* Reads a model with QuantizeLinear and DequantizeLinear and calls `told` for each rule that a node breaks. Rules:
 *   inputs       both operands of a product are quantised, or neither; weights of 4 bits are an exception
 *   output       the output of a quantised product is not quantised at once
 *   activation   nothing is quantised between a quantised product and its activation
 *   residual     what is added to a quantised product is quantised
 *   scales       data has one scale; weights have one for each output channel
 *   zero         data is i8, not u8; zero points are 0
 * Errors: as sinter_simplify_file; INVALID_ARG. */
SINTER_API sinter_status sinter_quantize_check_file(const char *path, const sinter_env_options *env,
                                                    void (*told)(void *user, const char *rule, const char *node,
                                                                 const char *text),
                                                    void *user, sinter_error *error) SINTER_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
