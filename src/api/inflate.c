/* SPDX-License-Identifier: Apache-2.0 */
/* inflate.c - inflate.h has the contract.
 *
 * A code of up to 15 bits is looked up at once: a table has an entry for each value of the next 15 bits. Bits come from
 * the low end of each byte; the bits of a code come first bit first, so the table is indexed by reversed codes. */
#include "api/inflate.h"

#include "base/env.h"

#include <string.h>

enum { LENGTH_MAX = 15, LITERALS = 288, DISTANCES = 32, LENGTH_CODES = 19, END_OF_BLOCK = 256 };

typedef struct inflating {
    const uint8_t *in, *in_end;
    uint8_t *out, *out_begin, *out_end;
    uint64_t bits; /* those that were read and not used; `count` of them */
    uint32_t count;
    const char *wrong; /* the first thing that is */
    inflate_tables *of;
} inflating;

static const char too_short[] = "the compressed data ends too early", too_long[] = "more comes out than was announced";

/* ---- bits ---- */

/* Fills up to at least 32 bits, as far as there are bytes. */
static void bits_fill(inflating *z)
{
    while (z->count <= 56 && z->in < z->in_end) {
        z->bits |= (uint64_t)*z->in++ << z->count;
        z->count += 8;
    }
}

static uint32_t bits_take(inflating *z, uint32_t count)
{
    bits_fill(z);
    if (z->count < count) {
        if (!z->wrong) z->wrong = too_short;
        return 0;
    }
    const uint32_t value = (uint32_t)(z->bits & ((1u << count) - 1));
    z->bits >>= count;
    z->count -= count;
    return value;
}

static uint32_t symbol_take(inflating *z, const uint16_t *table)
{
    bits_fill(z);
    const uint32_t entry = table[z->bits & ((1u << LENGTH_MAX) - 1)], length = entry & 15;
    if (!length || length > z->count) {
        if (!z->wrong) z->wrong = length ? too_short : "the compressed data has bits that are no code";
        return END_OF_BLOCK;
    }
    z->bits >>= length;
    z->count -= length;
    return entry >> 4;
}

/* ---- codes ---- */

/* The table of a code whose lengths are known. False: there are too many short codes. A code may leave bits unused. */
static bool table_make(const uint8_t *length, uint32_t count, uint16_t *table)
{
    uint32_t of_length[LENGTH_MAX + 1] = { 0 }, next[LENGTH_MAX + 2] = { 0 };
    for (uint32_t i = 0; i < count; i++) of_length[length[i]]++;
    of_length[0] = 0;
    for (uint32_t n = 1, used = 0; n <= LENGTH_MAX; n++) {
        next[n] = used << 1;
        used = next[n] + of_length[n];
        if (used > 1u << n) return false;
    }
    memset(table, 0, sizeof *table << LENGTH_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t n = length[i], code = n ? next[n]++ : 0;
        uint32_t turned = 0;
        for (uint32_t k = 0; k < n; k++) turned |= (code >> k & 1) << (n - 1 - k);
        for (uint32_t at = turned; n && at < 1u << LENGTH_MAX; at += 1u << n) table[at] = (uint16_t)(i << 4 | n);
    }
    return true;
}

static void tables_fixed(inflating *z)
{
    uint8_t length[LITERALS], five[DISTANCES];
    for (uint32_t i = 0; i < LITERALS; i++) length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(five, 5, sizeof five);
    (void)table_make(length, LITERALS, z->of->literal);
    (void)table_make(five, DISTANCES, z->of->distance);
}

/* Lengths of both codes, one after the other, which are coded themselves. */
static bool tables_read(inflating *z)
{
    static const uint8_t order[LENGTH_CODES] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 };
    uint8_t of[LENGTH_CODES] = { 0 }, length[LITERALS + DISTANCES] = { 0 };
    const uint32_t literals = bits_take(z, 5) + 257, distances = bits_take(z, 5) + 1, codes = bits_take(z, 4) + 4;
    for (uint32_t i = 0; i < codes; i++) of[order[i]] = (uint8_t)bits_take(z, 3);
    if (literals > 286 || distances > 30 || !table_make(of, LENGTH_CODES, z->of->literal)) return false;
    for (uint32_t i = 0; i < literals + distances && !z->wrong;) {
        const uint32_t symbol = symbol_take(z, z->of->literal);
        if (z->wrong) return false;
        if (symbol < 16) {
            length[i++] = (uint8_t)symbol;
            continue;
        }
        const uint8_t value = symbol == 16 && i ? length[i - 1] : 0;
        const uint32_t times = symbol == 16   ? 3 + bits_take(z, 2)
                               : symbol == 17 ? 3 + bits_take(z, 3)
                                              : 11 + bits_take(z, 7);
        if ((symbol == 16 && !i) || times > literals + distances - i) return false;
        memset(length + i, value, times);
        i += times;
    }
    return !z->wrong && length[END_OF_BLOCK] && table_make(length, literals, z->of->literal) &&
           table_make(length + literals, distances, z->of->distance);
}

/* ---- blocks ---- */

/* What lies `distance` back is copied; source and target may overlap, and then repeat. */
static void copy_back(inflating *z, uint32_t symbol)
{
    static const uint16_t length_first[29] = { 3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                               31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 };
    static const uint8_t length_bits[29] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                             2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 };
    static const uint16_t distance_first[30] = { 1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                                 33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                                 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577 };
    if (symbol > END_OF_BLOCK + 29) {
        z->wrong = "the compressed data has a length that there is not";
        return;
    }
    const uint32_t at = symbol - END_OF_BLOCK - 1, length = length_first[at] + bits_take(z, length_bits[at]);
    const uint32_t far = symbol_take(z, z->of->distance);
    if (far >= 30) {
        if (!z->wrong) z->wrong = "the compressed data has a distance that there is not";
        return;
    }
    const uint32_t distance = distance_first[far] + bits_take(z, far < 2 ? 0 : far / 2 - 1);
    if (z->wrong) return;
    if (distance > (size_t)(z->out - z->out_begin)) z->wrong = "the compressed data refers to what comes before it";
    else if (length > (size_t)(z->out_end - z->out)) z->wrong = too_long;
    else
        for (uint32_t i = 0; i < length; i++, z->out++) *z->out = *(z->out - distance);
}

static void block_coded(inflating *z)
{
    while (!z->wrong) {
        const uint32_t symbol = symbol_take(z, z->of->literal);
        if (symbol == END_OF_BLOCK) return;
        if (symbol > END_OF_BLOCK) copy_back(z, symbol);
        else if (z->out == z->out_end) z->wrong = too_long;
        else *z->out++ = (uint8_t)symbol;
    }
}

/* From a whole byte on: a length, its complement, the bytes. */
static void block_stored(inflating *z)
{
    (void)bits_take(z, z->count % 8);
    const uint32_t size = bits_take(z, 16), again = bits_take(z, 16);
    if (z->wrong) return;
    z->in -= z->count / 8;
    z->bits = 0;
    z->count = 0;
    if ((size ^ again) != 0xffff) z->wrong = "the compressed data has a block of a damaged length";
    else if (size > (size_t)(z->in_end - z->in)) z->wrong = too_short;
    else if (size > (size_t)(z->out_end - z->out)) z->wrong = too_long;
    else if (size) memcpy(z->out, z->in, size);
    if (z->wrong) return;
    z->in += size;
    z->out += size;
}

const char *inflate_bytes(inflate_tables *work, const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    inflating z = {
        .in = in, .in_end = in + in_size, .out = out, .out_begin = out, .out_end = out + out_size, .of = work
    };
    bool is_last = false;
    while (!is_last && !z.wrong) {
        is_last = bits_take(&z, 1) != 0;
        const uint32_t kind = bits_take(&z, 2);
        if (z.wrong) break;
        if (kind == 0) block_stored(&z);
        else if (kind == 1) tables_fixed(&z), block_coded(&z);
        else if (kind == 2 && tables_read(&z)) block_coded(&z);
        else if (!z.wrong)
            z.wrong =
                kind == 2 ? "the compressed data has a damaged code" : "the compressed data has a block of no kind";
    }
    if (z.wrong) return z.wrong;
    if (z.out != z.out_end) return "less comes out than was announced";
    return z.in != z.in_end || z.count >= 8 ? "the compressed data has bytes behind its end" : NULL;
}

uint32_t crc32_of(const uint8_t *at, size_t size)
{
    static const uint32_t by_nibble[16] = { 0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                            0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                            0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c };
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= at[i];
        crc = by_nibble[crc & 15] ^ crc >> 4;
        crc = by_nibble[crc & 15] ^ crc >> 4;
    }
    return ~crc;
}
