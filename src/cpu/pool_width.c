/* SPDX-License-Identifier: Apache-2.0 */
/* pool_width.c - pools of planes whose widths are adjacent: vectors along the width.
 *
 * The rows of a window are folded to one line, and the line is folded along the width. Work is cut into blocks of
 * result rows and columns. What all planes share (which input rows a window has, what a sum is divided by) is found
 * once for a block. */
#include "cpu/pool.h"

#include <math.h>
#include <string.h>

/* FLOATS: of all lines. ROWS: result rows that are one piece of work. TAPS: input rows of a block. DIVISORS: rows of
 * factors of a block. */
enum { LINES = 8, FLOATS = 2 * POOL_COLS, ROWS = 64, TAPS = 1024, DIVISORS = 4, ALIGNED = 16 };

static int64_t ceil_div(int64_t a, int64_t b)
{
    if (b == 1) return a;
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

pool_span pool_span_of(const pool_record *r, uint32_t i, int64_t o)
{
    pool_span s = { .at = o * r->stride[i] - r->pad[i] };
    const int64_t d = r->dilation[i], k = r->kernel[i];
    s.first = s.at < 0 ? ceil_div(-s.at, d) : 0;
    if (s.first > k) s.first = k;
    s.stop = ceil_div(r->in[i] - s.at, d);
    if (s.stop > k) s.stop = k;
    if (s.stop < s.first) s.stop = s.first;
    s.padded = ceil_div(r->in[i] + r->pad_end[i] - s.at, d);
    if (s.padded > k) s.padded = k;
    return s;
}

static int64_t reach_of(const pool_record *r)
{
    return (r->kernel[2] - 1) * r->dilation[2] + 1;
}

static int64_t taps_of(const pool_record *r)
{
    return r->kernel[0] * r->kernel[1];
}

bool pool_width_takes(const pool_record *r)
{
    return r->kernel[0] <= TAPS && r->kernel[1] <= TAPS && taps_of(r) <= TAPS && r->kernel[2] <= POOL_COLS &&
           r->dilation[2] <= POOL_COLS && r->stride[2] <= POOL_COLS && reach_of(r) + r->stride[2] <= POOL_COLS;
}

/* Result rows [row, row + p.rows) and columns [col, col + p.n) of every plane. */
typedef struct block {
    rows_pool p;
    int64_t col;
    int64_t row[TAPS], y_row[ROWS];
    int32_t first[ROWS + 1];
    const float *scale[ROWS];
    int64_t divided[DIVISORS]; /* the rows that a row of factors is for */
    int divisors;
    float factor[DIVISORS][POOL_COLS], wide[POOL_COLS];
    _Alignas(64) float line[FLOATS + ALIGNED];
} block;

/* The columns of a block: which numbers of a line come from the input; the others are the seed. */
static void block_columns(const pool_record *r, block *b, int64_t col)
{
    rows_pool *p = &b->p;
    const int64_t room = (POOL_COLS - reach_of(r)) / r->stride[2], begin = col * r->stride[2] - r->pad[2];
    b->col = col;
    p->n = r->out[2] - col < room ? r->out[2] - col : room;
    const int64_t count = (p->n - 1) * r->stride[2] + reach_of(r), from = begin < 0 ? 0 : begin;
    const int64_t to = begin + count < r->in[2] ? begin + count : r->in[2];
    p->read = from < to ? to - from : 0;
    p->before = p->read ? from - begin : 0;
    p->pitch = (count + POOL_SPARE + 15) / 16 * 16;
    p->lines = FLOATS / p->pitch < LINES ? FLOATS / p->pitch : LINES;
    p->line = b->line + (ALIGNED - p->before % ALIGNED) % ALIGNED; /* what is written first begins a cache line */
    for (int64_t k = 0; k < p->lines; k++) {                       /* beside what is read */
        float *line = p->line + k * p->pitch;
        for (int64_t i = 0; i < p->before; i++) line[i] = p->seed;
        for (int64_t i = p->before + p->read; i < p->pitch; i++) line[i] = p->seed;
    }
    b->divisors = 0;
}

/* 1 / divisor for each column of windows with `taps` rows, or NULL: there is no room. A window of nothing has 1 / 0. */
static const float *factors_of(const pool_record *r, block *b, int64_t taps)
{
    for (int i = 0; i < b->divisors; i++)
        if (b->divided[i] == taps) return b->factor[i];
    if (b->divisors == DIVISORS) return NULL;
    float *to = b->factor[b->divisors];
    b->divided[b->divisors++] = taps;
    const float whole = (float)(1 / (double)(taps * r->kernel[2]));
    const int64_t step = r->stride[2], least = ceil_div(r->pad[2], step), room = r->in[2] + r->pad[2] - reach_of(r);
    const int64_t begin = least - b->col, end = (room < 0 ? 0 : room / step + 1) - b->col; /* columns that are inside */
    for (int64_t i = 0; i < b->p.n; i++) {
        if (i >= begin && i < end) {
            to[i] = whole;
            continue;
        }
        const pool_span s = pool_span_of(r, 2, b->col + i);
        to[i] = (float)(1 / (double)(taps * (r->counts_pad ? s.padded : s.stop - s.first)));
    }
    return to;
}

/* As many result rows from `row` on, before `stop`, as the block has room for. */
static void block_rows(const pool_record *r, block *b, int64_t row, int64_t stop)
{
    rows_pool *p = &b->p;
    int32_t taps = 0;
    if (b->divisors == DIVISORS) b->divisors = 0;
    for (p->rows = 0; row < stop && p->rows < ROWS && taps + taps_of(r) <= TAPS; row++, p->rows++) {
        const int64_t d = row / r->out[1], h = row % r->out[1];
        const pool_span s[2] = { pool_span_of(r, 0, d), pool_span_of(r, 1, h) };
        const int64_t inside = (s[0].stop - s[0].first) * (s[1].stop - s[1].first);
        b->scale[p->rows] = !r->is_mean ? NULL : factors_of(r, b, r->counts_pad ? s[0].padded * s[1].padded : inside);
        if (r->is_mean && !b->scale[p->rows]) break;
        b->y_row[p->rows] = d * r->y_dim[0] + h * r->y_dim[1] + b->col;
        b->first[p->rows] = taps;
        for (int64_t i = s[0].first; i < s[0].stop; i++)
            for (int64_t k = s[1].first; k < s[1].stop; k++)
                b->row[taps++] = (s[0].at + i * r->dilation[0]) * r->x_dim[0] +
                                 (s[1].at + k * r->dilation[1]) * r->x_dim[1] + b->col * r->stride[2] - r->pad[2] +
                                 p->before;
    }
    b->first[p->rows] = taps;
}

static void block_init(const pool_record *r, block *b)
{
    b->p = (rows_pool){
        .type = r->type,
        .row = b->row,
        .first = b->first,
        .y_row = b->y_row,
        .scale = r->is_mean ? b->scale : NULL,
        .taps = r->kernel[2],
        .dilation = r->dilation[2],
        .step = r->stride[2],
        .wide = b->wide,
        .seed = !r->is_max                   ? 0
                : r->type == SINTER_DTYPE_U8 ? 0
                : r->type == SINTER_DTYPE_I8 ? -128
                                             : -INFINITY,
    };
}

/* ROWS result rows of a plane are a piece of work. The pieces of the same rows follow each other. */
static void pieces(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const pool_job *j = arg;
    const pool_record *r = j->r;
    const int64_t planes = r->images * r->channels, rows = r->out[0] * r->out[1];
    block b;
    block_init(r, &b);
    for (int64_t i = begin, count; i < end; i += count) {
        const int64_t first = i % planes, row = i / planes * ROWS, stop = row + ROWS < rows ? row + ROWS : rows;
        count = planes - first < end - i ? planes - first : end - i;
        for (int64_t col = 0; col < r->out[2]; col += b.p.n) {
            block_columns(r, &b, col);
            for (int64_t at = row; at < stop; at += b.p.rows) {
                block_rows(r, &b, at, stop);
                for (int64_t k = first; k < first + count; k++) {
                    const int64_t n = k / r->channels, c = k % r->channels;
                    b.p.x = j->x + (n * r->x_image + c * r->x_channel) * r->size;
                    b.p.y = j->y + (n * r->y_image + c * r->y_channel) * r->size;
                    r->fold(&b.p);
                    for (int64_t h = 0; h < b.p.rows && r->power == 2; h++)
                        r->set->root((float *)(void *)b.p.y + b.y_row[h], b.p.n);
                }
            }
        }
    }
}

void pool_width_run(const pool_record *r, const kernel_run *k, pool_job *j)
{
    row_parallel(k, r->images * r->channels * ((r->out[0] * r->out[1] + ROWS - 1) / ROWS), pieces, j);
}
