/* SPDX-License-Identifier: Apache-2.0 */
/* level_avx512_bf16.c - the micro-kernels by vdpbf16ps. CMake compiles this file for CPUs that have the instruction. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "cpu/simd_avx512.h"

#include "cpu/gemm_tile.h"
#include "cpu/unroll.h"

#include "cpu/simd_math.inc.h"
#include "cpu/gemm_pack.inc.h"

static inline void bf16_store(uint16_t *p, vec v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, (__m256i)_mm512_cvtneps_pbh(v));
}

/* The sum keeps its register, as v_fma_into's does. */
static inline vec bf16_dot_into(vec s, veci a, veci b)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(s) : "v"(a), "v"(b));
    return s;
}

#define UNIT bf16_dot
#define UNIT_TERMS 2
#define UNIT_ROWS_1 14
#define UNIT_ROWS_2 14
#define UNIT_ROWS_3 9
#define UNIT_ROWS_4 6
#define UNIT_A veci
#define UNIT_B veci
#define UNIT_SPLAT(p) vi_set(word_of(p))
#define UNIT_LOAD(p) v_bits(v_load(p))
#define UNIT_MUL(s, a, b) bf16_dot_into(s, a, b)
#define UNIT_IS_UNROLLED 1
#define UNIT_IS_INTEGER 0
#define UNIT_IS_NARROW 1
#define UNIT_STORE_NARROW(p, v) bf16_store(p, v)
#include "cpu/gemm_unit.inc.h"

const gemm_tile_set *const level_avx512_bf16 = &unit_set_bf16_dot;
