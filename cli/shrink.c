/* SPDX-License-Identifier: Apache-2.0 */
/* shrink.c - takes groups of items away while the rest is enough. */
#include "shrink.h"

#include "print.h"
#include <stdlib.h>
#include <string.h>

static uint32_t kept_of(const shrink_plan *p, const bool *is_kept)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count; i++) count += is_kept[i];
    return count;
}

/* One pass: each group of `size` kept items in turn goes if the others are enough. Returns how many items went. */
static uint32_t pass(const shrink_plan *p, bool *is_kept, bool *trial, uint32_t size)
{
    uint32_t gone = 0;
    for (uint32_t at = 0; at < p->count;) {
        uint32_t taken = 0;
        memcpy(trial, is_kept, p->count * sizeof *trial);
        for (; at < p->count && taken < size; at++) {
            const uint32_t i = p->is_reverse ? p->count - 1 - at : at;
            taken += trial[i];
            trial[i] = false;
        }
        if (!taken || !p->holds(p->user, trial)) continue;
        memcpy(is_kept, trial, p->count * sizeof *trial);
        gone += taken;
    }
    return gone;
}

uint32_t shrink(const shrink_plan *p, bool *is_kept)
{
    bool *trial = cli_alloc(p->count, sizeof *trial);
    uint32_t size = p->is_linear ? 1 : (kept_of(p, is_kept) + 1) / 2;
    while (size) {
        const uint32_t gone = pass(p, is_kept, trial, size);
        if (size > 1) size /= 2;
        else if (!gone) break;
    }
    free(trial);
    return kept_of(p, is_kept);
}
