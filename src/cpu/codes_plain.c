/* SPDX-License-Identifier: Apache-2.0 */
/* codes_plain.c - products with weights in codes for this instruction set: the text is in codes.inc.h. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_plain.h"

/* Sums of so many rows and vectors fit the registers. */
enum { ROWS_MOST = 4, VECTORS_ONCE = 2 };
#define ROWS_EACH(F, name, kind) F(name, 1, kind) F(name, 2, kind) F(name, 3, kind) F(name, 4, kind)

#include "cpu/codes.inc.h"
