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
#include "backend/kernel.h"
#include "base/os.h"
#include "core/dtype.h"
#include "cpu/device.h"
#include "cpu/kernels.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { GUARD = 256, OPERANDS = 16 };

typedef struct runner {
    env e;
    arena a, scratch;
    uint64_t seed;
    bool is_verbose, is_small;
    cpu_pool *pool;
    long runs, failed;
    long reached[64];
} runner;

static uint64_t next_bits(runner *r)
{
    uint64_t x = r->seed += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static double unit(runner *r)
{
    return (double)(next_bits(r) >> 11) / 9007199254740992.0;
}

/* A buffer between guards, 64-byte aligned, all bytes `with`. */
static void *guarded(runner *r, size_t size, int with)
{
    const size_t total = size_align(size, 64) + 2 * GUARD;
    char *at = arena_alloc(&r->a, total, 64);
    if (!at) exit(2);
    memset(at, with, total);
    return at + GUARD;
}

static bool guards_hold(const void *data, size_t size, int with)
{
    const unsigned char *at = data;
    for (size_t i = 1; i <= GUARD; i++)
        if (*(at - i) != (unsigned char)with) return false;
    for (size_t i = size; i < size_align(size, 64) + GUARD; i++)
        if (at[i] != (unsigned char)with) return false;
    return true;
}

/* The operand at opt; strided ones get a gap after each run of their innermost axis. Returns its bytes in memory. */
static size_t operand_view(const problem_operand *o, view *v)
{
    *v = (view){ .dtype = o->dtype, .rank = o->rank };
    if (o->dtype == SINTER_DTYPE_NONE) return 0;
    int64_t stride = o->is_gapped ? 3 : 1;
    for (uint32_t i = o->rank; i-- > 0;) {
        const uint32_t axis = o->order[i];
        v->dim[axis] = o->dim[axis].opt;
        v->stride[axis] = stride;
        stride *= v->dim[axis];
        if (o->is_strided && i + 1 == o->rank) stride += 5;
    }
    return ((size_t)stride * sinter_dtype_bits(o->dtype) + 7) / 8;
}

typedef enum data_kind { DATA_INTEGERS, DATA_RANDOM } data_kind;

static void fill(runner *r, const problem *p, uint32_t input, const view *v, data_kind kind)
{
    int64_t i[SINTER_RANK_MAX] = { 0 };
    const bool is_index = (p->op == OP_gather || p->op == OP_scatter_elements) && input == 1;
    const bool is_box = p->op == OP_roi_align && input == 1;
    /* Weights of recurrent layers are small, or else the layer amplifies what its first step rounded. */
    const bool is_weight = (p->op == OP_lstm || p->op == OP_gru || p->op == OP_rnn) && (input == 1 || input == 2);
    const double scale = is_weight ? 0.4 / sqrt((double)(v->dim[2] > 0 ? v->dim[2] : 1)) : 1;
    int64_t limit = 0;
    if (is_index && p->op == OP_gather) limit = p->in[0].dim[((const attrs_gather *)p->attrs)->axis].opt;
    else if (is_index) limit = p->in[0].dim[((const attrs_scatter_elements *)p->attrs)->axis].opt;
    for (bool more = view_first(v->dim, v->rank, i); more; more = view_next(v->dim, v->rank, i)) {
        const int64_t at = view_offset(v, i);
        const double u = unit(r);
        if (is_index) view_store_i64(v, at, (int64_t)(u * 2 * (double)limit) - limit);
        else if (is_box) view_store_f64(v, at, i[1] < 2 ? u * 10 - 3 : u * 20); /* some reach out of the image */
        else if (p->op == OP_roi_align && input == 2) view_store_i64(v, at, (int64_t)(u * (double)p->in[0].dim[0].opt));
        else if (v->dtype == SINTER_DTYPE_BOOL) view_store_i64(v, at, u < 0.6);
        else if (!dtype_is_float(v->dtype))
            view_store_i64(v, at, (int64_t)(u * 9) - (dtype_is_signed(v->dtype) ? 4 : 0));
        else if (kind == DATA_INTEGERS) view_store_f64(v, at, scale * (double)((int64_t)(u * 7) - 3));
        else view_store_f64(v, at, scale * (r->is_small ? 0.5 + u * 1.5 : u * 4 - 2));
    }
}

/* Ops whose results on small integers are integers that f32 holds exactly. */
static bool is_exact(const problem *p)
{
    switch (p->op) {
    case OP_matmul:
    case OP_matmul_integer:
    case OP_conv_integer:
    case OP_conv:
    case OP_max_pool:
    case OP_gather:
    case OP_scatter_elements:
    case OP_conv_transpose:
    case OP_copy:
    case OP_reshape:
    case OP_transpose:
    case OP_slice:
    case OP_expand:
    case OP_concat:
    case OP_pad: break;
    default: return false;
    }
    if (!p->epilogue) return true;
    for (uint32_t i = 0; i < p->epilogue->count; i++) {
        const uint32_t op = p->epilogue->at[i].op;
        if (op < OP_SCALAR_COUNT && op != OP_add && op != OP_sub && op != OP_relu && op != OP_max && op != OP_min &&
            op != OP_clip)
            return false;
    }
    return true;
}

/* Kernels that transform their sums round as sums of this many times the terms would: results are within 8 eps
 * sqrt(terms) of the root mean square, on integers, too. A wrong index or factor is greater by orders of magnitude.
 * Where an epilogue bounds the results, the root mean square is that of sums of values as they are here. */
static const double transformed_terms = 16, product_rms = 4;

/* How many terms are summed into one result, roughly. */
static double terms_of(const problem *p, const view *in)
{
    switch (p->op) {
    case OP_conv: {
        double n = 1;
        for (uint32_t i = 1; i < in[1].rank; i++) n *= (double)in[1].dim[i];
        return n;
    }
    case OP_conv_transpose: return (double)view_count(&in[1]) / (double)in[1].dim[1];
    case OP_matmul: return (double)in[0].dim[in[0].rank - (((const attrs_matmul *)p->attrs)->trans_a ? 2u : 1u)];
    case OP_reduce:
    case OP_avg_pool:
    case OP_softmax:
    case OP_log_softmax:
    case OP_layer_norm:
    case OP_rms_norm:
    case OP_group_norm: return (double)view_count(&in[0]) / 4 + 4;
    case OP_attention: return (double)(in[0].dim[3] + in[2].dim[2]);
    case OP_lstm:
    case OP_gru:
    case OP_rnn: return 64 + (double)(in[1].dim[2] + in[2].dim[2]);
    default: return 8;
    }
}

static double epsilon(sinter_dtype t)
{
    return t == SINTER_DTYPE_F16    ? 1e-3
           : t == SINTER_DTYPE_BF16 ? 8e-3
           : t == SINTER_DTYPE_F64  ? 1e-15
           : dtype_is_float(t)      ? 1.2e-7
                                    : 0;
}

static bool compare(const problem *p, const view *got, const view *want, bool exact, double terms, double sum_rms,
                    char *why, size_t size)
{
    double rms = 0;
    const double count = (double)view_count(want);
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(want->dim, want->rank, i); more; more = view_next(want->dim, want->rank, i)) {
        const double w = view_load_f64(want, view_offset(want, i));
        rms += isfinite(w) ? w * w : 0;
    }
    rms = sqrt(rms / (count > 0 ? count : 1));
    if (rms < sum_rms) rms = sum_rms;
    const double within = epsilon(got->dtype) * 4,
                 spread = epsilon(got->dtype) * (4 + 2 * sqrt(terms)) * (rms + (p->op == OP_reduce ? 1 : 0));
    for (bool more = view_first(want->dim, want->rank, i); more; more = view_next(want->dim, want->rank, i)) {
        const double g = view_load_f64(got, view_offset(got, i)), w = view_load_f64(want, view_offset(want, i));
        if (g == w || (isnan(g) && isnan(w))) continue;
        if (!exact && fabs(g - w) <= within * fabs(w) + spread) continue;
        (void)snprintf(why, size, "element [%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "] is %.9g, wanted %.9g%s",
                       i[0], i[1], i[2], i[3], g, w, exact ? " exactly" : "");
        return false;
    }
    return true;
}

static bool is_mostly_zero(const view *v)
{
    int64_t zeros = 0, count = 0;
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(v->dim, v->rank, i); more; more = view_next(v->dim, v->rank, i), count++) {
        const double x = view_load_f64(v, view_offset(v, i));
        zeros += x == 0 || isnan(x);
    }
    return count > 8 && zeros * 10 > count * 9;
}

typedef struct trial {
    const problem *p;
    view in[OPERANDS], out[OPERANDS], want[OPERANDS];
    size_t out_size[OPERANDS];
} trial;

/* Nothing between the elements of a result was written. */
static bool gaps_hold(runner *r, const view *v, size_t size)
{
    const size_t bytes = sinter_dtype_bits(v->dtype) / 8;
    if (!bytes) return true;
    unsigned char *seen = arena_alloc(&r->a, size + 1, 1);
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(v->dim, v->rank, i); more; more = view_next(v->dim, v->rank, i))
        memset(seen + (size_t)view_offset(v, i) * bytes, 1, bytes);
    for (size_t k = 0; k < size; k++)
        if (!seen[k] && ((const unsigned char *)v->data)[k] != 0xFF) return false;
    return true;
}

static const char *run_kernel(runner *r, const kernel *k, const tactic *t, trial *x, bool threads, bool exact,
                              double terms, char *why, size_t size)
{
    const problem *p = x->p;
    const uint32_t workers = threads ? cpu_pool_parallel(r->pool)->threads : 1;
    if (!k->check(p, t)) return "check refuses a tactic that tactics gave";
    if (k->cost_ns) {
        const kernel_target target = cpu_target_of(isa_level_detect(), 1);
        const double cost = k->cost_ns(p, t, &target);
        if (!(cost > 0) || isinf(cost)) return "the cost is no positive number";
    }
    void *in[OPERANDS] = { 0 }, *out[OPERANDS] = { 0 };
    view bound_in[OPERANDS], bound_out[OPERANDS];
    for (uint32_t i = 0; i < p->count_in; i++) {
        bound_in[i] = x->in[i];
        in[i] = x->in[i].data;
        if (!p->in[i].is_const) bound_in[i].data = NULL;
        const size_t packed = p->in[i].is_const && k->pack_size ? k->pack_size(p, t, i) : 0;
        if (!packed) continue;
        in[i] = guarded(r, packed, 0xFF);
        k->pack(p, t, i, &x->in[i], in[i]);
        if (!guards_hold(in[i], packed, 0xFF)) return "packing wrote beyond its size";
        bound_in[i].data = NULL;
    }
    for (uint32_t i = 0; i < p->count_out; i++) {
        x->out[i].data = guarded(r, x->out_size[i], 0xFF);
        bound_out[i] = x->out[i];
        out[i] = x->out[i].data;
        bound_out[i].data = NULL;
    }
    const size_t book = k->workspace ? k->workspace(p, t, workers) : 0, record = k->record_size(p, t);
    void *workspace = guarded(r, book, 0xFF), *to = guarded(r, record, 0xAB);
    if (k->bind(&r->e, p, t, p->attrs, bound_in, bound_out, to) != SINTER_OK) return r->e.error->text;
    if (!guards_hold(to, record, 0xAB)) return "bind wrote beyond the record";
    data_fault fault = { 0 };
    const kernel_run run = { .record = to,
                             .in = in,
                             .out = out,
                             .workspace = workspace,
                             .parallel = threads ? cpu_pool_parallel(r->pool) : NULL,
                             .fault = &fault,
                             .e = &r->e,
                             .scratch = &r->scratch };
    const arena_mark mark = arena_save(&r->scratch);
    const sinter_status s = k->run(&run);
    arena_rewind(&r->scratch, mark);
    if (s != SINTER_OK) return r->e.error->text;
    if (!guards_hold(workspace, book, 0xFF)) return "wrote beyond the workspace";
    const bool is_transformed = k->numerics == KERNEL_TRANSFORMED;
    const double sum_rms = is_transformed && p->epilogue ? product_rms * sqrt(terms) : 0;
    if (is_transformed) {
        exact = false;
        terms *= transformed_terms;
    }
    for (uint32_t i = 0; i < p->count_out; i++) {
        if (!guards_hold(out[i], x->out_size[i], 0xFF)) return "wrote outside a result";
        if (!gaps_hold(r, &x->out[i], x->out_size[i])) return "wrote between the elements of a result";
        if (!compare(p, &x->out[i], &x->want[i], exact, terms, sum_rms, why, size)) return why;
    }
    return NULL;
}

static void report(runner *r, const char *line, const char *kernel_name, const char *tactic_text, const char *why)
{
    r->failed++;
    (void)printf("FAIL %s\n     %s %s: %s\n", line, kernel_name, tactic_text, why);
}

static void run_kernels(runner *r, const char *line, trial *x, bool exact)
{
    const problem *p = x->p;
    const double terms = terms_of(p, x->in);
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
                const arena_mark mark = arena_save(&r->a);
                char why[256];
                text name;
                text_init(&name, &r->e);
                if (k->print) k->print(&sink.at[i], &name);
                const char *wrong =
                    run_kernel(r, k, &sink.at[i], x, i % 2 == 1 || sink.count == 1, exact, terms, why, sizeof why);
                r->runs++;
                if (wrong) report(r, line, k->name, name.at ? name.at : "", wrong);
                if (r->is_verbose)
                    (void)printf("  %s %s %s\n", k->name, name.at ? name.at : "", wrong ? "FAILED" : "ok");
                text_deinit(&name);
                arena_rewind(&r->a, mark);
                *r->e.error = (sinter_error){ 0 };
            }
        }
    }
}

static void run_line(runner *r, const char *line, size_t length)
{
    const arena_mark mark = arena_save(&r->a);
    char *copy = arena_text(&r->a, line, length);
    scan s = scan_of(line, length);
    problem *p = NULL;
    const char *why = NULL;
    if (!problem_parse(&r->a, &s, &p, &why) || p->count_in > OPERANDS || p->count_out > OPERANDS) {
        report(r, copy, "", "", why ? why : "has too many operands");
        return;
    }
    for (int kind = DATA_INTEGERS; kind <= DATA_RANDOM; kind++) {
        trial *x = ARENA_NEW(&r->a, trial, 1);
        x->p = p;
        for (uint32_t i = 0; i < p->count_in; i++) {
            const size_t size = operand_view(&p->in[i], &x->in[i]);
            if (!size) continue;
            x->in[i].data = guarded(r, size, 0xFF);
            fill(r, p, i, &x->in[i], (data_kind)kind);
        }
        for (uint32_t i = 0; i < p->count_out; i++) {
            x->out_size[i] = operand_view(&p->out[i], &x->out[i]);
            (void)operand_view(&p->out[i], &x->want[i]);
            x->want[i].data = guarded(r, x->out_size[i], 0xFF);
        }
        data_fault fault = { 0 };
        ref_call c = { .e = &r->e,
                       .op = p->op,
                       .attrs = p->attrs,
                       .count_in = p->count_in,
                       .count_out = p->count_out,
                       .in = x->in,
                       .out = x->want,
                       .program = p->op == OP_pointwise ? p->epilogue : NULL,
                       .scratch = &r->scratch,
                       .fault = &fault };
        const arena_mark scratch = arena_save(&r->scratch);
        const sinter_status status = problem_reference(p, &c);
        arena_rewind(&r->scratch, scratch);
        if (status != SINTER_OK) {
            report(r, copy, "reference", "", r->e.error->text);
            *r->e.error = (sinter_error){ 0 };
            break;
        }
        if (is_mostly_zero(&x->want[0]))
            report(r, copy, "reference", "", "the result is mostly zero or not a number: the case proves nothing");
        run_kernels(r, copy, x, kind == DATA_INTEGERS && is_exact(p));
    }
    arena_rewind(&r->a, mark);
}

static void run_file(runner *r, const char *path)
{
    os_file file = { 0 };
    if (os_file_read(&r->e, path, 1u << 24, &file) != SINTER_OK) {
        report(r, path, "", "", r->e.error->text);
        return;
    }
    const char *at = (const char *)file.data, *end = at + file.size;
    r->is_small = false;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        const size_t length = (size_t)(stop - at);
        if (length > 2 && !memcmp(at, "#! small", 8)) {
            r->is_small = true;
        } else if (length && *at != '#') {
            if (r->is_verbose) (void)printf("%.*s\n", (int)length, at);
            r->seed = 1;
            run_line(r, at, length);
            r->is_small = false;
        }
        at = stop + 1;
    }
    os_file_close(&r->e, &file);
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
        if (strstr(f->d_name, ".txt")) names[count++] = arena_printf(&r->a, "%s/%s", folder, f->d_name);
    (void)closedir(d);
    qsort(names, (size_t)count, sizeof *names, by_name);
    for (int i = 0; i < count; i++) run_file(r, names[i]);
    return count;
}

int main(int argc, char **argv)
{
    static runner r;
    env_init(&r.e, NULL, NULL);
    arena_init(&r.a, &r.e);
    arena_init(&r.scratch, &r.e);
    int files = 0;
    if (cpu_pool_create(&r.e, 3, 0, &r.pool) != SINTER_OK) return 2;
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
    cpu_pool_destroy(&r.e, r.pool);
    arena_deinit(&r.scratch);
    arena_deinit(&r.a);
    return r.failed ? 1 : 0;
}
