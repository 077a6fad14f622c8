# SPDX-License-Identifier: Apache-2.0
"""Networks made by calls, of sinter and of sinter.tensorrt: random chains of layers against NumPy, properties, refusals."""
import itertools
import os
import subprocess
import sys

import numpy as np
import rig
import sinter

os.environ["SINTER_TENSORRT_DEVICE"] = "cpu"
import sinter.tensorrt as trt  # noqa: E402

QUIET = trt.Logger(trt.Logger.INTERNAL_ERROR)


def run(network, **inputs):
    return sinter.build(network, tune="off").load().context().run(inputs)


def test_layers_and_parameters():
    net = sinter.Network()
    x = net.add_input("x", "f32", (1, 3, 8, 8))
    kernel = np.ones((4, 3, 3, 3), "f4")
    conv = net.add("convolution", x, maps=4, kernel_size=(3, 3), kernel=kernel)
    conv.stride, conv.name = (2, 2), "first"
    assert conv.stride == [2, 2] and conv.maps == 4 and conv.name == "first" and conv.kind == sinter.LayerKind.CONVOLUTION
    assert conv.output.shape == (1, 4, 3, 3) and conv.output.dtype == sinter.Dtype.F32
    assert np.array_equal(conv.kernel.numpy(), kernel.reshape(-1)) and conv.padding_mode == "explicit_round_down"
    relu = net.add("activation", conv.output, type="relu")
    relu.output.name = "y"
    net.mark_output(relu.output)
    image = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype("f4")
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    wanted = np.maximum(np.einsum("nchwij,ocij->nohw", windows, kernel), 0)
    assert np.allclose(run(net, x=image)["y"], wanted, atol=1e-4)
    assert net.layers == [conv, relu] and net.inputs == [x] and net.outputs[0].name == "y" and relu.inputs == [conv.output]
    assert relu.output.producer == relu and x.producer is None and x.is_input and relu.output.is_output
    rig.raises(AttributeError, conv.set, "colour", 3, says="kernel_size")
    rig.raises(ValueError, net.add, "frobnicate", x, says="convolution")
    rig.raises(sinter.Error, net.add, "activation")
    rig.raises(sinter.Error, net.add_input, "x", "f32", (1,))
    rig.raises(ValueError, sinter.build, net, profiles={"B": 1})


def test_free_sizes():
    net = sinter.Network()
    x = net.add_input("x", "f32", (-1, 4), ("N", None))
    net.mark_output(net.add("unary", x, op="neg").output)
    net.outputs[0].name = "y"
    assert x.shape == (-1, 4) and x.dim_names[0] == "N"
    engine = sinter.build(net, profiles={"N": (1, 2, 5)}, tune="off").load()
    a = np.arange(12, dtype="f4").reshape(3, 4)
    assert np.array_equal(engine.context().run([a])["y"], -a) and engine.io()[0].max == (5, 4)


def random_chain(seed):
    """The same chain of layers by upstream's calls and in NumPy."""
    rng = np.random.default_rng(seed)
    network = trt.Builder(QUIET).create_network(0)
    shape = tuple(int(d) for d in rng.integers(1, 5, 3))
    value = rng.standard_normal(shape).astype("f4")
    first, tensor = value, network.add_input("x", trt.float32, shape)
    for _ in range(rng.integers(2, 9)):
        choice = rng.integers(0, 8)
        if choice == 0:
            tensor, value = network.add_activation(tensor, trt.ActivationType.RELU).get_output(0), np.maximum(value, 0)
        elif choice == 1:
            other = rng.standard_normal(value.shape).astype("f4")
            constant = network.add_constant(other.shape, other).get_output(0)
            tensor = network.add_elementwise(tensor, constant, trt.ElementWiseOperation.PROD).get_output(0)
            value = value * other
        elif choice == 2:
            order = tuple(int(i) for i in rng.permutation(value.ndim))
            layer = network.add_shuffle(tensor)
            layer.first_transpose = trt.Permutation(order)
            layer.reshape_dims = (-1,) + tuple(value.transpose(order).shape[1:])
            tensor, value = layer.get_output(0), value.transpose(order)
        elif choice == 3:
            axis = int(rng.integers(0, value.ndim))
            tensor = network.add_reduce(tensor, trt.ReduceOperation.SUM, 1 << axis, True).get_output(0)
            value = value.sum(axis, keepdims=True)
        elif choice == 4:
            layer = network.add_concatenation([tensor, tensor])
            layer.axis = int(rng.integers(0, value.ndim))
            tensor, value = layer.get_output(0), np.concatenate([value, value], layer.axis)
        elif choice == 5:
            weights = rng.standard_normal((1, value.shape[2], 3)).astype("f4")
            constant = network.add_constant(weights.shape, weights).get_output(0)
            tensor = network.add_matrix_multiply(tensor, trt.MatrixOperation.NONE, constant, trt.MatrixOperation.NONE).get_output(0)
            value = value @ weights
        elif choice == 6:
            size = tuple(max(1, d - 1) for d in value.shape)
            tensor = network.add_slice(tensor, (0, 0, 0), size, (1, 1, 1)).get_output(0)
            value = value[:size[0], :size[1], :size[2]]
        else:
            tensor, value = network.add_unary(tensor, trt.UnaryOperation.ABS).get_output(0), np.abs(value)
        assert tensor.shape == value.shape, (tensor.shape, value.shape)
    tensor.name = "y"
    network.mark_output(tensor)
    return network, first, value


def test_sizes_that_agree_in_runs():
    """A slice that lies in its input only where sizes fit together: every order of inputs builds, a run that fits is right, and one that
    does not fit is refused."""
    for order in itertools.permutations(("tokens", "past", "all")):
        network = trt.Builder(QUIET).create_network(0)
        size = {name: network.add_shape(network.add_input(name, trt.int64, (-1,))).get_output(0) for name in order}
        line = network.add_fill((1,), trt.FillOperation.LINSPACE, trt.int64)
        line.set_input(0, size["all"])
        for i, value in ((1, np.array(0)), (2, np.array([1]))):
            line.set_input(i, network.add_constant(value.shape, value).get_output(0))
        cut = network.add_slice(line.get_output(0), (0,), (1,), (1,))
        cut.set_input(1, size["past"])
        cut.set_input(2, size["tokens"])
        rows, columns = network.add_shuffle(cut.get_output(0)), network.add_shuffle(line.get_output(0))
        rows.reshape_dims, columns.reshape_dims = (-1, 1), (1, -1)
        late = network.add_elementwise(columns.get_output(0), rows.get_output(0), trt.ElementWiseOperation.GREATER)
        network.mark_output(late.get_output(0))
        profiles = {"tokens": ((1,), (4,), (16,)), "past": ((0,), (8,), (31,)), "all": ((1,), (12,), (47,))}
        context = sinter.build(network._net, tune="off", profiles=profiles).load().context()
        for past, tokens in ((8, 4), (0, 16), (31, 16), (5, 1)):
            sizes = {"tokens": tokens, "past": past, "all": past + tokens}
            got = next(iter(context.run({name: np.zeros(sizes[name], "i8") for name in order}).values()))
            assert np.array_equal(got, np.arange(past + tokens)[None] > np.arange(past, past + tokens)[:, None])
        rig.raises(sinter.Error, context.run, {"tokens": np.zeros(9, "i8"), "past": np.zeros(8, "i8"), "all": np.zeros(12, "i8")})


def test_random_chains():
    for seed in range(30):
        network, x, wanted = random_chain(seed)
        config = network.builder.create_builder_config()
        config.builder_optimization_level = 0
        engine = network.builder.build_engine_with_config(network, config)
        assert engine is not None, seed
        y = np.zeros(wanted.shape, "f4")
        assert engine.create_execution_context().execute_v2([x.ctypes.data, y.ctypes.data]), seed
        assert np.allclose(y, wanted, rtol=1e-4, atol=1e-4), (seed, np.abs(y - wanted).max())


def test_refusals():
    network = trt.Builder(QUIET).create_network(0)
    x = network.add_input("x", trt.float32, (2, 3))
    rig.raises(TypeError, network.add_activation, x, says="type")
    rig.raises(TypeError, network.add_activation, x, trt.ActivationType.RELU, 3)
    rig.raises(ValueError, lambda: network.add_rnn_v2(x, 1, 2, 3, 4))
    rig.raises(sinter.Error, lambda: network.add_matrix_multiply(x, trt.MatrixOperation.NONE, x, trt.MatrixOperation.NONE).get_output(0).shape)
    parsed = trt.Builder(QUIET).create_network(0)
    assert trt.OnnxParser(parsed, QUIET).parse_from_file(str(rig.DIGITS))


def test_script():
    script = rig.ROOT / "tests" / "python" / "scripts" / "network_api.py"
    done = subprocess.run([sys.executable, "-m", "sinter.shim", str(script)], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stdout + done.stderr


rig.main(__name__)
