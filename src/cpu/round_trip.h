/* SPDX-License-Identifier: Apache-2.0 */
/* round_trip.h - quantize and dequantize behind each other, as one function of an f32.
 *
 * Q/DQ models round nearly every value to 8 bits and back. Where the integer has no other reader, all of it can be done
 * in f32, for every step is exact there:
 *
 *   dequantize(clip(quantize(x, s, z), a, b), t, z)  =  nearest(min(max(x, low), high) / s) * t
 *
 * low and high are s times the least and the largest result less z, rounded: divided by s they are within half a unit
 * of an integer again. */
#ifndef CPU_ROUND_TRIP_H
#define CPU_ROUND_TRIP_H

#include "ops/expr.h"

typedef struct round_trip {
    float scale, inverse; /* s and 1 / s; an inverse of 0: divide */
    float low, high;
    float back; /* t */
} round_trip;

/* Is instruction `end` a dequantize that can be computed with what is before it? from: the instruction whose value is
 * x. uses: how many readers each value has. No instruction between `from` and `end` is needed then. */
bool round_trip_find(const expr *x, const uint32_t *uses, uint32_t end, round_trip *out, uint16_t *from);

#endif
