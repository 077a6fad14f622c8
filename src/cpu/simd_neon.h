/* SPDX-License-Identifier: Apache-2.0 */
/* simd_neon.h - what the expression and row kernels need beside vec_neon.h: comparisons, bits, conversions, sums.
 *
 * Conversions to integers and masks are as on x86, so that all levels agree. Every function is static. */
#ifndef CPU_SIMD_NEON_H
#define CPU_SIMD_NEON_H

#include "cpu/vec_neon.h"
#include <string.h>

typedef int32x4_t veci;                 /* VEC_LANES times int32 */
typedef int32x4_t vecm;                 /* all bits of a lane, or none */

static inline vec  v_sub(vec a, vec b) { return vsubq_f32(a, b); }
static inline vec  v_div(vec a, vec b) { return vdivq_f32(a, b); }
/* a / b, where the quotient is near half of an odd number of few bits: 1 / b is inverse + rest to 48 bits. */
static inline vec  v_div_near(vec a, vec b, vec inverse, vec rest)
{
    (void)b;
    return v_fma(a, inverse, v_mul(a, rest));
}

static inline vec  v_sqrt(vec a) { return vsqrtq_f32(a); }
static inline vec  v_nearest(vec a) { return vrndnq_f32(a); }
static inline vec  v_floor(vec a) { return vrndmq_f32(a); }
static inline vec  v_ceil(vec a) { return vrndpq_f32(a); }
static inline veci v_bits(vec a) { return vreinterpretq_s32_f32(a); }
static inline vec  v_of_bits(veci a) { return vreinterpretq_f32_s32(a); }

/* a / b, rounded to nearest: 1 / b is `inverse`, rounded so, too, and nothing overflows or underflows. The second
 * quotient is within a unit of the last place of a / b, so that its remainder is exact and the third is right
 * (Markstein). */
static inline vec  v_div_by(vec a, vec b, vec inverse)
{
    vec q = vmulq_f32(a, inverse);
    q = vfmaq_f32(q, vfmsq_f32(a, q, b), inverse);
    return vfmaq_f32(q, vfmsq_f32(a, q, b), inverse);
}

static inline veci vi_set(int32_t x) { return vdupq_n_s32(x); }
static inline veci vi_load(const int32_t *p) { return vld1q_s32(p); }
static inline void vi_store(int32_t *p, veci v) { vst1q_s32(p, v); }
static inline veci vi_add(veci a, veci b) { return vaddq_s32(a, b); }
static inline veci vi_sub(veci a, veci b) { return vsubq_s32(a, b); }
static inline veci vi_and(veci a, veci b) { return vandq_s32(a, b); }
static inline veci vi_or(veci a, veci b) { return vorrq_s32(a, b); }
static inline veci vi_xor(veci a, veci b) { return veorq_s32(a, b); }
#define vi_sll(a, n) ((veci)((uint32x4_t)(a) << (n)))
#define vi_sra(a, n) ((veci)(a) >> (n))
/* Pairs of 16-bit numbers: shifted each; multiplied, and the two products added. */
#define vi_sll16(a, n) ((veci)((uint16x8_t)(a) << (n)))
#define vi_sra16(a, n) ((veci)((int16x8_t)(a) >> (n)))
static inline veci vi_madd16(veci a, veci b)
{
    const int16x8_t x = vreinterpretq_s16_s32(a), y = vreinterpretq_s16_s32(b);
    return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}
/* What does not fit, and NaN, is INT32_MIN, as the x86 instructions have it. */
static inline veci int_or_least(vec a, veci x)
{
    return vbslq_s32(vcaltq_f32(a, vdupq_n_f32(2147483648.0f)), x, vdupq_n_s32(INT32_MIN));
}
static inline veci v_to_int(vec a) { return int_or_least(a, vcvtnq_s32_f32(a)); }       /* nearest, ties to even */
static inline veci v_to_int_cut(vec a) { return int_or_least(a, vcvtq_s32_f32(a)); }    /* towards zero          */
static inline vec  vi_to_f32(veci a) { return vcvtq_f32_s32(a); }

static inline vecm v_lt(vec a, vec b) { return vreinterpretq_s32_u32(vcltq_f32(a, b)); }
static inline vecm v_le(vec a, vec b) { return vreinterpretq_s32_u32(vcleq_f32(a, b)); }
static inline vecm v_eq(vec a, vec b) { return vreinterpretq_s32_u32(vceqq_f32(a, b)); }
static inline vecm v_is_nan(vec a) { return vmvnq_s32(vreinterpretq_s32_u32(vceqq_f32(a, a))); }
static inline vecm vi_eq(veci a, veci b) { return vreinterpretq_s32_u32(vceqq_s32(a, b)); }
static inline vecm vi_lt(veci a, veci b) { return vreinterpretq_s32_u32(vcltq_s32(a, b)); }
static inline vecm m_and(vecm a, vecm b) { return vandq_s32(a, b); }
static inline vecm m_or(vecm a, vecm b) { return vorrq_s32(a, b); }
static inline vecm m_not(vecm a) { return vmvnq_s32(a); }
static inline bool m_any(vecm a) { return vmaxvq_u32(vreinterpretq_u32_s32(a)) != 0; }
static inline vec  v_blend(vecm m, vec a, vec b) { return vbslq_f32(vreinterpretq_u32_s32(m), a, b); } /* m ? a : b */
static inline veci vi_blend(vecm m, veci a, veci b) { return vbslq_s32(vreinterpretq_u32_s32(m), a, b); }
static inline veci vi_of_mask(vecm m) { return vandq_s32(m, vdupq_n_s32(1)); }

/* All bits of the first n lanes. */
static inline vecm m_first(int n)
{
    static const int32_t lane[4] = { 0, 1, 2, 3 };
    return vreinterpretq_s32_u32(vcltq_s32(vld1q_s32(lane), vdupq_n_s32(n)));
}
/* Pairs of elements, each the other way round. */
static inline vec  v_swap(vec a) { return vrev64q_f32(a); }
/* The elements at even places of a, then of b. */
static inline vec  v_even(vec a, vec b) { return vuzp1q_f32(a, b); }
/* Those at odd places. */
static inline vec  v_odd(vec a, vec b) { return vuzp2q_f32(a, b); }
/* The elements of a and of b in turns: those of their first halves; of their second halves. */
static inline vec  v_zip_low(vec a, vec b) { return vzip1q_f32(a, b); }
static inline vec  v_zip_high(vec a, vec b) { return vzip2q_f32(a, b); }
/* As the wider levels have them: of four numbers. */
static inline vec  v_load_parts(const float *p, int64_t step)
{
    (void)step;
    return vld1q_f32(p);
}
static inline vec  v_pair_low(vec a, vec b) { return vzip1q_f32(a, b); }
static inline vec  v_pair_high(vec a, vec b) { return vzip2q_f32(a, b); }
static inline vec  v_two_low(vec a, vec b) { return vcombine_f32(vget_low_f32(a), vget_low_f32(b)); }
static inline vec  v_two_high(vec a, vec b) { return vcombine_f32(vget_high_f32(a), vget_high_f32(b)); }
/* VEC_LANES / 2 times f64, from and to f32. */
typedef float64x2_t vecd;
static inline vecd vd_load(const float *p) { return vcvt_f64_f32(vld1_f32(p)); }
static inline vecd vd_fma(vecd a, vecd b, vecd c) { return vfmaq_f64(c, a, b); }
static inline void vd_store(float *p, vecd v) { vst1_f32(p, vcvt_f32_f64(v)); }
/* Entry i of a table. */
static inline vec  v_lookup(const float *table, veci i)
{
    const float found[4] = { table[i[0]], table[i[1]], table[i[2]], table[i[3]] };
    return vld1q_f32(found);
}
/* x[at[k]] in lane k. */
static inline vec  v_gather(const float *x, const int32_t *at) { return v_lookup(x, vi_load(at)); }

static inline float v_sum(vec a)
{
    const float32x2_t x = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(x, 0) + vget_lane_f32(x, 1);
}
static inline float v_most(vec a)
{
    const vec x = v_max(a, vextq_f32(a, a, 2));
    return vgetq_lane_f32(v_max(x, vextq_f32(x, x, 1)), 0);
}
static inline float v_least(vec a)
{
    const vec x = v_min(a, vextq_f32(a, a, 2));
    return vgetq_lane_f32(v_min(x, vextq_f32(x, x, 1)), 0);
}

/* A word in the first lane, for products by element: one load, where a broadcast costs an operation more. */
static inline float32x2_t word_lane(const char *p)
{
    float word;
    memcpy(&word, p, sizeof word);
    return (float32x2_t){ word, 0 };
}

static inline vec  v_load_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
static inline void v_store_f16(uint16_t *p, vec v) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v))); }
static inline veci vi_load_u16(const uint16_t *p) { return vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p))); }
/* Of 16-bit or 8-bit numbers: those of one vector or the other that are larger or smaller. */
static inline veci vi16_max(veci a, veci b)
{
    return vreinterpretq_s32_s16(vmaxq_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)));
}
static inline veci vu16_max(veci a, veci b)
{
    return vreinterpretq_s32_u16(vmaxq_u16(vreinterpretq_u16_s32(a), vreinterpretq_u16_s32(b)));
}
static inline veci vu16_min(veci a, veci b)
{
    return vreinterpretq_s32_u16(vminq_u16(vreinterpretq_u16_s32(a), vreinterpretq_u16_s32(b)));
}
static inline veci vi8_max(veci a, veci b)
{
    return vreinterpretq_s32_s8(vmaxq_s8(vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b)));
}
static inline veci vu8_max(veci a, veci b)
{
    return vreinterpretq_s32_u8(vmaxq_u8(vreinterpretq_u8_s32(a), vreinterpretq_u8_s32(b)));
}
static inline veci vi_load_i8(const int8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)))));
}
static inline veci vi_load_u8(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four))))));
}
/* The low bits of each lane. */
static inline void vi_store_16(uint16_t *p, veci v) { vst1_u16(p, vmovn_u32(vreinterpretq_u32_s32(v))); }
static inline void vi_store_8(uint8_t *p, veci v)
{
    const uint16x4_t half = vmovn_u32(vreinterpretq_u32_s32(v));
    const uint32_t   four = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(half, half))), 0);
    memcpy(p, &four, sizeof four);
}

#endif
