/* SPDX-License-Identifier: Apache-2.0 */
/* row_norm.c - softmax and log_softmax in f32 and f64, layer_norm and rms_norm in f32 over rows, group_norm in both
 * image orders. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include <math.h>

enum { TILE_ELEMENTS = 8192 };

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const double threads = target->threads ? target->threads : 1, flops = target->flops > 0 ? target->flops : 1e10;
    return row_memory_ns(p, target, 1.2) + row_operand_bytes(&p->out[0]) * 8 / flops * 1e9 / threads;
}

static bool same_order(const problem *p)
{
    return !p->in[0].is_strided && !p->out[0].is_strided && !memcmp(p->in[0].order, p->out[0].order, p->in[0].rank);
}

/* What all rows of this file keep: [outer, n, inner] elements, dense. */
typedef struct record {
    const rows_set *set;
    int64_t outer, n, inner, step; /* step: of outer (or of columns), those of a tile */
    bool is_log, is_cols, is_f64;
    float epsilon;
    row_after after;
} record;

typedef struct job {
    const record *r;
    const kernel_run *k;
    const float *x, *scale, *bias;
    float *y, *mean, *inverse;
} job;

static const float *optional(const kernel_run *k, uint32_t count, uint32_t i)
{
    return i < count ? k->in[i] : NULL;
}

/* ---- softmax ---- */

static const char *softmax_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_softmax || p->op == OP_log_softmax, "not a softmax");
    REJECT_UNLESS(p->in[0].rank > 0 && same_order(p), "operands are strided, or lie in two orders");
    if (p->in[0].dtype == SINTER_DTYPE_F64) {
        REJECT_UNLESS(p->out[0].dtype == SINTER_DTYPE_F64, "operands of several types");
        REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "programs, and not f32");
        return NULL;
    }
    REJECT_UNLESS(row_is_f32(p, 1), "neither in f32 nor in f64");
    return row_after_reject(p);
}

static sinter_status softmax_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                  const view *out, void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const int64_t axis =
        p->op == OP_softmax ? ((const attrs_softmax *)attrs)->axis : ((const attrs_log_softmax *)attrs)->axis;
    r->set = level_of(isa)->rows;
    r->is_log = p->op == OP_log_softmax;
    r->outer = r->inner = 1;
    r->n = out[0].dim[axis];
    bool is_inside = false;
    for (uint32_t i = 0; i < out[0].rank; i++) {
        const uint32_t a = p->out[0].order[i];
        if (a == axis) is_inside = true;
        else if (is_inside) r->inner *= out[0].dim[a];
        else r->outer *= out[0].dim[a];
    }
    r->is_cols = r->inner > 1;
    const int64_t row = r->n > 0 ? r->n : 1;
    r->step = r->is_cols ? TILE_ELEMENTS / row / 16 * 16 : TILE_ELEMENTS / row;
    if (r->step < (r->is_cols ? 16 : 1)) r->step = r->is_cols ? 16 : 1;
    r->is_f64 = p->out[0].dtype == SINTER_DTYPE_F64;
    r->after = (row_after){ 0 };
    return r->is_f64 ? SINTER_OK : row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

static void softmax_wide_rows(const job *j, int64_t at, int64_t stop)
{
    const record *r = j->r;
    const double *x = (const void *)j->x;
    double *y = (void *)j->y;
    if (r->n <= ROWS_SHORT / 2) r->set->softmax_short_f64(y + at * r->n, x + at * r->n, stop - at, r->n, r->is_log);
    else
        for (int64_t i = at; i < stop; i++) r->set->softmax_f64(y + i * r->n, x + i * r->n, r->n, r->is_log);
}

static void softmax_rows(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t stop = end * r->step < r->outer ? end * r->step : r->outer;
    const int64_t at = begin * r->step;
    if (r->is_f64) {
        softmax_wide_rows(j, at, stop);
        return;
    }
    if (r->n <= ROWS_SHORT) {
        r->set->softmax_short(j->y + at * r->n, j->x + at * r->n, stop - at, r->n, r->is_log);
        row_after_part(&r->after, j->k, j->y, at * r->n, stop * r->n);
        return;
    }
    for (int64_t i = at; i < stop; i++) {
        r->set->softmax(j->y + i * r->n, j->x + i * r->n, r->n, r->is_log);
        row_after_part(&r->after, j->k, j->y, i * r->n, (i + 1) * r->n);
    }
}

static void softmax_columns(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t pieces = (r->inner + r->step - 1) / r->step;
    for (int64_t i = begin; i < end; i++) {
        const int64_t col = i % pieces * r->step, at = i / pieces * r->n * r->inner + col;
        const int64_t cols = r->inner - col < r->step ? r->inner - col : r->step;
        const double *x = (const void *)j->x;
        double *y = (void *)j->y;
        if (r->is_f64) r->set->softmax_cols_f64(y + at, x + at, r->n, r->inner, cols, r->is_log);
        else r->set->softmax_cols(j->y + at, j->x + at, r->n, r->inner, r->inner, cols, r->is_log);
    }
}

static sinter_status softmax_run(const kernel_run *k)
{
    const record *r = k->record;
    if (!r->outer || !r->n || !r->inner) return SINTER_OK;
    job j = { .r = r, .k = k, .x = k->in[0], .y = k->out[0] };
    if (!r->is_cols) {
        row_parallel(k, (r->outer + r->step - 1) / r->step, softmax_rows, &j);
    } else {
        row_parallel(k, r->outer * ((r->inner + r->step - 1) / r->step), softmax_columns, &j);
        row_after_all(&r->after, k, j.y);
    }
    return SINTER_OK;
}

const kernel cpu_softmax = {
    .name = "cpu_softmax",
    .abi = 1,
    .reject = softmax_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = softmax_bind,
    .run = softmax_run,
};

/* ---- layer_norm and rms_norm ---- */

static int64_t norm_axis(const problem *p, const void *attrs)
{
    return p->op == OP_layer_norm ? ((const attrs_layer_norm *)attrs)->axis : ((const attrs_rms_norm *)attrs)->axis;
}

/* Scale and bias have exactly the normalised axes, row-major. */
static bool fits(const problem *p, uint32_t i)
{
    const problem_operand *o = &p->in[i], *x = &p->in[0];
    if (i >= p->count_anchor || o->dtype == SINTER_DTYPE_NONE) return true;
    const uint32_t axis = (uint32_t)norm_axis(p, p->attrs), rank = x->rank - axis;
    if (!row_is_row_major(o) || o->rank < rank) return false;
    for (uint32_t k = 0; k < o->rank; k++) {
        const uint32_t lead = o->rank - rank;
        if (k < lead ? o->dim[k].max != 1 : memcmp(&o->dim[k], &x->dim[axis + k - lead], sizeof o->dim[k]) != 0)
            return false;
    }
    return true;
}

static const char *norm_reject(const problem *p)
{
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    REJECT_UNLESS(row_is_row_major(&p->in[0]) && row_is_row_major(&p->out[0]), "operands are not row-major");
    REJECT_UNLESS(fits(p, 1) && fits(p, 2), "scale or bias are broadcast");
    if (!p->epilogue) {
        REJECT_UNLESS(!p->prologue, "has a prologue");
        for (uint32_t i = 1; i < p->count_out; i++)
            REJECT_UNLESS(p->out[i].dtype == SINTER_DTYPE_F32 && !p->out[i].is_strided && row_is_row_major(&p->out[i]),
                          "statistics are not dense f32");
        return NULL;
    }
    return row_after_reject(p);
}

static const char *layer_norm_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_layer_norm, "not a layer normalisation");
    return norm_reject(p);
}

static const char *rms_norm_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_rms_norm, "not an rms normalisation");
    return norm_reject(p);
}

static sinter_status norm_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                               const view *out, void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    r->set = level_of(isa)->rows;
    r->outer = r->n = r->inner = 1;
    const int64_t axis = norm_axis(p, attrs);
    r->epsilon = (float)(p->op == OP_layer_norm ? ((const attrs_layer_norm *)attrs)->epsilon
                                                : ((const attrs_rms_norm *)attrs)->epsilon);
    for (uint32_t i = 0; i < in[0].rank; i++) *(i < axis ? &r->outer : &r->n) *= in[0].dim[i];
    r->step = r->n > 0 && r->n < TILE_ELEMENTS ? TILE_ELEMENTS / r->n : 1;
    r->is_log = p->op == OP_rms_norm;
    r->is_cols = !p->epilogue; /* further results are statistics */
    r->inner = (int64_t)p->count_anchor | (int64_t)(p->epilogue ? 1 : p->count_out) << 32;
    return row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

static void norm_rows(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t at = begin * r->step, stop = end * r->step < r->outer ? end * r->step : r->outer;
    const bool is_short = r->n <= ROWS_SHORT;
    if (is_short && r->is_log)
        r->set->rms_short(j->y + at * r->n, j->x + at * r->n, stop - at, r->n, j->scale, r->epsilon);
    if (is_short && !r->is_log)
        r->set->norm_short(j->y + at * r->n, j->x + at * r->n, stop - at, r->n, j->scale, j->bias, r->epsilon,
                           j->mean ? j->mean + at : NULL, j->inverse ? j->inverse + at : NULL);
    for (int64_t i = at; i < stop && !is_short; i++) {
        float stats[2];
        if (r->is_log) {
            r->set->rms_norm(j->y + i * r->n, j->x + i * r->n, r->n, j->scale, r->epsilon);
        } else {
            r->set->layer_norm(j->y + i * r->n, j->x + i * r->n, r->n, j->scale, j->bias, r->epsilon, stats);
            if (j->mean) j->mean[i] = stats[0];
            if (j->inverse) j->inverse[i] = stats[1];
        }
    }
    row_after_part(&r->after, j->k, j->y, at * r->n, stop * r->n);
}

static sinter_status norm_run(const kernel_run *k)
{
    const record *r = k->record;
    const uint32_t count_in = (uint32_t)r->inner, count_out = (uint32_t)(r->inner >> 32);
    job j = { .r = r,
              .k = k,
              .x = k->in[0],
              .y = k->out[0],
              .scale = optional(k, count_in, 1),
              .bias = optional(k, count_in, 2),
              .mean = count_out > 1 ? k->out[1] : NULL,
              .inverse = count_out > 2 ? k->out[2] : NULL };
    /* The statistics of no numbers are NaN. */
    for (int64_t i = 0; !r->n && i < r->outer; i++) {
        if (j.mean) j.mean[i] = NAN;
        if (j.inverse) j.inverse[i] = NAN;
    }
    if (r->n) row_parallel(k, (r->outer + r->step - 1) / r->step, norm_rows, &j);
    return SINTER_OK;
}

const kernel cpu_layer_norm = {
    .name = "cpu_layer_norm",
    .abi = 1,
    .reject = layer_norm_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = norm_bind,
    .run = norm_run,
};
const kernel cpu_rms_norm = {
    .name = "cpu_rms_norm",
    .abi = 1,
    .reject = rms_norm_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = norm_bind,
    .run = norm_run,
};

/* ---- group_norm ---- */

typedef struct group_record {
    const rows_set *set;
    int64_t images, channels, groups, pixels;
    bool is_last; /* channels-last */
    uint32_t count_in;
    float epsilon;
    size_t scratch;
    row_after after;
} group_record;

enum { PART = 4096, ROWS_PART = 64 };

static const char *group_norm_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_group_norm, "not a group normalisation");
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    REJECT_UNLESS(p->in[0].rank >= 3 && same_order(p), "operands are strided, or lie in two orders");
    REJECT_UNLESS(row_is_row_major(&p->in[0]) || row_is_channels_last(&p->in[0]),
                  "neither row-major nor channels-last");
    REJECT_UNLESS(p->in[0].dim[1].max < INT32_MAX, "the number of channels has no bound");
    for (uint32_t i = 1; i < p->count_anchor; i++)
        if (p->in[i].dtype != SINTER_DTYPE_NONE)
            REJECT_UNLESS(p->in[i].rank == 1 && !p->in[i].is_strided, "scale or bias are no dense vectors");
    return row_after_reject(p);
}

/* Sums and means, a part of rows, and centre, scale and bias of every channel. */
static size_t group_scratch(const problem *p)
{
    return size_align(size_mul((size_t)p->in[0].dim[1].max, 5 * sizeof(float) + 2 * sizeof(double)), 64);
}

static size_t group_workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t;
    return size_mul(group_scratch(p), threads);
}

static sinter_status group_norm_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                     const view *out, void *to)
{
    group_record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_group_norm *a = attrs;
    r->set = level_of(isa)->rows;
    r->images = in[0].dim[0];
    r->channels = in[0].dim[1];
    r->groups = a->groups ? a->groups : r->channels;
    r->pixels = 1;
    for (uint32_t i = 2; i < in[0].rank; i++) r->pixels *= in[0].dim[i];
    r->is_last = !row_is_row_major(&p->in[0]);
    r->count_in = p->count_anchor;
    r->epsilon = (float)a->epsilon;
    r->scratch = group_scratch(p);
    if (r->groups < 0 || (r->groups && r->channels % r->groups))
        return FAIL(e, INVALID_ARG, "%lld groups do not divide %lld channels", (long long)r->groups,
                    (long long)r->channels);
    return row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

/* One group of one image, channels by channels: a contiguous run. */
static void group_run(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const group_record *r = (const group_record *)(const void *)j->r;
    const int64_t members = r->channels / r->groups, n = members * r->pixels;
    for (int64_t i = begin; i < end; i++) {
        const float *x = j->x + i * n;
        float *y = j->y + i * n;
        double sum = 0, square = 0, part, of;
        for (int64_t k = 0; k < n; k += PART) {
            r->set->moments(x + k, n - k < PART ? n - k : PART, 0, &part, &of);
            sum += part;
        }
        const double mean = sum / (double)n;
        for (int64_t k = 0; k < n; k += PART) {
            r->set->moments(x + k, n - k < PART ? n - k : PART, (float)mean, &part, &of);
            square += of;
        }
        /* Squares are about the rounded mean, which is `off` from the mean. */
        const double off = mean - (double)(float)mean, variance = fmax(0, square / (double)n - off * off);
        const double inverse = 1 / sqrt(variance + (double)r->epsilon);
        for (int64_t c = 0; c < members; c++) {
            const int64_t channel = i % r->groups * members + c;
            const double s = inverse * (j->scale ? (double)j->scale[channel] : 1);
            const double b = (j->bias ? (double)j->bias[channel] : 0) - off * s;
            r->set->affine(y + c * r->pixels, x + c * r->pixels, r->pixels, (float)mean, (float)s, (float)b);
        }
    }
}

/* One image, channels-last: columns are summed, then columns of squared distances, then every pixel is scaled. */
static void image_run(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    const group_record *r = (const group_record *)(const void *)j->r;
    const int64_t channels = r->channels, members = channels / r->groups;
    double *sum = (double *)(void *)((char *)j->k->workspace + worker * r->scratch), *mean = sum + channels;
    float *part = (float *)(mean + channels), *moved = part + channels, *centre = moved + channels,
          *scale = centre + channels, *bias = scale + channels;
    for (int64_t i = begin; i < end; i++) {
        const float *x = j->x + i * channels * r->pixels;
        float *y = j->y + i * channels * r->pixels;
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t c = 0; c < channels; c++) {
                sum[c] = 0;
                centre[c] = pass ? (float)mean[c] : 0;
                scale[c] = 1;
                bias[c] = 0;
            }
            for (int64_t k = 0; k < r->pixels; k += ROWS_PART) {
                const int64_t rows = r->pixels - k < ROWS_PART ? r->pixels - k : ROWS_PART;
                memset(part, 0, (size_t)channels * sizeof *part);
                if (!pass) {
                    r->set->fold_cols(ROWS_SUM, part, x + k * channels, rows, channels, channels);
                } else {
                    for (int64_t row = 0; row < rows; row++) {
                        r->set->affine_each(moved, x + (k + row) * channels, channels, centre, scale, bias);
                        r->set->fold_cols(ROWS_SQUARE, part, moved, 1, channels, channels);
                    }
                }
                for (int64_t c = 0; c < channels; c++) sum[c] += (double)part[c];
            }
            for (int64_t g = 0; g < r->groups; g++) {
                double total = 0;
                for (int64_t c = 0; c < members; c++) total += sum[g * members + c];
                total /= (double)(members * r->pixels);
                for (int64_t c = g * members; c < (g + 1) * members; c++) *(pass ? &sum[c] : &mean[c]) = total;
            }
        }
        for (int64_t c = 0; c < channels; c++) {
            const double off = mean[c] - (double)centre[c], variance = fmax(0, sum[c] - off * off);
            const double s = (j->scale ? (double)j->scale[c] : 1) / sqrt(variance + (double)r->epsilon);
            scale[c] = (float)s;
            bias[c] = (float)((j->bias ? (double)j->bias[c] : 0) - off * s);
        }
        for (int64_t k = 0; k < r->pixels; k++)
            r->set->affine_each(y + k * channels, x + k * channels, channels, centre, scale, bias);
    }
}

static sinter_status group_norm_run(const kernel_run *k)
{
    const group_record *r = k->record;
    if (!r->images || !r->channels || !r->pixels) return SINTER_OK;
    job j = { .r = k->record,
              .k = k,
              .x = k->in[0],
              .y = k->out[0],
              .scale = optional(k, r->count_in, 1),
              .bias = optional(k, r->count_in, 2) };
    if (r->is_last) row_parallel(k, r->images, image_run, &j);
    else row_parallel(k, r->images * r->groups, group_run, &j);
    row_after_all(&r->after, k, j.y);
    return SINTER_OK;
}

const kernel cpu_group_norm = {
    .name = "cpu_group_norm",
    .abi = 1,
    .reject = group_norm_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .workspace = group_workspace,
    .record = sizeof(group_record),
    .record_size = row_record_room,
    .bind = group_norm_bind,
    .run = group_norm_run,
};
