/* SPDX-License-Identifier: Apache-2.0 */
/* match.c - matches a pattern against the graph, backwards from a node. Recursion is as deep as the pattern's text. */
#include "opt/match.h"

static bool match_args(const ir_graph *g, const pattern *p, ir_node_id id, match *m);

static bool match_value(const ir_graph *g, const pattern *p, ir_value_id v, match *m)
{
    if (!v) return false;
    const ir_value *x = ir_value_at(g, v);
    if (p->kind == PATTERN_CONST && !x->data) return false;
    if (p->kind == PATTERN_ANY || p->kind == PATTERN_CONST) {
        if (m->v[p->capture] && m->v[p->capture] != v) return false;
        m->v[p->capture] = v;
        return true;
    }
    if (!x->producer || x->producer_out || (p->is_only && (x->use_count != 1 || x->is_output))) return false;
    return match_args(g, p, x->producer, m);
}

static bool match_order(const ir_graph *g, const pattern *p, const ir_node *n, bool swapped, match *m)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (!match_value(g, p->arg[i], n->in[swapped ? 1 - i : i], m)) return false;
    return true;
}

static bool match_args(const ir_graph *g, const pattern *p, ir_node_id id, match *m)
{
    const ir_node *n = &g->node.at[id];
    if (n->is_dead || (p->kind == PATTERN_OP ? n->op != p->op : !op_is_scalar(n->op)) || m->count == MATCH_NODES)
        return false;
    if (p->kind == PATTERN_OP && p->count && n->count_in != p->count) return false;
    m->node[m->count++] = id;
    const match before = *m;
    if (match_order(g, p, n, false, m)) return true;
    if (p->count != 2 || !(op_at(n->op)->traits & COMMUTES)) return false;
    *m = before;
    return match_order(g, p, n, true, m);
}

bool match_node(const ir_graph *g, const pattern *p, ir_node_id n, match *m)
{
    *m = (match){ .root = n };
    return match_args(g, p, n, m);
}
