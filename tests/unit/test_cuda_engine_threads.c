/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_engine_threads.c - engines on CUDA's backend, used from many threads at once: a context each, on streams of
 * their own or of the caller, on one device and on two.
 *
 * The driver is the one that is none. Its kernels do nothing, but it counts launches and what is not given back, and
 * sees calls without their context; races are ThreadSanitizer's to find. */
#include "base/os.h"
#include "cuda/cuda_driver.h"
#include "cuda_fake.h"
#include "samples.h"
#include "test.h"

enum { THREADS = 4, ROUNDS = 6 };

typedef struct job {
    const sinter_buffer *file;
    sinter_engine *g; /* NULL: the thread loads its own, on `device` */
    const char *device;
    const cuda_driver *driver; /* the caller's stream comes from here; NULL: the context's own */
    sinter_status status;
    sinter_error error;
} job;

/* A stream as a caller makes it, on the first device. */
static bool stream_make(const cuda_driver *d, CUcontext *context, CUstream *stream)
{
    CUcontext was;
    return d->cuDevicePrimaryCtxRetain(context, 0) == CUDA_SUCCESS && d->cuCtxPushCurrent(*context) == CUDA_SUCCESS &&
           d->cuStreamCreate(stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
           d->cuCtxPopCurrent(&was) == CUDA_SUCCESS;
}

static void stream_drop(const cuda_driver *d, CUcontext context, CUstream stream)
{
    CUcontext was;
    CHECK_EQ(d->cuCtxPushCurrent(context), CUDA_SUCCESS);
    CHECK_EQ(d->cuStreamDestroy(stream), CUDA_SUCCESS);
    CHECK_EQ(d->cuCtxPopCurrent(&was), CUDA_SUCCESS);
    CHECK_EQ(d->cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

static sinter_status run_often(job *j, sinter_engine *g, sinter_context *c)
{
    sinter_status s = SINTER_OK;
    for (uint32_t i = 0; i < ROUNDS && s == SINTER_OK; i++) {
        sample_data d;
        if (!sample_data_make(g, 0, (sample_size)(i % 3), i, 1u << 20, &d)) return SINTER_INTERNAL;
        s = sample_data_set(&d, c, &j->error);
        if (s == SINTER_OK && i % 2) s = sinter_context_run(c, &j->error);
        else if (s == SINTER_OK) s = sinter_context_run_async(c, &j->error);
        while (s == SINTER_OK && i % 2 == 0 && !sinter_context_is_done(c)) os_thread_yield();
        if (s == SINTER_OK && i % 2 == 0) s = sinter_context_wait(c, &j->error);
        if (s == SINTER_OK && !sample_results(g, c)) s = SINTER_INTERNAL;
        sample_data_free(&d);
    }
    return s;
}

static void work(void *arg)
{
    job *j = arg;
    sinter_engine *g = j->g;
    sinter_context *c = NULL;
    CUcontext context = NULL;
    CUstream stream = NULL;
    const sinter_engine_options load = { .struct_size = sizeof load, .device = j->device, .kernel_cache = "" };
    if (g) sinter_engine_retain(g);
    else j->status = sinter_engine_load_memory(j->file->data, j->file->size, &load, &g, &j->error);
    if (j->driver && !stream_make(j->driver, &context, &stream)) j->status = SINTER_INTERNAL;
    const sinter_context_options o = { .struct_size = sizeof o, .stream = stream };
    if (j->status == SINTER_OK) j->status = sinter_context_create(g, &o, &c, &j->error);
    if (j->status == SINTER_OK) j->status = run_often(j, g, c);
    sinter_context_destroy(c);
    if (stream) stream_drop(j->driver, context, stream);
    sinter_engine_release(g);
}

static void run_jobs(job *jobs)
{
    os_thread *thread[THREADS] = { NULL };
    env e;
    env_init(&e, NULL, NULL);
    for (uint32_t i = 0; i < THREADS; i++) CHECK_EQ(os_thread_start(&e, work, &jobs[i], &thread[i]), SINTER_OK);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (thread[i]) os_thread_join(&e, thread[i]);
        if (!CHECK_EQ(jobs[i].status, SINTER_OK)) (void)printf("thread %u: %s\n", i, jobs[i].error.text);
    }
}

static bool build(sinter_buffer *out)
{
    sinter_error error = { 0 };
    sinter_build_options o = { .struct_size = sizeof o, .tune = SINTER_TUNE_OFF, .device = "cuda", .kernel_cache = "" };
    cuda_fake()->reset();
    o.profile = sample_profiles(SAMPLE_CONV, &o.profile_count);
    const bytes model = sample_model(SAMPLE_CONV);
    const sinter_status s = sinter_build_memory(model.at, model.size, &o, out, &error);
    free(model.at);
    if (!CHECK_EQ(s, SINTER_OK)) (void)printf("%s\n", error.text);
    return s == SINTER_OK;
}

static void all_given_back(void)
{
    if (!CHECK_EQ(cuda_fake()->live(), 0)) (void)printf("%s\n", cuda_fake()->live_text());
    if (!CHECK_EQ(cuda_fake()->misuse(), 0)) (void)printf("%s\n", cuda_fake()->misuse_text());
}

/* Contexts of one engine; each run is as many launches as each other, and each context has tried one. */
static void share(const cuda_driver *driver)
{
    sinter_buffer file = { 0 };
    sinter_engine *g = NULL;
    job jobs[THREADS] = { 0 };
    const sinter_engine_options load = { .struct_size = sizeof load, .kernel_cache = "" };
    if (!build(&file)) return;
    CHECK_EQ(sinter_engine_load_memory(file.data, file.size, &load, &g, NULL), SINTER_OK);
    const long before = cuda_fake()->launches();
    for (uint32_t i = 0; i < THREADS; i++) jobs[i] = (job){ .g = g, .driver = driver };
    run_jobs(jobs);
    const long launches = cuda_fake()->launches() - before;
    CHECK(launches > 0);
    CHECK_EQ(launches % (THREADS * (ROUNDS + 1)), 0);
    sinter_engine_release(g);
    sinter_buffer_free(&file);
    all_given_back();
}

static void contexts_on_streams_of_their_own(void)
{
    share(NULL);
}

static void contexts_on_streams_of_the_caller(void)
{
    cuda_driver d;
    (void)cuda_fake();
    cuda_driver_open(&d);
    CHECK_EQ(d.cuInit(0), CUDA_SUCCESS);
    share(&d);
    cuda_driver_close(&d);
}

/* Each thread has an engine of its own; two devices, two engines on each. */
static void engines_on_two_devices(void)
{
    sinter_buffer file = { 0 };
    job jobs[THREADS] = { 0 };
    if (!build(&file)) return;
    cuda_fake()->set_devices(2, 90);
    for (uint32_t i = 0; i < THREADS; i++) jobs[i] = (job){ .file = &file, .device = i % 2 ? "cuda:1" : "cuda:0" };
    run_jobs(jobs);
    sinter_buffer_free(&file);
    all_given_back();
}

static const test tests[] = {
    T(contexts_on_streams_of_their_own),
    T(contexts_on_streams_of_the_caller),
    T(engines_on_two_devices),
    { 0 },
};

TEST_MAIN(tests)
