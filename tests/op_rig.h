/* SPDX-License-Identifier: Apache-2.0 */
/* op_rig.h - runs one op on small tensors, by inference and by its reference, for the tests of ops.
 *
 * Attributes are text, read once as expressions for inference and once as sizes for the run; so each case also
 * checks that the inferred shape is the one that the reference fills. TWICE runs a case on dense operands, then on
 * strided ones. */
#ifndef OP_RIG_H
#define OP_RIG_H

#include "ops/ops.h"
#include "test.h"

#include <math.h>

enum { IN_MAX = 5, OUT_MAX = 4, LIST_MAX = 64 };

typedef struct list {
    int count;
    double at[LIST_MAX];
} list;
#define L(...) ((list){ (int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)), { __VA_ARGS__ } })
#define NOTHING ((list){ 0 })

typedef struct rig {
    int form; /* 1: operands are dense, 2: strided */
    env e;
    sinter_error error;
    arena a, scratch;
    dim_table *t;
    uint32_t count_in, count_out;
    infer_value in[IN_MAX], out[OUT_MAX];
    view view_in[IN_MAX], view_out[OUT_MAX];
    data_fault fault;
    bool is_strided;
    int64_t bound[8]; /* what bind told */
    sinter_status status;
} rig;

static inline void rig_start(rig *x)
{
    const int form = x->form;
    memset(x, 0, sizeof(*x));
    x->form = form;
    x->is_strided = form > 1;
    env_init(&x->e, NULL, &x->error);
    arena_init(&x->a, &x->e);
    arena_init(&x->scratch, &x->e);
    x->t = dim_table_create(&x->a);
    x->count_out = 1;
}

/* The forms in turn: dense, then strided. */
static inline bool rig_next(rig *x)
{
    if (x->form == 2) return false;
    x->form++;
    rig_start(x);
    return true;
}

static inline void rig_stop(rig *x)
{
    arena_deinit(&x->a);
    arena_deinit(&x->scratch);
}

/* Memory for a view; strided: twice as far apart as need be, so that nothing is dense. */
static inline void view_make(rig *x, view *v, sinter_dtype dtype, uint32_t rank, const int64_t *size)
{
    CHECK(view_init(v, dtype, rank, size, NULL));
    int64_t count = view_count(v);
    if (x->is_strided && rank && sinter_dtype_bits(dtype) >= 8) {
        for (uint32_t i = 0; i < rank; i++) v->stride[i] *= 2;
        count *= 2;
    }
    v->data = arena_alloc(&x->a, (size_t)count * 8 + 8, 16);
    if (v->data) memset(v->data, 0x55, (size_t)count * 8 + 8);
}

static inline void add(rig *x, sinter_dtype dtype, list shape, list value)
{
    int64_t size[SINTER_RANK_MAX], i[SINTER_RANK_MAX] = { 0 };
    const uint32_t k = x->count_in++;
    infer_value *v = &x->in[k];
    v->dtype = dtype;
    v->rank = (uint32_t)shape.count;
    for (int d = 0; d < shape.count; d++) {
        size[d] = (int64_t)shape.at[d];
        v->dim[d] = dim_const(x->t, size[d]);
    }
    view_make(x, &x->view_in[k], dtype, v->rank, size);
    const view *w = &x->view_in[k];
    int at = 0;
    for (bool more = view_first(w->dim, w->rank, i); more; more = view_next(w->dim, w->rank, i)) {
        view_store_f64(w, view_offset(w, i), at < value.count ? value.at[at] : at);
        at++;
    }
}

/* A constant: inference sees its integers. */
static inline void add_const(rig *x, sinter_dtype dtype, list shape, list value)
{
    add(x, dtype, shape, value);
    infer_value *v = &x->in[x->count_in - 1];
    dim *known = ARENA_NEW(&x->a, dim, (size_t)value.count + 1);
    for (int i = 0; known && i < value.count; i++) known[i] = dim_const(x->t, (int64_t)value.at[i]);
    v->shape_value = known;
    v->shape_count = (uint32_t)value.count;
}

static inline sinter_status give(ref_call *c, uint32_t i, const int64_t *size, uint32_t count)
{
    rig *x = c->user;
    if (c->op == OP_bind) {
        memcpy(x->bound, size, count * sizeof(*size));
        return SINTER_OK;
    }
    CHECK_EQ(count, c->out[i].rank);
    view_make(x, &c->out[i], c->out[i].dtype, count, size);
    return SINTER_OK;
}

static inline void run(rig *x, op_id op, const char *attrs)
{
    const char *why = NULL;
    scan s = scan_of(attrs, strlen(attrs)), again = s;
    void *symbolic = op_attrs_new(&x->a, op), *sizes = op_attrs_new(&x->a, op);
    if (!CHECK(op_attrs_parse(op, symbolic, &x->a, x->t, &s, &why)) || !CHECK(s.at == s.end)) return;
    if (op != OP_bind) CHECK(op_attrs_parse(op, sizes, &x->a, NULL, &again, &why));
    infer_ctx c = { .e = &x->e,
                    .a = &x->a,
                    .dims = x->t,
                    .op = op,
                    .attrs = symbolic,
                    .count_in = x->count_in,
                    .count_out = x->count_out,
                    .in = x->in,
                    .out = x->out };
    x->status = op_infer(&c);
    if (x->status) return;
    const bool is_late = (op_at(op)->traits & LATE) != 0;
    for (uint32_t k = 0; k < x->count_out; k++) {
        int64_t size[SINTER_RANK_MAX] = { 0 };
        x->view_out[k] = (view){ .dtype = x->out[k].dtype, .rank = x->out[k].rank };
        for (uint32_t d = 0; !is_late && d < x->out[k].rank; d++) CHECK(dim_is_const(x->t, x->out[k].dim[d], &size[d]));
        if (!is_late) view_make(x, &x->view_out[k], x->out[k].dtype, x->out[k].rank, size);
    }
    ref_call r = { .e = &x->e,
                   .op = op,
                   .attrs = sizes,
                   .count_in = x->count_in,
                   .count_out = x->count_out,
                   .in = x->view_in,
                   .out = x->view_out,
                   .scratch = &x->scratch,
                   .fault = &x->fault,
                   .resize = give,
                   .user = x };
    x->status = op_reference(&r);
}

static inline void expect_near(rig *x, uint32_t k, list shape, list value, double within, int line)
{
    const view *v = &x->view_out[k];
    int64_t i[SINTER_RANK_MAX] = { 0 };
    bool is_right = x->status == SINTER_OK && v->rank == (uint32_t)shape.count;
    for (int d = 0; is_right && d < shape.count; d++) is_right = v->dim[d] == (int64_t)shape.at[d];
    if (!is_right)
        (void)printf("line %d: status %d, rank %u [%lld, %lld, …]: %s\n", line, x->status, v->rank,
                     (long long)v->dim[0], (long long)v->dim[1], x->error.text);
    if (!CHECK(is_right)) return;
    int at = 0;
    for (bool more = view_first(v->dim, v->rank, i); more; more = view_next(v->dim, v->rank, i), at++) {
        const double got = view_load_f64(v, view_offset(v, i)), want = at < value.count ? value.at[at] : NAN;
        if (fabs(got - want) <= within || got == want) continue;
        (void)printf("line %d: output %u[%d] is %.9g, expected %.9g\n", line, k, at, got, want);
        CHECK(false);
    }
    CHECK_EQ(at, value.count);
}
#define EXPECT(k, shape, ...) expect_near(x, k, shape, __VA_ARGS__, 0, __LINE__)
#define EXPECT_NEAR(k, shape, ...) expect_near(x, k, shape, __VA_ARGS__, 1e-5, __LINE__)

/* Both forms of a case: dense and strided. */
#define TWICE for (rig rig_ = { .form = 0 }, *x = &rig_; rig_next(x); rig_stop(x))
#define SHAPE L
#define F32 SINTER_DTYPE_F32
#define I64 SINTER_DTYPE_I64
#define SCALAR NOTHING
#define COUNTED NOTHING /* elements 0, 1, 2, … */

#endif
