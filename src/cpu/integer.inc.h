/* SPDX-License-Identifier: Apache-2.0 */
/* integer.inc.h - the loops of integer.h over codes and sums, included once by each level. */
#include "cpu/integer.h"

/* Vectors that compilers cut as the machine needs. */
enum { INTEGER_V = 16 };
typedef uint8_t u8v __attribute__((vector_size(INTEGER_V)));
typedef uint32_t u32v __attribute__((vector_size(4 * INTEGER_V)));

INLINE void codes_flip(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip)
{
    int64_t i = 0;
    for (; i + INTEGER_V <= n; i += INTEGER_V) {
        u8v x;
        memcpy(&x, from + i, sizeof x);
        x ^= flip;
        memcpy(to + i, &x, sizeof x);
    }
    for (; i < n; i++) to[i] = from[i] ^ flip;
}

INLINE int32_t integer_lanes_sum(veci v)
{
    uint32_t lane[L], sum = 0;
    memcpy(lane, &v, sizeof lane);
    for (int i = 0; i < L; i++) sum += lane[i];
    return (int32_t)sum;
}

static int32_t integer_codes_copy(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip)
{
    const veci bits = vi_set((int8_t)flip); /* as a code with a sign is widened, so is what turns its bits */
    veci part = vi_set(0);
    int64_t i = 0;
    codes_flip(to, from, n, flip);
    for (; i + L <= n; i += L) part = vi_add(part, vi_xor(bits, vi_load_i8((const int8_t *)from + i)));
    int32_t sum = integer_lanes_sum(part);
    for (; i < n; i++) sum += (int8_t)(from[i] ^ flip);
    return sum;
}

static void integer_codes_add(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip, int32_t *sum)
{
    const veci bits = vi_set((int8_t)flip);
    int64_t i = 0;
    codes_flip(to, from, n, flip);
    for (; i + L <= n; i += L)
        vi_store(sum + i, vi_add(vi_load(sum + i), vi_xor(bits, vi_load_i8((const int8_t *)from + i))));
    for (; i < n; i++) sum[i] += (int8_t)(from[i] ^ flip);
}

static uint32_t integer_codes_sum(const uint8_t *from, int64_t n, uint8_t flip)
{
    const veci bits = vi_set(flip);
    veci part = vi_set(0);
    int64_t i = 0;
    for (; i + L <= n; i += L) part = vi_add(part, vi_xor(bits, vi_load_u8(from + i)));
    uint32_t sum = (uint32_t)integer_lanes_sum(part);
    for (; i < n; i++) sum += (uint8_t)(from[i] ^ flip);
    return sum;
}

static void integer_take_off(int32_t *c, const int32_t *a, uint32_t by, const int32_t *b, uint32_t other, int64_t n)
{
    int64_t j = 0;
    for (; j + INTEGER_V <= n; j += INTEGER_V) {
        u32v x, y, z = { 0 };
        memcpy(&x, c + j, sizeof x);
        memcpy(&y, a + j, sizeof y);
        if (b) memcpy(&z, b + j, sizeof z);
        x -= y * by + z * other;
        memcpy(c + j, &x, sizeof x);
    }
    for (; j < n; j++) c[j] = (int32_t)((uint32_t)c[j] - by * (uint32_t)a[j] - (b ? other * (uint32_t)b[j] : 0));
}

static void integer_take_off_each(int32_t *c, const int32_t *a, const int32_t *b, const int32_t *s, uint32_t less,
                                  int64_t n)
{
    int64_t j = 0;
    for (; j + INTEGER_V <= n; j += INTEGER_V) {
        u32v x, y, z, v;
        memcpy(&x, c + j, sizeof x);
        memcpy(&y, a + j, sizeof y);
        memcpy(&z, b + j, sizeof z);
        memcpy(&v, s + j, sizeof v);
        x -= y + z * (v - less);
        memcpy(c + j, &x, sizeof x);
    }
    for (; j < n; j++) c[j] = (int32_t)((uint32_t)c[j] - (uint32_t)a[j] - (uint32_t)b[j] * ((uint32_t)s[j] - less));
}

static void integer_load_signed(void *dst, const void *src, int64_t n) { codes_flip(dst, src, n, 0x80); }

typedef uint16_t u16v __attribute__((vector_size(2 * INTEGER_V)));

INLINE void codes_widen(uint16_t *to, const uint8_t *from, int64_t n, uint8_t flip)
{
    int64_t i = 0;
    for (; i + INTEGER_V <= n; i += INTEGER_V) {
        u8v x;
        memcpy(&x, from + i, sizeof x);
        x ^= flip;
        const u16v wide = __builtin_convertvector(x, u16v);
        memcpy(to + i, &wide, sizeof wide);
    }
    for (; i < n; i++) to[i] = from[i] ^ flip;
}
static void integer_widen(void *dst, const void *src, int64_t n) { codes_widen(dst, src, n, 0); }
static void integer_widen_signed(void *dst, const void *src, int64_t n) { codes_widen(dst, src, n, 0x80); }

static const integer_set integer_loops = { .copy = integer_codes_copy,
                                           .add = integer_codes_add,
                                           .sum = integer_codes_sum,
                                           .take_off = integer_take_off,
                                           .take_off_each = integer_take_off_each,
                                           .load_signed = integer_load_signed,
                                           .widen = integer_widen,
                                           .widen_signed = integer_widen_signed };
