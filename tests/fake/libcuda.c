/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.c - a driver library of two devices that do nothing, to be opened as libcuda.so. What FAKE_CUDA names is
 * wrong with it: "old" lacks a function of CUDA 12.3, "mute" its version, "empty" has no device, "ancient" two that are
 * too old. */
#include "cuda/cuda_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is(const char *what)
{
    const char *is_set = getenv("FAKE_CUDA");
    return is_set && !strcmp(is_set, what);
}

static CUresult init(unsigned flags)
{
    (void)flags;
    return is("empty") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

static CUresult version(int *out)
{
    *out = is("mute") ? 0 : 12040;
    return CUDA_SUCCESS;
}

static CUresult error_name(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR";
    return CUDA_SUCCESS;
}

static CUresult device_count(int *count)
{
    *count = 2;
    return CUDA_SUCCESS;
}

static CUresult device_get(CUdevice *out, int ordinal)
{
    *out = 100 + ordinal;
    return CUDA_SUCCESS;
}

static CUresult device_name(char *name, int size, CUdevice gpu)
{
    (void)snprintf(name, (size_t)size, "Fake %d", gpu);
    return CUDA_SUCCESS;
}

static CUresult device_memory(size_t *bytes, CUdevice gpu)
{
    (void)gpu;
    *bytes = (size_t)3 << 30;
    return CUDA_SUCCESS;
}

static CUresult device_attribute(int *value, CUdevice_attribute which, CUdevice gpu)
{
    const int major = is("ancient") ? 5 : gpu == 100 ? 9 : 7;
    *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? major
             : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
             : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 132
                                                                     : 0;
    return CUDA_SUCCESS;
}

/* Stands for every function that is found, but not called. */
static CUresult nothing(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

typedef CUresult (*function)(void);
static const struct {
    const char *name;
    function function;
} functions[] = {
    { "cuInit", (function)(void (*)(void))init },
    { "cuDriverGetVersion", (function)(void (*)(void))version },
    { "cuGetErrorName", (function)(void (*)(void))error_name },
    { "cuDeviceGetCount", (function)(void (*)(void))device_count },
    { "cuDeviceGet", (function)(void (*)(void))device_get },
    { "cuDeviceGetName", (function)(void (*)(void))device_name },
    { "cuDeviceTotalMem", (function)(void (*)(void))device_memory },
    { "cuDeviceGetAttribute", (function)(void (*)(void))device_attribute },
};

__attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(const char *name, void **out, int wanted,
                                                                    uint64_t flags,
                                                                    CUdriverProcAddressQueryResult *found);
CUresult cuGetProcAddress_v2(const char *name, void **out, int wanted, uint64_t flags,
                             CUdriverProcAddressQueryResult *found)
{
    (void)flags;
    *found = CU_GET_PROC_ADDRESS_SUCCESS;
    if (is("old") && wanted > 12020) {
        *found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        *out = NULL;
        return CUDA_SUCCESS;
    }
    function f = nothing;
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        if (!strcmp(functions[i].name, name)) f = functions[i].function;
    memcpy(out, &f, sizeof f);
    return CUDA_SUCCESS;
}
