/* SPDX-License-Identifier: Apache-2.0 */
/* integer_plain.c - the loops of integer products for this instruction set: the text is in integer.inc.h. */
#include <math.h>
#include <stdbool.h>

#include "cpu/simd_plain.h"

#include <string.h>

enum { TILE_ROWS = 4 };
/* Sums of the products of the two halves of each lane. */
static inline veci vi_madd_16(veci a, veci b)
{
    veci r;
    for (int i = 0; i < VEC_LANES; i++) {
        int16_t x[2], y[2];
        const int32_t p = a[i], q = b[i];
        memcpy(x, &p, sizeof x);
        memcpy(y, &q, sizeof y);
        r[i] = x[0] * y[0] + x[1] * y[1];
    }
    return r;
}

#include "cpu/integer.inc.h"
