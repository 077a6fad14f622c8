/* SPDX-License-Identifier: Apache-2.0 */
/* combine.c - the loops of combine.h: integers wrap in their own type, a NaN stays where the smaller or the larger is
 * kept. */
#include "cpu/combine.h"

#include "ops/ops.h"

#include <string.h>

#define LESSER(a, b) ((b) < (a) ? (b) : (a))
#define GREATER(a, b) ((b) > (a) ? (b) : (a))
#define LESSER_FLOAT(a, b) ((a) != (a) ? (a) : (b) != (b) || (b) < (a) ? (b) : (a))
#define GREATER_FLOAT(a, b) ((a) != (a) ? (a) : (b) != (b) || (b) > (a) ? (b) : (a))

#define LOOP(name, type, value)                                                                                        \
    static void name(char *to, int64_t to_step, const char *from, int64_t step, int64_t n)                             \
    {                                                                                                                  \
        const int64_t size = sizeof(type);                                                                             \
        if (to_step == size && step == size) {                                                                         \
            type *restrict y = (type *)(void *)to;                                                                     \
            const type *restrict x = (const type *)(const void *)from;                                                 \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const type a = y[i], b = x[i];                                                                         \
                y[i] = (type)(value);                                                                                  \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++, to += to_step, from += step) {                                                 \
            const type a = *(const type *)(const void *)to, b = *(const type *)(const void *)from;                     \
            *(type *)(void *)to = (type)(value);                                                                       \
        }                                                                                                              \
    }
#define LOOPS(name, type, wide, lesser, greater)                                                                       \
    LOOP(add_##name, type, (wide)a + (wide)b)                                                                          \
    LOOP(mul_##name, type, (wide)a *(wide)b)                                                                           \
    LOOP(min_##name, type, lesser(a, b))                                                                               \
    LOOP(max_##name, type, greater(a, b))                                                                              \
    static combine_fn *const of_##name[scatter_kind_count] = {                                                         \
        [scatter_kind_add] = add_##name,                                                                               \
        [scatter_kind_mul] = mul_##name,                                                                               \
        [scatter_kind_min] = min_##name,                                                                               \
        [scatter_kind_max] = max_##name,                                                                               \
    };
LOOPS(f32, float, float, LESSER_FLOAT, GREATER_FLOAT)
LOOPS(f64, double, double, LESSER_FLOAT, GREATER_FLOAT)
LOOPS(i8, int8_t, uint32_t, LESSER, GREATER)
LOOPS(u8, uint8_t, uint32_t, LESSER, GREATER)
LOOPS(i32, int32_t, uint32_t, LESSER, GREATER)
LOOPS(i64, int64_t, uint64_t, LESSER, GREATER)

combine_fn *combine_of(sinter_dtype type, int64_t kind)
{
    switch (type) {
    case SINTER_DTYPE_F32: return of_f32[kind];
    case SINTER_DTYPE_F64: return of_f64[kind];
    case SINTER_DTYPE_I8: return of_i8[kind];
    case SINTER_DTYPE_U8: return of_u8[kind];
    case SINTER_DTYPE_I32: return of_i32[kind];
    case SINTER_DTYPE_I64: return of_i64[kind];
    default: return NULL;
    }
}
