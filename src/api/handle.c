/* SPDX-License-Identifier: Apache-2.0 */
/* handle.c - see handle.h. */
#include "api/handle.h"

#include <string.h>

sinter_status api_options(env *e, void *out, size_t out_size, const void *options)
{
    if (!options) return SINTER_OK;
    size_t size;
    memcpy(&size, options, sizeof size);
    if (size < sizeof size)
        return FAIL(e, INVALID_ARG, "struct_size is %zu: initialise options with their macro", size);
    memcpy(out, options, size < out_size ? size : out_size);
    return SINTER_OK;
}
