/* SPDX-License-Identifier: Apache-2.0 */
/* shape_cache.c - the shapes that a context has seen: all that follows from the inputs' dims, evaluated and bound once.
 *
 * The least recently used goes first. A shape that is kept costs a comparison, and the addresses of what may have moved
 * since. */
#include "run/context.h"

#include <string.h>

/* What the inputs' dims say of the symbols. */
static sinter_status read_symbols(context *c, int64_t *symbol, bool all)
{
    for (uint32_t i = 0; i < c->g->symbol_count; i++) symbol[i] = UNBOUND;
    for (uint32_t i = 0; i < c->g->input_count; i++) {
        const engine_io *io = &c->g->io[i];
        for (uint32_t k = 0; k < io->rank && (all || c->input[i].has_shape); k++) {
            const dim_node *d = &c->g->dim[io->dim[k]];
            if (d->kind != DIM_SYMBOL || symbol[d->value] != UNBOUND) continue;
            const engine_range *r = &c->g->range[(size_t)c->profile * c->g->symbol_count + (size_t)d->value];
            const int64_t x = c->input[i].dim[k];
            if (x < r->min || x > r->max || x % r->divisor)
                return FAIL(&c->e, INVALID_ARG, "axis %u of input '%s' is %lld, profile %u permits %lld to %lld", k,
                            engine_text(c->g, io->name), (long long)x, c->profile, (long long)r->min,
                            (long long)r->max);
            symbol[d->value] = x;
        }
    }
    return SINTER_OK;
}

/* Sizes that are no symbols of their own must agree. */
static sinter_status check_inputs(context *c, const int64_t *dim_at, bool all)
{
    for (uint32_t i = 0; i < c->g->input_count; i++) {
        const engine_io *io = &c->g->io[i];
        for (uint32_t k = 0; k < io->rank && (all || c->input[i].has_shape); k++) {
            const int64_t wanted = dim_at[io->dim[k]];
            if (wanted == c->input[i].dim[k] || (!all && wanted == UNBOUND)) continue;
            return FAIL(&c->e, INVALID_ARG, "axis %u of input '%s' is %lld, expected %lld", k,
                        engine_text(c->g, io->name), (long long)c->input[i].dim[k], (long long)wanted);
        }
    }
    return SINTER_OK;
}

sinter_status context_eval_inputs(context *c, int64_t *symbol, int64_t *dim_at, bool all)
{
    TRY(read_symbols(c, symbol, all));
    (void)dim_eval_all(c->g->dim, c->g->dim_count, symbol, c->g->symbol_count, dim_at);
    return check_inputs(c, dim_at, all);
}

static sinter_status bind_inputs(context *c)
{
    TRY(read_symbols(c, c->now->symbol, true));
    context_evaluate_all(c);
    return check_inputs(c, c->now->dim, true);
}

/* A step's arrays, so that preparing it, also again and again, allocates nothing. */
static sinter_status make_step(context *c, shape *s, uint32_t step)
{
    const engine_step *from = context_step(c, step);
    const engine_code *code = context_code(c, step);
    program_step *to = &s->step[step];
    *to = (program_step){ .kernel = code->kernel,
                          .problem = code->problem,
                          .count_in = from->in_count,
                          .count_out = from->out_count,
                          .index = step };
    tactic *t = ARENA_NEW(&s->a, tactic, 1);
    to->in = ARENA_NEW(&s->a, view, from->in_count);
    to->out = ARENA_NEW(&s->a, view, from->out_count);
    to->in_id = context_args(c, from->in_at);
    to->out_id = context_args(c, from->out_at);
    void *attrs = op_attrs_copy(&s->a, code->problem->op, code->problem->attrs);
    if (!t || !to->in || !to->out || (!attrs && op_at(code->problem->op)->attrs_size))
        return FAIL_MEMORY(&c->e, "a step");
    memcpy(t->at, from->tactic, sizeof t->at);
    to->tactic = t;
    for (const attr_info *info = op_at(code->problem->op)->attr; info->name; info++) {
        if (info->kind != ATTR_DIMS) continue;
        attr_dims *d = (attr_dims *)((char *)attrs + info->at);
        d->at = ARENA_NEW(&s->a, int64_t, d->count);
        if (!d->at) return FAIL_MEMORY(&c->e, "a step");
    }
    to->attrs = attrs;
    if (from->kind != STEP_KERNEL || !context_has_places(c) || code->kernel->where != KERNEL_ON_HOST) return SINTER_OK;
    s->record[step] = arena_alloc(&s->a, kernel_record_size(code->kernel, code->problem, t), 64);
    return s->record[step] ? SINTER_OK : FAIL_MEMORY(&c->e, "a step");
}

static void drop_shape(context *c, shape *s)
{
    for (uint32_t i = 0; s->program && i < c->program_count; i++)
        if (s->program[i]) c->g->backend->program_destroy(&c->e, c->g->device, s->program[i]);
    arena_deinit(&s->a);
    *s = (shape){ 0 };
}

void context_drop_shapes(context *c)
{
    for (uint32_t i = 0; i < SHAPES_KEPT; i++) drop_shape(c, &c->kept[i]);
    c->now = NULL;
}

/* A branch that will not be taken may have shapes that make no sense. What is wrong there is said when it is run. */
static sinter_error *hush(context *c, bool is_quiet, sinter_error *quiet)
{
    sinter_error *error = c->e.error;
    if (is_quiet) c->e.error = quiet;
    return error;
}

static sinter_status unhush(context *c, sinter_status s, bool was_quiet, sinter_error *error)
{
    if (!was_quiet) return s;
    if (s == SINTER_INVALID_MODEL) s = SINTER_OK;
    if (s != SINTER_OK) *error = *c->e.error;
    c->e.error = error;
    return s;
}

/* The values whose sizes the inputs decide: all, or those whose storage may have moved. */
static sinter_status prepare_values(context *c, bool only_moving)
{
    const uint32_t count = only_moving ? c->moving_count : c->p->value_count - 1;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t v = only_moving ? c->moving[i] : i + 1;
        if (context_is_late_value(c, v)) continue;
        sinter_error quiet = { 0 };
        sinter_error *const error = hush(c, true, &quiet);
        const bool was_bounded = c->now->is_bounded[v];
        c->now->is_bounded[v] = 0;
        TRY(unhush(c, context_prepare_value(c, v), true, error));
        /* Who was bound to it looks again, and says so. */
        if (was_bounded && !c->now->is_bounded[v]) memset(c->now->is_bound, 0, c->p->step_count);
    }
    return SINTER_OK;
}

/* Can the program be bound while its last launch may still run? Functions of plugins may look at their records then. */
static bool may_rebind(const context *c, const run_item *item)
{
    return item->is_late && (c->g->backend->traits & BACKEND_REBINDS) &&
           context_code(c, item->first)->kernel->where == KERNEL_ON_DEVICE;
}

sinter_status context_bind_item(context *c, const run_item *item)
{
    shape *s = c->now;
    for (uint32_t i = item->first; i < item->first + item->count; i++)
        TRY(NOTE(&c->e, context_prepare_step(c, i), "preparing step '%s'",
                 engine_text(c->g, context_step(c, i)->name)));
    for (uint32_t i = item->first; i < item->first + item->count && item->kind != ITEM_PROGRAM; i++) {
        const program_step *x = &s->step[i];
        if (item->kind == ITEM_HOST && program_step_has_results(x))
            TRY(NOTE(&c->e, x->kernel->bind(&c->e, x->problem, x->tactic, x->attrs, x->in, x->out, s->record[i]),
                     "binding kernel '%s'", x->kernel->name));
    }
    if (item->kind == ITEM_PROGRAM) {
        if (s->program[item->program] && !may_rebind(c, item)) TRY(context_settle(c));
        TRY(c->g->backend->program_create(&c->e, c->g->device, &s->step[item->first], item->count, item->is_late,
                                          s->program[item->program], &s->program[item->program]));
    }
    s->is_bound[item->first] = 1;
    c->binds++;
    return SINTER_OK;
}

static sinter_status make_shape(context *c, shape *s, const int64_t *key, size_t key_count)
{
    arena_init(&s->a, &c->e);
    s->key = ARENA_NEW(&s->a, int64_t, key_count);
    s->symbol = ARENA_NEW(&s->a, int64_t, c->g->symbol_count);
    s->dim = ARENA_NEW(&s->a, int64_t, c->g->dim_count);
    s->value = ARENA_NEW(&s->a, view, c->p->value_count);
    s->is_bounded = ARENA_NEW(&s->a, uint8_t, c->p->value_count);
    s->step = ARENA_NEW(&s->a, program_step, c->p->step_count);
    s->program = ARENA_NEW(&s->a, program *, c->program_count);
    s->record = ARENA_NEW(&s->a, void *, c->p->step_count);
    s->is_bound = ARENA_NEW(&s->a, uint8_t, c->p->step_count);
    if (!s->key || !s->symbol || !s->dim || !s->value || !s->is_bounded || !s->step || !s->program || !s->record ||
        !s->is_bound)
        return FAIL_MEMORY(&c->e, "a shape");
    memcpy(s->key, key, key_count * sizeof *key);
    TRY(bind_inputs(c));
    TRY(NOTE(&c->e, engine_check_shape(&c->e, c->g, c->profile, &c->scratch, s->symbol), "checking a shape"));
    TRY(context_lay_out(c, s));
    for (uint32_t i = 0; i < c->p->step_count; i++) TRY(make_step(c, s, i));
    TRY(prepare_values(c, false));
    for (uint32_t r = 1; r < c->p->region_count; r++)
        for (uint32_t i = 0; i < c->region[r].count; i++) {
            const run_item *item = &c->region[r].item[i];
            if (item->kind >= ITEM_LATE || item->is_late) continue;
            sinter_error quiet = { 0 };
            sinter_error *const error = hush(c, r > 1, &quiet);
            TRY(unhush(c, context_bind_item(c, item), r > 1, error));
        }
    return SINTER_OK;
}

/* What the last run found out is forgotten: a size that is needed before its step has told it is an error, not an old
 * number. */
static void forget_late(context *c)
{
    bool any = false;
    for (uint32_t i = 0; i < c->g->symbol_count; i++) {
        if (!c->g->symbol[i].is_late || c->now->symbol[i] == UNBOUND) continue;
        c->now->symbol[i] = UNBOUND;
        any = true;
    }
    if (any) context_evaluate_all(c);
}

/* Bases of inputs, outputs and grown buffers may have changed since the shape was last used. */
static sinter_status refresh(context *c)
{
    forget_late(c);
    TRY(context_place_inputs(c));
    return prepare_values(c, true);
}

sinter_status context_set_shape(context *c)
{
    const size_t key_count = (size_t)c->g->input_count * SINTER_RANK_MAX;
    const arena_mark mark = arena_save(&c->scratch);
    int64_t *key = ARENA_NEW(&c->scratch, int64_t, key_count);
    if (!key) return FAIL_MEMORY(&c->e, "a shape");
    for (uint32_t i = 0; i < c->g->input_count; i++)
        for (uint32_t k = 0; k < c->g->io[i].rank; k++) key[i * SINTER_RANK_MAX + k] = c->input[i].dim[k];
    shape *oldest = &c->kept[0], *found = NULL;
    for (uint32_t i = 0; i < SHAPES_KEPT; i++) {
        shape *s = &c->kept[i];
        if (s->used && memcmp(s->key, key, key_count * sizeof *key) == 0) found = s;
        if (s->used < oldest->used) oldest = s;
    }
    sinter_status s = found ? context_lay_out(c, found) : SINTER_OK;
    if (s == SINTER_OK && found && found != c->now)
        for (uint32_t i = 1; i < c->p->value_count; i++) c->address[i] = found->value[i].data;
    if (!found) {
        drop_shape(c, oldest);
        c->now = found = oldest;
        s = context_place_inputs(c);
        if (s == SINTER_OK) s = make_shape(c, found, key, key_count);
        if (s != SINTER_OK) {
            drop_shape(c, found);
            c->now = NULL;
        }
    }
    arena_rewind(&c->scratch, mark);
    TRY(s);
    c->now = found;
    found->used = ++c->tick;
    return refresh(c);
}
