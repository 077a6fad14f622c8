/* SPDX-License-Identifier: Apache-2.0 */
/* graph_onnx.c - a test's model as the bytes of an ONNX file. */
#include "graph_model.h"

#include <string.h>

int64_t onnx_type_of(sinter_dtype dtype)
{
    static const uint8_t type[SINTER_DTYPE_COUNT] = {
        [SINTER_DTYPE_F32] = 1,     [SINTER_DTYPE_U8] = 2,          [SINTER_DTYPE_I8] = 3,
        [SINTER_DTYPE_U16] = 4,     [SINTER_DTYPE_I16] = 5,         [SINTER_DTYPE_I32] = 6,
        [SINTER_DTYPE_I64] = 7,     [SINTER_DTYPE_BOOL] = 9,        [SINTER_DTYPE_F16] = 10,
        [SINTER_DTYPE_F64] = 11,    [SINTER_DTYPE_U32] = 12,        [SINTER_DTYPE_U64] = 13,
        [SINTER_DTYPE_BF16] = 16,   [SINTER_DTYPE_F8E4M3FN] = 17,   [SINTER_DTYPE_F8E4M3FNUZ] = 18,
        [SINTER_DTYPE_F8E5M2] = 19, [SINTER_DTYPE_F8E5M2FNUZ] = 20, [SINTER_DTYPE_U4] = 21,
        [SINTER_DTYPE_I4] = 22,     [SINTER_DTYPE_F4E2M1] = 23,     [SINTER_DTYPE_F8E8M0] = 24,
        [SINTER_DTYPE_U2] = 25,     [SINTER_DTYPE_I2] = 26,
    };
    return type[dtype];
}

static bytes value_info(const gmodel *m, const gvalue *v, bool has_shape)
{
    bytes shape = { 0 }, tensor = { 0 }, outer = { 0 }, value = { 0 };
    for (uint32_t i = 0; i < v->rank; i++) {
        const gdim d = v->dim[i];
        bytes at = { 0 };
        if (d.symbol == G_NONE && d.size >= 0) bytes_int(&at, 1, d.size);
        else if (d.symbol != G_NONE && !m->symbol[d.symbol].is_free) bytes_text(&at, 2, m->symbol[d.symbol].name);
        bytes_put(&shape, 1, at);
    }
    bytes_int(&tensor, 1, onnx_type_of(v->dtype));
    if (has_shape) bytes_put(&tensor, 2, shape);
    else free(shape.at);
    bytes_put(&outer, 1, tensor);
    bytes_text(&value, 1, v->name);
    if (v->dtype != SINTER_DTYPE_NONE) bytes_put(&value, 2, outer);
    else free(outer.at);
    return value;
}

static void add_float(bytes *b, uint32_t field, double value)
{
    const float f = (float)value;
    bytes_varint(b, (uint64_t)field << 3 | 5);
    bytes_add(b, &f, 4);
}

static bytes tensor_bytes(const char *name, const gtensor *t)
{
    return onnx_tensor_bytes(name, onnx_type_of(t->dtype), t->dim, t->rank, t->data ? t->data : "", t->size);
}

static bytes graph_bytes(const gmodel *m, uint32_t scope);

static bytes attr_bytes(const gmodel *m, const gattr *a)
{
    static const uint8_t type[] = { [GA_INT] = 2,   [GA_REAL] = 1,  [GA_TEXT] = 3,  [GA_INTS] = 7,
                                    [GA_REALS] = 6, [GA_TEXTS] = 8, [GA_GRAPH] = 5, [GA_TENSOR] = 4 };
    bytes b = { 0 };
    bytes_text(&b, 1, a->name);
    if (a->kind == GA_INT) bytes_int(&b, 3, a->i);
    if (a->kind == GA_REAL) add_float(&b, 2, a->f);
    if (a->kind == GA_TEXT) bytes_text(&b, 4, a->text);
    for (uint32_t i = 0; a->kind == GA_INTS && i < a->count; i++) bytes_int(&b, 8, a->ints[i]);
    for (uint32_t i = 0; a->kind == GA_REALS && i < a->count; i++) add_float(&b, 7, a->reals[i]);
    for (const char *word = a->text; a->kind == GA_TEXTS && *word;) {
        const size_t length = strcspn(word, " ");
        bytes_data(&b, 9, word, length);
        word += length + (word[length] == ' ');
    }
    if (a->kind == GA_GRAPH) bytes_put(&b, 6, graph_bytes(m, (uint32_t)a->i));
    if (a->kind == GA_TENSOR) {
        uint8_t raw[8 * COUNT_OF(a->reals)] = { 0 };
        const uint32_t count = a->count ? a->count : 1;
        for (uint32_t i = 0; i < count; i++) {
            const double x = a->count ? a->reals[i] : a->f;
            if (dtype_is_float(a->dtype)) dtype_store_f64(a->dtype, raw, i, x);
            else dtype_store_i64(a->dtype, raw, i, (int64_t)x);
        }
        bytes_put(&b, 5,
                  onnx_tensor_bytes("", onnx_type_of(a->dtype), (const int64_t[]){ count }, 1, raw,
                                    count * sinter_dtype_bits(a->dtype) / 8));
    }
    bytes_int(&b, 20, type[a->kind]);
    return b;
}

static void add_names(const gmodel *m, bytes *b, uint32_t field, const uint32_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) bytes_text(b, field, list[i] == G_NONE ? "" : m->value.at[list[i]].name);
}

static bytes node_bytes(const gmodel *m, const gnode *n, uint32_t index)
{
    bytes b = { 0 };
    char name[64];
    const char *dot = strrchr(n->op, '.');
    (void)snprintf(name, sizeof name, "n%u_%s", index, dot ? dot + 1 : n->op);
    add_names(m, &b, 1, n->in, n->count_in);
    add_names(m, &b, 2, n->out, n->count_out);
    bytes_text(&b, 3, name);
    bytes_text(&b, 4, dot ? dot + 1 : n->op);
    for (uint32_t i = 0; i < n->count_attr; i++) bytes_put(&b, 5, attr_bytes(m, &n->attr[i]));
    if (dot) bytes_data(&b, 7, n->op, (size_t)(dot - n->op));
    return b;
}

static bytes constant_bytes(const gmodel *m, const gvalue *v)
{
    bytes b = { 0 }, a = { 0 };
    bytes_text(&b, 2, v->name);
    bytes_text(&b, 4, "Constant");
    bytes_text(&a, 1, "value");
    bytes_put(&a, 5, tensor_bytes("", gvalue_leaf(m, v, 0)));
    bytes_int(&a, 20, 4);
    bytes_put(&b, 5, a);
    return b;
}

static bytes graph_bytes(const gmodel *m, uint32_t scope)
{
    bytes g = { 0 };
    const gscope *s = &m->scope.at[scope];
    for (uint32_t i = 0; i < m->value.count && m->has_constant_nodes; i++) {
        const gvalue *v = &m->value.at[i];
        if (v->kind == G_CONST && v->scope == scope && gvalue_is_used(m, i)) bytes_put(&g, 1, constant_bytes(m, v));
    }
    for (uint32_t i = 0; i < m->node.count; i++)
        if (m->node.at[i].scope == scope && !m->node.at[i].is_dead) bytes_put(&g, 1, node_bytes(m, &m->node.at[i], i));
    bytes_text(&g, 2, scope ? "body" : "graph");
    for (uint32_t i = 0; i < m->value.count; i++) {
        const gvalue *v = &m->value.at[i];
        if (v->kind == G_CONST && v->scope == scope && !m->has_constant_nodes && gvalue_is_used(m, i))
            bytes_put(&g, 5, tensor_bytes(v->name, gvalue_leaf(m, v, 0)));
    }
    for (uint32_t i = 0; i < s->param.count; i++) {
        const gvalue *v = &m->value.at[s->param.at[i]];
        bytes_put(&g, 11, value_info(m, v, !v->has_no_shape));
    }
    for (uint32_t i = 0; i < s->result.count; i++)
        bytes_put(&g, 12, value_info(m, &m->value.at[s->result.at[i]], m->value.at[s->result.at[i]].kind != G_RESULT));
    return g;
}

static bool is_used(const gmodel *m, const char *domain)
{
    const size_t length = strlen(domain);
    for (uint32_t i = 0; i < m->node.count; i++) {
        const char *op = m->node.at[i].op;
        if (!m->node.at[i].is_dead && strncmp(op, domain, length) == 0 && op[length] == '.' &&
            !strchr(op + length + 1, '.'))
            return true;
    }
    return false;
}

/* The operator for trees that version 5 of ai.onnx.ml has, and that deprecates the others. */
static bool has_trees(const gmodel *m)
{
    for (uint32_t i = 0; i < m->node.count; i++)
        if (!m->node.at[i].is_dead && strcmp(m->node.at[i].op, "ai.onnx.ml.TreeEnsemble") == 0) return true;
    return false;
}

bytes gmodel_onnx(const gmodel *m)
{
    bytes model = { 0 };
    bytes_int(&model, 1, m->opset < 19 ? 8 : m->opset < 21 ? 9 : m->opset < 23 ? 10 : 11);
    const struct {
        const char *domain;
        int64_t version;
    } other[] = { { "com.microsoft", 1 },
                  { "ai.onnx.ml", has_trees(m) ? 5 : 3 },
                  { "ai.onnx.preview", 1 },
                  { "ai.onnx.preview.training", 1 } };
    for (uint32_t i = 0; i <= COUNT_OF(other); i++) {
        bytes o = { 0 };
        if (i > 2 && !is_used(m, other[i - 1].domain)) continue; /* few runtimes know them */
        if (i) bytes_text(&o, 1, other[i - 1].domain);
        bytes_int(&o, 2, i ? other[i - 1].version : m->opset);
        bytes_put(&model, 8, o);
    }
    bytes_put(&model, 7, graph_bytes(m, 0));
    return model;
}
