/* SPDX-License-Identifier: Apache-2.0 */
/* row_matmul_wide.c - matmul of f64 and of integers of 32 and 64 bits, and of f32 where a matrix is one row or one
 * column, of operands of any strides.
 *
 * A task is some rows and columns of one matrix of the result. A single row or column reads its matrix once: packing
 * it would take as long. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/matmul_wide.h"
#include "cpu/row.h"

enum { TASK = 64, TASK_THIN = 512 };

typedef struct record {
    matmul_wide_fn *product;
    matmul_wide whole;                                      /* of the first matrices */
    uint32_t rank;                                          /* of batches */
    int64_t dim[SINTER_RANK_MAX], step[3][SINTER_RANK_MAX]; /* bytes: of a, b and y */
    int64_t size, task, down, across, tasks; /* of an element; task: rows and columns; down, across: of a matrix */
    row_after after;                         /* of f32 */
} record;

/* Rows of a, and columns of b, of one matrix. */
static int64_t size_of(const problem *p, uint32_t which, bool is_swapped)
{
    const problem_operand *o = &p->in[which];
    return o->rank < 2 ? 1 : o->dim[o->rank - (which ^ is_swapped ? 1u : 2u)].max;
}

static const char *thin_reject(const problem *p)
{
    const attrs_matmul *at = p->attrs;
    const bool is_column = size_of(p, 1, at->trans_b) == 1;
    REJECT_UNLESS(is_column || size_of(p, 0, at->trans_a) == 1, "f32, and no matrix is one row or one column");
    REJECT_UNLESS(row_is_f32(p, 2), "not in f32 alone");
    REJECT_UNLESS(is_column || !p->in[1].is_const || p->in[0].rank < 2, "a constant matrix is packed");
    for (uint32_t i = 0; i < p->out[0].rank; i++) REJECT_UNLESS(p->out[0].order[i] == i, "the result is not row-major");
    return row_after_reject(p);
}

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_matmul, "no matmul");
    const sinter_dtype type = p->in[0].dtype;
    REJECT_UNLESS(p->in[0].rank >= 1 && p->in[1].rank >= 1, "a single number");
    if (type == SINTER_DTYPE_F32) return thin_reject(p);
    REJECT_UNLESS(type == SINTER_DTYPE_F64 || type == SINTER_DTYPE_I32 || type == SINTER_DTYPE_U32 ||
                      type == SINTER_DTYPE_I64 || type == SINTER_DTYPE_U64,
                  "neither in f32, in f64 nor in integers of 32 or 64 bits");
    REJECT_UNLESS(p->count_in == 2 && p->in[1].dtype == type && p->out[0].dtype == type, "operands of several types");
    REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const problem_operand *a = &p->in[0];
    const attrs_matmul *at = p->attrs;
    double products = (double)a->dim[a->rank > 1 && at->trans_a ? a->rank - 2 : a->rank - 1].opt;
    for (uint32_t i = 0; i < p->out[0].rank; i++) products *= (double)p->out[0].dim[i].opt;
    const double rate = target->flops > 0 ? target->flops : 1e10;
    return row_memory_ns(p, target, 1) + products * (p->in[0].dtype == SINTER_DTYPE_F32 ? 4e9 : 8e9) / rate;
}

/* Steps of the batches of operand `which`, whose last `own` axes are its matrix. false: they do not go together. */
static bool batches_of(record *r, uint32_t which, const view *v, uint32_t own)
{
    view batch = *v, wide;
    batch.rank = v->rank - own;
    if (!view_broadcast(&batch, r->rank, r->dim, &wide)) return false;
    for (uint32_t i = 0; i < r->rank; i++) r->step[which][i] = wide.stride[i] * r->size;
    return true;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const matmul_wide_set *set = level_of(isa)->matmul_wide;
    const attrs_matmul *at = attrs;
    const view *a = &in[0], *b = &in[1], *y = &out[0];
    const uint32_t has_m = a->rank > 1, has_n = b->rank > 1, last_a = a->rank - 1, last_b = b->rank - 1;
    if (y->rank < has_m + has_n) return FAIL(e, INVALID_ARG, "matmul: a result of rank %u", y->rank);
    *r = (record){ .size = sinter_dtype_bits(y->dtype) / 8, .rank = y->rank - has_m - has_n };
    r->product = y->dtype == SINTER_DTYPE_F32   ? set->thin
                 : y->dtype == SINTER_DTYPE_F64 ? set->f64
                 : r->size == 4                 ? set->of_32
                                                : set->of_64;
    const uint32_t a_k = has_m && at->trans_a ? last_a - 1 : last_a, a_m = has_m && !at->trans_a ? last_a - 1 : last_a;
    const uint32_t b_k = has_n && !at->trans_b ? last_b - 1 : last_b, b_n = has_n && at->trans_b ? last_b - 1 : last_b;
    r->whole = (matmul_wide){ .m = has_m ? a->dim[a_m] : 1,
                              .k = a->dim[a_k],
                              .n = has_n ? b->dim[b_n] : 1,
                              .a_row = has_m ? a->stride[a_m] : 0,
                              .a_col = a->stride[a_k],
                              .b_row = b->stride[b_k],
                              .b_col = has_n ? b->stride[b_n] : 0,
                              .y_row = has_m ? y->stride[r->rank] : 0,
                              .y_col = has_n ? y->stride[r->rank + has_m] : 0 };
    for (uint32_t i = 0; i < r->rank; i++) r->dim[i] = y->dim[i];
    if (b->dim[b_k] != r->whole.k || (has_m && y->dim[r->rank] != r->whole.m) ||
        (has_n && y->dim[r->rank + has_m] != r->whole.n) || !batches_of(r, 0, a, 1 + has_m) ||
        !batches_of(r, 1, b, 1 + has_n))
        return FAIL(e, INVALID_ARG, "matmul: the shapes of the operands do not go together");
    for (uint32_t i = 0; i < r->rank; i++) r->step[2][i] = y->stride[i] * r->size;
    r->task = y->dtype == SINTER_DTYPE_F32 ? TASK_THIN : TASK;
    r->down = (r->whole.m + r->task - 1) / r->task;
    r->across = (r->whole.n + r->task - 1) / r->task;
    r->tasks = r->down * r->across;
    for (uint32_t i = 0; i < r->rank; i++) r->tasks *= r->dim[i];
    return y->dtype == SINTER_DTYPE_F32 ? row_after_bind(e, p, isa, in, out, &r->after, r + 1) : SINTER_OK;
}

typedef struct job {
    const record *r;
    const kernel_run *k;
} job;

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    for (int64_t task = begin; task < end; task++) {
        matmul_wide part = r->whole;
        const int64_t col = task % r->across * r->task, row = task / r->across % r->down * r->task;
        int64_t at[3] = { row * part.a_row * r->size, col * part.b_col * r->size,
                          (row * part.y_row + col * part.y_col) * r->size };
        int64_t batch = task / (r->across * r->down);
        for (uint32_t i = r->rank; i-- > 0; batch /= r->dim[i])
            for (uint32_t k = 0; k < 3; k++) at[k] += batch % r->dim[i] * r->step[k][i];
        part.m = part.m - row < r->task ? part.m - row : r->task;
        part.n = part.n - col < r->task ? part.n - col : r->task;
        part.a = (const char *)j->k->in[0] + at[0];
        part.b = (const char *)j->k->in[1] + at[1];
        part.y = (char *)j->k->out[0] + at[2];
        r->product(&part);
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    row_parallel(k, r->tasks, body, &(job){ r, k });
    row_after_all(&r->after, k, k->out[0]);
    return SINTER_OK;
}

const kernel cpu_matmul_wide = {
    .name = "cpu_matmul_wide",
    .abi = 1,
    .out_strides = STRIDES_ANY,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .record_size = row_record_room,
    .bind = bind,
    .run = run,
};
