/* SPDX-License-Identifier: Apache-2.0 */
/* Orders found from the bytes that works touch: known shapes, and random ones against every pair looked at. */
#include "core/order.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { WORKS = 80, TOUCHES = 3 };

typedef struct rig {
    env e;
    sinter_error error;
    arena a;
    order_touch touch[WORKS][TOUCHES];
    order_work work[WORKS];
    uint32_t count;
    order_edges edges;
} rig;

static void rig_init(rig *x)
{
    memset(x, 0, sizeof *x);
    env_init(&x->e, NULL, &x->error);
    arena_init(&x->a, &x->e);
}

/* What a work reads and writes, as letters of places that are eight bytes each: "ab>c". */
static void add(rig *x, const char *what)
{
    order_work *w = &x->work[x->count];
    w->touch = x->touch[x->count];
    bool is_written = false;
    for (; *what; what++) {
        if (*what == '!') w->keeps_place = true;
        else if (*what == '>') is_written = true;
        else
            x->touch[x->count][w->count++] = (order_touch){ .begin = (uintptr_t)(*what - 'a') * 8 + 1024,
                                                            .end = (uintptr_t)(*what - 'a') * 8 + 1032,
                                                            .is_written = is_written };
    }
    x->count++;
}

/* "0-1 1-2": by `to`, the later `from` first. */
static bool check(const char *const *works, const char *wanted)
{
    rig r, *x = &r;
    rig_init(x);
    for (; *works; works++) add(x, *works);
    bool ok = CHECK_EQ(order_find(&x->e, &x->a, x->work, x->count, &x->edges), SINTER_OK);
    char text[256] = "";
    for (uint32_t i = 0; i < x->edges.count; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%u-%u", i ? " " : "", x->edges.at[i].from,
                       x->edges.at[i].to);
    ok = CHECK_STR(text, wanted) && ok;
    arena_deinit(&x->a);
    return ok;
}
#define ORDER(wanted, ...) check((const char *const[]){ __VA_ARGS__, NULL }, wanted)

static void known_shapes(void)
{
    ORDER("", "a>b");
    ORDER("0-1 1-2", "a>b", "b>c", "c>d");
    ORDER("0-1 0-2 2-3 1-3", "a>b", "b>c", "b>d", "cd>e"); /* a diamond */
    ORDER("", "a>b", "a>c", "a>d");                        /* readers of one value */
    ORDER("1-2 0-2", "a>b", "a>c", "bc>d");                /* a join */
    ORDER("0-1", "a>b", "c>a");                            /* memory that is read is used again */
    ORDER("0-1", "a>b", "c>b");                            /* memory that is written is */
    ORDER("0-1 1-2", "a>b", "b>c", "bc>d");                /* what follows is left out */
    ORDER("0-1 1-2", "a>b", "b>b", "b>c");                 /* in place */
    ORDER("0-2 1-3 3-4 2-4", "a>b", "a>c", "b>d", "c>e", "de>f");
    ORDER("1-2 0-2 2-3 2-4", "a>b", "a>c", "!a>d", "a>e", "a>f");
}

/* Parts of one tensor: rows of eight elements of which each writes its own columns, and all of which are read. */
static void parts_of_one_tensor_are_apart(void)
{
    rig r, *x = &r;
    view part[3];
    float room[64];
    rig_init(x);
    for (uint32_t i = 0; i < 3; i++) {
        part[i] = (view){ .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { 8, i == 2 ? 8 : 4 }, .stride = { 8, 1 } };
        part[i].data = room + (i == 1 ? 4 : 0);
        x->touch[i][0] = (order_touch){ .v = &part[i], .is_written = i < 2 };
        CHECK(view_span(&part[i], &x->touch[i][0].begin, &x->touch[i][0].end));
        x->work[i] = (order_work){ .touch = x->touch[i], .count = 1 };
    }
    CHECK_EQ(order_find(&x->e, &x->a, x->work, 3, &x->edges), SINTER_OK);
    CHECK_EQ(x->edges.count, 2);
    for (uint32_t i = 0; i < x->edges.count; i++) CHECK_EQ(x->edges.at[i].to, 2);
    part[1].stride[0] = part[1].stride[1] = 0; /* all in one place that the first leaves alone */
    part[1].data = room + 3;
    x->edges.count = 0;
    CHECK(view_span(&part[1], &x->touch[1][0].begin, &x->touch[1][0].end));
    CHECK_EQ(order_find(&x->e, &x->a, x->work, 2, &x->edges), SINTER_OK);
    CHECK_EQ(x->edges.count, 1);
    arena_deinit(&x->a);
}

static bool conflict(const order_work *a, const order_work *b)
{
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = 0; k < b->count; k++)
            if ((a->touch[i].is_written || b->touch[k].is_written) && a->touch[i].begin < b->touch[k].end &&
                b->touch[k].begin < a->touch[i].end)
                return true;
    return a->keeps_place || b->keeps_place;
}

static void close_over(bool reach[WORKS][WORKS], uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t j = 0; j < count; j++) reach[i][j] |= reach[i][k] && reach[k][j];
}

/* The orders that follow are those of all conflicts, and without any one edge they would not be. */
static void random_works(void)
{
    static bool want[WORKS][WORKS], got[WORKS][WORKS], less[WORKS][WORKS];
    srand(7);
    for (uint32_t round = 0; round < 60; round++) {
        rig r, *x = &r;
        rig_init(x);
        const uint32_t count = 1 + (uint32_t)rand() % WORKS;
        for (uint32_t i = 0; i < count; i++) {
            char what[8] = { (char)('a' + rand() % 26), (char)(rand() % 2 ? '>' : 'a' + rand() % 26), '>',
                             (char)('a' + rand() % 26), (char)(rand() % 40 ? 0 : '!') };
            if (what[1] == '>') memmove(&what[1], &what[2], 4);
            add(x, what);
        }
        CHECK_EQ(order_find(&x->e, &x->a, x->work, count, &x->edges), SINTER_OK);
        memset(want, 0, sizeof want);
        memset(got, 0, sizeof got);
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t k = 0; k < i; k++) want[k][i] = conflict(&x->work[k], &x->work[i]);
        for (uint32_t i = 0; i < x->edges.count; i++) got[x->edges.at[i].from][x->edges.at[i].to] = true;
        for (uint32_t i = 0; i < x->edges.count; i++) {
            const order_edge edge = x->edges.at[i];
            bool follows = false;
            memcpy(less, got, sizeof less);
            less[edge.from][edge.to] = false;
            if (round % 10 == 0) close_over(less, count);
            else continue;
            follows = less[edge.from][edge.to];
            CHECK(!follows);
        }
        close_over(want, count);
        close_over(got, count);
        CHECK(memcmp(want, got, sizeof want) == 0);
        arena_deinit(&x->a);
    }
}

static void too_many_are_refused(void)
{
    rig r, *x = &r;
    rig_init(x);
    CHECK_EQ(order_find(&x->e, &x->a, x->work, ORDER_WORKS_MAX + 1, &x->edges), SINTER_INTERNAL);
    CHECK_EQ(order_find(&x->e, &x->a, x->work, 0, &x->edges), SINTER_OK);
    arena_deinit(&x->a);
}

/* Nothing conflicts here, but to see that would take minutes: what cannot be looked at runs one after the other. */
static void touches_without_number_make_a_chain(void)
{
    enum { MANY = 4096 };
    static order_touch touch[MANY];
    rig r, *x = &r;
    rig_init(x);
    for (uint32_t i = 0; i < MANY; i++) touch[i] = (order_touch){ .begin = i, .end = i + 1 };
    for (uint32_t i = 0; i < WORKS; i++) x->work[i] = (order_work){ .touch = touch, .count = MANY };
    CHECK_EQ(order_find(&x->e, &x->a, x->work, WORKS, &x->edges), SINTER_OK);
    CHECK(x->edges.count >= WORKS - 1 - ORDER_LOOKS_MAX / MANY / MANY);
    for (uint32_t i = WORKS / 2, k = 0; i < WORKS; i++) {
        while (k < x->edges.count && x->edges.at[k].to < i) k++;
        CHECK(k < x->edges.count && x->edges.at[k].from + 1 == i && x->edges.at[k].to == i);
    }
    arena_deinit(&x->a);
}

static const test tests[] = {
    T(known_shapes),         T(parts_of_one_tensor_are_apart),       T(random_works),
    T(too_many_are_refused), T(touches_without_number_make_a_chain), { 0 },
};
TEST_MAIN(tests)
