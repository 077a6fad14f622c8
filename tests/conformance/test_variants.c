/* SPDX-License-Identifier: Apache-2.0 */
/* test_variants.c - every kernel of the CPU on problems made of the problems of the case files (case_variants.h): axes
 * of size 0 and 1, other sizes, permuted orders, gaps, and kernels chosen for a range of sizes and bound inside it.
 *
 *     conformance_test_variants [-v] [-n COUNT] [-s SEED] [FILE | LINE ...]
 *
 * -n: so many random variants of each line beside the systematic ones. Files: those of tests/conformance/cases, and of
 * tests/cuda/cases where SINTER_TEST_SCALE=full. A kernel that takes a problem has to bind it at
 * every size in its ranges and to give the reference's results. */
#include "case_lines.h"
#include "case_variants.h"
#include "kernel_run.h"

#include "cpu/cpu_device.h"
#include "cpu/cpu_kernels.h"
#include "test.h"

#include <math.h>

static const double most_operations = 2e5;

/* Kernels whose problems have even sizes and more operations than variants may, which the case files alone reach, and
 * those that this machine cannot run. */
static bool is_out_of_reach(const kernel *k)
{
    return !strcmp(k->name, "cpu_strassen") || !kernel_is_for_machine(k);
}

typedef struct runner {
    case_rig rig;
    cpu_pool *pool;
    uint32_t random;
    uint64_t seed;
    bool is_verbose;
    long variants, runs, failed;
    long reached[64];
} runner;

static void report(runner *r, const case_line *l, const case_variant *v, const char *kernel_name,
                   const char *tactic_text, const char *why)
{
    text t;
    text_init(&t, &r->rig.e);
    r->failed++;
    problem_print(v->sized, &t);
    (void)printf("FAIL %s\n", t.at ? t.at : "");
    text_deinit(&t);
    text_init(&t, &r->rig.e);
    problem_print(v->chosen, &t);
    if (v->chosen != v->sized) (void)printf("  chosen for %s\n", t.at ? t.at : "");
    text_deinit(&t);
    (void)printf("     %s %s: %s\n     (%s:%u)\n", kernel_name, tactic_text, why, l->from ? l->from : "", l->number);
}

static void run_kernel(runner *r, const case_line *l, const case_variant *v, uint32_t ki, isa_choice isa, case_trial *x,
                       bool has_threads, tactic_sink *before)
{
    const kernel *k = cpu_kernels[ki];
    const kernel_target target = cpu_target_of(isa, 1);
    if (k->reject(v->chosen, &target)) return;
    tactic_sink sink = { .count = 0 };
    k->tactics(v->chosen, &target, &sink);
    r->reached[ki]++;
    if (!sink.count) report(r, l, v, k->name, "", "gives no tactic");
    kernel_new_tactics(&sink, before);
    for (uint32_t i = 0; i < sink.count; i++) {
        const arena_mark mark = arena_save(&r->rig.a);
        char why[256];
        text name;
        text_init(&name, &r->rig.e);
        if (k->print) k->print(&sink.at[i], &name);
        const char *wrong = kernel_run_case(&r->rig, k, &sink.at[i], v->chosen, x,
                                            has_threads ? cpu_pool_parallel(r->pool) : NULL, why, sizeof why);
        r->runs++;
        if (wrong) report(r, l, v, k->name, name.at ? name.at : "", wrong);
        text_deinit(&name);
        arena_rewind(&r->rig.a, mark);
        *r->rig.e.error = (sinter_error){ 0 };
    }
}

static void run_variant(runner *r, const case_line *l, const case_variant *v, uint32_t number)
{
    if (case_operations(v->sized) > most_operations) return;
    case_trial *x = ARENA_NEW(&r->rig.a, case_trial, 1);
    if (r->is_verbose) {
        text t;
        text_init(&t, &r->rig.e);
        problem_print(v->sized, &t);
        (void)printf("%s\n", t.at ? t.at : "");
        text_deinit(&t);
    }
    /* What the reference refuses is no problem. */
    const char *why = case_make_chosen(&r->rig, v->sized, v->chosen, number % 2 ? CASE_INTEGERS : CASE_RANDOM, 1, x);
    *r->rig.e.error = (sinter_error){ 0 };
    if (why || x->is_faulty) return;
    r->variants++;
    isa_choice isa;
    for (uint32_t ki = 0; ki + 1 < cpu_kernels_count; ki++) {
        tactic_sink before = { .count = 0 };
        for (uint32_t at = 0; isa_choice_in(kernel_machine(), at, &isa); at++)
            run_kernel(r, l, v, ki, isa, x, number % 3 == 0, &before);
    }
}

static void run_line(runner *r, const case_line *l)
{
    const arena_mark mark = arena_save(&r->rig.a);
    const char *why = NULL;
    r->rig.seed = r->seed;
    r->rig.is_small = l->is_small;
    r->rig.is_any = true;
    const problem *p = case_parse(&r->rig, l->at, strlen(l->at), &why);
    case_variants *v = p ? case_variants_of(&r->rig, p) : NULL;
    const uint32_t count = v ? case_variants_systematic(v) + r->random : 0;
    for (uint32_t i = 0; i < count; i++) {
        const arena_mark here = arena_save(&r->rig.a);
        case_variant variant;
        if (case_variants_next(v, &variant)) run_variant(r, l, &variant, i);
        arena_rewind(&r->rig.a, here);
    }
    arena_rewind(&r->rig.a, mark);
}

int main(int argc, char **argv)
{
    static runner r;
    case_lines lines = { 0 };
    case_rig_init(&r.rig);
    r.random = test_is_full() ? 40 : 2;
    r.seed = 1;
    if (cpu_pool_create(&r.rig.e, &(cpu_pool_options){ .threads = 3 }, &r.pool) != SINTER_OK) return 2;
    for (int i = 1; i < argc; i++) {
        const bool has_next = i + 1 < argc;
        if (!strcmp(argv[i], "-v")) r.is_verbose = true;
        else if (!strcmp(argv[i], "-n") && has_next) r.random = (uint32_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "-s") && has_next) r.seed = (uint64_t)atoi(argv[++i]);
        else if (strstr(argv[i], "->")) case_lines_add(&lines, argv[i]);
        else if (case_lines_read(&r.rig, argv[i], &lines)) return 2;
    }
    const bool is_all = !lines.count;
    if (is_all) {
        (void)case_lines_read_folder(&r.rig, "tests/conformance/cases", &lines);
        if (test_is_full()) (void)case_lines_read_folder(&r.rig, "tests/cuda/cases", &lines);
    }
    for (uint32_t i = 0; i < lines.count; i++)
        if (!is_all || test_takes(i)) run_line(&r, &lines.at[i]);
    const bool is_whole = is_all && test_takes(1);
    for (uint32_t i = 0; is_whole && i + 1 < cpu_kernels_count; i++)
        if ((r.reached[i] == 0) != is_out_of_reach(cpu_kernels[i]))
            (void)printf("FAIL %s variant reaches %s\n", r.reached[i] ? "a" : "no", cpu_kernels[i]->name), r.failed++;
    (void)printf("%ld variants, %ld runs, %ld failed\n", r.variants, r.runs, r.failed);
    cpu_pool_destroy(&r.rig.e, r.pool);
    free(lines.at);
    case_rig_deinit(&r.rig);
    return r.failed ? 1 : 0;
}
