/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what doctor says of CUDA: what was found, what is missing, and what then does not work. */
#include "cuda/compile.h"
#include "cuda/report.h"

#include <stdio.h>

enum { DEVICES_SHOWN = 16 };

typedef struct report {
    const cuda_driver *d;
    backend_line_fn line;
    void *user;
    int devices, served; /* found; new enough */
    char failure[256];   /* of cuInit and the like; "": none */
} report;

static void say(const report *r, const char *name, const char *value)
{
    r->line(r->user, name, value);
}

static int attribute(const cuda_driver *d, CUdevice_attribute which, CUdevice gpu)
{
    int value = 0;
    return d->cuDeviceGetAttribute(&value, which, gpu) == CUDA_SUCCESS ? value : 0;
}

static bool works(report *r, CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS) return true;
    env e;
    sinter_error error = { 0 };
    env_init(&e, NULL, &error);
    (void)cuda_fail(&e, r->d, result, what);
    (void)snprintf(r->failure, sizeof r->failure, "%.255s", error.text);
    r->failure[strcspn(r->failure, "\n")] = '\0';
    return false;
}

static void device_line(report *r, int ordinal)
{
    const cuda_driver *d = r->d;
    CUdevice gpu = 0;
    char model[128] = "", key[16], value[256];
    size_t memory = 0;
    if (!works(r, d->cuDeviceGet(&gpu, ordinal), "asking for a device")) return;
    if (d->cuDeviceGetName(model, sizeof model, gpu) != CUDA_SUCCESS) model[0] = '\0';
    if (d->cuDeviceTotalMem(&memory, gpu) != CUDA_SUCCESS) memory = 0;
    const int sm = attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu) * 10 +
                   attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu);
    r->served += sm >= 75;
    (void)snprintf(key, sizeof key, "gpu%d", ordinal);
    (void)snprintf(value, sizeof value, "%s, sm_%d, %zu MiB, %d multiprocessors%s", *model ? model : "no name", sm,
                   memory >> 20, attribute(d, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu),
                   sm >= 75 ? "" : " (too old: sm_75 is needed)");
    say(r, key, value);
}

static void driver_lines(report *r)
{
    const cuda_driver *d = r->d;
    char value[sizeof d->cuda_path + sizeof d->why_cuda];
    if (!d->cuda) {
        (void)snprintf(value, sizeof value, "none: %.255s", d->why_cuda);
        say(r, "libcuda", value);
        return;
    }
    (void)snprintf(value, sizeof value, "CUDA %d.%d, %.255s", d->cuda_version / 1000, d->cuda_version % 1000 / 10,
                   d->cuda_path);
    say(r, "libcuda", value);
    if (!works(r, d->cuInit(0), "starting the driver") ||
        !works(r, d->cuDeviceGetCount(&r->devices), "counting the devices"))
        return;
    for (int i = 0; i < r->devices && i < DEVICES_SHOWN; i++) device_line(r, i);
}

static void advice_line(report *r)
{
    const cuda_driver *d = r->d;
    char value[640];
    if (!d->cuda && !d->nvrtc)
        (void)snprintf(value, sizeof value,
                       "No GPU is needed: models run on the CPU. --device cuda does not work here.");
    else if (!d->cuda)
        (void)snprintf(value, sizeof value,
                       "There is no NVIDIA driver: models run on the CPU. NVRTC is there, so engines can be "
                       "built for a GPU elsewhere: --device cuda:sm_90a --tune off.");
    else if (r->failure[0]) (void)snprintf(value, sizeof value, "--device cuda does not work: %s", r->failure);
    else if (!r->served)
        (void)snprintf(value, sizeof value,
                       "--device cuda does not work: there is no GPU of compute capability 7.5 or more.");
    else if (!d->nvrtc)
        (void)snprintf(
            value, sizeof value,
            "Without NVRTC nothing is built for the GPU, and engines load only where the kernel cache has their "
            "kernels or their own code is trusted: install nvidia-cuda-nvrtc from PyPI, or the CUDA toolkit.");
    else if (!d->nvml)
        (void)snprintf(value, sizeof value,
                       "--device cuda works. Without NVML the clocks are not watched while kernels are measured.");
    else (void)snprintf(value, sizeof value, "--device cuda works.");
    say(r, "gpu_advice", value);
}

void cuda_report(backend_line_fn line, void *user)
{
    cuda_driver d;
    cuda_driver_open(&d);
    report r = { .d = &d, .line = line, .user = user };
    driver_lines(&r);

    char value[sizeof d.nvrtc_path + sizeof d.why_nvrtc], folder[512];
    if (d.nvrtc)
        (void)snprintf(value, sizeof value, "NVRTC %d.%d, %.255s", d.nvrtc_version / 1000, d.nvrtc_version % 1000 / 10,
                       d.nvrtc_path);
    else (void)snprintf(value, sizeof value, "none: %.255s", d.why_nvrtc);
    say(&r, "libnvrtc", value);
    if (d.nvml) (void)snprintf(value, sizeof value, "found");
    else (void)snprintf(value, sizeof value, "none: %.255s", d.why_nvml);
    say(&r, "libnvml", value);
    cuda_cache_folder(NULL, folder, sizeof folder);
    say(&r, "kernel_cache", *folder ? folder : "none");
    advice_line(&r);
    cuda_driver_close(&d);
}
