/* SPDX-License-Identifier: Apache-2.0 */
/* grow_decoder.h - random decoders with keys and values as inputs and outputs, for decode.h. */
#ifndef GROW_DECODER_H
#define GROW_DECODER_H

#include "onnx_bytes.h"
#include <stdbool.h>

/* Where the rows of a cache lie, axes from outermost: heads, rows, size; rows, heads, size; heads, size, rows. */
typedef enum cache_form { CACHE_HEADS, CACHE_ROWS, CACHE_TURNED, CACHE_FORMS } cache_form;
/* None: every key counts (one new row a run); a causal mask from sizes; that and an input with an axis T. */
typedef enum mask_form { MASK_NONE, MASK_CAUSAL, MASK_INPUT, MASK_FORMS } mask_form;

typedef struct decoder {
    int64_t    layers, batch, heads, groups, size, width;   /* heads of keys; query heads for each; of a head */
    cache_form cache;
    mask_form  mask;
    bool       chooses;             /* the mask chooses between scores and a low number; else it is added */
    bool       has_positions, has_recurrence;
    int64_t    type;                /* ONNX's, of the caches: 1, 10 (f16) or 16 (bf16) */
} decoder;

decoder decoder_random(uint64_t *seed);
/* The model's bytes: inputs input_ids, attention_mask, position_ids, past.*; outputs logits, present.*. */
bytes   decoder_model(const decoder *d, uint64_t seed);
void    decoder_print(const decoder *d, char *out, size_t size);

#endif
