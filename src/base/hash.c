/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - XXH64 (the xxHash specification, 64-bit variant) and SHA-256 (FIPS 180-4).
 *
 * XXH64 guards against accidents; SHA-256 identifies content. Both read bytes, so the result is the same on every
 * machine. */
#include "base/hash.h"
#include <string.h>

static const uint64_t P1 = 0x9E3779B185EBCA87u;
static const uint64_t P2 = 0xC2B2AE3D27D4EB4Fu;
static const uint64_t P3 = 0x165667B19E3779F9u;
static const uint64_t P4 = 0x85EBCA77C2B2AE63u;
static const uint64_t P5 = 0x27D4EB2F165667C5u;

static uint64_t rotl64(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

/* Values are little-endian in the data, whatever the machine. One load each: the hash reads whole engines. */
static inline uint32_t read32(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    return value;
}

static inline uint64_t read64(const uint8_t *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static uint64_t round64(uint64_t lane, uint64_t input)
{
    return rotl64(lane + input * P2, 31) * P1;
}

static uint64_t merge64(uint64_t sum, uint64_t lane)
{
    return (sum ^ round64(0, lane)) * P1 + P4;
}

static void lanes_begin(uint64_t lane[static 4], uint64_t seed)
{
    lane[0] = seed + P1 + P2;
    lane[1] = seed + P2;
    lane[2] = seed;
    lane[3] = seed - P1;
}

/* Whole blocks of 32 bytes. */
static void lanes_add(uint64_t lane[static 4], const uint8_t *p, size_t size)
{
    uint64_t a = lane[0], b = lane[1], c = lane[2], d = lane[3];
    for (const uint8_t *end = p + size; p < end; p += 32) {
        a = round64(a, read64(p));
        b = round64(b, read64(p + 8));
        c = round64(c, read64(p + 16));
        d = round64(d, read64(p + 24));
    }
    lane[0] = a, lane[1] = b, lane[2] = c, lane[3] = d;
}

/* The sum of `size` bytes, of which the lanes have all whole blocks and `p` is the rest. */
static uint64_t lanes_end(const uint64_t lane[static 4], uint64_t size, uint64_t seed, const uint8_t *p)
{
    uint64_t sum = seed + P5;
    size_t left = (size_t)(size % 32);
    if (size >= 32) {
        sum = rotl64(lane[0], 1) + rotl64(lane[1], 7) + rotl64(lane[2], 12) + rotl64(lane[3], 18);
        for (int i = 0; i < 4; i++) sum = merge64(sum, lane[i]);
    }
    sum += size;
    for (; left >= 8; p += 8, left -= 8) sum = rotl64(sum ^ round64(0, read64(p)), 27) * P1 + P4;
    if (left >= 4) {
        sum = rotl64(sum ^ read32(p) * P1, 23) * P2 + P3;
        p += 4;
        left -= 4;
    }
    for (; left > 0; p++, left--) sum = rotl64(sum ^ *p * P5, 11) * P1;
    sum = (sum ^ sum >> 33) * P2;
    sum = (sum ^ sum >> 29) * P3;
    return sum ^ sum >> 32;
}

uint64_t hash64(const void *data, size_t size, uint64_t seed)
{
    uint64_t lane[4];
    const size_t whole = size / 32 * 32;
    lanes_begin(lane, seed);
    if (whole) lanes_add(lane, data, whole);
    return lanes_end(lane, size, seed, (const uint8_t *)data + whole);
}

void hash64_begin(hash64_parts *h)
{
    h->size = 0;
    lanes_begin(h->lane, 0);
}

void hash64_add(hash64_parts *h, const void *data, size_t size)
{
    const uint8_t *p = data;
    const size_t have = (size_t)(h->size % 32), wanted = have ? 32 - have : 0;
    h->size += size;
    if (have) {
        const size_t take = size < wanted ? size : wanted;
        if (take) memcpy(h->block + have, p, take);
        if (take < wanted) return;
        lanes_add(h->lane, h->block, 32);
        p += take;
        size -= take;
    }
    const size_t whole = size / 32 * 32;
    if (whole) lanes_add(h->lane, p, whole);
    if (size > whole) memcpy(h->block, p + whole, size - whole);
}

uint64_t hash64_end(const hash64_parts *h)
{
    return lanes_end(h->lane, h->size, 0, h->block);
}

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr32(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static void sha256_block(uint32_t state[static 8], const uint8_t block[static 64])
{
    uint32_t w[64];
    for (unsigned i = 0; i < 16; i++) {
        const uint8_t *p = block + 4 * i;
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
    }
    for (unsigned i = 16; i < 64; i++) {
        const uint32_t s0 = rotr32(w[i - 15], 7) ^ rotr32(w[i - 15], 18) ^ w[i - 15] >> 3;
        const uint32_t s1 = rotr32(w[i - 2], 17) ^ rotr32(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6],
             h = state[7]; /* in registers: an array that moves up costs three times as much */
    for (unsigned i = 0; i < 64; i++) {
        const uint32_t s1 = rotr32(e, 6) ^ rotr32(e, 11) ^ rotr32(e, 25), choice = (e & f) ^ (~e & g);
        const uint32_t t1 = h + s1 + choice + round_constants[i] + w[i];
        const uint32_t s0 = rotr32(a, 2) ^ rotr32(a, 13) ^ rotr32(a, 22), majority = (a & b) ^ (a & c) ^ (b & c);
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + s0 + majority;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void sha256_init(sha256 *s)
{
    *s = (sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
                              0x5be0cd19 } };
}

void sha256_update(sha256 *s, const void *data, size_t size)
{
    const uint8_t *p = data;
    size_t have = (size_t)(s->size % 64);
    s->size += size;
    if (have > 0) {
        const size_t take = size < 64 - have ? size : 64 - have;
        if (take) memcpy(s->block + have, p, take);
        if (have + take < 64) return;
        sha256_block(s->state, s->block);
        p += take;
        size -= take;
    }
    for (; size >= 64; p += 64, size -= 64) sha256_block(s->state, p);
    if (size) memcpy(s->block, p, size);
}

void sha256_final(sha256 *s, uint8_t digest[32])
{
    const uint64_t bits = s->size * 8;
    const size_t have = (size_t)(s->size % 64);
    uint8_t tail[72] = { 0x80 };
    const size_t pad = (have < 56 ? 56 : 120) - have;
    for (unsigned i = 0; i < 8; i++) tail[pad + i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_update(s, tail, pad + 8);
    for (unsigned i = 0; i < 32; i++) digest[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}
