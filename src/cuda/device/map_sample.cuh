/* SPDX-License-Identifier: Apache-2.0 */
/* map_sample.cuh - grid_sample and roi_align. Coordinates are data, so they may be anything: each is brought into the
 * image's range, or found to be outside, before it becomes an integer. In double, as the reference has them. */

#if MAP == MAP_GRID

#define TAPS (MODE == 0 ? 1 : MODE == 1 ? 2 : 4)
struct grid_axis { i32 index[TAPS]; map_real weight[TAPS]; };

/* Brings x into [low, high] by reflection at the ends. */
DEVICE double grid_reflected(double x, double low, double high)
{
    const double range = high - low;
    if (x >= low && x <= high) return x;
    if (!(range > 0) || x - x != 0) return low;
    const double away = fabs(x - low), times = floor(away / range), rest = away - times * range;
    return fmod(times, 2.0) == 0 ? low + rest : high - rest;
}

/* The element at a whole coordinate; -1: zero. PADDING: 0 zeros, 1 reflect, 2 border. */
DEVICE i32 grid_pixel(double x, i32 n)
{
    const double last = n - 1;
    if (PADDING == 0) return x >= 0 && x <= last ? (i32)x : -1;
    if (PADDING == 1) x = CORNERS ? grid_reflected(x, 0, last) : trunc(grid_reflected(x, -0.5, last + 0.5));
    return x > last ? n - 1 : x > 0 ? (i32)x : 0;
}

DEVICE double grid_cubic(double distance)
{
    const double x = fabs(distance), k = -0.75;
    if (x <= 1) return ((k + 2) * x - (k + 3)) * x * x + 1;
    return x < 2 ? ((k * x - 5 * k) * x + 8 * k) * x - 4 * k : 0;
}

DEVICE grid_axis grid_taps(double at, i32 n)
{
    grid_axis g;
    double x = CORNERS ? (at + 1) / 2 * (n - 1) : ((at + 1) * n - 1) / 2;
    if (IS_NARROW) x = (double)(float)x;
    if (MODE == 0) x = rint(x);
    const double low = CORNERS ? 0 : -0.5, high = n - 1 - low;
    if (x != x) x = -2;
    if (PADDING == 2 && (x < low || x > high)) x = x < 0 ? 0 : n - 1;
    if (PADDING == 1) x = grid_reflected(x, low, high);
    if (MODE == 0) {
        g.index[0] = grid_pixel(x, n);
        g.weight[0] = 1;
        return g;
    }
    if (fabs(x) > 4503599627370496.0) x = -8;
    const double base = floor(x) - (MODE == 2 ? 1 : 0);
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
        const double distance = base + k - x;
        g.index[k] = grid_pixel(base + k, n);
        g.weight[k] = (map_real)(MODE == 2 ? grid_cubic(distance) : 1 - fabs(distance));
    }
    return g;
}

/* The sum over the taps of the spatial axes from AXIS on. */
template <int AXIS, int V> struct grid_sum {
    static __device__ __forceinline__ void run(const map_args &p, const grid_axis (&taps)[SPATIAL], i64 from,
                                               map_real weight, i32 n, map_real (&sum)[V])
    {
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            const i32 index = taps[AXIS].index[k];
            const map_real own = weight * taps[AXIS].weight[k];
            if (index >= 0 && own != 0)
                grid_sum<AXIS + 1, V>::run(p, taps, from + index * p.in_step[0][2 + AXIS], own, n, sum);
        }
    }
};
template <int V> struct grid_sum<SPATIAL, V> {
    static __device__ __forceinline__ void run(const map_args &p, const grid_axis (&)[SPATIAL], i64 from,
                                               map_real weight, i32 n, map_real (&sum)[V])
    {
        in0_t x[V];
        in0_vector<V>(p, from, n, x);
#pragma unroll
        for (int k = 0; k < V; k++) sum[k] += weight * (map_real)x[k];
    }
};

template <int V> DEVICE void map_value(const map_args &p, const i32 (&c)[RANK], i32 n, epi_acc (&v)[V])
{
    grid_axis taps[SPATIAL];
    i64 at = c[0] * p.in_step[1][0];
#pragma unroll
    for (int k = 0; k < SPATIAL; k++) at += c[2 + k] * p.in_step[1][1 + k];
#pragma unroll
    for (int k = 0; k < SPATIAL; k++)
        taps[k] = grid_taps((double)in1_at(p, at + (SPATIAL - 1 - k) * p.in_step[1][SPATIAL + 1]), p.in_dim[0][2 + k]);
    map_real sum[V] = {};
    grid_sum<0, V>::run(p, taps, c[0] * p.in_step[0][0] + c[1] * p.in_step[0][1], 1, n, sum);
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = (epi_acc)OUT_CAST(IS_FLOAT ? sum[k] : op_round(sum[k]));
}

#else

/* Samples of one bin along one axis: at first + i * step for i in [low, high); those left out are outside. */
struct roi_samples { double first, step, total; i32 low, high; };
struct roi_pair { i32 low, high; map_real weight; };

DEVICE roi_samples roi_bin(double start, double bin, i32 at, double total, i32 limit)
{
    roi_samples s = { start + at * bin + 0.5 * bin / total, bin / total, total, 0, 0 };
    if (!(total >= 1)) return { 0, 0, 0, 0, 0 };
    double low = 0, high = total;
    if (s.step > 0) {
        low = fmax(low, ceil((-1 - s.first) / s.step) - 1);
        high = fmin(high, floor((limit - s.first) / s.step) + 2);
    }
    if (!(low < high)) return s;
    s.low = (i32)low;
    s.high = (i32)high;
    return s;
}

DEVICE bool roi_pair_at(double x, i32 n, roi_pair &out)
{
    if (!(x >= -1 && x <= n)) return false;
    const double inside = x < 0 ? 0 : x > n - 1 ? (double)(n - 1) : x;
    out.low = (i32)inside;
    out.high = out.low + 1 < n ? out.low + 1 : n - 1;
    out.weight = (map_real)(inside - out.low);
    return true;
}

template <int V> DEVICE void map_value(const map_args &p, const i32 (&c)[RANK], i32 n, epi_acc (&v)[V])
{
    const i32 height = p.in_dim[0][2], width = p.in_dim[0][3];
    map_real sum[V], most[V];
#pragma unroll
    for (int k = 0; k < V; k++) {
        sum[k] = 0;
        most[k] = (map_real)LEAST;
        v[k] = 0;
    }
    const i64 batch = (i64)in2_at(p, c[0] * p.in_step[2][0]);
    if (batch < 0 || batch >= p.in_dim[0][0]) {
        report_fault(p.fault, p.step, c[0], batch, p.in_dim[0][0]);
        return;
    }
    if (height == 0 || width == 0) return;
    double corner[4];
    bool is_near = true;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        corner[k] = (double)in1_at(p, c[0] * p.in_step[1][0] + k * p.in_step[1][1]) * p.f[0] - (HALF_PIXEL ? 0.5 : 0);
        is_near = is_near && fabs(corner[k]) < 1e9;
    }
    if (!is_near) return;       /* a region of nothing: no sample is counted */
    double wide = corner[2] - corner[0], high = corner[3] - corner[1];
    if (!HALF_PIXEL) {
        wide = fmax(wide, 1.0);
        high = fmax(high, 1.0);
    }
    const double bin_h = high / p.out_dim[2], bin_w = wide / p.out_dim[3];
    const double count_h = SAMPLING > 0 ? SAMPLING : fmax(ceil(bin_h), 0.0),
                 count_w = SAMPLING > 0 ? SAMPLING : fmax(ceil(bin_w), 0.0);
    const roi_samples sy = roi_bin(corner[1], bin_h, c[2], count_h, height);
    const roi_samples sx = roi_bin(corner[0], bin_w, c[3], count_w, width);
    const i64 base = batch * p.in_step[0][0] + c[1] * p.in_step[0][1];
    double seen = 0;
    for (i32 i = sy.low; i < sy.high; i++) {
        roi_pair y;
        if (!roi_pair_at(sy.first + i * sy.step, height, y)) continue;
        for (i32 j = sx.low; j < sx.high; j++) {
            roi_pair x;
            if (!roi_pair_at(sx.first + j * sx.step, width, x)) continue;
            seen++;
#pragma unroll
            for (int corner_at = 0; corner_at < 4; corner_at++) {
                const i32 row = corner_at & 2 ? y.high : y.low, column = corner_at & 1 ? x.high : x.low;
                const map_real weight = (corner_at & 2 ? y.weight : 1 - y.weight) * (corner_at & 1 ? x.weight : 1 - x.weight);
                in0_t own[V];
                in0_vector<V>(p, base + row * p.in_step[0][2] + column * p.in_step[0][3], n, own);
#pragma unroll
                for (int k = 0; k < V; k++) {
                    const map_real part = weight * (map_real)own[k];
                    sum[k] += part;
                    /* As ONNX has it: the maximum is over the weighted corners. */
                    if (part > most[k]) most[k] = part;
                }
            }
        }
    }
    const double count = sy.total * sx.total;
#pragma unroll
    for (int k = 0; k < V; k++) {
        if (seen < count && most[k] < 0) most[k] = 0;
        v[k] = count >= 1 ? (epi_acc)(IS_MAX ? most[k] : sum[k] / (map_real)count) : (epi_acc)0;
    }
}

#endif
