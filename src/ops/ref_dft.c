/* SPDX-License-Identifier: Apache-2.0 */
/* ref_dft.c - det, by elimination with pivoting, and dft, by its definition over a table of roots of unity. */
#include "ops/ref_loops.h"
#include <math.h>

static double det_of(double *a, int64_t n)
{
    double det = 1;
    for (int64_t col = 0; col < n; col++) {
        int64_t pivot = col;
        for (int64_t r = col + 1; r < n; r++) {
            if (fabs(a[r * n + col]) > fabs(a[pivot * n + col])) pivot = r;
        }
        if (a[pivot * n + col] == 0) return 0;
        if (pivot != col) det = -det;
        for (int64_t k = col; k < n && pivot != col; k++) {
            const double kept = a[col * n + k];
            a[col * n + k] = a[pivot * n + k];
            a[pivot * n + k] = kept;
        }
        det *= a[col * n + col];
        for (int64_t r = col + 1; r < n; r++) {
            const double factor = a[r * n + col] / a[col * n + col];
            for (int64_t k = col; k < n; k++) a[r * n + k] -= factor * a[col * n + k];
        }
    }
    return det;
}

sinter_status reference_det(ref_call *c)
{
    TRY(ref_check(c));
    const view *x = &c->in[0];
    const view *y = &c->out[0];
    const uint32_t row = x->rank - 2;
    const int64_t n = x->dim[row];
    double *a = ARENA_NEW(c->scratch, double, size_mul((size_t)n, (size_t)n));
    if (!a) return FAIL_MEMORY(c->e, "a matrix of det");
    int64_t index[SINTER_RANK_MAX];
    for (bool more = view_first(y->dim, y->rank, index); more; more = view_next(y->dim, y->rank, index)) {
        int64_t at = 0;
        for (uint32_t k = 0; k < row; k++) at += index[k] * x->stride[k];
        for (int64_t i = 0; i < n * n; i++)
            a[i] = view_load_f64(x, at + i / n * x->stride[row] + i % n * x->stride[row + 1]);
        view_store_f64(y, view_offset(y, index), det_of(a, n));
    }
    return SINTER_OK;
}

typedef struct complex_f64 {
    double re, im;
} complex_f64;

/* Element k of a line, zero behind its end. */
static complex_f64 line_load(const view *x, int64_t at, int64_t axis, int64_t k)
{
    const uint32_t last = x->rank - 1;
    complex_f64 v = { 0, 0 };
    if (k >= x->dim[axis]) return v;
    v.re = view_load_f64(x, at + k * x->stride[axis]);
    if (x->dim[last] == 2) v.im = view_load_f64(x, at + k * x->stride[axis] + x->stride[last]);
    return v;
}

sinter_status reference_dft(ref_call *c)
{
    const attrs_dft *a = c->attrs;
    TRY(ref_check(c));
    const view *x = &c->in[0];
    const view *y = &c->out[0];
    const uint32_t last = x->rank - 1;
    const bool is_mirrored = a->onesided && a->inverse; /* the input is half of a symmetric spectrum */
    const int64_t bins = y->dim[a->axis];
    int64_t n = bins;
    if (a->length.count) n = a->length.at[0];
    else if (a->onesided && !a->inverse) n = x->dim[a->axis];
    complex_f64 *root = ARENA_NEW(c->scratch, complex_f64, (size_t)n);
    complex_f64 *line = ARENA_NEW(c->scratch, complex_f64, (size_t)n);
    if (!root || !line) return FAIL_MEMORY(c->e, "a line of dft");
    for (int64_t k = 0; k < n; k++) {
        const double angle = (a->inverse ? 2 : -2) * 3.14159265358979323846 * (double)k / (double)n;
        root[k] = (complex_f64){ cos(angle), sin(angle) };
    }
    const uint32_t axes = ~(1u << a->axis | 1u << last);
    ref_walk from = ref_walk_axes(x, axes, 0);
    ref_walk to = ref_walk_axes(y, axes, 0);
    for (int64_t i = 0; i < from.count; i++, ref_walk_next(&from), ref_walk_next(&to)) {
        for (int64_t k = 0; k < n; k++) {
            const bool is_mirror = is_mirrored && k > n / 2;
            line[k] = line_load(x, from.at, a->axis, is_mirror ? n - k : k);
            if (is_mirror) line[k].im = -line[k].im;
        }
        for (int64_t k = 0; k < bins; k++) {
            complex_f64 sum = { 0, 0 };
            for (int64_t j = 0, turn = 0; j < n; j++) { /* turn = j * k mod n */
                sum.re += line[j].re * root[turn].re - line[j].im * root[turn].im;
                sum.im += line[j].re * root[turn].im + line[j].im * root[turn].re;
                turn += k;
                if (turn >= n) turn -= n;
            }
            const double scale = a->inverse ? 1 / (double)n : 1;
            const int64_t at = to.at + k * y->stride[a->axis];
            view_store_f64(y, at, sum.re * scale);
            if (y->dim[last] == 2) view_store_f64(y, at + y->stride[last], sum.im * scale);
        }
    }
    return SINTER_OK;
}
