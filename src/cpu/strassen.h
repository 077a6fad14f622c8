/* SPDX-License-Identifier: Apache-2.0 */
/* strassen.h - fp32 products with a packed B by one level of Strassen's method: 7 products of quarters in place of 8.
 *
 * A, B and C are cut in halves along rows and along columns. With Winograd's sums (Strassen, "Gaussian elimination is
 * not optimal", 1969; Higham, "Accuracy and Stability of Numerical Algorithms", chapter 23)
 *
 *   S1 = A21 + A22   S2 = S1 - A11   S3 = A11 - A21   S4 = A12 - S2
 *   T1 = B12 - B11   T2 = B22 - T1   T3 = B22 - B12   T4 = B21 - T2
 *   P1 = A11 B11   P2 = A12 B21   P3 = S4 B22   P4 = A22 T4   P5 = S1 T1   P6 = S2 T2   P7 = S3 T3
 *   C11 = P1 + P2                C12 = P1 + P6 + P5 + P3
 *   C21 = P1 + P6 + P7 + P4      C22 = P1 + P6 + P7 + P5
 *
 * The seven right factors are made once, in double, when B is packed: a packed B is 7/4 as large. The sums of A are the
 * first phase. The second phase has independent work tiles: each makes the same block of all four quarters, and the
 * partial sums of a block stay in scratch.
 *
 * Errors: an element of C is a sum of up to 4 products of sums of up to 4 quarters, so its error goes with the largest
 * operands of two rows of A and two columns of B rather than with those of one. Measured against plain sums, rms: 1.9
 * to 2.4 times. Rows of A may belong to different requests: a row whose partner is much larger or not finite is
 * computed by itself (strassen.c), so each row stays within the bound of its own size. Columns belong to one matrix: an
 * infinite element of B makes NaN of the other column of its pair, too. */
#ifndef CPU_STRASSEN_H
#define CPU_STRASSEN_H

#include "cpu/gemm.h"

enum { STRASSEN_TACTICS_MAX = 8 };
/* The right factors in their order in a packed B. */
enum { F_B11, F_B21, F_T2, F_T3, F_T1, F_B22, F_T4, STRASSEN_FACTORS };

typedef struct strassen_params {
    isa_level isa;
    gemm_tactic tactic;     /* of the product of two quarters; block_m 0: all rows. copy_a is 0 */
    int64_t m, n, k;        /* n and k are even; m is 2 or more                                 */
    const float *a;
    int64_t a_row;          /* elements from row to row; terms are adjacent                     */
    const float *b;         /* packed by strassen_pack                                          */
    float *c;
    int64_t ldc;
    gemm_epilogue epilogue; /* no scale, no drain                                               */
} strassen_params;

/* NULL where the kernel can run a product of these sizes, else the reason. */
const char *strassen_shape_check(int64_t m, int64_t n, int64_t k);
/* Lists the sensible tactics, the one expected to be fastest first. Returns their number, at least 1. cache: bytes of
 * the L2 cache; 0: not known. */
int strassen_tactics(isa_level isa, int64_t m, int64_t n, int64_t k, uint64_t cache, uint32_t threads,
                     gemm_tactic out[STRASSEN_TACTICS_MAX]);
const char *strassen_tactic_check(isa_level isa, int64_t m, int64_t n, int64_t k, gemm_tactic tactic);
/* In the unit of gemm_cost, on one core. */
double strassen_cost(isa_level isa, int64_t m, int64_t n, int64_t k, gemm_tactic tactic);

/* b[i][j] at src[i * row_stride + j * col_stride]. `dst` is 64-byte aligned. */
size_t strassen_pack_size(isa_level isa, gemm_tactic tactic, int64_t n, int64_t k);
void strassen_pack(isa_level isa, gemm_tactic tactic, int64_t n, int64_t k, const float *src, int64_t row_stride,
                   int64_t col_stride, float *dst);

/* Memory that all workers share over both phases, and memory of each worker; both 64-byte aligned. */
size_t strassen_workspace_size(const strassen_params *p);
/* has_fewer: as much as any number of rows up to p->m takes. */
size_t strassen_scratch_size(const strassen_params *p, bool has_fewer);
/* Phase 0 makes the sums of A. Phase 1 begins when all tiles of phase 0 have ended. */
enum { STRASSEN_PHASES = 2 };
int64_t strassen_tile_count(const strassen_params *p, int phase);
void strassen_run(const strassen_params *p, int phase, int64_t begin, int64_t end, void *workspace, void *scratch,
                  void *post_user);

/* ---- the loops of one instruction set ---- */

/* One row of the sums of A. s[0] to s[3] are S1 to S4; s[0] may be a21 and a22. copy: NULL, or where A11, A12 and A22
 * are copied to. */
typedef struct strassen_row {
    const float *a11, *a12, *a21, *a22;
    float *s[4];
    float *const *copy;
    float *square; /* the sums of squares of a11 and a12, and of a21 and a22 */
    int64_t n;
} strassen_row;

/* x += z, and c = y + z with the epilogue: rows of x, y and z are `ld` apart. x may be z. */
typedef struct strassen_end {
    const float *z, *y;
    float *x, *c;
    const float *bias, *residual;   /* NULL: none */
    int64_t ld, ldc, ldr, rows, cols;
    bool clip;
    float lo, hi;
} strassen_end;

/* to = x + y: rows of `to` and x are `ld` apart. */
typedef struct strassen_sum {
    float *to;
    const float *x, *y;
    int64_t ld, ldy, rows, cols;
} strassen_sum;

typedef struct strassen_set {
    void (*sums)(const strassen_row *r);
    void (*end)(const strassen_end *e);
    void (*add)(const strassen_sum *s);
} strassen_set;

#endif
