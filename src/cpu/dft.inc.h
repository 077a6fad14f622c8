/* SPDX-License-Identifier: Apache-2.0 */
/* dft.inc.h - the text of the Fourier steps (dft.h), included once by each instruction set's file. */
enum { DFT_BLOCK = 64 };

#define V vec
#define W VEC_LANES
#define GET(p) v_load(p)
#define PUT(p, v) v_store(p, v)
#define ADD(a, b) v_add(a, b)
#define SUB(a, b) v_sub(a, b)
#define MUL(a, b) v_mul(a, b)
#define FMA(a, b, c) v_fma(a, b, c)
#define SET(x) v_set(x)
#define DFT(name) dft_wide_##name
#include "cpu/dft_lanes.inc.h"

#define V float
#define W 1
#define GET(p) (*(p))
#define PUT(p, v) (*(p) = (v))
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define FMA(a, b, c) ((a) * (b) + (c))
#define SET(x) (x)
#define DFT(name) dft_one_##name
#include "cpu/dft_lanes.inc.h"

static void dft_step_run(const dft_step *s)
{
    float w[8];
    for (int64_t p = 0; p < s->groups; p++) {
        for (int64_t k = 1; k < s->radix && s->radix <= 5; k++)
            memcpy(w + 2 * (k - 1), s->root + 2 * p * k * s->turn, 2 * sizeof *w);
        if (s->radix == 4) dft_one_four(s, p, dft_wide_four(s, p, 0, w), w);
        else if (s->radix == 2) dft_one_two(s, p, dft_wide_two(s, p, 0, w), w);
        else if (s->radix == 3) dft_one_three(s, p, dft_wide_three(s, p, 0, w), w);
        else if (s->radix == 5) dft_one_five(s, p, dft_wide_five(s, p, 0, w), w);
        else dft_one_any(s, p, dft_wide_any(s, p, 0));
    }
}

static void dft_to_real(dft_lines y, dft_lines z, int64_t half, int64_t lanes, const float *root)
{
    for (int64_t k = 0; k <= half; k++) {
        const int64_t a = k % half * lanes, b = (half - k) % half * lanes, to = k * lanes;
        dft_one_to(y, z, a, b, to, lanes, dft_wide_to(y, z, a, b, to, lanes, 0, root + 2 * k), root + 2 * k);
    }
}

static void dft_from_real(dft_lines z, dft_lines y, int64_t half, int64_t lanes, const float *root)
{
    for (int64_t k = 0; k < half; k++) {
        const int64_t a = k * lanes, b = (half - k) * lanes;
        const float *w = root + 2 * k;
        dft_one_from(z, y, a, b, lanes, dft_wide_from(z, y, a, b, lanes, 0, w, k == 0), w, k == 0);
    }
}

static const dft_set dft_loops = { .step = dft_step_run, .to_real = dft_to_real, .from_real = dft_from_real };
