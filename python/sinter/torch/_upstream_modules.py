# SPDX-License-Identifier: Apache-2.0
"""torch_tensorrt's private modules, which public examples import: names that have a meaning here are what they are in the public
modules, the others say when they are used what to use instead."""
import enum
import platform
import warnings
from collections import namedtuple

import torch

from ._backend import decompositions, tensorrt_backend
from ._compile import example_of, mapped
from ._engine_cache import BaseEngineCache, DiskEngineCache
from ._engine_module import EngineModule
from ._input import Input
from ._lowering import CONVERTERS, converter_of
from ._settings import Settings

FeatureSet = namedtuple("FeatureSet", "torchscript_frontend torch_tensorrt_runtime dynamo_frontend fx_frontend refit qdp_plugin "
                        "windows_cross_compile tensorrt_rtx")
ENABLED_FEATURES = FeatureSet(True, True, True, False, True, False, False, False)
LowerPrecision = enum.Enum("LowerPrecision", {"FP32": "fp32", "FP16": "fp16", "INT8": "int8"})
CalibrationAlgo = enum.Enum("CalibrationAlgo", "ENTROPY_CALIBRATION ENTROPY_CALIBRATION_2 LEGACY_CALIBRATION MINMAX_CALIBRATION")
# Upstream's defaults, for scripts that read them.
DEFAULTS = {"DEBUG": False, "DEVICE": None, "MIN_BLOCK_SIZE": 5, "PASS_THROUGH_BUILD_FAILURES": False, "OPTIMIZATION_LEVEL": None, "NUM_AVG_TIMING_ITERS": 1,
            "MAX_AUX_STREAMS": None, "WORKSPACE_SIZE": 0, "TRUNCATE_DOUBLE": False, "USE_PYTHON_RUNTIME": False, "USE_FAST_PARTITIONER": True,
            "VERSION_COMPATIBLE": False, "HARDWARE_COMPATIBLE": False, "REQUIRE_FULL_COMPILATION": False, "DRYRUN": False, "REFIT": False,
            "DISABLE_TF32": False, "SPARSE_WEIGHTS": False, "ENABLE_EXPERIMENTAL_DECOMPOSITIONS": False, "ASSUME_DYNAMIC_SHAPE_SUPPORT": False,
            "DLA_SRAM_SIZE": 1048576, "DLA_LOCAL_DRAM_SIZE": 1073741824, "DLA_GLOBAL_DRAM_SIZE": 536870912, "CACHE_BUILT_ENGINES": False,
            "REUSE_CACHED_ENGINES": False, "USE_EXPLICIT_TYPING": False, "USE_FP32_ACC": False, "ENABLE_WEIGHT_STREAMING": False,
            "IMMUTABLE_WEIGHTS": True, "STRIP_ENGINE_WEIGHTS": False, "OFFLOAD_MODULE_TO_CPU": False, "ENABLED_PRECISIONS": {torch.float32},
            "PRECISION": torch.float32, "TIMING_CACHE_PATH": "", "ENGINE_CACHE_DIR": "", "ENGINE_CACHE_SIZE": 5368709120, "LAZY_ENGINE_INIT": False}
IMPLEMENTATIONS = """activation addmm arange cast cat condition conv deconv dynamic_block_quantize einsum elementwise embedding full grid linear matmul
 nccl_ops normalization pad permutation pool prelu quantize reduce select shape shape_ops shuffle slice split squeeze topk unary unsqueeze upsample""".split()
INSTEAD = {"converter": "converters are not called here: an operator without a conversion stays in PyTorch",
           "graph": "partitions are made inside compile: compiled.report has them", "program": "torch_tensorrt.compile takes the module or the ExportedProgram",
           "fx": "the frontend of torch.fx is not there: torch_tensorrt.compile", "windows": "there is no runtime for Windows",
           "calibrator": "sinter.calibrate makes ranges, and enabled_precisions={torch.int8} measures them", "spec": "torch_tensorrt.compile(ir='ts') takes the module itself"}


class Platform(enum.Enum):
    """What an engine is built for."""
    LINUX_X86_64 = "linux_x86_64"
    LINUX_AARCH64 = "linux_aarch64"
    WIN_X86_64 = "windows_x86_64"
    UNKNOWN = "unknown"

    @classmethod
    def current_platform(cls):
        key = platform.system(), platform.machine()
        return {("Linux", "x86_64"): cls.LINUX_X86_64, ("Linux", "aarch64"): cls.LINUX_AARCH64, ("Windows", "AMD64"): cls.WIN_X86_64}.get(key, cls.UNKNOWN)

    def to(self, kind, use_default=False):
        return self

    def __str__(self):
        return self.value


class UnsupportedOperatorException(RuntimeError):
    """What upstream raises for an operator without a converter."""


class Frameworks(enum.Enum):
    """Whose element types unified_dtype_converter gives."""
    NUMPY = "numpy"
    TORCH = "torch"
    TRT = "trt"


def unused(name, value=None):
    """A function of upstream's that has nothing to do here. It says so."""
    def call(*_, **__):
        warnings.warn(f"sinter.torch: {name} changes nothing here", stacklevel=2)
        return value
    return call


class Converters:
    """The operators that have a conversion, for scripts that ask which."""

    def __contains__(self, key):
        return converter_of(getattr(key, "target", key))[0] is not None

    def __len__(self):
        return len(CONVERTERS)

    def __iter__(self):
        return iter(self.keys())

    def keys(self):
        return sorted(CONVERTERS)

    unique_targets = keys

    def get_unvalidated(self, key, value=None):
        return converter_of(key)[0] or value

    def get(self, key, value=None):
        return self.get_unvalidated(getattr(key, "target", key), value)

    def __getitem__(self, key):
        found = self.get(key)
        if found is None:
            raise KeyError(f"{key} has no conversion")
        return found

    def display_all_available_converters(self):
        return "\n".join(["Available converters in sinter:", *self.keys()])

    set_compilation_settings = unused("set_compilation_settings")      # settings are those of each compilation

    def set_disallowed_targets(self, torch_executed_ops):
        raise NotImplementedError("set_disallowed_targets: torch_executed_ops of compile says which operators stay in PyTorch")


def absent(name, why):
    """A class or function of upstream's that is there for imports: calling it says what to use instead."""
    def refuse(_self, *_, **__):
        raise NotImplementedError(f"{name}: {INSTEAD.get(why, why)}")
    return type(name, (), {"__init__": refuse, "__doc__": INSTEAD.get(why, why)})


def prepare_inputs(inputs, disable_memory_format_check=False):
    """Inputs in place of tensors, in lists, tuples and dicts."""
    return mapped(lambda v: Input.from_tensor(v) if isinstance(v, torch.Tensor) else v, inputs)


def to_torch_device(device=None):
    """The torch.device of a Device, of text or of a torch.device; None: the one that is used."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return device.to(torch.device) if hasattr(device, "gpu_id") else torch.device(device)


def get_torch_inputs(inputs, device, mode=""):
    """Tensors of Inputs: of the shapes of a mode ("min_shape", "opt_shape", "max_shape"), or the usual ones."""
    if mode and mode not in ("min_shape", "opt_shape", "max_shape"):
        raise ValueError(f"mode is {mode!r}; it may be min_shape, opt_shape, max_shape")

    def tensor(value):
        if isinstance(value, Input) and mode:
            value = Input(getattr(value, mode), dtype=value.dtype, tensor_domain=value.tensor_domain)
        return example_of(value, to_torch_device(device))
    return mapped(tensor, inputs)


def get_torch_tensor(input, device, mode=""):
    return get_torch_inputs(input, device, mode)


def parse_complex_tensor_structs(inputs, attribute_to_extract, apply_fn=lambda x: x):
    """An attribute of each tensor in lists, tuples and dicts."""
    return mapped(lambda v: apply_fn(getattr(v, attribute_to_extract, None)), inputs)


def set_log_level(parent_logger, level):
    parent_logger.setLevel(level)


def req_torch_version(min_torch_version="2.0.0"):
    """A decorator: the version of torch is checked when the function is called."""
    def decorate(function):
        def call(*args, **kwargs):
            numbers = [[int("".join(filter(str.isdigit, part)) or 0) for part in text.split("+")[0].split(".")[:3]]
                       for text in (torch.__version__, min_torch_version)]
            if numbers[0] < numbers[1]:
                raise AssertionError(f"torch is {torch.__version__}, {min_torch_version} is wanted")
            return function(*args, **kwargs)
        return call
    return decorate


def clean_up_graph_after_modifications(gm):
    gm.graph.eliminate_dead_code()
    gm.graph.lint()
    gm.recompile()
    return gm


def a_pass(*given, index=0):
    """The decorator of a pass over graphs, with or without arguments. Passes are not called."""
    warnings.warn("sinter.torch: passes over graphs are not called; change the module, or its ExportedProgram", stacklevel=2)
    return given[0] if given else lambda function: function


def unchanged(graph, *_, **__):
    """Upstream's passes over a graph: sinter's are inside the build, so the graph stays as it is."""
    return graph


def get_decompositions(enable_experimental_decompositions=False, *_, **__):
    return decompositions()


def embed_engine_in_new_module(serialized_engine, input_binding_names=None, output_binding_names=None, device=None):
    """A module that runs the bytes of an engine of sinter's."""
    return EngineModule(serialized_engine, input_binding_names, output_binding_names)


def check_method_op_support(module, method_name="forward"):
    """Whether every operator of a TorchScript method has a conversion."""
    method = getattr(module, method_name)
    names = {n.kind().replace("::", ".") for n in method.inlined_graph.nodes() if n.kind().startswith("aten::")}
    bases = {".".join(name.split(".")[:2]) for name in CONVERTERS}
    return names <= bases | {".".join(str(op).split(".")[:2]) for op in decompositions()}


def set_device(gpu_id):
    """Makes a GPU the current one; where there is none, only 0 is taken."""
    if torch.cuda.is_available():
        torch.cuda.set_device(gpu_id)
    elif gpu_id != 0:
        raise RuntimeError(f"there is no GPU {gpu_id}: torch sees none")


def get_build_info():
    import sinter
    return f"sinter {sinter.__version__}, PyTorch {torch.__version__}"


def dump_build_info():
    print(get_build_info())


def private(up):
    """{dotted name: {name: value}} of modules that upstream has. up: the module _upstream."""
    converter = up.accepted("converter")
    engine = {"TorchTensorRTModule": EngineModule, "PythonTorchTensorRTModule": EngineModule}
    contexts = {"MutableTorchTensorRTModule": up.MutableTorchTensorRTModule}
    settings = {"CompilationSettings": up.settings_of}
    cache = {"BaseEngineCache": BaseEngineCache, "DiskEngineCache": DiskEngineCache}
    compiler = {"compile": up.compile_program, "convert_exported_program_to_serialized_trt_engine": up.convert_exported_program_to_engine,
                "convert_module_to_trt_engine": up.convert_method_to_trt_engine, "compile_module": absent("compile_module", "program"),
                **{n: absent(n, "windows") for n in ("cross_compile_for_windows", "save_cross_compiled_exported_program",
                                                     "load_cross_compiled_exported_program")}}
    backend = {"torch_tensorrt_backend": tensorrt_backend, "aot_torch_tensorrt_aten_backend": tensorrt_backend}
    passes = {n: unchanged for n in ("post_lowering", "pre_export_lowering", "apply_lowering_passes", "fuse_prims_broadcast", "remove_assert_nodes",
                                     "repair_input_as_output", "constant_fold", "view_to_reshape", "remove_detach", "replace_max_pool_with_indices",
                                     "complex_graph_detection", "repair_input_aliasing", "remove_sym_nodes", "trace_intermediate_node_outputs")}
    one_pass = {"_aten_lowering_pass": a_pass, "_remove_lowering_pass": a_pass, "clean_up_graph_after_modifications": clean_up_graph_after_modifications}
    decomposing = {"get_decompositions": get_decompositions, "register_torch_trt_decomposition": up.accepted("decomposition"),
                   "TORCH_TRT_DECOMPOSITIONS": up.DECOMPOSITIONS, "torch_enabled_decompositions": set(), "torch_disabled_decompositions": set()}
    parts = {n: absent(n, "graph") for n in ("fast_partition", "global_partition", "get_graph_converter_support", "construct_submodule_inputs",
                                             "run_shape_analysis", "hierarchical_adjacency_partition", "TRTPartitioner", "partition")}
    registry = {"DYNAMO_CONVERTERS": Converters(), "DYNAMO_ATEN_CONVERTERS": Converters(), "dynamo_tensorrt_converter": converter,
                "ConverterRegistry": Converters, "ConverterPriority": up.ConverterPriority, "ConverterSupport": absent("ConverterSupport", "converter"),
                "has_dynamic_shapes": lambda node: any(any(not isinstance(d, int) for d in getattr(n.meta.get("val"), "shape", ())) for n in (node, *node.all_input_nodes)),
                "CallingConvention": enum.Enum("CallingConvention", "LEGACY CTX"), "UnsupportedOperatorException": UnsupportedOperatorException}
    interpreter = {n: absent(n, "converter") for n in ("TRTInterpreter", "TRTInterpreterResult", "SerializedInterpreterResult", "convert_module",
                                                       "interpret_module_to_result", "infer_module_output_dtypes", "repair_double_inputs")}
    calibrators = dict({n: absent(n, "calibrator") for n in ("DataLoaderCalibrator", "CacheCalibrator", "get_batch_size", "get_cache_mode_batch")},
                       CalibrationAlgo=CalibrationAlgo)
    fx = {n: absent(n, "fx") for n in ("compile", "TRTModule", "TRTInterpreter", "InputTensorSpec", "LowerSetting", "acc_tracer", "tensorrt_converter")}
    enums = {"dtype": up.dtype, "memory_format": up.memory_format, "DeviceType": up.DeviceType, "EngineCapability": up.EngineCapability,
             "Platform": Platform}
    utils = {"prepare_inputs": prepare_inputs, "to_torch_device": to_torch_device, "get_torch_inputs": get_torch_inputs, "get_torch_tensor": get_torch_tensor,
             "set_log_level": set_log_level, "parse_complex_tensor_structs": parse_complex_tensor_structs, "req_torch_version": req_torch_version, "to_torch_tensorrt_device": up.device_of_any,
             "parse_dynamo_kwargs": lambda kwargs, *_: up.settings_of(**kwargs), "unified_dtype_converter": up.dtype_for, "Frameworks": Frameworks,
             "get_model_device": up.device_of, "check_output_equal": lambda a, b, **close: torch.allclose(a, b, **close)}
    types = {n: absent(n, "converter") for n in ("TRTDataType", "TRTTensor", "TRTNetwork", "TRTLayer", "TRTElementWiseOp", "TRTPlugin", "TRTPluginFieldCollection", "Shape")}
    types["TRTInterpreterResult"] = interpreter["TRTInterpreterResult"]
    made = {
        "_Input": {"Input": Input}, "_enums": enums, "_Device": {"Device": up.Device}, "_version": {"__version__": up.VERSION},
        "_features": {"ENABLED_FEATURES": ENABLED_FEATURES, "FeatureSet": FeatureSet,
                      **{f"needs_{n}": unchanged for n in ("torch_tensorrt_runtime", "refit", "dynamo_frontend", "torchscript_frontend", "qdp_plugin", "cross_compile")}},
        "_utils": {"sanitized_torch_version": lambda: torch.__version__.split("+")[0], "check_cross_compile_trt_win_lib": lambda: False},
        "_compile": {"compile": up.compile, "convert_method_to_trt_engine": up.convert_method_to_trt_engine, "save": up.save, "load": up.load},
        "dynamo._settings": settings, "dynamo._defaults": DEFAULTS, "dynamo._compiler": {**compiler, **settings}, "dynamo._tracer": {"trace": up.trace},
        "dynamo._exporter": {n: absent(n, "torch_tensorrt.save writes a compiled model to a file") for n in ("export", "transform", "lift", "inline_trt_modules")},
        "dynamo._refit": {"refit_module_weights": up.refit_module_weights, **{n: absent(n, "refit_module_weights") for n in
                          ("get_engine_from_encoded_engine", "construct_refit_mapping", "_refit_single_trt_engine_with_gm")}},
        "dynamo._engine_cache": cache, "dynamo._SourceIR": {"SourceIR": up.SourceIR}, "dynamo.types": types, "dynamo.debug": {"Debugger": up.debugger},
        "dynamo.backend": backend, "dynamo.backend.backends": backend, "dynamo.lowering": {**passes, **decomposing, "clean_up_graph_after_modifications": clean_up_graph_after_modifications},
        "dynamo.lowering.passes": {**passes, **one_pass}, "dynamo.lowering.passes._aten_lowering_pass": {**passes, **one_pass},
        "dynamo.lowering.passes.pass_utils": one_pass, "dynamo.lowering._decompositions": decomposing, "dynamo.lowering._decomposition_groups": decomposing,
        "dynamo.partitioning": parts, "dynamo.partitioning.common": parts, "dynamo.conversion": {**registry, **interpreter, **settings},
        "dynamo.conversion._ConverterRegistry": registry, "dynamo.conversion._ConversionContext": {"ConversionContext": up.ConversionContext},
        "dynamo.conversion._TRTInterpreter": {**interpreter, **registry}, "dynamo.conversion._conversion": interpreter,
        "dynamo.conversion.truncate_double": interpreter, "dynamo.conversion.aten_ops_converters": None, "dynamo.conversion.impl": None,
        **{f"dynamo.conversion.impl.{n}": None for n in IMPLEMENTATIONS},
        "dynamo.runtime": {**engine, **contexts}, "dynamo.runtime._TorchTensorRTModule": engine, "dynamo.runtime._PythonTorchTensorRTModule": engine,
        "dynamo.runtime._MutableTorchTensorRTModule": contexts, "dynamo.utils": utils, "ts._compiler": {"compile": up.compile_program},
        "dynamo": {**compiler, **cache, **{n: absent(n, "windows") for n in ("cross_compile_for_windows",)}},
        "ts": {"TensorRTCompileSpec": absent("TensorRTCompileSpec", "spec"), "embed_engine_in_new_module": embed_engine_in_new_module,
               "check_method_op_support": check_method_op_support}, "ts.ptq": calibrators, "ptq": calibrators,
        "fx": fx, "fx.utils": {"LowerPrecision": LowerPrecision}, "fx.lower": fx, "fx.lower_setting": fx, "fx.tools": fx, "fx.tracer": fx,
        "fx.tracer.acc_tracer": fx, "fx.tracer.acc_tracer.acc_tracer": {"trace": absent("trace", "fx")},
        "runtime": {**engine, "weight_streaming": up.WeightStreaming, "optimized_profile": up.same_module,
                    "set_dynamic_shapes_kernel_strategy": unused("set_dynamic_shapes_kernel_strategy")}, "runtime._weight_streaming": {"weight_streaming": up.WeightStreaming},
        "logging": {"set_is_colored_output_on": unused("set_is_colored_output_on"), "get_is_colored_output_on": lambda: False,
                                               "set_logging_prefix": unused("set_logging_prefix"), "get_logging_prefix": lambda: ""}}
    return made


def top_names():
    return {"ENABLED_FEATURES": ENABLED_FEATURES, "Platform": Platform, "set_device": set_device, "get_build_info": get_build_info, "dump_build_info": dump_build_info,
            "get_is_colored_output_on": lambda: False}
