/* SPDX-License-Identifier: Apache-2.0 */
/* rows_fold.inc.h - folds of integers and of f64, and running sums, included once by each level.
 *
 * Integer sums wrap, so they are formed without sign. Vectors are the level's: GCC 12 compares wider ones by elements.
 */
enum { FOLD_BYTES = VEC_LANES * sizeof(float) };
typedef int32_t fold_i32 __attribute__((vector_size(FOLD_BYTES)));
typedef int64_t fold_i64 __attribute__((vector_size(FOLD_BYTES)));
typedef double fold_f64 __attribute__((vector_size(FOLD_BYTES)));
typedef uint64_t fold_u64 __attribute__((vector_size(FOLD_BYTES)));

/* The upper part of the first 2 n bytes in the place of the lower: FOLD_UPPER_n. */
#if VEC_LANES == 16
#define FOLD_UPPER_32(v) __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7)
#define FOLD_UPPER_16(v) __builtin_shufflevector(v, v, 2, 3, 2, 3, 2, 3, 2, 3)
#define FOLD_UPPER_8(v) __builtin_shufflevector(v, v, 1, 1, 1, 1, 1, 1, 1, 1)
#elif VEC_LANES == 8
#define FOLD_UPPER_32(v) (v)
#define FOLD_UPPER_16(v) __builtin_shufflevector(v, v, 2, 3, 2, 3)
#define FOLD_UPPER_8(v) __builtin_shufflevector(v, v, 1, 1, 1, 1)
#else
#define FOLD_UPPER_32(v) (v)
#define FOLD_UPPER_16(v) (v)
#define FOLD_UPPER_8(v) __builtin_shufflevector(v, v, 1, 1)
#endif

/* Whether a bit is set. */
INLINE bool fold_any(fold_i64 m)
{
    int64_t part[FOLD_BYTES / sizeof(int64_t)], all = 0;
    memcpy(part, &m, sizeof m);
    UNROLL for (size_t i = 0; i < FOLD_BYTES / sizeof(int64_t); i++) all |= part[i];
    return all != 0;
}

#define FOLD_SAME(v) (v)
#define FOLD_SQUARE(v) ((v) * (v))
#define FOLD_ABS32(v) (((v) ^ (fold_v)((fold_i32)(v) >> 31)) - (fold_v)((fold_i32)(v) >> 31))
#define FOLD_ABS64(v) (((v) ^ (fold_v)((fold_i64)(v) >> 63)) - (fold_v)((fold_i64)(v) >> 63))
#define FOLD_ABS_F64(v) ((fold_v)((fold_i64)(v) & INT64_MAX))
#define FOLD_SUM(a, b) ((a) + (b))
#define FOLD_PROD(a, b) ((a) * (b))

/* The larger or the smaller lane. The compiler makes one instruction of a comparison like this. Of f64 a NaN wins. */
#define FOLD_PICK(name, type, over)                                                                                    \
    typedef type pick_v_##name __attribute__((vector_size(FOLD_BYTES)));                                               \
    INLINE pick_v_##name name(pick_v_##name a, pick_v_##name b)                                                        \
    {                                                                                                                  \
        pick_v_##name y = a;                                                                                           \
        for (size_t i = 0; i < FOLD_BYTES / sizeof(type); i++) y[i] = a[i] over b[i] ? a[i] : b[i];                    \
        return y;                                                                                                      \
    }
FOLD_PICK(most_i8, int8_t, >)
FOLD_PICK(least_i8, int8_t, <)
FOLD_PICK(most_u8, uint8_t, >)
FOLD_PICK(least_u8, uint8_t, <)
FOLD_PICK(most_i32, int32_t, >)
FOLD_PICK(least_i32, int32_t, <)
FOLD_PICK(most_i64, int64_t, >)
FOLD_PICK(least_i64, int64_t, <)
FOLD_PICK(most_u64, uint64_t, >)
FOLD_PICK(least_u64, uint64_t, <)
FOLD_PICK(above_f64, double, >)
FOLD_PICK(below_f64, double, <)
INLINE fold_f64 nan_or(fold_f64 a, fold_f64 y)
{
    const fold_i64 keeps = a != a;
    return (fold_f64)(((fold_i64)a & keeps) | ((fold_i64)y & ~keeps));
}
INLINE fold_f64 most_f64(fold_f64 a, fold_f64 b)
{
    return nan_or(a, above_f64(a, b));
}
INLINE fold_f64 least_f64(fold_f64 a, fold_f64 b)
{
    return nan_or(a, below_f64(a, b));
}

/* Lanes behind the last element hold `seed`, which changes no fold. */
#define FOLD(name, type, seed, join, map)                                                                              \
    typedef type fold_v_##name __attribute__((vector_size(FOLD_BYTES)));                                               \
    INLINE type fold_lanes_##name(fold_v_##name a)                                                                     \
    {                                                                                                                  \
        typedef fold_v_##name fold_v;                                                                                  \
        fold_v v;                                                                                                      \
        if (FOLD_BYTES > 32) v = (fold_v)FOLD_UPPER_32((fold_u64)a), a = join(a, v);                                   \
        if (FOLD_BYTES > 16) v = (fold_v)FOLD_UPPER_16((fold_u64)a), a = join(a, v);                                   \
        v = (fold_v)FOLD_UPPER_8((fold_u64)a), a = join(a, v);                                                         \
        if (sizeof(type) < 8) v = (fold_v)((fold_u64)a >> 32), a = join(a, v);                                         \
        if (sizeof(type) < 4) v = (fold_v)((fold_u64)a >> 16), a = join(a, v);                                         \
        if (sizeof(type) < 2) v = (fold_v)((fold_u64)a >> 8), a = join(a, v);                                          \
        return a[0];                                                                                                   \
    }                                                                                                                  \
    static void fold_##name(void *acc, const void *from, int64_t rows, int64_t row, int64_t cols, int64_t col)         \
    {                                                                                                                  \
        typedef fold_v_##name fold_v;                                                                                  \
        enum { LANES = FOLD_BYTES / sizeof(type) };                                                                    \
        const fold_v empty = (fold_v){ 0 } + (type)(seed);                                                             \
        const type  *x = from;                                                                                         \
        type        *to = acc;                                                                                         \
        if (col != 1) {                                                                                                \
            for (int64_t c = 0; c < cols; c++, x += col) {                                                             \
                fold_v  a[4] = { empty, empty, empty, empty }, v; /* so that no join waits for another */         \
                int64_t i = 0;                                                                                         \
                a[0][0] = to[c];                                                                                       \
                for (; i + 4 * LANES <= rows; i += 4 * LANES) {                                                        \
                    UNROLL for (int k = 0; k < 4; k++)                                                                 \
                    {                                                                                                  \
                        memcpy(&v, x + i + k * LANES, sizeof v);                                                       \
                        a[k] = join(a[k], map(v));                                                                     \
                    }                                                                                                  \
                }                                                                                                      \
                for (; i + LANES <= rows; i += LANES) {                                                                \
                    memcpy(&v, x + i, sizeof v);                                                                       \
                    a[0] = join(a[0], map(v));                                                                         \
                }                                                                                                      \
                if (i < rows) {                                                                                        \
                    v = empty;                                                                                         \
                    memcpy(&v, x + i, (size_t)(rows - i) * sizeof(type));                                              \
                    a[1] = join(a[1], map(v));                                                                         \
                }                                                                                                      \
                a[0] = join(a[0], a[1]);                                                                               \
                a[2] = join(a[2], a[3]);                                                                               \
                a[0] = join(a[0], a[2]);                                                                               \
                to[c] = fold_lanes_##name(a[0]);                                                                       \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0, n; i < rows; i += n, x += n * row) {                                                       \
            n = rows - i < 8 ? rows - i : 8;                                                                           \
            int64_t c = 0;                                                                                             \
            fold_v  a[4], v = empty;                                                                                   \
            for (; c + 4 * LANES <= cols; c += 4 * LANES) {                                                            \
                memcpy(a, to + c, sizeof a);                                                                           \
                for (int64_t k = 0; k < n; k++) {                                                                      \
                    UNROLL for (int j = 0; j < 4; j++)                                                                 \
                    {                                                                                                  \
                        memcpy(&v, x + k * row + c + j * LANES, FOLD_BYTES);                                           \
                        a[j] = join(a[j], map(v));                                                                     \
                    }                                                                                                  \
                }                                                                                                      \
                memcpy(to + c, a, sizeof a);                                                                           \
            }                                                                                                          \
            for (; c + LANES <= cols; c += LANES) {                                                                    \
                memcpy(a, to + c, FOLD_BYTES);                                                                         \
                for (int64_t k = 0; k < n; k++) {                                                                      \
                    memcpy(&v, x + k * row + c, FOLD_BYTES);                                                           \
                    a[0] = join(a[0], map(v));                                                                         \
                }                                                                                                      \
                memcpy(to + c, a, FOLD_BYTES);                                                                         \
            }                                                                                                          \
            if (c == cols) continue;                                                                                   \
            const size_t size = (size_t)(cols - c) * sizeof(type);                                                     \
            if (cols >= LANES) { /* a whole vector, of which the end is kept */                                        \
                const int64_t last = cols - LANES;                                                                     \
                memcpy(a, to + last, FOLD_BYTES);                                                                      \
                for (int64_t k = 0; k < n; k++) {                                                                      \
                    memcpy(&v, x + k * row + last, FOLD_BYTES);                                                        \
                    a[0] = join(a[0], map(v));                                                                         \
                }                                                                                                      \
                memcpy(to + c, (const char *)a + FOLD_BYTES - size, size);                                             \
                continue;                                                                                              \
            }                                                                                                          \
            a[0] = v = empty;                                                                                          \
            memcpy(a, to + c, size);                                                                                   \
            for (int64_t k = 0; k < n; k++) {                                                                          \
                memcpy(&v, x + k * row + c, size);                                                                     \
                a[0] = join(a[0], map(v));                                                                             \
            }                                                                                                          \
            memcpy(to + c, a, size);                                                                                   \
        }                                                                                                              \
    }
FOLD(sum_i32, uint32_t, 0, FOLD_SUM, FOLD_SAME)
FOLD(abs_i32, uint32_t, 0, FOLD_SUM, FOLD_ABS32)
FOLD(square_i32, uint32_t, 0, FOLD_SUM, FOLD_SQUARE)
FOLD(prod_i32, uint32_t, 1, FOLD_PROD, FOLD_SAME)
FOLD(max_i32, int32_t, INT32_MIN, most_i32, FOLD_SAME)
FOLD(min_i32, int32_t, INT32_MAX, least_i32, FOLD_SAME)
FOLD(sum_i64, uint64_t, 0, FOLD_SUM, FOLD_SAME)
FOLD(abs_i64, uint64_t, 0, FOLD_SUM, FOLD_ABS64)
FOLD(square_i64, uint64_t, 0, FOLD_SUM, FOLD_SQUARE)
FOLD(prod_i64, uint64_t, 1, FOLD_PROD, FOLD_SAME)
FOLD(max_i64, int64_t, INT64_MIN, most_i64, FOLD_SAME)
FOLD(min_i64, int64_t, INT64_MAX, least_i64, FOLD_SAME)
FOLD(max_i8, int8_t, INT8_MIN, most_i8, FOLD_SAME)
FOLD(min_i8, int8_t, INT8_MAX, least_i8, FOLD_SAME)
FOLD(max_u64, uint64_t, 0, most_u64, FOLD_SAME)
FOLD(min_u64, uint64_t, UINT64_MAX, least_u64, FOLD_SAME)
FOLD(sum_f64, double, 0, FOLD_SUM, FOLD_SAME)
FOLD(abs_f64, double, 0, FOLD_SUM, FOLD_ABS_F64)
FOLD(square_f64, double, 0, FOLD_SUM, FOLD_SQUARE)
FOLD(prod_f64, double, 1, FOLD_PROD, FOLD_SAME)
FOLD(max_f64, double, -INFINITY, most_f64, FOLD_SAME)
FOLD(min_f64, double, INFINITY, least_f64, FOLD_SAME)
FOLD(max_u8, uint8_t, 0, most_u8, FOLD_SAME)
FOLD(min_u8, uint8_t, UINT8_MAX, least_u8, FOLD_SAME)

/* Sums of narrower integers in i64. */
#define FOLD_WIDENED(name, narrow)                                                                                     \
    static void fold_widened_##name(void *acc, const void *from, int64_t rows, int64_t row, int64_t cols, int64_t col) \
    {                                                                                                                  \
        enum { LANES = FOLD_BYTES / sizeof(int64_t) };                                                                 \
        typedef narrow part __attribute__((vector_size(LANES * sizeof(narrow))));                                      \
        const narrow *x = from;                                                                                        \
        int64_t      *to = acc;                                                                                        \
        part          v[2];                                                                                            \
        fold_i64      a[2];                                                                                            \
        for (int64_t c = 0; col != 1 && c < cols; c++, x += col) {                                                     \
            int64_t i = 0, sum[LANES];                                                                                 \
            a[0] = a[1] = (fold_i64){ 0 };                                                                             \
            for (; i + 2 * LANES <= rows; i += 2 * LANES) {                                                            \
                memcpy(v, x + i, sizeof v);                                                                            \
                UNROLL for (int j = 0; j < 2; j++) a[j] += __builtin_convertvector(v[j], fold_i64);                    \
            }                                                                                                          \
            a[0] += a[1];                                                                                              \
            memcpy(sum, a, sizeof sum);                                                                                \
            for (int j = 0; j < LANES; j++) to[c] += sum[j];                                                           \
            for (; i < rows; i++) to[c] += x[i];                                                                       \
        }                                                                                                              \
        for (int64_t i = 0, n; col == 1 && i < rows; i += n, x += n * row) {                                           \
            n = rows - i < 8 ? rows - i : 8;                                                                           \
            int64_t c = 0;                                                                                             \
            for (; c + 2 * LANES <= cols; c += 2 * LANES) {                                                            \
                memcpy(a, to + c, sizeof a);                                                                           \
                for (int64_t k = 0; k < n; k++) {                                                                      \
                    memcpy(v, x + k * row + c, sizeof v);                                                              \
                    UNROLL for (int j = 0; j < 2; j++) a[j] += __builtin_convertvector(v[j], fold_i64);                \
                }                                                                                                      \
                memcpy(to + c, a, sizeof a);                                                                           \
            }                                                                                                          \
            for (; c < cols; c++)                                                                                      \
                for (int64_t k = 0; k < n; k++) to[c] += x[k * row + c];                                               \
        }                                                                                                              \
    }
FOLD_WIDENED(i8, int8_t)
FOLD_WIDENED(u8, uint8_t)
FOLD_WIDENED(i16, int16_t)
FOLD_WIDENED(u16, uint16_t)
FOLD_WIDENED(i32, int32_t)
FOLD_WIDENED(u32, uint32_t)

static rows_fold_fn *sum_widened_of(sinter_dtype type)
{
    switch (type) {
    case SINTER_DTYPE_I8: return fold_widened_i8;
    case SINTER_DTYPE_U8: return fold_widened_u8;
    case SINTER_DTYPE_I16: return fold_widened_i16;
    case SINTER_DTYPE_U16: return fold_widened_u16;
    case SINTER_DTYPE_I32: return fold_widened_i32;
    case SINTER_DTYPE_U32: return fold_widened_u32;
    default: return NULL;
    }
}

static rows_fold_fn *fold_of(rows_fold kind, sinter_dtype type)
{
    static rows_fold_fn *const i32[] = { fold_sum_i32, fold_abs_i32, fold_square_i32,
                                         fold_max_i32, fold_min_i32, fold_prod_i32 };
    static rows_fold_fn *const i64[] = { fold_sum_i64, fold_abs_i64, fold_square_i64,
                                         fold_max_i64, fold_min_i64, fold_prod_i64 };
    static rows_fold_fn *const u64[] = { fold_sum_i64, fold_sum_i64, fold_square_i64,
                                         fold_max_u64, fold_min_u64, fold_prod_i64 };
    static rows_fold_fn *const f64[] = { fold_sum_f64, fold_abs_f64, fold_square_f64,
                                         fold_max_f64, fold_min_f64, fold_prod_f64 };
    const bool is_extreme = kind == ROWS_MAX || kind == ROWS_MIN;
    switch (type) {
    case SINTER_DTYPE_I32: return i32[kind];
    case SINTER_DTYPE_I64: return i64[kind];
    case SINTER_DTYPE_U64: return u64[kind];
    case SINTER_DTYPE_F64: return f64[kind];
    case SINTER_DTYPE_I8: return !is_extreme ? NULL : kind == ROWS_MAX ? fold_max_i8 : fold_min_i8;
    case SINTER_DTYPE_U8: return !is_extreme ? NULL : kind == ROWS_MAX ? fold_max_u8 : fold_min_u8;
    default: return NULL;
    }
}

/* Sixteen at a time, which makes vectors of them. */
#define WIDEN(name, from, type)                                                                                        \
    static void name(void *to, const void *data, int64_t n, int64_t step)                                              \
    {                                                                                                                  \
        const from *x = data;                                                                                          \
        type       *y = to;                                                                                            \
        int64_t i = 0;                                                                                                 \
        for (; step == 1 && i + 16 <= n; i += 16, x += 16)                                                             \
            for (int k = 0; k < 16; k++) y[i + k] = (type)x[k];                                                        \
        for (; i < n; i++, x += step) y[i] = (type)*x;                                                                 \
    }
#define WIDEN_INTEGER(name, from)                                                                                      \
    WIDEN(name##_to_i64, from, int64_t)                                                                                \
    WIDEN(name##_to_f64, from, double)
WIDEN_INTEGER(widen_i8, int8_t)
WIDEN_INTEGER(widen_u8, uint8_t)
WIDEN_INTEGER(widen_i16, int16_t)
WIDEN_INTEGER(widen_u16, uint16_t)
WIDEN_INTEGER(widen_i32, int32_t)
WIDEN_INTEGER(widen_u32, uint32_t)
WIDEN(widen_i64_to_f64, int64_t, double)
WIDEN(widen_u64_to_f64, uint64_t, double)
WIDEN(widen_same_8, uint8_t, uint8_t)
WIDEN(widen_same_16, uint16_t, uint16_t)
WIDEN(widen_same_32, uint32_t, uint32_t)
WIDEN(widen_same_64, uint64_t, uint64_t)

static rows_widen_fn *widen_of(sinter_dtype type, sinter_dtype to)
{
    const bool is_real = to == SINTER_DTYPE_F64;
    const uint32_t bits = sinter_dtype_bits(type);
    if (type == to)
        return bits == 8 ? widen_same_8 : bits == 16 ? widen_same_16 : bits == 32 ? widen_same_32 : widen_same_64;
    switch (type) {
    case SINTER_DTYPE_I8: return is_real ? widen_i8_to_f64 : widen_i8_to_i64;
    case SINTER_DTYPE_U8: return is_real ? widen_u8_to_f64 : widen_u8_to_i64;
    case SINTER_DTYPE_I16: return is_real ? widen_i16_to_f64 : widen_i16_to_i64;
    case SINTER_DTYPE_U16: return is_real ? widen_u16_to_f64 : widen_u16_to_i64;
    case SINTER_DTYPE_I32: return is_real ? widen_i32_to_f64 : widen_i32_to_i64;
    case SINTER_DTYPE_U32: return is_real ? widen_u32_to_f64 : widen_u32_to_i64;
    case SINTER_DTYPE_I64: return widen_i64_to_f64;
    default: return widen_u64_to_f64;
    }
}

/* A row of sums is the one before and a row of x. Sums stay in registers for some rows. */
enum { CUMULATE_ROWS = 8 };
#define CUMULATE(name, type)                                                                                           \
    INLINE void cumulate_rows_##name(type *y, int64_t y_row, const type *x, int64_t x_row, const int rows, int64_t n)  \
    {                                                                                                                  \
        typedef type sums __attribute__((vector_size(FOLD_BYTES)));                                                    \
        enum { LANES = FOLD_BYTES / sizeof(type) };                                                                    \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES) {                                                                           \
            sums s, v;                                                                                                 \
            memcpy(&s, y + i, sizeof s);                                                                               \
            UNROLL for (int r = 0; r < rows; r++)                                                                      \
            {                                                                                                          \
                memcpy(&v, x + r * x_row + i, sizeof v);                                                               \
                s += v;                                                                                                \
                memcpy(y + (r + 1) * y_row + i, &s, sizeof s);                                                         \
            }                                                                                                          \
        }                                                                                                              \
        for (; i < n; i++) {                                                                                           \
            type s = y[i];                                                                                             \
            UNROLL for (int r = 0; r < rows; r++) y[(r + 1) * y_row + i] = s += x[r * x_row + i];                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void cumulate_##name(void *to, int64_t y_row, const void *from, int64_t x_row, int64_t rows, int64_t n,     \
                                bool is_before)                                                                        \
    {                                                                                                                  \
        const type *x = from;                                                                                          \
        type       *y = to;                                                                                            \
        if (rows <= 0) return;                                                                                         \
        if (is_before) memset(y, 0, (size_t)n * sizeof *y);                                                            \
        else memcpy(y, x, (size_t)n * sizeof *y), x += x_row;                                                          \
        int64_t r = 1;                                                                                                 \
        for (; r + CUMULATE_ROWS <= rows; r += CUMULATE_ROWS) {                                                        \
            cumulate_rows_##name(y, y_row, x, x_row, CUMULATE_ROWS, n);                                                \
            x += CUMULATE_ROWS * x_row;                                                                                \
            y += CUMULATE_ROWS * y_row;                                                                                \
        }                                                                                                              \
        for (; r < rows; r++, x += x_row, y += y_row) cumulate_rows_##name(y, y_row, x, x_row, 1, n);                  \
    }
CUMULATE(f64, double)
CUMULATE(32, uint32_t)
CUMULATE(64, uint64_t)
