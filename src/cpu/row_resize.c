/* SPDX-License-Identifier: Apache-2.0 */
/* row_resize.c - nearest and linear resize of images in f32, any strides. Where channels are adjacent a pixel is a copy
 * or a blend of four rows; else elements are blended one by one. Coordinates are computed as they are needed. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"
#include "ops/move.h"

#include <math.h>

typedef struct record {
    const rows_set *set;
    bool is_nearest, is_last;
    int64_t coordinate, nearest;
    double scale[2];
    int64_t images, channels, in[2], out[2];
    int64_t x_image, x_channel, x_dim[2], y_image, y_channel, y_dim[2];
    row_after after;
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_resize, "not a resize");
    REJECT_UNLESS(row_is_f32(p, 1), "not in f32");
    REJECT_UNLESS(p->in[0].rank == 4, "not of rank 4");
    const attrs_resize *a = p->attrs;
    REJECT_UNLESS(a->mode == resize_mode_nearest || a->mode == resize_mode_linear, "neither nearest nor linear");
    REJECT_UNLESS(a->coordinate != resize_coordinate_tf_crop_and_resize, "crops");
    REJECT_UNLESS(!a->antialias && !a->exclude_outside, "antialias, or outside excluded");
    REJECT_UNLESS(a->scale.count == 0 || (a->scale.at[0] == 1 && a->scale.at[1] == 1), "resizes images or channels");
    for (uint32_t i = 0; i < 2; i++)
        REJECT_UNLESS(!memcmp(&p->in[0].dim[i], &p->out[0].dim[i], sizeof p->in[0].dim[i]),
                      "resizes images or channels");
    REJECT_UNLESS(!p->prologue, "has a prologue");
    return p->epilogue || p->count_out > 1 ? row_after_reject(p) : NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, p->out[0].order[3] == 1 ? 1.5 : 15);
}

static size_t record_size(const problem *p, const tactic *t)
{
    (void)t;
    return sizeof(record) + row_room(p);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_resize *a = attrs;
    const view *x = &in[0], *y = &out[0];
    r->set = level_of(isa)->rows;
    r->is_nearest = a->mode == resize_mode_nearest;
    r->coordinate = a->coordinate;
    r->nearest = a->nearest;
    r->images = x->dim[0];
    r->channels = x->dim[1];
    r->x_image = x->stride[0];
    r->x_channel = x->stride[1];
    r->y_image = y->stride[0];
    r->y_channel = y->stride[1];
    r->is_last = (r->x_channel == 1 && r->y_channel == 1) || r->channels == 1;
    for (uint32_t i = 0; i < 2; i++) {
        r->in[i] = x->dim[2 + i];
        r->out[i] = y->dim[2 + i];
        r->x_dim[i] = x->stride[2 + i];
        r->y_dim[i] = y->stride[2 + i];
        r->scale[i] = a->scale.count ? a->scale.at[2 + i] : (double)r->out[i] / (double)r->in[i];
        if (r->out[i] && (!(r->scale[i] > 0) || !isfinite(r->scale[i]) || !r->in[i]))
            return FAIL(e, INVALID_ARG, "resize: the scale of axis %u is %g, of %lld elements", 2 + i, r->scale[i],
                        (long long)r->in[i]);
    }
    return row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

static double position(const record *r, uint32_t axis, int64_t i)
{
    const double x = (double)i, width = (double)r->in[axis], scale = r->scale[axis], wanted = scale * width;
    const bool is_one = fabs(wanted - 1) < 1e-6;
    switch (r->coordinate) {
    case resize_coordinate_align_corners: return is_one || r->out[axis] == 1 ? 0 : x * (width - 1) / (wanted - 1);
    case resize_coordinate_asymmetric: return x / scale;
    case resize_coordinate_tf_half_pixel_for_nn: return scale == 1 ? x : (x + 0.5) / scale;
    case resize_coordinate_pytorch_half_pixel: return is_one ? -0.5 : (x + 0.5) / scale - 0.5;
    case resize_coordinate_half_pixel_symmetric:
        return width / 2 * (1 - (double)r->out[axis] / wanted) + (x + 0.5) / scale - 0.5;
    default: return (x + 0.5) / scale - 0.5;
    }
}

static int64_t clamped(double x, int64_t n)
{
    return x < 0 ? 0 : x > (double)(n - 1) ? n - 1 : (int64_t)x;
}

/* The two input coordinates of an output coordinate and the weight of the second; nearest: the first alone. */
typedef struct pair {
    int64_t at[2];
    float weight;
} pair;

static pair pair_of(const record *r, uint32_t axis, int64_t i)
{
    const double x = position(r, axis, i), low = floor(x), ratio = x - low;
    const int64_t n = r->in[axis];
    if (!r->is_nearest) {
        const int64_t a = clamped(low, n), b = clamped(low + 1, n);
        if (ratio < RESIZE_LEAST_WEIGHT) return (pair){ { a, a }, 0 };
        return 1 - ratio < RESIZE_LEAST_WEIGHT || (float)ratio == 1 ? (pair){ { b, b }, 0 }
                                                                    : (pair){ { a, b }, (float)ratio };
    }
    double at = x;
    if (ratio != 0) {
        switch (r->nearest) {
        case resize_nearest_floor: at = low; break;
        case resize_nearest_ceil: at = low + 1; break;
        case resize_nearest_round_prefer_ceil: at = ratio < 0.5 ? low : low + 1; break;
        default: at = ratio <= 0.5 ? low : low + 1; break;
        }
    }
    return (pair){ { clamped(at, n), clamped(at, n) }, 0 };
}

typedef struct job {
    const record *r;
    const float *x;
    float *y;
} job;

/* A weight of zero must not bring in an infinity, and a difference of large numbers would be one. */
static float blend(float a, float b, float weight)
{
    return weight == 0 ? a : a * (1 - weight) + b * weight;
}

static void pixel(const record *r, float *y, const float *x, pair h, pair w)
{
    const float *row0 = x + h.at[0] * r->x_dim[0], *row1 = x + h.at[1] * r->x_dim[0];
    const int64_t w0 = w.at[0] * r->x_dim[1], w1 = w.at[1] * r->x_dim[1];
    if (r->is_last && h.weight == 0 && w.weight == 0) {
        memcpy(y, row0 + w0, (size_t)r->channels * sizeof *y);
        return;
    }
    if (r->is_last) {
        const float *from[4] = { row0 + w0, w.weight == 0 ? row0 + w0 : row0 + w1,
                                 h.weight == 0 ? row0 + w0 : row1 + w0, row1 + w1 };
        if (h.weight == 0) from[3] = from[1];
        else if (w.weight == 0) from[3] = from[2];
        /* A pixel that stands twice has half its weight twice: zero times an infinity would be NaN. */
        const float u = h.weight == 0 ? 0.5f : h.weight, v = w.weight == 0 ? 0.5f : w.weight;
        const float k[4] = { (1 - u) * (1 - v), (1 - u) * v, u * (1 - v), u * v };
        r->set->blend4(y, from, k, r->channels);
        return;
    }
    for (int64_t c = 0; c < r->channels; c++) {
        const int64_t at = c * r->x_channel;
        const float top = blend(row0[w0 + at], row0[w1 + at], w.weight);
        y[c * r->y_channel] = h.weight == 0 ? top : blend(top, blend(row1[w0 + at], row1[w1 + at], w.weight), h.weight);
    }
}

static void rows(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i / r->out[0], h = i % r->out[0];
        const pair of_h = pair_of(r, 0, h);
        float *y = j->y + n * r->y_image + h * r->y_dim[0];
        for (int64_t w = 0; w < r->out[1]; w++)
            pixel(r, y + w * r->y_dim[1], j->x + n * r->x_image, of_h, pair_of(r, 1, w));
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k->in[0], k->out[0] };
    if (r->channels && r->out[1]) row_parallel(k, r->images * r->out[0], rows, &j);
    row_after_all(&r->after, k, j.y);
    return SINTER_OK;
}

const kernel cpu_resize = {
    .name = "cpu_resize",
    .abi = 1,
    .is_strided_out = true,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record_size = record_size,
    .bind = bind,
    .run = run,
};
