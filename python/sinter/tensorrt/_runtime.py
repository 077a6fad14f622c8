# SPDX-License-Identifier: Apache-2.0
"""Runtime, engines, execution contexts, inspectors."""
import ctypes
import functools
import operator
import os
import re

from .. import _library
from .._abi import Detail, Dtype, Place
from .._dtype import BITS as SINTER_BITS
from .._dtype import size_of
from .._context import c_run as context_run
from .._engine import load
from .._host_device import borrowed, submit
from .._host_device import device as host_device
from .._library import Error
from .._shapes import infer
from .._tensor import Tensor
from ._core import (DEBUG, IMPLICIT, UNFUSED, VALUES, Dims, ILogger, Managed, NoDims, Reporter, plan_memory, to_trt, unused_allocator,
                    volume)
from ._inspector import EngineInspector, layer_names, profile_suffix
from ._interfaces import TEMPFILES, IStreamReader, IStreamReaderV2
from ._formats import LINEAR, MARK, read_mark
from ._names import (DataType, EngineCapability, EngineStat, ExecutionContextAllocationStrategy, HardwareCompatibilityLevel,
                     ProfilingVerbosity, SeekPosition, SerializationFlag, TensorFormat, TensorIOMode,
                     TensorLocation)

VERBOSITY = {Detail.ALL: ProfilingVerbosity.DETAILED, Detail.NAMES: ProfilingVerbosity.LAYER_NAMES_ONLY,
             Detail.NONE: ProfilingVerbosity.NONE}
FLOAT_WORDS = {"FLOAT": "FP32", "HALF": "FP16"}


SAID = DEBUG, UNFUSED, MARK, VALUES, IMPLICIT           # begin the names of outputs that scripts do not see


def read_stream(reader):
    """All bytes of a stream reader, old or new."""
    parts, size = [], 1 << 20
    is_new = isinstance(reader, IStreamReaderV2) or hasattr(reader, "seek") and not isinstance(reader, IStreamReader)
    if is_new:
        reader.seek(0, SeekPosition.SET)
    while True:
        part = reader.read(size, 0) if is_new else reader.read(size)
        if not part:
            return b"".join(parts)
        parts.append(bytes(part))


def is_buffer(thing):
    try:
        return memoryview(thing).nbytes >= 0
    except TypeError:
        return False


def no_engine(given):
    text = "deserialize_cuda_engine(): incompatible function arguments: bytes, a buffer or an IStreamReader are wanted, found "
    if given is None:
        return TypeError(text + "None, which build_serialized_network gives where a build failed: the logger has the cause")
    is_path = isinstance(given, (str, os.PathLike))
    return TypeError(text + (f"the path '{given}': give what the file holds" if is_path else f"a {type(given).__name__}"))


class Runtime(Managed, Reporter):
    """Loads engines."""
    ATTRIBUTES = "logger gpu_allocator engine_host_code_allowed temporary_directory tempfile_control_flags"
    DLA_core, num_DLA_cores, max_threads = -1, 0, 1
    gpu_allocator = unused_allocator("gpu_allocator")

    def __init__(self, logger):
        if not isinstance(logger, ILogger):
            raise TypeError(f"a {type(logger).__name__} is no ILogger")
        self.logger, self.engine_host_code_allowed = logger, False
        self.temporary_directory, self.tempfile_control_flags = "", TEMPFILES

    def deserialize_cuda_engine(self, serialized_engine=None, *, stream_reader=None, stream_reader_v2=None):
        """An ICudaEngine of bytes or of a stream reader; None after a failure, which the logger has. As upstream, other objects are a
        TypeError; most often it is the None of a build that failed."""
        try:
            from ._plugin_bridge import Bridges
            serialized_engine = next((given for given in (stream_reader, stream_reader_v2) if given is not None), serialized_engine)
            if not is_buffer(serialized_engine):            # a mapped file is both: bytes, and an object with read()
                if not hasattr(serialized_engine, "read"):
                    raise no_engine(serialized_engine)
                serialized_engine = read_stream(serialized_engine)
            engine = load(serialized_engine, plugins=Bridges(is_runtime=True).current(), trust_code=bool(self.engine_host_code_allowed))
            return ICudaEngine(engine, self.logger, self)
        except Error as e:
            return self.fail(e)

    def get_plugin_registry(self):
        from ._registry import get_plugin_registry
        return get_plugin_registry()

    def load_runtime(self, path):
        return Runtime(self.logger)


class ISerializationConfig:
    ATTRIBUTES = "flags"

    def __init__(self):
        self.flags = 0

    def set_flag(self, flag):
        self.flags |= 1 << int(flag)
        return True

    def clear_flag(self, flag):
        self.flags &= ~(1 << int(flag))
        return True

    def get_flag(self, flag):
        return bool(self.flags >> int(flag) & 1)


class IRuntimeConfig:
    def __init__(self):
        self.strategy = ExecutionContextAllocationStrategy.STATIC

    def set_execution_context_allocation_strategy(self, strategy):
        self.strategy = strategy

    def get_execution_context_allocation_strategy(self):
        return self.strategy


def of_tensor(nothing):
    """A method about a tensor, or a binding by its number. As upstream, a tensor that the engine does not have is an error for the
    logger, and `nothing` is the answer."""
    def decorate(method):
        @functools.wraps(method)
        def asked(self, name=None, *more, index=None, **named):
            name = name if index is None else index
            engine = getattr(self, "engine", self)
            if engine._find(name) is None:
                return self.fail(engine._unknown(name), nothing)
            return method(self, name, *more, **named)
        return asked
    return decorate


class ICudaEngine(Managed, Reporter):
    """An engine. It is used by the names of tensors, or by bindings: numbers of inputs and outputs, as versions before 10 did;
    the bindings of profile p begin at p * num_io_tensors."""
    engine_capability = EngineCapability.STANDARD
    hardware_compatibility_level = HardwareCompatibilityLevel.NONE
    profiling_verbosity = property(lambda self: VERBOSITY[self._engine.detail])
    tactic_sources = num_aux_streams = 0
    minimum_weight_streaming_budget = 0
    _budget = None                                       # of an engine for the CPU

    def __init__(self, engine, logger, maker=None):
        self._engine, self.logger, self._maker = engine, logger, maker
        names = [io.name for io in engine.inputs + engine.outputs]
        self._names = [name for name in names if not name.startswith(SAID)]
        self._hidden = int(IMPLICIT in names)               # 1: axis 0 of each tensor is an implicit batch
        said = (re.fullmatch(re.escape(VALUES) + "([0-9]+) ([-0-9,;]*) (.*)", name) for name in names)
        self._values = {(m[3], int(m[1])): m[2].split(";") for m in said if m}
        self._layouts = dict(read_mark(name) for name in names if name.startswith(MARK))
        self._debug, self._unfused = ([name[len(mark):] for name in names if name.startswith(mark)] for mark in (DEBUG, UNFUSED))
        self._bindings = {name + profile_suffix(p): name for p in range(engine.profile_count) for name in self._names}
        self._shape_inputs = self._find_shape_inputs()
        self._replaced()

    def _replaced(self, engine=None):
        """Other weights were put in."""
        if engine is not None:
            self._engine = engine
        self._io = {io.name: io for io in self._engine.inputs + self._engine.outputs}
        self._generation = getattr(self, "_generation", 0) + 1

    def _find_shape_inputs(self):
        """The inputs whose values decide sizes. As upstream has it, their data lie on the host."""
        shapes = {io.name: io.opt for io in self._engine.io(0) if io.is_input}
        if not any(len(io.opt) < 2 and io.dtype in (Dtype.I32, Dtype.I64) for io in self._engine.io(0) if io.is_input):
            return frozenset()
        try:
            with self._engine.context(memory="user") as context:
                for name, shape in shapes.items():
                    context.set_input_shape(name, shape)
                return frozenset(context.missing_inputs())
        except Error:                                   # an engine without weights, or for a device that is not here
            return frozenset()

    _is_stripped = property(lambda self: self._engine.is_stripped)

    def _find(self, name):
        """The IO of a name or of a binding."""
        if not isinstance(name, str):                   # NumPy's integers, too
            index = operator.index(name)
            return self._io.get(self._names[index % len(self._names)]) if 0 <= index < self.num_bindings else None
        return self._io.get(name) or self._io.get(self._bindings.get(name))

    def _unknown(self, name):
        what = f"tensor '{name}'" if isinstance(name, str) else f"binding {name}"
        return f"the engine has no {what}: {', '.join(self._names)}"

    def _known(self, name):
        io = self._find(name)
        if io is None:
            raise ValueError(self._unknown(name))
        return io

    # ---- the engine as a whole ----

    name = property(lambda self: self._engine.info["model"])
    has_implicit_batch_dimension = property(lambda self: self._hidden != 0)
    max_batch_size = property(lambda self: self._engine.inputs[0].max[0] if self._hidden else 1)
    num_io_tensors = property(lambda self: len(self._names))
    num_bindings = property(lambda self: len(self._names) * self._engine.profile_count)
    num_optimization_profiles = property(lambda self: self._engine.profile_count)
    num_layers = property(lambda self: sum(len(p["steps"]) for p in self._engine.info["profiles"]))

    @property
    def refittable(self):
        return bool(self._engine.describe()["is_refittable"]) and any(not w.is_fixed for w in self._engine.weights())

    # ---- memory ----

    def _memory(self, profile):
        return self._engine.describe(profile)["memory_size"]

    device_memory_size = device_memory_size_v2 = property(lambda self: self._engine.describe()["memory_size"])
    streamable_weights_size = property(lambda self: self._engine.describe()["streamable_size"])
    weight_streaming_scratch_memory_size = property(lambda self: self._engine.describe()["weight_scratch_size"])

    @property
    def weight_streaming_budget_v2(self):
        """Bytes of a GPU's memory for weights; streamable_weights_size or more: all of them lie there. Contexts come after it. On the
        CPU no weight is copied: a budget is kept, and changes nothing. A negative budget is refused."""
        info = self._engine.describe()
        return self._budget if self._budget is not None else info["weight_budget"] or info["streamable_size"]

    @weight_streaming_budget_v2.setter
    def weight_streaming_budget_v2(self, size):
        if size < 0:
            self.fail(f"the weight streaming budget is {size}: a number from 0 to streamable_weights_size is wanted")
            return
        if self._engine.device == "cpu":
            self._budget = int(size)
        else:
            self._engine.set_weight_budget(0 if size >= self.streamable_weights_size else max(int(size), 1))

    @property
    def weight_streaming_budget(self):
        """The same, where 0 means that all weights lie in the GPU's memory, and -1 asks for a budget."""
        return self._engine.describe()["weight_budget"]

    @weight_streaming_budget.setter
    def weight_streaming_budget(self, size):
        self._engine.set_weight_budget(self._engine.automatic_weight_budget() if size < 0 else int(size))

    def get_weight_streaming_automatic_budget(self):
        return self._engine.automatic_weight_budget()

    def get_device_memory_size_for_profile(self, profile_index):
        return self._memory(profile_index) if self._has_profile(profile_index) else 0

    def _has_profile(self, index):
        known = 0 <= index < self._engine.profile_count
        return known or self.fail(f"the engine has no optimization profile {index}: {self._engine.profile_count} profiles are counted from 0", False)

    get_device_memory_size_for_profile_v2 = get_device_memory_size_for_profile

    def get_engine_stat(self, stat):
        return self._engine.info["weight_bytes" if stat == EngineStat.TOTAL_WEIGHTS_SIZE else "stripped_bytes"]

    def serialize(self):
        return plan_memory(self._engine.plan())

    def serialize_with_config(self, config):
        if config.get_flag(SerializationFlag.EXCLUDE_WEIGHTS):
            return plan_memory(self._engine.strip())
        return self.serialize()

    def create_serialization_config(self):
        return ISerializationConfig()

    def create_runtime_config(self):
        return IRuntimeConfig()

    def create_engine_inspector(self):
        return EngineInspector(self)

    def create_execution_context(self, strategy=ExecutionContextAllocationStrategy.STATIC, *, runtime_config=None):
        """An IExecutionContext; None after a failure. strategy: who provides the memory of activations; an IRuntimeConfig has one."""
        try:
            return IExecutionContext(self, getattr(strategy if runtime_config is None else runtime_config, "strategy", strategy))
        except Error as e:
            return self.fail(e)

    def create_execution_context_without_device_memory(self):
        return self.create_execution_context(ExecutionContextAllocationStrategy.USER_MANAGED)

    # ---- tensors ----

    def get_tensor_name(self, index):
        return self._names[index] if 0 <= index < len(self._names) else self.fail(self._unknown(index))

    def get_tensor_mode(self, name):
        io = self._find(name)
        return TensorIOMode.NONE if io is None else TensorIOMode.INPUT if io.is_input else TensorIOMode.OUTPUT

    def _shown(self, name, shape):
        """The sizes of a tensor that has these in memory."""
        return Dims(self._layouts[name].shown(shape) if name in self._layouts else shape[self._hidden:])

    @of_tensor(NoDims([]))
    def get_tensor_shape(self, name):
        io = self._known(name)
        return self._shown(io.name, io.shape)

    @of_tensor(DataType.FLOAT)
    def get_tensor_dtype(self, name):
        return to_trt(self._known(name).dtype, name)

    @of_tensor(TensorLocation.DEVICE)
    def get_tensor_location(self, name):
        return TensorLocation.HOST if self._known(name).name in self._shape_inputs else TensorLocation.DEVICE

    @of_tensor([NoDims([])] * 3)
    def get_tensor_profile_shape(self, name, profile_index):
        """[min, opt, max] of an input; of an output the shapes that it has with those of the inputs, for scripts that allocate by them."""
        if not self._has_profile(profile_index):
            return [NoDims([])] * 3
        name, inputs = self._known(name).name, [io for io in self._engine.io(profile_index) if io.is_input]
        return [self._shown(name, {**infer(self._engine, shapes), **shapes}[name])
                for shapes in ({io.name: getattr(io, which) for io in inputs} for which in ("min", "opt", "max"))]

    def get_tensor_profile_values(self, name, profile_index):
        """The values that IOptimizationProfile.set_shape_input gave: [min, opt, max]; [] where it gave none. Upstream takes the profile
        first where arguments have no names; both orders serve."""
        if isinstance(profile_index, str):
            name, profile_index = profile_index, name
        if self._find(name) is None:
            return self.fail(self._unknown(name), [])
        parts = self._values.get((self._known(name).name, profile_index), ())
        return [tuple(map(int, re.findall("-?[0-9]+", part))) for part in parts]

    @of_tensor(TensorFormat.LINEAR)
    def get_tensor_format(self, name, profile_index=0):
        return self._layouts.get(self._known(name).name, LINEAR).format

    @of_tensor("")
    def get_tensor_format_desc(self, name, profile_index=0):
        word, format = self.get_tensor_dtype(name).name, self.get_tensor_format(name)
        word = FLOAT_WORDS.get(word, word)
        return f"Row major linear {word} format (kLINEAR)" if format == TensorFormat.LINEAR else f"{word} format (k{format.name})"

    def _lanes(self, name):
        """How many channels a format keeps together; 1: it has no groups of them."""
        layout = self._layouts.get(self._known(name).name)
        return 1 if layout is None else layout.lanes

    @of_tensor(-1)
    def get_tensor_bytes_per_component(self, name, profile_index=0):
        """-1 of a tensor without a vectorised axis, as the two below."""
        return -1 if self._lanes(name) == 1 else SINTER_BITS[self._known(name).dtype] // 8

    @of_tensor(-1)
    def get_tensor_components_per_element(self, name, profile_index=0):
        return -1 if self._lanes(name) == 1 else self._lanes(name)

    @of_tensor(-1)
    def get_tensor_vectorized_dim(self, name, profile_index=0):
        return -1 if self._lanes(name) == 1 else len(self.get_tensor_shape(name)) - self._layouts[name].behind - 1

    @of_tensor(False)
    def is_shape_inference_io(self, name):
        """Is it an input whose values decide sizes of outputs?"""
        return self._known(name).name in self._shape_inputs

    def is_debug_tensor(self, name):
        return name in self._debug

    def get_aliased_input_tensor(self, name):
        """The input in whose memory an output may lie: the cache of a cache update. None of other outputs. Here it may have its own, too."""
        for step in self._engine.info["profiles"][0]["steps"]:
            if step["problem"].startswith("tensor_scatter:") and step["out"][0]["name"] == name and step["in"][0]["kind"] == "input":
                return step["in"][0]["name"]
        return None

    # ---- bindings ----

    def __len__(self):
        return self.num_bindings

    def __iter__(self):
        """The names of tensors, each once, as version 10 has it."""
        return iter(self._names)

    def __getitem__(self, key):
        return self.get_binding_index(key) if isinstance(key, str) else list(self._bindings)[key]

    def get_binding_name(self, index):
        """A tensor's name; of profiles after the first with the profile behind it."""
        return self[index] if 0 <= index < self.num_bindings else self.fail(self._unknown(index))

    def get_binding_index(self, name):
        return list(self._bindings).index(name) if name in self._bindings else -1

    @of_tensor(False)
    def binding_is_input(self, name):
        return self._known(name).is_input

    @of_tensor(NoDims([]))
    def get_binding_shape(self, name):
        return self.get_tensor_shape(self._known(name).name)

    @of_tensor(DataType.FLOAT)
    def get_binding_dtype(self, name):
        io = self._known(name)
        return to_trt(io.dtype, io.name)

    def get_profile_shape(self, profile_index, binding):
        return tuple(self.get_tensor_profile_shape(self._known(binding).name, profile_index))

    def get_profile_shape_input(self, profile_index, binding):
        return self.get_tensor_profile_values(binding, profile_index)

    @of_tensor(TensorLocation.DEVICE)
    def get_location(self, name):
        return self.get_tensor_location(name)

    def is_shape_binding(self, binding):
        return self.is_shape_inference_io(binding)

    def is_execution_binding(self, binding):
        return True

    def get_binding_format(self, index):
        return self.get_tensor_format(self._known(index).name)

    def get_binding_format_desc(self, index):
        return self.get_tensor_format_desc(self._known(index).name)

    def get_binding_bytes_per_component(self, index):
        return SINTER_BITS[self._known(index).dtype] // 8

    def get_binding_components_per_element(self, index):
        return self._lanes(index)

    def get_binding_vectorized_dim(self, index):
        return self.get_tensor_vectorized_dim(self._known(index).name)


MEMORY = {ExecutionContextAllocationStrategy.STATIC: "static", ExecutionContextAllocationStrategy.ON_PROFILE_CHANGE: "profile",
          ExecutionContextAllocationStrategy.USER_MANAGED: "user"}


class IExecutionContext(Managed, Reporter):
    """What one caller runs an engine with. Device pointers are host pointers on the CPU, where runs end before calls return."""
    ATTRIBUTES = "engine name"
    nvtx_verbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
    debug_sync, enqueue_emits_profile = False, True
    persistent_cache_limit = 0
    unfused_tensors_debug_state = False
    temporary_allocator = unused_allocator("temporary_allocator")

    def __init__(self, engine, strategy=ExecutionContextAllocationStrategy.STATIC):
        self._strategy, self._lent = ExecutionContextAllocationStrategy(strategy), None
        self.engine, self.logger, self.name, self._maker = engine, engine.logger, "", engine
        self._profile, self._contexts, self._generation = 0, {}, engine._generation
        self._shapes, self._addresses, self._allocators, self._streams = {}, {}, {}, {}
        self._profiler, self._reported, self._last, self._consumed, self._inferred = None, {}, None, None, None
        self._found, self._listener, self._debugged = {}, None, set()
        self._values = {}                                      # values that set_shape_input gave
        if engine._hidden:
            self._set_batch(1)
        self._context(0)                                       # memory is there from the start

    def _set_batch(self, size):
        """The batch of the next runs, where it is implicit."""
        most = self.engine.max_batch_size
        if self.engine._hidden and not 1 <= size <= most:
            return self.fail(f"the batch is {size}: the engine was built for 1 to {most}", False)
        if self.engine._hidden:
            self._shapes = {io.name: (int(size), *io.shape[1:]) for io in self.engine._engine.inputs}
        return True

    def _context(self, stream):
        """The sinter.Context of a stream. The engine's weights may have been replaced since the last run."""
        if self._generation != self.engine._generation:
            self._contexts, self._generation = {}, self.engine._generation
        if self.engine._engine.device == "cpu":
            stream = 0
        key = stream, self._profiler is not None
        if key not in self._contexts:
            self._contexts[key] = self.engine._engine.context(self._profile, stream or None, memory=MEMORY[self._strategy],
                                                              timing=self._profiler is not None)
        found = self._contexts[key]
        if found.profile != self._profile:
            found.set_profile(self._profile)
        if self._lent is not found._lent:
            found.set_memory(self._lent)
        return found

    # ---- profiles and shapes ----

    @property
    def active_optimization_profile(self):
        return self._profile

    @active_optimization_profile.setter
    def active_optimization_profile(self, index):
        self.set_optimization_profile_async(index, 0)

    def set_optimization_profile_async(self, profile_index, stream_handle):
        if not 0 <= profile_index < self.engine.num_optimization_profiles:
            return self.fail(f"the engine has no optimization profile {profile_index}: {self.engine.num_optimization_profiles} profiles are "
                             "counted from 0", False)
        if profile_index != self._profile:
            self._profile, self._shapes = profile_index, {}
        return True

    def set_input_shape(self, name, shape):
        """Sets the shape of an input. False if the profile does not permit it."""
        io = next((io for io in self.engine._engine.io(self._profile) if io.name == name and io.is_input), None)
        shape = tuple(int(d) for d in shape)
        if io is None:
            return self.fail(f"the engine has no input '{name}'", False)
        if name in self.engine._layouts:
            wanted = self.engine.get_tensor_shape(name)
            if len(shape) != len(wanted) or any(a not in (-1, b) for a, b in zip(wanted, shape)):
                return self.fail(f"input '{name}' has the shape {wanted}, not {shape}", False)
            shape = self.engine._layouts[name].stored(shape)
        if len(shape) != len(io.min) or any(not a <= d <= b for a, d, b in zip(io.min, shape, io.max)):
            return self.fail(f"input '{name}' cannot have the shape {shape}: profile {self._profile} permits {io.min} to {io.max}", False)
        self._shapes[name] = shape
        return True

    def _input_shapes(self):
        """name -> shape, of inputs whose shape is known."""
        return {io.name: io.shape if -1 not in io.shape else self._shapes[io.name] for io in self.engine._engine.inputs
                if -1 not in io.shape or io.name in self._shapes}

    def _with_shapes(self):
        """The sinter.Context, which knows the shapes that are set."""
        context = self._context(0)
        for name, shape in self._input_shapes().items():
            context.set_input_shape(name, shape)
        return context

    def _infer(self, shapes, context=None):
        """Shapes of the outputs; those of the last shapes of inputs are kept. Expressions give most of them. In a run the library
        knows the sizes, too, that are values of inputs. A size that was not known before the run has -1; after it, the run's."""
        if self._inferred is None or self._inferred[0] != shapes:
            self._inferred, self._found = (shapes, infer(self.engine._engine, shapes)), {}
        made = self._inferred[1]
        if context is not None:
            return {name: context.output_shape(name) if -1 in shape else shape for name, shape in made.items()}
        return {name: self._found.get(name, shape) for name, shape in made.items()}

    @of_tensor(NoDims([]))
    def get_tensor_shape(self, name):
        io = self.engine._known(name)
        return self.engine._shown(io.name, self._stored_shape(io))

    def _stored_shape(self, io):
        """The sizes in memory of a tensor."""
        shapes = self._input_shapes()
        if io.is_input:
            return shapes.get(io.name, io.shape)
        found = self._infer(shapes)[io.name]
        if -1 in found and not self._missing():
            context = self._with_shapes()
            for name in self.engine._shape_inputs:
                context.set_input(name, self._host_tensor(name, shapes))
            found = context.output_shape(io.name)
        return found

    def _host_tensor(self, name, shapes):
        """The values of an input that decide sizes."""
        return Tensor._make(self.engine._io[name].dtype, shapes[name], self._addresses[name], Place.HOST, self._values.get(name))

    @of_tensor(NoDims([]))
    def get_tensor_strides(self, name):
        strides, stride = [], 1
        io = self.engine._known(name)
        for dim in reversed(self._stored_shape(io)):
            strides.insert(0, stride)
            stride *= max(dim, 1)
        layout = self.engine._layouts.get(io.name)
        return Dims(strides if layout is None else layout.strides(strides))

    def infer_shapes(self):
        """The names of inputs whose shape or address is missing: [] where nothing is. A RuntimeError: sizes contradict each other."""
        missing = self._missing()
        try:
            context = self._with_shapes() if not missing and not self.engine._shape_inputs else None
            for io in self.engine._engine.outputs if context is not None else ():
                context.output_shape(io.name)
        except Error as e:
            raise RuntimeError(f"infer_shapes error code: -1: {e}") from e
        return missing

    def _missing(self):
        known = self._input_shapes()
        return [io.name for io in self.engine._engine.inputs if io.name not in known or
                io.name in self.engine._shape_inputs and not self._addresses.get(io.name)]

    all_binding_shapes_specified = property(lambda self: len(self._input_shapes()) == len(self.engine._engine.inputs))
    all_shape_inputs_specified = property(lambda self: all(self._addresses.get(name) for name in self.engine._shape_inputs))

    def set_binding_shape(self, binding, shape):
        return self.set_input_shape(self.engine._known(binding).name, shape)

    def get_binding_shape(self, binding):
        return self.get_tensor_shape(self.engine._known(binding).name)

    def get_strides(self, binding):
        return self.get_tensor_strides(self.engine._known(binding).name)

    def set_shape_input(self, binding, shape):
        """Sets the values of an input that decide sizes."""
        io, values = self.engine._known(binding), [int(v) for v in shape]
        dims = self._input_shapes().get(io.name)
        if not io.is_input or dims is None or volume(dims) != len(values) or io.dtype not in (Dtype.I32, Dtype.I64):
            return self.fail(f"{len(values)} values for '{io.name}' of the shape {dims}: an input of integers with as many is wanted", False)
        element = ctypes.c_int64 if io.dtype == Dtype.I64 else ctypes.c_int32
        self._values[io.name] = (element * len(values))(*values)
        self._addresses[io.name] = ctypes.addressof(self._values[io.name])
        return True

    def get_shape(self, binding):
        """The values that set_shape_input gave."""
        found = self._values.get(self.engine._known(binding).name)
        return [] if found is None else list(found)

    @of_tensor(-1)
    def get_max_output_size(self, name):
        """Bytes that an output needs at most, for the shapes that are set; -1 where that is not known."""
        io = self.engine._known(name)
        if io.is_input:
            dims = self._input_shapes().get(io.name, io.shape)
            return -1 if -1 in dims else size_of(io.dtype, dims)
        try:
            return self._with_shapes().max_output_size(io.name)
        except _library.Unsupported:
            return -1

    # ---- addresses ----

    def set_tensor_address(self, name, memory):
        if self.engine._find(name) is None:
            return self.fail(f"the engine has no tensor '{name}'", False)
        self._addresses[name] = int(memory)
        return True

    @of_tensor(0)
    def get_tensor_address(self, name):
        return self._addresses.get(self.engine._known(name).name, 0)

    @of_tensor(False)
    def set_output_allocator(self, name, output_allocator):
        self._allocators[name] = output_allocator
        return True

    def get_output_allocator(self, name):
        return self._allocators.get(name)

    # ---- memory of activations ----

    def set_device_memory(self, memory, size):
        """Lends `size` bytes at an address of the device to a context that was created without memory."""
        if self._strategy != ExecutionContextAllocationStrategy.USER_MANAGED:
            return self.fail("the context has memory of its own: create_execution_context(USER_MANAGED)")
        place = Place.HOST if self.engine._engine.device == "cpu" else Place.DEVICE
        self._lent = Tensor._make(Dtype.U8, (int(size),), int(memory), place, None) if memory else None

    @property
    def device_memory(self):
        return 0 if self._lent is None else self._lent.data

    @device_memory.setter
    def device_memory(self, memory):
        self.set_device_memory(memory, self.engine.device_memory_size)

    def update_device_memory_size_for_shapes(self):
        """Bytes that the shapes need that are set."""
        context = self._context(0)
        for name, shape in self._input_shapes().items():
            context.set_input_shape(name, shape)
        return context.memory_size()

    # ---- runs ----

    def execute_v2(self, bindings):
        """Runs with an address for each binding, and waits. False after a failure."""
        bound = self._bound(bindings)
        return bound is not None and self._run(bound, 0, wait=True)

    def execute_async_v2(self, bindings, stream_handle, input_consumed=None):
        bound = self._bound(bindings)
        return bound is not None and self._enqueue(bound, int(stream_handle))

    def execute(self, batch_size=1, bindings=()):
        return self._set_batch(batch_size) and self.execute_v2(bindings)

    def execute_async(self, batch_size=1, bindings=(), stream_handle=0, input_consumed=None):
        return self._set_batch(batch_size) and self.execute_async_v2(bindings, stream_handle)

    def execute_async_v3(self, stream_handle):
        """Runs with the addresses of set_tensor_address, on a stream. False after a failure."""
        return self._enqueue(dict(self._addresses), int(stream_handle))

    def _enqueue(self, addresses, stream):
        """Runs on a stream. A stream of the host that is being captured keeps the run, with its shapes, for its graph."""
        return submit(stream, self._run_again, addresses, dict(self._shapes), self._profile, stream)

    def _run_again(self, addresses, shapes, profile, stream):
        kept = self._shapes, self._profile
        self._shapes, self._profile = shapes, profile
        try:
            return self._run(addresses, stream, wait=False)
        finally:
            self._shapes, self._profile = kept

    def _bound(self, bindings):
        """name -> address of a list of bindings; None after a failure."""
        names = self.engine._names
        if len(bindings) < len(names):
            return self.fail(f"{len(bindings)} bindings, the engine has {len(names)}: {', '.join(names)}")
        first = self._profile * len(names) if len(bindings) >= self.engine.num_bindings > len(names) else 0
        made = {name: int(address) for name, address in zip(names, list(bindings)[first:first + len(names)])}
        return dict(made, **{name: self._addresses[name] for name in self._values})

    def _run(self, addresses, stream, wait):
        try:
            context, shapes = self._context(stream), self._input_shapes()
            missing = [io.name for io in self.engine._engine.inputs if io.name not in shapes]
            if missing:
                raise ValueError(f"the shape of {', '.join(missing)} is not set: IExecutionContext.set_input_shape")
            place, short = Place.HOST if self.engine._engine.device == "cpu" else Place.DEVICE, []
            for io in self.engine._engine.inputs:
                if not addresses.get(io.name) and volume(shapes[io.name]):
                    raise ValueError(f"input '{io.name}' has no address: IExecutionContext.set_tensor_address")
                on_host = Place.HOST if io.name in self.engine._shape_inputs else place
                context.set_input(io.name, Tensor._make(io.dtype, shapes[io.name], self._room(io, addresses[io.name], shapes[io.name], place, short),
                                                        on_host, None))
            results = self._infer(shapes, context)
            late = []
            for io in self.engine._engine.outputs:
                if io.name.startswith(SAID):
                    context.set_output(io.name, None)
                    continue
                dims = results[io.name]
                allocator = self._allocators.get(io.name)
                if allocator is None and not addresses.get(io.name) and 0 not in dims:
                    raise ValueError(f"output '{io.name}' has no address: IExecutionContext.set_tensor_address" +
                                     (", or set_output_allocator, for its size depends on data" if -1 in dims else ""))
                if allocator is not None or -1 in dims:
                    late.append((io, allocator, addresses.get(io.name)))
                context.set_output(io.name, None if allocator is not None or 0 in dims or -1 in dims else
                                   Tensor._make(io.dtype, dims, self._room(io, addresses[io.name], dims, place, short), place, None))
            if place == Place.HOST or late or wait or self._profiler is not None or self._listened():
                run_and_wait(context)
                for to, source, room in short:
                    ctypes.memmove(to, source, room)
                self._hand_over(context, late, stream)
                self._hand_debugged(context, stream)
                self._report(context)
            else:
                start_or_wait(context)
            return True
        except (Error, ValueError, TypeError, KeyError) as e:
            return self.fail(e, False)

    def _room(self, io, address, dims, place, short):
        """The address of a tensor; where its format has more channels than the script has memory for, as a GPU would not notice, that of
        other memory. short: (where to, where from, bytes) of such outputs, which end early."""
        size = size_of(io.dtype, dims)
        room = host_device.room(address) if io.name in self.engine._layouts and place == Place.HOST else None
        if room is None or room >= size:
            return address
        spare = ctypes.create_string_buffer(size)
        if io.is_input:
            ctypes.memmove(spare, address, room)
        short.append((address, spare, room))
        return ctypes.addressof(spare)

    def _hand_over(self, context, late, stream):
        """Results of sizes that were not known go to memory of the output allocators, or to the address of the output, which
        has room for get_max_output_size bytes. An allocator is told the shape; get_tensor_shape keeps -1 then, as upstream's."""
        for io, allocator, given in late:
            result = context.output(io.name)
            if allocator is None:
                self._found[io.name] = result.shape
            address = self._allocated(io.name, allocator, result.nbytes, stream) if allocator is not None else given
            place = Place.HOST if self.engine._engine.device == "cpu" else Place.DEVICE
            if result.nbytes:
                self.engine._engine._copy(int(address), place, result.data, result.place, result.nbytes)
            if allocator is not None:
                allocator.notify_shape(io.name, self.engine._shown(io.name, result.shape))

    def _listened(self):
        """The engine's names of the debug tensors that the listener gets, in the order of their marks."""
        if self._listener is None:
            return []
        unfused = self.engine._unfused if self.unfused_tensors_debug_state else []
        return [DEBUG + name for name in self.engine._debug if name in self._debugged] + [UNFUSED + name for name in unfused]

    def _hand_debugged(self, context, stream):
        for marked in self._listened():
            name, result = marked.partition("] ")[2], context.output(marked)
            location = TensorLocation.HOST if result.place == Place.HOST and self.engine._engine.device != "cpu" else TensorLocation.DEVICE
            with borrowed([result]):
                taken = self._listener.process_debug_tensor(result.data or 0, location, to_trt(result.dtype, name), Dims(result.shape),
                                                            name, stream)
            if taken is False:
                raise ValueError(f"the debug listener refused tensor '{name}'")

    def _allocated(self, name, allocator, size, stream):
        given, size = self._addresses.get(name, 0), max(size, 1)
        asynchronous = getattr(type(allocator), "reallocate_output_async", None)
        address = allocator.reallocate_output_async(name, given, size, 256, stream) if asynchronous else \
            allocator.reallocate_output(name, given, size, 256)
        if not address:
            raise ValueError(f"the allocator of output '{name}' gave no memory of {size} bytes")
        self._addresses[name] = int(address)
        return address

    # ---- times ----

    @property
    def profiler(self):
        return self._profiler

    @profiler.setter
    def profiler(self, profiler):
        self._profiler, self._reported = profiler, {}

    def _report(self, context):
        self._last = context
        if self._profiler is not None and self.enqueue_emits_profile:
            self.report_to_profiler()

    def report_to_profiler(self):
        if self._profiler is None or self._last is None:
            return False
        steps = self._last.steps
        for index, (step, name) in enumerate(zip(steps, layer_names([s.name or s.kernel for s in steps], self._profile))):
            before = self._reported.get(index, (0, 0))
            if step.runs > before[0]:
                self._profiler.report_layer_time(name, (step.total_ns - before[1]) / 1e6)
            self._reported[index] = step.runs, step.total_ns
        return True

    # ---- debug tensors ----

    def set_debug_listener(self, listener):
        self._listener = listener
        return True

    def get_debug_listener(self):
        return self._listener

    def set_tensor_debug_state(self, name, flag):
        if not self.engine.is_debug_tensor(name):
            return self.fail(f"the engine has no debug tensor '{name}': INetworkDefinition.mark_debug", False)
        (self._debugged.add if flag else self._debugged.discard)(name)
        return True

    def set_all_tensors_debug_state(self, flag):
        self._debugged = set(self.engine._debug) if flag else set()
        return True

    def get_debug_state(self, name):
        return name in self._debugged

    # ---- what changes nothing ----

    def set_input_consumed_event(self, event):
        self._consumed = event
        return True

    def get_input_consumed_event(self):
        return self._consumed

    def set_aux_streams(self, aux_streams):
        return None

    def get_runtime_config(self):
        config = IRuntimeConfig()
        config.strategy = self._strategy
        return config



def run_and_wait(context):
    """context.run without copies of results."""
    status = context_run(context._address, context._error_address)
    if status:
        raise context._fail(status)


def start_or_wait(context):
    """Begins a run; an engine with steps on the host is run at once."""
    try:
        context.start()
    except _library.Unsupported:
        run_and_wait(context)
