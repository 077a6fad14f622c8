# SPDX-License-Identifier: Apache-2.0
"""torch.compile(model, backend="sinter")."""
import collections
import itertools
import warnings

import torch
from torch._decomp import core_aten_decompositions
from torch._functorch._aot_autograd.schemas import OutputType
from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_func

from ._fused import DECOMPOSITIONS
from ._graph import CompiledGraph
from ._lowering import converter_of
from ._settings import Settings

compiled = collections.deque(maxlen=64)     # the last graphs, for reports
NUMBERS, WARNED = itertools.count(), set()


def decompositions():
    """torch's decompositions of all operators that have no conversion of their own."""
    known = {**core_aten_decompositions(), **DECOMPOSITIONS}
    return {op: function for op, function in known.items() if converter_of(op)[0] is None}


def warn_once(text):
    if text not in WARNED:
        WARNED.add(text)
        warnings.warn(text, stacklevel=3)


def static_inputs():
    """Indices of the graph's inputs that are parameters or buffers, and that the graph does not write."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None:
        return []
    written = {i for i, info in enumerate(metadata.input_info) if info.mutates_data or info.mutates_metadata}
    return [i for i in metadata.static_input_indices or () if i not in written]


def is_direct(module, example_inputs):
    """Whether the graph that AOTAutograd made takes the caller's arguments and gives the results as they are. Then calls go without
    AOTAutograd's wrapper, which costs as much as a small engine."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if metadata is None or torch.is_grad_enabled() or torch._C._is_any_autocast_enabled():
        return False
    results = next(n for n in module.graph.nodes if n.op == "output").args[0]
    plain = (torch.Tensor, torch.nn.Parameter, torch._subclasses.FakeTensor, int, torch.SymInt)
    return (sum(n.op == "placeholder" for n in module.graph.nodes) == len(example_inputs)
            and all(type(x) in plain for x in example_inputs)
            and not any(i.mutates_data or i.mutates_metadata for i in metadata.input_info)
            and len(results) == len(metadata.output_info)
            and all(o.output_type is OutputType.non_alias for o in metadata.output_info)
            and not (metadata.dynamic_outputs or metadata.tokens or metadata.is_rng_op_functionalized)
            and metadata.grad_enabled_mutation is None)


def in_torch(graph_module, example_inputs):
    return make_boxed_func(graph_module.forward)


def backend(graph_module, example_inputs, options=None, **keywords):
    """The backend of torch.compile. `options`: the fields of sinter.torch.Settings."""
    return compile_fx(graph_module, example_inputs, Settings.make(options, **keywords))


def tensorrt_backend(graph_module, example_inputs, options=None, **keywords):
    """The same under torch_tensorrt's names: no gradients, whatever parameters want."""
    return compile_fx(graph_module, example_inputs, Settings.make(dict({"inference": True}, **(options or {})), **keywords))


def compile_fx(graph_module, example_inputs, settings):
    direct = []

    def inference(module, inputs):
        made = CompiledGraph(module, static_inputs(), settings, f"graph{next(NUMBERS)}")
        compiled.append(made)
        if is_direct(module, example_inputs):
            direct.append(made)
        return make_boxed_func(made)

    def forward(module, inputs):
        warn_once("sinter.torch: gradients are wanted, so this graph runs in PyTorch; call it under torch.no_grad() or "
                  "torch.inference_mode(), or compile with options={'inference': True}")
        return in_torch(module, inputs)

    def call():
        made = aot_module_simplified(graph_module, example_inputs, fw_compiler=forward, bw_compiler=in_torch,
                                     inference_compiler=inference, decompositions=decompositions())
        return direct[0] if len(direct) == 1 else made

    if not settings.inference or not torch.is_grad_enabled():           # dynamo compiles again for the other mode
        return torch._dynamo.disable(call(), reason="runs engines of sinter")
    with torch.no_grad():
        function = call()

    def without_gradients(*args):
        with torch.no_grad():
            return function(*args)
    return torch._dynamo.disable(without_gradients, reason="runs engines of sinter")


def register(name, function):
    """Registers a backend, unless torch has found it through the package's entry point: then torch does that."""
    from torch._dynamo.backends import registry
    if name not in registry._COMPILER_FNS and registry._BACKENDS.get(name) is None:
        registry.register_backend(function, name=name)
