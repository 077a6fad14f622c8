/* SPDX-License-Identifier: Apache-2.0 */
/* requant.inc.h - the loop of requant.h, included once by each instruction set's file. */
#include "cpu/requant.h"

enum { RQ_TRIP = 1, RQ_ADD = 2, RQ_F32 = 4, RQ_KINDS = 8 };

typedef struct rq_consts {
    vec factor, trip_scale, trip_inverse, trip_low, trip_high, trip_back, add_scale, scale, inverse, low, high;
    veci zero, add_zero;
} rq_consts;

/* Right wherever the quotient is a number of few bits, so that ties fall as they should. */
static inline vec rq_divide(vec x, vec scale, vec inverse)
{
    const vec q = v_mul(x, inverse);
    return v_fma(v_fma(q, v_sub(v_zero(), scale), x), inverse, q);
}

INLINE vec rq_value(const rq_consts *k, veci sum, vec scale, vec bias, veci add,
                                                          const int kind)
{
    vec t = v_fma(v_mul(vi_to_f32(sum), k->factor), scale, bias);
    if (kind & RQ_TRIP)
        t = v_round_trip(rq_divide(v_between(t, k->trip_low, k->trip_high), k->trip_scale, k->trip_inverse),
                         k->trip_back);
    if (kind & RQ_ADD) t = v_add(t, v_mul(vi_to_f32(vi_sub(add, k->add_zero)), k->add_scale));
    return kind & RQ_F32 ? t : v_between(t, k->low, k->high);
}

INLINE veci rq_code(const rq_consts *k, vec t)
{
    return vi_add(v_to_int(rq_divide(t, k->scale, k->inverse)), k->zero);
}

/* In f32 a NaN stays one. */
static inline vec rq_clipped(const rq_consts *k, vec t)
{
    return v_min(k->high, v_max(k->low, t));
}

INLINE void rq_rows(const requant_block *b, const int kind)
{
    const rq_consts k = {
        .factor = v_set(b->factor),
        .trip_scale = v_set(b->trip.scale),
        .trip_inverse = v_set(b->trip.inverse),
        .trip_low = v_set(b->trip.low),
        .trip_high = v_set(b->trip.high),
        .trip_back = v_set(b->trip.back),
        .add_scale = v_set(b->add_scale),
        .scale = v_set(b->end.scale),
        .inverse = v_set(b->end.inverse),
        .low = v_set(b->end.low),
        .high = v_set(b->end.high),
        .zero = vi_set(b->zero),
        .add_zero = vi_set(b->add_zero),
    };
    const veci flip = vi_set(b->add_flip), none = vi_set(0);
    const vec one_scale = v_set(*b->scale), one_bias = v_set(*b->bias);
    const bool scale_each = b->scale_each, bias_each = b->bias_each;
    const int32_t *less = b->less;
    const int64_t cols = b->cols;
    for (int64_t r = 0; r < b->rows; r++) {
        const int32_t *sum = b->sum + r * b->ld;
        const uint8_t *add = b->add + (kind & RQ_ADD ? r * b->ld_add : 0);
        float *y = (float *)b->y + r * b->ldy;
        uint8_t *code = (uint8_t *)b->y + r * b->ldy;
        int64_t i = 0;
        for (; i + L <= cols; i += L) {
            const veci s = vi_sub(vi_load(sum + i), less ? vi_load(less + i) : none);
            const vec t = rq_value(&k, s, scale_each ? v_load(b->scale + i) : one_scale,
                                   bias_each ? v_load(b->bias + i) : one_bias,
                                   kind & RQ_ADD ? vi_xor(vi_load_u8(add + i), flip) : none, kind);
            if (kind & RQ_F32) v_store(y + i, rq_clipped(&k, t));
            else vi_store_8(code + i, rq_code(&k, t));
        }
        if (i == cols) continue;
        const size_t left = (size_t)(cols - i);
        int32_t last[L] = { 0 }, off[L] = { 0 };
        float scale[L] = { 0 }, bias[L] = { 0 };
        uint8_t added[L] = { 0 };
        memcpy(last, sum + i, left * sizeof *last);
        if (less) memcpy(off, less + i, left * sizeof *off);
        if (scale_each) memcpy(scale, b->scale + i, left * sizeof *scale);
        if (bias_each) memcpy(bias, b->bias + i, left * sizeof *bias);
        if (kind & RQ_ADD) memcpy(added, add + i, left);
        const vec t = rq_value(&k, vi_sub(vi_load(last), vi_load(off)), scale_each ? v_load(scale) : one_scale,
                               bias_each ? v_load(bias) : one_bias,
                               kind & RQ_ADD ? vi_xor(vi_load_u8(added), flip) : none, kind);
        if (kind & RQ_F32) {
            v_store_n(y + i, rq_clipped(&k, t), (int)left);
        } else {
            uint8_t out[L];
            vi_store_8(out, rq_code(&k, t));
            memcpy(code + i, out, left);
        }
    }
}

#define RQ(kind)                                                                                                       \
    static void rq_rows_##kind(const requant_block *b)                                                                 \
    {                                                                                                                  \
        rq_rows(b, kind);                                                                                              \
    }
RQ(0)
RQ(1)
RQ(2)
RQ(3)
RQ(4)
RQ(5)
RQ(6)
RQ(7)

static void requant_rows(const requant_block *b)
{
    static requant_fn *const kinds[RQ_KINDS] = { rq_rows_0, rq_rows_1, rq_rows_2, rq_rows_3,
                                                 rq_rows_4, rq_rows_5, rq_rows_6, rq_rows_7 };
    kinds[(b->has_trip ? RQ_TRIP : 0) | (b->add ? RQ_ADD : 0) | (b->to_f32 ? RQ_F32 : 0)](b);
}
