/* SPDX-License-Identifier: Apache-2.0 */
/* campaign.c - see campaign.h. */
#include "campaign.h"

#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS_MAX = 256, ROUND_SECONDS = 60, REPORT_SECONDS = 10 };

typedef struct worker {
    pid_t id;
    long next; /* the first round that was not tried */
    volatile long now;
    rig_count count;
} worker;

typedef struct crew {
    worker *at; /* shared with the processes */
    long count, alive;
    uint64_t ends; /* nanoseconds; 0: when all rounds were tried */
} crew;

static void add(rig_count *sum, const rig_count *c)
{
    sum->rounds += c->rounds;
    sum->models += c->models;
    sum->built += c->built;
    sum->tried += c->tried;
    sum->loaded += c->loaded;
    sum->contexts += c->contexts;
    sum->ran += c->ran;
    sum->refused_runs += c->refused_runs;
    sum->failed += c->failed;
    if (c->slowest_s > sum->slowest_s) sum->slowest_s = c->slowest_s;
}

static void print(const campaign *c, const rig_count *n)
{
    (void)printf("%s: %ld rounds; ", c->name, n->rounds);
    if (n->models) (void)printf("%ld models, %ld built; ", n->models, n->built);
    (void)printf("%ld engines, %ld loaded, %ld contexts, %ld runs, %ld refused; slowest %.1f s; %ld failed, %ld died\n",
                 n->tried, n->loaded, n->contexts, n->ran, n->refused_runs, n->slowest_s, n->failed, c->died);
    (void)fflush(stdout);
}

static long number(const char *variable, long otherwise)
{
    const char *given = getenv(variable);
    return given && *given ? atol(given) : otherwise;
}

static void work(const campaign *c, const crew *all, worker *w)
{
    for (long i = w->next; i < c->rounds && (!all->ends || os_time_ns() < all->ends); i += all->count) {
        const long failed = w->count.failed;
        w->now = i;
        (void)alarm(ROUND_SECONDS);
        c->round(c->user, i, &w->count);
        w->count.rounds++;
        if (w->count.failed != failed) (void)printf("%s=%ld\n", c->name, i);
    }
    (void)fflush(stdout);
    _exit(0);
}

static void start(const campaign *c, const crew *all, worker *w)
{
    (void)fflush(stdout);
    const pid_t id = fork();
    if (id == 0) work(c, all, w);
    w->id = id;
}

/* A process that ended has tried its rounds, or has died of one: another one goes on behind it. */
static void take_over(campaign *c, crew *all, pid_t id, int status)
{
    for (long i = 0; i < all->count; i++) {
        worker *w = &all->at[i];
        if (w->id != id) continue;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            all->alive--;
            continue;
        }
        c->died++;
        (void)printf("%s=%ld ended with status 0x%x\n", c->name, w->now, (unsigned)status);
        w->next = w->now + all->count;
        start(c, all, w);
    }
}

static rig_count sum_of(const crew *all)
{
    rig_count sum = { 0 };
    for (long i = 0; i < all->count; i++) add(&sum, &all->at[i].count);
    return sum;
}

void campaign_run(campaign *c)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN), wanted = number("CAMPAIGN_WORKERS", cpus < 1 ? 1 : cpus),
               first = number("CAMPAIGN_FIRST", 0), seconds = number("CAMPAIGN_SECONDS", 0);
    crew all = { .count = wanted < WORKERS_MAX ? wanted : WORKERS_MAX };
    c->rounds = number("CAMPAIGN_ROUNDS", c->rounds);
    if (getenv(c->name)) {
        c->round(c->user, number(c->name, 0), &c->count);
        return;
    }
    all.at = mmap(NULL, sizeof *all.at * WORKERS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all.at == MAP_FAILED) abort();
    if (seconds) all.ends = os_time_ns() + (uint64_t)seconds * 1000000000u;
    for (; all.alive < all.count; all.alive++) {
        all.at[all.alive].next = first + all.alive;
        start(c, &all, &all.at[all.alive]);
    }
    uint64_t reported = os_time_ns();
    while (all.alive) {
        int status = 0;
        const pid_t id = waitpid(-1, &status, seconds ? WNOHANG : 0);
        if (id < 0) break;
        if (id) take_over(c, &all, id, status);
        else (void)usleep(10000);
        if (!seconds || os_time_ns() - reported < (uint64_t)REPORT_SECONDS * 1000000000u) continue;
        reported = os_time_ns();
        const rig_count sum = sum_of(&all);
        print(c, &sum);
    }
    c->count = sum_of(&all);
    print(c, &c->count);
    (void)munmap(all.at, sizeof *all.at * WORKERS_MAX);
}
