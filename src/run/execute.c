/* SPDX-License-Identifier: Apache-2.0 */
/* execute.c - runs a region: programs are launched, late steps and calls are run by hand in between. */
#include "run/context.h"

#include "base/os.h"

#include <string.h>

static program_run run_of(context *c)
{
    return (program_run){ .address = c->address,
                          .workspace = c->workspace,
                          .fault = &c->fault,
                          .clock = c->clock,
                          .e = &c->e,
                          .scratch = &c->scratch,
                          .stream = c->stream,
                          .order = (program_order)c->p->order,
                          .watch = c->nvtx.push ? &c->watch : NULL };
}

/* ---- ranges for profilers ---- */

static void range_begin(void *user, uint32_t step)
{
    context *c = user;
    if (c->nvtx.push) (void)c->nvtx.push(engine_text(c->g, context_step(c, step)->name));
}

static void range_end(void *user)
{
    const context *c = user;
    if (c->nvtx.pop) (void)c->nvtx.pop();
}

void context_watch(context *c)
{
    c->watch = (step_watch){ .begin = range_begin, .end = range_end, .user = c };
}

static sinter_status run_program(context *c, const run_item *item)
{
    const program_run run = run_of(c);
    c->is_busy = c->stream != NULL;
    return c->g->backend->program_launch(c->g->device, c->now->program[item->program], &run);
}

sinter_status context_make_ready(context *c)
{
    const program_run run = run_of(c);
    for (uint32_t i = 0; i < c->region[1].count; i++) {
        const run_item *item = &c->region[1].item[i];
        program *p = item->kind == ITEM_PROGRAM && !item->is_late ? c->now->program[item->program] : NULL;
        context_weights_address(c, item);
        if (p) TRY(c->g->backend->program_ready(c->g->device, p, &run));
    }
    return SINTER_OK;
}

sinter_status context_time(context *c, program_order order, uint32_t repeats, double *ns)
{
    program_run run = run_of(c);
    run.order = order;
    *ns = 0;
    for (uint32_t i = 0; i < c->region[1].count; i++) {
        const run_item *item = &c->region[1].item[i];
        if (item->kind != ITEM_PROGRAM || item->is_late || !c->now->program[item->program]) continue;
        double took = 0;
        TRY(context_weights_take(c, &c->region[1], i));
        c->is_busy = c->stream != NULL;
        TRY(c->g->backend->program_time(c->g->device, c->now->program[item->program], &run, repeats, &took));
        *ns += took;
    }
    return SINTER_OK;
}

static void clock_add(context *c, uint32_t step, uint64_t start)
{
    if (!c->clock) return;
    step_clock *t = &c->clock[step];
    const uint64_t ns = os_time_ns() - start;
    t->total_ns += ns;
    if (!t->runs++ || ns < t->min_ns) t->min_ns = ns;
}

/* ---- steps that a device leaves to the host ---- */

static sinter_status run_host_step(context *c, uint32_t step)
{
    const program_step *s = &c->now->step[step];
    if (!program_step_has_results(s)) return SINTER_OK;
    for (uint32_t i = 0; i < s->count_in; i++) c->pointer[i] = s->in_id[i] ? c->address[s->in_id[i]] : NULL;
    for (uint32_t i = 0; i < s->count_out; i++)
        c->pointer[s->count_in + i] = s->out_id[i] ? c->address[s->out_id[i]] : NULL;
    const kernel_run run = { .record = c->now->record[step],
                             .in = c->pointer,
                             .out = c->pointer + s->count_in,
                             .workspace = c->host_workspace,
                             .fault = &c->fault,
                             .e = &c->e,
                             .scratch = &c->scratch };
    const bool was_clean = !c->fault.is_set;
    const uint64_t start = c->clock ? os_time_ns() : 0;
    const arena_mark mark = arena_save(&c->scratch);
    const sinter_status status = s->kernel->run(&run);
    arena_rewind(&c->scratch, mark);
    clock_add(c, step, start);
    if (was_clean && c->fault.is_set) c->fault.step = step;
    return NOTE(&c->e, status, "running kernel '%s'", s->kernel->name);
}

/* ---- late steps ---- */

typedef struct late {
    context *c;
    uint32_t step;
    view *out;
} late;

/* What a guard relied on (quirk_guard_kind). */
static const char *guard_text(int64_t kind)
{
    static const char *const each[] = {
        "the condition chose a branch that the model does not have for these shapes",
        "a size times a scale that the model computes is no whole number",
        "letters change their case or are counted, and the text is not all ASCII",
        "the model takes the value of an optional that has none",
        "an assertion of the network does not hold",
        "a value is in none of the categories of a OneHotEncoder",
        "a list of axes that the model computes has one twice, or one out of range",
        "a Squeeze without axes would drop an axis that has size 1 in this run; build for that size, or give it axes"
    };
    return kind >= 1 && kind <= (int64_t)COUNT_OF(each) ? each[kind - 1] : "a guard of the engine failed";
}

/* What a late op calls once it knows a result's size: binds the symbols and gives the memory. */
static sinter_status late_resize(ref_call *call, uint32_t i, const int64_t *dim_at, uint32_t count)
{
    late *l = call->user;
    context *c = l->c;
    const engine_step *s = context_step(c, l->step);
    const char *name = engine_text(c->g, s->name);
    if (call->op == OP_bind) {
        const uint32_t *symbol = context_args(c, s->dim_at);
        const uint32_t symbols = ((const attrs_bind *)call->attrs)->symbols.count;
        if (count != symbols)
            return FAIL(&c->e, INVALID_MODEL, "'%s' gives %u sizes, expected %u", name, count, symbols);
        const attrs_bind *attrs = call->attrs;
        const bool is_guard = attrs->kind == bind_kind_raw && attrs->flag;
        for (uint32_t k = 0; k < count; k++) {
            const sinter_status bound = context_bind_symbol(c, l->step, symbol[k], dim_at[k], name);
            if (is_guard) TRY(NOTE(&c->e, bound, "%s", guard_text(attrs->flag)));
            TRY(bound);
        }
        context_evaluate(c);
        return SINTER_OK;
    }
    const uint32_t v = i < s->out_count ? context_args(c, s->out_at)[i] : 0;
    if (!v) return FAIL(&c->e, INTERNAL, "'%s' has no result %u", name, i);
    TRY(context_bind_dims(c, l->step, v, dim_at, count, name));
    TRY(context_prepare_value(c, v));
    if (!c->now->is_bounded[v]) return FAIL(&c->e, INVALID_MODEL, "the result of '%s' does not fit its storage", name);
    l->out[i] = c->now->value[v];
    return SINTER_OK;
}

static sinter_status run_late(context *c, uint32_t step)
{
    const engine_step *s = context_step(c, step);
    TRY(context_prepare_step(c, step));
    program_step *p = &c->now->step[step];
    view *in = (view *)(uintptr_t)p->in, *out = (view *)(uintptr_t)p->out;
    for (uint32_t i = 0; i < s->in_count; i++) in[i].data = p->in_id[i] ? c->address[p->in_id[i]] : NULL;
    for (uint32_t i = 0; i < s->out_count; i++) {
        out[i] = (view){ 0 };
        if (!p->out_id[i]) continue;
        out[i].dtype = (sinter_dtype)context_value(c, p->out_id[i])->dtype;
        out[i].rank = context_value(c, p->out_id[i])->rank;
    }
    late l = { .c = c, .step = step, .out = out };
    ref_call call = { .e = &c->e,
                      .op = context_code(c, step)->problem->op,
                      .attrs = p->attrs,
                      .count_in = s->in_count,
                      .count_out = s->out_count,
                      .in = in,
                      .out = out,
                      .scratch = &c->scratch,
                      .fault = &c->fault,
                      .resize = late_resize,
                      .user = &l };
    const arena_mark mark = arena_save(&c->scratch);
    const uint64_t start = c->clock ? os_time_ns() : 0;
    const sinter_status status = op_reference(&call);
    clock_add(c, step, start);
    arena_rewind(&c->scratch, mark);
    return status;
}

static sinter_status run_item_of(context *c, const run_region *r, uint32_t index)
{
    const run_item *item = &r->item[index];
    if (item->kind < ITEM_LATE && !context_item_is_bound(c, item)) TRY(context_bind_item(c, item));
    TRY(context_weights_take(c, r, index));
    if (item->kind == ITEM_PROGRAM) return run_program(c, item);
    if (item->kind == ITEM_TRANSFER) return context_transfer(c, item->first);
    TRY(context_before_host(c));
    const uint32_t count = item->kind == ITEM_LATE || item->kind == ITEM_CALL ? 1 : item->count;
    for (uint32_t i = item->first; i < item->first + count; i++) {
        range_begin(c, i);
        const sinter_status s = item->kind == ITEM_LATE   ? run_late(c, i)
                                : item->kind == ITEM_CALL ? context_run_call(c, i)
                                                          : run_host_step(c, i);
        range_end(c);
        TRY(s);
    }
    return SINTER_OK;
}

static sinter_status check_cancelled(context *c)
{
    if (!__atomic_load_n(&c->is_cancelled, __ATOMIC_RELAXED)) return SINTER_OK;
    return FAIL(&c->e, CANCELLED, "the run was cancelled");
}

sinter_status context_run_region(context *c, uint32_t region)
{
    const run_region *r = &c->region[region];
    TRY(check_cancelled(c));
    for (uint32_t i = 0; i < r->count; i++) {
        const run_item *item = &r->item[i];
        if (i) TRY(check_cancelled(c));
        const sinter_status s = run_item_of(c, r, i);
        if (s != SINTER_OK && item->kind != ITEM_PROGRAM)
            return NOTE(&c->e, s, "running step '%s'", engine_text(c->g, context_step(c, item->first)->name));
        TRY(s);
    }
    return SINTER_OK;
}

static sinter_status check_promises(context *c)
{
    for (uint32_t i = 0; i < c->g->input_count; i++) {
        const engine_io *io = &c->g->io[i];
        if (!io->promise_size) continue;
        sinter_tensor t = { .dtype = (sinter_dtype)io->dtype, .rank = io->rank };
        memcpy(t.dim, c->input[i].dim, sizeof t.dim);
        const bool fits = sinter_tensor_size(&t) == io->promise_size;
        const void *data = NULL;
        if (fits) TRY(context_read_input(c, i, io->promise_size, &data));
        if (!fits || memcmp(data, c->g->weights + io->promise_at, io->promise_size) != 0)
            return FAIL(&c->e, INVALID_ARG, "input '%s' holds another value than the engine was built for",
                        engine_text(c->g, io->name));
    }
    return SINTER_OK;
}

static sinter_status collect(context *c)
{
    for (uint32_t i = 0; i < c->g->io_count - c->g->input_count; i++) {
        /* A result whose parts were written by address was no operand of any step. */
        const uint32_t v = context_args(c, c->p->io_first)[c->g->input_count + i];
        TRY(context_prepare_value(c, v));
        if (!c->now->is_bounded[v])
            return FAIL(&c->e, INVALID_MODEL, "output '%s' reaches outside its storage",
                        engine_text(c->g, context_value(c, v)->name));
        TRY(context_collect(c, i));
    }
    return SINTER_OK;
}

static sinter_status begin(context *c)
{
    const uint32_t outputs = c->g->io_count - c->g->input_count;
    for (uint32_t i = 0; i < outputs; i++) c->result[i].is_ready = c->output[i].is_asked = false;
    for (uint32_t i = 0; i < c->g->input_count; i++)
        if (!c->input[i].is_set)
            return FAIL(&c->e, INVALID_ARG, "input '%s' has %s", engine_text(c->g, c->g->io[i].name),
                        c->input[i].has_shape ? "a shape and no data" : "not been set");
    TRY(context_take_memory(c));
    c->scratch.failed = false; /* memory may be there again since a run that found none */
    c->fault = (data_fault){ 0 };
    c->fetched = NULL;
    TRY(context_set_shape(c));
    TRY(check_promises(c));
    TRY(context_mark(c, 0));
    TRY(context_feed(c));
    TRY(context_begin_state(c));
    TRY(context_mark(c, 1));
    TRY(context_run_region(c, 1));
    TRY(context_mark(c, 2));
    TRY(collect(c));
    context_end_state(c);
    return context_mark(c, 3);
}

sinter_status context_mark(context *c, uint32_t mark)
{
    const backend *b = c->g->backend;
    if (!c->has_phases) return SINTER_OK;
    c->mark[mark] = os_time_ns();
    if (!b->stream_mark) return SINTER_OK;
    c->is_busy = true;
    return b->stream_mark(&c->e, c->g->device, c->stream, mark);
}

static sinter_status read_marks(context *c)
{
    const backend *b = c->g->backend;
    for (uint32_t i = 0; i + 1 < STREAM_MARKS; i++) {
        double ns = (double)(c->mark[i + 1] - c->mark[i]);
        if (b->stream_elapsed) TRY(b->stream_elapsed(&c->e, c->g->device, c->stream, i, i + 1, &ns));
        c->phase_ns[i] = ns > 0 ? (uint64_t)ns : 0;
    }
    c->has_times = true;
    return SINTER_OK;
}

/* Nothing of a failed run may go on in memory that is the caller's again. */
static void abandon(context *c)
{
    sinter_error quiet = { 0 };
    sinter_error *const error = c->e.error;
    c->e.error = &quiet;
    (void)context_settle(c);
    context_give_memory(c);
    c->e.error = error;
}

sinter_status context_rehearse(context *c)
{
    if (!context_has_places(c) || c->stops_at != UINT32_MAX) return SINTER_OK;
    sinter_status s = context_feed_zeros(c);
    if (s == SINTER_OK) s = context_run_region(c, 1);
    if (s == SINTER_OK) s = collect(c);
    if (s == SINTER_OK) s = context_settle(c);
    else abandon(c);
    c->fault = (data_fault){ 0 }; /* zeros may be no valid indices */
    return s;
}

/* Runs in which the host takes no part, not even by copies, follow each other in the order of the stream. */
static bool may_follow(const context *c)
{
    return context_has_places(c) && c->stops_at == UINT32_MAX && !c->is_copying;
}

sinter_status context_begin(context *c, bool must_not_stop)
{
    if (c->is_running && !(must_not_stop && may_follow(c)))
        TRY(NOTE(&c->e, context_end(c), "ending the run before this one"));
    if (must_not_stop && context_has_places(c) && c->stops_at != UINT32_MAX)
        return FAIL(&c->e, UNSUPPORTED, "step '%s' needs the host in the middle of a run: it cannot be asynchronous",
                    engine_text(c->g, context_step(c, c->stops_at)->name));
    if (!c->is_ready) return FAIL(&c->e, INVALID_ARG, "the context has no profile: a change of profile failed");
    __atomic_store_n(&c->is_cancelled, 0, __ATOMIC_RELAXED);
    c->is_beginning = true;
    if (c->nvtx.push) (void)c->nvtx.push("sinter run");
    const sinter_status s = begin(c);
    range_end(c);
    c->is_beginning = false;
    if (s == SINTER_OK) c->is_running = true;
    else abandon(c);
    return s;
}

sinter_status context_end(context *c)
{
    if (!c->is_running) return SINTER_OK;
    c->is_running = false;
    const sinter_status settled = context_settle(c);
    context_give_memory(c);
    c->is_state_torn = c->is_state_torn || (c->has_state && settled != SINTER_OK);
    TRY(settled);
    context_deliver(c);
    if (c->has_phases) TRY(read_marks(c));
    if (!c->fault.is_set) return SINTER_OK;
    c->is_state_torn = c->has_state;
    return FAIL(&c->e, INVALID_MODEL, "step '%s' met index %lld at position %lld of its indices, the limit is %lld",
                engine_text(c->g, context_step(c, c->fault.step)->name), (long long)c->fault.value,
                (long long)c->fault.index, (long long)c->fault.limit);
}
