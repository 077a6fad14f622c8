/* SPDX-License-Identifier: Apache-2.0 */
/* row_deform_conv.c - deformable convolution in f32, row-major: what the taps of some pixels read is put into columns,
 * and the filters are multiplied with these.
 *
 * The places that a tap reads are the same in all channels of an offset group: four pixels each, of weight 0 outside.
 */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include <math.h>

/* PIXELS: results that are made at once; DEPTH_MAX: numbers that one of them is a sum of, in all groups. */
enum { PIXELS = 64, CORNERS = 4, DEPTH_MAX = 1 << 16 };

typedef struct record {
    const rows_set *set;
    gemm_params product; /* of one group */
    int64_t images, channels, in[2], out[2], kernel[2], stride[2], pad[2], dilation[2];
    int64_t filters, groups, offset_groups, depth; /* depth: channels * taps */
    int64_t pieces;                                /* of the pixels of an image */
    size_t scratch;
    bool has_bias, has_mask;
    row_after after;
} record;

static bool has(const problem *p, uint32_t i)
{
    return i < p->count_anchor && p->in[i].dtype != SINTER_DTYPE_NONE;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_deform_conv, "not a deformable convolution");
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    for (uint32_t i = 0; i < p->count_anchor; i++)
        REJECT_UNLESS(!has(p, i) || row_is_row_major(&p->in[i]), "an operand is not row-major");
    REJECT_UNLESS(row_is_row_major(&p->out[0]), "the result is not row-major");
    const attrs_deform_conv *a = p->attrs;
    const char *window = problem_window_reject(&a->stride, &a->dilation, &a->pad, 2);
    if (window) return window;
    const problem_operand *x = &p->in[0], *w = &p->in[1];
    int64_t depth = x->dim[1].max, plane = 0;
    REJECT_UNLESS(x->rank == 4 && w->rank == 4 && problem_dim_is_static(x->dim[1]) && depth > 0,
                  "the number of channels is not fixed");
    for (uint32_t i = 0; i < 4; i++) {
        REJECT_UNLESS(problem_dim_is_static(w->dim[i]) && w->dim[i].max > 0 && w->dim[i].max < INT32_MAX,
                      "the filter's size is not fixed");
        if (i > 1) REJECT_UNLESS(i64_mul(depth, w->dim[i].max, &depth) && depth <= DEPTH_MAX, "sums of many numbers");
    }
    REJECT_UNLESS(i64_mul(x->dim[2].max, x->dim[3].max, &plane) && plane <= INT32_MAX, "a plane is large");
    REJECT_UNLESS(a->groups > 0 && a->offset_groups > 0 && x->dim[1].max % a->groups == 0 &&
                      w->dim[0].max % a->groups == 0 && x->dim[1].max % a->offset_groups == 0,
                  "the groups do not divide the channels");
    return row_after_reject(p);
}

static int64_t depth_of(const problem *p)
{
    return p->in[0].dim[1].max * p->in[1].dim[2].max * p->in[1].dim[3].max;
}

/* The filters of one group and the columns of some pixels. */
static gemm_params product_of(const problem *p, isa_level isa)
{
    const int64_t groups = ((const attrs_deform_conv *)p->attrs)->groups, k = depth_of(p) / groups;
    const gemm_shape s = { .m = p->in[1].dim[0].max / groups,
                           .n = PIXELS,
                           .k = k,
                           .taps = 1,
                           .a_row = k,
                           .a_col = 1,
                           .b_raw = true,
                           .unit = GEMM_F32 };
    gemm_tactic list[GEMM_TACTICS_MAX];
    (void)gemm_tactics(isa, &s, list);
    return (gemm_params){ .isa = isa,
                          .tactic = list[0],
                          .m = s.m,
                          .n = s.n,
                          .k = k,
                          .a_row = k,
                          .a_col = 1,
                          .b_raw = true,
                          .b_row = PIXELS,
                          .b_col = 1 };
}

/* Places and their weights, columns, and what the product takes. */
static size_t scratch_of(const problem *p, isa_level isa)
{
    const gemm_params g = product_of(p, isa);
    const size_t columns = size_mul((size_t)depth_of(p), PIXELS * sizeof(float));
    return size_add(size_add(PIXELS * CORNERS * 8, columns), size_align(gemm_scratch_size(&g), 64));
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    return size_mul(scratch_of(p, row_isa(t)), threads);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const double threads = target->threads ? target->threads : 1, flops = target->flops > 0 ? target->flops : 1e10;
    const double results = row_operand_bytes(&p->out[0]) / 4, filters = (double)p->in[1].dim[0].max;
    const double sums = results * (double)depth_of(p) / (double)((const attrs_deform_conv *)p->attrs)->groups;
    return (2 * sums + 40 * results / filters * (double)depth_of(p)) / flops * 1e9 / threads + 500;
}

static bool has_dims(const view *v, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return v->rank == 4 && v->dim[0] == a && v->dim[1] == b && v->dim[2] == c && v->dim[3] == d;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_deform_conv *a = attrs;
    const view *x = &in[0], *w = &in[1], *y = &out[0];
    *r = (record){ .set = level_of(isa)->rows,
                   .product = product_of(p, isa),
                   .images = x->dim[0],
                   .channels = x->dim[1],
                   .filters = w->dim[0],
                   .groups = a->groups,
                   .offset_groups = a->offset_groups,
                   .depth = depth_of(p),
                   .scratch = scratch_of(p, isa),
                   .has_bias = has(p, 3),
                   .has_mask = has(p, 4) };
    for (uint32_t i = 0; i < 2; i++) {
        r->in[i] = x->dim[2 + i];
        r->out[i] = y->dim[2 + i];
        r->kernel[i] = w->dim[2 + i];
        r->stride[i] = a->stride.at[i];
        r->pad[i] = a->pad.at[i];
        r->dilation[i] = a->dilation.at[i];
    }
    const int64_t planes = a->offset_groups * r->kernel[0] * r->kernel[1], pixels = r->out[0] * r->out[1];
    if (w->dim[1] * a->groups != r->channels || !has_dims(y, r->images, r->filters, r->out[0], r->out[1]) ||
        !has_dims(&in[2], r->images, 2 * planes, r->out[0], r->out[1]) ||
        (r->has_bias && (in[3].rank != 1 || in[3].dim[0] != r->filters)) ||
        (r->has_mask && !has_dims(&in[4], r->images, planes, r->out[0], r->out[1])))
        return FAIL(e, INVALID_ARG, "deform_conv: the shapes of the operands do not go together");
    r->pieces = (pixels + PIXELS - 1) / PIXELS;
    r->product.ldc = pixels;
    return row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

typedef struct job {
    const record *r;
    const kernel_run *k;
} job;

/* The pixel (row, col) beside `of`: where it lies in a plane, and its weight. */
static void corner(const record *r, double row, double col, double of, int32_t *at, float *weight)
{
    const bool is_inside = row >= 0 && row < (double)r->in[0] && col >= 0 && col < (double)r->in[1];
    *at = is_inside ? (int32_t)((int64_t)row * r->in[1] + (int64_t)col) : 0;
    *weight = is_inside ? (float)of : 0;
}

/* Where one tap of an offset group reads for pixels [first, first + n) of an image. */
static void places(const job *j, int64_t image, int64_t group, int64_t tap, int64_t first, int64_t n, int32_t *at,
                   float *weight)
{
    const record *r = j->r;
    const int64_t taps = r->kernel[0] * r->kernel[1], pixels = r->out[0] * r->out[1];
    const int64_t plane = (image * r->offset_groups + group) * taps + tap;
    const float *offset = (const float *)j->k->in[2] + 2 * plane * pixels + first;
    const double row = (double)(tap / r->kernel[1] * r->dilation[0] - r->pad[0]);
    const double col = (double)(tap % r->kernel[1] * r->dilation[1] - r->pad[1]);
    memset(at, 0, PIXELS * CORNERS * sizeof *at);
    memset(weight, 0, PIXELS * CORNERS * sizeof *weight);
    for (int64_t i = 0; i < n; i++) {
        const int64_t h = (first + i) / r->out[1], w = (first + i) % r->out[1];
        const double y = row + (double)(h * r->stride[0]) + (double)offset[i];
        const double x = col + (double)(w * r->stride[1]) + (double)offset[pixels + i];
        if (!(y > -1 && y < (double)r->in[0] && x > -1 && x < (double)r->in[1])) continue; /* NaN too */
        const double top = floor(y), left = floor(x), down = y - top, right = x - left;
        corner(r, top, left, (1 - down) * (1 - right), at + i, weight + i);
        corner(r, top, left + 1, (1 - down) * right, at + PIXELS + i, weight + PIXELS + i);
        corner(r, top + 1, left, down * (1 - right), at + 2 * PIXELS + i, weight + 2 * PIXELS + i);
        corner(r, top + 1, left + 1, down * right, at + 3 * PIXELS + i, weight + 3 * PIXELS + i);
    }
}

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    const record *r = j->r;
    char *scratch = (char *)j->k->workspace + worker * r->scratch;
    int32_t *at = (int32_t *)(void *)scratch;
    float *weight = (float *)(void *)scratch + PIXELS * CORNERS, *column = weight + PIXELS * CORNERS;
    const int64_t taps = r->kernel[0] * r->kernel[1], pixels = r->out[0] * r->out[1], plane = r->in[0] * r->in[1];
    const int64_t each = r->channels / r->offset_groups, depth = r->depth / r->groups, m = r->filters / r->groups;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / r->pieces, first = i % r->pieces * PIXELS;
        const int64_t n = pixels - first < PIXELS ? pixels - first : PIXELS;
        const float *x = (const float *)j->k->in[0] + image * r->channels * plane;
        for (int64_t tap = 0; tap < taps * r->offset_groups; tap++) {
            const int64_t group = tap / taps;
            places(j, image, group, tap % taps, first, n, at, weight);
            const float *mask =
                r->has_mask ? (const float *)j->k->in[4] + first + (image * taps * r->offset_groups + tap) * pixels
                            : NULL;
            for (int64_t c = group * each; c < (group + 1) * each; c++) {
                float *to = column + (c * taps + tap % taps) * PIXELS;
                if (plane) r->set->gather_blend(to, x + c * plane, at, weight, PIXELS, CORNERS, n);
                else memset(to, 0, PIXELS * sizeof *to); /* there is no pixel that could be read */
                for (int64_t k = 0; mask && k < n; k++) to[k] *= mask[k];
            }
        }
        for (int64_t group = 0; group < r->groups; group++) {
            float *y = (float *)j->k->out[0] + (image * r->filters + group * m) * pixels + first;
            gemm_params g = r->product;
            g.n = n;
            g.a = (const float *)j->k->in[1] + group * m * depth;
            g.b = column + group * depth * PIXELS;
            g.c = y;
            gemm_run(&g, 0, (uint32_t)gemm_tile_count(&g), column + r->depth * PIXELS, NULL);
            for (int64_t k = 0; k < m && r->has_bias; k++)
                r->set->affine(y + k * pixels, y + k * pixels, n, 0, 1, ((const float *)j->k->in[3])[group * m + k]);
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k };
    row_parallel(k, r->images * r->pieces, body, &j);
    row_after_all(&r->after, k, k->out[0]);
    return SINTER_OK;
}

const kernel cpu_deform_conv = {
    .name = "cpu_deform_conv",
    .abi = 1,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
