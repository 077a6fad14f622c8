/* SPDX-License-Identifier: Apache-2.0 */
/* twoplace.c - see twoplace.h. */
#include "twoplace.h"

#include "backend/reference.h"
#include "cpu/backend_cpu.h"
#include "cpu/cpu_kernels.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCKS_MAX = 4096, PAGE = 4096, ALIGNMENT = 16 };

twoplace_state twoplace = { .budget = -1 };

static void misuse(const char *what)
{
    if (!twoplace.misuse++) (void)printf("the device was misused: %s\n", what);
}

static bool fails(void)
{
    if (twoplace.budget < 0) return false;
    if (twoplace.budget == 0) return true;
    twoplace.budget--;
    return false;
}

/* ---- memory ---- */

typedef struct block {
    uint8_t *map, *at;
    size_t size, mapped;
} block;

static block blocks[BLOCKS_MAX];
static int access_depth;

static void protect(bool open)
{
    for (int i = 0; i < BLOCKS_MAX; i++)
        if (blocks[i].map) (void)mprotect(blocks[i].map, blocks[i].mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static void enter(void)
{
    if (!access_depth++) protect(true);
}

static void leave(void)
{
    if (!--access_depth) protect(false);
}

static bool is_device(const void *at, size_t size)
{
    for (int i = 0; i < BLOCKS_MAX; i++) {
        const block *b = &blocks[i];
        if (b->map && (const uint8_t *)at >= b->at && (const uint8_t *)at + size <= b->at + b->size) return true;
    }
    return false;
}

void *twoplace_alloc(size_t size)
{
    int i = 0;
    while (i < BLOCKS_MAX && blocks[i].map) i++;
    const size_t kept = (size + 63) / 64 * 64, mapped = (kept + PAGE - 1) / PAGE * PAGE;
    if (i == BLOCKS_MAX || fails()) return NULL;
    uint8_t *map = mmap(NULL, mapped + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return NULL;
    blocks[i] = (block){ .map = map, .at = map + (mapped - kept), .size = kept, .mapped = mapped };
    if (access_depth) (void)mprotect(map, mapped, PROT_READ | PROT_WRITE);
    twoplace.allocations++;
    twoplace.live++;
    return blocks[i].at;
}

void twoplace_free(void *at, size_t size)
{
    if (!at) return;
    for (int i = 0; i < BLOCKS_MAX; i++) {
        block *b = &blocks[i];
        if (!b->map || b->at != at) continue;
        if (b->size != (size + 63) / 64 * 64) misuse("memory is freed with another size");
        (void)munmap(b->map, b->mapped + PAGE);
        *b = (block){ 0 };
        twoplace.live--;
        return;
    }
    misuse("memory is freed that is not there");
}

void twoplace_read(void *to, const void *from, size_t size)
{
    enter();
    memcpy(to, from, size);
    leave();
}

void twoplace_write(void *to, const void *from, size_t size)
{
    enter();
    memcpy(to, from, size);
    leave();
}

/* ---- the device ---- */

struct device {
    device *cpu;
    bool is_offline;
};

typedef struct task {
    struct task *next;
    program *p; /* NULL: a copy */
    void *workspace;
    step_clock *clock;
    void *to;
    const void *from;
    size_t size;
    stream *before; /* of which `upto` tasks come first */
    uint64_t upto;
    void *address[];
} task;

struct stream {
    task *first, **last;
    uint64_t pushed, done; /* tasks */
    stream *other;         /* the last that was ordered with it */
    bool is_at_work;
    data_fault fault;
    struct stream *next;
};

struct program {
    program *cpu;
    uint32_t id_max, queued;
    uint8_t *is_used; /* by id: an operand */
};

static stream *streams; /* all that are there */

static sinter_status open(env *e, const device_options *options, device **out)
{
    *out = NULL;
    if (fails()) return FAIL(e, DEVICE, "the device does not open");
    device *d = calloc(1, sizeof *d);
    if (!d) return FAIL_MEMORY(e, "a device");
    d->is_offline = options->is_shown;
    const sinter_status s = cpu_backend.open(e, options, &d->cpu);
    if (s == SINTER_OK) *out = d;
    else free(d);
    return s;
}

static void close(env *e, device *d)
{
    if (!d) return;
    cpu_backend.close(e, d->cpu);
    free(d);
}

static void target(const device *d, kernel_target *out)
{
    cpu_backend.target(d->cpu, out);
}

static sinter_status admit(env *e, uint32_t isa, const kernel_target *to)
{
    if (isa == to->isa) return SINTER_OK;
    return FAIL(e, INCOMPATIBLE, "the engine was built for %u.%u, this device is %u.%u", isa / 10, isa % 10,
                to->isa / 10, to->isa % 10);
}

static void describe(const device *d, text *out)
{
    cpu_backend.describe(d->cpu, out);
}

static const char *transfer_reject(const problem *p, const kernel_target *t)
{
    (void)p, (void)t;
    return "stands only between host and device";
}

static const kernel two_reference = {
    .name = "two_reference", .abi = 1, .out_strides = STRIDES_ROWS, .where = KERNEL_ON_HOST, REFERENCE_FUNCTIONS
};
static const kernel two_transfer = { .name = "two_transfer",
                                     .abi = 1,
                                     .where = KERNEL_TRANSFER,
                                     .reject = transfer_reject,
                                     .tactics = reference_row_tactics,
                                     .check = reference_row_check,
                                     .cost_ns = reference_row_cost_ns };

static const kernel *const *kernels(uint32_t *count)
{
    static const kernel *list[256];
    *count = 0;
    for (uint32_t i = 0; i + 1 < cpu_kernels_count; i++) /* the reference is last */
        if (cpu_kernels[i] == &cpu_copy || !(twoplace.hidden >> i % 64 & 1)) list[(*count)++] = cpu_kernels[i];
    list[(*count)++] = &two_transfer;
    list[(*count)++] = &two_reference;
    return list;
}

static void *memory_alloc(env *e, device *d, size_t size)
{
    if (d->is_offline) misuse("a device that is not there gives no memory");
    void *at = twoplace_alloc(size);
    if (!at) (void)FAIL_MEMORY(e, "the far place");
    return at;
}

static void memory_free(env *e, device *d, void *at, size_t size)
{
    (void)e, (void)d;
    for (stream *s = streams; s; s = s->next)
        for (const task *t = s->first; t; t = t->next)
            if (!t->p &&
                (((uint8_t *)t->to >= (uint8_t *)at && (uint8_t *)t->to < (uint8_t *)at + size) ||
                 ((const uint8_t *)t->from >= (uint8_t *)at && (const uint8_t *)t->from < (uint8_t *)at + size)))
                misuse("memory is freed that a copy is at");
    twoplace_free(at, size);
}

static void *host_alloc(env *e, device *d, size_t size)
{
    (void)d;
    void *at = fails() ? NULL : mem_zalloc(e, size, 64);
    if (!at) (void)FAIL_MEMORY(e, "copies");
    return at;
}

static void host_free(env *e, device *d, void *at, size_t size)
{
    (void)d;
    mem_free(e, at, size, 64);
}

/* ---- streams ---- */

static sinter_status stream_create(env *e, device *d, void *native, stream **out)
{
    *out = NULL;
    if (d->is_offline) misuse("a device that is not there has no stream");
    stream *s = fails() ? NULL : calloc(1, sizeof *s);
    if (!s) return FAIL(e, DEVICE, "the device gives no stream");
    s->last = &s->first;
    s->next = streams;
    streams = s;
    if (native) twoplace.native = native;
    *out = s;
    return SINTER_OK;
}

static task *take(stream *s)
{
    task *t = s->first;
    if (!t) return NULL;
    s->first = t->next;
    if (!s->first) s->last = &s->first;
    if (t->p) t->p->queued--;
    return t;
}

static void stream_destroy(env *e, device *d, stream *s)
{
    (void)e, (void)d;
    if (!s) return;
    if (s->first && twoplace.budget < 0) misuse("a stream is destroyed with work on it");
    if (s->other && s->other->other == s) s->other->other = NULL;
    for (task *t = take(s); t; t = take(s)) free(t);
    for (stream **at = &streams; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    free(s);
}

static sinter_status perform(env *e, device *d, stream *s, const task *t, arena *scratch);

static sinter_status perform_first(env *e, device *d, stream *s, arena *scratch)
{
    task *t = take(s);
    const sinter_status status = perform(e, d, s, t, scratch);
    s->done++;
    free(t);
    return status;
}

/* As early as its order with other streams permits: what nobody has ordered shows as a wrong result. */
static sinter_status run_ahead(env *e, device *d, stream *s, arena *scratch)
{
    sinter_status status = SINTER_OK;
    if (!s || s->is_at_work || !twoplace.is_eager) return SINTER_OK;
    s->is_at_work = true;
    while (s->first && status == SINTER_OK && !(s->first->before && s->first->before->done < s->first->upto))
        status = perform_first(e, d, s, scratch);
    s->is_at_work = false;
    return status;
}

static sinter_status perform_upto(env *e, device *d, stream *s, uint64_t upto, arena *scratch)
{
    sinter_status status = SINTER_OK;
    s->is_at_work = true;
    while (s->done < upto && s->first && status == SINTER_OK) {
        status = run_ahead(e, d, s->other, scratch);
        if (status == SINTER_OK) status = perform_first(e, d, s, scratch);
    }
    s->is_at_work = false;
    return status;
}

static sinter_status perform(env *e, device *d, stream *s, const task *t, arena *scratch)
{
    if (t->before) return perform_upto(e, d, t->before, t->upto, scratch);
    if (!t->p) return memcpy(t->to, t->from, t->size), SINTER_OK;
    const program_run run = { .address = t->address,
                              .workspace = t->workspace,
                              .fault = &s->fault,
                              .clock = t->clock,
                              .e = e,
                              .scratch = scratch };
    return cpu_backend.program_launch(d->cpu, t->p->cpu, &run);
}

static sinter_status stream_wait(env *e, device *d, stream *s, data_fault *fault)
{
    sinter_status status = fails() ? FAIL(e, DEVICE, "the device does not answer") : SINTER_OK;
    arena scratch;
    arena_init(&scratch, e);
    twoplace.waits++;
    enter();
    if (status == SINTER_OK) status = perform_upto(e, d, s, s->pushed, &scratch);
    for (task *t = take(s); t; t = take(s)) s->done++, free(t);
    leave();
    arena_deinit(&scratch);
    if (fault && s->fault.is_set) *fault = s->fault;
    s->fault = (data_fault){ 0 };
    return status;
}

static void stream_finish(env *e, device *d, stream *s)
{
    (void)stream_wait(e, d, s, NULL);
}

static bool stream_is_done(device *d, stream *s)
{
    (void)d;
    return !s->first;
}

static sinter_status push(env *e, stream *s, task *t)
{
    if (!t) return FAIL_MEMORY(e, "a task");
    *s->last = t;
    s->last = &t->next;
    s->pushed++;
    return SINTER_OK;
}

static sinter_status stream_order(env *e, device *d, stream *s, stream *before)
{
    (void)d;
    if (fails()) return FAIL(e, DEVICE, "the device orders nothing");
    task *t = calloc(1, sizeof *t);
    if (t) *t = (task){ .before = before, .upto = before->pushed };
    s->other = before;
    before->other = s;
    return push(e, s, t);
}

static sinter_status copy(env *e, device *d, stream *s, copy_kind kind, void *to, const void *from, size_t size)
{
    (void)d;
    if (fails()) return FAIL(e, DEVICE, "the device copies nothing");
    const bool to_device = is_device(to, size), from_device = is_device(from, size);
    if (to_device != (kind != COPY_FROM_DEVICE) || from_device != (kind != COPY_TO_DEVICE))
        misuse("a copy says another direction than its addresses, or passes the end of a block");
    task *t = calloc(1, sizeof *t);
    if (t) *t = (task){ .to = to, .from = from, .size = size };
    twoplace.copies++;
    return push(e, s, t);
}

static sinter_status code_import(env *e, device *d, const uint8_t key[32], const void *bytes, size_t size)
{
    (void)e, (void)d, (void)key, (void)bytes, (void)size;
    twoplace.imports++;
    return SINTER_OK;
}

/* ---- programs ---- */

static sinter_status program_create(env *e, device *d, const program_step *step, uint32_t count, bool is_once,
                                    program *reuse, program **out)
{
    if (fails()) return FAIL(e, DEVICE, "the device takes no program");
    if (reuse && reuse->queued) misuse("a program is bound again while it may run");
    for (uint32_t i = 0; i < count; i++)
        if (step[i].kernel->where != KERNEL_ON_DEVICE) misuse("a program has a step of the host's");
    program *p = reuse ? reuse : calloc(1, sizeof *p);
    if (!p) return FAIL_MEMORY(e, "a program");
    p->id_max = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < step[i].count_in; k++)
            if (step[i].in_id[k] > p->id_max) p->id_max = step[i].in_id[k];
        for (uint32_t k = 0; k < step[i].count_out; k++)
            if (step[i].out_id[k] > p->id_max) p->id_max = step[i].out_id[k];
    }
    free(p->is_used);
    p->is_used = calloc(p->id_max + 1, 1);
    if (!p->is_used) abort();
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < step[i].count_in; k++) p->is_used[step[i].in_id[k]] = 1;
        for (uint32_t k = 0; k < step[i].count_out; k++) p->is_used[step[i].out_id[k]] = 1;
    }
    const sinter_status s = cpu_backend.program_create(e, d->cpu, step, count, is_once, p->cpu, &p->cpu);
    if (s == SINTER_OK) *out = p;
    else if (!reuse) free(p->is_used), free(p);
    return s;
}

static sinter_status program_launch(device *d, program *p, const program_run *run)
{
    (void)d;
    if (fails()) return FAIL(run->e, DEVICE, "the device launches nothing");
    if (run->workspace && !is_device(run->workspace, 1)) misuse("the workspace is not the device's");
    task *t = calloc(1, sizeof *t + (p->id_max + 1) * sizeof(void *));
    if (t) {
        t->p = p;
        t->workspace = run->workspace;
        t->clock = run->clock;
        for (uint32_t i = 1; i <= p->id_max; i++) {
            t->address[i] = run->address[i];
            if (p->is_used[i] && t->address[i] && !is_device(t->address[i], 0))
                misuse("an operand is not the device's");
        }
        p->queued++;
    }
    twoplace.launches++;
    return push(run->e, run->stream, t);
}

static void program_destroy(env *e, device *d, program *p)
{
    if (!p) return;
    if (p->queued) misuse("a program is destroyed while it may run");
    cpu_backend.program_destroy(e, d->cpu, p->cpu);
    free(p->is_used);
    free(p);
}

static size_t program_memory(const program *p)
{
    return cpu_backend.program_memory(p->cpu);
}

const backend twoplace_backend = { .name = "cuda",
                                   .open = open,
                                   .close = close,
                                   .target = target,
                                   .admit = admit,
                                   .kernels = kernels,
                                   .describe = describe,
                                   .memory_alloc = memory_alloc,
                                   .memory_free = memory_free,
                                   .alignment = ALIGNMENT,
                                   .host_alloc = host_alloc,
                                   .host_free = host_free,
                                   .stream_create = stream_create,
                                   .stream_destroy = stream_destroy,
                                   .stream_order = stream_order,
                                   .stream_wait = stream_wait,
                                   .stream_finish = stream_finish,
                                   .stream_is_done = stream_is_done,
                                   .copy = copy,
                                   .code_import = code_import,
                                   .program_create = program_create,
                                   .program_launch = program_launch,
                                   .program_destroy = program_destroy,
                                   .program_memory = program_memory };

/* In place of the library's list. */
const backend *backend_find(const char *name)
{
    return strcmp(name, "cuda") == 0 ? &twoplace_backend : strcmp(name, "cpu") == 0 ? &cpu_backend : NULL;
}
