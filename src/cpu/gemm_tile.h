/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tile.h - the micro-kernels under every dense product: one register tile of C, summed over taps and all of K.
 *
 * C[r][j] = clip(alpha * sum over taps t, k of a[t][r][k] * b[t][k][j]  + bias[j] + residual[r][j])
 *
 * The rows of A are pointers, one per tap and row. That one indirection is what makes a matrix product, a strided or
 * padded convolution and a gathered product the same kernel: who calls decides where the rows lie, and rows that fall
 * into padding point to zeros. B is a packed panel. There is one function for each count of rows and of vectors.
 *
 * The inner step broadcasts one 32-bit word of A and multiplies it with vectors of words of B. What a word holds is the
 * unit: one f32, two bf16 or four 8-bit integers, neighbours along K. Sums are f32, or i32 for integers. */
#ifndef CPU_GEMM_TILE_H
#define CPU_GEMM_TILE_H

#include "core/dtype.h"
#include "cpu/isa.h"
#include <stdbool.h>
#include <stdint.h>

/* UNIT_ROWS: of tiles in vector registers. FEW: so many rows and fewer wait for memory more than they compute. STEPS:
 * gemm_tile_set.lines. */
enum { GEMM_ROWS_MAX = 32, GEMM_ROWS_FEW = 8, GEMM_UNIT_ROWS = 14, GEMM_VECTORS_MAX = 4, GEMM_LANES_MAX = 16 };
enum { GEMM_STEPS_MAX = 2 };

/* What a word of A and B holds, and how words are multiplied. GEMM_BF16 and GEMM_U8 widen terms in registers and run at
 * every level. */
typedef enum gemm_unit {
    GEMM_F32,      /* 1 term                                                              */
    GEMM_BF16,     /* 2 terms of bf16; products and sums in f32                           */
    GEMM_U8,       /* 4 terms, u8 in A and s8 in B; exact sums in i32, which wrap         */
    GEMM_BF16_DOT, /* as GEMM_BF16, by vdpbf16ps or bfdot: subnormal numbers of bf16 and f32 are 0 */
    GEMM_U8_DOT,   /* as GEMM_U8, by vpdpbusd or sdot                                              */
    GEMM_U8_SUDOT, /* as GEMM_U8, by sudot                                                         */
    /* 6 and 7 stand in engines whose B lies in another order. */
    GEMM_BF16_AMX = 8, /* as GEMM_BF16, by tdpbf16ps: subnormal numbers of bf16 and f32 are 0      */
    GEMM_U8_AMX,       /* as GEMM_U8, by tdpbusd                                                   */
    GEMM_U8_PAIRS,     /* as GEMM_U8, but widened to 16 bits before: 2 terms, i16 in A and in the packed B */
    /* As GEMM_U8, where the products of two neighbours fit in 16 bits together: B is narrow (integer_is_narrow). No
     * tactic names it: a constant B is packed so instead of for GEMM_U8_PAIRS where it is narrow. */
    GEMM_U8_NARROW,
    /* f32 by tdpbf16ps: a number is the sum of three of bf16, and of the nine products of two numbers the six largest
     * are summed. Parts below 2^-126 are 0. */
    GEMM_F32_AMX,
    GEMM_F32_AMX_SHORT, /* the same of two of bf16 and three products: as exact as 16 bits */
    GEMM_UNITS
} gemm_unit;

/* narrow: in bf16. Tiles of few rows prefetch B: AHEAD all of it, long before its use, PAGES the first lines of each
 * page, which units prefetch that are unrolled. C of an integer unit is i32, and takes no other flag. */
enum {
    GEMM_TILE_ALPHA = 1,
    GEMM_TILE_CLIP = 2,
    GEMM_TILE_NARROW_C = 4,
    GEMM_TILE_NARROW_BIAS = 8,
    GEMM_TILE_NARROW_RESIDUAL = 16,
    GEMM_TILE_AHEAD = 32,
    GEMM_TILE_PAGES = 64
};

typedef struct gemm_tile {
    const void *const *a; /* [taps][rows]: where the terms of each tap and row begin                  */
    const void *b;        /* panel [taps][words of k][vectors * lanes]; zeros past `cols` and past k. */
                          /* Of sets with steps: [taps][steps][vectors][parts][words of a step][lanes] */
    void *c;
    const void *bias;     /* NULL or [cols]                                                           */
    const void *residual; /* NULL or rows of `ldr`                                                    */
    int64_t ldc, ldr;     /* elements                                                                 */
    int64_t taps, k;      /* k: terms                                                                 */
    int64_t ahead;        /* 0, or how many bytes from each row lies one that is wanted soon          */
    const char *next;     /* NULL, or what is read after this tile: units prefetch it, but for widening ones */
    int64_t next_lines;   /* gemm_next_lines                                                          */
    int64_t plane;        /* of sets with parts: bytes from the first parts of a row of A to the second ones */
    const char *line;     /* of `lines` kernels, instead of a: term i of row r lies at                */
    const int64_t *at;    /* line + at[i] + r * step terms                                            */
    int32_t rows;
    int32_t cols;         /* columns to write, in the last vector of the panel                        */
    uint32_t flags;
    float alpha, lo, hi;
} gemm_tile;

typedef void gemm_tile_fn(const gemm_tile *t);
/* Converts n adjacent elements of A to terms. */
typedef void gemm_load_fn(void *dst, const void *src, int64_t n);
/* Splits n adjacent numbers of A into parts, `plane` bytes apart. */
typedef void gemm_split_fn(void *to, int64_t plane, const float *src, int64_t n);
/* Packs b[k][j] at src[k * row_stride + j * col_stride], of the unit's own type, into dst[word of k][width]; zeros past
 * `cols` and past k. Strides are in elements. */
typedef void gemm_pack_fn(void *dst, const void *src, int64_t k, int32_t cols, int32_t width, int64_t row_stride,
                          int64_t col_stride);

/* Cache lines of `next` that a tile prefetches into L2 for every four words of K, where so many tiles that read the
 * same panels prefetch as many bytes together: as few as are enough, since what is asked for faster than memory gives
 * it makes the loads of the tile itself wait. A quarter of what those words read of B at most. */
static inline int64_t gemm_next_lines(int64_t width, int64_t tiles)
{
    const int64_t most = (width + 15) / 16, even = tiles > 0 ? (width + 4 * tiles - 1) / (4 * tiles) : most;
    return even < most ? even : most;
}
/* Bytes of `next` that a tile of so many taps and words of K prefetches. */
static inline int64_t gemm_next_bytes(int64_t next_lines, int64_t taps, int64_t words)
{
    return taps * (words / 4) * next_lines * 64;
}

/* The kernels of one unit at one level. */
typedef struct gemm_tile_set {
    int32_t lanes;                      /* words in a vector */
    int32_t terms;                      /* in a word         */
    int32_t b_size;                     /* bytes of a term of B before it is packed; 0: those of a term */
    int32_t step;                       /* words of K at most that are multiplied at once; 0: 1 */
    int32_t parts;                      /* numbers that stand for one of A or B; 0: 1. All first parts of a row lie
                                         * together, and all second ones */
    gemm_split_fn *split;               /* of sets with parts */
    int32_t rows_max[GEMM_VECTORS_MAX]; /* the largest tile for each count of vectors (index: vectors - 1); 0: none */
    gemm_tile_fn *run[GEMM_VECTORS_MAX][GEMM_UNIT_ROWS + 1];
    /* The same for panels of which half the last vector is enough; NULL where there is none. */
    gemm_tile_fn *half[GEMM_VECTORS_MAX][GEMM_UNIT_ROWS + 1];
    /* Index: step - 1, vectors - 1. Rows of A overlap, `step` terms apart, and are read rows_max at a time; t->rows of
     * them are written, and there is one tap. NULL: none. */
    gemm_tile_fn *lines[GEMM_STEPS_MAX][GEMM_VECTORS_MAX];
    gemm_pack_fn *pack;
    /* Of units with registers of their own, which a thread sets up: one function for each count of vectors, for any
     * count of rows. set_up: before tiles of so many rows and terms. `state` is 0 at first; give_back: when that is no
     * longer so, and no tile follows. */
    gemm_tile_fn *any[GEMM_VECTORS_MAX];
    void (*set_up)(int32_t rows, int64_t k, int32_t *state);
    void (*give_back)(void);
} gemm_tile_set;

#if CPU_HAS_X86
extern const gemm_tile_set *const level_avx2_vnni, *const level_avx512_vnni, *const level_avx512_bf16;
extern const gemm_tile_set *const level_avx512_amx_bf16, *const level_avx512_amx_u8, *const level_avx512_amx_f32,
    *const level_avx512_amx_f32_short;
#endif
#if CPU_HAS_NEON
extern const gemm_tile_set *const level_neon_dot, *const level_neon_i8mm, *const level_neon_bf16;
#endif

/* The set of a level and unit; NULL where there is none. A level of another architecture gives the plain one's. */
const gemm_tile_set *gemm_unit_set(isa_level level, gemm_unit unit);
/* The features that a unit needs beside the level. */
isa_features gemm_unit_needs(isa_level level, gemm_unit unit);
/* Units for the same terms as GEMM_F32, GEMM_BF16 or GEMM_U8 that a machine can run, the fastest first. Returns their
 * number: 2 where the first is by matrix registers or widens its operands before, since another unit is faster for some
 * shapes, else 1. exact: only units that take no number for another. */
int gemm_units_best(isa_choice machine, gemm_unit unit, bool exact, gemm_unit out[2]);
/* Whether a unit splits numbers into parts. */
static inline bool gemm_unit_splits(gemm_unit unit) { return unit == GEMM_F32_AMX || unit == GEMM_F32_AMX_SHORT; }
/* Whether a unit takes subnormal numbers for 0. */
static inline bool gemm_unit_flushes(gemm_unit unit) { return unit == GEMM_BF16_DOT || unit == GEMM_BF16_AMX; }
/* Type of the terms in A. */
sinter_dtype gemm_unit_type(gemm_unit unit);
/* "", "bf16", "bf16_dot", "bf16_amx", "u8", "u8_dot", "u8_sudot", "u8_amx", "u8_pairs", "u8_narrow", "f32_amx",
 * "f32_amx_short". */
const char *gemm_unit_name(gemm_unit unit);

static inline bool gemm_unit_is_integer(gemm_unit unit)
{
    return unit == GEMM_U8 || unit == GEMM_U8_DOT || unit == GEMM_U8_SUDOT || unit == GEMM_U8_AMX ||
           unit == GEMM_U8_PAIRS || unit == GEMM_U8_NARROW;
}

/* Bytes of a term of B before it is packed. */
static inline int64_t gemm_b_size(const gemm_tile_set *set) { return set->b_size ? set->b_size : 4 / set->terms; }

/* Words of K that a panel has: as many steps of equal size as it takes. */
static inline int64_t gemm_words_of(int64_t terms, int64_t step, int64_t k)
{
    const int64_t words = k / terms + (k % terms != 0);
    if (step <= 1) return words;
    const int64_t steps = words / step + (words % step != 0), each = steps ? words / steps + (words % steps != 0) : 0;
    return steps * each;
}

#endif
