/* SPDX-License-Identifier: Apache-2.0 */
/* quirks_attention.h - what the conversions of attention share. */
#ifndef ONNX_QUIRKS_ATTENTION_H
#define ONNX_QUIRKS_ATTENTION_H

#include "onnx/quirks.h"

/* Queries, keys and values [B, H, S, D], and one mask: boolean, or numbers that are added. */
typedef struct quirk_heads {
    ir_value_id q, k, v, mask;
    double scale, softcap;
    bool causal;
} quirk_heads;

ir_value_id quirk_heads_apart(onnx_call *c, ir_value_id v, int64_t heads);      /* [B, S, H*D] to [B, H, S, D] */
ir_value_id quirk_heads_together(onnx_call *c, ir_value_id v);                  /* and back */
ir_value_id quirk_masks_joined(onnx_call *c, ir_value_id a, ir_value_id b);     /* 0: none */
void        quirk_scale_default(onnx_call *c, quirk_heads *h);                  /* 1 over the root of a head's size */
ir_value_id quirk_attended(onnx_call *c, const quirk_heads *h);
/* A padding mask of com.microsoft's operators as numbers that are added; 0: none. */
ir_value_id quirk_padding(onnx_call *c, ir_value_id mask, const quirk_heads *h);
/* The scores at one of four stages: 0 as they are, 1 behind the cap, 2 behind the mask, 3 behind the softmax. */
ir_value_id quirk_scores(onnx_call *c, const quirk_heads *h, int64_t mode, dim past);

#endif
