/* SPDX-License-Identifier: Apache-2.0 */
/* ref_resize.c - reference of resize, all modes of ONNX, any number of axes.
 *
 * Interpolation is a product of axes: along each, an output coordinate is a weighted sum of a few input coordinates
 * (taps), tabled first. Taps of weight 0 are left out, so an axis that keeps its size has one tap of weight 1,
 * infinities beside a sample do not spoil it, and where all axes are like that (nearest) elements are copied by their
 * bits. */
#include "ops/move.h"
#include "ops/taps.h"

#include <math.h>

typedef struct axis_table {
    uint32_t most;   /* taps a coordinate has room for */
    uint32_t *count; /* [out] how many it has; 0: it lies outside, and the extrapolation value is the result */
    resize_tap *at;  /* [out][most] */
} axis_table;

static double clamped(double x, int64_t n)
{
    return x < 0 ? 0 : x > (double)(n - 1) ? (double)(n - 1) : x;
}

/* Where output coordinate i of `n_out` lies among the inputs 0 .. n - 1 (which are fractions of the axis' scale). */
static double coordinate(const attrs_resize *a, uint32_t axis, uint32_t rank, int64_t i, int64_t n, int64_t n_out,
                         double scale, bool *is_outside)
{
    const double x = (double)i, width = (double)n, wanted = scale * width;
    const bool is_one = fabs(wanted - 1) < 1e-6; /* scales come from floats: 3 times a third is not quite 1 */
    const bool is_nearest = a->mode == resize_mode_nearest;
    const double from = is_nearest ? resize_place(x / scale) : x / scale;
    const double half = is_nearest ? resize_place((x + 0.5) / scale) : (x + 0.5) / scale;
    *is_outside = false;
    switch (a->coordinate) {
    case resize_coordinate_align_corners: return is_one || n_out == 1 ? 0 : x * (width - 1) / (wanted - 1);
    case resize_coordinate_asymmetric: return from;
    case resize_coordinate_tf_half_pixel_for_nn: return scale == 1 ? x : half;
    case resize_coordinate_pytorch_half_pixel: return n_out > 1 ? half - 0.5 : 0;
    case resize_coordinate_half_pixel_symmetric: {
        const double at = width / 2 * (1 - (double)n_out / wanted) + (x + 0.5) / scale - 0.5;
        return is_nearest ? resize_place(at) : at;
    }
    case resize_coordinate_tf_crop_and_resize: {
        const double low = a->roi.at[axis], high = a->roi.at[rank + axis];
        const double step = is_one ? (high - low) * (width - 1) / 2 : x * (high - low) * (width - 1) / (wanted - 1);
        const double at = step + low * (width - 1), slack = 1e-6 * width; /* an end of exactly 1 is inside */
        *is_outside = !(at >= -slack) || at > width - 1 + slack;
        return *is_outside ? at : clamped(at, n);
    }
    default: return half - 0.5;
    }
}

/* The kernel of an interpolation at a distance. */
static double kernel_at(const attrs_resize *a, double distance)
{
    const double x = fabs(distance), k = a->cubic_a;
    if (a->mode == resize_mode_linear) return x < 1 ? 1 - x : 0;
    if (x <= 1) return ((k + 2) * x - (k + 3)) * x * x + 1;
    return x < 2 ? ((k * x - 5 * k) * x + 8 * k) * x - 4 * k : 0;
}

static double nearest_of(const attrs_resize *a, double x)
{
    const double low = floor(x), ratio = x - low;
    if (ratio == 0) return x;
    switch (a->nearest) {
    case resize_nearest_floor: return low;
    case resize_nearest_ceil: return low + 1;
    case resize_nearest_round_prefer_ceil: return ratio < 0.5 ? low : low + 1;
    default: return ratio <= 0.5 ? low : low + 1;
    }
}

/* Taps of one coordinate into `out`; returns how many. `reach` input elements to the left of floor(x) and one more to
 * its right are under the kernel, which is stretched by 1 / shrink where the axis shrinks and antialias is wanted. */
static uint32_t resize_taps_of(const attrs_resize *a, double x, int64_t n, uint32_t reach, double shrink,
                               resize_tap *out)
{
    double sum = 0, kept = 0;
    uint32_t count = 0;
    const double base = floor(x), first = base - reach;
    const uint32_t width = 2 * reach + 2;
    for (uint32_t k = 0; k < width; k++) sum += kernel_at(a, (first + k - x) * shrink);
    for (uint32_t k = 0; k < width; k++) {
        const double at = first + k;
        const double weight = kernel_at(a, (at - x) * shrink) / sum;
        const bool is_outside = at < 0 || at > (double)(n - 1);
        if (fabs(weight) < RESIZE_LEAST_WEIGHT || (a->exclude_outside && is_outside)) continue;
        out[count++] = (resize_tap){ (int64_t)clamped(at, n), weight };
        kept += weight;
    }
    for (uint32_t k = 0; a->exclude_outside && k < count && kept != 0; k++) out[k].weight /= kept;
    if (count == 0) out[count++] = (resize_tap){ (int64_t)clamped(base, n), 0 };
    return count;
}

double resize_reach(const attrs_resize *a, double scale)
{
    const double support = a->mode == resize_mode_cubic ? 2 : 1;
    return a->mode == resize_mode_nearest ? 0 : ceil(support / (a->antialias && scale < 1 ? scale : 1)) - 1;
}

uint32_t resize_taps_most(const resize_axis *x)
{
    return x->a->mode == resize_mode_nearest ? 1 : 2 * (uint32_t)x->reach + 2;
}

uint32_t resize_taps(const resize_axis *x, int64_t i, resize_tap *out)
{
    bool is_outside = false;
    const double at = coordinate(x->a, x->axis, x->rank, i, x->n, x->n_out, x->scale, &is_outside);
    if (is_outside || !isfinite(at)) return 0;
    const double shrink = x->a->antialias && x->scale < 1 ? x->scale : 1;
    if (x->a->mode != resize_mode_nearest) return resize_taps_of(x->a, at, x->n, (uint32_t)x->reach, shrink, out);
    *out = (resize_tap){ (int64_t)clamped(nearest_of(x->a, at), x->n), 1 };
    return 1;
}

static sinter_status table_make(ref_call *c, uint32_t axis, axis_table *out)
{
    const attrs_resize *a = c->attrs;
    const int64_t n = c->in[0].dim[axis], n_out = c->out[0].dim[axis];
    const double scale = a->scale.count ? a->scale.at[axis] : (double)n_out / (double)n;
    if (!(scale > 0) || !isfinite(scale))
        return FAIL(c->e, INVALID_ARG, "resize: the scale of axis %u is %g", axis, scale);
    const resize_axis x = { a, axis, c->in[0].rank, n, n_out, scale, resize_reach(a, scale) };
    if (x.reach > RESIZE_TAPS_MAX)
        return FAIL(c->e, UNSUPPORTED, "resize: the scale of axis %u is %g: too small for antialias", axis, scale);
    out->most = resize_taps_most(&x);
    out->count = ARENA_NEW(c->scratch, uint32_t, (size_t)n_out);
    out->at = ARENA_NEW(c->scratch, resize_tap, size_mul((size_t)n_out, out->most));
    if (!out->count || !out->at) return FAIL_MEMORY(c->e, "the taps of resize");
    for (int64_t i = 0; i < n_out; i++) out->count[i] = resize_taps(&x, i, &out->at[(size_t)i * out->most]);
    return SINTER_OK;
}

/* The sum over all combinations of taps: one resize_tap an axis, weights multiplied. */
static double resize_sum_of(const view *in, const resize_tap *const *taps, const uint32_t *count)
{
    uint32_t k[SINTER_RANK_MAX] = { 0 };
    double sum = 0;
    for (;;) {
        double weight = 1;
        int64_t from = 0;
        for (uint32_t i = 0; i < in->rank; i++) {
            weight *= taps[i][k[i]].weight;
            from += taps[i][k[i]].index * in->stride[i];
        }
        sum += weight * view_load_f64(in, from);
        uint32_t i = in->rank;
        while (i-- > 0) {
            if (++k[i] < count[i]) break;
            k[i] = 0;
            if (i == 0) return sum;
        }
        if (in->rank == 0) return sum;
    }
}

sinter_status reference_resize(ref_call *c)
{
    const attrs_resize *a = c->attrs;
    const view *in = &c->in[0], *out = &c->out[0];
    const bool is_int = !dtype_is_float(out->dtype);
    axis_table table[SINTER_RANK_MAX];
    if (in->rank != out->rank || (a->scale.count && a->scale.count != in->rank))
        return move_shape_fault(c, "the ranks do not go together");
    if (a->coordinate == resize_coordinate_tf_crop_and_resize && a->roi.count != 2 * in->rank)
        return move_shape_fault(c, "roi is not twice as long as the rank");
    if (view_count(out) == 0) return SINTER_OK;
    if (view_count(in) == 0) return move_shape_fault(c, "the input is empty");
    for (uint32_t i = 0; i < in->rank; i++) TRY(table_make(c, i, &table[i]));
    int64_t index[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(out->dim, out->rank, index); more; more = view_next(out->dim, out->rank, index)) {
        const resize_tap *taps[SINTER_RANK_MAX] = { 0 };
        uint32_t count[SINTER_RANK_MAX] = { 0 };
        bool is_outside = false, is_copy = true;
        int64_t from = 0;
        for (uint32_t i = 0; i < in->rank; i++) {
            taps[i] = &table[i].at[(size_t)index[i] * table[i].most];
            count[i] = table[i].count[index[i]];
            is_outside = is_outside || count[i] == 0;
            is_copy = is_copy && count[i] == 1 && taps[i][0].weight == 1;
            from += taps[i][0].index * in->stride[i];
        }
        const int64_t to = view_offset(out, index);
        if (is_copy && in->dtype == out->dtype) {
            move_element(out, to, in, from);
            continue;
        }
        const double value = is_outside ? a->extrapolation : resize_sum_of(in, taps, count);
        view_store_f64(out, to, is_int ? nearbyint(value) : value);
    }
    return SINTER_OK;
}
