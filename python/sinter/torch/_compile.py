# SPDX-License-Identifier: Apache-2.0
"""torch_tensorrt's functions: compile, convert_method_to_trt_engine, save, load."""
import functools
import io
import json
import zipfile

import torch

from ._backend import decompositions
from ._input import Input, dims_of, example_of
from ._lowering import as_int, expr_of
from ._module import CompiledModule, warn_training
from ._script import exported_script, is_script
from ._settings import Settings

FORMAT = "sinter.torch 1"
WHOLE = ("default", "dynamo", "exported_program", "ts", "torchscript")


def device_of(module):
    """The device of a module's first parameter or buffer; the CPU where it has none."""
    if isinstance(module, torch.nn.Module):
        for tensor in [*module.parameters(), *module.buffers()]:
            return tensor.device
    return torch.device("cpu")


def mapped(function, value):
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(function, v) for v in value)
    if isinstance(value, dict):
        return {k: mapped(function, v) for k, v in value.items()}
    return function(value)


def exported(module, inputs, arg_inputs, kwarg_inputs):
    """(ExportedProgram, bounds): bounds are symbol -> (min, opt, max) of what Inputs say."""
    inputs, arg_inputs = ((given,) if isinstance(given, (Input, torch.Tensor)) else given for given in (inputs, arg_inputs))
    if isinstance(module, torch.export.ExportedProgram):
        return module, bounds_of(module, inputs if inputs is not None else arg_inputs, kwarg_inputs)
    given = inputs if inputs is not None else arg_inputs
    if given is None and kwarg_inputs is None:
        raise ValueError("inputs (or arg_inputs, kwarg_inputs) are needed: tensors, or sinter.torch.Input")
    given, named = tuple(given or ()), dict(kwarg_inputs or {})
    warn_training(module)
    device = device_of(module)
    if is_script(module):
        program = exported_script(module, mapped(lambda v: example_of(v, device), given),
                                  mapped(lambda v: example_of(v, device), named), mapped(dims_of, (given, named)))
        return program, {}
    if not isinstance(module, torch.nn.Module):
        module = FunctionModule(module)
    args = mapped(lambda v: example_of(v, device), given)
    keywords = mapped(lambda v: example_of(v, device), named)
    dims = (mapped(dims_of, given), mapped(dims_of, named))
    dynamic = None
    if any(d is not None for d in torch.utils._pytree.tree_leaves(dims, is_leaf=lambda v: v is None)):
        dynamic = list(dims[0]) + list(dims[1].values()) if not named else None
        dynamic = dynamic if dynamic is not None else by_name(module, given, dims)
    with torch.no_grad():
        program = torch.export.export(module, tuple(args), keywords or None, dynamic_shapes=dynamic, strict=False)
    return program, bounds_of(program, given, named)


def by_name(module, given, dims):
    """dynamic_shapes as a dict, for calls with keywords."""
    import inspect
    names = list(inspect.signature(module.forward).parameters)
    return dict(zip(names[:len(given)], dims[0]), **dims[1])


class FunctionModule(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def bounds_of(program, given, named=None):
    leaves = torch.utils._pytree.tree_leaves((tuple(given or ()), dict(named or {})))
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    found = {}
    for value, name in zip(leaves, program.graph_signature.user_inputs):
        if not isinstance(value, Input) or name not in nodes:
            continue
        for axis, size in enumerate(nodes[name].meta["val"].shape):
            if as_int(size) is None and expr_of(size).is_Symbol:
                found[expr_of(size)] = (value.min_shape[axis], value.opt_shape[axis], value.max_shape[axis])
    return found


def compile(module, ir="default", inputs=None, *, arg_inputs=None, kwarg_inputs=None, enabled_precisions=None, name="model",
            **options):
    """Compiles a module for inference: a CompiledModule, which is called like the module.

    module      a torch.nn.Module (in eval mode), a function of tensors, a torch.export.ExportedProgram, or a module or
                function of TorchScript (torch.jit.script, torch.jit.trace, torch.jit.load), whose sizes are then fixed
    ir          "default", "dynamo", "exported_program", "ts", "torchscript": the module is exported as a whole, and compiled now.
                "torch_compile": torch.compile(module, backend="sinter"), compiled at the first call
    inputs      example tensors or sinter.torch.Input, in the order of the arguments; arg_inputs is the same; kwarg_inputs: a
                dict of keywords
    options     the fields of sinter.torch.Settings

    Cost: seconds to minutes, for the engines. Errors: what torch.export raises; ValueError for options; with
    require_full_compilation, what stays in PyTorch is an error."""
    settings = Settings.make(options, **({"enabled_precisions": enabled_precisions} if enabled_precisions else {}))
    if ir == "torch_compile":
        if is_script(module):
            raise ValueError("torch.compile takes no ScriptModule: ir='ts' does")
        from ._backend import compile_fx
        return torch.compile(module, backend=lambda graph, examples: compile_fx(graph, examples, settings))
    if ir not in WHOLE:
        raise ValueError(f"ir is {ir!r}; it may be {', '.join(WHOLE)}, torch_compile")
    program, bounds = exported(module, inputs, arg_inputs, kwarg_inputs)
    return CompiledModule(program.run_decompositions(decompositions()), settings, bounds, name).build()


def convert_exported_program_to_engine(program, inputs=None, *, kwarg_inputs=None, enabled_precisions=None, **options):
    """The bytes of an engine file that computes a whole ExportedProgram: sinter.load, sinter_engine_load and `sinter run` take
    it. Inputs have the names of the program's arguments, outputs are output0, output1 and so on, as upstream has it; sizes that
    Inputs leave free are profiles. Errors: NotImplementedError, which lists every operator that an engine cannot compute."""
    return convert_method_to_trt_engine(program, inputs=inputs, kwarg_inputs=kwarg_inputs,
                                        enabled_precisions=enabled_precisions, **options)


def convert_method_to_trt_engine(module, method_name="forward", inputs=None, ir="default", *, arg_inputs=None,
                                 kwarg_inputs=None, enabled_precisions=None, **options):
    """The bytes of an engine file for a module: convert_exported_program_to_engine of its export."""
    if ir not in WHOLE:
        raise ValueError(f"ir is {ir!r}; it may be {', '.join(WHOLE)}")
    if method_name != "forward":
        module = getattr(module, method_name)
    options = dict(options, require_full_compilation=True, pass_through_build_failures=True)
    settings = Settings.make(options, **({"enabled_precisions": enabled_precisions} if enabled_precisions else {}))
    program, bounds = exported(module, inputs, arg_inputs, kwarg_inputs)
    program = program.run_decompositions(decompositions())
    made = CompiledModule(program, settings, bounds)
    if made.writes:
        raise NotImplementedError("the program writes to buffers or inputs, an engine cannot")
    made.graph.is_file = True
    made.build()
    if len(made.graph.partitions) != 1:
        raise NotImplementedError(f"the program is no single engine:\n{made.report}")
    return bytes(made.graph.partitions[0].plan)


def save(module, file_path, output_format="exported_program", **unused):
    """Writes a CompiledModule with its engines and its exported program to one file. An ExportedProgram, and a ScriptModule with
    output_format="torchscript", are written as torch writes them. Other formats are refused. Errors: TypeError, ValueError, OSError."""
    if is_script(module) and output_format == "torchscript":
        return torch.jit.save(module, file_path)
    if output_format != "exported_program":
        raise ValueError(f"output_format is {output_format!r}; only exported_program is written")
    if isinstance(module, torch.export.ExportedProgram):
        return torch.export.save(module, file_path)
    if not isinstance(module, CompiledModule):
        raise TypeError(f"a {type(module).__name__} is no compiled model: sinter.torch.compile with ir='dynamo' makes one")
    program = io.BytesIO()
    torch.export.save(module.program, program)
    about = {"format": FORMAT, "bounds": {str(s): b for s, b in module.graph.bounds.items()},
             "settings": module.settings.as_json(), "name": module.graph.name}
    with zipfile.ZipFile(file_path, "w", zipfile.ZIP_STORED) as file:
        file.writestr("about.json", json.dumps(about))
        file.writestr("program.pt2", program.getvalue())
        for partition in module.graph.partitions:
            file.writestr(f"{partition.name}.sinter", bytes(partition.plan))


def load(file_path):
    """A CompiledModule of a file that save wrote. Its engines are loaded, not built. Of a file of torch's, an ExportedProgram or a
    ScriptModule. Errors: OSError, ValueError (no such file), sinter.Incompatible (engines of another version or machine)."""
    with zipfile.ZipFile(file_path) as file:
        names = {name.partition("/")[2] or name for name in file.namelist()}
        if "about.json" not in names and {"archive_format", "serialized_exported_program.json"} & names:
            return torch.export.load(file_path)
        if "about.json" not in names and "constants.pkl" in names:
            return torch.jit.load(file_path)
        if "about.json" not in names:
            raise ValueError(f"'{file_path}' was not written by sinter.torch.save")
        about = json.loads(file.read("about.json"))
        if about.get("format") != FORMAT:
            raise ValueError(f"'{file_path}' has the format {about.get('format')!r}, {FORMAT!r} is wanted")
        program = torch.export.load(io.BytesIO(file.read("program.pt2")))
        plans = {n[:-len(".sinter")]: file.read(n) for n in file.namelist() if n.endswith(".sinter")}
    symbols = {str(s): s for s in program.range_constraints}
    bounds = {symbols[s]: tuple(b) for s, b in about["bounds"].items() if s in symbols}
    made = CompiledModule(program, Settings.from_json(about["settings"]), bounds, about["name"])
    made.graph.plans = plans
    return made.build()


def with_engines(load_program):
    """torch.export.load that takes files of save(), too: scripts load compiled models by it."""
    @functools.wraps(load_program)
    def load_any(f, **options):
        try:
            with zipfile.ZipFile(f) as file:
                is_ours = "about.json" in file.namelist()
        except (zipfile.BadZipFile, OSError):
            is_ours = False
        if hasattr(f, "seek"):
            f.seek(0)
        return load(f) if is_ours else load_program(f, **options)
    return load_any
