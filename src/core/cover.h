/* SPDX-License-Identifier: Apache-2.0 */
/* cover.h - sets of bits that views cover: which part of a storage was written.
 *
 * A set is a list of boxes: runs of adjacent bits, repeated at strides. Parts that lie side by side become one box, so
 * that what a concatenation writes by address is soon one run, in whatever order the parts come. */
#ifndef CORE_COVER_H
#define CORE_COVER_H

#include "base/arena.h"
#include "sinter/tensor.h"

/* `run` bits at `at`, and the same again count - 1 times at each level's stride; strides ascend. */
typedef struct cover_box {
    int64_t  at, run;
    uint32_t levels;
    struct { int64_t count, stride; } level[SINTER_RANK_MAX];
} cover_box;

typedef struct cover_set {
    arena   *a;
    VEC(cover_box) box;
    uint32_t join_at;       /* so many boxes are looked at for neighbours again */
    bool     is_joined;     /* they were, and none has come since */
} cover_set;

/* What elements of `bits` bits at `offset` cover, with these dims and strides (elements). False: there are none. */
bool    cover_box_of(uint32_t bits, uint32_t rank, const int64_t *dim, const int64_t *stride, int64_t offset,
                     cover_box *out);
int64_t cover_end(const cover_box *b);              /* behind its last bit */
/* False without memory: the arena says so. The set keeps its arena in `a`. */
bool    cover_add(cover_set *s, const cover_box *b);
/* Each of the next two compares boxes, and counts that in *work. */
bool    cover_has(cover_set *s, const cover_box *b, uint64_t *work);
/* Has `b` a bit in common with the set? False where that takes too long to tell: thousands of runs at odd strides. */
bool    cover_touches(const cover_set *s, const cover_box *b, uint64_t *work);
bool    cover_boxes_touch(const cover_box *a, const cover_box *b);

#endif
