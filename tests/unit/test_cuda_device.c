/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's devices, streams and code against the driver that is none, and what happens when any of its calls fails. */
#include "cuda/cuda_device.h"
#include "cuda_rig.h"

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
    CHECK_HAS(line.at, "Fake GPU 1 sm_90 132 SMs clusters 66/33/16/8 kernels=");
    CHECK_EQ(t.cluster, 16);
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

/* A chip whose groups of multiprocessors are too small for 16 blocks; one whose driver cannot say; one before Hopper.
 */
static void clusters(void)
{
    static const struct {
        unsigned most;
        int sm;
        const char *fails;
        uint32_t cluster;
        const char *shown;
    } cases[] = {
        { 8, 90, NULL, 8, "SMs clusters 66/33/16/0 kernels" },
        { 16, 90, "cuLibraryLoadData", 8, "SMs kernels" },
        { 16, 90, "cuOccupancyMaxActiveClusters", 8, "SMs kernels" },
        { 16, 86, NULL, 0, "SMs kernels" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rig r, *x = &r;
        kernel_target t;
        text line;
        rig_init(x, -1);
        arena_init(&x->a, &x->e);
        text_init(&line, &x->e);
        fake->set_clusters(cases[i].most);
        fake->set_devices(2, cases[i].sm);
        fake->fail_calls(cases[i].fails, CUDA_ERROR_NOT_SUPPORTED);
        CHECK_EQ(rig_open(x, NULL), SINTER_OK);
        fake->fail_calls(NULL, CUDA_SUCCESS);
        b->target(x->d, &t);
        CHECK_EQ(t.cluster, cases[i].cluster);
        b->describe(x->d, &line);
        CHECK_HAS(line.at, cases[i].shown);
        text_deinit(&line);
        const wish wishes[] = { { .cluster = 16 } };
        if (cases[i].sm == 90) {
            CHECK_EQ(rig_steps(x, wishes, 1, false, NULL), SINTER_UNSUPPORTED);
            CHECK_HAS(x->error.text, "a cluster of 16 blocks is wanted, this GPU has room for 8 at most");
        }
        CHECK(rig_close(x));
    }
}

/* Machine code of a later major version does not load: the compiler is not used, and an error says why. */
static void a_driver_older_than_the_compiler(void)
{
    rig r, *x = &r;
    const wish wishes[] = { { .variant = 1 } };
    rig_init(x, -1);
    arena_init(&x->a, &x->e);
    fake->set_version(12080);
    CHECK_EQ(rig_open(x, NULL), SINTER_OK);
    CHECK_EQ(rig_steps(x, wishes, 1, false, NULL), SINTER_INCOMPATIBLE);
    CHECK_HAS(x->error.text, "NVRTC 13.0 is newer than the driver, which is of CUDA 12.8");
    CHECK(rig_close(x));
    /* For a chip that is not here it may compile. */
    rig_init(x, -1);
    arena_init(&x->a, &x->e);
    CHECK_EQ(rig_open(x, "sm_90a"), SINTER_OK);
    CHECK(x->d->driver.nvrtc != NULL);
    CHECK(rig_close(x));
    fake->set_version(13000);
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

    /* The caller's stream is gone when its work is waited for. */
    stream *own = NULL;
    CHECK_EQ(b->stream_create(&x->e, x->d, NULL, &own), SINTER_OK);
    CHECK_EQ(b->stream_create(&x->e, x->d, b->stream_native(own), &foreign), SINTER_OK);
    x->run.stream = foreign;
    CHECK_EQ(b->program_launch(x->d, x->program, &x->run), SINTER_OK);
    b->stream_finish(&x->e, x->d, own);
    b->stream_destroy(&x->e, x->d, own);
    const long waits = fake->calls("cuStreamSynchronize");
    b->stream_finish(&x->e, x->d, foreign);
    CHECK_EQ(fake->calls("cuStreamSynchronize"), waits);
    CHECK_EQ(fake->calls("cuCtxSynchronize"), 1);
    b->stream_destroy(&x->e, x->d, foreign);
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
    rig_own(x, -1);
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
    char named[3][64] = { { 0 } };
    for (uint32_t i = 0; i < 3; i++) {
        text line;
        text_init(&line, &x->e);
        b->describe_use(x->d, &use[i], &line);
        CHECK_HAS(line.at, "code=");
        (void)snprintf(named[i], sizeof named[i], "%s", line.at);
        text_deinit(&line);
    }
    CHECK_STR(named[0], named[2]);
    CHECK(strcmp(named[0], named[1]) != 0);
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
    void *other = x->address[3];
    x->address[3] = x->address[1];
    x->address[1] = other;
    TRY(b->program_launch(x->d, x->program, &x->run));
    step_clock clock[16] = { { 0 } };
    x->run.clock = clock;
    TRY(b->program_launch(x->d, x->program, &x->run));
    x->run.clock = NULL;
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
    /* How many calls opening takes: the last of them ask for the room of clusters, and need not be answered. */
    rig opened;
    rig_init(&opened, -1);
    arena_init(&opened.a, &opened.e);
    CHECK_EQ(rig_open(&opened, "0"), SINTER_OK);
    const long opening = fake->calls(NULL);
    CHECK(rig_close(&opened));
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
            /* Contexts are also pushed to release; a launch is tried again with one. */
            const bool is_fine =
                is_release(failed) ||
                (s == SINTER_OK && (!strcmp(failed, "cuCtxPushCurrent") || !strcmp(failed, "cuGraphLaunch"))) ||
                (n > opening - 11 && n <= opening && kinds[k].s == SINTER_INTERNAL);
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
    T(clusters),
    T(a_driver_older_than_the_compiler),
    T(builds_for_an_absent_chip),
    T(memory_is_clear_and_counted),
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
