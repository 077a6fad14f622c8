/* SPDX-License-Identifier: Apache-2.0 */
/* concat.c - concatenation by address: each input becomes a part of the result.
 *
 * Where the kernel that makes an input can write with strides and nobody has read the input yet, it writes straight
 * into the result; otherwise one copy moves it there. Either way no step is left that does the joining. Parts begin at
 * whole bytes: types of fewer than 8 bits are joined by a kernel. */
#include "tune/lower.h"
#include "tune/work.h"

#include <string.h>

/* An axis order, and how many bytes of the inputs have it. */
typedef struct vote {
    uint8_t order[SINTER_RANK_MAX];
    double weight;
} vote;

typedef struct concat_part {
    uint32_t value, target; /* an input, and the part of the result that it becomes */
    dim first, size;        /* where the part begins along the axis, and its size there */
    bool is_written;        /* the step that makes the input writes it to `target` */
} concat_part;

/* Is the value empty at opt? Then its strides say nothing about its order. */
static bool is_usually_empty(const dim_table *t, const plan_value *v)
{
    for (uint32_t i = 0; i < v->rank; i++)
        if (dim_range_of(t, v->dim[i]).opt <= 0) return true;
    return false;
}

/* The order that most bytes of the inputs already have; row-major where no input has a byte. */
static sinter_status most_common_order(lowering *l, const work *w, uint8_t *best)
{
    const uint32_t rank = w->out[0].rank;
    uint32_t size = 16, found = 0;
    while (size < 2 * w->count_in) size *= 2;
    const arena_mark mark = arena_save(l->a);
    vote *votes = ARENA_NEW(l->a, vote, w->count_in);
    uint32_t *slot = ARENA_NEW(l->a, uint32_t, size); /* 1 + index of a vote, by hash of the order */
    if (!votes || !slot) return FAIL_MEMORY(l->e, "a concatenation");
    for (uint32_t i = 0; i < w->count_in; i++) {
        uint8_t order[SINTER_RANK_MAX] = { 0 };
        bool is_dense;
        const plan_value *v = &l->p->value.at[w->in[i]];
        const bool is_empty = is_usually_empty(l->p->dims, v);
        for (uint32_t k = 0; k < rank; k++) order[k] = (uint8_t)k;
        if (!is_empty) view_dims_order(l->p->dims, v, order, &is_dense);
        uint32_t h = 0;
        for (uint32_t k = 0; k < rank; k++) h = (h ^ order[k]) * 0x9e3779b1u;
        uint32_t at = h & (size - 1);
        while (slot[at] && memcmp(votes[slot[at] - 1].order, order, sizeof order) != 0) at = (at + 1) & (size - 1);
        if (!slot[at]) {
            memcpy(votes[found].order, order, sizeof order);
            slot[at] = ++found;
        }
        if (!is_empty) votes[slot[at] - 1].weight += (double)dim_range_of(l->p->dims, v->dim[rank - 1]).opt + 1;
    }
    uint32_t most = 0;
    for (uint32_t i = 1; i < found; i++)
        if (votes[i].weight > votes[most].weight) most = i;
    memcpy(best, votes[most].order, rank);
    arena_rewind(l->a, mark);
    return SINTER_OK;
}

/* Is each data-dependent symbol of the expression a dim of the value? */
static bool is_known_to(const dim_table *t, dim d, const plan_value *v)
{
    const dim_node *n = dim_at(t, d);
    if (!dim_is_late(t, d)) return true;
    if (n->kind >= DIM_ADD) return is_known_to(t, n->a, v) && is_known_to(t, n->b, v);
    for (uint32_t i = 0; i < v->rank; i++)
        if (dim_mentions(t, v->dim[i], (uint32_t)n->value)) return true;
    return false;
}

/* May `value` be replaced by a part of the result? The part needs the same sizes, and the step that writes it must
 * already know the size of the whole result. */
static bool may_replace(const lowering *l, uint32_t value, uint32_t part, const work_out *whole)
{
    const plan_value *v = &l->p->value.at[value], *to = &l->p->value.at[part];
    bool may = true;
    for (uint32_t i = 0; i < whole->rank; i++)
        may = may && v->dim[i] == to->dim[i] && is_known_to(l->p->dims, whole->dim[i], v);
    return may;
}

/* Makes a value of the part of `whole` that begins at `first` along the axis and is `size` long. */
static sinter_status part_new(lowering *l, uint32_t whole, int64_t axis, dim first, dim size, uint32_t *out)
{
    plan_value p = l->p->value.at[whole];
    p.offset = dim_mul(l->p->dims, first, p.stride[axis]);
    p.dim[axis] = size;
    plan_value *slot = VEC_PUSH(l->a, &l->p->value);
    if (!slot) return FAIL_MEMORY(l->e, "a concatenation");
    *slot = p;
    *out = l->p->value.count - 1;
    return SINTER_OK;
}

/* Copies adjacent inputs that no step writes in place. A backend with a memory of its own copies them in one step,
 * since each launch costs time there. Else each input has a step of its own. */
static sinter_status copy_parts(lowering *l, const work *w, uint32_t whole, const concat_part *p, uint32_t count)
{
    const int64_t axis = ((const attrs_concat *)w->attrs)->axis;
    if (count > 1 && l->o->backend->copy) {
        uint32_t *from = ARENA_NEW(l->a, uint32_t, count), target;
        if (!from) return FAIL_MEMORY(l->e, "a concatenation");
        dim size = dim_const(l->p->dims, 0);
        for (uint32_t i = 0; i < count; i++) {
            from[i] = lower_current(l, p[i].value);
            size = dim_add(l->p->dims, size, p[i].size);
        }
        bool is_done;
        TRY(part_new(l, whole, axis, p[0].first, size, &target));
        TRY(work_join_into(l, count, from, axis, target, w->name, &is_done));
        if (is_done) return SINTER_OK;
    }
    for (uint32_t i = 0; i < count; i++) TRY(work_copy_into(l, lower_current(l, p[i].value), p[i].target, w->name));
    return SINTER_OK;
}

sinter_status concat_lower(lowering *l, const work *w, uint32_t *value)
{
    for (uint32_t i = 0; i < w->count_in; i++) TRY(work_place(l, w->in[i], PLACE_DEVICE, w->name, &w->in[i]));
    const work_out *o = &w->out[0];
    const attrs_concat *attrs = w->attrs;
    uint8_t order[SINTER_RANK_MAX] = { 0 };
    /* An output is row-major: in another order the whole would be copied once more. */
    if (o->io) work_order_plain(o->rank, order);
    else TRY(most_common_order(l, w, order));
    bool is_row = true;
    for (uint32_t i = 0; i < o->rank; i++) is_row = is_row && order[i] == i;
    const bool direct = o->io && is_row;
    const uint32_t whole =
        plan_value_dense(l->p, direct ? STORAGE_OUTPUT : STORAGE_SLAB, o->name, o->dtype, o->rank, o->dim, order);
    if (!whole) return FAIL_MEMORY(l->e, "a concatenation");
    if (direct) l->p->storage.at[l->p->value.at[whole].storage].io = o->io - 1;
    concat_part *parts = ARENA_NEW(l->a, concat_part, w->count_in + 1);
    if (!parts) return FAIL_MEMORY(l->e, "a concatenation");
    uint32_t count = 0;
    dim at = dim_const(l->p->dims, 0);
    for (uint32_t i = 0; i < w->count_in; i++) {
        const dim size = l->p->value.at[w->in[i]].dim[attrs->axis], first = at;
        at = dim_add(l->p->dims, at, size);
        if (dim_is(l->p->dims, size, 0)) continue;
        uint32_t target;
        TRY(part_new(l, whole, attrs->axis, first, size, &target));
        const uint32_t from = lower_current(l, w->in[i]); /* in an earlier part, where it is an operand again */
        const bool is_written = may_replace(l, from, target, o) && work_redirect(l, from, target);
        parts[count++] = (concat_part){ w->in[i], target, first, size, is_written };
    }
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && !parts[end].is_written; end++) {}
        if (end > i) TRY(copy_parts(l, w, whole, &parts[i], end - i));
        else end++;
    }
    *value = whole;
    return SINTER_OK;
}
