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
typedef float wide_short __attribute__((vector_size(WIDE_BYTES / 2)));
typedef uint32_t wide_half_u __attribute__((vector_size(WIDE_BYTES / 2)));

/* all: the value of whole vectors x and y, of the type `group`; one: of one element. */
#define WIDE_BODY(vector, type, group, result, all, one, one_a, one_b) \
    {                                                                   \
        enum { EACH_TIME = sizeof(vector) / sizeof(type) };             \
        const type *a = a_, *b = b_;                                    \
        result *d = d_;                                                 \
        int64_t i = 0;                                                  \
        vector all_x = { 0 }, all_y = { 0 };                            \
        if (one_a) all_x += *a;                                         \
        if (one_b) all_y += *b;                                         \
        for (; i + EACH_TIME <= n; i += EACH_TIME) {                    \
            vector x = all_x, y = all_y;                                \
            if (!(one_a)) memcpy(&x, a + i, sizeof x);                  \
            if (!(one_b)) memcpy(&y, b + i, sizeof y);                  \
            const group z = all;                                        \
            memcpy(d + i, &z, sizeof z);                                \
        }                                                               \
        for (; i < n; i++) {                                            \
            const type x = a[one_a ? 0 : i], y = b[one_b ? 0 : i];      \
            d[i] = (result)(one);                                       \
        }                                                               \
    }
#define WIDE_FORM(name, one_a, one_b, ...)                              \
    static void name(WIDE_ARGS)                                         \
    {                                                                   \
        (void)op, (void)c_;                                             \
        WIDE_BODY(__VA_ARGS__, one_a, one_b)                            \
    }
/* Of vectors, of a vector and one number, of a number and a vector. */
#define WIDE(name, ...)                                                 \
    WIDE_FORM(name##_vv, 0, 0, __VA_ARGS__)                             \
    WIDE_FORM(name##_vs, 0, 1, __VA_ARGS__)                             \
    WIDE_FORM(name##_sv, 1, 0, __VA_ARGS__)
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
typedef uint8_t wide_u8 __attribute__((vector_size(WIDE_BYTES)));
WIDE_FORM(wide_and_byte, 0, 0, wide_u8, uint8_t, wide_u8, uint8_t, x & y, x & y)
WIDE_FORM(wide_or_byte, 0, 0, wide_u8, uint8_t, wide_u8, uint8_t, x | y, x | y)
WIDE_FORM(wide_xor_byte, 0, 0, wide_u8, uint8_t, wide_u8, uint8_t, x ^ y, x ^ y)
static void wide_not_byte(WIDE_ARGS)
{
    (void)op, (void)b_, (void)c_;
    const uint8_t *a = a_;
    uint8_t *d = d_;
    int64_t i = 0;
    for (; i + WIDE_BYTES <= n; i += WIDE_BYTES) {
        wide_u8 x;
        memcpy(&x, a + i, sizeof x);
        x = (wide_u8)(x == 0) & 1;
        memcpy(d + i, &x, sizeof x);
    }
    for (; i < n; i++) d[i] = a[i] == 0;
}
#define WIDE_BYTE_LOOPS                                                                                             \
    { [OP_and] = wide_and_byte, [OP_or] = wide_or_byte, [OP_xor] = wide_xor_byte, [OP_not] = wide_not_byte }
#if defined(VEC_IS_PLAIN)
#define WIDE_LOOPS(type) { { NULL } }
#define WIDE_FMOD { NULL }
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

/* The larger one of x and y, then the smaller one of that and z. */
#define WIDE_CLIP(name, vector, type)                                                                               \
    static void name(WIDE_ARGS)                                                                                     \
    {                                                                                                               \
        (void)op;                                                                                                   \
        enum { EACH_TIME = sizeof(vector) / sizeof(type) };                                                         \
        const type *a = a_, *b = b_, *c = c_;                                                                       \
        type *d = d_;                                                                                               \
        for (int64_t i = 0; i < n; i += EACH_TIME) {                                                                \
            const size_t size = (size_t)(n - i < EACH_TIME ? n - i : EACH_TIME) * sizeof(type);                     \
            vector x = { 0 }, y = x, z = x;                                                                         \
            if (size == sizeof x) {                                                                                 \
                memcpy(&x, a + i, sizeof x);                                                                        \
                memcpy(&y, b + i, sizeof y);                                                                        \
                memcpy(&z, c + i, sizeof z);                                                                        \
            } else {                                                                                                \
                memcpy(&x, a + i, size);                                                                            \
                memcpy(&y, b + i, size);                                                                            \
                memcpy(&z, c + i, size);                                                                            \
            }                                                                                                       \
            x = (x & (x > y)) | (y & ~(x > y));                                                                     \
            x = (x & (x < z)) | (z & ~(x < z));                                                                     \
            if (size == sizeof x) memcpy(d + i, &x, sizeof x);                                                      \
            else memcpy(d + i, &x, size);                                                                           \
        }                                                                                                           \
    }
WIDE_CLIP(wide_clip_i32, wide_i32, int32_t)
WIDE_CLIP(wide_clip_i64, wide_i64, int64_t)

/* Division of int64 in f64, which has every integer below 2^53. Both operands lie below 2^50, and the divisor is not 0;
 * other vectors are left to the loops of vm_basic.c. The quotient is rounded to an integer, so that the rest, which is
 * exact, is shorter than |y|, and one correction gives it the wanted sign: a product with the inverse is off by less
 * than 1/4. The inverse is kept while divisors stay the same. */
typedef double wide_f64 __attribute__((vector_size(WIDE_BYTES)));
enum { WIDE_I64S = WIDE_BYTES / 8 };
/* 3 * 2^51: added to a number below 2^51, it leaves an integer in the low bits. */
#define WIDE_ROUND 6755399441055744.0
#define WIDE_ROUND_BITS 0x4338000000000000u

static inline wide_f64 wide_f64_of(wide_i64 x)
{
    return (wide_f64)((wide_u64)x + WIDE_ROUND_BITS) - WIDE_ROUND;
}
static inline wide_i64 wide_i64_of(wide_f64 x)
{
    return (wide_i64)((wide_u64)(x + WIDE_ROUND) - WIDE_ROUND_BITS);
}
/* Where x has bits beyond 50 and a sign. */
static inline wide_u64 wide_is_large(wide_i64 x)
{
    return ((wide_u64)x + ((uint64_t)1 << 50)) >> 51;
}

static inline bool wide_any(wide_u64 x)
{
    return m_any(m_not(vi_eq(vi_load((const int32_t *)(const void *)&x), vi_set(0))));
}

typedef enum wide_result { WIDE_QUOTIENT, WIDE_REST, WIDE_MOD } wide_result;

static inline __attribute__((always_inline)) wide_i64 wide_divided(wide_i64 x, wide_i64 y, wide_f64 inverse,
                                                                   const wide_result result)
{
    const wide_f64 f = wide_f64_of(x), g = wide_f64_of(y), q = f * inverse + WIDE_ROUND - WIDE_ROUND, r = f - q * g;
    const wide_i64 like = result == WIDE_MOD ? y : x, is_off = (r != 0) & (((wide_i64)r ^ like) < 0);
    const wide_i64 whole = wide_i64_of(q), rest = wide_i64_of(r), is_turned = (x ^ y) < 0;
    if (result == WIDE_QUOTIENT) return whole - (is_off & (is_turned | 1));
    if (result == WIDE_MOD) return rest + (is_off & y);
    return rest + (is_off & ((y ^ is_turned) - is_turned));
}

static inline __attribute__((always_inline)) void wide_divide(WIDE_ARGS, vm_fn *others, const wide_result result)
{
    const int64_t *a = a_, *b = b_;
    int64_t *to = d_, i = 0;
    wide_i64 last = { 0 };
    wide_f64 inverse = { 0 };
    for (; i + WIDE_I64S <= n; i += WIDE_I64S) {
        wide_i64 x, y;
        memcpy(&x, a + i, sizeof x);
        memcpy(&y, b + i, sizeof y);
        if (wide_any((wide_u64)(y ^ last))) {
            last = y;
            inverse = 1.0 / wide_f64_of(y);
        }
        if (wide_any(wide_is_large(x) | wide_is_large(y) | (wide_u64)(y == 0))) {
            others(op, to + i, a + i, b + i, c_, WIDE_I64S);
            continue;
        }
        const wide_i64 z = wide_divided(x, y, inverse, result);
        memcpy(to + i, &z, sizeof z);
    }
    others(op, to + i, a + i, b + i, c_, n - i);
}

/* f64 cut to int32; 2^31, which is the least by -1, wraps. */
static inline wide_half wide_cut(wide_f64 x)
{
#if defined(__aarch64__)
    return __builtin_convertvector(__builtin_convertvector(x, wide_i64), wide_half);
#else
    return __builtin_convertvector(x, wide_half);
#endif
}

/* Of int32: f64 holds all of them, so no other loop is needed. (|x| + 1/2) / |y| is 1/2|y| or more from all integers,
 * which is more than a product with the inverse is off by: cut, it is the quotient. A division by 0 gives 0. */
static inline __attribute__((always_inline)) void wide_divide_i32(WIDE_ARGS, const wide_result result)
{
    (void)op, (void)c_;
    const int32_t *a = a_, *b = b_;
    int32_t *to = d_;
    const bool is_one = n > 1 && memcmp(b, b + 1, (size_t)(n - 1) * sizeof *b) == 0; /* one divisor */
    wide_f64 inverse = { 0 };
    for (int64_t i = 0; i < n; i += WIDE_I64S) {
        const size_t size = (size_t)(n - i < WIDE_I64S ? n - i : WIDE_I64S) * sizeof *to;
        wide_half x = { 0 }, y = { 0 };
        if (size == sizeof x) {
            memcpy(&x, a + i, sizeof x);
            memcpy(&y, b + i, sizeof y);
        } else {
            memcpy(&x, a + i, size);
            memcpy(&y, b + i, size);
        }
        const wide_half is_zero = y == 0;
        if (!i || !is_one) inverse = 1.0 / __builtin_convertvector(y - is_zero, wide_f64);
        const wide_f64 f = __builtin_convertvector(x, wide_f64);
        /* 1/2 with the sign of x. */
        const wide_u64 half = ((wide_u64)f & (uint64_t)1 << 63) | (uint64_t)0x3FE0000000000000u;
        wide_half z = wide_cut((f + (wide_f64)half) * inverse);
        if (result != WIDE_QUOTIENT) z = (wide_half)((wide_half_u)x - (wide_half_u)z * (wide_half_u)y);
        if (result == WIDE_MOD) z += ((z != 0) & ((z ^ y) < 0)) & y;
        z &= ~is_zero;
        if (size == sizeof z) memcpy(to + i, &z, sizeof z);
        else memcpy(to + i, &z, size);
    }
}
#define WIDE_DIVIDE(name, result)                                                                                   \
    static void wide_##name##_i64(WIDE_ARGS)                                                                        \
    {                                                                                                               \
        wide_divide(op, d_, a_, b_, c_, n, vm_##name##_i64, result);                                                \
    }                                                                                                               \
    static void wide_##name##_i32(WIDE_ARGS)                                                                        \
    {                                                                                                               \
        wide_divide_i32(op, d_, a_, b_, c_, n, result);                                                             \
    }
WIDE_DIVIDE(div, WIDE_QUOTIENT)
WIDE_DIVIDE(fmod, WIDE_REST)
WIDE_DIVIDE(mod, WIDE_MOD)

/* The rest of f32 in f64: a quotient below 2^28 is an integer or 2^-24 away from the next one, and the product of its
 * whole part and the divisor is exact. Vectors with any other number are left to fmodf. */
static void wide_fmod_f32(WIDE_ARGS)
{
    (void)op, (void)c_;
    const float *a = a_, *b = b_;
    float *to = d_;
    int64_t i = 0;
    for (; i + WIDE_I64S <= n; i += WIDE_I64S) {
        wide_short p, q;
        memcpy(&p, a + i, sizeof p);
        memcpy(&q, b + i, sizeof q);
        const wide_f64 x = __builtin_convertvector(p, wide_f64), y = __builtin_convertvector(q, wide_f64), z = x / y;
        if (wide_any(~(wide_u64)((z < 268435456.0) & (z > -268435456.0) & (y - y == 0)))) {
            for (int k = 0; k < WIDE_I64S; k++) to[i + k] = fmodf(a[i + k], b[i + k]);
            continue;
        }
        const wide_half whole = wide_cut(z);
        const wide_f64 r = x - __builtin_convertvector(whole, wide_f64) * y;
        p = __builtin_convertvector((wide_f64)((wide_u64)r | ((wide_u64)x & (uint64_t)1 << 63)), wide_short);
        memcpy(to + i, &p, sizeof p);
    }
    for (; i < n; i++) to[i] = fmodf(a[i], b[i]);
}
#define WIDE_FMOD { wide_fmod_f32 }
#define WIDE_ALL(f) { f##_vv, f##_vs, f##_sv }
#define WIDE_OF(name, type) [OP_##name] = WIDE_ALL(wide_##name##_##type)
#define WIDE_ONE(name, type) [OP_##name] = { wide_##name##_##type }
#define WIDE_LOOPS(type)                                                                                            \
    { WIDE_OF(add, type), WIDE_OF(sub, type), WIDE_OF(mul, type), WIDE_OF(eq, type), WIDE_OF(lt, type),             \
      WIDE_OF(le, type), WIDE_OF(gt, type), WIDE_OF(ge, type), WIDE_OF(min, type), WIDE_OF(max, type),              \
      WIDE_ONE(clip, type), WIDE_ONE(div, type), WIDE_ONE(mod, type), WIDE_ONE(fmod, type) }
#endif

static void wide_exp_f64(WIDE_ARGS)
{
    (void)op, (void)b_, (void)c_;
    const double *a = a_;
    double *d = d_;
    for (int64_t i = 0; i < n; i += WIDE_F64S) {
        const size_t size = wide_size(n - i);
        wide_store(d + i, wide_exp(wide_load(a + i, size)), size);
    }
}

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

/* int64 as f32: by their lower words, where all of a group are int32: each upper word repeats the sign of the
 * lower one. */
#if VEC_LANES == 16
#define WIDE_WORDS(x, y, k)                                                                                         \
    __builtin_shufflevector(x, y, k, 2 + k, 4 + k, 6 + k, 8 + k, 10 + k, 12 + k, 14 + k, 16 + k, 18 + k, 20 + k,     \
                            22 + k, 24 + k, 26 + k, 28 + k, 30 + k)
#elif VEC_LANES == 8
#define WIDE_WORDS(x, y, k) __builtin_shufflevector(x, y, k, 2 + k, 4 + k, 6 + k, 8 + k, 10 + k, 12 + k, 14 + k)
#else
#define WIDE_WORDS(x, y, k) __builtin_shufflevector(x, y, k, 2 + k, 4 + k, 6 + k)
#endif
typedef float wide_float __attribute__((vector_size(WIDE_BYTES)));
static void wide_to_float(WIDE_ARGS)
{
    (void)op, (void)b_, (void)c_;
    enum { GROUP = 64, EACH_TIME = VEC_LANES };
    const int64_t *a = a_;
    float *d = d_;
    int64_t i = 0;
    for (; i + GROUP <= n; i += GROUP) {
        wide_i32 lost = { 0 };
        int32_t left[EACH_TIME], any = 0;
        for (int k = 0; k < GROUP; k += EACH_TIME) {
            wide_i32 x, y;
            memcpy(&x, a + i + k, sizeof x);
            memcpy(&y, a + i + k + EACH_TIME / 2, sizeof y);
            const wide_i32 low = WIDE_WORDS(x, y, 0), high = WIDE_WORDS(x, y, 1);
            const wide_float z = __builtin_convertvector(low, wide_float);
            memcpy(d + i + k, &z, sizeof z);
            lost |= high ^ (low >> 31);
        }
        memcpy(left, &lost, sizeof left);
        for (int k = 0; k < EACH_TIME; k++) any |= left[k];
        for (int k = 0; any && k < GROUP; k++) d[i + k] = (float)a[i + k];
    }
    for (; i < n; i++) d[i] = (float)a[i];
}

/* f64 as f16 or bf16 has it, held as f32. A sum with 3/2 units of what is kept rounds once, ties to even; `lowest` is
 * the exponent of the least normal number, and from `limit` on numbers are infinite. */
typedef double wide_f64 __attribute__((vector_size(WIDE_BYTES)));
INLINE wide_short wide_narrowed(wide_f64 x, const int mantissa, const int lowest, const double limit)
{
    const wide_i64 bits = (wide_i64)x, sign = bits & INT64_MIN;
    const wide_i64 least = (wide_i64){ 0 } + ((int64_t)(1023 + lowest) << 52);
    const wide_i64 is_finite = (wide_f64)(bits & INT64_MAX) < (wide_f64){ 0 } + limit;
    const wide_i64 own = bits & ((int64_t)0x7ff << 52), is_own = is_finite & (own >= least);
    const wide_i64 exponent = (own & is_own) | (least & ~is_own);
    const wide_f64 sum = (wide_f64)((exponent + ((int64_t)(52 - mantissa) << 52)) | (int64_t)1 << 51);
    const wide_i64 rounded = (wide_i64)((x + sum) - sum) & INT64_MAX;
    const wide_i64 beyond = (wide_i64)(x + (wide_f64)(sign | (int64_t)0x7ff << 52));
    const wide_i64 size = ((rounded & is_finite) | (beyond & ~is_finite)) & INT64_MAX;
    return __builtin_convertvector((wide_f64)(size | sign), wide_short);
}

#define WIDE_NARROW(name, type, mantissa, lowest, limit)                                                            \
    static void name(WIDE_ARGS)                                                                                     \
    {                                                                                                               \
        (void)op, (void)b_, (void)c_;                                                                               \
        enum { LANES = WIDE_BYTES / sizeof(double) };                                                               \
        typedef type group __attribute__((vector_size(LANES * sizeof(type))));                                      \
        const type *a = a_;                                                                                         \
        float      *d = d_;                                                                                         \
        for (int64_t i = 0; i < n; i += LANES) {                                                                    \
            const size_t left = (size_t)(n - i < LANES ? n - i : LANES);                                            \
            group x = { 0 };                                                                                        \
            if (left == LANES) memcpy(&x, a + i, sizeof x);                                                         \
            else memcpy(&x, a + i, left * sizeof *a);                                                               \
            const wide_short y = wide_narrowed(__builtin_convertvector(x, wide_f64), mantissa, lowest, limit);      \
            if (left == LANES) memcpy(d + i, &y, sizeof y);                                                         \
            else memcpy(d + i, &y, left * sizeof *d);                                                               \
        }                                                                                                           \
    }
WIDE_NARROW(wide_f64_to_f16, double, 10, -14, 65520.0)
WIDE_NARROW(wide_f64_to_bf16, double, 7, -126, 0x1.ffp127)
