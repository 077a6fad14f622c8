/* SPDX-License-Identifier: Apache-2.0 */
/* ref_einsum.c - einsum: every operand is seen as a view over all labels (a label it lacks has stride 0, a repeated one
 * the sum of its strides); each element of the result sums the product of the operands over the labels that it lacks.
 */
#include "ops/einsum.h"
#include "ops/ref_loops.h"

typedef struct space {
    uint32_t rank;
    int64_t dim[EINSUM_LABELS];
    int64_t stride[EINSUM_IN_MAX][EINSUM_LABELS];
} space;

static void space_add(space *s, int64_t size, uint8_t label, const einsum *x, const view *in)
{
    s->dim[s->rank] = size;
    for (uint32_t i = 0; i < x->count_in; i++) {
        for (uint32_t k = 0; k < x->in[i].count; k++) {
            if (x->in[i].label[k] == label && in[i].dim[k] > 1) s->stride[i][s->rank] += in[i].stride[k];
        }
    }
    s->rank++;
}

/* Steps over a space, moving each operand's offset along; false after the last position. */
static bool space_next(const space *s, uint32_t count_in, int64_t *index, int64_t *at)
{
    for (uint32_t k = s->rank; k-- > 0;) {
        const bool is_inside = ++index[k] < s->dim[k];
        const int64_t steps = is_inside ? 1 : 1 - s->dim[k];
        for (uint32_t i = 0; i < count_in; i++) at[i] += steps * s->stride[i][k];
        if (is_inside) return true;
        index[k] = 0;
    }
    return false;
}

/* The sum over `inner`, whose last axis is `count` long. */
static scalar sum_of(const view *in, uint32_t count_in, const space *inner, const int64_t *start, int64_t count)
{
    const bool is_int = in[0].dtype == SINTER_DTYPE_I64;
    const uint32_t last = inner->rank; /* the innermost axis lies behind those that are stepped */
    scalar total = { .i = 0 };
    int64_t index[EINSUM_LABELS] = { 0 };
    int64_t at[EINSUM_IN_MAX];
    memcpy(at, start, count_in * sizeof(*at));
    do {
        if (count_in == 2) {
            const scalar part =
                ref_dot(&in[0], at[0], inner->stride[0][last], &in[1], at[1], inner->stride[1][last], count);
            if (is_int) total.i = (int64_t)((uint64_t)total.i + (uint64_t)part.i);
            else total.f += part.f;
            continue;
        }
        for (int64_t j = 0; j < count; j++) {
            scalar product = ref_wide_load(&in[0], at[0] + j * inner->stride[0][last]);
            for (uint32_t i = 1; i < count_in; i++) {
                const scalar factor = ref_wide_load(&in[i], at[i] + j * inner->stride[i][last]);
                if (is_int) product.i = (int64_t)((uint64_t)product.i * (uint64_t)factor.i);
                else product.f *= factor.f;
            }
            if (is_int) total.i = (int64_t)((uint64_t)total.i + (uint64_t)product.i);
            else total.f += product.f;
        }
    } while (space_next(inner, count_in, index, at));
    return total;
}

sinter_status reference_einsum(ref_call *c)
{
    const attrs_einsum *attrs = c->attrs;
    TRY(ref_check(c));
    uint32_t rank[EINSUM_IN_MAX] = { 0 };
    view in[EINSUM_IN_MAX];
    sinter_dtype wide = ref_wide_of(c->in[0].dtype);
    for (uint32_t i = 0; i < c->count_in; i++) {
        rank[i] = c->in[i].rank;
        if (c->in[i].dtype == SINTER_DTYPE_F64) wide = SINTER_DTYPE_F64;
    }
    einsum x;
    TRY(einsum_parse(c->e, attrs->equation, c->count_in, rank, &x));
    int64_t size[EINSUM_LABELS] = { 0 };
    bool is_used[EINSUM_LABELS] = { false };
    bool is_empty = false;
    for (uint32_t i = 0; i < c->count_in; i++) {
        TRY(ref_widen(c, &c->in[i], wide, NULL, &in[i]));
        for (uint32_t k = 0; k < rank[i]; k++) {
            const uint8_t label = x.in[i].label[k];
            const bool is_better = !is_used[label] || in[i].dim[k] != 1;
            if (is_better) size[label] = in[i].dim[k];
            is_used[label] = true;
        }
    }
    space *outer = ARENA_NEW(c->scratch, space, 1);
    space *inner = ARENA_NEW(c->scratch, space, 1);
    if (!outer || !inner) return FAIL_MEMORY(c->e, "einsum");
    for (uint32_t k = 0; k < x.out.count; k++) {
        space_add(outer, size[x.out.label[k]], x.out.label[k], &x, in);
        is_used[x.out.label[k]] = false;
    }
    for (uint32_t label = 0; label < EINSUM_LABELS; label++) {
        if (!is_used[label]) continue;
        space_add(inner, size[label], (uint8_t)label, &x, in);
        is_empty = is_empty || !size[label];
    }
    int64_t count = 1; /* of the innermost axis: taken off the stepped ones */
    if (inner->rank) count = inner->dim[--inner->rank];
    const view *y = &c->out[0];
    int64_t index[SINTER_RANK_MAX];
    for (bool more = view_first(y->dim, y->rank, index); more; more = view_next(y->dim, y->rank, index)) {
        int64_t at[EINSUM_IN_MAX] = { 0 };
        for (uint32_t i = 0; i < c->count_in; i++) {
            for (uint32_t k = 0; k < outer->rank; k++) at[i] += index[k] * outer->stride[i][k];
        }
        const scalar sum = is_empty ? (scalar){ .i = 0 } : sum_of(in, c->count_in, inner, at, count);
        ref_store(y, view_offset(y, index), wide, sum);
    }
    return SINTER_OK;
}
