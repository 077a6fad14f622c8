/* SPDX-License-Identifier: Apache-2.0 */
/* terms.c - how many terms an op sums into one result: what the rounding of its kernels grows with (backend/bound.h).
 */
#include "ops/problem.h"

#include <math.h>

/* A kernel rounds the mean before it takes it off: an error of eps * |mean| / sqrt(variance + epsilon), which is small
 * unless a group happens to lie close together. Of `groups` groups of n numbers of a size of about 1 hardly any (1 in
 * 1000) lies closer than this. As so many terms of a sum. */
static double norm_terms(double n, double groups, double epsilon)
{
    const double closest = n > 1 ? pow(1000 * groups, 1 / (n - 1)) : 1;
    return n + pow(fmin(closest, 1 / sqrt(epsilon)), 2);
}

static double layer_norm_terms(const problem *p, const view *in)
{
    const attrs_layer_norm *at = p->attrs;
    double n = 1;
    for (uint32_t i = (uint32_t)at->axis; i < in[0].rank; i++) n *= (double)in[0].dim[i];
    return norm_terms(n, (double)view_count(&in[0]) / n, at->epsilon);
}

static double group_norm_terms(const problem *p, const view *in)
{
    const attrs_group_norm *at = p->attrs;
    const double groups = (double)in[0].dim[0] * (double)(at->groups ? at->groups : in[0].dim[1]);
    return norm_terms((double)view_count(&in[0]) / groups, groups, at->epsilon);
}

static double norm_matmul_terms(const problem *p, const view *in)
{
    const attrs_norm_matmul *at = p->attrs;
    const double n = (double)in[0].dim[in[0].rank - 1u];
    return n + (at->centred ? norm_terms(n, (double)view_count(&in[0]) / n, at->epsilon) : n / 4 + 4);
}

double problem_terms(const problem *p, const view *in)
{
    switch (p->op) {
    case OP_conv: {
        double n = 1;
        for (uint32_t i = 1; i < in[1].rank; i++) n *= (double)in[1].dim[i];
        return n;
    }
    case OP_conv_transpose: return (double)view_count(&in[1]) / (double)in[1].dim[1];
    case OP_matmul: return (double)in[0].dim[in[0].rank - (((const attrs_matmul *)p->attrs)->trans_a ? 2u : 1u)];
    case OP_dft: { /* a line that is half of a spectrum counts twice */
        const attrs_dft *a = p->attrs;
        if (a->axis < 0 || a->axis >= in[0].rank) return 8;
        return (double)in[0].dim[a->axis] * (a->onesided && a->inverse ? 2 : 1);
    }
    case OP_excite: return (double)view_count(&in[0]) + (double)view_count(&in[1]);
    case OP_reduce:
    case OP_avg_pool:
    case OP_softmax:
    case OP_log_softmax:
    case OP_rms_norm: return (double)view_count(&in[0]) / 4 + 4;
    case OP_layer_norm: return layer_norm_terms(p, in);
    case OP_norm_matmul: return norm_matmul_terms(p, in);
    case OP_group_norm: return group_norm_terms(p, in);
    case OP_attention: return (double)(in[0].dim[3] + in[2].dim[2]);
    case OP_lstm:
    case OP_gru:
    case OP_rnn: return (64 + (double)(in[1].dim[2] + in[2].dim[2])) * (1 + pow((double)in[0].dim[0], 2) / 2);
    default: return 8;
    }
}
