/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_driver.c - finding libcuda, NVRTC and NVML, and filling the table from driver.def.
 *
 * libcuda is asked for each function by name and version: the plain symbols mean the oldest signature, and which one a
 * header's name stands for changes between majors. A library that lacks a function is not half used: all of its
 * pointers stay NULL, and the reason names the function. */
#include "cuda/cuda_driver.h"

#include "base/os.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* dlsym's object pointer as a function pointer, without a cast that ISO C does not have. */
static_assert(sizeof(void *) == sizeof(void (*)(void)), "functions are found as objects");
static void function_set(void *slot, void *function)
{
    memcpy(slot, &function, sizeof function);
}

/* Opens what `variable` names, and nothing else where it is set; else the first of the names that opens. */
static void *library_open(const char *variable, const char *const *names, uint32_t count, char *why, size_t why_size)
{
    const char *wanted = os_env(variable);
    char first[160] = "", other[160];
    if (wanted && *wanted) {
        void *library = os_library_open(wanted, other, sizeof other);
        if (!library) (void)snprintf(why, why_size, "%s: %s", variable, other);
        return library;
    }
    for (uint32_t i = 0; i < count; i++) {
        void *library = os_library_open(names[i], i ? other : first, i ? sizeof other : sizeof first);
        if (library) return library;
    }
    (void)snprintf(why, why_size, "%s (%s names another file)", first, variable);
    return NULL;
}

/* ---- libcuda ---- */

static void cuda_forget(cuda_driver *d)
{
#define CUDA_SYMBOL(library, name, version, result, arguments) FORGET_##library(name)
#define FORGET_cuda(name) d->name = NULL;
#define FORGET_nvrtc(name)
#define FORGET_nvml(name)
#include "cuda/driver.def"
#undef FORGET_cuda
#undef FORGET_nvrtc
#undef FORGET_nvml
#undef CUDA_SYMBOL
    os_library_close(d->cuda);
    d->cuda = NULL;
    d->cuda_version = 0;
    d->cuda_path[0] = '\0';
}

static bool cuda_find(cuda_driver *d, cuda_get_proc_address get, const char *name, int version, void *slot)
{
    void *function = NULL;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult r = get(name, &function, version, 0, &found);
    if (r == CUDA_SUCCESS && function && found == CU_GET_PROC_ADDRESS_SUCCESS) {
        function_set(slot, function);
        return true;
    }
    (void)snprintf(d->why_cuda, sizeof d->why_cuda,
                   "the driver is too old: it has no %s of CUDA %d.%d (12.3 is needed)", name, version / 1000,
                   version % 1000 / 10);
    return false;
}

static void cuda_open(cuda_driver *d)
{
    static const char *const names[] = { "libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1" };
    d->cuda = library_open("SINTER_LIBCUDA", names, COUNT_OF(names), d->why_cuda, sizeof d->why_cuda);
    if (!d->cuda) return;
    os_library_path(d->cuda, d->cuda_path, sizeof d->cuda_path);
    cuda_get_proc_address get = NULL;
    function_set(&get, os_library_symbol(d->cuda, "cuGetProcAddress_v2"));
    bool is_whole = get != NULL;
    if (!get)
        (void)snprintf(d->why_cuda, sizeof d->why_cuda,
                       "'%.160s' is too old: it has no cuGetProcAddress_v2 (CUDA 12.3 is needed)", d->cuda_path);
#define CUDA_SYMBOL(library, name, version, result, arguments) FIND_##library(name, version)
#define FIND_cuda(name, version) is_whole = is_whole && cuda_find(d, get, #name, version, &d->name);
#define FIND_nvrtc(name, version)
#define FIND_nvml(name, version)
#include "cuda/driver.def"
#undef FIND_cuda
#undef FIND_nvrtc
#undef FIND_nvml
#undef CUDA_SYMBOL
    int version = 0;
    if (is_whole && (d->cuDriverGetVersion(&version) != CUDA_SUCCESS || version <= 0)) {
        (void)snprintf(d->why_cuda, sizeof d->why_cuda, "'%.160s' does not say its version", d->cuda_path);
        is_whole = false;
    }
    if (!is_whole) {
        cuda_forget(d);
        return;
    }
    d->cuda_version = version;
}

/* ---- NVRTC ---- */

static void nvrtc_forget(cuda_driver *d)
{
#define CUDA_SYMBOL(library, name, version, result, arguments) FORGET_##library(name)
#define FORGET_cuda(name)
#define FORGET_nvrtc(name) d->name = NULL;
#define FORGET_nvml(name)
#include "cuda/driver.def"
#undef FORGET_cuda
#undef FORGET_nvrtc
#undef FORGET_nvml
#undef CUDA_SYMBOL
    os_library_close(d->nvrtc);
    d->nvrtc = NULL;
    d->nvrtc_version = 0;
    d->nvrtc_path[0] = '\0';
}

static bool nvrtc_find(cuda_driver *d, const char *name, void *slot)
{
    void *function = os_library_symbol(d->nvrtc, name);
    function_set(slot, function);
    if (!function)
        (void)snprintf(d->why_nvrtc, sizeof d->why_nvrtc, "'%.160s' is too old: it has no %s", d->nvrtc_path, name);
    return function != NULL;
}

/* Below a folder of libraries, or by the loader's own search where `folder` is "". */
static void *nvrtc_open_in(const char *folder, const char *version)
{
    char path[512], why[64];
    const int length = snprintf(path, sizeof path, "%s%slibnvrtc.so%s", folder, *folder ? "/" : "", version);
    return length > 0 && (size_t)length < sizeof path ? os_library_open(path, why, sizeof why) : NULL;
}

/* PyPI's package keeps it in site-packages/nvidia: cu13 for 13, cuda_nvrtc for 12. */
static void *nvrtc_open_python(const char *prefix, const char *package, const char *version)
{
    for (uint32_t minor = 8; minor < 24; minor++) {
        char folder[448];
        const int length =
            snprintf(folder, sizeof folder, "%s/lib/python3.%u/site-packages/nvidia/%s/lib", prefix, minor, package);
        void *library = length > 0 && (size_t)length < sizeof folder ? nvrtc_open_in(folder, version) : NULL;
        if (library) return library;
    }
    return NULL;
}

static void *nvrtc_open_version(const char *version)
{
    void *library = nvrtc_open_in("", version);
    if (!library) library = nvrtc_open_in("/usr/local/cuda/lib64", version);
    const char *home = os_env("CUDA_HOME"), *prefix = os_env("VIRTUAL_ENV");
    if (!library && home && *home) {
        char folder[448];
        const int length = snprintf(folder, sizeof folder, "%s/lib64", home);
        if (length > 0 && (size_t)length < sizeof folder) library = nvrtc_open_in(folder, version);
    }
    if (!library && prefix && *prefix) {
        library = nvrtc_open_python(prefix, "cu13", version);
        if (!library) library = nvrtc_open_python(prefix, "cuda_nvrtc", version);
    }
    return library;
}

/* A driver loads machine code of its own major and of older ones, so a compiler of its own major goes first. */
static void nvrtc_open(cuda_driver *d)
{
    static const char *const versions[] = { ".13", ".12", ".11.2" };
    const char *wanted = os_env("SINTER_LIBNVRTC");
    if (wanted && *wanted) {
        d->nvrtc = library_open("SINTER_LIBNVRTC", NULL, 0, d->why_nvrtc, sizeof d->why_nvrtc);
        if (!d->nvrtc) return;
    }
    const bool is_12 = d->cuda_version && d->cuda_version < 13000;
    if (!d->nvrtc && is_12) d->nvrtc = nvrtc_open_version(".12");
    for (uint32_t i = 0; !d->nvrtc && i < COUNT_OF(versions); i++) d->nvrtc = nvrtc_open_version(versions[i]);
    if (!d->nvrtc) {
        (void)snprintf(
            d->why_nvrtc, sizeof d->why_nvrtc,
            "libnvrtc.so.13, .12 and .11.2 are not where the loader looks, nor in /usr/local/cuda/lib64, "
            "$CUDA_HOME/lib64 or PyPI's nvidia-cuda-nvrtc below $VIRTUAL_ENV (SINTER_LIBNVRTC names the file)");
        return;
    }
    os_library_path(d->nvrtc, d->nvrtc_path, sizeof d->nvrtc_path);
    bool is_whole = true;
#define CUDA_SYMBOL(library, name, version, result, arguments) FIND_##library(name)
#define FIND_cuda(name)
#define FIND_nvrtc(name) is_whole = is_whole && nvrtc_find(d, #name, &d->name);
#define FIND_nvml(name)
#include "cuda/driver.def"
#undef FIND_cuda
#undef FIND_nvrtc
#undef FIND_nvml
#undef CUDA_SYMBOL
    int major = 0, minor = 0;
    if (is_whole && d->nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) {
        (void)snprintf(d->why_nvrtc, sizeof d->why_nvrtc, "'%.160s' does not say its version", d->nvrtc_path);
        is_whole = false;
    }
    if (!is_whole) {
        nvrtc_forget(d);
        return;
    }
    d->nvrtc_version = major * 1000 + minor * 10;
}

void cuda_driver_match(cuda_driver *d)
{
    const int mine = d->nvrtc_version, its = d->cuda_version;
    if (!d->nvrtc || !d->cuda || mine / 1000 <= its / 1000) return;
    (void)snprintf(
        d->why_nvrtc, sizeof d->why_nvrtc,
        "NVRTC %d.%d is newer than the driver, which is of CUDA %d.%d and cannot load its code: install NVRTC "
        "%d (SINTER_LIBNVRTC names the file), or a newer driver",
        mine / 1000, mine % 1000 / 10, its / 1000, its % 1000 / 10, its / 1000);
    nvrtc_forget(d);
}

/* ---- NVML ---- */

static void nvml_open(cuda_driver *d)
{
    static const char *const names[] = { "libnvidia-ml.so.1", "libnvidia-ml.so", "/usr/lib/wsl/lib/libnvidia-ml.so.1" };
    d->nvml = library_open("SINTER_LIBNVML", names, COUNT_OF(names), d->why_nvml, sizeof d->why_nvml);
    if (!d->nvml) return;
#define CUDA_SYMBOL(library, name, version, result, arguments) FIND_##library(name)
#define FIND_cuda(name)
#define FIND_nvrtc(name)
#define FIND_nvml(name) function_set(&d->name, os_library_symbol(d->nvml, #name));
#include "cuda/driver.def"
#undef FIND_cuda
#undef FIND_nvrtc
#undef FIND_nvml
#undef CUDA_SYMBOL
}

void cuda_driver_open(cuda_driver *d)
{
    *d = (cuda_driver){ 0 };
    cuda_open(d);
    nvrtc_open(d);
    nvml_open(d);
}

void cuda_driver_close(cuda_driver *d)
{
    os_library_close(d->cuda);
    os_library_close(d->nvrtc);
    os_library_close(d->nvml);
    *d = (cuda_driver){ 0 };
}

/* ---- failures ---- */

static sinter_status status_of(CUresult r)
{
    switch (r) {
    case CUDA_ERROR_OUT_OF_MEMORY: return SINTER_NO_MEMORY;
    case CUDA_ERROR_NO_BINARY_FOR_GPU: return SINTER_INCOMPATIBLE;
    /* There is no device that works. */
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_DEVICE_NOT_LICENSED:
    case CUDA_ERROR_OPERATING_SYSTEM:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    /* The context is dead: every later call on it fails alike. */
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_UNKNOWN: return SINTER_DEVICE;
    default: return SINTER_INTERNAL;
    }
}

sinter_status cuda_fail(env *e, const cuda_driver *d, CUresult r, const char *what)
{
    const char *name = NULL, *meaning = NULL;
    if (!d->cuGetErrorName || d->cuGetErrorName(r, &name) != CUDA_SUCCESS) name = NULL;
    if (!d->cuGetErrorString || d->cuGetErrorString(r, &meaning) != CUDA_SUCCESS) meaning = NULL;
    return env_fail(e, status_of(r), __FILE__, __LINE__, "CUDA, %s: %s (%d)%s%s", what, name ? name : "error", (int)r,
                    meaning ? ": " : "", meaning ? meaning : "");
}
