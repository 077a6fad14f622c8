/* SPDX-License-Identifier: Apache-2.0 */
/* row_depthwise_plane.c - depthwise convolution in f32 where operands lie row-major, in one of two ways.
 *
 * By planes, every plane is filtered by itself. A band of a plane is copied between zeros first, a stride of the width
 * taken apart: padded column c lies in part c % stride at c / stride. So a tap of a whole result row is a run of
 * adjacent numbers.
 *
 * By lanes, a band of as many planes as a vector has lanes is turned in scratch, so that the numbers of a pixel are
 * adjacent, filtered as channels-last operands are, and turned back. Short rows waste no lanes, and a number is loaded
 * once for all results beside each other that it belongs to. */
#include "cpu/cpu_kernels.h"
#include "cpu/depthwise.h"
#include "cpu/level.h"
#include "cpu/plane_band.h"
#include "cpu/row_conv_shape.h"

#include <string.h>

/* BAND: floats of a band's copy, as long as it can be cut; HARD: at most. PIXELS: vectors of a band by lanes, read and
 * written, as long as it can be cut; NEAR: the same, where a pixel has more than one vector. */
enum { BAND = 8192, HARD = 65536, TAPS = 256, STRIDE_MAX = 8, PART_RESULTS = 512, PIXELS = 4096, NEAR = 1536 };

typedef struct own_tactic {
    uint8_t by_lanes; /* 0 or 1 */
} own_tactic;

/* By lanes: planes and rows of results of a band, and where scratch has what, in floats. */
typedef struct lanes_band {
    int64_t lanes, planes, rows, bands;
    size_t y, w, bias;
} lanes_band;

typedef struct record {
    const plane_set *set;
    conv_shape shape;
    plane_band band;
    int64_t multiplier, taps, at[TAPS];
    size_t scratch;
    row_after after; /* the epilogue: bias and clip in the loops, or a program behind them */
    isa_level isa;
    bool by_lanes;
    lanes_band lanes;
    depthwise_params params; /* but for what differs from band to band */
} record;

static bool is_by_lanes(const tactic *t)
{
    own_tactic own;
    row_tactic_own(t, &own, sizeof own);
    return own.by_lanes;
}

/* Rows of the padded input that so many rows of results read, and those of them that there are. */
static int64_t rows_needed(const conv_shape *s, int64_t rows)
{
    return (rows - 1) * s->stride[1] + (s->kernel[1] - 1) * s->dilation[1] + 1;
}
static int64_t rows_read(const conv_shape *s, int64_t rows)
{
    const int64_t need = rows_needed(s, rows);
    return need < s->in[1] ? need : s->in[1];
}

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static lanes_band lanes_band_of(const conv_shape *s, isa_level isa)
{
    lanes_band b = { .lanes = level_of(isa)->gemm->lanes, .rows = s->out[1] };
    while (b.rows > 1 && rows_read(s, b.rows) * s->in[2] + b.rows * s->out[2] > PIXELS) b.rows = (b.rows + 1) / 2;
    b.bands = b.rows > 0 ? (s->out[1] - 1) / b.rows + 1 : 0;
    /* Loops turn whole squares. */
    const int64_t read = most_of(rows_read(s, b.rows) * s->in[2], b.lanes);
    const int64_t results = most_of(b.rows * s->out[2], b.lanes);
    const int64_t fit = NEAR / (read + results + s->kernel[1] * s->kernel[2]);
    const int64_t vectors = (s->c_out + b.lanes - 1) / b.lanes;
    b.planes = (fit < 1 ? 1 : fit < vectors ? fit : vectors) * b.lanes;
    b.y = (size_t)(read * b.planes);
    b.w = b.y + (size_t)(results * b.planes);
    b.bias = b.w + (size_t)(s->kernel[1] * s->kernel[2] * b.planes + b.lanes * b.lanes);
    return b;
}

/* No less than any of those takes. */
static size_t lanes_scratch(const conv_shape *s, isa_level isa)
{
    const size_t lanes = (size_t)level_of(isa)->gemm->lanes, taps = (size_t)(s->kernel[1] * s->kernel[2]);
    return (PIXELS + taps + 3 * lanes + 1) * lanes;
}

/* One axis or two, a result of every plane, and a row of results whose pixels are few. */
static bool may_be_by_lanes(const problem *p)
{
    const conv_shape s = row_conv_shape(p, AT_MAX);
    return p->in[0].rank <= 4 && s.c_out == s.c_in && rows_read(&s, 1) * s.in[2] + s.out[2] <= PIXELS;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_conv, "not a convolution");
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    const uint32_t spatial = x->rank - 2u;
    REJECT_UNLESS(x->rank >= 3 && x->rank <= 5, "has no or more than three spatial axes");
    REJECT_UNLESS(row_is_row_major(x) && row_is_row_major(w) && row_is_row_major(y), "an operand is not row-major");
    const attrs_conv *a = p->attrs;
    const char *window = problem_window_reject(&a->stride, &a->dilation, &a->pad, spatial);
    if (window) return window;
    int64_t taps = 1;
    for (uint32_t i = 0; i < w->rank; i++) {
        REJECT_UNLESS(problem_dim_is_static(w->dim[i]) && w->dim[i].max > 0, "the filter's size is not fixed");
        if (i > 1) REJECT_UNLESS(i64_mul(taps, w->dim[i].max, &taps) && taps <= TAPS, "the filter has too many taps");
    }
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]) && a->groups > 0 && a->groups == x->dim[1].max &&
                      w->dim[1].max == 1 && w->dim[0].max % a->groups == 0,
                  "not depthwise");
    REJECT_UNLESS(a->stride.at[spatial - 1] <= STRIDE_MAX, "a stride above 8");
    for (uint32_t i = 0; i < spatial; i++) {
        REJECT_UNLESS(x->dim[2 + i].max < HARD && y->dim[2 + i].max < HARD, "a size has no bound, or is large");
        REJECT_UNLESS(a->stride.at[i] >= 1 && a->stride.at[i] < HARD && a->dilation.at[i] >= 1 &&
                          a->dilation.at[i] < HARD && a->pad.at[i] >= 0 && a->pad.at[i] < HARD,
                      "strides, dilations or pads are out of range");
    }
    const conv_shape s = row_conv_shape(p, AT_MAX);
    const plane_band one = plane_band_of(&s, 1, 1);
    REJECT_UNLESS(one.rows[0] <= HARD && one.rows[1] <= HARD && one.row <= HARD && one.rows[0] * one.rows[1] <= HARD &&
                      plane_band_size(&one) <= HARD,
                  "a row of results reads too much");
    REJECT_UNLESS(!p->prologue, "has a prologue");
    return row_after_reject(p);
}

/* Every load of 64 bytes but one in sixteen lies across two cache lines, and half of those of 32: where rows fill whole
 * vectors the shorter ones may be faster. */
static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    static const own_tactic by_lanes = { 1 };
    if (may_be_by_lanes(p)) row_tactics_add(t, &by_lanes, 1, sizeof by_lanes, out);
    row_tactics_isa(p, t, out);
    if (t->isa != ISA_AVX512) return;
    kernel_target shorter = *t;
    shorter.isa = ISA_AVX2;
    row_tactics_isa(p, &shorter, out);
}

static bool check(const problem *p, const tactic *t)
{
    own_tactic own;
    row_tactic_own(t, &own, sizeof own);
    return row_tactic_check(t, sizeof own) && (!own.by_lanes || (own.by_lanes == 1 && may_be_by_lanes(p)));
}

static void print(const tactic *t, text *out)
{
    if (is_by_lanes(t)) row_tactic_print(t, "by lanes", out);
    else row_print_isa(t, out);
}

/* Of a band at the largest sizes. */
static size_t scratch_of(const problem *p, const tactic *t)
{
    const conv_shape s = row_conv_shape(p, AT_MAX);
    if (is_by_lanes(t)) return size_align(lanes_scratch(&s, row_isa(t)) * sizeof(float), 64);
    const plane_band one = plane_band_of(&s, 1, 1);
    const int64_t most = plane_band_size(&one) > BAND ? plane_band_size(&one) : BAND;
    return size_align((size_t)most * sizeof(float), 64);
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    return size_mul(scratch_of(p, t), threads);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const conv_shape s = row_conv_shape(p, AT_OPT);
    const double threads = target->threads ? target->threads : 1, flops = target->flops > 0 ? target->flops : 1e10;
    const double taps = (double)(s.kernel[0] * s.kernel[1] * s.kernel[2]);
    const double results = row_operand_bytes(&p->out[0]) / 4, read = row_operand_bytes(&p->in[0]) / 4;
    const int64_t width = s.out[2] > 0 ? s.out[2] : 1;
    const double rows = results / (double)width, planes = (double)(s.images * s.c_out);
    /* Taps at the rate of two loads, then what turning takes, and what begins a block of planes. */
    if (is_by_lanes(t))
        return row_memory_ns(p, target, 1) +
               ((results * taps * 2.5 + (results + read) * 12) / flops * 1e9 + planes * 4) / threads;
    /* A broadcast and four loads for four products, of whole vectors, and many loads lie across two cache lines; then
     * the copy, and what a row and a plane take. */
    const double work = rows * (double)((width + 7) / 8 * 8) * 3.5 * taps + (results + read) * 4;
    return row_memory_ns(p, target, 1) + (work / flops * 1e9 + rows * 5 + planes * 40) / threads;
}

static void lanes_bind(record *r)
{
    const conv_shape *s = &r->shape;
    r->lanes = lanes_band_of(s, r->isa);
    r->params = (depthwise_params){
        .isa = r->isa,
        .shape = { .images = 1,
                   .multiplier = 1,
                   .in = { 0, s->in[2] },
                   .out = { 0, s->out[2] },
                   .kernel = { s->kernel[1], s->kernel[2] },
                   .stride = { s->stride[1], s->stride[2] },
                   .dilation = { s->dilation[1], s->dilation[2] },
                   .pad = { 0, s->pad[2] },
                   .x_dim = { s->in[2] * r->lanes.planes, r->lanes.planes } },
        .ldy = r->lanes.planes,
        .epilogue = { .clip = r->after.has_clip, .lo = r->after.lo, .hi = r->after.hi },
    };
    const depthwise_shape *d = &r->params.shape;
    const int64_t step = depthwise_step(d, 1), width = (s->out[2] + step - 1) / step; /* of what shares inputs */
    const bool is_high = depthwise_has_blocks(d) && r->lanes.rows > depthwise_step(d, 0);
    r->params.tactic.rows = is_high ? 2 : 1;
    r->params.tactic.cols = (width + 3) / 4 * 4 < (width + 6) / 7 * 7 ? 4 : 7;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    r->set = level_of(isa)->plane;
    r->shape = row_conv_bind(p, attrs, &in[0], &out[0]);
    r->multiplier = r->shape.c_in ? r->shape.c_out / r->shape.c_in : 0;
    r->scratch = scratch_of(p, t);
    r->isa = isa;
    r->by_lanes = is_by_lanes(t);
    const conv_shape *s = &r->shape;
    r->taps = 0;
    TRY(row_after_bind_planes(e, p, isa, in, out, &r->after, r + 1));
    if (!s->out[0] || !s->out[1] || !s->out[2]) return SINTER_OK;
    if (r->by_lanes) lanes_bind(r);
    r->band = plane_band_find(s, BAND);
    for (int64_t d = 0; d < s->kernel[0]; d++)
        for (int64_t h = 0; h < s->kernel[1]; h++)
            for (int64_t w = 0; w < s->kernel[2]; w++) r->at[r->taps++] = plane_band_tap(s, &r->band, d, h, w);
    return SINTER_OK;
}

typedef struct job {
    const record *r;
    const kernel_run *k;
    const float *x, *w, *bias;
    float *y;
} job;

/* Results [deep, deep + bands' size) x [high, …) of one plane. is_first: what they read is not in the copy yet. */
static void run_band(const job *j, float *copy, int64_t plane, int64_t deep, int64_t high, bool is_first)
{
    const record *r = j->r;
    const conv_shape *s = &r->shape;
    const plane_band *b = &r->band;
    const int64_t image = s->images == 1 ? 0 : plane / s->c_out, c = plane - image * s->c_out;
    const float *x = j->x + image * s->x_image + (r->multiplier == 1 ? c : c / r->multiplier) * s->x_c;
    if (is_first) plane_band_copy(r->set, s, b, x, deep, high, copy);
    const int64_t left = s->out[1] - high, rows = left < b->out[1] ? left : b->out[1];
    for (int64_t d = 0; d < b->out[0] && deep + d < s->out[0]; d++) {
        const int64_t row = (plane * s->out[0] + deep + d) * s->out[1] + high;
        const plane_filter f = { .x = copy + d * s->stride[0] * b->rows[1] * b->row,
                                 .w = j->w + c * r->taps,
                                 .y = j->y + row * s->out[2],
                                 .at = r->at,
                                 .taps = r->taps,
                                 .rows = rows,
                                 .n = s->out[2],
                                 .x_row = s->stride[1] * b->row,
                                 .bias = j->bias ? j->bias[c] : 0,
                                 .lo = r->after.lo,
                                 .hi = r->after.hi,
                                 .has_clip = r->after.has_clip };
        r->set->filter(&f);
        if (b->out[1] * s->out[2] >= PART_RESULTS)
            row_after_part(&r->after, j->k, j->y, row * s->out[2], (row + rows) * s->out[2]);
    }
}

static int64_t bands(const record *r, int axis)
{
    return (r->shape.out[axis] - 1) / r->band.out[axis] + 1;
}

/* A tile is a band of one plane. Those of the same place follow each other, and have the same zeros. */
static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    const record *r = j->r;
    float *copy = (float *)(void *)((char *)j->k->workspace + worker * r->scratch);
    const int64_t planes = r->shape.images * r->shape.c_out, high = bands(r, 1);
    for (int64_t i = begin, stop; i < end; i = stop) {
        const int64_t place = i / planes, first = place * planes;
        stop = first + planes < end ? first + planes : end;
        memset(copy, 0, (size_t)plane_band_size(&r->band) * sizeof *copy);
        for (int64_t plane = i - first; plane < stop - first; plane++)
            run_band(j, copy, plane, place / high * r->band.out[0], place % high * r->band.out[1],
                     plane == i - first || r->multiplier == 1 || plane % r->multiplier == 0);
    }
}

/* Results from row `high` on of planes [first, first + planes), counted over all images. */
static void run_lanes(const job *j, float *scratch, int64_t first, int64_t planes, int64_t high)
{
    const record *r = j->r;
    const conv_shape *s = &r->shape;
    const lanes_band *b = &r->lanes;
    const int64_t image = first / s->c_out, c = first % s->c_out, plane = s->out[1] * s->out[2];
    const int64_t rows = s->out[1] - high < b->rows ? s->out[1] - high : b->rows;
    const int64_t at = high * s->stride[1] - s->pad[1], end = at + rows_needed(s, rows);
    const int64_t low = at < 0 ? 0 : at < s->in[1] ? at : s->in[1], stop = end < s->in[1] ? end : s->in[1];
    const int64_t read = stop > low ? stop - low : 0, width = s->out[2], begin = first * plane + high * width;
    const float *x = j->x + image * s->x_image + c * s->x_c + low * s->in[2];
    float *w = scratch + b->w, *bias = scratch + b->bias;
    for (int64_t i = 0; i < planes; i += b->lanes) {
        const int64_t count = planes - i < b->lanes ? planes - i : b->lanes;
        r->set->to_lanes(scratch + i, b->planes, x + i * s->x_c, s->x_c, count, read * s->in[2]);
        r->set->to_lanes(w + i * r->taps, b->lanes, j->w + (c + i) * r->taps, r->taps, count, r->taps);
    }
    if (j->bias) memcpy(bias, j->bias + c, (size_t)planes * sizeof *bias);
    depthwise_params p = r->params;
    p.shape.channels = (planes + b->lanes - 1) / b->lanes * b->lanes;
    p.shape.in[0] = read;
    p.shape.out[0] = rows;
    p.shape.pad[0] = low - at;
    p.x = scratch;
    p.w = w;
    p.y = scratch + b->y;
    p.epilogue.bias = j->bias ? bias : NULL;
    depthwise_run(&p, 0, depthwise_tile_count(&p), NULL, NULL);
    for (int64_t i = 0; i < planes; i += b->lanes)
        r->set->from_lanes(j->y + begin + i * plane, plane, scratch + b->y + i, b->planes,
                           planes - i < b->lanes ? planes - i : b->lanes, rows * width);
    if (plane < PART_RESULTS) return;
    for (int64_t i = 0; i < planes; i++)
        row_after_part(&r->after, j->k, j->y, begin + i * plane, begin + i * plane + rows * width);
}

/* A tile is a band of some planes of one image. */
static void lanes_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    const record *r = j->r;
    const lanes_band *b = &r->lanes;
    float *scratch = (float *)(void *)((char *)j->k->workspace + worker * r->scratch);
    const int64_t c_out = r->shape.c_out, blocks = (c_out - 1) / b->planes + 1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t block = i / b->bands, c = block % blocks * b->planes;
        run_lanes(j, scratch, block / blocks * c_out + c, c_out - c < b->planes ? c_out - c : b->planes,
                  i % b->bands * b->rows);
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k, k->in[0], k->in[1], r->after.bias ? k->in[r->after.bias] : NULL, k->out[0] };
    if (!r->taps) return SINTER_OK;
    if (r->by_lanes) {
        const int64_t plane = r->shape.out[1] * r->shape.out[2];
        row_parallel(k, r->shape.images * ((r->shape.c_out - 1) / r->lanes.planes + 1) * r->lanes.bands, lanes_body,
                     &j);
        if (plane < PART_RESULTS) row_after_all(&r->after, k, j.y);
        return SINTER_OK;
    }
    row_parallel(k, r->shape.images * r->shape.c_out * bands(r, 0) * bands(r, 1), body, &j);
    if (r->band.out[1] * r->shape.out[2] < PART_RESULTS) row_after_all(&r->after, k, j.y);
    return SINTER_OK;
}

const kernel cpu_depthwise_plane = {
    .name = "cpu_depthwise_plane",
    .abi = 1,
    .reject = reject,
    .tactics = tactics,
    .check = check,
    .print = print,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
