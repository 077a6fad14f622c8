/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_rnn.h - lstm, gru and rnn in f32 with the usual activations.
 *
 * The products with the inputs are made for many steps at once; a step is then one small product with the state, whose
 * store adds them, and a pass over the gates. Sequences are independent: directions and blocks of the batch are what
 * workers share. Chunks of steps bound the memory, so that the number of steps need not be known. */
#ifndef CPU_RNN_H
#define CPU_RNN_H

#include "cpu/gemm.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RNN_ROWS = 16, RNN_CHUNK = 256 };    /* sequences of a tile; rows of input products at a time */

/* The cells of one instruction set: a sequence and a step at a time. n: hidden units. */
typedef struct rnn_set {
    /* gate: the sums of i, o, f, n; peep: NULL or the weights of i, o, f. */
    void (*lstm)(const float *gate, const float *peep, float *c, float *h, int64_t n);
    /* from_x, from_h: the two halves of the sums of z, r, n. */
    void (*gru_linear)(const float *from_x, const float *from_h, float *h, int64_t n);
    /* reset = sigmoid(gate of r) * h; then h from the sums of z and n. */
    void (*gru_reset)(const float *r, const float *h, float *reset, int64_t n);
    void (*gru_mix)(const float *z, const float *fresh, float *h, int64_t n);
    void (*tanh)(const float *gate, float *h, int64_t n);
    void (*relu)(const float *gate, float *h, int64_t n);
} rnn_set;

typedef enum rnn_kind { RNN_TANH, RNN_RELU, RNN_LSTM, RNN_GRU, RNN_GRU_LINEAR } rnn_kind;

typedef struct rnn_params {
    isa_level isa;
    rnn_kind kind;
    /* Of the products with the input, with the state, and (gru alone) with the reset state. */
    gemm_tactic x_tactic, h_tactic, reset_tactic;
    int64_t directions, steps, batch, depth, hidden;    /* upper bounds where memory is booked */
    bool is_reverse;                                    /* the first direction */
    int64_t x_stride[3], y_stride[4];                   /* in elements; of states: direction, sequence, unit */
    int64_t h_in_stride[3], c_in_stride[3], h_out_stride[3], c_out_stride[3];
    int64_t bias_stride, peep_stride;                   /* of a direction */
    const float *x, *bias, *h_in, *c_in, *peep;         /* NULL where absent, but for x */
    const float *w, *r;                                 /* packed */
    float *y, *h_out, *c_out;                           /* NULL where absent */
} rnn_params;

int64_t rnn_gates(rnn_kind kind);
/* Columns of the product with the state; the others (gru) wait for the reset gate. */
int64_t rnn_columns(rnn_kind kind, int64_t hidden);
/* Bytes; SIZE_MAX: too large. The same for all numbers of steps of RNN_CHUNK or more. */
size_t rnn_pack_w_size(const rnn_params *p);
size_t rnn_pack_r_size(const rnn_params *p);
void   rnn_pack_w(const rnn_params *p, const float *src, const int64_t *stride, float *dst);
void   rnn_pack_r(const rnn_params *p, const float *src, const int64_t *stride, float *dst);
size_t rnn_workspace_size(const rnn_params *p, uint32_t threads);

/* How a phase is handed out. */
typedef void rnn_parallel_fn(const void *how, int64_t count,
                             void (*body)(void *arg, uint32_t begin, uint32_t end, uint32_t worker), void *arg);
/* `bound`: the sizes that the workspace was booked for. */
void rnn_run(const rnn_params *p, const rnn_params *bound, void *workspace, uint32_t threads, rnn_parallel_fn *parallel,
             const void *how);

#endif
