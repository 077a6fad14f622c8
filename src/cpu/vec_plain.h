/* SPDX-License-Identifier: Apache-2.0 */
/* vec_plain.h - the small vector vocabulary of the kernel templates, on the compiler's own four-lane vectors.
 *
 * What every CPU has: SSE2 on any x86-64, NEON on any 64-bit Arm, scalar code elsewhere. A multiply-add is written as
 * two operations; a compiler that may contract them does. */
#ifndef CPU_VEC_PLAIN_H
#define CPU_VEC_PLAIN_H

#include <stdint.h>
#include <string.h>

typedef float vec __attribute__((vector_size(16)));
typedef int32_t vec_bits __attribute__((vector_size(16)));
#define VEC_LANES 4
#define VEC_REGISTERS 16
#define VEC_SUFFIX(name) name##_plain
#define VEC_IS_PLAIN

static inline void v_leave(void) { }
static inline vec v_zero(void)
{
    return (vec){ 0, 0, 0, 0 };
}
static inline vec v_set(float x)
{
    return (vec){ x, x, x, x };
}
static inline vec v_load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void v_store(float *p, vec v)
{
    memcpy(p, &v, sizeof v);
}
/* The first n lanes (0..VEC_LANES); the others load as zero and are not stored. No byte beyond them is touched. */
static inline vec v_load_n(const float *p, int n)
{
    return (vec){ n > 0 ? p[0] : 0, n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, n > 3 ? p[3] : 0 };
}
static inline void v_store_n(float *p, vec v, int n)
{
    for (int i = 0; i < n; i++) p[i] = v[i];
}
static inline vec v_add(vec a, vec b)
{
    return a + b;
}
static inline vec v_mul(vec a, vec b)
{
    return a * b;
}
static inline vec v_fma(vec a, vec b, vec c)
{
    return a * b + c;
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
static inline vec v_select(vec_bits m, vec a, vec b)
{
    return (vec)(((vec_bits)a & m) | ((vec_bits)b & ~m));
}
/* Where either operand is a NaN the result is `b`: bounds go first, so that a NaN in the data stays one. */
static inline vec v_max(vec a, vec b)
{
    return v_select(a > b, a, b);
}
static inline vec v_min(vec a, vec b)
{
    return v_select(a < b, a, b);
}

#endif
