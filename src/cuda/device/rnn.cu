/* SPDX-License-Identifier: Apache-2.0 */
/* rnn.cu - a recurrent layer in two launches: the product of all steps' inputs with the input weights, and the steps.
 *
 * The second takes a direction and BATCH sequences with a cluster of CLUSTER blocks (one block where chips have no
 * clusters). Each block owns its part of the units: it keeps the rows of R that make their gates in shared memory where
 * they fit (-DHOLDS), and hands the new state to all blocks of the cluster, which meet once a step.
 * -DCELL, -DGATES, -DLINEAR (gru: the reset gate comes after the product), -DJOINT (lstm: i = 1 - f). */
#include "prelude.cuh"
#include "line_args.h"
#include "rnn_args.h"
#include "generated.cuh"

template <int T> struct rnn_element { typedef float type; typedef float acc; };
template <> struct rnn_element<LINE_F64> { typedef double type; typedef double acc; };
template <> struct rnn_element<LINE_F16> { typedef f16 type; typedef float acc; };
template <> struct rnn_element<LINE_BF16> { typedef bf16 type; typedef float acc; };
typedef rnn_element<X_TYPE>::type element;
typedef rnn_element<X_TYPE>::acc acc;

DEVICE acc widen(double x) { return (acc)x; }
DEVICE acc widen(float x) { return (acc)x; }
DEVICE acc widen(f16 x) { return (acc)to_float(x); }
DEVICE acc widen(bf16 x) { return (acc)to_float(x); }
DEVICE void narrow(acc v, double &y) { y = (double)v; }
DEVICE void narrow(acc v, float &y) { y = (float)v; }
DEVICE void narrow(acc v, f16 &y) { y = to_f16((float)v); }
DEVICE void narrow(acc v, bf16 &y) { y = to_bf16((float)v); }
DEVICE float exp_of(float x) { return expf(x); }
DEVICE double exp_of(double x) { return exp(x); }
DEVICE float tanh_of(float x) { return tanhf(x); }
DEVICE double tanh_of(double x) { return tanh(x); }
DEVICE float expm1_of(float x) { return expm1f(x); }
DEVICE double expm1_of(double x) { return expm1(x); }
DEVICE float log1p_of(float x) { return log1pf(x); }
DEVICE double log1p_of(double x) { return log1p(x); }

DEVICE acc at_of(address p, i64 i) { return widen(((const element *)p)[i]); }

/* ---- x W + biases ---- */

KERNEL void __launch_bounds__(RNN_THREADS) rnn_input(const __grid_constant__ rnn_args a)
{
    enum { PITCH = RNN_TILE + 1 };
    acc *left = (acc *)shared_base(), *right = left + RNN_DEEP * PITCH;
    const i32 width = a.directions * GATES * a.hidden, rows = a.steps * a.batch;
    const i32 row = blockIdx.x * RNN_TILE, col = blockIdx.y * RNN_TILE;
    const i32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    acc sum[4][4] = {};
    grid_wait();
    for (i32 k = 0; k < a.inputs; k += RNN_DEEP) {
        for (i32 i = threadIdx.x; i < RNN_TILE * RNN_DEEP; i += RNN_THREADS) {
            const i32 m = i / RNN_DEEP, d = i % RNN_DEEP;
            const i32 r = row + m, c = col + m;
            acc x = 0, w = 0;
            if (r < rows && k + d < a.inputs)
                x = at_of(a.x, r / a.batch * a.sx[0] + r % a.batch * a.sx[1] + (k + d) * a.sx[2]);
            if (c < width && k + d < a.inputs)
                w = at_of(a.w, c / (GATES * a.hidden) * a.sw[0] + c % (GATES * a.hidden) * a.sw[1] + (k + d) * a.sw[2]);
            left[d * PITCH + m] = x;
            right[d * PITCH + m] = w;
        }
        sync_block();
#pragma unroll
        for (int d = 0; d < RNN_DEEP; d++) {
            acc x[4], w[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                x[i] = left[d * PITCH + ty + 16 * i];
                w[i] = right[d * PITCH + tx + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += x[i] * w[j];
        }
        sync_block();
    }
    grid_trigger();
    for (int j = 0; j < 4; j++) {
        const i32 c = col + tx + 16 * j;
        if (c >= width) continue;
        const i32 direction = c / (GATES * a.hidden), gate_row = c % (GATES * a.hidden);
        acc bias = 0;
        if (a.bias) {
            bias = at_of(a.bias, direction * a.sb[0] + gate_row * a.sb[1]);
            /* The bias of the state's product joins here, unless a gate scales it. */
            if (!(CELL == RNN_CELL_GRU && LINEAR && gate_row >= 2 * a.hidden))
                bias += at_of(a.bias, direction * a.sb[0] + (GATES * a.hidden + gate_row) * a.sb[1]);
        }
        for (int i = 0; i < 4; i++) {
            const i32 r = row + ty + 16 * i;
            if (r < rows) ((acc *)a.part)[(i64)r * width + c] = sum[i][j] + bias;
        }
    }
}

/* ---- the steps ---- */

DEVICE acc activation(const rnn_act &f, acc x)
{
    const acc alpha = (acc)f.alpha, beta = (acc)f.beta;
    switch (f.kind) {
    case RNN_SIGMOID: return 1 / (1 + exp_of(-x));
    case RNN_TANH: return tanh_of(x);
    case RNN_RELU: return x < 0 ? 0 : x;
    case RNN_AFFINE: return alpha * x + beta;
    case RNN_LEAKY_RELU: return x < 0 ? alpha * x : x;
    case RNN_THRESHOLDED_RELU: return x >= alpha ? x : 0;
    case RNN_SCALED_TANH: return alpha * tanh_of(beta * x);
    case RNN_HARD_SIGMOID: {
        const acc y = alpha * x + beta;
        return y < 0 ? 0 : y > 1 ? 1 : y;
    }
    case RNN_ELU: return x < 0 ? alpha * expm1_of(x) : x;
    case RNN_SOFTSIGN: return x / (1 + (x < 0 ? -x : x));
    default: return x > 30 ? x : log1p_of(exp_of(x));
    }
}
DEVICE acc clipped(const rnn_args &a, acc x)
{
    const acc c = (acc)a.clip;
    return c > 0 ? x < -c ? -c : x > c ? c : x : x;
}
DEVICE acc gate(const rnn_args &a, const rnn_act &f, acc x) { return activation(f, clipped(a, x)); }

DEVICE acc shuffle_sum(acc x)
{
    union { acc v; u32 at[sizeof(acc) / 4]; } y;
#pragma unroll
    for (u32 m = 16; m; m /= 2) {
        y.v = x;
#pragma unroll
        for (int k = 0; k < (int)(sizeof(acc) / 4); k++) y.at[k] = shuffle_xor(y.at[k], m);
        x += y.v;
    }
    return x;
}

DEVICE u32 rank_in_cluster()
{
#if CLUSTER > 1
    return cluster_rank();
#else
    return 0;
#endif
}
DEVICE void meet()
{
#if CLUSTER > 1
    cluster_sync();
#else
    sync_block();
#endif
}
/* To the same place in every block of the cluster. */
DEVICE void hand_out(acc *to, acc v)
{
#if CLUSTER > 1
#pragma unroll
    for (u32 k = 0; k < CLUSTER; k++) *cluster_map(to, k) = v;
#else
    *to = v;
#endif
}

struct layer {
    i32 direction, unit, units;         /* the block's first unit, and how many it has */
    i32 hidden, span, pitch;            /* span: units of a block that is full; pitch: elements of a row of R held */
    const element *held;
};

/* sums[row] = R h for the rows of gates [first, end), row = gate * span + unit, of each sequence. */
DEVICE void products(const rnn_args &a, const layer &l, const acc *h, acc *sums, i32 first, i32 end)
{
    enum { WARPS = BLOCK / 32, AT_ONCE = 4 };
    const i32 rows = (end - first) * l.units;
    for (i32 base = warp_id(); base < rows; base += WARPS * AT_ONCE) {
        acc sum[AT_ONCE][BATCH] = {};
        const element *from[AT_ONCE];
        i64 step = HOLDS ? 1 : a.sr[2];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const i32 i = smaller(base + k * WARPS, rows - 1), g = first + i / l.units, u = i % l.units;
            from[k] = HOLDS ? l.held + (i64)(g * l.span + u) * l.pitch
                            : (const element *)a.r + l.direction * a.sr[0] + (i64)(g * l.hidden + l.unit + u) * a.sr[1];
        }
#pragma unroll 2
        for (i32 d = lane_id(); d < l.hidden; d += 32) {
            acc state[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; b++) state[b] = h[b * l.hidden + d];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                const acc w = widen(from[k][d * step]);
#pragma unroll
                for (int b = 0; b < BATCH; b++) sum[k][b] += w * state[b];
            }
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const i32 i = base + k * WARPS;
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                const acc all = shuffle_sum(sum[k][b]);
                if (!lane_id() && i < rows) sums[((first + i / l.units) * l.span + i % l.units) * BATCH + b] = all;
            }
        }
    }
}

/* The steps of sequence b. */
DEVICE i32 length_of(const rnn_args &a, i32 b)
{
    if (!a.lengths) return a.steps;
    const i64 n = LENGTHS_WIDE ? ((const i64 *)a.lengths)[b * a.sl] : ((const i32 *)a.lengths)[b * a.sl];
    return n < 0 ? 0 : n > a.steps ? a.steps : (i32)n;
}

KERNEL void __launch_bounds__(BLOCK) rnn_steps(const __grid_constant__ rnn_args a)
{
    layer l;
    const i32 task = blockIdx.x / CLUSTER, rank = (i32)rank_in_cluster();
    l.direction = task / a.slices;
    const i32 slice = task % a.slices * BATCH;
    l.hidden = a.hidden;
    l.span = (a.hidden + CLUSTER - 1) / CLUSTER;
    l.unit = smaller(rank * l.span, a.hidden);
    l.units = smaller(l.span, a.hidden - l.unit);
    l.pitch = l.hidden + 8 - l.hidden % 8;
    const i32 width = GATES * a.hidden;
    double *cell = (double *)shared_base();                     /* [units][BATCH]: lstm's cell, gru's update gate */
    acc *state = (acc *)(cell + l.span * BATCH);                /* [2][BATCH][hidden] */
    acc *reset = state + 2 * BATCH * l.hidden;                  /* [BATCH][hidden]: gru's r * h */
    acc *sums = reset + (CELL == RNN_CELL_GRU && !LINEAR ? BATCH * l.hidden : 0);
    element *held = (element *)(sums + GATES * l.span * BATCH);
    l.held = held;
    if (!R_CONST) grid_wait();
    if (HOLDS)
        for (i32 i = threadIdx.x; i < GATES * l.units * l.hidden; i += BLOCK) {
            const i32 d = i % l.hidden, row = i / l.hidden, g = row / l.units, u = row - g * l.units;
            const i64 from = l.direction * a.sr[0] + (i64)(g * l.hidden + l.unit + u) * a.sr[1] + d * a.sr[2];
            held[(i64)(g * l.span + u) * l.pitch + d] = ((const element *)a.r)[from];
        }
    if (R_CONST) grid_wait();
    grid_trigger();
    const bool is_reverse = l.direction == 1 || a.first_is_reverse;
    const rnn_act *act = a.act[l.direction];
    i32 longest = 0;
    for (int b = 0; b < BATCH; b++)
        if (slice + b < a.batch) longest = larger(longest, length_of(a, slice + b));
    for (i32 i = threadIdx.x; i < BATCH * l.hidden; i += BLOCK) {
        const i32 b = slice + i / l.hidden, j = i % l.hidden;
        const bool is_there = b < a.batch;
        state[i] = is_there && a.h0 ? at_of(a.h0, l.direction * a.sh[0] + b * a.sh[1] + j * a.sh[2]) : 0;
        state[BATCH * l.hidden + i] = 0;
        if (CELL == RNN_CELL_GRU && !LINEAR) reset[i] = 0;
    }
    for (i32 i = threadIdx.x; i < BATCH * l.units; i += BLOCK) {
        const i32 b = slice + i % BATCH, j = l.unit + i / BATCH;
        const bool is_there = b < a.batch && CELL == RNN_CELL_LSTM && a.c0;
        cell[i] = is_there ? at_of(a.c0, l.direction * a.sc[0] + b * a.sc[1] + j * a.sc[2]) : 0;
    }
    meet();
    for (i32 step = 0; step < a.steps; step++) {
        const acc *now = state + step % 2 * BATCH * l.hidden;
        acc *next = state + (step + 1) % 2 * BATCH * l.hidden;
        if (step < longest) products(a, l, now, sums, 0, CELL == RNN_CELL_GRU && !LINEAR ? 2 : GATES);
        sync_block();
        if (CELL == RNN_CELL_GRU && !LINEAR) {
            /* The update gate is kept; the reset state goes to all, and is multiplied next. */
            for (i32 i = threadIdx.x; i < BATCH * l.units; i += BLOCK) {
                const i32 s = i % BATCH, u = i / BATCH, b = slice + s, j = l.unit + u;
                if (b >= a.batch || step >= length_of(a, b)) continue;
                const i32 length = length_of(a, b);
                const i32 t = is_reverse ? length - 1 - step : step;
                const acc *x = (const acc *)a.part + (((i64)t * a.batch + b) * a.directions + l.direction) * width;
                cell[i] = gate(a, act[0], x[j] + sums[u * BATCH + s]);
                const acc r = gate(a, act[0], x[l.hidden + j] + sums[(l.span + u) * BATCH + s]);
                hand_out(&reset[s * l.hidden + j], r * now[s * l.hidden + j]);
            }
            meet();
            if (step < longest) products(a, l, reset, sums, 2, 3);
            sync_block();
        }
        for (i32 i = threadIdx.x; i < BATCH * l.units; i += BLOCK) {
            const i32 s = i % BATCH, u = i / BATCH, b = slice + s, j = l.unit + u;
            if (b >= a.batch) continue;
            const i32 length = length_of(a, b);
            const i64 y = l.direction * a.sy[1] + b * a.sy[2] + j * a.sy[3];
            const acc h = now[s * l.hidden + j];
            if (step >= length) {
                if (a.y) narrow(0, ((element *)a.y)[step * a.sy[0] + y]);
                hand_out(&next[s * l.hidden + j], h);
                continue;
            }
            const i32 t = is_reverse ? length - 1 - step : step;
            const acc *x = (const acc *)a.part + (((i64)t * a.batch + b) * a.directions + l.direction) * width + j;
            const acc *sum = sums + u * BATCH + s;
            const i32 each = l.span * BATCH;
            acc v;
            if (CELL == RNN_CELL_LSTM) {
                /* The cell feeds back undamped: in double, so that a step adds nothing of its own to what it carries. */
                double pi = 0, po = 0, pf = 0;
                if (a.peephole) {
                    const i64 p = l.direction * a.sp[0] + j * a.sp[1];
                    pi = at_of(a.peephole, p);
                    po = at_of(a.peephole, p + l.hidden * a.sp[1]);
                    pf = at_of(a.peephole, p + 2 * l.hidden * a.sp[1]);
                }
                /* An absent peephole adds nothing, even of an infinity. */
                const double c = cell[i], seen = a.peephole ? c : 0;
                const acc in = gate(a, act[0], (acc)((double)x[0] + sum[0] + pi * seen));
                const acc forget = JOINT ? 1 - in : gate(a, act[0], (acc)((double)x[2 * l.hidden] + sum[2 * each] + pf * seen));
                const acc fresh = gate(a, act[1], x[3 * l.hidden] + sum[3 * each]);
                const double after = forget * c + (double)in * fresh;
                const acc out = gate(a, act[0], (acc)((double)x[l.hidden] + sum[each] + po * (a.peephole ? after : 0)));
                cell[i] = after;
                v = out * activation(act[2], (acc)after);
            } else if (CELL == RNN_CELL_GRU) {
                acc z = (acc)cell[i], back = sum[2 * each];
                if (LINEAR) {
                    z = gate(a, act[0], x[0] + sum[0]);
                    const acc r = gate(a, act[0], x[l.hidden] + sum[each]);
                    if (a.bias) back += at_of(a.bias, l.direction * a.sb[0] + (width + 2 * l.hidden + j) * a.sb[1]);
                    back *= r;
                }
                v = (1 - z) * gate(a, act[1], x[2 * l.hidden] + back) + z * h;
            } else {
                v = gate(a, act[0], x[0] + sum[0]);
            }
            if (a.y) narrow(v, ((element *)a.y)[t * a.sy[0] + y]);
            hand_out(&next[s * l.hidden + j], v);
        }
        meet();
    }
    const acc *last = state + a.steps % 2 * BATCH * l.hidden;
    for (i32 i = threadIdx.x; i < BATCH * l.units; i += BLOCK) {
        const i32 s = i % BATCH, b = slice + s, j = l.unit + i / BATCH;
        if (b >= a.batch) continue;
        const i64 at_h = l.direction * a.syh[0] + b * a.syh[1] + j * a.syh[2];
        const i64 at_c = l.direction * a.syc[0] + b * a.syc[1] + j * a.syc[2];
        if (a.y_h) narrow(last[s * l.hidden + j], ((element *)a.y_h)[at_h]);
        if (a.y_c) narrow((acc)cell[i], ((element *)a.y_c)[at_c]);
    }
}
