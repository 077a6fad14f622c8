/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - what the files that lower one piece of work share: problems that are tried, and pieces. */
#ifndef TUNE_WORK_H
#define TUNE_WORK_H

#include "tune/lower.h"

/* ---- work_trial.c ---- */
/* The axis order of operands: the reader's preference, the first input's order, row-major, or channels-last. */
typedef enum work_mode { MODE_WISH, MODE_FIRST, MODE_ROW, MODE_CHANNELS_LAST, MODE_COUNT } work_mode;

typedef struct work_trial {
    problem *p;
    bool convert[64]; /* inputs to copy into the mode's order first */
    bool converts;
    double ns;
    work_mode m;
    const kernel *kernel;
} work_trial;

void work_order_plain(uint32_t rank, uint8_t *order);              /* 0, 1, 2, ... */
void work_order_channels_last(uint32_t rank, uint8_t *order);
/* The same at an offset that the backend's kernels may assume. */
bool work_lies_dense(lowering *l, const plan_value *v, const uint8_t *order);
/* Labels an operand with the order in which `v` lies. */
void work_label(lowering *l, const plan_value *v, problem_operand *o);
/* The problem as mode `m` would have it. convert: misplaced inputs are labelled as if they had been converted. */
sinter_status work_trial_make(lowering *l, const work *w, work_mode m, bool convert, work_trial *t);
/* The cheapest trial, by the cost model, in which one fast kernel does all of the work; best->p NULL: there is none. */
sinter_status work_trial_best(lowering *l, const work *w, work_trial *best);
/* What the conversions of a trial take, roughly. */
double work_trial_copies_ns(lowering *l, const work_trial *t);

/* ---- work.c ---- */
/* A value for an output, with a storage of its own; 0 on failure. */
uint32_t work_output_new(lowering *l, const work_out *out, const uint8_t *order, storage_place place);

/* ---- work_cut.c: as work_lower, in two pieces ---- */
sinter_status work_cut_prologue(lowering *l, const work *w, uint32_t *value);
sinter_status work_cut_epilogue(lowering *l, const work *w, uint32_t *value);
/* Is it faster to run the prologue of a contraction as a step of its own than inside the kernel as `whole` does?
 * Compares measured times where there are any. */
sinter_status work_is_better_cut(lowering *l, const work *w, const work_trial *whole, bool *is_cut);

/* A copy of the work whose list of inputs has room for one more and for compaction. False: no memory. */
bool work_piece_of(lowering *l, const work *w, work *piece);

/* The same work with its inputs in `place`. */
sinter_status work_in_place(lowering *l, const work *w, storage_place place, work *out);

/* ---- work_packed.c: the work with its weight as the model stores it ---- */
/* *is_taken: `packed` is faster than `plain`, each with its best trial. `plain` has no problem (NULL) where no fast
 * kernel does that work. */
sinter_status work_pack(lowering *l, const work *w, const work_trial *plain, work *packed, work_trial *best,
                        bool *is_taken);

/* ---- work_wide.c: as work_lower, in wider types; *done false: that is not for this work ---- */
sinter_status work_widen(lowering *l, const work *w, uint32_t *value, bool *done);
bool          work_may_widen(lowering *l, const work *w);
/* The type that operands of type t have in the wider work: t itself where they stay as they are. */
sinter_dtype  work_wider(const work *w, sinter_dtype t);

#endif
