/* SPDX-License-Identifier: Apache-2.0 */
/* winograd_avx512.c - the transforms of the level "avx512": the common text over this level's vectors. */
#include "cpu/winograd.h"
#include "cpu/simd_avx512.h"

#include "cpu/winograd.inc.h"
