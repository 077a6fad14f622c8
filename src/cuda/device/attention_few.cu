/* SPDX-License-Identifier: Apache-2.0 */
/* attention_few.cu - attention of a few queries over many keys (decoding), at the speed of memory.
 *
 * A block takes ROWS rows of one key head: its query heads times their queries. LANES lanes share a key, EACH elements
 * of 16 bytes a lane, and a warp reads 32 / LANES * TURNS keys and values at once. Each group of lanes has a maximum, a
 * sum and results of its own, in powers of two; they meet by shuffles, in shared memory, and, where the keys of a head
 * are split among CLUSTER blocks, in the shared memory of each other.
 *
 *   grid    x: blocks of rows * CLUSTER, y: key heads, z: batch
 *   shared  WARPS * ROWS * (LINE + 2) floats
 *
 * APPEND: new rows take the places of keys and values from a.start on. All blocks read them from where they were made;
 * one of each head writes them into the cache.
 *
 * -D: TYPE (0 f32, 1 f16, 2 bf16), LANES (a power of two), ROWS, WARPS, CLUSTER, APPEND, MASK, CAP, CAUSAL, LENGTH,
 * IS_BF16, PAIRS */
#include "attention.cuh"

enum { EACH = TYPE ? 8 : 4, KEYS = 32 / LANES, TURNS = 4, THREADS = WARPS * 32, LINE = LANES * EACH };

#if TYPE == 1
typedef f16 element;
#elif TYPE == 2
typedef bf16 element;
#else
typedef float element;
#endif

DEVICE void widen(const u32x4 &v, float (&to)[EACH])
{
    const u32 w[4] = { v.x, v.y, v.z, v.w };
#pragma unroll
    for (i32 i = 0; i < 4; i++) {
#if TYPE == 0
        to[i] = float_of_bits(w[i]);
#else
        element low, high;
        low.bits = (u16)w[i];
        high.bits = (u16)(w[i] >> 16);
        to[2 * i] = to_float(low);
        to[2 * i + 1] = to_float(high);
#endif
    }
}

DEVICE void store(float *p, float x) { *p = x; }
[[maybe_unused]] DEVICE void store(f16 *p, float x) { *p = to_f16(x); }
[[maybe_unused]] DEVICE void store(bf16 *p, float x) { *p = to_bf16(x); }

/* The mask of a query at a key, in powers of two. */
[[maybe_unused]] DEVICE float mask_at(const attention_args &a, i32 batch, i32 head, i32 query, i32 key)
{
    [[maybe_unused]] const i64 at = batch * a.mask_stride[0] + head * a.mask_stride[1] + query * a.mask_stride[2] +
                                    key * a.mask_stride[3];
#if MASK == 1
    return in_powers(((const float *)a.mask)[at]);
#elif MASK == 2
    return ((const u8 *)a.mask)[at] ? 0.0f : MINUS_INFINITY;
#elif MASK == 3
    return in_powers(to_float(((const element *)a.mask)[at]));
#else
    return 0;
#endif
}

/* What a group of lanes knows of a row: the largest score, the sum of powers, EACH columns of the result. */
struct state { float top, sum, at[EACH]; };

DEVICE float or_zero(float top) { return top == MINUS_INFINITY ? 0.0f : top; }

DEVICE void join(state &x, u32 mask)
{
    const float top = shuffle_xor(x.top, mask), most = fmaxf(x.top, top), from = or_zero(most);
    const float by = exp2_flush(x.top - from), other = exp2_flush(top - from);
    x.sum = x.sum * by + shuffle_xor(x.sum, mask) * other;
#pragma unroll
    for (i32 i = 0; i < EACH; i++) x.at[i] = x.at[i] * by + shuffle_xor(x.at[i], mask) * other;
    x.top = most;
}

/* The sum, and one column of the result, of `parts` parts, `pitch` floats apart; tops and sums lie behind the lines. */
DEVICE void put_together(const float *line, const float *tops, i32 parts, i32 pitch, float &most, float &total, float &x)
{
    most = MINUS_INFINITY;
    for (i32 w = 0; w < parts; w++) most = fmaxf(most, tops[w * ROWS * 2]);
    const float from = or_zero(most);
    total = x = 0;
    for (i32 w = 0; w < parts; w++) {
        const float by = exp2_flush(tops[w * ROWS * 2] - from);
        total += tops[w * ROWS * 2 + 1] * by;
        x += line[w * pitch] * by;
    }
}

#if APPEND
/* Keys [first, end) are new rows. */
struct appended {
    i32 first, end;
    const element *k, *v;
};

DEVICE appended append_find(const attention_args &a, i32 batch, i32 head)
{
    const i64 start = ((const i64 *)a.start)[batch * a.start_stride];
    const i32 first = start < 0 || start > a.keys ? a.keys : (i32)start;
    return { first, smaller(first + a.added, a.keys),
             (const element *)a.new_k + batch * a.new_k_stride[0] + head * a.new_k_stride[1],
             (const element *)a.new_v + batch * a.new_v_stride[0] + head * a.new_v_stride[1] };
}

/* Writes them into the cache. */
DEVICE void append_write(const attention_args &a, const appended &x, i32 batch, i32 head)
{
    const i64 start = ((const i64 *)a.start)[batch * a.start_stride], limit = a.keys - a.added;
    if ((start < 0 || start > limit) && head == 0 && threadIdx.x == 0)
        report_fault(a.fault, a.step, batch, start, limit + 1);
    element *const k = (element *)a.k_to + batch * a.k_stride[0] + head * a.k_stride[1];
    element *const v = (element *)a.v_to + batch * a.v_stride[0] + head * a.v_stride[1];
    for (i32 i = (i32)threadIdx.x; i < (x.end - x.first) * LANES; i += THREADS) {
        const i32 row = i / LANES, column = i % LANES * EACH;
        if (column < a.depth)
            *(u32x4 *)(k + (x.first + row) * a.k_stride[2] + column) =
                *(const u32x4 *)(x.k + row * a.new_k_stride[2] + column);
        if (column < a.width)
            *(u32x4 *)(v + (x.first + row) * a.v_stride[2] + column) =
                *(const u32x4 *)(x.v + row * a.new_v_stride[2] + column);
    }
}
#endif

KERNEL void __launch_bounds__(THREADS) attention_few(const __grid_constant__ attention_args a)
{
    float *const lines = (float *)shared_base(), *const tops = lines + WARPS * ROWS * LINE;
    const i32 lane = (i32)lane_id(), warp = (i32)warp_id(), part = (i32)blockIdx.x % CLUSTER;
    const i32 row0 = (i32)blockIdx.x / CLUSTER * ROWS, head_k = (i32)blockIdx.y, batch = (i32)blockIdx.z;
    const i32 rows = a.group * a.queries, column = lane % LANES * EACH, group = lane / LANES;
    const element *const k = (const element *)a.k + batch * a.k_stride[0] + head_k * a.k_stride[1] + column;
    const element *const v = (const element *)a.v + batch * a.v_stride[0] + head_k * a.v_stride[1] + column;
    const bool has_k = column < a.depth, has_v = column < a.width;
    float q[ROWS][EACH];
    i32 query[ROWS], head[ROWS];
    state s[ROWS];
    if (a.trigger == 1) grid_trigger();
    grid_wait();
    const i32 all = valid_keys(a);
#if APPEND
    const appended fresh = append_find(a, batch, head_k);
#endif
    [[maybe_unused]] const i32 ahead = all - a.queries;
#pragma unroll
    for (i32 r = 0; r < ROWS; r++) {
        const i32 row = smaller(row0 + r, rows - 1);
        u32x4 x = {};
        query[r] = row % a.queries;
        head[r] = head_k * a.group + row / a.queries;
        if (has_k)
            x = *(const u32x4 *)((const element *)a.q + batch * a.q_stride[0] + head[r] * a.q_stride[1] +
                                 query[r] * a.q_stride[2] + column);
        widen(x, q[r]);
        s[r].top = MINUS_INFINITY;
        s[r].sum = 0;
#pragma unroll
        for (i32 i = 0; i < EACH; i++) s[r].at[i] = 0;
    }
    for (i32 from = (part * WARPS + warp) * KEYS * TURNS; from < all; from += CLUSTER * WARPS * KEYS * TURNS) {
        u32x4 key_at[TURNS], value_at[TURNS];
#pragma unroll
        for (i32 t = 0; t < TURNS; t++) {
            const i32 key = from + t * KEYS + group;
            const element *own_k = k + key * a.k_stride[2], *own_v = v + key * a.v_stride[2];
#if APPEND
            if (key >= fresh.first && key < fresh.end) {
                own_k = fresh.k + (key - fresh.first) * a.new_k_stride[2] + column;
                own_v = fresh.v + (key - fresh.first) * a.new_v_stride[2] + column;
            }
#endif
            key_at[t] = value_at[t] = {};
            if (key < all && has_k) key_at[t] = *(const u32x4 *)own_k;
            if (key < all && has_v) value_at[t] = *(const u32x4 *)own_v;
        }
#if MASK
        /* Asked for with the keys, so that it is not waited for behind the scores. More rows have no registers left. */
        enum { AHEAD = ROWS <= 2 };
        float mask_of[TURNS][ROWS] = {};
#pragma unroll
        for (i32 t = 0; t < TURNS; t++)
#pragma unroll
            for (i32 r = 0; r < ROWS; r++) {
                const i32 key = from + t * KEYS + group;
                if (AHEAD && key < all) mask_of[t][r] = mask_at(a, batch, head[r], query[r], key);
            }
#endif
        float x[TURNS][ROWS];
#pragma unroll
        for (i32 t = 0; t < TURNS; t++) {
            float wide_k[EACH];
            widen(key_at[t], wide_k);
#pragma unroll
            for (i32 r = 0; r < ROWS; r++) {
                x[t][r] = 0;
#pragma unroll
                for (i32 i = 0; i < EACH; i++) x[t][r] += q[r][i] * wide_k[i];
            }
        }
#pragma unroll
        for (u32 mask = 1; mask < LANES; mask <<= 1)
#pragma unroll
            for (i32 t = 0; t < TURNS; t++)
#pragma unroll
                for (i32 r = 0; r < ROWS; r++) x[t][r] += shuffle_xor(x[t][r], mask);
#pragma unroll
        for (i32 r = 0; r < ROWS; r++) {
            float most = s[r].top;
#pragma unroll
            for (i32 t = 0; t < TURNS; t++) {
                const i32 key = from + t * KEYS + group;
                bool seen = key < all;
#if CAUSAL
                seen = seen && key <= query[r] + ahead;
#endif
#if CAP
                x[t][r] = a.cap * tanhf(x[t][r] * a.scale / a.cap) * LOG2E;
#else
                x[t][r] *= a.scale * LOG2E;
#endif
#if MASK
                if (seen)
                    x[t][r] =
                        masked(x[t][r], AHEAD ? mask_of[t][r] : mask_at(a, batch, head[r], query[r], key));
#endif
                if (!seen) x[t][r] = MINUS_INFINITY;
                most = fmaxf(most, x[t][r]);
            }
            const float base = or_zero(most), by = exp2_flush(s[r].top - base);
            s[r].top = most;
            s[r].sum *= by;
#pragma unroll
            for (i32 i = 0; i < EACH; i++) s[r].at[i] *= by;
#pragma unroll
            for (i32 t = 0; t < TURNS; t++) {
                x[t][r] = exp2_flush(x[t][r] - base);
                s[r].sum += x[t][r];
            }
        }
#pragma unroll
        for (i32 t = 0; t < TURNS; t++) {
            float wide_v[EACH];
            widen(value_at[t], wide_v);
#pragma unroll
            for (i32 r = 0; r < ROWS; r++)
#pragma unroll
                for (i32 i = 0; i < EACH; i++) s[r].at[i] += x[t][r] * wide_v[i];
        }
    }
#if APPEND
    /* Behind the loop, which would wait for these reads, and by the part that has the fewest keys. */
    if (part == CLUSTER - 1 && row0 == 0) append_write(a, fresh, batch, head_k);
#endif
    if (a.trigger == 3) grid_trigger();
#pragma unroll
    for (i32 r = 0; r < ROWS; r++) {
#pragma unroll
        for (u32 mask = LANES; mask < 32; mask <<= 1) join(s[r], mask);
        if (group == 0) {
#pragma unroll
            for (i32 i = 0; i < EACH; i++) lines[(warp * ROWS + r) * LINE + column + i] = s[r].at[i];
        }
        if (lane == 0) {
            tops[(warp * ROWS + r) * 2] = s[r].top;
            tops[(warp * ROWS + r) * 2 + 1] = s[r].sum;
        }
    }
    sync_block();
#if CLUSTER > 1
    /* The parts of this block become one, at the place of the first warp's: a thread has a column to itself, and tops are
     * written when all have read them. */
    enum { OWN = (ROWS * LINE + THREADS - 1) / THREADS };
    float top_of[OWN], sum_of[OWN];
#pragma unroll
    for (i32 n = 0; n < OWN; n++) {
        const i32 i = n * THREADS + (i32)threadIdx.x, r = i / LINE;
        if (i >= ROWS * LINE) break;
        float x;
        put_together(lines + i, tops + r * 2, WARPS, ROWS * LINE, top_of[n], sum_of[n], x);
        lines[i] = x;
    }
    sync_block();
#pragma unroll
    for (i32 n = 0; n < OWN; n++) {
        const i32 i = n * THREADS + (i32)threadIdx.x;
        if (i >= ROWS * LINE || i % LINE) continue;
        tops[i / LINE * 2] = top_of[n];
        tops[i / LINE * 2 + 1] = sum_of[n];
    }
    cluster_sync();
#endif
    for (i32 i = part * THREADS + (i32)threadIdx.x; i < ROWS * LINE; i += CLUSTER * THREADS) {
        const i32 r = i / LINE, col = i % LINE, row = row0 + r;
        if (row >= rows || col >= a.width) continue;
        float total, x;
#if CLUSTER > 1
        float most = MINUS_INFINITY;
#pragma unroll
        for (i32 c = 0; c < CLUSTER; c++) most = fmaxf(most, cluster_map(tops, c)[r * 2]);
        const float from = or_zero(most);
        total = x = 0;
#pragma unroll
        for (i32 c = 0; c < CLUSTER; c++) {
            const float *const own = cluster_map(tops, c) + r * 2;
            const float by = exp2_flush(own[0] - from);
            total += own[1] * by;
            x += cluster_map(lines, c)[i] * by;
        }
#else
        float most;
        put_together(lines + i, tops + r * 2, WARPS, ROWS * LINE, most, total, x);
#endif
        const i32 head = head_k * a.group + row / a.queries;
        /* A total that is NaN is passed on. */
        store((element *)a.y + batch * a.y_stride[0] + head * a.y_stride[1] + row % a.queries * a.y_stride[2] + col,
              total == 0 ? 0.0f : x / total);
    }
#if CLUSTER > 1
    /* No block leaves while another reads what it has. */
    cluster_sync();
#endif
}
