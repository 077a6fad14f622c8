/* SPDX-License-Identifier: Apache-2.0 */
/* vec_avx2.h - the small vector vocabulary of the kernel templates, on 256-bit registers with FMA.
 *
 * Included only by files compiled with the AVX2 flags. Every function is static: nothing compiled for this level may be
 * shared with code that runs on a lesser CPU. */
#ifndef CPU_VEC_AVX2_H
#define CPU_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>

typedef __m256 vec;
#define VEC_LANES 8
#define VEC_REGISTERS 16
#define VEC_SUFFIX(name) name##_avx2

static inline __m256i v_mask(int n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane);
}
/* Before code of another level runs: what is left in the upper halves of registers makes its instructions wait.
 * Compilers do this at the end of functions that take no vectors. */
static inline void v_leave(void)
{
    _mm256_zeroupper();
}
static inline vec v_zero(void)
{
    return _mm256_setzero_ps();
}
static inline vec v_set(float x)
{
    return _mm256_set1_ps(x);
}
static inline vec v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static inline void v_store(float *p, vec v)
{
    _mm256_storeu_ps(p, v);
}
/* The first n lanes (0..VEC_LANES); the others load as zero and are not stored. No byte beyond them is touched. A store
 * with a mask takes some CPUs ten times as long as one without. */
static inline vec v_load_n(const float *p, int n)
{
    return n == VEC_LANES ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, v_mask(n));
}
static inline void v_store_n(float *p, vec v, int n)
{
    if (n == VEC_LANES) _mm256_storeu_ps(p, v);
    else _mm256_maskstore_ps(p, v_mask(n), v);
}
static inline vec v_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}
static inline vec v_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}
static inline vec v_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
/* c + a * b in the register of c. Compilers may put v_fma's result where a or b was; where sums fill the registers they
 * then move sums through memory. */
static inline vec v_fma_into(vec a, vec b, vec c)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
}
/* The same with a vector in memory, which takes no register. */
static inline vec v_fma_from(vec a, const float *b, vec c)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "m"(*(const __m256_u *)b));
    return c;
}
/* Where either operand is a NaN the result is `b`: bounds go first, so that a NaN in the data stays one. */
static inline vec v_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}
static inline vec v_min(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}

#endif
