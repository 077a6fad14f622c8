/* SPDX-License-Identifier: Apache-2.0 */
/* verify_plan.c - plans, seen for some of the shapes that a profile permits: the smallest, the usual, the largest, and
 * one in between.
 *
 * Sizes that are equal, or add up, in all shapes do so in these; those that do so by chance differ in one. The executor
 * looks at each shape again when it is set. */
#include "engine/flow.h"
#include "engine/verify.h"

enum { AT_OPT, AT_MIN, AT_MAX, AT_MIDDLE, SHAPES };

/* A number in the symbol's range. Without a bound, some more than the usual. */
static int64_t sample(const engine_range *r, uint32_t symbol, uint32_t which)
{
    static const int64_t far = 1 << 20;
    if (which == AT_OPT || r->opt < -far || r->opt > far || r->divisor < 1 || r->divisor > far) return r->opt;
    const int64_t min = r->min > -far ? r->min : r->opt, max = r->max < far ? r->max : r->opt + 7 * r->divisor,
                  steps = (max - min) / r->divisor;
    if (which == AT_MIN) return min;
    if (which == AT_MAX) return max;
    return steps > 1 ? min + (1 + (int64_t)symbol % (steps - 1)) * r->divisor : r->opt;
}

static void fill(const engine *g, const engine_profile *p, uint32_t which, bool only_late, int64_t *symbol)
{
    const engine_range *range = g->range + (size_t)(p - g->profile) * g->symbol_count;
    for (uint32_t i = 0; i < g->symbol_count; i++)
        if (!only_late || g->symbol[i].is_late) symbol[i] = sample(&range[i], i, which);
}

static bool has_symbols(const engine *g, bool late)
{
    bool found = false;
    for (uint32_t i = 0; i < g->symbol_count; i++) found = found || (g->symbol[i].is_late != 0) == late;
    return found;
}

sinter_status engine_verify_plan(env *e, const engine *g)
{
    const bool is_static = !has_symbols(g, false) && !has_symbols(g, true);
    arena scratch;
    arena_init(&scratch, e);
    int64_t *symbol = ARENA_NEW(&scratch, int64_t, g->symbol_count),
            *dim_at = ARENA_NEW(&scratch, int64_t, g->dim_count);
    sinter_status s = symbol && dim_at ? SINTER_OK : FAIL_MEMORY(e, "checking a plan");
    for (uint32_t i = 0; s == SINTER_OK && i < g->profile_count; i++)
        for (uint32_t which = 0; s == SINTER_OK && which < (is_static ? 1u : SHAPES); which++) {
            fill(g, &g->profile[i], which, false, symbol);
            (void)dim_eval_all(g->dim, g->dim_count, symbol, g->symbol_count, dim_at);
            s = engine_check_flow(e, g, &g->profile[i], &scratch, dim_at);
        }
    arena_deinit(&scratch);
    return s;
}

sinter_status engine_check_shape(env *e, const engine *g, uint32_t profile, arena *scratch, const int64_t *symbol)
{
    if (!has_symbols(g, false)) return SINTER_OK; /* the verifier saw the one shape that there is */
    const arena_mark mark = arena_save(scratch);
    int64_t *own = ARENA_NEW(scratch, int64_t, g->symbol_count), *dim_at = ARENA_NEW(scratch, int64_t, g->dim_count);
    sinter_status s = own && dim_at ? SINTER_OK : FAIL_MEMORY(e, "checking a plan");
    if (s == SINTER_OK) {
        memcpy(own, symbol, g->symbol_count * sizeof *own);
        fill(g, &g->profile[profile], AT_OPT, true, own);
        (void)dim_eval_all(g->dim, g->dim_count, own, g->symbol_count, dim_at);
        s = engine_check_flow(e, g, &g->profile[profile], scratch, dim_at);
    }
    arena_rewind(scratch, mark);
    return s;
}
