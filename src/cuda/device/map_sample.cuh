/* SPDX-License-Identifier: Apache-2.0 */
/* map_sample.cuh - grid_sample and roi_align. Coordinates are data, so they may be anything: each is brought into the
 * image's range, or found to be outside, before it becomes an integer. */

#if MAP == MAP_GRID

#define TAPS (MODE == 0 ? 1 : MODE == 1 ? 2 : 4)
/* Coordinates of floats are floats, and one multiply-add rounds them once, as the reference does; reflections are many
 * steps, in double. */
#if IS_NARROW && PADDING != 1
typedef float grid_real;
DEVICE grid_real grid_place(grid_real at, i32 n)
{
    return fmaf(at, 0.5f * (CORNERS ? n - 1 : n), 0.5f * (n - 1));
}
#else
typedef double grid_real;
DEVICE grid_real grid_place(grid_real at, i32 n)
{
    const double x = CORNERS ? (at + 1) / 2 * (n - 1) : ((at + 1) * n - 1) / 2;
    return IS_NARROW ? (double)(float)x : x;
}
#endif
struct grid_axis { i32 index[TAPS]; map_real weight[TAPS]; };

/* Brings x into [low, high] by reflection at the ends. */
DEVICE grid_real grid_reflected(grid_real x, grid_real low, grid_real high)
{
    const grid_real range = high - low;
    if (x >= low && x <= high) return x;
    if (!(range > 0) || x - x != 0) return low;
    const grid_real away = op_abs(x - low), times = op_floor(away / range), rest = away - times * range;
    return op_fmod(times, (grid_real)2) == 0 ? low + rest : high - rest;
}

/* The element at a whole coordinate; -1: zero. PADDING: 0 zeros, 1 reflect, 2 border. */
DEVICE i32 grid_pixel(grid_real x, i32 n)
{
    const grid_real last = n - 1;
    if (PADDING == 0) return x >= 0 && x <= last ? (i32)x : -1;
    if (PADDING == 1) x = CORNERS ? grid_reflected(x, 0, last) : (grid_real)trunc((double)grid_reflected(x, (grid_real)-0.5, last + (grid_real)0.5));
    return x > last ? n - 1 : x > 0 ? (i32)x : 0;
}

DEVICE grid_real grid_cubic(grid_real distance)
{
    const grid_real x = op_abs(distance), k = (grid_real)-0.75;
    if (x <= 1) return ((k + 2) * x - (k + 3)) * x * x + 1;
    return x < 2 ? ((k * x - 5 * k) * x + 8 * k) * x - 4 * k : 0;
}

DEVICE grid_axis grid_taps(grid_real at, i32 n)
{
    grid_axis g;
    grid_real x = grid_place(at, n);
    if (MODE == 0) x = op_round(x);
    const grid_real low = CORNERS ? (grid_real)0 : (grid_real)-0.5, high = n - 1 - low;
    if (x != x) x = -2;
    /* The four taps of a cubic are moved to the edge one by one. Beyond 8 elements all of them are the edge. */
    if (PADDING == 2 && MODE == 2) x = x < -8 ? -8 : x > high + 8 ? high + 8 : x;
    else if (PADDING == 2 && (x < low || x > high)) x = x < 0 ? 0 : n - 1;
    if (PADDING == 1) x = grid_reflected(x, low, high);
    if (MODE == 0) {
        g.index[0] = grid_pixel(x, n);
        g.weight[0] = 1;
        return g;
    }
    if (!(op_abs(x) < (grid_real)8388608)) x = -8;
    const grid_real base = op_floor(x) - (MODE == 2 ? 1 : 0);
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
        const grid_real distance = base + k - x;
        g.index[k] = grid_pixel(base + k, n);
        g.weight[k] = (map_real)(MODE == 2 ? grid_cubic(distance) : 1 - op_abs(distance));
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
        taps[k] = grid_taps((grid_real)in1_at(p, at + (SPATIAL - 1 - k) * p.in_step[1][SPATIAL + 1]), p.in_dim[0][2 + k]);
    map_real sum[V] = {};
    grid_sum<0, V>::run(p, taps, c[0] * p.in_step[0][0] + c[1] * p.in_step[0][1], 1, n, sum);
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = (epi_acc)OUT_CAST(IS_FLOAT ? sum[k] : op_round(sum[k]));
}

#else

/* Coordinates are doubles, except where the image is f16 or bf16: there floats tell places apart well enough. */
#if IS_NARROW
typedef float roi_real;
#else
typedef double roi_real;
#endif
/* Samples of one bin along one axis: at first + i * step for i in [low, high); those left out are outside. */
struct roi_samples { roi_real first, step, total; i32 low, high; };
struct roi_pair { i32 low, high; map_real weight; };

DEVICE roi_samples roi_bin(roi_real start, roi_real bin, i32 at, roi_real total, i32 limit)
{
    roi_samples s = { start + at * bin + (roi_real)0.5 * bin / total, bin / total, total, 0, 0 };
    if (!(total >= 1)) return { 0, 0, 0, 0, 0 };
    roi_real low = 0, high = total;
    if (s.step > 0) {
        low = op_max(low, op_ceil((-1 - s.first) / s.step) - 1);
        high = op_min(high, op_floor((limit - s.first) / s.step) + 2);
    }
    if (!(low < high)) return s;
    s.low = (i32)low;
    s.high = (i32)high;
    return s;
}

DEVICE bool roi_pair_at(roi_real x, i32 n, roi_pair &out)
{
    if (!(x >= -1 && x <= n)) return false;
    const roi_real inside = x < 0 ? 0 : x > n - 1 ? (roi_real)(n - 1) : x;
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
    roi_real corner[4];
    bool is_near = true;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        corner[k] = (roi_real)in1_at(p, c[0] * p.in_step[1][0] + k * p.in_step[1][1]) * (roi_real)p.f[0] - (HALF_PIXEL ? (roi_real)0.5 : (roi_real)0);
        is_near = is_near && op_abs(corner[k]) < (roi_real)1e9;
    }
    if (!is_near) return;       /* a region of nothing: no sample is counted */
    roi_real wide = corner[2] - corner[0], high = corner[3] - corner[1];
    if (!HALF_PIXEL) {
        wide = op_max(wide, (roi_real)1);
        high = op_max(high, (roi_real)1);
    }
    const roi_real bin_h = high / p.out_dim[2], bin_w = wide / p.out_dim[3];
    const roi_real count_h = SAMPLING > 0 ? (roi_real)SAMPLING : op_max(op_ceil(bin_h), (roi_real)0),
                 count_w = SAMPLING > 0 ? (roi_real)SAMPLING : op_max(op_ceil(bin_w), (roi_real)0);
    const roi_samples sy = roi_bin(corner[1], bin_h, c[2], count_h, height);
    const roi_samples sx = roi_bin(corner[0], bin_w, c[3], count_w, width);
    const i64 base = batch * p.in_step[0][0] + c[1] * p.in_step[0][1];
    roi_real seen = 0;
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
    const roi_real count = sy.total * sx.total;
#pragma unroll
    for (int k = 0; k < V; k++) {
        if (seen < count && most[k] < 0) most[k] = 0;
        v[k] = count >= 1 ? (epi_acc)(IS_MAX ? most[k] : sum[k] / (map_real)count) : (epi_acc)0;
    }
}

#endif
