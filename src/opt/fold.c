/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - computes nodes whose inputs are all constants.
 *
 * The reference kernels do the work, so folding can never disagree with running. The folded node stays as the recipe of
 * its constants. A result of many more elements than what it is made of is left to the runtime: reading it back would
 * cost more than computing it. A result of at most twice the elements is always computed here, also above fold_max:
 * packed weights (4 or 8 bits that are dequantised) must not be unpacked in every run, and what they become is bounded
 * by what the model holds. */
#include "opt/rewrite.h"

enum { FREE_SIZE = 1 << 20, GROWTH = 4, FOLD_ARGS = 8 };

static bool may_fold(const ir_graph *g, const ir_node *n)
{
    const op_info *op = op_at(n->op);
    if (op->regions || op->traits & (LATE | VARIES) || n->prologue || n->epilogue) return false;
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

static bool is_packed(sinter_dtype t)
{
    return sinter_dtype_bits(t) <= 8 && t != SINTER_DTYPE_BOOL;
}

static bool is_wide(sinter_dtype t)
{
    return t == SINTER_DTYPE_F32 || t == SINTER_DTYPE_F16 || t == SINTER_DTYPE_BF16;
}

/* One row of a product of f32, and of numbers of at most 8 bits that are dequantised: `value` is of each of their
 * codes. at: where the row begins in each operand, stride: of its elements. */
static void multiply_row(const view *x, const int64_t *at, const int64_t *stride, float *y, int64_t count)
{
    const float *a = (const float *)x[0].data + at[0], *b = (const float *)x[1].data + at[1];
    for (int64_t i = 0; i < count; i++) y[i] = (float)((double)a[i * stride[0]] * (double)b[i * stride[1]]);
}

static uint32_t code_at(const view *x, int64_t index)
{
    const uint8_t *at = x->data;
    return sinter_dtype_bits(x->dtype) == 8 ? at[index] : (uint32_t)at[index / 2] >> (index % 2 * 4) & 15u;
}

static void dequantize_row(const view *x, const double *value, const int64_t *at, const int64_t *stride, view *out,
                           int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t from = at[1] + i * stride[1];
        const double zero = x[2].data ? value[code_at(&x[2], at[2] + i * stride[2])] : 0,
                     scale = x[1].dtype == SINTER_DTYPE_F32 ? (double)((const float *)x[1].data)[from]
                                                            : view_load_f64(&x[1], from),
                     y = (value[code_at(&x[0], at[0] + i * stride[0])] - zero) * scale;
        if (out->dtype == SINTER_DTYPE_F32) ((float *)out->data)[first + i] = (float)y;
        else view_store_f64(out, first + i, y);
    }
}

/* Weights are large and what is folded into them is a scale: f32 products and dequantised numbers along rows, as the
 * reference computes them (in double, rounded once), without its indirection. False: not one of these. */
static bool compute_rows(const ir_node *n, const view *in, view *out)
{
    const bool is_mul = n->op == OP_mul && in[0].dtype == SINTER_DTYPE_F32 && out->dtype == SINTER_DTYPE_F32;
    const bool is_dequantize =
        n->op == OP_dequantize && is_packed(in[0].dtype) && is_wide(in[1].dtype) && is_wide(out->dtype);
    if (!(is_mul || is_dequantize) || out->rank < 1) return false;
    view x[3] = { { 0 } };
    for (uint32_t i = 0; i < n->count_in; i++)
        if (!view_broadcast(&in[i], out->rank, out->dim, &x[i])) return false;
    double value[256];
    const uint32_t last = out->rank - 1;
    const int64_t stride[3] = { x[0].stride[last], x[1].stride[last], x[2].stride[last] }, count = out->dim[last];
    for (uint32_t i = 0; i < COUNT_OF(value) && is_dequantize; i++) {
        const uint8_t code = (uint8_t)i;
        value[i] = dtype_load_f64(in[0].dtype, &code, 0);
    }
    int64_t index[SINTER_RANK_MAX], first = 0;
    for (bool more = view_first(out->dim, last, index); more; more = view_next(out->dim, last, index), first += count) {
        int64_t at[3] = { 0 };
        for (uint32_t i = 0; i < n->count_in; i++)
            for (uint32_t k = 0; k < last; k++) at[i] += index[k] * x[i].stride[k];
        if (is_mul) multiply_row(x, at, stride, (float *)out->data + first, count);
        else dequantize_row(x, value, at, stride, out, first, count);
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
    int64_t count_in = 0, count_out = 0; /* elements of the largest */
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (!n->in[i]) continue;
        if (!ir_const_view(g, n->in[i], &in[i])) return SINTER_OK;
        total_in = size_add(total_in, ir_value_at(g, n->in[i])->data_size);
        if (view_count(&in[i]) > count_in) count_in = view_count(&in[i]);
    }
    for (uint32_t i = 0; i < n->count_out; i++) {
        const ir_value *v = ir_value_at(g, n->out[i]);
        sinter_tensor t = { .dtype = v->dtype, .rank = v->rank };
        for (uint32_t k = 0; k < v->rank; k++)
            if (!dim_is_const(g->dims, v->dim[k], &t.dim[k])) return SINTER_OK;
        size[i] = sinter_tensor_size(&t);
        if (size[i] == SIZE_MAX || !view_init(&out[i], v->dtype, v->rank, t.dim, NULL)) return SINTER_OK;
        total_out = size_add(total_out, size[i]);
        count_out += view_count(&out[i]);
    }
    const size_t grown = size_mul(total_in, GROWTH), allowed = grown > FREE_SIZE ? grown : FREE_SIZE;
    const bool is_larger = total_out > allowed || total_out > g->e->limits.fold_max;
    if (is_larger && (count_out / 2 > count_in || total_out > g->e->limits.memory_max)) return SINTER_OK;
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
