/* SPDX-License-Identifier: Apache-2.0 */
/* scope.c - names: what a graph's names stand for, and in which order nodes go.
 *
 * An initializer becomes a constant when its name is first read. */
#include "onnx/importer.h"
#include <string.h>

sinter_status scope_set(importer *im, onnx_scope *s, const char *name, uint32_t value)
{
    if (!s->names.a) s->names.a = &im->a;
    bool is_new;
    uint32_t *slot = name_map_add(&s->names, name, &is_new);
    if (!slot) return FAIL_MEMORY(im->e, "names");
    if (!is_new) return FAIL(im->e, INVALID_MODEL, "the name '%s' is given twice", name);
    *slot = value;
    return SINTER_OK;
}

sinter_status scope_add_initializers(importer *im, onnx_scope *s, const onnx_graph *graph)
{
    if (graph->initializer.count > NAME_INDEX || graph->sparse.count > NAME_INDEX)
        return FAIL(im->e, UNSUPPORTED, "%u initializers", graph->initializer.count);
    for (uint32_t i = 0; i < graph->initializer.count; i++)
        TRY(scope_set(im, s, graph->initializer.at[i].name, NAME_TENSOR | i));
    for (uint32_t i = 0; i < graph->sparse.count; i++)
        TRY(scope_set(im, s, graph->sparse.at[i].values.name, NAME_SPARSE | i));
    return SINTER_OK;
}

static sinter_status constant_of(importer *im, const onnx_scope *s, const char *name, uint32_t mark, uint32_t *out)
{
    view v;
    sinter_status status;
    const uint32_t index = mark & NAME_INDEX;
    const onnx_tensor *t = mark < NAME_SPARSE ? &s->graph->initializer.at[index] : NULL;
    if (t && t->type == ONNX_TYPE_STRING) {
        call_strings strings;
        status = call_strings_read(im, t, &strings);
        *out = status ? NAME_POISONED : call_strings_new(im, &strings);
        if (!status && !*out) return FAIL_MEMORY(im->e, "an initializer");
        return importer_problem(im, status, arena_printf(&im->a, "initializer '%s'", name));
    }
    if (mark >= NAME_SPARSE) status = importer_sparse(im, &s->graph->sparse.at[index], &v);
    else status = importer_tensor(im, &s->graph->initializer.at[index], &v);
    if (status) {
        *out = NAME_POISONED;
        return importer_problem(im, status, arena_printf(&im->a, "initializer '%s'", name));
    }
    ir_builder b = { .g = im->g };
    *out = build_const(&b, arena_text(&im->g->a, name, strlen(name)), &v);
    return b.status;
}

sinter_status scope_find(importer *im, onnx_scope *s, const char *name, ir_value_id *out, uint32_t *mark)
{
    *out = 0;
    *mark = 0;
    uint32_t *slot = name_map_find(&s->names, name);
    if (!slot) return SINTER_OK;
    if (*slot >= NAME_TENSOR && *slot < NAME_LIST) {
        uint32_t value = 0;
        TRY(constant_of(im, s, name, *slot, &value));
        const bool is_tensor = *slot < NAME_SPARSE && value < im->g->value.count;
        const bool is_text = is_tensor && s->graph->initializer.at[*slot & NAME_INDEX].type == ONNX_TYPE_STRING;
        if (is_tensor && !is_text) ir_value_at(im->g, value)->initializer = ir_value_at(im->g, value)->dtype;
        *slot = value;
    }
    if (*slot == NAME_POISONED || *slot == NAME_MISSING) *mark = *slot;
    else *out = *slot;
    return SINTER_OK;
}

/* ---- order ---- */
typedef struct visit {
    uint32_t node, next;
} visit;

/* Some tools write two Constant nodes for one name, and runtimes let the last one count. */
static bool is_superseded(const onnx_nodes *nodes, uint32_t before, uint32_t after)
{
    return strcmp(nodes->at[before].type, "Constant") == 0 && strcmp(nodes->at[after].type, "Constant") == 0;
}

static bool append(importer *im, const onnx_names *from, onnx_names *to)
{
    for (uint32_t i = 0; i < from->count; i++) {
        const char **slot = VEC_PUSH(&im->a, to);
        if (!slot) return false;
        *slot = from->at[i];
    }
    return true;
}

sinter_status scope_order(importer *im, const onnx_nodes *nodes, uint32_t **out, uint32_t *count_out)
{
    name_map maker = { .a = &im->a };
    uint8_t *state = ARENA_NEW(&im->a, uint8_t, nodes->count); /* 0 new, 1 on the stack, 2 done */
    if (!state) return FAIL_MEMORY(im->e, "the order of nodes");
    for (uint32_t i = 0; i < nodes->count; i++) {
        for (uint32_t k = 0; k < nodes->at[i].out.count; k++) {
            bool is_new;
            if (!nodes->at[i].out.at[k][0]) continue;
            uint32_t *slot = name_map_add(&maker, nodes->at[i].out.at[k], &is_new);
            if (!slot) return FAIL_MEMORY(im->e, "names");
            if (!is_new && (i == *slot || !is_superseded(nodes, *slot, i)))
                return FAIL(im->e, INVALID_MODEL, "the name '%s' is given twice", nodes->at[i].out.at[k]);
            if (!is_new) state[*slot] = 2;
            *slot = i;
        }
    }
    uint32_t *order = ARENA_NEW(&im->a, uint32_t, nodes->count), count = 0;
    visit *stack = ARENA_NEW(&im->a, visit, nodes->count);
    onnx_names *reads = ARENA_NEW(&im->a, onnx_names, nodes->count); /* inputs of subgraphs */
    if (!order || !stack || !reads) return FAIL_MEMORY(im->e, "the order of nodes");
    for (uint32_t i = 0; i < nodes->count; i++)
        for (uint32_t k = 0; k < nodes->at[i].attr.count; k++)
            if (nodes->at[i].attr.at[k].g && !append(im, &nodes->at[i].attr.at[k].g->reads, &reads[i]))
                return FAIL_MEMORY(im->e, "the order of nodes");
    for (uint32_t first = 0; first < nodes->count; first++) {
        uint32_t depth = 0;
        if (state[first]) continue;
        stack[depth++] = (visit){ first, 0 };
        state[first] = 1;
        while (depth) {
            visit *v = &stack[depth - 1];
            const onnx_node *n = &nodes->at[v->node];
            if (v->next == n->in.count + reads[v->node].count) {
                state[v->node] = 2;
                order[count++] = v->node;
                depth--;
                continue;
            }
            const uint32_t k = v->next++;
            const char *name = k < n->in.count ? n->in.at[k] : reads[v->node].at[k - n->in.count];
            const uint32_t *from = name[0] ? name_map_find(&maker, name) : NULL;
            if (!from || state[*from] == 2) continue;
            if (state[*from] == 1)
                return FAIL(im->e, INVALID_MODEL, "node #%u '%s' (%s) reads '%s', which depends on it", n->index,
                            n->name, n->type, name);
            state[*from] = 1;
            stack[depth++] = (visit){ *from, 0 };
        }
    }
    *out = order;
    *count_out = count;
    return SINTER_OK;
}
