/* SPDX-License-Identifier: Apache-2.0 */
/* integer.c - products of 8-bit integers: packing, gathering rows, and walking tiles. */
#include "cpu/integer.h"

#include "base/env.h"
#include <string.h>

static int64_t count_of(const int64_t *dim, uint32_t rank)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < rank; i++) n *= dim[i];
    return n;
}

static int64_t terms_of(const integer_params *p)
{
    return count_of(p->terms, 3);
}

int64_t integer_matrix_count(const integer_params *p)
{
    return count_of(p->matrix, p->matrix_rank);
}

static int32_t value_of(uint8_t bits, bool is_signed)
{
    return is_signed ? (int8_t)bits : bits;
}

size_t integer_pack_size(const integer_set *set, int64_t terms, int64_t n)
{
    const size_t pairs = ((size_t)terms + 1) / 2, cols = size_align((size_t)n, (size_t)set->width);
    return size_align(size_mul(size_mul(pairs, cols), 2 * sizeof(int16_t)), 64);
}

void integer_pack(const integer_params *p, const uint8_t *src, int16_t *dst)
{
    const int64_t width = p->set->width, pairs = (terms_of(p) + 1) / 2;
    memset(dst, 0, integer_pack_size(p->set, terms_of(p), p->n));
    for (int64_t col = 0; col < p->n; col += width, dst += pairs * width * 2) {
        const int64_t left = p->n - col < width ? p->n - col : width;
        int64_t at = 0;
        for (int64_t i = 0; i < p->terms[0]; i++)
            for (int64_t j = 0; j < p->terms[1]; j++)
                for (int64_t k = 0; k < p->terms[2]; k++, at++) {
                    const uint8_t *from = src + i * p->b_term[0] + j * p->b_term[1] + k * p->b_term[2] + col * p->b_col;
                    int16_t *to = dst + at / 2 * width * 2 + at % 2;
                    for (int64_t c = 0; c < left; c++) to[2 * c] = (int16_t)value_of(from[c * p->b_col], p->b_signed);
                }
    }
}

typedef struct scratch_at {
    size_t a, c, zero, b, total;
} scratch_at;

static scratch_at scratch_of(const integer_set *set, int64_t terms, int64_t n, bool b_raw)
{
    scratch_at s = { .a = 0 };
    s.c = size_align(size_mul(((size_t)terms + 1) / 2, INTEGER_ROWS * 2 * sizeof(int16_t)), 64);
    s.zero = size_add(s.c, (size_t)INTEGER_ROWS * (size_t)set->width * sizeof(int32_t));
    s.b = size_add(s.zero, size_align((size_t)set->width * sizeof(int32_t), 64));
    s.total = size_add(s.b, b_raw ? integer_pack_size(set, terms, n) : 0);
    return s;
}

size_t integer_scratch_size(const integer_set *set, int64_t terms, int64_t n, bool b_raw)
{
    return scratch_of(set, terms, n, b_raw).total;
}

static int64_t blocks_of(const integer_params *p)
{
    return (count_of(p->row, p->row_rank) + INTEGER_ROWS - 1) / INTEGER_ROWS;
}

int64_t integer_tile_count(const integer_params *p)
{
    return integer_matrix_count(p) * blocks_of(p);
}

static int32_t run_widen(const integer_params *p, int16_t *dst, const uint8_t *src, int64_t n, int64_t stride,
                         int32_t zero)
{
    if (stride == 1 || n == 1)
        return p->a_signed ? p->set->widen_i8(dst, (const int8_t *)src, n, zero) : p->set->widen_u8(dst, src, n, zero);
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t x = value_of(src[i * stride], p->a_signed) - zero;
        dst[i] = (int16_t)x;
        sum += x;
    }
    return sum;
}

/* A row of A less its zero point; returns the sum. at: of the last two axes of rows. */
static int32_t row_fill(const integer_params *p, const uint8_t *a, const int64_t *at, int32_t zero, int16_t *dst)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < p->terms[0]; i++) {
        for (int64_t j = 0; j < p->terms[1]; j++, dst += p->terms[2]) {
            if (p->has_window) {
                const int64_t y = at[0] * p->step[0] - p->before[0] + i * p->dilation[0],
                              x = at[1] * p->step[1] - p->before[1] + j * p->dilation[1];
                if (y < 0 || y >= p->limit[0] || x < 0 || x >= p->limit[1]) {
                    memset(dst, 0, (size_t)p->terms[2] * sizeof *dst);
                    continue;
                }
                sum += run_widen(p, dst, a + y * p->a_term[0] + x * p->a_term[1], p->terms[2], p->a_term[2], zero);
            } else {
                sum += run_widen(p, dst, a + i * p->a_term[0] + j * p->a_term[1], p->terms[2], p->a_term[2], zero);
            }
        }
    }
    if (terms_of(p) % 2) *dst = 0;
    return sum;
}

/* Finished sums, by rows or by columns, whichever are adjacent. */
static void block_store(const int32_t *c, int64_t width, int32_t *y, const int64_t *y_at, int64_t rows, int64_t cols,
                        int64_t y_col)
{
    if (y_col == 1) {
        for (int64_t r = 0; r < rows; r++) memcpy(y + y_at[r], c + r * width, (size_t)cols * sizeof *y);
        return;
    }
    for (int64_t j = 0; j < cols; j++)
        for (int64_t r = 0; r < rows; r++) y[y_at[r] + j * y_col] = c[r * width + j];
}

void integer_run(const integer_params *p, int64_t begin, int64_t end, void *scratch, void *user)
{
    const int64_t blocks = blocks_of(p), count = count_of(p->row, p->row_rank), terms = terms_of(p),
                  pairs = (terms + 1) / 2, width = p->set->width;
    const size_t packed_size = integer_pack_size(p->set, terms, p->n);
    const scratch_at s = scratch_of(p->set, terms, p->n, p->b_raw);
    char *base = scratch;
    int16_t *a = (int16_t *)(void *)(base + s.a), *raw = (int16_t *)(void *)(base + s.b);
    int32_t *c = (int32_t *)(void *)(base + s.c), *zero = (int32_t *)(void *)(base + s.zero);
    int64_t packed_key = -1;
    for (int64_t t = begin; t < end; t++) {
        const int64_t matrix = t / blocks, first = t % blocks * INTEGER_ROWS,
                      rows = count - first < INTEGER_ROWS ? count - first : INTEGER_ROWS;
        int64_t a_at = 0, b_at = 0, y_base = 0, left = matrix, last = 0;
        for (uint32_t i = p->matrix_rank; i-- > 0;) {
            const int64_t at = left % p->matrix[i];
            left /= p->matrix[i];
            a_at += at * p->a_matrix[i];
            b_at += at * p->b_matrix[i];
            y_base += at * p->y_matrix[i];
            if (i + 1 == p->matrix_rank) last = at;
        }
        const int16_t *b = (const int16_t *)(const void *)(p->b + (size_t)matrix * packed_size);
        if (p->b_raw) {
            if (packed_key != matrix) integer_pack(p, p->b + b_at, raw);
            packed_key = matrix;
            b = raw;
        }
        int64_t y_at[INTEGER_ROWS];
        uint32_t sum[INTEGER_ROWS];
        for (int64_t r = 0; r < rows; r++) {
            int64_t index[SINTER_RANK_MAX + 2] = { 0 }, from = a_at;
            y_at[r] = y_base;
            left = first + r;
            for (uint32_t i = p->row_rank; i-- > 0;) {
                index[i] = left % p->row[i];
                left /= p->row[i];
                from += index[i] * p->a_row[i];
                y_at[r] += index[i] * p->y_row[i];
            }
            const int64_t za_at = p->row_rank ? index[p->row_rank - 1] * p->za_row : 0;
            const int32_t za = p->za ? value_of(p->za[za_at], p->a_signed) : 0;
            sum[r] = (uint32_t)row_fill(p, p->a + from, p->has_window ? index + p->row_rank - 2 : index, za,
                                        a + r * 2 * pairs);
        }
        for (int64_t col = 0; col < p->n; col += width, b += pairs * width * 2) {
            const int64_t cols = p->n - col < width ? p->n - col : width;
            p->set->tile(c, a, 2 * pairs, b, pairs, rows);
            if (p->zb) {
                int32_t any = 0;
                for (int64_t j = 0; j < cols; j++) {
                    zero[j] = value_of(p->zb[last * p->zero_matrix + (col + j) * p->zb_col], p->b_signed);
                    any |= zero[j];
                }
                for (int64_t r = 0; r < rows && any; r++) p->set->finish(c + r * width, zero, sum[r], cols);
            }
            if (p->post) p->post(user, matrix, first, rows, col, cols, c, width);
            else block_store(c, width, p->y + col * p->y_col, y_at, rows, cols, p->y_col);
        }
    }
}
