/* SPDX-License-Identifier: Apache-2.0 */
/* attention_args.h - parameters of attention.cu and attention_any.cu. Strides in elements. */
#ifndef CUDA_DEVICE_ATTENTION_ARGS_H
#define CUDA_DEVICE_ATTENTION_ARGS_H

#include "device_args.h"

struct attention_args {
    address q, k, v, y, mask, length;   /* mask 0: none; length: i64, where there is one: how many keys count */
    wide    q_stride[4], k_stride[4], v_stride[4], y_stride[4];    /* batch, head, token, element */
    wide    mask_stride[4];             /* batch, head, query, key; 0 where it repeats */
    small   heads, group;               /* of the queries; query heads that share a key head */
    small   queries, keys, depth, width;    /* depth: of q and k; width: of v and y */
    float   scale, cap;                 /* cap 0: none */
    small   causal;
    small   trigger;                    /* attention_few: 1: at the top, 3: behind the main loop */
    /* attention_few with APPEND: rows that take their places in the keys and values of a batch from start on */
    address new_k, new_v, k_to, v_to, start, fault; /* k_to, v_to: where k and v lie, to be written; start: i64 */
    wide    new_k_stride[4], new_v_stride[4], start_stride;
    small   added;                      /* rows */
    natural step;                       /* of the fault */
};

#endif
