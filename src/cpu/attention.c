/* SPDX-License-Identifier: Apache-2.0 */
/* attention.c - the walk over tiles, blocks of keys and register tiles; the products are those of gemm_tile.h.
 *
 * A register tile of query rows makes its scores against a block of keys, turns them into weights while they are in L1,
 * and multiplies them with the values at once. Rows run over the queries of one head, then over the next head that
 * shares the keys. Weights are never divided: the sum is taken out of the finished row. */
#include "cpu/attention.h"
#include "cpu/level.h"
#include "base/env.h"

#include <math.h>
#include <string.h>

enum {
    VECTORS = 2,             /* of a panel: the shape whose register tile is highest and still hides latency */
    DIRECT_ROWS = 4,         /* so few rows do not pay for packing */
    BLOCK_BYTES = 256 << 10, /* packed keys and values of a block: they stay in the L2 cache */
    BLOCK_KEYS = 512,        /* at most: a register tile's scores stay in L1 */
    PACK_ROWS = 32,          /* of values that are packed at once: their pages stay in the first level of the TLB */
    TILES_SHORT = 4,         /* register tiles of a tile, with one block of keys, which stays packed */
    ROWS_LONG = 224,         /* rows of a tile at most, with several blocks */
    ROWS_MOST = 392,         /* the same where there are TILES_ENOUGH such tiles: keys are packed less often */
    TILES_ENOUGH = 24,
    WAY_FLOATS = 512, /* queries at a multiple of this distance compete for a few sets of the L1 cache */
    FLOATS_PER_LINE = 16,
    ALIGN = 64,
};

static int64_t i64_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}
static int64_t round_up(int64_t a, int64_t b)
{
    return ceil_div(a, b) * b;
}

const char *attention_bounds_check(const attention_bounds *b)
{
    if (b->depth > INT32_MAX / 64 || b->width > INT32_MAX / 64)
        return "the size of a head has no bound, or too large a one";
    return NULL;
}

/* ---- scratch ---- */

/* Keys of a block at most: whole panels. */
static int64_t block_keys(const gemm_tile_set *set, const attention_bounds *b)
{
    const int64_t panel = (int64_t)set->lanes * VECTORS, floats = BLOCK_BYTES / (int64_t)sizeof(float);
    const int64_t fit = i64_min(BLOCK_KEYS, floats / (b->depth + b->width + 1)) / panel * panel;
    return fit > panel ? fit : panel;
}

/* Rows lie an odd number of cache lines apart, so that no two collide in L1. */
static int64_t row_stride(int64_t n)
{
    return round_up(n, 16) | 16;
}

typedef struct layout {
    int64_t keys; /* of a block at most */
    int64_t rows; /* of a tile at most */
    int64_t q_row, acc_row, score_row;
    size_t k, v, q, acc, score, top, sum, mask, total; /* bytes from the start */
} layout;

static layout layout_of(const gemm_tile_set *set, const attention_bounds *b)
{
    layout l = { .keys = block_keys(set, b) };
    const bool is_long = b->keys > l.keys;
    if (!is_long) l.keys = round_up(b->keys > 0 ? b->keys : 1, set->lanes);
    l.rows =
        i64_min(b->rows > 0 ? b->rows : 1, is_long ? ROWS_MOST : (int64_t)set->rows_max[VECTORS - 1] * TILES_SHORT);
    l.q_row = row_stride(b->depth);
    l.acc_row = row_stride(b->width);
    l.score_row = row_stride(l.keys);
    const int64_t width = round_up(b->width, set->lanes);
    const int64_t high = i64_min(set->rows_max[VECTORS - 1], l.rows);
    const int64_t part[] = { l.keys * b->depth,  l.keys * width, l.rows * l.q_row, l.rows * l.acc_row,
                             high * l.score_row, l.rows,         l.rows,           l.keys };
    size_t *at[] = { &l.k, &l.v, &l.q, &l.acc, &l.score, &l.top, &l.sum, &l.mask };
    for (uint32_t i = 0; i < COUNT_OF(part); i++) {
        *at[i] = l.total;
        l.total = size_add(l.total, size_align(size_mul((size_t)part[i], sizeof(float)), ALIGN));
    }
    return l;
}

size_t attention_scratch_size(isa_level isa, const attention_bounds *b)
{
    return layout_of(level_of(isa)->gemm, b).total;
}

/* ---- tiles ---- */

/* The cut of one head's rows and keys. */
typedef struct grid {
    int64_t rows, row_tiles, tiles; /* of a head of keys: rows, register tiles, tiles */
    int64_t blocks, block;          /* of keys, and their size */
    bool is_direct;
} grid;

static grid grid_of(const attention_params *p)
{
    grid g = { .rows = p->queries * p->group };
    const int64_t high = p->tile->rows_max[VECTORS - 1], most = block_keys(p->tile, &p->bounds);
    g.is_direct =
        g.rows <= DIRECT_ROWS && (p->k_stride[3] == 1 || p->depth <= 1) && (p->v_stride[3] == 1 || p->width <= 1);
    g.blocks = ceil_div(p->keys, most);
    g.block = g.blocks <= 1 ? p->keys
                            : i64_min(most, round_up(ceil_div(p->keys, g.blocks), (int64_t)p->tile->lanes * VECTORS));
    g.row_tiles = ceil_div(g.rows, high);
    const bool is_enough = p->batch * p->heads * ceil_div(g.row_tiles, ROWS_MOST / high) >= TILES_ENOUGH;
    g.tiles = ceil_div(g.row_tiles, g.blocks <= 1 ? TILES_SHORT : (is_enough ? ROWS_MOST : ROWS_LONG) / high);
    return g;
}

int64_t attention_tile_count(const attention_params *p)
{
    if (p->width == 0) return 0;
    return p->batch * p->heads * grid_of(p).tiles;
}

/* One worker's state: where it stands and what its scratch holds. */
typedef struct worker {
    const attention_params *p;
    grid g;
    layout l;
    float *k, *v, *q, *acc, *score, *top, *sum, *mask;
    int64_t batch, head;          /* of the tile */
    const float *k_from, *v_from; /* keys and values of the head */
    int64_t packed;               /* which block of which head is packed; -1: none */
    bool is_copied;               /* queries of the tile, whose elements are not adjacent or whose rows collide in L1 */
} worker;

static int64_t group_of(const worker *w, int64_t row)
{
    return w->head * w->p->group + row / w->p->queries;
}
static int64_t query_of(const worker *w, int64_t row)
{
    return row % w->p->queries;
}

static const float *query_at(const worker *w, int64_t row)
{
    const attention_params *p = w->p;
    return p->q + w->batch * p->q_stride[0] + group_of(w, row) * p->q_stride[1] + query_of(w, row) * p->q_stride[2];
}

/* How many keys of the block that begins at `key` a row may look at, out of `keys`. */
static int64_t allowed(const worker *w, int64_t row, int64_t key, int64_t keys)
{
    if (!w->p->causal) return keys;
    const int64_t limit = query_of(w, row) + (w->p->keys - w->p->queries) + 1 - key;
    return limit < 0 ? 0 : i64_min(limit, keys);
}

/* Rows [begin, end) of all panels of a matrix of k rows. */
static void pack_rows(const gemm_tile_set *set, float *to, const float *from, int64_t k, int64_t n, int64_t step_k,
                      int64_t step_n, int64_t begin, int64_t end)
{
    const int64_t panel = (int64_t)set->lanes * VECTORS;
    for (int64_t col = 0; col < n; col += panel) {
        const int64_t cols = i64_min(panel, n - col), width = round_up(cols, set->lanes);
        set->pack(to + begin * width, from + begin * step_k + col * step_n, end - begin, (int32_t)cols, (int32_t)width,
                  step_k, step_n);
        to += k * width;
    }
}

static void pack_panels(const gemm_tile_set *set, float *to, const float *from, int64_t k, int64_t n, int64_t step_k,
                        int64_t step_n)
{
    const int64_t rows = step_n == 1 ? PACK_ROWS : k;
    for (int64_t begin = 0; begin < k; begin += rows)
        pack_rows(set, to, from, k, n, step_k, step_n, begin, i64_min(begin + rows, k));
}

static void pack_block(worker *w, int64_t block, int64_t key, int64_t keys)
{
    const attention_params *p = w->p;
    const int64_t id = (w->batch * p->heads + w->head) * w->g.blocks + block;
    if (w->packed == id) return;
    w->packed = id;
    pack_panels(p->tile, w->k, w->k_from + key * p->k_stride[2], p->depth, keys, p->k_stride[3], p->k_stride[2]);
    pack_panels(p->tile, w->v, w->v_from + key * p->v_stride[2], keys, p->width, p->v_stride[2], p->v_stride[3]);
}

/* C[rows][n] = alpha * A B, or C + A B: whole panels of a packed B of depth `k_packed`, of which k rows count. */
static void product(const gemm_tile_set *set, const void *const *row, const float *b, float *c, int64_t ldc,
                    int32_t rows, int64_t n, int64_t k, int64_t k_packed, float alpha, bool adds)
{
    const int64_t panel = (int64_t)set->lanes * VECTORS;
    gemm_tile t = { .a = row,
                    .b = b,
                    .ldc = ldc,
                    .ldr = ldc,
                    .taps = 1,
                    .k = k,
                    .flags = alpha != 1.0f ? GEMM_TILE_ALPHA : 0u,
                    .alpha = alpha };
    for (int64_t col = 0; col < n; col += panel) {
        const int64_t cols = i64_min(panel, n - col), vectors = ceil_div(cols, set->lanes);
        t.cols = (int32_t)(vectors * set->lanes); /* rows of scores and sums have room */
        t.c = c + col;
        t.residual = adds ? t.c : NULL;
        set->run[vectors - 1][rows - 1](&t);
        t.b = (const float *)t.b + k_packed * vectors * set->lanes;
    }
}

/* The part of a mask that belongs to a row, adjacent; NULL: there is no such mask. */
static const void *mask_row(const worker *w, const void *mask, size_t size, int64_t row, int64_t key, int64_t keys)
{
    if (!mask) return NULL;
    const int64_t *stride = w->p->mask_stride;
    const char *at = (const char *)mask + (w->batch * stride[0] + group_of(w, row) * stride[1] +
                                           query_of(w, row) * stride[2] + key * stride[3]) *
                                              (int64_t)size;
    if (stride[3] == 1) return at;
    char *to = (char *)w->mask;
    for (int64_t i = 0; i < keys; i++) memcpy(to + i * (int64_t)size, at + i * stride[3] * (int64_t)size, size);
    return to;
}

/* Scores of one row become weights over n columns; what was gathered from earlier blocks is scaled to the new top. */
static void weights(worker *w, int64_t row, int64_t at, int64_t key, int64_t n, float *x, bool is_first)
{
    const attention_params *p = w->p;
    const int64_t count = allowed(w, row, key, n);
    float *acc = w->acc + at * w->l.acc_row;
    if (is_first) w->top[at] = -INFINITY, w->sum[at] = 0;
    float top = -INFINITY;
    if (count)
        top = p->loop->finish(x, count, p->cap, mask_row(w, p->add, sizeof *p->add, row, key, count),
                              mask_row(w, p->allow, 1, row, key, count));
    const float before = w->top[at];
    if (before >= top || isnan(before)) top = before;
    if (top == -INFINITY) {
        memset(x, 0, (size_t)n * sizeof *x);
        return;
    }
    const float sum = count ? p->loop->exp_sum(x, count, top) : 0;
    if (count < n) memset(x + count, 0, (size_t)(n - count) * sizeof *x);
    if (is_first || before == top) {
        w->sum[at] += sum;
    } else {
        const float scale = expf(before - top);
        w->sum[at] = w->sum[at] * scale + sum;
        p->row->affine(acc, acc, p->width, 0, scale, 0);
    }
    w->top[at] = top;
}

static void tile_packed(worker *w, int64_t row, int32_t rows, int64_t at, int64_t block, int64_t key, int64_t keys)
{
    const attention_params *p = w->p;
    int64_t n = 0;
    for (int32_t i = 0; i < rows; i++) {
        const int64_t count = allowed(w, row + i, key, keys);
        n = count > n ? count : n;
    }
    const bool is_first = block == 0;
    if (!n && !is_first) return;
    /* Whole panels, as they were packed. */
    const int64_t cols = i64_min(keys, round_up(n, (int64_t)p->tile->lanes * VECTORS));
    float *acc = w->acc + at * w->l.acc_row;
    const void *from[GEMM_ROWS_MAX];
    for (int32_t i = 0; i < rows; i++) from[i] = w->is_copied ? w->q + (at + i) * w->l.q_row : query_at(w, row + i);
    product(p->tile, from, w->k, w->score, w->l.score_row, rows, cols, p->depth, p->depth, p->scale, false);
    for (int32_t i = 0; i < rows; i++) weights(w, row + i, at + i, key, n, w->score + i * w->l.score_row, is_first);
    for (int32_t i = 0; i < rows; i++) from[i] = w->score + i * w->l.score_row;
    product(p->tile, from, w->v, acc, w->l.acc_row, rows, p->width, n, keys, 1.0f, !is_first);
}

static void row_direct(worker *w, int64_t row, int64_t at, int64_t block, int64_t key, int64_t keys)
{
    const attention_params *p = w->p;
    const int64_t n = allowed(w, row, key, keys);
    float *acc = w->acc + at * w->l.acc_row;
    if (block == 0) memset(acc, 0, (size_t)p->width * sizeof *acc);
    p->loop->dots(w->score, w->q + at * w->l.q_row, w->k_from + key * p->k_stride[2], p->k_stride[2], n, p->depth,
                  p->scale);
    weights(w, row, at, key, n, w->score, block == 0);
    p->loop->weigh(acc, w->score, w->v_from + key * p->v_stride[2], p->v_stride[2], n, p->width);
}

static void load_queries(worker *w, int64_t begin, int64_t end)
{
    const attention_params *p = w->p;
    for (int64_t row = begin; row < end; row++) {
        float *to = w->q + (row - begin) * w->l.q_row;
        const float *from = query_at(w, row);
        if (p->q_stride[3] == 1) memcpy(to, from, (size_t)p->depth * sizeof *to);
        else
            for (int64_t i = 0; i < p->depth; i++) to[i] = from[i * p->q_stride[3]];
    }
}

static void store_rows(worker *w, int64_t begin, int64_t end)
{
    const attention_params *p = w->p;
    const bool is_empty = p->keys == 0;
    for (int64_t row = begin; row < end; row++) {
        float *to =
            p->y + w->batch * p->y_stride[0] + group_of(w, row) * p->y_stride[1] + query_of(w, row) * p->y_stride[2];
        float *from = w->acc + (row - begin) * w->l.acc_row;
        const float sum = is_empty ? 0 : w->sum[row - begin];
        if (sum == 0) memset(from, 0, (size_t)p->width * sizeof *from);
        const float scale = sum == 0 ? 1.0f : 1.0f / sum;
        if (p->y_stride[3] == 1) p->row->affine(to, from, p->width, 0, scale, 0);
        else
            for (int64_t i = 0; i < p->width; i++) to[i * p->y_stride[3]] = from[i] * scale;
    }
}

/* Asks for rows [begin, end) of keys or values, `from` being row 0. */
static void ask_rows(const float *from, const int64_t *stride, int64_t begin, int64_t end, int64_t count)
{
    if (stride[3] != 1) return;
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < count; i += FLOATS_PER_LINE) __builtin_prefetch(from + row * stride[2] + i, 0, 2);
}

/* Asks for part `part` of `parts` of the keys and values that are packed next. They come from far memory while products
 * are computed. */
static void ask_next(const worker *w, int64_t block, bool is_last, int64_t part, int64_t parts)
{
    const attention_params *p = w->p;
    const float *k = w->k_from, *v = w->v_from;
    int64_t key = 0;
    if (block + 1 < w->g.blocks) {
        key = (block + 1) * w->g.block;
    } else if (is_last) {
        if (w->head + 1 >= p->heads) return;
        k += p->k_stride[1];
        v += p->v_stride[1];
    } else if (w->g.blocks <= 1) {
        return; /* stays packed */
    }
    const int64_t keys = i64_min(w->g.block, p->keys - key), begin = key + keys * part / parts,
                  end = key + keys * (part + 1) / parts;
    ask_rows(k, p->k_stride, begin, end, p->depth);
    ask_rows(v, p->v_stride, begin, end, p->width);
}

static void run_tile(worker *w, int64_t tile)
{
    const attention_params *p = w->p;
    const grid *g = &w->g;
    const int64_t first = g->row_tiles * tile / g->tiles, last = g->row_tiles * (tile + 1) / g->tiles;
    const int64_t small = g->rows / g->row_tiles, extra = g->rows % g->row_tiles;
    const int64_t begin = first * small + i64_min(first, extra), end = last * small + i64_min(last, extra);
    if (w->is_copied) load_queries(w, begin, end);
    for (int64_t block = 0; block < g->blocks; block++) {
        const int64_t key = block * g->block, keys = i64_min(g->block, p->keys - key);
        if (g->is_direct) {
            for (int64_t row = begin; row < end; row++) row_direct(w, row, row - begin, block, key, keys);
            continue;
        }
        bool is_wanted = block == 0;
        for (int64_t row = begin; row < end && !is_wanted; row++) is_wanted = allowed(w, row, key, keys) > 0;
        if (!is_wanted) continue;
        pack_block(w, block, key, keys);
        int64_t row = begin;
        for (int64_t i = first; i < last; i++) {
            const int32_t rows = (int32_t)(small + (i < extra));
            ask_next(w, block, tile + 1 == g->tiles, i - first, last - first);
            tile_packed(w, row, rows, row - begin, block, key, keys);
            row += rows;
        }
    }
    store_rows(w, begin, end);
}

void attention_run(const attention_params *p, int64_t begin, int64_t end, void *scratch)
{
    worker w = { .p = p, .g = grid_of(p), .l = layout_of(p->tile, &p->bounds), .packed = -1 };
    char *at = scratch;
    w.k = (float *)(void *)(at + w.l.k);
    w.v = (float *)(void *)(at + w.l.v);
    w.q = (float *)(void *)(at + w.l.q);
    w.acc = (float *)(void *)(at + w.l.acc);
    w.score = (float *)(void *)(at + w.l.score);
    w.top = (float *)(void *)(at + w.l.top);
    w.sum = (float *)(void *)(at + w.l.sum);
    w.mask = (float *)(void *)(at + w.l.mask);
    w.is_copied = w.g.is_direct || p->q_stride[3] != 1 || p->q_stride[2] % WAY_FLOATS == 0;
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t head = tile / w.g.tiles;
        w.batch = head / p->heads;
        w.head = head % p->heads;
        w.k_from = p->k + w.batch * p->k_stride[0] + w.head * p->k_stride[1];
        w.v_from = p->v + w.batch * p->v_stride[0] + w.head * p->v_stride[1];
        run_tile(&w, tile % w.g.tiles);
    }
}
