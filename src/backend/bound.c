/* SPDX-License-Identifier: Apache-2.0 */
/* bound.c - the numbers of kernels' contracts. */
#include "backend/bound.h"

#include <math.h>

static double epsilon(sinter_dtype t)
{
    return t == SINTER_DTYPE_F16    ? 1e-3
           : t == SINTER_DTYPE_BF16 ? 8e-3
           : t == SINTER_DTYPE_F64  ? 1e-15
           : dtype_is_float(t)      ? 1.2e-7
                                    : 0;
}

/* Kernels that transform their sums round as sums of this many times the terms would; relaxed ones round factors to 11
 * bits: what f32 sums may err grows as the square root of the terms. */
static double growth(kernel_numerics numerics)
{
    return numerics == KERNEL_TRANSFORMED ? 16 : numerics == KERNEL_RELAXED ? 1.7e7 : 1;
}

/* Positions in an image are rounded to f32. Values of about 1 differ by up to 2 from one pixel to the next. */
static double rounded_position(const problem *p)
{
    double size = 1;
    for (uint32_t i = 2; i < p->in[0].rank; i++) size = fmax(size, (double)p->in[0].dim[i].opt);
    return 2 * size * epsilon(SINTER_DTYPE_F32);
}

/* What rounds apart from the result's own size: weights of an average, over values of about 1; positions between
 * pixels; and integers cut off between two pixels, where a last bit decides. */
static double rounded_before(const problem *p, sinter_dtype result, double terms)
{
    if (p->op == OP_grid_sample) return rounded_position(p);
    if (p->op == OP_attention) return epsilon(SINTER_DTYPE_F32) * (4 + 2 * sqrt(terms));
    return p->op == OP_resize && !dtype_is_float(result) ? 1 : 0;
}

kernel_bound bound_of(const problem *p, kernel_numerics numerics, sinter_dtype result, double terms)
{
    const double eps = epsilon(result), grown = terms * growth(numerics);
    return (kernel_bound){ 4 * eps, eps * (4 + 2 * sqrt(grown)), rounded_before(p, result, grown) };
}
