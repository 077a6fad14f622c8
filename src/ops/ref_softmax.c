/* SPDX-License-Identifier: Apache-2.0 */
/* ref_softmax.c - what works on one line along an axis: softmax, log_softmax and lp_norm.
 *
 *   softmax      y = exp(x - max) / sum of exp(x - max)
 *   log_softmax  y = x - max - log(sum of exp(x - max))
 *   lp_norm      y = x / (sum of |x|^p)^(1/p), 0 for a line of zeros */
#include "ops/ref_loops.h"
#include <inttypes.h>
#include <math.h>

typedef void line_fn(const ref_call *c, const view *x, int64_t at_x, int64_t at_y, int64_t count, int64_t step_x,
                     int64_t step_y);

static sinter_status lines_run(ref_call *c, int64_t axis, line_fn *run)
{
    const view *x = &c->in[0];
    const view *y = &c->out[0];
    TRY(ref_check(c));
    ref_walk from = ref_walk_axes(x, ~(1u << axis), 0);
    ref_walk to = ref_walk_axes(y, ~(1u << axis), 0);
    for (int64_t i = 0; i < from.count; i++, ref_walk_next(&from), ref_walk_next(&to)) {
        run(c, x, from.at, to.at, x->dim[axis], x->stride[axis], y->stride[axis]);
    }
    return SINTER_OK;
}

/* The maximum (NaN wins) and the sum of exp(x - max). */
static double line_sum(const view *x, int64_t at, int64_t count, int64_t step, double *max)
{
    double sum = 0;
    *max = -INFINITY;
    for (int64_t j = 0; j < count; j++) {
        const double v = view_load_f64(x, at + j * step);
        if (!(v <= *max) && !isnan(*max)) *max = v;
    }
    for (int64_t j = 0; j < count; j++) sum += exp(view_load_f64(x, at + j * step) - *max);
    return sum;
}

static void softmax_line(const ref_call *c, const view *x, int64_t at_x, int64_t at_y, int64_t count, int64_t step_x,
                         int64_t step_y)
{
    double max;
    const double sum = line_sum(x, at_x, count, step_x, &max);
    for (int64_t j = 0; j < count; j++) {
        view_store_f64(&c->out[0], at_y + j * step_y, exp(view_load_f64(x, at_x + j * step_x) - max) / sum);
    }
}

static void log_softmax_line(const ref_call *c, const view *x, int64_t at_x, int64_t at_y, int64_t count,
                             int64_t step_x, int64_t step_y)
{
    double max;
    const double log_sum = log(line_sum(x, at_x, count, step_x, &max));
    for (int64_t j = 0; j < count; j++) {
        view_store_f64(&c->out[0], at_y + j * step_y, view_load_f64(x, at_x + j * step_x) - max - log_sum);
    }
}

static void lp_norm_line(const ref_call *c, const view *x, int64_t at_x, int64_t at_y, int64_t count, int64_t step_x,
                         int64_t step_y)
{
    const attrs_lp_norm *a = c->attrs;
    double sum = 0;
    for (int64_t j = 0; j < count; j++) {
        const double v = fabs(view_load_f64(x, at_x + j * step_x));
        sum += a->p == 1 ? v : a->p == 2 ? v * v : pow(v, (double)a->p);
    }
    const double norm = a->p == 1 ? sum : a->p == 2 ? sqrt(sum) : pow(sum, 1 / (double)a->p);
    for (int64_t j = 0; j < count; j++) {
        const double v = view_load_f64(x, at_x + j * step_x);
        view_store_f64(&c->out[0], at_y + j * step_y, norm == 0 ? 0 : v / norm);
    }
}

sinter_status reference_softmax(ref_call *c)
{
    return lines_run(c, ((const attrs_softmax *)c->attrs)->axis, softmax_line);
}

sinter_status reference_log_softmax(ref_call *c)
{
    return lines_run(c, ((const attrs_log_softmax *)c->attrs)->axis, log_softmax_line);
}

sinter_status reference_lp_norm(ref_call *c)
{
    const attrs_lp_norm *a = c->attrs;
    if (a->p < 1) return FAIL(c->e, INVALID_MODEL, "p of lp_norm is %" PRId64 ", wanted at least 1", a->p);
    return lines_run(c, a->axis, lp_norm_line);
}
