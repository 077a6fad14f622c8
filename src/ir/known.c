/* SPDX-License-Identifier: Apache-2.0 */
/* known.c - what a value will be, where constants and known shapes decide it, without changing the graph.
 *
 * The importer asks for conditions: exporters guard branches with comparisons of ranks and sizes, and only one of the
 * branches fits the rest of the model. Small values only; the search is bounded in depth and in nodes. */
#include "ir/graph.h"

enum { DEPTH_MAX = 32, VISITS_MAX = 256, ELEMENTS_MAX = 4096 };
typedef struct search {
    const ir_graph *g;
    arena *a;
    uint32_t visits;
} search;

static bool known(search *s, ir_value_id v, uint32_t depth, view *out);

static bool dense(search *s, const ir_value *v, view *out)
{
    int64_t d[SINTER_RANK_MAX] = { 0 };
    for (uint32_t i = 0; i < v->rank; i++)
        if (!dim_is_const(s->g->dims, v->dim[i], &d[i])) return false;
    if (!view_init(out, v->dtype, v->rank, d, NULL) || view_count(out) > ELEMENTS_MAX) return false;
    out->data = arena_alloc(s->a, (size_t)view_count(out) * 8 + 8, 8);
    return out->data != NULL;
}

static bool compute(search *s, ir_node_id id, uint32_t depth, uint32_t output, view *out)
{
    const ir_node *n = ir_node_at(s->g, id);
    const op_info *op = op_at(n->op);
    if (op->regions || op->traits & (LATE | VARIES) || n->epilogue || n->prologue || n->count_in > 16) return false;
    view *in = ARENA_NEW(s->a, view, (size_t)n->count_in + 1), *all = ARENA_NEW(s->a, view, (size_t)n->count_out + 1);
    void *attrs = op_attrs_copy(s->a, n->op, n->attrs);
    if (!in || !all || !attrs) return false;
    for (const attr_info *d = op->attr; d->name; d++) {
        if (d->kind != ATTR_DIMS) continue;
        attr_dims *list = (attr_dims *)((char *)attrs + d->at);
        int64_t *at = ARENA_NEW(s->a, int64_t, list->count);
        for (uint32_t i = 0; i < list->count; i++)
            if (!at || !dim_is_const(s->g->dims, (dim)list->at[i], &at[i])) return false;
        list->at = at;
    }
    for (uint32_t i = 0; i < n->count_in; i++)
        if (n->in[i] && !known(s, n->in[i], depth + 1, &in[i])) return false;
    for (uint32_t i = 0; i < n->count_out; i++)
        if (!dense(s, ir_value_at(s->g, n->out[i]), &all[i])) return false;
    data_fault fault = { 0 };
    ref_call c = { .e = s->g->e,
                   .op = n->op,
                   .attrs = attrs,
                   .count_in = n->count_in,
                   .count_out = n->count_out,
                   .in = in,
                   .out = all,
                   .scratch = s->a,
                   .fault = &fault };
    const sinter_error before = *s->g->e->error;
    if (op_reference(&c) != SINTER_OK) {
        *s->g->e->error = before; /* nobody asked to run it: no failure of theirs */
        return false;
    }
    *out = all[output];
    return !fault.is_set;
}

static bool known(search *s, ir_value_id v, uint32_t depth, view *out)
{
    const ir_value *x = ir_value_at(s->g, v);
    if (ir_const_view(s->g, v, out)) return true;
    if (depth > DEPTH_MAX || ++s->visits > VISITS_MAX) return false;
    if (x->shape_value && x->rank <= 1) {
        bool is_const = true;
        for (uint32_t i = 0; i < x->shape_count && is_const; i++)
            is_const = dim_is_const(s->g->dims, x->shape_value[i], NULL);
        if (is_const && dense(s, x, out) && view_count(out) == (int64_t)x->shape_count) {
            for (uint32_t i = 0; i < x->shape_count; i++) {
                int64_t value = 0;
                (void)dim_is_const(s->g->dims, x->shape_value[i], &value);
                view_store_i64(out, i, value);
            }
            return true;
        }
    }
    return x->producer && compute(s, x->producer, depth, x->producer_out, out);
}

bool ir_known_scalar(const ir_graph *g, ir_value_id v, double *out)
{
    arena a;
    arena_init(&a, g->e);
    search s = { .g = g, .a = &a };
    view x;
    const bool ok = v && known(&s, v, 0, &x) && view_count(&x) == 1;
    if (ok) *out = view_load_f64(&x, 0);
    arena_deinit(&a);
    return ok;
}
