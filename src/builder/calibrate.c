/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - how far 8-bit numbers are to reach: the model runs in f32 with the data of its products as outputs.
 *
 * A histogram of magnitudes is kept of each, over all samples; of the ranges that it offers, the one with the smallest
 * squared error is taken: what is cut off against steps that grow with the range. That is the error which the budget
 * measures, it has no parameter, it keeps rare large numbers that carry much (a percentile would not), and where
 * numbers end sharply it is their maximum. */
#include "builder/trial.h"

#include <math.h>
#include <string.h>

enum { BINS = 2048, STEPS = 256 };
static const size_t taps_size_max = (size_t)1 << 29;

typedef struct histogram {
    double most, least; /* the bins' end; the lowest number seen */
    uint32_t *bin;      /* [BINS]: magnitudes above 0 */
    bool is_odd;        /* something was not finite */
} histogram;

typedef struct calibration {
    env *e;
    arena a;
    const build_taps *taps;
    histogram *of; /* by product */
} calibration;

/* How many products there are is known once the first engine has been built. */
static sinter_status begin(calibration *c)
{
    c->of = ARENA_NEW(&c->a, histogram, c->taps->count);
    for (uint32_t i = 0; c->of && i < c->taps->count; i++) {
        c->of[i].bin = ARENA_NEW(&c->a, uint32_t, BINS);
        if (!c->of[i].bin) return FAIL_MEMORY(c->e, "calibrating");
    }
    return c->of ? SINTER_OK : FAIL_MEMORY(c->e, "calibrating");
}

static void reach(histogram *h, double most)
{
    if (h->most <= 0) h->most = most;
    while (h->most < most) {
        for (uint32_t i = 0; i < BINS / 2; i++) h->bin[i] = h->bin[2 * i] + h->bin[2 * i + 1];
        memset(h->bin + BINS / 2, 0, BINS / 2 * sizeof *h->bin);
        h->most *= 2;
    }
}

static sinter_status see(void *user, uint32_t sample, uint32_t output, uint32_t comes_last, bool is_compared,
                         const view *v)
{
    calibration *c = user;
    (void)sample, (void)output, (void)is_compared;
    if (!c->of) TRY(begin(c));
    if (comes_last >= c->taps->end - c->taps->first) return SINTER_OK;
    histogram *h = &c->of[c->taps->end - 1 - comes_last];
    const float *at = v->data;
    const int64_t elements = view_count(v);
    float most = 0, least = 0;
    for (int64_t i = 0; i < elements; i++) {
        const float x = fabsf(at[i]);
        if (!isfinite(x)) h->is_odd = true;
        else if (x > most) most = x;
        if (at[i] < least) least = at[i];
    }
    if ((double)least < h->least) h->least = (double)least;
    if (most < 1e-30f || h->is_odd) return SINTER_OK;
    reach(h, (double)most);
    const double scale = BINS / h->most;
    for (int64_t i = 0; i < elements; i++) {
        const double x = fabs((double)at[i]) * scale;
        const uint32_t bin = x < BINS ? (uint32_t)x : BINS - 1;
        if (x > 0 && h->bin[bin] < UINT32_MAX) h->bin[bin]++;
    }
    return SINTER_OK;
}

/* Zeros are exact with any range and do not count. */
static double best_range(const histogram *h)
{
    if (h->is_odd || h->most <= 0) return 0;
    const double width = h->most / BINS, levels = h->least < 0 ? 127 : 255;
    double best = 0, least = INFINITY;
    for (uint32_t k = 1; k <= STEPS; k++) {
        const double range = h->most * k / STEPS, step = range / levels;
        double error = 0;
        for (uint32_t i = 0; i < BINS; i++) {
            const double x = (i + 0.5) * width;
            if (h->bin[i]) error += h->bin[i] * (x <= range ? step * step / 12 : (x - range) * (x - range));
        }
        if (error >= least) continue;
        least = error;
        best = range;
    }
    return best;
}

sinter_status build_calibrate(env *e, const build_model *m, const sinter_build_options *o, build_lowering *l)
{
    trial t;
    sinter_status s = trial_init(&t, e, m, o, UINT32_MAX);
    build_taps taps = { .size_max = taps_size_max };
    calibration c = { .e = e, .taps = &taps };
    arena_init(&c.a, e);
    l->taps = &taps;
    while (s == SINTER_OK && (!taps.count || taps.end < taps.count)) {
        taps.first = taps.end;
        s = trial_run(&t, 0, l, see, &c);
        if (taps.end == taps.first) break;
    }
    l->taps = NULL;
    if (s == SINTER_OK && taps.count) {
        l->range = mem_zalloc(e, taps.count * sizeof *l->range, sizeof *l->range);
        l->range_count = taps.count;
        if (!l->range) s = FAIL_MEMORY(e, "calibrating");
    }
    for (uint32_t i = 0; s == SINTER_OK && i < taps.count; i++) {
        l->range[i] = (float)best_range(&c.of[i]);
        env_log(e, LOG_OPT, "product %u: data reaches %.4g, 8 bits %.4g", i, c.of[i].most, (double)l->range[i]);
    }
    arena_deinit(&c.a);
    trial_deinit(&t);
    return NOTE(e, s, "looking at the ranges of what 8 bits are to hold");
}
