/* SPDX-License-Identifier: Apache-2.0 */
/* permit.c - decides which of the permitted ops are lowered: those that are faster on the device (tune/gains.c), as far
 * as the outputs stay within the budget (budget.c). Ops that gain nothing are not calibrated and not compared. */
#include "base/options.h"
#include "base/os.h"
#include "builder/builder.h"
#include "builder/calibration.h"
#include "run/context.h"
#include "tune/tune.h"

#include <stdio.h>
#include <string.h>

static const uint32_t floats = SINTER_ALLOW_FP16 | SINTER_ALLOW_BF16;

static device_words device_of(const sinter_build_options *o)
{
    device_words d;
    (void)device_words_read(o->device, &d);
    return d;
}

sinter_status build_backend(env *e, const sinter_build_options *o, const backend **out)
{
    const device_words d = device_of(o);
    *out = backend_find(d.backend);
    return *out ? SINTER_OK : FAIL(e, UNSUPPORTED, "this build has no backend '%s'", d.backend);
}

bool build_has(const sinter_build_options *o, uint32_t trait)
{
    const backend *b = backend_find(device_of(o).backend);
    return b && b->traits & trait;
}

bool build_is_reference(const sinter_build_options *o)
{
    return device_of(o).is_reference;
}

device_options build_device_wanted(const sinter_build_options *o)
{
    return (device_options){ .threads = o->threads,
                             .spin_us = 100,
                             .isa = o->isa ? o->isa : os_env("SINTER_ISA"),
                             .name = device_of(o).which,
                             .kernel_cache = o->kernel_cache };
}

/* ---- asking ---- */

static sinter_status target_open(env *e, const sinter_build_options *o, build_lowering *l)
{
    build_target *t = mem_zalloc(e, sizeof *t, _Alignof(build_target));
    if (!t) return FAIL_MEMORY(e, "a device");
    l->target = t;
    arena_init(&t->a, e);
    TRY(build_backend(e, o, &t->backend));
    const device_options wanted = build_device_wanted(o);
    TRY(t->backend->open(e, &wanted, &t->device));
    TRY(timing_cache_create(e, &t->cache));
    return o->timing_cache ? timing_cache_read(t->cache, o->timing_cache) : SINTER_OK;
}

void build_permit_end(env *e, build_lowering *l)
{
    build_target *t = l->target;
    if (!t) return;
    timing_cache_destroy(t->cache);
    if (t->device) t->backend->close(e, t->device);
    arena_deinit(&t->a);
    mem_free(e, t, sizeof *t, _Alignof(build_target));
    l->target = NULL;
    l->narrow.gains = l->quantize.gains = NULL;
}

/* Those that are not faster stay. */
static sinter_status choose(env *e, build_choice *c, const tune_gains *g)
{
    if (c->is_kept) mem_free(e, c->is_kept, c->size, 1);
    *c = (build_choice){ .count = g->count, .gains = g };
    if (!g->count) return SINTER_OK;
    c->is_kept = mem_zalloc(e, g->count, 1);
    if (!c->is_kept) return FAIL_MEMORY(e, "lowering types");
    c->size = g->count;
    memcpy(c->is_kept, g->is_slow, g->count);
    return SINTER_OK;
}

/* Checks samples even if no run is going to use them. */
sinter_status build_check_samples(env *e, const ir_graph *g, const sinter_build_options *o)
{
    const ir_region *main = ir_region_at(g, IR_MAIN);
    for (uint32_t i = 0; i < o->sample_count; i++) {
        for (uint32_t k = 0; k < o->sample[i].count && o->sample[i].value; k++) {
            const sinter_input_value *v = &o->sample[i].value[k];
            const ir_value *x = NULL;
            for (uint32_t p = 0; p < main->param.count && v->input && !x; p++) {
                const ir_value *at = ir_value_at(g, main->param.at[p]);
                if (at->name && !strcmp(at->name, v->input)) x = at;
            }
            if (!x || !v->value)
                return FAIL(e, INVALID_ARG, "sample %u has data for '%s', and the model has no such input", i,
                            v->input ? v->input : "");
            if (v->value->dtype != x->dtype || v->value->rank != x->rank)
                return FAIL(e, INVALID_ARG, "input '%s' is %s of rank %u, sample %u has %s of rank %u", v->input,
                            sinter_dtype_name(x->dtype), x->rank, i, sinter_dtype_name(v->value->dtype),
                            v->value->rank);
        }
    }
    return SINTER_OK;
}

static sinter_status ask(env *e, const sinter_build_options *o, build_lowering *l, build_asking *x)
{
    x->quantize = ARENA_NEW(&l->target->a, tune_gains, 1);
    x->narrow = ARENA_NEW(&l->target->a, tune_gains, 1);
    if (!x->quantize || !x->narrow) return FAIL_MEMORY(e, "prices");
    /* Its time counts as a part of choosing types. */
    sinter_build_options own = *o;
    own.report = NULL;
    l->asking = x;
    const sinter_status s = build_once(e, l->base, &own, l, NULL);
    l->asking = NULL;
    TRY(s);
    if (x->wants_quantize) TRY(choose(e, &l->quantize, x->quantize));
    return x->wants_narrow ? choose(e, &l->narrow, x->narrow) : SINTER_OK;
}

sinter_status build_ask_narrow(env *e, const sinter_build_options *o, build_lowering *l)
{
    build_asking x = { .wants_narrow = true };
    return ask(e, o, l, &x);
}

static bool may_gain(const build_choice *c)
{
    return !c->gains || c->gains->lowered;
}

/* Measures the missing ranges, by the method of least error. */
static sinter_status calibrate(env *e, const build_model *m, const sinter_build_options *o, build_lowering *l)
{
    sinter_calibrate_options how = SINTER_CALIBRATE_OPTIONS;
    how.method = SINTER_CALIBRATION_ERROR;
    TRY(calibration_create(e, how.method, &l->found));
    l->calibration = l->found;
    return build_calibrate(e, m, o, &how, false, l->found);
}

sinter_status build_permit(env *e, const build_model *m, const sinter_build_options *o, build_lowering *l)
{
    const bool is_order = o->lower == SINTER_LOWER_ALWAYS;
    uint32_t allow = o->allow & ~(uint32_t)SINTER_ALLOW_TF32;
    build_asking x = { .wants_quantize = (allow & SINTER_ALLOW_INT8) != 0, .wants_narrow = (allow & floats) != 0 };
    TRY(target_open(e, o, l));
    l->has_integers = l->has_integers || (is_order && allow & SINTER_ALLOW_INT8);
    if (!is_order) TRY(NOTE(e, ask(e, o, l, &x), "asking what narrower types gain"));
    if (!may_gain(&l->quantize)) allow &= ~(uint32_t)SINTER_ALLOW_INT8;
    if (allow & SINTER_ALLOW_INT8 && !l->calibration) TRY(calibrate(e, m, o, l));
    if (allow & floats && !is_order && !x.wants_narrow)
        TRY(NOTE(e, build_ask_narrow(e, o, l), "asking what narrower types gain"));
    if (!may_gain(&l->narrow)) allow &= ~floats;
    return allow ? build_budget(e, m, o, allow, l) : SINTER_OK;
}

/* ---- what came of it ---- */

uint32_t build_choice_lowered(const build_choice *c)
{
    uint32_t count = c->count;
    if (!c->is_kept) return count;
    for (uint32_t i = 0; i < c->size && c->size == c->count; i++) count -= c->is_kept[i];
    return c->size == c->count ? count : 0;
}

uint32_t build_quantized(const build_lowering *l)
{
    const uint8_t *kept = l->quantize.is_kept;
    uint32_t count = 0;
    if (!l->range || l->range_count != l->quantize.count || (kept && l->quantize.size != l->range_count)) return 0;
    for (uint32_t i = 0; i < l->range_count; i++) count += l->range[i] > 0 && !(kept && kept[i]);
    return count;
}

/* Text of the permissions and their result. */
const char *build_permit_text(arena *a, const sinter_build_options *o, const build_lowering *l)
{
    if (build_is_reference(o) || !o->allow) return "";
    text t;
    text_init(&t, a->e);
    options_print(&t, build_option_rows, o, (const char *const[]){ "allow", NULL });
    const char *s = t.failed ? NULL : arena_printf(a, "%s", t.at);
    text_deinit(&t);
    if (s && o->allow & (SINTER_ALLOW_FP16 | SINTER_ALLOW_BF16))
        s = arena_printf(a, "%s (%u of %u ops)", s, build_choice_lowered(&l->narrow), l->narrow.count);
    if (s && l->quantize.count)
        s = arena_printf(a, "%s (%u of %u products in 8 bits)", s, build_quantized(l), l->quantize.count);
    const bool is_seen = l->moved >= 0;
    if (s && l->unrun[0]) s = arena_printf(a, "%s not compared: the model does not run on seeded inputs", s);
    else if (s && l->is_judged && !is_seen)
        s = arena_printf(a, "%s not compared: no float output of a size that inputs decide", s);
    else if (s && l->is_judged)
        s = arena_printf(a, "%s moved=%.2g/%.2g on %s", s, l->moved, l->limit,
                         o->sample_count ? "samples" : "seeded inputs");
    return s ? s : "";
}

void build_permit_count(const plan *p, build_lowering *l)
{
    l->rounding = l->contractions = 0;
    for (uint32_t i = 1; i < p->step.count; i++) {
        const problem *x = p->step.at[i].problem;
        const kernel *k = p->step.at[i].kernel;
        if (p->step.at[i].kind != STEP_KERNEL || !x || !k || !(op_at(x->op)->traits & CONTRACTION)) continue;
        l->contractions++;
        l->rounding += k->numerics == KERNEL_RELAXED;
    }
}

static void print_choice(text *t, const char *name, const char *what, const build_choice *c, uint32_t lowered)
{
    const tune_gains *g = c->gains;
    const uint32_t gain = g ? g->lowered : c->count, cut = gain > lowered ? gain - lowered : 0;
    text_printf(t, "%s: %u of %u %s", name, lowered, c->count, what);
    if (g && g->slower) text_printf(t, ", %u not faster", g->slower);
    if (g && g->count > g->lowered + g->slower)
        text_printf(t, ", %u beside %s", g->count - g->lowered - g->slower, g->slower ? "them" : "no faster product");
    if (cut && c->is_cut) text_printf(t, ", %u would move the outputs too far", cut);
    else if (cut) text_printf(t, ", %u without a range", cut);
    if (g && g->why) text_printf(t, " (%s)", g->why);
    text_printf(t, "\n");
}

void build_permit_print(const sinter_build_options *o, const build_lowering *l, char *out, size_t size)
{
    env e;
    text t;
    sinter_error unread = { 0 };
    env_init(&e, o->env, &unread);
    text_init(&t, &e);
    if (!build_is_reference(o)) {
        if (o->allow & floats)
            print_choice(&t, o->allow & SINTER_ALLOW_FP16 ? "fp16" : "bf16", "ops", &l->narrow,
                         build_choice_lowered(&l->narrow));
        if (o->allow & SINTER_ALLOW_TF32)
            text_printf(&t, "tf32: %u of %u products have a kernel that rounds to it\n", l->rounding, l->contractions);
        if (o->allow & SINTER_ALLOW_INT8) print_choice(&t, "int8", "products", &l->quantize, build_quantized(l));
        if (l->unrun[0])
            text_printf(
                &t, "not compared with f32: the model does not run on seeded inputs, and there are no samples (%s)\n",
                l->unrun);
    }
    (void)snprintf(out, size, "%s", t.failed ? "" : t.at);
    text_deinit(&t);
}
