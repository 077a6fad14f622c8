# SPDX-License-Identifier: Apache-2.0
"""Builder, its configuration, optimisation profiles."""
import contextlib
import os
import tempfile
import time

from .._abi import SAID_OF_SETTINGS, UNUSED_FLAGS
from .._library import Error
from ._calibrate import ranges_of
from ._core import Dims, ILogger, Managed, NotAvailable, Reporter, default_device, plan_memory, strict, unused_allocator
from ._layers import INetworkDefinition
from ._names import (BuilderFlag, DeviceType, EngineCapability, HardwareCompatibilityLevel, MemoryPoolType, PreviewFeature,
                      ProfilingVerbosity, RuntimePlatform, Severity, TacticSource, TilingOptimizationLevel)
from ._timing import ITimingCache


@strict
class IOptimizationProfile:
    """The range of shapes that an engine is built for."""
    ATTRIBUTES = "extra_memory_target"

    def __init__(self):
        self.shapes, self.values, self.extra_memory_target = {}, {}, 1.0

    def set_shape(self, input, min, opt, max):
        """Sets the least, the most usual and the largest shape of an input."""
        made = tuple(Dims(s) for s in (min, opt, max))
        if not len(made[0]) == len(made[1]) == len(made[2]) or any(not a <= b <= c for a, b, c in zip(*made)):
            raise ValueError(f"the shapes of '{input}' are not min <= opt <= max: {', '.join(map(str, made))}")
        self.shapes[input] = made

    def get_shape(self, input):
        return list(self.shapes[input]) if input in self.shapes else []

    def set_shape_input(self, input, min, opt, max):
        """Sets the range of an input's values, from which shapes are computed: ICudaEngine.get_tensor_profile_values has it again. It is
        not needed here: any values serve."""
        self.values[input] = tuple(list(map(int, v)) for v in (min, opt, max))

    def get_shape_input(self, input):
        return list(self.values[input]) if input in self.values else []

    def __bool__(self):
        return True

    __nonzero__ = __bool__


@strict
class IBuilderConfig(Managed):
    """How an engine is built. TF32 is permitted, as upstream has it; every other flag is off."""
    ATTRIBUTES = ("flags quantization_flags progress_monitor int8_calibrator avg_timing_iterations min_timing_iterations "
                  "builder_optimization_level max_aux_streams max_num_tactics hardware_compatibility_level profiling_verbosity "
                  "engine_capability default_device_type DLA_core runtime_platform tiling_optimization_level "
                  "l2_limit_for_tiling plugins_to_serialize profile_stream remote_auto_tuning_config build_route "
                  "algorithm_selector")

    def __init__(self, builder=None):
        self._builder = builder
        self.reset()

    def reset(self):
        self.flags = 1 << int(BuilderFlag.TF32)
        self.quantization_flags = 0
        self.profiles, self.calibration_profile, self.pools, self.previews = [], None, {}, {}
        self.timing_cache, self.device_types, self.progress_monitor, self.int8_calibrator = None, {}, None, None
        self.avg_timing_iterations = self.min_timing_iterations = 1
        self.builder_optimization_level, self.max_aux_streams, self.max_num_tactics = 3, -1, -1
        self.hardware_compatibility_level = HardwareCompatibilityLevel.NONE
        self.profiling_verbosity, self.engine_capability = ProfilingVerbosity.LAYER_NAMES_ONLY, EngineCapability.STANDARD
        self.default_device_type, self.runtime_platform = DeviceType.GPU, RuntimePlatform.SAME_AS_BUILD
        self.tiling_optimization_level, self.l2_limit_for_tiling = TilingOptimizationLevel.NONE, 0
        self.plugins_to_serialize, self.profile_stream, self.remote_auto_tuning_config = [], 0, ""
        self.build_route, self.algorithm_selector = "", None
        self.tactic_sources = 1 << TacticSource.EDGE_MASK_CONVOLUTIONS | 1 << TacticSource.JIT_CONVOLUTIONS

    # ---- flags ----

    def set_flag(self, flag):
        self.flags |= 1 << int(flag)

    def clear_flag(self, flag):
        self.flags &= ~(1 << int(flag))

    def get_flag(self, flag):
        return bool(self.flags >> int(flag) & 1)

    def set_quantization_flag(self, flag):
        self.quantization_flags |= 1 << int(flag)

    def clear_quantization_flag(self, flag):
        self.quantization_flags &= ~(1 << int(flag))

    def get_quantization_flag(self, flag):
        return bool(self.quantization_flags >> int(flag) & 1)

    def set_preview_feature(self, feature, enable):
        self.previews[feature] = bool(enable)

    def get_preview_feature(self, feature):
        return self.previews.get(feature, feature == PreviewFeature.PROFILE_SHARING_0806)

    # ---- profiles, memory, caches ----

    def add_optimization_profile(self, profile):
        self.profiles.append(profile)
        return len(self.profiles) - 1

    @property
    def num_optimization_profiles(self):
        return len(self.profiles)

    def set_calibration_profile(self, profile):
        self.calibration_profile = profile
        return True

    def get_calibration_profile(self):
        return self.calibration_profile

    def set_memory_pool_limit(self, pool, pool_size):
        if pool_size < 0:
            raise TypeError(f"set_memory_pool_limit(): a pool has 0 bytes or more, not {pool_size}")
        self.pools[pool] = int(pool_size)

    def get_memory_pool_limit(self, pool):
        if pool in self.pools:
            return self.pools[pool]
        usual = {MemoryPoolType.DLA_MANAGED_SRAM: 0, MemoryPoolType.DLA_LOCAL_DRAM: 1 << 30, MemoryPoolType.DLA_GLOBAL_DRAM: 1 << 29,
                 MemoryPoolType.TACTIC_SHARED_MEMORY: 1 << 30}
        return usual.get(pool, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))

    max_workspace_size = property(lambda self: self.get_memory_pool_limit(MemoryPoolType.WORKSPACE),
                                  lambda self, size: self.set_memory_pool_limit(MemoryPoolType.WORKSPACE, size))

    def create_timing_cache(self, serialized_timing_cache):
        return ITimingCache(serialized_timing_cache)

    def set_timing_cache(self, cache, ignore_mismatch):
        self.timing_cache = cache
        return True

    def get_timing_cache(self):
        return self.timing_cache

    # ---- devices ----

    def _set_core(self, core):
        if core != -1 and self._builder is not None:
            self._builder.fail(f"DLA_core cannot be {core}: there is no DLA, and it stays -1")

    DLA_core = property(lambda self: -1, _set_core)

    def set_device_type(self, layer, device_type):
        """Kept; a build refuses a layer on a DLA, unless BuilderFlag.GPU_FALLBACK permits the GPU."""
        self.device_types[layer] = device_type

    def get_device_type(self, layer):
        return self.device_types.get(layer, self.default_device_type)

    def is_device_type_set(self, layer):
        return layer in self.device_types

    def reset_device_type(self, layer):
        self.device_types.pop(layer, None)

    def can_run_on_DLA(self, layer):
        return False

    def set_tactic_sources(self, tactic_sources):
        self.tactic_sources = int(tactic_sources)
        return True

    def get_tactic_sources(self):
        return self.tactic_sources

    @property
    def all_build_routes(self):
        return "{}"


def mode(flag):
    """A flag as a property of a builder."""
    return property(lambda self: self._config.get_flag(flag),
                    lambda self, is_on: self._config.set_flag(flag) if is_on else self._config.clear_flag(flag))


@strict
class Builder(Managed, Reporter):
    """Makes networks, configurations and engines. What is built for is SINTER_TENSORRT_DEVICE, else a GPU where there is one,
    else the CPU."""
    ATTRIBUTES = "logger gpu_allocator"
    max_batch_size = 1
    max_threads = 1
    max_DLA_batch_size = num_DLA_cores = 0
    platform_has_fast_fp16 = platform_has_fast_int8 = True

    def __init__(self, logger):
        if not isinstance(logger, ILogger):
            raise TypeError(f"a {type(logger).__name__} is no ILogger")
        self.logger = logger
        self.device, self._config = default_device(), IBuilderConfig()

    gpu_allocator = unused_allocator("gpu_allocator")

    @property
    def platform_has_tf32(self):
        return self.device != "cpu"

    def create_network(self, flags=0):
        return INetworkDefinition(self, int(flags))

    def create_builder_config(self):
        return IBuilderConfig(self)

    def create_optimization_profile(self):
        return IOptimizationProfile()

    def get_plugin_registry(self):
        from ._registry import get_plugin_registry
        return get_plugin_registry()

    def reset(self):
        return None

    def is_network_supported(self, network, config):
        return network._problem() is None

    def build_serialized_network(self, network, config):
        """The engine as an IHostMemory; None after a failure, which the logger has."""
        if not network.num_outputs:
            return self.fail("the network has no outputs: INetworkDefinition.mark_output", code="INVALID_CONFIG")
        try:
            return plan_memory(self._build(network, config))
        except (Error, ValueError, TypeError, NotImplementedError) as e:
            return self.fail(e)

    def build_engine_with_config(self, network, config):
        from ._runtime import Runtime
        plan = self.build_serialized_network(network, config)
        runtime = Runtime(self.logger)
        runtime.error_recorder = self.error_recorder
        return None if plan is None else runtime.deserialize_cuda_engine(plan)

    def build_engine(self, network, config):
        return self.build_engine_with_config(network, config)

    def build_serialized_network_to_stream(self, network, config, writer):
        plan = self.build_serialized_network(network, config)
        if plan is None:
            return False
        data, at = memoryview(plan).cast("B"), 0
        while at < len(data):
            written = writer.write(bytes(data[at:at + (64 << 20)]))
            if not written or written < 0:
                return False
            at += written
        return True

    # ---- versions 5 to 7: the builder has the configuration ----

    def build_cuda_engine(self, network):
        """An engine by what is set on the builder: max_workspace_size, fp16_mode, int8_mode, int8_calibrator, strict_type_constraints,
        refittable."""
        return self.build_engine_with_config(network, self._config)

    max_workspace_size = property(lambda self: self._config.max_workspace_size,
                                  lambda self, size: setattr(self._config, "max_workspace_size", size))
    int8_calibrator = property(lambda self: self._config.int8_calibrator,
                               lambda self, calibrator: setattr(self._config, "int8_calibrator", calibrator))
    fp16_mode, int8_mode, strict_type_constraints, refittable = map(mode, (
        BuilderFlag.FP16, BuilderFlag.INT8, BuilderFlag.STRICT_TYPES, BuilderFlag.REFIT))

    # ---- what a configuration means ----

    def _build(self, network, config):
        start = time.perf_counter()
        wanted = {config.default_device_type, *config.device_types.values()}
        if wanted != {DeviceType.GPU} and not config.get_flag(BuilderFlag.GPU_FALLBACK):
            raise NotAvailable(SAID_OF_SETTINGS["DLA"])
        options = {"device": self.device, "refittable": bool(config.flags & REFITS)}
        if config.get_flag(BuilderFlag.REFIT_INDIVIDUAL):
            if network._refittable:
                options["replaceable"] = sorted(network._refittable)
            else:
                options["refittable"] = bool(config.flags & REFITS & ~(1 << int(BuilderFlag.REFIT_INDIVIDUAL)))
                self.say(Severity.WARNING, f"{BuilderFlag.REFIT_INDIVIDUAL} without INetworkDefinition.mark_weights_refittable: no weight can "
                                           "be replaced")
        options["tune"] = ("off", "fast", "fast", "fast", "full", "full")[min(max(config.builder_optimization_level, 0), 5)]
        options["profiles"] = network._profiles([p.shapes for p in config.profiles])
        allow = [name for name, flag in (("fp16", BuilderFlag.FP16), ("bf16", BuilderFlag.BF16)) if config.get_flag(flag)]
        if config.get_flag(BuilderFlag.TF32) and self.device != "cpu":
            allow.append("tf32")
        ranges = ranges_of(self, network, config) if config.get_flag(BuilderFlag.INT8) else None
        if ranges is not None:
            allow.append("int8")
            options["calibration"] = ranges
        if allow:
            options["allow"] = allow
        options["detail"] = {ProfilingVerbosity.LAYER_NAMES_ONLY: "names", ProfilingVerbosity.NONE: "none"}.get(
            config.profiling_verbosity, "all")
        if config.max_aux_streams == 0:
            options["branches"] = "off"
        if MemoryPoolType.WORKSPACE in config.pools:
            options["workspace"] = config.pools[MemoryPoolType.WORKSPACE]
        network._net.set_precision_mode("obey" if config.get_flag(BuilderFlag.OBEY_PRECISION_CONSTRAINTS) or
                                        config.get_flag(BuilderFlag.STRICT_TYPES) else
                                        "prefer" if config.get_flag(BuilderFlag.PREFER_PRECISION_CONSTRAINTS) else "ignore")
        self._explain(network, config)
        options["log"] = lambda topic, line: self.logger.log(Severity.VERBOSE, f"{topic}: {line}")
        # Lines are asked for only where they would be seen.
        options["log_topics"] = "import,opt,select,plan"
        if getattr(self.logger, "min_severity", Severity.VERBOSE) < Severity.VERBOSE:
            del options["log"], options["log_topics"]
        if config.progress_monitor is not None:
            options["progress"] = Progress(config.progress_monitor)
        try:
            with self._timing_cache(config, options):
                plan = network._build(options, config.profiles)
        finally:
            if config.progress_monitor is not None:
                options["progress"].finish()
        if config.get_flag(BuilderFlag.EDITABLE_TIMING_CACHE) and config.timing_cache is not None:
            report = plan.load(no_device=True, plugins=network._bridges.current()).info
            for line in config.timing_cache._tactics([step for profile in report["profiles"] for step in profile["steps"]]):
                self.say(Severity.VERBOSE, line)
        if config.get_flag(BuilderFlag.STRIP_PLAN):
            plan = plan.load(no_device=True).strip()
        self.say(Severity.INFO, f"Engine generation completed in {time.perf_counter() - start:.6g} seconds.")
        return plan

    @contextlib.contextmanager
    def _timing_cache(self, config, options):
        cache = config.timing_cache
        if cache is None or config.get_flag(BuilderFlag.DISABLE_TIMING_CACHE):
            yield
            return
        if cache._is_foreign:
            self.say(Severity.WARNING, "the bytes that the timing cache was created from are no timing cache of sinter, and one of TensorRT "
                     "cannot be read: the cache begins empty")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "timings")
            with open(path, "wb") as file:
                file.write(cache.data)
            options["timing_cache"], options["cache_only"] = path, config.get_flag(BuilderFlag.ERROR_ON_TIMING_CACHE_MISS)
            try:
                yield
            finally:
                with open(path, "rb") as file:
                    cache.data = file.read()

    def _explain(self, network, config):
        """Says what of a configuration changes nothing here."""
        for flag, text in UNUSED.items():
            if config.get_flag(flag):
                self.say(Severity.WARNING, f"{flag} changes nothing: {text}")
        if config.get_flag(BuilderFlag.INT8) and config.int8_calibrator is None and not network._ranges and \
                not network._is_quantized():
            self.say(Severity.WARNING, SAID_OF_SETTINGS["INT8"])
        if config.hardware_compatibility_level != HardwareCompatibilityLevel.NONE:
            self.say(Severity.WARNING, SAID_OF_SETTINGS["HARDWARE"])
        if config.engine_capability != EngineCapability.STANDARD:
            raise NotAvailable(SAID_OF_SETTINGS["CAPABILITY"])
        if config.runtime_platform != RuntimePlatform.SAME_AS_BUILD:
            raise NotAvailable(SAID_OF_SETTINGS["PLATFORM"])
        if config.plugins_to_serialize:
            self.say(Severity.WARNING, SAID_OF_SETTINGS["PLUGINS"])
        if config.remote_auto_tuning_config or config.build_route:
            self.say(Severity.WARNING, "remote_auto_tuning_config and build_route change nothing: kernels are measured on the machine that builds")
        if config.algorithm_selector is not None:
            self.say(Severity.WARNING, SAID_OF_SETTINGS["SELECTOR"])
        set_types = [layer.name for layer in network._net.layers if layer.precision is not None]
        if set_types and not (config.flags & KEEPS_PRECISIONS):
            self.say(Severity.WARNING, f"the precisions of {len(set_types)} layers ({', '.join(set_types[:3])}) change nothing: set "
                     "OBEY_PRECISION_CONSTRAINTS or PREFER_PRECISION_CONSTRAINTS")

    def _read(self, view):
        if self.device == "cpu":
            return view.tobytes()
        from .. import _cuda
        return _cuda.read(view.data, view.nbytes)


class Progress:
    """Phases of a build for an IProgressMonitor; a phase has 100 steps."""
    STEPS = 100

    def __init__(self, monitor):
        self.monitor, self.phase, self.step = monitor, None, -1

    def __call__(self, phase, done):
        if phase != self.phase:
            self.finish()
            self.phase, self.step = phase, -1
            self.monitor.phase_start(phase, None, self.STEPS)
        while self.step < min(int(done * self.STEPS), self.STEPS) - 1:
            self.step += 1
            if not self.monitor.step_complete(phase, self.step):
                return True
        return False

    def finish(self):
        if self.phase is not None:
            self.monitor.phase_finish(self.phase)
        self.phase = None


def mask(*flags):
    return sum({1 << int(flag) for flag in flags})


REFITS = mask(BuilderFlag.REFIT, BuilderFlag.REFIT_IDENTICAL, BuilderFlag.REFIT_INDIVIDUAL, BuilderFlag.STRIP_PLAN)
KEEPS_PRECISIONS = mask(BuilderFlag.OBEY_PRECISION_CONSTRAINTS, BuilderFlag.PREFER_PRECISION_CONSTRAINTS, BuilderFlag.STRICT_TYPES)
UNUSED = {BuilderFlag[name]: text for name, text in UNUSED_FLAGS.items()}
