/* SPDX-License-Identifier: Apache-2.0 */
/* dim_poly.h - the polynomials that dimension expressions are: sums of integers times products of atoms. False
 * everywhere: it overflows, or gets too large. */
#ifndef CORE_DIM_POLY_H
#define CORE_DIM_POLY_H

#include "core/dim.h"

enum { DIM_TERMS_MAX = 64, DIM_DEGREE_MAX = 8 };

typedef struct dim_term {
    int64_t coefficient; /* never 0 */
    uint32_t degree;
    dim atom[DIM_DEGREE_MAX]; /* ascending; 0 beyond degree */
} dim_term;

typedef struct dim_poly {
    uint32_t count;
    dim_term at[DIM_TERMS_MAX];
} dim_poly;

static const dim_term dim_term_one = { .coefficient = 1 }, dim_term_minus = { .coefficient = -1 };

bool dim_term_mul(const dim_term *a, const dim_term *b, dim_term *out);
/* a / b where b's monomial divides a's; with is_floor the coefficient is rounded down, else it must divide too. */
bool dim_term_div(const dim_term *a, const dim_term *b, bool is_floor, dim_term *out);

bool dim_poly_add_term(dim_poly *p, const dim_term *x);
bool dim_poly_add_scaled(dim_poly *p, const dim_poly *q, const dim_term *scale);       /* p += q * scale */
bool dim_poly_is_const(const dim_poly *p, int64_t *value);
/* False also where b does not divide a exactly. */
bool dim_poly_divide(const dim_poly *a, const dim_poly *b, dim_poly *quotient);

/* ---- dim.c: polynomials and ids ---- */
/* False: an operand is DIM_NONE, or the table failed. Else ranges are up to date. */
bool      dim_is_usable(dim_table *t, dim a, dim b);
void      dim_poly_of(const dim_table *t, dim d, dim_poly *out);
dim_range dim_poly_range(const dim_table *t, const dim_poly *p);
dim       dim_lower(dim_table *t, const dim_poly *p);
dim       dim_atom(dim_table *t, dim_kind kind, dim a, dim b);

#endif
