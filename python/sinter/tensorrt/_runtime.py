# SPDX-License-Identifier: Apache-2.0
"""Runtime and engines."""
import operator
import os
import re

from .._abi import Detail, Dtype
from .._dtype import BITS as SINTER_BITS
from .._engine import load
from .._library import Error
from .._shapes import infer
from ._core import (DEBUG, IMPLICIT, UNFUSED, VALUES, Dims, ILogger, Managed, NoDims, Reporter, plan_memory, to_trt,
                    unused_allocator)
from ._inspector import EngineInspector, profile_suffix
from ._interfaces import TEMPFILES, IStreamReader, IStreamReaderV2
from ._execution import SAID, IExecutionContext, IRuntimeConfig, of_tensor
from ._formats import LINEAR, MARK, read_mark
from ._names import (DataType, EngineCapability, EngineStat, ExecutionContextAllocationStrategy, HardwareCompatibilityLevel,
                     ProfilingVerbosity, SeekPosition, SerializationFlag, TensorFormat, TensorIOMode,
                     TensorLocation)

VERBOSITY = {Detail.ALL: ProfilingVerbosity.DETAILED, Detail.NAMES: ProfilingVerbosity.LAYER_NAMES_ONLY,
             Detail.NONE: ProfilingVerbosity.NONE}
FLOAT_WORDS = {"FLOAT": "FP32", "HALF": "FP16"}


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
