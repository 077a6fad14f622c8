/* SPDX-License-Identifier: Apache-2.0 */
/* vm_chain.h - programs of f32 and 32-bit integers as chains of steps whose running value stays in registers.
 *
 * A chain works on a chunk of eight vectors. A chunk lies in memory in one of three ways; a chain is bound for each.
 * Dense: eight vectors behind each other. Rows: one vector in each of eight rows. Part: as rows, or as the end of a
 * dense run, and the vectors are not whole. Where fewer than eight vectors are left the last one is computed several
 * times. This is safe where a result lies over an operand: a chain loads all that it needs before its first store.
 *
 * A value that a later step than the next one reads lies in a slot: eight vectors of scratch in the L1 cache. */
#ifndef CPU_VM_CHAIN_H
#define CPU_VM_CHAIN_H

#include "cpu/vm.h"

enum { VM_CHAIN_VECTORS = 8 };
/* How a chunk lies in memory; splat: one element for a whole vector. */
typedef enum vm_lie { VM_DENSE, VM_ROWS, VM_PART, VM_SPLAT, VM_GETS } vm_lie;
typedef enum vm_in { VM_IN_F32, VM_IN_F16, VM_IN_BF16, VM_IN_I8, VM_IN_U8, VM_INS } vm_in;  /* f32: and i32 */
typedef enum vm_step_id {
    VM_STEP_AGAIN, VM_STEP_FILL, VM_STEP_SPLAT, VM_STEP_SQUARE, VM_STEP_MUL_ADD, VM_STEP_CLIP,
    VM_STEP_HARD_SIGMOID, VM_STEP_TRIP_DIVIDE, VM_STEP_TRIP_INVERSE, VM_STEP_QUANTIZE, VM_STEP_DEQUANTIZE,
    VM_STEP_INT_TO_FLOAT, VM_STEP_FLOAT_TO_INT, VM_STEP_ROUND_F16, VM_STEP_ROUND_BF16, VM_STEP_WHERE,
    VM_STEP_DEQUANTIZE_EACH, VM_STEP_FLOAT_TO_BOOL, VM_STEP_CALL, VM_STEPS
} vm_step_id;

typedef void vm_step_fn(void);          /* of the instruction set's own type */

typedef struct vm_step {
    vm_step_fn *fn;
    uint8_t     a, b, c, d;             /* references: operands, then slots, then scalars */
    uint16_t    op;                     /* call: the instruction; again: steps back to the first */
    int32_t     top;
    float       imm[5];
} vm_step;

/* References: operands, slots, scalars. */
enum { SLOT_REF = EXPR_MAX, SCALAR_REF = 2 * EXPR_MAX, VM_REFS = 3 * EXPR_MAX };

/* Most programs have few operands. So many move from chunk to chunk without a loop, also those that are not there. */
enum { VM_AT_ONCE = 4 };

typedef struct vm_chunk {
    const vm_program *program;
    char    *at[VM_REFS];               /* of the first vector */
    int64_t  stride[VM_REFS];           /* bytes from vector to vector where vectors lie in rows */
    int64_t  left;                      /* chunks of the run that are to come, this one among them */
    int64_t  bump[EXPR_MAX];            /* bytes from chunk to chunk of each operand */
    uint32_t operands;
    int64_t  row[VM_CHAIN_VECTORS];     /* 0 to 7, the last one repeated */
    uint8_t  count[VM_CHAIN_VECTORS];   /* part: elements of each vector */
} vm_chunk;

typedef struct vm_chain_set {
    int32_t lanes, shift;               /* lanes = 1 << shift */
    void (*run)(const vm_step *first, vm_chunk *k);
    vm_step_fn *load[VM_INS][VM_GETS], *stage[VM_INS][VM_GETS], *store[VM_INS][VM_LIES];
    vm_step_fn *unary[OP_SCALAR_COUNT];
    /* Of f32 and of i32: with an immediate, reversed, with memory, reversed. */
    vm_step_fn *binary[OP_SCALAR_COUNT][4], *integer[OP_SCALAR_COUNT][4];
    /* memory in rows, reversed, one element a row, reversed, one element for a dense run, reversed */
    vm_step_fn *direct[OP_SCALAR_COUNT][6];
    vm_step_fn *step[VM_STEPS];
} vm_chain_set;

/* Binds the chains of a bound program, where it can have any and they fit in `room` steps. */
void vm_chain_bind(vm_program *p, isa_level isa, vm_step *step, uint32_t room);
/* Finds the one loop that a program of few instructions may be (vm_line). */
void vm_line_find(vm_program *p);
/* Prepares a chunk: its slots, and the scalars, whose values lie at `value`. */
void vm_chain_begin(const vm_program *p, vm_chunk *k, unsigned char *slots, void *const *value);
/* An operand's first element, and its strides in bytes. */
typedef struct vm_corner {
    char *at;
    int64_t row, col;
} vm_corner;
/* Runs the chain over rows x columns. Moves the corners. */
void vm_chain_block(const vm_program *p, vm_chunk *k, vm_corner *operand, int64_t rows, int64_t cols);

#endif
