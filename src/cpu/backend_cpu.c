/* SPDX-License-Identifier: Apache-2.0 */
/* backend_cpu.c - the CPU as a backend: a program is a list of bound records, run one after the other.
 *
 * Everything a launch needs lies in one block, made when the shape is set; a launch looks up addresses and calls. */
#include "cpu/backend_cpu.h"

#include "base/os.h"
#include "cpu/cpu_device.h"
#include "cpu/cpu_kernels.h"

#include <string.h>

struct device {
    cpu_device cpu;
    memory_counts counts;
};

typedef struct launch {
    const kernel *kernel;
    void *record; /* zeroed before it is bound */
    uint32_t count_in, count_out, index;
    bool is_small; /* not worth waking another thread for */
    bool is_empty; /* no result has an element: nothing is to be done */
    const uint32_t *in_id, *out_id;
} launch;

struct program {
    size_t size;
    uint32_t count;
    bool is_small;  /* no step is worth waking another thread for */
    void **pointer; /* room for the operands of the widest step */
    launch at[];
};

static sinter_status open(env *e, const device_options *options, device **out)
{
    device *d = mem_zalloc(e, sizeof *d, _Alignof(device));
    *out = NULL;
    if (!d) return FAIL_MEMORY(e, "a device");
    const cpu_pool_options pool = { .threads = options->threads,
                                    .spin_ns = (uint64_t)options->spin_us * 1000,
                                    .is_pinned = options->is_pinned };
    const sinter_status s = cpu_device_init(e, options->isa, &pool, &d->cpu);
    if (s != SINTER_OK) {
        mem_free(e, d, sizeof *d, _Alignof(device));
        return s;
    }
    /* What is only shown is checked for the CPU that it was built for: the tiles of this architecture are known. */
    const isa_level shown = (isa_level)options->shown_isa;
    if (options->is_shown && !strcmp(isa_level_architecture(shown), isa_level_architecture(ISA_PLAIN)))
        d->cpu.target = cpu_target_of((isa_choice){ shown, ISA_FEATURES_ALL }, d->cpu.target.threads);
    *out = d;
    return SINTER_OK;
}

static void close(env *e, device *d)
{
    if (!d) return;
    cpu_device_deinit(&d->cpu);
    mem_free(e, d, sizeof *d, _Alignof(device));
}

static void target(const device *d, kernel_target *out)
{
    *out = d->cpu.target;
}

static const kernel *const *kernels(uint32_t *count)
{
    *count = cpu_kernels_count;
    return cpu_kernels;
}

static void describe(const device *d, text *out)
{
    cpu_device_describe(&d->cpu, out);
}

static void describe_use(const device *d, const kernel_use *use, text *out)
{
    (void)d;
    text_printf(out, "kernel=%s", cpu_kernel_hash(use->kernel));
}

/* The thread that first writes a page decides which NUMA node it is on: each worker clears the part whose rows it will
 * have. */
enum { CLEAR_UNIT = 1 << 21 };
typedef struct clearing {
    uint8_t *at;
    size_t size;
} clearing;

static void clear_units(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const clearing *c = arg;
    const size_t from = (size_t)begin * CLEAR_UNIT, to = (size_t)end * CLEAR_UNIT;
    memset(c->at + from, 0, (to < c->size ? to : c->size) - from);
}

static void clear(const device *d, void *block, size_t size)
{
    clearing c = { block, size };
    const size_t units = size / CLEAR_UNIT + (size % CLEAR_UNIT != 0);
    const parallel *p = cpu_pool_parallel(d->cpu.pool);
    if (units > 1 && units <= UINT32_MAX && p->threads > 1 && os_node_count() > 1)
        p->run(p, (uint32_t)units, clear_units, &c);
    else memset(block, 0, size);
}

static void *memory_alloc(env *e, device *d, size_t size)
{
    void *block = mem_alloc(e, size, 64);
    os_memory_hint_large(block, size);
    if (block) clear(d, block, size);
    else (void)FAIL_MEMORY(e, "what a run holds");
    if (block) memory_count_take(&d->counts, size);
    return block;
}

static void memory_free(env *e, device *d, void *ptr, size_t size)
{
    if (!ptr) return;
    mem_free(e, ptr, size, 64);
    memory_count_give(&d->counts, size);
}

static const memory_counts *counts(const device *d)
{
    return &d->counts;
}

/* ---- programs ---- */

static size_t record_size(const program_step *s)
{
    return size_align(kernel_record_size(s->kernel, s->problem, s->tactic), 64);
}

/* One block: the header, the launches, the pointers, the records. */
static program *allocate(env *e, const program_step *step, uint32_t count)
{
    size_t size = size_align(sizeof(program) + count * sizeof(launch), 64);
    const size_t pointers = size;
    uint32_t widest = 0;
    for (uint32_t i = 0; i < count; i++)
        if (step[i].count_in + step[i].count_out > widest) widest = step[i].count_in + step[i].count_out;
    size = size_align(size_add(size, size_mul(widest, sizeof(void *))), 64);
    const size_t records = size;
    for (uint32_t i = 0; i < count; i++) size = size_add(size, record_size(&step[i]));
    program *p = mem_zalloc(e, size, 64);
    if (!p) return NULL;
    p->size = size;
    p->count = count;
    p->pointer = (void **)((uint8_t *)p + pointers);
    uint8_t *record = (uint8_t *)p + records;
    for (uint32_t i = 0; i < count; i++) {
        p->at[i] = (launch){ .kernel = step[i].kernel,
                             .record = record,
                             .count_in = step[i].count_in,
                             .count_out = step[i].count_out,
                             .index = step[i].index,
                             .in_id = step[i].in_id,
                             .out_id = step[i].out_id };
        record += record_size(&step[i]);
    }
    return p;
}

static void unbind(const launch *l)
{
    if (l->kernel->unbind) l->kernel->unbind(l->record);
}

static void program_destroy(env *e, device *d, program *p)
{
    (void)d;
    if (!p) return;
    for (uint32_t i = 0; i < p->count; i++) unbind(&p->at[i]);
    mem_free(e, p, p->size, 64);
}

/* A hand-over costs 0.3 us and the inputs' way to another core; below about 5 us a thread it gains nothing. The sums
 * are the same either way: tiles fix their order. */
static bool is_small(const device *d, const program_step *s)
{
    kernel_target one = d->cpu.target;
    one.threads = 1;
    return !s->kernel->cost_ns || s->kernel->cost_ns(s->problem, s->tactic, &one) < 10e3;
}

static sinter_status program_create(env *e, device *d, const program_step *step, uint32_t count, bool is_once,
                                    program *reuse, program **out)
{
    (void)is_once;
    program *p = reuse ? reuse : allocate(e, step, count);
    if (!p) return FAIL_MEMORY(e, "a program");
    p->is_small = true;
    for (uint32_t i = 0; i < count; i++) {
        const program_step *s = &step[i];
        unbind(&p->at[i]);
        p->at[i].is_small = is_small(d, s);
        p->at[i].is_empty = !program_step_has_results(s);
        p->is_small = p->is_small && (p->at[i].is_small || p->at[i].is_empty);
        if (p->at[i].is_empty) continue;
        const sinter_status status =
            s->kernel->bind(e, s->problem, s->tactic, s->attrs, s->in, s->out, p->at[i].record);
        if (status == SINTER_OK) continue;
        if (!reuse) program_destroy(e, d, p);
        return NOTE(e, status, "binding kernel '%s'", s->kernel->name);
    }
    *out = p;
    return SINTER_OK;
}

static sinter_status run_step(const program *p, const launch *l, kernel_run *r, const program_run *run)
{
    void **pointer = p->pointer;
    for (uint32_t i = 0; i < l->count_in; i++) pointer[i] = l->in_id[i] ? run->address[l->in_id[i]] : NULL;
    for (uint32_t i = 0; i < l->count_out; i++)
        pointer[l->count_in + i] = l->out_id[i] ? run->address[l->out_id[i]] : NULL;
    const parallel *all = r->parallel;
    if (l->is_small) r->parallel = NULL;
    r->record = l->record;
    r->in = pointer;
    r->out = pointer + l->count_in;
    const bool was_clean = !run->fault || !run->fault->is_set;
    const arena_mark mark = arena_save(run->scratch);
    const sinter_status s = l->kernel->run(r);
    r->parallel = all;
    arena_rewind(run->scratch, mark);
    if (was_clean && run->fault && run->fault->is_set) run->fault->step = l->index;
    return NOTE(run->e, s, "running kernel '%s'", l->kernel->name);
}

static sinter_status run_watched(const program *p, const launch *l, kernel_run *r, const program_run *run)
{
    if (!run->watch) return run_step(p, l, r, run);
    run->watch->begin(run->watch->user, l->index);
    const sinter_status s = run_step(p, l, r, run);
    run->watch->end(run->watch->user);
    return s;
}

static sinter_status run_steps(program *p, const program_run *run, const parallel *pool)
{
    kernel_run r = {
        .workspace = run->workspace, .parallel = pool, .fault = run->fault, .e = run->e, .scratch = run->scratch
    };
    for (uint32_t i = 0; i < p->count; i++) {
        const launch *l = &p->at[i];
        if (l->is_empty) continue;
        if (!run->clock) {
            TRY(run_watched(p, l, &r, run));
            continue;
        }
        const uint64_t start = os_time_ns();
        TRY(run_watched(p, l, &r, run));
        const uint64_t ns = os_time_ns() - start;
        step_clock *c = &run->clock[l->index];
        c->total_ns += ns;
        if (!c->runs++ || ns < c->min_ns) c->min_ns = ns;
    }
    return SINTER_OK;
}

static sinter_status program_launch(device *d, program *p, const program_run *run)
{
    if (p->is_small) return run_steps(p, run, NULL);
    const sinter_status s = run_steps(p, run, cpu_pool_begin(d->cpu.pool));
    cpu_pool_end(d->cpu.pool);
    return s;
}

static sinter_status rates(env *e, device *d, size_t touched, device_rates *out)
{
    return cpu_rates(e, &d->cpu, touched, out);
}

static size_t program_memory(const program *p)
{
    return p->size;
}

static sinter_status admit(env *e, uint32_t isa, const kernel_target *target)
{
    const isa_level want = (isa_level)isa, have = (isa_level)target->isa;
    if (isa_level_runs(have, want)) return SINTER_OK;
    return FAIL(e, INCOMPATIBLE, "the engine needs CPU level %s (%s), %s (%s) is in use here: build it for this one",
                isa_level_name(want), isa_level_architecture(want), isa_level_name(have), isa_level_architecture(have));
}

const backend cpu_backend = {
    .name = "cpu",
    .traits = BACKEND_INTEGERS | BACKEND_UNSIGNED,
    .open = open,
    .close = close,
    .target = target,
    .admit = admit,
    .kernels = kernels,
    .describe = describe,
    .describe_use = describe_use,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .memory_counts = counts,
    .rates = rates,
    .program_create = program_create,
    .program_launch = program_launch,
    .program_destroy = program_destroy,
    .program_memory = program_memory,
};
