/* SPDX-License-Identifier: Apache-2.0 */
/* map_misc.cuh - KIND: 0 affine_grid, 1 lrn, 2 col2im, 3 dft, 4 det of SIDE x SIDE. */

template <int V> DEVICE void map_value(const map_args &p, const i32 (&c)[RANK], i32 n, epi_acc (&v)[V])
{
#if KIND == 0
    constexpr int spatial = RANK - 2;
    const i64 row = c[0] * p.in_step[0][0] + c[spatial + 1] * p.in_step[0][1];
    double sum = (double)in0_at(p, row + spatial * p.in_step[0][2]);
#pragma unroll
    for (int k = 0; k < spatial; k++) {
        const int axis = spatial - k;
        const double size = p.out_dim[axis], at = c[axis];
        const double place = !CORNERS ? (2 * at + 1) / size - 1 : size > 1 ? 2 * at / (size - 1) - 1 : -1;
        sum += place * (double)in0_at(p, row + k * p.in_step[0][2]);
    }
    v[0] = (epi_acc)sum;
#elif KIND == 1
    /* k[0] channels before and k[1] after; f: bias, alpha / size, beta */
    i64 from = 0;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++) from += c[axis] * p.in_step[0][axis];
    const i32 first = larger(0, c[1] - (i32)p.k[0]), last = smaller(p.in_dim[0][1] - 1, c[1] + (i32)p.k[1]);
    map_real sum[V] = {};
    in0_t x[V];
    for (i32 k = first; k <= last; k++) {
        in0_vector<V>(p, from + (k - c[1]) * p.in_step[0][1], n, x);
#pragma unroll
        for (int i = 0; i < V; i++) sum[i] += (map_real)x[i] * (map_real)x[i];
    }
    in0_vector<V>(p, from, n, x);
#pragma unroll
    for (int i = 0; i < V; i++) {
        const map_real scale = op_pow((map_real)p.f[0] + (map_real)p.f[1] * sum[i], (map_real)p.f[2]);
        v[i] = (epi_acc)((map_real)x[i] / scale);
    }
#elif KIND == 3
    /* k[0]: length. By definition, one sum a result; in double, for results that are nothing but what sums leave. */
    const i32 length = (i32)p.k[0];
    i64 base = 0;
#pragma unroll
    for (int axis = 0; axis < RANK - 1; axis++)
        if (axis != AXIS) base += c[axis] * p.in_step[0][axis];
    const bool is_complex = p.in_dim[0][RANK - 1] == 2;
    const bool is_imaginary = c[RANK - 1] == 1;
    double sum = 0;
    for (i32 j = 0, turn = 0; j < length; j++) {
        const bool is_mirror = MIRRORED && j > length / 2;
        const i32 place = is_mirror ? length - j : j;
        double re = 0, im = 0;
        if (place < p.in_dim[0][AXIS]) {
            re = (double)in0_at(p, base + place * p.in_step[0][AXIS]);
            if (is_complex) im = (double)in0_at(p, base + place * p.in_step[0][AXIS] + p.in_step[0][RANK - 1]);
            if (is_mirror) im = -im;
        }
        /* The angle of turn / length of a circle, from the nearer side. */
        const bool is_far = 2 * turn > length;
        const double angle = 6.283185307179586477 * ((double)(is_far ? length - turn : turn) / (double)length);
        const double x = op_cos(angle), up = op_sin(angle), y = is_far != (INVERSE != 0) ? -up : up;
        /* y is the root's imaginary part, its sign turned. */
        sum += is_imaginary ? im * x - re * y : re * x + im * y;
        turn += c[AXIS];
        if (turn >= length) turn -= length;
    }
    v[0] = (epi_acc)(INVERSE ? sum / (double)length : sum);
#elif KIND == 4
    double a[SIDE][SIDE], det = 1;
    i64 base = 0;
#pragma unroll
    for (int axis = 0; axis < RANK; axis++)
        if (axis < LEAD) base += c[axis] * p.in_step[0][axis];
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++) a[i][j] = (double)in0_at(p, base + i * p.in_step[0][LEAD] + j * p.in_step[0][LEAD + 1]);
#pragma unroll
    for (int i = 0; i < SIDE; i++) {
        /* The largest of the column comes up, row by row, so that all places are constants. */
#pragma unroll
        for (int r = i + 1; r < SIDE; r++) {
            const bool swaps = fabs(a[r][i]) > fabs(a[i][i]);
            if (swaps) det = -det;
#pragma unroll
            for (int j = i; j < SIDE; j++) {
                const double x = a[i][j], y = a[r][j];
                a[i][j] = swaps ? y : x;
                a[r][j] = swaps ? x : y;
            }
        }
        det *= a[i][i];
#pragma unroll
        for (int r = i + 1; r < SIDE; r++) {
            const double factor = a[i][i] == 0 ? 0 : a[r][i] / a[i][i];
#pragma unroll
            for (int j = i; j < SIDE; j++) a[r][j] -= factor * a[i][j];
        }
    }
    v[0] = (epi_acc)det;
#else
    /* k: blocks, dilations, strides, paddings, places, each of up to 4 axes; k[20]: elements of a block */
    map_real sum = 0;
    const i64 base = c[0] * p.in_step[0][0];
    for (i32 position = 0; position < (i32)p.k[20]; position++) {
        i32 rest = position, own[SPATIAL];
        i64 place = 0;
        bool is_hit = true;
#pragma unroll
        for (int d = SPATIAL - 1; d >= 0; d--) {
            own[d] = rest % (i32)p.k[d];
            rest /= (i32)p.k[d];
        }
#pragma unroll
        for (int d = 0; d < SPATIAL; d++) {
            const i32 at = c[d + 2] + (i32)p.k[12 + d] - own[d] * (i32)p.k[4 + d], stride = (i32)p.k[8 + d];
            is_hit = is_hit && at >= 0 && at % stride == 0 && at / stride < (i32)p.k[16 + d];
            place = place * p.k[16 + d] + at / stride;
        }
        if (is_hit)
            sum += (map_real)in0_at(p, base + (c[1] * p.k[20] + position) * p.in_step[0][1] + place * p.in_step[0][2]);
    }
    v[0] = (epi_acc)sum;
#endif
}
