# SPDX-License-Identifier: Apache-2.0
"""Random, seeded models of one to three ONNX operators, drawn from the schemas of the package onnx: any version, any
element type that the schema names, attributes absent, at their defaults or odd, axes of size 0 and 1, optional inputs
absent, shapes that are constants or come at run time, named sizes. What a schema leaves open (how shapes fit together,
what values mean something) is in RECIPES, one function an operator or family."""
import random

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

NEWEST = 26  # what ONNX Runtime takes
NUMPY = {
    "float": "f4", "double": "f8", "float16": "f2", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint8":
    "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8", "bool": "?"
}
NARROW = {"bfloat16": ml_dtypes.bfloat16, "float8e4m3fn": ml_dtypes.float8_e4m3fn, "float8e5m2": ml_dtypes.float8_e5m2}
NUMBER = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "float16": 10, "double": 11, "uint32": 12, "uint64": 13, "bfloat16": 16, "float8e4m3fn": 17, "float8e5m2": 19
}
FLOATS = ("float", "double", "float16", "bfloat16")
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
# A small difference of the operand can make a large one of these results: floats of an operator before are not taken.
STEEP = set("""
    Reciprocal Floor Ceil Round Sign Cast CastLike BitCast Div Mod Pow Equal Greater Less GreaterOrEqual LessOrEqual
    Log Tan TopK ArgMax ArgMin Hardmax NonZero Unique Not And Or Xor DynamicQuantizeLinear Max Min IsNaN IsInf
    ThresholdedRelu Shrink LpNormalization MeanVarianceNormalization InstanceNormalization LayerNormalization
    RMSNormalization GroupNormalization Clip Normalizer Binarizer Det Atanh Acosh
""".split())
RECIPES = {}

FIRST, DEFAULT = {}, set()
for _s in onnx.defs.get_all_schemas_with_history():
    FIRST[_s.name] = max(7, min(FIRST.get(_s.name, 99), _s.since_version if _s.domain == "" else 7))
    if _s.domain == "":
        DEFAULT.add(_s.name)


class Unfit(Exception):
    """The draw came to nothing."""


def recipe(*names):
    def keep(function):
        RECIPES.update(dict.fromkeys(names, function))
        return function

    return keep


class Draw:
    """A model that grows by nodes. `feeds`: input -> array; `ready`: values that a further node may take."""
    def __init__(self, seed):
        self.choose = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inits, self.feeds, self.dims, self.free, self.results, self.types = [], [], {}, {}, {}, [], {}
        self.count, self.ready, self.ops = 0, {}, []

    # What a recipe asks for.
    def maybe(self, p=0.5):
        return self.choose.random() < p

    def pick(self, *values):
        return self.choose.choice(values)

    def size(self):
        return self.choose.choices([0, 1, 2, 3, 4, 5, 8, 17, 40], [1, 5, 6, 6, 5, 4, 2, 2, 1])[0]

    def shape(self, least=0, most=4):
        return [self.size() for _ in range(self.choose.randint(least, most))]

    def has(self, attribute):
        return attribute in self.schema.attributes

    def inputs_most(self):
        return len(self.schema.inputs)

    def type(self, of="T", among=None):
        """One of the types that the schema gives this type parameter."""
        for c in self.schema.type_constraints:
            if c.type_param_str == of:
                names = [t[7:-1] for t in c.allowed_type_strs if t.startswith("tensor(")]
                break
        else:
            raise Unfit(of)
        names = [n for n in names if (n in NUMPY or n in NARROW) and (not among or n in among)]
        if not names:
            raise Unfit(of)
        return "float" if "float" in names and self.maybe(0.5) else self.choose.choice(names)

    def array(self, dtype, shape, low=None, high=None):
        t = np.dtype(NUMPY[dtype]) if dtype in NUMPY else np.dtype("f4")
        if t.kind == "b":
            return self.rng.integers(0, 2, shape).astype("?")
        if t.kind in "iu":
            low = low if low is not None else (0 if t.kind == "u" else -9)
            return self.rng.integers(low, (high if high is not None else 9) + 1, shape).astype(t)
        a = self.rng.normal(size=shape) * 2 if low is None else self.rng.uniform(low, high, shape)
        if self.maybe(0.3):
            a = np.round(a)
        return np.asarray(a, t)

    def value(self, array, dtype=None, how=None):
        """The name of a value that holds this: an input, an initializer, or what a Constant gives."""
        array = np.asarray(array)
        how = how or self.pick("input", "input", "input", "init", "node")
        name = f"v{self.count}"
        self.count += 1
        if how == "init" or how == "node":
            t = numpy_helper.from_array(array, name)
            if how == "init":
                self.inits.append(t)
            else:
                self.nodes.append(helper.make_node("Constant", [], [name], value=t))
        else:
            self.feeds[name] = array
            dims = []
            for n in array.shape:
                if n and self.maybe(self.loose):
                    same = [k for k, v in self.free.items() if v == n]
                    key = self.choose.choice(same) if same and self.maybe() else f"d{len(self.free)}"
                    self.free[key] = n
                    dims.append(key)
                else:
                    dims.append(n)
            self.dims[name] = dims
        if dtype in NARROW:
            self.nodes.append(helper.make_node("Cast", [name], [name + "n"], to=NUMBER[dtype]))
            name += "n"
        return name

    def data(self, dtype, shape, low=None, high=None, how=None):
        return self.value(self.array(dtype, shape, low, high), dtype, how)

    def given(self, types, fits=lambda shape: True):
        """A value that is there already and of one of these types, or None."""
        if self.schema.name in STEEP and any(t in FLOATS for t in types):
            return None
        found = [(k, a) for k, a in self.ready.items()
                 if self.types.get(k) in types and fits(a.shape) and np.isfinite(a).all()]
        return self.choose.choice(found) if found and self.maybe(0.8) else None

    def x(self, least=0, most=4, of="T", among=None, fits=lambda shape: True, shape=None, low=None, high=None):
        """(name, type, shape) of the operand that the operator is about."""
        dtype = self.type(of, among)
        found = self.given([dtype],
                           lambda s: least <= len(s) <= most and fits(s)) if shape is None and low is None else None
        if found:
            return found[0], dtype, list(found[1].shape)
        for _ in range(40):
            made = shape if shape is not None else self.shape(least, most)
            if fits(made):
                return self.data(dtype, made, low, high), dtype, list(made)
        raise Unfit("shape")

    def numbers(self, values, dtype="int64", how=None):
        """A shape-like operand: mostly constant."""
        return self.value(np.array(values, NUMPY[dtype]), None, how or self.pick("init", "init", "node", "input"))

    def attr(self, **wanted):
        """Those of these attributes that this version has; None: absent."""
        return {k: v for k, v in wanted.items() if v is not None and self.has(k)}

    def odd(self, default, *others):
        """An attribute: absent, at its default, or something else."""
        return self.pick(None, default, *others) if others else self.pick(None, default)

    def node(self, ins, outs=1, **attributes):
        names = [f"r{self.count}_{k}" for k in range(outs)]
        self.count += 1
        while ins and ins[-1] == "":
            ins = ins[:-1]
        node = helper.make_node(self.schema.name, ins, names, domain=self.schema.domain)
        for k, v in attributes.items():
            if v is None:
                continue
            a = helper.make_attribute(k, v,
                                      attr_type=onnx.AttributeProto.AttributeType(self.schema.attributes[k].type.value)
                                      if k in self.schema.attributes and isinstance(v,
                                                                                    (list, tuple)) and not v else None)
            node.attribute.append(a)
        self.nodes.append(node)
        self.results += names
        return names

    # The whole.
    def grow(self, op, domain=""):
        version = self.opset if domain == "" else 5
        self.schema = onnx.defs.get_schema(op, version, domain)
        if self.schema.deprecated:
            raise Unfit("deprecated")
        self.loose = self.pick(0, 0, 0.3, 1)
        self.ops.append(op)
        before = len(self.results)
        RECIPES[op](self)
        if len(self.results) == before:
            raise Unfit("nothing")

    def widen(self):
        """Results of types that NumPy lacks leave as f32."""
        made = onnx.shape_inference.infer_shapes(self.model()).graph
        types = {v.name: v.type.tensor_type.elem_type for v in made.output}
        narrow = {NUMBER[k] for k in NARROW}
        for k, name in enumerate(self.results):
            if types.get(name) in narrow:
                self.nodes.append(helper.make_node("Cast", [name], [name + "_w"], to=1))
                self.results[k] = name + "_w"

    def model(self, outputs=None):
        def info(name, a, dims):
            return helper.make_tensor_value_info(
                name, TensorProto.STRING if a.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(a.dtype), dims)

        out = [helper.make_empty_tensor_value_info(r) for r in (outputs or self.results)]
        graph = helper.make_graph(self.nodes, "random", [info(k, a, self.dims[k]) for k, a in self.feeds.items()], out,
                                  self.inits)
        ops = [helper.make_opsetid("", self.opset)] + ([helper.make_opsetid("ai.onnx.ml", 5)] if any(
            n.domain for n in self.nodes) else [])
        return helper.make_model(graph, opset_imports=ops, ir_version=10)


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
    d.node([x], **d.attr(axis=d.pick(None, d.choose.randint(low, len(s) - 1)), p=d.pick(None, 1, 2)))


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
    x, _, s = d.x(0, 5, among=logs, low=few[0], high=few[1], fits=lambda s: not least or 0 not in s)
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


@recipe("MatMul")
def matmul(d):
    x, dtype, s = d.x(1, 4)
    if len(s) == 1:
        t = d.pick([s[0]], [s[0], d.size()], [d.pick(1, 2), s[0], d.size()])
    else:
        t = d.pick([s[-1]], [s[-1], d.size()], broadcast(d, s[:-2]) + [s[-1], d.size()])
    d.node([x, d.data(dtype, t)])


@recipe("Gemm")
def gemm(d):
    x, dtype, s = d.x(2, 2)
    ta, tb, n = d.odd(0, 1), d.odd(0, 1), d.size()
    k, m = (s[0], s[1]) if ta else (s[1], s[0])
    c = d.data(dtype, d.pick([m, n], [n], [1, n], [m, 1], [1], [])) if d.maybe(0.7) or d.opset < 11 else ""
    whole = dtype not in FLOATS
    d.node([x, d.data(dtype, [n, k] if tb else [k, n]), c], transA=ta, transB=tb,
           alpha=None if whole else d.odd(1.0, 0.5), beta=None if whole else d.odd(1.0, 2.0, 0.0))


def windows(d, rank, sizes, pool=False):
    """kernel, attributes of windows that fit."""
    kernel, strides, dilations, begin, end = [], [], [], [], []
    for k in range(rank):
        n = d.choose.randint(1, 3)
        dil = d.pick(1, 1, 1, 2)
        b, e = (d.choose.randint(0, n - 1 if pool else 2) for _ in range(2))
        if (n - 1) * dil + 1 > sizes[k] + b + e:
            n, dil = 1, 1
            b = e = 0
        kernel.append(n)
        strides.append(d.pick(1, 1, 2, 3))
        dilations.append(dil)
        begin.append(b)
        end.append(e)
    auto = d.pick(None, None, "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    if auto == "VALID" and any((n - 1) * dil + 1 > s for n, dil, s in zip(kernel, dilations, sizes)):
        auto = None
    out = {"strides": strides if d.maybe(0.7) else None, "auto_pad": auto}
    out["dilations"] = dilations if any(k != 1 for k in dilations) or d.maybe(0.3) else None
    if auto in (None, "NOTSET"):
        out["pads"] = begin + end if any(begin + end) or d.maybe(0.5) else None
    return kernel, out


@recipe("Conv", "ConvInteger", "QLinearConv")
def conv(d):
    rank, groups = d.pick(1, 2, 2, 3), d.pick(1, 1, 2, 3)
    sizes = [d.choose.randint(1, 9) for _ in range(rank)]
    shape = [d.pick(0, 1, 2, 3, 1, 2), groups * d.pick(1, 2, 4), *sizes]
    kernel, attributes = windows(d, rank, sizes)
    m = groups * d.pick(1, 2, 3, 8)
    attributes.update(group=groups if groups > 1 else d.odd(1), kernel_shape=d.pick(None, kernel))
    w = [m, shape[1] // groups, *kernel]
    if d.schema.name == "Conv":
        x, dtype, _ = d.x(shape=shape)
        return d.node([x, d.data(dtype, w), d.data(dtype, [m]) if d.maybe() else ""], **attributes)
    a, b = (d.pick("uint8", "int8") for _ in range(2))

    def zero(t, n=None):
        return d.data(t, [] if n is None else [n], 0, 3)

    if d.schema.name == "ConvInteger":
        return d.node([d.data(a, shape), d.data(b, w), zero(a) if d.maybe() else "", d.pick("", zero(b))], **attributes)
    n = d.pick(None, m)
    d.node([
        d.data(a, shape), d.data("float", [], 0.1, 1), zero(a), d.data(b, w),
        d.data("float", [] if n is None else [n], 0.1, 1), zero(b, n), d.data("float", [], 0.5, 2), zero(a),
        d.data("int32", [m]) if d.maybe() else ""
    ], **attributes)


@recipe("ConvTranspose")
def conv_transpose(d):
    rank, groups = d.pick(1, 2, 2, 3), d.pick(1, 1, 2)
    sizes = [d.choose.randint(1, 6) for _ in range(rank)]
    shape = [d.pick(1, 2), groups * d.pick(1, 2, 3), *sizes]
    kernel, attributes = windows(d, rank, sizes)
    m = d.pick(1, 2, 4)
    attributes.update(group=groups if groups > 1 else None, kernel_shape=d.pick(None, kernel))
    strides = attributes["strides"] or [1] * rank
    dil = attributes["dilations"] or [1] * rank
    if (attributes["auto_pad"] or "").startswith("SAME") and any(s > (k - 1) * q + 1
                                                                 for s, k, q in zip(strides, kernel, dil)):
        attributes["auto_pad"] = None  # a negative pad: ONNX Runtime takes 0
    if d.maybe(0.3):
        attributes["output_padding"] = [d.choose.randint(0, max(s, q) - 1) for s, q in zip(strides, dil)]
    if d.maybe(0.2):
        extra = attributes.get("output_padding") or [0] * rank
        attributes.pop("pads", None)
        attributes["output_shape"] = [
            max(1, (n - 1) * s + (k - 1) * q + 1 + e - d.choose.randint(0, 2))
            for n, s, k, q, e in zip(sizes, strides, kernel, dil, extra)
        ]
    x, dtype, _ = d.x(shape=shape)
    d.node([x, d.data(dtype, [shape[1], m, *kernel]), d.data(dtype, [m * groups]) if d.maybe() else ""], **attributes)


@recipe("MaxPool", "AveragePool", "LpPool")
def pool(d):
    rank = d.pick(1, 2, 2, 3)
    sizes = [d.choose.randint(1, 9) for _ in range(rank)]
    x, _, _ = d.x(shape=[d.pick(0, 1, 2, 2), d.pick(1, 2, 3), *sizes])
    kernel, attributes = windows(d, rank, sizes, True)
    if attributes["strides"] and any(
            a > b for a, b in zip(attributes["strides"], kernel)) and (attributes["auto_pad"] or "").startswith("SAME"):
        attributes["auto_pad"] = None  # a negative pad: refused by ONNX Runtime, or a window that moves
    if not d.has("dilations") or (attributes["auto_pad"]
                                  or "").startswith("SAME"):  # there ONNX Runtime takes other sizes
        attributes["dilations"] = None
    outs = 2 if d.schema.name == "MaxPool" and d.opset >= 8 and d.maybe(0.3) else 1
    d.node([x], outs, kernel_shape=kernel, **{k: v
              for k, v in attributes.items() if v is not None},
           **d.attr(ceil_mode=d.odd(0, 1), count_include_pad=d.odd(0, 1), p=d.odd(2, 1, 3),
                    storage_order=d.odd(0, 1) if outs == 2 else None))


@recipe("MaxUnpool")
def max_unpool(d):
    n, c, h, w = d.pick(1, 2), d.pick(1, 2), d.choose.randint(1, 4), d.choose.randint(1, 4)
    k, s = [d.choose.randint(1, 3) for _ in range(2)], [d.choose.randint(1, 3) for _ in range(2)]
    full = [n, c, (h - 1) * s[0] + k[0], (w - 1) * s[1] + k[1]]
    total = int(np.prod(full))
    if n * c * h * w > total:
        raise Unfit("small")
    i = d.rng.permutation(total)[:n * c * h * w].reshape(n, c, h, w).astype("i8")
    if d.maybe(0.3):  # of another size, ONNX Runtime takes the places as they are, ONNX does not
        return d.node([d.data("float", [n, c, h, w]), d.value(i), d.numbers(full)], kernel_shape=k, strides=s)
    d.node([d.data("float", [n, c, h, w]), d.value(i)], kernel_shape=k, strides=s)


@recipe("BatchNormalization")
def batch_norm(d):
    x, dtype, s = d.x(2, 5)
    c = s[1]
    d.node([x, *[d.data(dtype, [c])
                 for _ in range(3)], d.data(dtype, [c], 0.5, 2)], **d.attr(epsilon=d.odd(1e-5, 1e-2), spatial=d.odd(1)))


@recipe("InstanceNormalization")
def instance_norm(d):
    x, dtype, s = d.x(3, 5, fits=lambda s: 0 not in s and np.prod(s[2:]) > 1)
    d.node([x, d.data(dtype, [s[1]]), d.data(dtype, [s[1]])], epsilon=d.odd(1e-5, 1e-2))


@recipe("GroupNormalization")
def group_norm(d):
    g = d.pick(1, 2, 3)
    c = g * d.pick(1, 2, 4)
    x, dtype, s = d.x(shape=[d.pick(1, 2), c, *[d.choose.randint(1, 5) for _ in range(d.choose.randint(0, 3))]])
    n = c if d.opset >= 21 else g
    d.node([x, d.data(dtype, [n]), d.data(dtype, [n])], num_groups=g, epsilon=d.odd(1e-5, 1e-2),
           **d.attr(stash_type=d.odd(1)))


@recipe("LayerNormalization", "RMSNormalization")
def layer_norm(d):
    x, dtype, s = d.x(1, 4)
    axis = d.pick(None, axis_of(d, len(s)))
    t = s[(-1 if axis is None else axis) % len(s):]
    t = [d.pick(n, n, 1) for n in t] if d.maybe(0.1) else t
    more = {} if d.schema.name == "RMSNormalization" else {"b": d.data(dtype, t) if d.maybe() else ""}
    d.node([x, d.data(dtype, t), *more.values()], d.pick(1, 1, 2, 3) if more else 1, axis=axis,
           epsilon=d.odd(1e-5, 1e-2), stash_type=d.odd(1))


@recipe("MeanVarianceNormalization")
def mvn(d):
    x, _, s = d.x(4, 4, fits=lambda s: min(s) > 1)  # of one element: ONNX Runtime gives NaN
    d.node([x], axes=d.pick(None, d.choose.sample(range(len(s)), d.choose.randint(1, len(s)))))


@recipe("LRN")
def lrn(d):
    x, _, _ = d.x(3, 5, fits=lambda s: 0 not in s)
    d.node([x], size=d.pick(1, 3, 5, 2), alpha=d.odd(1e-4, 0.5), beta=d.odd(0.75, 1.0), bias=d.odd(1.0, 2.0))


@recipe("Dropout")
def dropout(d):
    x, _, s = d.x(0, 4)
    if d.has("ratio"):
        return d.node([x], ratio=d.odd(0.5, 0.1))
    d.node([
        x, d.numbers(0.3, "float") if d.maybe() else "",
        d.value(np.array(False)) if d.maybe(0.3) and d.opset >= 12 else ""
    ], d.pick(1, 2))


@recipe("Resize")
def resize(d):
    rank = d.pick(1, 2, 3, 4, 4, 5)
    s = [d.choose.randint(1, 6) for _ in range(rank)]
    mode = d.pick(None, "nearest", "linear", "cubic")
    if mode in ("linear", "cubic") and rank > (2 if mode == "cubic" else 3):
        s[0:2] = [d.pick(1, 2), d.pick(1, 3)]
        free = list(range(max(rank - (2 if mode == "cubic" else 3), 0), rank))
    else:
        free = list(range(rank))
    # Of integers, what is between: ONNX rounds, ONNX Runtime cuts off.
    x, dtype, _ = d.x(of="T1" if d.opset >= 11 else "T", among=None if mode in (None, "nearest") else FLOATS, shape=s)
    scales = [d.pick(1.0, 2.0, 0.5, 1.5, 0.7, 3.0) if k in free else 1.0 for k in range(rank)]
    coordinate = d.pick(None, "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
                        *(["half_pixel_symmetric"] if d.opset >= 19 else []))
    if coordinate == "align_corners":  # of a fraction: ONNX keeps it in the length, ONNX Runtime does not
        scales = [float(max(1, int(f))) for f in scales]
    scales = [1.0 if int(n * f) == 0 else f for n, f in zip(s, scales)]
    if d.opset < 11:
        return d.node([x, d.numbers(scales, "float")],
                      mode=d.pick(None, "nearest", "linear") if rank in (2, 4) else None)
    if coordinate == "tf_crop_and_resize":
        roi = d.numbers([d.pick(0.0, 0.125, 0.25) if k in free else 0.0
                         for k in range(rank)] + [d.pick(1.0, 0.75, 1.25) if k in free else 1.0 for k in range(rank)],
                        "float", "init")
    else:
        roi = "" if d.opset >= 13 or d.maybe() else d.numbers([], "float", "init")
    attributes = d.attr(mode=mode, coordinate_transformation_mode=coordinate,
                        nearest_mode=d.pick(None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil") if mode
                        in (None, "nearest") else None, cubic_coeff_a=d.odd(-0.75, -0.5) if mode == "cubic" else None,
                        exclude_outside=d.odd(0, 1) if mode == "cubic" else None, extrapolation_value=d.odd(0.0, 3.0),
                        antialias=d.odd(0, 1) if mode in ("linear", "cubic") and rank == 4 else None)
    if d.maybe():
        out = [int(n * f) if k in free else n for k, (n, f) in enumerate(zip(s, scales))]
        if d.opset >= 18 and d.maybe(0.4):
            axes = free
            out = [out[a] for a in axes]
            policy = d.pick(None, "stretch", "not_larger", "not_smaller")
            if coordinate == "tf_crop_and_resize":
                roi = d.numbers([0.25] * len(axes) + [0.75] * len(axes), "float", "init")
            # Axes from the back with a policy: ONNX Runtime takes the policy for other axes.
            return d.node([x, roi, "", d.numbers(out)],
                          axes=[a - rank if d.maybe(0.3) and policy is None else a for a in axes],
                          keep_aspect_ratio_policy=policy, **attributes)
        return d.node([x, roi, d.numbers([], "float", "init") if d.opset < 13 else "", d.numbers(out)], **attributes)
    if coordinate == "tf_crop_and_resize":  # sizes of scales: ONNX Runtime leaves the roi out of them
        raise Unfit("crop by scales")
    d.node([x, roi or (d.numbers([], "float", "init") if d.opset < 13 else ""),
            d.numbers(scales, "float")], **attributes)


@recipe("Upsample")
def upsample(d):
    mode = d.odd("nearest", "linear")
    x, _, s = d.x(4, 4, among=FLOATS if mode == "linear" else None, fits=lambda s: 0 not in s)
    scales = [1.0, 1.0, d.pick(1.0, 2.0, 1.5), d.pick(1.0, 2.0, 3.0)]
    if d.has("scales"):
        return d.node([x], scales=scales, mode=mode)
    d.node([x, d.numbers(scales, "float")], mode=mode)


@recipe("GridSample")
def grid_sample(d):
    rank = d.pick(2, 2, 3) if d.opset >= 20 else 2
    n, c = d.pick(1, 2), d.pick(1, 3)
    x, _, _ = d.x(of="T1", shape=[n, c] + [d.choose.randint(1, 6) for _ in range(rank)])
    modes = ("linear", "nearest") + (("cubic", ) if rank == 2 else
                                     ()) if d.opset >= 20 else ("bilinear", "nearest", "bicubic")
    grid = d.data("float", [n] + [d.choose.randint(1, 5) for _ in range(rank)] + [rank], -1.3, 1.3)
    d.node([x, grid], mode=d.pick(None, *modes), padding_mode=d.pick(None, "zeros", "border", "reflection"),
           align_corners=d.odd(0, 1))


@recipe("AffineGrid")
def affine_grid(d):
    rank, n = d.pick(2, 3), d.pick(1, 2)
    theta = d.data(d.type("T1", FLOATS[:2]), [n, rank, rank + 1])
    corners = d.odd(0, 1)
    least = 2 if corners else 1  # one place between two corners: not defined
    d.node([theta, d.numbers([n, 2] + [d.choose.randint(least, 5) for _ in range(rank)])], align_corners=corners)


@recipe("RoiAlign")
def roi_align(d):
    n, h, w = d.pick(1, 2), d.choose.randint(2, 8), d.choose.randint(2, 8)
    dtype = d.type("T1", FLOATS[:2])
    k = d.size()
    a = np.sort(d.rng.uniform(-1, 9, (k, 2, 2)), 1).reshape(k, 4)
    d.node([
        d.data(dtype, [n, d.pick(1, 3), h, w]), d.value(a.astype(NUMPY[dtype])),
        d.value(d.array("int64", [k], 0, n - 1))
    ],
           **d.attr(mode=d.odd("avg", "max"), output_height=d.odd(1, 3), output_width=d.odd(1, 2),
                    sampling_ratio=d.odd(0, 2), spatial_scale=d.odd(1.0, 0.5),
                    coordinate_transformation_mode=d.odd("half_pixel", "output_half_pixel")))


@recipe("MaxRoiPool")
def max_roi_pool(d):
    n, k = d.pick(1, 2), d.pick(1, 3)
    a = np.concatenate([d.rng.integers(0, n, (k, 1)), np.sort(d.rng.integers(0, 8, (k, 2, 2)), 1).reshape(k, 4)], 1)
    d.node([d.data("float", [n, 2, 6, 7]), d.value(a.astype("f4"))], pooled_shape=[d.pick(1, 2, 3), d.pick(1, 2)],
           spatial_scale=d.odd(1.0, 0.5))


@recipe("Col2Im")
def col2im(d):
    rank = d.pick(1, 2, 2, 3)
    image = [d.choose.randint(3, 7) for _ in range(rank)]
    block = [d.choose.randint(1, 3) for _ in range(rank)]
    strides = [d.pick(1, 2) for _ in range(rank)] if d.maybe() else None
    pads = [d.pick(0, 1) for _ in range(2 * rank)] if d.maybe() else None
    n, c = d.pick(1, 2), d.pick(1, 2)
    count = 1
    for k in range(rank):
        count *= (image[k] + (pads[k] + pads[rank + k] if pads else 0) - block[k]) // (strides[k] if strides else 1) + 1
    d.node([d.data("float", [n, c * int(np.prod(block)), count]), d.numbers(image), d.numbers(block)],
           strides=strides, pads=pads)


@recipe("LSTM", "GRU", "RNN")
def recurrent(d):
    op = d.schema.name
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    t, b, i, h = d.choose.randint(1, 5), d.choose.randint(1, 3), d.choose.randint(1, 4), d.choose.randint(1, 5)
    direction = d.odd("forward", "reverse", "bidirectional")
    n = 2 if direction == "bidirectional" else 1
    layout = d.odd(0) if d.has("layout") else None
    dtype = d.type(among=("float", ))
    w = lambda *s: d.value(d.array(dtype, s, -1, 1), None, d.pick("init", "init", "input"))  # noqa: E731
    ins = [
        d.data(dtype, [t, b, i]), w(n, gates * h, i), w(n, gates * h, h), w(n, 2 * gates * h) if d.maybe(0.7) else "",
        d.value(d.array("int32", [b], 1, t)) if d.maybe(0.3) else "", d.data(dtype, [n, b, h]) if d.maybe() else ""
    ]
    if op == "LSTM":
        ins += [d.data(dtype, [n, b, h]) if d.maybe() else "", w(n, 3 * h) if d.maybe(0.3) else ""]
    some = ("Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign", "LeakyRelu", "Elu", "ThresholdedRelu", "ScaledTanh",
            "Affine")
    per = {"LSTM": 3, "GRU": 2, "RNN": 1}[op]
    acts = [d.choose.choice(some) for _ in range(per * n)] if d.maybe(0.4) else None
    alpha = beta = None
    if acts and d.maybe():
        takes = [a for a in acts if a in ("HardSigmoid", "LeakyRelu", "Elu", "ThresholdedRelu", "ScaledTanh", "Affine")]
        alpha = [0.4] * len(takes) or None
        beta = [0.6] * len([a for a in takes if a in ("HardSigmoid", "ScaledTanh", "Affine")]) or None
    elif acts:
        acts = [a if a not in ("ScaledTanh", "Affine", "ThresholdedRelu") else "Tanh" for a in acts]
    d.node(ins, 3 if op == "LSTM" else 2, hidden_size=h, direction=direction, activations=acts,
           activation_alpha=alpha, activation_beta=beta, **d.attr(layout=layout, clip=d.pick(None, None, 0.5),
                    linear_before_reset=d.odd(0, 1), input_forget=d.odd(0, 1)))


@recipe("QuantizeLinear", "DequantizeLinear")
def quantize(d):
    to = d.pick("int8", "uint8", *(["int16", "uint16"] if d.opset >= 21 else []),
                *(["int32"] if d.schema.name[0] == "D" else []), *(["float8e4m3fn"] if d.opset >= 19 else []))
    s = d.shape(1, 4)
    rank = len(s)
    way = d.pick("tensor", "axis",
                 "block") if d.opset >= 21 else d.pick("tensor", "axis") if d.opset >= 10 else "tensor"
    if way != "tensor" and d.opset < 13:
        way = "tensor"
    axis = axis_of(d, rank)
    block = None
    t = []
    if way == "axis":
        t = [s[axis]]
    if way == "block":
        block = d.choose.randint(1, max(1, s[axis]))
        t = [-(-n // block) if k == axis % rank else n for k, n in enumerate(s)]
    floats = d.pick("float", "float", *(["float16"] if d.opset >= 19 else []))
    scale = d.value(np.exp2(d.rng.integers(-3, 2, t)).astype(NUMPY[floats]))
    zero = d.data(to, t, 0, 0 if to in (
        "int32", "float8e4m3fn") else 3) if d.maybe(0.6) or to not in ("uint8", ) and d.schema.name[0] == "Q" else ""
    x = d.data(floats, s) if d.schema.name[0] == "Q" else d.data(to, s)
    more = d.attr(axis=axis if way != "tensor" and (axis != 1 or d.maybe()) else None, block_size=block)
    d.node([x, scale, zero], **more)


@recipe("DynamicQuantizeLinear")
def dynamic_quantize(d):
    x, _, _ = d.x(0, 4, "T1", fits=lambda s: 0 not in s)
    d.node([x], 3)


@recipe("MatMulInteger", "QLinearMatMul")
def matmul_integer(d):
    a, b = (d.pick("uint8", "int8") for _ in range(2))
    s = d.shape(1, 3) + [d.size() or 1]  # sums of nothing: ONNX Runtime forgets the zero point
    t = [s[-1], d.size()]
    if d.schema.name == "MatMulInteger":
        return d.node([
            d.data(a, s), d.data(b, t), d.data(a, [], 0, 3) if d.maybe() else "",
            d.data(b, d.pick([], [t[1]]), 0, 3) if d.maybe() else ""
        ])
    n = d.pick([], [t[1]])
    d.node([
        d.data(a, s), d.data("float", [], 0.1, 1), d.data(a, [], 0, 3), d.data(b, t), d.data("float", n, 0.1, 1),
        d.data(b, n, 0, 3), d.data("float", [], 1, 4), d.data(a, [], 0, 3)
    ])


@recipe("Einsum")
def einsum(d):
    equation = d.pick("ij,jk->ik", "bij,bjk->bik", "ii->i", "ij->ji", "i,j->ij", "...ij,...jk->...ik", "ijk->",
                      "bhqd,bhkd->bhqk", "ij,ij->", "ab,bc,cd->ad", "ii", "...i->...", "i,i")
    left = equation.split("->")[0].split(",")
    sizes, extra = {}, d.shape(0, 2)
    ins = []
    dtype = d.type()
    for term in left:
        shape = []
        for c in term.replace("...", "."):
            shape += extra if c == "." else [sizes.setdefault(c, d.size())]
        ins.append(d.data(dtype, shape))
    d.node(ins, equation=equation)


@recipe("Attention")
def attention(d):
    b, h, q, k, e, v = d.pick(1, 2), d.pick(1, 2, 4), d.choose.randint(1, 5), d.choose.randint(1, 6), d.pick(1, 4,
                                                                                                       8), d.pick(2, 4)
    hk = d.pick(h, 1) if h > 1 else h
    dtype = d.type("T1", ("float", "float16", "double"))
    flat = d.maybe()
    causal = d.odd(0, 1)
    past = d.choose.randint(0, 3) if d.maybe(0.3) and causal in (None, 0, 1) else None
    Q, K, V = ([b, q, h * e], [b, k, hk * e], [b, k, hk * v]) if flat else ([b, h, q, e], [b, hk, k, e], [b, hk, k, v])
    total = k + (past or 0)
    mask = d.pick("", "bool", "float")
    if mask:
        kind = "bool" if mask == "bool" else dtype
        shape = d.pick([q, total], [b, 1, q, total], [1, h, q, total], [b, h, q, total])
        m = d.array(kind, shape)
        if kind == "bool":
            m[..., 0] = True
        mask = d.value(m)
    ins = [d.data(dtype, Q), d.data(dtype, K), d.data(dtype, V), mask]
    outs = 1
    if past is not None:
        ins += [d.data(dtype, [b, hk, past, e]), d.data(dtype, [b, hk, past, v])]
        outs = 3
    more = {"q_num_heads": h, "kv_num_heads": hk} if flat else {}
    d.node(ins, outs, is_causal=causal, scale=d.odd(0.5), softcap=d.odd(0.0, 2.0), **more)


@recipe("RotaryEmbedding")
def rotary(d):
    b, h, t, e = d.pick(1, 2), d.pick(1, 2), d.choose.randint(1, 5), d.pick(2, 4, 8)
    dtype = d.type()
    part = d.pick(None, e // 2 if e > 2 else None)
    n = (part or e) // 2
    flat = d.maybe()
    more = {"num_heads": h} if flat else {}
    x = d.data(dtype, [b, t, h * e] if flat else [b, h, t, e])
    if part and flat is False:
        more["num_heads"] = h
    if d.maybe():
        ins = [x, d.data(dtype, [9, n]), d.data(dtype, [9, n]), d.value(d.array("int64", [b, t], 0, 8))]
    else:
        ins = [x, d.data(dtype, [b, t, n]), d.data(dtype, [b, t, n])]
    d.node(ins, interleaved=d.odd(0, 1), rotary_embedding_dim=part, **more)


@recipe("NonMaxSuppression")
def nms(d):
    b, c, n = d.pick(1, 2), d.pick(1, 2), d.choose.randint(1, 9)
    centre = d.odd(0, 1)
    a = d.rng.uniform(0, 6, (b, n, 4)).astype("f4")
    opt = [
        d.numbers(d.choose.randint(0, 4) if d.maybe() else [d.choose.randint(1, 4)]), d.numbers([0.4], "float"),
        d.numbers([0.3], "float")
    ]
    d.node([
        d.value(a),
        d.value(d.rng.permutation(b * c * n).reshape(b, c, n).astype("f4") / (b * c * n)), *opt[:d.choose.randint(1, 3)]
    ],
           center_point_box=centre)


@recipe("DFT")
def dft(d):
    dtype = d.type("T1", FLOATS[:2])
    s = [d.pick(1, 2)] + [d.choose.randint(1, 7) for _ in range(d.choose.randint(1, 2))]
    whole = d.maybe()
    inverse = d.odd(0, 1)
    onesided = d.odd(0, 1)
    if onesided and inverse:
        inverse = None
    if onesided:
        whole = False
    x = d.data(dtype, s + [2 if whole else 1])
    length = d.numbers(d.choose.randint(1, 9)) if d.maybe() else ""
    axis = d.choose.randint(1, len(s) - 1)
    if d.has("axis"):
        return d.node([x, length], axis=axis if axis != 1 or d.maybe() else None, inverse=inverse, onesided=onesided)
    d.node([x, length, d.numbers(d.pick(axis, axis - len(s) - 1)) if d.maybe() else ""], inverse=inverse,
           onesided=onesided)


@recipe("STFT")
def stft(d):
    n, frame, step = d.choose.randint(8, 20), d.choose.randint(2, 8), d.choose.randint(1, 5)
    dtype = d.type("T1", FLOATS[:2])
    onesided = d.odd(1, 0)
    signal = d.data(dtype, [d.pick(1, 2), n, 1])
    w = d.data(dtype, [frame]) if d.maybe() else ""
    d.node([signal, d.numbers(step), w, d.numbers(frame) if not w or d.maybe() else ""], onesided=onesided)


@recipe("HannWindow", "HammingWindow", "BlackmanWindow")
def window(d):
    d.node([d.numbers(d.choose.randint(2, 9), d.pick("int32", "int64"))], periodic=d.odd(1, 0),
           output_datatype=d.pick(None, 1, 11))


@recipe("MelWeightMatrix")
def mel(d):
    d.node([
        d.numbers(d.pick(3, 8)), d.numbers(d.pick(16, 32)), d.numbers(8192), d.numbers(d.pick(0.0, 100.0), "float"),
        d.numbers(4000.0, "float")
    ])


@recipe("CenterCropPad")
def center_crop_pad(d):
    x, _, s = d.x(1, 4)
    axes = d.choose.sample(range(len(s)), d.choose.randint(1, len(s))) if d.maybe() else None
    d.node([x, d.numbers([d.choose.randint(1, 8) for _ in (axes if axes is not None else s)])], axes=axes)


@recipe("DeformConv")
def deform_conv(d):
    n, g = d.pick(1, 2), d.pick(1, 2)
    c, m, h, w = g * 2, g * 2, d.choose.randint(3, 6), d.choose.randint(3, 6)
    o = d.pick(1, 2)
    kh, kw, pads = d.choose.randint(1, 3), d.choose.randint(1, 3), [d.pick(0, 1) for _ in range(4)]
    oh, ow = h + pads[0] + pads[2] - kh + 1, w + pads[1] + pads[3] - kw + 1
    ins = [
        d.data("float", [n, c, h, w]), d.data("float", [m, c // g, kh, kw]),
        d.data("float", [n, o * kh * kw * 2, oh, ow], -1, 1), d.data("float", [m]) if d.maybe() else "",
        d.data("float", [n, o * kh * kw, oh, ow], 0, 1) if d.maybe() else ""
    ]
    d.node(ins, pads=pads if any(pads) else None, group=g if g > 1 else None, offset_group=o if o > 1 else None,
           kernel_shape=d.pick(None, [kh, kw]))


@recipe("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def losses(d):
    n, c, rest = d.choose.randint(1, 4), d.choose.randint(
        1, 5), [d.choose.randint(1, 3) for _ in range(d.choose.randint(0, 2))]
    ignore = d.pick(None, 0, -1)
    t = d.array("int64", [n, *rest], 0, c - 1)
    if ignore == -1:
        t[..., :1] = -1
    ins = [d.data("float", [n, c, *rest]), d.value(t), d.data("float", [c], 0.1, 1) if d.maybe() else ""]
    outs = d.pick(1, 2) if d.schema.name[0] == "S" else 1
    d.node(ins, outs, reduction=d.odd("mean", "sum", "none"), ignore_index=ignore)


@recipe("Constant")
def constant(d):
    kind = d.pick("value", "value_float", "value_floats", "value_int", "value_ints")
    if not d.has(kind):
        kind = "value"
    v = {
        "value": numpy_helper.from_array(d.array(d.choose.choice(list(NUMPY)), d.shape(0, 3)), "c"), "value_float": 1.5,
        "value_floats": [1.0, 2.0], "value_int": 3, "value_ints": [1, 2]
    }
    d.node([], **{kind: v[kind]})


@recipe("LinearAttention", "CausalConvWithState", "FlexAttention")
def newest_ones(d):
    raise Unfit("ONNX Runtime lacks them")


# ai.onnx.ml
@recipe("Binarizer", "Normalizer", "Scaler", "Imputer", "ArrayFeatureExtractor", "FeatureVectorizer")
def ml_small(d):
    op = d.schema.name
    s = [d.choose.randint(1, 4), d.choose.randint(1, 5)][d.pick(0, 0, 0, 1):]
    kind = d.pick("float", "float", "double", "int64", "int32")
    x = d.data(kind if op not in ("Binarizer", "Imputer") else d.pick("float", "int64") if op == "Imputer" else "float",
               s)
    if op == "Binarizer":
        return d.node([x], threshold=d.odd(0.0, 1.0))
    if op == "Normalizer":
        return d.node([x], norm=d.odd("MAX", "L1", "L2"))
    if op == "Scaler":
        n = d.pick(1, s[-1])
        return d.node([x], offset=[0.5] * n, scale=[float(k + 1) for k in range(n)])
    if op == "Imputer":
        n = d.pick(1, s[-1])
        if d.feeds.get(x) is not None and d.feeds[x].dtype.kind == "i":
            return d.node([x], imputed_value_int64s=[7] * n, replaced_value_int64=d.odd(0, 2))
        return d.node([x], imputed_value_floats=[7.5] * n, replaced_value_float=d.odd(0.0, 1.0))
    if op == "FeatureVectorizer":
        return d.node([x, d.data(kind, [s[0], 3])], inputdimensions=[s[1], 3]) if len(s) == 2 else None
    return d.node([x, d.value(d.array("int64", [d.choose.randint(1, 3)], 0, s[-1] - 1))])


@recipe("LinearRegressor", "LinearClassifier")
def ml_linear(d):
    n, f, t = d.choose.randint(1, 4), d.choose.randint(1, 5), d.choose.randint(1, 4)
    kind = d.pick("float", "float", "double", "int64", "int32") if d.schema.name == "LinearClassifier" else "float"
    post = d.pick(None, "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    if post == "PROBIT":
        post = None
    w = d.rng.normal(size=t * f).tolist()
    if d.schema.name == "LinearRegressor":
        if t == 1:
            post = None
        return d.node([d.data(kind, [n, f])], coefficients=w, intercepts=d.pick(None, [0.5] * t), targets=t,
                      post_transform=post)
    labels = t if t > 1 else 2
    d.node([d.data(kind, [n, f])], 2, coefficients=w, intercepts=[0.1 * k for k in range(t)],
           classlabels_ints=[5 * k + 1 for k in range(labels)], post_transform=post, multi_class=d.odd(0, 1))


@recipe("SVMRegressor", "SVMClassifier")
def ml_svm(d):
    n, f, k = d.choose.randint(1, 4), d.choose.randint(1, 4), d.choose.randint(1, 4)
    kernel = d.pick("LINEAR", "POLY", "RBF", "SIGMOID")
    params = [0.5, 0.3, 2.0]
    sv = d.rng.normal(size=k * f).tolist()
    x = d.data(
        d.pick("float", "float", "double", "int64", "int32") if d.schema.name == "SVMClassifier" else "float", [n, f])
    if d.schema.name == "SVMRegressor":
        if d.maybe(0.2):
            return d.node([x], coefficients=d.rng.normal(size=f).tolist(), n_supports=0, kernel_type="LINEAR",
                          rho=[0.2])
        return d.node([x], coefficients=d.rng.normal(size=k).tolist(), support_vectors=sv, n_supports=k,
                      kernel_type=kernel, kernel_params=params, rho=[0.2], one_class=d.odd(0, 1))
    classes = d.choose.randint(2, 4)
    per = [d.choose.randint(1, 2) for _ in range(classes)]
    k = sum(per)
    pairs = classes * (classes - 1) // 2
    prob = d.maybe(0.4)
    d.node([x], 2, coefficients=d.rng.normal(size=k * (classes - 1)).tolist(),
           support_vectors=d.rng.normal(size=k * f).tolist(), vectors_per_class=per, kernel_type=kernel,
           kernel_params=params, rho=[0.1 * j for j in range(pairs)],
           classlabels_ints=[3 * j for j in range(classes)], prob_a=[-1.0] * pairs if prob else None,
           prob_b=[0.1] * pairs if prob else None, post_transform=d.odd("NONE", "LOGISTIC", "SOFTMAX"))


@recipe("LabelEncoder")
def label_encoder(d):
    if d.maybe():
        return d.node([d.data("int64", d.shape(1, 2), 0, 4)], keys_int64s=[0, 1, 2], values_floats=[1.5, 2.5, 3.5],
                      default_float=d.odd(-0.0, 9.0))
    d.node([d.data("float", d.shape(1, 2), 0, 4)], keys_floats=[0.0, 1.0, 2.0], values_int64s=[5, 6, 7],
           default_int64=d.odd(-1, 4))


@recipe("OneHotEncoder")
def one_hot_encoder(d):
    d.node([d.data(d.pick("int64", "float", "int32", "double"), d.shape(1, 3), 0, 3)], cats_int64s=[0, 1, 2], zeros=1)


def draw(seed, judge, newest=NEWEST, only=()):
    """A model of one to three operators, or None. judge(Draw) gives name -> array of all results, or raises Unfit."""
    d = Draw(seed)
    names = sorted(only or RECIPES)
    d.wanted = {}
    for _ in range(d.pick(1, 1, 1, 2, 3)):
        op = d.choose.choice(names)
        if not d.ops:
            d.opset = d.pick(newest, d.choose.randint(min(FIRST[op], newest), newest))
        if d.opset < FIRST[op]:
            continue
        try:
            d.grow(op, "" if op in DEFAULT else "ai.onnx.ml")
        except onnx.defs.SchemaError as e:
            raise Unfit("not in this version") from e
        d.widen()
        d.wanted = judge(d)
        d.ready, d.types = {}, {}
        for name, array in d.wanted.items():
            for dtype, n in NUMPY.items():
                if array.dtype == np.dtype(n):
                    d.ready[name], d.types[name] = array, dtype
    return d
