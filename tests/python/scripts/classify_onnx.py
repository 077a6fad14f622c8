# SPDX-License-Identifier: Apache-2.0
"""Classification with an ONNX model: parser, serialised engine, page-locked buffers of pycuda, bindings."""
import sys

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
import tensorrt as trt

TRT_LOGGER = trt.Logger(trt.Logger.WARNING)
EXPLICIT_BATCH = 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)


class HostDeviceMem:
    def __init__(self, host_mem, device_mem):
        self.host = host_mem
        self.device = device_mem


def build_engine(model_file):
    with trt.Builder(TRT_LOGGER) as builder, builder.create_network(EXPLICIT_BATCH) as network, \
            builder.create_builder_config() as config, trt.OnnxParser(network, TRT_LOGGER) as parser, \
            trt.Runtime(TRT_LOGGER) as runtime:
        config.max_workspace_size = 1 << 28
        with open(model_file, "rb") as model:
            if not parser.parse(model.read()):
                for error in range(parser.num_errors):
                    print(parser.get_error(error))
                return None
        network.get_input(0).shape = [1, 1, 28, 28]
        plan = builder.build_serialized_network(network, config)
        with open(sys.argv[3], "wb") as f:
            f.write(plan)
        return runtime.deserialize_cuda_engine(plan)


def allocate_buffers(engine):
    inputs, outputs, bindings = [], [], []
    stream = cuda.Stream()
    for binding in engine:
        size = trt.volume(engine.get_binding_shape(binding)) * engine.max_batch_size
        dtype = trt.nptype(engine.get_binding_dtype(binding))
        host_mem = cuda.pagelocked_empty(size, dtype)
        device_mem = cuda.mem_alloc(host_mem.nbytes)
        bindings.append(int(device_mem))
        if engine.binding_is_input(binding):
            inputs.append(HostDeviceMem(host_mem, device_mem))
        else:
            outputs.append(HostDeviceMem(host_mem, device_mem))
    return inputs, outputs, bindings, stream


def do_inference_v2(context, bindings, inputs, outputs, stream):
    [cuda.memcpy_htod_async(inp.device, inp.host, stream) for inp in inputs]
    assert context.execute_async_v2(bindings=bindings, stream_handle=stream.handle)
    [cuda.memcpy_dtoh_async(out.host, out.device, stream) for out in outputs]
    stream.synchronize()
    return [out.host for out in outputs]


def main():
    engine = build_engine(sys.argv[1])
    inputs, outputs, bindings, stream = allocate_buffers(engine)
    context = engine.create_execution_context()
    np.copyto(inputs[0].host, np.load(sys.argv[2]).ravel())
    scores = do_inference_v2(context, bindings=bindings, inputs=inputs, outputs=outputs, stream=stream)[0]
    with trt.Runtime(TRT_LOGGER) as runtime, open(sys.argv[3], "rb") as f:
        with runtime.deserialize_cuda_engine(f.read()) as again, again.create_execution_context() as other:
            outputs[0].host[:] = 0
            assert np.array_equal(do_inference_v2(other, bindings, inputs, outputs, stream)[0], scores)
            assert other.execute_v2(bindings)
    print("class", int(np.argmax(scores)))


if __name__ == "__main__":
    main()
