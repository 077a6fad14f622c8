/* SPDX-License-Identifier: Apache-2.0 */
/* einsum.h - an einsum equation as lists of labels: 0..51 are the letters, from 52 on the axes of an ellipsis, counted
 * from the right, so that broadcasting lines them up. */
#ifndef OPS_EINSUM_H
#define OPS_EINSUM_H

#include "ops/ops.h"

enum { EINSUM_LETTERS = 52, EINSUM_LABELS = EINSUM_LETTERS + SINTER_RANK_MAX, EINSUM_IN_MAX = 16 };
typedef struct einsum_term { uint32_t count; uint8_t label[SINTER_RANK_MAX]; } einsum_term;
typedef struct einsum {
    uint32_t    count_in;
    einsum_term in[EINSUM_IN_MAX], out;
} einsum;
/* rank: of each input. */
sinter_status einsum_parse(env *e, const char *equation, uint32_t count_in, const uint32_t *rank, einsum *out);

#endif
