# SPDX-License-Identifier: Apache-2.0
"""What all parts of the module share: logging, dims, weights, memory on the host, element types, names that are missing."""
import ctypes
import sys
import time

from .. import _library
from .._abi import Dtype
from .._dtype import numpy
from .._tensor import Tensor
from . import _names
from ._names import DataType, Severity

# How sinter's types are called here. f64 and integers of 16 and 32 bits without sign have no counterpart upstream.
TO_TRT = {Dtype.F32: DataType.FLOAT, Dtype.F16: DataType.HALF, Dtype.I8: DataType.INT8, Dtype.I32: DataType.INT32,
          Dtype.BOOL: DataType.BOOL, Dtype.U8: DataType.UINT8, Dtype.F8E4M3FN: DataType.FP8, Dtype.BF16: DataType.BF16,
          Dtype.I64: DataType.INT64, Dtype.I4: DataType.INT4, Dtype.F4E2M1: DataType.FP4, Dtype.F8E8M0: DataType.E8M0}
FROM_TRT = {v: k for k, v in TO_TRT.items()}
BITS = {DataType.FLOAT: 32, DataType.HALF: 16, DataType.INT8: 8, DataType.INT32: 32, DataType.BOOL: 8, DataType.UINT8: 8,
        DataType.FP8: 8, DataType.BF16: 16, DataType.INT64: 64, DataType.INT4: 4, DataType.FP4: 4, DataType.E8M0: 8}
_names.DataType.itemsize = property(lambda this: BITS[this] // 8 if BITS[this] >= 8 else BITS[this] / 8)


def to_trt(dtype, name):
    if dtype not in TO_TRT:
        raise NotAvailable(f"tensor '{name}' is {Dtype(dtype).name.lower()}, for which TensorRT has no type: use the "
                           "package sinter itself, or cast the tensor in the model")
    return TO_TRT[dtype]


# Begin the names of an engine's outputs that are debug tensors: those that were marked, and those that no step fused.
DEBUG, UNFUSED, VALUES, IMPLICIT = "[debug] ", "[unfused] ", "[values] ", "[implicit batch]"


class NotAvailable(AttributeError, NotImplementedError):
    """A name of TensorRT that sinter does not have; the text says what to use instead."""


HINTS = {
    "CaffeParser": "models of Caffe are converted to ONNX", "UffParser": "UFF is gone; convert the model to ONNX (tf2onnx)",
    "IAlgorithmSelector": "use a timing cache (IBuilderConfig.create_timing_cache)",
    "collective": "an engine runs on one device; sinter.Spread gives each of several a part of the batch",
    "DLA": "there is no DLA: everything runs on the GPU or the CPU",
    "IGpuAllocator": "memory of engines is the library's; limits are set by sinter.load(limits={'memory_max': ...})",
}


class Missing:
    """A member that is there by name only: to use it is an error that says what to use instead."""

    def __init__(self, owner, name):
        self.owner, self.name = owner, name

    def text(self):
        for part, hint in HINTS.items():
            if part in self.owner or part in self.name:
                return f"{self.owner}.{self.name} is not available: {hint}"
        return f"{self.owner}.{self.name} is not available in sinter.tensorrt; docs/python.md lists what is"

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        raise NotAvailable(self.text())

    def __set__(self, instance, value):
        raise NotAvailable(self.text())

    def __call__(self, *_, **__):
        raise NotAvailable(self.text())


def listed(self):
    """What dir() lists of an object: what upstream's has, for tools that walk over it and read or call what they find. What version 8.6
    alone has is there, and not listed. Objects of scripts' own classes keep all of theirs."""
    kind = type(self)
    if not kind.__module__.startswith(__package__):
        return object.__dir__(self)
    names = {n for each in kind.__mro__ for n in MEMBERS.get(each.__name__, ())}
    gone = {n for each in kind.__mro__ for n in GONE.get(each.__name__, ())}
    return [n for n in object.__dir__(self) if n.startswith("__") or n in names - gone and not isinstance(getattr(kind, n, None), Missing)]


MEMBERS, GONE = dict(_names.rows(_names.CLASSES)), dict(_names.rows(_names.GONE))


def strict(kind):
    """Makes a class refuse attributes that it does not have, as upstream's classes do: a wrong spelling, or a property of an older
    version, would change nothing. Classes of scripts that derive from it have their own attributes."""
    begin = kind.__init__

    def __init__(self, *arguments, **keywords):
        begin(self, *arguments, **keywords)
        if type(self).__module__.startswith(__package__):
            self.__dict__["_is_made"] = True

    def __setattr__(self, name, value):
        if not name.startswith("_") and "_is_made" in self.__dict__ and name not in self.__dict__ and not hasattr(type(self), name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        object.__setattr__(self, name, value)

    kind.__init__, kind.__setattr__ = __init__, __setattr__
    return kind


class Managed:
    """An object for `with`, as upstream's are."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __del__(self):
        """Scripts call it; memory is freed with the last reference anyway."""


# ---- logging ----

class ILogger(Managed):
    """What receives messages: subclasses define log(severity, msg)."""
    Severity = Severity
    INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = Severity

    def __init__(self):
        pass

    def log(self, severity, msg):
        raise NotImplementedError("a logger defines log(severity, msg)")


class Logger(ILogger):
    """Prints messages up to a severity: [MM/DD/YYYY-HH:MM:SS] [TRT] [I] text."""
    ATTRIBUTES = "min_severity"

    def __init__(self, min_severity=Severity.WARNING):
        super().__init__()
        self.min_severity = min_severity

    def log(self, severity, msg):
        if severity <= self.min_severity:
            letter = "FEWIV"[int(severity)]
            print(f"[{time.strftime('%m/%d/%Y-%H:%M:%S')}] [TRT] [{letter}] {msg}", file=sys.stdout, flush=True)


class Reporter:
    """The logger of an object, and the error recorder that it may have, of its own or of the object that made it. `fail` tells both
    and gives None."""
    logger = None
    _recorder = _maker = None

    @property
    def error_recorder(self):
        return self._maker.error_recorder if self._recorder is None and self._maker is not None else self._recorder

    @error_recorder.setter
    def error_recorder(self, recorder):
        self._recorder = recorder

    def say(self, severity, text):
        if self.logger is not None:
            self.logger.log(severity, text)

    def fail(self, error, result=None, code=None):
        text = str(error)
        if self.error_recorder is not None:
            code = code or RECORDED.get(getattr(error, "status", 0)) or ("UNSUPPORTED_STATE" if isinstance(error, NotImplementedError) else "INVALID_ARGUMENT")
            self.error_recorder.report_error(_names.ErrorCodeTRT[code], text)
        self.say(Severity.ERROR, text)
        return result


def unused_allocator(name):
    """An allocator that a script may set and read: nobody asks it, which a warning says."""
    def put(self, allocator):
        if allocator is not None:
            self.say(Severity.WARNING, f"{name} changes nothing: memory of engines is the library's; create_execution_context(USER_MANAGED) takes "
                                       "the script's memory, and IOutputAllocator that of outputs")
        self.__dict__["_" + name] = allocator
    return property(lambda self: self.__dict__.get("_" + name), put)


RECORDED = {1: "INVALID_ARGUMENT", 2: "INVALID_ARGUMENT", 3: "UNSUPPORTED_STATE", 4: "FAILED_ALLOCATION", 5: "FAILED_EXECUTION",
            6: "INVALID_ARGUMENT", 7: "INVALID_STATE", 8: "INTERNAL_ERROR", 9: "INVALID_STATE"}


# ---- dims ----

class Dims(list):
    """Sizes of a tensor, -1 where a size is not known. It compares with tuples and lists, and prints as a tuple."""
    MAX_DIMS = 8

    def __init__(self, *shape):
        super().__init__(int(d) for d in (shape[0] if len(shape) == 1 and hasattr(shape[0], "__iter__") else shape))

    def __eq__(self, other):
        return hasattr(other, "__iter__") and tuple(self) == tuple(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def __getitem__(self, index):
        found = super().__getitem__(index)
        return tuple(found) if isinstance(index, slice) else found

    def __str__(self):
        return str(tuple(self))

    __repr__ = __str__

    @property
    def nbDims(self):
        return len(self)


class NoDims(Dims):
    """Sizes that nobody has set. As upstream's, whose number of axes is -1 then, they have no length."""
    nbDims = -1

    def __len__(self):
        raise ValueError("__len__() should return >= 0")

    def __iter__(self):
        len(self)

    def __str__(self):
        return "(0)"

    __repr__ = __str__


def sized_dims(name, size, words=("dim0", "dim1", "dim2", "dim3")):
    class Sized(Dims):
        def __init__(self, *shape, **named):
            shape = shape or [named.pop(word, 0) for word in words[:size]]
            if named:
                raise TypeError(f"{name} has no size '{next(iter(named))}': {', '.join(words[:size])}")
            super().__init__(*shape)
            if len(self) != size:
                raise ValueError(f"{name} has {size} sizes, not {len(self)}")
    Sized.__name__ = Sized.__qualname__ = name
    return Sized


Dims2, Dims3, Dims4 = (sized_dims(f"Dims{n}", n) for n in (2, 3, 4))


class DimsHW(sized_dims("DimsHW", 2, ("h", "w")), Dims2):
    h = property(lambda self: self[0], lambda self, value: self.__setitem__(0, int(value)))
    w = property(lambda self: self[1], lambda self, value: self.__setitem__(1, int(value)))


class Permutation(Dims):
    """An order of axes."""


def volume(iterable):
    """The product of sizes; 1 of none."""
    count = 1
    for dim in iterable:
        count *= dim
    return count


def nptype(trt_type):
    """The NumPy type of a DataType. TypeError for types that NumPy lacks."""
    np = numpy()
    found = {DataType.FLOAT: np.float32, DataType.HALF: np.float16, DataType.INT8: np.int8, DataType.INT32: np.int32,
             DataType.BOOL: np.bool_, DataType.UINT8: np.uint8, DataType.INT64: np.int64}.get(trt_type)
    if found is None:
        raise TypeError(f"NumPy has no type for {trt_type}")
    return found


# ---- memory ----

class IHostMemory(Managed):
    """Bytes on the host, with the buffer protocol: file.write(memory), bytes(memory), memoryview(memory)."""
    dtype = DataType.INT8

    @property
    def nbytes(self):
        return len(self)

    def tobytes(self):
        return ctypes.string_at(ctypes.addressof(self), len(self))

    def __repr__(self):
        return f"<sinter.tensorrt.IHostMemory of {len(self)} bytes>"


def host_memory(address, size, owner):
    """An IHostMemory over memory that `owner` keeps."""
    kind = type("IHostMemory", (IHostMemory, ctypes.c_char * size), {})
    made = kind.from_address(address)
    made.owner = owner
    return made


def plan_memory(plan):
    return host_memory(plan._buffer.struct.data, len(plan), plan)


def bytes_memory(data):
    kept = ctypes.create_string_buffer(bytes(data), max(len(data), 1))
    return host_memory(ctypes.addressof(kept), len(data), kept)


class Weights:
    """Elements of weights: of a NumPy array, of a DataType (none), or of (type, address, count)."""
    ATTRIBUTES = "dtype"

    def __init__(self, a=DataType.FLOAT, ptr=None, count=0, type=None):
        a = a if type is None else type
        if isinstance(a, Weights):
            self.dtype, self.tensor = a.dtype, a.tensor
        elif isinstance(a, DataType):
            self.dtype = a
            self.tensor = Tensor(int(ptr), FROM_TRT[a], (int(count),)) if ptr else None
            self._count = int(count)                     # of weights that are described, but have no elements
        else:
            self.tensor = Tensor(a)
            self.dtype = to_trt(self.tensor.dtype, "weights")

    @property
    def size(self):
        return getattr(self, "_count", 0) if self.tensor is None else volume(self.tensor.shape)

    @property
    def nbytes(self):
        return int(self.size * self.dtype.itemsize) if self.tensor is None else self.tensor.nbytes

    def __len__(self):
        return self.size

    def numpy(self):
        """A flat array that shares the memory; an empty one where there are none."""
        np = numpy()
        return np.empty(0, nptype(self.dtype)) if self.tensor is None else self.tensor.numpy().reshape(-1)

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)


def default_device():
    """What is built for: SINTER_TENSORRT_DEVICE ("cpu", "cuda", "cuda:1"), else a GPU if there is one, else the CPU."""
    import os
    named = os.environ.get("SINTER_TENSORRT_DEVICE")
    if named:
        return named
    from .. import _cuda
    return "cuda" if _cuda.is_there() else "cpu"


Error = _library.Error
