/* SPDX-License-Identifier: Apache-2.0 */
/* export_program.c - the fused programs of a grouped graph become single ops again.
 *
 * Each instruction becomes the op of the same name. ONNX has no wider type between two operators, so floats of 16 bits
 * are rounded more often than in a group. */
#include "onnx/exporter.h"

#include <string.h>

typedef struct program {
    ir_graph *g;
    ir_builder *b;
    const ir_node *n;
    ir_value_id acc, value[EXPR_MAX];
    dim space[SINTER_RANK_MAX];
    uint32_t rank;
} program;

static ir_value_id shaped_like_space(program *p, ir_value_id v)
{
    return build_expanded(p->b, v, p->space, p->rank);
}

static ir_value_id immediate(program *p, const expr_instr *x)
{
    const sinter_dtype type = (sinter_dtype)x->dtype;
    return dtype_is_float(type) ? build_scalar(p->b, type, x->imm.f) : build_scalar_i64(p->b, type, x->imm.i);
}

static ir_value_id reduced(program *p, const expr_instr *x)
{
    int64_t axes[SINTER_RANK_MAX];
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->rank; k++)
        if (x->axes >> k & 1u) axes[count++] = k;
    const ir_value_id v = shaped_like_space(p, p->value[x->arg[0]]);
    return build_typed(p->b, build_reduced(p->b, (reduce_kind)x->kind, v, axes, count, true), (sinter_dtype)x->dtype);
}

static ir_value_id computed(program *p, const expr_instr *x)
{
    ir_value_id in[3] = { 0 };
    const uint32_t arity = expr_arity(x);
    for (uint32_t k = 0; k < arity; k++) in[k] = p->value[x->arg[k]];
    const attrs_typed typed = { .type = x->dtype };
    const bool is_typed = scalar_at((op_id)x->op)->result[0] == 'T';
    const ir_value_id y = build_emit(p->b, (op_id)x->op, is_typed ? &typed : NULL, in, arity);
    return build_typed(p->b, y, (sinter_dtype)x->dtype);
}

/* Runs a program; out[k] receives result k. The prologue has one result and the space of its operands. */
static void program_run(program *p, const expr *x, ir_value_id *out)
{
    for (uint32_t i = 0; i < x->count && !p->b->status; i++) {
        const expr_instr *at = &x->at[i];
        const sinter_dtype type = (sinter_dtype)at->dtype;
        if (at->op == EXPR_ACC) p->value[i] = build_typed(p->b, p->acc, type);
        else if (at->op == EXPR_LOAD) p->value[i] = build_typed(p->b, p->n->in[at->operand], type);
        else if (at->op == EXPR_IMM) p->value[i] = immediate(p, at);
        else if (at->op == EXPR_STORE)
            out[at->operand] = build_typed(p->b, shaped_like_space(p, p->value[at->arg[0]]), type);
        else if (at->op == EXPR_REDUCE) out[at->operand] = reduced(p, at);
        else p->value[i] = computed(p, at);
    }
}

/* The space of a program that no anchor gives one: what its operands broadcast to. */
static void space_of_loads(program *p, const expr *x)
{
    dim_table *t = p->g->dims;
    p->rank = 0;
    for (uint32_t k = 0; k < SINTER_RANK_MAX; k++) p->space[k] = dim_const(t, 1);
    for (uint32_t i = 0; i < x->count; i++) {
        const ir_value *v = ir_value_at(p->g, x->at[i].op == EXPR_LOAD ? p->n->in[x->at[i].operand] : 0);
        if (v->rank > p->rank) p->rank = v->rank;
    }
    for (uint32_t i = 0; i < x->count; i++) {
        const ir_value *v = ir_value_at(p->g, x->at[i].op == EXPR_LOAD ? p->n->in[x->at[i].operand] : 0);
        for (uint32_t k = 0; k < v->rank; k++) {
            dim *to = &p->space[p->rank - v->rank + k];
            (void)infer_broadcast(t, *to, v->dim[k], to);
        }
    }
}

void export_program(ir_builder *b, const ir_node *n, ir_value_id *out)
{
    program p = { .g = b->g, .b = b, .n = n };
    ir_value_id *in = ARENA_NEW(&b->g->a, ir_value_id, (size_t)n->count_in + 1);
    if (!in) build_fail(b, FAIL_MEMORY(b->g->e, "a program"));
    if (!in) return;
    memcpy(in, n->in, n->count_in * sizeof *in);
    if (n->prologue) {
        space_of_loads(&p, n->prologue);
        program_run(&p, n->prologue, in);
    }
    if (n->op == OP_pointwise) {
        space_of_loads(&p, n->epilogue);
    } else {
        const uint32_t count_out = n->epilogue ? op_at(n->op)->out_min : n->count_out;
        const ir_node_id anchor = build_node(b, n->op, n->attrs, in, n->count_anchor, count_out);
        for (uint32_t i = 0; i < n->count_out && !n->epilogue; i++) out[i] = build_result(b, anchor, i);
        p.acc = build_result(b, anchor, 0);
        const ir_value *y = ir_value_at(b->g, p.acc);
        p.rank = y->rank;
        memcpy(p.space, y->dim, sizeof p.space);
    }
    if (n->epilogue) program_run(&p, n->epilogue, out);
}
