# SPDX-License-Identifier: Apache-2.0
"""Refit: an engine gets other weights, by name and from a second model; contexts go on."""
import sys

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
import tensorrt as trt

TRT_LOGGER = trt.Logger(trt.Logger.INTERNAL_ERROR)


def infer(context, engine, x):
    device = {"x": cuda.mem_alloc(x.nbytes), "y": cuda.mem_alloc(x.nbytes)}
    cuda.memcpy_htod(device["x"], x)
    for name, memory in device.items():
        context.set_tensor_address(name, int(memory))
    context.set_input_shape("x", x.shape)
    assert context.execute_async_v3(0)
    y = np.empty_like(x)
    cuda.memcpy_dtoh(y, device["y"])
    return y


def main():
    first, second = np.load(sys.argv[3]), np.load(sys.argv[4])
    builder = trt.Builder(TRT_LOGGER)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, TRT_LOGGER)
    assert parser.parse_from_file(sys.argv[1])
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 4), (2, 4), (4, 4))
    config.add_optimization_profile(profile)
    engine = builder.build_engine_with_config(network, config)
    assert engine.refittable
    context = engine.create_execution_context()
    x = np.ones((2, 4), np.float32)
    assert np.array_equal(infer(context, engine, x), x + first)

    refitter = trt.Refitter(engine, TRT_LOGGER)
    assert refitter.get_all_weights() == ["w"] and refitter.get_missing_weights() == []
    assert not refitter.set_named_weights("v", trt.Weights(second))
    assert not refitter.set_named_weights("w", trt.Weights(second[:2]))
    assert refitter.set_named_weights("w", trt.Weights(second))
    assert refitter.refit_cuda_engine()
    assert np.array_equal(infer(context, engine, x), x + second)

    refitter = trt.Refitter(engine, TRT_LOGGER)
    assert trt.OnnxParserRefitter(refitter, TRT_LOGGER).refit_from_file(sys.argv[1])
    assert refitter.refit_cuda_engine()
    assert np.array_equal(infer(context, engine, x), x + first)

    # Without weights in the plan: it is loaded, refitted, and runs.
    config.set_flag(trt.BuilderFlag.STRIP_PLAN)
    stripped = trt.Runtime(TRT_LOGGER).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    refitter = trt.Refitter(stripped, TRT_LOGGER)
    assert refitter.get_missing_weights() == ["w"]
    assert trt.OnnxParserRefitter(refitter, TRT_LOGGER).refit_from_file(sys.argv[2])
    assert refitter.refit_cuda_engine()
    assert np.array_equal(infer(stripped.create_execution_context(), stripped, x), x + second)
    print("done")


if __name__ == "__main__":
    main()
