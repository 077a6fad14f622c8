/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h - small models that between them touch every part of the way from a model to a run: static and dynamic
 * shapes, weights that are packed, regions, sizes known late, two profiles. Tests build engines from them. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include "onnx_bytes.h"
#include "sinter/sinter.h"
#include <stdbool.h>

typedef enum sample {
    SAMPLE_CONV,        /* convolution, pool, Gemm, softmax over a dynamic batch */
    SAMPLE_PROFILES,    /* the same with two profiles */
    SAMPLE_REGIONS,     /* If, then a Loop that carries, captures and stacks */
    SAMPLE_LATE,        /* NonZero, TopK with a k that data decides, Slice with an end that data decides */
    SAMPLE_SCAN,
    SAMPLE_LSTM,
    SAMPLE_GATHER,      /* an embedding, attention, a residual */
    SAMPLE_MOVE,        /* pads, slices, concatenation, reductions, resize, indices, integers, f16 */
    SAMPLE_COUNT
} sample;

const char *sample_name(sample s);
bytes       sample_model(sample s);      /* the caller frees .at */
/* Without measuring, for one thread. `options` may add to that: NULL for none. */
sinter_status sample_build(sample s, const sinter_env_options *env, sinter_buffer *out, sinter_error *error);
/* The ranges that sample_build uses. */
const sinter_profile *sample_profiles(sample s, uint32_t *count);

typedef enum sample_size { SAMPLE_MIN, SAMPLE_OPT, SAMPLE_MAX } sample_size;

/* Floats in [-2, 2), bools, integers from 1 to 3, so that they serve as indices and counts. */
void sample_fill(void *at, size_t size, sinter_dtype dtype, uint64_t *seed);

/* Values for every input of an engine, of its own shapes. Integers are small and not negative, so that they serve as
 * indices and counts. at[] is malloc'ed; NULL beyond the inputs. */
enum { SAMPLE_IO_MAX = 16 };
typedef struct sample_data {
    uint32_t      count;
    const char   *name[SAMPLE_IO_MAX];
    sinter_tensor at[SAMPLE_IO_MAX];
} sample_data;
/* False where an input is larger than `bytes_max` or there are too many. */
bool sample_data_make(const sinter_engine *g, uint32_t profile, sample_size size, uint64_t seed, size_t bytes_max,
                      sample_data *out);
void sample_data_free(sample_data *d);
sinter_status sample_data_set(const sample_data *d, sinter_context *c, sinter_error *error);
/* A hash of all outputs' types, shapes and bytes; 0 where one cannot be had. */
uint64_t sample_results(const sinter_engine *g, sinter_context *c);

#endif
