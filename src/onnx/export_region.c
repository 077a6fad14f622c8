/* SPDX-License-Identifier: Apache-2.0 */
/* export_region.c - graphs: the nodes of a region in order, its parameters and results; If, Loop and Scan.
 *
 * In ONNX a subgraph reads values of the graphs around it by name. So a captured value has one name inside and outside,
 * and captures are no inputs of the operator. */
#include "onnx/exporter.h"

#include <string.h>

/* Field numbers of onnx.proto. */
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_IN = 11, GRAPH_OUT = 12, GRAPH_INFO = 13 };
enum {
    INFO_NAME = 1,
    INFO_TYPE = 2,
    TYPE_TENSOR = 1,
    TENSOR_TYPE = 1,
    TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_PARAM = 2
};

/* ---- types and shapes ---- */

void export_value_info(exporter *x, wire_out *to, uint32_t field, ir_value_id v, const char *name, bool with_late)
{
    const ir_value *value = ir_value_at(x->g, v);
    wire_out info, type, tensor, shape, d;
    wire_out *all[] = { &info, &type, &tensor, &shape, &d };
    for (uint32_t i = 0; i < COUNT_OF(all); i++) wire_out_init(all[i], x->e);
    for (uint32_t i = 0; i < value->rank; i++) {
        int64_t size;
        uint32_t symbol;
        wire_out_clear(&d);
        if (dim_is_const(x->g->dims, value->dim[i], &size)) {
            wire_put_number(&d, DIM_VALUE, (uint64_t)size);
        } else if (dim_symbol_of(x->g->dims, value->dim[i], &symbol)) {
            const dim_symbol *s = dim_symbol_at(x->g->dims, symbol);
            if (with_late || !s->is_late) wire_put_text(&d, DIM_PARAM, s->name);
        }
        wire_put_message(&shape, SHAPE_DIM, &d);
    }
    wire_put_number(&tensor, TENSOR_TYPE, (uint64_t)export_type(x, value->dtype));
    wire_put_message(&tensor, TENSOR_SHAPE, &shape);
    wire_put_message(&type, TYPE_TENSOR, &tensor);
    wire_put_text(&info, INFO_NAME, name);
    wire_put_message(&info, INFO_TYPE, &type);
    wire_put_message(to, field, &info);
    if (to->failed) EXPORT_FAIL(x, NO_MEMORY, "out of memory for the model");
    for (uint32_t i = 0; i < COUNT_OF(all); i++) wire_out_deinit(all[i]);
}

/* ---- nodes ---- */

static bool is_named(const exporter *x, const ir_value *v)
{
    for (uint32_t i = 0; i < v->rank; i++) {
        uint32_t symbol;
        if (!dim_is_const(x->g->dims, v->dim[i], NULL) &&
            (!dim_symbol_of(x->g->dims, v->dim[i], &symbol) || dim_symbol_at(x->g->dims, symbol)->is_late))
            return false;
    }
    return true;
}

static void write_node(exporter *x, ir_node_id id, export_scope *s)
{
    const ir_node *n = ir_node_at(x->g, id);
    const export_row *row = export_row_at(n->op);
    if (x->status) return;
    x->node = n;
    if (row->since) export_need(x, row->since);
    if (n->op == OP_identity && x->name[n->out[0]] && x->name[n->out[0]] == x->name[n->in[0]]) return;
    if (row->write) row->write(x, n, row);
    else EXPORT_FAIL(x, UNSUPPORTED, "op %s has no form in ONNX here", op_at(n->op)->name);
    if (x->status) x->status = NOTE(x->e, x->status, "while writing node '%s'", ir_node_label(x->g, id));
    const ir_node *last = x->sum[id] ? ir_node_at(x->g, x->sum[id]) : n;
    for (uint32_t i = 0; i < last->count_out && !x->status; i++) {
        const ir_value *v = ir_value_at(x->g, last->out[i]);
        const char *name = export_name(x, last->out[i]);
        export_know_dims(x, last->out[i], name, false);
        if (!s->outer && !v->is_output && is_named(x, v))
            export_value_info(x, &s->infos, GRAPH_INFO, last->out[i], name, false);
    }
}

static void write_nodes(exporter *x, ir_region_id region, export_scope *s)
{
    ir_node_id *order = NULL;
    uint32_t count = 0;
    if (x->status) return;
    x->status = ir_order(x->g, region, &x->a, &order, &count);
    for (uint32_t i = 0; i < count && !x->status; i++) {
        if (!x->is_inside[order[i]]) write_node(x, order[i], s);
    }
}

/* The name of a result: its own, or that of an identity where the value is made elsewhere or is a result already. */
static const char *result_name(exporter *x, const ir_region *r, uint32_t i, export_scope *s)
{
    const ir_value_id v = r->result.at[i];
    const ir_value *value = ir_value_at(x->g, v);
    const ir_node_id maker = value->producer;
    bool is_own = maker && ir_node_at(x->g, maker)->parent == s->region;
    for (uint32_t k = 0; k < i; k++) is_own = is_own && r->result.at[k] != v;
    const char *name = export_name(x, v);
    return is_own ? name : export_emit(x, s, "Identity", &name, 1);
}

void export_graph(exporter *x, ir_region_id region, const char *const *param, const char *name, wire_out *out)
{
    export_scope *s = export_scope_enter(x, region);
    wire_out_init(out, x->e);
    if (!s) return;
    const ir_region *r = ir_region_at(x->g, region);
    for (uint32_t i = 0; i < r->param.count && !x->status; i++) {
        const ir_value_id v = r->param.at[i];
        if (param && param[i]) x->name[v] = param[i]; /* a captured value */
        else export_value_info(x, out, GRAPH_IN, v, export_name(x, v), false);
        if (!param || !param[i]) export_know_dims(x, v, export_name(x, v), true);
    }
    write_nodes(x, region, s);
    for (uint32_t i = 0; i < r->result.count && !x->status; i++) {
        const char *result = result_name(x, r, i, s);
        export_value_info(x, out, GRAPH_OUT, r->result.at[i], result, false);
    }
    wire_put_text(out, GRAPH_NAME, name);
    wire_put_raw(out, s->infos.at, s->infos.size);
    wire_put_raw(out, s->nodes.at, s->nodes.size);
    export_scope_leave(x, s);
}

/* ---- If, Loop, Scan ---- */

/* The names of a region's parameters: those from `first` on are captures, the inputs of the node from `in` on. */
static const char **captured(exporter *x, const ir_node *n, ir_region_id region, uint32_t first, uint32_t in)
{
    const uint32_t count = ir_region_at(x->g, region)->param.count;
    const char **name = ARENA_NEW(&x->a, const char *, (size_t)count + 1);
    if (!name) EXPORT_FAIL(x, NO_MEMORY, "out of memory for a subgraph");
    for (uint32_t i = first; i < count && !x->status; i++) {
        if (in + i - first >= n->count_in) EXPORT_FAIL(x, INTERNAL, "a subgraph with a parameter too many");
        else name[i] = export_name(x, n->in[in + i - first]);
    }
    return x->status ? NULL : name;
}

static void body(exporter *x, export_node *to, const char *attr, const ir_node *n, uint32_t region, uint32_t first,
                 uint32_t in)
{
    wire_out graph;
    const ir_region_id r = n->region[region];
    const char **name = captured(x, n, r, first, in);
    if (x->status) return;
    export_graph(x, r, name, attr, &graph);
    x->node = n;
    node_graph(x, to, attr, &graph);
    wire_out_deinit(&graph);
}

void export_if(exporter *x, const ir_node *n, const export_row *row)
{
    export_node to = node_begin(x, row->type);
    node_in(x, &to, export_name(x, n->in[0]));
    node_outs(x, &to, n);
    body(x, &to, "then_branch", n, 0, 0, 1);
    body(x, &to, "else_branch", n, 1, 0, 1);
    node_end(x, &to, x->scope);
}

void export_loop(exporter *x, const ir_node *n, const export_row *row)
{
    const uint32_t carried = (uint32_t)((const attrs_loop *)n->attrs)->carried;
    export_node to = node_begin(x, row->type);
    for (uint32_t i = 0; i < 2 + carried; i++) node_in(x, &to, export_name(x, n->in[i]));
    node_outs(x, &to, n);
    body(x, &to, "body", n, 0, 2 + carried, 2 + carried);
    node_end(x, &to, x->scope);
}

void export_scan(exporter *x, const ir_node *n, const export_row *row)
{
    const attrs_scan *a = n->attrs;
    const uint32_t own = (uint32_t)(a->carried + a->scanned);
    export_node to = node_begin(x, row->type);
    for (uint32_t i = 0; i < own; i++) node_in(x, &to, export_name(x, n->in[i]));
    node_outs(x, &to, n);
    node_int(x, &to, "num_scan_inputs", a->scanned);
    node_list(x, &to, "scan_input_axes", &a->in_axis);
    node_list(x, &to, "scan_input_directions", &a->in_reverse);
    node_list(x, &to, "scan_output_axes", &a->out_axis);
    node_list(x, &to, "scan_output_directions", &a->out_reverse);
    body(x, &to, "body", n, 0, own, own);
    node_end(x, &to, x->scope);
}
