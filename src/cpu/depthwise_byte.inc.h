/* SPDX-License-Identifier: Apache-2.0 */
/* depthwise_byte.inc.h - the loop of depthwise_byte.h over pairs of taps, included once by each level. */
#include "cpu/depthwise_byte.h"

INLINE veci dwb_pairs(const uint8_t *const *tap, int64_t groups,
                                                            const int32_t *w, int64_t step, int64_t c, veci flip,
                                                            const int left)
{
    veci sum = vi_set(0);
    for (int64_t g = 0; g < groups; g++, tap += 2, w += step) {
        veci a, b;
        if (left) {
            uint8_t x[2][L] = { { 0 } };
            memcpy(x[0], tap[0] + c, (size_t)left);
            memcpy(x[1], tap[1] + c, (size_t)left);
            a = vi_load_u8(x[0]);
            b = vi_load_u8(x[1]);
        } else {
            a = vi_load_u8(tap[0] + c);
            b = vi_load_u8(tap[1] + c);
        }
        sum = vi_add(sum, vi_madd16(vi_or(vi_xor(a, flip), vi_sll(vi_xor(b, flip), 16)), vi_load(w)));
    }
    return sum;
}

/* Weights are padded to whole vectors, data is not. */
static void depthwise_byte_pairs(int32_t *sum, const uint8_t *const *tap, int64_t groups, const void *w,
                                 int64_t channels, uint8_t flip)
{
    const int64_t step = (channels + 63) / 64 * 64;
    const int32_t *word = w;
    const veci f = vi_set(flip);
    int64_t c = 0;
    for (; c + L <= channels; c += L) vi_store(sum + c, dwb_pairs(tap, groups, word + c, step, c, f, 0));
    if (c == channels) return;
    int32_t last[L];
    vi_store(last, dwb_pairs(tap, groups, word + c, step, c, f, (int)(channels - c)));
    memcpy(sum + c, last, (size_t)(channels - c) * sizeof *sum);
}
