/* SPDX-License-Identifier: Apache-2.0 */
/* vm_wide.inc.h - the loops of expression programs on int32 and int64 that profit from vectors, included once by each
 * instruction set's file, before vm_ops.inc.h.
 *
 * They are written with the compiler's vectors: int64 has none among ours. Those of `plain` would be no faster than
 * the loops of vm_basic.c, to which it leaves all of these. */
#define WIDE_ARGS const vm_op *op, void *d_, const void *a_, const void *b_, const void *c_, int64_t n

enum { WIDE_BYTES = 4 * VEC_LANES };
typedef int64_t wide_i64 __attribute__((vector_size(WIDE_BYTES)));
typedef uint64_t wide_u64 __attribute__((vector_size(WIDE_BYTES)));
typedef int32_t wide_i32 __attribute__((vector_size(WIDE_BYTES)));
typedef uint32_t wide_u32 __attribute__((vector_size(WIDE_BYTES)));
typedef int32_t wide_half __attribute__((vector_size(WIDE_BYTES / 2)));

/* all: the value of whole vectors x and y, of the type `group`; one: of one element. */
#define WIDE(name, vector, type, group, result, all, one)               \
    static void name(WIDE_ARGS)                                         \
    {                                                                   \
        (void)op, (void)c_;                                             \
        enum { EACH_TIME = sizeof(vector) / sizeof(type) };             \
        const type *a = a_, *b = b_;                                    \
        result *d = d_;                                                 \
        int64_t i = 0;                                                  \
        for (; i + EACH_TIME <= n; i += EACH_TIME) {                    \
            vector x, y;                                                \
            memcpy(&x, a + i, sizeof x);                                \
            memcpy(&y, b + i, sizeof y);                                \
            const group z = all;                                        \
            memcpy(d + i, &z, sizeof z);                                \
        }                                                               \
        for (; i < n; i++) {                                            \
            const type x = a[i], y = b[i];                              \
            d[i] = (result)(one);                                       \
        }                                                               \
    }
/* Sums wrap, so they are formed without sign. */
#define WIDE_SUM(name, sign)                                                                                        \
    WIDE(wide_##name##_i64, wide_i64, int64_t, wide_i64, int64_t, (wide_i64)((wide_u64)x sign(wide_u64) y),         \
         (uint64_t)x sign(uint64_t) y)                                                                              \
    WIDE(wide_##name##_i32, wide_i32, int32_t, wide_i32, int32_t, (wide_i32)((wide_u32)x sign(wide_u32) y),         \
         (uint32_t)x sign(uint32_t) y)
#define WIDE_COMPARE(name, sign)                                                                                    \
    WIDE(wide_##name##_i64, wide_i64, int64_t, wide_half, int32_t, -__builtin_convertvector(x sign y, wide_half),   \
         x sign y)                                                                                                  \
    WIDE(wide_##name##_i32, wide_i32, int32_t, wide_i32, int32_t, -(x sign y), x sign y)
#define WIDE_CHOICE(name, sign)                                                                                     \
    WIDE(wide_##name##_i64, wide_i64, int64_t, wide_i64, int64_t, (x & (x sign y)) | (y & ~(x sign y)),             \
         x sign y ? x : y)                                                                                          \
    WIDE(wide_##name##_i32, wide_i32, int32_t, wide_i32, int32_t, (x & (x sign y)) | (y & ~(x sign y)),             \
         x sign y ? x : y)
#if defined(VEC_IS_PLAIN)
#define WIDE_LOOPS(type) { NULL }
#else
WIDE_SUM(add, +)
WIDE_SUM(sub, -)
WIDE_SUM(mul, *)
WIDE_COMPARE(eq, ==)
WIDE_COMPARE(lt, <)
WIDE_COMPARE(le, <=)
WIDE_COMPARE(gt, >)
WIDE_COMPARE(ge, >=)
WIDE_CHOICE(min, <)
WIDE_CHOICE(max, >)
#define WIDE_OF(name, type) [OP_##name] = wide_##name##_##type
#define WIDE_LOOPS(type)                                                                                            \
    { WIDE_OF(add, type), WIDE_OF(sub, type), WIDE_OF(mul, type), WIDE_OF(eq, type), WIDE_OF(lt, type),             \
      WIDE_OF(le, type), WIDE_OF(gt, type), WIDE_OF(ge, type), WIDE_OF(min, type), WIDE_OF(max, type) }
#endif

/* f32 as int64, where 32 bits have all of a vector; else by the loop of all numbers. */
static void wide_of_float(WIDE_ARGS)
{
    const float *a = a_;
    int64_t *d = d_, i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        const vec x = v_load(a + i);
        int32_t word[VEC_LANES];
        if (m_any(m_not(v_lt(v_abs(x), v_set(2147483648.0f))))) {
            vm_float_to_i64(op, d + i, a + i, b_, c_, VEC_LANES);
            continue;
        }
        vi_store(word, v_to_int_cut(x));
        for (int k = 0; k < VEC_LANES; k++) d[i + k] = word[k];
    }
    vm_float_to_i64(op, d + i, a + i, b_, c_, n - i);
}
