/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_runtime_api.h - the CUDA runtime's calls of programs for TensorRT, on a machine without a GPU: device memory is
 * memory of the host, streams run what they are given at once, a captured graph is a list of what was called.
 *
 * Put this folder on the include path only where NVIDIA's own header is not. Memory is checked: a copy that leaves its
 * block, and an address that was never allocated, are cudaErrorInvalidValue. Device memory begins as 0xCD bytes. There
 * is one device. Any thread may call these functions; a stream belongs to one thread at a time. */
#ifndef SINTER_HOST_CUDA
#define SINTER_HOST_CUDA 1

#include "driver_types.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace sinter_host_cuda {

struct state {
    std::mutex lock;
    std::map<std::uintptr_t, std::size_t> blocks; /* of the device, by address */
    std::map<std::uintptr_t, std::size_t> pinned; /* of the host */
    cudaError_t last = cudaSuccess;
};
inline state &shared()
{
    static state s;
    return s;
}
inline cudaError_t say(cudaError_t e)
{
    if (e != cudaSuccess) shared().last = e;
    return e;
}
inline cudaError_t allocate(void **out, std::size_t size, bool is_device)
{
    if (!out) return say(cudaErrorInvalidValue);
    *out = nullptr;
    if (size == 0) return cudaSuccess;
    if (size > SIZE_MAX - 255) return say(cudaErrorMemoryAllocation);
    *out = ::aligned_alloc(256, (size + 255) / 256 * 256);
    if (!*out) return say(cudaErrorMemoryAllocation);
    if (is_device) std::memset(*out, 0xCD, size);
    const std::lock_guard<std::mutex> held(shared().lock);
    (is_device ? shared().blocks : shared().pinned)[reinterpret_cast<std::uintptr_t>(*out)] = size;
    return cudaSuccess;
}
inline cudaError_t release(void *p, bool is_device)
{
    if (!p) return cudaSuccess;
    {
        const std::lock_guard<std::mutex> held(shared().lock);
        auto &blocks = is_device ? shared().blocks : shared().pinned;
        if (!blocks.erase(reinterpret_cast<std::uintptr_t>(p))) return say(cudaErrorInvalidValue);
    }
    std::free(p);
    return cudaSuccess;
}
/* Blocks of the library that are the program's while a callback of this thread runs: operands of a plugin, debug
 * tensors. */
class lent {
  public:
    lent() : before_(blocks().size()) {}
    ~lent() { blocks().resize(before_); }
    lent(lent const &) = delete;
    lent &operator=(lent const &) = delete;
    void add(const void *p, std::size_t size) { blocks().emplace_back(reinterpret_cast<std::uintptr_t>(p), size); }
    static std::vector<std::pair<std::uintptr_t, std::size_t>> &blocks()
    {
        thread_local std::vector<std::pair<std::uintptr_t, std::size_t>> all;
        return all;
    }

  private:
    std::size_t before_;
};
inline bool lies_in(std::map<std::uintptr_t, std::size_t> const &blocks, std::uintptr_t at, std::size_t size)
{
    auto next = blocks.upper_bound(at);
    if (next == blocks.begin()) return false;
    const auto &block = *--next;
    return at - block.first <= block.second && size <= block.second - (at - block.first);
}
/* Does [p, p + size) lie in one block of the device? */
inline bool holds(const void *p, std::size_t size)
{
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(p);
    for (auto const &block : lent::blocks())
        if (at >= block.first && at - block.first <= block.second && size <= block.second - (at - block.first))
            return true;
    const std::lock_guard<std::mutex> held(shared().lock);
    return lies_in(shared().blocks, at, size);
}
inline bool is_pinned(const void *p)
{
    const std::lock_guard<std::mutex> held(shared().lock);
    return lies_in(shared().pinned, reinterpret_cast<std::uintptr_t>(p), 1);
}
inline cudaError_t copy(void *to, const void *from, std::size_t size, cudaMemcpyKind kind)
{
    if (size == 0) return cudaSuccess;
    if (!to || !from) return say(cudaErrorInvalidValue);
    if ((kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) && !holds(to, size))
        return say(cudaErrorInvalidValue);
    if ((kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice) && !holds(from, size))
        return say(cudaErrorInvalidValue);
    std::memmove(to, from, size);
    return cudaSuccess;
}
/* Does the work, or adds it to the graph that the stream captures. */
inline cudaError_t enqueue(cudaStream_t stream, const work &w)
{
    if (stream && stream->capture) {
        stream->capture->steps.push_back(w);
        return cudaSuccess;
    }
    return w();
}
} // namespace sinter_host_cuda

/* ---- memory ---- */
template <class T> inline cudaError_t cudaMalloc(T **out, std::size_t size)
{
    return sinter_host_cuda::allocate(reinterpret_cast<void **>(out), size, true);
}
template <class T> inline cudaError_t cudaMallocManaged(T **out, std::size_t size, unsigned = cudaMemAttachGlobal)
{
    return cudaMalloc(out, size);
}
template <class T> inline cudaError_t cudaMallocAsync(T **out, std::size_t size, cudaStream_t)
{
    return cudaMalloc(out, size);
}
inline cudaError_t cudaFree(void *p) { return sinter_host_cuda::release(p, true); }
inline cudaError_t cudaFreeAsync(void *p, cudaStream_t) { return cudaFree(p); }
template <class T> inline cudaError_t cudaMallocHost(T **out, std::size_t size, unsigned = 0)
{
    return sinter_host_cuda::allocate(reinterpret_cast<void **>(out), size, false);
}
template <class T> inline cudaError_t cudaHostAlloc(T **out, std::size_t size, unsigned)
{
    return cudaMallocHost(out, size);
}
inline cudaError_t cudaFreeHost(void *p) { return sinter_host_cuda::release(p, false); }
/* Rows begin a multiple of 256 bytes apart. */
template <class T>
inline cudaError_t cudaMallocPitch(T **out, std::size_t *pitch, std::size_t width, std::size_t height)
{
    *pitch = (width + 255) / 256 * 256;
    if (height && *pitch > SIZE_MAX / height) return sinter_host_cuda::say(cudaErrorMemoryAllocation);
    return cudaMalloc(out, *pitch * height);
}
inline cudaError_t cudaHostGetDevicePointer(void **out, void *p, unsigned)
{
    *out = p;
    return cudaSuccess;
}
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *p)
{
    const bool is_device = sinter_host_cuda::holds(p, 1);
    void *const at = const_cast<void *>(p);
    const bool is_pinned = !is_device && sinter_host_cuda::is_pinned(p);
    out->type = is_device ? cudaMemoryTypeDevice : is_pinned ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    out->device = is_device || is_pinned ? 0 : -1;
    out->devicePointer = is_device || is_pinned ? at : nullptr;
    out->hostPointer = at;
    return cudaSuccess;
}
inline cudaError_t cudaMemPrefetchAsync(const void *, std::size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError_t cudaHostRegister(void *, std::size_t, unsigned) { return cudaSuccess; }
inline cudaError_t cudaHostUnregister(void *) { return cudaSuccess; }
inline cudaError_t cudaMemcpy(void *to, const void *from, std::size_t size, cudaMemcpyKind kind)
{
    return sinter_host_cuda::copy(to, from, size, kind);
}
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t size, cudaMemcpyKind kind,
                                   cudaStream_t stream = nullptr)
{
    return sinter_host_cuda::enqueue(stream, [=] { return sinter_host_cuda::copy(to, from, size, kind); });
}
/* There is one device. */
inline cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, std::size_t size,
                                       cudaStream_t stream = nullptr)
{
    return cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
}
inline cudaError_t cudaMemcpyPeer(void *to, int, const void *from, int, std::size_t size)
{
    return cudaMemcpy(to, from, size, cudaMemcpyDeviceToDevice);
}
/* `height` rows of `width` bytes, which begin `to_pitch` and `from_pitch` bytes apart. */
inline cudaError_t cudaMemcpy2D(void *to, std::size_t to_pitch, const void *from, std::size_t from_pitch,
                                std::size_t width, std::size_t height, cudaMemcpyKind kind)
{
    if (width > to_pitch || width > from_pitch) return sinter_host_cuda::say(cudaErrorInvalidValue);
    for (std::size_t i = 0; i < height; i++) {
        const cudaError_t e = cudaMemcpy(static_cast<char *>(to) + i * to_pitch,
                                         static_cast<const char *>(from) + i * from_pitch, width, kind);
        if (e != cudaSuccess) return e;
    }
    return cudaSuccess;
}
inline cudaError_t cudaMemcpy2DAsync(void *to, std::size_t to_pitch, const void *from, std::size_t from_pitch,
                                     std::size_t width, std::size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream = nullptr)
{
    return sinter_host_cuda::enqueue(
        stream, [=] { return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind); });
}
inline cudaError_t cudaMemset(void *p, int value, std::size_t size)
{
    if (!sinter_host_cuda::holds(p, size)) return sinter_host_cuda::say(cudaErrorInvalidValue);
    std::memset(p, value, size);
    return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void *p, int value, std::size_t size, cudaStream_t stream = nullptr)
{
    return sinter_host_cuda::enqueue(stream, [=] { return cudaMemset(p, value, size); });
}
inline cudaError_t cudaMemset2D(void *p, std::size_t pitch, int value, std::size_t width, std::size_t height)
{
    if (width > pitch) return sinter_host_cuda::say(cudaErrorInvalidValue);
    for (std::size_t i = 0; i < height; i++) {
        const cudaError_t e = cudaMemset(static_cast<char *>(p) + i * pitch, value, width);
        if (e != cudaSuccess) return e;
    }
    return cudaSuccess;
}
inline cudaError_t cudaMemset2DAsync(void *p, std::size_t pitch, int value, std::size_t width, std::size_t height,
                                     cudaStream_t stream = nullptr)
{
    return sinter_host_cuda::enqueue(stream, [=] { return cudaMemset2D(p, pitch, value, width, height); });
}
inline cudaError_t cudaMemGetInfo(std::size_t *free_bytes, std::size_t *total)
{
    *total = static_cast<std::size_t>(8) << 30;
    *free_bytes = *total;
    const std::lock_guard<std::mutex> held(sinter_host_cuda::shared().lock);
    for (const auto &b : sinter_host_cuda::shared().blocks)
        *free_bytes -= b.second < *free_bytes ? b.second : *free_bytes;
    return cudaSuccess;
}

/* ---- streams and graphs ---- */
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    *out = new CUstream_st();
    return cudaSuccess;
}
inline cudaError_t cudaStreamCreate(cudaStream_t *out) { return cudaStreamCreateWithFlags(out, 0); }
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int)
{
    return cudaStreamCreateWithFlags(out, flags);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (!stream) return sinter_host_cuda::say(cudaErrorInvalidResourceHandle);
    delete stream->capture;
    delete stream;
    return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return stream && stream->capture ? sinter_host_cuda::say(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}
inline cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
inline cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t f, void *user)
{
    return sinter_host_cuda::enqueue(stream, [=] {
        f(user);
        return cudaSuccess;
    });
}
inline cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t f, void *user, unsigned)
{
    return sinter_host_cuda::enqueue(stream, [=] {
        f(stream, cudaSuccess, user);
        return cudaSuccess;
    });
}
inline cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least) *least = 0;
    if (greatest) *greatest = 0;
    return cudaSuccess;
}
inline cudaError_t cudaStreamGetPriority(cudaStream_t, int *out)
{
    *out = 0;
    return cudaSuccess;
}
inline cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned *out)
{
    *out = cudaStreamDefault;
    return cudaSuccess;
}
inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    if (!stream || stream->capture) return sinter_host_cuda::say(cudaErrorStreamCaptureUnsupported);
    stream->capture = new CUgraph_st();
    return cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    *out = stream ? stream->capture : nullptr;
    if (!*out) return sinter_host_cuda::say(cudaErrorStreamCaptureInvalidated);
    stream->capture = nullptr;
    return cudaSuccess;
}
inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *out)
{
    *out = stream && stream->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
inline cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned)
{
    *out = new CUgraph_st();
    return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long = 0)
{
    *out = nullptr;
    if (!graph) return sinter_host_cuda::say(cudaErrorInvalidValue);
    *out = new CUgraphExec_st{ graph->steps };
    return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, void *, char *, std::size_t)
{
    return cudaGraphInstantiate(out, graph);
}
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    return cudaGraphInstantiate(out, graph, flags);
}
inline cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t)
{
    return graph ? cudaSuccess : sinter_host_cuda::say(cudaErrorInvalidValue);
}
enum cudaGraphExecUpdateResult { cudaGraphExecUpdateSuccess = 0, cudaGraphExecUpdateError = 1 };
struct cudaGraphExecUpdateResultInfo {
    cudaGraphExecUpdateResult result;
};
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info)
{
    if (!exec || !graph) return sinter_host_cuda::say(cudaErrorInvalidValue);
    exec->steps = graph->steps;
    if (info) info->result = cudaGraphExecUpdateSuccess;
    return cudaSuccess;
}
/* The call of CUDA 11. */
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, void *, cudaGraphExecUpdateResult *out)
{
    cudaGraphExecUpdateResultInfo info = { cudaGraphExecUpdateError };
    const cudaError_t e = cudaGraphExecUpdate(exec, graph, &info);
    if (out) *out = info.result;
    return e;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    if (!graph) return sinter_host_cuda::say(cudaErrorInvalidValue);
    for (const auto &step : graph->steps) {
        const cudaError_t e = sinter_host_cuda::enqueue(stream, step);
        if (e != cudaSuccess) return e;
    }
    return cudaSuccess;
}
inline cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void *, std::size_t *count)
{
    *count = graph->steps.size();
    return cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    delete graph;
    return cudaSuccess;
}

/* ---- events ---- */
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned)
{
    *out = new CUevent_st();
    return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t *out, unsigned flags = 0)
{
    return cudaEventCreateWithFlags(out, flags);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr)
{
    return sinter_host_cuda::enqueue(stream, [event] {
        event->time = std::chrono::steady_clock::now();
        event->is_recorded = true;
        return cudaSuccess;
    });
}
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr, unsigned = 0)
{
    return cudaEventRecord(event, stream);
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    if (!from->is_recorded || !to->is_recorded) return sinter_host_cuda::say(cudaErrorInvalidResourceHandle);
    *ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
    return cudaSuccess;
}

/* ---- the device ---- */
inline cudaError_t cudaGetDeviceCount(int *out)
{
    *out = 1;
    return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : sinter_host_cuda::say(cudaErrorInvalidDevice);
}
inline cudaError_t cudaGetDevice(int *out)
{
    *out = 0;
    return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device)
{
    if (device != 0) return sinter_host_cuda::say(cudaErrorInvalidDevice);
    *out = cudaDeviceProp();
    std::strcpy(out->name, "sinter on the CPU");
    std::size_t free_bytes;
    out->maxThreadsPerBlock = 1024;
    out->warpSize = 32;
    out->multiProcessorCount = 1;
    out->integrated = out->unifiedAddressing = out->managedMemory = out->canMapHostMemory = 1;
    out->maxThreadsPerMultiProcessor = 1024;
    for (int i = 0; i < 3; i++) out->maxThreadsDim[i] = out->maxGridSize[i] = 1024;
    return cudaMemGetInfo(&free_bytes, &out->totalGlobalMem);
}
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrWarpSize = 10, cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16, cudaDevAttrIntegrated = 18, cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37, cudaDevAttrL2CacheSize = 38, cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76, cudaDevAttrManagedMemory = 83, cudaDevAttrPageableMemoryAccess = 88,
    cudaDevAttrConcurrentManagedAccess = 89, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMaxPersistingL2CacheSize = 108, cudaDevAttrMemoryPoolsSupported = 115
};
inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    cudaDeviceProp p;
    const cudaError_t e = cudaGetDeviceProperties(&p, device);
    if (e != cudaSuccess) return e;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrIntegrated: *value = p.integrated; break;
    default: *value = 0;
    }
    return cudaSuccess;
}
/* No limit of a GPU holds here: none can be set, and all are 0. */
enum cudaLimit {
    cudaLimitStackSize = 0, cudaLimitPrintfFifoSize = 1, cudaLimitMallocHeapSize = 2,
    cudaLimitMaxL2FetchGranularity = 5, cudaLimitPersistingL2CacheSize = 6
};
inline cudaError_t cudaDeviceSetLimit(cudaLimit, std::size_t size)
{
    return size == 0 ? cudaSuccess : sinter_host_cuda::say(cudaErrorNotSupported);
}
inline cudaError_t cudaDeviceGetLimit(std::size_t *size, cudaLimit)
{
    *size = 0;
    return cudaSuccess;
}
inline cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
inline cudaError_t cudaGetDeviceFlags(unsigned *out)
{
    *out = cudaDeviceScheduleAuto;
    return cudaSuccess;
}
inline cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return sinter_host_cuda::say(cudaErrorInvalidDevice); }
inline cudaError_t cudaDeviceDisablePeerAccess(int) { return sinter_host_cuda::say(cudaErrorInvalidDevice); }
inline cudaError_t cudaDeviceCanAccessPeer(int *out, int, int)
{
    *out = 0;
    return cudaSuccess;
}
inline cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device)
{
    if (device != 0 || !text || size < 13) return sinter_host_cuda::say(cudaErrorInvalidValue);
    std::memcpy(text, "0000:00:00.0", 13);
    return cudaSuccess;
}
inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaDeviceReset() { return cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int *out)
{
    *out = CUDART_VERSION;
    return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int *out) { return cudaRuntimeGetVersion(out); }
inline cudaError_t cudaPeekAtLastError() { return sinter_host_cuda::shared().last; }
inline cudaError_t cudaGetLastError()
{
    const cudaError_t e = sinter_host_cuda::shared().last;
    sinter_host_cuda::shared().last = cudaSuccess;
    return e;
}
inline const char *cudaGetErrorName(cudaError_t e)
{
    switch (e) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError: return "cudaErrorInitializationError";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    default: return "cudaErrorUnknown";
    }
}
inline const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInitializationError: return "initialization error";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorNotSupported: return "operation not supported";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    default: return "unknown error";
    }
}

#endif
