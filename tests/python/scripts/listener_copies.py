# SPDX-License-Identifier: Apache-2.0
"""cuda-python in the style of the helpers of TensorRT 11: nvrtc beside driver and runtime, attributes of devices, and a debug listener, a
plugin's text state and an output allocator that copy with cudaMemcpy."""
import json

import numpy as np
import tensorrt as trt
from cuda.bindings import driver as cuda
from cuda.bindings import nvrtc
from cuda.bindings import runtime as cudart

TRT_LOGGER = trt.Logger(trt.Logger.WARNING)
TO_HOST, TO_DEVICE = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice


def cuda_call(call):
    def name_of(error):
        if isinstance(error, cuda.CUresult):
            err, name = cuda.cuGetErrorName(error)
            return name if err == cuda.CUresult.CUDA_SUCCESS else "<unknown>"
        if isinstance(error, cudart.cudaError_t):
            return cudart.cudaGetErrorName(error)[1]
        if isinstance(error, nvrtc.nvrtcResult):
            return nvrtc.nvrtcGetErrorString(error)[1]
        raise RuntimeError(f"Unknown error type: {error}")
    err, res = call[0], call[1:]
    if err.value:
        raise RuntimeError(f"CUDA error code={err.value}({name_of(err)})")
    return res[0] if len(res) == 1 else res if res else None


def array_at(address, shape, dtype):
    made = np.empty(tuple(shape), trt.nptype(dtype))
    cuda_call(cudart.cudaMemcpy(made.ctypes.data, address, made.nbytes, TO_HOST))
    return made


class Scale(trt.IPluginV2DynamicExt):
    """Its state is text, as the sample circ_pad_plugin serializes it."""

    def __init__(self, factor=1.0):
        trt.IPluginV2DynamicExt.__init__(self)
        self.plugin_type, self.plugin_version, self.plugin_namespace, self.num_outputs = "ScaleByText", "1", "", 1
        self.factor = factor

    def get_output_datatype(self, index, input_types):
        return input_types[0]

    def get_output_dimensions(self, output_index, inputs, exprBuilder):
        return trt.DimsExprs(inputs[0])

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].format == trt.TensorFormat.LINEAR and in_out[pos].type == trt.float32

    def serialize(self):
        return json.dumps({"factor": self.factor})

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        made = array_at(inputs[0], input_desc[0].dims, input_desc[0].type) * np.float32(self.factor)
        cuda_call(cudart.cudaMemcpyAsync(outputs[0], made.ctypes.data, made.nbytes, TO_DEVICE, stream))

    def clone(self):
        return Scale(self.factor)


class ScaleCreator(trt.IPluginCreator):
    def __init__(self):
        trt.IPluginCreator.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace, self.field_names = "ScaleByText", "1", "", trt.PluginFieldCollection([])

    def deserialize_plugin(self, name, data):
        return Scale(json.loads(bytes(data).decode("utf-8"))["factor"])


class Listener(trt.IDebugListener):
    def __init__(self):
        super().__init__()
        self.seen = {}

    def process_debug_tensor(self, addr, location, type, shape, name, stream):
        self.seen[name] = array_at(addr, shape, type)
        return True


def main():
    device = cuda_call(cuda.cuDeviceGet(0))
    cuda_call(cuda.cuDeviceGetAttribute(cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    assert cuda_call(cudart.cudaDeviceGetAttribute(cudart.cudaDeviceAttr.cudaDevAttrMultiProcessorCount, 0)) >= 1
    try:
        cuda_call(cudart.cudaFree(12345))
        raise AssertionError("memory that is nobody's was freed")
    except RuntimeError as e:
        assert "cudaErrorInvalidValue" in str(e)

    trt.get_plugin_registry().register_creator(ScaleCreator(), "")
    builder = trt.Builder(TRT_LOGGER)
    network = builder.create_network(0)
    x = network.add_input("x", trt.float32, (3, 4))
    scaled = network.add_plugin_v2([x], Scale(2.5)).get_output(0)
    scaled.name = "scaled"
    y = network.add_activation(scaled, trt.ActivationType.RELU).get_output(0)
    y.name = "y"
    network.mark_output(y)
    assert network.mark_debug(scaled)
    engine = trt.Runtime(TRT_LOGGER).deserialize_cuda_engine(builder.build_serialized_network(network, builder.create_builder_config()))
    context, listener = engine.create_execution_context(), Listener()
    context.set_debug_listener(listener)
    context.set_all_tensors_debug_state(True)
    given = np.random.default_rng().standard_normal((3, 4)).astype(np.float32)
    stream, found = cuda_call(cudart.cudaStreamCreate()), np.empty((3, 4), np.float32)
    memory = [cuda_call(cudart.cudaMalloc(given.nbytes)) for _ in range(2)]
    cuda_call(cudart.cudaMemcpyAsync(memory[0], given.ctypes.data, given.nbytes, TO_DEVICE, stream))
    for name, address in zip(("x", "y"), memory):
        context.set_tensor_address(name, address)
    assert context.execute_async_v3(stream)
    cuda_call(cudart.cudaMemcpyAsync(found.ctypes.data, memory[1], found.nbytes, TO_HOST, stream))
    cuda_call(cudart.cudaStreamSynchronize(stream))
    assert np.array_equal(listener.seen["scaled"], given * np.float32(2.5)) and np.array_equal(found, np.maximum(listener.seen["scaled"], 0))
    for address in memory:
        cuda_call(cudart.cudaFree(address))
    print("done")


main()
