/* SPDX-License-Identifier: Apache-2.0 */
/* simd_avx2.h - what the expression and row kernels need beside vec_avx2.h: comparisons, bits, conversions, sums.
 *
 * Included only by files compiled with the AVX2 flags; every function is static. */
#ifndef CPU_SIMD_AVX2_H
#define CPU_SIMD_AVX2_H

#include "cpu/vec_avx2.h"

typedef __m256i veci;                   /* VEC_LANES times int32 */
typedef __m256i vecm;                   /* all bits of a lane, or none */

static inline vec  v_sub(vec a, vec b) { return _mm256_sub_ps(a, b); }
static inline vec  v_div(vec a, vec b) { return _mm256_div_ps(a, b); }
static inline vec  v_sqrt(vec a) { return _mm256_sqrt_ps(a); }
static inline vec  v_nearest(vec a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vec  v_floor(vec a) { return _mm256_floor_ps(a); }
static inline vec  v_ceil(vec a) { return _mm256_ceil_ps(a); }
static inline veci v_bits(vec a) { return _mm256_castps_si256(a); }
static inline vec  v_of_bits(veci a) { return _mm256_castsi256_ps(a); }

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
static inline vec  v_fnms(vec a, vec b, vec c) { return _mm256_fnmsub_ps(a, b, c); }

static inline veci vi_set(int32_t x) { return _mm256_set1_epi32(x); }
static inline veci vi_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
static inline void vi_store(int32_t *p, veci v) { _mm256_storeu_si256((__m256i *)(void *)p, v); }
static inline veci vi_add(veci a, veci b) { return _mm256_add_epi32(a, b); }
static inline veci vi_sub(veci a, veci b) { return _mm256_sub_epi32(a, b); }
static inline veci vi_and(veci a, veci b) { return _mm256_and_si256(a, b); }
static inline veci vi_or(veci a, veci b) { return _mm256_or_si256(a, b); }
static inline veci vi_xor(veci a, veci b) { return _mm256_xor_si256(a, b); }
#define vi_sll(a, n) _mm256_slli_epi32((a), (n))
#define vi_sra(a, n) _mm256_srai_epi32((a), (n))
/* Pairs of 16-bit numbers: shifted each; multiplied, and the two products added. */
#define vi_sll16(a, n) _mm256_slli_epi16((a), (n))
#define vi_sra16(a, n) _mm256_srai_epi16((a), (n))
#define VEC_HAS_PAIRS /* vi_madd16 is one instruction */
static inline veci vi_madd16(veci a, veci b) { return _mm256_madd_epi16(a, b); }
/* Pairs of u8 and s8: multiplied, and the two products added, as far as 16 bits hold the sum. */
static inline veci vi_madd8(veci a, veci b) { return _mm256_maddubs_epi16(a, b); }
static inline veci v_to_int(vec a) { return _mm256_cvtps_epi32(a); }          /* nearest, ties to even */
static inline veci v_to_int_cut(vec a) { return _mm256_cvttps_epi32(a); }     /* towards zero          */
static inline vec  vi_to_f32(veci a) { return _mm256_cvtepi32_ps(a); }

/* Entry i mod 8 of a table. */
#define SIMD_TABLE_BITS 3
static inline vec  v_lookup(const float *table, veci i) { return _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), i); }
/* Lane i[k] of v in lane k. */
static inline vec  v_permute(vec v, veci i) { return _mm256_permutevar8x32_ps(v, i); }
/* x[at[k]] in lane k. The instruction for it takes longer than eight loads on some CPUs. */
static inline vec  v_gather(const float *x, const int32_t *at)
{
    return _mm256_setr_ps(x[at[0]], x[at[1]], x[at[2]], x[at[3]], x[at[4]], x[at[5]], x[at[6]], x[at[7]]);
}

static inline vecm v_lt(vec a, vec b) { return v_bits(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
static inline vecm v_le(vec a, vec b) { return v_bits(_mm256_cmp_ps(a, b, _CMP_LE_OQ)); }
static inline vecm v_eq(vec a, vec b) { return v_bits(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)); }
static inline vecm v_is_nan(vec a) { return v_bits(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)); }
static inline vecm vi_eq(veci a, veci b) { return _mm256_cmpeq_epi32(a, b); }
static inline vecm vi_lt(veci a, veci b) { return _mm256_cmpgt_epi32(b, a); }
static inline vecm m_and(vecm a, vecm b) { return _mm256_and_si256(a, b); }
static inline vecm m_or(vecm a, vecm b) { return _mm256_or_si256(a, b); }
static inline vecm m_not(vecm a) { return _mm256_xor_si256(a, _mm256_set1_epi32(-1)); }
static inline bool m_any(vecm a) { return _mm256_movemask_epi8(a) != 0; }
static inline vec  v_blend(vecm m, vec a, vec b) { return _mm256_blendv_ps(b, a, v_of_bits(m)); }    /* m ? a : b */
static inline veci vi_blend(vecm m, veci a, veci b) { return _mm256_blendv_epi8(b, a, m); }
static inline veci vi_of_mask(vecm m) { return _mm256_and_si256(m, _mm256_set1_epi32(1)); }

/* All bits of the first n lanes. */
static inline vecm m_first(int n) { return v_mask(n); }
/* Pairs of elements, each the other way round. */
static inline vec  v_swap(vec a) { return _mm256_permute_ps(a, 0xB1); }
/* The elements at even places of a, then of b. */
static inline vec  v_even(vec a, vec b)
{
    const __m256d x = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(x, 0xD8));
}
/* Those at odd places. */
static inline vec  v_odd(vec a, vec b)
{
    const __m256d x = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xDD));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(x, 0xD8));
}
/* The elements of a and of b in turns: those of their first halves; of their second halves. */
static inline vec  v_zip_low(vec a, vec b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20);
}
static inline vec  v_zip_high(vec a, vec b)
{
    return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31);
}

/* Four numbers at p, four at p + step, and so on. Pairs and twos: a and b joined in each four, number by number or two
 * by two. */
static inline vec v_load_parts(const float *p, int64_t step)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + step), 1);
}
static inline vec v_pair_low(vec a, vec b) { return _mm256_unpacklo_ps(a, b); }
static inline vec v_pair_high(vec a, vec b) { return _mm256_unpackhi_ps(a, b); }
static inline vec v_two_low(vec a, vec b) { return _mm256_shuffle_ps(a, b, 0x44); }
static inline vec v_two_high(vec a, vec b) { return _mm256_shuffle_ps(a, b, 0xee); }

/* VEC_LANES / 2 times f64, from and to f32. */
typedef __m256d vecd;
static inline vecd vd_load(const float *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
static inline vecd vd_fma(vecd a, vecd b, vecd c) { return _mm256_fmadd_pd(a, b, c); }
static inline void vd_store(float *p, vecd v) { _mm_storeu_ps(p, _mm256_cvtpd_ps(v)); }

static inline float v_sum(vec a)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
static inline float v_most(vec a)
{
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}
static inline float v_least(vec a)
{
    __m128 x = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_min_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_min_ss(x, _mm_movehdup_ps(x)));
}

static inline vec  v_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline void v_store_f16(uint16_t *p, vec v)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline veci vi_load_u16(const uint16_t *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline veci vi_load_i8(const int8_t *p)
{
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
static inline veci vi_load_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
/* The first n of them, 0 <= n < 8. */
static inline veci vi_load_u8_n(const uint8_t *p, int n)
{
    uint64_t x = 0;
    for (int i = n; i-- > 0;) x = x << 8 | p[i];
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)x));
}
/* Of 16-bit or 8-bit numbers: those of one vector or the other that are larger or smaller. */
static inline veci vi16_max(veci a, veci b) { return _mm256_max_epi16(a, b); }
static inline veci vu16_max(veci a, veci b) { return _mm256_max_epu16(a, b); }
static inline veci vu16_min(veci a, veci b) { return _mm256_min_epu16(a, b); }
static inline veci vi8_max(veci a, veci b) { return _mm256_max_epi8(a, b); }
static inline veci vu8_max(veci a, veci b) { return _mm256_max_epu8(a, b); }
/* 4 vectors of numbers plus `zero` (pairs of 16 bits), of `low` to `high` (bytes) then, with bits `flip` turned. */
#define SIMD_PACK_CODES
static inline void vi_store_codes(uint8_t *p, const veci *q, veci zero, veci low, veci high, veci flip)
{
    const veci a = _mm256_adds_epi16(_mm256_packs_epi32(q[0], q[1]), zero);
    const veci b = _mm256_adds_epi16(_mm256_packs_epi32(q[2], q[3]), zero);
    const veci order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const veci bytes = _mm256_min_epu8(high, _mm256_max_epu8(_mm256_packus_epi16(a, b), low));
    const veci x = _mm256_xor_si256(bytes, flip);
    _mm256_storeu_si256((__m256i *)(void *)p, _mm256_permutevar8x32_epi32(x, order));
}
/* The low bits of each lane. */
static inline void vi_store_16(uint16_t *p, veci v)
{
    const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xFFFF));
    const __m128i x = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    _mm_storeu_si128((__m128i *)(void *)p, x);
}
static inline void vi_store_8(uint8_t *p, veci v)
{
    const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xFF));
    const __m128i x = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(x, x));
}

#endif
