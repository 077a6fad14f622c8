/* SPDX-License-Identifier: Apache-2.0 */
/* rows.inc.h - the text of the row kernels, included once by each instruction set's file.
 *
 * Reductions keep four vectors in flight, so that latency does not set their pace. */
static inline vec fill_tail(const float *x, int left, float with)
{
    return v_blend(m_first(left), v_load_n(x, left), v_set(with));
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

static float sum_exp(const float *x, int64_t n, float top)
{
    const vec shift = v_set(top);
    vec s0 = v_zero(), s1 = s0;
    int64_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {
        s0 = v_add(s0, v_exp_neg(v_sub(v_load(x + i), shift)));
        s1 = v_add(s1, v_exp_neg(v_sub(v_load(x + i + L), shift)));
    }
    for (; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        s0 = v_add(s0, v_exp_neg(v_sub(fill_tail(x + i, left, -INFINITY), shift)));
    }
    return v_sum(v_add(s0, s1));
}

static void softmax(float *y, const float *x, int64_t n, bool is_log)
{
    const float top = most(reduce_max(x, n));
    const vec shift = v_set(top);
    int64_t i = 0;
    if (is_log) {
        const vec under = v_set(logf(sum_exp(x, n, top)));
        for (; i + L <= n; i += L) v_store(y + i, v_sub(v_sub(v_load(x + i), shift), under));
        if (i < n) v_store_n(y + i, v_sub(v_sub(v_load_n(x + i, (int)(n - i)), shift), under), (int)(n - i));
        return;
    }
    vec s0 = v_zero(), s1 = s0;
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

/* Lane i of `count` vectors is column i % cols: one number a column, in all of its lanes. */
static void join_columns(vec *v, int64_t count, int64_t cols, bool is_sum)
{
    float t[VEC_LANES * VEC_LANES], joined[VEC_LANES];
    for (int64_t k = 0; k < count; k++) v_store(t + k * L, v[k]);
    for (int64_t i = 0, c = 0; i < count * L; i++, c = c + 1 < cols ? c + 1 : 0) {
        if (i < cols) joined[c] = t[i];
        else if (is_sum) joined[c] += t[i];
        else joined[c] = t[i] > joined[c] || t[i] != t[i] ? t[i] : joined[c];
    }
    for (int64_t i = 0, c = 0; i < count * L; i++, c = c + 1 < cols ? c + 1 : 0) t[i] = joined[c];
    for (int64_t k = 0; k < count; k++) v[k] = v_load(t + k * L);
}

/* Fewer columns than a vector has lanes, rows behind each other: vectors go over all of it, and after `period` of them
 * the first lane is the first column again. */
static void softmax_narrow(float *y, const float *x, int64_t n, int64_t cols, bool is_log)
{
    vec top[VEC_LANES], sum[VEC_LANES];
    const int64_t all = n * cols;
    int64_t period = cols;
    while (period % 2 == 0 && period * L / 2 % cols == 0) period /= 2;
    for (int64_t k = 0; k < period; k++) {
        top[k] = v_set(-INFINITY);
        sum[k] = v_zero();
    }
    int64_t i = 0, k = 0;
    for (; i + L <= all; i += L, k = k + 1 < period ? k + 1 : 0) top[k] = nan_most(top[k], v_load(x + i));
    if (i < all) top[k] = nan_most(top[k], fill_tail(x + i, (int)(all - i), -INFINITY));
    join_columns(top, period, cols, false);
    for (i = 0, k = 0; i < all; i += L, k = k + 1 < period ? k + 1 : 0) {
        const int left = all - i < L ? (int)(all - i) : L;
        const vec d = v_sub(fill_tail(x + i, left, -INFINITY), top[k]), e = v_exp_neg(d);
        sum[k] = v_add(sum[k], e);
        v_store_n(y + i, is_log ? d : e, left);
    }
    join_columns(sum, period, cols, true);
    for (k = 0; k < period; k++) sum[k] = is_log ? v_log(sum[k]) : v_div(v_set(1.0f), sum[k]);
    for (i = 0, k = 0; i < all; i += L, k = k + 1 < period ? k + 1 : 0) {
        const int left = all - i < L ? (int)(all - i) : L;
        const vec v = v_load_n(y + i, left);
        v_store_n(y + i, is_log ? v_sub(v, sum[k]) : v_mul(v, sum[k]), left);
    }
}

/* Many columns at a time: columns far apart in memory fall on few places of a cache. */
enum { SOFTMAX_COLS = 256 };

static void softmax_cols(float *y, const float *x, int64_t n, int64_t y_stride, int64_t x_stride, int64_t cols,
                         bool is_log)
{
    if (cols < L && x_stride == cols && y_stride == cols) {
        softmax_narrow(y, x, n, cols, is_log);
        return;
    }
    vec top[SOFTMAX_COLS / VEC_LANES], sum[SOFTMAX_COLS / VEC_LANES];
    for (int64_t c = 0; c < cols; c += SOFTMAX_COLS, x += SOFTMAX_COLS, y += SOFTMAX_COLS) {
        const int64_t width = cols - c < SOFTMAX_COLS ? cols - c : SOFTMAX_COLS, whole = width / L;
        const int rest = (int)(width % L);
        for (int64_t k = 0; k < whole + !!rest; k++) {
            top[k] = v_set(-INFINITY);
            sum[k] = v_zero();
        }
        for (int64_t i = 0; i < n; i++) {
            const float *xs = x + i * x_stride;
            for (int64_t k = 0; k < whole; k++) top[k] = nan_most(top[k], v_load(xs + k * L));
            if (rest) top[whole] = nan_most(top[whole], v_load_n(xs + whole * L, rest));
        }
        for (int64_t i = 0; i < n; i++) {
            const float *xs = x + i * x_stride;
            float *ys = y + i * y_stride;
            for (int64_t k = 0; k < whole; k++) {
                const vec d = v_sub(v_load(xs + k * L), top[k]), e = v_exp_neg(d);
                sum[k] = v_add(sum[k], e);
                v_store(ys + k * L, is_log ? d : e);
            }
            if (!rest) continue;
            const vec d = v_sub(v_load_n(xs + whole * L, rest), top[whole]), e = v_exp_neg(d);
            sum[whole] = v_add(sum[whole], e);
            v_store_n(ys + whole * L, is_log ? d : e, rest);
        }
        for (int64_t k = 0; k < whole + !!rest; k++) sum[k] = is_log ? v_log(sum[k]) : v_div(v_set(1.0f), sum[k]);
        for (int64_t i = 0; i < n; i++) {
            float *ys = y + i * y_stride;
            for (int64_t k = 0; k < whole; k++) {
                const vec v = v_load(ys + k * L);
                v_store(ys + k * L, is_log ? v_sub(v, sum[k]) : v_mul(v, sum[k]));
            }
            if (!rest) continue;
            const vec v = v_load_n(ys + whole * L, rest);
            v_store_n(ys + whole * L, is_log ? v_sub(v, sum[whole]) : v_mul(v, sum[whole]), rest);
        }
    }
}

enum { SHORT_ROWS = 64 };
typedef float quad __attribute__((vector_size(16)));
/* to[c][r] = from[r][c]: four by four, then any number. */
static inline void turn_quads(float *to, int64_t to_row, const float *from, int64_t from_row)
{
    quad a, b, c, d;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + from_row, sizeof b);
    memcpy(&c, from + 2 * from_row, sizeof c);
    memcpy(&d, from + 3 * from_row, sizeof d);
    const quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const quad xy = __builtin_shufflevector(a, b, 2, 6, 3, 7), zw = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const quad r0 = __builtin_shufflevector(ab, cd, 0, 1, 4, 5), r1 = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    const quad r2 = __builtin_shufflevector(xy, zw, 0, 1, 4, 5), r3 = __builtin_shufflevector(xy, zw, 2, 3, 6, 7);
    memcpy(to, &r0, sizeof r0);
    memcpy(to + to_row, &r1, sizeof r1);
    memcpy(to + 2 * to_row, &r2, sizeof r2);
    memcpy(to + 3 * to_row, &r3, sizeof r3);
}

static inline void turn(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t cols)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        int64_t c = 0;
        for (; c + 4 <= cols; c += 4) turn_quads(to + c * to_row + r, to_row, from + r * from_row + c, from_row);
        for (; c < cols; c++)
            for (int64_t i = r; i < r + 4; i++) to[c * to_row + i] = from[i * from_row + c];
    }
    for (; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) to[c * to_row + r] = from[r * from_row + c];
}

static void softmax_short(float *y, const float *x, int64_t rows, int64_t n, bool is_log)
{
    float t[ROWS_SHORT * SHORT_ROWS];
    for (int64_t r = 0; r < rows; r += SHORT_ROWS, x += SHORT_ROWS * n, y += SHORT_ROWS * n) {
        const int64_t count = rows - r < SHORT_ROWS ? rows - r : SHORT_ROWS;
        turn(t, SHORT_ROWS, x, n, count, n);
        softmax_cols(t, t, n, SHORT_ROWS, SHORT_ROWS, count, is_log);
        turn(y, n, t, SHORT_ROWS, n, count);
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

/* At most SHORT_ROWS of the rows, as columns; what is left of the last vectors is 0. Returns how many rows. */
static int64_t turn_rows(float *t, const float *x, int64_t rows, int64_t n)
{
    const int64_t count = rows < SHORT_ROWS ? rows : SHORT_ROWS;
    if (count < SHORT_ROWS) memset(t, 0, sizeof(float) * ROWS_SHORT * SHORT_ROWS);
    turn(t, SHORT_ROWS, x, n, count, n);
    return count;
}

/* Rows of at most ROWS_SHORT numbers: lanes are rows, whose sums are formed in order. */
static void norm_short(float *y, const float *x, int64_t rows, int64_t n, const float *scale, const float *bias,
                       float epsilon, float *mean, float *inverse)
{
    float t[ROWS_SHORT * SHORT_ROWS], stats[2][SHORT_ROWS];
    const vec part = v_set((float)n), one = v_set(1.0f), zero = v_zero();
    for (int64_t r = 0; r < rows; r += SHORT_ROWS, x += SHORT_ROWS * n, y += SHORT_ROWS * n) {
        const int64_t count = turn_rows(t, x, rows - r, n);
        for (int64_t c = 0; c < count; c += L) {
            float *at = t + c;
            vec sum = v_zero(), off = sum, square = sum;
            for (int64_t i = 0; i < n; i++) sum = v_add(sum, v_load(at + i * SHORT_ROWS));
            const vec m = v_div(sum, part);
            for (int64_t i = 0; i < n; i++) {
                const vec d = v_sub(v_load(at + i * SHORT_ROWS), m);
                square = v_fma(d, d, square);
                off = v_add(off, d);
            }
            off = v_div(off, part);
            const vec variance = v_sub(v_div(square, part), v_mul(off, off));
            const vec k = v_div(one, v_sqrt(v_add(v_blend(v_lt(variance, zero), zero, variance), v_set(epsilon))));
            const vec b0 = v_sub(zero, v_mul(off, k));
            for (int64_t i = 0; i < n; i++) {
                const vec v = v_fma(v_sub(v_load(at + i * SHORT_ROWS), m), k, b0);
                v_store(at + i * SHORT_ROWS, v_fma(v, v_set(scale ? scale[i] : 1), v_set(bias ? bias[i] : 0)));
            }
            v_store(stats[0] + c, m);
            v_store(stats[1] + c, k);
        }
        if (mean) memcpy(mean + r, stats[0], (size_t)count * sizeof *mean);
        if (inverse) memcpy(inverse + r, stats[1], (size_t)count * sizeof *inverse);
        turn(y, n, t, SHORT_ROWS, n, count);
    }
}

/* Of rms_norm, as norm_short is of layer_norm. */
static void rms_short(float *y, const float *x, int64_t rows, int64_t n, const float *scale, float epsilon)
{
    float t[ROWS_SHORT * SHORT_ROWS];
    for (int64_t r = 0; r < rows; r += SHORT_ROWS, x += SHORT_ROWS * n, y += SHORT_ROWS * n) {
        const int64_t count = turn_rows(t, x, rows - r, n);
        for (int64_t c = 0; c < count; c += L) {
            float *at = t + c;
            vec square = v_zero();
            for (int64_t i = 0; i < n; i++) {
                const vec v = v_load(at + i * SHORT_ROWS);
                square = v_fma(v, v, square);
            }
            const vec under = v_sqrt(v_add(v_div(square, v_set((float)n)), v_set(epsilon)));
            const vec k = v_div(v_set(1.0f), under);
            for (int64_t i = 0; i < n; i++) {
                const vec v = v_mul(v_load(at + i * SHORT_ROWS), k);
                v_store(at + i * SHORT_ROWS, v_mul(v, v_set(scale ? scale[i] : 1)));
            }
        }
        turn(y, n, t, SHORT_ROWS, n, count);
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
    float t[VEC_LANES];
    for (int k = 1; k < L; k *= 2) v = v_mul(v_even(v, v), v_odd(v, v));
    v_store(t, v);
    return t[0];
}

static float least(vec v) { return m_any(v_is_nan(v)) ? NAN : v_least(v); }

#define FOLD_ROWS(value) \
    for (int64_t i = 0; i < rows; i++, x += stride) y[i] = value

static void fold_rows(rows_fold kind, float *y, const float *x, int64_t rows, int64_t stride, int64_t n)
{
    switch (kind) {
    case ROWS_ABS: FOLD_ROWS(v_sum(reduce_abs(x, n))); break;
    case ROWS_SQUARE: FOLD_ROWS(v_sum(reduce_square(x, n))); break;
    case ROWS_MAX: FOLD_ROWS(most(reduce_max(x, n))); break;
    case ROWS_MIN: FOLD_ROWS(least(reduce_min(x, n))); break;
    case ROWS_PROD: FOLD_ROWS(product(reduce_prod(x, n))); break;
    default: FOLD_ROWS(v_sum(reduce_sum(x, n))); break;
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

static void lrn(float *y, const float *centre, const float *const *x, int64_t count, int64_t n, float alpha, float bias,
                float beta)
{
    const vec power = v_set(-beta);
    const bool is_root = beta == 0.75f;
    for (int64_t i = 0; i < n; i += L) {
        const int left = n - i < L ? (int)(n - i) : L;
        vec sum = v_zero();
        for (int64_t k = 0; k < count; k++) {
            const vec v = left == L ? v_load(x[k] + i) : v_load_n(x[k] + i, left);
            sum = v_fma(v, v, sum);
        }
        const vec base = v_fma(v_set(alpha), sum, v_set(bias)), v = v_load_n(centre + i, left);
        if (is_root) {
            const vec root = v_sqrt(base);
            v_store_n(y + i, v_div(v, v_mul(root, v_sqrt(root))), left);
            continue;
        }
        v_store_n(y + i, v_mul(v, v_exp(v_mul(power, v_log(base)))), left);
    }
}

static void widen_bf16(float *y, const uint16_t *x, int64_t n)
{
    uint16_t last[L] = { 0 };
    for (; n >= L; n -= L, x += L, y += L) v_store(y, v_load_bf16(x));
    if (n <= 0) return;
    memcpy(last, x, (size_t)n * sizeof *x);
    v_store_n(y, v_load_bf16(last), (int)n);
}

static void narrow_bf16(uint16_t *y, const float *x, int64_t n)
{
    uint16_t last[L];
    for (; n >= L; n -= L, x += L, y += L) v_store_bf16(y, v_load(x));
    if (n <= 0) return;
    v_store_bf16(last, v_load_n(x, (int)n));
    memcpy(y, last, (size_t)n * sizeof *y);
}

/* A strip of columns row by row: its sums stay in registers, and what is written of a row is adjacent. */
enum { SUM_LANES = L / 2, SUM_STRIP = 8 };
INLINE void cumulate_strip(float *y, int64_t y_row, const float *x, int64_t x_row, int64_t rows, const int count,
                           const bool is_before)
{
    vecd sum[SUM_STRIP] = { 0 };
    for (int64_t r = 0; r < rows; r++, x += x_row, y += y_row) {
        UNROLL for (int i = 0; i < count; i++)
        {
            const vecd before = sum[i];
            sum[i] += vd_load(x + i * SUM_LANES);
            vd_store(y + i * SUM_LANES, is_before ? before : sum[i]);
        }
    }
}

/* Fewer columns than a vector has. */
INLINE void cumulate_few(float *y, int64_t y_row, const float *x, int64_t x_row, int64_t rows, int64_t n,
                         const bool is_before)
{
    double sum[SUM_LANES] = { 0 };
    for (int64_t r = 0; r < rows; r++, x += x_row, y += y_row) {
        for (int64_t i = 0; i < n; i++) {
            const double before = sum[i];
            sum[i] += (double)x[i];
            y[i] = (float)(is_before ? before : sum[i]);
        }
    }
}

/* Strips are whole vectors: one that is not begins where it ends with the last column. */
INLINE void cumulate_cols(float *y, int64_t y_row, const float *x, int64_t x_row, int64_t rows, int64_t n,
                          const bool is_before)
{
    if (n < SUM_LANES) {
        cumulate_few(y, y_row, x, x_row, rows, n, is_before);
        return;
    }
    for (int64_t i = 0, count; i < n; i += count * SUM_LANES) {
        count = (n - i + SUM_LANES - 1) / SUM_LANES;
        if (count > SUM_STRIP) count = SUM_STRIP;
        if (count * SUM_LANES > n) count--;
        const int64_t at = i + count * SUM_LANES <= n ? i : n - count * SUM_LANES;
        float *to = y + at;
        const float *from = x + at;
        switch (count) {
        case 1: cumulate_strip(to, y_row, from, x_row, rows, 1, is_before); break;
        case 2: cumulate_strip(to, y_row, from, x_row, rows, 2, is_before); break;
        case 3: cumulate_strip(to, y_row, from, x_row, rows, 3, is_before); break;
        case 4: cumulate_strip(to, y_row, from, x_row, rows, 4, is_before); break;
        case 5: cumulate_strip(to, y_row, from, x_row, rows, 5, is_before); break;
        case 6: cumulate_strip(to, y_row, from, x_row, rows, 6, is_before); break;
        case 7: cumulate_strip(to, y_row, from, x_row, rows, 7, is_before); break;
        default: cumulate_strip(to, y_row, from, x_row, rows, SUM_STRIP, is_before); break;
        }
    }
}

static void cumulate_f32(void *y, int64_t y_row, const void *x, int64_t x_row, int64_t rows, int64_t n, bool is_before)
{
    if (is_before) cumulate_cols(y, y_row, x, x_row, rows, n, true);
    else cumulate_cols(y, y_row, x, x_row, rows, n, false);
}

static const rows_set rows_loops = {
    .softmax_f64 = softmax_f64, .softmax_cols_f64 = softmax_cols_f64,
    .softmax_short_f64 = softmax_short_f64,
    .softmax = softmax, .softmax_cols = softmax_cols, .layer_norm = layer_norm, .rms_norm = rms_norm,
    .norm_short = norm_short, .rms_short = rms_short, .affine = affine,
    .affine_each = affine_each, .lrn = lrn, .sum_exp = sum_exp, .moments = moments, .fold_rows = fold_rows,
    .fold_cols = fold_cols, .fold_of = fold_of, .widen_of = widen_of,
    .sum_widened_of = sum_widened_of, .pool_max = pool_max, .pool_sum = pool_sum,
    .pool_abs = pool_abs, .pool_squares = pool_squares, .root = rows_root,
    .max_of = max_of, .sum_of = sum_of,
    .fold_narrow = fold_narrow, .max_bytes = max_bytes, .softmax_short = softmax_short, .pick = pick,
    .pick2 = pick2, .blend2 = blend2, .blend4 = blend4, .blend_of = blend_of, .gather_blend = gather_blend,
    .gather_two = gather_two,
    .gather_pairs = gather_pairs, .grid_pairs = grid_pairs, .twice = twice,
    .products_of = products_of, .widen_bf16 = widen_bf16, .narrow_bf16 = narrow_bf16,
    .cumulate_f32 = cumulate_f32, .cumulate_f64 = cumulate_f64,
    .cumulate_32 = cumulate_32, .cumulate_64 = cumulate_64,
};
