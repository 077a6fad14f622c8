/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tile.inc.h - the micro-kernels of the units that every level has, included once by each level. */
#include "cpu/gemm_pack.inc.h"

static inline float word_f32(const char *p)
{
    float x;
    memcpy(&x, p, sizeof x);
    return x;
}

#define UNIT f32
#define UNIT_TERMS 1
#if VEC_REGISTERS == 32
#define UNIT_ROWS_1 14
#define UNIT_ROWS_2 14
#define UNIT_ROWS_3 9
#define UNIT_ROWS_4 6
#else
#define UNIT_ROWS_1 12
#define UNIT_ROWS_2 6
#define UNIT_ROWS_3 4
#define UNIT_ROWS_4 2
#endif
#define UNIT_A vec
#define UNIT_B vec
#define UNIT_SPLAT(p) v_set(word_f32(p))
#define UNIT_LOAD(p) v_load(p)
#define UNIT_MUL(s, a, b) v_fma_into(a, b, s)
#define UNIT_IS_UNROLLED 1
#define UNIT_IS_INTEGER 0
#define UNIT_IS_NARROW 0
#include "cpu/gemm_unit.inc.h"

#ifndef WIDE_BF16_ROWS_1
#include "cpu/gemm_wide.inc.h"
#endif

#define UNIT bf16
#define UNIT_TERMS 2
#define UNIT_ROWS_1 WIDE_BF16_ROWS_1
#define UNIT_ROWS_2 WIDE_BF16_ROWS_2
#define UNIT_ROWS_3 0
#define UNIT_ROWS_4 0
#define UNIT_A bf16_word
#define UNIT_B bf16_words
#define UNIT_SPLAT(p) bf16_word_load(p)
#define UNIT_LOAD(p) bf16_words_load(p)
#define UNIT_MUL(s, a, b) bf16_mul(s, a, b)
#define UNIT_IS_UNROLLED 0
#define UNIT_IS_INTEGER 0
#define UNIT_IS_NARROW 1
#define UNIT_STORE_NARROW(p, v) v_store_bf16(p, v)
#include "cpu/gemm_unit.inc.h"

#define UNIT u8
#define UNIT_TERMS 4
#define UNIT_ROWS_1 WIDE_U8_ROWS_1
#define UNIT_ROWS_2 WIDE_U8_ROWS_2
#define UNIT_ROWS_3 0
#define UNIT_ROWS_4 0
#define UNIT_A u8_word
#define UNIT_B u8_words
#define UNIT_SPLAT(p) u8_word_load(p)
#define UNIT_LOAD(p) u8_words_load(p)
#define UNIT_MUL(s, a, b) u8_mul(s, a, b)
#define UNIT_IS_UNROLLED 0
#define UNIT_IS_INTEGER 1
#define UNIT_IS_NARROW 0
#include "cpu/gemm_unit.inc.h"

#ifdef VEC_HAS_PAIRS
/* The empty instruction keeps the compiler from adding the products of several words to each other first, for which
 * there are no registers. */
static inline veci pairs_mul(veci s, veci a, veci b)
{
    s = vi_add(s, vi_madd16(a, b));
    __asm__("" : "+v"(s));
    return s;
}

/* Tiles of both units, since what B holds is known later than the tactic. */
#if VEC_REGISTERS == 32
#define PAIRS_ROWS_1 14
#define PAIRS_ROWS_2 14
#define PAIRS_ROWS_3 9
#else
#define PAIRS_ROWS_1 12
#define PAIRS_ROWS_2 6
#define PAIRS_ROWS_3 4
#endif

#define UNIT u8_pairs
#define UNIT_TERMS 2
#define UNIT_ROWS_1 PAIRS_ROWS_1
#define UNIT_ROWS_2 PAIRS_ROWS_2
#define UNIT_ROWS_3 PAIRS_ROWS_3
#define UNIT_ROWS_4 0
#define UNIT_A veci
#define UNIT_B veci
#define UNIT_SPLAT(p) vi_set(word_of(p))
#define UNIT_LOAD(p) v_bits(v_load(p))
#define UNIT_MUL(s, a, b) pairs_mul(s, a, b)
#define UNIT_B_SIZE 1
#define UNIT_IS_UNROLLED 1
#define UNIT_IS_INTEGER 1
#define UNIT_IS_NARROW 0
#include "cpu/gemm_unit.inc.h"

#define UNIT u8_narrow
#define UNIT_TERMS 4
#define UNIT_ROWS_1 PAIRS_ROWS_1
#define UNIT_ROWS_2 PAIRS_ROWS_2
#define UNIT_ROWS_3 PAIRS_ROWS_3
#define UNIT_ROWS_4 0
#define UNIT_A veci
#define UNIT_B veci
#define UNIT_SPLAT(p) vi_set(word_of(p))
#define UNIT_LOAD(p) v_bits(v_load(p))
#define UNIT_MUL(s, a, b) pairs_mul(s, vi_madd8(a, b), vi_set(0x00010001))
#define UNIT_IS_UNROLLED 1
#define UNIT_IS_INTEGER 1
#define UNIT_IS_NARROW 0
#include "cpu/gemm_unit.inc.h"
#endif

static const gemm_tile_set *const gemm_units[GEMM_UNITS] = {
    [GEMM_F32] = &unit_set_f32,
    [GEMM_BF16] = &unit_set_bf16,
    [GEMM_U8] = &unit_set_u8,
#ifdef VEC_HAS_PAIRS
    [GEMM_U8_PAIRS] = &unit_set_u8_pairs,
    [GEMM_U8_NARROW] = &unit_set_u8_narrow,
#endif
};
