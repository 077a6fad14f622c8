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

void *mem_alloc(env *e, size_t size, size_t align)
{
    if (size == 0 || size > PTRDIFF_MAX) return NULL;
    return e->alloc.resize(e->alloc.user, NULL, 0, size, align);
}

void *mem_zalloc(env *e, size_t size, size_t align)
{
    void *ptr = mem_alloc(e, size, align);
    if (ptr) memset(ptr, 0, size);
    return ptr;
}

void mem_free(env *e, void *ptr, size_t size, size_t align)
{
    if (ptr && size) (void)e->alloc.resize(e->alloc.user, ptr, size, 0, align);
}

void *mem_resize(env *e, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    if (!ptr || old_size == 0) return mem_alloc(e, new_size, align);
    if (new_size > PTRDIFF_MAX) return NULL;
    return e->alloc.resize(e->alloc.user, ptr, old_size, new_size, align);
}
