/* SPDX-License-Identifier: Apache-2.0 */
/* twoplace.h - a backend with memory of its own, on any machine: the CPU's kernels behind the interface of a GPU.
 *
 * Its memory is mapped without access while the host works, so that a host that looks at it dies; each block ends at a
 * page that nobody may touch. Work is not done when it is given but when a stream is waited for, so that a wait that is
 * missing shows as a wrong result. What the contract forbids is counted as misuse. Programs that link this file get it
 * as the backend "cuda". */
#ifndef TWOPLACE_H
#define TWOPLACE_H

#include "backend/backend.h"

typedef struct twoplace_state {
    long        misuse;             /* the first is printed */
    long        allocations, live;  /* of device memory */
    long        launches, copies, waits, imports;
    long        budget;             /* calls to the device that succeed; negative: all */
    uint64_t    hidden;             /* bit k: kernel k of the CPU (but the copy) is not there: the host does its work */
    const void *native;             /* the last stream that a caller gave */
    bool        is_eager;           /* work on a stream that others are ordered with is done as early as possible */
} twoplace_state;
extern twoplace_state twoplace;

extern const backend twoplace_backend;

/* Device memory for callers, and access to it. */
void *twoplace_alloc(size_t size);
void  twoplace_free(void *at, size_t size);
void  twoplace_read(void *to, const void *from, size_t size);
void  twoplace_write(void *to, const void *from, size_t size);

#endif
