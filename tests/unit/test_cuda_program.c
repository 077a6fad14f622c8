/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's backend against the driver that is none: what is launched, in which graph, with which addresses, how often the
 * driver is called, and what happens when any of its calls fails. */
#include "cuda/backend_cuda.h"
#include "cuda/compile.h"
#include "cuda/device/args.h"
#include "cuda_fake.h"
#include "faulty.h"
#include "test.h"

enum { STEPS_MAX = 6, IDS = 16, COUNT = 16 };

/* ---- a kernel of the test: out = in + 1, COUNT floats ---- */

typedef struct test_args {
    address in, out, work, fault;
    uint32_t step, pad;
} test_args;
typedef struct test_map_args {
    _Alignas(64) uint8_t map[128];
    address out;
} test_map_args;

/* What a tactic asks of it. */
typedef struct wish {
    uint8_t variant;  /* another code */
    uint8_t launches; /* 0: one */
    uint8_t is_empty, can_fault, has_map, cluster, does_not_compile, does_not_bind;
    uint32_t shared;
} wish;

static wish wish_of(const tactic *t)
{
    wish w;
    memcpy(&w, t, sizeof w);
    return w;
}

static tactic tactic_of(wish w)
{
    tactic t = { 0 };
    memcpy(&t, &w, sizeof w);
    return t;
}

static bool test_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index, cuda_code *c)
{
    (void)p, (void)target;
    const wish w = wish_of(t);
    if (index > 0) return false;
    for (uint32_t i = 0; i < cuda_sources_count && !c->source; i++)
        if (strstr(cuda_sources[i].name, ".cu") && !strstr(cuda_sources[i].name, ".cuh"))
            c->source = cuda_sources[i].name;
    c->entry = "test_entry";
    cuda_code_define(c, "FAKE_PARAM0", w.has_map ? sizeof(test_map_args) : sizeof(test_args));
    cuda_code_define(c, "VARIANT", w.variant);
    if (w.does_not_compile) cuda_code_define(c, "FAKE_FAILS", 1);
    text_printf(c->generated, "/* nothing */\n");
    return true;
}

static sinter_status test_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                               const view *out, void *record)
{
    (void)p, (void)attrs, (void)in, (void)out;
    const wish w = wish_of(t);
    cuda_record *r = record;
    if (w.does_not_bind) return FAIL(e, INVALID_MODEL, "it does not bind");
    for (uint32_t i = 0; i < (w.launches ? w.launches : 1u); i++) {
        cuda_launch *l = cuda_launch_add(r, 0, w.is_empty ? 0 : 32, 1, 1, 64, w.shared);
        l->cluster = w.cluster;
        if (w.has_map) {
            test_map_args *a = cuda_param_add(r, sizeof *a);
            cuda_map *m = cuda_map_add(r, a, offsetof(test_map_args, map));
            *m = (cuda_map){ .operand = 0, .rank = 1, .dtype = SINTER_DTYPE_F32, .dim = { COUNT }, .box = { COUNT } };
            CUDA_PATCH(r, a, out, PATCH_OUT, 0);
            continue;
        }
        test_args *a = cuda_param_add(r, sizeof *a);
        CUDA_PATCH(r, a, in, i ? PATCH_OUT : PATCH_IN, 0); /* later launches go on with what the first wrote */
        CUDA_PATCH(r, a, out, PATCH_OUT, 0);
        CUDA_PATCH(r, a, work, PATCH_WORKSPACE, 0);
        CUDA_PATCH(r, a, step, PATCH_STEP, 0);
        if (w.can_fault) CUDA_PATCH(r, a, fault, PATCH_FAULT, 0);
    }
    return SINTER_OK;
}

static const cuda_kernel test_kernel = {
    .base = { .name = "test_kernel", .abi = 1, .record_size = cuda_record_size, .bind = test_bind },
    .code = test_code,
};

/* What the fake device does for it. */
typedef struct seen {
    long launches, programmatic, in_graph;
    uint32_t cluster;
    CUstream stream;
    CUresult fails;
} seen;
static CUresult test_run(void *user, const fake_launch *l)
{
    seen *s = user;
    s->launches++;
    s->programmatic += l->is_programmatic;
    s->in_graph += l->in_graph;
    s->cluster = l->cluster;
    s->stream = l->stream;
    if (s->fails != CUDA_SUCCESS) return s->fails;
    const float *in;
    float *out;
    if (l->image->param[0] == sizeof(test_map_args)) {
        test_map_args a;
        fake_map m;
        memcpy(&a, l->param[0], sizeof a);
        memcpy(&m, a.map, sizeof m);
        CHECK_EQ(m.magic, FAKE_MAP_MAGIC);
        CHECK_EQ(m.dim[0], COUNT);
        in = (const float *)(uintptr_t)m.at;
        out = (float *)(uintptr_t)a.out;
    } else {
        test_args a;
        memcpy(&a, l->param[0], sizeof a);
        in = (const float *)(uintptr_t)a.in;
        out = (float *)(uintptr_t)a.out;
        struct device_fault *f = (struct device_fault *)(uintptr_t)a.fault;
        if (f && in[0] < 0 && !f->is_set)
            *f = (struct device_fault){ .is_set = 1, .step = a.step, .index = 3, .value = -1, .limit = 16 };
    }
    for (int i = 0; i < COUNT; i++) out[i] = in[i] + 1;
    return CUDA_SUCCESS;
}

/* ---- a chain of steps: value i + 1 is value i and one ---- */

typedef struct rig {
    env e;
    sinter_error error;
    faulty memory;
    arena a;
    device *d;
    stream *s;
    problem *p;
    program *program;
    program_step step[STEPS_MAX];
    tactic tactic[STEPS_MAX];
    view v;
    uint32_t id[STEPS_MAX + 1], steps;
    void *address[IDS], *workspace;
    data_fault fault;
    program_run run;
    seen seen;
} rig;

static const backend *const b = &cuda_backend;
static const fake_control *fake;

static void rig_init(rig *x, long budget)
{
    memset(x, 0, sizeof *x);
    x->memory.budget = budget;
    const sinter_allocator allocator = { &x->memory, faulty_resize };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.allocator = &allocator;
    env_init(&x->e, &options, &x->error);
    fake = cuda_fake();
    fake->reset();
    fake->set_launch(test_run, &x->seen);
}

static sinter_status rig_open(rig *x, const char *name)
{
    const device_options options = { .name = name, .kernel_cache = "" };
    return b->open(&x->e, &options, &x->d);
}

static sinter_status rig_steps(rig *x, const wish *wishes, uint32_t count, bool is_once, program *reuse)
{
    static const char line[] = "relu:f32[16] -> f32[16]";
    const char *why = NULL;
    scan s = scan_of(line, strlen(line));
    if (!x->p && !problem_parse(&x->a, &s, &x->p, &why)) return FAIL_MEMORY(&x->e, "a problem");
    const int64_t size[] = { COUNT };
    CHECK(view_init(&x->v, SINTER_DTYPE_F32, 1, size, NULL));
    x->steps = count;
    for (uint32_t i = 0; i <= count; i++) x->id[i] = i + 1;
    for (uint32_t i = 0; i < count; i++) {
        x->tactic[i] = tactic_of(wishes[i]);
        x->step[i] = (program_step){ .kernel = &test_kernel.base,
                                     .problem = x->p,
                                     .tactic = &x->tactic[i],
                                     .count_in = 1,
                                     .count_out = 1,
                                     .in = &x->v,
                                     .out = &x->v,
                                     .in_id = &x->id[i],
                                     .out_id = &x->id[i + 1],
                                     .index = 10 + i };
    }
    return b->program_create(&x->e, x->d, x->step, count, is_once, reuse, &x->program);
}

/* Memory for values and a stream. */
static sinter_status rig_memory(rig *x, uint32_t count)
{
    for (uint32_t i = 1; i <= count + 1; i++) {
        x->address[i] = b->memory_alloc(&x->e, x->d, COUNT * sizeof(float));
        if (!x->address[i]) return x->error.status;
    }
    x->workspace = b->memory_alloc(&x->e, x->d, 64);
    if (!x->workspace) return x->error.status;
    TRY(b->stream_create(&x->e, x->d, NULL, &x->s));
    x->run = (program_run){
        .address = x->address, .workspace = x->workspace, .fault = &x->fault, .e = &x->e, .stream = x->s
    };
    return SINTER_OK;
}

static void rig_drop(rig *x)
{
    if (x->program) b->program_destroy(&x->e, x->d, x->program);
    if (x->s) b->stream_destroy(&x->e, x->d, x->s);
    for (uint32_t i = 0; i < IDS; i++)
        if (x->address[i]) b->memory_free(&x->e, x->d, x->address[i], COUNT * sizeof(float));
    if (x->workspace) b->memory_free(&x->e, x->d, x->workspace, 64);
    if (x->d) b->close(&x->e, x->d);
    arena_deinit(&x->a);
}

/* All that was made is gone, here and on the device. */
static bool rig_close(rig *x)
{
    rig_drop(x);
    bool ok = CHECK_EQ(x->memory.live, 0) & CHECK_EQ(x->memory.misuse, 0) & CHECK_EQ(fake->misuse(), 0);
    if (!CHECK_EQ(fake->live(), 0)) {
        (void)printf("left: %s\n", fake->live_text());
        ok = false;
    }
    return ok;
}

static bool rig_start(rig *x, const wish *wishes, uint32_t count)
{
    rig_init(x, -1);
    arena_init(&x->a, &x->e);
    sinter_status s = rig_open(x, NULL);
    if (s == SINTER_OK) s = rig_memory(x, count);
    if (s == SINTER_OK) s = rig_steps(x, wishes, count, false, NULL);
    if (s != SINTER_OK) (void)printf("%s\n", x->error.text);
    return CHECK_EQ(s, SINTER_OK);
}

static sinter_status put(rig *x, uint32_t value, float first)
{
    float at[COUNT];
    for (int i = 0; i < COUNT; i++) at[i] = first + (float)i;
    return b->copy(&x->e, x->d, x->s, COPY_TO_DEVICE, x->address[value], at, sizeof at);
}

static float get(rig *x, uint32_t value)
{
    float at[COUNT] = { 0 };
    CHECK_EQ(b->copy(&x->e, x->d, x->s, COPY_FROM_DEVICE, at, x->address[value], sizeof at), SINTER_OK);
    CHECK_EQ(b->stream_wait(&x->e, x->d, x->s, &x->fault), SINTER_OK);
    for (int i = 1; i < COUNT; i++) CHECK_EQ_F(at[i], at[0] + (float)i);
    return at[0];
}

/* ---- devices ---- */

static void opens(void)
{
    rig r, *x = &r;
    kernel_target t;
    text line;
    rig_init(x, -1);
    arena_init(&x->a, &x->e);
    text_init(&line, &x->e);
    CHECK_EQ(rig_open(x, "1"), SINTER_OK);
    b->target(x->d, &t);
    CHECK_EQ(t.isa, 90);
    CHECK_EQ(t.threads, 1);
    CHECK_EQ(t.units, 132);
    CHECK_EQ(t.shared, 232448);
    CHECK_EQ(t.cache_l2, 50 << 20);
    CHECK_NEAR(t.flops / 1e13, 6.69, 0.1);
    CHECK_NEAR(t.bandwidth / 1e12, 4.9, 0.1);
    b->describe(x->d, &line);
    CHECK_HAS(line.at, "Fake GPU 1 sm_90 132 SMs kernels=");
    CHECK_HAS(line.at, " nvrtc=13000");
    text_deinit(&line);
    CHECK(rig_close(x));
}

static void refuses_devices(void)
{
    rig r, *x = &r;
    rig_init(x, -1);
    arena_init(&x->a, &x->e);
    CHECK_EQ(rig_open(x, "7"), SINTER_INVALID_ARG);
    CHECK_HAS(x->error.text, "there is no GPU 7: the driver shows 2");
    CHECK_EQ(rig_open(x, "sm_61"), SINTER_INVALID_ARG);
    CHECK_HAS(x->error.text, "'sm_61' is no number of a GPU and none of sm_75, sm_80, sm_86, sm_89, sm_90a");
    CHECK_EQ(rig_open(x, "h100"), SINTER_INVALID_ARG);
    fake->set_devices(1, 61);
    CHECK_EQ(rig_open(x, NULL), SINTER_UNSUPPORTED);
    CHECK_HAS(x->error.text, "compute capability 6.1, needed is 7.5");
    fake->set_devices(0, 90);
    CHECK_EQ(rig_open(x, NULL), SINTER_INVALID_ARG);
    CHECK(!x->d);
    CHECK(rig_close(x));
}

/* Code is made for a chip that is not there; nothing runs. */
static sinter_status count_code(void *user, const uint8_t key[32], const void *bytes, size_t size)
{
    const fake_image *i = bytes;
    (void)key;
    ++*(int *)user;
    CHECK_EQ(size, sizeof *i);
    CHECK_EQ(i->sm, 86);
    return SINTER_OK;
}

static void builds_for_an_absent_chip(void)
{
    rig r, *x = &r;
    kernel_target t;
    text line;
    int codes = 0;
    rig_init(x, -1);
    arena_init(&x->a, &x->e);
    text_init(&line, &x->e);
    CHECK_EQ(rig_open(x, "sm_86"), SINTER_OK);
    b->target(x->d, &t);
    CHECK_EQ(t.isa, 86);
    CHECK(t.units > 0 && t.shared > 48 << 10 && t.flops > 0 && t.bandwidth > 0 && t.cache_l2 > 0);
    b->describe(x->d, &line);
    CHECK_HAS(line.at, "absent sm_86");
    text_deinit(&line);
    CHECK(!b->memory_alloc(&x->e, x->d, 64));
    CHECK_EQ(x->error.status, SINTER_UNSUPPORTED);
    CHECK_HAS(x->error.text, "'sm_86' is a chip to build for");
    CHECK(!b->host_alloc(&x->e, x->d, 64));
    CHECK_EQ(b->stream_create(&x->e, x->d, NULL, &x->s), SINTER_UNSUPPORTED);
    CHECK_EQ(rig_steps(x, &(wish){ 0 }, 1, false, NULL), SINTER_UNSUPPORTED);
    const kernel_use use[] = { { &test_kernel.base, x->p, &x->tactic[0] }, { &test_kernel.base, x->p, &x->tactic[0] } };
    CHECK_EQ(b->prepare(&x->e, x->d, use, 2), SINTER_OK);
    CHECK_EQ(b->code_export(&x->e, x->d, use, 2, count_code, &codes), SINTER_OK);
    CHECK_EQ(codes, 1);
    CHECK_EQ(fake->calls("nvrtcCompileProgram"), 1);
    CHECK_EQ(fake->calls("cuInit"), 0);
    CHECK(rig_close(x));
}

static void memory_is_clear_and_counted(void)
{
    rig r, *x = &r;
    float at[COUNT];
    CHECK(rig_start(x, NULL, 0));
    CHECK_EQ(b->copy(&x->e, x->d, x->s, COPY_FROM_DEVICE, at, x->address[1], sizeof at), SINTER_OK);
    CHECK_EQ(b->stream_wait(&x->e, x->d, x->s, NULL), SINTER_OK);
    for (int i = 0; i < COUNT; i++) CHECK_EQ_F(at[i], 0);
    fake->set_memory((size_t)64 << 20);
    CHECK(!b->memory_alloc(&x->e, x->d, (size_t)100 << 20));
    CHECK_EQ(x->error.status, SINTER_NO_MEMORY);
    CHECK_HAS(x->error.text,
              "'Fake GPU 0' has no memory for 104857600 bytes (100.0 MiB): 64.0 MiB are free of 64.0 MiB");
    void *host = b->host_alloc(&x->e, x->d, 4096);
    CHECK(host);
    b->host_free(&x->e, x->d, host, 4096);
    CHECK(!b->memory_alloc(&x->e, x->d, 0));
    CHECK_EQ(b->copy(&x->e, x->d, x->s, COPY_ON_DEVICE, NULL, NULL, 0), SINTER_OK);
    CHECK(rig_close(x));
}

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
    /* A moved value that a launch by single kernels saw first is in the graph, too. */
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
    CHECK_EQ(fake->calls("cuKernelSetAttribute"), 2);
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
    CHECK_EQ(x->seen.programmatic, 2); /* only inside the first step */
    x->run.clock = NULL;
    double ns = 0;
    CHECK_EQ(b->program_time(x->d, x->program, &x->run, 5, &ns), SINTER_OK);
    CHECK_NEAR(ns, 3000, 0.01);
    CHECK_EQ(fake->calls("cuGraphLaunch"), 5);
    CHECK(rig_close(x));
}

/* ---- faults of data, and of the device ---- */

static void faults_of_data(void)
{
    rig r, *x = &r;
    const wish wishes[] = { { 0 }, { .can_fault = 1 } };
    if (!rig_start(x, wishes, 2)) return;
    stream *second = NULL;
    CHECK_EQ(b->stream_create(&x->e, x->d, NULL, &second), SINTER_OK);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(b->stream_wait(&x->e, x->d, x->s, &x->fault), SINTER_OK);
    CHECK(!x->fault.is_set);
    CHECK_EQ(put(x, 1, -5), SINTER_OK);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    /* Another stream knows nothing of it. */
    CHECK_EQ(b->stream_wait(&x->e, x->d, second, &x->fault), SINTER_OK);
    CHECK(!x->fault.is_set);
    CHECK_EQ(b->stream_wait(&x->e, x->d, x->s, &x->fault), SINTER_OK);
    CHECK(x->fault.is_set);
    CHECK_EQ(x->fault.step, 11);
    CHECK_EQ(x->fault.index, 3);
    CHECK_EQ(x->fault.value, -1);
    CHECK_EQ(x->fault.limit, 16);
    /* Forgotten, and not looked for again where nothing was launched. */
    x->fault = (data_fault){ 0 };
    const long copies = fake->calls("cuMemcpyDtoHAsync");
    CHECK_EQ(b->stream_wait(&x->e, x->d, x->s, &x->fault), SINTER_OK);
    CHECK(!x->fault.is_set);
    CHECK_EQ(fake->calls("cuMemcpyDtoHAsync"), copies);
    CHECK_EQ(put(x, 1, 5), SINTER_OK);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(b->stream_wait(&x->e, x->d, x->s, &x->fault), SINTER_OK);
    CHECK(!x->fault.is_set);
    /* The same program on the other stream has the other record. */
    CHECK_EQ(put(x, 1, -5), SINTER_OK);
    x->run.stream = second;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(fake->calls("cuGraphExecKernelNodeSetParams"), 1);
    CHECK_EQ(b->stream_wait(&x->e, x->d, second, &x->fault), SINTER_OK);
    CHECK(x->fault.is_set);
    b->stream_destroy(&x->e, x->d, second);
    CHECK(rig_close(x));
}

static void a_callers_stream(void)
{
    rig r, *x = &r;
    if (!rig_start(x, &(wish){ 0 }, 1)) return;
    stream *foreign = NULL;
    const uintptr_t legacy = 1;
    CHECK_EQ(b->stream_create(&x->e, x->d, (void *)legacy, &foreign), SINTER_OK);
    x->run.stream = foreign;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK((uintptr_t)x->seen.stream == legacy);
    CHECK_EQ(b->stream_wait(&x->e, x->d, foreign, NULL), SINTER_OK);
    b->stream_destroy(&x->e, x->d, foreign);
    CHECK_EQ(fake->calls("cuStreamDestroy"), 0);
    CHECK(rig_close(x));
}

static void a_dead_device_says_so(void)
{
    rig r, *x = &r;
    if (!rig_start(x, &(wish){ 0 }, 1)) return;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    fake->fail_calls("cuStreamSynchronize", CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_EQ(b->stream_wait(&x->e, x->d, x->s, NULL), SINTER_DEVICE);
    CHECK_HAS(x->error.text, "CUDA_ERROR_ILLEGAL_ADDRESS");
    fake->fail_calls(NULL, CUDA_SUCCESS);
    const long calls = fake->calls(NULL);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_DEVICE);
    CHECK_HAS(x->error.text, "'Fake GPU 0' failed before, waiting for the device: CUDA_ERROR_ILLEGAL_ADDRESS");
    x->error = (sinter_error){ 0 };
    CHECK(!b->memory_alloc(&x->e, x->d, 64));
    CHECK_EQ(x->error.status, SINTER_DEVICE);
    CHECK_EQ(b->stream_wait(&x->e, x->d, x->s, NULL), SINTER_DEVICE);
    CHECK_EQ(put(x, 1, 0), SINTER_DEVICE);
    double ns;
    CHECK_EQ(b->program_time(x->d, x->program, &x->run, 1, &ns), SINTER_DEVICE);
    CHECK_EQ(rig_steps(x, &(wish){ 0 }, 1, false, NULL), SINTER_DEVICE);
    CHECK_EQ(fake->calls(NULL), calls);
    CHECK(rig_close(x));
}

/* What is wrong with one call is not wrong with the device. */
static void a_live_device_goes_on(void)
{
    rig r, *x = &r;
    if (!rig_start(x, &(wish){ 0 }, 1)) return;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    x->seen.fails = CUDA_ERROR_INVALID_VALUE;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_INTERNAL);
    CHECK_HAS(x->error.text, "launching a graph");
    x->seen.fails = CUDA_SUCCESS;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK(rig_close(x));
}

static void several_devices(void)
{
    rig r0, r1;
    if (!rig_start(&r0, &(wish){ 0 }, 1)) return;
    rig *x = &r1;
    memset(x, 0, sizeof *x);
    x->memory.budget = -1;
    const sinter_allocator allocator = { &x->memory, faulty_resize };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.allocator = &allocator;
    env_init(&x->e, &options, &x->error);
    arena_init(&x->a, &x->e);
    CHECK_EQ(rig_open(x, "1"), SINTER_OK);
    CHECK_EQ(rig_memory(x, 1), SINTER_OK);
    CHECK_EQ(rig_steps(x, &(wish){ 0 }, 1, false, NULL), SINTER_OK);
    CHECK_EQ(put(x, 1, 3), SINTER_OK);
    CHECK_EQ(put(&r0, 1, 4), SINTER_OK);
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    CHECK_EQ(b->program_launch(r0.d, r0.program, &r0.run), SINTER_OK);
    CHECK_EQ_F(get(x, 2), 4);
    CHECK_EQ_F(get(&r0, 2), 5);
    /* One dies alone. */
    fake->fail_calls("cuStreamSynchronize", CUDA_ERROR_LAUNCH_FAILED);
    CHECK_EQ(b->stream_wait(&x->e, x->d, x->s, NULL), SINTER_DEVICE);
    fake->fail_calls(NULL, CUDA_SUCCESS);
    CHECK_EQ(b->program_launch(r0.d, r0.program, &r0.run), SINTER_OK);
    rig_drop(x);
    CHECK_EQ(x->memory.live, 0);
    CHECK(rig_close(&r0));
}

/* ---- code ---- */

typedef struct kept_code {
    uint8_t key[4][32];
    void *bytes[4];
    size_t size[4];
    uint32_t count;
} kept_code;
static sinter_status keep_code(void *user, const uint8_t key[32], const void *bytes, size_t size)
{
    kept_code *k = user;
    if (!CHECK(k->count < 4)) return SINTER_INTERNAL;
    memcpy(k->key[k->count], key, 32);
    k->bytes[k->count] = malloc(size);
    memcpy(k->bytes[k->count], bytes, size);
    k->size[k->count++] = size;
    return SINTER_OK;
}

static void code_rides_along(void)
{
    rig r, *x = &r;
    const wish wishes[] = { { 0 }, { .variant = 1 }, { 0 } };
    kept_code kept = { 0 };
    if (!rig_start(x, wishes, 3)) return;
    kernel_use use[3];
    for (uint32_t i = 0; i < 3; i++) use[i] = (kernel_use){ &test_kernel.base, x->p, &x->tactic[i] };
    CHECK_EQ(fake->calls("nvrtcCompileProgram"), 2);
    CHECK_EQ(b->prepare(&x->e, x->d, use, 3), SINTER_OK);
    CHECK_EQ(b->code_export(&x->e, x->d, use, 3, keep_code, &kept), SINTER_OK);
    CHECK_EQ(kept.count, 2);
    CHECK_EQ(fake->calls("nvrtcCompileProgram"), 2);
    CHECK(rig_close(x));
    for (int trusts = 0; trusts < 2; trusts++) {
        rig_init(x, -1);
        arena_init(&x->a, &x->e);
        const device_options options = { .kernel_cache = "", .trusts_code = trusts };
        CHECK_EQ(b->open(&x->e, &options, &x->d), SINTER_OK);
        for (uint32_t i = 0; i < kept.count; i++)
            for (int twice = 0; twice < 2; twice++)
                CHECK_EQ(b->code_import(&x->e, x->d, kept.key[i], kept.bytes[i], kept.size[i]), SINTER_OK);
        CHECK_EQ(rig_memory(x, 3), SINTER_OK);
        CHECK_EQ(rig_steps(x, wishes, 3, false, NULL), SINTER_OK);
        CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
        CHECK_EQ(fake->calls("nvrtcCompileProgram"), trusts ? 0 : 2);
        CHECK(rig_close(x));
    }
    /* Code of another chip that is trusted is refused by the driver, not run. */
    rig_init(x, -1);
    arena_init(&x->a, &x->e);
    ((fake_image *)kept.bytes[0])->magic = 0;
    const device_options options = { .kernel_cache = "", .trusts_code = true };
    CHECK_EQ(b->open(&x->e, &options, &x->d), SINTER_OK);
    for (uint32_t i = 0; i < kept.count; i++)
        CHECK_EQ(b->code_import(&x->e, x->d, kept.key[i], kept.bytes[i], kept.size[i]), SINTER_OK);
    CHECK(rig_steps(x, wishes, 3, false, NULL) != SINTER_OK);
    CHECK_HAS(x->error.text, "loading kernel 'test_kernel'");
    CHECK(rig_close(x));
    for (uint32_t i = 0; i < kept.count; i++) free(kept.bytes[i]);
}

static void a_compilation_that_fails_is_named(void)
{
    rig r, *x = &r;
    const wish wishes[] = { { 0 }, { .variant = 1, .does_not_compile = 1 }, { .variant = 2 } };
    if (!rig_start(x, NULL, 0)) return;
    CHECK(rig_steps(x, wishes, 3, false, NULL) != SINTER_OK);
    CHECK_HAS(x->error.text, "as the test asked for");
    CHECK_HAS(x->error.text, "making kernel 'test_kernel' for relu:f32[16] -> f32[16]");
    const kernel_use use[] = { { &test_kernel.base, x->p, &x->tactic[0] }, { &test_kernel.base, x->p, &x->tactic[1] } };
    CHECK(b->prepare(&x->e, x->d, use, 2) != SINTER_OK);
    CHECK_HAS(x->error.text, "making kernel 'test_kernel' for relu:f32[16] -> f32[16]");
    CHECK_EQ(b->prepare(&x->e, x->d, use, 1), SINTER_OK);
    CHECK_EQ(b->prepare(&x->e, x->d, use, 0), SINTER_OK);
    CHECK(rig_close(x));
}

/* ---- the n-th failure ---- */

/* From opening to the second launch; the first thing that fails ends it. */
static sinter_status whole(rig *x)
{
    const wish wishes[] = { { .variant = 1 },
                            { .cluster = 2, .shared = 64 << 10, .launches = 2 },
                            { .can_fault = 1, .variant = 2 },
                            { .has_map = 1 } };
    arena_init(&x->a, &x->e);
    TRY(rig_open(x, "0"));
    TRY(rig_memory(x, 4));
    TRY(rig_steps(x, wishes, 4, false, NULL));
    TRY(put(x, 1, -1));
    TRY(b->program_launch(x->d, x->program, &x->run));
    TRY(b->stream_wait(&x->e, x->d, x->s, &x->fault));
    TRY(b->program_launch(x->d, x->program, &x->run));
    TRY(b->stream_wait(&x->e, x->d, x->s, &x->fault));
    double ns;
    TRY(b->program_time(x->d, x->program, &x->run, 2, &ns));
    void *host = b->host_alloc(&x->e, x->d, 64);
    if (!host) return x->error.status;
    b->host_free(&x->e, x->d, host, 64);
    return SINTER_OK;
}

static bool is_release(const char *name)
{
    return strstr(name, "Destroy") || strstr(name, "Free") || strstr(name, "Release") || strstr(name, "Unload") ||
           strstr(name, "Pop") || strstr(name, "nvrtcGetProgramLog");
}

static void every_call_of_the_driver_may_fail(void)
{
    static const struct {
        CUresult r;
        sinter_status s;
    } kinds[] = {
        { CUDA_ERROR_OUT_OF_MEMORY, SINTER_NO_MEMORY },
        { CUDA_ERROR_LAUNCH_FAILED, SINTER_DEVICE },
        { CUDA_ERROR_INVALID_VALUE, SINTER_INTERNAL },
    };
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        for (long n = 1;; n++) {
            rig r, *x = &r;
            rig_init(x, -1);
            fake->fail_at(n, kinds[k].r);
            const sinter_status s = whole(x);
            const char *failed = fake->failed();
            if (!failed) {
                CHECK_EQ(s, SINTER_OK);
                CHECK(n > 60);
                fake->fail_at(0, CUDA_SUCCESS);
                CHECK(rig_close(x));
                break;
            }
            /* Contexts are also pushed to release. */
            const bool is_fine = is_release(failed) || (s == SINTER_OK && !strcmp(failed, "cuCtxPushCurrent"));
            const bool is_good = is_fine                        ? s == SINTER_OK
                                 : !strncmp(failed, "nvrtc", 5) ? s != SINTER_OK
                                                                : s == kinds[k].s;
            if (!CHECK(is_good) || !CHECK((s == SINTER_OK) == (x->error.length == 0)))
                (void)printf("call %ld, %s: status %d: %s\n", n, failed, s, x->error.text);
            /* A dead device stays dead and asks nothing of the driver. */
            if (s == SINTER_DEVICE && x->d && x->s) {
                const long calls = fake->calls(NULL);
                CHECK_EQ(b->stream_wait(&x->e, x->d, x->s, NULL), SINTER_DEVICE);
                CHECK_HAS(x->error.text, "CUDA_ERROR_LAUNCH_FAILED");
                CHECK_EQ(fake->calls(NULL), calls);
            }
            if (!rig_close(x)) (void)printf("after call %ld, %s\n", n, failed);
        }
    }
}

static void every_allocation_may_fail(void)
{
    for (long n = 0;; n++) {
        rig r, *x = &r;
        rig_init(x, n);
        const sinter_status s = whole(x);
        const bool was_enough = x->memory.requests <= n;
        if (!was_enough && s != SINTER_OK) CHECK_EQ(s, SINTER_NO_MEMORY);
        if (!rig_close(x)) (void)printf("after %ld allocations: status %d\n", n, s);
        if (was_enough) {
            CHECK_EQ(s, SINTER_OK);
            break;
        }
    }
}

static const test tests[] = {
    T(opens),
    T(refuses_devices),
    T(builds_for_an_absent_chip),
    T(memory_is_clear_and_counted),
    T(a_chain_of_programmatic_edges),
    T(launches_again_with_one_call),
    T(updates_what_changed),
    T(an_update_that_fails_is_made_good),
    T(empty_programs),
    T(what_a_kernel_needs_is_allowed),
    T(a_driver_that_wants_a_context),
    T(once_programs_have_no_graph),
    T(steps_are_timed),
    T(faults_of_data),
    T(a_callers_stream),
    T(a_dead_device_says_so),
    T(a_live_device_goes_on),
    T(several_devices),
    T(code_rides_along),
    T(a_compilation_that_fails_is_named),
    T(every_call_of_the_driver_may_fail),
    T(every_allocation_may_fail),
    { 0 },
};
TEST_MAIN(tests)
