/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - as much of the CUDA driver's interface as programs use around engines, over cuda_runtime_api.h. */
#ifndef SINTER_HOST_CUDA_DRIVER
#define SINTER_HOST_CUDA_DRIVER

#include "cuda_runtime_api.h"

#define CUDA_VERSION CUDART_VERSION
#define CUDAAPI

typedef enum cudaError_enum {
    CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100, CUDA_ERROR_INVALID_DEVICE = 101, CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_SUPPORTED = 801, CUDA_ERROR_UNKNOWN = 999
} CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef CUstream_st *CUstream;
typedef CUevent_st *CUevent;
typedef unsigned long long CUdeviceptr;
enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DEFAULT = 0, CU_CTX_SCHED_AUTO = 0 };
typedef enum CUdevice_attribute_enum {
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
} CUdevice_attribute;

namespace sinter_host_cuda {
inline CUresult result(cudaError_t e) { return static_cast<CUresult>(e); }
inline void *pointer(CUdeviceptr p) { return reinterpret_cast<void *>(static_cast<std::uintptr_t>(p)); }
inline CUcontext &current()
{
    static thread_local CUcontext context = nullptr;
    return context;
}
} // namespace sinter_host_cuda

inline CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
inline CUresult cuDriverGetVersion(int *out) { return sinter_host_cuda::result(cudaDriverGetVersion(out)); }
inline CUresult cuGetErrorName(CUresult e, const char **out)
{
    *out = cudaGetErrorName(static_cast<cudaError_t>(e));
    return CUDA_SUCCESS;
}
inline CUresult cuGetErrorString(CUresult e, const char **out)
{
    *out = cudaGetErrorString(static_cast<cudaError_t>(e));
    return CUDA_SUCCESS;
}
inline CUresult cuDeviceGetCount(int *out) { return sinter_host_cuda::result(cudaGetDeviceCount(out)); }
inline CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
    *out = ordinal;
    return sinter_host_cuda::result(cudaSetDevice(ordinal));
}
inline CUresult cuDeviceGetName(char *text, int size, CUdevice device)
{
    cudaDeviceProp p;
    const cudaError_t e = cudaGetDeviceProperties(&p, device);
    if (e != cudaSuccess || size <= 0) return e == cudaSuccess ? CUDA_ERROR_INVALID_VALUE : sinter_host_cuda::result(e);
    std::strncpy(text, p.name, static_cast<std::size_t>(size) - 1);
    text[size - 1] = 0;
    return CUDA_SUCCESS;
}
inline CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice device)
{
    return sinter_host_cuda::result(cudaDeviceGetAttribute(out, static_cast<cudaDeviceAttr>(attribute), device));
}
/* There is one context, whose handle says nothing. */
inline CUresult cuCtxCreate(CUcontext *out, unsigned, CUdevice)
{
    static char one;
    *out = sinter_host_cuda::current() = reinterpret_cast<CUcontext>(&one);
    return CUDA_SUCCESS;
}
inline CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) { return cuCtxCreate(out, 0, device); }
inline CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
inline CUresult cuCtxDestroy(CUcontext) { return CUDA_SUCCESS; }
inline CUresult cuCtxSetCurrent(CUcontext context)
{
    sinter_host_cuda::current() = context;
    return CUDA_SUCCESS;
}
inline CUresult cuCtxGetCurrent(CUcontext *out)
{
    *out = sinter_host_cuda::current();
    return CUDA_SUCCESS;
}
inline CUresult cuCtxPushCurrent(CUcontext context) { return cuCtxSetCurrent(context); }
inline CUresult cuCtxPopCurrent(CUcontext *out) { return out ? cuCtxGetCurrent(out) : CUDA_SUCCESS; }
inline CUresult cuCtxSynchronize() { return CUDA_SUCCESS; }
inline CUresult cuMemAlloc(CUdeviceptr *out, std::size_t size)
{
    void *p = nullptr;
    const cudaError_t e = cudaMalloc(&p, size);
    *out = reinterpret_cast<std::uintptr_t>(p);
    return sinter_host_cuda::result(e);
}
inline CUresult cuMemFree(CUdeviceptr p) { return sinter_host_cuda::result(cudaFree(sinter_host_cuda::pointer(p))); }
inline CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, std::size_t size)
{
    return sinter_host_cuda::result(cudaMemcpy(sinter_host_cuda::pointer(to), from, size, cudaMemcpyHostToDevice));
}
inline CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, std::size_t size)
{
    return sinter_host_cuda::result(cudaMemcpy(to, sinter_host_cuda::pointer(from), size, cudaMemcpyDeviceToHost));
}
inline CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, std::size_t size, CUstream stream)
{
    return sinter_host_cuda::result(
        cudaMemcpyAsync(sinter_host_cuda::pointer(to), from, size, cudaMemcpyHostToDevice, stream));
}
inline CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, std::size_t size, CUstream stream)
{
    return sinter_host_cuda::result(
        cudaMemcpyAsync(to, sinter_host_cuda::pointer(from), size, cudaMemcpyDeviceToHost, stream));
}
/* `count` words of one value. */
inline CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream)
{
    return sinter_host_cuda::result(sinter_host_cuda::enqueue(stream, [=] {
        const std::vector<unsigned> all(count, value);
        return cudaMemcpy(sinter_host_cuda::pointer(to), all.data(), count * sizeof value, cudaMemcpyHostToDevice);
    }));
}
inline CUresult cuMemsetD32(CUdeviceptr to, unsigned value, std::size_t count)
{
    return cuMemsetD32Async(to, value, count, nullptr);
}
inline CUresult cuMemGetInfo(std::size_t *free_bytes, std::size_t *total)
{
    return sinter_host_cuda::result(cudaMemGetInfo(free_bytes, total));
}
inline CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    return sinter_host_cuda::result(cudaStreamCreateWithFlags(out, flags));
}
inline CUresult cuStreamDestroy(CUstream stream) { return sinter_host_cuda::result(cudaStreamDestroy(stream)); }
inline CUresult cuStreamSynchronize(CUstream stream) { return sinter_host_cuda::result(cudaStreamSynchronize(stream)); }

#endif
