/* SPDX-License-Identifier: Apache-2.0 */
/* row_lrn.c - local response normalisation in f32: x / (bias + alpha / size * sum of squares)^beta, where the sum is
 * over `size` neighbouring channels.
 *
 * The operands are dense and in the same order: [outer, channels, inner]. Where inner is more than 1, a row is a part
 * of one channel, and its neighbours are the same part of other channels. Where channels are adjacent, the row is
 * copied between zeros, and its neighbours are the same row, moved by some elements. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include <string.h>

enum { SIZE_MAX_LRN = 64, COLS = 1024, TILE_ELEMENTS = 8192 };

typedef struct record {
    const rows_set *set;
    int64_t outer, channels, inner;
    int64_t before, after; /* channels of the window on the two sides */
    int64_t cols;          /* inner > 1: elements of a channel in a tile; else rows in a tile */
    float alpha, bias, beta;
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_lrn, "no local response normalisation");
    REJECT_UNLESS(row_is_f32(p, 1), "not in f32");
    const problem_operand *x = &p->in[0], *y = &p->out[0];
    REJECT_UNLESS(x->rank >= 2 && y->rank == x->rank, "rank below 2");
    REJECT_UNLESS(!x->is_strided && !y->is_strided && !memcmp(x->order, y->order, x->rank),
                  "operands are strided, or lie in two orders");
    const attrs_lrn *a = p->attrs;
    REJECT_UNLESS(a->size >= 1 && a->size <= SIZE_MAX_LRN, "a window of more than 64 channels");
    REJECT_UNLESS(a->alpha >= 0 && a->bias > 0, "powers of numbers that may be negative");
    REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const attrs_lrn *a = p->attrs;
    const double threads = target->threads ? target->threads : 1, flops = target->flops > 0 ? target->flops : 1e10;
    return row_memory_ns(p, target, 1) + row_operand_bytes(&p->out[0]) * (double)(a->size + 16) / flops * 1e9 / threads;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_lrn *a = attrs;
    *r = (record){ .set = level_of(isa)->rows,
                   .outer = 1,
                   .channels = in[0].dim[1],
                   .inner = 1,
                   .before = (a->size - 1) / 2,
                   .after = a->size - 1 - (a->size - 1) / 2,
                   .alpha = (float)(a->alpha / (double)a->size),
                   .bias = (float)a->bias,
                   .beta = (float)a->beta };
    bool is_inside = false;
    for (uint32_t i = 0; i < in[0].rank; i++) {
        const uint32_t axis = p->in[0].order[i];
        if (axis == 1) is_inside = true;
        else if (is_inside) r->inner *= in[0].dim[axis];
        else r->outer *= in[0].dim[axis];
        if (in[0].dim[i] != out[0].dim[i])
            return FAIL(e, INVALID_ARG, "lrn: the shapes of input and output are not equal");
    }
    r->cols = r->inner > 1 ? COLS : r->channels > 0 && r->channels < TILE_ELEMENTS ? TILE_ELEMENTS / r->channels : 1;
    return SINTER_OK;
}

typedef struct job {
    const record *r;
    const float *x;
    float *y;
} job;

/* A tile is one part of all channels. */
static void parts(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t pieces = (r->inner + r->cols - 1) / r->cols;
    for (int64_t i = begin; i < end; i++) {
        const int64_t col = i % pieces * r->cols, n = r->inner - col < r->cols ? r->inner - col : r->cols;
        const int64_t at = i / pieces * r->channels * r->inner + col;
        for (int64_t c = 0; c < r->channels; c++) {
            const int64_t low = c > r->before ? c - r->before : 0;
            const int64_t high = c + r->after < r->channels ? c + r->after : r->channels - 1;
            const float *rows[SIZE_MAX_LRN];
            for (int64_t k = low; k <= high; k++) rows[k - low] = j->x + at + k * r->inner;
            r->set->lrn(j->y + at + c * r->inner, j->x + at + c * r->inner, rows, high - low + 1, n, r->alpha, r->bias,
                        r->beta);
        }
    }
}

/* A tile is some rows of channels. */
static void rows_of_channels(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t stop = end * r->cols < r->outer ? end * r->cols : r->outer;
    float between[COLS + SIZE_MAX_LRN];
    const float *rows[SIZE_MAX_LRN];
    for (int64_t k = 0; k <= r->before + r->after; k++) rows[k] = between + k;
    for (int64_t i = begin * r->cols; i < stop; i++) {
        const float *x = j->x + i * r->channels;
        for (int64_t c = 0; c < r->channels; c += COLS) {
            const int64_t n = r->channels - c < COLS ? r->channels - c : COLS;
            const int64_t low = c > r->before ? r->before : c;
            const int64_t left = r->channels - c - n, high = left < r->after ? left : r->after;
            memset(between, 0, (size_t)(r->before - low) * sizeof *between);
            memcpy(between + r->before - low, x + c - low, (size_t)(low + n + high) * sizeof *between);
            memset(between + r->before + n + high, 0, (size_t)(r->after - high) * sizeof *between);
            r->set->lrn(j->y + i * r->channels + c, x + c, rows, r->before + r->after + 1, n, r->alpha, r->bias,
                        r->beta);
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k->in[0], k->out[0] };
    if (r->inner > 1) row_parallel(k, r->outer * ((r->inner + r->cols - 1) / r->cols), parts, &j);
    else row_parallel(k, (r->outer + r->cols - 1) / r->cols, rows_of_channels, &j);
    return SINTER_OK;
}

const kernel cpu_lrn = {
    .name = "cpu_lrn",
    .abi = 1,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .bind = bind,
    .run = run,
};
