/* SPDX-License-Identifier: Apache-2.0 */
/* ref_index.c - references of gather, scatter and their kin.
 *
 * Indices are data, so they are hostile: one outside its axis reads nothing and writes nothing. What it should have
 * read is zero, what it should have written is dropped, and the fault is recorded with the position of the index. */
#include "ops/move.h"

sinter_status reference_gather(ref_call *c)
{
    const attrs_gather *a = c->attrs;
    const view *data = &c->in[0], *indices = &c->in[1], *out = &c->out[0];
    if (a->axis < 0 || a->axis >= (int64_t)data->rank || out->rank + 1 != data->rank + indices->rank)
        return move_shape_fault(c, "the ranks do not go together");
    const uint32_t axis = (uint32_t)a->axis;
    const view from = move_drop(data, axis, 1), to = move_drop(out, axis, indices->rank);
    if (!move_same_dims(&from, &to) ||
        (indices->rank && memcmp(&out->dim[axis], indices->dim, indices->rank * sizeof(out->dim[0])) != 0)) {
        return move_shape_fault(c, "the output does not have the shape of data and indices");
    }
    if (view_count(out) == 0) return SINTER_OK;
    int64_t i[SINTER_RANK_MAX] = { 0 }, position = 0;
    for (bool more = view_first(indices->dim, indices->rank, i); more;
         more = view_next(indices->dim, indices->rank, i)) {
        int64_t pick = 0, at = 0;
        for (uint32_t k = 0; k < indices->rank; k++) at += i[k] * out->stride[axis + k];
        if (move_index(c, indices, view_offset(indices, i), position, data->dim[axis], &pick)) {
            move_block(&to, at, &from, pick * data->stride[axis]);
        } else {
            move_block_zero(&to, at);
        }
        position++;
    }
    return SINTER_OK;
}

/* Indices lie inside the data on every axis but `axis`. */
static bool elements_fit(const view *data, const view *indices, int64_t axis)
{
    if (axis < 0 || axis >= (int64_t)data->rank || indices->rank != data->rank) return false;
    if (view_count(indices) == 0) return true;
    for (uint32_t i = 0; i < data->rank; i++) {
        if (i != (uint32_t)axis && indices->dim[i] > data->dim[i]) return false;
    }
    return true;
}

sinter_status reference_gather_elements(ref_call *c)
{
    const attrs_gather_elements *a = c->attrs;
    const view *data = &c->in[0], *indices = &c->in[1], *out = &c->out[0];
    if (!elements_fit(data, indices, a->axis) || !move_same_dims(indices, out))
        return move_shape_fault(c, "the shapes of data, indices and output do not go together");
    const view one = { .dtype = out->dtype, .data = out->data };
    int64_t i[SINTER_RANK_MAX] = { 0 }, position = 0;
    for (bool more = view_first(out->dim, out->rank, i); more; more = view_next(out->dim, out->rank, i)) {
        int64_t pick = 0;
        const int64_t at = view_offset(out, i);
        if (move_index(c, indices, view_offset(indices, i), position, data->dim[a->axis], &pick)) {
            const int64_t here = i[a->axis];
            move_element(out, at, data, view_offset(data, i) + (pick - here) * data->stride[a->axis]);
        } else {
            move_block_zero(&one, at);
        }
        position++;
    }
    return SINTER_OK;
}

/* The offset in `data` that a tuple of indices means; its parts count axes from `axis` on. */
static bool tuple_offset(ref_call *c, const view *data, uint32_t axis, const view *indices, int64_t at,
                         int64_t position, int64_t *offset)
{
    const uint32_t last = indices->rank - 1;
    for (int64_t k = 0; k < indices->dim[last]; k++) {
        int64_t pick = 0;
        if (!move_index(c, indices, at + k * indices->stride[last], position * indices->dim[last] + k,
                        data->dim[axis + k], &pick))
            return false;
        *offset += pick * data->stride[axis + k];
    }
    return true;
}

sinter_status reference_gather_nd(ref_call *c)
{
    const attrs_gather_nd *a = c->attrs;
    const view *data = &c->in[0], *indices = &c->in[1], *out = &c->out[0];
    if (indices->rank == 0 || a->batch_dims < 0 || a->batch_dims >= (int64_t)indices->rank ||
        a->batch_dims >= (int64_t)data->rank || indices->dim[indices->rank - 1] > (int64_t)data->rank - a->batch_dims)
        return move_shape_fault(c, "the ranks of data and indices do not go together");
    const uint32_t batch = (uint32_t)a->batch_dims, lead = indices->rank - 1;
    const uint32_t used = batch + (uint32_t)indices->dim[lead];
    const view from = move_drop(data, 0, used), to = move_drop(out, 0, out->rank < lead ? 0 : lead);
    bool fits = out->rank == lead + data->rank - used && move_same_dims(&from, &to);
    for (uint32_t k = 0; fits && k < lead; k++)
        fits = out->dim[k] == indices->dim[k] && (k >= batch || data->dim[k] == indices->dim[k]);
    if (!fits) return move_shape_fault(c, "the output does not have the shape of data and indices");
    if (view_count(out) == 0) return SINTER_OK;
    int64_t i[SINTER_RANK_MAX] = { 0 }, position = 0;
    for (bool more = view_first(indices->dim, lead, i); more; more = view_next(indices->dim, lead, i)) {
        int64_t at = 0, offset = 0, source = 0;
        for (uint32_t k = 0; k < lead; k++) {
            at += i[k] * indices->stride[k];
            offset += i[k] * out->stride[k];
            if (k < batch) source += i[k] * data->stride[k];
        }
        if (tuple_offset(c, data, batch, indices, at, position, &source)) move_block(&to, offset, &from, source);
        else move_block_zero(&to, offset);
        position++;
    }
    return SINTER_OK;
}

/* ---- scatter ---- */

static void combine(const view *out, int64_t to, const view *update, int64_t from, int64_t kind)
{
    static const op_id number[] = { [scatter_kind_add] = OP_add,
                                    [scatter_kind_mul] = OP_mul,
                                    [scatter_kind_max] = OP_max,
                                    [scatter_kind_min] = OP_min };
    if (kind <= scatter_kind_set || kind >= scatter_kind_count) {
        move_element(out, to, update, from);
        return;
    }
    op_id op = number[kind];
    if (out->dtype == SINTER_DTYPE_BOOL) op = kind == scatter_kind_add || kind == scatter_kind_max ? OP_or : OP_and;
    const scalar arg[2] = { scalar_load(out->dtype, out->data, to), scalar_load(out->dtype, update->data, from) };
    scalar_store(out->dtype, out->data, to, scalar_eval(op, out->dtype, out->dtype, arg));
}

sinter_status reference_scatter_elements(ref_call *c)
{
    const attrs_scatter_elements *a = c->attrs;
    const view *data = &c->in[0], *indices = &c->in[1], *updates = &c->in[2], *out = &c->out[0];
    if (!elements_fit(data, indices, a->axis) || !move_same_dims(indices, updates) || !move_same_dims(data, out)) {
        return move_shape_fault(c, "the shapes of data, indices and updates do not go together");
    }
    view_copy(out, data);
    int64_t i[SINTER_RANK_MAX] = { 0 }, position = 0;
    for (bool more = view_first(indices->dim, indices->rank, i); more;
         more = view_next(indices->dim, indices->rank, i)) {
        int64_t pick = 0;
        if (move_index(c, indices, view_offset(indices, i), position++, data->dim[a->axis], &pick)) {
            const int64_t to = view_offset(out, i) + (pick - i[a->axis]) * out->stride[a->axis];
            combine(out, to, updates, view_offset(updates, i), a->kind);
        }
    }
    return SINTER_OK;
}

sinter_status reference_scatter_nd(ref_call *c)
{
    const attrs_scatter_nd *a = c->attrs;
    const view *data = &c->in[0], *indices = &c->in[1], *updates = &c->in[2], *out = &c->out[0];
    if (!move_same_dims(data, out) || indices->rank == 0 || indices->dim[indices->rank - 1] > (int64_t)data->rank) {
        return move_shape_fault(c, "the ranks of data and indices do not go together");
    }
    const uint32_t lead = indices->rank - 1, used = (uint32_t)indices->dim[lead];
    const view to = move_drop(out, 0, used), from = move_drop(updates, 0, updates->rank < lead ? 0 : lead);
    bool fits = updates->rank == lead + data->rank - used && move_same_dims(&from, &to);
    for (uint32_t k = 0; fits && k < lead; k++) fits = updates->dim[k] == indices->dim[k];
    if (!fits) return move_shape_fault(c, "the updates do not have the shape of data and indices");
    view_copy(out, data);
    if (view_count(updates) == 0) return SINTER_OK;
    int64_t i[SINTER_RANK_MAX] = { 0 }, j[SINTER_RANK_MAX] = { 0 }, position = 0;
    for (bool more = view_first(indices->dim, lead, i); more; more = view_next(indices->dim, lead, i)) {
        int64_t at = 0, target = 0, source = 0;
        for (uint32_t k = 0; k < lead; k++) {
            at += i[k] * indices->stride[k];
            source += i[k] * updates->stride[k];
        }
        if (!tuple_offset(c, out, 0, indices, at, position++, &target)) continue;
        if (a->kind == scatter_kind_set) {
            move_block(&to, target, &from, source);
            continue;
        }
        for (bool next = view_first(to.dim, to.rank, j); next; next = view_next(to.dim, to.rank, j)) {
            combine(out, target + view_offset(&to, j), updates, source + view_offset(&from, j), a->kind);
        }
    }
    return SINTER_OK;
}

sinter_status reference_tensor_scatter(ref_call *c)
{
    const attrs_tensor_scatter *a = c->attrs;
    const view *cache = &c->in[0], *update = &c->in[1], *out = &c->out[0];
    if (!move_same_dims(cache, out) || a->axis < 1 || a->axis >= (int64_t)cache->rank)
        return move_shape_fault(c, "cache and output have different shapes");
    const uint32_t axis = (uint32_t)a->axis;
    view like = *update;
    like.dim[axis] = cache->dim[axis];
    const bool has_start = move_given(c, 2);
    if (!move_same_dims(cache, &like) || update->dim[axis] > cache->dim[axis] ||
        (has_start && (c->in[2].rank != 1 || c->in[2].dim[0] != cache->dim[0])))
        return move_shape_fault(c, "the shapes of cache, update and write indices do not go together");
    if (out->data != cache->data) view_copy(out, cache);
    if (view_count(update) == 0) return SINTER_OK;
    view to = move_drop(out, axis, 1), from = move_drop(update, axis, 1);
    to = move_drop(&to, 0, 1);
    from = move_drop(&from, 0, 1);
    const int64_t limit = cache->dim[axis], length = update->dim[axis];
    for (int64_t b = 0; b < cache->dim[0]; b++) {
        const int64_t start = has_start ? view_load_i64(&c->in[2], b * c->in[2].stride[0]) : 0;
        if (start < 0 || (!a->circular && start > limit - length))
            ref_fault(c, b, start, a->circular ? INT64_MAX : limit - length + 1);
        if (start < 0) continue;
        for (int64_t s = 0; s < length; s++) {
            /* start may be anything up to the largest integer, so sums are formed below the limit. */
            int64_t position = 0;
            if (a->circular) {
                position = (start % limit + s) % limit;
            } else {
                if (start >= limit || s >= limit - start) break;
                position = start + s;
            }
            move_block(&to, b * out->stride[0] + position * out->stride[axis], &from,
                       b * update->stride[0] + s * update->stride[axis]);
        }
    }
    return SINTER_OK;
}

sinter_status reference_one_hot(ref_call *c)
{
    const attrs_one_hot *a = c->attrs;
    const view *indices = &c->in[0], *values = &c->in[1], *out = &c->out[0];
    if (a->axis < 0 || a->axis >= (int64_t)out->rank || values->rank != 1 || values->dim[0] != 2)
        return move_shape_fault(c, "the axis is not there, or there are not two values");
    const uint32_t axis = (uint32_t)a->axis;
    const view to = move_drop(out, axis, 1);
    if (!move_same_dims(&to, indices)) return move_shape_fault(c, "the output does not have the shape of the indices");
    if (view_count(out) == 0) return SINTER_OK;
    view off = *out;
    off.data = values->data;
    memset(off.stride, 0, sizeof(off.stride));
    move_block(out, 0, &off, 0);
    const int64_t depth = out->dim[axis];
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(indices->dim, indices->rank, i); more;
         more = view_next(indices->dim, indices->rank, i)) {
        /* An index outside is allowed here: its row is all off. */
        int64_t pick = view_load_i64(indices, view_offset(indices, i));
        if (pick < 0 && pick >= -depth) pick += depth;
        if (pick < 0 || pick >= depth) continue;
        move_element(out, view_offset(&to, i) + pick * out->stride[axis], values, values->stride[0]);
    }
    return SINTER_OK;
}
