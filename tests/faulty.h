/* SPDX-License-Identifier: Apache-2.0 */
/* faulty.h - an allocator that fails every request after the first `budget`, and counts what is live.
 *
 *     faulty f = { .budget = n };
 *     const sinter_allocator allocator = { &f, faulty_resize };
 *     ... the operation under test ...
 *     CHECK_EQ(f.live, 0); CHECK_EQ(f.misuse, 0);
 *
 * It also checks the contract: sizes and alignments must be those of the allocation, and the counters are safe to use
 * from several threads. */
#ifndef FAULTY_H
#define FAULTY_H

#include "sinter/option.h"

typedef struct faulty {
    long   budget;             /* requests that succeed; negative: all */
    long   requests;           /* made so far; frees are none */
    long   live;               /* blocks */
    long   live_bytes;
    long   peak_bytes;
    long   misuse;             /* frees and resizes that gave another size or alignment than was asked for */
} faulty;

void *faulty_resize(void *user, void *ptr, size_t old_size, size_t new_size, size_t align);

#endif
