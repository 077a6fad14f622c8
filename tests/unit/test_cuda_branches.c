/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs with branches against the driver that is none, which runs nodes in any order that their edges permit: which
 * launch waits for which, and that it is enough. */
#include "cuda_rig.h"

/* ---- programs of steps given as operands ---- */

typedef struct plan_of {
    uint32_t in, second, out; /* values; second 0: none */
    wish wish;
} plan_of;

static uint32_t ids[STEPS_MAX][3];
static view views[2];

/* The rig's program, of other steps. */
static sinter_status make(rig *x, const plan_of *from, uint32_t count)
{
    const int64_t size[] = { COUNT };
    for (uint32_t i = 0; i < 2; i++) CHECK(view_init(&views[i], SINTER_DTYPE_F32, 1, size, NULL));
    if (x->program) b->program_destroy(&x->e, x->d, x->program);
    x->program = NULL;
    for (uint32_t i = 0; i < count; i++) {
        wish w = from[i].wish;
        w.has_second = from[i].second != 0;
        ids[i][0] = from[i].in;
        ids[i][1] = from[i].second;
        ids[i][2] = from[i].out;
        x->tactic[i] = tactic_of(w);
        x->step[i] = (program_step){ .kernel = &test_kernel.base,
                                     .problem = x->p,
                                     .tactic = &x->tactic[i],
                                     .count_in = 1 + w.has_second,
                                     .count_out = 1,
                                     .in = views,
                                     .out = views,
                                     .in_id = &ids[i][0],
                                     .out_id = &ids[i][2],
                                     .index = i };
    }
    return b->program_create(&x->e, x->d, x->step, count, false, NULL, &x->program);
}

static bool start(rig *x, const plan_of *from, uint32_t count)
{
    if (!rig_start(x, &(wish){ 0 }, 1)) return false;
    for (uint32_t i = 3; i < 8; i++) x->address[i] = b->memory_alloc(&x->e, x->d, COUNT * sizeof(float));
    x->run.order = ORDER_FREE;
    return CHECK_EQ(make(x, from, count), SINTER_OK);
}

/* Runs, and says the edges of the graph: "0-1 1-2". */
static const char *edges(rig *x)
{
    static char line[128];
    fake_edge_info edge[16];
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    const uint32_t count = fake->graph_edges(edge, 16);
    line[0] = 0;
    for (uint32_t i = 0; i < count && i < 16; i++) {
        (void)snprintf(line + strlen(line), sizeof line - strlen(line), "%s%u-%u", i ? " " : "", edge[i].from,
                       edge[i].to);
        CHECK_EQ(edge[i].data.type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    }
    return line;
}

#define ALONE                                                                                                          \
    {                                                                                                                  \
        .has_no_work = 1                                                                                               \
    }

/* ---- shapes ---- */

static const plan_of diamond[] = { { 1, 0, 2, ALONE }, { 2, 0, 3, ALONE }, { 2, 0, 4, ALONE }, { 3, 4, 5, ALONE } };

static void a_diamond_in_any_order(void)
{
    bool was_swapped = false;
    for (uint32_t seed = 0; seed < 8; seed++) {
        rig r, *x = &r;
        if (!start(x, diamond, 4)) return;
        fake->set_order(seed);
        CHECK_EQ(put(x, 1, 10), SINTER_OK);
        CHECK_STR(edges(x), "0-1 0-2 2-3 1-3");
        CHECK_EQ_F(get(x, 5), 12 + 1 + 12); /* ((10 + 1) + 1) + 1 + ((10 + 1) + 1) */
        CHECK_EQ(x->seen.programmatic, 3);
        was_swapped = was_swapped || seed;
        /* The same program as a chain, and again with branches. */
        x->run.order = ORDER_CHAIN;
        CHECK_STR(edges(x), "0-1 1-2 2-3");
        CHECK_EQ_F(get(x, 5), 25);
        CHECK_STR(edges(x), "0-1 1-2 2-3");
        x->run.order = ORDER_FREE;
        CHECK_STR(edges(x), "0-1 0-2 2-3 1-3");
        CHECK_EQ(fake->calls("cuGraphInstantiateWithParams"), 3);
        const long calls = fake->calls(NULL);
        CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
        CHECK_EQ(fake->calls(NULL) - calls, 1);
        CHECK(rig_close(x));
    }
    CHECK(was_swapped);
}

static void a_join_of_roots(void)
{
    rig r, *x = &r;
    static const plan_of join[] = { { 1, 0, 3, ALONE }, { 2, 0, 4, ALONE }, { 3, 4, 5, ALONE } };
    if (!start(x, join, 3)) return;
    CHECK_EQ(put(x, 1, 10), SINTER_OK);
    CHECK_EQ(put(x, 2, 20), SINTER_OK);
    CHECK_STR(edges(x), "1-2 0-2");
    CHECK_EQ_F(get(x, 5), 11 + 1 + 21);
    CHECK(rig_close(x));
}

/* Value 6 lies where value 3 lay: its writer waits for the last reader of that. */
static void memory_that_is_used_again(void)
{
    for (uint32_t seed = 1; seed < 6; seed++) {
        rig r, *x = &r;
        static const plan_of again[] = {
            { 1, 0, 3, ALONE }, { 3, 0, 4, ALONE }, { 2, 0, 6, ALONE }, { 6, 4, 5, ALONE }
        };
        if (!start(x, again, 4)) return;
        fake->set_order(seed);
        void *own = x->address[6];
        CHECK_EQ(put(x, 1, 10), SINTER_OK);
        CHECK_EQ(put(x, 2, 20), SINTER_OK);
        CHECK_STR(edges(x), "0-1 2-3 1-3");
        x->address[6] = x->address[3];
        CHECK_STR(edges(x), "0-1 1-2 2-3"); /* other addresses, other edges */
        CHECK_EQ_F(get(x, 5), 21 + 1 + 12);
        CHECK_EQ(fake->calls("cuGraphInstantiateWithParams"), 2);
        x->address[6] = own;
        CHECK_STR(edges(x), "0-1 1-2 2-3"); /* a chain is always right */
        CHECK_EQ(fake->calls("cuGraphInstantiateWithParams"), 2);
        CHECK_EQ_F(get(x, 5), 34);
        x->address[6] = own;
        CHECK(rig_close(x));
    }
}

/* What moves without meeting anything keeps the graph. */
static void memory_that_moves(void)
{
    rig r, *x = &r;
    if (!start(x, diamond, 4)) return;
    CHECK_EQ(put(x, 1, 10), SINTER_OK);
    CHECK_STR(edges(x), "0-1 0-2 2-3 1-3");
    void *const old = x->address[1];
    x->address[1] = x->address[6];
    CHECK_EQ(put(x, 1, 20), SINTER_OK);
    const long requests = x->memory.requests;
    CHECK_STR(edges(x), "0-1 0-2 2-3 1-3");
    CHECK_EQ(x->memory.requests, requests);
    CHECK_EQ(fake->calls("cuGraphInstantiateWithParams"), 1);
    CHECK_EQ(fake->calls("cuGraphExecKernelNodeSetParams"), 1);
    CHECK_EQ_F(get(x, 5), 22 + 1 + 22);
    x->address[1] = old;
    CHECK(rig_close(x));
}

/* One workspace serves all: those that use it run one after the other; so do the launches of a step. */
static void workspaces_and_steps_of_several_launches(void)
{
    rig r, *x = &r;
    static const plan_of shared[] = { { 1, 0, 3, { 0 } }, { 1, 0, 4, { 0 } }, { 1, 0, 5, ALONE } };
    static const plan_of two[] = { { 1, 0, 3, { .launches = 2, .has_no_work = 1 } },
                                   { 1, 0, 4, { .launches = 2, .has_no_work = 1 } },
                                   { 3, 4, 5, ALONE } };
    if (!start(x, shared, 3)) return;
    CHECK_STR(edges(x), "0-1");
    CHECK_EQ(make(x, two, 3), SINTER_OK);
    CHECK_EQ(put(x, 1, 10), SINTER_OK);
    CHECK_STR(edges(x), "0-1 2-3 3-4 1-4");
    CHECK_EQ_F(get(x, 5), 12 + 1 + 12);
    CHECK(rig_close(x));
}

/* Large kernels keep their place; small ones beside each other do not. */
static void what_fills_the_device_keeps_its_place(void)
{
    rig r, *x = &r;
    static const plan_of large[] = { { 1, 0, 2, ALONE },
                                     { 2, 0, 3, { .has_no_work = 1, .blocks = 4096 } },
                                     { 2, 0, 4, ALONE },
                                     { 2, 0, 5, ALONE },
                                     { 3, 4, 6, ALONE } };
    if (!start(x, large, 5)) return;
    CHECK_STR(edges(x), "0-1 0-2 0-3 2-4 1-4");
    x->run.order = ORDER_SMALL;
    CHECK_STR(edges(x), "0-1 1-2 1-3 2-4");
    CHECK(rig_close(x));
}

static void each_failure_is_clean(void)
{
    for (long n = 1;; n++) {
        rig r, *x = &r;
        if (!start(x, diamond, 4)) return;
        fake->fail_at(n, CUDA_ERROR_OUT_OF_MEMORY);
        const sinter_status s = b->program_launch(x->d, x->program, &x->run);
        const bool was_reached = fake->failed() != NULL;
        CHECK(!was_reached || s != SINTER_OK || !strncmp(fake->failed(), "cuCtxP", 6)); /* pop: too late to matter */
        fake->fail_at(0, CUDA_SUCCESS);
        if (s != SINTER_OK) CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
        CHECK(rig_close(x));
        if (!was_reached) break;
    }
}

static const test tests[] = {
    T(a_diamond_in_any_order),
    T(a_join_of_roots),
    T(memory_that_is_used_again),
    T(memory_that_moves),
    T(workspaces_and_steps_of_several_launches),
    T(what_fills_the_device_keeps_its_place),
    T(each_failure_is_clean),
    { 0 },
};
TEST_MAIN(tests)
