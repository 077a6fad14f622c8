/* SPDX-License-Identifier: Apache-2.0 */
/* deflate_make.h - random DEFLATE data of every form, and what comes out of it; archives of random .npy files. */
#ifndef DEFLATE_MAKE_H
#define DEFLATE_MAKE_H

#include <stddef.h>
#include <stdint.h>

enum { MADE_MAX = 1 << 14 };
typedef struct made_bytes { uint8_t at[MADE_MAX]; size_t size; } made_bytes;

/* Stored blocks, blocks of the fixed code, and blocks whose codes are random trees, with literals and copies. plain:
 * what comes out, at most plain_max bytes; where `given` is not NULL it is those bytes. */
void deflate_make(uint64_t *random, const uint8_t *given, size_t plain_max, made_bytes *out, made_bytes *plain);
/* An archive of up to 4 .npy files with other names, stored or deflated, with and without fields of 64 bits. */
void npz_make(uint64_t *random, made_bytes *out, uint32_t *count);

#endif
