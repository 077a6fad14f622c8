/* SPDX-License-Identifier: Apache-2.0 */
/* level_plain.c - all loops of the level that every CPU of the architecture runs. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_plain.h"

#include "cpu/level.inc.h"
