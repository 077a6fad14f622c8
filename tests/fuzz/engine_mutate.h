/* SPDX-License-Identifier: Apache-2.0 */
/* engine_mutate.h - engines changed by someone who knows the format. */
#ifndef ENGINE_MUTATE_H
#define ENGINE_MUTATE_H

#include "engine_parts.h"

/* A whole engine with one change or a few: of views, storages, sizes, the shape program, symbols, regions, calls,
 * problem lines. Some changes are made everywhere at once, so that the engine stays consistent and gets past the
 * verifier. Now and then records come from `other`. Checksums are not set. */
image mutant_of(image seed, image other, uint64_t *random);

#endif
