/* SPDX-License-Identifier: Apache-2.0 */
/* row_conv_group.c - convolution in f32 of groups of 2, 4, 8 or 16 channels in and out, channels-last; filters are 3
 * wide. */
#include "cpu/cpu_kernels.h"
#include "cpu/group_conv.h"
#include "cpu/level.h"
#include "cpu/row_conv_shape.h"

#include <string.h>

/* Bytes of an image and its result from which on they come from beyond the L2 cache. */
enum { FAR = 1 << 20 };

typedef struct record {
    group_conv_fn *fn;
    conv_shape shape;
    int64_t group, w_vector, w_row, ldy;
    int32_t spread[GROUP_MOST][GROUP_MOST];
    size_t scratch;
    gemm_epilogue gemm;
    row_epilogue epilogue;
} record;

static bool takes(isa_level isa, int64_t group)
{
    return level_of(isa)->group_conv && group <= level_of(isa)->gemm->lanes;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    const char *why = row_conv_reject(p);
    if (!why) why = row_filter_reject(p);
    if (why) return why;
    const attrs_conv *a = p->attrs;
    const problem_operand *x = &p->in[0], *w = &p->in[1];
    const uint32_t spatial = x->rank - 2u;
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    REJECT_UNLESS(x->rank <= 4, "has more than two spatial axes");
    REJECT_UNLESS(row_is_channel_inner(x), "the input is not channels-last");
    const int64_t group = w->dim[1].max;
    REJECT_UNLESS(a->groups > 1 && group > 1 && group <= GROUP_MOST && (group & (group - 1)) == 0,
                  "has no groups of 2, 4, 8 or 16 channels");
    REJECT_UNLESS(x->dim[1].max / group == a->groups && x->dim[1].max % group == 0 && w->dim[0].max == x->dim[1].max,
                  "groups give another number of channels than they take");
    const char *window = problem_window_reject(&a->stride, &a->dilation, &a->pad, spatial);
    if (window) return window;
    REJECT_UNLESS(w->dim[w->rank - 1].max == GROUP_WIDTH, "the filter is not 3 wide");
    REJECT_UNLESS(a->stride.at[spatial - 1] >= 1 && a->stride.at[spatial - 1] <= GROUP_STRIDE_MAX &&
                      a->dilation.at[spatial - 1] == 1,
                  "the width is dilated, or its stride above 2");
    const conv_shape s = row_conv_shape(p, AT_MAX);
    const char *shape = conv_shape_check(&s);
    if (shape) return shape;
    REJECT_UNLESS(takes((isa_level)t->isa, group), "the level's vectors cannot be permuted, or are too short");
    return NULL;
}

static bool check(const problem *p, const tactic *t)
{
    return row_check_isa(p, t) && takes(row_isa(t), p->in[1].dim[1].max);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const conv_shape s = row_conv_shape(p, AT_OPT);
    const double threads = target->threads ? target->threads : 1, flops = target->flops > 0 ? target->flops : 1e10;
    const double terms = (double)(s.kernel[1] * s.kernel[2]) * (double)(s.c_in / s.groups);
    const double work = row_operand_bytes(&p->out[0]) / 4 * 2 * terms;
    return row_memory_ns(p, target, 0.5) + (work / flops * 1.2 * 1e9 + row_epilogue_ns(p)) / threads + 500;
}

static int64_t columns_of(const conv_shape *s)
{
    return s->out[2] < 1 ? GROUP_WIDTH : (s->out[2] - 1) * s->stride[2] + GROUP_WIDTH;
}

/* Zeros of a pixel, then the pointers. */
static size_t zeros_size(const conv_shape *s)
{
    return size_align(size_mul((size_t)s->c_in, sizeof(float)), 64);
}

static size_t scratch_of(const problem *p)
{
    const conv_shape s = row_conv_shape(p, AT_MAX);
    const size_t pointers = size_mul((size_t)columns_of(&s), (size_t)s.kernel[1]);
    return size_align(size_add(zeros_size(&s), size_mul(pointers, sizeof(const float *))), 64);
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t;
    return size_mul(scratch_of(p), threads);
}

static int64_t vectors_of(const conv_shape *s, isa_level isa)
{
    const int64_t lanes = level_of(isa)->gemm->lanes;
    return (s->c_out - 1) / lanes + 1;
}

/* Floats of the weights of a row of taps of a vector of channels. */
static int64_t row_floats(const conv_shape *s, isa_level isa)
{
    return s->c_in / s->groups * GROUP_WIDTH * level_of(isa)->gemm->lanes;
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    if (input != 1) return 0;
    const conv_shape s = row_conv_shape(p, AT_OPT);
    const size_t one = size_mul((size_t)row_floats(&s, row_isa(t)), (size_t)s.kernel[1]);
    return size_align(size_mul(size_mul(one, (size_t)vectors_of(&s, row_isa(t))), sizeof(float)), 64);
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    const conv_shape s = row_conv_shape(p, AT_OPT);
    const int64_t lanes = level_of(row_isa(t))->gemm->lanes, group = s.c_in / s.groups;
    int64_t stride[5];
    row_filter_strides(src, stride);
    memset(dst, 0, pack_size(p, t, input));
    float *to = dst;
    for (int64_t c = 0; c < s.c_out; c += lanes)
        for (int64_t h = 0; h < s.kernel[1]; h++)
            for (int64_t i = 0; i < group; i++)
                for (int64_t k = 0; k < GROUP_WIDTH; k++, to += lanes)
                    for (int64_t lane = 0; lane < lanes && c + lane < s.c_out; lane++)
                        to[lane] =
                            ((const float *)
                                 src->data)[(c + lane) * stride[0] + i * stride[1] + h * stride[3] + k * stride[4]];
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    r->shape = row_conv_bind(p, attrs, &in[0], &out[0]);
    if (r->shape.x_c != 1)
        return FAIL(e, UNSUPPORTED,
                    "a convolution of groups reads every %lldth channel of its input; adjacent ones are wanted",
                    (long long)r->shape.x_c);
    r->fn = level_of(isa)->group_conv;
    r->group = r->shape.c_in / r->shape.groups;
    r->w_row = row_floats(&r->shape, isa);
    r->w_vector = r->w_row * r->shape.kernel[1];
    r->scratch = scratch_of(p);
    for (int32_t i = 0; i < GROUP_MOST; i++)
        for (int32_t lane = 0; lane < GROUP_MOST; lane++)
            r->spread[i][lane] = lane / (int32_t)r->group * (int32_t)r->group + i % (int32_t)r->group;
    TRY(row_pitch(e, &out[0], &r->ldy));
    uint8_t order[SINTER_RANK_MAX];
    row_order_channels_last(out[0].rank, order);
    TRY(row_epilogue_bind(e, p, isa, in, out, order, true, &r->epilogue, r + 1));
    memset(&r->gemm, 0, sizeof r->gemm);
    row_gemm_epilogue_bind(&r->epilogue, r->ldy, &r->gemm);
    return SINTER_OK;
}

typedef struct job {
    const record *r;
    const kernel_run *k;
    vm_io io;
    gemm_epilogue gemm;
} job;

static void post(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, void *y, int64_t ldy)
{
    (void)batch;
    const job *j = user;
    row_epilogue_block(&j->r->epilogue, &j->io, row, rows, col, cols, y, ldy);
}

/* Pixels of the rows of taps that lie inside, for row `high` of results; the first of these rows. */
static int64_t find_pixels(const conv_shape *s, const float *image, int64_t high, const float *zeros,
                           const float **pixel, int64_t *rows)
{
    const int64_t columns = columns_of(s);
    int64_t first = 0;
    *rows = 0;
    for (int64_t k = 0; k < s->kernel[1]; k++) {
        const int64_t at = high * s->stride[1] - s->pad[1] + k * s->dilation[1];
        if (at < 0 || at >= s->in[1]) continue;
        if (!*rows) first = k;
        const float **to = pixel + (*rows)++ * columns;
        for (int64_t i = 0; i < columns; i++) {
            const int64_t wide = i - s->pad[2];
            to[i] = wide < 0 || wide >= s->in[2] ? zeros : image + at * s->x_dim[1] + wide * s->x_dim[2];
        }
    }
    return first;
}

/* What row `high` of results reads and the one before does not, and the row itself. */
static void ask_next(const record *r, group_conv *g, const float *image, int64_t high)
{
    const conv_shape *s = &r->shape;
    const int64_t pixel = (int64_t)sizeof(float) * (s->in[1] * s->x_dim[1] + s->out[1] * s->out[2] * r->ldy);
    const int64_t last = (high - 1) * s->stride[1] - s->pad[1] + (s->kernel[1] - 1) * s->dilation[1];
    if (pixel < FAR || high >= s->out[1] || last < 0) return;
    const int64_t end = last + s->stride[1] < s->in[1] ? last + s->stride[1] : s->in[1] - 1;
    if (end > last) {
        g->next_x = (const char *)(image + (last + 1) * s->x_dim[1]);
        g->next_x_size = ((end - last - 1) * s->x_dim[1] + s->in[2] * s->x_dim[2]) * (int64_t)sizeof(float);
    }
    g->next_y = (const char *)(g->y + s->out[2] * r->ldy);
    g->next_y_size = s->out[2] * r->ldy * (int64_t)sizeof(float);
}

/* A tile is a row of results of one image. */
static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const job *j = arg;
    const record *r = j->r;
    const conv_shape *s = &r->shape;
    char *scratch = (char *)j->k->workspace + worker * r->scratch;
    float *zeros = (float *)(void *)scratch;
    const float **pixel = (const float **)(void *)(scratch + zeros_size(s));
    memset(zeros, 0, zeros_size(s));
    for (int64_t i = begin; i < end; i++) {
        int64_t rows;
        const float *image = (const float *)j->k->in[0] + i / s->out[1] * s->x_image;
        const int64_t first = find_pixels(s, image, i % s->out[1], zeros, pixel, &rows), at = i * s->out[2];
        group_conv g = { .x = pixel,
                         .w = (const float *)j->k->in[1] + first * r->w_row,
                         .spread = r->spread[0],
                         .y = (float *)j->k->out[0] + at * r->ldy,
                         .residual = j->gemm.residual ? j->gemm.residual + at * j->gemm.ldr : NULL,
                         .rows = rows,
                         .columns = columns_of(s),
                         .pixels = s->out[2],
                         .channels = s->c_out,
                         .group = r->group,
                         .stride = s->stride[2],
                         .w_vector = r->w_vector,
                         .ldy = r->ldy,
                         .ldr = j->gemm.ldr,
                         .epilogue = &j->gemm };
        if (i + 1 < end) ask_next(r, &g, image, i % s->out[1] + 1);
        r->fn(&g);
        if (j->gemm.post) j->gemm.post((void *)(uintptr_t)j, 0, at, s->out[2], 0, s->c_out, g.y, r->ldy);
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    const conv_shape *s = &r->shape;
    job j = { .r = r, .k = k, .io = { k->in, k->out }, .gemm = r->gemm };
    if (!s->images || !s->out[1] || !s->out[2]) return SINTER_OK;
    row_gemm_epilogue_run(&r->epilogue, k, post, &j.gemm);
    row_parallel(k, s->images * s->out[1], body, &j);
    return SINTER_OK;
}

const kernel cpu_conv_group = {
    .name = "cpu_conv_group",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = check,
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
