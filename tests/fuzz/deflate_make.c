/* SPDX-License-Identifier: Apache-2.0 */
/* deflate_make.c - deflate_make.h has the contract. It does not compress: it makes what a decoder must understand. */
#include "deflate_make.h"

#include "api/inflate.h"
#include "test.h"

#include <string.h>

enum { SYMBOLS = 288, TOKENS_MAX = 400 };

/* ---- bits ---- */

typedef struct writer {
    made_bytes *to;
    uint32_t bit; /* of the last byte; 0: it is full */
} writer;

static void put(writer *w, uint32_t value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!w->bit && w->to->size < MADE_MAX) w->to->at[w->to->size++] = 0;
        w->to->at[w->to->size - 1] |= (uint8_t)((value >> i & 1) << w->bit);
        w->bit = (w->bit + 1) % 8;
    }
}

/* ---- codes: random trees ---- */

typedef struct code {
    uint32_t count;
    uint8_t length[SYMBOLS];
    uint16_t bits[SYMBOLS];
} code;

static void code_finish(code *c)
{
    uint32_t of[16] = { 0 }, next[17] = { 0 };
    for (uint32_t i = 0; i < c->count; i++) of[c->length[i]]++;
    of[0] = 0;
    for (uint32_t n = 1; n < 16; n++) next[n + 1] = (next[n] + of[n]) << 1;
    for (uint32_t i = 0; i < c->count; i++) c->bits[i] = (uint16_t)(c->length[i] ? next[c->length[i]]++ : 0);
}

/* Each symbol that is used gets a leaf of a tree that is split at random, no deeper than `most`. */
static void code_grow(uint64_t *random, const bool *is_used, uint32_t count, uint32_t most, code *c)
{
    uint8_t leaf[SYMBOLS] = { 0 };
    uint32_t leaves = 1, wanted = 0;
    *c = (code){ .count = count };
    for (uint32_t i = 0; i < count; i++) wanted += is_used[i];
    while (leaves < wanted) {
        const uint32_t at = (uint32_t)test_below(random, leaves);
        uint32_t k = at;
        while (leaf[k] >= most) k = (k + 1) % leaves;
        leaf[k]++;
        leaf[leaves++] = leaf[k];
    }
    if (wanted == 1) leaf[0] = 1; /* half of the code is unused */
    for (uint32_t i = 0, k = 0; i < count; i++)
        if (is_used[i]) c->length[i] = leaf[k++];
    code_finish(c);
}

static void code_put(writer *w, const code *c, uint32_t symbol)
{
    for (uint32_t k = c->length[symbol]; k-- > 0;) put(w, c->bits[symbol] >> k & 1, 1);
}

static void code_fixed(code *literal, code *distance)
{
    *literal = (code){ .count = 288 };
    *distance = (code){ .count = 30 };
    for (uint32_t i = 0; i < 288; i++) literal->length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(distance->length, 5, 30);
    code_finish(literal);
    code_finish(distance);
}

/* The lengths of both codes, with and without the symbols that repeat. */
static void code_tables_put(uint64_t *random, writer *w, const code *literal, const code *distance)
{
    static const uint8_t order[19] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 };
    uint8_t all[SYMBOLS + 32];
    uint16_t symbol[SYMBOLS + 32], more[SYMBOLS + 32];
    bool is_used[19] = { false };
    code c;
    uint32_t literals = 286, distances = 30, count = 0, used = 0;
    while (literals > 257 && !literal->length[literals - 1] && test_below(random, 50)) literals--;
    while (distances > 1 && !distance->length[distances - 1] && test_below(random, 50)) distances--;
    memcpy(all, literal->length, literals);
    memcpy(all + literals, distance->length, distances);
    for (uint32_t i = 0; i < literals + distances;) {
        uint32_t run = 1;
        while (i + run < literals + distances && all[i + run] == all[i]) run++;
        const bool is_repeated = i && all[i] == all[i - 1] && run >= 3 && test_below(random, 4);
        if (!all[i] && run >= 3 && test_below(random, 8)) {
            const bool is_long = run > 10;
            const uint32_t n = is_long ? (run < 138 ? run : 138) : run;
            symbol[count] = is_long ? 18 : 17;
            more[count++] = (uint16_t)(n - (is_long ? 11 : 3));
            i += n;
        } else if (is_repeated) {
            const uint32_t n = run < 6 ? run : 6;
            symbol[count] = 16;
            more[count++] = (uint16_t)(n - 3);
            i += n;
        } else {
            symbol[count] = all[i++];
            more[count++] = 0;
        }
    }
    for (uint32_t i = 0; i < count; i++) is_used[symbol[i]] = true;
    code_grow(random, is_used, 19, 7, &c);
    for (uint32_t i = 0; i < 19; i++)
        if (c.length[order[i]]) used = i + 1;
    if (used < 4) used = 4;
    put(w, literals - 257, 5);
    put(w, distances - 1, 5);
    put(w, used - 4, 4);
    for (uint32_t i = 0; i < used; i++) put(w, c.length[order[i]], 3);
    for (uint32_t i = 0; i < count; i++) {
        code_put(w, &c, symbol[i]);
        if (symbol[i] >= 16) put(w, more[i], symbol[i] == 16 ? 2 : symbol[i] == 17 ? 3 : 7);
    }
}

/* ---- blocks ---- */

typedef struct token {
    uint32_t literal, length, distance; /* length 0: a literal */
} token;

/* The symbol of a length or distance, its bits, and how many. */
static uint32_t split(uint32_t value, bool is_length, uint32_t *bits, uint32_t *count)
{
    const uint32_t low = is_length ? value - 3 : value - 1, keep = is_length ? 2 : 1;
    if (is_length && value == 258) return *bits = *count = 0, 285;
    uint32_t width = 0;
    while (low >> width >> keep) width++;
    *count = width ? width - 1 : 0;
    *bits = low & ((1u << *count) - 1);
    return (is_length ? 257 : 0) + (*count << keep) + (low >> *count);
}

static void tokens_put(writer *w, const code *literal, const code *distance, const token *t, uint32_t count)
{
    uint32_t bits, n;
    for (uint32_t i = 0; i < count; i++) {
        if (!t[i].length) {
            code_put(w, literal, t[i].literal);
            continue;
        }
        code_put(w, literal, split(t[i].length, true, &bits, &n));
        put(w, bits, n);
        code_put(w, distance, split(t[i].distance, false, &bits, &n));
        put(w, bits, n);
    }
    code_put(w, literal, 256);
}

/* The next tokens; what comes out of them is added to `plain`. */
static uint32_t tokens_make(uint64_t *random, const uint8_t *given, size_t plain_max, made_bytes *plain, token *t)
{
    uint32_t count = 0;
    const uint32_t most = (uint32_t)test_below(random, TOKENS_MAX), range = 1u << test_below(random, 9);
    while (count < most && plain->size < plain_max) {
        token *now = &t[count++];
        const size_t left = plain_max - plain->size;
        *now = (token){ .literal = given ? given[plain->size] : (uint32_t)test_below(random, range) & 255 };
        if (plain->size && left >= 3 && test_below(random, 3) == 0) {
            now->distance = 1 + (uint32_t)test_below(random, plain->size);
            now->length = 3 + (uint32_t)test_below(random, test_below(random, 8) ? 8 : 256);
            if (now->length > left) now->length = (uint32_t)left;
            uint32_t same = 0; /* of what is given, a copy may only say the truth */
            for (; given && same < now->length; same++)
                if (given[plain->size + same] != given[plain->size + same - now->distance]) break;
            if (given) now->length = same >= 3 ? same : 0;
        }
        if (!now->length) plain->at[plain->size++] = (uint8_t)now->literal;
        for (uint32_t i = 0; i < now->length; i++, plain->size++)
            plain->at[plain->size] = plain->at[plain->size - now->distance];
    }
    return count;
}

static void block_make(uint64_t *random, const uint8_t *given, size_t plain_max, bool is_last, writer *w,
                       made_bytes *plain)
{
    static token t[TOKENS_MAX];
    const size_t before = plain->size;
    const uint32_t count = tokens_make(random, given, plain_max, plain, t), kind = (uint32_t)test_below(random, 3);
    code literal, distance;
    put(w, is_last, 1);
    put(w, kind, 2);
    if (kind == 0) {
        const uint32_t size = (uint32_t)(plain->size - before);
        w->bit = 0;
        put(w, size | ~size << 16, 32);
        for (size_t i = before; i < plain->size; i++) put(w, plain->at[i], 8);
        return;
    }
    code_fixed(&literal, &distance);
    if (kind == 2) {
        bool is_literal[SYMBOLS] = { [256] = true }, is_distance[SYMBOLS] = { false };
        uint32_t bits, n;
        for (uint32_t i = 0; i < count; i++) {
            is_literal[t[i].length ? split(t[i].length, true, &bits, &n) : t[i].literal] = true;
            if (t[i].length) is_distance[split(t[i].distance, false, &bits, &n)] = true;
        }
        for (uint64_t i = test_below(random, 20); i; i--) is_literal[test_below(random, 286)] = true;
        code_grow(random, is_literal, 286, 15, &literal);
        code_grow(random, is_distance, 30, 15, &distance);
        code_tables_put(random, w, &literal, &distance);
    }
    tokens_put(w, &literal, &distance, t, count);
}

void deflate_make(uint64_t *random, const uint8_t *given, size_t plain_max, made_bytes *out, made_bytes *plain)
{
    writer w = { .to = out };
    out->size = plain->size = 0;
    const uint64_t blocks = 1 + test_below(random, 3);
    for (uint64_t i = 0; i < blocks || (given && plain->size < plain_max); i++)
        block_make(random, given, plain_max, false, &w, plain);
    block_make(random, given, plain->size, true, &w, plain); /* an empty one */
}

/* ---- archives ---- */

static void number(made_bytes *to, uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) to->at[to->size++] = (uint8_t)(value >> 8 * i);
}

static void bytes_add(made_bytes *to, const void *at, size_t size)
{
    memcpy(to->at + to->size, at, size);
    to->size += size;
}

static size_t npy_make(uint64_t *random, uint8_t *to)
{
    static const char *const type[] = { "<f4", "<i8", "|u1", "|b1", "<f2" };
    static const uint8_t width[] = { 4, 8, 1, 1, 2 };
    const uint32_t kind = (uint32_t)test_below(random, 5), rows = (uint32_t)test_below(random, 7),
                   columns = 1 + (uint32_t)test_below(random, 9);
    char dict[128];
    const int n = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (%u, %u), }",
                           type[kind], rows, columns);
    const size_t length = (size_t)n + test_below(random, 2) * (size_t)(118 - n),
                 size = (size_t)rows * columns * width[kind];
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    to[8] = (uint8_t)length;
    to[9] = 0;
    memset(to + 10, ' ', length);
    memcpy(to + 10, dict, (size_t)n);
    for (size_t i = 0; i < size; i++) to[10 + length + i] = (uint8_t)test_below(random, 3);
    return 10 + length + size;
}

void npz_make(uint64_t *random, made_bytes *out, uint32_t *count)
{
    static made_bytes packed, plain, directory;
    static uint8_t npy[2048];
    *count = (uint32_t)test_below(random, 5);
    out->size = directory.size = 0;
    for (uint32_t i = 0; i < *count; i++) {
        const size_t size = npy_make(random, npy), place = out->size;
        const bool is_deflated = test_below(random, 2), is_wide = test_below(random, 3) == 0;
        char name[32];
        const size_t length = (size_t)snprintf(name, sizeof name, "array %u.npy", i);
        if (is_deflated) deflate_make(random, npy, size, &packed, &plain);
        const size_t stored = is_deflated ? packed.size : size;
        const uint64_t shown = is_wide ? 0xffffffff : stored, whole = is_wide ? 0xffffffff : size;
        const uint32_t crc = crc32_of(npy, size);
        for (int is_directory = 0; is_directory < 2; is_directory++) {
            made_bytes *to = is_directory ? &directory : out;
            number(to, is_directory ? 0x02014b50 : 0x04034b50, 4);
            number(to, 45, is_directory ? 4 : 2);
            number(to, 0, 2);
            number(to, is_deflated ? 8 : 0, 2);
            number(to, 0, 4);
            number(to, crc, 4);
            number(to, shown, 4);
            number(to, whole, 4);
            number(to, length, 2);
            number(to, is_wide ? 20 : 0, 2);
            if (is_directory) number(to, 0, 2), number(to, 0, 8), number(to, place, 4);
            bytes_add(to, name, length);
            if (is_wide) number(to, 1, 2), number(to, 16, 2), number(to, size, 8), number(to, stored, 8);
        }
        bytes_add(out, is_deflated ? packed.at : npy, stored);
    }
    const size_t first = out->size;
    const bool is_wide = test_below(random, 4) == 0;
    bytes_add(out, directory.at, directory.size);
    if (is_wide) {
        const size_t at = out->size;
        number(out, 0x06064b50, 4), number(out, 44, 8), number(out, 45, 4), number(out, 0, 8);
        number(out, *count, 8), number(out, *count, 8), number(out, directory.size, 8), number(out, first, 8);
        number(out, 0x07064b50, 4), number(out, 0, 4), number(out, at, 8), number(out, 1, 4);
    }
    number(out, 0x06054b50, 4), number(out, 0, 4);
    number(out, is_wide ? 0xffff : *count, 2), number(out, is_wide ? 0xffff : *count, 2);
    number(out, is_wide ? 0xffffffff : directory.size, 4), number(out, is_wide ? 0xffffffff : first, 4);
    const uint64_t comment = test_below(random, 2) * 7;
    number(out, comment, 2);
    bytes_add(out, "comment", comment);
}
