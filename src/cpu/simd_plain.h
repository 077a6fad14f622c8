/* SPDX-License-Identifier: Apache-2.0 */
/* simd_plain.h - what the expression and row kernels need beside vec_plain.h, in the compiler's own vectors.
 *
 * Where no operator says it, a lane at a time: this level is for correctness on any CPU. */
#ifndef CPU_SIMD_PLAIN_H
#define CPU_SIMD_PLAIN_H

#include "core/dtype.h"
#include "cpu/vec_plain.h"
#include <math.h>

typedef vec_bits veci;                  /* VEC_LANES times int32 */
typedef vec_bits vecm;                  /* all bits of a lane, or none */

static inline vec v_sub(vec a, vec b) { return a - b; }
static inline vec v_div(vec a, vec b) { return a / b; }
/* 1 / b is what the other levels multiply by. */
static inline vec v_div_by(vec a, vec b, vec inverse)
{
    (void)inverse;
    return a / b;
}
static inline vec v_div_near(vec a, vec b, vec inverse, vec rest)
{
    (void)inverse, (void)rest;
    return a / b;
}
static inline vec v_sqrt(vec a) { return (vec){ sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3]) }; }
static inline veci v_bits(vec a) { return (veci)a; }
static inline vec  v_of_bits(veci a) { return (vec)a; }
/* Below 2^23 in magnitude, adding and taking away that number rounds; above, and for NaN, the value is its own. */
static inline vec v_nearest(vec a)
{
    const veci sign = (veci)a & (veci)v_set(-0.0f);
    const vec  magic = (vec)((veci)v_set(8388608.0f) | sign);
    const vec  size = (vec)((veci)a & ~(veci)v_set(-0.0f));
    vec        r = a + magic;
    __asm__("" : "+m"(r));               /* keeps the two steps apart under any optimisation */
    r = (vec)((veci)(r - magic) | sign);
    return v_select(size < v_set(8388608.0f), r, a);
}
static inline vec v_floor(vec a)
{
    const vec r = v_nearest(a);
    return v_select(r > a, r - v_set(1.0f), r);
}
static inline vec v_ceil(vec a)
{
    const vec r = v_nearest(a);
    return (vec)((veci)v_select(r < a, r + v_set(1.0f), r) | ((veci)a & (veci)v_set(-0.0f)));
}

static inline veci vi_set(int32_t x) { return (veci){ x, x, x, x }; }
static inline veci vi_load(const int32_t *p)
{
    veci v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void vi_store(int32_t *p, veci v) { memcpy(p, &v, sizeof v); }
typedef uint32_t vec_unsigned __attribute__((vector_size(16)));
static inline veci vi_add(veci a, veci b) { return (veci)((vec_unsigned)a + (vec_unsigned)b); }
static inline veci vi_sub(veci a, veci b) { return (veci)((vec_unsigned)a - (vec_unsigned)b); }
static inline veci vi_and(veci a, veci b) { return a & b; }
static inline veci vi_or(veci a, veci b) { return a | b; }
static inline veci vi_xor(veci a, veci b) { return a ^ b; }
#define vi_sll(a, n) ((veci)((vec_unsigned)(a) << (n)))
#define vi_sra(a, n) ((veci)(a) >> (n))
/* Pairs of 16-bit numbers: shifted each; multiplied, and the two products added. */
typedef int16_t vec_short __attribute__((vector_size(16)));
typedef uint16_t vec_ushort __attribute__((vector_size(16)));
#define vi_sll16(a, n) ((veci)((vec_ushort)(a) << (n)))
#define vi_sra16(a, n) ((veci)((vec_short)(a) >> (n)))
static inline veci vi_madd16(veci a, veci b)
{
    const veci first = vi_sra(vi_sll(a, 16), 16) * vi_sra(vi_sll(b, 16), 16);
    return vi_add(first, vi_sra(a, 16) * vi_sra(b, 16));
}
/* As the x86 instructions do: what does not fit, and NaN, is INT32_MIN. */
static inline int32_t to_int_cut(float x) { return x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : INT32_MIN; }
static inline veci v_to_int_cut(vec a)
{
    return (veci){ to_int_cut(a[0]), to_int_cut(a[1]), to_int_cut(a[2]), to_int_cut(a[3]) };
}
static inline veci v_to_int(vec a) { return v_to_int_cut(v_nearest(a)); }
static inline vec  vi_to_f32(veci a) { return (vec){ (float)a[0], (float)a[1], (float)a[2], (float)a[3] }; }

static inline vecm v_lt(vec a, vec b) { return a < b; }
static inline vecm v_le(vec a, vec b) { return a <= b; }
static inline vecm v_eq(vec a, vec b) { return a == b; }
static inline vecm v_is_nan(vec a) { return a != a; }
static inline vecm vi_eq(veci a, veci b) { return a == b; }
static inline vecm vi_lt(veci a, veci b) { return a < b; }
static inline vecm m_and(vecm a, vecm b) { return a & b; }
static inline vecm m_or(vecm a, vecm b) { return a | b; }
static inline vecm m_not(vecm a) { return ~a; }
static inline bool m_any(vecm a) { return a[0] || a[1] || a[2] || a[3]; }
static inline vec  v_blend(vecm m, vec a, vec b) { return v_select(m, a, b); }
static inline veci vi_blend(vecm m, veci a, veci b) { return (a & m) | (b & ~m); }
static inline veci vi_of_mask(vecm m) { return m & vi_set(1); }

/* All bits of the first n lanes. */
static inline vecm m_first(int n) { return (veci){ 0, 1, 2, 3 } < vi_set(n); }
/* Pairs of elements, each the other way round. */
static inline vec  v_swap(vec a) { return (vec){ a[1], a[0], a[3], a[2] }; }
/* The elements at even places of a, then of b. */
static inline vec  v_even(vec a, vec b) { return (vec){ a[0], a[2], b[0], b[2] }; }
/* Those at odd places. */
static inline vec  v_odd(vec a, vec b) { return (vec){ a[1], a[3], b[1], b[3] }; }
/* The elements of a and of b in turns: those of their first halves; of their second halves. */
static inline vec  v_zip_low(vec a, vec b) { return (vec){ a[0], b[0], a[1], b[1] }; }
static inline vec  v_zip_high(vec a, vec b) { return (vec){ a[2], b[2], a[3], b[3] }; }
/* As the wider levels have them: of four numbers. */
static inline vec  v_load_parts(const float *p, int64_t step)
{
    (void)step;
    return v_load(p);
}
static inline vec  v_pair_low(vec a, vec b) { return v_zip_low(a, b); }
static inline vec  v_pair_high(vec a, vec b) { return v_zip_high(a, b); }
static inline vec  v_two_low(vec a, vec b) { return (vec){ a[0], a[1], b[0], b[1] }; }
static inline vec  v_two_high(vec a, vec b) { return (vec){ a[2], a[3], b[2], b[3] }; }
/* VEC_LANES / 2 times f64, from and to f32. */
typedef double vecd __attribute__((vector_size(16)));
static inline vecd vd_load(const float *p) { return (vecd){ (double)p[0], (double)p[1] }; }
static inline vecd vd_fma(vecd a, vecd b, vecd c) { return a * b + c; }
static inline void vd_store(float *p, vecd v)
{
    p[0] = (float)v[0];
    p[1] = (float)v[1];
}
/* Entry i of a table. */
static inline vec  v_lookup(const float *table, veci i)
{
    return (vec){ table[i[0]], table[i[1]], table[i[2]], table[i[3]] };
}
/* x[at[k]] in lane k. */
static inline vec  v_gather(const float *x, const int32_t *at) { return v_lookup(x, vi_load(at)); }

static inline float v_sum(vec a) { return (a[0] + a[2]) + (a[1] + a[3]); }
static inline float v_most(vec a)
{
    const float x = a[0] > a[1] ? a[0] : a[1], y = a[2] > a[3] ? a[2] : a[3];
    return x > y ? x : y;
}
static inline float v_least(vec a)
{
    const float x = a[0] < a[1] ? a[0] : a[1], y = a[2] < a[3] ? a[2] : a[3];
    return x < y ? x : y;
}

static inline vec v_load_f16(const uint16_t *p)
{
    return (vec){ dtype_f16_to_f32(p[0]), dtype_f16_to_f32(p[1]), dtype_f16_to_f32(p[2]), dtype_f16_to_f32(p[3]) };
}
static inline void v_store_f16(uint16_t *p, vec v)
{
    for (int i = 0; i < 4; i++) p[i] = dtype_f16_of_f64((double)v[i]);
}
static inline veci vi_load_u16(const uint16_t *p) { return (veci){ p[0], p[1], p[2], p[3] }; }
/* Of 16-bit or 8-bit numbers: those of one vector or the other that are larger or smaller. */
#define VI_CHOOSE(name, type, is)                              \
    static inline veci name(veci a, veci b)                    \
    {                                                          \
        typedef type parts __attribute__((vector_size(16)));   \
        const veci is_b = (veci)((parts)b is (parts)a);        \
        return (a & ~is_b) | (b & is_b);                       \
    }
VI_CHOOSE(vi16_max, int16_t, >)
VI_CHOOSE(vu16_max, uint16_t, >)
VI_CHOOSE(vu16_min, uint16_t, <)
VI_CHOOSE(vi8_max, int8_t, >)
VI_CHOOSE(vu8_max, uint8_t, >)
#undef VI_CHOOSE
static inline veci vi_load_i8(const int8_t *p) { return (veci){ p[0], p[1], p[2], p[3] }; }
static inline veci vi_load_u8(const uint8_t *p) { return (veci){ p[0], p[1], p[2], p[3] }; }
/* The low bits of each lane. */
static inline void vi_store_8(uint8_t *p, veci v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)v[i];
}
static inline void vi_store_16(uint16_t *p, veci v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint16_t)v[i];
}

#endif
