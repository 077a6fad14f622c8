/* SPDX-License-Identifier: Apache-2.0 */
/* contract.h - contractions seen alike: matrix products, convolutions and einsum as sums of products over axes.
 *
 *   D[batch, left, right] = sum over depth of in0[batch, left, depth] * in1[batch, right, depth]
 *
 * Each of the four roles is a few axes, innermost last, by which the two operands step with a stride (0: repeated). In
 * a convolution in0 is a window: its left axes are (image, positions…), depth is (taps…, channel). A transposed
 * convolution is a convolution for each phase of its stride: the first batch axes are the phases. What depends on the
 * problem alone (which axes there are, what they are of) is the same whatever the views. */
#ifndef CUDA_CONTRACT_H
#define CUDA_CONTRACT_H

#include "cuda/device/simt_args.h"
#include "cuda/product.h"
#include "ops/problem.h"

enum { CONTRACT_AXES = 6, CONTRACT_SPATIAL = 3, CONTRACT_PHASES = 8 };
typedef enum contract_role {
    CONTRACT_BATCH, CONTRACT_LEFT, CONTRACT_RIGHT, CONTRACT_DEPTH, CONTRACT_ROLES
} contract_role;

typedef struct contract_axis {
    int64_t   size;
    dim_range range;                /* what the problem knows of the size */
    bool      has[2];               /* the operand steps along it */
    int8_t    of[2];                /* axis of the operand, one element a step; -1: another step, several, none */
    int64_t   stride[2], zero[2];   /* elements, of operands and of their zero points */
    int8_t    axis0;                /* axis of in0 along which it moves, step0 coordinates a step; -1: none */
    int64_t   step0;
    int8_t    out;                  /* axis of the result whose coordinate it moves; -1: none */
    int64_t   out_step;
} contract_axis;

typedef struct contract {
    uint32_t      count[CONTRACT_ROLES];                    /* at least 1 */
    contract_axis axis[CONTRACT_ROLES][CONTRACT_AXES];
    int           inner;                                    /* the result's innermost axis of more than 1; -1: none */
    bool          is_swapped;                               /* inner is one of left: columns are left, rows right */
    /* the window */
    bool     is_window;
    uint32_t spatial, phases;                               /* axes; phases: 0, or spatial */
    int64_t  in[CONTRACT_SPATIAL], out[CONTRACT_SPATIAL], line_step[CONTRACT_SPATIAL], tap_step[CONTRACT_SPATIAL],
        in_stride[CONTRACT_SPATIAL], start[CONTRACT_SPATIAL][CONTRACT_PHASES];
    /* transposed: the filter's tap of step 0 in a phase (-1: none), and between steps */
    int64_t  tap_first[CONTRACT_SPATIAL][CONTRACT_PHASES], tap_by[CONTRACT_SPATIAL], taps[CONTRACT_SPATIAL];
    bool     is_full;                                       /* there were more axes than fit */
} contract;

/* Views of the first four inputs and of result 0 as the problem states them, dense in their order. */
typedef enum contract_at { CONTRACT_OPT, CONTRACT_MAX } contract_at;
void        contract_views(const problem *p, contract_at at, view in[4], view *out);
/* matmul, matmul_integer, conv, conv_integer, conv_transpose (constant filter), einsum of two operands. NULL, or why
 * not. in: at least min(4, count_in). */
const char *contract_of(const problem *p, const void *attrs, const view *in, const view *out, contract *c);
/* The same where the weight may be packed, too: operand 1 is its codes. */
const char *contract_with_codes(const problem *p, const void *attrs, const view *in, const view *out, contract *c);
int64_t     contract_size(const contract *c, contract_role role);
/* Where operand `input` is at position `at` of a role's axes (only_own: of those that it steps along); each index. */
int64_t     contract_offset(const contract *c, contract_role role, uint32_t input, bool only_own, int64_t at,
                            int64_t index[CONTRACT_AXES]);

/* For kernels: "constexpr i32 batch_out[n] = { … };", row_out and col_out, the result's axis that each axis of a role
 * moves; and sizes as parameters. Errors: UNSUPPORTED, more lines than 32 bits count. */
void          contract_text_outs(text *to, const contract *c, contract_role rows, contract_role cols);
/* "constexpr i32 pro_batch_axis[n] = { … };" and so on for pro_line (role) and pro_depth: axis0 of each; and what they
 * step by as parameters. */
void          contract_text_prologue(text *to, const contract *c, contract_role role);
void          contract_prologue(const contract *c, contract_role role, struct simt_prologue *to);
/* The sizes in `to`: rows and columns are of these roles. */
sinter_status contract_sizes(env *e, const contract *c, contract_role rows, contract_role cols, struct simt_args *to);
/* The steps of operand `input`, whose lines are of the role: along them and depth. */
void          contract_steps(const contract *c, contract_role role, uint32_t input, struct simt_operand *to);

#endif
