/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma.cu - products of many tiles on Hopper's warpgroups.
 *
 * Blocks stay and take tile after tile. A producer warpgroup keeps STAGES steps of 128 bytes along k on their way (a by
 * tensor copies, packed b by one bulk copy each); each of LINES consumer warpgroups multiplies 64 rows. While they write
 * a tile's results, the producer already fetches the next tile. The first steps of b are fetched before the dependency
 * wait.
 *
 * Of the columns that the instruction numbers, a thread has two of every eight, in two rows. Packed b is dealt so that
 * in each 32 of its columns those are 8 that follow one another (product.h): sums go from registers through the epilogue
 * to memory, 16 bytes of f16 at a time, four threads to a row. Where b is not packed the four exchange them.
 *
 * PINGPONG: the two consumer warpgroups take whole tiles by turns, so that one multiplies while the other writes. Each
 * has a barrier that says when the other has begun its last product.
 *
 * KEPT: the producer copies all of b for the columns of a block's tiles first, and it stays. STAGED: results leave by way
 * of shared memory (wgmma_staged.cuh).
 *
 * Beside what wgmma.cuh lists: STAGES; PINGPONG, with LINES 2; PAIRED, with LINES 2: two blocks share a multiprocessor;
 * IS_WHOLE, columns are a multiple of 8; STILL_WORDS, MOVING_WORDS: of 8 elements that the epilogue reads, of operands
 * that all rows share and of the others. */
#define SWAPPED 0
#include "wgmma.cuh"

/* Groups of 64 rows of which a warpgroup has the sums, and passes over 32 columns of those. */
enum { ATOMS = PINGPONG ? LINES : 1, ACROSS = BN / 32, PASSES = ATOMS * ACROSS };
#if STAGED
#include "wgmma_staged.cuh"
#else
enum { STAGED_BYTES = 0 };
#endif
/* Where shared memory holds, behind the steps, b that is KEPT, the slots of results, and the barriers. */
enum { THREADS = 128 * (1 + LINES), KEPT_AT = STAGES * STAGE, SLOTS_AT = KEPT_AT + KEPT * B_BYTES };
enum { BARS_AT = SLOTS_AT + STAGED_BYTES };
/* Registers of a thread that fetches, and of one that multiplies. */
enum { GIVE = PINGPONG || PAIRED ? 24 : LINES == 3 ? 32 : 40 };
enum { TAKE = PAIRED ? 104 : LINES == 1 ? 208 : LINES == 3 ? 160 : PINGPONG ? 240 : 232 };

/* Registers decide how far ahead operands that differ from row to row are fetched: those of the passes below EARLY
 * before the products, of those below fetched_by(i) before pass i is written. */
enum { ROW_REGS = ATOMS * 2 * sizeof(epi_row) / 4, MOVING_REGS = 2 * (MOVING_WORDS ? MOVING_WORDS : 1) };
enum { SPARE = TAKE - ATOMS * BN / 2 - ROW_REGS - 2 * STILL_WORDS - 8 * HAS_ZERO_X - 40 };
constexpr int room_for(int registers) { return registers < 0 ? 0 : registers / MOVING_REGS; }
constexpr int fetched_by(int pass)
{
    const int ahead = room_for(SPARE + 16 * pass), count = pass + (ahead ? ahead : 1);
    return count > PASSES ? PASSES : count;
}
enum { EARLY = room_for(SPARE) > PASSES ? PASSES : room_for(SPARE) };

DEVICE i32 columns_at(const wgmma_args &a, i32 column) { return IS_WHOLE ? 8 : smaller(8, a.n - column); }

/* Of four threads each has columns 2 t, 2 t + 1 of four times eight: each gets all of one eight. */
DEVICE void columns_exchange([[maybe_unused]] sum (&v)[8])
{
#if !PACKED
#pragma unroll
    for (int by = 2; by > 0; by--) {
        const bool is_high = lane_id() & by;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int low = by == 2 ? i : i % 2 + i / 2 * 4, high = low + 2 * by;
            const sum got = shuffle_xor(is_high ? v[low] : v[high], by);
            if (is_high) v[low] = got;
            else v[high] = got;
        }
    }
#endif
}

KERNEL void __launch_bounds__(THREADS, LINES == 1 || PAIRED ? 2 : 1)
wgmma(const __grid_constant__ wgmma_args a, const __grid_constant__ epi_args e)
{
    u8 *const shared = shared_base();
    const u32 base = shared_address(shared), full = base + BARS_AT, empty = full + 8 * STAGES;
    [[maybe_unused]] const u32 go = empty + 8 * STAGES; /* of each warpgroup: it is its turn to multiply */
    [[maybe_unused]] const u32 kept = go + 16 * PINGPONG;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, PINGPONG ? 4 : 4 * LINES);
        }
        for (int i = 0; i < 2 * PINGPONG; i++) barrier_init(go + 8 * i, 4);
#if STAGED
        for (int i = 0; i < ARRIVALS; i++) barrier_init(kept + 16 * !!KEPT + 8 * i, 1);
#endif
        if (KEPT) barrier_init(kept, 1);
        barrier_init_fence();
    }
    const i32 first_tile = (i32)blockIdx.x, every = (i32)gridDim.x;
    sync_block();
    if (threadIdx.x < 128) {
        registers_give<GIVE>();
        if (threadIdx.x == 0) {
            prefetch_map((const tensor_map *)a.map_a);
            /* The first steps: b before the wait where it is a constant. */
            place p = place_of(a, first_tile);
            const i32 early = PACKED && !KEPT && first_tile < a.tiles ? smaller((i32)STAGES, a.steps) : 0;
            for (i32 i = 0; i < early; i++) {
                barrier_expect(full + 8 * i, STAGE);
                fetch_b(a, base + i * STAGE + A_BYTES, full + 8 * i, i, p);
            }
            if (KEPT) barrier_expect(kept, KEPT * B_BYTES);
            for (i32 i = 0; i < KEPT; i++) fetch_b(a, base + KEPT_AT + i * B_BYTES, kept, i, p);
            grid_wait();
            for (i32 i = 0; i < early; i++) fetch_a(a, base + i * STAGE, full + 8 * i, i, p);
            u32 stage = early % STAGES, turn = early / STAGES;
            i32 step = early;
            for (i32 tile = first_tile; tile < a.tiles; tile += every, step = 0) {
                p = place_of(a, tile);
                for (; step < a.steps; step++) {
                    const u32 bar = full + 8 * stage;
                    if (turn) barrier_wait(empty + 8 * stage, (turn - 1) & 1);
                    barrier_expect(bar, STAGE);
                    fetch_a(a, base + stage * STAGE, bar, step, p);
                    if (!KEPT) fetch_b(a, base + stage * STAGE + A_BYTES, bar, step, p);
                    if (++stage == STAGES) stage = 0, turn++;
                }
            }
            grid_trigger();
        } else {
            grid_wait();
        }
        return;
    }
    registers_take<TAKE>();
    grid_wait();
    const u32 group = warpgroup_id() - 1, warp = warp_id() % 4, lane = lane_id();
    /* By turns: the group's own tiles, and slots from its first tile's on. */
    const u32 skipped = PINGPONG ? group * (u32)a.steps : 0, line_group = PINGPONG ? 0 : group;
    u32 stage = skipped % STAGES, turn = skipped / STAGES;
    [[maybe_unused]] u32 round = group;
    const i32 own_row = (i32)(line_group * 64 + warp * 16), stride = every * (1 + PINGPONG);
    i32 tile = first_tile + (PINGPONG ? (i32)group * every : 0);
    place p = place_of(a, smaller(tile, a.tiles - 1));
#if STAGED
    staging g = staging_of(shared + SLOTS_AT, base + SLOTS_AT, kept + 16 * !!KEPT, group * 4 + warp, lane);
#pragma unroll
    for (int s = 0; s < AHEAD; s++)
        if (lane == 0 && tile + s / OF_TILE * stride < a.tiles)
            staging_fetch(a, g, s, s % OF_TILE, own_row, place_of(a, tile + s / OF_TILE * stride));
#endif
    if (KEPT) barrier_wait(kept, 0);
    while (tile < a.tiles) {
        sum c[ATOMS][BN / 8][4];
        const i32 first = p.m + own_row + (i32)(lane / 4), within = p.n + (i32)(lane % 4) * 8;
        const i32 end = smaller(a.n, p.n + BN);
        epi_row row[ATOMS][2];
        epi_regs<8> still[2];
#pragma unroll
        for (int i = 0; i < 2 * ATOMS; i++) {
            i32 at[EPI_RANK];
            position(a, (BATCHED ? p.z * a.m : 0) + first + i / 2 * 64 + i % 2 * 8, at);
            epi_begin(e, row[i / 2][i % 2], at);
        }
        auto still_fetch = [&](int i) {
            const i32 column = within + i % ACROSS * 32;
            still[i % 2] = {};
            if (column < end) epi_fetch_still<8>(e, row[0][0], column, columns_at(a, column), still[i % 2]);
        };
        /* What the epilogue takes of pass i, which is of atom i / ACROSS, and of 32 columns; of two rows, the second 8
         * below. */
        auto sums_of = [&](int i, int k, const zero_terms &zero, epi_acc (&y)[8]) {
            sum v[8];
#pragma unroll
            for (int l = 0; l < 8; l++) v[l] = c[i / ACROSS][i % ACROSS * 4 + l / 2][2 * k + l % 2];
            columns_exchange(v);
#pragma unroll
            for (int l = 0; l < 8; l++) y[l] = v[l];
            zero_take(y, zero);
        };
        still_fetch(0);
#if !STAGED
        epi_regs<8> x[PASSES][2];
        auto fetch = [&](int i, int k) {
            const i32 rows = a.m - first - i / ACROSS * 64, column = within + i % ACROSS * 32;
            x[i][k] = {};                   /* else what is not read would stay alive from tile to tile */
            if (k * 8 < rows && column < end)
                epi_fetch_moving<8>(e, row[i / ACROSS][k], column, columns_at(a, column), x[i][k]);
        };
#pragma unroll
        for (int i = 0; i < 2 * EARLY; i++) fetch(i / 2, i % 2);
#endif
#if PINGPONG
        if (round > 0) barrier_wait(go + 8 * group, (round - 1) & 1);
        round++;
#endif
        u32 before = 0;
        for (i32 step = 0; step < a.steps; step++) {
            barrier_wait(full + 8 * stage, turn & 1);
            const u32 at = base + stage * STAGE;
            step_run(c, at, KEPT ? base + KEPT_AT + step * B_BYTES : at + A_BYTES, line_group, step > 0);
            if (step > 0) {
                product_wait<1>();
                if (lane == 0) barrier_arrive(empty + 8 * before);
            }
            before = stage;
            if (++stage == STAGES) stage = 0, turn++;
        }
#if PINGPONG
        if (lane == 0) barrier_arrive(go + 8 * (group ^ 1));
        stage += (u32)a.steps % STAGES; /* past the other's slots */
        turn += (u32)a.steps / STAGES + (stage >= STAGES);
        if (stage >= STAGES) stage -= STAGES;
#endif
        product_wait<0>();
        if (lane == 0) barrier_arrive(empty + 8 * before);
        tile += stride;
        const place next = place_of(a, smaller(tile, a.tiles - 1));
#pragma unroll
        for (int i = 0; i < PASSES; i++) {
            const i32 column = within + i % ACROSS * 32;
            zero_terms zero = {};
            if (column < end) zero_fetch(a, p.z, column, zero);
            if (i + 1 < PASSES) still_fetch(i + 1);
#if STAGED
            const int s = i / STRIP_PASSES;
            if (i % STRIP_PASSES == 0) {
                if (RESIDUAL) barrier_wait(g.arrived + 8 * g.slot, g.parity);
                else if (lane == 0) copies_out_wait<SLOTS - 1>();
                sync_warp();
            }
#pragma unroll
            for (int k = 0; k < 2; k++) {
                epi_acc y[8];
                epi_regs<8> x = {};
                sums_of(i, k, zero, y);
                row[0][0].staged = staging_place(g, i % STRIP_PASSES, k);
                epi_fetch_moving<8>(e, row[0][0], 0, 8, x);
                epi_keep<8>(still[i % 2], x);
                epi_apply<8>(e, row[0][0], 0, 8, x, y);
            }
            if ((i + 1) % STRIP_PASSES == 0) {
                fence_copies();
                sync_warp();
                if (lane == 0) {
                    staging_send(a, g, s, own_row, p);
                    /* Where the strip before was, a residual may come once that has left. */
                    const bool is_next = s + AHEAD >= OF_TILE;
                    if (RESIDUAL && (!is_next || tile < a.tiles)) {
                        copies_out_wait<1>();
                        staging_fetch(a, g, g.slot ? g.slot - 1 : SLOTS - 1, (s + AHEAD) % OF_TILE, own_row,
                                      is_next ? next : p);
                    }
                }
                staging_turn(g);
            }
#else
            const i32 rows = a.m - first - i / ACROSS * 64;
#pragma unroll
            for (int t = 2 * (i ? fetched_by(i - 1) : EARLY); t < 2 * fetched_by(i); t++) fetch(t / 2, t % 2);
#pragma unroll
            for (int k = 0; k < 2; k++) {
                epi_acc y[8];
                sums_of(i, k, zero, y);
                if (k * 8 >= rows || column >= end) continue;
                epi_keep<8>(still[i % 2], x[i][k]);
                epi_apply<8>(e, row[i / ACROSS][k], column, columns_at(a, column), x[i][k], y);
            }
#endif
        }
        p = next;
    }
#if STAGED
    if (lane == 0) copies_out_wait<0>();
#endif
}
