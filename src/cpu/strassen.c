/* SPDX-License-Identifier: Apache-2.0 */
/* strassen.c - seven products of quarters around the core of matrix products.
 *
 * Phase 0 takes the sums of A. Phase 1 cuts a quarter of C into tiles. A tile makes the same part of all four quarters:
 * products that several quarters need go to the worker's scratch, which stays in its L2 cache, and most additions are
 * the residual of a micro-kernel's store. */
#include "cpu/strassen.h"
#include "base/env.h"
#include "cpu/gemm_core.h"
#include "cpu/level.h"
#include <string.h>

enum { SUM_ROWS = 8, FLOATS_PER_LINE = 16, COLLIDE_FLOATS = 256, TILE_ROWS = 128 };

static int64_t i64_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Floats from one row of sums or products to the next: whole lines, and no distance at which rows share an L1 set. */
static int64_t row_size(int64_t count)
{
    const int64_t size = ceil_div(count, FLOATS_PER_LINE) * FLOATS_PER_LINE;
    return size % COLLIDE_FLOATS ? size : size + FLOATS_PER_LINE;
}

const char *strassen_check(int64_t m, int64_t n, int64_t k)
{
    const gemm_shape s = { .m = m, .n = n, .k = k, .taps = 1 };
    if (gemm_shape_check(&s)) return gemm_shape_check(&s);
    return n < 2 || n % 2 || k < 2 || k % 2 ? "K or N is odd" : NULL;
}

const char *strassen_tactic_check(isa_level isa, int64_t m, int64_t n, int64_t k, gemm_tactic t)
{
    const gemm_shape s = { .m = (m + 1) / 2, .n = n / 2, .k = k / 2, .taps = 1, .a_row = k, .a_col = 1 };
    return gemm_tactic_check(isa, &s, t);
}

int strassen_tactics(isa_level isa, int64_t m, int64_t n, int64_t k, gemm_tactic out[STRASSEN_TACTICS_MAX])
{
    gemm_tactic list[GEMM_TACTICS_MAX];
    const gemm_shape s = { .m = (m + 1) / 2, .n = n / 2, .k = k / 2, .taps = 1, .a_row = k, .a_col = 1 };
    const int found = gemm_tactics(isa, &s, list);
    int count = 0;
    for (int i = 0; i < found && count < STRASSEN_TACTICS_MAX; i++) {
        gemm_tactic t = list[i];
        t.block_m = s.m > TILE_ROWS * 3 / 2 ? (uint16_t)(TILE_ROWS / t.rows) : 0;
        out[count++] = t;
    }
    return count;
}

double strassen_cost(isa_level isa, int64_t m, int64_t n, int64_t k, gemm_tactic t)
{
    static const double vector_ns = 0.15, ops_of_sums = 16, ops_of_products = 12;
    const gemm_shape s = { .m = (m + 1) / 2, .n = n / 2, .k = k / 2, .taps = 1, .a_row = k, .a_col = 1 };
    const double lanes = level_of(isa)->gemm->lanes;
    const double sums = (double)s.m * (double)s.k * ops_of_sums, products = (double)s.m * (double)s.n * ops_of_products;
    return STRASSEN_PRODUCTS * gemm_cost(isa, &s, t) + vector_ns * (sums + products) / lanes;
}

/* ---- B ---- */

/* In the order of use. */
enum { BY_B11, BY_B21, BY_T2, BY_T3, BY_T1, BY_T4, BY_B22 };

size_t strassen_pack_size(isa_level isa, gemm_tactic t, int64_t n, int64_t k)
{
    return size_mul(gemm_pack_size(isa, t, 1, k / 2, n / 2), STRASSEN_PRODUCTS);
}

void strassen_pack(isa_level isa, gemm_tactic t, int64_t n, int64_t k, const float *b, int64_t row, int64_t col,
                   float *dst)
{
    const int64_t half_n = n / 2, half_k = k / 2;
    const gemm_grid g = gemm_grid_of(level_of(isa)->gemm, t, 1, half_n);
    const size_t part = gemm_pack_size(isa, t, 1, half_k, half_n) / sizeof(float);
    memset(dst, 0, strassen_pack_size(isa, t, n, k));
    for (int64_t panel = 0; panel < g.panels; panel++) {
        const int64_t first = panel * g.width, cols = i64_min(half_n - first, g.width);
        const int64_t width = ceil_div(cols, g.lanes) * g.lanes;
        float *to = dst + gemm_panel_at(&g, 1, half_k, half_n, panel);
        for (int64_t i = 0; i < half_k; i++, to += width) {
            for (int64_t j = 0; j < cols; j++) {
                const float *from = b + i * row + (first + j) * col;
                const double b11 = (double)from[0], b12 = (double)from[half_n * col];
                const double b21 = (double)from[half_k * row], b22 = (double)from[half_k * row + half_n * col];
                const double t1 = b12 - b11, t2 = b22 - t1;
                const double all[STRASSEN_PRODUCTS] = {
                    [BY_B11] = b11, [BY_B21] = b21,     [BY_T2] = t2,   [BY_T3] = b22 - b12,
                    [BY_T1] = t1,   [BY_T4] = b21 - t2, [BY_B22] = b22,
                };
                for (size_t p = 0; p < STRASSEN_PRODUCTS; p++) to[p * part + (size_t)j] = (float)all[p];
            }
        }
    }
}

/* ---- memory and work items ---- */

static int64_t high_of(const strassen_params *p) /* rows of the upper quarters */
{
    return p->m / 2 + p->m % 2;
}

static gemm_grid grid_of(const strassen_params *p)
{
    return gemm_grid_of(level_of(p->isa)->gemm, p->tactic, high_of(p), p->n / 2);
}

/* Floats of one of the four sums. */
static size_t sum_size(const strassen_params *p)
{
    return size_mul((size_t)high_of(p), (size_t)row_size(p->k / 2));
}

size_t strassen_workspace_size(const strassen_params *p)
{
    return size_align(size_mul(sum_size(p), 4 * sizeof(float)), 64);
}

/* Rows and columns of the largest tile. */
static int64_t tile_rows(const strassen_params *p)
{
    return p->tactic.block_m ? i64_min(high_of(p), (int64_t)p->tactic.block_m * p->tactic.rows) : high_of(p);
}
static int64_t tile_cols(const strassen_params *p)
{
    const int64_t width = (int64_t)p->tactic.vectors * level_of(p->isa)->gemm->lanes;
    return p->tactic.block_n ? i64_min(p->n / 2, p->tactic.block_n * width) : p->n / 2;
}

static size_t core_size(const strassen_params *p)
{
    return size_align(gemm_core_scratch_size(level_of(p->isa)->gemm, p->tactic, 1, p->k / 2, false), 64);
}

static size_t held_size(const strassen_params *p)
{
    return size_mul((size_t)tile_rows(p), (size_t)row_size(tile_cols(p)));
}

size_t strassen_scratch_size(const strassen_params *p)
{
    return size_align(size_add(core_size(p), size_mul(held_size(p), 3 * sizeof(float))), 64);
}

int64_t strassen_tile_count(const strassen_params *p, int phase)
{
    if (phase == 0) return ceil_div(high_of(p), SUM_ROWS);
    const gemm_grid g = grid_of(p);
    return g.m_blocks * g.n_blocks;
}

/* ---- one tile ---- */

typedef struct tile {
    const strassen_params *p;
    const strassen_set *loops;
    int64_t row, rows, low_rows; /* of the quarter; low_rows: rows that lower quarters have */
    int64_t col, cols;
    const float *b; /* of the first product; the others are `b_part` floats apart */
    size_t b_part;
    float *x, *y, *z;
    int64_t held; /* from one row of x, y and z to the next */
    void *scratch, *user;
    int64_t row_at, col_at; /* of C, while a quarter is finished */
} tile;

typedef struct matrix {
    const float *at;
    int64_t row;
} matrix;

static void rows_fill(const void *source, int64_t row, int32_t rows, const void **out)
{
    const matrix *a = source;
    for (int32_t i = 0; i < rows; i++) out[i] = a->at + (row + i) * a->row;
}

static void product(const tile *t, matrix a, int64_t rows, int by, float *c, int64_t ldc, const float *bias,
                    const float *add, const gemm_epilogue *e)
{
    if (rows == 0) return;
    gemm_tactic tactic = t->p->tactic;
    tactic.block_m = tactic.block_n = 0;
    const gemm_tile_set *set = level_of(t->p->isa)->gemm;
    const gemm_grid g = gemm_grid_of(set, tactic, rows, t->cols);
    const gemm_core core = {
        .set = set,
        .tactic = tactic,
        .rows = rows_fill,
        .source = &a,
        .m = rows,
        .n = t->cols,
        .k = t->p->k / 2,
        .taps = 1,
        .a_row = a.row,
        .a_col = 1,
        .b = t->b + (size_t)by * t->b_part,
        .c = c,
        .ldc = ldc,
        .bias = bias,
        .residual = add,
        .epilogue = e,
    };
    gemm_core_block(&core, &g, 0, 0, 0, t->scratch, (void *)(uintptr_t)t);
}

/* Rows [row, row + rows) x [col, col + cols) of a quarter of C are sums with bias: what is left of the epilogue. */
static void finish(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, void *at,
                   int64_t ldc)
{
    (void)batch;
    const tile *t = user;
    float *c = at;
    const gemm_epilogue *e = &t->p->epilogue;
    const int64_t at_row = t->row_at + row, at_col = t->col_at + col;
    for (int64_t i = 0; e->residual && i < rows; i++)
        t->loops->add(c + i * ldc, e->residual + (at_row + i) * e->ldr + at_col, cols, e->clip, e->lo, e->hi);
    if (e->post) e->post(t->user, 0, at_row, rows, at_col, cols, c, ldc);
}

/* A quarter of C, of which `add` is what other products make of it. */
static void quarter(tile *t, matrix a, int64_t rows, int by, bool is_low, bool is_right, const float *add)
{
    const strassen_params *p = t->p;
    const gemm_epilogue *e = &p->epilogue;
    const gemm_epilogue own = { .ldr = t->held,
                                .clip = e->clip && !e->residual,
                                .lo = e->lo,
                                .hi = e->hi,
                                .post = e->residual || e->post ? finish : NULL };
    t->row_at = t->row + (is_low ? high_of(p) : 0);
    t->col_at = t->col + (is_right ? p->n / 2 : 0);
    product(t, a, rows, by, p->c + t->row_at * p->ldc + t->col_at, p->ldc, e->bias ? e->bias + t->col_at : NULL, add,
            &own);
}

/* z is final there: x += z, and C22 = y + z. */
static void middle(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, void *sums,
                   int64_t ldz)
{
    (void)batch;
    const tile *t = user;
    const float *z = sums;
    const strassen_params *p = t->p;
    const gemm_epilogue *e = &p->epilogue;
    const int64_t at_row = high_of(p) + t->row + row, at_col = p->n / 2 + t->col + col;
    int64_t there = t->low_rows - row;
    there = there < 0 ? 0 : i64_min(there, rows);
    float *c = p->c + at_row * p->ldc + at_col;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = (row + i) * t->held + col;
        const strassen_row r = {
            .count = cols,
            .x = t->x + at,
            .c = i < there ? c + i * p->ldc : NULL,
            .y = t->y + at,
            .z = z + i * ldz,
            .bias = e->bias ? e->bias + at_col : NULL,
            .residual = e->residual && i < there ? e->residual + (at_row + i) * e->ldr + at_col : NULL,
            .clip = e->clip,
            .lo = e->lo,
            .hi = e->hi,
        };
        t->loops->middle(&r);
    }
    if (e->post && there) e->post(t->user, 0, at_row, there, at_col, cols, c, p->ldc);
}

static void tile_run(tile *t, const float *sums)
{
    const strassen_params *p = t->p;
    const int64_t half_k = p->k / 2, part = (int64_t)sum_size(p), sum_row = row_size(half_k);
    const float *a11 = p->a + t->row * p->a_row, *a22 = a11 + high_of(p) * p->a_row + half_k;
    const matrix a[2] = { { a11, p->a_row }, { a11 + half_k, p->a_row } };
    matrix s[4];
    for (int i = 0; i < 4; i++) s[i] = (matrix){ sums + i * part + t->row * sum_row, sum_row };
    const gemm_epilogue plain = { .ldr = t->held }, with_middle = { .ldr = t->held, .post = middle };
    product(t, a[0], t->rows, BY_B11, t->x, t->held, NULL, NULL, &plain);
    quarter(t, a[1], t->rows, BY_B21, false, false, t->x);
    product(t, s[1], t->rows, BY_T2, t->x, t->held, NULL, t->x, &plain);
    product(t, s[2], t->rows, BY_T3, t->y, t->held, NULL, t->x, &plain);
    product(t, s[0], t->rows, BY_T1, t->z, t->held, NULL, NULL, &with_middle);
    if (t->low_rows) quarter(t, (matrix){ a22, p->a_row }, t->low_rows, BY_T4, true, false, t->y);
    quarter(t, s[3], t->rows, BY_B22, false, true, t->x);
}

static void sums_run(const strassen_params *p, int64_t begin, int64_t end, float *sums)
{
    const int64_t high = high_of(p), half_k = p->k / 2, row = row_size(half_k), last = i64_min(end * SUM_ROWS, high);
    const int64_t part = (int64_t)sum_size(p);
    for (int64_t i = begin * SUM_ROWS; i < last; i++) {
        const float *up = p->a + i * p->a_row, *low = high + i < p->m ? up + high * p->a_row : NULL;
        level_of(p->isa)->strassen->sums(up, up + half_k, low, low ? low + half_k : NULL, half_k, sums + i * row, part);
    }
}

void strassen_run(const strassen_params *p, int phase, int64_t begin, int64_t end, void *workspace, void *scratch,
                  void *post_user)
{
    if (begin >= end) return;
    if (phase == 0) {
        sums_run(p, begin, end, workspace);
        return;
    }
    const gemm_grid g = grid_of(p);
    const int64_t low = p->m - high_of(p);
    float *held = (float *)(void *)((char *)scratch + core_size(p));
    for (int64_t i = begin; i < end; i++) {
        const int64_t m_block = i % g.m_blocks, n_block = i / g.m_blocks;
        const int64_t tiles[] = { g.m_tiles * m_block / g.m_blocks, g.m_tiles * (m_block + 1) / g.m_blocks };
        const int64_t panels[] = { g.panels * n_block / g.n_blocks, g.panels * (n_block + 1) / g.n_blocks };
        tile t = { .p = p,
                   .loops = level_of(p->isa)->strassen,
                   .row = tiles[0] * g.rows_small + i64_min(tiles[0], g.rows_extra),
                   .col = panels[0] * g.width,
                   .b = p->b + gemm_panel_at(&g, 1, p->k / 2, p->n / 2, panels[0]),
                   .b_part = gemm_pack_size(p->isa, p->tactic, 1, p->k / 2, p->n / 2) / sizeof(float),
                   .x = held,
                   .y = held + held_size(p),
                   .z = held + 2 * held_size(p),
                   .held = row_size(tile_cols(p)),
                   .scratch = scratch,
                   .user = post_user };
        t.rows = tiles[1] * g.rows_small + i64_min(tiles[1], g.rows_extra) - t.row;
        t.cols = i64_min(panels[1] * g.width, p->n / 2) - t.col;
        t.low_rows = low > t.row ? i64_min(t.rows, low - t.row) : 0;
        tile_run(&t, workspace);
    }
}
