/* SPDX-License-Identifier: Apache-2.0 */
/* ref_move.c - references of the ops that lay elements out anew.
 *
 * Each is a view of the input or of the output, and one copy between views: long runs are copied at once, because
 * constants of any size are folded with these. Shapes come from expressions that were checked as far as they were
 * known, so what a run brings is checked again here, before anything is read. */
#include "ops/move.h"

sinter_status reference_copy(ref_call *c)
{
    if (!move_same_dims(&c->in[0], &c->out[0])) return move_shape_fault(c, "input and output have different shapes");
    view_copy(&c->out[0], &c->in[0]);
    return SINTER_OK;
}

sinter_status reference_reshape(ref_call *c)
{
    if (view_count(&c->in[0]) != view_count(&c->out[0])) {
        return FAIL(c->e, INVALID_ARG, "reshape: the input has %lld elements, the new shape has %lld",
                    (long long)view_count(&c->in[0]), (long long)view_count(&c->out[0]));
    }
    move_in_order(&c->out[0], &c->in[0]);
    return SINTER_OK;
}

static sinter_status transposed(ref_call *c, view *src)
{
    const attrs_transpose *a = c->attrs;
    const view *in = &c->in[0];
    if (a->perm.count != in->rank) return move_shape_fault(c, "perm is not as long as the rank");
    for (uint32_t i = 0; i < in->rank; i++) {
        if (a->perm.at[i] < 0 || a->perm.at[i] >= (int64_t)in->rank)
            return move_shape_fault(c, "perm names an axis that is not there");
        src->dim[i] = in->dim[a->perm.at[i]];
        src->stride[i] = in->stride[a->perm.at[i]];
    }
    return SINTER_OK;
}

/* The offset of the first element is kept apart: a view of a type under a byte cannot begin inside a byte. */
static sinter_status sliced(ref_call *c, view *src, int64_t *from)
{
    const attrs_slice *a = c->attrs;
    const view *in = &c->in[0];
    if (a->start.count != in->rank || a->step.count != in->rank || a->size.count != in->rank) {
        return move_shape_fault(c, "start, step and size are not as long as the rank");
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        const int64_t start = a->start.at[i], step = a->step.at[i], size = a->size.at[i];
        int64_t last = 0;
        src->dim[i] = size;
        if (size == 0) continue;
        const bool fits = size > 0 && i64_mul(size - 1, step, &last) && i64_add(last, start, &last);
        if (!fits || start < 0 || start >= in->dim[i] || last < 0 || last >= in->dim[i]) {
            return FAIL(c->e, INVALID_ARG,
                        "slice: axis %u has size %lld, the slice takes %lld elements from %lld with step %lld", i,
                        (long long)in->dim[i], (long long)size, (long long)start, (long long)step);
        }
        *from += start * in->stride[i];
        src->stride[i] = size == 1 ? 0 : in->stride[i] * step; /* size 1: the step may be anything */
    }
    return SINTER_OK;
}

sinter_status reference_copy_view(ref_call *c)
{
    const view *out = &c->out[0];
    view src = c->in[0];
    int64_t from = 0;
    if (c->op == OP_transpose) {
        TRY(transposed(c, &src));
    } else if (c->op == OP_slice) {
        TRY(sliced(c, &src, &from));
    } else if (!view_broadcast(&c->in[0], out->rank, out->dim, &src)) {
        return move_shape_fault(c, "the input does not broadcast to the output's shape");
    }
    if (!move_same_dims(out, &src))
        return move_shape_fault(c, "the output has another shape than the view of the input");
    if (view_count(out) > 0) move_block(out, 0, &src, from);
    return SINTER_OK;
}

sinter_status reference_concat(ref_call *c)
{
    const attrs_concat *a = c->attrs;
    const view *out = &c->out[0];
    if (a->axis < 0 || a->axis >= (int64_t)out->rank) return move_shape_fault(c, "the axis is not there");
    int64_t total = 0;
    for (uint32_t k = 0; k < c->count_in; k++) {
        view part = *out;
        part.dim[a->axis] = c->in[k].rank == out->rank ? c->in[k].dim[a->axis] : 0;
        if (!move_same_dims(&part, &c->in[k]) || c->in[k].dtype != out->dtype) {
            return FAIL(c->e, INVALID_ARG, "concat: input %u does not have the shape of the others", k);
        }
        total += part.dim[a->axis];
    }
    if (total != out->dim[a->axis]) return move_shape_fault(c, "the output is not as long as the inputs together");
    int64_t at = 0;
    for (uint32_t k = 0; k < c->count_in; k++) {
        view part = *out;
        part.dim[a->axis] = c->in[k].dim[a->axis];
        if (view_count(&part) > 0) move_block(&part, at * out->stride[a->axis], &c->in[k], 0);
        at += part.dim[a->axis];
    }
    return SINTER_OK;
}

/* ---- pad ---- */

static sinter_status pad_constant(ref_call *c, const int64_t *begin)
{
    const view *in = &c->in[0], *out = &c->out[0];
    view fill, middle = *out, src = *in;
    int64_t to = 0, from = 0;
    if (move_given(c, 1)) {
        if (view_count(&c->in[1]) != 1 || c->in[1].dtype != out->dtype)
            return move_shape_fault(c, "the pad value is not one element of the input's type");
        fill = *out;
        fill.data = c->in[1].data;
        memset(fill.stride, 0, sizeof(fill.stride));
        move_block(out, 0, &fill, 0);
    } else {
        move_block_zero(out, 0);
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        const int64_t low = begin[i] > 0 ? begin[i] : 0;
        const int64_t high = in->dim[i] + begin[i] < out->dim[i] ? in->dim[i] + begin[i] : out->dim[i];
        if (high <= low) return SINTER_OK;
        middle.dim[i] = src.dim[i] = high - low;
        to += low * out->stride[i];
        from += (low - begin[i]) * in->stride[i];
    }
    move_block(&middle, to, &src, from);
    return SINTER_OK;
}

static sinter_status pad_mirror(ref_call *c, const int64_t *begin, const int64_t *end)
{
    const attrs_pad *a = c->attrs;
    const view *in = &c->in[0], *out = &c->out[0];
    int64_t *map[SINTER_RANK_MAX] = { 0 };
    for (uint32_t i = 0; i < in->rank; i++) {
        /* What is cropped goes first: the fill is made of what is left. */
        const int64_t low = begin[i] < 0 ? -begin[i] : 0, left = in->dim[i] - low + (end[i] < 0 ? end[i] : 0);
        if (left <= 0) return move_shape_fault(c, "an axis is empty, so there is nothing to fill it from");
        map[i] = ARENA_NEW(c->scratch, int64_t, (size_t)out->dim[i]);
        if (!map[i]) return FAIL_MEMORY(c->e, "the padding");
        for (int64_t k = 0; k < out->dim[i]; k++)
            map[i][k] = low + pad_source(a->mode, k - (begin[i] > 0 ? begin[i] : 0), left);
    }
    if (in->rank == 0) {
        move_element(out, 0, in, 0);
        return SINTER_OK;
    }
    const uint32_t last = in->rank - 1;
    const int64_t begin_last = begin[last] > 0 ? begin[last] : 0;
    const int64_t stop = out->dim[last] - (end[last] > 0 ? end[last] : 0),
                  run = stop > begin_last ? stop - begin_last : 0;
    view to_run = {
        .dtype = out->dtype, .rank = 1, .dim = { run }, .stride = { out->stride[last] }, .data = out->data
    };
    view from_run = { .dtype = in->dtype, .rank = 1, .dim = { run }, .stride = { in->stride[last] }, .data = in->data };
    int64_t index[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(out->dim, last, index); more; more = view_next(out->dim, last, index)) {
        int64_t to = 0, from = 0;
        for (uint32_t i = 0; i < last; i++) {
            to += index[i] * out->stride[i];
            from += map[i][index[i]] * in->stride[i];
        }
        if (run > 0) {
            move_block(&to_run, to + begin_last * out->stride[last], &from_run,
                       from + map[last][begin_last] * in->stride[last]);
        }
        for (int64_t k = 0; k < out->dim[last]; k++) {
            if (run > 0 && k == begin_last) k = stop;
            if (k < out->dim[last])
                move_element(out, to + k * out->stride[last], in, from + map[last][k] * in->stride[last]);
        }
    }
    return SINTER_OK;
}

sinter_status reference_pad(ref_call *c)
{
    const attrs_pad *a = c->attrs;
    const view *in = &c->in[0], *out = &c->out[0];
    if (a->begin.count != in->rank || a->end.count != in->rank || out->rank != in->rank) {
        return move_shape_fault(c, "begin and end are not as long as the rank");
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        int64_t size = 0;
        if (!i64_add(in->dim[i], a->begin.at[i], &size) || !i64_add(size, a->end.at[i], &size) || size != out->dim[i]) {
            return FAIL(c->e, INVALID_ARG, "pad: axis %u of %lld with %lld and %lld does not become %lld", i,
                        (long long)in->dim[i], (long long)a->begin.at[i], (long long)a->end.at[i],
                        (long long)out->dim[i]);
        }
    }
    if (view_count(out) == 0) return SINTER_OK;
    return a->mode == pad_mode_constant ? pad_constant(c, a->begin.at) : pad_mirror(c, a->begin.at, a->end.at);
}

/* ---- tile ---- */

enum { REPEATED = 16384 };

/* Repeats the first `size` bytes so often. What is copied grows, but stays in the caches. */
static void repeat_bytes(char *to, int64_t size, int64_t times)
{
    const int64_t all = size * times;
    for (int64_t done = size, some; done < all; done += some) {
        some = done < REPEATED || size >= REPEATED ? done : REPEATED / size * size;
        if (size >= REPEATED) some = size;
        if (some > all - done) some = all - done;
        memcpy(to + done, to, (size_t)some);
    }
}

/* The input goes into the first of the repeats along all axes; then each axis is repeated, the innermost first. */
static void tile_dense(const view *in, const view *out, const int64_t *repeats)
{
    const int64_t size = sinter_dtype_bits(out->dtype) / 8;
    view first = *out;
    for (uint32_t i = 0; i < in->rank; i++) first.dim[i] = in->dim[i];
    view_copy(&first, in);
    int64_t index[SINTER_RANK_MAX] = { 0 };
    for (uint32_t i = in->rank; i-- > 0;) {
        if (repeats[i] == 1) continue;
        for (bool more = view_first(first.dim, i, index); more; more = view_next(first.dim, i, index)) {
            int64_t at = 0;
            for (uint32_t k = 0; k < i; k++) at += index[k] * out->stride[k];
            repeat_bytes((char *)out->data + at * size, in->dim[i] * out->stride[i] * size, repeats[i]);
        }
    }
}

sinter_status reference_tile(ref_call *c)
{
    const attrs_tile *a = c->attrs;
    const view *in = &c->in[0], *out = &c->out[0];
    if (a->repeats.count != in->rank || out->rank != in->rank)
        return move_shape_fault(c, "repeats is not as long as the rank");
    for (uint32_t i = 0; i < in->rank; i++) {
        int64_t size = 0;
        if (!i64_mul(in->dim[i], a->repeats.at[i], &size) || size != out->dim[i])
            return move_shape_fault(c, "the output is not the input, repeated");
    }
    if (view_count(out) == 0) return SINTER_OK;
    if (view_is_dense(out) && sinter_dtype_bits(out->dtype) >= 8) {
        tile_dense(in, out, a->repeats.at);
        return SINTER_OK;
    }
    /* An axis that repeats is two: a stride of 0, and the input's own. One copy does it all, while the ranks suffice.
     */
    view dst = { .dtype = out->dtype, .data = out->data }, src = { .dtype = in->dtype, .data = in->data };
    int64_t index[SINTER_RANK_MAX] = { 0 }, outer[SINTER_RANK_MAX], step[SINTER_RANK_MAX];
    uint32_t loops = 0, needed = 0;
    for (uint32_t i = 0; i < in->rank; i++) needed += (a->repeats.at[i] > 1 ? 1u : 0u) + (in->dim[i] > 1 ? 1u : 0u);
    for (uint32_t i = 0; i < in->rank; i++) {
        if (a->repeats.at[i] > 1 && needed > SINTER_RANK_MAX) {
            outer[loops] = a->repeats.at[i];
            step[loops++] = in->dim[i] * out->stride[i];
            needed--;
        } else if (a->repeats.at[i] > 1) {
            dst.dim[dst.rank] = src.dim[dst.rank] = a->repeats.at[i];
            dst.stride[dst.rank] = in->dim[i] * out->stride[i];
            src.stride[dst.rank++] = 0;
        }
        if (in->dim[i] > 1) {
            dst.dim[dst.rank] = src.dim[dst.rank] = in->dim[i];
            dst.stride[dst.rank] = out->stride[i];
            src.stride[dst.rank++] = in->stride[i];
        }
    }
    src.rank = dst.rank;
    for (bool more = view_first(outer, loops, index); more; more = view_next(outer, loops, index)) {
        int64_t to = 0;
        for (uint32_t i = 0; i < loops; i++) to += index[i] * step[i];
        move_block(&dst, to, &src, 0);
    }
    return SINTER_OK;
}

/* ---- trilu, reverse_sequence ---- */

sinter_status reference_trilu(ref_call *c)
{
    const attrs_trilu *a = c->attrs;
    const view *in = &c->in[0], *out = &c->out[0];
    if (in->rank < 2 || !move_same_dims(in, out))
        return move_shape_fault(c, "the input is no matrix of the output's shape");
    if (view_count(out) == 0) return SINTER_OK;
    view_copy(out, in);
    const uint32_t row_axis = in->rank - 2;
    const int64_t rows = in->dim[row_axis], columns = in->dim[row_axis + 1];
    const int64_t asked = a->k.count ? a->k.at[0] : 0;
    const int64_t k = asked > columns ? columns : asked < -rows ? -rows : asked;
    view part = { .dtype = out->dtype, .rank = 1, .stride = { out->stride[row_axis + 1] }, .data = out->data };
    int64_t index[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(out->dim, row_axis + 1, index); more; more = view_next(out->dim, row_axis + 1, index)) {
        /* Upper keeps columns from the diagonal on, lower keeps those up to it. */
        int64_t cut = index[row_axis] + k + (a->upper ? 0 : 1);
        cut = cut < 0 ? 0 : cut > columns ? columns : cut;
        const int64_t low = a->upper ? 0 : cut, high = a->upper ? cut : columns;
        if (high <= low) continue;
        part.dim[0] = high - low;
        index[row_axis + 1] = low;
        move_block_zero(&part, view_offset(out, index));
        index[row_axis + 1] = 0;
    }
    return SINTER_OK;
}

sinter_status reference_reverse_sequence(ref_call *c)
{
    const attrs_reverse_sequence *a = c->attrs;
    const view *in = &c->in[0], *out = &c->out[0], *length = &c->in[1];
    const int64_t batch = a->batch_axis, time = a->time_axis;
    if (!move_same_dims(in, out) || batch < 0 || time < 0 || batch >= (int64_t)in->rank || time >= (int64_t)in->rank ||
        batch == time || length->rank != 1 || length->dim[0] != in->dim[batch])
        return move_shape_fault(c, "the shapes of input, lengths and output do not go together");
    if (view_count(out) == 0) return SINTER_OK;
    const uint32_t high = (uint32_t)(batch > time ? batch : time), low = (uint32_t)(batch > time ? time : batch);
    view to = move_drop(out, high, 1), from = move_drop(in, high, 1);
    to = move_drop(&to, low, 1);
    from = move_drop(&from, low, 1);
    const uint32_t bits = sinter_dtype_bits(out->dtype);
    const bool is_run = bits >= 8 && view_is_dense(&to) && view_is_dense(&from);
    const int64_t size = bits / 8, run = view_count(&to) * size;
    for (int64_t b = 0; b < in->dim[batch]; b++) {
        int64_t n = view_load_i64(length, b * length->stride[0]);
        if (n < 0 || n > in->dim[time]) {
            ref_fault(c, b, n, in->dim[time] + 1);
            n = 0;
        }
        for (int64_t t = 0; t < in->dim[time]; t++) {
            const int64_t source = t < n ? n - 1 - t : t;
            const int64_t at = b * out->stride[batch] + t * out->stride[time],
                          at_in = b * in->stride[batch] + source * in->stride[time];
            if (is_run) memcpy((char *)out->data + at * size, (const char *)in->data + at_in * size, (size_t)run);
            else move_block(&to, at, &from, at_in);
        }
    }
    return SINTER_OK;
}

sinter_status reference_bit_cast(ref_call *c)
{
    view from = c->in[0];
    if (!move_same_dims(&from, &c->out[0])) return move_shape_fault(c, "the output has other dims");
    from.dtype = c->out[0].dtype;
    move_block(&c->out[0], 0, &from, 0);
    return SINTER_OK;
}
