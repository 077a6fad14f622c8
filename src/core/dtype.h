/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.h - element types: what they are, and how one element is read and written.
 *
 * Every reference kernel goes through these accessors, so a type is right everywhere or nowhere. */
#ifndef CORE_DTYPE_H
#define CORE_DTYPE_H

#include "sinter/tensor.h"
#include <stdbool.h>

bool dtype_is_valid(int dtype);                    /* a real type, NONE excluded */
bool dtype_is_float(sinter_dtype dtype);           /* f64 f32 f16 bf16 f8* f4; f8e8m0: powers of two alone */
bool dtype_is_int(sinter_dtype dtype);             /* i2 .. u64, not bool */
bool dtype_is_signed(sinter_dtype dtype);          /* floats and signed integers */
bool dtype_parse(const char *name, size_t length, sinter_dtype *out);
void dtype_int_range(sinter_dtype dtype, int64_t *min, int64_t *max);   /* u64: max is INT64_MAX; bool 0..1 */

/* Element `index` of an array of `dtype` (index counts elements, also of types under a byte). Integers read as
 * double are rounded; floats read as int64 are truncated towards zero and saturated, NaN is 0. u64 is carried in int64
 * bits. */
double  dtype_load_f64(sinter_dtype dtype, const void *base, int64_t index);
int64_t dtype_load_i64(sinter_dtype dtype, const void *base, int64_t index);
/* Stores with one rounding to nearest even. To integers from a double: truncates towards zero, saturates, NaN is 0
 * (ONNX Cast). From int64: wraps. To bool: value != 0. To the 8-bit and 4-bit floats: saturates unless the format has
 * infinities and saturate is false (dtype_store_f64 saturates; dtype_store_f8 chooses). */
void dtype_store_f64(sinter_dtype dtype, void *base, int64_t index, double value);
void dtype_store_i64(sinter_dtype dtype, void *base, int64_t index, int64_t value);
/* Copies the bits of one element of a type. */
void dtype_move(sinter_dtype dtype, void *to_base, int64_t to, const void *from_base, int64_t from);
void dtype_store_f8(sinter_dtype dtype, void *base, int64_t index, double value, bool saturate);

float    dtype_f16_to_f32(uint16_t h);
uint16_t dtype_f16_of_f64(double value);           /* one rounding, to nearest even */
float    dtype_bf16_to_f32(uint16_t h);
uint16_t dtype_bf16_of_f64(double value);

#endif
