/* SPDX-License-Identifier: Apache-2.0 */
/* codes.inc.h - the text of the loops over weights in codes, included once by each instruction set's file. */

/* ROWS_MOST, VECTORS_ONCE: sums of so many rows and vectors fit the registers. */
enum { CODES_WIDTH = CODES_VECTORS * L, LINE = 64, AHEAD = 4096 };
#if VEC_REGISTERS == 32
enum { ROWS_MOST = 6, VECTORS_ONCE = 4 };
#define ROWS_EACH(F, name, kind)                                                                                       \
    F(name, 1, kind) F(name, 2, kind) F(name, 3, kind) F(name, 4, kind) F(name, 5, kind) F(name, 6, kind)
#else
enum { ROWS_MOST = 4, VECTORS_ONCE = 2 };
#define ROWS_EACH(F, name, kind) F(name, 1, kind) F(name, 2, kind) F(name, 3, kind) F(name, 4, kind)
#endif

static inline int terms_of_word(const code_kind kind)
{
    return kind == CODE_4 || kind == CODE_F4 ? 8 : 4;
}

static inline bool is_float(const code_kind kind)
{
    return kind >= CODE_F4;
}

#include "cpu/codes_along.inc.h"

/* Term i of a word, as an integer. */
static inline __attribute__((always_inline)) veci code_of(veci word, const int i, const code_kind kind)
{
    switch (kind) {
    case CODE_4: return vi_and(i ? vi_sra(word, i * 4) : word, vi_set(15));
    case CODE_S8: return vi_sra(i < 3 ? vi_sll(word, 24 - i * 8) : word, 24);
    default: return vi_and(i ? vi_sra(word, i * 8) : word, vi_set(255));
    }
}

/* A float's sign, exponent and mantissa where an f32 has them: so many powers of 2 too small, and exact. */
static inline __attribute__((always_inline)) vec float_of(veci word, const int i, const code_kind kind, vec unit)
{
    const int bits = kind == CODE_F4 ? 4 : 8, low = kind == CODE_F4 ? 22 : kind == CODE_F8_3 ? 20 : 21;
    const int left = low - i * bits, up = left > 0 ? left : 0, down = left < 0 ? -left : 0;
    const veci size = left < 0 ? vi_sra(word, down) : vi_sll(word, up);
    const veci sign = vi_sll(word, 32 - (i + 1) * bits);
    return v_mul(unit, v_of_bits(vi_or(vi_and(size, vi_set(((1 << (bits - 1)) - 1) << low)),
                                       vi_and(sign, vi_set(INT32_MIN)))));
}

/* Integers of 4 bits are left where they are, times 16^i, but for those of the highest bits; the rows of A make up for
 * it. */
static inline __attribute__((always_inline)) vec factor_of(veci word, const int i, const code_kind kind, veci zero,
                                                           vec unit)
{
    if (is_float(kind)) return float_of(word, i, kind, unit);
    if (kind != CODE_4) return vi_to_f32(vi_sub(code_of(word, i, kind), zero));
    return vi_to_f32(i < 7 ? vi_and(word, vi_set(15 << (i * 4))) : code_of(word, i, kind));
}

/* `vectors` vectors of the panel from `first` on. */
static inline __attribute__((always_inline)) void tile_part(const codes_tile *t, const int rows, const int first,
                                                            const int vectors, const code_kind kind)
{
    const int terms = terms_of_word(kind);
    const vec unit = v_set(t->unit);
    const int32_t *code = t->code + first * L;
    const float *x = t->x;
    const int64_t ldx = t->ldx;
    float *c = t->c + first * L;
    int64_t scale_from = first * L, zero_from = first * L;
    for (int64_t begin = 0, chunk = 0, left = t->block; begin < t->terms; chunk++) {
        const int64_t rest = t->terms - begin, size = rest < t->chunk ? rest : t->chunk;
        vec acc[CODES_ROWS][CODES_VECTORS];
        veci zero[CODES_VECTORS];
        UNROLL for (int v = 0; v < vectors; v++)
        {
            zero[v] = zero_at(t, zero_from + v * L, kind);
            const vec less = v_sub(v_zero(), vi_to_f32(zero[v]));
            UNROLL for (int r = 0; r < rows; r++)
                acc[r][v] = kind == CODE_4 ? v_mul(less, v_set(t->sum[r * t->chunks + chunk])) : v_zero();
        }
        for (int64_t k = 0; k < size; k += terms, code += CODES_WIDTH, x += terms) {
            veci word[CODES_VECTORS];
            UNROLL for (int v = 0; v < vectors; v++)
            {
                word[v] = vi_load(code + v * L);
                if (v * L * 4 % LINE == 0) __builtin_prefetch((const char *)(code + v * L) + AHEAD);
            }
            UNROLL for (int i = 0; i < terms; i++)
            {
                UNROLL for (int v = 0; v < vectors; v++)
                {
                    const vec w = factor_of(word[v], i, kind, zero[v], unit);
                    UNROLL for (int r = 0; r < rows; r++) acc[r][v] = v_fma(v_set(x[r * ldx + i]), w, acc[r][v]);
                }
            }
        }
        UNROLL for (int v = 0; v < vectors; v++)
        {
            const vec s = scale_at(t->scale, t->scale_type, scale_from + v * L);
            UNROLL for (int r = 0; r < rows; r++)
            {
                float *at = c + r * CODES_WIDTH + v * L;
                v_store(at, begin ? v_fma(s, acc[r][v], v_load(at)) : v_mul(s, acc[r][v]));
            }
        }
        begin += size;
        left -= size;
        if (left > 0) continue;
        left = t->block;
        scale_from += t->scale_step;
        zero_from += t->zero_step;
    }
}

#define CODES_TILE(name, r, kind)                                                                                      \
    static void name##_##r(const codes_tile *t)                                                                        \
    {                                                                                                                  \
        const int most = r == 1 ? CODES_VECTORS : VECTORS_ONCE;                                                        \
        for (int first = 0; first < CODES_VECTORS; first += most) tile_part(t, r, first, most, kind);                  \
    }
#define CODES_TILES(name, kind) ROWS_EACH(CODES_TILE, name, kind)

CODES_TILES(tile_4, CODE_4)
CODES_TILES(tile_s8, CODE_S8)
CODES_TILES(tile_u8, CODE_U8)
CODES_TILES(tile_f4, CODE_F4)
CODES_TILES(tile_f8_3, CODE_F8_3)
CODES_TILES(tile_f8_2, CODE_F8_2)

/* The factor itself, without its scale. */
static inline __attribute__((always_inline)) vec whole_of(veci word, const int i, const code_kind kind, veci zero,
                                                          vec unit)
{
    if (is_float(kind)) return float_of(word, i, kind, unit);
    return vi_to_f32(vi_sub(code_of(word, i, kind), zero));
}

static inline __attribute__((always_inline)) void expand_part(const codes_tile *t, const int first, const int vectors,
                                                              int64_t terms, float *b, const code_kind kind)
{
    const int each = terms_of_word(kind), width = vectors * L;
    const vec unit = v_set(t->unit);
    const int32_t *code = t->code + first * L;
    int64_t scale_from = first * L, zero_from = first * L;
    for (int64_t begin = 0; begin < terms; begin += t->block) {
        const int64_t end = terms - begin < t->block ? terms : begin + t->block;
        vec scale[CODES_VECTORS];
        veci zero[CODES_VECTORS];
        UNROLL for (int v = 0; v < vectors; v++)
        {
            scale[v] = scale_at(t->scale, t->scale_type, scale_from + v * L);
            zero[v] = zero_at(t, zero_from + v * L, kind);
        }
        int64_t k = begin;
        for (; k + each <= end; k += each, code += CODES_WIDTH, b += each * width) {
            UNROLL for (int v = 0; v < vectors; v++)
            {
                const veci word = vi_load(code + v * L);
                if (v * L * 4 % LINE == 0) __builtin_prefetch((const char *)(code + v * L) + AHEAD);
                UNROLL for (int i = 0; i < each; i++)
                    v_store(b + i * width + v * L, v_mul(scale[v], whole_of(word, i, kind, zero[v], unit)));
            }
        }
        if (k < end) { /* a part of a word: the last one */
            float last[8 * CODES_WIDTH];
            for (int v = 0; v < vectors; v++) {
                const veci word = vi_load(code + v * L);
                UNROLL for (int i = 0; i < each; i++)
                    v_store(last + i * width + v * L, v_mul(scale[v], whole_of(word, i, kind, zero[v], unit)));
            }
            memcpy(b, last, (size_t)((end - k) * width) * sizeof *b);
        }
        scale_from += t->scale_step;
        zero_from += t->zero_step;
    }
}

#define EXPAND(name, kind)                                                                                             \
    static void name(const codes_tile *t, int32_t first, int32_t vectors, int64_t terms, float *b)                     \
    {                                                                                                                  \
        if (vectors == 4) expand_part(t, first, 4, terms, b, kind);                                                    \
        else if (vectors == 3) expand_part(t, first, 3, terms, b, kind);                                               \
        else if (vectors == 2) expand_part(t, first, 2, terms, b, kind);                                               \
        else expand_part(t, first, 1, terms, b, kind);                                                                 \
    }

EXPAND(expand_4, CODE_4)
EXPAND(expand_s8, CODE_S8)
EXPAND(expand_u8, CODE_U8)
EXPAND(expand_f4, CODE_F4)
EXPAND(expand_f8_3, CODE_F8_3)
EXPAND(expand_f8_2, CODE_F8_2)

static bool prepare(const float *a, int64_t stride, int64_t k, int64_t terms, int64_t chunk, bool is_4, float *x,
                    float *sum)
{
    static const float place[2][CODES_UNIT] = {
        { 1, 1, 1, 1, 1, 1, 1, 1 }, { 1, 0x1p-4f, 0x1p-8f, 0x1p-12f, 0x1p-16f, 0x1p-20f, 0x1p-24f, 1 }
    };
    const float *by = place[is_4];
    float size[CODES_UNIT] = { 0 };
    for (int64_t begin = 0; begin < terms; begin += chunk, sum++) {
        const int64_t end = terms - begin < chunk ? terms : begin + chunk;
        float part[CODES_UNIT] = { 0 };
        for (int64_t i = begin; i < end; i += CODES_UNIT) {
            float at[CODES_UNIT] = { 0 };
            const int64_t some = k - i < CODES_UNIT ? k - i : CODES_UNIT;
            if (some == CODES_UNIT && stride == 1) memcpy(at, a + i, sizeof at);
            else
                for (int64_t j = 0; j < some; j++) at[j] = a[(i + j) * stride];
            for (int j = 0; j < CODES_UNIT; j++) {
                part[j] += at[j];
                size[j] += at[j] < 0 ? -at[j] : at[j];
                x[i + j] = at[j] * by[j];
            }
        }
        *sum = ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
    }
    float all = 0;
    for (int j = 0; j < CODES_UNIT; j++) all += size[j];
    return all < 0x1p96f && (all > 0x1p-90f || all == 0); /* false for NaN */
}

#define CODES_NAME(name, r, kind) name##_##r,
static const codes_set codes_loops = {
    .lanes = L,
    .rows = ROWS_MOST,
    .run = { [CODE_4] = { ROWS_EACH(CODES_NAME, tile_4, CODE_4) },
             [CODE_S8] = { ROWS_EACH(CODES_NAME, tile_s8, CODE_S8) },
             [CODE_U8] = { ROWS_EACH(CODES_NAME, tile_u8, CODE_U8) },
             [CODE_F4] = { ROWS_EACH(CODES_NAME, tile_f4, CODE_F4) },
             [CODE_F8_3] = { ROWS_EACH(CODES_NAME, tile_f8_3, CODE_F8_3) },
             [CODE_F8_2] = { ROWS_EACH(CODES_NAME, tile_f8_2, CODE_F8_2) } },
    .expand = { expand_4, expand_s8, expand_u8, expand_f4, expand_f8_3, expand_f8_2 },
    .prepare = prepare,
};
