/* SPDX-License-Identifier: Apache-2.0 */
/* rnn.c - the activations of recurrent layers: names, defaults and functions.
 *
 * alpha and beta are lists without gaps: each activation that has the parameter takes the next value, in order. */
#include "ops/rnn.h"
#include <ctype.h>
#include <inttypes.h>
#include <math.h>

enum { SIGMOID, TANH, RELU, AFFINE, LEAKY_RELU, THRESHOLDED_RELU, SCALED_TANH, HARD_SIGMOID, ELU, SOFTSIGN, SOFTPLUS };

/* clang-format off */
static const struct { const char *name; bool has_alpha, has_beta; double alpha, beta; } activations[] = {
    [SIGMOID]          = { "sigmoid", false, false, 0, 0 },
    [TANH]             = { "tanh", false, false, 0, 0 },
    [RELU]             = { "relu", false, false, 0, 0 },
    [AFFINE]           = { "affine", true, true, 1, 0 },
    [LEAKY_RELU]       = { "leakyrelu", true, false, 0.01, 0 },
    [THRESHOLDED_RELU] = { "thresholdedrelu", true, false, 1, 0 },
    [SCALED_TANH]      = { "scaledtanh", true, true, 1, 1 },
    [HARD_SIGMOID]     = { "hardsigmoid", true, true, 0.2, 0.5 },
    [ELU]              = { "elu", true, false, 1, 0 },
    [SOFTSIGN]         = { "softsign", false, false, 0, 0 },
    [SOFTPLUS]         = { "softplus", false, false, 0, 0 },
};
/* clang-format on */

rnn_common rnn_common_of(op_id op, const void *attrs, uint32_t *gates, uint32_t *count_each)
{
    if (op == OP_lstm) {
        const attrs_lstm *a = attrs;
        *gates = 4;
        *count_each = 3;
        return (rnn_common){ a->direction, a->activations, &a->alpha, &a->beta, a->clip };
    }
    if (op == OP_gru) {
        const attrs_gru *a = attrs;
        *gates = 3;
        *count_each = 2;
        return (rnn_common){ a->direction, a->activations, &a->alpha, &a->beta, a->clip };
    }
    const attrs_rnn *a = attrs;
    *gates = 1;
    *count_each = 1;
    return (rnn_common){ a->direction, a->activations, &a->alpha, &a->beta, a->clip };
}

/* The activation named at[0 .. length), in any case of letters; -1: none. */
static int kind_of(const char *at, size_t length)
{
    for (int kind = 0; kind < (int)COUNT_OF(activations); kind++) {
        const char *name = activations[kind].name;
        size_t i = 0;
        while (i < length && name[i] && tolower((unsigned char)at[i]) == name[i]) i++;
        if (i == length && !name[i]) return kind;
    }
    return -1;
}

sinter_status rnn_activations_parse(env *e, op_id op, const void *attrs, rnn_activation out[RNN_ACTIVATIONS_MAX])
{
    static const uint32_t initial_lstm[] = { SIGMOID, TANH, TANH };
    static const uint32_t initial_gru[] = { SIGMOID, TANH };
    static const uint32_t initial_rnn[] = { TANH };
    const uint32_t *initial = op == OP_lstm ? initial_lstm : op == OP_gru ? initial_gru : initial_rnn;
    uint32_t gates;
    uint32_t each;
    const rnn_common common = rnn_common_of(op, attrs, &gates, &each);
    if (common.direction < 0 || common.direction >= rnn_direction_count) {
        return FAIL(e, INVALID_MODEL, "direction is %" PRId64 ", wanted 0 to %d", common.direction,
                    rnn_direction_count - 1);
    }
    const uint32_t count = each * rnn_directions(common.direction);
    uint32_t found = 0;
    for (const char *p = common.activations; *p;) {
        const size_t length = strcspn(p, ",");
        const int kind = kind_of(p, length);
        if (kind < 0)
            return FAIL(e, UNSUPPORTED, "activation '%.*s' is not known", (int)(length < 40 ? length : 40), p);
        if (found == count)
            return FAIL(e, INVALID_MODEL, "more than %" PRIu32 " activations in '%s'", count, common.activations);
        out[found++].kind = (uint32_t)kind;
        p += length;
        if (*p == ',') p++;
    }
    if (found && found != count) {
        return FAIL(e, INVALID_MODEL, "%" PRIu32 " activations in '%s', wanted %" PRIu32, found, common.activations,
                    count);
    }
    uint32_t next_alpha = 0;
    uint32_t next_beta = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!found) out[i].kind = initial[i % each];
        const uint32_t kind = out[i].kind;
        out[i].alpha = activations[kind].alpha;
        out[i].beta = activations[kind].beta;
        if (activations[kind].has_alpha && next_alpha < common.alpha->count)
            out[i].alpha = common.alpha->at[next_alpha++];
        if (activations[kind].has_beta && next_beta < common.beta->count) out[i].beta = common.beta->at[next_beta++];
    }
    return SINTER_OK;
}

/* Cut to [0, 1]; NaN stays. */
static double unit(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

double rnn_activation_eval(const rnn_activation *a, double x)
{
    switch (a->kind) {
    case SIGMOID: return 1 / (1 + exp(-x));
    case TANH: return tanh(x);
    case RELU: return x < 0 ? 0 : x;
    case AFFINE: return a->alpha * x + a->beta;
    case LEAKY_RELU: return x < 0 ? a->alpha * x : x;
    case THRESHOLDED_RELU: return x >= a->alpha ? x : 0;
    case SCALED_TANH: return a->alpha * tanh(a->beta * x);
    case HARD_SIGMOID: return unit(a->alpha * x + a->beta);
    case ELU: return x < 0 ? a->alpha * expm1(x) : x;
    case SOFTSIGN: return x / (1 + fabs(x));
    default: return x > 30 ? x : log1p(exp(x)); /* SOFTPLUS */
    }
}
