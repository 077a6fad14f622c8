/* SPDX-License-Identifier: Apache-2.0 */
/* graph_grow_sizes.c - integers that a graph computes from the values of small inputs.
 *
 * The numbers that are wanted are known for each environment. So the arithmetic is grown from its end: an operator is
 * chosen, then operands that give the numbers, and so on to inputs and constants. */
#include "graph_ops.h"

enum { NUMBERS = 16, INPUTS_MOST = G_IO * 3 / 4 };

typedef struct sizer {
    grow *g;
    uint32_t left; /* operators that may still be added */
} sizer;

typedef struct numbers {
    gsize at[NUMBERS];
} numbers;

static uint32_t work_out(sizer *s, const numbers *n, uint32_t count);

/* ---- parts ---- */

static uint32_t unary(grow *g, const char *op, uint32_t x)
{
    return x == G_NONE ? G_NONE : grow_1(g, op, x);
}

static uint32_t binary(grow *g, const char *op, uint32_t x, uint32_t y)
{
    return x == G_NONE || y == G_NONE ? G_NONE : grow_2(g, op, x, y);
}

/* Numbers that arithmetic could carry out of range: Slice's ends, for one, may be the largest there are. */
static bool are_far(const numbers *n, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < G_ENVS; k++)
            if (n->at[i].at[k] > INT32_MAX || n->at[i].at[k] < INT32_MIN) return true;
    return false;
}

static bool are_const(const grow *g, const numbers *n, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!gsize_is_const(g, n->at[i])) return false;
    return true;
}

static uint32_t constant(grow *g, const numbers *n, uint32_t count)
{
    int64_t at[NUMBERS];
    for (uint32_t i = 0; i < count; i++) at[i] = n->at[i].at[0];
    return grow_const_ints(g, at, count);
}

static uint32_t axis_list(grow *g, int64_t axis)
{
    return grow_const_ints(g, &axis, 1);
}

/* Numbers between low and high: one for all environments, or one for each. */
static numbers some(grow *g, uint32_t count, int64_t low, int64_t high)
{
    numbers n = { { { { 0 } } } };
    const bool varies = grow_one_in(g, 2);
    for (uint32_t i = 0; i < count; i++) {
        n.at[i] = gsize_of(grow_between(g, low, high));
        for (uint32_t k = 0; k < G_ENVS && varies; k++) n.at[i].at[k] = grow_between(g, low, high);
    }
    return n;
}

static uint32_t leaf(grow *g, const numbers *n, uint32_t count)
{
    static const sinter_dtype types[] = { SINTER_DTYPE_I64, SINTER_DTYPE_I64, SINTER_DTYPE_I64, SINTER_DTYPE_I32,
                                          SINTER_DTYPE_I32, SINTER_DTYPE_I16, SINTER_DTYPE_I8 };
    const bool is_full = g->m->scope.at[0].param.count >= INPUTS_MOST;
    if (are_const(g, n, count) && (is_full || grow_one_in(g, 3))) return constant(g, n, count);
    if (is_full) return G_NONE;
    sinter_dtype type = types[grow_below(g, 7)];
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < G_ENVS; k++)
            if (n->at[i].at[k] < -128 || n->at[i].at[k] > 127) type = SINTER_DTYPE_I64;
    const bool is_scalar = count == 1 && grow_one_in(g, 2);
    uint32_t v = grow_input_ints(g, type, n->at, count, is_scalar);
    v = grow_cast(g, v, SINTER_DTYPE_I64);
    if (!is_scalar) return v;
    return grow_one_in(g, 2) ? binary(g, "Unsqueeze", v, axis_list(g, 0)) : binary(g, "Reshape", v, axis_list(g, -1));
}

/* ---- operators ---- */

static uint32_t sum(sizer *s, const numbers *n, uint32_t count)
{
    numbers a = *n, b = some(s->g, count, -3, 5);
    const bool is_sub = grow_one_in(s->g, 2);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < G_ENVS; k++) a.at[i].at[k] += is_sub ? b.at[i].at[k] : -b.at[i].at[k];
    const uint32_t x = work_out(s, &a, count), y = work_out(s, &b, count);
    return is_sub || grow_one_in(s->g, 2) ? binary(s->g, is_sub ? "Sub" : "Add", x, y) : binary(s->g, "Add", y, x);
}

static uint32_t product(sizer *s, const numbers *n, uint32_t count)
{
    numbers a = *n, b = *n;
    for (uint32_t i = 0; i < count; i++) {
        int64_t by = grow_between(s->g, 2, 4);
        for (uint32_t k = 0; k < G_ENVS; k++) by = n->at[i].at[k] % by ? 1 : by;
        b.at[i] = gsize_of(by);
        for (uint32_t k = 0; k < G_ENVS; k++) a.at[i].at[k] /= by;
    }
    const uint32_t x = work_out(s, &a, count), y = work_out(s, &b, count);
    return grow_one_in(s->g, 2) ? binary(s->g, "Mul", x, y) : binary(s->g, "Mul", y, x);
}

/* Division cuts off the rest, on the integers or, rounded down, on floats; Mod leaves it. */
static uint32_t quotient(sizer *s, const numbers *n, uint32_t count)
{
    grow *g = s->g;
    numbers a = *n, b = some(g, count, 1, 4);
    const bool is_rest = grow_one_in(g, 3), is_real = !is_rest && !g->m->allow && grow_one_in(g, 3);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < G_ENVS; k++) {
            const int64_t x = n->at[i].at[k];
            int64_t *by = &b.at[i].at[k];
            if (is_rest && x < 0) return G_NONE;
            if (is_rest) *by += x;
            a.at[i].at[k] =
                is_rest ? x + *by * grow_between(g, 0, 2) : x * *by + (x < 0 ? 0 : grow_between(g, 0, *by - 1));
        }
    const uint32_t x = work_out(s, &a, count), y = work_out(s, &b, count);
    if (!is_real) return binary(g, is_rest ? "Mod" : "Div", x, y);
    const uint32_t real = binary(g, "Div", grow_cast(g, x, SINTER_DTYPE_F32), grow_cast(g, y, SINTER_DTYPE_F32));
    return grow_cast(g, unary(g, "Floor", real), SINTER_DTYPE_I64);
}

static uint32_t extreme(sizer *s, const numbers *n, uint32_t count)
{
    numbers a = *n, b = some(s->g, count, 0, 4);
    const bool is_max = grow_one_in(s->g, 2);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < G_ENVS; k++) {
            const int64_t other = n->at[i].at[k] + (is_max ? -b.at[i].at[k] : b.at[i].at[k]);
            b.at[i].at[k] = grow_one_in(s->g, 2) ? other : n->at[i].at[k];
            if (b.at[i].at[k] == n->at[i].at[k]) a.at[i].at[k] = other;
        }
    const uint32_t x = work_out(s, &a, count), y = work_out(s, &b, count);
    return binary(s->g, is_max ? "Max" : "Min", x, y);
}

/* A condition that holds where `yes` is 1. */
static uint32_t condition(sizer *s, const numbers *yes, uint32_t count)
{
    grow *g = s->g;
    numbers a = some(g, count, 0, 6), b = *yes;
    const uint32_t way = grow_below(g, 4);
    if (way == 3) return grow_cast(g, work_out(s, yes, count), SINTER_DTYPE_BOOL);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < G_ENVS; k++) {
            const bool is = yes->at[i].at[k];
            const int64_t x = a.at[i].at[k], gap = grow_between(g, 0, 2);
            b.at[i].at[k] = way == 0   ? (is ? x - 1 - gap : x + gap)
                            : way == 1 ? (is ? x + 1 + gap : x - gap)
                                       : (is ? x : x + 1 + gap);
        }
    const uint32_t x = work_out(s, &a, count), y = work_out(s, &b, count);
    return binary(g, way == 0 ? "Greater" : way == 1 ? "Less" : "Equal", x, y);
}

static uint32_t choice(sizer *s, const numbers *n, uint32_t count)
{
    numbers yes = some(s->g, count, 0, 1), a = some(s->g, count, -2, 7), b = a;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < G_ENVS; k++) *(yes.at[i].at[k] ? &a.at[i].at[k] : &b.at[i].at[k]) = n->at[i].at[k];
    const uint32_t c = condition(s, &yes, count), x = work_out(s, &a, count), y = work_out(s, &b, count);
    return c == G_NONE || x == G_NONE || y == G_NONE ? G_NONE : grow_3(s->g, "Where", c, x, y);
}

static uint32_t joined(sizer *s, const numbers *n, uint32_t count)
{
    if (count < 2) return G_NONE;
    const uint32_t first = (uint32_t)grow_between(s->g, 1, count - 1);
    numbers rest = *n;
    for (uint32_t i = first; i < count; i++) rest.at[i - first] = n->at[i];
    const uint32_t x = work_out(s, n, first), y = work_out(s, &rest, count - first);
    if (x == G_NONE || y == G_NONE) return G_NONE;
    const uint32_t node = grow_begin(s->g, "Concat");
    grow_in(s->g, node, x);
    grow_in(s->g, node, y);
    grow_int(s->g, node, "axis", 0);
    return grow_end(s->g, node, 1);
}

/* A part of a longer list, perhaps each second of it, perhaps in the reverse order. */
static uint32_t part(sizer *s, const numbers *n, uint32_t count)
{
    grow *g = s->g;
    const int64_t step = grow_one_in(g, 3) ? 2 : 1, before = grow_between(g, 0, 2), after = grow_between(g, 0, 2),
                  last = before + step * (count - 1), whole = last + 1 + after;
    const bool is_reversed = grow_one_in(g, 4);
    if (whole > NUMBERS) return G_NONE;
    numbers all = some(g, (uint32_t)whole, -2, 7);
    for (uint32_t i = 0; i < count; i++) all.at[before + step * i] = n->at[is_reversed ? count - 1 - i : i];
    const uint32_t x = work_out(s, &all, (uint32_t)whole);
    if (x == G_NONE) return G_NONE;
    const uint32_t node = grow_begin(g, "Slice");
    grow_in(g, node, x);
    grow_in(g, node, axis_list(g, is_reversed ? last : before));
    grow_in(g, node, axis_list(g, !is_reversed ? last + 1 : before ? before - 1 : -whole - 1));
    grow_in(g, node, axis_list(g, 0));
    if (step > 1 || is_reversed) grow_in(g, node, axis_list(g, is_reversed ? -step : step));
    return grow_end(g, node, 1);
}

/* Numbers of a list in another order, which may depend on the environment. */
static uint32_t gathered(sizer *s, const numbers *n, uint32_t count)
{
    grow *g = s->g;
    const uint32_t whole = count + grow_below(g, 3), turns = grow_one_in(g, 3);
    if (whole > NUMBERS) return G_NONE;
    numbers all = some(g, whole, -2, 7), at = all;
    for (uint32_t k = 0; k < G_ENVS; k++) {
        const uint32_t first = turns || !k ? grow_below(g, whole) : (uint32_t)at.at[0].at[0];
        for (uint32_t i = 0; i < count; i++) {
            at.at[i].at[k] = (first + i) % whole;
            all.at[(first + i) % whole].at[k] = n->at[i].at[k];
        }
    }
    const uint32_t x = work_out(s, &all, whole),
                   index = are_const(g, &at, count) ? constant(g, &at, count) : work_out(s, &at, count);
    return binary(g, "Gather", x, index);
}

static uint32_t sign(sizer *s, const numbers *n, uint32_t count)
{
    numbers a = *n;
    const bool is_abs = grow_one_in(s->g, 2);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < G_ENVS; k++) {
            if (is_abs && n->at[i].at[k] < 0) return G_NONE;
            if (!is_abs || grow_one_in(s->g, 2)) a.at[i].at[k] = -n->at[i].at[k];
        }
    return unary(s->g, is_abs ? "Abs" : "Neg", work_out(s, &a, count));
}

static uint32_t through_type(sizer *s, const numbers *n, uint32_t count)
{
    static const sinter_dtype types[] = { SINTER_DTYPE_I32, SINTER_DTYPE_I32, SINTER_DTYPE_I16, SINTER_DTYPE_F32,
                                          SINTER_DTYPE_F64 };
    const sinter_dtype type = types[grow_below(s->g, s->g->m->allow ? 3 : 5)];
    const uint32_t x = work_out(s, n, count);
    return x == G_NONE ? G_NONE : grow_cast(s->g, grow_cast(s->g, x, type), SINTER_DTYPE_I64);
}

/* One number of several. */
static uint32_t folded(sizer *s, const numbers *n, uint32_t count)
{
    static const char *const names[] = { "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd" };
    grow *g = s->g;
    const uint32_t way = grow_below(g, 4), parts = 2 + grow_below(g, 2), place = grow_below(g, parts);
    if (count != 1) return G_NONE;
    numbers all = some(g, parts, 0, 3);
    for (uint32_t k = 0; k < G_ENVS; k++) {
        int64_t *own = &all.at[place].at[k];
        *own = n->at[0].at[k];
        for (uint32_t i = 0; i < parts; i++) {
            int64_t *x = &all.at[i].at[k];
            if (i == place) continue;
            if (way == 0) *own -= *x;
            else if (way == 3) *x = 1;
            else *x = way == 1 ? n->at[0].at[k] - *x : n->at[0].at[k] + *x;
        }
    }
    const uint32_t x = work_out(s, &all, parts);
    if (x == G_NONE) return G_NONE;
    const uint32_t node = grow_begin(g, names[way]);
    grow_in(g, node, x);
    grow_int(g, node, "keepdims", 1);
    return grow_end(g, node, 1);
}

/* A number beside a size of a tensor. */
static uint32_t beside_shape(sizer *s, const numbers *n, uint32_t count)
{
    grow *g = s->g;
    const uint32_t v = grow_find(g, T_ALL, count, SINTER_RANK_MAX);
    if (v == G_NONE) return G_NONE;
    const uint32_t first = grow_below(g, grow_rank(g, v) - count + 1), shape = grow_1(g, "Shape", v);
    numbers a = *n;
    int64_t at[NUMBERS];
    for (uint32_t i = 0; i < count; i++) {
        const gsize d = grow_dim(g, v, first + i);
        at[i] = first + i;
        for (uint32_t k = 0; k < G_ENVS; k++) a.at[i].at[k] -= d.at[k];
    }
    const uint32_t sizes = binary(g, "Gather", shape, grow_const_ints(g, at, count)), rest = work_out(s, &a, count);
    return binary(g, "Add", sizes, rest);
}

/* Each branch of an If has other numbers. */
static uint32_t branched(sizer *s, const numbers *n, uint32_t count)
{
    grow *g = s->g;
    if (g->depth > 1) return G_NONE;
    numbers yes = some(g, 1, 0, 1), a = some(g, count, -2, 7), b = a;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < G_ENVS; k++) *(yes.at[0].at[k] ? &a.at[i].at[k] : &b.at[i].at[k]) = n->at[i].at[k];
    uint32_t when = condition(s, &yes, 1), branch[2];
    if (when != G_NONE && grow_one_in(g, 2)) when = unary(g, "Squeeze", when);
    if (when == G_NONE) return G_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        const opened o = grow_open(g);
        const bool is_fine = grow_result(g, work_out(s, i ? &b : &a, count));
        branch[i] = grow_close(g, o);
        if (!is_fine) return G_NONE;
    }
    const uint32_t node = grow_begin(g, "If");
    grow_in(g, node, when);
    gnode_attr(&g->m->node.at[node], "then_branch", GA_GRAPH)->i = branch[0];
    gnode_attr(&g->m->node.at[node], "else_branch", GA_GRAPH)->i = branch[1];
    return grow_end(g, node, 1);
}

static uint32_t work_out(sizer *s, const numbers *n, uint32_t count)
{
    static uint32_t (*const ways[])(sizer *, const numbers *, uint32_t) = {
        sum,    sum,  product,  product,      quotient, quotient,     extreme,  choice, joined,
        joined, part, gathered, through_type, sign,     beside_shape, branched, folded, folded,
    };
    if (s->g->is_refused) return G_NONE;
    if (s->left && grow_below(s->g, 6) && !are_far(n, count)) {
        s->left--;
        const uint32_t made = ways[grow_below(s->g, sizeof ways / sizeof *ways)](s, n, count);
        if (made != G_NONE || s->g->is_refused) return made;
    }
    return leaf(s->g, n, count);
}

uint32_t grow_computed(grow *g, const gsize *at, uint32_t count, bool is_scalar)
{
    numbers n = { { { { 0 } } } };
    sizer s = { g, 1 + grow_below(g, 6) };
    if (!count || count > NUMBERS / 2 || g->keeps_opset) return G_NONE;
    for (uint32_t i = 0; i < count; i++) n.at[i] = at[i];
    const uint32_t made = work_out(&s, &n, count);
    return !is_scalar || made == G_NONE ? made : unary(g, "Squeeze", made);
}
