/* SPDX-License-Identifier: Apache-2.0 */
/* bound.h - what the results of a kernel may differ by from exact ones: the contract of every row of kernels.
 *
 * Where an op's exact result v and a kernel's result y are finite,
 *
 *     |y - v| <= relative * |v| + spread * size + least
 *
 *   relative  4 eps: roundings of the result itself, of its epilogue and of functions (ops/scalar_error.c)
 *   spread    eps * (4 + 2 * sqrt(terms * growth)): roundings of a sum of `terms` products, which are of either sign
 *             layer_norm and group_norm: as many terms more as stand for the rounding of the mean, eps * |mean| /
 *             sqrt(variance + epsilon), in data of a size of about 1
 *   size      the root mean square of the sums: of the results where there is no epilogue that bounds them. Rows of
 *             a product and images of a convolution may belong to different requests: each has its own size
 *   growth    1; KERNEL_TRANSFORMED 16 (a sum of larger numbers that cancel), KERNEL_RELAXED 1.7e7 (factors of 11 bits)
 *   eps       the gap of the result's type at 1: f64 1e-15, f32 1.2e-7, f16 1e-3, bf16 8e-3; integers 0
 *   least     what is rounded whatever the result's size: weights of an average of values of about 1 (attention),
 *             positions between pixels (grid_sample: 2 eps of f32 a pixel of the longest axis, for values of about 1),
 *             and one step where resize cuts off integers
 *
 * NaN and infinities are where the op has them, but for KERNEL_TRANSFORMED: there an infinity of an image, or of the
 * weights, may make NaN of other results of that image or of other columns (docs/numerics.md). */
#ifndef BACKEND_BOUND_H
#define BACKEND_BOUND_H

#include "backend/kernel.h"

typedef struct kernel_bound { double relative, spread, least; } kernel_bound;

/* For a result of `terms` terms (problem_terms) in this type by a kernel of this class. */
kernel_bound bound_of(const problem *p, kernel_numerics numerics, sinter_dtype result, double terms);

#endif
