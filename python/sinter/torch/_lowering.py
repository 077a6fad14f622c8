# SPDX-License-Identifier: Apache-2.0
"""From an aten graph to an ONNX model. The converters (_ops_*.py) register themselves in CONVERTERS; Lowering gives them their
arguments as names of ONNX values, with the element types and sizes that torch's own shape functions found."""
import ctypes
import operator

import sympy
import torch
from torch import fx
from torch.utils._sympy.functions import CeilToInt, CleanDiv, FloorDiv, IntTrueDiv, Mod, PythonMod
from torch.utils._sympy.value_ranges import bound_sympy

from ._onnx import Model

# ONNX's numbers of the element types.
ONNX = {torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.uint16: 4, torch.int16: 5, torch.int32: 6, torch.int64: 7,
        torch.bool: 9, torch.float16: 10, torch.float64: 11, torch.uint32: 12, torch.uint64: 13, torch.bfloat16: 16}
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
CONVERTERS = {}             # name of the overload ("aten.add.Tensor") -> function(lowering, node, *arguments of the schema)
VIEWS = set()               # names of overloads that only move data: a partition of these alone is not worth an engine


class Unsupported(Exception):
    """A node that has no conversion; the text says why."""


def converts(*names, view=False):
    """Registers a converter. A name without an overload ("add") stands for all of them."""
    def register(function):
        for name in names:
            CONVERTERS[name] = function
            if view:
                VIEWS.add(name)
        return function
    return register


def converter_of(target):
    """(converter, name) of a target of an fx node; (None, name) where there is none."""
    if not isinstance(target, torch._ops.OpOverload):
        return None, getattr(target, "__name__", str(target))
    packet = target.overloadpacket
    name = f"{target.namespace}.{packet.__name__}"
    full = f"{name}.{target._overloadname}"
    key = full if full in CONVERTERS else name
    return CONVERTERS.get(key), full


def is_view(target):
    if not isinstance(target, torch._ops.OpOverload):
        return True
    name = f"{target.namespace}.{target.overloadpacket.__name__}"
    return name in VIEWS or f"{name}.{target._overloadname}" in VIEWS


def elements(tensor):
    """The bytes of a tensor, row-major, without a copy where it lies so in memory of the host."""
    held = tensor.detach().cpu().contiguous()
    size = held.numel() * held.element_size()
    if not size:
        return b""
    raw = (ctypes.c_char * size).from_address(held.data_ptr())
    raw._owner = held
    return raw


def expr_of(size):
    """The sympy expression of a size: an int or a SymInt."""
    return sympy.Integer(size) if isinstance(size, int) else size.node.expr


def as_int(size):
    """The int of a size that is known; None of one that is not."""
    if isinstance(size, int):
        return size
    expr = size.node.expr
    return int(expr) if expr.is_number else None


def is_static(sizes):
    return all(as_int(s) is not None for s in sizes)


class Lowering:
    """One partition on its way to a model. `symbols`: symbol -> function that gives the ONNX value of it, 1-D with one element.
    In a dry run nothing is known of other nodes: it answers whether a node can be converted."""

    def __init__(self, symbols=None, ranges=None, is_dry=False):
        self.model, self.symbols, self.ranges, self.is_dry = Model(), symbols or {}, ranges or {}, is_dry
        self.env, self.sizes, self.constants, self.casts = {}, {}, {}, {}

    # ---- what converters ask of nodes ----

    def op(self, op, *inputs, **keywords):
        return self.model.op(op, *inputs, **keywords)

    def meta(self, node):
        """torch's description of a node's result: a FakeTensor."""
        found = node.meta.get("val")
        if not isinstance(found, torch.Tensor):
            raise Unsupported("is no tensor")
        return found

    def dtype(self, arg):
        """The element type of an argument: of a number, the one that numbers of its kind have."""
        if isinstance(arg, fx.Node):
            return self.meta(arg).dtype
        if isinstance(arg, (bool, torch.SymBool)):
            return torch.bool
        if isinstance(arg, (int, torch.SymInt)):
            return torch.int64
        return torch.get_default_dtype()

    def shape(self, node):
        return list(self.meta(node).shape)

    def rank(self, node):
        return self.meta(node).dim()

    def dim(self, node, dim):
        """An axis, counted from the front."""
        return dim + max(self.rank(node), 1) if dim < 0 else dim

    def promoted(self, *args):
        """The element type in which torch computes with these arguments."""
        tensors = [a for a in args if isinstance(a, fx.Node)]
        values = [self.meta(a) if isinstance(a, fx.Node) else (a if isinstance(a, (bool, int, float)) else
                  (1 if isinstance(a, torch.SymInt) else 1.0)) for a in args]
        if not tensors:
            return self.dtype(args[0])
        found = torch.result_type(values[0], values[1]) if len(values) > 1 else values[0].dtype
        for value in values[2:]:
            found = torch.promote_types(found, torch.result_type(self.meta(tensors[0]), value))
        return found

    def x(self, arg, dtype=None):
        """The ONNX value of an argument, converted to an element type: of a node, a number, or a SymInt."""
        if isinstance(arg, fx.Node):
            name = self.value(arg)
            return name if dtype is None else self.cast(name, self.meta(arg).dtype, dtype)
        if arg is None:
            return None
        dtype = dtype or self.dtype(arg)
        if isinstance(arg, torch.SymInt) and as_int(arg) is None:
            scalar = self.op("Squeeze", self.size(arg), self.ints([0]))
            return self.cast(scalar, torch.int64, dtype)
        if isinstance(arg, SYMBOLIC):
            if as_int(arg) is None:
                raise Unsupported(f"a number of type {type(arg).__name__} is an argument")
            arg = as_int(arg)
        return self.scalar(arg, dtype)

    def value(self, node):
        found = self.env.get(node)
        if found is None:
            if not self.is_dry:
                raise Unsupported(f"'{node.name}' is not part of the partition")
            found = f"dry_{node.name}"
        if isinstance(found, (list, tuple)):
            raise Unsupported(f"'{node.name}' is a list")
        return found

    def cast(self, name, source, dtype):
        if source == dtype:
            return name
        if dtype not in ONNX or source not in ONNX:
            raise Unsupported(f"element type {dtype if source in ONNX else source}")
        made = self.casts.get((name, dtype))
        if made is None:
            # Whole numbers are cut to 8 and 16 bits; a cast to bool tests for zero.
            made = self.casts[name, dtype] = self.op("Cast", name, to=ONNX[dtype])
        return made

    # ---- constants and sizes ----

    def scalar(self, value, dtype):
        return self.full([], value, dtype)

    def full(self, shape, value, dtype):
        """A constant whose elements are all `value`."""
        key = (tuple(shape), repr(value), dtype)
        if key not in self.constants:
            if dtype not in ONNX:
                raise Unsupported(f"element type {dtype}")
            self.constants[key] = self.tensor(torch.full(shape, value, dtype=dtype, device="cpu"))
        return self.constants[key]

    def tensor(self, tensor, name=None):
        if tensor.dtype not in ONNX:
            raise Unsupported(f"element type {tensor.dtype}")
        return self.model.constant(ONNX[tensor.dtype], tensor.shape, elements(tensor), name)

    def ints(self, values):
        """A list of whole numbers, some of which may be SymInts: a 1-D value."""
        known = [as_int(v) for v in values]
        if None not in known:
            key = ("ints", tuple(known))
            if key not in self.constants:
                self.constants[key] = self.tensor(torch.tensor(known, dtype=torch.int64, device="cpu"))
            return self.constants[key]
        parts = [self.size(v) for v in values]
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def size(self, size):
        """The value of one size: 1-D with one element."""
        return self.expression(expr_of(size))

    def expression(self, e):
        if e in self.sizes:
            return self.sizes[e]
        if e.is_Integer:
            made = self.ints([int(e)])
        elif e.is_Symbol:
            if e in self.symbols:
                made = self.symbols[e]()
            elif self.is_dry:
                made = f"dry_{e}"
            else:
                raise Unsupported(f"size {e} is not that of any input")
        elif e.func in (sympy.Add, sympy.Mul):
            op = "Add" if e.func is sympy.Add else "Mul"
            made = self.expression(e.args[0])
            for arg in e.args[1:]:
                made = self.op(op, made, self.expression(arg))
        elif e.func in (FloorDiv, CleanDiv, Mod, PythonMod):
            for arg in e.args:
                if not self.is_dry and not bound_sympy(arg, self.ranges).lower >= 0:
                    raise Unsupported(f"size {e}: {arg} may be negative")
            op = "Div" if e.func in (FloorDiv, CleanDiv) else "Mod"
            made = self.op(op, self.expression(e.args[0]), self.expression(e.args[1]))
        elif e.func is sympy.Pow and e.args[1].is_Integer and e.args[1] > 0:
            made = self.expression(e.args[0])
            for _ in range(int(e.args[1]) - 1):
                made = self.op("Mul", made, self.expression(e.args[0]))
        elif e.func.__name__ in ("Max", "Min"):
            made = self.op(e.func.__name__, *[self.expression(a) for a in e.args])
        elif e.func is CeilToInt and e.args[0].func is IntTrueDiv:
            a, b = (self.expression(v) for v in e.args[0].args)
            made = self.op("Div", self.op("Sub", self.op("Add", a, b), self.ints([1])), b)
        else:
            raise Unsupported(f"a size is {e}")
        self.sizes[e] = made
        return made

    def need_ints(self, what, values):
        """Numbers that must be known while building."""
        values = list(values) if isinstance(values, (list, tuple)) else [values]
        known = [as_int(v) if isinstance(v, (int, torch.SymInt)) else None for v in values]
        if None in known:
            raise Unsupported(f"{what} depends on a size")
        return known

    # ---- nodes ----

    def arguments(self, node):
        """The values of all arguments of the schema. SymInts are given themselves, tensors as nodes."""
        def plain(a):
            if isinstance(a, fx.Node):
                val = a.meta.get("val")
                return val if isinstance(val, SYMBOLIC + (int, float, bool)) else a
            return a

        given = fx.node.map_aggregate(tuple(node.args), plain)
        given = [plain(a) for a in given]
        for index, arg in enumerate(node.target._schema.arguments):
            if index >= len(given):
                value = node.kwargs.get(arg.name, arg.default_value)
                given.append(plain(fx.node.map_aggregate(value, plain) if isinstance(value, (list, tuple)) else value))
        return [list(a) if isinstance(a, (list, tuple)) else a for a in given]

    def convert(self, node):
        """Adds the nodes that compute `node`. Errors: Unsupported."""
        val = node.meta.get("val")
        if isinstance(val, SYMBOLIC + (int,)):
            return                                          # used through its expression
        if node.target is operator.getitem:
            if self.is_dry:
                return
            found = self.env[node.args[0]]
            self.env[node] = found[node.args[1]]
            if self.env[node] is None:
                raise Unsupported(f"output {node.args[1]} of {node.args[0].target} is not computed")
            return
        function, name = converter_of(node.target)
        if function is None:
            raise Unsupported("has no conversion")
        results = val if isinstance(val, (list, tuple)) else [val]
        for result in results:
            if isinstance(result, torch.Tensor) and result.dtype not in ONNX:
                raise Unsupported(f"gives {result.dtype}")
        self.model.label = node.name
        made = function(self, node, *self.arguments(node))
        if self.is_dry and isinstance(made, (list, tuple)):
            for user in node.users:
                if user.target is not operator.getitem or made[user.args[1]] is None:
                    raise Unsupported(f"output {user.args[1] if user.target is operator.getitem else '?'} is not computed")
        self.env[node] = made


def why_not(node):
    """None if a node can be converted, else the reason."""
    for arg in node.all_input_nodes:
        val = arg.meta.get("val")
        if isinstance(val, torch.Tensor) and (val.dtype not in ONNX or val.layout != torch.strided):
            return f"takes {val.dtype if val.dtype not in ONNX else val.layout}"
    try:
        Lowering(is_dry=True).convert(node)
    except Unsupported as e:
        return str(e)
    return None
