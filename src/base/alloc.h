/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.h - the allocator that an env uses when the caller gives none: malloc and its aligned kin. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include "base/env.h"

/* The contract of sinter_allocator.resize; `user` is not read. */
void *alloc_resize_default(void *user, void *ptr, size_t old_size, size_t new_size, size_t align);

#endif
