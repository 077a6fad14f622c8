/* SPDX-License-Identifier: Apache-2.0 */
/* refits.h - is a refitted engine the one that a build with the new weights gives? To the byte. */
#ifndef REFITS_H
#define REFITS_H

#include "sinter/sinter.h"
#include <stdbool.h>

typedef struct refits_size { size_t full, stripped; uint32_t changed, fixed; } refits_size;
/* Builds the model at `path` (refittable), writes it with other weights to FOLDER/model.onnx beside its external data,
 * builds that, and refits the first engine, whole and stripped, with the second model. All three have to be the same.
 * False: `why` says what differs. */
bool refits_hold(const char *path, const char *folder, const sinter_build_options *options, refits_size *out, char *why,
                 size_t why_size);

/* The same by name and in memory, for an engine of this model that was built with refittable. `build` builds as that
 * one was built. */
typedef sinter_status (*refits_build)(void *user, const void *model, size_t size, sinter_buffer *out,
                                      sinter_error *error);
bool refits_hold_memory(const sinter_engine *engine, const void *model, size_t size, refits_build build, void *user,
                        uint32_t *changed, char *why, size_t why_size);

#endif
