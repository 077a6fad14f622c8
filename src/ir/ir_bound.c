/* SPDX-License-Identifier: Apache-2.0 */
/* ir_bound.c - which late symbols a node binds. The order of nodes and the removal of unused nodes depend on it. */
#include "ir/graph.h"

#include <string.h>

/* The attribute `symbols` of a node; NULL where its op has none. */
static attr_dims *symbols_of(const ir_node *n)
{
    for (const attr_info *i = op_at(n->op)->attr; i->name; i++)
        if (i->kind == ATTR_DIMS && strcmp(i->name, "symbols") == 0)
            return (attr_dims *)(void *)((char *)n->attrs + i->at);
    return NULL;
}

ir_bound ir_bound_of(const ir_graph *g, ir_node_id id)
{
    const ir_node *n = ir_node_at(g, id);
    ir_bound b = { .g = g, .n = n, .at = UINT32_MAX };
    if (!(op_at(n->op)->traits & LATE) && !n->count_region) return b;
    b.at = 0;
    b.list = symbols_of(n);
    return b;
}

static bool is_of_input(const ir_bound *b, dim d)
{
    for (uint32_t i = 0; i < b->n->count_in; i++) {
        const ir_value *v = ir_value_at(b->g, b->n->in[i]);
        for (uint32_t k = 0; k < v->rank; k++)
            if (v->dim[k] == d) return true;
    }
    return false;
}

bool ir_bound_next(ir_bound *b, uint32_t *symbol)
{
    dim_table *t = b->g->dims;
    while (b->list && b->at < b->list->count)
        if (dim_symbol_of(t, (dim)b->list->at[b->at++], symbol)) return true;
    while (!b->list && b->at < b->n->count_out) {
        const ir_value *v = ir_value_at(b->g, b->n->out[b->at]);
        if (b->axis == v->rank) {
            b->at++;
            b->axis = 0;
            continue;
        }
        const dim d = v->dim[b->axis++];
        if (dim_symbol_of(t, d, symbol) && dim_symbol_at(t, *symbol)->is_late && !is_of_input(b, d)) return true;
    }
    return false;
}

bool ir_binds(const ir_graph *g, ir_node_id n, dim d)
{
    uint32_t wanted, symbol;
    if (!dim_symbol_of(g->dims, d, &wanted)) return false;
    for (ir_bound b = ir_bound_of(g, n); ir_bound_next(&b, &symbol);)
        if (symbol == wanted) return true;
    return false;
}

sinter_status ir_bound_add(ir_graph *g, ir_node_id n, dim d)
{
    attr_dims *list = symbols_of(ir_node_at(g, n));
    if (!list) return FAIL(g->e, INTERNAL, "%s binds no symbols", op_at(ir_node_at(g, n)->op)->name);
    int64_t *at = ARENA_NEW(&g->a, int64_t, (size_t)list->count + 1);
    if (!at) return FAIL_MEMORY(g->e, "late symbols");
    if (list->count) memcpy(at, list->at, list->count * sizeof *at);
    at[list->count] = d;
    *list = (attr_dims){ .count = list->count + 1, .at = at };
    return SINTER_OK;
}
