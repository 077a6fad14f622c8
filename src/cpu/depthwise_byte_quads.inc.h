/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise_byte_quads.inc.h - the loop of depthwise_byte.h over groups of four taps, by vpdpbusd on 512 bits.
 *
 * The bytes of four taps are put beside each other for each of 64 channels; that leaves channels in an order in which
 * weights are packed, and which the last step undoes. Filters of 3x3 have a column in each group, and adjacent results
 * share the columns. */
#include "cpu/depthwise_byte.h"

static inline void store_n(int32_t *p, __m512i v, int64_t n)
{
    if (n >= 16) _mm512_storeu_si512(p, v);
    else if (n > 0) _mm512_mask_storeu_epi32(p, (__mmask16)((1u << n) - 1), v);
}

/* Quarter l of s0..s3 holds channels 16 l to 16 l + 15. */
static inline __attribute__((always_inline)) void quads_store(int32_t *sum, __m512i s0, __m512i s1, __m512i s2,
                                                              __m512i s3, int64_t left)
{
    const __m512i a = _mm512_shuffle_i32x4(s0, s1, 0x44), b = _mm512_shuffle_i32x4(s0, s1, 0xEE),
                  d = _mm512_shuffle_i32x4(s2, s3, 0x44), e = _mm512_shuffle_i32x4(s2, s3, 0xEE);
    store_n(sum, _mm512_shuffle_i32x4(a, d, 0x88), left);
    store_n(sum + 16, _mm512_shuffle_i32x4(a, d, 0xDD), left - 16);
    store_n(sum + 32, _mm512_shuffle_i32x4(b, e, 0x88), left - 32);
    store_n(sum + 48, _mm512_shuffle_i32x4(b, e, 0xDD), left - 48);
}

void level_depthwise_quads(int32_t *sum, const uint8_t *const *tap, int64_t groups, const void *w, int64_t channels,
                          uint8_t flip)
{
    const int64_t step = (channels + 63) / 64 * 64 * 4;
    const __m512i f = _mm512_set1_epi8((char)flip);
    for (int64_t c = 0; c < channels; c += 64) {
        const int64_t left = channels - c;
        const __mmask64 mask = left >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << left) - 1;
        const int8_t *from = (const int8_t *)w + c * 4;
        __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
        for (int64_t g = 0; g < groups; g++, from += step) {
            const uint8_t *const *t = tap + 4 * g;
            const __m512i a = _mm512_xor_si512(f, _mm512_maskz_loadu_epi8(mask, t[0] + c)),
                          b = _mm512_xor_si512(f, _mm512_maskz_loadu_epi8(mask, t[1] + c)),
                          d = _mm512_xor_si512(f, _mm512_maskz_loadu_epi8(mask, t[2] + c)),
                          e = _mm512_xor_si512(f, _mm512_maskz_loadu_epi8(mask, t[3] + c));
            const __m512i ab0 = _mm512_unpacklo_epi8(a, b), ab1 = _mm512_unpackhi_epi8(a, b),
                          de0 = _mm512_unpacklo_epi8(d, e), de1 = _mm512_unpackhi_epi8(d, e);
            s0 = _mm512_dpbusd_epi32(s0, _mm512_unpacklo_epi16(ab0, de0), _mm512_loadu_si512(from));
            s1 = _mm512_dpbusd_epi32(s1, _mm512_unpackhi_epi16(ab0, de0), _mm512_loadu_si512(from + 64));
            s2 = _mm512_dpbusd_epi32(s2, _mm512_unpacklo_epi16(ab1, de1), _mm512_loadu_si512(from + 128));
            s3 = _mm512_dpbusd_epi32(s3, _mm512_unpackhi_epi16(ab1, de1), _mm512_loadu_si512(from + 192));
        }
        quads_store(sum + c, s0, s1, s2, s3, left);
    }
}

/* A column of the window: three bytes of each channel and a zero. */
typedef struct quad_column {
    __m512i q[4];
} quad_column;

static inline __attribute__((always_inline)) quad_column quad_column_of(const depthwise_columns *p, int64_t x,
                                                                        int64_t c, __mmask64 mask, __m512i flip,
                                                                        const bool has_flip)
{
    const bool is_in = x >= 0 && x < p->in;
    __m512i row[3];
    UNROLL for (int i = 0; i < 3; i++)
    {
        const uint8_t *from = is_in && p->row[i] ? p->row[i] + x * p->step : p->pad;
        row[i] = _mm512_maskz_loadu_epi8(mask, from + c);
        if (has_flip) row[i] = _mm512_xor_si512(row[i], flip);
    }
    const __m512i zero = _mm512_setzero_si512();
    const __m512i ab0 = _mm512_unpacklo_epi8(row[0], row[1]), ab1 = _mm512_unpackhi_epi8(row[0], row[1]),
                  d0 = _mm512_unpacklo_epi8(row[2], zero), d1 = _mm512_unpackhi_epi8(row[2], zero);
    return (quad_column){ { _mm512_unpacklo_epi16(ab0, d0), _mm512_unpackhi_epi16(ab0, d0),
                            _mm512_unpacklo_epi16(ab1, d1), _mm512_unpackhi_epi16(ab1, d1) } };
}

/* ahead: columns from one result to the next; 3: that many or more. */
static inline __attribute__((always_inline)) void quad_columns(const depthwise_columns *p, const int ahead,
                                                               const bool has_flip)
{
    const int64_t step = (p->channels + 63) / 64 * 64 * 4;
    const __m512i flip = _mm512_set1_epi8((char)p->flip);
    for (int64_t c = 0; c < p->channels; c += 64) {
        const int64_t left = p->channels - c;
        const __mmask64 mask = left >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << left) - 1;
        __m512i w[3][4];
        UNROLL for (int i = 0; i < 3; i++)
        {
            UNROLL for (int k = 0; k < 4; k++)
                w[i][k] = _mm512_loadu_si512((const int8_t *)p->w + i * step + c * 4 + k * 64);
        }
        quad_column col[3];
        if (ahead < 3) col[0] = quad_column_of(p, p->x, c, mask, flip, has_flip);
        if (ahead == 1) col[1] = quad_column_of(p, p->x + 1, c, mask, flip, has_flip);
        int32_t *sum = p->sum + c;
        for (int64_t i = 0, x = p->x; i < p->count; i++, x += p->ahead, sum += p->channels) {
            UNROLL for (int k = 3 - ahead; k < 3; k++) col[k] = quad_column_of(p, x + k, c, mask, flip, has_flip);
            __m512i s[4];
            UNROLL for (int k = 0; k < 4; k++)
            {
                s[k] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), col[0].q[k], w[0][k]);
                s[k] = _mm512_dpbusd_epi32(s[k], col[1].q[k], w[1][k]);
                s[k] = _mm512_dpbusd_epi32(s[k], col[2].q[k], w[2][k]);
            }
            quads_store(sum, s[0], s[1], s[2], s[3], left);
            if (ahead == 1) col[0] = col[1], col[1] = col[2];
            if (ahead == 2) col[0] = col[2];
        }
    }
}

void level_depthwise_columns(const depthwise_columns *p)
{
    if (p->flip) {
        if (p->ahead == 1) quad_columns(p, 1, true);
        else if (p->ahead == 2) quad_columns(p, 2, true);
        else quad_columns(p, 3, true);
        return;
    }
    if (p->ahead == 1) quad_columns(p, 1, false);
    else if (p->ahead == 2) quad_columns(p, 2, false);
    else quad_columns(p, 3, false);
}
