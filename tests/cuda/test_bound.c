/* SPDX-License-Identifier: Apache-2.0 */
/* test_bound.c - CUDA's rows bind whatever they take: on problems made of the problems of the case files
 * (case_variants.h), for each family of chips, every tactic. Nothing is compiled and nothing runs.
 *
 *     cuda_test_bound [-n COUNT] [-s SEED] [--kernel NAME] [FILE | LINE ...]
 *
 * -n: so many random variants of each line beside the systematic ones, and so many with sizes up to 2^33. What cuda_fit
 * refuses for the problem's ranges is not bound. A problem that the reference refuses at its
 * sizes may be refused; every other one has to give launches that a driver accepts. */
#include "case_lines.h"
#include "case_variants.h"
#include "cuda/cuda_device.h"
#include "cuda/fit.h"
#include "cuda/cuda_kernels.h"
#include "test.h"

typedef struct runner {
    case_rig rig;
    uint32_t random;
    uint64_t seed;
    const char *kernel_name;
    long variants, bound, failed;
} runner;

static void report(runner *r, const case_line *l, const case_variant *v, const char *kernel_name, const char *why)
{
    const problem *const at[2] = { v->sized, v->chosen };
    r->failed++;
    for (uint32_t i = 0; i < 2; i++) {
        text t;
        text_init(&t, &r->rig.e);
        problem_print(at[i], &t);
        (void)printf("%s %s\n", i ? "  chosen for" : "FAIL", t.at ? t.at : "");
        text_deinit(&t);
    }
    (void)printf("     %s: %s\n     (%s:%u)\n", kernel_name, why, l->from ? l->from : "", l->number);
}

/* NULL, or what a driver would say. */
static const char *check_record(const cuda_record *r)
{
    if (r->count > RECORD_LAUNCHES || r->args_size > RECORD_ARGS || r->patch_count > RECORD_PATCHES ||
        r->map_count > RECORD_MAPS)
        return "the record is fuller than it can be";
    for (uint32_t i = 0; i < r->count; i++) {
        const cuda_launch *l = &r->at[i];
        if (l->grid[0] > INT32_MAX || l->grid[1] > 65535 || l->grid[2] > 65535) return "a grid is too large";
        if (!l->block || l->block > 1024) return "a block has no thread, or too many";
        if (l->cluster > 1 && l->grid[0] % l->cluster) return "clusters do not divide the grid";
    }
    for (uint32_t i = 0; i < r->map_count; i++)
        for (uint32_t k = 0; k < r->map[i].rank; k++)
            if (!r->map[i].dim[k] || (!r->map[i].is_im2col && !r->map[i].box[k]))
                return "a tensor map of an axis without elements";
    return NULL;
}

static bool has_elements(const view *v, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (v[i].dtype != SINTER_DTYPE_NONE && view_count(&v[i]) > 0) return true;
    return false;
}

static bool is_refused_by_reference(runner *r, const case_variant *v)
{
    case_trial *x = ARENA_NEW(&r->rig.a, case_trial, 1);
    const char *why = case_make_chosen(&r->rig, v->sized, v->chosen, CASE_RANDOM, 16, x);
    *r->rig.e.error = (sinter_error){ 0 };
    return why != NULL;
}

static void bind_kernel(runner *r, const case_line *l, const case_variant *v, const kernel *k, const kernel_target *t,
                        bool is_huge)
{
    static cuda_record record;
    view in[CASE_OPERANDS] = { 0 }, out[CASE_OPERANDS] = { 0 };
    tactic_sink sink = { .count = 0 };
    sinter_error error;
    const problem *p = v->chosen;
    if (k->reject(p, t)) return;
    case_tactics(k, p, t, &sink);
    case_views(v->sized, p, 16, in, out);
    for (uint32_t i = 0; i < p->count_in; i++)
        if (p->in[i].is_const) in[i].data = arena_alloc(&r->rig.a, (size_t)view_count(&in[i]) * 8 + 64, 64);
    for (uint32_t i = 0; i < sink.count && has_elements(out, p->count_out); i++) {
        const char *wrong = NULL;
        memset(&record, 0, sizeof record);
        if (cuda_fit(k, p, &sink.at[i], &error)) continue;
        if (!k->check(p, &sink.at[i])) wrong = "check refuses a tactic that tactics gave";
        else if (k->bind(&r->rig.e, p, &sink.at[i], v->sized->attrs, in, out, &record) != SINTER_OK)
            wrong = arena_printf(&r->rig.a, "%s", r->rig.e.error->text);
        else wrong = check_record(&record);
        r->bound++;
        *r->rig.e.error = (sinter_error){ 0 };
        if (!wrong || (!is_huge && is_refused_by_reference(r, v))) continue;
        report(r, l, v, k->name, wrong);
        return;
    }
}

static void run_line(runner *r, const case_line *l)
{
    static const uint32_t chips[] = { 75, 80, 90, 120 };
    const arena_mark mark = arena_save(&r->rig.a);
    const char *why = NULL;
    r->rig.seed = r->seed;
    r->rig.is_any = true;
    const problem *p = case_parse(&r->rig, l->at, strlen(l->at), &why);
    case_variants *v = p ? case_variants_of(&r->rig, p) : NULL;
    const uint32_t count = v ? case_variants_systematic(v) + r->random : 0, all = v ? count + r->random : 0;
    for (uint32_t i = 0; i < all; i++) {
        const arena_mark here = arena_save(&r->rig.a);
        case_variant variant;
        kernel_target t;
        r->variants++;
        if ((i < count ? case_variants_next(v, &variant) : case_variants_huge(v, &variant)) &&
            cuda_chip_target(chips[i % COUNT_OF(chips)], &t))
            for (uint32_t ki = 0; ki < cuda_kernels_count; ki++) {
                const kernel *k = cuda_kernels[ki];
                if (k->where != KERNEL_ON_DEVICE || (r->kernel_name && !strstr(k->name, r->kernel_name))) continue;
                bind_kernel(r, l, &variant, k, &t, i >= count);
            }
        arena_rewind(&r->rig.a, here);
    }
    arena_rewind(&r->rig.a, mark);
}

int main(int argc, char **argv)
{
    static runner r;
    case_lines lines = { 0 };
    case_rig_init(&r.rig);
    r.random = test_is_full() ? 200 : 10;
    r.seed = 1;
    for (int i = 1; i < argc; i++) {
        const bool has_next = i + 1 < argc;
        if (!strcmp(argv[i], "-n") && has_next) r.random = (uint32_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "-s") && has_next) r.seed = (uint64_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--kernel") && has_next) r.kernel_name = argv[++i];
        else if (strstr(argv[i], "->")) case_lines_add(&lines, argv[i]);
        else if (case_lines_read(&r.rig, argv[i], &lines)) return 2;
    }
    if (!lines.count) {
        (void)case_lines_read_folder(&r.rig, "tests/conformance/cases", &lines);
        (void)case_lines_read_folder(&r.rig, "tests/cuda/cases", &lines);
    }
    for (uint32_t i = 0; i < lines.count; i++) run_line(&r, &lines.at[i]);
    (void)printf("%ld variants, %ld bound, %ld failed\n", r.variants, r.bound, r.failed);
    free(lines.at);
    case_rig_deinit(&r.rig);
    return r.failed || !r.bound ? 1 : 0;
}
