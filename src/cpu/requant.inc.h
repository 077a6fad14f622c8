/* SPDX-License-Identifier: Apache-2.0 */
/* requant.inc.h - the loop of requant.h, included once by each instruction set's file. */
#include "cpu/requant.h"

/* ADD_BASE + code has the bits of its f32 with the code in the last ones. */
enum {
    RQ_TRIP = 1,
    RQ_ADD = 2,
    RQ_F32 = 4,
    RQ_FACTOR = 8,
    RQ_KINDS = 16,
    RQ_EACH = 16,
    RQ_GELU = 32,
    RQ_GELU_TANH = 64,
    RQ_SILU = 128,
    RQ_ADD_BITS = 0x4B000000
};
#define RQ_ADD_BASE 8388608.0f

/* Division by a constant: 1 / scale is inverse + rest to 48 bits. */
typedef struct rq_divisor {
    vec scale, inverse, rest;
} rq_divisor;

typedef struct rq_consts {
    rq_divisor trip, end;
    vec factor, trip_low, trip_high, trip_back, add_scale, add_zero, low, high;
    veci zero, add_bits;
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

/* The value that is stored or quantised. One that is quantised has its upper bound only, and none behind a trip, which
 * bounds it well enough; the lower one follows. */
INLINE vec rq_value(const rq_consts *k, veci sum, vec scale, vec bias, veci add, const int kind)
{
    vec t = vi_to_f32(sum);
    if (kind & RQ_FACTOR) t = v_mul(t, k->factor);
    t = v_fma(t, scale, bias);
    if (kind & RQ_GELU) t = v_gelu(t);
    if (kind & RQ_GELU_TANH) t = v_gelu_tanh(t);
    if (kind & RQ_SILU) t = v_silu(t);
    if (kind & RQ_TRIP) {
        t = rq_divide(v_between(t, k->trip_low, k->trip_high), &k->trip);
        /* A sum with the residual has no negative zero, and codes have no zero with a sign. */
        const bool has_signs = (kind & RQ_F32) && !(kind & RQ_ADD);
        t = has_signs ? v_round_trip(t, k->trip_back) : v_mul(v_nearest(t), k->trip_back);
    }
    if (kind & RQ_ADD) {
        const vec code = v_sub(v_of_bits(vi_xor(add, k->add_bits)), k->add_zero);
        t = v_add(t, v_mul(code, k->add_scale));
    }
    return kind & (RQ_F32 | RQ_TRIP | RQ_EACH) ? t : v_min(k->high, t);
}

INLINE veci rq_code(const rq_consts *k, vec t)
{
    return vi_add(v_to_int(rq_divide(v_between(t, k->low, k->high), &k->end)), k->zero);
}

/* What a column is quantised by, where it has numbers of its own. The scale may be any number. */
typedef struct rq_end {
    vec scale;
    veci zero;
} rq_end;

/* Zero points with a sign are read without one, and are 128 more then. */
INLINE rq_end rq_end_of(const requant_block *b, vec scale, veci zero)
{
    const veci flip = vi_set(b->flip);
    return (rq_end){ .scale = scale, .zero = b->end_zero ? vi_sub(vi_xor(zero, flip), flip) : vi_set(b->zero) };
}

/* In f32 a NaN stays one. */
static inline vec rq_clipped(const rq_consts *k, vec t)
{
    return v_min(k->high, v_max(k->low, t));
}

/* One vector of a row from column i on. */
INLINE vec rq_vector(const requant_block *b, const rq_consts *k, const int32_t *sum, const uint8_t *add, int64_t i,
                     const bool scale_each, const bool bias_each, const int kind)
{
    const veci s = b->less ? vi_sub(vi_load(sum + i), vi_load(b->less + i)) : vi_load(sum + i);
    return rq_value(k, s, scale_each ? v_load(b->scale + i) : v_set(*b->scale),
                    bias_each ? v_load(b->bias + i) : v_set(*b->bias),
                    kind & RQ_ADD ? vi_load_u8(add + i) : vi_set(0), kind);
}

#ifdef SIMD_PACK_CODES
typedef struct rq_pack {
    veci zero, low, high, flip; /* of vi_store_codes() */
} rq_pack;

/* What one vector of columns has. */
typedef struct rq_column {
    vec scale, bias;
    veci less;
    rq_end end;
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

INLINE veci rq_bytes_n(const uint8_t *p, const int n)
{
    return n == L ? vi_load_u8(p) : vi_load_u8_n(p, n);
}

INLINE rq_column rq_column_of(const requant_block *b, int64_t i, const int n, const int kind)
{
    rq_column c = { .scale = b->scale_each ? v_load_n(b->scale + i, n) : v_set(*b->scale),
                    .bias = b->bias_each ? v_load_n(b->bias + i, n) : v_set(*b->bias),
                    .less = b->less ? rq_load_n(b->less + i, n) : vi_set(0) };
    if (kind & RQ_EACH)
        c.end = rq_end_of(b, v_load_n(b->end_scale + i, n), b->end_zero ? rq_bytes_n(b->end_zero + i, n) : vi_set(0));
    return c;
}

/* Codes of n columns, before the zero point that all columns have is added. */
INLINE veci rq_quotient(const rq_consts *k, const rq_column *c, const int32_t *sum, const uint8_t *add, const int n,
                        const int kind)
{
    const veci code = kind & RQ_ADD ? rq_bytes_n(add, n) : vi_set(0);
    const vec t = rq_value(k, vi_sub(rq_load_n(sum, n), c->less), c->scale, c->bias, code, kind);
    if (!(kind & RQ_EACH)) return v_to_int(rq_divide(t, &k->end));
    const vec code_near = v_between(v_div(t, c->end.scale), v_set(-0x1p30f), v_set(0x1p30f)); /* a NaN is the least */
    return vi_add(v_to_int(code_near), c->end.zero);
}

/* Four rows of n <= L columns from column i on. */
INLINE void rq_codes_4(const requant_block *b, const rq_consts *k, const rq_pack *pack, int64_t i, const int n,
                       const int kind)
{
    const rq_column column = rq_column_of(b, i, n, kind);
    for (int64_t r = 0; r < b->rows; r += 4) {
        veci q[4];
        uint8_t code[4 * L];
        UNROLL for (int j = 0; j < 4; j++)
        {
            const int64_t row = r + j < b->rows ? r + j : b->rows - 1; /* the last one again */
            q[j] = rq_quotient(k, &column, b->sum + row * b->ld + i,
                               kind & RQ_ADD ? b->add + row * b->ld_add + i : NULL, n, kind);
        }
        vi_store_codes(code, q, pack->zero, pack->low, pack->high, pack->flip);
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
INLINE void rq_codes(const requant_block *b, const rq_consts *k, const int kind)
{
    const int32_t zero = (kind & RQ_EACH ? 0 : b->zero) + b->flip;
    const rq_pack pack = { vi_set(zero * 0x10001), vi_set((int32_t)(b->low_code * 0x01010101u)),
                           vi_set((int32_t)(b->high_code * 0x01010101u)), vi_set((int32_t)(b->flip * 0x01010101u)) };
    int64_t i = 0;
    for (; i + 4 * L <= b->cols; i += 4 * L) {
        rq_column column[4];
        UNROLL for (int j = 0; j < 4; j++) column[j] = rq_column_of(b, i + j * L, L, kind);
        for (int64_t r = 0; r < b->rows; r++) {
            const int32_t *sum = b->sum + r * b->ld + i;
            const uint8_t *add = kind & RQ_ADD ? b->add + r * b->ld_add + i : NULL;
            veci q[4];
            UNROLL for (int j = 0; j < 4; j++)
                q[j] = rq_quotient(k, &column[j], sum + j * L, kind & RQ_ADD ? add + j * L : NULL, L, kind);
            vi_store_codes((uint8_t *)b->y + r * b->ldy + i, q, pack.zero, pack.low, pack.high, pack.flip);
        }
    }
    for (; i + L <= b->cols; i += L) rq_codes_4(b, k, &pack, i, L, kind);
    if (i < b->cols) rq_codes_4(b, k, &pack, i, (int)(b->cols - i), kind);
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
        .add_zero = v_set(RQ_ADD_BASE + (float)b->add_zero),
        .zero = vi_set(b->zero),
        .add_bits = vi_set(RQ_ADD_BITS | b->add_flip),
    };
    const int64_t cols = b->cols;
    const bool has_end = cols > L && cols % L;
#ifdef SIMD_PACK_CODES
    if (!(kind & RQ_F32)) {
        rq_codes(b, &k, kind);
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
            has_end ? rq_vector(b, &k, sum, add, cols - L, b->scale_each, b->bias_each, kind) : v_zero();
        for (; i + L <= cols; i += L) {
            const vec t = rq_vector(b, &k, sum, add, i, b->scale_each, b->bias_each, kind);
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
                               kind & RQ_ADD ? vi_load_u8(added) : vi_set(0), kind);
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

RQ(RQ_GELU)
RQ(RQ_GELU_TANH)
RQ(RQ_SILU)

#ifdef SIMD_PACK_CODES
RQ(RQ_EACH)
#else
INLINE vec rq_floats(const float *p, int64_t n)
{
    float part[L] = { 0 };
    memcpy(part, p, (size_t)n * sizeof *p);
    return v_load(part);
}

INLINE veci rq_words(const int32_t *p, int64_t n)
{
    int32_t part[L] = { 0 };
    memcpy(part, p, (size_t)n * sizeof *p);
    return vi_load(part);
}

INLINE veci rq_bytes(const uint8_t *p, int64_t n)
{
    uint8_t part[L] = { 0 };
    memcpy(part, p, (size_t)n);
    return vi_load_u8(part);
}

static void rq_rows_RQ_EACH(const requant_block *b)
{
    const rq_consts k = { 0 };
    for (int64_t i = 0; i < b->cols; i += L) {
        const int64_t n = b->cols - i < L ? b->cols - i : L;
        const vec scale = b->scale_each ? rq_floats(b->scale + i, n) : v_set(*b->scale);
        const vec bias = b->bias_each ? rq_floats(b->bias + i, n) : v_set(*b->bias);
        const veci less = b->less ? rq_words(b->less + i, n) : vi_set(0);
        const rq_end end =
            rq_end_of(b, rq_floats(b->end_scale + i, n), b->end_zero ? rq_bytes(b->end_zero + i, n) : vi_set(0));
        const vec low = vi_to_f32(vi_sub(vi_set(b->flip ? -128 : 0), end.zero)), high = v_add(low, v_set(255));
        for (int64_t r = 0; r < b->rows; r++) {
            const veci sum = vi_sub(rq_words(b->sum + r * b->ld + i, n), less);
            const vec t = rq_value(&k, sum, scale, bias, sum, RQ_EACH);
            uint8_t code[L];
            vi_store_8(code, vi_add(v_to_int(v_between(v_div(t, end.scale), low, high)), end.zero));
            memcpy((uint8_t *)b->y + r * b->ldy + i, code, (size_t)n);
        }
    }
}
#endif

static void requant_rows(const requant_block *b)
{
    static requant_fn *const kinds[RQ_KINDS] = { rq_rows_0,  rq_rows_1,  rq_rows_2,  rq_rows_3,
                                                 rq_rows_4,  rq_rows_5,  rq_rows_6,  rq_rows_7,
                                                 rq_rows_8,  rq_rows_9,  rq_rows_10, rq_rows_11,
                                                 rq_rows_12, rq_rows_13, rq_rows_14, rq_rows_15 };
    if (b->end_scale) {
        rq_rows_RQ_EACH(b);
        return;
    }
    if (b->act) {
        (b->act == REQUANT_GELU        ? rq_rows_RQ_GELU
         : b->act == REQUANT_GELU_TANH ? rq_rows_RQ_GELU_TANH
                                       : rq_rows_RQ_SILU)(b);
        return;
    }
    kinds[(b->has_trip ? RQ_TRIP : 0) | (b->add ? RQ_ADD : 0) | (b->to_f32 ? RQ_F32 : 0) |
          (b->factor != 1 ? RQ_FACTOR : 0)](b);
}
