/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - which ops a narrower type would hurt: the model is run as it is and lowered, and the outputs compared.
 *
 * Both runs are on the CPU, on seeded inputs at the opt shapes. Where the difference is within the budget, which is the
 * rule, nothing is kept. Else parts of the graph are lowered one at a time; those that alone spend too much are looked
 * at in smaller parts, and what still does stays in f32. Then the least harmful parts are taken together for as long as
 * the sum is within the budget. A verdict without anything kept goes into the timing cache. */
#include "base/hash.h"
#include "build/build.h"
#include "engine/engine.h"
#include "run/context.h"
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* rms(difference) / rms(want), the largest of all outputs. */
static const double budget_fp16 = 1e-2, budget_bf16 = 6e-2;
enum { PARTS = 4, OUTPUTS_MAX = 64, BATCH_MAX = 4 };

typedef struct budget {
    env *e;
    const build_model *m;
    sinter_build_options o; /* of the CPU's builds */
    arena a;
    uint32_t outputs;
    view want[OUTPUTS_MAX];
    double limit;
    uint32_t builds;
    const sinter_profile *profile; /* the caller's, where a smaller one is tried */
} budget;

/* ---- one run ---- */

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
 * normal: sums of four uniform numbers. Whole numbers may be indices, masks or lengths: 0 or 1. */
static void fill(view *v, uint32_t seed)
{
    enum { SQUARE = 16 };
    const int64_t count = view_count(v);
    const bool is_image = v->rank >= 3 && v->dim[v->rank - 1] >= SQUARE && v->dim[v->rank - 2] >= SQUARE;
    const int64_t width = v->rank ? v->dim[v->rank - 1] : 1, height = is_image ? v->dim[v->rank - 2] : 1;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t at = (uint32_t)i * 4 + seed * 0x9e3779b9u;
        const int64_t square = (i / (width * height) * 4096 + i / width % height / SQUARE) * 4096 + i % width / SQUARE;
        if (!dtype_is_float(v->dtype)) view_store_i64(v, i, i == 0 || unit(at) > 0.5);
        else if (is_image) view_store_f64(v, i, 0.75 * unit((uint32_t)square * 7 + seed) + 0.25 * unit(at));
        else view_store_f64(v, i, (unit(at) + unit(at + 1) + unit(at + 2) + unit(at + 3) - 2) * 1.7320508);
    }
}

static sinter_status set_inputs(budget *b, context *c)
{
    for (uint32_t i = 0; i < c->g->input_count; i++) {
        sinter_io io;
        TRY(engine_io_describe(c->g, i, 0, &io));
        void *data;
        view v;
        sinter_tensor t = { .dtype = io.dtype, .rank = io.rank };
        memcpy(t.dim, io.opt, sizeof t.dim);
        const size_t size = sinter_tensor_size(&t);
        data = size == SIZE_MAX || sinter_dtype_bits(io.dtype) < 8 ? NULL : arena_alloc(&b->a, size + 64, 64);
        if (!data || !view_init(&v, io.dtype, io.rank, io.opt, data)) return FAIL_MEMORY(b->e, "a trial's inputs");
        const engine_io *record = &c->g->io[i];
        if (record->promise_size) memcpy(data, c->g->weights + record->promise_at, size);
        else fill(&v, 17 * i + 1);
        c->input[i].data = data;
        c->input[i].is_set = true;
        memcpy(c->input[i].dim, io.opt, sizeof io.opt);
    }
    return SINTER_OK;
}

/* Float outputs whose sizes the inputs decide: what data decides may differ for good reasons. */
static bool is_compared(const engine *g, uint32_t output)
{
    const engine_io *io = &g->io[g->input_count + output];
    bool is = dtype_is_float((sinter_dtype)io->dtype) && sinter_dtype_bits((sinter_dtype)io->dtype) >= 16;
    for (uint32_t k = 0; k < io->rank; k++) is = is && !g->symbol_late[io->dim[k]];
    return is;
}

static double distance(const view *got, const view *want)
{
    const int64_t count = view_count(want);
    double gap = 0, size = 0;
    if (view_count(got) != count) return INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double x = view_load_f64(got, i), y = view_load_f64(want, i);
        if (x == y || !isfinite(y)) continue;
        gap += (x - y) * (x - y);
        size += y * y;
    }
    return gap == 0 ? 0 : isfinite(gap) ? sqrt(gap / (size > 0 ? size : 1)) : INFINITY;
}

/* Runs the engine once; keeps its outputs as what is wanted, or gives their distance from that. */
static sinter_status run(budget *b, engine *g, double *worst)
{
    context *c = NULL;
    TRY(context_create(g, &(context_options){ .is_lazy = true }, &c, b->e->error));
    sinter_status s = set_inputs(b, c);
    if (s == SINTER_OK) s = context_begin(c, false);
    if (s == SINTER_OK) s = context_end(c);
    const uint32_t outputs = g->io_count - g->input_count;
    for (uint32_t i = 0; i < outputs && i < OUTPUTS_MAX && s == SINTER_OK; i++) {
        if (!is_compared(g, i)) continue;
        view v = c->now->value[context_args(c, c->p->io_first)[g->input_count + i]];
        v.data = c->result[i].at;
        if (worst) {
            const double d = b->want[i].data ? distance(&v, &b->want[i]) : 0;
            if (!(d <= *worst)) *worst = d;
            continue;
        }
        sinter_tensor t = { .dtype = v.dtype, .rank = v.rank };
        memcpy(t.dim, v.dim, sizeof t.dim);
        const size_t size = sinter_tensor_size(&t);
        b->want[i] = v;
        b->want[i].data = arena_alloc(&b->a, size + 1, 64);
        if (!b->want[i].data) s = FAIL_MEMORY(b->e, "a trial's outputs");
        else memcpy(b->want[i].data, v.data, size);
    }
    context_destroy(c);
    return s;
}

static sinter_status build_and_run(budget *b, uint32_t allow, build_lowering *lowering, double *worst)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    engine *g = NULL;
    b->o.allow = allow;
    b->builds++;
    TRY(build_once(b->e, b->m, &b->o, lowering, &bytes, &size));
    const device_options d = { .threads = b->o.threads };
    TRY(engine_open(b->e, bytes, size, backend_find("cpu"), &d, &g, b->e->error));
    const sinter_status s = run(b, g, worst);
    engine_release(g);
    return s;
}

/* ---- the search ---- */

/* The distance with only [first, end) of the ops lowered, and those that `kept` marks left alone. */
static sinter_status spend(budget *b, uint32_t allow, const uint8_t *kept, uint32_t count, uint32_t first, uint32_t end,
                           double *out)
{
    build_lowering trial = { .is_kept = ARENA_NEW(&b->a, uint8_t, count + 1), .count = count };
    if (!trial.is_kept) return FAIL_MEMORY(b->e, "a trial");
    for (uint32_t i = 0; i < count; i++) trial.is_kept[i] = i < first || i >= end || kept[i];
    *out = 0;
    return build_and_run(b, allow, &trial, out);
}

typedef struct range {
    uint32_t first, end;
    double spent;
} range;

static int by_spent(const void *x, const void *y)
{
    const range *a = x, *b = y;
    return a->spent < b->spent ? -1 : a->spent > b->spent;
}

static void keep(uint8_t *kept, const range *r)
{
    memset(kept + r->first, 1, r->end - r->first);
}

static sinter_status search(budget *b, uint32_t allow, build_lowering *l)
{
    range part[PARTS * PARTS];
    uint32_t parts = 0;
    for (uint32_t i = 0; i < PARTS; i++) {
        range whole = { .first = l->count * i / PARTS, .end = l->count * (i + 1) / PARTS };
        if (whole.first == whole.end) continue;
        TRY(spend(b, allow, l->is_kept, l->count, whole.first, whole.end, &whole.spent));
        if (whole.spent <= b->limit) {
            part[parts++] = whole;
            continue;
        }
        const uint32_t size = whole.end - whole.first;
        for (uint32_t k = 0; k < PARTS; k++) {
            range piece = { .first = whole.first + size * k / PARTS, .end = whole.first + size * (k + 1) / PARTS };
            if (piece.first == piece.end) continue;
            TRY(spend(b, allow, l->is_kept, l->count, piece.first, piece.end, &piece.spent));
            if (piece.spent > b->limit) keep(l->is_kept, &piece);
            else part[parts++] = piece;
        }
    }
    qsort(part, parts, sizeof *part, by_spent);
    for (;;) {
        double spent = 0;
        TRY(spend(b, allow, l->is_kept, l->count, 0, l->count, &spent));
        if (spent <= b->limit || !parts) return SINTER_OK;
        /* The dearest quarter of what is left goes. */
        const uint32_t left = parts * 3 / 4;
        while (parts > left) keep(l->is_kept, &part[--parts]);
    }
}

/* ---- the batch ---- */

/* Images of a batch differ as images do: a few say as much as many, and cost less. Where all inputs begin with the same
 * large dim it is taken for a batch; should that be wrong, the model refuses it. */
static sinter_status shrink_batch(budget *b)
{
    const sinter_profile *p = b->o.profile;
    const int64_t batch = b->o.profile_count && p->count && p->shape[0].rank ? p->shape[0].opt[0] : 0;
    bool is_batch = batch > BATCH_MAX;
    for (uint32_t i = 0; is_batch && i < p->count; i++) is_batch = p->shape[i].rank > 1 && p->shape[i].opt[0] == batch;
    if (!is_batch) return SINTER_OK;
    sinter_profile *small = ARENA_NEW(&b->a, sinter_profile, 1);
    sinter_shape_range *input = ARENA_NEW(&b->a, sinter_shape_range, p->count);
    if (!small || !input) return FAIL_MEMORY(b->e, "a trial's shapes");
    memcpy(input, p->shape, p->count * sizeof *input);
    for (uint32_t i = 0; i < p->count; i++) input[i].min[0] = input[i].opt[0] = input[i].max[0] = BATCH_MAX;
    *small = (sinter_profile){ .shape = input, .count = p->count };
    b->profile = p;
    b->o.profile = small;
    b->o.profile_count = 1;
    return SINTER_OK;
}

/* The model as it is, at the small batch or at the caller's. */
static sinter_status run_wanted(budget *b)
{
    if (!b->profile) return build_and_run(b, 0, NULL, NULL);
    sinter_error quiet = { 0 }, *const error = b->e->error;
    b->e->error = &quiet;
    const sinter_status s = build_and_run(b, 0, NULL, NULL);
    b->e->error = error;
    if (s == SINTER_OK) return SINTER_OK;
    b->o.profile = b->profile;
    memset(b->want, 0, sizeof b->want);
    return build_and_run(b, 0, NULL, NULL);
}

/* ---- the verdict ---- */

static sinter_status key_of(budget *b, uint32_t allow, text *key)
{
    sha256 h;
    uint8_t digest[32];
    sha256_init(&h);
    sha256_update(&h, b->m->bytes, b->m->size);
    sha256_final(&h, digest);
    text_init(key, b->e);
    text_printf(key, "lowered to %s whole | ", allow & SINTER_ALLOW_FP16 ? "f16" : "bf16");
    for (uint32_t i = 0; i < 16; i++) text_printf(key, "%02x", digest[i]);
    for (uint32_t i = 0; i < b->o.profile_count; i++)
        for (uint32_t k = 0; k < b->o.profile[i].count; k++)
            for (uint32_t d = 0; d < b->o.profile[i].shape[k].rank; d++)
                text_printf(key, " %lld", (long long)b->o.profile[i].shape[k].opt[d]);
    return key->failed ? FAIL_MEMORY(b->e, "a key") : SINTER_OK;
}

static sinter_status judge(budget *b, uint32_t allow, build_lowering *l)
{
    TRY(run_wanted(b));
    double spent = 0;
    TRY(build_and_run(b, allow, l, &spent));
    env_log(b->e, LOG_OPT, "lowered whole: outputs move by %.2g of their size, the budget is %.2g", spent, b->limit);
    if (spent <= b->limit || !l->count) return SINTER_OK;
    l->is_kept = mem_zalloc(b->e, l->count, 1);
    if (!l->is_kept) return FAIL_MEMORY(b->e, "lowering types");
    TRY(search(b, allow, l));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < l->count; i++) kept += l->is_kept[i];
    env_log(b->e, LOG_OPT, "%u of %u ops stay in f32, found in %u trials", kept, l->count, b->builds);
    return SINTER_OK;
}

static sinter_status look_up(budget *b, const char *path, uint32_t allow, build_lowering *l)
{
    timing_cache *cache = NULL;
    text key;
    double found = 0;
    TRY(timing_cache_create(b->e, &cache));
    sinter_status s = timing_cache_read(cache, path);
    if (s == SINTER_OK) s = key_of(b, allow, &key);
    if (s == SINTER_OK && !timing_cache_find(cache, key.at, &found)) {
        s = judge(b, allow, l);
        if (s == SINTER_OK && !l->is_kept) s = timing_cache_add(cache, key.at, 1);
        if (s == SINTER_OK && !l->is_kept) s = timing_cache_write(cache, path);
    }
    if (key.at) text_deinit(&key);
    timing_cache_destroy(cache);
    return s;
}

sinter_status build_budget(env *e, const build_model *m, const sinter_build_options *o, build_lowering *lowering)
{
    budget b = { .e = e, .m = m, .o = *o, .limit = o->allow & SINTER_ALLOW_FP16 ? budget_fp16 : budget_bf16 };
    const uint32_t allow = o->allow & (SINTER_ALLOW_FP16 | SINTER_ALLOW_BF16);
    b.o.device = SINTER_DEVICE_CPU;
    b.o.device_name = NULL;
    b.o.tune = SINTER_TUNE_OFF;
    b.o.timing_cache = NULL;
    b.o.stage = NULL;
    b.o.progress = NULL;
    b.o.report = NULL;
    arena_init(&b.a, e);
    sinter_status s = shrink_batch(&b);
    if (s == SINTER_OK)
        s = o->timing_cache ? look_up(&b, o->timing_cache, allow, lowering) : judge(&b, allow, lowering);
    arena_deinit(&b.a);
    return NOTE(e, s, "looking at what narrower types do to the outputs");
}
