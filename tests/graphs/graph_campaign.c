/* SPDX-License-Identifier: Apache-2.0 */
/* graph_campaign.c - workers take graph after graph; the supervisor counts, prints and starts workers anew.
 *
 * A worker whose graph fails says so in shared memory and ends: a GPU's context may be spoilt by then. The next worker
 * in its place writes the model to a file, reduces it, and goes on. So a graph that kills its worker is reported in the
 * same way as one that gives a wrong result. */
#include "graph_campaign.h"

#include "graph_coverage.h"
#include "graph_dump.h"
#include "backend/backend.h"
#include "graph_ops.h"
#include "graph_reduce.h"
#include "test.h"
#include "isas.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_FAILED = 9, TALLIES = 8, CLASSES = 64, REDUCED_OF_CLASS = 2, GRACE = 20 };

/* What a worker is at, and what became of it. */
typedef struct slot {
    volatile long graph;
    volatile bool is_reporting;
    gverdict v;
} slot;

typedef struct tally {
    char name[24];
    volatile long tried, failed, refused;
} tally;

typedef struct shared {
    volatile long next, done, compared, doubtful, unfit, nodes, kernels, compiled;
    tally by[TALLIES];
    slot at[CAMPAIGN_JOBS];
} shared;

typedef struct worker {
    pid_t pid;
    bool is_live;
} worker;

typedef struct supervisor {
    const gcampaign *c;
    shared *s;
    worker worker[CAMPAIGN_JOBS];
    uint32_t live;
    long failed;
    struct {
        char name[200];
        long count, first;
    } class[CLASSES];
    double begun, said;
} supervisor;

static volatile sig_atomic_t is_stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    is_stopped = 1;
}

static double seconds_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- one graph ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t s = a * 1000003 + b;
    return test_random(&s);
}

static grun run_of(const gcampaign *c, long graph)
{
    grun o = grun_random(mix(c->seed, (uint64_t)graph) ^ 77, c->device);
    o.rewrite = c->rewrite;
    if (grun_is_cuda(c->device) && c->tuned && mix(c->seed + 2, (uint64_t)graph) % c->tuned == 0) {
        o.tune = SINTER_TUNE_FAST;
        o.refittable = false;
    }
    return o;
}

static void flags_of(const gcampaign *c, long graph, char *out, size_t size)
{
    char tuned[24] = "";
    if (c->tuned) (void)snprintf(tuned, sizeof tuned, " --tuned %u", c->tuned);
    char allow[24] = "";
    if (c->allow) (void)snprintf(allow, sizeof allow, " --allow %u", c->allow);
    (void)snprintf(out, size, "--seed %llu --graph %ld --palette %u%s%s%s%s%s%s", (unsigned long long)c->seed, graph,
                   c->palette, allow, grun_is_cuda(c->device) ? " --device cuda" : "", tuned,
                   c->states ? " --states" : "", c->only ? " --only " : "", c->only ? c->only : "");
}

/* Of six graphs one may be in a narrower type. */
static uint32_t allow_of(const gcampaign *c, long graph)
{
    static const uint32_t types[] = { SINTER_ALLOW_FP16, SINTER_ALLOW_BF16, SINTER_ALLOW_TF32, SINTER_ALLOW_INT8 };
    const uint64_t x = mix(c->seed + 3, (uint64_t)(c->palette ? graph / c->palette : graph));
    if (c->allow) return c->allow;
    return (c->device && !strcmp(c->device, "reference")) || x % 6 ? 0 : types[x / 6 % COUNT_OF(types)];
}

/* The model of a graph, judged. False: `v` says what the judge refused. */
static bool make(const gcampaign *c, long graph, gmodel *m, env *e, arena *a, gverdict *v)
{
    grow_options o = { .nodes = c->nodes, .only = c->only, .allow = allow_of(c, graph) };
    const bool may_stay = !c->rewrite && !c->dump && !(o.allow & SINTER_ALLOW_INT8);
    o.has_states = may_stay && (c->states || mix(c->seed + 5, (uint64_t)graph) % 16 == 0);
    if (c->palette) o.palette = mix(c->seed + 1, (uint64_t)graph / c->palette) | 1;
    gmodel_init(m, e, a);
    if (grow_model(m, mix(c->seed, (uint64_t)graph), &o)) return true;
    (void)snprintf(v->stage, sizeof v->stage, "judge");
    (void)snprintf(v->text, sizeof v->text, "%s", m->error);
    return false;
}

static void print_model(const gmodel *m, env *e, long graph)
{
    text t;
    text_init(&t, e);
    gmodel_print(m, &t);
    (void)printf("# graph %ld\n%s\n", graph, t.at);
    text_deinit(&t);
}

static void add(volatile long *to, long by)
{
    (void)__atomic_add_fetch(to, by, __ATOMIC_RELAXED);
}

/* Where graphs of a kind are counted: by ISA on a CPU. */
static const char *kind_of(const grun *o)
{
    if (o->device && strcmp(o->device, "cpu") != 0) return grun_is_cuda(o->device) ? "cuda" : o->device;
    return o->isa ? o->isa : "native";
}

static tally *tally_of(shared *s, const grun *o)
{
    uint32_t i = 0;
    while (i + 1 < TALLIES && s->by[i].name[0] && strcmp(s->by[i].name, kind_of(o)) != 0) i++;
    return &s->by[i];
}

static bool try_one(const gcampaign *c, long graph, shared *s, gverdict *v)
{
    env e;
    arena a;
    gmodel m;
    sinter_error error = { 0 };
    env_init(&e, NULL, &error);
    arena_init(&a, &e);
    const grun o = run_of(c, graph);
    *v = (gverdict){ .stage = "" };
    bool is_fine = make(c, graph, &m, &e, &a, v);
    const bool is_fit = is_fine && m.scope.at[0].result.count;
    if (is_fine && c->prints) print_model(&m, &e, graph);
    if (is_fit && c->coverage) {
        (void)CHECK(gcoverage(&m, c->coverage));
    } else if (is_fit && c->dump) {
        char name[64];
        (void)snprintf(name, sizeof name, "%llu-%ld", (unsigned long long)c->seed, graph);
        (void)CHECK(gdump(&m, c->dump, name));
    } else if (is_fit) {
        is_fine = grun_model(&m, &o, v);
        add(&s->nodes, m.node.count);
    }
    tally *t = tally_of(s, &o);
    add(&t->tried, 1);
    add(&t->refused, v->is_refused);
    add(&s->unfit, is_fine && !is_fit);
    add(&s->compared, v->compared);
    add(&s->doubtful, v->doubtful);
    add(&s->kernels, v->kernels);
    add(&s->compiled, v->compiled);
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

/* ---- a worker ---- */

/* Makes the failed graph again, without running it. */
static void report(const gcampaign *c, const slot *at, bool reduces)
{
    env e;
    arena a;
    gmodel m;
    gverdict again = { .stage = "" };
    char flags[128];
    const grun o = run_of(c, at->graph);
    flags_of(c, at->graph, flags, sizeof flags);
    const greport r = { .o = &o, .flags = flags, .folder = c->save, .seed = c->seed, .graph = at->graph };
    env_init(&e, NULL, NULL);
    arena_init(&a, &e);
    limit(c->limit * 20);
    (void)make(c, at->graph, &m, &e, &a, &again);
    greport_save(&m, &r, &at->v);
    if (reduces) greport_reduced(&m, &r, &at->v);
    (void)fflush(stdout);
    limit(0);
    arena_deinit(&a);
}

/* Opened before the first graph and never closed: making the GPU's context again for each engine takes longer than all
 * else, most of all beside other processes. */
static void hold_device(const char *name)
{
    const backend *b = backend_find("cuda");
    const device_options wanted = { .threads = 1, .kernel_cache = "" };
    device *held = NULL;
    env e;
    env_init(&e, NULL, NULL);
    if (grun_is_cuda(name) && b) (void)b->open(&e, &wanted, &held);
}

static int work(const gcampaign *c, shared *s, slot *at, double begun)
{
    hold_device(c->device);
    for (;;) {
        if (c->seconds && seconds_now() - begun > c->seconds) break;
        const long i = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED);
        if (i >= c->count) break;
        at->graph = c->first + i;
        limit(c->limit);
        const bool is_fine = try_one(c, at->graph, s, &at->v);
        limit(0);
        add(&s->done, 1);
        if (!is_fine) return STATUS_FAILED;
    }
    judge_close();
    return 0;
}

/* `reports`: the graph that is in the slot failed. */
static void start(supervisor *u, uint32_t w, bool reports, bool reduces)
{
    slot *at = &u->s->at[w];
    (void)fflush(stdout);
    const pid_t p = fork();
    if (p == 0) {
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGTERM, SIG_DFL);
        char gpu[16];
        (void)snprintf(gpu, sizeof gpu, "%u", u->c->gpus ? w % u->c->gpus : 0);
        if (u->c->gpus) (void)setenv("CUDA_VISIBLE_DEVICES", gpu, 1);
        at->is_reporting = reports;
        if (reports) report(u->c, at, reduces);
        at->is_reporting = false;
        const int status = work(u->c, u->s, at, u->begun);
        (void)fflush(stdout);
        _exit(status);
    }
    u->worker[w] = (worker){ p, p > 0 };
    u->live += p > 0;
}

/* ---- the supervisor ---- */

static void say(supervisor *u, const char *what)
{
    const shared *s = u->s;
    u->said = seconds_now();
    const double took = u->said - u->begun;
    (void)printf("%s%.0f s: %ld graphs, %.1f/s, %ld failed (", what, took, s->done,
                 (double)s->done / (took > 0.1 ? took : 0.1), u->failed);
    for (uint32_t i = 0; i < TALLIES && s->by[i].name[0]; i++)
        (void)printf("%s%s %ld tried %ld failed %ld refused", i ? ", " : "", s->by[i].name, s->by[i].tried,
                     s->by[i].failed, s->by[i].refused);
    (void)printf(")");
    if (s->kernels)
        (void)printf(", %ld kernels, %.1f %% compiled", s->kernels, 100 * (double)s->compiled / (double)s->kernels);
    (void)printf("\n");
    (void)fflush(stdout);
}

/* How many failures there were of the same class. */
static long count_class(supervisor *u, const slot *at)
{
    char name[200];
    gverdict_class(&at->v, name, sizeof name);
    uint32_t i = 0;
    while (i + 1 < CLASSES && u->class[i].count && strcmp(u->class[i].name, name) != 0) i++;
    if (!u->class[i].count) {
        memcpy(u->class[i].name, name, sizeof name);
        u->class[i].first = at->graph;
    }
    return ++u->class[i].count;
}

static void failed(supervisor *u, uint32_t w)
{
    const slot *at = &u->s->at[w];
    char flags[128], about[128];
    const grun o = run_of(u->c, at->graph);
    flags_of(u->c, at->graph, flags, sizeof flags);
    grun_print(&o, about, sizeof about);
    (void)printf("FAIL %s (%s): %s: %s\n", flags, about, at->v.stage, at->v.text);
    (void)fflush(stdout);
    u->failed++;
    add(&tally_of(u->s, &o)->failed, 1);
    const long count = count_class(u, at);
    start(u, w, true, u->c->reduces && count <= REDUCED_OF_CLASS);
}

static void ended(supervisor *u, uint32_t w, int status)
{
    slot *at = &u->s->at[w];
    u->worker[w].is_live = false;
    u->live--;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (at->is_reporting) {
        (void)printf("the report of graph %ld ended early\n", at->graph);
        at->is_reporting = false;
        start(u, w, false, false);
        return;
    }
    if (WIFSIGNALED(status) || WEXITSTATUS(status) != STATUS_FAILED) {
        const int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
        at->v = (gverdict){ .stage = "crash" };
        (void)snprintf(at->v.text, sizeof at->v.text, "%s %d",
                       !WIFSIGNALED(status)                     ? "ended with status"
                       : number == SIGPROF || number == SIGALRM ? "took too long: signal"
                                                                : "killed by signal",
                       number);
        const grun o = run_of(u->c, at->graph);
        add(&u->s->done, 1);
        add(&tally_of(u->s, &o)->tried, 1);
    }
    failed(u, w);
}

static void kill_all(supervisor *u)
{
    for (uint32_t w = 0; w < u->c->jobs; w++) {
        if (!u->worker[w].is_live) continue;
        char flags[128];
        flags_of(u->c, u->s->at[w].graph, flags, sizeof flags);
        (void)printf("not finished: %s%s\n", flags, u->s->at[w].is_reporting ? " (its report)" : "");
        (void)kill(u->worker[w].pid, SIGKILL);
        (void)waitpid(u->worker[w].pid, NULL, 0);
    }
    u->live = 0;
}

static void supervise(supervisor *u)
{
    const gcampaign *c = u->c;
    for (uint32_t w = 0; w < c->jobs; w++) start(u, w, false, false);
    while (u->live) {
        int status;
        const pid_t p = waitpid(-1, &status, WNOHANG);
        for (uint32_t w = 0; w < c->jobs && p > 0; w++)
            if (u->worker[w].is_live && u->worker[w].pid == p) {
                ended(u, w, status);
                break;
            }
        const double now = seconds_now();
        if (c->every && now - u->said > c->every) say(u, "");
        if (is_stopped || (c->seconds && now - u->begun > c->seconds + GRACE)) kill_all(u);
        if (p == 0) (void)nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
    }
}

long gcampaign_run(const gcampaign *c)
{
    static supervisor u;
    u = (supervisor){ .c = c };
    u.s = mmap(NULL, sizeof *u.s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (u.s == MAP_FAILED) return 1;
    static const char *const isas[] = { TEST_ISAS, NULL };
    for (uint32_t i = 0; i < (!c->device || !strcmp(c->device, "cpu") ? COUNT_OF(isas) : 1); i++) {
        const grun o = { .device = c->device, .isa = isas[i] };
        (void)snprintf(u.s->by[i].name, sizeof u.s->by[i].name, "%s", kind_of(&o));
    }
    (void)signal(SIGINT, stop);
    (void)signal(SIGTERM, stop);
    u.begun = u.said = seconds_now();
    supervise(&u);
    for (uint32_t i = 0; i < CLASSES && u.class[i].count; i++)
        (void)printf("%6ld %s (first: graph %ld)\n", u.class[i].count, u.class[i].name, u.class[i].first);
    say(&u, "all: ");
    (void)printf("%ld nodes, %ld results compared, %ld too steep to compare, %ld graphs without a result\n", u.s->nodes,
                 u.s->compared, u.s->doubtful, u.s->unfit);
    (void)munmap(u.s, sizeof *u.s);
    return u.failed;
}
