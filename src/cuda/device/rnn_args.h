/* SPDX-License-Identifier: Apache-2.0 */
/* rnn_args.h - parameters of rnn.cu: a recurrent layer's operands with their strides in elements. */
#ifndef CUDA_DEVICE_RNN_ARGS_H
#define CUDA_DEVICE_RNN_ARGS_H

#include "device_args.h"

enum { RNN_SIGMOID, RNN_TANH, RNN_RELU, RNN_AFFINE, RNN_LEAKY_RELU, RNN_THRESHOLDED_RELU, RNN_SCALED_TANH,
       RNN_HARD_SIGMOID, RNN_ELU, RNN_SOFTSIGN, RNN_SOFTPLUS };       /* in the order of ops/rnn.c */
enum { RNN_CELL_RNN, RNN_CELL_GRU, RNN_CELL_LSTM };
/* Of the product with the input: rows and columns of a tile; numbers of a step, threads; plain, by tensor cores. */
enum { RNN_TILE = 64, RNN_PLAIN_DEEP = 16, RNN_PLAIN_THREADS = 256, RNN_DEEP = 64, RNN_PITCH = RNN_DEEP + 8,
       RNN_STAGES = 3, RNN_THREADS = 128 };

struct rnn_act { double alpha, beta; natural kind, unused; };

struct rnn_args {
    address x, w, r, bias, lengths, h0, c0, peephole, y, y_h, y_c;      /* 0: absent */
    address part;                       /* [steps, batch, directions, gates * hidden]: x W + biases */
    wide sx[3], sw[3], sr[3], sb[2], sl, sh[3], sc[3], sp[2], sy[4], syh[3], syc[3];
    struct rnn_act act[2][3];
    double clip;                        /* 0: none */
    small steps, batch, inputs, hidden, directions, first_is_reverse;
    small slices, unused;               /* parts of the batch, one cluster each */
};

#endif
