/* SPDX-License-Identifier: Apache-2.0 */
/* pass_rows.c - products around attention take rows in the order in which they lie.
 *
 * A product with a constant matrix works on each row alone, so rows may be put in another order before it or behind it.
 * Attention whose interface has tokens first turns [batch, tokens, size] into [tokens, batch, size] before the product
 * that makes queries, keys and values, and back behind the last one. The first turn moves behind its product, where
 * attention reads through it; the second moves before, to attention's result. Then neither moves any data. */
#include "opt/rewrite.h"

typedef struct rows {
    opt_state *s;
    ir_graph *g;
    ir_builder b;
    arena a;
} rows;

/* A product with a constant matrix, and the constant row that is added to it. */
typedef struct product {
    ir_node_id matmul, add; /* add 0: none */
    ir_value_id bias, out;
} product;

static const ir_node *maker_of(const rows *h, ir_value_id v, op_id op)
{
    const ir_node_id id = v ? ir_value_at(h->g, v)->producer : 0;
    return id && ir_node_at(h->g, id)->op == op ? ir_node_at(h->g, id) : NULL;
}

static bool is_product(const rows *h, ir_node_id id)
{
    const ir_node *n = ir_node_at(h->g, id);
    return n->op == OP_matmul && !n->is_dead && ir_is_const(h->g, n->in[1]) &&
           !((const attrs_matmul *)n->attrs)->trans_a && ir_value_at(h->g, n->in[1])->rank == 2 &&
           sinter_dtype_bits(ir_value_at(h->g, n->in[1])->dtype) >= 8 && ir_value_at(h->g, n->in[0])->rank >= 2;
}

/* The constant row that `add` adds to v; 0: it adds something else. */
static ir_value_id row_added(const rows *h, const ir_node *add, ir_value_id v)
{
    const ir_value_id other = add->in[0] == v ? add->in[1] : add->in[0];
    return other != v && ir_is_const(h->g, other) && ir_value_at(h->g, other)->rank == 1 ? other : 0;
}

static bool is_inner(const rows *h, ir_value_id v)
{
    const ir_value *x = ir_value_at(h->g, v);
    return x->use_count == 1 && !x->is_output;
}

/* The same product of x. */
static ir_value_id product_of(rows *h, const product *p, ir_value_id x)
{
    const ir_node matmul = *ir_node_at(h->g, p->matmul);
    h->b.region = matmul.parent;
    build_from(&h->b, &p->matmul, 1);
    ir_value_id y = build_matmul(&h->b, x, matmul.in[1], matmul.attrs);
    if (!p->add || !y) return y;
    build_from(&h->b, &p->add, 1);
    return build_add(&h->b, y, p->bias);
}

/* The order of axes of a transpose that leaves rows whole and changes their order; NULL: it is none. */
static const attr_ints *turn_of(const ir_node *n)
{
    if (!n || n->op != OP_transpose || n->is_dead) return NULL;
    const attr_ints *perm = &((const attrs_transpose *)n->attrs)->perm;
    return perm->count >= 3 && perm->at[perm->count - 1] == (int64_t)perm->count - 1 ? perm : NULL;
}

/* product(turn(x)), bound for attention -> turn(product(x)) */
static sinter_status turn_behind(rows *h, ir_node_id id)
{
    const ir_node *turn = maker_of(h, ir_node_at(h->g, id)->in[0], OP_transpose);
    if (!turn_of(turn)) return SINTER_OK;
    const attr_ints perm = *turn_of(turn);
    const ir_value_id x = turn->in[0];
    product p = { .matmul = id, .out = ir_node_at(h->g, id)->out[0] };
    const arena_mark mark = arena_save(&h->a);
    ir_node_id *reader;
    if (is_inner(h, p.out) && ir_readers(h->g, p.out, &h->a, &reader) == 1) {
        const ir_node *add = ir_node_at(h->g, reader[0]);
        p.bias = add->op == OP_add ? row_added(h, add, p.out) : 0;
        if (p.bias) {
            p.add = reader[0];
            p.out = add->out[0];
        }
    }
    arena_rewind(&h->a, mark);
    if (ir_value_at(h->g, p.out)->is_output || !opt_reaches_attention(h->g, p.out, &h->a)) return SINTER_OK;
    const ir_value_id y = product_of(h, &p, x);
    const ir_value_id z = y ? build_permuted(&h->b, y, perm.at, perm.count) : 0;
    if (z) ir_value_replace(h->g, p.out, z);
    h->s->fired += z != 0;
    return h->b.status;
}

/* The first axis of x behind those, from `at` on, whose sizes make up `size`; 0: there are none. */
static uint32_t axes_of(const rows *h, const ir_value *x, uint32_t at, dim size)
{
    dim all = dim_const(h->g->dims, 1);
    do {
        if (at == x->rank) return 0;
        all = dim_mul(h->g->dims, all, x->dim[at++]);
    } while (all != size);
    return at;
}

/* turn(reshape(product(reshape(x)))), x made by attention -> product(reshape(turn(x))), where neither reshape mixes
 * axes. */
static sinter_status turn_before(rows *h, ir_node_id id)
{
    const ir_node root = *ir_node_at(h->g, id);
    const attr_ints *perm = turn_of(&root);
    if (!perm) return SINTER_OK;
    const ir_value turned = *ir_value_at(h->g, root.in[0]), y = *ir_value_at(h->g, root.out[0]);
    ir_value_id v = root.in[0];
    const ir_node *apart = maker_of(h, v, OP_reshape);
    if (apart && is_inner(h, v)) v = apart->in[0];
    product p = { .out = v };
    const ir_node *add = maker_of(h, v, OP_add);
    if (add && is_inner(h, v))
        for (uint32_t i = 0; i < 2 && !p.bias; i++)
            if (maker_of(h, add->in[i], OP_matmul) && (p.bias = row_added(h, add, add->in[i]))) {
                p.add = ir_value_at(h->g, v)->producer;
                v = add->in[i];
            }
    p.matmul = ir_value_at(h->g, v)->producer;
    if (!p.matmul || !is_product(h, p.matmul) || !is_inner(h, v)) return SINTER_OK;
    /* Rows as long as the product's, not parts of them. */
    const ir_value *whole = ir_value_at(h->g, p.out);
    if (whole->dim[whole->rank - 1] != turned.dim[turned.rank - 1]) return SINTER_OK;
    ir_value_id x = ir_node_at(h->g, p.matmul)->in[0];
    const dim size = ir_value_at(h->g, x)->dim[ir_value_at(h->g, x)->rank - 1];
    const ir_node *joined = maker_of(h, x, OP_reshape);
    if (joined) x = joined->in[0];
    const ir_node *early = maker_of(h, x, OP_transpose);
    if (!maker_of(h, early ? early->in[0] : x, OP_attention)) return SINTER_OK;
    const ir_value source = *ir_value_at(h->g, x);
    uint32_t first[SINTER_RANK_MAX + 1] = { 0 };
    for (uint32_t i = 0; i < turned.rank; i++)
        if (!(first[i + 1] = axes_of(h, &source, first[i], i + 1 < turned.rank ? turned.dim[i] : size)))
            return SINTER_OK;
    if (first[turned.rank] != source.rank) return SINTER_OK;
    int64_t order[SINTER_RANK_MAX];
    dim d[SINTER_RANK_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < perm->count; i++)
        for (uint32_t k = first[perm->at[i]]; k < first[perm->at[i] + 1]; k++) order[count++] = k;
    for (uint32_t i = 0; i < y.rank; i++) d[i] = y.dim[i];
    d[y.rank - 1] = size;
    h->b.region = root.parent;
    build_from(&h->b, &id, 1);
    const ir_value_id t = build_permuted(&h->b, x, order, count), rows_of = t ? build_shaped(&h->b, t, d, y.rank) : 0;
    const ir_value_id z = rows_of ? product_of(h, &p, rows_of) : 0;
    if (z) ir_value_replace(h->g, root.out[0], z);
    h->s->fired += z != 0;
    return h->b.status;
}

sinter_status pass_rows(opt_state *s)
{
    rows h = { .s = s, .g = s->g, .b = { .g = s->g } };
    arena_init(&h.a, s->e);
    sinter_status status = SINTER_OK;
    const uint32_t nodes = s->g->node.count;
    for (ir_node_id id = 1; id < nodes && status == SINTER_OK; id++) {
        if (ir_node_at(s->g, id)->is_dead) continue;
        if (is_product(&h, id)) status = turn_behind(&h, id);
        else if (turn_of(ir_node_at(s->g, id))) status = turn_before(&h, id);
    }
    arena_deinit(&h.a);
    return status == SINTER_OK ? ir_sweep(s->g) : status;
}
