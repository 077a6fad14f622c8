/* SPDX-License-Identifier: Apache-2.0 */
/* vm_ops.inc.h - the vector loops of expression programs, included once by each instruction set's file.
 *
 * Each is a loop over whole vectors and one masked step: operands may be the caller's memory, of which no byte beyond
 * the tile is touched. */
#define ARGS const vm_op *op, void *d_, const void *a_, const void *b_, const void *c_, int64_t n
#define UNUSED(...) (void)op, (void)a_, (void)b_, (void)c_

#define LOOP(full, part)                                          \
    int64_t i = 0;                                                \
    for (; i + VEC_LANES <= n; i += VEC_LANES) { full; }          \
    if (i < n) {                                                  \
        const int left = (int)(n - i);                            \
        part;                                                     \
    }

#define UNARY(name, value)                                                                                \
    static void u_##name(ARGS)                                                                            \
    {                                                                                                     \
        UNUSED();                                                                                         \
        float *d = d_;                                                                                    \
        const float *a = a_;                                                                              \
        LOOP(const vec x = v_load(a + i); v_store(d + i, value),                                          \
             const vec x = v_load_n(a + i, left); v_store_n(d + i, value, left))                          \
    }

#define BINARY_AS(name, x_full, x_part, y_full, y_part, value)                                            \
    static void name(ARGS)                                                                                \
    {                                                                                                     \
        UNUSED();                                                                                         \
        float *d = d_;                                                                                    \
        const float *a = a_, *b = b_;                                                                     \
        const vec sa = v_set(*a), sb = v_set(*b);                                                         \
        (void)sa, (void)sb;                                                                               \
        LOOP(const vec x = x_full; const vec y = y_full; v_store(d + i, value),                           \
             const vec x = x_part; const vec y = y_part; v_store_n(d + i, value, left))                   \
    }
#define BINARY(name, value)                                                                               \
    BINARY_AS(b_##name##_vv, v_load(a + i), v_load_n(a + i, left), v_load(b + i), v_load_n(b + i, left), value) \
    BINARY_AS(b_##name##_vs, v_load(a + i), v_load_n(a + i, left), sb, sb, value)                         \
    BINARY_AS(b_##name##_sv, sa, sa, v_load(b + i), v_load_n(b + i, left), value)

static inline void store_mask(int32_t *d, vecm m, int n)
{
    int32_t t[VEC_LANES];
    vi_store(t, vi_of_mask(m));
    for (int i = 0; i < n; i++) d[i] = t[i];
}
#define COMPARE_AS(name, x_full, x_part, y_full, y_part, value)                                           \
    static void name(ARGS)                                                                                \
    {                                                                                                     \
        UNUSED();                                                                                         \
        int32_t *d = d_;                                                                                  \
        const float *a = a_, *b = b_;                                                                     \
        const vec sa = v_set(*a), sb = v_set(*b);                                                         \
        (void)sa, (void)sb;                                                                               \
        LOOP(const vec x = x_full; const vec y = y_full; vi_store(d + i, vi_of_mask(value)),              \
             const vec x = x_part; const vec y = y_part; store_mask(d + i, value, left))                  \
    }
#define COMPARE(name, value)                                                                              \
    COMPARE_AS(b_##name##_vv, v_load(a + i), v_load_n(a + i, left), v_load(b + i), v_load_n(b + i, left), value) \
    COMPARE_AS(b_##name##_vs, v_load(a + i), v_load_n(a + i, left), sb, sb, value)                        \
    COMPARE_AS(b_##name##_sv, sa, sa, v_load(b + i), v_load_n(b + i, left), value)

#define TERNARY_VVV(name, value)                                                                          \
    static void t_##name##_vvv(ARGS)                                                                      \
    {                                                                                                     \
        UNUSED();                                                                                         \
        float *d = d_;                                                                                    \
        const float *a = a_, *b = b_, *c = c_;                                                            \
        LOOP(const vec x = v_load(a + i); const vec y = v_load(b + i); const vec z = v_load(c + i);       \
             v_store(d + i, value),                                                                       \
             const vec x = v_load_n(a + i, left); const vec y = v_load_n(b + i, left);                    \
             const vec z = v_load_n(c + i, left); v_store_n(d + i, value, left))                          \
    }
#define TERNARY_VSS(name, value)                                                                          \
    static void t_##name##_vss(ARGS)                                                                      \
    {                                                                                                     \
        UNUSED();                                                                                         \
        float *d = d_;                                                                                    \
        const float *a = a_;                                                                              \
        const vec y = v_set(*(const float *)b_), z = v_set(*(const float *)c_);                           \
        LOOP(const vec x = v_load(a + i); v_store(d + i, value),                                          \
             const vec x = v_load_n(a + i, left); v_store_n(d + i, value, left))                          \
    }

#define TERNARY(name, value)                                                                              \
    TERNARY_VVV(name, value)                                                                              \
    TERNARY_VSS(name, value)

/* The sign of a number that is neither below nor above 0: 0, or the NaN that it is. */
static inline vec sign_rest(vec x) { return v_blend(v_is_nan(x), x, v_zero()); }

UNARY(identity, x)
UNARY(neg, v_neg(x))
UNARY(abs, v_abs(x))
UNARY(ceil, v_ceil(x))
UNARY(floor, v_floor(x))
UNARY(round, v_nearest(x))
UNARY(sign, v_blend(v_lt(x, v_zero()), v_set(-1.0f), v_blend(v_lt(v_zero(), x), v_set(1.0f), sign_rest(x))))
UNARY(sqrt, v_sqrt(x))
UNARY(rsqrt, v_div(v_set(1.0f), v_sqrt(x)))
UNARY(reciprocal, v_div(v_set(1.0f), x))
UNARY(exp, v_exp(x))
UNARY(log, v_log(x))
UNARY(tanh, v_tanh(x))
UNARY(erf, v_erf(x))
UNARY(sigmoid, v_sigmoid(x))
UNARY(relu, v_max(v_zero(), x))
UNARY(atan, v_atan(x))
UNARY(asin, v_asin(x))
UNARY(acos, v_acos(x))
UNARY(sinh, v_sinh(x))
UNARY(cosh, v_cosh(x))
UNARY(asinh, v_asinh(x))
UNARY(acosh, v_acosh(x))
UNARY(atanh, v_atanh(x))
UNARY(softplus, v_softplus(x))
UNARY(softsign, v_div(x, v_add(v_set(1.0f), v_abs(x))))
UNARY(hardswish, v_hardswish(x))
UNARY(mish, v_mish(x))
UNARY(silu, v_silu(x))
UNARY(gelu, v_gelu(x))
UNARY(gelu_tanh, v_gelu_tanh(x))
BINARY(add, v_add(x, y))
BINARY(sub, v_sub(x, y))
BINARY(mul, v_mul(x, y))
BINARY(div, v_div(x, y))
BINARY(min, nan_least(x, y))
BINARY(max, nan_most(x, y))
BINARY(prelu, v_prelu(x, y))
BINARY(elu, v_blend(v_lt(x, v_zero()), v_mul(y, v_expm1(x)), x))
BINARY(celu, v_blend(v_is_nan(x), x,
                     v_add(v_max(v_zero(), x), v_min(v_zero(), v_mul(y, v_expm1(v_div(x, y)))))))
BINARY(thresholded_relu, v_blend(v_lt(y, x), x, v_zero()))
COMPARE(eq, v_eq(x, y))
COMPARE(lt, v_lt(x, y))
COMPARE(le, v_le(x, y))
COMPARE(gt, v_lt(y, x))
COMPARE(ge, v_le(y, x))
TERNARY_VVV(clip, v_blend(m_or(v_is_nan(y), v_is_nan(z)), v_add(y, z), v_min(z, v_max(y, x))))
TERNARY_VSS(clip_data, v_min(z, v_max(y, x)))
TERNARY_VSS(clip_any, v_blend(m_or(v_is_nan(y), v_is_nan(z)), v_add(y, z), v_min(z, v_max(y, x))))
TERNARY(hard_sigmoid, v_hard_sigmoid(x, y, z))
TERNARY(shrink, v_blend(v_lt(x, v_neg(z)), v_add(x, y), v_blend(v_lt(z, x), v_sub(x, y), v_zero())))
TERNARY(selu, v_mul(z, v_blend(v_le(x, v_zero()), v_mul(y, v_sign_of(x, v_expm1(x))), x)))

/* Bounds that are NaN make all results NaN; there is no such bound in nearly every network. */
static void t_clip_vss(ARGS)
{
    const float low = *(const float *)b_, high = *(const float *)c_;
    (low <= high || low > high ? t_clip_data_vss : t_clip_any_vss)(op, d_, a_, b_, c_, n);
}

/* Large angles need more of pi than a vector reduction carries. */
#define PERIODIC(name, value)                                                                             \
    static void u_##name(ARGS)                                                                            \
    {                                                                                                     \
        UNUSED();                                                                                         \
        float *d = d_;                                                                                    \
        const float *a = a_;                                                                              \
        for (int64_t i = 0; i < n; i += VEC_LANES) {                                                      \
            const int left = n - i < VEC_LANES ? (int)(n - i) : VEC_LANES;                                \
            const vec x = v_load_n(a + i, left);                                                          \
            const bool is_far = m_any(m_not(v_lt(v_abs(x), v_set(SIN_MAX))));                             \
            float far[VEC_LANES];                                                                         \
            v_store(far, x);                                                                              \
            v_store_n(d + i, value, left);                                                                \
            for (int j = 0; is_far && j < left; j++) d[i + j] = name##f(far[j]);                          \
        }                                                                                                 \
    }
PERIODIC(sin, v_sin_cos(x, 0))
PERIODIC(cos, v_sin_cos(x, 1))
PERIODIC(tan, v_div(v_sin_cos(x, 0), v_sin_cos(x, 1)))

/* x to the power of a half: unlike a root's, that of -0 is 0 and that of minus infinity is infinity. */
static inline vec root(vec x)
{
    return v_blend(v_eq(x, v_set(-INFINITY)), v_set(INFINITY), v_sqrt(v_add(x, v_zero())));
}

/* Exponents that networks use are products and roots; the rest is the scalar function. */
static void pow_scalar(ARGS)
{
    UNUSED();
    float *d = d_;
    const float *a = a_;
    const float y = *(const float *)b_;
    if (y == 2) {
        LOOP(const vec x = v_load(a + i); v_store(d + i, v_mul(x, x)),
             const vec x = v_load_n(a + i, left); v_store_n(d + i, v_mul(x, x), left))
    } else if (y == 3) {
        LOOP(const vec x = v_load(a + i); v_store(d + i, v_mul(v_mul(x, x), x)),
             const vec x = v_load_n(a + i, left); v_store_n(d + i, v_mul(v_mul(x, x), x), left))
    } else if (y == -1) {
        LOOP(const vec x = v_load(a + i); v_store(d + i, v_div(v_set(1.0f), x)),
             const vec x = v_load_n(a + i, left); v_store_n(d + i, v_div(v_set(1.0f), x), left))
    } else if (y == 0.5f) {
        LOOP(const vec x = v_load(a + i); v_store(d + i, root(x)),
             const vec x = v_load_n(a + i, left); v_store_n(d + i, root(x), left))
    } else if (y == -0.5f) {
        LOOP(const vec x = v_load(a + i); v_store(d + i, v_div(v_set(1.0f), root(x))),
             const vec x = v_load_n(a + i, left); v_store_n(d + i, v_div(v_set(1.0f), root(x)), left))
    } else {
        for (int64_t i = 0; i < n; i++) d[i] = powf(a[i], y);
    }
}

static void where(ARGS)
{
    UNUSED();
    float *d = d_;
    const int32_t *a = a_;
    const float *b = b_, *c = c_;
    const veci zero = vi_set(0);
    int64_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(d + i, v_blend(vi_eq(vi_load(a + i), zero), v_load(c + i), v_load(b + i)));
    for (; i < n; i++) d[i] = a[i] ? b[i] : c[i];
}

/* Only for results of at most 16 bits, so that every step is exact in f32.
 * NaN is the lowest: v_max gives its second operand. */
static void quantize(ARGS)
{
    UNUSED();
    int32_t *d = d_;
    const float *a = a_, *b = b_;
    const int32_t *c = c_;
    int64_t min, max;
    dtype_int_range((sinter_dtype)op->to, &min, &max);
    const vec lo = v_set((float)min), hi = v_set((float)max);
    int64_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        const vec q = v_add(v_nearest(v_div(v_load(a + i), v_load(b + i))), vi_to_f32(vi_load(c + i)));
        vi_store(d + i, v_to_int(v_min(hi, v_max(q, lo))));
    }
    if (i < n) {
        float q[VEC_LANES];
        int32_t z[VEC_LANES] = { 0 }, r[VEC_LANES];
        const int left = (int)(n - i);
        for (int j = 0; j < left; j++) z[j] = c[i + j];
        v_store(q, v_div(v_load_n(a + i, left), v_load_n(b + i, left)));
        vi_store(r, v_to_int(v_min(hi, v_max(v_add(v_nearest(v_load(q)), vi_to_f32(vi_load(z))), lo))));
        for (int j = 0; j < left; j++) d[i + j] = r[j];
    }
}

#define ROUND_TRIP(name, quotient)                                                                        \
    static void round_trip_##name(ARGS)                                                                   \
    {                                                                                                     \
        UNUSED();                                                                                         \
        float *d = d_;                                                                                    \
        const float *a = a_;                                                                              \
        const round_trip t = op->trip;                                                                    \
        const vec s = v_set(t.scale), r = v_set(t.inverse), low = v_set(t.low), high = v_set(t.high);     \
        const vec back = v_set(t.back);                                                                   \
        (void)r;                                                                                          \
        LOOP(const vec x = v_between(v_load(a + i), low, high);                                           \
             v_store(d + i, v_round_trip(quotient, back)),                                                \
             const vec x = v_between(v_load_n(a + i, left), low, high);                                   \
             v_store_n(d + i, v_round_trip(quotient, back), left))                                        \
    }
ROUND_TRIP(divide, v_div(x, s))
ROUND_TRIP(inverse, v_div_by(x, s, r))

/* To a type of 32 bits or less: towards zero, saturated; NaN is 0. */
static void float_to_int(ARGS)
{
    UNUSED();
    int32_t *d = d_;
    const float *a = a_;
    int64_t min, max;
    dtype_int_range((sinter_dtype)op->to, &min, &max);
    const veci top = vi_set((int32_t)max);
    const vec lo = v_set((float)min), hi = v_set((float)max);
    for (int64_t i = 0; i < n; i += VEC_LANES) {
        const int left = n - i < VEC_LANES ? (int)(n - i) : VEC_LANES;
        const vec x = v_load_n(a + i, left);
        veci y = v_to_int_cut(v_blend(v_is_nan(x), v_zero(), v_max(lo, x)));
        y = vi_blend(v_le(hi, x), top, y);
        if (left == VEC_LANES) {
            vi_store(d + i, y);
        } else {
            int32_t t[VEC_LANES];
            vi_store(t, y);
            for (int j = 0; j < left; j++) d[i + j] = t[j];
        }
    }
}
static void float_to_bool(ARGS)
{
    UNUSED();
    int32_t *d = d_;
    const float *a = a_;
    LOOP(vi_store(d + i, vi_of_mask(m_not(v_eq(v_load(a + i), v_zero())))),
         store_mask(d + i, m_not(v_eq(v_load_n(a + i, left), v_zero())), left))
}
static void int_to_float(ARGS)
{
    UNUSED();
    float *d = d_;
    const int32_t *a = a_;
    int64_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) v_store(d + i, vi_to_f32(vi_load(a + i)));
    for (; i < n; i++) d[i] = (float)a[i];
}
#define ROUND_TO(type, load, store)                                                          \
    static void round_##type(ARGS)                                                           \
    {                                                                                        \
        UNUSED();                                                                            \
        float *d = d_;                                                                       \
        const float *a = a_;                                                                 \
        uint16_t t[VEC_LANES];                                                               \
        LOOP(store(t, v_load(a + i)); v_store(d + i, load(t)),                               \
             store(t, v_load_n(a + i, left)); v_store_n(d + i, load(t), left))               \
    }
ROUND_TO(f16, v_load_f16, v_store_f16)
ROUND_TO(bf16, v_load_bf16, v_store_bf16)

static void dequantize(ARGS)
{
    UNUSED();
    float *d = d_;
    const int32_t *a = a_, *c = c_;
    const float *b = b_;
    int64_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        v_store(d + i, v_mul(vi_to_f32(vi_sub(vi_load(a + i), vi_load(c + i))), v_load(b + i)));
    for (; i < n; i++) d[i] = (float)(a[i] - c[i]) * b[i];
    if (op->to == SINTER_DTYPE_F16) round_f16(op, d, d, b, d, n);
    if (op->to == SINTER_DTYPE_BF16) round_bf16(op, d, d, b, d, n);
}

/* ---- memory to registers and back ---- */
#define LOAD(name, from, to, vload, vstore)                                                  \
    static void load_##name(void *dst, const void *src, int64_t n)                           \
    {                                                                                        \
        to *d = dst;                                                                         \
        const from *s = src;                                                                 \
        int64_t i = 0;                                                                       \
        for (; i + VEC_LANES <= n; i += VEC_LANES) vstore(d + i, vload(s + i));              \
        if (i < n) {                                                                         \
            from t[VEC_LANES] = { 0 };                                                       \
            to u[VEC_LANES];                                                                 \
            for (int64_t j = i; j < n; j++) t[j - i] = s[j];                                 \
            vstore(u, vload(t));                                                             \
            for (int64_t j = i; j < n; j++) d[j] = u[j - i];                                 \
        }                                                                                    \
    }
LOAD(f16, uint16_t, float, v_load_f16, v_store)
LOAD(bf16, uint16_t, float, v_load_bf16, v_store)
LOAD(i8, int8_t, int32_t, vi_load_i8, vi_store)
LOAD(u8, uint8_t, int32_t, vi_load_u8, vi_store)
LOAD(u16, uint16_t, int32_t, vi_load_u16, vi_store)
#define STORE(name, from, to, vload, vstore) LOAD(to_##name, from, to, vload, vstore)
STORE(f16, float, uint16_t, v_load, v_store_f16)
STORE(bf16, float, uint16_t, v_load, v_store_bf16)
STORE(8, int32_t, uint8_t, vi_load, vi_store_8)
STORE(16, int32_t, uint16_t, vi_load, vi_store_16)

static inline void store_truth(uint8_t *p, vec v) { vi_store_8(p, vi_of_mask(m_not(v_eq(v, v_zero())))); }
LOAD(truth, float, uint8_t, v_load, store_truth)

static void float_to_byte(void *dst, const void *src, int64_t n)
{
    int64_t i = 0;
#ifdef SIMD_PACK_CODES
    const veci zero = vi_set(0), flip = vi_set(0x01010101);
    const float *s = src;
    for (; i + 4 * VEC_LANES <= n; i += 4 * VEC_LANES) {
        veci q[4];
        UNROLL for (int j = 0; j < 4; j++) q[j] = vi_of_mask(v_eq(v_load(s + i + j * VEC_LANES), v_zero()));
        vi_store_codes((uint8_t *)dst + i, q, zero, zero, flip, flip);
    }
#endif
    load_truth((uint8_t *)dst + i, (const float *)src + i, n - i);
}

/* The last vector of a row overlaps the one before, and in long rows the first one that behind it, so that the others
 * are stored within lines of the cache. Both are computed before the rest is stored: results may lie where x does. */
enum { ROWS_LONG = 6 * VEC_LANES };
#define ROWS(name, type, get, set_up, value)                                                 \
    static void name(const vm_rows *r)                                                       \
    {                                                                                        \
        const char *from = r->x;                                                             \
        char *to = r->y;                                                                     \
        const int64_t n = r->cols;                                                           \
        for (int64_t row = 0; row < r->rows; row++) {                                        \
            const type *x = (const type *)(const void *)from;                                \
            float *y = (float *)(void *)to;                                                  \
            set_up;                                                                          \
            vec v = get(x + n - L);                                                          \
            const vec last = value;                                                          \
            v = get(x);                                                                      \
            const vec first = value;                                                         \
            int64_t i = n < ROWS_LONG ? 0 : (int64_t)(-(uintptr_t)y / sizeof *y % L);        \
            for (; i + 4 * L <= n; i += 4 * L) {                                             \
                UNROLL for (int j = 0; j < 4; j++)                                           \
                {                                                                            \
                    v = get(x + i + j * L);                                                  \
                    v_store(y + i + j * L, value);                                           \
                }                                                                            \
            }                                                                                \
            for (; i + L <= n; i += L) {                                                     \
                v = get(x + i);                                                              \
                v_store(y + i, value);                                                       \
            }                                                                                \
            v_store(y, first);                                                               \
            v_store(y + n - L, last);                                                        \
            from += r->x_row;                                                                \
            to += r->y_row;                                                                  \
        }                                                                                    \
    }
/* The number that a row has in operand a or b. */
#define ROW_AT(type, of) (*(const type *)(const void *)((const char *)r->of + row * r->of##_row))
#define ROWS_A const vec a = v_set(ROW_AT(float, a))
#define ROWS_B const vec b = v_set(ROW_AT(float, b))
ROWS(rows_mul, float, v_load, ROWS_A, v_mul(v, a))
ROWS(rows_add, float, v_load, ROWS_B, v_add(v, b))
ROWS(rows_mul_add, float, v_load, ROWS_A; ROWS_B, v_add(v_mul(v, a), b))
#define ROW_OF(of) const float *of = (const float *)(const void *)((const char *)r->of + row * r->of##_row)
#define WHOLE(p, n) v_load(p)
#define PRODUCTS(f, swap, get) f(v_mul(get(x + i, left), get(a + i, left)), \
                                 v_mul(swap(get(b + other + i, left)), get(c + i, left)))
#define ROWS_PRODUCTS(name, f, swap)                                                         \
    static void name(const vm_rows *r)                                                       \
    {                                                                                        \
        const int64_t n = r->run ? r->run : r->cols, runs = r->run ? r->cols / n : 1;        \
        for (int64_t row = 0; row < r->rows; row++) {                                        \
            ROW_OF(x);                                                                       \
            ROW_OF(a);                                                                       \
            ROW_OF(b);                                                                       \
            ROW_OF(c);                                                                       \
            float *y = (float *)(void *)(r->y + row * r->y_row);                             \
            int64_t other = r->run;                                                          \
            for (int64_t k = 0; k < runs; k++, other = -other) {                             \
                LOOP(v_store(y + i, PRODUCTS(f, swap, WHOLE)),                               \
                     v_store_n(y + i, PRODUCTS(f, swap, v_load_n), left))                    \
                x += n, a += n, b += n, c += n, y += n;                                      \
            }                                                                                \
        }                                                                                    \
    }
#define AS_IT_LIES(v) v
ROWS_PRODUCTS(rows_products_add, v_add, AS_IT_LIES)
ROWS_PRODUCTS(rows_products_sub, v_sub, AS_IT_LIES)
ROWS_PRODUCTS(rows_swapped_add, v_add, v_swap)
ROWS_PRODUCTS(rows_swapped_sub, v_sub, v_swap)
/* Both integers are small, so that their difference is exact in f32, too. */
#define ROWS_CODES(name, type, load)                                                         \
    static inline vec name##_get(const type *p) { return vi_to_f32(load(p)); }               \
    ROWS(name, type, name##_get,                                                             \
         ROWS_A; const vec b = v_set((float)(r->b ? ROW_AT(type, b) : r->zero)),         \
         v_mul(v_sub(v, b), a))
ROWS_CODES(rows_dequantize_u8, uint8_t, vi_load_u8)
ROWS_CODES(rows_dequantize_i8, int8_t, vi_load_i8)

#define B(name) [OP_##name] = { b_##name##_vv, b_##name##_vs, b_##name##_sv }
#define U(name) [OP_##name] = u_##name
#define T3(name) [OP_##name] = { t_##name##_vvv, t_##name##_vss }
static const vm_set vm_loops = {
    .unary = { U(identity), U(neg), U(abs), U(ceil), U(floor), U(round), U(sign), U(sqrt), U(rsqrt), U(reciprocal),
               U(exp), U(log), U(sin), U(cos), U(tan), U(tanh), U(erf), U(asin), U(acos), U(atan), U(sinh), U(cosh),
               U(asinh), U(acosh), U(atanh), U(sigmoid), U(relu), U(softplus), U(softsign),
               U(hardswish), U(mish), U(silu), U(gelu), U(gelu_tanh) },
    .binary = { B(add), B(sub), B(mul), B(div), B(min), B(max), B(prelu), B(elu), B(celu), B(thresholded_relu), B(eq),
                B(lt), B(le), B(gt), B(ge), [OP_fmod] = WIDE_FMOD },
    .ternary = { T3(clip), T3(hard_sigmoid), T3(selu), T3(shrink) },
    .i32 = WIDE_LOOPS(i32),
    .i64 = WIDE_LOOPS(i64),
    .exp_f64 = wide_exp_f64,
    .byte = WIDE_BYTE_LOOPS,
    .float_to_i64 = wide_of_float,
    .i64_to_float = wide_to_float,
    .f64_to_f16 = wide_f64_to_f16,
    .f64_to_bf16 = wide_f64_to_bf16,
    .pow_scalar = pow_scalar,
    .where = where,
    .quantize = quantize,
    .dequantize = dequantize,
    .round_trip = { round_trip_divide, round_trip_inverse },
    .float_to_int = float_to_int,
    .float_to_bool = float_to_bool,
    .float_to_byte = float_to_byte,
    .rows_mul = rows_mul, .rows_add = rows_add, .rows_mul_add = rows_mul_add,
    .rows_products = { { rows_products_add, rows_products_sub }, { rows_swapped_add, rows_swapped_sub } },
    .rows_dequantize = { rows_dequantize_u8, rows_dequantize_i8 },
    .int_to_float = int_to_float,
    .round_f16 = round_f16,
    .round_bf16 = round_bf16,
    .load = { [SINTER_DTYPE_F16] = load_f16, [SINTER_DTYPE_BF16] = load_bf16, [SINTER_DTYPE_I8] = load_i8,
              [SINTER_DTYPE_U8] = load_u8, [SINTER_DTYPE_BOOL] = load_u8, [SINTER_DTYPE_U16] = load_u16 },
    .store = { [SINTER_DTYPE_F16] = load_to_f16, [SINTER_DTYPE_BF16] = load_to_bf16, [SINTER_DTYPE_I8] = load_to_8,
               [SINTER_DTYPE_U8] = load_to_8, [SINTER_DTYPE_BOOL] = load_to_8, [SINTER_DTYPE_I16] = load_to_16,
               [SINTER_DTYPE_U16] = load_to_16 },
};
#undef B
#undef U
