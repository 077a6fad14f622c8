/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_row_rnn.c - lstm, gru and rnn: one launch for the product with the inputs, one for all the steps. A layer of one
 * step is one launch of blocks that need not meet.
 *
 * The steps want R in registers: a cluster of blocks (sm_90 and later) shares the units. What finds no room there goes
 * to shared memory, and what finds none there either is read from the cache at each step. */
#include "cuda/cuda_kernels.h"
#include "cuda/lines.h"
#include "cuda/ranking.h"
#include "ops/rnn.h"

#include "cuda/device/rnn_args.h"

#include <math.h>

typedef struct rnn_args rnn_args;

/* clang-format off */
typedef struct rnn_tactic {
    uint8_t  cluster, batch, lanes;     /* blocks that share the units (a cluster, or alone); sequences; threads */
    uint8_t  matrix;                    /* the product with the input is by tensor cores */
    uint16_t block, held, kept;         /* pieces of a row, of a thread, in registers, then in shared memory */
    uint8_t  alone, rest[TACTIC_SIZE - 11];     /* alone: one step */
} rnn_tactic;
_Static_assert(sizeof(rnn_tactic) == TACTIC_SIZE, "a tactic is overlaid");
static const tactic_field fields[] = {
    FIELD(rnn_tactic, cluster, 1, 128, true, "", 1),
    FIELD(rnn_tactic, block, 32, 1024, false, " of ", 1),
    FIELD(rnn_tactic, lanes, 1, 32, true, " lanes ", 1),
    FIELD(rnn_tactic, batch, 1, 8, true, " batch ", 1),
    FIELD(rnn_tactic, held, 0, 64, false, " held ", 1),
    FIELD(rnn_tactic, kept, 0, 1024, false, " kept ", 1),
    FIELD(rnn_tactic, matrix, 0, 1, false, " matrix", 0),
    FIELD(rnn_tactic, alone, 0, 1, false, " alone", 0),
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

/* The cut of a layer, as rnn_steps makes it. */
typedef struct cut {
    uint32_t gates, piece, again; /* piece: elements of 16 bytes; again: a second product a step */
    int64_t each, span, turns;    /* pieces of a row that a thread multiplies; units of a block */
    int64_t numbers, cells;       /* bytes of states and inputs; of cells */
} cut;

static int64_t inputs_of(const problem *p)
{
    return p->in[0].dim[2].max;
}

/* Numbers of a vector that rows of `size` are multiplied with, as rnn.cu's cut has them. */
static int64_t room_for(int64_t size, const cut *c, const rnn_tactic *t)
{
    return cuda_ceil_div(cuda_ceil_div(size, c->piece), t->lanes) * t->lanes * c->piece;
}

static cut cut_of(const problem *p, const rnn_tactic *t)
{
    cut c = { .piece = 128 / sinter_dtype_bits(p->in[0].dtype), .again = p->op == OP_gru && !is_linear(p) };
    (void)common_of(p, p->attrs, &c.gates);
    const int64_t hidden = hidden_of(p);
    c.each = cuda_ceil_div(cuda_ceil_div(hidden, c.piece), t->lanes);
    c.span = cuda_ceil_div(hidden, t->cluster);
    c.turns = cuda_ceil_div(c.span, t->block / t->lanes);
    c.numbers = t->batch * acc_size(p) *
                ((2 + c.again) * room_for(hidden, &c, t) + (t->alone ? room_for(inputs_of(p), &c, t) : 0));
    c.cells = c.span * t->batch * (c.piece == 8 ? 4 : 8);
    return c;
}

static int64_t kept_bytes(const cut *c, const rnn_tactic *t)
{
    return 16LL * c->gates * t->block;
}

static int64_t shared_bytes(const problem *p, const rnn_tactic *t)
{
    const cut c = cut_of(p, t);
    return t->kept * kept_bytes(&c, t) + c.numbers + c.cells + 24;
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

/* Is the product with the input one for the chip's tensor cores? */
static bool has_matrix_units(const problem *p, uint32_t isa)
{
    const sinter_dtype x = p->in[0].dtype;
    return (x == SINTER_DTYPE_F16 && isa >= 75) || (x == SINTER_DTYPE_BF16 && isa >= 80);
}

/* One step, whose product needs nothing of another block. */
static bool may_be_alone(const problem *p)
{
    return p->in[0].dim[0].max <= 1 && problem_dim_is_static(p->in[0].dim[2]) && inputs_of(p) > 0 &&
           inputs_of(p) < 1 << 20 && (p->op != OP_gru || is_linear(p));
}

static bool is_sound(const problem *p, const rnn_tactic *t, int64_t shared)
{
    if (t->block % 32 || t->block % t->lanes || hidden_of(p) >= 1 << 20) return false;
    if (t->matrix && !has_matrix_units(p, UINT32_MAX)) return false;
    const cut c = cut_of(p, t);
    if (t->alone ? !may_be_alone(p) || t->held + t->kept : t->cluster > 16) return false;
    return t->held + t->kept <= c.each && (!(t->held + t->kept) || c.turns == 1) && shared_bytes(p, t) <= shared;
}

/* Registers for pieces: the compiler was seen to take up to `other` beside them. */
static int64_t room_of(const problem *p, const rnn_tactic *t)
{
    uint32_t gates;
    (void)common_of(p, p->attrs, &gates);
    const int64_t most = 65536 / t->block, other = 40 + 14LL * t->batch * gates * acc_size(p) / 20;
    return (most < 255 ? most : 255) - other;
}

/* All of a row's pieces to registers and shared memory, as far as there is room. */
static void hold(const problem *p, rnn_tactic *t, int64_t shared)
{
    const cut c = cut_of(p, t);
    t->held = t->kept = 0;
    if (c.turns > 1) return;
    const int64_t room = room_of(p, t) / (4 * c.gates), left = shared - shared_bytes(p, t);
    t->held = (uint16_t)(room < 0 ? 0 : room < c.each ? room : c.each);
    const int64_t kept = left < 0 ? 0 : left / kept_bytes(&c, t);
    t->kept = (uint16_t)(kept < c.each - t->held ? kept : c.each - t->held);
}

/* Clocks of a multiprocessor's four schedulers for a step; what it reads from the cache comes at 48 bytes a clock. */
static double step_ns(const problem *p, const rnn_tactic *t, double ghz)
{
    const cut c = cut_of(p, t);
    const double warps = (t->block + 127) / 128, turns = (double)c.turns, pieces = (double)(c.each * c.gates);
    const double loads = (double)c.each * t->batch * c.piece * acc_size(p) / 16;
    const double widens = acc_size(p) == 4 && c.piece == 8 ? pieces * c.piece : 0;
    const double macs = pieces * c.piece * t->batch * (acc_size(p) == 8 ? 2 : 1);
    const double others = t->batch < t->lanes ? t->lanes / t->batch : 1;
    const double sequences = t->batch > t->lanes ? t->batch / t->lanes : 1;
    const double gates = (60 + 25.0 * c.gates / (others < 4 ? others : 4)) * sequences + 2.0 * t->batch * c.gates;
    const double read = (double)((c.each - t->held - t->kept) * kept_bytes(&c, t)) * turns / 48;
    const double from_shared = (double)(t->kept * kept_bytes(&c, t)) / 128;
    const double busy = warps * turns * (macs + widens + 2 * loads + (1 + c.again) * gates) + read + from_shared;
    const double late = (150 + 25 * (t->lanes > 1) + (t->cluster > 1 ? 400 + 4.0 * t->cluster : 40)) * (1 + c.again);
    return (busy + late) / ghz;
}

static double cost_of(const problem *p, const rnn_tactic *t, const kernel_target *target)
{
    uint32_t gates;
    const rnn_common common = common_of(p, p->attrs, &gates);
    const machine m = machine_of(target);
    const double hidden = (double)hidden_of(p), steps = (double)p->in[0].dim[0].opt,
                 batch = (double)p->in[0].dim[1].opt;
    const double directions = rnn_directions(common.direction);
    const double inputs = (double)p->in[0].dim[2].opt, rows = gates * hidden;
    const double input_ops = 2 * steps * batch * directions * rows * inputs;
    double waves = directions * ceil(batch / t->batch) * t->cluster / m.units;
    if (waves < 1) waves = 1;
    const double weights = rows * hidden * sinter_dtype_bits(p->in[0].dtype) / 8 / t->cluster / (48 * m.ghz);
    if (t->alone) return 3000 + (weights * inputs / hidden + step_ns(p, t, m.ghz)) * waves;
    return 4000 + input_ops / ((target->flops > 0 ? target->flops : 1e13) * (t->matrix ? 2 : 0.2)) * 1e9 +
           (weights + steps * step_ns(p, t, m.ghz)) * waves;
}

static void tactics(const problem *p, const kernel_target *target, tactic_sink *out)
{
    ranking best = { .most = 8 };
    const int64_t shared = target->shared ? target->shared : 48 * 1024;
    const bool alone = may_be_alone(p);
    const uint32_t parts = alone ? 128 : target->isa >= 90 ? cuda_cluster_most(target) : 1;
    for (uint32_t cluster = 1; cluster <= parts; cluster *= 2) {
        for (uint32_t batch = 1; batch <= 8; batch *= 2) {
            for (uint32_t lanes = 1; lanes <= 32; lanes *= 2) {
                rnn_tactic t = { .cluster = (uint8_t)cluster, .batch = (uint8_t)batch, .lanes = (uint8_t)lanes };
                if (batch > 1 && batch / 2 >= p->in[0].dim[1].opt) continue;
                if (cluster > 1 && hidden_of(p) < cluster * (alone ? 1 : 8)) continue;
                t.matrix = !alone && has_matrix_units(p, target->isa);
                t.alone = alone;
                const int64_t threads = cuda_ceil_div(hidden_of(p), cluster) * lanes;
                t.block = (uint16_t)(threads < 1024 ? (threads + 31) / 32 * 32 : 1024);
                if (!alone) hold(p, &t, shared);
                if (!is_sound(p, &t, shared)) continue;
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
    (void)threads;
    uint32_t gates;
    if (TACTIC_AS(rnn_tactic, t).alone) return 0;
    const rnn_common common = common_of(p, p->attrs, &gates);
    const size_t width = size_mul(rnn_directions(common.direction) * gates * acc_size(p), (size_t)hidden_of(p));
    return size_mul(size_mul((size_t)p->in[0].dim[0].max, (size_t)p->in[0].dim[1].max), width);
}

/* Are all activations those that the op takes where none are named? */
static bool is_usual(const problem *p)
{
    sinter_error quiet = { 0 };
    env e = { .error = &quiet };
    uint32_t gates, each;
    const rnn_common common = rnn_common_of(p->op, p->attrs, &gates, &each);
    rnn_activation activation[RNN_ACTIVATIONS_MAX];
    if (rnn_activations_parse(&e, p->op, p->attrs, activation) != SINTER_OK) return false;
    for (uint32_t i = 0; i < rnn_directions(common.direction) * each; i++)
        if (activation[i].kind != (i % each || p->op == OP_rnn ? RNN_TANH : RNN_SIGMOID)) return false;
    return true;
}

static bool code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    const rnn_tactic x = TACTIC_AS(rnn_tactic, t);
    uint32_t gates;
    (void)common_of(p, p->attrs, &gates);
    if (index > (x.alone ? 0u : 1u) || (x.matrix && !has_matrix_units(p, target->isa))) return false;
    const bool is_input = !index && !x.alone;
    c->source = is_input ? "rnn_input.cu" : "rnn.cu";
    c->entry = is_input ? "rnn_input" : "rnn_steps";
    c->may_spill = target->isa != 90; /* two words, where registers are left */
    cuda_code_define(c, "X_TYPE", lines_type_of(p->in[0].dtype));
    cuda_code_define(c, "CELL", p->op == OP_lstm ? RNN_CELL_LSTM : p->op == OP_gru ? RNN_CELL_GRU : RNN_CELL_RNN);
    cuda_code_define(c, "GATES", gates);
    cuda_code_define(c, "HIDDEN", hidden_of(p));
    cuda_code_define(c, "LINEAR", is_linear(p));
    cuda_code_define(c, "USUAL", is_usual(p));
    if (is_input) {
        cuda_code_define(c, "MATRIX", x.matrix);
        return true;
    }
    cuda_code_define(c, "JOINT", p->op == OP_lstm && ((const attrs_lstm *)p->attrs)->input_forget);
    cuda_code_define(c, "LENGTHS_WIDE", cuda_has_in(p, 4) && p->in[4].dtype == SINTER_DTYPE_I64);
    cuda_code_define(c, "PEEPHOLE", cuda_has_in(p, 7));
    cuda_code_define(c, "R_CONST", p->in[2].is_const);
    cuda_code_define(c, "CLUSTER", x.cluster);
    cuda_code_define(c, "BATCH", x.batch);
    cuda_code_define(c, "BLOCK", x.block);
    cuda_code_define(c, "LANES", x.lanes);
    cuda_code_define(c, "HELD", x.held);
    cuda_code_define(c, "KEPT", x.kept);
    cuda_code_define(c, "WIDENED", 8LL * x.held * gates <= room_of(p, &x));
    cuda_code_define(c, "ALONE", x.alone);
    cuda_code_define(c, "INPUTS", x.alone ? inputs_of(p) : 0);
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
    const uint64_t blocks = (uint64_t)a.slices * directions * x.cluster;
    const uint32_t shared = (uint32_t)shared_bytes(p, &x);
    if (x.alone) return add(e, r, 0, blocks, 1, x.block, shared, p, &a);
    const uint64_t tiles_x = (uint64_t)((rows + RNN_TILE - 1) / RNN_TILE),
                   tiles_y = (uint64_t)((width + RNN_TILE - 1) / RNN_TILE);
    const uint32_t plain = 2 * RNN_PLAIN_DEEP * (RNN_TILE + 1) * acc_size(p),
                   stages = RNN_STAGES * 2 * RNN_TILE * RNN_PITCH * 2;
    TRY(add(e, r, 0, tiles_x, tiles_y, x.matrix ? RNN_THREADS : RNN_PLAIN_THREADS, x.matrix ? stages : plain, p, &a));
    TRY(add(e, r, 1, blocks, 1, x.block, shared, p, &a));
    r->at[1].cluster = x.cluster;
    return SINTER_OK;
}

CUDA_ROW(cuda_rnn, 2, reject, , .out_strides = STRIDES_ROWS, .workspace = workspace);
