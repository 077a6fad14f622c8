/* SPDX-License-Identifier: Apache-2.0 */
/* line.cuh - lines of a tensor: where their elements are, what is known of a part of one (its state), how states join,
 * and what is made of an element when all of its line is known.
 *
 * -DOP, -DACC, -DX_TYPE: enums of line_args.h. -DRANK axes; -DKEPT, -DGONE of them in lists (-DKEPT_AXES, -DGONE_AXES:
 * four bits each, first lowest), -DINNER: the one along which vectors of -DV are read. -DPRO: input 0 comes from a
 * program. -DX_DENSE: the input's innermost elements are adjacent. -DEXACT: the innermost axis is whole vectors. */
#ifndef LINE_CUH
#define LINE_CUH

#include "lanes.cuh"
#include "line_args.h"
#include "generated.cuh"

template <int T> struct line_element {};
template <> struct line_element<LINE_F32> { typedef float type; };
template <> struct line_element<LINE_F64> { typedef double type; };
template <> struct line_element<LINE_F16> { typedef f16 type; };
template <> struct line_element<LINE_BF16> { typedef bf16 type; };
template <> struct line_element<LINE_I8> { typedef i8 type; };
template <> struct line_element<LINE_U8> { typedef u8 type; };
template <> struct line_element<LINE_I16> { typedef i16 type; };
template <> struct line_element<LINE_U16> { typedef u16 type; };
template <> struct line_element<LINE_I32> { typedef i32 type; };
template <> struct line_element<LINE_U32> { typedef u32 type; };
template <> struct line_element<LINE_I64> { typedef i64 type; };
template <> struct line_element<LINE_U64> { typedef u64 type; };
template <> struct line_element<LINE_BOOL> { typedef u8 type; };
template <int A> struct line_sum {};
template <> struct line_sum<LINE_ACC_F32> { typedef float type; typedef i32 index; };
template <> struct line_sum<LINE_ACC_F64> { typedef double type; typedef i64 index; };
template <> struct line_sum<LINE_ACC_I64> { typedef i64 type; typedef i64 index; };

typedef line_element<X_TYPE>::type element;
typedef line_sum<ACC>::type acc;

enum {
    IS_REDUCTION = OP <= LINE_ARG_MIN, IS_ARG = OP == LINE_ARG_MAX || OP == LINE_ARG_MIN,
    IS_EXP = OP == LINE_LOG_SUM_EXP || OP == LINE_SOFTMAX || OP == LINE_LOG_SOFTMAX,
    IS_FLOAT = ACC != LINE_ACC_I64, IS_U64 = X_TYPE == LINE_U64
};
#define AXIS_OF(list, k) ((list) >> 4 * (k) & 15)

template <class T> DEVICE acc widen(T x) { return (acc)x; }
DEVICE acc widen(f16 x) { return (acc)to_float(x); }
DEVICE acc widen(bf16 x) { return (acc)to_float(x); }
DEVICE i64 exp_of(i64 x) { return x; }
DEVICE float log_of(float x) { return logf(x); }
DEVICE double log_of(double x) { return log(x); }
DEVICE i64 log_of(i64 x) { return x; }
DEVICE float root_of(float x) { return sqrtf(x); }
DEVICE double root_of(double x) { return sqrt(x); }
DEVICE i64 root_of(i64 x) { return x; }
DEVICE float power_of(float x, double p) { return powf(x, (float)p); }
DEVICE double power_of(double x, double p) { return pow(x, p); }
DEVICE i64 power_of(i64 x, double p) { return x; }
DEVICE acc magnitude(acc x) { return IS_U64 || x >= 0 ? x : IS_FLOAT ? -x : (acc)(0 - (u64)x); }
DEVICE bool is_less(acc a, acc b) { return IS_U64 ? (u64)a < (u64)b : a < b; }
/* Sums and products of integers wrap. */
DEVICE float plus(float a, float b) { return a + b; }
DEVICE double plus(double a, double b) { return a + b; }
DEVICE i64 plus(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
DEVICE float times(float a, float b) { return a * b; }
DEVICE double times(double a, double b) { return a * b; }
DEVICE i64 times(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }

/* ---- positions ---- */

struct spot {
    i32 at[RANK];                       /* coordinates; 0 along INNER */
    i32 i;                              /* along INNER */
    i64 x;                              /* elements from the input's first, i included */
};

DEVICE void spot_kept(const line_args &a, i32 row, spot &s)
{
#pragma unroll
    for (int k = 0; k < RANK; k++) s.at[k] = 0;
    s.i = 0;
    s.x = 0;
#pragma unroll
    for (int k = KEPT - 1; k >= 0; k--) {
        i32 c = row;
        if (k) divmod_fast(row, a.kept[k].div, row, c);
        s.at[AXIS_OF(KEPT_AXES, k)] = c;
        s.x += c * a.kept[k].x;
    }
}
DEVICE void spot_gone(const line_args &a, i32 element_at, spot &s)
{
#pragma unroll
    for (int k = GONE - 1; k >= 0; k--) {
        i32 c = element_at;
        if (k) divmod_fast(element_at, a.gone[k].div, element_at, c);
        s.at[AXIS_OF(GONE_AXES, k)] = c;
        s.x += c * a.gone[k].x;
    }
}

#if PRO
#define PRO_PARAM , const __grid_constant__ pro_args q
#define PRO_TYPE , const pro_args &q
#define PRO_PASS , q
#define PRO_FIRST const pro_args &q,
#define PRO_LEAD q,
#else
#define PRO_PARAM
#define PRO_TYPE
#define PRO_PASS
#define PRO_FIRST
#define PRO_LEAD
#endif

/* Elements on their way: as they lie in memory, so that they take few registers. */
#if PRO
template <int N> struct line_raw { pro_regs<N> x; };
#else
template <int N> struct line_raw { vec<element, N> x; };
#endif

/* Reads n <= N elements from `s` on; what is beyond them has no value. */
template <int N> DEVICE void line_fetch(const line_args &a PRO_TYPE, const spot &s, i32 n, line_raw<N> &raw)
{
#if PRO
    pro_row r;
    if (n <= 0) return;
    pro_begin(q, r, s.at);
    pro_fetch<N>(q, r, s.i, EXACT ? N : n, raw.x);
#else
    const element *x = (const element *)a.x + s.x;
    if (EXACT && n <= 0) return;
    if (EXACT) n = N;
    if (X_DENSE && N > 1 && n >= N) {
        raw.x = *(const vec<element, N> *)x;
        return;
    }
#pragma unroll
    for (int u = 0; u < N; u++)
        if (u < n) raw.x.at[u] = x[X_DENSE ? u : u * a.step];
#endif
}
/* Their values; 0 beyond them. */
template <int N> DEVICE void line_value(PRO_FIRST const spot &s, i32 n, const line_raw<N> &raw, acc (&v)[N])
{
#if PRO
    pro_row r = {};
    pro_acc w[N];
#pragma unroll
    for (int u = 0; u < N; u++) w[u] = 0;
    if (n > 0) pro_apply<N>(q, r, s.i, EXACT ? N : n, raw.x, w);
#pragma unroll
    for (int u = 0; u < N; u++) v[u] = u < n ? (acc)w[u] : 0;
#else
#pragma unroll
    for (int u = 0; u < N; u++) v[u] = (EXACT ? 0 : u) < n ? widen(raw.x.at[u]) : 0;
#endif
}
/* n <= N elements from `s` on; what is beyond them is 0. */
template <int N> DEVICE void line_read(const line_args &a PRO_TYPE, const spot &s, i32 n, acc (&v)[N])
{
    line_raw<N> raw;
    line_fetch<N>(a PRO_PASS, s, n, raw);
    line_value<N>(PRO_LEAD s, n, raw, v);
}

/* ---- states ---- */

struct line_one { acc a; };
struct line_two { acc a, b; };          /* exponentials: maximum, and sum of exp(x - maximum); moments: sum, squares */
struct line_arg { acc a; line_sum<ACC>::index at; };
template <bool ARG, bool TWO> struct line_state {};
template <> struct line_state<true, false> { typedef line_arg type; };
template <> struct line_state<false, true> { typedef line_two type; };
template <> struct line_state<false, false> { typedef line_one type; };
typedef line_state<IS_ARG, IS_EXP || OP == LINE_LAYER>::type state;

/* The ends of the input's type, for extremes of nothing. */
DEVICE acc lowest()
{
    if (IS_FLOAT) return (acc)-float_of_bits(0x7f800000);
    if (IS_U64 || X_TYPE == LINE_BOOL || X_TYPE == LINE_U8 || X_TYPE == LINE_U16 || X_TYPE == LINE_U32) return 0;
    return (acc)((i64)(~0ull << (8 * sizeof(element) - 1)));
}
DEVICE acc highest()
{
    if (IS_FLOAT) return (acc)float_of_bits(0x7f800000);
    if (X_TYPE == LINE_BOOL) return 1;
    if (IS_U64) return (acc)-1;
    if (X_TYPE == LINE_U8 || X_TYPE == LINE_U16 || X_TYPE == LINE_U32)
        return (acc)((1ull << (8 * sizeof(element) & 63)) - 1);
    return (acc)((i64)((1ull << (8 * sizeof(element) - 1)) - 1));
}
DEVICE acc first_value()
{
    return OP == LINE_MAX || IS_EXP ? lowest() : OP == LINE_MIN ? highest() : OP == LINE_PROD ? (acc)1 : (acc)0;
}
DEVICE void state_clear(line_one &s) { s.a = first_value(); }
DEVICE void state_clear(line_two &s) { s.a = first_value(); s.b = 0; }
DEVICE void state_clear(line_arg &s) { s.a = 0; s.at = -1; }

DEVICE bool is_nan(acc x) { return x != x; }
DEVICE acc extreme(acc a, acc b)
{
    if (is_nan(a)) return a;
    const bool keeps = OP == LINE_MIN ? !is_less(b, a) && !is_nan(b) : !is_less(a, b) && !is_nan(b);
    return keeps ? a : b;
}
/* a and then b */
DEVICE line_one state_join(line_one a, line_one b)
{
    if (OP == LINE_MAX || OP == LINE_MIN) return { extreme(a.a, b.a) };
    return { OP == LINE_PROD ? times(a.a, b.a) : plus(a.a, b.a) };
}
DEVICE line_two state_join(line_two a, line_two b)
{
    if (OP == LINE_LAYER) return { a.a + b.a, a.b + b.b };
    if (a.a == b.a) return { a.a, a.b + b.b };
    const bool is_a = b.a < a.a;
    const acc top = is_a ? a.a : b.a, low = is_a ? b.a : a.a;
    return { top, (is_a ? a.b : b.b) + (is_a ? b.b : a.b) * exp_of(low - top) };
}
DEVICE line_arg state_join(line_arg a, line_arg b)
{
    if (b.at < 0) return a;
    if (a.at < 0) return b;
    const bool is_first = LAST ? b.at > a.at : b.at < a.at;
    if (is_nan(a.a) || is_nan(b.a)) return is_nan(b.a) && (!is_nan(a.a) || is_first) ? b : a;
    if (a.a == b.a) return is_first ? b : a;
    return is_less(a.a, b.a) == (OP == LINE_ARG_MAX) ? b : a;
}
/* What moments are taken about: where that is infinite or not a number, differences from it would tell nothing. */
DEVICE acc finite_shift(acc v) { return v - v == 0 ? v : 0; }

/* One more element; shift: of moments. */
DEVICE void state_take(line_one &s, acc v, i32 at, acc shift, double power)
{
    if (OP == LINE_L1 || (OP == LINE_LP && NORM_P == 1)) v = magnitude(v);
    else if (OP == LINE_L2 || OP == LINE_SUM_SQUARE || OP == LINE_RMS) v = times(v, v);
    else if (OP == LINE_LP && NORM_P == 2) v = times(v, v);
    else if (OP == LINE_LP) v = power_of(magnitude(v), power);
    s = state_join(s, { v });
}
DEVICE void state_take(line_two &s, acc v, i32 at, acc shift, double power)
{
    if (OP == LINE_LAYER) {
        s.a += v - shift;
        s.b += (v - shift) * (v - shift);
    } else if (v == s.a) {
        s.b += 1;
    } else if (v > s.a) {
        s = { v, s.b * exp_of(s.a - v) + 1 };
    } else {
        s.b += exp_of(v - s.a);
    }
}
DEVICE void state_take(line_arg &s, acc v, i32 at, acc shift, double power)
{
    s = state_join(s, { v, (line_sum<ACC>::index)at });
}

/* -DCLUSTER blocks (sm_90 and later) may take a line together, in one launch. */
DEVICE u32 rank_in_cluster()
{
#if CLUSTER > 1
    return cluster_rank();
#else
    return 0;
#endif
}
DEVICE void meet_cluster()
{
#if CLUSTER > 1
    sync_warp();
    cluster_sync();
#endif
}
/* Joins what each block of the cluster left at `mine` before they met, in order. It must stay until they meet again. */
template <class J, class S> DEVICE S join_cluster(S *mine)
{
#if CLUSTER > 1
    S s = *cluster_map(mine, 0);
#pragma unroll
    for (u32 k = 1; k < CLUSTER; k++) s = J::of(s, *cluster_map(mine, k));
    return s;
#else
    return *mine;
#endif
}

/* ---- results ---- */

/* What a whole line of n elements comes to. Reductions: a. */
struct line_result { acc a, b; };
DEVICE acc inverse_root(acc x) { return 1 / root_of(x); }
DEVICE line_result finish(line_one s, i64 n, acc shift, const line_args &a)
{
    switch (OP) {
    case LINE_MEAN:
        if (IS_FLOAT) return { s.a / (acc)n, 0 };
        return { n == 0 ? 0 : IS_U64 ? (acc)((u64)s.a / (u64)n) : s.a / (acc)n, 0 };
    case LINE_L2: return { root_of(s.a), 0 };
    case LINE_LOG_SUM: return { log_of(s.a), 0 };
    case LINE_RMS: return { 0, inverse_root(s.a / (acc)n + (acc)a.epsilon) };
    case LINE_LP: return { NORM_P == 1 ? s.a : NORM_P == 2 ? root_of(s.a) : power_of(s.a, 1 / a.power), 0 };
    default: return { s.a, 0 };
    }
}
DEVICE line_result finish(line_two s, i64 n, acc shift, const line_args &a)
{
    if (OP == LINE_LAYER) {
        const acc moved = s.a / (acc)n, square = s.b / (acc)n - moved * moved;
        return { shift + moved, inverse_root((square < 0 ? 0 : square) + (acc)a.epsilon) };
    }
    const bool is_endless = s.a - s.a != 0;     /* infinite, either way */
    if (OP == LINE_LOG_SUM_EXP) return { is_nan(s.b) ? s.b : is_endless ? s.a : s.a + log_of(s.b), 0 };
    if (is_endless) s.b = s.a - s.a;
    return { s.a, OP == LINE_SOFTMAX ? 1 / s.b : log_of(s.b) };
}
DEVICE line_result finish(line_arg s, i64 n, acc shift, const line_args &a) { return { (acc)s.at, 0 }; }

/* An element of the line, normalised. */
DEVICE acc line_apply(acc v, const line_result &r)
{
    switch (OP) {
    case LINE_SOFTMAX: return exp_of(v - r.a) * r.b;
    case LINE_LOG_SOFTMAX: return v - r.a - r.b;
    case LINE_LAYER: return (v - r.a) * r.b;
    case LINE_RMS: return v * r.b;
    default: return r.a == 0 ? 0 : v / r.a;
    }
}

template <int N> DEVICE void line_store(const epi_args &e, const spot &s, i32 n, const acc (&v)[N])
{
    epi_row r;
    epi_acc w[N];
#pragma unroll
    for (int u = 0; u < N; u++) w[u] = (epi_acc)v[u];
    epi_begin(e, r, s.at);
    epi_run<N>(e, r, s.i, EXACT ? N : n, w);
}

#endif
