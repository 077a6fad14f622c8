/* SPDX-License-Identifier: Apache-2.0 */
/* ref_make.c - references of the ops that make tensors from little: range, eye_like, shape_value, random.
 *
 * Random numbers are a function of the seed and the element's position, not of a state: any order and any number of
 * threads give the same tensor. */
#include "ops/move.h"

#include <math.h>

sinter_status reference_range(ref_call *c)
{
    const view *start = &c->in[0], *step = &c->in[1], *out = &c->out[0];
    if (out->rank != 1 || view_count(start) != 1 || view_count(step) != 1)
        return move_shape_fault(c, "start and step are not one element each");
    if (dtype_is_float(out->dtype)) {
        const double first = view_load_f64(start, 0), delta = view_load_f64(step, 0);
        for (int64_t i = 0; i < out->dim[0]; i++) view_store_f64(out, i * out->stride[0], first + (double)i * delta);
        return SINTER_OK;
    }
    uint64_t value = (uint64_t)view_load_i64(start, 0);
    const uint64_t delta = (uint64_t)view_load_i64(step, 0);
    for (int64_t i = 0; i < out->dim[0]; i++, value += delta) view_store_i64(out, i * out->stride[0], (int64_t)value);
    return SINTER_OK;
}

sinter_status reference_eye_like(ref_call *c)
{
    const attrs_eye_like *a = c->attrs;
    const view *out = &c->out[0];
    if (out->rank != 2) return move_shape_fault(c, "the output is no matrix");
    if (view_count(out) == 0) return SINTER_OK;
    move_block_zero(out, 0);
    for (int64_t i = 0; i < out->dim[0]; i++) {
        int64_t j = 0;
        if (!i64_add(i, a->k, &j) || j < 0 || j >= out->dim[1]) continue;
        const int64_t at = i * out->stride[0] + j * out->stride[1];
        if (dtype_is_float(out->dtype)) view_store_f64(out, at, 1);
        else view_store_i64(out, at, 1);
    }
    return SINTER_OK;
}

sinter_status reference_shape_value(ref_call *c)
{
    const attrs_shape_value *a = c->attrs;
    const view *out = &c->out[0];
    if (view_count(out) != (int64_t)a->value.count || out->rank > 1)
        return move_shape_fault(c, "the output is not as long as the value");
    for (uint32_t i = 0; i < a->value.count; i++)
        view_store_i64(out, (int64_t)i * (out->rank ? out->stride[0] : 0), a->value.at[i]);
    return SINTER_OK;
}

/* The finaliser of splitmix64: a bijection that leaves no bit of its input visible in its output. */
static uint64_t mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* In [0, 1), with 53 bits. */
static double unit(uint64_t seed, uint64_t position, uint64_t draw)
{
    return (double)(mixed(mixed(seed) ^ mixed(2 * position + draw)) >> 11) * 0x1p-53;
}

sinter_status reference_random(ref_call *c)
{
    const attrs_random *a = c->attrs;
    const view *out = &c->out[0];
    const uint64_t seed = (uint64_t)a->seed;
    int64_t i[SINTER_RANK_MAX] = { 0 };
    uint64_t position = 0;
    for (bool more = view_first(out->dim, out->rank, i); more; more = view_next(out->dim, out->rank, i)) {
        const double u = unit(seed, position, 0), v = unit(seed, position, 1);
        position++;
        /* Box and Muller; 1 - u is never 0. low is the mean of a normal distribution, high its deviation. */
        const double value = a->normal ? a->low + a->high * sqrt(-2 * log(1 - u)) * cos(6.283185307179586477 * v)
                                       : a->low + u * (a->high - a->low);
        view_store_f64(out, view_offset(out, i), value);
    }
    return SINTER_OK;
}
