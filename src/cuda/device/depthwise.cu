/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise.cu      D[n, z, y, x, c] = epilogue(sum over taps of X[n, z.., y.., x.., c / MULT] * W[tap, c])
 *
 *   thread  V channels (16 bytes of weights) of PIX adjacent results of a row: an image vector is read once for all of them
 *   block   C_THREADS threads across channels, then X_THREADS * PIX results across, Y_THREADS rows of the planes
 *   grid    x: ((image * tiles_y + y) * tiles_x + x) * tiles_c + channels
 *   shared  the weights of the block's channels, in their type: copied before the dependency wait
 *
 * Integers of 8 bits are f16 among the weights and f32 in sums, which are exact: 192 taps come to less than 2^24.
 *
 * X_VECTOR: the channels of the image are adjacent and aligned; else they are read one at a time, at any stride.
 * TRIGGER: the next grid may start 1: at the top, 2: once the first rows are asked for, 3: before the epilogue.
 * IS_TALL: the one axis of RANK 3 is that of rows.
 * -D: KD KH KW STRIDE_W DILATION_W PIX C_THREADS X_THREADS Y_THREADS X_VECTOR MULT RANK TRIGGER HAS_ZERO_X
 * HAS_ZERO_W; generated.cuh: type_x, type_w, zero_t */
#include "prelude.cuh"
#include "depthwise_args.h"
#include "generated.cuh"

enum {
    V = 16 / (i32)sizeof(type_w),
    WORDS = V * (i32)sizeof(type_x) < 16 ? 2 : 4, /* registers of a thread's channels of the image */
    THREADS = C_THREADS * X_THREADS * Y_THREADS,
    CHANNELS = C_THREADS * V,
    LINES = KD * KH,
    SPAN = (PIX - 1) * STRIDE_W + (KW - 1) * DILATION_W + 1
};
/* Registers that a thread needs to have all its loads under way, and so the blocks to ask for. */
enum {
    /* Rows of the image that are asked for together. */
    HELD = !X_VECTOR ? 1 : LINES * SPAN * WORDS <= 100 ? LINES : SPAN * WORDS <= 50 ? 100 / (SPAN * WORDS) : 1,
    REGISTERS = (PIX + KW + 1) * V + HELD * SPAN * WORDS + 40,
    FIT = 65536 / (THREADS * (REGISTERS < 255 ? REGISTERS : 255)), BLOCKS = FIT > 0 ? FIT : 1
};

template <int BYTES> struct raw_of { typedef u32x4 type; };
template <> struct raw_of<8> { typedef u32x2 type; };
union chunk { raw_of<V * (i32)sizeof(type_x)>::type raw; type_x at[V]; };
union weight_chunk { u32x4 raw; type_w at[V]; };

DEVICE float widen(float x) { return x; }
DEVICE float widen(f16 x) { return to_float(x); }
DEVICE float widen(bf16 x) { return to_float(x); }
DEVICE float widen(i8 x) { return (float)x; }
DEVICE float widen(u8 x) { return (float)x; }

/* The tap by which result p reads column j of the span; -1: it does not. */
DEVICE constexpr i32 tap_of(i32 j, i32 p)
{
    const i32 s = j - p * STRIDE_W;
    return s >= 0 && s % DILATION_W == 0 && s / DILATION_W < KW ? s / DILATION_W : -1;
}
DEVICE constexpr bool is_read(i32 j)
{
    for (i32 p = 0; p < PIX; p++)
        if (tap_of(j, p) >= 0) return true;
    return false;
}

/* The thread's channels at column ix of a row; outside what stands for zero. */
DEVICE void chunk_read(const depthwise_args &a, const type_x *line, i32 ix, i32 c0, bool is_row, const chunk &zero,
                       chunk &to)
{
    const bool is_inside = is_row && (u32)ix < (u32)a.in_w;
    to.raw = zero.raw;
    if (X_VECTOR) {
        if (is_inside) to.raw = *(const raw_of<V * (i32)sizeof(type_x)>::type *)(line + ix * a.x_col + c0);
        return;
    }
#pragma unroll
    for (i32 u = 0; u < V; u++) {
        const i32 c = MULT == 1 ? c0 + u : div_fast(c0 + u, a.multiplier);
        if (is_inside && c0 + u < a.channels) to.at[u] = line[ix * a.x_col + c * a.x_channel];
    }
}

KERNEL void __launch_bounds__(THREADS, BLOCKS)
    depthwise(const __grid_constant__ depthwise_args a, const __grid_constant__ epi_args e)
{
    type_w *const weights = (type_w *)shared_base();
    const i32 t = (i32)threadIdx.x, ct = t % C_THREADS, xt = t / C_THREADS % X_THREADS, yt = t / C_THREADS / X_THREADS;
    i32 tile = (i32)blockIdx.x, c_tile, x_tile, y_tile, image;
    divmod_fast(tile, a.tiles_c, tile, c_tile);
    divmod_fast(tile, a.tiles_x, tile, x_tile);
    divmod_fast(tile, a.tiles_y, image, y_tile);
#if TRIGGER == 1
    grid_trigger();
#endif
    const type_w *const w = (const type_w *)a.w + c_tile * CHANNELS;
    for (i32 i = t; i < LINES * KW * C_THREADS; i += THREADS)
        copy_async16(shared_address(weights + i * V), w + (i64)(i / C_THREADS) * a.w_pitch + i % C_THREADS * V, true);
    copy_commit();
    const i32 c0 = c_tile * CHANNELS + ct * V, out_row = y_tile * Y_THREADS + yt, x0 = (x_tile * X_THREADS + xt) * PIX;
    const bool is_live = c0 < a.channels && out_row < a.rows && x0 < a.out_w;
    i32 z = 0, y = out_row;
    if (RANK == 5) divmod_fast(out_row, a.out_h, z, y);
    const i32 column = x0 * STRIDE_W - a.pad_w, row = y * a.stride_h - a.pad_h, plane = z * a.stride_d - a.pad_d;
    float acc[PIX][V] = {};
    chunk zero;
    float zero_w[V];
    zero.raw = {};
    float zero_x = 0;
#if HAS_ZERO_X
#pragma unroll
    for (i32 u = 0; u < V; u++) zero.at[u] = *(const type_x *)a.zero_x;
    zero_x = widen(zero.at[0]);
#endif
#pragma unroll
    for (i32 u = 0; u < V; u++)
        zero_w[u] = HAS_ZERO_W && c0 + u < a.channels ? (float)((const zero_t *)a.zero_w)[(c0 + u) * a.zero_w_step] : 0;
    grid_wait();
    copy_wait<0>();
    sync_block();
    const type_x *const x = (const type_x *)a.x + image * a.x_image;
#pragma unroll 1
    for (i32 r0 = 0; r0 < LINES; r0 += HELD) {
        chunk in[HELD][SPAN];
#pragma unroll
        for (i32 r = 0; r < HELD; r++) {
            const i32 iy = row + (r0 + r) % KH * a.dilation_h, iz = plane + (r0 + r) / KH * a.dilation_d;
            const bool is_row = is_live && (LINES % HELD == 0 || r0 + r < LINES) && (u32)iy < (u32)a.in_h &&
                                (RANK < 5 || (u32)iz < (u32)a.in_d);
            const type_x *const line = x + iy * a.x_row + (RANK == 5 ? iz * a.x_plane : 0);
#pragma unroll
            for (i32 j = 0; j < SPAN; j++)
                if (is_read(j)) chunk_read(a, line, column + j, c0, is_row, zero, in[r][j]);
        }
#if TRIGGER == 2
        if (r0 == 0) grid_trigger();
#endif
#pragma unroll
        for (i32 r = 0; r < HELD; r++) {
            if (LINES % HELD != 0 && r0 + r >= LINES) break;
            float tap[KW][V];
#pragma unroll
            for (i32 s = 0; s < KW; s++) {
                weight_chunk v;
                v.raw = *(const u32x4 *)(weights + (((r0 + r) * KW + s) * C_THREADS + ct) * V);
#pragma unroll
                for (i32 u = 0; u < V; u++) tap[s][u] = widen(v.at[u]) - zero_w[u];
            }
#pragma unroll
            for (i32 j = 0; j < SPAN; j++) {
                if (!is_read(j)) continue;
                float v[V];
#pragma unroll
                for (i32 u = 0; u < V; u++) v[u] = widen(in[r][j].at[u]) - zero_x;
#pragma unroll
                for (i32 p = 0; p < PIX; p++) {
                    const i32 s = tap_of(j, p);
                    if (s < 0) continue;
#pragma unroll
                    for (i32 u = 0; u < V; u++) acc[p][u] += v[u] * tap[s][u];
                }
            }
        }
    }
#if TRIGGER == 3
    grid_trigger();
#endif
    if (!is_live) return;
    const i32 n = smaller(a.channels - c0, (i32)V);
#pragma unroll
    for (i32 p = 0; p < PIX; p++) {
        if (x0 + p >= a.out_w) break;
#if RANK == 3
        const i32 at[EPI_RANK] = { image, 0, IS_TALL ? y : x0 + p };
#elif RANK == 4
        const i32 at[EPI_RANK] = { image, 0, y, x0 + p };
#else
        const i32 at[EPI_RANK] = { image, 0, z, y, x0 + p };
#endif
        epi_row here;
        epi_begin(e, here, at);
        epi_acc v[V];
#pragma unroll
        for (i32 u = 0; u < V; u++) v[u] = (epi_acc)acc[p][u];
        epi_run<V>(e, here, c0, n, v);
    }
}
