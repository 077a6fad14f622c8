/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_emit.h - expression programs as CUDA text: what a kernel includes as "generated.cuh".
 *
 * For a prefix, "epi" say, the text defines
 *
 *     EPI_RANK                     rank of the space, at least 1
 *     typedef ... epi_acc;         what the anchor hands over: float, double, or an integer type
 *     struct epi_args              a kernel parameter by value: addresses, and the strides and sizes that vary
 *     struct epi_row               where each operand and result is at a position
 *     void epi_begin(const epi_args &a, epi_row &r, const i32 (&at)[EPI_RANK])
 *                                  `at`: coordinates in the space; along `inner` usually 0, or a multiple of the width
 *     template <int V> struct epi_regs        operands of V elements
 *     template <int V> void epi_fetch(const epi_args &a, const epi_row &r, i32 i, i32 n, epi_regs<V> &x)
 *                                  reads the operands of elements i .. i + n of the row; n <= V
 *     template <int V> void epi_apply(const epi_args &a, const epi_row &r, i32 i, i32 n, const epi_regs<V> &x,
 *                                     epi_acc (&v)[V])
 *                                  computes, and stores the results (with prefix "pro": leaves the result in v, as
 *                                  epi_acc, and stores nothing)
 *     template <int V> void epi_run(a, r, i, n, v)            both
 *
 * and, where the space names axes along which a kernel `turns` from row to row,
 *
 *     EPI_MOVING                   how many operands change from turn to turn; the others stand still
 *     void epi_fetch_still(a, r, i, n, x), epi_fetch_moving(a, r, i, n, x)        a part of epi_fetch each
 *     template <int V> void epi_keep(const epi_regs<V> &x, epi_regs<V> &y)        those that stand still, from x to y
 *
 * A space that is_staged has no addresses of what moves and of its result: the kernel sets row.staged to where the V
 * elements of both are before it fetches and applies. The result is written over the operand.
 *
 * V is any power of two up to `width`. Vectors are read and written at once where the problem proves that pitches are
 * multiples of V elements and where i is a multiple of V: callers keep to that unless V is 1. Operands that are
 * constants may be read before the dependency wait, others may not. Arithmetic: floats under f64 in f32, never flushed;
 * f64 in double; integers in 64 bits, wrapped to their type as expr_run does. What each function means: scalar.c. */
#ifndef CUDA_EMIT_H
#define CUDA_EMIT_H

#include "cuda/launch.h"

typedef struct emit_space {
    const problem *p;
    const expr    *program;             /* NULL: the anchor's value is stored in result 0 as it is (converted) */
    const char    *prefix;              /* "epi" or "pro" */
    uint32_t       rank;
    dim_range      dim[SINTER_RANK_MAX];
    uint8_t        inner;               /* the axis along which the kernel hands over vectors */
    uint32_t       width;               /* at most so many elements at once: a power of two <= 16 */
    sinter_dtype   acc;                 /* type of epi_acc: F32, F64, I32 or I64 */
    uint32_t       turns;               /* bit per axis */
    bool           is_staged;           /* the results, and operands that move, are V elements at row.staged */
    bool           is_rounded;          /* a prologue's anchor rounds what it is left to the type that is stored */
} emit_space;

/* The space of p's epilogue: the dims of result 0, inner = the innermost axis of its order, width 8, acc F32 (F64 and
 * integers where result 0, or what the program says acc is, asks for them). A scalar result counts as rank 1. */
void        emit_space_of(const problem *p, emit_space *s);
/* The space of p's prologue: the dims of input 0, prefix "pro", vectors along `inner`. acc: the type of its values. */
void        emit_space_of_prologue(const problem *p, uint8_t inner, uint32_t width, sinter_dtype acc, emit_space *s);
/* The type in which the anchor reads its first input: what the prologue stores, or the operand's own. */
sinter_dtype emit_input_type(const problem *p);
/* NULL where emit_text can say it: no reductions, types of 8 bits and more. */
const char *emit_reject(const emit_space *s);
void        emit_text(const emit_space *s, text *out);
/* The same for the prologue of a contraction, which shares a launch with an epilogue: at most 6 operands. */
const char *emit_reject_prologue(const emit_space *s);
/* The C type of an element in memory: "float", "f16", "u8" … */
const char *emit_stored(sinter_dtype dtype);
/* The C type in which a value of this type is carried: "float", "i32" … */
const char *emit_carrier(sinter_dtype dtype);
/* 32-bit words of `width` elements of the operands that move from turn to turn, or of those that stand still. */
uint32_t    emit_operand_words(const emit_space *s, bool moving);
/* How many operands move from turn to turn, and the first of them. */
uint32_t    emit_moving(const emit_space *s, uint8_t *operand);
/* Adds the parameter <prefix>_args to the launch begun last, with its patches. */
sinter_status emit_bind(env *e, const emit_space *s, const view *in, const view *out, cuda_record *r);

#endif
