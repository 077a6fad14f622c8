/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_row_attention.h - what the rows of attention share: what they take, and the parameters of rows of queries. */
#ifndef CUDA_ROW_ATTENTION_H
#define CUDA_ROW_ATTENTION_H

#include "cuda/device/attention_args.h"
#include "cuda/launch.h"

/* The size of a head: of queries and keys; of values and results. */
int64_t     attention_depth(const problem *p);
int64_t     attention_width(const problem *p);
/* Is how many keys count in memory? */
bool        attention_has_length(const problem *p);
/* Why no kernel here takes it; NULL: some do. */
const char *attention_reject_any(const problem *p);
/* Why no kernel on matrix units takes it; NULL: they may. */
const char *attention_reject_matrix(const problem *p, const kernel_target *t);
/* MASK, PAIRS, IS_BF16, CAP, CAUSAL and LENGTH of attention.cuh. */
void        attention_define(const problem *p, cuda_code *c);
/* Fills x, which lies in a parameter of the launch begun last, and patches its addresses. */
sinter_status attention_fill(env *e, const problem *p, const void *attrs, const view *in, const view *out,
                             cuda_record *r, struct attention_args *x);

#endif
