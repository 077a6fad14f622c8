/* SPDX-License-Identifier: Apache-2.0 */
/* space.c - spaces in the order of memory, and what joins their axes. */
#include "cuda/space.h"

#include <string.h>

static bool is_used(const expr *x, bool is_out, uint32_t index)
{
    if (!x) return is_out && index == 0;
    for (uint32_t i = 0; i < x->count; i++) {
        const expr_instr *n = &x->at[i];
        if (n->operand == index && (is_out ? n->op == EXPR_STORE : n->op == EXPR_LOAD)) return true;
    }
    return false;
}

static bool range_equal(dim_range a, dim_range b)
{
    return a.min == b.min && a.max == b.max && a.divisor == b.divisor;
}

/* The operand has nothing along axis `axis` of the result. */
static bool is_repeated(const problem_operand *o, uint32_t rank, uint32_t axis)
{
    const uint32_t lead = rank - o->rank;
    return axis < lead || o->dim[axis - lead].max == 1;
}

/* `outer` and `inner`, axes of the result, are one run of o's memory. */
static bool runs_on(const problem_operand *o, const problem_operand *all, uint32_t outer, uint32_t inner)
{
    const uint32_t lead = all->rank - o->rank;
    const bool none = is_repeated(o, all->rank, outer);
    if (none != is_repeated(o, all->rank, inner)) return false;
    if (none) return true;
    if (o->is_strided || !range_equal(o->dim[outer - lead], all->dim[outer]) ||
        !range_equal(o->dim[inner - lead], all->dim[inner]))
        return false;
    uint32_t at = 0;
    while (o->order[at] != outer - lead) at++;
    do at++;
    while (at < o->rank && o->dim[o->order[at]].max == 1);
    return at < o->rank && o->order[at] == inner - lead;
}

static int64_t saturated(int64_t a, int64_t b)
{
    int64_t c = 0;
    return i64_mul(a, b, &c) ? c : INT64_MAX;
}

static dim_range joined(dim_range a, dim_range b)
{
    return (dim_range){ saturated(a.min, b.min), saturated(a.max, b.max), saturated(a.opt, b.opt),
                        saturated(a.divisor, b.divisor) };
}

static bool may_join(const problem *p, const expr *x, uint32_t outer, uint32_t inner, dim_range so_far)
{
    const dim_range all = joined(p->out[0].dim[outer], so_far);
    if (all.max > INT32_MAX) return false;
    for (uint32_t i = 0; i < p->count_in; i++)
        if (is_used(x, false, i) && !runs_on(&p->in[i], &p->out[0], outer, inner)) return false;
    for (uint32_t i = 0; i < p->count_out; i++)
        if (is_used(x, true, i) && !runs_on(&p->out[i], &p->out[0], outer, inner)) return false;
    return true;
}

sinter_dtype space_bits(sinter_dtype dtype)
{
    switch (sinter_dtype_bits(dtype)) {
    case 8: return SINTER_DTYPE_U8;
    case 16: return SINTER_DTYPE_U16;
    case 32: return SINTER_DTYPE_U32;
    case 64: return SINTER_DTYPE_U64;
    default: return SINTER_DTYPE_NONE;
    }
}

static void seen_init(const space *s, const problem_operand *o, uint32_t rank, bool as_bits, problem_operand *seen)
{
    const uint32_t lead = rank - o->rank;
    bool is_done[SINTER_RANK_MAX] = { false };
    *seen = (problem_operand){ .dtype = as_bits ? space_bits(o->dtype) : o->dtype,
                               .rank = (uint8_t)s->count,
                               .is_const = o->is_const,
                               .is_gapped = o->is_gapped,
                               .is_strided = o->is_strided };
    for (uint32_t g = 0; g < s->count; g++) {
        seen->dim[g] = (dim_range){ 1, 1, 1, 1 };
        for (uint32_t k = s->first[g]; k <= s->last[g]; k++)
            if (s->axis[k] >= lead) seen->dim[g] = joined(seen->dim[g], o->dim[s->axis[k] - lead]);
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < o->rank; i++)
        for (uint32_t g = 0; g < s->count; g++)
            for (uint32_t k = s->first[g]; k <= s->last[g]; k++)
                if (s->axis[k] == o->order[i] + lead && o->dim[o->order[i]].max != 1 && !is_done[g]) {
                    seen->order[at++] = (uint8_t)g;
                    is_done[g] = true;
                }
    for (uint32_t g = 0; g < s->count; g++)
        if (!is_done[g]) seen->order[at++] = (uint8_t)g;
}

const char *space_init(const problem *p, const expr *program, bool joins, bool as_bits, space *s)
{
    const problem_operand *all = &p->out[0];
    memset(s, 0, sizeof *s);
    if (p->count_in > SPACE_IN || p->count_out > SPACE_OUT) return "more operands than a launch has parameters for";
    uint32_t axes = 0;
    s->rank = all->rank;
    for (uint32_t i = 0; i < all->rank; i++)
        if (all->dim[i].min > INT32_MAX) return "an axis of more than 2^31 elements";
    /* Axes of one element go first where they stay. */
    for (uint32_t i = 0; i < all->rank && !joins; i++)
        if (all->dim[all->order[i]].max == 1) s->axis[axes++] = all->order[i];
    for (uint32_t i = 0; i < all->rank; i++)
        if (all->dim[all->order[i]].max != 1) s->axis[axes++] = all->order[i];
    for (uint32_t k = 0; k < axes; k++) {
        s->first[s->count] = s->last[s->count] = (uint8_t)k;
        dim_range so_far = all->dim[s->axis[k]];
        while (joins && k + 1 < axes && may_join(p, program, s->axis[k], s->axis[k + 1], so_far)) {
            so_far = joined(so_far, all->dim[s->axis[++k]]);
            s->last[s->count] = (uint8_t)k;
        }
        s->count++;
    }
    const bool is_scalar = s->count == 0;
    if (is_scalar) {
        /* One axis of one element. */
        s->count = 1;
        s->first[0] = 1;
    }
    for (uint32_t i = 0; i < p->count_in; i++)
        if (is_used(program, false, i)) {
            if (p->in[i].rank > all->rank) return "an operand of more axes than the result";
            seen_init(s, &p->in[i], all->rank, false, &s->in[i]);
        }
    for (uint32_t i = 0; i < p->count_out; i++)
        if (is_used(program, true, i)) {
            if (p->out[i].rank != all->rank) return "results of different ranks";
            seen_init(s, &p->out[i], all->rank, as_bits && !program, &s->out[i]);
        }
    s->p = *p;
    s->p.in = s->in;
    s->p.out = s->out;
    s->p.epilogue = program;
    emit_space_of(&s->p, &s->emit);
    s->emit.inner = (uint8_t)(s->count - 1);
    s->emit.width = 16;
    return emit_reject(&s->emit);
}

void space_sizes(const space *s, uint32_t *widest, uint32_t *narrowest)
{
    *widest = 1;
    *narrowest = 8;
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t i = 0; i < (side ? s->p.count_out : s->p.count_in); i++) {
            const problem_operand *o = side ? &s->out[i] : &s->in[i];
            if (!o->rank || (!side && o->dim[s->count - 1].max == 1)) continue;
            const uint32_t size = sinter_dtype_bits(o->dtype) / 8;
            if (size > *widest) *widest = size;
            if (size < *narrowest) *narrowest = size;
        }
}

uint32_t space_vector(const space *s, uint32_t most)
{
    const uint32_t inner = s->count - 1;
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t i = 0; i < (side ? s->p.count_out : s->p.count_in); i++) {
            const problem_operand *o = side ? &s->out[i] : &s->in[i];
            if (!o->rank || o->dim[inner].max == 1) continue;
            uint32_t at = o->rank;
            while (at > 1 && o->dim[o->order[at - 1]].max == 1) at--;
            const bool is_adjacent = o->order[at - 1] == inner && !o->is_gapped;
            const uint32_t own = is_adjacent ? cuda_operand_vector(o, most) : 1;
            if (own < most) most = own;
        }
    return most;
}

bool space_is_even(const space *s, uint32_t width)
{
    const dim_range d = s->out[0].dim[s->count - 1];
    const int64_t known = problem_dim_is_static(d) ? d.max : d.divisor;
    return known % width == 0;
}

bool space_is_wide(const space *s, uint32_t width)
{
    int64_t total = 1;
    for (uint32_t k = 0; k < s->count; k++) {
        const int64_t most = s->out[0].dim[k].max, size = k + 1 == s->count ? cuda_ceil_div(most, width) : most;
        if (!i64_mul(total, size, &total) || total > INT32_MAX) return true;
    }
    return false;
}

int64_t space_count(const space *s)
{
    return cuda_operand_count(&s->out[0]);
}

view space_view(const space *s, const view *v, const problem_operand *seen)
{
    view w = { .dtype = seen->dtype, .rank = s->count, .data = v->data };
    const uint32_t lead = s->rank - v->rank;
    for (uint32_t g = 0; g < s->count; g++) {
        w.dim[g] = 1;
        /* The innermost member of more than one element has the pitch of all. */
        for (uint32_t k = s->last[g] + 1u; k-- > s->first[g];) {
            if (s->axis[k] < lead) continue;
            const uint32_t own = s->axis[k] - lead;
            if (w.dim[g] == 1) w.stride[g] = v->stride[own];
            w.dim[g] *= v->dim[own];
        }
    }
    return w;
}

void space_dims(const space *s, const view *out, int64_t *size_at)
{
    const view v = space_view(s, &out[0], &s->out[0]);
    memcpy(size_at, v.dim, sizeof v.dim);
}

sinter_status space_bind(env *e, const space *s, const view *in, const view *out, cuda_record *r)
{
    view seen_in[SPACE_IN], seen_out[SPACE_OUT];
    for (uint32_t i = 0; i < s->p.count_in; i++)
        if (s->in[i].rank) seen_in[i] = space_view(s, &in[i], &s->in[i]);
    for (uint32_t i = 0; i < s->p.count_out; i++)
        if (s->out[i].rank) seen_out[i] = space_view(s, &out[i], &s->out[i]);
    for (uint32_t k = 0; k < s->count; k++)
        if (space_view(s, &out[0], &s->out[0]).dim[k] > INT32_MAX)
            return FAIL(e, UNSUPPORTED, "an axis of more than 2^31 elements");
    return emit_bind(e, &s->emit, seen_in, seen_out, r);
}
