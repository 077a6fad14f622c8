/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_fields.c - tactics as lists of fields: what is out of range, or where no field is, is refused. */
#include "cuda/cuda_device.h"
#include "cuda/cuda_kernels.h"
#include "test.h"

typedef struct sample {
    uint8_t kind, power;
    uint16_t wide;
    uint32_t widest;
    uint8_t flag, rest[TACTIC_SIZE - 9];
} sample;
_Static_assert(sizeof(sample) == TACTIC_SIZE, "a tactic is overlaid");

static const tactic_field fields[] = {
    FIELD(sample, kind, 1, 3, false, "kind ", 1),      FIELD(sample, power, 2, 16, true, " x", 8),
    FIELD(sample, wide, 300, 400, false, " wide ", 1), FIELD(sample, widest, 0, 70000),
    FIELD(sample, flag, 0, 1, false, " flag", 0),
};

static bool holds(sample x)
{
    tactic t;
    memcpy(&t, &x, sizeof t);
    return FIELDS_HOLD(fields, &t);
}

static void ranges_hold(void)
{
    const sample fine = { .kind = 3, .power = 4, .wide = 300, .widest = 70000, .flag = 1 };
    CHECK(holds(fine));
    for (uint32_t n = 0; n < 256; n++) {
        sample x = fine;
        x.kind = (uint8_t)n;
        CHECK_EQ(holds(x), n >= 1 && n <= 3);
        x = fine;
        x.power = (uint8_t)n;
        CHECK_EQ(holds(x), n == 2 || n == 4 || n == 8 || n == 16);
        x = fine;
        x.flag = (uint8_t)n;
        CHECK_EQ(holds(x), n <= 1);
    }
    for (uint32_t n = 0; n <= UINT16_MAX; n++) {
        sample x = fine;
        x.wide = (uint16_t)n;
        CHECK_EQ(holds(x), n >= 300 && n <= 400);
    }
    sample x = fine;
    x.widest = 70001;
    CHECK(!holds(x));
    for (uint32_t i = 0; i < sizeof x.rest; i++) {
        x = fine;
        x.rest[i] = 1;
        CHECK(!holds(x));
    }
}

static void fields_print_in_order(void)
{
    env e;
    text out;
    env_init(&e, NULL, NULL);
    text_init(&out, &e);
    sample x = { .kind = 2, .power = 4, .wide = 301, .widest = 7, .flag = 1 };
    tactic t;
    memcpy(&t, &x, sizeof t);
    fields_print(fields, COUNT_OF(fields), &t, &out);
    CHECK(out.at && !strcmp(out.at, "kind 2 x32 wide 301 flag"));
    text_deinit(&out);
}

/* Whatever the row, a tactic that it gives with a bit set where no field lies is not its own. */
static void rows_refuse_what_is_in_no_field(void)
{
    static const char *const lines[] = {
        "matmul:f16[64,128] w:f16[128,64] -> f16[64,64]",
        "matmul:f32[1,128] w:f32[128,64] -> f32[1,64]",
        "conv:f16[1,3,32,32] w:f16[16,3,3,3] -> f16[1,16,32,32]{0,2,3,1} stride=[1,1] dilation=[1,1] pad=[1,1,1,1]",
        "copy:f32[3,40,50] -> f32[3,40,50]{0,2,1}",
    };
    env e;
    arena a;
    sinter_error error = { 0 };
    uint32_t reached = 0;
    env_init(&e, NULL, &error);
    arena_init(&a, &e);
    for (uint32_t i = 0; i < COUNT_OF(lines); i++) {
        scan s = scan_of(lines[i], strlen(lines[i]));
        problem *p = NULL;
        const char *why = NULL;
        kernel_target target;
        if (!CHECK(problem_parse(&a, &s, &p, &why)) || !CHECK(cuda_chip_target(90, &target))) continue;
        for (uint32_t k = 0; k < cuda_kernels_count; k++) {
            const kernel *row = cuda_kernels[k];
            tactic_sink sink = { .count = 0 };
            if (row->where != KERNEL_ON_DEVICE || row->reject(p, &target)) continue;
            row->tactics(p, &target, &sink);
            reached++;
            for (uint32_t t = 0; t < sink.count; t++) {
                CHECK(row->check(p, &sink.at[t]));
                for (uint32_t at = 16; at < TACTIC_SIZE; at++) {
                    tactic other = sink.at[t];
                    other.at[at] ^= 1;
                    CHECK(!row->check(p, &other));
                }
            }
        }
    }
    CHECK(reached >= 6);
    arena_deinit(&a);
}

static const test tests[] = { T(ranges_hold), T(fields_print_in_order), T(rows_refuse_what_is_in_no_field), { 0 } };
TEST_MAIN(tests)
