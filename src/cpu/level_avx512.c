/* SPDX-License-Identifier: Apache-2.0 */
/* level_avx512.c - all loops of the level "avx512". CMake compiles this file with the flags of the level. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_avx512.h"

#include "cpu/level.inc.h"
