/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c - plans as records: only what a step, a region or the interface names is written, in order of first use. */
#include "builder/emit.h"

#include "base/os.h"
#include "core/storage.h"

#include <math.h>
#include <string.h>

/* Up and down to whole numbers. What nothing permits is 0. */
static engine_input whole_numbers(value_range r)
{
    enum { EXACT_BITS = 53 };
    const double most = (double)((int64_t)1 << EXACT_BITS);
    engine_input out = { INT64_MIN, INT64_MAX };
    if (r.min > -most) out.min = (int64_t)ceil(fmin(r.min, most));
    if (r.max < most) out.max = (int64_t)floor(fmax(r.max, -most));
    if (out.min > out.max) out = (engine_input){ 0, 0 };
    return out;
}

/* Nothing is written where nothing is known of any input. */
static void emit_inputs(emit *x, uint32_t count)
{
    bool is_bound = false;
    for (uint32_t i = 0; i < count; i++)
        is_bound = is_bound || isfinite(x->values[i].min) || isfinite(x->values[i].max);
    for (uint32_t i = 0; is_bound && i < count; i++) {
        const engine_input r = whole_numbers(x->values[i]);
        engine_writer_add(&x->w, SECTION_INPUTS, &r, sizeof r);
    }
}

/* ---- shared tables ---- */

sinter_status emit_shared(emit *x)
{
    dim_table *t = x->g->dims;
    const dim no_rows = dim_const(t, 0);
    for (uint32_t i = 0; i < dim_count(t); i++) engine_writer_add(&x->w, SECTION_DIMS, dim_at(t, i), sizeof(dim_node));
    for (uint32_t i = 0; i < dim_symbol_count(t); i++) {
        const dim_symbol *s = dim_symbol_at(t, i);
        const engine_symbol r = { .name = engine_writer_string(&x->w, s->name), .is_late = s->is_late };
        engine_writer_add(&x->w, SECTION_SYMBOLS, &r, sizeof r);
    }
    const ir_region *main = ir_region_at(x->g, IR_MAIN);
    const uint32_t inputs = ir_input_count(x->g), outputs = ir_output_count(x->g);
    for (uint32_t i = 0; i < inputs + outputs; i++) {
        const bool is_input = i < inputs;
        const ir_value *v = ir_value_at(x->g, is_input ? main->param.at[i] : main->result.at[i - inputs]);
        engine_io r = {
            .name = engine_writer_string(&x->w, v->name), .is_input = is_input, .dtype = v->dtype, .rank = v->rank
        };
        for (uint32_t k = 0; k < v->rank; k++) r.dim[k] = v->dim[k];
        for (uint32_t k = 0; is_input && k < x->promise_count; k++) {
            const view *data = &x->promise[k].data;
            if (strcmp(x->promise[k].name, v->name) != 0) continue;
            r.promise_size = ((uint64_t)view_count(data) * sinter_dtype_bits(data->dtype) + 7) / 8;
            r.promise_at = engine_writer_weight(&x->w, data->data, r.promise_size);
        }
        engine_writer_add(&x->w, SECTION_IOS, &r, sizeof r);
    }
    if (x->values) emit_inputs(x, inputs);
    const bool grows = x->g->states.rows != 0;
    const engine_state state = { .append = grows ? x->g->states.append : no_rows,
                                 .capacity = grows ? (uint64_t)x->g->states.capacity : 0 };
    if (x->g->states.count) engine_writer_add(&x->w, SECTION_STATE, &state, sizeof state);
    return engine_writer_status(&x->w);
}

sinter_status emit_ranges(emit *x)
{
    dim_table *t = x->g->dims;
    for (uint32_t i = 0; i < dim_symbol_count(t); i++) {
        const dim_symbol *s = dim_symbol_at(t, i);
        const engine_range r = {
            .min = s->min, .max = s->max, .opt = s->opt, .divisor = s->divisor > 0 ? s->divisor : 1
        };
        engine_writer_add(&x->w, SECTION_RANGES, &r, sizeof r);
    }
    return engine_writer_status(&x->w);
}

static uint32_t add_args(emit *x, const uint32_t *at, uint32_t count)
{
    const uint32_t first = (uint32_t)(x->w.section[SECTION_ARGS].size / sizeof(uint32_t));
    for (uint32_t i = 0; i < count; i++) engine_writer_add(&x->w, SECTION_ARGS, &at[i], sizeof at[i]);
    return first;
}

static uint32_t count_of(const emit *x, section_kind kind, size_t size)
{
    return (uint32_t)(x->w.section[kind].size / size);
}

static uint32_t kernel_id(emit *x, const kernel *k)
{
    const engine_kernel r = { .name = engine_writer_string(&x->w, k->name), .abi = k->abi };
    const engine_kernel *list = (const engine_kernel *)x->w.section[SECTION_KERNELS].at;
    const uint32_t count = count_of(x, SECTION_KERNELS, sizeof r);
    for (uint32_t i = 0; i < count; i++)
        if (list[i].name == r.name) return i + 1;
    return engine_writer_add(&x->w, SECTION_KERNELS, &r, sizeof r) + 1;
}

/* ---- recipes ---- */

enum {
    DATA_MAX = 1 << 16, /* bytes of a constant that is written beside the weight that is made of it */
    DEPTH_MAX = 200     /* nodes that were folded one into the other; emit.missed counts them in 8 bits */
};

static const char *problem_line(emit *x, const problem *p)
{
    text t;
    text_init(&t, x->e);
    problem_print(p, &t);
    const char *line = t.failed ? NULL : arena_text(x->a, t.at, t.length);
    text_deinit(&t);
    return line;
}

/* The problem of a folded node: its op, attributes and programs over constants. */
static const char *folded_line(emit *x, const ir_node *n)
{
    problem p = { .op = n->op,
                  .attrs = n->attrs,
                  .count_in = n->count_in,
                  .count_anchor = n->count_anchor,
                  .count_out = n->count_out,
                  .prologue = n->prologue,
                  .epilogue = n->epilogue };
    p.in = ARENA_NEW(x->a, problem_operand, n->count_in);
    p.out = ARENA_NEW(x->a, problem_operand, n->count_out);
    void *attrs = op_attrs_copy(x->a, n->op, n->attrs);
    if (!p.in || !p.out || (!attrs && op_at(n->op)->attrs_size)) return NULL;
    for (const attr_info *info = op_at(n->op)->attr; info->name; info++) {
        if (info->kind != ATTR_DIMS) continue;
        attr_dims *d = (attr_dims *)((char *)attrs + info->at);
        int64_t *at = ARENA_NEW(x->a, int64_t, d->count);
        for (uint32_t i = 0; at && i < d->count; i++) at[i] = dim_range_of(x->g->dims, (dim)d->at[i]).opt;
        d->at = at;
    }
    p.attrs = attrs;
    for (uint32_t i = 0; i < n->count_in + n->count_out; i++) {
        const ir_value_id id = i < n->count_in ? n->in[i] : n->out[i - n->count_in];
        problem_operand *o = i < n->count_in ? &p.in[i] : &p.out[i - n->count_in];
        if (!id) continue;
        const ir_value *v = ir_value_at(x->g, id);
        o->dtype = v->dtype;
        o->rank = (uint8_t)v->rank;
        o->is_const = i < n->count_in;
        for (uint32_t k = 0; k < v->rank; k++) {
            o->order[k] = (uint8_t)k;
            o->dim[k] = dim_range_of(x->g->dims, v->dim[k]);
        }
    }
    return problem_line(x, &p);
}

static sinter_status recipe_of_value(emit *x, ir_value_id v, uint32_t depth, size_t data_max, uint32_t *out);

/* A recipe names only recipes before itself, so whether those are made of an initializer is known here. */
static uint32_t recipe_add(emit *x, const engine_recipe *r)
{
    const uint32_t *arg = (const uint32_t *)x->w.section[SECTION_ARGS].at;
    bool is_open = r->kind == RECIPE_INITIALIZER;
    for (uint32_t k = 0; k < r->in_count && !is_open; k++) {
        const uint32_t in = arg[r->in_at + k];
        is_open = in && in <= x->is_open.count && x->is_open.at[in - 1];
    }
    bool *slot = VEC_PUSH(x->a, &x->is_open);
    if (slot) *slot = is_open;
    return engine_writer_add(&x->w, SECTION_RECIPES, r, sizeof *r) + 1;
}

/* Is one of these recipes made of an initializer? */
static bool any_open(const emit *x, const uint32_t *recipe, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (recipe[i] && recipe[i] <= x->is_open.count && x->is_open.at[recipe[i] - 1]) return true;
    return false;
}

/* The recipes of a folded node's inputs. What an initializer goes together with is written at any size. */
static sinter_status recipes_of_inputs(emit *x, const ir_node *n, uint32_t depth, size_t data_max, uint32_t *in,
                                       bool *has_all)
{
    *has_all = true;
    for (uint32_t i = 0; i < n->count_in; i++) {
        if (!n->in[i] || in[i]) continue;
        TRY(recipe_of_value(x, n->in[i], depth + 1, data_max, &in[i]));
        *has_all = *has_all && in[i];
    }
    if (*has_all || data_max == SIZE_MAX || !any_open(x, in, n->count_in)) return SINTER_OK;
    return recipes_of_inputs(x, n, depth, SIZE_MAX, in, has_all);
}

/* What a folded node made, if the recipes of all its inputs are known. *out stays 0 where one is not. */
static sinter_status recipe_of_fold(emit *x, ir_value_id v, uint32_t depth, size_t data_max, uint32_t *out)
{
    const ir_value *value = ir_value_at(x->g, v);
    const ir_node *n = ir_node_at(x->g, value->recipe);
    uint32_t *in = ARENA_NEW(x->a, uint32_t, n->count_in);
    if (!in) return FAIL_MEMORY(x->e, "a recipe");
    bool has_all;
    TRY(recipes_of_inputs(x, n, depth, data_max, in, &has_all));
    if (!has_all) return SINTER_OK;
    const char *line = folded_line(x, n);
    if (!line) return FAIL_MEMORY(x->e, "a recipe");
    const engine_recipe r = { .kind = RECIPE_OP,
                              .text = engine_writer_string(&x->w, line),
                              .in_at = add_args(x, in, n->count_in),
                              .in_count = n->count_in,
                              .out = value->producer_out };
    *out = recipe_add(x, &r);
    return SINTER_OK;
}

/* 1 + how a constant was made; 0 where nothing says how: it is larger than data_max, no initializer, and was not made
 * from one. Initializers whose values are written as what was made of them have to stay as they are. */
static sinter_status recipe_of_value(emit *x, ir_value_id v, uint32_t depth, size_t data_max, uint32_t *out)
{
    *out = x->recipe_of[v];
    ir_value *value = ir_value_at(x->g, v);
    uint8_t *missed = &x->missed[data_max == SIZE_MAX][v];
    if (*out || !value->data || (*missed && *missed <= depth + 1)) return SINTER_OK;
    if (x->read && !value->is_released) x->read(x->user, value->data, value->data_size);
    engine_recipe r = { .data = { .size = value->data_size } };
    if (value->recipe && depth < DEPTH_MAX) {
        TRY(recipe_of_fold(x, v, depth, data_max, out));
    } else if (!value->recipe && value->initializer && value->name) {
        r.text = engine_writer_string(&x->w, value->name);
        r.digest = ir_const_digest(value);
        r.is_fixed = value->is_read;
        r.dtype = value->initializer;
        *out = recipe_add(x, &r);
    }
    if (!*out && value->recipe) value->is_read = true;
    if (!*out && !value->is_released && value->data_size <= data_max) {
        r.kind = RECIPE_DATA;
        r.data.at = engine_writer_weight(&x->w, value->data, value->data_size);
        *out = recipe_add(x, &r);
    }
    x->recipe_of[v] = *out;
    if (!*out) *missed = (uint8_t)(depth + 1);
    return x->a->failed ? FAIL_MEMORY(x->e, "a recipe") : engine_writer_status(&x->w);
}

/* The source in a wider type, as the reference converts it. */
static sinter_status recipe_of_wider(emit *x, ir_value_id v, sinter_dtype to, uint32_t *recipe)
{
    const ir_value *value = ir_value_at(x->g, v);
    attrs_typed attrs = { .type = to };
    problem_operand in = { .dtype = value->dtype, .rank = (uint8_t)value->rank, .is_const = true };
    for (uint32_t k = 0; k < value->rank; k++) {
        in.order[k] = (uint8_t)k;
        in.dim[k] = dim_range_of(x->g->dims, value->dim[k]);
    }
    problem_operand out = in;
    out.dtype = to;
    out.is_const = false;
    const problem p = {
        .op = OP_cast, .attrs = &attrs, .count_in = 1, .count_anchor = 1, .count_out = 1, .in = &in, .out = &out
    };
    const char *line = problem_line(x, &p);
    if (!line) return FAIL_MEMORY(x->e, "a recipe");
    const engine_recipe r = {
        .kind = RECIPE_OP, .text = engine_writer_string(&x->w, line), .in_at = add_args(x, recipe, 1), .in_count = 1
    };
    *recipe = recipe_add(x, &r);
    return SINTER_OK;
}

static sinter_status recipe_of_weight(emit *x, const tune_result *t, uint32_t recipe, uint32_t *out)
{
    const weight_recipe *w = &t->recipe.at[recipe];
    TRY(recipe_of_value(x, w->source, 0, DATA_MAX, out));
    if (*out && w->wider) TRY(recipe_of_wider(x, w->source, w->wider, out));
    if (!*out || !w->step) return SINTER_OK;
    const plan_step *s = &t->plan->step.at[w->step];
    const plan_value *v = &t->plan->value.at[w->value];
    uint32_t seen[1 + 2 * SINTER_RANK_MAX] = { v->offset };
    for (uint32_t i = 0; i < v->rank; i++) {
        seen[1 + 2 * i] = v->dim[i];
        seen[2 + 2 * i] = v->stride[i];
    }
    engine_recipe r = { .kind = RECIPE_PACK,
                        .text = engine_writer_string(&x->w, problem_line(x, s->problem)),
                        .in_at = add_args(x, out, 1),
                        .in_count = 1,
                        .out = w->input,
                        .kernel = kernel_id(x, s->kernel),
                        .view_at = add_args(x, seen, 1 + 2 * v->rank) };
    memcpy(r.tactic, s->tactic, sizeof r.tactic);
    *out = recipe_add(x, &r);
    return SINTER_OK;
}

/* Initializers that no weight is made of, but whose values decided something, have recipes too: whoever gives the
 * engine other weights finds out that these must not differ. */
sinter_status emit_decided(emit *x)
{
    uint32_t id;
    TRY(ir_look_back(x->g));
    for (ir_value_id v = 1; v < x->g->value.count; v++) {
        const ir_value *value = ir_value_at(x->g, v);
        if (!value->is_read || !value->data || !value->initializer || value->recipe) continue;
        TRY(recipe_of_value(x, v, 0, DATA_MAX, &id));
        engine_recipe *list = (engine_recipe *)x->w.section[SECTION_RECIPES].at;
        if (id && list[id - 1].kind == RECIPE_INITIALIZER) list[id - 1].is_fixed = true;
    }
    return SINTER_OK;
}

/* ---- a profile ---- */

typedef struct profile {
    emit *x;
    const tune_result *t;
    const plan *p;
    uint32_t *storage, *value; /* plan id -> id in the file, relative; 0: not used so far */
    engine_profile r;
} profile;

/* As it is, or packed now by the kernel that reads it. */
static sinter_status put_weight(profile *f, const plan_storage *s, uint64_t *at)
{
    emit *x = f->x;
    const weight_recipe *w = &f->t->recipe.at[s->recipe];
    const void *source = s->data;
    size_t size = s->bound;
    if (w->step) {
        const plan_step *step = &f->p->step.at[w->step];
        const plan_storage *from = &f->p->storage.at[f->p->value.at[w->value].storage];
        const kernel *k = step->kernel;
        view src;
        uint8_t *room = engine_writer_room(&x->w, size);
        if (!room) return FAIL_MEMORY(x->e, "packed weights");
        if (!tune_const_view(f->p, w->value, &src))
            return FAIL(x->e, INTERNAL, "a weight of unknown shape cannot be packed");
        const uint64_t start = os_time_ns();
        k->pack(step->problem, (const tactic *)step->tactic, w->input, &src, room);
        x->pack_ns += os_time_ns() - start;
        *at = engine_writer_made(&x->w, room, size);
        source = from->data;
        size = from->bound;
    } else {
        *at = engine_writer_weight(&x->w, source, size);
    }
    if (x->read) x->read(x->user, source, size);
    return engine_writer_status(&x->w);
}

static sinter_status use_storage(profile *f, uint32_t id, uint32_t *out)
{
    if (!f->storage[id]) {
        const plan_storage *s = &f->p->storage.at[id];
        engine_storage r = { .kind = s->kind, .size_dim = s->size, .bound = s->bound, .at = s->at, .place = s->place };
        if (s->kind == STORAGE_INPUT || s->kind == STORAGE_OUTPUT) r.at = s->io;
        if (s->kind == STORAGE_WEIGHT) {
            TRY(put_weight(f, s, &r.at));
            TRY(recipe_of_weight(f->x, f->t, s->recipe, &r.recipe));
        }
        engine_writer_add(&f->x->w, SECTION_STORAGES, &r, sizeof r);
        f->storage[id] = f->r.storage_count++;
    }
    *out = f->storage[id];
    return SINTER_OK;
}

static sinter_status use_value(profile *f, uint32_t id, uint32_t *out)
{
    *out = 0;
    if (!id) return SINTER_OK;
    if (!f->value[id]) {
        const plan_value *v = &f->p->value.at[id];
        engine_value r = {
            .name = engine_writer_string(&f->x->w, v->name), .dtype = v->dtype, .rank = v->rank, .offset = v->offset
        };
        r.flags = v->is_old ? VALUE_IS_OLD : 0;
        TRY(use_storage(f, v->storage, &r.storage));
        for (uint32_t i = 0; i < v->rank; i++) {
            r.dim[i] = v->dim[i];
            r.stride[i] = v->stride[i];
        }
        engine_writer_add(&f->x->w, SECTION_VALUES, &r, sizeof r);
        f->value[id] = f->r.value_count++;
    }
    *out = f->value[id];
    return SINTER_OK;
}

static sinter_status use_values(profile *f, const uint32_t *id, uint32_t count, uint32_t *at)
{
    uint32_t *list = ARENA_NEW(f->x->a, uint32_t, count);
    if (!list) return FAIL_MEMORY(f->x->e, "an engine");
    for (uint32_t i = 0; i < count; i++) TRY(use_value(f, id[i], &list[i]));
    *at = add_args(f->x, list, count);
    return SINTER_OK;
}

static sinter_status emit_step(profile *f, const plan_step *s)
{
    const char *why = problem_check_sizes(s->problem), *line = problem_line(f->x, s->problem);
    if (why) return FAIL(f->x->e, UNSUPPORTED, "'%s': %s", s->name ? s->name : "", why);
    if (!line) return FAIL_MEMORY(f->x->e, "an engine");
    engine_step r = { .kind = s->kind,
                      .kernel = s->kind < STEP_IF ? kernel_id(f->x, s->kernel) : 0,
                      .problem = engine_writer_string(&f->x->w, line),
                      .name = engine_writer_string(&f->x->w, s->name),
                      .in_count = s->count_in,
                      .out_count = s->count_out,
                      .dim_count = s->count_dim,
                      .region = { s->region[0], s->region[1] } };
    memcpy(r.tactic, s->tactic, sizeof r.tactic);
    TRY(use_values(f, s->in, s->count_in, &r.in_at));
    TRY(use_values(f, s->out, s->count_out, &r.out_at));
    r.dim_at = add_args(f->x, s->dim_at, s->count_dim);
    engine_writer_add(&f->x->w, SECTION_STEPS, &r, sizeof r);
    f->r.step_count++;
    return SINTER_OK;
}

sinter_status emit_profile(emit *x, const tune_result *t)
{
    const plan *p = t->plan;
    profile f = { .x = x, .t = t, .p = p };
    f.storage = ARENA_NEW(x->a, uint32_t, p->storage.count);
    f.value = ARENA_NEW(x->a, uint32_t, p->value.count);
    if (!f.storage || !f.value) return FAIL_MEMORY(x->e, "an engine");
    f.r = (engine_profile){ .storage_first = count_of(x, SECTION_STORAGES, sizeof(engine_storage)),
                            .storage_count = 1,
                            .value_first = count_of(x, SECTION_VALUES, sizeof(engine_value)),
                            .value_count = 1,
                            .region_first = count_of(x, SECTION_REGIONS, sizeof(engine_region)),
                            .region_count = p->region.count,
                            .step_first = count_of(x, SECTION_STEPS, sizeof(engine_step)),
                            .order = t->order,
                            .slab_size = p->slab_size[PLACE_DEVICE],
                            .host_slab_size = p->slab_size[PLACE_HOST] };
    const engine_storage no_storage = { 0 };
    const engine_value no_value = { 0 };
    const engine_region no_region = { 0 };
    engine_writer_add(&x->w, SECTION_STORAGES, &no_storage, sizeof no_storage);
    engine_writer_add(&x->w, SECTION_VALUES, &no_value, sizeof no_value);
    engine_writer_add(&x->w, SECTION_REGIONS, &no_region, sizeof no_region);
    TRY(use_values(&f, p->io, p->count_io, &f.r.io_first));
    for (uint32_t i = 1; i < p->region.count; i++) {
        const plan_region *from = &p->region.at[i];
        engine_region r = { .step_at = f.r.step_count,
                            .step_count = from->step.count,
                            .param_count = i == 1 ? 0 : from->count_param,
                            .result_count = i == 1 ? 0 : from->count_result };
        for (uint32_t k = 0; k < from->step.count; k++) TRY(emit_step(&f, &p->step.at[from->step.at[k]]));
        TRY(use_values(&f, from->param, r.param_count, &r.param_at));
        TRY(use_values(&f, from->result, r.result_count, &r.result_at));
        engine_writer_add(&x->w, SECTION_REGIONS, &r, sizeof r);
    }
    engine_writer_add(&x->w, SECTION_PROFILES, &f.r, sizeof f.r);
    return x->a->failed ? FAIL_MEMORY(x->e, "an engine") : engine_writer_status(&x->w);
}

void emit_order(emit *x, uint32_t index, program_order order)
{
    ((engine_profile *)(void *)x->w.section[SECTION_PROFILES].at)[index].order = order;
}

sinter_status emit_notes(emit *x, const engine_notes *notes, const engine_detail_record *detail)
{
    engine_writer_add(&x->w, SECTION_NOTES, notes, sizeof *notes);
    if (detail) engine_writer_add(&x->w, SECTION_DETAIL, detail, sizeof *detail);
    return engine_writer_status(&x->w);
}

/* Looks at what was built as loading will, under the same limits. What is wrong with it otherwise is our own mistake.
 */
sinter_status emit_check(env *e, const backend *k, device *d, const uint8_t *bytes, size_t size, bool is_mapped)
{
    kernel_target target;
    k->target(d, &target);
    sinter_status s = engine_check(e, bytes, size, is_mapped, k, &target);
    if (s == SINTER_INVALID_MODEL) s = e->error->status = SINTER_INTERNAL;
    return NOTE(e, s, "checking the engine that was built");
}
