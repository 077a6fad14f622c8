/* SPDX-License-Identifier: Apache-2.0 */
/* network_table.c - layers.def as a table. */
#include "network/network.h"

#include <string.h>

/* clang-format off */
#define WORD(name, value, word) "|" word
#define WORDS_NO NULL
#define WORD_LIST(map) (&(map(WORD))[1])
#define WORDS_ACTIVATION   WORD_LIST(SINTER_ACTIVATION_MAP)
#define WORDS_POOLING      WORD_LIST(SINTER_POOLING_MAP)
#define WORDS_ELEMENTWISE  WORD_LIST(SINTER_ELEMENTWISE_MAP)
#define WORDS_UNARY        WORD_LIST(SINTER_UNARY_MAP)
#define WORDS_REDUCTION    WORD_LIST(SINTER_REDUCTION_MAP)
#define WORDS_SCALE_MODE   WORD_LIST(SINTER_SCALE_MODE_MAP)
#define WORDS_MATRIX       WORD_LIST(SINTER_MATRIX_MAP)
#define WORDS_TOPK         WORD_LIST(SINTER_TOPK_MAP)
#define WORDS_GATHER       WORD_LIST(SINTER_GATHER_MAP)
#define WORDS_SCATTER      WORD_LIST(SINTER_SCATTER_MAP)
#define WORDS_SAMPLE       WORD_LIST(SINTER_SAMPLE_MAP)
#define WORDS_INTERPOLATION WORD_LIST(SINTER_INTERPOLATION_MAP)
#define WORDS_COORDINATE   WORD_LIST(SINTER_COORDINATE_MAP)
#define WORDS_SELECTOR     WORD_LIST(SINTER_SELECTOR_MAP)
#define WORDS_ROUNDING     WORD_LIST(SINTER_ROUNDING_MAP)
#define WORDS_PADDING_MODE WORD_LIST(SINTER_PADDING_MODE_MAP)
#define WORDS_FILL         WORD_LIST(SINTER_FILL_MAP)
#define WORDS_TRIP_LIMIT   WORD_LIST(SINTER_TRIP_LIMIT_MAP)
#define WORDS_LOOP_OUTPUT  WORD_LIST(SINTER_LOOP_OUTPUT_MAP)
#define WORDS_BOX          WORD_LIST(SINTER_BOX_MAP)
#define WORDS_CUMULATIVE   WORD_LIST(SINTER_CUMULATIVE_MAP)
#define WORDS_NORM_OP      WORD_LIST(SINTER_NORM_OP_MAP)
#define WORDS_CAUSAL       WORD_LIST(SINTER_CAUSAL_MAP)
#define WORDS_FORM         WORD_LIST(SINTER_FORM_MAP)
#define WORDS_CACHE_MODE   WORD_LIST(SINTER_CACHE_MODE_MAP)
#define WORDS_MOE          WORD_LIST(SINTER_MOE_MAP)

#define LIST NETWORK_LIST
#define PARAM(kind, name, initial, words, text) { #name, SINTER_PARAM_##kind, initial, WORDS_##words, text },
#define LAYER(KIND, name, ...) static const sinter_param params_##name[] = { PARAMS_##name(PARAM) { 0 } };
#include "network/layers.def"
#undef LAYER
#define LAYER(KIND, name, in_min, in_max, outs, tensorrt, call) \
    { SINTER_LAYER_##KIND, #name, #name, in_min, in_max, outs, params_##name, tensorrt, call, lower_##name },
static const network_row rows[] = {
#include "network/layers.def"
};
#undef LAYER
/* clang-format on */

const network_row *network_row_of(sinter_layer_kind kind)
{
    for (uint32_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].kind == kind) return &rows[i];
    return NULL;
}

const char *network_kind_name(sinter_layer_kind kind)
{
    switch (kind) {
#define SINTER_X(name, value, word)                                                                                    \
    case SINTER_LAYER_##name: return word;
        SINTER_LAYER_KIND_MAP(SINTER_X)
#undef SINTER_X
    }
    return "";
}
