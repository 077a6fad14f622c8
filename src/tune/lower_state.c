/* SPDX-License-Identifier: Apache-2.0 */
/* lower_state.c - states in a plan: storages of the context, updated in place where that is possible, else by a copy at
 * the end. The engine's verifier looks at every plan: no step may read a part of a state that another has overwritten.
 */
#include "tune/lower.h"

#include <string.h>

/* The pair `i` of the graph. */
static ir_value_id before(const lowering *l, uint32_t i)
{
    const ir_region *main = ir_region_at(l->g, IR_MAIN);
    return main->param.at[ir_input_count(l->g) + i];
}
static ir_value_id after(const lowering *l, uint32_t i)
{
    return ir_region_at(l->g, IR_MAIN)->result.at[ir_output_count(l->g) + i];
}

sinter_status lower_states_begin(lowering *l)
{
    const ir_states *s = &l->g->states;
    for (uint32_t i = 0; i <= s->count; i++) {
        const ir_value_id v = i < s->count ? before(l, i) : s->rows;
        const ir_value *x = ir_value_at(l->g, v);
        if (!v) continue;
        const storage_kind kind = i < s->count ? STORAGE_STATE : STORAGE_ROWS;
        l->map[v] = plan_value_dense(l->p, kind, x->name, x->dtype, x->rank, x->dim, NULL);
        if (!l->map[v]) return FAIL_MEMORY(l->e, "a state");
        l->p->value.at[l->map[v]].is_old = kind == STORAGE_STATE;
    }
    return SINTER_OK;
}

bool tune_is_state(const ir_graph *g, ir_value_id before, ir_value_id after)
{
    const ir_region *main = ir_region_at(g, IR_MAIN);
    for (uint32_t i = 0; i < g->states.count; i++)
        if (before == main->param.at[ir_input_count(g) + i] && after == main->result.at[ir_output_count(g) + i])
            return ir_value_at(g, before)->use_count == 1;
    return false;
}

bool lower_updates_state(const lowering *l, const ir_node *n)
{
    uint32_t updates = 0;
    for (uint32_t i = 0; i < n->count_out; i++) {
        if (!op_updates(n->op, i)) continue;
        if (i >= n->count_in || !tune_is_state(l->g, n->in[i], n->out[i])) return false;
        updates++;
    }
    return updates && !n->epilogue && !n->prologue;
}

/* Is the state in its place already: as it was, or updated there? A part of it in another order is not. */
static bool is_there(const lowering *l, uint32_t v, uint32_t state)
{
    const plan_value *a = &l->p->value.at[v], *b = &l->p->value.at[state];
    return a->storage == b->storage && a->offset == b->offset && a->rank == b->rank &&
           !memcmp(a->dim, b->dim, a->rank * sizeof(dim)) && !memcmp(a->stride, b->stride, a->rank * sizeof(dim));
}

sinter_status lower_states_end(lowering *l)
{
    const uint32_t count = l->g->states.count;
    uint32_t *from = ARENA_NEW(l->a, uint32_t, count);
    if (!from) return FAIL_MEMORY(l->e, "states");
    /* A state that becomes what another was: it is read before anything is overwritten. */
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t to = l->map[before(l, i)];
        TRY(lower_value(l, after(l, i), &from[i]));
        const uint32_t storage = l->p->value.at[from[i]].storage;
        if (is_there(l, from[i], to)) from[i] = 0;
        else if (l->p->storage.at[storage].kind == STORAGE_STATE)
            TRY(work_copy(l, from[i], NULL, true, 0, ir_value_at(l->g, after(l, i))->name, &from[i]));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!from[i]) continue;
        TRY(work_place(l, from[i], PLACE_DEVICE, ir_value_at(l->g, after(l, i))->name, &from[i]));
        plan_value *slot = VEC_PUSH(l->a, &l->p->value);
        if (!slot) return FAIL_MEMORY(l->e, "states");
        *slot = l->p->value.at[l->map[before(l, i)]];
        slot->is_old = false;
        TRY(work_copy_into(l, from[i], l->p->value.count - 1, ir_value_at(l->g, after(l, i))->name));
    }
    return SINTER_OK;
}
