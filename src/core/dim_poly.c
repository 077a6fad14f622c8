/* SPDX-License-Identifier: Apache-2.0 */
/* dim_poly.c - polynomials of atoms, sorted, so that equal ones are the same. */
#include "core/dim_poly.h"
#include "core/dim_range.h"

#include <string.h>

/* Higher degree first, then the monomials in order of their atoms (a graded order: division by leading terms ends). */
static int term_compare(const dim_term *a, const dim_term *b)
{
    if (a->degree != b->degree) return a->degree > b->degree ? -1 : 1;
    for (uint32_t i = 0; i < a->degree; i++) {
        if (a->atom[i] != b->atom[i]) return a->atom[i] < b->atom[i] ? -1 : 1;
    }
    return 0;
}

bool dim_poly_add_term(dim_poly *p, const dim_term *x)
{
    uint32_t low = 0, high = p->count;
    while (low < high) {
        const uint32_t mid = (low + high) / 2;
        if (term_compare(&p->at[mid], x) < 0) low = mid + 1;
        else high = mid;
    }
    if (low < p->count && term_compare(&p->at[low], x) == 0) {
        if (!i64_add(p->at[low].coefficient, x->coefficient, &p->at[low].coefficient)) return false;
        if (p->at[low].coefficient != 0) return true;
        p->count--;
        memmove(&p->at[low], &p->at[low + 1], (p->count - low) * sizeof(dim_term));
        return true;
    }
    if (x->coefficient == 0) return true;
    if (p->count == DIM_TERMS_MAX) return false;
    memmove(&p->at[low + 1], &p->at[low], (p->count - low) * sizeof(dim_term));
    p->at[low] = *x;
    p->count++;
    return true;
}

bool dim_term_mul(const dim_term *a, const dim_term *b, dim_term *out)
{
    if (a->degree + b->degree > DIM_DEGREE_MAX) return false;
    *out = (dim_term){ .degree = a->degree + b->degree };
    uint32_t i = 0, k = 0;
    for (uint32_t n = 0; n < out->degree; n++) {
        const bool take_a = k == b->degree || (i < a->degree && a->atom[i] <= b->atom[k]);
        out->atom[n] = take_a ? a->atom[i++] : b->atom[k++];
    }
    return i64_mul(a->coefficient, b->coefficient, &out->coefficient);
}

bool dim_term_div(const dim_term *a, const dim_term *b, bool is_floor, dim_term *out)
{
    if (a->degree < b->degree || b->coefficient == 0) return false;
    if (a->coefficient == INT64_MIN && b->coefficient == -1) return false;
    if (!is_floor && a->coefficient % b->coefficient != 0) return false;
    *out = (dim_term){ .coefficient = i64_floor_div(a->coefficient, b->coefficient) };
    uint32_t k = 0;
    for (uint32_t i = 0; i < a->degree; i++) {
        if (k < b->degree && a->atom[i] == b->atom[k]) k++;
        else if (out->degree < DIM_DEGREE_MAX) out->atom[out->degree++] = a->atom[i];
    }
    return k == b->degree;
}

bool dim_poly_add_scaled(dim_poly *p, const dim_poly *q, const dim_term *scale)
{
    for (uint32_t i = 0; i < q->count; i++) {
        dim_term x;
        if (!dim_term_mul(&q->at[i], scale, &x) || !dim_poly_add_term(p, &x)) return false;
    }
    return true;
}

bool dim_poly_is_const(const dim_poly *p, int64_t *value)
{
    if (p->count > 1 || (p->count == 1 && p->at[0].degree)) return false;
    *value = p->count ? p->at[0].coefficient : 0;
    return true;
}

/* Long division by leading terms; false where b does not divide a exactly. */
bool dim_poly_divide(const dim_poly *a, const dim_poly *b, dim_poly *quotient)
{
    dim_poly rest = *a;
    quotient->count = 0;
    if (b->count == 0) return false;
    for (uint32_t step = 0; rest.count; step++) {
        dim_term q, back;
        if (step == 2 * DIM_TERMS_MAX || !dim_term_div(&rest.at[0], &b->at[0], false, &q)) return false;
        if (!dim_poly_add_term(quotient, &q) || !dim_term_mul(&q, &dim_term_minus, &back)) return false;
        if (!dim_poly_add_scaled(&rest, b, &back)) return false;
    }
    return true;
}
