/* SPDX-License-Identifier: Apache-2.0 */
/* row_winograd.c - convolution over one axis or two with filters of three or five taps (or one, along an axis of two)
 * at stride 1 by Winograd's transforms: fewer products than the direct kernel, larger filters, results that differ
 * more. Which one is faster the clock decides. An image of one axis is one of height 1. */
#include "cpu/cpu_kernels.h"
#include "cpu/row.h"
#include "cpu/winograd.h"

static winograd_tactic tactic_of(const tactic *t)
{
    winograd_tactic own;
    row_tactic_own(t, &own, sizeof own);
    return own;
}

typedef struct record {
    winograd_params params;
    size_t shared, scratch;
    row_epilogue epilogue;
} record;

static winograd_shape shape_of(const problem *p, bool is_max)
{
    const attrs_conv *a = p->attrs;
    const problem_operand *x = &p->in[0], *y = &p->out[0];
    winograd_shape s = { .c_in = x->dim[1].max, .c_out = p->in[1].dim[0].max };
    s.images = is_max ? x->dim[0].max : x->dim[0].opt;
    s.in[0] = s.out[0] = s.filter[0] = 1;
    for (uint32_t i = 2, axis = 4u - x->rank; i < x->rank; i++, axis++) {
        s.in[axis] = is_max ? x->dim[i].max : x->dim[i].opt;
        s.out[axis] = is_max ? y->dim[i].max : y->dim[i].opt;
        s.filter[axis] = p->in[1].dim[i].max;
        s.pad[axis] = a->pad.at[i - 2];
        s.dilation[axis] = a->dilation.at[i - 2];
    }
    s.x_dim[1] = s.c_in;
    s.x_dim[0] = s.x_dim[1] * s.in[1];
    s.x_image = s.x_dim[0] * s.in[0];
    return s;
}

/* With fewer channels the transforms round more than the contract of so few terms allows. */
enum { CHANNELS_LEAST = 4 };

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_conv, "not a convolution");
    REJECT_UNLESS(row_is_f32(p, p->count_anchor), "not in f32");
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    const attrs_conv *a = p->attrs;
    REJECT_UNLESS(x->rank == 3 || x->rank == 4, "not of one or two spatial axes");
    REJECT_UNLESS(w->is_const && !w->is_strided, "the filter is no constant");
    for (uint32_t i = 0; i < w->rank; i++)
        REJECT_UNLESS(problem_dim_is_static(w->dim[i]) && w->dim[i].max > 0, "the filter's size is not fixed");
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]) && x->dim[1].max > 0, "the number of channels is not fixed");
    const char *window = problem_window_reject(&a->stride, &a->dilation, &a->pad, x->rank - 2u);
    if (window) return window;
    REJECT_UNLESS(a->groups == 1 && w->dim[1].max == x->dim[1].max, "has groups");
    for (uint32_t i = 0; i + 2 < x->rank; i++) {
        REJECT_UNLESS(a->stride.at[i] == 1, "a stride is not 1");
        REJECT_UNLESS(a->dilation.at[i] >= 1 && a->dilation.at[i] <= WINOGRAD_STEP_MAX, "a dilation is out of range");
        REJECT_UNLESS(a->pad.at[i] >= 0, "a pad is negative");
    }
    REJECT_UNLESS(row_has_channels_last(y), "the result is not channels-last");
    REJECT_UNLESS(x->dim[1].max >= CHANNELS_LEAST, "has few channels");
    REJECT_UNLESS(x->order[x->rank - 1] == 1 && !x->is_gapped, "the input is not channels-last");
    const char *why = row_pitch_reject(y);
    if (why) return why;
    REJECT_UNLESS(row_count_max(x) < INT64_MAX / 64 && row_count_max(y) < INT64_MAX / 64, "a size has no bound");
    const winograd_shape most = shape_of(p, true);
    why = winograd_shape_check(&most);
    return why ? why : row_epilogue_reject(p);
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    winograd_tactic list[WINOGRAD_TACTICS_MAX];
    const winograd_shape s = shape_of(p, false), most = shape_of(p, true);
    const int count = winograd_tactics((isa_level)t->isa, &s, &most, t->threads, list);
    row_tactics_add(t, list, count, sizeof *list, out);
}

static bool check(const problem *p, const tactic *t)
{
    const winograd_shape s = shape_of(p, false);
    return row_tactic_check(t, sizeof(winograd_tactic)) && !winograd_tactic_check(row_isa(t), &s, tactic_of(t));
}

static void print(const tactic *t, text *out)
{
    char name[64];
    (void)winograd_tactic_print(name, sizeof name, row_isa(t), tactic_of(t));
    row_tactic_print(t, name, out);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const winograd_shape s = shape_of(p, false);
    const double phases = tactic_of(t).phased ? 1000 : 500;
    return winograd_cost(row_isa(t), &s, tactic_of(t), target->threads) +
           row_epilogue_ns(p) / (target->threads ? target->threads : 1) + phases;
}

static winograd_params params_max(const problem *p, const tactic *t)
{
    return (winograd_params){ .isa = row_isa(t), .tactic = tactic_of(t), .shape = shape_of(p, true) };
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    const winograd_params w = params_max(p, t);
    return size_add(winograd_workspace_size(&w), size_mul(winograd_scratch_size(&w), threads));
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    if (input != 1) return 0;
    const winograd_shape s = shape_of(p, false);
    return winograd_pack_size(row_isa(t), &s, tactic_of(t));
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)input;
    const winograd_shape s = shape_of(p, false);
    const uint32_t rank = p->in[1].rank;
    const int64_t stride[4] = { src->stride[0], src->stride[1], rank == 3 ? 0 : src->stride[2], src->stride[rank - 1] };
    winograd_pack(row_isa(t), &s, tactic_of(t), src->data, stride, dst);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    (void)attrs;
    const view *x = &in[0], *y = &out[0];
    if (x->dim[1] > 1 && x->stride[1] != 1)
        return FAIL(e, UNSUPPORTED,
                    "a Winograd convolution reads every %lldth channel of its input; adjacent ones are wanted",
                    (long long)x->stride[1]);
    memset(&r->params, 0, sizeof r->params);
    winograd_params *w = &r->params;
    w->isa = isa;
    w->tactic = tactic_of(t);
    w->shape = shape_of(p, false);
    w->shape.images = x->dim[0];
    w->shape.c_in = x->dim[1];
    w->shape.c_out = y->dim[1];
    w->shape.x_image = x->stride[0];
    for (uint32_t i = 2, axis = 4u - x->rank; i < x->rank; i++, axis++) {
        w->shape.in[axis] = x->dim[i];
        w->shape.out[axis] = y->dim[i];
        w->shape.x_dim[axis] = x->stride[i];
    }
    TRY(row_pitch(e, y, &w->ldy));
    uint8_t order[SINTER_RANK_MAX];
    row_order_channels_last(x->rank, order);
    TRY(row_epilogue_bind(e, p, isa, in, out, order, true, &r->epilogue, r + 1));
    row_gemm_epilogue_bind(&r->epilogue, w->ldy, &w->epilogue);
    const winograd_params max = params_max(p, t);
    r->shared = winograd_workspace_size(&max);
    r->scratch = winograd_scratch_size(&max);
    return SINTER_OK;
}

typedef struct job {
    winograd_params w;
    const record *r;
    vm_io io;
    char *workspace;
    int phase;
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
    char *scratch = j->workspace + j->r->shared + worker * j->r->scratch;
    winograd_run(&j->w, j->phase, begin, end, j->workspace, scratch, j);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { .w = r->params, .r = r, .io = { k->in, k->out }, .workspace = k->workspace };
    j.w.x = k->in[0];
    j.w.w = k->in[1];
    j.w.y = k->out[0];
    row_gemm_epilogue_run(&r->epilogue, k, post, &j.w.epilogue);
    const int phases = winograd_phase_count(&j.w);
    for (j.phase = 0; j.phase < phases; j.phase++) row_parallel(k, winograd_tile_count(&j.w, j.phase), body, &j);
    return SINTER_OK;
}

const kernel cpu_winograd = {
    .name = "cpu_winograd",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .numerics = KERNEL_TRANSFORMED,
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
