/* SPDX-License-Identifier: Apache-2.0 */
/* integer.c - zero points of 8-bit products, and what becomes of their sums. */
#include "cpu/integer.h"

#include "base/env.h"
#include "cpu/level.h"
#include <string.h>

static bool has_in(const problem *p, uint32_t i)
{
    return i < p->count_anchor && p->in[i].dtype != SINTER_DTYPE_NONE;
}

static bool is_byte(const problem_operand *o)
{
    return o->dtype == SINTER_DTYPE_U8 || o->dtype == SINTER_DTYPE_I8;
}

static bool is_one(const problem_operand *o)
{
    for (uint32_t i = 0; i < o->rank; i++)
        if (o->dim[i].max != 1) return false;
    return true;
}

/* Sums that nothing follows are stored by a program, too: they may go to rows of any strides. */
static const expr *stored(void *memory)
{
    expr *x = memory;
    x->count = 2;
    x->at[0] = (expr_instr){ .op = EXPR_ACC, .dtype = SINTER_DTYPE_I32 };
    x->at[1] = (expr_instr){ .op = EXPR_STORE, .dtype = SINTER_DTYPE_I32 };
    return x;
}

const char *integer_reject(const problem *p)
{
    REJECT_UNLESS(is_byte(&p->in[0]) && is_byte(&p->in[1]), "not in 8 bits");
    REJECT_UNLESS(p->epilogue || p->out[0].dtype == SINTER_DTYPE_I32, "the result is not i32");
    for (uint32_t i = 2; i < 4; i++) {
        REJECT_UNLESS(!has_in(p, i) || is_byte(&p->in[i]), "zero points are not in 8 bits");
        REJECT_UNLESS(!has_in(p, i) || p->in[i].rank < 2 || is_one(&p->in[i]), "zero points have several axes");
        REJECT_UNLESS(!has_in(p, i) || p->in[i].dtype == p->in[i - 2].dtype, "zero points are of another type");
    }
    return row_epilogue_reject(p);
}

double integer_end_ns(const problem *p)
{
    const double results = row_operand_bytes(&p->out[0]) / (sinter_dtype_bits(p->out[0].dtype) / 8);
    return results * (0.1 + 0.01 * (p->epilogue ? p->epilogue->count : 0));
}

size_t integer_room(const problem *p)
{
    _Alignas(expr) unsigned char memory[sizeof(expr) + 2 * sizeof(expr_instr)];
    return vm_room(p->epilogue ? p->epilogue : stored(memory));
}

sinter_status integer_end_bind(env *e, const problem *p, const tactic *t, const view *in, const view *out,
                               const uint8_t *order, void *room, integer_end *x)
{
    _Alignas(expr) unsigned char memory[sizeof(expr) + 2 * sizeof(expr_instr)];
    memset(x, 0, sizeof *x);
    x->fn = level_of(row_isa(t))->requant;
    x->set = level_of(row_isa(t))->integer;
    x->has_za = has_in(p, 2);
    x->has_zb = has_in(p, 3);
    x->a_flip = p->in[0].dtype == SINTER_DTYPE_I8 ? 128 : 0;
    x->b_flip = p->in[1].dtype == SINTER_DTYPE_U8 ? 128 : 0;
    if (x->has_za && in[2].rank == 1 && in[2].dim[0] > 1) x->za_step = in[2].stride[0], x->za_rows = in[2].dim[0];
    if (x->has_zb && in[3].rank == 1 && in[3].dim[0] > 1) x->zb_step = in[3].stride[0];
    requant_bind(p, in, out, order, &x->requant);
    if (x->requant.is_on) return SINTER_OK;
    if (p->epilogue) return row_epilogue_bind(e, p, row_isa(t), in, out, order, false, &x->epilogue, room);
    x->epilogue.has_program = true;
    return vm_bind(e, &x->epilogue.program, room, row_isa(t), stored(memory), out[0].rank, out[0].dim, order, true, in,
                   out);
}

void integer_flip(gemm_unit unit, void *panels, size_t size)
{
    uint8_t *code = panels;
    int16_t *wide = panels;
    if (unit == GEMM_U8_PAIRS)
        for (size_t i = 0; i < size / sizeof *wide; i++) wide[i] = (int8_t)(wide[i] ^ 0x80);
    else
        for (size_t i = 0; i < size; i++) code[i] ^= 0x80u;
}

size_t integer_sums_size(int64_t n)
{
    return size_align(size_mul(size_add((size_t)n, 1), sizeof(int32_t)), 64);
}

bool integer_is_narrow(const void *panels, size_t size)
{
    enum { MOST = 128 };
    const int8_t *code = panels;
    bool is_wide = false;
    for (size_t i = 0; i + 1 < size && !is_wide; i += 2) {
        const int a = code[i], b = code[i + 1];
        const int above = (a > 0 ? a : 0) + (b > 0 ? b : 0), below = (a < 0 ? a : 0) + (b < 0 ? b : 0);
        is_wide = above > MOST || below < -MOST;
    }
    return !is_wide;
}

gemm_tactic integer_tactic(gemm_tactic t, const int32_t *sum, int64_t n, sinter_dtype a, bool is_inner)
{
    if (t.unit != GEMM_U8_PAIRS || !sum[n]) return t;
    t.unit = GEMM_U8_NARROW;
    if (a == SINTER_DTYPE_U8 && is_inner) t.copy_a = 0;
    return t;
}

size_t integer_work_size(int64_t n, int64_t matrices)
{
    const size_t count = size_add(size_mul((size_t)n, (size_t)matrices), (size_t)n);
    return size_align(size_mul(count, sizeof(int32_t)), 64);
}

static int32_t za_at(const integer_run *r, int64_t row)
{
    const integer_end *x = r->end;
    return r->za ? r->za[x->za_step ? row % x->za_rows * x->za_step : 0] ^ x->a_flip : x->a_flip;
}

void integer_begin(const integer_end *x, const kernel_run *k, const int32_t *sum, int64_t matrices, void *work,
                   integer_run *r)
{
    *r = (integer_run){ .end = x,
                        .io = { k->in, k->out },
                        .sum = sum,
                        .less = work,
                        .za = x->has_za ? k->in[2] : NULL,
                        .has_rows = x->za_step != 0 };
    const uint32_t za = (uint32_t)za_at(r, 0);
    for (int64_t i = 0; i < matrices * x->n; i++) r->less[i] = (int32_t)(za * (uint32_t)sum[i]);
    if (!x->has_zb && !x->b_flip) return;
    int32_t *zb = r->less + matrices * x->n, any = 0;
    const uint8_t *from = x->has_zb ? k->in[3] : NULL;
    for (int64_t i = 0; i < x->n; i++) {
        /* As codes of B are: without a zero point theirs is 0, which is 128 less for those without a sign. */
        zb[i] = (int8_t)((from ? from[i * x->zb_step] : 0) ^ x->b_flip);
        any |= zb[i];
    }
    if (!any) return;
    r->zb = zb;
    r->has_rows = true;
}

uint8_t integer_pad(const integer_run *r)
{
    return r->za ? r->za[0] : 0;
}

/* Takes off what zero points add, row by row. */
static void rows_finish(const integer_run *r, int64_t matrix, int64_t batch, int64_t first, int64_t row, int64_t rows,
                        int64_t col, int64_t cols, int32_t *c, int64_t ldc)
{
    const integer_end *x = r->end;
    int64_t sum[INTEGER_ROWS_MAX] = { 0 };
    const int32_t *of_b = r->sum + matrix * x->n + col, *less = r->less + matrix * x->n + col;
    const int32_t *zb = r->zb ? r->zb + col : NULL;
    if (zb) r->rows(r->user, batch, first, rows, col, sum);
    for (int64_t i = 0; i < rows; i++) {
        const uint32_t za = (uint32_t)za_at(r, row + i), other = (uint32_t)sum[i] - (uint32_t)x->k * za;
        x->set->take_off(c + i * ldc, x->za_step ? of_b : less, x->za_step ? za : 1, zb, other, cols);
    }
}

static void end_sums(const integer_run *r, int64_t row, int64_t rows, int64_t col, int64_t cols, int32_t *c,
                     int64_t ldc, const int32_t *less)
{
    const integer_end *x = r->end;
    if (x->requant.is_on) {
        requant_run(&x->requant, x->fn, r->io.in, r->io.out, row, rows, col, cols, c, ldc, less);
        return;
    }
    for (int64_t i = 0; i < rows && less; i++) x->set->take_off(c + i * ldc, less, 1, NULL, 0, cols);
    vm_block(&x->epilogue.program, &r->io, row, rows, col, cols, c, ldc);
}

void integer_ended(const integer_run *r, int64_t row, int64_t rows, int64_t col, int64_t cols, int32_t *c, int64_t ldc)
{
    end_sums(r, row, rows, col, cols, c, ldc, NULL);
}

void integer_finish(const integer_run *r, int64_t matrix, int64_t batch, int64_t first, int64_t row, int64_t rows,
                    int64_t col, int64_t cols, int32_t *c, int64_t ldc)
{
    if (!r->has_rows) {
        end_sums(r, row, rows, col, cols, c, ldc, r->less + matrix * r->end->n + col);
        return;
    }
    for (int64_t i = 0; i < rows; i += INTEGER_ROWS_MAX) {
        const int64_t some = rows - i < INTEGER_ROWS_MAX ? rows - i : INTEGER_ROWS_MAX;
        rows_finish(r, matrix, batch, first + i, row + i, some, col, cols, c + i * ldc, ldc);
    }
    end_sums(r, row, rows, col, cols, c, ldc, NULL);
}
