/* SPDX-License-Identifier: Apache-2.0 */
/* strassen.inc.h - the text of the loops beside Strassen's products, included once by each level. */
INLINE void strassen_sums_at(const strassen_row *r, int64_t i, vec square[4], const int left)
{
    const bool is_whole = left == VEC_LANES;
    const vec a11 = is_whole ? v_load(r->a11 + i) : v_load_n(r->a11 + i, left);
    const vec a12 = is_whole ? v_load(r->a12 + i) : v_load_n(r->a12 + i, left);
    const vec a21 = is_whole ? v_load(r->a21 + i) : v_load_n(r->a21 + i, left);
    const vec a22 = is_whole ? v_load(r->a22 + i) : v_load_n(r->a22 + i, left);
    const vec s1 = v_add(a21, a22), s2 = v_sub(s1, a11), s3 = v_sub(a11, a21), s4 = v_sub(a12, s2);
    const vec s[4] = { s1, s2, s3, s4 }, copy[3] = { a11, a12, a22 }, a[4] = { a11, a12, a21, a22 };
    UNROLL for (int j = 0; j < 4; j++) square[j] = v_fma(a[j], a[j], square[j]);
    UNROLL for (int j = 0; j < 4; j++)
    {
        if (is_whole) v_store(r->s[j] + i, s[j]);
        else v_store_n(r->s[j] + i, s[j], left);
    }
    if (!r->copy) return;
    UNROLL for (int j = 0; j < 3; j++)
    {
        if (is_whole) v_store(r->copy[j] + i, copy[j]);
        else v_store_n(r->copy[j] + i, copy[j], left);
    }
}

static void strassen_sums(const strassen_row *r)
{
    int64_t i = 0;
    vec square[4] = { v_zero(), v_zero(), v_zero(), v_zero() };
    for (; i + VEC_LANES <= r->n; i += VEC_LANES) strassen_sums_at(r, i, square, VEC_LANES);
    if (i < r->n) strassen_sums_at(r, i, square, (int)(r->n - i));
    r->square[0] = v_sum(v_add(square[0], square[1]));
    r->square[1] = v_sum(v_add(square[2], square[3]));
}

INLINE void strassen_end_at(const strassen_end *e, const float *bias, float *x, const float *y, const float *z,
                            const float *residual, float *c, const int left)
{
    const bool is_whole = left == VEC_LANES;
    const vec last = is_whole ? v_load(z) : v_load_n(z, left);
    vec v = v_add(is_whole ? v_load(y) : v_load_n(y, left), last);
    const vec sum = v_add(is_whole ? v_load(x) : v_load_n(x, left), last);
    if (bias) v = v_add(v, is_whole ? v_load(bias) : v_load_n(bias, left));
    if (residual) v = v_add(v, is_whole ? v_load(residual) : v_load_n(residual, left));
    if (e->clip) v = v_min(v_set(e->hi), v_max(v_set(e->lo), v));
    if (is_whole) {
        v_store(x, sum);
        v_store(c, v);
    } else {
        v_store_n(x, sum, left);
        v_store_n(c, v, left);
    }
}

static void strassen_last(const strassen_end *e)
{
    for (int64_t r = 0; r < e->rows; r++) {
        float *x = e->x + r * e->ld, *c = e->c + r * e->ldc;
        const float *y = e->y + r * e->ld, *z = e->z + r * e->ld;
        const float *residual = e->residual ? e->residual + r * e->ldr : NULL;
        int64_t i = 0;
        for (; i + VEC_LANES <= e->cols; i += VEC_LANES)
            strassen_end_at(e, e->bias ? e->bias + i : NULL, x + i, y + i, z + i, residual ? residual + i : NULL, c + i,
                            VEC_LANES);
        if (i < e->cols)
            strassen_end_at(e, e->bias ? e->bias + i : NULL, x + i, y + i, z + i, residual ? residual + i : NULL, c + i,
                            (int)(e->cols - i));
    }
}

static void strassen_add(const strassen_sum *s)
{
    for (int64_t r = 0; r < s->rows; r++) {
        float *to = s->to + r * s->ld;
        const float *x = s->x + r * s->ld, *y = s->y + r * s->ldy;
        int64_t i = 0;
        for (; i + VEC_LANES <= s->cols; i += VEC_LANES) v_store(to + i, v_add(v_load(x + i), v_load(y + i)));
        const int left = (int)(s->cols - i);
        if (left) v_store_n(to + i, v_add(v_load_n(x + i, left), v_load_n(y + i, left)), left);
    }
}

static const strassen_set strassen_loops = { .sums = strassen_sums, .end = strassen_last, .add = strassen_add };
