/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite.c - the driver of rules.
 *
 * A worklist of nodes; rules are indexed by their root's op. Constants fold on the way, so that rules may compute with
 * constants by emitting ordinary ops. When the list has run dry and something fired, everything is looked at once more:
 * a deep pattern may have come to match far from the last change. Work is linear in nodes for each such round, and
 * rounds are few. */
#include "opt/rewrite.h"

#include <math.h>
#include <string.h>

typedef VEC(ir_node_id) node_list;
typedef struct driver {
    rewriter r;
    ir_builder b;
    arena a;
    const rule **rule_at; /* rules grouped by root op */
    uint32_t start[OP_COUNT + 1];
    node_list queue;
    uint32_t head;
    bool *is_queued;
    uint32_t queued_size;
    uint64_t budget, fired;
} driver;

static bool is_disabled(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; at && (at = strstr(at, name)); at += length) {
        const char before = at == list ? ',' : at[-1], after = at[length];
        const bool starts =
            before == ',' || before == ' ' || (before == '-' && (at == list + 1 || at[-2] == ',' || at[-2] == ' '));
        if (starts && (after == 0 || after == ',' || after == ' ')) return true;
    }
    return false;
}

static bool has_rule(const char *name, size_t length)
{
    for (const pass *p = opt_pipeline; p->name; p++)
        for (const rule *const *t = p->rules; *t; t++)
            for (const rule *x = *t; x->name; x++)
                if (strlen(x->name) == length && !memcmp(x->name, name, length)) return true;
    return false;
}

sinter_status opt_rules_check(env *e, const char *list)
{
    for (const char *at = list; at; at = *at ? at + 1 : NULL) {
        at += *at == '-';
        const size_t length = strcspn(at, ", ");
        if (!has_rule(at, length)) return FAIL(e, INVALID_ARG, "there is no rule '%.*s'", (int)length, at);
        at += length;
    }
    return SINTER_OK;
}

static bool is_permitted(const opt_options *o, const rule *x)
{
    const rule_numerics most = o->math == OPT_MATH_EXACT ? EXACT : o->math == OPT_MATH_FP32 ? REASSOC : ROUNDS;
    return x->numerics <= most && !is_disabled(o->disabled, x->name);
}

static bool has_root(const rule *x, op_id op)
{
    return x->root->kind == PATTERN_SCALAR ? op_is_scalar(op) : x->root->op == op;
}

static sinter_status index_rules(driver *d, const rule *const *tables)
{
    uint32_t total = 0;
    for (int second = 0; second < 2; second++) {
        total = 0;
        for (uint32_t op = 0; op < OP_COUNT; op++) {
            if (second) d->start[op] = total;
            for (const rule *const *t = tables; *t; t++)
                for (const rule *x = *t; x->name; x++) {
                    if (!has_root(x, (op_id)op) || !is_permitted(d->r.s->o, x)) continue;
                    if (second) d->rule_at[total] = x;
                    total++;
                }
        }
        d->start[OP_COUNT] = total;
        if (!second) d->rule_at = ARENA_NEW(&d->a, const rule *, (size_t)total + 1);
        if (!d->rule_at) return FAIL_MEMORY(d->r.s->e, "rewriting");
    }
    return SINTER_OK;
}

static void enqueue(driver *d, ir_node_id n)
{
    if (n >= d->queued_size) {
        const uint32_t size = (n + 1) * 2;
        bool *grown = ARENA_NEW(&d->a, bool, size);
        if (!grown) return;
        if (d->queued_size) memcpy(grown, d->is_queued, d->queued_size);
        d->is_queued = grown;
        d->queued_size = size;
    }
    if (d->is_queued[n]) return;
    if (d->head > 4096 && d->head * 2 > d->queue.count) {
        memmove(d->queue.at, d->queue.at + d->head, (d->queue.count - d->head) * sizeof(*d->queue.at));
        d->queue.count -= d->head;
        d->head = 0;
    }
    ir_node_id *slot = VEC_PUSH(&d->a, &d->queue);
    if (!slot) return;
    *slot = n;
    d->is_queued[n] = true;
}

enum { FAN_MAX = 64 };
static void enqueue_readers(driver *d, ir_value_id v)
{
    /* A value that hundreds read is left to the next round. */
    const ir_use_list *use = &d->r.g->use.at[v];
    for (uint32_t i = 0; i < use->count && i < FAN_MAX; i++)
        if (!(use->at[i] & 1u) && !d->r.g->node.at[use->at[i] >> 1].is_dead) enqueue(d, use->at[i] >> 1);
}

static bool is_unused(const ir_graph *g, ir_node_id id)
{
    const ir_node *n = &g->node.at[id];
    if (n->is_dead || n->count_region || op_at(n->op)->traits & LATE) return false; /* may bind sizes: ir_sweep knows */
    for (uint32_t i = 0; i < n->count_out; i++)
        if (ir_value_at(g, n->out[i])->use_count) return false;
    return true;
}

/* Kills what nobody reads from `n` backwards, not further than `first`; its origins go to `heir`. */
static sinter_status collect(driver *d, ir_node_id n, ir_node_id first, ir_node_id heir)
{
    ir_graph *g = d->r.g;
    if (!is_unused(g, n)) return SINTER_OK;
    node_list stack = { 0 };
    ir_node_id *slot = VEC_PUSH(&d->a, &stack);
    if (!slot) return FAIL_MEMORY(g->e, "rewriting");
    *slot = n;
    while (stack.count) {
        const ir_node_id id = stack.at[--stack.count];
        if (id < first || !is_unused(g, id)) continue;
        ir_node_kill(g, id);
        if (heir) TRY(ir_origin_unite(g, heir, id));
        const ir_node *dead = &g->node.at[id];
        for (uint32_t i = 0; i < dead->count_in; i++) {
            const ir_value *v = ir_value_at(g, dead->in[i]);
            if (!first && v->use_count == 1) enqueue_readers(d, dead->in[i]);
            if (!v->producer || v->use_count || v->is_output) continue;
            slot = VEC_PUSH(&d->a, &stack);
            if (!slot) return FAIL_MEMORY(g->e, "rewriting");
            *slot = v->producer;
        }
    }
    return SINTER_OK;
}

static bool may_replace(const ir_graph *g, ir_value_id from, ir_value_id to)
{
    const ir_value *f = ir_value_at(g, from), *t = ir_value_at(g, to);
    if (from == to || f->dtype != t->dtype || f->rank != t->rank) return false;
    for (uint32_t i = 0; i < f->rank; i++)
        if (f->dim[i] != t->dim[i]) return false;
    /* An output that would only become a copy of something gains nothing. */
    if (f->is_output && (!t->producer || t->is_output || g->node.at[t->producer].parent != IR_MAIN)) return false;
    return true;
}

static sinter_status fire(driver *d, const rule *x, const match *m)
{
    ir_graph *g = d->r.g;
    opt_state *s = d->r.s;
    const ir_node_id before = g->node.count;
    d->b = (ir_builder){ .g = g, .region = g->node.at[m->root].parent, .name = g->node.at[m->root].name };
    for (uint32_t i = 1; i < g->node.at[m->root].count_out; i++)
        if (ir_value_at(g, g->node.at[m->root].out[i])->use_count) return SINTER_OK;
    const ir_value_id to = x->apply(&d->r, m);
    if (g->a.failed || dim_table_failed(g->dims)) return FAIL_MEMORY(s->e, "rewriting");
    /* A rule built something that the builder refuses: the rule is wrong, whatever the model. */
    if (d->b.status)
        return NOTE(s->e, d->b.status, "while applying rule %s at node %s", x->name, ir_node_label(g, m->root));
    const ir_value_id from = g->node.at[m->root].out[0];
    if (!to || !may_replace(g, from, to)) {
        for (ir_node_id n = g->node.count; n-- > before;)
            TRY(collect(d, n, before, 0)); /* what a declining rule left; nothing changed */
        return SINTER_OK;
    }
    for (ir_node_id n = before; n < g->node.count; n++) enqueue(d, n);
    const ir_node_id maker = ir_value_at(g, to)->producer;
    const bool swaps = ir_value_at(g, from)->is_output;
    ir_value_replace(g, from, to);
    TRY(collect(d, m->root, 0, maker >= before ? maker : 0));
    for (ir_node_id n = before; n < g->node.count; n++) TRY(collect(d, n, 0, 0));
    enqueue_readers(d, swaps ? from : to);
    if (maker) enqueue(d, maker);
    d->fired++;
    s->fired++;
    if (s->o->fired) s->o->fired(s->o->fired_user, x->name);
    if (env_logs(s->e, LOG_OPT)) env_log(s->e, LOG_OPT, "%s at %s", x->name, ir_node_label(g, m->root));
    if (d->fired > d->budget)
        return FAIL(s->e, INTERNAL, "rule %s still fires at node %s, value %u, after %llu firings", x->name,
                    ir_node_label(g, m->root), from, (unsigned long long)d->fired);
    return SINTER_OK;
}

/* An if whose condition is known is the branch that it takes. */
static sinter_status inline_if(driver *d, ir_node_id id, bool *done)
{
    ir_graph *g = d->r.g;
    const ir_node *n = &g->node.at[id];
    double condition;
    if (n->op != OP_if || !ir_const_scalar(g, n->in[0], &condition)) return SINTER_OK;
    const uint32_t taken = condition != 0 ? 0 : 1, count = n->count_out;
    const ir_node_id before = g->node.count;
    ir_value_id *result = ARENA_NEW(&d->a, ir_value_id, count);
    if (!result) return FAIL_MEMORY(g->e, "rewriting");
    TRY(ir_region_inline(g, id, taken, n->in + 1, result));
    for (uint32_t i = 0; i < count; i++) {
        ir_value_replace(g, g->node.at[id].out[i], result[i]);
        enqueue_readers(d, result[i]);
    }
    ir_node_kill(g, id);
    for (ir_node_id k = before; k < g->node.count; k++) enqueue(d, k);
    *done = true;
    return SINTER_OK;
}

/* Integers known as expressions are written down as such: the ops that computed them die. Expressions over late symbols
 * stay computed, since the bind node may read the very value. */
static sinter_status settle_shape_value(driver *d, ir_node_id id, bool *done)
{
    ir_graph *g = d->r.g;
    const ir_node *n = &g->node.at[id];
    if (n->op == OP_shape_value || n->count_out != 1 || op_at(n->op)->regions || n->epilogue) return SINTER_OK;
    const ir_value *v = &g->value.at[n->out[0]];
    if (!v->shape_value || v->rank > 1 || !dtype_is_int(v->dtype) || v->is_output || !v->use_count) return SINTER_OK;
    for (uint32_t i = 0; i < v->shape_count; i++)
        if (dim_is_late(g->dims, v->shape_value[i])) return SINTER_OK;
    ir_builder b = { .g = g, .region = n->parent, .name = n->name };
    const attr_dims sizes = build_dims(&b, v->shape_value, v->shape_count);
    const ir_value_id from = n->out[0],
                      to = build_shape_value(
                          &b, &(attrs_shape_value){ .value = sizes, .scalar = v->rank == 0, .type = v->dtype });
    if (b.status) return b.status;
    const ir_node_id fresh = ir_value_at(g, to)->producer;
    if (!may_replace(g, from, to)) {
        ir_node_kill(g, fresh);
        return SINTER_OK;
    }
    ir_value_replace(g, from, to);
    enqueue(d, fresh);
    TRY(collect(d, id, 0, fresh));
    *done = true;
    return SINTER_OK;
}

static sinter_status visit(driver *d, ir_node_id id)
{
    ir_graph *g = d->r.g;
    if (g->node.at[id].is_dead) return SINTER_OK;
    if (is_unused(g, id)) return collect(d, id, 0, 0);
    bool done = false;
    TRY(inline_if(d, id, &done));
    if (!done) TRY(settle_shape_value(d, id, &done));
    if (done) return SINTER_OK;
    TRY(ir_fold(g, id, 0, &done));
    if (done) {
        for (uint32_t i = 0; i < g->node.at[id].count_out; i++) enqueue_readers(d, g->node.at[id].out[i]);
        return SINTER_OK;
    }
    const op_id op = g->node.at[id].op;
    for (uint32_t i = d->start[op]; i < d->start[op + 1]; i++) {
        if (d->r.s->o->rule_limit && d->r.s->fired >= d->r.s->o->rule_limit) return SINTER_OK;
        match m;
        const uint64_t fired = d->fired;
        if (!match_node(g, d->rule_at[i]->root, id, &m)) continue;
        TRY(fire(d, d->rule_at[i], &m));
        if (d->fired != fired) {
            if (!g->node.at[id].is_dead) enqueue(d, id);
            return SINTER_OK;
        }
    }
    return SINTER_OK;
}

static sinter_status drive(driver *d, const rule *const *tables)
{
    enum { ROUNDS_MAX = 16 };
    ir_graph *g = d->r.g;
    TRY(index_rules(d, tables));
    d->budget = (uint64_t)g->node.count * 16 + 1000;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        const uint64_t fired = d->fired;
        for (ir_node_id n = 1; n < g->node.count; n++)
            if (!g->node.at[n].is_dead) enqueue(d, n);
        while (d->head < d->queue.count) {
            const ir_node_id n = d->queue.at[d->head++];
            d->is_queued[n] = false;
            TRY(visit(d, n));
        }
        if (d->a.failed) return FAIL_MEMORY(g->e, "rewriting");
        if (d->fired == fired) break;
    }
    return ir_sweep(g);
}

sinter_status opt_rules_run(opt_state *s, const rule *const *tables)
{
    driver d = { .r = { .s = s, .g = s->g } };
    d.r.b = &d.b;
    arena_init(&d.a, s->e);
    const sinter_status status = drive(&d, tables);
    arena_deinit(&d.a);
    return status;
}

/* ---- what rules use ---- */

const ir_node *rw_def(const rewriter *r, ir_value_id v, op_id op)
{
    const ir_value *x = rw_value(r, v);
    if (!x->producer || x->producer_out) return NULL;
    const ir_node *n = &r->g->node.at[x->producer];
    return n->op == op && !n->is_dead ? n : NULL;
}

bool rw_swaps_last(const ir_node *transpose)
{
    const attr_ints *p = &((const attrs_transpose *)transpose->attrs)->perm;
    const uint32_t rank = p->count;
    if (rank < 2 || p->at[rank - 1] != (int64_t)rank - 2 || p->at[rank - 2] != (int64_t)rank - 1) return false;
    for (uint32_t i = 0; i + 2 < rank; i++)
        if (p->at[i] != (int64_t)i) return false;
    return true;
}

ir_value_id rw_swap_last(rewriter *r, ir_value_id v)
{
    const uint32_t rank = rw_value(r, v)->rank;
    int64_t perm[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) perm[i] = i;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    return build_permuted(r->b, v, perm, rank);
}

bool rw_only(const rewriter *r, ir_value_id v)
{
    const ir_value *x = rw_value(r, v);
    return x->use_count == 1 && !x->is_output;
}

bool rw_same_shape(const rewriter *r, ir_value_id a, ir_value_id b)
{
    const ir_value *x = rw_value(r, a), *y = rw_value(r, b);
    return x->rank == y->rank && !memcmp(x->dim, y->dim, x->rank * sizeof(dim));
}

bool rw_scalar(const rewriter *r, ir_value_id v, double *out)
{
    view x;
    if (!v || !ir_const_view(r->g, v, &x)) return false;
    const int64_t count = view_count(&x);
    if (count < 1 || count > 1 << 16) return false;
    const double first = view_load_f64(&x, 0);
    for (int64_t i = 1; i < count; i++)
        if (view_load_f64(&x, i) != first) return false;
    *out = first;
    return ir_look(r->g, v);
}

bool rw_is_scalar(const rewriter *r, ir_value_id v, double want)
{
    double x;
    if (!rw_scalar(r, v, &x)) return false;
    const sinter_dtype t = rw_value(r, v)->dtype;
    const double tolerance = t == SINTER_DTYPE_F16 ? 1e-3 : t == SINTER_DTYPE_BF16 ? 8e-3 : 1e-5;
    return fabs(x - want) <= tolerance * fabs(want);
}

bool rw_is_float(const rewriter *r, ir_value_id v)
{
    return dtype_is_float(rw_value(r, v)->dtype);
}

ir_value_id rw_other_scalar(const rewriter *r, const ir_node *n, double *out)
{
    if (rw_scalar(r, n->in[1], out)) return n->in[0];
    if (rw_scalar(r, n->in[0], out)) return n->in[1];
    return 0;
}

static bool flatten(const rewriter *r, ir_value_id v, bool shared, bool is_root, uint32_t depth, rw_product *out)
{
    const ir_node *n = rw_def(r, v, OP_mul);
    double c;
    if (depth < 8 && (is_root || shared || rw_only(r, v))) {
        if (n)
            return flatten(r, n->in[0], shared, false, depth + 1, out) &&
                   flatten(r, n->in[1], shared, false, depth + 1, out);
        n = rw_def(r, v, OP_div);
        if (n && rw_scalar(r, n->in[1], &c) && c != 0) {
            out->scale /= c;
            return flatten(r, n->in[0], shared, false, depth + 1, out);
        }
    }
    if (rw_scalar(r, v, &c)) {
        out->scale *= c;
        return true;
    }
    if (out->count == COUNT_OF(out->factor)) return false;
    out->factor[out->count++] = v;
    return true;
}

bool rw_product_of(const rewriter *r, ir_value_id v, bool shared, rw_product *out)
{
    *out = (rw_product){ .scale = 1 };
    return flatten(r, v, shared, true, 0, out);
}
