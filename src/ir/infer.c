/* SPDX-License-Identifier: Apache-2.0 */
/* infer.c - types, dims and known integers of a node's outputs.
 *
 * The op table knows ops; this file hands it values as it wants to see them. Ops with regions are known here, because
 * only the graph sees a region: a size that a body decides becomes a late symbol, which the node itself binds while it
 * runs. */
#include "ir/graph.h"

#include <stdlib.h>
#include <string.h>

enum { LOCAL = 16 };

static void describe(ir_graph *g, ir_value_id id, infer_value *out)
{
    *out = (infer_value){ 0 };
    if (!id) return;
    ir_value *v = ir_value_at(g, id);
    if (v->data && !v->shape_value && v->rank <= 1 && dtype_is_int(v->dtype) && sinter_dtype_bits(v->dtype) >= 16 &&
        !v->is_open) {
        int64_t count = 1;
        if (v->rank == 0 || (dim_is_const(g->dims, v->dim[0], &count) && count <= 64)) {
            dim *at = ARENA_NEW(&g->a, dim, (size_t)count);
            if (at) {
                for (int64_t i = 0; i < count; i++) at[i] = dim_const(g->dims, dtype_load_i64(v->dtype, v->data, i));
                v->shape_value = at;
                v->shape_count = (uint32_t)count;
                v->is_read = true;
            }
        }
    }
    out->dtype = v->dtype;
    out->rank = v->rank;
    memcpy(out->dim, v->dim, sizeof(out->dim));
    out->data = sinter_dtype_bits(v->dtype) < 16 || v->is_open ? NULL : v->data;
    out->shape_value = v->shape_value;
    out->shape_count = v->shape_count;
}

static sinter_status accept(ir_graph *g, ir_value_id id, const infer_value *x)
{
    ir_value *v = ir_value_at(g, id);
    if (!dtype_is_valid((int)x->dtype)) return FAIL(g->e, INTERNAL, "no type was inferred for an output");
    if (x->rank > SINTER_RANK_MAX) return FAIL(g->e, UNSUPPORTED, "rank %u, the most is %d", x->rank, SINTER_RANK_MAX);
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->dim[i] != DIM_NONE) continue;
        if (dim_table_failed(g->dims)) return FAIL_MEMORY(g->e, "dimension expressions");
        return FAIL(g->e, INTERNAL, "no size was inferred for axis %u of an output", i);
    }
    if (v->is_output && v->dtype != SINTER_DTYPE_NONE && (v->dtype != x->dtype || v->rank != x->rank))
        return FAIL(g->e, INTERNAL, "output %s would change from %s rank %u to %s rank %u", v->name ? v->name : "",
                    sinter_dtype_name(v->dtype), v->rank, sinter_dtype_name(x->dtype), x->rank);
    const bool keep_dims = v->is_output && v->dtype != SINTER_DTYPE_NONE;
    v->dtype = x->dtype;
    v->rank = x->rank;
    if (!keep_dims)
        for (uint32_t i = 0; i < x->rank; i++) v->dim[i] = x->dim[i];
    v->shape_value = NULL;
    v->shape_count = 0;
    if (x->shape_value) {
        dim *at = ARENA_NEW(&g->a, dim, x->shape_count);
        if (!at) return FAIL_MEMORY(g->e, "a shape value");
        if (x->shape_count) memcpy(at, x->shape_value, x->shape_count * sizeof(*at));
        v->shape_value = at;
        v->shape_count = x->shape_count;
    }
    return SINTER_OK;
}

static sinter_status infer_op(ir_graph *g, ir_node_id id)
{
    const ir_node *n = &g->node.at[id];
    infer_value in_local[LOCAL], out_local[LOCAL];
    const size_t in_size = size_mul(sizeof(infer_value), n->count_in),
                 out_size = size_mul(sizeof(infer_value), n->count_out);
    infer_value *in = n->count_in <= LOCAL ? in_local : mem_alloc(g->e, in_size, _Alignof(infer_value));
    infer_value *out = n->count_out <= LOCAL ? out_local : mem_alloc(g->e, out_size, _Alignof(infer_value));
    sinter_status status = in && out ? SINTER_OK : FAIL_MEMORY(g->e, "shape inference");
    if (!status) {
        for (uint32_t i = 0; i < n->count_in; i++) describe(g, n->in[i], &in[i]);
        memset(out, 0, out_size);
        infer_ctx c = { .e = g->e,
                        .a = &g->a,
                        .dims = g->dims,
                        .op = n->op,
                        .attrs = n->attrs,
                        .count_in = n->count_in,
                        .count_out = n->count_out,
                        .in = in,
                        .out = out,
                        .program = n->epilogue };
        status = op_infer(&c);
        n = &g->node.at[id];
        for (uint32_t i = 0; !status && i < n->count_out; i++) status = accept(g, n->out[i], &out[i]);
    }
    if (in != in_local) mem_free(g->e, in, in_size, _Alignof(infer_value));
    if (out != out_local) mem_free(g->e, out, out_size, _Alignof(infer_value));
    return status;
}

sinter_status ir_infer(ir_graph *g, ir_node_id id)
{
    const ir_node *n = ir_node_at(g, id);
    const op_info *op = op_at(n->op);
    const bool is_known = n->count_out && g->value.at[n->out[0]].dtype != SINTER_DTYPE_NONE;
    sinter_status status = SINTER_OK;
    if (op->regions) status = ir_infer_region(g, id);
    else if (n->op != OP_pointwise && (n->count_anchor != n->count_in || n->prologue || n->epilogue)) return SINTER_OK;
    else if (!(op->traits & LATE && is_known)) status = infer_op(g, id); /* else its late symbols would change */
    if (status) return NOTE(g->e, status, "while inferring the shapes of node %s (%s)", ir_node_label(g, id), op->name);
    return g->a.failed ? FAIL_MEMORY(g->e, "the graph") : SINTER_OK;
}

/* ---- if, loop, scan ---- */

/* The late symbols that mean nothing outside of a region: those that are bound in it, and those of its parameters. */
typedef struct inner_symbols {
    ir_region_id region;
    bool is_known;
    VEC(uint32_t) list; /* sorted, allocated in the scratch arena */
    arena *scratch;
} inner_symbols;

static void inner_add(const ir_graph *g, inner_symbols *s, ir_node_id id)
{
    uint32_t symbol;
    for (ir_bound b = ir_bound_of(g, id); ir_bound_next(&b, &symbol);) {
        uint32_t *slot = VEC_PUSH(s->scratch, &s->list);
        if (slot) *slot = symbol; /* the arena remembers */
    }
}

static void inner_add_region(const ir_graph *g, inner_symbols *s, ir_region_id id, uint32_t depth)
{
    const ir_region *r = ir_region_at(g, id);
    for (uint32_t i = 0; i < r->node.count; i++) {
        const ir_node *n = &g->node.at[r->node.at[i]];
        if (n->is_dead || n->parent != id) continue;
        inner_add(g, s, r->node.at[i]);
        for (uint32_t k = 0; depth < 128 && k < n->count_region; k++) inner_add_region(g, s, n->region[k], depth + 1);
    }
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool mentions(const ir_graph *g, dim d, const inner_symbols *s)
{
    const dim_node *x = dim_at(g->dims, d);
    if (!dim_is_late(g->dims, d)) return false;
    if (x->kind != DIM_SYMBOL) return mentions(g, x->a, s) || mentions(g, x->b, s);
    const uint32_t symbol = (uint32_t)x->value;
    return s->list.count && bsearch(&symbol, s->list.at, s->list.count, sizeof symbol, by_number);
}

static sinter_status dim_is_inner(ir_graph *g, dim d, inner_symbols *s, bool *inner)
{
    *inner = false;
    if (!dim_is_late(g->dims, d)) return SINTER_OK;
    if (!s->is_known) {
        inner_add(g, s, ir_region_at(g, s->region)->owner);
        inner_add_region(g, s, s->region, 0);
        if (s->scratch->failed) return FAIL_MEMORY(g->e, "shape inference");
        if (s->list.count) qsort(s->list.at, s->list.count, sizeof *s->list.at, by_number);
        s->is_known = true;
    }
    *inner = mentions(g, d, s);
    return SINTER_OK;
}

/* A late symbol for axis i of an output: the one of this node that stands there already, or a new one. */
static sinter_status late_dim(ir_graph *g, ir_node_id id, ir_value_id out, uint32_t i, const char *stem, dim max,
                              dim *late)
{
    const ir_value *v = ir_value_at(g, out);
    if (v->dtype != SINTER_DTYPE_NONE && i < v->rank && ir_binds(g, id, v->dim[i])) {
        *late = v->dim[i];
        return SINTER_OK;
    }
    const dim_range r = dim_range_of(g->dims, max);
    *late = dim_symbol_late(g->dims, stem, max != DIM_NONE && r.max < INT64_MAX ? max : DIM_NONE);
    return *late == DIM_NONE ? FAIL_MEMORY(g->e, "shape inference") : ir_bound_add(g, id, *late);
}

static infer_value value_of(ir_graph *g, ir_value_id id)
{
    infer_value v;
    describe(g, id, &v);
    return v;
}

static sinter_status infer_if(ir_graph *g, ir_node_id id, arena *scratch)
{
    const ir_node *n = &g->node.at[id];
    const ir_region *yes = ir_region_at(g, n->region[0]), *no = ir_region_at(g, n->region[1]);
    if (yes->result.count != n->count_out || no->result.count != n->count_out)
        return FAIL(g->e, INVALID_MODEL, "the branches give %u and %u results, the node has %u outputs",
                    yes->result.count, no->result.count, n->count_out);
    double condition = 0;
    const bool is_decided = ir_const_scalar(g, n->in[0], &condition);
    inner_symbols in_yes = { .region = n->region[0], .scratch = scratch },
                  in_no = { .region = n->region[1], .scratch = scratch };
    for (uint32_t i = 0; i < n->count_out; i++) {
        infer_value a = value_of(g, yes->result.at[i]), b = value_of(g, no->result.at[i]);
        if (is_decided) a = b = condition != 0 ? a : b;
        if (a.dtype != b.dtype)
            return FAIL(g->e, INVALID_MODEL, "output %u is %s in one branch and %s in the other", i,
                        sinter_dtype_name(a.dtype), sinter_dtype_name(b.dtype));
        if (a.rank != b.rank)
            return FAIL(g->e, UNSUPPORTED, "output %u has rank %u in one branch and rank %u in the other", i, a.rank,
                        b.rank);
        for (uint32_t k = 0; k < a.rank; k++) {
            bool inner_a = false, inner_b = false;
            TRY(dim_is_inner(g, a.dim[k], &in_yes, &inner_a));
            TRY(dim_is_inner(g, b.dim[k], &in_no, &inner_b));
            if (a.dim[k] != b.dim[k] || inner_a || inner_b)
                TRY(late_dim(g, id, n->out[i], k, "if", dim_max(g->dims, a.dim[k], b.dim[k]), &a.dim[k]));
        }
        bool same = a.shape_value && b.shape_value && a.shape_count == b.shape_count;
        for (uint32_t k = 0; same && k < a.shape_count; k++) {
            bool inner = false;
            TRY(dim_is_inner(g, a.shape_value[k], &in_yes, &inner));
            same = a.shape_value[k] == b.shape_value[k] && !inner;
        }
        if (!same) a.shape_value = NULL;
        TRY(accept(g, n->out[i], &a));
    }
    return SINTER_OK;
}

/* Output k carries body result r, which began as input c. */
static sinter_status infer_carried(ir_graph *g, ir_node_id id, ir_value_id out, ir_value_id c, ir_value_id p,
                                   ir_value_id r)
{
    const infer_value from = value_of(g, c), param = value_of(g, p);
    infer_value x = value_of(g, r);
    if (x.dtype != from.dtype || x.dtype != param.dtype)
        return FAIL(g->e, INVALID_MODEL, "a carried value begins as %s and becomes %s", sinter_dtype_name(from.dtype),
                    sinter_dtype_name(x.dtype));
    if (x.rank != from.rank || x.rank != param.rank)
        return FAIL(g->e, UNSUPPORTED, "a carried value begins with rank %u and gets rank %u", from.rank, x.rank);
    for (uint32_t i = 0; i < x.rank; i++) {
        if (x.dim[i] == param.dim[i]) x.dim[i] = from.dim[i];
        else TRY(late_dim(g, id, out, i, "loop", DIM_NONE, &x.dim[i]));
    }
    x.shape_value = NULL;
    return accept(g, out, &x);
}

static sinter_status infer_scanned(ir_graph *g, ir_node_id id, ir_value_id out, inner_symbols *in_body, ir_value_id r,
                                   int64_t axis, dim lead, bool is_late)
{
    infer_value x = value_of(g, r);
    if (x.rank >= SINTER_RANK_MAX)
        return FAIL(g->e, UNSUPPORTED, "a scanned output of rank %u, the most is %d", x.rank + 1, SINTER_RANK_MAX);
    if (axis < 0 || axis > (int64_t)x.rank)
        return FAIL(g->e, INVALID_MODEL, "scan axis %lld of rank %u", (long long)axis, x.rank + 1);
    infer_value y = { .dtype = x.dtype, .rank = x.rank + 1 };
    for (uint32_t i = 0, k = 0; i < y.rank; i++) {
        if (i == (uint32_t)axis) {
            y.dim[i] = lead;
            if (is_late) TRY(late_dim(g, id, out, i, "trip", lead, &y.dim[i]));
            continue;
        }
        bool inner = false;
        y.dim[i] = x.dim[k++];
        TRY(dim_is_inner(g, y.dim[i], in_body, &inner));
        if (inner) TRY(late_dim(g, id, out, i, "scanned", y.dim[i], &y.dim[i]));
    }
    return accept(g, out, &y);
}

static sinter_status check_type(ir_graph *g, ir_value_id v, sinter_dtype wanted, const char *what)
{
    const sinter_dtype found = v ? ir_value_at(g, v)->dtype : wanted;
    if (found == wanted) return SINTER_OK;
    return FAIL(g->e, INVALID_MODEL, "%s is %s, expected %s", what, sinter_dtype_name(found),
                sinter_dtype_name(wanted));
}

static sinter_status infer_loop(ir_graph *g, ir_node_id id, arena *scratch)
{
    const ir_node *n = &g->node.at[id];
    const attrs_loop *at = n->attrs;
    const ir_region *body = ir_region_at(g, n->region[0]);
    const uint32_t carried = (uint32_t)at->carried;
    if (at->carried < 0 || at->carried > (int64_t)n->count_in - 2 || n->count_out < carried ||
        body->result.count != n->count_out + 1 || body->param.count != n->count_in)
        return FAIL(g->e, INVALID_MODEL,
                    "a body with %u inputs and %u results does not fit %u inputs, %u outputs and %lld carried values",
                    body->param.count, body->result.count, n->count_in, n->count_out, (long long)at->carried);
    TRY(check_type(g, n->in[0], SINTER_DTYPE_I64, "the trip count of a loop"));
    TRY(check_type(g, n->in[1], SINTER_DTYPE_BOOL, "the condition of a loop"));
    TRY(check_type(g, body->result.at[0], SINTER_DTYPE_BOOL, "the first result of a loop's body"));
    for (uint32_t i = 0; i < carried; i++)
        TRY(infer_carried(g, id, n->out[i], n->in[i + 2], body->param.at[i + 2], body->result.at[i + 1]));
    /* The trip count is exact where nothing can stop the loop earlier. */
    const infer_value trip = value_of(g, n->in[0]);
    double first = 1, again = 0;
    const bool starts = !n->in[1] || (ir_const_scalar(g, n->in[1], &first) && first != 0);
    const ir_value_id next = body->result.at[0];
    const bool goes_on = next == body->param.at[1] || (ir_const_scalar(g, next, &again) && again != 0);
    dim lead = DIM_NONE;
    if (trip.shape_value && trip.shape_count == 1) lead = dim_max(g->dims, trip.shape_value[0], dim_const(g->dims, 0));
    const bool is_exact = lead != DIM_NONE && starts && goes_on;
    inner_symbols in_body = { .region = n->region[0], .scratch = scratch };
    for (uint32_t i = carried; i < n->count_out; i++)
        TRY(infer_scanned(g, id, n->out[i], &in_body, body->result.at[i + 1], 0, lead, !is_exact));
    return SINTER_OK;
}

static sinter_status infer_scan(ir_graph *g, ir_node_id id, arena *scratch)
{
    const ir_node *n = &g->node.at[id];
    const attrs_scan *at = n->attrs;
    const ir_region *body = ir_region_at(g, n->region[0]);
    const uint32_t carried = (uint32_t)at->carried, scanned = (uint32_t)at->scanned;
    if (at->carried < 0 || at->scanned < 1 || at->carried + at->scanned > (int64_t)n->count_in ||
        n->count_out < carried || body->result.count != n->count_out || body->param.count != n->count_in)
        return FAIL(g->e, INVALID_MODEL,
                    "a body with %u inputs and %u results does not fit %u inputs, %u outputs, %lld carried and %lld "
                    "scanned values",
                    body->param.count, body->result.count, n->count_in, n->count_out, (long long)at->carried,
                    (long long)at->scanned);
    for (uint32_t i = 0; i < carried; i++)
        TRY(infer_carried(g, id, n->out[i], n->in[i], body->param.at[i], body->result.at[i]));
    const ir_value *first = ir_value_at(g, n->in[carried]);
    const int64_t in_axis = at->in_axis.count ? at->in_axis.at[0] : 0;
    if (in_axis < 0 || in_axis >= (int64_t)first->rank)
        return FAIL(g->e, INVALID_MODEL, "scan axis %lld of an input of rank %u", (long long)in_axis, first->rank);
    (void)scanned;
    inner_symbols in_body = { .region = n->region[0], .scratch = scratch };
    for (uint32_t i = carried; i < n->count_out; i++) {
        const uint32_t k = i - carried;
        TRY(infer_scanned(g, id, n->out[i], &in_body, body->result.at[i],
                          k < at->out_axis.count ? at->out_axis.at[k] : 0, first->dim[in_axis], false));
    }
    return SINTER_OK;
}

sinter_status ir_infer_region(ir_graph *g, ir_node_id id)
{
    const ir_node *n = ir_node_at(g, id);
    if (n->count_region != op_at(n->op)->regions)
        return FAIL(g->e, INTERNAL, "%s has %u regions, wants %u", op_at(n->op)->name, n->count_region,
                    op_at(n->op)->regions);
    arena scratch;
    arena_init(&scratch, g->e);
    const sinter_status s = n->op == OP_if     ? infer_if(g, id, &scratch)
                            : n->op == OP_loop ? infer_loop(g, id, &scratch)
                                               : infer_scan(g, id, &scratch);
    arena_deinit(&scratch);
    return s;
}
