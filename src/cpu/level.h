/* SPDX-License-Identifier: Apache-2.0 */
/* level.h - every loop that is compiled once for each instruction-set level, in one struct a level.
 *
 * level_plain.c, level_avx2.c, ... each include the vectors of their level and then level.inc.h. That file includes the
 * text of all loops. A new family of loops is a *.inc.h and a field here. */
#ifndef CPU_LEVEL_H
#define CPU_LEVEL_H

#include "cpu/isa.h"

struct depthwise_rows;
struct group_conv;
struct requant_block;

typedef struct cpu_level {
    const struct act_set       *act;
    const struct gemm_tile_set *gemm;           /* of f32 */
    const struct gemm_tile_set *const *unit;    /* by gemm_unit; NULL: not by this level alone */
    const struct rows_set      *rows;
    const struct vm_set        *vm;
    const struct vm_chain_set  *chain;
    const struct attention_set *attention;
    const struct choose_set    *choose;
    const struct matmul_wide_set *matmul_wide;
    const struct winograd_set  *winograd;
    const struct codes_set     *codes;
    const struct rnn_set       *rnn;
    const struct probe_set     *probe;
    const struct integer_set   *integer;
    const struct plane_set     *plane;
    const struct strassen_set  *strassen;
    const struct dft_set       *dft;
    const struct trees_set     *trees_f32, *trees_f64;
    void (*depthwise)(const struct depthwise_rows *r);
    void (*group_conv)(const struct group_conv *g); /* NULL: the level has none */
    void (*depthwise_byte)(int32_t *sum, const uint8_t *const *tap, int64_t groups, const void *w, int64_t channels,
                           uint8_t flip);
    void (*requant)(const struct requant_block *b);
    /* move_squares_fn (cpu_move.h); NULL: the level has none. */
    void (*squares)(char *dst, int64_t to, const char *src, int64_t from, int64_t rows, int64_t cols);
} cpu_level;

extern const cpu_level level_plain;
#if CPU_HAS_X86
extern const cpu_level level_avx2, level_avx512;
#endif
#if CPU_HAS_NEON
extern const cpu_level level_neon;
#endif

/* The loops of a level. A level of another architecture gives the plain one. */
const cpu_level *level_of(isa_level isa);

#endif
