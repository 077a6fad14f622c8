# SPDX-License-Identifier: Apache-2.0
"""A compiled model: a module that runs an exported program with engines."""
import warnings

import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.utils import _pytree as pytree

from ._graph import CompiledGraph
from ._lowering import as_int, expr_of

STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


class CompiledModule(torch.nn.Module):
    """What sinter.torch.compile gives: called like the module that it was made of. Parameters are shared with that module;
    when they change, the next call has the engines follow (Settings.immutable_weights). `report` says what runs where, and
    `build()` makes the engines before the first call. Inference only: inputs that require gradients are refused."""

    def __init__(self, program, settings, bounds=None, name="model"):
        super().__init__()
        self.program, self.settings, signature = program, settings, program.graph_signature
        self.in_spec, self.out_spec = program.call_spec.in_spec, program.call_spec.out_spec
        mutated = set(signature.buffers_to_mutate.values())
        self.tensors, self.fixed, weights, names, self.user = [], {}, [], {}, []
        nodes = [n for n in program.graph_module.graph.nodes if n.op == "placeholder"]
        for i, (spec, node) in enumerate(zip(signature.input_specs, nodes)):
            if spec.kind in STATE:
                tensor = self.find(spec)
                self.fixed[i], names[i] = tensor, spec.target
                if not (spec.kind == InputKind.BUFFER and spec.target in mutated):
                    weights.append(i)
            elif spec.kind == InputKind.USER_INPUT:
                self.user.append((i, node.meta.get("val"), node.name, isinstance(spec.arg, ConstantArgument)))
            else:
                raise NotImplementedError(f"an input of kind {spec.kind.name}: tokens and objects are not taken")
        # The names under which state_dict has the tensors that calls read and write.
        self.names, self.count, self.valid = {names[i]: t for i, t in self.fixed.items()}, len(nodes), set()
        self.writes = []
        for k, spec in enumerate(signature.output_specs):
            if spec.kind == OutputKind.BUFFER_MUTATION:
                self.writes.append((k, ("state", spec.target)))
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                self.writes.append((k, ("input", [n.name for n in nodes].index(spec.target))))
            elif spec.kind != OutputKind.USER_OUTPUT:
                raise NotImplementedError(f"an output of kind {spec.kind.name}")
        self.graph = CompiledGraph(program.graph_module, weights, settings, name, names, bounds)
        self.is_plain = self.in_spec == pytree.tree_structure((tuple([0] * len(self.user)), {}))
        self.template = [self.fixed.get(i) for i in range(self.count)]
        self.train(False)

    def find(self, spec):
        if spec.target in self.program.state_dict:
            return self.program.state_dict[spec.target]
        return self.program.constants[spec.target]

    report = property(lambda self: self.graph.report)

    def __getattr__(self, name):
        """A parameter or buffer of the module that was compiled."""
        names = self.__dict__.get("names", {})
        return names[name] if name in names else super().__getattr__(name)

    def build(self):
        """Builds the engines now. Cost: seconds to minutes."""
        self.graph.ready(self.template)
        return self

    def module(self):
        """The model itself: what torch_tensorrt.load gives has to be asked for its module."""
        return self

    def state_dict(self, *_, **__):
        """The parameters and buffers, by the names of the module that was compiled."""
        return dict(self.names)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies values into the parameters, which the original module shares. The next call has the engines follow."""
        missing = [n for n in self.names if n not in state_dict]
        unexpected = [n for n in state_dict if n not in self.names]
        if strict and (missing or unexpected):
            raise RuntimeError(f"missing: {missing}; unexpected: {unexpected}")
        with torch.no_grad():
            for name, tensor in self.names.items():
                if name in state_dict:
                    tensor.copy_(state_dict[name])
        return torch.nn.modules.module._IncompatibleKeys(missing, unexpected)

    def check(self, flat, shapes):
        """Refuses inputs that the program was not made for. Errors: TypeError, ValueError, RuntimeError."""
        sizes = {}
        for value, (_, want, name, is_constant) in zip(flat, self.user):
            if is_constant or not isinstance(want, torch.Tensor):
                if not isinstance(want, torch.SymInt) and value != want and want is not None:
                    raise ValueError(f"'{name}' is {value!r}; the program was made for {want!r}")
                continue
            if not isinstance(value, torch.Tensor):
                raise TypeError(f"'{name}' is a {type(value).__name__}, a tensor is wanted")
            if value.dtype != want.dtype or value.device != want.device:
                raise TypeError(f"'{name}' is {value.dtype} on {value.device}, {want.dtype} on {want.device} is wanted")
            if value.dim() != want.dim():
                raise ValueError(f"'{name}' has the shape {tuple(value.shape)}, {tuple(want.shape)} is wanted")
            for axis, (found, size) in enumerate(zip(value.shape, want.shape)):
                known, expr = as_int(size), expr_of(size)
                if known is None and expr.is_Symbol:
                    low, _, high = self.graph.bounds.get(expr, (0, 0, 2**62))
                    known = sizes.setdefault(expr, found)
                    if not low <= found <= high:
                        raise ValueError(f"axis {axis} of '{name}' is {found}; {low} to {high} are wanted")
                if known is not None and found != known:
                    raise ValueError(f"'{name}' has the shape {tuple(value.shape)}, {tuple(want.shape)} is wanted"
                                     f" ({size} is {known})")
        if len(self.valid) > 4096:
            self.valid.clear()
        self.valid.add(shapes)

    def forward(self, *args, **kwargs):
        if self.is_plain and not kwargs and len(args) == len(self.user):
            flat = args
        else:
            flat, spec = pytree.tree_flatten((args, kwargs))
            if spec != self.in_spec:
                raise TypeError(f"the arguments are {spec}, the program was made for {self.in_spec}")
        shapes = tuple([(x.shape, x.dtype, x.device) if isinstance(x, torch.Tensor) else (type(x), x) for x in flat])
        if shapes not in self.valid:
            self.check(flat, shapes)
        if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in flat):
            raise RuntimeError("an input requires gradients; compiled models compute none: call under torch.no_grad()")
        values = list(self.template)
        for x, (i, *_) in zip(flat, self.user):
            values[i] = x
        with torch.no_grad():
            results = list(self.graph(*values))
            if self.writes:
                for k, (kind, target) in self.writes:
                    (self.names[target] if kind == "state" else values[target]).copy_(results[k])
                results = results[len(self.writes):]
        if len(results) == 1 and self.out_spec.is_leaf():
            return results[0]
        return pytree.tree_unflatten(results, self.out_spec)

    def save(self, *_, **__):
        """What torch.jit.save calls."""
        raise TypeError("a compiled model is no TorchScript: sinter.torch.save writes it, sinter.torch.load and torch.export.load read it")

    def __getstate__(self):
        raise TypeError("a compiled model is written by sinter.torch.save, not by pickle")


def warn_training(module):
    if getattr(module, "training", False):
        warnings.warn("sinter.torch: the module is in training mode; call eval() first for inference", stacklevel=3)
