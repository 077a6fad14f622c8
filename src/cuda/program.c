/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - programs on a GPU: made, launched, timed.
 *
 * A launch like the one before it is one call of the driver: addresses are compared with those that the graph holds.
 * Programs that are bound anew before each launch have no graph: their kernels are launched one by one. */
#include "cuda/program.h"

#include <string.h>

/* ---- making ---- */

static sinter_status find_code(env *e, device *d, const program_step *step, uint32_t count, program *p)
{
    kernel_use *use = mem_alloc(e, size_mul(count, sizeof *use), _Alignof(kernel_use));
    if (!use) return FAIL_MEMORY(e, "a program");
    for (uint32_t i = 0; i < count; i++)
        use[i] = (kernel_use){ .kernel = step[i].kernel, .problem = step[i].problem, .tactic = step[i].tactic };
    const sinter_status s = code_table_resolve(e, d, use, count, true, &p->a, p->code);
    mem_free(e, use, count * sizeof *use, _Alignof(kernel_use));
    return s;
}

static sinter_status fill(env *e, device *d, const program_step *step, uint32_t count, program *p)
{
    p->step_count = count;
    p->name = ARENA_NEW(&p->a, const char *, count);
    p->index = ARENA_NEW(&p->a, uint32_t, count);
    p->code = ARENA_NEW(&p->a, use_code, count);
    if (count && (!p->name || !p->index || !p->code)) return FAIL_MEMORY(e, "a program");
    for (uint32_t i = 0; i < count; i++) {
        if (step[i].kernel->where != step[0].kernel->where || step[i].kernel->where == KERNEL_ON_HOST)
            return FAIL(e, INTERNAL, "kernel '%s' does not run in a program", step[i].kernel->name);
        p->name[i] = step[i].kernel->name;
        p->index[i] = step[i].index;
    }
    if (count) TRY(find_code(e, d, step, count, p));
    p->bound = arena_save(&p->a);
    return SINTER_OK;
}

static sinter_status bind(env *e, device *d, const program_step *step, program *p)
{
    return program_has_calls(step, p->step_count) ? program_calls_bind(e, step, p) : program_bind(e, d, step, p);
}

static sinter_status create(env *e, device *d, const program_step *step, uint32_t count, bool is_once, program **out)
{
    program *p = mem_zalloc(e, sizeof *p, _Alignof(program));
    if (!p) return FAIL_MEMORY(e, "a program");
    arena_init(&p->a, e);
    p->a.is_kept = is_once;
    p->is_once = is_once;
    sinter_status s = fill(e, d, step, count, p);
    if (s == SINTER_OK) s = bind(e, d, step, p);
    if (s == SINTER_OK) *out = p;
    else cuda_program_destroy(e, d, p);
    return s;
}

/* The same steps with other shapes: their code is the same. */
static sinter_status bind_again(env *e, device *d, const program_step *step, program *p)
{
    p->a.e = e;
    program_graph_drop(d, p);
    program_calls_drop(p);
    arena_rewind(&p->a, p->bound);
    return bind(e, d, step, p);
}

sinter_status cuda_program_create(env *e, device *d, const program_step *step, uint32_t count, bool is_once,
                                  program *reuse, program **out)
{
    TRY(cuda_device_enter(e, d));
    const sinter_status s = reuse ? bind_again(e, d, step, reuse) : create(e, d, step, count, is_once, out);
    if (s == SINTER_OK && reuse) *out = reuse;
    cuda_device_leave(d);
    return s;
}

/* Does not wait: what was launched ends in its own time. The memory that it uses has to last until then. */
void cuda_program_destroy(env *e, device *d, program *p)
{
    if (!p) return;
    if (p->graph || p->event_count || p->call) {
        const bool is_current = cuda_device_enter_any(d);
        program_graph_drop(d, p);
        program_calls_drop(p);
        for (uint32_t i = 0; i < p->event_count; i++) (void)d->driver.cuEventDestroy(p->event[i]);
        if (is_current) cuda_device_leave(d);
    }
    if (p->event) mem_free(e, p->event, (p->step_count + 2) * sizeof *p->event, _Alignof(CUevent));
    p->a.e = e;
    arena_deinit(&p->a);
    mem_free(e, p, sizeof *p, _Alignof(program));
}

size_t cuda_program_memory(const program *p)
{
    return sizeof *p + p->a.total;
}

/* ---- addresses ---- */

static uint64_t slot_address(const program *p, const program_run *run, uint32_t slot)
{
    return slot >= SLOT_FIRST       ? (uint64_t)(uintptr_t)run->address[p->slot[slot].id]
           : slot == SLOT_WORKSPACE ? (uint64_t)(uintptr_t)run->workspace
                                    : run->stream->fault;
}

/* Are all addresses, and the order, those of the launch before? */
static bool is_same(const program *p, const program_run *run)
{
    const program_slot *s = p->slot;
    uint64_t other =
        (s[SLOT_WORKSPACE].now ^ (uint64_t)(uintptr_t)run->workspace) | (s[SLOT_FAULT].now ^ run->stream->fault);
    if (p->order != run->order) return false;
    for (uint32_t i = SLOT_FIRST; i < p->slot_count; i++)
        other |= s[i].now ^ (uint64_t)(uintptr_t)run->address[s[i].id];
    return other == 0;
}

/* ---- launching ---- */

/* follows: the launch before this one on the stream is of the same program, and may still run when this one starts. */
static sinter_status launch_node(env *e, device *d, program *p, program_node *n, CUstream s, bool follows)
{
    CUlaunchAttribute attr[2] = { 0 };
    CUlaunchConfig config = { .gridDimX = n->grid[0],
                              .gridDimY = n->grid[1],
                              .gridDimZ = n->grid[2],
                              .blockDimX = n->block,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .sharedMemBytes = n->shared,
                              .hStream = s,
                              .attrs = attr };
    if (n->cluster > 1) {
        attr[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attr[config.numAttrs].value.clusterDim.x = n->cluster;
        attr[config.numAttrs].value.clusterDim.y = attr[config.numAttrs].value.clusterDim.z = 1;
        config.numAttrs++;
    }
    if (follows && d->target.isa >= 90) {
        attr[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attr[config.numAttrs++].value.programmaticStreamSerializationAllowed = 1;
    }
    const CUresult r = d->driver.cuLaunchKernelEx(&config, n->code->function, n->param, NULL);
    if (r == CUDA_SUCCESS) return SINTER_OK;
    return NOTE(e, cuda_device_fail(e, d, r, "launching a kernel"), "launching kernel '%s'", p->name[n->step]);
}

/* A graph whose edges are not those that this run needs is dropped. */
static void keep_order(device *d, program *p, const program_run *run)
{
    bool is_kept = p->order == run->order;
    if (p->exec && is_kept && p->has_branches) {
        for (uint32_t i = 0; i < p->slot_count; i++) p->next[i] = slot_address(p, run, i);
        is_kept = !program_edges_may_change(p, p->next);
    }
    if (!is_kept) program_graph_drop(d, p);
    p->order = run->order;
}

/* Parameters, and the graph's where there is one, hold this run's addresses afterwards. Where that fails half way the
 * graph is dropped, and made anew by the next launch. */
static sinter_status patch_all(env *e, device *d, program *p, const program_run *run)
{
    keep_order(d, p, run);
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; i < p->slot_count; i++) p->slot[i].now = slot_address(p, run, i);
    for (uint32_t i = 0; i < p->node_count && s == SINTER_OK; i++) {
        bool is_changed;
        s = program_patch_node(e, d, p, &p->node[i], &is_changed);
        if (s == SINTER_OK && is_changed && p->exec) s = program_graph_update(e, d, p, &p->node[i]);
    }
    if (s != SINTER_OK) program_graph_drop(d, p);
    return s;
}

static sinter_status launch_one_by_one(env *e, device *d, program *p, const program_run *run)
{
    TRY(patch_all(e, d, p, run));
    for (uint32_t i = 0; i < p->node_count; i++) TRY(launch_node(e, d, p, &p->node[i], run->stream->handle, i > 0));
    return SINTER_OK;
}

static sinter_status prepare_graph(env *e, device *d, program *p, const program_run *run)
{
    if (p->exec && is_same(p, run)) return SINTER_OK;
    TRY(patch_all(e, d, p, run));
    return p->exec ? SINTER_OK : program_graph_make(e, d, p);
}

static sinter_status launch_graph(env *e, device *d, program *p, const program_run *run)
{
    TRY(prepare_graph(e, d, p, run));
    DEVICE_TRY(e, d, cuGraphLaunch(p->exec, run->stream->handle), "launching a graph");
    return SINTER_OK;
}

static sinter_status launch(env *e, device *d, program *p, const program_run *run)
{
    if (p->call) return program_calls_run(e, d, p, run, NULL);
    return p->is_once ? launch_one_by_one(e, d, p, run) : launch_graph(e, d, p, run);
}

static sinter_status make_events(env *e, device *d, program *p, uint32_t count)
{
    const size_t room = p->step_count + 2;
    if (!p->event) p->event = mem_zalloc(e, room * sizeof *p->event, _Alignof(CUevent));
    if (!p->event) return FAIL_MEMORY(e, "events");
    for (; p->event_count < count; p->event_count++)
        DEVICE_TRY(e, d, cuEventCreate(&p->event[p->event_count], CU_EVENT_DEFAULT), "making an event");
    return SINTER_OK;
}

static sinter_status elapsed_ns(env *e, device *d, CUevent from, CUevent to, double *ns)
{
    float ms = 0;
    DEVICE_TRY(e, d, cuEventElapsedTime(&ms, from, to), "reading the device's clock");
    *ns = (double)ms * 1e6;
    return SINTER_OK;
}

static sinter_status launch_timed(env *e, device *d, program *p, const program_run *run)
{
    TRY(make_events(e, d, p, p->step_count + 1));
    if (p->call) {
        DEVICE_TRY(e, d, cuEventRecord(p->event[0], run->stream->handle), "recording an event");
        TRY(program_calls_run(e, d, p, run, p->event + 1));
        DEVICE_TRY(e, d, cuEventSynchronize(p->event[p->step_count]), "waiting for the device");
    } else {
        TRY(patch_all(e, d, p, run));
        TRY(program_graph_time(e, d, p, run->stream->handle));
    }
    for (uint32_t i = 0; i < p->step_count; i++) {
        double ns = 0;
        TRY(elapsed_ns(e, d, p->event[i], p->event[i + 1], &ns));
        step_clock *c = &run->clock[p->index[i]];
        const uint64_t took = (uint64_t)(ns + 0.5);
        c->total_ns += took;
        if (!c->runs++ || took < c->min_ns) c->min_ns = took;
    }
    return SINTER_OK;
}

/* The usual case: the stream has a context, so none need be current. What a driver that sees this otherwise would say
 * is no failure yet. */
static bool launch_again(device *d, const program *p, const program_run *run, CUresult *r)
{
    /* The special handles name a stream of the current context, whichever that is. */
    const bool is_special = (uintptr_t)run->stream->handle <= 2;
    if (is_special || __atomic_load_n(&d->launch_needs_context, __ATOMIC_RELAXED) || !is_same(p, run)) return false;
    *r = d->driver.cuGraphLaunch(p->exec, run->stream->handle);
    return *r != CUDA_ERROR_INVALID_CONTEXT && *r != CUDA_ERROR_NOT_INITIALIZED && *r != CUDA_ERROR_INVALID_HANDLE &&
           *r != CUDA_ERROR_INVALID_VALUE;
}

sinter_status cuda_program_launch(device *d, program *p, const program_run *run)
{
    env *e = run->e;
    CUresult r = CUDA_SUCCESS;
    if (!run->stream) return FAIL(e, INTERNAL, "a program is launched without a stream");
    TRY(cuda_device_check(e, d));
    if (!p->node_count && !p->call && !run->clock) return SINTER_OK;
    if (p->has_fault) run->stream->may_have_fault = true;
    if (p->exec && !run->clock && launch_again(d, p, run, &r))
        return r == CUDA_SUCCESS ? SINTER_OK : cuda_device_fail(e, d, r, "launching a graph");
    TRY(cuda_device_enter(e, d));
    const sinter_status s = run->clock ? launch_timed(e, d, p, run) : launch(e, d, p, run);
    cuda_device_leave(d);
    if (s == SINTER_OK && r != CUDA_SUCCESS) __atomic_store_n(&d->launch_needs_context, 1, __ATOMIC_RELAXED);
    return s;
}

sinter_status cuda_program_ready(device *d, program *p, const program_run *run)
{
    env *e = run->e;
    if (!run->stream) return FAIL(e, INTERNAL, "a program is made ready without a stream");
    if (!p->node_count || p->is_once) return cuda_device_check(e, d);
    TRY(cuda_device_enter(e, d));
    const sinter_status s = prepare_graph(e, d, p, run);
    cuda_device_leave(d);
    return s;
}

/* ---- measuring ---- */

static sinter_status measure(env *e, device *d, program *p, const program_run *run, uint32_t repeats, double *ns)
{
    const CUstream s = run->stream->handle;
    TRY(make_events(e, d, p, 2));
    if (p->node_count && !p->is_once) TRY(prepare_graph(e, d, p, run));
    DEVICE_TRY(e, d, cuEventRecord(p->event[0], s), "recording an event");
    for (uint32_t i = 0; i < repeats; i++) TRY(launch(e, d, p, run));
    DEVICE_TRY(e, d, cuEventRecord(p->event[1], s), "recording an event");
    DEVICE_TRY(e, d, cuEventSynchronize(p->event[1]), "waiting for the device");
    TRY(elapsed_ns(e, d, p->event[0], p->event[1], ns));
    *ns /= repeats;
    return SINTER_OK;
}

sinter_status cuda_program_time(device *d, program *p, const program_run *run, uint32_t repeats, double *ns)
{
    env *e = run->e;
    *ns = 0;
    if (!run->stream) return FAIL(e, INTERNAL, "a program is timed without a stream");
    TRY(cuda_device_enter(e, d));
    if (p->has_fault) run->stream->may_have_fault = true;
    const sinter_status s = (p->node_count || p->call) && repeats ? measure(e, d, p, run, repeats, ns) : SINTER_OK;
    cuda_device_leave(d);
    return s;
}
