/* SPDX-License-Identifier: Apache-2.0 */
/* attention_any.cu - attention in f32 arithmetic, for any float type under f64 and any strides.
 *
 * A block takes 16 queries of one head, a warp four of them. Keys and values come 32 at a time into shared memory as
 * floats; a lane is a key while scores are made, and columns of the result while they are applied.
 *
 *   TYPE (float, f16, bf16), DEPTH, WIDTH (rounded up to 32), MASK (0 none, 1 f32, 2 bool, 3 TYPE)
 *   LENGTH  how many keys count is in memory */
#include "prelude.cuh"
#include "attention_args.h"

enum { ROWS = 16, KEYS = 32, THREADS = 128, PITCH = DEPTH + 1 };
#define MINUS_INFINITY __uint_as_float(0xff800000u)
#if TYPE == 1
typedef f16 element;
#elif TYPE == 2
typedef bf16 element;
#else
typedef float element;
#endif

DEVICE void store(float *p, float x) { *p = x; }
DEVICE void store(f16 *p, float x) { *p = to_f16(x); }
DEVICE void store(bf16 *p, float x) { *p = to_bf16(x); }

DEVICE float mask_at(const attention_args &a, i64 at)
{
#if MASK == 1
    return ((const float *)a.mask)[at];
#elif MASK == 2
    return ((const u8 *)a.mask)[at] ? 0.0f : MINUS_INFINITY;
#elif MASK == 3
    return to_float(((const element *)a.mask)[at]);
#else
    return 0;
#endif
}

/* What is forbidden is left out even where it is NaN; numbers are added. */
DEVICE float masked(float x, float mask)
{
#if MASK == 2
    return mask < 0 ? mask : x;
#else
    return x + mask;
#endif
}

DEVICE i32 valid_keys(const attention_args &a)
{
#if LENGTH
    const i64 length = *(const i64 *)a.length;
    return length < 0 || length > a.keys ? a.keys : (i32)length;
#else
    return a.keys;
#endif
}

/* LINES x COLUMNS elements as floats, zeros beyond. Neighbouring threads read along the axis whose elements lie closer. */
template <int LINES, int COLUMNS, int LINE>
DEVICE void load(float *to, const element *from, const wide (&stride)[4], i32 limit, i32 columns)
{
    const bool along_rows = stride[2] < stride[3];
    for (i32 i = threadIdx.x; i < LINES * COLUMNS; i += THREADS) {
        const i32 row = along_rows ? i % LINES : i / COLUMNS, column = along_rows ? i / LINES : i % COLUMNS;
        const bool valid = row < limit && column < columns;
        to[row * LINE + column] = valid ? to_float(from[row * stride[2] + column * stride[3]]) : 0.0f;
    }
}

KERNEL void __launch_bounds__(THREADS) attention_any(const __grid_constant__ attention_args a)
{
    float *const q = (float *)shared_base(), *const k = q + ROWS * DEPTH, *const v = k + KEYS * PITCH;
    const i32 first = blockIdx.x * ROWS, head = blockIdx.y, batch = blockIdx.z, head_k = head / a.group;
    const i32 lane = lane_id(), row0 = warp_id() * 4;
    grid_wait();
    const i32 all = valid_keys(a), ahead = all - a.queries;
    load<ROWS, DEPTH, DEPTH>(q, (const element *)a.q + batch * a.q_stride[0] + head * a.q_stride[1] + first * a.q_stride[2],
                       a.q_stride, a.queries - first, a.depth);
    float o[4][WIDTH / 32] = {}, top[4], sum[4] = {};
    for (int r = 0; r < 4; r++) top[r] = MINUS_INFINITY;
    i32 keys = all;
    if (a.causal) keys = smaller(keys, first + ROWS + ahead);
    for (i32 at = 0; at < keys; at += KEYS) {
        sync_block();
        load<KEYS, DEPTH, PITCH>(k, (const element *)a.k + batch * a.k_stride[0] + head_k * a.k_stride[1] + at * a.k_stride[2],
                           a.k_stride, all - at, a.depth);
        load<KEYS, WIDTH, WIDTH>(v, (const element *)a.v + batch * a.v_stride[0] + head_k * a.v_stride[1] + at * a.v_stride[2],
                           a.v_stride, all - at, a.width);
        sync_block();
        float s[4] = {};
#pragma unroll 4
        for (int d = 0; d < DEPTH; d++) {
            const float x = k[lane * PITCH + d];
#pragma unroll
            for (int r = 0; r < 4; r++) s[r] = fmaf(q[(row0 + r) * DEPTH + d], x, s[r]);
        }
        const i32 key = at + lane;
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const i32 query = first + row0 + r;
            float x = s[r] * a.scale;
            if (a.cap > 0) x = a.cap * tanhf(x / a.cap);
            const bool seen = key < all && query < a.queries && (!a.causal || key <= query + ahead);
            if (seen)
                x = masked(x,
                           mask_at(a, batch * a.mask_stride[0] + head * a.mask_stride[1] + query * a.mask_stride[2] +
                                          key * a.mask_stride[3]));
            if (!seen) x = MINUS_INFINITY;
            float most = fmaxf(top[r], x);
            for (int m = 16; m; m >>= 1) most = fmaxf(most, shuffle_xor(most, m));
            const bool is_none = most == MINUS_INFINITY;
            const float by = is_none ? 1.0f : expf(top[r] - most), p = x == MINUS_INFINITY ? 0.0f : expf(x - most);
            float total = p;
            for (int m = 16; m; m >>= 1) total += shuffle_xor(total, m);
            top[r] = most;
            sum[r] = sum[r] * by + total;
            s[r] = p;
#pragma unroll
            for (int c = 0; c < WIDTH / 32; c++) o[r][c] *= by;
        }
        for (int j = 0; j < KEYS; j++) {
            float p[4];
#pragma unroll
            for (int r = 0; r < 4; r++) p[r] = shuffle(s[r], j);
#pragma unroll
            for (int c = 0; c < WIDTH / 32; c++) {
                const float x = v[j * WIDTH + c * 32 + lane];
#pragma unroll
                for (int r = 0; r < 4; r++) o[r][c] = fmaf(p[r], x, o[r][c]);
            }
        }
    }
    grid_trigger();
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const i32 query = first + row0 + r;
        if (query >= a.queries) break;
        element *y = (element *)a.y + batch * a.y_stride[0] + head * a.y_stride[1] + query * a.y_stride[2];
        /* A sum that is NaN is passed on. */
        const bool is_none = sum[r] == 0;
        const float by = 1 / sum[r];
#pragma unroll
        for (int c = 0; c < WIDTH / 32; c++)
            if (c * 32 + lane < a.width) store(y + (c * 32 + lane) * a.y_stride[3], is_none ? 0.0f : o[r][c] * by);
    }
}
