/* SPDX-License-Identifier: Apache-2.0 */
/* row_tensor_scatter.c - new rows written into a cache, of any type of whole bytes and any strides. Where the result
 * lies in the cache's own bytes, the new rows are all that is moved. */
#include "backend/reference.h"
#include "core/dtype.h"
#include "cpu/cpu_kernels.h"
#include "cpu/cpu_move.h"
#include "cpu/row.h"

typedef struct record {
    move_plan copy, rows;                 /* the whole cache; the new rows of one batch */
    int64_t batch, limit, start_stride;   /* limit: the last position at which the new rows still fit */
    int64_t to_batch, to_row, from_batch; /* bytes */
    sinter_dtype index;                   /* NONE: the rows begin at position 0 */
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_tensor_scatter, "not a write into a cache");
    const attrs_tensor_scatter *a = p->attrs;
    REJECT_UNLESS(!a->circular, "a circular cache");
    REJECT_UNLESS(a->axis >= 1 && a->axis < p->out[0].rank, "no such axis");
    REJECT_UNLESS(sinter_dtype_bits(p->out[0].dtype) >= 8, "a type under a byte");
    REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "takes no programs");
    return NULL;
}

/* The cache itself is copied where the result is not the cache: what plans avoid. */
static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const bool is_in_place = ((const attrs_tensor_scatter *)p->attrs)->in_place != 0;
    return is_in_place ? row_operand_bytes(&p->in[1]) * 0.2 : row_memory_ns(p, target, 1);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    (void)t;
    memset(r, 0, sizeof *r);
    const uint32_t axis = (uint32_t)((const attrs_tensor_scatter *)attrs)->axis, rank = out[0].rank;
    const bool has_start = p->count_in > 2 && p->in[2].dtype != SINTER_DTYPE_NONE;
    bool fits = in[0].rank == rank && in[1].rank == rank;
    for (uint32_t i = 0; fits && i < rank; i++)
        fits = in[0].dim[i] == out[0].dim[i] &&
               (i == axis ? in[1].dim[i] <= out[0].dim[i] : in[1].dim[i] == out[0].dim[i]);
    if (!fits || (has_start && (in[2].rank != 1 || in[2].dim[0] != out[0].dim[0])))
        return FAIL(e, INVALID_ARG, "tensor_scatter: the shapes of cache, update and write indices do not go together");
    const int64_t size = sinter_dtype_bits(out[0].dtype) / 8;
    view part = out[0], rows = in[1];
    part.dim[0] = rows.dim[0] = 1;
    part.dim[axis] = rows.dim[axis];
    move_plan_init(&r->copy, &out[0], &in[0], NULL);
    move_plan_init(&r->rows, &part, &rows, NULL);
    r->batch = out[0].dim[0];
    r->limit = out[0].dim[axis] - in[1].dim[axis];
    r->to_batch = out[0].stride[0] * size;
    r->to_row = out[0].stride[axis] * size;
    r->from_batch = in[1].stride[0] * size;
    r->index = has_start ? in[2].dtype : SINTER_DTYPE_NONE;
    r->start_stride = has_start ? in[2].stride[0] : 0;
    return SINTER_OK;
}

typedef struct job {
    const move_plan *plan;
    void *to;
    const void *from;
} job;

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    move_run(j->plan, j->to, j->from, begin, end);
}

/* Rows that do not fit are not written. */
static bool start_of(const record *r, const kernel_run *k, int64_t batch, int64_t *out)
{
    *out = r->index == SINTER_DTYPE_NONE ? 0 : dtype_load_i64(r->index, k->in[2], batch * r->start_stride);
    if (*out >= 0 && *out <= r->limit) return true;
    if (k->fault && !k->fault->is_set)
        *k->fault = (data_fault){ .is_set = 1, .index = batch, .value = *out, .limit = r->limit + 1 };
    return false;
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    if (k->out[0] != k->in[0]) {
        job j = { &r->copy, k->out[0], k->in[0] };
        row_parallel(k, move_tile_count(&r->copy), body, &j);
    }
    for (int64_t b = 0; b < r->batch; b++) {
        int64_t start;
        if (!start_of(r, k, b, &start)) continue;
        job j = { &r->rows, (char *)k->out[0] + b * r->to_batch + start * r->to_row,
                  (const char *)k->in[1] + b * r->from_batch };
        row_parallel(k, move_tile_count(&r->rows), body, &j);
    }
    return SINTER_OK;
}

const kernel cpu_tensor_scatter = {
    .name = "cpu_tensor_scatter",
    .abi = 2,
    .updates_in_place = true,
    .reject = reject,
    .tactics = reference_row_tactics,
    .check = reference_row_check,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .bind = bind,
    .run = run,
};
