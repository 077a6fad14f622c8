/* SPDX-License-Identifier: Apache-2.0 */
/* strassen.inc.h - the sums around Strassen's products, included once by each instruction set's file. */

static void strassen_sums(const float *a11, const float *a12, const float *a21, const float *a22, int64_t count,
                          float *s, int64_t part)
{
    for (int64_t i = 0; i < count; i += L) {
        const int left = count - i < L ? (int)(count - i) : L;
        const vec x11 = v_load_n(a11 + i, left), x12 = v_load_n(a12 + i, left);
        const vec x21 = a21 ? v_load_n(a21 + i, left) : v_zero(), x22 = a22 ? v_load_n(a22 + i, left) : v_zero();
        const vec s1 = v_add(x21, x22), s2 = v_sub(s1, x11);
        v_store(s + i, s1); /* rows are whole vectors long */
        v_store(s + part + i, s2);
        v_store(s + 2 * part + i, v_sub(x11, x21));
        v_store(s + 3 * part + i, v_sub(x12, s2));
    }
}

static void strassen_middle(const strassen_row *r)
{
    const vec lo = v_set(r->lo), hi = v_set(r->hi);
    for (int64_t i = 0; i < r->count; i += L) {
        const int left = r->count - i < L ? (int)(r->count - i) : L;
        const vec z = v_load_n(r->z + i, left);
        v_store_n(r->x + i, v_add(v_load_n(r->x + i, left), z), left);
        if (!r->c) continue;
        vec c = v_add(v_load_n(r->y + i, left), z);
        if (r->bias) c = v_add(c, v_load_n(r->bias + i, left));
        if (r->residual) c = v_add(c, v_load_n(r->residual + i, left));
        if (r->clip) c = v_min(hi, v_max(lo, c));
        v_store_n(r->c + i, c, left);
    }
}

static void strassen_add(float *c, const float *residual, int64_t count, bool clip, float lo, float hi)
{
    for (int64_t i = 0; i < count; i += L) {
        const int left = count - i < L ? (int)(count - i) : L;
        vec sum = v_add(v_load_n(c + i, left), v_load_n(residual + i, left));
        if (clip) sum = v_min(v_set(hi), v_max(v_set(lo), sum));
        v_store_n(c + i, sum, left);
    }
}

static const strassen_set strassen_loops = { .sums = strassen_sums, .middle = strassen_middle, .add = strassen_add };
