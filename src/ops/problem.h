/* SPDX-License-Identifier: Apache-2.0 */
/* problem.h - an op or group with its shapes, types and layouts: one line of text that logs, tests, benches, engines,
 * the timing cache and errors all share.
 *
 *   conv:f32[1,64,56,56]{0,2,3,1} w:f32[64,64,3,3] -> f32[1,64,56,56]{0,2,3,1} stride=[1,1] pad=[1,1,1,1]
 *       dilation=[1,1] epi="a=acc; b=relu a : f32; store 0 b"          (one line)
 *
 * Grammar: OP ':' operand {' ' operand} [' +' {' ' operand}] ' -> ' operand {' ' operand} {' ' attr}
 *          [' pro="' program '"'] [' weight="' program '"'] [' epi="' program '"']
 *   operand  ['w:'] ('-' | DTYPE '[' dims ']' ['{' order '}'] ['*' | '**'])
 *            w: a constant; -: an absent input; order: axes from outermost to innermost in
 *            memory, left out where row-major; *: strided (not dense in that order), **: along the innermost axis too
 *   dim      N, or MIN '..' MAX '/' DIVISOR '@' OPT (MAX '?' : no bound)
 *   +        the inputs after it are beyond count_anchor: they belong to the programs
 *
 * A packed weight is input 1 as the model stores it, in 4 or 8 bits. Its program makes the anchor's input 1 of it, over
 * the dims of input 1; scales and zero points are further operands, which it may load in blocks:
 *
 *   matmul:f32[1,4096] w:u4[4096,11008] + w:f32[128,11008] -> f32[1,11008]
 *       weight="a=load 1 : u4; b=load 2 / 0:32; c=imm 8 : u4; d=dequantize a b c : f32; store 0 d"    (one line) */
#ifndef OPS_PROBLEM_H
#define OPS_PROBLEM_H

#include "ops/expr.h"
#include "ops/values.h"

typedef struct problem_operand {
    sinter_dtype dtype;                 /* NONE: absent */
    uint8_t      rank;
    bool         is_const;
    bool         is_gapped;             /* strided, and elements along the innermost axis are not adjacent */
    bool         is_strided;            /* not dense in `order`: any strides of that order, or broadcast */
    bool         is_late;               /* data decides several of its sizes, which are not all at their largest at
                                         * once. For who chooses kernels: not part of the line */
    uint8_t      order[SINTER_RANK_MAX];/* axes, outermost first */
    dim_range    dim[SINTER_RANK_MAX];
} problem_operand;

typedef struct problem {
    op_id        op;
    const void  *attrs;                 /* DIMS hold the sizes at opt */
    uint32_t     count_in, count_anchor, count_out;
    problem_operand *in, *out;
    const expr  *prologue;              /* feeds the anchor's input 0; NULL: none */
    const expr  *weight;                /* feeds the anchor's input 1, a constant; NULL: it is as it is */
    const expr  *epilogue;              /* NULL: none; of pointwise: the program itself */
    const expr  *middle;                /* of excite: what its attributes say as text; NULL: nothing, or no program */
    const struct plugin_use *plugin;    /* of a plugin's op: what its attributes name; NULL: it is not registered */
} problem;

static inline bool problem_dim_is_static(dim_range d) { return d.min == d.max; }
bool problem_is_static(const problem *p);
bool problem_operand_is_row_major(const problem_operand *o);        /* dense too */
/* Sizes at opt that multiply to more than any tensor has are made smaller: of several sizes that data decides, each can
 * be large, but not all at once. */
void problem_operand_calm(problem_operand *o);
/* Gives sizes that the op wants equal the range that they have in common. Data may decide one of them, while a constant
 * operand has the other: kernels then know it, whichever they ask. A run checks that they are equal. Where no size is
 * in both ranges, every run fails that check. The operands count as not constant then: no kernel packs a weight by the
 * sizes of the other operand. */
void problem_unify(problem *p);
/* Why these are no strides, dilations and pads of so many axes; NULL: they are. Inference checks the lists of a model;
 * nothing has checked those in the line of an engine. */
const char *problem_window_reject(const attr_ints *stride, const attr_ints *dilation, const attr_ints *pad,
                                  uint32_t spatial);
void problem_print(const problem *p, text *out);
/* What the time of a kernel depends on: the line without the values of most immediates (scales and zero points differ
 * from layer to layer). Cannot be parsed. */
void problem_print_timed(const problem *p, text *out);
/* Looks up what attributes name: the plugin of a plugin's op, in the registry of the arena's env, and the program of
 * excite. Parsing does it. */
void problem_resolve(arena *a, problem *p);
/* UNSUPPORTED or INVALID_MODEL where the op is of a plugin that was not found, or whose fields cannot be read. */
sinter_status problem_need(env *e, arena *a, const problem *p);
/* NULL, or why no kernel takes such sizes: parsing refuses them, too. */
const char *problem_check_sizes(const problem *p);
/* The inverse; checks counts, attributes, programs and ranges. Everything lives in `a`. */
bool problem_parse(arena *a, scan *s, problem **out, const char **why);

/* Do the dims of `out` follow from those of `in`, by the op's shape function and the programs' broadcasting? Dims are
 * expressions of `t`; attrs hold expressions too. False also where it cannot be told. Sets no error. */
bool problem_shape_follows(const env *e, arena *scratch, dim_table *t, const problem *p, const void *attrs,
                           infer_value *in, const infer_value *out);
/* Do the sizes at opt go together? Those that data decides have an opt each, which need not. */
bool problem_sizes_agree(const env *e, const problem *p);
/* Which numbers each input may hold at opt, where it is indices, lengths or sizes: of[count_in]; infinite for the
 * others. */
void problem_values(const env *e, const problem *p, value_range *of);

/* The oracle: runs a problem on views (the anchor's reference, then the programs in double). attrs: resolved, as the
 * call sees them. Other arguments as in ref_call. */
sinter_status problem_reference(const problem *p, ref_call *c);
/* How many products, or other terms, are summed into one result: roughly, and over all steps of a recurrent layer. in:
 * the problem's inputs. */
double problem_terms(const problem *p, const view *in);
/* What has to be computed and moved at least: operations of the op's definition (a multiply-add is two, a scalar
 * function of a program one an element), and the bytes of each operand once. Estimates where they depend on data. */
typedef struct work_counts {
    double       operations;
    double       weights, read, written;        /* bytes: constant inputs, other inputs, results */
    bool         products;                      /* mostly multiply-adds of `dtype` */
    sinter_dtype dtype;
} work_counts;
void problem_work(const problem *p, const view *in, const view *out, work_counts *w);

#endif
