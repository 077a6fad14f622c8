/* SPDX-License-Identifier: Apache-2.0 */
/* mma_x.cuh - rows of X into shared memory, for mma.cu: by copies; by the threads, where elements are too small for
 * those; or through a program.
 *
 * PROLOGUE: rows of X are what a program makes of operands that are read into registers, 16 bytes of X at a time. What
 * is asked for in one round of steps is stored in the next, so its latency hides behind a round of products; before the
 * first round, when sums need no registers yet, as many steps are asked for at once as registers hold. */

constexpr i32 NOWHERE = -(1 << 30);
[[maybe_unused]] constexpr bool IS_STORED = PROLOGUE || A_VEC * ELEMENT < 4;    /* by the threads themselves, not by copies */
[[maybe_unused]] constexpr bool PADS_ZERO = HAS_ZERO_X && SPATIAL; /* pads are zero points, so that sums of w are those of all taps */

#if PROLOGUE

constexpr bool IS_WHOLE = A_VEC == CHUNK;               /* no chunk is short */
constexpr i32 WORDS = sizeof(pro_regs<CHUNK>) / 4;
constexpr i32 FILLS = A_ROWS * WORDS >= 72 ? 1 : A_ROWS * WORDS < 9 ? 8 : 72 / (A_ROWS * WORDS);

struct x_rows {
#if SPATIAL
    i32 at[A_ROWS][PRO_RANK];           /* coordinates of tap 0, channel 0 */
#else
    pro_row at[A_ROWS];
#endif
    u32 rows;                           /* bits: there is such a row */
};

/* A thread's chunks of a step on their way through registers. */
struct x_held {
    pro_regs<CHUNK> x[A_ROWS];
    u32 valid;                          /* bits: read, no padding */
    i32 count;                          /* elements of a chunk; 0: none */
};

DEVICE void x_begin(const mma_args &a, const pro_args &pa, const place &p, x_rows &x)
{
    x.rows = 0;
#pragma unroll
    for (i32 j = 0; j < A_ROWS; j++) {
        const i32 row = (i32)(threadIdx.x >> 3) + j * PASS, m = p.m0 + row;
        i32 from[ROW_AXES], at[PRO_RANK] = {};
        row_split(a, m, from);
#if GROUPED
        at[PRO_INNER] = p.z * (i32)a.channel_div.d;
#endif
#pragma unroll
        for (i32 i = 0; i < BATCH_AXES; i++)
            if (pro_batch_axis[i] >= 0) at[pro_batch_axis[i]] = p.batch[i] * a.pro_batch[i];
#pragma unroll
        for (i32 i = 0; i < ROW_AXES; i++)
            if (pro_row_axis[i] >= 0) at[pro_row_axis[i]] = from[i] * a.pro_row[i];
#if SPATIAL
#pragma unroll
        for (i32 i = 0; i < SPATIAL; i++) at[PRO_RANK - SPATIAL + i] -= a.pad[i];
#pragma unroll
        for (i32 i = 0; i < PRO_RANK; i++) x.at[j][i] = at[i];
#else
        pro_begin(pa, x.at[j], at);
#endif
        if (m < a.rows && row < BM) x.rows |= 1u << j;
    }
}

/* Asks for step `step` of k. */
DEVICE void x_fetch(const mma_args &a, const pro_args &pa, const x_rows &x, i32 step, x_held &h)
{
    const i32 q = step * 8 + ((i32)threadIdx.x & 7);
    i32 c = q;
#if SPATIAL
    i32 taps, tap[SPATIAL];
    divmod_fast(q, a.run_div, taps, c);
#pragma unroll
    for (i32 i = SPATIAL - 1; i >= 0; i--) {
        i32 at = taps;
        if (i) divmod_fast(taps, a.kernel_div[i], taps, at);
        tap[i] = at * a.dilation[i];
    }
#endif
    h.count = q >= a.chunks ? 0 : IS_WHOLE ? CHUNK : smaller((i32)a.channel_div.d - c * CHUNK, CHUNK);
    h.valid = 0;
#pragma unroll
    for (i32 j = 0; j < A_ROWS; j++) {
        bool is_valid = h.count > 0 && (x.rows >> j & 1);
#if SPATIAL
        i32 at[PRO_RANK];
#pragma unroll
        for (i32 i = 0; i < PRO_RANK; i++) at[i] = x.at[j][i];
#pragma unroll
        for (i32 i = 0; i < SPATIAL; i++) {
            at[PRO_RANK - SPATIAL + i] += tap[i];
            is_valid = is_valid && (u32)at[PRO_RANK - SPATIAL + i] < (u32)a.in[i];
        }
        pro_row row;
        pro_begin(pa, row, at);
#else
        const pro_row &row = x.at[j];
#endif
        if (!is_valid) continue;
        h.valid |= 1u << j;
        pro_fetch<CHUNK>(pa, row, c * CHUNK, IS_WHOLE ? CHUNK : h.count, h.x[j]);
    }
}

/* Puts what was asked for into the slot at `to`. */
DEVICE void x_put(const mma_args &a, const pro_args &pa, const x_held &h, u32 to)
{
    const i32 chunk = (i32)threadIdx.x & 7, first = (i32)threadIdx.x >> 3;
    const u32 place = to + (u32)first * MMA_STEP_BYTES + ((u32)(chunk ^ (first & 7)) << 4);
    u32x4 pad = {};
    if (PADS_ZERO && h.count) pad = *(const u32x4 *)a.zero_x;
#pragma unroll
    for (i32 j = 0; j < A_ROWS; j++) {
        if (BM % PASS && first + j * PASS >= BM) continue;
        u32x4 all = pad;
        if (h.valid >> j & 1) {
            const pro_row row = {};             /* nothing but its operands */
            pro_acc v[CHUNK];
            pro_apply<CHUNK>(pa, row, 0, CHUNK, h.x[j], v);
            if (!IS_WHOLE)
#pragma unroll
                for (i32 k = 0; k < CHUNK; k++) v[k] = k < h.count ? v[k] : (pro_acc)0;
            u32 w[4];
#if TYPE == MMA_F16
            emit_pack_f16<CHUNK>(w, v);
#elif TYPE == MMA_BF16
            emit_pack_bf16<CHUNK>(w, v);
#elif TYPE == MMA_TF32
            emit_pack_f32<CHUNK>(w, v);
#else
            emit_pack_i8<CHUNK>(w, v);
#endif
            all = { w[0], w[1], w[2], w[3] };
        }
        *(u32x4 *)(shared_base() + place + j * PASS * MMA_STEP_BYTES) = all;
    }
}

#else

constexpr i32 UNIT = A_VEC * ELEMENT;                   /* bytes: offsets in X count these */

struct x_rows {
    const u8 *base;
    i32 at[A_ROWS];                     /* where tap 0, channel 0 would be */
    i32 from[A_ROWS][AXES];             /* coordinates of tap 0; beyond all where there is no such row */
};

DEVICE void x_begin(const mma_args &a, const place &p, x_rows &x)
{
    x.base = (const u8 *)a.x;
#if GROUPED
    x.base += (i64)p.z * a.x_batch[0];
#endif
#pragma unroll
    for (i32 i = 0; i < BATCH_AXES; i++) x.base += (i64)p.batch[i] * a.x_batch[i];
#pragma unroll
    for (i32 j = 0; j < A_ROWS; j++) {
        const i32 row = (i32)(threadIdx.x >> 3) + j * PASS, m = p.m0 + row;
        i32 at[ROW_AXES];
        row_split(a, m, at);
        x.at[j] = a.x_base;
#pragma unroll
        for (i32 i = 0; i < ROW_AXES; i++) x.at[j] += at[i] * a.x_step[i];
        x.from[j][0] = 0;
#pragma unroll
        for (i32 i = 0; i < SPATIAL; i++) x.from[j][i] = at[ROW_AXES - SPATIAL + i] * a.stride[i] - a.pad[i];
        if (m >= a.rows || row >= BM) x.from[j][0] = NOWHERE;
    }
}

/* Step `step` of k, into the slot at `to` (an offset in shared memory). */
DEVICE void x_load(const mma_args &a, const x_rows &x, i32 step, u32 to)
{
    const i32 chunk = (i32)threadIdx.x & 7, first = (i32)threadIdx.x >> 3, q = step * 8 + chunk;
    const bool is_in = q < a.chunks;
    const u32 place = to + (u32)first * MMA_STEP_BYTES + ((u32)(chunk ^ (first & 7)) << 4);
    i32 tap[AXES] = {};
#if A_VEC == 16 / (TYPE <= MMA_BF16 ? 2 : TYPE == MMA_TF32 ? 4 : 1)
    i32 offset = q;
#if SPATIAL
    i32 taps;
    divmod_fast(q, a.run_div, taps, offset);
#pragma unroll
    for (i32 i = SPATIAL - 1; i >= 0; i--) {
        i32 at = taps;
        if (i) divmod_fast(taps, a.kernel_div[i], taps, at);
        tap[i] = at * a.dilation[i];
        offset += at * a.tap_step[i];
    }
#endif
#pragma unroll
    for (i32 j = 0; j < A_ROWS; j++) {
        bool is_valid = is_in && (SPATIAL || x.from[j][0] == 0);
#pragma unroll
        for (i32 i = 0; i < SPATIAL; i++) is_valid = is_valid && (u32)(x.from[j][i] + tap[i]) < (u32)a.in[i];
        if (BM % PASS && first + j * PASS >= BM) continue;
        const u8 *from = x.base + (i64)(x.at[j] + offset) * UNIT;
        if (PADS_ZERO && !is_valid) from = (const u8 *)a.zero_x;
        copy_async16(shared_address(shared_base()) + place + j * PASS * MMA_STEP_BYTES, from,
                     PADS_ZERO ? is_in : is_valid);
    }
#else
    /* Channels that are no whole chunks: a chunk holds elements of one row of taps, in (tap, channel) order. */
    constexpr i32 PARTS = CHUNK / A_VEC;
    i32 outer, at0, base = 0;
    divmod_fast(q, a.run_div, outer, at0);
#pragma unroll
    for (i32 i = SPATIAL - 2; i >= 0; i--) {
        i32 at = outer;
        if (i) divmod_fast(outer, a.kernel_div[i], outer, at);
        tap[i] = at * a.dilation[i];
        base += at * a.tap_step[i];
    }
    i32 offset[PARTS], inner[PARTS];
    bool is_part[PARTS];
#pragma unroll
    for (i32 v = 0; v < PARTS; v++) {
        i32 s, c;
        divmod_fast(at0 * CHUNK + v * A_VEC, a.channel_div, s, c);
        is_part[v] = is_in && s < a.taps_inner;
        inner[v] = SPATIAL ? s * a.dilation[AXES - 1] : 0;
        offset[v] = base + (SPATIAL ? s * a.tap_step[AXES - 1] : 0) + c / A_VEC * a.x_channel;
    }
#pragma unroll
    for (i32 j = 0; j < A_ROWS; j++) {
        if (BM % PASS && first + j * PASS >= BM) continue;
        bool is_valid = SPATIAL || x.from[j][0] == 0;
#pragma unroll
        for (i32 i = 0; i + 1 < SPATIAL; i++)
            is_valid = is_valid && (u32)(x.from[j][i] + tap[i]) < (u32)a.in[i];
        const u32 row = place + j * PASS * MMA_STEP_BYTES;
        union {
            u32x4 all;
            u16 half[8];
            u8 byte[16];
        } chunk_of;
        chunk_of.all = {};
#pragma unroll
        for (i32 v = 0; v < PARTS; v++) {
            bool is_one = is_valid && is_part[v];
            if (SPATIAL) is_one = is_one && (u32)(x.from[j][AXES - 1] + inner[v]) < (u32)a.in[AXES - 1];
            const u8 *from = x.base + (i64)(x.at[j] + offset[v]) * UNIT;
            if (PADS_ZERO) {
                if (!is_one) from = (const u8 *)a.zero_x;
                is_one = is_part[v];
            }
            if constexpr (A_VEC * ELEMENT >= 4)
                copy_async<A_VEC * ELEMENT>(shared_address(shared_base()) + row + v * A_VEC * ELEMENT, from, is_one);
            else if constexpr (A_VEC * ELEMENT == 2) {
                if (is_one) chunk_of.half[v] = *(const u16 *)from;
            } else {
                if (is_one) chunk_of.byte[v] = *from;
            }
        }
        if constexpr (A_VEC * ELEMENT < 4) *(u32x4 *)(shared_base() + row) = chunk_of.all;
    }
#endif
}
#endif
