/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - what a problem has to compute and to move at least: the floor that its time is compared with.
 *
 * Operations are those of the op's definition. A kernel that transforms its sums (Winograd) does fewer. Bytes count
 * each element once: a kernel that reads an operand several times is slower than this floor. */
#include "ops/problem.h"

static double elements(const view *v)
{
    double n = 1;
    for (uint32_t i = 0; i < v->rank; i++) n *= (double)v->dim[i];
    return v->dtype == SINTER_DTYPE_NONE ? 0 : n;
}

/* Broadcast elements lie in memory once. */
static double stored_bytes(const view *v)
{
    double n = elements(v) > 0 ? sinter_dtype_bits(v->dtype) / 8.0 : 0;
    for (uint32_t i = 0; i < v->rank; i++)
        if (v->dim[i] > 1 && v->stride[i] != 0) n *= (double)v->dim[i];
    return n;
}

static double matmul_operations(const problem *p, const view *a, const view *b)
{
    const attrs_matmul *at = p->op == OP_matmul ? p->attrs : NULL;
    const attrs_norm_matmul *normed = p->op == OP_norm_matmul ? p->attrs : NULL;
    if (a->rank < 2 || b->rank < 2) return 0;
    double batch = 1;
    for (uint32_t i = 0; i + 2 < a->rank || i + 2 < b->rank; i++) { /* counted from the right, as they broadcast */
        const int64_t x = i + 2 < a->rank ? a->dim[a->rank - 3 - i] : 1,
                      y = i + 2 < b->rank ? b->dim[b->rank - 3 - i] : 1;
        batch *= (double)(x == 1 ? y : x);
    }
    const bool a_turned = at && at->trans_a, b_turned = (at && at->trans_b) || (normed && normed->trans_b);
    const double m = (double)a->dim[a->rank - (a_turned ? 1u : 2u)], k = (double)a->dim[a->rank - (a_turned ? 2u : 1u)],
                 n = (double)b->dim[b->rank - (b_turned ? 2u : 1u)];
    return 2 * batch * m * k * n;
}

/* Pixels, with padding, that a kernel axis of a convolution meets are `out` times `kernel`: padding is multiplied too.
 */
static double conv_operations(const view *w, const view *y)
{
    double each = 2; /* of one result */
    for (uint32_t i = 1; i < w->rank; i++) each *= (double)w->dim[i];
    return each * elements(y);
}

static double attention_operations(const problem *p, const view *in)
{
    const view *q = &in[0], *k = &in[1], *v = &in[2];
    if (q->rank != 4 || k->rank != 4 || v->rank != 4) return 0;
    const double rows = (double)q->dim[0] * (double)q->dim[1] * (double)q->dim[2];
    double columns = (double)k->dim[2];
    if (((const attrs_attention *)p->attrs)->causal) columns = (columns + 1) / 2; /* at least, of a square */
    return 2 * rows * columns * ((double)q->dim[3] + (double)v->dim[3]);
}

/* Every step multiplies every weight once with each row of the batch. */
static double rnn_operations(const view *in)
{
    return in[0].rank == 3 ? 2 * (double)in[0].dim[0] * (double)in[0].dim[1] * (elements(&in[1]) + elements(&in[2]))
                           : 0;
}

static double window(const attr_ints *kernel)
{
    double n = 1;
    for (uint32_t i = 0; i < kernel->count; i++) n *= (double)kernel->at[i];
    return n;
}

static double anchor_operations(const problem *p, const view *in, const view *out)
{
    const double most = elements(&in[0]) > elements(&out[0]) ? elements(&in[0]) : elements(&out[0]);
    switch (p->op) {
    case OP_matmul:
    case OP_norm_matmul:
    case OP_matmul_integer: return matmul_operations(p, &in[0], &in[1]);
    case OP_conv:
    case OP_conv_integer: return conv_operations(&in[1], &out[0]);
    case OP_deform_conv: return conv_operations(&in[1], &out[0]);
    case OP_excite: return elements(&in[0]) + 2 * (elements(&in[1]) + elements(&in[2])) * (double)in[0].dim[0];
    case OP_conv_transpose: return 2 * elements(&in[0]) * elements(&in[1]) / (double)in[1].dim[0];
    case OP_attention: return attention_operations(p, in);
    case OP_lstm:
    case OP_gru:
    case OP_rnn: return rnn_operations(in);
    case OP_max_pool: return elements(&out[0]) * window(&((const attrs_max_pool *)p->attrs)->kernel);
    case OP_avg_pool: return elements(&out[0]) * window(&((const attrs_avg_pool *)p->attrs)->kernel);
    case OP_lp_pool: return elements(&out[0]) * window(&((const attrs_lp_pool *)p->attrs)->kernel);
    case OP_pointwise: return 0; /* its program is the work */
    default: return op_has(p->op, MOVES) ? 0 : most;
    }
}

/* Scalar functions of a program, each once an element. */
static double program_operations(const expr *x, double space)
{
    double n = 0;
    for (uint32_t i = 0; x && i < x->count; i++)
        n += (x->at[i].op < OP_SCALAR_COUNT && x->at[i].op != OP_identity) || x->at[i].op == EXPR_REDUCE;
    return n * space;
}

/* The part of an input that is read: ops that pick elements read those, a convolution whose stride is longer than its
 * kernel leaves pixels out. */
static double read_share(const problem *p, uint32_t input, const view *in, const view *out)
{
    const double have = elements(&in[input]), wanted = elements(&out[0]);
    if (input || have <= 0) return 1;
    if (op_has(p->op, MOVES) && !op_has(p->op, CHOOSES | REDUCTION)) return wanted < have ? wanted / have : 1;
    if (p->op != OP_conv) return 1;
    const attrs_conv *a = p->attrs;
    double share = 1;
    for (uint32_t i = 0; i < a->stride.count && i + 2 < in[1].rank; i++)
        if (in[1].dim[i + 2] < a->stride.at[i]) share *= (double)in[1].dim[i + 2] / (double)a->stride.at[i];
    return share;
}

void problem_work(const problem *p, const view *in, const view *out, work_counts *w)
{
    *w = (work_counts){ .dtype = p->count_in ? in[0].dtype : SINTER_DTYPE_NONE };
    if (!p->count_out || !p->count_in) {
        for (uint32_t i = 0; i < p->count_out; i++) w->written += stored_bytes(&out[i]);
        return;
    }
    double space = 0;
    for (uint32_t i = 0; i < p->count_out; i++)
        if (elements(&out[i]) > space) space = elements(&out[i]);
    if (p->op == OP_pointwise && elements(&in[0]) > space) space = elements(&in[0]); /* results may be reductions */
    w->products = op_has(p->op, CONTRACTION) || op_has(p->op, RECURRENT);
    w->operations = anchor_operations(p, in, out) + program_operations(p->epilogue, space) +
                    program_operations(p->prologue, elements(&in[0]));
    if (p->weight && p->count_in > 1) w->operations += program_operations(p->weight, elements(&in[1]));
    for (uint32_t i = 0; i < p->count_in; i++) {
        const double bytes = stored_bytes(&in[i]) * read_share(p, i, in, out);
        *(p->in[i].is_const ? &w->weights : &w->read) += bytes;
    }
    for (uint32_t i = 0; i < p->count_out; i++) w->written += stored_bytes(&out[i]);
}
