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

/* Writes a .npy file, as sinter_buffer_save writes an engine: only a .npy file or an empty one is replaced.
 * bf16, float8 and 4-bit types are written as f32 or int8 values. */
SINTER_API sinter_status sinter_tensor_write(const char *path, const sinter_tensor *tensor,
                                             sinter_error *error) SINTER_MUST_USE;

/* What a file begins with. A file of one kind never replaces a file of another, unless that is empty. */
typedef enum sinter_file_kind {
    SINTER_FILE_ENGINE = 0,
    SINTER_FILE_NPY = 1,
    SINTER_FILE_TIMINGS = 2                         /* a timing cache */
} sinter_file_kind;

/* Checks, before long work, that a file of `kind` can be written to `path`. What is at `path` stays as it is. `keep`:
 * paths of `count` files that must not be written over, such as inputs; NULLs among them are skipped.
 * Errors: INVALID_ARG (a folder, one of `keep`, an existing file of another kind), IO (it cannot be written). */
SINTER_API sinter_status sinter_file_check(const char *path, sinter_file_kind kind, const char *const *keep,
                                           uint32_t count, sinter_error *error) SINTER_MUST_USE;

/* Element `index` in row-major order, as a double (rounded where it does not fit). */
SINTER_API double sinter_tensor_value(const sinter_tensor *tensor, int64_t index);

#ifdef __cplusplus
}
#endif
#endif
