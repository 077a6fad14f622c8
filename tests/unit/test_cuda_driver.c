/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda_driver.c - libraries that are missing, too old or not what they say: reasons, never a crash. */
#include "cuda/cuda_driver.h"
#include "cuda/report.h"
#include "places.h"
#include "test.h"

static const char *odd_cuda(void)
{
    return place_of("SINTER_FAKE_CUDA_ODD", FAKE_CUDA_FILE);
}

static void set(const char *name, const char *value)
{
    if (value) (void)setenv(name, value, 1);
    else (void)unsetenv(name);
}

/* True where every row of all three libraries is NULL. */
static bool is_empty(const cuda_driver *d)
{
    bool has_any = false;
#define CUDA_SYMBOL(library, name, version, result, arguments) has_any = has_any || d->name != NULL;
#include "cuda/driver.def"
#undef CUDA_SYMBOL
    return !has_any && !d->cuda && !d->nvrtc && !d->nvml && !d->cuda_version && !d->nvrtc_version;
}

static void open_with(cuda_driver *d, const char *cuda, const char *nvrtc, const char *nvml)
{
    set("SINTER_LIBCUDA", cuda);
    set("SINTER_LIBNVRTC", nvrtc);
    set("SINTER_LIBNVML", nvml);
    cuda_driver_open(d);
}

static void nothing_installed(void)
{
    cuda_driver d;
    open_with(&d, "/nonexistent/a", "/nonexistent/b", "/nonexistent/c");
    CHECK(is_empty(&d));
    CHECK_HAS(d.why_cuda, "SINTER_LIBCUDA");
    CHECK_HAS(d.why_cuda, "/nonexistent/a");
    CHECK_HAS(d.why_nvrtc, "/nonexistent/b");
    CHECK_HAS(d.why_nvml, "/nonexistent/c");
    CHECK_STR(d.cuda_path, "");
    CHECK_STR(d.nvrtc_path, "");
    cuda_driver_close(&d);
    CHECK(is_empty(&d));
}

/* A library that opens but is another one: the reason names the file and what it lacks. */
static void another_library(void)
{
    cuda_driver d;
    open_with(&d, "libm.so.6", "libm.so.6", "libm.so.6");
    CHECK(!d.cuda && !d.nvrtc && d.nvml);
    CHECK_HAS(d.why_cuda, "cuGetProcAddress_v2");
    CHECK_HAS(d.why_cuda, "libm.so.6");
    CHECK_HAS(d.why_nvrtc, "nvrtcVersion");
    CHECK(!d.nvmlInit_v2);
    cuda_driver_close(&d);
}

static void what_is_here(void)
{
    cuda_driver d;
    open_with(&d, NULL, NULL, NULL);
    CHECK(!d.cuda == !d.cuInit && !d.cuda == !d.cuGraphExecDestroy && !d.cuda == (d.cuda_version == 0));
    CHECK(!d.nvrtc == !d.nvrtcVersion && !d.nvrtc == !d.nvrtcGetProgramLog && !d.nvrtc == (d.nvrtc_version == 0));
    CHECK(d.cuda || *d.why_cuda);
    CHECK(d.nvrtc || *d.why_nvrtc);
    CHECK(d.nvml || *d.why_nvml);
    if (!d.nvrtc) (void)printf("no NVRTC here: %s\n", d.why_nvrtc);
    cuda_driver_close(&d);
}

static CUresult error_name(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
}

static CUresult error_text(CUresult error, const char **text_at)
{
    (void)error;
    *text_at = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

static sinter_status try_it(env *e, const cuda_driver *d)
{
    CUdevice gpu = 0;
    CUDA_TRY(e, d, cuDeviceGet(&gpu, 3), "asking for device 3");
    return SINTER_OK;
}

static CUresult no_device(CUdevice *gpu, int ordinal)
{
    *gpu = ordinal;
    return CUDA_ERROR_INVALID_DEVICE;
}

static void failures(void)
{
    static const struct {
        CUresult result;
        sinter_status status;
    } rows[] = {
        { CUDA_ERROR_OUT_OF_MEMORY, SINTER_NO_MEMORY },
        { CUDA_ERROR_ILLEGAL_ADDRESS, SINTER_DEVICE },
        { CUDA_ERROR_LAUNCH_FAILED, SINTER_DEVICE },
        { CUDA_ERROR_NO_DEVICE, SINTER_DEVICE },
        { CUDA_ERROR_NO_BINARY_FOR_GPU, SINTER_INCOMPATIBLE },
        { CUDA_ERROR_INVALID_VALUE, SINTER_INTERNAL },
        { CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, SINTER_INTERNAL },
    };
    cuda_driver d = { 0 };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        env e;
        sinter_error error = { 0 };
        env_init(&e, NULL, &error);
        CHECK_EQ(cuda_fail(&e, &d, rows[i].result, "a test"), rows[i].status);
        CHECK_HAS(error.text, "a test");
    }
    d.cuGetErrorName = error_name;
    d.cuGetErrorString = error_text;
    d.cuDeviceGet = no_device;
    env e;
    sinter_error error = { 0 };
    env_init(&e, NULL, &error);
    CHECK_EQ(cuda_fail(&e, &d, CUDA_ERROR_ILLEGAL_ADDRESS, "a launch"), SINTER_DEVICE);
    CHECK_HAS(error.text, "a launch: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    error = (sinter_error){ 0 };
    CHECK_EQ(try_it(&e, &d), SINTER_INTERNAL);
    CHECK_HAS(error.text, "asking for device 3");
}

/* Every function of the table is there, or none is. */
static void a_driver(void)
{
    cuda_driver d;
    set("FAKE_CUDA", "");
    open_with(&d, odd_cuda(), "/nonexistent", "/nonexistent");
    bool has_all = true;
#define CUDA_SYMBOL(library, name, version, result, arguments) HAS_##library(name)
#define HAS_cuda(name) has_all = has_all && d.name != NULL;
#define HAS_nvrtc(name)
#define HAS_nvml(name)
#include "cuda/driver.def"
#undef HAS_cuda
#undef HAS_nvrtc
#undef HAS_nvml
#undef CUDA_SYMBOL
    CHECK(has_all && d.cuda);
    CHECK_EQ(d.cuda_version, 12040);
    CHECK_STR(d.why_cuda, "");
    CHECK_HAS(d.cuda_path, "sinter_fake_cuda");
    int count = 0;
    CHECK_EQ(d.cuDeviceGetCount(&count), CUDA_SUCCESS);
    CHECK_EQ(count, 2);
    cuda_driver_close(&d);

    set("FAKE_CUDA", "old");
    open_with(&d, odd_cuda(), "/nonexistent", "/nonexistent");
    CHECK(is_empty(&d));
    CHECK_HAS(d.why_cuda, "cuGraphAddDependencies of CUDA 12.3");
    cuda_driver_close(&d);

    set("FAKE_CUDA", "mute");
    open_with(&d, odd_cuda(), "/nonexistent", "/nonexistent");
    CHECK(is_empty(&d));
    CHECK_HAS(d.why_cuda, "does not say its version");
    cuda_driver_close(&d);
}

static void collect_line(void *user, const char *name, const char *value)
{
    text_printf(user, "%s: %s\n", name, value);
}

static void report_has(const char *fake, const char *first, const char *second)
{
    env e;
    env_init(&e, NULL, NULL);
    text t;
    text_init(&t, &e);
    set("FAKE_CUDA", fake);
    set("SINTER_LIBCUDA", odd_cuda());
    set("SINTER_LIBNVRTC", "/nonexistent");
    set("SINTER_LIBNVML", "/nonexistent");
    cuda_report(collect_line, &t);
    CHECK_HAS(t.at, first);
    CHECK_HAS(t.at, second);
    text_deinit(&t);
}

static void report_of_devices(void)
{
    report_has("", "libcuda: CUDA 12.4, ", "gpu0: Fake 100, sm_90, 3072 MiB, 132 multiprocessors\n");
    report_has("", "gpu1: Fake 101, sm_70, 3072 MiB, 132 multiprocessors (too old: sm_75 is needed)\n",
               "gpu_advice: Without NVRTC");
    report_has("empty", "gpu_advice: --device cuda does not work", "CUDA_ERROR_NO_DEVICE (100)");
    report_has("ancient", "gpu0: Fake 100, sm_50", "there is no GPU of compute capability 7.5 or more");
}

static void count_line(void *user, const char *name, const char *value)
{
    uint32_t *seen = user;
    CHECK(*value != '\0');
    static const char *const names[] = { "libcuda", "libnvrtc", "libnvml", "kernel_cache", "gpu_advice" };
    for (uint32_t i = 0; i < COUNT_OF(names); i++) *seen |= (uint32_t)!strcmp(name, names[i]) << i;
}

static void report_says_what_is_missing(void)
{
    uint32_t seen = 0;
    set("SINTER_LIBCUDA", "/nonexistent");
    set("SINTER_LIBNVRTC", "/nonexistent");
    set("SINTER_LIBNVML", "/nonexistent");
    cuda_report(count_line, &seen);
    CHECK_EQ(seen, 31);
}

static const test tests[] = { T(nothing_installed),           T(another_library), T(what_is_here),      T(failures),
                              T(report_says_what_is_missing), T(a_driver),        T(report_of_devices), { 0 } };
TEST_MAIN(tests)
