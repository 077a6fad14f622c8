/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_file.c - reads the fields of an ONNX file that say which nodes and values there are. */
#include "onnx_file.h"

#include "cli_model.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- protobuf ---- */

/* A field: its number, what it holds, and the whole of it with its tag. */
typedef struct field {
    uint32_t number, wire;
    uint64_t value;
    onnx_span content, whole;
} field;

static bool varint(onnx_span *from, uint64_t *out)
{
    *out = 0;
    for (uint32_t shift = 0; shift < 64 && from->size; shift += 7) {
        const uint8_t byte = *from->at++;
        from->size--;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

/* The next field. False: the end, or damage, which leaves bytes in `from`. */
static bool field_next(onnx_span *from, field *out)
{
    enum { FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
    onnx_span at = *from;
    uint64_t tag = 0, size = 0;
    if (!at.size || !varint(&at, &tag) || tag >> 3 > UINT32_MAX) return false;
    *out = (field){ .number = (uint32_t)(tag >> 3), .wire = (uint32_t)(tag & 7), .whole.at = from->at };
    if (out->wire == 0) {
        if (!varint(&at, &out->value)) return false;
    } else if (out->wire == FIXED64) size = 8;
    else if (out->wire == FIXED32) size = 4;
    else if (out->wire != BYTES || !varint(&at, &size)) return false;
    if (size > at.size) return false;
    out->content = (onnx_span){ at.at, (size_t)size };
    at.at += size;
    at.size -= (size_t)size;
    out->whole.size = (size_t)(at.at - from->at);
    *from = at;
    return true;
}

static char *text_of(onnx_span s)
{
    char *text = cli_alloc(s.size + 1, 1);
    memcpy(text, s.at, s.size);
    return text;
}

/* The text of a message's field; "" where it has none. */
static char *member(onnx_span message, uint32_t number)
{
    field f;
    while (field_next(&message, &f))
        if (f.number == number && f.wire == 2) return text_of(f.content);
    return cli_copy("");
}

/* ---- the graph ---- */

enum { NODE = 1, WEIGHT = 5, INPUT = 11, OUTPUT = 12, ABOUT = 13, SPARSE_WEIGHT = 15, GRAPH = 7 };

static void name_add(onnx_names *list, char *name)
{
    list->at = cli_grow(list->at, list->count + 1, sizeof *list->at);
    list->at[list->count++] = name;
}

static void value_add(onnx_values *list, const field *f, char *name)
{
    list->at = cli_grow(list->at, list->count + 1, sizeof *list->at);
    list->at[list->count++] = (onnx_value){ name, f->whole, f->number };
}

/* What a subgraph reads. Names of its own are among them: nobody outside has these. */
static bool graph_reads(onnx_span graph, onnx_names *out, uint32_t depth);

static bool attribute_reads(onnx_span attribute, onnx_names *out, uint32_t depth)
{
    enum { GRAPH_OF = 6, GRAPHS_OF = 11, DEPTH_MAX = 64 };
    field f;
    if (depth > DEPTH_MAX) return false;
    while (field_next(&attribute, &f))
        if ((f.number == GRAPH_OF || f.number == GRAPHS_OF) && f.wire == 2 && !graph_reads(f.content, out, depth + 1))
            return false;
    return attribute.size == 0;
}

static bool node_read(onnx_span span, onnx_node *out, uint32_t depth)
{
    enum { IN = 1, OUT = 2, NAME = 3, OP = 4, ATTRIBUTE = 5 };
    field f;
    while (field_next(&span, &f)) {
        if (f.wire != 2) continue;
        if (f.number == IN) name_add(&out->in, text_of(f.content));
        else if (f.number == OUT) name_add(&out->out, text_of(f.content));
        else if (f.number == ATTRIBUTE && !attribute_reads(f.content, &out->in, depth)) return false;
        else if (f.number == NAME) free(out->name), out->name = text_of(f.content);
        else if (f.number == OP) free(out->op), out->op = text_of(f.content);
    }
    return span.size == 0;
}

static void names_free(onnx_names *list)
{
    for (uint32_t i = 0; i < list->count; i++) free(list->at[i]);
    free(list->at);
}

static void node_free(onnx_node *n)
{
    names_free(&n->in);
    names_free(&n->out);
    free(n->name);
    free(n->op);
}

static bool graph_reads(onnx_span graph, onnx_names *out, uint32_t depth)
{
    field f;
    bool is_good = true;
    while (is_good && field_next(&graph, &f)) {
        if (f.number == OUTPUT && f.wire == 2) name_add(out, member(f.content, 1));
        if (f.number != NODE || f.wire != 2) continue;
        onnx_node n = { 0 };
        is_good = node_read(f.content, &n, depth);
        for (uint32_t i = 0; i < n.in.count; i++) name_add(out, cli_copy(n.in.at[i]));
        node_free(&n);
    }
    return is_good && graph.size == 0;
}

static bool is_external(onnx_span tensor)
{
    enum { LOCATION = 14 };
    field f;
    while (field_next(&tensor, &f))
        if (f.number == LOCATION && f.wire == 0 && f.value == 1) return true;
    return false;
}

static bool graph_read(onnx_file *out, onnx_span graph)
{
    enum { TENSOR_NAME = 8, VALUES = 1 };
    field f;
    while (field_next(&graph, &f)) {
        if (f.number == NODE && f.wire == 2) {
            out->node = cli_grow(out->node, out->nodes + 1, sizeof *out->node);
            onnx_node *n = &out->node[out->nodes++];
            *n = (onnx_node){ .span = f.whole };
            if (!node_read(f.content, n, 0)) return false;
            if (!n->name) n->name = cli_copy("");
            if (!n->op) n->op = cli_copy("");
        } else if (f.number == WEIGHT) {
            value_add(&out->weight, &f, member(f.content, TENSOR_NAME));
            out->has_external |= is_external(f.content);
        } else if (f.number == SPARSE_WEIGHT) {
            field values = { 0 };
            onnx_span sparse = f.content;
            while (field_next(&sparse, &values) && values.number != VALUES) {}
            value_add(&out->weight, &f, member(values.content, TENSOR_NAME));
        } else if (f.number == INPUT) value_add(&out->input, &f, member(f.content, 1));
        else if (f.number == OUTPUT) value_add(&out->output, &f, member(f.content, 1));
        else if (f.number == ABOUT) value_add(&out->about, &f, member(f.content, 1));
        else value_add(&out->graph_rest, &f, NULL);
    }
    return graph.size == 0;
}

static uint8_t *read_all(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rbe");
    const long end = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    uint8_t *bytes = end >= 0 ? cli_alloc((size_t)end + 1, 1) : NULL;
    if (bytes) rewind(file);
    if (bytes && fread(bytes, 1, (size_t)end, file) != (size_t)end) free(bytes), bytes = NULL;
    if (!bytes) (void)cli_fail("cannot read '%s': %s", path, strerror(errno));
    if (file) (void)fclose(file);
    *size = bytes ? (size_t)end : 0;
    return bytes;
}

bool onnx_file_read(const char *path, onnx_file *out)
{
    *out = (onnx_file){ 0 };
    out->bytes = read_all(path, &out->size);
    if (!out->bytes) return false;
    onnx_span model = { out->bytes, out->size };
    field f;
    uint32_t graphs = 0;
    bool is_good = true;
    while (is_good && field_next(&model, &f)) {
        if (f.number != GRAPH) value_add(&out->rest, &f, NULL);
        else is_good = f.wire == 2 && graph_read(out, f.content) && !graphs++;
    }
    return (is_good && !model.size && graphs == 1) || cli_fail("'%s' is no ONNX model with one graph", path) == 0;
}

static void values_free(onnx_values *list)
{
    for (uint32_t i = 0; i < list->count; i++) free(list->at[i].name);
    free(list->at);
}

void onnx_file_free(onnx_file *f)
{
    onnx_values *const list[] = { &f->input, &f->output, &f->weight, &f->about, &f->rest, &f->graph_rest };
    for (uint32_t i = 0; i < f->nodes; i++) node_free(&f->node[i]);
    for (uint32_t i = 0; i < sizeof list / sizeof list[0]; i++) values_free(list[i]);
    free(f->node);
    free(f->bytes);
    *f = (onnx_file){ 0 };
}

bool onnx_names_have(const onnx_names *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (!strcmp(list->at[i], name)) return true;
    return false;
}

const onnx_value *onnx_values_find(const onnx_values *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (!strcmp(list->at[i].name, name)) return &list->at[i];
    return NULL;
}

/* The message in a message's field; empty where it has none. */
static onnx_span part_of(onnx_span message, uint32_t number)
{
    field f;
    while (field_next(&message, &f))
        if (f.number == number && f.wire == 2) return f.content;
    return (onnx_span){ NULL, 0 };
}

bool onnx_file_is_tensor(const onnx_file *f, const onnx_node *n, const char *name)
{
    enum { TYPE = 2, TENSOR_TYPE = 1 };
    static const char *const others[] = { "SequenceConstruct", "SequenceEmpty",   "SequenceErase", "SequenceInsert",
                                          "SequenceMap",       "SplitToSequence", "Optional",      "ZipMap" };
    const onnx_value *about = onnx_values_find(&f->about, name);
    field whole;
    onnx_span span = about ? about->span : (onnx_span){ NULL, 0 };
    if (about && field_next(&span, &whole)) {
        const onnx_span type = part_of(whole.content, TYPE);
        if (type.size) return part_of(type, TENSOR_TYPE).at != NULL;
    }
    for (uint32_t i = 0; n->op && i < sizeof others / sizeof others[0]; i++)
        if (!strcmp(n->op, others[i])) return false;
    return true;
}
