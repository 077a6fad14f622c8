/* SPDX-License-Identifier: Apache-2.0 */
/* map_misc.cuh - KIND: 0 affine_grid, 1 lrn, 2 col2im. */

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
