/* SPDX-License-Identifier: Apache-2.0 */
/* test_exact.c - engines of math=exact give the reference's numbers, to the last bit, where docs/numerics.md says so:
 * moves, choices, comparisons, integers, casts, rounding to steps, and the arithmetic of IEEE 754 on f32. Random graphs
 * of these at each instruction set, in three sizes. What is divided by is a constant: max, min and clip may choose
 * either of two zeros. */
#include "base/text.h"
#include "cpu/isa.h"
#include "model_text.h"
#include "test.h"

enum { VALUES = 24 };

typedef struct maker {
    uint64_t seed;
    text out;
    uint32_t count;
    bool is_turned[VALUES]; /* [6,N] instead of [N,6] */
} maker;

static uint32_t pick(maker *m, uint32_t count)
{
    return (uint32_t)test_below(&m->seed, count);
}

/* A value as the next one is; the first two are of both kinds. */
static uint32_t like(maker *m, bool is_turned)
{
    uint32_t v = pick(m, m->count);
    while (m->is_turned[v] != is_turned) v = (v + 1) % m->count;
    return v;
}

static void add_node(maker *m)
{
    static const char *const unary[] = { "Neg", "Abs", "Relu", "Sqrt", "Floor", "Ceil", "Round", "Identity" };
    static const char *const binary[] = { "Add", "Sub", "Mul", "Max", "Min", "Div" };
    static const char *const scalars[] = { "0", "1", "2", "0.5", "-1", "0.3", "3", "-0.7" };
    const uint32_t y = m->count, x = pick(m, y);
    const bool is_turned = m->is_turned[x];
    m->is_turned[y] = is_turned;
    switch (pick(m, 10)) {
    case 0: text_printf(&m->out, "v%u = %s v%u; ", y, unary[pick(m, COUNT_OF(unary))], x); break;
    case 1:
    case 2:
        text_printf(&m->out, "v%u = %s v%u v%u; ", y, binary[pick(m, COUNT_OF(binary) - 1)], x, like(m, is_turned));
        break;
    case 3:
        text_printf(&m->out, "v%u = %s v%u #%s; ", y, binary[pick(m, COUNT_OF(binary))], x,
                    scalars[pick(m, COUNT_OF(scalars))]);
        break;
    case 4: text_printf(&m->out, "v%u = Clip v%u #-1 #%s; ", y, x, scalars[1 + pick(m, 3)]); break;
    case 5:
        text_printf(&m->out, "v%u = Transpose v%u perm=[1,0]; ", y, x);
        m->is_turned[y] = !is_turned;
        break;
    case 6: {
        const char *const scale = pick(m, 2) ? "0.05" : "0.013";
        text_printf(&m->out, "q%u = QuantizeLinear v%u #%s; v%u = DequantizeLinear q%u #%s; ", y, x, scale, y, y,
                    scale);
        break;
    }
    case 7: text_printf(&m->out, "i%u = Cast v%u to=6; v%u = Cast i%u to=1; ", y, x, y, y); break;
    case 8: {
        const uint32_t a = like(m, is_turned), b = like(m, is_turned);
        text_printf(&m->out, "c%u = Less v%u v%u; v%u = Where c%u v%u v%u; ", y, a, b, y, y, x, a);
        break;
    }
    default:
        text_printf(&m->out, "s%u = Concat v%u v%u axis=%d; v%u = Slice s%u {1} {%d} {%d}; ", y, x, like(m, is_turned),
                    is_turned ? 0 : 1, y, y, 7, is_turned ? 0 : 1);
    }
    m->count++;
}

static void one_graph(uint64_t seed, long *runs)
{
    env e;
    env_init(&e, NULL, NULL);
    maker m = { .seed = seed, .count = 2, .is_turned = { false, true } };
    text_init(&m.out, &e);
    text_printf(&m.out, "sym N 1 5 40; in v0 f32 N,6; in v1 f32 6,N; ");
    const uint32_t nodes = 2 + pick(&m, VALUES - 4);
    while (m.count < nodes + 2) add_node(&m);
    text_printf(&m.out, "out v%u; out v%u; ", m.count - 1, m.count / 2 + 1);
    for (isa_level isa = ISA_PLAIN; isa < ISA_LEVEL_COUNT; isa = isa_level_next(isa)) {
        const model_device device = { .kind = "cpu", .isa = isa_level_name(isa), .is_exact = true };
        char why[1024];
        const char *wrong = model_compare(m.out.at, device, why, runs);
        if (!wrong) continue;
        test_failures++;
        (void)printf("%s\n  at %s: %s\n", m.out.at, isa_level_name(isa), wrong);
        break;
    }
    text_deinit(&m.out);
}

static void random_graphs(void)
{
    const long count = test_scale(60, 3000);
    long runs = 0;
    for (long i = 0; i < count && test_failures < 3; i++) one_graph((uint64_t)i + 1, &runs);
    CHECK(runs >= 2 * count);
}

static const test tests[] = { T(random_graphs), { 0 } };
TEST_MAIN(tests)
