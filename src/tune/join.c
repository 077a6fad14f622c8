/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - small kernels one behind the other as one op, where a device has a kernel for it.
 *
 * Squeeze and excite: means of an image's channels, a product, a program, a product. Three small kernels one behind the
 * other are three times the way from one launch to the next. The two products are groups already: the epilogue of the
 * first becomes the program in the middle, that of the second the op's own. Products are convolutions with one tap, or
 * products of matrices; reshapes between them only add axes of one, or drop them.
 *
 * A norm before products: each product normalises its rows itself, where a kernel does both.
 *
 * Attention in a decoder, and the two kernels before it that write new rows of keys and values into the states:
 * attention reads these rows where they were made, and writes them into the states itself. */
#include "ir/build.h"
#include "ops/excite.h"
#include "tune/gains.h"

#include <string.h>

typedef struct chain {
    ir_value_id image;
    ir_node_id first, second;
} chain;

/* Is it read once, and no output? */
static bool is_inner(const ir_graph *g, ir_value_id v)
{
    const ir_value *x = ir_value_at(g, v);
    return x->use_count == 1 && !x->is_output && x->producer;
}

/* Of one size along the first two axes, and of one element along the others. */
static bool is_list(const ir_graph *g, ir_value_id v)
{
    const ir_value *x = ir_value_at(g, v);
    for (uint32_t i = 2; i < x->rank; i++)
        if (!dim_is(g->dims, x->dim[i], 1)) return false;
    return x->rank >= 2;
}

/* The node that makes v, behind reshapes of lists; NULL: somebody else reads it, too. */
static const ir_node *maker(const ir_graph *g, ir_value_id v)
{
    const ir_value *list = ir_value_at(g, v);
    for (uint32_t depth = 0; depth < 4 && is_inner(g, v); depth++) {
        const ir_node *n = ir_node_at(g, ir_value_at(g, v)->producer);
        if (n->op != OP_reshape) return n;
        const ir_value *from = ir_value_at(g, n->in[0]);
        if (!is_list(g, n->in[0]) || from->dim[0] != list->dim[0] || from->dim[1] != list->dim[1]) return NULL;
        v = n->in[0];
    }
    return NULL;
}

static bool is_conv(const ir_graph *g, const ir_node *n)
{
    if (n->op != OP_conv) return false;
    const attrs_conv *a = n->attrs;
    if (a->groups != 1 || !is_list(g, n->in[0]) || !is_list(g, n->in[1])) return false;
    for (uint32_t i = 0; i < a->pad.count; i++)
        if (a->pad.at[i]) return false;
    return true;
}

static bool is_matmul(const ir_graph *g, const ir_node *n)
{
    if (n->op != OP_matmul) return false;
    const attrs_matmul *a = n->attrs;
    return !a->trans_a && !a->trans_b && a->type == SINTER_DTYPE_NONE && ir_value_at(g, n->in[0])->rank == 2 &&
           ir_value_at(g, n->in[1])->rank == 2;
}

/* A product of a list and a constant, with an epilogue of its own perhaps. */
static bool is_product(const ir_graph *g, const ir_node *n)
{
    return n->count_anchor == 2 && !n->prologue && ir_is_const(g, n->in[1]) && (is_conv(g, n) || is_matmul(g, n));
}

static bool is_pool(const ir_graph *g, const ir_node *n)
{
    if (n->op != OP_avg_pool) return false;
    const attrs_avg_pool *a = n->attrs;
    const ir_value *x = ir_value_at(g, n->in[0]);
    for (uint32_t i = 0; i < a->kernel.count; i++)
        if (a->pad.at[i] || a->pad.at[a->kernel.count + i] || !dim_is(g->dims, x->dim[2 + i], a->kernel.at[i]))
            return false;
    return true;
}

static bool is_reduction(const ir_graph *g, const ir_node *n)
{
    if (n->op != OP_reduce) return false;
    const attrs_reduce *a = n->attrs;
    const ir_value *x = ir_value_at(g, n->in[0]);
    bool is_all = a->kind == reduce_kind_mean && a->axes.count && a->axes.count + 2 == x->rank;
    for (uint32_t i = 0; i < a->axes.count && is_all; i++) is_all = a->axes.at[i] >= 2; /* each is there once */
    return is_all;
}

/* Means over all positions. */
static bool is_mean(const ir_graph *g, const ir_node *n)
{
    const bool is_plain = n->count_in == 1 && n->count_out == 1 && !n->prologue && !n->epilogue;
    return is_plain && (is_pool(g, n) || is_reduction(g, n));
}

static bool find(const ir_graph *g, ir_node_id id, chain *out)
{
    const ir_node *second = ir_node_at(g, id);
    if (second->is_dead || !is_product(g, second)) return false;
    const ir_node *first = maker(g, second->in[0]);
    if (!first || first->count_out != 1 || !is_product(g, first)) return false;
    const ir_node *mean = maker(g, first->in[0]);
    if (!mean || !is_mean(g, mean) || mean->parent != second->parent || first->parent != second->parent) return false;
    *out = (chain){ mean->in[0], (ir_node_id)(first - g->node.at), id };
    const ir_value *w1 = ir_value_at(g, first->in[1]), *w2 = ir_value_at(g, second->in[1]);
    const sinter_dtype type = ir_value_at(g, out->image)->dtype;
    return w1->rank == w2->rank && w1->dtype == type && w2->dtype == type;
}

/* A copy of a product's epilogue, which loads no factor, with its operands at `at` and behind. NULL: no memory. */
static expr *program_at(arena *a, const ir_node *n, uint32_t at)
{
    expr *x = expr_copy(a, n->epilogue);
    for (uint32_t i = 0; x && i < x->count; i++) {
        if (x->at[i].op == EXPR_LOAD) x->at[i].operand = (uint16_t)(x->at[i].operand - n->count_anchor + at);
    }
    return x;
}

/* Do the operands of the first product's epilogue differ along its lines at most? */
static bool has_lines(const ir_graph *g, const ir_node *first)
{
    const uint32_t rank = ir_value_at(g, first->out[0])->rank;
    for (uint32_t i = first->count_anchor; i < first->count_in; i++) {
        const ir_value *v = ir_value_at(g, first->in[i]);
        if (!v->data) return false;
        for (uint32_t k = 0; k < v->rank; k++)
            if (rank - v->rank + k != 1 && !dim_is(g->dims, v->dim[k], 1)) return false;
    }
    return true;
}

static attrs_excite *attrs_of(env *e, ir_graph *g, const ir_node *first)
{
    attrs_excite *a = op_attrs_new(&g->a, OP_excite);
    if (!a || !first->epilogue) return a;
    expr *middle = program_at(&g->a, first, EXCITE_OPERANDS);
    if (!middle) return NULL;
    text t;
    text_init(&t, e);
    expr_print(middle, &t);
    a->middle = t.failed ? NULL : arena_text(&g->a, t.at, t.length);
    text_deinit(&t);
    return a->middle ? a : NULL;
}

/* Replaces the product `last` by the op `made`, which does the work of `first`, too. */
static sinter_status put(ir_graph *g, ir_node_id first, ir_node_id last, ir_node_id made)
{
    const ir_node second = *ir_node_at(g, last);
    const uint32_t more = second.count_in - second.count_anchor;
    if (second.epilogue) {
        expr *x = program_at(&g->a, &second, ir_node_at(g, made)->count_in);
        if (!x) return FAIL_MEMORY(g->e, "a program");
        TRY(ir_node_add_in(g, made, second.in + second.count_anchor, more));
        ir_node_at(g, made)->epilogue = x;
    }
    ir_node_at(g, made)->name = second.name;
    TRY(ir_origin_unite(g, made, first));
    TRY(ir_origin_unite(g, made, last));
    TRY(ir_node_set_out(g, made, 0, second.out[0]));
    for (uint32_t i = 1; i < second.count_out; i++)
        if (!ir_node_add_out(g, made, second.out[i])) return FAIL_MEMORY(g->e, "a result");
    ir_node_kill(g, last);
    return SINTER_OK;
}

static bool loads_a_factor(const ir_node *n)
{
    bool is = false;
    for (uint32_t i = 0; n->epilogue && i < n->epilogue->count; i++)
        is = is || (n->epilogue->at[i].op == EXPR_LOAD && n->epilogue->at[i].operand < n->count_anchor);
    return is;
}

/* Infers a new node, and removes it where no kernel of the device takes it. */
static sinter_status keep_if_fast(const pricing *p, ir_node_id made, bool *is_kept)
{
    TRY(ir_infer(p->g, made));
    TRY(price_is_on_device(p, made, is_kept));
    if (!*is_kept) ir_node_kill(p->g, made);
    return SINTER_OK;
}

static sinter_status join(const pricing *p, const chain *c, bool *is_any)
{
    ir_graph *g = p->g;
    const ir_node first = *ir_node_at(g, c->first), second = *ir_node_at(g, c->second);
    if (!has_lines(g, &first) || loads_a_factor(&first) || loads_a_factor(&second)) return SINTER_OK;
    ir_value_id in[EXCITE_OPERANDS + EXPR_MAX] = { c->image, first.in[1], second.in[1] };
    const uint32_t more = first.count_in - first.count_anchor;
    if (more > EXPR_MAX) return SINTER_OK;
    memcpy(in + EXCITE_OPERANDS, first.in + first.count_anchor, more * sizeof *in);
    attrs_excite *attrs = attrs_of(p->e, g, &first);
    const ir_node_id made = attrs ? ir_node_new(g, second.parent, OP_excite, attrs, in, EXCITE_OPERANDS + more, 1) : 0;
    if (!made) return FAIL_MEMORY(p->e, "squeeze and excite");
    bool is_kept = false;
    TRY(keep_if_fast(p, made, &is_kept));
    if (!is_kept) return SINTER_OK;
    *is_any = true;
    return put(g, c->first, c->second, made);
}

/* ---- norms ---- */

enum { PRODUCTS_MOST = 4 };
/* The products that read a norm's rows, each perhaps through a reshape. */
typedef struct normed {
    ir_node_id norm, product[PRODUCTS_MOST], reshape[PRODUCTS_MOST]; /* reshape 0: none */
    uint32_t count;
} normed;

/* Of the last axis, by itself, with one result; scale and bias have an element for each of a row. */
static bool is_norm(const ir_graph *g, const ir_node *n)
{
    const bool is_layer = n->op == OP_layer_norm;
    if (n->is_dead || (!is_layer && n->op != OP_rms_norm)) return false;
    const int64_t axis =
        is_layer ? ((const attrs_layer_norm *)n->attrs)->axis : ((const attrs_rms_norm *)n->attrs)->axis;
    const ir_value *x = ir_value_at(g, n->in[0]);
    bool is = !n->prologue && !n->epilogue && n->count_out == 1 && axis + 1 == x->rank;
    for (uint32_t i = 1; i < n->count_in && is; i++) {
        const ir_value *v = ir_value_at(g, n->in[i]);
        is = !n->in[i] || (v->rank == 1 && v->dim[0] == x->dim[x->rank - 1]);
    }
    return is;
}

static bool has_same_rows(const ir_value *x, const ir_value *y)
{
    return y->rank && y->dim[y->rank - 1] == x->dim[x->rank - 1];
}

/* Adds the products that read the rows `v`. False where something else reads them, or where there are too many. */
static bool add_readers(const ir_graph *g, arena *a, ir_value_id v, ir_node_id reshape, normed *out)
{
    ir_node_id *reader;
    const uint32_t count = ir_readers(g, v, a, &reader);
    const ir_value *x = ir_value_at(g, v);
    if (x->is_output || x->use_count != count || !count) return false;
    for (uint32_t i = 0; i < count; i++) {
        const ir_node *n = ir_node_at(g, reader[i]);
        if (n->op == OP_reshape && !reshape && n->in[0] == v && has_same_rows(x, ir_value_at(g, n->out[0]))) {
            if (!add_readers(g, a, n->out[0], reader[i], out)) return false;
            continue;
        }
        if (n->op != OP_matmul || out->count == PRODUCTS_MOST || n->in[0] != v || n->count_anchor != 2) return false;
        const attrs_matmul *t = n->attrs;
        if (t->trans_a || t->type != SINTER_DTYPE_NONE || n->prologue || loads_a_factor(n)) return false;
        if (!ir_is_const(g, n->in[1]) || ir_value_at(g, n->in[1])->rank != 2) return false;
        out->product[out->count] = reader[i];
        out->reshape[out->count++] = reshape;
    }
    return true;
}

static ir_node_id make_normed(const pricing *p, const ir_node *norm, const ir_node *product)
{
    ir_graph *g = p->g;
    attrs_norm_matmul *a = op_attrs_new(&g->a, OP_norm_matmul);
    if (!a) return 0;
    a->centred = norm->op == OP_layer_norm;
    a->epsilon =
        a->centred ? ((const attrs_layer_norm *)norm->attrs)->epsilon : ((const attrs_rms_norm *)norm->attrs)->epsilon;
    a->trans_b = ((const attrs_matmul *)product->attrs)->trans_b;
    const ir_value_id in[4] = { product->in[0], product->in[1], norm->count_in > 1 ? norm->in[1] : 0,
                                norm->count_in > 2 ? norm->in[2] : 0 };
    return ir_node_new(g, product->parent, OP_norm_matmul, a, in, in[3] ? 4 : in[2] ? 3 : 2, 1);
}

/* Joins all of the products or none: if one product still needed the norm, nothing would be saved. */
static sinter_status join_norm(const pricing *p, const normed *x, bool *is_any)
{
    ir_graph *g = p->g;
    ir_node_id made[PRODUCTS_MOST] = { 0 };
    bool is_fast = true;
    for (uint32_t i = 0; i < x->count && is_fast; i++) {
        const ir_node norm = *ir_node_at(g, x->norm), product = *ir_node_at(g, x->product[i]);
        made[i] = make_normed(p, &norm, &product);
        if (!made[i]) return FAIL_MEMORY(p->e, "a product of normalised rows");
        TRY(ir_infer(g, made[i]));
        TRY(price_is_on_device(p, made[i], &is_fast));
    }
    for (uint32_t i = 0; i < x->count && !is_fast; i++)
        if (made[i]) ir_node_kill(g, made[i]);
    if (!is_fast) return SINTER_OK;
    *is_any = true;
    const ir_value_id from = ir_node_at(g, x->norm)->in[0];
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->reshape[i]) ir_node_set_in(g, x->reshape[i], 0, from);
        else ir_node_set_in(g, made[i], 0, from);
        TRY(put(g, x->norm, x->product[i], made[i]));
    }
    return SINTER_OK;
}

/* ---- rows that attention appends ---- */

/* The node that puts new rows into a state which, with them, is input `i` of attention and read by nothing else. NULL:
 * there is none. */
static const ir_node *appender(const ir_graph *g, arena *a, const ir_node *attention, uint32_t i)
{
    const ir_value_id v = attention->in[i];
    const ir_node_id made = ir_value_at(g, v)->producer;
    const ir_node *n = made ? ir_node_at(g, made) : NULL;
    ir_node_id *reader;
    if (!n || n->op != OP_tensor_scatter || n->count_in < 3 || !n->in[2] || n->prologue || n->epilogue) return NULL;
    const attrs_tensor_scatter *t = n->attrs;
    const bool is_state = t->axis == 2 && !t->circular && tune_is_state(g, n->in[0], v);
    return is_state && ir_readers(g, v, a, &reader) == 1 ? n : NULL;
}

static sinter_status join_appends(const pricing *p, ir_node_id id, bool *is_any)
{
    ir_graph *g = p->g;
    const ir_node n = *ir_node_at(g, id);
    if (n.is_dead || n.op != OP_attention || n.count_out != 1 || n.prologue || n.epilogue) return SINTER_OK;
    const ir_node *k = appender(g, p->scratch, &n, 1), *v = k ? appender(g, p->scratch, &n, 2) : NULL;
    if (!v || v == k || k->in[2] != v->in[2]) return SINTER_OK;
    if (ir_value_at(g, k->in[1])->dim[2] != ir_value_at(g, v->in[1])->dim[2]) return SINTER_OK;
    const ir_value_id mask = n.count_in > 3 ? n.in[3] : 0, length = n.count_in > 4 ? n.in[4] : 0,
                      in[8] = { n.in[0], k->in[0], v->in[0], mask, length, k->in[1], v->in[1], k->in[2] };
    const ir_node_id made = ir_node_new(g, n.parent, OP_attention, n.attrs, in, COUNT_OF(in), 3);
    if (!made) return FAIL_MEMORY(p->e, "attention that appends rows");
    bool is_kept = false;
    TRY(keep_if_fast(p, made, &is_kept));
    if (!is_kept) return SINTER_OK;
    *is_any = true;
    const ir_node_id old[3] = { id, ir_value_at(g, n.in[1])->producer, ir_value_at(g, n.in[2])->producer };
    ir_node_at(g, made)->name = n.name;
    for (uint32_t i = 0; i < 3; i++) {
        TRY(ir_origin_unite(g, made, old[i]));
        TRY(ir_node_set_out(g, made, i, i ? n.in[i] : n.out[0]));
        ir_node_kill(g, old[i]);
    }
    return SINTER_OK;
}

/* ---- the pass ---- */

sinter_status tune_join(env *e, ir_graph *g, const tune_options *options, tune_joins what)
{
    if (options->reference_only) return SINTER_OK;
    arena a;
    arena_init(&a, e);
    const pricing p = { .e = e, .g = g, .o = options, .scratch = &a };
    sinter_status s = SINTER_OK;
    bool is_any = false;
    for (ir_node_id id = 1, nodes = g->node.count; id < nodes && s == SINTER_OK; id++) {
        chain c;
        normed x = { .norm = id };
        if (what == TUNE_JOIN_EXCITES && find(g, id, &c)) s = join(&p, &c, &is_any);
        else if (what == TUNE_JOIN_NORMS && is_norm(g, ir_node_at(g, id)) &&
                 add_readers(g, &a, ir_node_at(g, id)->out[0], 0, &x))
            s = join_norm(&p, &x, &is_any);
        else if (what == TUNE_JOIN_APPENDS) s = join_appends(&p, id, &is_any);
    }
    arena_deinit(&a);
    return s || !is_any ? s : ir_sweep(g);
}
