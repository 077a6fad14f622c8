/* SPDX-License-Identifier: Apache-2.0 */
/* builder.c - all steps of a build on one page: the part that all builds of a model share (begin.c), the other passes
 * (opt/pipeline.c), tuning and planning of each profile, and writing. */
#include "builder/builder.h"

#include "base/options.h"
#include "base/os.h"
#include "builder/begin.h"
#include "builder/branches.h"
#include "builder/descent.h"
#include "builder/emit.h"
#include "builder/profiles.h"
#include "builder/states.h"
#include "plan/plan.h"
#include "sinter/version.h"

#include <string.h>

/* Results with a data-dependent size above late_item_max, and all others above slab_item_max, live in growing buffers
 * outside the slab. */
static const uint64_t slab_item_max = (uint64_t)1 << 34, late_item_max = (uint64_t)1 << 24;

typedef struct builder {
    env *e;
    const sinter_build_options *o;
    arena a;
    build_base *base;
    ir_graph *g;
    const backend *backend;
    device *device;
    timing_cache *cache;
    tune_result *tuned;
    uint32_t profiles;
    build_lowering *lowering;
    sinter_build_report *report;
    tune_stats stats;
    bool is_borrowed; /* backend, device and cache are the caller's */
    emit out;
} builder;

void build_time_add(uint64_t *start, double *to)
{
    const uint64_t now = os_time_ns();
    *to += 1e-9 * (double)(now - *start);
    *start = now;
}

sinter_status build_progress(env *e, const sinter_build_options *o, const char *phase, double done)
{
    if (!o->progress || !o->progress(o->user, phase, done)) return SINTER_OK;
    return FAIL(e, CANCELLED, "the build was cancelled");
}

static sinter_status report(const builder *b, const char *phase, double done)
{
    return build_progress(b->e, b->o, phase, done);
}

static uint64_t weights_of(const ir_graph *g)
{
    uint64_t size = 0;
    for (uint32_t i = 1; i < g->value.count; i++)
        if (g->value.at[i].data && g->value.at[i].use_count) size += g->value.at[i].data_size;
    return size;
}

static uint64_t workspace_most(const builder *b)
{
    const uint64_t most = b->e->limits.memory_max / 4;
    return b->o->workspace && b->o->workspace < most ? b->o->workspace : most;
}

static tune_options tuning(builder *b)
{
    kernel_target target;
    b->backend->target(b->device, &target);
    return (tune_options){ .backend = b->backend,
                           .device = b->device,
                           .mode = (tune_mode)b->o->tune,
                           .threads = target.threads,
                           .reference_only = build_is_reference(b->o),
                           .exact = b->o->math == SINTER_MATH_EXACT,
                           .relaxed = (b->o->allow & SINTER_ALLOW_TF32) != 0,
                           .cache_only = b->o->cache_only != 0,
                           .cache = b->cache,
                           .workspace_max = workspace_most(b),
                           .weights = weights_of(b->g),
                           .stats = &b->stats,
                           .progress = b->o->progress,
                           .user = b->o->user };
}

/* Asks the device which products are faster in 8 bits, at the sizes of the first profile. */
static sinter_status ask_quantize(builder *b)
{
    build_asking *x = b->lowering->asking;
    TRY(build_check_samples(b->e, b->g, b->o));
    TRY(profiles_apply(b->e, b->g, b->o, 0));
    if (!x->wants_quantize) return SINTER_OK;
    const tune_options options = tuning(b);
    const sinter_dtype otherwise = b->o->allow & SINTER_ALLOW_FP16   ? SINTER_DTYPE_F16
                                   : b->o->allow & SINTER_ALLOW_BF16 ? SINTER_DTYPE_BF16
                                                                     : SINTER_DTYPE_NONE;
    TRY(tune_quantize_gains(b->e, &b->lowering->target->a, b->g, otherwise, &options, x->quantize));
    b->lowering->has_integers = b->lowering->has_integers || x->quantize->integers_pay;
    x->wants_narrow = x->wants_narrow && !x->quantize->lowered;
    return SINTER_OK;
}

static sinter_status ask_narrow(builder *b)
{
    build_asking *x = b->lowering->asking;
    if (!x->wants_narrow) return SINTER_OK;
    const tune_options options = tuning(b);
    return tune_narrow_gains(b->e, &b->lowering->target->a, b->g,
                             b->o->allow & SINTER_ALLOW_FP16 ? SINTER_DTYPE_F16 : SINTER_DTYPE_BF16, &options,
                             x->narrow);
}

/* Adds the taps of a trial or a calibration, or quantises products. */
static sinter_status quantize(builder *b, opt_state *s, bool *is_changed)
{
    build_lowering *l = b->lowering;
    if (l->is_trial) TRY(tune_tap_selections(b->e, b->g));
    if (l->asking) TRY(ask_quantize(b));
    if (l->taps) return tune_tap(b->e, b->g, l->taps);
    s->integers = l->has_integers;
    if (!(b->o->allow & SINTER_ALLOW_INT8) || !l->calibration) return SINTER_OK;
    if (!l->range) TRY(build_ranges(b->e, b->g, l));
    l->quantize.count = l->range_count;
    *is_changed = true;
    TRY(tune_quantize_demand(b->e, b->g, l->range, l->quantize.size == l->range_count ? l->quantize.is_kept : NULL,
                             l->range_count));
    return tune_quantize(b->e, b->g, TUNE_CODES_ENGINE, l->range, l->quantize.is_kept, &l->quantize.count);
}

/* Types of other ops. */
static sinter_status narrow(builder *b, bool *is_changed)
{
    if (!(b->o->allow & (SINTER_ALLOW_FP16 | SINTER_ALLOW_BF16))) return SINTER_OK;
    build_choice *c = &b->lowering->narrow;
    c->count = c->size;
    *is_changed = true;
    TRY(tune_narrow(b->e, b->g, b->o->allow & SINTER_ALLOW_FP16 ? SINTER_DTYPE_F16 : SINTER_DTYPE_BF16, c->is_kept,
                    &c->count));
    return ir_sweep(b->g);
}

/* Copies of the symbols' ranges: their own, and those of the first profile. The graph serves all profiles; only kernels
 * are asked at the sizes of the first. */
static sinter_status first_ranges(builder *b, dim_symbol **own, dim_symbol **first)
{
    const uint32_t count = dim_symbol_count(b->g->dims);
    *own = ARENA_NEW(&b->a, dim_symbol, count);
    *first = ARENA_NEW(&b->a, dim_symbol, count);
    if (!*own || !*first) return FAIL_MEMORY(b->e, "the first profile");
    for (uint32_t i = 0; i < count; i++) (*own)[i] = *dim_symbol_at(b->g->dims, i);
    TRY(profiles_apply(b->e, b->g, b->o, 0));
    for (uint32_t i = 0; i < count; i++) (*first)[i] = *dim_symbol_at(b->g->dims, i);
    for (uint32_t i = 0; i < count; i++) dim_symbol_set(b->g->dims, i, &(*own)[i]);
    return SINTER_OK;
}

/* Runs after the types are lowered, because the marks that decide the types count ops. */
static sinter_status lower(builder *b, bool *is_changed)
{
    if (b->lowering->asking) return ask_narrow(b);
    TRY(narrow(b, is_changed));
    if (!b->backend->copy) return SINTER_OK;
    const tune_options options = tuning(b);
    dim_symbol *own, *first;
    TRY(first_ranges(b, &own, &first));
    return tune_find_on_device(b->e, b->g, &options, first, dim_symbol_count(b->g->dims), is_changed);
}

static sinter_status at_point(void *user, opt_point point, opt_state *s, bool *is_changed)
{
    builder *b = user;
    return point == OPT_QUANTIZE ? quantize(b, s, is_changed) : lower(b, is_changed);
}

/* Joins groups into one op where the device has a kernel for it. */
static sinter_status join(builder *b)
{
    const tune_options options = tuning(b);
    const uint32_t count = dim_symbol_count(b->g->dims);
    dim_symbol *own, *first;
    TRY(first_ranges(b, &own, &first));
    for (uint32_t i = 0; i < count; i++) dim_symbol_set(b->g->dims, i, &first[i]);
    sinter_status s = tune_join(b->e, b->g, &options, TUNE_JOIN_EXCITES);
    /* Joined kernels accept few rows only. With several profiles, the number of rows follows from the ranges of all of
     * them. */
    for (uint32_t i = 0; i < count && b->o->profile_count > 1; i++) dim_symbol_set(b->g->dims, i, &own[i]);
    if (s == SINTER_OK) s = tune_join(b->e, b->g, &options, TUNE_JOIN_NORMS);
    if (s == SINTER_OK) s = tune_join(b->e, b->g, &options, TUNE_JOIN_APPENDS);
    for (uint32_t i = 0; i < count; i++) dim_symbol_set(b->g->dims, i, &own[i]);
    return s;
}

/* Runs the passes behind those of the base. A build that only asks which types gain ends where types are lowered. */
static sinter_status optimize(builder *b)
{
    TRY(report(b, "optimise", 0));
    if (build_is_reference(b->o)) return SINTER_OK;
    opt_options options = build_passes(b->base);
    options.after = opt_common_end;
    options.stop_after = b->lowering->asking ? "lower" : NULL;
    options.integers = b->lowering->has_integers;
    options.is_unsigned = (b->backend->traits & BACKEND_UNSIGNED) != 0;
    options.prologues = (b->backend->traits & BACKEND_PROLOGUES) != 0;
    options.at_point = at_point;
    options.point_user = b;
    TRY(NOTE(b->e, opt_run(b->e, b->g, &options), "optimising the graph"));
    return b->lowering->asking || !b->backend->copy ? SINTER_OK : join(b);
}

/* Keeps storages with data-dependent sizes out of the slab above a smaller limit, because their bounds are often far
 * too high. */
static void grow_late(builder *b, plan *p)
{
    for (uint32_t i = 1; i < p->storage.count; i++) {
        plan_storage *s = &p->storage.at[i];
        if (s->kind == STORAGE_SLAB && s->bound > late_item_max && dim_is_late(b->g->dims, s->size))
            s->kind = STORAGE_GROWN;
    }
}

static sinter_status plan_profile(builder *b, uint32_t index)
{
    TRY(profiles_apply(b->e, b->g, b->o, index));
    const tune_options options = tuning(b);
    tune_result *t = &b->tuned[index];
    if (b->backend->prepare && options.mode != TUNE_OFF) TRY(report(b, "compile", 0));
    TRY(tune_prepare(b->e, b->g, &options));
    TRY(tune_graph(b->e, &b->a, b->g, &options, t));
    TRY(plan_lifetimes(b->e, t->plan));
    plan_in_place(t->plan);
    grow_late(b, t->plan);
    const bool has_branches = b->backend->program_time && b->o->branches != SINTER_BRANCHES_OFF;
    TRY((has_branches ? plan_offsets_apart : plan_offsets)(b->e, t->plan, slab_item_max));
    env_log(b->e, LOG_PLAN, "profile %u: %u steps, %llu bytes of slab", index, t->plan->step.count - 1,
            (unsigned long long)t->plan->slab_size[PLACE_DEVICE]);
    return SINTER_OK;
}

static sinter_status keep_timings(builder *b)
{
    return build_timings_keep(b->e, b->cache, b->o, b->report);
}

static sinter_status add_code(void *user, const uint8_t key[32], const void *bytes, size_t size)
{
    builder *b = user;
    return engine_writer_code(&b->out.w, key, bytes, size);
}

/* Writes the compiled kernels of all profiles, for a caller who trusts the file. */
static sinter_status write_code(builder *b)
{
    uint32_t count = 0, most = 0;
    for (uint32_t i = 0; i < b->profiles; i++) most += b->tuned[i].plan->step.count;
    kernel_use *use = ARENA_NEW(&b->a, kernel_use, most);
    if (!use) return FAIL_MEMORY(b->e, "an engine");
    for (uint32_t i = 0; i < b->profiles; i++) {
        const plan *p = b->tuned[i].plan;
        for (uint32_t k = 1; k < p->step.count; k++) {
            const plan_step *s = &p->step.at[k];
            const kernel *chosen = s->kind == STEP_KERNEL ? s->kernel : NULL;
            if (!chosen || chosen->where != KERNEL_ON_DEVICE) continue;
            use[count++] = (kernel_use){ .kernel = chosen, .problem = s->problem, .tactic = (const tactic *)s->tactic };
        }
    }
    return b->backend->code_export(b->e, b->device, use, count, add_code, b);
}

/* ---- whole programs ---- */

/* Where nothing is measured, steps whose kernels leave room for others run side by side. */
static sinter_status decide_orders(builder *b, branches_work *work)
{
    static const program_order forced[] = { ORDER_SMALL, ORDER_CHAIN, ORDER_SMALL, ORDER_FREE };
    const tune_options options = tuning(b);
    for (uint32_t i = 0; i < b->profiles; i++) {
        bool is_known = true;
        const bool has_branches = b->backend->program_time && b->tuned[i].plan->has_branches;
        b->tuned[i].order = has_branches ? forced[b->o->branches] : ORDER_CHAIN;
        if (!has_branches || b->o->branches != SINTER_BRANCHES_AUTO || options.mode == TUNE_OFF) continue;
        TRY(branches_find(b->e, &options, &b->tuned[i], &is_known));
        work[i].wants_order = !is_known;
    }
    return SINTER_OK;
}

/* Applies what the timing cache knows of tactics in whole programs, and of orders of steps. The best tactics depend on
 * the order. A model whose engine and weights together exceed half of the memory is not measured. */
static sinter_status decide(builder *b, branches_work *work, bool *is_open)
{
    const tune_options options = tuning(b);
    const bool is_small = options.weights < b->e->limits.memory_max / 4;
    *is_open = false;
    TRY(decide_orders(b, work));
    for (uint32_t i = 0; i < b->profiles; i++) {
        bool is_known = true;
        if (is_small && !work[i].wants_order)
            TRY(descent_find(b->e, &options, &b->tuned[i], &is_known, &work[i].is_changed));
        work[i].wants_descent = is_small && (!is_known || work[i].wants_order) && descent_seconds(&options) > 0;
        *is_open = *is_open || work[i].wants_order || work[i].wants_descent;
    }
    return SINTER_OK;
}

static sinter_status measure_programs(builder *b, const device_options *wanted, const uint8_t *digest,
                                      branches_work *work)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    const tune_options options = tuning(b);
    TRY(report(b, "order", 0));
    TRY(engine_writer_finish(&b->out.w, digest, &bytes, &size));
    uint64_t start = os_time_ns();
    const sinter_status s = branches_measure(b->e, &options, wanted, bytes, size, b->tuned, work, b->profiles);
    build_time_add(&start, &b->report->measure_s);
    TRY(s);
    for (uint32_t i = 0; i < b->profiles; i++) emit_order(&b->out, i, b->tuned[i].order);
    return keep_timings(b);
}

/* ---- writing ---- */

static sinter_status fill_engine(builder *b, const char *name, os_output *to)
{
    TRY(report(b, "write", 0));
    emit *x = &b->out;
    *x = (emit){ .e = b->e,
                 .a = &b->a,
                 .g = b->g,
                 .promise = b->base->promise,
                 .read = source_forget,
                 .user = &b->base->source,
                 .promise_count = b->o->value_count,
                 .values = b->base->values,
                 .recipe_of = ARENA_NEW(&b->a, uint32_t, b->g->value.count) };
    for (uint32_t i = 0; i < 2; i++) x->missed[i] = ARENA_NEW(&b->a, uint8_t, b->g->value.count);
    if (!x->recipe_of || !x->missed[0] || !x->missed[1]) return FAIL_MEMORY(b->e, "an engine");
    TRY(ir_look_back(b->g));
    TRY(engine_writer_init(b->e, &x->w, to));
    TRY(emit_shared(x));
    for (uint32_t i = 0; i < b->profiles; i++) {
        TRY(profiles_apply(b->e, b->g, b->o, i));
        TRY(emit_ranges(x));
        TRY(emit_profile(x, &b->tuned[i]));
    }
    TRY(emit_decided(x));
    text t;
    text_init(&t, b->e);
    b->backend->describe(b->device, &t);
    kernel_target target;
    b->backend->target(b->device, &target);
    text used;
    text_init(&used, b->e);
    text_printf(&used, "device=%s", b->o->device ? b->o->device : b->backend->name);
    options_print(&used, build_option_rows, b->o, (const char *const[]){ "tune", "math", NULL });
    text_printf(&used, "%s", build_permit_text(&b->a, b->o, b->lowering));
    if (b->o->refittable) options_print(&used, build_option_rows, b->o, (const char *const[]){ "refittable", NULL });
    if (b->o->rules) options_print(&used, build_option_rows, b->o, (const char *const[]){ "rules", NULL });
    const engine_notes notes = { .version = engine_writer_string(&x->w, sinter_version()),
                                 .target = engine_writer_string(&x->w, t.failed ? "" : t.at),
                                 .options = engine_writer_string(&x->w, used.at),
                                 .model = engine_writer_string(&x->w, name),
                                 .threads = target.threads,
                                 .isa = build_is_reference(b->o) ? 0 : target.isa,
                                 .node_count = b->base->node_count,
                                 .backend = engine_writer_string(&x->w, b->backend->name) };
    const bool is_short = t.failed || used.failed;
    text_deinit(&t);
    text_deinit(&used);
    const engine_detail_record detail = { .detail = b->o->detail };
    TRY(emit_notes(x, &notes, b->o->detail == SINTER_DETAIL_ALL ? NULL : &detail));
    return x->w.failed || is_short ? FAIL_MEMORY(b->e, "an engine") : SINTER_OK;
}

/* Frees the graph, the plans and the records, because checking the finished bytes needs as much memory again. */
static void release_work(builder *b)
{
    if (b->out.e) engine_writer_deinit(&b->out.w);
    if (b->g) ir_graph_destroy(b->g);
    b->g = NULL;
    b->tuned = NULL;
    arena_deinit(&b->a);
}

/* Frees a weight that the file has by now, so that file and weights together need the memory of one. */
static void release_weight(void *user, const void *bytes, size_t size)
{
    builder *b = user;
    ir_blob_free(b->g, bytes);
    source_forget(&b->base->source, bytes, size);
}

/* Checks the finished engine where it is: the bytes, or the file that is not in its place yet. */
static sinter_status check_engine(builder *b, build_output *out, bool is_in_file)
{
    if (!is_in_file) TRY(emit_check(b->e, b->backend, b->device, out->bytes, out->size, false));
    if (!out->file) return SINTER_OK;
    if (!is_in_file) return os_output_put(b->e, out->file, 0, out->bytes, out->size);
    os_file file;
    TRY(os_output_map(b->e, out->file, &file));
    const sinter_status s = emit_check(b->e, b->backend, b->device, file.data, file.size, true);
    os_file_close(b->e, &file);
    return s;
}

static sinter_status fill_code(builder *b, bool is_wanted)
{
    if (!b->backend->code_export || !is_wanted) return SINTER_OK;
    uint64_t start = os_time_ns();
    const sinter_status s = write_code(b);
    build_time_add(&start, &b->report->compile_s);
    return s;
}

/* Writes an engine into memory and times its programs. If the times change steps, the engine is written again. */
static sinter_status fill_measured(builder *b, const device_options *wanted, const char *name, branches_work *work,
                                   os_output *to)
{
    bool is_changed = false;
    TRY(fill_engine(b, name, NULL));
    TRY(fill_code(b, true));
    TRY(measure_programs(b, wanted, b->base->digest, work));
    for (uint32_t i = 0; i < b->profiles; i++) is_changed = is_changed || (work[i].wants_descent && work[i].is_changed);
    if (!is_changed) return SINTER_OK;
    b->stats.pack_ns += b->out.pack_ns;
    engine_writer_deinit(&b->out.w);
    TRY(fill_engine(b, name, to));
    return fill_code(b, !b->o->no_code);
}

static sinter_status write_engine(builder *b, const device_options *wanted, const char *name, build_output *out)
{
    branches_work *work = ARENA_NEW(&b->a, branches_work, b->profiles);
    bool is_open;
    if (!work) return FAIL_MEMORY(b->e, "profiles");
    TRY(decide(b, work, &is_open));
    if (is_open) {
        TRY(fill_measured(b, wanted, name, work, out->file));
    } else {
        TRY(fill_engine(b, name, out->file));
        TRY(fill_code(b, !b->o->no_code));
    }
    /* An engine that was measured and did not change is in memory. */
    const bool is_in_file = out->file && b->out.w.to;
    b->stats.pack_ns += b->out.pack_ns;
    if (b->o->no_code) b->out.w.section[SECTION_CODE].size = 0;
    b->out.w.release = release_weight;
    b->out.w.user = b;
    TRY(engine_writer_finish(&b->out.w, b->base->digest, &out->bytes, &out->size));
    release_work(b);
    return check_engine(b, out, is_in_file);
}

/* Trials and taps are for the CPU, whatever the engine is for. */
static bool borrow_target(builder *b)
{
    const build_lowering *l = b->lowering;
    b->is_borrowed = l->target && !l->is_trial && !l->taps;
    if (!b->is_borrowed) return false;
    b->backend = l->target->backend;
    b->device = l->target->device;
    b->cache = l->target->cache;
    return true;
}

static sinter_status build(builder *b, build_output *out)
{
    const device_options wanted = build_device_wanted(b->o);
    uint64_t start = os_time_ns();
    if (!borrow_target(b)) TRY(build_backend(b->e, b->o, &b->backend));
    TRY(build_base_graph(b->base, b->lowering->is_last, &b->g));
    build_time_add(&start, &b->report->import_s);
    if (!b->is_borrowed && !b->lowering->asking) {
        TRY(b->backend->open(b->e, &wanted, &b->device));
        TRY(timing_cache_create(b->e, &b->cache));
        if (b->o->timing_cache) TRY(timing_cache_read(b->cache, b->o->timing_cache));
    }
    TRY(optimize(b));
    ir_release_unused(b->g);
    build_time_add(&start, &b->report->optimise_s);
    if (b->lowering->asking) return SINTER_OK;
    b->profiles = b->o->profile_count ? b->o->profile_count : 1;
    b->tuned = ARENA_NEW(&b->a, tune_result, b->profiles);
    if (!b->tuned) return FAIL_MEMORY(b->e, "profiles");
    for (uint32_t i = 0; i < b->profiles; i++) TRY(NOTE(b->e, plan_profile(b, i), "making profile %u", i));
    build_permit_count(b->tuned[0].plan, b->lowering);
    TRY(keep_timings(b));
    build_time_add(&start, &b->report->plan_s);
    const double others_s = b->report->compile_s + b->report->measure_s;
    const sinter_status s = write_engine(b, &wanted, b->base->source.model->name, out);
    build_time_add(&start, &b->report->write_s);
    b->report->write_s -= b->report->compile_s + b->report->measure_s - others_s;
    return s;
}

sinter_status build_once(env *e, build_base *base, const sinter_build_options *o, build_lowering *lowering,
                         build_output *out)
{
    sinter_build_report unread = { 0 };
    builder b = { .e = e, .base = base, .o = o, .lowering = lowering, .report = o->report ? o->report : &unread };
    arena_init(&b.a, e);
    const sinter_status s = build(&b, out);
    if (s != SINTER_OK && out && out->bytes) {
        mem_free(e, out->bytes, out->size, ENGINE_ALIGN);
        out->bytes = NULL;
    }
    /* What was measured before a build failed or was cancelled is of use to the next one. */
    if (s != SINTER_OK && b.cache) {
        sinter_error quiet = { 0 }, *error = e->error;
        e->error = &quiet;
        (void)keep_timings(&b);
        e->error = error;
    }
    build_timings_report(e, &b.stats, b.report);
    if (!b.is_borrowed) timing_cache_destroy(b.cache);
    if (b.device && !b.is_borrowed) b.backend->close(e, b.device);
    release_work(&b);
    return s;
}

/* Refuses a model that requires layers in 8 bits if the options do not permit 8 bits: the ranges come with that
 * permission. */
static sinter_status demands_check(env *e, const build_base *base, const sinter_build_options *o)
{
    const bool is_free = (o->allow & SINTER_ALLOW_INT8) || build_is_reference(o);
    const char *layer = is_free ? NULL : tune_quantize_demanded(base->g);
    if (!layer) return SINTER_OK;
    return FAIL(e, INVALID_ARG, "layer '%s' is to be computed in i8, and the build does not allow int8", layer);
}

sinter_status build_engine(env *e, const build_model *m, const sinter_build_options *o, build_output *out)
{
    build_lowering l = { .has_integers = build_has(o, BACKEND_INTEGERS), .calibration = o->calibration, .moved = -1 };
    sinter_build_report report = { 0 };
    sinter_build_options own = *o;
    sinter_status s = SINTER_OK;
    const uint64_t begin = os_time_ns();
    uint64_t start = begin;
    own.report = &report;
    const bool is_lowered = (o->allow & ~(uint32_t)SINTER_ALLOW_TF32) && !build_is_reference(o);
    s = states_check(e, o);
    if (s == SINTER_OK && o->rules) s = opt_rules_check(e, o->rules);
    if (s == SINTER_OK && o->timing_cache) s = build_timings_check(e, o->timing_cache);
    if (s == SINTER_OK && is_lowered && o->progress && o->progress(o->user, "budget", 0))
        s = FAIL(e, CANCELLED, "the build was cancelled");
    if (s == SINTER_OK) s = build_begin(e, m, &own, &l.base);
    if (s == SINTER_OK) s = demands_check(e, l.base, o);
    start = os_time_ns();
    if (s == SINTER_OK && is_lowered) s = build_permit(e, m, &own, &l);
    if (is_lowered) build_time_add(&start, &report.budget_s);
    l.is_last = true;
    if (s == SINTER_OK) s = build_once(e, l.base, &own, &l, out);
    if (s == SINTER_OK && o->allow) build_permit_print(o, &l, report.lowered, sizeof report.lowered);
    build_permit_end(e, &l);
    build_base_end(l.base);
    if (l.narrow.is_kept) mem_free(e, l.narrow.is_kept, l.narrow.size, 1);
    if (l.quantize.is_kept) mem_free(e, l.quantize.is_kept, l.quantize.size, 1);
    sinter_calibration_destroy(l.found);
    if (l.range) mem_free(e, l.range, l.range_count * sizeof *l.range, sizeof *l.range);
    start = begin;
    build_time_add(&start, &report.total_s);
    if (o->report) {
        const size_t size = o->report->struct_size;
        memcpy((char *)o->report + sizeof size, (const char *)&report + sizeof size,
               (size < sizeof report ? size : sizeof report) - sizeof size);
    }
    return s;
}
