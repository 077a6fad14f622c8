/* SPDX-License-Identifier: Apache-2.0 */
/* export_blocks.c - weights with a scale for each block, as the one DequantizeLinear that ONNX has for them.
 *
 * In a graph the blocks are an axis of their own:
 *     codes [P, B, N] and scales [P, 1, N]  ->  dequantize  ->  reshape [P * B, N]  ->  slice [K, N]
 * The reshape and the slice are written with the dequantize: one node with block_size B that reads codes [K, N] and
 * scales [P, N]. The slice is there where the last block is short. Runtimes recognise this node before a product and
 * keep such a weight packed. */
#include "onnx/exporter.h"

#include <string.h>

static bool dims_known(const exporter *x, const ir_value *v, int64_t *d)
{
    for (uint32_t i = 0; i < v->rank; i++)
        if (!dim_is_const(x->g->dims, v->dim[i], &d[i])) return false;
    return true;
}

/* The one node that reads v; 0: there are others. */
static ir_node_id reader_of(exporter *x, ir_value_id v)
{
    ir_node_id *reader = NULL;
    const ir_value *value = ir_value_at(x->g, v);
    if (value->use_count != 1 || value->is_output) return 0;
    const arena_mark mark = arena_save(&x->a);
    const ir_node_id found = ir_readers(x->g, v, &x->a, &reader) == 1 ? reader[0] : 0;
    arena_rewind(&x->a, mark);
    return found;
}

/* Does the slice keep the first elements of `axis`, and all of the others? */
static bool is_cut(const exporter *x, const ir_node *n, uint32_t axis, const int64_t *from, const int64_t *to)
{
    const attrs_slice *a = n->attrs;
    const uint32_t rank = ir_value_at(x->g, n->in[0])->rank;
    for (uint32_t i = 0; i < rank; i++) {
        if (!dim_is(x->g->dims, export_dim(&a->start, i), 0) || a->step.at[i] != 1) return false;
        if (i != axis && from[i] != to[i]) return false;
    }
    return true;
}

/* A constant that has one number for each block, or is the number for all of them. */
static bool is_of_blocks(const exporter *x, ir_value_id v, int64_t count)
{
    view have;
    return ir_const_view(x->g, v, &have) && (view_count(&have) == count || view_count(&have) == 1);
}

/* The constant that the codes are: in blocks, or what was padded and reshaped to be. 0: none. */
static ir_value_id codes_of(exporter *x, ir_value_id v, int64_t whole, int64_t padded, ir_node_id before[2])
{
    view have;
    const ir_value *q = ir_value_at(x->g, v);
    bool is_own = true;
    for (uint32_t depth = 0; depth < 2 && !q->data; depth++) {
        const ir_node *n = ir_node_at(x->g, q->producer);
        if (n->op != OP_reshape && n->op != OP_pad) return 0;
        is_own = is_own && reader_of(x, v);
        before[depth] = is_own ? q->producer : 0;
        v = n->in[0];
        q = ir_value_at(x->g, v);
    }
    if (!ir_const_view(x->g, v, &have)) return 0;
    return view_count(&have) == whole || view_count(&have) == padded ? v : 0;
}

/* Scales are alike along one axis, the axis behind that of the blocks; the reshape makes one axis of both. */
static bool is_merged(const int64_t *dq, const int64_t *ds, const int64_t *flat, uint32_t rank, export_blocks *b)
{
    b->axis = 0;
    while (b->axis < rank && ds[b->axis + 1] == dq[b->axis + 1]) b->axis++;
    if (b->axis == rank || ds[b->axis + 1] != 1) return false;
    b->size = dq[b->axis + 1];
    for (uint32_t i = 0; i < rank + 1; i++)
        if (i != b->axis + 1 && ds[i] != dq[i]) return false;
    for (uint32_t i = 0; i < rank; i++) {
        b->parts[i] = dq[i > b->axis ? i + 1 : i];
        if (flat[i] != (i == b->axis ? dq[i] * dq[i + 1] : b->parts[i])) return false;
        b->padded[i] = b->dim[i] = flat[i];
    }
    b->rank = rank;
    return true;
}

static int64_t product(const int64_t *d, uint32_t rank)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) count *= d[i];
    return count;
}

bool export_blocks_find(exporter *x, ir_node_id id, export_blocks *b)
{
    const ir_graph *g = x->g;
    const ir_node *n = ir_node_at(g, id);
    int64_t dq[SINTER_RANK_MAX], ds[SINTER_RANK_MAX], d[SINTER_RANK_MAX];
    if (n->is_dead || n->op != OP_dequantize || n->count_in < 3 || n->prologue || n->epilogue) return false;
    const ir_value *q = ir_value_at(g, n->in[0]), *s = ir_value_at(g, n->in[1]), *y = ir_value_at(g, n->out[0]);
    if (q->rank < 2 || s->rank != q->rank || !dims_known(x, q, dq) || !dims_known(x, s, ds)) return false;
    if (s->dtype != y->dtype || (s->dtype != SINTER_DTYPE_F32 && s->dtype != SINTER_DTYPE_F16)) return false;
    *b = (export_blocks){ .node = id, .merge = reader_of(x, n->out[0]) };
    const ir_node *merge = ir_node_at(g, b->merge);
    if (!b->merge || merge->op != OP_reshape || merge->parent != n->parent) return false;
    b->last = b->merge;
    const ir_value *m = ir_value_at(g, merge->out[0]);
    if (m->rank + 1 != q->rank || !dims_known(x, m, d) || !is_merged(dq, ds, d, m->rank, b)) return false;
    const ir_node_id behind = reader_of(x, merge->out[0]);
    const ir_node *cut = ir_node_at(g, behind);
    if (behind && cut->op == OP_slice && cut->parent == n->parent && dims_known(x, ir_value_at(g, cut->out[0]), d) &&
        is_cut(x, cut, b->axis, b->padded, d) && (d[b->axis] + b->size - 1) / b->size == b->parts[b->axis]) {
        b->last = behind;
        memcpy(b->dim, d, sizeof b->dim);
    }
    const int64_t count = product(b->parts, b->rank);
    b->codes = codes_of(x, n->in[0], product(b->dim, b->rank), product(b->padded, b->rank), b->before);
    return b->codes && is_of_blocks(x, n->in[1], count) && is_of_blocks(x, n->in[2], count);
}

/* ---- writing ---- */

/* Memory for a constant of these dims. False: there is none, and the exporter has failed. */
static bool made(exporter *x, sinter_dtype type, const int64_t *d, uint32_t rank, view *out)
{
    sinter_tensor sized = { .dtype = type, .rank = rank };
    memcpy(sized.dim, d, rank * sizeof *d);
    const size_t size = sinter_tensor_size(&sized);
    void *data = size == SIZE_MAX ? NULL : arena_alloc(&x->a, size, 8);
    if (data && view_init(out, type, rank, d, data)) return true;
    EXPORT_FAIL(x, NO_MEMORY, "out of memory for a weight in blocks");
    return false;
}

/* Scale or zero point, one for each block; "": the zero point is 0, which is the default. */
static const char *write_parts(exporter *x, const export_blocks *b, ir_value_id v, bool is_zero)
{
    const ir_value *p = ir_value_at(x->g, v);
    double value = 0;
    view have, all;
    const bool is_one = ir_const_scalar(x->g, v, &value);
    if (is_zero && is_one && value == 0) return "";
    if (!ir_const_view(x->g, v, &have)) return "";
    if (view_count(&have) == product(b->parts, b->rank))
        return export_constant(x, p->name, p->dtype, b->rank, b->parts, have.data);
    if (!made(x, p->dtype, b->parts, b->rank, &all)) return "";
    for (int64_t i = 0; i < view_count(&all); i++) view_store_f64(&all, i, view_load_f64(&have, 0));
    return export_constant(x, NULL, p->dtype, b->rank, b->parts, all.data);
}

/* The codes where they lie, or a copy without the rest of the last block. */
static const char *write_codes(exporter *x, const export_blocks *b)
{
    const ir_value *q = ir_value_at(x->g, b->codes);
    view have, flat, cut;
    if (!ir_const_view(x->g, b->codes, &have)) return "";
    if (view_count(&have) == product(b->dim, b->rank))
        return export_constant(x, q->name, q->dtype, b->rank, b->dim, have.data);
    if (!view_init(&flat, q->dtype, b->rank, b->padded, have.data) || !made(x, q->dtype, b->dim, b->rank, &cut))
        return "";
    int64_t inner = 1;
    for (uint32_t i = b->axis + 1; i < b->rank; i++) inner *= b->dim[i];
    const int64_t row = b->dim[b->axis] * inner, row_padded = b->padded[b->axis] * inner;
    for (int64_t i = 0; i < view_count(&cut); i++)
        view_store_f64(&cut, i, view_load_f64(&flat, i / row * row_padded + i % row));
    return export_constant(x, q->name, q->dtype, b->rank, b->dim, cut.data);
}

void export_blocks_write(exporter *x, const export_blocks *b)
{
    const ir_node *n = ir_node_at(x->g, b->node);
    const char *codes = write_codes(x, b), *scale = write_parts(x, b, n->in[1], false),
               *zero = write_parts(x, b, n->in[2], true);
    export_node to = node_begin(x, "DequantizeLinear");
    node_in(x, &to, codes);
    node_in(x, &to, scale);
    if (*zero) node_in(x, &to, zero);
    node_outs(x, &to, ir_node_at(x->g, b->last));
    to.from = n;
    node_int(x, &to, "axis", b->axis);
    node_int(x, &to, "block_size", b->size);
    node_end(x, &to, x->scope);
}
