/* SPDX-License-Identifier: Apache-2.0 */
/* rows.inc.h - the text of the row kernels, included once by each instruction set's file.
 *
 * Reductions keep four vectors in flight, so that latency does not set their pace. */
static inline vec fill_tail(const float *x, int left, float with)
{
    float t[VEC_LANES];
    for (int i = 0; i < L; i++) t[i] = i < left ? x[i] : with;
    return v_load(t);
}

#define REDUCE(name, seed, join, map)                                                                       \
    static inline vec name(const float *x, int64_t n)                                                       \
    {                                                                                                       \
        vec a0 = v_set(seed), a1 = a0, a2 = a0, a3 = a0;                                                    \
        int64_t i = 0;                                                                                      \
        for (; i + 4 * L <= n; i += 4 * L) {                                                                \
            vec v = v_load(x + i);                                                                          \
            a0 = join(a0, map);                                                                             \
            v = v_load(x + i + L);                                                                          \
            a1 = join(a1, map);                                                                             \
            v = v_load(x + i + 2 * L);                                                                      \
            a2 = join(a2, map);                                                                             \
            v = v_load(x + i + 3 * L);                                                                      \
            a3 = join(a3, map);                                                                             \
        }                                                                                                   \
        for (; i + L <= n; i += L) {                                                                        \
            const vec v = v_load(x + i);                                                                    \
            a0 = join(a0, map);                                                                             \
        }                                                                                                   \
        if (i < n) {                                                                                        \
            const vec v = fill_tail(x + i, (int)(n - i), seed);                                             \
            a1 = join(a1, map);                                                                             \
        }                                                                                                   \
        return join(join(a0, a1), join(a2, a3));                                                            \
    }
REDUCE(reduce_sum, 0.0f, v_add, v)
REDUCE(reduce_abs, 0.0f, v_add, v_abs(v))
REDUCE(reduce_square, 0.0f, v_add, v_mul(v, v))
REDUCE(reduce_max, -INFINITY, nan_most, v)
REDUCE(reduce_min, INFINITY, nan_least, v)
REDUCE(reduce_prod, 1.0f, v_mul, v)

static float most(vec v) { return m_any(v_is_nan(v)) ? NAN : v_most(v); }

static void softmax(float *y, const float *x, int64_t n, bool is_log)
{
    const float top = most(reduce_max(x, n));
    const vec shift = v_set(top);
    vec s0 = v_zero(), s1 = s0;
    int64_t i = 0;
    if (is_log) {
        for (; i + L <= n; i += L) s0 = v_add(s0, v_exp_neg(v_sub(v_load(x + i), shift)));
        if (i < n) s1 = v_exp_neg(v_sub(fill_tail(x + i, (int)(n - i), -INFINITY), shift));
        const vec under = v_set(logf(v_sum(v_add(s0, s1))));
        for (i = 0; i + L <= n; i += L) v_store(y + i, v_sub(v_sub(v_load(x + i), shift), under));
        if (i < n) v_store_n(y + i, v_sub(v_sub(v_load_n(x + i, (int)(n - i)), shift), under), (int)(n - i));
        return;
    }
    for (; i + 2 * L <= n; i += 2 * L) {
        const vec a = v_exp_neg(v_sub(v_load(x + i), shift)), b = v_exp_neg(v_sub(v_load(x + i + L), shift));
        v_store(y + i, a);
        v_store(y + i + L, b);
        s0 = v_add(s0, a);
        s1 = v_add(s1, b);
    }
    for (; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        const vec a = v_exp_neg(v_sub(fill_tail(x + i, left, -INFINITY), shift));
        v_store_n(y + i, a, left);
        s0 = v_add(s0, a);
    }
    const vec r = v_set(1.0f / v_sum(v_add(s0, s1)));
    for (i = 0; i + L <= n; i += L) v_store(y + i, v_mul(v_load(y + i), r));
    if (i < n) v_store_n(y + i, v_mul(v_load_n(y + i, (int)(n - i)), r), (int)(n - i));
}

static void softmax_cols(float *y, const float *x, int64_t n, int64_t y_stride, int64_t x_stride, int64_t cols,
                         bool is_log)
{
    for (int64_t c = 0; c < cols; c += L) {
        const int left = cols - c < L ? (int)(cols - c) : L;
        const float *xs = x + c;
        float *ys = y + c;
        vec top = v_set(-INFINITY), sum = v_zero();
        for (int64_t i = 0; i < n; i++) top = nan_most(top, v_load_n(xs + i * x_stride, left));
        for (int64_t i = 0; i < n; i++) {
            const vec d = v_sub(v_load_n(xs + i * x_stride, left), top), e = v_exp_neg(d);
            sum = v_add(sum, e);
            v_store_n(ys + i * y_stride, is_log ? d : e, left);
        }
        const vec r = is_log ? v_log(sum) : v_div(v_set(1.0f), sum);
        for (int64_t i = 0; i < n; i++) {
            float *at = ys + i * y_stride;
            v_store_n(at, is_log ? v_sub(v_load_n(at, left), r) : v_mul(v_load_n(at, left), r), left);
        }
    }
}

/* left_over: the sum of x - mean, which the rounding of the mean leaves. */
static vec reduce_deviation(const float *x, int64_t n, vec mean, float *left_over)
{
    vec a0 = v_zero(), a1 = a0, s0 = a0, s1 = a0;
    int64_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {
        const vec d = v_sub(v_load(x + i), mean), e = v_sub(v_load(x + i + L), mean);
        a0 = v_fma(d, d, a0);
        a1 = v_fma(e, e, a1);
        s0 = v_add(s0, d);
        s1 = v_add(s1, e);
    }
    for (; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        float t[VEC_LANES];
        v_store(t, mean);
        const float m = t[0];
        const vec d = v_sub(fill_tail(x + i, left, m), mean);
        a0 = v_fma(d, d, a0);
        s0 = v_add(s0, d);
    }
    *left_over = v_sum(v_add(s0, s1));
    return v_add(a0, a1);
}

static void affine_each(float *y, const float *x, int64_t n, const float *centre, const float *scale,
                        const float *bias)
{
    int64_t i = 0;
    for (; i + L <= n; i += L) {
        const vec d = v_sub(v_load(x + i), v_load(centre + i));
        v_store(y + i, v_fma(d, v_load(scale + i), v_load(bias + i)));
    }
    if (i < n) {
        const int left = (int)(n - i);
        const vec d = v_sub(v_load_n(x + i, left), v_load_n(centre + i, left));
        v_store_n(y + i, v_fma(d, v_load_n(scale + i, left), v_load_n(bias + i, left)), left);
    }
}

/* (x - centre) * scale + bias: near the centre nothing cancels that was rounded. */
static void affine(float *y, const float *x, int64_t n, float centre, float scale, float bias)
{
    const vec m = v_set(centre), s = v_set(scale), b = v_set(bias);
    int64_t i = 0;
    for (; i + L <= n; i += L) v_store(y + i, v_fma(v_sub(v_load(x + i), m), s, b));
    if (i < n) v_store_n(y + i, v_fma(v_sub(v_load_n(x + i, (int)(n - i)), m), s, b), (int)(n - i));
}

static void layer_norm(float *y, const float *x, int64_t n, const float *scale, const float *bias, float epsilon,
                       float stats[2])
{
    const float mean = v_sum(reduce_sum(x, n)) / (float)n;
    float off;
    const float square = v_sum(reduce_deviation(x, n, v_set(mean), &off)) / (float)n;
    off /= (float)n;
    const float variance = square - off * off;
    /* Rounding may make the variance negative: it is 0 then. NaN stays NaN. */
    const float r = 1.0f / sqrtf((variance < 0 ? 0 : variance) + epsilon);
    stats[0] = mean;
    stats[1] = r;
    const vec m = v_set(mean), k = v_set(r), b0 = v_set(-off * r), one = v_set(1.0f), zero = v_zero();
    for (int64_t i = 0; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        if (left == L) {
            const vec v = v_fma(v_sub(v_load(x + i), m), k, b0);
            v_store(y + i, v_fma(v, scale ? v_load(scale + i) : one, bias ? v_load(bias + i) : zero));
        } else {
            const vec v = v_fma(v_sub(v_load_n(x + i, left), m), k, b0);
            const vec s = scale ? v_load_n(scale + i, left) : one, b = bias ? v_load_n(bias + i, left) : zero;
            v_store_n(y + i, v_fma(v, s, b), left);
        }
    }
}

static void rms_norm(float *y, const float *x, int64_t n, const float *scale, float epsilon)
{
    const vec r = v_set(1.0f / sqrtf(v_sum(reduce_square(x, n)) / (float)n + epsilon)), one = v_set(1.0f);
    int64_t i = 0;
    for (; i + L <= n; i += L) v_store(y + i, v_mul(v_mul(v_load(x + i), r), scale ? v_load(scale + i) : one));
    if (i < n) {
        const int left = (int)(n - i);
        v_store_n(y + i, v_mul(v_mul(v_load_n(x + i, left), r), scale ? v_load_n(scale + i, left) : one), left);
    }
}

static void moments(const float *x, int64_t n, float shift, double *sum, double *square)
{
    *sum = (double)v_sum(reduce_sum(x, n));
    float unused;
    *square = (double)v_sum(reduce_deviation(x, n, v_set(shift), &unused));
}

static float product(vec v)
{
    float t[VEC_LANES], p = 1;
    v_store(t, v);
    for (int i = 0; i < L; i++) p *= t[i];
    return p;
}

static float fold(rows_fold kind, const float *x, int64_t n)
{
    switch (kind) {
    case ROWS_ABS: return v_sum(reduce_abs(x, n));
    case ROWS_SQUARE: return v_sum(reduce_square(x, n));
    case ROWS_MAX: return most(reduce_max(x, n));
    case ROWS_MIN: {
        const vec v = reduce_min(x, n);
        return m_any(v_is_nan(v)) ? NAN : v_least(v);
    }
    case ROWS_PROD: return product(reduce_prod(x, n));
    default: return v_sum(reduce_sum(x, n));
    }
}

/* Four rows at a time, so that the accumulators are loaded and stored once for four rows. */
#define FOLD_COLS(name, join, map)                                                                          \
    static void name(float *acc, const float *x, int64_t rows, int64_t stride, int64_t n)                   \
    {                                                                                                       \
        int64_t r = 0;                                                                                      \
        for (; r + 4 <= rows; r += 4, x += 4 * stride) {                                                    \
            for (int64_t i = 0; i < n; i += L) {                                                            \
                const int left = n - i < L ? (int)(n - i) : L;                                              \
                const float *at = x + i;                                                                    \
                vec a = v_load_n(acc + i, left), v = v_load_n(at, left);                                    \
                vec b = map;                                                                                \
                v = v_load_n(at + stride, left);                                                            \
                b = join(b, map);                                                                           \
                v = v_load_n(at + 2 * stride, left);                                                        \
                vec c = map;                                                                                \
                v = v_load_n(at + 3 * stride, left);                                                        \
                c = join(c, map);                                                                           \
                a = join(a, join(b, c));                                                                    \
                v_store_n(acc + i, a, left);                                                                \
            }                                                                                               \
        }                                                                                                   \
        for (; r < rows; r++, x += stride) {                                                                \
            for (int64_t i = 0; i < n; i += L) {                                                            \
                const int left = n - i < L ? (int)(n - i) : L;                                              \
                const vec v = v_load_n(x + i, left);                                                        \
                v_store_n(acc + i, join(v_load_n(acc + i, left), map), left);                               \
            }                                                                                               \
        }                                                                                                   \
    }
FOLD_COLS(cols_sum, v_add, v)
FOLD_COLS(cols_abs, v_add, v_abs(v))
FOLD_COLS(cols_square, v_add, v_mul(v, v))
FOLD_COLS(cols_max, nan_most, v)
FOLD_COLS(cols_min, nan_least, v)
FOLD_COLS(cols_prod, v_mul, v)

static void fold_cols(rows_fold kind, float *acc, const float *x, int64_t rows, int64_t stride, int64_t n)
{
    switch (kind) {
    case ROWS_ABS: cols_abs(acc, x, rows, stride, n); break;
    case ROWS_SQUARE: cols_square(acc, x, rows, stride, n); break;
    case ROWS_MAX: cols_max(acc, x, rows, stride, n); break;
    case ROWS_MIN: cols_min(acc, x, rows, stride, n); break;
    case ROWS_PROD: cols_prod(acc, x, rows, stride, n); break;
    default: cols_sum(acc, x, rows, stride, n); break;
    }
}

static void max_of(float *y, const float *const *x, int64_t count, int64_t n)
{
    int64_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {
        vec a = v_load(x[0] + i), b = v_load(x[0] + i + L);
        for (int64_t k = 1; k < count; k++) {
            a = nan_most(a, v_load(x[k] + i));
            b = nan_most(b, v_load(x[k] + i + L));
        }
        v_store(y + i, a);
        v_store(y + i + L, b);
    }
    for (; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        vec a = v_load_n(x[0] + i, left);
        for (int64_t k = 1; k < count; k++) a = nan_most(a, v_load_n(x[k] + i, left));
        v_store_n(y + i, a, left);
    }
}

static void sum_of(float *y, const float *const *x, int64_t count, int64_t n, float scale)
{
    const vec s = v_set(scale);
    int64_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {
        vec a = v_zero(), b = a;
        for (int64_t k = 0; k < count; k++) {
            a = v_add(a, v_load(x[k] + i));
            b = v_add(b, v_load(x[k] + i + L));
        }
        v_store(y + i, v_mul(a, s));
        v_store(y + i + L, v_mul(b, s));
    }
    for (; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        vec a = v_zero();
        for (int64_t k = 0; k < count; k++) a = v_add(a, v_load_n(x[k] + i, left));
        v_store_n(y + i, v_mul(a, s), left);
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

static const rows_set rows_loops = {
    .softmax = softmax, .softmax_cols = softmax_cols, .layer_norm = layer_norm, .rms_norm = rms_norm, .affine = affine,
    .affine_each = affine_each, .moments = moments, .fold = fold, .fold_cols = fold_cols, .max_of = max_of,
    .sum_of = sum_of,
    .blend4 = blend4,
};
