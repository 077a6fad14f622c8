/* SPDX-License-Identifier: Apache-2.0 */
/* problem.c - problems as one line of text, both ways. The grammar is in problem.h.
 *
 * The text is canonical: equal problems print alike, because attributes at their default, row-major orders and default
 * types are left out. What is read is checked as far as kernels rely on it. */
#include "ops/problem.h"

#include <string.h>

bool problem_is_static(const problem *p)
{
    for (uint32_t i = 0; i < p->count_in + p->count_out; i++) {
        const problem_operand *o = i < p->count_in ? &p->in[i] : &p->out[i - p->count_in];
        for (uint32_t k = 0; k < o->rank; k++) {
            if (!problem_dim_is_static(o->dim[k])) return false;
        }
    }
    return true;
}

static bool has_default_order(const problem_operand *o)
{
    for (uint32_t k = 0; k < o->rank; k++) {
        if (o->order[k] != k) return false;
    }
    return true;
}

bool problem_operand_is_row_major(const problem_operand *o)
{
    return !o->is_strided && has_default_order(o);
}

static bool all_within(const attr_ints *list, int64_t min, int64_t max)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i] < min || list->at[i] > max) return false;
    return true;
}

const char *problem_window_reject(const attr_ints *stride, const attr_ints *dilation, const attr_ints *pad,
                                  uint32_t spatial)
{
    if (stride->count != spatial || dilation->count != spatial || pad->count != 2 * spatial)
        return "an attribute list has another length";
    const bool is_sound = all_within(stride, 1, INT32_MAX) && all_within(dilation, 1, INT32_MAX) &&
                          all_within(pad, -INT32_MAX, INT32_MAX);
    return is_sound ? NULL : "strides, dilations or pads are out of range";
}

static void print_dim(dim_range d, text *out)
{
    text_printf(out, "%lld", (long long)d.min);
    if (problem_dim_is_static(d)) return;
    if (d.max == INT64_MAX) text_append(out, "..?", 3);
    else text_printf(out, "..%lld", (long long)d.max);
    text_printf(out, "/%lld@%lld", (long long)d.divisor, (long long)d.opt);
}

static void print_operand(const problem_operand *o, text *out)
{
    if (o->is_const) text_append(out, "w:", 2);
    if (o->dtype == SINTER_DTYPE_NONE) {
        text_append(out, "-", 1);
        return;
    }
    text_printf(out, "%s[", sinter_dtype_name(o->dtype));
    for (uint32_t k = 0; k < o->rank; k++) {
        if (k) text_append(out, ",", 1);
        print_dim(o->dim[k], out);
    }
    text_append(out, "]", 1);
    if (!has_default_order(o)) {
        for (uint32_t k = 0; k < o->rank; k++) text_printf(out, "%c%u", k ? ',' : '{', o->order[k]);
        text_append(out, "}", 1);
    }
    if (o->is_strided) text_append(out, "**", o->is_gapped ? 2 : 1);
}

/* A program as a word of the line. Programs hold no quotes, so the text needs no escapes. */
static void print_program(const char *word, const expr *x, bool has_values, text *out)
{
    if (!x) return;
    text_printf(out, " %s=\"", word);
    if (has_values) expr_print(x, out);
    else expr_print_timed(x, out);
    text_append(out, "\"", 1);
}

static void print(const problem *p, bool has_values, text *out)
{
    text_printf(out, "%s:", op_at(p->op)->name);
    for (uint32_t i = 0; i < p->count_in; i++) {
        if (i == p->count_anchor) text_append(out, i ? " + " : "+ ", i ? 3 : 2);
        else if (i) text_append(out, " ", 1);
        print_operand(&p->in[i], out);
    }
    text_append(out, " ->", 3);
    for (uint32_t i = 0; i < p->count_out; i++) {
        text_append(out, " ", 1);
        print_operand(&p->out[i], out);
    }
    op_attrs_print(p->op, p->attrs, NULL, out);
    print_program("pro", p->prologue, has_values, out);
    print_program("weight", p->weight, has_values, out);
    print_program("epi", p->epilogue, has_values, out);
}

void problem_print(const problem *p, text *out)
{
    print(p, true, out);
}

void problem_print_timed(const problem *p, text *out)
{
    print(p, false, out);
}

/* ---- parse ---- */

static bool parse_dim(scan *s, dim_range *out)
{
    dim_range d = { .divisor = 1 };
    if (!scan_i64(s, &d.min) || d.min < 0) return false;
    d.max = d.opt = d.min;
    if (!scan_char(s, '.')) {
        if (d.min > 0) d.divisor = d.min;
        *out = d;
        return true;
    }
    if (!scan_char(s, '.')) return false;
    if (scan_char(s, '?')) d.max = INT64_MAX;
    else if (!scan_i64(s, &d.max)) return false;
    if (!scan_char(s, '/') || !scan_i64(s, &d.divisor) || !scan_char(s, '@') || !scan_i64(s, &d.opt)) return false;
    *out = d;
    return d.min < d.max && d.opt >= d.min && d.opt <= d.max && d.divisor >= 1;
}

static bool parse_order(scan *s, problem_operand *o)
{
    uint32_t seen = 0;
    for (uint32_t k = 0; k < o->rank; k++) {
        int64_t axis;
        if (k && !scan_char(s, ',')) return false;
        if (!scan_i64(s, &axis) || axis < 0 || axis >= o->rank || (seen >> axis & 1u)) return false;
        seen |= 1u << axis;
        o->order[k] = (uint8_t)axis;
    }
    return scan_char(s, '}');
}

static bool parse_operand(scan *s, problem_operand *o, const char **why)
{
    *o = (problem_operand){ .dtype = SINTER_DTYPE_NONE };
    scan ahead = *s;
    if (scan_word(&ahead, "w") && scan_char(&ahead, ':')) {
        *s = ahead;
        o->is_const = true;
    }
    if (scan_char(s, '-')) return true;
    const char *name;
    size_t length;
    *why = "an operand wants a type";
    if (!scan_name(s, &name, &length) || !dtype_parse(name, length, &o->dtype)) return false;
    *why = "an operand wants '[' dims ']' after its type";
    if (!scan_char(s, '[')) return false;
    *why = "a dim is N, or MIN..MAX/DIVISOR@OPT with MIN <= OPT <= MAX; at most 16 of them";
    for (bool more = !scan_char(s, ']'); more; more = scan_char(s, ',')) {
        if (o->rank == SINTER_RANK_MAX || !parse_dim(s, &o->dim[o->rank])) return false;
        o->rank++;
    }
    if (o->rank && !scan_char(s, ']')) return false;
    for (uint32_t k = 0; k < o->rank; k++) o->order[k] = (uint8_t)k;
    *why = "an order names each axis once";
    if (scan_char(s, '{') && !parse_order(s, o)) return false;
    o->is_strided = scan_char(s, '*');
    o->is_gapped = o->is_strided && scan_char(s, '*');
    return true;
}

/* Operands are read to the stack and kept in a list of their number: an engine has a problem for each step. */
enum { OPERANDS_OWN = 8 };
typedef VEC(problem_operand) operand_list;

static problem_operand *keep_operands(arena *a, const operand_list *list, const problem_operand *own)
{
    if (list->at != own) return list->at;
    problem_operand *kept = ARENA_NEW(a, problem_operand, list->count);
    if (kept && list->count) memcpy(kept, own, list->count * sizeof *own);
    return kept;
}

static bool push_operand(arena *a, scan *s, operand_list *list, const char **why)
{
    problem_operand *o = list->count < OP_IN_MAX ? VEC_PUSH(a, list) : NULL;
    if (!o) {
        *why = "too many operands, or out of memory";
        return false;
    }
    return parse_operand(s, o, why);
}

static bool at_arrow(const scan *s)
{
    return s->end - s->at >= 2 && s->at[0] == '-' && s->at[1] == '>';
}

static bool parse_inputs(arena *a, scan *s, problem *p, const char **why)
{
    problem_operand own[OPERANDS_OWN];
    operand_list list = { .at = own, .capacity = OPERANDS_OWN };
    bool has_plus = false;
    for (scan_space(s); !at_arrow(s); scan_space(s)) {
        if (scan_char(s, '+')) {
            if (has_plus) {
                *why = "a second '+'";
                return false;
            }
            has_plus = true;
            p->count_anchor = list.count;
            continue;
        }
        if (!push_operand(a, s, &list, why)) return false;
    }
    p->in = keep_operands(a, &list, own);
    p->count_in = list.count;
    if (!has_plus) p->count_anchor = list.count;
    s->at += 2;
    return p->in != NULL;
}

/* An operand, not an attribute or a program: a type with '[', "w:" or '-'. */
static bool at_operand(const scan *s)
{
    scan ahead = *s;
    const char *name;
    size_t length;
    if (scan_char(&ahead, '-')) return true;
    if (!scan_name(&ahead, &name, &length)) return false;
    return scan_char(&ahead, '[') || scan_char(&ahead, ':');
}

static bool parse_outputs(arena *a, scan *s, problem *p, const char **why)
{
    problem_operand own[OPERANDS_OWN];
    operand_list list = { .at = own, .capacity = OPERANDS_OWN };
    for (;;) {
        scan ahead = *s;
        scan_space(&ahead);
        if (!at_operand(&ahead)) break;
        *s = ahead;
        if (!push_operand(a, s, &list, why)) return false;
    }
    p->out = keep_operands(a, &list, own);
    p->count_out = list.count;
    return p->out != NULL;
}

static bool parse_program(arena *a, scan *s, const char *word, const expr **out, const char **why)
{
    scan ahead = *s;
    char *body;
    scan_space(&ahead);
    if (!scan_word(&ahead, word) || !scan_char(&ahead, '=')) return true;
    *why = "a program wants quotes";
    if (!scan_quoted(&ahead, a, &body)) return false;
    scan inner = scan_of(body, strlen(body));
    expr *x;
    if (!expr_parse(a, &inner, &x, why)) return false;
    *why = "a program is followed by something else";
    if (inner.at != inner.end) return false;
    *s = ahead;
    *out = x;
    return true;
}

/* The loads of a program name the types of the operands; what a program stores has the type of the result. */
static const char *check_operands(const problem *p, const expr *x, bool is_epilogue)
{
    for (uint32_t i = 0; i < x->count; i++) {
        const expr_instr *n = &x->at[i];
        if (n->op == EXPR_LOAD && p->in[n->operand].dtype != (sinter_dtype)n->dtype)
            return "a program loads an operand as another type";
        const bool is_root = n->op == EXPR_STORE || n->op == EXPR_REDUCE;
        if (is_epilogue && is_root && p->out[n->operand].dtype != (sinter_dtype)n->dtype)
            return "a program stores another type";
    }
    return NULL;
}

/* Kernels multiply sizes and the attributes of sliding windows: whatever was written, such products fit. Strides of an
 * operand that is always empty are products of its other sizes, which no results are made of. */
static const int64_t elements_most = (int64_t)1 << 50, empty_most = (int64_t)1 << 56, slide_most = INT32_MAX;

void problem_operand_calm(problem_operand *o)
{
    for (;;) {
        double usual = 1;
        uint32_t most = o->rank;
        for (uint32_t i = 0; i < o->rank; i++) {
            const dim_range d = o->dim[i];
            usual *= d.opt > 0 ? (double)d.opt : 1;
            if (d.opt > d.min && d.opt > 1 && (most == o->rank || d.opt > o->dim[most].opt)) most = i;
        }
        if (usual <= (double)elements_most / 1024 || most == o->rank) return;
        dim_range *d = &o->dim[most];
        const int64_t half = d->divisor > 1 ? d->opt / 2 / d->divisor * d->divisor : d->opt / 2;
        d->opt = half < d->min ? d->min : half;
    }
}

/* a is `times` b. False: no value of `a` is that. */
static bool unify(dim_range *a, dim_range *b, int64_t times)
{
    if (times != 1) {
        int64_t least = 0, most = 0;
        if (!i64_mul(b->min, times, &least)) return false;
        if (!i64_mul(b->max, times, &most)) most = INT64_MAX;
        if (least > a->max || most < a->min) return false;
        if (b->min == b->max) *a = (dim_range){ most, most, most, most };
        return true;
    }
    const int64_t min = a->min > b->min ? a->min : b->min, max = a->max < b->max ? a->max : b->max;
    if (min > max) return false;
    if (a->min == b->min && a->max == b->max) return true;
    dim_range both = a->max - a->min < b->max - b->min ? *a : *b; /* its opt says more */
    both.min = min;
    both.max = max;
    if (both.opt < min) both.opt = min;
    if (both.opt > max) both.opt = max;
    if (min == max) both.divisor = max;
    *a = *b = both;
    return true;
}

static bool unify_anchor(problem *p)
{
    problem_operand *x = p->in, *w = p->in + 1;
    switch (p->op) {
    case OP_matmul:
    case OP_matmul_integer: {
        const attrs_matmul *m = p->op == OP_matmul ? p->attrs : NULL;
        const uint32_t tx = m && m->trans_a && x->rank > 1, tw = m && m->trans_b && w->rank > 1;
        return !x->rank || !w->rank || unify(&x->dim[x->rank - 1 - tx], &w->dim[w->rank > 1 ? w->rank - 2 + tw : 0], 1);
    }
    case OP_conv: return unify(&x->dim[1], &w->dim[1], ((const attrs_conv *)p->attrs)->groups);
    case OP_conv_integer: return unify(&x->dim[1], &w->dim[1], ((const attrs_conv_integer *)p->attrs)->groups);
    case OP_conv_transpose: return unify(&x->dim[1], &w->dim[0], 1);
    case OP_lstm:
    case OP_gru:
    case OP_rnn: return unify(&x->dim[2], &w->dim[2], 1);
    default: return true;
    }
}

void problem_unify(problem *p)
{
    if (p->count_anchor < 2 || unify_anchor(p)) return;
    for (uint32_t i = 0; i < p->count_anchor; i++) p->in[i].is_const = false;
}

static const char *check_operand_size(const problem_operand *o)
{
    int64_t fixed = 1, usual = 1;
    bool is_empty = false;
    for (uint32_t i = 0; i < o->rank; i++) {
        const dim_range d = o->dim[i];
        const int64_t size = d.min == d.max && d.max > 0 ? d.max : 1, opt = d.opt > 0 ? d.opt : 1;
        is_empty = is_empty || d.max == 0;
        if (!i64_mul(fixed, size, &fixed)) fixed = INT64_MAX;
        if (!i64_mul(usual, opt, &usual)) usual = INT64_MAX;
    }
    if (fixed <= elements_most && usual <= elements_most) return NULL;
    if (!is_empty) return "an operand has more elements than 2^50";
    return fixed <= empty_most && usual <= empty_most
               ? NULL
               : "the sizes of an empty operand, its axes of size 0 aside, multiply to more than 2^56";
}

const char *problem_check_sizes(const problem *p)
{
    const op_info *row = op_at(p->op);
    const char *why = NULL;
    for (uint32_t i = 0; i < p->count_in + p->count_out && !why; i++)
        why = check_operand_size(i < p->count_in ? &p->in[i] : &p->out[i - p->count_in]);
    for (const attr_info *a = row->attr; row->traits & CONTRACTION && a->name && !why; a++) {
        if (a->kind != ATTR_INTS) continue;
        const attr_ints *list = (const attr_ints *)(const void *)((const char *)p->attrs + a->at);
        for (uint32_t k = 0; k < list->count; k++)
            if (list->at[k] > slide_most || list->at[k] < -slide_most) why = "an attribute passes 2147483647";
    }
    return why;
}

/* All that a packed weight is made of is known while building. */
static const char *check_weight(const problem *p)
{
    if (!(op_at(p->op)->traits & EXPANDS_WEIGHT) || p->count_anchor < 2) return "the op takes no packed weight";
    const char *why = expr_check_weight(p->weight, p->count_in);
    if (!why) why = check_operands(p, p->weight, false);
    for (uint32_t i = 0; i < p->weight->count && !why; i++) {
        const expr_instr *n = &p->weight->at[i];
        if (n->op != EXPR_LOAD) continue;
        const problem_operand *o = &p->in[n->operand];
        if (!o->is_const) why = "a packed weight is made of something that is no constant";
        else if (n->operand != 1 && n->operand < p->count_anchor) why = "a packed weight is made of another input";
        for (uint32_t k = 0; k < o->rank && !why; k++)
            if (!problem_dim_is_static(o->dim[k])) why = "a packed weight has a size that is not known";
    }
    return why;
}

static const char *check(const problem *p)
{
    const char *why = problem_check_sizes(p);
    if (why) return why;
    const op_info *row = op_at(p->op);
    const bool is_pointwise = p->op == OP_pointwise;
    if (is_pointwise && !p->epilogue) return "pointwise wants a program";
    if (!is_pointwise && (p->count_anchor < row->in_min || p->count_anchor > row->in_max))
        return "the op takes another number of inputs";
    if (!p->epilogue && (p->count_out < row->out_min || p->count_out > row->out_max))
        return "the op has another number of outputs";
    if (p->prologue) {
        why = p->count_anchor ? expr_check(p->prologue, p->count_in, 1, false) : "a prologue without an input";
        if (!why) why = check_operands(p, p->prologue, false);
        if (why) return why;
    }
    if (p->weight && (why = check_weight(p))) return why;
    if (!p->epilogue) return NULL;
    why = expr_check(p->epilogue, p->count_in, p->count_out, !is_pointwise);
    return why ? why : check_operands(p, p->epilogue, true);
}

bool problem_parse(arena *a, scan *s, problem **out, const char **why)
{
    scan own = *s;
    const char *name;
    size_t length;
    problem *p = ARENA_NEW(a, problem, 1);
    void *attrs = NULL;
    *why = "out of memory";
    if (!p) return false;
    *why = "a problem begins with the name of an op and ':'";
    if (!scan_name(&own, &name, &length) || !op_parse(name, length, &p->op) || !scan_char(&own, ':')) return false;
    if (!parse_inputs(a, &own, p, why) || !parse_outputs(a, &own, p, why)) return false;
    attrs = op_attrs_new(a, p->op);
    *why = "out of memory";
    if (!attrs || !op_attrs_parse(p->op, attrs, a, NULL, &own, why)) return false;
    p->attrs = attrs;
    if (!parse_program(a, &own, "pro", &p->prologue, why) || !parse_program(a, &own, "weight", &p->weight, why) ||
        !parse_program(a, &own, "epi", &p->epilogue, why))
        return false;
    const char *wrong = check(p);
    if (wrong) {
        *why = wrong;
        return false;
    }
    problem_resolve(a, p);
    *s = own;
    *out = p;
    return true;
}
