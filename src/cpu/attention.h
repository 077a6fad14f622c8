/* SPDX-License-Identifier: Apache-2.0 */
/* attention.h - softmax(scale * q kT + mask) v in f32, a block of query rows against a block of keys at a time.
 *
 * Scores live in the L1 cache and nowhere else. Heads that share keys are rows of one product. Keys beyond one block
 * are taken by online softmax: a row keeps its largest score and its sum, and what it has gathered is scaled when they
 * change. Tiles are fixed by the shape alone. A few rows (decoding) read keys and values where they lie; more pack them
 * first, once for all the tiles that a worker does in a row. */
#ifndef CPU_ATTENTION_H
#define CPU_ATTENTION_H

#include "cpu/gemm_tile.h"
#include "cpu/rows.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The loops of one instruction set, over contiguous rows. Behind x is room for a vector of 16, which may be written. */
typedef struct attention_set {
    /* x = cap * tanh(x / cap) where cap > 0, then + add, then -infinity where allow is 0 (either may be NULL); returns
     * the largest, a NaN where there is one. */
    float (*finish)(float *x, int64_t n, float cap, const float *add, const uint8_t *allow);
    /* x = exp(x - top), where no x is larger; returns the sum. */
    float (*exp_sum)(float *x, int64_t n, float top);
    /* y[j] = scale * sum of q[i] * k[j * stride + i]. */
    void (*dots)(float *y, const float *q, const float *k, int64_t stride, int64_t keys, int64_t n, float scale);
    /* y[i] += sum of w[j] * v[j * stride + i]. */
    void (*weigh)(float *y, const float *w, const float *v, int64_t stride, int64_t keys, int64_t n);
} attention_set;

/* What scratch is booked for: upper bounds of the sizes. */
typedef struct attention_bounds {
    int64_t depth, width;               /* of a key and of a value */
    int64_t keys, rows;                 /* keys; queries times the heads that share keys (INT64_MAX: unbounded) */
} attention_bounds;

typedef struct attention_params {
    const gemm_tile_set *tile;
    const attention_set *loop;
    const rows_set      *row;
    attention_bounds bounds;
    int64_t batch, heads, group;        /* heads: of keys; group: query heads for each */
    int64_t queries, keys, depth, width;
    /* Strides in elements: batch, head (of the operand itself), row, column. */
    int64_t q_stride[4], k_stride[4], v_stride[4], y_stride[4], mask_stride[4];
    const float *q, *k, *v;
    float       *y;
    const float   *add;                 /* NULL or the mask that is added */
    const uint8_t *allow;               /* NULL or the mask of keys that count */
    float scale, cap;                   /* cap 0: none */
    bool  causal;
} attention_params;

/* NULL where scratch can be booked for the bounds, else why not. */
const char *attention_bounds_check(const attention_bounds *b);
/* Bytes of scratch that each worker needs (64-byte aligned); the same for every shape within the bounds. */
size_t  attention_scratch_size(isa_level isa, const attention_bounds *b);
int64_t attention_tile_count(const attention_params *p);
void    attention_run(const attention_params *p, int64_t begin, int64_t end, void *scratch);

#endif
