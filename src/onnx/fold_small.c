/* SPDX-License-Identifier: Apache-2.0 */
/* fold_small.c - nodes on small constants are computed as soon as they are made.
 *
 * Exporters compute sizes, pads and conditions with chains of ordinary operators. What a chain says decides ranks and
 * branches, so the import has to know it; weights are left to the optimiser, which folds without this limit. */
#include "onnx/importer.h"
#include <string.h>

enum { FOLD_BYTES = 4096 };

static size_t size_of(const view *v)
{
    const sinter_tensor t = { .dtype = v->dtype, .rank = 1, .dim = { view_count(v) } };
    return sinter_tensor_size(&t);
}

/* The attributes as a kernel wants them: sizes in place of expressions. NULL where one is not a number. */
static void *attrs_resolved(const ir_graph *g, arena *a, op_id op, const void *attrs)
{
    if (!op_at(op)->attrs_size) return op_attrs_new(a, op);
    char *copy = op_attrs_copy(a, op, attrs);
    for (const attr_info *i = op_at(op)->attr; copy && i->name; i++) {
        if (i->kind != ATTR_DIMS) continue;
        attr_dims *d = (attr_dims *)(void *)(copy + i->at);
        int64_t *at = ARENA_NEW(a, int64_t, d->count);
        if (!at) return NULL;
        for (uint32_t k = 0; k < d->count; k++)
            if (!dim_is_const(g->dims, (dim)d->at[k], &at[k])) return NULL;
        d->at = at;
    }
    return copy;
}

/* A value's elements: a constant's, or integers that are known although no constant holds them. */
static bool in_view(ir_graph *g, arena *a, ir_value_id id, view *out)
{
    if (ir_const_view(g, id, out)) return size_of(out) <= FOLD_BYTES;
    const ir_value *v = ir_value_at(g, id);
    int64_t item = 0;
    if (!v->shape_value || v->rank > 1) return false;
    const int64_t count = v->shape_count;
    if (!view_init(out, v->dtype, v->rank, &count, arena_alloc(a, (size_t)count * 8, 8)) || !out->data) return false;
    for (uint32_t i = 0; i < v->shape_count; i++) {
        if (!dim_is_const(g->dims, v->shape_value[i], &item)) return false;
        dtype_store_i64(v->dtype, out->data, i, item);
    }
    return v->rank == 1 || count == 1;
}

static bool out_view(ir_graph *g, ir_value_id id, view *out)
{
    const ir_value *v = ir_value_at(g, id);
    int64_t size[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < v->rank; i++)
        if (!dim_is_const(g->dims, v->dim[i], &size[i]) || size[i] < 0) return false;
    return view_init(out, v->dtype, v->rank, size, NULL) && size_of(out) <= FOLD_BYTES;
}

void importer_fold(importer *im, ir_node_id id)
{
    enum { IN_MAX = 16, OUT_MAX = 4 };
    ir_graph *g = im->g;
    const ir_node *n = ir_node_at(g, id);
    const uint32_t traits = op_at(n->op)->traits;
    view in[IN_MAX], out[OUT_MAX];
    void *data[OUT_MAX];
    size_t size[OUT_MAX];
    if (n->count_in > IN_MAX || n->count_out > OUT_MAX || !n->count_out || n->count_region || n->op == OP_random ||
        traits & LATE)
        return;
    const arena_mark mark = arena_save(&im->a);
    bool done = true;
    memset(in, 0, sizeof in);
    for (uint32_t i = 0; i < n->count_in && done; i++) done = !n->in[i] || in_view(g, &im->a, n->in[i], &in[i]);
    for (uint32_t i = 0; i < n->count_out && done; i++) done = out_view(g, n->out[i], &out[i]);
    void *attrs = done ? attrs_resolved(g, &im->a, n->op, n->attrs) : NULL;
    done = attrs != NULL;
    for (uint32_t i = 0; i < n->count_out && done; i++) {
        size[i] = size_of(&out[i]);
        data[i] = out[i].data = arena_alloc(&g->a, size[i], 64);
        done = data[i] != NULL;
    }
    data_fault fault = { 0 };
    ref_call c = { .e = im->e,
                   .op = n->op,
                   .attrs = attrs,
                   .count_in = n->count_in,
                   .count_out = n->count_out,
                   .in = in,
                   .out = out,
                   .scratch = &im->a,
                   .fault = &fault };
    if (done && op_reference(&c) != SINTER_OK) { /* not decided here, then: the run will say what is wrong */
        im->e->error->status = SINTER_OK;
        im->e->error->length = 0;
        im->e->error->text[0] = 0;
        done = false;
    }
    arena_rewind(&im->a, mark);
    if (done && !fault.is_set) ir_node_fold(g, id, data, size);
}
