/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_row_scatter.c - scatter_elements of any type of whole bytes and any strides; what combines elements, of those
 * that combine.h has loops for. The data is copied, then elements are put in the order of the result's memory; where
 * one index serves a whole run, that is one copy. */
#include "core/dtype.h"
#include "cpu/combine.h"
#include "cpu/cpu_index.h"
#include "cpu/cpu_kernels.h"
#include "cpu/cpu_move.h"
#include "cpu/row.h"

/* A line of which the steps are known, in bytes; those of indices in elements. */
typedef struct steps {
    char *y;
    const char *x;
    const int64_t *index;
    int64_t y_step, x_step, index_step, along, limit;
} steps;
typedef int64_t line_fn(const steps *s, int64_t n);

/* Puts elements up to the first whose index is outside; returns how many. */
#define LINE_BY_I64(name, type, value)                                                                                 \
    static int64_t name(const steps *s, int64_t n)                                                                     \
    {                                                                                                                  \
        const steps l = *s;                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const int64_t index = l.index[i * l.index_step], pick = index + (index < 0 ? l.limit : 0);                 \
            if ((uint64_t)pick >= (uint64_t)l.limit) return i;                                                         \
            type *const to = (type *)(void *)(l.y + i * l.y_step + pick * l.along);                                    \
            const type given = *(const type *)(const void *)(l.x + i * l.x_step);                                      \
            *to = value;                                                                                               \
        }                                                                                                              \
        return n;                                                                                                      \
    }
LINE_BY_I64(line_set_4, uint32_t, given)
LINE_BY_I64(line_add_f32, float, *to + given)
LINE_BY_I64(line_mul_f32, float, *to *given)
/* A NaN stays. The inner choice is one instruction, without a jump that is hard to foresee. */
LINE_BY_I64(line_min_f32, float, given != given && *to == *to ? given : given < *to ? given : *to)
LINE_BY_I64(line_max_f32, float, given != given && *to == *to ? given : given > *to ? given : *to)

static line_fn *line_of(sinter_dtype type, int64_t kind)
{
    static line_fn *const of_f32[scatter_kind_count] = { [scatter_kind_add] = line_add_f32,
                                                         [scatter_kind_mul] = line_mul_f32,
                                                         [scatter_kind_min] = line_min_f32,
                                                         [scatter_kind_max] = line_max_f32 };
    if (kind == scatter_kind_set) return sinter_dtype_bits(type) == 32 ? line_set_4 : NULL;
    return type == SINTER_DTYPE_F32 ? of_f32[kind] : NULL;
}

typedef struct record {
    move_plan copy;
    view out, index, update;
    int64_t limit, along, place[SINTER_RANK_MAX]; /* of the result's axis; place: row-major strides of indices */
    combine_fn *combine;                          /* NULL: sets */
    line_fn *by_i64;                              /* NULL: lines are taken element by element */
    uint32_t size, axis, rank;
    uint8_t order[SINTER_RANK_MAX]; /* axes, the innermost of the result last */
} record;

static const char *reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_scatter_elements, "not a scatter of elements");
    const sinter_dtype type = p->out[0].dtype;
    const int64_t kind = ((const attrs_scatter_elements *)p->attrs)->kind;
    REJECT_UNLESS(kind == scatter_kind_set || combine_of(type, kind),
                  "combines elements of a type without loops for it");
    REJECT_UNLESS(sinter_dtype_bits(p->out[0].dtype) >= 8 && sinter_dtype_bits(p->out[0].dtype) <= 64,
                  "a type under a byte or over 64 bits");
    REJECT_UNLESS(sinter_dtype_bits(p->in[1].dtype) >= 8, "indices of a type under a byte");
    REJECT_UNLESS(p->in[0].rank > 0, "a scalar");
    REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "takes no programs");
    return NULL;
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const problem_operand *y = &p->out[0];
    const bool same = !memcmp(p->in[2].order, y->order, y->rank);
    return row_memory_ns(p, target, 1) + row_operand_bytes(&p->in[2]) * (same ? 0.2 : 1);
}

static sinter_status bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in, const view *out,
                          void *to)
{
    record *r = to;
    isa_level isa;
    TRY(row_isa_bind(e, p, t, &isa));
    memset(r, 0, sizeof *r);
    const int64_t axis = ((const attrs_scatter_elements *)attrs)->axis;
    const uint32_t rank = out[0].rank;
    bool fits = axis >= 0 && axis < rank && in[0].rank == rank && in[1].rank == rank && in[2].rank == rank;
    for (uint32_t i = 0; fits && i < rank; i++)
        fits = in[0].dim[i] == out[0].dim[i] && in[1].dim[i] == in[2].dim[i] &&
               (i == axis || in[1].dim[i] <= out[0].dim[i]);
    if (!fits)
        return FAIL(e, INVALID_ARG, "scatter_elements: the shapes of data, indices and updates do not go together");
    move_plan_init(&r->copy, &out[0], &in[0], NULL);
    r->out = out[0];
    r->index = in[1];
    r->update = in[2];
    const int64_t kind = ((const attrs_scatter_elements *)attrs)->kind;
    r->combine = combine_of(out[0].dtype, kind);
    if (in[1].dtype == SINTER_DTYPE_I64) r->by_i64 = line_of(out[0].dtype, kind);
    r->rank = rank;
    r->axis = (uint32_t)axis;
    r->limit = out[0].dim[axis];
    r->size = sinter_dtype_bits(out[0].dtype) / 8;
    r->along = out[0].stride[axis] * r->size;
    int64_t run = 1;
    for (uint32_t i = rank; i-- > 0;) {
        r->place[i] = run;
        run *= in[1].dim[i];
    }
    /* Axes of one element first: the last is what the inner loop runs over. */
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t at = i;
        for (; at > 0; at--) {
            const uint32_t o = r->order[at - 1];
            const bool goes_before =
                in[1].dim[i] == 1 ? in[1].dim[o] != 1 : in[1].dim[o] != 1 && out[0].stride[o] < out[0].stride[i];
            if (!goes_before) break;
            r->order[at] = r->order[at - 1];
        }
        r->order[at] = (uint8_t)i;
    }
    return SINTER_OK;
}

static void element(uint32_t size, char *to, const char *from)
{
    switch (size) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    default: memcpy(to, from, 8); break;
    }
}

/* The first fault of a run stays. */
static bool pick_of(const record *r, const kernel_run *k, const int64_t *at, int64_t offset, int64_t *out)
{
    const int64_t value = index_load(r->index.dtype, k->in[1], offset);
    *out = value < 0 ? value + r->limit : value;
    if (*out >= 0 && *out < r->limit) return true;
    if (!k->fault || k->fault->is_set) return false;
    k->fault->is_set = 1;
    k->fault->index = 0;
    for (uint32_t i = 0; i < r->rank; i++) k->fault->index += at[i] * r->place[i];
    k->fault->value = value;
    k->fault->limit = r->limit;
    return false;
}

/* All elements along the last axis of the order. */
static void line(const record *r, const kernel_run *k, int64_t *at)
{
    const uint32_t last = r->order[r->rank - 1];
    const int64_t n = r->index.dim[last], size = r->size;
    int64_t to = 0, from = 0, index = 0, pick = 0;
    for (uint32_t i = 0; i < r->rank; i++) {
        if (i != r->axis) to += at[i] * r->out.stride[i];
        from += at[i] * r->update.stride[i];
        index += at[i] * r->index.stride[i];
    }
    char *y = (char *)k->out[0] + to * size;
    const char *x = (const char *)k->in[2] + from * size;
    const int64_t to_step = last == r->axis ? 0 : r->out.stride[last] * size, step = r->update.stride[last] * size;
    if (last != r->axis && r->index.stride[last] == 0) {
        if (!pick_of(r, k, at, index, &pick)) return;
        y += pick * r->along;
        if (r->combine) {
            r->combine(y, to_step, x, step, n);
            return;
        }
        if (to_step == size && step == size) {
            memcpy(y, x, (size_t)(n * size));
            return;
        }
        for (int64_t i = 0; i < n; i++, y += to_step, x += step) element(r->size, y, x);
        return;
    }
    at[last] = 0;
    if (r->by_i64) {
        const steps s = { y,        x,       (const int64_t *)k->in[1] + index, to_step, step, r->index.stride[last],
                          r->along, r->limit };
        at[last] = r->by_i64(&s, n);
    }
    y += at[last] * to_step;
    x += at[last] * step;
    index += at[last] * r->index.stride[last];
    for (; at[last] < n; at[last]++, y += to_step, x += step, index += r->index.stride[last]) {
        if (!pick_of(r, k, at, index, &pick)) continue;
        if (r->combine) r->combine(y + pick * r->along, size, x, size, 1);
        else element(r->size, y + pick * r->along, x);
    }
    at[last] = 0;
}

typedef struct job {
    const record *r;
    const kernel_run *k;
} job;

static void copy(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    move_run(&j->r->copy, j->k->out[0], j->k->in[0], begin, end);
}

static sinter_status run(const kernel_run *k)
{
    const record *r = k->record;
    job j = { r, k };
    row_parallel(k, move_tile_count(&r->copy), copy, &j);
    int64_t at[SINTER_RANK_MAX] = { 0 };
    for (uint32_t i = 0; i < r->rank; i++)
        if (!r->index.dim[i]) return SINTER_OK;
    /* Indices may repeat along the axis, so one thread puts them, in order. */
    for (;;) {
        line(r, k, at);
        uint32_t i = r->rank - 1;
        for (; i > 0; i--) {
            const uint32_t a = r->order[i - 1];
            if (++at[a] < r->index.dim[a]) break;
            at[a] = 0;
        }
        if (!i) return SINTER_OK;
    }
}

const kernel cpu_scatter_elements = {
    .name = "cpu_scatter_elements",
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
