/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_split.inc.h - products of f32 by matrix registers for bf16, included once by level_avx512_amx.c.
 *
 * A number is a sum of parts of bf16: the nearest number, the nearest to what is left, and so on. Three parts hold all
 * 24 bits, two hold 16. The product of two numbers is the sum of the products of their parts. Those of part i of one
 * with part j of the other are left out where i + j is the number of parts or more: they are as small as what the parts
 * do not hold. (G. Henry, P. Tang and A. Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for
 * higher-precision computations", 2019.)
 *
 * Infinities and NaN have no second part. Where they are operands, a sum is one of them, too, or should be: such tiles
 * are summed once more, number by number. */
enum { SPLIT_PARTS_MAX = 3 };

/* The parts of 16 numbers. The nearest number of bf16 to one of the largest of f32 is infinite: they are cut off. */
static inline __attribute__((always_inline)) void split_vector(__m512 v, __m256i *part, const int parts)
{
    const __m512i bits = _mm512_castps_si512(v), size = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    const __mmask16 is_large = _mm512_cmpge_epi32_mask(size, _mm512_set1_epi32(0x7f7f8000));
    part[0] = (__m256i)_mm512_cvtneps_pbh(v);
    __m512i near = _mm512_slli_epi32(_mm512_cvtepu16_epi32(part[0]), 16);
    __mmask16 is_finite = 0xffff;
    if (__builtin_expect(is_large, 0)) {
        const __mmask16 is_nan = _mm512_cmpgt_epi32_mask(size, _mm512_set1_epi32(0x7f800000));
        near = _mm512_mask_and_epi32(near, is_large, bits, _mm512_set1_epi32((int)0xffff0000));
        near = _mm512_mask_or_epi32(near, is_nan, near, _mm512_set1_epi32(0x00400000));
        part[0] = _mm512_cvtepi32_epi16(_mm512_srli_epi32(near, 16));
        is_finite = _mm512_cmplt_epi32_mask(size, _mm512_set1_epi32(0x7f800000));
    }
    v = _mm512_maskz_sub_ps(is_finite, v, _mm512_castsi512_ps(near));
    UNROLL for (int i = 1; i < parts; i++)
    {
        part[i] = (__m256i)_mm512_cvtneps_pbh(v);
        near = _mm512_slli_epi32(_mm512_cvtepu16_epi32(part[i]), 16);
        v = _mm512_sub_ps(v, _mm512_castsi512_ps(near));
    }
}

static inline __attribute__((always_inline)) void split_row(char *to, int64_t plane, const float *src, int64_t n,
                                                            const int parts)
{
    __m256i part[SPLIT_PARTS_MAX];
    for (; n >= 16; n -= 16, src += 16, to += 32) {
        split_vector(_mm512_loadu_ps(src), part, parts);
        UNROLL for (int i = 0; i < parts; i++)
        {
            _mm256_storeu_si256((__m256i *)(void *)(to + i * plane), part[i]);
        }
    }
    if (!n) return;
    const __mmask16 there = (__mmask16)((1u << n) - 1);
    split_vector(_mm512_maskz_loadu_ps(there, src), part, parts);
    UNROLL for (int i = 0; i < parts; i++) _mm256_mask_storeu_epi16(to + i * plane, there, part[i]);
}

/* Term `term` of 16 columns from column j on, of which `cols` are there. */
static inline __m512 split_load(const float *src, int64_t term, int64_t k, int32_t j, int32_t cols, int64_t row_stride,
                                int64_t col_stride)
{
    const int32_t left = cols - j;
    if (term >= k || left <= 0) return _mm512_setzero_ps();
    const float *from = src + term * row_stride + j * col_stride;
    if (col_stride == 1) return _mm512_maskz_loadu_ps((__mmask16)(left < 16 ? (1u << left) - 1 : 0xffff), from);
    float each[16] = { 0 };
    for (int32_t c = 0; c < 16 && c < left; c++) each[c] = from[c * col_stride];
    return _mm512_loadu_ps(each);
}

/* A word of each of 16 columns: two terms next to each other. */
static inline __m512i split_words(__m256i low, __m256i high)
{
    return _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

/* Step after step, in it the columns of each register, and of these part after part. */
static inline __attribute__((always_inline)) void split_pack(char *to, const float *src, int64_t k, int32_t cols,
                                                             int32_t width, int64_t row_stride, int64_t col_stride,
                                                             const int parts)
{
    const int64_t steps = amx_steps(k, 2), each = amx_each(k, 2), piece = 64 * each;
    for (int64_t i = 0; i < steps; i++) {
        for (int32_t j = 0; j < width; j += 16, to += parts * piece) {
            for (int64_t w = 0; w < each; w++) {
                const int64_t term = 2 * (i * each + w);
                __m256i low[SPLIT_PARTS_MAX], high[SPLIT_PARTS_MAX];
                split_vector(split_load(src, term, k, j, cols, row_stride, col_stride), low, parts);
                split_vector(split_load(src, term + 1, k, j, cols, row_stride, col_stride), high, parts);
                UNROLL for (int p = 0; p < parts; p++)
                {
                    _mm512_storeu_si512(to + p * piece + 64 * w, split_words(low[p], high[p]));
                }
            }
        }
    }
}

/* Part a of A times part b of B, in the order in which they are multiplied: from one to the next but the last one
 * register is new. */
typedef struct split_product { int a, b; } split_product;
static const split_product split_by_2[] = { { 1, 0 }, { 0, 0 }, { 0, 1 } },
                           split_by_3[] = { { 2, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 }, { 0, 2 }, { 0, 0 } };

/* The sums of a tile of one or two registers of rows and 1 to 4 of columns. Sums that follow each other are of other
 * registers, since each takes long. */
static inline __attribute__((always_inline)) void split_sums(const gemm_tile *t, const int high, const int wide,
                                                             const int parts)
{
    const int64_t steps = amx_steps(t->k, 2), each = amx_each(t->k, 2), piece = 64 * each;
    const int32_t rows0 = high > 1 ? amx_first(t->rows) : t->rows, rows1 = t->rows - rows0;
    const char *b = t->b;
    const int64_t column = parts * piece;
    const void *const *from = t->a;
    const split_product *const list = parts == 2 ? split_by_2 : split_by_3;
    _Alignas(64) char copy[2 * SPLIT_PARTS_MAX][16][64];
    amx_rows r[SPLIT_PARTS_MAX][2]; /* of each part: upper and lower rows */
    UNROLL for (int i = 0; i < parts; i++)
    {
        r[i][0] = (amx_rows){ .size = t->k * 2, .each = 4 * each, .plane = i * t->plane, .copy = copy[2 * i] };
        r[i][1] = r[i][0];
        r[i][1].copy = copy[2 * i + 1];
    }
    amx_ahead ahead = amx_ahead_of(t, steps, each * parts, wide);
    for (int64_t tap = t->taps; tap > 0; tap--, from += t->rows) {
        UNROLL for (int i = 0; i < parts; i++)
        {
            amx_rows_begin(&r[i][0], from, rows0);
            if (high > 1) amx_rows_begin(&r[i][1], from + rows0, rows1);
        }
        for (int64_t k = 0; k < steps; k++, b += wide * column) {
            amx_ahead_next(&ahead);
            UNROLL for (int i = 0; i < parts * (parts + 1) / 2; i++)
            {
                const bool new_a = !i || list[i - 1].a != list[i].a, new_b = !i || list[i - 1].b != list[i].b;
                const char *at = b + list[i].b * piece;
                amx_rows *upper = &r[list[i].a][0], *lower = &r[list[i].a][1];
                if (new_a) {
                    amx_rows_next(upper);
                    _tile_loadd(4, upper->at, upper->stride);
                }
                if (high > 1) {
                    if (new_b) _tile_loadd(6, at, 64);
                    _tile_dpbf16ps(0, 4, 6);
                    if (new_a) {
                        amx_rows_next(lower);
                        _tile_loadd(5, lower->at, lower->stride);
                    }
                    _tile_dpbf16ps(2, 5, 6);
                    if (wide > 1) {
                        if (new_b) _tile_loadd(7, at + column, 64);
                        _tile_dpbf16ps(1, 4, 7);
                        _tile_dpbf16ps(3, 5, 7);
                    }
                    continue;
                }
                if (new_b || wide > 3) _tile_loadd(5, at, 64);
                _tile_dpbf16ps(0, 4, 5);
                if (wide > 1) {
                    if (new_b || wide > 3) _tile_loadd(6, at + column, 64);
                    _tile_dpbf16ps(1, 4, 6);
                }
                if (wide > 2) {
                    if (new_b || wide > 3) _tile_loadd(7, at + 2 * column, 64);
                    _tile_dpbf16ps(2, 4, 7);
                }
                if (wide > 3) {
                    _tile_loadd(5, at + 3 * column, 64);
                    _tile_dpbf16ps(3, 4, 5);
                }
            }
        }
    }
}

static bool split_is_finite(const float *sums, int64_t ld, int32_t rows, int wide)
{
    vec zero[GEMM_VECTORS_MAX] = { v_zero(), v_zero(), v_zero(), v_zero() };
    for (int32_t i = 0; i < rows; i++, sums += ld)
        for (int j = 0; j < wide; j++) zero[j] = v_fma(v_load(sums + 16 * j), v_zero(), zero[j]);
    const vec all = v_add(v_add(zero[0], zero[1]), v_add(zero[2], zero[3]));
    return !_mm512_cmp_ps_mask(all, all, _CMP_UNORD_Q);
}

/* Half of each word: the first or the second term of a column. */
static inline vec split_half(const char *words, int64_t term)
{
    const __m512i w = _mm512_loadu_si512(words);
    return _mm512_castsi512_ps(term % 2 ? _mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000))
                                        : _mm512_slli_epi32(w, 16));
}

/* Term `term` of a row of A. */
static inline float split_term(const void *row, int64_t term, int64_t plane, int parts)
{
    float sum = 0;
    for (int i = parts - 1; i >= 0; i--) {
        uint16_t part;
        memcpy(&part, (const char *)row + 2 * term + i * plane, sizeof part);
        const uint32_t bits = (uint32_t)part << 16;
        float x;
        memcpy(&x, &bits, sizeof x);
        sum += x;
    }
    return sum;
}

/* All sums of a tile by multiply-adds of f32, from the same parts. */
static void split_again(const gemm_tile *t, float *sums, int64_t ld, int wide, int parts)
{
    const int64_t steps = amx_steps(t->k, 2), each = amx_each(t->k, 2), piece = 64 * each;
    for (int32_t i = 0; i < t->rows; i++) {
        for (int j = 0; j < wide; j++) {
            vec sum = v_zero();
            const char *b = (const char *)t->b + j * parts * piece;
            for (int64_t tap = 0; tap < t->taps; tap++, b += steps * wide * parts * piece) {
                for (int64_t k = 0; k < t->k; k++) {
                    const char *at = b + k / 2 / each * wide * parts * piece + k / 2 % each * 64;
                    vec w = v_zero();
                    for (int p = parts - 1; p >= 0; p--) w = v_add(w, split_half(at + p * piece, k));
                    sum = v_fma(v_set(split_term(t->a[tap * t->rows + i], k, t->plane, parts)), w, sum);
                }
            }
            v_store(sums + i * ld + 16 * j, sum);
        }
    }
}
