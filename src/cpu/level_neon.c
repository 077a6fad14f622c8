/* SPDX-License-Identifier: Apache-2.0 */
/* level_neon.c - all loops of the level "neon". CMake compiles this file where every CPU of the architecture has it. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_neon.h"

#include "cpu/gemm_wide_neon.h"

#include "cpu/level.inc.h"
