/* SPDX-License-Identifier: Apache-2.0 */
/* expr_text.c - expression programs as text, both ways.
 *
 *   a=acc; b=load 2 : f16; c=imm 0.5; d=add a c : f32; store 0 d; reduce max [0,2] 1 d
 *
 * "load 2 / 1:32" is a load in blocks: of 32 along axis 1. Values are named by letters in order of appearance. A leaf
 * without a type is f32; a root has the type of its value. */
#include "ops/expr.h"

#include <string.h>

enum { NAME_SIZE = 4 };

/* a … z, aa, ab, …: at most 64 of them, so never one of the words. */
static void name_of(uint32_t number, char out[NAME_SIZE])
{
    uint32_t at = 0;
    if (number >= 26) out[at++] = (char)('a' + number / 26 - 1);
    out[at++] = (char)('a' + number % 26);
    out[at] = '\0';
}

static bool is_root(const expr_instr *x)
{
    return x->op == EXPR_STORE || x->op == EXPR_REDUCE;
}

static void print_root(const expr_instr *n, const char *value, text *out)
{
    if (n->op == EXPR_STORE) {
        text_printf(out, "store %u %s", n->operand, value);
        return;
    }
    text_printf(out, "reduce %s [", n->kind < reduce_kind_count ? attr_items_reduce_kind[n->kind] : "?");
    bool is_first = true;
    for (uint32_t k = 0; k < 32; k++) {
        if (!(n->axes >> k & 1u)) continue;
        text_printf(out, "%s%u", is_first ? "" : ",", k);
        is_first = false;
    }
    text_printf(out, "] %u %s", n->operand, value);
}

/* 0 and 1: kernels may leave such an operation out. */
static bool is_special(const expr_instr *n)
{
    return dtype_is_float((sinter_dtype)n->dtype) ? n->imm.f == 0 || n->imm.f == 1 : n->imm.i == 0 || n->imm.i == 1;
}

static void print_value(const expr_instr *n, bool has_values, char name[][NAME_SIZE], text *out)
{
    const sinter_dtype dtype = (sinter_dtype)n->dtype;
    if (n->op == EXPR_ACC) {
        text_printf(out, "acc");
    } else if (n->op == EXPR_LOAD) {
        text_printf(out, "load %u", n->operand);
        if (n->imm.i) text_printf(out, " / %u:%lld", n->kind, (long long)n->imm.i);
    } else if (n->op == EXPR_IMM) {
        text_printf(out, "imm ");
        if (!has_values && !is_special(n)) text_append(out, "?", 1);
        else if (dtype_is_float(dtype)) text_f64(out, n->imm.f);
        else text_printf(out, "%lld", (long long)n->imm.i);
    } else {
        text_printf(out, "%s", scalar_at((op_id)n->op)->name);
        for (uint32_t k = 0; k < scalar_at((op_id)n->op)->arity; k++) text_printf(out, " %s", name[n->arg[k]]);
    }
    if (n->op < OP_SCALAR_COUNT || dtype != SINTER_DTYPE_F32) text_printf(out, " : %s", sinter_dtype_name(dtype));
}

static void print(const expr *x, bool has_values, text *out)
{
    char name[EXPR_MAX][NAME_SIZE];
    uint32_t count = 0;
    for (uint32_t i = 0; i < x->count && i < EXPR_MAX; i++) {
        const expr_instr *n = &x->at[i];
        if (i) text_append(out, "; ", 2);
        name[i][0] = '\0';
        if (is_root(n)) {
            print_root(n, name[n->arg[0]], out);
            continue;
        }
        name_of(count++, name[i]);
        text_printf(out, "%s=", name[i]);
        print_value(n, has_values, name, out);
    }
}

void expr_print(const expr *x, text *out)
{
    print(x, true, out);
}

void expr_print_timed(const expr *x, text *out)
{
    bool has_power = false; /* its time depends on the exponent */
    for (uint32_t i = 0; i < x->count; i++) has_power = has_power || x->at[i].op == OP_pow;
    print(x, has_power, out);
}

/* ---- parse ---- */

typedef struct parser {
    scan s;
    const char *why;
    uint32_t count;
    expr_instr at[EXPR_MAX];
    const char *name[EXPR_MAX];
    size_t name_size[EXPR_MAX]; /* 0: a root */
} parser;

static bool refuse(parser *p, const char *why)
{
    if (!p->why) p->why = why;
    return false;
}

static bool parse_value_name(parser *p, uint16_t *out)
{
    const char *at;
    size_t length;
    scan_space(&p->s);
    if (!scan_name(&p->s, &at, &length)) return refuse(p, "a program wants the name of a value here");
    for (uint32_t i = p->count; i-- > 0;) {
        if (p->name_size[i] == length && memcmp(p->name[i], at, length) == 0) {
            *out = (uint16_t)i;
            return true;
        }
    }
    return refuse(p, "a program uses a name that it has not given");
}

static bool parse_number(parser *p, int64_t max, int64_t *out)
{
    scan_space(&p->s);
    if (!scan_i64(&p->s, out) || *out < 0 || *out > max)
        return refuse(p, "a program wants the number of an operand here");
    return true;
}

static bool parse_axes(parser *p, uint32_t *axes)
{
    scan_space(&p->s);
    if (!scan_char(&p->s, '[')) return refuse(p, "a reduction wants a list of axes");
    if (scan_char(&p->s, ']')) return true;
    do {
        int64_t axis;
        if (!scan_i64(&p->s, &axis) || axis < 0 || axis >= SINTER_RANK_MAX)
            return refuse(p, "a reduction names no axis");
        *axes |= 1u << axis;
    } while (scan_char(&p->s, ','));
    return scan_char(&p->s, ']') || refuse(p, "a list of axes does not end");
}

static bool parse_root(parser *p, expr_instr *n)
{
    int64_t number;
    if (n->op == EXPR_REDUCE) {
        uint32_t kind = 0;
        scan_space(&p->s);
        while (kind < reduce_kind_count && !scan_word(&p->s, attr_items_reduce_kind[kind])) kind++;
        if (kind == reduce_kind_count) return refuse(p, "a reduction of no known kind");
        n->kind = (uint8_t)kind;
        if (!parse_axes(p, &n->axes)) return false;
    }
    if (!parse_number(p, UINT16_MAX, &number) || !parse_value_name(p, &n->arg[0])) return false;
    n->operand = (uint16_t)number;
    n->dtype = p->at[n->arg[0]].dtype;
    return true;
}

static bool parse_type(parser *p, expr_instr *n)
{
    const char *at;
    size_t length;
    sinter_dtype dtype;
    scan ahead = p->s;
    scan_space(&ahead);
    if (!scan_char(&ahead, ':')) {
        n->dtype = SINTER_DTYPE_F32;
        return n->op >= OP_SCALAR_COUNT || refuse(p, "a function has no type");
    }
    p->s = ahead;
    scan_space(&p->s);
    if (!scan_name(&p->s, &at, &length) || !dtype_parse(at, length, &dtype)) return refuse(p, "a type is none");
    n->dtype = (uint8_t)dtype;
    return true;
}

/* The number of an immediate stands before its type, which says how to read it. */
static bool parse_imm(parser *p, expr_instr *n)
{
    scan_space(&p->s);
    scan as_int = p->s;
    int64_t i = 0;
    double f = 0;
    const bool is_int = scan_i64(&as_int, &i);
    if (!scan_f64(&p->s, &f)) {
        if (!is_int) return refuse(p, "an immediate is no number");
        p->s = as_int;
        f = (double)i;
    }
    const bool is_whole = is_int && as_int.at == p->s.at;
    if (!parse_type(p, n)) return false;
    if (dtype_is_float((sinter_dtype)n->dtype)) n->imm.f = f;
    else if (is_whole) n->imm.i = i;
    else return refuse(p, "an immediate of an integer type is no integer");
    return true;
}

static bool parse_load(parser *p, expr_instr *n)
{
    int64_t number, axis = 0;
    n->op = EXPR_LOAD;
    if (!parse_number(p, UINT16_MAX, &number)) return false;
    n->operand = (uint16_t)number;
    scan ahead = p->s;
    scan_space(&ahead);
    if (!scan_char(&ahead, '/')) return true;
    p->s = ahead;
    scan_space(&p->s);
    if (!scan_i64(&p->s, &axis) || axis < 0 || axis >= SINTER_RANK_MAX || !scan_char(&p->s, ':') ||
        !scan_i64(&p->s, &n->imm.i) || n->imm.i < 2)
        return refuse(p, "blocks are AXIS:SIZE, of 2 elements or more");
    n->kind = (uint8_t)axis;
    return true;
}

static bool parse_body(parser *p, expr_instr *n)
{
    const char *at;
    size_t length;
    op_id op;
    if (scan_word(&p->s, "imm")) {
        n->op = EXPR_IMM;
        return parse_imm(p, n);
    }
    if (scan_word(&p->s, "acc")) {
        n->op = EXPR_ACC;
    } else if (scan_word(&p->s, "load")) {
        if (!parse_load(p, n)) return false;
    } else {
        if (!scan_name(&p->s, &at, &length) || !op_parse(at, length, &op) || !op_is_scalar(op)) {
            return refuse(p, "a program names no scalar function");
        }
        n->op = (uint16_t)op;
        for (uint32_t k = 0; k < scalar_at(op)->arity; k++) {
            if (!parse_value_name(p, &n->arg[k])) return false;
        }
    }
    return parse_type(p, n);
}

static bool parse_instr(parser *p)
{
    if (p->count == EXPR_MAX) return refuse(p, "a program has more than 64 instructions");
    expr_instr *n = &p->at[p->count];
    *n = (expr_instr){ 0 };
    p->name_size[p->count] = 0;
    scan_space(&p->s);
    const bool is_store = scan_word(&p->s, "store");
    if (is_store || scan_word(&p->s, "reduce")) {
        n->op = is_store ? EXPR_STORE : EXPR_REDUCE;
        if (!parse_root(p, n)) return false;
        p->count++;
        return true;
    }
    const char *at;
    size_t length;
    if (!scan_name(&p->s, &at, &length) || !scan_char(&p->s, '='))
        return refuse(p, "an instruction is 'name=…', store or reduce");
    if (!parse_body(p, n)) return false;
    p->name[p->count] = at;
    p->name_size[p->count] = length;
    p->count++;
    return true;
}

bool expr_parse(arena *a, scan *s, expr **out, const char **why)
{
    parser p = { .s = *s };
    do {
        if (!parse_instr(&p)) {
            *why = p.why ? p.why : "a program is malformed";
            return false;
        }
        scan_space(&p.s);
    } while (scan_char(&p.s, ';'));
    expr *x = arena_alloc(a, expr_size(p.count), _Alignof(expr));
    if (!x) {
        *why = "out of memory";
        return false;
    }
    x->count = p.count;
    memcpy(x->at, p.at, p.count * sizeof(*p.at));
    *s = p.s;
    *out = x;
    return true;
}
