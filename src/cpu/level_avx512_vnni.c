/* SPDX-License-Identifier: Apache-2.0 */
/* level_avx512_vnni.c - the micro-kernels by vpdpbusd on 512 bits. CMake compiles this file for CPUs that have the
 * instruction. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "cpu/simd_avx512.h"

#include "cpu/gemm_tile.h"
#include "cpu/unroll.h"

#include "cpu/simd_math.inc.h"
#include "cpu/gemm_pack.inc.h"

#define UNIT u8_dot
#define UNIT_TERMS 4
#define UNIT_ROWS_1 14
#define UNIT_ROWS_2 14
#define UNIT_ROWS_3 9
#define UNIT_ROWS_4 6
#define UNIT_A veci
#define UNIT_B veci
#define UNIT_SPLAT(p) vi_set(word_of(p))
#define UNIT_LOAD(p) v_bits(v_load(p))
#define UNIT_MUL(s, a, b) _mm512_dpbusd_epi32(s, a, b)
#define UNIT_IS_UNROLLED 1
#define UNIT_IS_INTEGER 1
#define UNIT_IS_NARROW 0
#include "cpu/gemm_unit.inc.h"

#include "cpu/depthwise_byte_quads.inc.h"

const gemm_tile_set *const level_avx512_vnni = &unit_set_u8_dot;

#define DOT(s, bytes, digits) _mm512_dpbusd_epi32(s, bytes, digits)
#include "cpu/codes_dot.inc.h"

const codes_dot_set *const level_avx512_codes_dot = &codes_dot;
