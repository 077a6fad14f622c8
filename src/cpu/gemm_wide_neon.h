/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_wide_neon.h - how the units that widen terms in registers do so on 64-bit Arm (as gemm_wide.inc.h elsewhere).
 *
 * bf16: the two numbers of A's word are lanes of one register, and products are by element. u8: products of a u8 and an
 * s8 fit 16 bits, so that an instruction multiplies eight of them and another adds neighbours to the sums. */
#ifndef CPU_GEMM_WIDE_NEON_H
#define CPU_GEMM_WIDE_NEON_H

#include "cpu/simd_neon.h"

#define WIDE_BF16_ROWS_1 14
#define WIDE_BF16_ROWS_2 12
#define WIDE_U8_ROWS_1 14
#define WIDE_U8_ROWS_2 10

typedef struct bf16_words {
    vec low, high;
} bf16_words;
typedef vec bf16_word;

static inline bf16_word bf16_word_load(const char *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_f32(word_lane(p)), 16));
}
static inline bf16_words bf16_words_load(const float *p)
{
    const veci words = v_bits(v_load(p));
    return (bf16_words){ v_of_bits(vi_sll(words, 16)), v_of_bits(vi_and(words, vi_set((int32_t)0xFFFF0000u))) };
}
static inline vec bf16_mul(vec s, bf16_word a, bf16_words b)
{
    return vfmaq_laneq_f32(vfmaq_laneq_f32(s, b.low, a, 0), b.high, a, 1);
}

/* The four integers of a word as 16-bit numbers: the first and third, the second and fourth. */
typedef struct u8_words {
    veci low, high;
} u8_words;
typedef u8_words u8_word;

static inline u8_word u8_word_load(const char *p)
{
    int32x4_t word; /* by name: of a broadcast in C, GCC makes one of each of the two results */
    __asm__("ld1r {%0.4s}, %1" : "=w"(word) : "Q"(*(const char(*)[4])p));
    const uint16x8_t pairs = vreinterpretq_u16_s32(word);
    return (u8_word){ vi_and(word, vi_set(0x00FF00FF)), vreinterpretq_s32_u16(vshrq_n_u16(pairs, 8)) };
}
static inline u8_words u8_words_load(const float *p)
{
    const veci words = v_bits(v_load(p));
    return (u8_words){ vi_sra16(vi_sll16(words, 8), 8), vi_sra16(words, 8) };
}
static inline veci u8_mul(veci s, u8_word a, u8_words b)
{
    const int16x8_t low = vmulq_s16(vreinterpretq_s16_s32(a.low), vreinterpretq_s16_s32(b.low));
    const int16x8_t high = vmulq_s16(vreinterpretq_s16_s32(a.high), vreinterpretq_s16_s32(b.high));
    return vpadalq_s16(vpadalq_s16(s, low), high);
}

#endif
