/* SPDX-License-Identifier: Apache-2.0 */
/* test_random_graphs.c - random graphs through the whole pipeline, each in every environment, against the judge.
 *
 *     graphs_test_random_graphs [--count N] [--seed S] [--graph N] [--device cpu|reference|cuda] [--jobs N] [--nodes N]
 *                               [--only OPERATOR] [--known N] [--reduce] [--save DIR] [--file GRAPH...] [--print]
 *
 * --dump writes the graphs for compare_onnxruntime.py, and runs none. Graph N of a seed is the same everywhere.
 * --reduce: failures are made small and printed as models; --save: and kept as text and ONNX. --file runs such a text.
 */
#include "graph_reduce.h"
#include "graph_run.h"

#include "graph_dump.h"
#include "graph_ops.h"
#include "test.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct campaign {
    long count, first, known;
    uint64_t seed;
    uint32_t jobs, nodes, seconds;
    sinter_device_kind device;
    const char *only, *save, *dump;
    bool prints, reduces;
    const char *files[64];
    uint32_t file_count;
} campaign;

typedef struct shared {
    volatile long next, at[64]; /* which graph each worker is at */
    volatile long done, failed, compared, doubtful, unfit, nodes;
} shared;

static uint64_t seed_of(const campaign *c, long graph)
{
    uint64_t s = c->seed * 1000003 + (uint64_t)graph;
    return test_random(&s);
}

/* The model of a graph, judged. False: `v` says what the judge refused. */
static bool make(const campaign *c, long graph, gmodel *m, env *e, arena *a, gverdict *v)
{
    const grow_options o = { .nodes = c->nodes, .only = c->only };
    gmodel_init(m, e, a);
    if (grow_model(m, seed_of(c, graph), &o)) return true;
    (void)snprintf(v->stage, sizeof v->stage, "judge");
    (void)snprintf(v->text, sizeof v->text, "%s", m->error);
    return false;
}

static bool try_one(const campaign *c, long graph, shared *s)
{
    env e;
    arena a;
    gmodel m;
    gverdict v = { "", "", 0, 0, false };
    sinter_error error = { 0 };
    env_init(&e, NULL, &error);
    arena_init(&a, &e);
    const grun o = grun_random(seed_of(c, graph) ^ 77, c->device);
    bool is_fine = make(c, graph, &m, &e, &a, &v);
    if (is_fine && c->prints) {
        text t;
        text_init(&t, &e);
        gmodel_print(&m, &t);
        (void)printf("# graph %ld\n%s\n", graph, t.at);
        text_deinit(&t);
    }
    if (is_fine && c->dump && m.scope.at[0].result.count) {
        char name[64];
        (void)snprintf(name, sizeof name, "%llu-%ld", (unsigned long long)c->seed, graph);
        (void)CHECK(gdump(&m, c->dump, name));
    } else if (is_fine && m.scope.at[0].result.count) {
        is_fine = grun_model(&m, &o, &v);
        __atomic_add_fetch(&s->nodes, m.node.count, __ATOMIC_RELAXED);
    } else if (is_fine) __atomic_add_fetch(&s->unfit, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&s->compared, v.compared, __ATOMIC_RELAXED);
    __atomic_add_fetch(&s->doubtful, v.doubtful, __ATOMIC_RELAXED);
    if (!is_fine) {
        char about[128];
        grun_print(&o, about, sizeof about);
        (void)printf("FAIL --seed %llu --graph %ld (%s)\n", (unsigned long long)c->seed, graph, about);
        if (c->reduces) greduce_report(&m, &o, &v, c->save, (unsigned long long)c->seed, graph);
        else (void)printf("%s: %s\n", v.stage, v.text);
        (void)fflush(stdout);
    }
    arena_deinit(&a);
    return is_fine;
}

/* Seconds of the processor's time, and ten times as many of the clock's: a busy machine is no failure. */
static void limit(uint32_t seconds)
{
    const struct itimerval t = { .it_value = { .tv_sec = seconds } };
    (void)setitimer(ITIMER_PROF, &t, NULL);
    (void)alarm(seconds * 10);
}

/* A worker takes the next graph until none is left. */
static int work(const campaign *c, shared *s, uint32_t worker)
{
    for (;;) {
        const long i = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED);
        if (i >= c->count) break;
        s->at[worker] = c->first + i;
        limit(c->seconds);
        if (!try_one(c, c->first + i, s)) __atomic_add_fetch(&s->failed, 1, __ATOMIC_RELAXED);
        limit(0);
        __atomic_add_fetch(&s->done, 1, __ATOMIC_RELAXED);
    }
    judge_close();
    return 0;
}

static pid_t start(const campaign *c, shared *s, uint32_t worker)
{
    (void)fflush(stdout);
    const pid_t p = fork();
    if (p == 0) {
        const int status = work(c, s, worker);
        (void)fflush(stdout);
        _exit(status);
    }
    return p;
}

/* A graph that killed its worker is made again, and its model, which is made without running it, is reduced. */
static void report_crash(const campaign *c, long graph, int status)
{
    char why[64];
    (void)snprintf(why, sizeof why, WIFSIGNALED(status) ? "killed by signal %d" : "ended with status %d",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    (void)printf("FAIL --seed %llu --graph %ld: %s\n", (unsigned long long)c->seed, graph, why);
    (void)fflush(stdout);
    const pid_t p = fork();
    if (p == 0) {
        env e;
        arena a;
        gmodel m;
        gverdict v = { "crash", "", 0, 0, false };
        (void)snprintf(v.text, sizeof v.text, "%s", why);
        env_init(&e, NULL, NULL);
        arena_init(&a, &e);
        limit(c->seconds * 20);
        const grun o = grun_random(seed_of(c, graph) ^ 77, c->device);
        if (make(c, graph, &m, &e, &a, &v) && c->reduces)
            greduce_report(&m, &o, &v, c->save, (unsigned long long)c->seed, graph);
        (void)fflush(stdout);
        _exit(0);
    }
    (void)waitpid(p, NULL, 0);
}

static void supervise(const campaign *c, shared *s)
{
    pid_t pid[64];
    uint32_t live = 0;
    for (; live < c->jobs; live++) pid[live] = start(c, s, live);
    while (live) {
        int status;
        const pid_t p = wait(&status);
        uint32_t w = 0;
        while (w < c->jobs && pid[w] != p) w++;
        if (w == c->jobs) continue;
        live--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        __atomic_add_fetch(&s->failed, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&s->done, 1, __ATOMIC_RELAXED);
        report_crash(c, s->at[w], status);
        pid[w] = start(c, s, w);
        live++;
    }
}

static bool read_options(campaign *c, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *o = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(o, "--print")) c->prints = true;
        else if (!strcmp(o, "--reduce")) c->reduces = true;
        else if (!v) return false;
        else if (!strcmp(o, "--file") && c->file_count < 64) c->files[c->file_count++] = v;
        else if (!strcmp(o, "--count")) c->count = atol(v);
        else if (!strcmp(o, "--seed")) c->seed = strtoull(v, NULL, 10);
        else if (!strcmp(o, "--graph")) c->first = atol(v), c->count = 1;
        else if (!strcmp(o, "--from")) c->first = atol(v);
        else if (!strcmp(o, "--jobs")) c->jobs = (uint32_t)atol(v);
        else if (!strcmp(o, "--nodes")) c->nodes = (uint32_t)atol(v);
        else if (!strcmp(o, "--known")) c->known = atol(v);
        else if (!strcmp(o, "--only")) c->only = v;
        else if (!strcmp(o, "--dump")) c->dump = v;
        else if (!strcmp(o, "--save")) c->save = v, c->reduces = true;
        else if (!strcmp(o, "--device"))
            c->device = !strcmp(v, "cuda")        ? SINTER_DEVICE_CUDA
                        : !strcmp(v, "reference") ? SINTER_DEVICE_REFERENCE
                                                  : SINTER_DEVICE_CPU;
        else return false;
        i += strcmp(o, "--print") && strcmp(o, "--reduce");
    }
    return c->jobs >= 1 && c->jobs <= 64;
}

int main(int argc, char **argv)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    campaign c = { .count = test_scale(2000, 200000),
                   .seed = 1,
                   .nodes = 10,
                   .seconds = 60,
                   .reduces = false,
                   .jobs = cpus < 1    ? 1
                           : cpus > 16 ? 16
                                       : (uint32_t)cpus };
    if (!read_options(&c, argc, argv)) {
        (void)fprintf(stderr, "%s: see the top of test_random_graphs.c for the options\n", argv[0]);
        return 2;
    }
    for (uint32_t i = 0; i < c.file_count; i++)
        if (!grun_file(c.files[i], c.device)) return 1;
    if (c.file_count) return 0;
    shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED) return 1;
    struct timespec a, b;
    (void)clock_gettime(CLOCK_MONOTONIC, &a);
    supervise(&c, s);
    (void)clock_gettime(CLOCK_MONOTONIC, &b);
    (void)printf("%ld graphs, %ld nodes, %ld results compared, %ld too steep to compare, %ld without a result, "
                 "%ld failed, %.0f s\n",
                 s->done, s->nodes, s->compared, s->doubtful, s->unfit, s->failed, (double)(b.tv_sec - a.tv_sec));
    return s->failed > c.known;
}
