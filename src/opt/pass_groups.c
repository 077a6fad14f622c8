/* SPDX-License-Identifier: Apache-2.0 */
/* pass_groups.c - forms legal groups: an anchor with a prologue and an epilogue, or elementwise ops alone.
 *
 * Every node has a place in one topological order, and a group runs at the place of one of its nodes, its time. A graph
 * of groups has no cycle while each operand's time is before its reader's; so legality is a comparison of two numbers,
 * and the pass is linear.
 *   1. Epilogues grow forwards from each anchor, over readers of the same shape whose other operands are there before
 * the anchor runs. The order is by depth, so a residual sum meets the later of its two producers.
 *   2. What is left grows backwards from its last node, over producers of the same shape that nobody needs earlier.
 *   3. A lone program that only feeds the first input of an anchor that takes a prologue becomes that.
 * Values that are read outside their group are stored by it, at most four. */
#include "ir/build.h"
#include "opt/pipeline.h"

#include <stdlib.h>
#include <string.h>

enum { OPERANDS_MAX = 16, RESULTS_MAX = 4, FAN_MAX = 256 };

typedef struct group {
    uint32_t count, pos; /* members; the group's time */
    ir_node_id member[EXPR_MAX];
    ir_node_id anchor; /* 0: none */
    uint32_t id;
} group;

typedef struct grouping {
    opt_state *s;
    ir_graph *g;
    arena a;
    ir_node_id *order; /* of the region */
    uint32_t count;
    uint32_t *pos;   /* place of each node */
    uint32_t *time;  /* place of the node's group; its own while it has none */
    uint32_t *owner; /* id of the node's group; 0: none */
    uint32_t groups;
} grouping;

/* ---- order ---- */

typedef struct place {
    uint32_t level;
    ir_node_id node;
} place;

static int by_level(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->level != y->level) return x->level < y->level ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* By depth, unless late symbols add dependencies that depth over data does not show. */
static sinter_status set_order(grouping *x, ir_region_id region)
{
    ir_graph *g = x->g;
    TRY(ir_order(g, region, &x->a, &x->order, &x->count));
    if (!dim_has_late(g->dims)) {
        place *at = ARENA_NEW(&x->a, place, (size_t)x->count + 1);
        if (!at) return FAIL_MEMORY(x->s->e, "groups");
        for (uint32_t i = 0; i < x->count; i++) {
            const ir_node *n = &g->node.at[x->order[i]];
            uint32_t level = 0;
            for (uint32_t k = 0; k < n->count_in; k++) {
                const ir_node_id p = ir_value_at(g, n->in[k])->producer;
                if (p && x->pos[p] >= level) level = x->pos[p] + 1;
            }
            x->pos[x->order[i]] = level;
            at[i] = (place){ level, x->order[i] };
        }
        qsort(at, x->count, sizeof(*at), by_level);
        for (uint32_t i = 0; i < x->count; i++) x->order[i] = at[i].node;
    }
    for (uint32_t i = 0; i < x->count; i++) x->pos[x->order[i]] = x->time[x->order[i]] = i + 1;
    return SINTER_OK;
}

/* ---- what may be a member ---- */

/* A number of 8 bits, or what chooses between floats: nothing that steers. */
static bool is_data(const grouping *x, ir_value_id id)
{
    const ir_value *v = ir_value_at(x->g, id);
    if (!x->s->integers || v->is_output) return false;
    if (v->dtype != SINTER_DTYPE_BOOL) return sinter_dtype_bits(v->dtype) == 8;
    const ir_use_list use = x->g->use.at[id];
    for (uint32_t i = 0; i < use.count; i++) {
        const ir_node *n = &x->g->node.at[use.at[i] >> 1];
        if (use.at[i] & 1u || n->op != OP_where || !dtype_is_float(ir_value_at(x->g, n->out[0])->dtype)) return false;
    }
    return true;
}

/* Small integers and conditions steer the host: they stay single nodes. */
static bool is_host_value(const grouping *x, ir_value_id id)
{
    const ir_graph *g = x->g;
    const ir_value *v = ir_value_at(g, id);
    if (v->rank > 1 || !(dtype_is_int(v->dtype) || v->dtype == SINTER_DTYPE_BOOL) || is_data(x, id)) return false;
    int64_t count = 1;
    return v->rank == 0 || (dim_is_const(g->dims, v->dim[0], &count) && count <= 64);
}

static bool is_elementwise(const grouping *x, ir_node_id id)
{
    const ir_node *n = &x->g->node.at[id];
    return !n->is_dead && op_is_scalar(n->op) && n->count_out == 1 && !is_host_value(x, n->out[0]);
}

static bool same_space(const ir_graph *g, ir_value_id a, ir_value_id b)
{
    const ir_value *x = ir_value_at(g, a), *y = ir_value_at(g, b);
    return x->rank == y->rank && !memcmp(x->dim, y->dim, x->rank * sizeof(dim));
}

/* A constant of one element becomes an immediate, unless the node owes it its rank. */
static bool is_immediate(const ir_graph *g, const ir_node *n, ir_value_id v)
{
    const ir_value *c = ir_value_at(g, v), *y = ir_value_at(g, n->out[0]);
    if (!c->data || c->is_open) return false;
    for (uint32_t i = 0; i < c->rank; i++)
        if (!dim_is(g->dims, c->dim[i], 1)) return false;
    if (sinter_dtype_bits(c->dtype) < 8) return false;
    for (uint32_t i = 0; i < n->count_in; i++)
        if (!ir_is_const(g, n->in[i]) && ir_value_at(g, n->in[i])->rank == y->rank) return true;
    return c->rank == 0 && y->rank == 0;
}

/* ---- a group's program ---- */

typedef struct builder {
    const grouping *x;
    const group *u;
    ir_value_id in[OPERANDS_MAX], result[RESULTS_MAX];
    uint32_t count_in, count_result, count, base;
    ir_value_id at_value[EXPR_MAX]; /* what each instruction computes; 0: something of its own */
    expr_instr at[EXPR_MAX];
} builder;

static bool push(builder *b, expr_instr i, ir_value_id v, uint16_t *out)
{
    if (b->count == EXPR_MAX) return false;
    *out = (uint16_t)b->count;
    b->at[b->count] = i;
    b->at_value[b->count++] = v;
    return true;
}

static bool leaf(builder *b, const ir_node *n, ir_value_id v, uint16_t *out)
{
    const ir_graph *g = b->x->g;
    const ir_value *x = ir_value_at(g, v);
    const uint8_t dtype = (uint8_t)x->dtype;
    for (uint32_t i = 0; i < b->count; i++)
        if (b->at_value[i] == v) {
            *out = (uint16_t)i;
            return true;
        }
    if (b->u->anchor && v == g->node.at[b->u->anchor].out[0])
        return push(b, (expr_instr){ .op = EXPR_ACC, .dtype = dtype }, v, out);
    if (is_immediate(g, n, v) && ir_look(g, v))
        return push(b, (expr_instr){ .op = EXPR_IMM, .dtype = dtype, .imm = scalar_load(x->dtype, x->data, 0) }, v,
                    out);
    if (b->count_in == OPERANDS_MAX) return false;
    b->in[b->count_in] = v;
    return push(b, (expr_instr){ .op = EXPR_LOAD, .dtype = dtype, .operand = (uint16_t)(b->base + b->count_in++) }, v,
                out);
}

static bool instruction(builder *b, const ir_node *n)
{
    const ir_graph *g = b->x->g;
    expr_instr i = { .op = (uint16_t)n->op, .dtype = (uint8_t)ir_value_at(g, n->out[0])->dtype };
    for (uint32_t k = 0; k < n->count_in; k++) {
        if (!n->in[k] || !leaf(b, n, n->in[k], &i.arg[k])) return false;
        /* A pow may have an exponent of another type than its base. */
        const uint8_t wanted = b->at[i.arg[0]].dtype;
        if (n->op == OP_pow && k == 1 && b->at[i.arg[1]].dtype != wanted &&
            !push(b, (expr_instr){ .op = OP_cast, .dtype = wanted, .arg = { i.arg[1] } }, 0, &i.arg[1]))
            return false;
    }
    uint16_t at;
    return push(b, i, n->out[0], &at);
}

/* Uses of a value by the members of its group. */
static uint32_t inner_uses(const grouping *x, const group *u, ir_value_id v)
{
    uint32_t uses = 0;
    for (uint32_t i = 0; i < u->count; i++) {
        const ir_node *n = &x->g->node.at[u->member[i]];
        for (uint32_t k = 0; k < n->count_in; k++) uses += n->in[k] == v;
    }
    return uses;
}

/* Writes the program; false where it breaks a limit. Members are in topological order. */
static bool build(builder *b, const grouping *x, const group *u)
{
    const ir_graph *g = x->g;
    *b = (builder){ .x = x, .u = u, .base = u->anchor ? g->node.at[u->anchor].count_in : 0 };
    for (uint32_t i = 0; i < u->count; i++)
        if (!instruction(b, &g->node.at[u->member[i]])) return false;
    for (uint32_t i = u->count; i-- > 0;) {
        const ir_value_id v = g->node.at[u->member[i]].out[0];
        if (!ir_value_at(g, v)->is_output && ir_value_at(g, v)->use_count == inner_uses(x, u, v)) continue;
        if (b->count_result == RESULTS_MAX || b->count == EXPR_MAX) return false;
        uint16_t from = 0, at;
        while (b->at_value[from] != v) from++;
        const expr_instr store = {
            .op = EXPR_STORE, .dtype = b->at[from].dtype, .arg = { from }, .operand = (uint16_t)b->count_result
        };
        if (!push(b, store, 0, &at)) return false;
        b->result[b->count_result++] = v;
    }
    return b->count_result > 0;
}

static void insert(const grouping *x, group *u, ir_node_id n)
{
    uint32_t i = u->count++;
    for (; i && x->pos[u->member[i - 1]] > x->pos[n]; i--) u->member[i] = u->member[i - 1];
    u->member[i] = n;
}

static void erase(group *u, ir_node_id n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < u->count; i++)
        if (u->member[i] != n) u->member[kept++] = u->member[i];
    u->count = kept;
}

/* The full check of limits is as long as the program, so at most 64 instructions a member. Results are counted only in
 * the end: a value may be read outside for a moment while the group grows. */
static bool within_limits(const grouping *x, const group *u)
{
    builder b = { .x = x, .u = u, .base = u->anchor ? x->g->node.at[u->anchor].count_in : 0 };
    for (uint32_t i = 0; i < u->count; i++)
        if (!instruction(&b, &x->g->node.at[u->member[i]])) return false;
    return b.count + RESULTS_MAX <= EXPR_MAX;
}

/* ---- 1: epilogues ---- */

static bool operands_are_early(const grouping *x, const group *u, const ir_node *n)
{
    for (uint32_t i = 0; i < n->count_in; i++) {
        const ir_node_id p = ir_value_at(x->g, n->in[i])->producer;
        if (p && p != u->anchor && x->owner[p] != u->id && x->time[p] >= u->pos) return false;
    }
    return true;
}

static void release(grouping *x, group *u, ir_node_id n)
{
    x->owner[n] = 0;
    x->time[n] = x->pos[n];
    erase(u, n);
}

/* May `reader` compute `v`, its operand, itself? Of contractions that is not known before kernels are chosen. */
static bool takes_in(const ir_graph *g, const ir_node *reader, ir_value_id v)
{
    if (op_is_scalar(reader->op)) return reader->count_out == 1 && same_space(g, reader->out[0], v);
    const uint32_t traits = op_at(reader->op)->traits;
    return traits & FUSES_BEFORE && !(traits & CONTRACTION) && reader->in[0] == v;
}

/* A dequantised value belongs to who reads it: a quarter of the bytes lie between. */
static bool is_loose(const grouping *x, ir_node_id id)
{
    const ir_node *n = &x->g->node.at[id];
    return x->s->integers && n->op == OP_dequantize && is_elementwise(x, id) &&
           ir_value_at(x->g, n->out[0])->use_count == 1 && !ir_value_at(x->g, n->out[0])->is_output;
}

/* A loose node that `id`, which may become a member, can bring with it. */
static bool comes_along(const grouping *x, const group *u, ir_node_id id)
{
    return id && x->pos[id] && !x->owner[id] && is_loose(x, id) &&
           x->g->node.at[id].parent == x->g->node.at[u->anchor].parent &&
           same_space(x->g, x->g->node.at[id].out[0], x->g->node.at[u->anchor].out[0]) &&
           operands_are_early(x, u, &x->g->node.at[id]);
}

/* Puts a node into the group, with what it brings; false where it cannot be. */
static bool take(grouping *x, group *u, ir_node_id id)
{
    ir_node_id in[4] = { id };
    uint32_t count = 1;
    const ir_node *n = &x->g->node.at[id];
    for (uint32_t i = 0; i < n->count_in; i++) {
        const ir_node_id p = ir_value_at(x->g, n->in[i])->producer;
        if (!p || p == u->anchor || x->owner[p] == u->id) continue;
        if (count < COUNT_OF(in) && comes_along(x, u, p)) in[count++] = p;
        else if (x->time[p] >= u->pos) return false;
    }
    if (u->count + count > EXPR_MAX) return false;
    for (uint32_t i = 0; i < count; i++) insert(x, u, in[i]);
    const bool ok = within_limits(x, u);
    for (uint32_t i = 0; i < count; i++) {
        if (!ok) erase(u, in[i]);
        x->owner[in[i]] = ok ? u->id : 0;
        if (ok) x->time[in[i]] = u->pos;
    }
    return ok;
}

/* Gives back loose nodes whose reader is outside, and can do with less. */
static void give_back(grouping *x, group *u)
{
    const ir_graph *g = x->g;
    for (uint32_t i = u->count; i-- > 0;) {
        const ir_node_id id = u->member[i];
        if (!is_loose(x, id) || inner_uses(x, u, g->node.at[id].out[0])) continue;
        const ir_value_id v = g->node.at[id].out[0];
        const ir_use_list use = g->use.at[v];
        for (uint32_t k = 0; k < use.count; k++) {
            const ir_node *n = &g->node.at[use.at[k] >> 1];
            bool reads = false;
            for (uint32_t j = 0; !(use.at[k] & 1u) && !n->is_dead && j < n->count_in; j++) reads |= n->in[j] == v;
            if (!reads || !takes_in(g, n, v)) continue;
            release(x, u, id);
            break;
        }
    }
}

static void grow_forwards(grouping *x, group *u)
{
    ir_graph *g = x->g;
    const ir_value_id space = g->node.at[u->anchor].out[0];
    /* Members come in the order in which they are found; each is visited once as a source of readers. */
    ir_node_id found[EXPR_MAX + 1];
    uint32_t count = 0;
    found[count++] = u->anchor;
    for (uint32_t i = 0; i < count; i++) {
        const ir_use_list use = g->use.at[g->node.at[found[i]].out[0]];
        for (uint32_t k = 0; k < use.count && k < FAN_MAX && count < EXPR_MAX; k++) {
            const ir_node_id id = use.at[k] >> 1;
            if (use.at[k] & 1u || !is_elementwise(x, id) || x->owner[id] || x->pos[id] == 0) continue;
            const ir_node *n = &g->node.at[id];
            if (n->parent != g->node.at[u->anchor].parent || !same_space(g, n->out[0], space) || !take(x, u, id))
                continue;
            found[count++] = id;
        }
    }
}

/* Shrinks from the end until the results fit; false where nothing is left. */
static bool settle(grouping *x, group *u, builder *b)
{
    while (u->count && !build(b, x, u)) release(x, u, u->member[u->count - 1]);
    return u->count > 0;
}

static sinter_status emit_epilogue(grouping *x, group *u, const builder *b)
{
    ir_graph *g = x->g;
    expr *program = arena_alloc(&g->a, expr_size(b->count), _Alignof(expr));
    if (!program) return FAIL_MEMORY(x->s->e, "a program");
    program->count = b->count;
    memcpy(program->at, b->at, b->count * sizeof(*b->at));
    for (uint32_t i = u->count; i-- > 0;) {
        TRY(ir_origin_unite(g, u->anchor, u->member[i]));
        ir_node_kill(g, u->member[i]);
    }
    TRY(ir_node_add_in(g, u->anchor, b->in, b->count_in));
    TRY(ir_node_set_out(g, u->anchor, 0, b->result[0]));
    for (uint32_t i = 1; i < b->count_result; i++)
        if (!ir_node_add_out(g, u->anchor, b->result[i])) return FAIL_MEMORY(x->s->e, "a result");
    g->node.at[u->anchor].epilogue = program;
    return SINTER_OK;
}

static sinter_status grow_epilogues(grouping *x)
{
    ir_graph *g = x->g;
    for (uint32_t i = 0; i < x->count; i++) {
        const ir_node_id id = x->order[i];
        const ir_node *n = &g->node.at[id];
        if (n->is_dead || !(op_at(n->op)->traits & FUSES_AFTER) || n->count_out != 1 || n->epilogue || n->count_region)
            continue;
        const ir_value *v = ir_value_at(g, n->out[0]);
        if (v->is_output || !v->use_count) continue;
        group u = { .anchor = id, .pos = x->pos[id], .id = ++x->groups };
        builder b;
        grow_forwards(x, &u);
        give_back(x, &u);
        bool ok = settle(x, &u, &b);
        if (x->s->integers) {
            give_back(x, &u);
            ok = settle(x, &u, &b);
        }
        ok = ok && inner_uses(x, &u, n->out[0]) == v->use_count;
        if (!ok) {
            while (u.count) release(x, &u, u.member[u.count - 1]);
            continue;
        }
        TRY(emit_epilogue(x, &u, &b));
    }
    return SINTER_OK;
}

/* ---- 2: programs without an anchor ---- */

static bool readers_are_late(const grouping *x, const group *u, ir_value_id v)
{
    const ir_graph *g = x->g;
    const ir_use_list use = g->use.at[v];
    for (uint32_t i = 0; i < use.count; i++) {
        if (use.at[i] & 1u) continue;
        const ir_node_id id = use.at[i] >> 1;
        const ir_node *n = &g->node.at[id];
        if (n->is_dead || (id < x->s->g->node.count && x->owner[id] == u->id)) continue;
        bool reads = false;
        for (uint32_t k = 0; k < n->count_in; k++) reads |= n->in[k] == v;
        if (reads && x->time[id] <= u->pos) return false;
    }
    return true;
}

static void grow_backwards(grouping *x, group *u, ir_node_id seed)
{
    ir_graph *g = x->g;
    ir_node_id stack[EXPR_MAX * 3 + 3];
    uint32_t top = 0;
    const ir_value_id space = g->node.at[seed].out[0];
    stack[top++] = seed;
    while (top) {
        const ir_node *n = &g->node.at[stack[--top]];
        for (uint32_t i = 0; i < n->count_in; i++) {
            const ir_value_id v = n->in[i];
            const ir_node_id p = ir_value_at(g, v)->producer;
            if (!p || x->owner[p] || !x->pos[p] || u->count == EXPR_MAX || !is_elementwise(x, p)) continue;
            if (g->node.at[p].parent != g->node.at[seed].parent || !same_space(g, v, space) ||
                !readers_are_late(x, u, v))
                continue;
            insert(x, u, p);
            builder b;
            if (!build(&b, x, u)) {
                erase(u, p);
                continue;
            }
            x->owner[p] = u->id;
            x->time[p] = u->pos;
            if (top < COUNT_OF(stack)) stack[top++] = p;
        }
    }
}

/* Nodes made here are behind the tables, which have room for one a member. */
static sinter_status emit_pointwise(grouping *x, group *u, const builder *b, ir_node_id seed)
{
    ir_graph *g = x->g;
    expr *program = arena_alloc(&g->a, expr_size(b->count), _Alignof(expr));
    if (!program) return FAIL_MEMORY(x->s->e, "a program");
    program->count = b->count;
    memcpy(program->at, b->at, b->count * sizeof(*b->at));
    const ir_node_id id = ir_node_new(g, g->node.at[seed].parent, OP_pointwise, NULL, b->in, b->count_in, 0);
    if (!id) return SINTER_NO_MEMORY;
    g->node.at[id].name = g->node.at[seed].name;
    for (uint32_t i = u->count; i-- > 0;) {
        TRY(ir_origin_unite(g, id, u->member[i]));
        ir_node_kill(g, u->member[i]);
    }
    for (uint32_t i = 0; i < b->count_result; i++)
        if (!ir_node_add_out(g, id, b->result[i])) return FAIL_MEMORY(x->s->e, "a result");
    g->node.at[id].epilogue = program;
    x->owner[id] = u->id;
    x->time[id] = u->pos;
    return SINTER_OK;
}

static sinter_status grow_programs(grouping *x)
{
    ir_graph *g = x->g;
    for (uint32_t i = x->count; i-- > 0;) {
        const ir_node_id id = x->order[i];
        if (x->owner[id] || !is_elementwise(x, id)) continue;
        group u = { .pos = x->pos[id], .id = ++x->groups };
        builder b;
        insert(x, &u, id);
        if (!build(&b, x, &u)) continue;
        x->owner[id] = u.id;
        grow_backwards(x, &u, id);
        if (!build(&b, x, &u))
            return FAIL(x->s->e, INTERNAL, "a group at node %s outgrew its limits", ir_node_label(g, id));
        TRY(emit_pointwise(x, &u, &b, id));
    }
    return SINTER_OK;
}

/* ---- 3: prologues ---- */

static sinter_status attach_prologue(grouping *x, ir_node_id id)
{
    ir_graph *g = x->g;
    const ir_node *r = &g->node.at[id];
    if (r->is_dead || !(op_at(r->op)->traits & FUSES_BEFORE) || r->prologue || !r->count_in) return SINTER_OK;
    if (op_at(r->op)->traits & CONTRACTION && !x->s->o->prologues) return SINTER_OK;
    const ir_value_id v = r->in[0];
    const ir_value *value = ir_value_at(g, v);
    const ir_node_id from = value->producer;
    const ir_node *p = ir_node_at(g, from);
    if (!from || p->op != OP_pointwise || p->count_out != 1 || value->use_count != 1 || value->is_output ||
        p->parent != r->parent)
        return SINTER_OK;
    uint32_t main_in = 0;
    while (main_in < p->count_in && !same_space(g, p->in[main_in], v)) main_in++;
    if (main_in == p->count_in || r->count_in + p->count_in > 2 * OPERANDS_MAX) return SINTER_OK;
    expr *program = expr_copy(&g->a, p->epilogue);
    if (!program) return FAIL_MEMORY(x->s->e, "a program");
    ir_value_id extra[OPERANDS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count_in; i++)
        if (i != main_in) extra[count++] = p->in[i];
    for (uint32_t i = 0; i < program->count; i++) {
        expr_instr *at = &program->at[i];
        if (at->op != EXPR_LOAD) continue;
        const uint32_t k = at->operand;
        at->operand = (uint16_t)(k == main_in ? 0 : r->count_in + (k > main_in ? k - 1 : k));
    }
    const ir_value_id first = p->in[main_in];
    TRY(ir_origin_unite(g, id, from));
    ir_node_set_in(g, id, 0, first);
    TRY(ir_node_add_in(g, id, extra, count));
    g->node.at[id].prologue = program;
    ir_node_kill(g, from);
    return SINTER_OK;
}

static sinter_status group_region(grouping *x, ir_region_id region)
{
    TRY(set_order(x, region));
    TRY(grow_epilogues(x));
    TRY(grow_programs(x));
    for (uint32_t i = 0; i < x->count; i++) TRY(attach_prologue(x, x->order[i]));
    return SINTER_OK;
}

/* Tables by node are made once for all regions: a node belongs to one. */
static sinter_status group_regions(grouping *x)
{
    const ir_graph *g = x->g;
    const size_t room = 2 * (size_t)g->node.count;
    x->pos = ARENA_NEW(&x->a, uint32_t, room);
    x->time = ARENA_NEW(&x->a, uint32_t, room);
    x->owner = ARENA_NEW(&x->a, uint32_t, room);
    if (!x->pos || !x->time || !x->owner) return FAIL_MEMORY(x->s->e, "groups");
    for (ir_region_id r = 1; r < g->region.count; r++) {
        if (r != IR_MAIN && ir_node_at(g, g->region.at[r].owner)->is_dead) continue;
        const arena_mark mark = arena_save(&x->a);
        TRY(group_region(x, r));
        arena_rewind(&x->a, mark);
    }
    return SINTER_OK;
}

/* Each reader that can dequantise by itself gets a node of its own to do so. */
static sinter_status split_dequantized(opt_state *s, arena *a)
{
    ir_graph *g = s->g;
    const ir_node_id last = g->node.count;
    for (ir_node_id id = 1; id < last; id++) {
        const ir_node n = g->node.at[id];
        if (n.is_dead || n.op != OP_dequantize || n.count_out != 1) continue;
        const ir_value_id v = n.out[0];
        ir_node_id *reader;
        const uint32_t count = ir_readers(g, v, a, &reader);
        for (uint32_t i = 0; i < count && i < FAN_MAX; i++) {
            if (ir_value_at(g, v)->use_count < 2 || !takes_in(g, &g->node.at[reader[i]], v)) continue;
            ir_builder b = { .g = g, .region = n.parent };
            build_from(&b, &id, 1);
            const ir_value_id own = build_again(&b, id, n.in, n.count_in);
            if (b.status) return b.status;
            for (uint32_t k = 0; k < g->node.at[reader[i]].count_in; k++)
                if (g->node.at[reader[i]].in[k] == v) ir_node_set_in(g, reader[i], k, own);
        }
    }
    return SINTER_OK;
}

sinter_status pass_groups(opt_state *s)
{
    sinter_status status = SINTER_OK;
    if (s->integers) {
        arena a;
        arena_init(&a, s->e);
        status = split_dequantized(s, &a);
        arena_deinit(&a);
    }
    grouping x = { .s = s, .g = s->g };
    arena_init(&x.a, s->e);
    if (!status) status = group_regions(&x);
    arena_deinit(&x.a);
    return status ? status : ir_sweep(s->g);
}
