/* SPDX-License-Identifier: Apache-2.0 */
/* rules_turn.c - products of weights with a matrix that is turned before them and turned back behind them.
 *
 *   transpose(f(matmul(transpose(x), w) + b)) -> f(matmul(transpose(w), x) + transpose(b))
 *
 * f: functions of single elements, and further products with weights. Networks that mix tokens are written so
 * (MLP-Mixer, ResMLP, gMLP). Without the transpositions, x and the result lie in memory as the layers around have them,
 * and kernels for adjacent rows take the product. x must come from a product, from a function of rows, or from an
 * input. An x that comes from images is left alone: its channels may be innermost in memory already, and then it is
 * read as it lies.
 */
#include "opt/rewrite.h"

enum { X };
/* Nodes of a chain, and nodes that are asked whether they are made by rows. */
enum { LONGEST = 12, ASKED = 64 };

static const ir_node *maker_of(const rewriter *r, ir_value_id v)
{
    const ir_node_id n = rw_value(r, v)->producer;
    return n && !rw_value(r, v)->producer_out ? rw_node(r, n) : NULL;
}

/* Is v made row by row, by a product or by a function of rows? left: how many more nodes are asked. */
static bool is_of_rows(const rewriter *r, ir_value_id v, uint32_t *left)
{
    const ir_value *x = rw_value(r, v);
    if (!x->producer) return x->is_input;
    const ir_node *n = rw_node(r, x->producer);
    if (op_has(n->op, ROWWISE | CONTRACTION)) return !op_has(n->op, IMAGE);
    if (!op_is_scalar(n->op) || !*left) return false;
    --*left;
    for (uint32_t i = 0; i < n->count_in; i++)
        if (rw_same_shape(r, n->in[i], v) && is_of_rows(r, n->in[i], left)) return true;
    return false;
}

/* A product of a matrix with constant weights? */
static bool is_product(const rewriter *r, const ir_node *n)
{
    return n->op == OP_matmul && ir_is_const(r->g, n->in[1]) && rw_value(r, n->in[1])->rank == 2 &&
           rw_value(r, n->in[0])->rank >= 2;
}

/* Can v be made with its last two axes swapped? True: a chain of functions and products leads to a product whose left
 * side is turned. left: nodes that the chain may still have. */
static bool turns(const rewriter *r, ir_value_id v, uint32_t left)
{
    const ir_node *n = maker_of(r, v);
    if (!n || !left || !rw_only(r, v)) return false;
    if (is_product(r, n)) {
        const ir_value_id x = n->in[0];
        uint32_t asked = ASKED;
        return ((const attrs_matmul *)n->attrs)->trans_a ? is_of_rows(r, x, &asked) : turns(r, x, left - 1);
    }
    if (!op_is_scalar(n->op) || n->count_in > 3) return false;
    uint32_t whole = 0;
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (ir_is_const(r->g, n->in[i])) continue;
        if (whole++ || !rw_same_shape(r, n->in[i], v) || !turns(r, n->in[i], left - 1)) return false;
    }
    return whole == 1;
}

/* The constant that stands beside a value with its last two axes swapped, where `c` stands beside the value. */
static ir_value_id constant_turned(rewriter *r, ir_value_id c)
{
    const ir_value x = *rw_value(r, c);
    if (!x.rank) return c;
    if (x.rank > 1) return rw_swap_last(r, c);
    return build_shaped(r->b, c, (dim[]){ x.dim[0], dim_const(r->g->dims, 1) }, 2);
}

/* v with its last two axes swapped, where `turns` says that it can be. */
static ir_value_id turned(rewriter *r, ir_value_id v)
{
    const ir_node_id id = rw_value(r, v)->producer;
    const ir_node n = *rw_node(r, id);
    if (n.op == OP_matmul) {
        const attrs_matmul at = *(const attrs_matmul *)n.attrs;
        const ir_value_id x = at.trans_a ? n.in[0] : turned(r, n.in[0]);
        const ir_value_id w = at.trans_b ? n.in[1] : rw_swap_last(r, n.in[1]);
        return build_matmul(r->b, w, x, DEFAULTS(matmul));
    }
    ir_value_id in[3];
    for (uint32_t i = 0; i < n.count_in; i++)
        in[i] = ir_is_const(r->g, n.in[i]) ? constant_turned(r, n.in[i]) : turned(r, n.in[i]);
    return build_again(r->b, id, in, n.count_in);
}

static ir_value_id turn_back(rewriter *r, const match *m)
{
    const ir_node *n = rw_node(r, m->root);
    return rw_swaps_last(n) && turns(r, m->v[X], LONGEST) ? turned(r, m->v[X]) : 0;
}

/* clang-format off */
const rule rules_turn[] = {
    { "turned-products",   MATCH(transpose, ANY(X)),                          turn_back,            EXACT },
    { .name = NULL },
};
/* clang-format on */
