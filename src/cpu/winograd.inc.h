/* SPDX-License-Identifier: Apache-2.0 */
/* winograd.inc.h - the text of the transforms of data and results, included once by each
 * level.
 *
 * A transform of a square is the one-dimensional one over its columns, then over its rows, for one vector of channels
 * at a time. The rows of Bt are the polynomials M(x) / (x - p), those of At the powers of the points p. */
/* The points 0, +-P, +-Q and infinity. */
#define P 0.625f
#define Q 1.5f
#define PP (P * P)
#define QQ (Q * Q)

/* Points 0, 1, -1, infinity: Bt of 2x2. */
INLINE void input_line_2(vec *d, const int step)
{
    const vec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
    d[0] = v_sub(d0, d2);
    d[step] = v_add(d1, d2);
    d[2 * step] = v_sub(d2, d1);
    d[3 * step] = v_sub(d1, d3);
}

INLINE void input_line_4(vec *d, const int step)
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

INLINE void output_line_2(vec *m, const int step)
{
    const vec m0 = m[0], m1 = m[step], m2 = m[2 * step], m3 = m[3 * step];
    m[0] = v_add(m0, v_add(m1, m2));
    m[step] = v_sub(v_sub(m1, m2), m3);
}

INLINE void output_line_4(vec *m, const int step)
{
    const vec sum_p = v_add(m[step], m[2 * step]), diff_p = v_sub(m[step], m[2 * step]);
    const vec sum_q = v_add(m[3 * step], m[4 * step]), diff_q = v_sub(m[3 * step], m[4 * step]);
    m[0] = v_add(m[0], v_add(sum_p, sum_q));
    m[step] = v_fma(v_set(P), diff_p, v_mul(v_set(Q), diff_q));
    m[2 * step] = v_fma(v_set(PP), sum_p, v_mul(v_set(QQ), sum_q));
    m[3 * step] = v_fma(v_set(PP * P), diff_p, v_fma(v_set(QQ * Q), diff_q, m[5 * step]));
}

INLINE void input_run(const float *const *pixels, int64_t channels, float *v, int64_t v_point, const int out)
{
    const int size = out + 2;
    for (int64_t c = 0; c < channels; c += VEC_LANES) {
        vec d[WINOGRAD_POINTS_MAX];
        if (channels - c >= VEC_LANES) {
            UNROLL for (int j = 0; j < size; j++)
            {
                UNROLL for (int i = 0; i < size; i++) d[i * size + j] = v_load(pixels[i * size + j] + c);
                if (out == 2) input_line_2(d + j, size);
                else input_line_4(d + j, size);
            }
        } else {
            const int left = (int)(channels - c);
            for (int i = 0; i < size * size; i++) d[i] = v_load_n(pixels[i] + c, left);
            for (int j = 0; j < size; j++) {
                if (out == 2) input_line_2(d + j, size);
                else input_line_4(d + j, size);
            }
        }
        UNROLL for (int i = 0; i < size; i++)
        {
            if (out == 2) input_line_2(d + i * size, 1);
            else input_line_4(d + i * size, 1);
            UNROLL for (int j = 0; j < size; j++) v_store(v + (i * size + j) * v_point + c, d[i * size + j]);
        }
    }
}

INLINE void output_run(const winograd_out *o, const int out)
{
    const int size = out + 2;
    const vec lo = v_set(o->lo), hi = v_set(o->hi);
    for (int64_t c = 0; c < o->channels; c += VEC_LANES) {
        const int left = o->channels - c < VEC_LANES ? (int)(o->channels - c) : VEC_LANES;
        vec m[WINOGRAD_POINTS_MAX];
        const float *from = o->m + c; /* rows of products are whole vectors long */
        UNROLL for (int j = 0; j < size; j++)
        {
            UNROLL for (int i = 0; i < size; i++) m[i * size + j] = v_load(from + (i * size + j) * o->m_point);
            if (out == 2) output_line_2(m + j, size);
            else output_line_4(m + j, size);
        }
        const vec bias = o->bias ? v_load_n(o->bias + c, left) : v_zero();
        UNROLL for (int i = 0; i < out; i++)
        {
            if (i >= o->rows) break;
            if (out == 2) output_line_2(m + i * size, 1);
            else output_line_4(m + i * size, 1);
            UNROLL for (int j = 0; j < out; j++)
            {
                if (j >= o->cols) break;
                vec y = v_add(m[i * size + j], bias);
                if (o->residual) y = v_add(y, v_load_n(o->residual + i * o->r_row + j * o->r_pixel + c, left));
                if (o->clip) y = v_min(hi, v_max(lo, y));
                float *to = o->y + i * o->y_row + j * o->y_pixel + c;
                if (left == VEC_LANES) v_store(to, y);
                else v_store_n(to, y, left);
            }
        }
    }
}

static void input_2(const float *const *pixels, int64_t channels, float *v, int64_t v_point)
{
    input_run(pixels, channels, v, v_point, 2);
}
static void input_4(const float *const *pixels, int64_t channels, float *v, int64_t v_point)
{
    input_run(pixels, channels, v, v_point, 4);
}
static void output_2(const winograd_out *o)
{
    output_run(o, 2);
}
static void output_4(const winograd_out *o)
{
    output_run(o, 4);
}

static const winograd_set winograd_loops = { .input = { input_2, input_4 }, .output = { output_2, output_4 } };
#undef P
#undef Q
