/* SPDX-License-Identifier: Apache-2.0 */
/* guarded.c - see guarded.h. Blocks are mapped once; taking and giving changes their protection. */
#include "guarded.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { BLOCKS = 64, PAGE = 4096, PITCH = GUARDED_MAX + PAGE };

static uint8_t *memory;
static bool is_taken[BLOCKS];
static unsigned next;

void *guarded_take(size_t size, bool at_begin)
{
    if (!memory) {
        void *at = mmap(NULL, (size_t)BLOCKS * PITCH + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) abort();
        memory = at;
    }
    if (size > GUARDED_MAX) return NULL;
    for (unsigned i = 0; i < BLOCKS; i++) {
        const unsigned block = next++ % BLOCKS;
        if (is_taken[block]) continue;
        uint8_t *begin = memory + PAGE + (size_t)block * PITCH;
        const size_t used = (size + PAGE - 1) / PAGE * PAGE;
        if (!at_begin) begin += GUARDED_MAX - used;
        if (used && mprotect(begin, used, PROT_READ | PROT_WRITE) != 0) abort();
        is_taken[block] = true;
        return at_begin ? begin : begin + used - size;
    }
    return NULL;
}

void guarded_give(void *at)
{
    if (!at) return;
    /* An empty block at the end has the address of the guard behind it. */
    const size_t from = (size_t)((uint8_t *)at - memory) - PAGE;
    const size_t block = from / PITCH;
    if (mprotect(memory + PAGE + block * PITCH, GUARDED_MAX, PROT_NONE) != 0) abort();
    is_taken[block] = false;
}
