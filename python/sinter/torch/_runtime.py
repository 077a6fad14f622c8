# SPDX-License-Identifier: Apache-2.0
"""A partition as a function: an engine, contexts to run it with, and the weights that it was built with."""
import ctypes
import operator
import threading

import sympy
import torch
from torch.utils._sympy.value_ranges import bound_sympy

import sinter
from sinter import _abi
from sinter._context import c_run, c_set_input, c_set_output
from sinter._library import failure, quick

from ._lowering import ONNX, SYMBOLIC, Lowering, as_int, elements, expr_of

c_run_async = quick("sinter_context_run_async", ctypes.c_void_p, ctypes.c_void_p)
c_output = quick("sinter_context_output", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)
DTYPES = {torch.float32: "f32", torch.uint8: "u8", torch.int8: "i8", torch.uint16: "u16", torch.int16: "i16",
          torch.int32: "i32", torch.int64: "i64", torch.bool: "bool", torch.float16: "f16", torch.float64: "f64",
          torch.uint32: "u32", torch.uint64: "u64", torch.bfloat16: "bf16"}
NAMES = {"FloorDiv": lambda a, b: a // b, "CleanDiv": lambda a, b: a // b, "Mod": lambda a, b: a % b,
         "PythonMod": lambda a, b: a % b, "Max": max, "Min": min, "IntTrueDiv": lambda a, b: a / b, "CeilToInt": lambda a: -int(-a // 1),
         "FloorToInt": lambda a: int(a // 1)}
UNSUPPORTED = _abi.Status.UNSUPPORTED
version_of = operator.attrgetter("_version")
address_of = torch.Tensor.data_ptr
builds = 0                      # engines that this process has built for torch


def compiled_sizes(groups, symbols):
    """A function of the symbols' values that gives, for each group of sizes, their tuple."""
    def text(size):
        e = expr_of(size)
        for s in e.free_symbols:
            if s not in symbols:
                raise KeyError(s)
        return str(e)

    body = ", ".join("(" + "".join(text(s) + ", " for s in group) + ")" for group in groups)
    arguments = ", ".join(str(s) for s in symbols)
    return eval(f"lambda {arguments}: [{body}]", dict(NAMES))


def physical_order(tensor):
    """The axes of a tensor in the order in which they lie in memory; None: row-major, or not dense."""
    if tensor.dim() < 2:
        return None
    def hint(v):
        return v if isinstance(v, int) else int(v.node.hint if v.node.hint is not None else 2)

    sizes, strides = [hint(s) for s in tensor.shape], [hint(s) for s in tensor.stride()]
    order = sorted(range(len(sizes)), key=lambda i: (-strides[i], i))
    expected = 1
    for i in reversed(order):
        if sizes[i] != 1 and strides[i] != expected:
            return None
        expected *= sizes[i]
    kept = [i for i in order if sizes[i] != 1]
    if kept == sorted(kept):
        return None
    return order


class Slot:
    """What a context knows of one input."""
    __slots__ = ("name", "tensor", "struct", "data", "shape")

    def __init__(self, name, dtype):
        self.name, self.tensor = name.encode(), _abi.sinter_tensor(dtype=dtype)
        self.struct, self.data, self.shape = ctypes.addressof(self.tensor), None, None


class Runner:
    """A context with the memory for its calls."""
    __slots__ = ("context", "address", "error", "error_address", "inputs", "outputs", "numbers")

    def __init__(self, partition, stream):
        self.context = partition.engine.context(stream=stream)
        self.address = self.context._address
        self.error = _abi.sinter_error()
        self.error_address = ctypes.addressof(self.error)
        self.inputs = [Slot(name, sinter._dtype.dtype_of(dtype)) for name, dtype in partition.input_types]
        self.outputs = [name.encode() for name in partition.output_names]
        self.numbers = (ctypes.c_int64 * max(len(partition.inputs), 1))()

    def fail(self, status):
        return failure(status, self.error)


class Partition:
    """A part of a torch graph that an engine computes. Calls take the values of its placeholders and give its outputs.

    graph_module    functional aten operators, all of them convertible
    constants       index of a placeholder -> the tensor that it is in every call: a weight of the engine
    names           index of a placeholder -> the name of that weight in the model
    bounds          symbol -> (least, usual, most), where the caller set them
    plan            bytes of the engine, if it was built before
    is_file         the engine is for a file: outputs are row-major, and have the names of the graph's results

    Any number of threads may call. A weight that was changed since the last call is noticed by its version, its memory and
    its identity: the engine is refitted or built again before the call goes on."""

    def __init__(self, name, graph_module, constants, settings, device, names=None, bounds=None, plan=None, is_file=False):
        self.name, self.graph, self.settings, self.device = name, graph_module.graph, settings, device
        self.is_cuda = device.type == "cuda"
        self.lock, self.is_sync, self.pools, self.limits = threading.RLock(), not self.is_cuda, {}, {}
        self.placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        results = next(n for n in self.graph.nodes if n.op == "output").args[0]
        self.is_single = not isinstance(results, (list, tuple))
        self.results = [results] if self.is_single else list(results)
        self.constants = dict(constants)
        self.weight_positions = sorted(self.constants)
        self.bounds, self.is_file, self.usual = bounds or {}, is_file, {}
        taken = {n.name for n in self.graph.nodes}
        self.weight_names = {i: (names or {}).get(i) or f"w{i}" for i in self.weight_positions}
        self.weight_names = {i: f"{name}.weight" if name in taken else name for i, name in self.weight_names.items()}
        self.prepare()
        self.build(plan)

    # ---- building ----

    def prepare(self):
        """Finds symbols and ranges, inputs and outputs."""
        values = [n.meta.get("val") for n in self.placeholders]
        self.shape_env = next((v.fake_mode.shape_env for v in values
                               if isinstance(v, torch.Tensor) and getattr(v, "fake_mode", None) is not None), None)
        for v in values:
            if isinstance(v, SYMBOLIC):
                self.shape_env = v.node.shape_env
        self.where = {}                         # symbol -> (placeholder, axis), or (placeholder, None) of a number
        for i, v in enumerate(values):
            if isinstance(v, torch.Tensor) and i not in self.constants:
                for axis, size in enumerate(v.shape):
                    if as_int(size) is None and expr_of(size).is_Symbol:
                        self.where.setdefault(expr_of(size), (i, axis))
        for i, v in enumerate(values):
            if isinstance(v, torch.SymInt) and v.node.expr.is_Symbol:
                self.where.setdefault(v.node.expr, (i, None))
        self.symbols = list(self.where)
        self.ranges = dict(self.shape_env.var_to_range) if self.shape_env is not None else {}
        self.inputs = [i for i, v in enumerate(values) if isinstance(v, torch.Tensor) and i not in self.constants]
        self.inputs += [i for s, (i, axis) in self.where.items() if axis is None]

    def model(self):
        """The ONNX model, and profiles."""
        lowering = Lowering(ranges=self.ranges)
        model = lowering.model
        used = [i for i in self.inputs if isinstance(self.placeholders[i].meta["val"], torch.Tensor)]
        names, sizes_of = {}, {}
        self.profile, equal = {}, {}
        for i in used:
            node, dims = self.placeholders[i], []
            for axis, size in enumerate(node.meta["val"].shape):
                known, expr = as_int(size), expr_of(size)
                if known is None and not expr.is_Symbol:
                    dims.append(sizes_of.setdefault(expr, f"e{len(sizes_of)}"))
                else:
                    dims.append(str(expr) if known is None else known)
            names[i] = model.add_input(node.name, ONNX[node.meta["val"].dtype], dims)
            lowering.env[node] = names[i]
        for symbol, (i, axis) in self.where.items():
            if axis is None:
                names[i] = model.add_input(self.placeholders[i].name, ONNX[torch.int64], [1])
                lowering.symbols[symbol] = lambda name=names[i]: name
            else:
                lowering.symbols[symbol] = lambda name=names[i], axis=axis: lowering.op(
                    "Shape", name, start=axis, end=axis + 1)
        for i, tensor in self.constants.items():
            lowering.env[self.placeholders[i]] = lowering.tensor(tensor, self.weight_names[i])
        for node in self.graph.nodes:
            if node.op == "call_function":
                lowering.convert(node)
        self.output_names, self.output_orders = [], []
        for k, node in enumerate(self.results):
            val = node.meta["val"] if node is not None else None
            if not isinstance(val, torch.Tensor):
                continue
            order = None if self.is_file else physical_order(val)
            value = lowering.value(node)
            made = f"{node.name}_{k}" if node in self.results[:k] or node.op == "placeholder" else node.name
            lowering.op("Transpose" if order else "Identity", value, perm=order or None, result=made)
            shape = [val.shape[a] for a in order] if order else list(val.shape)
            dims = [as_int(s) if as_int(s) is not None else f"o{k}_{a}" for a, s in enumerate(shape)]
            model.add_output(made, ONNX[val.dtype], dims)
            self.output_names.append(made)
            self.output_orders.append(order)
        self.input_types = [(names[i], DTYPES[self.placeholders[i].meta["val"].dtype]
                             if isinstance(self.placeholders[i].meta["val"], torch.Tensor) else "i64") for i in self.inputs]
        for expr, name in sizes_of.items():
            self.profile[name] = self.range_of(expr)
        for symbol, (i, axis) in self.where.items():
            if axis is not None:
                self.profile[str(symbol)] = self.range_of(symbol)
        return model.serialize()

    def range_of(self, expr):
        """(least, usual, most) of a size."""
        if all(s in self.bounds for s in expr.free_symbols):
            found = [int(expr.xreplace({s: sympy.Integer(self.bounds[s][k]) for s in expr.free_symbols})) for k in range(3)]
            self.limits[expr] = found[2]
            return tuple(found)
        hints = getattr(self.shape_env, "backed_var_to_val", None) or self.shape_env.var_to_val
        found = expr.xreplace({s: sympy.Integer(int(hints[s])) for s in expr.free_symbols if s in hints})
        usual = max(int(found) if found.is_number else 1, self.usual.get(expr, 1))
        bounds = bound_sympy(expr, self.ranges)
        least = max(int(bounds.lower), 1) if bounds.lower.is_Integer else 1
        most = usual * self.settings.growth
        if bounds.upper.is_Integer and int(bounds.upper) < 2**31:
            most = int(bounds.upper)
        usual = min(max(usual, least), most)
        self.limits[expr] = most
        return least, usual, most

    def build(self, plan=None):
        global builds
        self.limits = {}
        onnx = self.model()
        if plan is None:
            plan = sinter.build(onnx, profiles=self.profile or None, **self.settings.build_options(self.device))
            builds += 1
        del onnx
        self.plan = plan
        self.load()

    def load(self):
        device = f"cuda:{self.device.index or 0}" if self.is_cuda else None
        self.engine = sinter.load(self.plan, **({"device": device} if device else {}))
        if [i.name for i in self.engine.inputs] != [name for name, _ in self.input_types]:
            raise sinter.InvalidModel(f"the engine of '{self.name}' has the inputs {[i.name for i in self.engine.inputs]}, "
                                      f"{[name for name, _ in self.input_types]} are wanted")
        self.pools = {}
        self.remember()
        self.compile_outputs()

    def remember(self):
        """Takes note of the weights as they are now."""
        self.weights = [self.constants[i] for i in self.weight_positions]
        self.versions = [w._version for w in self.weights]
        self.addresses = [w.data_ptr() for w in self.weights]

    def compile_outputs(self):
        """Prepares the shapes of outputs, which may depend on those of inputs."""
        self.makers, groups = [], []
        k = 0
        for node in self.results:
            val = node.meta["val"] if node is not None else None
            if isinstance(val, torch.Tensor):
                order = self.output_orders[k]
                shape = [val.shape[a] for a in order] if order else list(val.shape)
                inverse = [order.index(a) for a in range(len(order))] if order else None
                self.makers.append((k, val.dtype, inverse))
                groups.append(shape)
                k += 1
            else:
                self.makers.append((None, None, None))
                groups.append([val] if val is not None else [])
        self.is_dynamic = bool(self.symbols)
        function = compiled_sizes(groups, self.symbols)
        self.sizes = function if self.is_dynamic else function()
        self.known = {}

    # ---- weights ----

    def changed(self, given):
        """Whether weights are not what the engine was built with."""
        return (any(map(operator.is_not, given, self.weights)) or list(map(version_of, self.weights)) != self.versions
                or list(map(address_of, self.weights)) != self.addresses)

    def refresh(self, given):
        """Brings the engine up to date with changed weights."""
        with self.lock:
            if not self.changed(given):
                return
            for i, tensor, old in zip(self.weight_positions, given, self.weights):
                if tensor.dtype != old.dtype or tensor.shape != old.shape:
                    raise RuntimeError(f"a parameter of '{self.name}' is now {tensor.dtype} {tuple(tensor.shape)}, it was "
                                       f"{old.dtype} {tuple(old.shape)}: compile the module again")
                self.constants[i] = tensor
            if not self.settings.immutable_weights:
                has = {w.name for w in self.engine.weights()}
                try:
                    self.plan = self.engine.refit({name: host_tensor(self.constants[i]) for i, name in self.weight_names.items()
                                                   if name in has})
                    self.load()
                    return
                except sinter.InvalidArgument:
                    pass                                    # a weight that decides what the engine is: built again
            self.build()

    # ---- running ----

    def grow(self, values):
        """Builds an engine for larger sizes than those that the present one takes."""
        with self.lock:
            for symbol, value in zip(self.symbols, values):
                if value > self.limits.get(symbol, value):
                    if symbol in self.bounds:
                        raise ValueError(f"a size is {value}, at most {self.limits[symbol]} was asked for")
                    self.usual[symbol] = value
            self.build()

    def sizes_for(self, args):
        """The sizes of outputs for the inputs' sizes."""
        values = tuple([args[i].shape[axis] if axis is not None else int(args[i]) for i, axis in self.where.values()])
        found = self.known.get(values)
        if found is None:
            if any(v > self.limits.get(s, v) for s, v in zip(self.symbols, values)):
                self.grow(values)
            if len(self.known) > 4096:
                self.known.clear()
            found = self.known[values] = self.sizes(*values)
        return found

    def __call__(self, *args):
        if self.weight_positions:
            given = [args[i] for i in self.weight_positions]
            if self.changed(given):
                self.refresh(given)
        sizes = self.sizes_for(args) if self.is_dynamic else self.sizes
        stream = torch.cuda.current_stream(self.device).cuda_stream if self.is_cuda else None
        pools = self.pools
        pool = pools.get(stream)
        if pool is None:
            pool = pools[stream] = []
        try:
            runner = pool.pop()
        except IndexError:
            runner = Runner(self, stream)
        made, held, status = [], [], 0
        address, error = runner.address, runner.error_address
        for slot, i in zip(runner.inputs, self.inputs):
            x = args[i]
            if type(x) is int:
                runner.numbers[i] = x
                self.set_number(runner, slot, i)
                continue
            if not x.is_contiguous():
                x = x.contiguous()
                held.append(x)
            shape, data = x.shape, x.data_ptr()
            if data != slot.data or shape != slot.shape:
                tensor = slot.tensor
                tensor.data = data
                if shape != slot.shape:
                    tensor.rank = len(shape)
                    tensor.dim[:len(shape)] = shape
                    tensor.place = x.is_cuda
                status = c_set_input(address, slot.name, slot.struct, error)
                if status:
                    raise runner.fail(status)
                slot.data, slot.shape = data, shape
        for (k, dtype, inverse), shape in zip(self.makers, sizes):
            if k is None:
                made.append(shape[0] if shape else None)
                continue
            out = torch.empty(shape, dtype=dtype, device=self.device)
            status = c_set_output(address, runner.outputs[k], out.data_ptr(), out.nbytes, self.is_cuda, error)
            if status:
                raise runner.fail(status)
            made.append(out.permute(inverse) if inverse else out)
        if self.is_sync:
            status = c_run(address, error)
        else:
            status = c_run_async(address, error)
            if status == UNSUPPORTED:
                self.is_sync = True
                status = c_run(address, error)
        if status:
            raise runner.fail(status)
        pool.append(runner)
        return made[0] if self.is_single else made

    def set_number(self, runner, slot, i):
        slot.tensor.rank, slot.tensor.dim[0] = 1, 1
        slot.tensor.data = ctypes.addressof(runner.numbers) + 8 * i
        status = c_set_input(runner.address, slot.name, slot.struct, runner.error_address)
        if status:
            raise runner.fail(status)


def host_tensor(tensor):
    """A torch tensor as sinter takes it."""
    raw = elements(tensor)
    return sinter.Tensor(raw, DTYPES[tensor.dtype], tuple(tensor.shape))

