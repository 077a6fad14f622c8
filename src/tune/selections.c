/* SPDX-License-Identifier: Apache-2.0 */
/* selections.c - adds debug outputs to models whose output sizes depend on data, such as detectors.
 *
 * Two runs that differ in the last bit may keep another box, or the same boxes in another order. So the results of such
 * a model cannot be compared number by number. The inputs of the selections can be compared: floats that depend on no
 * earlier selection, and that are read by an op that selects (top-k, non-maximum suppression, a comparison …) or by an
 * op behind a selection. These floats become outputs.
 *
 * Non-maximum suppression ignores scores that are not above its limit, and ops behind it read only scores above the
 * limit. So the output is max(score, limit): most scores of a detector are close to 0, and their exact values do not
 * matter. */
#include "ir/build.h"
#include "tune/tune.h"

static bool is_late(const ir_graph *g, const ir_value *v)
{
    bool is = false;
    for (uint32_t i = 0; i < v->rank; i++) is = is || dim_is_late(g->dims, v->dim[i]);
    return is;
}

static bool chooses(const ir_graph *g, const ir_node *n)
{
    bool is = op_has(n->op, CHOOSES);
    const bool is_verdict = n->count_out && ir_value_at(g, n->out[0])->dtype == SINTER_DTYPE_BOOL;
    for (uint32_t k = 0; is_verdict && k < n->count_in; k++)
        is = is || (n->in[k] && dtype_is_float(ir_value_at(g, n->in[k])->dtype));
    return is;
}

/* Does n select, or read the result of a selection? */
static bool is_chosen(const ir_graph *g, const ir_node *n, const uint8_t *is_after)
{
    bool is = chooses(g, n);
    for (uint32_t k = 0; k < n->count_in; k++) is = is || is_after[n->in[k]];
    return is;
}

/* Marks all values behind a selection, in the order of the nodes. */
static void mark(const ir_graph *g, const ir_node_id *order, uint32_t count, uint8_t *is_after)
{
    for (uint32_t i = 0; i < count; i++) {
        const ir_node *n = ir_node_at(g, order[i]);
        const bool is = is_chosen(g, n, is_after);
        for (uint32_t k = 0; k < n->count_out; k++) is_after[n->out[k]] = is && n->out[k]; /* 0: absent */
    }
}

/* Is the value computed from inputs without any selection? is_after: values behind a selection. */
static bool is_data(const ir_graph *g, ir_value_id id, const uint8_t *is_after)
{
    const ir_value *v = ir_value_at(g, id);
    return id && !is_after[id] && v->producer && !v->is_output && dtype_is_float(v->dtype) && !is_late(g, v) &&
           ir_node_at(g, v->producer)->parent == IR_MAIN;
}

static void put_out(ir_graph *g, ir_value_id id)
{
    ir_value *v = ir_value_at(g, id);
    v->is_output = true;
    if (!v->name) v->name = arena_printf(&g->a, "before a choice %u", id);
    ir_output(g, id);
}

/* is_limited: scores that are an output already, as max(score, limit). */
static void tap(ir_graph *g, const ir_node *n, const uint8_t *is_after, const uint8_t *is_limited)
{
    const bool is = is_chosen(g, n, is_after);
    for (uint32_t k = 0; is && k < n->count_in; k++)
        if (is_data(g, n->in[k], is_after) && !(is_limited[n->in[k]] && (!chooses(g, n) || n->op == OP_nms)))
            put_out(g, n->in[k]);
}

static sinter_status tap_scores(ir_graph *g, ir_node_id id, const uint8_t *is_after, uint8_t *is_limited)
{
    enum { SCORES = 1, LIMIT = 4 };
    const ir_node n = *ir_node_at(g, id);
    double limit;
    if (n.op != OP_nms || n.count_in <= LIMIT || !n.in[LIMIT] || !ir_const_scalar(g, n.in[LIMIT], &limit) ||
        !is_data(g, n.in[SCORES], is_after) || is_limited[n.in[SCORES]])
        return SINTER_OK;
    ir_builder b = { .g = g, .region = n.parent };
    build_from(&b, &id, 1);
    /* In f64, so that no pass lowers the ops that are added here. */
    const ir_value_id score = build_typed(&b, n.in[SCORES], SINTER_DTYPE_F64),
                      larger = build_max(&b, score, build_scalar(&b, SINTER_DTYPE_F64, limit));
    TRY(b.status);
    is_limited[n.in[SCORES]] = 1;
    put_out(g, larger);
    return SINTER_OK;
}

sinter_status tune_tap_selections(env *e, ir_graph *g)
{
    const ir_value_list *result = &g->region.at[IR_MAIN].result;
    bool is_any = false;
    for (uint32_t i = 0; i < result->count; i++) is_any = is_any || is_late(g, ir_value_at(g, result->at[i]));
    if (!is_any) return SINTER_OK;
    arena a;
    arena_init(&a, e);
    ir_node_id *order = NULL;
    uint32_t count = 0;
    uint8_t *is_after = ARENA_NEW(&a, uint8_t, g->value.count), *is_limited = ARENA_NEW(&a, uint8_t, g->value.count);
    sinter_status s =
        is_after && is_limited ? ir_order(g, IR_MAIN, &a, &order, &count) : FAIL_MEMORY(e, "what data decide");
    if (s == SINTER_OK) mark(g, order, count, is_after);
    for (uint32_t i = 0; s == SINTER_OK && i < count; i++) s = tap_scores(g, order[i], is_after, is_limited);
    for (uint32_t i = 0; s == SINTER_OK && i < count; i++) tap(g, ir_node_at(g, order[i]), is_after, is_limited);
    arena_deinit(&a);
    return s;
}
