# SPDX-License-Identifier: Apache-2.0
"""Dynamic shapes: two optimization profiles, input shapes set for each run, memory and streams of cudart."""
import ctypes
import sys

import numpy as np
import tensorrt as trt
from cuda import cuda, cudart


def check_cuda_err(err):
    if isinstance(err, cuda.CUresult):
        if err != cuda.CUresult.CUDA_SUCCESS:
            raise RuntimeError("Cuda Error: {}".format(err))
    elif isinstance(err, cudart.cudaError_t):
        if err != cudart.cudaError_t.cudaSuccess:
            raise RuntimeError("Cuda Runtime Error: {}".format(err))
    else:
        raise RuntimeError("Unknown error type: {}".format(err))


def cuda_call(call):
    err, res = call[0], call[1:]
    check_cuda_err(err)
    return res[0] if len(res) == 1 else res


class HostDeviceMem:
    """A page-locked array and memory of the device of the same size."""

    def __init__(self, size, dtype):
        nbytes = size * dtype.itemsize
        host_mem = cuda_call(cudart.cudaMallocHost(nbytes))
        pointer_type = ctypes.POINTER(np.ctypeslib.as_ctypes_type(dtype))
        self.host = np.ctypeslib.as_array(ctypes.cast(host_mem, pointer_type), (size,))
        self.device = cuda_call(cudart.cudaMalloc(nbytes))
        self.nbytes = nbytes

    def free(self):
        cuda_call(cudart.cudaFree(self.device))
        cuda_call(cudart.cudaFreeHost(self.host.ctypes.data))


def main():
    logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(sys.argv[1]):
        raise RuntimeError(parser.get_error(0).desc())
    assert network.get_input(0).shape[0] == -1
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 28)
    for low, high in ((1, 4), (5, 8)):
        profile = builder.create_optimization_profile()
        profile.set_shape("image", (low, 1, 28, 28), (high, 1, 28, 28), (high, 1, 28, 28))
        config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine.num_optimization_profiles == 2
    assert [tuple(s) for s in engine.get_tensor_profile_shape("image", 1)] == [(5, 1, 28, 28), (8, 1, 28, 28), (8, 1, 28, 28)]

    seven = np.load(sys.argv[2])
    context = engine.create_execution_context()
    assert not context.all_binding_shapes_specified and context.infer_shapes() == ["image"]
    stream = cuda_call(cudart.cudaStreamCreate())
    largest = HostDeviceMem(8 * 784, np.dtype(np.float32)), HostDeviceMem(8 * 10, np.dtype(np.float32))
    for batch in (3, 1, 8, 5, 2):
        context.set_optimization_profile_async(0 if batch <= 4 else 1, stream)
        assert not context.set_input_shape("image", (9, 1, 28, 28))
        assert context.set_input_shape("image", (batch, 1, 28, 28))
        assert context.infer_shapes() == [] and context.get_tensor_shape("scores") == (batch, 10)
        source, result = largest
        source.host[:batch * 784] = np.repeat(seven, batch, 0).ravel()
        for i in range(engine.num_io_tensors):
            name = engine.get_tensor_name(i)
            is_input = engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
            context.set_tensor_address(name, (source if is_input else result).device)
        kind = cudart.cudaMemcpyKind
        cuda_call(cudart.cudaMemcpyAsync(source.device, source.host, source.nbytes, kind.cudaMemcpyHostToDevice, stream))
        assert context.execute_async_v3(stream_handle=stream)
        cuda_call(cudart.cudaMemcpyAsync(result.host.ctypes.data, result.device, result.nbytes, kind.cudaMemcpyDeviceToHost, stream))
        cuda_call(cudart.cudaStreamSynchronize(stream))
        assert (result.host[:batch * 10].reshape(batch, 10).argmax(1) == 7).all()
    for memory in largest:
        memory.free()
    cuda_call(cudart.cudaStreamDestroy(stream))
    print("done")


if __name__ == "__main__":
    main()
