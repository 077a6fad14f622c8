/* SPDX-License-Identifier: Apache-2.0 */
/* infer_elementwise.c - types, shapes and known integer values of elementwise ops.
 *
 * Types are checked by the columns of scalar.def, dims follow broadcasting over symbolic sizes, and integer results
 * whose arguments are known as size expressions are expressions again where their ONNX meaning is exactly that
 * expression (sizes are taken to fit their type, so 32 and 64 bits are treated alike). What cannot be expressed is
 * simply not known. */
#include "ops/expr.h"

#include <string.h>

enum { SHAPE_VALUE_MAX = 64 };

static bool type_allowed(const char *types, sinter_dtype dtype)
{
    if (strcmp(types, "NUM") == 0) return dtype_is_float(dtype) || dtype_is_int(dtype);
    if (strcmp(types, "FLT") == 0) return dtype_is_float(dtype);
    if (strcmp(types, "INT") == 0 || strcmp(types, "BIT") == 0) return dtype_is_int(dtype);
    if (strcmp(types, "LOG") == 0) return dtype == SINTER_DTYPE_BOOL;
    return dtype_is_valid((int)dtype);
}

static const char *type_words(const char *types)
{
    if (strcmp(types, "NUM") == 0) return "a number";
    if (strcmp(types, "FLT") == 0) return "a float";
    if (strcmp(types, "INT") == 0 || strcmp(types, "BIT") == 0) return "an integer";
    if (strcmp(types, "LOG") == 0) return "bool";
    return "any type";
}

static sinter_status wants(const infer_ctx *c, uint32_t i, const char *types)
{
    const sinter_dtype own = c->in[i].dtype;
    if (type_allowed(types, own)) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "input %u has type %s where %s is wanted", i, sinter_dtype_name(own),
                type_words(types));
}

static sinter_status same_type(const infer_ctx *c, uint32_t i, uint32_t k)
{
    if (c->in[i].dtype == c->in[k].dtype) return SINTER_OK;
    return FAIL(c->e, INVALID_MODEL, "input %u has type %s but input %u has %s: one type is wanted", i,
                sinter_dtype_name(c->in[i].dtype), k, sinter_dtype_name(c->in[k].dtype));
}

static sinter_dtype typed_result(const infer_ctx *c)
{
    if (!c->attrs) return (sinter_dtype)(int)op_at(c->op)->attr->initial;
    return (sinter_dtype)((const attrs_typed *)c->attrs)->type;
}

static sinter_status check_quantize(const infer_ctx *c)
{
    const sinter_dtype to = typed_result(c);
    TRY(wants(c, 0, "NUM"));
    TRY(wants(c, 1, "FLT"));
    if (c->in[2].dtype != to) {
        return FAIL(c->e, INVALID_MODEL, "the zero point has type %s, the result %s: one type is wanted",
                    sinter_dtype_name(c->in[2].dtype), sinter_dtype_name(to));
    }
    return SINTER_OK;
}

static sinter_status check_types(const infer_ctx *c)
{
    const scalar_info *info = scalar_at(c->op);
    if (strcmp(info->result, "TYPED") == 0 && !dtype_is_valid((int)typed_result(c))) {
        return FAIL(c->e, INVALID_MODEL, "the result's type %d is no type", (int)typed_result(c));
    }
    if (c->op == OP_quantize) return check_quantize(c);
    if (c->op == OP_dequantize) {
        TRY(wants(c, 0, "NUM"));
        TRY(wants(c, 1, "FLT"));
        return same_type(c, 2, 0);
    }
    if (c->op == OP_where) {
        TRY(wants(c, 0, "LOG"));
        TRY(wants(c, 1, "ALL"));
        return same_type(c, 2, 1);
    }
    for (uint32_t i = 0; i < c->count_in; i++) {
        TRY(wants(c, i, info->types));
        if (i) TRY(same_type(c, i, 0));
    }
    return SINTER_OK;
}

/* ---- dims ---- */

bool infer_broadcast(dim_table *t, dim a, dim b, dim *out)
{
    if (a == b || dim_is(t, b, 1)) {
        *out = a;
        return true;
    }
    if (dim_is(t, a, 1)) {
        *out = b;
        return true;
    }
    const bool is_const_a = dim_is_const(t, a, NULL), is_const_b = dim_is_const(t, b, NULL);
    if (is_const_a && is_const_b) return false;
    /* A size that cannot be 1 is the result's: the other one is 1 or equals it, which the run checks. */
    const dim_range range_a = dim_range_of(t, a), range_b = dim_range_of(t, b);
    if (is_const_a || range_a.min > 1) *out = a;
    else if (is_const_b || range_b.min > 1) *out = b;
    else *out = dim_broadcast(t, a, b);
    return true;
}

static void print_dims(const dim_table *t, const infer_value *v, text *out)
{
    text_append(out, "[", 1);
    for (uint32_t i = 0; i < v->rank; i++) {
        if (i) text_append(out, ",", 1);
        dim_print(t, v->dim[i], out);
    }
    text_append(out, "]", 1);
}

static sinter_status fail_broadcast(const infer_ctx *c, uint32_t at)
{
    text one, all;
    text_init(&one, c->e);
    text_init(&all, c->e);
    print_dims(c->dims, &c->in[at], &one);
    for (uint32_t i = 0; i < at; i++) {
        if (i) text_append(&all, " ", 1);
        print_dims(c->dims, &c->in[i], &all);
    }
    const sinter_status status = FAIL(c->e, INVALID_MODEL, "input %u of shape %s does not broadcast with %s", at,
                                      one.at ? one.at : "?", all.at ? all.at : "?");
    text_deinit(&one);
    text_deinit(&all);
    return status;
}

/* The broadcast of all inputs, into rank and dim of `out`. */
static sinter_status broadcast_inputs(const infer_ctx *c, infer_value *out)
{
    for (uint32_t i = 0; i < c->count_in; i++) {
        if (c->in[i].rank > out->rank) out->rank = c->in[i].rank;
    }
    for (uint32_t k = 0; k < out->rank; k++) out->dim[k] = dim_const(c->dims, 1);
    for (uint32_t i = 0; i < c->count_in; i++) {
        const uint32_t lead = out->rank - c->in[i].rank;
        for (uint32_t k = 0; k < c->in[i].rank; k++) {
            if (!infer_broadcast(c->dims, out->dim[lead + k], c->in[i].dim[k], &out->dim[lead + k]))
                return fail_broadcast(c, i);
        }
    }
    return SINTER_OK;
}

/* ---- known values ---- */

/* Whether a type's integers may be carried as size expressions. */
static bool is_size_type(sinter_dtype dtype)
{
    return dtype == SINTER_DTYPE_I64 || dtype == SINTER_DTYPE_I32;
}

/* Element k of an input (its only one where it has one); DIM_NONE where it is not known. */
static dim known_value(const infer_ctx *c, uint32_t i, uint32_t k)
{
    const infer_value *v = &c->in[i];
    if (v->rank > 1 || dtype_is_float(v->dtype)) return DIM_NONE;
    int64_t count = 1;
    if (v->rank == 1 && !dim_is_const(c->dims, v->dim[0], &count)) return DIM_NONE;
    if (count == 1) k = 0;
    if (v->shape_value) return k < v->shape_count ? v->shape_value[k] : DIM_NONE;
    if (!v->data || k >= count || v->dtype == SINTER_DTYPE_U64) return DIM_NONE;
    return dim_const(c->dims, dtype_load_i64(v->dtype, v->data, k));
}

/* -1 less, 0 equal, 1 greater, where the ranges decide it for every value of the symbols; 2: unknown. */
static int known_order(const infer_ctx *c, dim a, dim b)
{
    if (a == b) return 0;
    const dim d = dim_sub(c->dims, a, b);
    if (d == DIM_NONE) return 2;
    const dim_range r = dim_range_of(c->dims, d);
    return r.min > 0 ? 1 : r.max < 0 ? -1 : 2;
}

static dim value_compare(const infer_ctx *c, dim a, dim b)
{
    const int order = known_order(c, a, b);
    if (order != 2) {
        const scalar arg[2] = { { .i = order }, { .i = 0 } };
        return dim_const(c->dims, scalar_eval(c->op, SINTER_DTYPE_I64, SINTER_DTYPE_BOOL, arg).i);
    }
    const dim d = dim_sub(c->dims, a, b);
    if (d == DIM_NONE) return DIM_NONE;
    const dim_range r = dim_range_of(c->dims, d);
    if (r.min >= 0 && c->op == OP_ge) return dim_const(c->dims, 1);
    if (r.min >= 0 && c->op == OP_lt) return dim_const(c->dims, 0);
    if (r.max <= 0 && c->op == OP_le) return dim_const(c->dims, 1);
    if (r.max <= 0 && c->op == OP_gt) return dim_const(c->dims, 0);
    return DIM_NONE;
}

static dim negated(dim_table *t, dim d)
{
    return dim_sub(t, dim_const(t, 0), d);
}

static dim value_div(const infer_ctx *c, dim a, dim b)
{
    dim_table *t = c->dims;
    dim out;
    if (dim_is(t, b, 0)) return DIM_NONE;
    if (dim_divide_exact(t, a, b, &out)) return out;
    if (dim_range_of(t, b).max < 0) {
        a = negated(t, a);
        b = negated(t, b);
        if (a == DIM_NONE || b == DIM_NONE) return DIM_NONE;
    }
    const dim_range from = dim_range_of(t, a), by = dim_range_of(t, b);
    if (by.min < 0) return DIM_NONE;
    /* Truncation is the floor where nothing is negative; below zero it is that of the opposite number. */
    if (from.min >= 0) return dim_floordiv(t, a, b);
    const dim zero = dim_const(t, 0), below = dim_floordiv(t, dim_max(t, negated(t, a), zero), b);
    return from.max <= 0 ? negated(t, below) : dim_sub(t, dim_floordiv(t, dim_max(t, a, zero), b), below);
}

static dim value_mod(const infer_ctx *c, dim a, dim b)
{
    if (dim_is(c->dims, b, 0)) return DIM_NONE;
    const bool is_natural = dim_range_of(c->dims, a).min >= 0 && dim_range_of(c->dims, b).min >= 0;
    return c->op == OP_mod || is_natural ? dim_mod(c->dims, a, b) : DIM_NONE;
}

/* Where all arguments are constants the scalar function itself decides, in its own type. */
static bool value_const(const infer_ctx *c, const dim *arg, sinter_dtype to, dim *out)
{
    scalar at[3];
    for (uint32_t i = 0; i < c->count_in; i++) {
        if (!dim_is_const(c->dims, arg[i], &at[i].i)) return false;
    }
    const sinter_dtype from = c->in[c->op == OP_where ? 1 : 0].dtype;
    *out = dim_const(c->dims, scalar_eval(c->op, from, to, at).i);
    return true;
}

static dim value_of(const infer_ctx *c, const dim *arg, sinter_dtype to)
{
    dim_table *t = c->dims;
    dim out;
    if (value_const(c, arg, to, &out)) return out;
    if (c->op == OP_where) {
        int64_t condition;
        if (arg[1] == arg[2]) return arg[1];
        return dim_is_const(t, arg[0], &condition) ? arg[condition ? 1 : 2] : DIM_NONE;
    }
    if (!is_size_type(c->in[0].dtype) || (!is_size_type(to) && to != SINTER_DTYPE_BOOL)) return DIM_NONE;
    const dim zero = dim_const(t, 0);
    switch (c->op) {
    case OP_identity: return arg[0];
    case OP_cast:
    case OP_cast_wrap:
        if (to != SINTER_DTYPE_BOOL) return arg[0];
        return known_order(c, arg[0], zero) == 2 ? DIM_NONE : dim_const(t, known_order(c, arg[0], zero) != 0);
    case OP_neg: return dim_sub(t, zero, arg[0]);
    case OP_abs: return dim_max(t, arg[0], dim_sub(t, zero, arg[0]));
    case OP_sign: return known_order(c, arg[0], zero) == 2 ? DIM_NONE : dim_const(t, known_order(c, arg[0], zero));
    case OP_relu: return dim_max(t, arg[0], zero);
    case OP_add: return dim_add(t, arg[0], arg[1]);
    case OP_sub: return dim_sub(t, arg[0], arg[1]);
    case OP_mul: return dim_mul(t, arg[0], arg[1]);
    case OP_div: return value_div(c, arg[0], arg[1]);
    case OP_mod:
    case OP_fmod: return value_mod(c, arg[0], arg[1]);
    case OP_min: return dim_min(t, arg[0], arg[1]);
    case OP_max: return dim_max(t, arg[0], arg[1]);
    case OP_clip: return dim_min(t, dim_max(t, arg[0], arg[1]), arg[2]);
    case OP_eq:
    case OP_lt:
    case OP_le:
    case OP_gt:
    case OP_ge: return value_compare(c, arg[0], arg[1]);
    default: return DIM_NONE;
    }
}

static void infer_known(infer_ctx *c, infer_value *out)
{
    int64_t count = 1;
    if (out->rank > 1 || dtype_is_float(out->dtype) || out->dtype == SINTER_DTYPE_U64) return;
    if (out->rank == 1 && !dim_is_const(c->dims, out->dim[0], &count)) return;
    if (count > SHAPE_VALUE_MAX) return;
    dim value[SHAPE_VALUE_MAX];
    for (uint32_t k = 0; k < (uint32_t)count; k++) {
        dim arg[3] = { DIM_NONE };
        for (uint32_t i = 0; i < c->count_in; i++) {
            arg[i] = known_value(c, i, k);
            if (arg[i] == DIM_NONE) return;
        }
        value[k] = value_of(c, arg, out->dtype);
        if (value[k] == DIM_NONE) return;
    }
    dim *own = ARENA_NEW(c->a, dim, (size_t)count);
    if (!own) return;
    if (count) memcpy(own, value, (size_t)count * sizeof(*own));
    out->shape_value = own;
    out->shape_count = (uint32_t)count;
}

sinter_status infer_elementwise(infer_ctx *c)
{
    infer_value *out = &c->out[0];
    TRY(check_types(c));
    const char *result = scalar_at(c->op)->result;
    if (strcmp(result, "BOOL") == 0) out->dtype = SINTER_DTYPE_BOOL;
    else if (strcmp(result, "TYPED") == 0) out->dtype = typed_result(c);
    else out->dtype = c->in[c->op == OP_where ? 1 : 0].dtype;
    TRY(broadcast_inputs(c, out));
    infer_known(c, out);
    return SINTER_OK;
}

sinter_status infer_pointwise(infer_ctx *c)
{
    if (!c->program) return FAIL(c->e, INVALID_MODEL, "no program");
    const char *why = expr_check(c->program, c->count_in, c->count_out, false);
    if (why) return FAIL(c->e, INVALID_MODEL, "the program is malformed: %s", why);
    for (uint32_t i = 0; i < c->program->count; i++) {
        const expr_instr *x = &c->program->at[i];
        if (x->op == EXPR_LOAD && c->in[x->operand].dtype != (sinter_dtype)x->dtype) {
            return FAIL(c->e, INVALID_MODEL, "the program loads input %u as %s, but its type is %s", x->operand,
                        sinter_dtype_name((sinter_dtype)x->dtype), sinter_dtype_name(c->in[x->operand].dtype));
        }
    }
    infer_value space = { .rank = 0 };
    TRY(broadcast_inputs(c, &space));
    for (uint32_t i = 0; i < c->program->count; i++) {
        const expr_instr *x = &c->program->at[i];
        if (x->op != EXPR_STORE && x->op != EXPR_REDUCE) continue;
        infer_value *out = &c->out[x->operand];
        *out = space;
        out->dtype = (sinter_dtype)x->dtype;
        if (x->op == EXPR_STORE) continue;
        if (space.rank < 32 && x->axes >> space.rank) {
            return FAIL(c->e, INVALID_MODEL, "the program reduces axes 0x%x of a space of rank %u", x->axes,
                        space.rank);
        }
        for (uint32_t k = 0; k < space.rank; k++) {
            if (x->axes >> k & 1u) out->dim[k] = dim_const(c->dims, 1);
        }
    }
    return SINTER_OK;
}

sinter_status infer_same(infer_ctx *c)
{
    for (const attr_info *i = op_at(c->op)->attr; i->name && c->attrs; i++) {
        if (i->kind != ATTR_INT || strcmp(i->name, "axis") != 0) continue;
        int64_t axis;
        memcpy(&axis, (const char *)c->attrs + i->at, sizeof(axis));
        if (axis < 0 || axis >= (int64_t)c->in[0].rank) {
            return FAIL(c->e, INVALID_MODEL, "axis %lld of an input of rank %u", (long long)axis, c->in[0].rank);
        }
    }
    c->out[0] = c->in[0];
    c->out[0].data = NULL;
    if (c->op != OP_copy) {
        c->out[0].shape_value = NULL;
        c->out[0].shape_count = 0;
    }
    return SINTER_OK;
}
