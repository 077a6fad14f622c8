/* SPDX-License-Identifier: Apache-2.0 */
/* codes.h - f32 products whose weight stays in codes of 4 or 8 bits: (code - zero point) * scale is made of them where
 * it is multiplied.
 *
 * A weight is read once, in the order in which it lies. It is cut into panels of CODES_VECTORS vectors of columns. A
 * word of 32 bits holds the codes of one column for 8 (4 bits) or 4 (8 bits) terms, the first in the low bits:
 *
 *   codes   [panel][term / terms of a word][column]      words
 *   scales  [panel][block][column]                       in the model's type
 *   zeros   [panel][block][column]                       bytes
 *
 * A few rows of A are multiplied with codes in registers: the sum of a block, then its scale. For more rows, panels are
 * expanded to f32 in the cache, and the micro-kernels of gemm_tile.h read those. */
#ifndef CPU_CODES_H
#define CPU_CODES_H

#include "ops/packed.h"
#include "cpu/gemm.h"

/* CHUNK: terms at most that are summed before they are scaled. DEPTH: that are expanded at once, about. ROWS: of A that
 * are multiplied at once, at most. */
enum { CODES_VECTORS = 4, CODES_CHUNK = 128, CODES_DEPTH = 512, CODES_ROWS = 6, CODES_UNIT = 8 };

/* Integers of 4 bits, with 8 added where they are signed; of 8 bits; floats of 1, 3 and 2 bits of mantissa. */
typedef enum code_kind { CODE_4, CODE_S8, CODE_U8, CODE_F4, CODE_F8_3, CODE_F8_2, CODE_KINDS } code_kind;

/* A weight as its program says, of blocks of a multiple of CODES_UNIT terms, and what its codes are. */
typedef struct codes_form {
    packed_form w;
    code_kind kind;
    int32_t zero_point;                 /* of codes as they are packed */
    float unit;                         /* of floats: what their bits, as those of an f32, are multiplied by */
} codes_form;

/* NULL: `f` says how the problem's weight is packed; else why this is no such weight. */
const char *codes_form_of(const problem *p, codes_form *f);
/* As a kernel's pack_size and pack, of the inputs that belong to the weight. */
size_t codes_pack_size(const problem *p, const codes_form *f, isa_level isa, uint32_t input);
void   codes_pack(const problem *p, const codes_form *f, isa_level isa, uint32_t input, const view *src, void *dst);

/* One panel against a few rows: c[row][column] = the sums. */
typedef struct codes_tile {
    const float *x;                     /* prepared rows */
    const float *sum;                   /* of each row and chunk: sum[row * chunks + chunk] */
    int64_t ldx, chunks;
    const int32_t *code;                /* of the panel */
    const void *scale;
    const uint8_t *zero;                /* NULL: zero_point */
    float *c;                           /* [rows][CODES_VECTORS * lanes] */
    int64_t terms;                      /* K, rounded up to CODES_UNIT */
    int64_t block, chunk;
    int64_t scale_step, zero_step;      /* elements from one block to the next; 0: all have the same */
    int32_t zero_point;
    float unit;
    sinter_dtype scale_type;
    const int32_t *digit, *digit_sum;   /* for codes_dot_set instead of x and sum: [terms], [chunk][4] */
    const float *step;                  /* of each chunk: what a digit of the lowest place is worth */
} codes_tile;

typedef void codes_tile_fn(const codes_tile *t);

/* The loops of one instruction set. */
typedef struct codes_set {
    int32_t lanes, rows;                /* rows of A at once */
    codes_tile_fn *run[CODE_KINDS][CODES_ROWS];
    /* b[term][vectors * lanes] = f32 values of `vectors` vectors of the panel from `first` on, of `terms` terms. */
    void (*expand[CODE_KINDS])(const codes_tile *t, int32_t first, int32_t vectors, int64_t terms, float *b);
    /* A row of A, with its sums. Integers of 4 bits are read in place, so that x is divided by 16 for each place.
     * False: a number, or a sum, is not finite, or near it; or all numbers are so small that x loses bits. */
    bool (*prepare)(const float *a, int64_t stride, int64_t k, int64_t terms, int64_t chunk, bool is_4, float *x,
                    float *sum);
} codes_set;

/* The loops of instruction sets that multiply bytes, for codes that are integers.
 *
 * The numbers of a row of A become whole multiples of a step, one for each chunk: a power of 2, so small that the
 * largest number of the chunk takes 23 bits, or 31. These are 3 or 4 signed bytes, the digits of a number to the base
 * 256. Sums of codes by digits are exact; they meet at the end of a chunk. So what is lost is what a number has below
 * the step of its chunk. For each 8 codes of 4 bits, or 4 of 8, digits are four words, of the lowest place first: 4
 * terms each, and of 4 bits those of the even terms before those of the odd ones. */
enum { CODES_PLACES = 4, CODES_DOT_KINDS = CODE_U8 + 1 };
typedef struct codes_dot_set {
    /* Places that a row needs: 3 where no chunk has a number far above the mean of its others, which it would leave
     * with few bits; 4; or 0: numbers are not finite, or too large or too small for steps. */
    int (*places)(const float *a, int64_t stride, int64_t k, int64_t terms, int64_t chunk);
    void (*digits)(const float *a, int64_t stride, int64_t k, int64_t terms, int64_t chunk, bool is_4, int places,
                   int32_t *digit, int32_t *sum, float *step);
    codes_tile_fn *run[CODES_DOT_KINDS][2]; /* of one row, by kind and places - 3 */
} codes_dot_set;

#if CPU_HAS_X86
extern const codes_dot_set *const level_avx2_codes_dot, *const level_avx512_codes_dot;
#endif

/* The loops by digits of a level; NULL where it has none, or they do not take such codes. They need the features of
 * GEMM_U8_DOT. */
const codes_dot_set *codes_dot_of(isa_level isa, const codes_form *f);

/* The B of a product (gemm_params.codes), and whether its rows are few enough to be multiplied with codes. */
typedef struct gemm_codes {
    codes_form form;
    const void *code, *scale, *zero;
    bool is_direct;
} gemm_codes;

int64_t codes_panels(const gemm_params *p);
/* Bytes of scratch of a worker beside what the core takes. */
size_t codes_scratch_size(const gemm_params *p, int64_t rows);
/* Terms that are expanded at once: whole blocks, few enough to stay in the cache. */
int64_t codes_depth(const gemm_params *p);
/* Panels of B as gemm_pack makes them, of columns [col, end), and of the terms [k, k + terms) of one such depth. */
void codes_expand(const gemm_params *p, int64_t width, int64_t col, int64_t end, int64_t k, int64_t terms, float *b);
/* Rows [0, m) of one matrix times panel `panel`. What preparing returns is what the panels are told; 0: the numbers of
 * A are too large or too small for codes, and the weight has to be expanded. */
int  codes_prepare(const gemm_params *p, const float *a, void *scratch);
void codes_panel(const gemm_params *p, int64_t batch, int64_t panel, int places, int64_t residual_at, float *c,
                 void *scratch, void *post_user);

#endif
