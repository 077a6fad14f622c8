/* SPDX-License-Identifier: Apache-2.0 */
/* handle.h - what the public functions share: options that older callers compiled shorter, kinds of files. */
#ifndef API_HANDLE_H
#define API_HANDLE_H

#include "base/os.h"
#include "sinter/file.h"

/* Copies as much of the caller's options as both sides know over the defaults in `out`. INVALID_ARG where struct_size
 * is smaller than its own field. */
sinter_status api_options(env *e, void *out, size_t out_size, const void *options);

/* What files begin with, by sinter_file_kind. */
enum { API_FILE_KINDS = SINTER_FILE_CALIBRATION + 1 };
extern const os_file_kind api_file_kind[API_FILE_KINDS];

#endif
