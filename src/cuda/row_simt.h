/* SPDX-License-Identifier: Apache-2.0 */
/* row_simt.h - what the files of the row without tensor cores share: a contraction as it is read, and a tactic. */
#ifndef CUDA_ROW_SIMT_H
#define CUDA_ROW_SIMT_H

#include "cuda/contract.h"
#include "cuda/launch.h"

typedef enum split_mode { SPLIT_NONE, SPLIT_CLUSTER, SPLIT_WORKSPACE, SPLIT_MODES } split_mode;
typedef struct simt_tactic {
    uint8_t tile, mode, split, trigger, zero[TACTIC_SIZE - 4];
} simt_tactic;
_Static_assert(sizeof(simt_tactic) == TACTIC_SIZE, "a tactic is overlaid");

/* share: of the multiprocessor's rate that the inner loop reaches. */
typedef struct simt_tile {
    uint16_t m, n, per_m, per_n, k, stages;
    double share;
} simt_tile;

typedef enum copy_mode { MODE_ELEMENT, MODE_VECTOR, MODE_ASYNC } copy_mode;
typedef struct simt_side {
    uint32_t input;
    contract_role role;
    copy_mode mode;
    bool is_along, is_window, is_packed, is_const, is_made; /* made: by a prologue */
} simt_side;
typedef struct simt_shape {
    contract c;
    simt_side side[2]; /* P: rows; Q: columns */
    sinter_dtype sum, acc;
    uint32_t sum_size; /* bytes */
    bool has_zero, is_quad;
    uint8_t rank_made; /* axes of what a prologue makes; 0: there is none */
} simt_shape;

/* What the row makes of the problem, with sizes as they are at `at`. NULL, or why it does not take it. */
const char *simt_shape_at(const problem *p, contract_at at, simt_shape *s);

const simt_tile *simt_tile_at(uint32_t index);
uint32_t simt_threads(const simt_tile *e);
uint32_t simt_stages(const simt_shape *s, const simt_tile *e);
uint32_t simt_shared(const simt_shape *s, simt_tactic x); /* bytes */
int64_t simt_pitch(int64_t lines);                        /* rounded up to what is read at once */

void simt_tactics(const problem *p, const kernel_target *t, tactic_sink *out);
bool simt_check(const problem *p, const tactic *t);
void simt_print(const tactic *t, text *out);
double simt_cost_ns(const problem *p, const tactic *t, const kernel_target *target);
size_t simt_workspace(const problem *p, const tactic *t, uint32_t threads);

#endif
