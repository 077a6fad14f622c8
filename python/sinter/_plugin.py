# SPDX-License-Identifier: Apache-2.0
"""Operators written in Python: a plugin of the C interface (plugin.h) whose functions are called back."""
import ctypes
import threading
from collections import namedtuple

from . import _abi
from ._abi import Dtype, Place
from ._dtype import BITS, TYPESTR, dtype_of, numpy, size_of
from ._library import Error, InternalError, call, lib, recent_failures
from ._tensor import Tensor, _Interface

SIZE_MAX = 2**64 - 1
Spec = namedtuple("Spec", "dtype shape")
Spec.__doc__ = "What a tensor is while shapes are found: an element type, and a tuple of Dim or int."
Operand = namedtuple("Operand", "dtype min opt max order")
Operand.__doc__ = """A tensor while kernels are chosen: the least, usual and largest sizes (max: 2**63-1 where nothing bounds it), and the
order of the axes in memory from the outermost on. None: an absent input."""
Launch = namedtuple("Launch", "grid block args shared", defaults=(0,))
Launch.__doc__ = """How a CUDA kernel is launched: blocks (one to three numbers), threads of a block, the parameters, bytes of shared
memory. Parameters: "in0", "out1", "workspace", an int, a float (for a parameter of type float), or ("double", number)."""
FIELD_TYPES = {int: _abi.PluginType.INT, float: _abi.PluginType.REAL, str: _abi.PluginType.TEXT, bytes: _abi.PluginType.BYTES,
               list[int]: _abi.PluginType.INTS, list[float]: _abi.PluginType.REALS}


class Dim:
    """A size as an expression over the sizes of the inputs: + - * // %, ceildiv, min, max, broadcast. It means something only in
    the call that it was given to."""
    __slots__ = ("table", "id")

    def __init__(self, table, id):
        self.table, self.id = table, id

    def _with(self, op, other, turned=False):
        table = self.table
        other = table.dim(other)
        return Dim(table, table.apply(op, *((other.id, self.id) if turned else (self.id, other.id))))

    value = property(lambda self: self.table.known(self.id), doc="The size, where it is a number; else None.")
    __add__ = __radd__ = lambda self, other: self._with(_abi.DimOp.ADD, other)
    __mul__ = __rmul__ = lambda self, other: self._with(_abi.DimOp.MUL, other)
    __sub__ = lambda self, other: self._with(_abi.DimOp.SUB, other)
    __rsub__ = lambda self, other: self._with(_abi.DimOp.SUB, other, True)
    __floordiv__ = lambda self, other: self._with(_abi.DimOp.FLOORDIV, other)
    __rfloordiv__ = lambda self, other: self._with(_abi.DimOp.FLOORDIV, other, True)
    __mod__ = lambda self, other: self._with(_abi.DimOp.MOD, other)
    __rmod__ = lambda self, other: self._with(_abi.DimOp.MOD, other, True)

    def ceildiv(self, other):
        return self._with(_abi.DimOp.CEILDIV, other)

    def min(self, other):
        return self._with(_abi.DimOp.MIN, other)

    def max(self, other):
        return self._with(_abi.DimOp.MAX, other)

    def broadcast(self, other):
        """The size of an axis of which one operand may have 1."""
        return self._with(_abi.DimOp.BROADCAST, other)

    def __index__(self):
        if self.value is None:
            raise TypeError("the size is not known while building; only expressions over it are possible")
        return self.value

    def __repr__(self):
        return "Dim(?)" if self.value is None else f"Dim({self.value})"


class DimTable:
    """The functions that make expressions, while the call lasts."""

    def __init__(self, struct):
        self.struct = struct

    def _live(self):
        if self.struct is None:
            raise RuntimeError("a size is used after the call that it was given to")
        return self.struct

    def dim(self, value):
        if isinstance(value, Dim):
            if value.table is not self:
                raise RuntimeError("a size is used after the call that it was given to")
            return value
        return Dim(self, self._live().constant(self.struct.dims, int(value)))

    def size(self, output, most):
        """A size that the run tells, at most `most`: the body writes it to output `output`, a scalar of i32 or i64. Outputs have
        room for the largest sizes in a run, and are cut afterwards."""
        return Dim(self, self._live().declare_size(self.struct.dims, int(output), self.dim(most).id))

    def apply(self, op, a, b):
        return self._live().apply(self.struct.dims, op, a, b)

    def known(self, id):
        found = ctypes.c_int64()
        return found.value if self._live().known(self.struct.dims, id, found) else None


# ---- fields ----

def field_type(value):
    """(type, default, is there a default?) of what a plugin declares: a type, a default, or a pair of both."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] in FIELD_TYPES:
        return FIELD_TYPES[value[0]], value[1], True
    try:
        if value in FIELD_TYPES:
            return FIELD_TYPES[value], None, False
    except TypeError:
        pass
    if isinstance(value, bool) or isinstance(value, int):
        return _abi.PluginType.INT, int(value), True
    for kind in (float, str, bytes):
        if isinstance(value, kind):
            return FIELD_TYPES[kind], value, True
    if isinstance(value, (list, tuple)) and value:
        is_whole = all(isinstance(v, int) for v in value)
        return _abi.PluginType.INTS if is_whole else _abi.PluginType.REALS, value, True
    raise TypeError(f"{value!r} is no field: int, float, str, bytes, list[int], list[float], a default of one of these, or a pair of both")


def field_struct(name, kind, value, keep):
    """A sinter_plugin_field. value None: there is none."""
    made = _abi.sinter_plugin_field(name=name.encode(), type=kind, count=1)
    keep.append(made.name)
    if value is None:
        return made
    if kind == _abi.PluginType.INT:
        data = ctypes.c_int64(int(value))
    elif kind == _abi.PluginType.REAL:
        data = ctypes.c_double(float(value))
    elif kind in (_abi.PluginType.TEXT, _abi.PluginType.BYTES):
        raw = value.encode() if isinstance(value, str) else bytes(value)
        data, made.count = ctypes.create_string_buffer(raw, len(raw) + 1), len(raw)
    else:
        made.count = len(value)
        data = ((ctypes.c_int64 if kind == _abi.PluginType.INTS else ctypes.c_double) * max(len(value), 1))(*value)
    keep.append(data)
    made.data = ctypes.cast(ctypes.pointer(data), ctypes.c_void_p)
    return made


def field_value(field):
    kind, at, count = field.type, field.data, field.count
    if kind == _abi.PluginType.INT:
        return ctypes.c_int64.from_address(at).value
    if kind == _abi.PluginType.REAL:
        return ctypes.c_double.from_address(at).value
    if kind in (_abi.PluginType.TEXT, _abi.PluginType.BYTES):
        raw = ctypes.string_at(at, count)
        return raw if kind == _abi.PluginType.BYTES else raw.decode(errors="surrogateescape")
    return list(((ctypes.c_int64 if kind == _abi.PluginType.INTS else ctypes.c_double) * count).from_address(at))


def given_fields(values):
    """An array of sinter_plugin_field for values that a caller gives, their count, and what has to be kept."""
    keep, made = [], []
    for name, value in values.items():
        if isinstance(value, (list, tuple)) and not value:
            made.append(field_struct(name, _abi.PluginType.INTS, [], keep))
            continue
        array = numpy() is not None and isinstance(value, numpy().ndarray)
        kind, value, has_value = field_type(value.tolist() if array else value)
        if not has_value:
            raise TypeError(f"the field '{name}' has no value")
        made.append(field_struct(name, kind, value, keep))
    return (_abi.sinter_plugin_field * max(len(made), 1))(*made), len(made), keep


# ---- operands ----

def operand(p):
    if p.dtype == Dtype.NONE:
        return None
    return Operand(Dtype(p.dtype), tuple(p.min[:p.rank]), tuple(p.opt[:p.rank]), tuple(p.max[:p.rank]), tuple(p.order[:p.rank]))


def array_of(t, writable):
    """The NumPy array of a tensor in host memory, whatever its layout is; None: it is absent."""
    np = numpy()
    if t.dtype == Dtype.NONE:
        return None
    dtype, shape = Dtype(t.dtype), tuple(t.dim[:t.rank])
    typestr, width = TYPESTR[dtype], BITS[dtype] // 8
    if 0 in shape:
        return np.empty(shape if width else (0,), typestr)
    if not width:
        interface = {"shape": (size_of(dtype, shape),), "typestr": typestr}
    else:
        interface = {"shape": shape, "typestr": typestr, "strides": tuple(s * width for s in t.stride[:t.rank])}
    return np.asarray(_Interface(dict(interface, data=(t.data, not writable), version=3), None))


class _OnDevice:
    """What a Tensor in memory of a GPU needs of an engine."""
    device = "cuda"

    def __init__(self):
        from . import _cuda
        self.ordinal = _cuda.current()


def tensor_of(t, device):
    """A sinter.Tensor; device None: in host memory."""
    if t.dtype == Dtype.NONE:
        return None
    place = Place.HOST if device is None else Place.DEVICE
    return Tensor._make(Dtype(t.dtype), tuple(t.dim[:t.rank]), t.data or 0, place, None, device)


def torch_of(t, device):
    import torch
    if t.dtype == Dtype.NONE:
        return None
    made = tensor_of(t, device)
    if 0 in made.shape:
        return torch.from_numpy(made.numpy()) if device is None else torch.from_numpy(numpy().empty(made.shape, TYPESTR[made.dtype])).cuda()
    return torch.from_dlpack(made)


def take_results(given, outputs, index_of):
    """Copies what a body returned into the outputs. None: it has written them."""
    if given is None:
        return
    given = given if isinstance(given, (tuple, list)) else (given,)
    if len(given) != len(outputs):
        raise ValueError(f"the body returns {len(given)} results, the node has {len(outputs)}")
    for i, (value, to) in enumerate(zip(given, outputs)):
        if to is None or value is None:
            continue
        if tuple(value.shape) != tuple(to.shape) or value.dtype != to.dtype:
            raise ValueError(f"the body returns {value.dtype}{list(value.shape)} for output {i}, wanted is {to.dtype}{list(to.shape)}")
        index_of(to, value)


def put_numpy(to, value):
    to[...] = value


def put_torch(to, value):
    to.copy_(value)


# ---- callbacks ----

def status_of(error):
    if isinstance(error, Error):
        return int(error.status)
    for kind, status in ((MemoryError, _abi.Status.NO_MEMORY), (NotImplementedError, _abi.Status.UNSUPPORTED),
                         (ValueError, _abi.Status.INVALID_MODEL)):
        if isinstance(error, kind):
            return int(status)
    return int(_abi.Status.INTERNAL)


def text_of(error):
    return f"{type(error).__name__}: {error}"


def write_error(struct, text):
    """Writes to `error` of a struct of a callback."""
    at = ctypes.c_void_p.from_address(ctypes.addressof(struct) + type(struct).error.offset).value
    if at and struct.error_size:
        raw = text.encode(errors="replace")[:struct.error_size - 1] + b"\0"
        ctypes.memmove(at, raw, len(raw))


def accepted(function, names):
    """Those of `names` that a function names as its parameters."""
    import inspect                                      # it takes long, and few use it
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()
    return tuple(n for n in names if n in parameters)


def pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


class Plugin:
    """An operator. All functions get the fields as keywords.

    name        the operator's type in ONNX; version and namespace tell plugins of one name apart
    shapes      f(*inputs): a Spec for each input; gives the Spec of the output, or a list of them. An absent input is None
    run         f(inputs, outputs): NumPy arrays on the CPU. It writes to the outputs, or returns arrays, which are copied
    torch       f(inputs, outputs): the same with torch tensors, on the CPU and on a GPU (in the stream of the run)
    tensors     f(inputs, outputs): sinter.Tensors, on the CPU and on a GPU
    cuda        f(inputs, outputs): sinter.Tensors in memory of a GPU (__cuda_array_interface__, DLPack); `stream` is its number
    cuda_source, cuda_kernel    a CUDA source and its extern "C" __global__ function, which NVRTC compiles;
    cuda_launch                 f(inputs, outputs), Operands with the sizes of a run: gives a Launch
    supports    f(inputs, outputs): Operands; true where the plugin takes these types and layouts. Default: row-major
    workspace   f(inputs, outputs): bytes of scratch memory for the largest sizes
    tactics     f(inputs, outputs): a list of numbers, each of which the tuner times
    state       f(inputs, outputs): any object, made once for a shape
    fields      name -> a type (int, float, str, bytes, list[int], list[float]): nodes have to give it; or a default
    inputs, outputs     how many; or (least, most)

    Bodies may also take the keywords workspace (an address), workspace_size, tactic, state and stream. shapes may take
    `count`, the number of outputs, and `table`: table.dim(number) makes a size, table.size(output, most) one that the run tells.
    Functions may be called by any thread; an exception becomes a failure of the build or run,
    of which it is the __cause__. Functions that are not given: see plugin.h."""

    _has_keywords = True                                # each field is a keyword of its own

    def __init__(self, name, shapes, *, run=None, torch=None, tensors=None, cuda=None, cuda_source=None, cuda_kernel=None, cuda_launch=None,
                 supports=None, workspace=None, tactics=None, state=None, version="1", namespace="", fields=None, inputs=1,
                 outputs=1):
        self.name, self.version, self.namespace = name, str(version), namespace
        self.failures, self._states, self._lock = [], {}, threading.Lock()
        self._functions = {"shapes": shapes, "run": run, "torch": torch, "tensors": tensors, "cuda": cuda, "launch": cuda_launch, "supports": supports,
                           "workspace": workspace, "tactics": tactics, "state": state}
        # A keyword that a field has, too, is the field.
        taken = (fields or {}) if self._has_keywords else {}
        extras, shape_extras = ([n for n in names if n not in taken] for names in
                                (("workspace", "workspace_size", "tactic", "state", "stream"), ("count", "table")))
        self._extras = {k: accepted(self._functions[k], extras) for k in ("run", "torch", "tensors", "cuda") if self._functions[k]}
        self._shape_extras = accepted(shapes, shape_extras)
        self._takes_cuda = state is not None and "is_cuda" in accepted(state, ("is_cuda",))
        self._takes_tactic = cuda_launch is not None and "tactic" in accepted(cuda_launch, ("tactic",))
        keep = self._keep = [name.encode(), self.version.encode(), namespace.encode()]
        declared = [field_struct(n, *field_type(v)[:2], keep) for n, v in (fields or {}).items()]
        self._fields = (_abi.sinter_plugin_field * max(len(declared), 1))(*declared)
        self._names = tuple(fields or ())
        self.struct = s = _abi.sinter_plugin(struct_size=ctypes.sizeof(_abi.sinter_plugin), name=keep[0], version=keep[1],
                                             space=keep[2], field=self._fields, count_field=len(declared))
        s.in_min, s.in_max = pair(inputs)
        s.out_min, s.out_max = pair(outputs)
        for source in (cuda_source, cuda_kernel):
            keep.append(None if source is None else source.encode())
        s.cuda_source, s.cuda_kernel = keep[-2:]
        self._set("shapes", self._call_shapes)
        if supports is not None:
            self._set("supports", lambda p: self._guarded("supports", 0, self._call_supports, p))
        if workspace is not None:
            self._set("workspace", lambda p: self._guarded("workspace", SIZE_MAX, self._call_workspace, p))
        if tactics is not None:
            self._set("tactics", lambda p, to, room: self._guarded("tactics", 0, self._call_tactics, p, to, room))
        if state is not None:
            self._set("create", self._call_create)
            self._set("destroy", self._call_destroy)
        if run or torch or tensors:
            self._set("run", self._call_run)
        if cuda or torch or tensors:
            self._set("cuda_run", self._call_cuda_run)
        if cuda_launch is not None:
            self._set("cuda_launch", self._call_launch)

    def _set(self, name, function):
        made = dict(_abi.sinter_plugin._fields_)[name](function)
        self._keep.append(made)
        setattr(self.struct, name, made)

    # ---- failures ----

    def _failed(self, struct, error):
        text = text_of(error)
        recent_failures.append((text[:400], f"plugin '{self.name}'", error))
        write_error(struct, text)
        return status_of(error)

    def _guarded(self, name, result, function, *arguments):
        """A function that cannot say that it failed: the build or load that asked says it."""
        try:
            return function(*arguments)
        except BaseException as e:
            self.failures.append((name, e))
            recent_failures.append((text_of(e)[:400], f"plugin '{self.name}'", e))
            return result

    # ---- the functions ----

    def _values(self, struct):
        return {name: field_value(struct.field[i]) for i, name in enumerate(self._names)}

    def _problem(self, pointer):
        p = pointer.contents
        inputs = [operand(getattr(p, "in")[i]) for i in range(p.count_in)]
        return inputs, [operand(p.out[i]) for i in range(p.count_out)], self._values(p)

    def _call_shapes(self, pointer):
        s = pointer.contents
        table = DimTable(s)
        try:
            values = getattr(s, "in")
            inputs = [None if values[i].dtype == Dtype.NONE else
                      Spec(Dtype(values[i].dtype), tuple(Dim(table, d) for d in values[i].dim[:values[i].rank])) for i in range(s.count_in)]
            extra = {n: {"count": s.count_out, "table": table}[n] for n in self._shape_extras}
            given = self._functions["shapes"](*inputs, **self._values(s), **extra)
            given = [given] if isinstance(given, tuple) and len(given) == 2 and not isinstance(given[0], (tuple, list)) else list(given)
            if len(given) != s.count_out:
                raise ValueError(f"its shape function gives {len(given)} outputs, the node has {s.count_out}")
            for i, (dtype, shape) in enumerate(given):
                shape = tuple(shape)
                if len(shape) > _abi.RANK_MAX:
                    raise ValueError(f"its shape function gives output {i} {len(shape)} axes, at most {_abi.RANK_MAX}")
                s.out[i].dtype, s.out[i].rank = dtype_of(dtype), len(shape)
                for k, d in enumerate(shape):
                    s.out[i].dim[k] = table.dim(d).id
            return 0
        except BaseException as e:
            return self._failed(s, e)
        finally:
            table.struct = None

    def _call_supports(self, pointer):
        inputs, outputs, values = self._problem(pointer)
        return 1 if self._functions["supports"](inputs, outputs, **values) else 0

    def _call_workspace(self, pointer):
        inputs, outputs, values = self._problem(pointer)
        size = int(self._functions["workspace"](inputs, outputs, **values))
        if not 0 <= size < SIZE_MAX:
            raise ValueError(f"a workspace of {size} bytes")
        return size

    def _call_tactics(self, pointer, to, room):
        inputs, outputs, values = self._problem(pointer)
        found = [int(t) for t in self._functions["tactics"](inputs, outputs, **values)]
        if any(not 0 <= t < 2**32 for t in found):
            raise ValueError(f"tactics {found}: numbers from 0 to 2**32-1 are possible")
        for i, t in enumerate(found[:room]):
            to[i] = t
        return len(found)

    def _call_create(self, pointer, to):
        p = pointer.contents
        try:
            inputs, outputs, values = self._problem(pointer)
            extra = {"is_cuda": bool(p.is_cuda)} if self._takes_cuda else {}
            made = self._functions["state"](inputs, outputs, **values, **extra)
            handle = ctypes.c_char()
            with self._lock:
                self._states[ctypes.addressof(handle)] = handle, made
            to[0] = ctypes.addressof(handle)
            return 0
        except BaseException as e:
            return self._failed(p, e)

    def _call_destroy(self, _user, state):
        with self._lock:
            self._states.pop(state, None)

    def _extra(self, body, r):
        found = {"workspace": r.workspace or 0, "workspace_size": r.workspace_size, "tactic": r.tactic, "stream": r.stream or 0}
        if r.state:
            found["state"] = self._states[r.state][1]
        return {name: found.get(name) for name in self._extras[body]}

    def _operands_of(self, r, make):
        return [make(getattr(r, "in")[i], False) for i in range(r.count_in)], [make(r.out[i], True) for i in range(r.count_out)]

    def _call_run(self, pointer):
        r = pointer.contents
        try:
            body = next(name for name in ("run", "torch", "tensors") if self._functions[name])
            make = {"run": array_of, "torch": lambda t, _: torch_of(t, None), "tensors": lambda t, _: tensor_of(t, None)}[body]
            inputs, outputs = self._operands_of(r, make)
            given = self._functions[body](inputs, outputs, **self._values(r), **self._extra(body, r))
            if body != "tensors":
                take_results(given, outputs, put_numpy if body == "run" else put_torch)
            return 0
        except BaseException as e:
            return self._failed(r, e)

    def _call_cuda_run(self, pointer):
        r = pointer.contents
        try:
            device = _OnDevice()
            values = self._values(r)
            body = next(name for name in ("cuda", "torch", "tensors") if self._functions[name])
            if body != "torch":
                inputs, outputs = self._operands_of(r, lambda t, _: tensor_of(t, device))
                self._functions[body](inputs, outputs, **values, **self._extra(body, r))
                return 0
            import torch
            with torch.cuda.device(device.ordinal), torch.cuda.stream(torch.cuda.ExternalStream(r.stream or 0)):
                inputs, outputs = self._operands_of(r, lambda t, _: torch_of(t, device))
                take_results(self._functions["torch"](inputs, outputs, **values, **self._extra("torch", r)), outputs, put_torch)
            return 0
        except BaseException as e:
            return self._failed(r, e)

    def _call_launch(self, pointer, to):
        p, launch = pointer.contents, to.contents
        try:
            inputs, outputs, values = self._problem(pointer)
            extra = {"tactic": launch.tactic} if self._takes_tactic else {}
            given = Launch(*self._functions["launch"](inputs, outputs, **values, **extra))
            grid = [given.grid] if isinstance(given.grid, int) else list(given.grid)
            if not 1 <= len(grid) <= 3 or len(given.args) > _abi.PLUGIN_ARGS:
                raise ValueError(f"a grid of {len(grid)} axes and {len(given.args)} parameters; at most 3 and {_abi.PLUGIN_ARGS}")
            for i in range(3):
                launch.grid[i] = grid[i] if i < len(grid) else 1
            launch.block, launch.shared, launch.count_arg = int(given.block), int(given.shared), len(given.args)
            for arg, value in zip(launch.arg, given.args):
                set_arg(arg, value)
            return 0
        except BaseException as e:
            return self._failed(p, e)


class WholePlugin(Plugin):
    """A plugin whose functions get the fields as one dict, `values`: they may have any names."""
    _has_keywords = False

    def _values(self, struct):
        return {"values": super()._values(struct)}


def set_arg(arg, value):
    kinds = _abi.PluginArgKind
    if isinstance(value, str):
        for word, kind in (("in", kinds.IN), ("out", kinds.OUT)):
            if value.startswith(word) and value[len(word):].isdigit():
                arg.kind, arg.index = kind, int(value[len(word):])
                return
        if value != "workspace":
            raise ValueError(f"the parameter {value!r} is none of 'in0', 'out0' and 'workspace'")
        arg.kind = kinds.WORKSPACE
    elif isinstance(value, float):
        arg.kind, arg.real = kinds.F32, value
    elif isinstance(value, tuple):
        arg.kind, arg.real = kinds.F64, float(value[1])
    else:
        arg.kind, arg.integer = kinds.INT, int(value)


def plugin(name, **options):
    """A decorator: the function becomes the body (`run`) of a Plugin, which it is replaced by. Options: those of Plugin."""
    return lambda function: Plugin(name, run=function, **options)


class Plugins:
    """Plugins that builds, engines and networks can use: sinter.build(model, plugins=plugins). Objects that use it keep it."""

    def __init__(self, *plugins, check=False):
        handle = ctypes.c_void_p()
        self._keep, self._handle = [], None
        call("sinter_plugins_create", None, ctypes.byref(handle))
        self._handle = handle.value
        if check:
            self.check()
        for each in plugins:
            self.add(each)

    def __del__(self):
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            lib.sinter_plugins_destroy(handle)

    def add(self, plugin):
        """Adds a Plugin; or opens a shared library or a .cu file, whose code runs with the rights of this process."""
        if isinstance(plugin, Plugin):
            call("sinter_plugins_add", self._handle, ctypes.byref(plugin.struct))
            self._keep.append(plugin)
        else:
            import os
            call("sinter_plugins_load", self._handle, os.fsencode(plugin))

    def check(self, is_on=True):
        """Runs plugins on copies between guards: one that writes past an operand is named. Before the first use."""
        lib.sinter_plugins_check(self._handle, int(is_on))

    @property
    def names(self):
        """(name, version, namespace) of each."""
        found = []
        for i in range(lib.sinter_plugins_count(self._handle)):
            p = lib.sinter_plugins_at(self._handle, i).contents
            found.append((p.name.decode(), p.version.decode(), p.space.decode()))
        return found

    def forget_failures(self):
        for p in self._keep:
            p.failures.clear()

    def raise_failures(self):
        """Raises what a function without a status of its own has failed with."""
        for p in self._keep:
            if p.failures:
                name, error = p.failures[0]
                p.failures.clear()
                if not isinstance(error, Exception):
                    raise error
                raise InternalError(f"plugin '{p.name}' version '{p.version}': its function '{name}' failed: {text_of(error)}") from error


def registry(plugins):
    """A Plugins for what callers give: None, one of these, or a list of Plugin and paths."""
    if plugins is None or isinstance(plugins, Plugins):
        return plugins
    return Plugins(*(plugins if isinstance(plugins, (list, tuple)) else [plugins]))
