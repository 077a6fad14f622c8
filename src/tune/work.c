/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - one node becomes steps: which layouts (work_trial.c), which cut of the group (work_cut.c), which kernel. A
 * group that no fast kernel takes is cut. */
#include "tune/work.h"

#include <string.h>

storage_place lower_place(const lowering *l, uint32_t value)
{
    return value ? l->p->storage.at[l->p->value.at[value].storage].place : PLACE_DEVICE;
}

bool lower_is_const(const lowering *l, uint32_t value)
{
    return value && l->p->storage.at[l->p->value.at[value].storage].kind == STORAGE_WEIGHT;
}

static bool is_identity(uint32_t rank, const uint8_t *order)
{
    for (uint32_t i = 0; i < rank; i++)
        if (order[i] != i) return false;
    return true;
}

/* ---- steps ---- */

const dim *work_dims(lowering *l, const work *w, uint32_t *count)
{
    *count = 0;
    const attr_info *infos = op_at(w->op)->attr;
    for (const attr_info *info = infos; info->name; info++)
        if (info->kind == ATTR_DIMS) *count += ((const attr_dims *)((const char *)w->attrs + info->at))->count;
    dim *list = ARENA_NEW(l->a, dim, *count);
    uint32_t at = 0;
    for (const attr_info *info = infos; list && info->name; info++) {
        if (info->kind != ATTR_DIMS) continue;
        const attr_dims *d = (const attr_dims *)((const char *)w->attrs + info->at);
        for (uint32_t i = 0; i < d->count; i++) list[at++] = (dim)d->at[i];
    }
    return list;
}

bool tune_const_view(const plan *p, uint32_t value, view *out)
{
    const plan_value *v = &p->value.at[value];
    const uint32_t bits = sinter_dtype_bits(v->dtype);
    int64_t offset = 0;
    bool is_known = dim_is_const(p->dims, v->offset, &offset) && offset * bits % 8 == 0;
    *out = (view){ .dtype = v->dtype, .rank = v->rank };
    for (uint32_t k = 0; k < v->rank; k++)
        is_known = is_known && dim_is_const(p->dims, v->dim[k], &out->dim[k]) &&
                   dim_is_const(p->dims, v->stride[k], &out->stride[k]);
    const char *data = p->storage.at[v->storage].data;
    out->data = (void *)(uintptr_t)(data + offset * bits / 8);
    return is_known;
}

/* Makes a separate weight of the constant in the kernel's packed form. It is packed when the engine is written. */
static sinter_status pack_weight(lowering *l, const work_trial *t, const choice *c, uint32_t i, uint32_t *value)
{
    const size_t size = c->kernel->pack_size ? c->kernel->pack_size(t->p, &c->tactic, i) : 0;
    if (!size) return SINTER_OK;
    const plan_value v = l->p->value.at[*value];
    const weight_recipe source = l->out->recipe.at[l->p->storage.at[v.storage].recipe];
    view src;
    if (dim_table_failed(l->p->dims)) return FAIL_MEMORY(l->e, "a plan");
    if (!tune_const_view(l->p, *value, &src)) return FAIL(l->e, INTERNAL, "a weight of unknown shape cannot be packed");
    const uint32_t storage = plan_storage_new(l->p, STORAGE_WEIGHT, dim_const(l->p->dims, (int64_t)size));
    weight_recipe *recipe = VEC_PUSH(l->a, &l->out->recipe);
    const uint8_t *stand_in = ARENA_NEW(l->a, uint8_t, 1); /* weights are told apart by their data */
    plan_value *slot = storage && recipe && stand_in ? VEC_PUSH(l->a, &l->p->value) : NULL;
    if (!slot) return FAIL_MEMORY(l->e, "packed weights");
    *recipe = (weight_recipe){
        .source = source.source, .wider = source.wider, .step = l->p->step.count, .input = i, .value = *value
    };
    l->p->storage.at[storage].data = stand_in;
    l->p->storage.at[storage].recipe = l->out->recipe.count - 1;
    *slot = v;
    slot->storage = storage;
    slot->offset = dim_const(l->p->dims, 0);
    /* Seen densely: what lies there is the kernel's own, only dims and type still mean something. */
    dim run = dim_const(l->p->dims, 1);
    for (uint32_t k = v.rank; k-- > 0;) {
        slot->stride[k] = run;
        run = dim_mul(l->p->dims, run, v.dim[k]);
    }
    *value = l->p->value.count - 1;
    return SINTER_OK;
}

uint32_t work_output_new(lowering *l, const work_out *out, const uint8_t *order, storage_place place)
{
    const bool direct = out->io && is_identity(out->rank, order);
    const uint32_t v = plan_value_dense(l->p, direct ? STORAGE_OUTPUT : STORAGE_SLAB, out->name, out->dtype, out->rank,
                                        out->dim, order);
    if (!v) return 0;
    plan_storage *s = &l->p->storage.at[l->p->value.at[v].storage];
    s->place = place;
    if (direct) s->io = out->io - 1;
    return v;
}

/* Where the operands of a step lie. */
static storage_place place_of(const lowering *l, const kernel *k, step_kind kind)
{
    const bool is_host = kind != STEP_KERNEL || k->where == KERNEL_ON_HOST;
    return l->o->backend->copy && is_host ? PLACE_HOST : PLACE_DEVICE;
}

static sinter_status emit(lowering *l, const work *w, const work_trial *t, const choice *c, step_kind kind,
                          uint32_t *value)
{
    uint32_t *in = ARENA_NEW(l->a, uint32_t, w->count_in), *out = ARENA_NEW(l->a, uint32_t, w->count_out);
    if (!in || !out) return FAIL_MEMORY(l->e, "a step");
    const storage_place place = place_of(l, c->kernel, kind);
    for (uint32_t i = 0; i < w->count_in; i++) {
        in[i] = w->in[i];
        if (lower_place(l, in[i]) != place && in[i])
            return FAIL(l->e, INTERNAL, "an operand of '%s' lies in the other place", w->name);
        if (i < COUNT_OF(t->convert) && t->convert[i])
            TRY(work_copy(l, w->in[i], t->p->in[i].order, false, 0, w->name, &in[i]));
    }
    /* The step is the next one now. */
    for (uint32_t i = 0; i < w->count_in; i++)
        if (t->p->in[i].is_const) TRY(pack_weight(l, t, c, i, &in[i]));
    for (uint32_t i = 0; i < w->count_out; i++) {
        if (!value[i]) value[i] = work_output_new(l, &w->out[i], t->p->out[i].order, place);
        if (!value[i]) return FAIL_MEMORY(l->e, "a value");
        out[i] = value[i];
    }
    plan_step s = { .kind = kind,
                    .kernel = c->kernel,
                    .problem = t->p,
                    .count_in = w->count_in,
                    .count_out = w->count_out,
                    .in = in,
                    .out = out,
                    .name = w->name };
    s.in_place_from = !c->kernel->is_in_place                        ? UINT32_MAX
                      : w->op == OP_pointwise || op_is_scalar(w->op) ? 0
                                                                     : w->count_anchor;
    memcpy(s.tactic, c->tactic.at, sizeof s.tactic);
    s.dim_at = work_dims(l, w, &s.count_dim);
    if (!s.dim_at || !lower_step_new(l, &s)) return FAIL_MEMORY(l->e, "a step");
    return SINTER_OK;
}

sinter_status work_in_place(lowering *l, const work *w, storage_place place, work *out)
{
    *out = *w;
    out->in = ARENA_NEW(l->a, uint32_t, w->count_in);
    if (!out->in) return FAIL_MEMORY(l->e, "a node's inputs");
    for (uint32_t i = 0; i < w->count_in; i++) TRY(work_place(l, w->in[i], place, w->name, &out->in[i]));
    return SINTER_OK;
}

static const kernel *reference_kernel(const lowering *l)
{
    uint32_t kernels = 0;
    const kernel *const *list = l->o->backend->kernels(&kernels);
    return list[kernels - 1];
}

sinter_status work_reference(lowering *l, const work *w, step_kind kind, uint32_t *value)
{
    const bool is_fixed = kind != STEP_KERNEL || l->o->reference_only || op_at(w->op)->traits & HOST;
    const choice c = { .kernel = reference_kernel(l) };
    work placed;
    work_trial t;
    TRY(work_in_place(l, w, place_of(l, c.kernel, kind), &placed));
    TRY(work_trial_make(l, &placed, is_fixed ? MODE_ROW : MODE_FIRST, false, &t));
    const char *why = c.kernel->reject(t.p, NULL);
    if (why)
        return FAIL(l->e, UNSUPPORTED, "'%s' cannot run on the backend '%s': %s", w->name, l->o->backend->name, why);
    return emit(l, &placed, &t, &c, kind, value);
}

sinter_status work_problem(lowering *l, const work *w, const problem **out)
{
    work_trial t;
    TRY(work_trial_make(l, w, MODE_ROW, false, &t));
    *out = t.p;
    return SINTER_OK;
}

sinter_status work_update(lowering *l, const work *w, uint32_t *value)
{
    choice c = { .kernel = reference_kernel(l) };
    work placed;
    work_trial t;
    TRY(work_in_place(l, w, PLACE_DEVICE, &placed));
    void *attrs = op_attrs_copy(l->a, w->op, w->attrs);
    if (!attrs) return FAIL_MEMORY(l->e, "attributes");
    if (w->op == OP_tensor_scatter) ((attrs_tensor_scatter *)attrs)->in_place = 1;
    placed.attrs = attrs;
    bool is_found = false;
    for (uint32_t convert = 0; convert < 2 && !is_found; convert++) {
        TRY(work_trial_make(l, &placed, w->out[0].has_wish && !convert ? MODE_WISH : MODE_ROW, convert, &t));
        /* An updated result has the layout of the input that it updates. */
        for (uint32_t i = 0; i < w->count_out; i++)
            if (op_updates(w->op, i)) memcpy(t.p->out[i].order, t.p->in[i].order, sizeof t.p->in[i].order);
        if (!l->o->reference_only) TRY(tune_choose(l->e, t.p, l->o, &c));
        is_found = place_of(l, c.kernel, STEP_KERNEL) == PLACE_DEVICE && c.kernel->updates_in_place;
    }
    if (!is_found)
        return FAIL(l->e, UNSUPPORTED, "no kernel of the device updates %s in place",
                    sinter_dtype_name(w->out[0].dtype));
    for (uint32_t i = 0; i < w->count_out; i++) {
        if (!op_updates(w->op, i)) continue;
        plan_value *slot = VEC_PUSH(l->a, &l->p->value);
        if (!slot) return FAIL_MEMORY(l->e, "a state");
        *slot = l->p->value.at[placed.in[i]];
        slot->name = w->out[i].name;
        slot->is_old = false;
        value[i] = l->p->value.count - 1;
    }
    return emit(l, &placed, &t, &c, STEP_KERNEL, value);
}

/* ---- copies ---- */

/* One step that copies the inputs of `w`, a copy or a concatenation, into `target`. *is_done false: no kernel of the
 * device does that, and nothing changed. */
static sinter_status copy_step(lowering *l, work *w, uint32_t target, bool *is_done)
{
    const plan_value *d = &l->p->value.at[target];
    const storage_place place = lower_place(l, w->in[0]);
    work_out out = { .dtype = d->dtype, .rank = d->rank };
    memcpy(out.dim, d->dim, sizeof out.dim);
    w->count_anchor = w->count_in;
    w->count_out = 1;
    w->out = &out;
    work_trial t;
    TRY(work_trial_make(l, w, MODE_ROW, false, &t));
    work_label(l, d, &t.p->out[0]);
    for (uint32_t i = 0; i < w->count_in; i++) {
        const plan_value *v = &l->p->value.at[w->in[i]];
        work_label(l, v, &t.p->in[i]);
        if (!work_lies_dense(l, v, t.p->out[0].order)) continue;
        memcpy(t.p->in[i].order, t.p->out[0].order, sizeof t.p->in[i].order);
        t.p->in[i].is_strided = t.p->in[i].is_gapped = false;
    }
    choice c = { .kernel = reference_kernel(l) };
    if (place == PLACE_DEVICE) tune_estimate(t.p, l->o, false, &c);
    *is_done = place_of(l, c.kernel, STEP_KERNEL) == place;
    return *is_done ? emit(l, w, &t, &c, STEP_KERNEL, &target) : SINTER_OK;
}

sinter_status work_copy_into(lowering *l, uint32_t value, uint32_t target, const char *name)
{
    bool is_done;
    work w = { .op = OP_copy, .attrs = op_attrs_new(l->a, OP_copy), .count_in = 1, .in = &value, .name = name };
    if (!w.attrs) return FAIL_MEMORY(l->e, "a copy");
    TRY(copy_step(l, &w, target, &is_done));
    if (is_done) return SINTER_OK;
    return FAIL(l->e, UNSUPPORTED, "no kernel of the device copies %s", sinter_dtype_name(l->p->value.at[value].dtype));
}

sinter_status work_join_into(lowering *l, uint32_t count, uint32_t *value, int64_t axis, uint32_t target,
                             const char *name, bool *is_done)
{
    attrs_concat *attrs = op_attrs_new(l->a, OP_concat);
    if (!attrs) return FAIL_MEMORY(l->e, "a concatenation");
    attrs->axis = axis;
    work w = { .op = OP_concat, .attrs = attrs, .count_in = count, .in = value, .name = name };
    return copy_step(l, &w, target, is_done);
}

sinter_status work_copy(lowering *l, uint32_t value, const uint8_t *order, bool fresh, uint32_t io, const char *name,
                        uint32_t *out)
{
    const plan_value v = l->p->value.at[value];
    uint8_t row[SINTER_RANK_MAX];
    if (!order) {
        work_order_plain(v.rank, row);
        order = row;
    }
    if (!fresh && work_lies_dense(l, &v, order)) return *out = value, SINTER_OK;
    if (!lower_facts(l)) return FAIL_MEMORY(l->e, "a copy");
    for (uint32_t i = fresh ? 0 : l->value.at[value].converted; i; i = l->converted.at[i - 1].before) {
        /* It may have become a part of a concatenation since. */
        const uint32_t made = lower_current(l, l->converted.at[i - 1].result);
        if (memcmp(l->converted.at[i - 1].order, order, v.rank) == 0 &&
            work_lies_dense(l, &l->p->value.at[made], order))
            return *out = made, SINTER_OK;
    }
    const uint32_t made =
        plan_value_dense(l->p, io ? STORAGE_OUTPUT : STORAGE_SLAB, v.name, v.dtype, v.rank, v.dim, order);
    if (!made) return FAIL_MEMORY(l->e, "a copy");
    plan_storage *storage = &l->p->storage.at[l->p->value.at[made].storage];
    storage->place = lower_place(l, value);
    if (io) storage->io = io - 1;
    TRY(work_copy_into(l, value, made, name));
    *out = made;
    if (fresh) return SINTER_OK;
    conversion *c = VEC_PUSH(l->a, &l->converted);
    if (!c) return FAIL_MEMORY(l->e, "a copy");
    *c = (conversion){ .value = value, .result = made, .before = l->value.at[value].converted };
    memcpy(c->order, order, v.rank);
    l->value.at[value].converted = l->converted.count;
    return SINTER_OK;
}

/* Do both orders name the axes of more than one element in the same sequence? */
static bool is_same_order(lowering *l, const plan_value *v, const uint8_t *a, const uint8_t *b)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < v->rank; i++) {
        if (view_dim_is_unit(l->p->dims, v->dim[a[i]])) continue;
        while (view_dim_is_unit(l->p->dims, v->dim[b[k]])) k++;
        if (a[i] != b[k++]) return false;
    }
    return true;
}

/* Finds the value that its step writes: `value` itself, or the value that `value` is a reshape of; as: `target` in that
 * value's shape. 0: other views share the storage. */
static uint32_t written_as(lowering *l, uint32_t value, uint32_t target, plan_value *as)
{
    const plan_value *v = &l->p->value.at[value];
    const storage_facts *s = &l->storage.at[v->storage];
    *as = l->p->value.at[target];
    if (s->views == 1) return value;
    const plan_value *w = &l->p->value.at[s->first];
    dim_table *t = l->p->dims;
    if (s->views != 2 || s->first == value || w->offset != v->offset || !view_dims_dense_in(t, w, NULL) ||
        !view_dims_dense_in(t, v, NULL) || dim_product(t, w->dim, w->rank) != dim_product(t, v->dim, v->rank))
        return 0;
    const plan_value whole = *as;
    return view_dims_reshape(t, &whole, w->rank, w->dim, as) ? s->first : 0;
}

bool work_redirect(lowering *l, uint32_t value, uint32_t target)
{
    kernel_target machine;
    l->o->backend->target(l->o->device, &machine);
    const uint32_t storage = l->p->value.at[value].storage;
    if (l->p->storage.at[storage].kind != STORAGE_SLAB || !lower_facts(l)) return false;
    if (l->storage.at[storage].reads) return false; /* somebody reads it as it is */
    plan_value as;
    const uint32_t written = written_as(l, value, target, &as);
    const value_facts *known = &l->value.at[written];
    plan_step *writer = written && known->region == l->region && known->writer ? &l->p->step.at[known->writer] : NULL;
    if (!writer || writer->kind != STEP_KERNEL || writer->count_out != 1 || writer->out[0] != written) return false;
    const kernel *k = writer->kernel;
    if (k->out_strides == STRIDES_NONE) return false;
    problem *p = ARENA_NEW(l->a, problem, 1);
    problem_operand *out = ARENA_NEW(l->a, problem_operand, 1);
    uint32_t *id = ARENA_NEW(l->a, uint32_t, 1);
    if (!p || !out || !id) return false;
    *p = *(const problem *)writer->problem;
    *out = p->out[0];
    p->out = out;
    const plan_value *d = &as;
    problem_operand as_is = *out;
    work_label(l, d, &as_is);
    const uint8_t *order = as_is.order;
    if (as_is.is_gapped) return false;
    if (!is_same_order(l, d, order, out->order)) return false;
    /* Rows of one pitch: every axis but the innermost must run on into the one outside it. */
    for (uint32_t i = 0; i + 2 < d->rank && k->out_strides == STRIDES_ROWS; i++) {
        uint32_t in = i + 1;
        while (in + 1 < d->rank && view_dim_is_unit(l->p->dims, d->dim[order[in]])) in++;
        if (in + 1 >= d->rank || view_dim_is_unit(l->p->dims, d->dim[order[i]])) continue;
        if (d->stride[order[i]] != dim_mul(l->p->dims, d->stride[order[in]], d->dim[order[in]])) return false;
    }
    out->is_strided = as_is.is_strided;
    tactic t;
    memcpy(t.at, writer->tactic, sizeof t.at);
    if (k->reject(p, &machine) || !k->check(p, &t)) return false;
    sinter_error error;
    if (l->o->backend->fit && l->o->backend->fit(k, p, &t, &error)) return false;
    *id = target;
    if (written != value) {
        plan_value *slot = VEC_PUSH(l->a, &l->p->value);
        if (!slot) return false;
        *slot = as;
        *id = l->p->value.count - 1;
        l->value.at[written].moved = *id;
    }
    writer->problem = p;
    writer->out = id;
    l->value.at[value].moved = target;
    return true;
}

/* ---- the choice ---- */

/* Should small work whose inputs are on the host stay there? Only if the host can do it: a plugin may have a function
 * for GPUs only. */
static sinter_status stays_on_host(lowering *l, const work *w, bool *out)
{
    const problem *p = NULL;
    *out = work_is_for_host(l, w);
    if (!*out) return SINTER_OK;
    TRY(work_problem(l, w, &p));
    *out = !reference_kernel(l)->reject(p, NULL);
    return SINTER_OK;
}

sinter_status work_lower(lowering *l, const work *original, uint32_t *value)
{
    bool is_for_host = false;
    TRY(stays_on_host(l, original, &is_for_host));
    if (l->o->reference_only || is_for_host) return work_reference(l, original, STEP_KERNEL, value);
    work placed;
    TRY(work_in_place(l, original, PLACE_DEVICE, &placed));
    const work *w = &placed;
    work_trial t;
    TRY(work_trial_best(l, w, &t));
    work packed;
    work_trial packed_trial;
    bool is_packed = false;
    TRY(work_pack(l, w, &t, &packed, &packed_trial, &is_packed));
    if (is_packed) {
        w = &packed;
        t = packed_trial;
    }
    bool is_cut = !t.p && w->prologue;
    if (t.p) TRY(work_is_better_cut(l, w, &t, &is_cut));
    if (is_cut) return work_cut_prologue(l, w, value);
    if (!t.p && w->epilogue && w->op != OP_pointwise) return work_cut_epilogue(l, w, value);
    bool done = false;
    if (!t.p) TRY(work_widen(l, w, value, &done));
    if (done) return SINTER_OK;
    if (!t.p) return work_reference(l, original, STEP_KERNEL, value);
    choice c;
    TRY(tune_choose(l->e, t.p, l->o, &c));
    return emit(l, w, &t, &c, STEP_KERNEL, value);
}
