/* SPDX-License-Identifier: Apache-2.0 */
/* strassen.c - one level of Strassen's method around the register tiles of gemm_core.h.
 *
 * A work tile is the same block of all four quarters of C. It has three buffers of that block in scratch, X, Y and Z.
 * What a tile adds to is its residual operand, so the sums of C11, C12 and C21 end in the micro-kernels, with bias and
 * clip. C22 has no product of its own and ends in a loop over vectors.
 *
 * Row i of the upper half of A is added to row i of the lower half, and these two rows may belong to different
 * requests. The first phase marks rows which that would spoil. Each tile of the second phase then computes the marked
 * rows of its block again by themselves, from right factors that are packed anyhow:
 *
 *   left half: a1 B11 + a2 B21      right half: a1 B11 + a1 T1 + a2 B22      where T1 = B12 - B11 */
#include "cpu/strassen.h"

#include "base/env.h"
#include "cpu/gemm_core.h"
#include "cpu/level.h"

#include <math.h>
#include <string.h>

enum {
    FLOATS_PER_LINE = 16,
    WAY_FLOATS = 1024, /* rows at this distance compete for one set of the L1 cache */
    ROWS_EACH = 8,     /* rows of a work item of the first phase */
    PART_BYTES = 4096, /* of C that is finished at once          */
    SUMS = 4,
    COPIES = 3
};

static int64_t i64_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Floats from row to row of the sums: an odd number of lines. */
static int64_t sum_stride(int64_t k2)
{
    return (k2 + FLOATS_PER_LINE - 1) / FLOATS_PER_LINE * FLOATS_PER_LINE | FLOATS_PER_LINE;
}

static int64_t rows_of(int64_t m)
{
    return m - m / 2; /* the lower half may have one row less */
}

const char *strassen_shape_check(int64_t m, int64_t n, int64_t k)
{
    const gemm_shape s = { .m = m, .n = n, .k = k, .taps = 1 };
    const char *why = gemm_shape_check(&s);
    if (why) return why;
    if (m < 2) return "has one row";
    return n < 2 || n % 2 || k < 2 || k % 2 ? "columns or terms are not even" : NULL;
}

/* ---- the cut ---- */

typedef struct cut {
    int64_t m2, n2, k2;
    int64_t panels, width;      /* of a quarter of B */
    int64_t m_blocks, n_blocks; /* of a quarter of C */
    int64_t rows_max, cols_max; /* of a block        */
} cut;

static cut cut_of(const strassen_params *p)
{
    const gemm_tactic t = p->tactic;
    cut c = { .m2 = rows_of(p->m), .n2 = p->n / 2, .k2 = p->k / 2 };
    const gemm_grid g = gemm_grid_of(level_of(p->isa)->gemm, t, c.m2, c.n2);
    c.panels = g.panels;
    c.width = g.width;
    c.m_blocks = g.m_blocks;
    c.n_blocks = g.n_blocks;
    if (!c.panels) return c;
    c.rows_max = (c.m2 + c.m_blocks - 1) / c.m_blocks;
    c.cols_max = (c.panels + c.n_blocks - 1) / c.n_blocks * c.width;
    return c;
}

/* Marks of a pair of rows: which of the two is computed again by itself. */
enum { MARK_UPPER = 1, MARK_LOWER = 2 };

/* Floats from row to row of X, Y and Z. */
static int64_t block_stride(const cut *c)
{
    return c->cols_max | FLOATS_PER_LINE;
}

static size_t floats_size(size_t count)
{
    return size_align(size_mul(count, sizeof(float)), 64);
}

static size_t sum_size(const cut *c)
{
    return floats_size(size_mul((size_t)c->m2, (size_t)sum_stride(c->k2)));
}

static size_t block_size(const cut *c)
{
    return floats_size(size_mul((size_t)c->rows_max, (size_t)block_stride(c)));
}

size_t strassen_workspace_size(const strassen_params *p)
{
    const cut c = cut_of(p);
    return size_add(size_mul(sum_size(&c), SUMS + COPIES), size_align((size_t)c.m2, 64));
}

/* A byte of MARK_* for each row of a half, behind the sums. */
static uint8_t *marks_of(const cut *c, char *workspace)
{
    return (uint8_t *)workspace + (SUMS + COPIES) * sum_size(c);
}

size_t strassen_scratch_size(const strassen_params *p, bool has_fewer)
{
    cut c = cut_of(p);
    /* Fewer rows may be cut into larger blocks: 896 into four of 112, 784 into three of 131. */
    if (has_fewer && p->tactic.block_m) c.rows_max = i64_min(c.m2, (int64_t)p->tactic.block_m * p->tactic.rows);
    return size_mul(block_size(&c), 3);
}

int64_t strassen_tile_count(const strassen_params *p, int phase)
{
    const cut c = cut_of(p);
    return phase == 0 ? (c.m2 + ROWS_EACH - 1) / ROWS_EACH : c.m_blocks * c.n_blocks;
}

/* ---- the first phase ---- */

/* Where S1 to S4 and, where rows of A collide in the L1 cache, copies of A11, A12 and A22 begin. */
typedef struct left_factors {
    const float *at[SUMS + COPIES];
    int64_t stride[SUMS + COPIES];
} left_factors;
enum { S1, S2, S3, S4, A11, A12, A22 };

static bool rows_collide(const strassen_params *p)
{
    return p->a_row % WAY_FLOATS == 0;
}

static left_factors factors_of(const strassen_params *p, const cut *c, char *workspace)
{
    left_factors f;
    for (int i = 0; i < SUMS + COPIES; i++) {
        f.at[i] = (const float *)(const void *)(workspace + (size_t)i * sum_size(c));
        f.stride[i] = sum_stride(c->k2);
    }
    if (rows_collide(p)) return f;
    f.at[A11] = p->a;
    f.at[A12] = p->a + c->k2;
    f.at[A22] = p->a + c->m2 * p->a_row + c->k2;
    for (int i = A11; i <= A22; i++) f.stride[i] = p->a_row;
    return f;
}

static float largest(const float *x, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most;
}

/* The marks of two rows of n terms, whose sums of squares are given. lower: NULL where there is no lower row.
 *
 * FAR: a row beside one with 3 times its root mean square stays within the bound of its own size (backend/bound.h).
 * MOST: beyond it sums of rows and their products might overflow; rows with an infinity or a NaN are beyond it, too.
 * LEAST: squares below it are rounded to less than their digits, or to 0. */
static uint8_t marks_for(const float *upper, const float *lower, int64_t n, const float square[2])
{
    static const double FAR = 9, MOST = 0x1p100, LEAST = 0x1p-100;
    double u = (double)square[0], l = (double)square[1];
    if (!(u + l < MOST)) return MARK_UPPER | MARK_LOWER;
    if (!lower) return 0;
    if (u < LEAST || l < LEAST) {
        u = (double)largest(upper, n);
        l = (double)largest(lower, n);
        u *= u;
        l *= l;
    }
    return u > FAR * l ? MARK_LOWER : l > FAR * u ? MARK_UPPER : 0;
}

static void run_sums(const strassen_params *p, const cut *c, int64_t begin, int64_t end, char *workspace)
{
    const strassen_set *set = level_of(p->isa)->strassen;
    const int64_t stop = i64_min(end * ROWS_EACH, c->m2), stride = sum_stride(c->k2);
    uint8_t *marks = marks_of(c, workspace);
    for (int64_t row = begin * ROWS_EACH; row < stop; row++) {
        float *to[SUMS + COPIES], square[2];
        for (int i = 0; i < SUMS + COPIES; i++)
            to[i] = (float *)(void *)(workspace + (size_t)i * sum_size(c)) + row * stride;
        const float *upper = p->a + row * p->a_row, *lower = upper + c->m2 * p->a_row;
        strassen_row r = { .a11 = upper,
                           .a12 = upper + c->k2,
                           .a21 = lower,
                           .a22 = lower + c->k2,
                           .s = { to[S1], to[S2], to[S3], to[S4] },
                           .copy = rows_collide(p) ? to + A11 : NULL,
                           .square = square,
                           .n = c->k2 };
        const bool is_alone = row + c->m2 >= p->m;
        if (is_alone) { /* the lower half has no such row: zeros */
            memset(to[S1], 0, (size_t)c->k2 * sizeof(float));
            r.a21 = r.a22 = to[S1];
        }
        set->sums(&r);
        marks[row] = marks_for(upper, is_alone ? NULL : lower, 2 * c->k2, square);
    }
}

/* ---- the second phase ---- */

typedef struct block {
    const strassen_params *p;
    const cut *c;
    const left_factors *a;
    int64_t row, rows, lower; /* of the upper half; how many of them the lower half has */
    int64_t col, cols;
    int64_t panel, stride; /* of X, Y and Z */
    float *x, *y, *z;
    const uint8_t *marks;
    const int64_t *again; /* NULL, or rows of A in place of those from `row` on, whose halves are the left factors */
    void *post_user;
} block;

/* Element (row, col) of quarter (down, right) of C, and its place in the residual and the bias. */
static float *quarter_at(const block *k, int64_t row, int64_t col, int down, int right)
{
    return k->p->c + (row + down * k->c->m2) * k->p->ldc + col + right * k->c->n2;
}
static const float *residual_at(const block *k, int64_t row, int64_t col, int down, int right)
{
    const gemm_epilogue *e = &k->p->epilogue;
    return e->residual ? e->residual + (row + down * k->c->m2) * e->ldr + col + right * k->c->n2 : NULL;
}
static const float *bias_at(const block *k, int64_t col, int right)
{
    const gemm_epilogue *e = &k->p->epilogue;
    return e->bias ? e->bias + col + right * k->c->n2 : NULL;
}

/* A product of the block: left factor `a`, right factor `b`, and a matrix like X that is added, or NULL. */
typedef struct step {
    int a, b;
    const float *add;
    float *to; /* a matrix like X; NULL: quarter (down, right) of C, with the epilogue */
    int down, right;
    bool ends; /* to is Z: then X += Z, and C22 = Y + Z with the epilogue */
    int next;  /* the right factor of the next product; of the next block where it is F_B11 */
} step;

/* Rows [row, row + rows) and columns [col, col + cols) of the block were computed, and are still in the L1 cache. */
static void part_end(const block *k, const step *s, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const strassen_params *p = k->p;
    const gemm_epilogue *e = &p->epilogue;
    const int64_t at = row * k->stride + col, m_at = k->row + row, n_at = k->col + col;
    int64_t done = rows;
    if (s->ends) {
        done = i64_min(rows, k->lower - row);
        const strassen_end end = { .z = k->z + at,
                                   .y = k->y + at,
                                   .x = k->x + at,
                                   .c = done > 0 ? quarter_at(k, m_at, n_at, 1, 1) : NULL,
                                   .bias = bias_at(k, n_at, 1),
                                   .residual = done > 0 ? residual_at(k, m_at, n_at, 1, 1) : NULL,
                                   .ld = k->stride,
                                   .ldc = p->ldc,
                                   .ldr = e->ldr,
                                   .rows = done,
                                   .cols = cols,
                                   .clip = e->clip,
                                   .lo = e->lo,
                                   .hi = e->hi };
        if (done > 0) level_of(p->isa)->strassen->end(&end);
    }
    if (!e->post || done <= 0 || (s->to && !s->ends)) return;
    const int down = s->ends ? 1 : s->down, right = s->ends ? 1 : s->right;
    e->post(k->post_user, 0, m_at + down * k->c->m2, done, n_at + right * k->c->n2, cols,
            quarter_at(k, m_at, n_at, down, right), p->ldc);
}

/* Of the left factor, from row `row` of the block on, and how far one row is from the next. */
static void step_rows(const block *k, const step *s, int64_t row, int32_t rows, const void **at)
{
    const int64_t stride = k->a->stride[s->a];
    const float *first = k->a->at[s->a] + (k->row + row) * stride;
    for (int32_t r = 0; r < rows; r++)
        at[r] =
            k->again ? k->p->a + k->again[row + r] * k->p->a_row + (s->a == A12 ? k->c->k2 : 0) : first + r * stride;
}

static void run_step(const block *k, step s)
{
    const strassen_params *p = k->p;
    const gemm_tile_set *set = level_of(p->isa)->gemm;
    const gemm_epilogue *e = &p->epilogue;
    const int64_t rows = s.down ? k->lower : k->rows, k2 = k->c->k2;
    gemm_tactic own = p->tactic;
    own.block_m = own.block_n = 0;
    const gemm_grid g = gemm_grid_of(set, own, rows, k->c->n2);
    const size_t each = gemm_pack_size(p->isa, own, 1, k2, k->c->n2) / sizeof(float);
    const int64_t panel_end = k->panel + (k->cols + g.width - 1) / g.width,
                  begin = gemm_panel_at(&g, 1, k2, k->c->n2, k->panel),
                  end = gemm_panel_at(&g, 1, k2, k->c->n2, panel_end), next_lines = gemm_next_lines(g.width, g.m_tiles),
                  each_next = gemm_next_bytes(next_lines, 1, k2);
    const float *panels = p->b + (size_t)s.b * each + begin;
    /* The tiles of this product prefetch the panels of the next one. */
    const bool is_last = s.next == F_B11;
    const char *next = (const char *)(p->b + (size_t)s.next * each + (is_last ? end : begin));
    int64_t next_left = is_last && panel_end >= g.panels ? 0 : (end - begin) * (int64_t)sizeof(float);
    for (int64_t i = 0, row = 0; i < g.m_tiles; i++) {
        const int32_t high = (int32_t)(g.rows_small + (i < g.rows_extra));
        const float *b = panels;
        const void *at[GEMM_UNIT_ROWS];
        step_rows(k, &s, row, high, at);
        gemm_tile t = { .a = at,
                        .ldc = s.to ? k->stride : p->ldc,
                        .ldr = k->stride,
                        .taps = 1,
                        .k = k2,
                        .ahead = k->again ? 0 : k->a->stride[s.a] * high * (int64_t)sizeof(float),
                        .next_lines = next_lines,
                        .rows = high,
                        .flags = !s.to && e->clip ? GEMM_TILE_CLIP : 0u,
                        .lo = e->lo,
                        .hi = e->hi };
        float *to = s.to ? s.to + row * k->stride : quarter_at(k, k->row + row, k->col, s.down, s.right);
        const float *bias = s.to ? NULL : bias_at(k, k->col, s.right), *add = s.add ? s.add + row * k->stride : NULL;
        for (int64_t col = 0, done = 0; col < k->cols; col += g.width) {
            t.cols = (int32_t)i64_min(k->cols - col, g.width);
            const int64_t vectors = (t.cols + g.lanes - 1) / g.lanes;
            t.b = b;
            t.c = to + col;
            t.bias = bias ? bias + col : NULL;
            t.residual = add ? add + col : NULL;
            t.next = next_left > 0 ? next : NULL;
            set->run[vectors - 1][high - 1](&t);
            t.ahead = 0;
            next += each_next;
            next_left -= each_next;
            b += k2 * vectors * g.lanes;
            const int64_t to_col = i64_min(col + g.width, k->cols);
            if (to_col < k->cols && (to_col - done) * high * (int64_t)sizeof(float) < PART_BYTES) continue;
            part_end(k, &s, row, high, done, to_col - done);
            done = to_col;
        }
        row += high;
    }
}

/* to = x + the epilogue's residual of quarter (down, right). */
static void add_residual(const block *k, float *to, const float *x, int down, int right)
{
    const strassen_sum sum = { .to = to,
                               .x = x,
                               .y = residual_at(k, k->row, k->col, down, right),
                               .ld = k->stride,
                               .ldy = k->p->epilogue.ldr,
                               .rows = down ? k->lower : k->rows,
                               .cols = k->cols };
    level_of(k->p->isa)->strassen->add(&sum);
}

static void run_block(const block *k)
{
    const bool adds = k->p->epilogue.residual != NULL;
    run_step(k, (step){ .a = A11, .b = F_B11, .to = k->x, .next = F_B21 });
    if (adds) add_residual(k, k->y, k->x, 0, 0);
    run_step(k, (step){ .a = A12, .b = F_B21, .add = adds ? k->y : k->x, .next = F_T2 }); /* C11 */
    run_step(k, (step){ .a = S2, .b = F_T2, .add = k->x, .to = k->x, .next = F_T1 });
    run_step(k, (step){ .a = S1, .b = F_T1, .add = k->x, .to = k->y, .next = F_T3 });
    run_step(k, (step){ .a = S3, .b = F_T3, .to = k->z, .ends = true, .next = F_B22 }); /* C22 */
    if (adds) add_residual(k, k->y, k->y, 0, 1);
    run_step(k, (step){ .a = S4, .b = F_B22, .add = k->y, .right = 1, .next = F_T4 }); /* C12 */
    if (k->lower <= 0) return;
    if (adds) add_residual(k, k->x, k->x, 1, 0);
    run_step(k, (step){ .a = A22, .b = F_T4, .add = k->x, .down = 1, .next = F_B11 }); /* C21 */
}

/* ---- rows by themselves ---- */

/* a1 B12 of row `row` of A where a1 has infinities: these terms alone count, and of B12 its signs. The sum of B11 and
 * T1 has the sign of B12 or is 0, which it may be where B12 is less than half of what T1 rounds by; B22 - T3, too. */
static void run_infinite(const block *k, int64_t row, float *y)
{
    const strassen_params *p = k->p;
    const float *a = p->a + row * p->a_row;
    gemm_tactic own = p->tactic;
    own.block_m = own.block_n = 0;
    const gemm_grid g = gemm_grid_of(level_of(p->isa)->gemm, own, 1, k->c->n2);
    const size_t each = gemm_pack_size(p->isa, own, 1, k->c->k2, k->c->n2) / sizeof(float);
    bool is_first = true;
    for (int64_t i = 0; i < k->c->k2; i++) {
        if (isfinite(a[i])) continue;
        if (is_first) memset(y, 0, (size_t)k->cols * sizeof(float));
        is_first = false;
        const float *b = p->b + gemm_panel_at(&g, 1, k->c->k2, k->c->n2, k->panel);
        for (int64_t col = 0; col < k->cols; col += g.width) {
            const int64_t cols = i64_min(k->cols - col, g.width), width = (cols + g.lanes - 1) / g.lanes * g.lanes;
            const float *b11 = b + F_B11 * each + i * width, *t1 = b + F_T1 * each + i * width;
            const float *b22 = b + F_B22 * each + i * width, *t3 = b + F_T3 * each + i * width;
            for (int64_t j = 0; j < cols; j++) {
                const float b12 = b11[j] + t1[j];
                y[col + j] += a[i] * (b12 != 0 ? b12 : b22[j] - t3[j]);
            }
            b += k->c->k2 * width;
        }
    }
}

/* Rows of one half of C from rows like X: the sum of k->y and k->z, with the epilogue. */
static void end_again(const block *k, int right)
{
    const strassen_params *p = k->p;
    const gemm_epilogue *e = &p->epilogue;
    for (int64_t i = 0; i < k->rows; i++) {
        const int64_t row = k->again[i], col = k->col + right * k->c->n2;
        float *c = p->c + row * p->ldc + col;
        const strassen_end end = { .z = k->z + i * k->stride,
                                   .y = k->y + i * k->stride,
                                   .x = k->z + i * k->stride,
                                   .c = c,
                                   .bias = e->bias ? e->bias + col : NULL,
                                   .residual = e->residual ? e->residual + row * e->ldr + col : NULL,
                                   .rows = 1,
                                   .cols = k->cols,
                                   .clip = e->clip,
                                   .lo = e->lo,
                                   .hi = e->hi };
        level_of(p->isa)->strassen->end(&end);
        if (e->post) e->post(k->post_user, 0, row, 1, col, k->cols, c, p->ldc);
    }
}

/* Rows again[0] to again[count - 1] of the block's columns. */
static void run_again(const block *from, const int64_t *again, int64_t count)
{
    block k = *from;
    k.again = again;
    k.rows = count;
    run_step(&k, (step){ .a = A11, .b = F_B11, .to = k.y });
    run_step(&k, (step){ .a = A12, .b = F_B21, .to = k.z });
    end_again(&k, 0);
    run_step(&k, (step){ .a = A11, .b = F_T1, .add = k.y, .to = k.y });
    run_step(&k, (step){ .a = A12, .b = F_B22, .to = k.z });
    for (int64_t i = 0; i < count; i++) run_infinite(&k, again[i], k.y + i * k.stride);
    end_again(&k, 1);
}

/* The marked rows of the block, as many at once as a register tile takes. */
static void run_marked(const block *k)
{
    int64_t again[GEMM_UNIT_ROWS], count = 0;
    const int64_t most = i64_min(k->p->tactic.rows, k->c->rows_max);
    for (int64_t i = 0; i < k->rows; i++)
        for (int down = 0; down < 2 && k->marks[k->row + i]; down++) {
            if (!(k->marks[k->row + i] & (down ? MARK_LOWER : MARK_UPPER)) || (down && i >= k->lower)) continue;
            again[count++] = k->row + i + down * k->c->m2;
            if (count < most) continue;
            run_again(k, again, count);
            count = 0;
        }
    if (count) run_again(k, again, count);
}

void strassen_run(const strassen_params *p, int phase, int64_t begin, int64_t end, void *workspace, void *scratch,
                  void *post_user)
{
    const cut c = cut_of(p);
    if (phase == 0) {
        run_sums(p, &c, begin, end, workspace);
        return;
    }
    const left_factors a = factors_of(p, &c, workspace);
    char *blocks = scratch;
    block k = { .p = p,
                .c = &c,
                .a = &a,
                .stride = block_stride(&c),
                .x = (float *)(void *)blocks,
                .y = (float *)(void *)(blocks + block_size(&c)),
                .z = (float *)(void *)(blocks + 2 * block_size(&c)),
                .marks = marks_of(&c, workspace),
                .post_user = post_user };
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t m_block = tile % c.m_blocks, n_block = tile / c.m_blocks;
        k.row = c.m2 * m_block / c.m_blocks;
        k.rows = c.m2 * (m_block + 1) / c.m_blocks - k.row;
        k.lower = i64_min(k.rows, p->m - c.m2 - k.row);
        k.panel = c.panels * n_block / c.n_blocks;
        k.col = k.panel * c.width;
        k.cols = i64_min(c.panels * (n_block + 1) / c.n_blocks * c.width, c.n2) - k.col;
        run_block(&k);
        run_marked(&k);
    }
}
