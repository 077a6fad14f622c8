/* SPDX-License-Identifier: Apache-2.0 */
/* concat.c - concatenation by address: each input becomes a part of the result.
 *
 * Where the kernel that makes an input can write with strides and nobody has read the input yet, it writes straight
 * into the result; otherwise one copy moves it there. Either way no step is left that does the joining. */
#include "tune/lower.h"

#include <string.h>

/* The order that most bytes of the inputs already have. */
static void vote(lowering *l, const work *w, uint8_t *best)
{
    const uint32_t rank = w->out[0].rank;
    double best_weight = -1;
    for (uint32_t i = 0; i < rank; i++) best[i] = (uint8_t)i;
    for (uint32_t i = 0; i < w->count_in; i++) {
        uint8_t order[SINTER_RANK_MAX];
        bool is_dense;
        double weight = 0;
        view_dims_order(l->p->dims, &l->p->value.at[w->in[i]], order, &is_dense);
        for (uint32_t k = 0; k < w->count_in; k++) {
            uint8_t other[SINTER_RANK_MAX];
            const plan_value *v = &l->p->value.at[w->in[k]];
            view_dims_order(l->p->dims, v, other, &is_dense);
            if (memcmp(order, other, rank) == 0)
                weight += (double)dim_range_of(l->p->dims, v->dim[w->out[0].rank - 1]).opt + 1;
        }
        if (weight > best_weight) {
            best_weight = weight;
            memcpy(best, order, rank);
        }
    }
}

sinter_status concat_lower(lowering *l, const work *w, uint32_t *value)
{
    for (uint32_t i = 0; i < w->count_in; i++) TRY(work_place(l, w->in[i], PLACE_DEVICE, w->name, &w->in[i]));
    const work_out *o = &w->out[0];
    const attrs_concat *attrs = w->attrs;
    uint8_t order[SINTER_RANK_MAX] = { 0 };
    vote(l, w, order);
    bool is_row = true;
    for (uint32_t i = 0; i < o->rank; i++) is_row = is_row && order[i] == i;
    const bool direct = o->io && is_row;
    const uint32_t whole =
        plan_value_dense(l->p, direct ? STORAGE_OUTPUT : STORAGE_SLAB, o->name, o->dtype, o->rank, o->dim, order);
    if (!whole) return FAIL_MEMORY(l->e, "a concatenation");
    if (direct) l->p->storage.at[l->p->value.at[whole].storage].io = o->io - 1;
    dim at = dim_const(l->p->dims, 0);
    for (uint32_t i = 0; i < w->count_in; i++) {
        plan_value part = l->p->value.at[whole];
        const dim size = l->p->value.at[w->in[i]].dim[attrs->axis];
        part.offset = dim_mul(l->p->dims, at, part.stride[attrs->axis]);
        part.dim[attrs->axis] = size;
        at = dim_add(l->p->dims, at, size);
        if (dim_is(l->p->dims, size, 0)) continue;
        plan_value *slot = VEC_PUSH(l->a, &l->p->value);
        if (!slot) return FAIL_MEMORY(l->e, "a concatenation");
        *slot = part;
        const uint32_t target = l->p->value.count - 1;
        const uint32_t from = w->in[i];
        if (sinter_dtype_bits(o->dtype) < 8 || !work_redirect(l, from, target)) {
            TRY(work_copy_into(l, from, target, w->name));
            continue;
        }
        /* Where the value is an operand again, it now lies in this part. */
        for (uint32_t k = i + 1; k < w->count_in; k++)
            if (w->in[k] == from) w->in[k] = target;
    }
    *value = whole;
    return SINTER_OK;
}
