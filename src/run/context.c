/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - a context's memory and the items that each region is run as. */
#include "run/context.h"

#include <string.h>

static item_kind kind_of(const context *c, uint32_t step)
{
    const uint32_t kind = context_step(c, step)->kind;
    if (kind != STEP_KERNEL) return kind == STEP_LATE ? ITEM_LATE : ITEM_CALL;
    const kernel_where where = context_code(c, step)->kernel->where;
    if (!context_has_places(c) || where == KERNEL_ON_DEVICE || where == KERNEL_ON_STREAM) return ITEM_PROGRAM;
    return where == KERNEL_ON_HOST ? ITEM_HOST : ITEM_TRANSFER;
}

/* Steps that a program holds are all launched by the device, or all by calls. */
static bool runs_alike(const context *c, uint32_t step, uint32_t other)
{
    return context_code(c, step)->kernel->where == context_code(c, other)->kernel->where;
}

/* Consecutive kernel steps of one kind (all late or none) become one program, or a run of steps on the host. */
static sinter_status make_items(context *c, uint32_t region)
{
    const engine_region *r = &c->g->region[c->p->region_first + region];
    run_region *to = &c->region[region];
    to->item = ARENA_NEW(&c->a, run_item, r->step_count);
    if (!to->item) return FAIL_MEMORY(&c->e, "a region");
    for (uint32_t i = 0; i < r->step_count; i++) {
        const uint32_t step = r->step_at + i;
        const item_kind kind = kind_of(c, step);
        const bool is_late = context_code(c, step)->is_late;
        run_item *last = to->count ? &to->item[to->count - 1] : NULL;
        if ((kind > ITEM_TRANSFER || is_late || region > 1) && c->stops_at == UINT32_MAX) c->stops_at = step;
        if (kind == ITEM_HOST && c->stops_at == UINT32_MAX) c->stops_at = step;
        if (kind <= ITEM_HOST && last && last->kind == kind && last->is_late == is_late &&
            runs_alike(c, last->first, step) && context_weights_fit(c, last, step)) {
            last->count++;
            TRY(context_weights_add(c, last, step));
            continue;
        }
        to->item[to->count++] = (run_item){ .first = step,
                                            .count = 1,
                                            .kind = kind,
                                            .is_late = is_late,
                                            .program = kind == ITEM_PROGRAM ? c->program_count++ : 0 };
        if (kind <= ITEM_TRANSFER) TRY(context_weights_add(c, &to->item[to->count - 1], step));
    }
    return SINTER_OK;
}

static sinter_status make_fixed(context *c)
{
    const engine *g = c->g;
    const uint32_t outputs = g->io_count - g->input_count;
    c->input = arena_alloc(&c->fixed, sizeof *c->input * g->input_count, 8);
    c->output = ARENA_NEW(&c->fixed, run_output, outputs);
    c->result = ARENA_NEW(&c->fixed, run_result, outputs);
    return c->fixed.failed ? FAIL_MEMORY(&c->e, "a context") : SINTER_OK;
}

static sinter_status make_arrays(context *c)
{
    engine *g = c->g;
    uint32_t widest = 1;
    for (uint32_t i = 0; i < c->p->step_count; i++) {
        const uint32_t width = context_step(c, i)->in_count + context_step(c, i)->out_count;
        if (width > widest) widest = width;
    }
    c->region = ARENA_NEW(&c->a, run_region, c->p->region_count);
    c->own = ARENA_NEW(&c->a, buffer, c->p->storage_count);
    c->stage = ARENA_NEW(&c->a, buffer, c->p->storage_count);
    c->feed = ARENA_NEW(&c->a, run_feed, (size_t)PLACE_COUNT * g->input_count);
    c->pointer = ARENA_NEW(&c->a, void *, widest);
    c->weight_first = ARENA_NEW(&c->a, run_place, c->p->storage_count);
    c->base = ARENA_NEW(&c->a, void *, c->p->storage_count);
    c->moving = ARENA_NEW(&c->a, uint32_t, c->p->value_count);
    c->moving_first = ARENA_NEW(&c->a, uint32_t, (size_t)c->p->storage_count + 1);
    c->address = ARENA_NEW(&c->a, void *, c->p->value_count);
    if (c->has_clock) c->clock = ARENA_NEW(&c->a, step_clock, c->p->step_count);
    return c->a.failed ? FAIL_MEMORY(&c->e, "a context") : SINTER_OK;
}

static bool moves(const context *c, uint32_t value)
{
    const uint32_t kind = context_storage(c, context_value(c, value)->storage)->kind;
    return kind == STORAGE_INPUT || kind == STORAGE_OUTPUT || kind == STORAGE_GROWN;
}

/* Counts, then places: each storage's values are together. */
static void list_moving(context *c)
{
    uint32_t *const first = c->moving_first;
    for (uint32_t i = 1; i < c->p->value_count; i++)
        if (moves(c, i)) first[context_value(c, i)->storage + 1]++;
    for (uint32_t i = 0; i < c->p->storage_count; i++) first[i + 1] += first[i];
    c->moving_count = first[c->p->storage_count];
    for (uint32_t i = c->p->value_count; i-- > 1;)
        if (moves(c, i)) c->moving[--first[context_value(c, i)->storage + 1]] = i;
    /* Each entry has become the begin of its own storage, one place too far up. */
    for (uint32_t i = 0; i < c->p->storage_count; i++) first[i] = first[i + 1];
    first[c->p->storage_count] = c->moving_count;
}

static sinter_status make_memory(context *c)
{
    engine *g = c->g;
    TRY(context_make_memory(c));
    if (context_has_places(c)) {
        c->host_slab = context_alloc(c, PLACE_HOST, c->p->host_slab_size + 64);
        c->host_workspace_size = g->host_workspace[c->profile] + 64;
        c->host_workspace = context_alloc(c, PLACE_HOST, c->host_workspace_size);
        if (!c->host_slab || !c->host_workspace)
            return NOTE(&c->e, c->e.error->status, "making a context of %llu bytes of activations on the host",
                        (unsigned long long)c->p->host_slab_size);
    }
    for (uint32_t i = 1; i < c->p->storage_count; i++) {
        const engine_storage *s = context_storage(c, i);
        const bool is_host = s->place == PLACE_HOST;
        uint8_t *const slab = is_host && context_has_places(c) ? c->host_slab : c->slab;
        if (s->kind == STORAGE_SLAB && slab) c->base[i] = slab + s->at;
        if (s->kind == STORAGE_WEIGHT)
            c->base[i] =
                is_host || !context_has_places(c)
                    ? (uint8_t *)(uintptr_t)(g->weights + s->at) /* the verifier saw that nothing writes there */
                    : context_weight_base(c, i);
        if (s->kind == STORAGE_INPUT) c->feed[c->feed_count++] = (run_feed){ .io = (uint32_t)s->at, .storage = i };
        if (s->kind == STORAGE_OUTPUT) c->result[s->at - g->input_count].storage = i;
    }
    TRY(context_make_state(c));
    list_moving(c);
    return SINTER_OK;
}

static sinter_status make_all_ready(context *c)
{
    TRY(context_set_shape(c));
    TRY(context_make_ready(c));
    TRY(context_rehearse(c));
    return c->has_state ? context_reset_state(c) : SINTER_OK;
}

/* A static shape is known before the first run, and of others the usual one is. Where making its programs takes long,
 * they are made now. Nobody has asked for the usual one yet: where there is no memory for it, say, that is no failure.
 */
static sinter_status prepare_usual(context *c)
{
    bool is_static = true;
    for (uint32_t i = 0; i < c->g->input_count; i++) {
        sinter_io io;
        TRY(engine_io_describe(c->g, i, c->profile, &io));
        for (uint32_t k = 0; k < io.rank; k++) {
            is_static = is_static && c->g->dim[c->g->io[i].dim[k]].kind == DIM_CONST;
            c->input[i].dim[k] = io.opt[k];
        }
    }
    if (is_static) return make_all_ready(c);
    sinter_error quiet = { 0 }, *const error = c->e.error;
    c->e.error = &quiet;
    const sinter_status s = make_all_ready(c);
    c->e.error = error;
    if (s == SINTER_DEVICE) return FAIL(&c->e, DEVICE, "%s", quiet.text);
    c->scratch.failed = false;
    return SINTER_OK;
}

/* What the caller has given is put aside meanwhile: it is of other sizes. */
static sinter_status prepare(context *c)
{
    const bool is_wanted = c->g->backend->program_ready && !c->clock && c->strategy != MEMORY_CALLER && !c->is_lazy;
    if (!is_wanted || c->is_state_kept) return SINTER_OK;
    const size_t inputs = sizeof *c->input * c->g->input_count,
                 outputs = sizeof *c->output * (c->g->io_count - c->g->input_count);
    void *const input = mem_alloc(&c->e, inputs + outputs + 1, 8);
    if (!input) return FAIL_MEMORY(&c->e, "a context");
    void *const output = (char *)input + inputs;
    if (inputs) memcpy(input, c->input, inputs), memset(c->input, 0, inputs);
    if (outputs) memcpy(output, c->output, outputs), memset(c->output, 0, outputs);
    const sinter_status s = prepare_usual(c);
    if (inputs) memcpy(c->input, input, inputs);
    if (outputs) memcpy(c->output, output, outputs);
    mem_free(&c->e, input, inputs + outputs + 1, 8);
    return s;
}

/* ---- what a profile needs ---- */

static sinter_status build_profile(context *c)
{
    arena_init(&c->a, &c->e);
    c->stops_at = UINT32_MAX;
    TRY(make_arrays(c));
    TRY(context_make_users(c));
    TRY(context_find_sizes(c));
    for (uint32_t i = 1; i < c->p->region_count; i++) TRY(make_items(c, i));
    TRY(make_memory(c));
    TRY(NOTE(&c->e, prepare(c), "preparing a context"));
    c->is_ready = true;
    return SINTER_OK;
}

static void drop_profile(context *c, bool is_memory_kept)
{
    c->is_ready = false;
    context_give_memory(c);
    context_drop_shapes(c);
    for (uint32_t i = 0; c->own && i < c->p->storage_count; i++)
        context_free(c, (storage_place)context_storage(c, i)->place, c->own[i].at, c->own[i].size);
    for (uint32_t i = 0; c->stage && i < c->p->storage_count; i++)
        context_free(c, PLACE_HOST, c->stage[i].at, c->stage[i].size);
    context_free(c, PLACE_HOST, c->mail.at, c->mail.size);
    c->mail = (buffer){ 0 };
    c->mail_at = 0;
    context_drop_memory(c, is_memory_kept);
    context_free(c, PLACE_HOST, c->host_slab, c->p->host_slab_size + 64);
    context_free(c, PLACE_HOST, c->host_workspace, c->host_workspace_size);
    for (uint32_t i = 0; c->result && i < c->g->io_count - c->g->input_count; i++) c->result[i] = (run_result){ 0 };
    arena_deinit(&c->a);
    c->region = NULL;
    c->own = c->stage = NULL;
    c->feed_count = c->program_count = c->slots_used = 0;
    memset(&c->weight, 0, sizeof c->weight);
    c->fetched = NULL;
    c->host_slab = NULL;
    c->host_workspace = NULL;
    c->clock = NULL;
    c->users = (run_users){ 0 };
    c->size_step = NULL;
    c->is_size = NULL;
    c->size_count = 0;
    c->has_times = false;
}

static sinter_status build(context *c, const context_options *o)
{
    TRY(nvtx_open(&c->e, &c->nvtx));
    context_watch(c);
    TRY(make_fixed(c));
    if (c->g->backend->stream_create)
        TRY(c->g->backend->stream_create(&c->e, c->g->device, o->native_stream, &c->stream));
    for (uint32_t i = 0; i < STREAM_MARKS; i++) TRY(context_mark(c, i)); /* the first use of a mark makes it */
    return build_profile(c);
}

sinter_status context_create(engine *g, const context_options *options, context **out, sinter_error *error)
{
    const uint32_t profile = options->profile;
    env e = g->e;
    e.error = error ? error : &e.error_own;
    e.budget = g->budget.outer;
    *out = NULL;
    if (g->is_stripped)
        return FAIL(&e, INVALID_ARG,
                    "the engine was stripped of its weights: give it those of its model before it runs "
                    "(sinter refit --weights, trtexec --refitFromOnnx, Engine.refit, Refitter, "
                    "sinter_engine_refit_file)");
    if (g->is_offline) return FAIL(&e, INVALID_ARG, "the engine was opened without a device: it cannot run");
    if (g->has_no_weights) return FAIL(&e, INVALID_ARG, "the engine has no weights: a change of their budget failed");
    if (profile >= g->profile_count)
        return FAIL(&e, INVALID_ARG, "profile %u, the engine has %u", profile, g->profile_count);
    context *c = mem_zalloc(&e, sizeof *c, _Alignof(context));
    if (!c) return FAIL_MEMORY(&e, "a context");
    c->e = e;
    c->budget = (env_budget){ .outer = e.budget, .used = sizeof *c };
    c->e.budget = &c->budget;
    c->g = g;
    c->profile = profile;
    c->p = &g->profile[profile];
    c->strategy = options->strategy;
    c->is_lazy = options->is_lazy;
    c->has_clock = options->has_clock;
    c->has_phases = options->has_phases;
    c->block.native = options->native_stream;
    engine_retain(g);
    __atomic_add_fetch(&g->contexts, 1, __ATOMIC_ACQ_REL);
    arena_init(&c->fixed, &c->e);
    arena_init(&c->a, &c->e);
    arena_init(&c->scratch, &c->e);
    c->scratch.is_kept = true;
    const sinter_status s = build(c, options);
    c->e.error = &c->e.error_own;
    if (s == SINTER_OK) {
        *out = c;
    } else {
        context_destroy(c);
    }
    return s;
}

void context_destroy(context *c)
{
    if (!c) return;
    engine *g = c->g;
    env e = c->e;
    e.error = &e.error_own;
    c->e.error = &c->e.error_own;
    context_finish(c);
    drop_profile(c, false);
    if (c->weight_stream) g->backend->stream_destroy(&e, g->device, c->weight_stream);
    if (c->stream) g->backend->stream_destroy(&e, g->device, c->stream);
    __atomic_sub_fetch(&g->contexts, 1, __ATOMIC_ACQ_REL);
    nvtx_close(&c->nvtx);
    arena_deinit(&c->scratch);
    arena_deinit(&c->fixed);
    e.budget = g->budget.outer;
    mem_free(&e, c, sizeof *c, _Alignof(context));
    engine_release(g);
}

sinter_status context_set_profile(context *c, uint32_t profile)
{
    if (profile >= c->g->profile_count)
        return FAIL(&c->e, INVALID_ARG, "profile %u, the engine has %u", profile, c->g->profile_count);
    TRY(context_end(c));
    if (profile == c->profile && c->is_ready) return SINTER_OK;
    kept_states kept = { 0 };
    TRY(context_keep_states(c, profile, &kept));
    TRY(context_settle(c));
    drop_profile(c, c->strategy != MEMORY_PROFILE);
    c->profile = profile;
    c->p = &c->g->profile[profile];
    c->scratch.failed = false;
    c->is_state_kept = kept.count > 0;
    sinter_status s = build_profile(c);
    c->is_state_kept = false;
    if (s == SINTER_OK) context_adopt_states(c, &kept);
    else drop_profile(c, c->strategy != MEMORY_PROFILE);
    context_free_states(c, &kept);
    return NOTE(&c->e, s, "changing to profile %u", profile);
}

size_t context_memory(const context *c)
{
    size_t size = c->fixed.total + c->a.total + c->scratch.total;
    if (c->strategy != MEMORY_CALLER) size += c->memory.size;
    if (c->host_slab) size += c->p->host_slab_size + c->host_workspace_size;
    for (uint32_t i = 0; c->own && c->stage && i < c->p->storage_count; i++) size += c->own[i].size + c->stage[i].size;
    size += c->mail.size;
    for (uint32_t i = 0; i < SHAPES_KEPT; i++) {
        if (!c->kept[i].used) continue;
        size += c->kept[i].a.total;
        for (uint32_t k = 0; k < c->program_count; k++)
            if (c->kept[i].program[k]) size += c->g->backend->program_memory(c->kept[i].program[k]);
    }
    return size;
}
