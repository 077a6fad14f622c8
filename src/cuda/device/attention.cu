/* SPDX-License-Identifier: Apache-2.0 */
/* attention.cu - flash attention on mma.sync: softmax(scale q k' + mask) v for f16 and bf16, scores never in memory.
 *
 * A block takes 16 * MI * WM queries of one head, a warp MI times 16 of them, so that what it reads of keys and values
 * serves them all. WN warps share their queries and take every WN-th part of BN keys, so that few queries still fill the
 * chip; their sums meet in shared memory at the end. Keys and values come in two stages. Dao 2023 (FlashAttention-2):
 * running maximum and sum, one rescale a tile, in powers of two.
 *
 *   DEPTH, WIDTH   head sizes rounded up to 16        MASK   0 none, 1 f32, 2 bool, 3 of the operands' type
 *   PAIRS  two neighbours of the mask may be read at once      KEYED  it is the same for all queries of a head
 *   LENGTH  how many keys count is in memory
 *   IS_BF16, CAP (a soft cap), CAUSAL, MI, WM, WN, BN (keys a warp and tile), TRIGGER */
#include "attention.cuh"

enum { THREADS = 32 * WM * WN, ROWS = 16 * MI * WM, TILE = BN * WN };
enum { PITCH_K = DEPTH * 2 + 16, PITCH_V = WIDTH * 2 + 16 };        /* bytes; odd multiples of 16: no bank twice */
enum { Q_AT = 0, K_AT = ROWS * PITCH_K, V_AT = K_AT + 2 * TILE * PITCH_K };

/* `rows` rows of `bytes` bytes to shared memory, zeros beyond limit and beyond the row's end. */
template <int CHUNKS, int PITCH>
DEVICE void load_rows(u32 to, const u16 *from, i64 stride, i32 rows, i32 limit, i32 elements)
{
    for (i32 i = threadIdx.x; i < rows * CHUNKS; i += THREADS) {
        const i32 row = i / CHUNKS, chunk = i - row * CHUNKS;
        const bool valid = row < limit && chunk * 8 < elements;
        copy_async16(to + row * PITCH + chunk * 16, valid ? from + row * stride + chunk * 8 : from, valid);
    }
}

DEVICE void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
#if IS_BF16
    mma_bf16(c, a, b0, b1);
#else
    mma_f16(c, a, b0, b1);
#endif
}

KERNEL void __launch_bounds__(THREADS) attention(const __grid_constant__ attention_args a)
{
    u8 *const shared = shared_base();
    const u32 base = shared_address(shared), lane = lane_id(), wm = warp_id() / WN, wn = warp_id() % WN;
    const i32 first = blockIdx.x * ROWS, head = blockIdx.y, batch = blockIdx.z, head_k = head / a.group;
    const u16 *q = (const u16 *)a.q + batch * a.q_stride[0] + head * a.q_stride[1] + first * a.q_stride[2];
    const u16 *k = (const u16 *)a.k + batch * a.k_stride[0] + head_k * a.k_stride[1];
    const u16 *v = (const u16 *)a.v + batch * a.v_stride[0] + head_k * a.v_stride[1];
    const i32 row0 = first + wm * 16 * MI + (lane >> 2);        /* the thread's first query */
    const float scale = a.scale * LOG2E;
    grid_wait();
    const i32 all = valid_keys(a);
    [[maybe_unused]] const i32 ahead = all - a.queries;
    /* Keys that any query of the block may see. */
    i32 keys = all;
#if CAUSAL
    keys = smaller(keys, first + ROWS + ahead);
#endif
    const i32 tiles = keys > 0 ? (keys + TILE - 1) / TILE : 0;
#if TRIGGER == 1
    grid_trigger();
#endif
    load_rows<DEPTH / 8, PITCH_K>(base + Q_AT, q, a.q_stride[2], ROWS, a.queries - first, a.depth);
    if (tiles) {
        load_rows<DEPTH / 8, PITCH_K>(base + K_AT, k, a.k_stride[2], TILE, all, a.depth);
        load_rows<WIDTH / 8, PITCH_V>(base + V_AT, v, a.v_stride[2], TILE, all, a.width);
    }
    copy_commit();

    float o[MI][WIDTH / 8][4] = {}, top[MI][2], sum[MI][2] = {};
#pragma unroll
    for (int i = 0; i < MI; i++) top[i][0] = top[i][1] = MINUS_INFINITY;
    for (i32 t = 0; t < tiles; t++) {
        const u32 stage = t & 1, next = stage ^ 1;
        if (t + 1 < tiles) {
            const i32 at = (t + 1) * TILE;
            load_rows<DEPTH / 8, PITCH_K>(base + K_AT + next * TILE * PITCH_K, k + at * a.k_stride[2], a.k_stride[2],
                                          TILE, all - at, a.depth);
            load_rows<WIDTH / 8, PITCH_V>(base + V_AT + next * TILE * PITCH_V, v + at * a.v_stride[2], a.v_stride[2],
                                          TILE, all - at, a.width);
        }
        copy_commit();
        const i32 key0 = t * TILE + wn * BN;
#if MASK
        /* Asked for before the keys are waited for. */
        float mask[KEYED ? 1 : MI][BN / 8][KEYED ? 2 : 4];
#pragma unroll
        for (int i = 0; i < (KEYED ? 1 : MI); i++)
#pragma unroll
            for (int j = 0; j < BN / 8; j++)
#pragma unroll
                for (int r = 0; r < (KEYED ? 1 : 2); r++) {
                    const i32 key = key0 + j * 8 + (lane & 3) * 2, query = KEYED ? 0 : row0 + i * 16 + 8 * r;
                    const bool is_row = query < a.queries;
                    mask_pair(a, batch * a.mask_stride[0] + head * a.mask_stride[1] + query * a.mask_stride[2] +
                                     key * a.mask_stride[3],
                              is_row && key < all, is_row && key + 1 < all, mask[i][j][2 * r],
                              mask[i][j][2 * r + 1]);
                }
#endif
        copy_wait<1>();
        sync_block();
#if TRIGGER == 2
        if (t + 1 >= tiles) grid_trigger();
#endif
        const u32 tile_k = base + K_AT + stage * TILE * PITCH_K + wn * BN * PITCH_K;
        const u32 tile_v = base + V_AT + stage * TILE * PITCH_V + wn * BN * PITCH_V;
        float s[MI][BN / 8][4] = {};
#pragma unroll
        for (int d = 0; d < DEPTH / 16; d++) {
            u32 x[MI][4];
#pragma unroll
            for (int i = 0; i < MI; i++)
                load_matrix4(x[i], base + Q_AT + ((wm * MI + i) * 16 + (lane & 15)) * PITCH_K + d * 32 + (lane >> 4) * 16);
#pragma unroll
            for (int j = 0; j < BN / 16; j++) {
                u32 b[4];
                load_matrix4(b, tile_k + (j * 16 + (lane & 7) + (lane >> 4) * 8) * PITCH_K + d * 32 + (lane >> 3 & 1) * 16);
#pragma unroll
                for (int i = 0; i < MI; i++) {
                    multiply(s[i][2 * j], x[i], b[0], b[1]);
                    multiply(s[i][2 * j + 1], x[i], b[2], b[3]);
                }
            }
        }
        /* Scores in powers of two, masked; some keys of the last tile are none, and some are not yet seen. */
        bool is_whole = key0 + BN <= all;
#if CAUSAL
        is_whole = is_whole && key0 + BN <= first + ahead + 1;
#endif
#pragma unroll
        for (int i = 0; i < MI; i++) {
#pragma unroll
            for (int j = 0; j < BN / 8; j++)
#pragma unroll
                for (int c = 0; c < 4; c++) {
#if CAP
                    float x = a.cap * tanhf(s[i][j][c] * a.scale / a.cap) * LOG2E;
#else
                    float x = s[i][j][c] * scale;
#endif
#if MASK
                    x = masked(x, mask[KEYED ? 0 : i][j][KEYED ? c & 1 : c]);
#endif
                    s[i][j][c] = x;
                }
            if (!is_whole)
#pragma unroll
                for (int j = 0; j < BN / 8; j++)
#pragma unroll
                    for (int c = 0; c < 4; c++) {
                        const i32 key = key0 + j * 8 + (lane & 3) * 2 + (c & 1);
                        bool seen = key < all;
#if CAUSAL
                        seen = seen && key <= row0 + i * 16 + (c >> 1) * 8 + ahead;
#endif
                        if (!seen) s[i][j][c] = MINUS_INFINITY;
                    }
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float most = top[i][r];
#pragma unroll
                for (int j = 0; j < BN / 8; j++) most = fmaxf(most, fmaxf(s[i][j][2 * r], s[i][j][2 * r + 1]));
                most = fmaxf(most, shuffle_xor(most, 1));
                most = fmaxf(most, shuffle_xor(most, 2));
                /* Where no key has been seen yet, 0 stands for the maximum: all powers are 0 then. */
                const float from = most == MINUS_INFINITY ? 0.0f : most, by = exp2_flush(top[i][r] - from);
                top[i][r] = most;
                sum[i][r] *= by;
#pragma unroll
                for (int j = 0; j < WIDTH / 8; j++) {
                    o[i][j][2 * r] *= by;
                    o[i][j][2 * r + 1] *= by;
                }
#pragma unroll
                for (int j = 0; j < BN / 8; j++)
#pragma unroll
                    for (int c = 2 * r; c < 2 * r + 2; c++) {
                        s[i][j][c] = exp2_flush(s[i][j][c] - from);
                        sum[i][r] += s[i][j][c];
                    }
            }
        }
#pragma unroll
        for (int j = 0; j < BN / 16; j++) {
            u32 p[MI][4];
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    p[i][2 * h] = pack(s[i][2 * j + h][0], s[i][2 * j + h][1]);
                    p[i][2 * h + 1] = pack(s[i][2 * j + h][2], s[i][2 * j + h][3]);
                }
#pragma unroll
            for (int d = 0; d < WIDTH / 16; d++) {
                u32 b[4];
                load_matrix4_transposed(b, tile_v + (j * 16 + (lane & 15)) * PITCH_V + d * 32 + (lane >> 4) * 16);
#pragma unroll
                for (int i = 0; i < MI; i++) {
                    multiply(o[i][2 * d], p[i], b[0], b[1]);
                    multiply(o[i][2 * d + 1], p[i], b[2], b[3]);
                }
            }
        }
        sync_block();
    }
#if TRIGGER == 3
    grid_trigger();
#endif
    copy_wait<0>();
    sync_block();
    /* Parts of the warps that share rows, in shared memory: [WN][ROWS][WIDTH + 4] sums, then maxima and sums of powers. */
    enum { LINE = WIDTH + 4 };
    float *part = (float *)shared, *tops = part + WN * ROWS * LINE, *sums = tops + WN * ROWS;
#pragma unroll
    for (int i = 0; i < MI; i++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            sum[i][r] += shuffle_xor(sum[i][r], 1);
            sum[i][r] += shuffle_xor(sum[i][r], 2);
            const i32 row = (wm * MI + i) * 16 + (lane >> 2) + 8 * r;
            float *line = part + (wn * ROWS + row) * LINE + (lane & 3) * 2;
#pragma unroll
            for (int j = 0; j < WIDTH / 8; j++) *(vec<float, 2> *)(line + j * 8) = { o[i][j][2 * r], o[i][j][2 * r + 1] };
            if ((lane & 3) == 0) {
                tops[wn * ROWS + row] = top[i][r];
                sums[wn * ROWS + row] = sum[i][r];
            }
        }
    sync_block();
    u16 *y = (u16 *)a.y + batch * a.y_stride[0] + head * a.y_stride[1] + first * a.y_stride[2];
    for (i32 i = threadIdx.x; i < ROWS * (WIDTH / 8); i += THREADS) {
        const i32 row = i / (WIDTH / 8), column = i % (WIDTH / 8) * 8;
        if (first + row >= a.queries || column >= a.width) continue;
        float most = MINUS_INFINITY, total = 0, x[8] = {};
        for (int w = 0; w < WN; w++) most = fmaxf(most, tops[w * ROWS + row]);
        const float from = most == MINUS_INFINITY ? 0.0f : most;
        for (int w = 0; w < WN; w++) {
            const float by = exp2f(tops[w * ROWS + row] - from);
            const float *line = part + (w * ROWS + row) * LINE + column;
            total += sums[w * ROWS + row] * by;
#pragma unroll
            for (int c = 0; c < 8; c++) x[c] += line[c] * by;
        }
        /* A total that is NaN is passed on. */
        const float by = total == 0 ? 0 : 1 / total;
#pragma unroll
        for (int c = 0; c < 8; c++)
            if (total == 0) x[c] = 0;
        const u32x4 z = { pack(x[0] * by, x[1] * by), pack(x[2] * by, x[3] * by), pack(x[4] * by, x[5] * by),
                          pack(x[6] * by, x[7] * by) };
        *(u32x4 *)(y + row * a.y_stride[2] + column) = z;
    }
}
