/* SPDX-License-Identifier: Apache-2.0 */
/* strassen.c - one level of Strassen's method around the register tiles of gemm_core.h.
 *
 * A work tile is the same block of all four quarters of C. It has three buffers of that block in scratch, X, Y and Z.
 * What a tile adds to is its residual operand, so the sums of C11, C12 and C21 end in the micro-kernels, with bias and
 * clip. C22 has no product of its own and ends in a loop over vectors. */
#include "cpu/strassen.h"

#include "base/env.h"
#include "cpu/gemm_core.h"
#include "cpu/level.h"
#include <string.h>

enum {
    FLOATS_PER_LINE = 16,
    WAY_FLOATS = 1024, /* rows at this distance compete for one set of the L1 cache */
    ROWS_EACH = 8,     /* rows of a work item of the first phase */
    SUMS = 4,
    COPIES = 3,
    CACHE_USUAL = 1 << 20
};

/* The right factors in their order in a packed B. */
enum { F_B11, F_B21, F_T2, F_T3, F_T1, F_B22, F_T4 };

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

static gemm_shape quarter_of(int64_t m, int64_t n, int64_t k)
{
    return (gemm_shape){ .m = rows_of(m), .n = n / 2, .k = k / 2, .taps = 1, .a_row = sum_stride(k / 2), .a_col = 1 };
}

const char *strassen_tactic_check(isa_level isa, int64_t m, int64_t n, int64_t k, gemm_tactic t)
{
    if (t.copy_a || t.ahead || t.unit != GEMM_F32) return "reserved bits are set";
    const gemm_shape s = quarter_of(m, n, k);
    return gemm_tactic_check(isa, &s, t);
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
    return size_mul(sum_size(&c), SUMS + COPIES);
}

static size_t core_size(const strassen_params *p)
{
    return gemm_core_scratch_size(level_of(p->isa)->gemm, p->tactic, 1, p->k / 2, false);
}

size_t strassen_scratch_size(const strassen_params *p)
{
    const cut c = cut_of(p);
    return size_add(core_size(p), size_mul(block_size(&c), 3));
}

int64_t strassen_tile_count(const strassen_params *p, int phase)
{
    const cut c = cut_of(p);
    return phase == 0 ? (c.m2 + ROWS_EACH - 1) / ROWS_EACH : c.m_blocks * c.n_blocks;
}

/* ---- B ---- */

size_t strassen_pack_size(isa_level isa, gemm_tactic t, int64_t n, int64_t k)
{
    return size_mul(gemm_pack_size(isa, t, 1, k / 2, n / 2), STRASSEN_FACTORS);
}

void strassen_pack(isa_level isa, gemm_tactic t, int64_t n, int64_t k, const float *src, int64_t row_stride,
                   int64_t col_stride, float *dst)
{
    const int64_t n2 = n / 2, k2 = k / 2, right = n2 * col_stride, below = k2 * row_stride;
    const gemm_grid g = gemm_grid_of(level_of(isa)->gemm, t, 1, n2);
    const size_t each = gemm_pack_size(isa, t, 1, k2, n2) / sizeof(float);
    memset(dst, 0, each * STRASSEN_FACTORS * sizeof(float));
    for (int64_t panel = 0; panel < g.panels; panel++) {
        const int64_t col = panel * g.width, cols = i64_min(n2 - col, g.width);
        const int64_t width = (cols + g.lanes - 1) / g.lanes * g.lanes;
        float *to = dst + gemm_panel_at(&g, 1, k2, n2, panel);
        for (int64_t i = 0; i < k2; i++, to += width) {
            const float *from = src + i * row_stride + col * col_stride;
            for (int64_t j = 0; j < cols; j++, from += col_stride) {
                const double b11 = (double)from[0], b12 = (double)from[right], b21 = (double)from[below],
                             b22 = (double)from[below + right], t1 = b12 - b11, t2 = b22 - t1;
                const double factor[STRASSEN_FACTORS] = {
                    [F_B11] = b11,      [F_B21] = b21, [F_T2] = t2,       [F_T3] = b22 - b12,
                    [F_T1] = b12 - b11, [F_B22] = b22, [F_T4] = b21 - t2,
                };
                for (size_t f = 0; f < STRASSEN_FACTORS; f++) to[f * each + (size_t)j] = (float)factor[f];
            }
        }
    }
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

static void run_sums(const strassen_params *p, const cut *c, int64_t begin, int64_t end, char *workspace)
{
    const strassen_set *set = level_of(p->isa)->strassen;
    const int64_t stop = i64_min(end * ROWS_EACH, c->m2), stride = sum_stride(c->k2);
    for (int64_t row = begin * ROWS_EACH; row < stop; row++) {
        float *to[SUMS + COPIES];
        for (int i = 0; i < SUMS + COPIES; i++)
            to[i] = (float *)(void *)(workspace + (size_t)i * sum_size(c)) + row * stride;
        const float *upper = p->a + row * p->a_row, *lower = upper + c->m2 * p->a_row;
        strassen_row r = { .a11 = upper,
                           .a12 = upper + c->k2,
                           .a21 = lower,
                           .a22 = lower + c->k2,
                           .s = { to[S1], to[S2], to[S3], to[S4] },
                           .copy = rows_collide(p) ? to + A11 : NULL,
                           .n = c->k2 };
        if (row + c->m2 >= p->m) { /* the lower half has no such row: zeros */
            memset(to[S1], 0, (size_t)c->k2 * sizeof(float));
            r.a21 = r.a22 = to[S1];
        }
        set->sums(&r);
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
    void *scratch, *post_user;
} block;

typedef struct factor_rows {
    const float *at;
    int64_t stride;
} factor_rows;

static void rows_fill(const void *source, int64_t row, int32_t rows, const void **out)
{
    const factor_rows *s = source;
    for (int32_t i = 0; i < rows; i++) out[i] = s->at + (row + i) * s->stride;
}

/* The product of left factor `a` and right factor `b`. to NULL: quarter (down, right) of C, with the epilogue. */
static void product(const block *k, int a, int b, const float *add, float *to, int down, int right)
{
    static const gemm_epilogue none = { 0 };
    const strassen_params *p = k->p;
    const gemm_tile_set *set = level_of(p->isa)->gemm;
    const int64_t rows = down ? k->lower : k->rows, row = k->row + down * k->c->m2, col = k->col + right * k->c->n2;
    if (rows <= 0) return;
    gemm_tactic t = p->tactic;
    t.block_m = t.block_n = 0;
    const gemm_grid g = gemm_grid_of(set, t, rows, k->cols), whole = gemm_grid_of(set, t, rows, k->c->n2);
    gemm_epilogue e = to ? none : p->epilogue;
    e.ldr = k->stride;
    const size_t each = gemm_pack_size(p->isa, t, 1, k->c->k2, k->c->n2) / sizeof(float);
    const factor_rows source = { k->a->at[a] + k->row * k->a->stride[a], k->a->stride[a] };
    const gemm_core core = {
        .set = set,
        .tactic = t,
        .rows = rows_fill,
        .source = &source,
        .m = rows,
        .n = k->cols,
        .k = k->c->k2,
        .taps = 1,
        .a_row = source.stride,
        .a_col = 1,
        .b = p->b + (size_t)b * each + gemm_panel_at(&whole, 1, k->c->k2, k->c->n2, k->panel),
        .c = to ? to : p->c + row * p->ldc + col,
        .ldc = to ? k->stride : p->ldc,
        .bias = !to && e.bias ? e.bias + col : NULL,
        .residual = add,
        .epilogue = &e,
        .row = row,
        .col = col,
    };
    gemm_core_block(&core, &g, 0, 0, 0, k->scratch, k->post_user);
}

/* to = x + y for rows of the block; y NULL: + the epilogue's residual of quarter (down, right). */
static void add_rows(const block *k, float *to, const float *x, const float *y, int down, int right)
{
    const strassen_params *p = k->p;
    const strassen_set *set = level_of(p->isa)->strassen;
    const int64_t rows = down ? k->lower : k->rows, ldy = y ? k->stride : p->epilogue.ldr;
    if (!y)
        y = p->epilogue.residual + (k->row + down * k->c->m2) * p->epilogue.ldr + k->col + right * k->c->n2;
    for (int64_t i = 0; i < rows; i++) {
        const strassen_end e = { .c = to + i * k->stride, .x = x + i * k->stride, .y = y + i * ldy, .n = k->cols };
        set->end(&e);
    }
}

/* C22 = x + y, with the epilogue, a few rows at a time. */
static void end_block(const block *k)
{
    const strassen_params *p = k->p;
    const strassen_set *set = level_of(p->isa)->strassen;
    const gemm_epilogue *e = &p->epilogue;
    const int64_t row = k->row + k->c->m2, col = k->col + k->c->n2;
    for (int64_t i = 0; i < k->lower; i += ROWS_EACH) {
        const int64_t rows = i64_min(k->lower - i, ROWS_EACH);
        float *c = p->c + (row + i) * p->ldc + col;
        for (int64_t j = 0; j < rows; j++) {
            const strassen_end end = { .c = c + j * p->ldc,
                                       .x = k->z + (i + j) * k->stride,
                                       .y = k->y + (i + j) * k->stride,
                                       .bias = e->bias ? e->bias + col : NULL,
                                       .residual = e->residual ? e->residual + (row + i + j) * e->ldr + col : NULL,
                                       .n = k->cols,
                                       .clip = e->clip,
                                       .lo = e->lo,
                                       .hi = e->hi };
            set->end(&end);
        }
        if (e->post) e->post(k->post_user, 0, row + i, rows, col, k->cols, c, p->ldc);
    }
}

static void run_block(const block *k)
{
    const bool adds = k->p->epilogue.residual != NULL;
    product(k, A11, F_B11, NULL, k->x, 0, 0);
    if (adds) add_rows(k, k->y, k->x, NULL, 0, 0);
    product(k, A12, F_B21, adds ? k->y : k->x, NULL, 0, 0); /* C11 */
    product(k, S2, F_T2, k->x, k->x, 0, 0);
    product(k, S3, F_T3, NULL, k->z, 0, 0);
    product(k, S1, F_T1, k->x, k->y, 0, 0);
    end_block(k); /* C22 */
    add_rows(k, k->x, k->x, k->z, 1, 0);
    if (adds) add_rows(k, k->y, k->y, NULL, 0, 1);
    product(k, S4, F_B22, k->y, NULL, 0, 1); /* C12 */
    if (adds) add_rows(k, k->x, k->x, NULL, 1, 0);
    product(k, A22, F_T4, k->x, NULL, 1, 0); /* C21 */
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
    char *blocks = (char *)scratch + core_size(p);
    block k = { .p = p,
                .c = &c,
                .a = &a,
                .stride = block_stride(&c),
                .x = (float *)(void *)blocks,
                .y = (float *)(void *)(blocks + block_size(&c)),
                .z = (float *)(void *)(blocks + 2 * block_size(&c)),
                .scratch = scratch,
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
    }
}

/* ---- tactics ---- */

double strassen_cost(isa_level isa, int64_t m, int64_t n, int64_t k, gemm_tactic t)
{
    static const double ns_per_vector = 0.15, ns_per_byte = 0.02;
    const double lanes = (double)level_of(isa)->gemm->lanes;
    gemm_tactic own = t;
    own.block_m = 0;
    const gemm_shape s = quarter_of(m, n, k);
    /* 4 loads and 4 stores for an element of a quarter of A. For one of C: 5 partial sums are stored, 7 loaded. */
    const double sums = (double)s.m * (double)s.k / lanes * 8, partial = (double)s.m * (double)s.n / lanes * 12;
    const double bytes = (double)s.k * (double)s.n * (double)sizeof(float) * (STRASSEN_FACTORS - 4);
    return STRASSEN_FACTORS * gemm_cost(isa, &s, own) + (sums + partial) * ns_per_vector + bytes * ns_per_byte + 1000;
}

int strassen_tactics(isa_level isa, int64_t m, int64_t n, int64_t k, uint64_t cache, uint32_t threads,
                     gemm_tactic out[STRASSEN_TACTICS_MAX])
{
    enum { HIGH = 10 };
    const gemm_tile_set *set = level_of(isa)->gemm;
    const gemm_shape s = quarter_of(m, n, k);
    const int64_t near = cache ? (int64_t)i64_min((int64_t)(cache > INT64_MAX ? INT64_MAX : cache), 8 << 20) : CACHE_USUAL;
    int count = 0;
    for (int v = 2; v <= 3 && set->rows_max[v - 1]; v++) {
        const int64_t width = (int64_t)v * set->lanes, panels = (s.n + width - 1) / width;
        const double bytes = (double)width * (double)s.k * (double)sizeof(float);
        const int rows = set->rows_max[v - 1];
        const int64_t tiles = (s.m + rows - 1) / rows;
        for (int64_t share = 8; share >= 2; share /= 2) {
            int64_t each = (int64_t)((double)near / (double)share / bytes);
            if (each < 1) each = 1;
            if (each > panels) each = panels;
            /* All threads have something to do, and about as much. */
            const int64_t blocks = (tiles + HIGH - 1) / HIGH;
            while (each > 1 && threads > 1 && blocks * ((panels + each - 1) / each) < 4 * (int64_t)threads) each--;
            const gemm_tactic t = { .vectors = (uint8_t)v & 15u,
                                    .rows = (uint8_t)rows,
                                    .block_m = HIGH,
                                    .block_n = (uint16_t)(each > UINT16_MAX ? UINT16_MAX : each) };
            bool is_new = true;
            for (int i = 0; i < count; i++) is_new = is_new && memcmp(&out[i], &t, sizeof t) != 0;
            if (is_new) out[count++] = t;
        }
    }
    for (int i = 1; i < count; i++) {
        const gemm_tactic t = out[i];
        const double cost = strassen_cost(isa, m, n, k, t);
        int at = i;
        for (; at > 0 && strassen_cost(isa, m, n, k, out[at - 1]) > cost; at--) out[at] = out[at - 1];
        out[at] = t;
    }
    return count;
}
