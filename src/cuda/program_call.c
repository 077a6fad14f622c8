/* SPDX-License-Identifier: Apache-2.0 */
/* program_call.c - programs of steps whose kernels put their own work on the stream (KERNEL_ON_STREAM).
 *
 * They have no graph: such a function is called in each run, with the addresses of that run, and may do what a graph
 * cannot hold. The graphs of the programs before and after are launched on the same stream. */
#include "cuda/program.h"

#include <string.h>

struct program_call {
    const kernel *kernel;
    void *record;       /* NULL: the step has no results */
    const uint32_t *id; /* in program_run.address: inputs, then results */
    uint32_t count_in, count_out;
};

bool program_has_calls(const program_step *step, uint32_t count)
{
    return count && step[0].kernel->where == KERNEL_ON_STREAM;
}

void program_calls_drop(program *p)
{
    for (uint32_t i = 0; p->call && i < p->step_count; i++)
        if (p->call[i].record) p->call[i].kernel->unbind(p->call[i].record);
    p->call = NULL;
}

static sinter_status bind(env *e, const program_step *s, arena *a, program_call *c)
{
    const uint32_t count = s->count_in + s->count_out;
    uint32_t *id = ARENA_NEW(a, uint32_t, count);
    if (count && !id) return FAIL_MEMORY(e, "a program");
    if (s->count_in) memcpy(id, s->in_id, s->count_in * sizeof *id);
    if (s->count_out) memcpy(id + s->count_in, s->out_id, s->count_out * sizeof *id);
    *c = (program_call){ .kernel = s->kernel, .id = id, .count_in = s->count_in, .count_out = s->count_out };
    if (!program_step_has_results(s)) return SINTER_OK;
    void *record = arena_alloc(a, kernel_record_size(s->kernel, s->problem, s->tactic), 64);
    if (!record) return FAIL_MEMORY(e, "a program");
    TRY(s->kernel->bind(e, s->problem, s->tactic, s->attrs, s->in, s->out, record));
    c->record = record;
    return SINTER_OK;
}

sinter_status program_calls_bind(env *e, const program_step *step, program *p)
{
    uint32_t widest = 0;
    program_call *call = ARENA_NEW(&p->a, program_call, p->step_count);
    if (!call) return FAIL_MEMORY(e, "a program");
    p->call = call;
    for (uint32_t i = 0; i < p->step_count; i++) {
        TRY(NOTE(e, bind(e, &step[i], &p->a, &call[i]), "binding kernel '%s'", step[i].kernel->name));
        if (step[i].count_in + step[i].count_out > widest) widest = step[i].count_in + step[i].count_out;
    }
    p->pointer = ARENA_NEW(&p->a, void *, widest);
    return p->pointer || !widest ? SINTER_OK : FAIL_MEMORY(e, "a program");
}

static sinter_status run_call(program *p, uint32_t step, const program_run *run)
{
    const program_call *c = &p->call[step];
    if (!c->record) return SINTER_OK;
    for (uint32_t i = 0; i < c->count_in + c->count_out; i++) p->pointer[i] = c->id[i] ? run->address[c->id[i]] : NULL;
    const kernel_run call = { .record = c->record,
                              .in = p->pointer,
                              .out = p->pointer + c->count_in,
                              .workspace = run->workspace,
                              .fault = run->fault,
                              .stream = run->stream->handle,
                              .e = run->e,
                              .scratch = run->scratch };
    return NOTE(run->e, c->kernel->run(&call), "running kernel '%s'", p->name[step]);
}

sinter_status program_calls_run(env *e, device *d, program *p, const program_run *run, const CUevent *after)
{
    for (uint32_t i = 0; i < p->step_count; i++) {
        TRY(run_call(p, i, run));
        if (after) DEVICE_TRY(e, d, cuEventRecord(after[i], run->stream->handle), "recording an event");
    }
    return SINTER_OK;
}
