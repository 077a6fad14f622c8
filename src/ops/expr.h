/* SPDX-License-Identifier: Apache-2.0 */
/* expr.h - expression programs: what is fused before, after, or without an anchor.
 *
 * A list of at most 64 typed SSA instructions over one iteration space (the anchor's output, or the broadcast of the
 * operands; rank <= 16). A leaf is the anchor's accumulator (acc), an immediate (imm) or load(operand k), where k
 * counts the node's inputs and broadcasting is by that operand's dims. A root is store(result k) over the whole space,
 * or reduce(kind, axes, result k). Arguments name earlier instructions. A reduce keeps the rank: its axes have size 1
 * in the result. Between instructions floats are not rounded to their type; a cast rounds, and so does the store. A
 * leaf printed without a type is f32; reductions print as "reduce max [0,2] 1 d". Text, canonical and round-tripping:
 * "a=acc; b=load 2; c=add a b : f32; d=relu c : f32; store 0 d".
 *
 * In the program of a weight (problem.h) a load may be in blocks: "load 2 / 1:32" has one element for each 32 along
 * axis 1 of the space, of which the last block may be short. */
#ifndef OPS_EXPR_H
#define OPS_EXPR_H

#include "ops/ops.h"

enum { EXPR_MAX = 64 };
typedef enum expr_op {                  /* after the scalar functions' ids */
    EXPR_ACC = OP_SCALAR_COUNT, EXPR_LOAD, EXPR_IMM, EXPR_STORE, EXPR_REDUCE, EXPR_OP_COUNT
} expr_op;

typedef struct expr_instr {
    uint16_t op;                        /* op_id of a scalar function, or expr_op */
    uint8_t  dtype;                     /* sinter_dtype of the result; of a store, of what is stored */
    uint8_t  kind;                      /* reduce: reduce_kind; load in blocks: the axis */
    uint16_t arg[3];                    /* earlier instructions */
    uint16_t operand;                   /* load: input; store, reduce: output */
    uint32_t axes;                      /* reduce: bit per axis of the space */
    scalar   imm;                       /* imm; load: in i, elements of the space in a block, 0: no blocks */
} expr_instr;

typedef struct expr {
    uint32_t   count;
    expr_instr at[];                    /* [count] */
} expr;

static inline size_t expr_size(uint32_t count) { return sizeof(expr) + count * sizeof(expr_instr); }
/* How many values an instruction reads. */
uint32_t expr_arity(const expr_instr *x);
expr *expr_copy(arena *a, const expr *x);
bool  expr_equal(const expr *a, const expr *b);                     /* NULLs are equal */
uint64_t expr_hash(const expr *x, uint64_t seed);
/* NULL where it is well formed for `count_in` operands and `count_out` results, else what is wrong. has_acc: acc may
 * occur. No load is in blocks. */
const char *expr_check(const expr *x, uint32_t count_in, uint32_t count_out, bool has_acc);
/* The same for the program of a weight: elementwise, with one result, and with loads in blocks. */
const char *expr_check_weight(const expr *x, uint32_t count_in);
/* The size of an axis of a load's operand, where the space has `size` along it. */
static inline int64_t expr_blocks(const expr_instr *load, uint32_t axis, int64_t size)
{
    return load->imm.i > 0 && load->kind == axis ? size / load->imm.i + (size % load->imm.i != 0) : size;
}
/* Canonical: dead instructions dropped, equal ones merged, order of first use. In place; never grows. */
void  expr_canonicalize(expr *x);
void  expr_print(const expr *x, text *out);
/* The same without the values of immediates on which no time depends. Cannot be parsed. */
void  expr_print_timed(const expr *x, text *out);
bool  expr_parse(arena *a, scan *s, expr **out, const char **why);

/* The reference: runs the program over the space `dim`. acc: the anchor's result in the space (NULL: none).
 * in_f32: floats but f64 are rounded to f32 after each instruction, as kernels do; else only results are rounded. */
sinter_status expr_run(const expr *x, uint32_t rank, const int64_t *dim_at, const view *acc, const view *in,
                       const view *out, bool in_f32);

#endif
