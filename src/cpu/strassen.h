/* SPDX-License-Identifier: Apache-2.0 */
/* strassen.h - fp32 matrix products by one step of Strassen's algorithm in Winograd's form: seven products of quarters
 * for eight, with four sums of quarters of A, and sums of quarters of B that are taken when B is packed.
 *
 *   S1 = A21 + A22   T1 = B12 - B11   P1 = A11 B11   P5 = S1 T1      C11 = P1 + P2
 *   S2 = S1 - A11    T2 = B22 - T1    P2 = A12 B21   P6 = S2 T2      U2 = P1 + P6     C21 = U2 + P7 + P4
 *   S3 = A11 - A21   T3 = B22 - B12   P3 = S4 B22    P7 = S3 T3      C12 = U2 + P5 + P3
 *   S4 = A12 - S2    T4 = B21 - T2    P4 = A22 T4                    C22 = U2 + P7 + P5
 *
 * Errors go with the largest operands of a quarter's row and column instead of with those of one result. An infinite
 * operand makes other results NaN, too. K and N are even. With an odd M the row that A21 and A22 lack is zeros. Work is
 * independent tiles in two phases, fixed by problem and tactic alone. */
#ifndef CPU_STRASSEN_H
#define CPU_STRASSEN_H

#include "cpu/gemm.h"

enum { STRASSEN_TACTICS_MAX = 6, STRASSEN_PRODUCTS = 7 };

typedef struct strassen_params {
    isa_level isa;
    gemm_tactic tactic; /* of the products; block_m, block_n: of a tile of each quarter of C */
    int64_t m, n, k;
    const float *a;
    int64_t a_row;
    const float *b; /* packed by strassen_pack */
    float *c;
    int64_t ldc;
    gemm_epilogue epilogue; /* no scale; the residual is not C */
} strassen_params;

/* NULL where the sizes can be computed so. */
const char *strassen_check(int64_t m, int64_t n, int64_t k);
/* Lists the sensible tactics. Returns their number, at least 1. */
int strassen_tactics(isa_level isa, int64_t m, int64_t n, int64_t k, gemm_tactic out[STRASSEN_TACTICS_MAX]);
const char *strassen_tactic_check(isa_level isa, int64_t m, int64_t n, int64_t k, gemm_tactic t);
/* In the unit of gemm_cost. */
double strassen_cost(isa_level isa, int64_t m, int64_t n, int64_t k, gemm_tactic t);

/* B[k][n] at strides `row`, `col`. Sums of B are taken in double. `dst` 64-byte aligned. */
size_t strassen_pack_size(isa_level isa, gemm_tactic t, int64_t n, int64_t k);
void strassen_pack(isa_level isa, gemm_tactic t, int64_t n, int64_t k, const float *b, int64_t row, int64_t col,
                   float *dst);

/* Memory that all workers share over both phases, and memory of each worker; 64-byte aligned. */
size_t strassen_workspace_size(const strassen_params *p);
size_t strassen_scratch_size(const strassen_params *p);
enum { STRASSEN_PHASES = 2 };
int64_t strassen_tile_count(const strassen_params *p, int phase);
void strassen_run(const strassen_params *p, int phase, int64_t begin, int64_t end, void *workspace, void *scratch,
                  void *post_user);

/* ---- the loops of one instruction set ---- */

/* A row of results, each of `count` floats. z: a row of P5. x: U2, becomes U2 + P5. c: NULL, or where y + z + bias +
 * residual goes. */
typedef struct strassen_row {
    int64_t count;
    float *x, *c;
    const float *y, *z, *bias, *residual;
    bool clip;
    float lo, hi;
} strassen_row;

typedef struct strassen_set {
    /* a21, a22: NULL for a row that there is not. s: S1 to S4, `part` floats apart. */
    void (*sums)(const float *a11, const float *a12, const float *a21, const float *a22, int64_t count, float *s,
                 int64_t part);
    void (*middle)(const strassen_row *r);
    void (*add)(float *c, const float *residual, int64_t count, bool clip, float lo, float hi);
} strassen_set;

#endif
