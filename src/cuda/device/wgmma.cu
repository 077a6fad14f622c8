/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma.cu - products of many tiles on Hopper's warpgroups.
 *
 * Blocks stay and take tile after tile. A producer warpgroup keeps STAGES steps of 64 along k on their way (a by tensor
 * copies, packed b by one bulk copy each); each of LINES consumer warpgroups multiplies 64 rows. While they write a
 * tile's results, up to 64 columns at a time through shared memory so that rows are written in 16-byte units, the
 * producer already fetches the next tile. The first steps of b are fetched before the dependency wait. */
#define SWAPPED 0
#include "wgmma.cuh"

enum { THREADS = 128 * (1 + LINES) };
enum { WIDTH = BN < 64 ? BN : 64, ITEMS = WIDTH / 8 };      /* columns staged at a time; items of 8 of them */
enum { LINE = WIDTH + 4, PART = 16 * LINE * 4 };            /* floats of a staged row, bytes of a warp's staging */
enum { PARTS_AT = STAGES * STAGE, BARS_AT = PARTS_AT + LINES * 4 * PART };

KERNEL void __launch_bounds__(THREADS, LINES == 1 ? 2 : 1) wgmma(const __grid_constant__ wgmma_args a, const __grid_constant__ epi_args e)
{
    u8 *const shared = shared_base();
    const u32 base = shared_address(shared), full = base + BARS_AT, empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, 4 * LINES);
        }
        barrier_init_fence();
    }
    sync_block();
    if (threadIdx.x < 128) {
        registers_give<40>();
        if (threadIdx.x == 0) {
            prefetch_map((const tensor_map *)a.map_a);
            /* The first steps: b before the wait where it is a constant. */
            place p = place_of(a, blockIdx.x);
            const i32 early = PACKED && (i32)blockIdx.x < a.tiles ? smaller((i32)STAGES, a.steps) : 0;
            for (i32 i = 0; i < early; i++) {
                barrier_expect(full + 8 * i, STAGE);
                fetch_b(a, base + i * STAGE, full + 8 * i, i, p);
            }
            grid_wait();
            for (i32 i = 0; i < early; i++) fetch_a(a, base + i * STAGE, full + 8 * i, i, p);
            u32 stage = early % STAGES, turn = early / STAGES;
            i32 step = early;
            for (i32 tile = blockIdx.x; tile < a.tiles; tile += gridDim.x, step = 0) {
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
    registers_take<LINES == 1 ? 208 : 232>();
    grid_wait();
    const u32 group = threadIdx.x / 128 - 1, warp = warp_id() % 4, lane = lane_id();
    float *const part = (float *)(shared + PARTS_AT + (group * 4 + warp) * PART);
    u32 stage = 0, turn = 0;
    for (i32 tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
        float c[BN / 8][4];
        const place p = place_of(a, tile);
        u32 before = 0;
        for (i32 step = 0; step < a.steps; step++) {
            barrier_wait(full + 8 * stage, turn & 1);
            step_run(c, base + stage * STAGE, group, step > 0);
            if (step > 0) {
                product_wait<1>();
                if (lane == 0) barrier_arrive(empty + 8 * before);
            }
            before = stage;
            if (++stage == STAGES) stage = 0, turn++;
        }
        product_wait<0>();
        if (lane == 0) barrier_arrive(empty + 8 * before);
        const i32 row0 = p.m + group * 64 + warp * 16;
        epi_row row;
        i32 at[EPI_RANK];
#pragma unroll
        for (int q = 0; q < BN / WIDTH; q++) {
#pragma unroll
            for (int j = 0; j < WIDTH / 8; j++) {
                float *to = part + (lane >> 2) * LINE + j * 8 + (lane & 3) * 2;
                const float (&from)[4] = c[q * (WIDTH / 8) + j];
                *(vec<float, 2> *)to = { from[0], from[1] };
                *(vec<float, 2> *)(to + 8 * LINE) = { from[2], from[3] };
            }
            sync_warp();
            const i32 within = (i32)(lane % ITEMS) * 8, column = p.n + q * WIDTH + within;
#pragma unroll
            for (int i = 0; i < ITEMS / 2; i++) {
                const i32 line = i * (32 / ITEMS) + (i32)(lane / ITEMS), r = row0 + line;
                if (r >= a.m || column >= a.n) continue;
                float v[8];
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const vec<float, 4> x = *(const vec<float, 4> *)(part + line * LINE + within + 4 * h);
#pragma unroll
                    for (int k = 0; k < 4; k++) v[4 * h + k] = x.at[k];
                }
                position(a, BATCHED ? p.z * a.m + r : r, at);
                epi_begin(e, row, at);
                epi_run<8>(e, row, column, smaller(8, a.n - column), v);
            }
            sync_warp();
        }
    }
}
