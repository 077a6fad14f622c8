/* SPDX-License-Identifier: Apache-2.0 */
/* dft_lanes.inc.h - the steps of dft.h on W lanes of V: included by dft.inc.h for vectors, then for what is left of a
 * run behind the last whole vector. */
typedef struct DFT(pair) {
    V re, im;
} DFT(pair);
#define PAIR DFT(pair)

INLINE PAIR DFT(get)(dft_lines x, int64_t i) { return (PAIR){ GET(x.re + i), GET(x.im + i) }; }
INLINE void DFT(put)(dft_lines y, int64_t i, PAIR a)
{
    PUT(y.re + i, a.re);
    PUT(y.im + i, a.im);
}
INLINE PAIR DFT(add)(PAIR a, PAIR b) { return (PAIR){ ADD(a.re, b.re), ADD(a.im, b.im) }; }
INLINE PAIR DFT(sub)(PAIR a, PAIR b) { return (PAIR){ SUB(a.re, b.re), SUB(a.im, b.im) }; }
/* a + b w, for real w. */
INLINE PAIR DFT(more)(PAIR a, PAIR b, float w) { return (PAIR){ FMA(b.re, SET(w), a.re), FMA(b.im, SET(w), a.im) }; }
/* a + i b and a - i b. */
INLINE PAIR DFT(add_i)(PAIR a, PAIR b) { return (PAIR){ SUB(a.re, b.im), ADD(a.im, b.re) }; }
INLINE PAIR DFT(sub_i)(PAIR a, PAIR b) { return (PAIR){ ADD(a.re, b.im), SUB(a.im, b.re) }; }
/* a w, w = cos and -sin. */
INLINE PAIR DFT(turn)(PAIR a, const float *w)
{
    return (PAIR){ FMA(a.im, SET(-w[1]), MUL(a.re, SET(w[0]))), FMA(a.im, SET(w[0]), MUL(a.re, SET(w[1]))) };
}
INLINE PAIR DFT(scaled)(PAIR a, float w) { return (PAIR){ MUL(a.re, SET(w)), MUL(a.im, SET(w)) }; }

/* Elements from i on, of group p; w: the radix - 1 roots that the results but the first are turned by. */
static int64_t DFT(two)(const dft_step *s, int64_t p, int64_t i, const float *w)
{
    const int64_t x = p * s->run, far = s->groups * s->run, y = 2 * p * s->run;
    for (; i + W <= s->run; i += W) {
        const PAIR a = DFT(get)(s->x, x + i), b = DFT(get)(s->x, x + far + i);
        DFT(put)(s->y, y + i, DFT(add)(a, b));
        DFT(put)(s->y, y + s->run + i, DFT(turn)(DFT(sub)(a, b), w));
    }
    return i;
}

static int64_t DFT(three)(const dft_step *s, int64_t p, int64_t i, const float *w)
{
    const int64_t x = p * s->run, far = s->groups * s->run, y = 3 * p * s->run;
    for (; i + W <= s->run; i += W) {
        const PAIR a = DFT(get)(s->x, x + i), b = DFT(get)(s->x, x + far + i), c = DFT(get)(s->x, x + 2 * far + i);
        const PAIR sum = DFT(add)(b, c), middle = DFT(more)(a, sum, -0.5f),
                   side = DFT(scaled)(DFT(sub)(b, c), 0.866025403784438647f);
        DFT(put)(s->y, y + i, DFT(add)(a, sum));
        DFT(put)(s->y, y + s->run + i, DFT(turn)(DFT(sub_i)(middle, side), w));
        DFT(put)(s->y, y + 2 * s->run + i, DFT(turn)(DFT(add_i)(middle, side), w + 2));
    }
    return i;
}

static int64_t DFT(four)(const dft_step *s, int64_t p, int64_t i, const float *w)
{
    const int64_t x = p * s->run, far = s->groups * s->run, y = 4 * p * s->run;
    for (; i + W <= s->run; i += W) {
        const PAIR a = DFT(get)(s->x, x + i), b = DFT(get)(s->x, x + far + i), c = DFT(get)(s->x, x + 2 * far + i),
                   d = DFT(get)(s->x, x + 3 * far + i);
        const PAIR even = DFT(add)(a, c), odd = DFT(add)(b, d), left = DFT(sub)(a, c), right = DFT(sub)(b, d);
        DFT(put)(s->y, y + i, DFT(add)(even, odd));
        DFT(put)(s->y, y + s->run + i, DFT(turn)(DFT(sub_i)(left, right), w));
        DFT(put)(s->y, y + 2 * s->run + i, DFT(turn)(DFT(sub)(even, odd), w + 2));
        DFT(put)(s->y, y + 3 * s->run + i, DFT(turn)(DFT(add_i)(left, right), w + 4));
    }
    return i;
}

static int64_t DFT(five)(const dft_step *s, int64_t p, int64_t i, const float *w)
{
    const float c1 = 0.309016994374947424f, s1 = 0.951056516295153572f, c2 = -0.809016994374947424f,
                s2 = 0.587785252292473129f; /* of 2 pi / 5 and 4 pi / 5 */
    const int64_t x = p * s->run, far = s->groups * s->run, y = 5 * p * s->run;
    for (; i + W <= s->run; i += W) {
        const PAIR a = DFT(get)(s->x, x + i), b = DFT(get)(s->x, x + far + i), c = DFT(get)(s->x, x + 2 * far + i),
                   d = DFT(get)(s->x, x + 3 * far + i), e = DFT(get)(s->x, x + 4 * far + i);
        const PAIR outer = DFT(add)(b, e), inner = DFT(add)(c, d), out = DFT(sub)(b, e), in = DFT(sub)(c, d);
        const PAIR first = DFT(more)(DFT(more)(a, outer, c1), inner, c2),
                   second = DFT(more)(DFT(more)(a, outer, c2), inner, c1),
                   side = DFT(more)(DFT(scaled)(out, s1), in, s2), other = DFT(more)(DFT(scaled)(out, s2), in, -s1);
        DFT(put)(s->y, y + i, DFT(add)(a, DFT(add)(outer, inner)));
        DFT(put)(s->y, y + s->run + i, DFT(turn)(DFT(sub_i)(first, side), w));
        DFT(put)(s->y, y + 2 * s->run + i, DFT(turn)(DFT(sub_i)(second, other), w + 2));
        DFT(put)(s->y, y + 3 * s->run + i, DFT(turn)(DFT(add_i)(second, other), w + 4));
        DFT(put)(s->y, y + 4 * s->run + i, DFT(turn)(DFT(add_i)(first, side), w + 6));
    }
    return i;
}

/* Any factor, by the definition. Sums of DFT_BLOCK terms are added up, which rounds less than one long sum. */
static int64_t DFT(any)(const dft_step *s, int64_t p, int64_t i)
{
    const int64_t x = p * s->run, far = s->groups * s->run, y = s->radix * p * s->run, part = s->roots / s->radix;
    for (; i + W <= s->run; i += W) {
        for (int64_t k = 0; k < s->radix; k++) {
            PAIR sum = DFT(get)(s->x, x + i);
            for (int64_t j = 1, at = k; j < s->radix;) {
                const int64_t stop = j + DFT_BLOCK < s->radix ? j + DFT_BLOCK : s->radix;
                PAIR block = { SET(0.0f), SET(0.0f) };
                for (; j < stop; j++, at = at + k < s->radix ? at + k : at + k - s->radix) {
                    const PAIR a = DFT(turn)(DFT(get)(s->x, x + j * far + i), s->root + 2 * at * part);
                    block = DFT(add)(block, a);
                }
                sum = DFT(add)(sum, block);
            }
            DFT(put)(s->y, y + k * s->run + i, DFT(turn)(sum, s->root + 2 * p * k * s->turn));
        }
    }
    return i;
}

/* The same of one pair of elements k and half - k: the even elements' spectrum is (a + b*) / 2, the odd ones' that of
 * (a - b*) / 2i. w: root k. */
static int64_t DFT(to)(dft_lines y, dft_lines z, int64_t a, int64_t b, int64_t to, int64_t lanes, int64_t i,
                       const float *w)
{
    for (; i + W <= lanes; i += W) {
        const PAIR u = DFT(get)(z, a + i), v = DFT(get)(z, b + i);
        const PAIR even = { ADD(u.re, v.re), SUB(u.im, v.im) }, odd = { SUB(u.re, v.re), ADD(u.im, v.im) };
        DFT(put)(y, to + i, DFT(scaled)(DFT(sub_i)(even, DFT(turn)(odd, w)), 0.5f));
    }
    return i;
}

static int64_t DFT(from)(dft_lines z, dft_lines y, int64_t a, int64_t b, int64_t lanes, int64_t i, const float *w,
                         bool is_end)
{
    const float back[2] = { w[0], -w[1] };
    for (; i + W <= lanes; i += W) {
        PAIR u = DFT(get)(y, a + i), v = DFT(get)(y, b + i);
        if (is_end) u.im = v.im = SET(0.0f);
        const PAIR even = { ADD(u.re, v.re), SUB(u.im, v.im) }, odd = { SUB(u.re, v.re), ADD(u.im, v.im) };
        DFT(put)(z, a + i, DFT(scaled)(DFT(add_i)(even, DFT(turn)(odd, back)), 0.5f));
    }
    return i;
}

#undef PAIR
#undef V
#undef W
#undef GET
#undef PUT
#undef ADD
#undef SUB
#undef MUL
#undef FMA
#undef SET
#undef DFT
