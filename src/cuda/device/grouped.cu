/* SPDX-License-Identifier: Apache-2.0 */
/* grouped.cu      D[n, z, y, x, c] = epilogue(sum over taps and the CG channels of c's group of X * W)
 *
 *   thread  NV channels of one group for PIX adjacent results of a row; sums in registers
 *   block   C_THREADS such runs of channels, then X_THREADS * PIX results across, Y_THREADS rows of the planes
 *   grid    x: ((image * tiles_y + y) * tiles_x + x) * tiles_c + channels
 *   W       packed as floats [run][tap][CG][NV], w_pitch floats a run, which spreads runs over the banks
 *   shared  the weights of the block's runs: copied before the dependency wait
 *
 * IS_TALL: the one axis of RANK 3 is that of rows. X_UNIT: channels read at once.
 * -D: KD KH KW CG NV PIX STRIDE_W DILATION_W C_THREADS X_THREADS Y_THREADS X_UNIT RANK TRIGGER; generated.cuh: type_x */
#include "prelude.cuh"
#include "depthwise_args.h"
#include "generated.cuh"

enum { THREADS = C_THREADS * X_THREADS * Y_THREADS };
/* Registers that a thread needs to have all its loads under way, and so the blocks to ask for. */
enum {
    REGISTERS = PIX * (CG + NV) + NV + 72,
    FIT = 65536 / (THREADS * (REGISTERS < 255 ? REGISTERS : 255)), BLOCKS = FIT > 0 ? FIT : 1
};

DEVICE float widen(float x) { return x; }
DEVICE float widen(f16 x) { return to_float(x); }
DEVICE float widen(bf16 x) { return to_float(x); }

KERNEL void __launch_bounds__(THREADS, BLOCKS)
    grouped(const __grid_constant__ depthwise_args a, const __grid_constant__ epi_args e)
{
    float *const weights = (float *)shared_base();
    const i32 t = (i32)threadIdx.x, ct = t % C_THREADS, xt = t / C_THREADS % X_THREADS, yt = t / C_THREADS / X_THREADS;
    i32 tile = (i32)blockIdx.x, c_tile, x_tile, y_tile, image;
    divmod_fast(tile, a.tiles_c, tile, c_tile);
    divmod_fast(tile, a.tiles_x, tile, x_tile);
    divmod_fast(tile, a.tiles_y, image, y_tile);
#if TRIGGER == 1
    grid_trigger();
#endif
    /* Runs behind the last are packed as zeros. */
    const float *const w = (const float *)a.w + (i64)c_tile * C_THREADS * a.w_pitch;
    for (i32 i = t; i < a.w_pitch / 4 * C_THREADS; i += THREADS)
        copy_async16(shared_address(weights + i * 4), w + i * 4, true);
    copy_commit();
    const i32 run = c_tile * C_THREADS + ct, out_row = y_tile * Y_THREADS + yt, x0 = (x_tile * X_THREADS + xt) * PIX;
    const i32 c0 = run * NV, group = div_fast(run, a.multiplier);
    const bool is_live = c0 < a.channels && out_row < a.rows && x0 < a.out_w;
    i32 z = 0, y = out_row;
    if (RANK == 5) divmod_fast(out_row, a.out_h, z, y);
    const i32 column = x0 * STRIDE_W - a.pad_w, row = y * a.stride_h - a.pad_h, plane = z * a.stride_d - a.pad_d;
    float acc[PIX][NV] = {};
    grid_wait();
    copy_wait<0>();
    sync_block();
    const type_x *const x = (const type_x *)a.x + image * a.x_image + group * CG * a.x_channel;
#pragma unroll 1
    for (i32 r = 0; r < KD * KH; r++) {
        const i32 iy = row + r % KH * a.dilation_h, iz = plane + r / KH * a.dilation_d;
        if (!is_live || (u32)iy >= (u32)a.in_h || (RANK == 5 && (u32)iz >= (u32)a.in_d)) continue;
#pragma unroll
        for (i32 s = 0; s < KW; s++) {
            float in[PIX][CG];
#pragma unroll
            for (i32 p = 0; p < PIX; p++) {
                const i32 ix = column + p * STRIDE_W + s * DILATION_W;
                const bool is_inside = (u32)ix < (u32)a.in_w;
                const type_x *const from = x + (RANK == 5 ? iz * a.x_plane : 0) + iy * a.x_row + ix * a.x_col;
#pragma unroll
                for (i32 k = 0; k < CG; k += X_UNIT) {
                    vec<type_x, X_UNIT> v = {};
                    if (is_inside) v = *(const vec<type_x, X_UNIT> *)(from + k * a.x_channel);
#pragma unroll
                    for (i32 u = 0; u < X_UNIT; u++) in[p][k + u] = widen(v.at[u]);
                }
            }
            const float *const tap = weights + ct * a.w_pitch + (r * KW + s) * CG * NV;
#pragma unroll
            for (i32 k = 0; k < CG; k++) {
                const vec<float, NV> v = *(const vec<float, NV> *)(tap + k * NV);
#pragma unroll
                for (i32 p = 0; p < PIX; p++)
#pragma unroll
                    for (i32 u = 0; u < NV; u++) acc[p][u] += in[p][k] * v.at[u];
            }
        }
    }
#if TRIGGER == 3
    grid_trigger();
#endif
    if (!is_live) return;
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
        epi_acc v[NV];
#pragma unroll
        for (i32 u = 0; u < NV; u++) v[u] = acc[p][u];
        epi_run<NV>(e, here, c0, NV, v);
    }
}
