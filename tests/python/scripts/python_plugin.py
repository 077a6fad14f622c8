# SPDX-License-Identifier: Apache-2.0
"""Python plugin: circular padding as a plugin of version 3, found by the ONNX parser; the engine is saved and loaded."""
import sys

import numpy as np
import tensorrt as trt
from cuda import cudart

TRT_LOGGER = trt.Logger(trt.Logger.ERROR)


def check_cuda_err(err):
    if err != cudart.cudaError_t.cudaSuccess:
        raise RuntimeError(f"Cuda Runtime Error: {err}")


def cuda_call(call):
    err, res = call[0], call[1:]
    check_cuda_err(err)
    return res[0] if len(res) == 1 else res


class CircPadPlugin(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
    def __init__(self, fc=None, phase=None):
        trt.IPluginV3.__init__(self)
        trt.IPluginV3OneCore.__init__(self)
        trt.IPluginV3OneBuild.__init__(self)
        trt.IPluginV3OneRuntime.__init__(self)
        self.pads = []
        self.X_shape = []

        self.num_outputs = 1
        self.plugin_namespace = ""
        self.plugin_name = "CircPadPlugin"
        self.plugin_version = "1"

        if phase is not None:
            self.phase = phase

        if fc is not None:
            assert fc[0].name == "pads"
            self.pads = fc[0].data

    def get_capability_interface(self, type):
        return self

    def get_output_data_types(self, input_types):
        return [input_types[0]]

    def get_output_shapes(self, inputs, shape_inputs, exprBuilder):
        output_dims = trt.DimsExprs(inputs[0])
        for i in range(np.size(self.pads) // 2):
            output_dims[len(output_dims) - i - 1] = exprBuilder.operation(
                trt.DimensionOperation.SUM,
                inputs[0][len(output_dims) - i - 1],
                exprBuilder.constant(self.pads[i * 2] + self.pads[i * 2 + 1]),
            )
        return [output_dims]

    def get_fields_to_serialize(self):
        return trt.PluginFieldCollection([trt.PluginField("pads", self.pads, trt.PluginFieldType.INT32)])

    def configure_plugin(self, inp, out):
        pass

    def on_shape_change(self, inp, out):
        self.X_shape = inp[0].dims

    def supports_format_combination(self, pos, in_out, num_inputs):
        assert num_inputs == 1
        assert pos < len(in_out)
        desc = in_out[pos].desc
        if desc.format != trt.TensorFormat.LINEAR:
            return False
        if pos == 0:
            return desc.type in (trt.DataType.FLOAT, trt.DataType.HALF)
        return in_out[0].desc.type == desc.type

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        dtype = trt.nptype(input_desc[0].type)
        x = np.empty(tuple(input_desc[0].dims), dtype)
        cuda_call(cudart.cudaMemcpyAsync(x.ctypes.data, inputs[0], x.nbytes, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost, stream))
        cuda_call(cudart.cudaStreamSynchronize(stream))
        assert tuple(self.X_shape) == x.shape
        widths = [(0, 0)] * x.ndim
        for i in range(len(self.pads) // 2):
            widths[x.ndim - i - 1] = int(self.pads[2 * i]), int(self.pads[2 * i + 1])
        y = np.ascontiguousarray(np.pad(x, widths, "wrap"))
        assert y.shape == tuple(output_desc[0].dims)
        cuda_call(cudart.cudaMemcpyAsync(outputs[0], y.ctypes.data, y.nbytes, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, stream))
        cuda_call(cudart.cudaStreamSynchronize(stream))

    def attach_to_context(self, context):
        return self.clone()

    def get_valid_tactics(self):
        return [1, 2]

    def set_tactic(self, tactic):
        assert tactic in (1, 2)

    def clone(self):
        cloned_plugin = CircPadPlugin()
        cloned_plugin.__dict__.update(self.__dict__)
        return cloned_plugin


class CircPadPluginCreator(trt.IPluginCreatorV3One):
    def __init__(self):
        trt.IPluginCreatorV3One.__init__(self)
        self.name = "CircPadPlugin"
        self.plugin_namespace = ""
        self.plugin_version = "1"
        self.field_names = trt.PluginFieldCollection([trt.PluginField("pads", np.array([]), trt.PluginFieldType.INT32)])
        self.phases = []

    def create_plugin(self, name, fc, phase):
        self.phases.append(phase)
        return CircPadPlugin(fc, phase)


def run(engine, x):
    context = engine.create_execution_context()
    stream = cuda_call(cudart.cudaStreamCreate())
    name_in, name_out = engine.get_tensor_name(0), engine.get_tensor_name(1)
    assert context.set_input_shape(name_in, x.shape)
    y = np.empty(tuple(context.get_tensor_shape(name_out)), x.dtype)
    device_x, device_y = cuda_call(cudart.cudaMalloc(x.nbytes)), cuda_call(cudart.cudaMalloc(y.nbytes))
    cuda_call(cudart.cudaMemcpy(device_x, x.ctypes.data, x.nbytes, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice))
    context.set_tensor_address(name_in, device_x)
    context.set_tensor_address(name_out, device_y)
    assert context.execute_async_v3(stream)
    cuda_call(cudart.cudaStreamSynchronize(stream))
    cuda_call(cudart.cudaMemcpy(y.ctypes.data, device_y, y.nbytes, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost))
    cuda_call(cudart.cudaFree(device_x))
    cuda_call(cudart.cudaFree(device_y))
    cuda_call(cudart.cudaStreamDestroy(stream))
    return y


def build(builder, network, shapes):
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("x", *shapes)
    config.add_optimization_profile(profile)
    return builder.build_serialized_network(network, config)


def main():
    onnx_file, engine_file = sys.argv[1:]
    plg_registry = trt.get_plugin_registry()
    my_plugin_creator = CircPadPluginCreator()
    assert plg_registry.register_creator(my_plugin_creator, "")
    assert plg_registry.get_creator("CircPadPlugin", "1", "") is my_plugin_creator

    builder = trt.Builder(TRT_LOGGER)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, TRT_LOGGER)
    with open(onnx_file, "rb") as model:
        assert parser.parse(model.read()), parser.get_error(0)
    shapes = (1, 3, 4, 5), (2, 3, 4, 5), (2, 3, 8, 9)
    with open(engine_file, "wb") as file:
        file.write(build(builder, network, shapes))
    assert my_plugin_creator.phases and set(my_plugin_creator.phases) == {trt.TensorRTPhase.BUILD}

    with open(engine_file, "rb") as file:
        engine = trt.Runtime(TRT_LOGGER).deserialize_cuda_engine(file.read())
    assert trt.TensorRTPhase.RUNTIME in my_plugin_creator.phases
    for shape in shapes:
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        assert np.array_equal(run(engine, x), np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 3)), "wrap"))

    # The same as a layer.
    network = builder.create_network(0)
    x = network.add_input("x", trt.float16, (-1, 3, 4, 5))
    pads = trt.PluginFieldCollection([trt.PluginField("pads", np.array([1, 1], np.int32), trt.PluginFieldType.INT32)])
    plugin = plg_registry.get_creator("CircPadPlugin", "1", "").create_plugin("pad", pads, trt.TensorRTPhase.BUILD)
    layer = network.add_plugin_v3([x], [], plugin)
    assert layer.type == trt.LayerType.PLUGIN_V3 and layer.plugin is plugin and tuple(layer.get_output(0).shape) == (-1, 3, 4, 7)
    network.mark_output(layer.get_output(0))
    plan = build(builder, network, ((1, 3, 4, 5), (1, 3, 4, 5), (4, 3, 4, 5)))
    engine = trt.Runtime(TRT_LOGGER).deserialize_cuda_engine(plan)
    x = np.random.default_rng(1).standard_normal((3, 3, 4, 5)).astype(np.float16)
    assert np.array_equal(run(engine, x), np.pad(x, ((0, 0), (0, 0), (0, 0), (1, 1)), "wrap"))

    # Nothing can be loaded without its plugin.
    assert plg_registry.deregister_creator(my_plugin_creator)
    assert trt.Runtime(trt.Logger(trt.Logger.INTERNAL_ERROR)).deserialize_cuda_engine(plan) is None
    print("done")


if __name__ == "__main__":
    main()
