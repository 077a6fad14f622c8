# SPDX-License-Identifier: Apache-2.0
"""What posts do with libcudart opened by ctypes: results by byref() and by pointer(), texts of errors, attributes and properties of
the device, graphs; and modules of pycuda and cuda that a CPU does not have."""
import ctypes
import ctypes.util

runtime = ctypes.CDLL("libcudart.so.12")


def check(status):
    assert status == 0, runtime.cudaGetErrorString(status)


class Properties(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 256), ("uuid", ctypes.c_byte * 16), ("totalGlobalMem", ctypes.c_size_t), ("warpSize", ctypes.c_int)]


def libraries():
    """Scripts open TensorRT's libraries before they load models, look for the packages, and ask for their versions."""
    import importlib.metadata
    import importlib.util
    for name in ("libnvinfer.so.10", "libnvinfer_plugin.so", "/usr/lib/libnvonnxparser.so.10.16.0"):
        assert ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL) and ctypes.cdll.LoadLibrary(name)
    for name in ("nvinfer", "nvinfer_plugin", "nvonnxparser", "cudart"):
        assert ctypes.CDLL(ctypes.util.find_library(name)), name
    assert ctypes.util.find_library("nvinfer_lean") is None and ctypes.util.find_library("c")
    library = ctypes.CDLL("libnvinfer.so")
    library.getInferLibVersion.restype = ctypes.c_int
    import tensorrt
    major, minor, patch = map(int, tensorrt.__version__.split("."))
    assert library.getInferLibVersion() == major * 10000 + minor * 100 + patch and library.getInferLibMajorVersion() == major
    assert ctypes.CDLL("libnvinfer_plugin.so.10").initLibNvInferPlugins(None, b"")
    for name in ("libnvinfer_lean.so.10", "libnvinfer", "nvinfer.so"):
        try:
            ctypes.CDLL(name)
            raise AssertionError(f"{name} was opened")
        except OSError as e:
            assert name in str(e)
    try:
        library.createInferBuilder_INTERNAL
        raise AssertionError("libnvinfer has a builder")
    except AttributeError as e:
        assert "createInferBuilder_INTERNAL" in str(e) and "module tensorrt" in str(e)
    for name in ("tensorrt", "tensorrt.plugin", "tensorrt_bindings", "tensorrt_libs", "pycuda", "pycuda.driver", "cuda", "cuda.cudart", "cuda.bindings.runtime"):
        assert importlib.util.find_spec(name), name
    for name in ("tensorrt", "TensorRT", "tensorrt_bindings", "tensorrt-bindings"):
        assert importlib.metadata.version(name) == tensorrt.__version__, name
    assert importlib.metadata.version("pycuda") and importlib.metadata.version("cuda-python")
    assert "tensorrt" in {d.metadata["Name"] for d in importlib.metadata.distributions()}
    from tensorrt.plugin._lib import QDP_REGISTRY
    import tensorrt.plugin as trtp
    assert "doors::scale" not in QDP_REGISTRY

    @trtp.register("doors::scale")
    def describe(x: trtp.TensorDesc, factor: float) -> trtp.TensorDesc:
        return x.like()
    found = QDP_REGISTRY["doors::scale"]
    assert found.plugin_id == "doors::scale" and found.aot_impl_func is None and found.input_tensor_names == ["x"]
    assert list(trtp.op.doors.scale.input_attrs) == ["factor"] and "doors::scale" in list(QDP_REGISTRY)


def pools():
    """Memory from pools, and the driver's flags and mapped memory of the host."""
    from cuda import cuda, cudart
    properties = cudart.cudaMemPoolProps()
    properties.allocType = cudart.cudaMemAllocationType.cudaMemAllocationTypePinned
    properties.location.type, properties.location.id = cudart.cudaMemLocationType.cudaMemLocationTypeDevice, 0
    status, pool = cudart.cudaMemPoolCreate(properties)
    assert status == cudart.cudaError_t.cudaSuccess
    threshold = cudart.cudaMemPoolAttr.cudaMemPoolAttrReleaseThreshold
    for each in (pool, cudart.cudaDeviceGetDefaultMemPool(0)[1]):
        assert cudart.cudaMemPoolSetAttribute(each, threshold, cuda.cuuint64_t(4096)) == (cudart.cudaError_t.cudaSuccess,)
        assert cudart.cudaMemPoolGetAttribute(each, threshold)[1] == 4096
        status, memory = cudart.cudaMallocFromPoolAsync(64, each, 0)
        assert not status and memory and cudart.cudaMemset(memory, 1, 64)[0] == 0 and cudart.cudaMemset(memory, 1, 65)[0] != 0
        assert cudart.cudaFreeAsync(memory, 0)[0] == 0
    assert cudart.cudaMemPoolDestroy(pool)[0] == 0 and cudart.cudaMallocFromPoolAsync(64, pool, 0)[0] != 0
    assert cuda.cuCtxCreate(cuda.CUctx_flags.CU_CTX_MAP_HOST, 0)[0] == cuda.CUresult.CUDA_SUCCESS
    status, host = cuda.cuMemHostAlloc(64, cuda.CU_MEMHOSTALLOC_DEVICEMAP)
    assert not status and cuda.cuMemHostGetDevicePointer(host, 0) == (cuda.CUresult.CUDA_SUCCESS, host) and not cuda.cuMemFreeHost(host)[0]


def main():
    first, second, size = ctypes.c_void_p(), ctypes.c_void_p(), 64
    check(runtime.cudaMalloc(ctypes.byref(first), size))
    check(runtime.cudaMalloc(ctypes.pointer(second), ctypes.c_size_t(size)))
    assert first.value and second.value and first.value != second.value
    assert runtime.cudaGetErrorName(2) == b"cudaErrorMemoryAllocation" and runtime.cudaGetErrorString(ctypes.c_int(2)) == b"out of memory"
    count, free, total = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_size_t()
    check(runtime.cudaDeviceGetAttribute(ctypes.byref(count), 16, 0))                # multiprocessors
    check(runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
    assert count.value >= 1 and total.value >= free.value > 0
    properties = Properties()
    check(runtime.cudaGetDeviceProperties(ctypes.byref(properties), 0))
    assert b"sinter" in properties.name and properties.totalGlobalMem == total.value and properties.warpSize == 1
    stream, graph, launched, capturing = (ctypes.c_void_p() for _ in range(4))
    check(runtime.cudaStreamCreate(ctypes.byref(stream)))
    check(runtime.cudaStreamBeginCapture(stream, 0))
    check(runtime.cudaStreamIsCapturing(stream, ctypes.byref(capturing)))
    assert capturing.value == 1
    source = (ctypes.c_uint8 * size)(*range(size))
    check(runtime.cudaMemcpyAsync(first, source, size, 1, stream))
    check(runtime.cudaStreamEndCapture(stream, ctypes.byref(graph)))
    check(runtime.cudaGraphInstantiate(ctypes.byref(launched), graph, None, None, 0))
    source[0] = 99
    check(runtime.cudaGraphLaunch(launched, stream))
    check(runtime.cudaStreamSynchronize(stream))
    assert ctypes.string_at(first.value, size)[0] == 99
    try:
        runtime.cudaMalloc(first, size)
        raise AssertionError("a result went nowhere")
    except ctypes.ArgumentError as e:
        assert "byref() or pointer()" in str(e)
    for module in ("pycuda.elementwise", "cuda.core"):
        try:
            __import__(module)
            raise AssertionError(f"{module} was imported")
        except ModuleNotFoundError as e:
            assert module in str(e) and "need a GPU" in str(e) and e.name == module
    libraries()
    pools()
    import pycuda.driver as cuda
    try:
        cuda.module_from_file("kernel.cubin")
        raise AssertionError("there is a module of kernels")
    except AttributeError as e:
        assert "pycuda.driver.module_from_file" in str(e) and "need a GPU" in str(e)
    print("done")


main()
