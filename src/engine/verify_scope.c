/* SPDX-License-Identifier: Apache-2.0 */
/* verify_scope.c - which step tells each late symbol's number, and is it told before anybody needs it?
 *
 * Each late symbol has one step that binds it. Regions form a tree and run in order, so a symbol is known behind its
 * step to the end of the region in which it was bound, and in the regions that are called from there. One walk binds
 * and looks: what it has bound is what a run would know. */
#include "engine/verify.h"

#define BAD(e, ...) FAIL(e, INVALID_MODEL, __VA_ARGS__)

typedef struct scopes {
    env *e;
    const engine *g;
    const engine_profile *p;
    uint32_t *binder;  /* by symbol: 1 + the step; 0: none so far */
    uint32_t *bound;   /* by symbol: the region in which it is known, 0: nowhere */
    uint32_t *known;   /* by expression: the innermost region of its symbols */
    uint32_t *waiting; /* a stack of expressions */
    uint8_t *is_open;  /* by region: the walk is inside */
} scopes;

static const engine_step *step_at(const scopes *x, uint32_t s)
{
    return &x->g->step[x->p->step_first + s];
}
static const engine_region *region_at(const scopes *x, uint32_t r)
{
    return &x->g->region[x->p->region_first + r];
}

/* ---- who binds ---- */

static bool late_symbol(const scopes *x, uint32_t d, uint32_t *symbol)
{
    const dim_node *n = &x->g->dim[d];
    if (n->kind != DIM_SYMBOL || !x->g->symbol[n->value].is_late) return false;
    *symbol = (uint32_t)n->value;
    return true;
}

/* `region`: where they are known from now on. */
static sinter_status bind_listed(const scopes *x, uint32_t step, uint32_t count, uint32_t region)
{
    const uint32_t *list = x->g->arg + step_at(x, step)->dim_at;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t symbol;
        if (!late_symbol(x, list[i], &symbol)) continue;
        if (x->binder[symbol] && x->binder[symbol] != step + 1)
            return BAD(x->e, "symbol '%s' is bound by steps %u and %u", engine_text(x->g, x->g->symbol[symbol].name),
                       x->binder[symbol] - 1, step);
        x->binder[symbol] = step + 1;
        x->bound[symbol] = region;
    }
    return SINTER_OK;
}

/* Sizes of a late step's results: it binds those that nobody has bound before. */
static void bind_results(const scopes *x, uint32_t step, uint32_t region)
{
    const engine_step *s = step_at(x, step);
    for (uint32_t i = 0; i < s->out_count; i++) {
        const uint32_t v = x->g->arg[s->out_at + i];
        const engine_value *value = &x->g->value[x->p->value_first + v];
        for (uint32_t k = 0; v && k < value->rank; k++) {
            uint32_t symbol;
            if (!late_symbol(x, value->dim[k], &symbol) || x->binder[symbol]) continue;
            x->binder[symbol] = step + 1;
            x->bound[symbol] = region;
        }
    }
}

/* ---- who needs what ---- */

/* All open regions lie inside each other: the one with the larger id is the inner one. */
static bool knows(const scopes *x, uint32_t d)
{
    uint32_t count = 0;
    x->waiting[count++] = d;
    while (count) {
        const uint32_t top = x->waiting[count - 1];
        const dim_node *n = &x->g->dim[top];
        uint32_t symbol, region = 1;
        if (x->is_open[x->known[top]]) {
            count--;
            continue;
        }
        if (n->kind >= DIM_ADD) {
            const uint32_t a = x->known[n->a], b = x->known[n->b];
            /* Operands come before their users, so the stack never holds more than there are expressions. */
            if (!x->is_open[a]) x->waiting[count++] = n->a;
            else if (!x->is_open[b]) x->waiting[count++] = n->b;
            if (!x->is_open[a] || !x->is_open[b]) continue;
            region = a > b ? a : b;
        } else if (late_symbol(x, top, &symbol)) {
            region = x->bound[symbol];
            if (!x->is_open[region]) return false;
        }
        x->known[top] = region;
        count--;
    }
    return true;
}

static sinter_status need(const scopes *x, uint32_t d, uint32_t step, const char *what)
{
    if (knows(x, d)) return SINTER_OK;
    return BAD(x->e, "%s of step %u '%s' has a size that is not known there", what, step,
               step < x->p->step_count ? engine_text(x->g, step_at(x, step)->name) : "");
}

static sinter_status need_values(const scopes *x, uint32_t at, uint32_t count, uint32_t step, const char *what)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t v = x->g->arg[at + i];
        const engine_value *value = &x->g->value[x->p->value_first + v];
        if (!v) continue;
        TRY(need(x, value->offset, step, what));
        for (uint32_t k = 0; k < value->rank; k++) {
            TRY(need(x, value->dim[k], step, what));
            TRY(need(x, value->stride[k], step, what));
        }
    }
    return SINTER_OK;
}

/* ---- the walk ---- */

static sinter_status walk(const scopes *x, uint32_t region);

static sinter_status walk_call(const scopes *x, const engine_step *s, uint32_t step, uint32_t region)
{
    for (uint32_t k = 0; k < 2 && s->region[k]; k++) {
        const engine_region *r = region_at(x, s->region[k]);
        x->is_open[s->region[k]] = 1;
        if (s->kind != STEP_IF) TRY(bind_listed(x, step, s->dim_count, s->region[k]));
        TRY(need_values(x, r->param_at, r->param_count, step, "a parameter"));
        TRY(walk(x, s->region[k]));
        TRY(need_values(x, r->result_at, r->result_count, step, "a result of the body"));
        x->is_open[s->region[k]] = 0;
    }
    return bind_listed(x, step, s->dim_count, region);
}

static sinter_status walk_step(const scopes *x, uint32_t step, uint32_t region)
{
    const engine_step *s = step_at(x, step);
    const problem *p = x->g->code[x->p->step_first + step].problem;
    const uint32_t own = s->kind >= STEP_IF ? s->dim_count
                         : p->op == OP_bind ? ((const attrs_bind *)p->attrs)->symbols.count
                                            : 0;
    TRY(need_values(x, s->in_at, s->in_count, step, "an operand"));
    for (uint32_t i = own; i < s->dim_count; i++) TRY(need(x, x->g->arg[s->dim_at + i], step, "an attribute"));
    if (s->kind >= STEP_IF) TRY(walk_call(x, s, step, region));
    if (s->kind == STEP_LATE) {
        TRY(bind_listed(x, step, own, region));
        bind_results(x, step, region);
    }
    return need_values(x, s->out_at, s->out_count, step, "a result");
}

static sinter_status walk(const scopes *x, uint32_t region)
{
    const engine_region *r = region_at(x, region);
    for (uint32_t i = 0; i < r->step_count; i++) TRY(walk_step(x, r->step_at + i, region));
    return SINTER_OK;
}

static sinter_status check_profile(scopes *x, arena *a)
{
    x->bound = ARENA_NEW(a, uint32_t, x->g->symbol_count);
    x->known = ARENA_NEW(a, uint32_t, x->g->dim_count);
    x->waiting = ARENA_NEW(a, uint32_t, (size_t)x->g->dim_count + 1);
    x->is_open = ARENA_NEW(a, uint8_t, x->p->region_count);
    if (!x->bound || !x->known || !x->waiting || !x->is_open) return FAIL_MEMORY(x->e, "checking sizes");
    x->is_open[1] = 1;
    TRY(walk(x, 1));
    return need_values(x, x->p->io_first + x->g->input_count, x->g->io_count - x->g->input_count, UINT32_MAX,
                       "an output");
}

sinter_status engine_verify_scopes(env *e, engine *g)
{
    g->binder = ARENA_NEW(&g->a, uint32_t, (size_t)g->profile_count * g->symbol_count);
    if (!g->binder) return FAIL_MEMORY(e, "checking sizes");
    arena scratch;
    arena_init(&scratch, e);
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; s == SINTER_OK && i < g->profile_count; i++) {
        const arena_mark mark = arena_save(&scratch);
        scopes x = { .e = e, .g = g, .p = &g->profile[i], .binder = g->binder + (size_t)i * g->symbol_count };
        s = check_profile(&x, &scratch);
        arena_rewind(&scratch, mark);
    }
    arena_deinit(&scratch);
    return s;
}
