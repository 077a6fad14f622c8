/* SPDX-License-Identifier: Apache-2.0 */
/* graph_coverage.c - the facts of a model, one a line:
 *
 *     node OP
 *     attr OP NAME=VALUE         small integers and text as they are, all else as "set"
 *     in OP INDEX TYPE RANK      each operand that is given
 *     out OP INDEX               each result that is named
 *     pair PRODUCER READER */
#include "graph_coverage.h"

static const gvalue *value_at(const gmodel *m, uint32_t v)
{
    return v == G_NONE ? NULL : &m->value.at[v];
}

static void attributes(const gnode *n, text *t)
{
    for (uint32_t i = 0; i < n->count_attr; i++) {
        const gattr *a = &n->attr[i];
        text_printf(t, "attr %s %s=", n->op, a->name);
        if (a->kind == GA_INT && a->i >= -4 && a->i <= 4) text_printf(t, "%d\n", (int)a->i);
        else text_printf(t, "%s\n", a->kind == GA_TEXT ? a->text : "set");
    }
}

static void node(const gmodel *m, const gnode *n, const uint32_t *producer, text *t)
{
    text_printf(t, "node %s\n", n->op);
    attributes(n, t);
    for (uint32_t i = 0; i < n->count_in; i++) {
        const gvalue *v = value_at(m, n->in[i]);
        if (!v) continue;
        const char *type = v->is_list ? "list" : v->is_text ? "text" : sinter_dtype_name(v->dtype);
        text_printf(t, "in %s %u %s %u\n", n->op, i, type, v->at[0][0] ? v->at[0][0]->rank : v->rank);
        if (v->kind == G_CONST && m->has_constant_nodes) text_printf(t, "pair Constant %s\n", n->op);
        if (producer[n->in[i]] != G_NONE) text_printf(t, "pair %s %s\n", m->node.at[producer[n->in[i]]].op, n->op);
    }
    for (uint32_t i = 0; i < n->count_out; i++)
        if (n->out[i] != G_NONE) text_printf(t, "out %s %u\n", n->op, i);
}

bool gcoverage(const gmodel *m, const char *path)
{
    text t;
    uint32_t *producer = ARENA_NEW(m->a, uint32_t, m->value.count + 1);
    for (uint32_t i = 0; i <= m->value.count; i++) producer[i] = G_NONE;
    text_init(&t, m->e);
    for (uint32_t i = 0; i < m->node.count; i++) {
        const gnode *n = &m->node.at[i];
        if (n->is_dead) continue;
        for (uint32_t k = 0; k < n->count_out; k++)
            if (n->out[k] != G_NONE) producer[n->out[k]] = i;
        node(m, n, producer, &t);
    }
    FILE *f = fopen(path, "ab");
    bool is_fine = f && setvbuf(f, NULL, _IONBF, 0) == 0;
    if (f) {
        is_fine &= !t.length || fwrite(t.at, 1, t.length, f) == t.length;
        is_fine &= fclose(f) == 0;
    }
    text_deinit(&t);
    return is_fine;
}
