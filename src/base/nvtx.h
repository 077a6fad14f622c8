/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx.h - names for the time that work takes, which NVIDIA's profilers show (NVTX). */
#ifndef BASE_NVTX_H
#define BASE_NVTX_H

#include "base/env.h"

/* Functions of libnvToolsExt; NULL: nobody profiles. Ranges of a thread nest. */
typedef struct nvtx {
    void *library;
    int (*push)(const char *name);
    int (*pop)(void);
} nvtx;

/* Opens the library that SINTER_LIBNVTX names. Without that variable it opens libnvToolsExt.so.1, if there is one,
 * where a profiler is attached (NVTX_INJECTION64_PATH).
 * Errors: UNSUPPORTED (what SINTER_LIBNVTX names cannot be opened). */
sinter_status nvtx_open(env *e, nvtx *out);
void          nvtx_close(nvtx *r);

#endif
