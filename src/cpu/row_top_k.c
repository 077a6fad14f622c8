/* SPDX-License-Identifier: Apache-2.0 */
/* row_top_k.c - top_k of f32, f64, i32 and i64 over any axis of any strides.
 *
 * A key is made of each value and its index: the order of keys is the order of the result. Vectors skip values that
 * cannot be among the results. Few results are a sorted list. For many there is a buffer of the smallest keys: when the
 * buffer is full, the largest keys are thrown out, and the rest is sorted at the end. Few results of adjacent lines, or
 * of short lines that are turned: each lane has a list of its own; more results of 32 bits: each lane is sorted by a
 * network. */
#include "cpu/choose.h"
#include "cpu/cpu_kernels.h"
#include "cpu/level.h"
#include "cpu/cpu_lines.h"
#include "cpu/cpu_move.h"
#include "cpu/row.h"

#include <string.h>

/* FEW: keys that are kept sorted by insertion. SINGLE_LINES: lines of one element in a tile. */
enum { LINES = 16, SPARE = 32, FEW = 32, SINGLE_LINES = 4096 };
/* Lines are turned for at most TURNED_TOP results. Elements of a line: of 32 bits, at most TURNED; of 64 bits, at most
 * TURNED_WIDE for each result and one more, or TURNED_HELD where the results of a lane are held in registers. */
enum { TURNED = 512, TURNED_TOP = 8, TURNED_WIDE = 8, TURNED_HELD = 32, HELD_TOP = 4 };
/* The sorting network takes SORTED_LINES lines or more, from SORTED_FEW + 1 to SORTED_MOST results each, and at most
 * SORTED_PART elements for each result. */
enum { SORTED_LINES = 4, SORTED_FEW = 4, SORTED_MOST = 1024, SORTED_PART = 16 };
_Static_assert((int)LINES == (int)CHOOSE_COLS, "a group of lines is looked at together");

__extension__ typedef unsigned __int128 wide_key;

typedef struct top_record {
    lines at;
    int64_t n, along;                  /* elements of a line, and the stride between them */
    int64_t k, value_step, index_step; /* k: elements of a result's line */
    int64_t room;                      /* keys of the buffer */
    int64_t group;                     /* lines that are read together */
    bool largest, has_value, has_index;
    bool is_cols;   /* adjacent lines are looked at together */
    bool is_turned; /* they lie behind each other, and are turned into columns */
    bool is_sorted; /* by the network */
    sinter_dtype type;
    int64_t size; /* of an element, in bytes */
    choose_seek_fn *seek;
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
    int64_t n, k;
    REJECT_UNLESS(p->op == OP_top_k, "no top_k");
    const sinter_dtype type = p->in[0].dtype;
    REJECT_UNLESS(type == SINTER_DTYPE_F32 || type == SINTER_DTYPE_F64 || type == SINTER_DTYPE_I32 ||
                      type == SINTER_DTYPE_I64,
                  "not in f32, f64, i32 or i64");
    REJECT_UNLESS(!p->prologue && !p->epilogue, "takes no programs");
    REJECT_UNLESS(top_bounds(p, &n, &k), "the length of a line has no bound");
    return NULL;
}

static int64_t room_of(int64_t k)
{
    return 2 * k + SPARE;
}

/* The buffer of keys and as much to sort it with, or what the network takes. */
static size_t keys_size(int64_t k, size_t size)
{
    const size_t listed = size_mul(size_mul((size_t)room_of(k), 4), size);
    const size_t sorted = (size_t)choose_sort_rows(k < SORTED_MOST ? k : SORTED_MOST) * 2 * CHOOSE_SORT_COLS * 8;
    return listed > sorted ? listed : sorted;
}

/* One worker's: keys, then a group of lines. */
static size_t worker_size(int64_t n, int64_t k, size_t size)
{
    return size_align(size_add(keys_size(k, size), size_mul(size_mul((size_t)n, LINES), size)), 64);
}

static size_t top_workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t;
    int64_t n, k;
    const size_t size = sinter_dtype_bits(p->in[0].dtype) / 8;
    return top_bounds(p, &n, &k) ? size_mul(worker_size(n, k, size), threads ? threads : 1) : SIZE_MAX;
}

static double top_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, 4);
}

/* Lines of a group: as many of `inner` adjacent ones as fill vectors and leave none, if there is such a number. */
static int64_t group_of(int64_t inner)
{
    for (int64_t count = LINES; count > LINES / 2; count--)
        if (inner % count == 0) return count;
    return LINES;
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
    r->largest = a->largest != 0;
    r->type = in[0].dtype;
    r->size = sinter_dtype_bits(r->type) / 8;
    r->set = level_of(isa)->choose;
    r->seek = r->set->seek(r->type);
    r->is_cols = r->along != 1 && lines_step(&r->at, 0) == 1 && r->k <= CHOOSE_TOP;
    r->is_sorted = !r->is_cols && r->size == 4 && r->at.count >= SORTED_LINES && r->k > SORTED_FEW &&
                   r->k <= SORTED_MOST && r->n <= SORTED_PART * r->k;
    r->is_turned = r->along == 1 && !r->is_sorted && r->n > 1 && r->k <= TURNED_TOP &&
                   r->n <= (r->size == 4 ? TURNED : (r->k <= HELD_TOP ? TURNED_HELD : TURNED_WIDE) * (r->k + 1)) &&
                   r->at.count >= SORTED_LINES && lines_step(&r->at, 0) > 0;
    r->is_cols = r->is_cols || r->is_turned;
    r->group = r->n == 1 ? SINGLE_LINES : r->along == 1 && !r->is_sorted && !r->is_turned ? 1 : LINES;
    if (r->is_cols && r->group == LINES) r->group = group_of(r->at.dim[r->at.rank - 1]);
    return SINTER_OK;
}

/* A number that sorts as the value does; of floats -0 is 0, and all NaN are equal and above infinity. Turned over
 * for the largest. */
#define ORDER(bits, real, int_type)                                                                                    \
    static inline uint##bits##_t order_##bits(const top_record *r, const void *x, int64_t i)                           \
    {                                                                                                                  \
        const uint##bits##_t top = (uint##bits##_t)1 << (bits - 1), turn = r->largest ? UINT##bits##_MAX : 0;          \
        uint##bits##_t key;                                                                                            \
        if (r->type == int_type) return (((const uint##bits##_t *)x)[i] ^ top) ^ turn;                                 \
        const real v = ((const real *)x)[i] + 0;                                                                       \
        memcpy(&key, &v, sizeof key);                                                                                  \
        key = key & top ? ~key : key | top;                                                                            \
        return (v != v ? UINT##bits##_MAX : key) ^ turn;                                                               \
    }
ORDER(32, float, SINTER_DTYPE_I32)
ORDER(64, double, SINTER_DTYPE_I64)

/* Result i is value number `from` of x, and place `place` of the line. */
static inline void put(const top_record *r, const kernel_run *k, int64_t i, const void *x, int64_t from, int64_t place,
                       int64_t value_at, int64_t index_at)
{
    const int64_t to = value_at + i * r->value_step;
    if (r->has_value && r->size == 4) ((uint32_t *)k->out[0])[to] = ((const uint32_t *)x)[from];
    else if (r->has_value) ((uint64_t *)k->out[0])[to] = ((const uint64_t *)x)[from];
    if (r->has_index) ((int64_t *)k->out[1])[index_at + i * r->index_step] = place;
}

#define PLACE_OF(key) ((int64_t)((uint64_t)(key)&UINT32_MAX))

#define KEY uint64_t
#define KEY_AT(r, x, i) ((uint64_t)order_32(r, x, i) << 32 | (uint64_t)(i))
#define KEYS(name) name##_32
#include "cpu/top_keys.inc.h"

#define KEY wide_key
#define KEY_AT(r, x, i) ((wide_key)order_64(r, x, i) << 32 | (uint64_t)(i))
#define KEYS(name) name##_64
#include "cpu/top_keys.inc.h"

#define COPY(bits)                                                                                                     \
    static void copy_##bits(const top_record *r, void *to, const void *x, int64_t some,                                \
                            int64_t from[LINES][LINES_VIEWS])                                                          \
    {                                                                                                                  \
        for (int64_t i = 0; i < r->n; i++)                                                                             \
            for (int64_t g = 0; g < some; g++)                                                                         \
                ((uint##bits##_t *)to)[g * r->n + i] = ((const uint##bits##_t *)x)[from[g][0] + i * r->along];         \
    }
COPY(32)
COPY(64)

/* Where lines from number `first` on begin. */
static void lines_of(const lines *l, int64_t first, int64_t some, int64_t from[LINES][LINES_VIEWS])
{
    const int64_t inner = l->dim[l->rank - 1];
    for (int64_t i = 0, at = first % inner; i < some; i++, at++) {
        if (i == 0 || at == inner) {
            lines_at(l, first + i, from[i]);
            at = at == inner ? 0 : at;
            continue;
        }
        for (uint32_t v = 0; v < LINES_VIEWS; v++) from[i][v] = from[i - 1][v] + lines_step(l, v);
    }
}

/* Lines as adjacent columns, *step elements from row to row: where they lie, or a copy of them. */
static const char *columns(const top_record *r, const char *x, int64_t some, int64_t from[LINES][LINES_VIEWS],
                           char *copy, int64_t *step)
{
    const int64_t apart = lines_step(&r->at, 0), size = r->size;
    *step = r->along;
    for (int64_t first = 0, count; first < some; first += count) {
        const char *src = x + from[first][0] * size;
        char *dst = copy + first * size;
        for (count = 1; first + count < some && from[first + count][0] == from[first][0] + count * apart;) count++;
        if (count == some && apart == 1) return src;
        *step = LINES;
        if (r->along == 1 && apart > 0) {
            move_transpose((uint32_t)size, dst, LINES * size, src, apart * size, r->n, count);
            continue;
        }
        for (int64_t i = 0; i < r->n; i++, src += r->along * size, dst += LINES * size) {
            if (apart == 1) memcpy(dst, src, (size_t)(count * size));
            else
                for (int64_t g = 0; g < count; g++) memcpy(dst + g * size, src + g * apart * size, (size_t)size);
        }
    }
    return copy;
}

/* Lines by the network. */
static void sorted(const top_record *r, const kernel_run *k, int64_t some, int64_t from[LINES][LINES_VIEWS], char *room)
{
    int64_t *keys = (int64_t *)(void *)room, step;
    const char *cols = columns(r, k->in[0], some, from, room + keys_size(r->k, 4), &step);
    for (int64_t c = 0; c < some; c += CHOOSE_SORT_COLS) {
        const int64_t left = some - c, width = left < CHOOSE_SORT_COLS ? left : CHOOSE_SORT_COLS;
        r->set->sort(keys, cols + c * 4, r->n, step, width, r->k, r->largest, r->type);
        for (int64_t i = 0; i < r->k; i++)
            for (int64_t g = 0; g < width; g++) {
                const int64_t at = PLACE_OF(keys[i * CHOOSE_SORT_COLS + g]);
                put(r, k, i, cols, at * step + c + g, at, from[c + g][1], from[c + g][2]);
            }
    }
}

/* Lines of one element. */
static void singles(const top_record *r, const kernel_run *k, int64_t first, int64_t count)
{
    const lines *l = &r->at;
    const int64_t inner = l->dim[l->rank - 1];
    for (int64_t some; count > 0; first += some, count -= some) {
        some = inner - first % inner < count ? inner - first % inner : count;
        int64_t at[LINES_VIEWS];
        lines_at(l, first, at);
        for (int64_t i = 0, x = lines_step(l, 0), y = lines_step(l, 1); i < some && r->has_value; i++)
            if (r->size == 4) ((uint32_t *)k->out[0])[at[1] + i * y] = ((const uint32_t *)k->in[0])[at[0] + i * x];
            else ((uint64_t *)k->out[0])[at[1] + i * y] = ((const uint64_t *)k->in[0])[at[0] + i * x];
        for (int64_t i = 0, y = lines_step(l, 2); i < some && r->has_index; i++)
            ((int64_t *)k->out[1])[at[2] + i * y] = 0;
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
    char *keys = (char *)j->k->workspace + worker * j->worker, *copy = keys + keys_size(r->k, (size_t)r->size);
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * r->group, left = l->count - first, some = left < r->group ? left : r->group;
        if (r->n == 1) {
            singles(r, j->k, first, some);
            continue;
        }
        int64_t from[LINES][LINES_VIEWS]; /* of x, values and indices */
        lines_of(l, first, some, from);
        if (r->is_sorted) {
            sorted(r, j->k, some, from, keys);
            continue;
        }
        const char *x = j->k->in[0];
        if (r->is_cols) {
            int32_t place[CHOOSE_TOP * CHOOSE_COLS];
            int64_t step;
            const char *cols = columns(r, x, some, from, copy, &step);
            r->set->top(place, cols, r->n, step, some, r->k, r->largest, r->type);
            for (int64_t i = 0; i < r->k; i++)
                for (int64_t g = 0; g < some; g++) {
                    const int64_t at = place[i * CHOOSE_COLS + g];
                    put(r, j->k, i, cols, at * step + g, at, from[g][1], from[g][2]);
                }
            continue;
        }
        if (r->along != 1) (r->size == 4 ? copy_32 : copy_64)(r, copy, x, some, from);
        for (int64_t g = 0; g < some; g++)
            (r->size == 4 ? line_32 : line_64)(r, j->k,
                                               r->along == 1 ? x + from[g][0] * r->size : copy + g * r->n * r->size,
                                               from[g][1], from[g][2], keys);
    }
}

static sinter_status top_run(const kernel_run *k)
{
    const top_record *r = k->record;
    top_job j = { r, k, worker_size(r->n, r->k, (size_t)r->size) };
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
    .record = sizeof(top_record),
    .bind = top_bind,
    .run = top_run,
};
