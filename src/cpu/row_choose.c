/* SPDX-License-Identifier: Apache-2.0 */
/* row_choose.c - arg_reduce of f32, f64 and integers, over any axis of any strides.
 *
 * Runs along the axis are read where these are contiguous, else columns beside each other, which short runs of f32 are
 * turned into. Of all but f32 the extreme is folded first, and then its place is looked for. */
#include "cpu/choose.h"
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/cpu_lines.h"
#include "cpu/cpu_move.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include "core/dtype.h"

#include <math.h>
#include <string.h>

/* SHORT: runs that are turned, of few lines the shortest alone. TURNED: numbers that are turned at once. AT_ONCE: rows
 * of columns that one call compares. LANES_MOST: f32 of the widest vector. */
enum { COLS = 512, SHORTEST = 8, SHORT = 64, TURNED = 4096, AT_ONCE = 8, LANES_MOST = 16, RUN_MAX = 1 << 30 };

typedef struct arg_record {
    const choose_set *set;
    rows_fold_fn *fold; /* NULL: f32 */
    sinter_dtype type;
    int64_t size; /* of an element */
    lines at;
    int64_t n, along;                      /* elements of a line, and the stride between them */
    bool is_max, last, is_cols, is_turned; /* is_turned: columns that are short runs in memory */
    int64_t unit;                          /* lines of a tile: of columns, those beside each other */
    int64_t blocks;                        /* of columns: tiles along the innermost axis */
} arg_record;

static const char *arg_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_arg_reduce, "no place of an extreme");
    const sinter_dtype type = p->in[0].dtype;
    REJECT_UNLESS(type == SINTER_DTYPE_F32 || level_plain.rows->fold_of(ROWS_MAX, type), "a type without loops for it");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "takes no programs");
    return NULL;
}

static double arg_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, 1);
}

static sinter_status arg_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                              const view *out, void *to)
{
    arg_record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_arg_reduce *a = attrs;
    const uint32_t rank = in[0].rank;
    bool fits = a->axis >= 0 && a->axis < rank && out[0].rank == rank - !a->keep && in[0].dim[a->axis] > 0;
    for (uint32_t i = 0; fits && i < rank; i++) {
        if (i != a->axis) fits = out[0].dim[a->keep || i < a->axis ? i : i - 1] == in[0].dim[i];
    }
    if (!fits) return FAIL(e, INVALID_ARG, "arg_reduce: the shapes of input and output do not go together");
    r->set = level_of(isa)->choose;
    r->type = in[0].dtype;
    r->size = sinter_dtype_bits(r->type) / 8;
    r->fold = level_of(isa)->rows->fold_of(a->is_max ? ROWS_MAX : ROWS_MIN, r->type);
    r->is_max = a->is_max != 0;
    r->last = a->last != 0;
    r->n = in[0].dim[a->axis];
    r->along = in[0].stride[a->axis];
    lines_init(&r->at, (const view *[]){ &in[0], &out[0] }, 2, 1u << a->axis);
    const uint32_t inner = r->at.rank - 1;
    r->is_turned = !r->fold && r->along == 1 && r->n > 1 && lines_step(&r->at, 0) > 0 &&
                   r->n <= (r->at.dim[inner] < LANES_MOST ? SHORTEST : SHORT);
    r->is_cols = r->is_turned || ((r->along != 1 || r->n == 1) && lines_step(&r->at, 0) == 1 && r->n <= RUN_MAX);
    if (r->is_cols) {
        r->unit = r->is_turned && r->n > TURNED / COLS ? TURNED / r->n : COLS;
        r->blocks = (r->at.dim[inner] + r->unit - 1) / r->unit;
    } else {
        r->unit = r->n < 8192 ? 8192 / r->n : 1;
    }
    return SINTER_OK;
}

typedef struct arg_job {
    const arg_record *r;
    const kernel_run *k;
} arg_job;

#define SAME(a, b) ((a) == (b))
#define SAME_F64(a, b) ((a) == (b) || (isnan(a) && isnan(b)))
/* The first, or last, of n numbers that is *best; one is. */
#define PLACE(name, type, same)                                                                                        \
    static int64_t place_##name(const void *from, int64_t step, const void *best, int64_t n, bool last)                \
    {                                                                                                                  \
        const type *x = from;                                                                                          \
        type v;                                                                                                        \
        memcpy(&v, best, sizeof v);                                                                                    \
        int64_t i = last ? n - 1 : 0;                                                                                  \
        while (!same(x[i * step], v)) i += last ? -1 : 1;                                                              \
        return i;                                                                                                      \
    }
PLACE(8, uint8_t, SAME)
PLACE(32, uint32_t, SAME)
PLACE(64, uint64_t, SAME)
PLACE(f64, double, SAME_F64)

/* Columns of what is folded first. */
static void cols_folded(const arg_record *r, const void *x, int64_t *y, int64_t step, int64_t n)
{
    int64_t best[COLS];
    memcpy(best, x, (size_t)(n * r->size));
    r->fold(best, x, r->n, r->along, n, 1);
    (r->type == SINTER_DTYPE_F64 ? r->set->places_f64
     : r->size == 1              ? r->set->places_8
     : r->size == 4              ? r->set->places_32
                                 : r->set->places_64)(y, step, x, r->along, best, r->n, n, r->last);
}

static int64_t along_folded(const arg_record *r, const char *x)
{
    int64_t best;
    memcpy(&best, x, (size_t)r->size);
    if (r->along == 1) r->fold(&best, x, r->n, 1, 1, 0);
    else r->fold(&best, x, r->n, r->along, 1, 1);
    return (r->type == SINTER_DTYPE_F64 ? place_f64
            : r->size == 1              ? place_8
            : r->size == 4              ? place_32
                                        : place_64)(x, r->along, &best, r->n, r->last);
}

static void cols(const arg_record *r, const kernel_run *k, int64_t tile)
{
    const lines *l = &r->at;
    const int64_t inner = l->dim[l->rank - 1], first = tile % r->blocks * r->unit;
    const int64_t n = inner - first < r->unit ? inner - first : r->unit;
    int64_t offset[LINES_VIEWS];
    lines_at(l, tile / r->blocks * inner + first, offset);
    const char *from = (const char *)k->in[0] + offset[0] * r->size;
    int64_t *y = (int64_t *)k->out[0] + offset[1];
    if (r->fold) {
        cols_folded(r, from, y, lines_step(l, 1), n);
        return;
    }
    const float *x = (const float *)(const void *)from;
    float best[COLS], turned[TURNED];
    int32_t place[COLS];
    int64_t step = r->along;
    if (r->is_turned) {
        step = n;
        move_transpose(4, (char *)turned, step * 4, from, lines_step(l, 0) * 4, r->n, n);
        x = turned;
    }
    /* Whole vectors of them are read. */
    const int64_t filled = n + LANES_MOST < COLS ? n + LANES_MOST : COLS;
    memset(best + n, 0, (size_t)(filled - n) * sizeof *best);
    memcpy(best, x, (size_t)n * sizeof *best);
    memset(place, 0, (size_t)filled * sizeof *place);
    for (int64_t i = 1; i < r->n; i += AT_ONCE) {
        const int64_t rows = r->n - i < AT_ONCE ? r->n - i : AT_ONCE;
        r->set->rows(best, place, x + i * step, step, (int32_t)i, (int32_t)rows, n, r->is_max, r->last);
    }
    const int64_t to = lines_step(l, 1);
    for (int64_t i = 0; i < n && to == 1; i++) y[i] = place[i];
    for (int64_t i = 0; i < n && to != 1; i++) y[i * to] = place[i];
}

static bool beats(float x, float best, bool is_max, bool last)
{
    if (isnan(x) || isnan(best)) return isnan(x) && (last || !isnan(best));
    return (is_max ? x > best : x < best) || (last && x == best);
}

static int64_t along(const arg_record *r, const float *x)
{
    const int64_t n = r->n, step = r->along;
    int64_t found = 0;
    for (int64_t i = 0; step == 1 && i < n; i += RUN_MAX) {
        const int64_t at = i + r->set->run(x + i, n - i < RUN_MAX ? n - i : RUN_MAX, r->is_max, r->last);
        if (i == 0 || beats(x[at], x[found], r->is_max, r->last)) found = at;
    }
    for (int64_t i = 1; step != 1 && i < n; i++) {
        if (beats(x[i * step], x[found * step], r->is_max, r->last)) found = i;
    }
    return found;
}

static void arg_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const arg_job *j = arg;
    const arg_record *r = j->r;
    for (int64_t tile = begin; tile < end && r->is_cols; tile++) cols(r, j->k, tile);
    if (r->is_cols) return;
    const int64_t stop = end * r->unit < r->at.count ? end * r->unit : r->at.count;
    for (int64_t i = begin * r->unit; i < stop; i++) {
        int64_t offset[LINES_VIEWS];
        lines_at(&r->at, i, offset);
        const char *x = (const char *)j->k->in[0] + offset[0] * r->size;
        ((int64_t *)j->k->out[0])[offset[1]] = r->fold ? along_folded(r, x) : along(r, (const void *)x);
    }
}

static sinter_status arg_run(const kernel_run *k)
{
    const arg_record *r = k->record;
    arg_job j = { r, k };
    const lines *l = &r->at;
    if (!l->count) return SINTER_OK;
    const int64_t tiles = r->is_cols ? l->count / l->dim[l->rank - 1] * r->blocks : (l->count + r->unit - 1) / r->unit;
    row_parallel(k, tiles, arg_body, &j);
    return SINTER_OK;
}

const kernel cpu_arg_reduce = {
    .name = "cpu_arg_reduce",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = arg_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = arg_cost_ns,
    .record = sizeof(arg_record),
    .bind = arg_bind,
    .run = arg_run,
};
