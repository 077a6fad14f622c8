# SPDX-License-Identifier: Apache-2.0
"""An engine as a function of torch tensors. Tensors are passed by address; results are new tensors of torch."""
import ctypes
import operator

import torch

import sinter
from sinter import _abi
from sinter._context import c_run, c_set_input, c_set_output
from sinter._dtype import dtype_of
from sinter._library import failure, quick

from ._lowering import Unsupported, expr_of

c_run_async = quick("sinter_context_run_async", ctypes.c_void_p, ctypes.c_void_p)
# What the text of a sympy expression of sizes calls.
NAMES = {"FloorDiv": operator.floordiv, "CleanDiv": operator.floordiv, "Mod": operator.mod, "PythonMod": operator.mod, "Max": max,
         "Min": min, "IntTrueDiv": operator.truediv, "CeilToInt": lambda a: -int(-a // 1), "FloorToInt": lambda a: int(a // 1)}
# CUDA's default stream, for which torch's handle is 0: of 0, sinter would make a stream of its own, in no order with torch's.
LEGACY_STREAM = 1
UNSUPPORTED, DEVICE = int(_abi.Status.UNSUPPORTED), int(_abi.Place.DEVICE)
# What torch's own compiler calls: a third of torch.empty's time.
empty_strided = getattr(torch._C._dynamo.guards, "_empty_strided_cpu", torch.empty_strided)
version_of = operator.attrgetter("_version")
address_of = torch.Tensor.data_ptr


def compiled_sizes(groups, symbols):
    """A function of the symbols' values that gives, for each group of sizes, their tuple. Errors: Unsupported."""
    exprs = [[expr_of(size) for size in group] for group in groups]
    for e in (e for group in exprs for e in group):
        unknown = e.free_symbols.difference(symbols)
        if unknown:
            raise Unsupported(f"the size {e} of a result is not that of any input")
    body = ", ".join("(" + "".join(f"{e}, " for e in group) + ")" for group in exprs)
    function = eval(f"lambda {', '.join(map(str, symbols))}: [{body}]", dict(NAMES))
    try:
        function(*[7] * len(symbols))
    except ZeroDivisionError:
        pass
    except Exception as e:
        raise Unsupported(f"a size of a result is none of whole numbers: {e}") from None
    return function


def with_strides(groups):
    """(sizes, strides of row-major memory) for each group of sizes."""
    made = []
    for sizes in groups:
        strides, step = [], 1
        for size in reversed(sizes):
            strides.append(step)
            step *= max(size, 1)
        made.append((sizes, tuple(reversed(strides))))
    return made


class Output:
    """A result of a partition: output `index` of the engine with its axes in the order `inverse`, or a number or None (index is
    None)."""
    __slots__ = ("index", "dtype", "inverse")

    def __init__(self, index=None, dtype=None, inverse=None):
        self.index, self.dtype, self.inverse = index, dtype, inverse


class Slot:
    """What a context knows of one input."""
    __slots__ = ("name", "tensor", "struct", "data", "shape")

    def __init__(self, name, dtype):
        self.name, self.tensor = name.encode(), _abi.sinter_tensor(dtype=dtype_of(dtype))
        self.struct, self.data, self.shape = ctypes.addressof(self.tensor), None, None


class Runner:
    """A context, for one call at a time."""
    __slots__ = ("context", "address", "error", "error_address", "inputs", "outputs", "numbers")

    def __init__(self, built, stream):
        self.context = built.engine.context(stream=stream)
        self.address, self.error = self.context._address, _abi.sinter_error()
        self.error_address = ctypes.addressof(self.error)
        self.inputs = [(Slot(name, dtype), i) for i, name, dtype in built.inputs]
        self.outputs = [name.encode() for name in built.output_names]
        self.numbers = {}

    def fail(self, status):
        return failure(status, self.error)

    def set_input(self, slot, x, place):
        tensor, shape = slot.tensor, x.shape
        tensor.data = x.data_ptr()
        if shape != slot.shape:
            tensor.rank, tensor.place = len(shape), place
            tensor.dim[:len(shape)] = shape
        status = c_set_input(self.address, slot.name, slot.struct, self.error_address)
        if status:
            slot.data = slot.shape = None
            raise self.fail(status)
        slot.data, slot.shape = tensor.data, shape

    def set_number(self, slot, i, number):
        """A size that no tensor has: a tensor of one number on the host."""
        held = self.numbers[i] = torch.tensor([number], device="cpu")
        self.set_input(slot, held, 0)


class Built:
    """An engine with the weights that it was built with. It does not change after it was made, so that any number of threads may run
    it while another is being built.

    inputs      (index of the argument, name, element type) of each input
    outputs     an Output for each result; output_names: of the engine's outputs
    where       symbol -> (index of the argument, axis; None: the argument is the number)
    limits      symbol -> the largest value that the engine takes
    sizes       for each result the sizes to allocate, or the number: expressions of the symbols
    weights     index of the argument -> tensor"""

    def __init__(self, engine, device, inputs, output_names, outputs, where, limits, sizes, weights, is_single):
        self.engine, self.device, self.is_single = engine, device, is_single
        self.inputs, self.output_names, self.outputs = inputs, output_names, outputs
        self.is_cuda, self.is_sync, self.pools, self.calls = device.type == "cuda", device.type != "cuda", {}, 0
        self.ordinal = torch.cuda.current_device() if self.is_cuda and device.index is None else device.index or 0
        self.place = DEVICE if self.is_cuda else 0
        self.where, self.limits, self.known = list(where.values()), [limits.get(s) for s in where], {}
        self.symbols = list(where)
        function = compiled_sizes(sizes, self.symbols)
        self.function, self.sizes = (function, None) if where else (None, with_strides(function()))
        self.positions, self.weights = list(weights), list(weights.values())
        self.pick = operator.itemgetter(*self.positions) if len(weights) > 1 else lambda args: [args[i] for i in self.positions]
        self.versions, self.addresses = list(map(version_of, self.weights)), list(map(address_of, self.weights))

    def changed(self, args):
        """Whether weights are not what the engine was built with."""
        given = self.pick(args)
        return (any(map(operator.is_not, given, self.weights)) or list(map(version_of, given)) != self.versions
                or list(map(address_of, given)) != self.addresses)

    def symbol_values(self, args):
        return tuple([int(args[i]) if axis is None else args[i].shape[axis] for i, axis in self.where])

    def too_large(self, args):
        """symbol -> value of what exceeds the engine's ranges."""
        return {s: v for s, v, most in zip(self.symbols, self.symbol_values(args), self.limits) if most is not None and v > most}

    def sizes_for(self, args):
        """The sizes and strides of results for the arguments' sizes; None: they exceed the engine's ranges."""
        values = self.symbol_values(args)
        found = self.known.get(values)
        if found is None:
            if self.too_large(args):
                return None
            if len(self.known) > 4096:
                self.known.clear()
            found = self.known[values] = with_strides(self.function(*values))
        return found

    def runner(self):
        """A context that nobody uses, on the current stream, and the list to put it back to."""
        stream = (torch._C._cuda_getCurrentRawStream(self.ordinal) or LEGACY_STREAM) if self.is_cuda else None
        pool = self.pools.get(stream)
        if pool is None:
            pool = self.pools.setdefault(stream, [])
        try:
            return pool.pop(), pool
        except IndexError:
            return Runner(self, stream), pool

    def run(self, args, sizes):
        runner, pool = self.runner()
        held = []
        for slot, i in runner.inputs:
            x = args[i]
            if type(x) is int:
                runner.set_number(slot, i, x)
                continue
            if not x.is_contiguous():
                x = x.contiguous()
                held.append(x)
            if x.data_ptr() != slot.data or x.shape != slot.shape:
                runner.set_input(slot, x, self.place)
        made, address, error = [], runner.address, runner.error_address
        for output, (shape, strides) in zip(self.outputs, sizes):
            k = output.index
            if k is None:
                made.append(shape[0] if shape else None)
                continue
            out = torch.empty(shape, dtype=output.dtype, device=self.device) if self.is_cuda else empty_strided(shape, strides, output.dtype)
            status = c_set_output(address, runner.outputs[k], out.data_ptr(), out.nbytes, self.place, error)
            if status:
                raise runner.fail(status)
            made.append(out if output.inverse is None else out.permute(output.inverse))
        status = c_run(address, error) if self.is_sync else c_run_async(address, error)
        if status == UNSUPPORTED and not self.is_sync:
            self.is_sync = True                 # a step on the host: such runs wait
            status = c_run(address, error)
        if status:
            raise runner.fail(status)
        pool.append(runner)
        self.calls += 1
        return made[0] if self.is_single else made


def load_engine(plan, device):
    """An Engine for a torch.device."""
    if device.type != "cuda":
        return sinter.load(plan)
    ordinal = torch.cuda.current_device() if device.index is None else device.index
    return sinter.load(plan, device=f"cuda:{ordinal}")
