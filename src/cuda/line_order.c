/* SPDX-License-Identifier: Apache-2.0 */
/* line_order.c - see line_order.h. */
#include "cuda/line_order.h"

dim_range order_range(const lines *l, const problem_operand *o)
{
    return o->dim[l->gone[0]];
}

const char *order_reject(const problem *p, lines *l)
{
    const char *why = lines_of(p, false, l);
    if (why) return why;
    REJECT_UNLESS(lines_type_of(p->in[0].dtype) >= 0 && p->in[0].dtype != SINTER_DTYPE_BOOL,
                  "a type of 8-bit floats, bool or under a byte");
    REJECT_UNLESS(l->gone_count == 1, "more than one axis");
    REJECT_UNLESS(cuda_range_most(order_range(l, &l->in[0])) <= INT32_MAX / 2, "lines of more than 2^30 elements");
    int64_t rows = 1;
    for (uint32_t i = 0; i < l->kept_count; i++)
        REJECT_UNLESS(i64_mul(rows, cuda_range_most(l->in[0].dim[l->kept[i]]), &rows) && rows <= INT32_MAX,
                      "more than 2^31 lines");
    return NULL;
}

double order_lines(const lines *l)
{
    double n = 1;
    for (uint32_t i = 0; i < l->kept_count; i++) n *= (double)l->in[0].dim[l->kept[i]].opt;
    return n;
}

bool order_set(const lines *l, const view *x, const view *values, const view *indices, order_args *a)
{
    int64_t rows = 1;
    const view none = { .dtype = SINTER_DTYPE_NONE };
    if (!indices) indices = &none;
    for (uint32_t i = 0; i < l->kept_count; i++) {
        const uint32_t m = l->kept[i];
        if (!i64_mul(rows, x->dim[m], &rows)) return false;
        a->kept[i].div = cuda_fast_div(x->dim[m] > 1 ? x->dim[m] : 1);
        a->kept[i].x = x->stride[m];
        a->kept[i].values = values->dtype != SINTER_DTYPE_NONE ? values->stride[m] : 0;
        a->kept[i].indices = indices->dtype != SINTER_DTYPE_NONE ? indices->stride[m] : 0;
    }
    const uint32_t g = l->gone[0];
    if (rows > INT32_MAX || x->dim[g] > INT32_MAX / 2) return false;
    a->rows = (small)rows;
    a->n = (small)x->dim[g];
    a->step = x->stride[g];
    a->value_step = values->dtype != SINTER_DTYPE_NONE ? values->stride[g] : 0;
    a->index_step = indices->dtype != SINTER_DTYPE_NONE ? indices->stride[g] : 0;
    return true;
}
