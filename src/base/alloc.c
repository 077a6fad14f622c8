/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.c - the uses of the caller's allocator, and the default one.
 *
 * A size above PTRDIFF_MAX is refused here, in one place, so that saturated sizes (size_add, size_mul) never reach an
 * allocator. */
#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

/* malloc already gives this alignment, and realloc may then move less. */
static bool is_plain(size_t align)
{
    return align <= _Alignof(max_align_t);
}

void *alloc_resize_default(void *user, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)user;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    if (is_plain(align)) return realloc(old_size ? ptr : NULL, new_size);
    if (new_size > PTRDIFF_MAX - align) return NULL;
    void *fresh = aligned_alloc(align, size_align(new_size, align));
    if (fresh && old_size) {
        memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
        free(ptr);
    }
    return fresh;
}

bool env_take(env *e, uint64_t size)
{
    const uint64_t most = e->limits.memory_max;
    for (env_budget *b = e->budget; b; b = b->outer) {
        const uint64_t before = __atomic_fetch_add(&b->used, size, __ATOMIC_RELAXED);
        if (before <= most && size <= most - before) continue;
        e->met_limit = true;
        for (env_budget *k = e->budget;; k = k->outer) {
            (void)__atomic_fetch_sub(&k->used, size, __ATOMIC_RELAXED);
            if (k == b) return false;
        }
    }
    return true;
}

void env_give(env *e, uint64_t size)
{
    for (env_budget *b = e->budget; b; b = b->outer) (void)__atomic_fetch_sub(&b->used, size, __ATOMIC_RELAXED);
}

void *mem_alloc(env *e, size_t size, size_t align)
{
    if (size == 0 || size > PTRDIFF_MAX || !env_take(e, size)) return NULL;
    void *ptr = e->alloc.resize(e->alloc.user, NULL, 0, size, align);
    if (!ptr) env_give(e, size);
    return ptr;
}

void *mem_zalloc(env *e, size_t size, size_t align)
{
    void *ptr = mem_alloc(e, size, align);
    if (ptr) memset(ptr, 0, size);
    return ptr;
}

void mem_free(env *e, void *ptr, size_t size, size_t align)
{
    if (!ptr || !size) return;
    (void)e->alloc.resize(e->alloc.user, ptr, size, 0, align);
    env_give(e, size);
}

void *mem_resize(env *e, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    if (!ptr || old_size == 0) return mem_alloc(e, new_size, align);
    /* Both are there while one is copied to the other. */
    if (new_size > PTRDIFF_MAX || !env_take(e, new_size)) return NULL;
    void *fresh = e->alloc.resize(e->alloc.user, ptr, old_size, new_size, align);
    env_give(e, fresh || !new_size ? old_size : new_size);
    return fresh;
}
