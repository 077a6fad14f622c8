# SPDX-License-Identifier: Apache-2.0
"""Models of one operator, as `bench/ops` times them: each is a function of its shapes, written as ONNX.

Weights are initializers and activations are inputs, as in a network. Sizes are those that networks have, and sizes that
no vector length divides."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


def model_of(node_type, inputs, outputs, weights=(), attributes=None, extra=()):
    """One node; `inputs`: (name, type, dims); `weights`: name -> array, behind the inputs in the node's order."""
    weights = dict(weights)
    names = [name for name, _, _ in inputs] + list(weights)
    node = helper.make_node(node_type, names, [name for name, _, _ in outputs], **(attributes or {}))
    values = [[helper.make_tensor_value_info(name, kind, dims) for name, kind, dims in part]
              for part in (inputs, outputs)]
    graph = helper.make_graph([node, *extra], "one op", *values,
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def normal(*dims):
    return np.random.default_rng(sum(dims) + len(dims)).standard_normal(dims).astype(np.float32)


F, I = TensorProto.FLOAT, TensorProto.INT64


def matmul(m, k, n, is_weight=True, batch=()):
    if is_weight:
        return model_of("MatMul", [("a", F, [*batch, m, k])], [("y", F, [*batch, m, n])], {"b": normal(k, n)})
    return model_of("MatMul", [("a", F, [*batch, m, k]), ("b", F, [*batch, k, n])], [("y", F, [*batch, m, n])])


def conv(channels, size, out, kernel=3, stride=1, pad=None, groups=1, dilation=1, images=1, rank=2):
    pad = dilation * (kernel - 1) // 2 if pad is None else pad
    result = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    return model_of("Conv", [("x", F, [images, channels] + [size] * rank)], [("y", F, [images, out] + [result] * rank)],
                    {"w": normal(out, channels // groups, *[kernel] * rank), "b": normal(out)},
                    {"strides": [stride] * rank, "pads": [pad] * 2 * rank, "group": groups,
                     "dilations": [dilation] * rank})


def conv_transpose(channels, size, out, kernel=2, stride=2):
    result = (size - 1) * stride + kernel
    return model_of("ConvTranspose", [("x", F, [1, channels, size, size])], [("y", F, [1, out, result, result])],
                    {"w": normal(channels, out, kernel, kernel)}, {"strides": [stride, stride]})


def reduce(kind, dims, axes):
    kept = [1 if i in axes else dim for i, dim in enumerate(dims)]
    is_sum = kind == "ReduceSum"
    weights = {"axes": np.array(axes, np.int64)} if is_sum else {}
    return model_of(kind, [("x", F, dims)], [("y", F, kept)], weights,
                    {"keepdims": 1, **({} if is_sum else {"axes": axes})})


def softmax(dims, axis=-1):
    return model_of("Softmax", [("x", F, dims)], [("y", F, dims)], attributes={"axis": axis})


def layer_norm(dims):
    return model_of("LayerNormalization", [("x", F, dims)], [("y", F, dims)],
                    {"s": normal(dims[-1]), "b": normal(dims[-1])}, {"axis": -1})


def transpose(dims, perm):
    return model_of("Transpose", [("x", F, dims)], [("y", F, [dims[i] for i in perm])], attributes={"perm": perm})


def gather_rows(rows, width, count):
    node = helper.make_node("Gather", ["table", "i"], ["y"], axis=0)
    graph = helper.make_graph([node], "one op", [helper.make_tensor_value_info("i", I, [count])],
                              [helper.make_tensor_value_info("y", F, [count, width])],
                              [numpy_helper.from_array(normal(rows, width), "table")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def unary(kind, dims):
    return model_of(kind, [("x", F, dims)], [("y", F, dims)])


def binary(kind, left, right):
    return model_of(kind, [("a", F, left), ("b", F, right)], [("y", F, list(np.broadcast_shapes(left, right)))])


def pool(kind, channels, size, kernel, stride):
    result = (size - kernel) // stride + 1
    return model_of(kind, [("x", F, [1, channels, size, size])], [("y", F, [1, channels, result, result])],
                    attributes={"kernel_shape": [kernel] * 2, "strides": [stride] * 2})


def resize(channels, size, scale, mode):
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode,
                            coordinate_transformation_mode="asymmetric" if mode == "nearest" else "half_pixel",
                            **({"nearest_mode": "floor"} if mode == "nearest" else {}))
    graph = helper.make_graph([node], "one op", [helper.make_tensor_value_info("x", F, [1, channels, size, size])],
                              [helper.make_tensor_value_info("y", F, [1, channels, size * scale, size * scale])],
                              [numpy_helper.from_array(np.array([1, 1, scale, scale], np.float32), "scales")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def concat(parts, axis):
    total = list(parts[0])
    total[axis] = sum(part[axis] for part in parts)
    return model_of("Concat", [(f"x{i}", F, list(part)) for i, part in enumerate(parts)], [("y", F, total)],
                    attributes={"axis": axis})


def slice_of(dims, begin, end, step):
    kept = [len(range(*slice(b, e, s).indices(d))) for d, b, e, s in zip(dims, begin, end, step)]
    as_array = [np.array(part, np.int64) for part in (begin, end, range(len(dims)), step)]
    return model_of("Slice", [("x", F, dims)], [("y", F, kept)], dict(zip(("begin", "end", "axes", "step"), as_array)))


def top_k(dims, k):
    return model_of("TopK", [("x", F, dims)], [("v", F, [*dims[:-1], k]), ("i", I, [*dims[:-1], k])],
                    {"k": np.array([k], np.int64)})


def lstm(steps, width, hidden):
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=hidden)
    weights = {"w": 0.1 * normal(1, 4 * hidden, width), "r": 0.1 * normal(1, 4 * hidden, hidden)}
    graph = helper.make_graph([node], "one op", [helper.make_tensor_value_info("x", F, [steps, 1, width])],
                              [helper.make_tensor_value_info("y", F, [steps, 1, 1, hidden])],
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


# (group, name, the model's maker)
PROBLEMS = [
    *[("matmul", f"{m}x1024x1024", lambda m=m: matmul(m, 1024, 1024)) for m in (1, 2, 4, 8, 16, 64, 256, 1024)],
    ("matmul", "4096x512x512", lambda: matmul(4096, 512, 512)),
    ("matmul", "1x4096x4096", lambda: matmul(1, 4096, 4096)),
    ("matmul", "128x768x3072", lambda: matmul(128, 768, 3072)),
    ("matmul", "127x129x131", lambda: matmul(127, 129, 131)),
    ("matmul", "33x1000x17", lambda: matmul(33, 1000, 17)),
    ("matmul", "7x13x5", lambda: matmul(7, 13, 5)),
    ("matmul", "12 of 128x64x128, two inputs", lambda: matmul(128, 64, 128, False, (12,))),
    ("conv", "3x3 64 56x56", lambda: conv(64, 56, 64)),
    ("conv", "3x3 128 28x28", lambda: conv(128, 28, 128)),
    ("conv", "3x3 512 7x7", lambda: conv(512, 7, 512)),
    ("conv", "3x3 stride 2 128 56x56", lambda: conv(128, 56, 128, stride=2)),
    ("conv", "3x3 dilation 2 256 28x28", lambda: conv(256, 28, 256, dilation=2)),
    ("conv", "1x1 64 to 256 56x56", lambda: conv(64, 56, 256, kernel=1)),
    ("conv", "1x1 1024 to 256 14x14", lambda: conv(1024, 14, 256, kernel=1)),
    ("conv", "1x1 stride 2 256 to 512 56x56", lambda: conv(256, 56, 512, kernel=1, stride=2)),
    ("conv", "7x7 stride 2 3 to 64 224x224", lambda: conv(3, 224, 64, kernel=7, stride=2)),
    ("conv", "5x5 32 57x57", lambda: conv(32, 57, 32, kernel=5)),
    ("conv", "groups of 8, 3x3 256 28x28", lambda: conv(256, 28, 256, groups=32)),
    ("conv", "8 images 3x3 64 28x28", lambda: conv(64, 28, 64, images=8)),
    ("conv", "3 dims 3x3x3 16 32", lambda: conv(16, 32, 16, rank=3)),
    ("conv", "1 dim 9 80 to 128 1000", lambda: conv(80, 1000, 128, kernel=9, rank=1)),
    ("conv", "transposed 2x2 256 to 128 28x28", lambda: conv_transpose(256, 28, 128)),
    ("depthwise", "3x3 96 112x112 stride 2", lambda: conv(96, 112, 96, groups=96, stride=2)),
    ("depthwise", "3x3 144 56x56", lambda: conv(144, 56, 144, groups=144)),
    ("depthwise", "3x3 960 7x7", lambda: conv(960, 7, 960, groups=960)),
    ("depthwise", "5x5 240 28x28", lambda: conv(240, 28, 240, kernel=5, groups=240)),
    ("reduce", "mean of 1x2048x7x7 over 2, 3", lambda: reduce("ReduceMean", [1, 2048, 7, 7], [2, 3])),
    ("reduce", "sum of 64x128x256 over 0, 2", lambda: reduce("ReduceSum", [64, 128, 256], [0, 2])),
    ("reduce", "max of 64x128x256 over 1", lambda: reduce("ReduceMax", [64, 128, 256], [1])),
    ("reduce", "sum of 1000000", lambda: reduce("ReduceSum", [1000000], [0])),
    ("reduce", "mean of 33x17x65x9 over 1, 3", lambda: reduce("ReduceMean", [33, 17, 65, 9], [1, 3])),
    *[("softmax", f"{rows} x {n}", lambda rows=rows, n=n: softmax([rows, n]))
      for rows, n in ((100000, 2), (4096, 17), (1536, 128), (64, 1000), (16, 50257), (1, 1000000))],
    ("softmax", "axis 1 of 8x64x32x32", lambda: softmax([8, 64, 32, 32], 1)),
    ("norm", "layer 128x768", lambda: layer_norm([128, 768])),
    ("norm", "layer 3136x96", lambda: layer_norm([3136, 96])),
    ("move", "transpose 1x12x128x64 by 0, 2, 1, 3", lambda: transpose([1, 12, 128, 64], [0, 2, 1, 3])),
    ("move", "transpose 1024x1024", lambda: transpose([1024, 1024], [1, 0])),
    ("move", "transpose 1x64x112x112 to channels last", lambda: transpose([1, 64, 112, 112], [0, 2, 3, 1])),
    ("move", "transpose 33x17x65x9 by 3, 1, 0, 2", lambda: transpose([33, 17, 65, 9], [3, 1, 0, 2])),
    ("move", "gather 128 of 30522x768", lambda: gather_rows(30522, 768, 128)),
    ("move", "gather 100000 of 1000x16", lambda: gather_rows(1000, 16, 100000)),
    ("move", "concat 4 of 1x64x56x56", lambda: concat([(1, 64, 56, 56)] * 4, 1)),
    ("move", "every second of 1x64x112x112", lambda: slice_of([1, 64, 112, 112], [0, 0, 0, 0], [1, 64, 112, 112],
                                                              [1, 1, 2, 2])),
    ("elementwise", "relu 1000000", lambda: unary("Relu", [1000000])),
    ("elementwise", "sigmoid 1000000", lambda: unary("Sigmoid", [1000000])),
    ("elementwise", "erf 1000000", lambda: unary("Erf", [1000000])),
    ("elementwise", "add 1x256x56x56", lambda: binary("Add", [1, 256, 56, 56], [1, 256, 56, 56])),
    ("elementwise", "mul 1x256x56x56 by 1x256x1x1", lambda: binary("Mul", [1, 256, 56, 56], [1, 256, 1, 1])),
    ("pool", "max 3x3 stride 2 64 112x112", lambda: pool("MaxPool", 64, 112, 3, 2)),
    ("pool", "average 2x2 stride 2 128 56x56", lambda: pool("AveragePool", 128, 56, 2, 2)),
    ("image", "resize linear 64 56x56 by 2", lambda: resize(64, 56, 2, "linear")),
    ("image", "resize nearest 64 56x56 by 2", lambda: resize(64, 56, 2, "nearest")),
    ("other", "topk 10 of 64x1000", lambda: top_k([64, 1000], 10)),
    ("other", "lstm 50 steps 128 to 128", lambda: lstm(50, 128, 128)),
]
