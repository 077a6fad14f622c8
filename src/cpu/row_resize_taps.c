/* SPDX-License-Identifier: Apache-2.0 */
/* row_resize_taps.c - resizes of lines, images and volumes in f32 whose results are sums of any few elements along each
 * axis: cubic, antialias, crops, weights outside left out, and all modes in three dims.
 *
 * A row of results is made in two steps. Rows of the input are added up, each with its weight, into a line. Then the
 * line is resized along the width: where widths are adjacent its elements are gathered, where channels are adjacent
 * pixels are added up. A line holds the columns that some results take, of one plane or of some channels. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"
#include "ops/taps.h"

#include <math.h>
#include <string.h>

/* ROWS: input rows that a row of results takes; TAPS: of one axis; BLOCK: rows of results of a plane that are one piece
 * of work. */
enum { COLS = 128, TAPS = 32, ROWS = 64, BLOCK = 16, LINE = 4096, CHANNELS = 64, SPATIAL = 3 };

typedef struct record {
    const rows_set *set;
    const attrs_resize *a;
    bool is_last;   /* channels are adjacent */
    uint32_t outer; /* axes before the width */
    resize_axis axis[SPATIAL];
    int64_t images, channels, rows; /* rows: of a plane of results */
    int64_t part;                   /* channels of a line; 1: a plane */
    int64_t x_image, x_channel, x_dim[SPATIAL], y_image, y_channel, y_dim[SPATIAL];
    row_after after;
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_resize, "not a resize");
    const problem_operand *x = &p->in[0], *y = &p->out[0];
    const uint32_t rank = x->rank, last = rank - 1;
    REJECT_UNLESS(rank >= 3 && rank <= 2 + SPATIAL && y->rank == rank, "of another rank than 3 to 5");
    REJECT_UNLESS(row_is_f32(p, 1), "not in f32");
    const attrs_resize *a = p->attrs;
    const bool has_box = a->coordinate == resize_coordinate_tf_crop_and_resize;
    REJECT_UNLESS(!has_box || a->roi.count == 2 * rank, "crops without a box");
    double rows = 1;
    for (uint32_t i = 0; i < rank; i++) {
        const dim_range from = x->dim[i], to = y->dim[i];
        if (i < 2) {
            REJECT_UNLESS(!memcmp(&from, &to, sizeof from) && (a->scale.count == 0 || a->scale.at[i] == 1),
                          "resizes images or channels");
            REJECT_UNLESS(!has_box || (a->roi.at[i] == 0 && a->roi.at[rank + i] == 1), "crops images or channels");
            continue;
        }
        /* The least scale that the sizes allow. */
        const double least = a->scale.count ? a->scale.at[i] : (double)to.min / (double)from.max;
        const double taps = a->mode == resize_mode_nearest ? 1 : 2 * resize_reach(a, least) + 2;
        REJECT_UNLESS(taps <= TAPS, "too many taps");
        if (i < last) rows *= taps;
    }
    REJECT_UNLESS(rows <= ROWS, "too many taps");
    const uint8_t inner = x->order[last];
    REJECT_UNLESS(inner == y->order[last] && !x->is_gapped && !y->is_gapped && (inner == 1 || inner == last),
                  "neither widths nor channels are adjacent");
    REJECT_UNLESS(!p->prologue, "has a prologue");
    return p->epilogue || p->count_out > 1 ? row_after_reject(p) : NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const attrs_resize *a = p->attrs;
    return row_memory_ns(p, target, a->mode == resize_mode_cubic ? 12 : 6);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const view *x = &in[0], *y = &out[0];
    *r = (record){ .set = level_of(isa)->rows,
                   .a = attrs,
                   .is_last = p->out[0].order[x->rank - 1] == 1,
                   .outer = x->rank - 3,
                   .images = x->dim[0],
                   .channels = x->dim[1],
                   .rows = 1,
                   .x_image = x->stride[0],
                   .x_channel = x->stride[1],
                   .y_image = y->stride[0],
                   .y_channel = y->stride[1] };
    r->part = !r->is_last ? 1 : r->channels < CHANNELS ? r->channels : CHANNELS;
    int64_t taken = 1;
    for (uint32_t i = 0; i <= r->outer; i++) {
        const uint32_t axis = 2 + i;
        const double scale = r->a->scale.count ? r->a->scale.at[axis] : (double)y->dim[axis] / (double)x->dim[axis];
        r->x_dim[i] = x->stride[axis];
        r->y_dim[i] = y->stride[axis];
        r->axis[i] = (resize_axis){ r->a, axis, x->rank, x->dim[axis], y->dim[axis], scale, 0 };
        if (!(scale > 0) || !isfinite(scale) || !x->dim[axis])
            return FAIL(e, INVALID_ARG, "resize: the scale of axis %u is %g, of %lld elements", axis, scale,
                        (long long)x->dim[axis]);
        r->axis[i].reach = resize_reach(r->a, scale);
        if (r->axis[i].reach <= TAPS / 2 - 1 && i < r->outer) taken *= resize_taps_most(&r->axis[i]);
        if (r->axis[i].reach > TAPS / 2 - 1 || taken > ROWS)
            return FAIL(e, UNSUPPORTED, "resize: the scale of axis %u is %g: too small for antialias", axis, scale);
        if (i < r->outer) r->rows *= y->dim[axis];
    }
    return row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

/* Results [begin, begin + n) of every row. Tap k of column i is `at[k][i]` columns behind `low`; the line has `width`
 * columns. */
typedef struct columns {
    int64_t begin, n, low, width, taps;
    bool is_copy; /* every result is one element */
    bool twice;   /* each column stands twice */
    bool is_pair; /* of two taps, the second right behind the first, or without weight */
    bool is_outside[COLS];
    int32_t at[TAPS][COLS];
    float weight[TAPS][COLS];
} columns;

static void columns_of(const record *r, int64_t begin, columns *w)
{
    const resize_axis *x = &r->axis[r->outer];
    const int64_t most = r->part > 0 ? LINE / r->part : LINE, want = x->n_out - begin < COLS ? x->n_out - begin : COLS;
    resize_tap tap[TAPS];
    int64_t index[TAPS][COLS], low = INT64_MAX, high = 0;
    *w = (columns){ .begin = begin, .taps = 1, .is_copy = true };
    for (; w->n < want; w->n++) {
        const int64_t i = w->n;
        const uint32_t count = resize_taps(x, begin + i, tap);
        int64_t from = low, to = high;
        for (uint32_t k = 0; k < count; k++) {
            from = tap[k].index < from ? tap[k].index : from;
            to = tap[k].index > to ? tap[k].index : to;
        }
        if (i > 0 && to - from >= most) break;
        low = from;
        high = to;
        w->is_outside[i] = !count;
        w->is_copy = w->is_copy && count == 1 && tap[0].weight == 1;
        for (uint32_t k = 0; k < count; k++) {
            index[k][i] = tap[k].index;
            w->weight[k][i] = (float)tap[k].weight;
        }
        if (count > w->taps) w->taps = count;
    }
    w->low = low == INT64_MAX ? 0 : low;
    w->width = low == INT64_MAX ? 1 : high - low + 1;
    for (int64_t k = 0; k < w->taps; k++)
        for (int64_t i = 0; i < w->n; i++) w->at[k][i] = w->weight[k][i] != 0 ? (int32_t)(index[k][i] - low) : 0;
    w->is_pair = w->taps == 2;
    for (int64_t i = 0; i < w->n; i++)
        w->is_pair = w->is_pair && (w->weight[1][i] == 0 || w->at[1][i] == w->at[0][i] + 1);
    w->twice = true;
    for (int64_t i = 0; i < w->n; i++) w->twice = w->twice && w->at[0][i] == i / 2;
}

/* The rows of the input that a row of results takes. */
typedef struct rows_of {
    int64_t count; /* 0: the row lies outside */
    int64_t at[ROWS];
    float weight[ROWS];
    int64_t y; /* where the row of results begins */
} rows_of;

static void rows_find(const record *r, int64_t row, rows_of *h)
{
    resize_tap tap[TAPS];
    h->count = 1;
    h->at[0] = h->y = 0;
    h->weight[0] = 1;
    for (uint32_t i = r->outer; i-- > 0;) {
        const int64_t index = row % r->axis[i].n_out, had = h->count;
        const uint32_t count = resize_taps(&r->axis[i], index, tap);
        row /= r->axis[i].n_out;
        h->y += index * r->y_dim[i];
        /* The first tap is done last: its rows are those that are read. */
        for (uint32_t k = count; k-- > 0;) {
            for (int64_t n = 0; n < had; n++) {
                h->at[k * had + n] = h->at[n] + tap[k].index * r->x_dim[i];
                h->weight[k * had + n] = h->weight[n] * (float)tap[k].weight;
            }
        }
        h->count = had * count;
    }
}

/* The sum of n elements of each row; x: the first row's. */
static void add_rows(const record *r, float *line, const float *x, const rows_of *h, int64_t n)
{
    const float *rows[ROWS];
    for (int64_t k = 0; k < h->count; k++) rows[k] = x + h->at[k];
    r->set->blend_of(line, rows, h->weight, h->count, n);
}

/* Results of a row of one plane. */
static void plane_row(const record *r, const columns *w, const rows_of *h, float *y, const float *x)
{
    float line[LINE + 1];
    if (h->count == 1 && h->weight[0] == 1 && w->is_copy) {
        r->set->pick(y, 0, 1, x + w->low + h->at[0], w->width, w->at[0], w->n, w->twice);
        return;
    }
    if (h->count) {
        add_rows(r, line, x + w->low, h, w->width);
        if (w->is_pair) r->set->gather_two(y, line, w->at[0], w->weight[0], COLS, w->n);
        else r->set->gather_blend(y, line, w->at[0], w->weight[0], COLS, w->taps, w->n);
    }
    for (int64_t i = 0; i < w->n; i++)
        if (!h->count || w->is_outside[i]) y[i] = (float)r->a->extrapolation;
}

/* Results of a row for `n` adjacent channels. */
static void pixels_row(const record *r, const columns *w, const rows_of *h, float *y, const float *x, int64_t n)
{
    float line[LINE];
    const int64_t pixel = r->x_dim[r->outer];
    x += w->low * pixel;
    if (h->count && pixel == n) add_rows(r, line, x, h, w->width * n);
    else
        for (int64_t i = 0; h->count && i < w->width; i++) add_rows(r, line + i * n, x + i * pixel, h, n);
    for (int64_t i = 0; i < w->n; i++, y += r->y_dim[r->outer]) {
        const float *rows[TAPS];
        float weight[TAPS];
        int64_t count = 0;
        for (int64_t k = 0; k < w->taps; k++) {
            if (w->weight[k][i] == 0) continue;
            rows[count] = line + w->at[k][i] * n;
            weight[count++] = w->weight[k][i];
        }
        if (h->count && !w->is_outside[i]) r->set->blend_of(y, rows, weight, count, n);
        else
            for (int64_t c = 0; c < n; c++) y[c] = (float)r->a->extrapolation;
    }
}

typedef struct job {
    const record *r;
    const columns *w;
    const float *x;
    float *y;
} job;

/* Parts of channels that one row of results follows another in. */
static int64_t parts_of(const record *r)
{
    return r->part > 0 ? (r->channels + r->part - 1) / r->part : 0;
}

/* BLOCK rows of a plane, or of a part of the channels, are a piece of work; the pieces of the same rows follow each
 * other. */
static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t parts = parts_of(r), planes = r->images * parts;
    rows_of h[BLOCK];
    int64_t known = -1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i / planes * BLOCK, n = i % planes / parts, c = i % parts * r->part;
        const int64_t count = r->rows - first < BLOCK ? r->rows - first : BLOCK;
        for (int64_t k = 0; k < count && known != first; k++) rows_find(r, first + k, &h[k]);
        known = first;
        const float *x = j->x + n * r->x_image + c * r->x_channel;
        float *y = j->y + n * r->y_image + c * r->y_channel + j->w->begin * r->y_dim[r->outer];
        for (int64_t k = 0; k < count; k++) {
            if (!r->is_last) plane_row(r, j->w, &h[k], y + h[k].y, x);
            else pixels_row(r, j->w, &h[k], y + h[k].y, x, r->channels - c < r->part ? r->channels - c : r->part);
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    columns w;
    job j = { r, &w, k->in[0], k->out[0] };
    for (int64_t at = 0; r->channels && at < r->axis[r->outer].n_out; at += w.n) {
        columns_of(r, at, &w);
        row_parallel(k, (r->rows + BLOCK - 1) / BLOCK * r->images * parts_of(r), body, &j);
    }
    row_after_all(&r->after, k, k->out[0]);
    return SINTER_OK;
}

const kernel cpu_resize_taps = {
    .name = "cpu_resize_taps",
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
