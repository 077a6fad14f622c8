/* SPDX-License-Identifier: Apache-2.0 */
/* handle.h - what the public functions share: options that older callers compiled shorter. */
#ifndef API_HANDLE_H
#define API_HANDLE_H

#include "base/env.h"

/* Copies as much of the caller's options as both sides know over the defaults in `out`. INVALID_ARG where struct_size
 * is smaller than its own field. */
sinter_status api_options(env *e, void *out, size_t out_size, const void *options);

#endif
