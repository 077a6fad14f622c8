/* SPDX-License-Identifier: Apache-2.0 */
/* ref_norm.c - normalisations by statistics: layer_norm, rms_norm, norm_matmul, group_norm and lrn.
 *
 *   layer_norm  y = (x - mean) / sqrt(variance + epsilon) * scale + bias    over all axes from `axis` on
 *   rms_norm    y = x / sqrt(mean of x^2 + epsilon) * scale                 over the same
 *   norm_matmul the product of such rows with a matrix
 *   group_norm  as layer_norm over the channels of a group and all spatial axes; scale and bias by channel
 *   lrn         y = x / (bias + alpha / size * sum of x^2 over `size` channels around)^beta */
#include "ops/ref_loops.h"
#include <inttypes.h>
#include <math.h>

typedef struct stats {
    double mean, inverse;
} stats;

/* Mean (0 where not centred) and 1 / sqrt(variance + epsilon) of what a walk covers. */
static stats stats_of(const view *x, ref_walk w, bool is_centred, double epsilon)
{
    double sum = 0;
    double square = 0;
    for (int64_t i = 0; is_centred && i < w.count; i++, ref_walk_next(&w)) sum += view_load_f64(x, w.at);
    const double mean = is_centred ? sum / (double)w.count : 0;
    for (int64_t i = 0; i < w.count; i++, ref_walk_next(&w)) {
        const double v = view_load_f64(x, w.at) - mean;
        square += v * v;
    }
    return (stats){ mean, 1 / sqrt(square / (double)w.count + epsilon) };
}

static uint32_t axes_from(int64_t axis, uint32_t rank)
{
    return ((1u << rank) - 1) & ~((1u << axis) - 1);
}

static sinter_status norm_run(ref_call *c, int64_t axis, double epsilon, bool is_centred)
{
    const view *x = &c->in[0];
    const view *y = &c->out[0];
    const uint32_t inner = axes_from(axis, x->rank);
    const bool has_scale = ref_has_in(c, 1);
    const bool has_bias = is_centred && ref_has_in(c, 2);
    view scale = *x;
    view bias = *x;
    if ((has_scale && !view_broadcast(&c->in[1], x->rank, x->dim, &scale)) ||
        (has_bias && !view_broadcast(&c->in[2], x->rank, x->dim, &bias))) {
        return FAIL(c->e, INTERNAL, "scale or bias do not broadcast to the input");
    }
    int64_t outer_dim[SINTER_RANK_MAX];
    for (uint32_t k = 0; k < x->rank; k++) outer_dim[k] = inner >> k & 1u ? 1 : x->dim[k];
    int64_t index[SINTER_RANK_MAX];
    for (bool more = view_first(outer_dim, x->rank, index); more; more = view_next(outer_dim, x->rank, index)) {
        ref_walk from = ref_walk_axes(x, inner, view_offset(x, index));
        ref_walk to = ref_walk_axes(y, inner, view_offset(y, index));
        ref_walk at_scale = ref_walk_axes(&scale, inner, view_offset(&scale, index));
        ref_walk at_bias = ref_walk_axes(&bias, inner, view_offset(&bias, index));
        const stats s = stats_of(x, from, is_centred, epsilon);
        if (ref_has_out(c, 1)) view_store_f64(&c->out[1], view_offset(&c->out[1], index), s.mean);
        if (ref_has_out(c, 2)) view_store_f64(&c->out[2], view_offset(&c->out[2], index), s.inverse);
        for (int64_t i = 0; i < from.count; i++) {
            double v = (view_load_f64(x, from.at) - s.mean) * s.inverse;
            if (has_scale) v *= view_load_f64(&scale, at_scale.at);
            if (has_bias) v += view_load_f64(&bias, at_bias.at);
            view_store_f64(y, to.at, v);
            ref_walk_next(&from);
            ref_walk_next(&to);
            ref_walk_next(&at_scale);
            ref_walk_next(&at_bias);
        }
    }
    return SINTER_OK;
}

sinter_status reference_layer_norm(ref_call *c)
{
    const attrs_layer_norm *a = c->attrs;
    TRY(ref_check(c));
    return norm_run(c, a->axis, a->epsilon, true);
}

sinter_status reference_rms_norm(ref_call *c)
{
    const attrs_rms_norm *a = c->attrs;
    TRY(ref_check(c));
    return norm_run(c, a->axis, a->epsilon, false);
}

/* The product of normalised rows, which are not rounded between. */
sinter_status reference_norm_matmul(ref_call *c)
{
    const attrs_norm_matmul *a = c->attrs;
    TRY(ref_check(c));
    const view *x = &c->in[0], *w = &c->in[1], *y = &c->out[0];
    const uint32_t last = x->rank - 1, inner = 1u << last;
    const int64_t depth = x->dim[last], step_k = w->stride[a->trans_b != 0], step_n = w->stride[a->trans_b == 0];
    double *const row = ARENA_NEW(c->scratch, double, (size_t)depth + 1);
    if (!row) return FAIL_MEMORY(c->e, "a row");
    int64_t outer_dim[SINTER_RANK_MAX], index[SINTER_RANK_MAX];
    for (uint32_t k = 0; k < x->rank; k++) outer_dim[k] = k == last ? 1 : x->dim[k];
    for (bool more = view_first(outer_dim, x->rank, index); more; more = view_next(outer_dim, x->rank, index)) {
        ref_walk from = ref_walk_axes(x, inner, view_offset(x, index));
        const stats s = stats_of(x, from, a->centred != 0, a->epsilon);
        for (int64_t i = 0; i < depth; i++, ref_walk_next(&from)) {
            row[i] = (view_load_f64(x, from.at) - s.mean) * s.inverse;
            if (ref_has_in(c, 2)) row[i] *= view_load_f64(&c->in[2], i * c->in[2].stride[0]);
            if (ref_has_in(c, 3)) row[i] += view_load_f64(&c->in[3], i * c->in[3].stride[0]);
        }
        const int64_t to = view_offset(y, index);
        for (int64_t n = 0; n < y->dim[last]; n++) {
            double sum = 0;
            for (int64_t i = 0; i < depth; i++) sum += row[i] * view_load_f64(w, i * step_k + n * step_n);
            view_store_f64(y, to + n * y->stride[last], sum);
        }
    }
    return SINTER_OK;
}

sinter_status reference_group_norm(ref_call *c)
{
    const attrs_group_norm *a = c->attrs;
    TRY(ref_check(c));
    const view *x = &c->in[0];
    const view *y = &c->out[0];
    const int64_t groups = a->groups ? a->groups : x->dim[1];
    if (!groups) return SINTER_OK; /* no channels, no elements */
    const int64_t each = x->dim[1] / groups;
    const uint32_t inner = axes_from(1, x->rank);
    view part_x = *x; /* one group of one image */
    view part_y = *y;
    part_x.dim[1] = part_y.dim[1] = each;
    for (int64_t n = 0; n < x->dim[0]; n++) {
        for (int64_t g = 0; g < groups; g++) {
            ref_walk from = ref_walk_axes(&part_x, inner, n * x->stride[0] + g * each * x->stride[1]);
            ref_walk to = ref_walk_axes(&part_y, inner, n * y->stride[0] + g * each * y->stride[1]);
            const stats s = stats_of(x, from, true, a->epsilon);
            for (int64_t i = 0; i < from.count; i++, ref_walk_next(&from), ref_walk_next(&to)) {
                const int64_t channel = g * each + from.index[0];
                double v = (view_load_f64(x, from.at) - s.mean) * s.inverse;
                if (ref_has_in(c, 1)) v *= view_load_f64(&c->in[1], channel * c->in[1].stride[0]);
                if (ref_has_in(c, 2)) v += view_load_f64(&c->in[2], channel * c->in[2].stride[0]);
                view_store_f64(y, to.at, v);
            }
        }
    }
    return SINTER_OK;
}

sinter_status reference_lrn(ref_call *c)
{
    const attrs_lrn *a = c->attrs;
    TRY(ref_check(c));
    const view *x = &c->in[0];
    const view *y = &c->out[0];
    if (x->rank < 2) return FAIL(c->e, INVALID_MODEL, "input of lrn has rank %" PRIu32 ", wanted at least 2", x->rank);
    if (a->size < 1) return FAIL(c->e, INVALID_MODEL, "size of lrn is %" PRId64 ", wanted at least 1", a->size);
    const int64_t channels = x->dim[1];
    const int64_t size = a->size < 2 * channels + 1 ? a->size : 2 * channels + 1; /* wider sees the same channels */
    const int64_t before = (size - 1) / 2;
    const int64_t after = size - 1 - before;
    int64_t index[SINTER_RANK_MAX];
    for (bool more = view_first(x->dim, x->rank, index); more; more = view_next(x->dim, x->rank, index)) {
        const int64_t at = view_offset(x, index);
        const int64_t first = index[1] > before ? index[1] - before : 0;
        const int64_t last = index[1] + after < channels ? index[1] + after : channels - 1;
        double sum = 0;
        for (int64_t k = first; k <= last; k++) {
            const double v = view_load_f64(x, at + (k - index[1]) * x->stride[1]);
            sum += v * v;
        }
        const double scale = pow(a->bias + a->alpha / (double)a->size * sum, a->beta);
        view_store_f64(y, view_offset(y, index), view_load_f64(x, at) / scale);
    }
    return SINTER_OK;
}
