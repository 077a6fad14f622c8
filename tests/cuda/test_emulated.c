/* SPDX-License-Identifier: Apache-2.0 */
/* test_emulated.c - CUDA's kernels on a CPU against the reference, on problem lines.
 *
 *     cuda_test_emulated [-v] [--sm 75|80|90|120] [--kernel NAME] [--tactics N] [--damaged N] [--units N] [--jobs N]
 *                        [--scalar] [--packed SEED,COUNT] [FILE | LINE ...]
 *
 * Files of problem lines and single lines ("matmul:f16[5,7] ..."); none: every file of tests/conformance/cases and
 * tests/cuda/cases, and --scalar, which is the lines of all scalar functions and types. Each problem runs on every row
 * that takes it (or on NAME) with its tactics (--tactics: at most so many; 2 unless a kernel is named; --damaged: and
 * with so many for each that differ from it in a byte or two, where the row's check lets them pass, as an engine's
 * might; --units: as a chip of so many multiprocessors has them), on small integers and on random values, with threads
 * in both orders. Lines of files that need more than 20 million operations are left out unless their file or kernel is
 * named. Where nothing is named, at most 70 codes are compiled for sm_90, and 20 for sm_80 and sm_75 each, taken in
 * turns from the rows; SINTER_TEST_SCALE=full takes all.
 *
 * -v says what runs and what rejects. --jobs 0 runs all in this process: for a debugger. A failure prints the line,
 * row, tactic and what is wrong; results stand at the end of their pages, so a read behind an operand is a failure,
 * too, and so is an access to what is not constant before grid_wait(). */
#include "case_lines.h"
#include "base/asan.h"
#include "base/hash.h"
#include "base/os.h"
#include "cuda/cuda_device.h"
#include "cuda/cuda_kernels.h"
#include "emulate.h"
#include "test.h"

#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMBOS = 65536, KERNELS = 128, PAGE = 4096, CODES_QUICK = 70, CODES_OLDER = 20, SECONDS = 100, DAMAGED = 1000 };
static const double most_operations = 20e6;

typedef struct line {
    case_line text;
    pid_t child;
} line;
/* A row and a tactic for a line, and the codes that they need. */
typedef struct combo {
    uint32_t line, kernel, number, key_count; /* number: of the tactic, among the row's */
    tactic t;
    bool is_chosen;
    char key[EMULATED_CODES][EMULATED_KEY];
} combo;
typedef struct totals {
    long runs, failed;
    long reached[KERNELS];
} totals;

typedef struct runner {
    case_rig rig;
    kernel_target target;
    const char *kernel_name;
    uint32_t tactics, damaged, units, jobs;
    bool is_verbose, is_named;
    line *lines;
    combo *combos;
    uint32_t line_count, combo_count;
    uint32_t own_begin, own_end; /* the lines of tests/cuda/cases: some row of sm_90 takes each */
    totals *totals;              /* shared with children */
    long failed;
} runner;

static kernel_target target_of(uint32_t sm)
{
    kernel_target t = { .isa = sm };
    if (!cuda_chip_target(sm, &t)) exit(2);
    return t;
}

static void report(runner *r, const line *l, const char *kernel_name, const char *tactic_text, const char *why)
{
    (void)__sync_fetch_and_add(&r->totals->failed, 1);
    (void)printf("FAIL %s\n     %s %s: %s\n", l->text.at, kernel_name, tactic_text, why);
    if (l->text.number) (void)printf("     (%s:%u)\n", l->text.from, l->text.number);
}

/* ---- memory of the device: pages of its own for each operand, which ends where they end ---- */

typedef struct memory {
    unsigned char *pages, *data;
    size_t total, size;
} memory;

static memory memory_make(size_t size, size_t shift)
{
    memory m = { .size = size };
    m.total = (size_align(size + shift, 16) + 2 * CASE_GUARD + PAGE - 1) / PAGE * PAGE;
    unsigned char *at =
        mmap(NULL, m.total + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) exit(2);
    (void)mprotect(at, PAGE, PROT_NONE);
    (void)mprotect(at + PAGE + m.total, PAGE, PROT_NONE);
    m.pages = at + PAGE;
    m.data = m.pages + m.total - size_align(size + shift, 16) + shift;
    memset(m.pages, 0xFF, m.total);
    return m;
}

static void memory_free(memory *m)
{
    if (m->pages) (void)munmap(m->pages - PAGE, m->total + 2 * PAGE);
    *m = (memory){ 0 };
}

static bool memory_holds(const memory *m)
{
    for (const unsigned char *at = m->pages; at < m->data; at++)
        if (*at != 0xFF) return false;
    for (const unsigned char *at = m->data + m->size; at < m->pages + m->total; at++)
        if (*at != 0xFF) return false;
    return true;
}

/* Operands that are gapped may begin anywhere. */
static size_t shift_of(const problem_operand *o)
{
    return o->is_gapped ? sinter_dtype_bits(o->dtype) / 8 : 0;
}

typedef struct bound {
    memory in[CASE_OPERANDS], out[CASE_OPERANDS], workspace;
    runtime_region region[2 * CASE_OPERANDS + 1];
    char name[2 * CASE_OPERANDS][16];
    uint32_t regions;
    view view_in[CASE_OPERANDS], view_out[CASE_OPERANDS];
    void *in_at[CASE_OPERANDS], *out_at[CASE_OPERANDS];
} bound;

static void add_region(bound *b, const memory *m, bool is_const, const char *kind, uint32_t index)
{
    char *name = b->name[b->regions % (2 * CASE_OPERANDS)];
    (void)snprintf(name, sizeof b->name[0], "%s %u", kind, index);
    b->region[b->regions++] = (runtime_region){ name, m->pages, m->total, is_const };
}

/* NULL, or what is wrong with the row's packing. */
static const char *bind_operands(runner *r, const kernel *k, const tactic *t, case_trial *x, bound *b)
{
    const problem *p = x->p;
    for (uint32_t i = 0; i < p->count_in; i++) {
        b->view_in[i] = x->in[i];
        b->view_in[i].data = NULL;
        if (p->in[i].dtype == SINTER_DTYPE_NONE) continue;
        const size_t packed = p->in[i].is_const && k->pack_size ? k->pack_size(p, t, i) : 0;
        if (packed) {
            void *at = case_guarded(&r->rig, packed, 0xFF);
            k->pack(p, t, i, &x->in[i], at);
            if (!case_guards_hold(at, packed, 0xFF)) return "packing wrote beyond its size";
            b->in[i] = memory_make(packed, 0);
            memcpy(b->in[i].data, at, packed);
        } else {
            b->in[i] = memory_make(x->in_size[i], shift_of(&p->in[i]));
            if (x->in_size[i]) memcpy(b->in[i].data, x->in[i].data, x->in_size[i]);
            if (p->in[i].is_const) b->view_in[i].data = x->in[i].data;
        }
        b->in_at[i] = b->in[i].data;
        if (p->in[i].is_const) (void)mprotect(b->in[i].pages, b->in[i].total, PROT_READ);
        add_region(b, &b->in[i], p->in[i].is_const, "input", i);
    }
    for (uint32_t i = 0; i < p->count_out; i++) {
        b->view_out[i] = x->out[i];
        if (p->out[i].dtype == SINTER_DTYPE_NONE) continue;
        b->out[i] = memory_make(x->out_size[i], shift_of(&p->out[i]));
        if (kernel_updates(k, p, i) && x->out_size[i] == x->in_size[i])
            memcpy(b->out[i].data, x->in[i].data, x->in_size[i]);
        b->out_at[i] = x->out[i].data = b->out[i].data;
        add_region(b, &b->out[i], false, "result", i);
    }
    const size_t book = k->workspace ? k->workspace(p, t, 1) : 0;
    if (book) {
        b->workspace = memory_make(size_align(book, 64), 0);
        /* Its start has the alignment that is promised. */
        b->workspace.data = (unsigned char *)((uintptr_t)b->workspace.data & ~(uintptr_t)63);
        b->workspace.size = book;
        b->region[b->regions++] = (runtime_region){ "the workspace", b->workspace.pages, b->workspace.total, false };
    }
    return NULL;
}

static const char *check_results(runner *r, const kernel *k, case_trial *x, bound *b, char *why, size_t size)
{
    const problem *p = x->p;
    if (b->workspace.size && !memory_holds(&b->workspace)) return "wrote beyond the workspace";
    for (uint32_t i = 0; i < p->count_in; i++) {
        if (p->in[i].dtype == SINTER_DTYPE_NONE || p->in[i].is_const) continue;
        if (!memory_holds(&b->in[i]) || (x->in_size[i] && memcmp(b->in[i].data, x->in[i].data, x->in_size[i]) != 0)) {
            (void)snprintf(why, size, "wrote into input %u", i);
            return why;
        }
    }
    for (uint32_t i = 0; i < p->count_out; i++) {
        if (p->out[i].dtype == SINTER_DTYPE_NONE) continue;
        if (!memory_holds(&b->out[i])) return "wrote outside a result";
    }
    return case_check(&r->rig, x, k->numerics, why, size);
}

static const char *run_kernel(runner *r, const cuda_kernel *k, const tactic *t, case_trial *x, bool is_reversed,
                              char *why, size_t size)
{
    const problem *p = x->p;
    if (!k->base.check(p, t)) return "check refuses a tactic that tactics gave";
    if (k->base.cost_ns) {
        const double cost = k->base.cost_ns(p, t, &r->target);
        if (!(cost > 0) || isinf(cost)) return "the cost is no positive number";
    }
    bound *b = ARENA_NEW(&r->rig.a, bound, 1);
    const char *wrong = bind_operands(r, &k->base, t, x, b);
    if (!wrong) {
        emulate_job job = { .kernel = k,
                            .problem = p,
                            .tactic = t,
                            .target = &r->target,
                            .in = b->view_in,
                            .out = b->view_out,
                            .in_at = b->in_at,
                            .out_at = b->out_at,
                            .workspace = b->workspace.data,
                            .region = b->region,
                            .region_count = b->regions,
                            .is_reversed = is_reversed,
                            .seconds = SECONDS };
        for (uint32_t i = 0; i < p->count_out; i++) b->view_out[i].data = NULL;
        wrong = emulate_run(&r->rig.e, &job, why, size);
        if (!wrong && job.fault.is_set) {
            (void)snprintf(why, size, "reports a fault: value %lld at %lld, limit %lld", (long long)job.fault.value,
                           (long long)job.fault.index, (long long)job.fault.limit);
            wrong = why;
        }
        if (!wrong) wrong = check_results(r, &k->base, x, b, why, size);
    }
    for (uint32_t i = 0; i < CASE_OPERANDS; i++) {
        memory_free(&b->in[i]);
        memory_free(&b->out[i]);
    }
    memory_free(&b->workspace);
    return wrong;
}

/* ---- lines ---- */

static const cuda_kernel *row_at(uint32_t i)
{
    return (const cuda_kernel *)(const void *)cuda_kernels[i];
}

static bool is_wanted(const runner *r, uint32_t i)
{
    const kernel *k = cuda_kernels[i];
    return k->where == KERNEL_ON_DEVICE && (!r->kernel_name || strstr(k->name, r->kernel_name));
}

static void plan_tactic(runner *r, uint32_t index, uint32_t ki, uint32_t number, const problem *p, const tactic *t)
{
    if (r->combo_count == COMBOS) return;
    combo *c = &r->combos[r->combo_count++];
    *c = (combo){ .line = index, .kernel = ki, .number = number, .t = *t };
    emulated_code code;
    while (c->key_count < EMULATED_CODES &&
           emulate_code(&r->rig.e, row_at(ki), p, t, &r->target, c->key_count, false, &code))
        memcpy(c->key[c->key_count++], code.key, sizeof code.key);
    /* A tactic of another family of chips has none. */
    if (!c->key_count && number < DAMAGED) report(r, &r->lines[index], row_at(ki)->base.name, "", "has no code");
}

/* Which rows and tactics a line needs. */
static void plan_line(runner *r, uint32_t index)
{
    const line *l = &r->lines[index];
    const arena_mark mark = arena_save(&r->rig.a);
    const char *why = NULL;
    const problem *p = case_parse(&r->rig, l->text.at, strlen(l->text.at), &why);
    if (!p) {
        report(r, l, "", "", why);
        return;
    }
    if (l->text.from && !r->is_named && case_operations(p) > most_operations) return;
    if (r->is_verbose) (void)printf("%s\n", l->text.at);
    bool is_taken = false;
    for (uint32_t ki = 0; ki < cuda_kernels_count; ki++) {
        if (!is_wanted(r, ki)) continue;
        const cuda_kernel *k = row_at(ki);
        const char *rejected = k->base.reject(p, &r->target);
        if (rejected) {
            if (r->is_verbose) (void)printf("  %s rejects: %s\n", k->base.name, rejected);
            continue;
        }
        is_taken = true;
        tactic_sink sink = { .count = 0 };
        case_tactics(&k->base, p, &r->target, &sink);
        if (!sink.count) report(r, l, k->base.name, "", "gives no tactic");
        for (uint32_t t = 0; t < sink.count; t++) {
            /* The first, and others that differ from line to line. */
            const uint32_t turn = t ? (t - 1 + sink.count - 1 - index % (sink.count - 1)) % (sink.count - 1) + 1 : 0;
            if (turn >= r->tactics) continue;
            plan_tactic(r, index, ki, t, p, &sink.at[t]);
            for (uint32_t n = 0; n < r->damaged; n++) {
                const tactic d = case_damage(&r->rig, &sink.at[t]);
                if (k->base.check(p, &d)) plan_tactic(r, index, ki, DAMAGED + n, p, &d);
            }
        }
    }
    if (!is_taken && !r->kernel_name && r->target.isa == 90 && index >= r->own_begin && index < r->own_end)
        report(r, l, "", "", "no row takes it");
    arena_rewind(&r->rig.a, mark);
}

static void run_combos(runner *r, uint32_t first, uint32_t last)
{
    const line *l = &r->lines[r->combos[first].line];
    r->rig.seed = 1;
    r->rig.is_small = l->text.is_small;
    const char *why = NULL;
    const problem *p = case_parse(&r->rig, l->text.at, strlen(l->text.at), &why);
    for (int kind = l->text.is_special ? CASE_SPECIAL : CASE_INTEGERS; p && kind <= CASE_SPECIAL; kind++) {
        case_trial *x = ARENA_NEW(&r->rig.a, case_trial, 1);
        why = case_make(&r->rig, p, (case_data)kind, 16, x);
        if (why) {
            report(r, l, "reference", "", why);
            return;
        }
        for (uint32_t i = first; i < last; i++) {
            const combo *c = &r->combos[i];
            if (!c->is_chosen) continue;
            const cuda_kernel *k = row_at(c->kernel);
            if (kind == CASE_SPECIAL && !case_takes_special(p, &k->base)) continue;
            const arena_mark mark = arena_save(&r->rig.a);
            static char wrong_text[2000];
            text name;
            text_init(&name, &r->rig.e);
            if (k->base.print) k->base.print(&c->t, &name);
            const char *wrong = run_kernel(r, k, &c->t, x, kind != CASE_INTEGERS, wrong_text, sizeof wrong_text);
            /* A program refuses those before it launches them. */
            if (wrong && c->number >= DAMAGED && strstr(wrong, "than the machine has")) wrong = NULL;
            (void)__sync_fetch_and_add(&r->totals->runs, 1);
            (void)__sync_fetch_and_add(&r->totals->reached[c->kernel], 1);
            if (wrong) report(r, l, k->base.name, name.at ? name.at : "", wrong);
            if (r->is_verbose)
                (void)printf("  %s %s %s%s\n", k->base.name, name.at ? name.at : "",
                             kind == CASE_SPECIAL  ? "special "
                             : kind == CASE_RANDOM ? "random "
                                                   : "integers ",
                             wrong ? "FAILED" : "ok");
            text_deinit(&name);
            arena_rewind(&r->rig.a, mark);
            *r->rig.e.error = (sinter_error){ 0 };
        }
    }
}

/* Waits for a child. One that did not end by itself says so through its line. */
static uint32_t end_child(runner *r)
{
    int status = 0;
    const pid_t child = wait(&status);
    if (child <= 0) exit(2);
    for (uint32_t i = 0; i < r->line_count; i++)
        if (r->lines[i].child == child) {
            if (!WIFEXITED(status) || WEXITSTATUS(status))
                report(r, &r->lines[i], "", "", "the process that ran it died");
            r->lines[i].child = 0;
        }
    return 1;
}

/* Each line in a child of its own: what ends a child ends no other. */
static void run_all(runner *r)
{
    uint32_t running = 0;
    for (uint32_t i = 0; i < r->combo_count;) {
        uint32_t last = i;
        bool is_chosen = false;
        while (last < r->combo_count && r->combos[last].line == r->combos[i].line)
            is_chosen = r->combos[last++].is_chosen || is_chosen;
        if (is_chosen && !r->jobs) {
            run_combos(r, i, last);
        } else if (is_chosen) {
            if (running >= r->jobs) running -= end_child(r);
            (void)fflush(stdout);
            const pid_t child = fork();
            if (child < 0) exit(2);
            if (child == 0) {
                static char buffer[1 << 16];
                (void)setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
                if (r->is_verbose) (void)printf("%s\n", r->lines[r->combos[i].line].text.at);
                run_combos(r, i, last);
                (void)fflush(stdout);
                _exit(0);
            }
            r->lines[r->combos[i].line].child = child;
            running++;
        }
        i = last;
    }
    while (running) running -= end_child(r);
}

/* ---- which codes ---- */

static bool is_among(const char (*keys)[EMULATED_KEY], uint32_t count, const char *key)
{
    for (uint32_t i = 0; i < count; i++)
        if (!memcmp(keys[i], key, EMULATED_KEY)) return true;
    return false;
}

/* Adds the codes of a combination to `keys`; false where that would be more than `most`. */
static bool take(const combo *c, char (*keys)[EMULATED_KEY], uint32_t *count, uint32_t most)
{
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < c->key_count; i++)
        wanted += !is_among((const char(*)[EMULATED_KEY])keys, *count, c->key[i]);
    if (*count + wanted > most) return false;
    for (uint32_t i = 0; i < c->key_count; i++)
        if (!is_among((const char(*)[EMULATED_KEY])keys, *count, c->key[i]))
            memcpy(keys[(*count)++], c->key[i], EMULATED_KEY);
    return true;
}

/* Combinations in an order that mixes lines and tactics and stays the same when others are added. */
static int by_mix(const void *a, const void *b, void *of)
{
    const runner *r = of;
    uint64_t mix[2];
    for (int i = 0; i < 2; i++) {
        const combo *c = &r->combos[*(const uint32_t *)(i ? b : a)];
        const char *at = r->lines[c->line].text.at;
        mix[i] = hash64(at, strlen(at), c->kernel * 64 + c->number);
    }
    return (mix[0] > mix[1]) - (mix[0] < mix[1]);
}

/* Chooses combinations in turns from the rows until `most` codes are needed, and all others that need no more. */
static uint32_t choose(runner *r, char (*keys)[EMULATED_KEY], uint32_t most)
{
    uint32_t count = 0, next[KERNELS] = { 0 };
    uint32_t *order = malloc((r->combo_count + 1) * sizeof *order);
    if (!order) exit(2);
    for (uint32_t i = 0; i < r->combo_count; i++) order[i] = i;
    qsort_r(order, r->combo_count, sizeof *order, by_mix, r);
    for (bool is_more = true; is_more && count < most;) {
        is_more = false;
        for (uint32_t k = 0; k < cuda_kernels_count; k++) {
            while (next[k] < r->combo_count) {
                const combo *c = &r->combos[order[next[k]++]];
                const uint32_t before = count;
                if (c->kernel != k) continue;
                if (!take(c, keys, &count, most)) continue;
                is_more = true;
                if (count > before) break;
            }
        }
    }
    free(order);
    for (uint32_t i = 0; i < r->combo_count; i++) {
        combo *c = &r->combos[i];
        uint32_t known = 0;
        while (known < c->key_count && is_among((const char(*)[EMULATED_KEY])keys, count, c->key[known])) known++;
        c->is_chosen = c->key_count && known == c->key_count;
    }
    return count;
}

/* ---- arguments ---- */

/* The lines as they are from now on, each with room for what runs it. */
static void take_lines(runner *r, const case_lines *from)
{
    r->lines = calloc(from->count + 1, sizeof *r->lines);
    if (!r->lines) exit(2);
    for (r->line_count = 0; r->line_count < from->count; r->line_count++)
        r->lines[r->line_count].text = from->at[r->line_count];
}

/* Writes what is to be compiled for the combinations that were chosen. */
static void write_codes(runner *r)
{
    const arena_mark mark = arena_save(&r->rig.a);
    for (uint32_t i = 0; i < r->combo_count; i++, arena_rewind(&r->rig.a, mark)) {
        const combo *c = &r->combos[i];
        const char *at = r->lines[c->line].text.at, *why = NULL;
        const problem *p = c->is_chosen ? case_parse(&r->rig, at, strlen(at), &why) : NULL;
        if (!p) continue;
        emulated_code code;
        for (uint32_t k = 0; k < c->key_count; k++)
            (void)emulate_code(&r->rig.e, row_at(c->kernel), p, &c->t, &r->target, k, true, &code);
    }
}

/* All lines on one machine, with at most so many codes. */
static void run_on(runner *r, uint32_t sm, uint32_t most)
{
    const double begun = (double)os_time_ns() * 1e-9;
    r->target = target_of(sm);
    if (r->units) r->target.units = r->units;
    r->combo_count = 0;
    memset(r->totals, 0, sizeof *r->totals);
    for (uint32_t i = 0; i < r->line_count; i++) plan_line(r, i);
    char(*keys)[EMULATED_KEY] = malloc((size_t)COMBOS * EMULATED_KEY);
    if (!keys) exit(2);
    const uint32_t codes = choose(r, keys, most);
    write_codes(r);
    const double planned = (double)os_time_ns() * 1e-9;
    (void)emulate_compile((const char(*)[EMULATED_KEY])keys, codes, r->jobs ? r->jobs : 1);
    const double compiled = (double)os_time_ns() * 1e-9;
    free(keys);
    run_all(r);
    const line none = { .text.at = "(no case)" };
    for (uint32_t i = 0; i < cuda_kernels_count; i++) {
        if (!is_wanted(r, i)) continue;
        /* Rows that are for some machines only are found on the newest of those that the test asks for. */
        if (!r->is_named && sm == 90 && !r->totals->reached[i])
            report(r, &none, cuda_kernels[i]->name, "", "is reached by no case");
        if (r->totals->reached[i]) (void)printf("  %-24s %ld\n", cuda_kernels[i]->name, r->totals->reached[i]);
    }
    (void)printf("sm_%u: %ld runs of %u codes, %ld failed (%.1f s to plan, %.1f to compile, %.1f to run)\n", sm,
                 r->totals->runs, codes, r->totals->failed, planned - begun, compiled - planned,
                 (double)os_time_ns() * 1e-9 - compiled);
    r->failed += r->totals->failed;
}

int main(int argc, char **argv)
{
    static runner r;
    case_lines lines = { 0 };
    uint32_t sm = 0;
    if (!emulate_is_possible()) {
        (void)printf("no g++: kernels cannot be emulated\n");
        return 77;
    }
    case_rig_init(&r.rig);
    r.jobs = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    r.combos = calloc(COMBOS, sizeof *r.combos);
    r.totals = mmap(NULL, sizeof *r.totals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!r.combos || r.totals == MAP_FAILED || cuda_kernels_count > KERNELS) return 2;
    for (int i = 1; i < argc; i++) {
        const bool has_next = i + 1 < argc;
        const char *wrong = NULL;
        if (!strcmp(argv[i], "-v")) r.is_verbose = true;
        else if (!strcmp(argv[i], "--scalar")) case_lines_scalar(&r.rig, &lines);
        else if (!strcmp(argv[i], "--packed") && has_next) wrong = case_lines_ask_packed(&r.rig, argv[++i], &lines);
        else if (!strcmp(argv[i], "--sm") && has_next) sm = (uint32_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--kernel") && has_next) r.kernel_name = argv[++i];
        else if (!strcmp(argv[i], "--tactics") && has_next) r.tactics = (uint32_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--damaged") && has_next) r.damaged = (uint32_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--units") && has_next) r.units = (uint32_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--jobs") && has_next) r.jobs = (uint32_t)atoi(argv[++i]);
        else if (strchr(argv[i], ':') && strstr(argv[i], "->")) case_lines_add(&lines, argv[i]);
        else wrong = case_lines_read(&r.rig, argv[i], &lines);
        if (wrong) report(&r, &(line){ .text.at = argv[i] }, "", "", wrong);
    }
    r.is_named = lines.count > 0 || r.kernel_name;
    if (!r.tactics) r.tactics = r.kernel_name ? UINT32_MAX : 2;
    if (!lines.count && !r.totals->failed) {
        (void)case_lines_read_folder(&r.rig, "tests/conformance/cases", &lines);
        r.own_begin = lines.count;
        (void)case_lines_read_folder(&r.rig, "tests/cuda/cases", &lines);
        r.own_end = lines.count;
        case_lines_scalar(&r.rig, &lines);
        case_lines_packed(&r.rig, &lines, 4, 1);
    }
    take_lines(&r, &lines);
    free(lines.at);
    r.failed = r.totals->failed;
    const bool is_all = r.is_named || test_is_full();
    /* Kernels are compiled without sanitizers, which have the rows to look at and not much else. */
    run_on(&r, sm ? sm : 90, is_all ? COMBOS : ASAN_REDZONE ? CODES_OLDER : CODES_QUICK);
    if (!sm && !r.is_named && !ASAN_REDZONE) {
        run_on(&r, 80, is_all ? COMBOS : CODES_OLDER);
        run_on(&r, 75, is_all ? COMBOS : CODES_OLDER);
    }
    return r.failed ? 1 : 0;
}
