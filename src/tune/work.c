/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - one node becomes steps: which layouts, which cut of the group, which kernel.
 *
 * A few modes say in which order operands should lie: as the first input does, as the reader wishes, row-major,
 * channels-last. For each, the rows are asked with the inputs as they are, then with the misplaced ones converted, and
 * the sum of kernel and copies decides. A group that no fast kernel takes is cut: prologue, anchor and epilogue by
 * themselves; so is the prologue of a contraction where both pieces together are faster than the whole. */
#include "base/os.h"
#include "tune/lower.h"

#include <string.h>

typedef enum mode { MODE_WISH, MODE_FIRST, MODE_ROW, MODE_CHANNELS_LAST, MODE_COUNT } mode;

static void identity_order(uint32_t rank, uint8_t *order)
{
    for (uint32_t i = 0; i < rank; i++) order[i] = (uint8_t)i;
}

static void channels_last_order(uint32_t rank, uint8_t *order)
{
    identity_order(rank, order);
    if (rank < 3) return;
    for (uint32_t i = 1; i + 1 < rank; i++) order[i] = (uint8_t)(i + 1);
    order[rank - 1] = 1;
}

static bool is_identity(uint32_t rank, const uint8_t *order)
{
    for (uint32_t i = 0; i < rank; i++)
        if (order[i] != i) return false;
    return true;
}

static bool dense_in(lowering *l, const plan_value *v, const uint8_t *order)
{
    dim run = dim_const(l->p->dims, 1);
    for (uint32_t i = v->rank; i-- > 0;) {
        if (dim_is(l->p->dims, v->dim[order[i]], 1)) continue;
        if (v->stride[order[i]] != run) return false;
        run = dim_mul(l->p->dims, run, v->dim[order[i]]);
    }
    return true;
}

/* The largest input of that rank that is no constant: broadcast ones say little about the order of the whole. */
static uint32_t leading_input(lowering *l, const work *w, uint32_t rank)
{
    uint32_t best = 0;
    double most = 0;
    for (uint32_t i = 0; i < w->count_in; i++) {
        const plan_value *v = &l->p->value.at[w->in[i]];
        if (!w->in[i] || v->rank != rank || lower_is_const(l, w->in[i])) continue;
        double count = 1;
        for (uint32_t k = 0; k < rank; k++) count *= (double)dim_range_of(l->p->dims, v->dim[k]).opt;
        if (count > most) {
            most = count;
            best = w->in[i];
        }
    }
    return best;
}

/* The order that `m` asks of an operand of `rank`; false where the mode says nothing about it. */
static bool mode_order(lowering *l, const work *w, mode m, uint32_t rank, const work_out *out, uint8_t *order)
{
    if (m == MODE_ROW) return identity_order(rank, order), true;
    if (m == MODE_CHANNELS_LAST) return channels_last_order(rank, order), true;
    if (m == MODE_WISH && out && out->has_wish) return memcpy(order, out->wish, SINTER_RANK_MAX), true;
    const uint32_t leader = m == MODE_FIRST ? leading_input(l, w, rank) : 0;
    if (leader) {
        bool is_dense;
        view_dims_order(l->p->dims, &l->p->value.at[leader], order, &is_dense);
        return true;
    }
    identity_order(rank, order);
    return m == MODE_WISH ? out != NULL : true;
}

/* ---- problems ---- */

static void set_dims(lowering *l, problem_operand *o, const dim *d, uint32_t rank)
{
    o->rank = (uint8_t)rank;
    for (uint32_t i = 0; i < rank; i++) {
        /* Intervals may reach below zero where the sizes themselves cannot. */
        dim_range r = dim_range_of(l->p->dims, d[i]);
        if (r.max < 0) r.max = 0;
        if (r.min < 0) r.min = 0;
        if (r.opt < r.min) r.opt = r.min;
        o->dim[i] = r;
    }
}

storage_place lower_place(const lowering *l, uint32_t value)
{
    return value ? l->p->storage.at[l->p->value.at[value].storage].place : PLACE_DEVICE;
}

bool lower_is_const(const lowering *l, uint32_t value)
{
    return value && l->p->storage.at[l->p->value.at[value].storage].kind == STORAGE_WEIGHT;
}

static void *problem_attrs(lowering *l, const work *w)
{
    void *attrs = op_attrs_copy(l->a, w->op, w->attrs);
    if (!attrs) return NULL;
    for (const attr_info *info = op_at(w->op)->attr; info->name; info++) {
        if (info->kind != ATTR_DIMS) continue;
        attr_dims *d = (attr_dims *)((char *)attrs + info->at);
        int64_t *at = ARENA_NEW(l->a, int64_t, d->count);
        if (!at) return NULL;
        for (uint32_t i = 0; i < d->count; i++) {
            at[i] = dim_range_of(l->p->dims, (dim)d->at[i]).opt;
            if (!dim_is_const(l->p->dims, (dim)d->at[i], NULL)) d->is_dynamic = true;
        }
        d->at = at;
    }
    return attrs;
}

/* Is so many elements a multiple of the backend's alignment, whatever the symbols are? */
static bool is_aligned(const lowering *l, const plan_value *v, dim elements)
{
    const uint32_t wanted = l->o->backend->alignment, size = sinter_dtype_bits(v->dtype) / 8;
    if (!wanted || !size) return true;
    const dim_range r = dim_range_of(l->p->dims, elements);
    const int64_t known = r.min == r.max ? r.min : r.divisor;
    return known % (int64_t)(wanted > size ? wanted / size : 1) == 0;
}

/* Dense in `order`, and at an offset that the backend's kernels may assume. */
static bool lies_dense(lowering *l, const plan_value *v, const uint8_t *order)
{
    return dense_in(l, v, order) && is_aligned(l, v, v->offset);
}

/* Labels an operand with the order in which `v` lies. */
static void label_order(lowering *l, const plan_value *v, problem_operand *o)
{
    bool is_dense;
    view_dims_order(l->p->dims, v, o->order, &is_dense);
    bool is_innermost = true;
    o->is_gapped = !is_aligned(l, v, v->offset);
    for (uint32_t i = v->rank; i-- > 0 && !is_dense;) {
        const uint32_t axis = o->order[i];
        if (dim_is(l->p->dims, v->dim[axis], 1)) continue;
        if (is_innermost ? !dim_is(l->p->dims, v->stride[axis], 1) : !is_aligned(l, v, v->stride[axis]))
            o->is_gapped = true;
        is_innermost = false;
    }
    o->is_strided = !is_dense || o->is_gapped;
}

typedef struct trial {
    problem *p;
    bool convert[64]; /* inputs that are to be copied into the mode's order first */
    bool converts;
    double ns;
    mode m;
    const kernel *kernel;
} trial;

/* The problem as mode `m` would have it. convert: label misplaced inputs as if they had been converted. */
static sinter_status make_problem(lowering *l, const work *w, mode m, bool convert, trial *t)
{
    problem *p = ARENA_NEW(l->a, problem, 1);
    if (!p) return FAIL_MEMORY(l->e, "a problem");
    *p = (problem){ .op = w->op,
                    .count_in = w->count_in,
                    .count_anchor = w->count_anchor,
                    .count_out = w->count_out,
                    .prologue = w->prologue,
                    .epilogue = w->epilogue };
    p->attrs = problem_attrs(l, w);
    p->in = ARENA_NEW(l->a, problem_operand, w->count_in);
    p->out = ARENA_NEW(l->a, problem_operand, w->count_out);
    if (!p->in || !p->out || (op_at(w->op)->attrs_size && !p->attrs)) return FAIL_MEMORY(l->e, "a problem");
    *t = (trial){ .p = p, .m = m };
    for (uint32_t i = 0; i < w->count_in; i++) {
        if (!w->in[i]) continue;
        const plan_value *v = &l->p->value.at[w->in[i]];
        problem_operand *o = &p->in[i];
        o->dtype = v->dtype;
        o->is_const = lower_is_const(l, w->in[i]);
        set_dims(l, o, v->dim, v->rank);
        uint8_t order[SINTER_RANK_MAX];
        const bool asked = mode_order(l, w, m, v->rank, NULL, order);
        if (asked && lies_dense(l, v, order)) {
            memcpy(o->order, order, sizeof order);
            continue;
        }
        if (asked && convert && !o->is_const && v->rank > 1 && i < COUNT_OF(t->convert)) {
            memcpy(o->order, order, sizeof order);
            t->convert[i] = t->converts = true;
            continue;
        }
        label_order(l, v, o);
    }
    for (uint32_t i = 0; i < w->count_out; i++) {
        problem_operand *o = &p->out[i];
        o->dtype = w->out[i].dtype;
        set_dims(l, o, w->out[i].dim, w->out[i].rank);
        mode_order(l, w, m, o->rank, &w->out[i], o->order);
    }
    return SINTER_OK;
}

static double bytes_of(const problem_operand *o)
{
    double bytes = sinter_dtype_bits(o->dtype) / 8.0;
    for (uint32_t i = 0; i < o->rank; i++) bytes *= (double)o->dim[i].opt;
    return bytes;
}

/* A copy costs a read and a write at the bandwidth of a cache, and a launch. */
static double copies_ns(lowering *l, const trial *t)
{
    kernel_target target;
    l->o->backend->target(l->o->device, &target);
    double ns = 0;
    for (uint32_t i = 0; i < t->p->count_in && i < COUNT_OF(t->convert); i++)
        if (t->convert[i])
            ns += 300 + 4 * bytes_of(&t->p->in[i]) / (target.bandwidth > 0 ? target.bandwidth : 1e10) * 1e9;
    return ns;
}

/* Images of bytes lie as images of floats do where there are devices, whose kernels want them so. */
static bool mode_applies(const lowering *l, const work *w, mode m)
{
    if (m == MODE_WISH) return w->count_out && w->out[0].has_wish;
    if (m != MODE_CHANNELS_LAST) return true;
    return w->count_out && w->out[0].rank >= 3 && w->out[0].rank <= 5 &&
           (dtype_is_float(w->out[0].dtype) || (l->o->backend->copy && sinter_dtype_bits(w->out[0].dtype) == 8));
}

/* The cheapest way by the model in which a fast kernel takes the work whole; trial.p NULL: there is none. */
static sinter_status best_trial(lowering *l, const work *w, trial *best)
{
    *best = (trial){ 0 };
    for (mode m = MODE_WISH; m < MODE_COUNT; m++) {
        if (!mode_applies(l, w, m)) continue;
        for (uint32_t convert = 0; convert < 2; convert++) {
            trial t;
            TRY(make_problem(l, w, m, convert, &t));
            if (convert && !t.converts) break;
            choice c;
            tune_estimate(t.p, l->o, true, &c);
            if (!c.kernel) continue;
            t.ns = c.ns + copies_ns(l, &t);
            t.kernel = c.kernel;
            if (!best->p || t.ns < best->ns * 0.98) *best = t;
        }
    }
    return SINTER_OK;
}

/* ---- steps ---- */

static const dim *collect_dims(lowering *l, const work *w, uint32_t *count)
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

uint32_t lower_step_new(lowering *l, const plan_step *s)
{
    plan_step *slot = VEC_PUSH(l->a, &l->p->step);
    if (!slot) return 0;
    *slot = *s;
    uint32_t *entry = VEC_PUSH(l->a, &l->p->region.at[l->region].step);
    if (!entry) return 0;
    return *entry = l->p->step.count - 1;
}

/* A constant as the kernel wants it: packed now, into a weight of its own. */
static sinter_status pack_weight(lowering *l, const trial *t, const choice *c, uint32_t i, uint32_t *value)
{
    const size_t size = c->kernel->pack_size ? c->kernel->pack_size(t->p, &c->tactic, i) : 0;
    if (!size) return SINTER_OK;
    const plan_value v = l->p->value.at[*value];
    const plan_storage source = l->p->storage.at[v.storage];
    view src = { .dtype = v.dtype, .rank = v.rank };
    int64_t offset = 0;
    bool ok = dim_is_const(l->p->dims, v.offset, &offset);
    for (uint32_t k = 0; k < v.rank; k++)
        ok = ok && dim_is_const(l->p->dims, v.dim[k], &src.dim[k]) &&
             dim_is_const(l->p->dims, v.stride[k], &src.stride[k]);
    if (!ok || sinter_dtype_bits(v.dtype) < 8)
        return FAIL(l->e, INTERNAL, "a weight of unknown shape cannot be packed");
    src.data = (char *)(uintptr_t)source.data + offset * (int64_t)(sinter_dtype_bits(v.dtype) / 8);
    /* A dry pass reads no weight: any address is as good. */
    void *packed = l->o->scout ? src.data : ir_blob(l->g, size);
    if (!packed) return FAIL_MEMORY(l->e, "packed weights");
    const uint64_t start = os_time_ns();
    if (!l->o->scout) c->kernel->pack(t->p, &c->tactic, i, &src, packed);
    if (l->o->stats) l->o->stats->pack_ns += os_time_ns() - start;
    const uint32_t storage = plan_storage_new(l->p, STORAGE_WEIGHT, dim_const(l->p->dims, (int64_t)size));
    weight_recipe *recipe = VEC_PUSH(l->a, &l->out->recipe);
    plan_value *slot = storage && recipe ? VEC_PUSH(l->a, &l->p->value) : NULL;
    if (!slot) return FAIL_MEMORY(l->e, "packed weights");
    *recipe =
        (weight_recipe){ .source = l->out->recipe.at[source.recipe].source, .step = l->p->step.count, .input = i };
    l->p->storage.at[storage].data = packed;
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

static uint32_t new_output(lowering *l, const work_out *out, const uint8_t *order, storage_place place)
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

static sinter_status emit(lowering *l, const work *w, const trial *t, const choice *c, step_kind kind, uint32_t *value)
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
        if (t->p->in[i].is_const) TRY(pack_weight(l, t, c, i, &in[i]));
    }
    for (uint32_t i = 0; i < w->count_out; i++) {
        if (!value[i]) value[i] = new_output(l, &w->out[i], t->p->out[i].order, place);
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
    s.dim_at = collect_dims(l, w, &s.count_dim);
    if (!s.dim_at || !lower_step_new(l, &s)) return FAIL_MEMORY(l->e, "a step");
    return SINTER_OK;
}

/* The same work with its inputs in `place`. */
static sinter_status in_place_of(lowering *l, const work *w, storage_place place, work *out)
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
    trial t;
    TRY(in_place_of(l, w, place_of(l, c.kernel, kind), &placed));
    TRY(make_problem(l, &placed, is_fixed ? MODE_ROW : MODE_FIRST, false, &t));
    return emit(l, &placed, &t, &c, kind, value);
}

sinter_status work_problem(lowering *l, const work *w, const problem **out)
{
    trial t;
    TRY(make_problem(l, w, MODE_ROW, false, &t));
    *out = t.p;
    return SINTER_OK;
}

/* ---- copies ---- */

static sinter_status copy_step(lowering *l, uint32_t value, uint32_t target, const char *name)
{
    const plan_value *v = &l->p->value.at[value], *d = &l->p->value.at[target];
    work_out out = { .dtype = v->dtype, .rank = v->rank };
    memcpy(out.dim, d->dim, sizeof out.dim);
    void *attrs = op_attrs_new(l->a, OP_copy);
    if (!attrs) return FAIL_MEMORY(l->e, "a copy");
    const work w = { .op = OP_copy,
                     .attrs = attrs,
                     .count_in = 1,
                     .count_anchor = 1,
                     .count_out = 1,
                     .in = &value,
                     .out = &out,
                     .name = name };
    trial t;
    TRY(make_problem(l, &w, MODE_ROW, false, &t));
    label_order(l, d, &t.p->out[0]);
    label_order(l, v, &t.p->in[0]);
    if (lies_dense(l, v, t.p->out[0].order)) {
        memcpy(t.p->in[0].order, t.p->out[0].order, sizeof t.p->in[0].order);
        t.p->in[0].is_strided = t.p->in[0].is_gapped = false;
    }
    choice c = { .kernel = reference_kernel(l) };
    if (lower_place(l, value) == PLACE_DEVICE) tune_estimate(t.p, l->o, false, &c);
    if (place_of(l, c.kernel, STEP_KERNEL) == lower_place(l, value)) return emit(l, &w, &t, &c, STEP_KERNEL, &target);
    return FAIL(l->e, UNSUPPORTED, "no kernel of the device copies %s", sinter_dtype_name(v->dtype));
}

sinter_status work_copy_into(lowering *l, uint32_t value, uint32_t target, const char *name)
{
    return copy_step(l, value, target, name);
}

sinter_status work_copy(lowering *l, uint32_t value, const uint8_t *order, bool fresh, uint32_t io, const char *name,
                        uint32_t *out)
{
    const plan_value v = l->p->value.at[value];
    uint8_t row[SINTER_RANK_MAX];
    if (!order) {
        identity_order(v.rank, row);
        order = row;
    }
    if (!fresh && dense_in(l, &v, order)) return *out = value, SINTER_OK;
    for (uint32_t i = 0; !fresh && i < l->converted.count; i++)
        if (l->converted.at[i].value == value && memcmp(l->converted.at[i].order, order, v.rank) == 0)
            return *out = l->converted.at[i].result, SINTER_OK;
    const uint32_t made =
        plan_value_dense(l->p, io ? STORAGE_OUTPUT : STORAGE_SLAB, v.name, v.dtype, v.rank, v.dim, order);
    if (!made) return FAIL_MEMORY(l->e, "a copy");
    plan_storage *storage = &l->p->storage.at[l->p->value.at[made].storage];
    storage->place = lower_place(l, value);
    if (io) storage->io = io - 1;
    TRY(copy_step(l, value, made, name));
    *out = made;
    if (fresh) return SINTER_OK;
    conversion *c = VEC_PUSH(l->a, &l->converted);
    if (!c) return FAIL_MEMORY(l->e, "a copy");
    *c = (conversion){ .value = value, .result = made };
    memcpy(c->order, order, v.rank);
    return SINTER_OK;
}

bool work_redirect(lowering *l, uint32_t value, uint32_t target)
{
    const plan_region *r = &l->p->region.at[l->region];
    kernel_target machine;
    l->o->backend->target(l->o->device, &machine);
    plan_step *writer = NULL;
    const uint32_t storage = l->p->value.at[value].storage;
    if (l->p->storage.at[storage].kind != STORAGE_SLAB) return false;
    for (uint32_t i = 1; i < l->p->value.count; i++)
        if (i != value && l->p->value.at[i].storage == storage) return false; /* seen through a view too */
    for (uint32_t i = r->step.count; i-- > 0;) {
        plan_step *s = &l->p->step.at[r->step.at[i]];
        for (uint32_t k = 0; k < s->count_in; k++)
            if (s->in[k] && l->p->value.at[s->in[k]].storage == storage) return false; /* somebody reads it as it is */
        for (uint32_t k = 0; k < s->count_out; k++)
            if (s->out[k] == value) writer = s;
        if (writer) break;
    }
    if (!writer || writer->kind != STEP_KERNEL || writer->count_out != 1 || writer->out[0] != value) return false;
    const kernel *k = writer->kernel;
    if (!k->is_strided_out) return false;
    problem *p = ARENA_NEW(l->a, problem, 1);
    problem_operand *out = ARENA_NEW(l->a, problem_operand, 1);
    uint32_t *id = ARENA_NEW(l->a, uint32_t, 1);
    if (!p || !out || !id) return false;
    *p = *(const problem *)writer->problem;
    *out = p->out[0];
    p->out = out;
    const plan_value *d = &l->p->value.at[target];
    problem_operand as_is = { 0 };
    label_order(l, d, &as_is);
    const uint8_t *order = as_is.order;
    if (as_is.is_gapped) return false;
    for (uint32_t i = 0; i < d->rank; i++)
        if (order[i] != out->order[i] && !dim_is(l->p->dims, d->dim[order[i]], 1) &&
            !dim_is(l->p->dims, d->dim[out->order[i]], 1))
            return false;
    /* Kernels write rows of one pitch: every axis but the innermost must run on into the one outside it. */
    for (uint32_t i = 0; i + 2 < d->rank; i++) {
        uint32_t in = i + 1;
        while (in + 1 < d->rank && dim_is(l->p->dims, d->dim[order[in]], 1)) in++;
        if (in + 1 >= d->rank || dim_is(l->p->dims, d->dim[order[i]], 1)) continue;
        if (d->stride[order[i]] != dim_mul(l->p->dims, d->stride[order[in]], d->dim[order[in]])) return false;
    }
    out->is_strided = as_is.is_strided;
    tactic t;
    memcpy(t.at, writer->tactic, sizeof t.at);
    if (k->reject(p, &machine) || !k->check(p, &t)) return false;
    *id = target;
    writer->problem = p;
    writer->out = id;
    for (uint32_t i = 1; i < l->g->value.count; i++)
        if (l->map[i] == value) l->map[i] = target;
    return true;
}

/* ---- cuts ---- */

static expr *program_with(lowering *l, const expr *x, uint16_t acc_operand, bool has_acc)
{
    expr *y = expr_copy(l->a, x);
    for (uint32_t i = 0; y && has_acc && i < y->count; i++)
        if (y->at[i].op == EXPR_ACC) {
            y->at[i].op = EXPR_LOAD;
            y->at[i].operand = acc_operand;
        }
    return y;
}

static sinter_dtype acc_type(const expr *x, sinter_dtype otherwise)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (x->at[i].op == EXPR_ACC) return (sinter_dtype)x->at[i].dtype;
    return otherwise;
}

/* Keeps only the operands that the program loads, in order of first use. */
static void compact(work *w, expr *x)
{
    uint32_t kept = 0;
    uint32_t *in = w->in;
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->at[i].op != EXPR_LOAD) continue;
        uint32_t k = 0;
        while (k < kept && in[w->count_in + k] != in[x->at[i].operand]) k++;
        if (k == kept) in[w->count_in + kept++] = in[x->at[i].operand];
        x->at[i].operand = (uint16_t)k;
    }
    memmove(in, in + w->count_in, kept * sizeof *in);
    w->count_in = w->count_anchor = kept;
}

/* Everything of the group but the program: a work whose lists have room for one more operand and its compaction. */
static bool piece_of(lowering *l, const work *w, work *piece)
{
    *piece = *w;
    piece->in = ARENA_NEW(l->a, uint32_t, 2 * (size_t)w->count_in + 4);
    if (!piece->in) return false;
    memcpy(piece->in, w->in, w->count_in * sizeof *w->in);
    return true;
}

static sinter_status cut_epilogue(lowering *l, const work *w, uint32_t *value)
{
    work anchor, rest;
    work_out between = w->out[0];
    between.io = 0;
    between.dtype = acc_type(w->epilogue, between.dtype);
    if (!piece_of(l, w, &anchor) || !piece_of(l, w, &rest)) return FAIL_MEMORY(l->e, "a cut");
    anchor.epilogue = NULL;
    anchor.count_in = w->prologue ? w->count_in : w->count_anchor;
    anchor.count_out = 1;
    anchor.out = &between;
    uint32_t middle = 0;
    TRY(work_lower(l, &anchor, &middle));
    rest.in[rest.count_in++] = middle;
    rest.op = OP_pointwise;
    rest.attrs = op_attrs_new(l->a, OP_pointwise);
    rest.prologue = NULL;
    expr *x = program_with(l, w->epilogue, (uint16_t)(rest.count_in - 1), true);
    if (!x || !rest.attrs) return FAIL_MEMORY(l->e, "a cut");
    compact(&rest, x);
    rest.epilogue = x;
    return work_lower(l, &rest, value);
}

/* Forgets inputs that neither the anchor nor its epilogue reads. */
static bool drop_unread(lowering *l, work *w)
{
    uint32_t kept = w->count_anchor;
    expr *x = w->epilogue ? expr_copy(l->a, w->epilogue) : NULL;
    if (w->epilogue && !x) return false;
    for (uint32_t i = w->count_anchor; i < w->count_in; i++) {
        bool is_read = false;
        for (uint32_t k = 0; x && k < x->count; k++) {
            if (x->at[k].op != EXPR_LOAD || w->epilogue->at[k].operand != i) continue;
            x->at[k].operand = (uint16_t)kept;
            is_read = true;
        }
        if (is_read) w->in[kept++] = w->in[i];
    }
    w->count_in = kept;
    w->epilogue = x;
    return true;
}

/* The prologue by itself, and the rest, whose first input is then to be set. */
static sinter_status prologue_pieces(lowering *l, const work *w, work *first, work *anchor)
{
    const plan_value *x0 = &l->p->value.at[w->in[0]];
    work_out *between = ARENA_NEW(l->a, work_out, 1);
    expr *x = program_with(l, w->prologue, 0, false);
    if (!x || !between || !piece_of(l, w, first) || !piece_of(l, w, anchor)) return FAIL_MEMORY(l->e, "a cut");
    *between = (work_out){ .dtype = x0->dtype, .rank = x0->rank };
    memcpy(between->dim, x0->dim, sizeof between->dim);
    for (uint32_t i = 0; i < w->prologue->count; i++)
        if (w->prologue->at[i].op == EXPR_STORE) between->dtype = (sinter_dtype)w->prologue->at[i].dtype;
    /* As any value that only an op on images reads. */
    if (l->o->backend->copy && (w->op == OP_conv || w->op == OP_conv_integer) && between->rank >= 4) {
        channels_last_order(between->rank, between->wish);
        between->has_wish = true;
    }
    first->op = OP_pointwise;
    first->attrs = op_attrs_new(l->a, OP_pointwise);
    first->prologue = NULL;
    first->count_out = 1;
    first->out = between;
    compact(first, x);
    first->epilogue = x;
    anchor->prologue = NULL;
    return first->attrs && drop_unread(l, anchor) ? SINTER_OK : FAIL_MEMORY(l->e, "a cut");
}

static sinter_status cut_prologue(lowering *l, const work *w, uint32_t *value)
{
    work first, anchor;
    uint32_t middle = 0;
    TRY(prologue_pieces(l, w, &first, &anchor));
    TRY(work_lower(l, &first, &middle));
    anchor.in[0] = middle;
    return work_lower(l, &anchor, value);
}

/* A copy is a launch on a device; the program by itself reads its operands as they lie. */
static double copies_launch_ns(const lowering *l, const trial *t)
{
    double ns = 0;
    for (uint32_t i = 0; i < t->p->count_in && i < COUNT_OF(t->convert); i++)
        if (t->convert[i] && l->o->backend->copy) ns += 1700;
    return ns;
}

/* Whole against in two pieces: by measured times where there are any, else by the model. */
static sinter_status compare_cut(lowering *l, const trial *whole, const trial *first, const trial *anchor, bool *is_cut)
{
    enum { TRIALS = 3 };
    static const double worth_comparing = 3; /* times the other */
    const trial *const at[TRIALS] = { whole, first, anchor };
    double ns[TRIALS];
    for (uint32_t i = 0; i < TRIALS; i++) ns[i] = at[i]->ns + copies_launch_ns(l, at[i]);
    *is_cut = ns[1] + ns[2] < ns[0];
    if (l->o->mode == TUNE_OFF || ns[0] > worth_comparing * (ns[1] + ns[2]) || ns[1] + ns[2] > worth_comparing * ns[0])
        return SINTER_OK;
    bool is_measured = true;
    for (uint32_t i = 0; i < TRIALS && (is_measured || l->o->scout); i++) {
        choice c;
        TRY(tune_choose(l->e, at[i]->p, l->o, &c));
        TRY(tune_choice_time(l->e, at[i]->p, l->o, &c));
        ns[i] = c.ns + copies_ns(l, at[i]) + copies_launch_ns(l, at[i]);
        is_measured = is_measured && c.is_measured;
    }
    if (is_measured) *is_cut = ns[1] + ns[2] < ns[0];
    return SINTER_OK;
}

/* A contraction that reads through registers what a program makes is slower than one that copies its rows: is it
 * better to make them first? The value between the pieces is one for the asking only. */
static sinter_status is_better_cut(lowering *l, const work *w, const trial *whole, bool *is_cut)
{
    work first, anchor;
    trial before, after;
    *is_cut = false;
    if (!w->prologue || !(op_at(w->op)->traits & CONTRACTION)) return SINTER_OK;
    TRY(prologue_pieces(l, w, &first, &anchor));
    TRY(best_trial(l, &first, &before));
    if (!before.p) return SINTER_OK;
    const uint32_t values = l->p->value.count, storages = l->p->storage.count;
    anchor.in[0] = new_output(l, first.out, before.p->out[0].order, PLACE_DEVICE);
    if (!anchor.in[0]) return FAIL_MEMORY(l->e, "a cut");
    sinter_status s = best_trial(l, &anchor, &after);
    if (s == SINTER_OK && after.p) s = compare_cut(l, whole, &before, &after, is_cut);
    l->p->value.count = values;
    l->p->storage.count = storages;
    return s;
}

/* ---- narrow floats ---- */

static bool is_narrow(sinter_dtype t)
{
    return t == SINTER_DTYPE_F16 || t == SINTER_DTYPE_BF16;
}

static sinter_dtype widened(sinter_dtype t)
{
    return is_narrow(t) ? SINTER_DTYPE_F32 : t;
}

/* A narrow constant as f32, converted now. */
static sinter_status widen_const(lowering *l, uint32_t value, uint32_t *out)
{
    const plan_value v = l->p->value.at[value];
    const plan_storage source = l->p->storage.at[v.storage];
    view from = { .dtype = v.dtype, .rank = v.rank }, to;
    int64_t offset = 0;
    bool ok = dim_is_const(l->p->dims, v.offset, &offset);
    for (uint32_t k = 0; k < v.rank; k++)
        ok = ok && dim_is_const(l->p->dims, v.dim[k], &from.dim[k]) &&
             dim_is_const(l->p->dims, v.stride[k], &from.stride[k]);
    from.data = (char *)(uintptr_t)source.data + offset * 2;
    const uint32_t made =
        ok ? plan_value_dense(l->p, STORAGE_WEIGHT, v.name, SINTER_DTYPE_F32, v.rank, v.dim, NULL) : 0;
    if (!made) return FAIL(l->e, INTERNAL, "a weight of unknown shape cannot be widened");
    plan_storage *s = &l->p->storage.at[l->p->value.at[made].storage];
    s->data = ir_blob(l->g, s->bound);
    s->recipe = source.recipe;
    if (!s->data || !view_init(&to, SINTER_DTYPE_F32, v.rank, from.dim, (void *)(uintptr_t)s->data))
        return FAIL_MEMORY(l->e, "a weight");
    int64_t index[SINTER_RANK_MAX], at = 0;
    for (bool more = view_first(from.dim, from.rank, index); more; more = view_next(from.dim, from.rank, index))
        view_store_f64(&to, at++, view_load_f64(&from, view_offset(&from, index)));
    *out = made;
    return SINTER_OK;
}

/* A step that converts `value` to the type of `out`. */
static sinter_status convert(lowering *l, uint32_t value, const work_out *out, const char *name, uint32_t *result)
{
    attrs_typed *attrs = op_attrs_new(l->a, OP_cast);
    if (!attrs) return FAIL_MEMORY(l->e, "a conversion");
    attrs->type = out->dtype;
    work_out to = *out;
    const work w = { .op = OP_cast,
                     .attrs = attrs,
                     .count_in = 1,
                     .count_anchor = 1,
                     .count_out = 1,
                     .in = &value,
                     .out = &to,
                     .name = name };
    return work_lower(l, &w, result);
}

/* Work on f16 or bf16 that only f32 kernels do fast: the same in f32 between conversions. Sums are as wide as the
 * reference's contract asks and results are rounded once, so this loses nothing. */
static sinter_status widen(lowering *l, const work *w, uint32_t *value, bool *done)
{
    bool narrow = false;
    for (uint32_t i = 0; i < w->count_in; i++)
        narrow = narrow || (w->in[i] && is_narrow(l->p->value.at[w->in[i]].dtype));
    *done = narrow && !w->prologue && !w->epilogue && (op_at(w->op)->traits & (CONTRACTION | REDUCTION | ROWWISE));
    if (!*done) return SINTER_OK;
    work wide;
    if (!piece_of(l, w, &wide)) return FAIL_MEMORY(l->e, "a conversion");
    wide.out = ARENA_NEW(l->a, work_out, w->count_out);
    uint32_t *middle = ARENA_NEW(l->a, uint32_t, w->count_out);
    if (!wide.out || !middle) return FAIL_MEMORY(l->e, "a conversion");
    for (uint32_t i = 0; i < w->count_out; i++) {
        wide.out[i] = w->out[i];
        wide.out[i].dtype = widened(w->out[i].dtype);
        if (is_narrow(w->out[i].dtype)) wide.out[i].io = 0;
    }
    for (uint32_t i = 0; i < w->count_in; i++) {
        if (!w->in[i]) continue;
        const plan_value *v = &l->p->value.at[w->in[i]];
        if (!is_narrow(v->dtype)) continue;
        work_out to = { .dtype = SINTER_DTYPE_F32, .rank = v->rank };
        memcpy(to.dim, v->dim, sizeof to.dim);
        uint32_t made = 0;
        TRY(lower_is_const(l, w->in[i]) ? widen_const(l, w->in[i], &made) : convert(l, w->in[i], &to, w->name, &made));
        wide.in[i] = made;
    }
    TRY(work_lower(l, &wide, middle));
    for (uint32_t i = 0; i < w->count_out; i++) {
        value[i] = middle[i];
        if (is_narrow(w->out[i].dtype)) value[i] = 0;
        if (!value[i]) TRY(convert(l, middle[i], &w->out[i], w->name, &value[i]));
    }
    return SINTER_OK;
}

sinter_status work_lower(lowering *l, const work *original, uint32_t *value)
{
    if (l->o->reference_only || work_is_for_host(l, original)) return work_reference(l, original, STEP_KERNEL, value);
    work placed;
    TRY(in_place_of(l, original, PLACE_DEVICE, &placed));
    const work *w = &placed;
    trial t;
    TRY(best_trial(l, w, &t));
    bool is_cut = !t.p && w->prologue;
    if (t.p) TRY(is_better_cut(l, w, &t, &is_cut));
    if (is_cut) return cut_prologue(l, w, value);
    if (!t.p && w->epilogue && w->op != OP_pointwise) return cut_epilogue(l, w, value);
    bool done = false;
    if (!t.p) TRY(widen(l, w, value, &done));
    if (done) return SINTER_OK;
    if (!t.p) return work_reference(l, original, STEP_KERNEL, value);
    choice c;
    TRY(tune_choose(l->e, t.p, l->o, &c));
    return emit(l, w, &t, &c, STEP_KERNEL, value);
}
