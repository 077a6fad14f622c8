/* SPDX-License-Identifier: Apache-2.0 */
/* simd_math.inc.h - transcendental functions on vectors, included after a simd_*.h.
 *
 * Polynomials were fitted to minimise the largest weighted error over the reduced range; errors are a few units in the
 * last place over all floats. Nothing branches, so a NaN stays a NaN and infinities go where they should. */

static inline vec v_abs(vec a) { return v_of_bits(vi_and(v_bits(a), vi_set(0x7FFFFFFF))); }
static inline vec v_neg(vec a) { return v_of_bits(vi_xor(v_bits(a), vi_set(INT32_MIN))); }
static inline vec v_sign_of(vec a, vec size)
{
    return v_of_bits(vi_or(v_bits(size), vi_and(v_bits(a), vi_set(INT32_MIN))));
}

/* p * 2^n for a whole n, of p near 1: in two halves, so that denormal results and overflow come out right. */
static inline vec v_scale2(vec p, vec n)
{
#ifdef SIMD_SCALE2
    return SIMD_SCALE2(p, n);
#else
    const veci k = v_to_int(n), half = vi_sra(k, 1), rest = vi_sub(k, half), bias = vi_set(127);
    return v_mul(v_mul(p, v_of_bits(vi_sll(vi_add(half, bias), 23))), v_of_bits(vi_sll(vi_add(rest, bias), 23)));
#endif
}

static inline vec v_exp(vec x)
{
    /* Bounds first: a NaN passes both. */
    const vec c = v_min(v_set(88.8f), v_max(v_set(-104.0f), x));
    const vec n = v_nearest(v_mul(c, v_set(1.44269504f)));
    vec       r = v_fma(n, v_set(-0.693145752f), c);
    r = v_fma(n, v_set(-1.42860677e-6f), r);
    vec p = v_set(0.00139508275f);
    p = v_fma(p, r, v_set(0.00836908887f));
    p = v_fma(p, r, v_set(0.0416662007f));
    p = v_fma(p, r, v_set(0.166665172f));
    p = v_fma(p, r, v_set(0.5f));
    p = v_add(v_fma(p, v_mul(r, r), r), v_set(1.0f));
    return v_scale2(p, n);
}

/* For x <= 0, as in softmax and every sigmoid: smaller, and exact zero below the smallest normal result. */
static inline vec v_exp_neg(vec x)
{
    const vec c = v_max(v_set(-87.3f), x);
    const vec n = v_nearest(v_mul(c, v_set(1.44269504f)));
    vec       r = v_fma(n, v_set(-0.693145752f), c);
    r = v_fma(n, v_set(-1.42860677e-6f), r);
    vec p = v_set(0.00139508275f);
    p = v_fma(p, r, v_set(0.00836908887f));
    p = v_fma(p, r, v_set(0.0416662007f));
    p = v_fma(p, r, v_set(0.166665172f));
    p = v_fma(p, r, v_set(0.5f));
    p = v_add(v_fma(p, v_mul(r, r), r), v_set(1.0f));
#ifdef SIMD_SCALE2
    return v_blend(v_lt(x, v_set(-87.3f)), v_zero(), SIMD_SCALE2(p, n));
#else
    p = v_of_bits(vi_add(v_bits(p), vi_sll(v_to_int(n), 23)));
    return v_blend(v_is_nan(x), x, v_blend(v_lt(x, v_set(-87.3f)), v_zero(), p));
#endif
}

static inline vec v_log(vec x)
{
    /* Denormals are scaled up; then x = 2^e * (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1). */
    const vecm tiny = v_lt(x, v_set(1.17549435e-38f));
    const vec  y = v_blend(tiny, v_mul(x, v_set(8388608.0f)), x);
    const veci b = v_bits(y);
    veci       e = vi_sub(vi_and(vi_sra(b, 23), vi_set(0xFF)), vi_blend(tiny, vi_set(127 + 23), vi_set(127)));
    vec        m = v_of_bits(vi_or(vi_and(b, vi_set(0x007FFFFF)), vi_set(0x3F800000)));
    const vecm high = v_le(v_set(1.41421356f), m);
    m = v_blend(high, v_mul(m, v_set(0.5f)), m);
    e = vi_blend(high, vi_add(e, vi_set(1)), e);
    const vec f = v_sub(m, v_set(1.0f)), n = vi_to_f32(e);
    vec       p = v_set(-0.0785933758f);
    p = v_fma(p, f, v_set(0.128815424f));
    p = v_fma(p, f, v_set(-0.131288082f));
    p = v_fma(p, f, v_set(0.141812094f));
    p = v_fma(p, f, v_set(-0.166245503f));
    p = v_fma(p, f, v_set(0.200022855f));
    p = v_fma(p, f, v_set(-0.250008105f));
    p = v_fma(p, f, v_set(0.333333167f));
    const vec f2 = v_mul(f, f);
    vec       r = v_mul(v_mul(p, f2), f);
    r = v_fma(n, v_set(-2.12194440e-4f), r);
    r = v_fma(f2, v_set(-0.5f), r);
    r = v_fma(n, v_set(0.693359375f), v_add(f, r));
    const vec inf = v_set(INFINITY);
    r = v_blend(v_eq(x, inf), inf, r);
    r = v_blend(v_eq(x, v_zero()), v_set(-INFINITY), r);
    return v_blend(m_or(v_lt(x, v_zero()), v_is_nan(x)), v_set(NAN), r);
}

/* log(1 + x) for x >= 0: the quotient repairs what 1 + x rounded away. */
static inline vec v_log1p_pos(vec x)
{
    const vec  u = v_add(x, v_set(1.0f)), d = v_sub(u, v_set(1.0f));
    const vecm small = v_eq(d, v_zero());
    return v_blend(small, x, v_mul(v_log(u), v_div(x, v_blend(small, v_set(1.0f), d))));
}

static inline vec v_expm1(vec x)
{
    vec p = v_set(0.000199905066f);
    p = v_fma(p, x, v_set(0.00139975408f));
    p = v_fma(p, x, v_set(0.00833308203f));
    p = v_fma(p, x, v_set(0.0416653124f));
    p = v_fma(p, x, v_set(0.166666679f));
    p = v_fma(p, x, v_set(0.5f));
    p = v_fma(p, v_mul(x, x), x);
    return v_blend(v_lt(v_abs(x), v_set(0.5f)), p, v_sub(v_exp(x), v_set(1.0f)));
}

static inline vec v_tanh(vec x)
{
    const vec a = v_abs(x), u = v_mul(x, x);
    vec       p = v_set(-0.00571701147f);
    p = v_fma(p, u, v_set(0.0206505544f));
    p = v_fma(p, u, v_set(-0.0537434869f));
    p = v_fma(p, u, v_set(0.133314911f));
    p = v_fma(p, u, v_set(-0.333332839f));
    p = v_fma(p, v_mul(u, x), x);
    const vec e = v_exp_neg(v_mul(a, v_set(-2.0f)));
    const vec r = v_div(v_sub(v_set(1.0f), e), v_add(v_set(1.0f), e));
    return v_sign_of(x, v_blend(v_lt(a, v_set(0.625f)), p, r)); /* p of -0 is 0 */
}

/* An exponential that overflows makes the quotient the zero that it should be; the lower tail keeps its relative
 * accuracy down to the smallest normal result. Of minus infinity silu and gelu are NaN, as infinity times zero is. */
static inline vec v_sigmoid(vec x)
{
    return v_div(v_set(1.0f), v_add(v_set(1.0f), v_exp(v_neg(x))));
}
static inline vec v_silu(vec x)
{
    return v_div(x, v_add(v_set(1.0f), v_exp(v_neg(x))));
}
static inline vec v_gelu_tanh(vec x)
{
    const vec u = v_mul(v_mul(x, v_set(-1.59576912f)), v_fma(v_mul(x, x), v_set(0.044715f), v_set(1.0f)));
    return v_div(x, v_add(v_set(1.0f), v_exp(u)));
}
static inline vec v_clip01(vec x) { return v_min(v_set(1.0f), v_max(v_zero(), x)); }
static inline vec v_hardswish(vec x)
{
    const vec gate = v_min(v_set(6.0f), v_max(v_zero(), v_add(x, v_set(3.0f))));
    return v_mul(x, v_mul(gate, v_set(1.0f / 6)));
}
static inline vec v_hard_sigmoid(vec x, vec alpha, vec beta) { return v_clip01(v_fma(x, alpha, beta)); }
static inline vec v_prelu(vec x, vec slope) { return v_blend(v_lt(x, v_zero()), v_mul(x, slope), x); }

/* erfc(t) for t >= 0, as exp(-t * S(t)). */
static inline vec v_erfc_pos(vec t)
{
    const vec c = v_min(v_set(10.0f), t);
    vec       s = v_set(1.27147802e-6f);
    s = v_fma(s, c, v_set(-2.20419382e-5f));
    s = v_fma(s, c, v_set(0.000169696409f));
    s = v_fma(s, c, v_set(-0.000743461362f));
    s = v_fma(s, c, v_set(0.00179872615f));
    s = v_fma(s, c, v_set(-0.000247596147f));
    s = v_fma(s, c, v_set(-0.0191236213f));
    s = v_fma(s, c, v_set(0.102774075f));
    s = v_fma(s, c, v_set(0.636619257f));
    s = v_fma(s, c, v_set(1.12837921f));
    return v_exp_neg(v_neg(v_mul(s, c)));
}
static inline vec v_erf(vec x)
{
    const vec a = v_abs(x), u = v_mul(x, x);
    vec       p = v_set(7.88910907e-5f);
    p = v_fma(p, u, v_set(-0.000802083815f));
    p = v_fma(p, u, v_set(0.00518953499f));
    p = v_fma(p, u, v_set(-0.0268544444f));
    p = v_fma(p, u, v_set(0.112836002f));
    p = v_fma(p, u, v_set(-0.376126271f));
    p = v_mul(v_fma(p, u, v_set(1.12837917f)), x);
    const vec q = v_sub(v_set(1.0f), v_erfc_pos(a));
    return v_sign_of(x, v_blend(v_lt(a, v_set(1.0f)), p, q)); /* p of -0 is 0 */
}
static inline vec v_gelu(vec x)
{
    const vec q = v_mul(v_erfc_pos(v_mul(v_abs(x), v_set(0.707106781f))), v_set(0.5f));
    return v_mul(x, v_blend(v_lt(x, v_zero()), q, v_sub(v_set(1.0f), q)));
}

static inline vec v_softplus(vec x)
{
    return v_add(v_max(v_zero(), x), v_log1p_pos(v_exp(v_neg(v_abs(x)))));
}
/* x * tanh(softplus(x)) = x * w / (w + 2), w = e^x (e^x + 2). */
static inline vec v_mish(vec x)
{
    const vec e = v_exp(v_min(v_set(20.0f), x)), w = v_mul(e, v_add(e, v_set(2.0f)));
    return v_mul(x, v_blend(v_lt(v_set(20.0f), x), v_set(1.0f), v_div(w, v_add(w, v_set(2.0f)))));
}

/* sin (quarter 0) or cos (quarter 1); good for |x| < SIN_MAX, beyond which callers take the scalar function. */
#define SIN_MAX 8192.0f
static inline vec v_sin_cos(vec x, int quarter)
{
    const vec n = v_nearest(v_mul(x, v_set(0.636619772f)));
    vec       r = v_fma(n, v_set(-1.5703125f), x);
    r = v_fma(n, v_set(-4.83751297e-4f), r);
    r = v_fma(n, v_set(-7.54953362e-8f), r);
    r = v_fma(n, v_set(-2.56334407e-12f), r);
    const vec u = v_mul(r, r);
    vec       s = v_set(2.71793955e-6f);
    s = v_fma(s, u, v_set(-0.000198392961f));
    s = v_fma(s, u, v_set(0.00833332927f));
    s = v_fma(s, u, v_set(-0.166666666f));
    s = v_fma(s, v_mul(u, r), r);
    vec c = v_set(2.44348387e-5f);
    c = v_fma(c, u, v_set(-0.0013887337f));
    c = v_fma(c, u, v_set(0.0416666463f));
    c = v_fma(v_mul(c, u), u, v_fma(u, v_set(-0.5f), v_set(1.0f)));
    const veci q = vi_add(v_to_int(n), vi_set(quarter));
    const vec  y = v_blend(vi_eq(vi_and(q, vi_set(1)), vi_set(1)), c, s);
    const vec z = v_of_bits(vi_xor(v_bits(y), vi_sll(vi_and(q, vi_set(2)), 30)));
    return quarter ? z : v_blend(v_eq(x, v_zero()), x, z); /* the sign of a zero */
}

/* A round trip (round_trip.h): its quotient is x / scale, x between low and high. Zeros are positive; NaN is `low`. */
static inline vec v_round_trip(vec quotient, vec back) { return v_mul(v_add(v_nearest(quotient), v_zero()), back); }
static inline vec v_between(vec x, vec low, vec high) { return v_min(high, v_max(x, low)); }

/* bfloat16: nearest, ties to even; a NaN keeps its high bits and becomes quiet. */
static inline vec  v_load_bf16(const uint16_t *p) { return v_of_bits(vi_sll(vi_load_u16(p), 16)); }
static inline void v_store_bf16(uint16_t *p, vec v)
{
    const veci b = v_bits(v);
    const veci odd = vi_and(vi_sra(b, 16), vi_set(1));
    const veci r = vi_add(b, vi_add(vi_set(0x7FFF), odd));
    vi_store_16(p, vi_sra(vi_blend(v_is_nan(v), vi_or(b, vi_set(0x00400000)), r), 16));
}
