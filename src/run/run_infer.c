/* SPDX-License-Identifier: Apache-2.0 */
/* run_infer.c - sizes before a run: exact where the inputs' shapes, and the values of inputs that are lists of sizes,
 * decide them; bounds where other data does. Nothing is bound or allocated for later. */
#include "run/context.h"

#include "core/dim_range.h"

#include <string.h>

/* ---- inputs whose values are sizes ---- */

/* The input that a step which binds sizes reads as it is; false: it reads what other steps compute. */
static bool read_directly(const context *c, uint32_t step, uint32_t *io)
{
    const engine_step *s = context_step(c, step);
    const engine_code *code = context_code(c, step);
    if (s->kind != STEP_LATE || code->problem->op != OP_bind || s->in_count != 1) return false;
    const uint32_t v = context_args(c, s->in_at)[0];
    const engine_storage *from = v ? context_storage(c, context_value(c, v)->storage) : NULL;
    if (!from || from->kind != STORAGE_INPUT) return false;
    *io = (uint32_t)from->at;
    return true;
}

bool context_input_is_missing(const context *c, uint32_t io)
{
    if (!c->input[io].has_shape) return true;
    for (uint32_t i = 0; i < c->p->step_count && !c->input[io].is_set; i++) {
        uint32_t other;
        if (read_directly(c, i, &other) && other == io) return true;
    }
    return false;
}

typedef struct sizes {
    context *c;
    uint32_t step;
    int64_t *symbol, *dim_at;
    bool is_known;
} sizes;

static sinter_status take_sizes(ref_call *call, uint32_t i, const int64_t *dim_at, uint32_t count)
{
    sizes *x = call->user;
    const context *c = x->c;
    const uint32_t *list = context_args(c, context_step(c, x->step)->dim_at);
    (void)i;
    for (uint32_t k = 0; k < count; k++) {
        const dim_node *n = &c->g->dim[list[k]];
        if (n->kind == DIM_SYMBOL && x->symbol[n->value] == UNBOUND) x->symbol[n->value] = dim_at[k];
    }
    x->is_known = true;
    return SINTER_OK;
}

/* The attributes' sizes as they are known; false: one is not. */
static bool resolve(const sizes *x, void *attrs)
{
    context *c = x->c;
    const uint32_t *list = context_args(c, context_step(c, x->step)->dim_at);
    bool ok = true, is_own = true; /* the first list is of the symbols that the step binds */
    for (const attr_info *info = op_at(OP_bind)->attr; ok && info->name; info++) {
        if (info->kind != ATTR_DIMS) continue;
        attr_dims *d = (attr_dims *)((char *)attrs + info->at);
        int64_t *at = ARENA_NEW(&c->scratch, int64_t, d->count);
        ok = at || !d->count;
        for (uint32_t i = 0; ok && i < d->count; i++) {
            at[i] = x->dim_at[*list++];
            ok = is_own || at[i] != INT64_MIN;
        }
        d->at = at;
        is_own = false;
    }
    return ok;
}

/* Runs the step on the caller's numbers, if they are there. What is wrong with them, a run says. */
static void bind_from_input(sizes *x)
{
    context *c = x->c;
    uint32_t io;
    if (!read_directly(c, x->step, &io)) return;
    const uint32_t id = context_args(c, context_step(c, x->step)->in_at)[0];
    const engine_value *v = context_value(c, id);
    const bool is_here = c->input[io].is_set && (!context_has_places(c) || c->input[io].place != SINTER_PLACE_DEVICE);
    if (!is_here || v->rank > 1 || sinter_dtype_bits((sinter_dtype)v->dtype) < 8) return;
    view in = { .dtype = (sinter_dtype)v->dtype, .rank = v->rank, .data = c->input[io].data };
    int64_t given = 1;
    for (uint32_t k = 0; k < c->g->io[io].rank; k++) given *= c->input[io].dim[k];
    if (v->rank) in.dim[0] = x->dim_at[v->dim[0]];
    if (v->rank) in.stride[0] = x->dim_at[v->stride[0]];
    /* Only the whole input, as it lies. */
    if (x->dim_at[v->offset] != 0 || (v->rank && (in.dim[0] != given || (given > 1 && in.stride[0] != 1)))) return;
    sinter_error quiet = { 0 }, *const error = c->e.error;
    void *attrs = op_attrs_copy(&c->scratch, OP_bind, context_code(c, x->step)->problem->attrs);
    data_fault fault = { 0 };
    ref_call call = { .e = &c->e,
                      .op = OP_bind,
                      .attrs = attrs,
                      .count_in = 1,
                      .in = &in,
                      .scratch = &c->scratch,
                      .fault = &fault,
                      .resize = take_sizes,
                      .user = x };
    c->e.error = &quiet;
    if (attrs && resolve(x, attrs)) (void)op_reference(&call);
    c->e.error = error;
}

/* ---- all sizes ---- */

/* In scratch memory. */
static sinter_status infer(context *c, sizes *out)
{
    *out = (sizes){ .c = c };
    out->symbol = ARENA_NEW(&c->scratch, int64_t, c->g->symbol_count);
    out->dim_at = ARENA_NEW(&c->scratch, int64_t, c->g->dim_count);
    if ((c->g->symbol_count && !out->symbol) || !out->dim_at) return FAIL_MEMORY(&c->e, "a shape");
    TRY(context_eval_inputs(c, out->symbol, out->dim_at, false));
    const engine_region *main = &c->g->region[c->p->region_first + 1];
    for (uint32_t i = 0; i < main->step_count; i++) {
        out->step = main->step_at + i;
        out->is_known = false;
        bind_from_input(out);
        if (out->is_known) (void)dim_eval_all(c->g->dim, c->g->dim_count, out->symbol, c->g->symbol_count, out->dim_at);
    }
    return SINTER_OK;
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
