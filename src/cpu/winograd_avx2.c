/* SPDX-License-Identifier: Apache-2.0 */
/* winograd_avx2.c - the transforms of the level "avx2": the common text over this level's vectors. */
#include "cpu/winograd.h"
#include "cpu/simd_avx2.h"

#include "cpu/winograd.inc.h"
