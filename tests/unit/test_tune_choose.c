/* SPDX-License-Identifier: Apache-2.0 */
/* test_tune_choose.c - which tactic the clock chooses: on a backend whose clock is a function of the test, with noise,
 * a drift and outliers, and whose programs fail where the test says so. Nothing is run. */
#include "test.h"
#include "tune/tune.h"

#include <math.h>
#include <unistd.h>

enum { TACTICS = 4 };

/* What the clock says, and which tactics fail. */
typedef struct world {
    double ns[TACTICS], model[TACTICS];
    double noise, outliers,
        drift; /* of a time: its deviation, the share that takes twice as long, a second's slowing */
    bool does_not_compile[TACTICS], does_not_run[TACTICS], is_short_of_memory;
    int kills; /* the tactic whose launch makes all later ones fail, too; -1: none */
    bool is_dead;
    long tries[TACTICS], launches;
    uint64_t random;
    double seconds;
} world;
static world w;

/* ---- the backend ---- */

static const char *reject_none(const problem *p, const kernel_target *t)
{
    (void)p, (void)t;
    return NULL;
}
static void all_tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    (void)p, (void)t;
    for (uint8_t i = 0; i < TACTICS; i++) out->at[out->count++] = (tactic){ { i } };
}
static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)p, (void)target;
    return w.model[t->at[0]];
}
static void print(const tactic *t, text *out)
{
    text_printf(out, "t%u", t->at[0]);
}
static const kernel row = {
    .name = "row", .abi = 1, .reject = reject_none, .tactics = all_tactics, .print = print, .cost_ns = cost_ns
};
static const kernel reference = { .name = "reference", .abi = 1, .reject = reject_none };
static const kernel *const rows[] = { &row, &reference };
static const kernel *const *kernels(uint32_t *count)
{
    *count = 2;
    return rows;
}
static void target(const device *d, kernel_target *out)
{
    (void)d;
    *out = (kernel_target){ .threads = 1, .bandwidth = 1e12, .cache_last = 1 << 20 };
}
static void describe(const device *d, text *out)
{
    (void)d;
    text_printf(out, "clock");
}

struct program {
    uint32_t tactic, steps;
};
static sinter_status make(env *e, device *d, const program_step *step, uint32_t count, bool is_once, program *reuse,
                          program **out)
{
    (void)d, (void)is_once, (void)reuse;
    const uint32_t t = step[0].tactic->at[0];
    w.tries[t]++;
    if (w.is_short_of_memory) return FAIL_MEMORY(e, "a program");
    if (w.is_dead) return FAIL(e, DEVICE, "the device failed before");
    if (w.does_not_compile[t]) return FAIL(e, INTERNAL, "t%u does not compile", t);
    *out = mem_zalloc(e, sizeof **out, _Alignof(program));
    if (!*out) return FAIL_MEMORY(e, "a program");
    **out = (program){ t, count };
    return SINTER_OK;
}
static void drop(env *e, device *d, program *p)
{
    (void)d;
    mem_free(e, p, sizeof *p, _Alignof(program));
}

static double uniform(void)
{
    return (double)(test_random(&w.random) % 1000003) / 1000003.0;
}
/* Of deviation 1, about normal. */
static double normal(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += uniform();
    return sum;
}
static sinter_status clock_read(device *d, program *p, const program_run *run, uint32_t repeats, double *ns)
{
    (void)d;
    w.launches += repeats;
    if ((int)p->tactic == w.kills) w.is_dead = true;
    if (w.is_dead || w.does_not_run[p->tactic]) return FAIL(run->e, DEVICE, "t%u does not run", p->tactic);
    *ns = w.ns[p->tactic] * p->steps * (1 + w.drift * w.seconds);
    w.seconds += 1e-9 * *ns * repeats;
    *ns *= fmax(0.2, 1 + w.noise * normal());
    if (uniform() < w.outliers) *ns *= 2;
    return SINTER_OK;
}
static const backend clocked = { .name = "clock",
                                 .target = target,
                                 .kernels = kernels,
                                 .describe = describe,
                                 .program_create = make,
                                 .program_destroy = drop,
                                 .program_time = clock_read };

/* ---- choosing ---- */

typedef struct rig {
    env e;
    sinter_error error;
    arena a;
    problem *p;
    timing_cache *cache;
    tune_stats stats;
} rig;

static bool start(rig *r)
{
    static const char line[] = "matmul:f32[8,16] w:f32[16,8] -> f32[8,8]";
    const char *why = NULL;
    scan s = scan_of(line, strlen(line));
    memset(r, 0, sizeof *r);
    env_init(&r->e, NULL, &r->error);
    arena_init(&r->a, &r->e);
    r->stats.measured = 1; /* else the first one keeps the device busy for a while */
    return CHECK(problem_parse(&r->a, &s, &r->p, &why)) && CHECK_EQ(timing_cache_create(&r->e, &r->cache), SINTER_OK);
}
static void stop(rig *r)
{
    timing_cache_destroy(r->cache);
    arena_deinit(&r->a);
}

static sinter_status choose(rig *r, bool cache_only, uint32_t *tactic_at)
{
    const tune_options o = { .backend = &clocked,
                             .mode = TUNE_FAST,
                             .threads = 1,
                             .cache = r->cache,
                             .cache_only = cache_only,
                             .stats = &r->stats };
    choice c;
    const sinter_status s = tune_choose(&r->e, r->p, &o, &c);
    *tactic_at = s == SINTER_OK ? c.tactic.at[0] : TACTICS;
    return s;
}

/* All tactics alike, as the model says. */
static void set_world(double ns, double noise)
{
    w = (world){ .noise = noise, .kills = -1 };
    for (uint32_t i = 0; i < TACTICS; i++) {
        w.ns[i] = ns;
        w.model[i] = ns + i;
    }
}

/* How often another tactic than `wanted` is chosen, in a hundred. */
static double missed(world as, uint32_t wanted, uint32_t count)
{
    uint32_t misses = 0;
    for (uint32_t i = 0; i < count; i++) {
        rig r;
        uint32_t got, again;
        if (!start(&r)) return 100;
        w = as;
        w.random = 77 + i;
        CHECK_EQ(choose(&r, false, &got), SINTER_OK);
        misses += got != wanted;
        CHECK_EQ(choose(&r, true, &again), SINTER_OK); /* from the cache alone: the same */
        CHECK_EQ(again, got);
        stop(&r);
    }
    w = as;
    return 100.0 * misses / count;
}

static bool misses_few(double missed_at, double most)
{
    if (missed_at <= most) return true;
    test_failures++;
    (void)printf("missed %.1f of a hundred, at most %.1f are expected\n", missed_at, most);
    return false;
}

/* Equal kernels: the model's favourite stays. A faster one is found. */
static void noise_does_not_decide(void)
{
    static const double noise[] = { 0.001, 0.01, 0.05 };
    const uint32_t count = test_is_full() ? 1000 : 100;
    for (size_t i = 0; i < COUNT_OF(noise); i++) {
        set_world(20000, noise[i]);
        CHECK(misses_few(missed(w, 0, count), 5));
        w.outliers = 0.05;
        CHECK(misses_few(missed(w, 0, count), 8));
        set_world(20000, noise[i]);
        w.ns[2] *= 1 - 0.03 - 3 * noise[i];
        CHECK(misses_few(missed(w, 2, count), 5));
        w.outliers = 0.05;
        CHECK(misses_few(missed(w, 2, count), 8));
    }
}

/* A clock that slows down while the tactics are timed one after the other favours none of them. */
static void drift_does_not_decide(void)
{
    const uint32_t count = test_is_full() ? 1000 : 100;
    set_world(20000, 0.005);
    w.drift = 2; /* by the second; all takes some hundredths of one */
    CHECK(misses_few(missed(w, 0, count), 5));
    w.ns[3] *= 0.96;
    CHECK(misses_few(missed(w, 3, count), 5));
    w.drift = -2;
    CHECK(misses_few(missed(w, 3, count), 5));
    set_world(20000, 0.005);
    w.drift = -2;
    CHECK(misses_few(missed(w, 0, count), 5));
}

/* What the model thinks is short is measured as well: there it errs most. */
static void the_short_are_measured(void)
{
    rig r;
    uint32_t got;
    if (!start(&r)) return;
    set_world(400, 0.01);
    w.model[0] = 200;
    w.ns[1] = 300;
    CHECK_EQ(choose(&r, false, &got), SINTER_OK);
    CHECK_EQ(got, 1);
    CHECK(r.stats.measured > 1 + 2);
    stop(&r);
}

/* Where a run takes long, each candidate is run once; where all together take too long, by the model, only the first
 * ones are, and where two take too long, none is. The cache alone then makes the same choices. */
static void the_huge_are_run_once(void)
{
    static const struct {
        double ns;
        uint32_t measured, chosen;
    } sizes[] = { { 2.2e8, TACTICS, 3 }, { 4.5e8, 2, 1 }, { 6e8, 0, 0 }, { 3e9, 0, 0 } };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        rig r;
        uint32_t got;
        if (!start(&r)) return;
        set_world(sizes[i].ns, 0);
        w.ns[1] *= 0.9, w.ns[3] *= 0.8;
        CHECK_EQ(choose(&r, false, &got), SINTER_OK);
        CHECK_EQ(got, sizes[i].chosen);
        CHECK_EQ(w.launches, sizes[i].measured);
        CHECK_EQ(choose(&r, true, &got), SINTER_OK);
        CHECK_EQ(got, sizes[i].chosen);
        CHECK_EQ(w.launches, sizes[i].measured);
        stop(&r);
    }
}

/* What has no elements takes no time. */
static void nothing_takes_no_time(void)
{
    rig r;
    uint32_t got;
    if (!start(&r)) return;
    set_world(0, 0);
    CHECK_EQ(choose(&r, false, &got), SINTER_OK);
    CHECK_EQ(got, 0);
    CHECK_EQ(choose(&r, true, &got), SINTER_OK);
    CHECK_EQ(got, 0);
    stop(&r);
}

static const char path[] = "test_tune_choose.timings";

static void failures_are_skipped(void)
{
    rig r;
    uint32_t got;
    if (!start(&r)) return;
    set_world(20000, 0.01);
    w.does_not_compile[0] = w.does_not_run[2] = true;
    w.ns[3] = 15000;
    CHECK_EQ(choose(&r, false, &got), SINTER_OK);
    CHECK_EQ(got, 3);
    CHECK_EQ(r.error.length, 0);
    CHECK_EQ(w.tries[0], 1);
    CHECK_EQ(w.tries[2], 1);
    /* Not tried again: neither by this build nor by one that reads the file. */
    const long launches = w.launches;
    CHECK_EQ(choose(&r, false, &got), SINTER_OK);
    CHECK_EQ(got, 3);
    (void)unlink(path);
    CHECK_EQ(timing_cache_write(r.cache, path), SINTER_OK);
    stop(&r);
    if (!start(&r)) return;
    CHECK_EQ(timing_cache_read(r.cache, path), SINTER_OK);
    CHECK_EQ(choose(&r, true, &got), SINTER_OK);
    CHECK_EQ(got, 3);
    CHECK_EQ(w.launches, launches);
    CHECK_EQ(w.tries[0] + w.tries[2], 2);
    stop(&r);
    (void)unlink(path);
}

static void all_fail(void)
{
    rig r;
    uint32_t got;
    if (!start(&r)) return;
    set_world(20000, 0.01);
    for (uint32_t i = 0; i < TACTICS; i++) w.does_not_compile[i] = true;
    CHECK_EQ(choose(&r, false, &got), SINTER_INTERNAL);
    CHECK_HAS(r.error.text, "t0 does not compile");
    CHECK_HAS(r.error.text, "each of the 4 kernels that were tried for 'matmul:");
    r.error = (sinter_error){ 0 };
    CHECK_EQ(choose(&r, false, &got), SINTER_INTERNAL);
    CHECK_HAS(r.error.text, "the timing cache says");
    stop(&r);
    if (!start(&r)) return;
    set_world(20000, 0.01);
    w.is_short_of_memory = true;
    CHECK_EQ(choose(&r, false, &got), SINTER_NO_MEMORY);
    CHECK_EQ(w.tries[1], 0);
    stop(&r);
}

/* A kernel that kills the device takes the blame. Those that came after it do not: they are tried again. */
static void the_dead_accuse_one(void)
{
    rig r;
    uint32_t got;
    if (!start(&r)) return;
    set_world(20000, 0.01);
    w.kills = 1;
    CHECK_EQ(choose(&r, false, &got), SINTER_OK); /* the device is dead, but t0 has its time */
    CHECK_EQ(got, 0);
    (void)unlink(path);
    CHECK_EQ(timing_cache_write(r.cache, path), SINTER_OK);
    stop(&r);
    if (!start(&r)) return;
    CHECK_EQ(timing_cache_read(r.cache, path), SINTER_OK);
    w.is_dead = false;
    memset(w.tries, 0, sizeof w.tries);
    CHECK_EQ(choose(&r, false, &got), SINTER_OK);
    CHECK_EQ(w.tries[1], 0);
    CHECK(w.tries[2] > 0 && w.tries[3] > 0);
    CHECK(!w.is_dead);
    stop(&r);
    (void)unlink(path);
}

static const test tests[] = {
    T(noise_does_not_decide),
    T(drift_does_not_decide),
    T(the_short_are_measured),
    T(the_huge_are_run_once),
    T(nothing_takes_no_time),
    T(failures_are_skipped),
    T(all_fail),
    T(the_dead_accuse_one),
    { 0 },
};
TEST_MAIN(tests)
