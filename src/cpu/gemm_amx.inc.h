/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_amx.inc.h - the text of the micro-kernels of one unit by matrix registers (AMX), included once for each unit.
 *
 * A register holds 16 rows of 64 bytes. Sums are 1 or 2 registers high (rows of A) and 1 to 4 wide (columns of B), 4 at
 * most; a step loads the next 16 words of K of each row and column, and multiplies. Where K has fewer, or no multiple
 * of 16, all steps have as many words, and the panel of B is zeros past K. What one register takes of B lies in one
 * piece: rows at a distance load up to three times as slowly. Rows of A that lie at one distance are
 * loaded as they are; others, and the last part of a row that is no whole step, are first copied beside each other.
 * Sums are stored in C, or in memory near by for whatever has to be done to them.
 *
 * Who includes this defines, beside what gemm_end.inc.h wants and finds undefined afterwards:
 *   UNIT_TERMS         terms in a word
 *   UNIT_PARTS         1; or of numbers that are sums of 2 or 3 how many (gemm_split.inc.h has what differs)
 *   UNIT_MUL(s, a, b)  s + a * b, of registers given by number
 *   UNIT_SUMS(p)       16 sums at p in a vector */
#include "cpu/gemm_end.inc.h"

/* The next rows of results, from sums that lie next to each other. */
static inline __attribute__((always_inline)) void UNIT_NAME(tile_finish)(gemm_tile *t, const float *sums,
                                                                         const int rows, const int wide)
{
    UNIT_SUM acc[AMX_ROWS][GEMM_VECTORS_MAX];
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < wide; j++) acc[i][j] = UNIT_SUMS(sums + (i * wide + j) * 16);
    }
    UNIT_NAME(tile_end)(t, acc, rows, rows, wide);
    t->c = (char *)t->c + rows * t->ldc * (t->flags & GEMM_TILE_NARROW_C ? 2 : 4);
    if (t->residual)
        t->residual = (const char *)t->residual + rows * t->ldr * (t->flags & GEMM_TILE_NARROW_RESIDUAL ? 2 : 4);
}

#if UNIT_IS_NARROW
/* The same for all rows of whole registers that become bf16, two at a time: most of what a convolution with few terms
 * takes. Bounds that are infinite clip nothing. */
static inline __attribute__((always_inline)) bool UNIT_NAME(tile_narrow)(const gemm_tile *t, const float *sums,
                                                                         const int wide)
{
    const uint32_t wanted = GEMM_TILE_NARROW_C | (t->residual ? GEMM_TILE_NARROW_RESIDUAL : 0u);
    if (wide % 2 || t->cols != 16 * wide || t->flags & GEMM_TILE_ALPHA || (t->flags & wanted) != wanted) return false;
    const bool is_clipped = t->flags & GEMM_TILE_CLIP;
    const vec lo = v_set(is_clipped ? t->lo : -INFINITY), hi = v_set(is_clipped ? t->hi : INFINITY);
    const uint16_t *residual = t->residual;
    uint16_t *c = t->c;
    vec bias[4] = { v_zero(), v_zero(), v_zero(), v_zero() };
    for (int j = 0; j < wide && t->bias; j++)
        bias[j] = t->flags & GEMM_TILE_NARROW_BIAS ? v_load_bf16((const uint16_t *)t->bias + 16 * j)
                                                   : v_load((const float *)t->bias + 16 * j);
    for (int32_t i = 0; i < t->rows; i++, sums += 16 * wide, c += t->ldc) {
        UNROLL for (int j = 0; j < wide; j += 2)
        {
            vec low = v_add(v_load(sums + 16 * j), bias[j]), high = v_add(v_load(sums + 16 * j + 16), bias[j + 1]);
            if (residual) {
                low = v_add(low, v_load_bf16(residual + 16 * j));
                high = v_add(high, v_load_bf16(residual + 16 * j + 16));
            }
            low = v_min(hi, v_max(lo, low));
            high = v_min(hi, v_max(lo, high));
            _mm512_storeu_si512(c + 16 * j, (__m512i)_mm512_cvtne2ps_pbh(high, low));
        }
        if (residual) residual += t->ldr;
    }
    return true;
}
#endif

#if UNIT_PARTS > 1
static void UNIT_NAME(split_row)(void *to, int64_t plane, const float *src, int64_t n)
{
    split_row(to, plane, src, n, UNIT_PARTS);
}
static void UNIT_NAME(pack)(void *dst, const void *src, int64_t k, int32_t cols, int32_t width, int64_t row_stride,
                            int64_t col_stride)
{
    split_pack(dst, src, k, cols, width, row_stride, col_stride, UNIT_PARTS);
}
static inline __attribute__((always_inline)) void UNIT_NAME(tile_sums)(const gemm_tile *t, const int high,
                                                                       const int wide)
{
    split_sums(t, high, wide, UNIT_PARTS);
}
#else
/* The sums, in registers. */
static inline __attribute__((always_inline)) void UNIT_NAME(tile_sums)(const gemm_tile *t, const int high,
                                                                       const int wide)
{
    const int64_t steps = amx_steps(t->k, UNIT_TERMS), each = amx_each(t->k, UNIT_TERMS), piece = 64 * each;
    const int32_t rows0 = high > 1 ? amx_first(t->rows) : t->rows, rows1 = t->rows - rows0;
    const char *b = t->b;
    const void *const *from = t->a;
    _Alignas(64) char copy[2][16][64];
    amx_rows r0 = { .size = t->k * (4 / UNIT_TERMS), .each = 4 * each, .copy = copy[0] }, r1 = r0;
    r1.copy = copy[1];
    amx_ahead ahead = amx_ahead_of(t, steps, each, wide);
    for (int64_t tap = t->taps; tap > 0; tap--, from += t->rows) {
        amx_rows_begin(&r0, from, rows0);
        if (high > 1) amx_rows_begin(&r1, from + rows0, rows1);
        for (int64_t k = 0; k < steps; k++, b += piece * wide) {
            amx_ahead_next(&ahead);
            _tile_loadd(6, b, 64);
            amx_rows_next(&r0);
            _tile_loadd(4, r0.at, r0.stride);
            UNIT_MUL(0, 4, 6);
            if (wide > 1) {
                _tile_loadd(7, b + piece, 64);
                UNIT_MUL(1, 4, 7);
            }
            if (high > 1) {
                amx_rows_next(&r1);
                _tile_loadd(5, r1.at, r1.stride);
                UNIT_MUL(2, 5, 6);
                if (wide > 1) UNIT_MUL(3, 5, 7);
            }
            if (wide > 2) {
                _tile_loadd(5, b + 2 * piece, 64);
                UNIT_MUL(2, 4, 5);
            }
            if (wide > 3) {
                _tile_loadd(6, b + 3 * piece, 64);
                UNIT_MUL(3, 4, 6);
            }
        }
    }
}
#endif

static inline __attribute__((always_inline)) void UNIT_NAME(tile_run)(const gemm_tile *t, const int high,
                                                                      const int wide)
{
    const int32_t rows0 = high > 1 ? amx_first(t->rows) : t->rows;
    _tile_zero(0);
    if (wide > 1) _tile_zero(1);
    if (wide > 2 || high > 1) _tile_zero(2);
    if (wide > 3 || (high > 1 && wide > 1)) _tile_zero(3);
    UNIT_NAME(tile_sums)(t, high, wide);
    const bool is_whole = t->cols == wide * 16 && !t->flags && !t->bias && !t->residual;
    _Alignas(64) float near[AMX_SUMS][16];
    float *c = is_whole ? t->c : near[0];
    const int64_t ldc = is_whole ? t->ldc : 16 * wide;
    _tile_stored(0, c, 4 * ldc);
    if (wide > 1) _tile_stored(1, c + 16, 4 * ldc);
    if (wide > 2) _tile_stored(2, c + 32, 4 * ldc);
    if (wide > 3) _tile_stored(3, c + 48, 4 * ldc);
    if (high > 1) {
        float *below = c + rows0 * ldc;
        _tile_stored(2, below, 4 * ldc);
        if (wide > 1) _tile_stored(3, below + 16, 4 * ldc);
    }
#if UNIT_PARTS > 1
    if (!split_is_finite(c, ldc, t->rows, wide)) split_again(t, c, ldc, wide, UNIT_PARTS);
#endif
    if (is_whole) return;
#if UNIT_IS_NARROW
    if (UNIT_NAME(tile_narrow)(t, c, wide)) return;
#endif
    gemm_tile end = *t;
    int32_t left = t->rows;
    for (; left >= AMX_ROWS; left -= AMX_ROWS, c += AMX_ROWS * ldc) UNIT_NAME(tile_finish)(&end, c, AMX_ROWS, wide);
    for (; left > 0; left--, c += ldc) UNIT_NAME(tile_finish)(&end, c, 1, wide);
}

static void UNIT_NAME(tile_1)(const gemm_tile *t)
{
    if (t->rows > 16) UNIT_NAME(tile_run)(t, 2, 1);
    else UNIT_NAME(tile_run)(t, 1, 1);
}
static void UNIT_NAME(tile_2)(const gemm_tile *t)
{
    if (t->rows > 16) UNIT_NAME(tile_run)(t, 2, 2);
    else UNIT_NAME(tile_run)(t, 1, 2);
}
static void UNIT_NAME(tile_3)(const gemm_tile *t)
{
    UNIT_NAME(tile_run)(t, 1, 3);
}
static void UNIT_NAME(tile_4)(const gemm_tile *t)
{
    UNIT_NAME(tile_run)(t, 1, 4);
}

static void UNIT_NAME(set_up)(int32_t rows, int64_t k, int32_t *state)
{
    amx_set_up(rows, amx_each(k, UNIT_TERMS), state);
}

#if UNIT_PARTS == 1
/* Step after step, and in it the columns of each register; zeros as far as the last step reads. */
static void UNIT_NAME(pack)(void *dst, const void *src, int64_t k, int32_t cols, int32_t width, int64_t row_stride,
                            int64_t col_stride)
{
    const int64_t steps = amx_steps(k, UNIT_TERMS), each = amx_each(k, UNIT_TERMS), size = 4 / UNIT_TERMS;
    char *to = dst;
    for (int64_t i = 0; i < steps; i++) {
        const int64_t begin = i * each * UNIT_TERMS, left = k - begin > 0 ? k - begin : 0;
        const int64_t terms = left < each * UNIT_TERMS ? left : each * UNIT_TERMS;
        for (int32_t j = 0; j < width; j += 16, to += 64 * each) {
            const int32_t there = cols - j < 0 ? 0 : cols - j > 16 ? 16 : cols - j;
            const int64_t words = there ? (terms + UNIT_TERMS - 1) / UNIT_TERMS : 0;
            if (words)
                pack_terms(to, (const char *)src + (begin * row_stride + j * col_stride) * size, terms, there, 16,
                           row_stride, col_stride, size);
            memset(to + 64 * words, 0, (size_t)(64 * (each - words)));
        }
    }
}
#endif

static const gemm_tile_set UNIT_NAME(unit_set) = {
    .lanes = 16,
    .terms = UNIT_TERMS,
    .step = AMX_WORDS,
    .rows_max = { 32, 32, 16, 16 },
    .pack = UNIT_NAME(pack),
#if UNIT_PARTS > 1
    .b_size = sizeof(float),
    .parts = UNIT_PARTS,
    .split = UNIT_NAME(split_row),
#endif
    .any = { UNIT_NAME(tile_1), UNIT_NAME(tile_2), UNIT_NAME(tile_3), UNIT_NAME(tile_4) },
    .set_up = UNIT_NAME(set_up),
    .give_back = amx_give_back,
};

#undef UNIT_TERMS
#undef UNIT_PARTS
#undef UNIT_MUL
#undef UNIT_SUMS
#include "cpu/gemm_unit_off.inc.h"
