/* SPDX-License-Identifier: Apache-2.0 */
/* export_emit.c - names, constants and nodes of the model that is written. */
#include "onnx/exporter.h"
#include "onnx/model.h"

#include <string.h>

/* Field numbers of onnx.proto. */
enum { NODE_IN = 1, NODE_OUT = 2, NODE_NAME = 3, NODE_TYPE = 4, NODE_ATTR = 5, NODE_DOMAIN = 7 };
enum { GRAPH_NODE = 1 };
enum {
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_T = 5,
    ATTR_G = 6,
    ATTR_FS = 7,
    ATTR_IS = 8,
    ATTR_SS = 9,
    ATTR_TYPE_FIELD = 20
};

void export_need(exporter *x, int64_t opset)
{
    if (opset > x->opset) x->opset = opset;
    if (x->o->opset && opset > x->o->opset)
        EXPORT_FAIL(x, UNSUPPORTED, "opset %lld is asked for, and the model needs %lld", (long long)x->o->opset,
                    (long long)opset);
}

/* ---- names ---- */

const char *export_fresh(exporter *x, const char *stem)
{
    for (;;) {
        bool is_new = false;
        const char *name = arena_printf(&x->a, "%s_%llu", stem, (unsigned long long)x->fresh++);
        if (!name || !name_map_add(&x->names, name, &is_new)) {
            EXPORT_FAIL(x, NO_MEMORY, "out of memory for names");
            return "";
        }
        if (is_new) return name;
    }
}

const char *export_name(exporter *x, ir_value_id v)
{
    const ir_value *value = ir_value_at(x->g, v);
    if (!v || v >= x->name_count) return "";
    if (x->name[v]) return x->name[v];
    if (value->data) {
        int64_t d[SINTER_RANK_MAX];
        for (uint32_t i = 0; i < value->rank; i++)
            if (!dim_is_const(x->g->dims, value->dim[i], &d[i])) EXPORT_FAIL(x, INTERNAL, "a constant of no size");
        if (value->is_released) EXPORT_FAIL(x, INTERNAL, "a constant whose memory was freed");
        return x->name[v] = export_constant(x, value->name, value->dtype, value->rank, d, value->data);
    }
    bool is_new = false;
    if (value->name && *value->name && !name_map_add(&x->names, value->name, &is_new))
        EXPORT_FAIL(x, NO_MEMORY, "out of memory for names");
    return x->name[v] = is_new ? value->name : export_fresh(x, op_at(ir_node_at(x->g, value->producer)->op)->name);
}

int32_t export_type(exporter *x, sinter_dtype dtype)
{
    static const struct {
        sinter_dtype dtype;
        int64_t since;
    } late[] = {
        { SINTER_DTYPE_F4E2M1, 23 },
        { SINTER_DTYPE_F8E8M0, 24 },
        { SINTER_DTYPE_I2, 25 },
        { SINTER_DTYPE_U2, 25 },
    };
    for (uint32_t i = 0; i < COUNT_OF(late); i++)
        if (late[i].dtype == dtype) export_need(x, late[i].since);
    return onnx_dtype_to(dtype);
}

/* ---- constants ---- */

/* Equal small constants have equal keys. Large ones are the same where they lie in one place. */
static const char *constant_key(exporter *x, const export_tensor *t)
{
    enum { SMALL = 256 };
    text key;
    text_init(&key, x->e);
    text_printf(&key, "%d", (int)t->dtype);
    for (uint32_t i = 0; i < t->rank; i++) text_printf(&key, ",%lld", (long long)t->dim[i]);
    if (t->size > SMALL) {
        text_printf(&key, "@%p", t->data);
    } else {
        text_append(&key, "=", 1);
        for (size_t i = 0; i < t->size; i++) text_printf(&key, "%02x", ((const uint8_t *)t->data)[i]);
    }
    const char *copy = key.failed ? NULL : arena_text(&x->a, key.at ? key.at : "", key.length);
    text_deinit(&key);
    return copy;
}

const char *export_constant(exporter *x, const char *name, sinter_dtype dtype, uint32_t rank, const int64_t *dim_at,
                            const void *data)
{
    export_tensor t = { .dtype = dtype, .rank = rank, .data = data };
    sinter_tensor sized = { .dtype = dtype, .rank = rank };
    for (uint32_t i = 0; i < rank; i++) t.dim[i] = sized.dim[i] = dim_at[i];
    t.size = sinter_tensor_size(&sized);
    bool is_new = false;
    const char *key = constant_key(x, &t);
    uint32_t *slot = key ? name_map_add(&x->constants, key, &is_new) : NULL;
    export_tensor *to = slot && is_new ? VEC_PUSH(&x->a, &x->tensor) : NULL;
    if (!slot || (is_new && !to)) {
        EXPORT_FAIL(x, NO_MEMORY, "out of memory for constants");
        return "";
    }
    if (!is_new) return x->tensor.at[*slot].name;
    *slot = x->tensor.count - 1;
    bool is_free = false;
    if (name && *name && !name_map_add(&x->names, name, &is_free)) EXPORT_FAIL(x, NO_MEMORY, "out of memory for names");
    t.name = is_free ? name : export_fresh(x, "const");
    *to = t;
    return t.name;
}

const char *export_ints(exporter *x, const int64_t *at, uint32_t count)
{
    int64_t *copy = ARENA_NEW(&x->a, int64_t, (size_t)count + 1);
    if (!copy) {
        EXPORT_FAIL(x, NO_MEMORY, "out of memory for constants");
        return "";
    }
    if (count) memcpy(copy, at, count * sizeof *copy);
    return export_constant(x, NULL, SINTER_DTYPE_I64, 1, (const int64_t[]){ count }, copy);
}

const char *export_int(exporter *x, int64_t value)
{
    int64_t *copy = ARENA_NEW(&x->a, int64_t, 1);
    if (!copy) {
        EXPORT_FAIL(x, NO_MEMORY, "out of memory for constants");
        return "";
    }
    *copy = value;
    return export_constant(x, NULL, SINTER_DTYPE_I64, 0, NULL, copy);
}

/* ---- nodes ---- */

export_node node_begin(exporter *x, const char *type)
{
    export_node n = { .type = type };
    wire_out_init(&n.w, x->e);
    return n;
}

void node_domain(exporter *x, export_node *n, const char *domain, int64_t version)
{
    wire_put_text(&n->w, NODE_DOMAIN, domain);
    if (version > x->opset_ml) x->opset_ml = version;
}

void node_in(exporter *x, export_node *n, const char *name)
{
    (void)x;
    wire_put_text(&n->w, NODE_IN, name);
}

/* Absent inputs at the end are left out. */
void node_ins(exporter *x, export_node *n, const ir_node *from, uint32_t first)
{
    uint32_t count = from->count_in;
    while (count > first && !from->in[count - 1]) count--;
    for (uint32_t i = first; i < count; i++) node_in(x, n, export_name(x, from->in[i]));
}

void node_out(exporter *x, export_node *n, const char *name)
{
    (void)x;
    wire_put_text(&n->w, NODE_OUT, name);
}

void node_outs(exporter *x, export_node *n, const ir_node *from)
{
    n->from = from;
    for (uint32_t i = 0; i < from->count_out; i++) node_out(x, n, export_name(x, from->out[i]));
}

static wire_out attr_begin(exporter *x, const char *name)
{
    wire_out a;
    wire_out_init(&a, x->e);
    wire_put_text(&a, 1, name);
    return a;
}

static void attr_end(export_node *n, wire_out *a, onnx_attr_type type)
{
    wire_put_number(a, ATTR_TYPE_FIELD, (uint64_t)type);
    wire_put_message(&n->w, NODE_ATTR, a);
    wire_out_deinit(a);
}

void node_int(exporter *x, export_node *n, const char *name, int64_t value)
{
    wire_out a = attr_begin(x, name);
    wire_put_number(&a, ATTR_I, (uint64_t)value);
    attr_end(n, &a, ONNX_INT);
}

void node_ints(exporter *x, export_node *n, const char *name, const int64_t *at, uint32_t count)
{
    wire_out a = attr_begin(x, name);
    for (uint32_t i = 0; i < count; i++) wire_put_number(&a, ATTR_IS, (uint64_t)at[i]);
    attr_end(n, &a, ONNX_INTS);
}

void node_list(exporter *x, export_node *n, const char *name, const attr_ints *list)
{
    if (list->count) node_ints(x, n, name, list->at, list->count);
}

void node_float(exporter *x, export_node *n, const char *name, double value)
{
    wire_out a = attr_begin(x, name);
    wire_put_float(&a, ATTR_F, (float)value);
    attr_end(n, &a, ONNX_FLOAT);
}

void node_reals(exporter *x, export_node *n, const char *name, const double *at, uint32_t count)
{
    wire_out a = attr_begin(x, name);
    for (uint32_t i = 0; i < count; i++) wire_put_float(&a, ATTR_FS, (float)at[i]);
    attr_end(n, &a, ONNX_FLOATS);
}

void node_floats(exporter *x, export_node *n, const char *name, const attr_reals *list)
{
    if (list->count) node_reals(x, n, name, list->at, list->count);
}

void node_bytes(exporter *x, export_node *n, const char *name, const void *at, size_t size)
{
    wire_out a = attr_begin(x, name);
    wire_put_bytes(&a, ATTR_S, at, size);
    attr_end(n, &a, ONNX_STRING);
}

void node_text(exporter *x, export_node *n, const char *name, const char *value)
{
    wire_out a = attr_begin(x, name);
    wire_put_text(&a, ATTR_S, value);
    attr_end(n, &a, ONNX_STRING);
}

void node_texts(exporter *x, export_node *n, const char *name, const char *words)
{
    if (!*words) return;
    wire_out a = attr_begin(x, name);
    for (const char *p = words;;) {
        const char *end = strchr(p, ',');
        wire_put_bytes(&a, ATTR_SS, p, end ? (size_t)(end - p) : strlen(p));
        if (!end) break;
        p = end + 1;
    }
    attr_end(n, &a, ONNX_STRINGS);
}

void node_words(exporter *x, export_node *n, const char *name, const char *const *at, uint32_t count)
{
    wire_out a = attr_begin(x, name);
    for (uint32_t i = 0; i < count; i++) wire_put_text(&a, ATTR_SS, at[i]);
    attr_end(n, &a, ONNX_STRINGS);
}

void node_tensor(exporter *x, export_node *n, const char *name, sinter_dtype dtype, const void *at, uint32_t count)
{
    enum { TENSOR_DIM = 1, TENSOR_TYPE = 2, TENSOR_RAW = 9 };
    wire_out a = attr_begin(x, name), t;
    wire_out_init(&t, x->e);
    wire_put_number(&t, TENSOR_DIM, count);
    wire_put_number(&t, TENSOR_TYPE, (uint64_t)export_type(x, dtype));
    wire_put_bytes(&t, TENSOR_RAW, at, (size_t)count * sinter_dtype_bits(dtype) / 8);
    wire_put_message(&a, ATTR_T, &t);
    wire_out_deinit(&t);
    attr_end(n, &a, ONNX_TENSOR);
}

void node_graph(exporter *x, export_node *n, const char *name, const wire_out *graph)
{
    wire_out a = attr_begin(x, name);
    wire_put_message(&a, ATTR_G, graph);
    attr_end(n, &a, ONNX_GRAPH);
}

void node_end(exporter *x, export_node *n, export_scope *scope)
{
    const char *label = n->from ? ir_node_label(x->g, (ir_node_id)(n->from - x->g->node.at)) : "";
    bool is_new = false;
    /* Names of nodes are labels for people. ONNX Runtime refuses two nodes of one name. */
    const char *key = *label ? arena_printf(&x->a, "\n%s", label) : NULL;
    if (key && name_map_add(&x->names, key, &is_new) && is_new) wire_put_text(&n->w, NODE_NAME, label);
    wire_put_text(&n->w, NODE_TYPE, n->type);
    wire_put_message(&scope->nodes, GRAPH_NODE, &n->w);
    if (scope->nodes.failed) EXPORT_FAIL(x, NO_MEMORY, "out of memory for the model");
    wire_out_deinit(&n->w);
    if (x->o->counted) x->o->counted(x->o->count_user, n->type);
}

const char *export_emit(exporter *x, export_scope *scope, const char *type, const char *const *in, uint32_t count_in)
{
    const char *name = export_fresh(x, "size");
    export_node n = node_begin(x, type);
    for (uint32_t i = 0; i < count_in; i++) node_in(x, &n, in[i]);
    node_out(x, &n, name);
    node_end(x, &n, scope);
    return name;
}
