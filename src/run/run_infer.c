/* SPDX-License-Identifier: Apache-2.0 */
/* run_infer.c - sizes before a run: exact where the inputs' shapes, and the values of small inputs of integers, decide
 * them; bounds where other data does. Nothing is bound or allocated for later. */
#include "run/context.h"

#include "core/dim_range.h"

bool context_input_is_missing(const context *c, uint32_t io)
{
    return !c->input[io].has_shape || (c->is_size[io] && !c->input[io].is_set);
}

/* ---- all sizes ---- */

typedef struct sizes {
    int64_t *symbol, *dim_at;
} sizes;

/* In scratch memory. */
static sinter_status infer(context *c, sizes *out)
{
    out->symbol = ARENA_NEW(&c->scratch, int64_t, c->g->symbol_count);
    out->dim_at = ARENA_NEW(&c->scratch, int64_t, c->g->dim_count);
    if ((c->g->symbol_count && !out->symbol) || !out->dim_at) return FAIL_MEMORY(&c->e, "a shape");
    TRY(context_eval_inputs(c, out->symbol, out->dim_at, false));
    return context_eval_sizes(c, out->symbol, out->dim_at);
}

sinter_status context_output_dims(context *c, uint32_t io, int64_t *dim_at)
{
    const engine_io *x = &c->g->io[io];
    const arena_mark mark = arena_save(&c->scratch);
    sizes known;
    const sinter_status s = infer(c, &known);
    for (uint32_t k = 0; s == SINTER_OK && k < x->rank; k++) {
        const int64_t d = known.dim_at[x->dim[k]];
        dim_at[k] = d < 0 ? -1 : d;
    }
    arena_rewind(&c->scratch, mark);
    return s;
}

/* The ranges of all expressions: symbols that are known have one value, the others their profile's range. */
static dim_range *ranges_of(context *c, const sizes *known)
{
    dim_range *r = ARENA_NEW(&c->scratch, dim_range, c->g->dim_count);
    for (uint32_t i = 0; r && i < c->g->dim_count; i++) {
        const dim_node *n = &c->g->dim[i];
        if (n->kind == DIM_CONST) {
            r[i] = (dim_range){ n->value, n->value, n->value, 1 };
        } else if (n->kind == DIM_SYMBOL) {
            const int64_t x = known->symbol[n->value];
            const engine_range *own = &c->g->range[(size_t)c->profile * c->g->symbol_count + (size_t)n->value];
            r[i] = x == UNBOUND ? (dim_range){ own->min, own->max, own->opt, 1 } : (dim_range){ x, x, x, 1 };
        } else if (n->kind > DIM_SYMBOL) {
            r[i] = dim_range_apply(n->kind, r[n->a], r[n->b]);
        }
    }
    return r;
}

sinter_status context_output_bound(context *c, uint32_t io, size_t *out)
{
    const engine_io *x = &c->g->io[io];
    const arena_mark mark = arena_save(&c->scratch);
    sizes known;
    sinter_tensor t = { .dtype = (sinter_dtype)x->dtype, .rank = x->rank };
    sinter_status s = infer(c, &known);
    const dim_range *r = s == SINTER_OK ? ranges_of(c, &known) : NULL;
    if (s == SINTER_OK && !r) s = FAIL_MEMORY(&c->e, "a shape");
    bool is_empty = false, is_bounded = true;
    for (uint32_t k = 0; s == SINTER_OK && k < x->rank; k++) {
        const int64_t max = r[x->dim[k]].max;
        t.dim[k] = max < 0 ? 0 : max;
        is_empty = is_empty || max <= 0;
        is_bounded = is_bounded && max != INT64_MAX;
    }
    arena_rewind(&c->scratch, mark);
    TRY(s);
    *out = is_empty ? 0 : is_bounded ? sinter_tensor_size(&t) : SIZE_MAX;
    if (*out != SIZE_MAX) return SINTER_OK;
    return FAIL(&c->e, UNSUPPORTED, "the size of output '%s' has no bound", engine_text(c->g, x->name));
}
