/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma.cuh - what the kernels of warpgroup products share: d = epilogue(a b'), a [m, k], b [n, k].
 *
 * A tile is TM rows by TN columns. The instruction multiplies 64 lines of one side by BN of the other: the lines are
 * a's, or, SWAPPED, b's, so that a few rows of a do not leave most of it empty. Sums are float, of integers i32: there
 * the sum of (x - zero) w is that of x w, less zero times the sum of w, which is packed behind b.
 *
 *   BN       8, 16 or a multiple of 32 to 256    TYPE      WGMMA_F16, …
 *   DEPTH    32-byte slices of a step's 128 bytes that are not empty
 *   LINES    groups of 64 lines: 1, 2 or 3       SWAPPED   the lines are columns of d
 *   PACKED   b is a constant, packed             BATCHED   many products: the outermost axes of d number them
 *   ROW_AXES, ROW_ORDER   how many axes of the space are rows, and which: a hex digit each, innermost lowest
 *   KEPT     steps of all of b's columns of a block's tiles, which stay in shared memory; 0: they come with a's
 *   SPATIAL  axes of an image: rows are pixels [N, …, H, W], k runs over taps and the channels of each; 0: no such image
 *   HAS_ZERO_X            a, of integers, has a zero point */
#ifndef WGMMA_CUH
#define WGMMA_CUH

#include "hopper.cuh"
#include "wgmma_args.h"
#include "generated.cuh"

enum { TM = SWAPPED ? BN : 64 * LINES, TN = SWAPPED ? 64 * LINES : BN, BAND = 8 };
enum { STEP_BYTES = 128, BK = TYPE >= WGMMA_S8 ? STEP_BYTES : STEP_BYTES / 2 };
enum { A_BYTES = TM * STEP_BYTES, B_BYTES = TN * STEP_BYTES, STAGE = A_BYTES + (KEPT ? 0 : B_BYTES) };

#if TYPE >= WGMMA_S8
typedef i32 sum;
#else
typedef float sum;
#endif

DEVICE void product(sum (&c)[BN / 8][4], u64 lines, u64 others, bool adds)
{
#if TYPE == WGMMA_F16
    product_f16(c, lines, others, adds);
#elif TYPE == WGMMA_BF16
    product_bf16(c, lines, others, adds);
#elif TYPE == WGMMA_S8
    product_s8(c, lines, others, adds);
#elif SWAPPED
    product_s8_u8(c, lines, others, adds);
#else
    product_u8_s8(c, lines, others, adds);
#endif
}

/* One step of a and b in shared memory: N groups of 64 lines, from `line_group` on, by BN of the other side. */
template <int N> DEVICE void step_run(sum (&c)[N][BN / 8][4], u32 a, u32 b, u32 line_group, bool adds)
{
    const u64 y = matrix_rows128(SWAPPED ? a : b);
    product_begin();
#pragma unroll
    for (int i = 0; i < N; i++) {
        const u64 x = matrix_rows128((SWAPPED ? b : a) + (line_group + i) * 64 * STEP_BYTES);
#pragma unroll
        for (int k = 0; k < DEPTH; k++) product(c[i], x + 2 * k, y + 2 * k, adds || k > 0);
    }
    product_commit();
}

/* What a's zero point adds to 8 columns of product z, from column `first` on. */
struct zero_terms {
#if HAS_ZERO_X
    i32 of[8];
#endif
};

DEVICE void zero_fetch(const wgmma_args &a, [[maybe_unused]] i32 z, [[maybe_unused]] i32 first,
                       [[maybe_unused]] zero_terms &x)
{
#if HAS_ZERO_X
#if TYPE == WGMMA_S8
    const i32 zero = *(const i8 *)a.zero_x;
#else
    const i32 zero = *(const u8 *)a.zero_x;
#endif
    const i32 *from = (const i32 *)(a.b + a.sums) + (BATCHED ? (i64)z * a.tiles_n * TN : 0) + first;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const vec<i32, 4> s = *(const vec<i32, 4> *)(from + 4 * h);
#pragma unroll
        for (int i = 0; i < 4; i++) x.of[4 * h + i] = zero * s.at[i];
    }
#else
    (void)a;
#endif
}

DEVICE void zero_take(epi_acc (&v)[8], [[maybe_unused]] const zero_terms &x)
{
#if HAS_ZERO_X
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] -= x.of[i];
#else
    (void)v;
#endif
}

/* A tile: its first row and column, of product z; and, of a convolution, the pixel of its first row, innermost axis
 * first, the image last. */
struct place { i32 m, n, z, pixel[SPATIAL + 1]; };

/* Tiles run down BAND rows of tiles before they go right, so that those at work at one time share a and b in L2. With b
 * KEPT all tiles of a block are of the same columns: there are as many blocks as a multiple of the columns of tiles. */
DEVICE place place_of(const wgmma_args &a, i32 tile)
{
    place p = {};
#if BATCHED
    divmod_fast(tile, a.tile_div, p.z, tile);
#endif
#if KEPT
    p.m = tile / a.tiles_n * TM;
    p.n = tile % a.tiles_n * TN;
#else
    const i32 band = tile / (BAND * a.tiles_n), first = band * BAND, rest = tile - band * BAND * a.tiles_n;
    const i32 rows = smaller((i32)BAND, a.tiles_m - first), column = rest / rows;
    p.m = (first + rest - column * rows) * TM;
    p.n = column * TN;
#endif
#if SPATIAL
    p.pixel[SPATIAL] = p.m;
#pragma unroll
    for (int i = 0; i < SPATIAL; i++) {
        i32 at;
        divmod_fast(p.pixel[SPATIAL], a.row_div[i], p.pixel[SPATIAL], at);
        p.pixel[i] = at * a.stride[i] - a.pad[i];
    }
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
#if SPATIAL
    i32 tap, chunk;
    u16 moved[SPATIAL];
    divmod_fast(step, a.chunk_div, tap, chunk);
#pragma unroll
    for (int i = 0; i < SPATIAL; i++) {
        i32 at = tap;
        if (i + 1 < SPATIAL) divmod_fast(tap, a.tap_div[i], tap, at);
        moved[i] = (u16)(at * a.dilation[i]);
    }
    copy_im2col(stage, map, bar, chunk * BK, p.pixel, moved);
#elif BATCHED
    copy_tensor(stage, map, bar, step * BK, p.m, p.z);
#else
    copy_tensor(stage, map, bar, step * BK, p.m);
#endif
}

DEVICE void fetch_b(const wgmma_args &a, u32 to, u32 bar, i32 step, const place &p)
{
#if PACKED
    const i64 tile = (BATCHED ? (i64)p.z * a.tiles_n : 0) + p.n / TN;
    const u8 *from = (const u8 *)a.b + (tile * a.steps + step) * B_BYTES;
    copy_bulk(to, from, B_BYTES, bar);
#elif BATCHED
    copy_tensor(to, (const tensor_map *)a.map_b, bar, step * BK, p.n, p.z);
#else
    copy_tensor(to, (const tensor_map *)a.map_b, bar, step * BK, p.n);
#endif
}

#endif
