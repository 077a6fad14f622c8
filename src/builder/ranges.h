/* SPDX-License-Identifier: Apache-2.0 */
/* ranges.h - chooses the largest magnitude that 8 bits represent: a histogram of a tensor's magnitudes, and the
 * methods. */
#ifndef BUILD_RANGES_H
#define BUILD_RANGES_H

#include "base/arena.h"
#include "sinter/calibrate.h"

enum { RANGE_BINS = 2048, RANGE_LEVELS = 128 };

/* Of one tensor over all batches. `most` and `has_negative` are known before the first number is counted. */
typedef struct histogram {
    double    most;             /* the largest magnitude, where the last bin ends */
    bool      has_negative, is_odd; /* is_odd: something was not finite */
    uint64_t  zeros;            /* numbers that are exactly 0: in no bin */
    uint64_t *bin;              /* [RANGE_BINS] */
} histogram;

/* Looks at the largest magnitude of `count` numbers. */
void   histogram_reach(histogram *h, const float *at, int64_t count);
/* Counts them. */
void   histogram_count(histogram *h, const float *at, int64_t count);
/* The range, or 0 where there is none: nothing but zeros, or numbers that are not finite. Needs no bins for MINMAX.
 * `work` is memory for the prefix sums, rewound by the function. */
double histogram_range(const histogram *h, const sinter_calibrate_options *how, arena *work);

#endif
