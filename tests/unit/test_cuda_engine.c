/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_engine.c - whole engines on CUDA's backend and the driver that is none: what it was made to give is given
 * back, whichever of its calls fails, and what it demands of its callers is kept. */
#include "cuda_fake.h"
#include "faulty.h"
#include "model_text.h"
#include "places.h"
#include "samples.h"
#include "test.h"

static sinter_status build(sample s, sinter_buffer *out, sinter_error *error)
{
    sinter_build_options o = { .struct_size = sizeof o, .tune = SINTER_TUNE_OFF, .device = "cuda", .kernel_cache = "" };
    o.profile = sample_profiles(s, &o.profile_count);
    const bytes model = sample_model(s);
    const sinter_status status = sinter_build_memory(model.at, model.size, &o, out, error);
    free(model.at);
    return status;
}

/* Opens, runs twice with each of two shapes, and lets go. */
static sinter_status once(sample name, const sinter_buffer *file, const sinter_env_options *given, sinter_error *error)
{
    const sinter_engine_options o = { .struct_size = sizeof o, .env = given, .trust_code = 1, .kernel_cache = "" };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    sinter_status s = sinter_engine_load_memory(file->data, file->size, &o, &g, error);
    if (s == SINTER_OK) s = sinter_context_create(g, NULL, &c, error);
    for (int k = 0; s == SINTER_OK && k < 4; k++) {
        sample_data d;
        if (!CHECK(sample_data_make(g, 0, k % 2 ? SAMPLE_MAX : SAMPLE_OPT, 1, 1u << 20, &d))) break;
        s = sample_data_set(&d, c, error);
        if (s == SINTER_OK) s = sinter_context_run(c, error);
        if (s == SINTER_OK) CHECK(sample_results(g, c) != 0);
        /* Kernels that do nothing give sizes that make no sense. */
        if (name == SAMPLE_LATE && s == SINTER_INVALID_ARG) s = SINTER_OK, *error = (sinter_error){ 0 };
        sample_data_free(&d);
    }
    sinter_context_destroy(c);
    sinter_engine_release(g);
    return s;
}

static bool all_given_back(void)
{
    bool ok = CHECK_EQ(cuda_fake()->live(), 0);
    if (!ok) printf("%s\n", cuda_fake()->live_text());
    ok = CHECK_EQ(cuda_fake()->misuse(), 0) && ok;
    if (cuda_fake()->misuse()) printf("%s\n", cuda_fake()->misuse_text());
    return ok;
}

static void engines_run(void)
{
    for (int i = 0; i < SAMPLE_COUNT; i++) {
        sinter_buffer file = { 0 };
        sinter_error error = { 0 };
        cuda_fake()->reset();
        if (!CHECK_EQ(build((sample)i, &file, &error), SINTER_OK) ||
            !CHECK_EQ(once((sample)i, &file, NULL, &error), SINTER_OK) || !all_given_back())
            printf("%s: %s\n", sample_name((sample)i), error.text);
        sinter_buffer_free(&file);
    }
}

static void every_call_may_fail(void)
{
    static const sample samples[] = { SAMPLE_CONV, SAMPLE_REGIONS, SAMPLE_LATE };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        sinter_buffer file = { 0 };
        bool is_done = false;
        cuda_fake()->reset();
        CHECK_EQ(build(samples[i], &file, NULL), SINTER_OK);
        for (long n = 1; n < 4000 && !is_done; n++) {
            faulty f = { .budget = -1 };
            const sinter_allocator allocator = { &f, faulty_resize };
            const sinter_env_options given = { .struct_size = sizeof given, .allocator = &allocator };
            sinter_error error = { 0 };
            cuda_fake()->reset();
            cuda_fake()->fail_at(n, n % 3 == 0   ? CUDA_ERROR_OUT_OF_MEMORY
                                    : n % 3 == 1 ? CUDA_ERROR_LAUNCH_FAILED
                                                 : CUDA_ERROR_INVALID_VALUE);
            const sinter_status s = once(samples[i], &file, &given, &error);
            is_done = cuda_fake()->failed() == NULL;
            const bool ok = CHECK((s == SINTER_OK) == (error.length == 0)) && CHECK(!is_done || s == SINTER_OK) &&
                            all_given_back() && CHECK_EQ(f.live, 0) && CHECK_EQ(f.misuse, 0);
            if (!ok)
                printf("%s, call %ld (%s): %s\n", sample_name(samples[i]), n,
                       cuda_fake()->failed() ? cuda_fake()->failed() : "none", error.text);
        }
        CHECK(is_done);
        sinter_buffer_free(&file);
    }
    cuda_fake()->reset();
}

/* The usual shape is made ready with its context: the first run asks no more of the driver than the second. */
static void first_and_later(bool is_dynamic)
{
    sinter_buffer file = { 0 };
    sinter_error error = { 0 };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    sample_data d;
    long calls[3] = { 0 };
    cuda_fake()->reset();
    const sinter_shape_range range = {
        .input = "image", .rank = 4, .min = { 1, 1, 28, 28 }, .opt = { 3, 1, 28, 28 }, .max = { 8, 1, 28, 28 }
    };
    const sinter_profile profile = { .shape = &range, .count = 1 };
    const sinter_build_options wanted = { .struct_size = sizeof wanted,
                                          .tune = SINTER_TUNE_OFF,
                                          .device = "cuda",
                                          .profile = &profile,
                                          .profile_count = is_dynamic,
                                          .kernel_cache = "" };
    char digits[4096];
    (void)snprintf(digits, sizeof digits, "%s/examples/digits/digits.onnx", PLACE_SOURCE_DIR);
    CHECK_EQ(sinter_build_file(digits, &wanted, &file, &error), SINTER_OK);
    const sinter_engine_options o = { .struct_size = sizeof o, .trust_code = 1, .kernel_cache = "" };
    if (!CHECK_EQ(sinter_engine_load_memory(file.data, file.size, &o, &g, &error), SINTER_OK)) return;
    CHECK_EQ(sinter_context_create(g, NULL, &c, &error), SINTER_OK);
    const long graphs = cuda_fake()->calls("cuGraphInstantiateWithParams");
    CHECK_EQ(graphs, 1);
    CHECK_EQ(cuda_fake()->calls("cuGraphLaunch"), 1); /* tried once */
    if (CHECK(sample_data_make(g, 0, SAMPLE_OPT, 1, 1u << 20, &d))) {
        CHECK_EQ(sample_data_set(&d, c, &error), SINTER_OK);
        for (int i = 0; i < 3; i++) {
            calls[i] = cuda_fake()->calls(NULL);
            CHECK_EQ(sinter_context_run(c, &error), SINTER_OK);
            calls[i] = cuda_fake()->calls(NULL) - calls[i];
        }
        CHECK_EQ(calls[0], calls[1]);
        CHECK_EQ(calls[1], calls[2]);
        CHECK_EQ(cuda_fake()->calls("cuGraphInstantiateWithParams"), graphs);
        sample_data_free(&d);
    }
    if (!is_dynamic) printf("a run is %ld calls of the driver\n", calls[2]);
    sinter_context_destroy(c);
    /* What runs once needs none of that. */
    const sinter_context_options once_only = { .struct_size = sizeof once_only, .lazy = 1 };
    CHECK_EQ(sinter_context_create(g, &once_only, &c, &error), SINTER_OK);
    CHECK_EQ(cuda_fake()->calls("cuGraphInstantiateWithParams"), graphs);
    sinter_context_destroy(c);
    sinter_engine_release(g);
    sinter_buffer_free(&file);
    CHECK(all_given_back());
}

static void the_first_run_is_like_the_others(void)
{
    first_and_later(false);
    first_and_later(true);
}

/* All that a run reads and writes is the device's, from the library's own hands. */
/* Profilers are told once to begin and once to end; a failure of the driver is reported. */
static void profilers_are_told(void)
{
    sinter_buffer file = { 0 };
    sinter_engine *g = NULL;
    sinter_error error = { 0 };
    const sinter_engine_options o = { .struct_size = sizeof o, .kernel_cache = "" };
    cuda_fake()->reset();
    CHECK_EQ(build(SAMPLE_CONV, &file, &error), SINTER_OK);
    CHECK_EQ(sinter_engine_load_memory(file.data, file.size, &o, &g, &error), SINTER_OK);
    CHECK_EQ(sinter_engine_profile(NULL, 1, &error), SINTER_INVALID_ARG);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(sinter_engine_profile(g, 1, &error), SINTER_OK);
        CHECK_EQ(sinter_engine_profile(g, 0, &error), SINTER_OK);
    }
    CHECK_EQ(cuda_fake()->calls("cuProfilerStart"), 3);
    CHECK_EQ(cuda_fake()->calls("cuProfilerStop"), 3);
    cuda_fake()->fail_at(2, CUDA_ERROR_UNKNOWN);
    CHECK_EQ(sinter_engine_profile(g, 1, &error), SINTER_DEVICE);
    CHECK_HAS(error.text, "profilers");
    sinter_engine_release(g);
    sinter_buffer_free(&file);
    (void)all_given_back();
}

static void memory_of_the_device(void)
{
    sinter_buffer file = { 0 };
    sinter_error error = { 0 };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    void *in = NULL, *out = NULL, *pinned = NULL, *none = NULL;
    cuda_fake()->reset();
    const sinter_build_options wanted = {
        .struct_size = sizeof wanted, .tune = SINTER_TUNE_OFF, .device = "cuda", .kernel_cache = ""
    };
    char digits[4096];
    (void)snprintf(digits, sizeof digits, "%s/examples/digits/digits.onnx", PLACE_SOURCE_DIR);
    CHECK_EQ(sinter_build_file(digits, &wanted, &file, &error), SINTER_OK);
    const sinter_engine_options o = { .struct_size = sizeof o, .trust_code = 1, .kernel_cache = "" };
    if (!CHECK_EQ(sinter_engine_load_memory(file.data, file.size, &o, &g, &error), SINTER_OK)) return;
    CHECK_STR(sinter_engine_device(g), "cuda");
    enum { IN = 28 * 28 * 4, OUT = 10 * 4 };
    CHECK_EQ(sinter_engine_alloc(g, SINTER_PLACE_DEVICE, IN, &in, &error), SINTER_OK);
    CHECK_EQ(sinter_engine_alloc(g, SINTER_PLACE_DEVICE, OUT, &out, &error), SINTER_OK);
    CHECK_EQ(sinter_engine_alloc(g, SINTER_PLACE_HOST, IN, &pinned, &error), SINTER_OK);
    memset(pinned, 5, IN);
    CHECK_EQ(sinter_engine_copy(g, in, SINTER_PLACE_DEVICE, pinned, SINTER_PLACE_HOST, IN, &error), SINTER_OK);
    CHECK_EQ(sinter_engine_copy(g, out, SINTER_PLACE_DEVICE, in, SINTER_PLACE_DEVICE, OUT, &error), SINTER_OK);
    memset(pinned, 0, IN);
    CHECK_EQ(sinter_engine_copy(g, pinned, SINTER_PLACE_HOST, out, SINTER_PLACE_DEVICE, OUT, &error), SINTER_OK);
    CHECK_EQ(((uint8_t *)pinned)[OUT - 1], 5);
    CHECK_EQ(((uint8_t *)pinned)[OUT], 0);
    CHECK_EQ(sinter_engine_copy(g, NULL, SINTER_PLACE_DEVICE, pinned, SINTER_PLACE_HOST, 1, &error),
             SINTER_INVALID_ARG);
    CHECK_EQ(sinter_engine_alloc(g, (sinter_place)7, 1, &none, &error), SINTER_INVALID_ARG);

    const sinter_context_options phases = { .struct_size = sizeof phases, .phases = 1 };
    sinter_run_time t;
    const sinter_tensor image = {
        .dtype = SINTER_DTYPE_F32, .rank = 4, .dim = { 1, 1, 28, 28 }, .data = in, .place = SINTER_PLACE_DEVICE
    };
    CHECK_EQ(sinter_context_create(g, &phases, &c, &error), SINTER_OK);
    CHECK_EQ(sinter_context_run_time(c, &t), SINTER_INVALID_ARG);
    CHECK_EQ(sinter_context_set_input(c, "image", &image, &error), SINTER_OK);
    sinter_io io;
    CHECK_EQ(sinter_engine_io(g, 1, 0, &io), SINTER_OK);
    CHECK_EQ(sinter_context_set_output(c, io.name, out, OUT, SINTER_PLACE_DEVICE, &error), SINTER_OK);
    const long start = cuda_fake()->calls(NULL);
    CHECK_EQ(sinter_context_run(c, &error), SINTER_OK);
    const long first = cuda_fake()->calls(NULL) - start;
    const long copies = cuda_fake()->calls("cuMemcpyHtoDAsync") + cuda_fake()->calls("cuMemcpyDtoHAsync");
    CHECK_EQ(sinter_context_run(c, &error), SINTER_OK);
    /* Other pointers than those that the graph was made with: the nodes that read the input or write the output. */
    const long later = cuda_fake()->calls(NULL) - start - first;
    CHECK_EQ(cuda_fake()->calls("cuGraphExecKernelNodeSetParams"), 2);
    CHECK(first - later <= 2 + 2); /* and a context made current and not */
    CHECK_EQ(cuda_fake()->calls("cuMemcpyHtoDAsync") + cuda_fake()->calls("cuMemcpyDtoHAsync"), copies);
    CHECK_EQ(sinter_context_run_time(c, &t), SINTER_OK);
    CHECK(t.compute_ns > 0);
    CHECK_EQ(t.copy_in_ns, 0);
    CHECK_EQ(t.copy_out_ns, 0);
    /* Pinned: copied from and to where it lies. */
    const long pinned_before = cuda_fake()->calls("cuMemHostAlloc");
    sinter_tensor direct = image;
    direct.data = pinned;
    direct.place = SINTER_PLACE_PINNED;
    CHECK_EQ(sinter_context_set_input(c, "image", &direct, &error), SINTER_OK);
    memset(pinned, 9, IN);
    CHECK_EQ(sinter_engine_copy(g, out, SINTER_PLACE_DEVICE, pinned, SINTER_PLACE_PINNED, OUT, &error), SINTER_OK);
    CHECK_EQ(sinter_engine_alloc(g, SINTER_PLACE_PINNED, OUT, &none, &error), SINTER_OK);
    memset(none, 9, OUT);
    CHECK_EQ(sinter_context_set_output(c, io.name, none, OUT, SINTER_PLACE_PINNED, &error), SINTER_OK);
    CHECK_EQ(sinter_context_run(c, &error), SINTER_OK);
    CHECK_EQ(((uint8_t *)none)[0], 0); /* kernels that do nothing leave zeros */
    sinter_tensor result;
    CHECK_EQ(sinter_context_output(c, io.name, &result, &error), SINTER_OK);
    CHECK(result.data == none);
    CHECK_EQ(result.place, SINTER_PLACE_HOST);
    CHECK_EQ(cuda_fake()->calls("cuMemHostAlloc") - pinned_before, 2); /* a stream's, and ours */
    sinter_context_destroy(c);
    sinter_engine_free(g, SINTER_PLACE_PINNED, none, OUT);
    sinter_engine_free(g, SINTER_PLACE_DEVICE, in, IN);
    sinter_engine_free(g, SINTER_PLACE_HOST, pinned, IN);
    sinter_engine_free(g, SINTER_PLACE_DEVICE, out, OUT);
    sinter_engine_release(g);
    sinter_buffer_free(&file);
    CHECK(all_given_back());
}

/* Whatever tuning will want compiled is compiled before it begins; what a cache of timings knows is not. */
static void tuning_compiles_first(void)
{
    static const char cache[] = "test_cuda_engine_timings.txt";
    sinter_build_report report = SINTER_BUILD_REPORT;
    long compiled[2], launches[2];
    (void)remove(cache);
    for (int i = 0; i < 2; i++) {
        sinter_buffer file = { 0 };
        sinter_error error = { 0 };
        cuda_fake()->reset();
        sinter_build_options o = { .struct_size = sizeof o,
                                   .tune = SINTER_TUNE_FULL,
                                   .device = "cuda",
                                   .kernel_cache = "",
                                   .timing_cache = cache,
                                   .report = &report };
        o.profile = sample_profiles(SAMPLE_CONV, &o.profile_count);
        const bytes model = sample_model(SAMPLE_CONV);
        if (!CHECK_EQ(sinter_build_memory(model.at, model.size, &o, &file, &error), SINTER_OK))
            printf("%s\n", error.text);
        free(model.at);
        sinter_buffer_free(&file);
        compiled[i] = cuda_fake()->calls("nvrtcCompileProgram");
        launches[i] = cuda_fake()->launches();
        CHECK(i ? report.measured == 0 : report.measured > 1);
        CHECK(report.total_s >= report.compile_s + report.measure_s);
        CHECK(all_given_back());
    }
    CHECK(launches[0] > 0);
    CHECK_EQ(launches[1], 0);
    CHECK(compiled[1] > 0 && compiled[1] < compiled[0]);
    (void)remove(cache);
}

/* How often the host waits in a run of `turns` turns, behind the first run. */
static long waits_of(const char *line, int64_t turns)
{
    sinter_build_options b = { .struct_size = sizeof b, .tune = SINTER_TUNE_OFF, .device = "cuda", .kernel_cache = "" };
    const sinter_engine_options o = { .struct_size = sizeof o, .trust_code = 1, .kernel_cache = "" };
    enum { ROWS = 64, COLUMNS = 100 };
    static float x[ROWS * COLUMNS];
    const sinter_tensor trip = { .dtype = SINTER_DTYPE_I64, .data = &turns },
                        data = { .dtype = SINTER_DTYPE_F32, .rank = 2, .dim = { ROWS, COLUMNS }, .data = x };
    model_text m;
    sinter_buffer file = { 0 };
    sinter_error error = { 0 };
    sinter_engine *g = NULL;
    sinter_context *c = NULL;
    long waits = -1;
    cuda_fake()->reset();
    model_read(line, &m);
    sinter_status s = sinter_build_memory(m.model.at, m.model.size, &b, &file, &error);
    if (s == SINTER_OK) s = sinter_engine_load_memory(file.data, file.size, &o, &g, &error);
    if (s == SINTER_OK) s = sinter_context_create(g, NULL, &c, &error);
    if (s == SINTER_OK) s = sinter_context_set_input(c, "n", &trip, &error);
    if (s == SINTER_OK) s = sinter_context_set_input(c, "x", &data, &error);
    for (int i = 0; i < 2 && s == SINTER_OK; i++) {
        const long before = cuda_fake()->calls("cuStreamSynchronize");
        s = sinter_context_run(c, &error);
        waits = cuda_fake()->calls("cuStreamSynchronize") - before;
    }
    if (!CHECK_EQ(s, SINTER_OK)) printf("%s\n", error.text);
    sinter_context_destroy(c);
    sinter_engine_release(g);
    sinter_buffer_free(&file);
    free(m.model.at);
    CHECK(all_given_back());
    return waits;
}

/* What a loop carries stays on the device, and its counter is sent there without a wait. */
static void a_loop_does_not_wait(void)
{
    static const char *const lines[] = {
        "in n i64 ; in x f32 64,100; y = Loop n - x body=(in o i64 ; in p bool ; in q f32 64,100; r = Identity p;"
        "t = Tanh q; out r; out t); out y",
        "in n i64 ; in x f32 64,100; y, z = Loop n - x body=(in o i64 ; in p bool ; in q f32 64,100; r = Identity p;"
        "g = Gather q o; t = Tanh q; out r; out t; out g); out y",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const long few = waits_of(lines[i], 10);
        CHECK(few >= 1 && few <= 4);
        CHECK_EQ(waits_of(lines[i], i ? 60 : 1000), few);
    }
}

static const test tests[] = {
    T(a_loop_does_not_wait),
    T(engines_run),
    T(the_first_run_is_like_the_others),
    T(memory_of_the_device),
    T(profilers_are_told),
    T(tuning_compiles_first),
    T(every_call_may_fail),
    { 0 },
};

TEST_MAIN(tests)
