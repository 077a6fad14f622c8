/* SPDX-License-Identifier: Apache-2.0 */
/* vm.h - expression programs over tiles that stay in the L1 cache.
 *
 * Programs of f32 and 32-bit integers over adjacent elements run as chains of steps whose running value stays in
 * registers (vm_chain.h). What follows is said of all others.
 *
 * A program is compiled when shapes are known: the space becomes rows x columns (axes that walk alike are merged, the
 * last is the one along which vectors run), every instruction a vector loop over at most VM_TILE elements. A load of
 * f32 that is contiguous over a tile is a pointer into memory, and the last instruction writes straight into the
 * result; all else lives in registers: slots of a small stack buffer. Floats are computed in f32, f64 in f64, bool and
 * integers up to 32 bits in int32, wider ones in int64; programs of bool alone in bytes. What no vector loop covers
 * goes through scalar_eval, so every program runs. */
#ifndef CPU_VM_H
#define CPU_VM_H

#include "cpu/isa.h"
#include "cpu/round_trip.h"
#include "ops/expr.h"

enum { VM_TILE = 512, VM_TILE_BYTES = 4096, VM_SLOT_BYTES = 32768, VM_AXES_MAX = SINTER_RANK_MAX, VM_ACC = UINT16_MAX };

struct vm_op;
/* Scalar arguments of a variant that takes them point at one element. */
typedef void vm_fn(const struct vm_op *op, void *d, const void *a, const void *b, const void *c, int64_t n);

/* What a register holds; bytes: bool, where a program has nothing else. */
typedef enum vm_class { VM_F32, VM_F64, VM_I32, VM_I64, VM_BYTE } vm_class;
typedef enum vm_kind { VM_COMPUTE, VM_LOAD, VM_IMM, VM_STORE } vm_kind;

typedef struct vm_op {
    vm_fn   *fn;                        /* compute: the loop */
    uint8_t  kind;                      /* vm_kind */
    uint8_t  arity;
    uint8_t  from, to;                  /* dtypes, as scalar_eval takes them */
    uint8_t  arg_type[3];
    uint8_t  is_full;                   /* of a scalar: fills a whole tile, not one element */
    uint16_t op;                        /* op_id */
    uint16_t dst, arg[3];               /* values, numbered as in the expression */
    /* load, store: index into operand; compute: the result it may write to, plus 1 */
    uint16_t operand;
    scalar   imm;
    round_trip trip;                    /* compute, of a dequantize: by vm_set.round_trip */
    vm_fn   *by_row;                    /* compute, no chain: fn where argument one_at has one element a row, or NULL */
    uint8_t  one_at;
    uint16_t one_operand;               /* that argument's operand */
    bool     is_one;                    /* load: of such an argument, which stays in memory */
} vm_op;

/* One load or store: where its elements lie over the collapsed axes. */
typedef struct vm_operand {
    uint16_t index;                     /* of the node's inputs or outputs; VM_ACC */
    uint8_t  dtype, cls;
    uint8_t  size;                      /* bytes of an element */
    bool     is_scalar;
    int32_t  swap;                      /* not 0: of each two runs of so many elements the second is read first */
    int64_t  stride[VM_AXES_MAX];       /* elements; the last is that of columns */
} vm_operand;

/* Rows that are scaled, moved or both: y = x * a + b, each result rounded, or (x - b) * a of codes. a and b have one
 * number a row. Or the sum or difference of two products, y = x * a + b * c, of rows all, where b may be an operand
 * of swapped runs (vm_operand). Strides are in bytes. y may lie where an operand does, but for a swapped one. A row has
 * a vector or more, but for products. */
typedef struct vm_rows {
    char       *y;
    const char *x, *a, *b, *c;
    int64_t     y_row, x_row, a_row, b_row, c_row, rows, cols;
    int32_t     zero;                   /* of codes, where b is NULL */
    int64_t     run;                    /* of products: elements of the swapped runs of b, or 0 */
} vm_rows;
typedef void vm_rows_fn(const vm_rows *r);

/* The loops that a short program may be, instead of chunks of steps. One of fn and convert, where op is not NULL: one
 * instruction on operands of 32 bits, or one cast between f32 and a shorter float. at[k]: the operand that is argument
 * k; from VM_LINE_SCALAR on, the value at[k] - VM_LINE_SCALAR, which a run computes once. rows, where it is not NULL,
 * is taken first: a block whose rows are shorter than a vector is left to the others. to: the operand of the result. */
enum { VM_LINE_SCALAR = EXPR_MAX, VM_NO_OPERAND = UINT8_MAX };
typedef void vm_convert_fn(void *dst, const void *src, int64_t n);
typedef struct vm_line {
    vm_fn       *fn;
    vm_convert_fn *convert;
    const vm_op *op;
    uint8_t      at[3], to;
    vm_rows_fn  *rows;
    bool         is_uneven;             /* fn takes one element of one operand for a whole run */
    bool         is_products;           /* a, b and c are rows, too */
    uint8_t      x, of[3];              /* operands: the rows; of: a, b and c, or VM_NO_OPERAND */
    int32_t      zero, run;
} vm_line;

struct vm_set;
struct vm_step;
struct vm_chain_set;
enum { VM_LIES = 3 };                   /* ways in which a chunk lies in memory: vm_chain.h */
typedef struct vm_program {
    const struct vm_set *set;
    uint32_t   axes;                    /* >= 1; the last is the columns */
    int64_t    dim[VM_AXES_MAX];
    int64_t    rows, cols;
    /* elements of a tile; its columns at most (fewer where an operand lies across) */
    int32_t    tile, tile_cols;
    int64_t    unit_rows, unit_cols;    /* of vm_run's tiles */
    uint32_t   op_count, once_count;    /* the first once_count depend on scalars alone */
    uint32_t   operand_count;
    uint32_t   slot_size;               /* bytes */
    uint8_t    slot[EXPR_MAX];          /* of each value */
    bool       has_chain;               /* else the loops over slots run it */
    bool       chain_once;              /* the chain reads scalars that are computed once a call */
    uint32_t   chain_slots, chain_slot_count;   /* where they begin, in bytes */
    const struct vm_chain_set *chain_set;
    const struct vm_step *chain[VM_LIES];
    vm_line    line;                    /* takes what the dense chain would */
    vm_operand *operand;                /* in the room that vm_bind was given, as are the instructions */
    vm_op      *op;
} vm_program;

typedef struct vm_io {
    void *const *in;                    /* data of each of the node's inputs and outputs */
    void *const *out;
} vm_io;

/* NULL where programs can run `x` on operands of these types, else why not. */
const char *vm_reject(const expr *x, uint32_t count_in, const sinter_dtype *in, uint32_t count_out,
                      const sinter_dtype *out);

/* The bytes of room, aligned to 8, that a program of `x` needs beside its vm_program; x NULL: none. */
size_t vm_room(const expr *x);
/* Compiles for the space `dim_at`. order: its axes from outermost to innermost in the order of work; NULL: the memory
 * order of result 0. split: columns are the last axis of `order` alone, rows are all others (blocks); else axes merge
 * freely. */
sinter_status vm_bind(env *e, vm_program *p, void *room, isa_level isa, const expr *x, uint32_t rank,
                      const int64_t *dim_at, const uint8_t *order, bool split, const view *in, const view *out);

/* Standalone: disjoint tiles that cover the space. */
int64_t vm_tile_count(const vm_program *p);
void    vm_run(const vm_program *p, const vm_io *io, int64_t begin, int64_t end);
/* Rows [row, row + rows) x columns [col, col + cols) of a split space. acc: element (row, col) of the anchor's result,
 * rows `ld` apart, in i32 where the program says so and else in f32; NULL: the program has none. It may be where
 * result 0 lies. */
void    vm_block(const vm_program *p, const vm_io *io, int64_t row, int64_t rows, int64_t col, int64_t cols,
                 const void *acc, int64_t ld);

/* ---- the loops of one instruction set ---- */
typedef struct vm_set {
    vm_fn *unary[OP_SCALAR_COUNT];             /* of f32 */
    vm_fn *binary[OP_SCALAR_COUNT][3];         /* of f32: vector-vector, vector-scalar, scalar-vector */
    vm_fn *ternary[OP_SCALAR_COUNT][2];        /* of f32: all vectors; the second and third scalar */
    vm_fn *i32[OP_SCALAR_COUNT][3], *i64[OP_SCALAR_COUNT][3];   /* as binary; the first NULL: by vm_basic_of */
    vm_fn *exp_f64;
    vm_fn *byte[OP_SCALAR_COUNT];              /* of bool in bytes */
    vm_fn *float_to_i64, *i64_to_float, *f64_to_f16, *f64_to_bf16;
    vm_fn *pow_scalar;                         /* the exponent is one element */
    vm_fn *where;                              /* condition int32, f32 */
    vm_fn *quantize, *dequantize;              /* between f32 and int32 */
    vm_fn *round_trip[2];                      /* of f32: by division; by the inverse */
    vm_fn *float_to_int, *float_to_bool, *int_to_float, *round_f16, *round_bf16;   /* casts */
    vm_rows_fn *rows_mul, *rows_add, *rows_mul_add, *rows_dequantize[2];    /* of u8, of i8 */
    vm_rows_fn *rows_products[2][2];           /* runs of any length, of one element: their sum, their difference */
    vm_convert_fn *float_to_byte;              /* f32 to bool in memory */
    vm_convert_fn *load[SINTER_DTYPE_COUNT];   /* memory to register; NULL: element by element */
    vm_convert_fn *store[SINTER_DTYPE_COUNT];
} vm_set;
vm_class      vm_class_of(sinter_dtype dtype);
/* The loop of an op on f64, int32 or int64, or the one that calls scalar_eval. */
vm_fn        *vm_basic_of(const vm_op *op);
vm_fn         vm_float_to_i64;
vm_fn         vm_div_i64, vm_mod_i64, vm_fmod_i64;

#endif
