/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - tensors in files: NumPy's .npy (version 1.0 to 3.0, C order) and ONNX's serialised TensorProto (.pb). */
#ifndef SINTER_FILE_H
#define SINTER_FILE_H

#include "build.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads `path` (the kind is told by its first bytes). `out->data` points into `memory`, which the caller frees.
 * NumPy has no names for bf16 and the types under 16 bits of float: those come only from .pb.
 * Errors: IO, INVALID_MODEL (malformed), UNSUPPORTED (strings, sequences, Fortran order of rank > 1, big-endian). */
SINTER_API sinter_status sinter_tensor_read(const char *path, const sinter_env_options *env, sinter_tensor *out,
                                            sinter_buffer *memory, sinter_error *error) SINTER_MUST_USE;

/* Writes a .npy file, atomically. bf16, float8 and 4-bit types are written as f32 or int8 values. */
SINTER_API sinter_status sinter_tensor_write(const char *path, const sinter_tensor *tensor,
                                             sinter_error *error) SINTER_MUST_USE;

/* Element `index` in row-major order, as a double (rounded where it does not fit). */
SINTER_API double sinter_tensor_value(const sinter_tensor *tensor, int64_t index);

#ifdef __cplusplus
}
#endif
#endif
