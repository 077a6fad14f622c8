/* SPDX-License-Identifier: Apache-2.0 */
/* row_pool.c - max and average pooling in f32. Channels-last: vectors along channels over pointers to the window's
 * pixels. Any other order: element by element, channels outside. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include <math.h>

enum { SPATIAL = 3, TAPS = 128 };

typedef struct record {
    const rows_set *set;
    bool is_max, is_last, counts_pad;
    int64_t images, channels, in[SPATIAL], out[SPATIAL];
    int64_t kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL], pad[SPATIAL], pad_end[SPATIAL];
    int64_t x_image, x_channel, x_dim[SPATIAL], y_image, y_channel, y_dim[SPATIAL];
    row_epilogue epilogue; /* channels-last: by output rows */
    row_after after;
} record;

/* max_pool and avg_pool begin alike. */
typedef struct pool_attrs {
    const attr_ints *kernel, *stride, *dilation, *pad;
    bool counts_pad;
} pool_attrs;
static pool_attrs attrs_of(const problem *p, const void *attrs)
{
    if (p->op == OP_max_pool) {
        const attrs_max_pool *a = attrs;
        return (pool_attrs){ &a->kernel, &a->stride, &a->dilation, &a->pad, false };
    }
    const attrs_avg_pool *a = attrs;
    return (pool_attrs){ &a->kernel, &a->stride, &a->dilation, &a->pad, a->count_pad != 0 };
}

static const char *reject_common(const problem *p)
{
    REJECT_UNLESS(row_is_f32(p, 1), "not in f32");
    REJECT_UNLESS(p->in[0].rank >= 3 && p->in[0].rank <= 2 + SPATIAL, "has no or more than three spatial axes");
    REJECT_UNLESS(p->epilogue || p->count_out == 1, "indices are wanted");
    if (row_is_channels_last(&p->out[0]) || (p->out[0].is_strided && p->out[0].order[p->out[0].rank - 1] == 1)) {
        if (p->in[0].order[p->in[0].rank - 1] == 1 && !p->in[0].is_strided) return row_epilogue_reject(p);
    }
    return row_after_reject(p);
}

static const char *max_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_max_pool, "not a max pool");
    return reject_common(p);
}

static const char *avg_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_avg_pool, "not an average pool");
    return reject_common(p);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const pool_attrs a = attrs_of(p, p->attrs);
    double taps = 1;
    for (uint32_t i = 0; i < a.kernel->count; i++) taps *= (double)a.kernel->at[i];
    const bool is_last = p->in[0].order[p->in[0].rank - 1] == 1;
    const double threads = target->threads ? target->threads : 1, flops = target->flops > 0 ? target->flops : 1e10;
    return row_memory_ns(p, target, 1) +
           row_operand_bytes(&p->out[0]) / 4 * taps * (is_last ? 4 : 60) / flops * 1e9 / threads;
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
    const pool_attrs a = attrs_of(p, attrs);
    const view *x = &in[0], *y = &out[0];
    const uint32_t spatial = x->rank - 2;
    r->set = level_of(isa)->rows;
    r->is_max = p->op == OP_max_pool;
    r->counts_pad = a.counts_pad;
    r->images = x->dim[0];
    r->channels = x->dim[1];
    r->x_image = x->stride[0];
    r->x_channel = x->stride[1];
    r->y_image = y->stride[0];
    r->y_channel = y->stride[1];
    for (uint32_t i = 0; i < SPATIAL; i++) {
        r->in[i] = r->out[i] = r->kernel[i] = r->stride[i] = r->dilation[i] = 1;
        r->pad[i] = r->pad_end[i] = r->x_dim[i] = r->y_dim[i] = 0;
    }
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t k = SPATIAL - spatial + i;
        r->in[k] = x->dim[2 + i];
        r->out[k] = y->dim[2 + i];
        r->kernel[k] = a.kernel->at[i];
        r->stride[k] = a.stride->at[i];
        r->dilation[k] = a.dilation->at[i];
        r->pad[k] = a.pad->at[i];
        r->pad_end[k] = a.pad->at[spatial + i];
        r->x_dim[k] = x->stride[2 + i];
        r->y_dim[k] = y->stride[2 + i];
    }
    r->is_last = !row_epilogue_reject(p) && (r->x_channel == 1 || r->channels == 1) &&
                 (r->y_channel == 1 || r->channels == 1) && p->out[0].order[y->rank - 1] == 1 &&
                 p->out[0].order[0] == 0;
    for (uint32_t i = 1; i + 1 < y->rank; i++) r->is_last = r->is_last && p->out[0].order[i] == i + 1;
    r->epilogue.has_program = r->after.has_program = false;
    if (r->is_last) return row_epilogue_bind(e, p, isa, in, out, p->out[0].order, false, &r->epilogue, r + 1);
    return row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

typedef struct job {
    const record *r;
    vm_io io;
    const float *x;
    float *y;
} job;

/* Kernel positions [first, stop) that lie inside, and how many lie inside the padded input. */
typedef struct span {
    int64_t at, first, stop, padded;
} span;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

static span span_of(const record *r, uint32_t i, int64_t o)
{
    span s = { .at = o * r->stride[i] - r->pad[i] };
    const int64_t d = r->dilation[i], k = r->kernel[i];
    s.first = s.at < 0 ? ceil_div(-s.at, d) : 0;
    if (s.first > k) s.first = k;
    s.stop = ceil_div(r->in[i] - s.at, d);
    if (s.stop > k) s.stop = k;
    if (s.stop < s.first) s.stop = s.first;
    s.padded = ceil_div(r->in[i] + r->pad_end[i] - s.at, d);
    if (s.padded > k) s.padded = k;
    return s;
}

/* One output pixel of all channels; windows larger than the list go in parts. */
static void pixel_last(const record *r, float *y, const float *x, const span s[SPATIAL])
{
    const float *tap[TAPS + 1];
    int64_t count = 0, seen = 0;
    bool is_first = true;
    const int64_t inside = (s[0].stop - s[0].first) * (s[1].stop - s[1].first) * (s[2].stop - s[2].first);
    const double divisor = r->counts_pad ? (double)(s[0].padded * s[1].padded * s[2].padded) : (double)inside;
    if (!inside) {
        for (int64_t c = 0; c < r->channels; c++) y[c] = r->is_max ? -INFINITY : (float)(0 / divisor);
        return;
    }
    for (int64_t d = s[0].first; d < s[0].stop; d++)
        for (int64_t h = s[1].first; h < s[1].stop; h++)
            for (int64_t w = s[2].first; w < s[2].stop; w++) {
                tap[count++] = x + (s[0].at + d * r->dilation[0]) * r->x_dim[0] +
                               (s[1].at + h * r->dilation[1]) * r->x_dim[1] +
                               (s[2].at + w * r->dilation[2]) * r->x_dim[2];
                seen++;
                if (count < TAPS && seen < inside) continue;
                if (!is_first) tap[count++] = y; /* what was found so far */
                if (r->is_max) r->set->max_of(y, tap, count, r->channels);
                else r->set->sum_of(y, tap, count, r->channels, seen == inside ? (float)(1 / divisor) : 1.0f);
                is_first = false;
                count = 0;
            }
}

static void rows_last(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    for (int64_t i = begin; i < end; i++) {
        const int64_t h = i % r->out[1], d = i / r->out[1] % r->out[0], n = i / r->out[1] / r->out[0];
        span s[SPATIAL] = { span_of(r, 0, d), span_of(r, 1, h) };
        float *y = j->y + n * r->y_image + d * r->y_dim[0] + h * r->y_dim[1];
        for (int64_t w = 0; w < r->out[2]; w++) {
            s[2] = span_of(r, 2, w);
            pixel_last(r, y + w * r->y_dim[2], j->x + n * r->x_image, s);
        }
        if (r->epilogue.has_program)
            vm_block(&r->epilogue.program, &j->io, i * r->out[2], r->out[2], 0, r->channels, y, r->y_dim[2]);
    }
}

static float element(const record *r, const float *x, const span s[SPATIAL])
{
    double v = r->is_max ? -INFINITY : 0;
    for (int64_t d = s[0].first; d < s[0].stop; d++)
        for (int64_t h = s[1].first; h < s[1].stop; h++)
            for (int64_t w = s[2].first; w < s[2].stop; w++) {
                const double u = (double)
                    x[(s[0].at + d * r->dilation[0]) * r->x_dim[0] + (s[1].at + h * r->dilation[1]) * r->x_dim[1] +
                      (s[2].at + w * r->dilation[2]) * r->x_dim[2]];
                if (!r->is_max) v += u;
                else if (!(u <= v) && !isnan(v)) v = u;
            }
    if (r->is_max) return (float)v;
    const int64_t inside = (s[0].stop - s[0].first) * (s[1].stop - s[1].first) * (s[2].stop - s[2].first);
    return (float)(v / (r->counts_pad ? (double)(s[0].padded * s[1].padded * s[2].padded) : (double)inside));
}

/* One plane of one channel. */
static void planes(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i / r->channels, c = i % r->channels;
        const float *x = j->x + n * r->x_image + c * r->x_channel;
        float *y = j->y + n * r->y_image + c * r->y_channel;
        span s[SPATIAL];
        for (int64_t d = 0; d < r->out[0]; d++) {
            s[0] = span_of(r, 0, d);
            for (int64_t h = 0; h < r->out[1]; h++) {
                s[1] = span_of(r, 1, h);
                for (int64_t w = 0; w < r->out[2]; w++) {
                    s[2] = span_of(r, 2, w);
                    y[d * r->y_dim[0] + h * r->y_dim[1] + w * r->y_dim[2]] = element(r, x, s);
                }
            }
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, { k->in, k->out }, k->in[0], k->out[0] };
    if (!r->images || !r->channels || !r->out[0] || !r->out[1] || !r->out[2]) return SINTER_OK;
    if (r->is_last) {
        row_parallel(k, r->images * r->out[0] * r->out[1], rows_last, &j);
        return SINTER_OK;
    }
    row_parallel(k, r->images * r->channels, planes, &j);
    row_after_all(&r->after, k, j.y);
    return SINTER_OK;
}

const kernel cpu_pool_max = {
    .name = "cpu_pool_max",
    .abi = 1,
    .is_strided_out = true,
    .reject = max_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record_size = record_size,
    .bind = bind,
    .run = run,
};
const kernel cpu_pool_avg = {
    .name = "cpu_pool_avg",
    .abi = 1,
    .is_strided_out = true,
    .reject = avg_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record_size = record_size,
    .bind = bind,
    .run = run,
};
