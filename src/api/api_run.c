/* SPDX-License-Identifier: Apache-2.0 */
/* api_run.c - sinter/run.h: the public handle is the context itself. */
#include "sinter/run.h"

#include "api/handle.h"
#include "base/options.h"
#include "run/context.h"

#include <string.h>

static context *inner(const sinter_context *c)
{
    return (context *)(uintptr_t)c;
}

sinter_status sinter_context_create(sinter_engine *engine_handle, const sinter_context_options *options,
                                    sinter_context **out, sinter_error *error)
{
    env e;
    env_init(&e, NULL, error);
    if (!engine_handle || !out) return FAIL(&e, INVALID_ARG, "%s is NULL", out ? "engine" : "out");
    *out = NULL;
    sinter_context_options o = SINTER_CONTEXT_OPTIONS;
    TRY(api_options(&e, &o, sizeof o, options));
    TRY(options_check(&e, context_option_rows, &o));
    if ((unsigned)o.memory > SINTER_MEMORY_USER)
        return FAIL(&e, INVALID_ARG, "memory is %d, expected 0 (profile), 1 (static) or 2 (user)", (int)o.memory);
    context *c = NULL;
    const context_options inside = { .profile = o.profile,
                                     .has_clock = o.timing != 0,
                                     .has_phases = o.phases != 0,
                                     .is_lazy = o.lazy != 0,
                                     .strategy = (memory_strategy)o.memory,
                                     .native_stream = o.stream };
    const sinter_status s = context_create((engine *)(void *)engine_handle, &inside, &c, error);
    *out = (sinter_context *)(void *)c;
    return s;
}

void sinter_context_destroy(sinter_context *c)
{
    context_destroy(inner(c));
}

/* Errors of a call go to its caller's struct. */
static context *enter(sinter_context *handle, sinter_error *error)
{
    context *c = inner(handle);
    c->e.error = error ? error : &c->e.error_own;
    return c;
}

static sinter_status leave(context *c, sinter_status s)
{
    c->e.error = &c->e.error_own;
    return s;
}

static sinter_status no_context(sinter_error *error, const char *what)
{
    env e;
    env_init(&e, NULL, error);
    return FAIL(&e, INVALID_ARG, "%s is NULL", what);
}

static sinter_status ready(context *c)
{
    if (c->is_ready) return SINTER_OK;
    return FAIL(&c->e, INVALID_ARG, "the context has no profile: a change of profile failed");
}

/* The io of that name among inputs or outputs; the error lists those that exist. */
static sinter_status find(context *c, const char *name, bool is_input, uint32_t *out)
{
    const engine *g = c->g;
    const uint32_t first = is_input ? 0 : g->input_count, end = is_input ? g->input_count : g->io_count;
    /* From the one after the last that was found: whoever names all in their order searches nothing. */
    for (uint32_t k = 0, i = c->next_io >= first && c->next_io < end ? c->next_io : first; k < end - first; k++) {
        if (strcmp(engine_text(g, g->io[i].name), name) == 0) return c->next_io = i + 1, *out = i, SINTER_OK;
        if (++i == end) i = first;
    }
    text t;
    text_init(&t, &c->e);
    for (uint32_t i = first; i < end && t.length < 400; i++)
        text_printf(&t, "%s'%s'", i > first ? ", " : "", engine_text(g, g->io[i].name));
    const sinter_status s = FAIL(&c->e, INVALID_ARG, "the engine has no %s '%s'; it has %s",
                                 is_input ? "input" : "output", name, t.failed || !t.length ? "none" : t.at);
    text_deinit(&t);
    return s;
}

/* Are these dims within the profile's ranges? What several axes have in common, the run looks at. */
static sinter_status check_dims(context *c, uint32_t i, const char *name, const int64_t *dim_at, uint32_t rank)
{
    const engine_io *io = &c->g->io[i];
    if (rank != io->rank) return FAIL(&c->e, INVALID_ARG, "input '%s' has rank %u, expected %u", name, rank, io->rank);
    for (uint32_t k = 0; k < rank; k++) {
        if (dim_at[k] < 0)
            return FAIL(&c->e, INVALID_ARG, "axis %u of input '%s' is %lld", k, name, (long long)dim_at[k]);
        const dim_node *d = &c->g->dim[io->dim[k]];
        int64_t min = d->value, max = d->value;
        if (d->kind == DIM_SYMBOL) {
            const engine_range *r = &c->g->range[(size_t)c->profile * c->g->symbol_count + (size_t)d->value];
            min = r->min;
            max = r->max;
        }
        if ((d->kind == DIM_SYMBOL || d->kind == DIM_CONST) && (dim_at[k] < min || dim_at[k] > max))
            return FAIL(&c->e, INVALID_ARG, "axis %u of input '%s' is %lld, profile %u permits %lld to %lld", k, name,
                        (long long)dim_at[k], c->profile, (long long)min, (long long)max);
    }
    return SINTER_OK;
}

static void clear_input(context *c, uint32_t i)
{
    c->input[i].is_set = c->input[i].has_shape = false;
    c->input[i].data = NULL;
    c->input[i].place = SINTER_PLACE_HOST;
}

/* Where it fails, the input is not set any more: the caller may have given up what it was before. */
static sinter_status set_input(context *c, const char *name, const sinter_tensor *t)
{
    uint32_t i;
    TRY(find(c, name, true, &i));
    const engine_io *io = &c->g->io[i];
    clear_input(c, i);
    if ((uint32_t)t->dtype != io->dtype)
        return FAIL(&c->e, INVALID_ARG, "input '%s' is %s, expected %s", name, sinter_dtype_name(t->dtype),
                    sinter_dtype_name((sinter_dtype)io->dtype));
    TRY(check_dims(c, i, name, t->dim, t->rank));
    bool is_empty = false;
    for (uint32_t k = 0; k < t->rank; k++) is_empty = is_empty || t->dim[k] == 0;
    if ((unsigned)t->place > SINTER_PLACE_PINNED)
        return FAIL(&c->e, INVALID_ARG, "the place of input '%s' is %d, expected 0 (host), 1 (device) or 2 (pinned)",
                    name, (int)t->place);
    if (!t->data && !is_empty) return FAIL(&c->e, INVALID_ARG, "the data of input '%s' is NULL", name);
    c->input[i].data = t->data;
    c->input[i].place = t->place;
    memcpy(c->input[i].dim, t->dim, sizeof t->dim);
    c->input[i].is_set = c->input[i].has_shape = true;
    return SINTER_OK;
}

static sinter_status set_input_shape(context *c, const char *name, const int64_t *dim_at, uint32_t rank)
{
    uint32_t i;
    TRY(find(c, name, true, &i));
    clear_input(c, i);
    TRY(check_dims(c, i, name, dim_at, rank));
    for (uint32_t k = 0; k < rank; k++) c->input[i].dim[k] = dim_at[k];
    c->input[i].has_shape = true;
    return SINTER_OK;
}

sinter_status sinter_context_set_input(sinter_context *handle, const char *name, const sinter_tensor *tensor,
                                       sinter_error *error)
{
    if (!handle || !name || !tensor) return no_context(error, !handle ? "context" : !name ? "name" : "tensor");
    context *c = enter(handle, error);
    return leave(c, set_input(c, name, tensor));
}

sinter_status sinter_context_set_input_shape(sinter_context *handle, const char *name, const int64_t *dim_at,
                                             uint32_t rank, sinter_error *error)
{
    if (!handle || !name || (rank && !dim_at)) return no_context(error, !handle ? "context" : !name ? "name" : "dim");
    context *c = enter(handle, error);
    return leave(c, set_input_shape(c, name, dim_at, rank));
}

static void clear_output(context *c, uint32_t out)
{
    memset(&c->output[out], 0, sizeof c->output[out]);
    c->output[out].place = SINTER_PLACE_HOST;
    c->result[out].is_ready = false;
}

/* Where it fails, the output is the context's own memory, as at first. */
static sinter_status set_output(context *c, const char *name, void *data, size_t size, sinter_place place)
{
    uint32_t i;
    TRY(find(c, name, false, &i));
    const uint32_t out = i - c->g->input_count, align = sinter_dtype_bits((sinter_dtype)c->g->io[i].dtype) / 8;
    clear_output(c, out);
    if (align > 1 && (uintptr_t)data % align)
        return FAIL(&c->e, INVALID_ARG, "the place for output '%s' is not aligned to its elements of %u bytes", name,
                    align);
    if ((unsigned)place > SINTER_PLACE_PINNED)
        return FAIL(&c->e, INVALID_ARG, "the place of output '%s' is %d, expected 0 (host), 1 (device) or 2 (pinned)",
                    name, (int)place);
    c->output[out].data = data;
    c->output[out].size = data ? size : 0;
    c->output[out].place = place;
    return SINTER_OK;
}

sinter_status sinter_context_set_output(sinter_context *handle, const char *name, void *data, size_t size,
                                        sinter_place place, sinter_error *error)
{
    if (!handle || !name) return no_context(error, handle ? "name" : "context");
    context *c = enter(handle, error);
    return leave(c, set_output(c, name, data, size, place));
}

static sinter_status set_output_allocator(context *c, const char *name, const sinter_output_allocator *a,
                                          sinter_place place)
{
    uint32_t i;
    TRY(find(c, name, false, &i));
    const uint32_t out = i - c->g->input_count;
    clear_output(c, out);
    if (!a) return SINTER_OK;
    if (!a->resize) return FAIL(&c->e, INVALID_ARG, "the allocator of output '%s' has no function", name);
    if ((unsigned)place > SINTER_PLACE_PINNED)
        return FAIL(&c->e, INVALID_ARG, "the place of output '%s' is %d, expected 0 (host), 1 (device) or 2 (pinned)",
                    name, (int)place);
    c->output[out].allocator = *a;
    c->output[out].place = place;
    return SINTER_OK;
}

sinter_status sinter_context_set_output_allocator(sinter_context *handle, const char *name,
                                                  const sinter_output_allocator *allocator, sinter_place place,
                                                  sinter_error *error)
{
    if (!handle || !name) return no_context(error, handle ? "name" : "context");
    context *c = enter(handle, error);
    return leave(c, set_output_allocator(c, name, allocator, place));
}

/* ---- sizes before a run ---- */

sinter_status sinter_context_infer_shapes(sinter_context *handle, const char **missing, uint32_t room, uint32_t *count,
                                          sinter_error *error)
{
    if (!handle || !count || (room && !missing))
        return no_context(error, !handle ? "context" : !count ? "count" : "missing");
    context *c = enter(handle, error);
    *count = 0;
    int64_t dim_at[SINTER_RANK_MAX];
    const sinter_status s = ready(c);
    if (s != SINTER_OK) return leave(c, s);
    for (uint32_t i = 0; i < c->g->input_count; i++) {
        if (!context_input_is_missing(c, i)) continue;
        if (*count < room) missing[*count] = engine_text(c->g, c->g->io[i].name);
        ++*count;
    }
    if (c->g->io_count == c->g->input_count) return leave(c, SINTER_OK);
    return leave(c, context_output_dims(c, c->g->input_count, dim_at)); /* says if shapes disagree */
}

static sinter_status output_shape(context *c, const char *name, sinter_tensor *out)
{
    uint32_t i;
    TRY(ready(c));
    TRY(find(c, name, false, &i));
    out->dtype = (sinter_dtype)c->g->io[i].dtype;
    out->rank = c->g->io[i].rank;
    return context_output_dims(c, i, out->dim);
}

sinter_status sinter_context_output_shape(sinter_context *handle, const char *name, sinter_tensor *out,
                                          sinter_error *error)
{
    if (!handle || !name || !out) return no_context(error, !handle ? "context" : !name ? "name" : "out");
    context *c = enter(handle, error);
    *out = (sinter_tensor){ 0 };
    return leave(c, output_shape(c, name, out));
}

static sinter_status max_output_size(context *c, const char *name, size_t *out)
{
    uint32_t i;
    TRY(ready(c));
    TRY(find(c, name, false, &i));
    return context_output_bound(c, i, out);
}

sinter_status sinter_context_max_output_size(sinter_context *handle, const char *name, size_t *out, sinter_error *error)
{
    if (!handle || !name || !out) return no_context(error, !handle ? "context" : !name ? "name" : "out");
    context *c = enter(handle, error);
    *out = 0;
    return leave(c, max_output_size(c, name, out));
}

/* ---- profile and memory ---- */

sinter_status sinter_context_set_profile(sinter_context *handle, uint32_t profile, sinter_error *error)
{
    if (!handle) return no_context(error, "context");
    context *c = enter(handle, error);
    return leave(c, context_set_profile(c, profile));
}

uint32_t sinter_context_profile(const sinter_context *handle)
{
    return handle ? inner(handle)->profile : 0;
}

sinter_status sinter_context_set_memory(sinter_context *handle, void *data, size_t size, sinter_error *error)
{
    if (!handle) return no_context(error, "context");
    context *c = enter(handle, error);
    return leave(c, context_set_memory(c, data, size));
}

static sinter_status memory_size(context *c, size_t *out)
{
    TRY(ready(c));
    for (uint32_t i = 0; i < c->g->input_count; i++)
        if (!c->input[i].has_shape)
            return FAIL(&c->e, INVALID_ARG, "input '%s' has no shape", engine_text(c->g, c->g->io[i].name));
    return context_memory_wanted(c, out);
}

sinter_status sinter_context_memory_size(sinter_context *handle, size_t *out, sinter_error *error)
{
    if (!handle || !out) return no_context(error, handle ? "out" : "context");
    context *c = enter(handle, error);
    *out = 0;
    return leave(c, memory_size(c, out));
}

/* ---- running ---- */

sinter_status sinter_context_run(sinter_context *handle, sinter_error *error)
{
    if (!handle) return no_context(error, "context");
    context *c = enter(handle, error);
    const sinter_status s = context_begin(c, false);
    return leave(c, s == SINTER_OK ? context_end(c) : s);
}

sinter_status sinter_context_run_async(sinter_context *handle, sinter_error *error)
{
    if (!handle) return no_context(error, "context");
    context *c = enter(handle, error);
    const sinter_status s = context_begin(c, true);
    return leave(c, s == SINTER_OK && !c->is_busy ? context_end(c) : s);
}

void sinter_context_cancel(sinter_context *handle)
{
    if (handle) __atomic_store_n(&inner(handle)->is_cancelled, 1, __ATOMIC_RELAXED);
}

sinter_status sinter_context_wait(sinter_context *handle, sinter_error *error)
{
    if (!handle) return no_context(error, "context");
    context *c = enter(handle, error);
    return leave(c, context_end(c));
}

int sinter_context_is_done(sinter_context *handle)
{
    const context *c = inner(handle);
    if (!c || !c->is_running || !c->is_busy) return 1;
    const backend *b = c->g->backend;
    return b->stream_is_done && b->stream_is_done(c->g->device, c->stream);
}

static sinter_status output(context *c, const char *name, sinter_tensor *out)
{
    uint32_t i;
    TRY(find(c, name, false, &i));
    const run_result *r = &c->result[i - c->g->input_count];
    if (!r->is_ready)
        return FAIL(&c->e, INVALID_ARG, "output '%s' has no result: %s", name,
                    c->is_running ? "wait for the run that was begun" : "run first");
    const uint32_t v = context_args(c, c->p->io_first)[i];
    *out = (sinter_tensor){
        .dtype = (sinter_dtype)c->g->io[i].dtype, .rank = c->g->io[i].rank, .data = r->at, .place = r->place
    };
    for (uint32_t k = 0; k < out->rank; k++) out->dim[k] = c->now->value[v].dim[k];
    return SINTER_OK;
}

sinter_status sinter_context_output(sinter_context *handle, const char *name, sinter_tensor *out, sinter_error *error)
{
    if (!handle || !name || !out) return no_context(error, !handle ? "context" : !name ? "name" : "out");
    context *c = enter(handle, error);
    *out = (sinter_tensor){ 0 };
    return leave(c, output(c, name, out));
}

uint32_t sinter_context_step_count(const sinter_context *handle)
{
    return handle ? inner(handle)->p->step_count : 0;
}

sinter_status sinter_context_print_layers(sinter_context *handle, uint32_t index, sinter_print format,
                                          sinter_write_fn write, void *user, sinter_error *error)
{
    if (!handle || !write) return no_context(error, handle ? "write" : "context");
    context *c = enter(handle, error);
    arena a;
    arena_init(&a, &c->e);
    int64_t *symbol = ARENA_NEW(&a, int64_t, c->g->symbol_count), *dim_at = ARENA_NEW(&a, int64_t, c->g->dim_count);
    sinter_status s =
        symbol && dim_at ? context_eval_inputs(c, symbol, dim_at, false) : FAIL_MEMORY(&c->e, "a description");
    const engine_layers o = {
        .index = index, .is_json = format == SINTER_PRINT_JSON, .profile = c->profile, .dim = dim_at
    };
    if (s == SINTER_OK) s = engine_print_layers(&c->e, c->g, &o, write, user);
    arena_deinit(&a);
    return leave(c, s);
}

sinter_status sinter_context_step(const sinter_context *handle, uint32_t index, sinter_step_time *out)
{
    const context *c = inner(handle);
    if (!c || !out || index >= c->p->step_count) return SINTER_INVALID_ARG;
    const engine_step *s = context_step(c, index);
    *out = (sinter_step_time){ .name = engine_text(c->g, s->name),
                               .problem = engine_text(c->g, s->problem),
                               .kernel = s->kernel ? engine_text(c->g, c->g->kernel_ref[s->kernel - 1].name) : "call" };
    if (c->clock) {
        out->runs = c->clock[index].runs;
        out->total_ns = c->clock[index].total_ns;
        out->min_ns = c->clock[index].min_ns;
    }
    return SINTER_OK;
}

sinter_status sinter_context_step_work(const sinter_context *handle, uint32_t index, sinter_step_work *out)
{
    const context *c = inner(handle);
    if (!c || !out || index >= c->p->step_count || !c->now) return SINTER_INVALID_ARG;
    const program_step *s = &c->now->step[index];
    *out = (sinter_step_work){ 0 };
    if (context_step(c, index)->kind != STEP_KERNEL || !s->problem || s->problem->count_in != s->count_in ||
        s->problem->count_out != s->count_out || !program_step_has_results(s))
        return SINTER_OK;
    problem at = *s->problem;
    work_counts w;
    if (s->attrs) at.attrs = s->attrs;
    problem_work(&at, s->in, s->out, &w);
    *out = (sinter_step_work){ .operations = w.operations,
                               .weight_bytes = w.weights,
                               .read_bytes = w.read,
                               .written_bytes = w.written,
                               .products = w.products,
                               .dtype = w.dtype };
    return SINTER_OK;
}

sinter_status sinter_context_run_time(const sinter_context *handle, sinter_run_time *out)
{
    const context *c = inner(handle);
    if (!c || !out || !c->has_times) return SINTER_INVALID_ARG;
    *out =
        (sinter_run_time){ .copy_in_ns = c->phase_ns[0], .compute_ns = c->phase_ns[1], .copy_out_ns = c->phase_ns[2] };
    return SINTER_OK;
}

size_t sinter_context_memory(const sinter_context *handle)
{
    return handle ? context_memory(inner(handle)) : 0;
}

sinter_status sinter_context_state(const sinter_context *handle, sinter_state_info *out)
{
    const context *c = inner(handle);
    if (!c || !out) return SINTER_INVALID_ARG;
    *out = (sinter_state_info){ .rows = c->rows, .capacity = c->g->state ? (int64_t)c->g->state->capacity : 0 };
    for (uint32_t i = 1; i < c->p->storage_count; i++)
        if (context_storage(c, i)->kind == STORAGE_STATE) out->bytes += context_storage(c, i)->bound;
    return SINTER_OK;
}

sinter_status sinter_context_reset_state(sinter_context *handle, sinter_error *error)
{
    if (!handle) return no_context(error, "context");
    context *c = enter(handle, error);
    const sinter_status s = context_end(c);
    const sinter_status reset = context_reset_state(c);
    return leave(c, reset == SINTER_OK ? s : reset);
}

sinter_status sinter_context_set_rows(sinter_context *handle, int64_t rows, sinter_error *error)
{
    if (!handle) return no_context(error, "context");
    context *c = enter(handle, error);
    return leave(c, context_set_rows(c, rows));
}
