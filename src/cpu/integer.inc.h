/* SPDX-License-Identifier: Apache-2.0 */
/* integer.inc.h - the loops of integer.h over codes and sums, included once by each level. */
#include "cpu/integer.h"

/* Vectors that compilers cut as the machine needs. */
enum { INTEGER_V = 16 };
typedef uint8_t u8v __attribute__((vector_size(INTEGER_V)));
typedef int8_t i8v __attribute__((vector_size(INTEGER_V)));
typedef int32_t i32v __attribute__((vector_size(4 * INTEGER_V)));
typedef uint32_t u32v __attribute__((vector_size(4 * INTEGER_V)));

static int32_t integer_codes_copy(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip)
{
    i32v part = { 0 };
    int64_t i = 0;
    for (; i + INTEGER_V <= n; i += INTEGER_V) {
        u8v x;
        memcpy(&x, from + i, INTEGER_V);
        x ^= flip;
        memcpy(to + i, &x, INTEGER_V);
        part += __builtin_convertvector((i8v)x, i32v);
    }
    int32_t sum = 0;
    for (int k = 0; k < INTEGER_V; k++) sum += part[k];
    for (; i < n; i++) {
        to[i] = from[i] ^ flip;
        sum += (int8_t)to[i];
    }
    return sum;
}

static void integer_codes_add(uint8_t *to, const uint8_t *from, int64_t n, uint8_t flip, int32_t *sum)
{
    int64_t i = 0;
    for (; i + INTEGER_V <= n; i += INTEGER_V) {
        u8v x;
        i32v s;
        memcpy(&x, from + i, INTEGER_V);
        memcpy(&s, sum + i, sizeof s);
        x ^= flip;
        memcpy(to + i, &x, INTEGER_V);
        s += __builtin_convertvector((i8v)x, i32v);
        memcpy(sum + i, &s, sizeof s);
    }
    for (; i < n; i++) {
        to[i] = from[i] ^ flip;
        sum[i] += (int8_t)to[i];
    }
}

static uint32_t integer_codes_sum(const uint8_t *from, int64_t n, uint8_t flip)
{
    u32v part = { 0 };
    int64_t i = 0;
    for (; i + INTEGER_V <= n; i += INTEGER_V) {
        u8v x;
        memcpy(&x, from + i, INTEGER_V);
        part += __builtin_convertvector(x ^ flip, u32v);
    }
    uint32_t sum = 0;
    for (int k = 0; k < INTEGER_V; k++) sum += part[k];
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

static const integer_set integer_loops = { integer_codes_copy, integer_codes_add, integer_codes_sum, integer_take_off };
