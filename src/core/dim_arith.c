/* SPDX-License-Identifier: Apache-2.0 */
/* dim_arith.c - sums, products, divisions and the like of dimension expressions.
 *
 * Operands become polynomials, the result becomes an id again. What has no polynomial is an atom: of a division only
 * what cannot be taken out of it. Ranges decide where a division, minimum or maximum is none. */
#include "core/dim_poly.h"
#include "core/dim_range.h"

static dim add_scaled(dim_table *t, dim a, dim b, const dim_term *scale)
{
    if (!dim_is_usable(t, a, b)) return DIM_NONE;
    dim_poly p, q;
    dim_poly_of(t, a, &p);
    dim_poly_of(t, b, &q);
    if (dim_poly_add_scaled(&p, &q, scale)) return dim_lower(t, &p);
    if (scale == &dim_term_minus) b = dim_mul(t, dim_const(t, -1), b);
    return b ? dim_atom(t, DIM_ADD, (dim)i64_min(a, b), (dim)i64_max(a, b)) : DIM_NONE;
}

dim dim_add(dim_table *t, dim a, dim b)
{
    return add_scaled(t, a, b, &dim_term_one);
}

dim dim_sub(dim_table *t, dim a, dim b)
{
    return add_scaled(t, a, b, &dim_term_minus);
}

dim dim_mul(dim_table *t, dim a, dim b)
{
    if (!dim_is_usable(t, a, b)) return DIM_NONE;
    dim_poly p, q, product = { 0 };
    dim_poly_of(t, a, &p);
    dim_poly_of(t, b, &q);
    /* Each term of one factor would repeat the other: what is heavy stays one factor, or weights would multiply. */
    bool is_small = (q.count < 2 || dim_is_light(t, a)) && (p.count < 2 || dim_is_light(t, b));
    for (uint32_t i = 0; i < q.count && is_small; i++) is_small = dim_poly_add_scaled(&product, &p, &q.at[i]);
    if (is_small) return dim_lower(t, &product);
    return dim_atom(t, DIM_MUL, (dim)i64_min(a, b), (dim)i64_max(a, b));
}

/* a = b * whole + rest, for a divisor that is one term: what of `a` is a multiple of b, term by term. */
static bool split(const dim_poly *a, const dim_poly *b, dim_poly *whole, dim_poly *rest)
{
    whole->count = 0;
    *rest = *a;
    if (b->count != 1) return true;
    for (uint32_t i = 0; i < a->count; i++) {
        dim_term q, back;
        if (!dim_term_div(&a->at[i], &b->at[0], true, &q) || q.coefficient == 0) continue;
        if (!dim_poly_add_term(whole, &q) || !dim_term_mul(&q, &dim_term_minus, &back)) return false;
        if (!dim_poly_add_scaled(rest, b, &back)) return false;
    }
    return true;
}

/* The largest constant that divides the divisor c and every coefficient of p. */
static int64_t common_divisor(const dim_poly *p, int64_t c)
{
    for (uint32_t i = 0; i < p->count; i++) c = i64_gcd(c, p->at[i].coefficient);
    return c;
}

/* x + 0 where p has the term floordiv(x, d) with a positive constant d and coefficient 1; false where it has none. */
static bool find_inner_division(const dim_table *t, const dim_poly *p, uint32_t *at, dim *x, int64_t *d)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->at[i].degree != 1 || p->at[i].coefficient != 1) continue;
        const dim_node *n = dim_at(t, p->at[i].atom[0]);
        if (n->kind != DIM_FLOORDIV || dim_at(t, n->b)->kind != DIM_CONST || dim_at(t, n->b)->value <= 0) continue;
        *at = i;
        *x = n->a;
        *d = dim_at(t, n->b)->value;
        return true;
    }
    return false;
}

/* floordiv of `rest`, whose multiples of the constant c > 0 were taken out, by c. */
static dim floordiv_const(dim_table *t, dim_poly *rest, int64_t c)
{
    const int64_t g = common_divisor(rest, c);
    for (uint32_t i = 0; i < rest->count; i++) rest->at[i].coefficient /= g;
    c /= g;
    if (c == 1) return dim_lower(t, rest);
    const dim_range r = dim_poly_range(t, rest);
    if (r.min >= 0 && r.max < c) return dim_const(t, 0);
    uint32_t at;
    dim inner;
    int64_t d, cd;
    /* floor((floor(x / d) + k) / c) = floor((x + d k) / (c d)) for any integer k. */
    if (find_inner_division(t, rest, &at, &inner, &d) && i64_mul(c, d, &cd)) {
        dim_poly sum;
        dim_term minus = rest->at[at];
        minus.coefficient = -1;
        dim_poly k = *rest;
        dim_poly_of(t, inner, &sum);
        if (dim_poly_add_term(&k, &minus) && dim_poly_add_scaled(&sum, &k, &(dim_term){ .coefficient = d })) {
            return dim_floordiv(t, dim_lower(t, &sum), dim_const(t, cd));
        }
    }
    const dim x = dim_lower(t, rest), by = dim_const(t, c);
    return x && by ? dim_atom(t, DIM_FLOORDIV, x, by) : DIM_NONE;
}

dim dim_floordiv(dim_table *t, dim a, dim b)
{
    if (!dim_is_usable(t, a, b)) return DIM_NONE;
    dim_poly p, q, whole, rest;
    int64_t c;
    dim_poly_of(t, a, &p);
    dim_poly_of(t, b, &q);
    const bool is_const = dim_poly_is_const(&q, &c);
    if (is_const && c == 0) return dim_atom(t, DIM_FLOORDIV, a, b);
    if (is_const && c < 0 && c != INT64_MIN) {
        const dim minus = dim_const(t, -1);
        return dim_floordiv(t, dim_mul(t, a, minus), dim_const(t, -c));
    }
    if (dim_poly_divide(&p, &q, &whole)) return dim_lower(t, &whole);
    if (!split(&p, &q, &whole, &rest) || (is_const && c < 0)) return dim_atom(t, DIM_FLOORDIV, a, b);
    dim remaining;
    if (is_const) {
        remaining = floordiv_const(t, &rest, c);
    } else {
        const dim_range r = dim_poly_range(t, &rest), by = dim_range_of(t, b);
        const bool is_below = r.min >= 0 && r.max != INT64_MAX && r.max < by.min;
        remaining = is_below ? dim_const(t, 0) : dim_atom(t, DIM_FLOORDIV, dim_lower(t, &rest), b);
    }
    return dim_add(t, dim_lower(t, &whole), remaining);
}

dim dim_ceildiv(dim_table *t, dim a, dim b)
{
    if (!dim_is_usable(t, a, b)) return DIM_NONE;
    dim_poly p, q, whole, rest;
    int64_t c;
    dim_poly_of(t, a, &p);
    dim_poly_of(t, b, &q);
    if (dim_poly_is_const(&q, &c)) {
        if (c == 0 || c == INT64_MIN) return dim_atom(t, DIM_CEILDIV, a, b);
        if (c < 0) return dim_ceildiv(t, dim_mul(t, a, dim_const(t, -1)), dim_const(t, -c));
        /* One form for both: where nothing is lost the division alone, else floordiv(a + c - 1, c). */
        if (dim_poly_range(t, &p).divisor % c == 0) return dim_floordiv(t, a, b);
        return dim_floordiv(t, dim_add(t, a, dim_const(t, c - 1)), b);
    }
    if (dim_poly_divide(&p, &q, &whole)) return dim_lower(t, &whole);
    if (!split(&p, &q, &whole, &rest)) return dim_atom(t, DIM_CEILDIV, a, b);
    const dim low = dim_lower(t, &rest);
    return low ? dim_add(t, dim_lower(t, &whole), dim_atom(t, DIM_CEILDIV, low, b)) : DIM_NONE;
}

dim dim_mod(dim_table *t, dim a, dim b)
{
    if (!dim_is_usable(t, a, b)) return DIM_NONE;
    dim_poly p, q, whole, rest;
    int64_t c;
    dim_poly_of(t, a, &p);
    dim_poly_of(t, b, &q);
    const bool is_const = dim_poly_is_const(&q, &c);
    if (is_const && (c == 0 || c == INT64_MIN)) return dim_atom(t, DIM_MOD, a, b);
    if (is_const && c < 0) {
        const dim minus = dim_const(t, -1);
        return dim_mul(t, minus, dim_mod(t, dim_mul(t, a, minus), dim_const(t, -c)));
    }
    if (dim_poly_divide(&p, &q, &whole)) return dim_const(t, 0);
    if (!split(&p, &q, &whole, &rest)) return dim_atom(t, DIM_MOD, a, b);
    const dim_range r = dim_poly_range(t, &rest);
    if (!is_const) {
        const bool is_below = r.min >= 0 && r.max != INT64_MAX && r.max < dim_range_of(t, b).min;
        const dim x = dim_lower(t, &rest);
        return is_below || !x ? x : dim_atom(t, DIM_MOD, x, b);
    }
    if (r.divisor % c == 0) return dim_const(t, 0);
    if (r.min >= 0 && r.max < c) return dim_lower(t, &rest);
    const int64_t g = common_divisor(&rest, c); /* mod(g x, g c) = g mod(x, c) */
    for (uint32_t i = 0; i < rest.count; i++) rest.at[i].coefficient /= g;
    const dim x = dim_lower(t, &rest), by = dim_const(t, c / g);
    return x && by ? dim_mul(t, dim_const(t, g), dim_atom(t, DIM_MOD, x, by)) : DIM_NONE;
}

static dim pick(dim_table *t, dim_kind kind, dim a, dim b)
{
    if (!dim_is_usable(t, a, b)) return DIM_NONE;
    if (a == b) return a;
    dim_poly p, q;
    dim_poly_of(t, a, &p);
    dim_poly_of(t, b, &q);
    if (dim_poly_add_scaled(&p, &q, &dim_term_minus)) {
        const dim_range r = dim_poly_range(t, &p);
        if (r.min >= 0) return kind == DIM_MAX ? a : b;
        if (r.max <= 0) return kind == DIM_MAX ? b : a;
    }
    const dim_node *m = dim_at(t, a), *n = dim_at(t, b);
    if (m->kind == (uint32_t)kind && (m->a == b || m->b == b)) return a;
    if (n->kind == (uint32_t)kind && (n->a == a || n->b == a)) return b;
    /* max(a, min(a, x)) absorbs to a, and the other way round: a table of positions cut at S and broadcast against S.
     */
    const uint32_t dual = kind == DIM_MAX ? DIM_MIN : DIM_MAX;
    if (n->kind == dual && (n->a == a || n->b == a)) return a;
    if (m->kind == dual && (m->a == b || m->b == b)) return b;
    return dim_atom(t, kind, (dim)i64_min(a, b), (dim)i64_max(a, b));
}

dim dim_min(dim_table *t, dim a, dim b)
{
    return pick(t, DIM_MIN, a, b);
}

dim dim_max(dim_table *t, dim a, dim b)
{
    return pick(t, DIM_MAX, a, b);
}

/* ---- broadcasts ---- */

enum { BROADCAST_MOST = 64 };
typedef struct dim_list {
    uint32_t count;
    dim at[BROADCAST_MOST + 1];
} dim_list;

/* The operands of a chain of broadcasts, ascending; an expression of another kind is its own only operand. */
static void operands_of(const dim_table *t, dim d, dim_list *out)
{
    uint32_t count = 1;
    for (dim x = d; dim_at(t, x)->kind == DIM_BROADCAST && count < BROADCAST_MOST; x = dim_at(t, x)->a) count++;
    out->count = count;
    for (; count > 1; d = dim_at(t, d)->a) out->at[--count] = dim_at(t, d)->b;
    out->at[0] = d;
}

/* Is broadcast(a, b) = a for all values? So where b <= a and not a alone can be 1, and of a table of positions that is
 * cut at a. */
static bool absorbs(dim_table *t, dim a, dim b)
{
    if (a == b || dim_is(t, b, 1)) return true;
    const dim_node *n = dim_at(t, b);
    if (n->kind == DIM_MIN && (n->a == a || n->b == a) && dim_range_of(t, n->a == a ? n->b : n->a).min >= 1)
        return true;
    dim_poly p, q;
    const dim_range r = dim_range_of(t, a);
    if (r.min <= 1 && r.max >= 1 && dim_range_of(t, b).min < 1) return false;
    dim_poly_of(t, a, &p);
    dim_poly_of(t, b, &q);
    return dim_poly_add_scaled(&p, &q, &dim_term_minus) && dim_poly_range(t, &p).min >= 0;
}

/* Adds one operand to a list; false where there is no room. */
static bool list_add(dim_table *t, dim_list *list, dim d)
{
    uint32_t kept = 0, at = 0;
    for (uint32_t i = 0; i < list->count; i++)
        if (absorbs(t, list->at[i], d)) return true;
    for (uint32_t i = 0; i < list->count; i++)
        if (!absorbs(t, d, list->at[i])) list->at[kept++] = list->at[i];
    if (kept > BROADCAST_MOST - 1) return false;
    for (at = kept; at > 0 && list->at[at - 1] > d; at--) list->at[at] = list->at[at - 1];
    list->at[at] = d;
    list->count = kept + 1;
    return true;
}

dim dim_broadcast(dim_table *t, dim a, dim b)
{
    if (!dim_is_usable(t, a, b)) return DIM_NONE;
    int64_t x, y;
    if (dim_is_const(t, a, &x) && dim_is_const(t, b, &y)) return dim_const(t, i64_broadcast(x, y));
    dim_list list, more;
    operands_of(t, a, &list);
    operands_of(t, b, &more);
    for (uint32_t i = 0; i < more.count; i++)
        if (!list_add(t, &list, more.at[i])) return dim_atom(t, DIM_BROADCAST, (dim)i64_min(a, b), (dim)i64_max(a, b));
    dim d = list.at[0];
    for (uint32_t i = 1; i < list.count && d; i++) d = dim_atom(t, DIM_BROADCAST, d, list.at[i]);
    return d;
}

dim dim_product(dim_table *t, const dim *d, uint32_t count)
{
    dim product = dim_const(t, 1);
    for (uint32_t i = 0; i < count; i++) product = dim_mul(t, product, d[i]);
    return product;
}

bool dim_divide_exact(dim_table *t, dim a, dim b, dim *out)
{
    if (!dim_is_usable(t, a, b)) return false;
    dim_poly p, q, quotient;
    dim_poly_of(t, a, &p);
    dim_poly_of(t, b, &q);
    if (!dim_poly_divide(&p, &q, &quotient)) return false;
    *out = dim_lower(t, &quotient);
    return *out != DIM_NONE;
}

/* ---- symbols ---- */

bool dim_mentions(const dim_table *t, dim d, uint32_t symbol)
{
    const dim_node *n = dim_at(t, d);
    if (n->kind == DIM_SYMBOL) return n->value == symbol;
    return n->kind >= DIM_ADD && (dim_mentions(t, n->a, symbol) || dim_mentions(t, n->b, symbol));
}

dim dim_substitute(dim_table *t, dim d, uint32_t symbol, dim by)
{
    const dim_node n = *dim_at(t, d);
    if (!dim_mentions(t, d, symbol)) return d;
    if (n.kind == DIM_SYMBOL) return by;
    const dim a = dim_substitute(t, n.a, symbol, by), b = dim_substitute(t, n.b, symbol, by);
    switch (n.kind) {
    case DIM_ADD: return dim_add(t, a, b);
    case DIM_MUL: return dim_mul(t, a, b);
    case DIM_FLOORDIV: return dim_floordiv(t, a, b);
    case DIM_CEILDIV: return dim_ceildiv(t, a, b);
    case DIM_MOD: return dim_mod(t, a, b);
    case DIM_MIN: return dim_min(t, a, b);
    case DIM_MAX: return dim_max(t, a, b);
    default: return dim_broadcast(t, a, b);
    }
}
