/* SPDX-License-Identifier: Apache-2.0 */
/* level_avx2.c - all loops of the level "avx2". CMake compiles this file with the flags of the level. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_avx2.h"

#include "cpu/level.inc.h"
