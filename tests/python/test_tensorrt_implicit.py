# SPDX-License-Identifier: Apache-2.0
"""Networks with an implicit batch, as TensorRT 5 to 8 had them, in sinter.tensorrt."""
import os

import numpy as np
import rig

os.environ["SINTER_TENSORRT_DEVICE"] = "cpu"
import sinter.tensorrt as trt  # noqa: E402

RANDOM = np.random.default_rng(3)
LOGGER = trt.Logger(trt.Logger.ERROR)
BATCH = 3


def numbers(*shape):
    return (RANDOM.standard_normal(shape) * 0.3).astype("f4")


WEIGHTS = [numbers(4, 2, 3, 3), numbers(4), numbers(5, 4 * 3 * 3), numbers(5), numbers(1, 4, 6, 6), numbers(6, 5)]


def layers(net):
    """Two inputs and an output for each kind of layer that has axes, or lists of sizes."""
    x, z = net.add_input("x", trt.float32, (2, 6, 6)), net.add_input("z", trt.float32, (5,))
    conv = net.add_convolution(x, 4, (3, 3), WEIGHTS[0], WEIGHTS[1])
    conv.padding = (1, 1)
    scale = net.add_scale(conv.get_output(0), trt.ScaleMode.CHANNEL, WEIGHTS[1], WEIGHTS[1], np.ones(4, "f4"))
    relu = net.add_activation(scale.get_output(0), trt.ActivationType.RELU)
    a = relu.get_output(0)
    assert net.has_implicit_batch_dimension and tuple(x.shape) == (2, 6, 6) and tuple(a.shape) == (4, 6, 6)
    pool = net.add_pooling(a, trt.PoolingType.MAX, (2, 2))
    pool.stride = (2, 2)
    dense = net.add_fully_connected(pool.get_output(0), 5, WEIGHTS[2], WEIGHTS[3])
    assert tuple(dense.get_output(0).shape) == (5, 1, 1)
    flat = net.add_shuffle(dense.get_output(0))
    flat.reshape_dims = (5,)
    assert tuple(flat.reshape_dims) == (5,) and tuple(flat.get_output(0).shape) == (5,)
    softmax = net.add_softmax(net.add_elementwise(flat.get_output(0), z, trt.ElementWiseOperation.SUM).get_output(0))
    assert softmax.axes == 1
    top = net.add_topk(softmax.get_output(0), trt.TopKOperation.MAX, 2, 1)
    constant = net.add_constant((1, 6, 6), WEIGHTS[4][0, :1])
    joined = net.add_concatenation([a, constant.get_output(0)])
    assert joined.axis == 0 and tuple(joined.get_output(0).shape) == (5, 6, 6)
    turned = net.add_shuffle(a)
    turned.first_transpose = (2, 0, 1)
    turned.reshape_dims = (0, 24)
    cut = net.add_slice(a, (1, 0, 2), (2, 6, 2), (1, 1, 2))
    summed = net.add_reduce(a, trt.ReduceOperation.SUM, 1 << 0 | 1 << 2, False)
    assert summed.axes == 5
    big = net.add_resize(a)
    big.shape, big.resize_mode = (4, 9, 12), trt.InterpolationMode.NEAREST
    big.coordinate_transformation = trt.ResizeCoordinateTransformation.ASYMMETRIC
    big.nearest_rounding = trt.ResizeRoundMode.FLOOR
    product = net.add_matrix_multiply(net.add_shuffle(summed.get_output(0)).get_output(0), trt.MatrixOperation.VECTOR,
                                      net.add_constant((6, 5), WEIGHTS[5]).get_output(0), trt.MatrixOperation.NONE)
    for i, layer in enumerate([softmax, top, joined, turned, cut, summed, big, product]):
        layer.get_output(0).name = f"y{i}"
        net.mark_output(layer.get_output(0))


def wanted(x, z):
    w = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(w, (3, 3), (2, 3))
    conv = np.einsum("nchwij,ocij->nohw", windows, WEIGHTS[0]) + WEIGHTS[1][:, None, None]
    a = np.maximum(conv * WEIGHTS[1][:, None, None] + WEIGHTS[1][:, None, None], 0)
    pool = a.reshape(len(x), 4, 3, 2, 3, 2).max((3, 5))
    logits = pool.reshape(len(x), -1) @ WEIGHTS[2].T + WEIGHTS[3] + z
    softmax = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    rows, columns = np.arange(9) * 6 // 9, np.arange(12) // 2
    summed = a.sum((1, 3))
    return [softmax, -np.sort(-softmax, 1)[:, :2], np.concatenate([a, np.broadcast_to(WEIGHTS[4][:, :1], (len(x), 1, 6, 6))], 1),
            a.transpose(0, 3, 1, 2).reshape(len(x), 6, 24), a[:, 1:3, :, 2:6:2], summed, a[:, :, rows][:, :, :, columns], summed @ WEIGHTS[5]]


def check(engine, batch):
    assert engine.has_implicit_batch_dimension and engine.max_batch_size == BATCH
    x, z = numbers(batch, 2, 6, 6), numbers(batch, 5)
    found = [np.empty((batch, *engine.get_binding_shape(i)), "f4") for i in range(2, engine.num_bindings)]
    context = engine.create_execution_context()
    bindings = [x.ctypes.data, z.ctypes.data, *(y.ctypes.data for y in found)]
    assert context.execute_async(batch, bindings, 0) and context.execute(batch, bindings)
    for y, right in zip(found, wanted(x, z)):
        assert y.shape == right.shape and np.abs(y - right).max() < 1e-5, (y.shape, right.shape)
    assert not context.execute(BATCH + 1, bindings)


def test_batches():
    with trt.Builder(LOGGER) as builder, builder.create_network() as network:
        builder.max_batch_size, builder.max_workspace_size = BATCH, 1 << 20
        layers(network)
        with builder.build_cuda_engine(network) as engine:
            for batch in (1, 2, BATCH):
                check(engine, batch)
        plan = engine.serialize()
    check(trt.Runtime(LOGGER).deserialize_cuda_engine(plan), 2)


def test_what_makes_a_batch_implicit():
    """A window that lacks an axis, in a network without EXPLICIT_BATCH; max_batch_size may be set later."""
    builder = trt.Builder(LOGGER)
    network = builder.create_network(0)
    x = network.add_input("x", trt.float32, (2, 6, 6))
    assert not network.has_implicit_batch_dimension
    y = network.add_pooling(x, trt.PoolingType.AVERAGE, (2, 2)).get_output(0)
    assert network.has_implicit_batch_dimension and tuple(x.shape) == (2, 6, 6) and tuple(y.shape) == (2, 5, 5)
    rig.raises(NotImplementedError, network.add_shape, y, says="EXPLICIT_BATCH")
    rig.raises(NotImplementedError, network.add_loop, says="EXPLICIT_BATCH")
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    y = network.add_pooling_nd(network.add_input("x", trt.float32, (1, 2, 6, 6)), trt.PoolingType.AVERAGE, (2, 2)).get_output(0)
    assert not network.has_implicit_batch_dimension and tuple(y.shape) == (1, 2, 5, 5)


def test_gathers():
    """Of a tensor by constants, of a tensor by indices of its own, and of a constant; along each axis."""
    data, table = numbers(BATCH, 4, 5), numbers(6, 7)
    own, fixed = RANDOM.integers(0, 4, (BATCH, 3)).astype("i4"), np.array([[3, 0], [1, 1]], "i4")
    builder = trt.Builder(LOGGER)
    builder.max_batch_size = BATCH
    net = builder.create_network()
    x, i = net.add_input("x", trt.float32, (4, 5)), net.add_input("i", trt.int32, (3,))
    constants = [net.add_constant(a.shape, a).get_output(0) for a in (fixed, table)]
    cases = [(x, constants[0], axis, np.take(data, fixed, axis + 1)) for axis in (0, 1)]
    cases += [(x, i, axis, np.stack([np.take(d, k, axis) for d, k in zip(data, own)])) for axis in (0, 1)] + [(constants[1], i, 0, table[own])]
    for source, indices, axis, right in cases:
        layer = net.add_gather(source, indices, axis)
        assert layer.axis == axis and tuple(layer.get_output(0).shape) == right.shape[1:]
        net.mark_output(layer.get_output(0))
    found = [np.empty_like(right) for *_, right in cases]
    context = builder.build_cuda_engine(net).create_execution_context()
    assert context.execute(BATCH, [data.ctypes.data, own.ctypes.data, *(y.ctypes.data for y in found)])
    for y, (*_, right) in zip(found, cases):
        assert (y == right).all(), (y.shape, right.shape)
    rig.raises(NotImplementedError, net.add_gather, constants[1], i, 1, says="not 0")
    rig.raises(NotImplementedError, net.add_gather_v2, x, i, trt.GatherMode.ND, says="EXPLICIT_BATCH")


def test_calibration():
    class Calibrator(trt.IInt8MinMaxCalibrator):
        def __init__(self):
            super().__init__()
            self.batches = [(numbers(2, 2, 6, 6), numbers(2, 5)) for _ in range(2)]
            self.left = list(self.batches)

        def get_batch_size(self):
            return 2

        def get_batch(self, names):
            return [a.ctypes.data for a in self.left.pop()] if self.left else None

        def read_calibration_cache(self):
            return None

        def write_calibration_cache(self, cache):
            self.cache = bytes(cache)

    builder = trt.Builder(LOGGER)
    builder.max_batch_size, builder.int8_mode, builder.int8_calibrator = BATCH, True, Calibrator()
    network = builder.create_network()
    layers(network)
    assert builder.build_cuda_engine(network) is not None and b"\nx: " in builder.int8_calibrator.cache


rig.main(__name__)
