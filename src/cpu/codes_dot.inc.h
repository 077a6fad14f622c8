/* SPDX-License-Identifier: Apache-2.0 */
/* codes_dot.inc.h - the loops over weights in codes by products of bytes, included once by each file of an instruction
 * set that has them, after gemm_unit.inc.h. DOT(s, bytes, digits): s + the four products of each word. */
#include "cpu/codes.h"

#include "cpu/codes_along.inc.h"

enum { DOT_WIDTH = CODES_VECTORS * VEC_LANES, DOT_VECTORS = VEC_REGISTERS / 8, DOT_AHEAD = 4096, DOT_LINE = 64 };

/* One row. `vectors` vectors of the panel from `first` on. */
static inline __attribute__((always_inline)) void dot_part(const codes_tile *t, const int first, const int vectors,
                                                           const int places, const code_kind kind)
{
    const int halves = kind == CODE_4 ? 2 : 1;
    const veci low = vi_set(0x0F0F0F0F), flip = vi_set((int32_t)0x80808080u);
    const int32_t *code = t->code + first * VEC_LANES, *digit = t->digit, *digit_sum = t->digit_sum;
    float *c = t->c + first * VEC_LANES;
    int64_t scale_from = first * VEC_LANES, zero_from = first * VEC_LANES;
    for (int64_t begin = 0, chunk = 0, left = t->block; begin < t->terms; chunk++, digit_sum += CODES_PLACES) {
        const int64_t rest = t->terms - begin, size = rest < t->chunk ? rest : t->chunk;
        veci acc[CODES_PLACES][CODES_VECTORS];
        UNROLL for (int v = 0; v < vectors; v++)
        {
            veci zero = zero_at(t, zero_from + v * VEC_LANES, kind);
            if (kind == CODE_S8) zero = vi_add(zero, vi_set(128));
            UNROLL for (int p = 0; p < places; p++)
                acc[p][v] = vi_madd16(zero, vi_set((int32_t)((uint32_t)-digit_sum[p] & 0xFFFFu)));
        }
        for (int64_t k = 0; k < size; k += 4 * halves, code += DOT_WIDTH, digit += CODES_PLACES * halves) {
            UNROLL for (int v = 0; v < vectors; v++)
            {
                const veci word = vi_load(code + v * VEC_LANES);
                if (v * VEC_LANES * 4 % DOT_LINE == 0)
                    __builtin_prefetch((const char *)(code + v * VEC_LANES) + DOT_AHEAD);
                UNROLL for (int h = 0; h < halves; h++)
                {
                    const veci bytes = kind == CODE_4    ? vi_and(h ? vi_sra(word, 4) : word, low)
                                       : kind == CODE_S8 ? vi_xor(word, flip)
                                                         : word;
                    UNROLL for (int p = 0; p < places; p++)
                        acc[p][v] = DOT(acc[p][v], bytes, vi_set(digit[h * CODES_PLACES + p]));
                }
            }
        }
        const vec step = v_set(t->step[chunk]);
        UNROLL for (int v = 0; v < vectors; v++)
        {
            const vec s = v_mul(step, scale_at(t->scale, t->scale_type, scale_from + v * VEC_LANES));
            vec sum = vi_to_f32(acc[0][v]);
            UNROLL for (int p = 1; p < places; p++)
                sum = v_fma(vi_to_f32(acc[p][v]), v_set((float)(1 << 8 * p)), sum);
            v_store(c + v * VEC_LANES, begin ? v_fma(s, sum, v_load(c + v * VEC_LANES)) : v_mul(s, sum));
        }
        begin += size;
        left -= size;
        if (left > 0) continue;
        left = t->block;
        scale_from += t->scale_step;
        zero_from += t->zero_step;
    }
}

#define DOT_TILE(kind, name, places)                                                                                   \
    static void name(const codes_tile *t)                                                                              \
    {                                                                                                                  \
        for (int at = 0; at < CODES_VECTORS; at += DOT_VECTORS) dot_part(t, at, DOT_VECTORS, places, kind);            \
    }
DOT_TILE(CODE_4, dot_4_3, 3)
DOT_TILE(CODE_4, dot_4_4, 4)
DOT_TILE(CODE_S8, dot_s8_3, 3)
DOT_TILE(CODE_S8, dot_s8_4, 4)
DOT_TILE(CODE_U8, dot_u8_3, 3)
DOT_TILE(CODE_U8, dot_u8_4, 4)

/* Eight neighbouring terms of A. */
typedef float eight __attribute__((vector_size(32)));
typedef int32_t eight_bits __attribute__((vector_size(32)));
typedef int16_t eight_halves __attribute__((vector_size(32)));
typedef uint8_t eight_bytes __attribute__((vector_size(32)));

static inline eight eight_at(const float *a, int64_t stride, int64_t k, int64_t i)
{
    eight x = { 0 };
    if (k - i >= CODES_UNIT && stride == 1) memcpy(&x, a + i, sizeof x);
    else
        for (int j = 0; j < CODES_UNIT && i + j < k; j++) x[j] = a[(i + j) * stride];
    return x;
}

/* The bits of the largest magnitude, which are in the order of magnitudes. */
static inline int32_t most_of(eight_bits most)
{
    int32_t m = most[0];
    for (int j = 1; j < CODES_UNIT; j++) m = m < most[j] ? most[j] : m;
    return m;
}

static inline eight_bits most_bits(eight_bits most, eight x)
{
    const eight_bits bits = (eight_bits)x & INT32_MAX, more = bits > most;
    return (bits & more) | (most & ~more);
}

static inline float float_of_bits(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

enum { EXPONENT = 23, EXPONENT_BIAS = 127, EXPONENT_MOST = 90, EXPONENT_LEAST = -60, OUTLIER = 8 };

static int dot_places(const float *a, int64_t stride, int64_t k, int64_t terms, int64_t chunk)
{
    int places = 3;
    for (int64_t begin = 0; begin < terms; begin += chunk) {
        const int64_t end = terms - begin < chunk ? terms : begin + chunk;
        eight_bits most = { 0 }, some = { 0 };
        eight total = { 0 };
        for (int64_t i = begin; i < end; i += CODES_UNIT) {
            const eight x = eight_at(a, stride, k, i);
            const eight_bits bits = (eight_bits)x & INT32_MAX;
            most = most_bits(most, x);
            some -= bits > 0; /* true is -1 */
            total += (eight)bits;
        }
        const int32_t m = most_of(most), e = (m >> EXPONENT) - EXPONENT_BIAS;
        if (m && (e > EXPONENT_MOST || e < EXPONENT_LEAST)) return 0;
        float sum = 0;
        int32_t count = 0;
        for (int j = 0; j < CODES_UNIT; j++) {
            sum += total[j];
            count += some[j];
        }
        if (float_of_bits(m) * (float)count > OUTLIER * sum) places = 4;
    }
    return places;
}

static void dot_digits(const float *a, int64_t stride, int64_t k, int64_t terms, int64_t chunk, bool is_4, int places,
                       int32_t *digit, int32_t *sum, float *step)
{
    /* Adding the half of each place but the highest, and taking it off each byte, makes bytes signed digits. */
    const eight_bits half = (eight_bits){ 0 } + (places == 3 ? 0x00008080 : 0x00808080);
    for (int64_t begin = 0; begin < terms; begin += chunk, sum += CODES_PLACES, step++) {
        const int64_t end = terms - begin < chunk ? terms : begin + chunk;
        eight_bits most = { 0 };
        for (int64_t i = begin; i < end; i += CODES_UNIT) most = most_bits(most, eight_at(a, stride, k, i));
        /* The largest is less than 2^e. */
        const int32_t m = most_of(most), e = m ? (m >> EXPONENT) - EXPONENT_BIAS + 1 : 0;
        const int32_t up = places * 8 - 2 - e;
        const float scale = float_of_bits((up + EXPONENT_BIAS) << EXPONENT);
        *step = float_of_bits((EXPONENT_BIAS - up) << EXPONENT);
        eight_halves sums = { 0 };
        for (int64_t i = begin; i < end; i += CODES_UNIT) {
            const eight x = eight_at(a, stride, k, i) * scale;
            const eight_bits whole = (eight_bits)_mm256_cvtps_epi32((__m256)x);
            const eight_bytes b = (eight_bytes)((whole + half) ^ half);
            const eight_bytes fours =
                __builtin_shufflevector(b, b, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 16, 20, 24, 28, 17,
                                        21, 25, 29, 18, 22, 26, 30, 19, 23, 27, 31);
            const eight_bytes turns =
                __builtin_shufflevector(b, b, 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27, 4, 12, 20, 28,
                                        5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31);
            const eight_bytes to = is_4 ? turns : fours;
            memcpy(digit + i, &to, sizeof to);
            const eight_halves pairs = (eight_halves)to;
            sums += ((eight_halves)((eight_halves)(pairs << 8) >> 8)) + (pairs >> 8);
        }
        for (int p = 0; p < CODES_PLACES; p++)
            sum[p] = sums[2 * p] + sums[2 * p + 1] + sums[2 * p + 8] + sums[2 * p + 9];
    }
}

static const codes_dot_set codes_dot = {
    .places = dot_places,
    .digits = dot_digits,
    .run = { [CODE_4] = { dot_4_3, dot_4_4 }, [CODE_S8] = { dot_s8_3, dot_s8_4 }, [CODE_U8] = { dot_u8_3, dot_u8_4 } },
};
