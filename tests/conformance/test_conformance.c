/* SPDX-License-Identifier: Apache-2.0 */
/* test_conformance.c - every kernel of the CPU against the reference, on the problems of cases/<op>.txt.
 *
 *     conformance_test_conformance [-v] [FILE...]         all files of the folder where none is named
 *
 * A line is a problem; lines that begin with # are notes. "#! small" before a line keeps its random values in [0.5, 2):
 * for ops that are steep elsewhere. Each problem runs on every kernel that does not reject it, with every tactic, at
 * every instruction set of this machine: first with small integers, which f32 sums hold exactly (where the op is
 * linear, results must be equal), then with random values inside a tolerance. Results stand between guards and begin as
 * NaN, so does workspace. A reference result that is mostly zero proves nothing and is a failure, and so is a kernel
 * that no case reaches, unless files were left out. */
#include "case_rig.h"

#include "backend/kernel.h"
#include "base/os.h"
#include "core/dtype.h"
#include "cpu/device.h"
#include "cpu/kernels.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct runner {
    case_rig rig;
    bool is_verbose;
    cpu_pool *pool;
    long runs, failed;
    long reached[64];
} runner;

/* Kernels that transform their sums round as sums of this many times the terms would: results are within 8 eps
 * sqrt(terms) of the root mean square, on integers, too. A wrong index or factor is greater by orders of magnitude.
 * Where an epilogue bounds the results, the root mean square is that of sums of values as they are here. */
static const double transformed_terms = 16, product_rms = 4;

static const char *run_kernel(runner *r, const kernel *k, const tactic *t, case_trial *x, bool threads, char *why,
                              size_t size)
{
    const problem *p = x->p;
    double terms = x->terms;
    bool exact = x->is_exact;
    const uint32_t workers = threads ? cpu_pool_parallel(r->pool)->threads : 1;
    if (!k->check(p, t)) return "check refuses a tactic that tactics gave";
    if (k->cost_ns) {
        const kernel_target target = cpu_target_of(isa_level_detect(), 1);
        const double cost = k->cost_ns(p, t, &target);
        if (!(cost > 0) || isinf(cost)) return "the cost is no positive number";
    }
    void *in[CASE_OPERANDS] = { 0 }, *out[CASE_OPERANDS] = { 0 };
    view bound_in[CASE_OPERANDS], bound_out[CASE_OPERANDS];
    for (uint32_t i = 0; i < p->count_in; i++) {
        bound_in[i] = x->in[i];
        in[i] = x->in[i].data;
        if (!p->in[i].is_const) bound_in[i].data = NULL;
        const size_t packed = p->in[i].is_const && k->pack_size ? k->pack_size(p, t, i) : 0;
        if (!packed) continue;
        in[i] = case_guarded(&r->rig, packed, 0xFF);
        k->pack(p, t, i, &x->in[i], in[i]);
        if (!case_guards_hold(in[i], packed, 0xFF)) return "packing wrote beyond its size";
        bound_in[i].data = NULL;
    }
    for (uint32_t i = 0; i < p->count_out; i++) {
        x->out[i].data = case_guarded(&r->rig, x->out_size[i], 0xFF);
        bound_out[i] = x->out[i];
        out[i] = x->out[i].data;
        bound_out[i].data = NULL;
    }
    const size_t book = k->workspace ? k->workspace(p, t, workers) : 0, record = k->record_size(p, t);
    void *workspace = case_guarded(&r->rig, book, 0xFF), *to = case_guarded(&r->rig, record, 0xAB);
    if (k->bind(&r->rig.e, p, t, p->attrs, bound_in, bound_out, to) != SINTER_OK) return r->rig.e.error->text;
    if (!case_guards_hold(to, record, 0xAB)) return "bind wrote beyond the record";
    data_fault fault = { 0 };
    const kernel_run run = { .record = to,
                             .in = in,
                             .out = out,
                             .workspace = workspace,
                             .parallel = threads ? cpu_pool_parallel(r->pool) : NULL,
                             .fault = &fault,
                             .e = &r->rig.e,
                             .scratch = &r->rig.scratch };
    const arena_mark mark = arena_save(&r->rig.scratch);
    const sinter_status s = k->run(&run);
    arena_rewind(&r->rig.scratch, mark);
    if (s != SINTER_OK) return r->rig.e.error->text;
    if (!case_guards_hold(workspace, book, 0xFF)) return "wrote beyond the workspace";
    const bool is_transformed = k->numerics == KERNEL_TRANSFORMED;
    const double sum_rms = is_transformed && p->epilogue ? product_rms * sqrt(terms) : 0;
    if (is_transformed) {
        exact = false;
        terms *= transformed_terms;
    }
    for (uint32_t i = 0; i < p->count_out; i++) {
        if (!case_guards_hold(out[i], x->out_size[i], 0xFF)) return "wrote outside a result";
        if (!case_gaps_hold(&r->rig, &x->out[i], x->out_size[i])) return "wrote between the elements of a result";
        if (case_compare(x, i, exact, terms, sum_rms, why, size)) return why;
    }
    return NULL;
}

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
        for (isa_level isa = ISA_PLAIN; isa <= isa_level_detect(); isa++) {
            const kernel_target target = cpu_target_of(isa, 1);
            const char *rejected = k->reject(p, &target);
            if (rejected) {
                if (r->is_verbose && isa == ISA_PLAIN) (void)printf("  %s rejects: %s\n", k->name, rejected);
                continue;
            }
            tactic_sink sink = { .count = 0 };
            k->tactics(p, &target, &sink);
            r->reached[ki]++;
            if (!sink.count) report(r, line, k->name, "", "gives no tactic");
            for (uint32_t i = 0; i < sink.count; i++) {
                const arena_mark mark = arena_save(&r->rig.a);
                char why[256];
                text name;
                text_init(&name, &r->rig.e);
                if (k->print) k->print(&sink.at[i], &name);
                const char *wrong = run_kernel(r, k, &sink.at[i], x, i % 2 == 1 || sink.count == 1, why, sizeof why);
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

static void run_line(runner *r, const char *line, size_t length)
{
    const arena_mark mark = arena_save(&r->rig.a);
    char *copy = arena_text(&r->rig.a, line, length);
    const char *why = NULL;
    const problem *p = case_parse(&r->rig, line, length, &why);
    if (!p) {
        report(r, copy, "", "", why);
        return;
    }
    for (int kind = CASE_INTEGERS; kind <= CASE_RANDOM; kind++) {
        case_trial *x = ARENA_NEW(&r->rig.a, case_trial, 1);
        why = case_make(&r->rig, p, (case_data)kind, 1, x);
        if (why) {
            report(r, copy, "reference", "", why);
            *r->rig.e.error = (sinter_error){ 0 };
            break;
        }
        run_kernels(r, copy, x);
    }
    arena_rewind(&r->rig.a, mark);
}

static void run_file(runner *r, const char *path)
{
    os_file file = { 0 };
    if (os_file_read(&r->rig.e, path, 1u << 24, &file) != SINTER_OK) {
        report(r, path, "", "", r->rig.e.error->text);
        return;
    }
    const char *at = (const char *)file.data, *end = at + file.size;
    r->rig.is_small = false;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        const size_t length = (size_t)(stop - at);
        if (length > 2 && !memcmp(at, "#! small", 8)) {
            r->rig.is_small = true;
        } else if (length && *at != '#') {
            if (r->is_verbose) (void)printf("%.*s\n", (int)length, at);
            r->rig.seed = 1;
            run_line(r, at, length);
            r->rig.is_small = false;
        }
        at = stop + 1;
    }
    os_file_close(&r->rig.e, &file);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every file of the folder, by name. */
static int run_folder(runner *r, const char *folder)
{
    char *names[128];
    int count = 0;
    DIR *d = opendir(folder);
    if (!d) return 0;
    for (const struct dirent *f; (f = readdir(d)) != NULL && count < 128;)
        if (strstr(f->d_name, ".txt")) names[count++] = arena_printf(&r->rig.a, "%s/%s", folder, f->d_name);
    (void)closedir(d);
    qsort(names, (size_t)count, sizeof *names, by_name);
    for (int i = 0; i < count; i++) run_file(r, names[i]);
    return count;
}

int main(int argc, char **argv)
{
    static runner r;
    case_rig_init(&r.rig);
    int files = 0;
    if (cpu_pool_create(&r.rig.e, 3, 0, &r.pool) != SINTER_OK) return 2;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-v")) r.is_verbose = true;
        else run_file(&r, argv[i]), files++;
    }
    const bool is_all = !files;
    if (is_all) files = run_folder(&r, SINTER_SOURCE_DIR "/tests/conformance/cases");
    for (uint32_t i = 0; is_all && i + 1 < cpu_kernels_count; i++)
        if (!r.reached[i]) report(&r, "(no case)", cpu_kernels[i]->name, "", "is reached by no case");
    if (!files) report(&r, "(no file)", "", "", "there are no cases");
    (void)printf("%ld runs, %ld failed\n", r.runs, r.failed);
    cpu_pool_destroy(&r.rig.e, r.pool);
    case_rig_deinit(&r.rig);
    return r.failed ? 1 : 0;
}
