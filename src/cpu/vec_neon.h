/* SPDX-License-Identifier: Apache-2.0 */
/* vec_neon.h - the small vector vocabulary of the kernel templates, on the 128-bit registers of 64-bit Arm.
 *
 * Every 64-bit Arm CPU has these instructions. Every function is static. */
#ifndef CPU_VEC_NEON_H
#define CPU_VEC_NEON_H

#include <arm_neon.h>
#include <stdint.h>

typedef float32x4_t vec;
#define VEC_LANES 4
#define VEC_REGISTERS 32
#define VEC_SUFFIX(name) name##_neon

static inline void v_leave(void) { }
static inline vec v_zero(void)
{
    return vdupq_n_f32(0);
}
static inline vec v_set(float x)
{
    return vdupq_n_f32(x);
}
static inline vec v_load(const float *p)
{
    return vld1q_f32(p);
}
static inline void v_store(float *p, vec v)
{
    vst1q_f32(p, v);
}
/* The first n lanes (0..VEC_LANES); the others load as zero and are not stored. No byte beyond them is touched. */
static inline vec v_load_n(const float *p, int n)
{
    const float32x2_t zero = vdup_n_f32(0);
    if (n >= 4) return vld1q_f32(p);
    if (n == 3) return vcombine_f32(vld1_f32(p), vld1_lane_f32(p + 2, zero, 0));
    if (n == 2) return vcombine_f32(vld1_f32(p), zero);
    return n == 1 ? vcombine_f32(vld1_lane_f32(p, zero, 0), zero) : v_zero();
}
static inline void v_store_n(float *p, vec v, int n)
{
    if (n >= 4) vst1q_f32(p, v);
    else {
        if (n >= 2) vst1_f32(p, vget_low_f32(v));
        if (n == 3) vst1q_lane_f32(p + 2, v, 2);
        if (n == 1) vst1q_lane_f32(p, v, 0);
    }
}
static inline vec v_add(vec a, vec b)
{
    return vaddq_f32(a, b);
}
static inline vec v_mul(vec a, vec b)
{
    return vmulq_f32(a, b);
}
static inline vec v_fma(vec a, vec b, vec c)
{
    return vfmaq_f32(c, a, b);
}
/* As vec_avx2.h has it. */
static inline vec v_fma_into(vec a, vec b, vec c)
{
    return v_fma(a, b, c);
}
static inline vec v_fma_from(vec a, const float *b, vec c)
{
    return v_fma(a, v_load(b), c);
}
/* Where either operand is a NaN the result is `b`: bounds go first, so that a NaN in the data stays one. fmax and fmin
 * give a NaN for a NaN in `a`, too, so these are comparisons. */
static inline vec v_max(vec a, vec b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
static inline vec v_min(vec a, vec b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}

#endif
