/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_wide.inc.h - the loops of matmul_wide.h, included once by each level.
 *
 * Columns of b are copied into panels of two vectors that stay in the first cache, as many rows as fit; then the sums
 * of four rows of a at a time are in registers. Panels are padded with zeros. */
enum { WIDE_ROWS = 4, WIDE_PANEL = 16384 };

#define MATMUL_WIDE(name, type)                                                                                        \
    typedef type wide_##name __attribute__((vector_size(FOLD_BYTES)));                                                 \
    enum {                                                                                                             \
        WIDE_LANES_##name = FOLD_BYTES / sizeof(type),                                                                 \
        WIDE_COLS_##name = 2 * WIDE_LANES_##name,                                                                      \
        WIDE_DEPTH_##name = WIDE_PANEL / (2 * FOLD_BYTES)                                                              \
    };                                                                                                                 \
    INLINE void wide_rows_##name(int rows, const matmul_wide *p, const type *panel, int64_t i, int64_t from,           \
                                 int64_t depth, int64_t j, int64_t cols)                                               \
    {                                                                                                                  \
        wide_##name acc[WIDE_ROWS][2] = { 0 };                                                                         \
        const type *a = (const type *)p->a + i * p->a_row + from * p->a_col;                                           \
        for (int64_t k = 0; k < depth; k++, a += p->a_col, panel += WIDE_COLS_##name) {                                \
            wide_##name b[2];                                                                                          \
            memcpy(b, panel, sizeof b);                                                                                \
            UNROLL for (int r = 0; r < rows; r++)                                                                      \
            {                                                                                                          \
                const type x = a[r * p->a_row];                                                                        \
                acc[r][0] += x * b[0];                                                                                 \
                acc[r][1] += x * b[1];                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
        UNROLL for (int r = 0; r < rows; r++)                                                                          \
        {                                                                                                              \
            type *y = (type *)p->y + (i + r) * p->y_row + j * p->y_col, sum[WIDE_COLS_##name];                         \
            memcpy(sum, acc[r], sizeof sum);                                                                           \
            for (int64_t c = 0; c < cols; c++) y[c * p->y_col] = from ? y[c * p->y_col] + sum[c] : sum[c];             \
        }                                                                                                              \
    }                                                                                                                  \
    static void matmul_wide_##name(const matmul_wide *p)                                                               \
    {                                                                                                                  \
        type panel[WIDE_PANEL / sizeof(type)];                                                                         \
        for (int64_t j = 0; j < p->n; j += WIDE_COLS_##name) {                                                         \
            const int64_t cols = p->n - j < WIDE_COLS_##name ? p->n - j : WIDE_COLS_##name;                            \
            int64_t from = 0;                                                                                          \
            do {                                                                                                       \
                const int64_t depth = p->k - from < WIDE_DEPTH_##name ? p->k - from : WIDE_DEPTH_##name;               \
                const type *b = (const type *)p->b + from * p->b_row + j * p->b_col;                                   \
                for (int64_t k = 0; k < depth; k++, b += p->b_row) {                                                   \
                    type *to = panel + k * WIDE_COLS_##name;                                                           \
                    if (p->b_col == 1 && cols == WIDE_COLS_##name) {                                                   \
                        memcpy(to, b, 2 * FOLD_BYTES);                                                                 \
                        continue;                                                                                      \
                    }                                                                                                  \
                    for (int64_t c = 0; c < WIDE_COLS_##name; c++) to[c] = c < cols ? b[c * p->b_col] : 0;             \
                }                                                                                                      \
                int64_t i = 0;                                                                                         \
                for (; i + WIDE_ROWS <= p->m; i += WIDE_ROWS)                                                          \
                    wide_rows_##name(WIDE_ROWS, p, panel, i, from, depth, j, cols);                                    \
                for (; i < p->m; i++) wide_rows_##name(1, p, panel, i, from, depth, j, cols);                          \
                from += WIDE_DEPTH_##name;                                                                             \
            } while (from < p->k);                                                                                     \
        }                                                                                                              \
    }
MATMUL_WIDE(f64, double)
MATMUL_WIDE(32, uint32_t)
MATMUL_WIDE(64, uint64_t)

static const matmul_wide_set matmul_wide_loops = { matmul_wide_f64, matmul_wide_32, matmul_wide_64 };
