# SPDX-License-Identifier: Apache-2.0
"""Contexts: one caller's state to run an engine."""
import ctypes
from _thread import RLock
from collections import namedtuple
from ctypes import byref

from . import _abi
from ._abi import Dtype, Place
from ._dtype import BITS, TEXT, is_same_view, numpy, numpy_type, size_of
from ._engine import print_layers
from ._library import call, choice, describe_options, failure, lib, quick, set_options
from ._tensor import Tensor, text_bytes

StepTime = namedtuple("StepTime", "name problem kernel runs total_ns min_ns")
StepTime.__doc__ = "Times of one step over all runs of a context with timing=True, in nanoseconds."
RunTime = namedtuple("RunTime", "copy_in_ns compute_ns copy_out_ns")
RunTime.__doc__ = "The phases of the last run of a context with phases=True, in nanoseconds."
State = namedtuple("State", "bytes rows capacity")
State.__doc__ = """The state that stays in a context between runs: bytes of all its tensors, rows now, rows at most. Zeros: the
engine has no state, or none that grows."""


_P, _Z, _I = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
c_set_input = quick("sinter_context_set_input", _P, ctypes.c_char_p, _P, _P)
c_set_output = quick("sinter_context_set_output", _P, ctypes.c_char_p, _P, _Z, _I, _P)
c_run = quick("sinter_context_run", _P, _P)
c_output = quick("sinter_context_output", _P, ctypes.c_char_p, _P, _P)


class _Input:
    """What is set for one input."""
    __slots__ = ("name", "dtype", "array_type", "tensor", "address", "source", "shape", "owner", "least")

    def __init__(self, io):
        self.name, self.dtype, self.tensor = io.name.encode(), io.dtype, _abi.sinter_tensor(dtype=io.dtype)
        self.address, self.least = ctypes.addressof(self.tensor), io.min[-1] if io.min else 1
        self.source = self.shape = self.owner = self.array_type = None


class _Output:
    """Where an output goes. `seen` is the last result's description in C, `window` an array over that memory: where the next
    result is described alike, it lies there, too."""
    __slots__ = ("key", "name", "dtype", "array_type", "bound", "is_bound", "seen", "window")

    def __init__(self, io):
        self.key, self.name, self.dtype, self.array_type = io.name, io.name.encode(), io.dtype, None
        self.bound, self.is_bound, self.seen, self.window = None, False, b"", None


class Context:
    """What one caller needs to run an engine. A context serves one thread at a time (calls wait for each other); contexts
    of one engine run at the same time. Runs release Python's lock.

    profile: the optimisation profile. stream: an int, a stream of the caller's on a GPU (cudaStream_t); it must live as long
    as the context. memory: who provides the memory for results between steps: "profile" (the context; what its profile needs),
    "static" (the context; what the largest profile needs), "user" (set_memory). Errors: InvalidArgument (no such profile), NoMemory.

    Options:
"""

    def __init__(self, engine, profile=0, stream=None, memory="profile", **options):
        self.engine, self.profile, self._handle = engine, profile, ctypes.c_void_p()
        struct, keep = _abi.sinter_context_options(struct_size=ctypes.sizeof(_abi.sinter_context_options)), []
        struct.stream = None if stream is None else int(stream)
        struct.memory = choice(_abi.Memory, memory)
        self._lent = None
        set_options(struct, "context", dict(options, profile=profile), keep)
        call("sinter_context_create", engine._handle, byref(struct), byref(self._handle))
        self._address, self._error = self._handle.value, _abi.sinter_error()
        self._error_address = ctypes.addressof(self._error)
        self._result = _abi.sinter_tensor()
        self._result_address = ctypes.addressof(self._result)
        self._result_bytes = (ctypes.c_char * ctypes.sizeof(self._result)).from_buffer(self._result)
        self._any_bound = False
        self._inputs = {io.name: _Input(io) for io in engine.inputs}
        self._outputs = {io.name: _Output(io) for io in engine.outputs}
        self._lock, self._worker, self._slots = RLock(), None, list(self._outputs.values())
        self._dim = ctypes.c_int64 * _abi.RANK_MAX
        np = numpy()
        self._array = None if np is None else np.ndarray
        if np is not None:
            for slot in list(self._inputs.values()) + list(self._outputs.values()):
                if BITS[slot.dtype] >= 8:
                    slot.array_type = numpy_type(slot.dtype)

    def close(self):
        """Waits for the current run and frees the context's memory. A context that is closed cannot be used."""
        with self._lock:
            handle, self._handle, self._address = self._handle, None, None
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown(wait=True)
        if handle:
            lib.sinter_context_destroy(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            lib.sinter_context_destroy(handle)

    def _fail(self, status):
        made = failure(status, self._error)
        self._error = _abi.sinter_error()
        self._error_address = ctypes.addressof(self._error)
        return made

    def _check_open(self):
        if not self._address:
            raise ValueError("the context is closed")

    # ---- inputs and outputs ----

    def set_input(self, name, value):
        """Sets the data of an input: a NumPy array, a Tensor, any object of DLPack, `__cuda_array_interface__`, the buffer
        protocol, a list or a number; of text an array or a list of str, too; of a map a dict. Memory is used where it lies (row-major arrays) and read by every run, so it must not
        change while one is going on; the context keeps the object. bf16 is given as uint16, 8-bit floats as uint8.
        Errors: InvalidArgument (the text names the input, what was found, what is wanted), TypeError, KeyError."""
        slot = self._inputs.get(name)
        if slot is None and isinstance(value, dict) and name + ".keys" in self._inputs:
            keys = sorted(value)
            self.set_input(name + ".keys", keys)
            self.set_input(name + ".values", [[value[key] for key in keys]])
            return
        if slot is None:
            raise KeyError(f"there is no input '{name}'; inputs are {', '.join(self._inputs)}")
        if value is slot.source and value.shape == slot.shape:
            return
        tensor = slot.tensor
        if type(value) is self._array and value.dtype == slot.array_type and value.flags.c_contiguous:
            shape, owner = value.shape, value
            tensor.data = value.__array_interface__["data"][0]
            if tensor.place:
                tensor.place = 0
        else:
            if slot.dtype == Dtype.U8:
                value = text_bytes(value, slot.least)
            owner = value if isinstance(value, Tensor) else Tensor(value, self._wanted(slot, value))
            shape = owner.shape
            if not is_same_view(owner.dtype, slot.dtype):
                raise TypeError(f"input '{name}' is {TEXT[owner.dtype]}, the engine wants {TEXT[slot.dtype]}")
            tensor.data, tensor.place = owner.data, owner.place
        rank = len(shape)
        if rank > _abi.RANK_MAX:
            raise ValueError(f"input '{name}' has {rank} axes, at most {_abi.RANK_MAX}")
        if shape != slot.shape:
            tensor.rank = rank
            tensor.dim = self._dim(*shape)
        status = c_set_input(self._address, slot.name, slot.address, self._error_address)
        if status:
            slot.source = slot.shape = slot.owner = None
            raise self._fail(status)
        slot.shape, slot.owner, slot.source = shape, owner, value if type(value) is self._array else None

    @staticmethod
    def _wanted(slot, value):
        """The element type for what has none of its own."""
        return slot.dtype if isinstance(value, (int, float, bool, list, tuple)) else None

    def set_output(self, name, value):
        """Makes an output go to memory of the caller's: a NumPy array that is row-major, a Tensor, an object of DLPack or of
        `__cuda_array_interface__`. None: to memory of the context. The memory must be large enough for the result and
        must not overlap others. Errors: InvalidArgument, TypeError, KeyError."""
        slot = self._outputs.get(name)
        if slot is None:
            raise KeyError(f"there is no output '{name}'; outputs are {', '.join(self._outputs)}")
        if value is None:
            slot.bound, slot.is_bound = None, False
            data, size, place = None, 0, 0
        else:
            tensor = value if isinstance(value, Tensor) else self._output_tensor(value)
            if not is_same_view(tensor.dtype, slot.dtype):
                raise TypeError(f"the memory for output '{name}' is {TEXT[tensor.dtype]}, the output is {TEXT[slot.dtype]}")
            slot.bound, slot.is_bound = (value, tensor), True
            data, size, place = tensor.data, tensor.nbytes, tensor.place
        status = c_set_output(self._address, slot.name, data, size, place, self._error_address)
        if status:
            slot.bound, slot.is_bound = None, False
        self._any_bound = any(s.is_bound for s in self._outputs.values())
        if status:
            raise self._fail(status)

    def _output_tensor(self, value):
        if self._array is not None and isinstance(value, self._array):
            if not value.flags.c_contiguous or not value.flags.writeable or not value.dtype.isnative:
                raise ValueError("an array for an output must be row-major, writable and of native byte order")
        elif isinstance(value, (int, float, bool, list, tuple, bytes)):
            raise TypeError(f"a {type(value).__name__} is no memory for an output")
        return Tensor(value)

    def output(self, name):
        """The result of the last run as a Tensor, where it lies: until the next run, or in the caller's memory."""
        self._check_open()
        slot = self._outputs[name]
        with self._lock:
            status = c_output(self._address, slot.name, self._result_address, self._error_address)
            if status:
                raise self._fail(status)
            t = self._result
            return Tensor._make(Dtype(t.dtype), tuple(t.dim[:t.rank]), t.data or 0, Place(t.place), self, self.engine)

    def _take(self, slot):
        """A result as the caller gets it: his own object, or a copy."""
        status = c_output(self._address, slot.name, self._result_address, self._error_address)
        if status:
            raise self._fail(status)
        seen = self._result_bytes.raw
        if seen == slot.seen and not slot.is_bound:
            return slot.window.copy()
        t = self._result
        shape = tuple(t.dim[:t.rank])
        if slot.is_bound:
            return self._show_bound(slot, shape)
        if slot.array_type is not None:
            if 0 in shape:
                return self._array(shape, slot.array_type)
            memory = (ctypes.c_char * size_of(slot.dtype, shape)).from_address(t.data)
            slot.seen, slot.window = seen, self._array(shape, slot.array_type, memory)
            return slot.window.copy()
        size = size_of(slot.dtype, shape)
        memory = ctypes.create_string_buffer(size + 1)
        if size:
            ctypes.memmove(memory, t.data, size)
        return Tensor._make(slot.dtype, shape, ctypes.addressof(memory), Place.HOST, memory)

    def _show_bound(self, slot, shape):
        value, tensor = slot.bound
        if tensor.shape == shape:
            return value
        if self._array is not None and isinstance(value, self._array) and BITS[slot.dtype] >= 8:
            count = 1
            for dim in shape:
                count *= dim
            return value.reshape(-1)[:count].reshape(shape)
        return Tensor._make(slot.dtype, shape, tensor.data, tensor.place, tensor, self.engine)

    def _set(self, inputs, outputs, named):
        self._check_open()
        if inputs is not None:
            if not hasattr(inputs, "items"):
                given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
                if len(given) > len(self._inputs):
                    raise TypeError(f"{len(given)} inputs were given, the engine has {len(self._inputs)}")
                inputs = dict(zip(self._inputs, given))
            for name, value in inputs.items():
                self.set_input(name, value)
        if named:
            for name, value in named.items():
                self.set_input(name, value)
        if outputs:
            for name in outputs:
                if name not in self._outputs:
                    raise KeyError(f"there is no output '{name}'; outputs are {', '.join(self._outputs)}")
        for name, slot in self._outputs.items():
            value = outputs.get(name) if outputs else None
            if value is not None:
                if not slot.is_bound or slot.bound[0] is not value:
                    self.set_output(name, value)
            elif slot.is_bound and outputs is not None:
                self.set_output(name, None)

    # ---- runs ----

    def run(self, inputs=None, outputs=None, **named):
        """Runs once and waits; gives a dict from names of outputs to results.

        inputs: a dict from names to arrays, or arrays in the order of the engine's inputs; keywords name inputs, too. What was
        given before stays set. outputs: a dict from names to memory of the caller's, which then hold the results and are what
        is returned (a part of them, where a result is smaller); other results are new NumPy arrays, or Tensors where
        NumPy is missing. Memory that set_output was given stays in use if `outputs` is None.
        Errors: InvalidArgument (an input is missing, or shapes disagree), InvalidModel (an index in the data is out of range),
        NoMemory, Cancelled, Unsupported."""
        with self._lock:
            if type(inputs) is dict and not named and self._address and outputs is None and not self._any_bound:
                for name, value in inputs.items():
                    self.set_input(name, value)
            else:
                self._set(inputs, outputs, named)
            status = c_run(self._address, self._error_address)
            if status:
                raise self._fail(status)
            take = self._take
            return {slot.key: take(slot) for slot in self._slots}

    __call__ = run

    def run_async(self, inputs=None, outputs=None, **named):
        """Begins a run and gives a concurrent.futures.Future of what `run` returns (asyncio.wrap_future makes it awaitable).
        Runs of one context follow each other. Inputs must not change until the future is done."""
        self._check_open()
        if self._worker is None:
            from concurrent.futures import ThreadPoolExecutor
            with self._lock:
                if self._worker is None:
                    self._worker = ThreadPoolExecutor(1, "sinter")
        return self._worker.submit(self.run, inputs, outputs, **named)

    def start(self, inputs=None, outputs=None, **named):
        """Begins a run on the context's stream and returns; `wait` ends it. On the CPU this is a whole run. Memory of inputs and
        outputs must stay valid. Errors: those of run; Unsupported if a step of the engine runs on the host."""
        with self._lock:
            self._set(inputs, outputs, named)
            status = lib.sinter_context_run_async(self._handle, byref(self._error))
            if status:
                raise self._fail(status)

    def wait(self):
        """Waits for the run that `start` began; gives what `run` gives."""
        with self._lock:
            self._check_open()
            status = lib.sinter_context_wait(self._handle, byref(self._error))
            if status:
                raise self._fail(status)
            return {name: self._take(slot) for name, slot in self._outputs.items()}

    @property
    def is_done(self):
        """No run is going on that `start` began."""
        return bool(lib.sinter_context_is_done(self._handle))

    def cancel(self):
        """Ends the current run with Cancelled, between two of its programs or iterations. Any thread may call it."""
        if self._handle:
            lib.sinter_context_cancel(self._handle)

    # ---- state ----

    @property
    def state(self):
        """The State: bytes, rows, capacity."""
        found = _abi.sinter_state_info()
        status = lib.sinter_context_state(self._handle, byref(found))
        if status:
            raise failure(status)
        return State(found.bytes, found.rows, found.capacity)

    def reset_state(self):
        """Begins a new sequence: all tensors of the state become zero and have no rows."""
        with self._lock:
            call("sinter_context_reset_state", self._handle)

    def set_rows(self, rows):
        """Sets the number of rows of the state, from 0 to its capacity. Errors: InvalidArgument."""
        with self._lock:
            call("sinter_context_set_rows", self._handle, rows)

    # ---- times ----

    @property
    def steps(self):
        """A StepTime for each step (timing=True)."""
        found = []
        for index in range(lib.sinter_context_step_count(self._handle)):
            step = _abi.sinter_step_time()
            status = lib.sinter_context_step(self._handle, index, byref(step))
            if status:
                raise failure(status)
            found.append(StepTime(step.name.decode(), step.problem.decode(), step.kernel.decode(), step.runs, step.total_ns,
                                  step.min_ns))
        return found

    def layers(self, index=None, format="dict"):
        """Engine.layers, with the sizes that the shapes of the inputs decide."""
        with self._lock:
            return print_layers("sinter_context_print_layers", self._handle, index, format)

    @property
    def run_time(self):
        """The RunTime of the last run (phases=True). Errors: InvalidArgument if none has ended."""
        found = _abi.sinter_run_time()
        status = lib.sinter_context_run_time(self._handle, byref(found))
        if status:
            raise failure(status)
        return RunTime(found.copy_in_ns, found.compute_ns, found.copy_out_ns)

    def set_profile(self, profile):
        """Changes the profile: waits for the current run; inputs and outputs stay. Errors: InvalidArgument, NoMemory."""
        with self._lock:
            call("sinter_context_set_profile", self._handle, profile)
            self.profile = profile

    def set_input_shape(self, name, shape):
        """Sets the shape of an input without data, for memory_size. Errors: InvalidArgument."""
        dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        with self._lock:
            call("sinter_context_set_input_shape", self._handle, name.encode(), dims, len(shape))

    def missing_inputs(self):
        """The names of the inputs that miss a shape, or whose missing value decides the shape of an output. Errors: InvalidArgument."""
        names, count = (ctypes.c_char_p * max(len(self._inputs), 1))(), ctypes.c_uint32()
        with self._lock:
            call("sinter_context_infer_shapes", self._handle, names, len(self._inputs), byref(count))
        return [names[i].decode() for i in range(count.value)]

    def output_shape(self, name):
        """The shape that an output will have, without a run: of the inputs' shapes, and of values on the host that are read as sizes.
        -1 where only a run can know a size, or where an input has no shape. Errors: InvalidArgument."""
        found = _abi.sinter_tensor()
        with self._lock:
            call("sinter_context_output_shape", self._handle, name.encode(), byref(found))
        return tuple(found.dim[:found.rank])

    def max_output_size(self, name):
        """The most bytes that an output can have with the inputs' shapes. Errors: InvalidArgument; Unsupported if nothing bounds them."""
        size = ctypes.c_size_t()
        with self._lock:
            call("sinter_context_max_output_size", self._handle, name.encode(), byref(size))
        return size.value

    def memory_size(self):
        """Bytes for results between steps, for the shapes that are set (memory="user"). Errors: InvalidArgument."""
        size = ctypes.c_size_t()
        with self._lock:
            call("sinter_context_memory_size", self._handle, byref(size))
        return size.value

    def set_memory(self, tensor):
        """Lends memory of the engine's device to a context with memory="user": a Tensor, whose type does not matter; None takes it
        back. Contexts may share it if they do not run at the same time. Errors: InvalidArgument (too small, misaligned)."""
        with self._lock:
            call("sinter_context_set_memory", self._handle, None if tensor is None else tensor.data,
                 0 if tensor is None else tensor.nbytes)
            self._lent = tensor

    @property
    def memory(self):
        """Bytes that the context has allocated."""
        return lib.sinter_context_memory(self._handle)

    def __repr__(self):
        return f"<sinter.Context of profile {self.profile} of {self.engine!r}>"


Context.__doc__ += describe_options("CONTEXT_OPTIONS")
