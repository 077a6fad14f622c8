# SPDX-License-Identifier: Apache-2.0
"""The helpers that samples of TensorRT 10 share: buffers of a profile from cuda-python, copies and runs on a stream, and an
ONNX classifier that uses them."""
import argparse
import ctypes
import os
from typing import List, Optional, Union

import numpy as np
import tensorrt as trt

try:
    from cuda.bindings import driver as cuda
    from cuda.bindings import runtime as cudart
except ImportError:
    from cuda import cuda, cudart


def check_cuda_err(err):
    if isinstance(err, cuda.CUresult):
        if err != cuda.CUresult.CUDA_SUCCESS:
            raise RuntimeError("Cuda Error: {}".format(err))
    if isinstance(err, cudart.cudaError_t):
        if err != cudart.cudaError_t.cudaSuccess:
            raise RuntimeError("Cuda Runtime Error: {}".format(err))
    else:
        raise RuntimeError("Unknown error type: {}".format(err))


def cuda_call(call):
    err, res = call[0], call[1:]
    check_cuda_err(err)
    if len(res) == 1:
        res = res[0]
    return res


class HostDeviceMem:
    """Pair of host and device memory, where the host memory is wrapped in a numpy array"""

    def __init__(self, size: int, dtype: Optional[np.dtype] = None):
        dtype = dtype or np.dtype(np.uint8)
        nbytes = size * dtype.itemsize
        host_mem = cuda_call(cudart.cudaMallocHost(nbytes))
        pointer_type = ctypes.POINTER(np.ctypeslib.as_ctypes_type(dtype))
        self._host = np.ctypeslib.as_array(ctypes.cast(host_mem, pointer_type), (size,))
        self._device = cuda_call(cudart.cudaMalloc(nbytes))
        self._nbytes = nbytes

    @property
    def host(self) -> np.ndarray:
        return self._host

    @host.setter
    def host(self, data: Union[np.ndarray, bytes]):
        if isinstance(data, np.ndarray):
            if data.size > self.host.size:
                raise ValueError(f"Tried to fit an array of size {data.size} into host memory of size {self.host.size}")
            np.copyto(self.host[:data.size], data.flat, casting="safe")
        else:
            assert self.host.dtype == np.uint8
            self.host[:self.nbytes] = np.frombuffer(data, dtype=np.uint8)

    @property
    def device(self) -> int:
        return self._device

    @property
    def nbytes(self) -> int:
        return self._nbytes

    def __str__(self):
        return f"Host:\n{self.host}\nDevice:\n{self.device}\nSize:\n{self.nbytes}\n"

    def __repr__(self):
        return self.__str__()

    def free(self):
        cuda_call(cudart.cudaFree(self.device))
        cuda_call(cudart.cudaFreeHost(self.host.ctypes.data))


class DeviceMem:
    """Only device memory, no host memory"""

    def __init__(self, size: int):
        self._device = cuda_call(cudart.cudaMalloc(size))
        self._nbytes = size

    @property
    def device(self) -> int:
        return self._device

    def free(self):
        cuda_call(cudart.cudaFree(self.device))


def allocate_buffers(engine: trt.ICudaEngine, profile_idx: Optional[int] = None):
    inputs: List[HostDeviceMem] = []
    outputs: List[HostDeviceMem] = []
    bindings: List[int] = []
    stream = cuda_call(cudart.cudaStreamCreate())
    tensor_names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    for binding in tensor_names:
        # get_tensor_profile_shape returns (min_shape, optimal_shape, max_shape). Pick out the max shape.
        is_input = engine.get_tensor_mode(binding) == trt.TensorIOMode.INPUT
        shape = engine.get_tensor_shape(binding) if profile_idx is None or not is_input else \
            engine.get_tensor_profile_shape(binding, profile_idx)[-1]
        shape_valid = np.all([s >= 0 for s in shape])
        if not shape_valid and profile_idx is None:
            raise ValueError(f"Binding {binding} has dynamic shape, but no profile was specified.")
        size = abs(trt.volume(shape)) * (1 if shape_valid else 8)
        trt_type = engine.get_tensor_dtype(binding)
        try:
            dtype = np.dtype(trt.nptype(trt_type))
            memory = HostDeviceMem(size, dtype)
        except TypeError:
            memory = HostDeviceMem(int(size * trt_type.itemsize))
        bindings.append(int(memory.device))
        (inputs if is_input else outputs).append(memory)
    return inputs, outputs, bindings, stream


def free_buffers(inputs, outputs, stream):
    for mem in inputs + outputs:
        mem.free()
    cuda_call(cudart.cudaStreamDestroy(stream))


def memcpy_host_to_device(device_ptr: int, host_arr: np.ndarray):
    nbytes = host_arr.size * host_arr.itemsize
    cuda_call(cudart.cudaMemcpy(device_ptr, host_arr, nbytes, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice))


def memcpy_device_to_host(host_arr: np.ndarray, device_ptr: int):
    nbytes = host_arr.size * host_arr.itemsize
    cuda_call(cudart.cudaMemcpy(host_arr, device_ptr, nbytes, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost))


def _do_inference_base(inputs, outputs, stream, execute_async_func):
    kind = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
    [cuda_call(cudart.cudaMemcpyAsync(inp.device, inp.host, inp.nbytes, kind, stream)) for inp in inputs]
    execute_async_func()
    kind = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
    [cuda_call(cudart.cudaMemcpyAsync(out.host, out.device, out.nbytes, kind, stream)) for out in outputs]
    cuda_call(cudart.cudaStreamSynchronize(stream))
    return [out.host for out in outputs]


def do_inference(context, engine, bindings, inputs, outputs, stream):
    def execute_async_func():
        context.execute_async_v3(stream_handle=stream)

    num_io = engine.num_io_tensors
    for i in range(num_io):
        context.set_tensor_address(engine.get_tensor_name(i), bindings[i])
    return _do_inference_base(inputs, outputs, stream, execute_async_func)


def build_engine(onnx_path, fp16):
    logger = trt.Logger()
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    config = builder.create_builder_config()
    parser = trt.OnnxParser(network, logger)
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 20)
    if fp16:
        config.set_flag(trt.BuilderFlag.FP16)
    if not os.path.exists(onnx_path):
        raise FileNotFoundError(onnx_path)
    with open(onnx_path, "rb") as model:
        if not parser.parse(model.read()):
            print("ERROR: Failed to parse the ONNX file.")
            for error in range(parser.num_errors):
                print(parser.get_error(error))
            return None
    print("Network Description")
    inputs = [network.get_input(i) for i in range(network.num_inputs)]
    outputs = [network.get_output(i) for i in range(network.num_outputs)]
    for inp in inputs:
        print(f"Input '{inp.name}' with shape {inp.shape} and dtype {inp.dtype}")
    for out in outputs:
        print(f"Output '{out.name}' with shape {out.shape} and dtype {out.dtype}")
    for low, opt, high in ((1, 1, 2), (1, 4, 8)):
        profile = builder.create_optimization_profile()
        for inp in inputs:
            rest = list(inp.shape)[1:]
            profile.set_shape(inp.name, [low] + rest, [opt] + rest, [high] + rest)
        assert config.add_optimization_profile(profile) >= 0
    engine_bytes = builder.build_serialized_network(network, config)
    runtime = trt.Runtime(logger)
    return runtime.deserialize_cuda_engine(engine_bytes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("onnx")
    parser.add_argument("image")
    parser.add_argument("--fp16", action="store_true")
    args = parser.parse_args()
    engine = build_engine(args.onnx, args.fp16)
    try:
        allocate_buffers(engine)
        raise AssertionError("a dynamic shape needs a profile")
    except ValueError as e:
        assert "no profile was specified" in str(e)
    image = np.load(args.image)
    for profile, batch in ((0, 1), (0, 2), (1, 8)):
        inputs, outputs, bindings, stream = allocate_buffers(engine, profile)
        context = engine.create_execution_context()
        assert context.set_optimization_profile_async(profile, stream)
        assert context.set_input_shape("image", (batch, 1, 28, 28))
        inputs[0].host = np.repeat(image, batch, 0)
        scores = do_inference(context, engine, bindings, inputs, outputs, stream)[0]
        assert tuple(context.get_tensor_shape("scores")) == (batch, 10)
        scores = scores[:batch * 10].reshape(context.get_tensor_shape("scores"))
        assert (scores.argmax(1) == 7).all()
        direct = np.zeros(10, np.float32)
        memcpy_device_to_host(direct, outputs[0].device)
        assert np.array_equal(direct, scores[0]) and repr(outputs[0]).startswith("Host:\n[")
        scratch = DeviceMem(40)
        memcpy_host_to_device(scratch.device, direct + 1)
        memcpy_device_to_host(direct, scratch.device)
        assert np.array_equal(direct, scores[0] + 1)
        scratch.free()
        free_buffers(inputs, outputs, stream)
    print("done")


if __name__ == "__main__":
    main()
