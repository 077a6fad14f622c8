/* SPDX-License-Identifier: Apache-2.0 */
/* graph_grow_states.c - states of random graphs: pairs of an input and an output that stay in the context. */
#include "graph_ops.h"

/* ---- rows that grow ---- */

/* Sizes that runs in some order have: the first without rows, each other with rows that runs before it left. */
static void choose_rows(grow *g, gsize *past, gsize *more)
{
    int64_t reached = 0;
    *more = gsize_of(1 + grow_below(g, 3));
    for (uint32_t k = 0; k < G_ENVS && grow_one_in(g, 2); k++) more->at[k] = 1 + grow_below(g, 5);
    for (uint32_t k = 0; k < G_ENVS; k++) {
        past->at[k] = k == 1 ? more->at[0] : grow_between(g, 0, reached);
        if (past->at[k] + more->at[k] > reached) reached = past->at[k] + more->at[k];
    }
}

/* A state and what it is with the new rows; G_NONE: not made. */
static uint32_t grow_cache(grow *g, sinter_dtype dtype, const gsize *d, uint32_t rank, uint32_t axis, uint32_t more)
{
    gmodel *m = g->m;
    gsize rows[SINTER_RANK_MAX];
    memcpy(rows, d, sizeof rows);
    memcpy(rows[axis].at, m->symbol[m->past].at, sizeof rows[axis].at);
    const uint32_t past = grow_leaf(g, dtype, rows, rank, false, grow_fill(g, dtype));
    if (past == G_NONE) return G_NONE;
    g->seen.count--; /* nothing else may read it */
    uint32_t given = grow_leaf(g, dtype, d, rank, false, grow_fill(g, dtype));
    if (given == G_NONE) return G_NONE;
    if (more != G_NONE) m->value.at[given].dim[axis] = (gdim){ more, 0 };
    if (grow_one_in(g, 2)) given = grow_1(g, dtype_is_float(dtype) && grow_one_in(g, 2) ? "Tanh" : "Identity", given);
    if (given == G_NONE) return G_NONE;
    const uint32_t node = grow_begin(g, "Concat");
    grow_in(g, node, past);
    grow_in(g, node, given);
    grow_int(g, node, "axis", axis);
    const uint32_t present = grow_end(g, node, 1);
    if (present == G_NONE) return G_NONE;
    m->value.at[past].dim[axis] = (gdim){ m->past, 0 };
    m->state[m->states++] = (gstate){ past, present };
    return present;
}

/* What reads a cache in models: scores of all rows, their weights, a sum. */
static void attend(grow *g, uint32_t keys, uint32_t values, uint32_t axis)
{
    const uint32_t rank = grow_rank(g, keys);
    if (!dtype_is_float(grow_type(g, keys)) || axis + 2 != rank) return;
    gsize d[SINTER_RANK_MAX];
    int64_t perm[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) {
        d[i] = grow_dim(g, keys, i);
        perm[i] = i;
    }
    d[axis] = gsize_of(1 + grow_below(g, 3));
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    const uint32_t query = grow_shaped(g, grow_type(g, keys), d, rank),
                   turned = query == G_NONE ? G_NONE : grow_transpose(g, keys, perm),
                   scores = turned == G_NONE ? G_NONE : grow_2(g, "MatMul", query, turned);
    if (scores == G_NONE) return;
    const uint32_t node = grow_begin(g, "Softmax");
    grow_in(g, node, scores);
    grow_int(g, node, "axis", -1);
    const uint32_t weights = grow_end(g, node, 1);
    if (weights != G_NONE) (void)grow_2(g, "MatMul", weights, values);
}

void grow_rows(grow *g)
{
    gmodel *m = g->m;
    gsize past, more, d[SINTER_RANK_MAX];
    if (grow_one_in(g, 3) || m->symbols + 2 > G_SYMBOLS) return;
    choose_rows(g, &past, &more);
    m->past = gmodel_symbol(m, past.at);
    for (uint32_t k = 0; k < G_ENVS; k++) g->rows.at[k] = past.at[k] + more.at[k];
    const uint32_t grows_by = gsize_is_const(g, more) ? G_NONE : gmodel_symbol(m, more.at);
    const uint32_t rank = 2 + grow_below(g, 3), axis = 1 + grow_below(g, rank - 1), count = 1 + grow_below(g, 2);
    static const sinter_dtype types[] = { SINTER_DTYPE_F32, SINTER_DTYPE_F32, SINTER_DTYPE_F16, SINTER_DTYPE_I64 };
    const sinter_dtype dtype = types[grow_below(g, 4)];
    for (uint32_t i = 0; i < rank; i++) d[i] = gsize_of(1 + grow_below(g, 5));
    d[axis] = more;
    uint32_t present[2] = { G_NONE, G_NONE };
    for (uint32_t i = 0; i < count; i++) present[i] = grow_cache(g, dtype, d, rank, axis, grows_by);
    if (present[0] != G_NONE && grow_one_in(g, 2))
        attend(g, present[0], present[1] == G_NONE ? present[0] : present[1], axis);
}

/* ---- states of one size ---- */

static bool is_state(const gmodel *m, uint32_t v)
{
    for (uint32_t i = 0; i < m->states; i++)
        if (m->state[i].in == v || m->state[i].out == v) return true;
    return false;
}

static bool may_stay(const grow *g, uint32_t v)
{
    const gvalue *x = &g->m->value.at[v];
    if (x->kind != G_INPUT || x->is_explicit || is_state(g->m, v) || sinter_dtype_bits(x->dtype) < 8) return false;
    /* A build that looks at narrower types runs several times in a row: what is an index has to stay one. */
    if (g->m->allow && !dtype_is_float(x->dtype)) return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dim[i].symbol != G_NONE) return false;
    return true;
}

/* Any value of the input's type and shape, even another input. */
static uint32_t partner_of(grow *g, uint32_t in)
{
    uint32_t found = G_NONE, count = 0;
    for (uint32_t i = 0; i < g->seen.count; i++) {
        const uint32_t v = g->seen.at[i];
        bool is = g->m->value.at[v].scope == 0 && grow_type(g, v) == grow_type(g, in) && v != in &&
                  grow_rank(g, v) == grow_rank(g, in) && g->m->value.at[v].kind != G_CONST;
        for (uint32_t k = 0; k < g->m->states; k++) is = is && g->m->state[k].out != v;
        for (uint32_t k = 0; is && k < grow_rank(g, v); k++) is = gsize_same(g, grow_dim(g, v, k), grow_dim(g, in, k));
        if (is && grow_below(g, ++count) == 0) found = v;
    }
    if (found != G_NONE && grow_below(g, 4)) return found;
    return grow_1(g, dtype_is_float(grow_type(g, in)) && grow_one_in(g, 2) ? "Sigmoid" : "Identity", in);
}

static void give(gmodel *m, uint32_t v)
{
    const gscope *s = &m->scope.at[0];
    for (uint32_t i = 0; i < s->result.count; i++)
        if (s->result.at[i] == v) return;
    *(uint32_t *)VEC_PUSH(m->a, &m->scope.at[0].result) = v;
}

/* Outputs with an axis of as many elements as there are rows cannot be given. */
static void drop_outputs_of_rows(grow *g)
{
    gmodel *m = g->m;
    gscope *s = &m->scope.at[0];
    const gvalue *present = &m->value.at[m->state[0].out], *past = &m->value.at[m->state[0].in];
    uint32_t axis = 0, kept = 0;
    while (axis + 1 < past->rank && past->dim[axis].symbol != m->past) axis++;
    const gsize total = grow_dim(g, (uint32_t)(present - m->value.at), axis);
    for (uint32_t i = 0; i < s->result.count; i++) {
        const uint32_t v = s->result.at[i];
        bool has_rows = false;
        for (uint32_t k = 0; k < grow_rank(g, v); k++) has_rows = has_rows || gsize_same(g, grow_dim(g, v, k), total);
        if (!has_rows) s->result.at[kept++] = v;
    }
    s->result.count = kept;
}

void grow_states(grow *g)
{
    gmodel *m = g->m;
    if (m->states) drop_outputs_of_rows(g);
    else m->past = G_NONE;
    for (uint32_t i = 0; i < g->seen.count && m->states < G_STATES; i++) {
        const uint32_t in = g->seen.at[i];
        if (!may_stay(g, in) || grow_below(g, 3) == 0) continue;
        const uint32_t out = partner_of(g, in);
        if (g->is_refused) return;
        if (out != G_NONE) m->state[m->states++] = (gstate){ in, out };
    }
    for (uint32_t i = 0; i < m->states; i++) give(m, m->state[i].out);
    /* Something has to be seen. */
    uint32_t seen = 0;
    for (uint32_t i = 0; i < m->scope.at[0].result.count; i++) seen += !is_state(m, m->scope.at[0].result.at[i]);
    for (uint32_t i = g->seen.count; !seen && i-- > 0;) {
        if (m->value.at[g->seen.at[i]].scope || is_state(m, g->seen.at[i])) continue;
        give(m, g->seen.at[i]);
        break;
    }
}
