/* SPDX-License-Identifier: Apache-2.0 */
/* move_square.inc.h - squares of words, turned in registers (cpu_move.h), included once by each level. Levels whose
 * vectors are shorter have none: cpu_move.c has squares of 4 x 4. */
#if VEC_LANES >= 8
typedef float square_half __attribute__((vector_size(16)));
typedef float square_row __attribute__((vector_size(32)));

/* Four words of row i and of row i + 4. */
INLINE square_row square_load(const char *src, int64_t from)
{
    square_half low, high;
    memcpy(&low, src, sizeof low);
    memcpy(&high, src + 4 * from, sizeof high);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

static void move_square_8(char *dst, int64_t to, const char *src, int64_t from)
{
    UNROLL for (int half = 0; half < 2; half++)
    {
        square_row x[4], y[4];
        UNROLL for (int i = 0; i < 4; i++) x[i] = square_load(src + i * from + half * 16, from);
        UNROLL for (int i = 0; i < 2; i++)
        {
            y[2 * i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
            y[2 * i + 1] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
        }
        UNROLL for (int i = 0; i < 2; i++)
        {
            x[2 * i] = __builtin_shufflevector(y[i], y[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            x[2 * i + 1] = __builtin_shufflevector(y[i], y[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
        UNROLL for (int i = 0; i < 4; i++) memcpy(dst + (4 * half + i) * to, &x[i], sizeof x[i]);
    }
}

static void move_squares(char *dst, int64_t to, const char *src, int64_t from, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r += 8)
        for (int64_t c = 0; c < cols; c += 8) move_square_8(dst + r * to + c * 4, to, src + c * from + r * 4, from);
}
#else
#define move_squares NULL
#endif
