/* SPDX-License-Identifier: Apache-2.0 */
/* copy_move.h - the same elements in two places: what the rows of copies make of their operands. */
#ifndef CUDA_COPY_MOVE_H
#define CUDA_COPY_MOVE_H

#include "cuda/launch.h"

enum {
    MOVE_AXES = 2 * SINTER_RANK_MAX,
    BLOCK_SIDE = 64,    /* of a block that is turned over, in elements, at most */
    RUN_BYTES = 64      /* what runs on both sides by so much is copied as it lies */
};

/* Elements of `bytes` in two places: outermost axis first, steps in bytes. */
typedef struct move {
    uint32_t count, bytes;
    int64_t size[MOVE_AXES], from[MOVE_AXES], to[MOVE_AXES];
    int64_t offset_in, offset_out;
} move;

/* Axes in the order of the destination, joined where both sides run on. */
void          move_order(move *m);
/* Of an ordered move: do both sides run on together, so that blocks gain nothing? Along which axes the source is
 * repeated is known no earlier than here. */
bool          move_runs_together(const move *m);
/* A launch of code 0, device/transpose.cu, of an ordered move without axes of size 0: blocks of `side` * `side`
 * elements. */
sinter_status move_bind_block(env *e, const move *m, uint32_t side, cuda_record *r);
sinter_status move_too_large(env *e);

#endif
