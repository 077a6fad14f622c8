# SPDX-License-Identifier: Apache-2.0
"""What scripts call of pycuda around engines: contexts that are made by hand and pushed in threads, attributes, page-locked memory that
the device reads, allocations like arrays, arrays of the device, events, copies that do not fit."""
import operator
import threading

import numpy as np
import pycuda.autoprimaryctx  # noqa: F401
import pycuda.driver as cuda
import pycuda.gpuarray as gpuarray
from pycuda.tools import DeviceMemoryPool, clear_context_caches


class Worker(threading.Thread):
    def __init__(self, context, memory, wanted):
        super().__init__()
        self.context, self.memory, self.wanted, self.is_right = context, memory, wanted, False

    def run(self):
        self.context.push()
        try:
            found = np.empty_like(self.wanted)
            cuda.memcpy_dtoh(found, self.memory)
            self.is_right = np.array_equal(found, self.wanted)
        finally:
            self.context.pop()


def calculate(rng):
    """Random expressions of arrays, parts of arrays, and NumPy's answers."""
    for turn in range(60):
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 4)))
        a, b = ((rng.standard_normal(shape) + 3).astype([np.float32, np.float16][turn % 2]) for _ in range(2))
        x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
        sign = [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.ge, operator.eq][turn % 7]
        assert np.array_equal(sign(x, y).get(), sign(a, b)) and np.array_equal(sign(x, 2).get(), sign(a, 2)), (turn, shape)
        assert np.array_equal((1 - x).get(), 1 - a) and np.array_equal((-abs(x)).get(), -abs(a))
        x += y
        assert np.array_equal(x.get(), a + b) and x.dtype == a.dtype
        part = x[shape[0] - 1]
        part.fill(turn)                             # it lies in x
        assert (x.get()[-1] == turn).all() and np.array_equal(x.get()[:-1], (a + b)[:-1])
        same = gpuarray.GPUArray(shape, a.dtype, gpudata=x.gpudata, base=x)
        assert np.array_equal(same.get(), x.get()) and same.base is x and int(same.gpudata) == x.ptr
        x[0] = y[0]
        assert np.array_equal(x.get()[0], b[0])


def launch(function, *arguments, stream=None):
    """What a launch does with its arguments: handlers are copied before and after, and the function works where the device's memory is."""
    handlers = [a for a in arguments if isinstance(a, cuda.ArgumentHandler)]
    for handler in handlers:
        handler.pre_call(stream)
    function(*[a.get_device_alloc() if isinstance(a, cuda.ArgumentHandler) else a for a in arguments])
    for handler in handlers:
        handler.post_call(stream)


def hand_over(rng):
    """Arguments that are copied in, out, and both."""
    def add(a, b, both, count):
        made = cuda.from_device(a, count, np.float32) + cuda.from_device(both, count, np.float32)
        cuda.memcpy_htod(b, made)
        cuda.memcpy_htod(both, made * 2)
    for count in (1, 7, 64):
        a, b, both = (rng.standard_normal(count).astype(np.float32) for _ in range(3))
        kept, was = a.copy(), both.copy()
        launch(add, cuda.In(a), cuda.Out(b), cuda.InOut(both), count, stream=cuda.Stream())
        assert np.array_equal(a, kept) and np.array_equal(b, kept + was) and np.array_equal(both, b * 2)
    handler = cuda.Out(np.zeros(4, np.float32))
    assert handler.get_device_alloc() is handler.get_device_alloc() and isinstance(cuda.InOut(a), cuda.In) and isinstance(cuda.InOut(a), cuda.Out)


def reduce(rng):
    """Functions of whole arrays."""
    import pycuda.cumath as cumath
    a, b = (rng.standard_normal((3, 5)).astype(np.float32) for _ in range(2))
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    assert gpuarray.sum(x).get() == a.sum() and gpuarray.max(x).get() == a.max() and x.min().item() == a.min() and x.sum().dtype == a.dtype
    assert np.array_equal(gpuarray.maximum(x, y).get(), np.maximum(a, b)) and np.array_equal(gpuarray.minimum(x, 0).get(), np.minimum(a, 0))
    assert np.array_equal(gpuarray.concatenate([x, y], axis=1).get(), np.concatenate([a, b], axis=1))
    assert np.array_equal(gpuarray.if_positive(x, x, y).get(), np.where(a > 0, a, b)) and np.array_equal(x.T.get(), a.T)
    assert np.array_equal(cumath.exp(x).get(), np.exp(a)) and (gpuarray.ones_like(x).get() == 1).all()
    assert np.array_equal(gpuarray.arange(5, dtype=np.int32).get(), np.arange(5, dtype=np.int32)) and x.strides == a.strides
    assert [len(row) for row in x] == [5] * 3 and x.__cuda_array_interface__["data"][0] == x.ptr
    rows = cuda.mem_alloc(4 * 16)
    cuda.memcpy_htod(rows, np.zeros(16, np.int32))
    cuda.memset_d2d32(rows, 16, 7, 2, 4)                # four rows of 16 bytes: two numbers of each
    assert np.array_equal(cuda.from_device(rows, (4, 4), np.int32), np.tile([7, 7, 0, 0], (4, 1)))
    assert not cuda.pagelocked_zeros_like(a).any() and not cuda.aligned_zeros((2, 2), np.float32).any()


def main():
    cuda.init()
    device = cuda.Device(0)
    context = device.make_context()
    assert cuda.Device.count() >= 1 and device.name() and len(device.compute_capability()) == 2 and device.total_memory() > 0
    assert device.get_attribute(cuda.device_attribute.MULTIPROCESSOR_COUNT) >= 1
    assert cuda.device_attribute.COMPUTE_CAPABILITY_MAJOR in device.get_attributes()
    free, total = cuda.mem_get_info()
    assert 0 <= free <= total
    a = np.random.default_rng().standard_normal((5, 20)).astype(np.float32)
    stream = cuda.Stream()
    host = cuda.pagelocked_empty(a.shape, a.dtype, mem_flags=cuda.host_alloc_flags.DEVICEMAP)
    memory = cuda.mem_alloc(a.nbytes)
    cuda.memcpy_htod_async(memory, a, stream)
    cuda.memcpy_dtoh_async(host, memory, stream=stream)
    stream.synchronize()
    assert np.array_equal(a, host) and host.base.get_device_pointer() == host.ctypes.data
    columns = cuda.pagelocked_zeros(a.shape, a.dtype, order="F")
    assert columns.flags.f_contiguous and not columns.any() and cuda.pagelocked_empty_like(a).shape == a.shape
    like = cuda.mem_alloc_like(a)
    cuda.memcpy_htod(like, a)
    assert np.array_equal(cuda.from_device_like(like, a), a)
    first, last = cuda.Event(), cuda.Event()
    first.record(stream)
    last.record(stream)
    last.synchronize()
    assert first.time_till(last) >= 0 and stream.is_done()
    array = gpuarray.to_gpu(a)
    assert int(array.gpudata) == array.ptr and np.array_equal(array.get(), a)
    array.set(a * 2)
    assert np.array_equal(array.get(), a * 2) and (gpuarray.empty((4, 5), np.float32).fill(3).get() == 3).all()
    calculate(np.random.default_rng(5))
    hand_over(np.random.default_rng(6))
    reduce(np.random.default_rng(7))
    try:
        cuda.memcpy_htod(memory, np.zeros(1000, np.float32))
        raise AssertionError("more was copied than there is memory")
    except cuda.LogicError as e:
        assert "invalid argument" in str(e)
    worker = Worker(context, memory, a)
    worker.start()
    worker.join()
    assert worker.is_right
    from pycuda.compiler import SourceModule
    try:
        SourceModule("__global__ void f() {}")
        raise AssertionError("a kernel was compiled")
    except NotImplementedError as e:
        assert "need a GPU" in str(e)
    pool = DeviceMemoryPool()
    pool.allocate(64).free()
    clear_context_caches()
    memory.free()
    context.pop()
    context.detach()
    print("done")


main()
