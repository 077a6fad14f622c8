# SPDX-License-Identifier: Apache-2.0
"""cuda-python where memory of the device is memory of the host: cuda.cudart (cuda.bindings.runtime) and as much of cuda.cuda
(cuda.bindings.driver) as scripts use around engines. Every function gives a tuple: the status, then the results."""
import ctypes
import enum
import re
import types

from ._host_device import (address_of, begin_capture, captures, device, end_capture, join_capture, launch, now, numbers, submit,
                           total_memory)

NAME = "cuda"
VERSIONS = {"cuda-python": "12.0.0", "cuda-bindings": "12.0.0"}


# What CUDA says of an error, for the runtime and the driver.
ERROR_TEXTS = {0: "no error", 1: "invalid argument", 2: "out of memory", 3: "initialization error", 100: "no CUDA-capable device is detected",
               101: "invalid device ordinal", 400: "invalid resource handle", 600: "device not ready", 801: "operation not supported",
               900: "operation not permitted when stream is capturing", 999: "unknown error"}


class cudaError_t(enum.IntEnum):
    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2
    cudaErrorInitializationError = 3
    cudaErrorNoDevice = 100
    cudaErrorInvalidDevice = 101
    cudaErrorInvalidResourceHandle = 400
    cudaErrorNotReady = 600
    cudaErrorNotSupported = 801
    cudaErrorStreamCaptureUnsupported = 900
    cudaErrorUnknown = 999


class cudaMemcpyKind(enum.IntEnum):
    cudaMemcpyHostToHost = 0
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2
    cudaMemcpyDeviceToDevice = 3
    cudaMemcpyDefault = 4


class cudaStreamCaptureMode(enum.IntEnum):
    cudaStreamCaptureModeGlobal = 0
    cudaStreamCaptureModeThreadLocal = 1
    cudaStreamCaptureModeRelaxed = 2


class cudaStreamCaptureStatus(enum.IntEnum):
    cudaStreamCaptureStatusNone = 0
    cudaStreamCaptureStatusActive = 1
    cudaStreamCaptureStatusInvalidated = 2


class cudaMemoryType(enum.IntEnum):
    cudaMemoryTypeUnregistered = 0
    cudaMemoryTypeHost = 1
    cudaMemoryTypeDevice = 2
    cudaMemoryTypeManaged = 3


class nvrtcResult(enum.IntEnum):
    NVRTC_SUCCESS = 0
    NVRTC_ERROR_OUT_OF_MEMORY = 1
    NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2
    NVRTC_ERROR_INVALID_INPUT = 3
    NVRTC_ERROR_INVALID_PROGRAM = 4
    NVRTC_ERROR_INVALID_OPTION = 5
    NVRTC_ERROR_COMPILATION = 6
    NVRTC_ERROR_INTERNAL_ERROR = 11


# Attributes of a device that scripts ask for, by CUDA's numbers. Of a host most of them are 0.
ATTRIBUTES = {"MaxThreadsPerBlock": 1, "MaxBlockDimX": 2, "MaxGridDimX": 5, "MaxSharedMemoryPerBlock": 8, "WarpSize": 10, "ClockRate": 13,
              "MultiProcessorCount": 16, "Integrated": 18, "CanMapHostMemory": 19, "ComputeMode": 20, "ConcurrentKernels": 31,
              "EccEnabled": 32, "MemoryClockRate": 36, "GlobalMemoryBusWidth": 37, "L2CacheSize": 38, "MaxThreadsPerMultiProcessor": 39,
              "AsyncEngineCount": 40, "UnifiedAddressing": 41, "ComputeCapabilityMajor": 75, "ComputeCapabilityMinor": 76,
              "MaxSharedMemoryPerMultiprocessor": 81, "ManagedMemory": 83, "ConcurrentManagedAccess": 89, "MemoryPoolsSupported": 115}
HOST_VALUES = {1: 1, 10: 1, 16: 1, 18: 1, 19: 1, 41: 1, 83: 1, 89: 1, 115: 1}
cudaDeviceAttr = enum.IntEnum("cudaDeviceAttr", {f"cudaDevAttr{name}": value for name, value in ATTRIBUTES.items()})
CUdevice_attribute = enum.IntEnum("CUdevice_attribute", {
    "CU_DEVICE_ATTRIBUTE_" + re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", name).upper().replace("MULTI_PROCESSOR", "MULTIPROCESSOR"): value
    for name, value in ATTRIBUTES.items()})


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_DEVICE = 101
    CUDA_ERROR_INVALID_HANDLE = 400
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_NOT_SUPPORTED = 801
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900
    CUDA_ERROR_UNKNOWN = 999


CUctx_flags = enum.IntEnum("CUctx_flags", {"CU_CTX_" + name: value for name, value in {
    "SCHED_AUTO": 0, "SCHED_SPIN": 1, "SCHED_YIELD": 2, "SCHED_BLOCKING_SYNC": 4, "MAP_HOST": 8, "LMEM_RESIZE_TO_MAX": 16}.items()})
CUstream_flags = enum.IntEnum("CUstream_flags", {"CU_STREAM_DEFAULT": 0, "CU_STREAM_NON_BLOCKING": 1})
CUevent_flags = enum.IntEnum("CUevent_flags", {"CU_EVENT_DEFAULT": 0, "CU_EVENT_BLOCKING_SYNC": 1, "CU_EVENT_DISABLE_TIMING": 2})
OK, BAD, NO_HANDLE = cudaError_t.cudaSuccess, cudaError_t.cudaErrorInvalidValue, cudaError_t.cudaErrorInvalidResourceHandle
handles = {}


def handle(thing):
    made = next(numbers)
    handles[made] = thing
    return made


def place(memory, writable):
    """(address, what keeps it) of an int or a buffer."""
    if hasattr(memory, "__int__") and not hasattr(memory, "__array_interface__"):
        return int(memory), None
    at, _, *keep = address_of(memory, writable)
    return at, keep


def cudaMalloc(size):
    try:
        return OK, device.alloc(int(size))
    except (MemoryError, ValueError, OverflowError):
        return cudaError_t.cudaErrorMemoryAllocation, 0


def cudaFree(devPtr):
    return (OK if not int(devPtr or 0) or device.free(int(devPtr)) else BAD,)


def cudaMallocHost(size):
    return cudaMalloc(size)


def cudaHostAlloc(size, flags):
    return cudaMalloc(size)


def cudaMallocManaged(size, flags=1):
    return cudaMalloc(size)


def cudaMallocAsync(size, stream):
    return cudaMalloc(size)


def cudaFreeAsync(devPtr, stream):
    return cudaFree(devPtr)


def cudaFreeHost(ptr):
    return cudaFree(ptr)


def cudaMemcpy(dst, src, count, kind):
    to_device = kind in (cudaMemcpyKind.cudaMemcpyHostToDevice, cudaMemcpyKind.cudaMemcpyDeviceToDevice)
    from_device = kind in (cudaMemcpyKind.cudaMemcpyDeviceToHost, cudaMemcpyKind.cudaMemcpyDeviceToDevice)
    try:
        (to, _keep), (source, _kept) = place(dst, True), place(src, False)
    except (TypeError, ValueError):
        return (BAD,)
    return (OK if device.copy(to, source, int(count), to_device, from_device) else BAD,)


def cudaMemcpyAsync(dst, src, count, kind, stream):
    return (OK if submit(stream, lambda: cudaMemcpy(dst, src, count, kind) == (OK,)) else BAD,)


def cudaMemcpy2D(dst, dpitch, src, spitch, width, height, kind):
    if min(dpitch, spitch) < width:
        return (BAD,)
    (to, _keep), (source, _kept) = place(dst, True), place(src, False)
    rows = [cudaMemcpy(to + y * dpitch, source + y * spitch, width, kind) for y in range(height)]
    return (OK if all(row == (OK,) for row in rows) else BAD,)


def cudaMemcpy2DAsync(dst, dpitch, src, spitch, width, height, kind, stream):
    return (OK if submit(stream, lambda: cudaMemcpy2D(dst, dpitch, src, spitch, width, height, kind) == (OK,)) else BAD,)


def cudaHostRegister(ptr, size, flags):
    return (OK,)


def cudaHostUnregister(ptr):
    return (OK,)


def cudaHostGetDevicePointer(pHost, flags=0):
    return OK, int(pHost)


def cudaPointerGetAttributes(ptr):
    is_ours = device.holds(int(ptr), 1)
    kind = cudaMemoryType.cudaMemoryTypeDevice if is_ours else cudaMemoryType.cudaMemoryTypeUnregistered
    return OK, types.SimpleNamespace(type=kind, device=0, devicePointer=int(ptr), hostPointer=int(ptr))


def cudaMemset(devPtr, value, count):
    return (OK if device.fill(int(devPtr), int(value), int(count)) else BAD,)


def cudaMemsetAsync(devPtr, value, count, stream):
    return (OK if submit(stream, lambda: cudaMemset(devPtr, value, count) == (OK,)) else BAD,)


def cudaMemset2D(devPtr, pitch, value, width, height):
    is_good = pitch >= width and all(cudaMemset(int(devPtr) + y * int(pitch), value, width) == (OK,) for y in range(int(height)))
    return (OK if is_good else BAD,)


def cudaMemset2DAsync(devPtr, pitch, value, width, height, stream):
    return (OK if submit(stream, lambda: cudaMemset2D(devPtr, pitch, value, width, height) == (OK,)) else BAD,)


def cudaMallocPitch(width, height):
    pitch = -(-int(width) // 256) * 256
    status, at = cudaMalloc(pitch * int(height))
    return status, at, pitch if status == OK else 0


def cudaMemcpyPeer(dst, dstDevice, src, srcDevice, count):
    if dstDevice or srcDevice:
        return (cudaError_t.cudaErrorInvalidDevice,)
    return cudaMemcpy(dst, src, count, cudaMemcpyKind.cudaMemcpyDeviceToDevice)


def cudaMemcpyPeerAsync(dst, dstDevice, src, srcDevice, count, stream):
    return (OK if submit(stream, lambda: cudaMemcpyPeer(dst, dstDevice, src, srcDevice, count) == (OK,)) else BAD,)


def cudaMemPrefetchAsync(devPtr, count, dstDevice, *stream):
    return (OK if device.holds(int(devPtr), int(count)) else BAD,)


def cudaMemAdvise(devPtr, count, advice, device_):
    return (OK if device.holds(int(devPtr), int(count)) else BAD,)


def cudaMemGetInfo():
    total = total_memory()
    return OK, total - device.used(), total


def cudaStreamCreate():
    return OK, handle("stream")


def cudaStreamCreateWithFlags(flags):
    return cudaStreamCreate()


def cudaStreamCreateWithPriority(flags, priority):
    return cudaStreamCreate()


def cudaStreamDestroy(stream):
    return (OK if handles.pop(int(stream), None) is not None else NO_HANDLE,)


def cudaStreamSynchronize(stream):
    return (OK,)


def cudaStreamQuery(stream):
    return (OK,)


def cudaStreamWaitEvent(stream, event, flags=0):
    kept = handles.get(int(event), [None, None])[1]
    if any(kept is work for work in list(captures.values())):
        join_capture(stream, kept)
    return (OK,)


def cudaStreamGetPriority(hStream):
    return OK, 0


def cudaStreamGetFlags(hStream):
    return OK, 0


def cudaDeviceGetStreamPriorityRange():
    return OK, 0, 0


def cudaLaunchHostFunc(stream, fn, userData):
    return (cudaError_t.cudaErrorNotSupported,)


# ---- graphs ----

def cudaStreamBeginCapture(stream, mode=cudaStreamCaptureMode.cudaStreamCaptureModeGlobal):
    return (OK if begin_capture(stream) else cudaError_t.cudaErrorStreamCaptureUnsupported,)


def cudaStreamEndCapture(stream):
    kept = end_capture(stream)
    return (BAD, 0) if kept is None else (OK, handle(kept))


def cudaStreamIsCapturing(stream):
    return OK, cudaStreamCaptureStatus(int(stream) in captures)


def cudaGraphInstantiate(graph, *more):
    """What follows the graph is flags, or, in old versions, a buffer for a log and its size: these give the node of an error, too."""
    node = (0,) if len(more) == 2 else ()
    return (OK, handle(handles[int(graph)]), *node) if int(graph) in handles else (NO_HANDLE, 0, *node)


def cudaGraphInstantiateWithFlags(graph, flags=0):
    return cudaGraphInstantiate(graph, flags)


def cudaGraphLaunch(graphExec, stream):
    if int(graphExec) not in handles:
        return (NO_HANDLE,)
    return (OK if launch(handles[int(graphExec)], stream) else cudaError_t.cudaErrorUnknown,)


def cudaGraphUpload(graphExec, stream):
    return (OK if int(graphExec) in handles else NO_HANDLE,)


def cudaGraphDestroy(graph):
    return cudaStreamDestroy(graph)


def cudaGraphExecDestroy(graphExec):
    return cudaStreamDestroy(graphExec)


# ---- pools of memory ----

class cudaMemAllocationType(enum.IntEnum):
    cudaMemAllocationTypeInvalid = 0
    cudaMemAllocationTypePinned = 1


class cudaMemAllocationHandleType(enum.IntEnum):
    cudaMemHandleTypeNone = 0
    cudaMemHandleTypePosixFileDescriptor = 1


class cudaMemLocationType(enum.IntEnum):
    cudaMemLocationTypeInvalid = 0
    cudaMemLocationTypeDevice = 1
    cudaMemLocationTypeHost = 2


class cudaMemPoolAttr(enum.IntEnum):
    cudaMemPoolReuseFollowEventDependencies = 1
    cudaMemPoolReuseAllowOpportunistic = 2
    cudaMemPoolReuseAllowInternalDependencies = 3
    cudaMemPoolAttrReleaseThreshold = 4
    cudaMemPoolAttrReservedMemCurrent = 5
    cudaMemPoolAttrReservedMemHigh = 6
    cudaMemPoolAttrUsedMemCurrent = 7
    cudaMemPoolAttrUsedMemHigh = 8


class cudaMemLocation:
    def __init__(self):
        self.type, self.id = cudaMemLocationType.cudaMemLocationTypeInvalid, 0


class cudaMemPoolProps:
    def __init__(self):
        self.allocType, self.handleTypes = cudaMemAllocationType.cudaMemAllocationTypePinned, cudaMemAllocationHandleType.cudaMemHandleTypeNone
        self.location, self.maxSize, self.usage = cudaMemLocation(), 0, 0


POOL = 1                                            # the device's own pool, which is always there


def pool_of(pool):
    """The attributes of a pool; None: there is no such pool. A pool has no memory of its own: allocations are the device's."""
    if int(pool) == POOL:
        return handles.setdefault(POOL, {})
    found = handles.get(int(pool))
    return found if isinstance(found, dict) else None


def cudaMemPoolCreate(poolProps):
    return OK, handle({})


def cudaMemPoolDestroy(memPool):
    return (BAD,) if int(memPool) == POOL or pool_of(memPool) is None else cudaStreamDestroy(memPool)


def cudaMemPoolSetAttribute(memPool, attr, value):
    if pool_of(memPool) is None:
        return (BAD,)
    pool_of(memPool)[int(attr)] = int(value)
    return (OK,)


def cudaMemPoolGetAttribute(memPool, attr):
    found = pool_of(memPool)
    used = int(attr) >= cudaMemPoolAttr.cudaMemPoolAttrReservedMemCurrent
    return (BAD, 0) if found is None else (OK, device.used() if used else found.get(int(attr), 0))


def cudaMemPoolTrimTo(memPool, minBytesToKeep):
    return (BAD if pool_of(memPool) is None else OK,)


def cudaMallocFromPoolAsync(size, memPool, stream):
    return (BAD, 0) if pool_of(memPool) is None else cudaMalloc(size)


def cudaDeviceGetDefaultMemPool(device):
    return OK, POOL


def cudaDeviceGetMemPool(device):
    return OK, POOL


def cudaDeviceSetMemPool(device, memPool):
    return (BAD if pool_of(memPool) is None else OK,)


# ---- events, devices ----


def cudaEventCreate():
    return OK, handle([None, None])              # when it was recorded, and for which graph


def cudaEventCreateWithFlags(flags):
    return cudaEventCreate()


def cudaEventRecord(event, stream=0):
    if int(event) not in handles:
        return (NO_HANDLE,)
    handles[int(event)][:] = now(), captures.get(int(stream or 0))
    return (OK,)


def cudaEventRecordWithFlags(event, stream=0, flags=0):
    return cudaEventRecord(event, stream)


def cudaEventSynchronize(event):
    return (OK,)


def cudaEventQuery(event):
    return (OK,)


def cudaEventDestroy(event):
    return cudaStreamDestroy(event)


def cudaEventElapsedTime(start, end):
    times = [handles.get(int(e), [None])[0] for e in (start, end)]
    if None in times:
        return NO_HANDLE, 0.0
    return OK, (times[1] - times[0]) * 1e3


def cudaGetDeviceCount():
    return OK, 1


def cudaGetDevice():
    return OK, 0


def cudaSetDevice(device):
    return (OK if int(device) == 0 else cudaError_t.cudaErrorInvalidDevice,)


def cudaDeviceSynchronize():
    return (OK,)


def cudaDeviceReset():
    return (OK,)


def cudaSetDeviceFlags(flags):
    return (OK,)


def cudaGetDeviceFlags():
    return OK, 0


def cudaInitDevice(device, deviceFlags=0, flags=0):
    return cudaSetDevice(device)


def cudaDeviceCanAccessPeer(device, peerDevice):
    return OK, 0


limits = {}


class cudaLimit(enum.IntEnum):
    cudaLimitStackSize = 0
    cudaLimitPrintfFifoSize = 1
    cudaLimitMallocHeapSize = 2
    cudaLimitPersistingL2CacheSize = 6


def cudaDeviceSetLimit(limit, value):
    limits[int(limit)] = int(value)
    return (OK,)


def cudaDeviceGetLimit(limit):
    return OK, limits.get(int(limit), 0)


def cudaDeviceGetAttribute(attr, device):
    return OK, HOST_VALUES.get(int(attr), 0)


def cudaDeviceGetPCIBusId(len, device):
    return OK, b"0000:00:00.0"


def cudaProfilerStart():
    return (OK,)


def cudaProfilerStop():
    return (OK,)


def cudaGetDeviceProperties(device):
    return OK, types.SimpleNamespace(name=b"host (sinter)", major=0, minor=0, totalGlobalMem=total_memory(), multiProcessorCount=1,
                                     clockRate=0, memoryClockRate=0, memoryBusWidth=0, l2CacheSize=0, integrated=1, warpSize=1,
                                     sharedMemPerBlock=0, maxThreadsPerBlock=1, ECCEnabled=0, pciBusID=0, pciDeviceID=0)


def cudaRuntimeGetVersion():
    return OK, 12000


def cudaDriverGetVersion():
    return OK, 12000


def cudaGetLastError():
    return (OK,)


def cudaPeekAtLastError():
    return (OK,)


def cudaGetErrorName(error):
    return OK, cudaError_t(error).name.encode()


def cudaGetErrorString(error):
    return OK, ERROR_TEXTS[int(error)].encode()


def driver_function(function):
    """The same with the driver's status."""
    def call(*arguments):
        status, *results = function(*arguments)
        return (CUresult(int(status)) if int(status) in CUresult._value2member_map_ else CUresult.CUDA_ERROR_INVALID_VALUE, *results)
    return call


def filler(width):
    """cuMemsetD16 and cuMemsetD32: numbers of so many bytes."""
    def fill(dst, value, count, stream=0):
        return (OK if submit(stream, device.fill, int(dst), int(value), int(count), width) else BAD,)
    return fill


DRIVER = {"cuInit": lambda flags: (0,), "cuDeviceGet": lambda ordinal: (0 if ordinal == 0 else 101, 0), "cuDeviceGetCount": cudaGetDeviceCount,
          "cuCtxCreate": lambda *_: (0, handle("context")), "cuCtxDestroy": lambda context: (0,),
          "cuDevicePrimaryCtxRetain": lambda d: (0, handle("context")), "cuCtxSetCurrent": lambda context: (0,),
          "cuCtxSynchronize": lambda: (0,), "cuDriverGetVersion": cudaDriverGetVersion, "cuMemAlloc": cudaMalloc, "cuMemFree": cudaFree,
          "cuMemAllocHost": cudaMalloc, "cuMemFreeHost": cudaFree, "cuMemGetInfo": cudaMemGetInfo,
          "cuMemcpyHtoD": lambda to, source, size: cudaMemcpy(to, source, size, 1),
          "cuMemcpyDtoH": lambda to, source, size: cudaMemcpy(to, source, size, 2),
          "cuMemcpyDtoD": lambda to, source, size: cudaMemcpy(to, source, size, 3),
          "cuMemcpyDtoDAsync": lambda to, source, size, stream: cudaMemcpyAsync(to, source, size, 3, stream),
          "cuMemcpyHtoDAsync": lambda to, source, size, stream: cudaMemcpyAsync(to, source, size, 1, stream),
          "cuMemcpyDtoHAsync": lambda to, source, size, stream: cudaMemcpyAsync(to, source, size, 2, stream),
          "cuStreamCreate": lambda flags=0: cudaStreamCreate(), "cuStreamDestroy": cudaStreamDestroy,
          "cuStreamSynchronize": cudaStreamSynchronize, "cuEventCreate": lambda flags=0: cudaEventCreate(),
          "cuEventRecord": cudaEventRecord, "cuEventSynchronize": cudaEventSynchronize, "cuEventElapsedTime": cudaEventElapsedTime,
          "cuEventDestroy": cudaEventDestroy, "cuEventQuery": cudaEventQuery, "cuStreamWaitEvent": cudaStreamWaitEvent,
          "cuStreamQuery": cudaStreamQuery, "cuStreamBeginCapture": cudaStreamBeginCapture, "cuStreamEndCapture": cudaStreamEndCapture,
          "cuStreamIsCapturing": cudaStreamIsCapturing, "cuGraphInstantiate": cudaGraphInstantiate, "cuGraphLaunch": cudaGraphLaunch,
          "cuGraphUpload": cudaGraphUpload, "cuGraphDestroy": cudaGraphDestroy, "cuGraphExecDestroy": cudaGraphExecDestroy,
          "cuMemAllocAsync": cudaMallocAsync, "cuMemFreeAsync": cudaFreeAsync, "cuMemAllocManaged": cudaMallocManaged,
          "cuMemHostGetDevicePointer": cudaHostGetDevicePointer, "cuMemHostAlloc": cudaHostAlloc, "cuMemHostRegister": cudaHostRegister, "cuMemHostUnregister": cudaHostUnregister,
          "cuMemsetD8": cudaMemset, "cuMemsetD8Async": cudaMemsetAsync, "cuMemsetD16": filler(2), "cuMemsetD16Async": filler(2),
          "cuMemsetD32": filler(4), "cuMemsetD32Async": filler(4), "cuMemcpy": lambda to, source, size: cudaMemcpy(to, source, size, 0),
          "cuMemcpyAsync": lambda to, source, size, stream: cudaMemcpyAsync(to, source, size, 0, stream), "cuMemPrefetchAsync": cudaMemPrefetchAsync,
          "cuMemAdvise": cudaMemAdvise, "cuMemAllocPitch": lambda width, height, element: cudaMallocPitch(width, height),
          "cuStreamCreateWithPriority": lambda flags, priority: cudaStreamCreate(), "cuStreamGetPriority": cudaStreamGetPriority,
          "cuStreamGetFlags": cudaStreamGetFlags, "cuCtxGetStreamPriorityRange": cudaDeviceGetStreamPriorityRange,
          "cuGraphInstantiateWithFlags": cudaGraphInstantiateWithFlags, "cuProfilerStart": cudaProfilerStart, "cuProfilerStop": cudaProfilerStop,
          "cuCtxGetDevice": lambda: (0, 0), "cuCtxGetApiVersion": lambda context: (0, 3020), "cuCtxSetLimit": cudaDeviceSetLimit,
          "cuCtxGetLimit": cudaDeviceGetLimit, "cuDevicePrimaryCtxGetState": lambda d: (0, 0, 1), "cuDevicePrimaryCtxReset": lambda d: (0,),
          "cuDevicePrimaryCtxSetFlags": lambda d, flags: (0,), "cuDeviceCanAccessPeer": cudaDeviceCanAccessPeer,
          "cuDeviceGetPCIBusId": cudaDeviceGetPCIBusId, "cuCtxGetCurrent": lambda: (0, next(iter(handles), 0)),
          "cuCtxPushCurrent": lambda context: (0,), "cuCtxPopCurrent": lambda: (0, 0), "cuDevicePrimaryCtxRelease": lambda d: (0,),
          "cuDeviceGetName": lambda length, d: (0, b"host (sinter)"), "cuDeviceTotalMem": lambda d: (0, total_memory()),
          "cuDeviceGetAttribute": cudaDeviceGetAttribute, "cuDeviceComputeCapability": lambda d: (0, 0, 0),
          "cuGetErrorName": lambda error: (0, CUresult(error).name.encode()), "cuGetErrorString": lambda error: (0, ERROR_TEXTS[int(error)].encode())}


def missing_from(module, has="memory, copies, streams, events and graphs are"):
    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{module}.{name} is not there where engines run on the CPU (sinter.shim): {has}")
    return __getattr__


def modules():
    """The modules by name."""
    top, bindings, runtime, driver, nvrtc = (types.ModuleType(n) for n in (
        "cuda", "cuda.bindings", "cuda.bindings.runtime", "cuda.bindings.driver", "cuda.bindings.nvrtc"))
    for name, thing in list(globals().items()):
        if name.startswith("cuda"):
            setattr(runtime, name, thing)
    runtime.cudaStreamDefault, runtime.cudaStreamNonBlocking, runtime.cudaEventDefault = 0, 1, 0
    runtime.cudaEventBlockingSync, runtime.cudaEventDisableTiming = 1, 2
    runtime.cudaHostAllocDefault, runtime.cudaHostAllocPortable, runtime.cudaHostAllocMapped, runtime.cudaHostRegisterDefault = 0, 1, 2, 0
    runtime.cudaHostAllocWriteCombined, runtime.cudaMemAttachGlobal, runtime.cudaMemAttachHost = 4, 1, 2
    runtime.cudaEventWaitDefault, runtime.cudaEventRecordDefault, runtime.cudaEventInterprocess = 0, 0, 4
    runtime.cudaDeviceScheduleAuto, runtime.cudaDeviceScheduleSpin, runtime.cudaDeviceScheduleBlockingSync = 0, 1, 4
    runtime.cudaDeviceScheduleYield, runtime.cudaDeviceMapHost, runtime.cudaStreamLegacy, runtime.cudaStreamPerThread = 2, 8, 1, 2
    driver.CU_STREAM_LEGACY, driver.CU_STREAM_PER_THREAD = 1, 2
    runtime.cudaHostRegisterPortable, runtime.cudaHostRegisterMapped, runtime.cudaHostRegisterReadOnly = 1, 2, 8
    runtime.cudaStream_t = runtime.cudaEvent_t = runtime.cudaGraph_t = runtime.cudaGraphExec_t = int
    for module in (runtime, driver):
        module.__getattr__ = missing_from(module.__name__)
    driver.CUresult, driver.CUdevice_attribute = CUresult, CUdevice_attribute
    driver.CUctx_flags, driver.CUstream_flags, driver.CUevent_flags = CUctx_flags, CUstream_flags, CUevent_flags
    driver.CU_MEMHOSTALLOC_PORTABLE, driver.CU_MEMHOSTALLOC_DEVICEMAP, driver.CU_MEMHOSTALLOC_WRITECOMBINED = 1, 2, 4
    driver.CU_MEMHOSTREGISTER_PORTABLE, driver.CU_MEMHOSTREGISTER_DEVICEMAP = 1, 2
    driver.cuuint32_t = driver.cuuint64_t = runtime.cudaMemPool_t = int
    for name in ("CUdevice", "CUdeviceptr", "CUstream", "CUevent", "CUcontext", "CUmodule", "CUfunction", "CUgraph", "CUgraphExec"):
        setattr(driver, name, int)
    nvrtc.nvrtcResult, nvrtc.nvrtcVersion = nvrtcResult, lambda: (nvrtcResult.NVRTC_SUCCESS, 12, 0)
    nvrtc.nvrtcGetErrorString = lambda error: (nvrtcResult.NVRTC_SUCCESS, nvrtcResult(error).name.encode())
    nvrtc.__getattr__ = missing_from("cuda.bindings.nvrtc", "there is no GPU to compile kernels for")
    for name, function in DRIVER.items():
        setattr(driver, name, driver_function(function))
    top.__version__ = bindings.__version__ = VERSIONS["cuda-bindings"]
    top.cudart = bindings.runtime = runtime
    top.cuda = bindings.driver = driver
    top.nvrtc = bindings.nvrtc = nvrtc
    top.bindings, top.__path__, bindings.__path__ = bindings, [], []
    return {"cuda": top, "cuda.cudart": runtime, "cuda.cuda": driver, "cuda.bindings": bindings, "cuda.bindings.runtime": runtime,
            "cuda.bindings.driver": driver, "cuda.nvrtc": nvrtc, "cuda.bindings.nvrtc": nvrtc}


class Library:
    """The C functions, for callers that open libcudart by ctypes: results go to what byref() or pointer() points to."""

    @staticmethod
    def number(value):
        if hasattr(value, "_obj"):                              # byref()
            return ctypes.addressof(value._obj)
        if isinstance(value, (ctypes.Array, ctypes._Pointer)):
            return ctypes.cast(value, ctypes.c_void_p).value or 0
        return int(getattr(value, "value", value) or 0)

    @staticmethod
    def receive(place, result):
        """Puts a result where the caller wants it; of a structure the fields that are known."""
        to = place._obj if hasattr(place, "_obj") else getattr(place, "contents", None)
        if to is None:
            raise ctypes.ArgumentError(f"a result has no place in a {type(place).__name__}: byref() or pointer() of a variable is wanted")
        if isinstance(to, ctypes.Structure):
            for name, *_ in to._fields_:
                if hasattr(result, name):
                    setattr(to, name, getattr(result, name))
        else:
            to.value = result

    def __getattr__(self, name):
        function = globals().get(name)
        if not name.startswith("cuda") or function is None:
            raise AttributeError(f"there is no {name} where engines run on the CPU")
        places = RESULTS.get(name, ())

        def call(*arguments):
            given = [self.number(a) for i, a in enumerate(arguments) if i not in places]
            status, *results = function(*given)
            if name in TEXTS:
                return results[0]
            for i, result in zip(places, results):
                if i < len(arguments) and arguments[i] is not None:
                    self.receive(arguments[i], result)
            return int(status)
        return call


# Which arguments receive results.
RESULTS = {**dict.fromkeys(("cudaMalloc", "cudaMallocHost", "cudaHostAlloc", "cudaMallocManaged", "cudaMallocAsync", "cudaStreamCreate",
                            "cudaStreamCreateWithFlags", "cudaStreamCreateWithPriority", "cudaEventCreate", "cudaEventCreateWithFlags",
                            "cudaEventElapsedTime", "cudaGetDeviceCount", "cudaGetDevice", "cudaGetDeviceProperties",
                            "cudaDeviceGetAttribute", "cudaGraphInstantiate", "cudaHostGetDevicePointer", "cudaRuntimeGetVersion",
                            "cudaDriverGetVersion"), (0,)),
           **dict.fromkeys(("cudaMemGetInfo", "cudaDeviceGetStreamPriorityRange"), (0, 1)),
           **dict.fromkeys(("cudaStreamEndCapture", "cudaStreamIsCapturing", "cudaStreamGetPriority"), (1,))}
# The functions that give a text, and no status.
TEXTS = "cudaGetErrorName", "cudaGetErrorString"
