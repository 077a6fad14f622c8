/* SPDX-License-Identifier: Apache-2.0 */
/* test_corrupt_graph.c - engines of random graphs are damaged, and are then refused or run safely. They are built for
 * each level of the machine, measured or not, with each type that a build may permit. ASan and UBSan decide what is
 * safe.
 *
 * CORRUPT_GRAPH=round or CORRUPT_GRAPH_CUDA=round repeats that case alone. SINTER_TEST_SEED makes other graphs. */
#include "campaign.h"
#include "cuda_fake.h"
#include "graph_ops.h"
#include "graph_run.h"
#include "test.h"

/* Damaged forms of a graph, which follow each other. */
enum { EACH = 24 };

typedef struct maker {
    const char *device;
    uint64_t seed;
    long graph;       /* of the engine; -1: none was made */
    image at, before; /* its engine, which is empty where it has none, and that of another graph */
} maker;

static uint64_t seed_of(const maker *k, long graph)
{
    uint64_t s = k->seed * 1000003 + (uint64_t)graph;
    return test_random(&s);
}

static void make(maker *k, long graph)
{
    static const uint32_t types[] = {
        0, 0, 0, 0, SINTER_ALLOW_FP16, SINTER_ALLOW_BF16, SINTER_ALLOW_TF32, SINTER_ALLOW_INT8
    };
    const uint64_t seed = seed_of(k, graph);
    const grow_options how = { .nodes = 10, .allow = types[seed % COUNT_OF(types)] };
    const grun o = grun_random(seed ^ 77, k->device);
    gverdict v = { .stage = "" };
    sinter_buffer b = { 0 };
    env e;
    arena a;
    gmodel m;
    env_init(&e, NULL, NULL);
    arena_init(&a, &e);
    gmodel_init(&m, &e, &a);
    if (k->at.size) {
        free(k->before.at);
        k->before = k->at;
    }
    k->at = (image){ 0 };
    k->graph = graph;
    if (grow_model(&m, seed, &how) && m.scope.at[0].result.count && grun_build(&m, &o, &b, &v))
        k->at = image_copy(b.data, b.size);
    sinter_buffer_free(&b);
    arena_deinit(&a);
}

static void try_round(void *user, long round, rig_count *count)
{
    maker *k = user;
    uint64_t random = (uint64_t)round * 0x9E37u + 7;
    if (k->graph != round / EACH) make(k, round / EACH);
    if (!k->at.size) return;
    count->built++;
    const image f = rig_damage(k->at, k->before.size ? k->before : k->at, round % 8 != 0, &random);
    if (k->device) cuda_fake()->reset();
    rig_try(f.at, f.size, (uint64_t)round, count);
    free(f.at);
    if (!k->device) return;
    count->failed += !CHECK_EQ(cuda_fake()->live(), 0) || !CHECK_EQ(cuda_fake()->misuse(), 0);
    if (cuda_fake()->misuse()) printf("%s\n", cuda_fake()->misuse_text());
}

static void damaged(const char *device, const char *name, long rounds)
{
    const char *seed = getenv("SINTER_TEST_SEED");
    maker k = { .device = device, .seed = seed ? strtoul(seed, NULL, 10) : 1, .graph = -1 };
    campaign c = { .name = name, .rounds = rounds, .round = try_round, .user = &k };
    campaign_run(&c);
    CHECK_EQ(c.died, 0);
    CHECK_EQ(c.count.failed, 0);
    if (!getenv(c.name)) CHECK(c.count.loaded > 0 && c.count.ran > 0);
    free(k.at.at);
    free(k.before.at);
}

static void damaged_graphs(void)
{
    damaged(NULL, "CORRUPT_GRAPH", test_scale(4000, 400000));
}

/* The driver that is none: seeds.h. */
static void damaged_graphs_cuda(void)
{
    (void)setenv("SINTER_KERNEL_CACHE", "", 1);
    (void)cuda_fake();
    damaged("cuda", "CORRUPT_GRAPH_CUDA", test_scale(1000, 100000));
}

static const test tests[] = { T(damaged_graphs), T(damaged_graphs_cuda), { 0 } };
TEST_MAIN(tests)
