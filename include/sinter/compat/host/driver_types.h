/* SPDX-License-Identifier: Apache-2.0 */
/* driver_types.h - types and enums of the CUDA runtime, for cuda_runtime_api.h. */
#ifndef SINTER_HOST_CUDA_TYPES
#define SINTER_HOST_CUDA_TYPES

#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#define CUDART_VERSION 12040

/* Words of CUDA's compiler in headers that other compilers read, too. */
#ifndef __host__
#define __host__
#define __device__
#define __forceinline__ inline
#endif
#define CUDART_CB

enum cudaError {
    cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInitializationError = 3,
    cudaErrorCudartUnloading = 4, cudaErrorInvalidDevicePointer = 17, cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInsufficientDriver = 35, cudaErrorNoDevice = 100, cudaErrorInvalidDevice = 101,
    cudaErrorNoKernelImageForDevice = 209, cudaErrorInvalidResourceHandle = 400, cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700, cudaErrorLaunchOutOfResources = 701, cudaErrorPeerAccessAlreadyEnabled = 704,
    cudaErrorPeerAccessNotEnabled = 705, cudaErrorAssert = 710, cudaErrorLaunchFailure = 719,
    cudaErrorNotSupported = 801, cudaErrorStreamCaptureUnsupported = 900, cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorUnknown = 999
};
typedef cudaError cudaError_t;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0, cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0, cudaStreamCaptureModeThreadLocal = 1, cudaStreamCaptureModeRelaxed = 2
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive = 1, cudaStreamCaptureStatusInvalidated = 2
};
enum : unsigned {
    cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventBlockingSync = 1,
    cudaEventDisableTiming = 2, cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2,
    cudaHostAllocWriteCombined = 4, cudaMemAttachGlobal = 1, cudaMemAttachHost = 2, cudaHostRegisterDefault = 0,
    cudaEventInterprocess = 4, cudaEventRecordDefault = 0, cudaEventWaitDefault = 0, cudaDeviceScheduleAuto = 0,
    cudaDeviceScheduleSpin = 1, cudaDeviceScheduleYield = 2, cudaDeviceScheduleBlockingSync = 4, cudaDeviceMapHost = 8,
    cudaGraphInstantiateFlagAutoFreeOnLaunch = 1
};
enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost = 1, cudaMemoryTypeDevice = 2, cudaMemoryTypeManaged = 3
};
enum cudaDataType_t {
    CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_8I = 3, CUDA_R_32I = 10, CUDA_R_16BF = 14
};
typedef cudaDataType_t cudaDataType;
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct float2 {
    float x, y;
};
struct float3 {
    float x, y, z;
};
struct float4 {
    float x, y, z, w;
};
struct int2 {
    int x, y;
};
struct int4 {
    int x, y, z, w;
};
struct uchar3 {
    unsigned char x, y, z;
};

namespace sinter_host_cuda {
using work = std::function<cudaError_t()>;
}
struct CUgraph_st {
    std::vector<sinter_host_cuda::work> steps;
};
struct CUgraphExec_st {
    std::vector<sinter_host_cuda::work> steps;
};
struct CUstream_st {
    CUgraph_st *capture = nullptr;
};
struct CUevent_st {
    std::chrono::steady_clock::time_point time;
    bool is_recorded = false;
};
typedef CUstream_st *cudaStream_t;
typedef CUevent_st *cudaEvent_t;
/* The default stream: all streams run at once. */
#define cudaStreamLegacy (static_cast<cudaStream_t>(nullptr))
#define cudaStreamPerThread (static_cast<cudaStream_t>(nullptr))
typedef CUgraph_st *cudaGraph_t;
typedef CUgraphExec_st *cudaGraphExec_t;
typedef void (*cudaHostFn_t)(void *user);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *user);

struct cudaUUID_t {
    char bytes[16];
};
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    std::size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerMultiprocessor, sharedMemPerBlockOptin, totalConstMem,
        memPitch, textureAlignment;
    int major, minor, multiProcessorCount, maxThreadsPerBlock, maxThreadsPerMultiProcessor, warpSize, regsPerBlock,
        regsPerMultiprocessor, clockRate, memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize,
        integrated, canMapHostMemory, computeMode, concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID,
        tccDriver, asyncEngineCount, unifiedAddressing, managedMemory, concurrentManagedAccess, pageableMemoryAccess,
        streamPrioritiesSupported, cooperativeLaunch, isMultiGpuBoard;
    int maxThreadsDim[3], maxGridSize[3];
};
struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
};

#endif
