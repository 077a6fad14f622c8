/* SPDX-License-Identifier: Apache-2.0 */
/* case_rig.h - what every test that runs kernels on problem lines shares: operands with data, the reference's results,
 * guards around memory, and tolerances.
 *
 * Cases are files of lines: a line is a problem; lines that begin with # are notes; "#! small" before a line keeps its
 * random values in [0.5, 2), for ops that are steep elsewhere. */
#ifndef CASE_RIG_H
#define CASE_RIG_H

#include "base/arena.h"
#include "base/text.h"
#include "backend/kernel.h"

enum { CASE_GUARD = 256, CASE_OPERANDS = 16 };
/* Special: random values with zeros, infinities, NaN, subnormals, ties and limits among them. Rows: random values whose
 * rows are of very different sizes, or zero, or have an infinity or a NaN. */
typedef enum case_data { CASE_INTEGERS, CASE_RANDOM, CASE_SPECIAL, CASE_ROWS } case_data;

typedef struct case_rig {
    env e;
    arena a, scratch;
    sinter_plugins *plugins;                        /* plugin_set.h */
    uint64_t seed;
    bool is_small;
    bool is_any;                                    /* results may be mostly zero: sizes are, too */
} case_rig;
void   case_rig_init(case_rig *r);
void   case_rig_deinit(case_rig *r);
double case_unit(case_rig *r);                      /* random, in [0, 1) */
uint32_t case_below(case_rig *r, uint32_t count);   /* random, less than count */

/* A buffer of the arena between guards, 64-byte aligned, all bytes `with`. */
void  *case_guarded(case_rig *r, size_t size, int with);
bool   case_guards_hold(const void *data, size_t size, int with);

/* The tactic with a byte or two changed, mostly at the front, where fields are. */
tactic case_damage(case_rig *r, const tactic *t);
/* The row's tactics, and the first one with the kernel behind it let in at the other times that there are. */
void case_tactics(const kernel *k, const problem *p, const kernel_target *t, tactic_sink *out);

typedef struct case_trial {
    const problem *p;
    view in[CASE_OPERANDS], out[CASE_OPERANDS], want[CASE_OPERANDS];
    size_t in_size[CASE_OPERANDS], out_size[CASE_OPERANDS];     /* bytes in memory, gaps included */
    bool is_exact;                                  /* results on this data must be equal */
    bool is_faulty;                                 /* an index in the data is out of range */
    bool is_special;                                /* zeros have signs where they are certain */
    uint32_t row_axes;                              /* CASE_ROWS: as case_row_axes; else 0 */
    double terms;                                   /* summed into one result, roughly */
} case_trial;

/* The line's problem in the arena; NULL: `why` says what is wrong. */
const problem *case_parse(case_rig *r, const char *line, size_t length, const char **why);
/* Fills x for p at opt: inputs with data, `want` by the reference; `out` has no memory. pitch: strided operands that
 * are not gapped have pitches of a multiple of so many bytes; 1: any. NULL, or what is wrong. */
const char *case_make(case_rig *r, const problem *p, case_data kind, size_t pitch, case_trial *x);
/* The same where kernels were chosen for a problem of the same operands whose ranges hold p's sizes. */
const char *case_make_chosen(case_rig *r, const problem *p, const problem *chosen, case_data kind, size_t pitch,
                             case_trial *x);
/* Data for an operand of p (case_data.c). */
void        case_fill(case_rig *r, const problem *p, uint32_t input, const view *v, case_data kind);
/* Does the sign of a zero in this result follow from the op? Sums and choices between zeros leave it open. */
bool        case_counts_sign(const problem *p, uint32_t result);
/* Do special values prove something about this kernel? Relaxed ones make NaN of infinities by rounding a factor to
 * nothing, and GPUs' products for transposed convolutions by filters of zeros beside the real ones. */
bool        case_takes_special(const problem *p, const kernel *k);
/* The first axes of the result and of input 0, whose elements are rows that nothing may mix; 0: there are none. Rows of
 * a product are rows of a matrix, those of a convolution are images. */
uint32_t    case_row_axes(const problem *p);
/* The operands' views alone, without memory. */
void        case_views(const problem *p, const problem *chosen, size_t pitch, view *in, view *out);
/* What the reference does for p at opt, roughly: multiplications, or elements read and written. */
double      case_operations(const problem *p);
/* All results (x->out, whose memory began as 0xFF) as a kernel of this class may leave them. NULL, or what is wrong. */
const char *case_check(case_rig *r, const case_trial *x, kernel_numerics numerics, char *why, size_t size);

#endif
