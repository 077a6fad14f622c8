/* SPDX-License-Identifier: Apache-2.0 */
/* move.c - helpers of the ops that move elements: checks for inference, blocks for references. */
#include "ops/move.h"

/* ---- inference ---- */

sinter_status move_dims_check(infer_ctx *c, const char *name, const attr_dims *d, uint32_t count)
{
    if (d->count != count) {
        return FAIL(c->e, INVALID_MODEL, "attribute %s has %u entries, expected %u", name, d->count, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (d->at[i] <= 0 || d->at[i] >= (int64_t)dim_count(c->dims)) {
            if (dim_table_failed(c->dims)) return FAIL_MEMORY(c->e, "dimension expressions");
            return FAIL(c->e, INVALID_MODEL, "attribute %s[%u] is no expression of this graph", name, i);
        }
    }
    return SINTER_OK;
}

sinter_status move_dim_not_negative(infer_ctx *c, const char *what, uint32_t axis, dim d)
{
    if (d == DIM_NONE || dim_range_of(c->dims, d).max >= 0) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "%s of axis %u is %s, expected 0 or more", what, axis, infer_dim_text(c, d));
}

bool move_same(const dim_table *t, dim a, dim b, dim *out)
{
    *out = dim_is_const(t, a, NULL) ? a : b;
    if (a == b || a == DIM_NONE || b == DIM_NONE) return true;
    const dim_range x = dim_range_of(t, a), y = dim_range_of(t, b);
    return x.min <= y.max && y.min <= x.max;
}

sinter_status move_same_check(infer_ctx *c, const char *what, uint32_t axis, dim a, dim b, dim *out)
{
    if (move_same(c->dims, a, b, out)) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "%s: axis %u has %s, expected %s", what, axis, infer_dim_text(c, b),
                infer_dim_text(c, a));
}

sinter_status move_rank_check(infer_ctx *c, uint32_t k, const char *what, uint32_t min, uint32_t max)
{
    if (!infer_has(c, k)) return FAIL(c->e, INVALID_MODEL, "input %u (%s) is absent", k, what);
    const uint32_t rank = c->in[k].rank;
    if (rank >= min && rank <= max) return SINTER_OK;
    if (min == max) return FAIL(c->e, INVALID_MODEL, "%s has rank %u, expected %u", what, rank, min);
    return FAIL(c->e, INVALID_MODEL, "%s has rank %u, expected %u to %u", what, rank, min, max);
}

sinter_status move_int_check(infer_ctx *c, uint32_t k, const char *what)
{
    if (!infer_has(c, k)) return FAIL(c->e, INVALID_MODEL, "input %u (%s) is absent", k, what);
    if (dtype_is_int(c->in[k].dtype)) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "%s has type %s, expected i32 or i64", what, sinter_dtype_name(c->in[k].dtype));
}

sinter_status move_axis_check(infer_ctx *c, const char *what, int64_t axis, uint32_t rank)
{
    if (axis >= 0 && axis < (int64_t)rank) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "%s is %lld, expected 0 or more and below the rank, %u", what, (long long)axis,
                rank);
}

const dim *move_values(infer_ctx *c, uint32_t k, uint32_t *count)
{
    *count = 0;
    if (!infer_has(c, k)) return NULL;
    const infer_value *v = &c->in[k];
    if (v->shape_value) {
        *count = v->shape_count;
        return v->shape_value;
    }
    int64_t n = 1;
    if (!v->data || v->rank > 1 || !dtype_is_int(v->dtype)) return NULL;
    if (v->rank == 1 && (!dim_is_const(c->dims, v->dim[0], &n) || n < 0 || n > MOVE_VALUES_MAX)) return NULL;
    dim *at = move_values_new(c, (uint32_t)n);
    if (!at) return NULL;
    for (int64_t i = 0; i < n; i++) at[i] = dim_const(c->dims, dtype_load_i64(v->dtype, v->data, i));
    *count = (uint32_t)n;
    return at;
}

dim *move_values_new(infer_ctx *c, uint32_t count)
{
    return count > MOVE_VALUES_MAX ? NULL : ARENA_NEW(c->a, dim, count ? count : 1u);
}

void move_values_set(infer_ctx *c, uint32_t k, const dim *at, uint32_t count)
{
    infer_value *v = &c->out[k];
    if (!at || count > MOVE_VALUES_MAX || v->rank > 1 || !dtype_is_int(v->dtype)) return;
    for (uint32_t i = 0; i < count; i++) {
        if (at[i] == DIM_NONE) return;
    }
    v->shape_value = at;
    v->shape_count = count;
}

bool move_const_i64(const infer_ctx *c, uint32_t k, int64_t *value)
{
    if (!infer_has(c, k) || !dtype_is_int(c->in[k].dtype)) return false;
    const infer_value *v = &c->in[k];
    if (v->shape_value) return v->shape_count == 1 && dim_is_const(c->dims, v->shape_value[0], value);
    if (!v->data) return false;
    for (uint32_t i = 0; i < v->rank; i++) {
        if (!dim_is(c->dims, v->dim[i], 1)) return false;
    }
    *value = dtype_load_i64(v->dtype, v->data, 0);
    return true;
}

/* ---- references ---- */

void move_element(const view *dst, int64_t to, const view *src, int64_t from)
{
    dtype_move(dst->dtype, dst->data, to, src->data, from);
}

void move_block(const view *dst, int64_t to, const view *src, int64_t from)
{
    if (dst->rank == 0) {
        move_element(dst, to, src, from);
        return;
    }
    const int64_t bits = (int64_t)sinter_dtype_bits(dst->dtype);
    if (bits >= 8) {
        view d = *dst, s = *src;
        d.data = (char *)dst->data + to * (bits / 8);
        s.data = (char *)src->data + from * (bits / 8);
        view_copy(&d, &s);
        return;
    }
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(dst->dim, dst->rank, i); more; more = view_next(dst->dim, dst->rank, i)) {
        move_element(dst, to + view_offset(dst, i), src, from + view_offset(src, i));
    }
}

void move_block_zero(const view *dst, int64_t to)
{
    static const uint64_t zero = 0;
    view src = *dst;
    /* Only read: the view type has no const form. */
    union {
        const void *from;
        void *at;
    } data = { .from = &zero };
    src.data = data.at;
    memset(src.stride, 0, sizeof(src.stride));
    move_block(dst, to, &src, 0);
}

view move_drop(const view *v, uint32_t axis, uint32_t count)
{
    view out = *v;
    out.rank = v->rank - count;
    for (uint32_t i = axis; i < out.rank; i++) {
        out.dim[i] = v->dim[i + count];
        out.stride[i] = v->stride[i + count];
    }
    return out;
}

bool move_same_dims(const view *a, const view *b)
{
    return a->rank == b->rank && (a->rank == 0 || memcmp(a->dim, b->dim, a->rank * sizeof(a->dim[0])) == 0);
}

void move_in_order(const view *dst, const view *src)
{
    view dense;
    if (view_is_dense(dst)) {
        (void)view_init(&dense, dst->dtype, src->rank, src->dim, dst->data);
        view_copy(&dense, src);
        return;
    }
    if (view_is_dense(src)) {
        (void)view_init(&dense, src->dtype, dst->rank, dst->dim, src->data);
        view_copy(dst, &dense);
        return;
    }
    int64_t i[SINTER_RANK_MAX] = { 0 }, j[SINTER_RANK_MAX] = { 0 };
    bool more_in = view_first(src->dim, src->rank, j);
    for (bool more = view_first(dst->dim, dst->rank, i); more && more_in; more = view_next(dst->dim, dst->rank, i)) {
        move_element(dst, view_offset(dst, i), src, view_offset(src, j));
        more_in = view_next(src->dim, src->rank, j);
    }
}

bool move_index(ref_call *c, const view *indices, int64_t at, int64_t position, int64_t limit, int64_t *out)
{
    const int64_t value = view_load_i64(indices, at);
    *out = value < 0 && value >= -limit ? value + limit : value;
    if (*out >= 0 && *out < limit) return true;
    ref_fault(c, position, value, limit);
    return false;
}

sinter_status move_shape_fault(ref_call *c, const char *what)
{
    return FAIL(c->e, INVALID_ARG, "%s: %s", op_at(c->op)->name, what);
}

void move_sort(int64_t *id, int64_t *spare, int64_t count, move_before_fn before, const void *user)
{
    /* Merge sort from the bottom up: stable, and no recursion. */
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t low = 0; low < count; low += 2 * width) {
            const int64_t middle = low + width < count ? low + width : count;
            const int64_t high = middle + width < count ? middle + width : count;
            int64_t a = low, b = middle;
            for (int64_t k = low; k < high; k++) {
                const bool take_b = a >= middle || (b < high && before(user, id[b], id[a]));
                spare[k] = take_b ? id[b++] : id[a++];
            }
        }
        memcpy(id, spare, (size_t)count * sizeof(*id));
    }
}
