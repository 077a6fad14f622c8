/* SPDX-License-Identifier: Apache-2.0 */
/* campaign.c - see campaign.h. */
#include "campaign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS_MAX = 64, SECONDS = 60 };

typedef struct worker {
    pid_t id;
    long next; /* the first round that was not tried */
    volatile long now;
    rig_count count;
} worker;

static void add(rig_count *sum, const rig_count *c)
{
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

static void work(const campaign *c, worker *w, long step)
{
    for (long i = w->next; i < c->rounds; i += step) {
        const long failed = w->count.failed;
        w->now = i;
        (void)alarm(SECONDS);
        c->round(c->user, i, &w->count);
        if (w->count.failed != failed) (void)printf("%s=%ld\n", c->name, i);
    }
    (void)fflush(stdout);
    _exit(0);
}

static void start(const campaign *c, worker *w, long step)
{
    (void)fflush(stdout);
    const pid_t id = fork();
    if (id == 0) work(c, w, step);
    w->id = id;
}

void campaign_run(campaign *c)
{
    const char *one = getenv(c->name), *first = getenv("CAMPAIGN_FIRST"), *rounds = getenv("CAMPAIGN_ROUNDS");
    if (rounds) c->rounds = atol(rounds);
    if (one) {
        c->round(c->user, atol(one), &c->count);
        return;
    }
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN), count = cpus < 1 ? 1 : cpus < WORKERS_MAX ? cpus : WORKERS_MAX;
    worker *w = mmap(NULL, sizeof *w * WORKERS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w == MAP_FAILED) abort();
    for (long i = 0; i < count; i++) {
        w[i].next = (first ? atol(first) : 0) + i;
        start(c, &w[i], count);
    }
    for (long alive = count; alive;) {
        int status = 0;
        const pid_t id = wait(&status);
        if (id < 0) break;
        for (long i = 0; i < count; i++) {
            if (w[i].id != id) continue;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
                alive--;
                continue;
            }
            c->died++;
            (void)printf("%s=%ld ended with status 0x%x\n", c->name, w[i].now, (unsigned)status);
            w[i].next = w[i].now + count;
            start(c, &w[i], count);
        }
    }
    for (long i = 0; i < count; i++) add(&c->count, &w[i].count);
    (void)munmap(w, sizeof *w * WORKERS_MAX);
}
