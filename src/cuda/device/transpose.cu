/* SPDX-License-Identifier: Apache-2.0 */
/* transpose.cu - tiles of 64 x 64 elements of SIZE bytes turned over in shared memory, so that reads run along the
 * source's innermost axis and writes along the result's, 16 bytes at once where both allow it. */
#include "copy_args.h"
#include "emit.cuh"

#define TILE 64
#define EACH (16 / SIZE)        /* elements of 16 bytes */
/* An odd number of words, or of bytes with an odd number of words a few rows on. */
#define PITCH (TILE * SIZE + 4)

KERNEL void transpose(const __grid_constant__ transpose_args p)
{
    u8 *const tile = shared_base();
    i32 rest, tile_x, tile_y;
    divmod_fast((i32)blockIdx.x, p.tiles_x, rest, tile_x);
    i32 batch = rest;
    divmod_fast(batch, p.tiles_y, rest, tile_y);
    const u8 *src = (const u8 *)p.src;
    u8 *dst = (u8 *)p.dst;
    for (int k = p.axes - 1; k >= 0; k--) {
        i32 line, at;
        divmod_fast(rest, p.dim[k], line, at);
        src += at * p.src_step[k];
        dst += at * p.dst_step[k];
        rest = line;
    }
    const i32 x0 = tile_x * TILE, y0 = tile_y * TILE;
    const i32 left_x = smaller(p.x - x0, TILE), left_y = smaller(p.y - y0, TILE);
    src += x0 * p.src_x + y0 * p.src_y;
    dst += x0 * p.dst_x + y0 * p.dst_y;
    grid_wait();
    if (p.is_wide_in) {
        constexpr i32 row = TILE / EACH;
#pragma unroll
        for (i32 t = threadIdx.x; t < row * TILE; t += 256) {
            const i32 y = t / row, x = t % row * EACH;
            if (y >= left_y || x >= left_x) continue;
            const u32x4 v = *(const u32x4 *)(src + y * p.src_y + x * SIZE);
            const u32 w[4] = { v.x, v.y, v.z, v.w };
            u32 *to = (u32 *)(tile + y * PITCH + x * SIZE);
#pragma unroll
            for (int k = 0; k < 4; k++) to[k] = w[k];
        }
    } else {
        for (i32 t = threadIdx.x; t < TILE * TILE; t += 256) {
            const i32 y = t / TILE, x = t % TILE;
            if (y >= left_y || x >= left_x) continue;
            u32 w[EMIT_WORDS(SIZE, 1)] = {};
            emit_read<SIZE>(w, 0, src + y * p.src_y + x * p.src_x);
            if constexpr (SIZE == 8) *(u32 *)(tile + y * PITCH + x * SIZE) = w[0], *(u32 *)(tile + y * PITCH + x * SIZE + 4) = w[1];
            else emit_write<SIZE>(w, 0, tile + y * PITCH + x * SIZE);
        }
    }
    sync_block();
    grid_trigger();
    if (p.is_wide_out) {
        constexpr i32 column = TILE / EACH;
#pragma unroll
        for (i32 t = threadIdx.x; t < column * TILE; t += 256) {
            const i32 x = t / column, y = t % column * EACH;
            if (y >= left_y || x >= left_x) continue;
            u32 w[4] = {};
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                const u8 *from = tile + (y + k) * PITCH + x * SIZE;
                if constexpr (SIZE == 8) w[2 * k] = *(const u32 *)from, w[2 * k + 1] = *(const u32 *)(from + 4);
                else emit_read<SIZE>(w, k, from);
            }
            *(u32x4 *)(dst + x * p.dst_x + y * SIZE) = u32x4{ w[0], w[1], w[2], w[3] };
        }
    } else {
        for (i32 t = threadIdx.x; t < TILE * TILE; t += 256) {
            const i32 x = t / TILE, y = t % TILE;
            if (y >= left_y || x >= left_x) continue;
            const u8 *from = tile + y * PITCH + x * SIZE;
            u32 w[EMIT_WORDS(SIZE, 1)] = {};
            if constexpr (SIZE == 8) w[0] = *(const u32 *)from, w[1] = *(const u32 *)(from + 4);
            else emit_read<SIZE>(w, 0, from);
            emit_write<SIZE>(w, 0, dst + x * p.dst_x + y * p.dst_y);
        }
    }
}
