/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - matrix products: C = clip(alpha * A * B + bias + residual), then a hook for each finished block.
 *
 * Terms are what the tactic's unit multiplies (gemm_tile.h): f32, bf16, or u8 by s8. A may lie in memory in another
 * type, which is converted where its rows are copied. C is written by the micro-kernels, in f32, bf16 or i32; or the
 * sums of a block stay in scratch and the hook makes any type of them (`drain`).
 *
 * Work is a number of independent tiles, fixed by problem and tactic alone: whoever runs them, in any order and on any
 * number of threads, the bits are the same. Nothing is allocated and nothing is written but C and the caller's scratch.
 * B is packed once into panels (weights), or packed by each tile as it goes (products of two activations). A has any
 * strides; rows with unit stride inside are read where they lie. */
#ifndef CPU_GEMM_H
#define CPU_GEMM_H

#include "cpu/gemm_tile.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GEMM_BATCH_RANK = 3, GEMM_TACTICS_MAX = 12, GEMM_DIRECT_MAX = 32, GEMM_CUT = 768 };

/* Whether rows of A are copied beside each other before they are multiplied: where they lie in another type, where
 * their elements are not adjacent, or where their distance is a bad one for a cache. EACH: by every work tile, for
 * itself. FIRST: once, before all work tiles (gemm_copy). */
typedef enum gemm_copying { GEMM_COPY_NONE, GEMM_COPY_EACH, GEMM_COPY_FIRST } gemm_copying;

/* What few rows prefetch of B: nothing beside the next block, all of it, or the first lines of each page. Which one is
 * the fastest depends on the machine. */
typedef enum gemm_prefetch { GEMM_AHEAD_NONE, GEMM_AHEAD_ALL, GEMM_AHEAD_PAGES } gemm_prefetch;

/* How a product is cut. Plain bytes: equal bytes, equal tactic. */
typedef struct gemm_tactic {
    uint8_t vectors : 4; /* width of a panel of B, in vectors: 1..4                                    */
    uint8_t unit : 4;    /* gemm_unit                                                                  */
    uint8_t rows;     /* height of the register tile at most: 1..rows_max of that width                */
    uint8_t copy_a : 2; /* gemm_copying                                                                */
    uint8_t cut : 2;    /* 1: K is summed in parts of GEMM_CUT terms at most, through C                */
    uint8_t dot : 2;    /* 1: codes are multiplied with digits of A (codes_dot_set)                    */
    uint8_t ahead : 2;  /* gemm_prefetch                                                               */
    uint8_t direct;   /* B in codes: rows of A at most that are multiplied with them; else 0           */
    uint16_t block_m; /* register tiles of a work tile; 0: all                                         */
    uint16_t block_n; /* panels of a work tile, chosen so that they stay in the L2 cache; 0: all       */
} gemm_tactic;

/* Called after rows [row, row + rows) x columns [col, col + cols) of matrix `batch` are final; `c` points at the first
 * of them, in C or, to be drained, in scratch. It is f32, or i32 of an integer unit. For convolutions rows are output
 * pixels counted over the whole batch of images, columns are channels. */
typedef void gemm_post_fn(void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, void *c,
                          int64_t ldc);

typedef struct gemm_epilogue {
    const float *bias;     /* NULL or [n]                                                              */
    const float *residual; /* NULL or a matrix like C with row stride `ldr`; may be C itself           */
    const uint16_t *narrow_bias, *narrow_residual; /* the same in bf16, where the unit multiplies bf16 */
    int64_t ldr;
    bool drain; /* sums stay in scratch: C is not written, and the hook is there            */
    bool scale; /* multiply the sum by alpha before anything is added                       */
    bool clip;  /* then min(hi, max(lo, x)); relu: lo 0, hi infinity. A NaN stays a NaN      */
    float alpha, lo, hi;
    gemm_post_fn *post; /* NULL or the hook; its `user` is given to each run                        */
} gemm_epilogue;

struct gemm_codes;

typedef struct gemm_params {
    isa_level isa;
    gemm_tactic tactic;
    int64_t m, n, k;
    sinter_dtype a_type;  /* of A in memory; NONE: as the unit's terms. Others need tactic.copy_a */
    const void *a;
    int64_t a_row, a_col; /* strides in elements; a_col != 1 needs tactic.copy_a                */
    const void *copied;   /* A as gemm_copy left it, for tactic.copy_a FIRST; else NULL         */
    const void *b;        /* packed by gemm_pack, or raw, in the type of the unit's terms (s8)  */
    bool b_raw;           /* B is packed tile by tile into scratch                             */
    int64_t b_row, b_col; /* strides of a raw B                                                */
    const struct gemm_codes *codes; /* NULL, or the B: of codes of few bits (codes.h)                 */
    void *c;
    int64_t ldc;
    bool narrow_c; /* C is bf16, where the unit multiplies bf16; else f32, or i32 of an integer unit */
    int64_t batch[GEMM_BATCH_RANK]; /* sizes, outermost first; 1 where unused (0 also counts as 1)  */
    int64_t a_batch[GEMM_BATCH_RANK], b_batch[GEMM_BATCH_RANK], c_batch[GEMM_BATCH_RANK];
    int64_t residual_batch[GEMM_BATCH_RANK];
    gemm_epilogue epilogue;
} gemm_params;

/* What choosing a tactic needs to know. `taps` is 1 for a matrix product. */
typedef struct gemm_shape {
    int64_t m, n, k, taps;
    int64_t a_row, a_col;
    bool b_raw;
    bool is_converted; /* A lies in another type than the unit's terms */
    bool is_whole;     /* its owner runs it by gemm_copy and gemm_run: K may be cut, and A copied first */
    int64_t line;      /* so many rows of A, and again so many, lie at one distance; 0: all */
    gemm_unit unit;    /* that tactics are listed for                  */
    uint64_t cache;    /* bytes of the L2 cache that their blocks are cut for; 0: not known */
} gemm_shape;

/* Lists the sensible tactics, the one expected to be fastest first. Returns their number, at least 1. */
int gemm_tactics(isa_level isa, const gemm_shape *shape, gemm_tactic out[GEMM_TACTICS_MAX]);
/* NULL where the sizes are sound: to be asked before anything else about a shape that comes from outside. */
const char *gemm_shape_check(const gemm_shape *shape);
/* NULL where the tactic can run the shape, else the reason. */
const char *gemm_tactic_check(isa_level isa, const gemm_shape *shape, gemm_tactic tactic);
/* Prints "14x32 n8" or the like; returns the length as snprintf does. */
int gemm_tactic_print(char *text, size_t size, isa_level isa, gemm_tactic tactic);
/* Expected time in nanoseconds on one core of no particular machine: for ordering only. */
double gemm_cost(isa_level isa, const gemm_shape *shape, gemm_tactic tactic);

/* Bytes of a packed B of taps * k rows and n columns; depends on isa and the tactic's unit alone. SIZE_MAX: too large.
 */
size_t gemm_pack_size(isa_level isa, gemm_tactic tactic, int64_t taps, int64_t k, int64_t n);
/* Packs b[t][i][j] at src[t * tap_stride + i * row_stride + j * col_stride], in the type of the terms. `dst` should be
 * 64-byte aligned. */
void gemm_pack(isa_level isa, gemm_tactic tactic, int64_t taps, int64_t k, int64_t n, const void *src,
               int64_t tap_stride, int64_t row_stride, int64_t col_stride, void *dst);

/* Bytes of scratch that each worker needs (64-byte aligned), and the number of independent tiles. */
size_t gemm_scratch_size(const gemm_params *p);
/* For tactic.copy_a FIRST: bytes of the copy of A, which all workers share (64-byte aligned), and into how many pieces
 * of rows its making is cut; 0 for other tactics. All pieces are made before any work tile is computed. */
size_t gemm_copied_size(const gemm_params *p);
int64_t gemm_copy_count(const gemm_params *p);
/* Makes pieces [begin, end) of the copy. scratch: gemm_scratch_size. */
void gemm_copy(const gemm_params *p, int64_t begin, int64_t end, void *copied, void *scratch);
int64_t gemm_tile_count(const gemm_params *p);
/* Computes tiles [begin, end). */
void gemm_run(const gemm_params *p, int64_t begin, int64_t end, void *scratch, void *post_user);

#endif
