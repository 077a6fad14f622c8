/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma.cu - products of matrices on Hopper's warpgroups: d = epilogue(a b'), a [m, k], b [n, k], f16 or bf16.
 *
 * Blocks stay and take tile after tile of 64 * CONSUMERS rows by BN columns. A producer warpgroup keeps STAGES steps of 64
 * along k on their way (a by tensor copies, packed b by one bulk copy each); each consumer warpgroup multiplies 64 rows. While they write a tile's results, 64 columns at a time through shared memory so that rows are written in
 * 16-byte units, the producer already fetches the next tile. The first steps of b are fetched before the dependency wait.
 *
 *   BN       64, 128 or 256                       IS_BF16
 *   CONSUMERS  1 or 2
 *   STAGES                                        PACKED    b is a constant, packed
 *   ROW_AXES, ROW_ORDER   how many axes of the space are rows, and which: a hex digit each, innermost lowest
 *   COLUMN_AXIS           the axis of the space that is columns
 *   IM2COL   a convolution: rows are pixels [N, H, W], k runs over taps (TAPS_X in a row of the filter) and CHUNKS of 64
 *            channels in each */
#include "hopper.cuh"
#include "wgmma_args.h"
#include "generated.cuh"

enum { BM = 64 * CONSUMERS, BK = 64, THREADS = 128 * (1 + CONSUMERS), GROUP = 8 };
enum { A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE = A_BYTES + B_BYTES };
enum { LINE = 64 + 4 };                          /* floats of a staged row of 64 columns */
enum { PART = 16 * LINE * 4 };                   /* bytes of a warp's staging */
enum { PARTS_AT = STAGES * STAGE, BARS_AT = PARTS_AT + CONSUMERS * 4 * PART };

DEVICE void multiply(float (&c)[BN / 8][4], u64 a, u64 b, i32 adds)
{
#if IS_BF16
    product_bf16(c, a, b, adds);
#else
    product_f16(c, a, b, adds);
#endif
}

/* Tiles run down GROUP rows of tiles before they go right, so that those at work at one time share a and b in L2. */
DEVICE void tile_at(const wgmma_args &a, i32 tile, i32 &m, i32 &n)
{
    const i32 band = tile / (GROUP * a.tiles_n), first = band * GROUP, rest = tile - band * GROUP * a.tiles_n;
    const i32 rows = smaller((i32)GROUP, a.tiles_m - first);
    n = rest / rows;
    m = first + rest - n * rows;
}

DEVICE void position(const wgmma_args &a, i32 row, i32 column, i32 (&at)[EPI_RANK])
{
#pragma unroll
    for (int i = 0; i < EPI_RANK; i++) at[i] = 0;
    i32 rest = row;
#pragma unroll
    for (int i = 0; i < ROW_AXES; i++) {
        i32 quotient = 0, remainder = rest;
        if (i + 1 < ROW_AXES) divmod_fast(rest, a.row_div[i], quotient, remainder);
        at[(unsigned long long)ROW_ORDER >> 4 * i & 15] = remainder;
        rest = quotient;
    }
    at[COLUMN_AXIS] = column;
}

/* Where the rows of a tile begin. */
struct origin { i32 x, y, n; };

DEVICE origin origin_of(const wgmma_args &a, i32 m)
{
    origin o = { 0, m * BM, 0 };
#if IM2COL
    i32 rest, column, line, image;
    divmod_fast(m * BM, a.row_div[0], rest, column);
    divmod_fast(rest, a.row_div[1], image, line);
    o = { column * a.stride_x - a.pad_x, line * a.stride_y - a.pad_y, image };
#endif
    return o;
}

DEVICE void fetch_a(const wgmma_args &a, u32 stage, u32 bar, i32 step, const origin &o)
{
#if IM2COL
    const i32 tap = step / CHUNKS, chunk = step - tap * CHUNKS, line = tap / TAPS_X, column = tap - line * TAPS_X;
    copy_im2col(stage, (const tensor_map *)a.map_a, bar, chunk * BK, o.x, o.y, o.n, (u16)(column * a.dilation_x),
                (u16)(line * a.dilation_y));
#else
    copy_tensor(stage, (const tensor_map *)a.map_a, bar, step * BK, o.y);
#endif
}

DEVICE void fetch_b(const wgmma_args &a, u32 stage, u32 bar, i32 step, i32 n)
{
#if PACKED
    copy_bulk(stage + A_BYTES, (const u8 *)a.b + ((i64)n * a.steps + step) * B_BYTES, B_BYTES, bar);
#else
    copy_tensor(stage + A_BYTES, (const tensor_map *)a.map_b, bar, step * BK, n * BN);
#endif
}

KERNEL void __launch_bounds__(THREADS, CONSUMERS == 1 ? 2 : 1) wgmma(const __grid_constant__ wgmma_args a, const __grid_constant__ epi_args e)
{
    u8 *const shared = shared_base();
    const u32 base = shared_address(shared), full = base + BARS_AT, empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, 4 * CONSUMERS);
        }
        barrier_init_fence();
    }
    sync_block();
    if (threadIdx.x < 128) {
        registers_give<40>();
        if (threadIdx.x == 0) {
            prefetch_map((const tensor_map *)a.map_a);
            /* The first steps: b before the wait where it is a constant. */
            i32 m, n;
            tile_at(a, blockIdx.x, m, n);
            origin o = origin_of(a, m);
            const i32 early = PACKED && (i32)blockIdx.x < a.tiles ? smaller((i32)STAGES, a.steps) : 0;
            for (i32 i = 0; i < early; i++) {
                barrier_expect(full + 8 * i, STAGE);
                fetch_b(a, base + i * STAGE, full + 8 * i, i, n);
            }
            grid_wait();
            for (i32 i = 0; i < early; i++) fetch_a(a, base + i * STAGE, full + 8 * i, i, o);
            u32 stage = early % STAGES, turn = early / STAGES;
            i32 step = early;
            for (i32 tile = blockIdx.x; tile < a.tiles; tile += gridDim.x, step = 0) {
                tile_at(a, tile, m, n);
                o = origin_of(a, m);
                for (; step < a.steps; step++) {
                    const u32 bar = full + 8 * stage;
                    if (turn) barrier_wait(empty + 8 * stage, (turn - 1) & 1);
                    barrier_expect(bar, STAGE);
                    fetch_a(a, base + stage * STAGE, bar, step, o);
                    fetch_b(a, base + stage * STAGE, bar, step, n);
                    if (++stage == STAGES) stage = 0, turn++;
                }
            }
            grid_trigger();
        } else {
            grid_wait();
        }
        return;
    }
    registers_take<CONSUMERS == 1 ? 208 : 232>();
    grid_wait();
    const u32 group = threadIdx.x / 128 - 1, warp = warp_id() % 4, lane = lane_id();
    float *const part = (float *)(shared + PARTS_AT + (group * 4 + warp) * PART);
    u32 stage = 0, turn = 0;
    for (i32 tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
        float c[BN / 8][4];
        i32 m, n;
        tile_at(a, tile, m, n);
        u32 before = 0;
        for (i32 step = 0; step < a.steps; step++) {
            barrier_wait(full + 8 * stage, turn & 1);
            const u64 x = matrix_rows128(base + stage * STAGE + group * 64 * BK * 2);
            const u64 y = matrix_rows128(base + stage * STAGE + A_BYTES);
            product_begin();
#pragma unroll
            for (int k = 0; k < BK / 16; k++) multiply(c, x + 2 * k, y + 2 * k, step > 0 || k > 0);
            product_commit();
            if (step > 0) {
                product_wait<1>();
                if (lane == 0) barrier_arrive(empty + 8 * before);
            }
            before = stage;
            if (++stage == STAGES) stage = 0, turn++;
        }
        product_wait<0>();
        if (lane == 0) barrier_arrive(empty + 8 * before);
        const i32 row0 = m * BM + group * 64 + warp * 16;
        epi_row row[2];
        i32 at[EPI_RANK];
#pragma unroll
        for (int q = 0; q < BN / 64; q++) {
#pragma unroll
            for (int j = 0; j < 8; j++) {
                float *to = part + (lane >> 2) * LINE + j * 8 + (lane & 3) * 2;
                *(vec<float, 2> *)to = { c[q * 8 + j][0], c[q * 8 + j][1] };
                *(vec<float, 2> *)(to + 8 * LINE) = { c[q * 8 + j][2], c[q * 8 + j][3] };
            }
            sync_warp();
            const i32 column = n * BN + q * 64 + (lane & 7) * 8;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const i32 line = i * 4 + (lane >> 3), r = row0 + line;
                if (r >= a.m || column >= a.n) continue;
                float v[8];
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const vec<float, 4> x = *(const vec<float, 4> *)(part + line * LINE + (lane & 7) * 8 + 4 * h);
#pragma unroll
                    for (int k = 0; k < 4; k++) v[4 * h + k] = x.at[k];
                }
                position(a, r, 0, at);
                epi_begin(e, row[0], at);
                epi_run<8>(e, row[0], column, smaller(8, a.n - column), v);
            }
            sync_warp();
        }
    }
}
