# SPDX-License-Identifier: Apache-2.0
"""onnx-tensorrt's backend for the onnx package: prepare(model), run(inputs), run_node, through a Binding and an Engine class."""
import sys

import numpy as np
import onnx
import pycuda.autoinit  # noqa: F401
import pycuda.driver
import pycuda.gpuarray
import tensorrt as trt
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

TRT_LOGGER = trt.Logger(trt.Logger.WARNING)


class Binding:
    def __init__(self, engine, idx_or_name):
        self.name = idx_or_name if isinstance(idx_or_name, str) else engine.get_tensor_name(idx_or_name)
        if not self.name:
            raise IndexError("Binding index out of range: %i" % idx_or_name)
        self.is_input = engine.get_tensor_mode(self.name) == trt.TensorIOMode.INPUT
        dtype = engine.get_tensor_dtype(self.name)
        dtype_map = {trt.DataType.FLOAT: np.float32, trt.DataType.HALF: np.float16, trt.DataType.INT8: np.int8,
                     trt.DataType.BOOL: np.bool_}
        if hasattr(trt.DataType, "INT32"):
            dtype_map[trt.DataType.INT32] = np.int32
        if hasattr(trt.DataType, "INT64"):
            dtype_map[trt.DataType.INT64] = np.int64
        self.dtype = dtype_map[dtype]
        self.shape = tuple(engine.get_tensor_shape(self.name))
        self._host_buf, self._device_buf = None, None

    @property
    def host_buffer(self):
        if self._host_buf is None:
            self._host_buf = pycuda.driver.pagelocked_empty(self.shape, self.dtype)
        return self._host_buf

    @property
    def device_buffer(self):
        if self._device_buf is None:
            self._device_buf = pycuda.gpuarray.empty(self.shape, self.dtype)
        return self._device_buf

    def get_async(self, stream):
        src = self.device_buffer
        dst = self.host_buffer
        src.get_async(stream, dst)
        return dst


class Engine:
    def __init__(self, trt_engine):
        self.engine = trt_engine
        self.context = self.engine.create_execution_context()
        self.stream = pycuda.driver.Stream()
        bindings = [Binding(self.engine, i) for i in range(self.engine.num_io_tensors)]
        self.binding_addrs = {b.name: b.device_buffer.ptr for b in bindings}
        self.inputs = [b for b in bindings if b.is_input]
        self.outputs = [b for b in bindings if not b.is_input]
        for binding in self.inputs + self.outputs:
            _ = binding.device_buffer                # Force buffer allocation
        for binding in self.outputs:
            _ = binding.host_buffer

    def run(self, inputs):
        if isinstance(inputs, dict):
            inputs = [inputs[b.name] for b in self.inputs]
        for i, (input_array, input_binding) in enumerate(zip(inputs, self.inputs)):
            if input_array.dtype != input_binding.dtype:
                input_array = input_array.astype(input_binding.dtype)
            input_binding_array = input_binding.device_buffer
            input_binding_array.set_async(np.ascontiguousarray(input_array), self.stream)
        for name, ptr in self.binding_addrs.items():
            self.context.set_tensor_address(name, ptr)
        self.context.execute_async_v3(self.stream.handle)
        results = [output.get_async(self.stream) for output in self.outputs]
        self.stream.synchronize()
        return results

    def run_no_dma(self):
        self.context.execute_async_v3(self.stream.handle)


class TensorRTBackendRep(BackendRep):
    def __init__(self, model, device, max_workspace_size=None, serialize_engine=False, verbose=False, **kwargs):
        if not isinstance(device, Device):
            device = Device(device)
        self._set_device(device)
        self._logger = TRT_LOGGER
        self.builder = trt.Builder(self._logger)
        self.config = self.builder.create_builder_config()
        self.network = self.builder.create_network(flags=1 << (int)(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
        self.parser = trt.OnnxParser(self.network, self._logger)
        self.serialize_engine = serialize_engine
        if not isinstance(model, str):
            model_str = model.SerializeToString()
        else:
            model_str = model
        if not trt.init_libnvinfer_plugins(TRT_LOGGER, ""):
            raise RuntimeError("Failed to initialize TensorRT's plugin library.")
        if not self.parser.parse(model_str):
            error = self.parser.get_error(0)
            msg = "While parsing node number %i:\n" % error.node()
            msg += "%s:%i In function %s:\n[%i] %s" % (error.file(), error.line(), error.func(), error.code(), error.desc())
            raise RuntimeError(msg)
        if max_workspace_size is None:
            max_workspace_size = 1 << 28
        self.config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, max_workspace_size)
        num_inputs = self.network.num_inputs
        for idx in range(num_inputs):
            inp_tensor = self.network.get_input(idx)
            if inp_tensor.is_shape_tensor or -1 in list(inp_tensor.shape):
                opt_profile = self.builder.create_optimization_profile()
                shape = [1 if d == -1 else d for d in inp_tensor.shape]
                opt_profile.set_shape(inp_tensor.name, shape, shape, shape)
                self.config.add_optimization_profile(opt_profile)
        self._output_shapes, self._output_dtype = {}, {}
        for output in model.graph.output:
            dims = output.type.tensor_type.shape.dim
            self._output_shapes[output.name] = tuple([dim.dim_value for dim in dims])
            self._output_dtype[output.name] = output.type.tensor_type.elem_type
        trt_engine = self._build_engine()
        self.engine = Engine(trt_engine)

    def _set_device(self, device):
        self.device = device
        assert device.type == DeviceType.CUDA
        if device.device_id != 0:
            raise ValueError("one device")

    def _build_engine(self):
        serialized = self.builder.build_serialized_network(self.network, self.config)
        runtime = trt.Runtime(self._logger)
        return runtime.deserialize_cuda_engine(serialized)

    def run(self, inputs, **kwargs):
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        outputs = self.engine.run(inputs)
        output_names = [output.name for output in self.engine.outputs]
        for i, (name, array) in enumerate(zip(output_names, outputs)):
            output_shape = self._output_shapes[name]
            if self._output_dtype[name] == onnx.TensorProto.INT64 and array.dtype == np.int32:
                casted = np.array(array, dtype=np.int64)
                if np.equal(array, casted).all():
                    outputs[i] = casted
            if 0 not in output_shape:
                outputs[i] = outputs[i].reshape(output_shape)
        return namedtupledict("Outputs", output_names)(*outputs)


class TensorRTBackend(Backend):
    @classmethod
    def prepare(cls, model, device="CUDA:0", **kwargs):
        super().prepare(model, device, **kwargs)
        return TensorRTBackendRep(model, device, **kwargs)

    @classmethod
    def run_model(cls, model, inputs, device="CUDA:0", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device_str):
        device = Device(device_str)
        return device.type == DeviceType.CUDA


prepare, run_model, supports_device = TensorRTBackend.prepare, TensorRTBackend.run_model, TensorRTBackend.supports_device


def main():
    seven = np.load(sys.argv[2])
    model = onnx.load(sys.argv[1])
    for value in list(model.graph.input) + list(model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 1
    engine = prepare(model, device="CUDA:0")
    scores = engine.run(seven)[0]
    assert scores.shape == (1, 10) and scores.argmax() == 7 and supports_device("CUDA") and not supports_device("CPU")
    assert np.allclose(run_model(model, [seven]).scores, scores, atol=1e-5)         # another build may have other kernels
    assert np.array_equal(engine.engine.run({"image": seven.astype(np.float64)})[0], scores)
    made = onnx.helper
    info = [made.make_tensor_value_info(n, onnx.TensorProto.INT64, [2, 3]) for n in "xyz"]
    small = made.make_model(made.make_graph([made.make_node("Mul", ["x", "y"], ["z"])], "g", info[:2], info[2:]),
                            opset_imports=[made.make_opsetid("", 17)], ir_version=8)
    x = np.arange(6).reshape(2, 3)
    assert np.array_equal(prepare(small).run([x, x + 2])["z"], x * (x + 2))
    broken = made.make_model(made.make_graph([made.make_node("Nope", ["x"], ["z"], name="bad")], "g", info[:1], info[2:]),
                             opset_imports=[made.make_opsetid("mine", 1), made.make_opsetid("", 17)], ir_version=8)
    broken.graph.node[0].domain = "mine"
    try:
        prepare(broken)
        raise AssertionError("no such operator")
    except RuntimeError as e:
        assert str(e).startswith("While parsing node number 0:"), e
    print("done")


if __name__ == "__main__":
    main()
