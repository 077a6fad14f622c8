/* SPDX-License-Identifier: Apache-2.0 */
/* guarded.h - memory of an exact size between pages that nobody may touch. */
#ifndef GUARDED_H
#define GUARDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GUARDED_MAX = 64 << 10 };        /* bytes of one block */

/* `size` bytes that end at a guard page, or begin behind one. NULL: all blocks are taken, or `size` is too large. */
void *guarded_take(size_t size, bool at_begin);
/* No access from now on; the block is taken again last of all. */
void  guarded_give(void *at);

#endif
