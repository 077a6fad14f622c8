/* SPDX-License-Identifier: Apache-2.0 */
/* test_tree.c - tree_ensemble: small tables whose answer a reader can check, and tables that are none. */
#include "op_rig.h"
#include "ops/tree.h"

/* A table is a list of words. f32 as words: 1 is 0x3f800000. */
enum { ONE = 0x3f800000, TWO = 0x40000000, FOUR = 0x40800000 };
#define NODE(feature, flags) (4 * (feature) | TREE_NODE | (flags))
#define U32 SINTER_DTYPE_U32

/* clang-format off */
static void compares(void)
{
    /* x[1] <= 2 ? 1 : 4 */
    TWICE {
        add(x, F32, SHAPE(3, 2), L(0, 2,  9, 3,  0, NAN));
        add(x, U32, SHAPE(3, 4), L(TWO, 0, NODE(1, 0), 2,  ONE, 0, 0, 2,  FOUR, 0, 0, 4));
        run(x, OP_tree_ensemble, "trees=1"); EXPECT(0, SHAPE(3, 1), L(1, 4, 4));
    }
    /* What is no number goes to the first child; x[0] == 2 */
    TWICE {
        add(x, F32, SHAPE(4, 1), L(2, 1, 3, NAN));
        add(x, U32, SHAPE(3, 4), L(TWO, 0, NODE(0, TREE_NAN | TREE_EQ), 2,  ONE, 0, 0, 2,  FOUR, 0, 0, 4));
        run(x, OP_tree_ensemble, "trees=1"); EXPECT(0, SHAPE(4, 1), L(1, 4, 4, 1));
    }
    /* x[0] is 1 or 4 */
    TWICE {
        add(x, F32, SHAPE(3, 1), L(1, 2, 4));
        add(x, U32, SHAPE(5, 4), L(3, 2, NODE(0, TREE_MEMBER), 2,  ONE, 0, 0, 2,  TWO, 0, 0, 4,
                                   ONE, 0, TREE_ENTRY, 0,  FOUR, 0, TREE_ENTRY, 0));
        run(x, OP_tree_ensemble, "trees=1"); EXPECT(0, SHAPE(3, 1), L(1, 2, 1));
    }
}

static void aggregates(void)
{
    static const struct { const char *attrs; double zero, one, two; } cases[] = {
        { "trees=2 targets=3", 3, 4, 0 },          { "kind=mean trees=2 targets=3", 1.5, 2, 0 },
        { "kind=min trees=2 targets=3", 1, 4, 0 }, { "kind=max trees=2 targets=3", 2, 4, 0 },
    };
    /* The first tree is a leaf of 1 for target 0; the second a list: 2 for target 0, 4 for target 1. */
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        TWICE {
            add(x, F32, SHAPE(1, 1), L(0));
            add(x, U32, SHAPE(4, 4), L(ONE, 0, 0, 0,  2, 2, TREE_LIST, 2,
                                       TWO, 0, TREE_ENTRY, 0,  FOUR, 0, TREE_ENTRY, 1));
            run(x, OP_tree_ensemble, cases[i].attrs);
            EXPECT(0, SHAPE(1, 3), L(cases[i].zero, cases[i].one, cases[i].two));
        }
}

static void takes_doubles(void)
{
    /* 1.5 and 2.5 as f64 are words 0x3ff80000 and 0x40040000, behind a word of 0. */
    TWICE {
        add(x, SINTER_DTYPE_F64, SHAPE(2, 1), L(1.5, 1.5000000001));
        add(x, U32, SHAPE(3, 4), L(0, 0x3ff80000, NODE(0, 0), 2,  0, 0x3ff80000, 0, 2,  0, 0x40040000, 0, 4));
        run(x, OP_tree_ensemble, "trees=1"); EXPECT(0, SHAPE(2, 1), L(1.5, 2.5));
    }
}

static void refuses_tables_that_are_none(void)
{
    static const struct { list rows; const char *why; } cases[] = {
        { { 12, { 0, 0, NODE(0, 0), 0,  0, 0, 0, 2,  0, 0, 0, 4 } }, "not behind its node" },       /* itself */
        { { 12, { 0, 0, NODE(0, 0), 4,  0, 0, 0, 2,  0, 0, 0, 4 } }, "not behind its node" },       /* one child */
        { { 12, { 0, 0, NODE(0, 0), 0xFFFFFFFF,  0, 0, 0, 2,  0, 0, 0, 4 } }, "not behind its node" },
        { { 12, { 0, 0, NODE(7, 0), 2,  0, 0, 0, 2,  0, 0, 0, 4 } }, "feature that is not there" },
        { { 12, { 0, 0, NODE(0, 0), 2,  0, 0, 0, 2,  0, 0, 0, 0 } }, "neither a node nor a leaf" }, /* back */
        { { 12, { 0, 0, NODE(0, 0), 2,  0, 0, 0, 2,  0, 0, TREE_ENTRY, 2 } }, "neither a node nor a leaf" },
        { { 12, { 0, 0, NODE(0, 0), 2,  0, 0, 4, 2,  0, 0, 0, 4 } }, "a leaf has a feature" },
        { { 8, { 1, 9, TREE_LIST, 0,  0, 0, TREE_ENTRY, 0 } }, "list is not behind" },
        { { 8, { 0, 1, TREE_LIST, 0,  0, 0, TREE_ENTRY, 0 } }, "list is not behind" },
        { { 8, { 1, 1, TREE_LIST, 0,  0, 0, TREE_ENTRY, 5 } }, "target that is not there" },
        { { 12, { 3, 0xFFFFFFFF, NODE(0, TREE_MEMBER), 2,  0, 0, 0, 2,  0, 0, 0, 4 } }, "set is not behind" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        TWICE {
            add(x, F32, SHAPE(1, 2), L(0, 0));
            add(x, U32, L(cases[i].rows.count / 4, 4), cases[i].rows);
            run(x, OP_tree_ensemble, "trees=1");
            CHECK_EQ(x->status, SINTER_INVALID_MODEL);
            CHECK_HAS(x->error.text, cases[i].why);
        }
    TWICE {
        add(x, F32, SHAPE(1, 2), L(0, 0)); add(x, U32, SHAPE(1, 4), L(0, 0, 0, 0));
        run(x, OP_tree_ensemble, "trees=2"); CHECK_HAS(x->error.text, "more trees than rows");
    }
    TWICE {
        add(x, F32, SHAPE(1, 2), L(0, 0)); add(x, U32, SHAPE(1, 4), L(0, 0, 0, 0));
        run(x, OP_tree_ensemble, "kind=prod trees=1"); CHECK_HAS(x->error.text, "expected sum, mean, min or max");
    }
}
/* clang-format on */

/* Lists that overlap would be read again and again: all of them together are no longer than the table. */
static void bounds_lists_together(void)
{
    enum { ROWS = 100 };
    tree_row row[ROWS];
    tree_facts facts;
    for (uint32_t i = 0; i < ROWS; i++)
        row[i] = i < 50 ? (tree_row){ { 50, 50 }, TREE_LIST, 2 * i } : (tree_row){ { 0, 0 }, TREE_ENTRY, 0 };
    CHECK_HAS(tree_check(row, ROWS, 50, 1, 0, &facts), "list is not behind");
    for (uint32_t i = 0; i < 50; i++) row[i].value[1] = 2;
    CHECK(!tree_check(row, ROWS, 50, 1, 0, &facts));
}

/* Made-up tables are tables. */
static void makes_tables(void)
{
    uint32_t seed = 1;
    tree_row row[500];
    tree_facts facts;
    for (int i = 0; i < 2000; i++) {
        seed = seed * 1664525u + 1013904223u;
        const int64_t count = seed >> 16 & 255, trees = count ? (seed >> 8 & 15) % (count + 1) : 0;
        const int64_t targets = 1 + (seed >> 24 & 3), features = seed >> 26 & 7;
        tree_make(row, count, trees, targets, features, i % 3 ? F32 : SINTER_DTYPE_F64, seed, i % 2);
        const char *why = tree_check(row, count, trees, targets, features, &facts);
        if (!CHECK(!why)) printf("%lld rows, %lld trees: %s\n", (long long)count, (long long)trees, why);
    }
}

static const test tests[] = {
    T(compares),     T(aggregates), T(takes_doubles), T(refuses_tables_that_are_none), T(bounds_lists_together),
    T(makes_tables), { 0 },
};
TEST_MAIN(tests)
