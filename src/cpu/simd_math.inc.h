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

#ifdef SIMD_TABLE_BITS
/* exp with a table: c = ln2 * n + r, where n is a multiple of 1 / 2^SIMD_TABLE_BITS and |r| is so small that a cubic is
 * exact enough. The sum with `magic` rounds c / ln2 to such a multiple: its lowest bits are the fraction of n, by which
 * the table is read, and those above are floor(n) + 127, the exponent of 2^floor(n). */
enum { EXP_ENTRIES = 1 << SIMD_TABLE_BITS };
#define EXP_MAGIC (12582912.0f / EXP_ENTRIES + 127.0f)
#if SIMD_TABLE_BITS == 4
#define EXP_QUADRATIC 0.5000163f
#define EXP_CUBIC     0.1666704f
static const float exp_table[EXP_ENTRIES] = {
    1.0f,        1.04427378f, 1.09050773f, 1.13878863f, 1.18920712f, 1.24185781f, 1.29683955f, 1.35425555f,
    1.41421356f, 1.47682615f, 1.54221083f, 1.61049033f, 1.68179283f, 1.75625216f, 1.83400809f, 1.91520656f,
};
#else
#define EXP_QUADRATIC 0.50006497f
#define EXP_CUBIC     0.16668224f
static const float exp_table[EXP_ENTRIES] = {
    1.0f, 1.09050773f, 1.18920712f, 1.29683955f, 1.41421356f, 1.54221083f, 1.68179283f, 1.83400809f,
};
#endif

/* The result times 2^floor(n) is exp(c), or exp(-c) where `minus`; sum: n + magic. exact: to about one unit of the last
 * place. Else a step of the reduction is left out, which costs 2e-9 * |c| of the result. */
static inline vec v_exp_part(vec c, bool minus, bool exact, vec *sum)
{
    const vec magic = v_set(EXP_MAGIC);
    *sum = v_fma(c, v_set(minus ? -1.44269504f : 1.44269504f), magic);
    const vec n = v_sub(*sum, magic);
    vec       r = minus ? v_fnms(n, v_set(0.693147182f), c) : v_fma(n, v_set(-0.693147182f), c);
    if (exact) r = v_fma(n, v_set(1.90465421e-9f), r);
    const vec t = v_lookup(exp_table, v_bits(*sum));
    const vec p = v_fma(v_fma(v_set(EXP_CUBIC), r, v_set(EXP_QUADRATIC)), v_mul(r, r), r);
    return v_fma(t, p, t);
}
#ifdef SIMD_SCALE2
/* p * 2^floor(n) with all that rounding does. */
static inline vec v_exp_scale(vec p, vec sum) { return SIMD_SCALE2(p, v_sub(sum, v_set(EXP_MAGIC))); }
#define v_exp_scale_all v_exp_scale
#else
/* p * 2^floor(n): 0 for floor(n) = -127, infinity for 128, undefined beyond. */
static inline vec v_exp_scale(vec p, vec sum)
{
    return v_mul(p, v_of_bits(vi_sll(vi_sra(v_bits(sum), SIMD_TABLE_BITS), 23)));
}
static inline vec v_exp_scale_all(vec p, vec sum)
{
    return v_scale2(p, v_floor(v_sub(sum, v_set(EXP_MAGIC))));
}
#endif

static inline vec v_exp(vec x)
{
    /* Bounds first: a NaN passes both. */
    vec       sum;
    const vec p = v_exp_part(v_min(v_set(88.8f), v_max(v_set(-104.0f), x)), false, true, &sum);
    return v_exp_scale_all(p, sum);
}

/* exp(-x) to add 1 to: infinity where it overflows or nearly does, anything small where it is far below 1. */
static inline vec v_exp_minus(vec x)
{
    vec       sum;
    const vec p = v_exp_part(v_min(v_set(87.9f), v_max(v_set(-88.8f), x)), true, true, &sum);
    return v_exp_scale(p, sum);
}

/* For x <= 0, as in softmax: smaller, and exact zero below the smallest normal result. */
static inline vec v_exp_neg(vec x)
{
    vec sum;
#ifdef SIMD_SCALE2_FROM
    const vec p = v_exp_part(x, false, false, &sum);
    return SIMD_SCALE2_FROM(v_set(-87.3f), x, p, v_sub(sum, v_set(EXP_MAGIC)));
#else
    const vec p = v_exp_part(v_max(v_set(-88.0f), x), false, false, &sum);
    return v_blend(v_lt(x, v_set(-87.3f)), v_zero(), v_exp_scale(p, sum));
#endif
}
#else
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
    p = v_of_bits(vi_add(v_bits(p), vi_sll(v_to_int(n), 23)));
    return v_blend(v_is_nan(x), x, v_blend(v_lt(x, v_set(-87.3f)), v_zero(), p));
}
static inline vec v_exp_minus(vec x) { return v_exp(v_neg(x)); }
#endif

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

/* x p(x^2) / q(x^2), two polynomials of degree 4 fitted together: 2.1e-8 of the result before rounding. Beyond 9 the
 * result rounds to 1; rounding must not lead past it. */
static inline vec v_tanh(vec x)
{
    const vec c = v_min(v_set(9.02f), v_max(v_set(-9.02f), x)), u = v_mul(c, c);
    vec       p = v_set(1.33190676e-8f), q = v_set(7.76201773e-7f);
    p = v_fma(p, u, v_set(2.05834785e-5f));
    q = v_fma(q, u, v_set(3.28309252e-4f));
    p = v_fma(p, u, v_set(3.49403429e-3f));
    q = v_fma(q, u, v_set(2.58710720e-2f));
    p = v_fma(p, u, v_set(0.133797184f));
    q = v_fma(q, u, v_set(0.467130333f));
    p = v_fma(v_mul(p, u), c, c);
    q = v_fma(q, u, v_set(1.0f));
    return v_min(v_set(1.0f), v_max(v_set(-1.0f), v_div(p, q)));
}

/* An exponential that overflows makes the quotient the zero that it should be; the lower tail keeps its relative
 * accuracy down to the smallest normal result. Of minus infinity silu and gelu are NaN, as infinity times zero is. */
static inline vec v_sigmoid(vec x)
{
    return v_div(v_set(1.0f), v_add(v_set(1.0f), v_exp_minus(x)));
}
static inline vec v_silu(vec x)
{
    return v_div(x, v_add(v_set(1.0f), v_exp_minus(x)));
}
static inline vec v_clip01(vec x) { return v_min(v_set(1.0f), v_max(v_zero(), x)); }
static inline vec v_hardswish(vec x)
{
    const vec gate = v_min(v_set(6.0f), v_max(v_zero(), v_add(x, v_set(3.0f))));
    return v_mul(x, v_mul(gate, v_set(1.0f / 6)));
}
static inline vec v_hard_sigmoid(vec x, vec alpha, vec beta) { return v_clip01(v_fma(x, alpha, beta)); }
static inline vec v_prelu(vec x, vec slope) { return v_blend(v_lt(x, v_zero()), v_mul(x, slope), x); }

#ifdef SIMD_TABLE_BITS
/* As many polynomials as the table has entries, one about each multiple of a step; the coefficients are looked up in
 * registers. Of sixteen the degree is 5, of eight 6 or 7. */
enum { PIECE_TERMS = SIMD_TABLE_BITS == 4 ? 6 : 8, ERF_TERMS = SIMD_TABLE_BITS == 4 ? 6 : 7 };
typedef struct piece_table {
    float at[PIECE_TERMS][EXP_ENTRIES];
} piece_table;
#if SIMD_TABLE_BITS == 4
#define ERF_MOST 4.0625f
#define ERF_STEP 0.2625f
static const piece_table erf_pieces = { {
    { 0.0f, 0.289534539f, 0.542192578f, 0.734589159f, 0.862436116f, 0.936568558f, 0.974078536f, 0.990639985f,
      0.997020543f, 0.999165475f, 0.999794602f, 0.999955654f, 0.999991596f, 0.999998629f, 0.999999821f, 1.0f },
    { 1.12837923f, 1.05324519f, 0.856550038f, 0.606910467f, 0.374666989f, 0.201518551f, 0.0944350883f, 0.0385567658f,
      0.0137156555f, 0.00425090455f, 0.0011478758f, 0.000270058139f, 5.53564787e-05f, 9.88617739e-06f, 1.53828637e-06f,
      2.08542573e-07f },
    { 2.43223326e-07f, -0.276469648f, -0.449680746f, -0.477946341f, -0.393414408f, -0.264494628f, -0.148740008f,
      -0.0708445162f, -0.0288075563f, -0.0100464178f, -0.00300279073f, -0.000783629366f, -0.000171520616f,
      -4.39362993e-05f, -1.64993144e-05f, -1.27059593e-05f },
    { -0.376140714f, -0.302718818f, -0.128159344f, 0.0486126952f, 0.150489375f, 0.164258331f, 0.124694213f,
      0.0739374682f, 0.0357524678f, 0.0144003723f, 0.00489032967f, 0.00141100353f, 0.000347694731f, 7.34423083e-05f,
      1.33339236e-05f, 2.08513165e-06f },
    { 0.000278096035f, 0.130800158f, 0.182280257f, 0.140043691f, 0.0531050973f, -0.0191616677f, -0.0480582751f,
      -0.0444233529f, -0.0276927073f, -0.0135048172f, -0.00605436368f, -0.00157408556f, -0.000661793514f,
      0.000474454777f, 0.000604946283f, 0.000684300612f },
    { 0.11098773f, 0.0775730982f, 0.00152145594f, -0.0582197197f, -0.0667078719f, -0.0389418304f, -0.00691033807f,
      0.0102471076f, 0.0126866717f, 0.00859273784f, 0.00423533609f, 0.00164289621f, 0.000518845511f, 0.000135950962f,
      2.98895211e-05f, 5.55634006e-06f },
} };
#define GELU_STEP 0.42f
static const piece_table gelu_pieces = { {
    { 0.0f, 0.14164193f, 0.168381527f, 0.130831718f, 0.0780841634f, 0.0375152864f, 0.0147867082f, 0.00482471846f,
      0.00130943372f, 0.000296406157f, 5.60524823e-05f, 8.8645229e-06f, 1.17317506e-06f, 1.29991918e-07f,
      1.20629897e-08f, 0.0f },
    { 0.49999997f, 0.183832616f, -0.0350345671f, -0.123432785f, -0.116955556f, -0.0745011792f, -0.0361409634f,
      -0.0139301987f, -0.00434991252f, -0.00111204712f, -0.000234215608f, -4.08058513e-05f, -5.8972355e-06f,
      -7.0836154e-07f, -7.08237735e-08f, 0.0f },
    { -0.398939192f, -0.33304131f, -0.181442246f, -0.0371995457f, 0.039998427f, 0.0530013144f, 0.0362627693f,
      0.0175943989f, 0.00655206246f, 0.00193486665f, 0.000460810086f, 8.93956749e-05f, 1.4217313e-05f, 1.86179091e-06f,
      2.01382633e-07f, 0.0f },
    { -9.15743294e-05f, 0.0977439582f, 0.129294068f, 0.0913610607f, 0.032078851f, -0.00630713347f, -0.0164526049f,
      -0.0120506864f, -0.00575850019f, -0.00204138248f, -0.000562734553f, -0.000123465055f, -2.18507776e-05f,
      -3.14613158e-06f, -3.7068267e-07f, 0.0f },
    { 0.0675668344f, 0.0422415845f, -0.0049020499f, -0.0340819247f, -0.0313678719f, -0.0136728128f, -0.000211440798f,
      0.00395706668f, 0.00307576661f, 0.00142935547f, 0.00047832838f, 0.000122513346f, 2.47205517e-05f, 3.99432747e-06f,
      5.22190419e-07f, 0.0f },
    { -0.00544886291f, -0.0200916044f, -0.0208703894f, -0.00554301916f, 0.00678818906f, 0.00839625392f, 0.00398103055f,
      0.000314220582f, -0.000828539662f, -0.00064289436f, -0.000280996959f, -8.65342372e-05f, -2.01464354e-05f,
      -3.66440804e-06f, -5.30395482e-07f, 0.0f },
} };
#define GELU_TANH_STEP 0.387f
static const piece_table gelu_tanh_pieces = { {
    { 0.0f, 0.135215953f, 0.169942215f, 0.142799124f, 0.0943395421f, 0.0512260534f, 0.0231378023f, 0.00866786763f,
      0.00266177021f, 0.000658639765f, 0.000128681408f, 1.94176991e-05f, 2.21170149e-06f, 1.85746785e-07f,
      1.12324683e-08f, 0.0f },
    { 0.49999997f, 0.206191629f, -0.00909029413f, -0.112985551f, -0.125870243f, -0.0930784866f, -0.0530289002f,
      -0.0241612401f, -0.0088410452f, -0.00257181935f, -0.000584628142f, -0.000101750382f, -1.3263556e-05f,
      -1.26584189e-06f, -8.64256933e-08f, 0.0f },
    { -0.398939252f, -0.342210501f, -0.206847623f, -0.0667481646f, 0.0229221527f, 0.0532710962f, 0.0463739f,
      0.0279356856f, 0.0127666052f, 0.00450194441f, 0.00121696689f, 0.000248261f, 3.74840274e-05f, 4.10096663e-06f,
      3.17967533e-07f, 0.0f },
    { -8.61032677e-05f, 0.0921946838f, 0.12940678f, 0.103595853f, 0.0498975292f, 0.00599842751f, -0.0139845861f,
      -0.0156654846f, -0.0100372434f, -0.00454889005f, -0.00151557056f, -0.000371366652f, -6.61253871e-05f,
      -8.41184374e-06f, -7.49759465e-07f, 0.0f },
    { 0.0678399354f, 0.0454516895f, 0.0017027423f, -0.0301378649f, -0.0342798419f, -0.0207735058f, -0.00591032859f,
      0.00228651636f, 0.00405299803f, 0.00278189406f, 0.00123500032f, 0.000382096739f, 8.34033126e-05f, 1.27706853e-05f,
      1.35423534e-06f, 0.0f },
    { -0.00533033768f, -0.019714497f, -0.0222949628f, -0.00913609099f, 0.0039526592f, 0.00849999487f, 0.00615436118f,
      0.00231079618f, -0.00018867453f, -0.000888108858f, -0.000636347802f, -0.000265953364f, -7.30879256e-05f,
      -1.35554092e-05f, -1.697887e-06f, 0.0f },
} };
#else
#define ERF_MOST 4.0f
#define ERF_STEP 0.5372f
static const piece_table erf_pieces = { {
    { 0.0f, 0.55257535f, 0.871345937f, 0.977341652f, 0.997625291f, 0.999854445f, 0.999994814f, 0.999999881f },
    { 1.12837923f, 0.845521748f, 0.355741084f, 0.084039107f, 0.0111472914f, 0.000830225646f,
      3.47189416e-05f, 8.15394287e-07f },
    { -1.21723624e-05f, -0.454215705f, -0.382207453f, -0.135438532f, -0.0239595827f, -0.00222385558f,
      -0.000104930696f, 4.60847247e-07f },
    { -0.375724882f, -0.119199954f, 0.155135751f, 0.117520735f, 0.0305999964f, 0.00371571886f,
      0.000228634221f, 7.36656375e-06f },
    { -0.00464644283f, 0.183423564f, 0.0440587588f, -0.0495112464f, -0.0246786028f, -0.00446743937f,
      -0.000586756621f, -0.000142903009f },
    { 0.135697648f, -0.00272205635f, -0.0640505403f, -0.00399879599f, 0.0120870303f, 0.00349901663f,
      0.000373750605f, 1.89183938e-05f },
    { -0.0463089161f, -0.0474958085f, 0.0109791635f, 0.0147431744f, -0.00382680609f, 1.38485229e-05f,
      0.00203563808f, 0.00118079304f },
} };
#define GELU_STEP 0.94f
static const piece_table gelu_pieces = { {
    { 0.0f, 0.163192272f, 0.0565015897f, 0.00677133445f, 0.000319437648f, 6.11372388e-06f, 4.79468198e-08f, 0.0f },
    { 0.5f, -0.0674741864f, -0.098055914f, -0.0187005159f, -0.00119194412f, -2.86373288e-05f,
      -2.69972588e-07f, 0.0f },
    { -0.398942381f, -0.14316465f, 0.0522803366f, 0.0222705714f, 0.00206089369f, 6.3995285e-05f,
      7.37044559e-07f, 0.0f },
    { 4.05078617e-06f, 0.125215828f, 0.00994358212f, -0.0139005752f, -0.00215742295f, -9.02658649e-05f,
      -1.29196599e-06f, 0.0f },
    { 0.0664355382f, -0.0149566466f, -0.0234354939f, 0.00360753434f, 0.00148625404f, 8.92965545e-05f,
      1.60811419e-06f, 0.0f },
    { 0.000345234468f, -0.0181743838f, 0.00892845728f, 0.00109985902f, -0.000664193765f, -6.5575914e-05f,
      -1.56206204e-06f, 0.0f },
    { -0.0110872164f, 0.00506552821f, 0.000730406551f, -0.00125422957f, 0.000142975041f, 3.78212135e-05f,
      1.3776621e-06f, 0.0f },
    { 0.00180246029f, 0.00156418281f, -0.00132620824f, 0.000371000526f, 2.13838739e-05f, -1.4828046e-05f,
      -8.28353336e-07f, 0.0f },
} };
#define GELU_TANH_STEP 0.8656f
static const piece_table gelu_tanh_pieces = { {
    { 0.0f, 0.167473421f, 0.0723184347f, 0.0117528811f, 0.000713570509f, 1.33213489e-05f, 5.95335408e-08f, 0.0f },
    { 0.5f, -0.0437299386f, -0.113267764f, -0.031032782f, -0.00276318844f, -7.1595372e-05f, -4.27366587e-07f, 0.0f },
    { -0.398942381f, -0.171377018f, 0.0437111296f, 0.03335068f, 0.00479011238f, 0.000179696217f,
      1.46968614e-06f, 0.0f },
    { 3.86028978e-06f, 0.128136411f, 0.0264108013f, -0.0163956638f, -0.0047818129f, -0.00027730476f,
      -3.19385686e-06f, 0.0f },
    { 0.0667675212f, -0.00824559946f, -0.02909787f, 0.000774469692f, 0.00287779537f, 0.00029051851f,
      4.83486974e-06f, 0.0f },
    { 0.000331656716f, -0.0202005673f, 0.0073480648f, 0.00338204554f, -0.000895148143f, -0.000214035099f,
      -5.62510877e-06f, 0.0f },
    { -0.01129793f, 0.00442345859f, 0.00203282177f, -0.00162006984f, -6.07046713e-05f, 0.000108829183f,
      5.75675222e-06f, 0.0f },
    { 0.0018287017f, 0.0020410961f, -0.00145168521f, 0.000151606466f, 0.000159341827f, -3.15064026e-05f,
      -3.8205394e-06f, 0.0f },
} };
#endif

static inline vec v_pieces(const piece_table *t, int terms, veci i, vec s)
{
    vec p = v_lookup(t->at[terms - 1], i);
    for (int k = terms - 2; k >= 0; k--) p = v_fma(p, s, v_lookup(t->at[k], i));
    return p;
}
static inline vec v_erf(vec x)
{
    const vec magic = v_set(12582912.0f), a = v_min(v_set(ERF_MOST), v_abs(x));
    const vec sum = v_fma(a, v_set(1 / ERF_STEP), magic);
    const vec s = v_fma(v_sub(sum, magic), v_set(-ERF_STEP), a);
    return v_sign_of(x, v_pieces(&erf_pieces, ERF_TERMS, v_bits(sum), s));
}
/* max(x, 0) less a function of |x| that fades out. The last piece is 0, which makes minus infinity NaN. */
static inline vec v_gelu_by(const piece_table *t, float step, vec x)
{
    const vec magic = v_set(12582912.0f), a = v_abs(x);
    const vec sum = v_min(v_set(12582912.0f + (EXP_ENTRIES - 1)), v_fma(a, v_set(1 / step), magic));
    const vec tail = v_pieces(t, PIECE_TERMS, v_bits(sum), v_fma(v_sub(sum, magic), v_set(-step), a));
    const vec top = v_max(v_set(-0.0f), x); /* the sign of a result that is 0 */
    return v_blend(v_lt(x, v_set((EXP_ENTRIES - 1.5f) * step)), v_sub(top, tail), top);
}
static inline vec v_gelu(vec x) { return v_gelu_by(&gelu_pieces, GELU_STEP, x); }
static inline vec v_gelu_tanh(vec x) { return v_gelu_by(&gelu_tanh_pieces, GELU_TANH_STEP, x); }
#else
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
static inline vec v_gelu_tanh(vec x)
{
    const vec u = v_mul(v_mul(x, v_set(1.59576912f)), v_fma(v_mul(x, x), v_set(0.044715f), v_set(1.0f)));
    return v_div(x, v_add(v_set(1.0f), v_exp_minus(u)));
}
#endif

/* The angle above the nearest of 0, pi / 4 and pi / 2 is that of y, |y| <= tan(pi / 8). */
static inline vec v_atan(vec x)
{
    const vec  a = v_abs(x), one = v_set(1.0f);
    const vecm far = v_lt(v_set(2.41421356f), a), middle = v_lt(v_set(0.414213562f), a);
    const vec  above = v_blend(far, v_set(-1.0f), v_blend(middle, v_sub(a, one), a));
    const vec  below = v_blend(far, a, v_blend(middle, v_add(a, one), one));
    const vec  from = v_blend(far, v_set(1.57079637f), v_blend(middle, v_set(0.785398185f), v_zero()));
    const vec  y = v_div(above, below), u = v_mul(y, y);
    vec        p = v_set(0.0805374450f);
    p = v_fma(p, u, v_set(-0.138776856f));
    p = v_fma(p, u, v_set(0.199777106f));
    p = v_fma(p, u, v_set(-0.333329491f));
    return v_sign_of(x, v_add(from, v_fma(v_mul(p, u), y, y)));
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

/* exp(a) / 2 of a >= 0. Above 88, where exp(a) overflows before its half does, it is exp(a - 1) * e / 2.
 * *rest: exp(-a) / 2; above 88: 0. */
static inline vec v_exp_half(vec a, vec *rest)
{
    const vecm large = v_lt(v_set(88.0f), a);
    const vec  e = v_exp(v_sub(a, v_blend(large, v_set(1.0f), v_zero())));
    *rest = v_div(v_blend(large, v_zero(), v_set(0.5f)), e);
    return v_mul(e, v_blend(large, v_set(1.35914091f), v_set(0.5f)));
}
static inline vec v_sinh(vec x)
{
    const vec a = v_abs(x), u = v_mul(x, x);
    vec       p = v_set(2.8174386e-6f), rest;
    p = v_fma(p, u, v_set(0.00019836066f));
    p = v_fma(p, u, v_set(0.0083333505f));
    p = v_fma(p, u, v_set(0.16666667f));
    p = v_fma(v_mul(p, u), x, x);
    const vec half = v_exp_half(a, &rest);
    return v_blend(v_lt(a, v_set(1.0f)), p, v_sign_of(x, v_sub(half, rest)));
}
static inline vec v_cosh(vec x)
{
    vec       rest;
    const vec half = v_exp_half(v_abs(x), &rest);
    return v_add(half, rest);
}

/* log(1 + t); where x is large, log(2 x). x >= 0. */
static inline vec v_log_area(vec x, vec t)
{
    const vecm large = v_lt(v_set(1e10f), x);
    const vec  r = v_add(v_log1p_pos(v_blend(large, x, t)), v_blend(large, v_set(0.693147182f), v_zero()));
    return v_blend(v_eq(x, v_set(INFINITY)), x, r);
}
static inline vec v_asinh(vec x)
{
    const vec a = v_abs(x), u = v_mul(a, a), one = v_set(1.0f);
    return v_sign_of(x, v_log_area(a, v_add(a, v_div(u, v_add(one, v_sqrt(v_add(u, one)))))));
}
static inline vec v_acosh(vec x)
{
    const vec t = v_sub(x, v_set(1.0f));
    const vec r = v_log_area(x, v_add(t, v_sqrt(v_mul(t, v_add(t, v_set(2.0f))))));
    return v_blend(v_lt(x, v_set(1.0f)), v_set(NAN), r);
}
static inline vec v_atanh(vec x)
{
    const vec a = v_abs(x), one = v_set(1.0f);
    const vec r = v_mul(v_set(0.5f), v_log1p_pos(v_div(v_add(a, a), v_sub(one, a))));
    const vec y = v_blend(v_eq(a, one), v_set(INFINITY), v_blend(v_lt(one, a), v_set(NAN), r));
    return v_sign_of(x, y);
}

/* asin(|x|) where |x| <= 1 / 2. Elsewhere, *far is set: half of acos(|x|). */
static inline vec v_asin_part(vec x, vecm *far)
{
    const vec a = v_abs(x);
    *far = v_lt(v_set(0.5f), a);
    const vec z = v_blend(*far, v_mul(v_sub(v_set(1.0f), a), v_set(0.5f)), v_mul(a, a));
    const vec s = v_blend(*far, v_sqrt(z), a);
    vec       p = v_set(0.042230185f);
    p = v_fma(p, z, v_set(0.024141226f));
    p = v_fma(p, z, v_set(0.045478288f));
    p = v_fma(p, z, v_set(0.074952334f));
    p = v_fma(p, z, v_set(0.16666754f));
    return v_fma(v_mul(p, z), s, s);
}
static inline vec v_asin(vec x)
{
    vecm      far;
    const vec y = v_asin_part(x, &far);
    return v_sign_of(x, v_blend(far, v_fma(y, v_set(-2.0f), v_set(1.57079637f)), y));
}
static inline vec v_acos(vec x)
{
    vecm       far;
    const vec  y = v_asin_part(x, &far), twice = v_add(y, y);
    const vec  from = v_blend(v_lt(x, v_zero()), v_sub(v_set(3.14159274f), twice), twice);
    return v_blend(far, from, v_sub(v_set(1.57079637f), v_sign_of(x, y)));
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
