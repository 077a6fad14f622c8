/* SPDX-License-Identifier: Apache-2.0 */
/* quantize_weights.c - which weights of a model become numbers of 4 bits, and the data that their products read.
 *
 * Where the method looks at data, the model runs on the samples with what products read as outputs, as a calibration
 * does. A sample of its rows is kept: the same rows for the same samples. */
#include "builder/quantize.h"

#include "builder/trial.h"
#include "tune/tune.h"

#include <string.h>

enum { ROWS_MAX = 128 };
static const size_t taps_size_max = (size_t)1 << 29;

typedef struct kept {
    float *at; /* [ROWS_MAX, terms]; NULL: nothing was seen yet */
    int64_t terms, count;
    uint64_t seen;
} kept;

typedef struct looking {
    env *e;
    arena a;
    trial t;
    tune_taps taps;
    const tune_product *product;
    const bool *is_taken;
    uint32_t count;
    kept *of;         /* by product; of those that read one tensor the first has the rows */
    uint32_t *by_tap; /* the product whose rows a tap gives; UINT32_MAX: none */
    uint64_t random;
} looking;

/* ---- rows ---- */

static uint64_t next_random(looking *l)
{
    l->random += 0x9e3779b97f4a7c15u;
    uint64_t x = l->random;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Each row that was seen is among the kept ones with the same probability. */
static sinter_status rows_take(looking *l, kept *k, const view *v)
{
    const int64_t terms = v->rank ? v->dim[v->rank - 1] : 0, rows = terms ? view_count(v) / terms : 0;
    if (!rows || (k->at && k->terms != terms)) return SINTER_OK;
    if (!k->at) k->at = ARENA_NEW(&l->a, float, size_mul(ROWS_MAX, (size_t)terms));
    if (!k->at) return FAIL_MEMORY(l->e, "rows of data");
    k->terms = terms;
    for (int64_t i = 0; i < rows; i++) {
        const uint64_t place = k->seen++ < ROWS_MAX ? k->seen - 1 : next_random(l) % k->seen;
        if (place >= ROWS_MAX) continue;
        memcpy(k->at + place * (uint64_t)terms, (const float *)v->data + i * terms, (size_t)terms * sizeof *k->at);
        if ((int64_t)place >= k->count) k->count = (int64_t)place + 1;
    }
    return SINTER_OK;
}

static sinter_status taps_match(looking *l)
{
    l->by_tap = ARENA_NEW(&l->a, uint32_t, l->taps.count);
    if (!l->by_tap) return FAIL_MEMORY(l->e, "rows of data");
    for (uint32_t i = 0; i < l->taps.count; i++) {
        l->by_tap[i] = UINT32_MAX;
        for (uint32_t k = 0; k < l->count && l->by_tap[i] == UINT32_MAX; k++)
            if (l->is_taken[k] && !strcmp(l->product[k].data, l->taps.name[i])) l->by_tap[i] = k;
    }
    return SINTER_OK;
}

static sinter_status see(void *user, uint32_t sample, uint32_t output, uint32_t comes_last, bool is_compared,
                         const view *v)
{
    looking *l = user;
    (void)sample, (void)output, (void)is_compared;
    if (!l->by_tap) TRY(taps_match(l));
    if (comes_last >= l->taps.end - l->taps.first) return SINTER_OK;
    const uint32_t product = l->by_tap[l->taps.end - 1 - comes_last];
    return product == UINT32_MAX ? SINTER_OK : rows_take(l, &l->of[product], v);
}

/* Runs the model; tensors that do not fit into memory together are looked at in turn. */
static sinter_status rows_find(looking *l, const build_model *m, const sinter_build_options *o)
{
    build_lowering lowering = { .taps = &l->taps, .moved = -1 };
    l->taps = (tune_taps){ .a = &l->a, .size_max = taps_size_max };
    l->of = ARENA_NEW(&l->a, kept, l->count);
    if (!l->of) return FAIL_MEMORY(l->e, "rows of data");
    sinter_status s = trial_init(&l->t, l->e, m, o, UINT32_MAX);
    l->t.phase = "calibrate";
    while (s == SINTER_OK && (!l->taps.count || l->taps.end < l->taps.count)) {
        l->taps.first = l->taps.end;
        s = trial_run(&l->t, 0, &lowering, see, l);
        if (l->taps.end == l->taps.first) break;
    }
    trial_deinit(&l->t);
    return NOTE(l->e, s, "looking at the data of the products");
}

/* Of products that read the same tensor, all get the rows of the first. */
static sinter_status rows_spread(looking *l, const tune_rows **out)
{
    tune_rows *rows = ARENA_NEW(&l->a, tune_rows, l->count);
    if (!rows) return FAIL_MEMORY(l->e, "rows of data");
    for (uint32_t i = 0; i < l->count; i++) {
        for (uint32_t k = 0; k <= i && !rows[i].count && l->is_taken[i]; k++)
            if (l->of[k].at && !strcmp(l->product[k].data, l->product[i].data))
                rows[i] = (tune_rows){ l->of[k].at, l->of[k].count, l->of[k].terms };
        if (l->is_taken[i] && !rows[i].count)
            env_log(l->e, LOG_OPT, "product '%s' reads '%s', of which no data was seen: rounded to nearest",
                    l->product[i].node, l->product[i].data);
    }
    *out = rows;
    return SINTER_OK;
}

/* ---- the model ---- */

static sinter_status choose(env *e, ir_graph *g, const sinter_quantize_options *o, const tune_product *p,
                            uint32_t count, bool *is_taken)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < count; i++) {
        const bool is_chosen = !o->chosen || o->chosen(o->user, p[i].op, p[i].node);
        const char *why = is_chosen ? tune_weights_refusal(g, ir_node_at(g, p[i].id)) : "it was not chosen";
        is_taken[i] = !why;
        taken += !why;
        if (o->told) o->told(o->user, p[i].op, p[i].node, why);
    }
    if (taken) return SINTER_OK;
    return FAIL(e, INVALID_ARG, "of %u products with constant weights none is quantised: %s", count,
                count ? "none was chosen that is a product of matrices" : "there are none in f32");
}

sinter_status quantize_weights(void *user, env *e, ir_graph *g)
{
    const quantize_weights_job *job = user;
    const sinter_quantize_options *o = job->o;
    const bool has_data = o->build && o->build->sample_count;
    const sinter_weight_method method = o->weight_method != SINTER_WEIGHT_AUTO ? o->weight_method
                                        : has_data                             ? SINTER_WEIGHT_AWQ_CLIP
                                                                               : SINTER_WEIGHT_RTN;
    tune_weights how = { .block = o->block_size,
                         .is_clipped = method == SINTER_WEIGHT_AWQ_CLIP || method == SINTER_WEIGHT_AWQ_FULL,
                         .is_scaled = method == SINTER_WEIGHT_AWQ_LITE || method == SINTER_WEIGHT_AWQ_FULL };
    looking l = { .e = e };
    tune_product *product = NULL;
    arena_init(&l.a, e);
    sinter_status s = tune_products(e, &l.a, g, &product, &how.count);
    bool *is_taken = s == SINTER_OK ? ARENA_NEW(&l.a, bool, how.count) : NULL;
    if (s == SINTER_OK && !is_taken) s = FAIL_MEMORY(e, "products");
    if (s == SINTER_OK) s = choose(e, g, o, product, how.count, is_taken);
    l.product = product;
    how.is_taken = l.is_taken = is_taken;
    l.count = how.count;
    if (s == SINTER_OK && method != SINTER_WEIGHT_RTN) {
        s = rows_find(&l, job->model, o->build);
        if (s == SINTER_OK) s = rows_spread(&l, &how.rows);
    }
    if (s == SINTER_OK) s = tune_quantize_weights(e, g, &how);
    if (s == SINTER_OK) s = ir_sweep(g);
    arena_deinit(&l.a);
    return NOTE(e, s, "quantising the weights");
}
