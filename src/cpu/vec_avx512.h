/* SPDX-License-Identifier: Apache-2.0 */
/* vec_avx512.h - the small vector vocabulary of the kernel templates, on 512-bit registers.
 *
 * Included only by files compiled with the AVX-512 flags. Every function is static: nothing compiled for this level may
 * be shared with code that runs on a lesser CPU. */
#ifndef CPU_VEC_AVX512_H
#define CPU_VEC_AVX512_H

#include <immintrin.h>
#include <stdint.h>

typedef __m512 vec;
#define VEC_LANES 16
#define VEC_REGISTERS 32
#define VEC_SUFFIX(name) name##_avx512

/* Before code of another level runs: what is left in the upper halves of registers makes its instructions wait.
 * Compilers do this at the end of functions that take no vectors. */
static inline void v_leave(void)
{
    _mm256_zeroupper();
}
static inline vec v_zero(void)
{
    return _mm512_setzero_ps();
}
static inline vec v_set(float x)
{
    return _mm512_set1_ps(x);
}
static inline vec v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static inline void v_store(float *p, vec v)
{
    _mm512_storeu_ps(p, v);
}
/* The first n lanes (0..VEC_LANES); the others load as zero and are not stored. No byte beyond them is touched. */
static inline vec v_load_n(const float *p, int n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}
static inline void v_store_n(float *p, vec v, int n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), v);
}
static inline vec v_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}
static inline vec v_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}
static inline vec v_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}
/* As vec_avx2.h has it. */
static inline vec v_fma_into(vec a, vec b, vec c)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
static inline vec v_fma_from(vec a, const float *b, vec c)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "m"(*(const __m512_u *)b));
    return c;
}
/* Where either operand is a NaN the result is `b`: bounds go first, so that a NaN in the data stays one. */
static inline vec v_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}
static inline vec v_min(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}

/* Half of a vector: on some CPUs it takes half the time. */
#define VEC_HALF
typedef __m256 hvec;
static inline hvec h_zero(void)
{
    return _mm256_setzero_ps();
}
static inline hvec h_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline hvec h_of(vec a)
{
    return _mm512_castps512_ps256(a);
}
static inline vec v_of_half(hvec a)
{
    return _mm512_zextps256_ps512(a);
}
static inline hvec h_fma(hvec a, hvec b, hvec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

#endif
