/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.h - how far 8-bit numbers reach, tensor by tensor: found by running a model on the caller's data, or read
 * from a calibration cache as TensorRT writes it. A build takes the ranges: sinter_build_options.calibration. */
#ifndef SINTER_CALIBRATE_H
#define SINTER_CALIBRATE_H

#include "build.h"
#include "network.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a range is chosen from the magnitudes |x| of a tensor over all batches. All methods but MINMAX look at a
 * histogram of 2,048 equal bins between 0 and the largest magnitude. */
typedef enum sinter_calibration_method {
    /* As ENTROPY, with three differences: bin 0 counts as many as bin 1, so numbers at 0 do not matter; the last of
     * equal candidates wins; the range ends where the candidate's bins end. */
    SINTER_CALIBRATION_ENTROPY_2 = 0,
    /* For each count of bins from 128 to 2,048: P is the histogram cut there, with what lies beyond added to its last
     * bin; Q is the histogram cut there in 128 levels, each spread over its bins that are not empty. The range ends in
     * the middle of the bin behind the count whose divergence KL(P || Q) is least. */
    SINTER_CALIBRATION_ENTROPY = 1,
    SINTER_CALIBRATION_MINMAX = 2,      /* the largest magnitude */
    SINTER_CALIBRATION_PERCENTILE = 3,  /* the end of the first bin at which `percentile` of all numbers are reached */
    SINTER_CALIBRATION_LEGACY = 4,      /* as PERCENTILE with 100 * `quantile`, of bins up to `cutoff` of the largest */
    SINTER_CALIBRATION_ERROR = 5        /* the least squared error: what a build without a calibration takes */
} sinter_calibration_method;

/* Without ranges. The header of its cache says ENTROPY_2. Errors: INVALID_ARG, NO_MEMORY. */
SINTER_API sinter_status sinter_calibration_create(const sinter_env_options *env, sinter_calibration **out,
                                                   sinter_error *error) SINTER_MUST_USE;
SINTER_API void          sinter_calibration_destroy(sinter_calibration *calibration);       /* NULL is fine */

/* Reads the text of a calibration cache. Line 1 is "TRT-VERSION-METHOD", for any version and method. Each other line is
 * "NAME: HEX", where HEX is eight hexadecimal digits: the bits of the f32 scale, which is the range / 127. A scale of 0
 * is a tensor without a range.
 * Errors: INVALID_MODEL names the line and what is wrong with it; NO_MEMORY. */
SINTER_API sinter_status sinter_calibration_read(const void *cache, size_t size, const sinter_env_options *env,
                                                 sinter_calibration **out, sinter_error *error) SINTER_MUST_USE;

/* The text of the cache: the same ranges in the same order give the same bytes. A cache that was read and not changed
 * gives its own bytes, where its lines end in "\n" and its digits are in lower case. A new header begins with
 * "TRT-101600-". The caller frees the buffer. Errors: INVALID_ARG, NO_MEMORY. */
SINTER_API sinter_status sinter_calibration_write(const sinter_calibration *calibration, sinter_buffer *out,
                                                  sinter_error *error) SINTER_MUST_USE;

/* The same from a file and to a file. A file is replaced only by a complete one, and only if it is a calibration cache
 * or empty. Errors: as above; IO. */
SINTER_API sinter_status sinter_calibration_load(const char *path, const sinter_env_options *env,
                                                 sinter_calibration **out, sinter_error *error) SINTER_MUST_USE;
SINTER_API sinter_status sinter_calibration_save(const sinter_calibration *calibration, const char *path,
                                                 sinter_error *error) SINTER_MUST_USE;

/* Line 1 of the cache, such as "TRT-101600-EntropyCalibration2". Lives as long as the calibration. */
SINTER_API const char *sinter_calibration_header(const sinter_calibration *calibration);

/* The tensor of this index and its scale (range / 127). The name lives as long as the calibration.
 * Errors: INVALID_ARG where the index is not below the count. */
SINTER_API uint32_t      sinter_calibration_count(const sinter_calibration *calibration);
SINTER_API sinter_status sinter_calibration_get(const sinter_calibration *calibration, uint32_t index,
                                                const char **name, float *scale, sinter_error *error) SINTER_MUST_USE;

/* Says that a tensor's magnitudes reach `range`; 0: it has no range, and products that read it keep their type.
 * Errors: INVALID_ARG (a name that a cache cannot hold, a range below 0, not finite or above f32), NO_MEMORY. */
SINTER_API sinter_status sinter_calibration_set(sinter_calibration *calibration, const char *name, double range,
                                                sinter_error *error) SINTER_MUST_USE;

/* X(kind, type, field, initial, most, words, text): option.h says how to read it. */
#define SINTER_CALIBRATE_SCALARS(X)                                                                                  \
    X(CHOICE, sinter_calibration_method, method, SINTER_CALIBRATION_ENTROPY_2, SINTER_CALIBRATION_ERROR,             \
      "entropy2|entropy|minmax|percentile|legacy|error",                                                            \
      "How a tensor's range follows from its magnitudes. Default entropy2; error: the least squared error.")         \
    X(REAL, double, percentile, 99.99, 100, "P",                                                                     \
      "Of the method percentile: numbers inside the range. Default 99.99.")                                          \
    X(REAL, double, quantile, 0.9999, 1, "Q",                                                                        \
      "Of the method legacy: the part of numbers inside the range. Default 0.9999.")                                 \
    X(REAL, double, cutoff, 1, 1, "C",                                                                               \
      "Of the method legacy: magnitudes above this part of the largest do not count. Default 1.")

typedef struct sinter_calibrate_options {
    size_t                      struct_size;
    SINTER_CALIBRATE_SCALARS(SINTER_FIELD)
    /* What the model is run with: env, threads, isa, the calibration profile (the first profile: its opt shapes are
     * those of inputs that no batch names), value, equal, state, progress. sample: the batches, unless `next` gives
     * them. Other fields are ignored. NULL: defaults. */
    const sinter_build_options *build;
    /* Gives the next batch, whose tensors are borrowed until the next call. Returns 1: there is a batch; 0: there was
     * none left; below 0: the calibration ends with CANCELLED. All batches are copied, and run when there is no other.
     * NULL: build->sample. */
    int                       (*next)(void *user, sinter_sample *batch);
    void                       *user;           /* passed to next */
} sinter_calibrate_options;
#define SINTER_CALIBRATE_OPTIONS { sizeof(sinter_calibrate_options), SINTER_CALIBRATE_SCALARS(SINTER_INITIAL) 0, 0, 0 }

/* Row `index` of the table; NULL behind the last. The library's own memory. */
SINTER_API const sinter_option *sinter_calibrate_option(uint32_t index);

/* Runs the model in f32 on the CPU and finds the range of each f32 tensor that the optimised model computes, inputs
 * included; constants and what is inside of If, Loop and Scan are left out. Names are the model's. What a product reads
 * that has no name in the model is named after the product. Tensors that are all 0, or not finite, get no range.
 * The same data gives the same ranges on one machine, in any order of batches.
 *
 *   options   without batches the call fails.
 *   out       receives the ranges; the caller destroys them. NULL on failure.
 *
 * Cost: the batches in memory, and two runs of each (MINMAX: one); more where the tensors together are above 512 MiB.
 * Errors: as sinter_build_file; INVALID_ARG (a batch that does not fit the model); CANCELLED. */
SINTER_API sinter_status sinter_calibrate_file(const char *path, const sinter_calibrate_options *options,
                                               sinter_calibration **out, sinter_error *error) SINTER_MUST_USE;
SINTER_API sinter_status sinter_calibrate_memory(const void *model, size_t size,
                                                 const sinter_calibrate_options *options, sinter_calibration **out,
                                                 sinter_error *error) SINTER_MUST_USE;
SINTER_API sinter_status sinter_calibrate_network(sinter_network *network, const sinter_calibrate_options *options,
                                                  sinter_calibration **out, sinter_error *error) SINTER_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
