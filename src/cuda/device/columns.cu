/* SPDX-License-Identifier: Apache-2.0 */
/* columns.cu - reductions and normalisations along axes that are not innermost in memory: TX threads side by side, each
 * for VECTOR adjacent lines, and BLOCK / TX threads down the lines.
 *
 * ITEMS > 0: lines lie in registers. Else they are folded in passes. Where there are few, several blocks take parts of
 * one (MODE, or the blocks of a cluster). -DGROUPED: neighbouring lines share their statistics (channels-last group normalisation): each line's
 * state is left by the first launch, and the second joins those of a group. */
#include "line.cuh"

enum {
    TY = BLOCK / TX, STRIDE = TY * CLUSTER,
    UNROLL = VECTOR < 8 || (IS_REDUCTION && !IS_EXP && !IS_ARG) ? 4 : 2,
    SEATS = TX < 32 ? BLOCK / 32 : TY   /* states of a line that are left when warps have joined theirs */
};

struct join_state { DEVICE state of(state a, state b) { return state_join(a, b); } };
struct join_sum { DEVICE line_one of(line_one a, line_one b) { return { a.a + b.a }; } };
struct join_max { DEVICE line_one of(line_one a, line_one b) { return { a.a < b.a ? b.a : a.a }; } };

/* Joins the states of all threads of the same lines. slot: 0 and 1 by turns. */
template <class J, class S> DEVICE void across(S (&s)[VECTOR], u32 tx, u32 ty, u32 slot)
{
#pragma unroll
    for (u32 m = TX; m < 32; m *= 2)
#pragma unroll
        for (int u = 0; u < VECTOR; u++) s[u] = J::of(s[u], exchange(s[u], m));
    enum { LINES = VECTOR * TX };
    S *spare = (S *)shared_base(), *mine = spare + (SEATS > 1 ? SEATS + slot : slot) * LINES;
    if (SEATS > 1) {
        const u32 seat = TX < 32 ? warp_id() : ty % TY;
        sync_block();                   /* it may still be read */
        if (TX >= 32 || lane_id() < TX)
#pragma unroll
            for (int u = 0; u < VECTOR; u++) spare[seat * LINES + u * TX + tx] = s[u];
        sync_block();
        /* The lines are shared out over the threads, each of which joins what all seats have of one. */
        for (i32 i = threadIdx.x; i < LINES; i += BLOCK) {
            S t = spare[i];
#pragma unroll
            for (int k = 1; k < SEATS; k++) t = J::of(t, spare[k * LINES + i]);
            (CLUSTER > 1 ? mine : spare)[i] = t;
        }
        if (CLUSTER == 1) {
            sync_block();
#pragma unroll
            for (int u = 0; u < VECTOR; u++) s[u] = spare[u * TX + tx];
        }
    } else if (CLUSTER > 1 && ty % TY == 0) {
#pragma unroll
        for (int u = 0; u < VECTOR; u++) mine[u * TX + tx] = s[u];
    }
    if (CLUSTER == 1) return;
    S *joined = spare + (SEATS + 2) * LINES;
    meet_cluster();
    for (i32 i = threadIdx.x; i < LINES; i += BLOCK) joined[i] = join_cluster<J>(mine + i);
    sync_block();
#pragma unroll
    for (int u = 0; u < VECTOR; u++) s[u] = joined[u * TX + tx];
}

/* Where element j of these lines is. */
DEVICE void place(const line_args &a, const spot &line, i32 j, spot &s)
{
    s = line;
    spot_gone(a, j, s);
}

/* What moments are taken about: the first element of the line, or of its group. */
DEVICE void shifts(const line_args &a PRO_TYPE, const spot &line, i32 n, acc (&shift)[VECTOR])
{
    if (OP != LINE_LAYER || !a.count) {
        for (int u = 0; u < VECTOR; u++) shift[u] = 0;
        return;
    }
    spot s;
    place(a, line, 0, s);
    if (!GROUPED) {
        line_read<VECTOR>(a PRO_PASS, s, n, shift);
        for (int u = 0; u < VECTOR; u++) shift[u] = finite_shift(shift[u]);
        return;
    }
#pragma unroll
    for (int u = 0; u < VECTOR; u++) {
        const i32 first = div_fast(line.i + u, a.each) * (i32)a.each.d;
        spot g = s;
        acc v[1];
        g.i = first;
        g.x += (first - line.i) * (X_DENSE ? 1 : a.step);
        line_read<1>(a PRO_PASS, g, u < n ? 1 : 0, v);
        shift[u] = finite_shift(v[0]);
    }
}

/* What layer_norm keeps of these lines. The innermost axis is the last of those that stay. */
DEVICE void store_stats(const line_args &a, const spot &line, i32 n, const line_result (&r)[VECTOR])
{
    i64 mean = 0, inverse = 0;
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        mean += line.at[AXIS_OF(KEPT_AXES, k)] * a.kept[k].mean;
        inverse += line.at[AXIS_OF(KEPT_AXES, k)] * a.kept[k].inverse;
    }
#pragma unroll
    for (int u = 0; u < VECTOR; u++) {
        if (u >= n) continue;
        if (a.mean) ((acc *)a.mean)[mean + (line.i + u) * a.kept[KEPT].mean] = r[u].a;
        if (a.inverse) ((acc *)a.inverse)[inverse + (line.i + u) * a.kept[KEPT].inverse] = r[u].b;
    }
}

/* The lines in registers. */
DEVICE void whole(const line_args &a, const epi_args &e PRO_TYPE, const spot &line, i32 n, u32 tx, u32 ty)
{
    enum { N = ITEMS ? ITEMS : 1 };
    acc v[N][VECTOR];
    spot s;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const i32 j = ty + k * STRIDE;
        place(a, line, j, s);
        line_read<VECTOR>(a PRO_PASS, s, j < a.count ? n : 0, v[k]);
    }
    if (TRIGGER == 2) grid_trigger();
    line_result r[VECTOR];
    line_one t[VECTOR];
    if (IS_EXP) {
#pragma unroll
        for (int u = 0; u < VECTOR; u++) {
            t[u].a = lowest();
#pragma unroll
            for (int k = 0; k < N; k++)
                if ((i32)ty + k * STRIDE < a.count && t[u].a < v[k][u]) t[u].a = v[k][u];
        }
        across<join_max>(t, tx, ty, 0);
#pragma unroll
        for (int u = 0; u < VECTOR; u++) {
            r[u].a = t[u].a;
            t[u].a = 0;
#pragma unroll
            for (int k = 0; k < N; k++) {
                const acc y = exp_of(v[k][u] - r[u].a);
                t[u].a += (i32)ty + k * STRIDE < a.count ? y : 0;
                if (OP == LINE_SOFTMAX) v[k][u] = y;
            }
        }
        across<join_sum>(t, tx, ty, 1);
#pragma unroll
        for (int u = 0; u < VECTOR; u++) r[u].b = OP == LINE_SOFTMAX ? 1 / t[u].a : log_of(t[u].a);
    } else if (OP == LINE_LAYER) {
#pragma unroll
        for (int u = 0; u < VECTOR; u++) {
            t[u].a = 0;
#pragma unroll
            for (int k = 0; k < N; k++) t[u].a += v[k][u];
        }
        across<join_sum>(t, tx, ty, 0);
#pragma unroll
        for (int u = 0; u < VECTOR; u++) {
            r[u].a = t[u].a / (acc)a.elements;
            t[u].a = 0;
#pragma unroll
            for (int k = 0; k < N; k++) {
                const acc d = (i32)ty + k * STRIDE < a.count ? v[k][u] - r[u].a : 0;
                t[u].a += d * d;
            }
        }
        across<join_sum>(t, tx, ty, 1);
#pragma unroll
        for (int u = 0; u < VECTOR; u++) r[u].b = inverse_root(t[u].a / (acc)a.elements + (acc)a.epsilon);
    } else {
        state f[VECTOR];
#pragma unroll
        for (int u = 0; u < VECTOR; u++) {
            state_clear(f[u]);
#pragma unroll
            for (int k = 0; k < N; k++) state_take(f[u], v[k][u], 0, 0, a.power);
        }
        across<join_state>(f, tx, ty, 0);
#pragma unroll
        for (int u = 0; u < VECTOR; u++) r[u] = finish(f[u], a.elements, 0, a);
    }
    if (TRIGGER == 3) grid_trigger();
    if (n <= 0) return;
    if (STATS && !ty) store_stats(a, line, n, r);
#pragma unroll
    for (int k = 0; k < N; k++) {
        const i32 j = ty + k * STRIDE;
        if (j >= a.count) continue;
#pragma unroll
        for (int u = 0; u < VECTOR; u++) v[k][u] = OP == LINE_SOFTMAX ? v[k][u] * r[u].b : line_apply(v[k][u], r[u]);
        place(a, line, j, s);
        line_store<VECTOR>(e, s, n, v[k]);
    }
}

/* The sums of all lines of the groups of these lines. */
DEVICE void join_groups(const line_args &a, const spot &line, i32 row, i32 n, i32 tile, state (&f)[VECTOR])
{
    state *spare = (state *)shared_base();
    const i32 each = (i32)a.each.d, low = div_fast(tile * TX * VECTOR, a.each) * each;
    const i32 end = (div_fast(smaller(a.inner, (tile + 1) * TX * VECTOR) - 1, a.each) + 1) * each;
    for (i32 c = threadIdx.x; c < end - low; c += BLOCK) {
        state t;
        state_clear(t);
        for (i32 k = 0; k < (i32)a.splits.d; k++)
            t = state_join(t, ((const state *)a.part)[k * a.outputs + (i64)row * a.inner + low + c]);
        spare[c] = t;
    }
    sync_block();
    i32 before = -1;
#pragma unroll
    for (int u = 0; u < VECTOR; u++) {
        const i32 first = div_fast(line.i + u, a.each) * each;
        if (u && first == before) {
            f[u] = f[u ? u - 1 : 0];
            continue;
        }
        before = first;
        state_clear(f[u]);
        for (i32 c = 0; u < n && c < each; c++) f[u] = state_join(f[u], spare[first - low + c]);
    }
}

/* The lines in passes. */
DEVICE void passes(const line_args &a, const epi_args &e PRO_TYPE, const spot &line, i32 n, i32 row, i32 tile,
                   i32 split, u32 tx, u32 ty)
{
    const i32 begin = MODE == LINE_WHOLE ? 0 : split * a.per;
    const i32 end = MODE == LINE_WHOLE ? a.count : smaller(a.count, begin + a.per);
    const i64 output = (i64)row * a.inner + line.i;
    acc shift[VECTOR];
    state f[VECTOR];
    shifts(a PRO_PASS, line, n, shift);
#pragma unroll
    for (int u = 0; u < VECTOR; u++) state_clear(f[u]);
    if (MODE == LINE_APPLY && GROUPED) {
        join_groups(a, line, row, n, tile, f);
    } else if (MODE == LINE_APPLY) {
        for (i32 k = ty; k < (i32)a.splits.d; k += STRIDE)
#pragma unroll
            for (int u = 0; u < VECTOR; u++)
                if (u < n) f[u] = state_join(f[u], ((const state *)a.part)[k * a.outputs + output + u]);
    } else {
        for (i32 j = begin + ty; j < end; j += STRIDE * UNROLL) {
            acc v[UNROLL][VECTOR];
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                spot s;
                place(a, line, j + k * STRIDE, s);
                line_read<VECTOR>(a PRO_PASS, s, j + k * STRIDE < end ? n : 0, v[k]);
            }
#pragma unroll
            for (int k = 0; k < UNROLL; k++)
                if (j + k * STRIDE < end)
#pragma unroll
                    for (int u = 0; u < VECTOR; u++) state_take(f[u], v[k][u], j + k * STRIDE, shift[u], a.power);
        }
    }
    if (MODE != LINE_APPLY || !GROUPED) across<join_state>(f, tx, ty, 0);
    if (MODE == LINE_PARTIAL) {
        if (ty) return;
        for (int u = 0; u < VECTOR; u++)
            if (u < n) ((state *)a.part)[split * a.outputs + output + u] = f[u];
        return;
    }
    if (TRIGGER == 2) grid_trigger();
    if (n <= 0) return;
    line_result r[VECTOR];
#pragma unroll
    for (int u = 0; u < VECTOR; u++) r[u] = finish(f[u], a.elements, shift[u], a);
    if (IS_REDUCTION) {
        if (ty) return;
        acc y[VECTOR];
#pragma unroll
        for (int u = 0; u < VECTOR; u++) y[u] = r[u].a;
        line_store<VECTOR>(e, line, n, y);
        return;
    }
    if (STATS && !ty && !split) store_stats(a, line, n, r);
    for (i32 j = begin + ty; j < end; j += STRIDE * UNROLL) {
        acc v[UNROLL][VECTOR];
        spot s;
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            place(a, line, j + k * STRIDE, s);
            line_read<VECTOR>(a PRO_PASS, s, j + k * STRIDE < end ? n : 0, v[k]);
        }
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            if (j + k * STRIDE >= end) continue;
#pragma unroll
            for (int u = 0; u < VECTOR; u++) v[k][u] = line_apply(v[k][u], r[u]);
            place(a, line, j + k * STRIDE, s);
            line_store<VECTOR>(e, s, n, v[k]);
        }
    }
}

KERNEL void __launch_bounds__(BLOCK) columns(const __grid_constant__ line_args a,
                                             const __grid_constant__ epi_args e PRO_PARAM)
{
    const u32 tx = threadIdx.x % TX, ty = threadIdx.x / TX + rank_in_cluster() * TY;
    i32 row, tile, split = 0;
    divmod_fast(blockIdx.x / CLUSTER, a.runs, row, tile);
    if (MODE != LINE_WHOLE) divmod_fast(row, a.splits, row, split);
    spot line;
    spot_kept(a, row, line);
    line.i = (tile * TX + (i32)tx) * VECTOR;
    line.x += line.i * (X_DENSE ? 1 : a.step);
    const i32 n = EXACT ? line.i < a.inner ? VECTOR : 0 : smaller(VECTOR, a.inner - line.i);
    if (TRIGGER == 1) grid_trigger();
    grid_wait();
    if (ITEMS) whole(a, e PRO_PASS, line, n, tx, ty);
    else passes(a, e PRO_PASS, line, n, row, tile, split, tx, ty);
    meet_cluster();                     /* nobody leaves while its shared memory is read */
}
