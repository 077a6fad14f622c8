/* SPDX-License-Identifier: Apache-2.0 */
/* row_conv_integer.c - conv_integer on the tiles of 8-bit words, and by channels where filters are depthwise.
 *
 * Weights are packed as codes with a sign, with the sums of each filter behind them. Padding is filled with the zero
 * point of the data, so that what zero points add is the same for all pixels. */
#include "cpu/cpu_kernels.h"
#include "cpu/depthwise_byte.h"
#include "cpu/integer.h"
#include "cpu/level.h"
#include "cpu/row_conv_shape.h"

#include "base/env.h"
#include <string.h>

/* pack() turns a bit of all bytes of a filter without a sign, those between its terms too. */
static bool has_zeros(const problem *p)
{
    return p->in[1].dtype == SINTER_DTYPE_I8;
}

static conv_shape shape_of(const problem *p, row_bound b, gemm_unit unit)
{
    conv_shape s = row_conv_shape(p, b);
    s.unit = unit;
    s.is_converted = p->in[0].dtype != gemm_unit_type(unit);
    s.has_zeros = has_zeros(p);
    return s;
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_conv_integer, "not a convolution of integers");
    const char *why = integer_reject(p);
    if (why) return why;
    const attrs_conv_integer *a = p->attrs;
    const problem_operand *x = &p->in[0], *w = &p->in[1], *y = &p->out[0];
    REJECT_UNLESS(x->rank >= 3 && x->rank <= 5, "has no or more than three spatial axes");
    REJECT_UNLESS(w->is_const && !w->is_strided, "the filter is no constant");
    int64_t terms = 1;
    for (uint32_t i = 0; i < w->rank; i++) {
        REJECT_UNLESS(problem_dim_is_static(w->dim[i]) && w->dim[i].max > 0, "the filter's size is not fixed");
        if (i && !i64_mul(terms, w->dim[i].max, &terms)) terms = INT64_MAX;
    }
    REJECT_UNLESS(terms <= INTEGER_TERMS_MAX, "a sum has too many terms");
    REJECT_UNLESS(problem_dim_is_static(x->dim[1]) && x->dim[1].max > 0, "the number of channels is not fixed");
    REJECT_UNLESS(a->groups > 0 && x->dim[1].max % a->groups == 0 && w->dim[0].max % a->groups == 0,
                  "the groups do not divide the channels");
    REJECT_UNLESS(x->dim[1].max / a->groups == w->dim[1].max, "the filter has other channels");
    REJECT_UNLESS(p->count_anchor < 3 || p->in[2].rank == 0 || p->in[2].dtype == SINTER_DTYPE_NONE ||
                      p->in[2].dim[0].max == 1,
                  "the data has several zero points");
    const char *window = problem_window_reject(&a->stride, &a->dilation, &a->pad, x->rank - 2u);
    if (window) return window;
    REJECT_UNLESS(row_has_channels_last(y), "the result is not channels-last");
    REJECT_UNLESS(row_count_max(x) < INT64_MAX / 64 && row_count_max(y) < INT64_MAX / 64, "a size has no bound");
    return NULL;
}

/* The taps of axis k, of a window that begins at `at`, which lie inside: [*from, *to). */
static void taps_inside(const conv_shape *s, int k, int64_t at, int64_t *from, int64_t *to)
{
    const int64_t ahead = s->dilation[k];
    *from = at < 0 ? (ahead - 1 - at) / ahead : 0;
    *to = at < s->in[k] ? (s->in[k] - 1 - at) / ahead + 1 : 0;
    if (*to > s->kernel[k]) *to = s->kernel[k];
    if (*from > *to) *from = *to;
}

/* Sums of the codes that a pixel's filter sees, of the group of a column. */
static void window_sums(const conv_shape *s, const integer_set *set, const uint8_t *x, uint8_t flip, uint8_t pad,
                        int64_t row, int64_t rows, int64_t col, int64_t *sum)
{
    const int64_t channels = s->c_in / s->groups, group = col / (s->c_out / s->groups);
    const bool is_row = s->x_c == 1 && s->x_dim[2] == channels && s->dilation[2] == 1; /* pixels are adjacent */
    for (int64_t i = 0; i < rows; i++) {
        int64_t left = row + i, at[3], from[3], to[3];
        for (int k = 2; k >= 0; k--) {
            at[k] = left % s->out[k] * s->stride[k] - s->pad[k];
            left /= s->out[k];
            taps_inside(s, k, at[k], &from[k], &to[k]);
        }
        const int64_t wide = to[2] - from[2], inside = (to[0] - from[0]) * (to[1] - from[1]) * wide;
        uint32_t all = (uint32_t)(channels * (row_conv_taps(s) - inside)) * (uint8_t)(pad ^ flip);
        for (int64_t d = from[0]; d < to[0]; d++)
            for (int64_t h = from[1]; h < to[1]; h++) {
                const uint8_t *line =
                    x + left * s->x_image + group * channels * s->x_c + (at[0] + d * s->dilation[0]) * s->x_dim[0] +
                    (at[1] + h * s->dilation[1]) * s->x_dim[1] + (at[2] + from[2] * s->dilation[2]) * s->x_dim[2];
                if (is_row) all += set->sum(line, wide * channels, flip);
                for (int64_t w = 0; w < wide && !is_row; w++, line += s->dilation[2] * s->x_dim[2]) {
                    if (s->x_c == 1) all += set->sum(line, channels, flip);
                    for (int64_t c = 0; s->x_c != 1 && c < channels; c++) all += (uint8_t)(line[c * s->x_c] ^ flip);
                }
            }
        sum[i] = all;
    }
}

static size_t sums_size(const problem *p)
{
    return size_align(size_mul((size_t)p->in[1].dim[0].max, sizeof(int32_t)), 64);
}

/* ---- dense and grouped ---- */

typedef struct record {
    conv_params params;
    size_t sums_at; /* behind the packed filter */
    size_t work_at, scratch_at, scratch;
    integer_end end;
} record;

static conv_tactic tactic_of(const tactic *t)
{
    conv_tactic own;
    row_tactic_own(t, &own, sizeof own);
    return own;
}

static gemm_unit unit_of(const tactic *t)
{
    return (gemm_unit)tactic_of(t).gemm.unit;
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    conv_tactic list[CONV_TACTICS_MAX];
    gemm_unit units[2];
    const int count = row_units_of(SINTER_DTYPE_U8, t, units);
    for (int i = 0; i < count; i++) {
        conv_shape s = shape_of(p, AT_OPT, units[i]);
        s.cache = t->cache_l2;
        row_tactics_add(t, list, conv_tactics((isa_level)t->isa, &s, list), sizeof *list, out);
    }
}

static bool check(const problem *p, const tactic *t)
{
    if (!row_tactic_check(t, sizeof(conv_tactic))) return false;
    const conv_shape s = shape_of(p, AT_OPT, unit_of(t));
    return gemm_unit_is_integer(s.unit) && s.unit != GEMM_U8_NARROW && !conv_tactic_check(row_isa(t), &s, tactic_of(t));
}

static void print(const tactic *t, text *out)
{
    char name[64];
    (void)conv_tactic_print(name, sizeof name, row_isa(t), tactic_of(t));
    row_tactic_print(t, name, out);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const conv_shape s = shape_of(p, AT_OPT, unit_of(t));
    return (conv_cost(row_isa(t), &s, tactic_of(t)) + integer_end_ns(p)) / (target->threads ? target->threads : 1) +
           500;
}

static conv_params params_max(const problem *p, const tactic *t)
{
    return (conv_params){ .isa = row_isa(t),
                          .tactic = tactic_of(t),
                          .shape = shape_of(p, AT_MAX, unit_of(t)),
                          .x_type = p->in[0].dtype,
                          .epilogue = { .drain = true } };
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    const conv_params c = params_max(p, t);
    const size_t shared = size_add(size_align(conv_workspace_size(&c), 64), integer_work_size(c.shape.c_out, 1));
    return size_add(shared, size_mul(size_align(conv_scratch_size(&c), 64), threads));
}

static size_t panels_size(const problem *p, const tactic *t)
{
    const conv_shape s = shape_of(p, AT_OPT, unit_of(t));
    return conv_pack_size(row_isa(t), &s, tactic_of(t));
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    return input == 1 ? size_add(panels_size(p, t), integer_sums_size(p->in[1].dim[0].max)) : 0;
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)input;
    const conv_shape s = shape_of(p, AT_OPT, unit_of(t));
    const uint8_t flip = src->dtype == SINTER_DTYPE_U8 ? 128 : 0, *from = src->data;
    const size_t size = panels_size(p, t);
    int64_t stride[5];
    row_filter_strides(src, stride);
    conv_tactic own = tactic_of(t);
    int32_t *sum = (int32_t *)(void *)((char *)dst + size);
    sum[s.c_out] = 0;
    if (own.gemm.unit == GEMM_U8_PAIRS && !flip) {
        own.gemm.unit = GEMM_U8_NARROW;
        memset(dst, 0, size);
        conv_pack(row_isa(t), &s, own, from, stride, dst);
        sum[s.c_out] = integer_is_narrow(dst, size);
        own = tactic_of(t);
    }
    if (!sum[s.c_out]) conv_pack(row_isa(t), &s, own, from, stride, dst);
    if (flip) integer_flip(unit_of(t), dst, size);
    for (int64_t o = 0; o < s.c_out; o++) {
        sum[o] = 0;
        for (int64_t c = 0; c < s.c_in / s.groups; c++)
            for (int64_t k = 0; k < row_conv_taps(&s); k++) {
                const int64_t d = k / s.kernel[2] / s.kernel[1], h = k / s.kernel[2] % s.kernel[1], w = k % s.kernel[2];
                sum[o] += (int8_t)(from[o * stride[0] + c * stride[1] + d * stride[2] + h * stride[3] + w * stride[4]] ^
                                   flip);
            }
    }
}

static size_t record_size(const problem *p, const tactic *t)
{
    (void)t;
    return sizeof(record) + integer_room(p);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_unit_bind(e, p, t, unit_of(t), &isa));
    memset(r, 0, sizeof *r);
    conv_params *c = &r->params;
    *c = params_max(p, t);
    r->work_at = size_align(conv_workspace_size(c), 64);
    r->scratch_at = size_add(r->work_at, integer_work_size(c->shape.c_out, 1));
    r->scratch = size_align(conv_scratch_size(c), 64);
    r->sums_at = panels_size(p, t);
    c->shape = row_conv_bind(p, attrs, &in[0], &out[0]);
    c->shape.has_zeros = has_zeros(p);
    if (c->tactic.path == CONV_TAPS && c->shape.x_c != 1)
        return FAIL(e, UNSUPPORTED, "a convolution reads every %lldth channel of its input; adjacent ones are wanted",
                    (long long)c->shape.x_c);
    c->ldy = c->shape.c_out;
    uint8_t order[SINTER_RANK_MAX];
    row_order_channels_last(out[0].rank, order);
    TRY(integer_end_bind(e, p, t, in, out, order, r + 1, &r->end));
    r->end.n = c->shape.c_out;
    r->end.k = c->shape.c_in / c->shape.groups * row_conv_taps(&c->shape);
    return SINTER_OK;
}

typedef struct job {
    conv_params c;
    const record *r;
    integer_run end;
    char *workspace;
    int phase;
} job;

static void row_sums(const void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t *sum)
{
    (void)batch;
    const job *j = user;
    window_sums(&j->c.shape, j->r->end.set, j->c.x, j->r->end.a_flip, j->c.pad_byte, row, rows, col, sum);
}

static void post(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, void *c, int64_t ldc)
{
    const job *j = user;
    integer_finish(&j->end, 0, batch, row, row, rows, col, cols, c, ldc);
}

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    job *j = arg;
    conv_run(&j->c, j->phase, begin, end, j->workspace, j->workspace + j->r->scratch_at + worker * j->r->scratch, j);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { .c = r->params, .r = r, .workspace = k->workspace };
    const char *packed = k->in[1];
    const int32_t *sums = (const int32_t *)(const void *)(packed + r->sums_at);
    integer_begin(&r->end, k, sums, 1, j.workspace + r->work_at, &j.end);
    j.c.tactic.gemm = integer_tactic(j.c.tactic.gemm, sums, j.c.shape.c_out, j.c.x_type, true);
    j.end.rows = row_sums;
    j.end.user = &j;
    j.c.x = k->in[0];
    j.c.w = packed;
    j.c.pad_byte = integer_pad(&j.end);
    j.c.epilogue.post = post;
    const int phases = conv_phase_count(&j.c);
    for (j.phase = 0; j.phase < phases; j.phase++) row_parallel(k, conv_tile_count(&j.c, j.phase), body, &j);
    return SINTER_OK;
}

const kernel cpu_conv_integer = {
    .name = "cpu_conv_integer",
    .abi = 3,
    .out_strides = STRIDES_ROWS,
    .reject = reject,
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

/* ---- depthwise ---- */

typedef struct depthwise_tactic {
    uint8_t form; /* depthwise_form */
} depthwise_tactic;

typedef struct depthwise_record {
    depthwise_byte_params params;
    size_t ones_at; /* behind the packed filter and its sums; 0: none */
    size_t work_at, pad_at, scratch_at, scratch;
    integer_end end;
} depthwise_record;

static depthwise_form form_of(const tactic *t)
{
    depthwise_tactic own;
    row_tactic_own(t, &own, sizeof own);
    return (depthwise_form)own.form;
}

static const char *depthwise_reject(const problem *p, const kernel_target *t)
{
    const char *why = reject(p, t);
    if (why) return why;
    const attrs_conv_integer *a = p->attrs;
    REJECT_UNLESS(a->groups == p->in[0].dim[1].max && p->in[1].dim[0].max == a->groups && a->groups > 1,
                  "not depthwise");
    REJECT_UNLESS(p->in[0].rank <= 4, "has more than two spatial axes");
    REJECT_UNLESS(row_is_channel_inner(&p->in[0]), "the input is not channels-last");
    return NULL;
}

static bool has_quads(isa_choice isa)
{
    return CPU_HAS_X86 && isa.level == ISA_AVX512 && isa.features & ISA_VNNI;
}

static void depthwise_tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    (void)p;
    const bool quads = has_quads((isa_choice){ (isa_level)t->isa, t->features });
    const depthwise_tactic own = { quads ? DEPTHWISE_QUADS : DEPTHWISE_PAIRS };
    row_tactics_add(t, &own, 1, sizeof own, out);
}

static bool depthwise_check(const problem *p, const tactic *t)
{
    (void)p;
    return row_tactic_check(t, sizeof(depthwise_tactic)) &&
           (form_of(t) == DEPTHWISE_PAIRS || (form_of(t) == DEPTHWISE_QUADS && row_isa(t) == ISA_AVX512));
}

static void depthwise_print(const tactic *t, text *out)
{
    row_tactic_print(t, form_of(t) == DEPTHWISE_QUADS ? "quads" : "pairs", out);
}

static double depthwise_cost(const problem *p, const tactic *t, const kernel_target *target)
{
    const conv_shape s = shape_of(p, AT_OPT, GEMM_U8);
    const double results = (double)s.images * (double)s.out[1] * (double)s.out[2] * (double)s.c_in;
    const double tap_ns = form_of(t) == DEPTHWISE_QUADS ? 0.025 : 0.06;
    return (results * tap_ns * (double)row_conv_taps(&s) + integer_end_ns(p)) /
               (target->threads ? target->threads : 1) +
           500;
}

/* A filter of ones lies behind the sums of the filter where its zero point may be another number than 0. */
static bool has_ones(const problem *p)
{
    return p->in[1].dtype == SINTER_DTYPE_U8 || (p->count_anchor > 3 && p->in[3].dtype != SINTER_DTYPE_NONE);
}

static size_t depthwise_panels(const problem *p, const tactic *t)
{
    const conv_shape s = shape_of(p, AT_OPT, GEMM_U8);
    return depthwise_byte_pack_size(form_of(t), &s);
}

static size_t depthwise_pack_size(const problem *p, const tactic *t, uint32_t input)
{
    if (input != 1) return 0;
    return size_add(size_mul(depthwise_panels(p, t), has_ones(p) ? 2 : 1), sums_size(p));
}

static void depthwise_pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    (void)input;
    const conv_shape s = shape_of(p, AT_OPT, GEMM_U8);
    int64_t stride[5];
    row_filter_strides(src, stride);
    const size_t panels = depthwise_panels(p, t);
    int32_t *sum = (int32_t *)(void *)((char *)dst + panels);
    if (has_ones(p)) { /* first: the sums are of the filter */
        const uint8_t one = 1;
        depthwise_byte_pack(form_of(t), &s, &one, (const int64_t[3]){ 0 }, 0, (char *)sum + sums_size(p), sum);
    }
    depthwise_byte_pack(form_of(t), &s, src->data, (const int64_t[]){ stride[0], stride[3], stride[4] },
                        src->dtype == SINTER_DTYPE_U8 ? 128 : 0, dst, sum);
}

static size_t depthwise_workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t;
    const conv_shape s = shape_of(p, AT_MAX, GEMM_U8);
    const size_t shared = size_add(integer_work_size(s.c_out, 1), size_align((size_t)s.c_in, 64));
    return size_add(shared, size_mul(depthwise_byte_scratch_size(&s), threads));
}

static size_t depthwise_record_size(const problem *p, const tactic *t)
{
    (void)t;
    return sizeof(depthwise_record) + integer_room(p);
}

static void depthwise_post(void *user, int64_t row, int64_t rows, int32_t *sum, const int32_t *seen, int64_t ld);

static sinter_status depthwise_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                    const view *out, void *to)
{
    depthwise_record *r = to;
    isa_level isa;
    TRY(row_unit_bind(e, p, t, form_of(t) == DEPTHWISE_QUADS ? GEMM_U8_DOT : GEMM_U8, &isa));
    memset(r, 0, sizeof *r);
    const conv_shape max = shape_of(p, AT_MAX, GEMM_U8);
    r->pad_at = integer_work_size(max.c_out, 1);
    r->scratch_at = size_add(r->pad_at, size_align((size_t)max.c_in, 64));
    r->scratch = depthwise_byte_scratch_size(&max);
    r->ones_at = has_ones(p) ? size_add(depthwise_panels(p, t), sums_size(p)) : 0;
    r->params.form = form_of(t);
    r->params.fn = level_of(isa)->depthwise_byte;
#if CPU_HAS_X86
    if (form_of(t) == DEPTHWISE_QUADS)
        r->params.fn = level_depthwise_quads, r->params.columns = level_depthwise_columns;
#endif
    r->params.post = depthwise_post;
    r->params.shape = row_conv_bind(p, attrs, &in[0], &out[0]);
    if (r->params.shape.x_c != 1)
        return FAIL(e, UNSUPPORTED,
                    "a depthwise convolution reads every %lldth channel of its input; adjacent ones are wanted",
                    (long long)r->params.shape.x_c);
    uint8_t order[SINTER_RANK_MAX];
    row_order_channels_last(out[0].rank, order);
    TRY(integer_end_bind(e, p, t, in, out, order, r + 1, &r->end));
    r->params.flip = r->end.a_flip;
    r->end.n = r->params.shape.c_out;
    r->end.k = row_conv_taps(&r->params.shape);
    return SINTER_OK;
}

typedef struct depthwise_job {
    depthwise_byte_params p;
    const depthwise_record *r;
    integer_run end;
    char *scratch;
} depthwise_job;

/* Every channel is a group of its own: zero points of weights are taken off a channel at a time. */
static void depthwise_post(void *user, int64_t row, int64_t rows, int32_t *sum, const int32_t *seen, int64_t ld)
{
    const depthwise_job *j = user;
    const int64_t channels = j->p.shape.c_in;
    if (!seen) {
        integer_finish(&j->end, 0, 0, row, row, rows, 0, channels, sum, ld);
        return;
    }
    const uint32_t all = (uint32_t)j->r->end.k * (uint8_t)(j->p.pad[0] ^ j->p.flip);
    for (int64_t i = 0; i < rows; i++)
        j->r->end.set->take_off_each(sum + i * ld, j->end.less, j->end.zb, seen + i * ld, all, channels);
    integer_ended(&j->end, row, rows, 0, channels, sum, ld);
}

static void depthwise_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    depthwise_job *j = arg;
    depthwise_byte_run(&j->p, begin, end, j->scratch + worker * j->r->scratch, j);
}

static sinter_status depthwise_run(const kernel_run *k)
{
    const depthwise_record *r = k->record;
    char *work = k->workspace;
    depthwise_job j = { .p = r->params, .r = r, .scratch = work + r->scratch_at };
    const char *packed = k->in[1];
    const size_t panels = depthwise_byte_pack_size(r->params.form, &r->params.shape);
    integer_begin(&r->end, k, (const int32_t *)(const void *)(packed + panels), 1, work, &j.end);
    memset(work + r->pad_at, integer_pad(&j.end), size_align((size_t)j.p.shape.c_in, 64));
    j.p.pad = (const uint8_t *)work + r->pad_at;
    j.p.x = k->in[0];
    j.p.w = packed;
    j.p.ones = j.end.zb ? packed + r->ones_at : NULL;
    row_parallel(k, depthwise_byte_tile_count(&j.p), depthwise_body, &j);
    return SINTER_OK;
}

const kernel cpu_depthwise_integer = {
    .name = "cpu_depthwise_integer",
    .abi = 4,
    .out_strides = STRIDES_ROWS,
    .reject = depthwise_reject,
    .tactics = depthwise_tactics,
    .check = depthwise_check,
    .print = depthwise_print,
    .cost_ns = depthwise_cost,
    .workspace = depthwise_workspace,
    .pack_size = depthwise_pack_size,
    .pack = depthwise_pack,
    .record_size = depthwise_record_size,
    .bind = depthwise_bind,
    .run = depthwise_run,
};
