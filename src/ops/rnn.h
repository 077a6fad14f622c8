/* SPDX-License-Identifier: Apache-2.0 */
/* rnn.h - the activations of recurrent layers, read from their names. */
#ifndef OPS_RNN_H
#define OPS_RNN_H

#include "ops/ops.h"

enum { RNN_ACTIVATIONS_MAX = 6 };
typedef struct rnn_activation { uint32_t kind; double alpha, beta; } rnn_activation;
typedef struct rnn_common {             /* the attributes that the three ops share */
    int64_t           direction;
    const char       *activations;
    const attr_reals *alpha, *beta;
    double            clip;
} rnn_common;
/* The attributes of an lstm, gru or rnn. gates: rows of weight for each unit; count_each: activations of each
 * direction. */
rnn_common rnn_common_of(op_id op, const void *attrs, uint32_t *gates, uint32_t *count_each);
/* Fills directions * count_each activations; those not named are the op's defaults. */
sinter_status rnn_activations_parse(env *e, op_id op, const void *attrs, rnn_activation out[RNN_ACTIVATIONS_MAX]);
double rnn_activation_eval(const rnn_activation *a, double x);
static inline uint32_t rnn_directions(int64_t direction) { return direction == rnn_direction_bidirectional ? 2 : 1; }

#endif
