/* SPDX-License-Identifier: Apache-2.0 */
/* row_roi_align.c - averages of bilinear samples inside boxes of an image, in f32, channels-last: each sample is a
 * blend of four rows of channels. Boxes are data and may hold anything: coordinates stay floating until they are known
 * to lie inside the image. */
#include "core/dtype.h"
#include "cpu/cpu_index.h"
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include <math.h>

enum { CHUNK = 256, PARTS = 4, SAMPLING_MAX = 256, FAR = 1000000000 };

typedef struct record {
    const rows_set *set;
    int64_t images, channels, in[2], x_image, x_dim[2];
    int64_t boxes, out[2], y_box, y_dim[2];
    int64_t box_stride, corner_stride, batch_stride;
    sinter_dtype batch_type;
    double scale, offset, sampling;
    bool is_at_least_one;
} record;

static bool has_channels_inner(const problem_operand *o)
{
    return row_is_channel_inner(o) || o->dim[1].max == 1;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_roi_align, "not a roi_align");
    REJECT_UNLESS(row_is_f32(p, 2), "not in f32");
    REJECT_UNLESS(p->in[0].rank == 4 && p->in[1].rank == 2 && p->in[2].rank == 1 && p->out[0].rank == 4,
                  "an operand has another rank");
    REJECT_UNLESS(sinter_dtype_bits(p->in[2].dtype) >= 8, "batch indices of a type under a byte");
    const attrs_roi_align *a = p->attrs;
    REJECT_UNLESS(!a->is_max, "takes maxima");
    REJECT_UNLESS(a->sampling <= SAMPLING_MAX, "takes too many samples");
    REJECT_UNLESS(has_channels_inner(&p->in[0]) && has_channels_inner(&p->out[0]), "an image is not channels-last");
    REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const attrs_roi_align *a = p->attrs;
    const double samples = a->sampling > 0 ? (double)(a->sampling * a->sampling) : 4;
    return 500 + row_operand_bytes(&p->out[0]) * samples * 0.3 / (target->threads ? target->threads : 1);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_roi_align *a = attrs;
    const view *x = &in[0], *y = &out[0];
    if (in[1].dim[1] != 4 || in[1].dim[0] != in[2].dim[0] || y->dim[0] != in[1].dim[0] || y->dim[1] != x->dim[1])
        return FAIL(e, INVALID_ARG, "roi_align: %lld boxes of %lld numbers, %lld batch indices, %lld results",
                    (long long)in[1].dim[0], (long long)in[1].dim[1], (long long)in[2].dim[0], (long long)y->dim[0]);
    *r = (record){
        .set = level_of(isa)->rows,
        .images = x->dim[0],
        .channels = x->dim[1],
        .in = { x->dim[2], x->dim[3] },
        .x_image = x->stride[0],
        .x_dim = { x->stride[2], x->stride[3] },
        .boxes = y->dim[0],
        .out = { y->dim[2], y->dim[3] },
        .y_box = y->stride[0],
        .y_dim = { y->stride[2], y->stride[3] },
        .box_stride = in[1].stride[0],
        .corner_stride = in[1].stride[1],
        .batch_stride = in[2].stride[0],
        .batch_type = in[2].dtype,
        .scale = a->scale,
        .offset = a->half_pixel ? 0.5 : 0,
        .sampling = a->sampling > 0 ? (double)a->sampling : 0,
        .is_at_least_one = !a->half_pixel,
    };
    return SINTER_OK;
}

/* A box along one axis: bins of `bin` from `first` on, each of `count` samples. */
typedef struct box_axis {
    double first, bin, count;
} box_axis;

static bool box_axis_of(const record *r, const float *box, uint32_t axis, box_axis *out)
{
    const int64_t k = 1 - axis; /* boxes are x1 y1 x2 y2, axes height and width */
    const double low = (double)box[k * r->corner_stride] * r->scale - r->offset;
    const double high = (double)box[(k + 2) * r->corner_stride] * r->scale - r->offset;
    if (!(fabs(low) < FAR) || !(fabs(high) < FAR)) return false;
    const double extent = r->is_at_least_one ? fmax(high - low, 1) : high - low;
    out->first = low;
    out->bin = extent / (double)r->out[axis];
    out->count = r->sampling > 0 ? r->sampling : fmax(ceil(out->bin), 0);
    return true;
}

/* Samples [low, high) of a bin, at first + i * step, are those that may lie in the image. */
typedef struct samples {
    double first, step;
    int64_t low, high;
} samples;

static samples samples_of(const box_axis *b, int64_t at, int64_t limit)
{
    if (!(b->count >= 1)) return (samples){ 0 };
    samples s = { .first = b->first + (double)at * b->bin + 0.5 * b->bin / b->count, .step = b->bin / b->count };
    double low = 0, high = b->count;
    if (s.step > 0) {
        low = fmax(low, ceil((-1 - s.first) / s.step) - 1);
        high = fmin(high, floor(((double)limit - s.first) / s.step) + 2);
    }
    if (!(low < high)) return s;
    s.low = (int64_t)low;
    s.high = (int64_t)high;
    return s;
}

/* The two elements around a place, and the weight of the second. False: outside by more than one element. */
typedef struct pair {
    int64_t low, high;
    double weight;
} pair;

static bool pair_of(double x, int64_t n, pair *out)
{
    if (!(x >= -1 && x <= (double)n)) return false;
    const double inside = x < 0 ? 0 : x > (double)(n - 1) ? (double)(n - 1) : x;
    out->low = (int64_t)inside;
    out->high = out->low + 1 < n ? out->low + 1 : n - 1;
    out->weight = inside - (double)out->low;
    return true;
}

/* Blends wait until there are some of them, so that sums are read and written less often. */
typedef struct blends {
    float sum[CHUNK], part[PARTS][CHUNK];
    int64_t count;
    bool has_sum;
} blends;

static void flush(const record *r, blends *b, int64_t n)
{
    const float *of[PARTS + 1];
    int64_t count = 0;
    for (int64_t i = 0; i < b->count; i++) of[count++] = b->part[i];
    if (b->has_sum) of[count++] = b->sum;
    if (count) r->set->sum_of(b->sum, of, count, n, 1);
    b->has_sum = b->has_sum || count;
    b->count = 0;
}

static void bin(const record *r, const float *x, float *y, const samples *sh, const samples *sw, double share)
{
    for (int64_t c = 0; c < r->channels; c += CHUNK) {
        const int64_t n = r->channels - c < CHUNK ? r->channels - c : CHUNK;
        blends b;
        b.count = 0;
        b.has_sum = false;
        for (int64_t i = sh->low; i < sh->high; i++) {
            pair h;
            if (!pair_of(sh->first + (double)i * sh->step, r->in[0], &h)) continue;
            const float *top = x + c + h.low * r->x_dim[0], *bottom = x + c + h.high * r->x_dim[0];
            for (int64_t j = sw->low; j < sw->high; j++) {
                pair w;
                if (!pair_of(sw->first + (double)j * sw->step, r->in[1], &w)) continue;
                const float *from[4] = { top + w.low * r->x_dim[1], top + w.high * r->x_dim[1],
                                         bottom + w.low * r->x_dim[1], bottom + w.high * r->x_dim[1] };
                const float k[4] = { (float)((1 - h.weight) * (1 - w.weight) * share),
                                     (float)((1 - h.weight) * w.weight * share),
                                     (float)(h.weight * (1 - w.weight) * share), (float)(h.weight * w.weight * share) };
                r->set->blend4(b.part[b.count++], from, k, n);
                if (b.count == PARTS) flush(r, &b, n);
            }
        }
        flush(r, &b, n);
        if (b.has_sum) memcpy(y + c, b.sum, (size_t)n * sizeof *y);
        else memset(y + c, 0, (size_t)n * sizeof *y);
    }
}

typedef struct job {
    const record *r;
    const kernel_run *k;
} job;

/* A tile is one row of bins. */
static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    for (int64_t i = begin; i < end; i++) {
        const int64_t n = i / r->out[0], row = i % r->out[0];
        const int64_t image = dtype_load_i64(r->batch_type, j->k->in[2], n * r->batch_stride);
        const bool is_there = image >= 0 && image < r->images;
        if (!is_there) index_fault(j->k, n, image, r->images);
        const float *box = (const float *)j->k->in[1] + n * r->box_stride;
        box_axis h = { 0 }, w = { 0 };
        const bool is_near = box_axis_of(r, box, 0, &h) && box_axis_of(r, box, 1, &w);
        float *y = (float *)j->k->out[0] + n * r->y_box + row * r->y_dim[0];
        if (!is_there || !is_near || !r->in[0] || !r->in[1] || !(h.count * w.count >= 1)) {
            for (int64_t at = 0; at < r->out[1]; at++) memset(y + at * r->y_dim[1], 0, (size_t)r->channels * sizeof *y);
            continue;
        }
        const samples sh = samples_of(&h, row, r->in[0]);
        for (int64_t at = 0; at < r->out[1]; at++) {
            const samples sw = samples_of(&w, at, r->in[1]);
            bin(r, (const float *)j->k->in[0] + image * r->x_image, y + at * r->y_dim[1], &sh, &sw,
                1 / (h.count * w.count));
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k };
    if (r->channels && r->out[1]) row_parallel(k, r->boxes * r->out[0], body, &j);
    return SINTER_OK;
}

const kernel cpu_roi_align = {
    .name = "cpu_roi_align",
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
