/* SPDX-License-Identifier: Apache-2.0 */
/* codes_avx512.c - products with weights in codes for this instruction set: the text is in codes.inc.h. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_avx512.h"

/* Sums of so many rows and vectors fit the registers. */
enum { ROWS_MOST = 6, VECTORS_ONCE = 4 };
#define ROWS_EACH(F, name, kind)                                                                                       \
    F(name, 1, kind) F(name, 2, kind) F(name, 3, kind) F(name, 4, kind) F(name, 5, kind) F(name, 6, kind)

#include "cpu/codes.inc.h"
