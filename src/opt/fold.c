/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - computes nodes whose inputs are all constants.
 *
 * The reference kernels do the work, so folding can never disagree with running. The folded node stays as the recipe of
 * its constants. A result much larger than what it is made of is left to the runtime: reading it back would cost more
 * than computing it. */
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

/* Weights are large and what is folded into them is a scale: f32 products and dequantised integers along rows, as the
 * reference computes them (in double, rounded once), without its indirection. False: not one of these. */
static bool compute_rows(const ir_node *n, const view *in, view *out)
{
    const bool is_mul = n->op == OP_mul && in[0].dtype == SINTER_DTYPE_F32;
    const bool is_dequantize = n->op == OP_dequantize &&
                               (in[0].dtype == SINTER_DTYPE_I8 || in[0].dtype == SINTER_DTYPE_U8) &&
                               in[1].dtype == SINTER_DTYPE_F32;
    if (!(is_mul || is_dequantize) || out->dtype != SINTER_DTYPE_F32 || out->rank < 1) return false;
    view x[3] = { { 0 } };
    for (uint32_t i = 0; i < n->count_in; i++)
        if (!view_broadcast(&in[i], out->rank, out->dim, &x[i])) return false;
    const uint32_t last = out->rank - 1;
    const int64_t count = out->dim[last];
    float *y = out->data;
    int64_t at[SINTER_RANK_MAX];
    for (bool more = view_first(out->dim, last, at); more; more = view_next(out->dim, last, at), y += count) {
        int64_t from[3] = { 0 };
        for (uint32_t i = 0; i < n->count_in; i++)
            for (uint32_t k = 0; k < last; k++) from[i] += at[k] * x[i].stride[k];
        const float *b = (const float *)x[1].data + from[1];
        const int64_t sa = x[0].stride[last], sb = x[1].stride[last], sz = x[2].stride[last];
        if (is_mul) {
            const float *a = (const float *)x[0].data + from[0];
            for (int64_t i = 0; i < count; i++) y[i] = (float)((double)a[i * sa] * (double)b[i * sb]);
            continue;
        }
        const bool is_signed = in[0].dtype == SINTER_DTYPE_I8;
        const int8_t *q = (const int8_t *)x[0].data + from[0],
                     *z = x[2].data ? (const int8_t *)x[2].data + from[2] : NULL;
        for (int64_t i = 0; i < count; i++) {
            const int32_t value = is_signed ? q[i * sa] : (uint8_t)q[i * sa];
            const int32_t zero = !z ? 0 : is_signed ? z[i * sz] : (uint8_t)z[i * sz];
            y[i] = (float)((double)(value - zero) * (double)b[i * sb]);
        }
    }
    return true;
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
    ref_call c = { .e = g->e,
                   .op = n->op,
                   .attrs = attrs,
                   .count_in = n->count_in,
                   .count_out = n->count_out,
                   .in = in,
                   .out = out,
                   .scratch = a };
    data_fault fault = { 0 };
    c.fault = &fault;
    const sinter_status status = compute_rows(n, in, out) ? SINTER_OK : op_reference(&c);
    if (status) return NOTE(g->e, status, "while folding node %s (%s)", ir_node_label(g, id), op_at(n->op)->name);
    if (fault.is_set) return SINTER_OK; /* a bad index is the run's to report */
    ir_node_fold(g, id, data, size);
    *folded = true;
    return SINTER_OK;
}

sinter_status fold_node(ir_graph *g, ir_node_id id, bool *folded)
{
    *folded = false;
    if (!may_fold(g, &g->node.at[id])) return SINTER_OK;
    for (uint32_t i = 0; i < g->node.at[id].count_out; i++)
        if (ir_value_at(g, g->node.at[id].out[i])->is_output)
            return SINTER_OK; /* an output needs someone to write it */
    arena a;
    arena_init(&a, g->e);
    const sinter_status status = compute(g, id, &a, folded);
    arena_deinit(&a);
    return status;
}
