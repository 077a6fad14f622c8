/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_unit.inc.h - the text of the micro-kernels of one unit, included once for each unit that a level has.
 *
 * One always-inlined body with constant `rows` and `vectors`, instantiated for every pair whose accumulators fit the
 * registers beside one broadcast of A and a row of B. The accumulators never leave the registers before the epilogue.
 *
 * Who includes this defines, and finds undefined afterwards:
 *   UNIT           the unit's name, of which names here are made
 *   UNIT_TERMS     terms in a word
 *   UNIT_ROWS_1..4 the largest tile for each count of vectors; 0: none
 *   UNIT_A, UNIT_B what a broadcast word of A, and a vector of words of B, are in registers
 *   UNIT_SPLAT(w)  UNIT_A of a word
 *   UNIT_LOAD(p)   UNIT_B of VEC_LANES words at p
 *   UNIT_MUL(s, a, b)  s + a * b
 *   UNIT_IS_UNROLLED  four words a turn: worth its code where a word is an instruction or two
 *   UNIT_COLUMN(s, b)  not defined, or what is added to `s` for each vector of words of B and is taken off all sums of
 *                  its columns at the end, where the products are of other integers than those of A
 *   UNIT_B_SIZE    not defined, or bytes of a term of B before it is packed, where terms are wider than that
 *   UNIT_IS_INTEGER, UNIT_IS_NARROW   sums are i32; C, bias and residual may be bf16
 *   UNIT_STORE_NARROW(p, v)           where the unit is narrow: stores a vector as bf16 */
#include "cpu/gemm_end.inc.h"

#if UNIT_TERMS > 1
/* The last word of a row that has fewer terms. Nothing past them is read. */
static inline uint32_t UNIT_NAME(part)(const char *p, int64_t terms)
{
#if UNIT_TERMS == 2
    uint16_t w;
    (void)terms;
    memcpy(&w, p, sizeof w);
    return w;
#else
    const uint8_t *byte = (const uint8_t *)p;
    uint32_t w = byte[0];
    if (terms > 1) w |= (uint32_t)byte[1] << 8;
    if (terms > 2) w |= (uint32_t)byte[2] << 16;
    return w;
#endif
}
#endif

#ifdef UNIT_COLUMN
#define COLUMN_STEP UNROLL for (int j = 0; j < vectors; j++) column[j] = UNIT_COLUMN(column[j], bv[j]);
#else
#define COLUMN_STEP
#endif

#define TILE_STEP(kk, word)                                                                                            \
    do {                                                                                                               \
        UNIT_B bv[GEMM_VECTORS_MAX];                                                                                   \
        UNROLL for (int j = 0; j < vectors; j++) bv[j] = UNIT_LOAD(b + (kk)*width + j * VEC_LANES);                    \
        if (is_ahead) {                                                                                                \
            UNROLL for (int j = 0; j < width; j += WORDS_PER_LINE)                                                     \
                __builtin_prefetch(b + (kk)*width + j + PREFETCH_AHEAD);                                               \
        }                                                                                                              \
        COLUMN_STEP                                                                                                    \
        UNROLL for (int i = 0; i < rows; i++)                                                                          \
        {                                                                                                              \
            const UNIT_A av = UNIT_SPLAT(word);                                                                        \
            UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = UNIT_MUL(acc[i][j], av, bv[j]);                       \
        }                                                                                                              \
    } while (0)

static inline __attribute__((always_inline)) void UNIT_NAME(tile_run)(const gemm_tile *t, const int rows,
                                                                      const int vectors)
{
    const int width = vectors * VEC_LANES;
    UNIT_SUM acc[GEMM_UNIT_ROWS][GEMM_VECTORS_MAX];
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = UNIT_ZERO();
    }
#ifdef UNIT_COLUMN
    UNIT_SUM column[GEMM_VECTORS_MAX];
    UNROLL for (int j = 0; j < vectors; j++) column[j] = UNIT_ZERO();
#endif
    const float *b = t->b; /* words */
    const void *const *from = t->a;
    const int64_t k_count = t->k / UNIT_TERMS;
    const bool is_ahead = rows <= GEMM_ROWS_FEW && t->flags & GEMM_TILE_AHEAD;
#if UNIT_IS_UNROLLED
    const bool is_paged = rows <= GEMM_ROWS_FEW && t->flags & GEMM_TILE_PAGES;
    const int64_t ahead = t->ahead;
    const char *next = t->next;
    const int64_t next_lines = next ? t->next_lines : 0;
#endif
#if !UNIT_IS_INTEGER
    /* The sums take long enough for C and the residual to arrive from far memory meanwhile. Those of integers go to
     * scratch, which is near. */
    const int64_t c_size = UNIT_IS_NARROW && t->flags & GEMM_TILE_NARROW_C ? 2 : 4;
    UNROLL for (int i = 0; i < rows; i++)
    {
        const char *line = (const char *)t->c + i * t->ldc * c_size;
        UNROLL for (int j = 0; j < width; j += WORDS_PER_LINE) __builtin_prefetch(line + j * c_size, 1);
    }
    if (t->residual) {
        const int64_t r_size = UNIT_IS_NARROW && t->flags & GEMM_TILE_NARROW_RESIDUAL ? 2 : 4;
        UNROLL for (int i = 0; i < rows; i++)
        {
            const char *line = (const char *)t->residual + i * t->ldr * r_size;
            UNROLL for (int j = 0; j < width; j += WORDS_PER_LINE) __builtin_prefetch(line + j * r_size);
        }
    }
#endif
    for (int64_t tap = t->taps; tap > 0; tap--, from += rows) {
        const char *a[GEMM_UNIT_ROWS];
        UNROLL for (int i = 0; i < rows; i++) a[i] = from[i];
        int64_t k = 0;
#if UNIT_IS_UNROLLED
        for (; k + 4 <= k_count; k += 4, b += 4 * width) {
            if (ahead && k % WORDS_PER_LINE == 0) {
                UNROLL for (int i = 0; i < rows; i++) __builtin_prefetch(a[i] + 4 * k + ahead);
            }
            if (is_paged) {
                page_prefetch(b, 4 * sizeof(float) * (uintptr_t)width);
            } else {
                for (int64_t j = 0; j < next_lines; j++, next += 64) __builtin_prefetch(next, 0, 2);
            }
            TILE_STEP(0, a[i] + 4 * k);
            TILE_STEP(1, a[i] + 4 * k + 4);
            TILE_STEP(2, a[i] + 4 * k + 8);
            TILE_STEP(3, a[i] + 4 * k + 12);
        }
#endif
        for (; k < k_count; k++, b += width) TILE_STEP(0, a[i] + 4 * k);
#if UNIT_TERMS > 1
        const int64_t left = t->k % UNIT_TERMS;
        if (left) {
            uint32_t last[GEMM_UNIT_ROWS];
            UNROLL for (int i = 0; i < rows; i++) last[i] = UNIT_NAME(part)(a[i] + 4 * k, left);
            TILE_STEP(0, (const char *)&last[i]);
            b += width;
        }
#endif
    }

#ifdef UNIT_COLUMN
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = vi_sub(acc[i][j], column[j]);
    }
#endif
    UNIT_NAME(tile_end)(t, acc, rows, rows, vectors);
}

#define TILE(r, v)                                                                                                     \
    static void UNIT_NAME(tile_##r##x##v)(const gemm_tile *t)                                                          \
    {                                                                                                                  \
        UNIT_NAME(tile_run)(t, r, v);                                                                                  \
    }
#define TILE_NAME(r, v) UNIT_NAME(tile_##r##x##v),

UNIT_PASTE(TILES_TO, UNIT_ROWS_1)(TILE, 1)
UNIT_PASTE(TILES_TO, UNIT_ROWS_2)(TILE, 2)
UNIT_PASTE(TILES_TO, UNIT_ROWS_3)(TILE, 3)
UNIT_PASTE(TILES_TO, UNIT_ROWS_4)(TILE, 4)

#if UNIT_TERMS == 1
#include "cpu/gemm_half.inc.h"
#include "cpu/gemm_lines.inc.h"
#endif

/* Terms of a column become words. */
static void UNIT_NAME(pack)(void *dst, const void *src, int64_t k, int32_t cols, int32_t width, int64_t row_stride,
                            int64_t col_stride)
{
#if defined(UNIT_B_SIZE)
    pack_wide(dst, src, k, cols, width, row_stride, col_stride);
#elif UNIT_TERMS == 1
    pack_words(dst, src, k, cols, width, row_stride, col_stride);
#else
    pack_terms(dst, src, k, cols, width, row_stride, col_stride, 4 / UNIT_TERMS);
#endif
}

static const gemm_tile_set UNIT_NAME(unit_set) = {
    .lanes = VEC_LANES,
    .terms = UNIT_TERMS,
    .rows_max = { UNIT_ROWS_1, UNIT_ROWS_2, UNIT_ROWS_3, UNIT_ROWS_4 },
    .run = { { UNIT_PASTE(TILES_TO, UNIT_ROWS_1)(TILE_NAME, 1) NULL },
             { UNIT_PASTE(TILES_TO, UNIT_ROWS_2)(TILE_NAME, 2) NULL },
             { UNIT_PASTE(TILES_TO, UNIT_ROWS_3)(TILE_NAME, 3) NULL },
             { UNIT_PASTE(TILES_TO, UNIT_ROWS_4)(TILE_NAME, 4) NULL } },
    .pack = UNIT_NAME(pack),
#ifdef UNIT_B_SIZE
    .b_size = UNIT_B_SIZE,
#endif
#if UNIT_TERMS == 1
    GEMM_HALVES
    GEMM_LINES
#endif
};

#undef TILE_STEP
#undef TILE
#undef TILE_NAME
#undef UNIT_TERMS
#undef UNIT_ROWS_1
#undef UNIT_ROWS_2
#undef UNIT_ROWS_3
#undef UNIT_ROWS_4
#undef UNIT_A
#undef UNIT_B
#undef UNIT_SPLAT
#undef UNIT_LOAD
#undef UNIT_MUL
#undef UNIT_COLUMN
#undef UNIT_B_SIZE
#undef UNIT_IS_UNROLLED
#undef TILE_STEP
#undef COLUMN_STEP
#undef TILE
#undef TILE_NAME
#include "cpu/gemm_unit_off.inc.h"
