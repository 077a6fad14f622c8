/* SPDX-License-Identifier: Apache-2.0 */
/* simt.cu      D[batch, row, col] = epilogue(sum over depth of P[batch, row, depth] * Q[batch, col, depth])
 *
 * Without tensor cores: matrix products, and convolutions as products with a window, in any type whose sums are float,
 * double, i32 or i64, over operands of any strides.
 *
 *   block   TILE_M x TILE_N of D; a thread has PER_M x PER_N of it in registers; a warp is 8 threads across, 4 down
 *   shared  STAGES slices of TILE_K, converted to the type of sums; [depth][line], or [line][depth] where P is copied
 *           along depth; then the table of lines, then (clusters) the sums that other blocks of the cluster push here
 *   grid    x: ((batch * row tiles + row tile) * column tiles + column tile) * split + slice of depth
 *   SPLIT   0: none; 1: the slices are the blocks of a cluster; 2: sums go to the workspace, simt_reduce.cu adds them
 *
 * PRO_SIDE: the operand that a program makes (1: P, 2: Q; 0: none); its operands pass through registers, four elements
 * (MODE_VECTOR) or one at a time, and what lies beside the image or beyond the lines is zero after the program.
 *
 * Operands are copied asynchronously in 16-byte units (MODE_ASYNC), or pass through registers: 16 bytes (MODE_VECTOR)
 * or one element at a time (MODE_ELEMENT). Constants of the first stages are asked for before the dependency wait.
 *
 * -D: TILE_M TILE_N TILE_K PER_M PER_N STAGES SPLIT TRIGGER MIN_BLOCKS, DEPTH_AXES SPATIAL PHASES, HAS_ZERO, PRO_SIDE,
 * and for P and Q _MODE _ALONG (1: depth) _WINDOW _FLAT (packed) _CONST; generated.cuh: type_p, type_q */
#include "simt.cuh"

enum { MODE_ELEMENT, MODE_VECTOR, MODE_ASYNC };
enum {
    ACROSS = TILE_N / PER_N, DOWN = TILE_M / PER_M, THREADS = ACROSS * DOWN, CHUNK = 16 / (i32)sizeof(sum)
};

/* A row or column of the tile: its offset, and where its window stands (or p[0]: whether it is inside). */
struct line {
    i64 at;
    i32 p[3];
    i32 zero;
#if PRO_SIDE
    i32 x[(PRO_RANK + 1) / 2 * 2];                  /* coordinates of what the program makes */
#endif
};

#if PRO_SIDE
enum { PRO_LINES = sizeof pro_line_axis / sizeof(i32) };
#endif

template <class T, i32 LINES_, i32 AXES_, i32 MODE_, i32 ALONG_, i32 WINDOW_, i32 FLAT_, i32 CONST_, bool MADE_>
struct operand {
    typedef T element;
    enum {
        LINES = LINES_, AXES = AXES_, MODE = MODE_, ALONG_DEPTH = ALONG_, IS_WINDOW = WINDOW_, IS_FLAT = FLAT_,
        IS_CONST = CONST_, IS_MADE = MADE_,
        IS_DEPTH_INNER = MODE == MODE_ASYNC && ALONG_DEPTH,
        PITCH = IS_DEPTH_INNER ? TILE_K + CHUNK : LINES + 4,
        SIZE = IS_DEPTH_INNER ? LINES * PITCH : TILE_K * PITCH,
        UNIT = MODE == MODE_ELEMENT ? 1 : MADE_ ? 4 : 16 / (i32)sizeof(T),      /* elements at once */
        COUNT = LINES * TILE_K / UNIT,
        ITEMS = (COUNT + THREADS - 1) / THREADS
    };
};
typedef operand<type_p, TILE_M, ROW_AXES, P_MODE, P_ALONG, P_WINDOW, P_FLAT, P_CONST, PRO_SIDE == 1> P;
typedef operand<type_q, TILE_N, COL_AXES, Q_MODE, Q_ALONG, Q_WINDOW, Q_FLAT, Q_CONST, PRO_SIDE == 2> Q;

DEVICE sum widen(f16 x) { return (sum)to_float(x); }
DEVICE sum widen(bf16 x) { return (sum)to_float(x); }
template <class T> DEVICE sum widen(T x) { return (sum)x; }

template <class O>
DEVICE void lines_make(const simt_args &a, const simt_operand &o, const simt_lines &s, i32 first, const place &where,
                       line *to)
{
    i64 base = 0;
    i32 start[3] = {};
#pragma unroll
    for (i32 i = 0; i < BATCH_AXES; i++) base += where.index[i] * o.batch[i];
    if (O::IS_WINDOW)
#pragma unroll
        for (i32 i = 0; i < SPATIAL; i++) {
            start[i] = a.start[i][PHASES ? where.index[i] : 0];
            base += start[i] * a.in_stride[i];
        }
    for (i32 l = (i32)threadIdx.x; l < O::LINES; l += THREADS) {
        line x = {};
        const bool is_live = first + l < s.count;
        i32 rest = first + l;
        x.at = base;
#if PRO_SIDE
        if (O::IS_MADE) {
#pragma unroll
            for (i32 i = 0; i < BATCH_AXES; i++)
                if (pro_batch_axis[i] >= 0) x.x[pro_batch_axis[i]] += where.index[i] * a.pro.batch[i];
            if (O::IS_WINDOW)
#pragma unroll
                for (i32 i = 0; i < SPATIAL; i++) x.x[PRO_RANK - SPATIAL + i] += start[i];
        }
#endif
        if (O::IS_FLAT) x.at += rest;
        else
#pragma unroll
            for (i32 i = O::AXES - 1; i >= 0; i--) {
                i32 q = 0, r = rest;
                if (i) divmod_fast(rest, s.div[i], q, r);
                rest = q;
                x.at += r * o.line[i];
#if PRO_SIDE
                if (O::IS_MADE && pro_line_axis[i < PRO_LINES ? i : 0] >= 0)
                    x.x[pro_line_axis[i < PRO_LINES ? i : 0]] += r * a.pro.line[i];
#endif
                const i32 axis = i - (O::AXES - SPATIAL);
                if (O::IS_WINDOW && axis >= 0) x.p[axis] = r * a.line_step[axis] + start[axis];
            }
        if (!O::IS_WINDOW) x.p[0] = is_live;
        else if (!is_live) x.p[0] = -(1 << 30);
        to[l] = x;
    }
}

/* The zero point of each line; it may be what an earlier kernel made. */
template <class O>
DEVICE void lines_zero(const simt_operand &o, const simt_lines &s, i32 first, const place &where, line *to)
{
    if (!o.zero) return;
    i64 base = 0;
#pragma unroll
    for (i32 i = 0; i < BATCH_AXES; i++) base += where.index[i] * o.zero_batch[i];
    for (i32 l = (i32)threadIdx.x; l < O::LINES; l += THREADS) {
        if (first + l >= s.count) break;
        i32 rest = first + l;
        i64 at = base;
#pragma unroll
        for (i32 i = O::AXES - 1; i >= 0; i--) {
            i32 q = 0, r = rest;
            if (i) divmod_fast(rest, s.div[i], q, r);
            rest = q;
            at += r * o.zero_line[i];
        }
        to[l].zero = (i32)widen(((const typename O::element *)o.zero)[at]);
    }
}

/* The offset of a position of depth, and by how much its tap moves the window. */
template <class O> DEVICE i64 depth_at(const simt_args &a, const simt_operand &o, i32 k, i32 (&tap)[3])
{
    if (O::IS_FLAT) return k * o.depth_flat;
    i64 at = 0;
    i32 rest = k;
#pragma unroll
    for (i32 i = DEPTH_AXES - 1; i >= 0; i--) {
        i32 q = 0, r = rest;
        if (i) divmod_fast(rest, a.depth_div[i], q, r);
        rest = q;
        at += r * o.depth[i];
        if (O::IS_WINDOW && i < SPATIAL) tap[i] = r * a.tap_step[i];
    }
    return at;
}

template <class O> DEVICE bool line_is_live(const simt_args &a, const line &x, const i32 (&tap)[3])
{
    if (!O::IS_WINDOW) return x.p[0] != 0;
    bool is_live = true;
#pragma unroll
    for (i32 i = 0; i < SPATIAL; i++) is_live = is_live && (u32)(x.p[i] + tap[i]) < (u32)a.in_size[i];
    return is_live;
}

/* What a thread holds of the next stage on its way through registers. */
template <class O> struct held {
    sum element[O::MODE == MODE_ELEMENT && !O::IS_MADE ? O::ITEMS : 1];
    u32x4 raw[O::MODE == MODE_VECTOR && !O::IS_MADE ? O::ITEMS : 1];
#if PRO_SIDE
    pro_regs<O::IS_MADE ? O::UNIT : 1> x[O::IS_MADE ? O::ITEMS : 1];
    u32 live;                                       /* bits of items */
#endif
};

#if PRO_SIDE
/* Asks for what the program reads for UNIT elements from position k of depth on, of the line x. */
template <i32 UNIT>
DEVICE void made_fetch(const simt_args &a, const pro_args &pa, const line &x, i32 k, pro_regs<UNIT> &to)
{
    i32 at[PRO_RANK];
#pragma unroll
    for (i32 i = 0; i < PRO_RANK; i++) at[i] = x.x[i];
    pro_add_depth(a, k, at);
    pro_row row;
    pro_begin(pa, row, at);
    pro_fetch<UNIT>(pa, row, 0, UNIT, to);
}
#endif

/* Which line and position of depth a thread's item i begins at; false: there is none. */
template <class O> DEVICE bool item_of(i32 i, i32 &l, i32 &k)
{
    const i32 e = (i32)threadIdx.x + i * THREADS;
    if (O::ALONG_DEPTH) {
        l = e / (TILE_K / O::UNIT);
        k = e % (TILE_K / O::UNIT) * O::UNIT;
    } else {
        l = e % (O::LINES / O::UNIT) * O::UNIT;
        k = e / (O::LINES / O::UNIT);
    }
    return O::COUNT % THREADS == 0 || e < O::COUNT;
}

/* Asks for the stage that begins at depth k0. */
template <class O>
DEVICE void stage_load(const simt_args &a PRO_TYPE, const simt_operand &o, const line *lines, i32 k0, sum *to,
                       held<O> &h)
{
    typedef typename O::element element;
    const u32 dst = shared_address(to);
#if PRO_SIDE
    if (O::IS_MADE) h.live = 0;
#endif
#pragma unroll
    for (i32 i = 0; i < O::ITEMS; i++) {
        i32 l, k;
        const bool is_item = item_of<O>(i, l, k);
        i32 tap[3] = {};
        if (!is_item) continue;
        const i64 at = depth_at<O>(a, o, k0 + k, tap);
        const line &x = lines[l];
        const bool is_live = k0 + k < a.depth && line_is_live<O>(a, x, tap);
#if PRO_SIDE
        if constexpr (O::IS_MADE) {
            if (!is_live) continue;
            h.live |= 1u << i;
            made_fetch<O::UNIT>(a, pa, x, k0 + k, h.x[i]);
            continue;
        }
#endif
        const element *from = (const element *)o.data + (is_live ? x.at + at : 0);
        if (O::MODE == MODE_ASYNC) {
            const i32 index = O::IS_DEPTH_INNER ? l * O::PITCH + k : k * O::PITCH + l;
            copy_async16(dst + index * (u32)sizeof(sum), from, is_live);
        } else if (O::MODE == MODE_VECTOR) {
            u32x4 v = {};
            if (is_live) v = *(const u32x4 *)from;
            h.raw[i] = v;
        } else {
            sum v = 0;
            if (is_live) v = widen(*from);
#if HAS_ZERO
            if (is_live) v -= (sum)x.zero;
#endif
            h.element[i] = v;
        }
    }
}

/* Puts what passed through registers into shared memory. */
template <class O> DEVICE void stage_store(sum *to, const held<O> &h, const line *lines PRO_TYPE)
{
    typedef typename O::element element;
    if (O::MODE == MODE_ASYNC) return;
#if PRO_SIDE
    if constexpr (O::IS_MADE) {
#pragma unroll
        for (i32 i = 0; i < O::ITEMS; i++) {
            i32 l, k;
            if (!item_of<O>(i, l, k)) continue;
            pro_acc v[O::UNIT] = {};
            const pro_row row = {};                 /* nothing but its operands */
            if (h.live >> i & 1) pro_apply<O::UNIT>(pa, row, 0, O::UNIT, h.x[i], v);
#if HAS_ZERO
            if (h.live >> i & 1) v[0] -= (sum)lines[l].zero;
#endif
#pragma unroll
            for (i32 j = 0; j < O::UNIT; j++)
                to[O::ALONG_DEPTH ? (k + j) * O::PITCH + l : k * O::PITCH + l + j] = (sum)v[j];
        }
        return;
    }
#endif
#pragma unroll
    for (i32 i = 0; i < O::ITEMS; i++) {
        i32 l, k;
        if (!item_of<O>(i, l, k)) continue;
        if (O::MODE == MODE_ELEMENT) {
            to[k * O::PITCH + l] = h.element[i];
        } else {
            union { u32x4 raw; element at[16 / sizeof(element)]; } v;
            v.raw = h.raw[i];
#pragma unroll
            for (i32 j = 0; j < O::UNIT; j++)
                to[O::ALONG_DEPTH ? (k + j) * O::PITCH + l : k * O::PITCH + l + j] = widen(v.at[j]);
        }
    }
}

template <class O>
DEVICE void stage_fill(const simt_args &a PRO_TYPE, const simt_operand &o, const line *lines, i32 k0, sum *to)
{
    held<O> h;
    stage_load<O>(a PRO_PASS, o, lines, k0, to, h);
    stage_store<O>(to, h, lines PRO_PASS);
}

/* Where thread row (or column) i of a tile is: adjacent threads are on adjacent lines, or adjacent groups of four. */
DEVICE i32 row_of(i32 down, i32 i)
{
    return P::IS_DEPTH_INNER ? down + i * DOWN : (i / 4 * DOWN + down) * 4 + i % 4;
}
DEVICE i32 col_of(i32 across, i32 j) { return (j / 4 * ACROSS + across) * 4 + j % 4; }

DEVICE void multiply(const sum *p, const sum *q, i32 down, i32 across, sum (&acc)[PER_M][PER_N])
{
#pragma unroll
    for (i32 k = 0; k < TILE_K; k += CHUNK) {
        vec<sum, CHUNK> along[PER_M];
        if (P::IS_DEPTH_INNER)
#pragma unroll
            for (i32 i = 0; i < PER_M; i++) along[i] = *(const vec<sum, CHUNK> *)(p + row_of(down, i) * P::PITCH + k);
#pragma unroll
        for (i32 u = 0; u < CHUNK; u++) {
            sum x[PER_M], y[PER_N];
#pragma unroll
            for (i32 i = 0; i < PER_M; i += 4) {
                if (P::IS_DEPTH_INNER) {
#pragma unroll
                    for (i32 r = 0; r < 4; r++) x[i + r] = along[i + r].at[u];
                } else {
                    const vec<sum, 4> v = *(const vec<sum, 4> *)(p + (k + u) * P::PITCH + row_of(down, i));
#pragma unroll
                    for (i32 r = 0; r < 4; r++) x[i + r] = v.at[r];
                }
            }
#pragma unroll
            for (i32 j = 0; j < PER_N; j += 4) {
                const vec<sum, 4> v = *(const vec<sum, 4> *)(q + (k + u) * Q::PITCH + col_of(across, j));
#pragma unroll
                for (i32 r = 0; r < 4; r++) y[j + r] = v.at[r];
            }
#pragma unroll
            for (i32 i = 0; i < PER_M; i++)
#pragma unroll
                for (i32 j = 0; j < PER_N; j++) acc[i][j] += x[i] * y[j];
        }
    }
}

/* Finishes the thread's own sums: some rows at a time, so that what their epilogue reads is under way together. */
enum { TOGETHER = PER_M * PER_N > 32 ? 1 : 2 };
DEVICE void finish_own(const simt_args &a, const epi_args &e, const place &where, i32 row0, i32 col0, i32 down,
                       i32 across, const sum (&acc)[PER_M][PER_N])
{
#pragma unroll
    for (i32 i0 = 0; i0 < PER_M; i0 += TOGETHER) {
        finish_row f[TOGETHER];
        finish_quad g[TOGETHER][PER_N / 4];
#pragma unroll
        for (i32 i = 0; i < TOGETHER; i++) {
            finish_begin(a, e, where, row0 + row_of(down, i0 + i), f[i]);
#pragma unroll
            for (i32 j = 0; j < PER_N / 4; j++) finish_fetch(a, e, f[i], col0 + col_of(across, 4 * j), g[i][j]);
        }
#pragma unroll
        for (i32 i = 0; i < TOGETHER; i++)
#pragma unroll
            for (i32 j = 0; j < PER_N / 4; j++) {
                quad v;
#pragma unroll
                for (i32 r = 0; r < 4; r++) v.at[r] = acc[i0 + i][4 * j + r];
                finish_apply(a, e, f[i], col0 + col_of(across, 4 * j), g[i][j], v);
            }
    }
}

KERNEL void __launch_bounds__(THREADS, MIN_BLOCKS)
    simt(const __grid_constant__ simt_args a, const __grid_constant__ epi_args e PRO_PARAM)
{
    sum *const p = (sum *)shared_base(), *const q = p + STAGES * P::SIZE;
    line *const rows = (line *)(q + STAGES * Q::SIZE), *const cols = rows + TILE_M;
#if TRIGGER == 1
    grid_trigger();
#endif
#if SPLIT == 1
    cluster_arrive();
#endif
    i32 tile = (i32)blockIdx.x, rank = 0, row_tile, col_tile, batch;
    if (SPLIT) divmod_fast(tile, a.split, tile, rank);
    divmod_fast(tile, a.col_tiles, tile, col_tile);
    divmod_fast(tile, a.row_tiles, batch, row_tile);
    const i32 row0 = row_tile * TILE_M, col0 = col_tile * TILE_N;
    place where;
    place_batch(a, batch, where);
    lines_make<P>(a, a.p, a.row, row0, where, rows);
    lines_make<Q>(a, a.q, a.col, col0, where, cols);
    sync_block();

    const i32 slices = (a.depth + TILE_K - 1) / TILE_K;
    const i32 first = SPLIT ? (i32)((i64)slices * rank / a.split.d) : 0;
    const i32 count = (SPLIT ? (i32)((i64)slices * (rank + 1) / a.split.d) : slices) - first;
    /* Constants need not wait for the grid before this one. */
#pragma unroll
    for (i32 s = 0; s < STAGES - 1; s++) {
        const i32 k0 = (first + s) * TILE_K;
        if (P_CONST && s < count) stage_fill<P>(a PRO_PASS, a.p, rows, k0, p + s * P::SIZE);
        if (Q_CONST && s < count) stage_fill<Q>(a PRO_PASS, a.q, cols, k0, q + s * Q::SIZE);
    }
    grid_wait();
#if HAS_ZERO
    lines_zero<P>(a.p, a.row, row0, where, rows);
    lines_zero<Q>(a.q, a.col, col0, where, cols);
    sync_block();
#endif
#pragma unroll
    for (i32 s = 0; s < STAGES - 1; s++) {
        const i32 k0 = (first + s) * TILE_K;
        if (!P_CONST && s < count) stage_fill<P>(a PRO_PASS, a.p, rows, k0, p + s * P::SIZE);
        if (!Q_CONST && s < count) stage_fill<Q>(a PRO_PASS, a.q, cols, k0, q + s * Q::SIZE);
        copy_commit();
    }
#if TRIGGER == 2
    grid_trigger();
#endif

    const i32 lane = (i32)lane_id(), warp = (i32)warp_id();
    const i32 across = warp % (ACROSS / 8) * 8 + lane % 8, down = warp / (ACROSS / 8) * 4 + lane / 8;
    sum acc[PER_M][PER_N] = {};
    i32 at = 0, to = STAGES - 1;
    for (i32 i = 0; i < count; i++) {
        copy_wait<STAGES - 2>();
        sync_block();
        const bool has_next = i + STAGES - 1 < count;
        held<P> hp;
        held<Q> hq;
        if (has_next) {
            const i32 k0 = (first + i + STAGES - 1) * TILE_K;
            stage_load<P>(a PRO_PASS, a.p, rows, k0, p + to * P::SIZE, hp);
            stage_load<Q>(a PRO_PASS, a.q, cols, k0, q + to * Q::SIZE, hq);
        }
        copy_commit();
        multiply(p + at * P::SIZE, q + at * Q::SIZE, down, across, acc);
        if (has_next) {
            stage_store<P>(p + to * P::SIZE, hp, rows PRO_PASS);
            stage_store<Q>(q + to * Q::SIZE, hq, cols PRO_PASS);
        }
        at = at + 1 == STAGES ? 0 : at + 1;
        to = to + 1 == STAGES ? 0 : to + 1;
    }
#if TRIGGER == 3
    grid_trigger();
#endif

#if SPLIT == 0
    finish_own(a, e, where, row0, col0, down, across, acc);
#elif SPLIT == 1
    /* Each block of the cluster finishes TILE_M / split of the rows: sums are pushed to the block that owns them. */
    enum { PART_PITCH = TILE_N + 4 };
    sum *const part = (sum *)(cols + TILE_N);
    const i32 own = TILE_M / (i32)a.split.d;
    cluster_wait();
#pragma unroll
    for (i32 i = 0; i < PER_M; i++) {
        const i32 row = row_of(down, i);
        const i32 owner = row / own, r = row - owner * own;
        sum *const d = cluster_map(part, (u32)owner) + (rank * own + r) * PART_PITCH;
#pragma unroll
        for (i32 j = 0; j < PER_N; j += 4) {
            vec<sum, 4> v;
#pragma unroll
            for (i32 u = 0; u < 4; u++) v.at[u] = acc[i][j + u];
            *(vec<sum, 4> *)(d + col_of(across, j)) = v;
        }
    }
    cluster_sync();
    for (i32 item = (i32)threadIdx.x; item < own * (TILE_N / 4); item += THREADS) {
        const i32 r = item / (TILE_N / 4), c = item % (TILE_N / 4) * 4;
        finish_row f;
        finish_quad g;
        finish_begin(a, e, where, row0 + rank * own + r, f);
        finish_fetch(a, e, f, col0 + c, g);
        quad total = {};
        for (i32 s = 0; s < (i32)a.split.d; s++) {
            const vec<sum, 4> v = *(const vec<sum, 4> *)(part + (s * own + r) * PART_PITCH + c);
#pragma unroll
            for (i32 u = 0; u < 4; u++) total.at[u] += v.at[u];
        }
        finish_apply(a, e, f, col0 + c, g, total);
    }
#else
    sum *const part = (sum *)a.part + ((i64)rank * a.batch.count + batch) * a.row.count * a.col_pitch;
#pragma unroll
    for (i32 i = 0; i < PER_M; i++) {
        const i32 row = row0 + row_of(down, i);
        if (row >= a.row.count) continue;
#pragma unroll
        for (i32 j = 0; j < PER_N; j += 4) {
            const i32 col = col0 + col_of(across, j);
            vec<sum, 4> v;
#pragma unroll
            for (i32 u = 0; u < 4; u++) v.at[u] = acc[i][j + u];
            if (col < a.col_pitch) *(vec<sum, 4> *)(part + (i64)row * a.col_pitch + col) = v;
        }
    }
#endif
}
