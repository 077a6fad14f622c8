/* SPDX-License-Identifier: Apache-2.0 */
/* attention_wgmma_args.h - parameters of attention_wgmma.cu: tensor maps over (element, token, head, batch). */
#ifndef CUDA_DEVICE_ATTENTION_WGMMA_ARGS_H
#define CUDA_DEVICE_ATTENTION_WGMMA_ARGS_H

#include "attention_args.h"

struct attention_wgmma_args {
    ALIGNED(64) unsigned char map_q[128];       /* boxes of 64 elements by 64 queries */
    ALIGNED(64) unsigned char map_k[128];       /* 64 elements by BN keys */
    ALIGNED(64) unsigned char map_v[128];
    struct attention_args rows;                 /* q, k, v: not used */
    small tiles, items;                         /* of a head's queries; those of all heads */
    struct fast_div by_tiles, by_lines, by_heads, by_group;     /* lines: heads of all batches */
};

#endif
