/* SPDX-License-Identifier: Apache-2.0 */
/* integer_avx512.c - the loops of integer products for this instruction set: the text is in integer.inc.h. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_avx512.h"

enum { TILE_ROWS = 8 };
/* Sums of the products of the two halves of each lane. */
static inline veci vi_madd_16(veci a, veci b)
{
    return _mm512_madd_epi16(a, b);
}

#include "cpu/integer.inc.h"
