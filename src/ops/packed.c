/* SPDX-License-Identifier: Apache-2.0 */
/* packed.c - reads the program of a packed weight. */
#include "ops/packed.h"

#define REFUSE_UNLESS(condition, reason)                                                                               \
    do {                                                                                                               \
        if (!(condition)) return (reason);                                                                             \
    } while (0)

static bool is_scale_type(sinter_dtype t)
{
    return t == SINTER_DTYPE_F32 || t == SINTER_DTYPE_F16 || t == SINTER_DTYPE_BF16;
}

static bool is_code_type(sinter_dtype t)
{
    return t == SINTER_DTYPE_U4 || t == SINTER_DTYPE_I4 || t == SINTER_DTYPE_U8 || t == SINTER_DTYPE_I8 ||
           t == SINTER_DTYPE_F4E2M1 || t == SINTER_DTYPE_F8E4M3FN || t == SINTER_DTYPE_F8E4M3FNUZ ||
           t == SINTER_DTYPE_F8E5M2 || t == SINTER_DTYPE_F8E5M2FNUZ;
}

uint32_t packed_axis(const problem *p)
{
    return ((const attrs_matmul *)p->attrs)->trans_b ? 1 : 0;
}

/* A scale or zero point: a load of one for all, one a column, or one a column and block. */
static const char *load_of(const problem *p, const expr_instr *n, packed_form *f, bool *varies)
{
    const problem_operand *o = &p->in[n->operand];
    const uint32_t axis = packed_axis(p);
    REFUSE_UNLESS(o->rank <= 2 && !o->is_strided, "a scale or zero point is strided, or of more than two axes");
    REFUSE_UNLESS(!n->imm.i || n->kind == axis, "its weight has blocks along the columns");
    const bool has_k = o->rank == 2 || axis == 1;
    *varies = o->rank && has_k && o->dim[o->rank == 2 ? axis : 0].max > 1;
    if (!*varies) return NULL;
    REFUSE_UNLESS(n->imm.i > 0, "its scale varies from term to term");
    REFUSE_UNLESS(!f->block || f->block == n->imm.i, "scales and zero points are of other blocks");
    f->block = n->imm.i;
    return NULL;
}

static const expr_instr *dequantize_of(const problem *p, packed_form *f)
{
    const expr *x = p->weight;
    const expr_instr *n = NULL;
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->at[i].op != EXPR_STORE) continue;
        n = &x->at[x->at[i].arg[0]];
        f->product = (sinter_dtype)x->at[i].dtype;
    }
    return n && n->op == OP_dequantize ? n : NULL;
}

const char *packed_form_of(const problem *p, packed_form *f)
{
    *f = (packed_form){ .type = p->in[1].dtype };
    const problem_operand *q = &p->in[1];
    REFUSE_UNLESS(p->weight, "its weight is not packed");
    REFUSE_UNLESS(is_code_type(f->type), "its weight is not of 4 or 8 bits");
    REFUSE_UNLESS(q->rank == 2 && !q->is_strided && q->is_const, "its weight is strided, or no matrix");
    const expr_instr *n = dequantize_of(p, f);
    REFUSE_UNLESS(n, "its weight is not dequantised by a scale alone");
    const expr_instr *code = &p->weight->at[n->arg[0]], *scale = &p->weight->at[n->arg[1]],
                     *zero = &p->weight->at[n->arg[2]];
    f->bits = sinter_dtype_bits(f->type);
    f->k = q->dim[packed_axis(p)].max;
    f->n = q->dim[1 - packed_axis(p)].max;
    REFUSE_UNLESS(f->k >= 1 && f->n >= 1 && f->k < INT32_MAX / 8 && f->n < INT32_MAX / 8, "a size is 0, or too large");
    REFUSE_UNLESS(code->op == EXPR_LOAD && code->operand == 1 && !code->imm.i, "its weight is not what is dequantised");
    REFUSE_UNLESS(scale->op == EXPR_LOAD && is_scale_type((sinter_dtype)scale->dtype), "its scale is no operand");
    const char *why = load_of(p, scale, f, &f->scale_varies);
    if (why) return why;
    f->scale = scale->operand;
    f->scale_type = (sinter_dtype)scale->dtype;
    if (dtype_is_float(f->type)) {
        REFUSE_UNLESS(zero->op == EXPR_IMM && zero->imm.f == 0, "a float has a zero point");
    } else if (zero->op == EXPR_IMM) {
        REFUSE_UNLESS(zero->imm.i >= -128 && zero->imm.i <= 255, "its zero point is no code");
        f->zero_point = (int32_t)zero->imm.i;
    } else {
        REFUSE_UNLESS(zero->op == EXPR_LOAD && zero->dtype == (uint8_t)f->type, "its zero point is no operand");
        if ((why = load_of(p, zero, f, &f->zero_varies))) return why;
        f->zero = zero->operand;
    }
    if (!f->block) f->block = f->k;
    f->blocks = (f->k + f->block - 1) / f->block;
    return NULL;
}
