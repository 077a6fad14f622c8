/* SPDX-License-Identifier: Apache-2.0 */
/* npy.h - NumPy's file format: a Python dict as text, then dense elements.
 *
 * The text comes from anywhere: it is scanned for exactly what the format allows, and nothing in it is evaluated. */
#ifndef API_NPY_H
#define API_NPY_H

#include "base/text.h"
#include "sinter/tensor.h"

typedef struct npy_header {
    sinter_tensor tensor;           /* data is NULL */
    size_t        data_at;          /* offset of the elements, which end with the bytes */
} npy_header;

bool npy_is(const uint8_t *bytes, size_t size);
/* Errors: INVALID_MODEL (malformed, or the wrong size), UNSUPPORTED (a type, rank or order that a tensor
 * cannot have). */
sinter_status npy_header_read(env *e, const uint8_t *bytes, size_t size, npy_header *out);
/* The header of a version 1.0 file, padded to a multiple of 64. `dtype` must be one that NumPy names (npy_dtype). */
void npy_header_write(const sinter_tensor *tensor, text *out);
/* The type in which NumPy can hold every value of `dtype`: itself, f32, i8 or u8. */
sinter_dtype npy_dtype(sinter_dtype dtype);

#endif
