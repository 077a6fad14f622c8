# SPDX-License-Identifier: Apache-2.0
"""Execution contexts."""
import ctypes
import functools

from .. import _library
from .._abi import Dtype, Place
from .._context import c_run as context_run
from .._dtype import size_of
from .._host_device import borrowed, submit
from .._host_device import device as host_device
from .._library import Error
from .._shapes import infer
from .._tensor import Tensor
from ._core import DEBUG, IMPLICIT, UNFUSED, VALUES, Dims, Managed, NoDims, Reporter, to_trt, unused_allocator, volume
from ._formats import MARK
from ._inspector import layer_names
from ._names import ExecutionContextAllocationStrategy, ProfilingVerbosity, TensorLocation

SAID = DEBUG, UNFUSED, MARK, VALUES, IMPLICIT           # begin the names of outputs that scripts do not see


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


class IRuntimeConfig:
    def __init__(self):
        self.strategy = ExecutionContextAllocationStrategy.STATIC

    def set_execution_context_allocation_strategy(self, strategy):
        self.strategy = strategy

    def get_execution_context_allocation_strategy(self):
        return self.strategy


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
