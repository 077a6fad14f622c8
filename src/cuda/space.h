/* SPDX-License-Identifier: Apache-2.0 */
/* space.h - the space of a problem in the order of memory: what kernels that go over results one by one share.
 *
 * Axes of one element are dropped, and axes that every operand of the program walks as one are joined, so that most
 * spaces have one axis or two. The space is a problem of its own, whose axes stand from outermost to innermost of
 * result 0; operand numbers are those of the problem it was made from. */
#ifndef CUDA_SPACE_H
#define CUDA_SPACE_H

#include "cuda/cuda_emit.h"

enum { SPACE_IN = 64, SPACE_OUT = 32 };

typedef struct space {
    problem  p;                         /* operands that the program does not use are left out (rank 0) */
    uint32_t rank, count;               /* of result 0; axes of the space */
    uint8_t  first[SINTER_RANK_MAX], last[SINTER_RANK_MAX];     /* of an axis: axes of the results, see `axis` */
    uint8_t  axis[SINTER_RANK_MAX];     /* axes of the results in the order of memory */
    emit_space emit;
    problem_operand in[SPACE_IN], out[SPACE_OUT];
} space;

/* The space of `program` (NULL: result 0 is stored as it is). joins: axes may be joined; else each axis is one of the
 * space and axes of one element stay. NULL, or why it cannot be. as_bits: without a program elements are copied
 * whatever their type is. */
const char *space_init(const problem *p, const expr *program, bool joins, bool as_bits, space *s);
/* The unsigned type of the same size; NONE for those under a byte. */
sinter_dtype space_bits(sinter_dtype dtype);
/* Bytes of elements of the widest and the narrowest type of the program's operands. */
void        space_sizes(const space *s, uint32_t *widest, uint32_t *narrowest);
/* The most elements at once that every result, and every operand whose elements are adjacent, can take. */
uint32_t    space_vector(const space *s, uint32_t most);
/* Rows are known to be whole vectors of `width`. */
bool        space_is_even(const space *s, uint32_t width);
/* There may be more vectors of `width` than 32 bits count: WIDE of the kernels' sources. */
bool        space_is_wide(const space *s, uint32_t width);
int64_t     space_count(const space *s);                            /* elements at opt */
/* A view of an operand of the problem as the space sees it. */
view        space_view(const space *s, const view *v, const problem_operand *seen);
/* Adds emit's parameter for the views of the problem. */
sinter_status space_bind(env *e, const space *s, const view *in, const view *out, cuda_record *r);
/* The sizes of the space's axes. */
void        space_dims(const space *s, const view *out, int64_t *size_at);

#endif
