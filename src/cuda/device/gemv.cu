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
 *   shared  GROUPS * SPLIT * ROWS * COLS floats, with NORM GROUPS * SPLIT * (3 COLS + 2)
 *
 * PROLOGUE: X is what a program makes of its operands where it meets W.
 * NORM: the one row, which is held as a whole, is normalised: 1 by its mean square, 2 by mean and variance. The warps of
 * a column do so for themselves.
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
    OWN = X_HELD ? PRE * 4 * (1 + NORM_SCALE) + (NORM ? 2 * COLS : 0) : 0,
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
/* What is held of a scale or bias, at `at` of depth. */
DEVICE chunk norm_line(const simt_args &a, address from, i32 at)
{
    chunk v = {};
    if (at < a.depth) v.raw = load_constant((const u32x4 *)((const type_w *)from + at));
    return v;
}

/* A normalised row times a column, with m the mean, r the reciprocal deviation, s the scale and b the bias, is
 *
 *     sum of ((x - m) r s + b) w  =  r (sum of (x - f) s w  -  (m - f) sum of s w)  +  sum of b w
 *
 * so that the product does not wait for m and r. The last two sums are known before the row is. f is the row's first
 * number, which is at most sqrt(depth) deviations from m: the variance loses depth * 2^-24 of itself at most, and the
 * product sqrt(depth) * 2^-24 of the sum of its terms' sizes. A row that is only divided has m = f = 0. */
enum { NORM_TOTAL, NORM_SQUARE, NORM_DOT, NORM_SCALED = NORM_DOT + COLS, NORM_BIASED = NORM_SCALED + COLS,
       NORM_SUMS = NORM_BIASED + COLS };

DEVICE void norm_columns(const chunk (&w)[PRE][COLS], const chunk (&scale)[PRE], const chunk (&bias)[PRE],
                         float (&sum)[NORM_SUMS])
{
#pragma unroll
    for (i32 i = 0; i < PRE; i++) {
        float wide[COLS][UNIT];
        widen_all(w[i], wide);
#pragma unroll
        for (i32 c = 0; c < COLS; c++)
#pragma unroll
            for (i32 u = 0; u < UNIT; u++) {
                if (NORM == 2) sum[NORM_SCALED + c] += NORM_SCALE ? widen(scale[i].at[u]) * wide[c][u] : wide[c][u];
                if (NORM_BIAS) sum[NORM_BIASED + c] += widen(bias[i].at[u]) * wide[c][u];
            }
    }
}

DEVICE void norm_row(const chunk (&x)[PRE], float first, i32 split, const chunk (&w)[PRE][COLS],
                     const chunk (&scale)[PRE], float (&sum)[NORM_SUMS])
{
#pragma unroll
    for (i32 i = 0; i < PRE; i++) {
        const bool is_in = ((i * SPLIT + split) * 32 + (i32)lane_id()) * UNIT < DEPTH;
        float y[UNIT], wide[COLS][UNIT], dot[COLS] = {};
#pragma unroll
        for (i32 u = 0; u < UNIT; u++) {
            const float d = is_in ? widen(x[i].at[u]) - (NORM == 2 ? first : 0.0f) : 0.0f;
            sum[NORM_TOTAL] += d;
            sum[NORM_SQUARE] += d * d;
            y[u] = NORM_SCALE ? d * widen(scale[i].at[u]) : d;
        }
        widen_all(w[i], wide);
        multiply_row(y, wide, dot);
#pragma unroll
        for (i32 c = 0; c < COLS; c++) sum[NORM_DOT + c] += dot[c];
    }
}

DEVICE void norm_meet(float (&sum)[NORM_SUMS], i32 from, i32 end)
{
#pragma unroll
    for (u32 mask = 16; mask; mask >>= 1)
#pragma unroll
        for (i32 i = from; i < end; i++) sum[i] += shuffle_xor(sum[i], mask);
}

/* Of one column, term by term. For weights that are not finite: the form above takes infinity from infinity there. */
DEVICE float norm_defined(const simt_args &a, i64 x_at, i32 col, float mean, float inverse)
{
    const type_w *const x = (const type_w *)a.p.data + x_at, *const w = (const type_w *)a.q.data + col * a.q.depth_flat;
    float sum = 0;
    for (i32 k = 0; k < a.depth; k++) {
        float y = (widen(x[depth_at(a, k)]) - mean) * inverse;
        if (NORM_SCALE) y *= widen(((const type_w *)a.norm.scale)[k]);
        if (NORM_BIAS) y += widen(((const type_w *)a.norm.bias)[k]);
        sum += y * widen(w[k]);
    }
    return sum;
}

/* Of column `col`, c among those of its warps, from their sums. */
DEVICE float norm_result(const simt_args &a, const float *part, i32 c, i32 col, i64 x_at)
{
    float total = 0, square = 0, dot = 0, scaled = 0, biased = 0;
#pragma unroll
    for (i32 s = 0; s < SPLIT; s++) {
        const float *const own = part + s * NORM_SUMS;
        total += own[NORM_TOTAL];
        square += own[NORM_SQUARE];
        dot += own[NORM_DOT + c];
        scaled += own[NORM_SCALED + c];
        biased += own[NORM_BIASED + c];
    }
    const float mean = NORM == 2 ? total * (1.0f / DEPTH) : 0.0f, variance = square * (1.0f / DEPTH) - mean * mean;
    const float inverse = rsqrt_fast((variance < 0 ? 0 : variance) + a.norm.epsilon);
    const bool is_finite = (scaled + biased) - (scaled + biased) == 0;
    if (is_finite) return (dot - mean * scaled) * inverse + biased;
    const float first = NORM == 2 ? widen(((const type_w *)a.p.data)[x_at]) : 0.0f;
    return norm_defined(a, x_at, col, first + mean, inverse);
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
    float sum[NORM_SUMS] = {};
    norm_columns(held, scale, bias, sum);
    norm_meet(sum, NORM_SCALED, NORM_SUMS);
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
    norm_row(x_held, widen(*((const type_w *)a.p.data + row_at[0].at)), split, held, scale, sum);
    norm_meet(sum, 0, NORM_SCALED);
#else
#pragma unroll
    for (i32 i = 0; i < PRE; i++) {
        float y[UNIT], wide[COLS][UNIT];
#pragma unroll
        for (i32 u = 0; u < UNIT; u++) y[u] = widen(x_held[i].at[u]);
        widen_all(held[i], wide);
        multiply_row(y, wide, acc[0]);
    }
#endif
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
#if NORM
#pragma unroll
    for (i32 i = 0; i < NORM_SUMS; i++)
        if (lane == i % 32) part[warp * NORM_SUMS + i] = sum[i];
#else
#pragma unroll
    for (i32 m = 0; m < ROWS; m++)
#pragma unroll
        for (i32 c = 0; c < COLS; c++) {
            float v = acc[m][c];
#pragma unroll
            for (u32 mask = 16; mask; mask >>= 1) v += shuffle_xor(v, mask);
            if (lane == (m * COLS + c) % 32) part[(warp * ROWS + m) * COLS + c] = v;
        }
#endif
    sync_block();
    place where;
    place_batch(a, 0, where);
    for (i32 item = (i32)threadIdx.x; item < ROWS * GROUPS * COLS; item += THREADS) {
        const i32 m = item / (GROUPS * COLS), n = item % (GROUPS * COLS);
        const i32 col = (i32)blockIdx.x * GROUPS * COLS + n;
        if (m >= a.row.count || col >= a.col.count) continue;
        epi_acc total[1] = { 0 };
#if NORM
        total[0] = norm_result(a, part + n / COLS * SPLIT * NORM_SUMS, n % COLS, col, row_at[0].at);
#else
#pragma unroll
        for (i32 s = 0; s < SPLIT; s++) total[0] += part[((n / COLS * SPLIT + s) * ROWS + m) * COLS + n % COLS];
#endif
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
