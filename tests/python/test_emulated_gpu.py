# SPDX-License-Identifier: Apache-2.0
"""Memory of a GPU through the package, on the emulated driver: tensors of the device, __cuda_array_interface__, DLPack, streams,
and sinter.tensorrt with device pointers."""
import os
import sys

import rig

EMULATED = rig.LIBRARY.parent / "tests" / "libsinter_emulated_cuda.so"
os.environ.update(SINTER_LIBCUDA=str(EMULATED), SINTER_LIBNVRTC=str(EMULATED), SINTER_KERNEL_CACHE="", SINTER_FAKE_SM="90",
                  SINTER_FAKE_DEVICES="1")

import numpy as np  # noqa: E402
import sinter  # noqa: E402
from onnx_bytes import data  # noqa: E402
from random_models import initializer, model, node, value  # noqa: E402

MODEL = model(data(2, "g") + data(11, value("x", "f32", ["N", 8])) + data(12, value("y", "f32", ["N", 8])) +
              initializer("w", np.arange(8, dtype="f4")) + node("Add", ["x", "w"], ["y"]))
X = np.random.default_rng(1).standard_normal((3, 8)).astype("f4")
WANTED = X + np.arange(8, dtype="f4")


def engine():
    return sinter.build(MODEL, device="cuda", profiles={"N": (1, 2, 4)}, tune="off").load()


def test_host_memory():
    made = engine()
    assert made.device == "cuda"
    assert np.array_equal(made.context().run(x=X)["y"], WANTED)


def test_device_memory():
    made = engine()
    context, x, y = made.context(), made.put(X), made.empty(X.shape, "f32")
    assert x.__cuda_array_interface__["shape"] == (3, 8) and x.__dlpack_device__() == (2, 0)
    assert np.array_equal(x.numpy(), X)
    rig.raises(BufferError, x.memoryview)
    assert context.run({"x": x}, {"y": y})["y"] is y and np.array_equal(y.numpy(), WANTED)

    class Foreign:
        def __init__(self, tensor):
            self.tensor, self.__cuda_array_interface__ = tensor, tensor.__cuda_array_interface__

    class Exported:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, stream=None):
            assert stream == 1
            return self.tensor.__dlpack__()

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()
    for form in (Foreign, Exported):
        z = made.empty(X.shape, "f32")
        context.start({"x": form(x)}, {"y": Foreign(z)})
        context.wait()
        assert context.is_done and np.array_equal(z.numpy(), WANTED)
    strided = Foreign(x)
    strided.__cuda_array_interface__ = dict(x.__cuda_array_interface__, strides=(4, 12))
    rig.raises(ValueError, context.run, {"x": strided}, says="row-major")


def test_tensorrt_with_device_pointers():
    import sinter.tensorrt as trt
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    assert builder.device == "cuda" and builder.platform_has_tf32
    network, config = builder.create_network(0), builder.create_builder_config()
    assert trt.OnnxParser(network, logger).parse(MODEL)
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 8), (2, 8), (4, 8))
    config.add_optimization_profile(profile)
    config.builder_optimization_level = 0
    made = builder.build_engine_with_config(network, config)
    memory = made._engine
    x, y = memory.put(X), memory.empty(X.shape, "f32")
    context = made.create_execution_context()
    context.set_input_shape("x", X.shape)
    assert context.execute_v2([x.data, y.data]) and np.array_equal(y.numpy(), WANTED)


def test_weights_on_the_host():
    """With any budget the results are the same; a budget needs an engine without contexts."""
    import sinter.tensorrt as trt
    made = sinter.build(rig.DIGITS, device="cuda", profiles={"N": 1}, tune="off").load()
    image = np.load(rig.SEVEN)
    wanted, all_weights = made.context().run(image=image)["scores"], made.describe()["streamable_size"]
    assert 0 < made.automatic_weight_budget() <= all_weights and made.describe(0)["weight_scratch_size"] == 0
    for budget in (1, all_weights // 2, all_weights):
        made.set_weight_budget(budget)
        info = made.describe()
        assert info["weight_budget"] == budget and (info["streamed_size"] > 0) == (budget < all_weights)
        context = made.context()
        assert np.array_equal(context.run(image=image)["scores"], wanted), budget
        rig.raises(sinter.InvalidArgument, made.set_weight_budget, 0, says="context")
        context.close()
    engine = trt.Runtime(trt.Logger(trt.Logger.ERROR)).deserialize_cuda_engine(bytes(made.plan()))
    assert engine.weight_streaming_budget_v2 == engine.streamable_weights_size == all_weights and engine.weight_streaming_budget == 0
    engine.weight_streaming_budget_v2 = 0
    assert engine.weight_streaming_budget_v2 == 1 and engine.weight_streaming_scratch_memory_size > 0
    engine.weight_streaming_budget = -1
    assert engine.weight_streaming_budget == engine.get_weight_streaming_automatic_budget()
    engine.weight_streaming_budget_v2 = all_weights + 1
    assert engine.weight_streaming_budget == 0
    lent = made.empty((made.describe()["memory_size"],), "u8")
    context = made.context(memory="user")
    rig.raises(sinter.InvalidArgument, context.run, image=image)
    context.set_memory(lent)
    assert np.array_equal(context.run(image=image)["scores"], wanted) and context.memory_size() <= lent.nbytes
    rig.raises(ValueError, made.context, memory="mine", says="static")


def test_plugins():
    """A CUDA source, a body on the stream, and a NumPy body between copies: in one network."""
    import ctypes
    source = """extern "C" __global__ void scale(const float *x, float *y, long long count, float factor)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = x[i] * factor;
}
"""
    def launch(inputs, outputs, factor):
        count = inputs[0].opt[0] * inputs[0].opt[1]
        return sinter.Launch(-(-count // 64), 64, ("in0", "out0", count, factor))

    def copy(inputs, outputs, stream):                       # memory of the emulated GPU is the host's
        assert stream and inputs[0].__cuda_array_interface__["shape"] == inputs[0].shape and inputs[0].__dlpack_device__() == (2, 0)
        seen.append(stream)
        ctypes.memmove(outputs[0].data, inputs[0].data, inputs[0].nbytes)

    seen, same = [], lambda x, **fields: x
    plugins = sinter.Plugins(
        sinter.Plugin("Scale", same, cuda_source=source, cuda_kernel="scale", cuda_launch=launch, fields={"factor": 2.0}),
        sinter.Plugin("Copy", same, cuda=copy), sinter.Plugin("Add", same, run=lambda inputs, outputs: inputs[0] + 1),
        sinter.Plugin("Bad", same, cuda=lambda inputs, outputs: 1 // 0))
    net = sinter.Network(plugins=plugins)
    x = y = net.add_input("x", "f32", (-1, 8), ("N", None))
    for name, fields in (("Scale", {"factor": 1.5}), ("Copy", {}), ("Add", {}), ("Copy", {})):
        y = net.add_plugin(name, y, **fields).output
    net.mark_output(y)
    options = {"device": "cuda", "tune": "off", "profiles": {"N": (1, 2, 4)}}
    made = sinter.build(net, plugins=plugins, **options).load(plugins=plugins)
    assert np.array_equal(list(made.context().run(x=X).values())[0], X * 1.5 + 1) and len(seen) == 2
    net.mark_output(net.add_plugin("Bad", x).output)
    error = rig.raises(sinter.InternalError, lambda: sinter.build(net, plugins=plugins, **options).load(plugins=plugins).context().run(x=X),
                       says="plugin 'Bad' version '1' failed: ZeroDivisionError")
    assert isinstance(error.__cause__, ZeroDivisionError)


if EMULATED.exists() and not os.environ.get("SINTER_TEST_PRELOADED"):
    rig.main(__name__)
sys.exit(0 if os.environ.get("SINTER_TEST_PRELOADED") else f"{EMULATED} is not built")
