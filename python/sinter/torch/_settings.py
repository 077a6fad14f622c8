# SPDX-License-Identifier: Apache-2.0
"""Options: sinter's own, and those of torch_tensorrt that mean something here."""
import os
import warnings
from dataclasses import dataclass, field, fields

import torch

PRECISIONS = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.int8: "int8"}
NEUTRAL = (torch.float32, torch.float64, torch.float8_e4m3fn)           # fp8: what the model has as such; nothing is lowered to it
# Options of torch_tensorrt that choose how TensorRT works inside. They change no result, so they are accepted. (enable_autocast with a
# type permits that type.)
IGNORED = frozenset("""debug num_avg_timing_iters max_aux_streams version_compatible use_fast_partitioner hardware_compatible
 assume_dynamic_shape_support dla_sram_size dla_local_dram_size dla_global_dram_size tiling_optimization_level l2_limit_for_tiling
 use_fp32_acc use_explicit_typing enable_experimental_decompositions use_python_runtime device lazy_engine_init
 truncate_double truncate_long_and_double sparse_weights enable_weight_streaming enable_cross_compile_for_windows
 refit
 strip_engine_weights decompose_attention offload_module_to_cpu dynamically_allocate_resources use_distributed_mode_trace
 engine_capability autocast_excluded_nodes autocast_excluded_ops
 autocast_max_output_threshold autocast_max_depth_of_reduction autocast_calibration_dataloader enable_resource_partitioning
 cpu_memory_budget refit_identical_engine_weights attn_bias_is_causal use_strong_types
 torch_executed_modules allow_shape_tensors""".split())


@dataclass
class Settings:
    """What a compilation may do.

    enabled_precisions          element types that f32 work may be lowered to where that is faster: torch.float16, bfloat16, int8
    disable_tf32                GPUs: keep f32 products exact even where torch's own flags permit TF32
    tune                        "off", "fast", "full": how kernels are chosen (docs/options.md)
    optimization_level          torch_tensorrt's name: 0 is tune="off", 4 and 5 tune="full"
    min_block_size              operators that a partition needs to be worth an engine
    torch_executed_ops          names of operators that stay in PyTorch: "torch.ops.aten.relu", "aten.relu.default", or overloads
    require_full_compilation    an operator that stays in PyTorch is an error
    pass_through_build_failures an engine that cannot be built is an error, not a fallback
    immutable_weights           False: engines are refitted, not rebuilt, after parameters changed (build option refittable)
    inference                   torch.compile: no gradients, even where parameters want some
    dryrun                      report the partitions, build nothing: everything runs in PyTorch
    report                      print what fell back, and why
    threads                     CPU threads; None: torch.get_num_threads()
    growth                      free sizes without an upper bound: engines take up to this many times the first size
    workspace_size              bytes of scratch memory that one kernel may ask for; 0: no limit
    timing_cache_path           a file with measurements to use again
    cache_built_engines         engines are put into a cache
    reuse_cached_engines        engines are taken from the cache, where the model, its weights and the options are the same
    engine_cache_dir            the folder of the cache; None: sinter/engines below XDG_CACHE_HOME or ~/.cache
    engine_cache_size           bytes that the folder may have
    custom_engine_cache         a cache of the script's own: an object with save(hash, blob) and load(hash)
    options                     further options of sinter.build, by name
    """
    enabled_precisions: set = field(default_factory=set)
    disable_tf32: bool = False
    tune: str = "fast"
    min_block_size: int = 3
    torch_executed_ops: set = field(default_factory=set)
    require_full_compilation: bool = False
    pass_through_build_failures: bool = False
    immutable_weights: bool = True
    inference: bool = False
    dryrun: bool = False
    report: bool = False
    threads: int = None
    growth: int = 8
    workspace_size: int = 0
    timing_cache_path: str = None
    cache_built_engines: bool = False
    reuse_cached_engines: bool = False
    engine_cache_dir: str = None
    engine_cache_size: int = 5 << 30
    custom_engine_cache: object = None
    options: dict = field(default_factory=dict)

    @classmethod
    def make(cls, given=None, **keywords):
        """Settings of a dict of options. Unknown names are an error, options without a meaning here a warning."""
        given = dict(given or {}, **keywords)
        known, made = {f.name for f in fields(cls)}, {}
        for name, value in given.items():
            if name in known:
                made[name] = value
            elif name == "precision":
                made["enabled_precisions"] = {value}
            elif name == "optimization_level":
                made["tune"] = "fast" if value is None else ("off", "fast", "fast", "fast", "full", "full")[int(value)]
            elif name in ("make_refittable", "make_refitable"):
                made["immutable_weights"] = not value
            elif name in ("enable_autocast", "autocast_low_precision_type"):
                continue
            elif name in IGNORED:
                warnings.warn(f"sinter.torch: the option '{name}' changes nothing here", stacklevel=3)
            else:
                raise ValueError(f"there is no option '{name}'; options are {', '.join(sorted(known))}")
        settings, low = cls(**made), given.get("autocast_low_precision_type")
        if given.get("enable_autocast") and low is not None:
            settings.enabled_precisions = {*settings.enabled_precisions, low}
        settings.enabled_precisions = set(settings.enabled_precisions)
        for precision in settings.enabled_precisions:
            precision_of(precision)
        if settings.tune not in ("off", "fast", "full"):
            raise ValueError(f"tune is {settings.tune!r}; it may be off, fast, full")
        settings.torch_executed_ops = {op_name(op) for op in settings.torch_executed_ops}
        return settings

    def as_json(self):
        """The settings as json takes them, without those of the cache."""
        made = {f.name: getattr(self, f.name) for f in fields(self) if "engine_cache" not in f.name}
        made["enabled_precisions"] = sorted(p for p in map(precision_of, self.enabled_precisions) if p)
        return dict(made, torch_executed_ops=sorted(self.torch_executed_ops))

    @classmethod
    def from_json(cls, given):
        return cls.make(given)

    def build_options(self, device, has_convolution):
        """Options of sinter.build for a torch.device."""
        made = {"tune": self.tune}
        allow = [a for a in map(precision_of, self.enabled_precisions) if a]
        if device.type == "cuda":
            made["device"] = f"cuda:{device.index or 0}"
            if not self.disable_tf32 and (permits_tf32(torch.backends.cuda.matmul) or
                                          has_convolution and permits_tf32(torch.backends.cudnn)):
                allow.append("tf32")
        else:
            made["device"], made["threads"] = "cpu", self.threads or torch.get_num_threads()
        if allow:
            made["allow"] = sorted(allow)
        if not self.immutable_weights:
            made["refittable"] = True
        if self.workspace_size:
            made["workspace"] = self.workspace_size
        if self.timing_cache_path:
            made["timing_cache"] = os.fspath(self.timing_cache_path)
        return dict(made, **self.options)


def permits_tf32(flags):
    """torch's flag, under its old or its new name."""
    try:
        return bool(flags.allow_tf32)
    except RuntimeError:                        # the new names were used, and the old ones cannot say it
        return getattr(flags, "fp32_precision", "") == "tf32"


def precision_of(value):
    """The name that `allow` has for a precision; None for f32. torch.dtype, or text such as "fp16"."""
    if value in NEUTRAL or value in ("fp32", "f32"):
        return None
    if value in PRECISIONS:
        return PRECISIONS[value]
    if value in PRECISIONS.values():
        return value
    raise ValueError(f"the precision {value!r} is not known: torch.float32, float16, bfloat16, int8")


def op_name(op):
    """"aten.relu" or "aten.relu.default" of an operator or of its text."""
    if isinstance(op, torch._ops.OpOverload):
        return f"{op.namespace}.{op.overloadpacket.__name__}.{op._overloadname}"
    if isinstance(op, torch._ops.OpOverloadPacket):
        return f"{op._qualified_op_name.replace('::', '.')}"
    text = str(op).replace("::", ".")
    return text[len("torch.ops."):] if text.startswith("torch.ops.") else text
