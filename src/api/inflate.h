/* SPDX-License-Identifier: Apache-2.0 */
/* inflate.h - the two things that a ZIP archive needs: DEFLATE (RFC 1951), and the CRC-32 of what comes out. */
#ifndef API_INFLATE_H
#define API_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/* By the next 15 bits: the symbol * 16 + its length; 0: no code begins so. */
typedef struct inflate_tables { uint16_t literal[1 << 15], distance[1 << 15]; } inflate_tables;

/* Decodes `in`, all of it, to exactly `out_size` bytes. Never reads or writes outside of both, whatever `in` holds.
 * NULL, or what is wrong with the data. work: whatever is in there is overwritten. */
const char *inflate_bytes(inflate_tables *work, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);
/* DEFLATE cannot make more of a byte. */
enum { INFLATE_RATIO_MAX = 1032 };

uint32_t crc32_of(const uint8_t *at, size_t size);

#endif
