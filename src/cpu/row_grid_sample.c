/* SPDX-License-Identifier: Apache-2.0 */
/* row_grid_sample.c - samples of images at places that are data, in f32: nearest, linear and cubic.
 *
 * The taps of some places are computed once for all channels. Where channels are adjacent, a sample is a sum of rows
 * of channels. Else a row of samples of one channel is gathered; linear ones by pairs of adjacent elements. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"
#include "ops/taps.h"

#include <string.h>

/* PLAIN_MOST: an axis of so many elements has coordinates in f32. */
enum { PLACES = 128, TAPS = 16, PLAIN_MOST = 1 << 22 };

typedef struct record {
    const rows_set *set;
    attrs_grid_sample a;
    bool is_last; /* channels are adjacent */
    bool is_pairs;
    int64_t images, channels, in[2], out[2];
    int64_t x_image, x_channel, x_dim[2], y_image, y_channel, y_dim[2];
    int64_t grid_image, grid_dim[3];
    int64_t taps, pieces; /* pieces: of a row of places */
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_grid_sample, "not a grid_sample");
    REJECT_UNLESS(row_is_f32(p, 2), "not in f32");
    REJECT_UNLESS(p->in[0].rank == 4 && p->in[1].rank == 4 && p->out[0].rank == 4, "not of rank 4");
    const problem_operand *y = &p->out[0];
    REJECT_UNLESS(!y->is_gapped && (y->order[3] == 3 || (y->order[3] == 1 && row_is_channel_inner(&p->in[0]))),
                  "neither widths nor channels are adjacent");
    REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const attrs_grid_sample *a = p->attrs;
    const double taps = a->mode == resize_mode_cubic ? 16 : a->mode == resize_mode_linear ? 4 : 1;
    const double each = p->out[0].order[3] == 1 ? 0.1 : 0.4, threads = target->threads ? target->threads : 1;
    return 500 + (row_operand_bytes(&p->out[0]) * taps * each / 4 + row_operand_bytes(&p->in[1]) * 4) / threads;
}

static size_t record_size(const problem *p, const tactic *t)
{
    (void)p, (void)t;
    return sizeof(record);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const view *x = &in[0], *grid = &in[1], *y = &out[0];
    if (grid->dim[3] != 2 || grid->dim[0] != x->dim[0] || y->dim[0] != x->dim[0] || y->dim[1] != x->dim[1] ||
        y->dim[2] != grid->dim[1] || y->dim[3] != grid->dim[2])
        return FAIL(e, INVALID_ARG, "grid_sample: the shapes of input, grid and output do not go together");
    *r = (record){ .set = level_of(isa)->rows, .images = x->dim[0], .channels = x->dim[1] };
    memcpy(&r->a, attrs, sizeof r->a);
    r->is_last = p->out[0].order[3] == 1;
    r->x_image = x->stride[0];
    r->x_channel = x->stride[1];
    r->y_image = y->stride[0];
    r->y_channel = y->stride[1];
    r->grid_image = grid->stride[0];
    for (uint32_t i = 0; i < 3; i++) r->grid_dim[i] = grid->stride[i + 1];
    double far = 0;
    for (uint32_t i = 0; i < 2; i++) {
        r->in[i] = x->dim[i + 2];
        r->out[i] = y->dim[i + 2];
        r->x_dim[i] = x->stride[i + 2];
        r->y_dim[i] = y->stride[i + 2];
        far += (double)r->in[i] * (double)(r->x_dim[i] < 0 ? -r->x_dim[i] : r->x_dim[i]);
        if (!r->in[i]) return FAIL(e, INVALID_ARG, "grid_sample: the input is empty");
    }
    if (far > INT32_MAX) return FAIL(e, UNSUPPORTED, "grid_sample: a plane of %g elements", far);
    r->is_pairs = !r->is_last && r->a.mode == resize_mode_linear && r->a.padding != pad_mode_reflect &&
                  r->x_dim[1] == 1 && r->in[1] > 1 && r->in[0] <= PLAIN_MOST && r->in[1] <= PLAIN_MOST;
    r->taps = r->a.mode == resize_mode_cubic ? 16 : r->a.mode == resize_mode_linear ? 4 : 1;
    r->pieces = (r->out[1] + PLACES - 1) / PLACES;
    return SINTER_OK;
}

/* Tap k of place i is at[k][i]: the element's distance from the first one of its plane. */
typedef struct places {
    int32_t at[TAPS][PLACES];
    float weight[TAPS][PLACES];
} places;

static void places_of(const record *r, const float *grid, int64_t n, places *out)
{
    for (int64_t i = 0; i < n; i++, grid += r->grid_dim[1]) {
        /* A place names its last axis first. */
        const grid_axis w = grid_axis_of(&r->a, (double)grid[0], r->in[1], true);
        const grid_axis h = grid_axis_of(&r->a, (double)grid[r->grid_dim[2]], r->in[0], true);
        for (uint32_t k = 0; k < h.count * w.count; k++) {
            const uint32_t row = k / w.count, col = k % w.count;
            const bool is_there = h.index[row] >= 0 && w.index[col] >= 0;
            out->at[k][i] = is_there ? (int32_t)(h.index[row] * r->x_dim[0] + w.index[col] * r->x_dim[1]) : 0;
            out->weight[k][i] = is_there ? (float)(h.weight[row] * w.weight[col]) : 0;
        }
    }
    /* Vectors read behind the last place. */
    for (int64_t i = n; i < PLACES && i < n + 16; i++)
        for (int64_t k = 0; k < r->taps; k++) {
            out->at[k][i] = 0;
            out->weight[k][i] = 0;
        }
}

/* grid_axis_of for the linear mode with zeros or edges outside: elements at and at + 1, and their weights. A place far
 * outside is just outside. */
typedef struct neighbours {
    int32_t at;
    double weight[2];
} neighbours;

static inline neighbours neighbours_of(bool align, bool is_edge, float place, int64_t n)
{
    const double count = (double)n, far = count + 1;
    const double wide = align ? ((double)place + 1) / 2 * (count - 1) : (((double)place + 1) * count - 1) / 2;
    double x = (double)(float)wide;
    x = x > -2 ? x : -2; /* NaN, too */
    x = x < far ? x : far;
    if (is_edge) {
        const double low = align ? 0 : -0.5;
        if (x < low) x = 0;
        else if (x > count - 1 - low) x = count - 1;
    }
    int32_t at = (int32_t)x;
    at -= (double)at > x;
    return (neighbours){ at, { 1 - (x - at), 1 - (at + 1.0 - x) } };
}

/* What of the weights goes to element `at` of the axis, which is inside. */
static inline double weight_at(const neighbours *p, int32_t at, int32_t last, bool is_edge)
{
    const double first = p->at == at ? p->weight[0] : 0, second = p->at + 1 == at ? p->weight[1] : 0;
    if (is_edge && ((at == 0 && p->at < 0) || (at == last && p->at >= last))) return p->weight[0] + p->weight[1];
    return first + second;
}

static inline int32_t clamped(int32_t x, int32_t most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

/* Taps 0 and 1 are adjacent in the upper row, 2 and 3 in the lower one; at[0] and at[1] are where these begin. */
static inline __attribute__((always_inline)) void pairs_with(const record *r, const float *grid, int64_t n, places *out,
                                                             const bool align, const bool is_edge)
{
    const int32_t wide = (int32_t)r->in[1] - 1, high = (int32_t)r->in[0] - 1;
    for (int64_t i = 0; i < n; i++, grid += r->grid_dim[1]) {
        const neighbours w = neighbours_of(align, is_edge, grid[0], r->in[1]);
        const neighbours h = neighbours_of(align, is_edge, grid[r->grid_dim[2]], r->in[0]);
        const int32_t left = clamped(w.at, wide - 1);
        const int32_t row[2] = { clamped(h.at, high), clamped(h.at + 1, high) };
        const double a = weight_at(&w, left, wide, is_edge), b = weight_at(&w, left + 1, wide, is_edge);
        for (int k = 0; k < 2; k++) {
            const bool is_there = is_edge || row[k] == h.at + k;
            const double v = is_there ? h.weight[k] : 0;
            out->at[k][i] = (int32_t)(row[k] * r->x_dim[0]) + left;
            out->weight[2 * k][i] = (float)(v * a);
            out->weight[2 * k + 1][i] = (float)(v * b);
        }
    }
    for (int64_t i = n; i < PLACES && i < n + 16; i++)
        for (int k = 0; k < 4; k++) {
            out->at[k / 2][i] = 0;
            out->weight[k][i] = 0;
        }
}

static void pairs_of(const record *r, const float *grid, int64_t n, places *out)
{
    const bool align = r->a.align_corners != 0, is_edge = r->a.padding == pad_mode_edge;
    if (align && is_edge) pairs_with(r, grid, n, out, true, true);
    else if (align) pairs_with(r, grid, n, out, true, false);
    else if (is_edge) pairs_with(r, grid, n, out, false, true);
    else pairs_with(r, grid, n, out, false, false);
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
        const int64_t first = t % r->pieces * PLACES, row = t / r->pieces % r->out[0], n = t / r->pieces / r->out[0];
        const int64_t count = r->out[1] - first < PLACES ? r->out[1] - first : PLACES;
        const float *x = j->x + n * r->x_image;
        float *y = j->y + n * r->y_image + row * r->y_dim[0] + first * r->y_dim[1];
        const float *grid = j->grid + n * r->grid_image + row * r->grid_dim[0] + first * r->grid_dim[1];
        (r->is_pairs ? pairs_of : places_of)(r, grid, count, &of);
        if (r->is_last) {
            for (int64_t i = 0; i < count; i++) sample_channels(r, y + i * r->y_dim[1], x, &of, i);
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
    row_parallel(k, r->images * r->out[0] * r->pieces, body, &j);
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
    .record_size = record_size,
    .bind = bind,
    .run = run,
};
