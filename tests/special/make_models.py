#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes ../models/special.txt: what ONNX's operators on tensors make of special values, as cases of test_model_cases.

The results are formulas of ONNX's operator text in numpy's doubles, and know nothing of src/ops. Where the text is
silent they are what docs/numerics.md says. ../models/check_onnxruntime.py is a second judge. Run by hand where numpy
and ml_dtypes are:  make_models.py > ../models/special.txt
"""
import math

import ml_dtypes
import numpy as np

np.seterr(all="ignore")
INF, NAN, MAX = np.inf, np.nan, float(np.finfo(np.float32).max)
TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
         "bool": np.bool_, **{f"{u}int{n}": np.dtype(f"{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)}}
ONNX = {"float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
        "double": 11, "uint32": 12, "uint64": 13, "bfloat16": 16, "float8e4m3fn": 17, "float8e4m3fnuz": 18,
        "float8e5m2": 19, "float8e5m2fnuz": 20}
ROWS = np.array([[1, -2, 3.5, 0], [-0.0, 0, -0.0, 0], [1, INF, -3, 2], [1, -INF, 4, 2], [INF, -INF, 1, 2],
                 [NAN, 1, 2, 3], [3, 1, NAN, INF], [-INF] * 4, [INF] * 4, [2.0 ** -149, 0, 2.0 ** -140, 1],
                 [-7, -7, -7, -7]])


def number(v):
    if isinstance(v, (int, np.integer, np.bool_, bool)):
        return "%d" % v
    v = float(v)
    return "nan" if math.isnan(v) else "%.9g" % v if float("%.9g" % v) == v or np.float32(v) == v != round(v) else "%.17g" % v


def tensor(kind, array):
    array = np.asarray(array)
    if kind in TYPES:
        array = array.astype(TYPES[kind])
    shape = "[%s]" % ",".join(map(str, array.shape)) if array.ndim else ""
    return "%s%s {%s}" % (kind, shape, ", ".join(number(v) for v in array.ravel()))


def case(name, node, inputs, outputs, constants=(), opset=18):
    """inputs, outputs, constants: (name, type, array); node: statements."""
    dims = lambda a: "[%s]" % ",".join(map(str, np.shape(a))) if np.ndim(a) else ""
    given = ", ".join("%s%s %s" % (t, dims(a), n) for n, t, a in inputs)
    made = ", ".join("%s[] %s" % (t, n) for n, t, a in outputs)
    held = ", ".join("%s%s %s = %s" % (t, dims(a), n, tensor(t, a)[len(t + dims(a)) + 1:]) for n, t, a in constants)
    print("\ncase %s\nopset %d\ng (%s) => (%s)%s {" % (name, opset, given, made, " <%s>" % held if held else ""))
    for line in node if isinstance(node, list) else [node]:
        print("  " + line)
    print("}")
    for n, t, a in inputs:
        print("%s = %s" % (n, tensor(t, a)))
    for n, t, a in outputs:
        print("-> %s = %s" % (n, tensor(t, a)))


def log_sum_exp(x):
    top = x.max(-1)
    return np.where(np.isinf(top), top, top + np.log(np.exp(x - np.where(np.isinf(top), 0, top)[..., None]).sum(-1)))


REDUCE = {"Sum": lambda x: x.sum(-1), "Mean": lambda x: x.mean(-1), "Max": lambda x: x.max(-1),
          "Min": lambda x: x.min(-1), "Prod": lambda x: x.prod(-1), "L1": lambda x: np.abs(x).sum(-1),
          "L2": lambda x: np.sqrt((x * x).sum(-1)), "LogSum": lambda x: np.log(x.sum(-1)),
          "LogSumExp": log_sum_exp, "SumSquare": lambda x: (x * x).sum(-1)}


def reductions():
    axes = [("axes", "int64", np.array([1]))]
    for name, f in REDUCE.items():
        for kind in ("float", "double") if name not in ("Sum", "Max", "LogSumExp") else (
                "float", "double", "float16", "bfloat16"):
            x = ROWS.astype(TYPES[kind]).astype(np.float64)
            case("reduce %s of %s" % (name, kind), "y = Reduce%s<keepdims = 0>(x, axes)" % name, [("x", kind, x)],
                 [("y", kind, f(x))], axes)
    large = np.array([[1000, 1000, -1000, 999], [-1000, -1001, -INF, -1000], [3e38, 3e38, 0, 0], [-INF, -INF, 5, -INF]])
    case("reduce LogSumExp of large numbers", "y = ReduceLogSumExp<keepdims = 0>(x, axes)", [("x", "float", large)],
         [("y", "float", log_sum_exp(large))], axes)
    none = np.zeros((2, 0))
    for name, of_none in (("Sum", 0), ("Prod", 1), ("L1", 0), ("L2", 0), ("SumSquare", 0), ("LogSum", -INF),
                          ("LogSumExp", -INF), ("Max", -INF), ("Min", INF)):
        case("reduce %s of nothing" % name, "y = Reduce%s<keepdims = 0>(x, axes)" % name, [("x", "float", none)],
             [("y", "float", np.full(2, of_none))], axes, 20 if name in ("Max", "Min") else 18)
    for kind in ("int32", "int64", "uint8", "int8", "uint64"):
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        x = np.array([[high, low, 1, 0], [high, high, 0, 1], [low, low, low, low]], dtype=kind)
        for name, f in (("Max", np.max), ("Min", np.min)):
            case("reduce %s of %s" % (name, kind), "y = Reduce%s<keepdims = 0>(x, axes)" % name, [("x", kind, x)],
                 [("y", kind, f(x, -1))], axes)
        if kind in ("int32", "int64", "uint64"):
            case("reduce Sum of %s wraps" % kind, "y = ReduceSum<keepdims = 0>(x, axes)", [("x", kind, x)],
                 [("y", kind, x.sum(-1, dtype=kind))], axes)


def choices():
    x = np.array([[1, 3, 3, 2], [-INF, -INF, -INF, -INF], [INF, 1, INF, 2], [0, -0.0, 0, -0.0], [-3, -1, -2, -1]])
    last = lambda f: 3 - f(x[:, ::-1], -1)
    for name, f in (("Max", np.argmax), ("Min", np.argmin)):
        case("first of equal ones, Arg%s" % name, "y = Arg%s<axis = 1, keepdims = 0>(x)" % name, [("x", "float", x)],
             [("y", "int64", f(x, -1))])
        case("last of equal ones, Arg%s" % name, "y = Arg%s<axis = 1, keepdims = 0, select_last_index = 1>(x)" % name,
             [("x", "float", x)], [("y", "int64", last(f))])
    n = np.array([[1, NAN, 3, NAN], [INF, NAN, 1, 2], [NAN, 1, 2, 3]])
    case("ArgMax of NaN", "y = ArgMax<axis = 1, keepdims = 0>(x)", [("x", "float", n)], [("y", "int64", [1, 1, 0])])
    for kind in ("int64", "uint64", "int8"):
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        z = np.array([[high, high - 1, low, low + 1], [low, high, low, high]], dtype=kind)
        if kind != "uint64":
            case("ArgMax of %s" % kind, "y = ArgMax<axis = 1, keepdims = 0>(x)", [("x", kind, z)],
                 [("y", "int64", np.argmax(z, -1))])
        order = np.argsort(-z.astype(object), -1, kind="stable")[:, :3]
        case("TopK of %s" % kind, "v, i = TopK<axis = 1>(x, k)", [("x", kind, z)],
             [("v", kind, np.take_along_axis(z, order, -1)), ("i", "int64", order)], [("k", "int64", np.array([3]))])
    for largest in (0, 1):
        order = np.argsort(-x if largest else x, -1, kind="stable")[:, :3]
        case("TopK with infinities, largest %d" % largest, "v, i = TopK<axis = 1, largest = %d>(x, k)" % largest,
             [("x", "float", x)], [("v", "float", np.take_along_axis(x, order, -1)), ("i", "int64", order)],
             [("k", "int64", np.array([3]))])
    case("TopK of NaN", "v, i = TopK<axis = 1>(x, k)", [("x", "float", n)],
         [("v", "float", [[NAN, NAN], [NAN, INF], [NAN, 3]]), ("i", "int64", [[1, 3], [1, 0], [0, 3]])],
         [("k", "int64", np.array([2]))])
    case("Hardmax of equal ones", "y = Hardmax<axis = 1>(x)", [("x", "float", x)],
         [("y", "float", np.eye(4)[np.argmax(x, -1)])])
    case("NonZero of zeros and NaN", "y = NonZero(x)", [("x", "float", [0, -0.0, NAN, 2.0 ** -149, INF])],
         [("y", "int64", [[2, 3, 4]])])


def sums():
    x = np.array([[1, INF, 2, -INF], [NAN, 1, 2, 3], [-0.0, 0, -1, 1], [1, 2, 3, INF], [-INF, 1, -INF, 2]])
    for exclusive in (0, 1):
        for reverse in (0, 1):
            z = x[:, ::-1] if reverse else x
            y = np.cumsum(z, -1)
            if exclusive:
                y = np.concatenate([np.zeros((len(x), 1)), y[:, :-1]], -1)
            case("CumSum, exclusive %d, reverse %d" % (exclusive, reverse),
                 "y = CumSum<exclusive = %d, reverse = %d>(x, axis)" % (exclusive, reverse), [("x", "float", x)],
                 [("y", "float", y[:, ::-1] if reverse else y)], [("axis", "int64", np.array(-1))])
    for kind in ("int32", "int64"):
        z = np.array([np.iinfo(kind).max, 1, 1, np.iinfo(kind).min], dtype=kind)
        case("CumSum of %s wraps" % kind, "y = CumSum(x, axis)", [("x", kind, z)],
             [("y", kind, np.cumsum(z, dtype=kind))], [("axis", "int64", np.array(0))])
    case("CumSum of nothing", "y = CumSum(x, axis)", [("x", "float", np.zeros((0, 3)))],
         [("y", "float", np.zeros((0, 3)))], [("axis", "int64", np.array(0))])
    for start, limit, delta in ((0, 5, 2), (5, 0, -2), (0, 5, -1), (3, 3, 1), (-4, -1, 1), (10, 0, 3)):
        y = np.arange(start, limit, delta)
        for kind in ("int64", "int32", "float", "double"):
            if kind in ("int32", "double") and delta > 1:
                continue
            case("Range of %s from %d to %d by %d" % (kind, start, limit, delta), "y = Range(a, b, c)",
                 [("a", kind, start), ("b", kind, limit), ("c", kind, delta)], [("y", kind, y)])
    case("Range in parts", "y = Range(a, b, c)", [("a", "float", .5), ("b", "float", 2.75), ("c", "float", .5)],
         [("y", "float", [.5, 1, 1.5, 2, 2.5])])


def softmaxes():
    x = np.array([[1, 2, 3, 4], [0, -INF, 1, -INF], [1, INF, 2, 3], [-INF] * 4, [NAN, 0, 1, 2], [3e38, -3e38, 3e38, 0],
                  [1e4, 1e4 + 1, -1e4, 0], [INF, -INF, 0, 0], [0, -0.0, -200, 100]])
    top = x.max(-1, keepdims=True)
    e = np.exp(x - top)
    soft, log = e / e.sum(-1, keepdims=True), (x - top) - np.log(e.sum(-1, keepdims=True))
    for kind in ("float", "double"):
        case("Softmax of %s" % kind, "y = Softmax<axis = 1>(x)", [("x", kind, x)], [("y", kind, soft)])
        case("LogSoftmax of %s" % kind, "y = LogSoftmax<axis = 1>(x)", [("x", kind, x)], [("y", kind, log)])
    case("Softmax of columns", "y = Softmax<axis = 0>(x)", [("x", "float", x.T)], [("y", "float", soft.T)])
    case("LogSoftmax of columns", "y = LogSoftmax<axis = 0>(x)", [("x", "float", x.T)], [("y", "float", log.T)])


def pools():
    x = np.array([1, INF, 2, NAN, 3, -INF, -5, -INF, -INF, -INF, 0, -0.0, 7, 8, 9, 1], dtype=np.float64)
    pairs = np.stack([x[0::2], x[1::2]])
    image = x.reshape(1, 1, 16)
    case("MaxPool", "y = MaxPool<kernel_shape = [2], strides = [2]>(x)", [("x", "float", image)],
         [("y", "float", pairs.max(0).reshape(1, 1, 8))])
    case("MaxPool with padding of what is low", "y = MaxPool<kernel_shape = [3], pads = [1, 1]>(x)",
         [("x", "float", [[[-INF, -INF, -5, -MAX]]])], [("y", "float", [[[-INF, -5, -5, -5]]])])
    case("AveragePool", "y = AveragePool<kernel_shape = [2], strides = [2]>(x)", [("x", "float", image)],
         [("y", "float", pairs.mean(0).reshape(1, 1, 8))])
    case("AveragePool counts padding", "y = AveragePool<kernel_shape = [3], pads = [1, 1], count_include_pad = 1>(x)",
         [("x", "float", [[[3, INF, 6]]])], [("y", "float", [[[INF, INF, INF]]])])
    case("AveragePool leaves padding out", "y = AveragePool<kernel_shape = [3], pads = [1, 1]>(x)",
         [("x", "float", [[[3, 5, -INF, 1]]])], [("y", "float", [[[4, -INF, -INF, -INF]]])])
    for p in (1, 2, 3):
        case("LpPool, p %d" % p, "y = LpPool<kernel_shape = [2], strides = [2], p = %d>(x)" % p, [("x", "float", image)],
             [("y", "float", ((np.abs(pairs) ** p).sum(0) ** (1 / p)).reshape(1, 1, 8))])
        case("GlobalLpPool, p %d" % p, "y = GlobalLpPool<p = %d>(x)" % p, [("x", "float", [[[3, -4, 0], [0, 0, 0],
             [INF, 1, 2], [1, NAN, INF]]])],
             [("y", "float", [[[(3.0 ** p + 4.0 ** p) ** (1 / p)], [0], [INF], [NAN]]])])
    y = np.array([[[1, 2, 6], [INF, 0, 1], [INF, -INF, 1], [NAN, INF, 1], [-INF, -INF, -INF]]])
    case("GlobalAveragePool", "y = GlobalAveragePool(x)", [("x", "float", y)], [("y", "float", y.mean(-1, keepdims=True))])
    case("GlobalMaxPool", "y = GlobalMaxPool(x)", [("x", "float", y)], [("y", "float", y.max(-1, keepdims=True))])


def norms():
    x = np.array([[1, 2, 3, 4], [5, 5, 5, 5], [0, -0.0, 0, 0], [1, INF, 2, 3], [NAN, 1, 2, 3], [1000, 1000.0625, 1000, 1000],
                  [-INF, 1, 1, 1], [1e-30, -1e-30, 1e-30, 3e-30]])
    x32 = x.astype(np.float32).astype(np.float64)
    mean, var = x32.mean(-1, keepdims=True), x32.var(-1, keepdims=True)
    eps = float(np.float32(1e-5))
    y = (x32 - mean) / np.sqrt(var + eps)
    s, b = np.array([1, 2, -1, .5]), np.array([0, 1, 2, -3.0])
    case("LayerNormalization", "y = LayerNormalization<axis = -1, epsilon = 1e-5>(x, s, b)", [("x", "float", x)],
         [("y", "float", y * s + b)], [("s", "float", s), ("b", "float", b)])
    c8, b8 = np.arange(1, 9) / 4, np.arange(8) - 3.0
    case("InstanceNormalization", "y = InstanceNormalization<epsilon = 1e-5>(x, s, b)", [("x", "float", x[None])],
         [("y", "float", (y * c8[:, None] + b8[:, None])[None])], [("s", "float", c8), ("b", "float", b8)])
    g = x32.reshape(4, 8)
    gy = (g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + eps)
    case("GroupNormalization", "y = GroupNormalization<num_groups = 4, epsilon = 1e-5>(x, s, b)", [("x", "float", x[None])],
         [("y", "float", (gy.reshape(8, 4) * c8[:, None] + b8[:, None])[None])], [("s", "float", c8), ("b", "float", b8)], 21)
    close = np.array([[[100, 100.0078125], [1000, 1000], [-50, -50.00390625], [3, 4]]])
    cy = (close - close.mean(-1, keepdims=True)) / np.sqrt(close.var(-1, keepdims=True) + eps)
    case("InstanceNormalization of close numbers", "y = InstanceNormalization<epsilon = 1e-5>(x, s, b)",
         [("x", "float", close)], [("y", "float", cy)], [("s", "float", np.ones(4)), ("b", "float", np.zeros(4))])
    bx = np.array([[[1, INF], [NAN, 2], [-INF, 3], [4, 0]]])
    m, v = np.array([1, 2, 3, 4.0]), np.array([0, 1, 4, INF])
    by = (bx - m[:, None]) / np.sqrt(v + eps)[:, None]
    case("BatchNormalization", "y = BatchNormalization<epsilon = 1e-5>(x, s, b, m, v)", [("x", "float", bx)],
         [("y", "float", by)],
         [("s", "float", np.ones(4)), ("b", "float", np.zeros(4)), ("m", "float", m), ("v", "float", v)])


def resizes():
    x = np.array([[[1, INF, 2, NAN, 3, 4]]])
    case("Resize, nearest", 'y = Resize<mode = "nearest">(x, "", s)', [("x", "float", x)],
         [("y", "float", np.repeat(x, 2, -1))], [("s", "float", [1, 1, 2])])
    case("Resize, linear, by one", 'y = Resize<mode = "linear">(x, "", s)', [("x", "float", x)], [("y", "float", x)],
         [("s", "float", [1, 1, 1])])
    case("Resize, linear, to half", 'y = Resize<mode = "linear">(x, "", s)', [("x", "float", [[[1, 3, INF, 5, -INF, INF,
         7, NAN]]])], [("y", "float", [[[2, INF, NAN, NAN]]])], [("s", "float", [1, 1, .5])])


def comparisons():
    a = np.array([1, NAN, NAN, INF, INF, -INF, 0, -0.0, 2.0 ** -149, MAX])
    b = np.array([1, 1, NAN, INF, -INF, INF, -0.0, 0, 0, INF])
    f = {"Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater,
         "GreaterOrEqual": np.greater_equal}
    for name, of in f.items():
        for kind in ("float", "double", "float16"):
            u, v = a.astype(TYPES[kind]), b.astype(TYPES[kind])
            case("%s of %s" % (name, kind), "y = %s(a, b)" % name, [("a", kind, u), ("b", kind, v)], [("y", "bool", of(u, v))])
        for kind in ("int64", "uint64", "int32", "uint8"):
            i = np.iinfo(kind)
            u = np.array([i.max, i.max - 1, i.min, 0, i.max], dtype=kind)
            v = np.array([i.max - 1, i.max, i.max, i.min, i.max], dtype=kind)
            case("%s of %s" % (name, kind), "y = %s(a, b)" % name, [("a", kind, u), ("b", kind, v)], [("y", "bool", of(u, v))])
    for name, of in (("Max", np.maximum), ("Min", np.minimum)):
        y = np.where(np.isnan(a) | np.isnan(b), NAN, of(a, b))
        case("%s of three" % name, "y = %s(a, b, a)" % name, [("a", "float", a), ("b", "float", b)], [("y", "float", y)])
        u, v = np.array([2 ** 63, 2 ** 64 - 1, 0], np.uint64), np.array([2 ** 63 + 1, 0, 1], np.uint64)
        case("%s of uint64" % name, "y = %s(a, b)" % name, [("a", "uint64", u), ("b", "uint64", v)], [("y", "uint64", of(u, v))])
    case("Where passes NaN", "y = Where(c, a, b)", [("c", "bool", a == 1), ("a", "float", a), ("b", "float", b)],
         [("y", "float", np.where(a == 1, a, b))])


def integers():
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        i = np.iinfo(kind)
        a = [int(v) for v in (i.min, i.max, 7, -7 if i.min else 7, 7, -7 if i.min else 9, 0, i.min)]
        b = [int(v) for v in (-1 if i.min else 1, 2, 2, 2, -2 if i.min else 3, -2 if i.min else 2, 5, i.max)]
        wrap = lambda v: np.array([(t - i.min) % (i.max - i.min + 1) + i.min for t in v], dtype=kind)
        cut = lambda p, q: abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)
        pair = [("a", kind, np.array(a, kind)), ("b", kind, np.array(b, kind))]
        case("Div of %s" % kind, "y = Div(a, b)", pair, [("y", kind, wrap(map(cut, a, b)))])
        case("Mod of %s" % kind, "y = Mod(a, b)", pair, [("y", kind, wrap([p % q for p, q in zip(a, b)]))])
        case("fmod of %s" % kind, "y = Mod<fmod = 1>(a, b)", pair,
             [("y", kind, wrap([p - cut(p, q) * q for p, q in zip(a, b)]))])
        case("Mul of %s wraps" % kind, "y = Mul(a, a)", pair[:1], [("y", kind, wrap([p * p for p in a]))])
        case("Add of %s wraps" % kind, "y = Add(a, b)", pair, [("y", kind, wrap([p + q for p, q in zip(a, b)]))])
        if i.min:
            case("Neg and Abs of %s" % kind, ["y = Neg(a)", "z = Abs(a)"], pair[:1],
                 [("y", kind, wrap([-p for p in a])), ("z", kind, wrap([abs(p) for p in a]))])
        else:
            bits = i.bits
            v = np.array([1, i.max, 5, i.max, 1, 6], kind)
            n = np.array([bits - 1, 1, 0, bits - 1, 3, 2], kind)
            for way, of in (("LEFT", lambda p, q: p << q), ("RIGHT", lambda p, q: p >> q)):
                case("BitShift %s of %s" % (way, kind), 'y = BitShift<direction = "%s">(a, b)' % way,
                     [("a", kind, v), ("b", kind, n)], [("y", kind, wrap([of(int(p), int(q)) for p, q in zip(v, n)]))])
                case("BitShift %s of %s by its width and more" % (way, kind), 'y = BitShift<direction = "%s">(a, b)' % way,
                     [("a", kind, v), ("b", kind, np.array([bits, bits + 1, 2 * bits, 255, 64, 65], np.uint64).astype(kind))],
                     [("y", kind, np.zeros(6, kind))])
    for kind in ("int32", "int64", "uint8"):
        a = np.array([5, -5, 0], np.int64).astype(kind)
        pair = [("a", kind, a), ("b", kind, np.zeros(3, kind))]
        case("Div of %s by 0" % kind, "y = Div(a, b)", pair, [("y", kind, np.zeros(3, kind))])
        case("Mod of %s by 0" % kind, "y = Mod(a, b)", pair, [("y", kind, np.zeros(3, kind))])
    x = np.array([5.5, -5.5, INF, 1, 1, NAN, 0, -0.0, 1, 3])
    y = np.array([2, 2, 2, INF, 0, 1, 5, 5, -INF, NAN])
    case("fmod of float", "y = Mod<fmod = 1>(a, b)", [("a", "float", x), ("b", "float", y)], [("y", "float", np.fmod(x, y))])


def saturated(v, kind):
    """Floats as integers: cut, saturated; NaN is 0."""
    i = np.iinfo(kind)
    return np.array([0 if math.isnan(t) else i.min if t <= i.min else i.max if t >= i.max else int(t) for t in v], kind)


def casts():
    floats = [k for k in TYPES if k in ("float", "double", "float16", "bfloat16")]
    whole = [k for k in TYPES if "int" in k]
    real = np.array([0, -0.0, .5, -.5, 1.5, 2.5, -2.5, 127.5, 128, 255.5, 300, -129, 65504, 65520, -40000, 2.0 ** 31, 4e9,
                     -2.0 ** 63, 2.0 ** 64, 1e38, 3.4e38, -1e39, 1e-8, 2.0 ** -24, 2.0 ** -149, 1e-46, INF, -INF, NAN])
    for a in floats:
        x = real.astype(TYPES[a])
        wide = x.astype(np.float64)
        for b in floats + whole + ["bool"]:
            if a == b:
                continue
            y = saturated(wide, b) if b in whole else wide != 0 if b == "bool" else x.astype(TYPES[b])
            case("Cast of %s to %s" % (a, b), "y = Cast<to = %d>(x)" % ONNX[b], [("x", a, x)], [("y", b, y)])
    for a in whole + ["bool"]:
        i = np.iinfo(a) if a != "bool" else None
        x = np.array([0, 1]) if a == "bool" else np.array([0, 1, i.max, i.max - 1, i.min, i.max // 3, i.max // 2 + 1,
                                                           -1 if i.min else 200, 77], a)
        x = x.astype(TYPES[a])
        for b in floats + whole + ["bool"]:
            if a != b:
                case("Cast of %s to %s" % (a, b), "y = Cast<to = %d>(x)" % ONNX[b], [("x", a, x)],
                     [("y", b, x.astype(TYPES[b]))])
    tiny = {"float8e4m3fn": (ml_dtypes.float8_e4m3fn, 448), "float8e5m2": (ml_dtypes.float8_e5m2, 57344),
            "float8e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, 240), "float8e5m2fnuz": (ml_dtypes.float8_e5m2fnuz, 57344)}
    x = np.array([0, -0.0, 1, 1.0625, 1.1875, 17, 19, 240, 248, 447, 448, 464, 465, 480, 1e6, 57344, 61439, 61440, 65536,
                  -449, -1e9, 2.0 ** -9, 2.0 ** -10, 2.0 ** -11, 2.0 ** -16, 2.0 ** -17, 2.0 ** -18, INF, -INF, NAN])
    for kind, (t, top) in tiny.items():
        for saturate in (0, 1):
            y = (np.where(np.isnan(x), NAN, np.clip(x, -top, top)) if saturate else x).astype(t).astype(np.float32)
            case("Cast of float to %s, saturate %d" % (kind, saturate),
                 ["q = Cast<to = %d, saturate = %d>(x)" % (ONNX[kind], saturate), "y = Cast<to = 1>(q)"],
                 [("x", "float", x)], [("y", "float", y)], opset=19)


def main():
    print("# SPDX-License-Identifier: Apache-2.0\n# Written by tests/special/make_models.py: special values.")
    for f in (reductions, choices, sums, softmaxes, pools, norms, resizes, comparisons, integers, casts):
        f()


if __name__ == "__main__":
    main()
