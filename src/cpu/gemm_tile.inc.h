/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_tile.inc.h - the micro-kernels of the units that every level has, included once by each level. */
#include "cpu/gemm_pack.inc.h"

static inline float word_f32(const char *p)
{
    float x;
    memcpy(&x, p, sizeof x);
    return x;
}
static inline veci words_load(const float *p)
{
    return v_bits(v_load(p));
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
#define UNIT_MUL(s, a, b) v_fma(a, b, s)
#define UNIT_IS_UNROLLED 1
#define UNIT_IS_INTEGER 0
#define UNIT_IS_NARROW 0
#include "cpu/gemm_unit.inc.h"

/* The two numbers of a word as f32. */
typedef struct bf16_two {
    vec low, high;
} bf16_two;

static inline bf16_two bf16_widen(veci words)
{
    return (bf16_two){ v_of_bits(vi_sll(words, 16)), v_of_bits(vi_and(words, vi_set((int32_t)0xFFFF0000u))) };
}
static inline vec bf16_mul(vec s, bf16_two a, bf16_two b)
{
    return v_fma(a.high, b.high, v_fma(a.low, b.low, s));
}

#define UNIT bf16
#define UNIT_TERMS 2
#if VEC_REGISTERS == 32
#define UNIT_ROWS_1 14
#define UNIT_ROWS_2 12
#else
#define UNIT_ROWS_1 9
#define UNIT_ROWS_2 4
#endif
#define UNIT_ROWS_3 0
#define UNIT_ROWS_4 0
#define UNIT_A bf16_two
#define UNIT_B bf16_two
#define UNIT_SPLAT(p) bf16_widen(vi_set(word_of(p)))
#define UNIT_LOAD(p) bf16_widen(words_load(p))
#define UNIT_MUL(s, a, b) bf16_mul(s, a, b)
#define UNIT_IS_UNROLLED 0
#define UNIT_IS_INTEGER 0
#define UNIT_IS_NARROW 1
#define UNIT_STORE_NARROW(p, v) v_store_bf16(p, v)
#include "cpu/gemm_unit.inc.h"

/* The four integers of a word as pairs of 16 bits: the first and third, the second and fourth. */
typedef struct u8_two {
    veci low, high;
} u8_two;

static inline u8_two u8_widen(veci words)
{
    const veci mask = vi_set(0x00FF00FF);
    return (u8_two){ vi_and(words, mask), vi_and(vi_sra(words, 8), mask) };
}
static inline u8_two s8_widen(veci words)
{
    return (u8_two){ vi_sra16(vi_sll16(words, 8), 8), vi_sra16(words, 8) };
}
static inline veci u8_mul(veci s, u8_two a, u8_two b)
{
    return vi_madd16_two(s, a.low, b.low, a.high, b.high);
}

#define UNIT u8
#define UNIT_TERMS 4
#if VEC_REGISTERS == 32
#define UNIT_ROWS_1 14
#define UNIT_ROWS_2 12
#else
#define UNIT_ROWS_1 9
#define UNIT_ROWS_2 4
#endif
#define UNIT_ROWS_3 0
#define UNIT_ROWS_4 0
#define UNIT_A u8_two
#define UNIT_B u8_two
#define UNIT_SPLAT(p) u8_widen(vi_set(word_of(p)))
#define UNIT_LOAD(p) s8_widen(words_load(p))
#define UNIT_MUL(s, a, b) u8_mul(s, a, b)
#define UNIT_IS_UNROLLED 0
#define UNIT_IS_INTEGER 1
#define UNIT_IS_NARROW 0
#include "cpu/gemm_unit.inc.h"

static const gemm_tile_set *const gemm_units[GEMM_UNITS] = {
    [GEMM_F32] = &unit_set_f32,
    [GEMM_BF16] = &unit_set_bf16,
    [GEMM_U8] = &unit_set_u8,
};
