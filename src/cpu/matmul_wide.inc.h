/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_wide.inc.h - the loops of matmul_wide.h, included once by each level.
 *
 * Columns of b are copied into panels of two vectors that stay in the first cache, as many rows as fit; then the sums
 * of four rows of a at a time are in registers. Panels are padded with zeros. Four rows or fewer read whole columns of
 * b where they lie. */
enum { WIDE_ROWS = 4, WIDE_PANEL = 16384, THIN_ROWS = 8, THIN_DOTS = 4 };

#define WIDE_ADD_PRODUCT(sum, x, b) ((sum) + (x) * (b))
#define WIDE_FUSED(sum, x, b) wide_fma(x, b, sum)
#define MATMUL_WIDE(name, type, add_product)                                                                           \
    typedef type wide_##name __attribute__((vector_size(FOLD_BYTES)));                                                 \
    enum {                                                                                                             \
        WIDE_LANES_##name = FOLD_BYTES / sizeof(type),                                                                 \
        WIDE_COLS_##name = 2 * WIDE_LANES_##name,                                                                      \
        WIDE_DEPTH_##name = WIDE_PANEL / (2 * FOLD_BYTES)                                                              \
    };                                                                                                                 \
    INLINE void wide_rows_##name(int rows, const matmul_wide *p, const type *panel, int64_t step, int64_t i,           \
                                 int64_t from, int64_t depth, int64_t j, int64_t cols)                                 \
    {                                                                                                                  \
        wide_##name acc[WIDE_ROWS][2] = { 0 };                                                                         \
        const type *a = (const type *)p->a + i * p->a_row + from * p->a_col;                                           \
        for (int64_t k = 0; k < depth; k++, a += p->a_col, panel += step) {                                            \
            wide_##name b, next;                                                                                       \
            memcpy(&b, panel, sizeof b);                                                                               \
            memcpy(&next, panel + WIDE_LANES_##name, sizeof next);                                                     \
            UNROLL for (int r = 0; r < rows; r++)                                                                      \
            {                                                                                                          \
                const wide_##name x = a[r * p->a_row] - (wide_##name){ 0 };                                            \
                acc[r][0] = add_product(acc[r][0], x, b);                                                              \
                acc[r][1] = add_product(acc[r][1], x, next);                                                           \
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
        _Alignas(64) type panel[WIDE_PANEL / sizeof(type)];                                                            \
        for (int64_t j = 0; j < p->n; j += WIDE_COLS_##name) {                                                         \
            const int64_t cols = p->n - j < WIDE_COLS_##name ? p->n - j : WIDE_COLS_##name;                            \
            int64_t from = 0;                                                                                          \
            do {                                                                                                       \
                const int64_t depth = p->k - from < WIDE_DEPTH_##name ? p->k - from : WIDE_DEPTH_##name;               \
                const type *b = (const type *)p->b + from * p->b_row + j * p->b_col, *from_b = panel;                  \
                int64_t step = WIDE_COLS_##name, copied = depth;                                                       \
                if (p->m <= WIDE_ROWS && p->b_col == 1 && cols == WIDE_COLS_##name)                                    \
                    from_b = b, step = p->b_row, copied = 0;                                                           \
                for (int64_t k = 0; k < copied; k++, b += p->b_row) {                                                  \
                    type *to = panel + k * WIDE_COLS_##name;                                                           \
                    if (p->b_col == 1 && cols == WIDE_COLS_##name) {                                                   \
                        memcpy(to, b, 2 * FOLD_BYTES);                                                                 \
                        continue;                                                                                      \
                    }                                                                                                  \
                    for (int64_t c = 0; c < WIDE_COLS_##name; c++) to[c] = c < cols ? b[c * p->b_col] : 0;             \
                }                                                                                                      \
                int64_t i = 0;                                                                                         \
                for (; i + WIDE_ROWS <= p->m; i += WIDE_ROWS)                                                          \
                    wide_rows_##name(WIDE_ROWS, p, from_b, step, i, from, depth, j, cols);                             \
                const int64_t left = p->m - i;                                                                         \
                if (left == 1) wide_rows_##name(1, p, from_b, step, i, from, depth, j, cols);                          \
                if (left == 2) wide_rows_##name(2, p, from_b, step, i, from, depth, j, cols);                          \
                if (left == 3) wide_rows_##name(3, p, from_b, step, i, from, depth, j, cols);                          \
                from += WIDE_DEPTH_##name;                                                                             \
            } while (from < p->k);                                                                                     \
        }                                                                                                              \
    }
MATMUL_WIDE(f64, double, WIDE_FUSED)
MATMUL_WIDE(32, uint32_t, WIDE_ADD_PRODUCT)
MATMUL_WIDE(64, uint64_t, WIDE_ADD_PRODUCT)

/* A row of f32 by a matrix whose rows are adjacent elements, as the result is: terms from k on, `rows` of them, on top
 * of those before. So many rows are read side by side from end to end. */
INLINE void thin_rows(const matmul_wide *p, int64_t k, const int rows)
{
    const float *b = (const float *)p->b + k * p->b_row;
    float *y = p->y;
    vec x[THIN_ROWS];
    UNROLL for (int r = 0; r < rows; r++) x[r] = v_set(((const float *)p->a)[(k + r) * p->a_col]);
    int64_t i = 0;
    for (; i + L <= p->n; i += L) {
        vec acc = k ? v_load(y + i) : v_zero();
        UNROLL for (int r = 0; r < rows; r++) acc = v_fma_into(x[r], v_load(b + r * p->b_row + i), acc);
        v_store(y + i, acc);
    }
    if (i == p->n) return;
    const int left = (int)(p->n - i);
    vec acc = k ? v_load_n(y + i, left) : v_zero();
    UNROLL for (int r = 0; r < rows; r++) acc = v_fma_into(x[r], v_load_n(b + r * p->b_row + i, left), acc);
    v_store_n(y + i, acc, left);
}

/* The same by a matrix whose columns are: `columns` of them. */
INLINE void thin_dots(const matmul_wide *p, const float *b, float *to, const int columns)
{
    const float *a = p->a;
    vec acc[THIN_DOTS][2];
    UNROLL for (int j = 0; j < columns; j++) acc[j][0] = acc[j][1] = v_zero();
    int64_t k = 0;
    for (; k + 2 * L <= p->k; k += 2 * L) {
        const vec x = v_load(a + k), z = v_load(a + k + L);
        UNROLL for (int j = 0; j < columns; j++)
        {
            acc[j][0] = v_fma_into(x, v_load(b + j * p->b_col + k), acc[j][0]);
            acc[j][1] = v_fma_into(z, v_load(b + j * p->b_col + k + L), acc[j][1]);
        }
    }
    for (; k < p->k; k += L) {
        const int left = p->k - k < L ? (int)(p->k - k) : L;
        const vec x = v_load_n(a + k, left);
        UNROLL for (int j = 0; j < columns; j++)
            acc[j][0] = v_fma_into(x, v_load_n(b + j * p->b_col + k, left), acc[j][0]);
    }
    UNROLL for (int j = 0; j < columns; j++) to[j * p->y_col] = v_sum(v_add(acc[j][0], acc[j][1]));
}

static void matmul_thin(const matmul_wide *whole)
{
    matmul_wide p = *whole;
    if (p.m != 1) /* a column: what is left of it is right of a row */
        p = (matmul_wide){ .a = whole->b, .b = whole->a, .y = whole->y, .m = 1, .k = whole->k, .n = whole->m,
                           .a_col = whole->b_row, .b_row = whole->a_col, .b_col = whole->a_row,
                           .y_col = whole->y_row };
    const float *b = p.b;
    float *y = p.y;
    int64_t i = 0;
    if (p.b_row == 1 && p.a_col == 1 && p.k > 1) {
        for (; i + THIN_DOTS <= p.n; i += THIN_DOTS) thin_dots(&p, b + i * p.b_col, y + i * p.y_col, THIN_DOTS);
        for (; i < p.n; i++) thin_dots(&p, b + i * p.b_col, y + i * p.y_col, 1);
    } else if (p.b_col == 1 && p.y_col == 1 && p.k > 0) {
        int64_t k = 0;
        for (; k + THIN_ROWS <= p.k; k += THIN_ROWS) thin_rows(&p, k, THIN_ROWS);
        for (; k < p.k; k++) thin_rows(&p, k, 1);
        return;
    }
    for (; i < p.n; i++) {
        float sum = 0;
        for (int64_t k = 0; k < p.k; k++) sum += ((const float *)p.a)[k * p.a_col] * b[k * p.b_row + i * p.b_col];
        y[i * p.y_col] = sum;
    }
}

static const matmul_wide_set matmul_wide_loops = { matmul_wide_f64, matmul_wide_32, matmul_wide_64, matmul_thin };
