/* SPDX-License-Identifier: Apache-2.0 */
/* ref_matmul.c - matmul and matmul_integer.
 *
 *   y[b.., m, n] = sum over k of a[b.., m, k] * b[b.., k, n]
 *
 * Operands are widened once; then each row of the result is either a sum of scaled rows of b, or dot products with its
 * columns, whichever walks b with the smaller stride. */
#include "ops/ref_loops.h"
#include <stdlib.h>

typedef struct matrix {
    view batch;
    int64_t rows, cols, row_stride, col_stride;
} matrix;

/* Splits an operand into batch axes, broadcast to those of the result, and a matrix. A vector is a row (a) or a column
 * (b). */
static bool matrix_of(const view *v, bool is_b, bool is_transposed, uint32_t batch_rank, const int64_t *batch_dim,
                      matrix *out)
{
    const uint32_t r = v->rank;
    view batch = *v;
    batch.rank = r > 2 ? r - 2 : 0;
    if (r == 1) {
        *out = is_b ? (matrix){ .rows = v->dim[0], .cols = 1, .row_stride = v->stride[0] }
                    : (matrix){ .rows = 1, .cols = v->dim[0], .col_stride = v->stride[0] };
    } else {
        const uint32_t row = is_transposed ? r - 1 : r - 2;
        const uint32_t col = is_transposed ? r - 2 : r - 1;
        *out = (matrix){
            .rows = v->dim[row], .cols = v->dim[col], .row_stride = v->stride[row], .col_stride = v->stride[col]
        };
    }
    return view_broadcast(&batch, batch_rank, batch_dim, &out->batch);
}

static sinter_status matmul_run(ref_call *c, const view *va, const view *vb, bool trans_a, bool trans_b)
{
    const view *y = &c->out[0];
    const bool has_m = va->rank > 1;
    const bool has_n = vb->rank > 1;
    const uint32_t batch_rank = y->rank - has_m - has_n;
    const int64_t step_m = has_m ? y->stride[batch_rank] : 0;
    const int64_t step_n = has_n ? y->stride[batch_rank + has_m] : 0;
    matrix a;
    matrix b;
    if (!matrix_of(va, false, trans_a, batch_rank, y->dim, &a) ||
        !matrix_of(vb, true, trans_b, batch_rank, y->dim, &b)) {
        return FAIL(c->e, INTERNAL, "batch dims of matmul do not broadcast");
    }
    scalar *acc = ARENA_NEW(c->scratch, scalar, (size_t)b.cols);
    if (!acc) return FAIL_MEMORY(c->e, "a row of matmul");
    const bool by_rows = llabs(b.col_stride) <= llabs(b.row_stride);
    int64_t index[SINTER_RANK_MAX];
    for (bool more = view_first(y->dim, batch_rank, index); more; more = view_next(y->dim, batch_rank, index)) {
        const int64_t at_b = view_offset(&b.batch, index);
        int64_t at_y = 0;
        for (uint32_t i = 0; i < batch_rank; i++) at_y += index[i] * y->stride[i];
        for (int64_t m = 0; m < a.rows; m++) {
            const int64_t at_a = view_offset(&a.batch, index) + m * a.row_stride;
            memset(acc, 0, (size_t)b.cols * sizeof(*acc));
            for (int64_t k = 0; by_rows && k < b.rows; k++) {
                ref_axpy(acc, 1, ref_wide_load(va, at_a + k * a.col_stride), vb, at_b + k * b.row_stride, b.col_stride,
                         b.cols);
            }
            for (int64_t n = 0; n < b.cols; n++) {
                if (!by_rows)
                    acc[n] = ref_dot(va, at_a, a.col_stride, vb, at_b + n * b.col_stride, b.row_stride, b.rows);
                ref_store(y, at_y + m * step_m + n * step_n, va->dtype, acc[n]);
            }
        }
    }
    return SINTER_OK;
}

sinter_status reference_matmul(ref_call *c)
{
    const attrs_matmul *attrs = c->attrs;
    TRY(ref_check(c));
    const sinter_dtype wide_b = ref_wide_of(c->in[1].dtype);
    const sinter_dtype wide = wide_b == SINTER_DTYPE_F64 ? wide_b : ref_wide_of(c->in[0].dtype);
    view a;
    view b;
    TRY(ref_widen(c, &c->in[0], wide, NULL, &a));
    TRY(ref_widen(c, &c->in[1], wide, NULL, &b));
    return matmul_run(c, &a, &b, attrs->trans_a != 0, attrs->trans_b != 0);
}

/* The zero point of input `of` in that input's shape: one value, one for each index of axis `lines`, or broadcast. */
static const view *zero_point(const ref_call *c, uint32_t i, uint32_t of, uint32_t lines, view *out)
{
    if (!ref_has_in(c, i)) return NULL;
    const view *z = &c->in[i];
    const view *x = &c->in[of];
    *out = *z;
    out->rank = x->rank;
    for (uint32_t k = 0; k < x->rank; k++) {
        out->dim[k] = x->dim[k];
        out->stride[k] = 0;
        if (z->rank == 1 && z->dim[0] > 1 && k == lines) out->stride[k] = z->stride[0];
        if (z->rank > 1 && z->dim[k] > 1) out->stride[k] = z->stride[k];
    }
    return out;
}

/* Differences of 8-bit values are exact in f32, and their products' sums are exact in double. */
sinter_status reference_matmul_integer(ref_call *c)
{
    TRY(ref_check(c));
    view zero_a;
    view zero_b;
    view a;
    view b;
    const uint32_t row = c->in[0].rank > 1 ? c->in[0].rank - 2 : 0;
    TRY(ref_widen(c, &c->in[0], SINTER_DTYPE_F32, zero_point(c, 2, 0, row, &zero_a), &a));
    TRY(ref_widen(c, &c->in[1], SINTER_DTYPE_F32, zero_point(c, 3, 1, c->in[1].rank - 1, &zero_b), &b));
    return matmul_run(c, &a, &b, false, false);
}
