/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - the model built for the CPU and run on samples; inputs that a sample does not name get seeded numbers. The
 * model is imported once; each trial changes a clone of the graph. */
#include "builder/trial.h"

#include "core/dim_range.h"
#include "engine/engine.h"
#include "run/context.h"

#include <string.h>

enum { BATCH_MAX = 4, RUNS = 3 };

/* ---- seeded inputs ---- */

static uint32_t scramble(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

static double unit(uint32_t x)
{
    return (double)scramble(x) / 4294967296.0;
}

/* Images are squares of one colour under some noise, in [0, 1): what convolutions are made for. Other floats are nearly
 * normal: sums of four uniform numbers. Whole numbers may be indices, masks or lengths: 0 or 1, in the range that the
 * engine says. */
static void fill(view *v, uint32_t seed, const sinter_io *io)
{
    enum { SQUARE = 16 };
    const int64_t count = view_count(v);
    const bool is_image = v->rank >= 3 && v->dim[v->rank - 1] >= SQUARE && v->dim[v->rank - 2] >= SQUARE;
    const int64_t width = v->rank ? v->dim[v->rank - 1] : 1, height = is_image ? v->dim[v->rank - 2] : 1;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t at = (uint32_t)i * 4 + seed * 0x9e3779b9u;
        const int64_t square = (i / (width * height) * 4096 + i / width % height / SQUARE) * 4096 + i % width / SQUARE;
        if (!dtype_is_float(v->dtype))
            view_store_i64(v, i, i64_min(i64_max(i == 0 || unit(at) > 0.5, io->value_min), io->value_max));
        else if (is_image) view_store_f64(v, i, 0.75 * unit((uint32_t)square * 7 + seed) + 0.25 * unit(at));
        else view_store_f64(v, i, (unit(at) + unit(at + 1) + unit(at + 2) + unit(at + 3) - 2) * 1.7320508);
    }
}

/* ---- one run ---- */

/* The sample's tensor for an input. A value that the caller promises goes before it. */
static const sinter_tensor *sampled(const trial *t, uint32_t sample, const char *name)
{
    for (uint32_t i = 0; i < t->o.value_count; i++)
        if (!strcmp(t->o.value[i].input, name)) return t->o.value[i].value;
    if (sample >= t->o.sample_count) return NULL;
    const sinter_sample *s = &t->o.sample[sample];
    for (uint32_t i = 0; i < s->count; i++)
        if (!strcmp(s->value[i].input, name)) return s->value[i].value;
    return NULL;
}

static sinter_status check_sample(const trial *t, const engine *g, uint32_t sample)
{
    const sinter_sample *s = sample < t->o.sample_count ? &t->o.sample[sample] : NULL;
    for (uint32_t i = 0; s && i < s->count; i++) {
        const sinter_tensor *data = s->value[i].value;
        sinter_io io = { 0 };
        bool is_found = false;
        for (uint32_t k = 0; k < g->input_count && !is_found; k++) {
            TRY(engine_io_describe(g, k, 0, &io));
            is_found = !strcmp(io.name, s->value[i].input);
        }
        if (!is_found)
            return FAIL(t->e, INVALID_ARG, "sample %u has data for '%s', which is no input", sample, s->value[i].input);
        if (data->dtype != io.dtype || data->rank != io.rank)
            return FAIL(t->e, INVALID_ARG, "input '%s' is %s of rank %u, sample %u has %s of rank %u", io.name,
                        sinter_dtype_name(io.dtype), io.rank, sample, sinter_dtype_name(data->dtype), data->rank);
    }
    return SINTER_OK;
}

/* The profile's opt, or what a sample says of an axis of the same size. */
static sinter_status dims_of(const trial *t, const engine *g, uint32_t sample, uint32_t input, const sinter_io *io,
                             int64_t *size)
{
    memcpy(size, io->opt, sizeof io->opt);
    for (uint32_t i = 0; i < g->input_count; i++) {
        sinter_io other;
        TRY(engine_io_describe(g, i, 0, &other));
        const sinter_tensor *data = sampled(t, sample, other.name);
        for (uint32_t k = 0; data && k < io->rank; k++)
            for (uint32_t j = 0; j < data->rank; j++)
                if (g->io[input].dim[k] == g->io[i].dim[j]) size[k] = data->dim[j];
    }
    return SINTER_OK;
}

static void move(view *v, double by)
{
    const int64_t count = view_count(v);
    for (int64_t i = 0; dtype_is_float(v->dtype) && i < count; i++)
        view_store_f64(v, i, view_load_f64(v, i) * (1 + (unit((uint32_t)i) > 0.5 ? by : -by)));
}

static sinter_status set_inputs(const trial *t, uint32_t sample, arena *a, context *c)
{
    const engine *g = c->g;
    TRY(check_sample(t, g, sample));
    for (uint32_t i = 0; i < g->input_count; i++) {
        sinter_io io;
        TRY(engine_io_describe(g, i, 0, &io));
        const sinter_tensor *given = sampled(t, sample, io.name);
        sinter_tensor x = { .dtype = io.dtype, .rank = io.rank };
        if (given) memcpy(x.dim, given->dim, sizeof x.dim);
        else TRY(dims_of(t, g, sample, i, &io, x.dim));
        view v;
        const size_t size = sinter_tensor_size(&x);
        void *data = size == SIZE_MAX ? NULL : arena_alloc(a, size + 64, 64);
        if (!data || !view_init(&v, io.dtype, io.rank, x.dim, data)) return FAIL_MEMORY(t->e, "a trial's inputs");
        if (given) memcpy(data, given->data, size);
        else if (sinter_dtype_bits(io.dtype) < 8) memset(data, 0, size);
        else fill(&v, 17 * i + 1, &io);
        if (t->jitter != 0 && !g->io[i].promise_size && sinter_dtype_bits(io.dtype) > 8) move(&v, t->jitter);
        c->input[i].data = data;
        c->input[i].is_set = true;
        memcpy(c->input[i].dim, x.dim, sizeof x.dim);
    }
    return SINTER_OK;
}

/* Is the output compared? Only floats whose sizes follow from the inputs. Outputs with data-dependent sizes may differ
 * for good reasons. */
static bool is_compared(const engine *g, uint32_t output)
{
    const engine_io *io = &g->io[g->input_count + output];
    bool is = dtype_is_float((sinter_dtype)io->dtype) && sinter_dtype_bits((sinter_dtype)io->dtype) >= 16;
    for (uint32_t k = 0; k < io->rank; k++) is = is && !g->symbol_late[io->dim[k]];
    return is;
}

/* Is there room for another run? The effect of a state shows in the second run; the first appended `rows`. */
static bool has_room(const context *c, int64_t rows)
{
    return c->has_state && (!c->g->state || c->rows + rows <= (int64_t)c->g->state->capacity);
}

static sinter_status run(const trial *t, engine *g, uint32_t sample, trial_see see, void *user)
{
    context *c = NULL;
    TRY(context_create(g, &(context_options){ .is_lazy = true }, &c, t->e->error));
    sinter_error *const own = c->e.error;
    c->e.error = t->e->error; /* errors of a run are errors of the build */
    arena a;
    arena_init(&a, t->e);
    sinter_status s = set_inputs(t, sample, &a, c);
    for (uint32_t i = 0; s == SINTER_OK && i < RUNS; i++) {
        const int64_t rows = c->rows;
        s = context_begin(c, false);
        if (s == SINTER_OK) s = context_end(c);
        if (s == SINTER_OK && !has_room(c, c->rows - rows)) break;
    }
    const uint32_t outputs = g->io_count - g->input_count;
    for (uint32_t i = 0; i < outputs && s == SINTER_OK; i++) {
        view v = c->now->value[context_args(c, c->p->io_first)[g->input_count + i]];
        v.data = c->result[i].at;
        s = see(user, sample, i, outputs - 1 - i, is_compared(g, i), &v);
    }
    arena_deinit(&a);
    c->e.error = own;
    context_destroy(c);
    return t->o.sample_count ? NOTE(t->e, s, "running sample %u", sample) : s;
}

/* Makes the batch smaller: a few images test as much as many, in less time. Where all inputs begin with the same large
 * dim, it is taken for the batch. If that is wrong, the model refuses the smaller size. */
static sinter_status shrink_batch(trial *t)
{
    const sinter_profile *p = t->o.profile;
    const int64_t batch = t->o.profile_count && p->count && p->shape[0].rank ? p->shape[0].opt[0] : 0;
    bool is_batch = batch > BATCH_MAX;
    for (uint32_t i = 0; is_batch && i < p->count; i++) is_batch = p->shape[i].rank > 1 && p->shape[i].opt[0] == batch;
    if (!is_batch) return SINTER_OK;
    sinter_profile *small = ARENA_NEW(&t->a, sinter_profile, 1);
    sinter_shape_range *input = ARENA_NEW(&t->a, sinter_shape_range, p->count);
    if (!small || !input) return FAIL_MEMORY(t->e, "a trial's shapes");
    memcpy(input, p->shape, p->count * sizeof *input);
    for (uint32_t i = 0; i < p->count; i++) input[i].min[0] = input[i].opt[0] = input[i].max[0] = BATCH_MAX;
    *small = (sinter_profile){ .shape = input, .count = p->count };
    t->profile = p;
    t->o.profile = small;
    t->o.profile_count = 1;
    return SINTER_OK;
}

static const sinter_shape_range *range_of(const sinter_build_options *o, const char *input)
{
    for (uint32_t i = 0; o->profile_count && i < o->profile[0].count; i++)
        if (o->profile[0].shape[i].input && !strcmp(o->profile[0].shape[i].input, input))
            return &o->profile[0].shape[i];
    return NULL;
}

/* Adds a sample's dims to the range of its input. */
static void widen(sinter_shape_range *list, uint32_t *count, const sinter_input_value *value)
{
    uint32_t i = 0;
    while (i < *count && strcmp(list[i].input, value->input) != 0) i++;
    sinter_shape_range *r = &list[i];
    const sinter_tensor *x = value->value;
    if (i == *count) {
        *r = (sinter_shape_range){ .input = value->input, .rank = x->rank };
        memcpy(r->min, x->dim, sizeof r->min);
        memcpy(r->opt, x->dim, sizeof r->opt);
        memcpy(r->max, x->dim, sizeof r->max);
        (*count)++;
    }
    for (uint32_t k = 0; k < r->rank && k < x->rank; k++) {
        if (x->dim[k] < r->min[k]) r->min[k] = x->dim[k];
        if (x->dim[k] > r->max[k]) r->max[k] = x->dim[k];
    }
}

static sinter_status check_values(const trial *t)
{
    for (uint32_t i = 0; i < t->o.sample_count; i++) {
        const sinter_sample *s = &t->o.sample[i];
        if (s->count && !s->value) return FAIL(t->e, INVALID_ARG, "sample %u has its values at NULL", i);
        for (uint32_t k = 0; k < s->count; k++) {
            const sinter_input_value *v = &s->value[k];
            if (!v->input || !v->value || !v->value->data || v->value->rank > SINTER_RANK_MAX)
                return FAIL(t->e, INVALID_ARG, "value %u of sample %u is NULL or no tensor", k, i);
            if (v->value->place == SINTER_PLACE_DEVICE)
                return FAIL(t->e, INVALID_ARG, "sample %u of input '%s' lies on the device, wanted on the host", i,
                            v->input);
        }
    }
    return SINTER_OK;
}

/* Does the caller's profile permit all of these? */
static bool is_inside(const sinter_build_options *o, const sinter_shape_range *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const sinter_shape_range *r = range_of(o, list[i].input);
        if (!r || r->rank != list[i].rank) return false;
        for (uint32_t k = 0; k < r->rank; k++)
            if (list[i].min[k] < r->min[k] || list[i].max[k] > r->max[k]) return false;
    }
    return true;
}

/* The caller's ranges of inputs that are not in the list. */
static void add_others(const sinter_build_options *o, sinter_shape_range *list, uint32_t *count)
{
    const uint32_t named = *count;
    for (uint32_t i = 0; o->profile_count && i < o->profile[0].count; i++) {
        const sinter_shape_range *r = &o->profile[0].shape[i];
        bool is_named = !r->input;
        for (uint32_t k = 0; k < named && !is_named; k++) is_named = !strcmp(r->input, list[k].input);
        if (!is_named) list[(*count)++] = *r;
    }
}

/* Fits the trial's profile to the samples. They may have other shapes than the engine: single images where the engine
 * takes batches, for example. */
static sinter_status fit_samples(trial *t)
{
    const sinter_build_options *o = &t->o;
    size_t most = o->profile_count ? o->profile[0].count : 0;
    uint32_t count = 0;
    TRY(check_values(t));
    for (uint32_t i = 0; i < o->sample_count; i++) most = size_add(most, o->sample[i].count);
    sinter_profile *own = ARENA_NEW(&t->a, sinter_profile, 1);
    sinter_shape_range *list = ARENA_NEW(&t->a, sinter_shape_range, most);
    if (!own || !list) return FAIL_MEMORY(t->e, "a trial's shapes");
    for (uint32_t i = 0; i < o->sample_count; i++)
        for (uint32_t k = 0; k < o->sample[i].count; k++) widen(list, &count, &o->sample[i].value[k]);
    if (is_inside(o, list, count)) return SINTER_OK;
    add_others(o, list, &count);
    *own = (sinter_profile){ .shape = list, .count = count };
    t->o.profile = own;
    t->o.profile_count = 1;
    return SINTER_OK;
}

/* A trial is a part of a phase, and can be cancelled. */
static int on_progress(void *user, const char *phase, double done)
{
    const trial *t = user;
    (void)phase;
    (void)done;
    return t->asked->progress(t->asked->user, t->phase, 0);
}

sinter_status trial_init(trial *t, env *e, const build_model *m, const sinter_build_options *o, uint32_t samples_max)
{
    *t = (trial){ .e = e, .m = m, .asked = o, .o = *o, .passes = 1, .phase = "budget" };
    t->o.device = NULL;
    t->o.tune = SINTER_TUNE_OFF;
    t->o.timing_cache = NULL;
    t->o.stage = NULL;
    t->o.progress = o->progress ? on_progress : NULL;
    t->o.user = t;
    t->o.report = NULL;
    t->samples = o->sample_count < samples_max ? o->sample_count : samples_max;
    if (!t->samples) t->samples = 1;
    arena_init(&t->a, e);
    return o->sample_count ? fit_samples(t) : shrink_batch(t);
}

void trial_deinit(trial *t)
{
    build_base_end(t->base);
    arena_deinit(&t->a);
}

static sinter_status build_and_run(trial *t, build_lowering *lowering, trial_see see, void *user)
{
    build_output out = { 0 };
    engine *g = NULL;
    if (!t->base) TRY(build_begin(t->e, t->m, &t->o, &t->base));
    TRY(build_once(t->e, t->base, &t->o, lowering, &out));
    const device_options d = { .threads = t->o.threads };
    TRY(engine_open(t->e, out.bytes, out.size, backend_find("cpu"), &d, 0, &g, t->e->error));
    sinter_status s = SINTER_OK;
    for (t->pass = 0; t->pass < t->passes; t->pass++)
        for (uint32_t i = 0; i < t->samples && s == SINTER_OK; i++) s = run(t, g, i, see, user);
    engine_release(g);
    return s;
}

sinter_status trial_run(trial *t, uint32_t allow, build_lowering *lowering, trial_see see, void *user)
{
    t->o.allow = allow;
    if (t->builds++ || !t->profile) return build_and_run(t, lowering, see, user);
    /* Tries the small batch first. If that fails, the caller's batch is used. */
    sinter_error quiet = { 0 }, *const error = t->e->error;
    t->e->error = &quiet;
    const sinter_status s = build_and_run(t, lowering, see, user);
    t->e->error = error;
    if (s == SINTER_OK) return SINTER_OK;
    t->o.profile = t->profile;
    build_base_end(t->base);
    t->base = NULL;
    return build_and_run(t, lowering, see, user);
}

sinter_status trial_try(trial *t, uint32_t allow, build_lowering *lowering, trial_see see, void *user,
                        sinter_error *why)
{
    sinter_error *const error = t->e->error;
    *why = (sinter_error){ 0 };
    t->e->error = why;
    const sinter_status s = trial_run(t, allow, lowering, see, user);
    t->e->error = error;
    const bool is_refused = s == SINTER_INVALID_ARG || s == SINTER_INVALID_MODEL || s == SINTER_UNSUPPORTED;
    if (s != SINTER_OK && !is_refused) *error = *why;
    return is_refused ? SINTER_OK : s;
}

sinter_status trial_first(trial *t, uint32_t allow, build_lowering *lowering, trial_see see, void *user,
                          sinter_error *why)
{
    *why = (sinter_error){ 0 };
    return t->o.sample_count || t->o.value_count ? trial_run(t, allow, lowering, see, user)
                                                 : trial_try(t, allow, lowering, see, user, why);
}
