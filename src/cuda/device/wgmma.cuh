/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma.cuh - what the kernels of warpgroup products share: d = epilogue(a b'), a [m, k], b [n, k], f16 or bf16.
 *
 * A tile is TM rows by TN columns. The instruction multiplies 64 lines of one side by BN of the other: the lines are
 * a's, or, SWAPPED, b's, so that a few rows of a do not leave most of it empty.
 *
 *   BN       8, 16, 32, 64, 128, 192 or 256      IS_BF16
 *   LINES    groups of 64 lines: 1 or 2          SWAPPED   the lines are columns of d
 *   PACKED   b is a constant, packed             BATCHED   many products: the outermost axes of d number them
 *   ROW_AXES, ROW_ORDER   how many axes of the space are rows, and which: a hex digit each, innermost lowest
 *   COLUMN_AXIS           the axis of the space that is columns
 *   IM2COL   a convolution: rows are pixels [N, H, W], k runs over taps and the channels of each
 *   PAIRED   the two blocks of a cluster take tiles one below the other: each fetches half of the columns for both */
#ifndef WGMMA_CUH
#define WGMMA_CUH

#include "hopper.cuh"
#include "wgmma_args.h"
#include "generated.cuh"

enum { TM = SWAPPED ? BN : 64 * LINES, TN = SWAPPED ? 64 * LINES : BN, BK = 64, BAND = 8 };
enum { A_BYTES = TM * BK * 2, B_BYTES = TN * BK * 2, STAGE = A_BYTES + B_BYTES };

/* One step: the lines of warpgroup `line_group` by BN of the other side. */
DEVICE void step_run(float (&c)[BN / 8][4], u32 stage, u32 line_group, bool adds)
{
    const u64 x = matrix_rows128(stage + (SWAPPED ? A_BYTES : 0) + line_group * 64 * BK * 2);
    const u64 y = matrix_rows128(stage + (SWAPPED ? 0 : A_BYTES));
    product_begin();
#pragma unroll
    for (int k = 0; k < BK / 16; k++)
#if IS_BF16
        product_bf16(c, x + 2 * k, y + 2 * k, adds || k > 0);
#else
        product_f16(c, x + 2 * k, y + 2 * k, adds || k > 0);
#endif
    product_commit();
}

/* A tile: its first row and column, of product z; and, of a convolution, the pixel of its first row. */
struct place { i32 m, n, z, x, y, image; };

/* (Of a pair, `tile` and tiles_m count pairs.)
 * Tiles run down BAND rows of tiles before they go right, so that those at work at one time share a and b in L2. */
DEVICE place place_of(const wgmma_args &a, i32 tile, i32 rank)
{
    place p = {};
#if BATCHED
    divmod_fast(tile, a.tile_div, p.z, tile);
#endif
    const i32 band = tile / (BAND * a.tiles_n), first = band * BAND, rest = tile - band * BAND * a.tiles_n;
    const i32 rows = smaller((i32)BAND, a.tiles_m - first), column = rest / rows;
    p.m = ((first + rest - column * rows) * (1 + PAIRED) + rank) * TM;
    p.n = column * TN;
#if IM2COL
    i32 line;
    divmod_fast(PAIRED ? smaller(p.m, a.m - 1) : p.m, a.row_div[0], line, p.x);
    divmod_fast(line, a.row_div[1], p.image, p.y);
    p.x = p.x * a.stride_x - a.pad_x;
    p.y = p.y * a.stride_y - a.pad_y;
#endif
    return p;
}

/* Row `row` of all rows of all products, in the space. */
DEVICE void position(const wgmma_args &a, i32 row, i32 (&at)[EPI_RANK])
{
#pragma unroll
    for (int i = 0; i < EPI_RANK; i++) at[i] = 0;
#pragma unroll
    for (int i = 0; i < ROW_AXES; i++) {
        i32 quotient = 0, remainder = row;
        if (i + 1 < ROW_AXES) divmod_fast(row, a.row_div[i], quotient, remainder);
        at[(unsigned long long)ROW_ORDER >> 4 * i & 15] = remainder;
        row = quotient;
    }
}

DEVICE void fetch_a(const wgmma_args &a, u32 stage, u32 bar, i32 step, const place &p)
{
    const tensor_map *map = (const tensor_map *)a.map_a;
#if IM2COL
    i32 tap, chunk, line, column;
    divmod_fast(step, a.chunk_div, tap, chunk);
    divmod_fast(tap, a.tap_div, line, column);
    copy_im2col(stage, map, bar, chunk * BK, p.x, p.y, p.image, (u16)(column * a.dilation_x),
                (u16)(line * a.dilation_y));
#elif BATCHED
    copy_tensor(stage, map, bar, step * BK, p.m, p.z);
#else
    copy_tensor(stage, map, bar, step * BK, p.m);
#endif
}

DEVICE void fetch_b(const wgmma_args &a, u32 stage, u32 bar, i32 step, const place &p)
{
#if PACKED
    const i64 tile = (BATCHED ? (i64)p.z * a.tiles_n : 0) + p.n / TN;
    const u8 *from = (const u8 *)a.b + (tile * a.steps + step) * B_BYTES;
#if PAIRED
    const u32 half = cluster_rank() * (B_BYTES / 2);
    copy_bulk_to(stage + A_BYTES + half, from + half, B_BYTES / 2, bar, 3);
#else
    copy_bulk(stage + A_BYTES, from, B_BYTES, bar);
#endif
#elif PAIRED
    const u32 rank = cluster_rank();
    copy_tensor_to(stage + A_BYTES + rank * (B_BYTES / 2), (const tensor_map *)a.map_b, bar, step * BK,
                   p.n + (i32)rank * (TN / 2), 3);
#elif BATCHED
    copy_tensor(stage + A_BYTES, (const tensor_map *)a.map_b, bar, step * BK, p.n, p.z);
#else
    copy_tensor(stage + A_BYTES, (const tensor_map *)a.map_b, bar, step * BK, p.n);
#endif
}

#endif
