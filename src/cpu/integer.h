/* SPDX-License-Identifier: Apache-2.0 */
/* integer.h - what the kernel rows of 8-bit products share: zero points, and the end of sums.
 *
 * The tiles multiply a, as u8, with b, as s8 (gemm_tile.h). Codes of A that have a sign are seen as 128 more, and so is
 * their zero point; codes of B that have none as 128 less. Then
 *
 *   sum (a - za) (b - zb)  =  sum a b  -  za sum b  -  zb sum a  +  k za zb
 *
 * modulo 2^32. Sums of B's columns lie packed behind B. Sums of A's rows are wanted only where a zero point of B is not
 * 0, which hardly a model has, and are made then. */
#ifndef CPU_INTEGER_H
#define CPU_INTEGER_H

#include "cpu/requant.h"
#include "cpu/row.h"

enum { INTEGER_TERMS_MAX = 32768, INTEGER_ROWS_MAX = 64 }; /* so that sums fit; rows that are finished at once */

/* The loops of a level over n codes or sums. */
typedef struct integer_set {
    /* to = from ^ flip; returns the sum of what that is as codes with a sign. */
    int32_t (*copy)(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip);
    /* The same; adds each code to its own sum. */
    void (*add)(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip, int32_t *sum);
    /* The sum of codes ^ flip, without a sign. */
    uint32_t (*sum)(const uint8_t *from, int64_t n, uint8_t flip);
    /* c[j] -= by * a[j] + other * b[j], modulo 2^32. b may be NULL. */
    void (*take_off)(int32_t *c, const int32_t *a, uint32_t by, const int32_t *b, uint32_t other, int64_t n);
    /* c[j] -= a[j] + b[j] * (s[j] - less), modulo 2^32. */
    void (*take_off_each)(int32_t *c, const int32_t *a, const int32_t *b, const int32_t *s, uint32_t less, int64_t n);
    /* Codes as terms of A: those with a sign with 128 added, as u8; both kinds as i16. */
    gemm_load_fn *load_signed, *widen, *widen_signed;
} integer_set;

/* Bound with the problem. */
typedef struct integer_end {
    requant requant;       /* is_on: the epilogue has the usual form */
    row_epilogue epilogue; /* otherwise: a program, if only to store sums */
    requant_fn *fn;
    const integer_set *set;
    bool has_za, has_zb;
    uint8_t a_flip, b_flip;
    int64_t za_step, za_rows; /* za_step not 0: a zero point for each of so many rows, again and again */
    int64_t zb_step;
    int64_t n, k; /* columns of all groups; terms of a sum */
} integer_end;

typedef struct integer_run integer_run;
/* Sums of the codes (flipped) of rows [row, row + rows) of A, for a batch and the columns from `col` on. */
typedef void integer_rows_fn(const void *user, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t *sum);

/* Of one run. */
struct integer_run {
    const integer_end *end;
    vm_io io;
    const int32_t *sum; /* of B's columns: [n] for each matrix of B */
    int32_t *less;      /* za * sum, as many */
    int32_t *zb;        /* NULL where all are 0; else [n] */
    const uint8_t *za;
    bool has_rows; /* sums of A's rows, or their zero points, are wanted */
    integer_rows_fn *rows;
    const void *user;
};

/* Why the types and zero points of a problem cannot be taken; NULL: they can. */
const char *integer_reject(const problem *p);
/* What ending all sums costs, on one thread. */
double integer_end_ns(const problem *p);
/* Bytes behind a record. */
size_t integer_room(const problem *p);
/* order: of the result's axes, columns last. */
sinter_status integer_end_bind(env *e, const problem *p, const tactic *t, const view *in, const view *out,
                               const uint8_t *order, void *room, integer_end *x);
/* Makes codes with a sign of a packed B whose codes have none. size: of its panels, in bytes. */
void integer_flip(gemm_unit unit, void *panels, size_t size);
/* Bytes of the sums of n columns of a packed B, and of whether it is narrow, which stands behind them. */
size_t integer_sums_size(int64_t n);
/* Whether no two neighbours of a B in words of four s8, times any u8, leave 16 bits: 255 * 128 and 255 * -128 are in
 * them. */
bool integer_is_narrow(const void *panels, size_t size);
/* The tactic for a packed B whose sums are `sum`. a: the type of A; is_inner: its rows are adjacent terms. */
gemm_tactic integer_tactic(gemm_tactic t, const int32_t *sum, int64_t n, sinter_dtype a, bool is_inner);
/* Bytes of workspace for `matrices` matrices of B. */
size_t integer_work_size(int64_t n, int64_t matrices);
/* sum: of the columns of `matrices` matrices. work: of integer_work_size bytes. */
void integer_begin(const integer_end *x, const kernel_run *k, const int32_t *sum, int64_t matrices, void *work,
                   integer_run *r);
/* The one zero point of A as it lies in memory. */
uint8_t integer_pad(const integer_run *r);
/* Ends sums of rows [row, row + rows) of the space and columns [col, col + cols), which it may change. matrix: of B;
 * first: the row within the batch. */
void integer_finish(const integer_run *r, int64_t matrix, int64_t batch, int64_t first, int64_t row, int64_t rows,
                    int64_t col, int64_t cols, int32_t *c, int64_t ldc);
/* The same for sums that zero points have been taken off. */
void integer_ended(const integer_run *r, int64_t row, int64_t rows, int64_t col, int64_t cols, int32_t *c, int64_t ldc);

#endif
