/* SPDX-License-Identifier: Apache-2.0 */
/* row_mma.h - what the files of the mma.sync rows share: a problem seen as products of matrices, and a tactic. */
#ifndef CUDA_ROW_MMA_H
#define CUDA_ROW_MMA_H

#include "cuda/launch.h"
#include "cuda/product.h"

/* A problem as `batch` products D[m, n] = sum of X[m, k] W[n, k]. k runs over rows of taps (outer), each of which is a
 * run of `inner` taps by `channels`, padded to whole chunks of 16 bytes. Sizes of what may vary are those at opt. */
typedef struct mma_shape {
    product d;
    uint8_t type, element, chunk;       /* MMA_F16 …; bytes of an element; elements in 16 bytes */
    uint8_t a_vec, b_vec, b_kind;       /* elements of X and W read at once; MMA_B_PACKED … */
    uint8_t spatial, row_axes, batch_axes;              /* spatial: axes with taps, 0 for a plain product */
    bool    is_conv, is_grouped;
    bool    is_transposed;              /* `batch` are phases; inner, outer, run, k: the most of any */
    bool    is_k_static;
    uint8_t pro_ops, pro_words;         /* prologue: instructions (0: none); words that a chunk's operands take */
    int64_t groups, channels, inner, outer, run;        /* run: padded length of a row of taps */
    int64_t rows, cols, k, batch;       /* k: padded */
    int64_t k_all;                      /* of all phases */
} mma_shape;

/* NULL, or why these rows do not take it. */
const char *mma_shape_of(const problem *p, mma_shape *s);

/* Phase z of all: the coordinate of each axis, and the shape of its product. */
mma_shape     mma_phase_shape(const problem *p, const mma_shape *s, int64_t z, product_phase at[3]);

typedef struct mma_tile { uint16_t bm, bn; uint8_t wm, wn, kg, min_blocks; } mma_tile;

typedef struct mma_tactic {
    uint8_t tile, split_log, stages, trigger;
    uint8_t is_hopper;                  /* made for sm_90 or later: barriers, clusters */
    uint8_t rest[TACTIC_SIZE - 5];
} mma_tactic;
_Static_assert(sizeof(mma_tactic) == TACTIC_SIZE, "a tactic is overlaid");

const mma_tile *mma_tile_at(uint32_t index);
/* What a prologue holds in registers leaves room for one block on a multiprocessor. */
bool mma_prologue_is_heavy(const mma_shape *s, const mma_tile *tile);
/* All steps of a block have slots of their own, in every run. */
bool mma_is_whole(const mma_shape *s, const mma_tactic *t);
/* Bytes of shared memory with so many slots; *barriers_at: where the barriers are. */
uint32_t mma_shared_size(const mma_tile *tile, const mma_tactic *t, uint32_t stages, uint32_t *barriers_at);

void   mma_tactics(const problem *p, const kernel_target *t, tactic_sink *out);
bool   mma_check(const problem *p, const tactic *t);
void   mma_print(const tactic *t, text *out);
void   mma_lets_in(const tactic *t, tactic_sink *out);
double mma_cost_ns(const problem *p, const tactic *t, const kernel_target *target);

size_t mma_pack_size(const problem *p, const tactic *t, uint32_t input);
void   mma_pack(const problem *p, const tactic *t, uint32_t input, const view *src, void *dst);
/* Bytes of one packed matrix: its tiles; with, of integers, the sums of its columns behind them. */
size_t mma_packed_tiles(const mma_shape *s, const mma_tile *tile);
size_t mma_packed_matrix(const mma_shape *s, const mma_tile *tile);

#endif
