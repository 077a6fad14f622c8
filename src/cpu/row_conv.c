/* SPDX-License-Identifier: Apache-2.0 */
/* row_conv.c - convolution in f32 and bf16: channels-last results, weights packed; one row for dense and grouped
 * filters, one for depthwise ones. The input may lie in any order where the kernel copies it into padded rows anyway.
 * Dense and grouped filters may be computed by the model: each run packs them. */
#include "cpu/depthwise.h"
#include "cpu/cpu_kernels.h"
#include "cpu/row_conv_shape.h"

static conv_tactic tactic_of(const tactic *t)
{
    conv_tactic own;
    row_tactic_own(t, &own, sizeof own);
    return own;
}

const char *row_conv_reject(const problem *p)
{
    REJECT_UNLESS(p->op == OP_conv, "not a convolution");
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    REJECT_UNLESS(x->rank >= 3 && x->rank <= 5, "has no or more than three spatial axes");
    REJECT_UNLESS(!w->is_const || !w->is_strided, "the filter is a part of a constant");
    for (uint32_t i = 0; i < w->rank; i++)
        REJECT_UNLESS(problem_dim_is_static(w->dim[i]) && w->dim[i].max > 0, "the filter's size is not fixed");
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]) && x->dim[1].max > 0, "the number of channels is not fixed");
    REJECT_UNLESS(row_has_channels_last(y), "the result is not channels-last");
    const char *why = row_pitch_reject(y);
    if (why) return why;
    REJECT_UNLESS(row_count_max(x) < INT64_MAX / 64 && row_count_max(y) < INT64_MAX / 64, "a size has no bound");
    return row_epilogue_reject(p);
}

const char *row_filter_reject(const problem *p)
{
    REJECT_UNLESS(p->in[1].is_const, "the filter is no constant");
    return NULL;
}

static bool is_depthwise(const problem *p)
{
    const attrs_conv *a = p->attrs;
    return a->groups > 1 && a->groups == p->in[0].dim[1].max && p->in[1].dim[1].max == 1;
}

/* ---- dense and grouped ---- */

typedef struct record {
    conv_params params;
    size_t shared, scratch;
    size_t packed; /* bytes in front of the workspace for a filter that is no constant, or 0 */
    int64_t filter[5];
    row_epilogue epilogue;
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    const char *why = row_conv_reject(p);
    if (why) return why;
    const attrs_conv *a = p->attrs;
    REJECT_UNLESS(a->groups > 0 && p->in[0].dim[1].max % a->groups == 0, "the groups do not divide the channels");
    return problem_window_reject(&a->stride, &a->dilation, &a->pad, p->in[0].rank - 2u);
}

/* Groups of fewer channels waste most of a product in bf16. */
enum { NARROW_GROUP_MIN = 8, NARROW_LANES = 8 };

static const char *dense_reject(const problem *p, const kernel_target *t)
{
    const char *why = reject(p, t);
    if (!why) why = row_unit_reject(p);
    if (why) return why;
    const attrs_conv *a = p->attrs;
    REJECT_UNLESS(p->in[0].dtype == SINTER_DTYPE_F32 || a->groups == 1 ||
                      p->in[0].dim[1].max / a->groups >= NARROW_GROUP_MIN,
                  "groups of a few channels in bf16");
    return NULL;
}

static conv_shape shape_in(const problem *p, row_bound b, uint32_t unit)
{
    conv_shape s = row_conv_shape(p, b);
    s.unit = (gemm_unit)unit;
    s.is_converted = gemm_unit_splits(s.unit);
    return s;
}

static void unit_tactics(const problem *p, const kernel_target *t, gemm_unit unit, tactic_sink *out)
{
    conv_tactic list[CONV_TACTICS_MAX];
    conv_shape s = shape_in(p, AT_OPT, unit);
    s.cache = t->cache_l2;
    row_tactics_add(t, list, conv_tactics((isa_level)t->isa, &s, list), sizeof *list, out);
}

static bool unit_check(const problem *p, const tactic *t, gemm_unit unit)
{
    const conv_shape s = shape_in(p, AT_OPT, unit);
    return row_tactic_check(t, sizeof(conv_tactic)) && !conv_tactic_check(row_isa(t), &s, tactic_of(t));
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    gemm_unit units[2];
    const int count = row_units_of(p->in[0].dtype, t, units);
    for (int i = 0; i < count; i++) unit_tactics(p, t, units[i], out);
    /* Groups that fill half a vector or less do as well with vectors of half the size. */
    const conv_shape s = shape_in(p, AT_OPT, units[0]);
    if (t->isa != ISA_AVX512 || s.unit != GEMM_F32 || s.c_out / s.groups > NARROW_LANES) return;
    kernel_target narrow = *t;
    narrow.isa = ISA_AVX2;
    unit_tactics(p, &narrow, units[0], out);
}

static bool check(const problem *p, const tactic *t)
{
    const gemm_unit unit = (gemm_unit)tactic_of(t).gemm.unit;
    return row_unit_fits(p->in[0].dtype, unit) && unit_check(p, t, unit);
}

static void print(const tactic *t, text *out)
{
    char name[64];
    (void)conv_tactic_print(name, sizeof name, row_isa(t), tactic_of(t));
    row_tactic_print(t, name, out);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const conv_shape s = shape_in(p, AT_OPT, tactic_of(t).gemm.unit);
    /* Costs count vectors, whatever their size: shorter ones take less time each. */
    const double share = row_isa(t) == ISA_AVX2 && target->isa == ISA_AVX512 ? 0.7 : 1;
    const double threads = target->threads ? target->threads : 1;
    /* Each group has its own pointers and short sums. */
    const double narrow = s.groups > 1 && s.c_out / s.groups <= 2 * NARROW_LANES ? 1.8 : 1;
    return (share * narrow * conv_cost(row_isa(t), &s, tactic_of(t)) + row_epilogue_ns(p)) / threads + 500;
}

static conv_params params_max(const problem *p, const tactic *t)
{
    return (conv_params){ .isa = row_isa(t),
                          .tactic = tactic_of(t),
                          .shape = shape_in(p, AT_MAX, tactic_of(t).gemm.unit),
                          .epilogue.drain = row_may_drain(p) };
}

static size_t filter_size(const problem *p, const tactic *t)
{
    const conv_shape s = row_conv_shape(p, AT_OPT);
    return conv_pack_size(row_isa(t), &s, tactic_of(t));
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    const conv_params c = params_max(p, t);
    const size_t packed = p->in[1].is_const ? 0 : size_align(filter_size(p, t), 64);
    return size_add(size_add(packed, size_align(conv_workspace_size(&c), 64)),
                    size_mul(size_align(conv_scratch_size(&c), 64), threads));
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    return input == 1 && p->in[1].is_const ? filter_size(p, t) : 0;
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)input;
    const conv_shape s = row_conv_shape(p, AT_OPT);
    int64_t stride[5];
    row_filter_strides(src, stride);
    conv_pack(row_isa(t), &s, tactic_of(t), src->data, stride, dst);
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
    TRY(row_unit_bind(e, p, t, (gemm_unit)tactic_of(t).gemm.unit, &isa));
    memset(&r->params, 0, sizeof r->params);
    conv_params *c = &r->params;
    c->isa = isa;
    c->tactic = tactic_of(t);
    c->shape = row_conv_bind(p, attrs, &in[0], &out[0]);
    if (in[1].dim[1] * c->shape.groups != c->shape.c_in || out[0].dim[1] != c->shape.c_out)
        return FAIL(e, INVALID_ARG, "conv: the shapes of the operands do not go together");
    if (c->tactic.path == CONV_TAPS && c->shape.x_c != 1)
        return FAIL(e, UNSUPPORTED, "a convolution reads every %lldth channel of its input; adjacent ones are wanted",
                    (long long)c->shape.x_c);
    TRY(row_pitch(e, &out[0], &c->ldy));
    uint8_t order[SINTER_RANK_MAX];
    row_order_channels_last(out[0].rank, order);
    TRY(row_epilogue_bind(e, p, isa, in, out, order, true, &r->epilogue, r + 1));
    row_gemm_epilogue_bind(&r->epilogue, c->ldy, &c->epilogue);
    c->narrow_y = out[0].dtype == SINTER_DTYPE_BF16 && !r->epilogue.drain;
    const conv_params max = params_max(p, t);
    r->shared = size_align(conv_workspace_size(&max), 64);
    r->scratch = size_align(conv_scratch_size(&max), 64);
    r->packed = p->in[1].is_const ? 0 : size_align(filter_size(p, t), 64);
    row_filter_strides(&in[1], r->filter);
    return SINTER_OK;
}

typedef struct job {
    conv_params c;
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
    conv_run(&j->c, j->phase, begin, end, j->workspace, j->workspace + j->r->shared + worker * j->r->scratch, j);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { .c = r->params, .r = r, .io = { k->in, k->out }, .workspace = (char *)k->workspace + r->packed };
    j.c.x = k->in[0];
    j.c.w = r->packed ? k->workspace : k->in[1];
    j.c.y = k->out[0];
    if (r->packed) conv_pack(j.c.isa, &j.c.shape, j.c.tactic, k->in[1], r->filter, k->workspace);
    row_gemm_epilogue_run(&r->epilogue, k, post, &j.c.epilogue);
    const int phases = conv_phase_count(&j.c);
    for (j.phase = 0; j.phase < phases; j.phase++) row_parallel(k, conv_tile_count(&j.c, j.phase), body, &j);
    return SINTER_OK;
}

const kernel cpu_conv = {
    .name = "cpu_conv",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = dense_reject,
    .tactics = tactics,
    .check = check,
    .print = print,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .pack_size = pack_size,
    .pack = pack,
    .record_size = record_size,
    .bind = bind,
    .run = run,
};

/* ---- in numbers that are split ---- */

/* With fewer terms or columns most of what the registers hold is empty. */
enum { SPLIT_LEAST = 16 };

static const char *split_reject(const problem *p, const kernel_target *t)
{
    const char *why = reject(p, t);
    if (!why) why = row_filter_reject(p);
    if (!why) why = row_split_reject(p, t);
    if (why) return why;
    const conv_shape s = row_conv_shape(p, AT_OPT);
    REJECT_UNLESS(s.c_in / s.groups >= SPLIT_LEAST && s.c_out / s.groups >= SPLIT_LEAST, "has few channels");
    return NULL;
}

static void split_long_tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    unit_tactics(p, t, GEMM_F32_AMX, out);
}

static void split_short_tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    unit_tactics(p, t, GEMM_F32_AMX_SHORT, out);
}

static bool split_long_check(const problem *p, const tactic *t)
{
    return unit_check(p, t, GEMM_F32_AMX);
}

static bool split_short_check(const problem *p, const tactic *t)
{
    return unit_check(p, t, GEMM_F32_AMX_SHORT);
}

const kernel cpu_conv_split = {
    .name = "cpu_conv_split",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .numerics = KERNEL_TRANSFORMED,
    .reject = split_reject,
    .tactics = split_long_tactics,
    .check = split_long_check,
    .print = print,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .pack_size = pack_size,
    .pack = pack,
    .record_size = record_size,
    .bind = bind,
    .run = run,
};

const kernel cpu_conv_split_short = {
    .name = "cpu_conv_split_short",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .numerics = KERNEL_RELAXED,
    .reject = split_reject,
    .tactics = split_short_tactics,
    .check = split_short_check,
    .print = print,
    .cost_ns = cost_ns,
    .workspace = workspace,
    .pack_size = pack_size,
    .pack = pack,
    .record_size = record_size,
    .bind = bind,
    .run = run,
};

/* ---- depthwise ---- */

typedef struct depthwise_record {
    depthwise_params params;
    size_t scratch;
    row_epilogue epilogue;
} depthwise_record;

static depthwise_shape depthwise_of(const conv_shape *s)
{
    return (depthwise_shape){
        .images = s->images,
        .channels = s->c_in,
        .multiplier = s->c_out / s->c_in,
        .in = { s->in[1], s->in[2] },
        .out = { s->out[1], s->out[2] },
        .kernel = { s->kernel[1], s->kernel[2] },
        .stride = { s->stride[1], s->stride[2] },
        .dilation = { s->dilation[1], s->dilation[2] },
        .pad = { s->pad[1], s->pad[2] },
        .x_image = s->x_image,
        .x_dim = { s->x_dim[1], s->x_dim[2] },
    };
}

static depthwise_shape depthwise_shape_of(const problem *p)
{
    const conv_shape s = row_conv_shape(p, AT_OPT);
    return depthwise_of(&s);
}

static const char *depthwise_reject(const problem *p, const kernel_target *t)
{
    const char *why = reject(p, t);
    if (!why) why = row_filter_reject(p);
    if (!why) why = row_unit_reject(p);
    if (why) return why;
    REJECT_UNLESS(is_depthwise(p), "not depthwise");
    REJECT_UNLESS(p->in[0].rank <= 4, "has more than two spatial axes");
    REJECT_UNLESS(row_is_channel_inner(&p->in[0]), "the input is not channels-last");
    const depthwise_shape s = depthwise_shape_of(p);
    REJECT_UNLESS(p->in[0].dtype == SINTER_DTYPE_F32 || (depthwise_has_blocks(&s) && s.multiplier == 1),
                  "an unusual filter in bf16, or several results a channel");
    return NULL;
}

static depthwise_tactic depthwise_tactic_of(const tactic *t)
{
    depthwise_tactic own;
    row_tactic_own(t, &own, sizeof own);
    return own;
}

static void depthwise_tactics_add(const problem *p, const kernel_target *t, tactic_sink *out)
{
    depthwise_tactic list[DEPTHWISE_TACTICS_MAX];
    const depthwise_shape s = depthwise_shape_of(p);
    const int count = depthwise_tactics(&s, t->cache_l2, list);
    row_tactics_add(t, list, count, sizeof *list, out);
}

static bool depthwise_check(const problem *p, const tactic *t)
{
    const depthwise_shape s = depthwise_shape_of(p);
    return row_tactic_check(t, sizeof(depthwise_tactic)) && !depthwise_tactic_check(&s, depthwise_tactic_of(t));
}

static void depthwise_print(const tactic *t, text *out)
{
    char name[24];
    (void)depthwise_tactic_print(name, sizeof name, depthwise_tactic_of(t));
    row_tactic_print(t, name, out);
}

static double depthwise_cost(const problem *p, const tactic *t, const kernel_target *target)
{
    const depthwise_tactic own = depthwise_tactic_of(t);
    const conv_shape s = row_conv_shape(p, AT_OPT);
    const double threads = target->threads ? target->threads : 1, flops = target->flops > 0 ? target->flops : 1e10;
    const double work = row_operand_bytes(&p->out[0]) / 4 * 2 * (double)(s.kernel[1] * s.kernel[2]);
    /* The multiply-adds, and the inputs that a block loads for them. */
    const double reuse = 2.0 + 4.0 / own.rows + 4.0 / own.cols;
    return row_memory_ns(p, target, 0.5) + work / flops * reuse / 2 * 1e9 / threads;
}

static size_t depthwise_scratch(const problem *p, const tactic *t)
{
    const depthwise_params most = { .tactic = depthwise_tactic_of(t),
                                    .shape = depthwise_shape_of(p),
                                    .is_narrow = p->in[0].dtype == SINTER_DTYPE_BF16 };
    return size_align(depthwise_scratch_size(&most), 64);
}

static size_t depthwise_workspace(const problem *p, const tactic *t, uint32_t threads)
{
    return size_mul(depthwise_scratch(p, t), threads);
}

static size_t depthwise_packed(const problem *p, const tactic *t, uint32_t input)
{
    if (input != 1) return 0;
    const depthwise_shape s = depthwise_shape_of(p);
    return depthwise_pack_size(row_isa(t), &s);
}

static void depthwise_pack_to(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)input;
    const depthwise_shape s = depthwise_shape_of(p);
    int64_t stride[5];
    row_filter_strides(src, stride);
    const int64_t of[3] = { stride[0], stride[3], stride[4] };
    depthwise_pack(row_isa(t), &s, src->data, src->dtype == SINTER_DTYPE_BF16, of, dst);
}

static size_t depthwise_record_size(const problem *p, const tactic *t)
{
    (void)t;
    return sizeof(depthwise_record) + row_room(p);
}

static sinter_status depthwise_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                    const view *out, void *to)
{
    depthwise_record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const conv_shape s = row_conv_bind(p, attrs, &in[0], &out[0]);
    if (s.x_c != 1)
        return FAIL(e, UNSUPPORTED,
                    "a depthwise convolution reads every %lldth channel of its input; adjacent ones are wanted",
                    (long long)s.x_c);
    memset(&r->params, 0, sizeof r->params);
    r->params.isa = isa;
    r->params.tactic = depthwise_tactic_of(t);
    r->params.shape = depthwise_of(&s);
    TRY(row_pitch(e, &out[0], &r->params.ldy));
    uint8_t order[SINTER_RANK_MAX];
    row_order_channels_last(out[0].rank, order);
    TRY(row_epilogue_bind(e, p, isa, in, out, order, true, &r->epilogue, r + 1));
    r->params.is_narrow = in[0].dtype == SINTER_DTYPE_BF16;
    /* A residual, or a result that is not bf16: by the program. */
    if (r->params.is_narrow && !r->epilogue.drain && (r->epilogue.residual || out[0].dtype != SINTER_DTYPE_BF16))
        TRY(row_epilogue_bind(e, p, isa, in, out, order, false, &r->epilogue, r + 1));
    row_gemm_epilogue_bind(&r->epilogue, r->params.ldy, &r->params.epilogue);
    r->scratch = depthwise_scratch(p, t);
    return SINTER_OK;
}

typedef struct depthwise_job {
    depthwise_params d;
    const depthwise_record *r;
    vm_io io;
    char *workspace;
} depthwise_job;

static void depthwise_post(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, void *y,
                           int64_t ldy)
{
    (void)batch;
    const depthwise_job *j = user;
    row_epilogue_block(&j->r->epilogue, &j->io, row, rows, col, cols, y, ldy);
}

static void depthwise_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    depthwise_job *j = arg;
    depthwise_run(&j->d, begin, end, j->workspace + worker * j->r->scratch, j);
}

static sinter_status depthwise_run_step(const kernel_run *k)
{
    const depthwise_record *r = k->record;
    depthwise_job j = { .d = r->params, .r = r, .io = { k->in, k->out }, .workspace = k->workspace };
    j.d.x = k->in[0];
    j.d.w = k->in[1];
    j.d.y = k->out[0];
    row_gemm_epilogue_run(&r->epilogue, k, depthwise_post, &j.d.epilogue);
    row_parallel(k, depthwise_tile_count(&j.d), depthwise_body, &j);
    return SINTER_OK;
}

const kernel cpu_depthwise = {
    .name = "cpu_depthwise",
    .abi = 2,
    .out_strides = STRIDES_ROWS,
    .reject = depthwise_reject,
    .tactics = depthwise_tactics_add,
    .check = depthwise_check,
    .print = depthwise_print,
    .cost_ns = depthwise_cost,
    .workspace = depthwise_workspace,
    .pack_size = depthwise_packed,
    .pack = depthwise_pack_to,
    .record_size = depthwise_record_size,
    .bind = depthwise_bind,
    .run = depthwise_run_step,
};
