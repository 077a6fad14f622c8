/* SPDX-License-Identifier: Apache-2.0 */
/* bound.c - the numbers of kernels' contracts. */
#include "backend/bound.h"

#include <math.h>

double bound_terms(const problem *p, const view *in)
{
    switch (p->op) {
    case OP_conv: {
        double n = 1;
        for (uint32_t i = 1; i < in[1].rank; i++) n *= (double)in[1].dim[i];
        return n;
    }
    case OP_conv_transpose: return (double)view_count(&in[1]) / (double)in[1].dim[1];
    case OP_matmul: return (double)in[0].dim[in[0].rank - (((const attrs_matmul *)p->attrs)->trans_a ? 2u : 1u)];
    case OP_reduce:
    case OP_avg_pool:
    case OP_softmax:
    case OP_log_softmax:
    case OP_layer_norm:
    case OP_rms_norm:
    case OP_group_norm:
        /* A mean that is taken off at the end: where a group has few elements, nearly all of a value goes. */
        return in[0].dim[in[0].rank - 1] < 4 ? 1e4 : (double)view_count(&in[0]) / 4 + 4;
    case OP_attention: return (double)(in[0].dim[3] + in[2].dim[2]);
    case OP_lstm:
    case OP_gru:
    case OP_rnn: return (64 + (double)(in[1].dim[2] + in[2].dim[2])) * (1 + pow((double)in[0].dim[0], 2) / 2);
    default: return 8;
    }
}

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

/* What rounds apart from the result's own size: weights of an average, over values of about 1; and integers cut off
 * between two pixels, where a last bit decides. */
static double rounded_before(const problem *p, sinter_dtype result, double terms)
{
    if (p->op == OP_attention) return epsilon(SINTER_DTYPE_F32) * (4 + 2 * sqrt(terms));
    return p->op == OP_resize && !dtype_is_float(result) ? 1 : 0;
}

kernel_bound bound_of(const problem *p, kernel_numerics numerics, sinter_dtype result, double terms)
{
    const double eps = epsilon(result), grown = terms * growth(numerics);
    return (kernel_bound){ 4 * eps, eps * (4 + 2 * sqrt(grown)), rounded_before(p, result, grown) };
}
