/* SPDX-License-Identifier: Apache-2.0 */
/* row.h - what the kernel rows of this backend share: the first byte of every tactic, epilogues, and handing out tiles.
 *
 * A tactic names the instruction set it was chosen for, because bind is not told the machine: an engine thus says
 * itself what it needs. */
#ifndef CPU_ROW_H
#define CPU_ROW_H

#include "backend/kernel.h"
#include "cpu/act.h"
#include "cpu/gemm.h"
#include "cpu/vm.h"

/* A tactic. Where the kernel has nothing to choose, all but the first byte are 0. */
typedef struct row_tactic {
    uint8_t isa;                        /* isa_level */
    uint8_t zero[7];
    uint8_t own[TACTIC_SIZE - 8];       /* of the kernel; zeros behind it */
} row_tactic;
_Static_assert(sizeof(row_tactic) == TACTIC_SIZE, "a tactic is overlaid");

static inline isa_level row_isa(const tactic *t) { return (isa_level)t->at[0]; }
/* What is the kernel's own, of `size` bytes. add: tactics of the target's ISA with each of a list. check: of an ISA
 * that there is, and with zeros wherever there is nothing. print: behind the ISA. */
void row_tactic_own(const tactic *t, void *own, size_t size);
void row_tactics_add(const kernel_target *t, const void *list, int count, size_t size, tactic_sink *out);
bool row_tactic_check(const tactic *t, size_t size);
void row_tactic_print(const tactic *t, const char *own, text *out);
void row_tactics_isa(const problem *p, const kernel_target *t, tactic_sink *out);      /* one: the target's ISA */
bool row_check_isa(const problem *p, const tactic *t);
void row_print_isa(const tactic *t, text *out);
/* INCOMPATIBLE where this machine cannot run the tactic. */
sinter_status row_isa_bind(env *e, const problem *p, const tactic *t, isa_level *out);
/* The same of a tactic whose products are of that unit. */
sinter_status row_unit_bind(env *e, const problem *p, const tactic *t, gemm_unit unit, isa_level *out);
/* Units for two operands of one type on the target, as gemm_units_best; whether a tactic's unit is for that type. Units
 * that split numbers are not: these belong to kernels of their own. */
int       row_units_of(sinter_dtype operand, const kernel_target *t, gemm_unit out[2]);
bool      row_unit_fits(sinter_dtype operand, uint32_t unit);
/* NULL where both anchors are f32 and so is the result, or both are bf16 and the result is any float. */
const char *row_unit_reject(const problem *p);
/* NULL for f32 where the CPU has the units that split numbers (GEMM_F32_AMX). */
const char *row_split_reject(const problem *p, const kernel_target *t);

/* NULL parallel runs everything in the caller. body: as parallel's. */
void row_parallel(const kernel_run *r, int64_t count,
                  void (*body)(void *arg, uint32_t begin, uint32_t end, uint32_t worker), void *arg);
uint32_t row_threads(const kernel_run *r);

/* Tactics are chosen for the usual sizes, memory is for the largest. */
typedef enum row_bound { AT_OPT, AT_MAX } row_bound;
static inline int64_t row_size(dim_range d, row_bound b) { return b == AT_OPT ? d.opt : d.max; }

/* Bytes of an operand at opt (its upper bound where `is_max`); elements of dims. Saturate. */
double  row_operand_bytes(const problem_operand *o);
double  row_bytes(const problem *p);                                     /* of all operands */
double  row_memory_ns(const problem *p, const kernel_target *target, double weight);
/* elements at the upper bounds; INT64_MAX: unbounded */
int64_t row_count_max(const problem_operand *o);
bool    row_is_channels_last(const problem_operand *o);                  /* 0, 2, 3, …, 1 and dense */
bool    row_has_channels_last(const problem_operand *o);                 /* in that order, dense or not */
/* channels adjacent: axis 1 lies innermost, without gaps */
static inline bool row_is_channel_inner(const problem_operand *o)
{
    return o->order[o->rank - 1] == 1 && !o->is_gapped;
}
void    row_order_channels_last(uint32_t rank, uint8_t *order);
/* A result whose pixels are rows of channels at one pitch: why a problem's is none, and the pitch of a view. */
const char *row_pitch_reject(const problem_operand *y);
sinter_status row_pitch(env *e, const view *y, int64_t *pitch);
/* inputs [0, count) and result 0; absent ones count */
bool    row_is_f32(const problem *p, uint32_t count);
/* Its last axis lies innermost, its first outermost, without gaps. */
bool    row_is_row_major(const problem_operand *o);

/* An epilogue, in three parts: what the contraction kernels do themselves; then one activation over each finished
 * block, where that is all; else the program of what is left. */
typedef struct row_epilogue {
    bool       has_program;
    bool       has_clip, has_scale;
    bool       drain;                   /* the program reads sums in scratch and writes the results itself */
    bool       narrow_bias, narrow_residual;    /* operands in bf16 */
    float      lo, hi, alpha;
    uint16_t   bias, residual;          /* inputs; 0: none (input 0 is the anchor's) */
    uint16_t   added;                   /* the same, by the activation               */
    act_fn    *act;                     /* NULL: none                                */
    float      act_y, act_z;
    round_trip trip;
    vm_program program;
} row_epilogue;
/* The bytes behind a record that binding its epilogue, in either of the two ways, takes as `room`. */
static inline size_t row_room(const problem *p) { return vm_room(p->epilogue); }
size_t        row_record_room(const problem *p, const tactic *t);     /* the same, as a kernel's record_size */
/* Whether sums may have to be drained: what a kernel of bf16 operands books scratch for. */
bool          row_may_drain(const problem *p);
/* NULL where `row_epilogue_bind` can take the problem's epilogue over its result 0, which must be f32 unless the kernel
 * drains. */
const char   *row_epilogue_reject(const problem *p);
/* Binds for result 0 in the axis order given, whose last is the columns. fast: recognise bias, residual, clip and
 * activations; the caller then reads those fields, and calls row_epilogue_block where row_epilogue_has_block. */
sinter_status row_epilogue_bind(env *e, const problem *p, isa_level isa, const view *in, const view *out,
                                const uint8_t *order, bool fast, row_epilogue *x, void *room);
static inline bool row_epilogue_has_block(const row_epilogue *x) { return x->has_program || x->act; }
/* What the micro-kernels do themselves, when bound, and when run. ldr: of the residual. */
void          row_gemm_epilogue_bind(const row_epilogue *x, int64_t ldr, gemm_epilogue *g);
void          row_gemm_epilogue_run(const row_epilogue *x, const kernel_run *k, gemm_post_fn *post, gemm_epilogue *g);
/* A guess at what a program costs on one thread, beside a contraction. */
double        row_epilogue_ns(const problem *p);
/* What is left, over rows x columns of result 0 that hold the sums; as vm_block. */
void          row_epilogue_block(const row_epilogue *x, const vm_io *io, int64_t row, int64_t rows, int64_t col,
                                 int64_t cols, float *c, int64_t ldc);

/* An epilogue over a dense f32 result 0 that the kernel has written already, seen as rows of its innermost axis. */
typedef struct row_after {
    bool       has_program;
    int64_t    rows, cols;
    vm_program program;
    /* Of row_after_bind_planes, without a program: the input that is the bias, or 0, and the limits. */
    bool       has_clip;
    uint16_t   bias;
    float      lo, hi;
} row_after;
const char   *row_after_reject(const problem *p);
sinter_status row_after_bind(env *e, const problem *p, isa_level isa, const view *in, const view *out, row_after *x,
                             void *room);
/* The same for loops that add a bias of each channel (axis 1) and clip: an epilogue of these alone needs no program. */
sinter_status row_after_bind_planes(env *e, const problem *p, isa_level isa, const view *in, const view *out,
                                    row_after *x, void *room);
/* Elements [begin, end) in memory order; y: element 0. */
void          row_after_part(const row_after *x, const kernel_run *k, float *y, int64_t begin, int64_t end);
void          row_after_all(const row_after *x, const kernel_run *k, float *y);

#endif
