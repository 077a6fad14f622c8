/* SPDX-License-Identifier: Apache-2.0 */
/* winograd.inc.h - the text of the transforms of data and results, included once by each level.
 *
 * A transform of a square is the one-dimensional one over its columns, then over its rows, for one vector of channels
 * at a time; a line has its rows alone, of which there is one. The rows of Bt are the polynomials M(x) / (x - p), those
 * of At the powers of the points p. */
/* The points 0, +-P, +-Q and infinity. */
#define P 0.625f
#define Q 1.5f
#define PP (P * P)
#define QQ (Q * Q)

/* Bt of 4 points: 0, 1, -1, infinity. */
INLINE void input_axis_4(vec *d, const int step)
{
    const vec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
    d[0] = v_sub(d0, d2);
    d[step] = v_add(d1, d2);
    d[2 * step] = v_sub(d2, d1);
    d[3 * step] = v_sub(d1, d3);
}

INLINE void input_axis_6(vec *d, const int step)
{
    const vec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
    const vec even_p = v_fma(v_set(-QQ), d2, d4), odd_p = v_fma(v_set(-QQ), d1, d3);
    const vec even_q = v_fma(v_set(-PP), d2, d4), odd_q = v_fma(v_set(-PP), d1, d3);
    d[0] = v_fma(v_set(PP * QQ), d0, v_fma(v_set(-(PP + QQ)), d2, d4));
    d[step] = v_fma(v_set(P), odd_p, even_p);
    d[2 * step] = v_fma(v_set(-P), odd_p, even_p);
    d[3 * step] = v_fma(v_set(Q), odd_q, even_q);
    d[4 * step] = v_fma(v_set(-Q), odd_q, even_q);
    d[5 * step] = v_fma(v_set(PP * QQ), d1, v_fma(v_set(-(PP + QQ)), d3, d5));
}

INLINE void input_axis(vec *d, const int step, const int points)
{
    if (points == 4) input_axis_4(d, step);
    else input_axis_6(d, step);
}

/* At of 4 points and 2 results. */
INLINE void output_axis_4(vec *m, const int step)
{
    const vec m0 = m[0], m1 = m[step], m2 = m[2 * step], m3 = m[3 * step];
    m[0] = v_add(m0, v_add(m1, m2));
    m[step] = v_sub(v_sub(m1, m2), m3);
}

/* Of 6 points: 4 results, or 2, of which the last one takes the point at infinity. */
INLINE void output_axis_6(vec *m, const int step, const int out)
{
    const vec sum_p = v_add(m[step], m[2 * step]), diff_p = v_sub(m[step], m[2 * step]);
    const vec sum_q = v_add(m[3 * step], m[4 * step]), diff_q = v_sub(m[3 * step], m[4 * step]);
    m[0] = v_add(m[0], v_add(sum_p, sum_q));
    m[step] = v_fma(v_set(P), diff_p, out == 2 ? v_fma(v_set(Q), diff_q, m[5 * step]) : v_mul(v_set(Q), diff_q));
    if (out == 2) return;
    m[2 * step] = v_fma(v_set(PP), sum_p, v_mul(v_set(QQ), sum_q));
    m[3 * step] = v_fma(v_set(PP * P), diff_p, v_fma(v_set(QQ * Q), diff_q, m[5 * step]));
}

INLINE void output_axis(vec *m, const int step, const int points, const int out)
{
    if (points == 4) output_axis_4(m, step);
    else output_axis_6(m, step, out);
}

INLINE void input_run(const float *const *pixels, int64_t channels, float *v, int64_t v_point, const int points,
                      const bool is_line)
{
    const int rows = is_line ? 1 : points;
    for (int64_t c = 0; c < channels; c += VEC_LANES) {
        vec d[WINOGRAD_POINTS_MAX];
        if (channels - c >= VEC_LANES) {
            UNROLL for (int j = 0; j < points; j++)
            {
                UNROLL for (int i = 0; i < rows; i++) d[i * points + j] = v_load(pixels[i * points + j] + c);
                if (!is_line) input_axis(d + j, points, points);
            }
        } else {
            const int left = (int)(channels - c);
            for (int i = 0; i < rows * points; i++) d[i] = v_load_n(pixels[i] + c, left);
            for (int j = 0; j < points && !is_line; j++) input_axis(d + j, points, points);
        }
        UNROLL for (int i = 0; i < rows; i++)
        {
            input_axis(d + i * points, 1, points);
            UNROLL for (int j = 0; j < points; j++) v_store(v + (i * points + j) * v_point + c, d[i * points + j]);
        }
    }
}

INLINE void output_run(const winograd_out *o, const int points, const int out, const bool is_line)
{
    const int high = is_line ? 1 : points, rows = is_line ? 1 : out;
    const vec lo = v_set(o->lo), hi = v_set(o->hi);
    for (int64_t c = 0; c < o->channels; c += VEC_LANES) {
        const int left = o->channels - c < VEC_LANES ? (int)(o->channels - c) : VEC_LANES;
        vec m[WINOGRAD_POINTS_MAX];
        const float *from = o->m + c; /* rows of products are whole vectors long */
        UNROLL for (int j = 0; j < points; j++)
        {
            UNROLL for (int i = 0; i < high; i++) m[i * points + j] = v_load(from + (i * points + j) * o->m_point);
            if (!is_line) output_axis(m + j, points, points, out);
        }
        const vec bias = o->bias ? v_load_n(o->bias + c, left) : v_zero();
        UNROLL for (int i = 0; i < rows; i++)
        {
            if (i >= o->rows) break;
            output_axis(m + i * points, 1, points, out);
            UNROLL for (int j = 0; j < out; j++)
            {
                if (j >= o->cols) break;
                vec y = v_add(m[i * points + j], bias);
                if (o->residual) y = v_add(y, v_load_n(o->residual + i * o->r_row + j * o->r_pixel + c, left));
                if (o->clip) y = v_min(hi, v_max(lo, y));
                float *to = o->y + i * o->y_row + j * o->y_pixel + c;
                if (left == VEC_LANES) v_store(to, y);
                else v_store_n(to, y, left);
            }
        }
    }
}

#define INPUT_RUN(name, points, is_line)                                                                               \
    static void name(const float *const *pixels, int64_t channels, float *v, int64_t v_point)                          \
    {                                                                                                                  \
        input_run(pixels, channels, v, v_point, points, is_line);                                                      \
    }
#define OUTPUT_RUN(name, points, out, is_line)                                                                         \
    static void name(const winograd_out *o)                                                                            \
    {                                                                                                                  \
        output_run(o, points, out, is_line);                                                                           \
    }
INPUT_RUN(square_in_4, 4, false)
INPUT_RUN(square_in_6, 6, false)
INPUT_RUN(line_in_4, 4, true)
INPUT_RUN(line_in_6, 6, true)
OUTPUT_RUN(square_out_4, 4, 2, false)
OUTPUT_RUN(square_out_6, 6, 4, false)
OUTPUT_RUN(square_out_6_of_5, 6, 2, false)
OUTPUT_RUN(line_out_4, 4, 2, true)
OUTPUT_RUN(line_out_6, 6, 4, true)
OUTPUT_RUN(line_out_6_of_5, 6, 2, true)
#undef INPUT_RUN
#undef OUTPUT_RUN

static const winograd_set winograd_loops = {
    .input = { { square_in_4, square_in_6 }, { line_in_4, line_in_6 } },
    .output = { { square_out_4, square_out_6, square_out_6_of_5 }, { line_out_4, line_out_6, line_out_6_of_5 } },
};
#undef P
#undef Q
