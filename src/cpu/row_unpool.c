/* SPDX-License-Identifier: Apache-2.0 */
/* row_unpool.c - max_unpool of dense row-major operands, of any type of 1, 2, 4 or 8 bytes.
 *
 * An index counts in the whole result. Where several are equal the last one counts, so one worker does all. */
#include "cpu/cpu_index.h"
#include "cpu/cpu_kernels.h"
#include "cpu/row.h"

#include <string.h>

typedef struct record {
    int64_t count, limit; /* elements of x, and of y */
    int64_t size;         /* of an element, in bytes */
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_max_unpool, "not a max_unpool");
    const uint32_t bits = sinter_dtype_bits(p->in[0].dtype);
    REJECT_UNLESS(bits == 8 || bits == 16 || bits == 32 || bits == 64, "not a type of 1, 2, 4 or 8 bytes");
    REJECT_UNLESS(p->in[1].dtype == SINTER_DTYPE_I64, "indices that are not i64");
    for (uint32_t i = 0; i < p->count_in; i++)
        REJECT_UNLESS(problem_operand_is_row_major(&p->in[i]), "an operand is not dense and row-major");
    REJECT_UNLESS(problem_operand_is_row_major(&p->out[0]), "the result is not dense and row-major");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, &(kernel_target){ .threads = 1, .bandwidth = target->bandwidth }, 1);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    (void)attrs;
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    if (view_count(&in[1]) != view_count(&in[0]))
        return FAIL(e, INVALID_ARG, "max_unpool: the shapes of input and indices do not go together");
    *r = (record){ .count = view_count(&in[0]), .limit = view_count(&out[0]) };
    r->size = sinter_dtype_bits(in[0].dtype) / 8;
    return SINTER_OK;
}

#define SCATTER(bits)                                                                                                  \
    static void scatter_##bits(const record *r, const kernel_run *k)                                                   \
    {                                                                                                                  \
        const uint##bits##_t *x = k->in[0];                                                                            \
        const int64_t *at = k->in[1], count = r->count, limit = r->limit;                                              \
        uint##bits##_t *y = k->out[0];                                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            if (at[i] >= 0 && at[i] < limit) y[at[i]] = x[i];                                                          \
            else index_fault(k, i, at[i], limit);                                                                      \
        }                                                                                                              \
    }
SCATTER(8)
SCATTER(16)
SCATTER(32)
SCATTER(64)

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    memset(k->out[0], 0, (size_t)(r->limit * r->size));
    (r->size == 1 ? scatter_8 : r->size == 2 ? scatter_16 : r->size == 4 ? scatter_32 : scatter_64)(r, k);
    return SINTER_OK;
}

const kernel cpu_max_unpool = {
    .name = "cpu_max_unpool",
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
