/* SPDX-License-Identifier: Apache-2.0 */
/* row_conv_transpose.c - transposed convolution in f32, channels-last in and out, weights packed by classes of output
 * pixels, once or, where the model computes them, by each run. The engine's sizes are bounded here, because classes are
 * counted by stepping through strides and taps. */
#include "cpu/conv_transpose.h"
#include "cpu/cpu_kernels.h"
#include "cpu/row_conv_shape.h"

enum { STEP_MAX = 64, TAPS_MAX = 4096, REACH_MAX = 1 << 20 };

static gemm_tactic tactic_of(const tactic *t)
{
    gemm_tactic own;
    row_tactic_own(t, &own, sizeof own);
    return own;
}

/* Stride and the like, right-aligned to depth, height, width. */
static void shape_fill(conv_shape *s, const attrs_conv_transpose *a, uint32_t spatial)
{
    for (uint32_t i = 0; i < 3; i++) {
        s->in[i] = s->out[i] = s->kernel[i] = s->stride[i] = s->dilation[i] = 1;
        s->pad[i] = s->x_dim[i] = 0;
    }
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t to = 3 - spatial + i;
        s->stride[to] = a->stride.at[i];
        s->dilation[to] = a->dilation.at[i];
        s->pad[to] = a->pad.at[i];
    }
    s->groups = a->groups;
    s->x_c = 1;
}

static conv_shape shape_of(const problem *p, row_bound b)
{
    const attrs_conv_transpose *a = p->attrs;
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    const uint32_t spatial = x->rank - 2;
    conv_shape s = { .images = row_size(x->dim[0], b), .c_in = x->dim[1].max, .c_out = w->dim[1].max * a->groups };
    shape_fill(&s, a, spatial);
    for (uint32_t i = 0; i < spatial; i++) {
        s.in[3 - spatial + i] = row_size(x->dim[2 + i], b);
        s.out[3 - spatial + i] = row_size(y->dim[2 + i], b);
        s.kernel[3 - spatial + i] = w->dim[2 + i].max;
    }
    s.x_dim[2] = s.c_in;
    s.x_dim[1] = s.x_dim[2] * s.in[2];
    s.x_dim[0] = s.x_dim[1] * s.in[1];
    s.x_image = s.x_dim[0] * s.in[0];
    return s;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_conv_transpose, "not a transposed convolution");
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    REJECT_UNLESS(x->rank >= 3 && x->rank <= 5, "has no or more than three spatial axes");
    REJECT_UNLESS(!w->is_const || !w->is_strided, "the filter is a part of a constant");
    const attrs_conv_transpose *a = p->attrs;
    const uint32_t spatial = x->rank - 2;
    REJECT_UNLESS(w->rank == x->rank && y->rank == x->rank, "an operand has another rank");
    const char *window = problem_window_reject(&a->stride, &a->dilation, &a->pad, spatial);
    if (window) return window;
    int64_t taps = 1;
    for (uint32_t i = 0; i < w->rank; i++) {
        REJECT_UNLESS(problem_dim_is_static(w->dim[i]) && w->dim[i].max > 0, "the filter's size is not fixed");
        if (i < 2) continue;
        const int64_t stride = a->stride.at[i - 2], dilation = a->dilation.at[i - 2], pad = a->pad.at[i - 2];
        REJECT_UNLESS(stride >= 1 && stride <= STEP_MAX && dilation >= 1 && dilation <= STEP_MAX,
                      "strides or dilations are out of range");
        REJECT_UNLESS(pad >= 0 && pad <= REACH_MAX, "a pad is negative or too large");
        REJECT_UNLESS(i64_mul(taps, w->dim[i].max, &taps) && taps <= TAPS_MAX, "the filter has too many taps");
    }
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]) && x->dim[1].max == w->dim[0].max,
                  "the number of channels is not fixed");
    REJECT_UNLESS(a->groups > 0 && x->dim[1].max % a->groups == 0 && a->groups <= INT32_MAX / w->dim[1].max,
                  "the groups do not divide the channels");
    for (uint32_t i = 2; i < x->rank; i++)
        REJECT_UNLESS(x->dim[i].max <= REACH_MAX && y->dim[i].max <= (int64_t)REACH_MAX * STEP_MAX,
                      "a size has no bound");
    REJECT_UNLESS(row_has_channels_last(y), "the result is not channels-last");
    const char *why = row_pitch_reject(y);
    if (why) return why;
    REJECT_UNLESS(row_is_channel_inner(x), "the input is not channels-last");
    REJECT_UNLESS(row_count_max(x) < INT64_MAX / 64 && row_count_max(y) < INT64_MAX / 64, "a size has no bound");
    return row_epilogue_reject(p);
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    gemm_tactic list[GEMM_TACTICS_MAX];
    conv_shape s = shape_of(p, AT_OPT);
    s.cache = t->cache_l2;
    const int count = conv_transpose_tactics((isa_level)t->isa, &s, list);
    row_tactics_add(t, list, count, sizeof *list, out);
}

static bool check(const problem *p, const tactic *t)
{
    const conv_shape s = shape_of(p, AT_OPT);
    return row_tactic_check(t, sizeof(gemm_tactic)) && !conv_transpose_tactic_check(row_isa(t), &s, tactic_of(t));
}

static void print(const tactic *t, text *out)
{
    char name[64];
    (void)gemm_tactic_print(name, sizeof name, row_isa(t), tactic_of(t));
    row_tactic_print(t, name, out);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const conv_shape s = shape_of(p, AT_OPT);
    const double sums = conv_transpose_cost(row_isa(t), &s, tactic_of(t));
    return (sums + row_epilogue_ns(p)) / (target->threads ? target->threads : 1) + 500;
}

static size_t scratch_max(const problem *p, const tactic *t)
{
    const conv_transpose_params c = { .isa = row_isa(t), .tactic = tactic_of(t), .shape = shape_of(p, AT_MAX) };
    return size_align(conv_transpose_scratch_size(&c), 64);
}

static size_t filter_size(const problem *p, const tactic *t)
{
    const conv_shape s = shape_of(p, AT_OPT);
    return conv_transpose_pack_size(row_isa(t), &s, tactic_of(t));
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    const size_t packed = p->in[1].is_const ? 0 : size_align(filter_size(p, t), 64);
    return size_add(packed, size_mul(scratch_max(p, t), threads));
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    return input == 1 && p->in[1].is_const ? filter_size(p, t) : 0;
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)input;
    const conv_shape s = shape_of(p, AT_OPT);
    int64_t stride[5];
    row_filter_strides(src, stride);
    conv_transpose_pack(row_isa(t), &s, tactic_of(t), src->data, stride, dst);
}

typedef struct record {
    conv_transpose_params params;
    size_t scratch;
    size_t packed; /* bytes in front of the workspace for a filter that is no constant, or 0 */
    int64_t filter[5];
    row_epilogue epilogue;
} record;

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const view *x = &in[0], *y = &out[0];
    if (x->dim[1] > 1 && x->stride[1] != 1)
        return FAIL(e, UNSUPPORTED,
                    "a transposed convolution reads every %lldth channel of its input; adjacent ones are wanted",
                    (long long)x->stride[1]);
    memset(&r->params, 0, sizeof r->params);
    conv_transpose_params *c = &r->params;
    c->isa = isa;
    c->tactic = tactic_of(t);
    conv_shape *s = &c->shape;
    const uint32_t spatial = x->rank - 2;
    shape_fill(s, attrs, spatial);
    s->images = x->dim[0];
    s->c_in = x->dim[1];
    s->c_out = y->dim[1];
    s->x_image = x->stride[0];
    for (uint32_t i = 0; i < spatial; i++) {
        const uint32_t at = 3 - spatial + i;
        s->in[at] = x->dim[2 + i];
        s->out[at] = y->dim[2 + i];
        s->kernel[at] = p->in[1].dim[2 + i].max;
        s->x_dim[at] = x->stride[2 + i];
    }
    if (in[1].dim[0] != s->c_in || in[1].dim[1] * s->groups != s->c_out)
        return FAIL(e, INVALID_ARG, "conv_transpose: the shapes of the operands do not go together");
    TRY(row_pitch(e, y, &c->ldy));
    uint8_t order[SINTER_RANK_MAX];
    for (uint32_t i = 0; i < y->rank; i++) order[i] = p->out[0].order[i];
    TRY(row_epilogue_bind(e, p, isa, in, out, order, true, &r->epilogue, r + 1));
    row_gemm_epilogue_bind(&r->epilogue, c->ldy, &c->epilogue);
    r->scratch = scratch_max(p, t);
    r->packed = p->in[1].is_const ? 0 : size_align(filter_size(p, t), 64);
    row_filter_strides(&in[1], r->filter);
    return SINTER_OK;
}

typedef struct job {
    conv_transpose_params c;
    const record *r;
    vm_io io;
    char *scratch;
} job;

static void post(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, void *y, int64_t ldy)
{
    (void)batch;
    const job *j = user;
    row_epilogue_block(&j->r->epilogue, &j->io, row, rows, col, cols, y, ldy);
}

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    job *j = arg;
    conv_transpose_run(&j->c, begin, end, j->scratch + worker * j->r->scratch, j);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { .c = r->params, .r = r, .io = { k->in, k->out }, .scratch = (char *)k->workspace + r->packed };
    j.c.x = k->in[0];
    j.c.w = r->packed ? k->workspace : k->in[1];
    j.c.y = k->out[0];
    if (r->packed) conv_transpose_pack(j.c.isa, &j.c.shape, j.c.tactic, k->in[1], r->filter, k->workspace);
    row_gemm_epilogue_run(&r->epilogue, k, post, &j.c.epilogue);
    row_parallel(k, conv_transpose_tile_count(&j.c), body, &j);
    return SINTER_OK;
}

const kernel cpu_conv_transpose = {
    .name = "cpu_conv_transpose",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = reject,
    .tactics = tactics,
    .check = check,
    .print = print,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .pack_size = pack_size,
    .pack = pack,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
