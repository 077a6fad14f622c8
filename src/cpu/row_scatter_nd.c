/* SPDX-License-Identifier: Apache-2.0 */
/* row_scatter_nd.c - scatter_nd of dense row-major operands: sets blocks of any type of whole bytes, combines
 * those that combine.h has loops for.
 *
 * The data is copied, then each tuple of indices places its block. Tuples may be equal, and the later one counts, so
 * each worker takes all tuples in order, and a part of every block. */
#include "cpu/combine.h"
#include "cpu/cpu_index.h"
#include "cpu/cpu_kernels.h"
#include "cpu/row.h"

#include <string.h>

enum { PART_BYTES = 1024, COPY_BYTES = 65536 };

typedef struct record {
    int64_t bytes;                                         /* of the data */
    int64_t tuples, block;                                 /* block: bytes under one tuple */
    uint32_t parts;                                        /* indices of a tuple */
    int64_t limit[SINTER_RANK_MAX], step[SINTER_RANK_MAX]; /* of each part; step: bytes */
    sinter_dtype type;                                     /* of indices */
    combine_fn *combine;                                   /* NULL: sets */
    int64_t size;                                          /* of an element */
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_scatter_nd, "not a scatter_nd");
    const int64_t kind = ((const attrs_scatter_nd *)p->attrs)->kind;
    REJECT_UNLESS(kind == scatter_kind_set || combine_of(p->in[0].dtype, kind),
                  "combines elements of a type without loops for it");
    REJECT_UNLESS(sinter_dtype_bits(p->in[0].dtype) >= 8, "a type under a byte");
    REJECT_UNLESS(sinter_dtype_bits(p->in[1].dtype) >= 8, "indices of a type under a byte");
    REJECT_UNLESS(problem_operand_is_row_major(&p->in[0]) && problem_operand_is_row_major(&p->in[1]) &&
                      problem_operand_is_row_major(&p->in[2]) && problem_operand_is_row_major(&p->out[0]),
                  "operands are not dense and row-major");
    REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, 1) + row_operand_bytes(&p->in[1]);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const view *x = &in[0], *index = &in[1], *update = &in[2];
    const int64_t lead = (int64_t)index->rank - 1, parts = lead >= 0 ? index->dim[lead] : 0;
    bool fits = lead >= 0 && parts <= x->rank && out[0].rank == x->rank &&
                (int64_t)update->rank == lead + (int64_t)x->rank - parts;
    for (uint32_t i = 0; fits && i < x->rank; i++) fits = x->dim[i] == out[0].dim[i];
    for (int64_t i = 0; fits && i < update->rank; i++)
        fits = update->dim[i] == (i < lead ? index->dim[i] : x->dim[i - lead + parts]);
    if (!fits) return FAIL(e, INVALID_ARG, "scatter_nd: the shapes of data, indices and updates do not go together");
    *r = (record){ .type = index->dtype, .parts = (uint32_t)parts, .tuples = 1 };
    r->combine = combine_of(x->dtype, ((const attrs_scatter_nd *)attrs)->kind);
    r->size = sinter_dtype_bits(x->dtype) / 8;
    for (int64_t i = 0; i < lead; i++) r->tuples *= index->dim[i];
    int64_t bytes = r->size;
    for (int64_t i = x->rank; i-- > 0;) {
        if (i == parts - 1) r->block = bytes;
        if (i < parts) {
            r->limit[i] = x->dim[i];
            r->step[i] = bytes;
        }
        bytes *= x->dim[i];
    }
    if (!parts) r->block = bytes;
    r->bytes = bytes;
    return SINTER_OK;
}

typedef struct job {
    const record *r;
    const kernel_run *k;
    int64_t part; /* bytes of a block that one tile takes */
} job;

static void copy(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const int64_t from = (int64_t)begin * COPY_BYTES, to = (int64_t)end * COPY_BYTES;
    const int64_t stop = to < j->r->bytes ? to : j->r->bytes;
    memcpy((char *)j->k->out[0] + from, (const char *)j->k->in[0] + from, (size_t)(stop - from));
}

static void place(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t from = begin * j->part, stop = end * j->part < r->block ? end * j->part : r->block;
    for (int64_t i = 0; i < r->tuples; i++) {
        int64_t at = from;
        bool is_inside = true;
        for (uint32_t k = 0; k < r->parts && is_inside; k++) {
            int64_t pick = 0;
            is_inside = index_pick(j->k, r->type, j->k->in[1], i * r->parts + k, r->limit[k], &pick);
            if (is_inside) at += pick * r->step[k];
        }
        if (!is_inside) continue;
        char *y = (char *)j->k->out[0] + at;
        const char *x = (const char *)j->k->in[2] + i * r->block + from;
        if (r->combine) r->combine(y, r->size, x, r->size, (stop - from) / r->size);
        else memcpy(y, x, (size_t)(stop - from));
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k, PART_BYTES };
    row_parallel(k, (r->bytes + COPY_BYTES - 1) / COPY_BYTES, copy, &j);
    if (row_threads(k) == 1) j.part = r->block;
    if (r->tuples && r->block) row_parallel(k, (r->block + j.part - 1) / j.part, place, &j);
    return SINTER_OK;
}

const kernel cpu_scatter_nd = {
    .name = "cpu_scatter_nd",
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
