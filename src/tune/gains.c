/* SPDX-License-Identifier: Apache-2.0 */
/* gains.c - where a narrower type pays on the device: permission is not an order.
 *
 * Products, convolutions and attention decide. Each distinct one is priced in both types by itself (price.c): first by
 * the cost model, and where that is not sure by the clock, as far as the tune mode measures at all. Times within
 * `noise` of each other are even, and so is a loss that is smaller than the casts around attention would be. Everything
 * else follows: ops that hang together by values, and products that are
 * even, are lowered where faster products stand around them, and no fewer of those than of slower ones. So no cast is
 * left that only serves itself. Where there are no such products around (products of integers, say, have another type
 * anyhow) the cost model of the norms, softmaxes and pools among them decides; what only moves numbers goes with the
 * rest of the graph. */
#include "tune/gains.h"

#include <string.h>

/* The model is sure that a type gains from `sure` times on, and that it does not from worth_comparing times on, as far
 * as the clock agreed with it before (model_trust). On a device a product in a narrower float may take `beside` times
 * as long by itself: what lies between it and the ops around is half as large, and casts between f32 products and
 * narrow ones would cost more. */
static const double noise = 1.03, sure = 1.5, worth_comparing = 3, beside = 1.3;

typedef enum verdict { FOLLOWS, GAINS, LOSES } verdict;

typedef struct finding {
    op_price narrow, wide; /* wide: in the type that it would have else */
    verdict is;
} finding;

typedef struct op_view {
    verdict is;
    double saved_ns; /* by the narrower type; 0 of what was not asked about */
} op_view;

/* How far the cost model was from the clock: its ratio of the two times over the measured ratio, at most (over) and at
 * least (under). Before a first product was measured it is sure of nothing: processors differ. Dot products of bf16 run
 * at twice the rate of f32 on one and at half on another. */
typedef struct model_trust {
    bool is_checked;
    double over, under;
} model_trust;

typedef struct finder {
    env *e;
    arena *a;
    pricing p;
    sinter_dtype type, otherwise; /* otherwise: NONE, or a narrower float than f32 that is permitted too */
    timing_cache *known;          /* key -> index into `of` */
    VEC(finding) of;
    model_trust trust;
    double costliest;
    const char *why;
} finder;

static bool is_anchor(op_id op)
{
    return op_has(op, CONTRACTION);
}

/* Ops with a kernel of their own that reads and writes whole tensors. */
static bool is_row_op(op_id op)
{
    return op_has(op, ROWWISE | REDUCTION | IMAGE);
}

static sinter_status price_both(finder *f, ir_node_id id, bool is_timed, finding *x)
{
    TRY(price_op(&f->p, id, SINTER_DTYPE_F32, is_timed, &x->wide));
    if (f->otherwise != SINTER_DTYPE_NONE) {
        op_price other;
        TRY(price_op(&f->p, id, f->otherwise, is_timed, &other));
        if (!other.is_converted && other.ns < x->wide.ns) x->wide = other;
    }
    return price_op(&f->p, id, f->type, is_timed, &x->narrow);
}

static double ratio_of(const finding *x)
{
    return x->wide.ns / (x->narrow.ns + 1e-9);
}

/* Is the model sure about this product, were it as far from the clock as it was before? */
static bool is_sure(const model_trust *t, const finding *x)
{
    const double times = ratio_of(x);
    if (x->narrow.is_converted) return true;
    return t->is_checked && (times >= sure * t->over || times * worth_comparing <= t->under);
}

static sinter_status measure_both(finder *f, ir_node_id id, finding *x)
{
    const double by_model = ratio_of(x);
    model_trust *t = &f->trust;
    TRY(price_both(f, id, true, x));
    if (!x->narrow.is_measured || !x->wide.is_measured) return SINTER_OK;
    const double off = by_model / ratio_of(x);
    if (!t->is_checked) *t = (model_trust){ .is_checked = true, .over = 1, .under = 1 };
    if (off > t->over) t->over = off;
    if (off < t->under) t->under = off;
    return SINTER_OK;
}

/* The time of the casts of all inputs and results of an op, as far as no neighbouring kernel can do them. */
static sinter_status price_casts(finder *f, ir_node_id id, double *sum)
{
    const ir_node n = *ir_node_at(f->p.g, id);
    *sum = 0;
    if (f->type == SINTER_DTYPE_I8 || op_has(n.op, FUSES_AFTER)) return SINTER_OK;
    for (uint32_t i = 0; i < n.count_in + n.count_out; i++) {
        const ir_value_id v = i < n.count_in ? n.in[i] : n.out[i - n.count_in];
        double ns = 0;
        if (!v || ir_value_at(f->p.g, v)->dtype != SINTER_DTYPE_F32 || ir_is_const(f->p.g, v)) continue;
        if (i < n.count_in && narrow_stays(&n, i)) continue;
        TRY(price_cast(&f->p, v, f->type, &ns));
        *sum += ns;
    }
    return SINTER_OK;
}

static sinter_status judge(finder *f, ir_node_id id, finding *x)
{
    double casts = 0;
    TRY(price_both(f, id, false, x));
    if (!is_anchor(ir_node_at(f->p.g, id)->op)) return SINTER_OK;
    const double even = f->p.o->backend->copy && f->type != SINTER_DTYPE_I8 ? beside : noise;
    if (!is_sure(&f->trust, x) && f->p.o->mode != TUNE_OFF) TRY(measure_both(f, id, x));
    TRY(price_casts(f, id, &casts));
    x->is = x->narrow.is_converted                     ? LOSES
            : x->narrow.ns * noise <= x->wide.ns       ? GAINS
            : x->narrow.ns > x->wide.ns * even + casts ? LOSES
                                                       : FOLLOWS;
    return SINTER_OK;
}

static void describe(const ir_graph *g, ir_node_id id, text *t)
{
    const ir_node *n = ir_node_at(g, id);
    text_printf(t, "%s ", op_at(n->op)->name);
    for (uint32_t i = 0; i < n->count_in && i < 2; i++) {
        const ir_value *x = ir_value_at(g, n->in[i]);
        text_printf(t, "%s", i ? " by " : "");
        for (uint32_t k = 0; k < x->rank; k++)
            text_printf(t, "%s%lld", k ? "x" : "", (long long)dim_range_of(g->dims, x->dim[k]).opt);
    }
}

static const char *name_of(sinter_dtype t)
{
    return t == SINTER_DTYPE_I8 ? "8 bits" : sinter_dtype_name(t);
}

/* Logs the finding about a product. Keeps the most expensive product that does not gain as the example for the report.
 */
static sinter_status report(finder *f, ir_node_id id, const finding *x)
{
    static const char *const words[] = { "as fast", "faster", "not faster" };
    text t;
    text_init(&t, f->e);
    describe(f->p.g, id, &t);
    text_printf(&t, ": %s %.3g us%s, %s %.3g us%s", name_of(f->type), x->narrow.ns / 1e3,
                x->narrow.is_converted && f->type != SINTER_DTYPE_I8 ? " with conversions" : "",
                f->otherwise == SINTER_DTYPE_NONE ? "f32" : "floats", x->wide.ns / 1e3,
                x->wide.is_measured ? "" : " by the cost model");
    env_log(f->e, LOG_SELECT, "lowering: %s, %s", words[x->is], t.failed ? "" : t.at);
    const bool is_example =
        x->is != GAINS && is_anchor(ir_node_at(f->p.g, id)->op) && x->wide.ns > f->costliest && !t.failed;
    if (is_example) {
        f->costliest = x->wide.ns;
        f->why = arena_text(f->a, t.at, t.length);
    }
    text_deinit(&t);
    return is_example && !f->why ? FAIL_MEMORY(f->e, "prices") : SINTER_OK;
}

static sinter_status find(finder *f, ir_node_id id, op_view *out)
{
    text key;
    double index = 0;
    text_init(&key, f->e);
    sinter_status s = price_key(&f->p, id, &key);
    if (s == SINTER_OK && !timing_cache_find(f->known, key.at, &index)) {
        finding *x = VEC_PUSH(f->a, &f->of);
        s = x ? judge(f, id, x) : FAIL_MEMORY(f->e, "prices");
        index = f->of.count - 1;
        if (s == SINTER_OK) s = report(f, id, x);
        if (s == SINTER_OK) s = timing_cache_add(f->known, key.at, index);
    }
    text_deinit(&key);
    TRY(s);
    const finding *x = &f->of.at[(uint32_t)index];
    const bool is_even = x->wide.ns <= x->narrow.ns * noise && x->narrow.ns <= x->wide.ns * noise;
    *out = (op_view){ .is = x->is, .saved_ns = is_even ? 0 : x->wide.ns - x->narrow.ns };
    return SINTER_OK;
}

static sinter_status find_all(finder *f, const ir_node_id *list, uint32_t count, op_view *of)
{
    arena scratch;
    arena_init(&scratch, f->e);
    f->p.scratch = &scratch;
    sinter_status s = timing_cache_create(f->e, &f->known);
    for (uint32_t i = 0; i < count && s == SINTER_OK; i++) {
        const op_id op = ir_node_at(f->p.g, list[i])->op;
        if (is_anchor(op) || is_row_op(op)) s = find(f, list[i], &of[i]);
    }
    timing_cache_destroy(f->known);
    arena_deinit(&scratch);
    return s;
}

/* ---- what follows ---- */

static uint32_t root_of(uint32_t *up, uint32_t i)
{
    while (up[i] != i) i = up[i] = up[up[i]];
    return i;
}

/* Ops that follow, joined along values. */
typedef struct follower_set {
    int64_t balance; /* edges to products that gain, minus edges to products that lose */
    bool gains, loses;
    double saved_ns;
} follower_set;

typedef struct following {
    const ir_graph *g;
    const op_view *of;
    uint32_t *index, *up; /* 1 + index by node; union-find by index */
    follower_set *set;    /* by root */
} following;

static void join(following *x, uint32_t i, uint32_t j)
{
    if (x->of[i].is == FOLLOWS && x->of[j].is == FOLLOWS) x->up[root_of(x->up, i)] = root_of(x->up, j);
}

static void look(following *x, uint32_t i, uint32_t j)
{
    const bool i_follows = x->of[i].is == FOLLOWS;
    if (i_follows == (x->of[j].is == FOLLOWS)) return;
    follower_set *set = &x->set[root_of(x->up, i_follows ? i : j)];
    const bool gains = x->of[i_follows ? j : i].is == GAINS;
    set->balance += gains ? 1 : -1;
    set->gains = set->gains || gains;
    set->loses = set->loses || !gains;
}

static void each_edge(following *x, const ir_node_id *list, uint32_t count,
                      void (*visit)(following *x, uint32_t i, uint32_t j))
{
    for (uint32_t i = 0; i < count; i++) {
        const ir_node *n = ir_node_at(x->g, list[i]);
        for (uint32_t k = 0; k < n->count_in; k++) {
            const uint32_t from = n->in[k] ? x->index[ir_value_at(x->g, n->in[k])->producer] : 0;
            if (from) visit(x, i, from - 1);
        }
    }
}

/* Builds the sets of connected ops, then decides each set by the products around it. */
static sinter_status follow(finder *f, const ir_node_id *list, uint32_t count, const op_view *of, uint8_t *is_slow)
{
    following x = { .g = f->p.g,
                    .of = of,
                    .index = ARENA_NEW(f->a, uint32_t, f->p.g->node.count),
                    .up = ARENA_NEW(f->a, uint32_t, count),
                    .set = ARENA_NEW(f->a, follower_set, count) };
    if (!x.index || !x.up || !x.set) return FAIL_MEMORY(f->e, "prices");
    for (uint32_t i = 0; i < count; i++) {
        x.index[list[i]] = i + 1;
        x.up[i] = i;
    }
    each_edge(&x, list, count, join);
    each_edge(&x, list, count, look);
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        any = any || of[i].is == GAINS;
        if (of[i].is == FOLLOWS) x.set[root_of(x.up, i)].saved_ns += of[i].saved_ns;
    }
    for (uint32_t i = 0; i < count; i++) {
        const follower_set *set = &x.set[root_of(x.up, i)];
        const bool is_worth_it =
            set->gains ? set->balance >= 0 : !set->loses && (set->saved_ns > 0 || (any && set->saved_ns >= 0));
        is_slow[i] = of[i].is == LOSES || (of[i].is == FOLLOWS && !is_worth_it);
    }
    return SINTER_OK;
}

static void count_up(tune_gains *out, const op_view *of, const char *why)
{
    for (uint32_t i = 0; i < out->count; i++) {
        out->lowered += !out->is_slow[i];
        out->slower += out->is_slow[i] && of[i].is == LOSES;
    }
    out->why = why;
}

sinter_status tune_narrow_gains(env *e, arena *a, ir_graph *g, sinter_dtype type, const tune_options *o,
                                tune_gains *out)
{
    finder f = { .e = e, .a = a, .p = { .e = e, .g = g, .o = o }, .type = type, .otherwise = SINTER_DTYPE_NONE };
    ir_node_id *list;
    *out = (tune_gains){ 0 };
    TRY(narrow_candidates(e, a, g, type, &list, &out->count));
    op_view *of = ARENA_NEW(a, op_view, out->count);
    out->is_slow = ARENA_NEW(a, uint8_t, out->count);
    if (!of || !out->is_slow) return FAIL_MEMORY(e, "prices");
    TRY(find_all(&f, list, out->count, of));
    TRY(follow(&f, list, out->count, of, out->is_slow));
    count_up(out, of, f.why);
    return SINTER_OK;
}

/* Does the kernel that computes v also round it? Views and pools may stand between. */
static bool is_rounded_where_made(const ir_graph *g, ir_value_id v)
{
    for (uint32_t depth = 0; depth < 8; depth++) {
        const ir_node_id id = ir_value_at(g, v)->producer;
        const ir_node *n = ir_node_at(g, id);
        const uint32_t traits = op_at(n->op)->traits;
        if (!id) return false;
        if (op_is_scalar(n->op) || traits & FUSES_AFTER) return true;
        if (!(traits & VIEW) && n->op != OP_max_pool) return false;
        v = n->in[0];
    }
    return false;
}

/* The time of rounding the data of products, where the rounding is a step of its own. */
static sinter_status price_rounding(finder *f, const ir_node_id *list, uint32_t count, const op_view *of, double *sum)
{
    arena scratch;
    arena_init(&scratch, f->e);
    f->p.scratch = &scratch;
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; i < count && s == SINTER_OK; i++) {
        double ns = 0;
        const ir_value_id data = ir_node_at(f->p.g, list[i])->in[0];
        if (of[i].is != GAINS || is_rounded_where_made(f->p.g, data)) continue;
        s = price_cast(&f->p, data, SINTER_DTYPE_I8, &ns);
        *sum += ns;
    }
    arena_deinit(&scratch);
    return s;
}

/* A product with equal times in both types follows the other products, since casts between them cost time. The rules
 * for integers apply to the whole graph. So the products that the model quantised count together with the products that
 * the build would quantise. */
sinter_status tune_quantize_gains(env *e, arena *a, ir_graph *g, sinter_dtype otherwise, const tune_options *o,
                                  tune_gains *out)
{
    finder f = { .e = e, .a = a, .p = { .e = e, .g = g, .o = o }, .type = SINTER_DTYPE_I8, .otherwise = otherwise };
    ir_node_id *list;
    uint32_t all;
    bool any = false;
    double saved_ns = 0, rounding_ns = 0;
    *out = (tune_gains){ 0 };
    TRY(quantize_candidates(e, a, g, &list, &out->count, &all));
    op_view *of = ARENA_NEW(a, op_view, all);
    out->is_slow = ARENA_NEW(a, uint8_t, out->count);
    if (!of || !out->is_slow) return FAIL_MEMORY(e, "prices");
    TRY(find_all(&f, list, all, of));
    TRY(price_rounding(&f, list, out->count, of, &rounding_ns));
    for (uint32_t i = 0; i < out->count; i++) any = any || of[i].is == GAINS;
    for (uint32_t i = 0; i < all; i++) saved_ns += i >= out->count || of[i].is == GAINS ? of[i].saved_ns : 0;
    out->integers_pay = saved_ns > rounding_ns;
    for (uint32_t i = 0; i < out->count; i++) out->is_slow[i] = of[i].is == LOSES || !any || !out->integers_pay;
    /* Products that the user requires in 8 bits are not priced. */
    for (uint32_t i = 0; i < out->count; i++) {
        if (!ir_wants_codes(g, ir_node_at(g, list[i]))) continue;
        out->is_slow[i] = 0;
        out->integers_pay = true;
    }
    count_up(out, of, f.why);
    return SINTER_OK;
}
