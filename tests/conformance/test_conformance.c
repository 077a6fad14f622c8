/* SPDX-License-Identifier: Apache-2.0 */
/* test_conformance.c - every kernel of the CPU against the reference, on the problems of cases/<op>.txt.
 *
 *     conformance_test_conformance [-v] [FILE...]         all files of the folder where none is named
 *
 * A line is a problem; lines that begin with # are notes. "#! small" before a line keeps its random values in [0.5, 2):
 * for ops that are steep elsewhere. Each problem runs on every kernel that does not reject it, with every tactic, at
 * every instruction set of this machine: first with small integers, which f32 sums hold exactly (where the op is
 * linear, results must be equal), then with random values inside a tolerance, then with special values among them
 * (SINTER_TEST_SCALE=full: 10 times), then with rows of very different sizes, each held to its own size. Lines of all
 * scalar functions and types, which case_scalar.c writes, follow with special values alone. Results stand between
 * guards and begin as NaN, so does workspace. A reference result that is mostly zero proves nothing and is a failure,
 * and so is a kernel that no case reaches, unless files were left out. Where kernels take a problem in f32 and none
 * takes it in f16, its op must be one that is done in f32 between conversions. */
#include "case_lines.h"
#include "kernel_run.h"

#include "backend/kernel.h"
#include "cpu/cpu_device.h"
#include "cpu/cpu_kernels.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct runner {
    case_rig rig;
    bool is_verbose;
    cpu_pool *pool;
    long runs, failed;
    long reached[64];
} runner;

static void report(runner *r, const char *line, const char *kernel_name, const char *tactic_text, const char *why)
{
    r->failed++;
    (void)printf("FAIL %s\n     %s %s: %s\n", line, kernel_name, tactic_text, why);
}

static void run_kernels(runner *r, const char *line, case_trial *x)
{
    const problem *p = x->p;
    for (uint32_t ki = 0; ki + 1 < cpu_kernels_count; ki++) {
        const kernel *k = cpu_kernels[ki];
        /* An infinity makes NaN of all results of its tile, or of what a subnormal number is multiplied with:
         * docs/numerics.md says so. */
        if (x->is_special && k->numerics != KERNEL_EXACT_SUMS) continue;
        isa_choice isa;
        tactic_sink before = { .count = 0 };
        for (uint32_t at = 0; isa_choice_in(kernel_machine(), at, &isa); at++) {
            const kernel_target target = cpu_target_of(isa, 1);
            const char *rejected = k->reject(p, &target);
            if (rejected) {
                if (r->is_verbose && isa.level == ISA_PLAIN) (void)printf("  %s rejects: %s\n", k->name, rejected);
                continue;
            }
            tactic_sink sink = { .count = 0 };
            k->tactics(p, &target, &sink);
            r->reached[ki]++;
            if (!sink.count) report(r, line, k->name, "", "gives no tactic");
            kernel_new_tactics(&sink, &before);
            for (uint32_t i = 0; i < sink.count; i++) {
                const arena_mark mark = arena_save(&r->rig.a);
                char why[256];
                text name;
                text_init(&name, &r->rig.e);
                if (k->print) k->print(&sink.at[i], &name);
                const char *wrong =
                    kernel_run_case(&r->rig, k, &sink.at[i], p, x,
                                    i % 2 == 1 || sink.count == 1 ? cpu_pool_parallel(r->pool) : NULL, why, sizeof why);
                r->runs++;
                if (wrong) report(r, line, k->name, name.at ? name.at : "", wrong);
                if (r->is_verbose)
                    (void)printf("  %s %s %s\n", k->name, name.at ? name.at : "", wrong ? "FAILED" : "ok");
                text_deinit(&name);
                arena_rewind(&r->rig.a, mark);
                *r->rig.e.error = (sinter_error){ 0 };
            }
        }
    }
}

static void run_data(runner *r, const char *line, const problem *p, case_data kind, uint64_t seed)
{
    const arena_mark mark = arena_save(&r->rig.a);
    case_trial *x = ARENA_NEW(&r->rig.a, case_trial, 1);
    r->rig.seed = seed;
    const char *why = case_make(&r->rig, p, kind, 1, x);
    if (!why) run_kernels(r, line, x);
    else report(r, line, "reference", "", why);
    *r->rig.e.error = (sinter_error){ 0 };
    arena_rewind(&r->rig.a, mark);
}

static bool is_taken(const problem *p)
{
    isa_choice isa;
    for (uint32_t at = 0; isa_choice_in(kernel_machine(), at, &isa); at++) {
        const kernel_target target = cpu_target_of(isa, 1);
        for (uint32_t ki = 0; ki + 1 < cpu_kernels_count; ki++)
            if (!cpu_kernels[ki]->reject(p, &target)) return true;
    }
    return false;
}

/* The same work on operands of f16 must not be left to the reference. */
static void check_halves(runner *r, const case_line *l, const problem *p)
{
    const char *why = NULL;
    if (p->epilogue || p->prologue || !is_taken(p)) return;
    char *line = ARENA_NEW(&r->rig.a, char, strlen(l->at) + 1);
    if (!line) return;
    memcpy(line, l->at, strlen(l->at) + 1);
    for (char *at = line; (at = strstr(at, "f32[")) != NULL; at++) memcpy(at, "f16", 3);
    const problem *half = case_parse(&r->rig, line, strlen(line), &why);
    if (half && !is_taken(half) && !op_widens(p->op))
        report(r, line, "reference", "", "alone takes it in f16, and is not done in f32 between conversions");
    *r->rig.e.error = (sinter_error){ 0 };
}

static void run_line(runner *r, const case_line *l)
{
    const arena_mark mark = arena_save(&r->rig.a);
    const char *why = NULL;
    if (r->is_verbose) (void)printf("%s\n", l->at);
    r->rig.is_small = l->is_small;
    const problem *p = case_parse(&r->rig, l->at, strlen(l->at), &why);
    if (!p) report(r, l->at, "", "", why);
    if (p && !l->is_special) check_halves(r, l, p);
    for (int kind = l->is_special ? CASE_SPECIAL : CASE_INTEGERS; p && kind <= CASE_ROWS; kind++) {
        if (kind == CASE_ROWS && !case_row_axes(p)) continue;
        for (long seed = 1; seed <= (kind >= CASE_SPECIAL ? test_scale(2, 10) : 1); seed++)
            run_data(r, l->at, p, (case_data)kind, (uint64_t)seed);
    }
    arena_rewind(&r->rig.a, mark);
}

int main(int argc, char **argv)
{
    static runner r;
    case_rig_init(&r.rig);
    case_lines lines = { 0 };
    if (cpu_pool_create(&r.rig.e, &(cpu_pool_options){ .threads = 3 }, &r.pool) != SINTER_OK) return 2;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-v")) {
            r.is_verbose = true;
        } else {
            const char *wrong = case_lines_read(&r.rig, argv[i], &lines);
            if (wrong) report(&r, argv[i], "", "", wrong);
        }
    }
    const bool is_all = !lines.count && !r.failed;
    if (is_all) (void)case_lines_read_folder(&r.rig, "tests/conformance/cases", &lines);
    if (is_all) case_lines_scalar(&r.rig, &lines);
    if (is_all) case_lines_packed(&r.rig, &lines, test_is_full() ? 10 : 60, 1);
    for (uint32_t i = 0; i < lines.count; i++) run_line(&r, &lines.at[i]);
    for (uint32_t i = 0; is_all && i + 1 < cpu_kernels_count; i++)
        if (!r.reached[i] && kernel_is_for_machine(cpu_kernels[i]))
            report(&r, "(no case)", cpu_kernels[i]->name, "", "is reached by no case");
    if (!lines.count) report(&r, "(no file)", "", "", "there are no cases");
    (void)printf("%ld runs, %ld failed\n", r.runs, r.failed);
    cpu_pool_destroy(&r.rig.e, r.pool);
    free(lines.at);
    case_rig_deinit(&r.rig);
    return r.failed ? 1 : 0;
}
