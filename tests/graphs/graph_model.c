/* SPDX-License-Identifier: Apache-2.0 */
/* graph_model.c - values, nodes and scopes of a model that a test makes. */
#include "graph_model.h"

#include "test.h"

#include <math.h>

void gmodel_init(gmodel *m, env *e, arena *a)
{
    *m = (gmodel){ .e = e, .a = a, .opset = 18, .envs = 1, .profiles = 1, .past = G_NONE };
    (void)gmodel_scope(m, G_NONE);
}

static void *must(void *p)
{
    if (!p) abort();
    return p;
}

#define COPY_LIST(to, from)                                                                                            \
    do {                                                                                                               \
        (to)->at = NULL;                                                                                               \
        (to)->count = (to)->capacity = 0;                                                                              \
        for (uint32_t k_ = 0; k_ < (from)->count; k_++)                                                                \
            memcpy(must(VEC_PUSH(m->a, to)), &(from)->at[k_], sizeof *(from)->at);                                     \
    } while (0)

void gmodel_copy(gmodel *m, const gmodel *from)
{
    *m = *from;
    COPY_LIST(&m->value, &from->value);
    COPY_LIST(&m->node, &from->node);
    COPY_LIST(&m->scope, &from->scope);
    for (uint32_t i = 0; i < m->scope.count; i++) {
        COPY_LIST(&m->scope.at[i].param, &from->scope.at[i].param);
        COPY_LIST(&m->scope.at[i].result, &from->scope.at[i].result);
    }
    for (uint32_t i = 0; i < m->value.count; i++) {
        memset(m->value.at[i].at, 0, sizeof m->value.at[i].at);
        memset(m->value.at[i].is_chaotic, 0, sizeof m->value.at[i].is_chaotic);
        memset(&m->value.at[i].item, 0, sizeof m->value.at[i].item);
    }
}

uint32_t gmodel_value(gmodel *m, gkind kind, uint32_t scope, sinter_dtype dtype)
{
    static const char letter[] = { 'x', 'c', 'p', 'v' };
    gvalue *v = must(VEC_PUSH(m->a, &m->value));
    const uint32_t id = m->value.count - 1;
    *v = (gvalue){ .kind = kind, .scope = scope, .dtype = dtype };
    (void)snprintf(v->name, sizeof v->name, "%c%u", letter[kind], id);
    return id;
}

uint32_t gmodel_node(gmodel *m, const char *op, uint32_t scope)
{
    gnode *n = must(VEC_PUSH(m->a, &m->node));
    (void)snprintf(n->op, sizeof n->op, "%s", op);
    n->scope = scope;
    return m->node.count - 1;
}

uint32_t gmodel_scope(gmodel *m, uint32_t parent)
{
    gscope *s = must(VEC_PUSH(m->a, &m->scope));
    s->parent = parent;
    return m->scope.count - 1;
}

uint32_t gmodel_symbol(gmodel *m, const int64_t *at)
{
    if (m->symbols == G_SYMBOLS) return G_NONE;
    gsymbol *s = &m->symbol[m->symbols];
    *s = (gsymbol){ 0 };
    (void)snprintf(s->name, sizeof s->name, "N%u", m->symbols);
    memcpy(s->at, at, sizeof s->at);
    for (uint32_t p = 0; p < G_PROFILES; p++) {
        s->min[p] = s->max[p] = s->opt[p] = at[0];
        for (uint32_t i = 0; i < m->envs; i++) {
            s->min[p] = at[i] < s->min[p] ? at[i] : s->min[p];
            s->max[p] = at[i] > s->max[p] ? at[i] : s->max[p];
        }
    }
    return m->symbols++;
}

gattr *gnode_attr(gnode *n, const char *name, gattr_kind kind)
{
    if (n->count_attr == G_ATTRS) abort();
    gattr *a = &n->attr[n->count_attr++];
    *a = (gattr){ .kind = kind };
    (void)snprintf(a->name, sizeof a->name, "%s", name);
    return a;
}

const gattr *gnode_find(const gnode *n, const char *name)
{
    for (uint32_t i = 0; i < n->count_attr; i++)
        if (!strcmp(n->attr[i].name, name)) return &n->attr[i];
    return NULL;
}

bool gscope_is_in(const gmodel *m, uint32_t inner, uint32_t outer)
{
    for (uint32_t s = inner; s != G_NONE; s = m->scope.at[s].parent)
        if (s == outer) return true;
    return false;
}

/* ---- what is needed ---- */

bool gvalue_is_used(const gmodel *m, uint32_t value)
{
    for (uint32_t i = 0; i < m->node.count; i++) {
        const gnode *n = &m->node.at[i];
        for (uint32_t k = 0; k < n->count_in && !n->is_dead; k++)
            if (n->in[k] == value) return true;
    }
    for (uint32_t i = 0; i < m->scope.count; i++)
        for (uint32_t k = 0; k < m->scope.at[i].result.count; k++)
            if (m->scope.at[i].result.at[k] == value) return true;
    return false;
}

static void mark_scope(const gmodel *m, uint32_t scope, bool *is_used, bool *is_open)
{
    if (is_open[scope]) return;
    is_open[scope] = true;
    const gscope *s = &m->scope.at[scope];
    for (uint32_t i = 0; i < s->result.count; i++) is_used[s->result.at[i]] = true;
}

static bool has_value(const uint32_t *at, uint32_t count, uint32_t v)
{
    for (uint32_t i = 0; i < count; i++)
        if (at[i] == v) return true;
    return false;
}

/* Pairs whose input or output went are none. */
static void keep_states(gmodel *m)
{
    const gscope *s = &m->scope.at[0];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->states; i++)
        if (has_value(s->param.at, s->param.count, m->state[i].in) &&
            has_value(s->result.at, s->result.count, m->state[i].out))
            m->state[kept++] = m->state[i];
    m->states = kept;
}

void gmodel_sweep(gmodel *m, bool keep_inputs)
{
    bool *used = must(ARENA_NEW(m->a, bool, m->value.count + 1)), *open = must(ARENA_NEW(m->a, bool, m->scope.count));
    mark_scope(m, 0, used, open);
    keep_states(m);
    for (uint32_t i = 0; i < m->states; i++) used[m->state[i].in] = true;
    /* A node stands before those of its subgraphs' scopes or behind them: go on until nothing changes. */
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = m->node.count; i-- > 0;) {
            gnode *n = &m->node.at[i];
            bool wanted = false;
            for (uint32_t k = 0; k < n->count_out; k++) wanted |= n->out[k] != G_NONE && used[n->out[k]];
            if (n->is_dead || !wanted || !open[n->scope]) continue;
            for (uint32_t k = 0; k < n->count_in; k++) {
                if (n->in[k] == G_NONE || used[n->in[k]]) continue;
                used[n->in[k]] = changed = true;
            }
            for (uint32_t k = 0; k < n->count_attr; k++) {
                if (n->attr[k].kind != GA_GRAPH || open[n->attr[k].i]) continue;
                changed = true;
                mark_scope(m, (uint32_t)n->attr[k].i, used, open);
            }
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->node.count; i++) {
        gnode *n = &m->node.at[i];
        bool wanted = false;
        for (uint32_t k = 0; k < n->count_out; k++) wanted |= n->out[k] != G_NONE && used[n->out[k]];
        if (n->is_dead || !wanted || !open[n->scope]) continue;
        m->node.at[kept++] = *n;
    }
    m->node.count = kept;
    gscope *main_scope = &m->scope.at[0];
    kept = 0;
    for (uint32_t i = 0; i < main_scope->param.count; i++)
        if (keep_inputs || used[main_scope->param.at[i]]) main_scope->param.at[kept++] = main_scope->param.at[i];
    main_scope->param.count = kept;
}

/* ---- tensors ---- */

gtensor *gtensor_new(arena *a, sinter_dtype dtype, uint32_t rank, const int64_t *dim)
{
    gtensor *t = must(ARENA_NEW(a, gtensor, 1));
    *t = (gtensor){ .dtype = dtype, .rank = rank, .count = 1 };
    for (uint32_t i = 0; i < rank; i++) {
        t->dim[i] = dim[i];
        t->count *= dim[i];
    }
    t->size = ((size_t)t->count * sinter_dtype_bits(dtype) + 7) / 8;
    t->data = must(arena_alloc(a, t->size + 8, 64));
    return t;
}

double gtensor_at(const gtensor *t, int64_t i)
{
    return dtype_load_f64(t->dtype, t->data, i);
}

static double special_or(gfill fill, uint64_t *seed, double x)
{
    static const double list[] = { NAN, INFINITY, -INFINITY, -0.0, 1e-40, -3e-42 };
    if (!(fill.seed & G_SPECIAL) || test_random(seed) % 5) return x;
    return list[test_random(seed) % COUNT_OF(list)];
}

gtensor *gvalue_leaf(const gmodel *m, const gvalue *v, uint32_t env_index)
{
    if (v->is_explicit) return v->data[v->kind == G_CONST ? 0 : env_index];
    int64_t d[SINTER_RANK_MAX] = { 0 };
    for (uint32_t i = 0; i < v->rank; i++)
        d[i] = v->dim[i].symbol == G_NONE ? v->dim[i].size : m->symbol[v->dim[i].symbol].at[env_index];
    gtensor *t = gtensor_new(m->a, v->dtype, v->rank, d);
    uint64_t seed = v->fill.seed * 977 + (v->kind == G_CONST ? 0 : env_index);
    const double span = v->fill.hi - v->fill.lo, step = v->fill.step;
    for (int64_t i = 0; i < t->count; i++) {
        const double unit = (double)(test_random(&seed) >> 11) * 0x1p-53;
        const double x = v->fill.lo + (step > 0 ? step * floor(unit * (floor(span / step) + 1)) : unit * span);
        if (v->dtype == SINTER_DTYPE_BOOL) dtype_store_i64(v->dtype, t->data, i, x >= 0.5);
        else if (dtype_is_float(v->dtype)) dtype_store_f64(v->dtype, t->data, i, special_or(v->fill, &seed, x));
        else dtype_store_i64(v->dtype, t->data, i, (int64_t)floor(x));
    }
    return t;
}
