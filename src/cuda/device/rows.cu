/* SPDX-License-Identifier: Apache-2.0 */
/* rows.cu - reductions and normalisations along the axis that is innermost in memory: LANES threads a row.
 *
 * ITEMS > 0: a normalised row lies in registers, ITEMS vectors a thread, and is read once and written once. Else it is
 * folded in passes, the second of which comes out of the cache. Where rows are few, several blocks take parts of one
 * (MODE): the first launch leaves their states, the second joins them; or the blocks are a cluster, and join them through
 * their shared memory. */
#include "line.cuh"

enum { LANES_WARP = LANES < 32 ? LANES : 32, WARPS = LANES / LANES_WARP, ROWS_BLOCK = BLOCK / LANES, UNROLL = 4,
       STRIDE = LANES * CLUSTER };

struct join_state { DEVICE state of(state a, state b) { return state_join(a, b); } };
struct join_sum { DEVICE line_one of(line_one a, line_one b) { return { a.a + b.a }; } };
struct join_max { DEVICE line_one of(line_one a, line_one b) { return { a.a < b.a ? b.a : a.a }; } };

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
    S *mine = (S *)(shared_base() + 2 * 32 * 16) + slot;
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
    return c < end ? EXACT ? VECTOR : smaller(VECTOR, a.inner - s.i) : 0;
}

DEVICE acc first_of(const line_args &a PRO_TYPE, const spot &row)
{
    acc v[1] = {};
    if (OP == LINE_LAYER) line_read<1>(a PRO_PASS, row, a.count ? 1 : 0, v);
    return v[0];
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

/* The row in registers. */
DEVICE void whole(const line_args &a, const epi_args &e PRO_TYPE, const spot &row, i32 lane, bool is_live)
{
    enum { N = ITEMS ? ITEMS : 1 };
    acc v[N][VECTOR];
    i32 n[N];
    spot s;
#pragma unroll
    for (int k = 0; k < N; k++) {
        n[k] = place(a, row, lane + k * STRIDE, a.count, s);
        line_read<VECTOR>(a PRO_PASS, s, n[k], v[k]);
    }
#if PREFETCH
    epi_regs<VECTOR> x[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        epi_row r;
        place(a, row, lane + k * STRIDE, a.count, s);
        epi_begin(e, r, s.at);
        if (n[k] > 0) epi_fetch<VECTOR>(e, r, s.i, EXACT ? VECTOR : n[k], x[k]);
    }
#endif
    if (TRIGGER == 2) grid_trigger();
    line_result r = { 0, 0 };
    line_one t = { 0 };
    if (IS_EXP) {
        t.a = lowest();
#pragma unroll
        for (int k = 0; k < N; k++)
#pragma unroll
            for (int u = 0; u < VECTOR; u++)
                if (u < n[k] && t.a < v[k][u]) t.a = v[k][u];
        const acc top = across<join_max>(t, 0).a;
        t.a = 0;
#pragma unroll
        for (int k = 0; k < N; k++)
#pragma unroll
            for (int u = 0; u < VECTOR; u++) {
                const acc y = exp_of(v[k][u] - top);
                t.a += u < n[k] ? y : 0;
                if (OP == LINE_SOFTMAX) v[k][u] = y;
            }
        t = across<join_sum>(t, 1);
        r = { top, OP == LINE_SOFTMAX ? 1 / t.a : log_of(t.a) };
    } else if (OP == LINE_LAYER) {
#pragma unroll
        for (int k = 0; k < N; k++)
#pragma unroll
            for (int u = 0; u < VECTOR; u++) t.a += v[k][u];
        r.a = across<join_sum>(t, 0).a / (acc)a.elements;
        t.a = 0;
#pragma unroll
        for (int k = 0; k < N; k++)
#pragma unroll
            for (int u = 0; u < VECTOR; u++) {
                const acc d = u < n[k] ? v[k][u] - r.a : 0;
                t.a += d * d;
            }
        r.b = inverse_root(across<join_sum>(t, 1).a / (acc)a.elements + (acc)a.epsilon);
    } else {
        state f;
        state_clear(f);
#pragma unroll
        for (int k = 0; k < N; k++)
#pragma unroll
            for (int u = 0; u < VECTOR; u++) state_take(f, v[k][u], 0, 0, a.power);
        r = finish(across<join_state>(f, 0), a.elements, 0, a);
    }
    if (STATS && is_live && !lane) store_stats(a, row, r);
    if (TRIGGER == 3) grid_trigger();
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (n[k] <= 0 || !is_live) continue;
#pragma unroll
        for (int u = 0; u < VECTOR; u++) v[k][u] = OP == LINE_SOFTMAX ? v[k][u] * r.b : line_apply(v[k][u], r);
        place(a, row, lane + k * STRIDE, a.count, s);
#if PREFETCH
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
}

/* The row in passes. */
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

KERNEL void __launch_bounds__(BLOCK) rows(const __grid_constant__ line_args a,
                                          const __grid_constant__ epi_args e PRO_PARAM)
{
    const i32 lane = threadIdx.x % LANES + rank_in_cluster() * LANES;
    i32 line = blockIdx.x / CLUSTER * ROWS_BLOCK + threadIdx.x / LANES, split = 0;
    if (MODE != LINE_WHOLE) divmod_fast(blockIdx.x, a.splits, line, split);
    const bool is_live = line < a.rows;
    if (!is_live) line = a.rows - 1;
    spot row;
    spot_kept(a, line, row);
    grid_wait();
    if (TRIGGER == 1) grid_trigger();
    if (ITEMS) whole(a, e PRO_PASS, row, lane, is_live);
    else passes(a, e PRO_PASS, row, line, split, lane, is_live);
    meet_cluster();                     /* nobody leaves while its shared memory is read */
}
