/* SPDX-License-Identifier: Apache-2.0 */
/* refit.h - other weights for an engine that is built already, and engines without weights.
 *
 * An engine knows how each of its weights was made of the model's initializers: scaled, joined, converted, packed for a
 * kernel. Refitting makes them again from new initializers. The kernels stay the same. The result is the engine that a
 * build with the new weights would give, where that build looks at no values: options.refittable of
 * sinter_build_file(). Without that option the values of some initializers decide what the engine is; those cannot be
 * replaced. */
#ifndef SINTER_REFIT_H
#define SINTER_REFIT_H

#include "build.h"
#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An initializer of the model, or the tensor of a Constant node with this output. */
typedef struct sinter_weight {
    const char          *name;
    const sinter_tensor *value;         /* dense, on the host, of the type and size that it had; borrowed */
} sinter_weight;

typedef struct sinter_weight_info {
    const char  *name;                  /* valid as long as the engine */
    sinter_dtype dtype;
    uint64_t     size;                  /* bytes */
    uint32_t     is_fixed;              /* its values decided what the engine is: it cannot be replaced */
} sinter_weight_info;

/* Calls `visit` for each initializer that weights of the engine are made of, or that is fixed. A non-zero result of
 * `visit` ends the call. Errors: INVALID_ARG. */
SINTER_API sinter_status sinter_engine_weights(const sinter_engine *engine,
                                               int (*visit)(void *user, const sinter_weight_info *weight), void *user,
                                               sinter_error *error) SINTER_MUST_USE;

/* Calls `visit` for each initializer that sinter_engine_refit() would want beside those of these names: a weight of the
 * engine that is made of several initializers needs all of them, and a stripped engine needs every one. A non-zero
 * result of `visit` ends the call. Names that the engine does not have are ignored. Errors: INVALID_ARG, NO_MEMORY. */
SINTER_API sinter_status sinter_engine_weights_missing(const sinter_engine *engine, const char *const *name,
                                                       uint32_t count,
                                                       int (*visit)(void *user, const sinter_weight_info *weight),
                                                       void *user, sinter_error *error) SINTER_MUST_USE;

/* Makes an engine with other weights. `engine` stays as it is; contexts of it go on.
 *
 *   weight   those that change. A weight of the engine that is made of several initializers needs all of them.
 *   out      receives the bytes of the new engine, for sinter_engine_load_memory() and sinter_buffer_save().
 *
 * `engine` may have been loaded without a device. If it was stripped, all initializers are needed.
 * Cost: that of making the weights that change, and of copying the others.
 * Errors: INVALID_ARG (a name that the engine does not have, another type or size, a weight that is fixed and differs,
 * an initializer that is missing: the error names it), INCOMPATIBLE (an engine of an older format), NO_MEMORY. */
SINTER_API sinter_status sinter_engine_refit(const sinter_engine *engine, const sinter_weight *weight, uint32_t count,
                                             sinter_buffer *out, sinter_error *error) SINTER_MUST_USE;

/* The same with all initializers of an ONNX file: the model that the engine was built from, with other weights.
 * Initializers that the engine does not have are ignored; nothing else of the file is looked at. External data is read
 * only from the folder of `path`. Errors: as above, and IO, INVALID_MODEL. */
SINTER_API sinter_status sinter_engine_refit_file(const sinter_engine *engine, const char *path, sinter_buffer *out,
                                                  sinter_error *error) SINTER_MUST_USE;

/* Leaves out all weights that are made of initializers. Such an engine cannot run before it is refitted.
 * Errors: INVALID_ARG, INCOMPATIBLE, NO_MEMORY. */
SINTER_API sinter_status sinter_engine_strip(const sinter_engine *engine, sinter_buffer *out,
                                             sinter_error *error) SINTER_MUST_USE;
/* Non-zero: the engine lacks weights that sinter_engine_strip left out. 0 if `engine` is NULL. */
SINTER_API int sinter_engine_is_stripped(const sinter_engine *engine);

#ifdef __cplusplus
}
#endif
#endif
