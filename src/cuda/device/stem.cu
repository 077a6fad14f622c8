/* SPDX-License-Identifier: Apache-2.0 */
/* stem.cu - convolutions of a few input channels on tensor cores by mma.sync: D[pixel, n] = sum of X[k] W[n, k].
 *
 *   block   TH x TW pixels of an image, BN channels of the result; then the next tile, `loops` of them
 *   patch   what the pixels see of the image, halo included, is read once, in whatever order it lies, through the
 *           prologue if there is one, and lies in shared memory as rows of (x, channel): the elements under a row of
 *           the filter are neighbours there, and words of them (pairs, or one of f32) are what a lane has of a fragment
 *   k       rows of the filter, each of P words, KR of them at a time; all offsets are numbers of the compilation, but
 *           for which of four lanes have passed the end of a row. What is beyond a row is masked in the fragment: an
 *           infinity there times a weight of zero would not be zero
 *   W       packed as fragments, [channels / BN][chunk][step][pair of tiles][lane] 16 bytes; columns in such an
 *           order that a lane's sums are of VEC adjacent channels, which go straight to memory
 *
 * -D: TYPE; C, CP (channels, and as they lie in the patch: SW * CP are whole words); KH KW SH SW DH (taps, strides,
 * dilation of rows); KR (rows of the filter at a time, divides KH); TH TW (8 and more) MT NT WM WN (a warp makes MT
 * x NT tiles of 16 x 8, WM warps along pixels, WN along channels); PLANES (lines of the operand are one channel;
 * else channels are innermost and lines hold all), X_VEC (elements of a line read at once), LEAD (elements read
 * before the first of a line that is used); ROWS GROUPS (of the patch: rows, what is read at once of a row), PITCH
 * PIX (elements from row to row and from pixel to pixel); STEPS (of 8 words of k, of a chunk); MANY (a block has
 * several patches); COLS (channels of the result); PRO; FROM HAS_ZERO (of an image of bytes); RANK; MIN_BLOCKS. */
#include "prelude.cuh"

#include "stem_args.h"

#include "generated.cuh"

constexpr i32 THREADS = 32 * WM * WN, BN = 8 * NT * WN;
constexpr i32 GT = NT % 4 ? 2 : 4, VEC = 2 * GT;        /* tiles whose sums are adjacent channels of a lane */
constexpr i32 PER = TYPE == STEM_TF32 ? 1 : 2;          /* elements of a word */
constexpr i32 CHUNKS = KH / KR, P = (KW * CP + PER - 1) / PER;
constexpr i32 W_BYTES = STEPS * BN * 32;

/* ---- the patch ---- */

/* Elements for each x of a line, in the patch for each of these; lines that are read at once. */
constexpr i32 XS = PLANES ? 1 : C, EC = PLANES ? CP : 1, UC = PLANES ? C : 1;
constexpr bool IS_DISJOINT = SW >= KW, BY_ROWS = CHUNKS > 1 || SH >= KH;
constexpr i32 RUN = X_VEC * EC;                         /* what is read at once lies together */
constexpr i32 SHIFT = IS_DISJOINT ? 0 : LEAD * EC % PER;        /* so that pixel 0 begins with a word: */
constexpr i32 FIRST = IS_DISJOINT ? 0 : LEAD * EC + SHIFT;
constexpr i32 STEP = SW * XS, SEEN = KW * XS;           /* of a line: from pixel to pixel, under a row of the filter */
constexpr i32 ROW_STEP = BY_ROWS ? PITCH : DH * PITCH, TILE_STEP = BY_ROWS ? KR * PITCH : SH * PITCH;
constexpr bool IS_WORDS = RUN % PER == 0 && (!IS_DISJOINT || (LEAD == 0 && STEP % X_VEC == 0 && SEEN % X_VEC == 0));
constexpr i32 STORE = SHIFT ? 1 : RUN / PER % 4 == 0 ? 4 : RUN / PER % 2 == 0 ? 2 : 1;      /* words at once */
constexpr i32 UNITS = (ROWS * GROUPS + THREADS - 1) / THREADS;
constexpr i32 UNIT_WORDS = UC * (PRO ? X_VEC : (X_VEC + PER - 1) / PER);
constexpr i32 HELD = 24 / UNIT_WORDS > 0 ? 24 / UNIT_WORDS : 1;
constexpr i32 BATCH = UNITS < HELD ? UNITS : HELD;
constexpr bool IS_AHEAD = MANY && UNITS <= HELD;        /* a patch is held while the one before it is multiplied */

struct place {
    i32 image, y, x;                    /* of the tile's first pixel */
};

DEVICE place place_of(const stem_args &a, i32 tile)
{
    place p;
    divmod_fast(tile, a.tiles_x, tile, p.x);
    divmod_fast(tile, a.tiles_y, p.image, p.y);
    p.x *= TW;
    p.y *= TH;
    return p;
}

/* An element as it lies. */
#if TYPE == STEM_TF32
typedef u32 cell;
#else
typedef u16 cell;
#endif

/* And as the image has it. */
#if FROM
typedef u8 raw;
#else
typedef cell raw;
#endif

struct unit {
#if PRO
    pro_regs<X_VEC> x[UC];
#else
    vec<raw, X_VEC> x[UC];
#endif
    bool is_inside;
};

#if PRO
#define PRO_PARAM , const __grid_constant__ pro_args q
#define PRO_TYPE , const pro_args &q
#define PRO_PASS , q
#else
#define PRO_PARAM
#define PRO_TYPE
#define PRO_PASS
#endif
#if PRO || FROM
typedef float element;
#else
typedef cell element;
#endif

#if FROM
/* A byte behind 2^23; one of i8 has 128 more. */
DEVICE float behind(u8 x) { return float_of_bits(0x4b000000u | (FROM == STEM_FROM_I8 ? x ^ 0x80u : x)); }
#endif
/* What is to be subtracted: from a byte behind 2^23, or from what a prologue made of it. */
DEVICE float zero_of(const stem_args &a)
{
#if FROM && HAS_ZERO
    const u8 z = *(const u8 *)a.zero;
    return PRO ? behind(z) - behind(0) : behind(z);
#elif FROM
    return PRO ? 0.0f : behind(0);
#else
    return 0;
#endif
}

DEVICE void unit_fetch(const stem_args &a PRO_TYPE, const place &p, i32 chunk, i32 u, unit &to)
{
    const i32 row = u / GROUPS, e = p.x * STEP - a.line_from + (u - row * GROUPS) * X_VEC;
    const i32 y = BY_ROWS ? (p.y + row / KR) * SH + (chunk * KR + row % KR) * DH - a.pad_y : p.y * SH - a.pad_y + row;
    to.is_inside = row < ROWS && (u32)y < (u32)a.in_h && (u32)e < (u32)a.in_line;
    if (!to.is_inside) return;
#if PRO
#pragma unroll
    for (i32 c = 0; c < UC; c++) {
#if RANK == 3
        const i32 at[PRO_RANK] = { p.image, c, 0 };
#else
        const i32 at[PRO_RANK] = { p.image, c, y, 0 };
#endif
        pro_row r;
        pro_begin(q, r, at);
        pro_fetch<X_VEC>(q, r, e, X_VEC, to.x[c]);
    }
#else
    const raw *from = (const raw *)a.x + p.image * a.x_image + y * a.x_row + (X_VEC > 1 ? (i64)e : e * a.x_step);
#pragma unroll
    for (i32 c = 0; c < UC; c++, from += a.x_channel) to.x[c] = *(const vec<raw, X_VEC> *)from;
#endif
}

#if TYPE == STEM_TF32
[[maybe_unused]] DEVICE cell narrow(u32 x) { return to_tf32(float_of_bits(x)); }
[[maybe_unused]] DEVICE cell narrow(float x) { return to_tf32(x); }
#else
[[maybe_unused]] DEVICE cell narrow(u16 x) { return x; }
[[maybe_unused]] DEVICE u32 pair(u16 lo, u16 hi) { return (u32)lo | (u32)hi << 16; }
#if TYPE == STEM_F16
[[maybe_unused]] DEVICE cell narrow(float x) { return to_f16(x).bits; }
[[maybe_unused]] DEVICE u32 pair(float lo, float hi) { return pack_f16(lo, hi); }
#else
[[maybe_unused]] DEVICE cell narrow(float x) { return to_bf16(x).bits; }
[[maybe_unused]] DEVICE u32 pair(float lo, float hi) { return pack_bf16(lo, hi); }
#endif
#endif

/* The word at element k. */
DEVICE u32 word_at(const element (&x)[RUN], i32 k)
{
#if TYPE == STEM_TF32
    return narrow(x[k]);
#else
    return pair(x[k], x[k + 1]);
#endif
}

DEVICE void unit_store(const stem_args &a PRO_TYPE, i32 u, const unit &from, cell *patch, float zero)
{
    const i32 row = u / GROUPS, group = u - row * GROUPS;
    if (row >= ROWS) return;
    element x[RUN];
#pragma unroll
    for (i32 k = 0; k < RUN; k++) x[k] = 0;
    if (from.is_inside) {
#pragma unroll
        for (i32 c = 0; c < UC; c++) {
#if PRO
            pro_row r = {};
            pro_acc v[X_VEC];
            pro_apply<X_VEC>(q, r, 0, X_VEC, from.x[c], v);
#pragma unroll
            for (i32 k = 0; k < X_VEC; k++) x[k * EC + c] = (float)v[k] - zero;
#elif FROM
#pragma unroll
            for (i32 k = 0; k < X_VEC; k++) x[k * EC + c] = behind(from.x[c].at[k]) - zero;
#else
#pragma unroll
            for (i32 k = 0; k < X_VEC; k++) x[k * EC + c] = from.x[c].at[k];
#endif
        }
    }
    cell *to = patch + row * PITCH;
    if constexpr (IS_WORDS) {
        const i32 e = group * X_VEC;
        if (IS_DISJOINT && e % STEP >= SEEN) return;
        to += IS_DISJOINT ? e / STEP * PIX + e % STEP * EC : group * RUN + SHIFT;
        if constexpr (SHIFT) {
            to[0] = narrow(x[0]);
#pragma unroll
            for (i32 k = 1; k + 1 < RUN; k += 2) *(u32 *)(to + k) = word_at(x, k);
            to[RUN - 1] = narrow(x[RUN - 1]);
        } else {
#pragma unroll
            for (i32 k = 0; k < RUN; k += PER * STORE) {
                vec<u32, STORE> words;
#pragma unroll
                for (i32 i = 0; i < STORE; i++) words.at[i] = word_at(x, k + PER * i);
                *(vec<u32, STORE> *)(to + k) = words;
            }
        }
    } else {
#pragma unroll
        for (i32 k = 0; k < X_VEC; k++) {
            const i32 e = group * X_VEC + k - (IS_DISJOINT ? LEAD : 0);
            if (IS_DISJOINT && (e < 0 || e / STEP >= TW || e % STEP >= SEEN)) continue;
            const i32 at = IS_DISJOINT ? e / STEP * PIX + e % STEP * EC : e * EC + SHIFT;
#pragma unroll
            for (i32 c = 0; c < EC; c++) to[at + c] = narrow(x[k * EC + c]);
        }
    }
}

/* ---- products ---- */

DEVICE void product(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
#if TYPE == STEM_F16
    mma_f16(c, a, b0, b1);
#elif TYPE == STEM_BF16
    mma_bf16(c, a, b0, b1);
#else
    mma_tf32(c, a, b0, b1);
#endif
}

/* Word `q` of k: where it is from a pixel's first on, and what of it counts. */
constexpr i32 word_place(i32 q) { return q / P < KR ? q / P * ROW_STEP + q % P * PER : 0; }
constexpr u32 word_mask(i32 q) { return q / P >= KR ? 0 : KW * CP % PER && q % P == P - 1 ? 0xffffu : ~0u; }

/* Of word q + t, less that of the lane, PER * t; q is a number of the compilation, t the lane's. */
DEVICE i32 lane_at(i32 q, i32 t)
{
    i32 at = word_place(q);
#pragma unroll
    for (i32 i = 1; i < 4; i++) {
        const i32 more = word_place(q + i) - word_place(q + i - 1) - PER;
        if (more) at += t >= i ? more : 0;
    }
    return at;
}
DEVICE u32 lane_mask(i32 q, i32 t)
{
    u32 mask = word_mask(q);
#pragma unroll
    for (i32 i = 1; i < 4; i++)
        if (word_mask(q + i) != word_mask(q + i - 1)) mask = t >= i ? word_mask(q + i) : mask;
    return mask;
}
DEVICE bool is_masked(i32 q)
{
    return (word_mask(q) & word_mask(q + 1) & word_mask(q + 2) & word_mask(q + 3)) != ~0u;
}

/* Of a multiple of 8 pixels from the tile's first. */
constexpr i32 pixel_at(i32 pixel) { return pixel / TW * TILE_STEP + pixel % TW * PIX; }

DEVICE void multiply(float (&acc)[MT][NT][4], const cell *patch, const u8 *w, i32 wm, i32 wn)
{
    const i32 lane = (i32)lane_id(), t = lane & 3, g = lane >> 2;
    /* Widths of tiles are powers of two: where a fragment's pixels are is the warp's place and a number. */
    const cell *const from = patch + pixel_at(wm * MT * 16) + g * PIX + FIRST + PER * t;
    w += wn * NT * 256 + lane * 16;
#pragma unroll
    for (i32 s = 0; s < STEPS; s++) {
        u32 b[NT / 2][4];
#pragma unroll
        for (i32 j = 0; j < NT / 2; j++) {
            const u32x4 v = *(const u32x4 *)(w + s * BN * 32 + j * 512);
            b[j][0] = v.x, b[j][1] = v.y, b[j][2] = v.z, b[j][3] = v.w;
        }
#pragma unroll
        for (i32 m = 0; m < MT; m++) {
            u32 a[4];
#pragma unroll
            for (i32 k = 0; k < 4; k++) {
                const i32 q = s * 8 + (k >> 1) * 4;
                a[k] = *(const u32 *)(from + pixel_at(m * 16 + (k & 1) * 8) + lane_at(q, t));
                if (is_masked(q)) a[k] &= lane_mask(q, t);
            }
#pragma unroll
            for (i32 j = 0; j < NT; j++) product(acc[m][j], a, b[j >> 1][(j & 1) * 2], b[j >> 1][(j & 1) * 2 + 1]);
        }
    }
}

/* ---- results ---- */

DEVICE void finish(const stem_args &a, const epi_args &ea, const place &p, i32 n0, const float (&acc)[MT][NT][4],
                   i32 wm, i32 wn)
{
    const i32 lane = (i32)lane_id(), t = lane & 3, g = lane >> 2;
#pragma unroll
    for (i32 m = 0; m < MT; m++)
#pragma unroll
        for (i32 h = 0; h < 2; h++) {
            const i32 pixel = (wm * MT + m) * 16 + h * 8, y = p.y + pixel / TW, x = p.x + pixel % TW + g;
            if (y >= a.out_h || x >= a.out_w) continue;
#if RANK == 3
            const i32 at[EPI_RANK] = { p.image, 0, x };
#else
            const i32 at[EPI_RANK] = { p.image, 0, y, x };
#endif
            epi_row r;
            epi_begin(ea, r, at);
#pragma unroll
            for (i32 j = 0; j < NT; j += GT) {
                const i32 n = n0 + (wn * NT + j) * 8 + t * VEC;
                if (COLS % BN && n >= COLS) continue;
                epi_acc v[VEC];
#pragma unroll
                for (i32 i = 0; i < VEC; i++) v[i] = (epi_acc)acc[m][j + i / 2][2 * h + (i & 1)];
                epi_run<VEC>(ea, r, n, COLS % VEC ? smaller(COLS - n, VEC) : VEC, v);
            }
        }
}

KERNEL void __launch_bounds__(THREADS, MIN_BLOCKS)
    stem(const __grid_constant__ stem_args a, const __grid_constant__ epi_args ea PRO_PARAM)
{
    if (a.trigger == 1) grid_trigger();
    const i32 t = (i32)threadIdx.x, wm = (i32)warp_id() % WM, wn = (i32)warp_id() / WM;
    i32 first, n_block;
    divmod_fast((i32)blockIdx.x, a.n_blocks, first, n_block);
    first *= a.loops;
    const i32 steps = smaller(a.loops, a.tiles - first) * CHUNKS;
    u8 *const weights = shared_base();
    cell *const patch = (cell *)(shared_base() + (CHUNKS > 1 ? 2 : 1) * W_BYTES);
    const u8 *const w = (const u8 *)a.w + (i64)n_block * CHUNKS * W_BYTES;
    const auto w_load = [&](i32 step) {
        const u8 *const from = w + step % CHUNKS * W_BYTES;
        const u32 to = shared_address(weights) + (CHUNKS > 1 ? (step & 1) * W_BYTES : 0);
        for (i32 i = t; i < W_BYTES / 16; i += THREADS) copy_async16(to + i * 16, from + i * 16, true);
        copy_commit();
    };
    w_load(0);
    grid_wait();

    const float zero = zero_of(a);
    place p = place_of(a, first);
    unit held[BATCH];
    const auto fetch = [&](const place &at, i32 chunk, i32 from) {
#pragma unroll
        for (i32 i = 0; i < BATCH; i++) unit_fetch(a PRO_PASS, at, chunk, t + (from + i) * THREADS, held[i]);
    };
    const auto store = [&](i32 from) {
#pragma unroll
        for (i32 i = 0; i < BATCH; i++) unit_store(a PRO_PASS, t + (from + i) * THREADS, held[i], patch, zero);
    };
    if (IS_AHEAD) fetch(p, 0, 0);
    float acc[MT][NT][4] = {};
#pragma unroll 1
    for (i32 step = 0; step < steps; step++) {
        const i32 chunk = step % CHUNKS;
        const bool is_last = step + 1 == steps;
        if (IS_AHEAD) {
            store(0);
        } else {
#pragma unroll 1
            for (i32 from = 0; from < UNITS; from += BATCH) {
                fetch(p, chunk, from);
                store(from);
            }
        }
        if (CHUNKS > 1 || step == 0) copy_wait<0>();
        sync_block();
        if (is_last && a.trigger == 2) grid_trigger();
        if (CHUNKS > 1 && !is_last) w_load(step + 1);
        place next = p;
        if (!is_last) {
            if (chunk + 1 == CHUNKS) next = place_of(a, first + (step + 1) / CHUNKS);
            if (IS_AHEAD) fetch(next, (step + 1) % CHUNKS, 0);
        }
        multiply(acc, patch, weights + (CHUNKS > 1 ? (step & 1) * W_BYTES : 0), wm, wn);
        if (is_last && a.trigger == 3) grid_trigger();
        if (!is_last) sync_block();             /* the patch is overwritten */
        if (chunk + 1 == CHUNKS) {
            finish(a, ea, p, n_block * BN, acc, wm, wn);
#pragma unroll
            for (i32 m = 0; m < MT; m++)
#pragma unroll
                for (i32 j = 0; j < NT; j++)
#pragma unroll
                    for (i32 i = 0; i < 4; i++) acc[m][j][i] = 0;
        }
        p = next;
    }
}
