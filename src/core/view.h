/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - a tensor seen through strides: what every kernel is given.
 *
 * Dims are in ONNX order whatever the memory order is: a layout is strides, never a change of axes. */
#ifndef CORE_VIEW_H
#define CORE_VIEW_H

#include "core/dtype.h"
#include "base/env.h"

typedef struct view {
    sinter_dtype dtype;                     /* SINTER_DTYPE_NONE: an optional operand that is absent */
    uint32_t     rank;
    int64_t      dim[SINTER_RANK_MAX];
    int64_t      stride[SINTER_RANK_MAX];   /* elements; 0 repeats; may be negative */
    void        *data;                      /* element [0, 0, …] */
} view;

/* A dense row-major view; false where its element count or byte size overflows. */
bool    view_init(view *v, sinter_dtype dtype, uint32_t rank, const int64_t *dim, void *data);
int64_t view_count(const view *v);                                  /* elements; a verified view cannot overflow */
/* row-major without gaps; axes of size 1 do not matter */
bool    view_is_dense(const view *v);
int64_t view_offset(const view *v, const int64_t *index);           /* elements from data */
double  view_load_f64(const view *v, int64_t offset);
int64_t view_load_i64(const view *v, int64_t offset);
void    view_store_f64(const view *v, int64_t offset, double value);
void    view_store_i64(const view *v, int64_t offset, int64_t value);

/* Steps an index over dims in row-major order; view_first is false for an empty shape:
 *     for (bool more = view_first(dim, rank, i); more; more = view_next(dim, rank, i)) */
bool view_first(const int64_t *dim, uint32_t rank, int64_t *index);
bool view_next(const int64_t *dim, uint32_t rank, int64_t *index);

/* Copies elements between views of one shape and type, any strides; bytes are kept as they are. */
void view_copy(const view *dst, const view *src);
/* The bytes between the first and the last that elements lie in: [*begin, *end). False where there are no elements. */
bool view_span(const view *v, uintptr_t *begin, uintptr_t *end);
/* May they have a byte in common? Exact for dense views and for parts of one larger tensor; true where it cannot be
 * told. */
bool view_overlaps(const view *a, const view *b);
/* The same elements in the same places. */
bool view_is_same(const view *a, const view *b);
/* `v` seen in the shape `dim` by the rules of broadcasting (right-aligned, size 1 repeats). False where it cannot. */
bool view_broadcast(const view *v, uint32_t rank, const int64_t *dim, view *out);

#endif
