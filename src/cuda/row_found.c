/* SPDX-License-Identifier: Apache-2.0 */
/* row_found.c - non_zero_rows and nms_rows: what data choose, as rows in their order with room for the most that there
 * can be, and how many rows there are. */
#include "cuda/cuda_kernels.h"

#include "cuda/device/found_args.h"

typedef struct non_zero_args non_zero_args;
typedef struct nms_args nms_args;

/* Of nms.cu. DESK: more than its struct desk has. */
enum { STRIP = 512 * 8, BLOCK_FIND = 512, BLOCK_SUPPRESS = 1024, ROOM = 4096, DESK = 5120 };

static const char *reject_rows(const problem *p)
{
    REJECT_UNLESS(!p->prologue && !p->epilogue, "a program");
    REJECT_UNLESS(p->count_out == 2 && p->out[0].dtype == SINTER_DTYPE_I64 && p->out[1].dtype == SINTER_DTYPE_I64,
                  "results of other types");
    /* So that the rows that are there are dense by themselves. */
    REJECT_UNLESS(problem_operand_is_row_major(&p->out[0]), "rows in another order");
    return NULL;
}

/* The most elements of an operand; more than 2^31 where nothing bounds them. */
static int64_t most_of(const problem_operand *o)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < o->rank; i++) {
        const int64_t most = o->dim[i].max > 0 ? o->dim[i].max : 1;
        if (!i64_mul(count, most, &count) || count > INT32_MAX) return (int64_t)INT32_MAX + 1;
    }
    return count;
}

/* ---- non_zero_rows ---- */

static const char *non_zero_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_non_zero_rows, "not non_zero_rows");
    const char *why = reject_rows(p);
    if (why) return why;
    const sinter_dtype type = p->in[0].dtype;
    REJECT_UNLESS(sinter_dtype_bits(type) >= 8, "a type under a byte");
    REJECT_UNLESS(!dtype_is_float(type) || sinter_dtype_bits(type) >= 16, "8-bit floats");
    REJECT_UNLESS(p->in[0].rank > 0 && p->in[0].rank <= FOUND_AXES, "a scalar");
    REJECT_UNLESS(most_of(&p->in[0]) <= (int64_t)1 << 30, "more than 2^30 elements");
    return NULL;
}

static bool non_zero_check(const problem *p, const tactic *t)
{
    return !non_zero_reject(p, NULL) && cuda_check_one(p, t);
}

static double non_zero_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    return cuda_cost_ns(target, cuda_problem_bytes(p), 20 * (double)cuda_operand_count(&p->in[0])) + 2000;
}

static size_t non_zero_workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)p, (void)t, (void)threads;
    return BLOCK_FIND * sizeof(int32_t);
}

static bool is_dense(const problem *p)
{
    return problem_operand_is_row_major(&p->in[0]);
}

static bool non_zero_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)t, (void)target;
    if (index > 1) return false;
    c->source = "nonzero.cu";
    c->entry = "non_zero";
    cuda_code_define(c, "PHASE", index);
    cuda_code_define(c, "BLOCK", BLOCK_FIND);
    cuda_code_define(c, "RANK", p->in[0].rank);
    cuda_code_define(c, "SIZE", sinter_dtype_bits(p->in[0].dtype) / 8);
    cuda_code_define(c, "IS_FLOAT", dtype_is_float(p->in[0].dtype));
    cuda_code_define(c, "DENSE", is_dense(p));
    cuda_code_define(c, "TRIGGER", 1);
    return true;
}

static sinter_status non_zero_launch(env *e, cuda_record *r, uint32_t phase, const non_zero_args *a)
{
    non_zero_args *to;
    TRY(cuda_launch_begin(e, r, phase, (uint64_t)a->blocks, 1, 1, BLOCK_FIND, BLOCK_FIND / 32 * 4, sizeof *to, &to));
    *to = *a;
    CUDA_PATCH(r, to, x, PATCH_IN, 0);
    CUDA_PATCH(r, to, sums, PATCH_WORKSPACE, 0);
    if (phase == 0) return SINTER_OK;
    CUDA_PATCH(r, to, rows, PATCH_OUT, 0);
    CUDA_PATCH(r, to, count, PATCH_OUT, 1);
    return SINTER_OK;
}

static sinter_status non_zero_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                                   const view *out, void *record)
{
    (void)t, (void)attrs;
    cuda_record *r = record;
    const int64_t total = view_count(&in[0]);
    if (total > (int64_t)1 << 30 || in[0].rank != p->in[0].rank || out[0].rank != 2 || out[0].dim[0] != total ||
        out[0].dim[1] != in[0].rank)
        return FAIL(e, UNSUPPORTED, "non_zero_rows of %lld elements", (long long)total);
    non_zero_args a = { .total = (small)total, .row_step = out[0].stride[0], .column_step = out[0].stride[1] };
    for (uint32_t i = 0; i < in[0].rank; i++) {
        a.axis[i].div = cuda_fast_div(in[0].dim[i] > 1 ? in[0].dim[i] : 1);
        a.axis[i].step = in[0].stride[i];
    }
    const int64_t strips = cuda_ceil_div(total, STRIP), each = cuda_ceil_div(strips, BLOCK_FIND);
    a.tile = (small)((each ? each : 1) * STRIP);
    a.blocks = total ? (small)cuda_ceil_div(total, a.tile) : 1;
    if (a.blocks > 1) TRY(non_zero_launch(e, r, 0, &a));
    return non_zero_launch(e, r, 1, &a);
}

CUDA_ROW_ONE(cuda_non_zero, 1, non_zero_check, non_zero_, .workspace = non_zero_workspace);

/* ---- nms_rows ---- */

/* As nms.cu numbers them; -1: another type. */
static int float_number(sinter_dtype type)
{
    return type == SINTER_DTYPE_F32 ? 0 : type == SINTER_DTYPE_F16 ? 1 : type == SINTER_DTYPE_BF16 ? 2 : -1;
}

/* Of the overlap and the threshold; those that are given have one type. */
static sinter_dtype limit_type(const problem *p)
{
    return cuda_has_in(p, 3) ? p->in[3].dtype : cuda_has_in(p, 4) ? p->in[4].dtype : SINTER_DTYPE_F32;
}

static bool is_center(const problem *p)
{
    return ((const attrs_nms_rows *)p->attrs)->center_box != 0;
}

typedef struct nms_room {
    size_t box, at, count, all; /* where each part of the workspace begins, behind the entries, and its size */
} nms_room;

/* lists of n boxes, of which `limit` are kept. */
static nms_room room_of(const problem *p, int64_t lists, int64_t n, int64_t limit)
{
    nms_room r;
    const size_t each = size_mul((size_t)lists, (size_t)limit);
    r.box = n > ROOM ? size_align(size_mul(size_mul((size_t)lists, (size_t)n), 8), 64) : 0;
    r.at = size_add(r.box, size_align(size_mul(each, is_center(p) ? 32 : 16), 64));
    r.count = size_add(r.at, size_align(size_mul(each, 4), 64));
    r.all = size_add(r.count, size_mul((size_t)lists, 4));
    return r;
}

static const char *nms_reject(const problem *p, const kernel_target *t)
{
    (void)t;
    REJECT_UNLESS(p->op == OP_nms_rows, "not nms_rows");
    const char *why = reject_rows(p);
    if (why) return why;
    REJECT_UNLESS(p->in[0].rank == 3 && p->in[1].rank == 3, "boxes or scores of another rank");
    REJECT_UNLESS(float_number(p->in[0].dtype) >= 0 && float_number(p->in[1].dtype) >= 0, "boxes or scores in f64");
    REJECT_UNLESS(!cuda_has_in(p, 2) || p->in[2].dtype == SINTER_DTYPE_I64 || p->in[2].dtype == SINTER_DTYPE_I32,
                  "a number of boxes of another type");
    const sinter_dtype limit = limit_type(p);
    REJECT_UNLESS(float_number(limit) >= 0 && (!cuda_has_in(p, 4) || p->in[4].dtype == limit), "limits of other types");
    REJECT_UNLESS(most_of(&p->in[0]) <= (int64_t)1 << 26 && most_of(&p->in[1]) <= (int64_t)1 << 27 &&
                      most_of(&p->out[0]) <= (int64_t)1 << 27,
                  "more than 2^27 scores, or rows");
    return NULL;
}

static bool nms_check(const problem *p, const tactic *t)
{
    return !nms_reject(p, NULL) && cuda_check_one(p, t);
}

static double nms_cost_ns(const problem *p, const tactic *t, const kernel_target *target)
{
    (void)t;
    const double lists = (double)p->in[1].dim[0].opt * (double)p->in[1].dim[1].opt, n = (double)p->in[1].dim[2].opt;
    const double units = target->units ? target->units : 100, waves = lists / units;
    return cuda_cost_ns(target, cuda_problem_bytes(p), 0) + (10000 + n * 20) * (waves < 1 ? 1 : waves);
}

static size_t nms_workspace(const problem *p, const tactic *t, uint32_t threads)
{
    (void)t, (void)threads;
    const problem_operand *s = &p->in[1];
    const int64_t lists = (s->dim[0].max > 0 ? s->dim[0].max : 1) * (s->dim[1].max > 0 ? s->dim[1].max : 1);
    /* Rows of all lists together. */
    const nms_room r = room_of(p, 1, s->dim[2].max, most_of(&p->out[0]) / 3 + 1);
    const nms_room entries = room_of(p, lists, s->dim[2].max, 0);
    return size_add(size_add(r.all, entries.all), 256);
}

static bool nms_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)t, (void)target;
    if (index > 1) return false;
    c->source = "nms.cu";
    c->entry = "nms";
    cuda_code_define(c, "PHASE", index);
    cuda_code_define(c, "BLOCK", index ? 256 : BLOCK_SUPPRESS);
    cuda_code_define(c, "ROOM", ROOM);
    cuda_code_define(c, "CENTER", is_center(p));
    cuda_code_define(c, "BOX_TYPE", float_number(p->in[0].dtype));
    cuda_code_define(c, "SCORE_TYPE", float_number(p->in[1].dtype));
    cuda_code_define(c, "LIMIT_TYPE", float_number(limit_type(p)));
    cuda_code_define(c, "MOST_WIDE", !cuda_has_in(p, 2) || p->in[2].dtype == SINTER_DTYPE_I64);
    cuda_code_define(c, "TRIGGER", 1);
    return true;
}

static sinter_status nms_launch(env *e, const problem *p, cuda_record *r, uint32_t phase, const nms_args *a,
                                const nms_room *room, const view *in)
{
    const uint32_t lists = (uint32_t)(a->images * a->classes);
    nms_args *to;
    if (phase) TRY(cuda_launch_begin(e, r, 1, lists ? lists : 1, 1, 1, 256, 2 * 256 / 32 * 4, sizeof *to, &to));
    else
        TRY(cuda_launch_begin(e, r, 0, (uint64_t)a->classes, (uint64_t)a->images, 1, BLOCK_SUPPRESS, ROOM * 8 + DESK,
                              sizeof *to, &to));
    *to = *a;
    cuda_patch_add(r, to, offsetof(nms_args, kept_at), PATCH_WORKSPACE, 0, (int64_t)room->at);
    cuda_patch_add(r, to, offsetof(nms_args, counts), PATCH_WORKSPACE, 0, (int64_t)room->count);
    if (phase) {
        CUDA_PATCH(r, to, rows, PATCH_OUT, 0);
        CUDA_PATCH(r, to, count, PATCH_OUT, 1);
        return SINTER_OK;
    }
    cuda_patch_add(r, to, offsetof(nms_args, entries), PATCH_WORKSPACE, 0, 0);
    cuda_patch_add(r, to, offsetof(nms_args, kept_box), PATCH_WORKSPACE, 0, (int64_t)room->box);
    CUDA_PATCH(r, to, boxes, PATCH_IN, 0);
    CUDA_PATCH(r, to, scores, PATCH_IN, 1);
    if (cuda_has_in(p, 2) && view_count(&in[2])) CUDA_PATCH(r, to, most, PATCH_IN, 2);
    if (cuda_has_in(p, 3) && view_count(&in[3])) CUDA_PATCH(r, to, overlap, PATCH_IN, 3);
    if (cuda_has_in(p, 4) && view_count(&in[4])) CUDA_PATCH(r, to, least, PATCH_IN, 4);
    return SINTER_OK;
}

static sinter_status nms_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                              const view *out, void *record)
{
    (void)t;
    cuda_record *r = record;
    const view *boxes = &in[0], *scores = &in[1];
    const attrs_nms_rows *own = attrs;
    const int64_t limit = own->most.count ? own->most.at[0] : -1, images = scores->dim[0], classes = scores->dim[1];
    int64_t rows = 0;
    const bool is_sound = boxes->rank == 3 && scores->rank == 3 && boxes->dim[2] == 4 && boxes->dim[0] == images &&
                          boxes->dim[1] == scores->dim[2] && limit >= 0 && i64_mul(images, classes, &rows) &&
                          i64_mul(rows, limit, &rows) && out[0].dim[0] == rows;
    if (!is_sound || limit > INT32_MAX || view_count(scores) > INT32_MAX || images > UINT16_MAX ||
        view_count(&out[0]) > INT32_MAX)
        return FAIL(e, UNSUPPORTED, "nms_rows of %lld images, %lld classes and %lld boxes", (long long)images,
                    (long long)classes, (long long)boxes->dim[1]);
    nms_args a = { .images = (small)images,
                   .classes = (small)classes,
                   .n = (small)boxes->dim[1],
                   .limit = (small)limit,
                   .row_step = out[0].stride[0],
                   .column_step = out[0].stride[1] };
    for (uint32_t i = 0; i < 3; i++) {
        a.box_step[i] = boxes->stride[i];
        a.score_step[i] = scores->stride[i];
    }
    const nms_room room = room_of(p, images * classes, a.n, limit);
    TRY(nms_launch(e, p, r, 0, &a, &room, in));
    return nms_launch(e, p, r, 1, &a, &room, in);
}

CUDA_ROW_ONE(cuda_nms, 1, nms_check, nms_, .workspace = nms_workspace);
