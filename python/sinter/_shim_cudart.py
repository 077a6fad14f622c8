# SPDX-License-Identifier: Apache-2.0
"""cuda-python where memory of the device is memory of the host: cuda.cudart (cuda.bindings.runtime) and as much of cuda.cuda
(cuda.bindings.driver) as scripts use around engines. Every function gives a tuple: the status, then the results."""
import enum
import types

from ._host_device import address_of, device, now, total_memory

NAME = "cuda"


class cudaError_t(enum.IntEnum):
    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2
    cudaErrorInvalidDevice = 101
    cudaErrorInvalidResourceHandle = 400


class cudaMemcpyKind(enum.IntEnum):
    cudaMemcpyHostToHost = 0
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2
    cudaMemcpyDeviceToDevice = 3
    cudaMemcpyDefault = 4


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_INVALID_DEVICE = 101


OK, BAD = cudaError_t.cudaSuccess, cudaError_t.cudaErrorInvalidValue
handles = {}


def handle(thing):
    made = 0x1000 + len(handles)
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
    return (OK if not int(devPtr) or device.free(int(devPtr)) else BAD,)


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
    return cudaMemcpy(dst, src, count, kind)


def cudaMemset(devPtr, value, count):
    return (OK if device.fill(int(devPtr), int(value), int(count)) else BAD,)


def cudaMemsetAsync(devPtr, value, count, stream):
    return cudaMemset(devPtr, value, count)


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
    return (OK if handles.pop(int(stream), None) else cudaError_t.cudaErrorInvalidResourceHandle,)


def cudaStreamSynchronize(stream):
    return (OK,)


def cudaStreamQuery(stream):
    return (OK,)


def cudaStreamWaitEvent(stream, event, flags=0):
    return (OK,)


def cudaEventCreate():
    return OK, handle([None])


def cudaEventCreateWithFlags(flags):
    return cudaEventCreate()


def cudaEventRecord(event, stream=0):
    if int(event) not in handles:
        return (cudaError_t.cudaErrorInvalidResourceHandle,)
    handles[int(event)][0] = now()
    return (OK,)


def cudaEventSynchronize(event):
    return (OK,)


def cudaEventQuery(event):
    return (OK,)


def cudaEventDestroy(event):
    return cudaStreamDestroy(event)


def cudaEventElapsedTime(start, end):
    times = [handles.get(int(e), [None])[0] for e in (start, end)]
    if None in times:
        return cudaError_t.cudaErrorInvalidResourceHandle, 0.0
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


def cudaGetDeviceProperties(device):
    return OK, types.SimpleNamespace(name=b"host (sinter)", major=0, minor=0, totalGlobalMem=total_memory(), multiProcessorCount=1)


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
    return OK, cudaError_t(error).name.encode()


def driver_function(function):
    """The same with the driver's status."""
    def call(*arguments):
        status, *results = function(*arguments)
        return (CUresult(int(status)) if int(status) in CUresult._value2member_map_ else CUresult.CUDA_ERROR_INVALID_VALUE, *results)
    return call


DRIVER = {"cuInit": lambda flags: (0,), "cuDeviceGet": lambda ordinal: (0 if ordinal == 0 else 101, 0), "cuDeviceGetCount": cudaGetDeviceCount,
          "cuCtxCreate": lambda *_: (0, handle("context")), "cuCtxDestroy": lambda context: (0,),
          "cuDevicePrimaryCtxRetain": lambda d: (0, handle("context")), "cuCtxSetCurrent": lambda context: (0,),
          "cuCtxSynchronize": lambda: (0,), "cuDriverGetVersion": cudaDriverGetVersion, "cuMemAlloc": cudaMalloc, "cuMemFree": cudaFree,
          "cuMemAllocHost": cudaMalloc, "cuMemFreeHost": cudaFree, "cuMemGetInfo": cudaMemGetInfo,
          "cuMemcpyHtoD": lambda to, source, size: cudaMemcpy(to, source, size, 1),
          "cuMemcpyDtoH": lambda to, source, size: cudaMemcpy(to, source, size, 2),
          "cuMemcpyDtoD": lambda to, source, size: cudaMemcpy(to, source, size, 3),
          "cuMemcpyHtoDAsync": lambda to, source, size, stream: cudaMemcpy(to, source, size, 1),
          "cuMemcpyDtoHAsync": lambda to, source, size, stream: cudaMemcpy(to, source, size, 2),
          "cuStreamCreate": lambda flags=0: cudaStreamCreate(), "cuStreamDestroy": cudaStreamDestroy,
          "cuStreamSynchronize": cudaStreamSynchronize, "cuEventCreate": lambda flags=0: cudaEventCreate(),
          "cuEventRecord": cudaEventRecord, "cuEventSynchronize": cudaEventSynchronize, "cuEventElapsedTime": cudaEventElapsedTime,
          "cuEventDestroy": cudaEventDestroy,
          "cuGetErrorName": lambda error: (0, CUresult(error).name.encode()), "cuGetErrorString": lambda error: (0, CUresult(error).name.encode())}


def modules():
    """The modules by name."""
    top, bindings, runtime, driver = (types.ModuleType(n) for n in ("cuda", "cuda.bindings", "cuda.bindings.runtime", "cuda.bindings.driver"))
    for name, thing in list(globals().items()):
        if name.startswith("cuda"):
            setattr(runtime, name, thing)
    runtime.cudaStreamDefault, runtime.cudaStreamNonBlocking, runtime.cudaEventDefault = 0, 1, 0
    runtime.cudaStream_t = runtime.cudaEvent_t = int
    driver.CUresult, driver.CUdeviceptr, driver.CUstream = CUresult, int, int
    for name, function in DRIVER.items():
        setattr(driver, name, driver_function(function))
    top.cudart = bindings.runtime = runtime
    top.cuda = bindings.driver = driver
    top.bindings, top.__path__, bindings.__path__ = bindings, [], []
    return {"cuda": top, "cuda.cudart": runtime, "cuda.cuda": driver, "cuda.bindings": bindings, "cuda.bindings.runtime": runtime,
            "cuda.bindings.driver": driver}


class Library:
    """The C functions, for callers that open libcudart by ctypes: results go to what byref() points to."""

    @staticmethod
    def number(value):
        return int(getattr(value, "value", value) or 0)

    def __getattr__(self, name):
        function = globals().get(name)
        if not name.startswith("cuda") or function is None:
            raise AttributeError(f"there is no {name} where engines run on the CPU")
        outputs = RESULTS.get(name, 0)

        def call(*arguments):
            status, *results = function(*(self.number(a) for a in arguments[outputs:]))
            for place, result in zip(arguments[:outputs], results):
                place._obj.value = result
            return int(status)
        return call


# How many of the first arguments receive results.
RESULTS = {"cudaMalloc": 1, "cudaMallocHost": 1, "cudaHostAlloc": 1, "cudaMallocManaged": 1, "cudaMallocAsync": 1, "cudaMemGetInfo": 2,
           "cudaStreamCreate": 1, "cudaStreamCreateWithFlags": 1, "cudaEventCreate": 1, "cudaEventCreateWithFlags": 1,
           "cudaEventElapsedTime": 1, "cudaGetDeviceCount": 1, "cudaGetDevice": 1, "cudaRuntimeGetVersion": 1, "cudaDriverGetVersion": 1}
