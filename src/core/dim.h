/* SPDX-License-Identifier: Apache-2.0 */
/* dim.h - dimension expressions: checked int64 arithmetic over named symbols.
 *
 * A dim is an id in a table that holds each expression once, in canonical form (a sum of products of atoms with integer
 * coefficients; an atom is a symbol or a floordiv, ceildiv, mod, min, max or broadcast of such sums). So two dims are
 * known to be equal exactly when their ids are. A static model is the case without symbols. The table itself, in order,
 * is the shape program that engines store and contexts evaluate: operands come before their users.
 *
 * Failure of memory is sticky: constructors return DIM_NONE, which every function accepts and passes on. So is reaching
 * a bound: nodes_max * 4 expressions, 60 levels of nesting. */
#ifndef CORE_DIM_H
#define CORE_DIM_H

#include "base/arena.h"
#include "base/text.h"

typedef uint32_t dim;
enum { DIM_NONE = 0 };

typedef enum dim_kind {
    DIM_INVALID, DIM_CONST, DIM_SYMBOL, DIM_ADD, DIM_MUL, DIM_FLOORDIV, DIM_CEILDIV, DIM_MOD, DIM_MIN, DIM_MAX,
    DIM_BROADCAST, DIM_KIND_COUNT
} dim_kind;

/* One expression. a and b are ids below this one's own; value is the constant, or the index of the symbol. */
typedef struct dim_node {
    uint32_t kind;      /* dim_kind */
    dim      a, b;
    int64_t  value;
} dim_node;

/* A name with its range. A late symbol is bound while the engine runs, by the step that knows it. The range is set when
 * the symbol is made, before expressions over it, and only narrows afterwards: simplification relies on it. */
typedef struct dim_symbol {
    const char *name;
    int64_t     min, max;      /* max INT64_MAX: no bound is known */
    int64_t     opt;           /* what kernels are chosen for; min <= opt <= max */
    int64_t     divisor;       /* known divisor, >= 1 */
    bool        is_late;
} dim_symbol;

typedef struct dim_table dim_table;
dim_table *dim_table_create(arena *a);             /* lives in the arena; NULL on failure */
/* The same expressions under the same ids. The copy shares text and terms with `from`, whose arena must outlive it. */
dim_table *dim_table_copy(arena *a, const dim_table *from);
/* Are there few enough terms, those of its operands counted, that an expression may repeat it? */
bool       dim_is_light(const dim_table *t, dim d);
bool       dim_table_failed(const dim_table *t);
arena     *dim_table_arena(const dim_table *t);
uint32_t   dim_count(const dim_table *t);          /* ids are 1 .. count-1 */
const dim_node *dim_at(const dim_table *t, dim d); /* node of an id; kind DIM_INVALID for DIM_NONE */
uint32_t   dim_symbol_count(const dim_table *t);
const dim_symbol *dim_symbol_at(const dim_table *t, uint32_t symbol);       /* NULL: there is none */
/* Gives a symbol another range, or makes it late; its name stays. Cost: one pass over the expressions made since the
 * symbol, when the next question is asked. */
void       dim_symbol_set(dim_table *t, uint32_t symbol, const dim_symbol *to);
bool       dim_has_late(const dim_table *t);       /* a symbol is late */

dim dim_const(dim_table *t, int64_t value);
dim dim_symbol_named(dim_table *t, const char *name);              /* finds or makes it: min 0, no max, opt 1 */
dim dim_symbol_late(dim_table *t, const char *stem, dim max);    /* new; name is stem with a number; max DIM_NONE: none.
                                                                      The max's own upper bound is taken now */
dim dim_symbol_late_signed(dim_table *t, const char *stem);        /* new; any number, negative ones too */
dim dim_add(dim_table *t, dim a, dim b);
dim dim_sub(dim_table *t, dim a, dim b);
dim dim_mul(dim_table *t, dim a, dim b);
dim dim_floordiv(dim_table *t, dim a, dim b);      /* towards minus infinity; by 0: evaluation fails */
dim dim_ceildiv(dim_table *t, dim a, dim b);
dim dim_mod(dim_table *t, dim a, dim b);           /* a - b * floordiv(a, b) */
dim dim_min(dim_table *t, dim a, dim b);
dim dim_max(dim_table *t, dim a, dim b);
/* The size of an axis along which operands of these sizes are repeated or equal: the one that is not 1 (0 beside 1 is
 * 0). Where several are not 1 they must be equal, which this does not check: the largest of them. Repeated application
 * keeps a set of operands, so no expression grows with the number of nodes. */
dim dim_broadcast(dim_table *t, dim a, dim b);
dim dim_product(dim_table *t, const dim *d, uint32_t count);       /* 1 for none */

bool dim_is_const(const dim_table *t, dim d, int64_t *value);      /* value may be NULL */
bool dim_is(const dim_table *t, dim d, int64_t value);             /* the constant `value` */
bool dim_is_late(const dim_table *t, dim d);                       /* mentions a late symbol */
bool dim_symbol_of(const dim_table *t, dim d, uint32_t *symbol);   /* is exactly one symbol */
bool dim_mentions(const dim_table *t, dim d, uint32_t symbol);     /* the symbol occurs in it */
/* The expression with `by` in the place of the symbol. */
dim  dim_substitute(dim_table *t, dim d, uint32_t symbol, dim by);
/* Divides exactly where that is visible in the form (8*N / 4, N*S / S); false where it is not. */
bool dim_divide_exact(dim_table *t, dim a, dim b, dim *out);

typedef struct dim_range { int64_t min, max, opt, divisor; } dim_range;
/* Interval arithmetic over the symbols' ranges; saturates at the ends of int64. opt is the value at the
 * symbols' opt. */
dim_range dim_range_of(const dim_table *t, dim d);
/* The same of a size: intervals may reach below zero where a size cannot, and symbols at their opt may give no size. */
dim_range dim_size_range_of(const dim_table *t, dim d);

/* Evaluates one id into out[i] from what its operands are there; false and INT64_MIN as below. */
bool dim_eval_at(const dim_node *node, uint32_t i, const int64_t *symbol, uint32_t symbol_count, int64_t *out);
/* Evaluates all ids in order into out[0 .. count), given each symbol's value. False where a division by zero or an
 * overflow happened in an id; that id's value is then INT64_MIN, and so are its users'. Late symbols not yet bound:
 * pass INT64_MIN. */
bool dim_eval_all(const dim_node *node, uint32_t count, const int64_t *symbol, uint32_t symbol_count, int64_t *out);

void dim_print(const dim_table *t, dim d, text *out);              /* "2*S+1", "ceildiv(H-1,2)" */
bool dim_parse(dim_table *t, scan *s, dim *out);                   /* the inverse; names make symbols; depth <= 64 */

#endif
