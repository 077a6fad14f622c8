/* SPDX-License-Identifier: Apache-2.0 */
/* row_lp_norm.c - lines divided by the sum of their sizes, or by the root of the sum of their squares, in f32.
 *
 * The operands are dense and in the same order: [outer, n, inner], and lines go along n. Adjacent lines are summed
 * together where inner is more than 1. Squares of very large and very small numbers leave the range of f32: lines with
 * such sums are done in double. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include <math.h>
#include <string.h>

enum { COLS = 256, RUN = 4096, TILE_ELEMENTS = 8192 };

typedef struct record {
    const rows_set *set;
    int64_t outer, n, inner;
    int64_t step; /* inner > 1: columns of a tile; else lines of a tile */
    rows_fold fold;
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_lp_norm, "no lp_norm");
    REJECT_UNLESS(row_is_f32(p, 1), "not in f32");
    const problem_operand *x = &p->in[0], *y = &p->out[0];
    REJECT_UNLESS(x->rank >= 1 && y->rank == x->rank && !x->is_strided && !y->is_strided &&
                      !memcmp(x->order, y->order, x->rank),
                  "operands are strided, or lie in two orders");
    const attrs_lp_norm *a = p->attrs;
    REJECT_UNLESS(a->axis >= 0 && a->axis < x->rank, "the axis is not there");
    REJECT_UNLESS(a->p == 1 || a->p == 2, "p is neither 1 nor 2");
    REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, 1.2);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_lp_norm *a = attrs;
    *r = (record){ .set = level_of(isa)->rows, .outer = 1, .n = in[0].dim[a->axis], .inner = 1 };
    r->fold = a->p == 1 ? ROWS_ABS : ROWS_SQUARE;
    bool is_inside = false;
    for (uint32_t i = 0; i < in[0].rank; i++) {
        const uint32_t axis = p->in[0].order[i];
        if (axis == a->axis) is_inside = true;
        else if (is_inside) r->inner *= in[0].dim[axis];
        else r->outer *= in[0].dim[axis];
        if (in[0].dim[i] != out[0].dim[i])
            return FAIL(e, INVALID_ARG, "lp_norm: the shapes of input and output are not equal");
    }
    r->step = r->inner > 1 ? COLS : r->n > 0 && r->n < TILE_ELEMENTS ? TILE_ELEMENTS / r->n : 1;
    return SINTER_OK;
}

typedef struct job {
    const record *r;
    const float *x;
    float *y;
} job;

/* The factor of a line with that sum; false: f32 has lost the sum. A NaN stays one. */
static bool factor_of(const record *r, double sum, float *out)
{
    const double least = 1e-30, most = 1e38;
    if (sum < least || sum > most) return false;
    *out = (float)(1 / (r->fold == ROWS_ABS ? sum : sqrt(sum)));
    return true;
}

static void line_in_double(const record *r, float *y, const float *x, int64_t step)
{
    double sum = 0;
    for (int64_t i = 0; i < r->n; i++) {
        const double v = (double)x[i * step];
        sum += r->fold == ROWS_ABS ? fabs(v) : v * v;
    }
    const double norm = r->fold == ROWS_ABS ? sum : sqrt(sum);
    for (int64_t i = 0; i < r->n; i++) y[i * step] = norm == 0 ? 0 : (float)((double)x[i * step] / norm);
}

static void lines(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t stop = end * r->step < r->outer ? end * r->step : r->outer;
    for (int64_t i = begin * r->step; i < stop; i++) {
        const float *x = j->x + i * r->n;
        float *y = j->y + i * r->n, part, factor;
        double sum = 0;
        for (int64_t k = 0; k < r->n; k += RUN) {
            r->set->fold_rows(r->fold, &part, x + k, 1, 0, r->n - k < RUN ? r->n - k : RUN);
            sum += (double)part;
        }
        if (factor_of(r, sum, &factor)) r->set->affine(y, x, r->n, 0, factor, 0);
        else line_in_double(r, y, x, 1);
    }
}

/* A tile is some adjacent lines. */
static void columns(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t pieces = (r->inner + r->step - 1) / r->step;
    static const float zero[COLS];
    for (int64_t i = begin; i < end; i++) {
        const int64_t col = i % pieces * r->step, cols = r->inner - col < r->step ? r->inner - col : r->step;
        const int64_t at = i / pieces * r->n * r->inner + col;
        double sum[COLS] = { 0 };
        float part[COLS], factor[COLS];
        for (int64_t k = 0; k < r->n; k += RUN) {
            memset(part, 0, sizeof part);
            r->set->fold_cols(r->fold, part, j->x + at + k * r->inner, r->n - k < RUN ? r->n - k : RUN, r->inner, cols);
            for (int64_t c = 0; c < cols; c++) sum[c] += (double)part[c];
        }
        bool is_lost[COLS];
        for (int64_t c = 0; c < cols; c++) {
            is_lost[c] = !factor_of(r, sum[c], &factor[c]);
            if (is_lost[c]) factor[c] = 0;
        }
        for (int64_t k = 0; k < r->n; k++)
            r->set->affine_each(j->y + at + k * r->inner, j->x + at + k * r->inner, cols, zero, factor, zero);
        for (int64_t c = 0; c < cols; c++)
            if (is_lost[c]) line_in_double(r, j->y + at + c, j->x + at + c, r->inner);
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k->in[0], k->out[0] };
    if (r->inner > 1) row_parallel(k, r->outer * ((r->inner + r->step - 1) / r->step), columns, &j);
    else row_parallel(k, (r->outer + r->step - 1) / r->step, lines, &j);
    return SINTER_OK;
}

const kernel cpu_lp_norm = {
    .name = "cpu_lp_norm",
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
