/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - dense views, index stepping, strided copies and broadcasts. */
#include "core/view.h"

#include <string.h>

bool view_init(view *v, sinter_dtype dtype, uint32_t rank, const int64_t *dim, void *data)
{
    *v = (view){ .dtype = dtype, .rank = rank, .data = data };
    if (rank > SINTER_RANK_MAX) return false;
    sinter_tensor t = { .dtype = dtype, .rank = rank };
    int64_t stride = 1;
    for (uint32_t i = rank; i-- > 0;) {
        v->dim[i] = t.dim[i] = dim[i];
        v->stride[i] = stride;
        if (dim[i] < 0 || !i64_mul(stride, dim[i] ? dim[i] : 1, &stride)) return false;
    }
    return sinter_tensor_size(&t) <= INT64_MAX;
}

int64_t view_count(const view *v)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < v->rank; i++) count *= v->dim[i];
    return count;
}

bool view_is_dense(const view *v)
{
    bool is_dense = true;
    int64_t stride = 1;
    for (uint32_t i = v->rank; i-- > 0;) {
        if (v->dim[i] == 0) return true; /* nothing to lay out */
        if (v->dim[i] != 1 && v->stride[i] != stride) is_dense = false;
        if (is_dense) stride *= v->dim[i];
    }
    return is_dense;
}

int64_t view_offset(const view *v, const int64_t *index)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < v->rank; i++) at += index[i] * v->stride[i];
    return at;
}

double view_load_f64(const view *v, int64_t offset)
{
    return dtype_load_f64(v->dtype, v->data, offset);
}

int64_t view_load_i64(const view *v, int64_t offset)
{
    return dtype_load_i64(v->dtype, v->data, offset);
}

void view_store_f64(const view *v, int64_t offset, double value)
{
    dtype_store_f64(v->dtype, v->data, offset, value);
}

void view_store_i64(const view *v, int64_t offset, int64_t value)
{
    dtype_store_i64(v->dtype, v->data, offset, value);
}

bool view_first(const int64_t *dim, uint32_t rank, int64_t *index)
{
    for (uint32_t i = 0; i < rank; i++) {
        index[i] = 0;
        if (dim[i] <= 0) return false;
    }
    return true;
}

bool view_next(const int64_t *dim, uint32_t rank, int64_t *index)
{
    for (uint32_t i = rank; i-- > 0;) {
        if (++index[i] < dim[i]) return true;
        index[i] = 0;
    }
    return false;
}

void view_copy(const view *dst, const view *src)
{
    const uint32_t bits = sinter_dtype_bits(dst->dtype);
    const uint32_t rank = dst->rank;
    int64_t index[SINTER_RANK_MAX] = { 0 };
    if (bits < 8) {
        for (bool more = view_first(dst->dim, rank, index); more; more = view_next(dst->dim, rank, index)) {
            dtype_move(dst->dtype, dst->data, view_offset(dst, index), src->data, view_offset(src, index));
        }
        return;
    }
    const int64_t size = bits / 8;
    if (view_is_dense(dst) && view_is_dense(src)) {
        const int64_t count = view_count(dst);
        if (count > 0) memcpy(dst->data, src->data, (size_t)(count * size));
        return;
    }
    /* Whole rows of the innermost axis: one memcpy each where both sides are contiguous there. */
    const uint32_t outer = rank ? rank - 1 : 0;
    const int64_t row = rank ? dst->dim[rank - 1] : 1;
    const int64_t step_dst = rank ? dst->stride[rank - 1] : 1, step_src = rank ? src->stride[rank - 1] : 1;
    if (row <= 0) return;
    for (bool more = view_first(dst->dim, outer, index); more; more = view_next(dst->dim, outer, index)) {
        char *to = (char *)dst->data + view_offset(dst, index) * size;
        const char *from = (const char *)src->data + view_offset(src, index) * size;
        if (step_dst == 1 && step_src == 1) {
            memcpy(to, from, (size_t)(row * size));
            continue;
        }
        for (int64_t i = 0; i < row; i++) {
            memcpy(to + i * step_dst * size, from + i * step_src * size, (size_t)size);
        }
    }
}

bool view_broadcast(const view *v, uint32_t rank, const int64_t *dim, view *out)
{
    if (rank > SINTER_RANK_MAX || v->rank > rank) return false;
    view b = { .dtype = v->dtype, .rank = rank, .data = v->data };
    const uint32_t lead = rank - v->rank;
    for (uint32_t i = 0; i < rank; i++) {
        b.dim[i] = dim[i];
        if (i < lead) continue;
        const int64_t own = v->dim[i - lead];
        if (own != dim[i] && own != 1) return false;
        b.stride[i] = own == dim[i] ? v->stride[i - lead] : 0;
    }
    *out = b;
    return true;
}

/* ---- overlap ---- */

/* The elements that a view reaches lie in [low, high], counted from data. False for none. */
static bool reach(const view *v, int64_t *low, int64_t *high)
{
    *low = *high = 0;
    for (uint32_t i = 0; i < v->rank; i++) {
        if (v->dim[i] == 0) return false;
        const int64_t span = (v->dim[i] - 1) * v->stride[i];
        if (span < 0) *low += span;
        else *high += span;
    }
    return true;
}

/* The bytes from a view's first one that it takes of each period of `pitch` bytes. */
static int64_t width_in_pitch(const view *v, int64_t size, int64_t pitch)
{
    int64_t inner = size;
    for (uint32_t i = 0; i < v->rank; i++) {
        const int64_t step = (v->stride[i] < 0 ? -v->stride[i] : v->stride[i]) * size;
        if (v->dim[i] > 1 && step % pitch) inner += (v->dim[i] - 1) * step;
    }
    return inner;
}

/* Rows side by side: parts of one tensor whose rows are `pitch` bytes apart, each in columns of its own. */
static bool is_beside(const view *a, int64_t size_a, uintptr_t begin_a, const view *b, int64_t size_b,
                      uintptr_t begin_b)
{
    for (uint32_t i = 0; i < a->rank; i++) {
        const int64_t pitch = (a->stride[i] < 0 ? -a->stride[i] : a->stride[i]) * size_a;
        if (a->dim[i] <= 1 || !pitch) continue;
        const int64_t width_a = width_in_pitch(a, size_a, pitch), width_b = width_in_pitch(b, size_b, pitch);
        const int64_t apart = (int64_t)(begin_b - begin_a) % pitch, at = apart < 0 ? apart + pitch : apart;
        if (width_a <= at && width_b <= pitch - at) return true;
    }
    return false;
}

bool view_span(const view *v, uintptr_t *begin, uintptr_t *end)
{
    int64_t low, high;
    *begin = *end = (uintptr_t)v->data;
    if (!reach(v, &low, &high)) return false;
    /* Numbers of 4 or 2 bits share bytes: the begin is rounded down to whole bytes, the end up. */
    const int64_t bits = sinter_dtype_bits(v->dtype), first = low * bits, past = (high + 1) * bits + 7;
    *begin += (uintptr_t)((first - (first & 7)) / 8);
    *end += (uintptr_t)((past - (past & 7)) / 8);
    return true;
}

bool view_overlaps(const view *a, const view *b)
{
    uintptr_t begin_a, begin_b, end_a, end_b;
    if (!view_span(a, &begin_a, &end_a) || !view_span(b, &begin_b, &end_b)) return false;
    if (end_a <= begin_b || end_b <= begin_a) return false;
    const int64_t size_a = sinter_dtype_bits(a->dtype) / 8, size_b = sinter_dtype_bits(b->dtype) / 8;
    if (!size_a || !size_b) return true; /* numbers of less than 8 bits side by side may share a byte */
    return !is_beside(a, size_a, begin_a, b, size_b, begin_b) && !is_beside(b, size_b, begin_b, a, size_a, begin_a);
}

bool view_is_same(const view *a, const view *b)
{
    if (a->data != b->data || a->rank != b->rank || sinter_dtype_bits(a->dtype) != sinter_dtype_bits(b->dtype))
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i] || (a->dim[i] > 1 && a->stride[i] != b->stride[i])) return false;
    return true;
}
