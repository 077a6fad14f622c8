/* SPDX-License-Identifier: Apache-2.0 */
/* mma.cu - products of matrices and convolutions on tensor cores by mma.sync: every chip from sm_75 on.
 *
 * A block makes BM x BN of D. Rows of X and W pass through shared memory in steps of 128 bytes of k, each step in a slot
 * of its own: as many slots as the block has steps where they fit (then nothing waits but for its first data), a ring
 * else. KG groups of WM x WN warps take alternate steps, so that small tiles have warps enough; their sums, and on
 * sm_90 those of the 2^split_log blocks of a cluster that share the steps, are pushed into the shared memory of the
 * block that finishes those rows, which stores whole rows in 16-byte units. On sm_90 weights come by bulk copies that
 * begin before the grid's dependency is waited for, and each slot has a barrier; below, groups of copies are counted.
 *
 * TRANSPOSED: phases of a transposed convolution. Each is a convolution whose number of steps is its own; they read the
 * same, so blocks of one place in all phases stand beside one another.
 *
 * Compiled with: TYPE, BM, BN, WM, WN, KG, MIN_BLOCKS; CLUSTER (sums meet in a cluster); A_VEC (elements of X read at
 * once); SPATIAL (axes with taps; 0: none); ROW_AXES, AXIS_GAP (result axes of a row: 0, 1 + AXIS_GAP, …), BATCH_AXES,
 * GROUPED; TRANSPOSED; PROLOGUE; B_KIND, B_VEC (elements of W read at once where it is not packed); VEC (columns of an epilogue item); HAS_ZERO_X, HAS_ZERO_W (integers); on sm_90
 * RING (slots are filled again), below it STAGES.
 *
 * Zero points: the sum of (x - zx) (w - zw) is that of x w, less zx times the sum of w, less zw times the sum of x, and
 * terms * zx * zw. Sums of w are packed behind the weights; those of x are a product by ones. */
#include "prelude.cuh"

#include "mma_args.h"

#include "generated.cuh"

constexpr i32 THREADS = 32 * WM * WN * KG;
constexpr i32 ELEMENT = TYPE <= MMA_BF16 ? 2 : TYPE == MMA_TF32 ? 4 : 1;
[[maybe_unused]] constexpr i32 CHUNK = 16 / ELEMENT;
constexpr i32 A_BYTES = BM * MMA_STEP_BYTES, B_BYTES = BN * MMA_STEP_BYTES;
constexpr i32 MI = BM / WM / 16, NJ = BN / WN / 8;      /* a warp: MI x NJ tiles of 16 x 8 */
constexpr i32 PASS = THREADS / 8;                       /* rows that all threads copy at once */
constexpr i32 A_ROWS = (BM + PASS - 1) / PASS;
constexpr i32 PITCH = BN + 8;                           /* of partial sums: rows of a fragment fall on other banks */
constexpr i32 ITEMS = (BM * BN / VEC / (CLUSTER ? 2 : 1) + THREADS - 1) / THREADS;
constexpr bool IS_EARLY = ITEMS <= 2;                   /* operands of the epilogue are read before the main loop */
constexpr i32 BATCH = IS_EARLY ? ITEMS : THREADS * MIN_BLOCKS > 256 ? 2 : 4;
constexpr i32 AXES = SPATIAL ? SPATIAL : 1, BATCHES = BATCH_AXES ? BATCH_AXES : 1;

#if TYPE >= MMA_S8
typedef i32 sum;
#else
typedef float sum;
#endif
#if TYPE == MMA_U8 || TYPE == MMA_U8_S8
typedef u8 x_byte;
#else
typedef i8 x_byte;
#endif
#if TYPE == MMA_U8 || TYPE == MMA_S8_U8
typedef u8 w_byte;
#else
typedef i8 w_byte;
#endif

DEVICE void product(sum (&c)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
#if TYPE == MMA_F16
    mma_f16(c, a, b0, b1);
#elif TYPE == MMA_BF16
    mma_bf16(c, a, b0, b1);
#elif TYPE == MMA_TF32
    mma_tf32(c, a, b0, b1);
#elif TYPE == MMA_S8
    mma_s8(c, a, b0, b1);
#elif TYPE == MMA_U8
    mma_u8(c, a, b0, b1);
#elif TYPE == MMA_S8_U8
    mma_s8_u8(c, a, b0, b1);
#else
    mma_u8_s8(c, a, b0, b1);
#endif
}

/* ---- which tile ---- */

struct place {
    i32 rank, m0, n0, z, batch[BATCHES];
#if TRANSPOSED
    i32 phase[ROW_AXES - 1];
    const mma_phases *phases;
#endif
};

DEVICE place place_of(const mma_args &a)
{
    place p = {};
    i32 tile = (i32)blockIdx.x;
    i32 columns;
#if CLUSTER
    p.rank = tile & ((1 << a.split_log) - 1);
    tile >>= a.split_log;
#endif
    i32 n_tile, band, rest;
#if TRANSPOSED
    divmod_fast(tile, a.batch_div[0], tile, p.z);
#elif BATCH_AXES || GROUPED
    divmod_fast(tile, a.tile_div, p.z, tile);
#endif
    divmod_fast(tile, a.band_div, band, rest);
    const i32 first = band << a.band_log, height = a.m_tiles - first;
    if (height >= 1 << a.band_log) {
        n_tile = rest >> a.band_log;
        columns = rest & ((1 << a.band_log) - 1);
    } else {
        n_tile = (i32)((u32)rest / (u32)height);
        columns = rest - n_tile * height;
    }
    p.m0 = (first + columns) * BM;
    p.n0 = n_tile * BN;
#if BATCH_AXES
    i32 z = p.z;
#pragma unroll
    for (i32 i = BATCH_AXES - 1; i > 0; i--) divmod_fast(z, a.batch_div[i], z, p.batch[i]);
    p.batch[0] = z;
#endif
    return p;
}

#if TRANSPOSED
/* Makes the arguments of all phases those of this block's. */
DEVICE void phase_begin(const mma_phases &all, place &p, mma_args &a)
{
    constexpr i32 LAST = ROW_AXES - 2;
    i32 z = p.z;
    p.phases = &all;
    a.chunks = 1;
#pragma unroll
    for (i32 i = LAST; i >= 0; i--) {
        p.phase[i] = z;
        if (i) divmod_fast(z, all.stride[i], z, p.phase[i]);
        const mma_phase &x = all.at[i][p.phase[i]];
        a.chunks *= (i32)(i == LAST ? x.run.d : x.taps.d);
#if SPATIAL
        a.pad[i] = -x.start;
        a.kernel_div[i] = x.taps;
        a.x_base += x.start * a.x_step[1 + i];
#endif
        if (i < LAST) continue;
        a.taps_inner = (i32)x.taps.d;
        if (A_VEC != CHUNK) a.run_div = x.run;
    }
    a.steps = (a.chunks + 7) / 8;
}
#endif

DEVICE void row_split(const mma_args &a, i32 m, i32 (&at)[ROW_AXES])
{
#pragma unroll
    for (i32 i = ROW_AXES - 1; i > 0; i--) divmod_fast(m, a.row_div[i], m, at[i]);
    at[0] = m;
}

#include "mma_x.cuh"

/* ---- W into shared memory ---- */

constexpr bool W_STORED = B_KIND != MMA_B_PACKED && B_VEC * ELEMENT < 4;
/* How often a thread arrives at the barrier of a slot: for what it stored, and for its copies. */
[[maybe_unused]] constexpr i32 ARRIVALS = B_KIND != MMA_B_PACKED && (PROLOGUE || IS_STORED != W_STORED) ? 2 : 1;

DEVICE const u8 *w_matrix(const mma_args &a, const place &p)
{
    const u8 *base = (const u8 *)a.w;
#if GROUPED || TRANSPOSED
    base += (i64)p.z * a.w_batch[0];
#endif
#pragma unroll
    for (i32 i = 0; i < BATCH_AXES; i++) base += (i64)p.batch[i] * a.w_batch[i];
    return base;
}

DEVICE const u8 *w_begin(const mma_args &a, const place &p)
{
    const u8 *base = w_matrix(a, p);
#if B_KIND == MMA_B_PACKED
    base += (i64)(p.n0 / BN) * a.steps * B_BYTES;
#elif B_KIND == MMA_B_NK
    base += (i64)p.n0 * a.w_pitch;
#else
    base += p.n0 * ELEMENT;
#endif
    return base;
}

#if B_KIND != MMA_B_PACKED
/* 16 bytes of W, of which the first `count` elements are there; the others are zero. */
DEVICE void w_chunk(u32 to, const u8 *from, i32 count)
{
    constexpr i32 PARTS = CHUNK / B_VEC, BYTES = B_VEC * ELEMENT;
    const u32 at = shared_address(shared_base()) + to;
    if constexpr (PARTS == 1) {
        copy_async16(at, from, count > 0);
    } else if constexpr (!W_STORED) {
#pragma unroll
        for (i32 v = 0; v < PARTS; v++) copy_async<BYTES>(at + v * BYTES, from + v * BYTES, v * B_VEC < count);
    } else {
        u32 w[4] = {};
#pragma unroll
        for (i32 v = 0; v < 8; v++)
            if (v < count) w[v >> 1] |= (u32)((const u16 *)from)[v] << 16 * (v & 1);
        *(u32x4 *)(shared_base() + to) = u32x4{ w[0], w[1], w[2], w[3] };
    }
}
#endif

#if SM < 90 || B_KIND != MMA_B_PACKED
/* By all threads: where there are no bulk copies, or W is not packed. */
DEVICE void w_load(const mma_args &a, const place &p, const u8 *w, i32 step, u32 to)
{
    const i32 t = (i32)threadIdx.x, chunk = t & 7, first = t >> 3;
#pragma unroll
    for (i32 j = 0; j < (BN + PASS - 1) / PASS; j++) {
        const i32 row = first + j * PASS;
        if (BN % PASS && row >= BN) continue;
#if B_KIND == MMA_B_PACKED
        copy_async16(shared_address(shared_base()) + to + row * MMA_STEP_BYTES + chunk * 16,
                     w + (i64)step * B_BYTES + row * MMA_STEP_BYTES + chunk * 16, true);
#elif B_KIND == MMA_B_NK
        const i32 q = step * 8 + chunk;
        w_chunk(to + row * MMA_STEP_BYTES + ((u32)(chunk ^ (row & 7)) << 4), w + row * a.w_pitch + (i64)q * 16,
                p.n0 + row < a.cols ? (i32)a.channel_div.d - q * CHUNK : 0);
#else
        /* Panels of 64 columns, each of 64 rows of k. */
        const i32 panel = row >> 6, k = row & 63, at = panel * 64 + chunk * 8;
        w_chunk(to + row * MMA_STEP_BYTES + ((u32)(chunk ^ (k & 7)) << 4),
                w + (i64)(step * 64 + k) * a.w_pitch + at * ELEMENT,
                step * 64 + k < (i32)a.channel_div.d ? a.cols - p.n0 - at : 0);
#endif
    }
}
#endif

/* ---- products ---- */

struct fragments {
    u32 a[MI][4], b[NJ / 2][4];
};

struct lane_places {
    u32 a, b[B_KIND == MMA_B_KN ? NJ / 2 : 1];  /* of the first 32 bytes of k, relative to a slot */
};

DEVICE lane_places lane_begin(i32 wm, i32 wn)
{
    lane_places l;
    const u32 lane = lane_id();
    l.a = (u32)(wm * (BM / WM) + (lane & 15)) * MMA_STEP_BYTES + (((lane >> 4) ^ (lane & 7)) << 4);
#if B_KIND == MMA_B_KN
    const u32 k = (lane & 7) + (lane >> 3 & 1) * 8;
#pragma unroll
    for (i32 j = 0; j < NJ / 2; j++) {
        const u32 n = (u32)(wn * (BN / WN) + j * 16);
        l.b[j] = (n >> 6) * 8192 + k * MMA_STEP_BYTES + ((((n >> 3 & 7) + (lane >> 4)) ^ (lane & 7)) << 4);
    }
#else
    l.b[0] = (u32)(wn * (BN / WN) + (lane & 7) + (lane >> 4 << 3)) * MMA_STEP_BYTES +
             (((lane >> 3 & 1) ^ (lane & 7)) << 4);
#endif
    return l;
}

DEVICE void fragments_load(fragments &f, const lane_places &l, u32 a, u32 b, i32 k)
{
#pragma unroll
    for (i32 m = 0; m < MI; m++) load_matrix4(f.a[m], a + ((l.a + m * 16 * MMA_STEP_BYTES) ^ (u32)(k << 5)));
#pragma unroll
    for (i32 j = 0; j < NJ / 2; j++) {
#if B_KIND == MMA_B_KN
        load_matrix4_transposed(f.b[j], b + l.b[j] + k * 16 * MMA_STEP_BYTES);
#else
        load_matrix4(f.b[j], b + ((l.b[0] + j * 16 * MMA_STEP_BYTES) ^ (u32)(k << 5)));
#endif
    }
#if TYPE == MMA_TF32
#pragma unroll
    for (i32 m = 0; m < MI; m++)
#pragma unroll
        for (i32 i = 0; i < 4; i++) f.a[m][i] = to_tf32(float_of_bits(f.a[m][i]));
#if B_KIND != MMA_B_PACKED
#pragma unroll
    for (i32 j = 0; j < NJ / 2; j++)
#pragma unroll
        for (i32 i = 0; i < 4; i++) f.b[j][i] = to_tf32(float_of_bits(f.b[j][i]));
#endif
#endif
}

#if HAS_ZERO_W
/* Sums of the rows of X: every column of a product by ones. */
DEVICE void step_sums(sum (&acc)[MI][4], const lane_places &l, u32 a)
{
#pragma unroll
    for (i32 k = 0; k < 4; k++)
#pragma unroll
        for (i32 m = 0; m < MI; m++) {
            u32 f[4];
            load_matrix4(f, a + ((l.a + m * 16 * MMA_STEP_BYTES) ^ (u32)(k << 5)));
            product(acc[m], f, 0x01010101, 0x01010101);
        }
}
#endif

/* One step: four times 32 bytes of k, the next fragments under way while these are multiplied where there is room.
 * `between` is called amid it: the tensor cores have work while copies are issued. */
template <class F>
DEVICE void step_run(sum (&acc)[MI][NJ][4], const lane_places &l, u32 a, u32 b, const F &between)
{
    constexpr bool IS_DOUBLE = THREADS * MIN_BLOCKS <= 256 || MI * NJ < 16;
    fragments f[2];
    if (IS_DOUBLE) fragments_load(f[0], l, a, b, 0);
#pragma unroll
    for (i32 k = 0; k < 4; k++) {
        if (!IS_DOUBLE) fragments_load(f[k & 1], l, a, b, k);
        else if (k < 3) fragments_load(f[(k + 1) & 1], l, a, b, k + 1);
        fragments &g = f[k & 1];
#pragma unroll
        for (i32 m = 0; m < MI; m++)
#pragma unroll
            for (i32 j = 0; j < NJ; j++) product(acc[m][j], g.a[m], g.b[j >> 1][(j & 1) * 2], g.b[j >> 1][(j & 1) * 2 + 1]);
        if (k == 1) between();
    }
}

/* ---- results ---- */

/* Item e of those that this block finishes: where it is; false where it is beyond the result. */
DEVICE bool item_begin(const mma_args &a, const epi_args &ea, const place &p, i32 e, i32 rows, epi_row &r, i32 &i,
                       i32 &count)
{
    const i32 row = e / (BN / VEC), n = p.n0 + e % (BN / VEC) * VEC, m = p.m0 + p.rank * rows + row;
    i = n;
    count = smaller(a.cols - n, (i32)VEC);
    if (row >= rows || m >= a.rows || count <= 0) return false;
    i32 at[EPI_RANK] = {}, row_at[ROW_AXES];
#pragma unroll
    for (i32 k = 0; k < BATCH_AXES; k++) at[k] = p.batch[k];
    row_split(a, m, row_at);
#pragma unroll
    for (i32 k = 0; k < ROW_AXES; k++) at[k ? BATCH_AXES + k + AXIS_GAP : BATCH_AXES] = row_at[k];
#if TRANSPOSED
    /* The last of a row or a column lie beyond it in some phases. */
    bool is_in = true;
#pragma unroll
    for (i32 k = 1; k < ROW_AXES; k++) {
        const i32 o = row_at[k] * (i32)p.phases->stride[k - 1].d + p.phase[k - 1];
        at[k + AXIS_GAP] = o;
        is_in = is_in && o < p.phases->out[k - 1];
    }
    if (!is_in) return false;
#endif
#if GROUPED
    i += p.z * a.cols;
#endif
    epi_begin(ea, r, at);
    return true;
}

DEVICE void item_finish(const mma_args &a, const epi_args &ea, const u8 *w, const sum *part, i32 parts, i32 rows,
                        i32 e, const epi_row &r, i32 i, i32 count, const epi_regs<VEC> &x)
{
    /* Every other four lanes read the second half first: eight lanes at once then fall on all banks. */
    const i32 swapped = VEC == 8 ? (e & 4) : 0;
    const sum *from = part + e / (BN / VEC) * PITCH + e % (BN / VEC) * VEC + swapped;
    vec<sum, 4> half[VEC / 4] = {};
#pragma unroll 2
    for (i32 k = 0; k < parts; k++, from += rows * PITCH)
#pragma unroll
        for (i32 v = 0; v < VEC / 4; v++) {
            const vec<sum, 4> s = *(const vec<sum, 4> *)(from + v * (4 - 2 * swapped));
#pragma unroll
            for (i32 c = 0; c < 4; c++) half[v].at[c] += s.at[c];
        }
    sum total[VEC];
#pragma unroll
    for (i32 c = 0; c < VEC; c++) total[c] = VEC == 8 && swapped ? half[VEC / 4 - 1 - c / 4].at[c & 3] : half[c / 4].at[c & 3];
#if HAS_ZERO_X || HAS_ZERO_W
    const i32 column = e % (BN / VEC) * VEC, zero_x = HAS_ZERO_X ? *(const x_byte *)a.zero_x : 0;
    i32 x_sum = 0;
#if HAS_ZERO_W
    const sum *sums = part + e / (BN / VEC) * PITCH + BN;
    for (i32 k = 0; k < parts; k++, sums += rows * PITCH) x_sum += *sums;
#endif
#pragma unroll
    for (i32 c = 0; c < VEC; c++) {
        if (HAS_ZERO_X) total[c] -= zero_x * ((const i32 *)w)[column + c];
        if (HAS_ZERO_W && c < count)
            total[c] -= (x_sum - a.terms * zero_x) * ((const w_byte *)a.zero_w)[(i + c) * a.zero_w_step];
    }
#endif
    epi_acc v[VEC];
#pragma unroll
    for (i32 c = 0; c < VEC; c++) v[c] = (epi_acc)total[c];
    epi_apply<VEC>(ea, r, i, count, x, v);
}

#if PROLOGUE
#define PRO_PARAM , const __grid_constant__ pro_args pa
#define PRO_GIVE , pa
#elif TRANSPOSED
#define PRO_PARAM , const __grid_constant__ mma_phases phases
#define PRO_GIVE
#else
#define PRO_PARAM
#define PRO_GIVE
#endif

KERNEL void __launch_bounds__(THREADS, MIN_BLOCKS)
    mma(const __grid_constant__ mma_args given, const __grid_constant__ epi_args ea PRO_PARAM)
{
#if TRANSPOSED
    mma_args a = given;
    place p = place_of(a);
    phase_begin(phases, p, a);
#else
    const mma_args &a = given;
    const place p = place_of(a);
#endif
    if (a.trigger == 1) grid_trigger();
    const i32 t = (i32)threadIdx.x, warp = (i32)warp_id(), group = warp / (WM * WN);
    const i32 wm = warp % (WM * WN) / WN, wn = warp % WN;
    const i32 k0 = CLUSTER ? p.rank * a.steps >> a.split_log : 0;
    const i32 n = CLUSTER ? ((p.rank + 1) * a.steps >> a.split_log) - k0 : a.steps;
#if SM >= 90
    const i32 stages = a.stages;
#else
    const i32 stages = STAGES;
#endif
    const i32 filled = smaller(n, stages);
    const u32 shared = shared_address(shared_base()), b_at = (u32)stages * A_BYTES;
    const u8 *w = w_begin(a, p);
#if SM >= 90
    const u32 bars = shared + (u32)a.barriers_at;
    if (t < stages) {
#if RING
        barrier_init(bars + 8 * (stages + t), 32 * WM * WN);
#endif
        /* Full when every thread's copies have arrived, and the bytes of a bulk copy; what a thread stored by itself
         * arrives apart from its copies. */
        barrier_init(bars + 8 * t, ARRIVALS * THREADS + (B_KIND == MMA_B_PACKED));
        barrier_init_fence();
    }
#endif
    /* No barrier is used, be it by the thread that made it, before all of the block have met: copies complete at them on
     * behalf of nobody in particular. */
    sync_block();
#if CLUSTER
    cluster_arrive();                   /* every block has begun: waited for before any writes to another */
#endif
#if SM >= 90 && B_KIND == MMA_B_PACKED
    if (t < filled) {
        barrier_expect(bars + 8 * t, B_BYTES);
        copy_bulk(shared + b_at + t * B_BYTES, w + (i64)(k0 + t) * B_BYTES, B_BYTES, bars + 8 * t);
    }
#endif
    x_rows x;
    x_begin(a PRO_GIVE, p, x);
    grid_wait();

#if PROLOGUE
#if SM >= 90
#if B_KIND != MMA_B_PACKED
    const auto w_fill = [&](i32 step, i32 slot) {
        w_load(a, p, w, k0 + step, b_at + (u32)slot * B_BYTES);
        if constexpr (W_STORED) barrier_arrive(bars + 8 * slot);
        else barrier_arrive_copies(bars + 8 * slot);
    };
    for (i32 i = 0; i < filled; i++) w_fill(i, i);
#endif
#else
    for (i32 i = 0; i < STAGES; i += KG) {
#pragma unroll
        for (i32 g = 0; g < KG; g++)
            if (i + g < n) w_load(a, p, w, k0 + i + g, b_at + (u32)(i + g) * B_BYTES);
        copy_commit();
    }
#endif
    const auto put = [&](const x_held &h, i32 slot) {
        x_put(a, pa, h, (u32)slot * A_BYTES);
#if SM >= 90
        barrier_arrive(bars + 8 * slot);
#endif
    };
    x_held held[KG];                    /* of the round behind those that have slots */
#pragma unroll 1
    for (i32 i = 0; i < filled; i += FILLS) {
        x_held some[FILLS];
#pragma unroll
        for (i32 g = 0; g < FILLS; g++)
            if (i + g < filled) x_fetch(a, pa, x, k0 + i + g, some[g]);
#pragma unroll
        for (i32 g = 0; g < FILLS; g++)
            if (i + g < filled) put(some[g], i + g);
    }
#elif SM >= 90
    const auto fill = [&](i32 step, i32 slot) {
        x_load(a, x, k0 + step, (u32)slot * A_BYTES);
#if B_KIND != MMA_B_PACKED
        w_load(a, p, w, k0 + step, b_at + (u32)slot * B_BYTES);
#endif
        if constexpr (IS_STORED || W_STORED) barrier_arrive(bars + 8 * slot);
        if constexpr (!IS_STORED || (B_KIND != MMA_B_PACKED && !W_STORED)) barrier_arrive_copies(bars + 8 * slot);
    };
#pragma unroll 2
    for (i32 i = 0; i < filled; i++) fill(i, i);
#else
    const auto fill = [&](i32 step, i32 slot) {
        if (step >= n) return;
        x_load(a, x, k0 + step, (u32)slot * A_BYTES);
        w_load(a, p, w, k0 + step, b_at + (u32)slot * B_BYTES);
    };
    for (i32 i = 0; i < STAGES; i += KG) {
#pragma unroll
        for (i32 g = 0; g < KG; g++) fill(i + g, i + g);
        copy_commit();
    }
#endif

    const i32 rows = CLUSTER ? BM >> a.split_log : BM;
    epi_row row[BATCH];
    epi_regs<VEC> regs[BATCH];
    i32 column[BATCH], count[BATCH];
    bool is_item[BATCH];
    if constexpr (IS_EARLY) {
#pragma unroll
        for (i32 k = 0; k < BATCH; k++) {
            is_item[k] = item_begin(a, ea, p, t + k * THREADS, rows, row[k], column[k], count[k]);
            if (is_item[k]) epi_fetch<VEC>(ea, row[k], column[k], count[k], regs[k]);
        }
    }
    if (a.trigger == 2) grid_trigger();

    sum acc[MI][NJ][4] = {};
#if HAS_ZERO_W
    sum x_sums[MI][4] = {};
#endif
    const lane_places lane = lane_begin(wm, wn);
    const i32 rounds = (n + KG - 1) / KG;
    i32 slot = 0;                       /* of the first step of this round */
#if SM >= 90
    u32 parity = 0;
#if RING
    /* The round before: its first slot and its parity. Both are variables, not computed from `slot`: the compiler would
     * fold the difference into the address of a barrier, and compute-sanitizer overlooks barriers at [register - 8]. */
    i32 again = 0;
    u32 parity_again = 0;
#endif
#else
    constexpr bool RING = true;
#endif
#pragma unroll 1
    for (i32 r = 0; r < rounds; r++) {
        const i32 i = r * KG + group, mine = slot + group;
#if SM >= 90
        if (i < n) barrier_wait(bars + 8 * mine, parity);
        const auto between = [&] {
#if RING
            /* The slots of the round before, when all have read them. */
            const i32 next = (r - 1) * KG + stages;
#if PROLOGUE
#pragma unroll
#else
#pragma unroll 1
#endif
            for (i32 g = 0; g < KG; g++) {
                const i32 step = next + g;
                if (!r || step >= n) break;
                barrier_wait(bars + 8 * (stages + again + g), parity_again);
#if B_KIND == MMA_B_PACKED
                if (t == 0) {
                    barrier_expect(bars + 8 * (again + g), B_BYTES);
                    copy_bulk(shared + b_at + (again + g) * B_BYTES, w + (i64)(k0 + step) * B_BYTES, B_BYTES,
                              bars + 8 * (again + g));
                }
#endif
#if PROLOGUE
#if B_KIND != MMA_B_PACKED
                w_fill(step, again + g);
#endif
                put(held[g], again + g);
#else
                fill(step, again + g);
#endif
            }
#if PROLOGUE
#pragma unroll
            for (i32 g = 0; g < KG; g++)
                if (next + KG + g < n) x_fetch(a, pa, x, k0 + next + KG + g, held[g]);
#endif
#endif
        };
#else
        const auto between = [] {};
        if (r == 0) copy_wait<STAGES / KG - 1>();
        else copy_wait<(STAGES / KG > 2 ? STAGES / KG - 2 : 0)>();
        sync_block();
        if (r) {
            const i32 again = slot ? slot - KG : STAGES - KG;
#pragma unroll
            for (i32 g = 0; g < KG; g++) {
#if PROLOGUE
                const i32 step = (r - 1) * KG + STAGES + g;
                if (step >= n) continue;
                w_load(a, p, w, k0 + step, b_at + (u32)(again + g) * B_BYTES);
                put(held[g], again + g);
#else
                fill((r - 1) * KG + STAGES + g, again + g);
#endif
            }
            copy_commit();
        }
#if PROLOGUE
#pragma unroll
        for (i32 g = 0; g < KG; g++)
            if (r * KG + STAGES + g < n) x_fetch(a, pa, x, k0 + r * KG + STAGES + g, held[g]);
#endif
#endif
        if (i < n) step_run(acc, lane, shared + (u32)mine * A_BYTES, shared + b_at + (u32)mine * B_BYTES, between);
#if HAS_ZERO_W
        if (i < n && wn == 0) step_sums(x_sums, lane, shared + (u32)mine * A_BYTES);
#endif
#if SM >= 90 && RING
        /* Each thread arrives for its own reads: compute-sanitizer does not follow one that arrives for its warp. Nobody
         * waits for slots that are not filled again. */
        if (i + stages < n) barrier_arrive(bars + 8 * (stages + mine));
        again = slot;
        parity_again = parity;
#endif
        slot += KG;
        if (RING && slot >= stages) {
            slot = 0;
#if SM >= 90
            parity ^= 1;
#endif
        }
    }
    if (a.trigger == 3) grid_trigger();

    /* Of this tile's columns. */
    const u8 *sums = w_matrix(a, p) + a.w_sums + (i64)p.n0 * 4;
    sum *part = (sum *)shared_base();
#if CLUSTER
    part += (u32)stages * (A_BYTES + B_BYTES) / sizeof(sum);
    cluster_wait();
#else
    sync_block();                       /* sums take the place of the slots */
#endif
    const i32 lane_row = (i32)lane_id() >> 2, lane_column = ((i32)lane_id() & 3) * 2;
#pragma unroll
    for (i32 m = 0; m < MI; m++)
#pragma unroll
        for (i32 h = 0; h < 2; h++) {
            const i32 at = wm * (BM / WM) + m * 16 + lane_row + 8 * h;
#if CLUSTER
            const i32 owner = at * (1 << a.split_log) / BM;
            sum *to = cluster_map(part, (u32)owner) + ((p.rank * KG + group) * rows + at - owner * rows) * PITCH;
#else
            sum *to = part + (group * BM + at) * PITCH;
#endif
#if HAS_ZERO_W
            if (wn == 0 && lane_column == 0) to[BN] = x_sums[m][2 * h];
#endif
            to += wn * (BN / WN) + lane_column;
#pragma unroll
            for (i32 j = 0; j < NJ; j++) *(vec<sum, 2> *)(to + j * 8) = { acc[m][j][2 * h], acc[m][j][2 * h + 1] };
        }
#if CLUSTER
    cluster_sync();
    const i32 parts = KG << a.split_log;
#else
    sync_block();
    const i32 parts = KG;
#endif
#pragma unroll 1
    for (i32 from = 0; from < ITEMS; from += BATCH) {
        if constexpr (!IS_EARLY) {
#pragma unroll
            for (i32 k = 0; k < BATCH; k++) {
                is_item[k] = item_begin(a, ea, p, t + (from + k) * THREADS, rows, row[k], column[k], count[k]);
                if (is_item[k]) epi_fetch<VEC>(ea, row[k], column[k], count[k], regs[k]);
            }
        }
#pragma unroll
        for (i32 k = 0; k < BATCH; k++)
            if (is_item[k])
                item_finish(a, ea, sums, part, parts, rows, t + (from + k) * THREADS, row[k], column[k], count[k], regs[k]);
    }
}
