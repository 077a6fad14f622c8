/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise_byte_quads.inc.h - the loop of depthwise_byte.h over groups of four taps, by vpdpbusd on 512 bits.
 *
 * The bytes of four taps are put beside each other for each of 64 channels; that leaves channels in an order in which
 * weights are packed, and which the last step undoes. */
#include "cpu/depthwise_byte.h"

static inline void store_n(int32_t *p, __m512i v, int64_t n)
{
    if (n >= 16) _mm512_storeu_si512(p, v);
    else if (n > 0) _mm512_mask_storeu_epi32(p, (__mmask16)((1u << n) - 1), v);
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
        /* Quarter l of s0..s3 holds channels 16 l to 16 l + 15. */
        const __m512i a = _mm512_shuffle_i32x4(s0, s1, 0x44), b = _mm512_shuffle_i32x4(s0, s1, 0xEE),
                      d = _mm512_shuffle_i32x4(s2, s3, 0x44), e = _mm512_shuffle_i32x4(s2, s3, 0xEE);
        store_n(sum + c, _mm512_shuffle_i32x4(a, d, 0x88), left);
        store_n(sum + c + 16, _mm512_shuffle_i32x4(a, d, 0xDD), left - 16);
        store_n(sum + c + 32, _mm512_shuffle_i32x4(b, e, 0x88), left - 32);
        store_n(sum + c + 48, _mm512_shuffle_i32x4(b, e, 0xDD), left - 48);
    }
}
