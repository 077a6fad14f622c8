/* SPDX-License-Identifier: Apache-2.0 */
/* check_compile.c - compiles what the rows of kernels.def make of the problems in the case files, for chips that need
 * not be there.
 *
 *     cuda_check_compile [--full] [--max N] [--cache FOLDER] [-v] FILE...
 *
 * Each line of the files is offered to each row; the codes of all its tactics are collected, and equal ones compiled
 * once, for one chip: those that the row accepts take turns. At most N (default 200) are compiled, so that each row has
 * its share and first choices go first; with --full each chip has its own codes, and N times as many as there are chips
 * are compiled. An error of the compiler is a failure, and so are spilled registers where the code does not say that it
 * may spill. Exit status 77: no NVRTC. */
#include "base/hash.h"
#include "base/os.h"
#include "cuda/cuda_device.h"
#include "cuda/cuda_kernels.h"
#include "case_rig.h"
#include "plugin_set.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_SHOWN = 300, THREADS = 64 };

/* The first few take turns, --full takes all. */
static const uint32_t chips[] = { 75, 80, 90, 120, 86, 89, 100 };
enum { CHIPS_IN_TURN = 4 };

typedef struct item {
    cuda_code code;
    uint64_t identity;
    uint32_t sm, row, tactic, order, rank; /* rank: among its row's */
    const char *line, *tactic_text;
    sinter_status status;
    char *message;
    uint32_t registers, spill_bytes;
    bool was_cached;
} item;

typedef struct checker {
    env e;
    arena a;
    VEC(item) items;
    cuda_driver driver;
    uint32_t next;
    char cache[400];
    bool is_full, is_verbose;
    uint32_t turn[64], reached[64];
    long lines, bad_lines;
} checker;

static void add_codes(checker *k, uint32_t row, const problem *p, const char *line, const kernel_target *chip)
{
    const cuda_kernel *kernel_row = (const cuda_kernel *)(const void *)cuda_kernels[row];
    tactic_sink sink = { .count = 0 };
    case_tactics(&kernel_row->base, p, chip, &sink);
    for (uint32_t t = 0; t < sink.count; t++) {
        char *tactic_text = NULL;
        for (uint32_t index = 0;; index++) {
            text generated;
            text_init(&generated, &k->e);
            cuda_code code = { .generated = &generated };
            if (!kernel_row->code(p, &sink.at[t], chip, index, &code)) {
                text_deinit(&generated);
                break;
            }
            uint64_t identity = hash64(code.source, strlen(code.source), k->is_full ? chip->isa : 0);
            identity = hash64(code.entry, strlen(code.entry), identity);
            for (uint32_t i = 0; i < code.define_count; i++) {
                identity = hash64(code.define[i].name, strlen(code.define[i].name), identity);
                identity = hash64(&code.define[i].value, sizeof code.define[i].value, identity);
            }
            identity = hash64(generated.at ? generated.at : "", generated.length, identity);
            bool is_known = false;
            for (uint32_t i = 0; i < k->items.count && !is_known; i++) is_known = k->items.at[i].identity == identity;
            item *it = is_known ? NULL : VEC_PUSH(&k->a, &k->items);
            if (it) {
                if (!tactic_text && kernel_row->base.print) {
                    text name;
                    text_init(&name, &k->e);
                    kernel_row->base.print(&sink.at[t], &name);
                    tactic_text = arena_text(&k->a, name.at ? name.at : "", name.length);
                    text_deinit(&name);
                }
                text *kept = ARENA_NEW(&k->a, text, 1);
                if (!kept) exit(2);
                *kept = generated;
                generated = (text){ 0 };
                *it = (item){ .code = code,
                              .identity = identity,
                              .sm = chip->isa,
                              .row = row,
                              .tactic = t,
                              .order = k->items.count,
                              .line = line,
                              .tactic_text = tactic_text ? tactic_text : "" };
                it->code.generated = kept;
            }
            if (generated.e) text_deinit(&generated);
        }
    }
}

static void add_line(checker *k, const char *at, size_t length)
{
    scan s = scan_of(at, length);
    problem *p = NULL;
    const char *why = NULL;
    k->lines++;
    if (!problem_parse(&k->a, &s, &p, &why)) {
        k->bad_lines++;
        (void)printf("FAIL %.*s\n     %s\n", (int)length, at, why ? why : "does not parse");
        return;
    }
    const char *line = arena_text(&k->a, at, length < LINE_SHOWN ? length : LINE_SHOWN);
    for (uint32_t row = 0; row < cuda_kernels_count && row < COUNT_OF(k->turn); row++) {
        const kernel *kernel_row = cuda_kernels[row];
        if (kernel_row->where != KERNEL_ON_DEVICE) continue;
        bool is_taken = false;
        const uint32_t count = k->is_full ? (uint32_t)COUNT_OF(chips) : CHIPS_IN_TURN;
        for (uint32_t i = 0; i < count && (k->is_full || !is_taken); i++) {
            kernel_target chip;
            if (!cuda_chip_target(chips[(k->turn[row] + i) % count], &chip)) exit(2);
            if (kernel_row->reject(p, &chip)) continue;
            is_taken = true;
            add_codes(k, row, p, line, &chip);
        }
        k->turn[row] += is_taken;
        k->reached[row] += is_taken;
    }
}

static void add_file(checker *k, const char *path)
{
    os_file file = { 0 };
    if (os_file_read(&k->e, path, 1u << 24, &file) != SINTER_OK) {
        k->bad_lines++;
        (void)printf("FAIL %s: %s\n", path, k->e.error->text);
        return;
    }
    const char *at = (const char *)file.data, *end = at + file.size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        if (stop > at && *at != '#') add_line(k, at, (size_t)(stop - at));
        at = stop + 1;
    }
    os_file_close(&k->e, &file);
}

static int compare_in_row(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    if (x->tactic != y->tactic) return x->tactic < y->tactic ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static int compare_rank(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void choose(checker *k, uint32_t max)
{
    qsort(k->items.at, k->items.count, sizeof(item), compare_in_row);
    for (uint32_t i = 0; i < k->items.count; i++) {
        item *it = &k->items.at[i];
        it->rank = i && it->row == it[-1].row ? it[-1].rank + 1 : 0;
    }
    qsort(k->items.at, k->items.count, sizeof(item), compare_rank);
    const uint64_t most = (uint64_t)max * (k->is_full ? COUNT_OF(chips) : 1);
    if (k->items.count > most) k->items.count = (uint32_t)most;
}

static void worker_run(void *arg)
{
    checker *k = arg;
    for (;;) {
        const uint32_t i = __atomic_fetch_add(&k->next, 1, __ATOMIC_RELAXED);
        if (i >= k->items.count) return;
        item *it = &k->items.at[i];
        sinter_error error = { 0 };
        env e;
        env_init(&e, NULL, &error);
        cuda_compiler c = { .driver = &k->driver, .sm = it->sm };
        (void)snprintf(c.cache, sizeof c.cache, "%s", k->cache);
        cuda_binary b;
        it->status = cuda_compile(&e, &c, &it->code, &b);
        it->registers = b.registers;
        it->spill_bytes = b.spill_bytes;
        it->was_cached = b.was_cached;
        if (it->status == SINTER_OK) {
            cuda_binary_free(&e, &b);
        } else {
            const size_t size = error.length + 1;
            it->message = malloc(size);
            if (it->message) memcpy(it->message, error.text, size);
        }
    }
}

static void compile_all(checker *k)
{
    os_thread *thread[THREADS] = { 0 };
    const unsigned count = os_cpu_count();
    for (unsigned i = 1; i < count && i < THREADS; i++)
        if (os_thread_start(&k->e, worker_run, k, &thread[i]) != SINTER_OK) break;
    worker_run(k);
    for (unsigned i = 1; i < count && i < THREADS; i++) os_thread_join(&k->e, thread[i]);
}

static long print(checker *k, uint32_t found, double seconds)
{
    long failed = 0, cached = 0;
    for (uint32_t i = 0; i < k->items.count; i++) {
        const item *it = &k->items.at[i];
        const bool spills = it->status == SINTER_OK && it->spill_bytes && !it->code.may_spill;
        cached += it->was_cached;
        if (it->status != SINTER_OK || spills) {
            failed++;
            (void)printf("FAIL %s\n     %s %s sm_%" PRIu32 ": ", it->line, cuda_kernels[it->row]->name, it->tactic_text,
                         it->sm);
            if (spills)
                (void)printf("%s spills %" PRIu32 " bytes at %" PRIu32 " registers\n", it->code.source, it->spill_bytes,
                             it->registers);
            else (void)printf("%s\n", it->message ? it->message : "failed");
        } else if (k->is_verbose) {
            (void)printf("%s %s sm_%" PRIu32 ": %s, %" PRIu32 " registers, %" PRIu32 " bytes spilled%s\n",
                         cuda_kernels[it->row]->name, it->tactic_text, it->sm, it->code.source, it->registers,
                         it->spill_bytes, it->was_cached ? ", cached" : "");
        }
        free(it->message);
    }
    for (uint32_t row = 0; row < cuda_kernels_count && row < COUNT_OF(k->reached); row++)
        if (cuda_kernels[row]->where == KERNEL_ON_DEVICE && !k->reached[row])
            (void)printf("note: no case reaches %s\n", cuda_kernels[row]->name);
    (void)printf("%ld problems, %" PRIu32 " codes\nsummary: %" PRIu32
                 " compiled for %s, %ld of them cached, %ld failed, %.0f s\n",
                 k->lines, found, k->items.count, k->is_full ? "7 chips" : "4 chips in turn", cached, failed, seconds);
    return failed;
}

int main(int argc, char **argv)
{
    static checker k;
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.plugins = plugin_set_shared();
    env_init(&k.e, &options, NULL);
    arena_init(&k.a, &k.e);
    uint32_t max = 200;
    cuda_driver_open(&k.driver);
    if (!k.driver.nvrtc) {
        (void)printf("no NVRTC: %s\n", k.driver.why_nvrtc);
        return 77;
    }
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--full")) k.is_full = true;
        else if (!strcmp(argv[i], "-v")) k.is_verbose = true;
        else if (!strcmp(argv[i], "--max") && i + 1 < argc) max = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--cache") && i + 1 < argc) (void)snprintf(k.cache, sizeof k.cache, "%s", argv[++i]);
        else add_file(&k, argv[i]);
    }
    const uint32_t found = k.items.count;
    choose(&k, max);
    const uint64_t start = os_time_ns();
    compile_all(&k);
    const long failed = print(&k, found, (double)(os_time_ns() - start) / 1e9) + k.bad_lines;
    for (uint32_t i = 0; i < found; i++) text_deinit(k.items.at[i].code.generated);
    arena_deinit(&k.a);
    cuda_driver_close(&k.driver);
    return failed ? 1 : 0;
}
