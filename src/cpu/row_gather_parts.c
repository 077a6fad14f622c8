/* SPDX-License-Identifier: Apache-2.0 */
/* row_gather_parts.c - gather_nd and gather_elements of any type of whole bytes, dense and row-major.
 *
 * gather_nd copies one block for each tuple of indices. gather_elements copies single elements, a row of the result's
 * last axis at a time. */
#include "cpu/cpu_index.h"
#include "cpu/cpu_kernels.h"
#include "cpu/row.h"

#include <string.h>

enum { TILE_BYTES = 32768, TILE_INDICES = 2048, PLACES = 256 };

static const char *reject(const problem *p)
{
    REJECT_UNLESS(sinter_dtype_bits(p->in[0].dtype) >= 8, "a type under a byte");
    REJECT_UNLESS(sinter_dtype_bits(p->in[1].dtype) >= 8, "indices of a type under a byte");
    REJECT_UNLESS(problem_operand_is_row_major(&p->in[0]) && problem_operand_is_row_major(&p->in[1]) &&
                      problem_operand_is_row_major(&p->out[0]),
                  "operands are not dense and row-major");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "takes no programs");
    return NULL;
}

/* Reads what it writes, and the indices. */
static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const double threads = target->threads ? target->threads : 1,
                 bandwidth = target->bandwidth > 0 ? target->bandwidth : 1e10;
    return 500 + (row_operand_bytes(&p->out[0]) * 2 + row_operand_bytes(&p->in[1])) / bandwidth * 1e9 / threads;
}

static void element(int64_t size, char *to, const char *from)
{
    switch (size) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, (size_t)size); break;
    }
}

/* ---- gather_nd ---- */

typedef struct nd_record {
    int64_t tuples, each; /* tuples in all, and of one batch entry */
    int64_t batch, block; /* bytes of the data of one batch entry, and under one tuple */
    int64_t unit;         /* tuples of a tile */
    uint32_t parts;       /* indices of a tuple */
    int64_t limit[SINTER_RANK_MAX], step[SINTER_RANK_MAX]; /* of each part; step: bytes */
    sinter_dtype type;
} nd_record;

static const char *nd_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_gather_nd, "not a gather_nd");
    return reject(p);
}

static sinter_status nd_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                             const view *out, void *to)
{
    nd_record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const int64_t batch = ((const attrs_gather_nd *)attrs)->batch_dims;
    const view *x = &in[0], *index = &in[1];
    const int64_t lead = (int64_t)index->rank - 1, parts = lead >= 0 ? index->dim[lead] : 0;
    bool fits = lead >= 0 && batch >= 0 && batch <= lead && batch < x->rank && parts <= x->rank - batch;
    const int64_t used = batch + parts;
    fits = fits && (int64_t)out[0].rank == lead + x->rank - used;
    for (int64_t k = 0; fits && k < lead; k++)
        fits = out[0].dim[k] == index->dim[k] && (k >= batch || x->dim[k] == index->dim[k]);
    for (int64_t k = used; fits && k < x->rank; k++) fits = out[0].dim[lead + k - used] == x->dim[k];
    if (!fits) return FAIL(e, INVALID_ARG, "gather_nd: the shapes of data, indices and output do not go together");
    r->parts = (uint32_t)parts;
    r->type = index->dtype;
    r->tuples = r->each = 1;
    for (int64_t k = 0; k < lead; k++) {
        r->tuples *= index->dim[k];
        if (k >= batch) r->each *= index->dim[k];
    }
    int64_t bytes = sinter_dtype_bits(x->dtype) / 8;
    for (int64_t k = x->rank; k-- > 0;) {
        if (k == used - 1) r->block = bytes;
        if (k >= batch && k < used) {
            r->limit[k - batch] = x->dim[k];
            r->step[k - batch] = bytes;
        }
        if (k == batch - 1) r->batch = bytes;
        bytes *= x->dim[k];
    }
    if (!used) r->block = bytes;
    if (!batch) r->batch = 0;
    r->unit = r->block < TILE_BYTES ? TILE_BYTES / (r->block + 16) + 1 : 1;
    return SINTER_OK;
}

typedef struct nd_job {
    const nd_record *r;
    const kernel_run *k;
} nd_job;

/* Where each of n tuples points to, in bytes; false: some part of one is outside. Without a branch: signs cannot be
 * guessed. */
static inline __attribute__((always_inline)) bool nd_places_of(const nd_record *r, const int64_t *at, int64_t n,
                                                               int64_t *place, const uint32_t parts)
{
    uint64_t limit[SINTER_RANK_MAX], step[SINTER_RANK_MAX], outside = 0;
    for (uint32_t k = 0; k < parts; k++) {
        limit[k] = (uint64_t)r->limit[k];
        step[k] = (uint64_t)r->step[k];
    }
    for (int64_t i = 0; i < n; i++, at += parts) {
        uint64_t from = 0;
        for (uint32_t k = 0; k < parts; k++) {
            const uint64_t value = (uint64_t)at[k], pick = value + ((0 - (value >> 63)) & limit[k]);
            outside |= (uint64_t)(pick >= limit[k]);
            from += pick * step[k];
        }
        place[i] = (int64_t)from;
    }
    return !outside;
}

static bool nd_places(const nd_record *r, const int64_t *at, int64_t n, int64_t *place)
{
    switch (r->parts) {
    case 1: return nd_places_of(r, at, n, place, 1);
    case 2: return nd_places_of(r, at, n, place, 2);
    case 3: return nd_places_of(r, at, n, place, 3);
    case 4: return nd_places_of(r, at, n, place, 4);
    default: return nd_places_of(r, at, n, place, r->parts);
    }
}

#define ND_COPY(size)                                                                                                  \
    for (int64_t i = 0; i < n; i++) memcpy(y + i * (size), x + place[i], (size_t)(size))

static void nd_copy(char *restrict y, const char *restrict x, const int64_t *restrict place, int64_t n, int64_t block)
{
    switch (block) {
    case 1: ND_COPY(1); break;
    case 2: ND_COPY(2); break;
    case 4: ND_COPY(4); break;
    case 8: ND_COPY(8); break;
    case 16: ND_COPY(16); break;
    default: ND_COPY(block); break;
    }
}

static void nd_one(const nd_record *r, const kernel_run *k, char *to, const char *x, int64_t i)
{
    int64_t from = 0;
    bool is_inside = true;
    for (uint32_t part = 0; part < r->parts && is_inside; part++) {
        int64_t pick = 0;
        is_inside = index_pick(k, r->type, k->in[1], i * r->parts + part, r->limit[part], &pick);
        if (is_inside) from += pick * r->step[part];
    }
    if (is_inside) element(r->block, to, x + from);
    else memset(to, 0, (size_t)r->block);
}

/* Some tuples of one batch entry at a time. */
static void nd_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const nd_job *j = arg;
    const nd_record *r = j->r;
    const int64_t stop = end * r->unit < r->tuples ? end * r->unit : r->tuples;
    int64_t place[PLACES], n;
    for (int64_t i = begin * r->unit; i < stop; i += n) {
        const int64_t left = r->each - i % r->each;
        n = left < stop - i ? left : stop - i;
        if (n > PLACES) n = PLACES;
        const char *x = (const char *)j->k->in[0] + i / r->each * r->batch;
        char *y = (char *)j->k->out[0] + i * r->block;
        if (r->type == SINTER_DTYPE_I64 && nd_places(r, (const int64_t *)j->k->in[1] + i * r->parts, n, place)) {
            nd_copy(y, x, place, n, r->block);
            continue;
        }
        for (int64_t t = 0; t < n; t++) nd_one(r, j->k, y + t * r->block, x, i + t);
    }
}

static sinter_status nd_run(const kernel_run *k)
{
    const nd_record *r = k->record;
    nd_job j = { r, k };
    if (r->block && r->tuples) row_parallel(k, (r->tuples + r->unit - 1) / r->unit, nd_body, &j);
    return SINTER_OK;
}

const kernel cpu_gather_nd = {
    .name = "cpu_gather_nd",
    .abi = 1,
    .reject = nd_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(nd_record),
    .bind = nd_bind,
    .run = nd_run,
};

/* ---- gather_elements ---- */

typedef struct elements_record {
    int64_t rows, cols, unit;                            /* rows: of the result's last axis; unit: rows of a tile */
    int64_t limit, step;                                 /* of the axis; step: bytes */
    int64_t size;                                        /* bytes of an element */
    bool is_last;                                        /* the axis is the last one */
    uint32_t outer;                                      /* axes before the last */
    int64_t dim[SINTER_RANK_MAX], base[SINTER_RANK_MAX]; /* of these; base: bytes in the data, 0 for the axis */
    sinter_dtype type;
} elements_record;

static const char *elements_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_gather_elements, "not a gather of elements");
    REJECT_UNLESS(p->in[0].rank > 0, "a scalar");
    return reject(p);
}

static sinter_status elements_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                   const view *out, void *to)
{
    elements_record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const int64_t axis = ((const attrs_gather_elements *)attrs)->axis;
    const view *x = &in[0], *index = &in[1];
    const uint32_t rank = x->rank;
    bool fits = axis >= 0 && axis < rank && index->rank == rank && out[0].rank == rank;
    for (uint32_t i = 0; fits && i < rank; i++)
        fits = index->dim[i] == out[0].dim[i] && (i == axis || index->dim[i] <= x->dim[i]);
    if (!fits)
        return FAIL(e, INVALID_ARG, "gather_elements: the shapes of data, indices and output do not go together");
    r->size = sinter_dtype_bits(x->dtype) / 8;
    r->type = index->dtype;
    r->outer = rank - 1;
    r->cols = index->dim[rank - 1];
    r->limit = x->dim[axis];
    r->is_last = axis + 1 == rank;
    r->rows = 1;
    int64_t bytes = r->size;
    for (uint32_t i = rank; i-- > 0;) {
        if (i == axis) r->step = bytes;
        if (i + 1 < rank) {
            r->dim[i] = index->dim[i];
            r->base[i] = i == axis ? 0 : bytes;
            r->rows *= index->dim[i];
        }
        bytes *= x->dim[i];
    }
    r->unit = r->cols < TILE_INDICES ? TILE_INDICES / (r->cols + 1) + 1 : 1;
    return SINTER_OK;
}

typedef struct elements_job {
    const elements_record *r;
    const kernel_run *k;
} elements_job;

/* One row of results; first: the place of its first index. */
#define ELEMENTS(name, bytes)                                                                                          \
    static void name(const elements_record *r, const kernel_run *k, char *y, const char *x, int64_t first)             \
    {                                                                                                                  \
        const sinter_dtype type = r->type;                                                                             \
        const int64_t n = r->cols, limit = r->limit, step = r->step, size = (bytes), along = r->is_last ? 0 : size;    \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            int64_t pick = 0;                                                                                          \
            if (index_pick(k, type, k->in[1], first + j, limit, &pick))                                                \
                memcpy(y + j * size, x + pick * step + j * along, (size_t)size);                                       \
            else memset(y + j * size, 0, (size_t)size);                                                                \
        }                                                                                                              \
    }
ELEMENTS(elements_of_1, 1)
ELEMENTS(elements_of_2, 2)
ELEMENTS(elements_of_4, 4)
ELEMENTS(elements_of_8, 8)
ELEMENTS(elements_of_any, r->size)

/* The same for indices of 64 bits, most of which need no look at the fault. */
#define ELEMENTS_BY_I64(name, type, other)                                                                             \
    static void name(const elements_record *r, const kernel_run *k, char *y, const char *x, int64_t first)             \
    {                                                                                                                  \
        const int64_t n = r->cols, limit = r->limit, step = r->step / (int64_t)sizeof(type),                           \
                      along = r->is_last ? 0 : 1;                                                                      \
        const int64_t *at = (const int64_t *)k->in[1] + first;                                                         \
        const type *from = (const type *)(const void *)x;                                                              \
        type *to = (type *)(void *)y;                                                                                  \
        bool is_outside = false;                                                                                       \
        for (int64_t j = 0; r->is_last && j < n; j++) {                                                                \
            const int64_t pick = at[j] + (at[j] < 0 ? limit : 0);                                                      \
            if ((uint64_t)pick < (uint64_t)limit) to[j] = from[pick];                                                  \
            else is_outside = true;                                                                                    \
        }                                                                                                              \
        for (int64_t j = 0; !r->is_last && j < n; j++) {                                                               \
            const int64_t pick = at[j] + (at[j] < 0 ? limit : 0);                                                      \
            const bool is_inside = (uint64_t)pick < (uint64_t)limit;                                                   \
            is_outside = is_outside || !is_inside;                                                                     \
            if (is_inside) to[j] = from[pick * step + j * along];                                                      \
        }                                                                                                              \
        if (is_outside) other(r, k, y, x, first);                                                                      \
    }
ELEMENTS_BY_I64(elements_i64_of_4, uint32_t, elements_of_4)
ELEMENTS_BY_I64(elements_i64_of_8, uint64_t, elements_of_8)

static void elements_row(const elements_record *r, const kernel_run *k, int64_t row)
{
    int64_t from = 0, left = row;
    for (uint32_t i = r->outer; i-- > 0;) {
        from += left % r->dim[i] * r->base[i];
        left /= r->dim[i];
    }
    const char *x = (const char *)k->in[0] + from;
    char *y = (char *)k->out[0] + row * r->cols * r->size;
    switch (r->size) {
    case 1: elements_of_1(r, k, y, x, row * r->cols); break;
    case 2: elements_of_2(r, k, y, x, row * r->cols); break;
    case 4: (r->type == SINTER_DTYPE_I64 ? elements_i64_of_4 : elements_of_4)(r, k, y, x, row * r->cols); break;
    case 8: (r->type == SINTER_DTYPE_I64 ? elements_i64_of_8 : elements_of_8)(r, k, y, x, row * r->cols); break;
    default: elements_of_any(r, k, y, x, row * r->cols); break;
    }
}

static void elements_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const elements_job *j = arg;
    const int64_t stop = end * j->r->unit < j->r->rows ? end * j->r->unit : j->r->rows;
    for (int64_t i = begin * j->r->unit; i < stop; i++) elements_row(j->r, j->k, i);
}

static sinter_status elements_run(const kernel_run *k)
{
    const elements_record *r = k->record;
    elements_job j = { r, k };
    if (r->cols && r->rows) row_parallel(k, (r->rows + r->unit - 1) / r->unit, elements_body, &j);
    return SINTER_OK;
}

const kernel cpu_gather_elements = {
    .name = "cpu_gather_elements",
    .abi = 1,
    .reject = elements_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(elements_record),
    .bind = elements_bind,
    .run = elements_run,
};
