/* SPDX-License-Identifier: Apache-2.0 */
/* conv_planes.inc.h - convolutions of row-major planes (conv_planes.h), included once by each instruction set's file.
 *
 * A tile is some results' channels by some vectors along the width. Its sums stay in registers. */

/* PLANES_OUTS: channels of a tile where there are many. PLANES_VECTORS: vectors of a tile of one channel. */
enum { PLANES_OUTS = VEC_REGISTERS >= 32 ? 2 * PLANES_BLOCK : PLANES_BLOCK, PLANES_VECTORS = 8 };

/* `count` vectors of `outs` channels from `o` on. The last vector has `last` lanes. */
INLINE void planes_tile(const conv_planes *p, int64_t o, int64_t at, int outs, int count, int last)
{
    vec a[PLANES_OUTS * 3 > PLANES_VECTORS ? PLANES_OUTS * 3 : PLANES_VECTORS], in[PLANES_VECTORS];
    const int each = outs < PLANES_BLOCK ? outs : PLANES_BLOCK;
    const float *w = p->w + o * p->taps * p->channels, *next = w + PLANES_BLOCK * p->taps * p->channels;
    UNROLL for (int k = 0; k < outs; k++)
    {
        const vec bias = p->bias ? v_set(p->bias[o + k]) : v_zero();
        UNROLL for (int j = 0; j < count; j++) a[k * count + j] = bias;
    }
    for (int64_t t = 0; t < p->taps; t++) {
        const float *x = p->x + at + p->at[t];
        for (int64_t c = 0; c < p->channels; c++, x += p->x_c, w += each, next += each) {
            UNROLL for (int j = 0; j < count; j++) in[j] = v_load(x + j * L);
            UNROLL for (int k = 0; k < outs; k++)
            {
                const vec weight = v_set(k < each ? w[k] : next[k - each]);
                UNROLL for (int j = 0; j < count; j++) a[k * count + j] = v_fma_into(weight, in[j], a[k * count + j]);
            }
        }
    }
    UNROLL for (int k = 0; k < outs; k++)
    {
        float *y = p->y + (o + k) * p->y_c + at;
        UNROLL for (int j = 0; j < count; j++)
        {
            vec one = a[k * count + j];
            if (p->has_clip) one = v_min(v_set(p->hi), v_max(v_set(p->lo), one));
            if (j + 1 < count || last == L) v_store(y + j * L, one);
            else v_store_n(y + j * L, one, last);
        }
    }
}

/* `outs` channels from `o` on, in tiles of `most` vectors. */
INLINE void planes_outs(const conv_planes *p, int64_t o, int outs, int most)
{
    int64_t i = 0;
    for (; i + most * L <= p->n; i += most * L) planes_tile(p, o, i, outs, most, L);
    const int left = (int)(p->n - i), count = (left + L - 1) / L, last = left - (count - 1) * L;
    switch (count) {
    case 0: break;
    case 1: planes_tile(p, o, i, outs, 1, last); break;
    case 2: planes_tile(p, o, i, outs, 2, last); break;
    case 3: planes_tile(p, o, i, outs, most < 3 ? most : 3, last); break;
    case 4: planes_tile(p, o, i, outs, most < 4 ? most : 4, last); break;
    case 5: planes_tile(p, o, i, outs, most < 5 ? most : 5, last); break;
    case 6: planes_tile(p, o, i, outs, most < 6 ? most : 6, last); break;
    case 7: planes_tile(p, o, i, outs, most < 7 ? most : 7, last); break;
    default: planes_tile(p, o, i, outs, most < 8 ? most : 8, last); break;
    }
}

static void conv_planes_run(const conv_planes *p)
{
    int64_t o = 0;
    for (; o + PLANES_OUTS <= p->outs; o += PLANES_OUTS) planes_outs(p, o, PLANES_OUTS, 3);
    for (; o + PLANES_BLOCK <= p->outs; o += PLANES_BLOCK) planes_outs(p, o, PLANES_BLOCK, 3);
    switch (p->outs - o) {
    case 3: planes_outs(p, o, 3, 3); break;
    case 2: planes_outs(p, o, 2, 4); break;
    case 1: planes_outs(p, o, 1, PLANES_VECTORS); break;
    default: break;
    }
}
