/* SPDX-License-Identifier: Apache-2.0 */
/* padding.h - axes of which only the first elements count: does what lies behind them (the padding) reach an element of
 * a result that counts? */
#ifndef OPS_PADDING_H
#define OPS_PADDING_H

#include "ops/ops.h"

typedef enum padding_fate {
    PADDING_REACHES,    /* it may; `why` says how */
    PADDING_STAYS,      /* it does not: a result's padding lies along the same axes, or along none */
    PADDING_PASSES,     /* the same, and each element of the result is one of input 0 */
    PADDING_IS_CUT,     /* it stays unless the sizes of the slice say otherwise */
    PADDING_IS_SIZE,    /* the op gives sizes as data */
    PADDING_MASKED,     /* it stays where what softmax reads there is -infinity; it is 0 then */
    PADDING_SUMMED,     /* it stays where it is 0 in both factors */
    PADDING_COUNTED,    /* it stays where indices below 0 count from the end of what counts */
    PADDING_LIMITED     /* attention: it stays where a length is given */
} padding_fate;

typedef struct padding_call {
    op_id           op;
    const void     *attrs;
    uint32_t        count_in;
    const uint32_t *rank, *padded;      /* of each input: its rank; bits of its padded axes */
    const char     *why;                /* receives the reason, for PADDING_REACHES */
} padding_call;
padding_fate op_padding(padding_call *c);

#endif
