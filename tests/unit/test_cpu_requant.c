/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_requant.c - the ends of products of 8-bit integers at every level against plain arithmetic: all forms, odd
 * sizes, results in place of the residual, no byte read or written beyond a row, and numbers on and beside the ties of
 * rounding, for scales of any mantissa. */
#include "../cpu_numeric.h"
#include "cpu/level.h"
#include "cpu/requant.h"

enum { ROWS = 19, COLS = 200, ROOM = ROWS * (COLS + 40) };

static double nearest(double x)
{
    return nearbyint(x);
}

/* As the program says: each operation in f32, quantising by a true quotient. */
static double expected(isa_level level, const requant_block *b, int64_t r, int64_t c, const uint8_t *add)
{
    const int32_t sum = b->sum[r * b->ld + c] - (b->less ? b->less[c] : 0);
    float t = (float)sum;
    if (b->factor != 1) t *= b->factor;
    const float scale = b->scale[b->scale_each ? c : 0], bias = b->bias[b->bias_each ? c : 0];
    t = level == ISA_PLAIN ? t * scale + bias : fmaf(t, scale, bias);
    if (b->end_scale) {
        const int32_t least = b->flip ? -128 : 0;
        const int32_t zero = !b->end_zero ? b->zero : b->flip ? (int8_t)b->end_zero[c] : b->end_zero[c];
        const double code = nearest((double)(t / b->end_scale[c])) + zero;
        return fmin(least + 255, fmax(least, code));
    }
    if (b->act == REQUANT_GELU) t = (float)((double)t * (1 + erf((double)t * 0.70710678118654752)) / 2);
    if (b->act == REQUANT_GELU_TANH)
        t = (float)((double)t * (1 + tanh(0.79788456080286536 * ((double)t + 0.044715 * pow((double)t, 3)))) / 2);
    if (b->act == REQUANT_SILU) t = (float)((double)t / (1 + exp(-(double)t)));
    if (b->has_trip) {
        t = fminf(b->trip.high, fmaxf(t, b->trip.low));
        t = (float)nearest((double)(t / b->trip.scale)) * b->trip.back;
    }
    if (add) {
        const int32_t code = (add[r * b->ld_add + c] ^ b->add_flip) - b->add_zero;
        const float step = (float)code * b->add_scale; /* rounded by itself */
        t += step;
    }
    t = fminf(b->end.high, fmaxf(b->end.low, t));
    if (b->to_f32) return (double)t;
    return nearest((double)(t / b->end.scale)) + b->zero;
}

static round_trip trip_of(float scale, int32_t zero, bool is_signed)
{
    const int32_t least = is_signed ? -128 : 0, most = is_signed ? 127 : 255;
    return (round_trip){ .scale = scale,
                         .inverse = 1 / scale,
                         .back = scale,
                         .low = (float)(least - zero) * scale,
                         .high = (float)(most - zero) * scale };
}

/* A scale with any mantissa that requant_bind() accepts; the ends of the range of mantissas are frequent. */
static float any_scale(numbers *n)
{
    static const float ends[] = { 1, 1 + 0x1p-23f, 1 + 0x1p-22f, 2 - 0x1p-22f, 2 - 0x1p-21f, 1.5f };
    const float mantissa = numbers_in(n, 0, 3) ? 1 + 0x1p-23f * (float)numbers_in(n, 0, (1 << 23) - 2)
                                               : ends[numbers_in(n, 0, (int64_t)COUNT_OF(ends) - 1)];
    return ldexpf(mantissa, -(int)numbers_in(n, 0, 20));
}

/* A multiple of half the scale, or one of the numbers beside it. */
static float near_tie(numbers *n, float scale)
{
    float t = (float)((double)numbers_in(n, -800, 800) / 2 * (double)scale);
    for (int64_t steps = numbers_in(n, -2, 2); steps; steps += steps < 0 ? 1 : -1)
        t = nextafterf(t, steps < 0 ? -INFINITY : INFINITY);
    return t;
}

/* Divisions by any scale, of numbers on ties and beside them. The number before the first division is the bias, the sum
 * times half the scale, or a sum with the residual. The number before the second one is a multiple of half its scale.
 */
static void aim_at_ties(requant_block *b, numbers *n, int32_t *sum, float *scale, float *bias, float *end_scale,
                        bool is_signed)
{
    const float first = any_scale(n);
    const bool has_products = numbers_in(n, 0, 1);
    b->factor = 1;
    b->less = NULL;
    b->bias_each = true;
    b->trip = trip_of(first, (int32_t)numbers_in(n, 0, 199) - 100, true);
    b->end = trip_of(b->has_trip ? 2 * first : first, b->zero, is_signed);
    b->add_scale = b->end.scale / 2;
    for (int64_t i = 0; i < ROOM; i++) sum[i] = has_products ? (int32_t)numbers_in(n, -800, 800) : 0;
    for (int64_t i = 0; i <= COLS; i++) {
        scale[i] = first / 2;
        if (b->end_scale) end_scale[i] = first;
        bias[i] = has_products ? 0 : near_tie(n, first);
    }
}

static void one(isa_level level, numbers *n, bool has_ties)
{
    static int32_t sum[ROOM], less[COLS + 1];
    static float scale[COLS + 1], bias[COLS + 1], end_scale[COLS + 1];
    static uint8_t add[ROOM], end_zero[COLS + 1];
    static float y[ROOM + 64], before[ROOM + 64];
    const int64_t rows = 1 + numbers_in(n, 0, ROWS - 1),
                  cols = 1 + (numbers_in(n, 0, 2) ? numbers_in(n, 0, COLS - 1) : numbers_in(n, 0, 39));
    const bool is_signed = numbers_in(n, 0, 1), add_signed = numbers_in(n, 0, 1), in_place = numbers_in(n, 0, 1);
    const int32_t zero = (int32_t)numbers_in(n, 0, 255) - (is_signed ? 128 : 0);
    requant_block b = {
        .rows = rows, .cols = cols, .ld = cols + numbers_in(n, 0, 39), .ld_add = cols + numbers_in(n, 0, 39)
    };
    b.sum = sum;
    b.less = numbers_in(n, 0, 1) ? less : NULL;
    b.scale = scale;
    b.bias = bias;
    b.scale_each = numbers_in(n, 0, 1);
    b.bias_each = numbers_in(n, 0, 1);
    b.factor = numbers_in(n, 0, 3) ? 1 : 0.75f;
    b.has_trip = numbers_in(n, 0, 1);
    b.to_f32 = numbers_in(n, 0, 3) == 0;
    b.add = numbers_in(n, 0, 1) ? add : NULL;
    b.add_flip = add_signed ? 128 : 0;
    b.add_zero = (int32_t)numbers_in(n, 0, 255);
    b.add_scale = 0.001f * (float)(1 + numbers_in(n, 0, 89));
    b.trip = trip_of(0.001f * (float)(1 + numbers_in(n, 0, 89)), (int32_t)numbers_in(n, 0, 199) - 100, true);
    b.end = trip_of(0.001f * (float)(1 + numbers_in(n, 0, 89)), zero, is_signed);
    b.zero = zero;
    b.flip = is_signed ? 128 : 0;
    b.ldy = in_place && b.add && !b.to_f32 ? b.ld_add : cols + numbers_in(n, 0, 39);
    for (int64_t i = 0; i < ROOM; i++) {
        sum[i] = (int32_t)numbers_in(n, 0, 119999) - 60000;
        add[i] = (uint8_t)numbers_in(n, 0, 255);
    }
    for (int64_t i = 0; i <= COLS; i++) {
        less[i] = (int32_t)numbers_in(n, 0, 19999) - 10000;
        scale[i] = 1e-6f * (float)(1 + numbers_in(n, 0, 399));
        bias[i] = 0.01f * (float)(numbers_in(n, 0, 199) - 100);
    }
    /* Few results have these forms: an activation, or ends of each column. */
    const int64_t form = numbers_in(n, 0, 7);
    if (form < 2) {
        b.has_trip = b.to_f32 = false;
        b.add = NULL;
        b.factor = 1;
        if (form == 0) b.act = (uint8_t)numbers_in(n, 1, 3);
        if (form == 1) b.end_scale = end_scale;
        if (form == 1 && numbers_in(n, 0, 3)) b.end_zero = end_zero;
    }
    for (int64_t i = 0; i <= COLS; i++) {
        end_scale[i] = any_scale(n) / (numbers_in(n, 0, 1) ? 16 : -16);
        end_zero[i] = (uint8_t)numbers_in(n, 0, 255);
    }
    if (has_ties) aim_at_ties(&b, n, sum, scale, bias, end_scale, is_signed);
    const bool is_cut = numbers_in(n, 0, 1);
    if (is_cut) b.end.low = fmaxf(b.end.low, 0);
    if (is_cut && numbers_in(n, 0, 1)) b.end.high = fmaxf(b.end.low, b.end.high / 2);
    b.high_code = 255;
    if (!b.to_f32 && !b.end_scale) {
        const int64_t least = zero + b.flip;
        b.low_code = (uint8_t)((int64_t)nearest((double)(b.end.low / b.end.scale)) + least);
        b.high_code = (uint8_t)((int64_t)nearest((double)(b.end.high / b.end.scale)) + least);
    }
    memset(y, 0xA5, sizeof y);
    if (in_place && b.add && !b.to_f32) {
        memcpy(y, add, sizeof add);
        b.add = (const uint8_t *)(const void *)y;
    }
    memcpy(before, y, sizeof y);
    b.y = y;
    level_of(level)->requant(&b);
    const uint8_t *residual = b.add ? add : NULL;
    uint8_t *code = (uint8_t *)(void *)y;
    const uint8_t *kept = (const uint8_t *)(const void *)before;
    int64_t off = 0;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < b.ldy; c++) {
            const int64_t at = r * b.ldy + c;
            if (c >= cols && r + 1 < rows) {
                if (b.to_f32) CHECK(!memcmp(&y[at], &before[at], sizeof *y));
                else CHECK(code[at] == kept[at]);
            }
            if (c >= cols) continue;
            const double want = expected(level, &b, r, c, residual);
            if (b.to_f32) CHECK(fabs((double)y[at] - want) <= 1e-6 * fmax(1, fabs(want)));
            else {
                /* Activations are rounded themselves: a number beside a tie may be on its other side. */
                const double got = is_signed ? (double)(int8_t)code[at] : (double)code[at];
                CHECK(fabs(got - want) <= (b.act ? 1 : 0));
                off += got != want;
            }
        }
    }
    CHECK(has_ties || off <= 2 + rows * cols / 500);
    const int64_t end = rows * b.ldy - (b.ldy - cols);
    if (b.to_f32) CHECK(!memcmp(&y[end], &before[end], 64));
    else CHECK(!memcmp(&code[end], &kept[end], 64));
}

static void forms(void)
{
    const isa_level have = isa_detect().level;
    numbers n = { .state = 7 };
    for (int level = ISA_PLAIN; level < ISA_LEVEL_COUNT; level++)
        for (int i = 0; i < 400 && isa_level_runs(have, (isa_level)level); i++) one((isa_level)level, &n, false);
}

static void ties(void)
{
    const isa_level have = isa_detect().level;
    numbers n = { .state = 11 };
    for (int level = ISA_PLAIN; level < ISA_LEVEL_COUNT; level++)
        for (int i = 0; i < test_scale(600, 20000) && isa_level_runs(have, (isa_level)level); i++)
            one((isa_level)level, &n, true);
}

static const test tests[] = { T(forms), T(ties), { 0 } };
TEST_MAIN(tests)
