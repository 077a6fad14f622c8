/* SPDX-License-Identifier: Apache-2.0 */
/* problem_shape.c - whether the shapes of a problem's results follow from its inputs'.
 *
 * The verifier asks once where all sizes are numbers; for the rest the executor asks again with the
 * numbers of each shape that is set. So no kernel ever sees dims that disagree with each other. */
#include "ops/problem.h"

#include <math.h>
#include <string.h>

static bool same_dims(const infer_value *a, const infer_value *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof(dim)) == 0;
}

static dim seen_by(dim_table *t, const expr_instr *load, uint32_t axis, dim size)
{
    return load->imm.i > 0 && load->kind == axis ? dim_ceildiv(t, size, dim_const(t, load->imm.i)) : size;
}

/* Every operand that the program loads broadcasts to the space. */
static bool loads_fit(dim_table *t, const expr *x, const infer_value *in, const infer_value *space)
{
    for (uint32_t i = 0; x && i < x->count; i++) {
        if (x->at[i].op != EXPR_LOAD) continue;
        const infer_value *v = &in[x->at[i].operand];
        if (v->rank > space->rank) return false;
        if (x->at[i].imm.i > 0 && x->at[i].kind >= space->rank) return false;
        for (uint32_t k = 0; k < v->rank; k++) {
            const uint32_t axis = k + space->rank - v->rank;
            if (v->dim[k] != seen_by(t, &x->at[i], axis, space->dim[axis]) && !dim_is(t, v->dim[k], 1)) return false;
        }
    }
    return true;
}

static bool stores_fit(dim_table *t, const expr *x, const infer_value *out, const infer_value *space)
{
    for (uint32_t i = 0; i < x->count; i++) {
        const infer_value *v = &out[x->at[i].operand];
        if (x->at[i].op == EXPR_STORE && !same_dims(v, space)) return false;
        if (x->at[i].op != EXPR_REDUCE) continue;
        if (v->rank != space->rank) return false;
        for (uint32_t k = 0; k < v->rank; k++)
            if (x->at[i].axes >> k & 1 ? !dim_is(t, v->dim[k], 1) : v->dim[k] != space->dim[k]) return false;
    }
    return true;
}

static const infer_value *stored(const expr *x, const infer_value *out)
{
    for (uint32_t i = 0; x && i < x->count; i++)
        if (x->at[i].op == EXPR_STORE) return &out[x->at[i].operand];
    return NULL;
}

/* The anchor's inputs: its first is what the prologue stores, with the dims of input 0, and its second what the
 * program of the weight stores, with those of input 1. */
static infer_value *anchor_inputs(const problem *p, arena *scratch, infer_value *in)
{
    if (!p->prologue && !p->weight) return in;
    infer_value *list = ARENA_NEW(scratch, infer_value, p->count_anchor);
    if (!list) return NULL;
    memcpy(list, in, sizeof *list * p->count_anchor);
    const expr *const program[] = { p->prologue, p->weight };
    for (uint32_t k = 0; k < COUNT_OF(program); k++)
        for (uint32_t i = 0; program[k] && i < program[k]->count; i++)
            if (program[k]->at[i].op == EXPR_STORE) list[k].dtype = (sinter_dtype)program[k]->at[i].dtype;
    return list;
}

bool problem_shape_follows(const env *e, arena *scratch, dim_table *t, const problem *p, const void *attrs,
                           infer_value *in, const infer_value *out)
{
    if (p->op == OP_pointwise) {
        const infer_value *space = stored(p->epilogue, out);
        return space && loads_fit(t, p->epilogue, in, space) && stores_fit(t, p->epilogue, out, space);
    }
    if (p->prologue && !loads_fit(t, p->prologue, in, &in[0])) return false;
    if (p->weight && !loads_fit(t, p->weight, in, &in[1])) return false;
    env quiet = *e;
    quiet.log = NULL;
    quiet.error = &quiet.error_own;
    const uint32_t count_out = p->epilogue ? 1 : p->count_out;
    infer_ctx x = { .e = &quiet,
                    .a = scratch,
                    .dims = t,
                    .op = p->op,
                    .attrs = attrs,
                    .count_in = p->epilogue || p->prologue || p->weight ? p->count_anchor : p->count_in,
                    .count_out = count_out,
                    .in = anchor_inputs(p, scratch, in) };
    x.out = ARENA_NEW(scratch, infer_value, count_out);
    if (!x.in || !x.out || op_infer(&x) != SINTER_OK) return false;
    if (p->epilogue) return loads_fit(t, p->epilogue, in, &x.out[0]) && stores_fit(t, p->epilogue, out, &x.out[0]);
    for (uint32_t i = 0; i < count_out; i++)
        if (out[i].dtype != SINTER_DTYPE_NONE && (x.out[i].dtype != out[i].dtype || !same_dims(&x.out[i], &out[i])))
            return false;
    return true;
}

static infer_value *list_at_opt(arena *a, dim_table *t, const problem_operand *o, uint32_t count)
{
    infer_value *list = ARENA_NEW(a, infer_value, count);
    for (uint32_t i = 0; list && i < count; i++) {
        list[i].dtype = o[i].dtype;
        list[i].rank = o[i].rank;
        for (uint32_t k = 0; k < o[i].rank; k++) list[i].dim[k] = dim_const(t, o[i].dim[k].opt);
    }
    return list;
}

/* A problem as shape functions see it, with all sizes at opt. */
typedef struct at_opt {
    env e;
    arena a;
    dim_table *dims;
    void *attrs;
    infer_value *in, *out;
} at_opt;

/* False: there is no memory. at_opt_end in any case. */
static bool at_opt_begin(const env *e, const problem *p, at_opt *x)
{
    *x = (at_opt){ .e = *e };
    arena_init(&x->a, &x->e);
    x->dims = dim_table_create(&x->a);
    x->attrs = op_attrs_copy(&x->a, p->op, p->attrs);
    bool ok = x->dims && x->attrs;
    for (const attr_info *info = op_at(p->op)->attr; ok && info->name; info++) {
        if (info->kind != ATTR_DIMS) continue;
        attr_dims *d = (attr_dims *)(void *)((char *)x->attrs + info->at);
        int64_t *list = ARENA_NEW(&x->a, int64_t, d->count);
        for (uint32_t i = 0; list && i < d->count; i++) list[i] = dim_const(x->dims, d->at[i]);
        ok = list != NULL;
        d->at = list;
    }
    x->in = ok ? list_at_opt(&x->a, x->dims, p->in, p->count_in) : NULL;
    x->out = ok ? list_at_opt(&x->a, x->dims, p->out, p->count_out) : NULL;
    return x->in && x->out;
}

static void at_opt_end(at_opt *x)
{
    arena_deinit(&x->a);
}

bool problem_sizes_agree(const env *e, const problem *p)
{
    at_opt x;
    const bool ok = at_opt_begin(e, p, &x) && problem_shape_follows(&x.e, &x.a, x.dims, p, x.attrs, x.in, x.out);
    at_opt_end(&x);
    return ok;
}

void problem_values(const env *e, const problem *p, value_range *of)
{
    const value_range any = { -INFINITY, INFINITY };
    for (uint32_t i = 0; i < p->count_in; i++) of[i] = any;
    if (p->op == OP_pointwise) return;
    at_opt x;
    if (at_opt_begin(e, p, &x)) {
        value_range *result = ARENA_NEW(&x.a, value_range, p->count_out);
        for (uint32_t i = 0; result && i < p->count_out; i++) result[i] = any;
        values_call c = { .dims = x.dims,
                          .op = p->op,
                          .attrs = x.attrs,
                          .count_in = p->epilogue || p->prologue || p->weight ? p->count_anchor : p->count_in,
                          .count_out = p->epilogue ? 1 : p->count_out,
                          .in = anchor_inputs(p, &x.a, x.in),
                          .out = x.out,
                          .result = result,
                          .operand = of };
        if (c.in && result) op_values(&c);
    }
    at_opt_end(&x);
}
