/* SPDX-License-Identifier: Apache-2.0 */
/* ref_loops.h - what the reference kernels share: walks over some axes of a view, operands widened to one of three
 * working types, and the two inner loops (a dot product and a scaled row) that all contractions run on.
 *
 * Working types are f32, f64 and i64. Floats accumulate in double, integers in wrapping 64 bits; a `scalar`
 * holds either. */
#ifndef OPS_REF_LOOPS_H
#define OPS_REF_LOOPS_H

#include "ops/ops.h"

static inline bool ref_has_in(const ref_call *c, uint32_t i)
{
    return i < c->count_in && c->in[i].dtype != SINTER_DTYPE_NONE;
}
static inline bool ref_has_out(const ref_call *c, uint32_t i)
{
    return i < c->count_out && c->out[i].dtype != SINTER_DTYPE_NONE;
}

/* Runs the op's shape function on the sizes of the call and compares: after it, a kernel may trust attributes and
 * shapes. */
sinter_status ref_check(ref_call *c);

/* A position that moves over chosen axes of a view, row-major; `at` is its offset from the view's data. */
typedef struct ref_walk {
    uint32_t rank;
    int64_t  dim[SINTER_RANK_MAX], stride[SINTER_RANK_MAX], index[SINTER_RANK_MAX];
    int64_t  at, count;
} ref_walk;
ref_walk ref_walk_axes(const view *v, uint32_t axes, int64_t at);       /* axes: bit per axis */
static inline void ref_walk_next(ref_walk *w)                           /* wraps around to the start */
{
    for (uint32_t k = w->rank; k-- > 0;) {
        w->at += w->stride[k];
        if (++w->index[k] < w->dim[k]) return;
        w->at -= w->stride[k] * w->dim[k];
        w->index[k] = 0;
    }
}

/* The working type of `dtype`. */
sinter_dtype ref_wide_of(sinter_dtype dtype);
/* `v` in the working type `wide`: itself, or a dense copy in scratch. zero: NULL, or a view of v's shape that is
 * subtracted. */
sinter_status ref_widen(ref_call *c, const view *v, sinter_dtype wide, const view *zero, view *out);
scalar ref_wide_load(const view *v, int64_t at);
/* acc[i * acc_step] += w * x[at + i * step] */
void ref_axpy(scalar *acc, int64_t acc_step, scalar w, const view *x, int64_t at, int64_t step, int64_t count);
/* sum of a[a_at + i * a_step] * b[b_at + i * b_step]; both of one working type */
scalar ref_dot(const view *a, int64_t a_at, int64_t a_step, const view *b, int64_t b_at, int64_t b_step, int64_t count);
/* Stores an accumulator of working type `wide`. */
void ref_store(const view *out, int64_t at, sinter_dtype wide, scalar value);

static inline int64_t ref_ceildiv(int64_t a, int64_t b)                 /* b > 0 */
{
    return a > 0 ? (a - 1) / b + 1 : -(-a / b);
}
static inline int64_t ref_clamp(int64_t v, int64_t min, int64_t max)
{
    return v < min ? min : v > max ? max : v;
}

#endif
