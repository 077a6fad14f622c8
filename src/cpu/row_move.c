/* SPDX-License-Identifier: Apache-2.0 */
/* row_move.c - ops that only move elements: copy, and the views where they must be made; concat; constant padding. */
#include "cpu/cpu_kernels.h"
#include "cpu/cpu_move.h"
#include "cpu/level.h"
#include "cpu/row.h"

static void tactics(const problem *p, const kernel_target *t, tactic_sink *out)
{
    (void)p, (void)t;
    out->at[out->count++] = (tactic){ 0 };
}

static bool check(const problem *p, const tactic *t)
{
    (void)p;
    const tactic none = { 0 };
    return !memcmp(t, &none, sizeof none);
}

static double cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return row_memory_ns(p, target, memcmp(p->in[0].order, p->out[0].order, p->in[0].rank) ? 1.5 : 1);
}

static const char *reject_types(const problem *p)
{
    REJECT_UNLESS(!p->prologue && !p->epilogue && p->count_out == 1, "takes no programs");
    REJECT_UNLESS(sinter_dtype_bits(p->out[0].dtype) >= 8, "a type under a byte");
    return NULL;
}

/* Those of the machine: what they move is the same on all. */
static move_squares_fn *squares_of(env *e)
{
    return level_of(isa_level_of(e))->squares;
}

typedef struct job {
    const move_plan *plan;
    void *dst;
    const void *src;
} job;

static void body(void *arg, uint32_t begin, uint32_t end, uint32_t worker)
{
    (void)worker;
    const job *j = arg;
    move_run(j->plan, j->dst, j->src, begin, end);
}

/* ---- copy and views ---- */

/* at: bytes from the input's first element to where reading begins. */
typedef struct copy_record {
    move_plan plan;
    int64_t at;
} copy_record;

static const char *copy_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_copy || p->op == OP_reshape || p->op == OP_transpose || p->op == OP_slice ||
                      p->op == OP_expand,
                  "not a copy");
    if (p->op == OP_reshape) {
        /* Elements in row-major order of both: so both must lie in it. */
        for (uint32_t i = 0; i < p->in[0].rank; i++)
            REJECT_UNLESS(p->in[0].order[i] == i, "the input is not row-major");
        for (uint32_t i = 0; i < p->out[0].rank; i++)
            REJECT_UNLESS(p->out[0].order[i] == i, "the result is not row-major");
        REJECT_UNLESS(!p->in[0].is_strided && !p->out[0].is_strided, "an operand is strided");
    }
    return reject_types(p);
}

static sinter_status copy_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                               const view *out, void *to)
{
    (void)t;
    copy_record *r = to;
    move_squares_fn *const squares = squares_of(e);
    view src = in[0];
    r->at = 0;
    if (p->op == OP_transpose) {
        const attrs_transpose *a = attrs;
        for (uint32_t i = 0; i < out[0].rank; i++) {
            src.dim[i] = in[0].dim[a->perm.at[i]];
            src.stride[i] = in[0].stride[a->perm.at[i]];
        }
    } else if (p->op == OP_slice) {
        const attrs_slice *a = attrs;
        for (uint32_t i = 0; i < src.rank; i++) {
            src.dim[i] = out[0].dim[i];
            if (src.dim[i]) r->at += a->start.at[i] * in[0].stride[i] * (int64_t)(sinter_dtype_bits(src.dtype) / 8);
            src.stride[i] = in[0].stride[i] * (i < a->step.count ? a->step.at[i] : 1);
        }
    } else if (p->op == OP_expand) {
        if (!view_broadcast(&in[0], out[0].rank, out[0].dim, &src))
            return FAIL(e, INTERNAL, "the input of expand does not fit its result");
    } else if (p->op == OP_reshape) {
        src = out[0];
    }
    move_plan_init(&r->plan, &out[0], &src, squares);
    return SINTER_OK;
}

static sinter_status copy_run(const kernel_run *k)
{
    const copy_record *r = k->record;
    job j = { &r->plan, k->out[0], (const char *)k->in[0] + r->at };
    row_parallel(k, move_tile_count(&r->plan), body, &j);
    return SINTER_OK;
}

const kernel cpu_copy = {
    .name = "cpu_copy",
    .abi = 1,
    .out_strides = STRIDES_ANY,
    .reject = copy_reject,
    .tactics = tactics,
    .check = check,
    .cost_ns = cost_ns,
    .record = sizeof(copy_record),
    .bind = copy_bind,
    .run = copy_run,
};

/* ---- concat ---- */

typedef struct part {
    move_plan plan;
    int64_t at;
    bool is_empty;
} part;
typedef struct concat_record {
    uint32_t count;
    part at[];
} concat_record;

static const char *concat_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_concat, "not a concatenation");
    return reject_types(p);
}

static size_t concat_record_size(const problem *p, const tactic *t)
{
    (void)t;
    return size_add(sizeof(concat_record), size_mul(sizeof(part), p->count_in));
}

static sinter_status concat_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                 const view *out, void *to)
{
    (void)t;
    concat_record *r = to;
    move_squares_fn *const squares = squares_of(e);
    const uint32_t axis = (uint32_t)((const attrs_concat *)attrs)->axis;
    int64_t at = 0;
    r->count = p->count_in;
    for (uint32_t i = 0; i < p->count_in; i++) {
        view dst = out[0];
        dst.dim[axis] = in[i].dim[axis];
        r->at[i].at = at * dst.stride[axis] * (int64_t)(sinter_dtype_bits(dst.dtype) / 8);
        r->at[i].is_empty = view_count(&in[i]) == 0;
        if (!r->at[i].is_empty) move_plan_init(&r->at[i].plan, &dst, &in[i], squares);
        at += in[i].dim[axis];
    }
    return SINTER_OK;
}

static sinter_status concat_run(const kernel_run *k)
{
    const concat_record *r = k->record;
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->at[i].is_empty) continue;
        job j = { &r->at[i].plan, (char *)k->out[0] + r->at[i].at, k->in[i] };
        row_parallel(k, move_tile_count(&r->at[i].plan), body, &j);
    }
    return SINTER_OK;
}

const kernel cpu_concat = {
    .name = "cpu_concat",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = concat_reject,
    .tactics = tactics,
    .check = check,
    .cost_ns = cost_ns,
    .record_size = concat_record_size,
    .bind = concat_bind,
    .run = concat_run,
};

/* ---- pad: the borders are filled with one value, then what remains of the input is copied ---- */

enum { BORDERS = 2 * SINTER_RANK_MAX };
typedef struct pad_record {
    move_plan plan, border[BORDERS]; /* borders are copies of one element */
    int64_t border_at[BORDERS];
    uint32_t borders;
    int64_t to, from; /* bytes */
    bool has_inside, has_value;
} pad_record;

static const char *pad_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_pad, "not a padding");
    REJECT_UNLESS(((const attrs_pad *)p->attrs)->mode == pad_mode_constant, "does not pad with a constant");
    return reject_types(p);
}

static sinter_status pad_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                              const view *out, void *to)
{
    (void)t;
    pad_record *r = to;
    move_squares_fn *const squares = squares_of(e);
    const attrs_pad *a = attrs;
    memset(r, 0, sizeof *r);
    const int64_t size = sinter_dtype_bits(out[0].dtype) / 8;
    r->has_value = p->count_in > 1 && in[1].dtype != SINTER_DTYPE_NONE;
    /* Axis by axis: what lies before and behind the input over the part that earlier axes left. */
    view rest = out[0], src = in[0];
    int64_t at = 0;
    for (uint32_t i = 0; i < rest.rank; i++) {
        const int64_t begin = a->begin.at[i], total = rest.dim[i];
        int64_t first = begin > 0 ? begin : 0, stop = begin + in[0].dim[i];
        if (first > total) first = total;
        if (stop > total) stop = total;
        if (stop < first) stop = first;
        const int64_t from[2] = { 0, stop }, count[2] = { first, total - stop };
        for (uint32_t side = 0; side < 2; side++) {
            if (!count[side]) continue;
            view border = rest, one = rest;
            border.dim[i] = one.dim[i] = count[side];
            for (uint32_t k = 0; k < one.rank; k++) one.stride[k] = 0;
            r->border_at[r->borders] = at + from[side] * rest.stride[i] * size;
            move_plan_init(&r->border[r->borders++], &border, &one, squares);
        }
        at += first * rest.stride[i] * size;
        if (begin < 0) r->from += -begin * src.stride[i] * size;
        rest.dim[i] = src.dim[i] = stop - first;
    }
    r->to = at;
    r->has_inside = view_count(&rest) > 0;
    if (r->has_inside) move_plan_init(&r->plan, &rest, &src, squares);
    return SINTER_OK;
}

static sinter_status pad_run(const kernel_run *k)
{
    const pad_record *r = k->record;
    static const uint64_t zero = 0;
    for (uint32_t i = 0; i < r->borders; i++) {
        job j = { &r->border[i], (char *)k->out[0] + r->border_at[i], r->has_value ? k->in[1] : &zero };
        row_parallel(k, move_tile_count(&r->border[i]), body, &j);
    }
    if (!r->has_inside) return SINTER_OK;
    job j = { &r->plan, (char *)k->out[0] + r->to, (const char *)k->in[0] + r->from };
    row_parallel(k, move_tile_count(&r->plan), body, &j);
    return SINTER_OK;
}

const kernel cpu_pad = {
    .name = "cpu_pad",
    .abi = 1,
    .out_strides = STRIDES_ROWS,
    .reject = pad_reject,
    .tactics = tactics,
    .check = check,
    .cost_ns = cost_ns,
    .record = sizeof(pad_record),
    .bind = pad_bind,
    .run = pad_run,
};
