/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_rows.c - row kernels and copies by themselves: every length around the vectors, against sums in double; NaN;
 * results in place; copies between random strides by tiles in any order. */
#include "core/dtype.h"
#include "cpu/cpu_move.h"
#include "cpu/level.h"
#include "cpu/rows.h"
#include "test.h"

#include <math.h>
#include <string.h>

enum { N = 300, GUARD = 64 };

static void fill(float *x, int64_t n, uint64_t *seed)
{
    for (int64_t i = 0; i < n; i++) x[i] = (float)(test_random(seed) >> 40) / 8388608.0f * 4 - 4;
}

static void folds_every_length(void)
{
    uint64_t seed = 3;
    float x[N];
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        const rows_set *set = level_of(isa)->rows;
        for (int64_t n = 1; n <= N; n++) {
            fill(x, n, &seed);
            double sum = 0, size = 0, square = 0, most = -INFINITY, least = INFINITY;
            for (int64_t i = 0; i < n; i++) {
                const double v = (double)x[i];
                sum += v;
                size += fabs(v);
                square += v * v;
                most = v > most ? v : most;
                least = v < least ? v : least;
            }
            float y[3] = { 0, 0, 77 };
#define FOLD(kind) (set->fold_rows(kind, y, x, 2, 0, n), y[0])
            CHECK_NEAR(FOLD(ROWS_SUM), sum, 1e-5 * (double)n);
            CHECK_EQ_F(y[1], y[0]);
            CHECK_NEAR(FOLD(ROWS_ABS), size, 1e-5 * (double)n);
            CHECK_NEAR(FOLD(ROWS_SQUARE), square, 1e-4 * (double)n);
            CHECK_EQ_F(FOLD(ROWS_MAX), most);
            CHECK_EQ_F(FOLD(ROWS_MIN), least);
            x[(n * 7) % n] = NAN;
            CHECK(isnan(FOLD(ROWS_MAX)));
            CHECK(isnan(FOLD(ROWS_MIN)));
            CHECK_EQ_F(y[2], 77);
#undef FOLD
        }
    }
}

/* Results may lie where the row does, and nothing behind it is written. */
static void rows_of_every_length(void)
{
    uint64_t seed = 5;
    float x[N + GUARD], y[N + GUARD], scale[N], bias[N];
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        const rows_set *set = level_of(isa)->rows;
        for (int64_t n = 1; n <= N; n += 1 + n / 40) {
            fill(x, n, &seed);
            fill(scale, n, &seed);
            fill(bias, n, &seed);
            double top = -INFINITY, sum = 0, mean = 0, variance = 0;
            for (int64_t i = 0; i < n; i++) top = (double)x[i] > top ? (double)x[i] : top;
            for (int64_t i = 0; i < n; i++) {
                sum += exp((double)x[i] - top);
                mean += (double)x[i] / (double)n;
            }
            for (int64_t i = 0; i < n; i++) variance += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n;
            for (int64_t i = n; i < n + GUARD; i++) y[i] = 77;
            memcpy(y, x, (size_t)n * sizeof *x);
            set->softmax(y, y, n, false);
            for (int64_t i = 0; i < n; i++) CHECK_NEAR(y[i], exp((double)x[i] - top) / sum, 1e-6);
            memcpy(y, x, (size_t)n * sizeof *x);
            set->softmax(y, y, n, true);
            for (int64_t i = 0; i < n; i++) CHECK_NEAR(y[i], (double)x[i] - top - log(sum), 1e-5);
            float stats[2];
            memcpy(y, x, (size_t)n * sizeof *x);
            set->layer_norm(y, y, n, scale, bias, 1e-5f, stats);
            const double inverse = 1 / sqrt(variance + 1e-5);
            for (int64_t i = 0; i < n; i++) {
                const double want = ((double)x[i] - mean) * inverse * (double)scale[i] + (double)bias[i];
                CHECK_NEAR(y[i], want, 2e-5 + 2e-4 * (n < 3));
            }
            for (int64_t i = n; i < n + GUARD; i++) CHECK_EQ_F(y[i], 77);
        }
    }
}

static void copies_any_strides(void)
{
    static unsigned char from[1 << 19], to[1 << 19];
    static const sinter_dtype type[] = { SINTER_DTYPE_U8, SINTER_DTYPE_F16, SINTER_DTYPE_F32, SINTER_DTYPE_I64 };
    uint64_t seed = 9;
    isa_level isa = ISA_PLAIN;
    for (size_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)test_random(&seed);
    for (long round = 0; round < test_scale(400, 4000); round++) {
        view src = { .dtype = type[round % 4], .rank = (uint32_t)(test_random(&seed) % 5) }, dst = src;
        int64_t count = 1;
        /* Some are so large that tiles are parts of blocks. */
        const bool is_large = test_random(&seed) % 8 == 0;
        const int64_t room = is_large ? (int64_t)sizeof from / 2 / (sinter_dtype_bits(src.dtype) / 8) : 20000;
        for (uint32_t i = 0; i < src.rank; i++) {
            const int64_t most = room / count, d = (int64_t)(test_random(&seed) % (is_large ? 900
                                                                                   : i % 2  ? 60
                                                                                            : 9)) +
                                                   1;
            src.dim[i] = dst.dim[i] = d < most ? d : most;
            count *= src.dim[i];
        }
        view *both[2] = { &src, &dst };
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t order[4] = { 0, 1, 2, 3 };
            for (uint32_t i = src.rank; i > 1; i--) {
                const uint32_t j = (uint32_t)(test_random(&seed) % i), t = order[i - 1];
                order[i - 1] = order[j];
                order[j] = t;
            }
            int64_t stride = test_random(&seed) % 8 ? 1 : 2;
            for (uint32_t i = src.rank; i-- > 0;) {
                both[k]->stride[order[i]] = k == 0 && test_random(&seed) % 9 == 0 ? 0 : stride;
                stride *= src.dim[order[i]];
            }
        }
        src.data = from;
        dst.data = to;
        memset(to, 0xEE, sizeof to);
        move_plan p;
        move_plan_init(&p, &dst, &src, level_of(isa)->squares);
        isa = isa_level_next(isa);
        if (isa == ISA_LEVEL_COUNT) isa = ISA_PLAIN;
        for (int64_t i = move_tile_count(&p); i-- > 0;) move_run(&p, to, from, i, i + 1);
        const size_t size = sinter_dtype_bits(src.dtype) / 8;
        int64_t at[SINTER_RANK_MAX] = { 0 };
        bool ok = true;
        int64_t written = 0;
        for (bool more = view_first(src.dim, src.rank, at); more; more = view_next(src.dim, src.rank, at), written++) {
            const size_t d = (size_t)view_offset(&dst, at) * size, s = (size_t)view_offset(&src, at) * size;
            ok = ok && !memcmp(to + d, from + s, size);
            memset(to + d, 0xEE, size);
        }
        for (size_t i = 0; i < sizeof to; i++) ok = ok && to[i] == 0xEE;
        CHECK_EQ(written, count);
        if (!CHECK(ok)) return;
    }
}

/* Weighted sums of rows and of gathered elements, and local response normalisation, of every length; nothing behind the
 * results is written, and what has no weight is not looked at. */
static void weighs_every_length(void)
{
    enum { TERMS = 4, PITCH = N + 16 };
    uint64_t seed = 11;
    static float x[TERMS][N], w[TERMS][N], y[N + GUARD], weight[TERMS * PITCH];
    static int32_t at[TERMS * PITCH];
    const float *rows[TERMS], *others[TERMS], scale[TERMS] = { 0.5f, -2, 0.25f, 3 };
    for (int k = 0; k < TERMS; k++) {
        rows[k] = x[k];
        others[k] = w[k];
    }
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        const rows_set *set = level_of(isa)->rows;
        for (int64_t n = 1; n <= N; n += 1 + n / 40) {
            memset(at, 0, sizeof at);
            memset(weight, 0, sizeof weight);
            for (int k = 0; k < TERMS; k++) {
                fill(x[k], n, &seed);
                fill(w[k], n, &seed);
                for (int64_t i = 0; i < n; i++) {
                    at[k * PITCH + i] = (int32_t)((i * 7 + k) % n);
                    weight[k * PITCH + i] = (i + k) % 3 ? w[k][i] : 0;
                }
            }
            for (int64_t i = 0; i < n + GUARD; i++) y[i] = 77;
            set->blend_of(y, rows, scale, TERMS, n);
            for (int64_t i = 0; i < n; i++) {
                double sum = 0;
                for (int k = 0; k < TERMS; k++) sum += (double)scale[k] * (double)x[k][i];
                CHECK_NEAR(y[i], sum, 1e-5);
            }
            set->products_of(y, rows, others, TERMS, n);
            for (int64_t i = 0; i < n; i++) {
                double sum = 0;
                for (int k = 0; k < TERMS; k++) sum += (double)w[k][i] * (double)x[k][i];
                CHECK_NEAR(y[i], sum, 1e-4);
            }
            set->lrn(y, x[1], rows, TERMS, n, 0.25f, 1.5f, 0.75f);
            for (int64_t i = 0; i < n; i++) {
                double sum = 0;
                for (int k = 0; k < TERMS; k++) sum += (double)x[k][i] * (double)x[k][i];
                CHECK_NEAR(y[i], (double)x[1][i] * pow(1.5 + 0.25 * sum, -0.75), 1e-5);
            }
            for (int k = 0; k < TERMS; k++)
                for (int64_t i = 0; i < n; i++)
                    if (weight[k * PITCH + i] == 0) at[k * PITCH + i] = (int32_t)(n - 1);
            set->gather_blend(y, x[0], at, weight, PITCH, TERMS, n);
            for (int64_t i = 0; i < n; i++) {
                double sum = 0;
                for (int k = 0; k < TERMS; k++) sum += (double)weight[k * PITCH + i] * (double)x[0][at[k * PITCH + i]];
                CHECK_NEAR(y[i], sum, 1e-4);
            }
            x[0][n - 1] = INFINITY;
            for (int64_t i = 0; i < TERMS * PITCH; i++) weight[i] = at[i] == n - 1 ? 0 : weight[i];
            set->gather_blend(y, x[0], at, weight, PITCH, TERMS, n);
            for (int64_t i = 0; i < n; i++) CHECK(isfinite(y[i]));
            for (int64_t i = n; i < n + GUARD; i++) CHECK_EQ_F(y[i], 77);
        }
    }
}

/* The largest of 16-bit floats of all kinds, NaN and zeros with either sign among them, and of 8-bit integers. */
static void most_of_shorts_and_bytes(void)
{
    enum { ROWS = 5, MOST = 90 };
    static const uint16_t kinds[] = { 0,      0x8000, 1,      0x8001, 0x7C00, 0xFC00, 0x7C01, 0xFC01, 0x7F80,
                                      0xFF80, 0x7F81, 0xFF81, 0x7FFF, 0xFFFF, 0x3F80, 0xBF80, 0x3C00, 0xBC00 };
    uint64_t seed = 11;
    uint16_t x[ROWS][MOST], y[MOST + GUARD];
    const char *rows[ROWS];
    const uint8_t *bytes[ROWS];
    for (int k = 0; k < ROWS; k++) {
        rows[k] = (const char *)x[k];
        bytes[k] = (const uint8_t *)x[k];
    }
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        const rows_set *set = level_of(isa)->rows;
        for (int64_t n = 1; n <= MOST; n++) {
            const int64_t count = 1 + (int64_t)(test_random(&seed) % ROWS);
            const uint16_t sign = test_random(&seed) % 2 ? 0x8000 : 0; /* all have one */
            for (int k = 0; k < ROWS; k++)
                for (int64_t i = 0; i < n; i++) {
                    const uint64_t r = test_random(&seed);
                    x[k][i] = (r % 4 ? (uint16_t)(r >> 32) : kinds[(r >> 8) % (sizeof kinds / 2)]) | sign;
                }
            for (int half = 0; half < 2; half++) {
                const sinter_dtype type = half ? SINTER_DTYPE_F16 : SINTER_DTYPE_BF16;
                memset(y, 0x55, sizeof y);
                set->fold_narrow((char *)y, rows, count, n, true, 1, type);
                for (int64_t i = 0; i < n; i++) {
                    double most = -INFINITY;
                    for (int64_t k = 0; k < count; k++) {
                        const double v = dtype_load_f64(type, x[k], i);
                        if (isnan(v) || v > most) most = v;
                        if (isnan(v)) break;
                    }
                    const double got = dtype_load_f64(type, y, i);
                    CHECK(isnan(most) ? isnan(got) : got == most);
                }
                for (int64_t i = n; i < n + GUARD; i++) CHECK_EQ(y[i], 0x5555);
            }
            for (int is_signed = 0; is_signed < 2; is_signed++) {
                memset(y, 0x55, sizeof y);
                set->max_bytes((uint8_t *)y, bytes, count, n, is_signed ? 0 : 0x80);
                for (int64_t i = 0; i < n + GUARD; i++) {
                    int most = -128;
                    for (int64_t k = 0; k < count && i < n; k++) {
                        const int v = is_signed ? (int8_t)bytes[k][i] : bytes[k][i];
                        most = v > most ? v : most;
                    }
                    CHECK_EQ(((uint8_t *)y)[i], i < n ? (uint8_t)most : 0x55);
                }
            }
        }
    }
}

static const test tests[] = { T(folds_every_length),  T(rows_of_every_length),     T(copies_any_strides),
                              T(weighs_every_length), T(most_of_shorts_and_bytes), { 0 } };
TEST_MAIN(tests)
