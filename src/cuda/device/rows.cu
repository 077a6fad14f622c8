/* SPDX-License-Identifier: Apache-2.0 */
/* rows.cu - reductions and normalisations along the axis that is innermost in memory: LANES threads a row.
 *
 * ITEMS > 0: a normalised row lies in registers, ITEMS vectors a thread, and is read once and written once; AHEAD > 0:
 * blocks stay for many rows, and the next ones are on their way while one is worked on. Else a row is folded in passes,
 * the second of which comes out of the cache. Where rows are few, several blocks take parts of one (MODE): the first
 * launch leaves their states, the second joins them; or the blocks are a cluster, and join them through their shared
 * memory. */
#include "line.cuh"

enum { LANES_WARP = LANES < 32 ? LANES : 32, WARPS = LANES / LANES_WARP, ROWS_BLOCK = BLOCK / LANES, UNROLL = 4,
       STRIDE = LANES * CLUSTER };

struct join_state { DEVICE state of(state a, state b) { return state_join(a, b); } };

/* Joins the states of all threads of a row. slot: 0 and 1 by turns. */
template <class J, class S> DEVICE S across(S s, u32 slot)
{
#pragma unroll
    for (u32 m = 1; m < LANES_WARP; m *= 2) s = J::of(s, exchange(s, m));
    if (WARPS > 1) {
        S *spare = (S *)shared_base() + slot * 32;
        if (!lane_id()) spare[warp_id()] = s;
        sync_block();
        s = spare[lane_id() % WARPS];
#pragma unroll
        for (u32 m = 1; m < WARPS; m *= 2) s = J::of(s, exchange(s, m));
    }
    if (CLUSTER == 1) return s;
    S *mine = (S *)(shared_base() + 2 * 32 * LINE_PART) + slot;
    if (!threadIdx.x) *mine = s;
    meet_cluster();
    return join_cluster<J>(mine);
}

/* Where vector c of a row is; how many elements it has. */
DEVICE i32 place(const line_args &a, const spot &row, i32 c, i32 end, spot &s)
{
    s = row;
    i32 i = c;
    if (GONE) {
        i32 outer;
        divmod_fast(c, a.runs, outer, i);
        spot_gone(a, outer, s);
    }
    s.i = i * VECTOR;
    s.x += X_DENSE ? s.i : s.i * a.step;
    return FULL || c < end ? EXACT ? VECTOR : smaller(VECTOR, a.inner - s.i) : 0;
}

DEVICE acc first_of(const line_args &a PRO_TYPE, const spot &row)
{
    acc v[1] = {};
    if (OP == LINE_LAYER) line_read<1>(a PRO_PASS, row, a.count ? 1 : 0, v);
    return finite_shift(v[0]);
}

DEVICE void store_stats(const line_args &a, const spot &row, const line_result &r)
{
    i64 mean = 0, inverse = 0;
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        mean += row.at[AXIS_OF(KEPT_AXES, k)] * a.kept[k].mean;
        inverse += row.at[AXIS_OF(KEPT_AXES, k)] * a.kept[k].inverse;
    }
    if (a.mean) ((acc *)a.mean)[mean] = r.a;
    if (a.inverse) ((acc *)a.inverse)[inverse] = r.b;
}

/* ---- rows in registers ---- */

#if ITEMS
enum { N = ITEMS, RING = AHEAD > 1 ? AHEAD - 1 : 0, WARP_FULL = LANES_WARP * N * VECTOR };
typedef acc held[N][VECTOR];

/* What some threads know of a row. Moments: elements, their sum, squares about their own mean. Exponentials: b, the sum
 * of exp(x - a). Else a sum, a. */
struct part { acc n, a, b; };

template <int M> DEVICE acc sum_lanes(acc x)
{
#pragma unroll
    for (u32 m = 1; m < M; m *= 2) x += exchange(line_one{ x }, m).a;
    return x;
}
template <int M> DEVICE acc most_lanes(acc x)
{
#pragma unroll
    for (u32 m = 1; m < M; m *= 2) {
        const acc y = exchange(line_one{ x }, m).a;
        if (x < y) x = y;
    }
    return x;
}
DEVICE acc mean_of(const part &p) { return p.n > 0 ? p.a / p.n : 0; }
DEVICE acc about(const part &p, acc mean)
{
    const acc d = mean_of(p) - mean;
    return p.b + p.n * d * d;
}
DEVICE acc below(const part &p, acc top) { return p.a == top ? p.b : p.b * exp_of(p.a - top); }

/* The parts that M lanes hold, as one. count: its elements. */
template <int M> DEVICE part join_lanes(const part &p, acc count)
{
    if (M == 1) return p;
    part t = { count, 0, 0 };
    if (IS_EXP) {
        t.a = most_lanes<M>(p.a);
        t.b = sum_lanes<M>(below(p, t.a));
        return t;
    }
    t.a = sum_lanes<M>(p.a);
    if (OP == LINE_LAYER) t.b = sum_lanes<M>(about(p, mean_of(t)));
    return t;
}

/* From what each warp knows (all its lanes alike), what is known of the row. One barrier: `slot` is 0 and 1 by turns,
 * so that nobody writes where another may still read. */
DEVICE part join_row(part p, const line_args &a, u32 slot)
{
    const acc elements = OP == LINE_LAYER ? (acc)a.elements : 0;
    if (WARPS > 1) {
        part *seat = (part *)shared_base() + slot * 32;
        if (!lane_id()) seat[warp_id()] = p;
        sync_block();
        p = seat[lane_id() % WARPS];
        if (FULL) p.n = WARP_FULL;
        p = join_lanes<WARPS>(p, CLUSTER == 1 || OP != LINE_LAYER ? elements : sum_lanes<WARPS>(p.n));
    }
#if CLUSTER > 1
    part *mine = (part *)shared_base() + 2 * 32 + slot, all[CLUSTER], t = { elements, 0, 0 };
    if (!threadIdx.x) *mine = p;
    meet_cluster();
#pragma unroll
    for (u32 k = 0; k < CLUSTER; k++) {
        all[k] = *cluster_map(mine, k);
        if (IS_EXP) t.a = !k || t.a < all[k].a ? all[k].a : t.a;
        else t.a += all[k].a;
    }
#pragma unroll
    for (u32 k = 0; k < CLUSTER; k++)
        if (IS_EXP) t.b += below(all[k], t.a);
        else if (OP == LINE_LAYER) t.b += about(all[k], mean_of(t));
    return t;
#endif
    return p;
}

/* What is known of the row whose elements are v, of which this thread has n. Exponentials: v becomes exp(v - its warp's
 * maximum), and r.b what that has to be multiplied by. */
DEVICE line_result know(const line_args &a, held &v, const i32 (&n)[N], acc warp_count, u32 slot)
{
    part p = { warp_count, 0, 0 };
    if (IS_EXP) {
        p.a = lowest();
#pragma unroll
        for (int k = 0; k < N; k++)
#pragma unroll
            for (int u = 0; u < VECTOR; u++)
                if (u < n[k] && p.a < v[k][u]) p.a = v[k][u];
        p.a = most_lanes<LANES_WARP>(p.a);
        /* Where all are minus infinity their exponentials are 0, unless the whole row is so. */
        const acc about_it = p.a == lowest() ? 0 : p.a;
#pragma unroll
        for (int k = 0; k < N; k++)
#pragma unroll
            for (int u = 0; u < VECTOR; u++) {
                const acc y = exp_of(v[k][u] - about_it);
                p.b += u < n[k] ? y : 0;
                if (OP == LINE_SOFTMAX) v[k][u] = y;
            }
        p.b = sum_lanes<LANES_WARP>(p.b);
        const part t = join_row(p, a, slot);
        if (OP == LINE_LOG_SOFTMAX) return { t.a, log_of(t.b) + (t.a - t.a) };
        return { t.a, exp_of(p.a - t.a) / t.b };
    }
    if (OP == LINE_LAYER) {
#pragma unroll
        for (int k = 0; k < N; k++)
#pragma unroll
            for (int u = 0; u < VECTOR; u++) p.a += v[k][u];
        p.a = sum_lanes<LANES_WARP>(p.a);
        const acc mean = mean_of(p);
#pragma unroll
        for (int k = 0; k < N; k++)
#pragma unroll
            for (int u = 0; u < VECTOR; u++) {
                const acc d = u < n[k] ? v[k][u] - mean : 0;
                p.b += d * d;
            }
        p.b = sum_lanes<LANES_WARP>(p.b);
        const part t = join_row(p, a, slot);
        return { t.a / (acc)a.elements, inverse_root(t.b / (acc)a.elements + (acc)a.epsilon) };
    }
    line_one f;
    state_clear(f);
#pragma unroll
    for (int k = 0; k < N; k++)
#pragma unroll
        for (int u = 0; u < VECTOR; u++) state_take(f, v[k][u], 0, 0, a.power);
    p.a = sum_lanes<LANES_WARP>(f.a);
    return finish(line_one{ join_row(p, a, slot).a }, a.elements, 0, a);
}

/* The row of this thread in a group of ROWS_BLOCK rows; false: there is none, and it does as the last one's do. */
DEVICE bool row_in(const line_args &a, i32 group, spot &row)
{
    const i32 line = group * ROWS_BLOCK + (i32)threadIdx.x / LANES;
    spot_kept(a, line < a.rows ? line : a.rows - 1, row);
    return line < a.rows;
}

/* Where this thread's vector k of a row passes through shared memory. */
DEVICE u8 *ring_at(u32 slot, int k)
{
    return shared_base() + LINE_MEETING + ((slot * N + k) * BLOCK + threadIdx.x) * 16;
}
/* A group of rows on its way into its slot; one group of copies, be it of nothing. */
DEVICE void ring_fill(const line_args &a, i32 group, i32 groups, const i32 (&n)[N], i32 lane, u32 slot)
{
#if AHEAD > 1
    spot row, s;
    if (group < groups) {
        row_in(a, group, row);
#pragma unroll
        for (int k = 0; k < N; k++) {
            place(a, row, lane + k * STRIDE, a.count, s);
            if (n[k] > 0) copy_async16(shared_address(ring_at(slot, k)), (const element *)a.x + s.x, true);
        }
    }
    copy_commit();
#endif
}

#if PREFETCH || AHEAD
typedef epi_regs<VECTOR> operands[N];
#endif

/* One group of rows (AHEAD 0), or every gridDim.x-th: the elements of the next (1: in registers; else so many less one,
 * in shared memory) are under way while this one is worked on, and operands that all rows share are read once. */
DEVICE void whole(const line_args &a, const epi_args &e PRO_TYPE, i32 lane)
{
    const i32 groups = (a.rows + ROWS_BLOCK - 1) / ROWS_BLOCK, step = AHEAD ? (i32)gridDim.x : groups;
    i32 group = (i32)blockIdx.x / CLUSTER, n[N], count = 0;
    spot row, s;
    bool is_live = row_in(a, group, row);
    line_raw<VECTOR> raw[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        n[k] = place(a, row, lane + k * STRIDE, a.count, s);
        if (!RING) line_fetch<VECTOR>(a PRO_PASS, s, n[k], raw[k]);
        count += n[k] > 0 ? n[k] : 0;
    }
    u32 slot = 0;
#pragma unroll
    for (int d = 0; d < RING; d++) ring_fill(a, group + d * step, groups, n, lane, d);
#if AHEAD
    operands still, next;
#elif PREFETCH
    operands x;
#endif
#if PREFETCH || AHEAD
#pragma unroll
    for (int k = 0; k < N; k++) {
        epi_row r;
        place(a, row, lane + k * STRIDE, a.count, s);
        epi_begin(e, r, s.at);
        if (n[k] <= 0) continue;
#if AHEAD
        epi_fetch_still<VECTOR>(e, r, s.i, EXACT ? VECTOR : n[k], still[k]);
        epi_fetch_moving<VECTOR>(e, r, s.i, EXACT ? VECTOR : n[k], next[k]);
#else
        epi_fetch<VECTOR>(e, r, s.i, EXACT ? VECTOR : n[k], x[k]);
#endif
    }
#endif
    if (TRIGGER == 2 && !AHEAD) grid_trigger();
    const acc warp_count = OP != LINE_LAYER ? 0 : FULL ? (acc)WARP_FULL : sum_lanes<LANES_WARP>((acc)count);
#pragma unroll 1
    for (u32 turn = 0;; turn ^= 1) {
        held v;
        const i32 then = group + step;
        const bool goes_on = AHEAD && then < groups;
        if (RING) copy_wait<RING ? RING - 1 : 0>();
#pragma unroll
        for (int k = 0; k < N; k++) {
            place(a, row, lane + k * STRIDE, a.count, s);
#if AHEAD > 1
            if (n[k] > 0) raw[k] = *(const line_raw<VECTOR> *)ring_at(slot, k);
#endif
            line_value<VECTOR>(PRO_LEAD s, n[k], raw[k], v[k]);
        }
#if AHEAD
        operands x;
#pragma unroll
        for (int k = 0; k < N; k++) {
            x[k] = next[k];
            epi_keep<VECTOR>(still[k], x[k]);
        }
        const spot now = row;
        const bool is_now = is_live;
        ring_fill(a, group + RING * step, groups, n, lane, slot);
        if (RING) slot = slot + 1 < RING ? slot + 1 : 0;
        if (goes_on) {
            is_live = row_in(a, then, row);
#pragma unroll
            for (int k = 0; k < N; k++) {
                place(a, row, lane + k * STRIDE, a.count, s);
                if (!RING) line_fetch<VECTOR>(a PRO_PASS, s, n[k], raw[k]);
#if EPI_MOVING
                epi_row r;
                epi_begin(e, r, s.at);
                if (n[k] > 0) epi_fetch_moving<VECTOR>(e, r, s.i, EXACT ? VECTOR : n[k], next[k]);
#endif
            }
        } else if (TRIGGER == 2) {
            grid_trigger();
        }
#else
        const spot &now = row;
        const bool is_now = is_live;
#endif
        const line_result r = know(a, v, n, warp_count, turn);
        if (STATS && is_now && !lane) store_stats(a, now, r);
        if (TRIGGER == 3 && !goes_on) grid_trigger();
#pragma unroll
        for (int k = 0; k < N; k++) {
            if (n[k] <= 0 || !is_now) continue;
#pragma unroll
            for (int u = 0; u < VECTOR; u++)
                v[k][u] = OP == LINE_SOFTMAX ? v[k][u] * r.b : line_apply(v[k][u], r);
            place(a, now, lane + k * STRIDE, a.count, s);
#if PREFETCH || AHEAD
            epi_row w;
            epi_acc y[VECTOR];
#pragma unroll
            for (int u = 0; u < VECTOR; u++) y[u] = (epi_acc)v[k][u];
            epi_begin(e, w, s.at);
            epi_apply<VECTOR>(e, w, s.i, EXACT ? VECTOR : n[k], x[k], y);
#else
            line_store<VECTOR>(e, s, n[k], v[k]);
#endif
        }
        if (!goes_on) return;
        group = then;
    }
}
#endif

/* ---- rows in passes ---- */

DEVICE void passes(const line_args &a, const epi_args &e PRO_TYPE, spot &row, i32 line, i32 split, i32 lane,
                   bool is_live)
{
    const i32 begin = MODE == LINE_WHOLE ? 0 : split * a.per;
    const i32 end = MODE == LINE_WHOLE ? a.count : smaller(a.count, begin + a.per);
    const acc shift = first_of(a PRO_PASS, row);
    state f;
    state_clear(f);
    if (MODE == LINE_APPLY) {
        for (i32 k = lane; k < (i32)a.splits.d; k += LANES)
            f = state_join(f, ((const state *)a.part)[k * a.outputs + line]);
    } else {
        for (i32 c = begin + lane; c < end; c += STRIDE * UNROLL) {
            acc v[UNROLL][VECTOR];
            i32 n[UNROLL];
            spot s[UNROLL];
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                n[k] = place(a, row, c + k * STRIDE, end, s[k]);
                line_read<VECTOR>(a PRO_PASS, s[k], n[k], v[k]);
            }
#pragma unroll
            for (int k = 0; k < UNROLL; k++)
#pragma unroll
                for (int u = 0; u < VECTOR; u++)
                    if (u < n[k]) state_take(f, v[k][u], (c + k * STRIDE) * VECTOR + u, shift, a.power);
        }
    }
    f = across<join_state>(f, 0);
    if (MODE == LINE_PARTIAL) {
        if (!lane) ((state *)a.part)[split * a.outputs + line] = f;
        return;
    }
    if (TRIGGER == 2) grid_trigger();
    const line_result r = finish(f, a.elements, shift, a);
    if (IS_REDUCTION) {
        if (lane || !is_live) return;
        /* The row's own number along the axis that neighbouring results have in common. */
        acc y[1] = { r.a };
        row.i = row.at[OUTER];
        row.at[OUTER] = 0;
        line_store<1>(e, row, 1, y);
        return;
    }
    if (STATS && is_live && !lane && !split) store_stats(a, row, r);
    if (!is_live) return;
    for (i32 c = begin + lane; c < end; c += STRIDE * UNROLL) {
        acc v[UNROLL][VECTOR];
        i32 n[UNROLL];
        spot s[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            n[k] = place(a, row, c + k * STRIDE, end, s[k]);
            line_read<VECTOR>(a PRO_PASS, s[k], n[k], v[k]);
        }
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            if (n[k] <= 0) continue;
#pragma unroll
            for (int u = 0; u < VECTOR; u++) v[k][u] = line_apply(v[k][u], r);
            line_store<VECTOR>(e, s[k], n[k], v[k]);
        }
    }
}

KERNEL void __launch_bounds__(BLOCK, RESIDENT) rows(const __grid_constant__ line_args a,
                                                    const __grid_constant__ epi_args e PRO_PARAM)
{
    const i32 lane = threadIdx.x % LANES + rank_in_cluster() * LANES;
#if ITEMS
    if (TRIGGER == 1) grid_trigger();
    grid_wait();
    whole(a, e PRO_PASS, lane);
#else
    i32 line = blockIdx.x / CLUSTER * ROWS_BLOCK + threadIdx.x / LANES, split = 0;
    if (MODE != LINE_WHOLE) divmod_fast(blockIdx.x, a.splits, line, split);
    const bool is_live = line < a.rows;
    if (!is_live) line = a.rows - 1;
    spot row;
    spot_kept(a, line, row);
    if (TRIGGER == 1) grid_trigger();
    grid_wait();
    passes(a, e PRO_PASS, row, line, split, lane, is_live);
#endif
    meet_cluster();                     /* nobody leaves while its shared memory is read */
}
