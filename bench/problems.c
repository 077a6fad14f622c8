/* SPDX-License-Identifier: Apache-2.0 */
/* problems.c - times every CPU kernel that takes a problem, on one thread.
 *
 *     build/bench_problems FILE...        a problem a line, as in tests/conformance/cases; '#' begins a note
 *
 * One line a kernel: the time of its first tactic, and how many times faster than the reference that is. */
#include "base/env.h"
#include "base/os.h"
#include "cpu/backend_cpu.h"
#include "cpu/cpu_kernels.h"
#include "tune/tune.h"

#include <stdio.h>
#include <string.h>

static sinter_status time_all(env *e, const tune_options *o, const char *line)
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
    for (uint32_t i = cpu_kernels_count; i-- > 0 && status == SINTER_OK;) {
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
    for (int i = 1; i < argc && s == SINTER_OK; i++) {
        FILE *f = fopen(argv[i], "r");
        char line[4096];
        while (f && s == SINTER_OK && fgets(line, sizeof line, f)) {
            line[strcspn(line, "\n")] = 0;
            if (line[0] && line[0] != '#') s = time_all(&e, &o, line);
        }
        if (f) (void)fclose(f);
    }
    if (s != SINTER_OK) (void)fprintf(stderr, "%s\n", error.text);
    timing_cache_destroy(cache);
    if (d) o.backend->close(&e, d);
    return s != SINTER_OK;
}
