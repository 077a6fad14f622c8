/* SPDX-License-Identifier: Apache-2.0 */
/* plane_filter.inc.h - filters over one plane (plane_filter.h), included once by each instruction set's file. */

enum { PLANE_VECTORS = 4 };

/* `count` vectors of results, of the last one `last` lanes. They lie along a row, or one in each of several rows. */
INLINE void plane_part(const plane_filter *f, const float *x, float *y, int count, int64_t x_step, int64_t y_step,
                       int last)
{
    vec a[PLANE_VECTORS];
    UNROLL for (int j = 0; j < count; j++) a[j] = v_zero();
    for (int64_t t = 0; t < f->taps; t++) {
        const vec w = v_set(f->w[t]);
        const float *from = x + f->at[t];
        UNROLL for (int j = 0; j < count; j++) a[j] = v_fma(w, v_load(from + j * x_step), a[j]);
    }
    UNROLL for (int j = 0; j + 1 < count; j++) v_store(y + j * y_step, a[j]);
    if (last == L) v_store(y + (count - 1) * y_step, a[count - 1]);
    else v_store_n(y + (count - 1) * y_step, a[count - 1], last);
}

INLINE void plane_parts(const plane_filter *f, const float *x, float *y, int count, int64_t x_step, int64_t y_step,
                        int last)
{
    switch (count) {
    case 1: plane_part(f, x, y, 1, x_step, y_step, last); break;
    case 2: plane_part(f, x, y, 2, x_step, y_step, last); break;
    case 3: plane_part(f, x, y, 3, x_step, y_step, last); break;
    default: plane_part(f, x, y, 4, x_step, y_step, last); break;
    }
}

/* What a whole vector writes behind a row is in rows that follow, and is written again; so only the last rows end with
 * a part of a vector. */
static void plane_filter_rows(const plane_filter *f)
{
    const int64_t n = f->n, group = PLANE_VECTORS * L, whole = (n - 1) / group * group, left = n - whole;
    const int count = (int)((left + L - 1) / L), last = (int)(left - (count - 1) * L);
    const int64_t full = f->rows - (L - last + n - 1) / n;
    int64_t r = 0;
    for (; n <= L && r + PLANE_VECTORS <= full; r += PLANE_VECTORS)
        plane_part(f, f->x + r * f->x_row, f->y + r * n, PLANE_VECTORS, f->x_row, n, L);
    for (; r < f->rows; r++) {
        const float *x = f->x + r * f->x_row;
        float *y = f->y + r * n;
        for (int64_t i = 0; i < whole; i += group) plane_part(f, x + i, y + i, PLANE_VECTORS, L, L, L);
        plane_parts(f, x + whole, y + whole, count, L, L, r < full ? L : last);
    }
}

/* Rows end with a whole vector that overlaps the one before. */
static void plane_copy(float *to, int64_t to_row, const float *x, int64_t x_row, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, to += to_row, x += x_row) {
        if (n < L) {
            for (int64_t i = 0; i < n; i++) to[i] = x[i];
            continue;
        }
        for (int64_t i = 0; i + L <= n; i += L) v_store(to + i, v_load(x + i));
        v_store(to + n - L, v_load(x + n - L));
    }
}

static void plane_split(float *even, float *odd, int64_t to_row, const float *x, int64_t x_row, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, even += to_row, odd += to_row, x += x_row) {
        int64_t i = 0;
        for (; i + 2 * L < n; i += 2 * L) {
            v_store(even + i / 2, v_even(v_load(x + i), v_load(x + i + L)));
            v_store(odd + i / 2, v_even(v_load(x + i + 1), v_load(x + i + L + 1)));
        }
        for (; i < n; i++) (i & 1 ? odd : even)[i / 2] = x[i];
    }
}

static const plane_set plane_loops = { .filter = plane_filter_rows, .copy = plane_copy, .split = plane_split };
