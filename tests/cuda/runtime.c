/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - fibers for the threads of a cluster of blocks, their life, and what goes wrong.
 *
 * The scheduler goes round the threads and runs each that can run until it waits. Where none can, the oldest
 * asynchronous copy under way is done; where there is none, memory is opened for those in grid_wait(); where nobody is
 * there either, the threads wait for each other for ever, and the message says where. A thread that fails, by its own
 * words or by a signal, ends the launch: its stack is left as it is. */
#include "base/asan.h"
#include "runtime_state.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

runtime rt;

/* ---- failing ---- */

void runtime_say(const char *format, ...)
{
    const size_t used = strlen(rt.why);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(rt.why + used, sizeof rt.why - used, format, list);
    va_end(list);
}

void runtime_say_thread(const fiber *f)
{
    const struct emulator_index b = f->seen.block;
    runtime_say(" (block %u,%u,%u thread %u)", b.x, b.y, b.z, f->seen.thread.x);
}

const char *runtime_base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "?";
}

void runtime_give_up(void)
{
    rt.has_failed = true;
    if (!rt.current) return;
    fiber *f = rt.current;
    rt.current = NULL;
    fiber_switch(&f->context, &rt.main);
}

void runtime_give_way(void)
{
    fiber *f = rt.current;
    fiber_switch(&f->context, &rt.main);
}

void runtime_set_open(bool is_open)
{
    if (rt.is_open == is_open) return;
    rt.is_open = is_open;
    for (uint32_t i = 0; i < rt.l->region_count; i++) {
        const runtime_region *r = &rt.l->region[i];
        if (!r->is_const) (void)mprotect(r->pages, r->size, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
}

/* ---- the life of a thread ---- */

/* Slack behind shared memory still holds what was put there. */
static void end_block(block *b)
{
    for (uint32_t i = rt.l->shared; i < SHARED_PLACE - PAGE && i < rt.l->shared + 1024; i++)
        if (b->shared[i] != SHARED_SLACK) {
            THREAD_FAIL("byte %u of shared memory was written, which has %u", i, rt.l->shared);
            return;
        }
    for (uint32_t i = 0; i < rt.event_count; i++)
        if (rt.events[rt.event_first + i].block == b) {
            THREAD_FAIL("the block ends while copies of its are under way");
            return;
        }
    if (rt.cluster > 1) (void)mprotect(b->shared, SHARED_PLACE - PAGE, PROT_NONE);
}

int64_t runtime_registers(void)
{
    const int64_t even = 65536 / rt.threads / 8 * 8;
    return even < 255 ? even : 255;
}

static void end_thread(void)
{
    fiber *f = rt.current;
    if (!f->has_waited && !rt.l->is_lenient) {
        THREAD_FAIL("the thread ends without grid_wait()");
        return;
    }
    if (f->out_count) {
        THREAD_FAIL("the thread ends while tensor copies of its read shared memory");
        return;
    }
    f->state = FIBER_ENDED;
    rt.alive--;
    block *b = f->block;
    b->alive--;
    if (b->alive && b->named[0].come && b->named[0].come >= b->alive) runtime_open_named(b, 0);
    warp *w = f->warp;
    w->alive--;
    if (w->come && w->come >= w->alive) {
        runtime_run_collective(w);
        runtime_wake_warp(w);
    }
    runtime_cluster_check();
    if (b->alive) return;
    if (b->registers > 0) {
        THREAD_FAIL("registers_take() waits for ever: %lld more are taken than given", (long long)b->registers);
        return;
    }
    end_block(b);
}

static void body(void)
{
    void *param[RUNTIME_PARAMS];
    for (uint32_t i = 0; i < rt.l->param_count; i++) memcpy(&param[i], &rt.l->param[i], sizeof param[i]);
    rt.entry(param);
    end_thread();
    for (;;) runtime_give_way();
}

static void resume(fiber *f)
{
    runtime_set_open(f->has_waited || rt.l->is_lenient);
    rt.current = f;
    *rt.now = &f->seen;
    fiber_switch(&rt.main, &f->context);
    rt.current = NULL;
}

static const char *state_name(const fiber *f)
{
    switch (f->state) {
    case FIBER_IN_GRID_WAIT: return "grid_wait";
    case FIBER_IN_COLLECTIVE: return warp_collective_name(f->warp->kind);
    case FIBER_IN_SYNC: return f->named ? "sync_some" : "sync_block";
    case FIBER_IN_BARRIER: return "barrier_wait";
    case FIBER_IN_CLUSTER: return "cluster_wait";
    case FIBER_READY:
    case FIBER_ENDED: break;
    }
    return f->state == FIBER_READY ? "running" : "ended";
}

static bool is_alike(const fiber *a, const fiber *b)
{
    return a->state == b->state && a->block == b->block && a->file == b->file && a->line == b->line &&
           (a->state != FIBER_IN_BARRIER || a->phase == b->phase);
}

static void say_who_waits(void)
{
    int lines = 0;
    for (uint32_t i = 0; i < rt.fiber_count && lines < 8; lines++) {
        const fiber *f = &rt.fibers[i];
        uint32_t last = i;
        while (last + 1 < rt.fiber_count && is_alike(f, &rt.fibers[last + 1])) last++;
        runtime_say("\n       block %u,%u,%u threads %u to %u: %s", f->seen.block.x, f->seen.block.y, f->seen.block.z,
                    f->seen.thread.x, rt.fibers[last].seen.thread.x, state_name(f));
        if (f->state != FIBER_ENDED) runtime_say(" at %s:%d", runtime_base_name(f->file), f->line);
        if (f->state == FIBER_IN_SYNC)
            runtime_say(" (barrier %u: %u of %u came)", f->named, f->block->named[f->named].come,
                        f->block->named[f->named].wanted);
        if (f->state == FIBER_IN_BARRIER)
            runtime_say(" (offset %u, parity %u; phase %u lacks %lld arrivals and %lld bytes)",
                        (f->phase->at & ((1u << RANK_SHIFT) - 1)) - (uint32_t)SHARED_FROM, f->parity, f->phase->phase,
                        (long long)f->phase->pending, (long long)f->phase->bytes);
        i = last + 1;
    }
}

static bool run_round(void)
{
    bool has_run = false;
    for (uint32_t k = 0; k < rt.fiber_count && !rt.has_failed; k++) {
        fiber *f = &rt.fibers[rt.l->is_reversed ? rt.fiber_count - 1 - k : k];
        if (f->state == FIBER_IN_BARRIER && runtime_has_passed(f->phase, f->parity)) f->state = FIBER_READY;
        if (f->state != FIBER_READY) continue;
        has_run = true;
        resume(f);
    }
    return has_run;
}

static void run_cluster(void)
{
    while (rt.alive && !rt.has_failed) {
        if (run_round()) continue;
        if (rt.event_count) {
            runtime_run_event();
            continue;
        }
        bool has_woken = false;
        for (uint32_t i = 0; i < rt.fiber_count; i++)
            if (rt.fibers[i].state == FIBER_IN_GRID_WAIT) {
                rt.fibers[i].state = FIBER_READY;
                has_woken = true;
            }
        if (has_woken) continue;
        runtime_say("threads wait for ever:");
        say_who_waits();
        rt.has_failed = true;
    }
}

/* ---- launches ---- */

static void on_signal(int number, siginfo_t *info, void *context)
{
    if (!rt.current) {
        (void)signal(number, SIG_DFL);
        return;
    }
    rt.signal = number;
    rt.address = (uintptr_t)info->si_addr;
    rt.pc = 0;
#if defined(__x86_64__)
    rt.pc = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    rt.pc = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
#endif
    siglongjmp(rt.jump, 1);
}

/* The line of a kernel's source that `pc` is in. */
static void say_line(void)
{
    Dl_info info;
    if (!rt.pc || !dladdr((void *)rt.pc, &info) || !info.dli_fname || strcmp(info.dli_fname, rt.l->object_path) != 0)
        return;
    char command[700], line[300] = "";
    (void)snprintf(command, sizeof command, "addr2line -e '%s' 0x%zx 2>/dev/null", rt.l->object_path,
                   (size_t)(rt.pc - (uintptr_t)info.dli_fbase));
    FILE *f = popen(command, "r");
    if (!f) return;
    if (fgets(line, sizeof line, f)) runtime_say(" at %.*s", (int)strcspn(line, "\n ("), runtime_base_name(line));
    (void)pclose(f);
}

static void say_signal(const fiber *f)
{
    const uintptr_t a = rt.address;
    if (rt.signal == SIGALRM) {
        runtime_say("ran for more than %u seconds", rt.l->seconds);
    } else if (rt.signal == SIGILL) {
        runtime_say("an address that is not aligned for its type, or an index outside of an array");
    } else if (rt.signal == SIGFPE) {
        runtime_say("division by zero");
    } else {
        runtime_say("an access to 0x%zx", (size_t)a);
        for (uint32_t i = 0; i < rt.l->region_count; i++) {
            const runtime_region *r = &rt.l->region[i];
            if (a + PAGE < (uintptr_t)r->pages || a >= (uintptr_t)r->pages + r->size + PAGE) continue;
            if (a < (uintptr_t)r->pages) runtime_say(", before %s", r->name);
            else if (a >= (uintptr_t)r->pages + r->size)
                runtime_say(", %zu bytes behind %s", (size_t)(a - (uintptr_t)r->pages - r->size), r->name);
            else if (!r->is_const && !f->has_waited) runtime_say(", in %s, before grid_wait()", r->name);
            else runtime_say(", in %s, which is constant", r->name);
            break;
        }
        const uintptr_t stacks = (uintptr_t)rt.stacks, shared = (uintptr_t)rt.shared_memory;
        if (a >= stacks && a < stacks + (uintptr_t)STACK * FIBERS_MAX) runtime_say(", beyond the thread's stack");
        if (a >= shared && a < shared + (uintptr_t)SHARED_PLACE * CLUSTER_MAX)
            runtime_say(", in shared memory of block %u of the cluster, at %u", (unsigned)((a - shared) / SHARED_PLACE),
                        (unsigned)((a - shared) % SHARED_PLACE));
        if (a < PAGE) runtime_say(", near 0");
    }
    say_line();
    runtime_say_thread(f);
}

static bool prepare(void)
{
    if (rt.fibers) return true;
    rt.fibers = calloc(FIBERS_MAX, sizeof *rt.fibers);
    rt.warps = calloc(FIBERS_MAX / 32, sizeof *rt.warps);
    rt.stacks = mmap(NULL, (size_t)STACK * FIBERS_MAX, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    rt.shared_memory = mmap(NULL, (size_t)SHARED_PLACE * CLUSTER_MAX, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
    const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGALRM };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) (void)sigaction(signals[i], &action, NULL);
    return rt.fibers && rt.warps && rt.stacks != MAP_FAILED && rt.shared_memory != MAP_FAILED;
}

/* Fibers and shared memory of the cluster whose first block is number `first`. */
static void begin_cluster(const runtime_launch *l, uint64_t first)
{
    const uint32_t per = (rt.threads + 31) / 32;
    memset(rt.warps, 0, sizeof *rt.warps * per * rt.cluster);
    rt.fiber_count = rt.alive = rt.cluster * rt.threads;
    rt.cluster_come = rt.cluster_phase = 0;
    rt.event_first = rt.event_count = 0;
    for (uint32_t c = 0; c < rt.cluster; c++) {
        block *b = &rt.blocks[c];
        const uint64_t at = first + c;
        const struct emulator_index index = { (unsigned)(at % l->grid[0]), (unsigned)(at / l->grid[0] % l->grid[1]),
                                              (unsigned)(at / l->grid[0] / l->grid[1]) };
        memset(b, 0, sizeof *b);
        b->index = index;
        b->rank = c;
        b->alive = rt.threads;
        b->shared = rt.shared_memory + (size_t)c * SHARED_PLACE;
        (void)mprotect(b->shared, SHARED_PLACE - PAGE, PROT_READ | PROT_WRITE);
        (void)mprotect(b->shared + SHARED_PLACE - PAGE, PAGE, PROT_NONE);
        memset(b->shared, 0xFF, l->shared);
        memset(b->shared + l->shared, SHARED_SLACK, 1024);
        for (uint32_t t = 0; t < rt.threads; t++) {
            const uint32_t i = c * rt.threads + t;
            fiber *f = &rt.fibers[i];
            const fiber before = *f;
            unsigned char *stack = rt.stacks + (size_t)i * STACK;
            *f = (fiber){ .seen = { .thread = { t, 0, 0 },
                                    .block = index,
                                    .threads = { rt.threads, 1, 1 },
                                    .blocks = { l->grid[0], l->grid[1], l->grid[2] },
                                    .cluster_rank = c,
                                    .cluster_size = rt.cluster,
                                    .shared = b->shared },
                          .block = b,
                          .warp = &rt.warps[c * per + t / 32],
                          .id = i,
                          .copies = before.copies,
                          .copy_room = before.copy_room,
                          .products = before.products,
                          .product_room = before.product_room,
                          .outs = before.outs,
                          .out_room = before.out_room };
            f->warp->alive++;
            if (i >= rt.guarded) {
                (void)mprotect(stack, PAGE, PROT_NONE);
                rt.guarded = i + 1;
            }
            /* Frames that were left as they are, seen from ASan. */
            ASAN_UNPOISON(stack + STACK - STACK_TOP, STACK_TOP);
            fiber_make(&f->context, stack, STACK, body);
        }
    }
}

static bool check_launch(const runtime_launch *l)
{
    if (!l->block || l->block > THREADS_MAX) runtime_say("%u threads a block", l->block);
    else if (l->shared > SHARED_MAX)
        runtime_say("%u bytes of shared memory, a block may have %d", l->shared, SHARED_MAX);
    else if (rt.cluster > CLUSTER_MAX || l->grid[0] % rt.cluster)
        runtime_say("clusters of %u blocks in a grid of %u along x", rt.cluster, l->grid[0]);
    return !rt.why[0];
}

static bool open_entry(const runtime_launch *l)
{
    char name[160];
    (void)snprintf(name, sizeof name, "emulated_entry_%s", l->entry);
    void *entry = dlsym(l->object, name), *attach = dlsym(l->object, "emulated_attach");
    (void)snprintf(name, sizeof name, "emulated_sizes_%s", l->entry);
    void *sizes = dlsym(l->object, name);
    rt.now = dlsym(l->object, "emulated_now");
    if (!entry || !attach || !sizes || !rt.now) {
        runtime_say("%s has no kernel '%s'", l->object_path, l->entry);
        return false;
    }
    void (*attach_to)(const struct emulator_calls *);
    unsigned (*sizes_of)(unsigned *);
    memcpy(&rt.entry, &entry, sizeof entry);
    memcpy(&attach_to, &attach, sizeof attach);
    memcpy(&sizes_of, &sizes, sizeof sizes);
    attach_to(&runtime_calls);
    unsigned size[64] = { 0 };
    const unsigned count = sizes_of(size);
    if (count != l->param_count) {
        runtime_say("the kernel has %u parameters, the launch %u", count, l->param_count);
        return false;
    }
    for (unsigned i = 0; i < count; i++)
        if (l->param_size[i] && l->param_size[i] != size[i]) {
            runtime_say("parameter %u of the kernel has %u bytes, that of the launch %u", i, size[i], l->param_size[i]);
            return false;
        }
    return true;
}

bool runtime_run(const runtime_launch *l, char *why, size_t size)
{
    rt.l = l;
    rt.why[0] = 0;
    rt.has_failed = false;
    rt.current = NULL;
    rt.is_open = true;
    rt.threads = l->block;
    rt.cluster = l->cluster ? l->cluster : 1;
    /* For signals where a thread of the kernel has no stack left. */
    static char signal_stack[64 << 10];
    const stack_t stack = { .ss_sp = signal_stack, .ss_size = sizeof signal_stack };
    (void)sigaltstack(&stack, NULL);
    bool is_good = prepare() && check_launch(l) && open_entry(l);
    if (is_good) {
        (void)alarm(l->seconds);
        if (sigsetjmp(rt.jump, 1) == 0) {
            const uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
            for (uint64_t i = 0; i < blocks && !rt.has_failed; i += rt.cluster) {
                begin_cluster(l, l->is_reversed ? blocks - rt.cluster - i : i);
                run_cluster();
            }
        } else {
            rt.has_failed = true;
            runtime_set_open(true);
            say_signal(rt.current);
            rt.current = NULL;
        }
        (void)alarm(0);
        runtime_set_open(true);
        is_good = !rt.has_failed;
        if (!is_good) ASAN_UNPOISON(rt.stacks, (size_t)STACK * rt.guarded);
    }
    if (!is_good) (void)snprintf(why, size, "%s: %s", l->name, rt.why[0] ? rt.why : "no memory for the emulator");
    return is_good;
}
