/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - fibers for the threads of a cluster of blocks, what they wait for, and what goes wrong.
 *
 * The scheduler goes round the threads and runs each that can run until it waits. Where none can, the oldest
 * asynchronous copy under way is done; where there is none, memory is opened for those in grid_wait(); where nobody is
 * there either, the threads wait for each other for ever, and the message says where. A thread that fails, by its own
 * words or by a signal, ends the launch: its stack is left as it is. */
#include "runtime.h"

#include "fiber.h"
#include "warp.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    STACK = 256 << 10,
    PAGE = 4096,
    THREADS_MAX = 1024,
    CLUSTER_MAX = 16,
    FIBERS_MAX = THREADS_MAX * CLUSTER_MAX,
    SHARED_MAX = 232448,
    SHARED_PLACE = 256 << 10,
    SHARED_SLACK = 0xC5,
    NAMED = 16,
    PHASES = 256
};
/* Addresses of shared memory as kernels have them: the block's rank above, then a gap that no address may be in. */
enum { RANK_SHIFT = 24, SHARED_FROM = 1024 };

typedef enum fiber_state {
    FIBER_READY,
    FIBER_ENDED,
    FIBER_IN_GRID_WAIT,
    FIBER_IN_COLLECTIVE,
    FIBER_IN_SYNC,
    FIBER_IN_BARRIER,
    FIBER_IN_CLUSTER
} fiber_state;

typedef struct copy {
    unsigned char *dst;
    const void *src;
    uint32_t bytes, group;
    bool is_valid;
} copy;

typedef struct warp {
    uint32_t alive, come;
    enum emulator_collective kind;
    void *lane[32];
    int line;
    const char *file;
} warp;

/* An mbarrier. The 64 bits in shared memory are not used. */
typedef struct phase_barrier {
    uint32_t at, count;
    int64_t pending, bytes;
    uint32_t phase;
} phase_barrier;

typedef struct block {
    struct emulator_index index;
    unsigned char *shared;
    uint32_t rank, alive;
    struct {
        uint32_t come, wanted;
    } named[NAMED];
    phase_barrier phase[PHASES];
    uint32_t phase_count;
} block;

typedef struct fiber {
    struct emulator_thread seen; /* first: what the kernel has */
    fiber_context context;
    fiber_state state;
    bool has_waited;
    block *block;
    warp *warp;
    uint32_t id, named, parity, groups, cluster_phase;
    phase_barrier *phase;
    const char *file;
    int line;
    copy *copies;
    uint32_t copy_count, copy_room;
} fiber;

/* Work that the hardware does by itself: a bulk copy, or the arrival of a thread's copies. */
typedef struct event {
    block *block;
    uint32_t bar, bytes;
    unsigned char *dst;
    const void *src;
    fiber *of;
} event;

typedef struct runtime {
    const runtime_launch *l;
    void (*entry)(void *const *param);
    struct emulator_thread **now;
    fiber_context main;
    sigjmp_buf jump;
    fiber *current;
    bool is_open, has_failed;
    volatile sig_atomic_t signal;
    uintptr_t pc, address;
    fiber *fibers;
    warp *warps;
    block blocks[CLUSTER_MAX];
    unsigned char *stacks, *shared_memory;
    uint32_t fiber_count, alive, threads, cluster;
    uint32_t cluster_come, cluster_phase;
    event *events;
    uint32_t event_first, event_count, event_room;
    char why[1600];
} runtime;

static runtime rt;

/* ---- failing ---- */

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    const size_t used = strlen(rt.why);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(rt.why + used, sizeof rt.why - used, format, list);
    va_end(list);
}

static void say_thread(const fiber *f)
{
    const struct emulator_index b = f->seen.block;
    say(" (block %u,%u,%u thread %u)", b.x, b.y, b.z, f->seen.thread.x);
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "?";
}

/* Back to the scheduler, for good. */
static void give_up(void)
{
    rt.has_failed = true;
    if (!rt.current) return;
    fiber *f = rt.current;
    rt.current = NULL;
    fiber_switch(&f->context, &rt.main);
}

#define THREAD_FAIL(...)                                                                                               \
    do {                                                                                                               \
        say(__VA_ARGS__);                                                                                              \
        if (rt.current) say_thread(rt.current);                                                                        \
        give_up();                                                                                                     \
    } while (0)

/* ---- waiting ---- */

static void give_way(void)
{
    fiber *f = rt.current;
    fiber_switch(&f->context, &rt.main);
}

static void wait_as(fiber_state state, const char *file, int line)
{
    rt.current->state = state;
    rt.current->file = file;
    rt.current->line = line;
    give_way();
}

static void call_give_way(const char *file, int line)
{
    wait_as(FIBER_READY, file, line);
}

static void set_open(bool is_open)
{
    if (rt.is_open == is_open) return;
    rt.is_open = is_open;
    for (uint32_t i = 0; i < rt.l->region_count; i++) {
        const runtime_region *r = &rt.l->region[i];
        if (!r->is_const) (void)mprotect(r->pages, r->size, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
}

static void call_grid_wait(const char *file, int line)
{
    if (rt.current->has_waited) THREAD_FAIL("%s:%d: grid_wait() twice", base_name(file), line);
    rt.current->has_waited = true;
    wait_as(FIBER_IN_GRID_WAIT, file, line);
}

/* Wakes those of the block that wait for named barrier `id`. */
static void open_named(block *b, uint32_t id)
{
    b->named[id].come = 0;
    const uint32_t first = b->rank * rt.threads;
    for (uint32_t i = first; i < first + rt.threads; i++)
        if (rt.fibers[i].state == FIBER_IN_SYNC && rt.fibers[i].named == id) rt.fibers[i].state = FIBER_READY;
}

static bool come_to(uint32_t id, uint32_t threads, const char *file, int line)
{
    fiber *f = rt.current;
    block *b = f->block;
    if (id >= NAMED) THREAD_FAIL("%s:%d: there are 16 barriers, this is %u", base_name(file), line, id);
    if (threads % 32 || threads > rt.threads)
        THREAD_FAIL("%s:%d: barrier %u for %u threads of %u", base_name(file), line, id, threads, rt.threads);
    const uint32_t wanted = threads ? threads : b->alive;
    if (b->named[id].come && threads && b->named[id].wanted != wanted)
        THREAD_FAIL("%s:%d: barrier %u for %u threads, others came for %u", base_name(file), line, id, wanted,
                    b->named[id].wanted);
    b->named[id].wanted = wanted;
    if (++b->named[id].come < wanted) return false;
    open_named(b, id);
    return true;
}

static void call_sync(unsigned id, unsigned threads, const char *file, int line)
{
    if (come_to(id, threads, file, line)) return;
    rt.current->named = id;
    wait_as(FIBER_IN_SYNC, file, line);
}

static void call_arrive(unsigned id, unsigned threads, const char *file, int line)
{
    (void)come_to(id, threads, file, line);
}

static unsigned char *shared_pointer(unsigned at, unsigned bytes, unsigned align)
{
    const uint32_t rank = at >> RANK_SHIFT, offset = (at & ((1u << RANK_SHIFT) - 1)) - SHARED_FROM;
    if (rank >= rt.cluster || offset > rt.l->shared || bytes > rt.l->shared - offset) {
        THREAD_FAIL("%u bytes of shared memory at 0x%x, %d from its start, which has %u", bytes, at, (int)offset,
                    rt.l->shared);
        return rt.blocks[0].shared;
    }
    if (offset % align) THREAD_FAIL("shared memory at offset %u is not aligned to %u bytes", offset, align);
    return rt.blocks[rank].shared + offset;
}

static void run_collective(warp *w)
{
    if (warp_collective_is_whole(w->kind) && w->alive < 32) {
        THREAD_FAIL("%s:%d: %s needs 32 lanes, %u are left", base_name(w->file), w->line, warp_collective_name(w->kind),
                    w->alive);
        return;
    }
    warp_collective_run(w->kind, w->lane, shared_pointer);
    w->come = 0;
    memset(w->lane, 0, sizeof w->lane);
}

static void wake_warp(const warp *w)
{
    const uint32_t index = (uint32_t)(w - rt.warps), per = (rt.threads + 31) / 32;
    const uint32_t first = index / per * rt.threads + index % per * 32;
    for (uint32_t i = first; i < first + 32 && i < rt.fiber_count; i++)
        if (rt.fibers[i].warp == w && rt.fibers[i].state == FIBER_IN_COLLECTIVE) rt.fibers[i].state = FIBER_READY;
}

static void call_collective(enum emulator_collective kind, void *lane, const char *file, int line)
{
    fiber *f = rt.current;
    warp *w = f->warp;
    if (w->come && w->kind != kind) {
        THREAD_FAIL("%s:%d: a lane is in %s, others of its warp are in %s at %s:%d", base_name(file), line,
                    warp_collective_name(kind), warp_collective_name(w->kind), base_name(w->file), w->line);
    }
    w->kind = kind;
    w->file = file;
    w->line = line;
    static char nothing[1];
    w->lane[f->seen.thread.x & 31] = lane ? lane : nothing;
    if (++w->come < w->alive) {
        wait_as(FIBER_IN_COLLECTIVE, file, line);
        return;
    }
    run_collective(w);
    wake_warp(w);
}

/* ---- asynchronous copies ---- */

static void do_copies(fiber *f, uint32_t groups)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->copy_count; i++) {
        const copy c = f->copies[i];
        if (c.group >= groups) f->copies[kept++] = c;
        else if (c.is_valid) memcpy(c.dst, c.src, c.bytes);
        else memset(c.dst, 0, c.bytes);
    }
    f->copy_count = kept;
}

static void call_copy_async(unsigned dst, const void *src, unsigned bytes, unsigned valid)
{
    fiber *f = rt.current;
    unsigned char *to = shared_pointer(dst, bytes, bytes);
    if (valid && (uintptr_t)src % bytes) THREAD_FAIL("copy_async of %u bytes from %p is not aligned", bytes, src);
    if (valid) {
        /* Out of reach is out of reach now, not when the copy is done. */
        const volatile unsigned char *probe = src;
        (void)probe[0];
        (void)probe[bytes - 1];
    }
    if (f->copy_count == f->copy_room) {
        f->copy_room = f->copy_room ? 2 * f->copy_room : 64;
        f->copies = realloc(f->copies, f->copy_room * sizeof *f->copies);
        if (!f->copies) abort();
    }
    f->copies[f->copy_count++] =
        (copy){ .dst = to, .src = src, .bytes = bytes, .group = f->groups, .is_valid = valid != 0 };
    memset(to, 0xFF, bytes);
    if (rt.l->is_synchronous) do_copies(f, UINT32_MAX);
}

static void call_copy_commit(void)
{
    rt.current->groups++;
}

static void call_copy_wait(unsigned groups)
{
    fiber *f = rt.current;
    if (f->groups > groups) do_copies(f, f->groups - groups);
}

static event *event_add(void)
{
    if (rt.event_first + rt.event_count == rt.event_room) {
        memmove(rt.events, rt.events + rt.event_first, rt.event_count * sizeof *rt.events);
        rt.event_first = 0;
        if (rt.event_count == rt.event_room) {
            rt.event_room = rt.event_room ? 2 * rt.event_room : 256;
            rt.events = realloc(rt.events, rt.event_room * sizeof *rt.events);
            if (!rt.events) abort();
        }
    }
    event *v = &rt.events[rt.event_first + rt.event_count++];
    *v = (event){ 0 };
    return v;
}

/* ---- barriers in shared memory ---- */

static phase_barrier *phase_of(unsigned bar)
{
    (void)shared_pointer(bar, 8, 8);
    block *b = &rt.blocks[bar >> RANK_SHIFT];
    for (uint32_t i = 0; i < b->phase_count; i++)
        if (b->phase[i].at == bar) return &b->phase[i];
    THREAD_FAIL("there is no barrier at offset %u of shared memory",
                (bar & ((1u << RANK_SHIFT) - 1)) - (uint32_t)SHARED_FROM);
    return &b->phase[0];
}

static void call_barrier_init(unsigned bar, unsigned count)
{
    (void)shared_pointer(bar, 8, 8);
    block *b = &rt.blocks[bar >> RANK_SHIFT];
    uint32_t i = 0;
    while (i < b->phase_count && b->phase[i].at != bar) i++;
    if (i == PHASES || !count) THREAD_FAIL("a barrier for %u arrivals, or more than %d barriers", count, PHASES);
    if (i == b->phase_count) b->phase_count++;
    b->phase[i] = (phase_barrier){ .at = bar, .count = count, .pending = count };
}

static void phase_check(phase_barrier *p)
{
    if (p->pending < 0) THREAD_FAIL("more than %u arrivals at a barrier in one phase", p->count);
    if (p->pending || p->bytes) return;
    p->phase++;
    p->pending = p->count;
}

static void call_barrier_arrive(unsigned bar, unsigned count, unsigned bytes)
{
    phase_barrier *p = phase_of(bar);
    p->bytes += bytes;
    p->pending -= count;
    phase_check(p);
}

static void call_barrier_expect(unsigned bar, unsigned bytes)
{
    phase_of(bar)->bytes += bytes;
}

static bool has_passed(const phase_barrier *p, uint32_t parity)
{
    return (p->phase & 1) != parity;
}

static void call_barrier_wait(unsigned bar, unsigned parity, const char *file, int line)
{
    phase_barrier *p = phase_of(bar);
    if (parity > 1) THREAD_FAIL("%s:%d: a parity of %u", base_name(file), line, parity);
    if (has_passed(p, parity)) return;
    rt.current->phase = p;
    rt.current->parity = parity;
    wait_as(FIBER_IN_BARRIER, file, line);
}

static void call_barrier_arrive_copies(unsigned bar)
{
    (void)phase_of(bar);
    event *v = event_add();
    v->of = rt.current;
    v->block = rt.current->block;
    v->bar = bar;
    /* What follows belongs to later groups. */
    v->bytes = ++rt.current->groups;
}

static void call_copy_bulk(unsigned dst, const void *src, unsigned bytes, unsigned bar)
{
    (void)phase_of(bar);
    unsigned char *to = shared_pointer(dst, bytes, 16);
    if (bytes % 16 || (uintptr_t)src % 16)
        THREAD_FAIL("copy_bulk of %u bytes from %p: not in units of 16 bytes", bytes, src);
    const volatile unsigned char *probe = src;
    for (uint32_t i = 0; i < bytes; i += i + 16 < bytes && i + PAGE >= bytes ? bytes - 1 - i : PAGE) (void)probe[i];
    event *v = event_add();
    *v = (event){ .block = rt.current->block, .bar = bar, .bytes = bytes, .dst = to, .src = src };
    memset(to, 0xFF, bytes);
}

static void run_event(void)
{
    const event v = rt.events[rt.event_first++];
    rt.event_count--;
    phase_barrier *p = phase_of(v.bar);
    if (v.of) {
        do_copies(v.of, v.bytes);
        p->pending--;
    } else {
        set_open(true);
        memcpy(v.dst, v.src, v.bytes);
        p->bytes -= v.bytes;
    }
    phase_check(p);
}

/* ---- clusters ---- */

static void *call_cluster_map(const void *p, unsigned rank)
{
    const block *b = rt.current->block;
    const size_t offset = (size_t)((const unsigned char *)p - b->shared);
    if (rank >= rt.cluster || offset > rt.l->shared)
        THREAD_FAIL("cluster_map of offset %zu in block %u of %u", offset, rank, rt.cluster);
    return rt.blocks[rank].shared + offset;
}

static void cluster_check(void)
{
    if (!rt.alive || rt.cluster_come < rt.alive) return;
    rt.cluster_come = 0;
    rt.cluster_phase++;
    for (uint32_t i = 0; i < rt.fiber_count; i++)
        if (rt.fibers[i].state == FIBER_IN_CLUSTER) rt.fibers[i].state = FIBER_READY;
}

static void call_cluster_arrive(void)
{
    rt.current->cluster_phase = rt.cluster_phase;
    rt.cluster_come++;
    cluster_check();
}

static void call_cluster_wait(const char *file, int line)
{
    if (rt.cluster_phase == rt.current->cluster_phase) wait_as(FIBER_IN_CLUSTER, file, line);
}

static unsigned call_shared_address(const void *p)
{
    for (uint32_t i = 0; i < rt.cluster; i++) {
        const size_t offset = (size_t)((const unsigned char *)p - rt.blocks[i].shared);
        if (offset <= rt.l->shared) return i << RANK_SHIFT | (unsigned)(offset + SHARED_FROM);
    }
    THREAD_FAIL("shared_address of %p, which is not in shared memory", p);
    return 0;
}

static void call_fail(const char *why, const char *file, int line)
{
    THREAD_FAIL("%s:%d: %s", base_name(file), line, why);
}

static const struct emulator_calls calls = {
    .collective = call_collective,
    .sync = call_sync,
    .arrive = call_arrive,
    .grid_wait = call_grid_wait,
    .give_way = call_give_way,
    .copy_async = call_copy_async,
    .copy_commit = call_copy_commit,
    .copy_wait = call_copy_wait,
    .shared_pointer = shared_pointer,
    .shared_address = call_shared_address,
    .cluster_map = call_cluster_map,
    .cluster_arrive = call_cluster_arrive,
    .cluster_wait = call_cluster_wait,
    .barrier_init = call_barrier_init,
    .barrier_arrive = call_barrier_arrive,
    .barrier_expect = call_barrier_expect,
    .barrier_wait = call_barrier_wait,
    .barrier_arrive_copies = call_barrier_arrive_copies,
    .copy_bulk = call_copy_bulk,
    .fail = call_fail,
};

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

static void end_thread(void)
{
    fiber *f = rt.current;
    if (!f->has_waited && !rt.l->is_lenient) {
        THREAD_FAIL("the thread ends without grid_wait()");
        return;
    }
    f->state = FIBER_ENDED;
    rt.alive--;
    block *b = f->block;
    b->alive--;
    if (b->alive && b->named[0].come && b->named[0].come >= b->alive) open_named(b, 0);
    warp *w = f->warp;
    w->alive--;
    if (w->come && w->come >= w->alive) {
        run_collective(w);
        wake_warp(w);
    }
    cluster_check();
    if (!b->alive) end_block(b);
}

static void body(void)
{
    void *param[RUNTIME_PARAMS];
    for (uint32_t i = 0; i < rt.l->param_count; i++) memcpy(&param[i], &rt.l->param[i], sizeof param[i]);
    rt.entry(param);
    end_thread();
    for (;;) give_way();
}

static void resume(fiber *f)
{
    set_open(f->has_waited || rt.l->is_lenient);
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
        say("\n       block %u,%u,%u threads %u to %u: %s", f->seen.block.x, f->seen.block.y, f->seen.block.z,
            f->seen.thread.x, rt.fibers[last].seen.thread.x, state_name(f));
        if (f->state != FIBER_ENDED) say(" at %s:%d", base_name(f->file), f->line);
        if (f->state == FIBER_IN_SYNC)
            say(" (barrier %u: %u of %u came)", f->named, f->block->named[f->named].come,
                f->block->named[f->named].wanted);
        if (f->state == FIBER_IN_BARRIER)
            say(" (offset %u, parity %u; phase %u lacks %lld arrivals and %lld bytes)",
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
        if (f->state == FIBER_IN_BARRIER && has_passed(f->phase, f->parity)) f->state = FIBER_READY;
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
            run_event();
            continue;
        }
        bool has_woken = false;
        for (uint32_t i = 0; i < rt.fiber_count; i++)
            if (rt.fibers[i].state == FIBER_IN_GRID_WAIT) {
                rt.fibers[i].state = FIBER_READY;
                has_woken = true;
            }
        if (has_woken) continue;
        say("threads wait for ever:");
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
    if (fgets(line, sizeof line, f)) say(" at %.*s", (int)strcspn(line, "\n ("), base_name(line));
    (void)pclose(f);
}

static void say_signal(const fiber *f)
{
    const uintptr_t a = rt.address;
    if (rt.signal == SIGALRM) {
        say("ran for more than %u seconds", rt.l->seconds);
    } else if (rt.signal == SIGILL) {
        say("an address that is not aligned for its type, or an index outside of an array");
    } else if (rt.signal == SIGFPE) {
        say("division by zero");
    } else {
        say("an access to 0x%zx", (size_t)a);
        for (uint32_t i = 0; i < rt.l->region_count; i++) {
            const runtime_region *r = &rt.l->region[i];
            if (a + PAGE < (uintptr_t)r->pages || a >= (uintptr_t)r->pages + r->size + PAGE) continue;
            if (a < (uintptr_t)r->pages) say(", before %s", r->name);
            else if (a >= (uintptr_t)r->pages + r->size)
                say(", %zu bytes behind %s", (size_t)(a - (uintptr_t)r->pages - r->size), r->name);
            else if (!r->is_const && !f->has_waited) say(", in %s, before grid_wait()", r->name);
            else say(", in %s, which is constant", r->name);
            break;
        }
        const uintptr_t stacks = (uintptr_t)rt.stacks, shared = (uintptr_t)rt.shared_memory;
        if (a >= stacks && a < stacks + (uintptr_t)STACK * FIBERS_MAX) say(", beyond the thread's stack");
        if (a >= shared && a < shared + (uintptr_t)SHARED_PLACE * CLUSTER_MAX)
            say(", in shared memory of block %u of the cluster, at %u", (unsigned)((a - shared) / SHARED_PLACE),
                (unsigned)((a - shared) % SHARED_PLACE));
        if (a < PAGE) say(", near 0");
    }
    say_line();
    say_thread(f);
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
    static char signal_stack[64 << 10];
    const stack_t stack = { .ss_sp = signal_stack, .ss_size = sizeof signal_stack };
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
    (void)sigaltstack(&stack, NULL);
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
        if (rt.cluster > 1) (void)mprotect(b->shared, SHARED_PLACE - PAGE, PROT_READ | PROT_WRITE);
        (void)mprotect(b->shared + SHARED_PLACE - PAGE, PAGE, PROT_NONE);
        memset(b->shared, 0xFF, l->shared);
        memset(b->shared + l->shared, SHARED_SLACK, 1024);
        for (uint32_t t = 0; t < rt.threads; t++) {
            const uint32_t i = c * rt.threads + t;
            fiber *f = &rt.fibers[i];
            copy *copies = f->copies;
            const uint32_t room = f->copy_room;
            unsigned char *stack = rt.stacks + (size_t)i * STACK;
            memset(f, 0, sizeof *f);
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
                          .copies = copies,
                          .copy_room = room };
            f->warp->alive++;
            fiber_make(&f->context, stack, STACK, body);
        }
    }
}

static bool check_launch(const runtime_launch *l)
{
    if (!l->block || l->block > THREADS_MAX) say("%u threads a block", l->block);
    else if (l->shared > SHARED_MAX) say("%u bytes of shared memory, a block may have %d", l->shared, SHARED_MAX);
    else if (rt.cluster > CLUSTER_MAX || l->grid[0] % rt.cluster)
        say("clusters of %u blocks in a grid of %u along x", rt.cluster, l->grid[0]);
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
        say("%s has no kernel '%s'", l->object_path, l->entry);
        return false;
    }
    void (*attach_to)(const struct emulator_calls *);
    unsigned (*sizes_of)(unsigned *);
    memcpy(&rt.entry, &entry, sizeof entry);
    memcpy(&attach_to, &attach, sizeof attach);
    memcpy(&sizes_of, &sizes, sizeof sizes);
    attach_to(&calls);
    unsigned size[64] = { 0 };
    const unsigned count = sizes_of(size);
    if (count != l->param_count) {
        say("the kernel has %u parameters, the launch %u", count, l->param_count);
        return false;
    }
    for (unsigned i = 0; i < count; i++)
        if (l->param_size[i] && l->param_size[i] != size[i]) {
            say("parameter %u of the kernel has %u bytes, that of the launch %u", i, size[i], l->param_size[i]);
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
    bool is_good = prepare() && check_launch(l) && open_entry(l);
    if (is_good) {
        (void)alarm(l->seconds);
        if (sigsetjmp(rt.jump, 1) == 0) {
            const uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
            for (uint64_t i = 0; i < blocks && !rt.has_failed; i += rt.cluster) {
                begin_cluster(l, i);
                run_cluster();
            }
        } else {
            rt.has_failed = true;
            set_open(true);
            say_signal(rt.current);
            rt.current = NULL;
        }
        (void)alarm(0);
        set_open(true);
        is_good = !rt.has_failed;
    }
    if (!is_good) (void)snprintf(why, size, "%s: %s", l->name, rt.why[0] ? rt.why : "no memory for the emulator");
    return is_good;
}
