/* SPDX-License-Identifier: Apache-2.0 */
/* attention_once.cu - attention over so few keys that one tile has them all, on Hopper's warpgroups: softmax(scale q k' +
 * mask) v for f16 and bf16. All scores of a query are in registers at once: one maximum, nothing to rescale.
 *
 * A block has GROUPS warpgroups of 64 queries of one head each, which share its keys and values. All of it comes by tensor
 * copies that one thread begins; where blocks stay (STAGES 2), those for the next queries while these are computed. So no
 * warp is there for the copies alone, and the registers are the scores'.
 *
 *   DEPTH  head size of q and k, rounded up to 16      WIDTH  of v, rounded up to 64
 *   MASK   0 none, 1 f32, 2 bool, 3 of the operands' type      PAIRS  two neighbours of it may be read at once
 *   KEYED  the mask is the same for all queries of a head
 *   FOLD   the scale is folded into the powers: it is positive, and there is neither mask nor soft cap
 *   IS_BF16, CAP (a soft cap), CAUSAL, GROUPS, BN (keys), BLOCKS (of a multiprocessor), STAGES, TRIGGER */
#include "attention_group.cuh"

enum { ROWS = 64 * GROUPS, THREADS = 128 * GROUPS };
/* Of a stage in shared memory: queries, keys, values. Masks: one for each warpgroup, and for every other piece of work. */
enum { K_AT = GROUPS * Q_GROUP, V_AT = K_AT + K_BYTES, STAGE = V_AT + V_BYTES };
enum { BARS_AT = STAGES * STAGE, K_FULL = BARS_AT, V_FULL = K_FULL + 16, EMPTY = V_FULL + 16, MASK_AT = EMPTY + 16 };
enum { MEET = 1 };                              /* named barriers, one a warpgroup */

struct piece { i32 first, head, batch; };       /* a block's queries */

DEVICE piece piece_at(const attention_wgmma_args &w, i32 item)
{
    i32 tile, line, head, batch;
    divmod_fast(item, w.by_tiles, line, tile);
    divmod_fast(line, w.by_heads, batch, head);
    return { tile * ROWS, head, batch };
}

/* One thread begins all copies of a piece. */
DEVICE void load_piece(const attention_wgmma_args &w, u32 base, const piece &x, u32 stage)
{
    const i32 head_k = div_fast(x.head, w.by_group);
    const u32 at = base + stage * STAGE, bar_k = base + K_FULL + 8 * stage, bar_v = base + V_FULL + 8 * stage;
    barrier_expect(bar_k, GROUPS * BOXES_K * Q_BOX + K_BYTES);
    for (i32 g = 0; g < GROUPS; g++)
        fetch((const tensor_map *)w.map_q, at + g * Q_GROUP, bar_k, BOXES_K, Q_BOX, x.first + g * 64, x.head, x.batch);
    fetch((const tensor_map *)w.map_k, at + K_AT, bar_k, BOXES_K, BOX, 0, head_k, x.batch);
    barrier_expect(bar_v, V_BYTES);
    fetch((const tensor_map *)w.map_v, at + V_AT, bar_v, BOXES_V, BOX, 0, head_k, x.batch);
}

/* Scores become powers of two of their distance from the maximum of their query; `sum`: this thread's sums of them. */
DEVICE void take_powers(const attention_args &a, [[maybe_unused]] const float *mask, float (&s)[BN / 8][4],
                        const piece &x, i32 first, float (&sum)[2])
{
    const i32 column = (i32)(lane_id() & 3) * 2;
    [[maybe_unused]] const i32 ahead = a.keys - a.queries;
    const float scale = CAP ? a.scale / a.cap : a.scale * LOG2E;
    [[maybe_unused]] const float cap = a.cap * LOG2E;
#if MASK && !KEYED
    i64 line[2];
    for (int r = 0; r < 2; r++)
        line[r] = x.batch * a.mask_stride[0] + x.head * a.mask_stride[1] + (first + 8 * r) * a.mask_stride[2];
#endif
#if !FOLD
#pragma unroll
    for (int j = 0; j < BN / 8; j++) {
#if KEYED
        const vec<float, 2> m = *(const vec<float, 2> *)(mask + column + j * 8);
#endif
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float &u = s[j][2 * r], &v = s[j][2 * r + 1];
#if CAP
            u = cap * tanhf(u * scale);
            v = cap * tanhf(v * scale);
#else
            u *= scale;
            v *= scale;
#endif
#if KEYED
            u = masked(u, m.at[0]);
            v = masked(v, m.at[1]);
#elif MASK
            const i32 key = column + j * 8;
            const bool is_row = first + 8 * r < a.queries;
            float m0, m1;
            mask_pair(a, line[r] + key * a.mask_stride[3], is_row && key < a.keys, is_row && key + 1 < a.keys, m0, m1);
            u = masked(u, m0);
            v = masked(v, m1);
#endif
        }
    }
#endif
    /* What is behind the last key, or not seen yet; all threads agree on which columns may have some. */
#pragma unroll
    for (int j = 0; j < BN / 8; j++)
        if (j * 8 + 8 > a.keys || (CAUSAL && j * 8 + 7 > x.first + ahead))
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const i32 key = column + j * 8 + (c & 1);
                bool seen = key < a.keys;
#if CAUSAL
                seen = seen && key <= first + (c >> 1) * 8 + ahead;
#endif
                if (!seen) s[j][c] = MINUS_INFINITY;
            }
    const float by = FOLD ? scale : 1.0f;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float part[2] = { s[0][2 * r], s[0][2 * r + 1] };
#pragma unroll
        for (int j = 1; j < BN / 8; j++) {
            part[0] = fmaxf(part[0], s[j][2 * r]);
            part[1] = fmaxf(part[1], s[j][2 * r + 1]);
        }
        float most = fmaxf(part[0], part[1]);
        most = fmaxf(most, shuffle_xor(most, 1));
        most = fmaxf(most, shuffle_xor(most, 2));
        /* 0 stands for the maximum where no key is seen: all powers are 0 then. */
        const float from = most == MINUS_INFINITY ? 0.0f : most * by;
        part[0] = part[1] = 0;
#pragma unroll
        for (int j = 0; j < BN / 8; j++)
#pragma unroll
            for (int c = 0; c < 2; c++) {
                float &u = s[j][2 * r + c];
                u = exp2_flush(u * by - from);
                part[c] += u;
            }
        sum[r] = part[0] + part[1];
    }
}

KERNEL void __launch_bounds__(THREADS, BLOCKS) attention_once(const __grid_constant__ attention_wgmma_args w)
{
    const attention_args &a = w.rows;
    u8 *const shared = shared_base();
    const u32 base = shared_address(shared);
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(base + K_FULL + 8 * i, 1);
            barrier_init(base + V_FULL + 8 * i, 1);
            barrier_init(base + EMPTY + 8 * i, 4 * GROUPS);
        }
        barrier_init_fence();
        prefetch_map((const tensor_map *)w.map_q);
        prefetch_map((const tensor_map *)w.map_k);
        prefetch_map((const tensor_map *)w.map_v);
    }
    sync_block();
    grid_wait();
    const u32 thread = threadIdx.x % 128, group = threadIdx.x / 128, lane = lane_id();
    piece x = piece_at(w, blockIdx.x);
    if (threadIdx.x == 0) load_piece(w, base, x, 0);
    sync_warp();
#if TRIGGER == 1
    grid_trigger();
#endif
#if KEYED
    enum { EACH = (BN + 127) / 128 };
    float *const masks = (float *)(shared + MASK_AT) + group * 2 * BN, kept[EACH];
    for (i32 i = 0; i < EACH; i++) kept[i] = mask_at_key(a, x.batch, x.head, (i32)thread + i * 128);
#endif
    for (i32 item = blockIdx.x, n = 0; item < w.items; item += gridDim.x, n++) {
        const u32 stage = n % STAGES, parity = n / STAGES & 1, at = base + stage * STAGE;
        const i32 row0 = x.first + (i32)group * 64 + (i32)(thread / 32) * 16;
        const i32 next = item + (i32)gridDim.x;
        const piece y = piece_at(w, next);
#if STAGES > 1
        if (threadIdx.x == 0 && next < w.items) {
            if (n) barrier_wait(base + EMPTY + 8 * (stage ^ 1), (n - 1) / STAGES & 1);
            load_piece(w, base, y, stage ^ 1);
        }
        sync_warp();
#endif
#if TRIGGER == 2
        if (next >= w.items) grid_trigger();
#endif
        float *mask = nullptr;
#if KEYED
        mask = masks + (n & 1) * BN;
        for (i32 i = 0; i < EACH; i++)
            if (thread + i * 128 < BN) mask[thread + i * 128] = kept[i];
        sync_some(MEET + group, 128);
        for (i32 i = 0; i < EACH && next < w.items; i++)
            kept[i] = mask_at_key(a, y.batch, y.head, (i32)thread + i * 128);
#endif
        float o[WIDTH / 8][4], s[BN / 8][4], sum[2] = {};
        u32 p[BN / 16][4];
        barrier_wait(base + K_FULL + 8 * stage, parity);
        product_begin();
        start_scores(s, at + group * Q_GROUP, at + K_AT);
        product_wait<0>();
        /* The last warps may have no queries. */
        if (row0 < a.queries) take_powers(a, mask, s, x, row0 + (i32)(lane >> 2), sum);
        take_factors(s, p);
        barrier_wait(base + V_FULL + 8 * stage, parity);
        product_begin();
        start_sums(o, p, at + V_AT, true);
        product_wait<0>();
        /* Results go through the queries' place. */
        sync_some(MEET + group, 128);
        put_results(a, shared + stage * STAGE + group * Q_GROUP, o, sum, x.head, x.batch, row0);
#if STAGES > 1
        /* The next queries may come: all of the group have written and read their parts of this place. */
        fence_copies();
        sync_warp();
        if (lane == 0) barrier_arrive(base + EMPTY + 8 * stage);
#endif
        x = y;
    }
#if TRIGGER == 3
    grid_trigger();
#endif
}
