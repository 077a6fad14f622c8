/* SPDX-License-Identifier: Apache-2.0 */
/* rows_wide.inc.h - the exponential and softmax of f64, included once by each level after rows_fold.inc.h. */
enum { WIDE_F64S = FOLD_BYTES / sizeof(double) };

INLINE fold_f64 wide_fma(fold_f64 a, fold_f64 b, fold_f64 c) { return (fold_f64)vd_fma((vecd)a, (vecd)b, (vecd)c); }
INLINE fold_f64 wide_of(double x) { return x - (fold_f64){ 0 }; }

/* Added to a number below 2^51, it leaves a whole one, half to even, in the lower bits. */
#define WIDE_MAGIC 6755399441055744.0
/* 2^n of n + WIDE_MAGIC. */
INLINE fold_f64 wide_power(fold_f64 magic) { return (fold_f64)(((fold_u64)magic + 1023) << 52); }

/* e^x = 2^n e^r with |r| <= log(2) / 2. The series of e^r ends below half a unit of the last place. 2^n is two factors,
 * so that results below the normal range are rounded once and those above are infinite. */
INLINE fold_f64 wide_exp(fold_f64 x)
{
    static const double term[] = { 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                                   1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1 };
    const fold_f64 magic = wide_of(WIDE_MAGIC);
    /* Limits first: a NaN passes both. */
    x = below_f64(wide_of(710), above_f64(wide_of(-746), x));
    const fold_f64 n = wide_fma(x, wide_of(1.4426950408889634), magic) - magic;
    fold_f64 r = wide_fma(n, wide_of(-6.93147180369123816490e-01), x);
    r = wide_fma(n, wide_of(-1.90821492927058770002e-10), r);
    fold_f64 sum = wide_of(1.0 / 6227020800);
    UNROLL for (size_t i = 0; i < sizeof term / sizeof *term; i++) sum = wide_fma(sum, r, wide_of(term[i]));
    const fold_f64 half = wide_fma(n, wide_of(0.5), magic), rest = n - (half - magic) + magic;
    return sum * wide_power(half) * wide_power(rest);
}

INLINE fold_f64 wide_load(const double *x, size_t size)
{
    fold_f64 v = wide_of(-INFINITY);
    if (size == sizeof v) memcpy(&v, x, sizeof v);
    else memcpy(&v, x, size);
    return v;
}
INLINE void wide_store(double *y, fold_f64 v, size_t size)
{
    if (size == sizeof v) memcpy(y, &v, sizeof v);
    else memcpy(y, &v, size);
}
INLINE size_t wide_size(int64_t left) { return (size_t)(left < WIDE_F64S ? left : WIDE_F64S) * sizeof(double); }

static void softmax_f64(double *y, const double *x, int64_t n, bool is_log)
{
    double most = -INFINITY;
    fold_max_f64(&most, x, n, 1, 1, 0);
    const fold_f64 top = wide_of(most);
    fold_f64 sum = { 0 };
    for (int64_t i = 0; i < n; i += WIDE_F64S) {
        const size_t size = wide_size(n - i);
        const fold_f64 e = wide_exp(wide_load(x + i, size) - top);
        sum += e;
        if (!is_log) wide_store(y + i, e, size);
    }
    const double total = fold_lanes_sum_f64(sum);
    const fold_f64 under = wide_of(is_log ? log(total) : 1 / total);
    for (int64_t i = 0; i < n; i += WIDE_F64S) {
        const size_t size = wide_size(n - i);
        if (is_log) wide_store(y + i, wide_load(x + i, size) - top - under, size);
        else wide_store(y + i, wide_load(y + i, size) * under, size);
    }
}

static void softmax_cols_f64(double *y, const double *x, int64_t n, int64_t stride, int64_t cols, bool is_log)
{
    for (int64_t c = 0; c < cols; c += WIDE_F64S, x += WIDE_F64S, y += WIDE_F64S) {
        const size_t size = wide_size(cols - c);
        fold_f64 top = wide_of(-INFINITY), sum = { 0 };
        for (int64_t i = 0; i < n; i++) top = most_f64(top, wide_load(x + i * stride, size));
        for (int64_t i = 0; i < n; i++) {
            const fold_f64 v = wide_load(x + i * stride, size) - top, e = wide_exp(v);
            sum += e;
            wide_store(y + i * stride, is_log ? v : e, size);
        }
        double total[WIDE_F64S];
        memcpy(total, &sum, sizeof total);
        for (int k = 0; k < WIDE_F64S; k++) total[k] = is_log ? log(total[k]) : 1 / total[k];
        memcpy(&sum, total, sizeof total);
        for (int64_t i = 0; i < n; i++) {
            const fold_f64 v = wide_load(y + i * stride, size);
            wide_store(y + i * stride, is_log ? v - sum : v * sum, size);
        }
    }
}

static void softmax_short_f64(double *y, const double *x, int64_t rows, int64_t n, bool is_log)
{
    double t[ROWS_SHORT * WIDE_F64S] = { 0 };
    for (int64_t r = 0; r < rows; r += WIDE_F64S, x += WIDE_F64S * n, y += WIDE_F64S * n) {
        const int64_t count = rows - r < WIDE_F64S ? rows - r : WIDE_F64S;
        for (int64_t k = 0; k < count; k++)
            for (int64_t i = 0; i < n; i++) t[i * WIDE_F64S + k] = x[k * n + i];
        softmax_cols_f64(t, t, n, WIDE_F64S, WIDE_F64S, is_log);
        for (int64_t k = 0; k < count; k++)
            for (int64_t i = 0; i < n; i++) y[k * n + i] = t[i * WIDE_F64S + k];
    }
}
