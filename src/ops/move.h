/* SPDX-License-Identifier: Apache-2.0 */
/* move.h - what the ops that move elements share: checks for inference, blocks and single elements for references.
 *
 * Nothing here interprets an element, so every type is copied as it is, those under a byte included. */
#ifndef OPS_MOVE_H
#define OPS_MOVE_H

#include "ops/infer_check.h"

#include <string.h>

enum { MOVE_VALUES_MAX = 64 }; /* the longest list of integers that is known as expressions */

/* ---- inference ---- */
/* A DIMS attribute has `count` entries, and each is an expression of the table. */
sinter_status move_dims_check(infer_ctx *c, const char *name, const attr_dims *d, uint32_t count);
static inline dim move_dim(const attr_dims *d, uint32_t i)
{
    return (dim)d->at[i];
}
/* Fails where the dim can only be negative. */
sinter_status move_dim_not_negative(infer_ctx *c, const char *what, uint32_t axis, dim d);
/* Two dims that must be the same: the more precise of them. False where they differ for certain. */
bool move_same(const dim_table *t, dim a, dim b, dim *out);
sinter_status move_same_check(infer_ctx *c, const char *what, uint32_t axis, dim a, dim b, dim *out);
/* Input k is there and has rank min..max. */
sinter_status move_rank_check(infer_ctx *c, uint32_t k, const char *what, uint32_t min, uint32_t max);
sinter_status move_int_check(infer_ctx *c, uint32_t k, const char *what); /* i32, i64 or another integer type */
sinter_status move_axis_check(infer_ctx *c, const char *what, int64_t axis, uint32_t rank);
/* The integers of input k as expressions, where they are known. */
const dim *move_values(infer_ctx *c, uint32_t k, uint32_t *count);
/* A fresh list to become a shape value of `count` entries; NULL: too long, or out of memory (which the arena
 * remembers). */
dim *move_values_new(infer_ctx *c, uint32_t count);
void move_values_set(infer_ctx *c, uint32_t k, const dim *at, uint32_t count);
/* The single value of a constant input, wherever it is one element of an integer type. */
bool move_const_i64(const infer_ctx *c, uint32_t k, int64_t *value);

/* ---- references ---- */
/* Copies one element by its bits. Offsets count elements. */
void move_element(const view *dst, int64_t to, const view *src, int64_t from);
/* Copies a block: both views have the block's dims, and begin `to` and `from` elements behind their data. */
void move_block(const view *dst, int64_t to, const view *src, int64_t from);
void move_block_zero(const view *dst, int64_t to);
/* The view without `count` axes from `axis` on. */
view move_drop(const view *v, uint32_t axis, uint32_t count);
bool move_same_dims(const view *a, const view *b);
/* Copies all of `src` into `dst`, which has the same number of elements, in row-major order of both. */
void move_in_order(const view *dst, const view *src);
/* An index as ONNX has it: negative ones count from the end. False, and a fault, where it is outside. */
bool move_index(ref_call *c, const view *indices, int64_t at, int64_t position, int64_t limit, int64_t *out);
sinter_status move_shape_fault(ref_call *c, const char *what); /* dims that inference would not have allowed */
static inline bool move_given(const ref_call *c, uint32_t k)
{
    return k < c->count_in && c->in[k].dtype != SINTER_DTYPE_NONE;
}
static inline bool move_wanted(const ref_call *c, uint32_t k)
{
    return k < c->count_out && c->out[k].dtype != SINTER_DTYPE_NONE;
}

/* Sorts ids [0 .. count) so that before(a, b) holds nowhere backwards; stable; spare is as long as id. */
typedef bool (*move_before_fn)(const void *user, int64_t a, int64_t b);
void move_sort(int64_t *id, int64_t *spare, int64_t count, move_before_fn before, const void *user);

/* Resize leaves out samples of a smaller weight: coordinates round, and so little of an infinity is all of it. */
#define RESIZE_LEAST_WEIGHT 1e-9

/* Which element of 0 .. n-1 stands at coordinate i of an axis that is filled beyond its ends. */
static inline int64_t pad_source(int64_t mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n) return i;
    if (mode == pad_mode_edge || n == 1) return i < 0 ? 0 : n - 1;
    const int64_t period = mode == pad_mode_wrap ? n : 2 * (n - 1);
    const int64_t at = (i % period + period) % period;
    return at < n ? at : period - at;
}

#endif
