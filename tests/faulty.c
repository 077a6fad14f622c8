/* SPDX-License-Identifier: Apache-2.0 */
/* faulty.c - each block carries its size and alignment in front, and a resize always moves: stale pointers show under
 * ASan, and a wrong size shows everywhere. */
#include "faulty.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct head {
    size_t size, align;
} head;

/* The head stands right before the block, inside a gap that keeps the block aligned. */
static size_t gap_of(size_t align)
{
    return align < sizeof(head) ? sizeof(head) : align;
}

static head *head_of(void *ptr)
{
    return (head *)((char *)ptr - sizeof(head));
}

static long add(long *counter, long by)
{
    return __atomic_add_fetch(counter, by, __ATOMIC_RELAXED);
}

static void drop(faulty *f, void *ptr)
{
    const head h = *head_of(ptr);
    add(&f->live, -1);
    add(&f->live_bytes, -(long)h.size);
    free((char *)ptr - gap_of(h.align));
}

static void *take(faulty *f, size_t size, size_t align)
{
    const size_t gap = gap_of(align);
    if (size > PTRDIFF_MAX - 2 * gap) return NULL;
    char *base = aligned_alloc(gap, (gap + size + gap - 1) / gap * gap);
    if (!base) return NULL;
    void *ptr = base + gap;
    *head_of(ptr) = (head){ size, align };
    memset(ptr, 0xA5, size); /* nobody may count on zeroes */
    add(&f->live, 1);
    const long bytes = add(&f->live_bytes, (long)size);
    long peak = __atomic_load_n(&f->peak_bytes, __ATOMIC_RELAXED);
    while (bytes > peak &&
           !__atomic_compare_exchange_n(&f->peak_bytes, &peak, bytes, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return ptr;
}

void *faulty_resize(void *user, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    faulty *f = user;
    if (old_size) {
        const head *h = head_of(ptr);
        if (h->size != old_size || h->align != align) add(&f->misuse, 1);
    }
    if (new_size == 0) {
        if (old_size) drop(f, ptr);
        return NULL;
    }
    const long request = add(&f->requests, 1);
    if (f->budget >= 0 && request > f->budget) return NULL;
    void *fresh = take(f, new_size, align);
    if (fresh && old_size) {
        memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
        drop(f, ptr);
    }
    return fresh;
}
