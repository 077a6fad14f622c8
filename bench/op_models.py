# SPDX-License-Identifier: Apache-2.0
"""Models of one operator, as `bench/ops` times them: each is a function of its shapes, written as ONNX.

Weights are initializers and activations are inputs, as in a network. Sizes are those that networks have, and sizes that
no vector length divides."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


def model_of(node_type, inputs, outputs, weights=(), attributes=None, names=None, opset=OPSET):
    """One node. inputs, outputs: (name, type, dims). weights: name -> array. names: the node's inputs in order, ""
    where one is absent; without names, the inputs come first and the weights follow."""
    weights = dict(weights)
    names = [name for name, _, _ in inputs] + list(weights) if names is None else names
    node = helper.make_node(node_type, names, [name for name, _, _ in outputs], **(attributes or {}))
    values = [[helper.make_tensor_value_info(name, kind, dims) for name, kind, dims in part]
              for part in (inputs, outputs)]
    graph = helper.make_graph([node], "one op", *values,
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def normal(*dims):
    return np.random.default_rng(sum(dims) + len(dims)).standard_normal(dims).astype(np.float32)


def places(count, *dims):
    """Places below count, each once as far as they reach."""
    wanted = int(np.prod(dims))
    found = np.random.default_rng(count).permutation(np.resize(np.arange(count), max(count, wanted)))[:wanted]
    return found.reshape(dims).astype(np.int64)


F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
D, H, I32, U8 = TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.UINT8


def matmul(m, k, n, is_weight=True, batch=()):
    if is_weight:
        return model_of("MatMul", [("a", F, [*batch, m, k])], [("y", F, [*batch, m, n])], {"b": normal(k, n)})
    return model_of("MatMul", [("a", F, [*batch, m, k]), ("b", F, [*batch, k, n])], [("y", F, [*batch, m, n])])


def matmul_half(m, k, n):
    return model_of("MatMul", [("a", H, [m, k])], [("y", H, [m, n])], {"b": (0.1 * normal(k, n)).astype(np.float16)})


def matmul_wide(type_, numpy_type, m, k, n):
    return model_of("MatMul", [("a", type_, [m, k])], [("y", type_, [m, n])], {"b": (9 * normal(k, n)).astype(numpy_type)})


def conv(channels, size, out, kernel=3, stride=1, pad=None, groups=1, dilation=1, images=1, rank=2):
    pad = dilation * (kernel - 1) // 2 if pad is None else pad
    result = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    return model_of("Conv", [("x", F, [images, channels] + [size] * rank)], [("y", F, [images, out] + [result] * rank)],
                    {"w": normal(out, channels // groups, *[kernel] * rank), "b": normal(out)},
                    {"strides": [stride] * rank, "pads": [pad] * 2 * rank, "group": groups,
                     "dilations": [dilation] * rank})


def conv_line(channels, height, width, out, down=False, terms=3):
    """A filter along one of two axes."""
    return model_of("Conv", [("x", F, [1, channels, height, width])], [("y", F, [1, out, height, width])],
                    {"w": normal(out, channels, terms, 1) if down else normal(out, channels, 1, terms), "b": normal(out)},
                    {"pads": [terms // 2, 0] * 2 if down else [0, terms // 2] * 2})


def conv_transpose(channels, size, out, kernel=2, stride=2, pad=0, rank=2, groups=1):
    result = (size - 1) * stride + kernel - 2 * pad
    return model_of("ConvTranspose", [("x", F, [1, channels] + [size] * rank)],
                    [("y", F, [1, out] + [result] * rank)], {"w": normal(channels, out // groups, *[kernel] * rank)},
                    {"strides": [stride] * rank, "pads": [pad] * 2 * rank, "group": groups})


def reduce(kind, dims, axes, kind_of=F):
    kept = [1 if i in axes else dim for i, dim in enumerate(dims)]
    return model_of(kind, [("x", kind_of, dims)], [("y", kind_of, kept)], {"axes": np.array(axes, np.int64)},
                    {"keepdims": 1}, None, 18)


def softmax(dims, axis=-1, kind="Softmax", kind_of=F):
    return model_of(kind, [("x", kind_of, dims)], [("y", kind_of, dims)], attributes={"axis": axis})


def norm(kind, dims, inputs=3, opset=OPSET, **attributes):
    """Per channel: batch, instance and group normalisation."""
    channels = dims[1]
    weights = {"s": normal(channels), "b": normal(channels), "m": normal(channels), "v": normal(channels) ** 2}
    return model_of(kind, [("x", F, dims)], [("y", F, dims)], dict(list(weights.items())[:inputs - 1]), attributes,
                    opset=opset)


def layer_norm(dims, kind_of=F):
    part = np.float16 if kind_of == H else np.float32
    return model_of("LayerNormalization", [("x", kind_of, dims)], [("y", kind_of, dims)],
                    {"s": normal(dims[-1]).astype(part), "b": normal(dims[-1]).astype(part)}, {"axis": -1})


def transpose(dims, perm, kind_of=F):
    return model_of("Transpose", [("x", kind_of, dims)], [("y", kind_of, [dims[i] for i in perm])],
                    attributes={"perm": perm})


def gather(dims, axis, count):
    kept = [*dims[:axis], count, *dims[axis + 1:]]
    return model_of("Gather", [("x", F, dims)], [("y", F, kept)], {"i": places(dims[axis], count)}, {"axis": axis})


def gather_rows(rows, width, count):
    return model_of("Gather", [("i", I, [count])], [("y", F, [count, width])], {"table": normal(rows, width)},
                    {"axis": 0}, ["table", "i"])


def gather_elements(dims, axis, count):
    kept = [*dims[:axis], count, *dims[axis + 1:]]
    return model_of("GatherElements", [("x", F, dims)], [("y", F, kept)], {"i": places(dims[axis], *kept)},
                    {"axis": axis})


def scatter_elements(rows, width, count, reduction):
    at = np.stack([places(rows, count)] * width, 1)
    return model_of("ScatterElements", [("x", F, [rows, width]), ("u", F, [count, width])], [("y", F, [rows, width])],
                    {"i": at}, {"axis": 0, "reduction": reduction}, ["x", "i", "u"])


def scatter_rows(rows, width, count, reduction, kind_of=F):
    return model_of("ScatterND", [("x", kind_of, [rows, width]), ("u", kind_of, [count, width])],
                    [("y", kind_of, [rows, width])],
                    {"i": places(rows, count, 1)}, {"reduction": reduction}, ["x", "i", "u"])


def unary(kind, dims, opset=OPSET, kind_of=F, **attributes):
    return model_of(kind, [("x", kind_of, dims)], [("y", kind_of, dims)], (), attributes, opset=opset)


def binary(kind, left, right, result=F, kind_of=F, **attributes):
    return model_of(kind, [("a", kind_of, left), ("b", kind_of, right)],
                    [("y", result, list(np.broadcast_shapes(left, right)))], attributes=attributes)


def with_constant(kind, dims, value, kind_of=F, result=None):
    to = list(np.broadcast_shapes(dims, value.shape))
    return model_of(kind, [("x", kind_of, dims)], [("y", result or kind_of, to)], {"c": value})


def where(mask, dims):
    return model_of("Where", [("c", B, mask), ("a", F, dims), ("b", F, dims)],
                    [("y", F, list(np.broadcast_shapes(mask, dims)))])


def cast(dims, begin, end):
    return model_of("Cast", [("x", begin, dims)], [("y", end, dims)], attributes={"to": end})


def quantize(dims):
    return model_of("QuantizeLinear", [("x", F, dims)], [("y", TensorProto.UINT8, dims)],
                    {"s": np.float32(2**-6), "z": np.uint8(128)})


def dequantize(dims):
    return model_of("DequantizeLinear", [("x", TensorProto.UINT8, dims)], [("y", F, dims)],
                    {"s": np.float32(0.02), "z": np.uint8(128)})


def pool(kind, channels, size, kernel, stride, pad=0, rank=2, **attributes):
    result = (size + 2 * pad - kernel) // stride + 1
    return model_of(kind, [("x", F, [1, channels] + [size] * rank)], [("y", F, [1, channels] + [result] * rank)],
                    attributes={"kernel_shape": [kernel] * rank, "strides": [stride] * rank, "pads": [pad] * 2 * rank,
                                **attributes})


def global_pool(kind, dims):
    return model_of(kind, [("x", F, dims)], [("y", F, dims[:2] + [1] * (len(dims) - 2))])


def resize(channels, size, scale, mode, coordinates="half_pixel", rank=2, opset=OPSET, **attributes):
    result = int(size * scale)
    return model_of("Resize", [("x", F, [1, channels] + [size] * rank)], [("y", F, [1, channels] + [result] * rank)],
                    {"scales": np.array([1, 1] + [scale] * rank, np.float32)},
                    {"mode": mode, "coordinate_transformation_mode": coordinates, **attributes,
                     **({"nearest_mode": "floor"} if mode == "nearest" else {})}, ["x", "", "scales"], opset)


def grid_sample(channels, size, result, **attributes):
    return model_of("GridSample", [("x", F, [1, channels, size, size])], [("y", F, [1, channels, result, result])],
                    {"g": np.tanh(normal(1, result, result, 2))}, attributes)


def concat(parts, axis):
    total = list(parts[0])
    total[axis] = sum(part[axis] for part in parts)
    return model_of("Concat", [(f"x{i}", F, list(part)) for i, part in enumerate(parts)], [("y", F, total)],
                    attributes={"axis": axis})


def gather_nd(dims, count, depth):
    at = np.stack([np.random.default_rng(i).integers(0, dims[i], count) for i in range(depth)], 1)
    return model_of("GatherND", [("x", F, dims)], [("y", F, [count, *dims[depth:]])], {"i": at})


def roi_align(channels, size, boxes, result):
    corner = size * 8 * np.random.default_rng(boxes).random((boxes, 2), np.float32)
    return model_of("RoiAlign", [("x", F, [1, channels, size, size])], [("y", F, [boxes, channels, result, result])],
                    {"r": np.concatenate([corner, corner + 100], 1), "b": np.zeros(boxes, np.int64)},
                    {"output_height": result, "output_width": result, "sampling_ratio": 2, "spatial_scale": 0.125})


def matmul_integer(m, k, n, most=127):
    rng = np.random.default_rng(k)
    return model_of("MatMulInteger", [("a", U8, [m, k])], [("y", I32, [m, n])],
                    {"b": rng.integers(-most, most + 1, (k, n)).astype(np.int8), "z": np.uint8(128)}, None, ["a", "b", "z"])


def dequantize_axis(rows, cols):
    return model_of("DequantizeLinear", [("x", U8, [rows, cols])], [("y", F, [rows, cols])],
                    {"s": np.abs(normal(rows)) + 1, "z": np.full(rows, 128, np.uint8)}, {"axis": 0})


def dynamic_quantize(dims):
    return model_of("DynamicQuantizeLinear", [("x", F, dims)], [("y", U8, dims), ("s", F, []), ("z", U8, [])])


def counted(kind, dims, kind_of=F, **attributes):
    """Results whose number the data decide."""
    if kind == "NonZero":
        return model_of(kind, [("x", kind_of, dims)], [("y", I, [len(dims), "n"])])
    return model_of(kind, [("x", kind_of, dims)], [("y", kind_of, ["n"])], (), attributes)


def pool_line(kind, channels, height, width, kernel):
    """Windows along the width, one behind the other."""
    return model_of(kind, [("x", F, [1, channels, height, width])], [("y", F, [1, channels, height, width // kernel])],
                    attributes={"kernel_shape": [1, kernel], "strides": [1, kernel]})


def pool_with_places(channels, size, kernel, stride):
    result = (size - kernel) // stride + 1
    dims = [1, channels, result, result]
    return model_of("MaxPool", [("x", F, [1, channels, size, size])], [("y", F, dims), ("i", I, dims)],
                    attributes={"kernel_shape": [kernel] * 2, "strides": [stride] * 2})


def triangle(dims, upper):
    return model_of("Trilu", [("x", F, dims)], [("y", F, dims)], attributes={"upper": upper})


def forest(rows, trees, depth, features):
    """Complete trees: node i goes on to 2 i + 1 or 2 i + 2."""
    inner, count = 2 ** depth - 1, 2 ** (depth + 1) - 1
    rng = np.random.default_rng(trees)
    node, is_inner = np.arange(count), np.arange(count) < inner
    all_of = lambda one: np.tile(one, trees).tolist()
    nodes = {"treeids": np.repeat(np.arange(trees), count).tolist(), "nodeids": all_of(node),
             "featureids": (rng.integers(0, features, trees * count) * np.tile(is_inner, trees)).tolist(),
             "truenodeids": all_of((2 * node + 1) * is_inner), "falsenodeids": all_of((2 * node + 2) * is_inner),
             "modes": all_of(np.where(is_inner, "BRANCH_LEQ", "LEAF")),
             "values": (normal(trees * count) * np.tile(is_inner, trees)).tolist()}
    targets = {"treeids": np.repeat(np.arange(trees), count - inner).tolist(), "nodeids": all_of(node[inner:]),
               "ids": [0] * (trees * (count - inner)), "weights": normal(trees * (count - inner)).tolist()}
    attributes = {"nodes_" + name: value for name, value in nodes.items()}
    attributes.update({"target_" + name: value for name, value in targets.items()})
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, **attributes)
    graph = helper.make_graph([node], "one op", [helper.make_tensor_value_info("x", F, [rows, features])],
                              [helper.make_tensor_value_info("y", F, [rows, 1])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 3)],
                             ir_version=8)


def reverse_sequence(steps, batch, width):
    return model_of("ReverseSequence", [("x", F, [steps, batch, width])], [("y", F, [steps, batch, width])],
                    {"n": np.full(batch, steps, np.int64)}, {"time_axis": 0, "batch_axis": 1})


def slice_of(dims, begin, end, step):
    kept = [len(range(*slice(b, e, s).indices(d))) for d, b, e, s in zip(dims, begin, end, step)]
    as_array = [np.array(part, np.int64) for part in (begin, end, range(len(dims)), step)]
    return model_of("Slice", [("x", F, dims)], [("y", F, kept)], dict(zip(("begin", "end", "axes", "step"), as_array)))


def split(dims, axis, parts):
    part = [*dims[:axis], dims[axis] // parts, *dims[axis + 1:]]
    return model_of("Split", [("x", F, dims)], [(f"y{i}", F, part) for i in range(parts)],
                    {"split": np.array([part[axis]] * parts, np.int64)}, {"axis": axis})


def pad(dims, width, mode):
    return model_of("Pad", [("x", F, dims)], [("y", F, [*dims[:-2], dims[-2] + 2 * width, dims[-1] + 2 * width])],
                    {"pads": np.array([0] * (len(dims) - 2) + [width, width] + [0] * (len(dims) - 2) + [width, width])},
                    {"mode": mode})


def expand(dims, result, kind="Expand"):
    amount = result if kind == "Expand" else [b // a for a, b in zip(dims, result)]
    return model_of(kind, [("x", F, dims)], [("y", F, result)], {"n": np.array(amount, np.int64)})


def space(kind, dims, block):
    n, c, h, w = dims
    result = ([n, c // block**2, h * block, w * block] if kind == "DepthToSpace"
              else [n, c * block**2, h // block, w // block])
    return model_of(kind, [("x", F, dims)], [("y", F, result)], attributes={"blocksize": block})


def col_to_image(channels, size, block):
    count = (size // block) ** 2
    return model_of("Col2Im", [("x", F, [1, channels * block**2, count])], [("y", F, [1, channels, size, size])],
                    {"i": np.array([size, size]), "b": np.array([block, block])}, {"strides": [block, block]}, opset=18)


def top_k(dims, k, axis=-1, kind_of=F):
    kept = list(dims)
    kept[axis] = k
    return model_of("TopK", [("x", kind_of, dims)], [("v", kind_of, kept), ("i", I, kept)],
                    {"k": np.array([k], np.int64)}, {"axis": axis})


def arg_max(dims, axis, kind_of=F):
    return model_of("ArgMax", [("x", kind_of, dims)], [("y", I, [n for i, n in enumerate(dims) if i != axis])],
                    attributes={"axis": axis, "keepdims": 0})


def cumulative_sum(dims, axis, kind_of=F):
    return model_of("CumSum", [("x", kind_of, dims)], [("y", kind_of, dims)], {"axis": np.int64(axis)})


def eye_like(rows, cols, kind_of=F):
    return model_of("EyeLike", [("x", kind_of, [rows, cols])], [("y", kind_of, [rows, cols])])


def max_unpool(channels, size, kernel=2):
    """Each window's largest number goes to the window's last element."""
    wide = size * kernel
    last = np.arange(1, size + 1) * kernel - 1
    index = np.arange(channels)[:, None, None] * wide * wide + last[:, None] * wide + last
    return model_of("MaxUnpool", [("x", F, [1, channels, size, size])], [("y", F, [1, channels, wide, wide])],
                    {"i": index[None].astype(np.int64)}, {"kernel_shape": [kernel] * 2, "strides": [kernel] * 2})


def affine_grid(*sizes):
    rank = len(sizes)
    return model_of("AffineGrid", [("t", F, [1, rank, rank + 1])], [("y", F, [1, *sizes, rank])],
                    {"s": np.array([1, 3, *sizes], np.int64)}, opset=20)


def one_hot(count, depth):
    return model_of("OneHot", [("i", I, [count])], [("y", F, [count, depth])],
                    {"depth": np.int64(depth), "values": np.array([0, 1], np.float32)})


def suppression(count, classes):
    corner = 100 * np.random.default_rng(count).random((1, count, 2), np.float32)
    boxes = np.concatenate([corner, corner + 10], 2)
    return model_of("NonMaxSuppression", [("s", F, [1, classes, count])], [("y", I, ["n", 3])],
                    {"b": boxes, "m": np.int64(100), "i": np.float32(0.5), "t": np.float32(0.1)}, None,
                    ["b", "s", "m", "i", "t"])


def einsum(equation, *dims):
    left, result = equation.split("->")
    size = {letter: n for part, shape in zip(left.split(","), dims) for letter, n in zip(part, shape)}
    return model_of("Einsum", [(f"x{i}", F, list(shape)) for i, shape in enumerate(dims)],
                    [("y", F, [size[letter] for letter in result])], attributes={"equation": equation})


def recurrent(kind, steps, batch, width, hidden, directions=1):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind] * hidden
    return model_of(kind, [("x", F, [steps, batch, width])], [("y", F, [steps, directions, batch, hidden])],
                    {"w": 0.1 * normal(directions, gates, width), "r": 0.1 * normal(directions, gates, hidden)},
                    {"hidden_size": hidden, "direction": "forward" if directions == 1 else "bidirectional",
                     **({"linear_before_reset": 1} if kind == "GRU" else {})})


def conv_computed(dims, filters, pad, groups=1):
    """A convolution whose filter is an input."""
    kept = [n + 2 * pad - k + 1 for n, k in zip(dims[2:], filters[2:])]
    return model_of("Conv", [("x", F, dims), ("w", F, filters)], [("y", F, [dims[0], filters[0], *kept])],
                    attributes={"pads": [pad] * 2 * len(kept), "group": groups})


def deform_conv(channels, size):
    return model_of("DeformConv", [("x", F, [1, channels, size, size]), ("o", F, [1, 18, size, size])],
                    [("y", F, [1, channels, size, size])], {"w": normal(channels, channels, 3, 3)},
                    {"pads": [1] * 4, "kernel_shape": [3, 3]}, ["x", "w", "o"], 19)


def pad_line(channels, size, width):
    return model_of("Pad", [("x", F, [channels, size])], [("y", F, [channels, size + 2 * width])],
                    {"pads": np.array([0, width, 0, width])}, {"mode": "reflect"})


def resize_last(height, width, channels, scale):
    """Channels lie last."""
    return model_of("Resize", [("x", F, [1, height, width, channels])],
                    [("y", F, [1, height * scale, width * scale, channels])],
                    {"scales": np.array([1, scale, scale, 1], np.float32)}, {"mode": "linear"}, ["x", "", "scales"])


def rotary(heads, tokens, width, rank=4, interleaved=0):
    dims = [1, heads, tokens, width] if rank == 4 else [1, tokens, heads * width]
    angles = normal(1, tokens, width // 2)
    return model_of("RotaryEmbedding", [("x", F, dims)], [("y", F, dims)], {"c": np.cos(angles), "s": np.sin(angles)},
                    {"interleaved": interleaved, **({"num_heads": heads} if rank == 3 else {})}, opset=23)


def rotary_written(heads, tokens, width):
    """As exporters write it: x cos + concat(-x[n:], x[:n]) sin."""
    half, dims, angle = width // 2, [1, heads, tokens, width], [1, 1, tokens, width]
    at = {"zero": [0], "half": [half], "width": [width], "last": [3]}
    nodes = [helper.make_node("Slice", ["x", "zero", "half", "last"], ["a"]),
             helper.make_node("Slice", ["x", "half", "width", "last"], ["b"]), helper.make_node("Neg", ["b"], ["n"]),
             helper.make_node("Concat", ["n", "a"], ["r"], axis=3), helper.make_node("Mul", ["x", "c"], ["u"]),
             helper.make_node("Mul", ["r", "s"], ["v"]), helper.make_node("Add", ["u", "v"], ["y"])]
    inputs = [helper.make_tensor_value_info(name, F, d) for name, d in (("x", dims), ("c", angle), ("s", angle))]
    graph = helper.make_graph(nodes, "rotary", inputs, [helper.make_tensor_value_info("y", F, dims)],
                              [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in at.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def compress(dims, axis):
    """Every second of the elements."""
    kept = [n if i != axis else n // 2 for i, n in enumerate(dims)]
    return model_of("Compress", [("x", F, dims)], [("y", F, kept)], {"m": np.arange(dims[axis]) % 2 == 1},
                    {"axis": axis})


def grid_sample_3d(channels, size, result):
    return model_of("GridSample", [("x", F, [1, channels] + [size] * 3)], [("y", F, [1, channels] + [result] * 3)],
                    {"g": np.tanh(normal(1, result, result, result, 3))}, opset=20)


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
    ("conv", "1 dim 3 64 16000", lambda: conv(64, 16000, 64, rank=1)),
    ("conv", "1 dim 3 80 to 384 3000", lambda: conv(80, 3000, 384, rank=1)),
    ("conv", "1 dim 3 256 100", lambda: conv(256, 100, 256, rank=1)),
    ("conv", "1 dim 3 dilation 4 128 2000", lambda: conv(128, 2000, 128, dilation=4, rank=1)),
    ("conv", "1x3 384 8x8", lambda: conv_line(384, 8, 8, 384)),
    ("conv", "3x1 128 64x128", lambda: conv_line(128, 64, 128, 128, True)),
    ("conv", "1x3 64 128x256", lambda: conv_line(64, 128, 256, 64)),
    ("conv", "5x5 48 to 64 35x35", lambda: conv(48, 35, 64, kernel=5)),
    ("conv", "5x5 64 to 192 27x27", lambda: conv(64, 27, 192, kernel=5)),
    ("conv", "1 dim 5 128 500", lambda: conv(128, 500, 128, kernel=5, rank=1)),
    ("conv", "5x1 128 17x17", lambda: conv_line(128, 17, 17, 128, True, 5)),
    ("conv", "transposed 2x2 256 to 128 28x28", lambda: conv_transpose(256, 28, 128)),
    ("conv", "transposed 4x4 stride 2 64 to 32 33x33", lambda: conv_transpose(64, 33, 32, 4, 2, 1)),
    ("depthwise", "3x3 96 112x112 stride 2", lambda: conv(96, 112, 96, groups=96, stride=2)),
    ("depthwise", "3x3 144 56x56", lambda: conv(144, 56, 144, groups=144)),
    ("depthwise", "3x3 960 7x7", lambda: conv(960, 7, 960, groups=960)),
    ("depthwise", "5x5 240 28x28", lambda: conv(240, 28, 240, kernel=5, groups=240)),
    ("reduce", "mean of 1x2048x7x7 over 2, 3", lambda: reduce("ReduceMean", [1, 2048, 7, 7], [2, 3])),
    ("reduce", "sum of 64x128x256 over 0, 2", lambda: reduce("ReduceSum", [64, 128, 256], [0, 2])),
    ("reduce", "max of 64x128x256 over 1", lambda: reduce("ReduceMax", [64, 128, 256], [1])),
    ("reduce", "sum of 1000000", lambda: reduce("ReduceSum", [1000000], [0])),
    ("reduce", "mean of 33x17x65x9 over 1, 3", lambda: reduce("ReduceMean", [33, 17, 65, 9], [1, 3])),
    ("reduce", "mean of 3136x96 over 1", lambda: reduce("ReduceMean", [3136, 96], [1])),
    ("reduce", "sum of 1000x1000 over 0", lambda: reduce("ReduceSum", [1000, 1000], [0])),
    ("reduce", "l2 of 1000x129 over 1", lambda: reduce("ReduceL2", [1000, 129], [1])),
    ("reduce", "log sum exp of 1000x129 over 1", lambda: reduce("ReduceLogSumExp", [1000, 129], [1])),
    ("reduce", "min of 1x64x57x57 over 1", lambda: reduce("ReduceMin", [1, 64, 57, 57], [1])),
    ("reduce", "argmax of 64x1000 over 1", lambda: arg_max([64, 1000], 1)),
    ("reduce", "argmax of 1x21x257x257 over 1", lambda: arg_max([1, 21, 257, 257], 1)),
    ("reduce", "cumulative sum of 64x10000", lambda: cumulative_sum([64, 10000], 1)),
    ("reduce", "cumulative sum of 1000x129 over 0", lambda: cumulative_sum([1000, 129], 0)),
    *[("softmax", f"{rows} x {n}", lambda rows=rows, n=n: softmax([rows, n]))
      for rows, n in ((100000, 2), (4096, 17), (1536, 128), (64, 1000), (16, 50257), (1, 1000000))],
    ("softmax", "axis 1 of 8x64x32x32", lambda: softmax([8, 64, 32, 32], 1)),
    ("norm", "layer 128x768", lambda: layer_norm([128, 768])),
    ("norm", "layer 3136x96", lambda: layer_norm([3136, 96])),
    ("norm", "batch 1x64x112x112", lambda: norm("BatchNormalization", [1, 64, 112, 112], 5)),
    ("norm", "instance 1x64x57x57", lambda: norm("InstanceNormalization", [1, 64, 57, 57])),
    ("norm", "group of 10, 1x320x32x32",
     lambda: norm("GroupNormalization", [1, 320, 32, 32], opset=21, num_groups=32)),
    ("norm", "l2 1000x257", lambda: unary("LpNormalization", [1000, 257], axis=1, p=2)),
    ("norm", "local response 1x96x27x27", lambda: unary("LRN", [1, 96, 27, 27], size=5)),
    ("move", "transpose 1x12x128x64 by 0, 2, 1, 3", lambda: transpose([1, 12, 128, 64], [0, 2, 1, 3])),
    ("move", "transpose 1024x1024", lambda: transpose([1024, 1024], [1, 0])),
    ("move", "transpose 1x64x112x112 to channels last", lambda: transpose([1, 64, 112, 112], [0, 2, 3, 1])),
    ("move", "transpose 33x17x65x9 by 3, 1, 0, 2", lambda: transpose([33, 17, 65, 9], [3, 1, 0, 2])),
    ("move", "gather 128 of 30522x768", lambda: gather_rows(30522, 768, 128)),
    ("move", "gather 100000 of 1000x16", lambda: gather_rows(1000, 16, 100000)),
    ("move", "gather 100 of 64x1000x33 along 1", lambda: gather([64, 1000, 33], 1, 100)),
    ("move", "gather 100 of 1000x1000 along 1", lambda: gather([1000, 1000], 1, 100)),
    ("move", "gather elements 100 of 1000x257 along 1", lambda: gather_elements([1000, 257], 1, 100)),
    ("move", "scatter elements 500 into 1000x129", lambda: scatter_elements(1000, 129, 500, "none")),
    ("move", "scatter elements, added, 500 into 1000x129", lambda: scatter_elements(1000, 129, 500, "add")),
    ("move", "scatter rows 200 into 1000x65", lambda: scatter_rows(1000, 65, 200, "none")),
    ("move", "scatter rows, added, 200 into 1000x65", lambda: scatter_rows(1000, 65, 200, "add")),
    ("move", "transpose 1x224x224x3 to channels first", lambda: transpose([1, 224, 224, 3], [0, 3, 1, 2])),
    ("move", "transpose 1x56x56x96 to channels first", lambda: transpose([1, 56, 56, 96], [0, 3, 1, 2])),
    ("move", "transpose 1x8x7x8x7x96 by 0, 1, 3, 2, 4, 5",
     lambda: transpose([1, 8, 7, 8, 7, 96], [0, 1, 3, 2, 4, 5])),
    ("move", "transpose 8x197x12x64 by 0, 2, 3, 1", lambda: transpose([8, 197, 12, 64], [0, 2, 3, 1])),
    ("move", "transpose 17x1023x5 by 2, 0, 1", lambda: transpose([17, 1023, 5], [2, 0, 1])),
    ("move", "concat 3 of 1000x33 along 1", lambda: concat([(1000, 33)] * 3, 1)),
    ("move", "split 128x2304 in 3", lambda: split([128, 2304], 1, 3)),
    ("move", "pad 1x64x56x56 by 1", lambda: pad([1, 64, 56, 56], 1, "constant")),
    ("move", "pad 1x3x224x224 by 3, reflected", lambda: pad([1, 3, 224, 224], 3, "reflect")),
    ("move", "expand 64x1x1000 to 64x17x1000", lambda: expand([64, 1, 1000], [64, 17, 1000])),
    ("move", "tile 33x65 by 8, 4", lambda: expand([33, 65], [264, 260], "Tile")),
    ("move", "middle of 1x64x58x58", lambda: slice_of([1, 64, 58, 58], [0, 0, 1, 1], [1, 64, 57, 57], [1, 1, 1, 1])),
    ("move", "depth to space 1x64x56x56", lambda: space("DepthToSpace", [1, 64, 56, 56], 2)),
    ("move", "space to depth 1x3x224x224", lambda: space("SpaceToDepth", [1, 3, 224, 224], 4)),
    ("move", "columns to image 1x64x56x56", lambda: col_to_image(64, 56, 4)),
    ("move", "one hot 1000x1000", lambda: one_hot(1000, 1000)),
    ("move", "concat 4 of 1x64x56x56", lambda: concat([(1, 64, 56, 56)] * 4, 1)),
    ("move", "every second of 1x64x112x112", lambda: slice_of([1, 64, 112, 112], [0, 0, 0, 0], [1, 64, 112, 112],
                                                              [1, 1, 2, 2])),
    ("elementwise", "relu 1000000", lambda: unary("Relu", [1000000])),
    ("elementwise", "sigmoid 1000000", lambda: unary("Sigmoid", [1000000])),
    ("elementwise", "erf 1000000", lambda: unary("Erf", [1000000])),
    ("elementwise", "gelu 1000000", lambda: unary("Gelu", [1000000], 20)),
    ("elementwise", "tanh 1000000", lambda: unary("Tanh", [1000000])),
    ("elementwise", "exp 1000000", lambda: unary("Exp", [1000000])),
    ("elementwise", "hard swish 1x96x57x57", lambda: unary("HardSwish", [1, 96, 57, 57])),
    ("elementwise", "prelu 1x64x112x112", lambda: with_constant("PRelu", [1, 64, 112, 112], normal(64, 1, 1))),
    ("elementwise", "power 2 of 1000000", lambda: with_constant("Pow", [1000000], np.float32(2))),
    ("elementwise", "divide 33x17x65 by 17x1", lambda: binary("Div", [33, 17, 65], [17, 1])),
    ("elementwise", "add 128x768 and 768", lambda: with_constant("Add", [128, 768], normal(768))),
    ("elementwise", "greater 1000000", lambda: binary("Greater", [1000000], [1000000], B)),
    ("elementwise", "where 1000000", lambda: where([1000000], [1000000])),
    ("elementwise", "where 1x1x128x128 of 1x12x128x128", lambda: where([1, 1, 128, 128], [1, 12, 128, 128])),
    ("elementwise", "cast 1000000 to i64", lambda: cast([1000000], F, I)),
    ("elementwise", "cast 1000000 from i64", lambda: cast([1000000], I, F)),
    ("elementwise", "cast 1000000 to f16", lambda: cast([1000000], F, TensorProto.FLOAT16)),
    ("elementwise", "quantize 1x64x112x112", lambda: quantize([1, 64, 112, 112])),
    ("elementwise", "dequantize 1x64x112x112", lambda: dequantize([1, 64, 112, 112])),
    ("elementwise", "add 1x256x56x56", lambda: binary("Add", [1, 256, 56, 56], [1, 256, 56, 56])),
    ("elementwise", "mul 1x256x56x56 by 1x256x1x1", lambda: binary("Mul", [1, 256, 56, 56], [1, 256, 1, 1])),
    ("pool", "max 3x3 stride 2 64 112x112", lambda: pool("MaxPool", 64, 112, 3, 2)),
    ("pool", "max 3x3 stride 2 padded 64 113x113", lambda: pool("MaxPool", 64, 113, 3, 2, 1)),
    ("pool", "max 3x3 stride 1 padded 192 28x28", lambda: pool("MaxPool", 192, 28, 3, 1, 1)),
    ("pool", "max 2x2 stride 2 64 56x56", lambda: pool("MaxPool", 64, 56, 2, 2)),
    ("pool", "max 5x5 stride 1 padded 256 20x20", lambda: pool("MaxPool", 256, 20, 5, 1, 2)),
    ("pool", "max 2x2x2 stride 2 16 32x32x32", lambda: pool("MaxPool", 16, 32, 2, 2, 0, 3)),
    ("pool", "average 2x2 stride 2 128 56x56", lambda: pool("AveragePool", 128, 56, 2, 2)),
    ("pool", "average 3x3 stride 1 padded 192 35x35", lambda: pool("AveragePool", 192, 35, 3, 1, 1)),
    ("pool", "average 3x3 stride 2 padded 64 57x57", lambda: pool("AveragePool", 64, 57, 3, 2, 1, count_include_pad=1)),
    ("pool", "global average 1x512x7x7", lambda: global_pool("GlobalAveragePool", [1, 512, 7, 7])),
    ("pool", "global max 1x1280x8x8", lambda: global_pool("GlobalMaxPool", [1, 1280, 8, 8])),
    ("image", "resize linear 64 56x56 by 2", lambda: resize(64, 56, 2, "linear")),
    ("image", "resize linear 3 224x224 by 0.5", lambda: resize(3, 224, 0.5, "linear")),
    ("image", "resize nearest 64 56x56 by 2", lambda: resize(64, 56, 2, "nearest", "asymmetric")),
    ("image", "resize nearest 128 13x13 by 2", lambda: resize(128, 13, 2, "nearest", "asymmetric")),
    ("image", "resize nearest 64 56x56 by 1.5", lambda: resize(64, 56, 1.5, "nearest", "asymmetric")),
    ("image", "resize cubic 16 56x56 by 2", lambda: resize(16, 56, 2, "cubic")),
    ("image", "grid sample 64 56x56", lambda: grid_sample(64, 56, 56)),
    ("image", "unpool 2x2 16 32x32", lambda: max_unpool(16, 32)),
    ("image", "affine grid 64x64", lambda: affine_grid(64, 64)),
    ("image", "affine grid 16x32x32", lambda: affine_grid(16, 32, 32)),
    ("other", "topk 10 of 64x1000", lambda: top_k([64, 1000], 10)),
    ("other", "topk 5 of 1x1000", lambda: top_k([1, 1000], 5)),
    ("other", "topk 300 of 1x8400", lambda: top_k([1, 8400], 300)),
    ("other", "topk 1000 of 1x100000", lambda: top_k([1, 100000], 1000)),
    ("other", "topk 4 of 32x100x64 over 1", lambda: top_k([32, 100, 64], 4, 1)),
    ("other", "suppression 1000 boxes", lambda: suppression(1000, 1)),
    ("other", "suppression 400 boxes 20 classes", lambda: suppression(400, 20)),
    ("other", "einsum bhid,bhjd->bhij 1x12x128x64",
     lambda: einsum("bhid,bhjd->bhij", (1, 12, 128, 64), (1, 12, 128, 64))),
    ("other", "einsum bchw,oc->bohw 1x64x28x28", lambda: einsum("bchw,oc->bohw", (1, 64, 28, 28), (32, 64))),
    ("other", "einsum bmhwc,hkc->bmhwk 1x4x14x14x32",
     lambda: einsum("bmhwc,hkc->bmhwk", (1, 4, 14, 14, 32), (14, 14, 32))),
    ("other", "lstm 50 steps 128 to 128", lambda: recurrent("LSTM", 50, 1, 128, 128)),
    ("other", "lstm 32 steps, both ways, 8 of 96 to 65", lambda: recurrent("LSTM", 32, 8, 96, 65, 2)),
    ("other", "gru 50 steps 128 to 128", lambda: recurrent("GRU", 50, 1, 128, 128)),
    ("other", "rnn 50 steps 4 of 64 to 64", lambda: recurrent("RNN", 50, 4, 64, 64)),
    # other types
    ("types", "sum of i64 1000x129 over 1", lambda: reduce("ReduceSum", [1000, 129], [1], I)),
    ("types", "max of i32 1000x129 over 0", lambda: reduce("ReduceMax", [1000, 129], [0], I32)),
    ("types", "mean of f16 64x49x768 over 1", lambda: reduce("ReduceMean", [64, 49, 768], [1], H)),
    ("types", "layer norm of f16 128x768", lambda: layer_norm([128, 768], H)),
    ("types", "softmax of f16 1536x128", lambda: softmax([1536, 128], kind_of=H)),
    ("types", "relu of f16 1000000", lambda: unary("Relu", [1000000], kind_of=H)),
    ("types", "sigmoid of f16 1000000", lambda: unary("Sigmoid", [1000000], kind_of=H)),
    ("types", "add of f16 1000000", lambda: binary("Add", [1000000], [1000000], H, H)),
    ("types", "add of i64 100000", lambda: binary("Add", [100000], [100000], I, I)),
    ("types", "mul of i32 100000", lambda: binary("Mul", [100000], [100000], I32, I32)),
    ("types", "divide i64 100000 by 7", lambda: with_constant("Div", [100000], np.int64(7), I)),
    ("types", "i64 100000 modulo 7", lambda: with_constant("Mod", [100000], np.int64(7), I)),
    ("types", "equal of i64 100000", lambda: binary("Equal", [100000], [100000], B, I)),
    ("types", "i64 100000 less than 0", lambda: with_constant("Less", [100000], np.int64(0), I, B)),
    ("types", "and of 1000000", lambda: binary("And", [1000000], [1000000], B, B)),
    ("types", "not of 1000000", lambda: unary("Not", [1000000], kind_of=B)),
    ("types", "cast 1000000 from bool", lambda: cast([1000000], B, F)),
    ("types", "cast 1000000 to bool", lambda: cast([1000000], F, B)),
    ("types", "cast i64 100000 to i32", lambda: cast([100000], I, I32)),
    ("types", "cast 1000000 from u8", lambda: cast([1000000], U8, F)),
    ("types", "cast 1000000 from f16", lambda: cast([1000000], H, F)),
    ("types", "transpose u8 1x224x224x3 to channels first", lambda: transpose([1, 224, 224, 3], [0, 3, 1, 2], U8)),
    ("types", "transpose f16 1x12x128x64 by 0, 1, 3, 2", lambda: transpose([1, 12, 128, 64], [0, 1, 3, 2], H)),
    ("types", "transpose i64 1000x129", lambda: transpose([1000, 129], [1, 0], I)),
    ("types", "cumulative sum of i64 64x1000", lambda: cumulative_sum([64, 1000], 1, I)),
    ("types", "cumulative sum of f64 64x1000 over 0", lambda: cumulative_sum([64, 1000], 0, D)),
    ("types", "argmax of i64 64x1000 over 1", lambda: arg_max([64, 1000], 1, I)),
    ("types", "argmax of u8 64x1000 over 0", lambda: arg_max([64, 1000], 0, U8)),
    ("types", "scatter rows, multiplied, 400 into 1000x64", lambda: scatter_rows(1000, 64, 400, "mul")),
    ("types", "scatter rows of i32, added, 400 into 1000x64", lambda: scatter_rows(1000, 64, 400, "add", I32)),
    ("types", "scatter rows of u8, multiplied, 400 into 1000x64", lambda: scatter_rows(1000, 64, 400, "mul", U8)),
    ("types", "products of 8 bits 128x768x768", lambda: matmul_integer(128, 768, 768)),
    ("types", "products of 8 bits, weights of 7, 128x768x768", lambda: matmul_integer(128, 768, 768, 64)),
    ("types", "dequantize 768x768 by row", lambda: dequantize_axis(768, 768)),
    ("types", "dynamic quantize 128x768", lambda: dynamic_quantize([128, 768])),
    # more functions
    *[("function", f"{name} 1000000", lambda kind=kind, more=more: unary(kind, [1000000], 18, **more))
      for name, kind, more in (("mish", "Mish", {}), ("softplus", "Softplus", {}), ("softsign", "Softsign", {}),
                               ("elu", "Elu", {}), ("selu", "Selu", {}), ("celu", "Celu", {}),
                               ("leaky relu", "LeakyRelu", {}), ("hard sigmoid", "HardSigmoid", {}),
                               ("thresholded relu", "ThresholdedRelu", {}), ("sin", "Sin", {}),
                               ("cos", "Cos", {}), ("atan", "Atan", {}), ("reciprocal", "Reciprocal", {}),
                               ("floor", "Floor", {}), ("round", "Round", {}), ("sign", "Sign", {}),
                               ("negative", "Neg", {}), ("shrink", "Shrink", {}))],
    ("function", "power 3 of 1000000", lambda: with_constant("Pow", [1000000], np.float32(3))),
    ("function", "maximum 1x256x56x56 and 1", lambda: with_constant("Max", [1, 256, 56, 56], np.float32(0.5))),
    ("function", "divide 1000000", lambda: binary("Div", [1000000], [1000000])),
    ("function", "add 64x1x128 and 1x64x128", lambda: binary("Add", [64, 1, 128], [1, 64, 128])),
    ("function", "add 1x64x56x56 and 1x64x1x1", lambda: binary("Add", [1, 64, 56, 56], [1, 64, 1, 1])),
    # more of the kinds above
    ("reduce", "product of 64x1000 over 1", lambda: reduce("ReduceProd", [64, 1000], [1])),
    ("reduce", "mean of 8x197x768 over 1", lambda: reduce("ReduceMean", [8, 197, 768], [1])),
    ("reduce", "argmin of 1000x129 over 0", lambda: model_of(
        "ArgMin", [("x", F, [1000, 129])], [("y", I, [1, 129])], attributes={"axis": 0})),
    ("softmax", "logarithm of 64 x 1000", lambda: softmax([64, 1000], kind="LogSoftmax")),
    ("softmax", "hardmax of 64 x 1000", lambda: softmax([64, 1000], kind="Hardmax")),
    ("softmax", "axis 1 of 1x21x129x129", lambda: softmax([1, 21, 129, 129], 1)),
    ("norm", "l1 of 1x64x56x56 over 1", lambda: unary("LpNormalization", [1, 64, 56, 56], axis=1, p=1)),
    ("norm", "instance 1x32x16x16x16", lambda: norm("InstanceNormalization", [1, 32, 16, 16, 16])),
    ("norm", "mean and variance 1x64x56x56",
     lambda: unary("MeanVarianceNormalization", [1, 64, 56, 56], axes=[0, 2, 3])),
    ("move", "gather tuples 10000 of 100x100x16", lambda: gather_nd([100, 100, 16], 10000, 2)),
    ("move", "gather single elements 100000", lambda: gather_nd([100, 1000], 100000, 2)),
    ("move", "pad 1x64x56x56 by 2, edge", lambda: pad([1, 64, 56, 56], 2, "edge")),
    ("move", "backwards 64x1000", lambda: slice_of([64, 1000], [0, -1], [64, -2000], [1, -1])),
    ("move", "every second column of 64x10000", lambda: slice_of([64, 10000], [0, 0], [64, 10000], [1, 2])),
    ("move", "split 1x64x56x56 in 4", lambda: split([1, 64, 56, 56], 1, 4)),
    ("move", "split 1000x6 in 6", lambda: split([1000, 6], 1, 6)),
    ("move", "concat 2 of 10000x1 along 1", lambda: concat([(10000, 1)] * 2, 1)),
    ("move", "transpose 2x8x16x7x7x32 by 0, 1, 3, 5, 2, 4",
     lambda: transpose([2, 8, 16, 7, 7, 32], [0, 1, 3, 5, 2, 4])),
    ("move", "channel shuffle 1x2x58x28x28", lambda: transpose([1, 2, 58, 28, 28], [0, 2, 1, 3, 4])),
    ("move", "triangle of 12x128x128", lambda: triangle([12, 128, 128], 0)),
    ("move", "reverse sequence 50x8x256", lambda: reverse_sequence(50, 8, 256)),
    ("conv", "transposed 1 dim 16 stride 8 128 to 64 200", lambda: conv_transpose(128, 200, 64, 16, 8, 4, 1)),
    ("conv", "transposed 3 dims 2 32 to 16 16", lambda: conv_transpose(32, 16, 16, 2, 2, 0, 3)),
    ("conv", "transposed by channel 4x4 stride 2 64 28x28", lambda: conv_transpose(64, 28, 64, 4, 2, 1, 2, 64)),
    ("depthwise", "1 dim 31 256 500", lambda: conv(256, 500, 256, kernel=31, groups=256, rank=1)),
    ("depthwise", "7x7 96 56x56", lambda: conv(96, 56, 96, kernel=7, groups=96)),
    ("depthwise", "3x3x3 32 16", lambda: conv(32, 16, 32, groups=32, rank=3)),
    ("depthwise", "3x3 dilation 4 256 33x33", lambda: conv(256, 33, 256, groups=256, dilation=4)),
    ("pool", "max 13x13 stride 1 padded 512 13x13", lambda: pool("MaxPool", 512, 13, 13, 1, 6)),
    ("pool", "max 3 stride 2 64 10000", lambda: pool("MaxPool", 64, 10000, 3, 2, 1, 1)),
    ("pool", "max with places 2x2 stride 2 64 56x56", lambda: pool_with_places(64, 56, 2, 2)),
    ("pool", "average 7x7 stride 7 512 14x14", lambda: pool("AveragePool", 512, 14, 7, 7)),
    ("pool", "average 5 stride 1 padded 64 1000", lambda: pool("AveragePool", 64, 1000, 5, 1, 2, 1)),
    ("pool", "l2 3x3 stride 2 64 57x57", lambda: pool("LpPool", 64, 57, 3, 2)),
    ("pool", "global average 1x64x112x112", lambda: global_pool("GlobalAveragePool", [1, 64, 112, 112])),
    ("image", "resize linear 64 28x28 by 2, aligned", lambda: resize(64, 28, 2, "linear", "align_corners")),
    ("image", "resize linear 21 65x65 by 4", lambda: resize(21, 65, 4, "linear", "align_corners")),
    ("image", "resize linear 3 dims 16 16 by 2", lambda: resize(16, 16, 2, "linear", rank=3)),
    ("image", "resize nearest 1 dim 64 1000 by 2", lambda: resize(64, 1000, 2, "nearest", "asymmetric", rank=1)),
    ("image", "resize linear 1 dim 64 1000 by 2", lambda: resize(64, 1000, 2, "linear", rank=1)),
    ("image", "resize nearest 3 dims 16 16 by 2", lambda: resize(16, 16, 2, "nearest", "asymmetric", rank=3)),
    ("image", "resize nearest 32 28x28 by 4", lambda: resize(32, 28, 4, "nearest", "asymmetric")),
    ("image", "resize cubic 3 224x224 by 0.5, antialias", lambda: resize(3, 224, 0.5, "cubic", opset=18, antialias=1)),
    ("image", "resize linear 3 224x224 by 0.5, antialias",
     lambda: resize(3, 224, 0.5, "linear", opset=18, antialias=1)),
    ("image", "grid sample nearest 64 56x56", lambda: grid_sample(64, 56, 56, mode="nearest")),
    ("image", "grid sample cubic 16 56x56, border",
     lambda: grid_sample(16, 56, 56, mode="bicubic", padding_mode="border")),
    ("image", "roi align 100 boxes 7x7 256 50x50", lambda: roi_align(256, 50, 100, 7)),
    ("other", "sort 64x1000", lambda: top_k([64, 1000], 1000)),
    ("other", "non zero 64x1000", lambda: counted("NonZero", [64, 1000], B)),
    ("other", "unique 10000", lambda: counted("Unique", [10000], I)),
    ("other", "einsum i,j->ij 256 512", lambda: einsum("i,j->ij", (256,), (512,))),
    ("other", "einsum bij,bjk->bik 12x128x128x64", lambda: einsum("bij,bjk->bik", (12, 128, 128), (12, 128, 64))),
    ("other", "einsum bnd,nd->bn 8x197x64", lambda: einsum("bnd,nd->bn", (8, 197, 64), (197, 64))),
    ("other", "einsum bhnd,bhne->bhde 1x8x196x32",
     lambda: einsum("bhnd,bhne->bhde", (1, 8, 196, 32), (1, 8, 196, 32))),
    ("other", "einsum bqnc,bnchw->bqnhw 1x100x8x32x14x14",
     lambda: einsum("bqnc,bnchw->bqnhw", (1, 100, 8, 32), (1, 8, 32, 14, 14))),
    ("other", "einsum nctv,vw->nctw 1x64x100x25", lambda: einsum("nctv,vw->nctw", (1, 64, 100, 25), (25, 25))),
    ("other", "100 trees of depth 6, 20 features, 1 row", lambda: forest(1, 100, 6, 20)),
    ("other", "100 trees of depth 6, 20 features, 100 rows", lambda: forest(100, 100, 6, 20)),
    ("other", "100 trees of depth 6, 20 features, 10000 rows", lambda: forest(10000, 100, 6, 20)),
    ("other", "500 trees of depth 8, 100 features, 1000 rows", lambda: forest(1000, 500, 8, 100)),
    ("other", "lstm 100 steps 16 of 64 to 64", lambda: recurrent("LSTM", 100, 16, 64, 64)),
    ("other", "gru both ways 64 steps 256 to 128", lambda: recurrent("GRU", 64, 1, 256, 128, 2)),
    # sizes that no list above has
    ("fresh", "1 dim 3 80 to 512 3000", lambda: conv(80, 3000, 512, kernel=3, rank=1)),
    ("fresh", "groups of 4, 3x3 128 56x56", lambda: conv(128, 56, 128, groups=32)),
    ("fresh", "depthwise 5x5 stride 2 240 28x28", lambda: conv(240, 28, 240, kernel=5, groups=240, stride=2)),
    ("fresh", "1x1 2048 to 512 7x7", lambda: conv(2048, 7, 512, kernel=1)),
    ("fresh", "64x2048x512", lambda: matmul(64, 2048, 512)),
    ("fresh", "31x3072x770", lambda: matmul(31, 3072, 770)),
    ("fresh", "product of f16 64x768x768", lambda: matmul_half(64, 768, 768)),
    ("types", "topk 5 of i32 64x1000", lambda: top_k([64, 1000], 5, kind_of=I32)),
    ("types", "topk 300 of i64 1x8400", lambda: top_k([1, 8400], 300, kind_of=I)),
    ("types", "topk 100 of f64 4x30000", lambda: top_k([4, 30000], 100, kind_of=D)),
    ("types", "topk 4 of i64 32x100x64 over 1", lambda: top_k([32, 100, 64], 4, 1, I)),
    ("types", "sum of f64 64x1000 over 1", lambda: reduce("ReduceSum", [64, 1000], [1], D)),
    ("types", "max of f64 16x49x96 over 1", lambda: reduce("ReduceMax", [16, 49, 96], [1], D)),
    ("types", "max of i32 16x49x96 over 0, 2", lambda: reduce("ReduceMax", [16, 49, 96], [0, 2], I32)),
    ("types", "mean of i32 64x1000 over 0", lambda: reduce("ReduceMean", [64, 1000], [0], I32)),
    ("types", "argmax of f64 64x1000 over 0", lambda: arg_max([64, 1000], 0, D)),
    ("types", "cumulative sum of i64 64x1000 over 0", lambda: cumulative_sum([64, 1000], 0, I)),
    ("types", "cast 100000 from f64 to f16", lambda: cast([100000], D, H)),
    ("types", "identity matrix of i64 512x512", lambda: eye_like(512, 512, I)),
    ("types", "product of f64 128x128x128", lambda: matmul_wide(D, np.float64, 128, 128, 128)),
    ("types", "product of i32 128x128x128", lambda: matmul_wide(I32, np.int32, 128, 128, 128)),
    ("types", "product of i64 1x512x512", lambda: matmul_wide(I, np.int64, 1, 512, 512)),
    ("fresh", "layer norm 3000x80", lambda: layer_norm([3000, 80])),
    ("fresh", "group of 8, 2x64x31x33",
     lambda: norm("GroupNormalization", [2, 64, 31, 33], opset=21, num_groups=8)),
    ("fresh", "softmax axis 1 of 2x19x65x63", lambda: softmax([2, 19, 65, 63], 1)),
    ("fresh", "mean of 7x1500x384 over 1", lambda: reduce("ReduceMean", [7, 1500, 384], [1])),
    ("fresh", "max of 3x33x31x65 over 1, 2", lambda: reduce("ReduceMax", [3, 33, 31, 65], [1, 2])),
    ("fresh", "argmax of 12x77x513 over 1", lambda: arg_max([12, 77, 513], 1)),
    ("fresh", "argmax of 128x50257 over 1", lambda: arg_max([128, 50257], 1)),
    ("fresh", "gather 512 of 50000x768", lambda: gather_rows(50000, 768, 512)),
    ("fresh", "where of 12x128x128 by 1x128x128", lambda: where([1, 128, 128], [12, 128, 128])),
    ("fresh", "equal of f32 64x1x257 and 1x65x257", lambda: binary("Equal", [64, 1, 257], [1, 65, 257], B)),
    ("fresh", "transpose 8x77x12x64 by 0, 2, 1, 3", lambda: transpose([8, 77, 12, 64], [0, 2, 1, 3])),
    ("fresh", "concat 2 of 3136x96 along 1", lambda: concat([(3136, 96)] * 2, 1)),
    ("fresh", "concat 2 of 1x12x128x64 along 3", lambda: concat([(1, 12, 128, 64)] * 2, 3)),
    ("fresh", "pad 1x32x63x65 by 3, reflected", lambda: pad([1, 32, 63, 65], 3, "reflect")),
    ("fresh", "average 3x3 stride 2 padded 96 55x55", lambda: pool("AveragePool", 96, 55, 3, 2, 1)),
    ("fresh", "einsum bqhd,bkhd->bhqk 2x100x8x32",
     lambda: einsum("bqhd,bkhd->bhqk", (2, 100, 8, 32), (2, 100, 8, 32))),
    ("fresh", "lstm 100 steps 1 of 256 to 256", lambda: recurrent("LSTM", 100, 1, 256, 256)),
    ("fresh", "gru 100 steps 8 of 128 to 256", lambda: recurrent("GRU", 100, 8, 128, 256)),
    ("fresh", "lstm 1 step 512 to 512", lambda: recurrent("LSTM", 1, 1, 512, 512)),
    ("fresh", "lstm 50 steps 8 of 512 to 512", lambda: recurrent("LSTM", 50, 8, 512, 512)),
    ("fresh", "lstm 40 steps 64 of 256 to 256", lambda: recurrent("LSTM", 40, 64, 256, 256)),
    ("fresh", "lstm 30 steps 1024 to 1024", lambda: recurrent("LSTM", 30, 1, 1024, 1024)),
    ("fresh", "gru 1 step 32 of 300 to 300", lambda: recurrent("GRU", 1, 32, 300, 300)),
    ("fresh", "clip 1x24x112x112", lambda: model_of(
        "Clip", [("x", F, [1, 24, 112, 112])], [("y", F, [1, 24, 112, 112])],
        {"a": np.float32(0), "b": np.float32(6)})),
    ("fresh", "multiply 1x480x14x14 and 1x480x1x1", lambda: binary("Mul", [1, 480, 14, 14], [1, 480, 1, 1])),
    ("fresh", "topk 5 of 8x1000x16 over 1", lambda: top_k([8, 1000, 16], 5, 1)),
    ("fresh", "topk 50 of 1x50257", lambda: top_k([1, 50257], 50)),
    ("fresh", "cumulative sum of 8x128x256 over 1", lambda: cumulative_sum([8, 128, 256], 1)),
    # kinds that were slow above, of other sizes
    ("again", "gather single elements 20000 of 30x40x50", lambda: gather_nd([30, 40, 50], 20000, 3)),
    ("again", "gather single elements 50000 of 50000", lambda: gather_nd([50000], 50000, 1)),
    ("again", "gather tuples 20000 of 1000x4", lambda: gather_nd([1000, 4], 20000, 1)),
    ("again", "grid sample 3 224x224", lambda: grid_sample(3, 224, 224)),
    ("again", "grid sample 256 14x14, border", lambda: grid_sample(256, 14, 14, padding_mode="border")),
    ("again", "grid sample 32 100x100 to 30x30", lambda: grid_sample(32, 100, 30)),
    ("again", "suppression 5000 boxes", lambda: suppression(5000, 1)),
    ("again", "suppression 200 boxes 80 classes", lambda: suppression(200, 80)),
    ("again", "batch 1x256x28x28", lambda: norm("BatchNormalization", [1, 256, 28, 28], 5)),
    ("again", "batch 8x512x7x7", lambda: norm("BatchNormalization", [8, 512, 7, 7], 5)),
    ("again", "dequantize 3072x768 by row", lambda: dequantize_axis(3072, 768)),
    ("again", "dequantize 1000x65 by row", lambda: dequantize_axis(1000, 65)),
    ("again", "resize nearest 256 20x20 by 2", lambda: resize(256, 20, 2, "nearest", "asymmetric")),
    ("again", "resize nearest 512 7x7 by 2", lambda: resize(512, 7, 2, "nearest", "asymmetric")),
    ("again", "cumulative sum of 300x1000 over 0", lambda: cumulative_sum([300, 1000], 0)),
    ("again", "cumulative sum of 32x64x30 over 1", lambda: cumulative_sum([32, 64, 30], 1)),
    ("again", "depthwise 3x3 576 14x14", lambda: conv(576, 14, 576, groups=576)),
    ("again", "depthwise 5x5 672 7x7", lambda: conv(672, 7, 672, kernel=5, groups=672)),
    ("again", "depthwise 3x3 stride 2 384 14x14", lambda: conv(384, 14, 384, groups=384, stride=2)),
    ("again", "transposed 3 dims 2 64 to 32 8", lambda: conv_transpose(64, 8, 32, 2, 2, 0, 3)),
    ("again", "1x1 960 to 320 7x7", lambda: conv(960, 7, 320, kernel=1)),
    # kinds that no list above has
    ("forms", "1 dim 10 stride 5 1 to 512 16000", lambda: conv(1, 16000, 512, kernel=10, stride=5, pad=0, rank=1)),
    ("forms", "computed filter 3x3 32 28x28", lambda: conv_computed([1, 32, 28, 28], [32, 32, 3, 3], 1)),
    ("forms", "computed filter 7x7 by channel 64 31x31", lambda: conv_computed([1, 64, 31, 31], [64, 1, 7, 7], 0, 64)),
    ("forms", "deformable 3x3 16 17x17", lambda: deform_conv(16, 17)),
    ("forms", "12 of 1x64x333, two inputs", lambda: matmul(1, 64, 333, False, (12,))),
    ("forms", "500x333x1, two inputs", lambda: matmul(500, 333, 1, False)),
    ("forms", "2000x768x1", lambda: matmul(2000, 768, 1)),
    ("forms", "pad 80x1001 by 200, reflected", lambda: pad_line(80, 1001, 200)),
    ("forms", "resize linear 33x31x16 by 2, channels last", lambda: resize_last(33, 31, 16, 2)),
    ("forms", "min of 10000x3 over 1", lambda: reduce("ReduceMin", [10000, 3], [1])),
    ("forms", "argmax of 10000x4 over 1", lambda: arg_max([10000, 4], 1)),
    ("forms", "concat 7 of 500x33 along 1", lambda: concat([(500, 33)] * 7, 1)),
    ("forms", "or of 333x1 and 1x333", lambda: binary("Or", [333, 1], [1, 333], B, B)),
    ("forms", "clip i64 100000", lambda: model_of(
        "Clip", [("x", I, [100000])], [("y", I, [100000])], {"a": np.int64(0), "b": np.int64(10)})),
    ("forms", "groups of 12, 1x1 48 to 240 56x56", lambda: conv(48, 56, 240, kernel=1, groups=4)),
    ("forms", "groups of 22, 1x1 66 31x31", lambda: conv(66, 31, 66, kernel=1, groups=3)),
    ("forms", "1x1 33 to 65 57x57", lambda: conv(33, 57, 65, kernel=1)),
    ("forms", "1x1 17 to 19 100x100", lambda: conv(17, 100, 19, kernel=1)),
    ("forms", "3x3 2 to 1 128x128", lambda: conv(2, 128, 1)),
    ("forms", "3x3 3 to 1 128x128", lambda: conv(3, 128, 1)),
    ("forms", "4x4 stride 4 3 to 96 224x224", lambda: conv(3, 224, 96, kernel=4, stride=4, pad=0)),
    ("forms", "transposed 4x4 stride 2 64 to 3 20x20", lambda: conv_transpose(64, 20, 3, 4, 2, 1)),
    ("forms", "transposed 2x2 stride 2 33 to 17 28x28", lambda: conv_transpose(33, 28, 17)),
    ("forms", "average 1x25 64 50x25", lambda: pool_line("AveragePool", 64, 50, 25, 25)),
    ("forms", "max 1x4 stride 4 64 100x20", lambda: pool_line("MaxPool", 64, 100, 20, 4)),
    ("forms", "average 9 stride 3 33 1000", lambda: pool("AveragePool", 33, 1000, 9, 3, 0, 1)),
    ("forms", "sum of 20000x3 over 1", lambda: reduce("ReduceSum", [20000, 3], [1])),
    ("forms", "l2 of 20000x3 over 1", lambda: reduce("ReduceL2", [20000, 3], [1])),
    ("forms", "max of 100x100x5 over 1", lambda: reduce("ReduceMax", [100, 100, 5], [1])),
    ("forms", "sum of i64 10000x4 over 1", lambda: reduce("ReduceSum", [10000, 4], [1], I)),
    ("forms", "max of i64 64x100x7 over 1", lambda: reduce("ReduceMax", [64, 100, 7], [1], I)),
    ("forms", "resize linear 32 64x64 by 0.37", lambda: resize(32, 64, 0.37, "linear")),
    # kinds that were slow, again
    ("seldom", "transposed 4x4 stride 2 100 to 3 32x32", lambda: conv_transpose(100, 32, 3, 4, 2, 1)),
    ("seldom", "transposed 4x4 stride 2 21 32x32", lambda: conv_transpose(21, 32, 21, 4, 2, 1)),
    ("seldom", "transposed 16x16 stride 8 21 32x32", lambda: conv_transpose(21, 32, 21, 16, 8, 4)),
    ("seldom", "transposed 2x2 stride 2 64 to 1 56x56", lambda: conv_transpose(64, 56, 1)),
    ("seldom", "transposed 3x3 stride 1 33 to 17 28x28", lambda: conv_transpose(33, 28, 17, 3, 1, 1)),
    ("seldom", "transposed 4x4 100 to 512 1x1", lambda: conv_transpose(100, 1, 512, 4, 1)),
    ("seldom", "transposed 1 dim 16 stride 8 33 to 17 500", lambda: conv_transpose(33, 500, 17, 16, 8, 4, 1)),
    ("seldom", "transposed 3 dims 2 17 to 9 16", lambda: conv_transpose(17, 16, 9, 2, 2, 0, 3)),
    ("seldom", "rotary 32 heads 128x64", lambda: rotary(32, 128, 64)),
    ("seldom", "rotary 32 heads 1x128", lambda: rotary(32, 1, 128)),
    ("seldom", "rotary 12 heads 128x64, rank 3", lambda: rotary(12, 128, 64, 3)),
    ("seldom", "rotary 12 heads 128x64, interleaved", lambda: rotary(12, 128, 64, 4, 1)),
    ("seldom", "rotary 32 heads 128x64, as written by exporters", lambda: rotary_written(32, 128, 64)),
    ("seldom", "rotary 32 heads 1x128, as written by exporters", lambda: rotary_written(32, 1, 128)),
    ("seldom", "max 1x6 stride 6 64 50x42", lambda: pool_line("MaxPool", 64, 50, 42, 6)),
    ("seldom", "tile 64x56x56 by 4", lambda: expand([64, 56, 56], [256, 56, 56], "Tile")),
    ("seldom", "tile 1x8x1x256x64 by 4 over 2", lambda: expand([1, 8, 1, 256, 64], [1, 8, 4, 256, 64], "Tile")),
    ("seldom", "tile 100x256 by 8 over 1", lambda: expand([100, 256], [100, 2048], "Tile")),
    *[("seldom", f"{name} 1000000", lambda name=name: unary(name.title(), [1000000]))
      for name in ("tan", "sinh", "cosh", "asinh")],
    ("seldom", "fmod 1000000", lambda: binary("Mod", [1000000], [1000000], fmod=1)),
    ("seldom", "divide i32 100000 by 7", lambda: with_constant("Div", [100000], np.int32(7), I32)),
    ("seldom", "i32 100000 modulo 7", lambda: with_constant("Mod", [100000], np.int32(7), I32)),
    ("seldom", "add of i32 333x1 and 1x333", lambda: binary("Add", [333, 1], [1, 333], I32, I32)),
    ("seldom", "add of i64 333x1 and 1x333", lambda: binary("Add", [333, 1], [1, 333], I, I)),
    ("seldom", "less or equal of i32 333x1 and 1x333", lambda: binary("LessOrEqual", [333, 1], [1, 333], B, I32)),
    ("seldom", "equal of i64 128x1 and 1x128", lambda: binary("Equal", [128, 1], [1, 128], B, I)),
    *[("seldom", f"scatter elements, {kind}, 500 into 1000x129",
       lambda kind=kind: scatter_elements(1000, 129, 500, kind)) for kind in ("min", "max", "mul")],
    ("seldom", "grid sample 3 dims 8 20", lambda: grid_sample_3d(8, 20, 20)),
    ("seldom", "compress 1000x129 over 0", lambda: compress([1000, 129], 0)),
    ("seldom", "compress 64x1000 over 1", lambda: compress([64, 1000], 1)),
    ("seldom", "3x3 stride 3 3 to 16 100x100", lambda: conv(3, 100, 16, stride=3)),
    ("seldom", "4x4 stride 4 1 to 5 100x100", lambda: conv(1, 100, 5, kernel=4, stride=4, pad=0)),
    ("seldom", "depthwise 7x7 stride 2 96 56x56", lambda: conv(96, 56, 96, kernel=7, groups=96, stride=2)),
    ("seldom", "max of 1000x11 over 1", lambda: reduce("ReduceMax", [1000, 11], [1])),
    ("seldom", "product of 10000x9 over 1", lambda: reduce("ReduceProd", [10000, 9], [1])),
    ("seldom", "max 1x8 stride 8 64 50x40", lambda: pool_line("MaxPool", 64, 50, 40, 8)),
    ("seldom", "average 1x10 stride 10 64 50x40", lambda: pool_line("AveragePool", 64, 50, 40, 10)),
    ("seldom", "lstm 1 step 512 to 512", lambda: recurrent("LSTM", 1, 1, 512, 512)),
    ("seldom", "argmax 880x61 over 1", lambda: arg_max([880, 61], 1)),
    ("seldom", "argmax 832x7x14 over 1", lambda: arg_max([832, 7, 14], 1)),
    ("seldom", "cumulative sum 200000 over 0", lambda: cumulative_sum([200000], 0)),
    ("seldom", "cumulative sum 112x2x459 over 2", lambda: cumulative_sum([112, 2, 459], 2)),
    ("seldom", "softmax of f64 64 x 1000", lambda: softmax([64, 1000], kind_of=D)),
    # and once more
    ("rest", "topk 68 of 20x116x60 over 1", lambda: top_k([20, 116, 60], 68, 1)),
    ("rest", "topk 100 of 64x1000", lambda: top_k([64, 1000], 100)),
    ("rest", "topk 20 of 500x80", lambda: top_k([500, 80], 20)),
    ("rest", "topk 8 of 200x64", lambda: top_k([200, 64], 8)),
    ("rest", "sort 200x100x7 over 1", lambda: top_k([200, 100, 7], 100, 1)),
    ("rest", "topk 1 of 300x1x400 over 1", lambda: top_k([300, 1, 400], 1, 1)),
    ("rest", "mask 5000x1 of 5000x8", lambda: where([5000, 1], [5000, 8])),
    ("rest", "mask 300x1 of 300x300", lambda: where([300, 1], [300, 300])),
    ("rest", "divide 900x104 by 900x1", lambda: binary("Div", [900, 104], [900, 1])),
    ("rest", "divide 900x1 by 900x104", lambda: binary("Div", [900, 1], [900, 104])),
    ("rest", "subtract i64 300x1 and 300x300", lambda: binary("Sub", [300, 1], [300, 300], I, I)),
    ("rest", "greater i32 300x300 and 300x1", lambda: binary("Greater", [300, 300], [300, 1], B, I32)),
    ("rest", "transpose 24x9798", lambda: transpose([24, 9798], [1, 0])),
    ("rest", "resize cubic 256 7x7 by 2", lambda: resize(256, 7, 2, "cubic")),
    ("rest", "resize linear 128 15x15 by 2", lambda: resize(128, 15, 2, "linear")),
    ("rest", "average 3x3 stride 1 64 30x30", lambda: pool("AveragePool", 64, 30, 3, 1)),
    ("rest", "softmax of f64 100x50x70 over 1", lambda: softmax([100, 50, 70], 1, kind_of=D)),
    ("rest", "product of f64 128x256x128", lambda: matmul_wide(D, np.float64, 128, 256, 128)),
    ("rest", "mean of i32 100x1000 over 0", lambda: reduce("ReduceMean", [100, 1000], [0], I32)),
    ("rest", "1x1 stride 2 33 to 8 60x60", lambda: conv(33, 60, 8, kernel=1, stride=2, pad=0)),
    ("rest", "log softmax of f64 4096x7", lambda: softmax([4096, 7], 1, "LogSoftmax", D)),
    ("rest", "exp of f64 100000", lambda: unary("Exp", [100_000], kind_of=D)),
    ("rest", "grid sample 1 300x300", lambda: grid_sample(1, 300, 300)),
    ("rest", "grid sample 5 100x100 to 150x150", lambda: grid_sample(5, 100, 150)),
    ("rest", "place of the largest of 832x7x14 over 2", lambda: arg_max([832, 7, 14], 2)),
    ("rest", "place of the largest of i64 111x327x8 over 0", lambda: arg_max([111, 327, 8], 0, I)),
    ("rest", "3 largest of 94x120x28 over 2", lambda: top_k([94, 120, 28], 3, 2)),
    ("rest", "2 largest of i64 4096x16", lambda: top_k([4096, 16], 2, 1, I)),
    ("rest", "scatter elements, added, 13264 into 2708x64", lambda: scatter_elements(2708, 64, 13264, "add")),
    ("rest", "scatter rows, added, 20000 into 5000x64", lambda: scatter_rows(5000, 64, 20000, "add")),
    ("rest", "expand 22 to 576x20x22", lambda: expand([1, 1, 22], [576, 20, 22])),
]
