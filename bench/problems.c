/* SPDX-License-Identifier: Apache-2.0 */
/* problems.c - times every CPU kernel that takes a problem, on one thread.
 *
 *     build/bench_problems FILE...        a problem a line, as in tests/conformance/cases; '#' begins a note
 *     build/bench_problems --all FILE...  with every tactic, in turns
 *
 * One line a kernel: the time of its first tactic, and how many times faster than the reference that is. Or one line a
 * tactic: the least of its times. */
#include "base/env.h"
#include "base/os.h"
#include "cpu/backend_cpu.h"
#include "cpu/cpu_kernels.h"
#include "tune/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TURNS = 5, ENTRANTS = 256 };

typedef struct entrant {
    const kernel *kernel;
    tactic tactic;
    double least;
} entrant;

/* All tactics of all kernels but the reference, in turns: whatever else the machine does is no tactic's alone. */
static sinter_status time_in_turns(env *e, tune_bench *b, const problem *p, const kernel_target *target)
{
    static entrant list[ENTRANTS];
    uint32_t count = 0;
    for (uint32_t i = 0; i + 1 < cpu_kernels_count; i++) {
        tactic_sink sink = { .count = 0 };
        if (cpu_kernels[i]->reject(p, target)) continue;
        cpu_kernels[i]->tactics(p, target, &sink);
        for (uint32_t j = 0; j < sink.count && count < ENTRANTS; j++)
            list[count++] = (entrant){ cpu_kernels[i], sink.at[j], INFINITY };
    }
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        for (uint32_t i = 0; i < count; i++) {
            tune_time time = { 0 };
            TRY(tune_bench_time(b, list[i].kernel, &list[i].tactic, 0, &time));
            if (time.ns < list[i].least) list[i].least = time.ns;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        text name;
        text_init(&name, e);
        list[i].kernel->print(&list[i].tactic, &name);
        (void)printf("    %12.1f us  %s %.*s\n", list[i].least / 1e3, list[i].kernel->name, (int)name.length, name.at);
        text_deinit(&name);
    }
    return SINTER_OK;
}

static sinter_status time_all(env *e, const tune_options *o, bool is_all, const char *line)
{
    arena a;
    arena_init(&a, e);
    scan s = scan_of(line, strlen(line));
    problem *p = NULL;
    const char *why = NULL;
    if (!problem_parse(&a, &s, &p, &why)) {
        (void)printf("%s\n    does not parse: %s\n", line, why ? why : "");
        arena_deinit(&a);
        return SINTER_OK;
    }
    kernel_target target;
    o->backend->target(o->device, &target);
    tune_bench *b = NULL;
    sinter_status status = tune_bench_create(e, p, o, 1e6, &b);
    double reference = 0;
    (void)printf("%s\n", line);
    if (is_all && status == SINTER_OK) status = time_in_turns(e, b, p, &target);
    for (uint32_t i = is_all ? 0 : cpu_kernels_count; i-- > 0 && status == SINTER_OK;) {
        const kernel *k = cpu_kernels[i];
        tactic_sink sink = { .count = 0 };
        tune_time time = { 0 };
        if (k->reject(p, &target)) continue;
        k->tactics(p, &target, &sink);
        if (!sink.count) continue;
        status = tune_bench_time(b, k, &sink.at[0], 0, &time);
        if (i + 1 == cpu_kernels_count) reference = time.ns;
        if (status == SINTER_OK)
            (void)printf("    %12.1f us  %7.1f x  %s\n", time.ns / 1e3, reference / time.ns, k->name);
    }
    tune_bench_destroy(b);
    arena_deinit(&a);
    return status;
}

int main(int argc, char **argv)
{
    static env e;
    static sinter_error error;
    env_init(&e, NULL, &error);
    device *d = NULL;
    timing_cache *cache = NULL;
    const device_options options = { .isa = os_env("SINTER_ISA"), .threads = 1 };
    tune_options o = { .backend = &cpu_backend, .threads = 1 };
    sinter_status s = o.backend->open(&e, &options, &d);
    if (s == SINTER_OK) s = timing_cache_create(&e, &cache);
    o.device = d;
    o.cache = cache;
    const bool is_all = argc > 1 && !strcmp(argv[1], "--all");
    for (int i = 1 + is_all; i < argc && s == SINTER_OK; i++) {
        FILE *f = fopen(argv[i], "r");
        char line[4096];
        while (f && s == SINTER_OK && fgets(line, sizeof line, f)) {
            line[strcspn(line, "\n")] = 0;
            if (line[0] && line[0] != '#') s = time_all(&e, &o, is_all, line);
        }
        if (f) (void)fclose(f);
    }
    if (s != SINTER_OK) (void)fprintf(stderr, "%s\n", error.text);
    timing_cache_destroy(cache);
    if (d) o.backend->close(&e, d);
    return s != SINTER_OK;
}
