/* SPDX-License-Identifier: Apache-2.0 */
/* row_grid_sample.c - samples of images at places that are data, in f32: nearest, linear and cubic.
 *
 * Images have two or three axes. The taps of some places are computed once for all channels. Where channels are
 * adjacent, a sample is a sum of rows of channels. Else a row of samples of one channel is gathered; linear ones in two
 * axes by pairs of adjacent elements. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"
#include "ops/taps.h"

#include <string.h>

/* PLAIN_MOST: an axis of so many elements has coordinates in f32. */
enum { AXES = 3, PLACES = 128, TAPS = 16, PLAIN_MOST = 1 << 22 };

typedef struct record {
    const rows_set *set;
    attrs_grid_sample a;
    bool is_last; /* channels are adjacent */
    bool is_pairs;
    uint32_t axes; /* the last of AXES; one that is not there has one element */
    int64_t images, channels, in[AXES], out[AXES];
    int64_t x_image, x_channel, x_dim[AXES], y_image, y_channel, y_dim[AXES];
    int64_t grid_image, grid_dim[AXES + 1];
    int64_t taps, pieces; /* pieces: of a row of places */
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_grid_sample, "not a grid_sample");
    REJECT_UNLESS(row_is_f32(p, 2), "not in f32");
    const uint32_t rank = p->in[0].rank, last = rank - 1;
    REJECT_UNLESS((rank == 4 || rank == 5) && p->in[1].rank == rank && p->out[0].rank == rank, "not of rank 4 or 5");
    const attrs_grid_sample *a = p->attrs;
    REJECT_UNLESS(rank == 4 || a->mode != resize_mode_cubic, "cubic in three axes");
    const problem_operand *y = &p->out[0];
    REJECT_UNLESS(!y->is_gapped && (y->order[last] == last || (y->order[last] == 1 && row_is_channel_inner(&p->in[0]))),
                  "neither widths nor channels are adjacent");
    REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "takes no programs");
    return NULL;
}

static int64_t taps_of(const attrs_grid_sample *a, uint32_t axes)
{
    return a->mode == resize_mode_cubic ? 16 : a->mode == resize_mode_linear ? (int64_t)1 << axes : 1;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const attrs_grid_sample *a = p->attrs;
    const double taps = (double)taps_of(a, p->in[0].rank - 2);
    const double each = p->out[0].order[p->out[0].rank - 1] == 1 ? 0.1 : 0.4,
                 threads = target->threads ? target->threads : 1;
    return 500 + (row_operand_bytes(&p->out[0]) * taps * each / 4 + row_operand_bytes(&p->in[1]) * 4) / threads;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const view *x = &in[0], *grid = &in[1], *y = &out[0];
    const uint32_t axes = x->rank - 2;
    bool fits =
        grid->dim[x->rank - 1] == axes && grid->dim[0] == x->dim[0] && y->dim[0] == x->dim[0] && y->dim[1] == x->dim[1];
    for (uint32_t i = 0; i < axes; i++) fits = fits && y->dim[i + 2] == grid->dim[i + 1];
    if (!fits) return FAIL(e, INVALID_ARG, "grid_sample: the shapes of input, grid and output do not go together");
    *r = (record){ .set = level_of(isa)->rows, .axes = axes, .images = x->dim[0], .channels = x->dim[1] };
    memcpy(&r->a, attrs, sizeof r->a);
    r->is_last = p->out[0].order[x->rank - 1] == 1 && (r->channels > 1 || y->stride[x->rank - 1] != 1);
    r->x_image = x->stride[0];
    r->x_channel = x->stride[1];
    r->y_image = y->stride[0];
    r->y_channel = y->stride[1];
    r->grid_image = grid->stride[0];
    r->grid_dim[AXES] = grid->stride[axes + 1];
    double far = 0;
    r->in[0] = r->out[0] = 1;
    for (uint32_t i = AXES - axes; i < AXES; i++) {
        const uint32_t from = i + 2 + axes - AXES;
        r->in[i] = x->dim[from];
        r->out[i] = y->dim[from];
        r->x_dim[i] = x->stride[from];
        r->y_dim[i] = y->stride[from];
        r->grid_dim[i] = grid->stride[from - 1];
        far += (double)r->in[i] * (double)(r->x_dim[i] < 0 ? -r->x_dim[i] : r->x_dim[i]);
        if (!r->in[i]) return FAIL(e, INVALID_ARG, "grid_sample: the input is empty");
    }
    if (far > INT32_MAX) return FAIL(e, UNSUPPORTED, "grid_sample: a plane of %g elements", far);
    r->is_pairs = axes == 2 && !r->is_last && r->a.mode == resize_mode_linear && r->a.padding != pad_mode_reflect &&
                  r->x_dim[2] == 1 && r->in[2] > 1 && r->in[1] <= PLAIN_MOST && r->in[2] <= PLAIN_MOST;
    r->taps = taps_of(&r->a, axes);
    r->pieces = (r->out[2] + PLACES - 1) / PLACES;
    return SINTER_OK;
}

/* Tap k of place i is at[k][i]: the element's distance from the first one of its plane. */
typedef struct places {
    int32_t at[TAPS][PLACES];
    float weight[TAPS][PLACES];
} places;

/* Added to a number below 2^51, it leaves none but whole ones, half to even. */
#define WHOLE 6755399441055744.0

/* A coordinate of the grid, -1 to 1, in elements of an axis of n. What lies far outside is moved to just outside. */
static inline double coordinate_of(bool align, float place, int64_t n)
{
    const double count = (double)n, far = count + 1;
    const double wide = align ? ((double)place + 1) / 2 * (count - 1) : (((double)place + 1) * count - 1) / 2;
    double x = (double)(float)wide;
    x = x > -2 ? x : -2; /* NaN, too */
    return x < far ? x : far;
}

/* grid_axis_of for the nearest element with zeros or edges outside. */
static inline int64_t nearest_of(bool align, bool is_edge, float place, int64_t n)
{
    const int64_t at = (int64_t)(coordinate_of(align, place, n) + WHOLE - WHOLE), edge = at < 0 ? 0 : n - 1;
    return at >= 0 && at < n ? at : is_edge ? edge : -1;
}

static inline grid_axis axis_of(const record *r, float place, int64_t n)
{
    if (r->a.mode != resize_mode_nearest || r->a.padding == pad_mode_reflect || n > PLAIN_MOST)
        return grid_axis_of(&r->a, (double)place, n, true);
    const int64_t at = nearest_of(r->a.align_corners != 0, r->a.padding == pad_mode_edge, place, n);
    return (grid_axis){ .count = 1, .index = { at }, .weight = { 1 } };
}

static void places_of(const record *r, const float *grid, int64_t n, places *out)
{
    grid_axis depth = { .count = 1, .index = { 0 }, .weight = { 1 } };
    const int64_t *x = r->x_dim, next = r->grid_dim[3];
    for (int64_t i = 0; i < n; i++, grid += r->grid_dim[2]) {
        /* A place names its last axis first. */
        const grid_axis w = axis_of(r, grid[0], r->in[2]), h = axis_of(r, grid[next], r->in[1]);
        if (r->axes == 3) depth = axis_of(r, grid[2 * next], r->in[0]);
        uint32_t k = 0;
        for (uint32_t plane = 0; plane < depth.count; plane++)
            for (uint32_t row = 0; row < h.count; row++)
                for (uint32_t col = 0; col < w.count; col++, k++) {
                    const int64_t at = depth.index[plane] * x[0] + h.index[row] * x[1] + w.index[col] * x[2];
                    const bool is_there = depth.index[plane] >= 0 && h.index[row] >= 0 && w.index[col] >= 0;
                    out->at[k][i] = is_there ? (int32_t)at : 0;
                    out->weight[k][i] = is_there ? (float)(depth.weight[plane] * h.weight[row] * w.weight[col]) : 0;
                }
    }
    /* Vectors read behind the last place. */
    for (int64_t i = n; i < PLACES && i < n + 16; i++)
        for (int64_t k = 0; k < r->taps; k++) {
            out->at[k][i] = 0;
            out->weight[k][i] = 0;
        }
}

static void pairs_of(const record *r, const float *grid, int64_t n, places *out)
{
    float place[2][PLACES] = { 0 };
    for (int64_t i = 0; i < n; i++, grid += r->grid_dim[2]) {
        place[0][i] = grid[0];
        place[1][i] = grid[r->grid_dim[3]];
    }
    const rows_grid of = { .width = r->in[2],
                           .height = r->in[1],
                           .row = r->x_dim[1],
                           .align = r->a.align_corners != 0,
                           .is_edge = r->a.padding == pad_mode_edge };
    r->set->grid_pairs(&of, out->at[0], out->weight[0], PLACES, place[0], place[1], n);
    for (int64_t i = n; i < PLACES && i < n + 16; i++)
        for (int k = 0; k < 4; k++) {
            out->at[k / 2][i] = 0;
            out->weight[k][i] = 0;
        }
}

static void sample_channels(const record *r, float *y, const float *x, const places *of, int64_t i)
{
    const float *rows[TAPS];
    float weight[TAPS];
    int64_t count = 0;
    for (int64_t k = 0; k < r->taps; k++) {
        if (of->weight[k][i] == 0) continue;
        rows[count] = x + of->at[k][i];
        weight[count++] = of->weight[k][i];
    }
    if (count == 1 && weight[0] == 1) memcpy(y, rows[0], (size_t)r->channels * sizeof *y);
    else r->set->blend_of(y, rows, weight, count, r->channels);
}

/* One element for each place; at `none` of them there is nothing. */
static void sample_nearest(float *y, const float *x, const int32_t *at, int64_t n, const uint8_t *none, int64_t count)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float a = x[at[i]], b = x[at[i + 1]], c = x[at[i + 2]], d = x[at[i + 3]];
        y[i] = a, y[i + 1] = b, y[i + 2] = c, y[i + 3] = d;
    }
    for (; i < n; i++) y[i] = x[at[i]];
    for (int64_t k = 0; k < count; k++) y[none[k]] = 0;
}

typedef struct job {
    const record *r;
    const float *x, *grid;
    float *y;
} job;

/* A tile is up to PLACES places of one row, for all channels. */
static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    places of;
    for (int64_t t = begin; t < end; t++) {
        const int64_t first = t % r->pieces * PLACES, row = t / r->pieces % r->out[1];
        const int64_t plane = t / r->pieces / r->out[1] % r->out[0], n = t / r->pieces / r->out[1] / r->out[0];
        const int64_t count = r->out[2] - first < PLACES ? r->out[2] - first : PLACES;
        const float *x = j->x + n * r->x_image;
        float *y = j->y + n * r->y_image + plane * r->y_dim[0] + row * r->y_dim[1] + first * r->y_dim[2];
        const float *grid = j->grid + n * r->grid_image + plane * r->grid_dim[0] + row * r->grid_dim[1];
        grid += first * r->grid_dim[2];
        (r->is_pairs ? pairs_of : places_of)(r, grid, count, &of);
        if (r->is_last) {
            for (int64_t i = 0; i < count; i++) sample_channels(r, y + i * r->y_dim[2], x, &of, i);
            continue;
        }
        if (r->taps == 1) {
            uint8_t none[PLACES];
            int64_t missing = 0;
            for (int64_t i = 0; i < count; i++)
                if (of.weight[0][i] == 0) none[missing++] = (uint8_t)i;
            for (int64_t c = 0; c < r->channels; c++)
                sample_nearest(y + c * r->y_channel, x + c * r->x_channel, of.at[0], count, none, missing);
            continue;
        }
        for (int64_t c = 0; r->is_pairs && c < r->channels; c++)
            r->set->gather_pairs(y + c * r->y_channel, x + c * r->x_channel, of.at[0], of.weight[0], PLACES, count);
        for (int64_t c = 0; !r->is_pairs && c < r->channels; c++)
            r->set->gather_blend(y + c * r->y_channel, x + c * r->x_channel, of.at[0], of.weight[0], PLACES, r->taps,
                                 count);
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k->in[0], k->in[1], k->out[0] };
    row_parallel(k, r->images * r->out[0] * r->out[1] * r->pieces, body, &j);
    return SINTER_OK;
}

const kernel cpu_grid_sample = {
    .name = "cpu_grid_sample",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .bind = bind,
    .run = run,
};
