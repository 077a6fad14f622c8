/* SPDX-License-Identifier: Apache-2.0 */
/* device_hook.h - a caller's allocator of device memory, which counts what passes through it. */
#ifndef DEVICE_HOOK_H
#define DEVICE_HOOK_H

#include "sinter/sinter.h"

#include <stdbool.h>

typedef struct device_hook {
    sinter_engine *from;            /* an engine on the same device, whose memory it hands out */
    uint64_t       live, peak, total, allocations, frees, misuse;
    long           budget;          /* allocations that succeed; negative: all */
    uint64_t       random;          /* decides whether a block grows */
} device_hook;

/* can_grow: it has a function for it, which says no now and then. */
sinter_device_allocator device_hook_of(device_hook *h, bool can_grow);
/* Does the engine count the same? */
bool device_hook_agrees(const device_hook *h, const sinter_engine *g);

#endif
