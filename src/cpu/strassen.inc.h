/* SPDX-License-Identifier: Apache-2.0 */
/* strassen.inc.h - the text of the loops beside Strassen's products, included once by each level. */
INLINE void strassen_sums_at(const strassen_row *r, int64_t i, int left)
{
    const bool is_whole = left >= VEC_LANES;
    const vec a11 = is_whole ? v_load(r->a11 + i) : v_load_n(r->a11 + i, left);
    const vec a12 = is_whole ? v_load(r->a12 + i) : v_load_n(r->a12 + i, left);
    const vec a21 = is_whole ? v_load(r->a21 + i) : v_load_n(r->a21 + i, left);
    const vec a22 = is_whole ? v_load(r->a22 + i) : v_load_n(r->a22 + i, left);
    const vec s1 = v_add(a21, a22), s2 = v_sub(s1, a11), s3 = v_sub(a11, a21), s4 = v_sub(a12, s2);
    const vec s[4] = { s1, s2, s3, s4 }, copy[3] = { a11, a12, a22 };
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
    for (; i + VEC_LANES <= r->n; i += VEC_LANES) strassen_sums_at(r, i, VEC_LANES);
    if (i < r->n) strassen_sums_at(r, i, (int)(r->n - i));
}

static void strassen_last(const strassen_end *e)
{
    const vec lo = v_set(e->lo), hi = v_set(e->hi);
    for (int64_t i = 0; i < e->n; i += VEC_LANES) {
        const int left = e->n - i < VEC_LANES ? (int)(e->n - i) : VEC_LANES;
        vec v = v_add(v_load_n(e->x + i, left), v_load_n(e->y + i, left));
        if (e->bias) v = v_add(v, v_load_n(e->bias + i, left));
        if (e->residual) v = v_add(v, v_load_n(e->residual + i, left));
        if (e->clip) v = v_min(hi, v_max(lo, v));
        v_store_n(e->c + i, v, left);
    }
}

static const strassen_set strassen_loops = { .sums = strassen_sums, .end = strassen_last };
