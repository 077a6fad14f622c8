/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_control.c - rows of If, Loop and Scan: bodies are grown like graphs, with captured values and nested. */
#include "graph_ops.h"

opened grow_open(grow *g)
{
    const opened o = { g->scope, g->seen.count };
    g->scope = gmodel_scope(g->m, g->scope);
    g->depth++;
    return o;
}

uint32_t grow_close(grow *g, opened o)
{
    const uint32_t inner = g->scope;
    g->scope = o.scope;
    g->depth--;
    /* Inputs and constants of the main graph stay in sight. */
    uint32_t kept = o.seen;
    for (uint32_t i = o.seen; i < g->seen.count; i++)
        if (g->m->value.at[g->seen.at[i]].scope == 0) g->seen.at[kept++] = g->seen.at[i];
    g->seen.count = kept;
    return inner;
}

static void body(grow *g, uint32_t nodes)
{
    for (uint32_t tries = 0, made = 0; made < nodes && tries < 3 * nodes && !g->is_refused; tries++)
        made += grow_some(g);
}

static void result(grow *g, uint32_t value)
{
    *(uint32_t *)VEC_PUSH(g->m->a, &g->m->scope.at[g->scope].result) = value;
}

/* A value of the open scope that can be a result: what an outer scope has, goes through Identity. */
static uint32_t own(grow *g, uint32_t value)
{
    if (value == G_NONE || g->is_refused) return G_NONE;
    const gscope *s = &g->m->scope.at[g->scope];
    bool is_taken = g->m->value.at[value].scope != g->scope || g->m->value.at[value].kind != G_RESULT;
    for (uint32_t i = 0; i < s->result.count; i++) is_taken |= s->result.at[i] == value;
    return is_taken ? grow_1(g, "Identity", value) : value;
}

bool grow_result(grow *g, uint32_t value)
{
    const uint32_t r = own(g, value);
    if (r != G_NONE) result(g, r);
    return r != G_NONE;
}

static bool same_type_and_shape(const grow *g, uint32_t a, uint32_t b)
{
    if (grow_type(g, a) != grow_type(g, b) || grow_rank(g, a) != grow_rank(g, b)) return false;
    for (uint32_t i = 0; i < grow_rank(g, a); i++)
        if (!gsize_same(g, grow_dim(g, a, i), grow_dim(g, b, i))) return false;
    return true;
}

/* The newest value of the open scope of a type and shape, `like` itself with something done to it, or another like it.
 */
static uint32_t similar(grow *g, uint32_t like, bool any_shape)
{
    for (uint32_t i = g->seen.count; i-- > 0;) {
        const uint32_t v = g->seen.at[i];
        if (g->m->value.at[v].scope != g->scope || v == like) continue;
        if (same_type_and_shape(g, v, like)) return v;
        if (any_shape && grow_type(g, v) == grow_type(g, like) && grow_rank(g, v) == grow_rank(g, like)) return v;
    }
    if (gscope_is_in(g->m, g->scope, g->m->value.at[like].scope))
        return grow_1(g, dtype_is_float(grow_type(g, like)) ? "Sigmoid" : "Identity", like);
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < grow_rank(g, like); i++) d[i] = grow_dim(g, like, i);
    return grow_shaped(g, grow_type(g, like), d, grow_rank(g, like));
}

static void attach(grow *g, uint32_t node, const char *name, uint32_t scope)
{
    gnode_attr(&g->m->node.at[node], name, GA_GRAPH)->i = scope;
}

static bool make_if(grow *g, const gop *op)
{
    if (g->depth > 1) return false;
    uint32_t condition = grow_find(g, T_B, 0, 0);
    if (condition == G_NONE)
        condition = grow_leaf(g, SINTER_DTYPE_BOOL, NULL, 0, false, grow_fill(g, SINTER_DTYPE_BOOL));
    const uint32_t count = 1 + grow_below(g, 2);
    uint32_t branch[2], like[2];
    const bool any_shape = grow_one_in(g, 3);
    for (uint32_t b = 0; b < 2; b++) {
        const opened o = grow_open(g);
        body(g, 1 + grow_below(g, 4));
        for (uint32_t i = 0; i < count && !g->is_refused; i++) {
            uint32_t v = b ? similar(g, like[i], any_shape) : grow_find(g, T_ALL, 0, 5);
            v = own(g, v);
            if (v == G_NONE) {
                (void)grow_close(g, o);
                return false;
            }
            like[i] = v;
            result(g, v);
        }
        branch[b] = grow_close(g, o);
        if (g->is_refused) return false;
    }
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, condition);
    attach(g, n, grow_one_in(g, 2) ? "then_branch" : "else_branch", branch[0]);
    attach(g, n, !strcmp(g->m->node.at[n].attr[0].name, "then_branch") ? "else_branch" : "then_branch", branch[1]);
    return grow_end(g, n, count) != G_NONE;
}

static uint32_t param(grow *g, sinter_dtype dtype, uint32_t rank)
{
    gmodel *m = g->m;
    const uint32_t id = gmodel_value(m, G_PARAM, g->scope, dtype);
    m->value.at[id].rank = rank;
    for (uint32_t i = 0; i < rank; i++) m->value.at[id].dim[i] = (gdim){ G_NONE, -1 };
    *(uint32_t *)VEC_PUSH(m->a, &m->scope.at[g->scope].param) = id;
    return id;
}

/* A parameter with the data of another value, as the first turn has it. */
static uint32_t param_like(grow *g, uint32_t v)
{
    const uint32_t p = param(g, grow_type(g, v), grow_rank(g, v));
    gvalue *to = &g->m->value.at[p];
    const gvalue *from = &g->m->value.at[v];
    memcpy(to->at, from->at, sizeof to->at);
    memcpy(to->is_chaotic, from->is_chaotic, sizeof to->is_chaotic);
    for (uint32_t i = 0; i < to->rank; i++)
        if (gsize_is_const(g, grow_dim(g, v, i)) && grow_one_in(g, 2)) to->dim[i].size = grow_dim(g, v, i).at[0];
    to->has_no_shape = grow_one_in(g, 4);
    *(uint32_t *)VEC_PUSH(g->m->a, &g->seen) = p;
    return p;
}

uint32_t grow_param(grow *g, sinter_dtype dtype, int64_t x)
{
    const uint32_t rank = grow_one_in(g, 6), p = param(g, dtype, rank);
    gvalue *to = &g->m->value.at[p];
    if (rank) to->dim[0].size = 1;
    for (uint32_t k = 0; k < g->m->envs; k++) {
        gtensor *t = gtensor_new(g->m->a, dtype, rank, (const int64_t[]){ 1 });
        dtype_store_i64(dtype, t->data, 0, x);
        for (uint32_t lane = 0; lane < G_LANES; lane++) to->at[k][lane] = t;
    }
    *(uint32_t *)VEC_PUSH(g->m->a, &g->seen) = p;
    return p;
}

uint32_t grow_param_list(grow *g, uint32_t list)
{
    const uint32_t p = param(g, SINTER_DTYPE_NONE, 0);
    g->m->value.at[p].has_no_shape = true;
    for (uint32_t k = 0; k < g->m->envs; k++) judge_pass(g->m, p, list, k);
    return p;
}

static bool make_loop(grow *g, const gop *op)
{
    if (g->depth > 1) return false;
    const uint32_t carried = grow_below(g, 3), scanned = grow_below(g, 3) + !carried;
    uint32_t in[4] = { G_ABSENT, G_ABSENT };
    gsize trips = gsize_of(0);
    for (uint32_t k = 0; k < G_ENVS; k++) trips.at[k] = grow_below(g, 4);
    if (grow_one_in(g, 2)) trips = gsize_of(1 + grow_below(g, 3));
    in[0] = grow_ints(g, &trips, 1, true);
    if (grow_one_in(g, 3)) in[1] = grow_const_scalar(g, SINTER_DTYPE_BOOL, 1);
    for (uint32_t i = 0; i < carried; i++) in[2 + i] = grow_pick(g, T_ALL, 0, 4);
    for (uint32_t i = 0; i < 2 + carried; i++)
        if (in[i] == G_NONE) return false;
    const opened o = grow_open(g);
    uint32_t p[4], r = 0;
    p[0] = grow_param(g, SINTER_DTYPE_I64, 0);
    p[1] = grow_param(g, SINTER_DTYPE_BOOL, 1);
    for (uint32_t i = 0; i < carried; i++) p[2 + i] = param_like(g, in[2 + i]);
    body(g, 1 + grow_below(g, 4));
    const bool decides = in[0] != G_ABSENT && grow_one_in(g, 4) && !grow_rank(g, p[0]);
    r = decides ? own(g, grow_2(g, "Less", p[0], grow_const_scalar(g, SINTER_DTYPE_I64, 2))) : own(g, p[1]);
    bool is_fine = r != G_NONE;
    if (is_fine) result(g, r);
    for (uint32_t i = 0; i < carried && is_fine; i++) {
        r = own(g, similar(g, p[2 + i], false));
        is_fine = r != G_NONE && same_type_and_shape(g, r, p[2 + i]);
        if (is_fine) result(g, r);
    }
    for (uint32_t i = 0; i < scanned && is_fine; i++) {
        r = own(g, grow_find(g, T_ALL, 0, 5));
        is_fine = r != G_NONE;
        if (is_fine) result(g, r);
    }
    const uint32_t scope = grow_close(g, o);
    if (!is_fine || g->is_refused) return false;
    const uint32_t n = grow_begin(g, op->name);
    for (uint32_t i = 0; i < 2 + carried; i++) grow_in(g, n, in[i]);
    attach(g, n, "body", scope);
    return grow_end(g, n, carried + scanned) != G_NONE;
}

/* What a slice of `v` along an axis is, with the data of the first turn. */
static uint32_t param_slice(grow *g, uint32_t v, uint32_t axis)
{
    gmodel *m = g->m;
    const uint32_t p = param(g, grow_type(g, v), grow_rank(g, v) - 1);
    for (uint32_t k = 0; k < m->envs; k++) judge_slice(m, p, v, axis, 0, k);
    *(uint32_t *)VEC_PUSH(m->a, &g->seen) = p;
    m->value.at[p].has_no_shape = grow_one_in(g, 4);
    return p;
}

static bool make_scan(grow *g, const gop *op)
{
    if (g->depth > 1) return false;
    const uint32_t carried = grow_below(g, 3), scanned = 1 + grow_below(g, 2),
                   outs = 1 + grow_below(g, 2) - (carried > 0);
    uint32_t in[4], p[4];
    int64_t axis[2] = { 0 }, turn[2] = { 0 }, out_turn[2] = { 0 }, out_axis[2] = { 0 };
    for (uint32_t i = 0; i < carried; i++) in[i] = grow_pick(g, T_ALL, 0, 4);
    const uint32_t x = grow_pick(g, T_ALL, 1, 5);
    if (x == G_NONE) return false;
    axis[0] = grow_below(g, grow_rank(g, x));
    in[carried] = x;
    in[carried + 1] = x;
    axis[1] = axis[0];
    for (uint32_t i = 0; i < 2; i++) turn[i] = grow_one_in(g, 3);
    for (uint32_t i = 0; i < carried; i++)
        if (in[i] == G_NONE) return false;
    const opened o = grow_open(g);
    for (uint32_t i = 0; i < carried; i++) p[i] = param_like(g, in[i]);
    for (uint32_t i = 0; i < scanned; i++) p[carried + i] = param_slice(g, in[carried + i], (uint32_t)axis[i]);
    body(g, 1 + grow_below(g, 4));
    bool is_fine = !g->is_refused;
    for (uint32_t i = 0; i < carried && is_fine; i++) {
        const uint32_t r = own(g, similar(g, p[i], false));
        is_fine = r != G_NONE && same_type_and_shape(g, r, p[i]);
        if (is_fine) result(g, r);
    }
    for (uint32_t i = 0; i < outs && is_fine; i++) {
        const uint32_t r = own(g, grow_find(g, T_ALL, 0, 5));
        is_fine = r != G_NONE;
        if (!is_fine) break;
        result(g, r);
        out_axis[i] = grow_one_in(g, 3) ? grow_below(g, grow_rank(g, r) + 1) : 0;
        out_turn[i] = grow_one_in(g, 4);
    }
    const uint32_t scope = grow_close(g, o);
    if (!is_fine || g->is_refused) return false;
    const uint32_t n = grow_begin(g, op->name);
    for (uint32_t i = 0; i < carried + scanned; i++) grow_in(g, n, in[i]);
    grow_int(g, n, "num_scan_inputs", scanned);
    grow_list(g, n, "scan_input_axes", axis, scanned);
    grow_list(g, n, "scan_input_directions", turn, scanned);
    if (outs) grow_list(g, n, "scan_output_axes", out_axis, outs);
    if (outs) grow_list(g, n, "scan_output_directions", out_turn, outs);
    attach(g, n, "body", scope);
    return grow_end(g, n, carried + outs) != G_NONE;
}

/* A body for each tensor of a sequence, and one or all of what that gives. */
static bool make_map(grow *g, const gop *op)
{
    if (g->depth > 1) return false;
    const uint32_t x = grow_pick(g, T_ALL, 0, 4), count = 1 + grow_below(g, 3);
    if (x == G_NONE) return false;
    gsize d[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < grow_rank(g, x); i++) d[i] = grow_dim(g, x, i);
    uint32_t in[3] = { x };
    for (uint32_t i = 1; i < count; i++) in[i] = grow_shaped(g, grow_type(g, x), d, grow_rank(g, x));
    const uint32_t made = grow_begin(g, "SequenceConstruct");
    for (uint32_t i = 0; i < count; i++) grow_in(g, made, in[i]);
    const uint32_t list = grow_end(g, made, 1);
    if (list == G_NONE) return false;
    const opened o = grow_open(g);
    (void)param_like(g, x);
    body(g, 1 + grow_below(g, 3));
    const uint32_t r = own(g, grow_find(g, T_ALL, 0, 5));
    if (r != G_NONE) result(g, r);
    const uint32_t scope = grow_close(g, o);
    if (r == G_NONE || g->is_refused) return false;
    const uint32_t n = grow_begin(g, op->name);
    grow_in(g, n, list);
    attach(g, n, "body", scope);
    const uint32_t mapped = grow_end(g, n, 1);
    if (mapped == G_NONE) return false;
    return grow_2(g, "SequenceAt", mapped, grow_const_scalar(g, SINTER_DTYPE_I64, grow_below(g, count))) != G_NONE;
}

const gop gops_control[] = {
    { "If", 16, 0, 3, make_if, 0, 0, 0 },
    { "Loop", 16, 0, 3, make_loop, 0, 0, 0 },
    { "Scan", 16, 0, 3, make_scan, 0, 0, 0 },
    { "SequenceMap", 17, 0, 1, make_map, 0, 0, 0 },
    { 0 },
};
