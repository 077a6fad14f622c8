/* SPDX-License-Identifier: Apache-2.0 */
/* excite.cu - squeeze and excite: means of an image's channels, a product, a program, a product, an epilogue, at once.
 *
 * A cluster takes an image. Each block sums some channels up over some positions, and multiplies the sums by its columns
 * of the first weight; what comes of that is added up over the cluster by every block that needs it, all of it. Then
 * each block has some lines of the second weight. Both parts of the weights are in shared memory before the dependency
 * wait.
 *
 *   w1      packed [channel][PITCH], w2 packed [result][PITCH]: hidden values innermost, zeros behind; PITCH is an odd
 *           number of 16 bytes. In 16 bits tensor cores multiply
 *   grid    x: images * CLUSTER; block r has part r % PARTS of the channels and part r / PARTS of the positions
 *   shared  the parts of the weights, then floats: see `layout` in row_excite.c
 *
 * -D: TYPE (0 f32, 1 f16, 2 bf16), CHANNELS, HIDDEN, RESULTS, PITCH, WARPS, CLUSTER, PARTS, EACH (channels of a part),
 * OWN (results of a block), WIDTH (channels that a thread reads at once), LAST (channels lie innermost), MIDDLE, CONSTANT
 * (all that the epilogue loads is) */
#include "excite_args.h"
#include "prelude.cuh"

#include "generated.cuh"

enum { THREADS = WARPS * 32, UNIT = TYPE ? 8 : 4, TILE = TYPE ? 16 : 1, SPREADS = CLUSTER / PARTS };
/* Rounded up to whole tiles of products. */
enum { DEEP = (EACH + TILE - 1) / TILE * TILE, WIDE = (HIDDEN + TILE - 1) / TILE * TILE, TALL = (OWN + TILE - 1) / TILE * TILE };
#if TYPE == 1
typedef f16 element;
DEVICE element narrow(float x) { return to_f16(x); }
DEVICE void mma(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { mma_f16(c, a, b0, b1); }
#elif TYPE == 2
typedef bf16 element;
DEVICE element narrow(float x) { return to_bf16(x); }
DEVICE void mma(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { mma_bf16(c, a, b0, b1); }
#else
typedef float element;
#endif

struct alignas(16) unit { element at[UNIT]; };
struct alignas(sizeof(element) * WIDTH) some { element at[WIDTH]; };

/* Lines `from` to `from` + count of a packed weight, and zeros up to `all`. */
DEVICE void bring(element *to, address weight, i32 from, i32 count, i32 all)
{
    const element *const line = (const element *)weight + (i64)from * PITCH;
    for (i32 i = (i32)threadIdx.x; i < all * (PITCH / UNIT); i += THREADS)
        copy_async16(shared_address(to + i * UNIT), line + i * UNIT, i < count * (PITCH / UNIT));
}

/* ---- a weight times a vector, whose elements are 4 bytes in shared memory ---- */

#if TYPE
/* An element as the sum of two narrow ones, which are columns 0 and 1 of what tensor cores multiply. */
DEVICE void put(float *vector, i32 count, i32 i, float x)
{
    element *const to = (element *)vector;
    const float high = to_float(narrow(x)), low = x - high;
    to[i] = narrow(x);
    to[count + i] = narrow(low - low == 0 ? low : 0.0f);
}

/* Lines of the weight are its rows, or (TURNED) its columns. */
template <bool TURNED, i32 LINES, i32 DEPTH> DEVICE void multiply(const element *w, const float *vector, float *y)
{
    const i32 lane = (i32)lane_id(), column = lane / 4, part = lane / 8;
    const u32 *const x = (const u32 *)((const element *)vector + smaller(column, 1) * DEPTH) + lane % 4;
    for (i32 line = (i32)warp_id() * 16; line < LINES; line += WARPS * 16) {
        float sum[2][4] = {};
#pragma unroll
        for (i32 k = 0; k < DEPTH; k += 16) {
            u32 a[4];
            if (TURNED) load_matrix4_transposed(a, shared_address(w + (k + lane % 8 + part / 2 * 8) * PITCH + line + part % 2 * 8));
            else load_matrix4(a, shared_address(w + (line + lane % 16) * PITCH + k + lane / 16 * 8));
            const u32 b0 = column < 2 ? x[k / 2] : 0, b1 = column < 2 ? x[k / 2 + 4] : 0;
            mma(sum[k / 16 % 2], a, b0, b1);
        }
        if (lane % 4) continue;
        y[line + column] = sum[0][0] + sum[1][0] + (sum[0][1] + sum[1][1]);
        y[line + column + 8] = sum[0][2] + sum[1][2] + (sum[0][3] + sum[1][3]);
    }
}
#else
DEVICE void put(float *vector, i32, i32 i, float x) { vector[i] = x; }

/* UNIT adjacent values: of the result where TURNED, each summed up by a warp, else of the vector, four lanes a result. */
template <bool TURNED, i32 LINES, i32 DEPTH> DEVICE void multiply(const element *w, const float *x, float *y)
{
    const i32 lane = (i32)lane_id();
    if (TURNED) {
        for (i32 f = (i32)warp_id() * UNIT; f < LINES; f += WARPS * UNIT) {
            float own[UNIT] = {};
            for (i32 k = lane; k < DEPTH; k += 32) {
                const unit v = *(const unit *)(w + k * PITCH + f);
#pragma unroll
                for (i32 i = 0; i < UNIT; i++) own[i] += x[k] * v.at[i];
            }
#pragma unroll
            for (i32 i = 0; i < UNIT; i++) {
#pragma unroll
                for (u32 mask = 16; mask; mask >>= 1) own[i] += shuffle_xor(own[i], mask);
                if (lane == i && f + i < LINES) y[f + i] = own[i];
            }
        }
        return;
    }
    for (i32 i = (i32)threadIdx.x / 4; i < (LINES + 7) / 8 * 8; i += THREADS / 4) {
        float own = 0;
        for (i32 f = lane % 4 * UNIT; f < DEPTH && i < LINES; f += 4 * UNIT) {
            const unit v = *(const unit *)(w + i * PITCH + f);
#pragma unroll
            for (i32 k = 0; k < UNIT; k++) own += x[f + k] * v.at[k];
        }
#pragma unroll
        for (u32 mask = 1; mask < 4; mask <<= 1) own += shuffle_xor(own, mask);
        if (lane % 4 == 0 && i < LINES) y[i] = own;
    }
}
#endif

#if LAST
/* Sums over positions first to end: a thread has WIDTH channels of every stride-th position, then those of a channel
 * meet, twice. */
DEVICE void squeeze(const element *x, i32 channels, i32 first, i32 end, float share, float *part, float *sums, float *mean)
{
    enum { TURNS = 4 };
    const i32 t = (i32)threadIdx.x, groups = channels / WIDTH, stride = THREADS / groups, group = t % groups;
    if (t < stride * groups) {
        float own[WIDTH] = {};
        i32 at = first + t / groups;
        for (; at + (TURNS - 1) * stride < end; at += TURNS * stride) {
            some v[TURNS];
#pragma unroll
            for (i32 k = 0; k < TURNS; k++) v[k] = *(const some *)(x + (i64)(at + k * stride) * CHANNELS + group * WIDTH);
#pragma unroll
            for (i32 k = 0; k < TURNS; k++)
#pragma unroll
                for (i32 i = 0; i < WIDTH; i++) own[i] += to_float(v[k].at[i]);
        }
        for (; at < end; at += stride) {
            const some v = *(const some *)(x + (i64)at * CHANNELS + group * WIDTH);
#pragma unroll
            for (i32 i = 0; i < WIDTH; i++) own[i] += to_float(v.at[i]);
        }
#pragma unroll
        for (i32 i = 0; i < WIDTH; i++) part[t / groups * channels + group * WIDTH + i] = own[i];
    }
    sync_block();
    /* `spans` threads a channel; more channels than threads: one each, in turns. */
    const i32 spans = channels < THREADS ? smaller(THREADS / channels, stride) : 1;
    for (i32 i = t; i < spans * channels; i += THREADS) {
        float sum = 0;
#pragma unroll 4
        for (i32 k = i / channels; k < stride; k += spans) sum += part[k * channels + i % channels];
        sums[i] = sum;
    }
    sync_block();
    for (i32 i = t; i < channels; i += THREADS) {
        float sum = 0;
#pragma unroll 4
        for (i32 k = 0; k < spans; k++) sum += sums[k * channels + i];
        put(mean, DEEP, i, sum * share);
    }
}
#else
/* The same where positions lie innermost: a warp a channel. */
DEVICE void squeeze(const element *x, i32 positions, i32 channels, i32 first, i32 end, float share, float *mean)
{
    for (i32 c = (i32)warp_id(); c < channels; c += WARPS) {
        const element *const line = x + (i64)c * positions;
        float sum = 0;
        for (i32 at = first + (i32)lane_id(); at < end; at += 32) sum += to_float(line[at]);
#pragma unroll
        for (u32 mask = 16; mask; mask >>= 1) sum += shuffle_xor(sum, mask);
        if (lane_id() == 0) put(mean, DEEP, c, sum * share);
    }
}
#endif

#if MIDDLE
DEVICE void middle_fetch(const pro_args &m, i32 f, pro_row &row, pro_regs<1> &x)
{
    i32 at[PRO_RANK] = {};
    at[1] = f;
    pro_begin(m, row, at);
    pro_fetch<1>(m, row, 0, 1, x);
}
#endif

DEVICE void result_fetch(const epi_args &e, i32 image, i32 i, epi_row &row, epi_regs<1> &x)
{
    i32 at[EPI_RANK] = {};
    at[0] = image;
    at[1] = i;
    epi_begin(e, row, at);
    epi_fetch<1>(e, row, 0, 1, x);
}

KERNEL void __launch_bounds__(THREADS, 1) excite(const __grid_constant__ excite_args a, const __grid_constant__ epi_args e
#if MIDDLE
                                              , const __grid_constant__ pro_args m
#endif
)
{
    element *const w1 = (element *)shared_base(), *const w2 = w1 + DEEP * PITCH;
    float *const mean = (float *)(w2 + TALL * PITCH), *const hidden = mean + DEEP, *const sum = hidden + PITCH,
          *const last = sum + PITCH;
    const i32 t = (i32)threadIdx.x, rank = (i32)blockIdx.x % CLUSTER, image = (i32)blockIdx.x / CLUSTER;
    /* Known where parts are alike: divisions by it are multiplications then. */
    const i32 channel = rank % PARTS * EACH,
              channels = PARTS * EACH == CHANNELS ? EACH : larger(smaller(EACH, CHANNELS - channel), 0);
    const i32 result = rank * OWN, results = larger(smaller(OWN, RESULTS - result), 0);
    const i32 span = (a.positions + SPREADS - 1) / SPREADS, first = rank / PARTS * span,
              end = smaller(first + span, a.positions);
    if (a.trigger == 1) grid_trigger();
    bring(w1, a.w1, channel, channels, DEEP);
    bring(w2, a.w2, result, results, TALL);
    copy_commit();
    for (i32 i = t; i < DEEP + 2 * PITCH; i += THREADS) mean[i] = 0;
    /* What the programs load for the first values of a thread comes ahead, too. */
#if MIDDLE
    pro_row middle;
    pro_regs<1> operand;
    middle_fetch(m, smaller(t, HIDDEN - 1), middle, operand);
#endif
    epi_row row;
    epi_regs<1> behind;
    const i32 own = smaller(result + smaller(t, OWN - 1), RESULTS - 1);
#if CONSTANT
    result_fetch(e, image, own, row, behind);
#endif
    grid_wait();
#if !CONSTANT
    result_fetch(e, image, own, row, behind);
#endif
    const element *const x = (const element *)a.x + (i64)image * CHANNELS * a.positions;
    sync_block();
    if (channels) {
#if LAST
        squeeze(x + channel, channels, first, end, a.share, last + TALL, last + TALL + THREADS * WIDTH, mean);
#else
        squeeze(x + (i64)channel * a.positions, a.positions, channels, first, end, a.share, mean);
#endif
    }
    copy_wait<0>();
    sync_block();
    if (channels) multiply<true, WIDE, DEEP>(w1, mean, sum);
#if CLUSTER > 1
    cluster_sync();
#else
    sync_block();
#endif
    if (a.trigger == 2) grid_trigger();
    for (i32 f = t; f < HIDDEN; f += THREADS) {
        float v[1] = { 0 };
#if CLUSTER > 1
#pragma unroll
        for (i32 r = 0; r < CLUSTER; r++) v[0] += cluster_map(sum, r)[f];
#else
        v[0] = sum[f];
#endif
#if MIDDLE
        if (f != t) middle_fetch(m, f, middle, operand);
        pro_apply<1>(m, middle, 0, 1, operand, v);
#endif
        put(hidden, WIDE, f, v[0]);
    }
    sync_block();
#if CLUSTER > 1
    cluster_arrive();
#endif
    multiply<false, TALL, WIDE>(w2, hidden, last);
    sync_block();
    for (i32 i = t; i < results; i += THREADS) {
        float v[1] = { last[i] };
        if (i != t) result_fetch(e, image, result + i, row, behind);
        epi_apply<1>(e, row, 0, 1, behind, v);
    }
#if CLUSTER > 1
    /* No block leaves while another reads what it has. */
    cluster_wait();
#endif
}
