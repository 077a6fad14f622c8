/* SPDX-License-Identifier: Apache-2.0 */
/* build.h - the builder: import, optimise, tune, plan, write. */
#ifndef BUILD_BUILD_H
#define BUILD_BUILD_H

#include "sinter/build.h"
#include "base/env.h"

/* folder: where external data may lie; NULL: nowhere. */
sinter_status build_engine(env *e, const uint8_t *model, size_t size, const char *folder, const char *name,
                           const sinter_build_options *o, uint8_t **out, size_t *out_size);

#endif
