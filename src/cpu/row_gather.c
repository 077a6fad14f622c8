/* SPDX-License-Identifier: Apache-2.0 */
/* row_gather.c - gather of any type by blocks: what an index selects is copied as a run of bytes. */
#include "cpu/cpu_index.h"
#include "cpu/cpu_kernels.h"
#include "cpu/row.h"

enum { TILE_BYTES = 32768, PLACES = 1024 };

typedef struct record {
    int64_t outer, axis, count, block; /* block: bytes under one index */
    int64_t unit;                      /* indices of a tile */
    sinter_dtype type;                 /* of indices */
    row_after after;
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_gather, "not a gather");
    REJECT_UNLESS(sinter_dtype_bits(p->in[0].dtype) >= 8, "a type under a byte");
    REJECT_UNLESS(problem_operand_is_row_major(&p->in[0]) && problem_operand_is_row_major(&p->in[1]) &&
                      problem_operand_is_row_major(&p->out[0]),
                  "operands are not dense and row-major");
    REJECT_UNLESS(sinter_dtype_bits(p->in[1].dtype) >= 8, "indices of a type under a byte");
    if (p->epilogue) return p->in[0].dtype == SINTER_DTYPE_F32 ? row_after_reject(p) : "an epilogue, and not f32";
    return p->prologue ? "has a prologue" : NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const double threads = target->threads ? target->threads : 1,
                 bandwidth = target->bandwidth > 0 ? target->bandwidth : 1e10;
    return 500 + row_operand_bytes(&p->out[0]) * 2 / bandwidth * 1e9 / threads;
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const int64_t axis = ((const attrs_gather *)attrs)->axis;
    r->outer = 1;
    r->block = sinter_dtype_bits(in[0].dtype) / 8;
    for (uint32_t i = 0; i < in[0].rank; i++) {
        if (i < axis) r->outer *= in[0].dim[i];
        if (i > axis) r->block *= in[0].dim[i];
    }
    r->axis = in[0].dim[axis];
    r->count = view_count(&in[1]);
    r->type = in[1].dtype;
    r->unit = r->block > 0 && r->block < TILE_BYTES ? TILE_BYTES / r->block : 1;
    return row_after_bind(e, p, isa, in, out, &r->after, r + 1);
}

typedef struct job {
    const record *r;
    const kernel_run *k;
} job;

/* For n indices from number `first` on: at[i] is where the block of the index begins, in bytes; -1: outside the axis.
 */
static void places(const job *j, int64_t first, int64_t n, int64_t *at)
{
    const record *r = j->r;
    for (int64_t i = 0; i < n; i++) {
        int64_t pick;
        at[i] = index_pick(j->k, r->type, j->k->in[1], first + i, r->axis, &pick) ? pick * r->block : -1;
    }
}

#define PICKS(name, size)                                                                                              \
    static void name(char *y, const char *x, const int64_t *at, int64_t n, int64_t block)                              \
    {                                                                                                                  \
        (void)block;                                                                                                   \
        for (int64_t i = 0; i < n; i++, y += (size)) {                                                                 \
            if (at[i] >= 0) memcpy(y, x + at[i], (size_t)(size));                                                      \
            else memset(y, 0, (size_t)(size));                                                                         \
        }                                                                                                              \
    }
PICKS(picks_1, 1)
PICKS(picks_2, 2)
PICKS(picks_4, 4)
PICKS(picks_8, 8)
PICKS(picks_16, 16)
PICKS(picks_any, block)

static void picks(char *y, const char *x, const int64_t *at, int64_t n, int64_t block)
{
    switch (block) {
    case 1: picks_1(y, x, at, n, block); break;
    case 2: picks_2(y, x, at, n, block); break;
    case 4: picks_4(y, x, at, n, block); break;
    case 8: picks_8(y, x, at, n, block); break;
    case 16: picks_16(y, x, at, n, block); break;
    default: picks_any(y, x, at, n, block); break;
    }
}

/* Tiles that span several outer positions read the indices once: some of them for all positions, then the next ones. */
static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t total = r->outer * r->count, start = begin * r->unit;
    const int64_t stop = end * r->unit < total ? end * r->unit : total;
    if (start >= stop) return;
    const int64_t outer = start / r->count, last = (stop - 1) / r->count;
    const int64_t begins = outer == last ? start - outer * r->count : 0;
    const int64_t ends = outer == last ? stop - outer * r->count : r->count;
    int64_t at[PLACES];
    for (int64_t first = begins, n; first < ends; first += n) {
        n = ends - first < PLACES ? ends - first : PLACES;
        places(j, first, n, at);
        for (int64_t o = outer; o <= last; o++) {
            const int64_t low = start - o * r->count, high = stop - o * r->count;
            const int64_t from = low > first ? low : first, to = high < first + n ? high : first + n;
            if (from >= to) continue;
            picks((char *)j->k->out[0] + (o * r->count + from) * r->block,
                  (const char *)j->k->in[0] + o * r->axis * r->block, at + (from - first), to - from, r->block);
        }
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k };
    if (r->block) row_parallel(k, (r->outer * r->count + r->unit - 1) / r->unit, body, &j);
    row_after_all(&r->after, k, k->out[0]);
    return SINTER_OK;
}

const kernel cpu_gather = {
    .name = "cpu_gather",
    .abi = 1,
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
