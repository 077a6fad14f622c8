/* SPDX-License-Identifier: Apache-2.0 */
/* row_wgmma.h - what the files of the warpgroup row share: a problem seen as products of matrices, and a tactic. */
#ifndef CUDA_ROW_WGMMA_H
#define CUDA_ROW_WGMMA_H

#include "cuda/device/wgmma_args.h"
#include "cuda/launch.h"

/* Bytes of k in a step; shared memory of a block of which two fit on a multiprocessor. */
enum { WGMMA_STEP = 128, WGMMA_TWO_BLOCKS = 113 * 1024 };

/* The problem as d[z, m, n] = a[z, m, k] b[z, n, k]: axes of the space that are rows, outermost first, and the column
 * axis. Where b is one matrix all rows are of one product; else the outermost row axes number the products. */
typedef struct wgmma_form {
    uint8_t row[WGMMA_ROW_AXES + 1], rows, column, k_axis; /* k_axis: of operand 0 */
    uint8_t b_n, b_k;                                      /* axes of operand 1 */
    uint8_t type, element;                                 /* WGMMA_F16 …; bytes of an element of a and b */
    bool is_batched, has_zero;                             /* has_zero: a's zero point is operand 2 */
    int64_t batch, n, k;    /* batch: 1 where b is one matrix; k: of one tap */
    int64_t bk;             /* elements of k in a step */
    uint32_t spatial;       /* axes of an image that is read as patches; 0: rows are read as they lie */
    int64_t taps[3];        /* of the filter, the last along the innermost axis; 1 where there is no such axis */
} wgmma_form;

/* NULL, or why the row does not take it. */
const char *wgmma_form_of(const problem *p, wgmma_form *f);

/* Whether results may go through shared memory (device/wgmma_staged.cuh), and what is added to them on the way. */
typedef struct wgmma_staging {
    bool is_possible, has_residual;
    bool may_repeat;                    /* a run may find the residual smaller than the result: then they cannot */
    uint8_t residual;                   /* operand */
} wgmma_staging;
wgmma_staging wgmma_staging_of(const problem *p, const wgmma_form *f);
int64_t wgmma_steps(const wgmma_form *f);
/* 32-byte slices of a step that are not empty in all steps. */
int64_t wgmma_depth(const wgmma_form *f);
int64_t wgmma_rows(const problem *p, const wgmma_form *f); /* of one product, at opt */

typedef struct wgmma_tactic {
    uint8_t bn8, stages, lines; /* the instruction's columns over 8; 64 lines of a tile for each group */
    uint8_t units;              /* wgmma.cu: multiprocessors of the chip: blocks stay on them; once: 0 */
    uint8_t is_once;            /* wgmma_once.cu, and only there what follows */
    uint8_t is_swapped, groups, split_log, trigger;
    uint8_t is_pingpong; /* wgmma.cu: one warpgroup multiplies a tile while another writes the one before */
    uint8_t is_staged;   /* wgmma.cu: results go through shared memory; 2: a residual comes there, too */
    uint8_t is_kept;     /* wgmma.cu: the right side of a block's columns stays in shared memory */
    uint8_t is_paired;   /* wgmma.cu: two blocks of 2 lines share a multiprocessor; those of 1 do where memory allows */
    uint8_t zero[TACTIC_SIZE - 13];
} wgmma_tactic;
_Static_assert(sizeof(wgmma_tactic) == TACTIC_SIZE, "a tactic is overlaid");

/* Rows and columns of a tile. */
int64_t wgmma_tm(const wgmma_tactic *w);
int64_t wgmma_tn(const wgmma_tactic *w);
uint32_t wgmma_shared(const problem *p, const wgmma_tactic *w, uint32_t *sums_at, uint32_t *barriers_at);
/* is_staged: bytes of columns that go at once: 128, 64 or 32. */
uint32_t wgmma_strip(const problem *p, const wgmma_tactic *w);
/* Blocks that a multiprocessor has registers for. */
uint32_t wgmma_resident(const problem *p, const wgmma_tactic *w);

void wgmma_tactics(const problem *p, const kernel_target *t, tactic_sink *out);
bool wgmma_check(const problem *p, const tactic *t);
void wgmma_print(const tactic *t, text *out);
void wgmma_lets_in(const tactic *t, tactic_sink *out);
double wgmma_cost_ns(const problem *p, const tactic *t, const kernel_target *target);

#endif
