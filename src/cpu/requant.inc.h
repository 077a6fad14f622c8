/* SPDX-License-Identifier: Apache-2.0 */
/* requant.inc.h - the loop of requant.h, included once by each instruction set's file. */
#include "cpu/requant.h"

enum { RQ_TRIP = 1, RQ_ADD = 2, RQ_F32 = 4, RQ_FACTOR = 8, RQ_KINDS = 16 };

/* Division by a constant: 1 / scale is inverse + rest to 48 bits. */
typedef struct rq_divisor {
    vec scale, inverse, rest;
} rq_divisor;

typedef struct rq_consts {
    rq_divisor trip, end;
    vec factor, trip_low, trip_high, trip_back, add_scale, low, high;
    veci zero, add_zero;
} rq_consts;

static inline rq_divisor rq_divisor_of(const round_trip *trip)
{
    const vec scale = v_set(trip->scale), inverse = v_set(trip->inverse);
    const vec rest = v_mul(v_fma(v_sub(v_zero(), scale), inverse, v_set(1)), inverse);
    return (rq_divisor){ scale, inverse, rest };
}

INLINE vec rq_divide(vec x, const rq_divisor *by)
{
    return v_div_near(x, by->scale, by->inverse, by->rest);
}

/* The value that is stored or quantised. One that is quantised has its upper bound only; the lower one follows. */
INLINE vec rq_value(const rq_consts *k, veci sum, vec scale, vec bias, veci add, veci flip, const int kind)
{
    vec t = vi_to_f32(sum);
    if (kind & RQ_FACTOR) t = v_mul(t, k->factor);
    t = v_fma(t, scale, bias);
    if (kind & RQ_TRIP) {
        t = rq_divide(v_between(t, k->trip_low, k->trip_high), &k->trip);
        /* A sum with the residual has no negative zero, and codes have no zero with a sign. */
        const bool has_signs = (kind & RQ_F32) && !(kind & RQ_ADD);
        t = has_signs ? v_round_trip(t, k->trip_back) : v_mul(v_nearest(t), k->trip_back);
    }
    if (kind & RQ_ADD) {
        const veci code = vi_sub(vi_xor(add, flip), k->add_zero);
        t = v_add(t, v_mul(vi_to_f32(code), k->add_scale));
    }
    return kind & RQ_F32 ? t : v_min(k->high, t);
}

INLINE veci rq_code(const rq_consts *k, vec t)
{
    return vi_add(v_to_int(rq_divide(v_max(t, k->low), &k->end)), k->zero);
}

/* In f32 a NaN stays one. */
static inline vec rq_clipped(const rq_consts *k, vec t)
{
    return v_min(k->high, v_max(k->low, t));
}

/* One vector of a row from column i on. */
INLINE vec rq_vector(const requant_block *b, const rq_consts *k, const int32_t *sum, const uint8_t *add, veci flip,
                     int64_t i, const bool scale_each, const bool bias_each, const int kind)
{
    const veci s = b->less ? vi_sub(vi_load(sum + i), vi_load(b->less + i)) : vi_load(sum + i);
    return rq_value(k, s, scale_each ? v_load(b->scale + i) : v_set(*b->scale),
                    bias_each ? v_load(b->bias + i) : v_set(*b->bias), kind & RQ_ADD ? vi_load_u8(add + i) : flip, flip,
                    kind);
}

#ifdef SIMD_PACK_CODES
typedef struct rq_pack {
    veci zero, low, flip; /* of vi_store_codes() */
} rq_pack;

/* What one vector of columns has. */
typedef struct rq_column {
    vec scale, bias;
    veci less;
} rq_column;

/* n < L bytes. */
INLINE void rq_copy_few(uint8_t *to, const uint8_t *from, int n)
{
    int at = 0;
    UNROLL for (int size = L / 2; size > 0; size /= 2)
    {
        if (!(n & size)) continue;
        memcpy(to + at, from + at, (size_t)size);
        at += size;
    }
}

INLINE veci rq_load_n(const int32_t *p, const int n)
{
    return n == L ? vi_load(p) : v_bits(v_load_n((const float *)(const void *)p, n));
}

INLINE rq_column rq_column_of(const requant_block *b, int64_t i, const int n)
{
    return (rq_column){ .scale = b->scale_each ? v_load_n(b->scale + i, n) : v_set(*b->scale),
                        .bias = b->bias_each ? v_load_n(b->bias + i, n) : v_set(*b->bias),
                        .less = b->less ? rq_load_n(b->less + i, n) : vi_set(0) };
}

/* Codes of n columns, before their zero point is added. */
INLINE veci rq_quotient(const rq_consts *k, const rq_column *c, const int32_t *sum, const uint8_t *add, veci flip,
                        const int n, const int kind)
{
    const veci code = !(kind & RQ_ADD) ? flip : n == L ? vi_load_u8(add) : vi_load_u8_n(add, n);
    const vec t = rq_value(k, vi_sub(rq_load_n(sum, n), c->less), c->scale, c->bias, code, flip, kind);
    return v_to_int(rq_divide(t, &k->end));
}

/* Four rows of n <= L columns from column i on. */
INLINE void rq_codes_4(const requant_block *b, const rq_consts *k, const rq_pack *pack, veci flip, int64_t i,
                       const int n, const int kind)
{
    const rq_column column = rq_column_of(b, i, n);
    for (int64_t r = 0; r < b->rows; r += 4) {
        veci q[4];
        uint8_t code[4 * L];
        UNROLL for (int j = 0; j < 4; j++)
        {
            const int64_t row = r + j < b->rows ? r + j : b->rows - 1; /* the last one again */
            q[j] = rq_quotient(k, &column, b->sum + row * b->ld + i,
                               kind & RQ_ADD ? b->add + row * b->ld_add + i : NULL, flip, n, kind);
        }
        vi_store_codes(code, q, pack->zero, pack->low, pack->flip);
        uint8_t *to = (uint8_t *)b->y + r * b->ldy + i;
        UNROLL for (int j = 0; j < 4; j++, to += b->ldy)
        {
            if (r + j >= b->rows) break;
            if (n == L) memcpy(to, code + j * L, L);
            else rq_copy_few(to, code + j * L, n);
        }
    }
}

/* Four vectors of a row, then four rows of a vector. A result is written after the residual at its place is read. */
INLINE void rq_codes(const requant_block *b, const rq_consts *k, veci flip, const int kind)
{
    const rq_pack pack = { vi_set((b->zero + b->flip) * 0x10001), vi_set((int32_t)(b->low_code * 0x01010101u)),
                           vi_set((int32_t)(b->flip * 0x01010101u)) };
    int64_t i = 0;
    for (; i + 4 * L <= b->cols; i += 4 * L) {
        rq_column column[4];
        UNROLL for (int j = 0; j < 4; j++) column[j] = rq_column_of(b, i + j * L, L);
        for (int64_t r = 0; r < b->rows; r++) {
            const int32_t *sum = b->sum + r * b->ld + i;
            const uint8_t *add = kind & RQ_ADD ? b->add + r * b->ld_add + i : NULL;
            veci q[4];
            UNROLL for (int j = 0; j < 4; j++)
                q[j] = rq_quotient(k, &column[j], sum + j * L, kind & RQ_ADD ? add + j * L : NULL, flip, L, kind);
            vi_store_codes((uint8_t *)b->y + r * b->ldy + i, q, pack.zero, pack.low, pack.flip);
        }
    }
    for (; i + L <= b->cols; i += L) rq_codes_4(b, k, &pack, flip, i, L, kind);
    if (i < b->cols) rq_codes_4(b, k, &pack, flip, i, (int)(b->cols - i), kind);
}
#endif

INLINE void rq_rows(const requant_block *block, const int kind)
{
    /* Stores of bytes might change `*block`, but not a copy: its fields stay in registers. */
    const requant_block copy = *block, *b = &copy;
    const rq_consts k = {
        .trip = rq_divisor_of(&b->trip),
        .end = rq_divisor_of(&b->end),
        .factor = v_set(b->factor),
        .trip_low = v_set(b->trip.low),
        .trip_high = v_set(b->trip.high),
        .trip_back = v_set(b->trip.back),
        .add_scale = v_set(b->add_scale),
        .low = v_set(b->end.low),
        .high = v_set(b->end.high),
        .zero = vi_set(b->zero),
        .add_zero = vi_set(b->add_zero),
    };
    const veci flip = vi_set(b->add_flip);
    const int64_t cols = b->cols;
    const bool has_end = cols > L && cols % L;
#ifdef SIMD_PACK_CODES
    if (!(kind & RQ_F32)) {
        rq_codes(b, &k, flip, kind);
        return;
    }
#endif
    for (int64_t r = 0; r < b->rows; r++) {
        const int32_t *sum = b->sum + r * b->ld;
        const uint8_t *add = kind & RQ_ADD ? b->add + r * b->ld_add : NULL;
        float *y = (float *)b->y + r * b->ldy;
        uint8_t *code = (uint8_t *)b->y + r * b->ldy;
        int64_t i = 0;
        /* The last whole vector comes first, for results may overwrite the residual. Some are written twice. */
        const vec end =
            has_end ? rq_vector(b, &k, sum, add, flip, cols - L, b->scale_each, b->bias_each, kind) : v_zero();
        for (; i + L <= cols; i += L) {
            const vec t = rq_vector(b, &k, sum, add, flip, i, b->scale_each, b->bias_each, kind);
            if (kind & RQ_F32) v_store(y + i, rq_clipped(&k, t));
            else vi_store_8(code + i, rq_code(&k, t));
        }
        if (i == cols) continue;
        if (has_end) {
            if (kind & RQ_F32) v_store(y + cols - L, rq_clipped(&k, end));
            else vi_store_8(code + cols - L, rq_code(&k, end));
            continue;
        }
        const size_t left = (size_t)(cols - i);
        int32_t last[L] = { 0 }, off[L] = { 0 };
        float scale[L] = { 0 }, bias[L] = { 0 };
        uint8_t added[L] = { 0 };
        memcpy(last, sum + i, left * sizeof *last);
        if (b->less) memcpy(off, b->less + i, left * sizeof *off);
        if (b->scale_each) memcpy(scale, b->scale + i, left * sizeof *scale);
        if (b->bias_each) memcpy(bias, b->bias + i, left * sizeof *bias);
        if (kind & RQ_ADD) memcpy(added, add + i, left);
        const vec t = rq_value(&k, vi_sub(vi_load(last), vi_load(off)),
                               b->scale_each ? v_load(scale) : v_set(*b->scale),
                               b->bias_each ? v_load(bias) : v_set(*b->bias),
                               kind & RQ_ADD ? vi_load_u8(added) : flip, flip, kind);
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
RQ(8)
RQ(9)
RQ(10)
RQ(11)
RQ(12)
RQ(13)
RQ(14)
RQ(15)

static void requant_rows(const requant_block *b)
{
    static requant_fn *const kinds[RQ_KINDS] = { rq_rows_0,  rq_rows_1,  rq_rows_2,  rq_rows_3,
                                                 rq_rows_4,  rq_rows_5,  rq_rows_6,  rq_rows_7,
                                                 rq_rows_8,  rq_rows_9,  rq_rows_10, rq_rows_11,
                                                 rq_rows_12, rq_rows_13, rq_rows_14, rq_rows_15 };
    kinds[(b->has_trip ? RQ_TRIP : 0) | (b->add ? RQ_ADD : 0) | (b->to_f32 ? RQ_F32 : 0) |
          (b->factor != 1 ? RQ_FACTOR : 0)](b);
}
