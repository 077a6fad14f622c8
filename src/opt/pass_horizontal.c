/* SPDX-License-Identifier: Apache-2.0 */
/* pass_horizontal.c - products of one value with several constant matrices, all bound for attention, become one
 * product.
 *
 * Query, key and value are mostly three products of the same tokens. One product with the matrices side by side reads
 * the tokens once and is one launch; what read the parts reads slices of it, which cost nothing. The same numbers.
 * Products of integers are joined with the chains of scalar functions behind them, whose constants are then rows. */
#include "opt/rewrite.h"

#include <string.h>

enum { PARTS = 8, FAR = 10, CHAIN = 12, LOOKS_MAX = 1024 };

typedef struct part {
    ir_node_id matmul, add; /* add 0: no bias */
    ir_value_id bias, out;
} part;

typedef struct horizontal {
    opt_state *s;
    ir_graph *g;
    ir_builder b;
    arena a;
} horizontal;

static bool reaches(const ir_graph *g, ir_value_id v, arena *a, uint32_t depth, uint32_t *looks)
{
    ir_node_id *reader;
    const arena_mark mark = arena_save(a);
    const uint32_t count = depth && *looks ? ir_readers(g, v, a, &reader) : 0;
    *looks -= *looks > 0;
    bool found = false;
    for (uint32_t i = 0; i < count && !found; i++) {
        const ir_node *n = ir_node_at(g, reader[i]);
        found = n->op == OP_attention ||
                (op_has(n->op, ELEMENTWISE | MOVES) && n->count_out == 1 && reaches(g, n->out[0], a, depth - 1, looks));
    }
    arena_rewind(a, mark);
    return found;
}

bool opt_reaches_attention(const ir_graph *g, ir_value_id v, arena *a)
{
    uint32_t looks = LOOKS_MAX;
    return reaches(g, v, a, FAR, &looks);
}

static int64_t const_dim(const ir_graph *g, ir_value_id v, uint32_t axis)
{
    int64_t d = 0;
    return dim_is_const(g->dims, ir_value_at(g, v)->dim[axis], &d) ? d : 0;
}

/* The product and the constant that is added to it, if `id` is one that can be joined with others. */
static bool part_of(horizontal *h, ir_node_id id, ir_value_id x, part *out)
{
    const ir_node *n = ir_node_at(h->g, id);
    if (n->op != OP_matmul || n->is_dead || n->in[0] != x || !ir_is_const(h->g, n->in[1])) return false;
    const attrs_matmul *attrs = n->attrs;
    const ir_value *w = ir_value_at(h->g, n->in[1]), *y = ir_value_at(h->g, n->out[0]);
    if (attrs->trans_a || w->rank != 2 || y->is_output || sinter_dtype_bits(w->dtype) < 8) return false;
    *out = (part){ .matmul = id, .out = n->out[0] };
    const int64_t columns = const_dim(h->g, n->in[1], attrs->trans_b ? 0 : 1);
    ir_node_id *reader;
    const arena_mark mark = arena_save(&h->a);
    if (y->use_count == 1 && ir_readers(h->g, n->out[0], &h->a, &reader) == 1) {
        const ir_node *add = ir_node_at(h->g, reader[0]);
        const ir_value_id bias = add->op != OP_add ? 0 : add->in[0] == n->out[0] ? add->in[1] : add->in[0];
        if (bias && ir_is_const(h->g, bias) && ir_value_at(h->g, bias)->rank == 1 &&
            const_dim(h->g, bias, 0) == columns && !ir_value_at(h->g, add->out[0])->is_output)
            *out = (part){ .matmul = id, .add = reader[0], .bias = bias, .out = add->out[0] };
    }
    arena_rewind(&h->a, mark);
    return opt_reaches_attention(h->g, out->out, &h->a);
}

static bool fits(const horizontal *h, const part *a, const part *b)
{
    const ir_node *x = ir_node_at(h->g, a->matmul), *y = ir_node_at(h->g, b->matmul);
    return x->parent == y->parent && !a->add == !b->add &&
           ((const attrs_matmul *)x->attrs)->trans_b == ((const attrs_matmul *)y->attrs)->trans_b &&
           ir_value_at(h->g, x->in[1])->dtype == ir_value_at(h->g, y->in[1])->dtype;
}

/* Constants side by side along `axis`. */
static ir_value_id join(horizontal *h, const ir_value_id *in, uint32_t count, uint32_t axis)
{
    return build_folded(&h->b, build_concat(&h->b, in, count, &(attrs_concat){ .axis = axis }));
}

/* Columns of `whole` take the place of `old`, which came from node `from`. */
static void replace_by_part(horizontal *h, ir_value_id whole, int64_t start, int64_t size, ir_value_id old,
                            ir_node_id from)
{
    dim_table *t = h->g->dims;
    build_from(&h->b, &from, 1);
    const uint32_t last = ir_value_at(h->g, whole)->rank - 1;
    ir_value_replace(h->g, old, build_part(&h->b, whole, last, dim_const(t, start), 1, dim_const(t, size)));
}

static sinter_status merge(horizontal *h, ir_value_id x, const part *p, uint32_t count)
{
    ir_graph *g = h->g;
    ir_value_id w[PARTS], b[PARTS];
    ir_node_id product[PARTS], add[PARTS];
    for (uint32_t i = 0; i < count; i++) {
        product[i] = p[i].matmul;
        add[i] = p[i].add;
        w[i] = ir_node_at(g, p[i].matmul)->in[1];
        b[i] = p[i].bias;
    }
    const ir_node first = *ir_node_at(g, p[0].matmul);
    const bool trans_b = ((const attrs_matmul *)first.attrs)->trans_b != 0;
    h->b.region = first.parent;
    build_from(&h->b, product, count);
    ir_value_id y = build_matmul(&h->b, x, join(h, w, count, trans_b ? 0 : 1), first.attrs);
    if (p[0].add) {
        build_from(&h->b, add, count);
        y = build_add(&h->b, y, join(h, b, count, 0));
    }
    if (h->b.status) return h->b.status;
    int64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t columns = const_dim(g, w[i], trans_b ? 0 : 1);
        replace_by_part(h, y, at, columns, p[i].out, p[i].matmul);
        at += columns;
    }
    h->s->fired++;
    return h->b.status;
}

static sinter_status join_readers(horizontal *h, ir_value_id x)
{
    ir_node_id *reader;
    const arena_mark mark = arena_save(&h->a);
    const uint32_t readers = ir_readers(h->g, x, &h->a, &reader);
    part p[PARTS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < readers && count < PARTS; i++)
        if (part_of(h, reader[i], x, &p[count]) && (!count || fits(h, &p[0], &p[count]))) count++;
    arena_rewind(&h->a, mark);
    return count > 1 ? merge(h, x, p, count) : SINTER_OK;
}

/* ---- products of integers ---- */

typedef struct chain {
    ir_node_id product, step[CHAIN];
    uint32_t count, at[CHAIN]; /* at: which input of a step is the step before */
    ir_value_id out[CHAIN + 1];
} chain;

static const ir_node *only_reader(horizontal *h, ir_value_id v)
{
    ir_node_id *reader;
    const ir_value *x = ir_value_at(h->g, v);
    const arena_mark mark = arena_save(&h->a);
    const ir_node_id id =
        x->use_count == 1 && !x->is_output && ir_readers(h->g, v, &h->a, &reader) == 1 ? reader[0] : 0;
    arena_rewind(&h->a, mark);
    return id ? ir_node_at(h->g, id) : NULL;
}

/* A constant of one element, or a row of `columns`. */
static bool is_row(const horizontal *h, ir_value_id v, int64_t columns)
{
    const ir_value *x = ir_value_at(h->g, v);
    return ir_is_const(h->g, v) && sinter_dtype_bits(x->dtype) >= 8 &&
           (x->rank == 0 || (x->rank == 1 && const_dim(h->g, v, 0) == columns));
}

/* A product of x, and what is done to its elements up to a view. */
static bool chain_of(horizontal *h, ir_node_id id, ir_value_id x, chain *c)
{
    const ir_graph *g = h->g;
    const ir_node *n = ir_node_at(g, id);
    if (n->op != OP_matmul_integer || n->is_dead || n->in[0] != x || n->count_in > 3 || !ir_is_const(g, n->in[1]) ||
        ir_value_at(g, n->in[1])->rank != 2)
        return false;
    const int64_t columns = const_dim(g, n->in[1], 1);
    if (columns % 16 || !columns) return false;
    *c = (chain){ .product = id, .out = { n->out[0] } };
    for (;;) {
        const ir_value_id v = c->out[c->count];
        n = only_reader(h, v);
        if (!n) return false;
        if (op_has(n->op, VIEW)) return c->count > 0;
        if (!op_is_scalar(n->op) || n->count_out != 1 || c->count == CHAIN) return false;
        const ir_value *y = ir_value_at(g, n->out[0]), *before = ir_value_at(g, v);
        if (y->rank != before->rank || memcmp(y->dim, before->dim, y->rank * sizeof(dim)) != 0) return false;
        uint32_t found = 0;
        for (uint32_t i = 0; i < n->count_in; i++) {
            if (n->in[i] == v) {
                c->at[c->count] = i;
                found++;
            } else if (!n->in[i] || !is_row(h, n->in[i], columns)) {
                return false;
            }
        }
        if (found != 1) return false;
        c->step[c->count++] = ir_value_at(g, n->out[0])->producer;
        c->out[c->count] = n->out[0];
    }
}

static bool same_constant(const ir_graph *g, ir_value_id a, ir_value_id b)
{
    const ir_value *x = ir_value_at(g, a), *y = ir_value_at(g, b);
    if (a == b) return true;
    return x->data && y->data && x->dtype == y->dtype && x->rank == y->rank && x->data_size == y->data_size &&
           !memcmp(x->data, y->data, x->data_size) && ir_look(g, a) && ir_look(g, b);
}

static bool same_chain(const horizontal *h, const chain *a, const chain *b)
{
    const ir_graph *g = h->g;
    const ir_node *x = ir_node_at(g, a->product), *y = ir_node_at(g, b->product);
    if (x->parent != y->parent || x->count_in != y->count_in || a->count != b->count) return false;
    if (ir_value_at(g, x->in[1])->dtype != ir_value_at(g, y->in[1])->dtype) return false;
    if (x->count_in > 2 && !same_constant(g, x->in[2], y->in[2])) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        x = ir_node_at(g, a->step[i]);
        y = ir_node_at(g, b->step[i]);
        if (x->op != y->op || x->count_in != y->count_in || a->at[i] != b->at[i] ||
            !op_attrs_equal(x->op, x->attrs, y->attrs))
            return false;
        for (uint32_t k = 0; k < x->count_in; k++)
            if (ir_value_at(g, x->in[k])->dtype != ir_value_at(g, y->in[k])->dtype) return false;
    }
    return true;
}

/* A constant as the row that it stands for. */
static ir_value_id as_row(horizontal *h, ir_value_id v, int64_t columns)
{
    const dim size = dim_const(h->g->dims, columns);
    return build_folded(&h->b, build_expanded(&h->b, v, &size, 1));
}

static sinter_status merge_chains(horizontal *h, ir_value_id x, const chain *c, uint32_t count)
{
    ir_graph *g = h->g;
    ir_value_id each[PARTS], in[3];
    ir_node_id from[PARTS];
    const ir_node first = *ir_node_at(g, c[0].product);
    for (uint32_t i = 0; i < count; i++) {
        each[i] = ir_node_at(g, c[i].product)->in[1];
        from[i] = c[i].product;
    }
    h->b.region = first.parent;
    build_from(&h->b, from, count);
    ir_value_id y =
        build_matmul_integer(&h->b, x, join(h, each, count, 1), first.count_in > 2 ? first.in[2] : 0, 0, NULL);
    if (h->b.status) return h->b.status;
    for (uint32_t s = 0; s < c[0].count; s++) {
        const ir_node step = *ir_node_at(g, c[0].step[s]);
        for (uint32_t k = 0; k < step.count_in; k++) {
            if (k == c[0].at[s]) {
                in[k] = y;
                continue;
            }
            in[k] = step.in[k];
            bool is_same = ir_value_at(g, in[k])->rank == 0;
            for (uint32_t i = 1; i < count; i++) is_same &= same_constant(g, in[k], ir_node_at(g, c[i].step[s])->in[k]);
            if (is_same) continue;
            for (uint32_t i = 0; i < count; i++) {
                const int64_t columns = const_dim(g, ir_node_at(g, c[i].product)->in[1], 1);
                each[i] = as_row(h, ir_node_at(g, c[i].step[s])->in[k], columns);
                if (!each[i]) return h->b.status;
            }
            in[k] = join(h, each, count, 0);
            if (!in[k]) return h->b.status;
        }
        for (uint32_t i = 0; i < count; i++) from[i] = c[i].step[s];
        build_from(&h->b, from, count);
        y = build_emit(&h->b, step.op, step.attrs, in, step.count_in);
        if (h->b.status) return h->b.status;
    }
    int64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t columns = const_dim(g, ir_node_at(g, c[i].product)->in[1], 1);
        replace_by_part(h, y, at, columns, c[i].out[c[i].count], c[i].product);
        at += columns;
    }
    h->s->fired++;
    return h->b.status;
}

static sinter_status join_integer_readers(horizontal *h, ir_value_id x)
{
    ir_node_id *reader;
    const arena_mark mark = arena_save(&h->a);
    const uint32_t readers = ir_readers(h->g, x, &h->a, &reader);
    chain *c = ARENA_NEW(&h->a, chain, PARTS);
    if (!c) return FAIL_MEMORY(h->s->e, "joining products");
    uint32_t count = 0;
    for (uint32_t i = 0; i < readers && count < PARTS; i++)
        if (chain_of(h, reader[i], x, &c[count]) && (!count || same_chain(h, &c[0], &c[count]))) count++;
    const sinter_status status = count > 1 ? merge_chains(h, x, c, count) : SINTER_OK;
    arena_rewind(&h->a, mark);
    return status;
}

sinter_status pass_horizontal(opt_state *s)
{
    horizontal h = { .s = s, .g = s->g, .b = { .g = s->g } };
    arena_init(&h.a, s->e);
    sinter_status status = SINTER_OK;
    const uint32_t values = s->g->value.count;
    for (ir_value_id v = 1; v < values && status == SINTER_OK; v++)
        if (ir_value_at(s->g, v)->use_count > 1 && !ir_is_const(s->g, v)) {
            status = join_readers(&h, v);
            if (s->integers && status == SINTER_OK) status = join_integer_readers(&h, v);
        }
    arena_deinit(&h.a);
    return status == SINTER_OK ? ir_sweep(s->g) : status;
}
