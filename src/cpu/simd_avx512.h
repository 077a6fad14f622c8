/* SPDX-License-Identifier: Apache-2.0 */
/* simd_avx512.h - what the expression and row kernels need beside vec_avx512.h: comparisons, bits, conversions, sums.
 *
 * Included only by files compiled with the AVX-512 flags; every function is static. */
#ifndef CPU_SIMD_AVX512_H
#define CPU_SIMD_AVX512_H

#include "cpu/vec_avx512.h"

typedef __m512i   veci;                 /* VEC_LANES times int32 */
typedef __mmask16 vecm;                 /* one truth value a lane */

static inline vec  v_sub(vec a, vec b) { return _mm512_sub_ps(a, b); }
static inline vec  v_div(vec a, vec b) { return _mm512_div_ps(a, b); }
static inline vec  v_sqrt(vec a) { return _mm512_sqrt_ps(a); }
static inline vec  v_nearest(vec a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vec  v_floor(vec a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
static inline vec  v_ceil(vec a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
static inline veci v_bits(vec a) { return _mm512_castps_si512(a); }
static inline vec  v_of_bits(veci a) { return _mm512_castsi512_ps(a); }

/* a / b, rounded to nearest: 1 / b is `inverse`, rounded so, too, and nothing overflows or underflows. The second
 * quotient is within a unit of the last place of a / b, so that its remainder is exact and the third is right
 * (Markstein). */
static inline vec  v_div_by(vec a, vec b, vec inverse)
{
    const vec minus = v_sub(v_zero(), b);
    vec       q = v_mul(a, inverse);
    q = v_fma(v_fma(q, minus, a), inverse, q);
    return v_fma(v_fma(q, minus, a), inverse, q);
}

/* a / b, where the quotient is near half of an odd number of few bits: 1 / b is inverse + rest to 48 bits. */
static inline vec  v_div_near(vec a, vec b, vec inverse, vec rest)
{
    (void)b;
    return v_fma(a, inverse, v_mul(a, rest));
}

/* -(a * b) - c */
static inline vec  v_fnms(vec a, vec b, vec c) { return _mm512_fnmsub_ps(a, b, c); }

static inline veci vi_set(int32_t x) { return _mm512_set1_epi32(x); }
static inline veci vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
static inline void vi_store(int32_t *p, veci v) { _mm512_storeu_si512(p, v); }
static inline veci vi_add(veci a, veci b) { return _mm512_add_epi32(a, b); }
static inline veci vi_sub(veci a, veci b) { return _mm512_sub_epi32(a, b); }
static inline veci vi_and(veci a, veci b) { return _mm512_and_si512(a, b); }
static inline veci vi_or(veci a, veci b) { return _mm512_or_si512(a, b); }
static inline veci vi_xor(veci a, veci b) { return _mm512_xor_si512(a, b); }
#define vi_sll(a, n) _mm512_slli_epi32((a), (unsigned)(n))
#define vi_sra(a, n) _mm512_srai_epi32((a), (unsigned)(n))
/* Pairs of 16-bit numbers: shifted each; multiplied, and the two products added. */
#define vi_sll16(a, n) _mm512_slli_epi16((a), (unsigned)(n))
#define vi_sra16(a, n) _mm512_srai_epi16((a), (unsigned)(n))
#define VEC_HAS_PAIRS /* vi_madd16 is one instruction */
static inline veci vi_madd16(veci a, veci b) { return _mm512_madd_epi16(a, b); }
/* Pairs of u8 and s8: multiplied, and the two products added, as far as 16 bits hold the sum. */
static inline veci vi_madd8(veci a, veci b) { return _mm512_maddubs_epi16(a, b); }
static inline veci v_to_int(vec a) { return _mm512_cvtps_epi32(a); }          /* nearest, ties to even */
static inline veci v_to_int_cut(vec a) { return _mm512_cvttps_epi32(a); }     /* towards zero          */
static inline vec  vi_to_f32(veci a) { return _mm512_cvtepi32_ps(a); }

/* p * 2^floor(n) with all that rounding does; 0 where x < least. */
#define SIMD_SCALE2(p, n)                _mm512_scalef_ps((p), (n))
#define SIMD_SCALE2_FROM(least, x, p, n) _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask((x), (least), _CMP_NLT_UQ), (p), (n))

/* Entry i mod 16 of a table. */
#define SIMD_TABLE_BITS 4
static inline vec  v_lookup(const float *table, veci i) { return _mm512_permutexvar_ps(i, _mm512_loadu_ps(table)); }
/* Lane i[k] of v in lane k. */
static inline vec  v_permute(vec v, veci i) { return _mm512_permutexvar_ps(i, v); }
/* x[at[k]] in lane k. */
static inline vec  v_gather(const float *x, const int32_t *at)
{
    return _mm512_i32gather_ps(_mm512_loadu_si512(at), x, 4);
}

static inline vecm v_lt(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline vecm v_le(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
static inline vecm v_eq(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline vecm v_is_nan(vec a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
static inline vecm vi_eq(veci a, veci b) { return _mm512_cmpeq_epi32_mask(a, b); }
static inline vecm vi_lt(veci a, veci b) { return _mm512_cmplt_epi32_mask(a, b); }
static inline vecm m_and(vecm a, vecm b) { return (vecm)(a & b); }
static inline vecm m_or(vecm a, vecm b) { return (vecm)(a | b); }
static inline vecm m_not(vecm a) { return (vecm)~a; }
static inline bool m_any(vecm a) { return a != 0; }
static inline vec  v_blend(vecm m, vec a, vec b) { return _mm512_mask_blend_ps(m, b, a); }    /* m ? a : b */
static inline veci vi_blend(vecm m, veci a, veci b) { return _mm512_mask_blend_epi32(m, b, a); }
static inline veci vi_of_mask(vecm m) { return _mm512_maskz_set1_epi32(m, 1); }

/* The first n lanes. */
static inline vecm m_first(int n) { return (vecm)((1u << n) - 1); }
/* Pairs of elements, each the other way round. */
static inline vec  v_swap(vec a) { return _mm512_permute_ps(a, 0xB1); }
/* The elements at even places of a, then of b. */
static inline vec  v_even(vec a, vec b)
{
    const veci at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, at, b);
}
/* Those at odd places. */
static inline vec  v_odd(vec a, vec b)
{
    const veci at = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, at, b);
}
/* The elements of a and of b in turns: those of their first halves; of their second halves. */
static inline vec  v_zip_low(vec a, vec b)
{
    const veci at = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return _mm512_permutex2var_ps(a, at, b);
}
static inline vec  v_zip_high(vec a, vec b)
{
    const veci at = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return _mm512_permutex2var_ps(a, at, b);
}

/* Four numbers at p, four at p + step, and so on. Pairs and twos: a and b joined in each four, number by number or two
 * by two. */
static inline vec v_load_parts(const float *p, int64_t step)
{
    const __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + step), 1);
    const __m512 three = _mm512_insertf32x4(_mm512_castps256_ps512(low), _mm_loadu_ps(p + 2 * step), 2);
    return _mm512_insertf32x4(three, _mm_loadu_ps(p + 3 * step), 3);
}
static inline vec v_pair_low(vec a, vec b) { return _mm512_unpacklo_ps(a, b); }
static inline vec v_pair_high(vec a, vec b) { return _mm512_unpackhi_ps(a, b); }
static inline vec v_two_low(vec a, vec b) { return _mm512_shuffle_ps(a, b, 0x44); }
static inline vec v_two_high(vec a, vec b) { return _mm512_shuffle_ps(a, b, 0xee); }

/* VEC_LANES / 2 times f64, from and to f32. */
typedef __m512d vecd;
static inline vecd vd_load(const float *p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
static inline vecd vd_fma(vecd a, vecd b, vecd c) { return _mm512_fmadd_pd(a, b, c); }
static inline void vd_store(float *p, vecd v) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(v)); }

static inline float v_sum(vec a) { return _mm512_reduce_add_ps(a); }
static inline float v_most(vec a) { return _mm512_reduce_max_ps(a); }
static inline float v_least(vec a) { return _mm512_reduce_min_ps(a); }

static inline vec  v_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline void v_store_f16(uint16_t *p, vec v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline veci vi_load_u16(const uint16_t *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline veci vi_load_i8(const int8_t *p)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline veci vi_load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* The first n of them, 0 <= n < 16. */
static inline veci vi_load_u8_n(const uint8_t *p, int n)
{
    return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1), p));
}
/* The low bits of each lane. */
static inline void vi_store_8(uint8_t *p, veci v) { _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(v)); }
/* Of 16-bit or 8-bit numbers: those of one vector or the other that are larger or smaller. */
static inline veci vi16_max(veci a, veci b) { return _mm512_max_epi16(a, b); }
static inline veci vu16_max(veci a, veci b) { return _mm512_max_epu16(a, b); }
static inline veci vu16_min(veci a, veci b) { return _mm512_min_epu16(a, b); }
static inline veci vi8_max(veci a, veci b) { return _mm512_max_epi8(a, b); }
static inline veci vu8_max(veci a, veci b) { return _mm512_max_epu8(a, b); }
/* 4 vectors of numbers plus `zero` (pairs of 16 bits), of `low` to `high` (bytes) then, with bits `flip` turned. */
#define SIMD_PACK_CODES
static inline void vi_store_codes(uint8_t *p, const veci *q, veci zero, veci low, veci high, veci flip)
{
    const veci a = _mm512_adds_epi16(_mm512_packs_epi32(q[0], q[1]), zero);
    const veci b = _mm512_adds_epi16(_mm512_packs_epi32(q[2], q[3]), zero);
    const veci order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const veci bytes = _mm512_min_epu8(high, _mm512_max_epu8(_mm512_packus_epi16(a, b), low));
    const veci x = _mm512_xor_si512(bytes, flip);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, x));
}
/* The first n of 16 numbers; the others are 0, or are not stored. No byte beyond them is touched. */
#define VEC_HAS_SHORTS_N
static inline veci vi_load_u16_n(const uint16_t *p, int n)
{
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1u), p));
}
static inline void shorts_store_n(uint16_t *p, const uint16_t *from, int n)
{
    const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)from);
    _mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1u), v);
}
static inline void vi_store_16(uint16_t *p, veci v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(v));
}

#endif
