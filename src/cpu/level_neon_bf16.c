/* SPDX-License-Identifier: Apache-2.0 */
/* level_neon_bf16.c - the micro-kernels by bfdot. CMake compiles this file for CPUs that have the instruction. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "cpu/simd_neon.h"

#include "cpu/gemm_tile.h"
#include "cpu/unroll.h"

#include "cpu/simd_math.inc.h"
#include "cpu/gemm_pack.inc.h"

#define UNIT bf16_dot
#define UNIT_TERMS 2
#define UNIT_ROWS_1 14
#define UNIT_ROWS_2 14
#define UNIT_ROWS_3 9
#define UNIT_ROWS_4 6
#define UNIT_A bfloat16x4_t
#define UNIT_B bfloat16x8_t
#define UNIT_SPLAT(p) vreinterpret_bf16_f32(word_lane(p))
#define UNIT_LOAD(p) vreinterpretq_bf16_f32(v_load(p))
#define UNIT_MUL(s, a, b) vbfdotq_lane_f32(s, b, a, 0)
#define UNIT_IS_UNROLLED 1
#define UNIT_IS_INTEGER 0
#define UNIT_IS_NARROW 1
#define UNIT_STORE_NARROW(p, v) v_store_bf16(p, v)
#include "cpu/gemm_unit.inc.h"

const gemm_tile_set *const level_neon_bf16 = &unit_set_bf16_dot;
