/* SPDX-License-Identifier: Apache-2.0 */
/* shrink.h - from a set of items to a small one for which something still holds. */
#ifndef CLI_SHRINK_H
#define CLI_SHRINK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shrink_plan {
    uint32_t count;
    bool     is_linear;             /* items go one by one; else halves first, then quarters, down to single items */
    bool     is_reverse;            /* the last items are tried first */
    /* Does it hold with these items alone? */
    bool   (*holds)(void *user, const bool *is_kept);
    void    *user;
} shrink_plan;

/* is_kept: at first a set for which it holds; at the end one of which no single item can go. Returns how many items are
 * kept. Cost: items that go in halves cost few calls; n items that all have to stay cost about 2n. */
uint32_t shrink(const shrink_plan *p, bool *is_kept);

#endif
