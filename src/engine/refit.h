/* SPDX-License-Identifier: Apache-2.0 */
/* refit.h - engines with other weights, and engines whose weights are left out until they are wanted. */
#ifndef ENGINE_REFIT_H
#define ENGINE_REFIT_H

#include "engine/engine.h"

typedef struct refit_options {
    /* The new bytes of an initializer of this size, which live as long as the call; NULL: it stays as it is. digest: of
     * the bytes that the engine has. NULL function: all stay. */
    const void *(*find)(void *user, const char *name, uint64_t digest, uint64_t size);
    void          *user;
    bool           strip;               /* leaves out what recipes make of initializers */
    const uint8_t *digest;              /* of the model that the weights are from; NULL: as it was */
} refit_options;

/* A whole file, allocated with the env's allocator. A weight that a new initializer is part of needs all its
 * initializers: INVALID_ARG names one that is not given. */
sinter_status engine_refit(env *e, const engine *g, const refit_options *o, uint8_t **out, size_t *size);

/* By recipe, zeroed by the caller: 1 for each initializer that engine_refit() needs and that o->find does not give. */
sinter_status engine_refit_missing(env *e, const engine *g, const refit_options *o, uint8_t *missing);

#endif
