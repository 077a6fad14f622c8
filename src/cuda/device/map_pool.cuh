/* SPDX-License-Identifier: Apache-2.0 */
/* map_pool.cuh - pools over SPATIAL axes with windows of K0 x K1 x K2, strides S, dilations D and paddings P (before)
 * and Q (after); axes that are not there have windows of 1. POOL: 0 max, 1 average, 2 power. HAS_INDEX: the place of the
 * maximum goes to result 1. */

struct pool_axis { i32 first, last, start; };   /* taps of the window inside the input; where tap 0 is */

DEVICE pool_axis pool_taps(i32 at, i32 size, i32 kernel, i32 stride, i32 dilation, i32 pad)
{
    pool_axis x;
    x.start = at * stride - pad;
    x.first = x.start < 0 ? (-x.start + dilation - 1) / dilation : 0;
    x.last = size > x.start ? (size - x.start + dilation - 1) / dilation : 0;
    x.first = smaller(x.first, kernel);
    x.last = larger(smaller(x.last, kernel), x.first);
    return x;
}

/* One tap, the element at `from` whose number in its plane is `here`, into the results so far. */
template <int V>
DEVICE void pool_add(const map_args &p, i64 from, i64 here, bool is_inside, i32 n, in0_t (&best)[V], i64 (&place)[V])
{
    in0_t own[V];
    in0_vector<V>(p, from, n, own);
#pragma unroll
    for (int i = 0; i < V; i++) {
#if POOL == 0
        const bool is_better = own[i] > best[i] || (own[i] != own[i] && best[i] == best[i]);
        if (is_better) best[i] = own[i];
#if HAS_INDEX
        if (is_better || place[i] < 0) place[i] = here;
#endif
#elif POOL == 1
        best[i] += is_inside ? own[i] : (in0_t)0;
#else
        const in0_t size = is_inside ? op_abs(own[i]) : (in0_t)0;
        best[i] += POWER == 1 ? size : POWER == 2 ? size * size : op_pow(size, (in0_t)POWER);
#endif
    }
}

template <int V> DEVICE void map_value(const map_args &p, const i32 (&c)[RANK], i32 n, epi_acc (&v)[V])
{
    constexpr i32 kernel[3] = { K0, K1, K2 }, stride[3] = { S0, S1, S2 }, dilation[3] = { D0, D1, D2 };
    constexpr i32 pad[3] = { P0, P1, P2 }, after[3] = { Q0, Q1, Q2 };
    pool_axis taps[3];
    i64 step[3];
    i32 padded = 1, count = 1;
    const i64 base = c[0] * p.in_step[0][0] + c[1] * p.in_step[0][1];
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const int axis = k - (3 - SPATIAL) + 2;
        if (axis < 2) {
            taps[k] = { 0, 1, 0 };
            step[k] = 0;
            continue;
        }
        const i32 size = p.in_dim[0][axis];
        taps[k] = pool_taps(c[axis], size, kernel[k], stride[k], dilation[k], pad[k]);
        step[k] = p.in_step[0][axis];
        count *= taps[k].last - taps[k].first;
        padded *= larger(0, smaller(kernel[k], (size + after[k] - taps[k].start + dilation[k] - 1) / dilation[k]));
    }
    in0_t best[V];
    i64 place[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
        best[i] = POOL == 0 ? (in0_t)LEAST : (in0_t)0;
        place[i] = -1;
    }
#if K0 * K1 * K2 <= 16
    /* Small windows: all at once, those outside read an element inside, which changes no maximum and counts nothing. */
    if (count > 0) {
#pragma unroll
        for (int t = 0; t < K0 * K1 * K2; t++) {
            const i32 tap[3] = { t / (K1 * K2), t / K2 % K1, t % K2 };
            i32 at[3];
            bool is_inside = true;
#pragma unroll
            for (int k = 0; k < 3; k++) {
                const i32 near = larger(taps[k].first, smaller(tap[k], taps[k].last - 1));
                is_inside = is_inside && near == tap[k];
                at[k] = taps[k].start + near * dilation[k];
            }
            pool_add<V>(p, base + at[0] * step[0] + at[1] * step[1] + at[2] * step[2],
                        at[0] * p.k[0] + at[1] * p.k[1] + at[2] * p.k[2], POOL == 0 || is_inside, n, best, place);
        }
    }
#else
    for (i32 z = taps[0].first; z < taps[0].last; z++) {
        for (i32 y = taps[1].first; y < taps[1].last; y++) {
#pragma unroll 4
            for (i32 x = taps[2].first; x < taps[2].last; x++) {
                const i32 at[3] = { taps[0].start + z * D0, taps[1].start + y * D1, taps[2].start + x * D2 };
                pool_add<V>(p, base + at[0] * step[0] + at[1] * step[1] + at[2] * step[2],
                            at[0] * p.k[0] + at[1] * p.k[1] + at[2] * p.k[2], true, n, best, place);
            }
        }
    }
#endif
#pragma unroll
    for (int i = 0; i < V; i++) {
        if (POOL == 1) {
            const i32 divisor = COUNT_PAD ? padded : count;
            best[i] = divisor > 0 ? best[i] / (in0_t)divisor : (in0_t)0;
        }
#if POOL == 2
        best[i] = POWER == 1 ? best[i] : POWER == 2 ? op_sqrt(best[i]) : op_pow(best[i], (in0_t)1 / (in0_t)POWER);
#endif
        v[i] = (epi_acc)best[i];
#if HAS_INDEX
        if (i >= n) continue;
        i64 to = 0;
#pragma unroll
        for (int axis = 0; axis < RANK; axis++) to += (c[axis] + (axis == INNER ? i : 0)) * p.extra_step[axis];
        const i64 plane = (i64)(c[0] + (INNER == 0 ? i : 0)) * p.out_dim[1] + c[1] + (INNER == 1 ? i : 0);
        ((i64 *)p.extra)[to] = plane * p.k[3] + larger(place[i], (i64)0);
#endif
    }
}
