/* SPDX-License-Identifier: Apache-2.0 */
/* level_neon_dot.c - the micro-kernels of integers by sdot. CMake compiles this file for CPUs that have the
 * instruction.
 *
 * sdot multiplies signed numbers, and A has none: 128 is taken off each of its terms. What that takes off a sum is -128
 * times the column's sum of B. Each vector of B is multiplied by -128 once for all rows, and the sums end with it. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "cpu/simd_neon.h"

#include "cpu/gemm_tile.h"
#include "cpu/unroll.h"

#include "cpu/simd_math.inc.h"
#include "cpu/gemm_pack.inc.h"

static inline int8x8_t signed_word(const char *p)
{
    return veor_s8(vreinterpret_s8_f32(word_lane(p)), vdup_n_s8(INT8_MIN));
}

#define UNIT u8_dot
#define UNIT_TERMS 4
#define UNIT_ROWS_1 14
#define UNIT_ROWS_2 12
#define UNIT_ROWS_3 7
#define UNIT_ROWS_4 5
#define UNIT_A int8x8_t
#define UNIT_B int8x16_t
#define UNIT_SPLAT(p) signed_word(p)
#define UNIT_LOAD(p) vreinterpretq_s8_f32(v_load(p))
#define UNIT_MUL(s, a, b) vdotq_lane_s32(s, b, a, 0)
#define UNIT_COLUMN(s, b) vdotq_s32(s, b, vdupq_n_s8(INT8_MIN))
#define UNIT_IS_UNROLLED 1
#define UNIT_IS_INTEGER 1
#define UNIT_IS_NARROW 0
#include "cpu/gemm_unit.inc.h"

const gemm_tile_set *const level_neon_dot = &unit_set_u8_dot;
