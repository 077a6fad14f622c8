/* SPDX-License-Identifier: Apache-2.0 */
/* test_cpu_codes_dot.c - weights in codes times digits of rows, one panel, against sums in double. */
#include "../cpu_numeric.h"
#include "cpu/codes.h"
#include "cpu/level.h"

enum { TERMS = 384, WIDTH = CODES_VECTORS * GEMM_LANES_MAX, ROWS = 3 };

typedef struct panel {
    code_kind kind;
    int64_t k, terms, block, chunk, width, blocks;
    int32_t rows, zero_point;
    bool has_zero;
    float x[ROWS][TERMS], scale[TERMS * WIDTH];
    int32_t code[TERMS * WIDTH];
    uint8_t zero[TERMS * WIDTH];
} panel;

/* Numbers of one size, of many sizes, or mostly 0; whole ones now and then. */
static void row_fill(float *x, int64_t k, numbers *r)
{
    const uint32_t how = numbers_next(r) % 4;
    for (int64_t i = 0; i < k; i++) {
        const float u = (float)numbers_in(r, -1000, 1000) * 0x1p-10f;
        x[i] = how == 0   ? u
               : how == 1 ? u * ldexpf(1, (int)numbers_in(r, -20, 20))
               : how == 2 ? (numbers_in(r, 0, 9) ? 0 : u)
                          : (float)numbers_in(r, -9, 9);
    }
}

static void panel_fill(panel *p, int64_t width, numbers *r)
{
    *p = (panel){ .kind = (code_kind)numbers_in(r, 0, CODES_DOT_KINDS - 1), .width = width };
    p->rows = (int32_t)numbers_in(r, 1, ROWS);
    p->chunk = numbers_in(r, 1, CODES_CHUNK / CODES_UNIT) * CODES_UNIT;
    const int64_t most = TERMS / p->chunk;
    p->block = p->chunk * numbers_in(r, 1, most < 3 ? most : 3);
    p->terms = numbers_in(r, 1, TERMS / CODES_UNIT) * CODES_UNIT;
    p->k = p->terms - numbers_in(r, 0, CODES_UNIT - 1);
    p->blocks = (p->terms + p->block - 1) / p->block;
    p->has_zero = numbers_next(r) % 2;
    const int64_t most_code = p->kind == CODE_4 ? 15 : 255, less = p->kind == CODE_S8 ? 128 : 0;
    p->zero_point = (int32_t)(numbers_in(r, 0, most_code) - less);
    for (int64_t i = 0; i < TERMS * WIDTH; i++) {
        p->scale[i] = (float)numbers_in(r, -100, 100) * 0.01f;
        p->code[i] = (int32_t)(numbers_next(r) << 16 ^ numbers_next(r));
        p->zero[i] = (uint8_t)(numbers_in(r, 0, most_code) - less);
    }
    for (int32_t i = 0; i < p->rows; i++) row_fill(p->x[i], p->k, r);
}

static double code_at(const panel *p, int64_t k, int64_t j)
{
    const int64_t each = p->kind == CODE_4 ? 8 : 4, bits = 32 / each;
    const uint32_t word = (uint32_t)p->code[k / each * p->width + j];
    const uint32_t code = word >> k % each * bits & ((1u << bits) - 1);
    return p->kind == CODE_S8 ? (int8_t)code : (double)code;
}

static double zero_of(const panel *p, int64_t block, int64_t j)
{
    if (!p->has_zero) return p->zero_point;
    const uint8_t z = p->zero[block * p->width + j];
    return p->kind == CODE_S8 ? (int8_t)z : (double)z;
}

/* Off by what numbers lose below the step of their chunk, and by roundings of f32. */
static bool is_right(const panel *p, int32_t row, int64_t j, int places, double got)
{
    double want = 0, bound = 0;
    for (int64_t begin = 0; begin < p->terms; begin += p->chunk) {
        double most = 0, weights = 0, scale = (double)p->scale[begin / p->block * p->width + j];
        for (int64_t k = begin; k < begin + p->chunk && k < p->k; k++) {
            const double x = (double)p->x[row][k], w = (code_at(p, k, j) - zero_of(p, begin / p->block, j)) * scale;
            want += x * w;
            bound += fabs(x * w) * 0x1p-20;
            weights += fabs(w);
            most = fmax(most, fabs(x));
        }
        bound += most * weights * (places == 3 ? 0x1p-22 : 0x1p-30);
    }
    return fabs(got - want) <= bound + 1e-30;
}

static void panel_check(isa_level isa, const codes_dot_set *set, numbers *r)
{
    static panel p;
    static _Alignas(64) int32_t digit[ROWS * TERMS], sum[ROWS * TERMS * CODES_PLACES];
    static _Alignas(64) float step[ROWS * TERMS], c[ROWS * WIDTH];
    panel_fill(&p, (int64_t)CODES_VECTORS * level_of(isa)->codes->lanes, r);
    const int64_t chunks = (p.terms + p.chunk - 1) / p.chunk;
    int places = 3;
    for (int32_t i = 0; i < p.rows; i++) {
        const int own = set->places(p.x[i], 1, p.k, p.terms, p.chunk);
        if (own > places) places = own;
        if (!CHECK(own == 3 || own == 4)) return;
    }
    for (int32_t i = 0; i < p.rows; i++)
        set->digits(p.x[i], 1, p.k, p.terms, p.chunk, p.kind == CODE_4, places, digit + i * p.terms,
                    sum + i * chunks * CODES_PLACES, step + i * chunks);
    const codes_tile t = { .code = p.code,
                           .scale = p.scale,
                           .zero = p.has_zero ? p.zero : NULL,
                           .c = c,
                           .terms = p.terms,
                           .block = p.block,
                           .chunk = p.chunk,
                           .chunks = chunks,
                           .ldx = p.terms,
                           .scale_step = p.width,
                           .zero_step = p.width,
                           .zero_point = p.zero_point,
                           .scale_type = SINTER_DTYPE_F32,
                           .digit = digit,
                           .digit_sum = sum,
                           .step = step };
    for (int32_t i = 0; i < p.rows; i++) {
        codes_tile row = t;
        row.digit += i * p.terms;
        row.digit_sum += i * chunks * CODES_PLACES;
        row.step += i * chunks;
        row.c += i * p.width;
        set->run[p.kind][places - 3](&row);
    }
    for (int32_t i = 0; i < p.rows; i++)
        for (int64_t j = 0; j < p.width; j++)
            if (!CHECK(is_right(&p, i, j, places, (double)c[i * p.width + j])))
                printf("%s kind %d, %d places, k %d, block %d, chunk %d, row %d, column %d: %g\n", isa_level_name(isa),
                       (int)p.kind, places, (int)p.k, (int)p.block, (int)p.chunk, (int)i, (int)j,
                       (double)c[i * p.width + j]);
}

static const codes_dot_set *set_here(isa_level isa, isa_choice machine)
{
    static const codes_form any = { .kind = CODE_4 };
    if (!isa_level_runs(machine.level, isa) || gemm_unit_needs(isa, GEMM_U8_DOT) & ~machine.features) return NULL;
    return codes_dot_of(isa, &any);
}

static void panels(void)
{
    const isa_choice machine = isa_detect();
    numbers r = { .state = 1 };
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        const codes_dot_set *set = set_here(isa, machine);
        for (int i = 0; set && i < (test_is_full() ? 300 : 40); i++) panel_check(isa, set, &r);
    }
}

/* Rows that have no steps, and how many places others take. */
static void places(void)
{
    const isa_choice machine = isa_detect();
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        const codes_dot_set *set = set_here(isa, machine);
        if (!set) continue;
        float x[32];
        for (int i = 0; i < 32; i++) x[i] = i % 2 ? -1.0f : 0.5f;
        CHECK_EQ(set->places(x, 1, 32, 32, 32), 3);
        CHECK_EQ(set->places(x, 2, 16, 16, 16), 3);
        x[3] = 100;
        CHECK_EQ(set->places(x, 1, 32, 32, 32), 4);
        const float bad[] = { INFINITY, -INFINITY, NAN, 0x1p100f, -0x1p127f };
        for (size_t i = 0; i < COUNT_OF(bad); i++) {
            x[3] = bad[i];
            CHECK_EQ(set->places(x, 1, 32, 32, 32), 0);
        }
        memset(x, 0, sizeof x);
        CHECK_EQ(set->places(x, 1, 32, 32, 32), 3);
        x[31] = 0x1p-70f;
        CHECK_EQ(set->places(x, 1, 32, 32, 32), 0);
    }
}

static const test tests[] = { T(panels), T(places), { 0 } };
TEST_MAIN(tests)
