/* SPDX-License-Identifier: Apache-2.0 */
/* row_make.c - one_hot, trilu and eye_like of dense row-major operands, of any type of 1, 2, 4 or 8 bytes. */
#include "cpu/cpu_index.h"
#include "cpu/cpu_kernels.h"
#include "cpu/row.h"

#include <string.h>

enum { TILE_BYTES = 32768 };

static const char *reject(const problem *p, op_id op)
{
    REJECT_UNLESS(p->op == op, "another op");
    const uint32_t bits = sinter_dtype_bits(p->out[0].dtype);
    REJECT_UNLESS(bits == 8 || bits == 16 || bits == 32 || bits == 64, "not a type of 1, 2, 4 or 8 bytes");
    for (uint32_t i = 0; i < p->count_in; i++)
        REJECT_UNLESS(problem_operand_is_row_major(&p->in[i]), "an operand is not dense and row-major");
    REJECT_UNLESS(problem_operand_is_row_major(&p->out[0]), "the result is not dense and row-major");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, 1);
}

/* ---- one_hot ---- */

typedef struct hot_record {
    int64_t outer, depth, inner; /* the result's axes, joined */
    int64_t size;                /* bytes of an element */
    int64_t rows, cuts;          /* steps of the depth in a tile; tiles for one outer position */
    sinter_dtype type;           /* of indices */
} hot_record;

static const char *hot_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    if (p->op != OP_one_hot) return "not a one_hot";
    REJECT_UNLESS(sinter_dtype_bits(p->in[0].dtype) >= 8, "indices of a type under a byte");
    return reject(p, OP_one_hot);
}

static sinter_status hot_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                              const view *out, void *to)
{
    hot_record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const int64_t axis = ((const attrs_one_hot *)attrs)->axis;
    const view *index = &in[0], *y = &out[0];
    bool fits = axis >= 0 && axis < y->rank && y->rank == index->rank + 1 && in[1].rank == 1 && in[1].dim[0] == 2;
    for (uint32_t i = 0; fits && i < index->rank; i++) fits = index->dim[i] == y->dim[i < axis ? i : i + 1];
    if (!fits) return FAIL(e, INVALID_ARG, "one_hot: the shapes of indices, values and output do not go together");
    *r = (hot_record){ .outer = 1, .inner = 1, .depth = y->dim[axis], .type = index->dtype };
    r->size = sinter_dtype_bits(y->dtype) / 8;
    for (uint32_t i = 0; i < y->rank; i++) {
        if (i < axis) r->outer *= y->dim[i];
        if (i > axis) r->inner *= y->dim[i];
    }
    const int64_t row = r->inner * r->size;
    r->rows = row > 0 && row < TILE_BYTES ? TILE_BYTES / row : 1;
    r->cuts = (r->depth + r->rows - 1) / r->rows;
    return SINTER_OK;
}

static void fill(char *y, int64_t count, int64_t size, const char *value)
{
    int64_t done = 1;
    if (count <= 0) return;
    memcpy(y, value, (size_t)size);
    for (; done < count; done *= 2)
        memcpy(y + done * size, y, (size_t)((done < count - done ? done : count - done) * size));
}

typedef struct hot_job {
    const hot_record *r;
    const kernel_run *k;
} hot_job;

static void hot_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const hot_job *j = arg;
    const hot_record *r = j->r;
    const char *values = j->k->in[1];
    for (int64_t tile = begin; tile < end; tile++) {
        const int64_t outer = tile / r->cuts, first = tile % r->cuts * r->rows;
        const int64_t stop = first + r->rows < r->depth ? first + r->rows : r->depth;
        char *y = (char *)j->k->out[0] + (outer * r->depth + first) * r->inner * r->size;
        fill(y, (stop - first) * r->inner, r->size, values);
        for (int64_t i = 0; i < r->inner; i++) {
            /* An index outside is allowed here: all of its results are off. */
            int64_t pick = index_load(r->type, j->k->in[0], outer * r->inner + i);
            if (pick < 0 && pick >= -r->depth) pick += r->depth;
            if (pick < first || pick >= stop) continue;
            memcpy(y + ((pick - first) * r->inner + i) * r->size, values + r->size, (size_t)r->size);
        }
    }
}

static sinter_status hot_run(const kernel_run *k)
{
    const hot_record *r = k->record;
    hot_job j = { r, k };
    if (r->inner) row_parallel(k, r->outer * r->cuts, hot_body, &j);
    return SINTER_OK;
}

const kernel cpu_one_hot = {
    .name = "cpu_one_hot",
    .abi = 1,
    .reject = hot_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(hot_record),
    .bind = hot_bind,
    .run = hot_run,
};

/* ---- trilu ---- */

typedef struct tri_record {
    int64_t total, rows, cols, k; /* total: rows of all matrices; rows, cols: of one */
    int64_t size, unit;           /* bytes of an element, rows of a tile */
    bool upper;
} tri_record;

static const char *tri_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    if (p->op != OP_trilu) return "not a trilu";
    REJECT_UNLESS(p->in[0].rank >= 2, "no matrix");
    return reject(p, OP_trilu);
}

static sinter_status tri_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                              const view *out, void *to)
{
    tri_record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_trilu *a = attrs;
    const view *x = &in[0];
    bool fits = x->rank >= 2 && out[0].rank == x->rank;
    for (uint32_t i = 0; fits && i < x->rank; i++) fits = x->dim[i] == out[0].dim[i];
    if (!fits) return FAIL(e, INVALID_ARG, "trilu: the shapes of input and output do not go together");
    *r = (tri_record){ .total = 1, .upper = a->upper != 0 };
    r->size = sinter_dtype_bits(x->dtype) / 8;
    r->rows = x->dim[x->rank - 2];
    r->cols = x->dim[x->rank - 1];
    for (uint32_t i = 0; i + 1 < x->rank; i++) r->total *= x->dim[i];
    const int64_t asked = a->k.count ? a->k.at[0] : 0;
    r->k = asked > r->cols ? r->cols : asked < -r->rows ? -r->rows : asked;
    const int64_t row = r->cols * r->size;
    r->unit = row > 0 && row < TILE_BYTES ? TILE_BYTES / row : 1;
    return SINTER_OK;
}

typedef struct tri_job {
    const tri_record *r;
    const kernel_run *k;
} tri_job;

static void tri_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const tri_job *j = arg;
    const tri_record *r = j->r;
    const int64_t stop = end * r->unit < r->total ? end * r->unit : r->total, row = r->cols * r->size;
    for (int64_t i = begin * r->unit; i < stop; i++) {
        /* Upper keeps columns from the diagonal on, lower keeps those up to it. */
        int64_t cut = i % r->rows + r->k + (r->upper ? 0 : 1);
        cut = (cut < 0 ? 0 : cut > r->cols ? r->cols : cut) * r->size;
        char *y = (char *)j->k->out[0] + i * row;
        const char *x = (const char *)j->k->in[0] + i * row;
        const int64_t kept = r->upper ? cut : 0, zero = r->upper ? 0 : cut;
        memcpy(y + kept, x + kept, (size_t)(r->upper ? row - cut : cut));
        memset(y + zero, 0, (size_t)(r->upper ? cut : row - cut));
    }
}

static sinter_status tri_run(const kernel_run *k)
{
    const tri_record *r = k->record;
    tri_job j = { r, k };
    if (r->cols) row_parallel(k, (r->total + r->unit - 1) / r->unit, tri_body, &j);
    return SINTER_OK;
}

const kernel cpu_trilu = {
    .name = "cpu_trilu",
    .abi = 1,
    .reject = tri_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(tri_record),
    .bind = tri_bind,
    .run = tri_run,
};

/* ---- eye_like ---- */

typedef struct eye_record {
    int64_t rows, cols, k;
    int64_t size, unit; /* bytes of an element, rows of a tile */
    uint64_t one;       /* in the first bytes */
} eye_record;

static const char *eye_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    if (p->op != OP_eye_like) return "not an eye_like";
    REJECT_UNLESS(p->out[0].rank == 2, "no matrix");
    return reject(p, OP_eye_like);
}

static sinter_status eye_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                              const view *out, void *to)
{
    (void)in;
    eye_record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const sinter_dtype type = out[0].dtype;
    if (out[0].rank != 2) return FAIL(e, INVALID_ARG, "eye_like: the output is no matrix");
    *r = (eye_record){ .rows = out[0].dim[0], .cols = out[0].dim[1], .k = ((const attrs_eye_like *)attrs)->k };
    r->size = sinter_dtype_bits(type) / 8;
    if (r->k > r->cols || r->k < -r->rows) r->k = r->cols; /* nowhere */
    if (dtype_is_float(type)) dtype_store_f64(type, &r->one, 0, 1);
    else dtype_store_i64(type, &r->one, 0, 1);
    const int64_t row = r->cols * r->size;
    r->unit = row > 0 && row < TILE_BYTES ? TILE_BYTES / row : 1;
    return SINTER_OK;
}

typedef struct eye_job {
    const eye_record *r;
    char *y;
} eye_job;

static void eye_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const eye_job *j = arg;
    const eye_record *r = j->r;
    const int64_t first = begin * r->unit, stop = end * r->unit < r->rows ? end * r->unit : r->rows;
    char *y = j->y + first * r->cols * r->size;
    memset(y, 0, (size_t)((stop - first) * r->cols * r->size));
    for (int64_t i = first; i < stop; i++, y += r->cols * r->size)
        if (i + r->k >= 0 && i + r->k < r->cols) memcpy(y + (i + r->k) * r->size, &r->one, (size_t)r->size);
}

static sinter_status eye_run(const kernel_run *k)
{
    const eye_record *r = k->record;
    eye_job j = { r, k->out[0] };
    if (r->cols) row_parallel(k, (r->rows + r->unit - 1) / r->unit, eye_body, &j);
    return SINTER_OK;
}

const kernel cpu_eye_like = {
    .name = "cpu_eye_like",
    .abi = 1,
    .reject = eye_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(eye_record),
    .bind = eye_bind,
    .run = eye_run,
};
