/* SPDX-License-Identifier: Apache-2.0 */
/* packed_product.cu      D[row, col] = epilogue(sum over depth of X[row, depth] * (code - zero) * scale)
 *
 * A product whose weight stays in codes of 4 or 8 bits, for a few rows: bound by reading the codes. Codes become 16-bit
 * floats in registers and meet X on the matrix units, columns of the weight as rows of the fragment. Every code is exact
 * in 16 bits. An f32 X is three bf16 numbers, which lose nothing. Sums are f32 and begin anew for each scale.
 *
 *   code    [tile of 16 columns][tile of TILE_K terms][lane] 16 bytes: lane 4 g + t has columns g and g + 8; of each RUN
 *           terms those from t * RUN / 4 on. A register a[i] of the fragment is code i (low half) and i + 4 (high half)
 *           of a word, or bytes 2 i and 2 i + 1 of two words.
 *   scale   [tile of 16 columns][GROUP blocks][g][block of the group][column g, g + 8]; without BLOCK a block is all
 *   zero    the same, u16
 *   warp    16 columns, every SPLIT-th tile of terms; PRE tiles are asked for ahead, the first before the dependency wait
 *   block   GROUPS * SPLIT warps; partial sums meet in shared memory, then a thread finishes one element
 *   grid    x: ceil(columns / (16 * GROUPS)), y: ceil(rows / ROWS)
 *   shared  GROUPS * SPLIT * ROWS * 16 floats
 *
 * SHARED: asynchronous copies bring the tiles of codes and scales to shared memory, PRE slots a warp. So a block asks for
 * all of its weights before the dependency wait and needs few registers. Blocks of the next kernels of the chain find
 * room beside it, and memory does not rest between two kernels. X lies in shared memory, too.
 *   shared  [warp][slot] SLOT bytes: codes of a tile, its scales, its zero points; then [row] X_PITCH bytes of X. Partial
 *           sums of a warp take the place of its first slot
 *
 * -D: CODE (0: integers of 4 bits, 1: of 8 bits, 2: f4e2m1, 3: f8e4m3, 4: f8e5m2), TYPE of X (0 f32, 1 f16, 2 bf16),
 *     SCALE (type of scales, as TYPE), SCALE_BLOCKS, ZERO_BLOCKS (0: none in memory, 1: one a column, 2: one a block),
 *     ZERO_POINT, UNIT (log2 of what results are multiplied by), BLOCK (terms; 0: none vary), RUN, GROUPS, SPLIT, PRE,
 *     TILES (of 8 rows), X_VECTOR, SHARED, X_ROWS (at most), X_CHUNKS (of 16 bytes of a row of X), X_PITCH, DEPTH, and
 *     simt.cuh's */
#include "simt.cuh"
#include "packed_args.h"

enum { BITS = CODE == 0 || CODE == 2 ? 4 : 8, TILE_K = 256 / BITS, STEPS = TILE_K / 16, EACH = RUN / 4 };
/* Its size decides the code where tiles come to shared memory. Elsewhere one compilation serves all. */
#if SHARED
DEVICE i32 depth_of(const simt_args &) { return DEPTH; }
#else
DEVICE i32 depth_of(const simt_args &a) { return a.depth; }
#endif
DEVICE i32 tiles_of(const simt_args &a) { return (depth_of(a) + TILE_K - 1) / TILE_K; }
enum { WARPS = GROUPS * SPLIT, THREADS = WARPS * 32, ROWS = 8 * TILES, PARTS = TYPE == 0 ? 3 : 1 };
/* Terms with one scale in a tile, spans of them, and how many scales lie side by side. */
enum {
    HALVES = BLOCK % 128 == 0 ? TILE_K : BLOCK % 64 == 0 ? 64 : BLOCK % 32 == 0 ? 32 : 16,
    SPAN = !BLOCK || HALVES > TILE_K ? TILE_K : HALVES, SPANS = TILE_K / SPAN, IN_SPAN = SPAN / 16,
    GROUP = BLOCK && BLOCK <= TILE_K && TILE_K % (BLOCK ? BLOCK : 1) == 0 ? TILE_K / (BLOCK ? BLOCK : 1) : 1,
    SCALE_SIZE = SCALE == 0 ? 4 : 2, SCALE_WORDS = SCALE_BLOCKS ? SPANS * SCALE_SIZE / 2 : 1,
    ZERO_WORDS = ZERO_BLOCKS == 2 ? SPANS : 1
};
/* Bytes of a slot, and tiles that are waited for at once. */
enum {
    SCALE_PART = SCALE_BLOCKS ? SPANS * 16 * SCALE_SIZE : 0, ZERO_PART = ZERO_BLOCKS == 2 ? SPANS * 32 : 0,
    SLOT = 512 + SCALE_PART + ZERO_PART, BATCH = PRE % 2 ? 1 : 2
};
enum {
#if SHARED
    REGISTERS = PARTS > 1 ? 128 : 64,
#else
    REGISTERS = PRE * (4 + (SCALE_BLOCKS ? SCALE_WORDS : 0) + (ZERO_BLOCKS == 2 ? ZERO_WORDS : 0)) +
                TILES * (8 + STEPS * 2 * PARTS + (PARTS > 1 ? 8 : 0) + 2) + 56,
#endif
    FIT = 65536 / (THREADS * (REGISTERS < 255 ? REGISTERS : 255)), BLOCKS = FIT > 0 ? FIT : 1
};

#if TYPE == 1
typedef f16 type_x;
#elif TYPE == 2
typedef bf16 type_x;
#else
typedef float type_x;
#endif

/* What a lane reads of one tile. */
struct held_tile { u32x4 code; u32 scale[SCALE_WORDS], zero[ZERO_WORDS]; };

/* N words, of which a vector is read at once. */
template <int N> DEVICE void load_words(u32 (&to)[N], const u8 *from)
{
    if (N % 4 == 0) {
#pragma unroll
        for (i32 i = 0; i < N / 4; i++) {
            const u32x4 v = ((const u32x4 *)from)[i];
            to[4 * i] = v.x;
            to[4 * i + 1 < N ? 4 * i + 1 : 0] = v.y;
            to[4 * i + 2 < N ? 4 * i + 2 : 0] = v.z;
            to[4 * i + 3 < N ? 4 * i + 3 : 0] = v.w;
        }
    } else if (N % 2 == 0) {
#pragma unroll
        for (i32 i = 0; i < N / 2; i++) {
            const u32x2 v = ((const u32x2 *)from)[i];
            to[2 * i] = v.x;
            to[2 * i + 1 < N ? 2 * i + 1 : 0] = v.y;
        }
    } else {
#pragma unroll
        for (i32 i = 0; i < N; i++) to[i] = ((const u32 *)from)[i];
    }
}

/* The pair of columns g and g + 8 of block `block`; `size` bytes a number. */
DEVICE i64 pair_at(i32 tile, i32 blocks, i32 block, i32 g, i32 size)
{
    const i32 groups = (blocks + GROUP - 1) / GROUP;
    return ((((i64)tile * groups + block / GROUP) * 8 + g) * GROUP + block % GROUP) * 2 * size;
}

DEVICE i32 blocks_of(const simt_args &a) { return BLOCK ? (depth_of(a) + BLOCK - 1) / (BLOCK ? BLOCK : 1) : 1; }

/* Words that belong to a tile of terms: those of its spans. */
template <int N> DEVICE void load_spans(u32 (&to)[N], const u8 *from, i32 tile, i32 blocks, i32 k, i32 g, i32 size)
{
    if (GROUP == SPANS) {
        load_words(to, from + pair_at(tile, blocks, k / (BLOCK ? BLOCK : 1), g, size));
        return;
    }
#pragma unroll
    for (i32 s = 0; s < SPANS; s++) {
        const i32 block = smaller((k + s * SPAN) / (BLOCK ? BLOCK : 1), blocks - 1);
        u32 own[N / SPANS > 0 ? N / SPANS : 1];
        load_words(own, from + pair_at(tile, blocks, block, g, size));
#pragma unroll
        for (i32 i = 0; i < N / SPANS; i++) to[s * (N / SPANS) + i] = own[i];
    }
}

DEVICE void load_tile(const simt_args &a, const packed_args &w, i32 tile, i32 at, i32 lane, held_tile &h)
{
    h.code = load_constant((const u32x4 *)a.q.data + ((i64)tile * tiles_of(a) + at) * 32 + lane);
    if (SCALE_BLOCKS)
        load_spans(h.scale, (const u8 *)w.scale, tile, blocks_of(a), at * TILE_K, lane >> 2, SCALE_SIZE);
    if (ZERO_BLOCKS == 2) load_spans(h.zero, (const u8 *)w.zero, tile, blocks_of(a), at * TILE_K, lane >> 2, 2);
}

#if SHARED
/* Where a lane finds its part of the first tile of terms of its columns. */
struct sources { const u8 *code, *scale, *zero; };

DEVICE sources sources_of(const simt_args &a, const packed_args &w, i32 tile, i32 lane)
{
    sources from = {};
    from.code = (const u8 *)a.q.data + ((i64)tile * tiles_of(a) * 32 + lane) * 16;
    if (SCALE_BLOCKS) from.scale = (const u8 *)w.scale + pair_at(tile, blocks_of(a), 0, 0, SCALE_SIZE) + lane * 16;
    if (ZERO_BLOCKS == 2) from.zero = (const u8 *)w.zero + pair_at(tile, blocks_of(a), 0, 0, 2) + lane * 16;
    return from;
}

/* Asks for a tile: each lane for its own codes, the first lanes for the scales and zero points of all. */
DEVICE void stage_tile(const sources &from, i32 at, i32 lane, u32 slot)
{
    constexpr i32 TILES_OF_BLOCK = BLOCK > TILE_K ? BLOCK / TILE_K : 1;
    const i32 block = at / TILES_OF_BLOCK;
    copy_async16(slot + lane * 16, from.code + (i64)at * 512, true);
    if (SCALE_BLOCKS && lane * 16 < SCALE_PART)
        copy_async16(slot + 512 + lane * 16, from.scale + (i64)block * SCALE_PART, true);
    if (ZERO_BLOCKS == 2 && lane * 16 < ZERO_PART)
        copy_async16(slot + 512 + SCALE_PART + lane * 16, from.zero + (i64)block * ZERO_PART, true);
}

DEVICE void take_tile(const u8 *slot, i32 lane, held_tile &h)
{
    h.code = ((const u32x4 *)slot)[lane];
    if (SCALE_BLOCKS) load_words(h.scale, slot + 512 + (lane >> 2) * SCALE_WORDS * 4);
    if (ZERO_BLOCKS == 2) load_words(h.zero, slot + 512 + SCALE_PART + (lane >> 2) * ZERO_WORDS * 4);
}
#endif

/* The scales of a pair of columns. */
DEVICE void scale_pair(const u32 *words, float &low, float &high)
{
#if SCALE == 0
    low = float_of_bits(words[0]);
    high = float_of_bits(words[1]);
#elif SCALE == 1
    f16 x;
    x.bits = (u16)words[0];
    low = to_float(x);
    x.bits = (u16)(words[0] >> 16);
    high = to_float(x);
#else
    low = float_of_bits(words[0] << 16);
    high = float_of_bits(words[0] & 0xffff0000u);
#endif
}

/* ---- codes to floats ---- */

#if TYPE == 1
#define fma_pair fma_pair_f16
#else
#define fma_pair fma_pair_bf16
#endif

DEVICE u32 word_of(const u32x4 &v, i32 i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
DEVICE u32 twice(u32 low16) { return low16 | low16 << 16; }

/* The fragment of step `step` of a tile. zero: of columns g (even registers) and g + 8. */
DEVICE void expand(const u32x4 &code, i32 step, const u32 (&zero)[2], u32 (&a)[4])
{
#if CODE == 0 && TYPE == 1
    /* 1024 + code, and 1024 + 16 * code. */
    const u32 w = word_of(code, step), upper = w >> 8;
#pragma unroll
    for (i32 i = 0; i < 4; i++) {
        const u32 z = zero[i & 1], v = i < 2 ? w : upper;
        if (i & 1) a[i] = fma_pair(and_or(v, 0x00f000f0u, 0x64006400u), 0x2c002c00u, twice(0xd400u | z << 4));
        else a[i] = fma_pair(and_or(v, 0x000f000fu, 0x64006400u), 0x3c003c00u, twice(0xe400u | z));
    }
#elif CODE == 0
    const u32 w = word_of(code, step);
#pragma unroll
    for (i32 i = 0; i < 4; i++)
        a[i] = fma_pair(and_or(w >> 4 * i, 0x000f000fu, 0x43004300u), 0x3f803f80u, twice(0xc300u | zero[i & 1]));
#elif CODE == 2
    const u32 w = word_of(code, step);
#pragma unroll
    for (i32 i = 0; i < 4; i++) {
        const u32 v = w << (12 - 4 * i);
        a[i] = (v & 0x80008000u) | (v & 0x70007000u) >> (TYPE == 1 ? 3 : 6);
        if (TYPE != 1) a[i] = fma_pair(a[i], 0x7e807e80u, 0);
    }
#else
#pragma unroll
    for (i32 i = 0; i < 4; i++) {
        const u32 w = word_of(code, step * 2 + i / 2);
#if CODE == 1 && TYPE == 1
        a[i] = fma_pair(permute_bytes(w, 0x64646464u, i & 1 ? 0x4342 : 0x4140), 0x3c003c00u, twice(0xe400u | zero[i & 1]));
#elif CODE == 1
        /* 2^23 + code; what is left fits the upper half. */
        const float z = float_of_bits(0x4b000000u | zero[i & 1]);
        const float low = float_of_bits(permute_bytes(w, 0x4b000000u, i & 1 ? 0x7542 : 0x7540)) - z,
                    high = float_of_bits(permute_bytes(w, 0x4b000000u, i & 1 ? 0x7543 : 0x7541)) - z;
        a[i] = permute_bytes(bits_of_float(low), bits_of_float(high), 0x7632);
#else
        const u32 v = permute_bytes(w, 0, i & 1 ? 0x3424 : 0x1404);
        const i32 by = CODE == 3 ? (TYPE == 1 ? 1 : 4) : TYPE == 1 ? 0 : 3;
        a[i] = (v & 0x80008000u) | (v & 0x7f007f00u) >> by;
        if (TYPE != 1) a[i] = fma_pair(a[i], CODE == 3 ? 0x7b807b80u : 0x77807780u, 0);
#endif
    }
#endif
}

/* ---- X ---- */

/* EACH terms of a row from k on, 0 beyond the end: as pairs for each step. */
struct x_run { u32 at[RUN / 16][PARTS][2]; };

DEVICE void x_split(const float (&v)[EACH], x_run &to)
{
#pragma unroll
    for (i32 i = 0; i < EACH; i += 2) {
        float rest[2] = { v[i], v[i + 1] };
#pragma unroll
        for (i32 part = 0; part < PARTS; part++) {
            u32 bits[2];
#pragma unroll
            for (i32 j = 0; j < 2; j++) {
                const bool is_nan = rest[j] != rest[j];
                bits[j] = is_nan ? 0x7fc00000u : bits_of_float(rest[j]) & 0xffff0000u;
                const bool is_end = (bits[j] & 0x7f800000u) == 0x7f800000u;
                rest[j] = is_end ? 0.0f : rest[j] - float_of_bits(bits[j]);
            }
            to.at[i / 4][part < PARTS ? part : 0][i / 2 % 2] = permute_bytes(bits[0], bits[1], 0x7632);
        }
    }
}

DEVICE void x_read(const simt_args &a, const type_x *row, bool is_live, i32 k, x_run &to)
{
    /* In shared memory zeros follow a row, and rows that are not there are read as another one: nobody stores them. */
    const bool is_in = SHARED || (is_live && k < depth_of(a));
#if TYPE == 0
    float v[EACH] = {};
    if (X_VECTOR) {
#pragma unroll
        for (i32 i = 0; i < EACH / 4; i++) {
            u32x4 x = {};
            if (is_in) x = *(const u32x4 *)(row + k + 4 * i);
            v[4 * i] = float_of_bits(x.x);
            v[4 * i + 1] = float_of_bits(x.y);
            v[4 * i + 2] = float_of_bits(x.z);
            v[4 * i + 3] = float_of_bits(x.w);
        }
    } else {
#pragma unroll
        for (i32 i = 0; i < EACH; i++)
            if (is_live && k + i < depth_of(a)) v[i] = row[(i64)(k + i) * a.p.depth[0]];
    }
    x_split(v, to);
#else
    if (X_VECTOR) {
        u32 v[EACH / 2] = {};
        if (is_in) load_words(v, (const u8 *)(row + k));
#pragma unroll
        for (i32 i = 0; i < EACH / 2; i++) to.at[i / 2][0][i % 2] = v[i];
    } else {
        u16 v[EACH] = {};
#pragma unroll
        for (i32 i = 0; i < EACH; i++)
            if (is_live && k + i < depth_of(a)) v[i] = row[(i64)(k + i) * a.p.depth[0]].bits;
#pragma unroll
        for (i32 i = 0; i < EACH / 2; i++) to.at[i / 2][0][i % 2] = (u32)v[2 * i] | (u32)v[2 * i + 1] << 16;
    }
#endif
}

DEVICE void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
#if TYPE == 1
    mma_f16(c, a, b0, b1);
#else
    mma_bf16(c, a, b0, b1);
#endif
}

/* Adds a tile of terms to the sums. */
DEVICE void add_tile(const simt_args &a, const held_tile &h, const u32 (&zero)[2], const type_x *const (&row)[TILES],
                     const bool (&is_live)[TILES], i32 k, float (&sum_of)[TILES][4])
{
    x_run x[TILES][TILE_K / RUN];
    const i32 t = (i32)lane_id() & 3;
#pragma unroll
    for (i32 r = 0; r < TILE_K / RUN; r++)
#pragma unroll
        for (i32 n = 0; n < TILES; n++) x_read(a, row[n], is_live[n], k + r * RUN + t * EACH, x[n][r]);
#pragma unroll
    for (i32 s = 0; s < SPANS; s++) {
        u32 z[2] = { zero[0], zero[1] };
        if (ZERO_BLOCKS == 2) {
            const u32 own = h.zero[ZERO_BLOCKS == 2 ? s : 0];
            z[0] = own & 0xffffu;
            z[1] = own >> 16;
        }
        float c[TILES][4] = {};
#pragma unroll
        for (i32 i = 0; i < IN_SPAN; i++) {
            const i32 step = s * IN_SPAN + i;
            u32 f[4];
            expand(h.code, step, z, f);
#pragma unroll
            for (i32 n = 0; n < TILES; n++)
#pragma unroll
                for (i32 part = 0; part < PARTS; part++) {
                    const u32 (&b)[2] = x[n][step / (RUN / 16)].at[step % (RUN / 16)][part];
                    multiply(c[n], f, b[0], b[1]);
                }
        }
        float low = 1, high = 1;
        if (SCALE_BLOCKS) scale_pair(h.scale + (SCALE_BLOCKS ? s * SCALE_SIZE / 2 : 0), low, high);
#pragma unroll
        for (i32 n = 0; n < TILES; n++) {
            sum_of[n][0] += c[n][0] * low;
            sum_of[n][1] += c[n][1] * low;
            sum_of[n][2] += c[n][2] * high;
            sum_of[n][3] += c[n][3] * high;
        }
    }
}

/* The partial sums of a warp: [row][column]. */
DEVICE float *part_of(u8 *shared, i32 warp) { return (float *)(shared + warp * (SHARED ? PRE * SLOT : ROWS * 64)); }

/* Where a row of X begins, in elements. */
DEVICE i64 line_of(const simt_args &a, i32 m)
{
    i64 at = 0;
    i32 rest = m;
#pragma unroll
    for (i32 i = ROW_AXES - 1; i >= 0; i--) {
        i32 q = 0, r = rest;
        if (i) divmod_fast(rest, a.row.div[i], q, r);
        rest = q;
        at += r * a.p.line[i];
    }
    return at;
}

KERNEL void __launch_bounds__(THREADS, BLOCKS) packed_product(const __grid_constant__ simt_args a,
                                                              const __grid_constant__ packed_args w,
                                                              const __grid_constant__ epi_args e)
{
    u8 *const shared = shared_base();
    const i32 lane = (i32)lane_id(), warp = (i32)warp_id(), split = warp % SPLIT, g = lane >> 2;
    const i32 col_tiles = (a.col.count + 15) / 16, tiles = tiles_of(a);
    const i32 tile = smaller((i32)blockIdx.x * GROUPS + warp / SPLIT, col_tiles - 1), row0 = (i32)blockIdx.y * ROWS;
#if SHARED
    u8 *const slots = shared + warp * PRE * SLOT, *const x_shared = shared + WARPS * PRE * SLOT;
    const u32 slots_at = shared_address(slots);
    const sources source = sources_of(a, w, tile, lane);
#pragma unroll
    for (i32 i = 0; i < PRE; i++) {
        if ((i + 1) * SPLIT <= tiles || i * SPLIT + split < tiles)
            stage_tile(source, i * SPLIT + split, lane, slots_at + i * SLOT);
        if (i % BATCH == BATCH - 1) copy_commit();
    }
#endif
    if (a.trigger == 1) grid_trigger();
#if !SHARED
    held_tile held[PRE];
#pragma unroll
    for (i32 i = 0; i < PRE; i++)
        if (i * SPLIT + split < tiles) load_tile(a, w, tile, i * SPLIT + split, lane, held[i]);
#endif
    u32 zero[2] = { ZERO_POINT, ZERO_POINT };
    if (ZERO_BLOCKS == 1) {
        const u32 both = *(const u32 *)((const u8 *)w.zero + ((i64)tile * 8 + g) * 4);
        zero[0] = both & 0xffffu;
        zero[1] = both >> 16;
    }
    float low = 1, high = 1;
    if (!SCALE_BLOCKS) {
        u32 words[SCALE_SIZE / 2];
        load_words(words, (const u8 *)w.scale + ((i64)tile * 8 + g) * 2 * SCALE_SIZE);
        scale_pair(words, low, high);
    }
    const type_x *row[TILES];
    bool is_live[TILES];
#pragma unroll
    for (i32 n = 0; n < TILES; n++) {
        const i32 m = row0 + n * 8 + g;
        is_live[n] = m < a.row.count;
#if SHARED
        row[n] = (const type_x *)(x_shared + (X_ROWS > 1 && is_live[n] ? g * X_PITCH : 0));
#else
        row[n] = (const type_x *)a.p.data + (is_live[n] ? line_of(a, m) : 0);
#endif
    }
    float sum_of[TILES][4] = {};
    grid_wait();
#if SHARED
    const i32 chunks = (X_ROWS == 1 ? 1 : a.row.count) * X_CHUNKS;
#pragma unroll 4
    for (i32 i = (i32)threadIdx.x; i < chunks; i += THREADS) {
        const i32 m = X_ROWS == 1 ? 0 : i / X_CHUNKS, chunk = i - m * X_CHUNKS;
        const u32x4 *const from = (const u32x4 *)((const type_x *)a.p.data + line_of(a, m));
        u32x4 v = {};
        if (DEPTH % TILE_K == 0 || chunk * 16 < DEPTH * (i32)sizeof(type_x)) v = from[chunk];
        *(u32x4 *)(x_shared + m * X_PITCH + chunk * 16) = v;
    }
    sync_block();
    constexpr bool IS_FULL = DEPTH % (TILE_K * SPLIT * BATCH) == 0, IS_ONCE = PRE * SPLIT * TILE_K >= DEPTH;
    i32 slot = 0;
#pragma unroll 1
    for (i32 from = split; from < tiles; from += BATCH * SPLIT) {
        copy_wait<PRE / BATCH - 1>();
        sync_warp();
        held_tile held[BATCH];
#pragma unroll
        for (i32 i = 0; i < BATCH; i++)
            if (IS_FULL || from + i * SPLIT < tiles) take_tile(slots + (slot + i) * SLOT, lane, held[i]);
        if (!IS_ONCE) {
            sync_warp();
#pragma unroll
            for (i32 i = 0; i < BATCH; i++) {
                const i32 next = from + (i + PRE) * SPLIT;
                if (next < tiles) stage_tile(source, next, lane, slots_at + (slot + i) * SLOT);
            }
        }
        copy_commit();
#pragma unroll
        for (i32 i = 0; i < BATCH; i++) {
            const i32 at = from + i * SPLIT;
            if (IS_FULL || at < tiles) add_tile(a, held[i], zero, row, is_live, at * TILE_K, sum_of);
        }
        slot = !IS_ONCE && slot + BATCH == PRE ? 0 : slot + BATCH;
    }
    sync_warp();
#else
    for (i32 from = split; from < tiles; from += PRE * SPLIT) {
#pragma unroll
        for (i32 i = 0; i < PRE; i++) {
            const i32 at = from + i * SPLIT, next = at + PRE * SPLIT;
            if (at >= tiles) break;
            add_tile(a, held[i], zero, row, is_live, at * TILE_K, sum_of);
            if (next < tiles) load_tile(a, w, tile, next, lane, held[i]);
        }
    }
#endif
    if (a.trigger == 3) grid_trigger();
    const float unit = float_of_bits((u32)(127 + UNIT) << 23);
    float *const own_part = part_of(shared, warp);
#pragma unroll
    for (i32 n = 0; n < TILES; n++)
#pragma unroll
        for (i32 i = 0; i < 4; i++)
            own_part[(n * 8 + (lane & 3) * 2 + (i & 1)) * 16 + g + (i & 2) * 4] =
                sum_of[n][i] * (i & 2 ? high : low) * unit;
    sync_block();
    place where;
    place_batch(a, 0, where);
    for (i32 item = (i32)threadIdx.x; item < ROWS * GROUPS * 16; item += THREADS) {
        const i32 m = item / (GROUPS * 16), n = item % (GROUPS * 16);
        const i32 col = (i32)blockIdx.x * GROUPS * 16 + n;
        if (row0 + m >= a.row.count) break;
        if (col >= a.col.count) continue;
        epi_acc total[1] = { 0 };
#pragma unroll
        for (i32 s = 0; s < SPLIT; s++) total[0] += part_of(shared, n / 16 * SPLIT + s)[m * 16 + n % 16];
        i32 at[EPI_RANK];
#pragma unroll
        for (i32 i = 0; i < EPI_RANK; i++) at[i] = where.at[i];
        place_add(a.row, row_out, row0 + m, at);
        place_add(a.col, col_out, col, at);
        epi_row out;
        epi_begin(e, out, at);
        epi_run<1>(e, out, 0, 1, total);
    }
}
