/* SPDX-License-Identifier: Apache-2.0 */
/* row_conv_planes.c - convolution in f32 where operands lie row-major: dense or in groups, few channels or a 1x1
 * filter.
 *
 * Vectors run along the width, so no number of channels wastes lanes, and no operand has to be brought into another
 * order. Bands of the input's planes are copied between zeros first (plane_band.h). A 1x1 filter sees each plane
 * as one row, and reads chunks of columns; with a stride these are the pixels that it reads, brought together. */
#include "cpu/conv_planes.h"
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/plane_band.h"
#include "cpu/row_conv_shape.h"

#include <string.h>

/* BAND: floats of the copies of a group's planes, as long as they can be cut; HARD: at most. CHUNK: floats of a chunk,
 * whose columns are a multiple of COLUMNS. TERMS: of a sum, at most. DIRECT: channels of a result that do not pay for a
 * copy. FULL: channels of a vector. */
enum {
    BAND = 32768,
    HARD = 262144,
    CHUNK = 6144,
    COLUMNS = 48,
    TERMS = 4096,
    TAPS = 256,
    STRIDE_MAX = 16,
    DIRECT = 8,
    FULL = 16
};

typedef struct record {
    const plane_set *set;
    conv_shape shape;
    plane_band band;
    int64_t group_in, group_out, columns; /* columns: of a chunk; 0: by bands */
    bool is_thinned;                      /* chunks, of a stride */
    int64_t high, wide, step[3];          /* then: rows of a plane, results of a row, elements from one to the next */
    int64_t taps, at[TAPS];
    size_t scratch;
    row_after after; /* the epilogue: bias and clip in the loops, or a program behind them */
} record;

/* Whether each result reads one pixel of the plane, and results may be seen as a row. */
static bool is_pointwise(const conv_shape *s)
{
    for (int i = 0; i < 3; i++)
        if (s->kernel[i] != 1 || s->pad[i] || s->in[i] < 1 || s->out[i] != (s->in[i] - 1) / s->stride[i] + 1)
            return false;
    return true;
}

static int64_t columns_of(const conv_shape *s)
{
    const int64_t fit = CHUNK / (s->c_in / s->groups) / COLUMNS * COLUMNS;
    return fit > COLUMNS ? fit : COLUMNS;
}

static int64_t band_most(const conv_shape *s)
{
    return BAND / (s->c_in / s->groups);
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_conv, "not a convolution");
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    const uint32_t spatial = x->rank - 2u;
    REJECT_UNLESS(x->rank >= 3 && x->rank <= 5, "has no or more than three spatial axes");
    REJECT_UNLESS(row_is_row_major(x) && row_is_row_major(y), "an operand is not row-major");
    const char *why = row_filter_reject(p);
    if (why) return why;
    REJECT_UNLESS(!w->is_strided, "the filter is a part of a constant");
    const attrs_conv *a = p->attrs;
    why = problem_window_reject(&a->stride, &a->dilation, &a->pad, spatial);
    if (why) return why;
    int64_t terms = 1;
    for (uint32_t i = 0; i < w->rank; i++) {
        REJECT_UNLESS(problem_dim_is_static(w->dim[i]) && w->dim[i].max > 0, "the filter's size is not fixed");
        if (i > 0) REJECT_UNLESS(i64_mul(terms, w->dim[i].max, &terms) && terms <= TERMS, "sums have too many terms");
    }
    REJECT_UNLESS(terms / w->dim[1].max <= TAPS, "the filter has too many taps");
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]) && a->groups > 0 && x->dim[1].max / a->groups == w->dim[1].max &&
                      x->dim[1].max % a->groups == 0 && w->dim[0].max % a->groups == 0,
                  "the groups do not divide the channels");
    REJECT_UNLESS(w->dim[1].max > 1 || a->groups == 1, "depthwise");
    REJECT_UNLESS(a->stride.at[spatial - 1] <= STRIDE_MAX, "a stride above 16");
    for (uint32_t i = 0; i < spatial; i++) {
        REJECT_UNLESS(x->dim[2 + i].max < HARD && y->dim[2 + i].max < HARD, "a size has no bound, or is large");
        REJECT_UNLESS(a->stride.at[i] >= 1 && a->stride.at[i] < HARD && a->dilation.at[i] >= 1 &&
                          a->dilation.at[i] < HARD && a->pad.at[i] >= 0 && a->pad.at[i] < HARD,
                      "strides, dilations or pads are out of range");
    }
    const conv_shape s = row_conv_shape(p, AT_MAX);
    const plane_band one = plane_band_of(&s, 1, 1);
    REJECT_UNLESS(is_pointwise(&s) ||
                      (one.rows[0] <= HARD && one.rows[1] <= HARD && one.row <= HARD &&
                       one.rows[0] * one.rows[1] <= HARD && plane_band_size(&one) <= HARD / w->dim[1].max),
                  "a row of results reads too much");
    /* Channels that fill vectors are as fast channels-last, and of such a long row the copies do not stay in a cache.
     */
    REJECT_UNLESS(is_pointwise(&s) || a->groups > 1 || w->dim[0].max < FULL || w->dim[0].max % (FULL / 2) ||
                      plane_band_size(&one) <= BAND / w->dim[1].max,
                  "its channels fill vectors, and its rows are long");
    REJECT_UNLESS(!p->prologue, "has a prologue");
    return row_after_reject(p);
}

/* Floats of the copies at the largest sizes. A problem whose sizes vary may be pointwise in one run alone. */
static size_t scratch_of(const problem *p)
{
    const conv_shape s = row_conv_shape(p, AT_MAX);
    const int64_t channels = s.c_in / s.groups, chunk = channels * (columns_of(&s) + PLANE_SLACK);
    const plane_band one = plane_band_of(&s, 1, 1);
    const int64_t row = is_pointwise(&s) ? 0 : channels * plane_band_size(&one);
    const int64_t most = row > BAND ? row : BAND;
    return size_align(size_mul((size_t)(most > chunk ? most : chunk), sizeof(float)), 64);
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t;
    return size_mul(scratch_of(p), threads);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const conv_shape s = row_conv_shape(p, AT_OPT);
    const double threads = target->threads ? target->threads : 1, flops = target->flops > 0 ? target->flops : 1e10;
    const double taps = (double)(s.kernel[0] * s.kernel[1] * s.kernel[2]), terms = taps * (double)(s.c_in / s.groups);
    const bool is_row = is_pointwise(&s);
    const int64_t lanes = level_of(row_isa(t))->gemm->lanes, outs = s.c_out / s.groups;
    const int64_t width = is_row ? s.out[0] * s.out[1] * s.out[2] : s.out[2];
    const double rows = (double)(s.images * s.groups) * (is_row ? 1 : (double)(s.out[0] * s.out[1]));
    const double vectors = (double)((width + lanes - 1) / lanes), read = row_operand_bytes(&p->in[0]) / 4;
    /* A tile of few channels has few sums for each load. */
    const double tiles = (double)outs + (outs % PLANES_BLOCK ? 1 : 0);
    const double work = rows * vectors * (double)lanes * tiles * terms * 2.2 + read * (is_row ? 4 : 8);
    const double blocks = (double)((outs + 2 * PLANES_BLOCK - 1) / (2 * PLANES_BLOCK));
    return row_memory_ns(p, target, 0.5) + (work / flops * 1e9 + rows * blocks * 8) / threads;
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    (void)t;
    if (input != 1) return 0;
    size_t count = sizeof(float);
    for (uint32_t i = 0; i < p->in[1].rank; i++) count = size_mul(count, (size_t)p->in[1].dim[i].max);
    return size_align(count, 64);
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    const conv_shape s = row_conv_shape(p, AT_OPT);
    const int64_t outs = s.c_out / s.groups, channels = s.c_in / s.groups;
    int64_t stride[5];
    row_filter_strides(src, stride);
    memset(dst, 0, pack_size(p, t, input));
    float *to = dst;
    for (int64_t g = 0; g < s.groups; g++)
        for (int64_t o = 0, block; o < outs; o += block) {
            block = outs - o < PLANES_BLOCK ? outs - o : PLANES_BLOCK;
            for (int64_t d = 0; d < s.kernel[0]; d++)
                for (int64_t h = 0; h < s.kernel[1]; h++)
                    for (int64_t w = 0; w < s.kernel[2]; w++)
                        for (int64_t c = 0; c < channels; c++)
                            for (int64_t k = 0; k < block; k++)
                                *to++ = ((const float *)src->data)[(g * outs + o + k) * stride[0] + c * stride[1] +
                                                                   d * stride[2] + h * stride[3] + w * stride[4]];
        }
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    r->set = level_of(isa)->plane;
    r->shape = row_conv_bind(p, attrs, &in[0], &out[0]);
    conv_shape *s = &r->shape;
    r->group_in = s->c_in / s->groups;
    r->group_out = s->c_out / s->groups;
    r->scratch = scratch_of(p);
    r->taps = r->columns = 0;
    r->is_thinned = false;
    TRY(row_after_bind_planes(e, p, isa, in, out, &r->after, r + 1));
    if (!s->images || !s->out[0] || !s->out[1] || !s->out[2]) return SINTER_OK;
    if (is_pointwise(s)) {
        r->is_thinned = s->stride[0] > 1 || s->stride[1] > 1 || s->stride[2] > 1;
        r->high = s->out[1];
        r->wide = s->out[2];
        for (int i = 0; i < 3; i++) r->step[i] = s->stride[i] * s->x_dim[i];
        s->in[2] = s->out[2] = s->out[0] * s->out[1] * s->out[2];
        s->in[0] = s->in[1] = s->out[0] = s->out[1] = 1;
        r->columns = columns_of(s);
        r->at[r->taps++] = 0;
        return SINTER_OK;
    }
    r->band = plane_band_find(s, band_most(s));
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

/* The loops' call for a group of an image, with results from element `at` of each plane on. */
static conv_planes planes_of(const job *j, int64_t image, int64_t group, int64_t at, int64_t n)
{
    const record *r = j->r;
    const conv_shape *s = &r->shape;
    const int64_t plane = s->out[0] * s->out[1] * s->out[2], first = group * r->group_out;
    return (conv_planes){ .w = j->w + first * r->group_in * r->taps,
                          .bias = j->bias ? j->bias + first : NULL,
                          .y = j->y + (image * s->c_out + first) * plane + at,
                          .at = r->at,
                          .taps = r->taps,
                          .channels = r->group_in,
                          .outs = r->group_out,
                          .n = n,
                          .y_c = plane,
                          .lo = r->after.lo,
                          .hi = r->after.hi,
                          .has_clip = r->after.has_clip };
}

/* The epilogue's program over results [at, at + n) of each plane of a group. */
static void finish(const job *j, int64_t image, int64_t group, int64_t at, int64_t n)
{
    const record *r = j->r;
    const conv_shape *s = &r->shape;
    const int64_t plane = s->out[0] * s->out[1] * s->out[2], first = image * s->c_out + group * r->group_out;
    for (int64_t o = 0; r->after.has_program && o < r->group_out; o++)
        row_after_part(&r->after, j->k, j->y, (first + o) * plane + at, (first + o) * plane + at + n);
}

static const float *input_of(const job *j, int64_t image, int64_t group)
{
    return j->x + image * j->r->shape.x_image + group * j->r->group_in * j->r->shape.x_c;
}

static void every(float *to, const float *x, int64_t step, int64_t n)
{
    if (step == 2) {
        for (int64_t i = 0; i < n; i++) to[i] = x[2 * i];
    } else {
        for (int64_t i = 0; i < n; i++) to[i] = x[step * i];
    }
}

/* The pixels that results [at, at + n) of each plane of a group read. */
static void thin(const record *r, float *to, int64_t pitch, const float *x, int64_t at, int64_t n)
{
    for (int64_t done = 0, count; done < n; done += count) {
        const int64_t row = (at + done) / r->wide, col = (at + done) % r->wide;
        const float *from = x + row / r->high * r->step[0] + row % r->high * r->step[1] + col * r->step[2];
        count = r->wide - col < n - done ? r->wide - col : n - done;
        for (int64_t c = 0; c < r->group_in; c++)
            every(to + c * pitch + done, from + c * r->shape.x_c, r->step[2], count);
    }
}

static void run_chunk(const job *j, float *copy, int64_t image, int64_t group, int64_t at)
{
    const record *r = j->r;
    const conv_shape *s = &r->shape;
    const int64_t left = s->out[2] - at, n = left < r->columns ? left : r->columns;
    const float *x = input_of(j, image, group);
    conv_planes c = planes_of(j, image, group, at, n);
    if (r->group_out <= DIRECT && n == r->columns && !r->is_thinned) {
        c.x = x + at;
        c.x_c = s->x_c;
    } else {
        c.x = copy;
        c.x_c = r->columns + PLANE_SLACK;
        if (r->is_thinned) thin(r, copy, c.x_c, x, at, n);
        else r->set->copy(copy, c.x_c, x + at, s->x_c, r->group_in, n);
    }
    r->set->conv(&c);
    finish(j, image, group, at, n);
}

static void run_band(const job *j, float *copy, int64_t image, int64_t group, int64_t deep, int64_t high)
{
    const record *r = j->r;
    const conv_shape *s = &r->shape;
    const plane_band *b = &r->band;
    const float *x = input_of(j, image, group);
    const int64_t size = plane_band_size(b);
    for (int64_t c = 0; c < r->group_in; c++)
        plane_band_copy(r->set, s, b, x + c * s->x_c, deep, high, copy + c * size);
    for (int64_t d = 0; d < b->out[0] && deep + d < s->out[0]; d++)
        for (int64_t h = 0; h < b->out[1] && high + h < s->out[1]; h++) {
            const int64_t at = ((deep + d) * s->out[1] + high + h) * s->out[2];
            conv_planes c = planes_of(j, image, group, at, s->out[2]);
            c.x = copy + (d * s->stride[0] * b->rows[1] + h * s->stride[1]) * b->row;
            c.x_c = size;
            r->set->conv(&c);
            finish(j, image, group, at, s->out[2]);
        }
}

static int64_t bands(const record *r, int axis)
{
    return (r->shape.out[axis] - 1) / r->band.out[axis] + 1;
}

/* A tile is a chunk or a band of one group of one image. Tiles of the same place follow each other. */
static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    const record *r = j->r;
    const conv_shape *s = &r->shape;
    float *copy = (float *)(void *)((char *)j->k->workspace + worker * r->scratch);
    const int64_t parts = s->images * s->groups, high = r->columns ? 1 : bands(r, 1);
    int64_t before = -1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t place = i / parts, image = i % parts / s->groups, group = i % s->groups;
        if (r->columns) {
            run_chunk(j, copy, image, group, place * r->columns);
            continue;
        }
        /* Bands of the same place have the same zeros. */
        if (place != before) memset(copy, 0, (size_t)(r->group_in * plane_band_size(&r->band)) * sizeof *copy);
        before = place;
        run_band(j, copy, image, group, place / high * r->band.out[0], place % high * r->band.out[1]);
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    const conv_shape *s = &r->shape;
    job j = { r, k, k->in[0], k->in[1], r->after.bias ? k->in[r->after.bias] : NULL, k->out[0] };
    if (!r->taps) return SINTER_OK;
    const int64_t places = r->columns ? (s->out[2] - 1) / r->columns + 1 : bands(r, 0) * bands(r, 1);
    row_parallel(k, s->images * s->groups * places, body, &j);
    return SINTER_OK;
}

const kernel cpu_conv_planes = {
    .name = "cpu_conv_planes",
    .abi = 1,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .pack_size = pack_size,
    .pack = pack,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
