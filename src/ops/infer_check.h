/* SPDX-License-Identifier: Apache-2.0 */
/* infer_check.h - the checks that shape functions share.
 *
 * Each either holds or fails with a message that has the value found and the value wanted. Two dims agree unless both
 * are constants that differ: symbols that differ may still be equal when the engine runs. */
#ifndef OPS_INFER_CHECK_H
#define OPS_INFER_CHECK_H

#include "ops/ops.h"

/* Bound of strides, dilations, pads and kernels, so that sums of them fit int64. */
enum { INFER_STEP_MAX = INT32_MAX };

static inline bool infer_has(const infer_ctx *c, uint32_t i)
{
    return i < c->count_in && c->in[i].dtype != SINTER_DTYPE_NONE;
}
static inline bool infer_agree(const dim_table *t, dim a, dim b)
{
    int64_t va;
    int64_t vb;
    return a == b || !dim_is_const(t, a, &va) || !dim_is_const(t, b, &vb) || va == vb;
}
/* Of two dims that agree, the one that says more. */
static inline dim infer_better(const dim_table *t, dim a, dim b)
{
    return dim_is_const(t, a, NULL) ? a : b;
}
const char *infer_dim_text(infer_ctx *c, dim d);                        /* never NULL */
const char *infer_shape_text(infer_ctx *c, const infer_value *v);       /* "[N,3,224,224]"; never NULL */

/* name: what the user would call the operand ("input", "weight"). */
sinter_status infer_want_in(infer_ctx *c, uint32_t i, const char *name, uint32_t rank_min, uint32_t rank_max);
sinter_status infer_want_float(infer_ctx *c, const infer_value *v, const char *name);
sinter_status infer_want_numeric(infer_ctx *c, const infer_value *v, const char *name);
sinter_status infer_want_type(infer_ctx *c, const infer_value *v, const char *name, sinter_dtype wanted);
sinter_status infer_want_dim(infer_ctx *c, const char *name, dim found, const char *wanted_name, dim wanted);
sinter_status infer_want_axis(infer_ctx *c, int64_t axis, uint32_t rank);
/* A list of exactly `count` values, each in [min, max]. */
sinter_status infer_want_ints(infer_ctx *c, const char *name, const attr_ints *list, uint32_t count, int64_t min,
                               int64_t max);
/* Sets output i where the node has it; fails where a dim overflowed or is a negative constant. */
sinter_status infer_set(infer_ctx *c, uint32_t i, sinter_dtype dtype, uint32_t rank, const dim *d);

#endif
