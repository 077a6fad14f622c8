/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - computes nodes whose inputs are all constants.
 *
 * The reference kernels do the work, so folding can never disagree with running. The folded node stays as the recipe of its constants. A
 * result much larger than what it is made of is left to the runtime: reading it back would cost more than computing it. */
#include "opt/rewrite.h"

enum { FREE_SIZE = 1 << 20, GROWTH = 4, FOLD_ARGS = 8 };

static bool may_fold(const ir_graph *g, const ir_node *n)
{
    const op_info *op = op_at(n->op);
    if (op->regions || op->traits & LATE || n->op == OP_random || n->prologue || n->epilogue) return false;
    if (n->count_in > FOLD_ARGS && n->op != OP_concat) return false;
    for (uint32_t i = 0; i < n->count_in; i++)
        if (n->in[i] && !ir_is_const(g, n->in[i])) return false;
    for (uint32_t i = 0; i < n->count_out; i++)
        if (!ir_shape_is_static(g, n->out[i])) return false;
    for (const attr_info *d = op->attr; d->name; d++) {
        if (d->kind != ATTR_DIMS) continue;
        const attr_dims *list = (const attr_dims *)((const char *)n->attrs + d->at);
        for (uint32_t i = 0; i < list->count; i++)
            if (!dim_is_const(g->dims, (dim)list->at[i], NULL)) return false;
    }
    return n->count_out > 0;
}

/* The attributes as a kernel sees them: sizes where the graph has expressions. */
static void *resolved(const ir_graph *g, arena *a, const ir_node *n)
{
    void *attrs = op_attrs_copy(a, n->op, n->attrs);
    for (const attr_info *d = op_at(n->op)->attr; attrs && d->name; d++) {
        if (d->kind != ATTR_DIMS) continue;
        attr_dims *list = (attr_dims *)((char *)attrs + d->at);
        int64_t *at = ARENA_NEW(a, int64_t, list->count);
        if (!at) return NULL;
        for (uint32_t i = 0; i < list->count; i++) (void)dim_is_const(g->dims, (dim)list->at[i], &at[i]);
        list->at = at;
    }
    return attrs;
}

static sinter_status compute(ir_graph *g, ir_node_id id, arena *a, bool *folded)
{
    const ir_node *n = &g->node.at[id];
    view *in = ARENA_NEW(a, view, n->count_in), *out = ARENA_NEW(a, view, n->count_out);
    size_t *size = ARENA_NEW(a, size_t, n->count_out);
    void **data = ARENA_NEW(a, void *, n->count_out);
    void *attrs = resolved(g, a, n);
    if (!in || !out || !size || !data || !attrs) return FAIL_MEMORY(g->e, "constant folding");
    size_t total_in = 0, total_out = 0;
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (!n->in[i]) continue;
        if (!ir_const_view(g, n->in[i], &in[i])) return SINTER_OK;
        total_in = size_add(total_in, ir_value_at(g, n->in[i])->data_size);
    }
    for (uint32_t i = 0; i < n->count_out; i++) {
        const ir_value *v = ir_value_at(g, n->out[i]);
        sinter_tensor t = { .dtype = v->dtype, .rank = v->rank };
        for (uint32_t k = 0; k < v->rank; k++)
            if (!dim_is_const(g->dims, v->dim[k], &t.dim[k])) return SINTER_OK;
        size[i] = sinter_tensor_size(&t);
        if (size[i] == SIZE_MAX || !view_init(&out[i], v->dtype, v->rank, t.dim, NULL)) return SINTER_OK;
        total_out = size_add(total_out, size[i]);
    }
    const size_t grown = size_mul(total_in, GROWTH), allowed = grown > FREE_SIZE ? grown : FREE_SIZE;
    if (total_out > allowed || total_out > g->e->limits.fold_max) return SINTER_OK;
    for (uint32_t i = 0; i < n->count_out; i++) {
        data[i] = size[i] <= 4096 ? arena_alloc(&g->a, size[i], 64) : ir_blob(g, size[i]);
        if (!data[i]) return FAIL_MEMORY(g->e, "a folded constant");
        out[i].data = data[i];
    }
    ref_call c = { .e = g->e, .op = n->op, .attrs = attrs, .count_in = n->count_in, .count_out = n->count_out, .in = in, .out = out,
                   .scratch = a };
    data_fault fault = { 0 };
    c.fault = &fault;
    const sinter_status status = op_reference(&c);
    if (status) return NOTE(g->e, status, "while folding node %s (%s)", ir_node_label(g, id), op_at(n->op)->name);
    if (fault.is_set) return SINTER_OK;         /* a bad index is the run's to report */
    ir_node_fold(g, id, data, size);
    *folded = true;
    return SINTER_OK;
}

sinter_status fold_node(ir_graph *g, ir_node_id id, bool *folded)
{
    *folded = false;
    if (!may_fold(g, &g->node.at[id])) return SINTER_OK;
    for (uint32_t i = 0; i < g->node.at[id].count_out; i++)
        if (ir_value_at(g, g->node.at[id].out[i])->is_output) return SINTER_OK;   /* an output needs someone to write it */
    arena a;
    arena_init(&a, g->e);
    const sinter_status status = compute(g, id, &a, folded);
    arena_deinit(&a);
    return status;
}
