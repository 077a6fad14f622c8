# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs in formats that are not row-major, as versions since 6 have them: what is seen of them, and what runs give."""
import os

import numpy as np
import rig
from sinter._host_device import device

os.environ["SINTER_TENSORRT_DEVICE"] = "cpu"
import sinter.tensorrt as trt  # noqa: E402

LOG = trt.Logger(trt.Logger.INTERNAL_ERROR)
# lanes, axes behind the channels, and are the channels behind those?
FORMATS = {"HWC": (1, 2, True), "HWC8": (8, 2, True), "HWC16": (16, 2, True), "DHWC": (1, 3, True), "DHWC8": (8, 3, True),
           "CHW2": (2, 2, False), "CHW4": (4, 2, False), "CHW16": (16, 2, False), "CHW32": (32, 2, False), "CDHW32": (32, 3, False)}


def store(a, lanes, behind, is_last):
    """The memory of an array, channels filled up with zeros."""
    channel = a.ndim - behind - 1
    groups = -(-a.shape[channel] // lanes)
    a = np.pad(a, [(0, groups * lanes - a.shape[channel] if i == channel else 0) for i in range(a.ndim)])
    a = np.moveaxis(a, channel, -1)
    return np.ascontiguousarray(a if is_last else np.moveaxis(a.reshape(a.shape[:-1] + (groups, lanes)), -2, channel))


def bits(name):
    return 1 << int(trt.TensorFormat[name])


def run(engine, batch, feeds, results):
    context = engine.create_execution_context()
    assert context.set_input_shape("x", batch)
    for name, array in {**feeds, **results}.items():
        assert context.set_tensor_address(name, array.ctypes.data)
    assert context.execute_async_v3(0)
    return context


class Allocator(trt.IOutputAllocator):
    """Memory for an output, which is told the tensor's shape and not the memory's."""

    def __init__(self):
        super().__init__()

    def reallocate_output(self, name, memory, size, alignment):
        self.memory = np.zeros(size, "u1")
        return self.memory.ctypes.data

    def notify_shape(self, name, shape):
        self.shape = tuple(shape)


def check(name, channels, dtype, given):
    lanes, behind, is_last = FORMATS[name]
    space = (3, 4, 5)[3 - behind:]
    builder = trt.Builder(LOG)
    network = builder.create_network()
    x = network.add_input("x", given, (-1, channels, *space))
    s = network.add_input("s", given, (1, channels, *[1] * behind))
    y = network.add_elementwise(x, s, trt.ElementWiseOperation.PROD).get_output(0)
    z = network.add_unary(x, trt.UnaryOperation.NEG).get_output(0)
    for tensor, word in ((y, "y"), (z, "z")):
        tensor.name = word
        network.mark_output(tensor)
    x.allowed_formats = y.allowed_formats = bits(name)
    s.allowed_formats = bits(name) | bits("LINEAR")
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("x", *((n, channels, *space) for n in (1, 2, 4)))
    config.add_optimization_profile(profile)
    count = network.num_layers
    for _ in range(2):                                  # a build leaves the network as it was
        plan = builder.build_serialized_network(network, config)
    assert network.num_layers == count and tuple(x.shape) == (-1, channels, *space)
    assert [network.get_output(i).name for i in range(network.num_outputs)] == ["y", "z"] and network.get_input(0) == x
    engine = trt.Runtime(LOG).deserialize_cuda_engine(plan)
    assert [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)] == ["x", "s", "y", "z"] and engine.num_bindings == 4
    assert [engine.get_tensor_format(n) for n in "xsyz"] == [trt.TensorFormat[n] for n in (name, "LINEAR", name, "LINEAR")]
    assert tuple(engine.get_tensor_shape("y")) == (-1, channels, *space) and name in engine.get_tensor_format_desc("y")
    assert [tuple(d) for d in engine.get_tensor_profile_shape("x", 0)] == [(n, channels, *space) for n in (1, 2, 4)]
    grouped = (1, lanes, np.dtype(dtype).itemsize) if lanes > 1 else (-1, -1, -1)
    assert (engine.get_tensor_vectorized_dim("x"), engine.get_tensor_components_per_element("x"), engine.get_tensor_bytes_per_component("x")) == grouped
    v = np.random.default_rng(channels).standard_normal((3, channels, *space)).astype(dtype)
    scale = np.arange(1, channels + 1).astype(dtype).reshape(1, channels, *[1] * behind)
    memory = store(v, lanes, behind, is_last)
    found, plain = np.full_like(memory, 7), np.empty_like(v)
    context = run(engine, v.shape, {"x": memory, "s": scale}, {"y": found, "z": plain})
    assert np.array_equal(found, store(v * scale, lanes, behind, is_last)) and np.array_equal(plain, -v), name
    assert tuple(context.get_tensor_shape("y")) == v.shape
    strides = np.array(context.get_tensor_strides("y"))
    for at in ((0, 0) + (0,) * behind, (2, channels - 1) + (1,) * behind):
        if is_last:                                     # in elements
            assert found.reshape(-1)[np.dot(strides, at)] == (v * scale)[at]
        else:                                           # in groups of channels
            group = np.dot(strides, (at[0], at[1] // lanes) + at[2:])
            assert found.reshape(-1, lanes)[group, at[1] % lanes] == (v * scale)[at]
    assert context.get_max_output_size("y") == found.nbytes
    held = Allocator()
    assert context.set_output_allocator("y", held) and context.execute_async_v3(0) and held.shape == v.shape
    assert np.array_equal(held.memory.view(found.dtype)[:found.size], found.reshape(-1))
    for wrong in ((3, channels + 1, *space), (5, channels, *space), (3, channels)):
        assert not engine.create_execution_context().set_input_shape("x", wrong)




def test_every_format():
    for name in FORMATS:
        for channels in (1, 3, 8, 33):
            check(name, channels, "f4", trt.float32)


def test_types():
    check("HWC8", 3, "f2", trt.float16)
    check("CHW32", 40, "i4", trt.int32)


def test_fixed_sizes_and_old_bindings():
    builder = trt.Builder(LOG)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (2, 3, 4))                  # channels first, no batch
    y = network.add_identity(x).get_output(0)
    y.name = "y"
    network.mark_output(y)
    x.allowed_formats, y.allowed_formats = bits("HWC8") | bits("CHW4"), bits("CHW2")
    engine = builder.build_engine_with_config(network, builder.create_builder_config())
    assert [engine.get_binding_format(i) for i in range(2)] == [trt.TensorFormat.HWC8, trt.TensorFormat.CHW2]
    assert tuple(engine.get_binding_shape(0)) == (2, 3, 4) and engine.get_binding_vectorized_dim(0) == 0
    assert (engine.get_binding_components_per_element(0), engine.get_binding_components_per_element(1)) == (8, 2)
    v = np.arange(24, dtype="f4").reshape(2, 3, 4)
    memory, found = store(v, 8, 2, True), np.empty((1, 3, 4, 2), "f4")
    assert engine.create_execution_context().execute_v2([memory.ctypes.data, found.ctypes.data])
    assert np.array_equal(found, store(v, 2, 2, False))


def test_floats_in_memory_as_int8():
    """INT8 of an input or output of floats: numbers of the scale of its range, in any format. Without a range a build fails."""
    rng = np.random.default_rng(3)
    for turn, (name, given) in enumerate([("LINEAR", trt.float32), ("CHW4", trt.float32), ("CHW32", trt.float16), ("HWC8", trt.float32)]):
        builder, config = trt.Builder(LOG), None
        network, channels = builder.create_network(), int(rng.integers(1, 40))
        x = network.add_input("x", given, (-1, channels, 4, 5))
        y = network.add_unary(x, trt.UnaryOperation.NEG).get_output(0)
        z = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
        for tensor, word in ((y, "y"), (z, "z")):
            tensor.name = word
            network.mark_output(tensor)
        assert x.dtype == given
        x.dtype = y.dtype = trt.int8
        x.allowed_formats = y.allowed_formats = bits(name)
        assert x.dtype == y.dtype == trt.int8 and z.dtype == given and network.get_input(0).dtype == trt.int8
        config, profile = builder.create_builder_config(), builder.create_optimization_profile()
        profile.set_shape("x", *((n, channels, 4, 5) for n in (1, 2, 4)))
        config.add_optimization_profile(profile)
        config.set_flag(trt.BuilderFlag.INT8)
        x.dynamic_range = -3, 3
        assert builder.build_serialized_network(network, config) is None                        # y has no range
        y.dynamic_range = -2.5, 2.5
        for _ in range(2):                              # a build leaves the network as it was
            engine = builder.build_engine_with_config(network, config)
        assert [engine.get_tensor_dtype(n) for n in "xyz"] == [trt.int8, trt.int8, given]
        codes = rng.integers(-127, 128, (2, channels, 4, 5)).astype("i1")
        lay = (lambda a: a) if name == "LINEAR" else lambda a: store(a, *FORMATS[name])
        found, plain = np.full_like(lay(codes), 7), np.empty(codes.shape, trt.nptype(given))
        run(engine, codes.shape, {"x": lay(codes)}, {"y": found, "z": plain})
        v = codes.astype("f4") * np.float32(3 / 127)
        wanted = lay(np.clip(np.rint(-v / np.float32(2.5 / 127)), -128, 127).astype("i1"))
        assert np.abs(found.astype("i4") - wanted).max() <= (given == trt.float16), (turn, name)
        np.testing.assert_allclose(plain, np.maximum(v, 0), rtol=1e-3)
        x.dtype = y.dtype = given                       # and back
        assert builder.build_engine_with_config(network, config).get_tensor_dtype("x") == given


def test_memory_for_the_shape_alone():
    """As on a GPU, a script may have less memory than the format fills: what lies behind it is lost."""
    builder = trt.Builder(LOG)
    network = builder.create_network()
    y = network.add_unary(network.add_input("x", trt.float32, (2, 3, 4)), trt.UnaryOperation.NEG).get_output(0)
    y.name = "y"
    network.mark_output(y)
    network.get_input(0).allowed_formats = y.allowed_formats = bits("HWC8")
    engine = builder.build_engine_with_config(network, builder.create_builder_config())
    v = np.arange(24, dtype="f4").reshape(2, 3, 4)
    memory, found = store(v, 8, 2, True), np.empty(24, "f4")
    at = [device.alloc(96), device.alloc(96)]
    assert device.copy(at[0], memory.ctypes.data, 96, True, False)
    assert engine.create_execution_context().execute_v2(at) and device.copy(found.ctypes.data, at[1], 96, False, True)
    assert np.array_equal(found, -memory.reshape(-1)[:24]) and all(device.free(a) for a in at)


rig.main(__name__)
