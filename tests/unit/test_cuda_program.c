/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's programs against the driver that is none: what is launched, in which graph, with which addresses, and how
 * often the driver is called. */
#include "cuda_rig.h"

/* ---- graphs ---- */

static void a_chain_of_programmatic_edges(void)
{
    for (int sm = 86; sm <= 90; sm += 4) {
        rig r, *x = &r;
        const wish wishes[] = {
            { .launches = 2 }, { .is_empty = 1 }, { .cluster = sm == 90 ? 4 : 0 }, { .variant = 1 }
        };
        fake_edge_info edge[8];
        rig_init(x, -1);
        arena_init(&x->a, &x->e);
        fake->set_devices(1, sm);
        CHECK_EQ(rig_open(x, "0"), SINTER_OK);
        CHECK_EQ(rig_memory(x, 4), SINTER_OK);
        CHECK_EQ(rig_steps(x, wishes, 4, false, NULL), SINTER_OK);
        CHECK_EQ(fake->calls("nvrtcCompileProgram"), 2); /* the first three are of one code */
        CHECK_EQ(fake->calls("cuGraphCreate"), 0);
        CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
        CHECK_EQ(fake->graph_nodes(), 4);
        CHECK_EQ(fake->graph_edges(edge, 8), 3);
        for (uint32_t i = 0; i < 3; i++) {
            CHECK_EQ(edge[i].from, i);
            CHECK_EQ(edge[i].to, i + 1);
            CHECK_EQ(edge[i].data.type, sm >= 90);
            CHECK_EQ(edge[i].data.from_port, sm >= 90);
            CHECK_EQ(edge[i].data.to_port, 0);
        }
        CHECK_EQ(x->seen.launches, 4);
        CHECK_EQ(x->seen.in_graph, 4);
        CHECK_EQ(x->seen.programmatic, sm >= 90 ? 3 : 0);
        CHECK(b->program_memory(x->program) > 0);
        CHECK(rig_close(x));
    }
}

static void launches_again_with_one_call(void)
{
    rig r, *x = &r;
    const wish wishes[] = { { 0 }, { .can_fault = 1 }, { .has_map = 1 } };
    if (!rig_start(x, wishes, 3)) return;
    CHECK_EQ(put(x, 1, 5), SINTER_OK);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ_F(get(x, 4), 8);
    CHECK_EQ(put(x, 1, 7), SINTER_OK);
    const long calls = fake->calls(NULL), requests = x->memory.requests;
    for (int i = 0; i < 10; i++) CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(fake->calls(NULL) - calls, 10);
    CHECK_EQ(x->memory.requests, requests);
    CHECK_EQ(fake->calls("cuGraphLaunch"), 11);
    CHECK_EQ(fake->calls("cuGraphInstantiateWithParams"), 1);
    CHECK_EQ(fake->calls("cuTensorMapEncodeTiled"), 1);
    CHECK_EQ_F(get(x, 4), 10);
    CHECK(rig_close(x));
}

static void the_first_launch_may_be_one_call(void)
{
    rig r, *x = &r;
    const wish wishes[] = { { 0 }, { .has_map = 1 } };
    if (!rig_start(x, wishes, 2)) return;
    CHECK_EQ(put(x, 1, 5), SINTER_OK);
    CHECK_EQ(b->program_ready(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(x->seen.launches, 0);
    const long calls = fake->calls(NULL);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(fake->calls(NULL) - calls, 1);
    CHECK_EQ_F(get(x, 3), 7);
    CHECK(rig_close(x));
}

static void updates_what_changed(void)
{
    rig r, *x = &r;
    const wish wishes[] = { { 0 }, { 0 }, { .has_map = 1 }, { .can_fault = 1 } };
    if (!rig_start(x, wishes, 4)) return;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    /* The first value moves: one node reads it. */
    void *old = x->address[1];
    x->address[1] = b->memory_alloc(&x->e, x->d, COUNT * sizeof(float));
    CHECK_EQ(put(x, 1, 20), SINTER_OK);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(fake->calls("cuGraphExecKernelNodeSetParams"), 1);
    CHECK_EQ_F(get(x, 5), 24);
    b->memory_free(&x->e, x->d, old, 0);
    /* One in the middle moves: a node writes it, the next has a tensor map over it. */
    old = x->address[3];
    x->address[3] = b->memory_alloc(&x->e, x->d, COUNT * sizeof(float));
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(fake->calls("cuGraphExecKernelNodeSetParams"), 3);
    CHECK_EQ(fake->calls("cuTensorMapEncodeTiled"), 2);
    CHECK_EQ_F(get(x, 5), 24);
    b->memory_free(&x->e, x->d, old, 0);
    CHECK_EQ(fake->calls("cuGraphInstantiateWithParams"), 1);
    /* A moved value that a timed launch saw first is in the graph, too. */
    step_clock clock[16] = { { 0 } };
    old = x->address[1];
    x->address[1] = b->memory_alloc(&x->e, x->d, COUNT * sizeof(float));
    CHECK_EQ(put(x, 1, 30), SINTER_OK);
    x->run.clock = clock;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    b->memory_free(&x->e, x->d, old, 0);
    x->run.clock = NULL;
    CHECK_EQ(put(x, 1, 40), SINTER_OK);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ_F(get(x, 5), 44);
    CHECK(rig_close(x));
}

static void an_update_that_fails_is_made_good(void)
{
    rig r, *x = &r;
    const wish wishes[] = { { 0 }, { 0 } };
    if (!rig_start(x, wishes, 2)) return;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    void *old = x->address[2];
    x->address[2] = b->memory_alloc(&x->e, x->d, COUNT * sizeof(float));
    CHECK_EQ(put(x, 1, 1), SINTER_OK);
    fake->fail_calls("cuGraphExecKernelNodeSetParams", CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_INTERNAL);
    CHECK_HAS(x->error.text, "updating a graph");
    fake->fail_calls(NULL, CUDA_SUCCESS);
    b->memory_free(&x->e, x->d, old, 0);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ_F(get(x, 3), 3);
    CHECK_EQ(fake->calls("cuGraphInstantiateWithParams"), 2);
    CHECK(rig_close(x));
}

static void empty_programs(void)
{
    rig r, *x = &r;
    const wish wishes[] = { { .is_empty = 1 } };
    if (!rig_start(x, wishes, 1)) return;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(fake->calls("cuGraphCreate"), 0);
    b->program_destroy(&x->e, x->d, x->program);
    x->program = NULL;
    CHECK_EQ(rig_steps(x, NULL, 0, false, NULL), SINTER_OK);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    double ns = 1;
    CHECK_EQ(b->program_time(x->d, x->program, &x->run, 3, &ns), SINTER_OK);
    CHECK_EQ_F(ns, 0);
    CHECK(rig_close(x));
}

/* Large blocks and wide clusters are asked for once. */
static void what_a_kernel_needs_is_allowed(void)
{
    rig r, *x = &r;
    const wish wishes[] = { { .shared = 100 << 10 }, { .shared = 64 << 10 }, { .cluster = 16 } };
    if (!rig_start(x, wishes, 3)) return;
    CHECK_EQ(fake->calls("cuKernelSetAttribute"), 2 + 3); /* and each code states how memory is divided */
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(x->seen.cluster, 16);
    b->program_destroy(&x->e, x->d, x->program);
    x->program = NULL;
    CHECK_EQ(rig_steps(x, &(wish){ .shared = 228 << 10 }, 1, false, NULL), SINTER_INTERNAL);
    CHECK_HAS(x->error.text, "a block wants 233472 bytes of shared memory, it can have 232448");
    CHECK_HAS(x->error.text, "binding kernel 'test_kernel'");
    CHECK_EQ(rig_steps(x, &(wish){ .cluster = 3 }, 1, false, NULL), SINTER_INTERNAL);
    CHECK_HAS(x->error.text, "clusters of 3 blocks in a grid of 32");
    CHECK_EQ(rig_steps(x, &(wish){ .does_not_bind = 1 }, 1, false, NULL), SINTER_INVALID_MODEL);
    CHECK(rig_close(x));
}

/* A driver that wants a context for a launch gets one, from the second launch on without asking first. */
static void a_driver_that_wants_a_context(void)
{
    rig r, *x = &r;
    if (!rig_start(x, &(wish){ 0 }, 1)) return;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    fake->set_launch_needs_context(true);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    const long launches = fake->calls("cuGraphLaunch");
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(fake->calls("cuGraphLaunch") - launches, 1);
    CHECK_EQ(x->seen.launches, 3);
    CHECK(rig_close(x));
}

/* ---- programs of one launch ---- */

static void once_programs_have_no_graph(void)
{
    rig r, *x = &r;
    const wish wishes[] = { { .cluster = 2 }, { .can_fault = 1 } }, other[] = { { .cluster = 2 }, { .launches = 2 } };
    if (!rig_start(x, NULL, 0)) return;
    b->program_destroy(&x->e, x->d, x->program);
    x->program = NULL;
    x->address[2] = b->memory_alloc(&x->e, x->d, COUNT * sizeof(float));
    x->address[3] = b->memory_alloc(&x->e, x->d, COUNT * sizeof(float));
    CHECK_EQ(rig_steps(x, wishes, 2, true, NULL), SINTER_OK);
    CHECK_EQ(put(x, 1, 1), SINTER_OK);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ_F(get(x, 3), 3);
    CHECK_EQ(x->seen.programmatic, 1);
    CHECK_EQ(x->seen.in_graph, 0);
    /* Again in place: no code is looked for, and after the first time nothing is allocated. */
    const long compiled = fake->calls("nvrtcCompileProgram");
    program *reuse = x->program;
    CHECK_EQ(rig_steps(x, other, 2, true, reuse), SINTER_OK);
    CHECK(x->program == reuse);
    CHECK_EQ(put(x, 1, 1), SINTER_OK);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ_F(get(x, 3), 4);
    CHECK_EQ(fake->calls("nvrtcCompileProgram"), compiled);
    CHECK_EQ(fake->calls("cuGraphCreate"), 0);
    double ns = 0;
    CHECK_EQ(b->program_time(x->d, x->program, &x->run, 4, &ns), SINTER_OK);
    CHECK_NEAR(ns, 3000, 0.01);
    /* A binding that fails leaves a program that does nothing. */
    CHECK_EQ(rig_steps(x, (wish[]){ { 0 }, { .does_not_bind = 1 } }, 2, true, reuse), SINTER_INVALID_MODEL);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK(rig_close(x));
}

/* ---- time ---- */

static void steps_are_timed(void)
{
    rig r, *x = &r;
    const wish wishes[] = { { .launches = 2 }, { .is_empty = 1 }, { 0 } };
    step_clock clock[16] = { { 0 } };
    if (!rig_start(x, wishes, 3)) return;
    x->run.clock = clock;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(clock[10].runs, 2);
    CHECK_EQ(clock[10].total_ns, 4000);
    CHECK_EQ(clock[10].min_ns, 2000);
    CHECK_EQ(clock[11].runs, 2);
    CHECK_EQ(clock[11].total_ns, 0);
    CHECK_EQ(clock[12].min_ns, 1000);
    CHECK_EQ(fake->calls("cuEventCreate"), 4);
    CHECK_EQ(fake->calls("cuLaunchKernelEx"), 0);
    CHECK_EQ(x->seen.programmatic, 2); /* only inside the first step */
    x->run.clock = NULL;
    double ns = 0;
    CHECK_EQ(b->program_time(x->d, x->program, &x->run, 5, &ns), SINTER_OK);
    CHECK_NEAR(ns, 3000, 0.01);
    CHECK_EQ(fake->calls("cuGraphLaunch"), 2 + 5);
    CHECK(rig_close(x));
}

static const test tests[] = {
    T(a_chain_of_programmatic_edges),
    T(launches_again_with_one_call),
    T(the_first_launch_may_be_one_call),
    T(updates_what_changed),
    T(an_update_that_fails_is_made_good),
    T(empty_programs),
    T(what_a_kernel_needs_is_allowed),
    T(a_driver_that_wants_a_context),
    T(once_programs_have_no_graph),
    T(steps_are_timed),
    { 0 },
};
TEST_MAIN(tests)
