/* SPDX-License-Identifier: Apache-2.0 */
/* time.c - the clock: how long the program of one kernel takes, and which of several is the fastest.
 *
 * A few warm-up runs, then batches of at least 200 us; the median batch counts. A kernel that takes a tenth of a second
 * is run once: what caches and clocks do does not matter then. One thread's time is what it had on a
 * processor: what other programs take does not decide. A device of its own is read by its own clock.
 *
 * Kernels that are about as fast are raced: each round times one batch of each of them, and a round that was slow for
 * all of them is scaled back. So a clock that drifts changes no order. */
#include "base/os.h"
#include "tune/bench.h"

#include <math.h>
#include <stdlib.h>

enum { BATCHES = 5, BATCHES_LONG = 3, BATCH_TRIES = 4, ROUNDS_LEAST = 7, ROUNDS_MOST = 15, ROUNDS_LONG = 3 };
static const double batch_ns = 2e5, long_ns = 1e6;
static const uint64_t wake_ns = 50000000;
/* A kernel that is this many times slower than the best one is measured once only. */
static const double hopeless = 2;

/* Bytes that are evicted in a nanosecond, about. One thread needs at least this share of the time to read them again.
 */
static const double evicted_in_ns = 16, read_share = 0.125;

/* Returns how many ns the eviction takes, about. */
static double evict_weights(const bench_lane *l)
{
    const problem *p = l->bench->p;
    double bytes = 0;
    for (uint32_t i = 0; i < p->count_in; i++) {
        if (!p->in[i].is_const || !l->base[i]) continue;
        os_memory_evict(l->base[i], l->pitch[i]);
        bytes += (double)l->pitch[i];
    }
    return bytes / evicted_in_ns;
}

/* The time of so many launches by the host's clock. */
static sinter_status launch(const bench_lane *l, uint32_t launches, double *ns)
{
    const tune_options *o = l->bench->o;
    const bool is_alone = o->threads == 1;
    const double evicting = l->bench->is_cold ? evict_weights(l) : 0;
    const uint64_t start = is_alone ? os_busy_ns() : os_time_ns();
    for (uint32_t k = 0; k < launches; k++) TRY(o->backend->program_launch(o->device, l->program, &l->run));
    const double took = (double)((is_alone ? os_busy_ns() : os_time_ns()) - start);
    /* A kernel that takes less time does not read all of its weights, but a few rows of a table. To evict the whole
     * table before each launch would take seconds. */
    if (took * o->threads < read_share * evicting) l->bench->is_cold = false;
    *ns += took;
    return SINTER_OK;
}

/* The mean of `repeats` launches. */
static sinter_status time_once(const bench_lane *l, uint32_t repeats, double *ns)
{
    const tune_bench *b = l->bench;
    const tune_options *o = b->o;
    if (o->backend->program_time) {
        program_run run = l->run;
        if (b->is_on_device) run.workspace = b->workspace.at; /* a later lane may have made it larger */
        return o->backend->program_time(o->device, l->program, &run, repeats, ns);
    }
    const uint32_t each = b->is_cold ? 1 : repeats;
    *ns = 0;
    for (uint32_t k = 0; k < repeats; k += each) TRY(launch(l, each, ns));
    *ns /= repeats;
    return SINTER_OK;
}

/* Is the device's clock lower than before? Then times measured now do not compare with earlier times. */
static bool is_slowed(const tune_options *o)
{
    device_clock now;
    tune_stats *s = o->stats;
    if (!s || !o->backend->clock || !o->backend->clock(o->device, &now)) return false;
    if (!s->clock_low || now.mhz < s->clock_low) s->clock_low = now.mhz;
    if (now.mhz > s->clock_high) s->clock_high = now.mhz;
    s->was_throttled = s->was_throttled || now.is_throttled;
    return now.mhz * 100ull < s->clock_high * (now.is_throttled ? 97ull : 90ull);
}

/* Measures a batch; repeats it a few times while the clock is low. */
static sinter_status time_batch(const bench_lane *l, uint32_t repeats, double *ns)
{
    const tune_options *o = l->bench->o;
    for (uint32_t i = 0; i < BATCH_TRIES; i++) {
        TRY(time_once(l, repeats, ns));
        if (!is_slowed(o)) return SINTER_OK;
        if (i + 1 < BATCH_TRIES) o->stats->repeated++;
    }
    o->stats->doubtful++;
    return SINTER_OK;
}

/* Keeps the device busy before the first measurement of a build. The device idled and lowered its clock while kernels
 * were compiled, and raising the clock takes longer than a kernel's warm-up. */
static sinter_status wake_up(const bench_lane *l)
{
    const tune_stats *s = l->bench->o->stats;
    const uint64_t start = os_time_ns();
    double ns = 0;
    while (s && !s->measured && os_time_ns() - start < wake_ns)
        TRY(time_once(l, ns > 0 && ns < chain_ns ? (uint32_t)(chain_ns / (ns + 1)) + 1 : 1, &ns));
    return SINTER_OK;
}

/* A device that was idle runs slowly at first: batches until two in a row agree within 2 %, a few at most. */
static sinter_status warm_up(const bench_lane *l, double limit_ns, double *once)
{
    const bool has_clock = l->bench->o->backend->program_time != NULL;
    double before = 0;
    if (has_clock) TRY(wake_up(l));
    TRY(time_once(l, 1, once));
    if (*once >= TUNE_HUGE_NS) return SINTER_OK;
    TRY(time_once(l, has_clock ? 2 : 1, once));
    for (uint32_t i = 0; has_clock && i < 8 && fabs(*once - before) > 0.02 * before && *once < limit_ns; i++) {
        before = *once;
        const double wanted = chain_ns / (before + 1);
        TRY(time_once(l, wanted < 1 ? 1 : (uint32_t)wanted + 1, once));
    }
    return SINTER_OK;
}

static uint32_t repeats_for(double once)
{
    return once >= batch_ns ? 1 : (uint32_t)(batch_ns / (once + 1)) + 1;
}

/* ---- medians ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *at, uint32_t count)
{
    qsort(at, count, sizeof *at, by_size);
    return at[count / 2];
}

/* The median, and half of an interval of order statistics that holds the true one nine times in ten, whatever the
 * distribution (of 5 batches: two times in three). */
static tune_time summed_up(double *at, uint32_t count)
{
    const double middle = median(at, count);
    const uint32_t skip = count < 5 ? 0 : count < 10 ? 1 : (uint32_t)((count - 1.7 * sqrt(count)) / 2);
    return (tune_time){ .ns = middle, .spread = (at[count - 1 - skip] - at[skip]) / 2 };
}

static double noise_of(tune_time a, tune_time b)
{
    return 1.8 * hypot(a.spread, b.spread);
}

double tune_margin(tune_time a, tune_time b)
{
    return fmax(0.01 * a.ns, noise_of(a, b));
}

/* ---- one kernel ---- */

static sinter_status run_batches(const bench_lane *l, double limit_ns, tune_time *out)
{
    double once, time[BATCHES];
    TRY(warm_up(l, limit_ns, &once));
    *out = (tune_time){ .ns = once };
    if (once >= limit_ns || once >= TUNE_HUGE_NS) return SINTER_OK;
    const uint32_t batches = once >= long_ns ? BATCHES_LONG : BATCHES;
    for (uint32_t i = 0; i < batches; i++) TRY(time_batch(l, repeats_for(once), &time[i]));
    *out = summed_up(time, batches);
    return SINTER_OK;
}

static void time_scale(tune_time *t, double by)
{
    t->ns *= by;
    t->spread *= by;
}

sinter_status tune_bench_time(tune_bench *b, const kernel *k, const tactic *t, double best_ns, tune_time *out)
{
    bench_lane lane;
    const uint64_t start = os_time_ns();
    const double limit_ns = best_ns > 0 ? hopeless * best_ns * b->chain : INFINITY;
    sinter_status s = bench_lane_open(b, &lane, k, t, false);
    if (s == SINTER_OK) s = run_batches(&lane, limit_ns, out);
    time_scale(out, 1.0 / b->chain);
    bench_lane_close(&lane);
    if (b->o->stats) b->o->stats->measured++;
    if (b->o->stats) b->o->stats->measure_ns += os_time_ns() - start;
    return NOTE(b->e, s, "measuring %s", k->name);
}

/* ---- several ---- */

typedef struct race {
    tune_bench *b;
    tune_entrant *list;
    uint32_t count, rounds;
    bench_lane lane[TUNE_RACE_MAX];
    uint32_t repeats[TUNE_RACE_MAX];
    double took[TUNE_RACE_MAX][ROUNDS_MOST];
} race;

static sinter_status race_open(race *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        double once = 0;
        TRY(bench_lane_open(r->b, &r->lane[i], r->list[i].kernel, r->list[i].tactic, true));
        TRY(time_once(&r->lane[i], 1, &once)); /* makes what the first launch wants */
        TRY(time_once(&r->lane[i], 1, &once));
        r->repeats[i] = repeats_for(once);
    }
    return SINTER_OK;
}

/* Times one batch of each kernel. A batch begins with the caches as its own last launch left them, not as another
 * kernel left them. */
static sinter_status race_round(race *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        double unused = 0;
        if (r->repeats[i] > 1) TRY(time_once(&r->lane[i], 1, &unused));
        TRY(time_batch(&r->lane[i], r->repeats[i], &r->took[i][r->rounds]));
    }
    r->rounds++;
    return SINTER_OK;
}

/* Times from the rounds so far. A round in which all were slow by some factor is divided by it. */
static void race_sum_up(race *r)
{
    double whole[ROUNDS_MOST], sorted[ROUNDS_MOST], own[ROUNDS_MOST];
    for (uint32_t k = 0; k < r->rounds; k++) {
        whole[k] = 0;
        for (uint32_t i = 0; i < r->count; i++) whole[k] += log(r->took[i][k] + 1e-3) / r->count;
        sorted[k] = whole[k];
    }
    const double usual = median(sorted, r->rounds);
    for (uint32_t i = 0; i < r->count; i++) {
        for (uint32_t k = 0; k < r->rounds; k++) own[k] = r->took[i][k] * exp(usual - whole[k]);
        r->list[i].time = summed_up(own, r->rounds);
        time_scale(&r->list[i].time, 1.0 / r->b->chain);
    }
}

/* Is the fastest kernel known? Yes if each other kernel is slower by more than the noise, or if the noise is too small
 * to matter. */
static bool race_is_over(const race *r)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < r->count; i++)
        if (r->list[i].time.ns < r->list[best].time.ns) best = i;
    const tune_time t = r->list[best].time;
    for (uint32_t i = 0; i < r->count; i++) {
        const tune_time other = r->list[i].time;
        const double noise = noise_of(t, other);
        if (i != best && other.ns - t.ns < noise && noise > 0.01 * t.ns) return false;
    }
    return true;
}

static sinter_status race_run(race *r)
{
    TRY(race_open(r));
    bool is_long = false;
    for (uint32_t i = 0; i < r->count; i++) is_long = is_long || r->list[i].time.ns * r->b->chain >= long_ns;
    const uint32_t least = is_long ? ROUNDS_LONG : ROUNDS_LEAST, most = is_long ? 2 * ROUNDS_LONG : ROUNDS_MOST;
    while (r->rounds < most) {
        TRY(race_round(r));
        if (r->rounds < least) continue;
        race_sum_up(r);
        if (race_is_over(r)) break;
    }
    return SINTER_OK;
}

sinter_status tune_bench_race(tune_bench *b, tune_entrant *list, uint32_t count)
{
    race *r = mem_zalloc(b->e, sizeof *r, _Alignof(race));
    if (!r) return FAIL_MEMORY(b->e, "measuring");
    const uint64_t start = os_time_ns();
    r->b = b;
    r->list = list;
    r->count = count;
    const sinter_status s = race_run(r);
    for (uint32_t i = 0; i < count; i++) bench_lane_close(&r->lane[i]);
    mem_free(b->e, r, sizeof *r, _Alignof(race));
    if (b->o->stats) b->o->stats->measure_ns += os_time_ns() - start;
    return NOTE(b->e, s, "measuring kernels in turns");
}
