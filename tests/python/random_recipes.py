# SPDX-License-Identifier: Apache-2.0
"""What random_ops.py draws of operators that work on single elements, reduce, move and pick."""
import numpy as np
from onnx import numpy_helper

from random_ops import FLOATS, NARROW, NUMBER, NUMPY, Unfit, recipe

UNARY = """
    Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Identity IsNaN Log Neg Not Reciprocal Relu
    Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh BitwiseNot HardSwish Mish Det NonZero Size
    GlobalAveragePool GlobalMaxPool IsInf Elu Selu Celu LeakyRelu ThresholdedRelu HardSigmoid Shrink Gelu Swish
    Shape EyeLike GlobalLpPool
""".split()
BINARY = """
    Add Sub Mul Div Pow And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual BitwiseAnd BitwiseOr BitwiseXor
    BitShift Mod PRelu
""".split()
VARIADIC = "Sum Max Min Mean".split()


@recipe(*UNARY)
def unary(d):
    op, of = d.schema.name, d.schema.type_constraints[0].type_param_str
    # NonZero of a scalar: ONNX has [0, N], ONNX Runtime [1, N].
    least, most = {"Det": (2, 4), "EyeLike": (2, 2), "NonZero": (1, 4)}.get(op, (0, 5))
    if op.startswith("Global"):
        least, most = 3, 5
    fits = (lambda s: s[-1] == s[-2]) if op == "Det" else (lambda s: True)
    shape = d.shape(0, 2) + [d.size()] * 2 if op == "Det" else None
    x, dtype, s = d.x(least, most, of, fits=fits, shape=shape)
    if op.startswith("Global") and 0 in s[2:]:
        raise Unfit("no windows")
    if op in ("IsNaN", "IsInf", "Round", "Sign", "Relu", "Ceil") and dtype in ("float", "double") and d.maybe():
        a = d.array(dtype, s).reshape(-1)
        for k, v in enumerate([np.nan, np.inf, -np.inf, -0.0, 0.5, -2.5, 1.5]):
            if k < a.size:
                a[k] = v
        x = d.value(a.reshape(s), dtype)
    f = lambda *v: d.pick(None, *v)  # noqa: E731
    attributes = d.attr(alpha=f(1.0, 0.2, -0.5, 0.0) if op != "Celu" else f(1.0, 0.5), beta=f(0.5, 0.0, 2.0),
                        gamma=f(1.0, 2.0), lambd=f(0.5, 0.0), bias=f(0.0, 1.5), approximate=f("none", "tanh"),
                        detect_positive=f(0, 1), detect_negative=f(0, 1), start=f(0, 1, -1, -9, 9),
                        end=f(0, 1, -1, -9, 9), k=f(0, 1, -1, 9, -9),
                        dtype=f(1, 7, 11, 10, 9) if op == "EyeLike" else None, p=f(1, 2, 3))
    d.node([x], **attributes)


def broadcast(d, s):
    """A shape that broadcasts with s: shorter, of ones, or longer."""
    made = [d.pick(n, n, 1) for n in s][d.choose.randint(0, len(s)) if d.maybe(0.4) else 0:]
    made = [d.size() if n == 1 and d.maybe(0.3) else n for n in made]
    return ([d.pick(1, 2, 3)] if d.maybe(0.1) else []) + made


@recipe(*BINARY)
def binary(d):
    op = d.schema.name
    x, dtype, s = d.x(0, 5)
    t = broadcast(d, s)
    whole = NUMPY.get(dtype, "f")[0] in "iu"
    if op == "PRelu":
        t = [d.pick(n, 1) for n in s][d.choose.randint(0, len(s)):]
    if op in ("Div", "Mod") and whole:
        y = d.data(dtype, t, 1, 7)
    elif op == "BitShift":
        y = d.data(dtype, t, 0, 7)
    elif op == "Pow":
        dtype = d.type("T1") if any(c.type_param_str == "T1" for c in d.schema.type_constraints) else dtype
        y = d.value(np.round(d.array(dtype, t, 0, 3)) if dtype != "bool" else d.array(dtype, t), dtype)
    else:
        y = d.data(dtype, t)
    if op not in ("Pow", "PRelu", "BitShift", "Div", "Mod") and d.maybe(0.3):
        x, y = y, x
    floating = dtype in FLOATS or dtype in NARROW
    d.node([x, y], **d.attr(direction=d.pick("LEFT", "RIGHT") if op == "BitShift" else None,
                    fmod=1 if floating else d.pick(None, 0, 1)))


@recipe(*VARIADIC)
def variadic(d):
    x, dtype, s = d.x(0, 4)
    d.node([x] + [d.data(dtype, broadcast(d, s)) for _ in range(d.choose.randint(0, 3))])


@recipe("Where")
def where(d):
    x, dtype, s = d.x(0, 4)
    d.node([d.data("bool", broadcast(d, s)), x, d.data(dtype, broadcast(d, s))])


@recipe("Clip")
def clip(d):
    x, dtype, s = d.x(0, 4)
    if d.has("min"):
        return d.node([x], **d.attr(min=d.pick(None, -1.0, 0.5), max=d.pick(None, 1.0, 0.25)))
    bound = lambda a: d.value(np.asarray(a, NUMPY.get(dtype, "f4")), dtype)  # noqa: E731
    unsigned = NUMPY.get(dtype, "f")[0] == "u"
    d.node([
        x, bound(d.pick(0, 2) if unsigned else d.pick(-1, 0, 2)) if d.maybe() else "",
        bound(d.pick(1, 3)) if d.maybe() else ""
    ])


@recipe("Cast", "BitCast")
def cast(d):
    of = d.schema.type_constraints[0].type_param_str
    x, dtype, s = d.x(0, 4, of, among=NUMPY)  # from others: ONNX Runtime leaves the rounding to them out
    to = d.type(d.schema.type_constraints[1].type_param_str)
    if dtype in FLOATS and (NUMPY.get(to, "f")[0] in "u"):
        x = d.data(dtype, s, 0, 9)
    d.node([x], to=NUMBER[to], **d.attr(saturate=d.pick(None, 0, 1)))


@recipe("CastLike")
def cast_like(d):
    x, dtype, s = d.x(0, 4, "T1", among=NUMPY)
    to = d.type("T2")
    if NUMPY.get(to, "f")[0] == "u":
        x = d.data(dtype, s, 0, 9)
    d.node([x, d.data(to, d.shape(0, 2))], **d.attr(saturate=d.pick(None, 1)))


@recipe("Transpose")
def transpose(d):
    x, _, s = d.x(0, 6)
    d.node([x], perm=d.pick(None, d.choose.sample(range(len(s)), len(s))) if s else None)


def axis_of(d, rank):
    return d.choose.randint(-rank, rank - 1)


@recipe("Softmax", "LogSoftmax", "Hardmax", "LpNormalization")
def softmax(d):
    x, _, s = d.x(1, 4)
    low = 0 if d.opset < 11 else -len(s)
    axis = d.pick(None, d.choose.randint(low, len(s) - 1))
    if d.opset < 13 and len(s) == 1:
        axis = 0  # the default, 1, is no axis of x; ONNX Runtime then takes rows of one element, sinter refuses
    d.node([x], **d.attr(axis=axis, p=d.pick(None, 1, 2)))


@recipe("Flatten")
def flatten(d):
    x, _, s = d.x(0, 5)
    d.node([x], axis=d.pick(None, d.choose.randint(0 if d.opset < 11 else -len(s), len(s))) if s else 0)


@recipe("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
        "ReduceLogSumExp", "ReduceSumSquare")
def reduce(d):
    few = {"ReduceLogSum": (0.1, 4), "ReduceProd": (-1, 1)}.get(d.schema.name, (None, None))
    least = d.schema.name in ("ReduceMean", "ReduceMax", "ReduceMin")  # of nothing: not defined
    # Of integers, ONNX Runtime computes ReduceLogSumExp in integers, ONNX in f64.
    logs = ("float", "double") if d.schema.name in ("ReduceLogSum", "ReduceLogSumExp") else None
    x, dtype, s = d.x(0, 5, among=logs, low=few[0], high=few[1], fits=lambda s: not least or 0 not in s)
    if dtype == "bfloat16" and np.prod(s) > 16:
        raise Unfit("ONNX's reference rounds each of many sums")
    axes = d.choose.sample(range(len(s)), d.choose.randint(0, len(s)))
    axes = [a - len(s) if d.opset >= 11 and d.maybe(0.3) else a for a in axes]
    if d.has("axes"):
        return d.node([x], **d.attr(axes=d.pick(None, axes) if axes else None, keepdims=d.odd(1, 0)))
    d.node([x, d.numbers(axes) if d.maybe(0.7) else ""], **d.attr(keepdims=d.odd(1, 0),
                                                                  noop_with_empty_axes=d.odd(0, 1)))


@recipe("ArgMax", "ArgMin")
def arg(d):
    x, _, s = d.x(1, 4)
    axis = d.choose.randint(0 if d.opset < 11 else -len(s), len(s) - 1)
    if not s[axis]:
        raise Unfit("empty")
    d.node([x], **d.attr(axis=axis if axis or d.maybe() else None, keepdims=d.odd(1, 0), select_last_index=d.odd(0, 1)))


@recipe("CumSum", "CumProd")
def cumulate(d):
    x, _, s = d.x(1, 4)
    axis = axis_of(d, len(s))
    kind = d.pick("int32", "int64")
    d.node([x, d.numbers(axis, kind)], exclusive=d.odd(0, 1), reverse=d.odd(0, 1))


@recipe("Concat")
def concat(d):
    x, dtype, s = d.x(1, 4)
    axis = d.choose.randint(0 if d.opset < 11 else -len(s), len(s) - 1)
    rest = [
        d.data(dtype, [d.size() if k == axis % len(s) else n for k, n in enumerate(s)])
        for _ in range(d.choose.randint(0, 3))
    ]
    d.node([x] + rest if d.maybe() else rest + [x], axis=axis)


@recipe("Split")
def split(d):
    x, _, s = d.x(1, 4)
    axis = axis_of(d, len(s)) if d.opset >= 11 else d.choose.randrange(len(s))
    n = s[axis]
    count = d.choose.randint(1, 4)
    cuts = sorted(d.choose.randint(0, n) for _ in range(count - 1))
    parts = [b - a for a, b in zip([0] + cuts, cuts + [n])]
    given = axis if axis or d.maybe() else None
    if d.has("split"):
        if d.maybe() and n % count == 0:
            return d.node([x], count, axis=given)
        return d.node([x], count, axis=given, split=parts)
    if d.maybe(0.6):
        return d.node([x, d.numbers(parts)], count, axis=given)
    if d.has("num_outputs"):
        if n and -(-n // count) * (count - 1) > n:
            raise Unfit("split")
        return d.node([x], count, axis=given, num_outputs=count)
    if n % count:
        raise Unfit("split")
    d.node([x], count, axis=given)


@recipe("Slice")
def slices(d):
    x, _, s = d.x(1, 4)
    axes = d.choose.sample(range(len(s)), d.choose.randint(1, len(s)))
    starts, ends, steps = [], [], []
    for a in axes:
        starts.append(d.choose.randint(-s[a] - 2, s[a] + 2))
        steps.append(d.pick(1, 1, 1, 2, 3, -1, -2) if d.opset >= 10 else 1)
        ends.append(
            d.pick(d.choose.randint(-s[a] - 2, s[a] + 2), 2**31 - 1 if steps[-1] > 0 else -2**31 + 1,
                   2**63 - 1 if steps[-1] > 0 else -2**63 + 1))
    if d.opset >= 10:
        axes = [a - len(s) if d.maybe(0.3) else a for a in axes]
    if d.has("starts"):
        return d.node(
            [x], starts=starts, ends=ends,
            axes=axes if d.maybe(0.8) or sorted(axes) != list(range(len(axes))) or axes != sorted(axes) else None)
    kind = d.pick("int64", "int64", "int32") if max(map(abs, ends)) < 2**31 else "int64"
    ordered = [a % len(s) for a in axes] == list(range(len(axes)))
    ins = [x, d.numbers(starts, kind), d.numbers(ends, kind), "" if ordered and d.maybe() else d.numbers(axes, kind)]
    d.node(ins + (["" if d.maybe() else d.numbers(steps, kind)] if all(k == 1
                                                                       for k in steps) else [d.numbers(steps, kind)]))


@recipe("Reshape")
def reshape(d):
    x, _, s = d.x(0, 5)
    n = int(np.prod(s, dtype=int))
    made, left = [], n
    for _ in range(d.choose.randint(0, 4)):
        k = d.choose.choice([k for k in range(1, left + 1) if left % k == 0][:12]) if left else d.size()
        made.append(k)
        left = left // k if left else 0
    if n:
        made.append(left)
    elif 0 not in made:
        made.append(0)
    zero = d.has("allowzero") and 0 in made
    if n and d.maybe():
        k = d.choose.randrange(len(made))
        made[k] = -1
    elif n and len(made) and len(s) and made[0] == s[0] and d.maybe():
        made[0] = 0
    if 0 in made and n == 0 and not zero:
        raise Unfit("zero")
    d.node([x, d.numbers(made)], **d.attr(allowzero=1 if zero else None))


@recipe("Expand")
def expand(d):
    x, _, s = d.x(0, 4)
    made = [d.pick(n, 1) if n != 1 else d.size() for n in s]
    made = made[d.choose.randint(0, len(made)):] if d.maybe(0.2) else d.shape(0, 2) + made
    d.node([x, d.numbers(made)])


@recipe("Tile")
def tile(d):
    x, _, s = d.x(0, 4)
    d.node([x, d.numbers([d.pick(0, 1, 1, 2, 3) for _ in s])])


@recipe("Squeeze", "Unsqueeze")
def squeeze(d):
    x, _, s = d.x(0, 4, shape=None if d.maybe(0.3) else [d.pick(1, 1, 2, 3) for _ in range(d.choose.randint(0, 4))])
    if d.schema.name == "Squeeze":
        ones = [k for k, n in enumerate(s) if n == 1]
        axes = d.choose.sample(ones, d.choose.randint(0, len(ones))) or None
        rank = len(s)
    else:
        extra = d.choose.randint(1, 3)
        rank = len(s) + extra
        axes = d.choose.sample(range(rank), extra)
    if axes and d.opset >= 11:
        axes = [a - rank if d.maybe(0.3) else a for a in axes]
    if d.has("axes"):
        return d.node([x], axes=axes)
    d.node([x, d.numbers(axes)] if axes else [x])


@recipe("Pad")
def pad(d):
    mode = d.pick(None, "constant", "reflect", "edge") if d.opset < 19 else d.pick(None, "constant", "reflect", "edge",
                                                                                   "wrap")
    x, dtype, s = d.x(1, 4, fits=lambda s: mode in (None, "constant") or 0 not in s)
    begin, end = [], []
    axes = d.choose.sample(range(len(s)), d.choose.randint(1, len(s))) if d.inputs_most() >= 4 and d.maybe() else None
    for k in axes if axes is not None else range(len(s)):
        most = min(3, s[k] - 1) if mode in ("reflect", "wrap") else 3
        b, e = (d.choose.randint(-1 if s[k] > 2 else 0, max(0, most)) for _ in range(2))
        if s[k] + b + e < 0:
            b = e = 0
        begin.append(b)
        end.append(e)
    if d.has("pads"):
        return d.node([x], **d.attr(mode=mode, pads=begin + end,
                               value=d.pick(None, 1.5) if mode in (None, "constant") else None))
    ins = [
        x, d.numbers(begin + end), d.data(dtype, [], *((0, 9) if NUMPY.get(dtype, "f")[0] == "u" else
                            (-9, 9))) if mode in (None, "constant") and d.maybe() else ""
    ]
    if axes is not None:
        kind = d.pick("int64", "int32")
        ins.append(d.numbers([a - len(s) if d.maybe(0.3) else a for a in axes], kind))
    d.node(ins, mode=mode)


@recipe("Gather", "GatherElements")
def gather(d):
    x, _, s = d.x(1, 4)
    axis = axis_of(d, len(s)) if d.opset >= 11 or d.schema.name == "Gather" else d.choose.randrange(len(s))
    if not s[axis]:
        raise Unfit("empty")
    shape = d.shape(0, 2) if d.schema.name == "Gather" else [
        d.choose.randint(0 if d.maybe(0.1) else 1, n) if k != axis % len(s) else d.size() for k, n in enumerate(s)
    ]
    low = -s[axis] if d.opset >= 11 else 0
    i = d.array("int64", shape, low, s[axis] - 1).astype(d.pick("i4", "i8"))
    d.node([x, d.value(i)], axis=axis if axis or d.maybe() else None)


@recipe("GatherND")
def gather_nd(d):
    x, _, s = d.x(1, 4, fits=lambda s: 0 not in s)
    batch = d.choose.randint(0, min(2, len(s) - 1)) if d.has("batch_dims") else 0
    last = d.choose.randint(1, len(s) - batch)
    shape = s[:batch] + d.shape(0, 2)
    i = np.stack([d.array("int64", shape, -s[batch + k], s[batch + k] - 1) for k in range(last)], -1)
    d.node([x, d.value(i)], **d.attr(batch_dims=batch or None))


@recipe("ScatterElements")
def scatter(d):
    x, dtype, s = d.x(1, 4, fits=lambda s: 0 not in s)
    axis = axis_of(d, len(s))
    n = s[axis]
    kind = d.pick("none", "add", "mul", "max", "min") if d.has("reduction") else None
    shape = [d.choose.randint(1, m) for m in s]
    if kind in (None, "none") or dtype == "bool":
        i = np.stack([d.rng.permutation(n)[:shape[axis]] for _ in range(int(np.prod(shape)) // shape[axis])
                      ]).reshape(np.delete(shape, axis % len(s)).tolist() + [shape[axis]])
        i, kind = np.moveaxis(i, -1, axis), None
    else:
        i = d.array("int64", shape, -n, n - 1)
    d.node([x, d.value(i.astype(d.pick("i4", "i8"))), d.data(dtype, shape)],
           **d.attr(axis=axis if axis or d.maybe() else None, reduction=kind))


@recipe("ScatterND")
def scatter_nd(d):
    x, dtype, s = d.x(1, 4, fits=lambda s: 0 not in s)
    last = d.choose.randint(1, len(s))
    kind = d.pick("none", "add", "mul", "max", "min") if d.has("reduction") and dtype != "bool" else None
    lead = d.shape(1, 2)
    count, places = int(np.prod(lead, dtype=int)), int(np.prod(s[:last]))
    if kind in (None, "none"):
        if count > places:
            lead = [min(count, places)]
            count = lead[0]
        flat = d.rng.permutation(places)[:count]
    else:
        flat = d.rng.integers(0, places, count)
    i = np.stack(np.unravel_index(flat, s[:last]), -1).reshape(lead + [last]).astype("i8")
    d.node([x, d.value(i), d.data(dtype, lead + s[last:])], **d.attr(reduction=kind))


@recipe("TensorScatter")
def tensor_scatter(d):
    x, dtype, s = d.x(2, 4, fits=lambda s: 0 not in s)
    axis = d.pick(None, *[a for a in range(1 - len(s), 0)], *range(1, len(s)))
    k = (axis if axis is not None else -2) % len(s)
    if k == 0:
        raise Unfit("axis")
    m = d.choose.randint(1, s[k])
    mode = d.odd("linear", "circular")
    i = d.array("int64", [s[0]], 0, s[k] - 1 if mode == "circular" else s[k] - m)
    d.node([x, d.data(dtype, s[:k] + [m] + s[k + 1:]), d.value(i) if d.maybe(0.8) else ""], axis=axis, mode=mode)


@recipe("TopK")
def top_k(d):
    x, dtype, s = d.x(1, 4)
    axis = axis_of(d, len(s)) if d.opset >= 11 else d.choose.randrange(len(s))
    k = d.choose.randint(0 if d.opset > 10 else 1, max(s[axis], 1))
    if k > s[axis]:
        raise Unfit("k")
    given = None if axis in (-1, len(s) - 1) and d.maybe() else axis
    if d.has("k"):
        return d.node([x], 2, axis=given, k=k)
    d.node([x, d.numbers([k])], 2, **d.attr(axis=given, largest=d.odd(1, 0), sorted=1))


@recipe("OneHot")
def one_hot(d):
    s = d.shape(0, 3)
    depth = d.choose.randint(1, 6)
    kind, to = d.pick("int64", "int32", "float"), d.pick("float", "int64", "int32")
    i = d.array("int64", s, -depth - 1, depth + 1).astype(NUMPY[kind])
    how = d.pick("init", "input")
    n = d.value(np.array(depth if d.maybe() else [depth], d.pick("i8", "i4", "f4")), None, how)
    d.node([d.value(i), n, d.value(np.array([2, 5], NUMPY[to]))], axis=d.pick(None, axis_of(d, len(s) + 1)))


@recipe("Range")
def ranges(d):
    kind = d.type()
    start, delta, n = d.choose.randint(-5, 5), d.pick(1, 2, 3, -1, -2), d.choose.randint(-1, 6)
    how = d.pick("init", "input")
    d.node([d.value(np.array(v, NUMPY[kind]), None, how) for v in (start, start + delta * n + d.pick(0, 1, -1), delta)])


@recipe("ConstantOfShape")
def constant_of_shape(d):
    value = None if d.maybe(0.3) else numpy_helper.from_array(
        np.array([d.pick(0, 1, 3)], NUMPY[d.choose.choice(list(NUMPY))]), "v")
    d.node([d.numbers(d.shape(0, 4))], value=value)


@recipe("Trilu")
def trilu(d):
    x, _, s = d.x(2, 4)
    d.node([x, d.numbers(d.choose.randint(-4, 4)) if d.maybe() else ""], upper=d.odd(1, 0))


@recipe("Compress")
def compress(d):
    x, _, s = d.x(1, 3)
    axis = d.pick(None, axis_of(d, len(s)))
    n = s[axis] if axis is not None else int(np.prod(s))
    d.node([x, d.data("bool", [d.choose.randint(min(1, n), n)])], axis=axis)


@recipe("Unique")
def unique(d):
    x, _, s = d.x(1, 3, fits=lambda s: 0 not in s)
    d.node([x], d.choose.randint(1, 4), axis=d.pick(None, axis_of(d, len(s))), sorted=1)


@recipe("ReverseSequence")
def reverse_sequence(d):
    x, _, s = d.x(2, 4)
    t = d.pick(None, 0, 1)
    b = {None: d.pick(None, 1), 0: 1, 1: 0}[t]
    n = d.array("int64", [s[1 if b is None else b]], min(1, s[t or 0]), s[t or 0])
    d.node([x, d.value(n)], time_axis=t, batch_axis=b)


@recipe("DepthToSpace", "SpaceToDepth")
def depth_space(d):
    n, c, h, w, b = d.size(), d.pick(1, 2, 3), d.size(), d.size(), d.pick(1, 2, 3)
    shape = [n, c * b * b, h, w] if d.schema.name == "DepthToSpace" else [n, c, h * b, w * b]
    x, _, _ = d.x(4, 4, shape=shape)
    d.node([x], blocksize=b, **d.attr(mode=d.odd("DCR", "CRD") if d.schema.name == "DepthToSpace" else None))
