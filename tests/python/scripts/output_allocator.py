# SPDX-License-Identifier: Apache-2.0
"""Outputs of a size that data decide: an output allocator; and times of layers by a profiler."""
import sys

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
import tensorrt as trt


class OutputAllocator(trt.IOutputAllocator):
    def __init__(self):
        trt.IOutputAllocator.__init__(self)
        self.memory, self.shape = None, None

    def reallocate_output(self, tensor_name, memory, size, alignment):
        self.memory = cuda.mem_alloc(size)
        return int(self.memory)

    def notify_shape(self, tensor_name, shape):
        self.shape = tuple(shape)


class LayerTimes(trt.IProfiler):
    def __init__(self):
        trt.IProfiler.__init__(self)
        self.ms = {}

    def report_layer_time(self, layer_name, ms):
        self.ms[layer_name] = ms


def main():
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    assert trt.OnnxParser(network, logger).parse_from_file(sys.argv[1])
    engine = builder.build_engine_with_config(network, builder.create_builder_config())
    context = engine.create_execution_context()
    assert context.get_tensor_shape("found")[1] == -1
    context.profiler = LayerTimes()
    x = np.array([0, 3, 0, 4, 5, 0], np.float32)
    device = cuda.to_device(x)
    context.set_tensor_address("x", int(device))
    assert not context.execute_async_v3(0)              # there is no memory for the output
    allocator = OutputAllocator()
    context.set_output_allocator("found", allocator)
    stream = cuda.Stream()
    for values in (x, x[::-1].copy(), np.zeros(6, np.float32)):
        cuda.memcpy_htod(device, values)
        assert context.execute_async_v3(stream.handle)
        stream.synchronize()
        found = np.empty(allocator.shape, np.int64)
        if found.size:
            cuda.memcpy_dtoh(found, allocator.memory)
        assert np.array_equal(found, np.array(np.nonzero(values))), found
    # Without an allocator: memory for the most that the output may need, and its shape after the run.
    context.set_output_allocator("found", None)
    room = context.get_max_output_size("found")
    assert room >= 48, room
    memory = cuda.mem_alloc(room)
    cuda.memcpy_htod(device, x)
    assert context.set_tensor_address("found", int(memory)) and context.execute_async_v3(stream.handle)
    shape = tuple(context.get_tensor_shape("found"))
    found = cuda.from_device(memory, shape, np.int64)
    assert shape == (1, 3) and np.array_equal(found, [[1, 3, 4]]), found
    assert context.profiler.ms and all(ms >= 0 for ms in context.profiler.ms.values())
    print("done")


if __name__ == "__main__":
    main()
