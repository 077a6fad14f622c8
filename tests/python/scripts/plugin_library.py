# SPDX-License-Identifier: Apache-2.0
"""A library of plugins that a script opens by itself, in the style of the sample onnx_custom_plugin: ctypes.CDLL, then
init_libnvinfer_plugins, then the parser finds the plugin by its name. plugin_library.py LIBRARY MODEL; tests/cpp/test_cpp.py runs it."""
import ctypes
import sys

import tensorrt as trt

TRT_LOGGER = trt.Logger(trt.Logger.WARNING)


def main():
    library, onnx = sys.argv[1:]
    handle = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    if not handle:
        raise RuntimeError(f"Could not load plugin library: {library}")
    assert trt.init_libnvinfer_plugins(TRT_LOGGER, "")
    builder = trt.Builder(TRT_LOGGER)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    parser = trt.OnnxParser(network, TRT_LOGGER)
    with open(onnx, "rb") as model:
        assert parser.parse(model.read()), [str(parser.get_error(i)) for i in range(parser.num_errors)]
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 2), (2, 2), (4, 2))
    config.add_optimization_profile(profile)
    engine = trt.Runtime(TRT_LOGGER).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    context = engine.create_execution_context()
    x, y = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_float * 4)()
    assert context.set_input_shape("x", (2, 2))
    context.set_tensor_address("x", ctypes.addressof(x))
    context.set_tensor_address("y", ctypes.addressof(y))
    assert context.execute_async_v3(0) and list(y) == [3.5, 6, 8.5, 11], list(y)
    print("done")


main()
