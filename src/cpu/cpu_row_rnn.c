/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_row_rnn.c - lstm, gru and rnn in f32: the kernel row of cpu_rnn.h.
 *
 * Weights are constants and packed. Peepholes are taken; clips, lengths of single sequences, coupled gates and other
 * activations are the reference's. */
#include "cpu/cpu_kernels.h"
#include "cpu/cpu_rnn.h"
#include "cpu/row.h"
#include "ops/rnn.h"

#include <strings.h>

typedef struct rnn_tactic {
    gemm_tactic x, h, reset;
} rnn_tactic;

typedef struct record {
    rnn_params params, bound;
    bool has_in[8], has_out[3];
} record;

static rnn_tactic tactic_of(const tactic *t)
{
    rnn_tactic own;
    row_tactic_own(t, &own, sizeof own);
    return own;
}

static bool has_in(const problem *p, uint32_t i)
{
    return i < p->count_in && p->in[i].dtype != SINTER_DTYPE_NONE;
}
static bool has_out(const problem *p, uint32_t i)
{
    return i < p->count_out && p->out[i].dtype != SINTER_DTYPE_NONE;
}

/* Whether the list is `count` times these names. */
static bool is_named(const char *list, uint32_t count, const char *const *names, uint32_t each)
{
    for (uint32_t i = 0; i < count * each; i++) {
        const char *name = names[i % each];
        const size_t n = strlen(name);
        if (strncasecmp(list, name, n) != 0) return false;
        list += n;
        if (*list == ',' && i + 1 < count * each) list++;
        else if (i + 1 < count * each) return false;
    }
    return !*list;
}

/* NULL and the kind, or why there is none. */
static const char *kind_of(const problem *p, rnn_kind *out)
{
    static const char *const names[] = { "sigmoid", "tanh", "tanh" }, *const relu[] = { "relu" };
    uint32_t gates, each;
    const rnn_common common = rnn_common_of(p->op, p->attrs, &gates, &each);
    REJECT_UNLESS(common.direction >= 0 && common.direction < rnn_direction_count, "the direction is none");
    const uint32_t count = rnn_directions(common.direction);
    REJECT_UNLESS(!(common.clip > 0), "sums are clipped");
    const char *const *usual = p->op == OP_rnn ? names + 1 : names;
    const bool is_relu = p->op == OP_rnn && is_named(common.activations, count, relu, each);
    REJECT_UNLESS(!*common.activations || is_relu || is_named(common.activations, count, usual, each),
                  "activations are not the usual ones");
    if (p->op == OP_rnn) {
        *out = is_relu ? RNN_RELU : RNN_TANH;
    } else if (p->op == OP_gru) {
        *out = ((const attrs_gru *)p->attrs)->linear_before_reset ? RNN_GRU_LINEAR : RNN_GRU;
    } else {
        REJECT_UNLESS(!((const attrs_lstm *)p->attrs)->input_forget, "gates are coupled");
        *out = RNN_LSTM;
    }
    return NULL;
}

/* The sizes at their upper bounds (or at opt), the tactics left out. */
static rnn_params params_of(const problem *p, bool is_max)
{
    uint32_t gates, each;
    const rnn_common common = rnn_common_of(p->op, p->attrs, &gates, &each);
    const problem_operand *x = &p->in[0], *w = &p->in[1], *r = &p->in[2];
    /* The weights are constants, so they say the input's width, which data may decide. */
    rnn_params out = { .directions = rnn_directions(common.direction),
                       .steps = is_max ? x->dim[0].max : x->dim[0].opt,
                       .batch = is_max ? x->dim[1].max : x->dim[1].opt,
                       .depth = w->dim[2].max,
                       .hidden = r->dim[2].max,
                       .is_reverse = common.direction == rnn_direction_reverse };
    (void)kind_of(p, &out.kind);
    return out;
}

static rnn_params packed_of(const problem *p, const tactic *t)
{
    const rnn_tactic r = tactic_of(t);
    rnn_params out = params_of(p, true);
    out.isa = row_isa(t);
    out.x_tactic = r.x;
    out.h_tactic = r.h;
    out.reset_tactic = r.reset;
    return out;
}

static bool is_dense(const problem_operand *o)
{
    return !o->is_strided && (o->order[o->rank - 1] == o->rank - 1 || o->dim[o->rank - 1].max <= 1);
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_lstm || p->op == OP_gru || p->op == OP_rnn, "not a recurrent layer");
    for (uint32_t i = 0; i < p->count_in; i++)
        REJECT_UNLESS(i == 4 || !has_in(p, i) || p->in[i].dtype == SINTER_DTYPE_F32, "not in f32");
    for (uint32_t i = 0; i < p->count_out; i++)
        REJECT_UNLESS(!has_out(p, i) || p->out[i].dtype == SINTER_DTYPE_F32, "not in f32");
    REJECT_UNLESS(!has_in(p, 4), "sequences have lengths of their own");
    REJECT_UNLESS(p->in[0].rank == 3 && p->in[1].rank == 3 && p->in[2].rank == 3, "an operand has not three axes");
    REJECT_UNLESS(!has_out(p, 0) || p->out[0].rank == 4, "the result has not four axes");
    for (uint32_t i = 5; i < 7; i++) REJECT_UNLESS(!has_in(p, i) || p->in[i].rank == 3, "a state has not three axes");
    for (uint32_t i = 1; i < 3; i++) REJECT_UNLESS(!has_out(p, i) || p->out[i].rank == 3, "a state has not three axes");
    REJECT_UNLESS(p->in[1].is_const && p->in[2].is_const, "weights are no constants");
    REJECT_UNLESS(!has_in(p, 3) || (p->in[3].rank == 2 && is_dense(&p->in[3])), "the bias is not dense");
    REJECT_UNLESS(!has_in(p, 7) || (p->in[7].rank == 2 && is_dense(&p->in[7])), "peepholes are not dense");
    rnn_kind kind;
    const char *why = kind_of(p, &kind);
    if (why) return why;
    const rnn_params b = params_of(p, true);
    REJECT_UNLESS(b.batch < INT32_MAX / 4 && b.depth < INT32_MAX / 4 && b.hidden < INT32_MAX / 16,
                  "a size has no bound, or too large a one");
    const int64_t sums = rnn_gates(kind) * b.hidden, rows = b.batch + RNN_CHUNK;
    const gemm_shape sx = { .m = rows, .n = sums, .k = b.depth, .taps = 1 },
                     sh = { .m = rows, .n = sums, .k = b.hidden, .taps = 1 };
    if ((why = gemm_shape_check(&sx)) != NULL || (why = gemm_shape_check(&sh)) != NULL) return why;
    REJECT_UNLESS(b.hidden > 0 && b.depth > 0, "a size is zero");
    return p->prologue || p->epilogue ? "has a program" : NULL;
}

static bool is_inner_x(const problem *p)
{
    return !p->in[0].is_gapped && p->in[0].order[2] == 2;
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The product with the input at opt. */
static gemm_shape x_shape(const problem *p)
{
    const rnn_params b = params_of(p, false);
    const int64_t rows = b.steps < RNN_CHUNK && b.batch < RNN_CHUNK ? min_of(b.steps * b.batch, RNN_CHUNK) : RNN_CHUNK;
    return (gemm_shape){ .m = rows,
                         .n = rnn_gates(b.kind) * b.hidden,
                         .k = b.depth,
                         .taps = 1,
                         .a_row = b.depth,
                         .a_col = is_inner_x(p) || b.depth == 1 ? 1 : 2 };
}

static gemm_shape h_shape(const problem *p, bool is_reset)
{
    const rnn_params b = params_of(p, false);
    return (gemm_shape){ .m = min_of(b.batch, RNN_ROWS),
                         .n = is_reset ? b.hidden : rnn_columns(b.kind, b.hidden),
                         .k = b.hidden,
                         .taps = 1,
                         .a_row = b.hidden,
                         .a_col = 1 };
}

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    const isa_level isa = (isa_level)t->isa;
    gemm_tactic x[GEMM_TACTICS_MAX], h[GEMM_TACTICS_MAX], reset[GEMM_TACTICS_MAX];
    const gemm_shape sx = x_shape(p), sh = h_shape(p, false), sr = h_shape(p, true);
    (void)gemm_tactics(isa, &sx, x);
    (void)gemm_tactics(isa, &sr, reset);
    const int count = gemm_tactics(isa, &sh, h);
    const bool has_reset = params_of(p, false).kind == RNN_GRU;
    reset[0].block_m = reset[0].block_n = 0;
    uint32_t seen = 0;
    for (int i = 0; i < count; i++) {
        if (seen & 1u << h[i].vectors) continue;
        seen |= 1u << h[i].vectors;
        rnn_tactic r = { .x = x[0], .h = h[i] };
        if (has_reset) r.reset = reset[0];
        /* Nobody shares a step's product. */
        r.h.block_m = r.h.block_n = 0;
        row_tactics_add(t, &r, 1, sizeof r, out);
    }
}

static bool check(const problem *p, const tactic *t)
{
    const rnn_tactic r = tactic_of(t);
    static const uint8_t zero[sizeof(gemm_tactic)];
    if (!row_tactic_check(t, sizeof r)) return false;
    const isa_level isa = row_isa(t);
    const gemm_shape sx = x_shape(p), sh = h_shape(p, false), sr = h_shape(p, true);
    if (gemm_tactic_check(isa, &sx, r.x) || gemm_tactic_check(isa, &sh, r.h)) return false;
    return params_of(p, false).kind == RNN_GRU ? !gemm_tactic_check(isa, &sr, r.reset)
                                               : !memcmp(&r.reset, zero, sizeof zero);
}

static void print(const tactic *t, text *out)
{
    const rnn_tactic r = tactic_of(t);
    char x[48], h[48];
    (void)gemm_tactic_print(x, sizeof x, row_isa(t), r.x);
    (void)gemm_tactic_print(h, sizeof h, row_isa(t), r.h);
    text_printf(out, "%s %s, %s", isa_level_name(row_isa(t)), x, h);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const rnn_tactic r = tactic_of(t);
    const isa_level isa = row_isa(t);
    const rnn_params b = params_of(p, false);
    const gemm_shape sx = x_shape(p), sh = h_shape(p, false), sr = h_shape(p, true);
    const double rows = (double)b.steps * (double)b.batch, blocks = (double)((b.batch + RNN_ROWS - 1) / RNN_ROWS);
    double ns = sx.m ? gemm_cost(isa, &sx, r.x) * rows / (double)sx.m : 0;
    ns += gemm_cost(isa, &sh, r.h) * (double)b.steps * blocks;
    if (b.kind == RNN_GRU) ns += gemm_cost(isa, &sr, r.reset) * (double)b.steps * blocks;
    (void)target;
    return ((ns + rows * (double)b.hidden * 2) * (double)b.directions) + 500;
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    const rnn_params b = packed_of(p, t);
    return rnn_workspace_size(&b, threads);
}

static size_t pack_size(const problem *p, const tactic *t, uint32_t input)
{
    const rnn_params b = packed_of(p, t);
    return input == 1 ? rnn_pack_w_size(&b) : input == 2 ? rnn_pack_r_size(&b) : 0;
}

static void pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst)
{
    const rnn_params b = packed_of(p, t);
    if (input == 1) rnn_pack_w(&b, src->data, src->stride, dst);
    else rnn_pack_r(&b, src->data, src->stride, dst);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    (void)attrs;
    record *r = to;
    for (uint32_t i = 0; i < COUNT_OF(r->has_in); i++) r->has_in[i] = has_in(p, i);
    for (uint32_t i = 0; i < COUNT_OF(r->has_out); i++) r->has_out[i] = has_out(p, i);
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    r->bound = r->params = packed_of(p, t);
    rnn_params *g = &r->params;
    const view *x = &in[0];
    const int64_t sums = rnn_gates(g->kind) * g->hidden;
    g->steps = x->dim[0];
    g->batch = x->dim[1];
    if (x->dim[2] != g->depth || in[1].dim[0] != g->directions || in[1].dim[1] != sums || in[1].dim[2] != g->depth ||
        in[2].dim[0] != g->directions || in[2].dim[1] != sums || (has_in(p, 3) && in[3].dim[1] != 2 * sums) ||
        (has_in(p, 7) && in[7].dim[1] != 3 * g->hidden))
        return FAIL(e, INTERNAL, "the operands of a recurrent layer do not fit each other");
    memcpy(g->x_stride, x->stride, sizeof g->x_stride);
    if (g->depth > 1 && g->x_stride[2] != 1 && !g->x_tactic.copy_a)
        return FAIL(e, INTERNAL, "a recurrent layer's inputs are not adjacent, and the tactic does not copy");
    if (has_in(p, 3)) g->bias_stride = in[3].stride[0];
    if (has_in(p, 5)) memcpy(g->h_in_stride, in[5].stride, sizeof g->h_in_stride);
    if (has_in(p, 6)) memcpy(g->c_in_stride, in[6].stride, sizeof g->c_in_stride);
    if (has_in(p, 7)) g->peep_stride = in[7].stride[0];
    if (has_out(p, 0)) memcpy(g->y_stride, out[0].stride, sizeof g->y_stride);
    if (has_out(p, 1)) memcpy(g->h_out_stride, out[1].stride, sizeof g->h_out_stride);
    if (has_out(p, 2)) memcpy(g->c_out_stride, out[2].stride, sizeof g->c_out_stride);
    return SINTER_OK;
}

static void hand_out(const void *how, int64_t count,
                     void (*body)(void *arg, uint32_t begin, uint32_t end, uint32_t worker), void *arg)
{
    row_parallel(how, count, body, arg);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    rnn_params g = r->params;
    g.x = k->in[0];
    g.w = k->in[1];
    g.r = k->in[2];
    if (r->has_in[3]) g.bias = k->in[3];
    if (r->has_in[5]) g.h_in = k->in[5];
    if (r->has_in[6]) g.c_in = k->in[6];
    if (r->has_in[7]) g.peep = k->in[7];
    if (r->has_out[0]) g.y = k->out[0];
    if (r->has_out[1]) g.h_out = k->out[1];
    if (r->has_out[2]) g.c_out = k->out[2];
    rnn_run(&g, &r->bound, k->workspace, row_threads(k), hand_out, k);
    return SINTER_OK;
}

const kernel cpu_rnn = {
    .name = "cpu_rnn",
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
    .bind = bind,
    .run = run,
};
