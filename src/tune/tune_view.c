/* SPDX-License-Identifier: Apache-2.0 */
/* tune_view.c - reshapes, transposes, slices and broadcasts as arithmetic on symbolic strides: steps that cost nothing.
 *
 * Two sizes are known to be equal exactly when their ids are; where that cannot be seen the answer is "copy", never a
 * guess. */
#include "tune/tune.h"

bool view_dims_transpose(const plan_value *in, const attr_ints *perm, plan_value *out)
{
    if (perm->count != in->rank) return false;
    *out = *in;
    for (uint32_t i = 0; i < in->rank; i++) {
        const int64_t axis = perm->at[i];
        if (axis < 0 || axis >= (int64_t)in->rank) return false;
        out->dim[i] = in->dim[axis];
        out->stride[i] = in->stride[axis];
    }
    return true;
}

void view_dims_slice(dim_table *t, const plan_value *in, const attr_dims *start, const attr_ints *step,
                     const attr_dims *size, plan_value *out)
{
    *out = *in;
    for (uint32_t i = 0; i < in->rank; i++) {
        out->offset = dim_add(t, out->offset, dim_mul(t, (dim)start->at[i], in->stride[i]));
        out->stride[i] = dim_mul(t, in->stride[i], dim_const(t, step->at[i]));
        out->dim[i] = (dim)size->at[i];
    }
}

bool view_dims_expand(dim_table *t, const plan_value *in, uint32_t rank, const dim *d, plan_value *out)
{
    *out = *in;
    out->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        out->dim[i] = d[i];
        out->stride[i] = dim_const(t, 0);
        if (i + in->rank < rank) continue;
        const uint32_t k = i + in->rank - rank;
        if (in->dim[k] == d[i]) out->stride[i] = in->stride[k];
        else if (!dim_is(t, in->dim[k], 1)) return false; /* 1 or the new size: a run knows which */
    }
    return true;
}

bool view_dim_is_unit(const dim_table *t, dim d)
{
    return dim_range_of(t, d).max <= 1;
}

bool view_dims_dense_in(dim_table *t, const plan_value *v, const uint8_t *order)
{
    dim run = dim_const(t, 1);
    for (uint32_t i = v->rank; i-- > 0;) {
        const uint32_t axis = order ? order[i] : i;
        if (view_dim_is_unit(t, v->dim[axis])) continue;
        if (v->stride[axis] != run) return false;
        run = dim_mul(t, run, v->dim[axis]);
    }
    return true;
}

void view_dims_order(dim_table *t, const plan_value *v, uint8_t *order, bool *is_dense)
{
    for (uint32_t i = 0; i < v->rank; i++) order[i] = (uint8_t)i;
    *is_dense = view_dims_dense_in(t, v, order);
    if (*is_dense) return;
    /* Larger strides are further out; axes of one element take part in nothing and stay where they are. */
    for (uint32_t i = 1; i < v->rank; i++) {
        const uint8_t axis = order[i];
        if (view_dim_is_unit(t, v->dim[axis])) continue;
        const int64_t stride = dim_range_of(t, v->stride[axis]).opt;
        uint32_t at = i;
        for (uint32_t k = i; k-- > 0;) {
            if (view_dim_is_unit(t, v->dim[order[k]])) continue;
            if (dim_range_of(t, v->stride[order[k]]).opt >= stride) break;
            at = k;
        }
        for (uint32_t k = i; k > at; k--) order[k] = order[k - 1];
        order[at] = axis;
    }
    *is_dense = view_dims_dense_in(t, v, order);
}

bool view_dims_reshape(dim_table *t, const plan_value *in, uint32_t rank, const dim *d, plan_value *out)
{
    *out = *in;
    out->rank = rank;
    for (uint32_t i = 0; i < rank; i++) out->dim[i] = d[i];
    if (view_dims_dense_in(t, in, NULL)) {
        dim run = dim_const(t, 1);
        for (uint32_t i = rank; i-- > 0;) {
            out->stride[i] = run;
            run = dim_mul(t, run, d[i]);
        }
        return true;
    }
    /* Group the axes of both sides so that the products agree; inside a group the input must be contiguous. */
    uint32_t i = 0, k = 0;
    while (i < in->rank || k < rank) {
        if (i < in->rank && dim_is(t, in->dim[i], 1)) {
            i++;
            continue;
        }
        if (k < rank && dim_is(t, d[k], 1)) {
            out->stride[k++] = dim_const(t, 0);
            continue;
        }
        if (i == in->rank || k == rank) return false;
        const uint32_t i0 = i, k0 = k;
        dim a = in->dim[i++], b = d[k++];
        while (a != b) {
            const int64_t x = dim_range_of(t, a).opt, y = dim_range_of(t, b).opt;
            if (x < y && i < in->rank) {
                a = dim_mul(t, a, in->dim[i++]);
            } else if (y < x && k < rank) {
                b = dim_mul(t, b, d[k++]);
            } else {
                return false;
            }
        }
        for (uint32_t j = i0; j + 1 < i; j++)
            if (in->stride[j] != dim_mul(t, in->stride[j + 1], in->dim[j + 1])) return false;
        dim run = in->stride[i - 1];
        for (uint32_t j = k; j-- > k0;) {
            out->stride[j] = run;
            run = dim_mul(t, run, d[j]);
        }
    }
    return true;
}
