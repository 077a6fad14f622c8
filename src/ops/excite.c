/* SPDX-License-Identifier: Apache-2.0 */
/* excite.c - the vector of an image that its channels are scaled by, as networks that squeeze and excite have it.
 *
 *   y[n, e] = sum over f of w2[e, f] * middle(sum over c of w1[f, c] * mean over positions of x[n, c, ...])
 *
 * Weights are those of convolutions with one tap, [F, C, 1, ...], and the result is [N, E, 1, ...], or they are the
 * right factors of matrix products, [C, F], and the result is [N, E]. The middle is a program with one result over the
 * sums, of as many axes as a weight: [N, F, 1, ...] or [N, F]. Its operands differ along F at most. */
#include "ops/excite.h"
#include "ops/infer_check.h"
#include "ops/ref_loops.h"

const char *excite_parse(arena *a, const void *attrs, uint32_t count_in, const expr **out)
{
    const char *const body = ((const attrs_excite *)attrs)->middle, *why = NULL;
    *out = NULL;
    if (!*body) return NULL;
    expr *x;
    scan s = scan_of(body, strlen(body));
    if (!expr_parse(a, &s, &x, &why)) return why;
    if (s.at != s.end) return "something behind the program";
    why = expr_check(x, count_in, 1, true);
    for (uint32_t i = 0; i < x->count && !why; i++) {
        if (x->at[i].op == EXPR_LOAD && x->at[i].operand < EXCITE_OPERANDS) why = "a load of what the products read";
        if (x->at[i].op == EXPR_REDUCE) why = "a program that reduces";
    }
    if (!why) *out = x;
    return why;
}

/* ---- shapes ---- */

static sinter_status want_weight(infer_ctx *c, uint32_t i, const char *name, dim depth, dim *lines)
{
    const infer_value *w = &c->in[i];
    TRY(infer_want_in(c, i, name, 2, SINTER_RANK_MAX));
    TRY(infer_want_type(c, w, name, c->in[0].dtype));
    const bool is_factor = w->rank == 2;
    TRY(infer_want_dim(c, "depth of a weight", w->dim[!is_factor], "what it meets", depth));
    for (uint32_t k = 2; k < w->rank; k++)
        TRY(infer_want_dim(c, "taps of a weight", w->dim[k], "one", dim_const(c->dims, 1)));
    *lines = w->dim[is_factor];
    return SINTER_OK;
}

sinter_status infer_excite(infer_ctx *c)
{
    dim hidden = DIM_NONE, lines = DIM_NONE;
    const dim one = dim_const(c->dims, 1);
    TRY(infer_want_in(c, 0, "input", 3, SINTER_RANK_MAX));
    TRY(infer_want_float(c, &c->in[0], "input"));
    TRY(want_weight(c, 1, "first weight", c->in[0].dim[1], &hidden));
    TRY(want_weight(c, 2, "second weight", hidden, &lines));
    const uint32_t rank = c->in[1].rank;
    if (c->in[2].rank != rank)
        return FAIL(c->e, INVALID_MODEL, "weights of excite have %u and %u axes", rank, c->in[2].rank);
    const expr *middle;
    const char *why = excite_parse(c->a, c->attrs, c->count_in, &middle);
    if (why) return FAIL(c->e, INVALID_MODEL, "the program between the products of excite: %s", why);
    for (uint32_t i = EXCITE_OPERANDS; i < c->count_in; i++) {
        const infer_value *v = &c->in[i];
        TRY(infer_want_in(c, i, "operand", 0, rank));
        for (uint32_t k = 0; k < v->rank; k++) {
            const bool is_along = rank - v->rank + k == 1;
            if (!dim_is(c->dims, v->dim[k], 1))
                TRY(infer_want_dim(c, "an operand's axis", v->dim[k], "what it meets", is_along ? hidden : one));
        }
    }
    dim d[SINTER_RANK_MAX] = { c->in[0].dim[0], lines };
    for (uint32_t k = 2; k < rank; k++) d[k] = one;
    return infer_set(c, 0, c->in[0].dtype, rank, d);
}

/* ---- the reference ---- */

/* Strides of a weight along its lines and its depth. */
typedef struct factor {
    view v;
    int64_t lines, depth, line_step, depth_step;
} factor;

static factor factor_of(const view *v)
{
    const bool is_right = v->rank == 2;
    return (factor){ *v, v->dim[is_right], v->dim[!is_right], v->stride[is_right], v->stride[!is_right] };
}

/* to[line] = the sum over depth of the weight and x. */
static void multiply(const factor *w, const double *x, double *to)
{
    for (int64_t i = 0; i < w->lines; i++) {
        to[i] = 0;
        for (int64_t k = 0; k < w->depth; k++)
            to[i] += x[k] * ref_wide_load(&w->v, i * w->line_step + k * w->depth_step).f;
    }
}

static void means(const view *x, int64_t image, double *to)
{
    int64_t positions = 1;
    for (uint32_t k = 2; k < x->rank; k++) positions *= x->dim[k];
    for (int64_t i = 0; i < x->dim[1]; i++) {
        ref_walk w = ref_walk_axes(x, ~3u, image * x->stride[0] + i * x->stride[1]);
        to[i] = 0;
        for (int64_t k = 0; k < positions; k++, ref_walk_next(&w)) to[i] += ref_wide_load(x, w.at).f;
        to[i] /= (double)positions;
    }
}

sinter_status reference_excite(ref_call *c)
{
    TRY(ref_check(c));
    const sinter_dtype wide = ref_wide_of(c->in[0].dtype);
    view in[EXCITE_OPERANDS];
    const expr *middle;
    for (uint32_t i = 0; i < EXCITE_OPERANDS; i++) TRY(ref_widen(c, &c->in[i], wide, NULL, &in[i]));
    if (excite_parse(c->scratch, c->attrs, c->count_in, &middle)) return FAIL_MEMORY(c->e, "excite");
    const factor w1 = factor_of(&in[1]), w2 = factor_of(&in[2]);
    double *mean = ARENA_NEW(c->scratch, double, (size_t)w1.depth),
           *sum = ARENA_NEW(c->scratch, double, (size_t)w1.lines),
           *hidden = ARENA_NEW(c->scratch, double, (size_t)w1.lines),
           *y = ARENA_NEW(c->scratch, double, (size_t)w2.lines);
    if (!mean || !sum || !hidden || !y) return FAIL_MEMORY(c->e, "excite");
    int64_t space[SINTER_RANK_MAX] = { 1, w1.lines };
    for (uint32_t k = 2; k < w1.v.rank; k++) space[k] = 1;
    view acc, made;
    if (!view_init(&acc, SINTER_DTYPE_F64, w1.v.rank, space, sum) ||
        !view_init(&made, SINTER_DTYPE_F64, w1.v.rank, space, hidden))
        return FAIL_MEMORY(c->e, "excite");
    for (int64_t image = 0; image < in[0].dim[0]; image++) {
        means(&in[0], image, mean);
        multiply(&w1, mean, sum);
        if (middle && expr_run(middle, w1.v.rank, space, &acc, c->in, &made, c->in_f32))
            return FAIL(c->e, INVALID_ARG, "the operands between the products of excite do not fit");
        multiply(&w2, middle ? hidden : sum, y);
        for (int64_t i = 0; i < w2.lines; i++)
            ref_store(&c->out[0], image * c->out[0].stride[0] + i * c->out[0].stride[1], wide, (scalar){ .f = y[i] });
    }
    return SINTER_OK;
}
