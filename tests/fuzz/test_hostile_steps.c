/* SPDX-License-Identifier: Apache-2.0 */
/* test_hostile_steps.c - what an engine's verifier asks of kernels, asked with numbers that no builder writes.
 *
 * A step of an engine is a line of text and the bytes of a tactic, and nothing has looked at either when a kernel is
 * asked whether it takes them. So each case line is damaged (a size, an attribute, the length of a list), and so is
 * each tactic (a byte). Kernels may refuse; of what they take they have to know the sizes and, on CUDA, name the code.
 */
#include "case_lines.h"
#include "cpu/cpu_kernels.h"
#include "cpu/isa.h"
#include "cuda/cuda_device.h"
#include "cuda/cuda_kernels.h"
#include "test.h"

#include <ctype.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE_MOST = 4096, EACH_LINE = 12, EACH_TACTIC = 6, SCALE_FULL = 20, SECONDS = 20, CPU_TACTICS = 3 };

/* What a child was at, for when it dies of it. */
typedef struct trace {
    char line[LINE_MOST];
    const char *kernel, *doing;
    long taken;
} trace;

/* ---- damage ---- */

/* Digits, or one of a list, put in the place of a number; now and then wherever the same number stands, since sizes
 * that go together may be wrong together. */
static void damage_line(case_rig *r, const char *from, char *to)
{
    static const char *const numbers[] = { "0",
                                           "1",
                                           "2",
                                           "3",
                                           "5",
                                           "8",
                                           "63",
                                           "127",
                                           "-1",
                                           "-7",
                                           "65536",
                                           "2147483647",
                                           "2147483648",
                                           "4611686018427387904",
                                           "1,1",
                                           "0,",
                                           "4,4,4",
                                           "1..64/1@8",
                                           "1099511627776" };
    static const char digits[] = "0123456789";
    uint32_t at[LINE_MOST], count = 0;
    const size_t length = strlen(from);
    /* Programs end in quotes and have a test of their own. */
    for (uint32_t i = 1; from[i] && from[i] != '"'; i++)
        if (isdigit((unsigned char)from[i]) && strchr("[,=.@-", from[i - 1])) at[count++] = i;
    (void)snprintf(to, LINE_MOST, "%s", from);
    if (!count || length + 64 > LINE_MOST) return;
    const uint32_t chosen = at[case_below(r, count)];
    const char *number = numbers[case_below(r, COUNT_OF(numbers))];
    const bool is_everywhere = case_below(r, 3) == 0;
    const size_t size = strspn(from + chosen, digits);
    size_t length_to = 0;
    for (uint32_t i = 0, done = 0; i <= count; i++) {
        const uint32_t next = i < count ? at[i] : (uint32_t)length;
        length_to += (size_t)snprintf(to + length_to, LINE_MOST - length_to, "%.*s", (int)(next - done), from + done);
        done = next;
        const bool is_same =
            i < count && strspn(from + next, digits) == size && !memcmp(from + next, from + chosen, size);
        if (length_to + 64 + length - done > LINE_MOST || !(next == chosen || (is_everywhere && is_same))) continue;
        length_to += (size_t)snprintf(to + length_to, LINE_MOST - length_to, "%s", number);
        done += (uint32_t)size;
    }
}

/* ---- asking ---- */

static void ask_code(case_rig *r, const cuda_kernel *k, const problem *p, const tactic *t, const kernel_target *target)
{
    for (uint32_t i = 0; i < 8; i++) {
        text generated;
        text_init(&generated, &r->e);
        cuda_code c = { .generated = &generated };
        const bool is_there = k->code(p, t, target, i, &c);
        if (is_there) CHECK(c.source != NULL && c.entry != NULL && c.define_count <= CODE_DEFINES);
        text_deinit(&generated);
        if (!is_there) break;
    }
}

static void ask(case_rig *r, const kernel *k, const cuda_kernel *cuda, const problem *p, const tactic *t,
                const kernel_target *target, trace *now)
{
    now->doing = "check";
    if (k->check && !k->check(p, t)) return;
    now->taken++;
    text name;
    text_init(&name, &r->e);
    now->doing = "print";
    if (k->print) k->print(t, &name);
    text_deinit(&name);
    now->doing = "pack_size";
    for (uint32_t i = 0; k->pack_size && i < p->count_in; i++)
        if (p->in[i].is_const) (void)k->pack_size(p, t, i);
    now->doing = "workspace";
    if (k->workspace) (void)k->workspace(p, t, target->threads);
    if (!cuda) return;
    now->doing = "cost";
    (void)k->cost_ns(p, t, target);
    now->doing = "code";
    ask_code(r, cuda, p, t, target);
}

/* On the CPU a damaged problem is asked with the tactics of the undamaged one, as in a forged engine, and with a tactic
 * of zeros. own: a list of tactics for each CPU kernel, filled while the problem is undamaged. */
static void ask_all(case_rig *r, const problem *p, const kernel_target *target, bool is_cuda, tactic_sink *own,
                    bool is_good, trace *now)
{
    const uint32_t count = is_cuda ? cuda_kernels_count : cpu_kernels_count;
    for (uint32_t i = 0; i < count; i++) {
        const kernel *k = is_cuda ? cuda_kernels[i] : cpu_kernels[i];
        const cuda_kernel *cuda = is_cuda && k->where == KERNEL_ON_DEVICE ? (const cuda_kernel *)(const void *)k : NULL;
        now->kernel = k->name;
        now->doing = "reject";
        if (k->where == KERNEL_TRANSFER || !k->reject || k->reject(p, target)) continue;
        now->doing = "tactics";
        tactic_sink fresh = { .count = 0 }, *sink = is_cuda ? &fresh : &own[i];
        if ((is_cuda || is_good) && k->tactics) k->tactics(p, target, sink);
        if (!is_cuda) {
            sink->count = sink->count < CPU_TACTICS ? sink->count : CPU_TACTICS;
            sink->at[sink->count] = (tactic){ { 0 } };
        }
        for (uint32_t t = 0; t < sink->count + !is_cuda; t++) {
            ask(r, k, cuda, p, &sink->at[t], target, now);
            for (uint32_t n = 0; n < EACH_TACTIC; n++) {
                const tactic d = case_damage(r, &sink->at[t]);
                ask(r, k, cuda, p, &d, target, now);
            }
        }
    }
}

static void try_line(case_rig *r, const char *line, long times, uint64_t seed, trace *now)
{
    static const uint32_t chips[] = { 75, 80, 90, 120 };
    tactic_sink *own = calloc(cpu_kernels_count, sizeof *own);
    if (!own) return;
    r->seed = seed;
    for (long n = 0; n < times; n++) {
        const arena_mark mark = arena_save(&r->a);
        const char *why = NULL;
        if (n) damage_line(r, line, now->line);
        else (void)snprintf(now->line, sizeof now->line, "%s", line);
        scan s = scan_of(now->line, strlen(now->line));
        problem *p = NULL;
        now->kernel = "problem_parse";
        now->doing = "";
        if (problem_parse(&r->a, &s, &p, &why)) {
            kernel_target target = { 0 };
            if (cuda_chip_target(chips[n % 4], &target)) ask_all(r, p, &target, true, NULL, n == 0, now);
            const kernel_target cpu = { .isa = (uint32_t)((n + 2) % 3),
                                        .features = n % 2 ? 0 : ISA_FEATURES_ALL,
                                        .threads = 2,
                                        .flops = 1e11,
                                        .bandwidth = 1e10,
                                        .cache_l1 = 32768,
                                        .cache_l2 = 1 << 20 };
            ask_all(r, p, &cpu, false, own, n == 0, now);
        }
        arena_rewind(&r->a, mark);
    }
    free(own);
}

static void kernels_stand_what_engines_say(void)
{
    case_rig rig;
    case_lines lines = { 0 };
    case_rig_init(&rig);
    CHECK(case_lines_read_folder(&rig, "tests/conformance/cases", &lines) > 0);
    CHECK(case_lines_read_folder(&rig, "tests/cuda/cases", &lines) > 0);
    trace *now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!CHECK(now != MAP_FAILED)) return;
    const char *scale = getenv("SINTER_TEST_SCALE"), *seed = getenv("SINTER_TEST_SEED");
    const long times = EACH_LINE * (scale && strcmp(scale, "full") == 0 ? SCALE_FULL : 1);
    for (uint32_t i = 0; i < lines.count; i++) {
        (void)fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            (void)alarm(SECONDS);
            try_line(&rig, lines.at[i].at, times, (seed ? strtoul(seed, NULL, 10) : 1) * 1000003 + i, now);
            _exit(0);
        }
        int status = 0;
        if (!CHECK(child > 0 && waitpid(child, &status, 0) == child)) break;
        if (!CHECK_EQ(status, 0)) (void)printf("%s of %s: %s\n", now->doing, now->kernel, now->line);
    }
    CHECK(now->taken > 0);
    (void)munmap(now, sizeof *now);
    free(lines.at);
    case_rig_deinit(&rig);
}

static const test tests[] = { T(kernels_stand_what_engines_say), { 0 } };
TEST_MAIN(tests)
