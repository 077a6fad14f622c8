/* SPDX-License-Identifier: Apache-2.0 */
/* row_choose.c - arg_reduce and top_k of f32, and arg_reduce of integers, over any axis of any strides.
 *
 * arg_reduce reads runs along the axis where these are contiguous, else columns beside each other. Of integers it folds
 * the extreme first, and then looks for its place. top_k makes a key of 64 bits of each value and its index: the order
 * of keys is the order of the result. Vectors skip values that cannot be among the results. Few results are a sorted
 * list. For many there is a buffer of the smallest keys: when the buffer is full, the largest keys are thrown out, and
 * the rest is sorted at the end. Few results of adjacent lines: each lane has a list of its own. */
#include "cpu/choose.h"
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/cpu_lines.h"
#include "cpu/row.h"
#include "cpu/rows.h"

#include "core/dtype.h"

#include <math.h>
#include <string.h>

/* FEW: keys that are kept sorted by insertion. */
enum { COLS = 512, LINES = 16, SPARE = 32, RUN_MAX = 1 << 30, FEW = 32 };
_Static_assert((int)LINES == (int)CHOOSE_COLS, "a group of lines is looked at together");

/* Those that rows_set has folds of. */
static bool is_integer(sinter_dtype type)
{
    return type == SINTER_DTYPE_I8 || type == SINTER_DTYPE_U8 || type == SINTER_DTYPE_I32 || type == SINTER_DTYPE_I64;
}

static const char *reject(const problem *p, op_id op)
{
    REJECT_UNLESS(p->op == op, "another op");
    REJECT_UNLESS(p->in[0].dtype == SINTER_DTYPE_F32 || (op == OP_arg_reduce && is_integer(p->in[0].dtype)),
                  "a type without loops for it");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "takes no programs");
    return NULL;
}

/* ---- arg_reduce ---- */

typedef struct arg_record {
    const choose_set *set;
    rows_integers *fold; /* NULL: f32 */
    sinter_dtype type;
    int64_t size; /* of an element */
    lines at;
    int64_t n, along; /* elements of a line, and the stride between them */
    bool is_max, last, is_cols;
    int64_t unit;   /* lines of a tile: of columns, those beside each other */
    int64_t blocks; /* of columns: tiles along the innermost axis */
} arg_record;

static const char *arg_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    return reject(p, OP_arg_reduce);
}

static double arg_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, 1);
}

static size_t arg_record_size(const problem *p, const tactic *t)
{
    (void)p, (void)t;
    return sizeof(arg_record);
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
    r->fold = is_integer(r->type) ? level_of(isa)->rows->fold_integers(a->is_max ? ROWS_MAX : ROWS_MIN, r->type) : NULL;
    r->is_max = a->is_max != 0;
    r->last = a->last != 0;
    r->n = in[0].dim[a->axis];
    r->along = in[0].stride[a->axis];
    lines_init(&r->at, (const view *[]){ &in[0], &out[0] }, 2, 1u << a->axis);
    const uint32_t inner = r->at.rank - 1;
    r->is_cols = r->along != 1 && lines_step(&r->at, 0) == 1 && r->n <= RUN_MAX;
    if (r->is_cols) {
        r->unit = COLS;
        r->blocks = (r->at.dim[inner] + COLS - 1) / COLS;
    } else {
        r->unit = r->n < 8192 ? 8192 / r->n : 1;
    }
    return SINTER_OK;
}

typedef struct arg_job {
    const arg_record *r;
    const kernel_run *k;
} arg_job;

/* The first, or last, of n numbers that is *best; one is. */
#define PLACE(bits)                                                                                                    \
    static int64_t place_##bits(const void *from, const void *best, int64_t n, bool last)                              \
    {                                                                                                                  \
        const uint##bits##_t *x = from;                                                                                \
        uint##bits##_t v;                                                                                              \
        memcpy(&v, best, sizeof v);                                                                                    \
        int64_t i = last ? n - 1 : 0;                                                                                  \
        while (x[i] != v) i += last ? -1 : 1;                                                                          \
        return i;                                                                                                      \
    }                                                                                                                  \
    /* The same of columns: the row that is written last stays. */                                                     \
    static void places_##bits(int64_t *place, int64_t step, const void *from, int64_t along, const void *best,         \
                              int64_t rows, int64_t n, bool last)                                                      \
    {                                                                                                                  \
        const uint##bits##_t *v = best;                                                                                \
        int32_t at[COLS] = { 0 };                                                                                      \
        for (int64_t i = 0; i < rows; i++) {                                                                           \
            const int64_t row = last ? i : rows - 1 - i;                                                               \
            const uint##bits##_t *x = (const uint##bits##_t *)from + row * along;                                      \
            for (int64_t c = 0; c < n; c++) at[c] = x[c] == v[c] ? (int32_t)row : at[c];                               \
        }                                                                                                              \
        for (int64_t c = 0; c < n; c++) place[c * step] = at[c];                                                       \
    }
PLACE(8)
PLACE(32)
PLACE(64)

static void cols_integers(const arg_record *r, const void *x, int64_t *y, int64_t step, int64_t n)
{
    int64_t best[COLS];
    memcpy(best, x, (size_t)(n * r->size));
    r->fold(best, x, r->n, r->along, n, 1);
    (r->size == 1 ? places_8 : r->size == 4 ? places_32 : places_64)(y, step, x, r->along, best, r->n, n, r->last);
}

static int64_t along_integers(const arg_record *r, const char *x)
{
    int64_t best, found = 0;
    if (r->along == 1) {
        memcpy(&best, x, (size_t)r->size);
        r->fold(&best, x, r->n, 1, 1, 0);
        return (r->size == 1 ? place_8 : r->size == 4 ? place_32 : place_64)(x, &best, r->n, r->last);
    }
    best = dtype_load_i64(r->type, x, 0);
    for (int64_t i = 1; i < r->n; i++) {
        const int64_t v = dtype_load_i64(r->type, x, i * r->along);
        if (!(r->is_max ? v > best : v < best) && !(r->last && v == best)) continue;
        best = v;
        found = i;
    }
    return found;
}

static void cols(const arg_record *r, const kernel_run *k, int64_t tile)
{
    const lines *l = &r->at;
    const int64_t inner = l->dim[l->rank - 1], first = tile % r->blocks * COLS;
    const int64_t n = inner - first < COLS ? inner - first : COLS;
    int64_t offset[LINES_VIEWS];
    lines_at(l, tile / r->blocks * inner + first, offset);
    const char *from = (const char *)k->in[0] + offset[0] * r->size;
    int64_t *y = (int64_t *)k->out[0] + offset[1];
    if (r->fold) {
        cols_integers(r, from, y, lines_step(l, 1), n);
        return;
    }
    const float *x = (const float *)(const void *)from;
    float best[COLS];
    int32_t place[COLS];
    memcpy(best, x, (size_t)n * sizeof *best);
    memset(place, 0, sizeof place);
    for (int64_t i = 1; i < r->n; i++) r->set->row(best, place, x + i * r->along, (int32_t)i, n, r->is_max, r->last);
    for (int64_t i = 0; i < n; i++) y[i * lines_step(l, 1)] = place[i];
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
        ((int64_t *)j->k->out[0])[offset[1]] = r->fold ? along_integers(r, x) : along(r, (const void *)x);
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
    .record_size = arg_record_size,
    .bind = arg_bind,
    .run = arg_run,
};

/* ---- top_k ---- */

typedef struct top_record {
    lines at;
    int64_t n, along;                  /* elements of a line, and the stride between them */
    int64_t k, value_step, index_step; /* k: elements of a result's line */
    int64_t room;                      /* keys of the buffer */
    int64_t group;                     /* lines that are read together */
    bool largest, has_value, has_index;
    bool is_cols; /* adjacent lines are looked at together */
    const choose_set *set;
} top_record;

/* Bounds of sizes, or false: without them there is no workspace. */
static bool top_bounds(const problem *p, int64_t *n, int64_t *k)
{
    const attrs_top_k *a = p->attrs;
    const problem_operand *y = p->out[0].dtype != SINTER_DTYPE_NONE ? &p->out[0] : p->count_out > 1 ? &p->out[1] : NULL;
    if (!y || a->axis < 0 || a->axis >= p->in[0].rank || a->axis >= y->rank) return false;
    *n = p->in[0].dim[a->axis].max;
    *k = y->dim[a->axis].max < *n ? y->dim[a->axis].max : *n;
    return *n <= INT32_MAX;
}

static const char *top_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    const char *why = reject(p, OP_top_k);
    int64_t n, k;
    if (why) return why;
    REJECT_UNLESS(top_bounds(p, &n, &k), "the length of a line has no bound");
    return NULL;
}

static int64_t room_of(int64_t k)
{
    return 2 * k + SPARE;
}

/* One worker's: the buffer of keys and as much to sort it with, then a group of lines. */
static size_t worker_size(int64_t n, int64_t k)
{
    const size_t keys = size_mul(size_mul((size_t)room_of(k), 2), sizeof(uint64_t));
    return size_align(size_add(keys, size_mul(size_mul((size_t)n, LINES), sizeof(float))), 64);
}

static size_t top_workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t;
    int64_t n, k;
    return top_bounds(p, &n, &k) ? size_mul(worker_size(n, k), threads ? threads : 1) : SIZE_MAX;
}

static double top_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, 4);
}

static size_t top_record_size(const problem *p, const tactic *t)
{
    (void)p, (void)t;
    return sizeof(top_record);
}

static sinter_status top_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                              const view *out, void *to)
{
    top_record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    const attrs_top_k *a = attrs;
    const view *value = out[0].dtype != SINTER_DTYPE_NONE ? &out[0] : NULL;
    const view *index = p->count_out > 1 && out[1].dtype != SINTER_DTYPE_NONE ? &out[1] : NULL;
    const view *y = value ? value : index;
    bool fits =
        y && a->axis >= 0 && a->axis < in[0].rank && y->rank == in[0].rank && (!index || index->rank == y->rank);
    for (uint32_t i = 0; fits && i < y->rank; i++)
        fits = (i == a->axis ? y->dim[i] <= in[0].dim[i] : y->dim[i] == in[0].dim[i]) &&
               (!index || index->dim[i] == y->dim[i]);
    if (!fits) return FAIL(e, INVALID_ARG, "top_k: the shapes of input and outputs do not go together");
    r->n = in[0].dim[a->axis];
    r->along = in[0].stride[a->axis];
    lines_init(&r->at, (const view *[]){ &in[0], value, index }, 3, 1u << a->axis);
    r->k = y->dim[a->axis];
    r->value_step = value ? value->stride[a->axis] : 0;
    r->index_step = index ? index->stride[a->axis] : 0;
    r->has_value = value != NULL;
    r->has_index = index != NULL;
    r->room = room_of(r->k);
    r->group = r->along == 1 ? 1 : LINES;
    r->largest = a->largest != 0;
    r->set = level_of(isa)->choose;
    r->is_cols = r->group > 1 && lines_step(&r->at, 0) == 1 && r->k <= CHOOSE_TOP;
    return SINTER_OK;
}

/* Sorts by merging from the bottom up; runs of 8 are sorted by insertion. */
static void sort(uint64_t *at, uint64_t *spare, int64_t n)
{
    for (int64_t start = 0; start < n; start += 8) {
        const int64_t end = start + 8 < n ? start + 8 : n;
        for (int64_t i = start + 1; i < end; i++) {
            const uint64_t x = at[i];
            int64_t k = i;
            for (; k > start && at[k - 1] > x; k--) at[k] = at[k - 1];
            at[k] = x;
        }
    }
    uint64_t *from = at, *to = spare;
    for (int64_t width = 8; width < n; width *= 2) {
        for (int64_t start = 0; start < n; start += 2 * width) {
            const int64_t middle = start + width < n ? start + width : n;
            const int64_t end = middle + width < n ? middle + width : n;
            int64_t a = start, b = middle, i = start;
            while (a < middle && b < end) {
                const uint64_t x = from[a], y = from[b];
                const bool takes_a = x < y;
                to[i++] = takes_a ? x : y;
                a += takes_a;
                b += !takes_a;
            }
            memcpy(to + i, from + a, (size_t)(middle - a) * sizeof *to);
            memcpy(to + i + (middle - a), from + b, (size_t)(end - b) * sizeof *to);
        }
        uint64_t *was = from;
        from = to;
        to = was;
    }
    if (from != at) memcpy(at, from, (size_t)n * sizeof *at);
}

/* Sorts as numbers do: -0 is 0, all NaN are equal and above infinity. Turned over for the largest. */
static inline uint32_t key_of(float x, uint32_t turn)
{
    const float v = x + 0.0f;
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | 1u << 31;
    return (v != v ? UINT32_MAX : bits) ^ turn;
}

/* The k smallest of n keys come first, in any order. */
static void divide(uint64_t *at, uint64_t *spare, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    for (int round = 0; low < high; round++) {
        if (round == 64) { /* keys that divide badly */
            sort(at + low, spare, high + 1 - low);
            return;
        }
        const uint64_t x = at[low], y = at[low + (high - low) / 2], z = at[high];
        const uint64_t least = x < y ? x : y, most = x < y ? y : x, pivot = z < least ? least : z > most ? most : z;
        int64_t i = low, j = high;
        while (i <= j) {
            while (at[i] < pivot) i++;
            while (at[j] > pivot) j--;
            if (i > j) break;
            const uint64_t was = at[i];
            at[i++] = at[j];
            at[j--] = was;
        }
        if (k - 1 <= j) high = j;
        else if (k - 1 >= i) low = i;
        else return;
    }
}

static uint64_t key_at(const top_record *r, const float *x, int64_t i)
{
    return (uint64_t)key_of(x[i], r->largest ? UINT32_MAX : 0) << 32 | (uint64_t)i;
}

/* The smallest keys of a line, sorted by insertion. */
static void few(const top_record *r, const float *x, uint64_t *keys)
{
    int64_t count = 0;
    for (int64_t i = 0; i < r->n; i++) {
        if (count == r->k) {
            i = r->set->seek(x, r->n, i, x[keys[count - 1] & UINT32_MAX], r->largest);
            if (i == r->n) return;
        } else {
            count++;
        }
        const uint64_t key = key_at(r, x, i);
        int64_t at = count - 1;
        for (; at > 0 && keys[at - 1] > key; at--) keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

static void many(const top_record *r, const float *x, uint64_t *keys)
{
    const int64_t n = r->n, k = r->k;
    uint64_t *spare = keys + r->room;
    int64_t count = 0, least = -1; /* least: the place of the last one that is kept */
    for (int64_t i = 0; i < n; i++) {
        if (least >= 0) i = r->set->seek(x, n, i, x[least], r->largest);
        if (i == n) break;
        keys[count++] = key_at(r, x, i);
        if (count < r->room) continue;
        divide(keys, spare, count, k);
        uint64_t most = 0;
        for (int64_t at = 0; at < k; at++) most = keys[at] > most ? keys[at] : most;
        count = k;
        least = (int64_t)(most & UINT32_MAX);
    }
    if (count > k) divide(keys, spare, count, k);
    sort(keys, spare, k);
}

static void put(const top_record *r, const kernel_run *k, int64_t i, float value, int64_t place, int64_t value_at,
                int64_t index_at)
{
    if (r->has_value) ((float *)k->out[0])[value_at + i * r->value_step] = value;
    if (r->has_index) ((int64_t *)k->out[1])[index_at + i * r->index_step] = place;
}

static void line(const top_record *r, const kernel_run *k, const float *x, int64_t value_at, int64_t index_at,
                 uint64_t *keys)
{
    (r->k <= FEW ? few : many)(r, x, keys);
    for (int64_t i = 0; i < r->k; i++) {
        const int64_t at = (int64_t)(keys[i] & UINT32_MAX);
        put(r, k, i, x[at], at, value_at, index_at);
    }
}

typedef struct top_job {
    const top_record *r;
    const kernel_run *k;
    size_t worker;
} top_job;

static void top_body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    const top_job *j = arg;
    const top_record *r = j->r;
    const lines *l = &r->at;
    uint64_t *keys = (uint64_t *)(void *)((char *)j->k->workspace + worker * j->worker);
    float *copy = (float *)(void *)(keys + 2 * r->room);
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * r->group, left = l->count - first, some = left < r->group ? left : r->group;
        int64_t from[LINES][LINES_VIEWS]; /* of x, values and indices */
        for (int64_t i = 0; i < some; i++) lines_at(l, first + i, from[i]);
        const float *x = j->k->in[0];
        int64_t near = 0;
        while (r->is_cols && near < some && from[near][0] == from[0][0] + near) near++;
        if (near == some) {
            int32_t place[CHOOSE_TOP * CHOOSE_COLS];
            r->set->top(place, x + from[0][0], r->n, r->along, some, r->k, r->largest);
            for (int64_t i = 0; i < r->k; i++)
                for (int64_t g = 0; g < some; g++) {
                    const int64_t at = place[i * CHOOSE_COLS + g];
                    put(r, j->k, i, x[from[g][0] + at * r->along], at, from[g][1], from[g][2]);
                }
            continue;
        }
        if (r->along != 1) {
            for (int64_t i = 0; i < r->n; i++)
                for (int64_t g = 0; g < some; g++) copy[g * r->n + i] = x[from[g][0] + i * r->along];
        }
        for (int64_t g = 0; g < some; g++)
            line(r, j->k, r->along == 1 ? x + from[g][0] : copy + g * r->n, from[g][1], from[g][2], keys);
    }
}

static sinter_status top_run(const kernel_run *k)
{
    const top_record *r = k->record;
    top_job j = { r, k, worker_size(r->n, r->k) };
    if (r->at.count && r->k) row_parallel(k, (r->at.count + r->group - 1) / r->group, top_body, &j);
    return SINTER_OK;
}

const kernel cpu_top_k = {
    .name = "cpu_top_k",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = top_reject,
    .tactics = row_tactics_isa,
    .check = row_check_isa,
    .print = row_print_isa,
    .cost_ns = top_cost_ns,
    .workspace = top_workspace,
    .record_size = top_record_size,
    .bind = top_bind,
    .run = top_run,
};
