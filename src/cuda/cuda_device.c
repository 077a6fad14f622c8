/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_device.c - opening a GPU, what is known of it, its memory, and what happens when it fails. */
#include "cuda/cuda_device.h"

#include <stdio.h>
#include <string.h>

/* Made by the build from the device's sources and the rows; without it kernels cannot be told apart by their timings.
 */
#if defined(__has_include)
#if __has_include("generated/kernel_hash.h")
#include "generated/kernel_hash.h"
#endif
#endif
#ifndef SINTER_CUDA_KERNEL_HASH
#define SINTER_CUDA_KERNEL_HASH "unknown"
#endif

/* What a chip that is not there is taken for: the figures of a usual card with it. They only order candidates. */
typedef struct chip {
    kernel_target target;
    const char *card;
} chip;
static const chip chips[] = {
    { { .isa = 75, .units = 40, .shared = 65536, .cache_l2 = 4 << 20, .flops = 8.1e12, .bandwidth = 3.2e11 }, "T4" },
    { { .isa = 80, .units = 108, .shared = 166912, .cache_l2 = 40 << 20, .flops = 1.95e13, .bandwidth = 1.55e12 },
      "A100" },
    { { .isa = 86, .units = 82, .shared = 101376, .cache_l2 = 6 << 20, .flops = 3.56e13, .bandwidth = 9.36e11 },
      "RTX 3090" },
    { { .isa = 89, .units = 128, .shared = 101376, .cache_l2 = 72 << 20, .flops = 8.26e13, .bandwidth = 1.01e12 },
      "RTX 4090" },
    { { .isa = 90, .units = 132, .shared = 232448, .cache_l2 = 50 << 20, .flops = 6.7e13, .bandwidth = 4.8e12 },
      "H200" },
    { { .isa = 100, .units = 148, .shared = 232448, .cache_l2 = 126 << 20, .flops = 7.5e13, .bandwidth = 8e12 },
      "B200" },
    { { .isa = 120, .units = 170, .shared = 101376, .cache_l2 = 96 << 20, .flops = 1.05e14, .bandwidth = 1.79e12 },
      "RTX 5090" },
};
enum { ISA_LEAST = 75, ISA_MOST = 999 };

bool cuda_chip_target(uint32_t isa, kernel_target *out)
{
    for (size_t i = 0; i < COUNT_OF(chips); i++) {
        if (chips[i].target.isa != isa) continue;
        *out = chips[i].target;
        out->threads = 1;
        out->cache_l1 = out->shared;
        out->cache_last = out->cache_l2;
        out->cluster = isa >= 90 ? 8 : 0;
        return true;
    }
    return false;
}

/* ---- failing ---- */

sinter_status cuda_device_check(env *e, device *d)
{
    if (!__atomic_load_n(&d->is_dead, __ATOMIC_ACQUIRE)) return SINTER_OK;
    return FAIL(e, DEVICE, "device '%s' failed before, %s", d->name, d->death);
}

sinter_status cuda_device_fail(env *e, device *d, CUresult r, const char *what)
{
    const sinter_status s = cuda_fail(e, &d->driver, r, what);
    if (s != SINTER_DEVICE) return s;
    cuda_lock_take(&d->lock);
    if (!d->is_dead) {
        const char *name = NULL;
        if (d->driver.cuGetErrorName(r, &name) != CUDA_SUCCESS || !name) name = "an unknown error";
        (void)snprintf(d->death, sizeof d->death, "%s: %s", what, name);
        __atomic_store_n(&d->is_dead, 1, __ATOMIC_RELEASE);
    }
    cuda_lock_give(&d->lock);
    return s;
}

sinter_status cuda_device_enter(env *e, device *d)
{
    if (!d->is_present)
        return FAIL(e, UNSUPPORTED, "'%s' is a chip to build for: no GPU was opened, so nothing runs on it", d->name);
    TRY(cuda_device_check(e, d));
    DEVICE_TRY(e, d, cuCtxPushCurrent(d->context), "making the device's context current");
    return SINTER_OK;
}

void cuda_device_leave(device *d)
{
    CUcontext was;
    (void)d->driver.cuCtxPopCurrent(&was);
}

sinter_status cuda_device_profile(env *e, device *d, bool is_on)
{
    TRY(cuda_device_enter(e, d));
    const CUresult r = is_on ? d->driver.cuProfilerStart() : d->driver.cuProfilerStop();
    cuda_device_leave(d);
    return r == CUDA_SUCCESS ? SINTER_OK : cuda_device_fail(e, d, r, "telling profilers to record");
}

bool cuda_device_enter_any(device *d)
{
    return d->context && d->driver.cuCtxPushCurrent(d->context) == CUDA_SUCCESS;
}

/* ---- opening ---- */

static sinter_status ask(env *e, device *d, CUdevice_attribute which, uint32_t *out)
{
    int value = 0;
    DEVICE_TRY(e, d, cuDeviceGetAttribute(&value, which, d->handle), "reading the device's attributes");
    *out = value > 0 ? (uint32_t)value : 0;
    return SINTER_OK;
}

static sinter_status read_target(env *e, device *d)
{
    uint32_t major = 0, minor = 0, clock = 0, memory_clock = 0, bus = 0, l2 = 0, shared_all = 0;
    kernel_target *t = &d->target;
    TRY(ask(e, d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major));
    TRY(ask(e, d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor));
    TRY(ask(e, d, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &t->units));
    TRY(ask(e, d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &t->shared));
    TRY(ask(e, d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &shared_all));
    TRY(ask(e, d, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2));
    TRY(ask(e, d, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &clock));
    TRY(ask(e, d, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &memory_clock));
    TRY(ask(e, d, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &bus));
    t->isa = major * 10 + minor;
    if (t->isa < ISA_LEAST)
        return FAIL(e, UNSUPPORTED, "'%s' has compute capability %u.%u, needed is %d.%d", d->name, major, minor,
                    ISA_LEAST / 10, ISA_LEAST % 10);
    const uint32_t cores = t->isa <= 80 ? 64 : 128;
    t->threads = 1;
    t->cache_l1 = shared_all;
    t->cache_l2 = t->cache_last = l2;
    t->flops = 2e3 * cores * t->units * clock;
    t->bandwidth = 2e3 * memory_clock * bus / 8;
    return SINTER_OK;
}

static sinter_status open_present(env *e, device *d, int ordinal)
{
    int count = 0;
    if (!d->driver.cuda) return FAIL(e, DEVICE, "no NVIDIA GPU can be used: %s", d->driver.why_cuda);
    cuda_driver_match(&d->driver);
    DEVICE_TRY(e, d, cuInit(0), "starting the NVIDIA driver");
    DEVICE_TRY(e, d, cuDeviceGetCount(&count), "counting GPUs");
    if (ordinal >= count) return FAIL(e, INVALID_ARG, "there is no GPU %d: the driver shows %d", ordinal, count);
    DEVICE_TRY(e, d, cuDeviceGet(&d->handle, ordinal), "opening a GPU");
    DEVICE_TRY(e, d, cuDeviceGetName(d->name, (int)sizeof d->name, d->handle), "reading the GPU's name");
    d->name[sizeof d->name - 1] = 0;
    TRY(read_target(e, d));
    CUcontext context = NULL;
    DEVICE_TRY(e, d, cuDevicePrimaryCtxRetain(&context, d->handle), "opening the GPU's context");
    d->context = context;
    d->is_present = true;
    TRY(cuda_device_enter(e, d));
    const CUresult r = d->driver.cuStreamCreate(&d->setup, CU_STREAM_NON_BLOCKING);
    if (r != CUDA_SUCCESS) d->setup = NULL;
    const sinter_status s =
        r == CUDA_SUCCESS ? cuda_device_ask_clusters(e, d) : cuda_device_fail(e, d, r, "making a stream");
    cuda_device_leave(d);
    return s;
}

static sinter_status open_absent(env *e, device *d, const char *name)
{
    text known;
    text_init(&known, e);
    for (size_t i = 0; i < COUNT_OF(chips); i++) {
        char plain[16];
        (void)snprintf(plain, sizeof plain, "sm_%u", chips[i].target.isa);
        const size_t length = strlen(plain);
        text_printf(&known, "%s%s%s", i ? ", " : "", plain, chips[i].target.isa >= 90 ? "a" : "");
        if (strncmp(name, plain, length) != 0 || (name[length] && strcmp(name + length, "a") != 0)) continue;
        (void)cuda_chip_target(chips[i].target.isa, &d->target);
        (void)snprintf(d->name, sizeof d->name, "%s%s", plain, chips[i].target.isa >= 90 ? "a" : "");
        text_deinit(&known);
        return SINTER_OK;
    }
    const sinter_status s =
        FAIL(e, INVALID_ARG, "the device '%s' is no number of a GPU and none of %s", name, known.at ? known.at : "");
    text_deinit(&known);
    return s;
}

/* As the chip of that capability. A chip that is not known has the most shared memory, so that no kernel that it was
 * given is thought too large. 0: the engine runs on the host alone. */
static void open_shown(device *d, uint32_t isa)
{
    const kernel_target *found = &chips[0].target;
    uint32_t shared = 0;
    for (size_t i = 0; i < COUNT_OF(chips); i++) {
        if (chips[i].target.isa <= isa) found = &chips[i].target;
        if (chips[i].target.shared > shared) shared = chips[i].target.shared;
    }
    (void)cuda_chip_target(found->isa, &d->target);
    (void)snprintf(d->name, sizeof d->name, "sm_%u", isa);
    if (isa <= found->isa || isa > ISA_MOST) return;
    d->target.isa = isa;
    d->target.shared = shared;
}

/* "12": 12; false where it is no number. */
static bool ordinal_of(const char *name, int *out)
{
    int64_t value = 0;
    scan s = scan_of(name, strlen(name));
    if (!scan_i64(&s, &value) || s.at != s.end || value < 0 || value > 1000) return false;
    *out = (int)value;
    return true;
}

sinter_status cuda_device_open(env *e, const device_options *options, device **out)
{
    *out = NULL;
    device *d = mem_zalloc(e, sizeof *d, _Alignof(device));
    if (!d) return FAIL_MEMORY(e, "a device");
    d->own = *e;
    d->own.error = &d->own.error_own;
    d->trusts_code = options->trusts_code;
    if (options->allocator) d->allocator = *options->allocator;
    cuda_driver_open(&d->driver);
    int ordinal = 0;
    const bool is_here = !options->name || ordinal_of(options->name, &ordinal);
    sinter_status s = SINTER_OK;
    if (options->is_shown) open_shown(d, options->shown_isa);
    else s = is_here ? open_present(e, d, ordinal) : open_absent(e, d, options->name);
    if (s == SINTER_OK) {
        d->compiler = (cuda_compiler){ .driver = &d->driver, .sm = d->target.isa, .threads = options->threads };
        cuda_cache_folder(options->kernel_cache, d->compiler.cache, sizeof d->compiler.cache);
        *out = d;
    } else {
        cuda_device_close(e, d);
    }
    return s;
}

void cuda_device_close(env *e, device *d)
{
    if (!d) return;
    const bool is_current = cuda_device_enter_any(d);
    code_table_deinit(d);
    cuda_device_clock_close(d);
    if (d->setup) (void)d->driver.cuStreamDestroy(d->setup);
    if (is_current) cuda_device_leave(d);
    if (d->context) (void)d->driver.cuDevicePrimaryCtxRelease(d->handle);
    cuda_driver_close(&d->driver);
    mem_free(e, d, sizeof *d, _Alignof(device));
}

void cuda_device_describe(const device *d, text *out)
{
    text_printf(out, "%s sm_%u %u SMs", d->is_present ? d->name : "absent", d->target.isa, d->target.units);
    if (d->clusters[0]) text_printf(out, " clusters");
    for (uint32_t i = 0; d->clusters[0] && i < CLUSTER_SIZES; i++)
        text_printf(out, "%c%u", i ? '/' : ' ', d->clusters[i]);
    text_printf(out, " kernels=%s nvrtc=%d", SINTER_CUDA_KERNEL_HASH, d->driver.nvrtc_version);
}
