/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - a fast 64-bit checksum (XXH64, from its published specification) and SHA-256 (FIPS 180-4). */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash64(const void *data, size_t size, uint64_t seed);

/* The same over bytes that come in pieces; seed 0. */
typedef struct hash64_parts { uint64_t lane[4], size; uint8_t block[32]; } hash64_parts;
void     hash64_begin(hash64_parts *h);
void     hash64_add(hash64_parts *h, const void *data, size_t size);
uint64_t hash64_end(const hash64_parts *h);

typedef struct sha256 { uint32_t state[8]; uint64_t size; uint8_t block[64]; } sha256;
void sha256_init(sha256 *s);
void sha256_update(sha256 *s, const void *data, size_t size);
void sha256_final(sha256 *s, uint8_t digest[32]);

#endif
