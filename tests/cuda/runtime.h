/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - runs a kernel that was compiled for the CPU: every thread of a block is a fiber, and a block (or a
 * cluster of blocks) runs at a time.
 *
 * Whatever a GPU may do late is done as late as it can be: asynchronous copies happen when they are waited for and
 * leave NaN in their place until then, and shared memory begins as NaN. So a missing wait gives a wrong result. One
 * launch at a time in a process. */
#ifndef CUDA_RUNTIME_H
#define CUDA_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory whose owner wants to hear of wrong uses. Whole pages; those that are not constants are out of reach before
 * grid_wait(). */
typedef struct runtime_region { const char *name; void *pages; size_t size; bool is_const; } runtime_region;

enum { RUNTIME_PARAMS = 8 };
typedef struct runtime_launch {
    const char *name;                   /* for messages */
    void       *object;                 /* dlopen's */
    const char *object_path, *entry;
    uint32_t    grid[3], block, cluster, shared;
    const void *param[RUNTIME_PARAMS];
    uint32_t    param_size[RUNTIME_PARAMS], param_count;    /* sizes 0: not checked */
    const runtime_region *region;
    uint32_t    region_count;
    bool        is_reversed;            /* blocks and threads run from the last to the first */
    bool        is_synchronous;         /* chips before sm_80: an asynchronous copy is none */
    bool        is_lenient;             /* a thread may end without grid_wait() */
    uint32_t    seconds;                /* at most; 0: no limit */
} runtime_launch;

/* False: `why` says what went wrong, in which block and thread, and at which line where that is known. */
bool runtime_run(const runtime_launch *l, char *why, size_t size);

#endif
