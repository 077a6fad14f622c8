/* SPDX-License-Identifier: Apache-2.0 */
/* gemv.cu      D[row, col] = epilogue(sum over depth of X[row, depth] * W[col, depth]), a few rows
 *
 * Fully connected layers at batch 1: nothing to do but read the weights once, so they are asked for before the
 * dependency wait, 16 bytes a lane, and meet X in registers.
 *
 *   W       packed [col][depth rounded up to 16 bytes], zeros behind
 *   warp    COLS columns, every SPLIT-th run of 32 chunks of 16 bytes; the first PRE runs are held in registers
 *   block   GROUPS * SPLIT warps; partial sums meet in shared memory, then a thread finishes one element
 *   grid    x: ceil(columns / (COLS * GROUPS))
 *   shared  GROUPS * SPLIT * ROWS * COLS floats, with NORM twice as many at least as there are warps
 *
 * PROLOGUE: X is what a program makes of its operands where it meets W.
 * NORM: the one row, which is held as a whole, is normalised before: 1 by its mean square, 2 by mean and variance. The
 * warps of a column do so for themselves.
 *
 * -D: PROLOGUE NORM (NORM_SCALE NORM_BIAS DEPTH) ROWS COLS GROUPS SPLIT PRE X_VECTOR DEPTH_AXES, and simt.cuh's;
 * generated.cuh: type_w */
#include "simt.cuh"

enum { UNIT = 16 / (i32)sizeof(type_w), WARPS = GROUPS * SPLIT, THREADS = WARPS * 32 };
/* Registers that a thread needs to have all its loads under way, and so the blocks to ask for. */
enum {
    /* One row is asked for as a whole, too, else each run waits for its own part. */
    X_HELD = ROWS == 1 && X_VECTOR && !PROLOGUE,
#if PROLOGUE
    OWN = 32 + ROWS * ((i32)sizeof(pro_regs<UNIT>) / 4 + PRO_RANK),
#else
    OWN = X_HELD ? PRE * 4 * (1 + NORM_SCALE + NORM_BIAS) : 0,
#endif
    REGISTERS = PRE * COLS * 4 + ROWS * COLS + (COLS + 1) * UNIT + ROWS * 2 + 44 + OWN,
    FIT = 65536 / (THREADS * (REGISTERS < 255 ? REGISTERS : 255)), BLOCKS = FIT > 0 ? FIT : 1
};

union chunk { u32x4 raw; type_w at[UNIT]; };

DEVICE float widen(float x) { return x; }
DEVICE float widen(f16 x) { return to_float(x); }
DEVICE float widen(bf16 x) { return to_float(x); }

DEVICE i64 depth_at(const simt_args &a, i32 k)
{
    i64 at = 0;
    i32 rest = k;
#pragma unroll
    for (i32 i = DEPTH_AXES - 1; i >= 0; i--) {
        i32 q = 0, r = rest;
        if (i) divmod_fast(rest, a.depth_div[i], q, r);
        rest = q;
        at += r * a.p.depth[i];
    }
    return at;
}

#if PROLOGUE
struct row_place { i32 at[PRO_RANK]; };
DEVICE void x_read(const simt_args &a, const pro_args &pa, const row_place &m, i32 k, float (&y)[UNIT])
{
    constexpr i32 V = X_VECTOR ? UNIT : 1;
#pragma unroll
    for (i32 u = 0; u < UNIT; u += V) {
        i32 at[PRO_RANK];
#pragma unroll
        for (i32 i = 0; i < PRO_RANK; i++) at[i] = m.at[i];
        pro_add_depth(a, k + u, at);
        pro_acc v[V] = {};
        if (V > 1 || k + u < a.depth) {
            pro_row row;
            pro_begin(pa, row, at);
            pro_run<V>(pa, row, 0, V, v);
        }
#pragma unroll
        for (i32 i = 0; i < V; i++) y[u + i] = v[i];
    }
}
#else
struct row_place { i64 at; };
DEVICE void x_read(const simt_args &a, const row_place &m, i32 k, float (&y)[UNIT])
{
    const type_w *const x = (const type_w *)a.p.data + m.at;
    if (X_VECTOR) {
        chunk v;
        v.raw = *(const u32x4 *)(x + depth_at(a, k));
#pragma unroll
        for (i32 u = 0; u < UNIT; u++) y[u] = widen(v.at[u]);
    } else {
#pragma unroll
        for (i32 u = 0; u < UNIT; u++) y[u] = k + u < a.depth ? widen(x[depth_at(a, k + u)]) : 0.0f;
    }
}
#endif

/* Adds the products of one chunk of W of every column with what X has there. */
DEVICE void multiply_row(const float (&y)[UNIT], const float (&wide)[COLS][UNIT], float (&acc)[COLS])
{
#pragma unroll
    for (i32 c = 0; c < COLS; c++)
#pragma unroll
        for (i32 u = 0; u < UNIT; u++) acc[c] += y[u] * wide[c][u];
}

DEVICE void widen_all(const chunk (&w)[COLS], float (&wide)[COLS][UNIT])
{
#pragma unroll
    for (i32 c = 0; c < COLS; c++)
#pragma unroll
        for (i32 u = 0; u < UNIT; u++) wide[c][u] = widen(w[c].at[u]);
}

DEVICE void multiply(const simt_args &a PRO_TYPE, const row_place (&row)[ROWS], i32 k, const chunk (&w)[COLS],
                     float (&acc)[ROWS][COLS])
{
    float wide[COLS][UNIT];
    widen_all(w, wide);
#pragma unroll
    for (i32 m = 0; m < ROWS; m++) {
        if (m >= a.row.count) break;
        float y[UNIT];
        x_read(a PRO_PASS, row[m], k, y);
        multiply_row(y, wide, acc[m]);
    }
}

#if NORM
struct norm_sums { float mean, inverse; };

/* What is held of a scale or bias, at `at` of depth. */
DEVICE chunk norm_line(const simt_args &a, address from, i32 at)
{
    chunk v = {};
    if (at < a.depth) v.raw = load_constant((const u32x4 *)((const type_w *)from + at));
    return v;
}

/* Of the row whose chunks this warp, and the others of its columns, hold. Sums are of distances from the row's first
 * number, which is at most sqrt(depth) deviations from the mean: the variance loses depth * 2^-24 of itself at most. */
DEVICE norm_sums norm_of(const simt_args &a, const chunk (&x)[PRE], float first, i32 split, float *spare)
{
    const float from = NORM == 2 ? first : 0.0f;
    float total = 0, square = 0;
#pragma unroll
    for (i32 i = 0; i < PRE; i++) {
        const bool is_in = ((i * SPLIT + split) * 32 + (i32)lane_id()) * UNIT < DEPTH;
#pragma unroll
        for (i32 u = 0; u < UNIT; u++) {
            const float d = is_in ? widen(x[i].at[u]) - from : 0.0f;
            total += d;
            square += d * d;
        }
    }
#pragma unroll
    for (u32 mask = 16; mask; mask >>= 1) {
        total += shuffle_xor(total, mask);
        square += shuffle_xor(square, mask);
    }
    if (SPLIT > 1) {
        float *const of = spare + warp_id() / SPLIT * SPLIT * 2;
        if (lane_id() == 0) {
            of[2 * split] = total;
            of[2 * split + 1] = square;
        }
        sync_block();
        total = square = 0;
#pragma unroll
        for (i32 i = 0; i < SPLIT; i++) {
            total += of[2 * i];
            square += of[2 * i + 1];
        }
        sync_block(); /* partial products come there */
    }
    const float mean = NORM == 2 ? total * (1.0f / DEPTH) : 0.0f, mean_square = square * (1.0f / DEPTH);
    const float variance = mean_square - mean * mean;
    return { from + mean, rsqrt_fast((variance < 0 ? 0 : variance) + a.norm.epsilon) };
}
#endif

KERNEL void __launch_bounds__(THREADS, BLOCKS)
    gemv(const __grid_constant__ simt_args a, const __grid_constant__ epi_args e PRO_PARAM)
{
    float *const part = (float *)shared_base();
    const i32 lane = (i32)lane_id(), warp = (i32)warp_id(), split = warp % SPLIT;
    const i32 col0 = ((i32)blockIdx.x * GROUPS + warp / SPLIT) * COLS;
    const i32 chunks = (a.depth + UNIT - 1) / UNIT;
    const type_w *w[COLS];
    chunk held[PRE][COLS];
    if (a.trigger == 1) grid_trigger();
#pragma unroll
    for (i32 c = 0; c < COLS; c++)
        w[c] = (const type_w *)a.q.data + smaller(col0 + c, a.col.count - 1) * a.q.depth_flat;
#pragma unroll
    for (i32 i = 0; i < PRE; i++) {
        const i32 at = (i * SPLIT + split) * 32 + lane;
#pragma unroll
        for (i32 c = 0; c < COLS; c++) {
            held[i][c].raw = {};
            if (at < chunks) held[i][c].raw = load_constant((const u32x4 *)(w[c] + at * UNIT));
        }
    }
    row_place row_at[ROWS];
#pragma unroll
    for (i32 m = 0; m < ROWS; m++) {
        row_at[m] = {};
        i32 rest = m;
#pragma unroll
        for (i32 i = ROW_AXES - 1; i >= 0; i--) {
            i32 q = 0, r = rest;
            if (i) divmod_fast(rest, a.row.div[i], q, r);
            rest = q;
#if PROLOGUE
            if (pro_line_axis[i] >= 0) row_at[m].at[pro_line_axis[i]] += r * a.pro.line[i];
#else
            row_at[m].at += r * a.p.line[i];
#endif
        }
    }
    float acc[ROWS][COLS] = {};
#if NORM
    chunk scale[PRE], bias[PRE];
#pragma unroll
    for (i32 i = 0; i < PRE; i++) {
        const i32 at = ((i * SPLIT + split) * 32 + lane) * UNIT;
        if (NORM_SCALE) scale[i] = norm_line(a, a.norm.scale, at);
        if (NORM_BIAS) bias[i] = norm_line(a, a.norm.bias, at);
    }
#endif
    grid_wait();
#if ROWS == 1 && X_VECTOR && !PROLOGUE
    chunk x_held[PRE];
#pragma unroll
    for (i32 i = 0; i < PRE; i++) {
        const i32 at = (i * SPLIT + split) * 32 + lane;
        x_held[i].raw = {};
        if (at < chunks)
            x_held[i].raw = *(const u32x4 *)((const type_w *)a.p.data + row_at[0].at + depth_at(a, at * UNIT));
    }
#if NORM
    const norm_sums n = norm_of(a, x_held, widen(*((const type_w *)a.p.data + row_at[0].at)), split, part);
#endif
#pragma unroll
    for (i32 i = 0; i < PRE; i++) {
        float y[UNIT], wide[COLS][UNIT];
#pragma unroll
        for (i32 u = 0; u < UNIT; u++) {
            y[u] = widen(x_held[i].at[u]);
#if NORM
            y[u] = (y[u] - n.mean) * n.inverse;
            if (NORM_SCALE) y[u] *= widen(scale[i].at[u]);
            if (NORM_BIAS) y[u] += widen(bias[i].at[u]);
#endif
        }
        widen_all(held[i], wide);
        multiply_row(y, wide, acc[0]);
    }
#else
#pragma unroll
    for (i32 i = 0; i < PRE; i++) {
        const i32 at = (i * SPLIT + split) * 32 + lane;
        if (at < chunks) multiply(a PRO_PASS, row_at, at * UNIT, held[i], acc);
    }
#endif
    for (i32 i = PRE; i * SPLIT * 32 < chunks; i += 2) {
        chunk next[2][COLS];
#pragma unroll
        for (i32 j = 0; j < 2; j++) {
            const i32 at = ((i + j) * SPLIT + split) * 32 + lane;
#pragma unroll
            for (i32 c = 0; c < COLS; c++) {
                next[j][c].raw = {};
                if (at < chunks) next[j][c].raw = load_constant((const u32x4 *)(w[c] + at * UNIT));
            }
        }
#pragma unroll
        for (i32 j = 0; j < 2; j++) {
            const i32 at = ((i + j) * SPLIT + split) * 32 + lane;
            if (at < chunks) multiply(a PRO_PASS, row_at, at * UNIT, next[j], acc);
        }
    }
    if (a.trigger == 3) grid_trigger();
#pragma unroll
    for (i32 m = 0; m < ROWS; m++)
#pragma unroll
        for (i32 c = 0; c < COLS; c++) {
            float v = acc[m][c];
#pragma unroll
            for (u32 mask = 16; mask; mask >>= 1) v += shuffle_xor(v, mask);
            if (lane == (m * COLS + c) % 32) part[(warp * ROWS + m) * COLS + c] = v;
        }
    sync_block();
    place where;
    place_batch(a, 0, where);
    for (i32 item = (i32)threadIdx.x; item < ROWS * GROUPS * COLS; item += THREADS) {
        const i32 m = item / (GROUPS * COLS), n = item % (GROUPS * COLS);
        const i32 col = (i32)blockIdx.x * GROUPS * COLS + n;
        if (m >= a.row.count || col >= a.col.count) continue;
        epi_acc total[1] = { 0 };
#pragma unroll
        for (i32 s = 0; s < SPLIT; s++) total[0] += part[((n / COLS * SPLIT + s) * ROWS + m) * COLS + n % COLS];
        i32 at[EPI_RANK];
#pragma unroll
        for (i32 i = 0; i < EPI_RANK; i++) at[i] = where.at[i];
        place_add(a.row, row_out, m, at);
        place_add(a.col, col_out, col, at);
        epi_row row;
        epi_begin(e, row, at);
        epi_run<1>(e, row, 0, 1, total);
    }
}
