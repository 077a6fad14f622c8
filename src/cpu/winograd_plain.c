/* SPDX-License-Identifier: Apache-2.0 */
/* winograd_plain.c - the transforms of the level "plain": the common text over this level's vectors. */
#include "cpu/winograd.h"
#include "cpu/simd_plain.h"

#include "cpu/winograd.inc.h"
