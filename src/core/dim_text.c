/* SPDX-License-Identifier: Apache-2.0 */
/* dim_text.c - dimension expressions as text: "2*S+1", "max(N,floordiv(H-1,2))".
 *
 * The print follows the chain of nodes, which is the canonical form; nesting is bounded by the table. Names that are no
 * plain names are quoted. Reading builds through the constructors, so any spelling becomes canonical. */
#include "core/dim.h"

#include <string.h>

enum { PARSE_DEPTH_MAX = 64 };

static const char *const function_name[DIM_KIND_COUNT] = {
    [DIM_FLOORDIV] = "floordiv", [DIM_CEILDIV] = "ceildiv", [DIM_MOD] = "mod",
    [DIM_MIN] = "min",           [DIM_MAX] = "max",         [DIM_BROADCAST] = "broadcast",
};

static bool is_plain_name(const char *name)
{
    scan s = scan_of(name, strlen(name));
    const char *at;
    size_t length;
    if (!scan_name(&s, &at, &length) || s.at != s.end) return false;
    for (uint32_t k = 0; k < DIM_KIND_COUNT; k++) {
        if (function_name[k] && strcmp(function_name[k], name) == 0) return false;
    }
    return true;
}

static void print_symbol(const dim_table *t, const dim_node *n, text *out)
{
    const char *name = dim_symbol_at(t, (uint32_t)n->value)->name;
    if (is_plain_name(name)) text_append(out, name, strlen(name));
    else text_quoted(out, name, strlen(name));
}

static void print_factor(const dim_table *t, dim d, text *out)
{
    const dim_node *n = dim_at(t, d);
    const bool needs_parentheses = n->kind == DIM_ADD;
    if (needs_parentheses) text_append(out, "(", 1);
    dim_print(t, d, out);
    if (needs_parentheses) text_append(out, ")", 1);
}

/* The operand of a sum, with the sign that joins it: "+x", "-2*x". */
static void print_joined(const dim_table *t, dim d, text *out)
{
    const dim_node *n = dim_at(t, d);
    const dim_node *c = n->kind == DIM_MUL ? dim_at(t, n->a) : n;
    const bool is_less = c->kind == DIM_CONST && c->value < 0 && c->value != INT64_MIN;
    if (!is_less) {
        text_append(out, "+", 1);
        dim_print(t, d, out);
    } else if (c == n || c->value != -1) {
        dim_print(t, d, out); /* begins with the minus sign of its coefficient */
    } else {
        text_append(out, "-", 1);
        print_factor(t, n->b, out);
    }
}

/* A chain of broadcasts as one list. */
static void print_operands(const dim_table *t, dim d, text *out)
{
    const dim_node *n = dim_at(t, d);
    if (dim_at(t, n->a)->kind == DIM_BROADCAST) print_operands(t, n->a, out);
    else dim_print(t, n->a, out);
    text_append(out, ",", 1);
    dim_print(t, n->b, out);
}

void dim_print(const dim_table *t, dim d, text *out)
{
    const dim_node *n = dim_at(t, d);
    switch ((dim_kind)n->kind) {
    case DIM_CONST: text_printf(out, "%lld", (long long)n->value); break;
    case DIM_SYMBOL: print_symbol(t, n, out); break;
    case DIM_ADD:
        dim_print(t, n->a, out);
        print_joined(t, n->b, out);
        break;
    case DIM_MUL:
        if (dim_is(t, n->a, -1)) {
            text_append(out, "-", 1);
        } else {
            print_factor(t, n->a, out);
            text_append(out, "*", 1);
        }
        print_factor(t, n->b, out);
        break;
    case DIM_FLOORDIV:
    case DIM_CEILDIV:
    case DIM_MOD:
    case DIM_MIN:
    case DIM_MAX:
        text_printf(out, "%s(", function_name[n->kind]);
        dim_print(t, n->a, out);
        text_append(out, ",", 1);
        dim_print(t, n->b, out);
        text_append(out, ")", 1);
        break;
    case DIM_BROADCAST:
        text_printf(out, "broadcast(");
        print_operands(t, d, out);
        text_append(out, ")", 1);
        break;
    default: text_append(out, "?", 1); break;
    }
}

static bool parse_sum(dim_table *t, scan *s, uint32_t depth, dim *out);

static dim apply(dim_table *t, uint32_t kind, dim a, dim b)
{
    switch ((dim_kind)kind) {
    case DIM_FLOORDIV: return dim_floordiv(t, a, b);
    case DIM_CEILDIV: return dim_ceildiv(t, a, b);
    case DIM_MOD: return dim_mod(t, a, b);
    case DIM_MIN: return dim_min(t, a, b);
    case DIM_BROADCAST: return dim_broadcast(t, a, b);
    default: return dim_max(t, a, b);
    }
}

static bool parse_named(dim_table *t, scan *s, const char *name, size_t length, uint32_t depth, dim *out)
{
    for (uint32_t kind = 0; kind < DIM_KIND_COUNT; kind++) {
        const char *own = function_name[kind];
        if (!own || strlen(own) != length || memcmp(own, name, length) != 0) continue;
        dim a, b;
        if (!scan_char(s, '(') || !parse_sum(t, s, depth + 1, &a) || !scan_char(s, ',')) return false;
        do {
            if (!parse_sum(t, s, depth + 1, &b)) return false;
            a = apply(t, kind, a, b);
        } while (kind == DIM_BROADCAST && scan_char(s, ','));
        *out = a;
        return scan_char(s, ')');
    }
    const char *copy = arena_text(dim_table_arena(t), name, length);
    *out = copy ? dim_symbol_named(t, copy) : DIM_NONE;
    return copy != NULL;
}

static bool parse_factor(dim_table *t, scan *s, uint32_t depth, dim *out)
{
    if (depth > PARSE_DEPTH_MAX) return false;
    int64_t value;
    const char *name;
    size_t length;
    char *quoted;
    if (scan_i64(s, &value)) {
        *out = dim_const(t, value);
        return true;
    }
    if (scan_char(s, '-')) {
        if (!parse_factor(t, s, depth + 1, out)) return false;
        *out = dim_mul(t, dim_const(t, -1), *out);
        return true;
    }
    if (scan_char(s, '(')) return parse_sum(t, s, depth + 1, out) && scan_char(s, ')');
    if (scan_name(s, &name, &length)) return parse_named(t, s, name, length, depth, out);
    if (!scan_quoted(s, dim_table_arena(t), &quoted)) return false;
    *out = dim_symbol_named(t, quoted);
    return true;
}

static bool parse_product(dim_table *t, scan *s, uint32_t depth, dim *out)
{
    if (!parse_factor(t, s, depth, out)) return false;
    while (scan_char(s, '*')) {
        dim b;
        if (!parse_factor(t, s, depth, &b)) return false;
        *out = dim_mul(t, *out, b);
    }
    return true;
}

static bool parse_sum(dim_table *t, scan *s, uint32_t depth, dim *out)
{
    if (!parse_product(t, s, depth, out)) return false;
    for (;;) {
        const bool is_less = scan_char(s, '-');
        if (!is_less && !scan_char(s, '+')) return true;
        dim b;
        if (!parse_product(t, s, depth, &b)) return false;
        *out = is_less ? dim_sub(t, *out, b) : dim_add(t, *out, b);
    }
}

bool dim_parse(dim_table *t, scan *s, dim *out)
{
    scan own = *s;
    dim d = DIM_NONE;
    if (!parse_sum(t, &own, 0, &d) || d == DIM_NONE) return false;
    *s = own;
    *out = d;
    return true;
}
