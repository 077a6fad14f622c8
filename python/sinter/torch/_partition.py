# SPDX-License-Identifier: Apache-2.0
"""A partition of a graph: its ONNX model, the engine, and what has the engine built again."""
import threading

import sympy
import torch
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

import sinter

from ._engine_cache import build
from ._lowering import ONNX, SYMBOLIC, Lowering, as_int, elements, expr_of
from ._runtime import Built, Output, load_engine

DTYPES = {torch.float32: "f32", torch.uint8: "u8", torch.int8: "i8", torch.uint16: "u16", torch.int16: "i16",
          torch.int32: "i32", torch.int64: "i64", torch.bool: "bool", torch.float16: "f16", torch.float64: "f64",
          torch.uint32: "u32", torch.uint64: "u64", torch.bfloat16: "bf16"}
RESTLESS_CALLS, RESTLESS_TIMES = 3, 2       # changed within so many calls, so many times in a row: no weight, but an input
builds = 0                                  # engines that this process has built for torch


def hint_of(size):
    """The value that a size had when the graph was traced."""
    return size if isinstance(size, int) else int(size.node.hint if size.node.hint is not None else 2)


def physical_order(tensor):
    """The axes of a tensor in the order in which they lie in memory; None: row-major, or not dense."""
    sizes, strides = [hint_of(s) for s in tensor.shape], [hint_of(s) for s in tensor.stride()]
    order, expected = sorted(range(len(sizes)), key=lambda i: (-strides[i], i)), 1
    for i in reversed(order):
        if sizes[i] != 1 and strides[i] != expected:
            return None
        expected *= sizes[i]
    kept = [i for i in order if sizes[i] != 1]
    return None if kept == sorted(kept) else order


def host_tensor(tensor):
    """A torch tensor as sinter takes it."""
    return sinter.Tensor(elements(tensor), DTYPES[tensor.dtype], tuple(tensor.shape))


class Partition:
    """A part of a torch graph that an engine computes. Calls take the values of its placeholders and give its outputs.

    graph_module    functional aten operators, all of them convertible
    constants       index of a placeholder -> the tensor that it is in every call: a weight of the engine
    names           index of a placeholder -> the name of that weight in the model
    bounds          symbol -> (least, usual, most), where the caller set them
    plan            bytes of the engine, if it was built before
    is_stale        the plan has other values of the weights: it is refitted
    is_file         the engine is for a file: outputs are row-major, and named output0, output1 and so on

    Any number of threads may call. A weight that was changed since the last call is noticed by its version, its memory and
    its identity: the engine is refitted or built again before the call goes on. A tensor that changes again and again is no
    weight: it becomes an input."""

    def __init__(self, name, graph_module, constants, settings, device, names=None, bounds=None, plan=None, is_stale=False,
                 is_file=False):
        self.name, self.graph, self.settings, self.device = name, graph_module.graph, settings, device
        self.lock, self.restless, self.usual = threading.RLock(), {}, {}
        self.constants, self.bounds, self.is_file = dict(constants), bounds or {}, is_file
        self.placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        results = next(n for n in self.graph.nodes if n.op == "output").args[0]
        self.is_single = not isinstance(results, (list, tuple))
        self.results = [results] if self.is_single else list(results)
        taken = {n.name for n in self.graph.nodes}
        self.weight_names = {i: (names or {}).get(i) or f"w{i}" for i in sorted(self.constants)}
        self.weight_names = {i: f"{name}.weight" if name in taken else name for i, name in self.weight_names.items()}
        self.build(plan)
        if plan is not None and is_stale and not self.refit():
            self.build()

    def __call__(self, *args):
        built = self.built
        if built.weights and built.changed(args):
            built = self.refresh(args)
        sizes = built.sizes
        if sizes is None:
            sizes = built.sizes_for(args)
            if sizes is None:
                built = self.grow(args)
                sizes = built.sizes_for(args)
        return built.run(args, sizes)

    # ---- the model ----

    def find_symbols(self):
        """Where symbols come from, and their ranges."""
        values = [n.meta.get("val") for n in self.placeholders]
        envs = [v.node.shape_env for v in values if isinstance(v, SYMBOLIC)]
        envs += [v.fake_mode.shape_env for v in values if getattr(v, "fake_mode", None) is not None]
        self.shape_env = next((e for e in envs if e is not None), None)
        self.ranges = dict(self.shape_env.var_to_range) if self.shape_env is not None else {}
        where = {}
        for i, v in enumerate(values):
            if isinstance(v, torch.Tensor) and i not in self.constants:
                for axis, size in enumerate(v.shape):
                    if as_int(size) is None and expr_of(size).is_Symbol:
                        where.setdefault(expr_of(size), (i, axis))
        for i, v in enumerate(values):
            if isinstance(v, torch.SymInt) and v.node.expr.is_Symbol:
                where.setdefault(v.node.expr, (i, None))
        return where

    def range_of(self, expr):
        """(least, usual, most) of a size."""
        if all(s in self.bounds for s in expr.free_symbols):
            return tuple(int(expr.xreplace({s: sympy.Integer(self.bounds[s][k]) for s in expr.free_symbols})) for k in range(3))
        hints = getattr(self.shape_env, "backed_var_to_val", None) or self.shape_env.var_to_val
        found = expr.xreplace({s: sympy.Integer(max(int(hints.get(s, 1)), self.usual.get(s, 1))) for s in expr.free_symbols})
        # torch traces a free size as 2 or more, and exports permit 1 all the same.
        usual, bounds = int(found), bound_sympy(expr, {s: ValueRanges(1, r.upper) if r.lower == 2 else r for s, r in self.ranges.items()})
        least = max(int(bounds.lower), 1) if bounds.lower.is_Integer else 1
        has_most = bounds.upper.is_Integer and int(bounds.upper) < 2**31
        most = int(bounds.upper) if has_most else usual * self.settings.growth
        return least, min(max(usual, least), most), most

    def add_inputs(self, lowering, where, profile):
        """Adds the model's inputs; [(placeholder, name, element type)]."""
        model, inputs, compound = lowering.model, [], {}
        for i, node in enumerate(self.placeholders):
            val, dims = node.meta.get("val"), []
            if not isinstance(val, torch.Tensor) or i in self.constants:
                continue
            for size in val.shape:
                known, expr = as_int(size), expr_of(size)
                if known is None and not expr.is_Symbol:
                    dims.append(compound.setdefault(expr, f"e{len(compound)}"))
                else:
                    dims.append(str(expr) if known is None else known)
            lowering.env[node] = model.add_input(node.name, ONNX[val.dtype], dims)
            inputs.append((i, node.name, DTYPES[val.dtype]))
        for symbol, (i, axis) in where.items():
            name = self.placeholders[i].name
            if axis is None:
                model.add_input(name, ONNX[torch.int64], [1])
                inputs.append((i, name, "i64"))
                lowering.symbols[symbol] = lambda name=name: name
            else:
                profile[str(symbol)] = self.range_of(symbol)
                lowering.symbols[symbol] = lambda name=name, axis=axis: lowering.op("Shape", name, start=axis, end=axis + 1)
        profile.update((name, self.range_of(expr)) for expr, name in compound.items())
        return inputs

    def add_outputs(self, lowering):
        """Adds the model's outputs; (their names, an Output for each result, the sizes of each result)."""
        names, outputs, sizes = [], [], []
        for k, node in enumerate(self.results):
            val = node.meta["val"] if node is not None else None
            if not isinstance(val, torch.Tensor):
                outputs.append(Output())
                sizes.append([] if val is None else [val])
                continue
            order = None if self.is_file else physical_order(val)
            shape = [val.shape[a] for a in order] if order else list(val.shape)
            name = f"output{len(names)}" if self.is_file else f"{node.name}_{k}" if node in self.results[:k] or node.op == "placeholder" else node.name
            lowering.op("Transpose" if order else "Identity", lowering.value(node), perm=order, result=name)
            dims = [as_int(s) if as_int(s) is not None else f"o{k}_{a}" for a, s in enumerate(shape)]
            lowering.model.add_output(name, ONNX[val.dtype], dims)
            outputs.append(Output(len(names), val.dtype, [order.index(a) for a in range(len(order))] if order else None))
            names.append(name)
            sizes.append(shape)
        return names, outputs, sizes

    # ---- the engine ----

    def has_convolution(self):
        return any(n.target is torch.ops.aten.convolution.default for n in self.graph.nodes)

    def build(self, plan=None):
        """Makes `built`. `plan`: the engine, if it is there already. Errors: sinter.Error, Unsupported."""
        global builds
        where, profile = self.find_symbols(), {}
        lowering = Lowering(ranges=self.ranges)
        inputs = self.add_inputs(lowering, where, profile)
        for i, tensor in self.constants.items():
            lowering.env[self.placeholders[i]] = lowering.tensor(tensor, self.weight_names[i])
        for node in self.graph.nodes:
            if node.op == "call_function":
                lowering.convert(node)
        names, outputs, sizes = self.add_outputs(lowering)
        limits = {s: profile[str(s)][2] for s, (_, axis) in where.items() if axis is not None}
        # What the weights are before they are read: a change during the build is seen at the next call.
        weights = dict(self.constants)
        noted = Built(None, self.device, inputs, names, outputs, where, limits, sizes, weights, self.is_single)
        if plan is None:
            plan = build(self.settings, lowering.model.serialize(), profiles=profile or None,
                         **self.settings.build_options(self.device, self.has_convolution()))
            builds += 1
        engine = load_engine(plan, self.device)
        if [i.name for i in engine.inputs] != [name for _, name, _ in inputs]:
            raise sinter.InvalidModel(f"the engine of '{self.name}' has the inputs {[i.name for i in engine.inputs]}, "
                                      f"{[name for _, name, _ in inputs]} are wanted")
        noted.engine = engine
        self.plan, self.built = plan, noted
        return noted

    def refresh(self, args):
        """Brings the engine up to date with changed weights."""
        with self.lock:
            built = self.built
            if not built.changed(args):
                return built
            for i, old, version, address in zip(built.positions, built.weights, built.versions, built.addresses):
                new = args[i]
                if new.dtype != old.dtype or new.shape != old.shape:
                    raise RuntimeError(f"the parameter '{self.weight_names[i]}' is now {new.dtype} {tuple(new.shape)}, it was "
                                       f"{old.dtype} {tuple(old.shape)}: compile the module again")
                if new is not old or new._version != version or new.data_ptr() != address:
                    self.restless[i] = self.restless.get(i, 0) + 1 if built.calls < RESTLESS_CALLS else 1
                self.constants[i] = new
            if not self.settings.immutable_weights and self.refit():
                return self.built
            for i, times in self.restless.items():
                if times >= RESTLESS_TIMES:
                    self.constants.pop(i, None)
            return self.build()

    def refit(self):
        """Gives the engine the weights' values; False: one of them decides what the engine is."""
        has = {w.name for w in self.built.engine.weights()}
        noted = [(t._version, t.data_ptr()) for t in self.constants.values()]       # a change from here on is seen later
        try:
            plan = self.built.engine.refit({self.weight_names[i]: host_tensor(t) for i, t in self.constants.items()
                                            if self.weight_names[i] in has})
        except sinter.InvalidArgument:
            return False
        built = self.build(plan)
        built.versions, built.addresses = [v for v, _ in noted], [a for _, a in noted]
        return True

    def grow(self, args):
        """Builds an engine for larger sizes than those that the present one takes."""
        with self.lock:
            for symbol, value in self.built.too_large(args).items():
                if symbol in self.bounds:
                    raise ValueError(f"a size is {value}, at most {self.bounds[symbol][2]} was asked for")
                self.usual[symbol] = value
            return self.build() if self.built.too_large(args) else self.built
