/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma.cu - products of many tiles on Hopper's warpgroups.
 *
 * Blocks stay and take tile after tile. A producer warpgroup keeps STAGES steps of 128 bytes along k on their way (a by
 * tensor copies, packed b by one bulk copy each); each of LINES consumer warpgroups multiplies 64 rows. While they write
 * a tile's results, up to 64 columns at a time through shared memory so that whole rows are written at once, the
 * producer already fetches the next tile. The first steps of b are fetched before the dependency wait.
 *
 * PINGPONG: the two consumer warpgroups take whole tiles by turns, so that one multiplies while the other writes. Each
 * has a barrier that says when the other has begun its last product.
 *
 * Beside what wgmma.cuh lists: STAGES; PINGPONG, with LINES 2; STILL_WORDS, MOVING_WORDS: of 8 elements that the
 * epilogue reads, of operands that all rows share and of the others. */
#define SWAPPED 0
#include "wgmma.cuh"

enum { THREADS = 128 * (1 + LINES) };
enum { WIDTH = BN < 64 ? BN : 64, ITEMS = WIDTH / 8 };      /* columns staged at a time; items of 8 of them */
enum { BATCH = ITEMS / 2 };                                 /* items of a thread in each pass */
enum { PASSES = (BN + WIDTH - 1) / WIDTH };                 /* the last may be of fewer columns */
enum { LINE = WIDTH + 4, PART = 16 * LINE * 4 };            /* sums of a staged row, bytes of a warp's staging */
enum { PARTS_AT = STAGES * STAGE, BARS_AT = PARTS_AT + LINES * 4 * PART };
/* Groups of 64 rows of which a warpgroup has the sums; registers of a thread that fetches, and of one that multiplies. */
enum { ATOMS = PINGPONG ? LINES : 1, GIVE = PINGPONG ? 24 : 40, TAKE = LINES == 1 ? 208 : PINGPONG ? 240 : 232 };

/* Registers decide how far ahead of their use a pass's operands are fetched: under the last products; under the pass
 * before; all at its beginning; one item at a time. */
enum { LIMIT = TAKE - (ATOMS - 1) * BN / 2 };
enum { ROWS_REGS = sizeof(epi_row) / 4 + (BATCH - 1) * 2 * (EPI_MOVING + 1) };
enum { PASS_REGS = STILL_WORDS + BATCH * MOVING_WORDS + 8 * HAS_ZERO_X };
constexpr bool IS_EARLY = BN / 2 + ROWS_REGS + PASS_REGS + 56 <= LIMIT;
constexpr bool IS_AHEAD = (BN - WIDTH) / 2 + ROWS_REGS + 2 * PASS_REGS + 56 <= LIMIT;
constexpr bool IS_TOGETHER = (BN - WIDTH) / 2 + ROWS_REGS + PASS_REGS + 72 <= LIMIT;

/* What the epilogue reads for the items of one pass, from column `column` to `end`: what all rows share, and the rest. */
struct pass { epi_regs<8> still, regs[BATCH]; zero_terms zero; };

DEVICE void pass_begin(const wgmma_args &a, const epi_args &e, const epi_row &row, i32 z, i32 column, i32 end,
                       pass &x)
{
    if (column >= end) return;
    epi_fetch_still<8>(e, row, column, smaller(8, a.n - column), x.still);
    zero_fetch(a, z, column, x.zero);
}

DEVICE void pass_fetch(const wgmma_args &a, const epi_args &e, const epi_row (&row)[BATCH], i32 z, i32 rows,
                       i32 column, i32 end, pass &x)
{
    pass_begin(a, e, row[0], z, column, end, x);
#pragma unroll
    for (int i = 0; i < BATCH; i++)
        if (i * (32 / ITEMS) < rows && column < end)
            epi_fetch_moving<8>(e, row[i], column, smaller(8, a.n - column), x.regs[i]);
}

KERNEL void __launch_bounds__(THREADS, LINES == 1 ? 2 : 1)
wgmma(const __grid_constant__ wgmma_args a, const __grid_constant__ epi_args e)
{
    u8 *const shared = shared_base();
    const u32 base = shared_address(shared), full = base + BARS_AT, empty = full + 8 * STAGES;
    [[maybe_unused]] const u32 go = empty + 8 * STAGES; /* of each warpgroup: it is its turn to multiply */
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, PINGPONG ? 4 : 4 * LINES);
        }
        for (int i = 0; i < 2 * PINGPONG; i++) barrier_init(go + 8 * i, 4);
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
            const i32 early = PACKED && first_tile < a.tiles ? smaller((i32)STAGES, a.steps) : 0;
            for (i32 i = 0; i < early; i++) {
                barrier_expect(full + 8 * i, STAGE);
                fetch_b(a, base + i * STAGE, full + 8 * i, i, p);
            }
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
                    fetch_b(a, base + stage * STAGE, bar, step, p);
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
    const u32 group = threadIdx.x / 128 - 1, warp = warp_id() % 4, lane = lane_id();
    sum *const part = (sum *)(shared + PARTS_AT + (group * 4 + warp) * PART);
    /* By turns: the group's own tiles, and slots from its first tile's on. */
    const u32 skipped = PINGPONG ? group * (u32)a.steps : 0, line_group = PINGPONG ? 0 : group;
    u32 stage = skipped % STAGES, turn = skipped / STAGES;
    [[maybe_unused]] u32 round = group;
    for (i32 tile = first_tile + (PINGPONG ? (i32)group * every : 0); tile < a.tiles; tile += every * (1 + PINGPONG)) {
        sum c[ATOMS][BN / 8][4];
        const place p = place_of(a, tile);
#if PINGPONG
        if (round > 0) barrier_wait(go + 8 * group, (round - 1) & 1);
        round++;
#endif
        u32 before = 0;
        for (i32 step = 0; step < a.steps; step++) {
            barrier_wait(full + 8 * stage, turn & 1);
            step_run(c, base + stage * STAGE, line_group, step > 0);
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
        const i32 within = (i32)(lane % ITEMS) * 8, end = smaller(a.n, p.n + BN);
#pragma unroll
        for (int h = 0; h < ATOMS; h++) {
            /* Rows of the result: first, first + 32 / ITEMS, …; `rows` are left from the first on. */
            const i32 first = p.m + (i32)((line_group + h) * 64 + warp * 16 + lane / ITEMS), rows = a.m - first;
            epi_row row[BATCH];
            pass x[2];
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                i32 at[EPI_RANK];
                position(a, (BATCHED ? p.z * a.m : 0) + first + i * (32 / ITEMS), at);
                epi_begin(e, row[i], at);
            }
            if (IS_EARLY && h == 0) pass_fetch(a, e, row, p.z, rows, p.n + within, end, x[0]);
            if (h == 0) {
                product_wait<0>();
                if (lane == 0) barrier_arrive(empty + 8 * before);
            }
#pragma unroll
            for (int q = 0; q < PASSES; q++) {
#pragma unroll
                for (int j = 0; j < WIDTH / 8; j++) {
                    if (q * (WIDTH / 8) + j >= BN / 8) continue;
                    sum *to = part + (lane >> 2) * LINE + j * 8 + (lane & 3) * 2;
                    const sum (&from)[4] = c[h][q * (WIDTH / 8) + j];
                    *(vec<sum, 2> *)to = { from[0], from[1] };
                    *(vec<sum, 2> *)(to + 8 * LINE) = { from[2], from[3] };
                }
                sync_warp();
                const i32 column = p.n + q * WIDTH + within;
                if (!IS_TOGETHER) pass_begin(a, e, row[0], p.z, column, end, x[q & 1]);
                else if (q ? !IS_AHEAD : h || !IS_EARLY) pass_fetch(a, e, row, p.z, rows, column, end, x[q & 1]);
                if (IS_AHEAD && q + 1 < PASSES) pass_fetch(a, e, row, p.z, rows, column + WIDTH, end, x[(q + 1) & 1]);
#pragma unroll
                for (int i = 0; i < BATCH; i++) {
                    if (i * (32 / ITEMS) >= rows || column >= end) continue;
                    if (!IS_TOGETHER) epi_fetch_moving<8>(e, row[i], column, smaller(8, a.n - column), x[q & 1].regs[i]);
                    epi_keep<8>(x[q & 1].still, x[q & 1].regs[i]);
                    const sum *from = part + (i * (32 / ITEMS) + (i32)(lane / ITEMS)) * LINE + within;
                    epi_acc v[8];
#pragma unroll
                    for (int k = 0; k < 2; k++) {
                        const vec<sum, 4> s = *(const vec<sum, 4> *)(from + 4 * k);
#pragma unroll
                        for (int l = 0; l < 4; l++) v[4 * k + l] = s.at[l];
                    }
                    zero_take(v, x[q & 1].zero);
                    epi_apply<8>(e, row[i], column, smaller(8, a.n - column), x[q & 1].regs[i], v);
                }
                sync_warp();
            }
        }
    }
}
