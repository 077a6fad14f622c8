/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - ModelProto to structs: one function a message, a switch on the field number.
 *
 * Only graphs inside attributes nest without a fixed bound; their depth is counted. Unknown fields are skipped, as
 * protobuf wants it, and a known field of another wire type is damage. */
#include "onnx/model.h"
#include "base/name_map.h"
#include "onnx/wire.h"
#include <string.h>

typedef struct reader {
    env *e;
    arena *a;
    arena scratch;
    uint64_t depth;
    uint32_t graph_count;
} reader;

static sinter_status damaged(const reader *r, const char *message, uint32_t field)
{
    return FAIL(r->e, INVALID_MODEL, "%s is damaged at field %u", message, field);
}

/* True for bytes; otherwise the caller reports damage. */
static bool text_of(reader *r, const wire_field *f, const char **out)
{
    if (f->type != WIRE_BYTES || (f->size && memchr(f->at, 0, f->size))) return false;
    const char *copy = arena_text(r->a, (const char *)f->at, f->size);
    *out = copy ? copy : "";
    return true;
}

static bool float_of(const wire_field *f, float *out)
{
    if (f->type != WIRE_32) return false;
    const uint32_t bits = (uint32_t)f->value;
    memcpy(out, &bits, sizeof bits);
    return true;
}

static bool i64_of(const wire_field *f, int64_t *out)
{
    if (f->type != WIRE_VARINT) return false;
    *out = (int64_t)f->value;
    return true;
}

static bool i32_of(const wire_field *f, int32_t *out)
{
    if (f->type != WIRE_VARINT) return false;
    *out = f->value > INT32_MAX ? -1 : (int32_t)f->value;
    return true;
}

#define EACH_FIELD(f, bytes, size)                                                                                     \
    wire w = wire_of(bytes, size);                                                                                     \
    for (wire_field f; wire_next(&w, &f);)
#define WANT(condition, message, f)                                                                                    \
    do {                                                                                                               \
        if (!(condition)) return damaged(r, message, (f).number);                                                      \
    } while (0)
#define END(message)                                                                                                   \
    if (w.is_bad) return FAIL(r->e, INVALID_MODEL, "%s is cut short or no protobuf message", message);                 \
    return r->a->failed ? FAIL_MEMORY(r->e, "the model") : SINTER_OK

static bool name_push(reader *r, onnx_names *list, const wire_field *f)
{
    const char **name = VEC_PUSH(r->a, list);
    if (!name) return true; /* the arena remembers */
    return text_of(r, f, name);
}

static sinter_status pair_of(reader *r, const wire_field *in, onnx_pair *out)
{
    WANT(in->type == WIRE_BYTES, "key and value", *in);
    *out = (onnx_pair){ "", "" };
    EACH_FIELD(f, in->at, in->size)
    {
        if (f.number == 1) WANT(text_of(r, &f, &out->key), "key and value", f);
        if (f.number == 2) WANT(text_of(r, &f, &out->value), "key and value", f);
    }
    END("key and value");
}

static bool dims_of(const wire_field *f, uint32_t *rank, int64_t *at)
{
    wire_list list;
    if (!wire_list_of(f, WIRE_VARINT, &list)) return false;
    uint64_t value = 0;
    while (wire_list_next(&list, &value)) {
        if (*rank < SINTER_RANK_MAX) at[*rank] = (int64_t)value;
        if (*rank < UINT32_MAX) ++*rank;
    }
    return !list.w.is_bad;
}

static sinter_status tensor_of(reader *r, const uint8_t *bytes, size_t size, onnx_tensor *t)
{
    *t = (onnx_tensor){ .name = "", .span = bytes, .span_size = size };
    EACH_FIELD(f, bytes, size)
    {
        switch (f.number) {
        case 1: WANT(dims_of(&f, &t->rank, t->dim), "a tensor", f); break;
        case 2: WANT(i32_of(&f, &t->type), "a tensor", f); break;
        case 3: return FAIL(r->e, UNSUPPORTED, "a tensor is split into segments");
        case 8: WANT(text_of(r, &f, &t->name), "a tensor", f); break;
        case 9:
            WANT(f.type == WIRE_BYTES, "a tensor", f);
            t->has_raw = true;
            t->raw = f.at;
            t->raw_size = f.size;
            break;
        case 13: {
            onnx_pair *pair = VEC_PUSH(r->a, &t->external);
            if (pair) TRY(pair_of(r, &f, pair));
            break;
        }
        case 14:
            WANT(f.type == WIRE_VARINT && f.value <= 1, "a tensor", f);
            t->is_external = f.value == 1;
            break;
        default: break;
        }
    }
    END("a tensor");
}

sinter_status onnx_tensor_parse(env *e, arena *a, const uint8_t *bytes, size_t size, onnx_tensor *out)
{
    reader r = { .e = e, .a = a };
    return tensor_of(&r, bytes, size, out);
}

static sinter_status sparse_of(reader *r, const wire_field *in, onnx_sparse *s)
{
    WANT(in->type == WIRE_BYTES, "a sparse tensor", *in);
    *s = (onnx_sparse){ .values = { .name = "" }, .indices = { .name = "" } };
    EACH_FIELD(f, in->at, in->size)
    {
        if (f.number == 1 || f.number == 2) {
            WANT(f.type == WIRE_BYTES, "a sparse tensor", f);
            TRY(tensor_of(r, f.at, f.size, f.number == 1 ? &s->values : &s->indices));
        }
        if (f.number == 3) WANT(dims_of(&f, &s->rank, s->dim), "a sparse tensor", f);
    }
    END("a sparse tensor");
}

static sinter_status subgraph_of(reader *r, const wire_field *in, onnx_graph *g);

static sinter_status floats_of(reader *r, const wire_field *f, onnx_attr *a)
{
    wire_list list;
    WANT(wire_list_of(f, WIRE_32, &list), "an attribute", *f);
    uint64_t value = 0;
    while (wire_list_next(&list, &value)) {
        float *at = VEC_PUSH(r->a, &a->floats);
        if (!at) break;
        const uint32_t bits = (uint32_t)value;
        memcpy(at, &bits, sizeof bits);
    }
    return SINTER_OK;
}

static sinter_status ints_of(reader *r, const wire_field *f, onnx_attr *a)
{
    wire_list list;
    WANT(wire_list_of(f, WIRE_VARINT, &list), "an attribute", *f);
    uint64_t value = 0;
    while (wire_list_next(&list, &value)) {
        int64_t *at = VEC_PUSH(r->a, &a->ints);
        if (!at) break;
        *at = (int64_t)value;
    }
    WANT(!list.w.is_bad, "an attribute", *f);
    return SINTER_OK;
}

static onnx_text bytes_copy(reader *r, const wire_field *f)
{
    const char *copy = arena_text(r->a, (const char *)f->at, f->size);
    return copy ? (onnx_text){ copy, f->size } : (onnx_text){ "", 0 };
}

static sinter_status attr_of(reader *r, const wire_field *in, onnx_attr *a)
{
    WANT(in->type == WIRE_BYTES, "an attribute", *in);
    *a = (onnx_attr){ .name = "", .ref = "", .s = { "", 0 } };
    int32_t guess = 0; /* files of the first IR version carry no type */
    EACH_FIELD(f, in->at, in->size)
    {
        static const int32_t implied[12] = {
            0,          0,           ONNX_FLOAT, ONNX_INT,     ONNX_STRING,  ONNX_TENSOR,
            ONNX_GRAPH, ONNX_FLOATS, ONNX_INTS,  ONNX_STRINGS, ONNX_TENSORS, ONNX_GRAPHS
        };
        if (f.number < 12 && implied[f.number]) guess = implied[f.number];
        switch (f.number) {
        case 1: WANT(text_of(r, &f, &a->name), "an attribute", f); break;
        case 2: WANT(float_of(&f, &a->f), "an attribute", f); break;
        case 3: WANT(i64_of(&f, &a->i), "an attribute", f); break;
        case 4:
            WANT(f.type == WIRE_BYTES, "an attribute", f);
            a->s = bytes_copy(r, &f);
            break;
        case 5:
            WANT(f.type == WIRE_BYTES, "an attribute", f);
            a->t = ARENA_NEW(r->a, onnx_tensor, 1);
            if (a->t) TRY(tensor_of(r, f.at, f.size, a->t));
            break;
        case 6:
            a->g = ARENA_NEW(r->a, onnx_graph, 1);
            if (a->g) TRY(subgraph_of(r, &f, a->g));
            break;
        case 7: TRY(floats_of(r, &f, a)); break;
        case 8: TRY(ints_of(r, &f, a)); break;
        case 9: {
            WANT(f.type == WIRE_BYTES, "an attribute", f);
            onnx_text *s = VEC_PUSH(r->a, &a->strings);
            if (s) *s = bytes_copy(r, &f);
            break;
        }
        case 20: WANT(i32_of(&f, &a->type), "an attribute", f); break;
        case 21: WANT(text_of(r, &f, &a->ref), "an attribute", f); break;
        case 22:
            a->sparse = ARENA_NEW(r->a, onnx_sparse, 1);
            if (a->sparse) TRY(sparse_of(r, &f, a->sparse));
            break;
        default: break;
        }
    }
    if (!a->type) a->type = guess;
    END("an attribute");
}

static sinter_status node_of(reader *r, const wire_field *in, onnx_nodes *list)
{
    WANT(in->type == WIRE_BYTES, "a node", *in);
    const uint32_t index = list->count;
    if (index >= r->e->limits.nodes_max)
        return FAIL(r->e, NO_MEMORY, "the model has more than %llu nodes, the limit nodes_max",
                    (unsigned long long)r->e->limits.nodes_max);
    onnx_node *n = VEC_PUSH(r->a, list);
    if (!n) return FAIL_MEMORY(r->e, "the model");
    *n = (onnx_node){ .name = "", .type = "", .domain = "", .overload = "", .index = index };
    EACH_FIELD(f, in->at, in->size)
    {
        switch (f.number) {
        case 1: WANT(name_push(r, &n->in, &f), "a node", f); break;
        case 2: WANT(name_push(r, &n->out, &f), "a node", f); break;
        case 3: WANT(text_of(r, &f, &n->name), "a node", f); break;
        case 4: WANT(text_of(r, &f, &n->type), "a node", f); break;
        case 5: {
            onnx_attr *a = VEC_PUSH(r->a, &n->attr);
            if (a)
                TRY(NOTE(r->e, attr_of(r, &f, a), "reading attribute '%s' of node #%u '%s' (%s)", a->name, index,
                         n->name, n->type));
            break;
        }
        case 7: WANT(text_of(r, &f, &n->domain), "a node", f); break;
        case 8: WANT(text_of(r, &f, &n->overload), "a node", f); break;
        default: break;
        }
    }
    END("a node");
}

static sinter_status dim_of(reader *r, const wire_field *in, onnx_value_info *v)
{
    WANT(in->type == WIRE_BYTES, "a shape", *in);
    onnx_dim d = { .param = "" };
    EACH_FIELD(f, in->at, in->size)
    {
        if (f.number == 1) {
            WANT(i64_of(&f, &d.value), "a shape", f);
            d.has_value = true;
        }
        if (f.number == 2) WANT(text_of(r, &f, &d.param), "a shape", f);
    }
    if (v->rank < SINTER_RANK_MAX) v->dim[v->rank] = d;
    if (v->rank < UINT32_MAX) v->rank++;
    END("a shape");
}

static sinter_status shape_of(reader *r, const wire_field *in, onnx_value_info *v)
{
    WANT(in->type == WIRE_BYTES, "a shape", *in);
    v->has_shape = true;
    EACH_FIELD(f, in->at, in->size)
    {
        if (f.number == 1) TRY(dim_of(r, &f, v));
    }
    END("a shape");
}

static sinter_status tensor_type_of(reader *r, const wire_field *in, onnx_value_info *v)
{
    WANT(in->type == WIRE_BYTES, "a tensor type", *in);
    v->is_tensor = true;
    EACH_FIELD(f, in->at, in->size)
    {
        if (f.number == 1) WANT(i32_of(&f, &v->type), "a tensor type", f);
        if (f.number == 2) TRY(shape_of(r, &f, v));
    }
    END("a tensor type");
}

/* Sequences and optionals wrap a type; at most one of each, the optional outside. Others are of no known type. */
static sinter_status type_of(reader *r, const wire_field *in, onnx_value_info *v);
static sinter_status wrapped_type_of(reader *r, const wire_field *in, onnx_value_info *v)
{
    WANT(in->type == WIRE_BYTES, "a type", *in);
    EACH_FIELD(f, in->at, in->size)
    {
        if (f.number == 1) TRY(type_of(r, &f, v));
    }
    END("a type");
}

/* Values that are tensors of any size stand for one number each. */
static sinter_status map_type_of(reader *r, const wire_field *in, onnx_value_info *v)
{
    WANT(in->type == WIRE_BYTES, "a map type", *in);
    EACH_FIELD(f, in->at, in->size)
    {
        if (f.number == 1) WANT(i32_of(&f, &v->key_type), "a map type", f);
        if (f.number == 2) TRY(type_of(r, &f, v));
    }
    END("a map type");
}

static sinter_status type_of(reader *r, const wire_field *in, onnx_value_info *v)
{
    WANT(in->type == WIRE_BYTES, "a type", *in);
    EACH_FIELD(f, in->at, in->size)
    {
        if (f.number == 1) {
            v->has_type = true;
            TRY(tensor_type_of(r, &f, v));
            v->is_tensor = !v->is_sequence && !v->is_optional;
        } else if (f.number == 4 && !v->is_sequence) {
            v->is_sequence = true;
            TRY(wrapped_type_of(r, &f, v));
        } else if (f.number == 5 && !v->is_optional && !v->key_type) {
            TRY(map_type_of(r, &f, v));
            v->is_tensor = false;
        } else if (f.number == 9 && !v->is_optional && !v->is_sequence) {
            v->is_optional = true;
            TRY(wrapped_type_of(r, &f, v));
        }
    }
    END("a type");
}

static sinter_status value_info_of(reader *r, const wire_field *in, onnx_value_info *v)
{
    WANT(in->type == WIRE_BYTES, "a value", *in);
    *v = (onnx_value_info){ .name = "" };
    EACH_FIELD(f, in->at, in->size)
    {
        if (f.number == 1) WANT(text_of(r, &f, &v->name), "a value", f);
        if (f.number == 2) TRY(type_of(r, &f, v));
    }
    END("a value");
}

#define RESERVE(list, n)                                                                                               \
    ((list)->at = arena_alloc(r->a, size_mul(sizeof *(list)->at, (n)), _Alignof(max_align_t)),                         \
     (list)->capacity = (list)->at ? (n) : 0)

/* Room for what the message has of each list, so that large graphs leave no shorter lists behind in the arena. */
static void graph_reserve(reader *r, const wire_field *in, onnx_graph *g)
{
    uint32_t count[16] = { 0 };
    wire w = wire_of(in->at, in->size);
    for (wire_field f; wire_next(&w, &f);)
        if (f.number < 16) count[f.number]++;
    if (count[1] > r->e->limits.nodes_max) count[1] = 0; /* which is refused */
    RESERVE(&g->node, count[1]);
    RESERVE(&g->initializer, count[5]);
    RESERVE(&g->in, count[11]);
    RESERVE(&g->out, count[12]);
    RESERVE(&g->sparse, count[15]);
}

static sinter_status graph_fields(reader *r, const wire_field *in, onnx_graph *g)
{
    graph_reserve(r, in, g);
    EACH_FIELD(f, in->at, in->size)
    {
        switch (f.number) {
        case 1: TRY(node_of(r, &f, &g->node)); break;
        case 2: WANT(text_of(r, &f, &g->name), "a graph", f); break;
        case 5: {
            WANT(f.type == WIRE_BYTES, "a graph", f);
            onnx_tensor *t = VEC_PUSH(r->a, &g->initializer);
            if (t) TRY(NOTE(r->e, tensor_of(r, f.at, f.size, t), "reading initializer '%s'", t->name));
            break;
        }
        case 11:
        case 12: {
            onnx_value_info *v = f.number == 11 ? VEC_PUSH(r->a, &g->in) : VEC_PUSH(r->a, &g->out);
            if (v) TRY(value_info_of(r, &f, v));
            break;
        }
        case 15: {
            onnx_sparse *s = VEC_PUSH(r->a, &g->sparse);
            if (s) TRY(sparse_of(r, &f, s));
            break;
        }
        default: break;
        }
    }
    END("a graph");
}

static sinter_status graph_of(reader *r, const wire_field *in, onnx_graph *g)
{
    WANT(in->type == WIRE_BYTES, "a graph", *in);
    if (r->depth >= r->e->limits.depth_max)
        return FAIL(r->e, UNSUPPORTED, "graphs nest deeper than %llu, the limit depth_max",
                    (unsigned long long)r->e->limits.depth_max);
    *g = (onnx_graph){ .name = "", .id = ++r->graph_count };
    r->depth++;
    const sinter_status s = graph_fields(r, in, g);
    r->depth--;
    return s;
}

static sinter_status subgraph_of(reader *r, const wire_field *in, onnx_graph *g)
{
    TRY(graph_of(r, in, g));
    const arena_mark mark = arena_save(&r->scratch);
    const bool is_good = onnx_nodes_read(r->a, &r->scratch, g, &g->reads);
    arena_rewind(&r->scratch, mark);
    return is_good ? SINTER_OK : FAIL_MEMORY(r->e, "the model");
}

static sinter_status opset_of(reader *r, const wire_field *in, onnx_opsets *list)
{
    WANT(in->type == WIRE_BYTES, "an opset import", *in);
    onnx_opset *o = VEC_PUSH(r->a, list);
    if (!o) return FAIL_MEMORY(r->e, "the model");
    *o = (onnx_opset){ .domain = "" };
    EACH_FIELD(f, in->at, in->size)
    {
        if (f.number == 1) WANT(text_of(r, &f, &o->domain), "an opset import", f);
        if (f.number == 2) WANT(i64_of(&f, &o->version), "an opset import", f);
    }
    END("an opset import");
}

static sinter_status function_of(reader *r, const wire_field *in, onnx_function *fn)
{
    WANT(in->type == WIRE_BYTES, "a function", *in);
    *fn = (onnx_function){ .name = "", .domain = "", .overload = "" };
    EACH_FIELD(f, in->at, in->size)
    {
        switch (f.number) {
        case 1: WANT(text_of(r, &f, &fn->name), "a function", f); break;
        case 4: WANT(name_push(r, &fn->in, &f), "a function", f); break;
        case 5: WANT(name_push(r, &fn->out, &f), "a function", f); break;
        case 7: TRY(node_of(r, &f, &fn->node)); break;
        case 9: TRY(opset_of(r, &f, &fn->opset)); break;
        case 10: WANT(text_of(r, &f, &fn->domain), "a function", f); break;
        case 11: {
            onnx_attr *a = VEC_PUSH(r->a, &fn->attr);
            if (a) TRY(attr_of(r, &f, a));
            break;
        }
        case 13: WANT(text_of(r, &f, &fn->overload), "a function", f); break;
        default: break;
        }
    }
    END("a function");
}

static sinter_status model_of(reader *r, const uint8_t *bytes, size_t size, onnx_model *m)
{
    EACH_FIELD(f, bytes, size)
    {
        switch (f.number) {
        case 1: WANT(i64_of(&f, &m->ir_version), "the model", f); break;
        case 2: WANT(text_of(r, &f, &m->producer), "the model", f); break;
        case 7:
            if (m->has_graph) return FAIL(r->e, INVALID_MODEL, "the model has two graphs");
            m->has_graph = true;
            TRY(graph_of(r, &f, &m->graph));
            break;
        case 8: TRY(opset_of(r, &f, &m->opset)); break;
        case 14: {
            onnx_pair *pair = VEC_PUSH(r->a, &m->metadata);
            if (pair) TRY(pair_of(r, &f, pair));
            break;
        }
        case 25: {
            onnx_function *fn = VEC_PUSH(r->a, &m->function);
            if (fn) TRY(NOTE(r->e, function_of(r, &f, fn), "reading function '%s'", fn->name));
            break;
        }
        default: break;
        }
    }
    END("the model");
}

/* A model may list one value several times among its outputs: it is one output, where it was listed first. */
static sinter_status list_outputs_once(reader *r, onnx_graph *g)
{
    name_map seen = { .a = r->a };
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->out.count; i++) {
        bool is_new;
        if (!name_map_add(&seen, g->out.at[i].name, &is_new)) return FAIL_MEMORY(r->e, "a model's outputs");
        if (is_new) g->out.at[count++] = g->out.at[i];
    }
    g->out.count = count;
    return SINTER_OK;
}

sinter_status onnx_model_read(env *e, arena *a, const uint8_t *bytes, size_t size, onnx_model *out)
{
    *out = (onnx_model){ .producer = "", .graph = { .name = "" } };
    reader r = { .e = e, .a = a };
    arena_init(&r.scratch, e);
    const sinter_status s = model_of(&r, bytes, size, out);
    arena_deinit(&r.scratch);
    out->graph_count = r.graph_count;
    if (s == SINTER_INVALID_MODEL && size >= 8 && memcmp(bytes + 4, "ORTM", 4) == 0)
        return FAIL(e, UNSUPPORTED,
                    "this is ONNX Runtime's own format (.ort): give the ONNX model that it was made of");
    TRY(s);
    if (!out->has_graph) return FAIL(e, INVALID_MODEL, "%zu bytes hold no ONNX graph", size);
    TRY(list_outputs_once(&r, &out->graph));
    if (onnx_values_expand(a, &out->graph.in) && onnx_values_expand(a, &out->graph.out)) return SINTER_OK;
    return FAIL_MEMORY(e, "a model's inputs and outputs");
}

bool onnx_graph_initialized(const onnx_graph *g, name_map *out)
{
    bool is_new, is_good = true;
    for (uint32_t i = 0; i < g->initializer.count && is_good; i++)
        is_good = name_map_add(out, g->initializer.at[i].name, &is_new);
    for (uint32_t i = 0; i < g->sparse.count && is_good; i++)
        is_good = name_map_add(out, g->sparse.at[i].values.name, &is_new);
    return is_good;
}

/* Appends a name that is not the graph's own. `seen` has the own names from the start. */
static bool read_name(arena *a, name_map *seen, const char *name, onnx_names *out)
{
    bool is_new = false;
    if (!name[0]) return true;
    if (!name_map_add(seen, name, &is_new)) return false;
    const char **slot = is_new ? VEC_PUSH(a, out) : NULL;
    if (slot) *slot = name;
    return slot || !is_new;
}

bool onnx_nodes_read(arena *a, arena *scratch, const onnx_graph *g, onnx_names *out)
{
    name_map seen = { .a = scratch };
    bool is_new, is_good = onnx_graph_initialized(g, &seen);
    for (uint32_t i = 0; i < g->in.count && is_good; i++) is_good = name_map_add(&seen, g->in.at[i].name, &is_new);
    for (uint32_t i = 0; i < g->node.count; i++)
        for (uint32_t k = 0; k < g->node.at[i].out.count && is_good; k++)
            is_good = name_map_add(&seen, g->node.at[i].out.at[k], &is_new);
    for (uint32_t i = 0; i < g->node.count; i++) {
        const onnx_node *n = &g->node.at[i];
        for (uint32_t k = 0; k < n->in.count && is_good; k++) is_good = read_name(a, &seen, n->in.at[k], out);
        for (uint32_t k = 0; k < n->attr.count; k++) {
            const onnx_names *inner = n->attr.at[k].g ? &n->attr.at[k].g->reads : &(onnx_names){ 0 };
            for (uint32_t j = 0; j < inner->count && is_good; j++) is_good = read_name(a, &seen, inner->at[j], out);
        }
    }
    for (uint32_t i = 0; i < g->out.count && is_good; i++) is_good = read_name(a, &seen, g->out.at[i].name, out);
    return is_good;
}
