/* SPDX-License-Identifier: Apache-2.0 */
/* row_cumulate.c - running sums and products along an axis of any strides, of f32, i32 and i64.
 *
 * Several lines advance together, so that their additions do not wait for each other. Sums of f32 are kept in double,
 * as the reference does. */
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include <string.h>

/* Lines of a group: those that are adjacent, and others. Many lines far apart would push each other out of the cache.
 */
enum { LINES = 256, LINES_APART = 8, TILE_ELEMENTS = 16384 };

typedef struct record {
    const rows_set *set;
    sinter_dtype type;
    int64_t n, x_step, y_step; /* elements of a line; a negative step walks from the end */
    uint32_t rank;             /* of the other axes, of which the last gives the lines of a group */
    int64_t dim[SINTER_RANK_MAX], x[SINTER_RANK_MAX], y[SINTER_RANK_MAX];
    int64_t x_first, y_first; /* where lines begin */
    int64_t lines;            /* of a group */
    int64_t groups, inner;    /* groups in all, and beside each other */
    int64_t unit;             /* groups of a tile */
    bool exclusive, is_product;
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_cumulate, "no running sum");
    const sinter_dtype type = p->in[0].dtype;
    REJECT_UNLESS(type == SINTER_DTYPE_F32 || type == SINTER_DTYPE_I32 || type == SINTER_DTYPE_I64,
                  "not in f32, i32 or i64");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, 2);
}

static size_t record_size(const problem *p, const tactic *t)
{
    (void)p, (void)t;
    return sizeof(record);
}

static int64_t magnitude(int64_t v)
{
    return v < 0 ? -v : v;
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
    *r = (record){ .set = level_of(isa)->rows,
                   .type = x->dtype,
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
    /* The axis with the smallest stride comes last. */
    for (uint32_t i = 0; i < x->rank; i++) {
        if (i == a->axis || x->dim[i] == 1) continue;
        uint32_t at = r->rank++;
        for (; at > 0 && magnitude(r->y[at - 1]) < magnitude(y->stride[i]); at--) {
            r->dim[at] = r->dim[at - 1];
            r->x[at] = r->x[at - 1];
            r->y[at] = r->y[at - 1];
        }
        r->dim[at] = x->dim[i];
        r->x[at] = x->stride[i];
        r->y[at] = y->stride[i];
    }
    if (!r->rank) r->dim[r->rank++] = 1;
    const uint32_t last = r->rank - 1;
    r->lines = r->x[last] == 1 && r->y[last] == 1 ? LINES : LINES_APART;
    r->inner = (r->dim[last] + r->lines - 1) / r->lines;
    r->groups = r->inner;
    for (uint32_t i = 0; i < last; i++) r->groups *= r->dim[i];
    const int64_t each = r->n * (r->dim[last] < r->lines ? r->dim[last] : r->lines);
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
        const int64_t ax = r->x[r->rank - 1], ay = r->y[r->rank - 1];                                                  \
        const type *from = (const type *)x + x_at;                                                                     \
        type *to = (type *)y + y_at;                                                                                   \
        if (r->is_product) name##_of(r, from, to, some, ax, ay, true);                                                 \
        else if (ax == 1 && ay == 1) name##_of(r, from, to, some, 1, 1, false);                                        \
        else name##_of(r, from, to, some, ax, ay, false);                                                              \
    }
GROUP(group_f32, float, double)
GROUP(group_i32, int32_t, uint32_t)
GROUP(group_i64, int64_t, uint64_t)

/* Sums of adjacent lines of f32. */
static void lines_f32(const record *r, const float *x, float *y, int64_t some)
{
    double sum[LINES];
    for (int64_t i = 0; i < some; i++) sum[i] = 0;
    for (int64_t k = 0; k < r->n; k++, x += r->x_step, y += r->y_step) r->set->cumulate(sum, y, x, some, r->exclusive);
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
    const uint32_t last = r->rank - 1;
    const int64_t stop = end * r->unit < r->groups ? end * r->unit : r->groups;
    for (int64_t g = begin * r->unit; g < stop; g++) {
        const int64_t first = g % r->inner * r->lines, left = r->dim[last] - first;
        const int64_t some = left < r->lines ? left : r->lines;
        int64_t x = r->x_first + first * r->x[last], y = r->y_first + first * r->y[last], outer = g / r->inner;
        for (uint32_t i = last; i-- > 0; outer /= r->dim[i]) {
            x += outer % r->dim[i] * r->x[i];
            y += outer % r->dim[i] * r->y[i];
        }
        if (r->type == SINTER_DTYPE_F32 && !r->is_product && r->x[last] == 1 && r->y[last] == 1)
            lines_f32(r, (const float *)j->k->in[0] + x, (float *)j->k->out[0] + y, some);
        else if (r->type == SINTER_DTYPE_F32) group_f32(r, j->k->in[0], x, j->k->out[0], y, some);
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
    .is_strided_out = true,
    .reject = reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = cost_ns,
    .record_size = record_size,
    .bind = bind,
    .run = run,
};
