/* SPDX-License-Identifier: Apache-2.0 */
/* row_resize.c - nearest and linear resize of images and lines, any strides: linear in f32, nearest also of other
 * types.
 *
 * The places that a column of results takes are computed once a run. Where channels are adjacent, a pixel is a copy or
 * a blend of four rows. Where widths are adjacent, a row of results is picked from one row, or is the blend of two
 * rows, which are kept for the next row. Else elements are blended one by one. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"
#include "ops/move.h"
#include "ops/taps.h"

#include <math.h>
#include <string.h>

/* COLS: results of a row whose places are computed at once; ROWS: rows of a plane that are one piece of work. */
enum { COLS = 1024, ROWS = 128 };

typedef enum resize_way { RESIZE_LAST, RESIZE_WIDTH, RESIZE_ELEMENTS } resize_way;

typedef struct record {
    const rows_set *set;
    resize_way way;
    bool is_nearest;
    uint32_t size; /* bytes of an element */
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
    REJECT_UNLESS(p->in[0].rank == 3 || p->in[0].rank == 4, "neither of rank 3 nor of rank 4");
    const attrs_resize *a = p->attrs;
    const bool is_copy = a->mode == resize_mode_nearest && !p->epilogue && p->out[0].dtype == p->in[0].dtype &&
                         sinter_dtype_bits(p->in[0].dtype) >= 8;
    REJECT_UNLESS(is_copy || row_is_f32(p, 1), "not in f32");
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
    const uint32_t last = p->in[0].rank - 1;
    const uint8_t in = p->in[0].order[last], out = p->out[0].order[last];
    return row_memory_ns(p, target, in == out && (in == 1 || in == last) ? 1.5 : 15);
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
    r->size = sinter_dtype_bits(x->dtype) / 8;
    r->coordinate = a->coordinate;
    r->nearest = a->nearest;
    r->images = x->dim[0];
    r->channels = x->dim[1];
    r->x_image = x->stride[0];
    r->x_channel = x->stride[1];
    r->y_image = y->stride[0];
    r->y_channel = y->stride[1];
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t axis = x->rank - 2 + i;
        /* A line is an image of one row. */
        r->in[i] = axis == 1 ? 1 : x->dim[axis];
        r->out[i] = axis == 1 ? 1 : y->dim[axis];
        r->x_dim[i] = axis == 1 ? 0 : x->stride[axis];
        r->y_dim[i] = axis == 1 ? 0 : y->stride[axis];
        r->scale[i] = axis == 1 ? 1 : a->scale.count ? a->scale.at[axis] : (double)r->out[i] / (double)r->in[i];
        if (r->out[i] && (!(r->scale[i] > 0) || !isfinite(r->scale[i]) || !r->in[i]))
            return FAIL(e, INVALID_ARG, "resize: the scale of axis %u is %g, of %lld elements", axis, r->scale[i],
                        (long long)r->in[i]);
    }
    const bool is_width = (r->x_dim[1] == 1 || r->in[1] == 1) && (r->y_dim[1] == 1 || r->out[1] == 1);
    r->way = r->x_channel == 1 && r->y_channel == 1 ? RESIZE_LAST
             : is_width && r->in[1] <= INT32_MAX    ? RESIZE_WIDTH
             : r->channels == 1                     ? RESIZE_LAST
                                                    : RESIZE_ELEMENTS;
    return row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

static double position(const record *r, uint32_t axis, int64_t i)
{
    const double x = (double)i, width = (double)r->in[axis], scale = r->scale[axis], wanted = scale * width;
    const bool is_one = fabs(wanted - 1) < 1e-6;
    const double from = r->is_nearest ? resize_place(x / scale) : x / scale;
    const double half = r->is_nearest ? resize_place((x + 0.5) / scale) : (x + 0.5) / scale;
    switch (r->coordinate) {
    case resize_coordinate_align_corners: return is_one || r->out[axis] == 1 ? 0 : x * (width - 1) / (wanted - 1);
    case resize_coordinate_asymmetric: return from;
    case resize_coordinate_tf_half_pixel_for_nn: return scale == 1 ? x : half;
    case resize_coordinate_pytorch_half_pixel: return r->out[axis] > 1 ? half - 0.5 : 0;
    case resize_coordinate_half_pixel_symmetric: {
        const double at = width / 2 * (1 - (double)r->out[axis] / wanted) + (x + 0.5) / scale - 0.5;
        return r->is_nearest ? resize_place(at) : at;
    }
    default: return half - 0.5;
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

/* Results [begin, begin + n) of every row: of each the two columns that it takes, and the weight of the second. */
typedef struct columns {
    int64_t begin, n;
    bool twice; /* each column of a row twice: result i is from i / 2 */
    int32_t at[2][COLS];
    float weight[COLS];
} columns;

typedef struct job {
    const record *r;
    const columns *w;
    const char *x;
    char *y;
} job;

/* A weight of zero must not bring in an infinity, and a difference of large numbers would be one. */
static float blend(float a, float b, float weight)
{
    return weight == 0 ? a : a * (1 - weight) + b * weight;
}

static void copy_elements(char *y, int64_t y_step, const char *x, int64_t x_step, int64_t n, uint32_t size)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < n; i++) y[i * y_step] = x[i * x_step];
        break;
    case 2:
        for (int64_t i = 0; i < n; i++) memcpy(y + i * y_step * 2, x + i * x_step * 2, 2);
        break;
    case 4:
        for (int64_t i = 0; i < n; i++) memcpy(y + i * y_step * 4, x + i * x_step * 4, 4);
        break;
    default:
        for (int64_t i = 0; i < n; i++) memcpy(y + i * y_step * size, x + i * x_step * size, size);
        break;
    }
}

/* One pixel of all channels. */
static void pixel(const record *r, char *to, const char *from, pair h, pair w)
{
    if (r->is_nearest) {
        from += (h.at[0] * r->x_dim[0] + w.at[0] * r->x_dim[1]) * r->size;
        if (r->way == RESIZE_LAST) memcpy(to, from, (size_t)r->channels * r->size);
        else copy_elements(to, r->y_channel, from, r->x_channel, r->channels, r->size);
        return;
    }
    const float *x = (const float *)(const void *)from;
    float *y = (float *)(void *)to;
    const float *row0 = x + h.at[0] * r->x_dim[0], *row1 = x + h.at[1] * r->x_dim[0];
    const int64_t w0 = w.at[0] * r->x_dim[1], w1 = w.at[1] * r->x_dim[1];
    if (r->way == RESIZE_LAST && h.weight == 0 && w.weight == 0) {
        memcpy(y, row0 + w0, (size_t)r->channels * sizeof *y);
        return;
    }
    if (r->way == RESIZE_LAST) {
        const float *rows[4] = { row0 + w0, w.weight == 0 ? row0 + w0 : row0 + w1,
                                 h.weight == 0 ? row0 + w0 : row1 + w0, row1 + w1 };
        if (h.weight == 0) rows[3] = rows[1];
        else if (w.weight == 0) rows[3] = rows[2];
        /* A pixel that stands twice has half its weight twice: zero times an infinity would be NaN. */
        const float u = h.weight == 0 ? 0.5f : h.weight, v = w.weight == 0 ? 0.5f : w.weight;
        const float k[4] = { (1 - u) * (1 - v), (1 - u) * v, u * (1 - v), u * v };
        r->set->blend4(y, rows, k, r->channels);
        return;
    }
    for (int64_t c = 0; c < r->channels; c++) {
        const int64_t at = c * r->x_channel;
        const float top = blend(row0[w0 + at], row0[w1 + at], w.weight);
        y[c * r->y_channel] = h.weight == 0 ? top : blend(top, blend(row1[w0 + at], row1[w1 + at], w.weight), h.weight);
    }
}

static void pixels(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const columns *w = j->w;
    const bool is_narrow = r->in[1] <= INT32_MAX; /* else the columns of w do not hold the places */
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i / r->out[0], h = i % r->out[0];
        const pair of_h = pair_of(r, 0, h);
        char *y = j->y + (n * r->y_image + h * r->y_dim[0] + w->begin * r->y_dim[1]) * r->size;
        for (int64_t k = 0; k < w->n; k++)
            pixel(r, y + k * r->y_dim[1] * r->size, j->x + n * r->x_image * r->size, of_h,
                  is_narrow ? (pair){ { w->at[0][k], w->at[1][k] }, w->weight[k] } : pair_of(r, 1, w->begin + k));
    }
}

/* The same row in each of `rows` rows of results. */
static void pick_elements(const record *r, const columns *w, char *y, int64_t rows, const char *x)
{
    const int64_t y_row = r->y_dim[0] * r->size;
    if (r->size == 4) {
        r->set->pick((float *)(void *)y, r->y_dim[0], rows, (const float *)(const void *)x, r->in[1], w->at[0], w->n,
                     w->twice);
        return;
    }
    switch (r->size) {
    case 1:
        for (int64_t i = 0; i < w->n; i++) y[i] = x[w->at[0][i]];
        break;
    case 2:
        for (int64_t i = 0; i < w->n; i++) memcpy(y + i * 2, x + w->at[0][i] * 2LL, 2);
        break;
    default:
        for (int64_t i = 0; i < w->n; i++) memcpy(y + i * r->size, x + w->at[0][i] * (int64_t)r->size, r->size);
        break;
    }
    for (int64_t i = 1; i < rows; i++) memcpy(y + i * y_row, y, (size_t)(w->n * r->size));
}

/* Two rows of inputs, blended along the width. */
typedef struct blended {
    int64_t at[2]; /* -1: none */
    float row[2][COLS];
} blended;

/* The row `at` of a plane: the one that is kept, or made in the place of one that is not `other`. */
static const float *blended_row(const record *r, const columns *w, blended *b, const char *x, int64_t at, int64_t other)
{
    for (uint32_t i = 0; i < 2; i++)
        if (b->at[i] == at) return b->row[i];
    const uint32_t i = b->at[0] == other;
    const int32_t *both[2] = { w->at[0], w->at[1] };
    b->at[i] = at;
    r->set->pick2(b->row[i], (const float *)(const void *)(x + at * r->x_dim[0] * r->size), r->in[1], both, w->weight,
                  w->n);
    return b->row[i];
}

/* Whether `count` rows of results are pairs of the same row, and these follow each other. */
static bool is_twice(const pair *h, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (h[i].at[0] != h[0].at[0] + i / 2) return false;
    return count % 2 == 0;
}

/* Results of `count` rows of one plane; y: the first of them. both: is_twice. */
static void plane_rows(const record *r, const columns *w, blended *b, char *y, const char *x, const pair *h,
                       int64_t count, bool both)
{
    if (both && w->twice && r->is_nearest && r->size == 4 && w->n == 2 * r->in[1]) {
        r->set->twice((float *)(void *)y, r->y_dim[0], (const float *)(const void *)x + h[0].at[0] * r->x_dim[0],
                      r->x_dim[0], count / 2, r->in[1]);
        return;
    }
    const int64_t size = r->size;
    const size_t row_size = (size_t)(w->n * size);
    const char *last = NULL; /* of the row before, where it is a row of inputs */
    b->at[0] = b->at[1] = -1;
    for (int64_t i = 0, rows; r->is_nearest && i < count; i += rows, y += rows * r->y_dim[0] * size) {
        for (rows = 1; i + rows < count && h[i + rows].at[0] == h[i].at[0];) rows++;
        pick_elements(r, w, y, rows, x + h[i].at[0] * r->x_dim[0] * size);
    }
    for (int64_t i = 0; !r->is_nearest && i < count; i++, y += r->y_dim[0] * size) {
        const pair p = h[i];
        if (last && h[i - 1].at[0] == p.at[0] && p.weight == 0) {
            memcpy(y, last, row_size);
            continue;
        }
        last = p.weight == 0 ? y : NULL;
        const float *top = blended_row(r, w, b, x, p.at[0], p.at[1]);
        if (p.weight == 0) {
            memcpy(y, top, row_size);
            continue;
        }
        const float *low = blended_row(r, w, b, x, p.at[1], p.at[0]);
        r->set->blend2((float *)(void *)y, top, low, p.weight, w->n);
    }
}

/* ROWS rows of a plane are a piece of work; the pieces of the same rows follow each other. */
static void width_rows(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t planes = r->images * r->channels;
    int64_t known = -1;
    bool both = false;
    pair h[ROWS];
    blended b;
    for (int64_t i = begin; i < end; i++) {
        const int64_t plane = i % planes, n = plane / r->channels, c = plane % r->channels, first = i / planes * ROWS;
        const int64_t count = r->out[0] - first < ROWS ? r->out[0] - first : ROWS;
        for (int64_t k = 0; k < count && known != first; k++) h[k] = pair_of(r, 0, first + k);
        if (known != first) both = is_twice(h, count);
        known = first;
        plane_rows(r, j->w, &b,
                   j->y +
                       (n * r->y_image + c * r->y_channel + first * r->y_dim[0] + j->w->begin * r->y_dim[1]) * r->size,
                   j->x + (n * r->x_image + c * r->x_channel) * r->size, h, count, both);
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    columns w;
    job j = { r, &w, k->in[0], k->out[0] };
    for (w.begin = 0; r->channels && r->out[0] && w.begin < r->out[1]; w.begin += w.n) {
        w.n = r->out[1] - w.begin < COLS ? r->out[1] - w.begin : COLS;
        for (int64_t i = 0; i < w.n; i++) {
            const pair p = pair_of(r, 1, w.begin + i);
            w.at[0][i] = (int32_t)p.at[0];
            w.at[1][i] = (int32_t)p.at[1];
            w.weight[i] = p.weight;
            w.twice = (i == 0 || w.twice) && p.at[0] == i / 2;
        }
        if (r->way == RESIZE_WIDTH)
            row_parallel(k, r->images * r->channels * ((r->out[0] + ROWS - 1) / ROWS), width_rows, &j);
        else row_parallel(k, r->images * r->out[0], pixels, &j);
    }
    row_after_all(&r->after, k, k->out[0]);
    return SINTER_OK;
}

const kernel cpu_resize = {
    .name = "cpu_resize",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
