/* SPDX-License-Identifier: Apache-2.0 */
/* map_deform.cuh - deformable convolution, one result a thread: x, w, offsets, bias or absent, mask or absent.
 * k: strides, paddings before, dilations, groups, groups of offsets. */

/* A pixel with its weight. One of weight 0 is left out, whatever it is. */
DEVICE map_real deform_pixel(const map_args &p, i64 base, i32 row, i32 column, map_real weight)
{
    if (weight == 0 || row < 0 || row >= p.in_dim[0][2] || column < 0 || column >= p.in_dim[0][3]) return 0;
    return weight * (map_real)in0_at(p, base + row * p.in_step[0][2] + column * p.in_step[0][3]);
}

DEVICE map_real deform_sample(const map_args &p, i64 base, double row, double column)
{
    if (!(row > -1 && row < p.in_dim[0][2] && column > -1 && column < p.in_dim[0][3])) return 0;
    const i32 r = (i32)floor(row), s = (i32)floor(column);
    const map_real fr = (map_real)(row - r), fs = (map_real)(column - s);
    return deform_pixel(p, base, r, s, (1 - fr) * (1 - fs)) + deform_pixel(p, base, r, s + 1, (1 - fr) * fs) +
           deform_pixel(p, base, r + 1, s, fr * (1 - fs)) + deform_pixel(p, base, r + 1, s + 1, fr * fs);
}

template <int V> DEVICE void map_value(const map_args &p, const i32 (&c)[RANK], i32 n, epi_acc (&v)[V])
{
    const i32 high = p.in_dim[1][2], wide = p.in_dim[1][3], taps = high * wide, channels = p.in_dim[1][1];
    const i32 each = p.in_dim[0][1] / (i32)p.k[7], group = c[1] / (p.out_dim[1] / (i32)p.k[6]);
    map_real sum = 0;
#ifdef IN3_SIZE
    sum = (map_real)in3_at(p, c[1] * p.in_step[3][0]);
#endif
    for (i32 i = 0; i < channels; i++) {
        const i32 channel = group * channels + i, plane = channel / each * taps;
        const i64 base = c[0] * p.in_step[0][0] + channel * p.in_step[0][1];
        for (i32 t = 0; t < taps; t++) {
            const i32 y = t / wide, x = t % wide;
            const i64 at = c[0] * p.in_step[2][0] + 2 * (plane + t) * p.in_step[2][1] + c[2] * p.in_step[2][2] +
                           c[3] * p.in_step[2][3];
            const double row = (double)(c[2] * p.k[0] - p.k[2] + y * p.k[4]) + (double)in2_at(p, at);
            const double column = (double)(c[3] * p.k[1] - p.k[3] + x * p.k[5]) + (double)in2_at(p, at + p.in_step[2][1]);
            map_real own = deform_sample(p, base, row, column);
#ifdef IN4_SIZE
            own *= (map_real)in4_at(p, c[0] * p.in_step[4][0] + (plane + t) * p.in_step[4][1] + c[2] * p.in_step[4][2] +
                                           c[3] * p.in_step[4][3]);
#endif
            sum += own * (map_real)in1_at(p, c[1] * p.in_step[1][0] + i * p.in_step[1][1] + y * p.in_step[1][2] +
                                                 x * p.in_step[1][3]);
        }
    }
    v[0] = (epi_acc)sum;
}
