/* SPDX-License-Identifier: Apache-2.0 */
/* attention_wgmma.cu - flash attention on Hopper's warpgroups: softmax(scale q k' + mask) v for f16 and bf16.
 *
 * A block takes 64 * CONSUMERS queries of one head, and where it stays, others after them. A producer warpgroup keeps
 * two tiles of BN keys and values on their way (tensor copies, 64 elements wide, swizzled); each consumer warpgroup has
 * 64 queries. Its scores become probabilities in the registers in which the second product takes them, for 64 x n sums
 * lie as 64 x 16 factors do.
 * Shah 2024 (FlashAttention-3): with OVERLAP the scores of a tile are on their way while the values of the tile before
 * are multiplied, and become powers while those still run; with TURNS consumers issue products one after the other, so
 * that one has the matrix units while others take powers. Powers are of two, and relative to a maximum that is only
 * taken anew when it has risen by so much that f16 might not hold them: then sums are rescaled (FlashAttention-4).
 *
 *   DEPTH  head size of q and k, rounded up to 16      WIDTH  of v, rounded up to 64
 *   MASK   0 none, 1 f32, 2 bool, 3 of the operands' type      PAIRS  two neighbours of it may be read at once
 *   KEYED  the mask is the same for all queries of a head: it comes a tile ahead, through shared memory
 *   DEALT  of each 32 keys a thread has the scores of eight neighbours, and reads the masks of these at once. For that
 *          keys and values lie in shared memory in the order 0, 4, ... 28, 1, 5, ... 29, 2, ... 31
 *   FOLD   the scale is folded into the powers: it is positive, and there is neither mask nor soft cap
 *   IS_BF16, CAP (a soft cap), CAUSAL, CONSUMERS, BN (keys a tile), BLOCKS (of a multiprocessor), OVERLAP, TURNS,
 *   TRIGGER */
#include "attention_group.cuh"

/* Alone on its multiprocessor, a block has a warpgroup of producers, whose registers the consumers get; else a warp. */
enum { ALONE = BLOCKS == 1 && CONSUMERS > 1, ROWS = 64 * CONSUMERS, THREADS = 128 * CONSUMERS + (ALONE ? 128 : 32) };
enum { K_AT = CONSUMERS * Q_GROUP, V_AT = K_AT + 2 * K_BYTES, BARS_AT = V_AT + 2 * V_BYTES };
/* Barriers in shared memory, 8 bytes each; those of two are a tile's of either parity. */
enum { Q_FULL = BARS_AT, Q_EMPTY = Q_FULL + 8, K_FULL = Q_EMPTY + 8, K_EMPTY = K_FULL + 16 };
enum { V_FULL = K_EMPTY + 16, V_EMPTY = V_FULL + 16, MASK_AT = V_EMPTY + 16 };      /* masks: two tiles a consumer */
enum { TURN = 1, MEET = TURN + CONSUMERS };     /* named barriers, one a consumer */
enum { KEPT = 24, TAKEN = CONSUMERS == 3 ? 160 : 240 };     /* registers */

#if DEALT
/* 32-bit words of the masks of eight keys, and of one load. */
enum { MASK_WORDS = 2 * sizeof(mask_type), UNIT_WORDS = MASK_WORDS < 4 ? MASK_WORDS : 4 };
#endif

/* By so many powers of two may scores pass the maximum that they are relative to. */
#define SLACK 8.0f

/* What a thread has of two rows of queries: row[0] and row[0] + 8. */
struct rows {
    i32 first;                          /* query */
    float scale, cap, slack;            /* slack: of scores as they are compared */
    float top[2], sum[2];               /* what powers are relative to; this thread's sums of powers */
#if KEYED
    float *masks, kept[(BN + 127) / 128];   /* those of the tile to come: this thread's */
#elif MASK
    i64 mask[2];
#if DEALT
    u32 masks[2][BN / 32][MASK_WORDS];  /* the masks of a tile, in their own type */
#else
    float masks[BN / 8][4];             /* what is added to the scores of a tile, before mask_power */
#endif
#endif
};

/* The first key of a tile whose scores this thread has. s[j][c] belongs to the key that lies key_of(j, c) behind it. */
DEVICE i32 first_key() { return (i32)(lane_id() & 3) * (DEALT ? 8 : 2); }
DEVICE i32 key_of(int j, int c) { return DEALT ? j / 4 * 32 + c * 4 + j % 4 : j * 8 + c; }

#if KEYED
/* Fetches this thread's part of the mask of the keys from `key0` on. */
DEVICE void mask_fetch(const attention_args &a, rows &row, i32 batch, i32 head, i32 key0)
{
    for (i32 i = 0; i < (BN + 127) / 128; i++)
        row.kept[i] = mask_at_key(a, batch, head, key0 + (i32)threadIdx.x % 128 + i * 128);
}

/* What was fetched, to the whole warpgroup. Its place is the last but one's, which all have read. */
DEVICE void mask_share(rows &row, i32 tile)
{
    for (i32 i = 0; i < (BN + 127) / 128; i++)
        if (threadIdx.x % 128 + i * 128 < BN) row.masks[(tile & 1) * BN + threadIdx.x % 128 + i * 128] = row.kept[i];
    sync_some(MEET + threadIdx.x / 128, 128);
}
#endif

#if MASK && !KEYED
template <bool INSIDE>
DEVICE void mask_fetch_some(const attention_args &a, rows &row, i32 key0)
{
    const i32 column = key0 + first_key();
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const bool is_row = INSIDE || row.first + 8 * r < a.queries;
#if DEALT
        const mask_type *const from = (const mask_type *)a.mask + row.mask[r] + column;
#pragma unroll
        for (int b = 0; b < BN / 32; b++) {
            vec<u32, UNIT_WORDS> unit[MASK_WORDS / UNIT_WORDS] = {};
            if (INSIDE || (is_row && column + b * 32 < a.keys))
#pragma unroll
                for (int i = 0; i < MASK_WORDS / UNIT_WORDS; i++)
                    unit[i] = ((const vec<u32, UNIT_WORDS> *)(from + b * 32))[i];
#pragma unroll
            for (int i = 0; i < MASK_WORDS; i++) row.masks[r][b][i] = unit[i / UNIT_WORDS].at[i % UNIT_WORDS];
        }
#else
#pragma unroll
        for (int j = 0; j < BN / 8; j++) {
            const i32 key = column + j * 8;
            mask_read(a, row.mask[r] + (PAIRS ? (i64)key : key * a.mask_stride[3]), INSIDE || (is_row && key < a.keys),
                      INSIDE || (is_row && key + 1 < a.keys), row.masks[j][2 * r], row.masks[j][2 * r + 1]);
        }
#endif
    }
}

/* The mask that is added to the score s[j][2 * r + c], multiplied for exp2. */
DEVICE float mask_of(const rows &row, int r, int j, int c)
{
#if DEALT
    const int i = c * 4 + j % 4, bits = 8 * sizeof(mask_type), each = 32 / bits;
    const u32 word = row.masks[r][j / 4][i / each] >> i % each * bits % 32;
#if MASK == 1
    return mask_power(__uint_as_float(word));
#elif MASK == 2
    return mask_number((u8)word);
#else
    return mask_power(to_float(mask_type{ (u16)word }));
#endif
#else
    return mask_power(row.masks[j][2 * r + c]);
#endif
}

/* Asks for the masks of the keys from `key0` on, while the product that makes their scores runs: inside of the mask all
 * at once, without conditions. */
DEVICE void mask_fetch(const attention_args &a, rows &row, i32 key0)
{
    if (key0 + BN <= a.keys && row.first + 8 < a.queries) mask_fetch_some<true>(a, row, key0);
    else mask_fetch_some<false>(a, row, key0);
}
#endif

/* Scores become powers of two of their distance from the maximum. True: the maximum has moved, and earlier sums are to
 * be multiplied by `by`. */
DEVICE bool take_powers(const attention_args &a, float (&s)[BN / 8][4], rows &row, float (&by)[2], i32 key0,
                        bool is_whole)
{
    [[maybe_unused]] const i32 column = key0 + first_key(), ahead = a.keys - a.queries;
#if KEYED
    const float *const masks = row.masks + (key0 / BN & 1) * BN + (lane_id() & 3) * 2;
#endif
#if !FOLD
#pragma unroll
    for (int j = 0; j < BN / 8; j++) {
#if KEYED
        const vec<float, 2> m = *(const vec<float, 2> *)(masks + j * 8);
#endif
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float &x = s[j][2 * r], &y = s[j][2 * r + 1];
#if CAP
            x = row.cap * tanhf(x * row.scale);
            y = row.cap * tanhf(y * row.scale);
#else
            x *= row.scale;
            y *= row.scale;
#endif
#if KEYED
            x = masked(x, m.at[0]);
            y = masked(y, m.at[1]);
#elif MASK
            x = masked(x, mask_of(row, r, j, 0));
            y = masked(y, mask_of(row, r, j, 1));
#endif
        }
    }
#endif
    if (!is_whole)
#pragma unroll
        for (int j = 0; j < BN / 8; j++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const i32 key = column + key_of(j, c & 1);
                bool seen = key < a.keys;
#if CAUSAL
                seen = seen && key <= row.first + (c >> 1) * 8 + ahead;
#endif
                if (!seen) s[j][c] = MINUS_INFINITY;
            }
    const float scale = FOLD ? row.scale : 1.0f;
    float most[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float part[2] = { s[0][2 * r], s[0][2 * r + 1] };
#pragma unroll
        for (int j = 1; j < BN / 8; j++) {
            part[0] = fmaxf(part[0], s[j][2 * r]);
            part[1] = fmaxf(part[1], s[j][2 * r + 1]);
        }
        most[r] = fmaxf(part[0], part[1]);
        most[r] = fmaxf(most[r], shuffle_xor(most[r], 1));
        most[r] = fmaxf(most[r], shuffle_xor(most[r], 2));
    }
    const bool moves = ballot(most[0] > row.top[0] + row.slack || most[1] > row.top[1] + row.slack) != 0;
    if (moves)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float next = fmaxf(row.top[r], most[r]);
            /* Where no key has been seen yet there is nothing to rescale. */
            by[r] = next == MINUS_INFINITY ? 1.0f : exp2_flush((row.top[r] - next) * scale);
            row.top[r] = next;
            row.sum[r] *= by[r];
        }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        /* 0 stands for the maximum where no key has been seen: all powers are 0 then. */
        const float from = row.top[r] == MINUS_INFINITY ? 0.0f : row.top[r] * scale;
        float part[2] = {};
#pragma unroll
        for (int j = 0; j < BN / 8; j++)
#pragma unroll
            for (int c = 0; c < 2; c++) {
                float &x = s[j][2 * r + c];
                x = exp2_flush(x * scale - from);
                part[c] += x;
            }
        row.sum[r] += part[0] + part[1];
    }
    return moves;
}

DEVICE void rescale(float (&o)[WIDTH / 8][4], const float (&by)[2])
{
#pragma unroll
    for (int j = 0; j < WIDTH / 8; j++)
#pragma unroll
        for (int c = 0; c < 4; c++) o[j][c] *= by[c >> 1];
}

/* A piece of the work: a block's queries. */
struct piece { i32 first, head, batch, tiles; };

DEVICE piece piece_at(const attention_wgmma_args &w, i32 item)
{
    const attention_args &a = w.rows;
#if CAUSAL
    /* Those with most keys come first. */
    const i32 lines = w.items / w.tiles, tile = w.tiles - 1 - item / lines, line = item % lines;
    const i32 keys = smaller(a.keys, tile * ROWS + ROWS + a.keys - a.queries);  /* that any of the queries may see */
#elif MASK && !KEYED
    /* Heads that share a mask follow each other: what one has read of it the others find in L2. */
    i32 tile, line;
    divmod_fast(item, w.by_lines, tile, line);
    const i32 keys = a.keys;
#else
    i32 tile, line;
    divmod_fast(item, w.by_tiles, line, tile);
    const i32 keys = a.keys;
#endif
    i32 batch, head;
    divmod_fast(line, w.by_heads, batch, head);
    return { tile * ROWS, head, batch, keys > 0 ? (keys + BN - 1) / BN : 0 };
}

/* Begins the copy of a tile of keys or values. DEALT: one axis of the map has every fourth token, another one has four
 * neighbours. */
DEVICE void fetch_tile(const tensor_map *map, u32 to, u32 bar, i32 boxes, i32 token, i32 head, i32 batch)
{
#if DEALT
    for (i32 i = 0; i < boxes; i++)
        for (i32 b = 0; b < BN; b += 32)
            copy_tensor(to + i * BOX + b * LINE, map, bar, i * 64, (token + b) / 4, 0, head, batch);
#else
    fetch(map, to, bar, boxes, BOX, token, head, batch);
#endif
}

/* One thread of the producer. `n` counts tiles over all pieces, `turn` pieces. */
DEVICE void produce(const attention_wgmma_args &w, u32 base)
{
    i32 n = 0, turn = 0;
    for (i32 item = blockIdx.x; item < w.items; item += gridDim.x, turn++) {
        const piece x = piece_at(w, item);
        const i32 head_k = div_fast(x.head, w.by_group);
        /* Keys of a tile before values of the one before it: as they are taken. */
        for (i32 t = 0; t <= x.tiles; t++) {
            if (t < x.tiles) {
                const u32 stage = (n + t) & 1, bar = base + K_FULL + 8 * stage;
                if (n + t >= 2) barrier_wait(base + K_EMPTY + 8 * stage, ((n + t) / 2 - 1) & 1);
                barrier_expect(bar, K_BYTES);
                fetch_tile((const tensor_map *)w.map_k, base + K_AT + stage * K_BYTES, bar, BOXES_K, t * BN, head_k,
                           x.batch);
            }
            if (t == 0) {
                if (turn) barrier_wait(base + Q_EMPTY, (turn - 1) & 1);
                barrier_expect(base + Q_FULL, CONSUMERS * BOXES_K * Q_BOX);
                for (i32 g = 0; g < CONSUMERS; g++)
                    fetch((const tensor_map *)w.map_q, base + g * Q_GROUP, base + Q_FULL, BOXES_K, Q_BOX,
                          x.first + g * 64, x.head, x.batch);
            } else {
                const i32 u = n + t - 1;
                const u32 stage = u & 1, bar = base + V_FULL + 8 * stage;
                if (u >= 2) barrier_wait(base + V_EMPTY + 8 * stage, (u / 2 - 1) & 1);
                barrier_expect(bar, V_BYTES);
                fetch_tile((const tensor_map *)w.map_v, base + V_AT + stage * V_BYTES, bar, BOXES_V, (t - 1) * BN,
                           head_k, x.batch);
            }
        }
        n += x.tiles;
    }
}

KERNEL void __launch_bounds__(THREADS, BLOCKS) attention_wgmma(const __grid_constant__ attention_wgmma_args w)
{
    const attention_args &a = w.rows;
    u8 *const shared = shared_base();
    const u32 base = shared_address(shared);
    if (threadIdx.x == 0) {
        barrier_init(base + Q_FULL, 1);
        barrier_init(base + Q_EMPTY, 4 * CONSUMERS);
        for (int i = 0; i < 2; i++) {
            barrier_init(base + K_FULL + 8 * i, 1);
            barrier_init(base + V_FULL + 8 * i, 1);
            barrier_init(base + K_EMPTY + 8 * i, 4 * CONSUMERS);
            barrier_init(base + V_EMPTY + 8 * i, 4 * CONSUMERS);
        }
        barrier_init_fence();
        prefetch_map((const tensor_map *)w.map_q);
        prefetch_map((const tensor_map *)w.map_k);
        prefetch_map((const tensor_map *)w.map_v);
    }
    sync_block();
    if (threadIdx.x >= 128 * CONSUMERS) {
        if (ALONE) registers_give<KEPT>();
        grid_wait();
        if (threadIdx.x == 128 * CONSUMERS) {
#if TRIGGER == 1
            grid_trigger();
#endif
            produce(w, base);
#if TRIGGER == 2
            grid_trigger();
#endif
        }
        return;
    }
    if (ALONE) registers_take<TAKEN>();
    grid_wait();
    const u32 group = warpgroup_id(), warp = warp_id() % 4, lane = lane_id();
    const u32 q = base + group * Q_GROUP;
    const float scale = a.scale * LOG2E;
    i32 n = 0;                                  /* tiles so far */
    for (i32 item = blockIdx.x, turn = 0; item < w.items; item += gridDim.x, turn++) {
        const piece x = piece_at(w, item);
        const i32 row0 = x.first + group * 64 + warp * 16;
        rows row;
        row.first = row0 + (lane >> 2);
        row.scale = CAP ? a.scale / a.cap : scale;
        row.cap = a.cap * LOG2E;
        row.slack = FOLD ? SLACK / scale : SLACK;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            row.top[r] = MINUS_INFINITY;
            row.sum[r] = 0;
#if MASK && !KEYED
            row.mask[r] = x.batch * a.mask_stride[0] + x.head * a.mask_stride[1] +
                          (row.first + 8 * r) * a.mask_stride[2];
#endif
        }
#if KEYED
        row.masks = (float *)(shared + MASK_AT) + group * 2 * BN;
        mask_fetch(a, row, x.batch, x.head, 0);
#endif
        /* Masks of tile t are asked for; or shared, and those of the next one asked for. */
        [[maybe_unused]] auto mask_next = [&](i32 t) {
#if KEYED
            mask_share(row, t);
            if (t + 1 < x.tiles) mask_fetch(a, row, x.batch, x.head, (t + 1) * BN);
#elif MASK
            mask_fetch(a, row, t * BN);
#endif
        };
        /* Up to this key every query of the group sees every key. */
        i32 whole = a.keys;
#if CAUSAL
        whole = smaller(whole, x.first + (i32)group * 64 + a.keys - a.queries + 1);
#endif
        float o[WIDTH / 8][4] = {}, s[BN / 8][4], by[2];
        u32 p[BN / 16][4];
#if TURNS
        /* The last consumer lets the first one begin. */
        if (group == CONSUMERS - 1 && x.tiles > 1) arrive_some(TURN, 256);
#endif
        barrier_wait(base + Q_FULL, turn & 1);
#if OVERLAP
        if (x.tiles) {
            u32 before = n & 1;
            barrier_wait(base + K_FULL + 8 * before, (n / 2) & 1);
            product_begin();
            start_scores(s, q, base + K_AT + before * K_BYTES);
            mask_next(0);
            product_wait<0>();
            if (lane == 0) barrier_arrive(base + K_EMPTY + 8 * before);
            take_powers(a, s, row, by, 0, BN <= whole);
            take_factors(s, p);
            for (i32 t = 1; t < x.tiles; t++) {
                const u32 stage = (n + t) & 1;
                before = stage ^ 1;
#if TURNS
                sync_some(TURN + group, 256);
#endif
                barrier_wait(base + K_FULL + 8 * stage, ((n + t) / 2) & 1);
                product_begin();
                start_scores(s, q, base + K_AT + stage * K_BYTES);
                barrier_wait(base + V_FULL + 8 * before, ((n + t - 1) / 2) & 1);
                product_begin();
                start_sums(o, p, base + V_AT + before * V_BYTES);
#if TURNS
                if (group < CONSUMERS - 1) arrive_some(TURN + group + 1, 256);
                else if (t + 1 < x.tiles) arrive_some(TURN, 256);
#endif
                mask_next(t);
                product_wait<1>();
                if (lane == 0) barrier_arrive(base + K_EMPTY + 8 * stage);
                const bool moves = take_powers(a, s, row, by, t * BN, (t + 1) * BN <= whole);
                product_after(row.sum[0] + row.sum[1]);
                product_wait<0>();
                if (lane == 0) barrier_arrive(base + V_EMPTY + 8 * before);
                if (moves) rescale(o, by);
                take_factors(s, p);
            }
            const i32 last = n + x.tiles - 1;
            barrier_wait(base + V_FULL + 8 * (last & 1), (last / 2) & 1);
            product_begin();
            start_sums(o, p, base + V_AT + (last & 1) * V_BYTES);
            product_wait<0>();
            if (lane == 0) barrier_arrive(base + V_EMPTY + 8 * (last & 1));
        }
#else
        for (i32 t = n; t < n + x.tiles; t++) {
            const u32 stage = t & 1, parity = (t / 2) & 1;
            barrier_wait(base + K_FULL + 8 * stage, parity);
            product_begin();
            start_scores(s, q, base + K_AT + stage * K_BYTES);
            mask_next(t - n);
            product_wait<0>();
            if (lane == 0) barrier_arrive(base + K_EMPTY + 8 * stage);
            if (take_powers(a, s, row, by, (t - n) * BN, (t - n + 1) * BN <= whole)) rescale(o, by);
            take_factors(s, p);
            barrier_wait(base + V_FULL + 8 * stage, parity);
            product_begin();
            start_sums(o, p, base + V_AT + stage * V_BYTES);
            product_wait<0>();
            if (lane == 0) barrier_arrive(base + V_EMPTY + 8 * stage);
        }
#endif
        n += x.tiles;
        /* Results go through the queries' place. */
        sync_some(MEET + group, 128);
        put_results(a, shared + group * Q_GROUP, o, row.sum, x.head, x.batch, row0);
        /* The next queries may come: all of the group have written and read their parts of this place. */
        fence_copies();
        sync_warp();
        if (lane == 0) barrier_arrive(base + Q_EMPTY);
    }
#if TRIGGER == 3
    grid_trigger();
#endif
}
