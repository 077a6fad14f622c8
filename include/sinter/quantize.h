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
    SINTER_QUANTIZE_FP8 = 1         /* data and weights in f8e4m3fn */
} sinter_quantize_mode;

/* X(kind, type, field, initial, most, words, text): option.h says how to read it. */
#define SINTER_QUANTIZE_SCALARS(X)                                                                                   \
    X(CHOICE, sinter_quantize_mode, quantize_mode, SINTER_QUANTIZE_INT8, SINTER_QUANTIZE_FP8, "int8|fp8",            \
      "The type of quantised data and weights: int8 (default), or fp8 (f8e4m3fn).")                                  \
    X(FLAG, uint32_t, use_external_data_format, 0, 1, "",                                                            \
      "Writes large weights to FILE.data beside the model; above 2 GiB always.")

typedef struct sinter_quantize_options {
    size_t                    struct_size;
    const sinter_env_options *env;              /* NULL: defaults */
    SINTER_QUANTIZE_SCALARS(SINTER_FIELD)
    const sinter_calibration *calibration;      /* the ranges of data, by name; borrowed for the call */
    const sinter_shape_range *shape;            /* other shapes of inputs; min == max fixes an axis */
    uint32_t                  shape_count;
    /* Says whether a product is quantised. op: "conv" or "matmul" (also what was Gemm); node: the name of its node.
     * NULL: every product is. */
    int                     (*chosen)(void *user, const char *op, const char *node);
    /* Called for each product with a constant weight, before the model is written. why: NULL, or why the product stays
     * as it is. NULL: not wanted. */
    void                    (*told)(void *user, const char *op, const char *node, const char *why);
    void                     *user;             /* passed to chosen and to told */
} sinter_quantize_options;
#define SINTER_QUANTIZE_OPTIONS \
    { sizeof(sinter_quantize_options), 0, SINTER_QUANTIZE_SCALARS(SINTER_INITIAL) 0, 0, 0, 0, 0, 0 }

/* Row `index` of the table; NULL behind the last. The library's own memory. */
SINTER_API const sinter_option *sinter_quantize_option(uint32_t index);

/* Reads the ONNX file `path`, simplifies it as sinter_simplify_file does, puts QuantizeLinear and DequantizeLinear
 * before the data of each f32 product and convolution with constant weights, stores the weights in 8 bits before a
 * DequantizeLinear, and writes the model to the file `to`. Data has one scale, range / 127 (fp8: range / 448); weights
 * have one for each output channel; zero points are 0. What a sum adds to such a product is quantised,
 * too, where it has a range. Outputs of products stay f32. Opset 21 or above.
 *
 *   options   the calibration is needed.
 *
 * Errors: as sinter_simplify_file; INVALID_ARG (no calibration; no product was quantised). */
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
