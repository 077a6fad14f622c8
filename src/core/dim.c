/* SPDX-License-Identifier: Apache-2.0 */
/* dim.c - the table of dimension expressions: canonical form, ranges, evaluation. Arithmetic is in dim_arith.c, text in
 * dim_text.c.
 *
 * Every id has a polynomial: a sorted list of terms (coefficient and a sorted monomial of atoms). An atom is a symbol,
 * a division, a minimum and so on, or a sum or product whose polynomial would be too large. Constructors work on
 * polynomials and then lower the result to a chain of binary nodes, each found or made by hash. The chain is a function
 * of the polynomial, so equal polynomials have one id; prefixes of a sum are sums in canonical form themselves and
 * share its terms.
 *
 * Simplification uses ranges. A symbol's range is set when the symbol is made and may only narrow afterwards; what was
 * simplified under the wider range then still holds. Divisors are taken to be nonzero (N*S/S is N).
 *
 * Bounds: 64 terms, degree 8, nesting of 60 atoms, 65536 printed atoms, nodes_max * 4 nodes. Beyond the last three the
 * table fails as it does without memory. */
#include "core/dim_poly.h"
#include "core/dim_range.h"

#include <string.h>

enum { NEST_MAX = 60, WEIGHT_MAX = 1 << 16 };

/* Range and lateness of an id. divisor 0: the constant 0, which everything divides. */
typedef struct fact {
    dim_range range;
    bool is_late;
} fact;

typedef struct form {
    const dim_term *at;
    uint32_t count;
    uint32_t nest, weight;
} form;

/* What dim_range_of may bring up to date although the table is const to its callers. */
typedef struct cache {
    VEC(fact) fact; /* by id */
    dim stale;      /* facts from this id on are to be computed again; DIM_NONE: none */
} cache;

struct dim_table {
    arena *a;
    bool failed;
    VEC(dim_node) node;
    VEC(form) form; /* by id */
    VEC(dim_symbol) symbol;
    VEC(dim) symbol_id; /* id of each symbol */
    dim *slot;          /* ids by hash of the node; a power of two, at most half full */
    uint32_t slot_count;
    dim *name_slot; /* symbols + 1 by hash of the name */
    uint32_t name_count;
    uint32_t late_count; /* symbols that are late */
    cache *cache;
};

static dim fail(dim_table *t)
{
    t->failed = true;
    t->a->failed = true;
    return DIM_NONE;
}

bool dim_is_light(const dim_table *t, dim d)
{
    enum { LIGHT = 256 };
    return t->form.at[d].weight <= LIGHT;
}

static fact fact_of(const dim_table *t, const dim_node *n)
{
    const fact *at = t->cache->fact.at;
    if (n->kind == DIM_CONST) {
        const int64_t v = n->value;
        return (
            fact){ .range = { .min = v, .max = v, .opt = v, .divisor = v == INT64_MIN ? 1 : (int64_t)i64_size(v) } };
    }
    if (n->kind == DIM_SYMBOL) {
        const dim_symbol *s = &t->symbol.at[n->value];
        return (fact){
            .range = { .min = s->min, .max = s->max, .opt = s->opt, .divisor = s->divisor > 0 ? s->divisor : 1 },
            .is_late = s->is_late,
        };
    }
    const dim_range a = at[n->a].range, b = at[n->b].range;
    fact f = { .range = { .divisor = 1 }, .is_late = at[n->a].is_late || at[n->b].is_late };
    f.range = dim_range_apply(n->kind, a, b);
    f.range.opt = i64_max(f.range.min, i64_min(f.range.opt, f.range.max));
    return f;
}

static bool symbol_same(const dim_symbol *a, const dim_symbol *b)
{
    return a->min == b->min && a->max == b->max && a->opt == b->opt && a->divisor == b->divisor &&
           a->is_late == b->is_late;
}

/* Brings all facts up to date where a symbol was set since they were computed. Operands come before their users. */
static void facts_refresh(const dim_table *t)
{
    cache *c = t->cache;
    if (!c->stale) return;
    for (dim d = c->stale; d < c->fact.count; d++) c->fact.at[d] = fact_of(t, &t->node.at[d]);
    c->stale = DIM_NONE;
}

void dim_symbol_set(dim_table *t, uint32_t symbol, const dim_symbol *to)
{
    if (symbol >= t->symbol.count) return;
    dim_symbol *s = &t->symbol.at[symbol];
    if (symbol_same(s, to)) return;
    t->late_count += (uint32_t)to->is_late - (uint32_t)s->is_late;
    const char *name = s->name;
    *s = *to;
    s->name = name;
    const dim d = t->symbol_id.at[symbol];
    if (!t->cache->stale || d < t->cache->stale) t->cache->stale = d;
}

/* ---- polynomials and ids ---- */

bool dim_is_usable(dim_table *t, dim a, dim b)
{
    if (t->failed || !a || !b || a >= t->node.count || b >= t->node.count) return false;
    facts_refresh(t);
    return true;
}

void dim_poly_of(const dim_table *t, dim d, dim_poly *out)
{
    const form *f = &t->form.at[d];
    out->count = f->count;
    if (f->count) memcpy(out->at, f->at, f->count * sizeof(dim_term));
}

dim_range dim_poly_range(const dim_table *t, const dim_poly *p)
{
    dim_range sum = { .divisor = 0 };
    for (uint32_t i = 0; i < p->count; i++) {
        const int64_t c = p->at[i].coefficient;
        dim_range r = { .min = c, .max = c, .opt = c, .divisor = c == INT64_MIN ? 1 : (int64_t)i64_size(c) };
        for (uint32_t k = 0; k < p->at[i].degree; k++) r = dim_range_mul(r, t->cache->fact.at[p->at[i].atom[k]].range);
        sum = dim_range_add(sum, r);
    }
    return sum;
}

/* ---- nodes ---- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint32_t node_hash(const dim_node *n)
{
    return (uint32_t)(mix(mix(mix(mix(1, n->kind), n->a), n->b), (uint64_t)n->value) >> 7);
}

static bool slots_grow(dim_table *t)
{
    const uint32_t count = t->slot_count ? t->slot_count * 2 : 64;
    dim *slot = ARENA_NEW(t->a, dim, count);
    if (!slot) return false;
    for (dim d = 1; d < t->node.count; d++) {
        uint32_t at = node_hash(&t->node.at[d]) & (count - 1);
        while (slot[at]) at = (at + 1) & (count - 1);
        slot[at] = d;
    }
    t->slot = slot;
    t->slot_count = count;
    return true;
}

/* Finds or makes a node. `terms` NULL: the node is an atom of its own; *terms is copied to the arena by the caller. */
static dim intern(dim_table *t, dim_node n, const dim_term *terms, uint32_t count)
{
    if (t->failed) return DIM_NONE;
    uint32_t at = node_hash(&n) & (t->slot_count - 1);
    for (; t->slot[at]; at = (at + 1) & (t->slot_count - 1)) {
        const dim_node *o = &t->node.at[t->slot[at]];
        if (o->kind == n.kind && o->a == n.a && o->b == n.b && o->value == n.value) return t->slot[at];
    }
    const uint64_t limit = t->a->e->limits.nodes_max;
    if (t->node.count >= (limit < UINT32_MAX / 8 ? limit * 4 : UINT32_MAX / 2)) return fail(t);
    const dim id = t->node.count;
    uint64_t weight = 0;
    uint32_t nest = 0;
    if (terms) {
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t k = 0; k < terms[i].degree; k++) {
                const form *f = &t->form.at[terms[i].atom[k]];
                weight += f->weight;
                if (f->nest > nest) nest = f->nest;
            }
        }
        weight += count;
    } else {
        dim_term *own = ARENA_NEW(t->a, dim_term, 1);
        if (!own) return fail(t);
        *own = (dim_term){ .coefficient = 1, .degree = 1, .atom = { id } };
        weight = 1 + (uint64_t)t->form.at[n.a].weight + t->form.at[n.b].weight;
        if (n.kind != DIM_SYMBOL) nest = 1 + (uint32_t)i64_max(t->form.at[n.a].nest, t->form.at[n.b].nest);
        /* A chain of broadcasts is one list. */
        if (n.kind == DIM_BROADCAST && t->node.at[n.a].kind == DIM_BROADCAST)
            nest = (uint32_t)i64_max(t->form.at[n.a].nest, 1 + t->form.at[n.b].nest);
        terms = own;
        count = 1;
    }
    if (nest > NEST_MAX || weight > WEIGHT_MAX) return fail(t);
    dim_node *node = VEC_PUSH(t->a, &t->node);
    form *f = VEC_PUSH(t->a, &t->form);
    fact *known = VEC_PUSH(t->a, &t->cache->fact);
    if (!node || !f || !known) return fail(t);
    *node = n;
    *f = (form){ .at = terms, .count = count, .nest = nest, .weight = (uint32_t)weight };
    *known = fact_of(t, &n);
    t->slot[at] = id;
    if (t->node.count * 2 > t->slot_count && !slots_grow(t)) return fail(t);
    return id;
}

dim dim_atom(dim_table *t, dim_kind kind, dim a, dim b)
{
    return intern(t, (dim_node){ .kind = (uint32_t)kind, .a = a, .b = b }, NULL, 0);
}

static dim const_id(dim_table *t, int64_t value)
{
    dim_term *own = NULL;
    if (value) {
        own = ARENA_NEW(t->a, dim_term, 1);
        if (!own) return fail(t);
        *own = (dim_term){ .coefficient = value };
    }
    return intern(t, (dim_node){ .kind = DIM_CONST, .value = value }, own ? own : &dim_term_one, own ? 1 : 0);
}

/* coefficient * atom * atom …: a chain of products, the coefficient outermost. */
static dim lower_term(dim_table *t, const dim_term *x)
{
    if (x->degree == 0) return dim_const(t, x->coefficient);
    dim d = x->atom[0];
    for (uint32_t i = 1; i < x->degree && d; i++) {
        dim_term *own = ARENA_NEW(t->a, dim_term, 1);
        if (!own) return fail(t);
        *own = (dim_term){ .coefficient = 1, .degree = i + 1 };
        memcpy(own->atom, x->atom, (i + 1) * sizeof(dim));
        d = intern(t, (dim_node){ .kind = DIM_MUL, .a = d, .b = x->atom[i] }, own, 1);
    }
    if (x->coefficient == 1 || !d) return d;
    dim_term *own = ARENA_NEW(t->a, dim_term, 1);
    const dim c = dim_const(t, x->coefficient);
    if (!own || !c) return fail(t);
    *own = *x;
    return intern(t, (dim_node){ .kind = DIM_MUL, .a = c, .b = d }, own, 1);
}

dim dim_lower(dim_table *t, const dim_poly *p)
{
    if (p->count == 0) return dim_const(t, 0);
    dim d = lower_term(t, &p->at[0]);
    if (p->count == 1 || !d) return d;
    dim_term *own = ARENA_NEW(t->a, dim_term, p->count);
    if (!own) return fail(t);
    memcpy(own, p->at, p->count * sizeof(dim_term));
    for (uint32_t i = 1; i < p->count && d; i++) {
        const dim x = lower_term(t, &p->at[i]);
        if (!x) return DIM_NONE;
        d = intern(t, (dim_node){ .kind = DIM_ADD, .a = d, .b = x }, own, i + 1);
    }
    return d;
}

dim_table *dim_table_create(arena *a)
{
    dim_table *t = ARENA_NEW(a, dim_table, 1);
    if (!t) return NULL;
    t->a = a;
    t->cache = ARENA_NEW(a, cache, 1);
    t->name_slot = ARENA_NEW(a, dim, 64);
    t->name_count = 64;
    if (!t->cache || !t->name_slot || !slots_grow(t)) return NULL;
    dim_node *node = VEC_PUSH(a, &t->node);
    form *f = VEC_PUSH(a, &t->form);
    fact *known = VEC_PUSH(a, &t->cache->fact);
    if (!node || !f || !known) return NULL;
    known->range = (dim_range){ .min = INT64_MIN, .max = INT64_MAX, .opt = 0, .divisor = 1 };
    return t;
}

dim_table *dim_table_copy(arena *a, const dim_table *from)
{
    dim_table *t = ARENA_NEW(a, dim_table, 1);
    cache *facts = ARENA_NEW(a, cache, 1);
    dim *slot = ARENA_NEW(a, dim, from->slot_count), *name_slot = ARENA_NEW(a, dim, from->name_count);
    if (!t || !facts || !slot || !name_slot) return NULL;
    *t = *from;
    *facts = *from->cache;
    memcpy(slot, from->slot, from->slot_count * sizeof *slot);
    memcpy(name_slot, from->name_slot, from->name_count * sizeof *name_slot);
    t->a = a;
    t->cache = facts;
    t->slot = slot;
    t->name_slot = name_slot;
    const bool ok = VEC_COPY(a, &t->node) && VEC_COPY(a, &t->form) && VEC_COPY(a, &t->symbol) &&
                    VEC_COPY(a, &t->symbol_id) && VEC_COPY(a, &facts->fact);
    return ok ? t : NULL;
}

bool dim_table_failed(const dim_table *t)
{
    return t->failed;
}

arena *dim_table_arena(const dim_table *t)
{
    return t->a;
}

uint32_t dim_count(const dim_table *t)
{
    return t->node.count;
}

const dim_node *dim_at(const dim_table *t, dim d)
{
    return &t->node.at[d < t->node.count ? d : 0];
}

uint32_t dim_symbol_count(const dim_table *t)
{
    return t->symbol.count;
}

const dim_symbol *dim_symbol_at(const dim_table *t, uint32_t symbol)
{
    return symbol < t->symbol.count ? &t->symbol.at[symbol] : NULL;
}

bool dim_has_late(const dim_table *t)
{
    return t->late_count != 0;
}

/* ---- constants and symbols ---- */

dim dim_const(dim_table *t, int64_t value)
{
    return t->failed ? DIM_NONE : const_id(t, value);
}

static uint32_t name_hash(const char *name)
{
    uint64_t h = 2;
    for (; *name; name++) h = mix(h, (unsigned char)*name);
    return (uint32_t)(h >> 7);
}

/* The slot of a name: holds its symbol + 1, or 0 where it is free. */
static uint32_t name_find(const dim_table *t, const dim *slot, uint32_t count, const char *name)
{
    uint32_t at = name_hash(name) & (count - 1);
    while (slot[at] && strcmp(t->symbol.at[slot[at] - 1].name, name) != 0) at = (at + 1) & (count - 1);
    return at;
}

static bool names_grow(dim_table *t)
{
    const uint32_t count = t->name_count * 2;
    dim *slot = ARENA_NEW(t->a, dim, count);
    if (!slot) return false;
    for (uint32_t i = 0; i < t->symbol.count; i++) slot[name_find(t, slot, count, t->symbol.at[i].name)] = i + 1;
    t->name_slot = slot;
    t->name_count = count;
    return true;
}

static dim symbol_new(dim_table *t, dim_symbol s, const char *name)
{
    s.name = arena_text(t->a, name, strlen(name));
    if (!s.name) return fail(t);
    if ((t->symbol.count + 1) * 2 > t->name_count && !names_grow(t)) return fail(t);
    const uint32_t index = t->symbol.count;
    dim_symbol *own = VEC_PUSH(t->a, &t->symbol);
    dim *id = VEC_PUSH(t->a, &t->symbol_id);
    if (!own || !id) return fail(t);
    *own = s;
    t->late_count += s.is_late;
    t->name_slot[name_find(t, t->name_slot, t->name_count, name)] = index + 1;
    const dim d = intern(t, (dim_node){ .kind = DIM_SYMBOL, .value = index }, NULL, 0);
    t->symbol_id.at[index] = d;
    return d;
}

dim dim_symbol_named(dim_table *t, const char *name)
{
    if (t->failed) return DIM_NONE;
    const dim known = t->name_slot[name_find(t, t->name_slot, t->name_count, name)];
    if (known) return t->symbol_id.at[known - 1];
    return symbol_new(t, (dim_symbol){ .min = 0, .max = INT64_MAX, .opt = 1, .divisor = 1 }, name);
}

static const char *late_name(dim_table *t, const char *stem)
{
    const char *name;
    uint32_t number = t->symbol.count;
    do name = arena_printf(t->a, "%s%u", stem, number++);
    while (name && t->name_slot[name_find(t, t->name_slot, t->name_count, name)]);
    return name;
}

dim dim_symbol_late_signed(dim_table *t, const char *stem)
{
    const char *name = t->failed ? NULL : late_name(t, stem);
    if (!name) return fail(t);
    /* INT64_MIN is what a symbol holds before it is bound */
    return symbol_new(t, (dim_symbol){ .min = -INT64_MAX, .max = INT64_MAX, .opt = 0, .divisor = 1, .is_late = true },
                      name);
}

dim dim_symbol_late(dim_table *t, const char *stem, dim max)
{
    const char *name = t->failed ? NULL : late_name(t, stem);
    if (!name) return fail(t);
    dim_symbol s = { .min = 0, .max = INT64_MAX, .opt = 1, .divisor = 1, .is_late = true };
    if (max) {
        const dim_range r = dim_range_of(t, max);
        s.max = i64_max(r.max, 0);
        s.opt = i64_max(r.opt, 0);
    }
    return symbol_new(t, s, name);
}

/* ---- questions ---- */

bool dim_is_const(const dim_table *t, dim d, int64_t *value)
{
    const dim_node *n = dim_at(t, d);
    if (n->kind != DIM_CONST) return false;
    if (value) *value = n->value;
    return true;
}

bool dim_is(const dim_table *t, dim d, int64_t value)
{
    const dim_node *n = dim_at(t, d);
    return n->kind == DIM_CONST && n->value == value;
}

bool dim_is_late(const dim_table *t, dim d)
{
    facts_refresh(t);
    return t->cache->fact.at[d < t->node.count ? d : 0].is_late;
}

bool dim_symbol_of(const dim_table *t, dim d, uint32_t *symbol)
{
    const dim_node *n = dim_at(t, d);
    if (n->kind != DIM_SYMBOL) return false;
    if (symbol) *symbol = (uint32_t)n->value;
    return true;
}

dim_range dim_range_of(const dim_table *t, dim d)
{
    facts_refresh(t);
    dim_range r = t->cache->fact.at[d < t->node.count ? d : 0].range;
    if (r.divisor == 0) r.divisor = 1;
    return r;
}

dim_range dim_size_range_of(const dim_table *t, dim d)
{
    dim_range r = dim_range_of(t, d);
    r.max = r.max < 0 ? 0 : r.max;
    r.min = r.min < 0 ? 0 : r.min;
    r.opt = r.opt < r.min ? r.min : r.opt > r.max ? r.max : r.opt;
    return r;
}

static bool eval_one(const dim_node *n, int64_t a, int64_t b, int64_t *out)
{
    switch ((dim_kind)n->kind) {
    case DIM_ADD: return i64_add(a, b, out);
    case DIM_MUL: return i64_mul(a, b, out);
    case DIM_MIN: *out = i64_min(a, b); return true;
    case DIM_MAX: *out = i64_max(a, b); return true;
    case DIM_BROADCAST: *out = i64_broadcast(a, b); return true;
    case DIM_FLOORDIV:
    case DIM_CEILDIV:
    case DIM_MOD: break;
    default: return false;
    }
    if (b == 0) return false;
    if (b == -1) { /* a is not INT64_MIN, which is the mark of a failed operand */
        *out = n->kind == DIM_MOD ? 0 : -a;
        return true;
    }
    const int64_t rest = a % b, q = i64_floor_div(a, b);
    const bool is_across = rest != 0 && (rest < 0) != (b < 0);
    *out = n->kind == DIM_FLOORDIV ? q : n->kind == DIM_MOD ? (is_across ? rest + b : rest) : q + (rest != 0);
    return true;
}

bool dim_eval_at(const dim_node *node, uint32_t i, const int64_t *symbol, uint32_t symbol_count, int64_t *out)
{
    const dim_node *n = &node[i];
    out[i] = INT64_MIN;
    if (n->kind == DIM_CONST) {
        out[i] = n->value;
    } else if (n->kind == DIM_SYMBOL) {
        if (n->value >= 0 && (uint64_t)n->value < symbol_count) out[i] = symbol[n->value];
    } else if (n->a < i && n->b < i && out[n->a] != INT64_MIN && out[n->b] != INT64_MIN) {
        if (eval_one(n, out[n->a], out[n->b], &out[i])) return true;
        out[i] = INT64_MIN;
        return false;
    }
    return true;
}

bool dim_eval_all(const dim_node *node, uint32_t count, const int64_t *symbol, uint32_t symbol_count, int64_t *out)
{
    bool is_fine = true;
    if (count) out[0] = INT64_MIN;
    for (uint32_t i = 1; i < count; i++)
        if (!dim_eval_at(node, i, symbol, symbol_count, out)) is_fine = false;
    return is_fine;
}
