/* SPDX-License-Identifier: Apache-2.0 */
/* ranges.c - the methods of calibration (sinter/calibrate.h says what each does).
 *
 * Counts are whole numbers and the bins are fixed before the first number is counted, so the order of batches does not
 * matter. */
#include "builder/ranges.h"

#include <math.h>

/* Magnitudes below this are 0: their scale would not be a normal f32. */
static const double least_magnitude = 1e-30;

void histogram_reach(histogram *h, const float *at, int64_t count)
{
    float most = 0;
    for (int64_t i = 0; i < count; i++) {
        const float x = fabsf(at[i]);
        h->is_odd = h->is_odd || !isfinite(x);
        h->has_negative = h->has_negative || at[i] < 0;
        if (x > most) most = x;
    }
    if ((double)most > h->most) h->most = (double)most;
}

void histogram_count(histogram *h, const float *at, int64_t count)
{
    if (h->is_odd || h->most < least_magnitude) return;
    const double scale = RANGE_BINS / h->most;
    for (int64_t i = 0; i < count; i++) {
        const double x = fabs((double)at[i]) * scale;
        if (x == 0) h->zeros++;
        else h->bin[x < RANGE_BINS ? (uint32_t)x : RANGE_BINS - 1]++;
    }
}

/* ---- least squared error ---- */

/* The range with the least error: numbers that are cut off against larger steps. The budget measures the same error.
 * Rare large numbers that matter stay inside the range. Zeros are exact with any range and do not count. */
static double least_error(const histogram *h)
{
    enum { STEPS = 256 };
    const double width = h->most / RANGE_BINS, levels = h->has_negative ? 127 : 255;
    double best = 0, least = INFINITY;
    for (uint32_t k = 1; k <= STEPS; k++) {
        const double range = h->most * k / STEPS, step = range / levels;
        double error = 0;
        for (uint32_t i = 0; i < RANGE_BINS; i++) {
            const double x = (i + 0.5) * width;
            if (h->bin[i]) error += (double)h->bin[i] * (x <= range ? step * step / 12 : (x - range) * (x - range));
        }
        if (error >= least) continue;
        least = error;
        best = range;
    }
    return best;
}

/* ---- a part of all numbers ---- */

static double reached(const histogram *h, double part, double cutoff)
{
    uint32_t end = (uint32_t)(cutoff * RANGE_BINS);
    if (end < 1) end = 1;
    uint64_t total = h->zeros, seen = h->zeros;
    for (uint32_t i = 0; i < end; i++) total += h->bin[i];
    uint32_t last = 0;
    for (uint32_t i = 0; i < end; i++) {
        seen += h->bin[i];
        last = i;
        if ((double)seen >= part * (double)total) break;
    }
    return h->most * (last + 1) / RANGE_BINS;
}

/* ---- divergence ---- */

static double x_log_x(uint64_t x)
{
    return x ? (double)x * log((double)x) : 0;
}

/* Of the first i bins: how much they hold, how many are not empty, and the sum of x log x. */
typedef struct prefix {
    uint64_t sum;
    uint32_t used;
    double logs;
} prefix;

/* KL(P || Q) of the first i bins, with p = P's counts and q = s / n of a level that holds s in n bins that are not
 * empty: (sum p log p - sum p log q) / total - log(total) + log(inside). The last sum has one term a level. */
static double divergence(const uint64_t *count, const prefix *to, uint32_t i)
{
    const uint64_t total = to[RANGE_BINS].sum, inside = to[i].sum, outside = total - inside;
    if (!inside || (outside && !count[i - 1])) return INFINITY;
    const double own = to[i - 1].logs + x_log_x(count[i - 1] + outside);
    double cross = 0;
    for (uint32_t level = 0, from = 0; level < RANGE_LEVELS; level++) {
        const uint32_t end = ((level + 1) * i + RANGE_LEVELS - 1) / RANGE_LEVELS;
        const uint64_t held = to[end].sum - to[from].sum;
        const uint32_t used = to[end].used - to[from].used;
        if (used) cross += (double)(held + (end == i ? outside : 0)) * log((double)held / used);
        from = end;
    }
    return (own - cross) / (double)total - log((double)total) + log((double)inside);
}

static double least_divergence(const histogram *h, bool is_second, arena *work)
{
    uint64_t *count = ARENA_NEW(work, uint64_t, RANGE_BINS);
    prefix *to = ARENA_NEW(work, prefix, RANGE_BINS + 1);
    if (!count || !to) return 0;
    memcpy(count, h->bin, RANGE_BINS * sizeof *count);
    count[0] = is_second ? count[1] : count[0] + h->zeros;
    for (uint32_t i = 0; i < RANGE_BINS; i++)
        to[i + 1] = (prefix){ to[i].sum + count[i], to[i].used + (count[i] > 0), to[i].logs + x_log_x(count[i]) };
    double least = INFINITY;
    uint32_t best = RANGE_BINS;
    for (uint32_t i = RANGE_LEVELS; i <= RANGE_BINS; i++) {
        const double d = divergence(count, to, i);
        if (d > least || (d == least && !is_second)) continue;
        least = d;
        best = i;
    }
    return h->most / RANGE_BINS * (is_second ? best : best + 0.5);
}

double histogram_range(const histogram *h, const sinter_calibrate_options *how, arena *work)
{
    if (h->is_odd || h->most < least_magnitude) return 0;
    const arena_mark mark = arena_save(work);
    double range = h->most;
    switch (how->method) {
    case SINTER_CALIBRATION_MINMAX: break;
    case SINTER_CALIBRATION_PERCENTILE: range = reached(h, how->percentile / 100, 1); break;
    case SINTER_CALIBRATION_LEGACY: range = reached(h, how->quantile, how->cutoff); break;
    case SINTER_CALIBRATION_ERROR: range = least_error(h); break;
    case SINTER_CALIBRATION_ENTROPY:
    case SINTER_CALIBRATION_ENTROPY_2:
        range = least_divergence(h, how->method == SINTER_CALIBRATION_ENTROPY_2, work);
        break;
    }
    arena_rewind(work, mark);
    return range;
}
