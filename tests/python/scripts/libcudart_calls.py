# SPDX-License-Identifier: Apache-2.0
"""What posts do with libcudart opened by ctypes: results by byref() and by pointer(), texts of errors, attributes and properties of
the device, graphs; and modules of pycuda and cuda that a CPU does not have."""
import ctypes

runtime = ctypes.CDLL("libcudart.so.12")


def check(status):
    assert status == 0, runtime.cudaGetErrorString(status)


class Properties(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 256), ("uuid", ctypes.c_byte * 16), ("totalGlobalMem", ctypes.c_size_t), ("warpSize", ctypes.c_int)]


def main():
    first, second, size = ctypes.c_void_p(), ctypes.c_void_p(), 64
    check(runtime.cudaMalloc(ctypes.byref(first), size))
    check(runtime.cudaMalloc(ctypes.pointer(second), ctypes.c_size_t(size)))
    assert first.value and second.value and first.value != second.value
    assert runtime.cudaGetErrorName(2) == b"cudaErrorMemoryAllocation" and runtime.cudaGetErrorString(ctypes.c_int(0))
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
    for module in ("pycuda.compiler", "cuda.core"):
        try:
            __import__(module)
            raise AssertionError(f"{module} was imported")
        except ModuleNotFoundError as e:
            assert module in str(e) and "need a GPU" in str(e) and e.name == module
    import pycuda.driver as cuda
    try:
        cuda.module_from_file("kernel.cubin")
        raise AssertionError("there is a module of kernels")
    except AttributeError as e:
        assert "pycuda.driver.module_from_file" in str(e) and "need a GPU" in str(e)
    print("done")


main()
