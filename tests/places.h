/* SPDX-License-Identifier: Apache-2.0 */
/* places.h - where tests find the tree, the command and the fake driver: where they were built, unless a variable says
 * otherwise. So a build folder can be carried to another machine. */
#ifndef PLACES_H
#define PLACES_H

#include <stdlib.h>

static inline const char *place_of(const char *variable, const char *built)
{
    const char *own = getenv(variable);
    return own && *own ? own : built;
}

#define PLACE_SOURCE_DIR place_of("SINTER_SOURCE_DIR", SINTER_SOURCE_DIR)
#define PLACE_BIN place_of("SINTER_BIN", SINTER_BIN)
#define PLACE_FAKE_CUDA place_of("SINTER_FAKE_CUDA", SINTER_FAKE_CUDA)

#endif
