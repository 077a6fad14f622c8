/* SPDX-License-Identifier: Apache-2.0 */
/* plane_filter.inc.h - filters over one plane (plane_filter.h), included once by each instruction set's file. */

/* Sums enough for an addition to begin in every turn of two units. */
enum { PLANE_VECTORS = 8 };

/* `count` vectors of results beside each other in each of `rows` rows; from row `whole` on, the last one of a row has
 * `last` lanes. */
INLINE void plane_part(const plane_filter *f, const float *x, float *y, int rows, int count, int whole, int last)
{
    vec a[PLANE_VECTORS];
    UNROLL for (int j = 0; j < rows * count; j++) a[j] = v_set(f->bias);
    for (int64_t t = 0; t < f->taps; t++) {
        const vec w = v_set(f->w[t]);
        const float *from = x + f->at[t];
        UNROLL for (int j = 0; j < rows * count; j++)
            a[j] = v_fma_into(w, v_load(from + j / count * f->x_row + j % count * L), a[j]);
    }
    UNROLL for (int j = 0; j < rows * count; j++) {
        float *to = y + j / count * f->n + j % count * L;
        if (f->has_clip) a[j] = v_min(v_set(f->hi), v_max(v_set(f->lo), a[j]));
        if (j / count < whole || (j + 1) % count) v_store(to, a[j]);
        else v_store_n(to, a[j], last);
    }
}

/* rows * count is at most PLANE_VECTORS, and one of them at most 2 where the other is more than 1. */
INLINE void plane_parts(const plane_filter *f, const float *x, float *y, int rows, int count, int whole, int last)
{
    switch (count > 1 ? (rows - 1) * PLANE_VECTORS + count : -rows) {
    case -1: plane_part(f, x, y, 1, 1, whole, last); break;
    case -2: plane_part(f, x, y, 2, 1, whole, last); break;
    case -3: plane_part(f, x, y, 3, 1, whole, last); break;
    case -4: plane_part(f, x, y, 4, 1, whole, last); break;
    case -5: plane_part(f, x, y, 5, 1, whole, last); break;
    case -6: plane_part(f, x, y, 6, 1, whole, last); break;
    case -7: plane_part(f, x, y, 7, 1, whole, last); break;
    case -8: plane_part(f, x, y, 8, 1, whole, last); break;
    case 2: plane_part(f, x, y, 1, 2, whole, last); break;
    case 3: plane_part(f, x, y, 1, 3, whole, last); break;
    case 4: plane_part(f, x, y, 1, 4, whole, last); break;
    case 5: plane_part(f, x, y, 1, 5, whole, last); break;
    case 6: plane_part(f, x, y, 1, 6, whole, last); break;
    case 7: plane_part(f, x, y, 1, 7, whole, last); break;
    case 8: plane_part(f, x, y, 1, 8, whole, last); break;
    case PLANE_VECTORS + 2: plane_part(f, x, y, 2, 2, whole, last); break;
    case PLANE_VECTORS + 3: plane_part(f, x, y, 2, 3, whole, last); break;
    case PLANE_VECTORS + 4: plane_part(f, x, y, 2, 4, whole, last); break;
    case 2 * PLANE_VECTORS + 2: plane_part(f, x, y, 3, 2, whole, last); break;
    default: plane_part(f, x, y, 4, 2, whole, last); break;
    }
}

/* What a whole vector writes behind a row is in rows that follow, and is written again; so only the last rows end with
 * a part of a vector. */
static void plane_filter_rows(const plane_filter *f)
{
    const int64_t n = f->n, group = PLANE_VECTORS * L, whole = (n - 1) / group * group, left = n - whole;
    const int count = (int)((left + L - 1) / L), last = (int)(left - (count - 1) * L);
    const int64_t behind = L - last, full = f->rows - (behind <= n ? behind > 0 : (behind + n - 1) / n);
    const int most = whole                        ? 1
                     : count == 1                 ? PLANE_VECTORS
                     : count == 2                 ? PLANE_VECTORS / 2
                     : count <= PLANE_VECTORS / 2 ? 2
                                                  : 1;
    for (int64_t r = 0, rows; r < f->rows; r += rows) {
        const float *x = f->x + r * f->x_row;
        float *y = f->y + r * n;
        rows = f->rows - r < most ? f->rows - r : most;
        for (int64_t i = 0; i < whole; i += group) plane_part(f, x + i, y + i, 1, PLANE_VECTORS, 1, L);
        plane_parts(f, x + whole, y + whole, (int)rows, count, (int)(r < full ? full - r : 0), last);
    }
}

/* Rows end with a whole vector that overlaps the one before. A short one is followed by zeros, up to a whole vector. */
static void plane_copy(float *to, int64_t to_row, const float *x, int64_t x_row, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, to += to_row, x += x_row) {
        if (n < L) {
            v_store(to, v_load_n(x, (int)n));
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
        for (; i + 2 * L <= n; i += 2 * L) {
            v_store(even + i / 2, v_even(v_load(x + i), v_load(x + i + L)));
            v_store(odd + i / 2, v_odd(v_load(x + i), v_load(x + i + L)));
        }
        for (; i < n; i += 2 * L) { /* zeros behind the row */
            const int left = (int)(n - i), more = left - L;
            const vec a = v_load_n(x + i, more < 0 ? left : L), b = more > 0 ? v_load_n(x + i + L, more) : v_zero();
            v_store(even + i / 2, v_even(a, b));
            v_store(odd + i / 2, v_odd(a, b));
        }
    }
}

static void plane_split4(float *const *to, int64_t to_row, const float *x, int64_t x_row, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, x += x_row) {
        float *const part[4] = { to[0] + r * to_row, to[1] + r * to_row, to[2] + r * to_row, to[3] + r * to_row };
        int64_t i = 0;
        for (; i + 4 * L <= n; i += 4 * L) {
            const vec a = v_load(x + i), b = v_load(x + i + L), c = v_load(x + i + 2 * L), d = v_load(x + i + 3 * L);
            const vec even[2] = { v_even(a, b), v_even(c, d) }, odd[2] = { v_odd(a, b), v_odd(c, d) };
            v_store(part[0] + i / 4, v_even(even[0], even[1]));
            v_store(part[1] + i / 4, v_even(odd[0], odd[1]));
            v_store(part[2] + i / 4, v_odd(even[0], even[1]));
            v_store(part[3] + i / 4, v_odd(odd[0], odd[1]));
        }
        for (; i < n; i++) part[i % 4][i / 4] = x[i];
    }
}

/* Vectors of a row of n numbers; a part of the last one. */
INLINE void plane_store(float *to, vec v, int64_t n)
{
    if (n >= L) v_store(to, v);
    else if (n > 0) v_store_n(to, v, (int)n);
}

static void plane_join(float *to, const float *const *part, int64_t step, int64_t n)
{
    const int64_t total = n * step;
    if (step == 1) {
        for (int64_t i = 0; i < n; i += L) plane_store(to + i, v_load(part[0] + i), n - i);
    } else if (step == 2) {
        for (int64_t i = 0, at = 0; i < n; i += L, at += 2 * L) {
            const vec a = v_load(part[0] + i), b = v_load(part[1] + i);
            plane_store(to + at, v_zip_low(a, b), total - at);
            plane_store(to + at + L, v_zip_high(a, b), total - at - L);
        }
    } else if (step == 4) {
        for (int64_t i = 0, at = 0; i < n; i += L, at += 4 * L) {
            const vec a = v_load(part[0] + i), b = v_load(part[1] + i), c = v_load(part[2] + i),
                      d = v_load(part[3] + i);
            const vec even[2] = { v_zip_low(a, c), v_zip_high(a, c) }, odd[2] = { v_zip_low(b, d), v_zip_high(b, d) };
            UNROLL for (int k = 0; k < 2; k++)
            {
                plane_store(to + at + 2 * k * L, v_zip_low(even[k], odd[k]), total - at - 2 * k * L);
                plane_store(to + at + (2 * k + 1) * L, v_zip_high(even[k], odd[k]), total - at - (2 * k + 1) * L);
            }
        }
    } else {
        for (int64_t c = 0; c < step; c++)
            for (int64_t i = 0; i < n; i++) to[i * step + c] = part[c][i];
    }
}

/* to[i * to_row + c] = x[c * x_row + i], i and c below L. Part t of a vector of four rows of the square has row 4 t on;
 * then squares of 4 x 4 are turned in each part. */
INLINE void plane_square(float *to, int64_t to_row, const float *x, int64_t x_row)
{
    UNROLL for (int i = 0; i < L; i += 4) {
        vec a[4];
        UNROLL for (int c = 0; c < 4; c++) a[c] = v_load_parts(x + i + c * x_row, 4 * x_row);
        const vec low[2] = { v_pair_low(a[0], a[1]), v_pair_low(a[2], a[3]) };
        const vec high[2] = { v_pair_high(a[0], a[1]), v_pair_high(a[2], a[3]) };
        v_store(to + i * to_row, v_two_low(low[0], low[1]));
        v_store(to + (i + 1) * to_row, v_two_high(low[0], low[1]));
        v_store(to + (i + 2) * to_row, v_two_low(high[0], high[1]));
        v_store(to + (i + 3) * to_row, v_two_high(high[0], high[1]));
    }
}

/* Of n numbers the last square overlaps the one before. */
static inline int64_t plane_square_at(int64_t i, int64_t n) { return i + L <= n || n < L ? i : n - L; }

static void plane_to_lanes(float *to, int64_t to_row, const float *x, int64_t x_plane, int64_t planes, int64_t n)
{
    const int left = n < L ? (int)n : L;
    for (int64_t i = 0; i < n; i += L) {
        const int64_t at = plane_square_at(i, n);
        if (planes == L && n >= L) {
            plane_square(to + at * to_row, to_row, x + at, x_plane);
            continue;
        }
        float part[VEC_LANES * VEC_LANES];
        for (int c = 0; c < L; c++) v_store(part + c * L, c < planes ? v_load_n(x + at + c * x_plane, left) : v_zero());
        plane_square(to + at * to_row, to_row, part, L);
    }
}

static void plane_from_lanes(float *y, int64_t y_plane, const float *from, int64_t from_row, int64_t planes, int64_t n)
{
    const int left = n < L ? (int)n : L;
    for (int64_t i = 0; i < n; i += L) {
        const int64_t at = plane_square_at(i, n);
        if (planes == L && n >= L) {
            plane_square(y + at, y_plane, from + at * from_row, from_row);
            continue;
        }
        float part[VEC_LANES * VEC_LANES];
        plane_square(part, L, from + at * from_row, from_row);
        for (int64_t c = 0; c < planes; c++) v_store_n(y + at + c * y_plane, v_load(part + c * L), left);
    }
}

static const plane_set plane_loops = { .filter = plane_filter_rows,
                                       .conv = conv_planes_run, .copy = plane_copy, .split = plane_split,
                                       .split4 = plane_split4, .join = plane_join,
                                       .to_lanes = plane_to_lanes, .from_lanes = plane_from_lanes };
