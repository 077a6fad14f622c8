/* SPDX-License-Identifier: Apache-2.0 */
/* map_resize.cuh - resize. MODE: 0 nearest, 1 linear, 2 cubic; COORDINATE and NEAREST as the enums of the op count. The
 * axes in MOVED are resized, the others keep their elements. f[axis]: scale, f[8 + axis]: start and f[16 + axis]: end
 * of the region; f[7]: cubic_a, f[15]: the extrapolation value (rank <= 7). Coordinates are in double, as the
 * reference has them, so that what lies on a boundary falls to the same side; or, where they are fractions of the sizes
 * (IS_RATIONAL), in integers, since most GPUs have little to compute in double with. */

#define TAPS (MODE == 0 ? 1 : MODE == 1 ? 2 : 4)
struct resize_axis { i32 index[TAPS]; map_real weight[TAPS]; };

DEVICE double resize_clamped(double x, i32 n) { return x < 0 ? 0 : x > n - 1 ? (double)(n - 1) : x; }

template <class F> DEVICE F resize_kernel(F distance, F a)
{
    const F x = op_abs(distance);
    if (MODE == 1) return x < 1 ? 1 - x : 0;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

#if IS_RATIONAL
DEVICE bool resize_taps(const map_args &p, int axis, i32 i, resize_axis &out)
{
    const i32 n = p.in_dim[0][axis], n_out = p.out_dim[axis];
    i32 over, under;
    if (COORDINATE < 3) over = (2 * i + 1) * n - n_out, under = 2 * n_out;
    else if (COORDINATE == 3) over = i * (n - 1), under = n_out - 1;
    else if (COORDINATE == 6) over = n == n_out ? i : (2 * i + 1) * n, under = n == n_out ? 1 : 2 * n_out;
    else over = i * n, under = n_out;
    if ((COORDINATE == 2 || COORDINATE == 3) && n_out == 1) over = 0, under = 1;
    i32 low = over / under;
    if (low * under > over) low--;
    const i32 rest = over - low * under;
    if (MODE == 0) {
        const bool is_up = NEAREST == 2 ? false : NEAREST == 3 ? rest > 0 : NEAREST == 1 ? 2 * rest >= under : 2 * rest > under;
        out.index[0] = smaller(larger(low + is_up, 0), n - 1);
        out.weight[0] = 1;
        return true;
    }
    const map_real ratio = (map_real)rest / (map_real)under;
    map_real kept = 0;
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
        const i32 place = low - (TAPS / 2 - 1) + k;
        out.weight[k] = resize_kernel((map_real)(k - (TAPS / 2 - 1)) - ratio, (map_real)p.f[7]);
        if (EXCLUDE && (place < 0 || place > n - 1)) out.weight[k] = 0;
        kept += out.weight[k];
        out.index[k] = smaller(larger(place, 0), n - 1);
    }
#pragma unroll
    for (int k = 0; k < TAPS; k++)
        if (EXCLUDE && kept != 0) out.weight[k] /= kept;
    return true;
}
#else
/* As ops/taps.h has it. */
DEVICE double resize_place(double x)
{
    return MODE == 0 && x < 16384 ? (double)(float)x : x;
}

DEVICE bool resize_taps(const map_args &p, int axis, i32 i, resize_axis &out)
{
    const i32 n = p.in_dim[0][axis], n_out = p.out_dim[axis];
    const double scale = p.f[axis], width = n, wanted = scale * width, at = i;
    const bool is_one = fabs(wanted - 1) < 1e-6;
    const double from = resize_place(at / scale), half = resize_place((at + 0.5) / scale);
    double x = 0;
    if (COORDINATE == 0) {
        x = half - 0.5;
    } else if (COORDINATE == 1) {
        x = resize_place(width / 2 * (1 - n_out / wanted) + (at + 0.5) / scale - 0.5);
    } else if (COORDINATE == 2) {
        x = n_out > 1 ? half - 0.5 : 0;
    } else if (COORDINATE == 3) {
        x = is_one || n_out == 1 ? 0 : at * (width - 1) / (wanted - 1);
    } else if (COORDINATE == 4) {
        x = from;
    } else if (COORDINATE == 6) {
        x = scale == 1 ? at : half;
    } else {
        const double low = p.f[8 + axis], high = p.f[16 + axis];
        const double step = is_one ? (high - low) * (width - 1) / 2 : at * (high - low) * (width - 1) / (wanted - 1);
        const double slack = 1e-6 * width;
        x = step + low * (width - 1);
        if (!(x >= -slack) || x > width - 1 + slack) return false;
        x = resize_clamped(x, n);
    }
    const double low = floor(x), ratio = x - low;
    if (MODE == 0) {
        const bool is_up = NEAREST == 2 ? false : NEAREST == 3 ? ratio > 0 : NEAREST == 1 ? ratio >= 0.5 : ratio > 0.5;
        out.index[0] = (i32)resize_clamped(is_up ? low + 1 : low, n);
        out.weight[0] = 1;
        return true;
    }
    const double first = low - (TAPS / 2 - 1);
    double weight[TAPS], sum = 0, kept = 0;
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
        weight[k] = resize_kernel(first + k - x, p.f[7]);
        sum += weight[k];
    }
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
        const double place = first + k;
        weight[k] /= sum;
        if (fabs(weight[k]) < 1e-9) weight[k] = 0; /* as ops/move.h says */
        if (EXCLUDE && (place < 0 || place > n - 1)) weight[k] = 0;
        kept += weight[k];
        out.index[k] = (i32)resize_clamped(place, n);
    }
#pragma unroll
    for (int k = 0; k < TAPS; k++) out.weight[k] = (map_real)(EXCLUDE && kept != 0 ? weight[k] / kept : weight[k]);
    return true;
}
#endif

/* The sum over the taps of the axes from AXIS on. */
template <int AXIS, int V> struct resize_sum {
    static __device__ __forceinline__ void run(const map_args &p, const resize_axis (&taps)[RANK], const i32 (&c)[RANK],
                                               i64 from, map_real weight, i32 n, map_real (&sum)[V])
    {
        if (!(MOVED >> AXIS & 1)) {
            resize_sum<AXIS + 1, V>::run(p, taps, c, from + c[AXIS] * p.in_step[0][AXIS], weight, n, sum);
            return;
        }
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            const map_real own = weight * taps[AXIS].weight[k];
            /* An infinity beside the sample does not spoil it. */
            if (own != 0)
                resize_sum<AXIS + 1, V>::run(p, taps, c, from + taps[AXIS].index[k] * p.in_step[0][AXIS], own, n, sum);
        }
    }
};
template <int V> struct resize_sum<RANK, V> {
    static __device__ __forceinline__ void run(const map_args &p, const resize_axis (&)[RANK], const i32 (&)[RANK],
                                               i64 from, map_real weight, i32 n, map_real (&sum)[V])
    {
        in0_t x[V];
        in0_vector<V>(p, from, n, x);
#pragma unroll
        for (int k = 0; k < V; k++) sum[k] += weight * (map_real)x[k];
    }
};

template <int V> DEVICE void map_value(const map_args &p, const i32 (&c)[RANK], i32 n, epi_acc (&v)[V])
{
    resize_axis taps[RANK];
    bool is_inside = true;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++)
        if (MOVED >> axis & 1) is_inside = resize_taps(p, axis, c[axis], taps[axis]) && is_inside;
#if MODE == 0
    i64 from = 0;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++)
        from += (MOVED >> axis & 1 ? taps[axis].index[0] : c[axis]) * p.in_step[0][axis];
    in0_t x[V];
    if (is_inside) in0_vector<V>(p, from, n, x);
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = is_inside ? (epi_acc)x[k] : (epi_acc)OUT_CAST((map_real)p.f[15]);
#else
    map_real sum[V];
#pragma unroll
    for (int k = 0; k < V; k++) sum[k] = is_inside ? (map_real)0 : (map_real)p.f[15];
    if (is_inside) resize_sum<0, V>::run(p, taps, c, 0, 1, n, sum);
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = (epi_acc)OUT_CAST(IS_FLOAT ? sum[k] : op_round(sum[k]));
#endif
}
