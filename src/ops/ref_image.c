/* SPDX-License-Identifier: Apache-2.0 */
/* ref_image.c - references of the ops that sample images at computed places: roi_align, grid_sample, affine_grid,
 * col2im.
 *
 * Coordinates are data, so they may be anything, infinities and NaN included: each is brought into the image's range,
 * or found to be outside, before it becomes an integer. */
#include "ops/move.h"
#include "ops/taps.h"

#include <math.h>

/* ---- roi_align ---- */

/* Samples of one bin along one axis: at first + i * step for i in [low, high); those left out are outside the image. */
typedef struct samples {
    double first, step, total;
    int64_t low, high;
} samples;

static samples samples_of(double start, double bin, double at, double total, int64_t limit)
{
    samples s = { .first = start + at * bin + 0.5 * bin / total, .step = bin / total, .total = total };
    if (!(total >= 1)) return (samples){ 0 };
    double low = 0, high = total;
    if (s.step > 0) {
        low = fmax(low, ceil((-1 - s.first) / s.step) - 1);
        high = fmin(high, floor(((double)limit - s.first) / s.step) + 2);
    }
    if (!(low < high)) return s;
    s.low = (int64_t)low;
    s.high = (int64_t)high;
    return s;
}

/* The two elements around a place, and the weight of the second. False: outside, beyond the half pixel that is
 * forgiven. */
typedef struct pair {
    int64_t low, high;
    double weight;
} pair;

static bool pair_at(double x, int64_t n, pair *out)
{
    if (!(x >= -1 && x <= (double)n)) return false;
    const double inside = x < 0 ? 0 : x > (double)(n - 1) ? (double)(n - 1) : x;
    out->low = (int64_t)inside;
    out->high = out->low + 1 < n ? out->low + 1 : n - 1;
    out->weight = inside - (double)out->low;
    return true;
}

typedef struct roi {
    int64_t batch;
    double y, x, bin_h, bin_w, count_h, count_w;
} roi;

static double roi_bin(const attrs_roi_align *a, const view *in, const roi *r, int64_t channel, int64_t at_y,
                      int64_t at_x)
{
    const int64_t h = in->dim[2], w = in->dim[3];
    const int64_t base = r->batch * in->stride[0] + channel * in->stride[1];
    const samples sy = samples_of(r->y, r->bin_h, (double)at_y, r->count_h, h);
    const samples sx = samples_of(r->x, r->bin_w, (double)at_x, r->count_w, w);
    double sum = 0, most = -INFINITY, seen = 0;
    for (int64_t i = sy.low; i < sy.high; i++) {
        for (int64_t j = sx.low; j < sx.high; j++) {
            pair y, x;
            if (!pair_at(sy.first + (double)i * sy.step, h, &y) || !pair_at(sx.first + (double)j * sx.step, w, &x))
                continue;
            const int64_t top = base + y.low * in->stride[2], bottom = base + y.high * in->stride[2];
            const double part[4] = {
                (1 - y.weight) * (1 - x.weight) * view_load_f64(in, top + x.low * in->stride[3]),
                (1 - y.weight) * x.weight * view_load_f64(in, top + x.high * in->stride[3]),
                y.weight * (1 - x.weight) * view_load_f64(in, bottom + x.low * in->stride[3]),
                y.weight * x.weight * view_load_f64(in, bottom + x.high * in->stride[3]),
            };
            sum += part[0] + part[1] + part[2] + part[3];
            /* As ONNX has it: the maximum is over the weighted corners. */
            for (int k = 0; k < 4; k++) most = fmax(most, part[k]);
            seen++;
        }
    }
    const double count = sy.total * sx.total;
    if (!a->is_max) return count >= 1 ? sum / count : 0;
    if (seen < count) most = fmax(most, 0); /* samples outside count as zero */
    return count >= 1 ? most : 0;
}

static roi roi_of(const attrs_roi_align *a, const view *rois, int64_t n)
{
    enum { FAR = 1000000000 }; /* so far outside that every sample is zero; and doubles still count by 1 */
    double v[4];
    const double offset = a->half_pixel ? 0.5 : 0;
    for (int64_t k = 0; k < 4; k++) {
        v[k] = view_load_f64(rois, n * rois->stride[0] + k * rois->stride[1]) * a->scale - offset;
        if (!(fabs(v[k]) < FAR)) return (roi){ 0 };
    }
    double width = v[2] - v[0], height = v[3] - v[1];
    if (!a->half_pixel) {
        width = fmax(width, 1);
        height = fmax(height, 1);
    }
    roi r = { .x = v[0], .y = v[1], .bin_h = height / (double)a->out_h, .bin_w = width / (double)a->out_w };
    r.count_h = a->sampling > 0 ? (double)a->sampling : fmax(ceil(r.bin_h), 0);
    r.count_w = a->sampling > 0 ? (double)a->sampling : fmax(ceil(r.bin_w), 0);
    return r;
}

sinter_status reference_roi_align(ref_call *c)
{
    const attrs_roi_align *a = c->attrs;
    const view *in = &c->in[0], *rois = &c->in[1], *batch = &c->in[2], *out = &c->out[0];
    if (in->rank != 4 || rois->rank != 2 || batch->rank != 1 || out->rank != 4 || rois->dim[1] != 4 ||
        rois->dim[0] != batch->dim[0] || out->dim[0] != rois->dim[0] || out->dim[1] != in->dim[1] ||
        out->dim[2] != a->out_h || out->dim[3] != a->out_w)
        return move_shape_fault(c, "the shapes of input, rois, batch indices and output do not go together");
    const bool is_empty = in->dim[2] == 0 || in->dim[3] == 0;
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (int64_t n = 0; n < out->dim[0]; n++) {
        roi r = roi_of(a, rois, n);
        const int64_t value = view_load_i64(batch, n * batch->stride[0]);
        const bool is_there = value >= 0 && value < in->dim[0];
        if (!is_there) ref_fault(c, n, value, in->dim[0]);
        r.batch = is_there ? value : 0;
        for (bool more = view_first(out->dim + 1, 3, i); more; more = view_next(out->dim + 1, 3, i)) {
            const double result = is_there && !is_empty ? roi_bin(a, in, &r, i[0], i[1], i[2]) : 0;
            view_store_f64(out,
                           n * out->stride[0] + i[0] * out->stride[1] + i[1] * out->stride[2] + i[2] * out->stride[3],
                           result);
        }
    }
    return SINTER_OK;
}

/* ---- grid_sample ---- */

/* Brings x into [low, high] by reflection at the ends. */
static double reflected(double x, double low, double high)
{
    const double range = high - low;
    if (x >= low && x <= high) return x;
    if (!(range > 0) || !isfinite(x)) return low;
    const double away = fabs(x - low), times = floor(away / range), rest = away - times * range;
    /* Left of low the picture begins mirrored, which is the same as counting away from low. */
    return fmod(times, 2) == 0 ? low + rest : high - rest;
}

/* The element of an axis of n that stands at coordinate x (a whole number), or -1: zero. */
static int64_t grid_pixel(const attrs_grid_sample *a, double x, int64_t n)
{
    const double last = (double)(n - 1);
    if (a->padding == pad_mode_constant) return x >= 0 && x <= last ? (int64_t)x : -1;
    if (a->padding == pad_mode_reflect)
        x = a->align_corners ? reflected(x, 0, last) : trunc(reflected(x, -0.5, last + 0.5));
    return x > last ? n - 1 : x > 0 ? (int64_t)x : 0;
}

static double grid_cubic(double distance)
{
    const double x = fabs(distance), k = -0.75;
    if (x <= 1) return ((k + 2) * x - (k + 3)) * x * x + 1;
    return x < 2 ? ((k * x - 5 * k) * x + 8 * k) * x - 4 * k : 0;
}

grid_axis grid_axis_of(const attrs_grid_sample *a, double place, int64_t n, bool is_narrow)
{
    double x = a->align_corners ? (place + 1) / 2 * (double)(n - 1) : ((place + 1) * (double)n - 1) / 2;
    if (is_narrow) x = (double)(float)x; /* coordinates of floats are floats, or halves round differently */
    if (a->mode == resize_mode_nearest) x = nearbyint(x);
    const double low = a->align_corners ? 0 : -0.5, high = (double)(n - 1) - low;
    if (isnan(x)) x = -2;
    /* The four taps of a cubic are moved to the edge one by one. Beyond 8 elements all of them are the edge. */
    if (a->padding == pad_mode_edge && a->mode == resize_mode_cubic) x = fmin(fmax(x, -8), high + 8);
    else if (a->padding == pad_mode_edge && (x < low || x > high)) x = x < 0 ? 0 : (double)(n - 1);
    if (a->padding == pad_mode_reflect) x = reflected(x, low, high);
    grid_axis g = { 0 };
    if (a->mode == resize_mode_nearest) {
        g.count = 1;
        g.index[0] = grid_pixel(a, x, n);
        g.weight[0] = 1;
        return g;
    }
    /* Beyond this all taps are zeros, and whole numbers would run out. */
    if (fabs(x) > 0x1p52) x = -8;
    const double base = floor(x) - (a->mode == resize_mode_cubic ? 1 : 0);
    g.count = a->mode == resize_mode_cubic ? 4 : 2;
    for (uint32_t k = 0; k < g.count; k++) {
        const double distance = base + k - x;
        g.index[k] = grid_pixel(a, base + k, n);
        g.weight[k] = a->mode == resize_mode_cubic ? grid_cubic(distance) : 1 - fabs(distance);
    }
    return g;
}

static double grid_sum(const view *in, int64_t base, const grid_axis *axis, uint32_t spatial)
{
    int64_t size[SINTER_RANK_MAX], k[SINTER_RANK_MAX] = { 0 };
    double sum = 0;
    for (uint32_t i = 0; i < spatial; i++) size[i] = axis[i].count;
    for (bool more = view_first(size, spatial, k); more; more = view_next(size, spatial, k)) {
        double weight = 1;
        int64_t from = base;
        for (uint32_t i = 0; i < spatial; i++) {
            const int64_t index = axis[i].index[k[i]];
            weight = index < 0 ? 0 : weight * axis[i].weight[k[i]];
            from += index < 0 ? 0 : index * in->stride[i + 2];
        }
        if (weight != 0) sum += weight * view_load_f64(in, from);
    }
    return sum;
}

sinter_status reference_grid_sample(ref_call *c)
{
    const attrs_grid_sample *a = c->attrs;
    const view *in = &c->in[0], *grid = &c->in[1], *out = &c->out[0];
    bool fits = in->rank >= 3 && grid->rank == in->rank && out->rank == in->rank &&
                grid->dim[in->rank - 1] == (int64_t)in->rank - 2 && out->dim[0] == in->dim[0] &&
                grid->dim[0] == in->dim[0] && out->dim[1] == in->dim[1];
    for (uint32_t i = 2; fits && i < in->rank; i++) fits = out->dim[i] == grid->dim[i - 1];
    if (!fits) return move_shape_fault(c, "the shapes of input, grid and output do not go together");
    if (view_count(out) == 0) return SINTER_OK;
    if (view_count(in) == 0) return move_shape_fault(c, "the input is empty");
    const uint32_t spatial = in->rank - 2;
    const bool is_narrow = grid->dtype != SINTER_DTYPE_F64;
    int64_t i[SINTER_RANK_MAX] = { 0 };
    grid_axis axis[SINTER_RANK_MAX];
    /* Places in the outer loop: their taps serve all channels. */
    for (bool more = view_first(grid->dim, spatial + 1, i); more; more = view_next(grid->dim, spatial + 1, i)) {
        int64_t at = 0, to = i[0] * out->stride[0];
        for (uint32_t k = 0; k <= spatial; k++) at += i[k] * grid->stride[k];
        for (uint32_t k = 0; k < spatial; k++) {
            /* A place names its last axis first. */
            const double place = view_load_f64(grid, at + (int64_t)(spatial - 1 - k) * grid->stride[spatial + 1]);
            axis[k] = grid_axis_of(a, place, in->dim[k + 2], is_narrow);
            to += i[k + 1] * out->stride[k + 2];
        }
        for (int64_t channel = 0; channel < in->dim[1]; channel++) {
            const double value = grid_sum(in, i[0] * in->stride[0] + channel * in->stride[1], axis, spatial);
            view_store_f64(out, to + channel * out->stride[1], dtype_is_float(out->dtype) ? value : nearbyint(value));
        }
    }
    return SINTER_OK;
}

/* ---- affine_grid ---- */

sinter_status reference_affine_grid(ref_call *c)
{
    const attrs_affine_grid *a = c->attrs;
    const view *theta = &c->in[0], *out = &c->out[0];
    const uint32_t spatial = out->rank < 3 ? 0 : out->rank - 2;
    if ((spatial != 2 && spatial != 3) || theta->rank != 3 || theta->dim[0] != out->dim[0] ||
        theta->dim[1] != (int64_t)spatial || theta->dim[2] != (int64_t)spatial + 1 ||
        out->dim[spatial + 1] != (int64_t)spatial)
        return move_shape_fault(c, "theta and output do not have shapes that go together");
    int64_t i[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(out->dim, out->rank, i); more; more = view_next(out->dim, out->rank, i)) {
        const int64_t row = i[0] * theta->stride[0] + i[spatial + 1] * theta->stride[1];
        double sum = view_load_f64(theta, row + (int64_t)spatial * theta->stride[2]);
        for (uint32_t k = 0; k < spatial; k++) {
            /* Column k of theta belongs to the k-th axis from the end: x, y, z. */
            const uint32_t axis = spatial - k;
            const double n = (double)out->dim[axis], at = (double)i[axis];
            const double place = !a->align_corners ? (2 * at + 1) / n - 1 : n > 1 ? 2 * at / (n - 1) - 1 : -1;
            sum += place * view_load_f64(theta, row + (int64_t)k * theta->stride[2]);
        }
        view_store_f64(out, view_offset(out, i), sum);
    }
    return SINTER_OK;
}

/* ---- col2im ---- */

/* How a block moves along one spatial axis. */
typedef struct block_slide {
    int64_t block, dilation, stride, pad, places;
} block_slide;

static sinter_status block_slide_of(ref_call *c, uint32_t i, block_slide *out)
{
    const attrs_col2im *a = c->attrs;
    const uint32_t spatial = c->out[0].rank - 2;
    const block_slide s = { a->block.at[i], a->dilation.count > i ? a->dilation.at[i] : 1,
                            a->stride.count > i ? a->stride.at[i] : 1, a->pad.count > i ? a->pad.at[i] : 0, 0 };
    const int64_t pad_end = a->pad.count > i + spatial ? a->pad.at[i + spatial] : 0;
    int64_t room = 0, span = 0;
    *out = s;
    if (s.block < 1 || s.dilation < 1 || s.stride < 1 || s.pad < 0 || pad_end < 0 ||
        !i64_mul(s.block - 1, s.dilation, &span) || !i64_add(c->out[0].dim[i + 2], s.pad, &room) ||
        !i64_add(room, pad_end, &room) || span > room - 1)
        return move_shape_fault(c, "a block is larger than the padded image");
    out->places = (room - 1 - span) / s.stride + 1;
    return SINTER_OK;
}

sinter_status reference_col2im(ref_call *c)
{
    const attrs_col2im *a = c->attrs;
    const view *in = &c->in[0], *out = &c->out[0];
    const uint32_t spatial = out->rank < 3 ? 0 : out->rank - 2;
    if (spatial == 0 || a->block.count != spatial || in->rank != 3)
        return move_shape_fault(c, "the ranks do not go together");
    block_slide s[SINTER_RANK_MAX];
    int64_t block[SINTER_RANK_MAX] = { 0 }, kernel = 1, places = 1;
    for (uint32_t i = 0; i < spatial; i++) {
        TRY(block_slide_of(c, i, &s[i]));
        block[i] = s[i].block;
        if (!i64_mul(kernel, s[i].block, &kernel) || !i64_mul(places, s[i].places, &places))
            return move_shape_fault(c, "the block has too many elements");
    }
    int64_t channels = 0;
    if (in->dim[0] != out->dim[0] || !i64_mul(out->dim[1], kernel, &channels) || in->dim[1] != channels ||
        in->dim[2] != places) {
        return move_shape_fault(c, "input and image do not have shapes that go together");
    }
    int64_t i[SINTER_RANK_MAX] = { 0 }, k[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(out->dim, out->rank, i); more; more = view_next(out->dim, out->rank, i)) {
        /* Seen from the image: which element of which block lies here. */
        double sum = 0;
        int64_t position = 0;
        for (bool next = view_first(block, spatial, k); next; next = view_next(block, spatial, k), position++) {
            int64_t place = 0;
            bool is_hit = true;
            for (uint32_t d = 0; d < spatial && is_hit; d++) {
                const int64_t at = i[d + 2] + s[d].pad - k[d] * s[d].dilation;
                is_hit = at >= 0 && at % s[d].stride == 0 && at / s[d].stride < s[d].places;
                place = place * s[d].places + at / s[d].stride;
            }
            if (!is_hit) continue;
            sum += view_load_f64(in, i[0] * in->stride[0] + (i[1] * kernel + position) * in->stride[1] +
                                         place * in->stride[2]);
        }
        view_store_f64(out, view_offset(out, i), sum);
    }
    return SINTER_OK;
}
