/* SPDX-License-Identifier: Apache-2.0 */
/* row_lines.h - what the rows of reductions, softmax and normalisations (row_lines.c) and the choice of their tactics
 * (row_lines_tactic.c) share. */
#ifndef CUDA_ROW_LINES_H
#define CUDA_ROW_LINES_H

#include "cuda/lines.h"

#include "cuda/device/line_args.h"

/* clang-format off */
enum { LINE_SPLITS_MOST = 512 };
typedef enum line_form { FORM_ROWS, FORM_COLUMNS, FORM_GROUPS } line_form;

typedef struct line_tactic {
    uint8_t  form, vector, items, cluster;  /* items: vectors a thread holds; 0: passes; cluster: the splits are one */
    uint16_t across;                        /* rows: threads a row; columns: threads side by side */
    uint16_t block;
    uint16_t splits;                        /* blocks a line; 1, or a cluster: one launch */
    uint8_t  trigger;                       /* the next grid may start: 1 at once, 2 after the last loads, 3 late */
    /* rows that are held: blocks may stay for many. 1: the next row is on its way in registers; n: n - 1 of them in
     * shared memory */
    uint8_t  ahead, resident;               /* blocks that a multiprocessor is to hold */
    uint8_t  unused;
    uint16_t grid;                          /* blocks in all */
    uint8_t  rest[TACTIC_SIZE - 16];
} line_tactic;
_Static_assert(sizeof(line_tactic) == TACTIC_SIZE, "a tactic is overlaid");

/* Products of sizes, INT64_MAX where they are too large to count. most: of what cuda_range_most says of each axis. */
typedef struct line_size { int64_t max, most, opt; } line_size;
typedef struct line_shape {
    /* length: elements of a line; rows: lines, of columns without the innermost axis */
    line_size inner, length, lines, rows;
    uint32_t  bytes;                        /* of an element */
} line_shape;
/* clang-format on */

/* The rebuilt problem that a tactic works on; why not, or NULL. */
const char *line_problem(const problem *p, const line_tactic *t, lines *l);
void line_shape_of(const lines *l, line_shape *s);

/* ---- what a problem asks of the device's code ---- */

bool line_is_reduction(const problem *p);
sinter_dtype line_input_type(const problem *p); /* that the anchor works on */
enum line_op line_op_of(const problem *p);
enum line_acc line_acc_of(const problem *p);
/* The space of a program. */
emit_space line_space(const lines *l, bool is_prologue, uint32_t vector);
bool line_is_exact(const lines *l, uint32_t vector);     /* the innermost axis is whole vectors, whatever its size */
bool line_is_full(const lines *l, const line_tactic *t); /* and all threads hold as many */

/* ---- tactics ---- */

uint32_t line_state_size(const problem *p);
uint32_t line_shared_bytes(const problem *p, const line_tactic *t);
/* Vectors of a line whose innermost axis has `inner` elements. */
int64_t line_vectors(int64_t length, int64_t inner, uint32_t vector);
int64_t line_blocks(const line_tactic *t, int64_t inner, int64_t rows);
void line_tactics(const problem *p, const kernel_target *target, tactic_sink *out);
bool line_is_sound(const problem *p, const lines *l, const line_tactic *t);
double line_cost_ns(const problem *p, const tactic *t, const kernel_target *target);
void line_print(const tactic *t, text *out);
void line_lets_in(const tactic *t, tactic_sink *out);

#endif
