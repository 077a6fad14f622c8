/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - an op that works along axes, in the fewest axes that say the same.
 *
 * The input's axes are kept or gone (reduced, normalised over, sorted along). Neighbours of one kind that all operands
 * see as one are joined, axes of one element dropped, and every operand is seen with all axes, those it lacks being of
 * size 1: the rebuilt problem. A normalisation's scale and bias become operands of its epilogue. So [N, C, H, W] in
 * channels-last order reduced over H and W is [N, C, HW], and kernels know kept axes, gone axes and which is innermost.
 */
#ifndef CUDA_LINES_H
#define CUDA_LINES_H

#include "cuda/cuda_emit.h"

/* clang-format off */
enum { LINES_OPERANDS = 16, LINES_FULL = SINTER_RANK_MAX + 1 };

typedef struct lines {
    problem         p;                  /* rebuilt; operands keep their numbers */
    problem_operand in[LINES_OPERANDS], out[LINES_OPERANDS];
    uint32_t rank;
    uint32_t gone_mask;                 /* bit per axis */
    /* in the input's order in memory, outermost first */
    uint8_t  kept[SINTER_RANK_MAX], gone[SINTER_RANK_MAX], kept_count, gone_count;
    uint8_t  inner;                     /* the innermost axis of the input in memory */
    bool     is_rows;                   /* it is gone */
    bool     is_same_space;             /* operands of the epilogue have the input's axes */
    /* how it came about: full axes (the problem's; one may be split in groups and members), and what became of them */
    uint32_t full;
    uint8_t  source[LINES_FULL], part[LINES_FULL];      /* axis of the problem; 0 whole, 1 groups, 2 members */
    int8_t   merged[LINES_FULL];                        /* -1: dropped */
    int64_t  members;
    int8_t   own_in[LINES_OPERANDS][LINES_FULL], own_out[LINES_OPERANDS][LINES_FULL];   /* -1: it has none */
    _Alignas(expr_instr) uint8_t program[sizeof(expr) + EXPR_MAX * sizeof(expr_instr)];     /* of the epilogue */
} lines;
/* clang-format on */

/* Why not, or NULL. Ops: reduce, arg_reduce, softmax, log_softmax, lp_norm, layer_norm, rms_norm, group_norm, cumulate
 * and top_k. by_channel: of group_norm, whose channels are then all kept, as if each were a group. */
const char *lines_of(const problem *p, bool by_channel, lines *l);
/* LINE_F32 … of device/line_args.h; -1: the kernels have none. */
int         lines_type_of(sinter_dtype dtype);
/* An operand's view as the rebuilt problem sees it. */
void        lines_view(const lines *l, bool is_out, uint32_t index, const view *v, view *to);

#endif
