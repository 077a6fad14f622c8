/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma_once.cu - products of few tiles on Hopper's warpgroups: small tiles, a block or a cluster each.
 *
 * A producer warp keeps steps of 128 bytes along k on their way, all of them at once where they fit; the first of
 * packed b before the dependency wait. GROUPS times LINES warpgroups multiply: each group takes alternate steps. The
 * 2^split_log blocks of a cluster (CLUSTER) share the steps of a tile. All sums of a row are pushed into the shared
 * memory of the block that finishes the row, which stores it in 16-byte units; what its epilogue reads was fetched
 * before the products.
 *
 * Beside what wgmma.cuh lists: GROUPS, CLUSTER, MIN_BLOCKS. */
#include "wgmma.cuh"

enum { CONSUMERS = 128 * LINES * GROUPS, THREADS = CONSUMERS + 32 };
enum { ROW_ITEMS = TN / 8, MOST = TM * ROW_ITEMS / CONSUMERS };     /* items of a row, of a thread */
/* Sums of a row: so that what a warp writes at once falls on all banks. */
enum { PITCH = SWAPPED ? TN + 4 : TN + 8 };

/* Items of 8 columns that a thread finishes. */
struct item {
    epi_row row;
    epi_regs<8> regs;
    i32 number, column, count;
    bool is_one;
};

/* Registers decide how many items of a thread are fetched before the products, and at once after them. */
constexpr i32 LIMIT = 65536 / ((CONSUMERS + 64) * MIN_BLOCKS) / 8 * 8, ITEM_REGS = (i32)sizeof(item) / 4;
constexpr i32 between(i32 x, i32 low, i32 high) { return x < low || high < low ? low : x > high ? high : x; }
constexpr i32 EARLY = between((LIMIT - BN / 2 - 20 - 8 * HAS_ZERO_X) / ITEM_REGS, 1, MOST < 2 ? MOST : 2);
constexpr i32 LATER = between((LIMIT - 40 - 8 * HAS_ZERO_X) / ITEM_REGS - EARLY, 1, MOST - EARLY < 4 ? MOST - EARLY : 4);

DEVICE void item_fetch(const wgmma_args &a, const epi_args &e, const place &p, i32 number, i32 row0, i32 rows, item &x)
{
    const i32 row = number / ROW_ITEMS, m = p.m + row0 + row;
    x.number = number;
    x.column = p.n + number % ROW_ITEMS * 8;
    x.count = smaller(8, a.n - x.column);
    x.is_one = row < rows && m < a.m && x.count > 0;
    if (!x.is_one) return;
    i32 at[EPI_RANK];
    position(a, BATCHED ? p.z * a.m + m : m, at);
    epi_begin(e, x.row, at);
    epi_fetch<8>(e, x.row, x.column, x.count, x.regs);
}

DEVICE void item_finish(const epi_args &e, const sum *part, i32 parts, i32 rows, const zero_terms &zero,
                        const item &x)
{
    if (!x.is_one) return;
    const sum *from = part + x.number / ROW_ITEMS * PITCH + x.number % ROW_ITEMS * 8;
    epi_acc v[8] = {};
#pragma unroll 2
    for (i32 k = 0; k < parts; k++, from += rows * PITCH)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const vec<sum, 4> s = *(const vec<sum, 4> *)(from + 4 * h);
#pragma unroll
            for (int i = 0; i < 4; i++) v[4 * h + i] += s.at[i];
        }
    zero_take(v, zero);
    epi_apply<8>(e, x.row, x.column, x.count, x.regs, v);
}

template <int N>
DEVICE void items_fetch(const wgmma_args &a, const epi_args &e, const place &p, i32 number, i32 row0, i32 rows,
                        item (&x)[N])
{
#pragma unroll
    for (int k = 0; k < N; k++) item_fetch(a, e, p, number + k * CONSUMERS, row0, rows, x[k]);
}

template <int N>
DEVICE void items_finish(const epi_args &e, const sum *part, i32 parts, i32 rows, const zero_terms &zero,
                         const item (&x)[N])
{
#pragma unroll
    for (int k = 0; k < N; k++) item_finish(e, part, parts, rows, zero, x[k]);
}

KERNEL void __launch_bounds__(THREADS, MIN_BLOCKS)
wgmma_once(const __grid_constant__ wgmma_args a, const __grid_constant__ epi_args e)
{
    u8 *const shared = shared_base();
    const u32 base = shared_address(shared), full = base + (u32)a.barriers_at, empty = full + 8 * (u32)a.stages;
    const i32 split_log = CLUSTER ? a.split_log : 0, rank = CLUSTER ? (i32)cluster_rank() : 0;
    const place p = place_of(a, (i32)blockIdx.x >> split_log);
    const i32 first = rank * a.steps >> split_log, n = ((rank + 1) * a.steps >> split_log) - first;
    const i32 filled = smaller(n, a.stages);
    if (threadIdx.x == CONSUMERS) {
        if (a.trigger == 1) grid_trigger();
        for (i32 i = 0; i < a.stages; i++) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, 4 * LINES);
        }
        barrier_init_fence();
        for (i32 i = 0; i < filled; i++) {
            barrier_expect(full + 8 * i, STAGE);
            if (PACKED) fetch_b(a, base + i * STAGE + A_BYTES, full + 8 * i, first + i, p);
        }
        prefetch_map((const tensor_map *)a.map_a);
    }
    sync_block();
#if CLUSTER
    cluster_arrive();                   /* every block has begun: waited for before any writes to another */
#endif
    grid_wait();
    if (threadIdx.x >= CONSUMERS) {
        if (threadIdx.x == CONSUMERS) {
            for (i32 i = 0; i < filled; i++) {
                if (!PACKED) fetch_b(a, base + i * STAGE + A_BYTES, full + 8 * i, first + i, p);
                fetch_a(a, base + i * STAGE, full + 8 * i, first + i, p);
            }
            if (a.trigger == 2) grid_trigger();
            u32 slot = 0, parity = 0;
            for (i32 i = filled; i < n; i++) {
                const u32 bar = full + 8 * slot, at = base + slot * STAGE;
                barrier_wait(empty + 8 * slot, parity);
                barrier_expect(bar, STAGE);
                fetch_b(a, at + A_BYTES, bar, first + i, p);
                fetch_a(a, at, bar, first + i, p);
                if ((i32)++slot == a.stages) slot = 0, parity ^= 1;
            }
            if (a.trigger == 3) grid_trigger();
        }
        sync_warp();
#if CLUSTER
        cluster_wait();
        cluster_sync();
#endif
        return;
    }

    const i32 t = (i32)threadIdx.x, warpgroup = (i32)warpgroup_id(), warp = (i32)warp_id() % 4, lane = (i32)lane_id();
    const i32 group = warpgroup / LINES, line_group = warpgroup % LINES, rows = TM >> split_log, items = rows * ROW_ITEMS;
    item x[EARLY];
    items_fetch(a, e, p, t, rank * rows, rows, x);
    zero_terms zero;                    /* all items of a thread are of the same columns */
    if (p.n + t % ROW_ITEMS * 8 < a.n) zero_fetch(a, p.z, p.n + t % ROW_ITEMS * 8, zero);

    sum sums[1][BN / 8][4];
    const sum (&c)[BN / 8][4] = sums[0];
    i32 slot = group, before = 0;
    u32 parity = 0;
    for (i32 i = group; i < n; i += GROUPS) {
        barrier_wait(full + 8 * slot, parity);
        step_run(sums, base + slot * STAGE, base + slot * STAGE + A_BYTES, line_group, i >= GROUPS);
        if (i >= GROUPS) {
            product_wait<1>();
            if (lane == 0) barrier_arrive(empty + 8 * before);
        }
        before = slot;
        slot += GROUPS;
        if (slot >= a.stages) slot -= a.stages, parity ^= 1;
    }
    product_wait<0>();

    sum *part = (sum *)shared;
#if CLUSTER
    part += (u32)a.sums_at / 4;
    cluster_wait();
#else
    sync_some(1, CONSUMERS);            /* sums take the place of the steps */
#endif
    const i32 left = a.m - p.m, line = line_group * 64 + warp * 16 + (lane >> 2), across = (lane & 3) * 2;
#pragma unroll
    for (int j = 0; j < (SWAPPED ? BN / 8 : 1); j++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const i32 row = SWAPPED ? j * 8 + across + h : line + 8 * h;
            if (row >= left) continue;
#if CLUSTER
            const i32 owner = (row << split_log) / TM;
            sum *to = cluster_map(part, (u32)owner) + ((rank * GROUPS + group) * rows + row - owner * rows) * PITCH;
#else
            sum *to = part + (group * TM + row) * PITCH;
#endif
#if SWAPPED
            to[line] = c[j][h];
            to[line + 8] = c[j][h + 2];
#else
#pragma unroll
            for (int i = 0; i < BN / 8; i++) *(vec<sum, 2> *)(to + i * 8 + across) = { c[i][2 * h], c[i][2 * h + 1] };
#endif
        }
    item y[LATER];
    if (EARLY * CONSUMERS < items) items_fetch(a, e, p, t + EARLY * CONSUMERS, rank * rows, rows, y);
#if CLUSTER
    cluster_sync();
#else
    sync_some(1, CONSUMERS);
#endif
    const i32 parts = GROUPS << split_log;
    items_finish(e, part, parts, rows, zero, x);
    for (i32 from = EARLY * CONSUMERS; from < items;) {
        items_finish(e, part, parts, rows, zero, y);
        from += LATER * CONSUMERS;
        if (from < items) items_fetch(a, e, p, from + t, rank * rows, rows, y);
    }
}
