/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - how far 8-bit numbers are to reach: the model runs in f32 with its tensors as outputs.
 *
 * The first pass over the samples finds the largest magnitude of each tensor, the second one counts a histogram below
 * it; ranges.c chooses a range of that. Tensors that do not fit into memory together are looked at in turn. */
#include "builder/calibration.h"
#include "builder/ranges.h"
#include "builder/trial.h"
#include "tune/tune.h"

#include <string.h>

static const size_t taps_size_max = (size_t)1 << 29;

typedef struct calibration {
    env *e;
    arena a, work;
    trial t;
    tune_taps taps;
    histogram *of; /* by tensor */
} calibration;

/* How many tensors there are is known once the first engine has been built. */
static sinter_status begin(calibration *c)
{
    c->of = ARENA_NEW(&c->a, histogram, c->taps.count);
    return c->of ? SINTER_OK : FAIL_MEMORY(c->e, "calibrating");
}

static sinter_status see(void *user, uint32_t sample, uint32_t output, uint32_t comes_last, bool is_compared,
                         const view *v)
{
    calibration *c = user;
    (void)sample, (void)output, (void)is_compared;
    if (!c->of) TRY(begin(c));
    if (comes_last >= c->taps.end - c->taps.first) return SINTER_OK;
    histogram *h = &c->of[c->taps.end - 1 - comes_last];
    if (c->t.pass == 0) {
        histogram_reach(h, v->data, view_count(v));
        return SINTER_OK;
    }
    if (!h->bin) h->bin = ARENA_NEW(&c->a, uint64_t, RANGE_BINS);
    if (!h->bin) return FAIL_MEMORY(c->e, "calibrating");
    histogram_count(h, v->data, view_count(v));
    return SINTER_OK;
}

static sinter_status ranges_find(calibration *c, const sinter_calibrate_options *how, sinter_calibration *out)
{
    for (uint32_t i = 0; i < c->taps.count; i++) {
        const histogram *h = &c->of[i];
        const char *name = c->taps.name[i], *wrong = calibration_name_wrong(name);
        const double range = histogram_range(h, how, &c->work);
        if (c->work.failed) return FAIL_MEMORY(c->e, "calibrating");
        env_log(c->e, LOG_OPT, "tensor %s: data reaches %.4g, 8 bits %.4g%s%s%s", name, h->most, range,
                h->is_odd ? ", not all is finite" : "", wrong ? ", left out because its name " : "",
                wrong ? wrong : "");
        if (range > 0 && !wrong) TRY(calibration_set(out, c->e, name, range));
    }
    return SINTER_OK;
}

static sinter_status calibrate(calibration *c, const sinter_calibrate_options *how, sinter_calibration *out)
{
    build_lowering l = { .taps = &c->taps, .moved = -1 };
    c->t.passes = how->method == SINTER_CALIBRATION_MINMAX ? 1 : 2;
    c->t.phase = "calibrate";
    while (!c->taps.count || c->taps.end < c->taps.count) {
        c->taps.first = c->taps.end;
        sinter_error why = { 0 };
        TRY(trial_first(&c->t, 0, &l, see, c, &why));
        if (why.length) return SINTER_OK; /* ranges of nothing: the budget says why */
        if (c->taps.end == c->taps.first) break;
    }
    return c->of ? ranges_find(c, how, out) : SINTER_OK;
}

sinter_status build_calibrate(env *e, const build_model *m, const sinter_build_options *o,
                              const sinter_calibrate_options *how, bool is_whole, sinter_calibration *out)
{
    calibration c = { .e = e };
    arena_init(&c.a, e);
    arena_init(&c.work, e);
    c.taps = (tune_taps){ .a = &c.a, .size_max = taps_size_max, .is_whole = is_whole };
    sinter_status s = trial_init(&c.t, e, m, o, UINT32_MAX);
    if (s == SINTER_OK) s = calibrate(&c, how, out);
    trial_deinit(&c.t);
    arena_deinit(&c.work);
    arena_deinit(&c.a);
    return NOTE(e, s, "looking at the ranges of what 8 bits are to hold");
}

/* ---- batches that a function gives ---- */

typedef struct batches {
    arena a;
    VEC(sinter_sample) sample;
} batches;

static sinter_status batch_copy(env *e, batches *b, const sinter_sample *from)
{
    sinter_sample *to = VEC_PUSH(&b->a, &b->sample);
    sinter_input_value *value = ARENA_NEW(&b->a, sinter_input_value, from->count);
    sinter_tensor *tensor = ARENA_NEW(&b->a, sinter_tensor, from->count);
    if (from->count && !from->value) return FAIL(e, INVALID_ARG, "batch %u is at NULL", b->sample.count - 1);
    if (!to || !value || !tensor) return FAIL_MEMORY(e, "a batch");
    for (uint32_t i = 0; i < from->count; i++) {
        const sinter_tensor *x = from->value[i].value;
        if (!from->value[i].input || !x || !x->data || x->rank > SINTER_RANK_MAX || x->place == SINTER_PLACE_DEVICE)
            return FAIL(e, INVALID_ARG, "value %u of batch %u is NULL, no tensor, or not on the host", i,
                        b->sample.count - 1);
        const size_t size = sinter_tensor_size(x);
        void *data = size == SIZE_MAX ? NULL : arena_alloc(&b->a, size + 64, 64);
        const char *name = arena_text(&b->a, from->value[i].input, strlen(from->value[i].input));
        if (!data || !name) return FAIL_MEMORY(e, "a batch");
        memcpy(data, x->data, size);
        tensor[i] = *x;
        tensor[i].data = data;
        value[i] = (sinter_input_value){ name, &tensor[i] };
    }
    *to = (sinter_sample){ value, from->count };
    return SINTER_OK;
}

static sinter_status batches_take(env *e, batches *b, const sinter_calibrate_options *how)
{
    for (;;) {
        sinter_sample batch = { 0 };
        const int more = how->next(how->user, &batch);
        if (more < 0) return FAIL(e, CANCELLED, "the calibration was cancelled at batch %u", b->sample.count);
        if (!more) return SINTER_OK;
        TRY(batch_copy(e, b, &batch));
    }
}

sinter_status build_calibration(env *e, const build_model *m, const sinter_calibrate_options *how,
                                sinter_calibration *out)
{
    const sinter_build_options *from = how->build;
    batches b = { 0 };
    arena_init(&b.a, e);
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.env = from->env, o.threads = from->threads, o.isa = from->isa, o.progress = from->progress, o.user = from->user;
    o.profile = from->profile, o.profile_count = from->profile_count ? 1 : 0;
    o.value = from->value, o.value_count = from->value_count;
    o.sample = from->sample, o.sample_count = from->sample_count;
    o.state = from->state, o.state_count = from->state_count, o.capacity = from->capacity;
    o.equal = from->equal, o.equal_count = from->equal_count;
    o.rules = from->rules, o.verify = from->verify;
    sinter_status s = how->next ? batches_take(e, &b, how) : SINTER_OK;
    if (how->next) o.sample = b.sample.at, o.sample_count = b.sample.count;
    if (s == SINTER_OK && !o.sample_count)
        s = FAIL(e, INVALID_ARG, "there is no batch to calibrate with: %s",
                 how->next ? "`next` gave none" : "0 samples");
    if (s == SINTER_OK) s = build_calibrate(e, m, &o, how, true, out);
    arena_deinit(&b.a);
    return s;
}

/* ---- what products read ---- */

sinter_status build_ranges(env *e, ir_graph *g, build_lowering *l)
{
    arena a;
    tune_product *product = NULL;
    arena_init(&a, e);
    sinter_status s = tune_products(e, &a, g, &product, &l->range_count);
    if (s == SINTER_OK && l->range_count) {
        l->range = mem_zalloc(e, l->range_count * sizeof *l->range, sizeof *l->range);
        if (!l->range) s = FAIL_MEMORY(e, "ranges");
    }
    for (uint32_t i = 0; s == SINTER_OK && i < l->range_count; i++) {
        l->range[i] = calibration_range(l->calibration, product[i].data);
        env_log(e, LOG_OPT, "product %u reads '%s': 8 bits hold %.4g", i, product[i].data, l->range[i]);
    }
    arena_deinit(&a);
    return s;
}
