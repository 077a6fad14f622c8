/* SPDX-License-Identifier: Apache-2.0 */
/* run_sizes.c - sizes that small tensors hold, before a run: what lies between the inputs and the steps that bind
 * sizes.
 *
 * Integers of an input, and arithmetic on them, may be sizes. Those steps are few and small, so the reference of each
 * is run, in order, on copies of the storages that they touch; what is wrong with the numbers, a run says. */
#include "run/context.h"

#include <string.h>

/* Bytes: of what is computed, and of constants that are read; elements of an input that may be sizes. */
enum { SMALL = 4096, CONST_MOST = 1 << 16, INPUT_MOST = 64 };

/* ---- which steps ---- */

static int64_t most_of(const context *c, uint32_t d)
{
    const dim_node *n = &c->g->dim[d];
    if (n->kind == DIM_CONST) return n->value;
    return n->kind == DIM_SYMBOL ? c->g->range[(size_t)c->profile * c->g->symbol_count + (size_t)n->value].max
                                 : INT64_MAX;
}

static int64_t elements_most(const context *c, const engine_io *io)
{
    int64_t count = 1;
    for (uint32_t k = 0; k < io->rank; k++)
        if (!i64_mul(count, most_of(c, io->dim[k]), &count)) return INT64_MAX;
    return count;
}

static bool is_small(const context *c, uint32_t storage)
{
    const engine_storage *s = context_storage(c, storage);
    const engine_io *io = s->kind == STORAGE_INPUT || s->kind == STORAGE_OUTPUT ? &c->g->io[s->at] : NULL;
    switch (s->kind) {
    case STORAGE_SLAB: return s->bound <= SMALL;
    case STORAGE_WEIGHT: return s->bound <= CONST_MOST && s->at != WEIGHT_ABSENT;
    case STORAGE_INPUT:
        return io->rank <= 1 && dtype_is_int((sinter_dtype)io->dtype) && elements_most(c, io) <= INPUT_MOST;
    case STORAGE_OUTPUT: return elements_most(c, io) <= INPUT_MOST;
    default: return false;
    }
}

static uint32_t storage_of(const context *c, uint32_t v)
{
    return context_value(c, v)->storage;
}

static bool is_bind(const context *c, uint32_t step)
{
    return context_step(c, step)->kind == STEP_LATE && context_code(c, step)->problem->op == OP_bind;
}

/* A condition that has to hold is no size. */
static bool is_guard(const context *c, uint32_t step)
{
    const attrs_bind *a = context_code(c, step)->problem->attrs;
    return a->kind == bind_kind_raw && a->flag;
}

/* Can the step be computed, as far as its operator and its operands are concerned? */
static bool is_computable(const context *c, uint32_t step, const uint8_t *is_known)
{
    const engine_step *s = context_step(c, step);
    const engine_code *code = context_code(c, step);
    if (is_bind(c, step)) {
        if (s->in_count != 1 || is_guard(c, step)) return false;
    } else if (s->kind != STEP_KERNEL || code->problem->plugin || op_has(code->problem->op, CHOOSES | VARIES)) {
        return false;
    }
    tactic t;
    memcpy(t.at, s->tactic, sizeof t.at);
    for (uint32_t i = 0; i < s->in_count; i++) {
        const uint32_t v = context_args(c, s->in_at)[i];
        if (!v) continue;
        if (!is_known[storage_of(c, v)] || context_value(c, v)->flags & VALUE_IS_OLD) return false;
        if (code->kernel && code->problem->in[i].is_const && code->kernel->pack_size &&
            code->kernel->pack_size(code->problem, &t, i))
            return false;
    }
    for (uint32_t i = 0; i < s->out_count; i++) {
        const uint32_t v = context_args(c, s->out_at)[i];
        if (v && !is_known[storage_of(c, v)]) return false;
    }
    return true;
}

static void mark_all(const context *c, uint32_t at, uint32_t count, uint8_t to, uint8_t *mark)
{
    for (uint32_t i = 0; i < count; i++)
        if (context_args(c, at)[i]) mark[storage_of(c, context_args(c, at)[i])] = to;
}

static bool is_any(const context *c, uint32_t at, uint32_t count, const uint8_t *mark)
{
    for (uint32_t i = 0; i < count; i++)
        if (context_args(c, at)[i] && mark[storage_of(c, context_args(c, at)[i])]) return true;
    return false;
}

sinter_status context_find_sizes(context *c)
{
    const engine_region *main = &c->g->region[c->p->region_first + 1];
    bool has_bind = false;
    for (uint32_t i = 0; i < main->step_count && !has_bind; i++) has_bind = is_bind(c, main->step_at + i);
    c->size_step = ARENA_NEW(&c->a, uint32_t, has_bind ? main->step_count : 0);
    c->is_size = ARENA_NEW(&c->a, uint8_t, c->g->input_count);
    if (!c->size_step || !c->is_size) return FAIL_MEMORY(&c->e, "a context");
    if (!has_bind) return SINTER_OK;
    const arena_mark mark = arena_save(&c->scratch);
    uint8_t *is_known = ARENA_NEW(&c->scratch, uint8_t, c->p->storage_count),
            *is_wanted = ARENA_NEW(&c->scratch, uint8_t, c->p->storage_count),
            *can = ARENA_NEW(&c->scratch, uint8_t, main->step_count);
    const bool ok = is_known && is_wanted && can;
    for (uint32_t i = 1; ok && i < c->p->storage_count; i++) is_known[i] = is_small(c, i);
    for (uint32_t i = 0; ok && i < main->step_count; i++) {
        const engine_step *s = context_step(c, main->step_at + i);
        can[i] = is_computable(c, main->step_at + i, is_known);
        if (!can[i]) mark_all(c, s->out_at, s->out_count, 0, is_known);
    }
    for (uint32_t i = ok ? main->step_count : 0; i-- > 0;) {
        const engine_step *s = context_step(c, main->step_at + i);
        can[i] = can[i] && (is_bind(c, main->step_at + i) || is_any(c, s->out_at, s->out_count, is_wanted));
        if (can[i]) mark_all(c, s->in_at, s->in_count, 1, is_wanted);
    }
    for (uint32_t i = 0; ok && i < main->step_count; i++)
        if (can[i]) c->size_step[c->size_count++] = main->step_at + i;
    for (uint32_t i = 1; ok && i < c->p->storage_count; i++)
        if (is_wanted[i] && context_storage(c, i)->kind == STORAGE_INPUT) c->is_size[context_storage(c, i)->at] = 1;
    arena_rewind(&c->scratch, mark);
    return ok ? SINTER_OK : FAIL_MEMORY(&c->e, "a context");
}

/* ---- their numbers ---- */

typedef struct sizing {
    context *c;
    int64_t *symbol, *dim_at;
    uint32_t step;
    bool is_bound;
    buffer *at; /* by storage: its bytes, as far as they are known; NULL: they are not */
} sizing;

/* The bytes of the dims that an input has, or those that an output will have; false: not known. */
static bool io_size(const sizing *x, const engine_storage *s, size_t *out)
{
    const engine_io *io = &x->c->g->io[s->at];
    sinter_tensor t = { .dtype = (sinter_dtype)io->dtype, .rank = io->rank };
    for (uint32_t k = 0; k < io->rank; k++) {
        t.dim[k] = s->kind == STORAGE_INPUT ? x->c->input[s->at].dim[k] : x->dim_at[io->dim[k]];
        if (t.dim[k] < 0) return false;
    }
    *out = sinter_tensor_size(&t);
    return *out <= CONST_MOST;
}

/* The storage's bytes to read, or to write the first of. */
static bool open_storage(sizing *x, uint32_t storage, bool writes)
{
    context *c = x->c;
    const engine_storage *s = context_storage(c, storage);
    buffer *b = &x->at[storage];
    if (b->at) return true;
    if (s->kind == STORAGE_WEIGHT && !writes) {
        *b = (buffer){ (void *)(uintptr_t)(c->g->weights + s->at), (size_t)s->bound };
    } else if (s->kind == STORAGE_INPUT && !writes) {
        const bool is_here = c->input[s->at].is_set && c->input[s->at].has_shape &&
                             (!context_has_places(c) || c->input[s->at].place != SINTER_PLACE_DEVICE);
        if (is_here && io_size(x, s, &b->size)) b->at = c->input[s->at].data;
    } else if (writes && (s->kind == STORAGE_SLAB || s->kind == STORAGE_OUTPUT)) {
        b->size = (size_t)s->bound;
        if (s->kind == STORAGE_SLAB || io_size(x, s, &b->size)) b->at = arena_alloc(&c->scratch, b->size + 1, 64);
    }
    return b->at != NULL;
}

/* A value as a view; false: its sizes or its storage's bytes are not known, or the kernel would not take them. */
static bool open_value(sizing *x, uint32_t id, const problem_operand *o, bool writes, view *out)
{
    const engine_value *v = context_value(x->c, id);
    *out = (view){ .dtype = (sinter_dtype)v->dtype, .rank = v->rank };
    int64_t count = 1;
    for (uint32_t k = 0; k < v->rank; k++) {
        out->dim[k] = x->dim_at[v->dim[k]];
        out->stride[k] = x->dim_at[v->stride[k]];
        const bool fits = !o || (out->dim[k] >= o->dim[k].min && out->dim[k] <= o->dim[k].max &&
                                 out->dim[k] % o->dim[k].divisor == 0);
        if (!fits || out->dim[k] < 0 || out->dim[k] > CONST_MOST || (out->dim[k] > 1 && out->stride[k] == INT64_MIN) ||
            !i64_mul(count, out->dim[k], &count))
            return false;
        if (out->dim[k] <= 1) out->stride[k] = 0;
    }
    const int64_t offset = x->dim_at[v->offset];
    if (!open_storage(x, v->storage, writes) || !context_view_fits(out, offset, x->at[v->storage].size)) return false;
    out->data = (uint8_t *)x->at[v->storage].at + (count ? offset * (int64_t)sinter_dtype_bits(out->dtype) / 8 : 0);
    return true;
}

/* The attributes' sizes as they are known; false: one is not. */
static bool resolve(const sizing *x, op_id op, void *attrs)
{
    context *c = x->c;
    const uint32_t *list = context_args(c, context_step(c, x->step)->dim_at);
    bool ok = true, is_own = op == OP_bind; /* the first list of a bind is of the symbols that it binds */
    for (const attr_info *info = op_at(op)->attr; ok && info->name; info++) {
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

static sinter_status take_sizes(ref_call *call, uint32_t i, const int64_t *dim_at, uint32_t count)
{
    sizing *x = call->user;
    const context *c = x->c;
    const uint32_t *list = context_args(c, context_step(c, x->step)->dim_at);
    (void)i;
    for (uint32_t k = 0; k < count; k++) {
        const dim_node *n = &c->g->dim[list[k]];
        if (n->kind == DIM_SYMBOL && x->symbol[n->value] == UNBOUND) x->symbol[n->value] = dim_at[k];
    }
    x->is_bound = true;
    return SINTER_OK;
}

/* An operand where a result is going to be: the reference may write before it has read all. */
static bool set_apart(sizing *x, view *in)
{
    uintptr_t begin, end;
    if (!view_span(in, &begin, &end)) return true;
    uint8_t *copy = arena_alloc(&x->c->scratch, end - begin, 64);
    if (!copy) return false;
    memcpy(copy, (const void *)begin, end - begin);
    in->data = copy + ((uintptr_t)in->data - begin);
    return true;
}

static bool compute(sizing *x)
{
    context *c = x->c;
    const engine_step *s = context_step(c, x->step);
    const problem *p = context_code(c, x->step)->problem;
    const bool binds = is_bind(c, x->step);
    void *attrs = op_attrs_copy(&c->scratch, p->op, p->attrs);
    view *in = ARENA_NEW(&c->scratch, view, s->in_count), *out = ARENA_NEW(&c->scratch, view, s->out_count);
    const uint32_t *in_id = context_args(c, s->in_at), *out_id = context_args(c, s->out_at);
    bool ok = in && out && (attrs || !op_at(p->op)->attrs_size) && resolve(x, p->op, attrs);
    for (uint32_t i = 0; ok && i < s->in_count; i++) {
        if (in_id[i]) ok = open_value(x, in_id[i], binds ? NULL : &p->in[i], false, &in[i]);
        for (uint32_t k = 0; ok && in_id[i] && k < s->out_count; k++)
            if (out_id[k] && storage_of(c, out_id[k]) == storage_of(c, in_id[i])) ok = set_apart(x, &in[i]);
    }
    for (uint32_t i = 0; ok && i < s->out_count && !binds; i++)
        if (out_id[i]) ok = open_value(x, out_id[i], &p->out[i], true, &out[i]);
    data_fault fault = { 0 };
    ref_call call = { .e = &c->e,
                      .op = p->op,
                      .attrs = attrs,
                      .count_in = s->in_count,
                      .count_out = s->out_count,
                      .in = in,
                      .out = out,
                      .program = p->op == OP_pointwise ? p->epilogue : NULL,
                      .in_f32 = true,
                      .scratch = &c->scratch,
                      .fault = &fault,
                      .resize = take_sizes,
                      .user = x };
    if (!ok) return false;
    if (binds) return op_reference(&call) == SINTER_OK;
    const program_step as_step = { .problem = p, .attrs = attrs, .in = in, .out = out };
    if (!context_code(c, x->step)->is_inferred && context_check_follows(c, p, &as_step) != SINTER_OK) return false;
    return problem_reference(p, &call) == SINTER_OK && !fault.is_set;
}

sinter_status context_eval_sizes(context *c, int64_t *symbol, int64_t *dim_at)
{
    if (!c->size_count) return SINTER_OK;
    sizing x = {
        .c = c, .symbol = symbol, .dim_at = dim_at, .at = ARENA_NEW(&c->scratch, buffer, c->p->storage_count)
    };
    uint8_t *is_lost = ARENA_NEW(&c->scratch, uint8_t, c->p->storage_count);
    if (!x.at || !is_lost) return FAIL_MEMORY(&c->e, "a shape");
    sinter_error quiet = { 0 }, *const error = c->e.error;
    c->e.error = &quiet;
    for (uint32_t i = 0; i < c->size_count; i++) {
        x.step = c->size_step[i];
        x.is_bound = false;
        const engine_step *s = context_step(c, x.step);
        const bool ok = !is_any(c, s->in_at, s->in_count, is_lost) && compute(&x);
        if (!ok) mark_all(c, s->out_at, s->out_count, 1, is_lost);
        if (x.is_bound) (void)dim_eval_all(c->g->dim, c->g->dim_count, symbol, c->g->symbol_count, dim_at);
    }
    c->e.error = error;
    return c->scratch.failed ? FAIL_MEMORY(&c->e, "a shape") : SINTER_OK;
}
