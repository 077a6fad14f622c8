/* SPDX-License-Identifier: Apache-2.0 */
/* row_cumulate.c - running sums and products along an axis of any strides, of f32, f64, i32 and i64.
 *
 * Several lines advance together, so that their additions do not wait for each other. Sums of f32 are kept in double,
 * as the reference does. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/cpu_lines.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include <string.h>

/* Lines of a group: those that are adjacent, and others. Many lines far apart would push each other out of the cache.
 */
enum { LINES = ROWS_CUMULATED, LINES_APART = 8, TILE_ELEMENTS = 16384 };

typedef struct record {
    rows_cumulate_fn *sums; /* of adjacent lines; NULL: products, or lines apart */
    sinter_dtype type;
    int64_t size;              /* of an element, in bytes */
    int64_t n, x_step, y_step; /* elements of a line; a negative step walks from the end */
    lines at;                  /* of y, and of x */
    int64_t x_first, y_first;  /* where lines begin */
    int64_t lines;             /* of a group: adjacent ones along the last axis */
    int64_t groups, inner;     /* groups in all, and beside each other */
    int64_t unit;              /* groups of a tile */
    bool exclusive, is_product;
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_cumulate, "no running sum");
    const sinter_dtype type = p->in[0].dtype;
    REJECT_UNLESS(type == SINTER_DTYPE_F32 || type == SINTER_DTYPE_F64 || type == SINTER_DTYPE_I32 ||
                      type == SINTER_DTYPE_I64,
                  "not in f32, f64, i32 or i64");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, 2);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_cumulate *a = attrs;
    const view *x = &in[0], *y = &out[0];
    bool fits = a->axis >= 0 && a->axis < x->rank && y->rank == x->rank;
    for (uint32_t i = 0; fits && i < x->rank; i++) fits = x->dim[i] == y->dim[i];
    if (!fits) return FAIL(e, INVALID_ARG, "cumulate: the shapes of input and output do not go together");
    *r = (record){ .type = x->dtype,
                   .size = sinter_dtype_bits(x->dtype) / 8,
                   .n = x->dim[a->axis],
                   .x_step = x->stride[a->axis],
                   .y_step = y->stride[a->axis],
                   .exclusive = a->exclusive != 0,
                   .is_product = a->is_product != 0 };
    if (a->reverse && r->n) {
        r->x_first = (r->n - 1) * r->x_step;
        r->y_first = (r->n - 1) * r->y_step;
        r->x_step = -r->x_step;
        r->y_step = -r->y_step;
    }
    lines_init(&r->at, (const view *[]){ y, x }, 2, 1u << a->axis);
    const uint32_t last = r->at.rank - 1;
    const int64_t across = r->at.dim[last];
    r->lines = lines_step(&r->at, 0) == 1 && lines_step(&r->at, 1) == 1 ? LINES : LINES_APART;
    const rows_set *set = level_of(isa)->rows;
    r->sums = r->is_product || r->lines != LINES ? NULL
              : x->dtype == SINTER_DTYPE_F32     ? set->cumulate_f32
              : x->dtype == SINTER_DTYPE_F64     ? set->cumulate_f64
              : x->dtype == SINTER_DTYPE_I32     ? set->cumulate_32
                                                 : set->cumulate_64;
    r->inner = (across + r->lines - 1) / r->lines;
    r->groups = r->inner;
    for (uint32_t i = 0; i < last; i++) r->groups *= r->at.dim[i];
    const int64_t each = r->n * (across < r->lines ? across : r->lines);
    r->unit = each > 0 && each < TILE_ELEMENTS ? TILE_ELEMENTS / each : 1;
    return SINTER_OK;
}

/* `some` lines, beside each other in x by `across_x` and in y by `across_y`. */
#define GROUP(name, type, wide)                                                                                        \
    static inline __attribute__((always_inline)) void name##_of(                                                       \
        const record *r, const type *x, type *y, int64_t some, int64_t across_x, int64_t across_y, const bool is_prod) \
    {                                                                                                                  \
        wide sum[LINES];                                                                                               \
        for (int64_t i = 0; i < some; i++) sum[i] = is_prod;                                                           \
        for (int64_t k = 0; k < r->n; k++, x += r->x_step, y += r->y_step) {                                           \
            for (int64_t i = 0; i < some; i++) {                                                                       \
                const wide before = sum[i], v = (wide)x[i * across_x];                                                 \
                sum[i] = is_prod ? before * v : before + v;                                                            \
                y[i * across_y] = (type)(r->exclusive ? before : sum[i]);                                              \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void name(const record *r, const void *x, int64_t x_at, void *y, int64_t y_at, int64_t some)                \
    {                                                                                                                  \
        const int64_t ax = lines_step(&r->at, 1), ay = lines_step(&r->at, 0);                                          \
        const type *from = (const type *)x + x_at;                                                                     \
        type *to = (type *)y + y_at;                                                                                   \
        /* Sums of a constant number of lines stay in registers. */                                                    \
        for (int64_t i = 0, step; i < some; i += step, from += step * ax, to += step * ay) {                           \
            step = some - i >= LINES_APART ? LINES_APART : 1;                                                          \
            if (r->is_product) name##_of(r, from, to, step, ax, ay, true);                                             \
            else if (step == 1) name##_of(r, from, to, 1, ax, ay, false);                                              \
            else name##_of(r, from, to, LINES_APART, ax, ay, false);                                                   \
        }                                                                                                              \
    }
GROUP(group_f32, float, double)
GROUP(group_f64, double, double)
GROUP(group_i32, int32_t, uint32_t)
GROUP(group_i64, int64_t, uint64_t)

typedef struct job {
    const record *r;
    const kernel_run *k;
} job;

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    const record *r = j->r;
    const int64_t across = r->at.dim[r->at.rank - 1];
    const int64_t stop = end * r->unit < r->groups ? end * r->unit : r->groups;
    for (int64_t g = begin * r->unit; g < stop; g++) {
        const int64_t first = g % r->inner * r->lines, left = across - first;
        const int64_t some = left < r->lines ? left : r->lines;
        int64_t offset[LINES_VIEWS];
        lines_at(&r->at, g / r->inner * across + first, offset);
        const int64_t x = r->x_first + offset[1], y = r->y_first + offset[0];
        if (r->sums) {
            r->sums((char *)j->k->out[0] + y * r->size, r->y_step, (const char *)j->k->in[0] + x * r->size, r->x_step,
                    r->n, some, r->exclusive);
        } else if (r->type == SINTER_DTYPE_F32) group_f32(r, j->k->in[0], x, j->k->out[0], y, some);
        else if (r->type == SINTER_DTYPE_F64) group_f64(r, j->k->in[0], x, j->k->out[0], y, some);
        else if (r->type == SINTER_DTYPE_I32) group_i32(r, j->k->in[0], x, j->k->out[0], y, some);
        else group_i64(r, j->k->in[0], x, j->k->out[0], y, some);
    }
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k };
    if (r->n && r->groups) row_parallel(k, (r->groups + r->unit - 1) / r->unit, body, &j);
    return SINTER_OK;
}

const kernel cpu_cumulate = {
    .name = "cpu_cumulate",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record = sizeof(record),
    .bind = bind,
    .run = run,
};
