/* SPDX-License-Identifier: Apache-2.0 */
/* export.c - the ModelProto around the graph, its initializers, and the files: export.h has the contract.
 *
 * Everything but the constants is small and is put together in memory. Constants go to the sink from where they lie:
 * their lengths are known, so the lengths of the messages around them are, too. */
#include "onnx/exporter.h"

#include "base/os.h"
#include "sinter/version.h"

#include <string.h>

/* Field numbers of onnx.proto. */
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2, GRAPH_INITIALIZER = 5 };
enum { TENSOR_DIM = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9, TENSOR_EXTERNAL = 13, TENSOR_LOCATION = 14 };
enum { DATA_ALIGN = 4096 };

/* ---- what becomes one node ---- */

/* Is `v` a constant [1, C, 1, …] or [C, 1, …] beside a result with channels on axis 1, or [N] beside a matrix? */
static bool is_bias(const exporter *x, ir_value_id v, const ir_value *y, bool is_matrix)
{
    const ir_value *c = ir_value_at(x->g, v);
    const uint32_t axis = is_matrix ? y->rank - 1 : 1;
    if (!c->data || c->rank > y->rank || c->dtype != y->dtype) return false;
    for (uint32_t i = 0; i < c->rank; i++) {
        const uint32_t at = y->rank - c->rank + i;
        if (at != axis && !dim_is(x->g->dims, c->dim[i], 1)) return false;
    }
    return c->rank + axis >= y->rank && c->dim[axis + c->rank - y->rank] == y->dim[axis] &&
           dim_is_const(x->g->dims, y->dim[axis], NULL);
}

/* The addition of a bias to the result of a convolution or of a product of matrices, which nothing else reads. */
static ir_node_id sum_of(exporter *x, ir_node_id id)
{
    ir_graph *g = x->g;
    const ir_node *n = ir_node_at(g, id);
    const ir_value *y = ir_value_at(g, n->out[0]);
    const bool is_matrix = n->op == OP_matmul;
    if (n->is_dead || n->count_in != 2 || y->use_count != 1 || y->is_output) return 0;
    if (n->op != OP_conv && n->op != OP_conv_transpose && !(is_matrix && export_is_gemm(x, n))) return 0;
    ir_node_id *reader = NULL;
    const arena_mark mark = arena_save(&x->a);
    const ir_node_id found = ir_readers(g, n->out[0], &x->a, &reader) == 1 ? reader[0] : 0;
    arena_rewind(&x->a, mark);
    const ir_node *sum = ir_node_at(g, found);
    if (!found || sum->op != OP_add || sum->parent != n->parent) return 0;
    const ir_value *z = ir_value_at(g, sum->out[0]);
    if (z->rank != y->rank || memcmp(z->dim, y->dim, y->rank * sizeof *y->dim) != 0) return 0;
    const ir_value_id other = sum->in[0] == n->out[0] ? sum->in[1] : sum->in[0];
    return is_bias(x, other, y, is_matrix) ? found : 0;
}

static void sums_find(exporter *x)
{
    x->sum = ARENA_NEW(&x->a, ir_node_id, (size_t)x->g->node.count + 1);
    x->is_inside = ARENA_NEW(&x->a, bool, (size_t)x->g->node.count + 1);
    if (!x->sum || !x->is_inside) EXPORT_FAIL(x, NO_MEMORY, "out of memory for nodes");
    for (ir_node_id n = 1; n < x->g->node.count && !x->status; n++) {
        const ir_node *node = ir_node_at(x->g, n);
        if (node->is_dead || node->count_out != 1) continue;
        x->sum[n] = sum_of(x, n);
        x->is_inside[x->sum[n]] = true;
        export_blocks b;
        if (!export_blocks_find(x, n, &b)) continue;
        export_blocks *to = VEC_PUSH(&x->a, &x->blocks);
        if (!to) EXPORT_FAIL(x, NO_MEMORY, "out of memory for nodes");
        else *to = b;
        x->sum[n] = b.last;
        x->is_inside[b.merge] = x->is_inside[b.last] = x->is_inside[b.before[0]] = x->is_inside[b.before[1]] = true;
    }
}

/* ---- initializers ---- */

static bool is_outside(const exporter *x, const export_tensor *t)
{
    return x->o->data_name && t->size && t->size >= x->o->data_min;
}

static void pair_put(wire_out *to, const char *key, uint64_t value)
{
    char digits[24];
    size_t n = sizeof digits - 1;
    digits[n] = 0;
    do digits[--n] = (char)('0' + value % 10);
    while (value /= 10);
    wire_out pair;
    wire_out_init(&pair, to->e);
    wire_put_text(&pair, 1, key);
    wire_put_text(&pair, 2, digits + n);
    wire_put_message(to, TENSOR_EXTERNAL, &pair);
    wire_out_deinit(&pair);
}

/* A TensorProto up to its bytes. *data_size: bytes of external data so far. */
static void tensor_head(exporter *x, const export_tensor *t, uint64_t *data_size, wire_out *out)
{
    wire_out_clear(out);
    for (uint32_t i = 0; i < t->rank; i++) wire_put_number(out, TENSOR_DIM, (uint64_t)t->dim[i]);
    wire_put_number(out, TENSOR_TYPE, (uint64_t)export_type(x, t->dtype));
    wire_put_text(out, TENSOR_NAME, t->name);
    if (!is_outside(x, t)) {
        wire_put_length(out, TENSOR_RAW, t->size);
        return;
    }
    wire_out pair;
    wire_out_init(&pair, x->e);
    wire_put_text(&pair, 1, "location");
    wire_put_text(&pair, 2, x->o->data_name);
    wire_put_message(out, TENSOR_EXTERNAL, &pair);
    wire_out_deinit(&pair);
    *data_size = (*data_size + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
    pair_put(out, "offset", *data_size);
    pair_put(out, "length", t->size);
    wire_put_number(out, TENSOR_LOCATION, 1);
    *data_size += t->size;
}

static size_t inner_size(const exporter *x, const export_tensor *t)
{
    return is_outside(x, t) ? 0 : t->size;
}

/* The bytes that all initializers take in the GraphProto. */
static uint64_t initializers_size(exporter *x)
{
    uint64_t all = 0, data_size = 0;
    wire_out head, tag;
    wire_out_init(&head, x->e);
    wire_out_init(&tag, x->e);
    for (uint32_t i = 0; i < x->tensor.count; i++) {
        const export_tensor *t = &x->tensor.at[i];
        tensor_head(x, t, &data_size, &head);
        wire_out_clear(&tag);
        wire_put_length(&tag, GRAPH_INITIALIZER, head.size + inner_size(x, t));
        all += tag.size + head.size + inner_size(x, t);
        if (head.failed || tag.failed) EXPORT_FAIL(x, NO_MEMORY, "out of memory for the model");
    }
    wire_out_deinit(&head);
    wire_out_deinit(&tag);
    return all;
}

static void put(exporter *x, const onnx_sink *to, const void *at, size_t size)
{
    if (!x->status && size) x->status = to->put(to->user, at, size);
}

static void data_put(exporter *x, const export_tensor *t, uint64_t *written, const onnx_sink *data)
{
    static const uint8_t zeros[DATA_ALIGN];
    const uint64_t gap = (DATA_ALIGN - *written % DATA_ALIGN) % DATA_ALIGN;
    put(x, data, zeros, (size_t)gap);
    put(x, data, t->data, t->size);
    *written += gap + t->size;
}

static void initializers_put(exporter *x, const onnx_sink *model, const onnx_sink *data)
{
    uint64_t data_size = 0, written = 0;
    wire_out head, tag;
    wire_out_init(&head, x->e);
    wire_out_init(&tag, x->e);
    for (uint32_t i = 0; i < x->tensor.count && !x->status; i++) {
        const export_tensor *t = &x->tensor.at[i];
        tensor_head(x, t, &data_size, &head);
        wire_out_clear(&tag);
        wire_put_length(&tag, GRAPH_INITIALIZER, head.size + inner_size(x, t));
        if (head.failed || tag.failed) EXPORT_FAIL(x, NO_MEMORY, "out of memory for the model");
        put(x, model, tag.at, tag.size);
        put(x, model, head.at, head.size);
        if (is_outside(x, t)) data_put(x, t, &written, data);
        else put(x, model, t->data, t->size);
    }
    wire_out_deinit(&head);
    wire_out_deinit(&tag);
}

/* ---- the model ---- */

/* The version of the file format that came with an opset. */
static uint64_t ir_version(int64_t opset)
{
    return opset >= 28 ? 14 : opset >= 25 ? 13 : opset >= 24 ? 12 : opset >= 23 ? 11 : 10;
}

static void model_head(exporter *x, wire_out *out, uint64_t graph_size)
{
    wire_out opset;
    wire_out_init(&opset, x->e);
    wire_put_number(&opset, OPSET_VERSION, (uint64_t)x->opset);
    wire_put_number(out, MODEL_IR, ir_version(x->opset));
    wire_put_text(out, MODEL_PRODUCER, "sinter");
    wire_put_text(out, MODEL_PRODUCER_VERSION, sinter_version());
    wire_put_message(out, MODEL_OPSET, &opset);
    wire_out_deinit(&opset);
    wire_out_init(&opset, x->e);
    wire_put_text(&opset, OPSET_DOMAIN, "ai.onnx.ml");
    wire_put_number(&opset, OPSET_VERSION, (uint64_t)x->opset_ml);
    if (x->opset_ml) wire_put_message(out, MODEL_OPSET, &opset);
    wire_put_length(out, MODEL_GRAPH, graph_size);
    wire_out_deinit(&opset);
    if (out->failed) EXPORT_FAIL(x, NO_MEMORY, "out of memory for the model");
}

static void model_put(exporter *x, const wire_out *graph, const onnx_sink *model, const onnx_sink *data)
{
    const uint64_t graph_size = graph->size + initializers_size(x);
    wire_out head;
    wire_out_init(&head, x->e);
    if (graph_size > INT32_MAX)
        EXPORT_FAIL(x, UNSUPPORTED, "the model has %llu bytes; more than 2 GiB are possible with external data alone",
                    (unsigned long long)graph_size);
    model_head(x, &head, graph_size);
    put(x, model, head.at, head.size);
    put(x, model, graph->at, graph->size);
    initializers_put(x, model, data);
    wire_out_deinit(&head);
}

static void names_reserve(exporter *x)
{
    const ir_region *r = ir_region_at(x->g, IR_MAIN);
    x->name_count = x->g->value.count;
    x->name = ARENA_NEW(&x->a, const char *, (size_t)x->name_count + 1);
    if (!x->name) EXPORT_FAIL(x, NO_MEMORY, "out of memory for names");
    for (uint32_t i = 0; i < r->param.count && !x->status; i++) (void)export_name(x, r->param.at[i]);
    for (uint32_t i = 0; i < r->result.count && !x->status; i++) {
        const ir_value_id v = r->result.at[i];
        const ir_value *value = ir_value_at(x->g, v);
        const ir_node *n = ir_node_at(x->g, value->producer);
        /* An input that is also an output has one name in the model, and two values here. */
        const ir_value_id from = n->op == OP_identity ? n->in[0] : 0;
        const ir_value *given = ir_value_at(x->g, from);
        const bool is_input = from && !given->producer && !given->data && given->name && value->name;
        if (is_input && strcmp(given->name, value->name) == 0) x->name[v] = export_name(x, from);
        else (void)export_name(x, v);
    }
}

static void write_all(exporter *x, const onnx_sink *model, const onnx_sink *data)
{
    wire_out graph;
    if (x->g->states.count) EXPORT_FAIL(x, UNSUPPORTED, "a graph with state has no form in ONNX");
    if (!x->status) x->status = export_lower(x);
    if (x->status) return;
    names_reserve(x);
    sums_find(x);
    if (x->status) return;
    export_graph(x, IR_MAIN, NULL, x->o->graph_name ? x->o->graph_name : "sinter", &graph);
    if (x->o->opset) x->opset = x->o->opset;
    if (graph.failed || x->a.failed) EXPORT_FAIL(x, NO_MEMORY, "out of memory for the model");
    if (!x->status) model_put(x, &graph, model, data);
    wire_out_deinit(&graph);
}

sinter_status onnx_write(env *e, const ir_graph *g, const onnx_write_options *options, const onnx_sink *model,
                         const onnx_sink *data)
{
    static const onnx_write_options defaults = { 0 };
    exporter x = { .e = e, .o = options ? options : &defaults };
    x.opset = x.o->opset ? x.o->opset : x.o->opset_min;
    if (x.opset < ONNX_WRITE_OPSET_MIN && !x.o->opset) x.opset = ONNX_WRITE_OPSET_MIN;
    if (x.o->opset && (x.o->opset < ONNX_WRITE_OPSET_MIN || x.o->opset > ONNX_WRITE_OPSET_MAX))
        return FAIL(e, UNSUPPORTED, "opset %lld is asked for; %d to %d can be written", (long long)x.o->opset,
                    ONNX_WRITE_OPSET_MIN, ONNX_WRITE_OPSET_MAX);
    if (x.o->data_name && !data) return FAIL(e, INVALID_ARG, "external data has a name, and nothing receives it");
    TRY(ir_graph_clone(g, &x.g));
    arena_init(&x.a, e);
    x.names.a = x.constants.a = &x.a;
    write_all(&x, model, data);
    arena_deinit(&x.a);
    ir_graph_destroy(x.g);
    return x.status ? NOTE(e, x.status, "while writing an ONNX model") : SINTER_OK;
}
