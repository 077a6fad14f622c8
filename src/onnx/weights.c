/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - walks a model, its subgraphs and functions for tensors that have a name. */
#include "onnx/weights.h"

#include <string.h>

typedef struct walk {
    env *e;
    arena *a;
    const char *folder;
    onnx_files *files;
    onnx_weights *out;
} walk;

static sinter_status add(walk *w, const char *name, const onnx_tensor *t)
{
    sinter_dtype type;
    if (!name[0] || !onnx_dtype_of(t->type, &type)) return SINTER_OK;
    onnx_weight *slot = VEC_PUSH(w->a, w->out);
    if (!slot) return FAIL_MEMORY(w->e, "the weights of a model");
    slot->name = name;
    return NOTE(w->e, onnx_tensor_decode(w->e, w->a, w->folder, w->files, t, &slot->value), "reading '%s'", name);
}

static sinter_status walk_nodes(walk *w, const onnx_nodes *list);

static sinter_status walk_graph(walk *w, const onnx_graph *g)
{
    for (uint32_t i = 0; i < g->initializer.count; i++) TRY(add(w, g->initializer.at[i].name, &g->initializer.at[i]));
    return walk_nodes(w, &g->node);
}

/* The nesting of subgraphs was bounded when the model was read. */
static sinter_status walk_nodes(walk *w, const onnx_nodes *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const onnx_node *n = &list->at[i];
        const bool is_constant = !strcmp(n->type, "Constant") && n->out.count == 1;
        for (uint32_t k = 0; k < n->attr.count; k++) {
            const onnx_attr *x = &n->attr.at[k];
            if (x->g) TRY(walk_graph(w, x->g));
            if (is_constant && x->t && !strcmp(x->name, "value")) TRY(add(w, n->out.at[0], x->t));
        }
    }
    return SINTER_OK;
}

sinter_status onnx_weights_read(env *e, arena *a, const onnx_model *m, const char *folder, onnx_files *files,
                                onnx_weights *out)
{
    walk w = { .e = e, .a = a, .folder = folder, .files = files, .out = out };
    TRY(walk_graph(&w, &m->graph));
    for (uint32_t i = 0; i < m->function.count; i++) TRY(walk_nodes(&w, &m->function.at[i].node));
    return SINTER_OK;
}
