/* SPDX-License-Identifier: Apache-2.0 */
/* graph_judge.c - runs a model node by node, each as a model of its own on the reference kernels. */
#include "graph_judge.h"

#include "base/hash.h"
#include "graph_ops.h"
#include "plugin_set.h"
#include "test.h"

#include <math.h>

/* ---- engines of single nodes ---- */

typedef struct kept {
    uint64_t key;
    size_t size;
    sinter_engine *engine;
    sinter_context *context;
} kept;
enum { KEPT = 64 };
static kept cache[KEPT];
static uint32_t cache_next;

static void kept_free(kept *k)
{
    sinter_context_destroy(k->context);
    sinter_engine_release(k->engine);
    *k = (kept){ 0 };
}

void judge_close(void)
{
    for (uint32_t i = 0; i < KEPT; i++) kept_free(&cache[i]);
}

static kept *engine_of(bytes model, sinter_error *error)
{
    const uint64_t key = hash64(model.at, model.size, 1);
    for (uint32_t i = 0; i < KEPT; i++)
        if (cache[i].engine && cache[i].key == key && cache[i].size == model.size) return &cache[i];
    kept *k = &cache[cache_next++ % KEPT];
    kept_free(k);
    const sinter_limits limits = { .memory_max = (uint64_t)1 << 25 }; /* an empty axis may give many results */
    sinter_env_options few = SINTER_ENV_OPTIONS;
    few.limits = &limits;
    few.plugins = plugin_set_shared();
    sinter_build_options o = SINTER_BUILD_OPTIONS;
    o.env = &few;
    o.device = "reference";
    o.tune = SINTER_TUNE_OFF;
    o.threads = 1;
    sinter_buffer file = { 0 };
    if (sinter_build_memory(model.at, model.size, &o, &file, error) != SINTER_OK) return NULL;
    sinter_engine_options eo = SINTER_ENGINE_OPTIONS;
    eo.env = &few;
    eo.threads = 1;
    sinter_context_options co = SINTER_CONTEXT_OPTIONS;
    co.lazy = 1;
    sinter_status s = sinter_engine_load_memory(file.data, file.size, &eo, &k->engine, error);
    sinter_buffer_free(&file);
    if (s == SINTER_OK) s = sinter_context_create(k->engine, &co, &k->context, error);
    if (s != SINTER_OK) kept_free(k);
    k->key = key;
    k->size = model.size;
    return s == SINTER_OK ? k : NULL;
}

static bool same_shape(const gtensor *a, const gtensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && !memcmp(a->dim, b->dim, a->rank * sizeof *a->dim);
}

/* Lane 0 for all lanes. */
static void calm(gvalue *v, uint32_t k)
{
    for (uint32_t lane = 1; lane < G_LANES; lane++) v->at[k][lane] = v->at[k][0];
    v->is_chaotic[k] = true;
}

static void fill_lanes(gmodel *m, gvalue *v, uint32_t k, gtensor *t)
{
    const uint32_t salt = (uint32_t)(v - m->value.at);
    v->is_chaotic[k] = false;
    v->at[k][0] = t;
    for (uint32_t lane = 1; lane < G_LANES; lane++) v->at[k][lane] = judge_moved(m, t, NULL, lane, salt, false);
}

void judge_leaf(gmodel *m, uint32_t value)
{
    for (uint32_t k = 0; k < m->envs; k++)
        fill_lanes(m, &m->value.at[value], k, gvalue_leaf(m, &m->value.at[value], k));
}

static void judge_leaves(gmodel *m, uint32_t k)
{
    for (uint32_t i = 0; i < m->value.count; i++) {
        gvalue *v = &m->value.at[i];
        if (v->kind != G_INPUT && v->kind != G_CONST) continue;
        fill_lanes(m, v, k, v->held ? v->held[0] : gvalue_leaf(m, v, k));
        for (uint32_t lane = 1; lane < G_LANES && v->held; lane++) v->at[k][lane] = v->held[lane];
    }
}

static bool refuse(gmodel *m, const gnode *n, const char *why)
{
    m->is_unfit = false;
    (void)snprintf(m->error, sizeof m->error, "%.47s: %.900s", n->op, why);
    return false;
}

/* ---- one node ---- */

enum { WORK_MAX = 1 << 23 };

static bool run_engine(kept *e, const gnode *n, const gtensor *const *in, sinter_error *error)
{
    for (uint32_t i = 0; i < n->count_in; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "i%u", i);
        if (n->in[i] == G_NONE || gop_is_param(n->op, i)) continue;
        sinter_tensor x = { .dtype = in[i]->dtype, .rank = in[i]->rank, .data = in[i]->data };
        memcpy(x.dim, in[i]->dim, sizeof x.dim);
        if (sinter_context_set_input(e->context, name, &x, error) != SINTER_OK) return false;
    }
    return sinter_context_run(e->context, error) == SINTER_OK;
}

static gtensor *engine_result(gmodel *m, kept *e, uint32_t i, sinter_error *error)
{
    char name[16];
    sinter_tensor y;
    (void)snprintf(name, sizeof name, "o%u", i);
    if (sinter_context_output(e->context, name, &y, error) != SINTER_OK) return NULL;
    gtensor *t = gtensor_new(m->a, y.dtype, y.rank, y.dim);
    if (t->size) memcpy(t->data, y.data, t->size);
    return t;
}

static bool run_lane(gmodel *m, const gnode *n, uint32_t k, uint32_t lane, kept *e, sinter_error *error)
{
    const gtensor *in[G_IN] = { NULL };
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (n->in[i] == G_NONE) continue;
        in[i] = m->value.at[n->in[i]].at[k][lane];
        if (lane && strstr(n->op, "Normalization")) in[i] = judge_moved(m, in[i], NULL, lane, n->in[i], true);
    }
    if (!run_engine(e, n, in, error)) return false;
    for (uint32_t i = 0; i < n->count_out; i++) {
        if (n->out[i] == G_NONE) continue;
        gtensor *t = engine_result(m, e, i, error);
        if (!t) return false;
        gvalue *v = &m->value.at[n->out[i]];
        v->dtype = t->dtype;
        v->rank = t->rank;
        if (!lane) {
            v->at[k][0] = t;
            continue;
        }
        v->at[k][lane] = judge_lane(m, n, i, k, lane, t);
    }
    return true;
}

/* Does a result depend on the order of a product's factors? */
static bool depends_on_order(gmodel *m, const gnode *n, uint32_t k, kept *e, sinter_error *error)
{
    const gtensor *in[G_IN] = { NULL };
    if (strcmp(n->op, "ReduceProd") != 0 || !dtype_is_float(m->value.at[n->in[0]].dtype)) return false;
    gtensor *out[2] = { NULL, NULL };
    for (uint32_t i = 0; i < 2; i++) {
        in[0] = judge_factors(m, m->value.at[n->in[0]].at[k][0], i == 0);
        if (n->count_in > 1 && n->in[1] != G_NONE) in[1] = m->value.at[n->in[1]].at[k][0];
        out[i] = run_engine(e, n, in, error) ? engine_result(m, e, 0, error) : NULL;
    }
    return out[0] && out[1] && judge_is_open_product(out[0], out[1]);
}

/* Do all lanes agree in what decides the way: shapes, and the data of parameters? */
static bool is_settled(const gmodel *m, const gnode *n, uint32_t k)
{
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (n->in[i] == G_NONE) continue;
        const gvalue *v = &m->value.at[n->in[i]];
        if (v->is_chaotic[k]) return false;
        for (uint32_t lane = 1; lane < G_LANES; lane++) {
            const gtensor *a = v->at[k][0], *b = v->at[k][lane];
            if (!same_shape(a, b) || (gop_is_param(n->op, i) && memcmp(a->data, b->data, a->size))) return false;
        }
    }
    return true;
}

/* Loops in loops may take minutes to judge: such a model is not made. */
static bool is_too_much(gmodel *m, const gnode *n, uint32_t k)
{
    for (uint32_t i = 0; i < n->count_in; i++)
        if (n->in[i] != G_NONE) m->work += (uint64_t)m->value.at[n->in[i]].at[k][0]->count;
    m->work += 256;
    if (m->work <= WORK_MAX) return false;
    (void)refuse(m, n, "too much to judge");
    return m->is_unfit = true;
}

/* Is it the operator of this name, in whatever domain? */
static bool is_named(const char *op, const char *name)
{
    const char *dot = strrchr(op, '.');
    return !strcmp(dot ? dot + 1 : op, name);
}

/* A divisor that cancels may be 0 exactly, and the result NaN or infinite. */
static bool may_divide_by_zero(const gmodel *m, const gnode *n, uint32_t k)
{
    const bool is_division = !strcmp(n->op, "Div") || !strcmp(n->op, "Mod"), is_inverse = !strcmp(n->op, "Reciprocal");
    return (is_division || is_inverse) && judge_may_be_zero(m->value.at[n->in[is_division]].at[k]);
}

bool judge_alone(gmodel *m, const gnode *n, uint32_t k)
{
    if (is_too_much(m, n, k)) return false;
    gmodel one;
    gmodel_init(&one, m->e, m->a);
    one.opset = m->opset;
    const uint32_t id = gmodel_node(&one, n->op, 0);
    gnode own = *n;
    own.scope = 0;
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (n->in[i] == G_NONE) continue;
        const gtensor *t = m->value.at[n->in[i]].at[k][0];
        const bool is_param = gop_is_param(n->op, i);
        own.in[i] = gmodel_value(&one, is_param ? G_CONST : G_INPUT, 0, t->dtype);
        gvalue *v = &one.value.at[own.in[i]];
        (void)snprintf(v->name, sizeof v->name, "i%u", i);
        v->rank = t->rank;
        for (uint32_t r = 0; r < t->rank; r++) v->dim[r] = (gdim){ G_NONE, t->dim[r] };
        v->is_explicit = true;
        v->data[0] = (gtensor *)(uintptr_t)t;
        if (!is_param) *(uint32_t *)VEC_PUSH(m->a, &one.scope.at[0].param) = own.in[i];
    }
    for (uint32_t i = 0; i < n->count_out; i++) {
        if (n->out[i] == G_NONE) continue;
        own.out[i] = gmodel_value(&one, G_RESULT, 0, SINTER_DTYPE_NONE);
        (void)snprintf(one.value.at[own.out[i]].name, sizeof one.value.at[0].name, "o%u", i);
        *(uint32_t *)VEC_PUSH(m->a, &one.scope.at[0].result) = own.out[i];
    }
    one.node.at[id] = own;
    bytes file = gmodel_onnx(&one);
    sinter_error error = { 0 };
    kept *e = engine_of(file, &error);
    free(file.at);
    bool settled = is_settled(m, n, k);
    bool is_fine = e != NULL;
    for (uint32_t lane = 0; lane < (settled ? G_LANES : 1) && is_fine; lane++)
        is_fine = run_lane(m, n, k, lane, e, &error);
    if (!is_fine) {
        (void)refuse(m, n, error.text);
        m->is_unfit = error.status == SINTER_NO_MEMORY;
        return false;
    }
    gtensor *const *first = n->count_in && n->in[0] != G_NONE ? m->value.at[n->in[0]].at[k] : NULL;
    settled = settled && !depends_on_order(m, n, k, e, &error) && !judge_is_flushed(m, n, k) &&
              !(judge_is_norm(n->op) && judge_is_open_norm(first[0])) &&
              !(is_named(n->op, "Unique") && judge_may_join(m, first)) &&
              !(!strcmp(n->op, "NonZero") && judge_may_be_zero(first)) && !may_divide_by_zero(m, n, k);
    const bool is_text = judge_gives_text(m, n);
    const bool swaps = settled && judge_may_swap(m, n, k);
    for (uint32_t i = 0; i < n->count_out; i++) {
        if (n->out[i] == G_NONE) continue;
        gvalue *v = &m->value.at[n->out[i]];
        m->work += (uint64_t)v->at[k][0]->count;
        v->is_chaotic[k] = false;
        v->is_text = is_text;
        /* TopK's values are compared: the numbers at either index are as good as the same. */
        bool is_same = settled && !(swaps && !dtype_is_float(v->dtype));
        for (uint32_t lane = 1; lane < G_LANES && is_same; lane++) is_same = same_shape(v->at[k][0], v->at[k][lane]);
        if (!is_same) calm(v, k);
    }
    return true;
}

/* ---- subgraphs ---- */

bool judge_scope(gmodel *m, uint32_t scope, uint32_t k)
{
    for (uint32_t i = 0; i < m->node.count; i++)
        if (m->node.at[i].scope == scope && !m->node.at[i].is_dead && !judge_node(m, i, k)) return false;
    return true;
}

void judge_copied(gmodel *m, uint32_t value, uint32_t k)
{
    gtensor **at = m->value.at[value].at[k];
    for (uint32_t lane = 1; lane < G_LANES && m->allow && at[0]; lane++)
        if (same_shape(at[0], at[lane])) at[lane] = judge_moved(m, at[lane], at[0], lane, value, false);
}

void judge_pass(gmodel *m, uint32_t to, uint32_t from, uint32_t k)
{
    m->value.at[to].is_list = m->value.at[from].is_list;
    m->value.at[to].is_text = m->value.at[from].is_text;
    if (m->value.at[from].is_list) {
        judge_pass_list(m, to, from, k);
        return;
    }
    gvalue *a = &m->value.at[to];
    const gvalue *b = &m->value.at[from];
    a->dtype = b->dtype;
    a->rank = b->at[k][0]->rank;
    memcpy(a->at[k], b->at[k], sizeof a->at[k]);
    a->is_chaotic[k] = b->is_chaotic[k];
    judge_copied(m, to, k);
}

static void spoil(gmodel *m, const gnode *n, uint32_t k)
{
    for (uint32_t i = 0; i < n->count_out; i++) {
        gvalue *v = n->out[i] == G_NONE ? NULL : &m->value.at[n->out[i]];
        for (uint32_t j = 0; v && j < v->item.count; j++) calm(&m->value.at[v->item.at[j]], k);
        if (v && !v->is_list) calm(v, k);
    }
}

/* Lane 0's decision; `is_open`: the lanes differ. */
static bool decision(const gvalue *v, uint32_t k, bool *is_open)
{
    const bool yes = gtensor_at(v->at[k][0], 0) != 0;
    for (uint32_t lane = 1; lane < G_LANES; lane++) *is_open |= (gtensor_at(v->at[k][lane], 0) != 0) != yes;
    *is_open |= v->is_chaotic[k];
    return yes;
}

static bool run_if(gmodel *m, const gnode *n, uint32_t k)
{
    bool is_open = false;
    const bool yes = decision(&m->value.at[n->in[0]], k, &is_open);
    const gattr *a = gnode_find(n, yes ? "then_branch" : "else_branch");
    if (!judge_scope(m, (uint32_t)a->i, k)) return false;
    const gscope *s = &m->scope.at[a->i];
    for (uint32_t i = 0; i < n->count_out; i++)
        if (n->out[i] != G_NONE) judge_pass(m, n->out[i], s->result.at[i], k);
    if (is_open) spoil(m, n, k);
    return true;
}

void judge_cut(gmodel *m, uint32_t to, uint32_t of, uint32_t axis, int64_t begin, int64_t count, bool keeps_axis,
               uint32_t k)
{
    const gvalue *from = &m->value.at[of];
    gvalue *v = &m->value.at[to];
    v->dtype = from->dtype;
    v->rank = from->at[k][0]->rank - !keeps_axis;
    v->is_chaotic[k] = from->is_chaotic[k];
    for (uint32_t lane = 0; lane < G_LANES; lane++) {
        const gtensor *t = from->at[k][lane];
        int64_t d[SINTER_RANK_MAX] = { 0 }, before = 1, after = 1;
        for (uint32_t i = 0, r = 0; i < t->rank; i++) {
            if (i != axis || keeps_axis) d[r++] = i == axis ? count : t->dim[i];
            if (i < axis) before *= t->dim[i];
            if (i > axis) after *= t->dim[i];
        }
        gtensor *o = v->at[k][lane] = gtensor_new(m->a, t->dtype, v->rank, d);
        const size_t one = sinter_dtype_bits(t->dtype) / 8, row = (size_t)after * one, part = row * (size_t)count;
        for (int64_t b = 0; b < before && part && begin + count <= t->dim[axis]; b++)
            memcpy((char *)o->data + (size_t)b * part, (const char *)t->data + (size_t)(b * t->dim[axis] + begin) * row,
                   part);
    }
    judge_copied(m, to, k);
}

void judge_slice(gmodel *m, uint32_t to, uint32_t of, uint32_t axis, int64_t index, uint32_t k)
{
    judge_cut(m, to, of, axis, index, 1, false, k);
}

gtensor *judge_stack(gmodel *m, const gtensors *t, uint32_t axis, bool is_reversed, const gtensor *like)
{
    const gtensor *first = t->count ? t->at[0] : like;
    int64_t d[SINTER_RANK_MAX] = { 0 }, before = 1, after = 1;
    for (uint32_t i = 0, r = 0; i <= first->rank; i++) {
        d[i] = i == axis ? (int64_t)t->count : first->dim[r++];
        if (i < axis) before *= d[i];
        if (i > axis) after *= d[i];
    }
    gtensor *o = gtensor_new(m->a, first->dtype, first->rank + 1, d);
    const size_t row = (size_t)after * (sinter_dtype_bits(first->dtype) / 8);
    for (uint32_t i = 0; i < t->count; i++) {
        const uint32_t place = is_reversed ? t->count - 1 - i : i;
        for (int64_t b = 0; b < before && row; b++)
            memcpy((char *)o->data + (size_t)(b * (int64_t)t->count + place) * row,
                   (const char *)t->at[i]->data + (size_t)b * row, row);
    }
    return o;
}

typedef struct repeat {
    gtensors scanned[G_OUT][G_LANES];
    bool is_open;
    bool is_unsized; /* nothing was stacked, and nobody knows the shape of what it would have been */
} repeat;

/* False: shapes of slices differ, which no model may do. */
static bool collect(gmodel *m, repeat *r, uint32_t which, const gvalue *v, uint32_t k)
{
    for (uint32_t lane = 0; lane < G_LANES; lane++) {
        gtensors *t = &r->scanned[which][lane];
        if (t->count && !same_shape(t->at[0], v->at[k][lane])) return false;
        *(gtensor **)VEC_PUSH(m->a, t) = v->at[k][lane];
    }
    r->is_open |= v->is_chaotic[k];
    return true;
}

static void finish_scans(gmodel *m, repeat *r, const gnode *n, uint32_t carried, const uint32_t *result, uint32_t k)
{
    const gattr *axes = gnode_find(n, "scan_output_axes"), *turns = gnode_find(n, "scan_output_directions");
    for (uint32_t i = carried; i < n->count_out; i++) {
        if (n->out[i] == G_NONE) continue;
        gvalue *v = &m->value.at[n->out[i]];
        const uint32_t which = i - carried;
        for (uint32_t lane = 0; lane < G_LANES; lane++)
            v->at[k][lane] = judge_stack(m, &r->scanned[which][lane], axes ? (uint32_t)axes->ints[which] : 0,
                                         turns && turns->ints[which], m->value.at[result[which]].at[k][0]);
        v->dtype = v->at[k][0]->dtype;
        v->rank = v->at[k][0]->rank;
        v->is_chaotic[k] = r->is_unsized;
        judge_copied(m, n->out[i], k);
    }
    if (r->is_open) spoil(m, n, k);
}

void judge_scalar(gmodel *m, uint32_t value, sinter_dtype dtype, int64_t x, uint32_t k)
{
    gvalue *v = &m->value.at[value];
    gtensor *t = gtensor_new(m->a, dtype, 0, NULL);
    dtype_store_i64(dtype, t->data, 0, x);
    v->dtype = dtype;
    v->rank = 0;
    fill_lanes(m, v, k, t);
}

enum { TRIPS_MAX = 64 };

/* Does data decide a size in the body? */
static bool has_late_sizes(const gmodel *m, uint32_t scope)
{
    static const char *const late[] = { "NonZero", "Compress", "Unique", "NonMaxSuppression", "If", "Loop", "Scan" };
    for (uint32_t i = 0; i < m->node.count; i++) {
        const gnode *n = &m->node.at[i];
        if (n->scope != scope || n->is_dead) continue;
        for (uint32_t k = 0; k < COUNT_OF(late); k++)
            if (!strcmp(n->op, late[k])) return true;
        for (uint32_t k = 0; k < n->count_in; k++)
            if (n->in[k] != G_NONE && gop_is_param(n->op, k) && m->value.at[n->in[k]].kind != G_CONST) return true;
    }
    return false;
}

/* No turn was taken: a carried value that turns compute may change its shape, and so may slices that depend on it. */
static bool is_of_unknown_shape(const gmodel *m, uint32_t scope, const uint32_t *param, const uint32_t *result,
                                uint32_t carried)
{
    bool is = has_late_sizes(m, scope);
    for (uint32_t i = 0; i < carried; i++) is = is || (param[i] != result[i] && m->value.at[param[i]].rank);
    return is;
}

/* Data decides whether all turns of such a body fit together: that they do not is no fault of what is tested. */
static bool refuse_turn(gmodel *m, uint32_t scope)
{
    m->is_unfit = m->is_unfit || has_late_sizes(m, scope);
    return false;
}

static bool refuse_slices(gmodel *m, const gnode *n, uint32_t scope)
{
    (void)refuse(m, n, "slices of a scan output differ in shape");
    return refuse_turn(m, scope);
}

/* A parameter that is declared [1] holds the scalar in a tensor of one element. */
static void as_declared(gmodel *m, uint32_t param, uint32_t rank, uint32_t k)
{
    gvalue *v = &m->value.at[param];
    for (uint32_t lane = 0; lane < G_LANES && rank == 1; lane++) {
        gtensor *t = gtensor_new(m->a, v->dtype, 1, (const int64_t[]){ 1 });
        memcpy(t->data, v->at[k][lane]->data, t->size);
        v->at[k][lane] = t;
    }
    v->rank = rank;
}

static bool run_loop(gmodel *m, const gnode *n, uint32_t k)
{
    const gscope *s = &m->scope.at[gnode_find(n, "body")->i];
    const uint32_t scope = (uint32_t)gnode_find(n, "body")->i, carried = s->param.count - 2;
    repeat r = { 0 };
    bool go = n->in[1] == G_NONE || decision(&m->value.at[n->in[1]], k, &r.is_open);
    int64_t trips = TRIPS_MAX;
    if (n->in[0] != G_NONE) {
        trips = (int64_t)gtensor_at(m->value.at[n->in[0]].at[k][0], 0);
        r.is_open |= m->value.at[n->in[0]].is_chaotic[k];
    }
    const uint32_t rank[2] = { m->value.at[s->param.at[0]].rank, m->value.at[s->param.at[1]].rank };
    for (uint32_t i = 0; i < carried; i++) judge_pass(m, s->param.at[2 + i], n->in[2 + i], k);
    bool ran = false;
    for (int64_t t = 0; t < trips && go; t++) {
        ran = true;
        if (t == TRIPS_MAX) return refuse(m, n, "the loop does not end");
        judge_scalar(m, s->param.at[0], SINTER_DTYPE_I64, t, k);
        judge_scalar(m, s->param.at[1], SINTER_DTYPE_BOOL, go, k);
        for (uint32_t i = 0; i < 2; i++) as_declared(m, s->param.at[i], rank[i], k);
        if (!judge_scope(m, scope, k)) return refuse_turn(m, scope);
        go = decision(&m->value.at[s->result.at[0]], k, &r.is_open);
        gvalue next[G_OUT];
        for (uint32_t i = 0; i < carried; i++) next[i] = m->value.at[s->result.at[1 + i]];
        for (uint32_t i = carried + 1; i < s->result.count; i++)
            if (!collect(m, &r, i - carried - 1, &m->value.at[s->result.at[i]], k)) return refuse_slices(m, n, scope);
        for (uint32_t i = 0; i < carried; i++) {
            gvalue *p = &m->value.at[s->param.at[2 + i]];
            if (p->is_list) {
                judge_pass_list(m, s->param.at[2 + i], s->result.at[1 + i], k);
                continue;
            }
            memcpy(p->at[k], next[i].at[k], sizeof p->at[k]);
            p->rank = next[i].at[k][0]->rank;
            p->is_chaotic[k] = next[i].is_chaotic[k];
        }
    }
    if (!ran) {
        r.is_unsized = is_of_unknown_shape(m, scope, &s->param.at[2], &s->result.at[1], carried);
        /* The body is run for the shapes of what nothing was stacked on. */
        judge_scalar(m, s->param.at[0], SINTER_DTYPE_I64, 0, k);
        judge_scalar(m, s->param.at[1], SINTER_DTYPE_BOOL, true, k);
        for (uint32_t i = 0; i < 2; i++) as_declared(m, s->param.at[i], rank[i], k);
        if (!judge_scope(m, scope, k)) return refuse_turn(m, scope);
    }
    for (uint32_t i = 0; i < carried; i++)
        if (n->out[i] != G_NONE) judge_pass(m, n->out[i], s->param.at[2 + i], k);
    finish_scans(m, &r, n, carried, &s->result.at[1 + carried], k);
    return true;
}

static bool run_scan(gmodel *m, const gnode *n, uint32_t k)
{
    const uint32_t scope = (uint32_t)gnode_find(n, "body")->i, scanned = (uint32_t)gnode_find(n, "num_scan_inputs")->i,
                   carried = n->count_in - scanned;
    const gscope *s = &m->scope.at[scope];
    const gattr *axes = gnode_find(n, "scan_input_axes"), *turns = gnode_find(n, "scan_input_directions");
    repeat r = { 0 };
    for (uint32_t i = 0; i < carried; i++) judge_pass(m, s->param.at[i], n->in[i], k);
    const int64_t trips = m->value.at[n->in[carried]].at[k][0]->dim[axes ? axes->ints[0] : 0];
    for (int64_t t = 0; t < trips; t++) {
        for (uint32_t i = 0; i < scanned; i++)
            judge_slice(m, s->param.at[carried + i], n->in[carried + i], axes ? (uint32_t)axes->ints[i] : 0,
                        turns && turns->ints[i] ? trips - 1 - t : t, k);
        if (!judge_scope(m, scope, k)) return refuse_turn(m, scope);
        gvalue next[G_OUT];
        for (uint32_t i = 0; i < carried; i++) next[i] = m->value.at[s->result.at[i]];
        for (uint32_t i = carried; i < s->result.count; i++)
            if (!collect(m, &r, i - carried, &m->value.at[s->result.at[i]], k)) return refuse_slices(m, n, scope);
        for (uint32_t i = 0; i < carried; i++) {
            gvalue *p = &m->value.at[s->param.at[i]];
            memcpy(p->at[k], next[i].at[k], sizeof p->at[k]);
            p->is_chaotic[k] = next[i].is_chaotic[k];
        }
    }
    if (trips == 0) {
        r.is_unsized = is_of_unknown_shape(m, scope, s->param.at, s->result.at, carried);
        for (uint32_t i = 0; i < scanned; i++)
            judge_slice(m, s->param.at[carried + i], n->in[carried + i], axes ? (uint32_t)axes->ints[i] : 0, 0, k);
        if (!judge_scope(m, scope, k)) return refuse_turn(m, scope);
    }
    for (uint32_t i = 0; i < carried; i++)
        if (n->out[i] != G_NONE) judge_pass(m, n->out[i], s->param.at[i], k);
    finish_scans(m, &r, n, carried, &s->result.at[carried], k);
    return true;
}

bool judge_node(gmodel *m, uint32_t node, uint32_t k)
{
    const gnode n = m->node.at[node];
    if (n.scope == 0) m->work = 0;
    if (judge_is_list(m, &n)) {
        m->error[0] = 0; /* what a node of its body says comes first */
        return judge_list(m, &n, k) ||
               (!m->error[0] && refuse(m, &n, "a sequence or text that is not as it has to be"));
    }
    for (uint32_t i = 0; i < n.count_in; i++)
        if (n.in[i] != G_NONE && !m->value.at[n.in[i]].is_list && !m->value.at[n.in[i]].at[k][0])
            return refuse(m, &n, "an input has no data");
    if (!strcmp(n.op, "If")) return run_if(m, &n, k);
    if (!strcmp(n.op, "Loop")) return run_loop(m, &n, k);
    if (!strcmp(n.op, "Scan")) return run_scan(m, &n, k);
    return judge_alone(m, &n, k);
}

bool judge_model(gmodel *m, uint32_t k)
{
    m->error[0] = 0;
    judge_leaves(m, k);
    return judge_scope(m, 0, k);
}

/* ---- comparing ---- */

static double spread_at(const gvalue *v, uint32_t k, int64_t i)
{
    double most = 0;
    const double x = gtensor_at(v->at[k][0], i);
    for (uint32_t lane = 1; lane < G_LANES; lane++) {
        const double y = gtensor_at(v->at[k][lane], i), gap = fabs(x - y);
        if (x == y || (isnan(x) && isnan(y))) continue;
        most = gap > most || isnan(gap) ? (isnan(gap) ? INFINITY : gap) : most;
    }
    return most;
}

static double spread_of(const gvalue *v, uint32_t k)
{
    double most = 0;
    for (int64_t i = 0; i < v->at[k][0]->count; i++) most = fmax(most, spread_at(v, k, i));
    return most;
}

bool judge_is_doubtful(const gmodel *m, const gvalue *v, uint32_t k)
{
    if (v->is_chaotic[k]) return true;
    const double most = judge_largest(v->at[k][0]);
    const double spread = spread_of(v, k);
    return dtype_is_float(v->dtype) ? spread > most * (32 * judge_unit(m, v->dtype) + 0.01) : spread > 0;
}

double judge_gap(const gmodel *m, const gvalue *v, uint32_t k, const sinter_tensor *found, char *why, size_t size)
{
    const gtensor *t = v->at[k][0];
    bool is_same = found->dtype == t->dtype && found->rank == t->rank;
    if (is_same && v->is_chaotic[k]) return 0;
    for (uint32_t i = 0; i < t->rank && is_same; i++) is_same = found->dim[i] == t->dim[i];
    if (!is_same) {
        int length = snprintf(why, size, "%s has shape %s[", v->name, sinter_dtype_name(found->dtype));
        for (uint32_t i = 0; i < found->rank; i++)
            length += snprintf(why + length, size - (size_t)length, "%s%lld", i ? "," : "", (long long)found->dim[i]);
        length += snprintf(why + length, size - (size_t)length, "], wanted %s[", sinter_dtype_name(t->dtype));
        for (uint32_t i = 0; i < t->rank; i++)
            length += snprintf(why + length, size - (size_t)length, "%s%lld", i ? "," : "", (long long)t->dim[i]);
        (void)snprintf(why + length, size - (size_t)length, "]");
        return INFINITY;
    }
    const bool is_float = dtype_is_float(t->dtype);
    const double all = is_float ? spread_of(v, k) : 0;
    double most = 0;
    /* Sums inside a node cancel: what they leave is relative to the largest. */
    const double unit = judge_unit(m, t->dtype), inside = is_float ? 4 * unit * judge_largest(t) : 0;
    for (int64_t i = 0; i < t->count; i++) {
        const double x = dtype_load_f64(found->dtype, found->data, i), y = gtensor_at(t, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        const double within = 8 * spread_at(v, k, i) + all + 64 * unit * fabs(y) + inside + 1e-37;
        double gap = is_float && isfinite(x) && isfinite(y) ? fabs(x - y) / within : INFINITY;
        if (isnan(gap)) gap = INFINITY;
        if (gap > 1 && gap > most)
            (void)snprintf(why, size, "%s[%lld of %lld] is %.9g, wanted %.9g within %.2g", v->name, (long long)i,
                           (long long)t->count, x, y, is_float ? within : 0);
        most = fmax(most, gap);
    }
    return most;
}
