/* SPDX-License-Identifier: Apache-2.0 */
/* rnn_input.cu - the first launch of a recurrent layer: the product of all steps' inputs with the input weights, and the
 * biases, by tensor cores (-DMATRIX) or plain. */
#include "generated.cuh"
#include "rnn_cell.cuh"

DEVICE i32 width_of(const rnn_args &a) { return a.directions * GATES * HIDDEN; }
DEVICE const element *w_row(const rnn_args &a, i32 c)
{
    return (const element *)a.w + c / (GATES * HIDDEN) * a.sw[0] + c % (GATES * HIDDEN) * a.sw[1];
}
DEVICE void put(const rnn_args &a, i32 r, i32 c, acc sum)
{
    if (r >= a.steps * a.batch || c >= width_of(a)) return;
    ((acc *)a.part)[(i64)r * width_of(a) + c] = sum + bias_of(a, c / (GATES * HIDDEN), c % (GATES * HIDDEN));
}

#if MATRIX
DEVICE void mma(float (&c)[4], const u32 (&x)[4], u32 w0, u32 w1)
{
#if SM >= 80
    if constexpr (X_TYPE == LINE_BF16) return mma_bf16(c, x, w0, w1);
#endif
    mma_f16(c, x, w0, w1);
}

/* RNN_DEEP numbers of RNN_TILE rows, from k on, to shared memory; zeros behind their end. */
template <class R> DEVICE void load_rows(u16 *to, const rnn_args &a, i32 first, i32 end, i32 k, i64 step, R row_of)
{
    enum { CHUNKS = RNN_DEEP / 8 };
    for (i32 i = threadIdx.x; i < RNN_TILE * CHUNKS; i += RNN_THREADS) {
        const i32 r = first + i / CHUNKS, at = k + i % CHUNKS * 8;
        const element *from = row_of(a, smaller(r, end - 1)) + at * step;
        u16 *place = to + i / CHUNKS * RNN_PITCH + i % CHUNKS * 8;
        if (step == 1 && at + 8 <= a.inputs && (u64)from % 16 == 0) {
            copy_async16(shared_address(place), from, r < end);
        } else {
            for (i32 j = 0; j < 8; j++) {
                element x = {};
                if (r < end && at + j < a.inputs) x = from[j * step];
                place[j] = *(const u16 *)&x;
            }
        }
    }
}

/* Four warps take 32 x 32 of a tile each. */
KERNEL void __launch_bounds__(RNN_THREADS) rnn_input(const __grid_constant__ rnn_args a)
{
    u16 *const shared = (u16 *)shared_base();           /* [RNN_STAGES][2][RNN_TILE][RNN_PITCH] */
    const i32 row = blockIdx.x * RNN_TILE, col = blockIdx.y * RNN_TILE;
    const i32 top = warp_id() / 2 * 32, left = warp_id() % 2 * 32, lane = lane_id();
    const i32 count = (a.inputs + RNN_DEEP - 1) / RNN_DEEP;
    float sum[2][4][4] = {};
    grid_wait();
    auto load = [&](i32 i) {
        u16 *to = shared + i % RNN_STAGES * (2 * RNN_TILE * RNN_PITCH);
        if (i < count) {
            load_rows(to, a, row, a.steps * a.batch, i * RNN_DEEP, a.sx[2], x_row);
            load_rows(to + RNN_TILE * RNN_PITCH, a, col, width_of(a), i * RNN_DEEP, a.sw[2], w_row);
        }
        copy_commit();
    };
    for (i32 i = 0; i < RNN_STAGES - 1; i++) load(i);
    for (i32 i = 0; i < count; i++) {
        copy_wait<RNN_STAGES - 2>();
        sync_block();
        load(i + RNN_STAGES - 1);
        const u32 x_at = shared_address(shared + i % RNN_STAGES * (2 * RNN_TILE * RNN_PITCH));
        const u32 w_at = x_at + 2 * RNN_TILE * RNN_PITCH;
#pragma unroll
        for (int k = 0; k < RNN_DEEP; k += 16) {
            u32 x[2][4], w[2][4];
#pragma unroll
            for (int m = 0; m < 2; m++) {
                load_matrix4(x[m], x_at + 2 * ((top + 16 * m + lane % 16) * RNN_PITCH + k + lane / 16 * 8));
                load_matrix4(w[m], w_at + 2 * ((left + 16 * m + lane / 16 * 8 + lane % 8) * RNN_PITCH + k + lane / 8 % 2 * 8));
            }
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int n = 0; n < 4; n++) mma(sum[m][n], x[m], w[n / 2][n % 2 * 2], w[n / 2][n % 2 * 2 + 1]);
        }
    }
    grid_trigger();
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                put(a, row + top + 16 * m + i / 2 * 8 + lane / 4, col + left + 8 * n + lane % 4 * 2 + i % 2, sum[m][n][i]);
}
#else
KERNEL void __launch_bounds__(RNN_PLAIN_THREADS) rnn_input(const __grid_constant__ rnn_args a)
{
    enum { PITCH = RNN_TILE + 1, EACH_LOADS = RNN_TILE * RNN_PLAIN_DEEP / RNN_PLAIN_THREADS };
    acc *left = (acc *)shared_base(), *right = left + RNN_PLAIN_DEEP * PITCH;
    const i32 rows = a.steps * a.batch, row = blockIdx.x * RNN_TILE, col = blockIdx.y * RNN_TILE;
    const i32 tx = threadIdx.x % 16, ty = threadIdx.x / 16, d = threadIdx.x % RNN_PLAIN_DEEP;
    acc sum[4][4] = {}, x_next[EACH_LOADS], w_next[EACH_LOADS];
    grid_wait();
    /* The next step's numbers are on their way while this one's are multiplied. */
    auto load = [&](i32 k) {
#pragma unroll
        for (int i = 0; i < EACH_LOADS; i++) {
            const i32 m = i * (RNN_PLAIN_THREADS / RNN_PLAIN_DEEP) + ty, r = row + m, c = col + m;
            x_next[i] = r < rows && k + d < a.inputs ? widen(x_row(a, r)[(k + d) * a.sx[2]]) : 0;
            w_next[i] = c < width_of(a) && k + d < a.inputs ? widen(w_row(a, c)[(k + d) * a.sw[2]]) : 0;
        }
    };
    load(0);
    for (i32 k = 0; k < a.inputs; k += RNN_PLAIN_DEEP) {
#pragma unroll
        for (int i = 0; i < EACH_LOADS; i++) {
            const i32 m = i * (RNN_PLAIN_THREADS / RNN_PLAIN_DEEP) + ty;
            left[d * PITCH + m] = x_next[i];
            right[d * PITCH + m] = w_next[i];
        }
        sync_block();
        load(k + RNN_PLAIN_DEEP);
#pragma unroll
        for (int e = 0; e < RNN_PLAIN_DEEP; e++) {
            acc x[4], w[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                x[i] = left[e * PITCH + ty + 16 * i];
                w[i] = right[e * PITCH + tx + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += x[i] * w[j];
        }
        sync_block();
    }
    grid_trigger();
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < 4; i++) put(a, row + ty + 16 * i, col + tx + 16 * j, sum[i][j]);
}
#endif
