/* SPDX-License-Identifier: Apache-2.0 */
/* row_depthwise_transpose.c - transposed convolutions in f32 whose channels have a filter each, channels-last. A pixel
 * of the result is the sum over its taps of a pixel of the input, times the weights of all channels at that tap. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include <string.h>

enum { AXES = 3, TAPS = 256, STEP_MAX = 64, REACH_MAX = 1 << 20 };

/* One axis; those that the image has not are of size 1. */
typedef struct axis {
    int64_t in, out, kernel, stride, dilation, pad, x, y; /* x, y: strides of the operands */
} axis;

typedef struct record {
    const rows_set *set;
    axis axis[AXES]; /* the width comes last */
    int64_t images, channels, x_image, y_image;
    row_after after;
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_conv_transpose, "not a transposed convolution");
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    REJECT_UNLESS(x->rank >= 3 && x->rank <= 2 + AXES && w->rank == x->rank && y->rank == x->rank,
                  "has no or more than three spatial axes");
    REJECT_UNLESS(w->is_const && !w->is_strided, "the filter is no constant");
    const attrs_conv_transpose *a = p->attrs;
    const uint32_t spatial = x->rank - 2;
    const char *window = problem_window_reject(&a->stride, &a->dilation, &a->pad, spatial);
    if (window) return window;
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]) && a->groups == x->dim[1].max, "channels are summed");
    int64_t taps = 1;
    for (uint32_t i = 0; i < w->rank; i++) {
        REJECT_UNLESS(problem_dim_is_static(w->dim[i]) && w->dim[i].max > 0, "the filter's size is not fixed");
        if (i < 2) continue;
        const int64_t stride = a->stride.at[i - 2], dilation = a->dilation.at[i - 2], pad = a->pad.at[i - 2];
        REJECT_UNLESS(stride >= 1 && stride <= STEP_MAX && dilation >= 1 && dilation <= STEP_MAX && pad >= 0 &&
                          pad <= REACH_MAX,
                      "strides, dilations or pads are out of range");
        REJECT_UNLESS(i64_mul(taps, w->dim[i].max, &taps) && taps <= TAPS, "the filter has too many taps");
    }
    REJECT_UNLESS(w->dim[0].max == x->dim[1].max && w->dim[1].max == 1, "a channel has several results");
    REJECT_UNLESS(row_is_channel_inner(x) && row_is_channels_last(y), "not channels-last");
    REJECT_UNLESS(!p->prologue, "has a prologue");
    return row_after_reject(p);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const attrs_conv_transpose *a = p->attrs;
    double taps = 1;
    for (uint32_t i = 2; i < p->in[1].rank; i++) taps *= (double)p->in[1].dim[i].max / (double)a->stride.at[i - 2];
    const double flops = target->flops > 0 ? target->flops : 1e10, threads = target->threads ? target->threads : 1;
    const double elements = row_operand_bytes(&p->out[0]) / 4;
    return row_memory_ns(p, target, 1) +
           (elements * (taps + 2) * 4 / flops * 1e9 + elements / (double)p->in[0].dim[1].max * 30) / threads;
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    (void)t;
    if (input != 1) return 0;
    size_t size = sizeof(float);
    for (uint32_t i = 0; i < p->in[1].rank; i++) size = size_mul(size, (size_t)p->in[1].dim[i].max);
    return size;
}

/* The channels of a tap are adjacent. */
static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)p, (void)t, (void)input;
    float *to = dst;
    const float *w = src->data;
    int64_t index[SINTER_RANK_MAX] = { 0 };
    for (bool more = view_first(src->dim + 2, src->rank - 2, index); more;
         more = view_next(src->dim + 2, src->rank - 2, index)) {
        int64_t at = 0;
        for (uint32_t i = 2; i < src->rank; i++) at += index[i - 2] * src->stride[i];
        for (int64_t c = 0; c < src->dim[0]; c++) *to++ = w[at + c * src->stride[0]];
    }
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_conv_transpose *a = attrs;
    const view *x = &in[0], *y = &out[0];
    *r = (record){ .set = level_of(isa)->rows,
                   .images = x->dim[0],
                   .channels = x->dim[1],
                   .x_image = x->stride[0],
                   .y_image = y->stride[0] };
    const uint32_t spatial = x->rank - 2;
    for (uint32_t i = 0; i < AXES; i++) r->axis[i] = (axis){ 1, 1, 1, 1, 1, 0, 0, 0 };
    for (uint32_t i = 0; i < spatial; i++)
        r->axis[AXES - spatial + i] =
            (axis){ x->dim[2 + i],     y->dim[2 + i], p->in[1].dim[2 + i].max, a->stride.at[i],
                    a->dilation.at[i], a->pad.at[i],  x->stride[2 + i],        y->stride[2 + i] };
    return row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

/* Taps of a place along one axis, or of all axes so far: where each reads the input, and which weights it takes. */
typedef struct taps {
    int64_t count, x[TAPS], w[TAPS];
} taps;

/* Adds an axis: each tap of `had` with each tap of the axis that reaches place i. */
static void taps_along(const axis *a, int64_t i, const taps *had, taps *out)
{
    out->count = 0;
    for (int64_t k = 0; k < a->kernel; k++) {
        const int64_t from = i + a->pad - k * a->dilation;
        if (from < 0 || from % a->stride || from / a->stride >= a->in) continue;
        for (int64_t n = 0; n < had->count; n++) {
            out->x[out->count] = had->x[n] + from / a->stride * a->x;
            out->w[out->count++] = had->w[n] * a->kernel + k;
        }
    }
}

typedef struct job {
    const record *r;
    const float *x, *w;
    float *y;
} job;

/* A tile is a row of results. */
static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const axis *width = &r->axis[2];
    const taps none = { .count = 1 };
    taps deep, high, wide;
    const float *x[TAPS], *w[TAPS];
    for (int64_t t = begin; t < end; t++) {
        const int64_t h = t % r->axis[1].out, d = t / r->axis[1].out % r->axis[0].out;
        const int64_t n = t / r->axis[1].out / r->axis[0].out;
        taps_along(&r->axis[0], d, &none, &deep);
        taps_along(&r->axis[1], h, &deep, &high);
        const float *image = j->x + n * r->x_image;
        float *y = j->y + n * r->y_image + d * r->axis[0].y + h * r->axis[1].y;
        for (int64_t i = 0; i < width->out; i++) {
            taps_along(width, i, &high, &wide);
            for (int64_t k = 0; k < wide.count; k++) {
                x[k] = image + wide.x[k];
                w[k] = j->w + wide.w[k] * r->channels;
            }
            r->set->products_of(y + i * width->y, x, w, wide.count, r->channels);
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k->in[0], k->in[1], k->out[0] };
    row_parallel(k, r->images * r->axis[0].out * r->axis[1].out, body, &j);
    row_after_all(&r->after, k, j.y);
    return SINTER_OK;
}

const kernel cpu_depthwise_transpose = {
    .name = "cpu_depthwise_transpose",
    .abi = 1,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .pack_size = pack_size,
    .pack = pack,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
