/* SPDX-License-Identifier: Apache-2.0 */
/* fake_driver.c - devices, streams, events, copies; and the table by which functions are found, from driver.def: a row
 * of it that nobody wrote does not link. */
#include "fake_state.h"

#include <stdio.h>
#include <string.h>

/* Prototypes of all, and names to find them by. */
#define CUDA_SYMBOL(library, name, version, result, arguments) DECLARE_##library(name, result, arguments)
#define DECLARE_cuda(name, result, arguments) result fake_##name arguments;
#define DECLARE_nvrtc(name, result, arguments)
#define DECLARE_nvml(name, result, arguments)
#include "cuda/driver.def"
#undef CUDA_SYMBOL

typedef void (*function)(void);
typedef struct named {
    const char *name;
    function at;
} named;
static const named functions[] = {
#define CUDA_SYMBOL(library, name, version, result, arguments) ROW_##library(name)
#define ROW_cuda(name) { #name, (function)fake_##name },
#define ROW_nvrtc(name)
#define ROW_nvml(name)
#include "cuda/driver.def"
#undef CUDA_SYMBOL
};

FAKE_EXPORT CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                                         CUdriverProcAddressQueryResult *found);

FAKE_EXPORT CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                                         CUdriverProcAddressQueryResult *found)
{
    (void)flags;
    if (found) *found = version > 13000 ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SUCCESS;
    *out = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions && version <= 13000; i++)
        if (!strcmp(functions[i].name, name)) memcpy(out, &functions[i].at, sizeof *out);
    if (*out) return CUDA_SUCCESS;
    if (found && version <= 13000) *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_ERROR_NOT_FOUND;
}

/* ---- the driver and its devices ---- */

static int driver_version = 13000;

void fake_set_version(int version)
{
    driver_version = version;
}

CUresult fake_cuInit(unsigned flags)
{
    CALL("cuInit");
    return flags ? fake_wrong(CUDA_ERROR_INVALID_VALUE, "cuInit(%u)", flags) : CUDA_SUCCESS;
}

CUresult fake_cuDriverGetVersion(int *version)
{
    *version = driver_version;
    return CUDA_SUCCESS;
}

CUresult fake_cuGetErrorName(CUresult r, const char **name)
{
    static const struct {
        CUresult r;
        const char *name;
    } names[] = {
        { CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE" },
        { CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY" },
        { CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT" },
        { CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE" },
        { CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS" },
        { CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED" },
        { CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE" },
        { CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU" },
        { CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN" },
    };
    *name = "CUDA_ERROR_OF_THE_FAKE";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].r == r) *name = names[i].name;
    return CUDA_SUCCESS;
}

CUresult fake_cuGetErrorString(CUresult r, const char **text)
{
    (void)r;
    *text = "as the fake driver was told";
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGetCount(int *count)
{
    CALL("cuDeviceGetCount");
    for (*count = 0; fake_is_device(*count);) ++*count;
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGet(CUdevice *out, int ordinal)
{
    CALL("cuDeviceGet");
    if (!fake_is_device(ordinal)) return fake_wrong(CUDA_ERROR_INVALID_DEVICE, "device %d is asked for", ordinal);
    *out = ordinal;
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGetName(char *name, int size, CUdevice d)
{
    CALL("cuDeviceGetName");
    if (!fake_is_device(d)) return fake_wrong(CUDA_ERROR_INVALID_DEVICE, "the name of device %d", d);
    (void)snprintf(name, (size_t)size, "Fake GPU %d", d);
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceTotalMem(size_t *bytes, CUdevice d)
{
    CALL("cuDeviceTotalMem");
    (void)d;
    *bytes = (size_t)8 << 30;
    return CUDA_SUCCESS;
}

CUresult fake_cuDeviceGetUuid(CUuuid *uuid, CUdevice d)
{
    CALL("cuDeviceGetUuid");
    memset(uuid, d + 1, sizeof *uuid);
    return CUDA_SUCCESS;
}

static int shared_of(int sm)
{
    return sm == 75 ? 65536 : sm == 80 ? 166912 : sm < 90 || sm >= 120 ? 101376 : 232448;
}

CUresult fake_cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice d)
{
    CALL("cuDeviceGetAttribute");
    if (!fake_is_device(d)) return fake_wrong(CUDA_ERROR_INVALID_DEVICE, "an attribute of device %d", d);
    const int sm = fake_sm();
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = sm / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = sm % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = fake_units(); break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1980000; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 3201000; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 6144; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 50 << 20; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 49152; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = shared_of(sm); break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = shared_of(sm) + 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: *value = sm >= 90; break;
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED: *value = sm >= 90; break;
    default: *value = 1; break;
    }
    return CUDA_SUCCESS;
}

/* ---- streams and events ---- */

typedef struct event {
    fake_object o;
    bool is_recorded;
    double at;
} event;

/* NULL and the two special handles are the device's own streams. */
static bool is_stream(CUstream s)
{
    return (uintptr_t)s <= 2 || fake_is(s, FAKE_STREAM);
}
#define NEED_STREAM(s)                                                                                                 \
    do {                                                                                                               \
        if (!is_stream(s)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "%s: not a stream", __func__);                 \
    } while (0)
#define NEED_CONTEXT()                                                                                                 \
    do {                                                                                                               \
        if (fake_current() < 0) return fake_wrong(CUDA_ERROR_INVALID_CONTEXT, "%s: no current context", __func__);     \
    } while (0)

CUresult fake_cuStreamCreate(CUstream *out, unsigned flags)
{
    CALL("cuStreamCreate");
    NEED_CONTEXT();
    if (flags > 1) return fake_wrong(CUDA_ERROR_INVALID_VALUE, "a stream with flags %u", flags);
    *out = fake_make(FAKE_STREAM, sizeof(fake_object));
    return CUDA_SUCCESS;
}

CUresult fake_cuStreamDestroy(CUstream s)
{
    const CUresult injected = fake_enter("cuStreamDestroy");
    if (!fake_is(s, FAKE_STREAM)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is no stream is destroyed");
    fake_drop(s);
    return injected;
}

CUresult fake_cuStreamSynchronize(CUstream s)
{
    CALL("cuStreamSynchronize");
    NEED_STREAM(s);
    NEED_CONTEXT();
    return CUDA_SUCCESS;
}

CUresult fake_cuCtxSynchronize(void)
{
    CALL("cuCtxSynchronize");
    NEED_CONTEXT();
    return CUDA_SUCCESS;
}

CUresult fake_cuStreamQuery(CUstream s)
{
    CALL("cuStreamQuery");
    NEED_STREAM(s);
    return CUDA_SUCCESS;
}

CUresult fake_cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
    CALL("cuStreamWaitEvent");
    NEED_STREAM(s);
    if (!fake_is(e, FAKE_EVENT) || flags)
        return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is no event is waited for");
    return CUDA_SUCCESS;
}

CUresult fake_cuStreamGetCtx(CUstream s, CUcontext *out)
{
    CALL("cuStreamGetCtx");
    NEED_STREAM(s);
    *out = NULL;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult fake_cuEventCreate(CUevent *out, unsigned flags)
{
    CALL("cuEventCreate");
    NEED_CONTEXT();
    if (flags > 3) return fake_wrong(CUDA_ERROR_INVALID_VALUE, "an event with flags %u", flags);
    *out = fake_make(FAKE_EVENT, sizeof(event));
    return CUDA_SUCCESS;
}

void fake_record(CUevent e)
{
    event *x = (event *)(void *)e;
    x->is_recorded = true;
    x->at = fake_clock();
}

CUresult fake_cuEventRecord(CUevent e, CUstream s)
{
    CALL("cuEventRecord");
    NEED_STREAM(s);
    if (!fake_is(e, FAKE_EVENT)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is no event is recorded");
    fake_record(e);
    return CUDA_SUCCESS;
}

CUresult fake_cuEventSynchronize(CUevent e)
{
    CALL("cuEventSynchronize");
    return fake_is(e, FAKE_EVENT) ? CUDA_SUCCESS : fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is no event is awaited");
}

CUresult fake_cuEventQuery(CUevent e)
{
    CALL("cuEventQuery");
    return fake_is(e, FAKE_EVENT) ? CUDA_SUCCESS : fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is no event is asked");
}

CUresult fake_cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    CALL("cuEventElapsedTime");
    const event *a = (const event *)(void *)from, *b = (const event *)(void *)to;
    if (!fake_is(from, FAKE_EVENT) || !fake_is(to, FAKE_EVENT) || !a->is_recorded || !b->is_recorded)
        return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "the time between events that were not recorded");
    *ms = (float)((b->at - a->at) / 1e6);
    return CUDA_SUCCESS;
}

CUresult fake_cuEventDestroy(CUevent e)
{
    const CUresult injected = fake_enter("cuEventDestroy");
    if (!fake_is(e, FAKE_EVENT)) return fake_wrong(CUDA_ERROR_INVALID_HANDLE, "what is no event is destroyed");
    fake_drop(e);
    return injected;
}

/* ---- copies ---- */

#define NEED_RANGE(at, size)                                                                                           \
    do {                                                                                                               \
        if (!fake_in_memory(at, size))                                                                                 \
            return fake_wrong(CUDA_ERROR_INVALID_VALUE, "%s: %zu bytes are not in device memory", __func__, size);     \
    } while (0)

static CUresult copy(const char *name, void *to, const void *from, size_t size, CUstream s, bool to_device,
                     bool from_device)
{
    CALL(name);
    NEED_STREAM(s);
    NEED_CONTEXT();
    if (to_device) NEED_RANGE((uint64_t)(uintptr_t)to, size);
    if (from_device) NEED_RANGE((uint64_t)(uintptr_t)from, size);
    memmove(to, from, size);
    return CUDA_SUCCESS;
}

static void *pointer(CUdeviceptr at)
{
    return (void *)(uintptr_t)at;
}

CUresult fake_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream s)
{
    return copy("cuMemcpyAsync", pointer(to), pointer(from), size, s, false, false);
}

CUresult fake_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream s)
{
    return copy("cuMemcpyHtoDAsync", pointer(to), from, size, s, true, false);
}

CUresult fake_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream s)
{
    return copy("cuMemcpyDtoHAsync", to, pointer(from), size, s, false, true);
}

CUresult fake_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream s)
{
    fake_clock_add(1000); /* the device's own work takes time, as a launch does */
    return copy("cuMemcpyDtoDAsync", pointer(to), pointer(from), size, s, true, true);
}

CUresult fake_cuMemsetD8(CUdeviceptr at, unsigned char value, size_t size)
{
    CALL("cuMemsetD8");
    NEED_CONTEXT();
    NEED_RANGE(at, size);
    memset(pointer(at), value, size);
    return CUDA_SUCCESS;
}

CUresult fake_cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t size, CUstream s)
{
    CALL("cuMemsetD8Async");
    NEED_STREAM(s);
    NEED_CONTEXT();
    NEED_RANGE(at, size);
    memset(pointer(at), value, size);
    return CUDA_SUCCESS;
}
