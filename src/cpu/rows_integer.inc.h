/* SPDX-License-Identifier: Apache-2.0 */
/* rows_integer.inc.h - folds of integers, included once by each level.
 *
 * Sums wrap, so they are formed without sign. Vectors are the level's: GCC 12 compares wider ones by elements. */
enum { FOLD_BYTES = VEC_LANES * sizeof(float) };
typedef int32_t fold_i32 __attribute__((vector_size(FOLD_BYTES)));
typedef int64_t fold_i64 __attribute__((vector_size(FOLD_BYTES)));

#define FOLD_SAME(v) (v)
#define FOLD_SQUARE(v) ((v) * (v))
#define FOLD_ABS32(v) (((v) ^ (fold_v)((fold_i32)(v) >> 31)) - (fold_v)((fold_i32)(v) >> 31))
#define FOLD_ABS64(v) (((v) ^ (fold_v)((fold_i64)(v) >> 63)) - (fold_v)((fold_i64)(v) >> 63))
#define FOLD_SUM(a, b) ((a) + (b))
#define FOLD_PROD(a, b) ((a) * (b))
#define FOLD_MAX(a, b) (((a) & (fold_v)((a) > (b))) | ((b) & ~(fold_v)((a) > (b))))
#define FOLD_MIN(a, b) (((a) & (fold_v)((a) < (b))) | ((b) & ~(fold_v)((a) < (b))))

/* Lanes behind the last element hold `seed`, which changes no fold. */
#define FOLD(name, type, seed, join, map)                                                                              \
    static void fold_##name(void *acc, const void *from, int64_t rows, int64_t row, int64_t cols, int64_t col)         \
    {                                                                                                                  \
        typedef type fold_v __attribute__((vector_size(FOLD_BYTES)));                                                  \
        enum { LANES = FOLD_BYTES / sizeof(type) };                                                                    \
        const fold_v empty = (fold_v){ 0 } + (type)(seed);                                                             \
        const type  *x = from;                                                                                         \
        type        *to = acc;                                                                                         \
        if (col != 1) {                                                                                                \
            for (int64_t c = 0; c < cols; c++, x += col) {                                                             \
                fold_v  a = empty, v;                                                                                  \
                int64_t i = 0;                                                                                         \
                a[0] = to[c];                                                                                          \
                for (; i + LANES <= rows; i += LANES) {                                                                \
                    memcpy(&v, x + i, sizeof v);                                                                       \
                    a = join(a, map(v));                                                                               \
                }                                                                                                      \
                v = empty;                                                                                             \
                memcpy(&v, x + i, (size_t)(rows - i) * sizeof(type));                                                  \
                a = join(a, map(v));                                                                                   \
                for (int n = LANES / 2; n; n /= 2) {                                                                   \
                    v = empty;                                                                                         \
                    memcpy(&v, (const char *)&a + (size_t)n * sizeof(type), (size_t)n * sizeof(type));                 \
                    a = join(a, v);                                                                                    \
                }                                                                                                      \
                to[c] = a[0];                                                                                          \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0, n; i < rows; i += n, x += n * row) {                                                       \
            n = rows - i < 8 ? rows - i : 8;                                                                           \
            int64_t c = 0;                                                                                             \
            fold_v  a = empty, v = empty;                                                                              \
            for (; c + LANES <= cols; c += LANES) {                                                                    \
                memcpy(&a, to + c, FOLD_BYTES);                                                                        \
                for (int64_t k = 0; k < n; k++) {                                                                      \
                    memcpy(&v, x + k * row + c, FOLD_BYTES);                                                           \
                    a = join(a, map(v));                                                                               \
                }                                                                                                      \
                memcpy(to + c, &a, FOLD_BYTES);                                                                        \
            }                                                                                                          \
            const size_t size = (size_t)(cols - c) * sizeof(type);                                                     \
            a = v = empty;                                                                                             \
            memcpy(&a, to + c, size);                                                                                  \
            for (int64_t k = 0; k < n; k++) {                                                                          \
                memcpy(&v, x + k * row + c, size);                                                                     \
                a = join(a, map(v));                                                                                   \
            }                                                                                                          \
            memcpy(to + c, &a, size);                                                                                  \
        }                                                                                                              \
    }
FOLD(sum_i32, uint32_t, 0, FOLD_SUM, FOLD_SAME)
FOLD(abs_i32, uint32_t, 0, FOLD_SUM, FOLD_ABS32)
FOLD(square_i32, uint32_t, 0, FOLD_SUM, FOLD_SQUARE)
FOLD(prod_i32, uint32_t, 1, FOLD_PROD, FOLD_SAME)
FOLD(max_i32, int32_t, INT32_MIN, FOLD_MAX, FOLD_SAME)
FOLD(min_i32, int32_t, INT32_MAX, FOLD_MIN, FOLD_SAME)
FOLD(sum_i64, uint64_t, 0, FOLD_SUM, FOLD_SAME)
FOLD(abs_i64, uint64_t, 0, FOLD_SUM, FOLD_ABS64)
FOLD(square_i64, uint64_t, 0, FOLD_SUM, FOLD_SQUARE)
FOLD(prod_i64, uint64_t, 1, FOLD_PROD, FOLD_SAME)
FOLD(max_i64, int64_t, INT64_MIN, FOLD_MAX, FOLD_SAME)
FOLD(min_i64, int64_t, INT64_MAX, FOLD_MIN, FOLD_SAME)
FOLD(max_i8, int8_t, INT8_MIN, FOLD_MAX, FOLD_SAME)
FOLD(min_i8, int8_t, INT8_MAX, FOLD_MIN, FOLD_SAME)
FOLD(max_u8, uint8_t, 0, FOLD_MAX, FOLD_SAME)
FOLD(min_u8, uint8_t, UINT8_MAX, FOLD_MIN, FOLD_SAME)

static rows_integers *fold_integers(rows_fold kind, sinter_dtype type)
{
    static rows_integers *const i32[] = { fold_sum_i32, fold_abs_i32, fold_square_i32,
                                          fold_max_i32, fold_min_i32, fold_prod_i32 };
    static rows_integers *const i64[] = { fold_sum_i64, fold_abs_i64, fold_square_i64,
                                          fold_max_i64, fold_min_i64, fold_prod_i64 };
    switch (type) {
    case SINTER_DTYPE_I32: return i32[kind];
    case SINTER_DTYPE_I64: return i64[kind];
    case SINTER_DTYPE_I8: return kind == ROWS_MAX ? fold_max_i8 : fold_min_i8;
    default: return kind == ROWS_MAX ? fold_max_u8 : fold_min_u8;
    }
}
