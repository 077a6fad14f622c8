/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_row_rnn.c - lstm, gru and rnn: one launch for the product with the inputs, one for all the steps.
 *
 * The steps want a cluster of blocks (sm_90 and later) that shares the units, so that the rows of R stay in shared
 * memory; elsewhere one block takes all units and reads R from the cache at each step. */
#include "cuda/cuda_kernels.h"
#include "cuda/lines.h"
#include "cuda/ranking.h"
#include "ops/rnn.h"

#include "cuda/device/rnn_args.h"

typedef struct rnn_args rnn_args;

/* clang-format off */
typedef struct rnn_tactic {
    uint8_t  cluster, batch, holds, zero;   /* blocks that share the units; sequences a cluster; R in shared memory */
    uint16_t block;
    uint8_t  rest[TACTIC_SIZE - 6];
} rnn_tactic;
_Static_assert(sizeof(rnn_tactic) == TACTIC_SIZE, "a tactic is overlaid");
static const tactic_field fields[] = {
    FIELD(rnn_tactic, cluster, 1, 8, true, "", 1),
    FIELD(rnn_tactic, block, 64, 1024, false, " of ", 1),
    FIELD(rnn_tactic, batch, 1, 8, true, " batch ", 1),
    FIELD(rnn_tactic, holds, 0, 1, false, " held", 0),
};
/* clang-format on */

static bool is_linear(const problem *p)
{
    return p->op == OP_gru && ((const attrs_gru *)p->attrs)->linear_before_reset != 0;
}

static rnn_common common_of(const problem *p, const void *attrs, uint32_t *gates)
{
    uint32_t each;
    return rnn_common_of(p->op, attrs, gates, &each);
}

static uint32_t acc_size(const problem *p)
{
    return p->in[0].dtype == SINTER_DTYPE_F64 ? 8 : 4;
}

static int64_t hidden_of(const problem *p)
{
    return p->in[2].dim[2].max;
}

/* As rnn_steps lays it out. */
static int64_t shared_bytes(const problem *p, const rnn_tactic *t)
{
    uint32_t gates;
    (void)common_of(p, p->attrs, &gates);
    const int64_t hidden = hidden_of(p), span = (hidden + t->cluster - 1) / t->cluster, pitch = hidden + 8 - hidden % 8;
    const int64_t states = (p->op == OP_gru && !is_linear(p) ? 3 : 2) * t->batch * hidden;
    const int64_t numbers = states + gates * span * t->batch;
    return 8 * span * t->batch + numbers * acc_size(p) +
           (t->holds ? gates * span * pitch * (sinter_dtype_bits(p->in[0].dtype) / 8) : 0);
}

static const char *reject_any(const problem *p)
{
    REJECT_UNLESS(p->op == OP_lstm || p->op == OP_gru || p->op == OP_rnn, "not a recurrent layer");
    const sinter_dtype x = p->in[0].dtype;
    REJECT_UNLESS(x == SINTER_DTYPE_F32 || x == SINTER_DTYPE_F64 || x == SINTER_DTYPE_F16 || x == SINTER_DTYPE_BF16,
                  "a type of 8-bit floats or under a byte");
    for (uint32_t i = 1; i < 8; i++)
        REJECT_UNLESS(i == 4 || !cuda_has_in(p, i) || p->in[i].dtype == x, "operands of several types");
    REJECT_UNLESS(!cuda_has_in(p, 4) || p->in[4].dtype == SINTER_DTYPE_I32 || p->in[4].dtype == SINTER_DTYPE_I64,
                  "lengths that are neither i32 nor i64");
    REJECT_UNLESS(p->in[2].rank == 3 && problem_dim_is_static(p->in[2].dim[2]) && hidden_of(p) > 0,
                  "the number of units varies");
    int64_t rows;
    REJECT_UNLESS(i64_mul(p->in[0].dim[0].max, p->in[0].dim[1].max, &rows) && rows < INT32_MAX,
                  "steps or batch have no bound");
    return NULL;
}

static bool is_sound(const problem *p, const rnn_tactic *t, int64_t shared)
{
    return t->block % 32 == 0 && hidden_of(p) < 1 << 20 && shared_bytes(p, t) <= shared;
}

static double cost_of(const problem *p, const rnn_tactic *t, const kernel_target *target)
{
    uint32_t gates;
    const rnn_common common = common_of(p, p->attrs, &gates);
    const double hidden = (double)hidden_of(p), steps = (double)p->in[0].dim[0].opt,
                 batch = (double)p->in[0].dim[1].opt;
    const double directions = rnn_directions(common.direction), units = target->units ? target->units : 100;
    const double inputs = (double)p->in[0].dim[2].opt, rows = gates * hidden;
    const double input_ops = 2 * steps * batch * directions * rows * inputs;
    double waves = directions * ((batch + t->batch - 1) / t->batch) * t->cluster / units;
    if (waves < 1) waves = 1;
    const double own = rows * hidden / t->cluster;
    const double products = own / (t->block * 0.5) * (t->batch + 1) * 0.6 +
                            (t->holds ? 0 : own * sinter_dtype_bits(p->in[0].dtype) / 8 / 80);
    const double step = 350 + products + (t->cluster > 1 ? 300 : 40);
    return 4000 + input_ops / ((target->flops > 0 ? target->flops : 1e13) * 0.2) * 1e9 + steps * step * waves;
}

static void tactics(const problem *p, const kernel_target *target, tactic_sink *out)
{
    ranking best = { .most = 4 };
    for (uint32_t cluster = 1; cluster <= (target->isa >= 90 ? 8u : 1u); cluster *= 2) {
        for (uint32_t batch = 1; batch <= 8; batch *= 2) {
            for (int holds = 1; holds >= 0; holds--) {
                const rnn_tactic t = {
                    .cluster = (uint8_t)cluster, .batch = (uint8_t)batch, .holds = (uint8_t)holds, .block = 512
                };
                if (batch > 1 && batch / 2 >= p->in[0].dim[1].opt) continue;
                if (cluster > 1 && hidden_of(p) < cluster * 8) continue;
                if (!is_sound(p, &t, target->shared ? target->shared : 48 * 1024)) continue;
                ranking_add(&best, cost_of(p, &t, target), &t);
            }
        }
    }
    ranking_take(&best, out);
}

static const char *reject(const problem *p, const kernel_target *t)
{
    const char *why = reject_any(p);
    if (why) return why;
    tactic_sink sink = { .count = 0 };
    tactics(p, t, &sink);
    return sink.count ? NULL : "more units than shared memory holds";
}

static bool check(const problem *p, const tactic *t)
{
    const rnn_tactic x = TACTIC_AS(rnn_tactic, t);
    return FIELDS_HOLD(fields, t) && !reject_any(p) && is_sound(p, &x, INT32_MAX);
}

FIELDS_PRINT(print, fields)

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    const rnn_tactic x = TACTIC_AS(rnn_tactic, t);
    return cost_of(p, &x, target);
}

static size_t workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t, (void)threads;
    uint32_t gates;
    const rnn_common common = common_of(p, p->attrs, &gates);
    const size_t width = size_mul(rnn_directions(common.direction) * gates * acc_size(p), (size_t)hidden_of(p));
    return size_mul(size_mul((size_t)p->in[0].dim[0].max, (size_t)p->in[0].dim[1].max), width);
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)target;
    const rnn_tactic x = TACTIC_AS(rnn_tactic, t);
    uint32_t gates;
    (void)common_of(p, p->attrs, &gates);
    if (index > 1) return false;
    c->source = "rnn.cu";
    c->may_spill = true; /* a word or two around the meeting of a cluster, on some chips */
    c->entry = index ? "rnn_steps" : "rnn_input";
    cuda_code_define(c, "X_TYPE", lines_type_of(p->in[0].dtype));
    cuda_code_define(c, "CELL", p->op == OP_lstm ? RNN_CELL_LSTM : p->op == OP_gru ? RNN_CELL_GRU : RNN_CELL_RNN);
    cuda_code_define(c, "GATES", gates);
    cuda_code_define(c, "LINEAR", is_linear(p));
    cuda_code_define(c, "JOINT", p->op == OP_lstm && ((const attrs_lstm *)p->attrs)->input_forget);
    cuda_code_define(c, "LENGTHS_WIDE", cuda_has_in(p, 4) && p->in[4].dtype == SINTER_DTYPE_I64);
    cuda_code_define(c, "R_CONST", p->in[2].is_const);
    cuda_code_define(c, "CLUSTER", x.cluster);
    cuda_code_define(c, "BATCH", x.batch);
    cuda_code_define(c, "HOLDS", x.holds);
    cuda_code_define(c, "BLOCK", x.block);
    return true;
}

static void strides(wide *to, const view *v)
{
    for (uint32_t i = 0; v->dtype != SINTER_DTYPE_NONE && i < v->rank; i++) to[i] = v->stride[i];
}

static sinter_status add(env *e, cuda_record *r, uint32_t index, uint64_t x, uint64_t y, uint32_t block,
                         uint32_t shared, const problem *p, const rnn_args *from)
{
    rnn_args *a;
    TRY(cuda_launch_begin(e, r, index, x, y, 1, block, shared, sizeof *a, &a));
    *a = *from;
    CUDA_PATCH(r, a, x, PATCH_IN, 0);
    CUDA_PATCH(r, a, w, PATCH_IN, 1);
    CUDA_PATCH(r, a, r, PATCH_IN, 2);
    if (cuda_has_in(p, 3)) CUDA_PATCH(r, a, bias, PATCH_IN, 3);
    if (cuda_has_in(p, 4)) CUDA_PATCH(r, a, lengths, PATCH_IN, 4);
    if (cuda_has_in(p, 5)) CUDA_PATCH(r, a, h0, PATCH_IN, 5);
    if (cuda_has_in(p, 6)) CUDA_PATCH(r, a, c0, PATCH_IN, 6);
    if (cuda_has_in(p, 7)) CUDA_PATCH(r, a, peephole, PATCH_IN, 7);
    if (cuda_has_out(p, 0)) CUDA_PATCH(r, a, y, PATCH_OUT, 0);
    if (cuda_has_out(p, 1)) CUDA_PATCH(r, a, y_h, PATCH_OUT, 1);
    if (cuda_has_out(p, 2)) CUDA_PATCH(r, a, y_c, PATCH_OUT, 2);
    CUDA_PATCH(r, a, part, PATCH_WORKSPACE, 0);
    return SINTER_OK;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *record)
{
    const rnn_tactic x = TACTIC_AS(rnn_tactic, t);
    cuda_record *r = record;
    uint32_t gates, each;
    const rnn_common common = rnn_common_of(p->op, attrs, &gates, &each);
    rnn_activation activation[RNN_ACTIVATIONS_MAX];
    TRY(rnn_activations_parse(e, p->op, attrs, activation));
    rnn_args a = { .clip = common.clip, .first_is_reverse = common.direction == rnn_direction_reverse };
    const uint32_t directions = rnn_directions(common.direction);
    for (uint32_t d = 0; d < directions; d++) {
        for (uint32_t i = 0; i < each; i++) {
            const rnn_activation *from = &activation[d * each + i];
            a.act[d][i] = (struct rnn_act){ .alpha = from->alpha, .beta = from->beta, .kind = from->kind };
        }
    }
    strides(a.sx, &in[0]);
    strides(a.sw, &in[1]);
    strides(a.sr, &in[2]);
    if (cuda_has_in(p, 3)) strides(a.sb, &in[3]);
    if (cuda_has_in(p, 4)) strides(&a.sl, &in[4]);
    if (cuda_has_in(p, 5)) strides(a.sh, &in[5]);
    if (cuda_has_in(p, 6)) strides(a.sc, &in[6]);
    if (cuda_has_in(p, 7)) strides(a.sp, &in[7]);
    if (cuda_has_out(p, 0)) strides(a.sy, &out[0]);
    if (cuda_has_out(p, 1)) strides(a.syh, &out[1]);
    if (cuda_has_out(p, 2)) strides(a.syc, &out[2]);
    int64_t rows, width;
    if (!i64_mul(in[0].dim[0], in[0].dim[1], &rows) || rows > INT32_MAX ||
        !i64_mul(in[2].dim[2], gates * directions, &width) || width > INT32_MAX / 2 || in[0].dim[2] > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "%s of %lld steps, %lld sequences and %lld units", op_at(p->op)->name,
                    (long long)in[0].dim[0], (long long)in[0].dim[1], (long long)in[2].dim[2]);
    a.steps = (small)in[0].dim[0];
    a.batch = (small)in[0].dim[1];
    a.inputs = (small)in[0].dim[2];
    a.hidden = (small)in[2].dim[2];
    a.directions = (small)directions;
    a.slices = (small)((a.batch + x.batch - 1) / x.batch);
    const uint64_t tiles_x = (uint64_t)((rows + RNN_TILE - 1) / RNN_TILE),
                   tiles_y = (uint64_t)((width + RNN_TILE - 1) / RNN_TILE);
    const uint32_t tile = 2 * RNN_DEEP * (RNN_TILE + 1) * acc_size(p);
    TRY(add(e, r, 0, tiles_x, tiles_y, RNN_THREADS, tile, p, &a));
    TRY(add(e, r, 1, (uint64_t)a.slices * directions * x.cluster, 1, x.block, (uint32_t)shared_bytes(p, &x), p, &a));
    r->at[1].cluster = x.cluster;
    return SINTER_OK;
}

CUDA_ROW(cuda_rnn, 1, reject, , .out_strides = STRIDES_ROWS, .workspace = workspace);
