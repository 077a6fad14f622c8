/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_ops.c - every operator that is imported has a row, every row makes graphs, and every op of the op table
 * comes up in one of them. */
#include "graph_ops.h"
#include "graph_run.h"
#include "onnx/import.h"
#include "ops/ops.h"
#include "test.h"

#include <ctype.h>

/* Ops that no row gives, and why. */
static const struct {
    const char *name, *reason;
} exceptions[] = {
    { "random", "its numbers are nothing to compare" },
    { "non_zero_rows", "made behind the rules, for devices that find rows themselves" },
    { "nms_rows", "the same" },
    { "excite", "made behind the groups, for devices that have a kernel for it" },
    { "norm_matmul", "the same" },
    { "copy", "made where an output's value is another output, or behind the passes" },
};

static bool is_met[OP_COUNT];

/* Marks the ops of a graph's text: the names in front of parentheses. */
static void mark(void *user, const char *stage, const char *text_at, size_t length)
{
    (void)user;
    (void)stage;
    for (size_t i = 0; i < length; i++) {
        size_t from = i;
        op_id op;
        if (text_at[i] != '(') continue;
        while (from && (isalnum((unsigned char)text_at[from - 1]) || text_at[from - 1] == '_')) from--;
        if (op_parse(text_at + from, i - from, &op)) is_met[op] = true;
    }
}

/* Builds and runs a model whose graphs are looked at. */
static void look(const gmodel *m)
{
    gverdict v = { .stage = "" };
    const grun o = { .device = "cpu", .tune = SINTER_TUNE_OFF, .threads = 1, .stage = mark };
    if (!m->scope.at[0].result.count) return;
    if (!CHECK(grun_model(m, &o, &v))) (void)printf("%s: %s\n", v.stage, v.text);
}

static void each_operator_has_a_row(void)
{
    onnx_op_row row;
    for (uint32_t i = 0; onnx_op_at(i, &row); i++) {
        char name[96];
        (void)snprintf(name, sizeof name, "%s%s%s", row.domain, *row.domain ? "." : "", row.name);
        const gop *op = gop_find(name);
        const bool is_fine = op && (op->add || op->reason);
        if (!is_fine) (void)printf("%s has no row in graph_ops_*.c\n", name);
        (void)CHECK(is_fine);
    }
}

/* Some seed gives a graph that has the operator. */
static void each_row_grows(void)
{
    const uint32_t most = (uint32_t)test_scale(6, 20);
    for (uint32_t i = 0; gop_at(i); i++) {
        const gop *op = gop_at(i);
        bool found = !op->add || (op->name[0] >= 'a' && !strchr(op->name, '.'));
        char refused[1024] = "";
        uint32_t count = 0;
        for (uint64_t seed = 1; seed < 40 && count < most; seed++) {
            env e;
            arena a;
            gmodel m;
            env_init(&e, NULL, NULL);
            arena_init(&a, &e);
            gmodel_init(&m, &e, &a);
            const grow_options o = { .nodes = 1, .is_static = seed % 3 == 0, .only = op->name };
            if (!grow_model(&m, seed, &o)) (void)snprintf(refused, sizeof refused, "%s", m.error);
            bool is_there = false;
            for (uint32_t k = 0; k < m.node.count; k++) is_there |= !strcmp(m.node.at[k].op, op->name) && !m.error[0];
            if (is_there) look(&m);
            count += is_there;
            arena_deinit(&a);
        }
        found |= count > 0;
        if (!found) (void)printf("%s: %s\n", op->name, refused);
        (void)CHECK(found);
    }
    judge_close();
}

static bool is_excepted(uint32_t op)
{
    for (uint32_t k = 0; k < COUNT_OF(exceptions); k++)
        if (!strcmp(exceptions[k].name, op_at((op_id)op)->name)) return true;
    return false;
}

static bool all_are_met(void)
{
    for (uint32_t i = 0; i < OP_COUNT; i++)
        if (!is_met[i] && !is_excepted(i)) return false;
    return true;
}

/* Behind the rows of each_row_grows, whose graphs have most of them. */
static void each_op_is_met(void)
{
    for (uint64_t seed = 1; seed < 4000 && !all_are_met(); seed++) {
        env e;
        arena a;
        gmodel m;
        env_init(&e, NULL, NULL);
        arena_init(&a, &e);
        gmodel_init(&m, &e, &a);
        if (grow_model(&m, seed, &(grow_options){ .nodes = 10 })) look(&m);
        arena_deinit(&a);
    }
    judge_close();
    for (uint32_t i = 0; i < OP_COUNT; i++)
        if (!CHECK(is_met[i] || is_excepted(i))) (void)printf("op %s comes up in no graph\n", op_at((op_id)i)->name);
}

static const test tests[] = {
    T(each_operator_has_a_row),
    T(each_row_grows),
    T(each_op_is_met),
    { 0 },
};
TEST_MAIN(tests)
