/* SPDX-License-Identifier: Apache-2.0 */
/* ir_verify.c - what a graph may contain at each stage, and that its tables agree with each other.
 *
 * Everything here is an invariant: a failure is a bug of whoever edited last, never of a model. Shapes are not inferred
 * again; rules that change them are caught by the driver, which compares the two sides. */
#include "ir/graph.h"

typedef struct stage_rule {
    const char *name;
    bool allows_programs; /* pointwise nodes, prologues and epilogues */
} stage_rule;
static const stage_rule stages[IR_STAGE_COUNT] = {
    [IR_STAGE_IMPORTED] = { "imported", false },
    [IR_STAGE_OPTIMIZED] = { "optimized", false },
    [IR_STAGE_GROUPED] = { "grouped", true },
};

static sinter_status fail_node(const ir_graph *g, ir_node_id id, const char *what, uint64_t found, uint64_t wanted)
{
    return FAIL(g->e, INTERNAL, "node %u %s (%s): %s (found %llu, want %llu)", id, ir_node_label(g, id),
                op_at(g->node.at[id].op)->name, what, (unsigned long long)found, (unsigned long long)wanted);
}

/* A value may be read in a region if it is a constant, a parameter of that region, or made by a live node of it. */
static bool is_visible(const ir_graph *g, ir_value_id v, ir_region_id region, const ir_region_id *param_of)
{
    const ir_value *x = ir_value_at(g, v);
    if (x->data) return true;
    if (x->producer) return !g->node.at[x->producer].is_dead && g->node.at[x->producer].parent == region;
    return param_of[v] == region;
}

static sinter_status check_value(const ir_graph *g, ir_value_id v, ir_node_id n)
{
    const ir_value *x = ir_value_at(g, v);
    if (!dtype_is_valid((int)x->dtype)) return fail_node(g, n, "a value without a type", v, 0);
    if (x->rank > SINTER_RANK_MAX) return fail_node(g, n, "a rank that is too large", x->rank, SINTER_RANK_MAX);
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dim[i] == DIM_NONE || x->dim[i] >= dim_count(g->dims))
            return fail_node(g, n, "a value without a size for an axis", v, i);
    return SINTER_OK;
}

static sinter_status check_programs(const ir_graph *g, ir_node_id id, ir_stage stage)
{
    const ir_node *n = &g->node.at[id];
    const op_info *op = op_at(n->op);
    if (n->count_anchor > n->count_in)
        return fail_node(g, id, "more anchor inputs than inputs", n->count_anchor, n->count_in);
    if (n->op != OP_pointwise && !n->prologue && !n->epilogue) {
        if (n->count_anchor != n->count_in)
            return fail_node(g, id, "operands without a program", n->count_in, n->count_anchor);
        return SINTER_OK;
    }
    if (!stages[stage].allows_programs) return fail_node(g, id, "a program before groups are formed", 1, 0);
    if (n->op == OP_pointwise && !n->epilogue) return fail_node(g, id, "pointwise without a program", 0, 1);
    if (n->op != OP_pointwise && n->epilogue && !(op->traits & FUSES_AFTER))
        return fail_node(g, id, "an epilogue that the op cannot have", 1, 0);
    if (n->prologue && !(op->traits & FUSES_BEFORE))
        return fail_node(g, id, "a prologue that the op cannot have", 1, 0);
    const char *why = n->epilogue ? expr_check(n->epilogue, n->count_in, n->count_out, n->op != OP_pointwise) : NULL;
    if (!why && n->prologue) why = expr_check(n->prologue, n->count_in, 1, false);
    if (why) return FAIL(g->e, INTERNAL, "node %u %s (%s): %s", id, ir_node_label(g, id), op->name, why);
    return SINTER_OK;
}

static sinter_status check_node(const ir_graph *g, ir_node_id id, ir_stage stage, const ir_region_id *param_of,
                                uint32_t *uses)
{
    const ir_node *n = &g->node.at[id];
    if ((uint32_t)n->op >= OP_COUNT) return FAIL(g->e, INTERNAL, "node %u has op %u", id, (unsigned)n->op);
    const op_info *op = op_at(n->op);
    const uint32_t count_in = n->op == OP_pointwise ? n->count_in : n->count_anchor;
    const uint32_t in_max = op->in_max >= VARIADIC ? OP_IN_MAX : op->in_max,
                   out_max = op->out_max >= VARIADIC ? OP_OUT_MAX : op->out_max;
    if (count_in < op->in_min || count_in > in_max) return fail_node(g, id, "number of inputs", count_in, op->in_min);
    const bool extra_results = n->epilogue != NULL;
    if (n->count_out < op->out_min || (n->count_out > out_max && !extra_results))
        return fail_node(g, id, "number of outputs", n->count_out, op->out_min);
    if (n->parent == 0 || n->parent >= g->region.count)
        return fail_node(g, id, "its region", n->parent, g->region.count);
    if (n->count_region != op->regions) return fail_node(g, id, "number of regions", n->count_region, op->regions);
    for (uint32_t i = 0; i < n->count_in; i++) {
        const ir_value_id v = n->in[i];
        if (v >= g->value.count) return fail_node(g, id, "an input that does not exist", v, g->value.count);
        if (!v) {
            const bool may_miss = i >= op->in_min || n->op == OP_loop;
            if (!may_miss || i >= n->count_anchor) return fail_node(g, id, "an absent input", i, 0);
            continue;
        }
        uses[v]++;
        TRY(check_value(g, v, id));
        if (!is_visible(g, v, n->parent, param_of))
            return fail_node(g, id, "an input that its region does not see", v, 0);
    }
    for (uint32_t i = 0; i < n->count_out; i++) {
        const ir_value_id v = n->out[i];
        if (!v || v >= g->value.count) return fail_node(g, id, "an output that does not exist", v, g->value.count);
        const ir_value *x = &g->value.at[v];
        if (x->producer != id || x->producer_out != i)
            return fail_node(g, id, "an output that another node claims", x->producer, id);
        if (x->data) return fail_node(g, id, "an output that is a constant", v, 0);
        TRY(check_value(g, v, id));
    }
    for (uint32_t i = 0; i < n->count_region; i++)
        if (!n->region[i] || n->region[i] >= g->region.count || g->region.at[n->region[i]].owner != id)
            return fail_node(g, id, "a region that is not its own", n->region[i], id);
    return check_programs(g, id, stage);
}

static sinter_status check_region(const ir_graph *g, ir_region_id id, const ir_region_id *param_of, uint32_t *uses)
{
    const ir_region *r = &g->region.at[id];
    for (uint32_t i = 0; i < r->result.count; i++) {
        const ir_value_id v = r->result.at[i];
        if (!v || v >= g->value.count) return FAIL(g->e, INTERNAL, "result %u of region %u does not exist", i, id);
        uses[v]++;
        if (!is_visible(g, v, id, param_of))
            return FAIL(g->e, INTERNAL, "result %u of region %u is not visible there (value %u)", i, id, v);
        if (id == IR_MAIN && !g->value.at[v].is_output)
            return FAIL(g->e, INTERNAL, "result %u is not marked as an output", i);
    }
    arena scratch;
    arena_init(&scratch, g->e);
    ir_node_id *at;
    uint32_t count;
    const sinter_status status = ir_order(g, id, &scratch, &at, &count);
    arena_deinit(&scratch);
    return status;
}

static sinter_status check_all(const ir_graph *g, ir_stage stage, ir_region_id *param_of, uint32_t *uses)
{
    for (ir_region_id r = 1; r < g->region.count; r++)
        for (uint32_t i = 0; i < g->region.at[r].param.count; i++) {
            const ir_value_id v = g->region.at[r].param.at[i];
            if (!v || v >= g->value.count || g->value.at[v].producer)
                return FAIL(g->e, INTERNAL, "parameter %u of region %u is value %u", i, r, v);
            param_of[v] = r;
        }
    for (ir_node_id n = 1; n < g->node.count; n++)
        if (!g->node.at[n].is_dead) TRY(check_node(g, n, stage, param_of, uses));
    for (ir_region_id r = 1; r < g->region.count; r++)
        if (r == IR_MAIN || !ir_node_at(g, g->region.at[r].owner)->is_dead) TRY(check_region(g, r, param_of, uses));
    for (ir_value_id v = 1; v < g->value.count; v++)
        if (uses[v] != g->value.at[v].use_count)
            return FAIL(g->e, INTERNAL, "value %u says %u uses, has %u", v, g->value.at[v].use_count, uses[v]);
    return SINTER_OK;
}

sinter_status ir_verify(ir_graph *g, ir_stage stage)
{
    arena scratch;
    arena_init(&scratch, g->e);
    ir_region_id *param_of = ARENA_NEW(&scratch, ir_region_id, g->value.count);
    uint32_t *uses = ARENA_NEW(&scratch, uint32_t, g->value.count);
    sinter_status status = param_of && uses ? check_all(g, stage, param_of, uses) : FAIL_MEMORY(g->e, "verification");
    if (status == SINTER_INVALID_MODEL) status = SINTER_INTERNAL;
    arena_deinit(&scratch);
    return status ? NOTE(g->e, status, "while verifying the %s graph", stages[stage].name) : SINTER_OK;
}
