/* SPDX-License-Identifier: Apache-2.0 */
/* work_trial.c - the problem of a piece of work in one layout or another, and which of them the model likes best.
 *
 * A few modes say in which order operands should lie: as the first input does, as the reader wishes, row-major,
 * channels-last. For each, the rows are asked with the inputs as they are, then with the misplaced ones converted, and
 * the sum of kernel and copies decides. */
#include "tune/work.h"

#include <string.h>

/* ---- orders ---- */

void work_order_plain(uint32_t rank, uint8_t *order)
{
    for (uint32_t i = 0; i < rank; i++) order[i] = (uint8_t)i;
}

void work_order_channels_last(uint32_t rank, uint8_t *order)
{
    work_order_plain(rank, order);
    if (rank < 3) return;
    for (uint32_t i = 1; i + 1 < rank; i++) order[i] = (uint8_t)(i + 1);
    order[rank - 1] = 1;
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
static bool mode_order(lowering *l, const work *w, work_mode m, uint32_t rank, const work_out *out, uint8_t *order)
{
    if (m == MODE_ROW) return work_order_plain(rank, order), true;
    if (m == MODE_CHANNELS_LAST) return work_order_channels_last(rank, order), true;
    if (m == MODE_WISH && out && out->has_wish) return memcpy(order, out->wish, SINTER_RANK_MAX), true;
    const uint32_t leader = m == MODE_FIRST ? leading_input(l, w, rank) : 0;
    if (leader) {
        bool is_dense;
        view_dims_order(l->p->dims, &l->p->value.at[leader], order, &is_dense);
        return true;
    }
    work_order_plain(rank, order);
    return m == MODE_WISH ? out != NULL : true;
}

/* ---- problems ---- */

static void set_dims(lowering *l, problem_operand *o, const dim *d, uint32_t rank)
{
    uint32_t late = 0;
    o->rank = (uint8_t)rank;
    for (uint32_t i = 0; i < rank; i++) {
        o->dim[i] = dim_size_range_of(l->p->dims, d[i]);
        late += dim_is_late(l->p->dims, d[i]);
    }
    o->is_late = late > 1;
    problem_operand_calm(o);
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
bool work_lies_dense(lowering *l, const plan_value *v, const uint8_t *order)
{
    return view_dims_dense_in(l->p->dims, v, order) && is_aligned(l, v, v->offset);
}

/* Labels an operand with the order in which `v` lies. The operand's ranges count, not the value's: another operand may
 * have shown that an axis has one element (problem_unify). Then the next axis outward is the innermost, and its
 * elements need not be adjacent. */
void work_label(lowering *l, const plan_value *v, problem_operand *o)
{
    bool is_dense;
    view_dims_order(l->p->dims, v, o->order, &is_dense);
    bool is_innermost = true;
    o->is_gapped = !is_aligned(l, v, v->offset);
    for (uint32_t i = v->rank; i-- > 0 && !is_dense;) {
        const uint32_t axis = o->order[i];
        if (o->dim[axis].max <= 1) continue;
        if (is_innermost ? !dim_is(l->p->dims, v->stride[axis], 1) : !is_aligned(l, v, v->stride[axis]))
            o->is_gapped = true;
        is_innermost = false;
    }
    o->is_strided = !is_dense || o->is_gapped;
}

/* Does an axis of `v` have another symbolic size than the result's axis, so that a run may bring 1 and more? A problem
 * states only ranges, and the ranges may be equal. */
static bool may_repeat(lowering *l, const plan_value *v, const work_out *space)
{
    for (uint32_t k = 0; k < v->rank && v->rank <= space->rank; k++) {
        const dim d = v->dim[k];
        if (d != space->dim[space->rank - v->rank + k] && !dim_is_const(l->p->dims, d, NULL) &&
            dim_range_of(l->p->dims, d).min <= 1)
            return true;
    }
    return false;
}

/* Operands for which only the run knows on which axes they repeat get the label "any strides". */
static void label_repeats(lowering *l, const work *w, problem *p)
{
    const work_out *space = NULL;
    for (uint32_t i = 0; w->op == OP_pointwise && w->epilogue && i < w->epilogue->count; i++)
        if (w->epilogue->at[i].op == EXPR_STORE) space = &w->out[w->epilogue->at[i].operand];
    for (uint32_t i = 0; space && i < w->count_in; i++)
        if (w->in[i] && may_repeat(l, &l->p->value.at[w->in[i]], space))
            p->in[i].is_strided = p->in[i].is_gapped = true;
}

/* The problem as mode `m` would have it. convert: label misplaced inputs as if they had been converted. */
sinter_status work_trial_make(lowering *l, const work *w, work_mode m, bool convert, work_trial *t)
{
    problem *p = ARENA_NEW(l->a, problem, 1);
    if (!p) return FAIL_MEMORY(l->e, "a problem");
    *p = (problem){ .op = w->op,
                    .count_in = w->count_in,
                    .count_anchor = w->count_anchor,
                    .count_out = w->count_out,
                    .prologue = w->prologue,
                    .weight = w->weight,
                    .epilogue = w->epilogue };
    p->attrs = problem_attrs(l, w);
    problem_resolve(l->a, p);
    p->in = ARENA_NEW(l->a, problem_operand, w->count_in);
    p->out = ARENA_NEW(l->a, problem_operand, w->count_out);
    if (!p->in || !p->out || l->a->failed || (op_at(w->op)->attrs_size && !p->attrs))
        return FAIL_MEMORY(l->e, "a problem");
    *t = (work_trial){ .p = p, .m = m };
    for (uint32_t i = 0; i < w->count_in; i++) {
        if (!w->in[i]) continue;
        const plan_value *v = &l->p->value.at[w->in[i]];
        p->in[i].dtype = v->dtype;
        /* A view whose sizes or place symbols decide cannot be packed while building. */
        view known;
        p->in[i].is_const = lower_is_const(l, w->in[i]) && tune_const_view(l->p, w->in[i], &known);
        set_dims(l, &p->in[i], v->dim, v->rank);
    }
    problem_unify(p);
    for (uint32_t i = 0; i < w->count_in; i++) {
        if (!w->in[i]) continue;
        const plan_value *v = &l->p->value.at[w->in[i]];
        problem_operand *o = &p->in[i];
        uint8_t order[SINTER_RANK_MAX];
        const bool asked = mode_order(l, w, m, v->rank, NULL, order);
        if (asked && work_lies_dense(l, v, order)) {
            memcpy(o->order, order, sizeof order);
            continue;
        }
        if (asked && convert && !o->is_const && v->rank > 1 && i < COUNT_OF(t->convert)) {
            memcpy(o->order, order, sizeof order);
            t->convert[i] = t->converts = true;
            continue;
        }
        work_label(l, v, o);
    }
    for (uint32_t i = 0; i < w->count_out; i++) {
        problem_operand *o = &p->out[i];
        o->dtype = w->out[i].dtype;
        set_dims(l, o, w->out[i].dim, w->out[i].rank);
        mode_order(l, w, m, o->rank, &w->out[i], o->order);
    }
    label_repeats(l, w, p);
    return SINTER_OK;
}

static double bytes_of(const problem_operand *o)
{
    double bytes = sinter_dtype_bits(o->dtype) / 8.0;
    for (uint32_t i = 0; i < o->rank; i++) bytes *= (double)o->dim[i].opt;
    return bytes;
}

/* A copy costs a read and a write at the bandwidth of a cache, and a launch. */
static double copy_ns(lowering *l, const problem_operand *o)
{
    kernel_target target;
    l->o->backend->target(l->o->device, &target);
    return 300 + 4 * bytes_of(o) / (target.bandwidth > 0 ? target.bandwidth : 1e10) * 1e9;
}

double work_trial_copies_ns(lowering *l, const work_trial *t)
{
    double ns = 0;
    for (uint32_t i = 0; i < t->p->count_in && i < COUNT_OF(t->convert); i++)
        if (t->convert[i]) ns += copy_ns(l, &t->p->in[i]);
    return ns;
}

/* Convolutions of an image whose channels fill vectors are fastest with the channels innermost. */
static bool wants_channels_last(const work *w, const problem_operand *o)
{
    const int64_t channels = o->rank >= 3 ? o->dim[1].max : 0;
    return op_has(w->op, IMAGE) && op_has(w->op, CONTRACTION) && channels >= 16 && channels % 8 == 0;
}

/* The time of copies of the results, each with a launch of its own. An output of the engine is row-major and is copied
 * from any other order. A row-major result whose reader is a convolution with channels last is copied for that
 * convolution. */
static double output_copies_ns(lowering *l, const work *w, const work_trial *t)
{
    const double launch_ns = l->o->backend->copy ? 1500 : 0;
    double ns = 0;
    for (uint32_t i = 0; i < w->count_out; i++) {
        const problem_operand *o = &t->p->out[i];
        uint32_t last = 0;
        bool is_row = true;
        for (uint32_t k = 0; k < o->rank; k++) {
            if (o->dim[o->order[k]].max == 1) continue;
            is_row = is_row && o->order[k] >= last;
            last = o->order[k];
        }
        if (w->out[i].io ? !is_row : is_row && wants_channels_last(w, o)) ns += launch_ns + copy_ns(l, o);
    }
    return ns;
}

/* Does the mode apply? Images of codes and of sums of codes have the layout of float images, because their kernels
 * expect it. */
static bool mode_applies(const work *w, work_mode m)
{
    if (m == MODE_WISH) return w->count_out && w->out[0].has_wish;
    if (m != MODE_CHANNELS_LAST) return true;
    return w->count_out && w->out[0].rank >= 3 && w->out[0].rank <= 5 &&
           (dtype_is_float(w->out[0].dtype) || w->out[0].dtype == SINTER_DTYPE_I32 ||
            sinter_dtype_bits(w->out[0].dtype) == 8);
}

sinter_status work_trial_best(lowering *l, const work *w, work_trial *best)
{
    *best = (work_trial){ 0 };
    for (work_mode m = MODE_WISH; m < MODE_COUNT; m++) {
        if (!mode_applies(w, m)) continue;
        for (uint32_t convert = 0; convert < 2; convert++) {
            work_trial t;
            const arena_mark mark = arena_save(l->a);
            TRY(work_trial_make(l, w, m, convert, &t));
            choice c = { 0 };
            const bool is_new = !convert || t.converts;
            if (is_new) tune_estimate(t.p, l->o, true, &c);
            if (c.kernel) {
                t.ns = c.ns + work_trial_copies_ns(l, &t) + output_copies_ns(l, w, &t);
                t.kernel = c.kernel;
            }
            if (c.kernel && (!best->p || t.ns < best->ns * 0.98)) *best = t;
            else arena_rewind(l->a, mark);
            if (!is_new) break;
        }
    }
    return SINTER_OK;
}
