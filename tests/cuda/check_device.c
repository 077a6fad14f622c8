/* SPDX-License-Identifier: Apache-2.0 */
/* check_device.c - CUDA's kernels on a GPU against the reference, on problem lines.
 *
 *     cuda_check_device [-v] [--gpu N] [--kernel NAME | --row NAME] [--tactics N] [--cases N] [--repeat N] [--separate]
 *                       [--jobs N] [--seconds N] [--units N] [--rows] [FILE | LINE ...]
 *
 * The lines, rows and data are those of test_emulated.c: each problem on every row that takes it (--kernel: whose name
 * has NAME in it; --row: whose name it is; --rows prints them, and the GPU), with its tactics (--tactics: the first so
 * many), on small integers, on random values and on special ones; --cases: at most so many problems a row, from all
 * over the files. Lines of files that need more than 50 million operations are left out unless SINTER_TEST_SCALE is
 * full. Operands lie in one piece of device memory with guards between them, results and workspace begin as NaN, and
 * all of it is looked at afterwards. --separate: each in an allocation of its own instead, for compute-sanitizer's
 * eyes.
 *
 * --repeat N: two streams with operands of their own run each problem N times, in changing order, each time with one to
 * three launches behind each other: what one launch leaves behind, or a race, shows. Results whose bits differ from
 * time to time are counted.
 *
 * Codes are compiled first, all cores at once, into the kernel cache. Then so many processes (--jobs; 0: this one)
 * share the lines, so a kernel that kills its context or does not end takes one run with it. --seconds: no line is
 * begun after so many, and those that are left are counted. --units: tactics are those of a chip of so many
 * multiprocessors, so a small problem has several tiles for each block that stays. Exit status 77: no GPU. */
#include "base/hash.h"
#include "base/os.h"
#include "case_lines.h"
#include "cuda/cuda_kernels.h"
#include "device_run.h"
#include "test.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COMBOS = 65536, KERNELS = 128, WORKERS = 64, SECONDS = 30, STATUS_DEAD = 3, AT_ONCE = 128 };
static const double most_operations = 50e6;

/* A row and a tactic for a line. */
typedef struct combo {
    uint32_t line, kernel, tactic;
} combo;
/* The combinations of a line: what a process takes at a time. */
typedef struct work {
    uint32_t first, last;
    uint64_t mix; /* what orders them */
} work;
/* What a process is at. */
typedef struct desk {
    uint32_t work, combo;
    uint64_t since_ns;
    pid_t child;
} desk;

/* Shared by all processes. */
typedef struct board {
    kernel_target target;
    char device_name[128];
    uint32_t next;
    long runs, failed, unsteady;
    long ran[KERNELS]; /* tactics of problems, by row */
    desk desk[WORKERS];
} board;

typedef struct runner {
    case_rig rig;
    const char *gpu, *kernel_name, *row_name;
    uint32_t tactics, cases, jobs, units;
    uint64_t end_ns; /* 0: no end */
    bool is_verbose;
    case_lines lines;
    const problem **problems;
    combo *combos;
    work *work;
    uint32_t combo_count, work_count;
    board *board;
    /* of the process that runs */
    desk *desk;
    device_rig device;
} runner;

static const cuda_kernel *row_at(uint32_t i)
{
    return (const cuda_kernel *)(const void *)cuda_kernels[i];
}

static void print_tactic(runner *r, const combo *c, text *out)
{
    const kernel *k = &row_at(c->kernel)->base;
    tactic_sink sink = { .count = 0 };
    case_tactics(k, r->problems[c->line], &r->board->target, &sink);
    text_init(out, &r->rig.e);
    if (k->print) k->print(&sink.at[c->tactic], out);
}

/* To the output at once and whole: processes share it. */
static void say(const char *format, ...) ENV_PRINTF(1, 2);
static void say(const char *format, ...)
{
    static char line[1 << 16];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    const size_t count = length < 0 ? 0 : (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
    if (write(STDOUT_FILENO, line, count) < 0) exit(2);
}

static bool is_wanted(const runner *r, const kernel *k)
{
    return k->where == KERNEL_ON_DEVICE && (!r->kernel_name || strstr(k->name, r->kernel_name)) &&
           (!r->row_name || !strcmp(k->name, r->row_name));
}

static bool is_over(const runner *r)
{
    return r->end_ns && os_time_ns() > r->end_ns;
}

static void report(runner *r, const combo *c, const char *why)
{
    const case_line *l = &r->lines.at[c->line];
    text name;
    print_tactic(r, c, &name);
    (void)__sync_fetch_and_add(&r->board->failed, 1);
    say("FAIL %s\n     %s %s: %s\n     (%s:%u)\n", l->at, cuda_kernels[c->kernel]->name, name.at ? name.at : "", why,
        l->from ? l->from : "argument", l->number);
    text_deinit(&name);
}

static void report_line(runner *r, const char *line, const char *why)
{
    (void)__sync_fetch_and_add(&r->board->failed, 1);
    say("FAIL %s\n     %s\n", line, why);
}

/* ---- running ---- */

static bool is_open(runner *r, uint32_t threads)
{
    return r->device.device || device_rig_open(&r->device, &r->rig, r->gpu, threads) == SINTER_OK;
}

/* Runs the combinations of a line from `first` on. False: the device is dead. */
static bool run_line(runner *r, uint32_t index, uint32_t first)
{
    const work *w = &r->work[index];
    const uint32_t line = r->combos[w->first].line;
    const arena_mark mark = arena_save(&r->rig.a);
    static char why[4000];
    case_trial *x[CASE_SPECIAL + 1];
    const int first_kind = r->lines.at[line].is_special ? CASE_SPECIAL : CASE_INTEGERS;
    for (int kind = first_kind; kind <= CASE_SPECIAL; kind++) {
        x[kind] = ARENA_NEW(&r->rig.a, case_trial, 1);
        r->rig.seed = 1 + (uint64_t)kind;
        r->rig.is_small = r->lines.at[line].is_small;
        const char *wrong = case_make(&r->rig, r->problems[line], (case_data)kind, 16, x[kind]);
        if (wrong) report_line(r, r->lines.at[line].at, wrong);
        if (wrong) return true;
    }
    for (uint32_t i = first; i < w->last; i++) {
        const combo *c = &r->combos[i];
        const kernel *k = &row_at(c->kernel)->base;
        tactic_sink sink = { .count = 0 };
        case_tactics(k, r->problems[line], &r->board->target, &sink);
        const char *wrong = NULL;
        for (int kind = first_kind; kind <= CASE_SPECIAL && !wrong; kind++) {
            if (kind == CASE_SPECIAL && !case_takes_special(r->problems[line], k)) continue;
            r->desk->combo = i;
            r->desk->since_ns = os_time_ns();
            const arena_mark own = arena_save(&r->rig.a);
            r->device.last = SINTER_OK;
            wrong = device_rig_run(&r->device, k, &sink.at[c->tactic], x[kind], kind != CASE_INTEGERS, why, sizeof why);
            (void)__sync_fetch_and_add(&r->board->runs, 1);
            arena_rewind(&r->rig.a, own);
            *r->rig.e.error = (sinter_error){ 0 };
        }
        r->desk->since_ns = 0;
        (void)__sync_fetch_and_add(&r->board->ran[c->kernel], 1);
        (void)__sync_fetch_and_add(&r->board->unsteady, r->device.unsteady);
        r->device.unsteady = 0;
        if (wrong) report(r, c, why);
        if (r->is_verbose) {
            text name;
            print_tactic(r, c, &name);
            say("%-4s %s %s %s\n", wrong ? "bad" : "ok", k->name, name.at ? name.at : "", r->lines.at[line].at);
            text_deinit(&name);
        }
        if (wrong && r->device.last == SINTER_DEVICE) return false;
    }
    arena_rewind(&r->rig.a, mark);
    return true;
}

/* A process: what is left of a line, then lines until there are none. Gives its exit status. */
static int run_worker(runner *r, desk *own, uint32_t index, uint32_t first)
{
    r->desk = own;
    if (!is_open(r, 1)) {
        report_line(r, "(opening the device)", r->rig.e.error->text);
        return 1;
    }
    for (;;) {
        if (index >= r->work_count) {
            if (is_over(r)) break;
            index = __sync_fetch_and_add(&r->board->next, 1);
            if (index >= r->work_count) break;
            first = r->work[index].first;
        }
        own->work = index;
        if (!run_line(r, index, first)) return STATUS_DEAD;
        index = UINT32_MAX;
    }
    device_rig_close(&r->device);
    return 0;
}

static void start_worker(runner *r, desk *own, uint32_t index, uint32_t first)
{
    own->since_ns = 0;
    const pid_t child = fork();
    if (child < 0) exit(2);
    if (child == 0) _exit(run_worker(r, own, index, first));
    own->child = child;
}

/* The process at this desk has ended: the rest of its line goes to another. False: it was done. */
static bool is_restarted(runner *r, desk *d, int status)
{
    d->child = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) != STATUS_DEAD) return false;
    if (!WIFEXITED(status)) {
        char why[100];
        (void)snprintf(why, sizeof why,
                       WTERMSIG(status) == SIGKILL ? "does not end in %d s" : "ended its process by signal %d",
                       WTERMSIG(status) == SIGKILL ? SECONDS : WTERMSIG(status));
        report(r, &r->combos[d->combo], why);
    }
    start_worker(r, d, d->work, d->combo + 1);
    return true;
}

static void run_all(runner *r)
{
    uint32_t active = 0;
    for (; active < r->jobs && active < WORKERS && active < r->work_count; active++)
        start_worker(r, &r->board->desk[active], UINT32_MAX, 0);
    for (int status; active;) {
        const pid_t child = waitpid(-1, &status, WNOHANG);
        if (child < 0 && errno != EINTR) return;
        if (child <= 0) (void)nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
        for (desk *d = r->board->desk; d < r->board->desk + WORKERS; d++) {
            const uint64_t since = d->since_ns, now = os_time_ns();
            if (child > 0 && d->child == child) active -= !is_restarted(r, d, status);
            else if (d->child && since && now > since && now - since > SECONDS * 1000000000ull)
                (void)kill(d->child, SIGKILL);
        }
    }
}

/* ---- planning ---- */

static bool plan_line(runner *r, uint32_t index, bool is_all)
{
    const case_line *l = &r->lines.at[index];
    const char *why = NULL;
    const problem *p = case_parse(&r->rig, l->at, strlen(l->at), &why);
    if (!p) {
        report_line(r, l->at, why);
        return false;
    }
    r->problems[index] = p;
    if (l->from && !is_all && case_operations(p) > most_operations) return false;
    const uint32_t first = r->combo_count;
    for (uint32_t k = 0; k < cuda_kernels_count; k++) {
        const kernel *row = cuda_kernels[k];
        if (!is_wanted(r, row)) continue;
        const char *rejected = row->reject(p, &r->board->target);
        if (rejected && r->is_verbose) say("%s rejects %s: %s\n", row->name, l->at, rejected);
        if (rejected) continue;
        tactic_sink sink = { .count = 0 };
        case_tactics(row, p, &r->board->target, &sink);
        for (uint32_t t = 0; t < sink.count && t < r->tactics && r->combo_count < COMBOS; t++)
            r->combos[r->combo_count++] = (combo){ .line = index, .kernel = k, .tactic = t };
    }
    if (r->combo_count == first) return false;
    r->work[r->work_count++] = (work){ first, r->combo_count, hash64(l->at, strlen(l->at), 0) };
    return true;
}

/* Leaves at most r->cases problems a row, from all over the lines. */
static void thin_out(runner *r)
{
    uint32_t problems[KERNELS] = { 0 }, seen[KERNELS] = { 0 }, kept = 0;
    for (uint32_t i = 0; i < r->combo_count; i++) problems[r->combos[i].kernel] += r->combos[i].tactic == 0;
    for (uint32_t w = 0; w < r->work_count; w++) {
        const uint32_t first = r->work[w].first, last = r->work[w].last;
        r->work[w].first = kept;
        bool is_kept = false;
        for (uint32_t i = first; i < last; i++) {
            const combo c = r->combos[i];
            const uint64_t all = problems[c.kernel], most = r->cases;
            if (c.tactic == 0) {
                const uint64_t at = seen[c.kernel]++;
                is_kept = all <= most || at * most / all != (at + 1) * most / all;
            }
            if (is_kept) r->combos[kept++] = c;
        }
        r->work[w].last = kept;
    }
    r->combo_count = kept;
    uint32_t left = 0;
    for (uint32_t w = 0; w < r->work_count; w++)
        if (r->work[w].first < r->work[w].last) r->work[left++] = r->work[w];
    r->work_count = left;
}

/* Mixed, so that what a time limit leaves out is a bit of everything. */
static int by_mix(const void *a, const void *b)
{
    const uint64_t x = ((const work *)a)->mix, y = ((const work *)b)->mix;
    return (x > y) - (x < y);
}

/* Compiles for these; where one of them does not compile, for the rest. Its run says what is wrong with it. */
static void prepare(runner *r, const kernel_use *use, uint32_t count)
{
    if (!count || backend_find("cuda")->prepare(&r->rig.e, r->device.device, use, count) == SINTER_OK) return;
    *r->rig.e.error = (sinter_error){ 0 };
    if (count == 1) return;
    prepare(r, use, count / 2);
    prepare(r, use + count / 2, count - count / 2);
}

/* In the order in which lines are run, for half of the time that there is: what is left is compiled when it is run. */
static void prepare_all(runner *r)
{
    kernel_use *use = calloc(r->combo_count + 1, sizeof *use);
    tactic *tactics = calloc(r->combo_count + 1, sizeof *tactics);
    if (!use || !tactics) exit(2);
    uint32_t count = 0;
    for (uint32_t w = 0; w < r->work_count; w++)
        for (uint32_t i = r->work[w].first; i < r->work[w].last; i++, count++) {
            const combo *c = &r->combos[i];
            tactic_sink sink = { .count = 0 };
            case_tactics(cuda_kernels[c->kernel], r->problems[c->line], &r->board->target, &sink);
            tactics[count] = sink.at[c->tactic];
            use[count] = (kernel_use){ cuda_kernels[c->kernel], r->problems[c->line], &tactics[count] };
        }
    const uint64_t start = os_time_ns(), end = r->end_ns > start ? start + (r->end_ns - start) / 2 : start;
    for (uint32_t i = 0; i < count && (!r->end_ns || os_time_ns() < end); i += AT_ONCE)
        prepare(r, use + i, count - i < AT_ONCE ? count - i : AT_ONCE);
    free(use);
    free(tactics);
}

/* Runs `step` where no context of this process is left behind. Its exit status. */
static int apart(runner *r, int (*step)(runner *))
{
    if (!r->jobs) return step(r);
    int status = 0;
    const pid_t child = fork();
    if (child == 0) _exit(step(r));
    if (child < 0 || waitpid(child, &status, 0) != child) return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static int look(runner *r)
{
    if (!is_open(r, 0)) {
        say("no GPU: %s\n", r->rig.e.error->text);
        return 77;
    }
    r->board->target = r->device.target;
    if (r->units) r->board->target.units = r->units;
    text name;
    text_init(&name, &r->rig.e);
    backend_find("cuda")->describe(r->device.device, &name);
    (void)snprintf(r->board->device_name, sizeof r->board->device_name, "%s", name.at ? name.at : "");
    text_deinit(&name);
    if (r->jobs) device_rig_close(&r->device);
    return 0;
}

static int compile(runner *r)
{
    if (!is_open(r, 0)) return 2;
    prepare_all(r);
    if (r->jobs) device_rig_close(&r->device);
    return 0;
}

static int run(runner *r)
{
    bool is_all = test_is_full();
    const int found = apart(r, look);
    if (found) return found;
    r->problems = calloc(r->lines.count, sizeof *r->problems);
    r->work = calloc(r->lines.count, sizeof *r->work);
    r->combos = calloc(COMBOS, sizeof *r->combos);
    if (!r->problems || !r->work || !r->combos || cuda_kernels_count > KERNELS) return 2;
    for (uint32_t i = 0; i < r->lines.count; i++) (void)plan_line(r, i, is_all);
    if (r->cases) thin_out(r);
    qsort(r->work, r->work_count, sizeof *r->work, by_mix);
    const uint64_t start = os_time_ns();
    const int compiled = apart(r, compile);
    const uint64_t middle = os_time_ns();
    if (compiled) report_line(r, "(compiling)", "the process that compiles died");
    if (r->jobs) run_all(r);
    else if (run_worker(r, &r->board->desk[0], UINT32_MAX, 0)) report_line(r, "(in one process)", "the device is dead");
    const double compile_s = (double)(middle - start) / 1e9, run_s = (double)(os_time_ns() - middle) / 1e9;
    for (uint32_t i = 0; i < cuda_kernels_count; i++)
        if (r->board->ran[i]) say("  %-24s %ld\n", cuda_kernels[i]->name, r->board->ran[i]);
    const uint32_t left = r->board->next < r->work_count ? r->work_count - r->board->next : 0;
    if (left) say("%u problems were not begun: the time was over\n", left);
    if (r->device.repeat) say("%ld results differ in bits from time to time\n", r->board->unsteady);
    say("%ld runs of %u problems, %ld failed (%s; %.0f s compiling, %.0f s running)\n", r->board->runs, r->work_count,
        r->board->failed, r->board->device_name, compile_s, run_s);
    return r->board->failed || !r->board->runs ? 1 : 0;
}

static int list(runner *r)
{
    const int found = apart(r, look);
    for (uint32_t i = 0; i < cuda_kernels_count; i++)
        if (!found && is_wanted(r, cuda_kernels[i])) say("%s\n", cuda_kernels[i]->name);
    if (!found) say("%s\n", r->board->device_name);
    return found;
}

int main(int argc, char **argv)
{
    static runner r;
    bool is_list = false;
    case_rig_init(&r.rig);
    r.jobs = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    r.board = mmap(NULL, sizeof *r.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r.board == MAP_FAILED) return 2;
    for (int i = 1; i < argc; i++) {
        const bool has_next = i + 1 < argc;
        const char *wrong = NULL;
        if (!strcmp(argv[i], "-v")) r.is_verbose = true;
        else if (!strcmp(argv[i], "--separate")) r.device.is_separate = true;
        else if (!strcmp(argv[i], "--packed") && has_next) wrong = case_lines_ask_packed(&r.rig, argv[++i], &r.lines);
        else if (!strcmp(argv[i], "--gpu") && has_next) r.gpu = argv[++i];
        else if (!strcmp(argv[i], "--kernel") && has_next) r.kernel_name = argv[++i];
        else if (!strcmp(argv[i], "--row") && has_next) r.row_name = argv[++i];
        else if (!strcmp(argv[i], "--rows")) is_list = true;
        else if (!strcmp(argv[i], "--tactics") && has_next) r.tactics = (uint32_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--cases") && has_next) r.cases = (uint32_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--repeat") && has_next) r.device.repeat = (uint32_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--seconds") && has_next)
            r.end_ns = os_time_ns() + (uint64_t)atoi(argv[++i]) * 1000000000u;
        else if (!strcmp(argv[i], "--units") && has_next) r.units = (uint32_t)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--jobs") && has_next) r.jobs = (uint32_t)atoi(argv[++i]);
        else if (strchr(argv[i], ':') && strstr(argv[i], "->")) case_lines_add(&r.lines, argv[i]);
        else wrong = case_lines_read(&r.rig, argv[i], &r.lines);
        if (wrong) report_line(&r, argv[i], wrong);
    }
    if (!r.tactics) r.tactics = UINT32_MAX;
    if (!r.lines.count && !r.board->failed) {
        (void)case_lines_read_folder(&r.rig, "tests/conformance/cases", &r.lines);
        (void)case_lines_read_folder(&r.rig, "tests/cuda/cases", &r.lines);
        case_lines_scalar(&r.rig, &r.lines);
        case_lines_packed(&r.rig, &r.lines, 40, 1);
    }
    return is_list ? list(&r) : run(&r);
}
