/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_wgmma.c - tactics of products on warpgroups: whatever is given for a problem and a chip passes the check,
 * and what an engine made by somebody else may ask for does not. */
#include "cuda/cuda_device.h"
#include "cuda/cuda_kernels.h"
#include "cuda/row_wgmma.h"
#include "test.h"

enum { SHAPES = 3000, GIVEN_MOST = 20 };

typedef struct fixture {
    env e;
    sinter_error error;
    arena a;
    problem *p;
    kernel_target target;
} fixture;

static void setup(fixture *f)
{
    memset(f, 0, sizeof *f);
    env_init(&f->e, NULL, &f->error);
    arena_init(&f->a, &f->e);
    CHECK(cuda_chip_target(90, &f->target));
}

static bool parse(fixture *f, const char *line)
{
    scan at = scan_of(line, strlen(line));
    const char *why = NULL;
    return CHECK(problem_parse(&f->a, &at, &f->p, &why));
}

static tactic tactic_of(wgmma_tactic w)
{
    tactic t;
    memcpy(&t, &w, sizeof w);
    return t;
}

/* Mostly small, now and then as large as networks have them. */
static unsigned size_of(uint64_t *state, unsigned step)
{
    static const unsigned most[] = { 4, 40, 400, 4000 };
    return (unsigned)(1 + test_below(state, most[test_below(state, 4)] * 16 / step)) * step;
}

static void line_make(uint64_t *state, char *line, size_t room)
{
    const unsigned m = size_of(state, 1), k = size_of(state, 16) + 48, n = size_of(state, 1), z = 1 + m % 3;
    switch (test_below(state, 5)) {
    case 0: (void)snprintf(line, room, "matmul:f16[%u,%u] w:f16[%u,%u] -> f16[%u,%u]", m, k, k, n, m, n); break;
    case 1:
        (void)snprintf(line, room, "matmul:bf16[%u,%u] bf16[%u,%u] -> f32[%u,%u] trans_b=1", m, k, n, k, m, n);
        break;
    case 2:
        (void)snprintf(line, room, "matmul:f16[%u,%u,%u] w:f16[%u,%u,%u] -> f16[%u,%u,%u]", z, m, k, z, k, n, z, m, n);
        break;
    case 3:
        (void)snprintf(line, room, "matmul_integer:u8[%u,%u] w:i8[%u,%u] w:u8[] -> i32[%u,%u]", m, k, k, n, m, n);
        break;
    default:
        (void)snprintf(line, room,
                       "conv:f16[%u,%u,14,15]{0,2,3,1} w:f16[%u,%u,3,3] -> f16[%u,%u,14,15]{0,2,3,1} stride=[1,1] "
                       "dilation=[1,1] pad=[1,1,1,1]",
                       z, k, n, k, z, n);
    }
}

static void what_is_given_passes_the_check(void)
{
    fixture f;
    setup(&f);
    uint64_t state = 1;
    uint32_t turns = 0, odd = 0, taken = 0;
    const arena_mark mark = arena_save(&f.a);
    for (uint32_t i = 0; i < SHAPES; i++, arena_rewind(&f.a, mark)) {
        char line[512];
        line_make(&state, line, sizeof line);
        f.target.units = (uint32_t)test_below(&state, 2) ? 132 : (uint32_t)test_below(&state, 300);
        if (!parse(&f, line)) break;
        if (cuda_wgmma.base.reject(f.p, &f.target)) continue;
        tactic_sink sink = { .count = 0 };
        wgmma_tactics(f.p, &f.target, &sink);
        taken++;
        bool is_right = CHECK(sink.count > 0 && sink.count <= GIVEN_MOST);
        for (uint32_t t = 0; t < sink.count; t++) {
            const wgmma_tactic w = TACTIC_AS(wgmma_tactic, &sink.at[t]);
            is_right = CHECK(wgmma_check(f.p, &sink.at[t])) && is_right;
            is_right = CHECK(wgmma_cost_ns(f.p, &sink.at[t], &f.target) > 0) && is_right;
            for (uint32_t k = 0; k < t; k++)
                is_right = CHECK(memcmp(&sink.at[k], &sink.at[t], sizeof sink.at[t]) != 0) && is_right;
            turns += w.is_pingpong;
            odd += !w.is_once && (w.bn8 == 12 || w.bn8 == 20 || w.bn8 == 28);
        }
        if (!is_right) (void)printf("%s on %u\n", line, (unsigned)f.target.units);
    }
    CHECK(taken > SHAPES / 2 && turns > 0 && odd > 0);
    arena_deinit(&f.a);
}

static void what_engines_may_not_ask_for(void)
{
    static const struct {
        wgmma_tactic w;
        bool passes;
    } cases[] = {
        { { .bn8 = 16, .stages = 6, .lines = 2, .units = 132, .is_pingpong = 1 }, true },
        { { .bn8 = 8, .stages = 8, .lines = 2, .units = 1, .is_pingpong = 1 }, true },
        { { .bn8 = 20, .stages = 5, .lines = 2, .units = 132 }, true },
        { { .bn8 = 16, .stages = 6, .lines = 1, .units = 132, .is_pingpong = 1 }, false },
        { { .bn8 = 24, .stages = 4, .lines = 2, .units = 132, .is_pingpong = 1 }, false },
        { { .bn8 = 12, .stages = 4, .lines = 2, .units = 132, .is_pingpong = 1 }, false },
        { { .bn8 = 16, .stages = 6, .lines = 2, .units = 132, .is_pingpong = 2 }, false },
        { { .bn8 = 16, .stages = 8, .lines = 2, .units = 132, .is_pingpong = 1 }, false }, /* too much memory */
        { { .bn8 = 24, .stages = 6, .lines = 2, .units = 132 }, false },
        { { .bn8 = 24, .stages = 4, .lines = 3, .units = 132 }, true },
        { { .bn8 = 28, .stages = 4, .lines = 3, .units = 132 }, false },
        { { .bn8 = 16, .stages = 1, .lines = 2, .units = 132 }, false },
        { { .bn8 = 16, .stages = 5, .lines = 2, .units = 0 }, false },
        { { .bn8 = 16, .stages = 5, .lines = 4, .units = 132 }, false },
        { { .bn8 = 16, .stages = 4, .lines = 3, .is_once = 1, .groups = 1, .trigger = 2 }, false },
        { { .bn8 = 18, .stages = 4, .lines = 2, .units = 132 }, false },
        { { .bn8 = 36, .stages = 2, .lines = 1, .units = 132 }, false },
        { { .bn8 = 0, .stages = 4, .lines = 2, .units = 132 }, false },
        { { .bn8 = 16, .stages = 5, .lines = 2, .units = 132, .split_log = 1 }, false },
        { { .bn8 = 16, .stages = 4, .lines = 2, .is_once = 1, .groups = 1, .trigger = 2 }, true },
        { { .bn8 = 16, .stages = 4, .lines = 2, .is_once = 1, .groups = 1, .trigger = 2, .is_pingpong = 1 }, false },
        { { .bn8 = 12, .stages = 4, .lines = 2, .is_once = 1, .groups = 1, .trigger = 2 }, false },
        { { .bn8 = 16, .stages = 5, .lines = 2, .units = 132, .zero = { 1 } }, false },
        { { .bn8 = 16, .stages = 5, .lines = 2, .units = 132, .is_staged = 1 }, true },
        { { .bn8 = 16, .stages = 5, .lines = 2, .units = 132, .is_staged = 2 }, false }, /* there is no residual */
        { { .bn8 = 32, .stages = 4, .lines = 2, .units = 132, .is_staged = 1 }, true },
        { { .bn8 = 16, .stages = 4, .lines = 2, .is_once = 1, .groups = 1, .trigger = 2, .is_staged = 1 }, false },
        { { .bn8 = 24, .stages = 2, .lines = 2, .units = 132, .is_kept = 1 }, false }, /* 12 steps: too much memory */
        { { .bn8 = 8, .stages = 5, .lines = 2, .units = 132, .is_kept = 1 }, true },
        { { .bn8 = 8, .stages = 5, .lines = 2, .units = 47, .is_kept = 1 }, false }, /* 48 columns of tiles */
        { { .bn8 = 8, .stages = 4, .lines = 2, .units = 132, .is_paired = 1 }, true },
        { { .bn8 = 8, .stages = 5, .lines = 2, .units = 132, .is_paired = 1 }, false }, /* twice 120 KiB */
        { { .bn8 = 16, .stages = 3, .lines = 2, .units = 132, .is_paired = 1 }, false },
        { { .bn8 = 8, .stages = 4, .lines = 1, .units = 132, .is_paired = 1 }, false },
    };
    fixture f;
    setup(&f);
    if (!parse(&f, "matmul:f16[4096,768] w:f16[768,3072] -> f16[4096,3072]")) return;
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        const tactic t = tactic_of(cases[i].w);
        if (!CHECK_EQ(wgmma_check(f.p, &t), cases[i].passes)) (void)printf("case %u\n", (unsigned)i);
    }
    arena_deinit(&f.a);
}

/* As measured on an H200, the second on an H100: by turns where the last of many waves is full, 192 rows where they
 * make one full wave. */
static void what_is_fastest_is_tried_first(void)
{
    static const struct {
        const char *line;
        wgmma_tactic w;
    } cases[] = {
        { "matmul:f16[6304,768] w:f16[768,2304] -> f16[6304,2304]", { .bn8 = 16, .lines = 2, .is_pingpong = 1 } },
        { "matmul:f16[6304,3072] w:f16[3072,768] -> f16[6304,768]", { .bn8 = 24, .lines = 3 } },
        { "matmul:f16[4096,4096] w:f16[4096,4096] -> f16[4096,4096]", { .bn8 = 32, .lines = 2 } },
        { "matmul:f16[4096,768] w:f16[768,768] -> f16[4096,768]", { .bn8 = 24, .lines = 2 } },
    };
    fixture f;
    setup(&f);
    for (uint32_t i = 0; i < COUNT_OF(cases) && parse(&f, cases[i].line); i++) {
        tactic_sink sink = { .count = 0 };
        wgmma_tactics(f.p, &f.target, &sink);
        const wgmma_tactic first = TACTIC_AS(wgmma_tactic, &sink.at[0]);
        CHECK_EQ(first.bn8, cases[i].w.bn8);
        CHECK_EQ(first.lines, cases[i].w.lines);
        CHECK_EQ(first.is_pingpong, cases[i].w.is_pingpong);
        CHECK(!first.is_once);
    }
    arena_deinit(&f.a);
}

static const test tests[] = {
    T(what_is_given_passes_the_check), T(what_engines_may_not_ask_for), T(what_is_fastest_is_tried_first), { 0 }
};
TEST_MAIN(tests)
