/* SPDX-License-Identifier: Apache-2.0 */
/* level_neon_i8mm.c - the micro-kernels of integers by sudot. CMake compiles this file for CPUs that have the
 * instruction. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "cpu/simd_neon.h"

#include "cpu/gemm_tile.h"
#include "cpu/unroll.h"

#include "cpu/simd_math.inc.h"
#include "cpu/gemm_pack.inc.h"

#define UNIT u8_sudot
#define UNIT_TERMS 4
#define UNIT_ROWS_1 14
#define UNIT_ROWS_2 14
#define UNIT_ROWS_3 9
#define UNIT_ROWS_4 6
#define UNIT_A uint8x8_t
#define UNIT_B int8x16_t
#define UNIT_SPLAT(p) vreinterpret_u8_f32(word_lane(p))
#define UNIT_LOAD(p) vreinterpretq_s8_f32(v_load(p))
#define UNIT_MUL(s, a, b) vsudotq_lane_s32(s, b, a, 0)
#define UNIT_IS_UNROLLED 1
#define UNIT_IS_INTEGER 1
#define UNIT_IS_NARROW 0
#include "cpu/gemm_unit.inc.h"

const gemm_tile_set *const level_neon_i8mm = &unit_set_u8_sudot;
