/* SPDX-License-Identifier: Apache-2.0 */
/* device_hook.c - see device_hook.h. */
#include "device_hook.h"

#include "test.h"

static void count(device_hook *h, size_t size)
{
    h->allocations++;
    h->total += size;
    h->live += size;
    if (h->live > h->peak) h->peak = h->live;
}

static void *allocate(void *user, size_t size, size_t align, uint32_t flags, void *stream)
{
    device_hook *h = user;
    void *at = NULL;
    h->misuse += !size || align < 64 || (align & (align - 1)) || flags > SINTER_DEVICE_RESIZABLE || !stream;
    if (h->budget >= 0 && h->budget-- == 0) {
        h->budget = 0;
        return NULL;
    }
    if (sinter_engine_alloc(h->from, SINTER_PLACE_DEVICE, size, &at, NULL) != SINTER_OK) return NULL;
    count(h, size);
    return at;
}

static void release(void *user, void *memory, size_t size, void *stream)
{
    device_hook *h = user;
    (void)stream;
    h->misuse += !memory || !size || size > h->live;
    sinter_engine_free(h->from, SINTER_PLACE_DEVICE, memory, size);
    h->frees++;
    h->live -= size;
}

static void *reallocate(void *user, void *memory, size_t old_size, size_t size, size_t align, void *stream)
{
    device_hook *h = user;
    h->misuse += !memory || size <= old_size;
    if (test_below(&h->random, 2)) return NULL;
    void *at = allocate(user, size, align, SINTER_DEVICE_RESIZABLE, stream);
    if (!at) return NULL;
    h->misuse +=
        sinter_engine_copy(h->from, at, SINTER_PLACE_DEVICE, memory, SINTER_PLACE_DEVICE, old_size, NULL) != SINTER_OK;
    h->live -= size; /* the library sees one block */
    h->live += size - old_size;
    sinter_engine_free(h->from, SINTER_PLACE_DEVICE, memory, old_size);
    h->frees++;
    return at;
}

sinter_device_allocator device_hook_of(device_hook *h, bool can_grow)
{
    return (sinter_device_allocator){
        .user = h, .allocate = allocate, .reallocate = can_grow ? reallocate : NULL, .release = release
    };
}

bool device_hook_agrees(const device_hook *h, const sinter_engine *g)
{
    sinter_memory_info info = SINTER_MEMORY_INFO;
    if (sinter_engine_memory(g, &info, NULL) != SINTER_OK) return false;
    return !h->misuse && info.live == h->live && info.total == h->total && info.allocations == h->allocations &&
           info.frees == h->frees && info.peak <= h->peak && info.peak >= info.live;
}
