# SPDX-License-Identifier: Apache-2.0
"""Inputs whose values are sizes: by the bindings of TensorRT 8 with set_shape_input, and by the addresses of TensorRT 10. Shapes of outputs
are known before the run."""
import numpy as np
import tensorrt as trt

TRT_LOGGER = trt.Logger(trt.Logger.WARNING)


def build(builder, dtype):
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    x = network.add_input("x", trt.float32, (-1, 12))
    sizes = network.add_input("sizes", dtype, (3,))
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, sizes)
    shuffle.get_output(0).name = "y"
    network.mark_output(shuffle.get_output(0))
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        if tensor.is_shape_tensor:
            assert tensor.name == "sizes"
            profile.set_shape_input(tensor.name, (1, 1, 1), (2, 3, 4), (4, 12, 12))
        else:
            profile.set_shape(tensor.name, (1, 12), (2, 12), (4, 12))
    assert config.add_optimization_profile(profile) == 0
    return builder.build_engine(network, config)


def by_bindings(engine, x):
    context = engine.create_execution_context()
    assert [engine.is_shape_binding(i) for i in range(engine.num_bindings)] == [False, True, False]
    context.set_binding_shape(0, x.shape)
    assert context.all_binding_shapes_specified and not context.all_shape_inputs_specified
    for sizes in ([4, 2, 3], [1, 24, 1]):
        assert context.set_shape_input(1, sizes) and context.all_shape_inputs_specified and list(context.get_shape(1)) == sizes
        assert tuple(context.get_binding_shape(2)) == tuple(sizes)
        y = np.empty(sizes, np.float32)
        assert context.execute_v2([x.ctypes.data, 0, y.ctypes.data]) and np.array_equal(y, x.reshape(sizes))
    assert not context.set_shape_input(1, [1, 2])


def by_addresses(engine, x, dtype):
    context = engine.create_execution_context()
    assert engine.is_shape_inference_io("sizes") and not engine.is_shape_inference_io("x")
    assert engine.get_tensor_location("sizes") == trt.TensorLocation.HOST and engine.get_tensor_location("x") == trt.TensorLocation.DEVICE
    sizes = np.array([2, 2, 6], trt.nptype(dtype))
    context.set_input_shape("x", x.shape)
    assert context.infer_shapes() == ["sizes"] and -1 in context.get_tensor_shape("y")
    context.set_tensor_address("sizes", sizes.ctypes.data)
    context.set_tensor_address("x", x.ctypes.data)
    for given in ((2, 2, 6), (3, 2, 4)):
        sizes[:] = given
        assert context.infer_shapes() == [] and tuple(context.get_tensor_shape("y")) == given
        y = np.empty(given, np.float32)
        context.set_tensor_address("y", y.ctypes.data)
        assert context.execute_async_v3(0) and np.array_equal(y, x.reshape(given))


def main():
    builder = trt.Builder(TRT_LOGGER)
    x = np.random.default_rng().standard_normal((2, 12)).astype(np.float32)
    for dtype in (trt.int32, trt.int64):
        engine = build(builder, dtype)
        by_bindings(engine, x)
        by_addresses(engine, x, dtype)
    print("done")


main()
