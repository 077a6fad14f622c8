/* SPDX-License-Identifier: Apache-2.0 */
/* attention_group.cuh - what a warpgroup of Hopper does for 64 queries of a head and a tile of BN keys: scores, factors,
 * sums, results. Operands come by tensor copies, 64 elements wide, swizzled. 64 x n sums lie as 64 x 16 factors do, so
 * probabilities stay in the registers of their scores.
 *
 *   DEPTH  head size of q and k, rounded up to 16      WIDTH  of v, rounded up to 64      BN      IS_BF16 */
#ifndef ATTENTION_GROUP_CUH
#define ATTENTION_GROUP_CUH

#include "attention.cuh"
#include "attention_wgmma_args.h"
#include "hopper.cuh"

enum { LINE = 128 };                            /* bytes of 64 elements */
enum { BOXES_K = (DEPTH + 63) / 64, BOXES_V = WIDTH / 64, BOXES_Y = BOXES_K > BOXES_V ? BOXES_K : BOXES_V };
enum { Q_BOX = 64 * LINE, Q_GROUP = BOXES_Y * Q_BOX };          /* Q_GROUP: a warpgroup's queries, or its results */
enum { BOX = BN * LINE, K_BYTES = BOXES_K * BOX, V_BYTES = BOXES_V * BOX };

DEVICE void multiply(float (&c)[BN / 8][4], u64 a, u64 b, i32 adds)
{
#if IS_BF16
    product_bf16(c, a, b, adds);
#else
    product_f16(c, a, b, adds);
#endif
}

/* Scores of 64 queries and a tile of keys; to be waited for. */
DEVICE void start_scores(float (&s)[BN / 8][4], u32 q, u32 k)
{
    const u64 a = matrix_rows128(q), b = matrix_rows128(k);
#pragma unroll
    for (int d = 0; d < DEPTH / 16; d++)
        multiply(s, a + d / 4 * (Q_BOX >> 4) + d % 4 * 2, b + d / 4 * (BOX >> 4) + d % 4 * 2, d > 0);
    product_commit();
}

/* Adds probabilities by values of a tile, or writes them where they are the first; to be waited for. */
DEVICE void start_sums(float (&o)[WIDTH / 8][4], const u32 (&p)[BN / 16][4], u32 v, bool is_first = false)
{
    const u64 b = matrix_columns128<BOX>(v);
#pragma unroll
    for (int j = 0; j < BN / 16; j++)
#if IS_BF16
        product_turned_bf16(o, p[j], b + j * (16 * LINE >> 4), !is_first || j > 0);
#else
        product_turned_f16(o, p[j], b + j * (16 * LINE >> 4), !is_first || j > 0);
#endif
    product_commit();
}

/* Powers into the factors of the second product, once the one before has been waited for. */
DEVICE void take_factors(const float (&s)[BN / 8][4], u32 (&p)[BN / 16][4])
{
#pragma unroll
    for (int j = 0; j < BN / 16; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            p[j][2 * h] = pack(s[2 * j + h][0], s[2 * j + h][1]);
            p[j][2 * h + 1] = pack(s[2 * j + h][2], s[2 * j + h][3]);
        }
}

DEVICE void fetch(const tensor_map *map, u32 to, u32 bar, i32 boxes, i32 box, i32 token, i32 head, i32 batch)
{
    for (i32 i = 0; i < boxes; i++) copy_tensor(to + i * box, map, bar, i * 64, token, head, batch);
}

/* Results of a warp's 16 queries from `row0` on, through the place of its queries: 16-byte units of a row, exchanged by
 * its number. `sum` are this thread's sums of powers. */
DEVICE void put_results(const attention_args &a, u8 *shared, const float (&o)[WIDTH / 8][4], const float (&sum)[2],
                        i32 head, i32 batch, i32 row0)
{
    const u32 lane = lane_id();
    u8 *const part = shared + warp_id() % 4 * 16 * WIDTH * 2;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float total = sum[r];
        total += shuffle_xor(total, 1);
        total += shuffle_xor(total, 2);
        const bool is_none = total == 0;
        const float share = 1 / total; /* NaN is passed on */
        const u32 line = (lane >> 2) + 8 * r;
#pragma unroll
        for (int j = 0; j < WIDTH / 8; j++)
            *(u32 *)(part + line * WIDTH * 2 + ((j ^ (line & 7)) * 16) + (lane & 3) * 4) =
                pack(is_none ? 0.0f : o[j][2 * r] * share, is_none ? 0.0f : o[j][2 * r + 1] * share);
    }
    sync_warp();
    /* LINES lines at a time; with 192 columns, lanes are left over. */
    enum { UNITS = WIDTH / 8, LINES = 32 / UNITS };
    const i32 first = (i32)lane / UNITS, unit = (i32)lane % UNITS, count = smaller(16, a.queries - row0);
    u16 *y = (u16 *)a.y + batch * a.y_stride[0] + head * a.y_stride[1] + (row0 + first) * a.y_stride[2] + unit * 8;
    const i64 step = LINES * a.y_stride[2];
    if (first >= LINES || unit * 8 >= a.width) return;
#pragma unroll 4
    for (i32 line = first; line < count; line += LINES, y += step)
        *(u32x4 *)y = *(const u32x4 *)(part + line * WIDTH * 2 + (unit ^ (line & 7)) * 16);
}

#endif
