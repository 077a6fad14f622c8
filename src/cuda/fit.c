/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c - does a tactic bind at all sizes in the ranges of its problem? It is bound at the largest ones to find out.
 *
 * Kernels count in 32 bits. What `bind` refuses at sizes in range is refused here first, so that another kernel takes
 * the problem. No operand of more than 2^40 elements is tried: no device holds one. */
#include "cuda/fit.h"

#include "cuda/launch.h"

#include <string.h>

enum { OPERANDS_MOST = 128 };
static const int64_t held_most = (int64_t)1 << 40;
/* What kernels count is at most 64 times the elements of their largest operand, so it stays below 2^30 here; the heads
 * of attention are an axis of its grid, which ends at 65535. */
static const int64_t safe_most = (int64_t)1 << 24, heads_most = 65535;

/* Chooses a size for each range: the largest size, limited to `cap`. If `one` is given, all other ranges have their
 * smallest size. */
typedef struct corner {
    int64_t cap;
    const dim_range *one;
} corner;

static int64_t size_at(const corner *c, dim_range d)
{
    const bool is_least = c->one && (d.min != c->one->min || d.max != c->one->max);
    const int64_t least = d.min > 1 || d.max == 0 ? d.min : 1, most = is_least ? least : cuda_range_most(d);
    return most < c->cap ? most : least > c->cap ? least : c->cap;
}

static const problem_operand *operand_at(const problem *p, uint32_t i)
{
    return i < p->count_in ? &p->in[i] : &p->out[i - p->count_in];
}

/* The product of all sizes above 0. Kernels also step along the other axes of an empty operand. */
static int64_t count_at(const corner *c, const problem_operand *o)
{
    int64_t count = 1;
    for (uint32_t k = 0; k < o->rank; k++) {
        const int64_t size = size_at(c, o->dim[k]);
        if (size && !i64_mul(count, size, &count)) count = INT64_MAX;
    }
    return count;
}

static int64_t most_at(const corner *c, const problem *p)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < p->count_in + p->count_out; i++) {
        const int64_t own = count_at(c, operand_at(p, i));
        if (own > most) most = own;
    }
    return most;
}

/* A view in the operand's order. Rows of a strided operand are padded, so no kernel can join axes. */
static void view_at(const corner *c, const problem_operand *o, view *v)
{
    int64_t stride = o->is_gapped ? 4 : 1;
    *v = (view){ .dtype = o->dtype, .rank = o->rank };
    for (uint32_t k = o->rank; k-- > 0;) {
        const uint32_t axis = o->order[k];
        v->dim[axis] = size_at(c, o->dim[axis]);
        v->stride[axis] = stride;
        if (v->dim[axis] > 1 && !i64_mul(stride, v->dim[axis], &stride)) stride = held_most;
        if (o->is_strided && v->dim[axis] > 1) stride = (stride + 31) / 16 * 16;
    }
}

static bool binds_at(env *e, corner *c, const problem *p, const kernel *k, const tactic *t)
{
    static const int64_t one = 1;
    view v[OPERANDS_MOST];
    cuda_record record = { 0 };
    while (c->cap > one && most_at(c, p) > held_most) c->cap /= 2;
    bool has_elements = false;
    for (uint32_t i = 0; i < p->count_in + p->count_out; i++) {
        view_at(c, operand_at(p, i), &v[i]);
        has_elements = has_elements || (i >= p->count_in && v[i].dtype != SINTER_DTYPE_NONE && view_count(&v[i]) > 0);
    }
    /* Sizes that do not go together, since each is at its own end, are no sizes to refuse. */
    return !has_elements || k->bind(e, p, t, p->attrs, v, v + p->count_in, &record) != SINTER_UNSUPPORTED;
}

const char *cuda_fit(const kernel *k, const problem *p, const tactic *t, sinter_error *error)
{
    corner all = { .cap = INT64_MAX };
    env e = { .error = error };
    *error = (sinter_error){ 0 };
    if (k->where != KERNEL_ON_DEVICE || most_at(&all, p) <= (p->op == OP_attention ? heads_most : safe_most))
        return NULL;
    if (p->count_in + p->count_out > OPERANDS_MOST) return NULL;
    if (!binds_at(&e, &all, p, k, t)) return error->text;
    /* Where all at once are too many, each size alone can be larger than that. */
    for (uint32_t i = 0; all.cap != INT64_MAX && i < p->count_in + p->count_out; i++)
        for (uint32_t n = 0; n < operand_at(p, i)->rank; n++) {
            corner one = { .cap = held_most, .one = &operand_at(p, i)->dim[n] };
            if (cuda_range_most(*one.one) > all.cap && !binds_at(&e, &one, p, k, t)) return error->text;
        }
    return NULL;
}
