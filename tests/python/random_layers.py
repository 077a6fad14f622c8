# SPDX-License-Identifier: Apache-2.0
"""Random networks of every kind of layer, made by upstream's calls, with what NumPy says about their results. CASES has one
function for each kind: it adds a layer with random parameters to a RandomNetwork."""
import numpy as np
import numpy_layers as judge
import sinter.tensorrt as trt
from random_models import f8_value

TYPES = {"f4": trt.float32, "f2": trt.float16, "i4": trt.int32, "i8": trt.int64, "b1": trt.bool, "i1": trt.int8}
F4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


class RandomNetwork:
    """`feeds`: name -> array; `wanted`: name -> array, or a function that judges a result."""

    def __init__(self, seed, logger):
        self.rng = np.random.default_rng(seed)
        self.builder = trt.Builder(logger)
        self.net = self.builder.create_network(0)
        self.feeds, self.wanted, self.pool = {}, {}, []

    def pick(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def int(self, low, high):
        """From low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def dims(self, rank, low=1, high=5):
        return tuple(self.int(low, high) for _ in range(rank))

    def numbers(self, shape, low=-2.0, high=2.0):
        return self.rng.uniform(low, high, shape).astype("f4")

    def narrow(self, numbers):
        """Now and then the numbers in f16: a layer computes in the widest type of what it reads."""
        return numbers.astype("f2") if self.int(0, 3) == 0 else numbers

    def grid(self, shape, low=-8, high=8):
        """Multiples of 1/4: functions with steps are exact on them."""
        return (self.rng.integers(low * 4, high * 4 + 1, shape) / 4).astype("f4")

    def give(self, array, fixed=None):
        """An array as tensor: an input or a constant."""
        array = np.ascontiguousarray(array)
        dtype = TYPES[array.dtype.str[1:]]
        if fixed or fixed is None and self.int(0, 2) == 0:
            return self.net.add_constant(array.shape, array).get_output(0)
        name = f"x{len(self.feeds)}"
        self.feeds[name] = array
        return self.net.add_input(name, dtype, array.shape)

    def smooth(self, *shape, rank=None):
        """(tensor, f64 values) that may be the result of another layer."""
        fit = [p for p in self.pool if (p[1].shape == shape if shape else rank is None or p[1].ndim == rank)]
        if fit and self.int(0, 2):
            return fit[self.int(0, len(fit) - 1)]
        made = self.numbers(shape or self.dims(self.int(1, 4) if rank is None else rank))
        return self.give(made), made.astype("f8")

    def want(self, tensor, value, name=None):
        tensor.name = name or f"y{len(self.wanted)}"
        self.net.mark_output(tensor)
        self.wanted[tensor.name] = value
        if not callable(value):
            value = np.asarray(value)
            assert tuple(tensor.shape) == value.shape or -1 in tensor.shape, (tensor.name, tensor.shape, value.shape)
            if value.dtype.kind == "f" and 1 <= value.ndim <= 4 and 0 < value.size < 4000 and np.abs(value).max() < 8:
                self.pool.append((tensor, value.astype("f8")))

    def check(self, found):
        for name, value in self.wanted.items():
            got = found[name]
            if callable(value):
                assert value(got), name
            elif value.dtype.kind == "f":
                assert got.shape == value.shape, (name, got.shape, value.shape)
                off = np.abs(got - value).max() if value.size else 0
                assert np.allclose(got, value, rtol=1e-3, atol=1e-3 * max(1, np.abs(value).max() if value.size else 0)), (name, off)
            else:
                assert got.shape == value.shape and np.array_equal(got, value), (name, got, value)


def more_batch(r):
    """Axes in front of the batch: a window does not see them."""
    return r.dims(r.pick(0, 0, 0, 1, 2), 1, 2)


def convolution(r, transposed=False):
    if not transposed and r.int(0, 2) == 0:
        fully_connected(r)
        return
    spatial, groups = r.pick(1, 2, 2, 3), r.pick(1, 1, 2)
    ins, outs = r.int(1, 3) * groups, r.int(1, 3) * groups
    more = more_batch(r)
    x, v = r.smooth(*more, r.int(1, 2), ins, *r.dims(spatial, 3, 6))
    v = v.reshape((-1,) + v.shape[len(more) + 1:])
    size, stride, dilation = r.dims(spatial, 1, 3), r.dims(spatial, 1, 2), r.dims(spatial, 1, 2)
    pre, post = r.dims(spatial, 0, 1), r.dims(spatial, 0, 1)
    if not transposed:
        dilation = tuple(1 if 2 * (k - 1) + 1 > d else s for k, d, s in zip(size, v.shape[2:], dilation))
    weights = r.narrow(r.numbers((ins if transposed else outs, (outs if transposed else ins) // groups) + size, -1, 1))
    bias = r.pick(None, r.narrow(r.numbers(outs)))
    add = r.net.add_deconvolution_nd if transposed else r.net.add_convolution_nd
    if r.int(0, 1):
        layer = add(x, outs, size, weights, bias)
    else:                               # the kernel as a tensor
        layer = add(x, outs, size, trt.Weights(), None)
        layer.set_input(1, r.give(weights))
        if bias is not None:
            layer.set_input(2, r.give(bias))
    layer.stride_nd, layer.dilation_nd, layer.num_groups = stride, dilation, groups
    layer.pre_padding, layer.post_padding = pre, post
    arguments = (v, weights.astype("f8"), np.zeros(outs) if bias is None else bias, stride, dilation, pre, post, groups)
    mode = r.pick("EXPLICIT_ROUND_DOWN", "EXPLICIT_ROUND_UP", "CAFFE_ROUND_DOWN", "CAFFE_ROUND_UP", *(() if transposed else ("SAME_UPPER", "SAME_LOWER")))
    layer.padding_mode = trt.PaddingMode[mode]
    if transposed:
        post = pre if mode.startswith("CAFFE") else post            # and either rounding is the same
        arguments = arguments[:6] + (post, groups)
        value = judge.deconvolution(*arguments)
        if 0 in value.shape or min(d - p - q for d, p, q in zip(v.shape[2:], pre, post)) < 1:
            layer.pre_padding = layer.post_padding = (0,) * spatial
            value = judge.deconvolution(*arguments[:5], (0,) * spatial, (0,) * spatial, groups)
    else:
        value = judge.convolution(*arguments, mode)
    r.want(layer.get_output(0), value.reshape(tuple(x.shape)[:len(more) + 1] + value.shape[1:]))


def fully_connected(r):
    x, v = r.smooth(r.int(1, 2), *r.dims(3, 1, 4))
    weights, bias = r.numbers((3, v[0].size), -1, 1), r.pick(None, r.numbers(3))
    layer = r.net.add_fully_connected(x, 3, weights, bias)
    assert layer.type == trt.LayerType.FULLY_CONNECTED and isinstance(layer, trt.IFullyConnectedLayer) and layer.num_output_channels == 3
    assert layer.kernel.size == weights.size and r.net[len(r.net) - 1].name == layer.name
    value = v.reshape(len(v), -1) @ weights.T.astype("f8") + (0 if bias is None else bias)
    r.want(layer.get_output(0), value.reshape(-1, 3, 1, 1))


def pooling(r):
    spatial = r.pick(1, 2, 2, 3)
    more = more_batch(r)
    x, v = r.smooth(*more, r.int(1, 2), r.int(1, 3), *r.dims(spatial, 3, 6))
    v = v.reshape((-1,) + v.shape[len(more) + 1:])
    size, stride, pre = r.dims(spatial, 2, 3), r.dims(spatial, 1, 2), r.dims(spatial, 0, 1)
    kind, excludes = r.pick("MAX", "AVERAGE", "MAX_AVERAGE_BLEND"), True
    mode = r.pick("EXPLICIT_ROUND_DOWN", "SAME_UPPER", "SAME_LOWER", "CAFFE_ROUND_DOWN", "CAFFE_ROUND_UP")
    layer = r.net.add_pooling_nd(x, trt.PoolingType[kind], size)
    if mode.endswith("ROUND_DOWN"):
        excludes = bool(r.int(0, 1))
    layer.stride_nd, layer.padding_nd, layer.padding_mode = stride, pre, trt.PaddingMode[mode]
    if mode.startswith("CAFFE"):
        layer.post_padding = r.dims(spatial, 0, 1)                  # is not looked at
    layer.average_count_excludes_padding, layer.blend_factor = excludes, 0.25
    value = judge.pooling(v, kind, size, stride, pre, pre, mode, excludes, 0.25)
    r.want(layer.get_output(0), value.reshape(tuple(x.shape)[:len(more) + 1] + value.shape[1:]))


def activation(r):
    x, v = r.smooth()
    name = r.pick(*judge.ACTIVATIONS)
    layer = r.net.add_activation(x, trt.ActivationType[name])
    layer.alpha, layer.beta = a, b = (-0.5, 0.75) if name == "CLIP" else (0.25, 1.5)
    r.want(layer.get_output(0), judge.ACTIVATIONS[name](v, a, b))


def cast(r):
    v, to = r.grid(r.dims(2)), r.pick("i4", "i8", "b1", "f4")
    r.want(r.net.add_cast(r.give(v), TYPES[to]).get_output(0), v.astype(to))


def scale(r):
    x, v = r.smooth(*r.dims(4))
    mode, axis = r.pick("UNIFORM", "CHANNEL", "ELEMENTWISE"), r.int(0, 3)
    shape = {"UNIFORM": (), "CHANNEL": tuple(d if i == axis else 1 for i, d in enumerate(v.shape)), "ELEMENTWISE": v.shape[1:]}[mode]
    shift, factor = r.numbers(shape), r.numbers(shape)
    power = r.pick(None, np.full(shape, 2, "f4"))
    r.want(r.net.add_scale_nd(x, trt.ScaleMode[mode], shift, factor, power, axis).get_output(0),
           (v * factor + shift) ** (1 if power is None else 2))


def softmax(r):
    x, v = r.smooth()
    layer, axes = r.net.add_softmax(x), tuple(i for i in range(v.ndim) if r.int(0, 1))
    assert layer.axes == 1 << max(0, v.ndim - 3)
    if axes:
        layer.axes = sum(1 << i for i in axes)
    r.want(layer.get_output(0), judge.softmax(v, axes or max(0, v.ndim - 3)))


def concatenation(r):
    x, v = r.smooth()
    usual = max(0, v.ndim - 3)
    axis = r.pick(usual, r.int(0, v.ndim - 1))
    other = r.narrow(r.numbers(tuple(r.int(1, 3) if i == axis else d for i, d in enumerate(v.shape))))
    layer = r.net.add_concatenation([x, r.give(other), x])
    assert layer.axis == usual
    if axis != usual or r.int(0, 1):
        layer.axis = axis
    r.want(layer.get_output(0), np.concatenate([v, other, v], axis))


def elementwise(r):
    name = r.pick(*judge.ELEMENTWISE)
    shape = r.dims(r.int(1, 4))
    kind = "bool" if name in ("AND", "OR", "XOR") else "int" if r.int(0, 2) == 0 and name not in ("DIV", "POW") else "float"
    if kind == "bool":
        a, b = r.numbers(shape) > 0, r.numbers(shape) > 0
    elif kind == "int":
        a, b = r.rng.integers(-9, 10, shape).astype("i4"), r.rng.integers(1, 5, shape).astype("i4") * r.pick(1, -1)
    elif name == "FLOOR_DIV":
        a, b = r.grid(shape), 2.0 ** r.rng.integers(-2, 2, shape).astype("f4")
    else:
        a, b = r.grid(shape), r.grid(shape, 1, 3)
        a = np.abs(a) + 1 if name == "POW" else a
    b = b[tuple(slice(0, 1) if r.int(0, 3) == 0 else slice(None) for _ in shape)]
    value = judge.ELEMENTWISE[name](a, b)
    r.want(r.net.add_elementwise(r.give(a), r.give(b), trt.ElementWiseOperation[name]).get_output(0), value)


def unary(r):
    name, shape = r.pick(*judge.UNARY), r.dims(2)
    v = {"NOT": lambda: r.numbers(shape) > 0, "LOG": lambda: r.numbers(shape, 0.1, 3), "SQRT": lambda: r.numbers(shape, 0, 3),
         "RECIP": lambda: r.numbers(shape, 0.5, 2), "ISNAN": lambda: np.where(r.grid(shape) > 0, np.nan, 1).astype("f4"),
         "ISINF": lambda: np.where(r.grid(shape) > 0, -np.inf, 1).astype("f4"), "ACOSH": lambda: r.numbers(shape, 0.2, 2)}.get(
        name, lambda: r.grid(shape) if name in ("CEIL", "FLOOR", "ROUND", "SIGN") else r.numbers(shape, -0.9, 0.9))()
    tensor = r.give(v + 1 if name == "ACOSH" else v)
    r.want(r.net.add_unary(tensor, trt.UnaryOperation[name]).get_output(0), judge.UNARY[name](v if v.dtype == bool else v.astype("f8")))


def padding(r):
    x, v = r.smooth(rank=4)
    pre, post = r.dims(2, 0, 2), r.dims(2, 0, 2)
    r.want(r.net.add_padding_nd(x, pre, post).get_output(0), np.pad(v, [(0, 0), (0, 0)] + list(zip(pre, post))))


def shuffle(r):
    x, v = r.smooth(rank=3)
    first, layer = tuple(int(i) for i in r.rng.permutation(3)), r.net.add_shuffle(x)
    layer.first_transpose = trt.Permutation(first)
    v = v.transpose(first)
    form = r.int(0, 2)
    if form:
        shape = (v.shape[0], v.shape[1] * v.shape[2])
        if form == 1:
            layer.reshape_dims = (0, -1)
        else:
            layer.set_input(1, r.give(np.array(shape, "i8"), True))
        v = v.reshape(shape)
        layer.second_transpose = (1, 0)
        v = v.T
    r.want(layer.get_output(0), v)


def reduce(r):
    x, v = r.smooth()
    name, keep = r.pick(*judge.REDUCE), bool(r.int(0, 1))
    mask = r.int(1, (1 << v.ndim) - 1)
    axes = tuple(i for i in range(v.ndim) if mask >> i & 1)
    r.want(r.net.add_reduce(x, trt.ReduceOperation[name], mask, keep).get_output(0), judge.REDUCE[name](v, axes, keepdims=keep))


def topk(r):
    shape = r.dims(3, 2, 6)
    v = r.rng.permutation(int(np.prod(shape))).reshape(shape).astype("f4") / 8
    axis, least = r.int(0, 2), r.int(0, 1)
    k, wide = r.int(1, shape[axis]), r.int(0, 1)
    layer = r.net.add_topk(r.give(v), trt.TopKOperation.MIN if least else trt.TopKOperation.MAX, k, 1 << axis)
    if wide:
        layer.indices_type = trt.int64
    at = np.take(np.argsort(v if least else -v, axis), range(k), axis)
    r.want(layer.get_output(0), np.take_along_axis(v, at, axis))
    r.want(layer.get_output(1), at.astype("i8" if wide else "i4"))


def gather(r):
    mode = r.pick("DEFAULT", "ELEMENT", "ND", "SHARED")
    x, v = r.smooth(r.int(2, 4), *r.dims(2, 2, 4))
    axis, index = r.int(0, 2), r.rng.integers
    if mode == "DEFAULT":
        at = index(0, v.shape[axis], r.dims(r.int(1, 2))).astype("i4")
        r.want(r.net.add_gather(x, r.give(at), axis).get_output(0), np.take(v, at, axis))
        return
    if mode == "ELEMENT":
        at = index(0, v.shape[axis], tuple(r.int(1, d) for d in v.shape)).astype("i4")
        value = np.take_along_axis(v[tuple(slice(0, d) if i != axis else slice(None) for i, d in enumerate(at.shape))], at, axis)
    elif mode == "ND":
        at = np.stack([index(0, d, 3) for d in v.shape[:2]], -1).astype("i4")
        value = v[at[:, 0], at[:, 1]]
    else:
        axis, at = r.int(1, 2), index(0, min(v.shape[1:]), (v.shape[0], 3)).astype("i4")
        value = np.stack([np.take(v[i], at[i], axis - 1) for i in range(v.shape[0])])
    layer = r.net.add_gather_v2(x, r.give(at), trt.GatherMode.DEFAULT if mode == "SHARED" else trt.GatherMode[mode])
    if mode != "ND":
        layer.axis = axis
    layer.num_elementwise_dims = int(mode == "SHARED")
    r.want(layer.get_output(0), value)


def matrix_multiply(r):
    ops, (m, k, n), batch = [r.pick("NONE", "TRANSPOSE", "VECTOR") for _ in range(2)], r.dims(3), r.pick((), (2,))
    a = r.numbers(batch + {"NONE": (m, k), "TRANSPOSE": (k, m), "VECTOR": (k,)}[ops[0]])
    b = r.narrow(r.numbers(batch + {"NONE": (k, n), "TRANSPOSE": (n, k), "VECTOR": (k,)}[ops[1]]))
    left = a[..., None, :] if ops[0] == "VECTOR" else judge.matrix(a, ops[0])
    right = b[..., None] if ops[1] == "VECTOR" else judge.matrix(b, ops[1])
    value = left.astype("f8") @ right
    value = value[..., 0] if ops[1] == "VECTOR" else value
    if ops[0] == "VECTOR":
        value = value[..., 0] if ops[1] == "VECTOR" else value[..., 0, :]
    layer = r.net.add_matrix_multiply(r.give(a), trt.MatrixOperation[ops[0]], r.give(b), trt.MatrixOperation[ops[1]])
    r.want(layer.get_output(0), value)


def constant(r):
    v = r.numbers(r.dims(2))
    layer = r.net.add_constant(v.shape, trt.Weights(np.zeros_like(v)))
    layer.weights = v
    assert layer.shape == v.shape and np.array_equal(np.asarray(layer.weights), v.reshape(-1))
    r.want(layer.get_output(0), v)


def identity(r):
    x, v = r.smooth()
    r.want(r.net.add_identity(x).get_output(0), v)


def slice_(r):
    x, v = r.smooth()
    mode = r.pick("STRICT_BOUNDS", "WRAP", "CLAMP", "FILL", "REFLECT")
    if mode == "STRICT_BOUNDS":
        start, stride = [r.int(0, d - 1) for d in v.shape], r.dims(v.ndim, 0, 2)
        size = [(d - s + t - 1) // t if t else r.int(1, 5) for d, s, t in zip(v.shape, start, stride)]
    else:
        start, stride, size = [r.int(-3, 3) for _ in v.shape], [r.pick(1, 2, -1) for _ in v.shape], r.dims(v.ndim)
    layer, fill = r.net.add_slice(x, start, size, stride), 0
    layer.mode = trt.SampleMode[mode]
    if mode == "FILL" and r.int(0, 1):
        fill = 1.5
        layer.set_input(4, r.give(np.array(fill, "f4")))
    if r.int(0, 1):
        layer.set_input(1, r.give(np.array(start, "i8"), True))
    if r.int(0, 1):
        layer.set_input(2, r.give(np.array(size, "i8"), True))
    if r.int(0, 1):                     # an input: a run tells the strides
        layer.set_input(3, r.give(np.array(stride, "i8")))
    r.want(layer.get_output(0), judge.slice_outside(v, start, size, stride, mode, fill))


def shape(r):
    """Sizes are i64; arithmetic with i32, which scripts of version 8 have, gives i64."""
    x, v = r.smooth()
    sizes, value = r.net.add_shape(x).get_output(0), np.array(v.shape, "i8")
    if r.int(0, 1):
        other = r.rng.integers(-3, 4, r.pick(1, v.ndim)).astype("i4")
        sizes = r.net.add_elementwise(*(sizes, r.give(other))[::r.pick(1, -1)], trt.ElementWiseOperation.SUM).get_output(0)
        value = value + other
    if r.int(0, 1):
        other = r.rng.integers(-3, 4, r.int(1, 3)).astype("i4")
        sizes, value = r.net.add_concatenation([sizes, r.give(other)]).get_output(0), np.concatenate([value, other])
    r.want(sizes, value)


def resize(r):
    x, v = r.smooth(1, r.int(1, 2), *r.dims(2, 2, 4))
    mode, rule = r.pick("NEAREST", "LINEAR"), r.pick("ALIGN_CORNERS", "ASYMMETRIC", "HALF_PIXEL")
    factors = (1, 1, r.pick(1, 2, 4), r.pick(2, 3)) if r.int(0, 7) else (1,) * 4
    if (mode, rule) == ("LINEAR", "ALIGN_CORNERS") and r.int(0, 1):         # the corners meet, whatever is cut off
        factors = 1, 1, r.pick(0.5, 1.5, 1.75), r.pick(1.25, 2.5)
    new, layer = tuple(int(d * f) for d, f in zip(v.shape, factors)), r.net.add_resize(x)
    if max(factors) == 1:               # neither sizes nor scales: nothing is resized
        pass
    elif r.int(0, 1):
        layer.scales = factors
    elif r.int(0, 1):
        layer.shape = new
    else:
        layer.set_input(1, r.give(np.array(new, "i8"), True))
    rounding = r.pick("HALF_UP", "HALF_DOWN", "FLOOR", "CEIL")
    if mode == "NEAREST" and rule != "ASYMMETRIC":          # exact positions: no step is within the error of f32
        rule = "ASYMMETRIC"
    layer.resize_mode, layer.coordinate_transformation = trt.InterpolationMode[mode], trt.ResizeCoordinateTransformation[rule]
    layer.nearest_rounding = trt.ResizeRoundMode[rounding]
    if mode == "NEAREST" and 3 in factors:
        layer.nearest_rounding, rounding = trt.ResizeRoundMode.FLOOR, "FLOOR"
    r.want(layer.get_output(0), judge.resize(v, new, mode, rule, rounding, factors))


def select(r):
    x, v = r.smooth()
    other, choice = r.numbers(v.shape), r.numbers(v.shape) > 0
    r.want(r.net.add_select(r.give(choice), x, r.give(other)).get_output(0), np.where(choice, v, other))


def normalization(r):
    groups, channels = r.pick((1, 3), (2, 4), (3, 3))
    x, v = r.smooth(2, channels, *r.dims(2, 2, 4))
    first = 2 if groups > 1 else r.int(1, 3)
    axes = tuple(range(first, 4))
    shape = (1, channels, 1, 1) if first == 2 else tuple(d if i in axes else 1 for i, d in enumerate(v.shape))
    scale, bias = r.numbers(shape), r.numbers(shape)
    add = r.pick(r.net.add_normalization, r.net.add_normalization_v2)
    layer = add(x, r.give(scale), r.give(bias), sum(1 << i for i in axes))
    layer.epsilon, layer.num_groups = 1e-2, groups
    r.want(layer.get_output(0), judge.normalization(v, scale, bias, axes, 1e-2, groups))


def parametric_relu(r):
    x, v = r.smooth()
    slope = r.numbers((1,) * (v.ndim - 1) + v.shape[-1:])
    r.want(r.net.add_parametric_relu(x, r.give(slope)).get_output(0), np.where(v < 0, v * slope, v))


def lrn(r):
    x, v = r.smooth(rank=4)
    window, alpha, beta, k = r.pick(1, 3, 5), 0.5, 0.75, 1.25
    r.want(r.net.add_lrn(x, window, alpha, beta, k).get_output(0), judge.lrn(v, window, alpha, beta, k))


def ragged_softmax(r):
    x, v = r.smooth(rank=2)
    bounds = r.rng.integers(1, v.shape[1] + 1, (v.shape[0], 1)).astype("i4")
    inside = np.arange(v.shape[1]) < bounds
    r.want(r.net.add_ragged_softmax(x, r.give(bounds)).get_output(0), np.where(inside, judge.softmax(np.where(inside, v, -np.inf), -1), 0))


def cumulative(r):
    x, v = r.smooth()
    axis, exclusive, reverse = r.int(0, v.ndim - 1), bool(r.int(0, 1)), bool(r.int(0, 1))
    turned = np.flip(v, axis) if reverse else v
    value = np.cumsum(turned, axis) - (turned if exclusive else 0)
    r.want(r.net.add_cumulative(x, r.give(np.array(axis, "i8"), True), trt.CumulativeOperation.SUM, exclusive, reverse).get_output(0),
           np.flip(value, axis) if reverse else value)


def einsum(r):
    (i, j, k), equation = r.dims(3), r.pick("ij,jk->ik", "ij,jk->ki", "ij,jk->i")
    a, b = r.numbers((i, j)), r.numbers((j, k))
    r.want(r.net.add_einsum([r.give(a), r.give(b)], equation).get_output(0), np.einsum(equation, a.astype("f8"), b))


def squeeze(r):
    x, v = r.smooth(r.int(1, 3), 1, r.int(1, 3), 1)
    axes = r.pick((1,), (3,), (1, 3))
    r.want(r.net.add_squeeze(x, r.give(np.array(axes, "i8"), True)).get_output(0), np.squeeze(v, axes))


def unsqueeze(r):
    x, v = r.smooth(rank=2)
    axes = r.pick((0,), (2,), (1, 3))
    r.want(r.net.add_unsqueeze(x, r.give(np.array(axes, "i8"), True)).get_output(0), np.expand_dims(v, axes))


def scatter(r):
    x, v = r.smooth(*r.dims(2, 2, 4))
    mode, value = r.pick("ELEMENT", "ND"), v.copy()
    if mode == "ND":
        at = r.rng.permutation(v.shape[0])[:2].reshape(-1, 1).astype("i4")
        updates = r.numbers((len(at), v.shape[1]))
        value[at[:, 0]] = updates
    else:
        axis = r.int(0, 1)
        at = np.argsort(r.numbers(v.shape), axis).astype("i4")
        updates = r.numbers(v.shape)
        np.put_along_axis(value, at, updates, axis)
    layer = r.net.add_scatter(x, r.give(at), r.give(updates), trt.ScatterMode[mode])
    if mode == "ELEMENT":
        layer.axis = axis
    r.want(layer.get_output(0), value)


def one_hot(r):
    at, depth, axis = r.rng.integers(0, 4, r.dims(2)).astype("i4"), 4, r.pick(-1, 0, 2)
    values = r.grid(2)
    value = np.where(np.arange(depth) == at[..., None], values[1], values[0])
    r.want(r.net.add_one_hot(r.give(at), r.give(values), r.give(np.array(depth, "i4"), True), axis).get_output(0), np.moveaxis(value, -1, axis))


def non_zero(r):
    v, wide = np.maximum(r.grid(r.dims(2)), 0), r.int(0, 1)
    layer = r.net.add_non_zero(r.give(v), trt.int64) if wide else r.net.add_non_zero(r.give(v))
    r.want(layer.get_output(0), np.stack(np.nonzero(v)).astype("i8" if wide else "i4"))


def nms(r):
    batch, count, classes, own, centers = r.int(1, 2), 12, r.int(1, 3), r.int(0, 1), r.int(0, 1)
    boxes = np.abs(r.numbers((batch, count) + ((classes,) if own else ()) + (4,), 0.1, 3))
    scores = r.rng.permutation(batch * count * classes).reshape(batch, count, classes).astype("f4") / 64
    most, overlap, least = r.int(1, 5), 0.37, 0.1
    layer = r.net.add_nms(r.give(boxes), r.give(scores), r.give(np.array(most, "i4"), True))
    layer.bounding_box_format = trt.BoundingBoxFormat.CENTER_SIZES if centers else trt.BoundingBoxFormat.CORNER_PAIRS
    layer.set_input(3, r.give(np.array(overlap, "f4"), True))
    layer.set_input(4, r.give(np.array(least, "f4"), True))
    layer.topk_box_limit = 100
    value = judge.nms(boxes.astype("f8"), scores, most, overlap, least, centers)
    r.want(layer.get_output(0), value)
    r.want(layer.get_output(1), np.array(len(value), "i4"))


def reverse_sequence(r):
    x, v = r.smooth(*r.dims(3, 2, 4))
    batch = r.int(0, 1)
    lengths = r.rng.integers(1, v.shape[1 - batch] + 1, v.shape[batch]).astype("i4")
    value = v.copy()
    for i, n in enumerate(lengths):
        if batch:
            value[:n, i] = v[:n, i][::-1]
        else:
            value[i, :n] = v[i, :n][::-1]
    layer = r.net.add_reverse_sequence(x, r.give(lengths))
    layer.batch_axis, layer.sequence_axis = batch, 1 - batch
    r.want(layer.get_output(0), value)


def grid_sample(r):
    x, v = r.smooth(2, r.int(1, 2), *r.dims(2, 2, 5))
    mode, outside, corners = r.pick("NEAREST", "LINEAR"), r.pick("FILL", "CLAMP", "REFLECT"), bool(r.int(0, 1))
    grid = r.numbers((2, 3, 4, 2), -1.5, 1.5)
    layer = r.net.add_grid_sample(x, r.give(grid))
    layer.interpolation_mode, layer.sample_mode, layer.align_corners = trt.InterpolationMode[mode], trt.SampleMode[outside], corners
    r.want(layer.get_output(0), judge.grid_sample(v, grid.astype("f8"), mode, outside, corners))


def fill(r):
    form, shape = r.int(0, 3), r.dims(2, 20, 30)
    if form == 0:
        layer = r.net.add_fill((5,), trt.FillOperation.LINSPACE)
        layer.alpha, layer.beta = 0.5, -0.25
        r.want(layer.get_output(0), 0.5 - 0.25 * np.arange(5))
    elif form == 1:
        layer = r.net.add_fill((3, 4), trt.FillOperation.LINSPACE, trt.int32)
        layer.set_input(1, r.give(np.array(2, "i4")))
        layer.set_input(2, r.give(np.array([5, 7], "i4")))
        r.want(layer.get_output(0), (2 + 5 * np.arange(3)[:, None] + 7 * np.arange(4)).astype("i4"))
    else:
        layer = r.net.add_fill((1,), trt.FillOperation.RANDOM_UNIFORM if form == 2 else trt.FillOperation.RANDOM_NORMAL)
        layer.shape, layer.alpha, layer.beta = shape, 1, 3
        assert layer.get_output(0).shape == shape
        r.want(layer.get_output(0), (lambda y: 1 <= y.min() < 1.3 and 2.7 < y.max() <= 3 and 1.8 < y.mean() < 2.2) if form == 2 else
               (lambda y: 0.2 < y.mean() < 1.8 and 2.3 < y.std() < 3.7))


def assertion(r):
    r.net.add_assertion(r.give(np.array(True)), "never").message += "!"
    x, v = r.smooth()
    r.want(r.net.add_identity(x).get_output(0), v)


def quantize(r, back=False):
    v, axis = r.numbers(r.dims(3), -9, 9), r.int(0, 2)
    scale = r.pick(np.array(0.0625, "f4"), r.rng.choice(np.array([0.03125, 0.0625, 0.125], "f4"), v.shape[axis]))
    layer = r.net.add_quantize(r.give(v), r.give(scale, True))
    layer.axis = axis
    wide = scale if not scale.ndim else scale.reshape([-1 if i == axis else 1 for i in range(3)])
    value = np.clip(np.round(v / wide), -128, 127).astype("i1")
    if not back:
        r.want(layer.get_output(0), value)
        return
    layer = r.net.add_dequantize(layer.get_output(0), r.give(scale, True))
    layer.axis = axis
    r.want(layer.get_output(0), value * wide)


def dynamic_quantize(r):
    v, axis = r.numbers((4, 32), -5, 5), 1
    add = r.int(0, 1)
    layer = (r.net.add_dynamic_quantize(r.give(v), axis, 16, trt.fp4, trt.fp8) if add else
             r.net.add_dynamic_quantize_v2(r.give(v), (1, 16), trt.fp4, trt.fp8))
    assert layer.axis == axis and layer.block_size == 16 and layer.block_shape == (1, 16)
    scales = []

    def check_scale(found):                              # outputs are FLOAT; those of the network's model have the narrow types
        found = found if found.dtype == np.float32 else np.array([f8_value(int(b), "f8e4m3fn") for b in found.reshape(-1)])
        scales.append(found.reshape(4, 2))
        return np.allclose(scales[-1], np.abs(v).reshape(4, 2, 16).max(-1) / 6, rtol=0.0626)

    def check(found):
        found = np.asarray(found)
        if found.dtype != np.float32:
            nibbles = np.stack([found & 15, found >> 4], -1)
            found = np.where(nibbles & 8, -1, 1) * F4[nibbles & 7]
        scale, found = scales[-1][..., None], found.reshape(4, 2, 16)
        return np.isin(np.abs(found), F4).all() and (np.abs(found * scale - v.reshape(4, 2, 16)) <= 1.07 * scale).all()
    r.want(layer.get_output(1), check_scale)
    r.want(layer.get_output(0), check)


def attention(r):
    b, heads, n, s, d = r.int(1, 2), r.pick(2, 4), r.int(2, 5), r.int(5, 7), 4
    shared = r.pick(1, 2)
    q, k, v = r.numbers((b, heads, n, d)), r.numbers((b, heads // shared, s, d)), r.numbers((b, heads // shared, s, d))
    norm, causal = r.pick("SOFTMAX", "SOFTMAX", "NONE"), r.pick("NONE", "UPPER_LEFT", "LOWER_RIGHT")
    tensors = [r.give(t) for t in (q, k, v)]
    if causal == "LOWER_RIGHT":
        layer = r.net.add_attention_v2(*tensors, trt.AttentionNormalizationOp[norm], trt.CausalMaskKind[causal])
    else:
        layer = r.net.add_attention(*tensors, trt.AttentionNormalizationOp[norm], causal != "NONE")
    assert layer.causal == (causal != "NONE") and layer.causal_kind == trt.CausalMaskKind[causal] and layer.mask is None
    mask, lengths = None, [None, None]
    if r.int(0, 1):
        mask = r.numbers((b, 1, n, s)) if r.int(0, 1) else r.numbers((b, 1, n, s)) > -1.5
        if mask.dtype == bool:
            mask[..., 0] = True
        tensor = r.give(mask)
        layer.mask = tensor
        assert layer.mask == tensor
    if r.int(0, 1):
        lengths = [r.rng.integers(1, n + 1, b).astype("i4"), r.rng.integers(1, s + 1, b).astype("i4")]
        layer.query_lengths, layer.key_value_lengths = (r.give(t) for t in lengths)
    layer.decomposable = True
    r.want(layer.get_output(0), judge.attention(q.astype("f8"), k.astype("f8"), v.astype("f8"), norm, causal, mask, *lengths))


def rotary_embedding(r):
    x, v = r.smooth(r.int(1, 2), r.int(1, 3), r.int(1, 4), 8)
    interleaved, dim, b, n = bool(r.int(0, 1)), r.pick(0, 4), v.shape[0], v.shape[2]
    half = (dim or 8) // 2
    if r.int(0, 1):
        cos, sin, ids = r.numbers((9, half)), r.numbers((9, half)), r.rng.integers(0, 9, (b, n)).astype("i8")
        layer = r.net.add_rotary_embedding(x, r.give(cos), r.give(sin), interleaved, dim)
        layer.set_input(3, r.give(ids))
        cos, sin = cos[ids], sin[ids]
    else:
        cos, sin = r.numbers((b, n, half)), r.numbers((b, n, half))
        layer = r.net.add_rotary_embedding(x, r.give(cos), r.give(sin), interleaved, dim)
    r.want(layer.get_output(0), judge.rotary(v, cos, sin, interleaved, dim))


def kv_cache_update(r):
    b, h, s, n, d = r.int(1, 2), r.int(1, 2), 6, r.int(1, 3), 3
    cache, update = r.numbers((b, h, s, d)), r.numbers((b, h, n, d))
    at = r.rng.integers(0, s - n + 1, b).astype("i4")
    value = cache.copy()
    for i in range(b):
        value[i, :, at[i]:at[i] + n] = update[i]
    r.want(r.net.add_kv_cache_update(r.give(cache), r.give(update), r.give(at), trt.KVCacheMode.LINEAR).get_output(0), value)


def moe(r):
    (b, n, d, f), e, k = r.dims(4, 1, 4), 4, 2
    x, v = r.smooth(b, n, d)
    experts = np.stack([r.rng.permutation(e)[:k] for _ in range(b * n)]).reshape(b, n, k).astype("i4")
    scores = r.numbers((b, n, k), 0, 1)
    weights = [r.numbers(s, -1, 1) for s in ((e, d, f), (e, d, f), (e, f, d))]
    biases = r.pick(None, [r.numbers(s) for s in ((e, f), (e, f), (e, d))])
    silu, clamped = r.int(0, 1), r.int(0, 1)
    limit, alpha, beta = (1.5, 1.25, 1.0) if clamped else (np.inf, 1.0, 0.0)
    layer = r.net.add_moe(x, r.give(experts), r.give(scores))
    layer.set_gated_weights(*(r.give(w, True) for w in weights), trt.MoEActType.SILU if silu else trt.MoEActType.NONE)
    if biases:
        layer.set_gated_biases(*(r.give(w, True) for w in biases))
    if clamped:
        layer.set_swiglu_params(limit, alpha, beta)
        assert (layer.swiglu_param_limit, layer.swiglu_param_alpha, layer.swiglu_param_beta) == (limit, alpha, beta)
    r.want(layer.get_output(0), judge.moe(v, experts, scores, [w.astype("f8") for w in weights], biases, silu, limit, alpha, beta))


CASES = {f.__name__.rstrip("_"): f for f in (
    convolution, pooling, activation, cast, scale, softmax, concatenation, elementwise, unary, padding, shuffle, reduce, topk, gather,
    matrix_multiply, constant, identity, slice_, shape, resize, select, normalization, parametric_relu, lrn, ragged_softmax, cumulative,
    einsum, squeeze, unsqueeze, scatter, one_hot, non_zero, nms, reverse_sequence, grid_sample, fill, assertion, quantize,
    dynamic_quantize, attention, rotary_embedding, kv_cache_update, moe)}
CASES["deconvolution"] = lambda r: convolution(r, True)
CASES["dequantize"] = lambda r: quantize(r, True)
