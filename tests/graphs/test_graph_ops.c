/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_ops.c - every operator that is imported has a row, and every row makes graphs. */
#include "graph_ops.h"
#include "onnx/import.h"
#include "test.h"

static void each_operator_has_a_row(void)
{
    onnx_op_row row;
    for (uint32_t i = 0; onnx_op_at(i, &row); i++) {
        char name[96];
        (void)snprintf(name, sizeof name, "%s%s%s", row.domain, *row.domain ? "." : "", row.name);
        const gop *op = gop_find(name);
        if (!op) op = gop_find(row.name);
        const bool is_fine = op && (op->add || op->reason);
        if (!is_fine) (void)printf("%s has no row in graph_ops_*.c\n", name);
        (void)CHECK(is_fine);
    }
}

/* Some seed gives a graph that has the operator. */
static void each_row_grows(void)
{
    for (uint32_t i = 0; gop_at(i); i++) {
        const gop *op = gop_at(i);
        bool found = !op->add || op->name[0] >= 'a';
        if (!strncmp(op->name, "com.", 4) || !strncmp(op->name, "ai.", 3)) found = !op->add;
        char refused[1024] = "";
        for (uint64_t seed = 1; seed < 40 && !found; seed++) {
            env e;
            arena a;
            gmodel m;
            env_init(&e, NULL, NULL);
            arena_init(&a, &e);
            gmodel_init(&m, &e, &a);
            if (!grow_model(&m, seed, &(grow_options){ .nodes = 1, .is_static = true, .only = op->name }))
                (void)snprintf(refused, sizeof refused, "%s", m.error);
            for (uint32_t k = 0; k < m.node.count; k++) found |= !strcmp(m.node.at[k].op, op->name) && !m.error[0];
            arena_deinit(&a);
        }
        if (!found) (void)printf("%s: %s\n", op->name, refused);
        (void)CHECK(found);
    }
    judge_close();
}

static const test tests[] = {
    T(each_operator_has_a_row),
    T(each_row_grows),
    { 0 },
};
TEST_MAIN(tests)
