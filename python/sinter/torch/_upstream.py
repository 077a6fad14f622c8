# SPDX-License-Identifier: Apache-2.0
"""The submodules and names of torch_tensorrt around compile: dynamo, ts, runtime, logging. They are attributes of sinter.torch, and
install_as_tensorrt registers them under upstream's name."""
import contextlib
import enum
import inspect
import logging
import sys
import types
import warnings

import torch

from ._backend import DECOMPOSITIONS, decompositions                      # noqa: F401  for _upstream_modules
from ._compile import compile, convert_exported_program_to_engine, convert_method_to_trt_engine, device_of, exported, load, save    # noqa: F401
from ._engine_module import WeightStreaming                               # noqa: F401
from ._input import Input
from ._lowering import as_int, expr_of
from ._module import CompiledModule
from ._settings import Settings

TOP = __package__                                # sinter.torch
DTYPES = {"uint8": torch.uint8, "u8": torch.uint8, "int8": torch.int8, "i8": torch.int8, "int32": torch.int32, "int": torch.int32,
          "i32": torch.int32, "int64": torch.int64, "long": torch.int64, "i64": torch.int64, "float16": torch.float16,
          "half": torch.float16, "f16": torch.float16, "fp16": torch.float16, "float32": torch.float32, "float": torch.float32,
          "f32": torch.float32, "fp32": torch.float32, "float64": torch.float64, "double": torch.float64, "f64": torch.float64,
          "bfloat16": torch.bfloat16, "bf16": torch.bfloat16, "bool": torch.bool, "b": torch.bool, "float8": torch.float8_e4m3fn,
          "fp8": torch.float8_e4m3fn, "f8": torch.float8_e4m3fn}
VERSION = "2.11.0"                               # of torch_tensorrt, for scripts that look
EngineCapability = enum.Enum("EngineCapability", "STANDARD SAFETY DLA_STANDALONE")
DeviceType = enum.Enum("DeviceType", "UNKNOWN GPU DLA")
memory_format = types.SimpleNamespace(linear=torch.contiguous_format, contiguous=torch.contiguous_format, channels_last=torch.channels_last)


class DtypeNames(types.SimpleNamespace):
    """Upstream's names of element types: torch's own."""

    @staticmethod
    def try_from(given, use_default=False):
        """torch's type of a type of torch, of NumPy, of tensorrt, or of a name; None where there is none."""
        if isinstance(given, torch.dtype):
            return given
        name = getattr(given, "name", None) or getattr(given, "__name__", None) or str(given)
        return DTYPES.get(name.rpartition(".")[2].lower())

    def _from(self, given, use_default=False):
        found = self.try_from(given)
        if found is None and not use_default:
            raise TypeError(f"there is no element type {given!r}: {', '.join(sorted(DTYPES))}")
        return torch.float32 if found is None else found


dtype = DtypeNames(**DTYPES)


def dtype_for(given, to):
    """unified_dtype_converter: the element type of torch, NumPy or tensorrt ("torch", "numpy", "trt") for any of theirs."""
    found, to = dtype._from(given), getattr(to, "value", to)
    if to not in ("torch", "numpy", "trt"):
        raise TypeError(f"there are element types of torch, numpy and trt, not of {to!r}")
    if to == "trt":
        from .. import tensorrt
        return getattr(tensorrt, "fp8" if found == torch.float8_e4m3fn else str(found).rpartition(".")[2])
    return torch.empty(0, dtype=found).numpy().dtype.type if to == "numpy" else found


ConverterPriority = enum.Enum("ConverterPriority", "STANDARD HIGH")
SourceIR = enum.Enum("SourceIR", "NN_MODULE ACC ATEN PRIM TORCHTRT_LOWERED UNKNOWN")


class Device:
    """Which GPU: accepted and not used, engines run where the module's tensors are."""

    def __init__(self, spec="cuda:0", gpu_id=None, dla_core=-1, allow_gpu_fallback=False, **_):
        if dla_core >= 0 or str(spec).startswith("dla"):
            raise NotImplementedError("there is no backend for DLA")
        self.gpu_id = int(gpu_id if gpu_id is not None else str(spec).partition(":")[2] or 0)
        self.device_type, self.dla_core, self.allow_gpu_fallback = DeviceType.GPU, dla_core, allow_gpu_fallback

    def to(self, kind):
        return torch.device("cuda", self.gpu_id) if kind is torch.device else self

    @classmethod
    def _from(cls, device=None):
        """The Device of a torch.device, of text, of a Device; None: GPU 0."""
        return device if isinstance(device, cls) else cls(str(device) if device is not None else "cuda:0")

    _from_torch_device = _from

    @classmethod
    def _current_device(cls):
        return cls(gpu_id=torch.cuda.current_device() if torch.cuda.is_available() else 0)

    def __repr__(self):
        return f"Device(cuda:{self.gpu_id})"


def device_of_any(device=None):
    """to_torch_tensorrt_device: a Device."""
    return Device._from(device)


class MutableTorchTensorRTModule(torch.nn.Module):
    """A module that is compiled when it is first called, and again for inputs that its engines do not take. Parameters are
    the module's own: after load_state_dict or an assignment engines follow them."""

    def __init__(self, pytorch_model, *, use_python_runtime=None, **options):
        super().__init__()
        self.__dict__.update(original_model=pytorch_model, options=options, shapes=None, engines={})

    def set_expected_dynamic_shape_range(self, args_dynamic_shape, kwargs_dynamic_shape=None):
        """Which sizes are free: dicts from axes to torch.export.Dim, as torch.export takes them."""
        self.__dict__.update(shapes=(args_dynamic_shape, kwargs_dynamic_shape), engines={})

    def _compiled(self, args, kwargs):
        leaves, spec = torch.utils._pytree.tree_flatten((args, kwargs))
        key = str(spec), tuple((x.dtype, x.device, x.dim() if self.shapes else tuple(x.shape)) if isinstance(x, torch.Tensor) else x for x in leaves)
        if key not in self.engines:
            dynamic = None
            if self.shapes:
                dynamic = tuple(self.shapes[0] or ())
                if kwargs:
                    names = list(inspect.signature(self.original_model.forward).parameters)
                    dynamic = {**dict(zip(names, [None] * len(args))), **dict(zip(names, dynamic)), **dict.fromkeys(kwargs), **(self.shapes[1] or {})}
            program = torch.export.export(self.original_model, args, kwargs, dynamic_shapes=dynamic, strict=False)
            self.engines[key] = compile(program, inputs=list(args), **self.options)
        return self.engines[key]

    def forward(self, *args, **kwargs):
        with torch.no_grad():
            return self._compiled(args, kwargs)(*args, **kwargs)

    @staticmethod
    def save(module, path):
        """Writes the module and its options; load builds engines again, at the first call."""
        torch.save((module.original_model, module.options, module.shapes), path)

    @classmethod
    def load(cls, path):
        model, options, shapes = torch.load(path, weights_only=False)
        made = cls(model, **options)
        made.__dict__["shapes"] = shapes
        return made

    def state_dict(self, *args, **kwargs):
        return self.original_model.state_dict(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        return self.original_model.load_state_dict(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.__dict__["original_model"], name)

    def __setattr__(self, name, value):                  # a parameter or a part of the model: engines hold the old one
        self.engines.clear()
        setattr(self.original_model, name, value)


def shape_of(program):
    """What engines of an exported program depend on, but for the values of its weights."""
    nodes = list(program.graph.nodes)
    place = {n: f"%{i}" for i, n in enumerate(nodes)}

    def described(node):
        val = node.meta.get("val") if node.op == "placeholder" else None
        tensor = (val.dtype, str(tuple(val.shape))) if isinstance(val, torch.Tensor) else str(val)
        arguments = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: place[n])
        return node.op, "" if node.op == "placeholder" else str(node.target), tensor, repr(arguments)
    return [described(n) for n in nodes], [(s.kind, s.target) for s in program.graph_signature.input_specs]


def refit_module_weights(compiled_module, new_weight_module, arg_inputs=None, kwarg_inputs=None, verify_output=False, use_weight_map_cache=True,
                         in_place=False):
    """A compiled model with the weights of another export of the same module; in_place: the model itself. Engines that were built with
    immutable_weights=False are refitted, others are built again."""
    def symbols(program):
        values = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
        inputs = [values.get(name) for name in program.graph_signature.user_inputs]
        return {(i, axis): expr_of(size) for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)
                for axis, size in enumerate(value.shape) if as_int(size) is None}
    old, program = symbols(compiled_module.program), new_weight_module.run_decompositions(decompositions())
    bounds = {new: compiled_module.graph.bounds[old[at]] for at, new in symbols(program).items() if old.get(at) in compiled_module.graph.bounds}
    made = CompiledModule(program, compiled_module.settings, bounds, compiled_module.graph.name)
    if not compiled_module.settings.immutable_weights and shape_of(program) == shape_of(compiled_module.program):
        made.graph.plans = {p.name: p.plan for p in compiled_module.graph.partitions}
        made.graph.is_stale = True
    made.build()
    if verify_output and arg_inputs is not None:
        with torch.no_grad():
            wanted, found = new_weight_module.module()(*arg_inputs, **(kwarg_inputs or {})), made(*arg_inputs, **(kwarg_inputs or {}))
        torch.testing.assert_close(found, wanted, rtol=1e-2, atol=1e-2)
    if in_place:
        compiled_module.__dict__.update(made.__dict__)
    return compiled_module if in_place else made


def trace(mod, inputs=None, *, arg_inputs=None, kwarg_inputs=None, **_):
    """The ExportedProgram of a module."""
    return exported(mod, inputs, arg_inputs, kwarg_inputs)[0]


def compile_program(exported_program, inputs=None, *, arg_inputs=None, kwarg_inputs=None, **options):
    """dynamo.compile and ts.compile: compile of what was exported or scripted already."""
    return compile(exported_program, inputs=inputs, arg_inputs=arg_inputs, kwarg_inputs=kwarg_inputs, **options)


def settings_of(**options):
    """CompilationSettings: Settings that take upstream's other options, too."""
    return Settings.make(options)


def accepted(what):
    """A function that takes what upstream's makes converters of: an operator without a conversion here stays in PyTorch instead."""
    def accept(key, *_, **__):
        warnings.warn(f"sinter.torch: {what}s for TensorRT are not called; {key} runs in PyTorch unless sinter has a conversion", stacklevel=2)
        return lambda function: function
    return accept


def cosine_similarity(first, second):
    """Of two tensors as vectors; two of zeros are equal."""
    first, second = (x.detach().flatten().double().cpu() for x in (first, second))
    if not first.any() and not second.any():
        return 1.0
    return float(torch.nn.functional.cosine_similarity(first, second, dim=0))


@contextlib.contextmanager
def same_module(module=None, *_, **__):
    """Upstream's switches around a call: graphs are captured, and outputs allocated, where that can be."""
    yield module


class ConversionContext:
    """For annotations of converters, which are not called here."""

    def __init__(self, *_, **__):
        raise NotImplementedError("ConversionContext: converters are not called here: an operator without a conversion stays in PyTorch")


class Level(enum.IntEnum):
    """What upstream's log tells."""
    InternalError, Error, Warning, Info, Debug, Graph = range(6)


def set_reportable_log_level(level):
    """Sets the level of Python's logger "sinter.torch"."""
    logging.getLogger(TOP).setLevel((50, 40, 30, 20, 10, 10)[level])


def at_level(level):
    @contextlib.contextmanager
    def manager():
        log = logging.getLogger(TOP)
        before = log.level
        set_reportable_log_level(level)
        try:
            yield
        finally:
            log.setLevel(before)
    return manager


@contextlib.contextmanager
def debugger(log_level="debug", **options):
    """Logs at a level within a with. Upstream's pictures of graphs, profiles and monitors are not made, and a warning says so."""
    chosen = [name for name, value in options.items() if value]
    if chosen:
        warnings.warn(f"sinter.torch: Debugger's {', '.join(chosen)} change nothing: compiled.report has the partitions, and the context of an "
                      "engine the times of its steps", stacklevel=3)
    levels = {"internal_errors": 0, "errors": 1, "error": 1, "warnings": 2, "warning": 2, "info": 3, "debug": 4, "graphs": 5}
    with at_level(levels[log_level])():
        yield


class Unused(types.ModuleType):
    """What converters call. They are not called themselves."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def helper(*_, **__):
            raise NotImplementedError(f"{name} is for converters, which are not called here")
        return helper


class Upstream(types.ModuleType):
    """A module of torch_tensorrt's."""

    def __getattr__(self, name):
        raise AttributeError(f"{self.__name__} has no '{name}': docs/torch.md has what is there")


def modules():
    """{dotted name below the top: module}."""
    converter, plugin = accepted("converter"), accepted("plugin")
    of_engines = {"compile": compile_program, "convert_exported_program_to_serialized_trt_engine": convert_exported_program_to_engine,
                  "CompilationSettings": settings_of, "trace": trace, "refit_module_weights": refit_module_weights, "save": save, "load": load,
                  "SourceIR": SourceIR, "Debugger": debugger}
    contexts = ("enable_cudagraphs", "enable_pre_allocated_outputs", "enable_output_allocator", "set_multi_device_safe_mode",
                "set_cudagraphs_mode")
    levels = {"internal_errors": 0, "errors": 1, "warnings": 2, "info": 3, "debug": 4, "graphs": 5}
    public = dict((
        ("dynamo", of_engines),
        ("dynamo.conversion", {"dynamo_tensorrt_converter": converter, "ConversionContext": ConversionContext, "ConverterPriority": ConverterPriority,
                               "CompilationSettings": settings_of}),
        ("dynamo.conversion.plugins", {"custom_op": plugin, "generate_plugin": plugin, "generate_plugin_converter": converter}),
        ("dynamo.conversion.impl", None), ("dynamo.conversion.converter_utils", None), ("dynamo.runtime", {}),
        ("dynamo.utils", {"COSINE_THRESHOLD": 0.99, "cosine_similarity": cosine_similarity}),
        ("ts", {"compile": compile_program, "convert_method_to_trt_engine": convert_method_to_trt_engine}),
        ("runtime", dict({name: same_module for name in contexts}, get_cudagraphs_mode=lambda: True, get_whole_cudagraphs_mode=lambda: False)),
        ("logging", dict({name: at_level(level) for name, level in levels.items()}, Level=Level, set_reportable_log_level=set_reportable_log_level,
                         get_reportable_log_level=lambda: Level(5 - min(5, logging.getLogger(TOP).getEffectiveLevel() // 10)),
                         log=lambda level, message: logging.getLogger(TOP).log((50, 40, 30, 20, 10, 10)[level], message)))))
    from ._upstream_modules import private
    more = private(sys.modules[__name__])
    every = {name: {**(more.get(name) or {}), **(public.get(name) or {})} or None for name in {**public, **more}}
    return {name: fill(name, every[name]) for name in sorted(every)}         # a module comes before those inside it


def fill(name, names):
    made = Unused(f"{TOP}.{name}") if names is None else Upstream(f"{TOP}.{name}")
    made.__dict__.update(names or {}, __path__=[])
    return made


def install(top):
    """Makes the names attributes of the package, and its submodules importable. Gives the submodules' names."""
    from ._upstream_modules import top_names
    for name in ("Device", "DeviceType", "EngineCapability", "MutableTorchTensorRTModule", "dtype", "memory_format"):
        setattr(top, name, globals()[name])
    for name, value in top_names().items():
        setattr(top, name, value)
    top.TensorFormat, made = memory_format, modules()
    for name, module in made.items():
        sys.modules[f"{TOP}.{name}"] = module
        parent, _, last = name.rpartition(".")
        setattr(sys.modules[f"{TOP}.{parent}"] if parent else top, last, module)
    return tuple(made)
