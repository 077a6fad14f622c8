/* SPDX-License-Identifier: Apache-2.0 */
/* test_opt_property.c - random small graphs compute the same before and after the whole pipeline, which verifies after
 * each pass. */
#include "graph_eval.h"
#include "opt/pipeline.h"
#include "test.h"

#include <math.h>

typedef struct maker {
    uint64_t seed;
    text out;
    uint32_t next, rows[64], cols[64], count;
    uint32_t id[64];
} maker;

static uint32_t below(maker *m, uint32_t n)
{
    return (uint32_t)(test_random(&m->seed) % n);
}

static void keep(maker *m, uint32_t id, uint32_t rows, uint32_t cols)
{
    if (m->count == 64) return;
    m->id[m->count] = id;
    m->rows[m->count] = rows;
    m->cols[m->count++] = cols;
}

/* All values are matrices of at most 4 by 4, positive or not: functions are those that stay finite. */
static void add_node(maker *m)
{
    static const char *const unary[] = { "relu", "neg", "sigmoid", "tanh", "erf", "identity", "abs", "gelu", "copy" };
    static const char *const binary[] = { "add", "sub", "mul", "max", "min" };
    const uint32_t i = below(m, m->count), x = m->id[i], r = m->rows[i], c = m->cols[i], y = m->next++;
    switch (below(m, 9)) {
    case 0: text_printf(&m->out, "%%%u = %s(%%%u)\n", y, unary[below(m, COUNT_OF(unary))], x); break;
    case 1:
    case 2: {
        const double value = below(m, 3) ? (double)below(m, 5) / 2 - 1 : below(m, 2);
        text_printf(&m->out, "const %%%u: f32[%s] = {%g}\n%%%u = %s(%%%u, %%%u)\n", m->next, below(m, 2) ? "" : "1",
                    value, y, binary[below(m, COUNT_OF(binary))], x, m->next);
        m->next++;
        break;
    }
    case 3:
        text_printf(&m->out, "const %%%u: f32[%u,%u] hash=0x%x\n%%%u = matmul(%%%u, %%%u)\n", m->next, c, c,
                    below(m, 1000), y, x, m->next);
        m->next++;
        break;
    case 4:
        text_printf(&m->out, "%%%u = transpose(%%%u) perm=[1,0]\n", y, x);
        keep(m, y, c, r);
        return;
    case 5:
        text_printf(&m->out, "%%%u = reshape(%%%u) shape=[1,%u]\n", y, x, r * c);
        keep(m, y, 1, r * c);
        return;
    case 6: text_printf(&m->out, "%%%u = softmax(%%%u) axis=%u\n", y, x, below(m, 2)); break;
    case 7:
        text_printf(&m->out, "%%%u = reduce(%%%u) kind=mean axes=[%u]\n", y, x, 1);
        keep(m, y, r, 1);
        return;
    default:
        for (uint32_t k = 0; k < 8; k++) {
            const uint32_t j = below(m, m->count);
            const bool fits = (m->rows[j] == r || m->rows[j] == 1) && (m->cols[j] == c || m->cols[j] == 1);
            if (!fits) continue;
            text_printf(&m->out, "%%%u = %s(%%%u, %%%u)\n", y, binary[below(m, COUNT_OF(binary))],
                        below(m, 2) ? x : m->id[j], below(m, 2) ? x : m->id[j]);
            /* Which two were drawn decides the shape only where both are the small one. */
            keep(m, y, 0, 0);
            m->count--;
            return;
        }
        text_printf(&m->out, "%%%u = relu(%%%u)\n", y, x);
    }
    keep(m, y, r, c);
}

/* Images of one axis, [1, rows, cols], whose channels are the rows, and matrices whose channels are the columns: what
 * lies behind a transposition may move before it. */
static void add_turned_node(maker *m)
{
    static const char *const unary[] = { "relu", "neg", "sigmoid", "tanh" };
    static const char *const binary[] = { "add", "sub", "mul", "max", "min" };
    const uint32_t i = m->count > 4 && below(m, 3) ? m->count - 1 - below(m, 4) : below(m, m->count), y = m->next++;
    const uint32_t x = m->id[i], r = m->rows[i], c = m->cols[i], k = m->next++;
    switch (below(m, 8)) {
    case 0:
    case 1:
        text_printf(&m->out, "%%%u = transpose(%%%u) perm=[0,2,1]\n", y, x);
        keep(m, y, c, r);
        return;
    case 2:
        text_printf(&m->out,
                    "const %%%u: f32[%u,%u,1] hash=0x%x\n%%%u = conv(%%%u, %%%u) stride=[1] dilation=[1] pad=[0,0]\n",
                    k, r, r, below(m, 1000), y, x, k);
        break;
    case 3:
        text_printf(&m->out, "const %%%u: f32[%u,%u] hash=0x%x\n%%%u = matmul(%%%u, %%%u)\n", k, c, c, below(m, 1000),
                    y, x, k);
        break;
    case 4: text_printf(&m->out, "%%%u = %s(%%%u)\n", y, unary[below(m, COUNT_OF(unary))], x); break;
    case 5:
        text_printf(&m->out, "const %%%u: f32[%u,%u] hash=0x%x\n", k, below(m, 2) ? r : 1, below(m, 2) ? c : 1,
                    below(m, 1000));
        text_printf(&m->out, "%%%u = %s(%%%u, %%%u)\n", y, binary[below(m, COUNT_OF(binary))], x, k);
        break;
    case 6: text_printf(&m->out, "%%%u = softmax(%%%u) axis=%u\n", y, x, 1 + below(m, 2)); break;
    default: {
        uint32_t other = x;
        for (uint32_t j = 0; j < m->count; j++)
            if (m->rows[j] == r && m->cols[j] == c && below(m, 2)) other = m->id[j];
        const bool is_first = below(m, 2);
        text_printf(&m->out, "%%%u = %s(%%%u, %%%u)\n", y, binary[below(m, COUNT_OF(binary))], is_first ? x : other,
                    is_first ? other : x);
    }
    }
    keep(m, y, r, c);
}

static void one_graph(uint64_t seed, bool is_turned)
{
    sinter_error error = { 0 };
    env e;
    env_init(&e, NULL, &error);
    maker m = { .seed = seed, .next = 3 };
    text_init(&m.out, &e);
    const uint32_t rows = is_turned ? 1 + below(&m, 4) : 3, cols = is_turned ? 1 + below(&m, 4) : 4;
    if (is_turned)
        text_printf(&m.out, "input %%1: f32[1,%u,%u] name=\"x\"\ninput %%2: f32[1,%u,%u] name=\"z\"\n", rows, cols,
                    cols, rows);
    else text_printf(&m.out, "input %%1: f32[3,4] name=\"x\"\ninput %%2: f32[1,4] name=\"z\"\n");
    keep(&m, 1, rows, cols);
    keep(&m, 2, is_turned ? cols : 1, is_turned ? rows : 4);
    const uint32_t nodes = 3 + below(&m, 20);
    for (uint32_t i = 0; i < nodes; i++) {
        if (is_turned) add_turned_node(&m);
        else add_node(&m);
    }
    uint32_t outputs = 0;
    for (uint32_t i = m.count; i-- > 2 && outputs < 3; outputs++)
        text_printf(&m.out, "output %%%u name=\"y%u\"\n", m.id[i], i);
    ir_graph *before = NULL, *g = NULL, *written = NULL;
    arena a;
    arena_init(&a, &e);
    view in[2] = { { 0 } }, x[4] = { { 0 } }, y[4] = { { 0 } };
    const opt_options o = { .math = OPT_MATH_FP32, .verify = true };
    bool ok = CHECK(ir_parse(&e, m.out.at, m.out.length, &before) == SINTER_OK) &&
              CHECK(ir_parse(&e, m.out.at, m.out.length, &g) == SINTER_OK);
    ok = ok && CHECK(opt_run(&e, g, &o) == SINTER_OK);
    ok = ok && CHECK(graph_inputs(before, seed, &a, in) == SINTER_OK) &&
         CHECK(graph_eval(before, in, &a, x) == SINTER_OK) && CHECK(graph_eval(g, in, &a, y) == SINTER_OK);
    for (uint32_t i = 0; ok && i < outputs; i++) ok = CHECK_NEAR(graph_gap(&y[i], &x[i]), 0, 1e-4);
    ok = ok && CHECK(graph_written(g, &a, &written) == SINTER_OK) && CHECK(graph_eval(written, in, &a, y) == SINTER_OK);
    for (uint32_t i = 0; ok && i < outputs; i++) ok = CHECK_NEAR(graph_gap(&y[i], &x[i]), 0, 1e-4);
    if (!ok) printf("seed %llu: %s\n%s\n", (unsigned long long)seed, error.text, m.out.at);
    arena_deinit(&a);
    ir_graph_destroy(written);
    ir_graph_destroy(g);
    ir_graph_destroy(before);
    text_deinit(&m.out);
}

static void random_graphs(void)
{
    const long count = test_scale(300, 20000);
    for (long i = 0; i < count && test_failures < 3; i++) one_graph((uint64_t)i + 1, false);
}

static void turned_graphs(void)
{
    const long count = test_scale(3000, 200000);
    for (long i = 0; i < count && test_failures < 3; i++) one_graph((uint64_t)i + 1, true);
}

static const test tests[] = { T(random_graphs), T(turned_graphs), { 0 } };
TEST_MAIN(tests)
