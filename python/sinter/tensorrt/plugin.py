# SPDX-License-Identifier: Apache-2.0
"""The module tensorrt.plugin: plugins as functions.

    import tensorrt.plugin as trtp

    @trtp.register("sample::scale")
    def scale_desc(x: trtp.TensorDesc, factor: float) -> trtp.TensorDesc:
        return x.like()

    @trtp.impl("sample::scale")
    def scale_impl(x: trtp.Tensor, factor: float, outputs: Tuple[trtp.Tensor], stream: int):
        ...

    layer = network.add_plugin(trtp.op.sample.scale(tensor, factor=2.0))"""
import collections.abc
import ctypes
import inspect
import itertools
import typing

from .._abi import Place
from .._dtype import numpy
from .._host_device import borrowed
from .._plugin import Dim, WholePlugin
from ._alias import joined
from ._core import FROM_TRT, TO_TRT, NotAvailable, to_trt
from ._names import DataType, TensorFormat
from ._plugin_classes import refuse_inner_late

registered = {}                 # (name, version, namespace) -> Definition


class ById(collections.abc.Mapping):
    """The plugins by "namespace::name", as tensorrt.plugin._lib.QDP_REGISTRY has them."""

    def __getitem__(self, plugin_id):
        namespace, _, name = plugin_id.partition("::")
        return registered[name, "1", namespace]

    def __iter__(self):
        return iter([f"{namespace}::{name}" for name, _, namespace in registered])

    def __len__(self):
        return len(registered)


class ShapeExpr:
    """A size as an expression: + - * // and cdiv. A number of Python's in its place is a constant."""

    is_fake = is_size_tensor = False

    def __init__(self, dim):
        self._dim = dim                         # a size; or a function that gives it, once outputs have their numbers

    dim = property(lambda self: self._dim() if callable(self._dim) else self._dim)
    is_late = property(lambda self: callable(self._dim))    # the run decides it

    def _apply(self, function, other):
        if callable(self._dim) or isinstance(other, ShapeExpr) and callable(other._dim):
            return ShapeExpr(lambda: function(self.dim, other.dim if isinstance(other, ShapeExpr) else other))
        return ShapeExpr(function(self.dim, other.dim if isinstance(other, ShapeExpr) else other))

    is_constant = property(lambda self: isinstance(self.dim, int) or self.dim.value is not None)
    __add__ = __radd__ = lambda self, other: self._apply(lambda a, b: a + b, other)
    __mul__ = __rmul__ = lambda self, other: self._apply(lambda a, b: a * b, other)
    __sub__ = lambda self, other: self._apply(lambda a, b: a - b, other)
    __rsub__ = lambda self, other: self._apply(lambda a, b: b - a, other)
    __floordiv__ = lambda self, other: self._apply(lambda a, b: a // b, other)

    def constant_value(self):
        if not self.is_constant:
            raise RuntimeError("the size is not known while building")
        return self.dim if isinstance(self.dim, int) else self.dim.value

    __index__ = __int__ = constant_value


class SymIntExpr(ShapeExpr):
    pass


class SymInt32(SymIntExpr):
    """A number of 32 bits among the arguments of a kernel: of a size, or an int."""

    def __init__(self, value=0):
        super().__init__(value.dim if isinstance(value, ShapeExpr) else int(value))


class KernelLaunchParams:
    """How a kernel is launched: numbers, or sizes as expressions."""

    def __init__(self, grid_x=1, grid_y=1, grid_z=1, block_x=1, block_y=1, block_z=1, shared_mem=0):
        self.grid_x, self.grid_y, self.grid_z = grid_x, grid_y, grid_z
        self.block_x, self.block_y, self.block_z, self.shared_mem = block_x, block_y, block_z, shared_mem


class ShapeExprs(list):
    """Sizes of a tensor as expressions."""

    @classmethod
    def from_tuple(cls, shape):
        return cls(shape)

    def numel(self):
        found = 1
        for each in self:
            found = each * found
        return found

    def clone(self):
        return type(self)(self)


class SymExprs(ShapeExprs):
    """The further arguments of a kernel: of a number of them, or of a list."""

    def __init__(self, given=0):
        super().__init__([SymInt32(0)] * given if isinstance(given, int) else given)


class SymIntExprs(SymExprs):
    pass


class Shape(ShapeExprs):
    """Sizes of a tensor as numbers."""

    def __init__(self, shape=()):
        super().__init__(int(dim) for dim in getattr(shape, "shape", shape))


def cdiv(a, b):
    """a / b, rounded up."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return (a if isinstance(a, ShapeExpr) else ShapeExpr(a))._apply(
        lambda x, y: x.ceildiv(y) if isinstance(x, Dim) else -(-x // y), b)


class TensorDesc:
    """A tensor while shapes are found or types chosen: dtype, shape_expr (or shape, where it is known), format, scale."""
    is_shape_tensor, scale, format = False, 0.0, TensorFormat.LINEAR

    def __init__(self, shape_expr=None, dtype=DataType.FLOAT, format=None, scale=None):
        self.shape_expr, self.dtype = ShapeExprs(shape_expr or ()), dtype
        if format is not None and format != TensorFormat.LINEAR:
            raise NotAvailable(f"{format}: plugins get tensors in the format LINEAR")

    ndim = property(lambda self: len(self.shape_expr))
    shape = property(lambda self: tuple(d.constant_value() if isinstance(d, ShapeExpr) else d for d in self.shape_expr))

    def like(self):
        return TensorDesc(self.shape_expr, self.dtype)

    def aliased(self):
        """An output that shares the memory of this input: the function changes the input, and that is the output."""
        made = self.like()
        made.alias_of = self
        return made

    def get_aliased(self):
        return self.alias_of

    alias_of = None


def from_shape_expr(shape_expr, dtype):
    """A description of that shape and type."""
    return TensorDesc(shape_expr, dtype)


class SizeTensorDesc(TensorDesc):
    """An output that holds a size, which the run tells: expr() is the size."""

    def __init__(self, opt, upper_bound):
        super().__init__((), DataType.INT32)
        self.opt, self.upper_bound, self.size = opt, upper_bound, None

    def expr(self):
        made = ShapeExpr(lambda: self.size)
        made.is_size_tensor = True
        return made


def size_tensor(opt, upper_bound):
    """A further output, a scalar of int32, to which the function writes a size of at most upper_bound."""
    return SizeTensorDesc(opt, upper_bound)


class Tensor:
    """A tensor of a run: data_ptr, shape, strides (elements), dtype. On the CPU it has __array_interface__, on a GPU
    __cuda_array_interface__; both have DLPack."""
    format, scale = TensorFormat.LINEAR, 0.0

    def __init__(self, tensor, aliased=None):
        self._aliased = aliased                 # the input whose memory an output shares
        self._tensor = tensor
        self.data_ptr, self.shape, self.dtype = tensor.data, tuple(tensor.shape), to_trt(tensor.dtype, "a plugin's operand")
        self.strides, step = [], 1
        for dim in reversed(self.shape):
            self.strides.insert(0, step)
            step *= dim
        self.strides = tuple(self.strides)

    ndim = property(lambda self: len(self.shape))
    __cuda_array_interface__ = property(lambda self: self._tensor.__cuda_array_interface__)
    __dlpack__ = property(lambda self: self._tensor.__dlpack__)
    __dlpack_device__ = property(lambda self: self._tensor.__dlpack_device__)

    @property
    def __array_interface__(self):
        self._tensor._need_host()
        return self._tensor._interface()

    def get_aliased(self):
        return self._aliased

    def aliased(self, shape=None):
        """The beginning of the same memory in another shape: an output whose size data decide has room for the largest."""
        shape = self.shape if shape is None else tuple(int(d) for d in shape)
        count = 1
        for dim in shape:
            count *= dim
        if count > self.numel():
            raise ValueError(f"the shape {shape} has {count} elements, the tensor has {self.numel()}")
        return Tensor(self._tensor._make(self._tensor.dtype, shape, self._tensor.data, self._tensor.place, self._tensor), self._aliased)

    def numel(self):
        count = 1
        for dim in self.shape:
            count *= dim
        return count


class AutoTuneCombination:
    """Types of the operands, inputs before outputs ("FP32|FP16, FP32|FP16"), their formats, and tactics to time. One format is that of
    all operands; "*" stands between formats that are tried for each operand, "|" between those that all operands share."""

    def __init__(self, io_types="", layouts="", tactics=None):
        split = [[w.strip() for w in text.split(",")] if text else [] for text in (io_types, layouts)]
        self._types, self._formats = dict(enumerate(split[0])), dict(enumerate(split[1]))
        self._tactics = [int(t) for t in tactics or []]

    def pos(self, positions, io_types="", layouts=""):
        """Sets types and formats of one operand, or of several."""
        for i in positions if hasattr(positions, "__iter__") else [positions]:
            if io_types:
                self._types[int(i)] = io_types
            if layouts:
                self._formats[int(i)] = layouts

    def tactics(self, tactics=None):
        self._tactics = [int(t) for t in tactics or []]

    def takes(self, dtypes):
        if sorted(self._types) != list(range(len(dtypes))):
            raise ValueError(f"a combination has types for the operands {sorted(self._types)}, the call has {len(dtypes)} operands")
        everywhere = self._formats.get(0, "LINEAR") if list(self._formats) == [0] else "LINEAR"
        formats = [self._formats.get(i, everywhere) for i in range(len(dtypes))]
        words = [self._types[i].replace("*", "|").split("|") for i in range(len(dtypes))]
        for each in [w.strip() for row in words for w in row]:
            if each not in WORDS:
                raise ValueError(f"a combination has the type '{each}': {', '.join(WORDS)} are known")
        if not all(d in [WORDS[w.strip()] for w in row] for row, d in zip(words, dtypes)):
            return False
        # Alternatives behind "|" belong together: operands that have as many take the one with the same number.
        counts = {len(row) for row in words if len(row) > 1}
        together = len(counts) != 1 or any(all(len(row) == 1 or WORDS[row[k].strip()] == d for row, d in zip(words, dtypes))
                                           for k in range(counts.pop()))
        return together and all("LINEAR" in [w.strip() for w in f.replace("*", "|").split("|")] for f in formats)


WORDS = {"FP32": DataType.FLOAT, "FP16": DataType.HALF, "BF16": DataType.BF16, "INT8": DataType.INT8, "INT32": DataType.INT32,
         "INT64": DataType.INT64, "BOOL": DataType.BOOL, "UINT8": DataType.UINT8, "FP8": DataType.FP8, "INT4": DataType.INT4,
         "FP4": DataType.FP4}


def fields_of(signature):
    """(names of tensors, name -> declaration of each attribute) of a function's parameters."""
    tensors, fields = [], {}
    for name, p in signature.parameters.items():
        kind = p.annotation
        if kind is TensorDesc or kind == "trtp.TensorDesc":
            tensors.append(name)
            continue
        origin = typing.get_origin(kind)
        if origin is not None and getattr(origin, "__name__", "") == "ndarray":
            arguments = [a for a in typing.get_args(kind) if a is not typing.Any]
            element = typing.get_args(arguments[-1]) if arguments else ()
            whole = bool(element) and numpy().dtype(element[0]).kind in "iub"
            fields[name] = list[int] if whole else list[float]
        elif kind in (int, float, str, bytes):
            fields[name] = kind if p.default is p.empty else (kind, p.default)
        elif kind is bool:
            fields[name] = int if p.default is p.empty else (int, int(p.default))
        else:
            raise TypeError(f"the parameter '{name}' is annotated with {kind!r}: TensorDesc, int, float, bool, str, bytes and NumPy arrays "
                            "are possible")
    return tensors, fields


class Definition:
    """A plugin that was registered by its function of shapes."""

    def __init__(self, name, namespace, function):
        self.name, self.namespace, self.function = name, namespace, function
        self.signature = inspect.signature(function)
        self.kinds = {n: p.annotation for n, p in self.signature.parameters.items()}
        self.tensors, self.fields = fields_of(self.signature)
        self.body = self.choose = self.kernel = None
        self.plugin_id, self.register_func = f"{namespace}::{name}", function
        self.input_tensor_names, self.input_attrs = list(self.tensors), {n: self.kinds[n] for n in self.fields}
        self.made = {}                                              # what `kernel` gave, by what it was asked

    impl_func, aot_impl_func, autotune_func = (property(lambda self, name=name: getattr(self, name)) for name in ("body", "kernel", "choose"))

    def _call(self, function, tensors, values, **more):
        """Calls a function of the plugin: the inputs, then what it has parameters for. Functions may leave attributes out."""
        wanted = inspect.signature(function).parameters
        if any(p.kind is p.VAR_KEYWORD for p in wanted.values()):
            return function(*tensors, **values, **more)
        return function(*tensors, **{n: v for n, v in dict(values, **more).items() if n in wanted})

    def _values(self, values):
        """The attributes as functions get them."""
        found = {}
        for name, value in values.items():
            if name == IS_AOT:
                continue
            kind = self.kinds[name]
            found[name] = bool(value) if kind is bool else numpy().array(value) if isinstance(value, list) else value
        return found

    def _shapes(self, *inputs, table, count, values):
        given = [TensorDesc([ShapeExpr(d) for d in x.shape], to_trt(x.dtype, "a plugin's input")) for x in inputs]
        found = self.function(*given, **self._values(values))
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        for i, d in enumerate(found):
            if isinstance(d, SizeTensorDesc):
                most = d.upper_bound.dim if isinstance(d.upper_bound, ShapeExpr) else d.upper_bound
                d.size = table.size(i, most)
        if len(found) != count:
            raise ValueError(f"{self.function.__name__} describes {len(found)} outputs, the node has {count}")
        made = []
        for i, d in enumerate(found):
            sizes = [e.dim if isinstance(e, ShapeExpr) else e for e in d.shape_expr]
            refuse_inner_late(i, sizes, [isinstance(e, ShapeExpr) and e.is_late for e in d.shape_expr])
            made.append((FROM_TRT[d.dtype], sizes))
        return made

    def _aliases(self, inputs, values):
        """output -> input, of outputs that share an input's memory."""
        given = [TensorDesc([ShapeExpr(d) for d in t.shape], to_trt(t.dtype, "a plugin's input")) for t in inputs]
        found = self.function(*given, **self._values(values))
        found = found if isinstance(found, (tuple, list)) else [found]
        return {i: given.index(d.alias_of) for i, d in enumerate(found) if d.alias_of is not None}

    def count_outputs(self, ranks, values):
        """How many outputs a call has: the function is asked with sizes of 1."""
        given = [TensorDesc([ShapeExpr(1)] * rank, dtype) for rank, dtype in ranks]
        found = self.function(*given, **self._values(values))
        return len(found) if isinstance(found, (tuple, list)) else 1

    def _combinations(self, inputs, outputs, values):
        described = [[TensorDesc([ShapeExpr(n) for n in o.opt], to_trt(o.dtype, "a plugin's operand")) for o in part] for part in (inputs, outputs)]
        return list(self._call(self.choose, described[0], self._values(values), outputs=tuple(described[1])))

    def _supports(self, inputs, outputs, values):
        operands = inputs + outputs
        if any(o is None or list(o.order) != sorted(o.order) or o.dtype not in TO_TRT for o in operands):
            return False
        if self.choose is None:
            return True
        return any(c.takes([TO_TRT[o.dtype] for o in operands]) for c in self._combinations(inputs, outputs, values))

    def _tactics(self, inputs, outputs, values):
        if self.choose is None:
            return [0]
        dtypes = [TO_TRT[o.dtype] for o in inputs + outputs]
        lists = [c._tactics for c in self._combinations(inputs, outputs, values) if c.takes(dtypes)]
        return list(dict.fromkeys(int(t) for t in itertools.chain(*lists))) or [0]

    def _run(self, inputs, outputs, stream, tactic, values):
        aliases = self._aliases(inputs, values)
        given = [Tensor(t) for t in joined(inputs, outputs, aliases, stream)]
        made = tuple(Tensor(t, given[aliases[i]] if i in aliases else None) for i, t in enumerate(outputs))
        with borrowed(inputs + outputs):
            self._call(self.body, given, self._values(values), outputs=made, stream=stream or 0, tactic=tactic)

    def _asked(self, inputs, outputs, tactic, values):
        """(name, code, grid, block, shared memory, further arguments) for tensors of these shapes and types: asked once for each."""
        key = (tactic, repr(sorted(values.items())), tuple((t.dtype, tuple(t.shape)) for t in inputs + outputs))
        if key not in self.made:
            described = [[TensorDesc([ShapeExpr(n) for n in t.shape], to_trt(t.dtype, "a plugin's operand")) for t in part]
                         for part in (inputs, outputs)]
            extra = {"tactic": tactic} if "tactic" in inspect.signature(self.kernel).parameters else {}
            found = self.kernel(*described[0], **self._values(values), outputs=tuple(described[1]), **extra)
            if not isinstance(found, (tuple, list)) or len(found) != 4:
                raise TypeError(f"{self.kernel.__name__} gives {type(found).__name__}; four things are wanted: name, code, KernelLaunchParams, "
                                "SymExprs")
            name, code, params, more = found
            numbers = {n: as_number(getattr(params, n), n) for n in (*GRID, *BLOCK, "shared_mem")}
            for n in (*GRID, *BLOCK):
                if numbers[n] < 1:
                    raise ValueError(f"{n} is {numbers[n]}, at least 1 is wanted")
            self.made[key] = (as_bytes(name), as_bytes(code), [numbers[n] for n in GRID], [numbers[n] for n in BLOCK], numbers["shared_mem"],
                              [as_number(e, "a SymInt32") for e in more])
        return self.made[key]

    def _launch(self, inputs, outputs, stream, tactic, values):
        """Puts the kernel on the stream: its parameters are the inputs, the further arguments, the outputs."""
        from .. import _cuda
        name, code, grid, block, shared, more = self._asked(inputs, outputs, tactic, values)
        given = joined(inputs, outputs, self._aliases(inputs, values), stream)
        pointers = [[ctypes.c_void_p(t.data) for t in part] for part in (given, outputs)]
        arguments = [*pointers[0], *(ctypes.c_int32(n) for n in more), *pointers[1]]
        _cuda.launch(_cuda.kernel(code, name), grid, block, shared, stream or 0, arguments, _cuda.current())

    def _run_either(self, inputs, outputs, stream, tactic, values):
        is_aot = self.kernel is not None and (self.body is None or values[IS_AOT])
        is_host = all(t.place == Place.HOST for t in inputs + outputs)
        (self._launch if is_aot and not is_host else self._run)(inputs, outputs, stream, tactic, values)

    is_complete = property(lambda self: self.body is not None or self.kernel is not None)

    def is_aot(self, wanted, is_preferred):
        """Which function a call gets. Errors: LookupError, ValueError (there is no such function)."""
        if not self.is_complete:
            raise LookupError(f"plugin '{self.namespace}::{self.name}' has no function: trtp.impl or trtp.aot_impl makes one")
        if wanted is not None and (self.kernel if wanted else self.body) is None:
            raise ValueError(f"aot={wanted}, and plugin '{self.namespace}::{self.name}' has no function of trtp.{'aot_impl' if wanted else 'impl'}")
        return bool(wanted) if wanted is not None else self.body is None or self.kernel is not None and is_preferred

    def plugin(self):
        # A kernel for GPUs alone is no body on the CPU.
        body = {"cuda": self._run_either} if self.body is None else {"tensors": self._run_either}
        return WholePlugin(self.name, self._shapes, **body, supports=self._supports, tactics=self._tactics, namespace=self.namespace,
                      fields=dict(self.fields, **{IS_AOT: (int, 0)}), inputs=len(self.tensors), outputs=(1, 32))


GRID, BLOCK = ("grid_x", "grid_y", "grid_z"), ("block_x", "block_y", "block_z")
IS_AOT = "sinter_is_aot"                                            # a field of calls: the kernel is wanted where both are there


def as_number(value, what):
    if isinstance(value, ShapeExpr):
        value = value.constant_value()
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} is {value!r}: an int, a size or a SymInt32 is wanted")
    return int(value)


def as_bytes(text):
    return text.encode() if isinstance(text, str) else bytes(text)


def split(plugin_id):
    parts = str(plugin_id).split("::")
    if len(parts) != 2 or not all(parts):
        raise ValueError(f"the plugin is named '{plugin_id}': NAMESPACE::NAME is wanted")
    return parts[1], "1", parts[0]


def find(plugin_id):
    key = split(plugin_id)
    if key not in registered:
        raise ValueError(f"there is no plugin '{plugin_id}': trtp.register comes first")
    return registered[key]


def register(plugin_id, lazy_register=False):
    """A decorator for the function that describes the outputs. Its parameters are the inputs (trtp.TensorDesc) and attributes."""
    def decorate(function):
        name, version, namespace = split(plugin_id)
        if (name, version, namespace) in registered:
            raise ValueError(f"plugin '{plugin_id}' is registered already")
        registered[name, version, namespace] = Definition(name, namespace, function)
        return function
    return decorate


def impl(plugin_id):
    """A decorator for the function that computes: inputs (trtp.Tensor), attributes, outputs, stream, and tactic where it wants it."""
    def decorate(function):
        find(plugin_id).body = function
        return function
    return decorate


def autotune(plugin_id):
    """A decorator for the function that gives the AutoTuneCombinations that are possible."""
    def decorate(function):
        find(plugin_id).choose = function
        return function
    return decorate


def aot_impl(plugin_id):
    """A decorator for the function that gives a compiled kernel for a GPU: its parameters are the inputs and outputs (trtp.TensorDesc),
    the attributes, and tactic; it returns the kernel's name, PTX or a cubin, KernelLaunchParams, and SymExprs. The kernel gets the
    addresses of the inputs, the further arguments (32 bits each), and the addresses of the outputs. The function is asked for each
    shape that runs; on the CPU trtp.impl computes."""
    def decorate(function):
        definition = find(plugin_id)
        definition.kernel = function
        definition.made.clear()
        return function
    return decorate


class Call:
    """A call of a plugin, for INetworkDefinition.add_plugin."""

    def __init__(self, definition, tensors, attributes):
        self.definition, self.tensors, self.attributes = definition, tensors, attributes


class Namespace:
    def __init__(self, namespace=None):
        self._namespace = namespace

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if self._namespace is None:
            return Namespace(name)
        key = name, "1", self._namespace
        if key not in registered:
            raise AttributeError(f"there is no plugin '{self._namespace}::{name}'")
        definition = registered[key]

        def call(*values, **named):
            bound = definition.signature.bind(*values, **named)
            bound.apply_defaults()
            tensors = [bound.arguments[n] for n in definition.tensors]
            attributes = {}
            for n in definition.fields:
                value = bound.arguments[n]
                attributes[n] = int(value) if isinstance(value, bool) else value
            return Call(definition, tensors, attributes)
        call.input_tensor_names, call.input_attrs = definition.input_tensor_names, definition.input_attrs
        return call


op = Namespace()
__all__ = ["AutoTuneCombination", "KernelLaunchParams", "Shape", "ShapeExpr", "ShapeExprs", "SymExprs", "SymInt32", "SymIntExpr",
           "SymIntExprs", "Tensor", "TensorDesc", "aot_impl", "autotune", "cdiv", "from_shape_expr", "impl", "op", "register", "size_tensor"]
