/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_measure.c - kernels are timed on the CPU with weights that are in no cache, where a network has more of them
 * than its caches hold; all but those that read few of their weights. */
#include "backend/backend.h"
#include "test.h"
#include "tune/bench.h"

#include <string.h>

static const uint64_t more_than_caches = (uint64_t)1 << 50;

typedef struct trial {
    env e;
    sinter_error error;
    arena a;
    const backend *b;
    device *d;
    problem *p;
    const kernel *kernel;
    tactic tactic;
    tune_options o;
    tune_bench *bench;
} trial;

/* The first kernel that takes the problem, with its first tactic. */
static bool choose(trial *x)
{
    uint32_t count = 0;
    kernel_target target;
    const kernel *const *list = x->b->kernels(&count);
    x->b->target(x->d, &target);
    for (uint32_t i = 0; i < count && !x->kernel; i++)
        if (!list[i]->reject(x->p, &target)) x->kernel = list[i];
    tactic_sink found = { .count = 0 };
    if (!CHECK(x->kernel != NULL)) return false;
    x->kernel->tactics(x->p, &target, &found);
    x->tactic = found.at[0];
    return CHECK(found.count > 0);
}

static bool start(trial *x, const char *line, uint64_t weights)
{
    const char *why = NULL;
    scan s = scan_of(line, strlen(line));
    memset(x, 0, sizeof *x);
    env_init(&x->e, NULL, &x->error);
    arena_init(&x->a, &x->e);
    x->b = backend_find("cpu");
    if (!CHECK_EQ(x->b->open(&x->e, &(device_options){ .threads = 1 }, &x->d), SINTER_OK)) return false;
    if (!CHECK(problem_parse(&x->a, &s, &x->p, &why)) || !choose(x)) return false;
    x->o = (tune_options){ .backend = x->b, .device = x->d, .threads = 1, .weights = weights };
    return CHECK_EQ(tune_bench_create(&x->e, x->p, &x->o, 1000, &x->bench), SINTER_OK);
}

static bool measure(trial *x)
{
    tune_time t = { 0 };
    return CHECK_EQ(tune_bench_time(x->bench, x->kernel, &x->tactic, 0, &t), SINTER_OK) && CHECK(t.ns > 0);
}

static void finish(trial *x)
{
    tune_bench_destroy(x->bench);
    if (x->d) x->b->close(&x->e, x->d);
    arena_deinit(&x->a);
}

static void weights_are_cold(void)
{
    trial x;
    const char *line = "matmul:f32[7,64] w:f32[64,64] -> f32[7,64]";
    if (start(&x, line, more_than_caches) && CHECK(x.bench->is_cold) && measure(&x)) CHECK(x.bench->is_cold);
    finish(&x);
    if (start(&x, line, 0) && CHECK(!x.bench->is_cold)) measure(&x);
    finish(&x);
}

static void tables_are_not_evicted(void)
{
    trial x;
    if (start(&x, "gather:w:f32[100000,64] i64[2] -> f32[2,64]", more_than_caches) && CHECK(x.bench->is_cold) &&
        measure(&x))
        CHECK(!x.bench->is_cold);
    finish(&x);
}

static const test tests[] = { T(weights_are_cold), T(tables_are_not_evicted), { 0 } };
TEST_MAIN(tests)
