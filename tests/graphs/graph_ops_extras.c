/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ops_extras.c - optional attributes and results that every node of an operator may have, whatever its operands
 * are. A node gets some of them when it ends. What asks for certain operands stands in the operator's own row. */
#include "graph_ops.h"

typedef enum extra_kind { X_INT, X_REAL } extra_kind;

static const struct {
    const char *op;
    int64_t since;
    const char *name;
    extra_kind kind;
    double at[3]; /* one of these; the last one is repeated where there are fewer */
} extras[] = {
    { "BatchNormalization", 7, "epsilon", X_REAL, { 0.01, 0.5, 0.001 } },
    { "InstanceNormalization", 6, "epsilon", X_REAL, { 0.01, 0.5, 0.001 } },
    { "GroupNormalization", 21, "epsilon", X_REAL, { 0.01, 0.5, 0.001 } },
    { "LayerNormalization", 17, "epsilon", X_REAL, { 0.01, 0.5, 0.001 } },
    { "LayerNormalization", 17, "stash_type", X_INT, { 1, 1, 1 } },
    { "RMSNormalization", 23, "epsilon", X_REAL, { 0.01, 0.5, 0.001 } },
    { "RMSNormalization", 23, "stash_type", X_INT, { 1, 1, 1 } },
    { "LRN", 1, "alpha", X_REAL, { 0.5, 0.01, 1 } },
    { "LRN", 1, "beta", X_REAL, { 0.5, 1, 2 } },
    { "LRN", 1, "bias", X_REAL, { 0.5, 2, 3 } },
    { "AffineGrid", 20, "align_corners", X_INT, { 0, 1, 1 } },
    { "GridSample", 16, "align_corners", X_INT, { 0, 1, 1 } },
    { "AveragePool", 10, "ceil_mode", X_INT, { 1, 1, 0 } },
    { "MaxPool", 10, "ceil_mode", X_INT, { 1, 1, 0 } },
    { "LpPool", 18, "ceil_mode", X_INT, { 1, 1, 0 } },
    { "GlobalLpPool", 2, "p", X_INT, { 1, 2, 3 } },
    { "Hardmax", 13, "axis", X_INT, { 0, -1, 0 } },
    { "HannWindow", 17, "periodic", X_INT, { 0, 1, 0 } },
    { "HannWindow", 17, "output_datatype", X_INT, { 1, 10, 11 } },
    { "HammingWindow", 17, "periodic", X_INT, { 0, 1, 0 } },
    { "HammingWindow", 17, "output_datatype", X_INT, { 1, 10, 11 } },
    { "BlackmanWindow", 17, "periodic", X_INT, { 0, 1, 0 } },
    { "BlackmanWindow", 17, "output_datatype", X_INT, { 1, 10, 11 } },
    { "MelWeightMatrix", 17, "output_datatype", X_INT, { 1, 10, 11 } },
    { "EyeLike", 9, "dtype", X_INT, { 1, 7, 11 } },
    { "LSTM", 7, "clip", X_REAL, { 0.5, 3, 100 } },
    { "LSTM", 7, "input_forget", X_INT, { 1, 0, 0 } },
    { "GRU", 7, "clip", X_REAL, { 0.5, 3, 100 } },
    { "RNN", 7, "clip", X_REAL, { 0.5, 3, 100 } },
    { "Attention", 23, "softcap", X_REAL, { 2, 0.5, 0 } },
    { "LinearAttention", 27, "scale", X_REAL, { 0.5, 0.25, 1 } },
    { "Selu", 6, "alpha", X_REAL, { 0.5, 2, 1 } },
    { "Selu", 6, "gamma", X_REAL, { 0.5, 2, 1 } },
    { "SwiGLU", 1, "alpha", X_REAL, { 0.5, 2, 1 } },
    { "RoiAlign", 16, "spatial_scale", X_REAL, { 0.5, 1, 1 } },
    { "TopK", 10, "sorted", X_INT, { 1, 1, 1 } },
    { "NegativeLogLikelihoodLoss", 13, "ignore_index", X_INT, { 0, 1, -1 } },
    { "SoftmaxCrossEntropyLoss", 13, "ignore_index", X_INT, { 0, 1, -1 } },
    { "STFT", 17, "onesided", X_INT, { 0, 1, 1 } },
    { "CastLike", 19, "saturate", X_INT, { 1, 1, 1 } },
    { "SequenceEmpty", 11, "dtype", X_INT, { 1, 1, 1 } },
    { "ai.onnx.ml.Binarizer", 1, "threshold", X_REAL, { 0.5, -1, 1 } },
    { "com.microsoft.MultiHeadAttention", 1, "scale", X_REAL, { 0.5, 0.25, 1 } },
    { "com.microsoft.Attention", 1, "scale", X_REAL, { 0.5, 0.25, 1 } },
    { "com.microsoft.GroupQueryAttention", 1, "scale", X_REAL, { 0.5, 0.25, 1 } },
    { "com.microsoft.GroupQueryAttention", 1, "softcap", X_REAL, { 2, 0.5, 0 } },
    { "com.microsoft.GroupQueryAttention", 1, "local_window_size", X_INT, { 1, 2, 3 } },
    { "com.microsoft.GroupQueryAttention", 1, "smooth_softmax", X_INT, { 1, 1, 0 } },
    { "com.microsoft.QuickGelu", 1, "alpha", X_REAL, { 0.5, 1, 1.702 } },
    { "com.microsoft.QLinearLeakyRelu", 1, "alpha", X_REAL, { 0.5, 0.1, 0.01 } },
    { "com.microsoft.QGemm", 1, "alpha", X_REAL, { 0.5, 2, 1 } },
    { "com.microsoft.QAttention", 1, "scale", X_REAL, { 0.5, 0.25, 1 } },
    { "com.microsoft.QAttention", 1, "unidirectional", X_INT, { 0, 1, 1 } },
    { "com.microsoft.SkipLayerNormalization", 1, "epsilon", X_REAL, { 0.01, 0.5, 0.001 } },
    { "com.microsoft.SkipSimplifiedLayerNormalization", 1, "epsilon", X_REAL, { 0.01, 0.5, 0.001 } },
    { "com.microsoft.RotaryEmbedding", 1, "scale", X_REAL, { 1, 1, 1 } },
};

/* Results behind those that a row asks for. Bit i: result i may be named. */
static const struct {
    const char *op;
    int64_t since;
    uint32_t count, named;
} results[] = {
    { "LayerNormalization", 17, 3, 7 },
    { "Dropout", 12, 2, 3 },
    { "SoftmaxCrossEntropyLoss", 13, 2, 3 },
    { "com.microsoft.SkipLayerNormalization", 1, 4, 9 },
    { "com.microsoft.SkipSimplifiedLayerNormalization", 1, 4, 9 },
};

void grow_extras(grow *g, uint32_t node, uint32_t *outputs)
{
    const char *op = g->m->node.at[node].op;
    const int64_t opset = strchr(op, '.') ? INT64_MAX : g->m->opset;
    for (uint32_t i = 0; i < COUNT_OF(extras); i++) {
        if (strcmp(extras[i].op, op) != 0 || opset < extras[i].since || !grow_one_in(g, 3)) continue;
        if (gnode_find(&g->m->node.at[node], extras[i].name)) continue;
        const double x = extras[i].at[grow_below(g, 3)];
        if (extras[i].kind == X_INT) grow_int(g, node, extras[i].name, (int64_t)x);
        else grow_real(g, node, extras[i].name, x);
    }
    for (uint32_t i = 0; i < COUNT_OF(results); i++)
        if (!strcmp(results[i].op, op) && opset >= results[i].since && *outputs < results[i].count && grow_one_in(g, 4))
            *outputs = results[i].count;
}

bool grow_names(const char *op, uint32_t output)
{
    for (uint32_t i = 0; i < COUNT_OF(results); i++)
        if (!strcmp(results[i].op, op)) return results[i].named >> output & 1;
    return true;
}
