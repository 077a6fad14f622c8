/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - tensors in files: NumPy's .npy (version 1.0 to 3.0, C order) and .npz, and ONNX's serialised TensorProto
 * (.pb). */
#ifndef SINTER_FILE_H
#define SINTER_FILE_H

#include "build.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a tensor from `path`. The first bytes of the file tell its kind. out->data points into `memory`, which the
 * caller frees. NumPy has no names for bf16, float8, and types of 4 and 2 bits: only .pb files hold these types.
 * Text of a .pb file becomes bytes: u8 with one axis more, as wide as the longest text; shorter texts are filled up
 * with zeros. Errors: IO, INVALID_MODEL (malformed), UNSUPPORTED (text with a zero byte, sequences, Fortran order of
 * rank > 1, big-endian). */
SINTER_API sinter_status sinter_tensor_read(const char *path, const sinter_env_options *env, sinter_tensor *out,
                                            sinter_buffer *memory, sinter_error *error) SINTER_MUST_USE;

/* Reads a sequence or an optional of a .pb file (ONNX's SequenceProto or OptionalProto) as the `count` tensors that
 * stand for the value: io[0] to io[count - 1], as sinter_model_inputs describes them one after the other. `out` and
 * `memory` have room for as many; the caller frees each. With a count of 1 this is sinter_tensor_read. An optional
 * without a value gives zeros, in the sizes that the model declares. Errors: as for sinter_tensor_read; UNSUPPORTED if
 * the tensors of a sequence differ in rank or type. */
SINTER_API sinter_status sinter_value_read(const char *path, const sinter_env_options *env, const sinter_model_io *io,
                                           uint32_t count, sinter_tensor *out, sinter_buffer *memory,
                                           sinter_error *error) SINTER_MUST_USE;

/* A tensor of a .npz file. */
typedef struct sinter_named_tensor {
    const char   *name;
    sinter_tensor tensor;
} sinter_named_tensor;

/* Reads all arrays of a .npz file, in the order of its directory: a ZIP archive of .npy files, stored or deflated, as
 * NumPy's savez and savez_compressed write it. *out, its names and its data point into `memory`, which the caller
 * frees. Cost: the file and all arrays in memory; checksums are compared. Errors: as for sinter_tensor_read;
 * UNSUPPORTED (a file that is no .npy, an encrypted one, another compression, an archive of several disks). */
SINTER_API sinter_status sinter_npz_read(const char *path, const sinter_env_options *env,
                                         const sinter_named_tensor **out, uint32_t *count, sinter_buffer *memory,
                                         sinter_error *error) SINTER_MUST_USE;

/* Writes a .npy file, in the way of sinter_buffer_save. It replaces only a .npy file or an empty file. bf16 and float8
 * values are written as f32, 4-bit integers as int8. */
SINTER_API sinter_status sinter_tensor_write(const char *path, const sinter_tensor *tensor,
                                             sinter_error *error) SINTER_MUST_USE;

/* Kinds of files. The library recognises a kind by the first bytes of a file. A file replaces only a file of its own
 * kind, or an empty file. */
typedef enum sinter_file_kind {
    SINTER_FILE_ENGINE = 0,
    SINTER_FILE_NPY = 1,
    SINTER_FILE_TIMINGS = 2,                        /* a timing cache */
    SINTER_FILE_MODEL = 3,                          /* an ONNX model */
    SINTER_FILE_CALIBRATION = 4                     /* a calibration cache: it begins with "TRT-" */
} sinter_file_kind;

/* Checks that a file of `kind` can be written to `path`. Call it before long work. The file at `path` is not changed.
 * `keep`: `count` paths of files that must not be overwritten, such as inputs; NULL entries are skipped.
 * Errors: INVALID_ARG (a folder, one of `keep`, an existing file of another kind), IO (the path cannot be written). */
SINTER_API sinter_status sinter_file_check(const char *path, sinter_file_kind kind, const char *const *keep,
                                           uint32_t count, sinter_error *error) SINTER_MUST_USE;

/* Element `index` in row-major order, rounded to a double. */
SINTER_API double sinter_tensor_value(const sinter_tensor *tensor, int64_t index);

#ifdef __cplusplus
}
#endif
#endif
