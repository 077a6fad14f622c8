/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_rig.h - CUDA's backend on the driver that is none, with a kernel of the test's own: a chain of steps, each of
 * which adds one to COUNT floats. What a step asks of its kernel is in its tactic. */
#ifndef CUDA_RIG_H
#define CUDA_RIG_H

#include "cuda/backend_cuda.h"
#include "cuda/compile.h"
#include "cuda/device/device_args.h"
#include "cuda_fake.h"
#include "faulty.h"
#include "test.h"

enum { STEPS_MAX = 6, IDS = 16, COUNT = 16 };

/* ---- a kernel of the test: out = in + 1, COUNT floats ---- */

typedef struct test_args {
    address in, out, work, fault, second;
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
    uint8_t has_no_work, has_second; /* does not touch the workspace; adds its second input's first element */
    uint16_t blocks;                 /* 0: 32 */
    uint32_t shared;
} wish;

static inline wish wish_of(const tactic *t)
{
    wish w;
    memcpy(&w, t, sizeof w);
    return w;
}

static inline tactic tactic_of(wish w)
{
    tactic t = { 0 };
    memcpy(&t, &w, sizeof w);
    return t;
}

static inline bool test_code(const problem *p, const tactic *t, const kernel_target *target, uint32_t index,
                             cuda_code *c)
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

static inline sinter_status test_bind(env *e, const problem *p, const tactic *t, const void *attrs, const view *in,
                               const view *out, void *record)
{
    (void)p, (void)attrs, (void)in, (void)out;
    const wish w = wish_of(t);
    cuda_record *r = record;
    if (w.does_not_bind) return FAIL(e, INVALID_MODEL, "it does not bind");
    for (uint32_t i = 0; i < (w.launches ? w.launches : 1u); i++) {
        cuda_launch *l = cuda_launch_add(r, 0, w.is_empty ? 0 : w.blocks ? w.blocks : 32, 1, 1, 64, w.shared);
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
        if (!w.has_no_work) CUDA_PATCH(r, a, work, PATCH_WORKSPACE, 0);
        if (w.has_second) CUDA_PATCH(r, a, second, PATCH_IN, 1);
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
    __atomic_add_fetch(&s->launches, 1, __ATOMIC_RELAXED); /* from any thread */
    __atomic_add_fetch(&s->programmatic, l->is_programmatic, __ATOMIC_RELAXED);
    __atomic_add_fetch(&s->in_graph, l->in_graph, __ATOMIC_RELAXED);
    __atomic_store_n(&s->cluster, l->cluster, __ATOMIC_RELAXED);
    __atomic_store_n(&s->stream, l->stream, __ATOMIC_RELAXED);
    if (s->fails != CUDA_SUCCESS) return s->fails;
    const float *in;
    float *out, second = 0;
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
        if (a.second) second = *(const float *)(uintptr_t)a.second;
        struct device_fault *f = (struct device_fault *)(uintptr_t)a.fault;
        if (f && in[0] < 0 && !f->is_set)
            *f = (struct device_fault){ .is_set = 1, .step = a.step, .index = 3, .value = -1, .limit = 16 };
    }
    for (int i = 0; i < COUNT; i++) out[i] = in[i] + 1 + second;
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
    bool is_shared;                     /* the device is another rig's */
} rig;

static const backend *const b = &cuda_backend;
static const fake_control *fake;

/* Without touching the driver: budget is of allocations; negative: all. */
static inline void rig_own(rig *x, long budget)
{
    memset(x, 0, sizeof *x);
    x->memory.budget = budget;
    const sinter_allocator allocator = { &x->memory, faulty_resize };
    sinter_env_options options = SINTER_ENV_OPTIONS;
    options.allocator = &allocator;
    env_init(&x->e, &options, &x->error);
}

static inline void rig_init(rig *x, long budget)
{
    rig_own(x, budget);
    fake = cuda_fake();
    fake->reset();
    fake->set_launch(test_run, &x->seen);
}

static inline sinter_status rig_open(rig *x, const char *name)
{
    const device_options options = { .name = name, .kernel_cache = "" };
    return b->open(&x->e, &options, &x->d);
}

static inline sinter_status rig_steps(rig *x, const wish *wishes, uint32_t count, bool is_once, program *reuse)
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
static inline sinter_status rig_memory(rig *x, uint32_t count)
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

static inline void rig_drop(rig *x)
{
    if (x->program) b->program_destroy(&x->e, x->d, x->program);
    if (x->s) b->stream_destroy(&x->e, x->d, x->s);
    for (uint32_t i = 0; i < IDS; i++)
        if (x->address[i]) b->memory_free(&x->e, x->d, x->address[i], COUNT * sizeof(float));
    if (x->workspace) b->memory_free(&x->e, x->d, x->workspace, 64);
    if (x->d && !x->is_shared) b->close(&x->e, x->d);
    arena_deinit(&x->a);
}

/* All that was made is gone, here and on the device. */
static inline bool rig_close(rig *x)
{
    rig_drop(x);
    bool ok = CHECK_EQ(x->memory.live, 0);
    ok = CHECK_EQ(x->memory.misuse, 0) && CHECK_EQ(fake->misuse(), 0) && ok;
    if (!CHECK_EQ(fake->live(), 0)) {
        (void)printf("left: %s\n", fake->live_text());
        ok = false;
    }
    return ok;
}

static inline bool rig_start(rig *x, const wish *wishes, uint32_t count)
{
    rig_init(x, -1);
    arena_init(&x->a, &x->e);
    sinter_status s = rig_open(x, NULL);
    if (s == SINTER_OK) s = rig_memory(x, count);
    if (s == SINTER_OK) s = rig_steps(x, wishes, count, false, NULL);
    if (s != SINTER_OK) (void)printf("%s\n", x->error.text);
    return CHECK_EQ(s, SINTER_OK);
}

static inline sinter_status put(rig *x, uint32_t value, float first)
{
    float at[COUNT];
    for (int i = 0; i < COUNT; i++) at[i] = first + (float)i;
    return b->copy(&x->e, x->d, x->s, COPY_TO_DEVICE, x->address[value], at, sizeof at);
}

static inline float get(rig *x, uint32_t value)
{
    float at[COUNT] = { 0 };
    CHECK_EQ(b->copy(&x->e, x->d, x->s, COPY_FROM_DEVICE, at, x->address[value], sizeof at), SINTER_OK);
    CHECK_EQ(b->stream_wait(&x->e, x->d, x->s, &x->fault), SINTER_OK);
    for (int i = 1; i < COUNT; i++) CHECK_EQ_F(at[i], at[0] + (float)i);
    return at[0];
}

#endif
