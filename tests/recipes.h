/* SPDX-License-Identifier: Apache-2.0 */
/* recipes.h - are the recipes of an engine true? Each weight is made again from the model's initializers, and has to be
 * the same bytes. */
#ifndef RECIPES_H
#define RECIPES_H

#include "sinter/sinter.h"
#include <stdbool.h>

typedef struct recipes_count { uint32_t weights, without; } recipes_count;      /* without: those without a recipe */
/* folder: where the model's external data lies; NULL: it has none. False: `why` says what differs. */
bool recipes_hold(const sinter_engine *engine, const void *model, size_t size, const char *folder, recipes_count *count,
                  char *why, size_t why_size);

#endif
