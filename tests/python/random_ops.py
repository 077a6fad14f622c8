# SPDX-License-Identifier: Apache-2.0
"""Random, seeded models of one to three ONNX operators, drawn from the schemas of the package onnx: any version, any
element type that the schema names, attributes absent, at their defaults or odd, axes of size 0 and 1, optional inputs
absent, shapes that are constants or come at run time, named sizes. What a schema leaves open (how shapes fit together,
what values mean something) is in RECIPES, one function an operator or family, which random_recipes.py and
random_recipes_layers.py fill."""
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
    def __init__(self, seed, computed=False):
        self.computed = computed  # numbers that steer an operator come at run time
        self.choose = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inits, self.feeds, self.dims, self.free, self.results, self.types = [], [], {}, {}, {}, [], {}
        self.count, self.ready, self.ops = 0, {}, []
        self.ml = self.pick(5, 3)  # version of ai.onnx.ml
        self.is_wide = computed and self.maybe()  # named sizes have a range

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
        a = np.array(values, NUMPY[dtype])
        if self.computed and a.size:
            return self.late(a)
        return self.value(a, None, how or self.pick("init", "init", "node", "input"))

    def late(self, a):
        """The name of a value that the run computes: of an input's elements, or of the sizes of an input."""
        def node(op, *ins, **attributes):
            name = f"c{self.count}"
            self.count += 1
            self.nodes.append(helper.make_node(op, ins, [name], **attributes))
            return name

        def const(*values):
            return self.value(np.array(values, a.dtype).reshape(a.shape), None, "init")

        to = helper.np_dtype_to_tensor_dtype(a.dtype)
        way = self.pick("input", "identity", "sum", "sizes", "sizes", "joined")
        if way == "sum" and a.dtype.kind == "i":
            half = self.value((a * 3).astype("i4"), None, "input")
            return node("Cast", node("Div", half, self.value(np.array(3, "i4"), None, "init")), to=to)
        if way == "sizes" and a.size <= 4:
            is_exact = a.dtype.kind == "i" and (a >= 0).all() and a.prod() <= 4096
            sizes = a.ravel() if is_exact else [2] * a.size
            loose, self.loose = self.loose, self.pick(0, 1, 1)
            name = node("Shape", self.value(np.zeros([int(n) for n in sizes], "?"), None, "input"))
            self.loose = loose
            if not a.shape:
                name = node("Reshape", name, self.value(np.zeros(0, "i8"), None, "init"))
            name = node("Cast", name, to=to) if a.dtype != np.dtype("i8") or self.maybe(0.3) else name
            if is_exact:
                return name
            return node("Sub", name, const(*(2 - a.ravel()))) if a.dtype.kind == "i" else node(
                "Mul", name, const(*(a.ravel() / 2)))
        if way == "joined" and a.ndim == 1 and a.size > 1:
            parts = [self.value(a[k:k + 1], None, self.pick("init", "input")) for k in range(a.size - 1)]
            return node("Concat", *parts, self.value(a[-1:], None, "input"), axis=0)
        name = self.value(a, None, "input")
        return node("Identity", name) if way != "input" else name

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
        version = self.opset if domain == "" else self.ml
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
        ops = [helper.make_opsetid("", self.opset)] + ([helper.make_opsetid("ai.onnx.ml", self.ml)] if any(
            n.domain for n in self.nodes) else [])
        return helper.make_model(graph, opset_imports=ops, ir_version=10)


def draw(seed, judge, newest=NEWEST, only=(), computed=False):
    """A model of one to three operators. judge(Draw) gives name -> array of all results, or raises Unfit."""
    d = Draw(seed, computed)
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
