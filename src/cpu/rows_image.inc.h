/* SPDX-License-Identifier: Apache-2.0 */
/* rows_image.inc.h - the row kernels of pools and resizes, included once by each instruction set's file. */

/* Folds `count` operands. */
#define FOLD_OF(name, join)                                                                                 \
    static void name(float *y, const float *const *x, int64_t count, int64_t n, float scale)                \
    {                                                                                                       \
        int64_t i = 0;                                                                                      \
        for (; i + 2 * L <= n; i += 2 * L) {                                                                \
            vec a = v_load(x[0] + i), b = v_load(x[0] + i + L);                                             \
            for (int64_t k = 1; k < count; k++) {                                                           \
                a = join(a, v_load(x[k] + i));                                                              \
                b = join(b, v_load(x[k] + i + L));                                                          \
            }                                                                                               \
            v_store(y + i, name##_end(a, scale));                                                           \
            v_store(y + i + L, name##_end(b, scale));                                                       \
        }                                                                                                   \
        for (; i < n; i += L) {                                                                             \
            const int left = n - i < L ? (int)(n - i) : L;                                                  \
            vec a = v_load_n(x[0] + i, left);                                                               \
            for (int64_t k = 1; k < count; k++) a = join(a, v_load_n(x[k] + i, left));                      \
            v_store_n(y + i, name##_end(a, scale), left);                                                   \
        }                                                                                                   \
    }
static inline vec max_of_end(vec a, float scale)
{
    (void)scale;
    return a;
}
static inline vec sum_of_end(vec a, float scale) { return v_mul(a, v_set(scale)); }
FOLD_OF(max_of, nan_most)
FOLD_OF(sum_of, v_add)

INLINE veci bytes_load(const void *p)
{
    veci v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* The first `size` bytes, zeros behind them. */
INLINE veci bytes_load_n(const void *p, int64_t size)
{
    veci v = vi_set(0);
    if (size == (int64_t)sizeof v) return bytes_load(p);
    memcpy(&v, p, (size_t)size);
    return v;
}

INLINE void max_bytes_as(uint8_t *y, const uint8_t *const *x, int64_t count, int64_t n, const bool is_signed)
{
    const int64_t step = (int64_t)sizeof(veci);
    int64_t i = 0;
    for (; i + step <= n; i += step) {
        veci a = bytes_load(x[0] + i);
        for (int64_t k = 1; k < count; k++)
            a = is_signed ? vi8_max(a, bytes_load(x[k] + i)) : vu8_max(a, bytes_load(x[k] + i));
        memcpy(y + i, &a, sizeof a);
    }
    const uint8_t flip = is_signed ? 0 : 0x80;
    for (; i < n; i++) {
        int8_t a = (int8_t)(x[0][i] ^ flip);
        for (int64_t k = 1; k < count; k++) a = (int8_t)(x[k][i] ^ flip) > a ? (int8_t)(x[k][i] ^ flip) : a;
        y[i] = (uint8_t)a ^ flip;
    }
}

static void max_bytes(uint8_t *y, const uint8_t *const *x, int64_t count, int64_t n, uint8_t flip)
{
    if (flip) max_bytes_as(y, x, count, n, false);
    else max_bytes_as(y, x, count, n, true);
}

/* Where L numbers at `at` and behind, which rise to `last`, lie within one vector: where this one begins, else -1. */
static inline int64_t pick_base(int64_t first, int64_t last, int64_t width)
{
    const int64_t base = first < width - L ? first : width - L;
    return last - base < L ? base : -1;
}

/* A row of less than a vector, with zeros behind it. */
static inline const float *pick_row(const float *x, int64_t *width, float t[VEC_LANES])
{
    if (*width >= L) return x;
    v_store(t, v_load_n(x, (int)*width));
    *width = L;
    return t;
}

INLINE void pick_store(float *y, int64_t y_row, int64_t rows, vec v)
{
    v_store(y, v);
    for (int64_t r = 1; r < rows; r++) v_store(y + r * y_row, v);
}

/* Each number twice, while whole vectors of x last. Returns where it ended. */
INLINE int64_t pick_twice(float *y, int64_t y_row, int64_t rows, const float *x, int64_t width, int64_t n)
{
    int32_t half[2][L];
    for (int k = 0; k < L; k++) half[0][k] = k / 2, half[1][k] = L / 2 + k / 2;
    const veci low = vi_load(half[0]), high = vi_load(half[1]);
    int64_t i = 0;
    for (; i + 2 * L <= n && i / 2 + L <= width; i += 2 * L) {
        pick_store(y + i, y_row, rows, v_lookup(x + i / 2, low));
        pick_store(y + i + L, y_row, rows, v_lookup(x + i / 2, high));
    }
    return i;
}

INLINE vec pick_vector(const float *x, int64_t width, const int32_t *at)
{
    const int64_t base = pick_base(at[0], at[L - 1], width);
    if (base >= 0) return v_lookup(x + base, vi_sub(vi_load(at), vi_set((int32_t)base)));
    float p[VEC_LANES];
    for (int k = 0; k < L; k++) p[k] = x[at[k]];
    return v_load(p);
}

/* The last vector overlaps the one before. */
INLINE void pick_of(float *y, int64_t y_row, const int64_t rows, const float *x, int64_t width, const int32_t *at,
                    int64_t n, bool twice)
{
    float t[VEC_LANES];
    x = pick_row(x, &width, t);
    int64_t i = twice ? pick_twice(y, y_row, rows, x, width, n) : 0;
    for (; i + L <= n; i += L) pick_store(y + i, y_row, rows, pick_vector(x, width, at + i));
    if (i < n && n >= L) pick_store(y + n - L, y_row, rows, pick_vector(x, width, at + n - L));
    for (int64_t r = 0; n < L && r < rows; r++)
        for (int64_t k = 0; k < n; k++) y[r * y_row + k] = x[at[k]];
}

static void pick(float *y, int64_t y_row, int64_t rows, const float *x, int64_t width, const int32_t *at, int64_t n,
                 bool twice)
{
    if (rows == 1) pick_of(y, y_row, 1, x, width, at, n, twice);
    else if (rows == 2) pick_of(y, y_row, 2, x, width, at, n, twice);
    else pick_of(y, y_row, rows, x, width, at, n, twice);
}

static inline vec pick_blend(vec a, vec b, vec w)
{
    return v_blend(v_eq(w, v_zero()), a, v_fma(b, w, v_mul(a, v_sub(v_set(1.0f), w))));
}

static void pick2(float *y, const float *x, int64_t width, const int32_t *const at[2], const float *weight, int64_t n)
{
    float t[VEC_LANES];
    x = pick_row(x, &width, t);
    for (int64_t i = 0; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        const int64_t base = left < L ? -1 : pick_base(at[0][i], at[1][i + L - 1], width);
        vec a, b;
        if (base >= 0) {
            const veci from = vi_set((int32_t)base);
            a = v_lookup(x + base, vi_sub(vi_load(at[0] + i), from));
            b = v_lookup(x + base, vi_sub(vi_load(at[1] + i), from));
        } else {
            float p[VEC_LANES] = { 0 }, q[VEC_LANES] = { 0 };
            for (int k = 0; k < left; k++) {
                p[k] = x[at[0][i + k]];
                q[k] = x[at[1][i + k]];
            }
            a = v_load(p);
            b = v_load(q);
        }
        v_store_n(y + i, pick_blend(a, b, v_load_n(weight + i, left)), left);
    }
}

static void blend2(float *y, const float *a, const float *b, float weight, int64_t n)
{
    const vec u = v_set(1 - weight), w = v_set(weight);
    int64_t i = 0;
    for (; i + L <= n; i += L) v_store(y + i, v_fma(v_load(b + i), w, v_mul(v_load(a + i), u)));
    if (i < n) {
        const int left = (int)(n - i);
        v_store_n(y + i, v_fma(v_load_n(b + i, left), w, v_mul(v_load_n(a + i, left), u)), left);
    }
}

static void blend4(float *y, const float *const x[4], const float w[4], int64_t n)
{
    const vec w0 = v_set(w[0]), w1 = v_set(w[1]), w2 = v_set(w[2]), w3 = v_set(w[3]);
    for (int64_t i = 0; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        vec a = v_mul(w0, v_load_n(x[0] + i, left));
        a = v_fma(w1, v_load_n(x[1] + i, left), a);
        a = v_fma(w2, v_load_n(x[2] + i, left), a);
        v_store_n(y + i, v_fma(w3, v_load_n(x[3] + i, left), a), left);
    }
}

static void blend_of(float *y, const float *const *x, const float *weight, int64_t count, int64_t n)
{
    int64_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {
        vec a = v_zero(), b = v_zero();
        for (int64_t k = 0; k < count; k++) {
            const vec w = v_set(weight[k]);
            a = v_fma(w, v_load(x[k] + i), a);
            b = v_fma(w, v_load(x[k] + i + L), b);
        }
        v_store(y + i, a);
        v_store(y + i + L, b);
    }
    for (; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        vec a = v_zero();
        for (int64_t k = 0; k < count; k++) a = v_fma(v_set(weight[k]), v_load_n(x[k] + i, left), a);
        v_store_n(y + i, a, left);
    }
}

static void products_of(float *y, const float *const *x, const float *const *w, int64_t count, int64_t n)
{
    for (int64_t i = 0; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        vec a = v_zero();
        if (left == L)
            for (int64_t k = 0; k < count; k++) a = v_fma(v_load(x[k] + i), v_load(w[k] + i), a);
        else
            for (int64_t k = 0; k < count; k++) a = v_fma(v_load_n(x[k] + i, left), v_load_n(w[k] + i, left), a);
        v_store_n(y + i, a, left);
    }
}

static void gather_blend(float *y, const float *x, const int32_t *at, const float *weight, int64_t pitch, int64_t taps,
                         int64_t n)
{
    for (int64_t i = 0; i < n; i += L) {
        vec a = v_zero();
        for (int64_t k = 0; k < taps; k++) {
            const vec w = v_load(weight + k * pitch + i), v = v_gather(x, at + k * pitch + i);
            a = v_blend(v_eq(w, v_zero()), a, v_fma(w, v, a));
        }
        v_store_n(y + i, a, n - i < L ? (int)(n - i) : L);
    }
}

/* Lane i has x[at[i]] in left, and what follows it in right. Each load takes both; they are put where one shuffle
 * within 16 bytes finds them. */
typedef double image_pairs __attribute__((vector_size(4 * VEC_LANES)));
typedef float image_part __attribute__((vector_size(4 * VEC_LANES)));

static inline double image_pair(const float *p)
{
    double both;
    memcpy(&both, p, sizeof both);
    return both;
}

INLINE void image_pairs_at(const float *x, const int32_t *at, vec *left, vec *right)
{
#define P(i) image_pair(x + at[i])
#if VEC_LANES == 16
    const image_part a = (image_part)(image_pairs){ P(0), P(1), P(4), P(5), P(8), P(9), P(12), P(13) },
                     b = (image_part)(image_pairs){ P(2), P(3), P(6), P(7), P(10), P(11), P(14), P(15) };
    *left = (vec)__builtin_shufflevector(a, b, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30);
    *right = (vec)__builtin_shufflevector(a, b, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31);
#elif VEC_LANES == 8
    const image_part a = (image_part)(image_pairs){ P(0), P(1), P(4), P(5) },
                     b = (image_part)(image_pairs){ P(2), P(3), P(6), P(7) };
    *left = (vec)__builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14);
    *right = (vec)__builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
#else
    const image_part a = (image_part)(image_pairs){ P(0), P(1) }, b = (image_part)(image_pairs){ P(2), P(3) };
    *left = (vec)__builtin_shufflevector(a, b, 0, 2, 4, 6);
    *right = (vec)__builtin_shufflevector(a, b, 1, 3, 5, 7);
#endif
#undef P
}

/* A weight of zero leaves out what it stands before. */
static inline vec image_add(vec a, const float *weight, vec v)
{
    const vec w = v_load(weight);
    return v_blend(v_eq(w, v_zero()), a, v_fma(w, v, a));
}

/* As gather_blend of two taps, the second right behind the first where its weight is not 0. */
static void gather_two(float *y, const float *x, const int32_t *at, const float *weight, int64_t pitch, int64_t n)
{
    for (int64_t i = 0; i < n; i += L) {
        vec left, right;
        image_pairs_at(x, at + i, &left, &right);
        const vec a = image_add(image_add(v_zero(), weight + i, left), weight + pitch + i, right);
        v_store_n(y + i, a, n - i < L ? (int)(n - i) : L);
    }
}

static void gather_pairs(float *y, const float *x, const int32_t *at, const float *weight, int64_t pitch, int64_t n)
{
    for (int64_t i = 0; i < n; i += L) {
        vec left, right, a = v_zero();
        image_pairs_at(x, at + i, &left, &right);
        a = image_add(image_add(a, weight + i, left), weight + pitch + i, right);
        image_pairs_at(x, at + pitch + i, &left, &right);
        a = image_add(image_add(a, weight + 2 * pitch + i, left), weight + 3 * pitch + i, right);
        v_store_n(y + i, a, n - i < L ? (int)(n - i) : L);
    }
}

INLINE vec grid_clamp(vec x, float most) { return v_min(v_max(x, v_zero()), v_set(most)); }
INLINE vec grid_where_eq(vec x, vec y, vec a, vec b) { return v_blend(v_eq(x, y), a, b); }

/* Places in elements of an axis of `count`. They are rounded once, as in the reference. */
INLINE void grid_places(float *place, int64_t n, double count, bool align)
{
    for (int64_t i = 0; i < n; i += L / 2) {
        const vecd x = vd_load(place + i) + 1;
        vd_store(place + i, align ? x / 2 * (count - 1) : (x * count - 1) / 2);
    }
}

/* The element before each place. weight: of this one and of the next one. */
INLINE vec grid_before(vec weight[2], const float *place, float count, bool align, bool is_edge)
{
    vec x = v_load(place);
    /* NaN is -2. What lies far outside is moved to just outside. */
    x = v_min(v_blend(v_lt(v_set(-2), x), x, v_set(-2)), v_set(count + 1));
    if (is_edge) {
        const float low = align ? 0 : -0.5f, most = count - 1;
        x = v_blend(v_lt(x, v_set(low)), v_zero(), v_blend(v_lt(v_set(most - low), x), v_set(most), x));
    }
    const vec at = v_floor(x), one = v_set(1);
    weight[0] = v_sub(one, v_sub(x, at));
    weight[1] = v_sub(one, v_sub(v_add(at, one), x));
    return at;
}

INLINE void grid_pairs_with(const rows_grid *of, int32_t *at, float *weight, int64_t pitch, float *x, float *y,
                            int64_t n, bool align, bool is_edge)
{
    typedef int32_t ints __attribute__((vector_size(4 * VEC_LANES)));
    const float width = (float)of->width, height = (float)of->height;
    const vec one = v_set(1), none = v_zero();
    grid_places(x, n, (double)of->width, align);
    grid_places(y, n, (double)of->height, align);
    for (int64_t i = 0; i < n; i += L, at += L, weight += L) {
        vec w[2], h[2];
        const vec w_at = grid_before(w, x + i, width, align, is_edge);
        const vec h_at = grid_before(h, y + i, height, align, is_edge);
        const vec left = grid_clamp(w_at, width - 2), right = v_add(left, one), w_next = v_add(w_at, one);
        vec a = grid_where_eq(w_at, left, w[0], grid_where_eq(w_next, left, w[1], none));
        vec b = grid_where_eq(w_at, right, w[0], grid_where_eq(w_at, left, w[1], none));
        if (is_edge) {
            const vec both = v_add(w[0], w[1]);
            a = v_blend(v_lt(w_at, none), both, a);
            b = v_blend(v_le(v_set(width - 1), w_at), both, b);
        }
        const vec h_next = v_add(h_at, one);
        const vec up = grid_clamp(h_at, height - 1), down = grid_clamp(h_next, height - 1);
        const vec u = is_edge ? h[0] : grid_where_eq(up, h_at, h[0], none);
        const vec v = is_edge ? h[1] : grid_where_eq(down, h_next, h[1], none);
        const veci column = v_to_int(left);
        vi_store(at, vi_add((veci)((ints)v_to_int(up) * (int32_t)of->row), column));
        vi_store(at + pitch, vi_add((veci)((ints)v_to_int(down) * (int32_t)of->row), column));
        v_store(weight, v_mul(u, a));
        v_store(weight + pitch, v_mul(u, b));
        v_store(weight + 2 * pitch, v_mul(v, a));
        v_store(weight + 3 * pitch, v_mul(v, b));
    }
}

static void grid_pairs(const rows_grid *of, int32_t *at, float *weight, int64_t pitch, float *x, float *y, int64_t n)
{
    if (of->align && of->is_edge) grid_pairs_with(of, at, weight, pitch, x, y, n, true, true);
    else if (of->align) grid_pairs_with(of, at, weight, pitch, x, y, n, true, false);
    else if (of->is_edge) grid_pairs_with(of, at, weight, pitch, x, y, n, false, true);
    else grid_pairs_with(of, at, weight, pitch, x, y, n, false, false);
}

/* The last vector of a row overlaps the one before. */
INLINE void twice_vector(float *y, int64_t y_row, const float *x)
{
    int32_t half[2][L];
    for (int k = 0; k < L; k++) half[0][k] = k / 2, half[1][k] = L / 2 + k / 2;
    const vec low = v_lookup(x, vi_load(half[0])), high = v_lookup(x, vi_load(half[1]));
    v_store(y, low);
    v_store(y + L, high);
    v_store(y + y_row, low);
    v_store(y + y_row + L, high);
}

static void twice(float *y, int64_t y_row, const float *x, int64_t x_row, int64_t rows, int64_t width)
{
    int32_t begin[L], last[L]; /* of short rows: those of the first and of the last vector of results */
    for (int k = 0; k < L; k++) {
        begin[k] = k / 2;
        last[k] = (int32_t)(2 * width - L + k) / 2;
    }
    for (int64_t r = 0; r < rows; r++, x += x_row, y += 2 * y_row) {
        if (width < L) {
            float t[L];
            v_store(t, v_load_n(x, (int)width));
            const vec low = v_lookup(t, vi_load(begin));
            if (2 * width < L) {
                v_store_n(y, low, 2 * (int)width);
                v_store_n(y + y_row, low, 2 * (int)width);
                continue;
            }
            const vec high = v_lookup(t, vi_load(last));
            v_store(y, low);
            v_store(y + 2 * width - L, high);
            v_store(y + y_row, low);
            v_store(y + y_row + 2 * width - L, high);
            continue;
        }
        for (int64_t i = 0; i + L <= width; i += L) twice_vector(y + 2 * i, y_row, x + i);
        if (width % L) twice_vector(y + 2 * (width - L), y_row, x + width - L);
    }
}
