# SPDX-License-Identifier: Apache-2.0
"""The bytes of an engine as a module of torch, and the budget of the weights that stay on a GPU."""
import torch

import sinter
from sinter._abi import Dtype

TO_TORCH = {Dtype.F32: torch.float32, Dtype.F16: torch.float16, Dtype.BF16: torch.bfloat16, Dtype.F64: torch.float64, Dtype.I8: torch.int8,
            Dtype.U8: torch.uint8, Dtype.I16: torch.int16, Dtype.I32: torch.int32, Dtype.I64: torch.int64, Dtype.BOOL: torch.bool}


def bytes_of(engine):
    """The bytes of an engine file, which may be text of base64."""
    if isinstance(engine, str):
        import base64
        return base64.b64decode(engine)
    return bytes(engine)


class EngineModule(torch.nn.Module):
    """The engine of a file of sinter's as a module: tensors in, in the order of the names of inputs; a tensor out, or a tuple.

    input_binding_names, output_binding_names   names of the engine's tensors in the order of arguments and results; none: the engine's order"""

    def __init__(self, serialized_engine=None, input_binding_names=None, output_binding_names=None, *, name="engine", settings=None,
                 weight_name_map=None, requires_output_allocator=False, **_):
        super().__init__()
        if serialized_engine is None:
            raise ValueError("serialized_engine is None: the bytes of an engine are wanted (convert_method_to_trt_engine)")
        self.name, self.settings, self.serialized_engine = name, settings, bytes_of(serialized_engine)
        self.engine = sinter.load(self.serialized_engine)
        known = [[io.name for io in side] for side in (self.engine.inputs, self.engine.outputs)]
        given = [list(names) if names else all for names, all in zip((input_binding_names, output_binding_names), known)]
        for side, names, all in zip(("input", "output"), given, known):
            if sorted(names) != sorted(all):
                raise ValueError(f"{side}_binding_names are {names}, the engine has {all}")
        self.input_names, self.output_names = given
        ios = [*self.engine.inputs, *self.engine.outputs]
        for io in ios:
            if io.dtype not in TO_TORCH:
                raise NotImplementedError(f"'{io.name}' of the engine is {io.dtype.name}, for which torch has no type here")
        self.types = {io.name: TO_TORCH[io.dtype] for io in ios}
        self.context = None

    def forward(self, *inputs):
        if len(inputs) != len(self.input_names):
            raise ValueError(f"{len(inputs)} inputs, {len(self.input_names)} are wanted: {', '.join(self.input_names)}")
        if self.context is None:
            self.context = self.engine.context()
        device = next((x.device for x in inputs if isinstance(x, torch.Tensor)), torch.device("cpu"))
        for name, x in zip(self.input_names, inputs):
            x = torch.as_tensor(x, device=device).detach()
            if x.dtype != self.types[name]:
                raise TypeError(f"input '{name}' is {x.dtype}, {self.types[name]} is wanted")
            self.context.set_input(name, x.contiguous())
        made = {}
        for name in self.output_names:
            shape = self.context.output_shape(name)
            if -1 not in shape:
                made[name] = torch.empty(shape, dtype=self.types[name], device=device)
                self.context.set_output(name, made[name])
        if device.type == "cuda":
            torch.cuda.current_stream(device).synchronize()
        found = self.context.run()
        results = [made[name] if name in made else torch.as_tensor(found[name]).to(device) for name in self.output_names]
        return results[0] if len(results) == 1 else tuple(results)

    def __deepcopy__(self, memo):
        return type(self)(self.serialized_engine, self.input_names, self.output_names, name=self.name, settings=self.settings)


class WeightStreaming:
    """How many bytes of a GPU's memory the weights of a compiled model take: `with weight_streaming(model) as w: w.device_budget = n`."""

    def __init__(self, module):
        graph = getattr(module, "graph", None)
        if graph is None or not hasattr(graph, "partitions"):
            raise TypeError(f"a {type(module).__name__} is no compiled model: sinter.torch.compile with ir='dynamo' makes one")
        self.engines = [p.built for p in graph.partitions if p.built is not None]
        self.sizes = [e.engine.describe()["streamable_size"] for e in self.engines]
        self.total_device_budget, self.budget = sum(self.sizes), sum(self.sizes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.device_budget = self.total_device_budget

    def get_automatic_weight_streaming_budget(self):
        return sum(e.engine.automatic_weight_budget() for e in self.engines)

    def get_required_device_budgets(self):
        return list(self.sizes)

    @property
    def device_budget(self):
        return self.budget

    @device_budget.setter
    def device_budget(self, size):
        if not 0 <= size <= self.total_device_budget:
            raise ValueError(f"the budget is {size} bytes, 0 to {self.total_device_budget} are wanted")
        if size != self.budget:
            for engine, most in zip(self.engines, self.sizes):
                engine.pools.clear()                # its contexts
                share = size * most // self.total_device_budget
                engine.engine.set_weight_budget(0 if share >= most else max(share, 1))
        self.budget = size
