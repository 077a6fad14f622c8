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
/* Do keys and values get new rows? */
bool        attention_appends(const problem *p);
/* Why no kernel here takes it; NULL: some do. */
const char *attention_reject_any(const problem *p);
/* Why no kernel on matrix units takes it; NULL: they may. */
const char *attention_reject_matrix(const problem *p, const kernel_target *t);
/* Has it a mask that is the same for all queries of a head? */
bool        attention_is_keyed(const problem *p);
/* Why no kernel on Hopper's warpgroups takes it; NULL: they may. */
const char *attention_reject_group(const problem *p, const kernel_target *t);
/* Scores are scaled, and that is all. */
bool        attention_is_plain(const problem *p);
/* Elements of a tensor copy's box, the bytes of a line of them, and how many boxes so many elements are. */
enum { ATTENTION_BOX = 64, ATTENTION_LINE = 128 };
uint32_t    attention_boxes(int64_t elements);
/* A launch of a kernel on warpgroups: code `code` of the row. A block takes `rows` queries at a time, and tiles of `bn`
 * keys. most: that many blocks stay; 0: each has its own queries. is_dealt: tiles are in the order of DEALT. */
typedef struct attention_group {
    int64_t  rows, most;
    uint32_t bn, threads, shared, code;
    bool     is_dealt;
} attention_group;
sinter_status attention_bind_group(env *e, const problem *p, const void *attrs, const view *in, const view *out,
                                   const attention_group *g, cuda_record *r);
/* MASK, PAIRS, KEYED, IS_BF16, CAP, CAUSAL and LENGTH of attention.cuh. */
void        attention_define(const problem *p, cuda_code *c);
/* The same, and DEPTH, WIDTH and FOLD of attention_group.cuh, for kernels on Hopper's warpgroups. */
void        attention_define_group(const problem *p, cuda_code *c);
/* Fills x, which lies in a parameter of the launch begun last, and patches its addresses. */
sinter_status attention_fill(env *e, const problem *p, const void *attrs, const view *in, const view *out,
                             cuda_record *r, struct attention_args *x);

#endif
