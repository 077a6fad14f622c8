/* SPDX-License-Identifier: Apache-2.0 */
/* found.c - ops whose results' sizes data decide, on a device that has kernels for them.
 *
 * non_zero and nms run on the host, and so what they read and write would have to cross. Where a kernel of the device
 * takes the op, it writes as many rows as there can be (non_zero_rows, nms_rows) and how many there are. Only that
 * number goes to the host: a bind reads the size from it, and the result is the first rows, which is a view. compress
 * is a gather of what non_zero finds in its condition. */
#include "ir/build.h"
#include "tune/gains.h"

typedef struct finder {
    ir_builder b;
    pricing p;
    const dim_symbol *asked; /* the ranges that kernels are asked with */
    dim_symbol *own;         /* and those that the graph has */
    uint32_t count;
    bool is_any;
} finder;

/* The first rows of `n`, as many as its second result says: the number is bound to `size`, a late symbol. */
static ir_value_id first_rows(ir_builder *b, ir_node_id n, dim size)
{
    attrs_bind *bind = DEFAULTS(bind);
    bind->symbols = build_dims(b, &size, 1);
    build_bind(b, build_result(b, n, 1), bind);
    return build_part(b, build_result(b, n, 0), 0, dim_const(b->g->dims, 0), 1, size);
}

static void set_ranges(const finder *f, const dim_symbol *to)
{
    for (uint32_t i = 0; i < f->count; i++) dim_symbol_set(f->b.g->dims, i, &to[i]);
}

/* The node, or 0 where the device has no kernel for it. */
static sinter_status kept(finder *f, ir_node_id made, ir_node_id *out)
{
    bool is_fast = false;
    *out = 0;
    TRY(f->b.status);
    set_ranges(f, f->asked);
    const sinter_status s = price_is_on_device(&f->p, made, &is_fast);
    set_ranges(f, f->own);
    TRY(s);
    if (is_fast) *out = made;
    else ir_node_kill(f->b.g, made);
    return SINTER_OK;
}

static sinter_status find_non_zero(finder *f, ir_value_id x, ir_node_id *out)
{
    *out = 0;
    if (!ir_value_at(f->b.g, x)->rank) return SINTER_OK;
    return kept(f, build_node(&f->b, OP_non_zero_rows, NULL, &x, 1, 2), out);
}

static sinter_status from_non_zero(finder *f, const ir_node *n, ir_value_id *out)
{
    ir_node_id rows;
    const dim size = ir_value_at(f->b.g, n->out[0])->dim[1];
    TRY(find_non_zero(f, n->in[0], &rows));
    if (rows) *out = build_permuted(&f->b, first_rows(&f->b, rows, size), (const int64_t[]){ 1, 0 }, 2);
    return f->b.status;
}

/* The condition may be longer than the axis, and shorter. */
static sinter_status from_compress(finder *f, const ir_node *n, ir_value_id *out)
{
    ir_builder *b = &f->b;
    dim_table *t = b->g->dims;
    const int64_t axis = ((const attrs_compress *)n->attrs)->axis;
    const ir_value x = *ir_value_at(b->g, n->in[0]), keep = *ir_value_at(b->g, n->in[1]);
    const dim all = axis < 0 ? dim_product(t, x.dim, x.rank) : x.dim[axis], least = dim_min(t, all, keep.dim[0]);
    const dim size = ir_value_at(b->g, n->out[0])->dim[axis < 0 ? 0 : axis];
    ir_value_id condition = n->in[1];
    ir_node_id rows;
    if (least != keep.dim[0]) condition = build_part(b, condition, 0, dim_const(t, 0), 1, least);
    TRY(b->status);
    TRY(find_non_zero(f, condition, &rows));
    if (!rows) return SINTER_OK;
    const ir_value_id at = build_squeezed(b, first_rows(b, rows, size), 1);
    const ir_value_id from = axis < 0 ? build_shaped(b, n->in[0], &all, 1) : n->in[0];
    attrs_gather *gather = DEFAULTS(gather);
    gather->axis = axis < 0 ? 0 : axis;
    *out = build_gather(b, from, at, gather);
    return b->status;
}

static sinter_status from_nms(finder *f, const ir_node *n, ir_value_id *out)
{
    ir_builder *b = &f->b;
    dim_table *t = b->g->dims;
    const dim size = ir_value_at(b->g, n->out[0])->dim[0];
    dim most = ir_value_at(b->g, n->in[0])->dim[1];
    double limit = 0;
    const bool has_limit = n->count_in > 2 && n->in[2];
    if (!has_limit || ir_const_scalar(b->g, n->in[2], &limit))
        most = dim_min(t, most, dim_const(t, limit > 0 && limit < 1e9 ? (int64_t)limit : limit > 0 ? INT32_MAX : 0));
    attrs_nms_rows *a = DEFAULTS(nms_rows);
    a->center_box = ((const attrs_nms *)n->attrs)->center_box;
    a->most = build_dims(b, &most, 1);
    ir_node_id rows;
    TRY(kept(f, build_node(b, OP_nms_rows, a, n->in, n->count_in, 2), &rows));
    if (rows) *out = first_rows(b, rows, size);
    return b->status;
}

static const struct {
    op_id op;
    sinter_status (*make)(finder *f, const ir_node *n, ir_value_id *out); /* 0: it stays as it is */
} forms[] = { { OP_non_zero, from_non_zero }, { OP_compress, from_compress }, { OP_nms, from_nms } };

static sinter_status find(finder *f, ir_node_id id)
{
    const ir_node n = *ir_node_at(f->b.g, id);
    ir_value_id made = 0;
    uint32_t symbol, form = 0;
    ir_bound bound = ir_bound_of(f->b.g, id);
    while (form < COUNT_OF(forms) && forms[form].op != n.op) form++;
    /* Only a size that is a symbol of this node can be bound anew. */
    if (n.is_dead || form == COUNT_OF(forms) || !ir_bound_next(&bound, &symbol)) return SINTER_OK;
    f->b.region = n.parent;
    f->b.name = n.name;
    build_from(&f->b, &id, 1);
    TRY(f->b.status);
    TRY(forms[form].make(f, &n, &made));
    if (!made) return SINTER_OK;
    f->is_any = true;
    ir_value_replace(f->b.g, n.out[0], made);
    ir_node_kill(f->b.g, id);
    return SINTER_OK;
}

sinter_status tune_find_on_device(env *e, ir_graph *g, const tune_options *options, const dim_symbol *asked,
                                  uint32_t count, bool *is_changed)
{
    if (!options->backend->copy || options->reference_only) return SINTER_OK;
    arena a;
    arena_init(&a, e);
    finder f = { .b = { .g = g },
                 .p = { .e = e, .g = g, .o = options, .scratch = &a },
                 .asked = asked,
                 .own = ARENA_NEW(&a, dim_symbol, count),
                 .count = count };
    sinter_status s = f.own ? SINTER_OK : FAIL_MEMORY(e, "what data decide");
    for (uint32_t i = 0; i < count && f.own; i++) f.own[i] = *dim_symbol_at(g->dims, i);
    for (ir_node_id id = 1, nodes = g->node.count; id < nodes && s == SINTER_OK; id++) s = find(&f, id);
    arena_deinit(&a);
    *is_changed = *is_changed || f.is_any;
    return s || !f.is_any ? s : ir_sweep(g);
}
