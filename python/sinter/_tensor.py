# SPDX-License-Identifier: Apache-2.0
"""Tensors in memory of anybody: what callers give is described without a copy, and results are shown as NumPy's."""
import ctypes

from . import _abi
from ._abi import Dtype, Place
from ._dtype import (BITS, FORMAT, FROM_FORMAT, FROM_TYPESTR, TEXT, TYPESTR, dtype_of, is_same_view, numpy, numpy_type,
                     size_of)
from ._library import call


class Tensor:
    """A dense, row-major tensor in memory: element type, shape, address, place.

    It shares its memory with NumPy (`numpy()`, `numpy.asarray`), with DLPack's users (torch.from_dlpack) and, on a GPU,
    with those of `__cuda_array_interface__`. bfloat16 is seen by NumPy as uint16, the types of 8-bit floats as uint8, and
    types of 4 and 2 bits as a flat uint8 array of their packed bytes, the first element in the lowest bits."""
    __slots__ = ("dtype", "shape", "data", "place", "owner", "engine", "__weakref__")

    def __init__(self, source, dtype=None, shape=None):
        """Describes `source`: an array, a DLPack tensor, bytes, a list, or an int, which is an address. `dtype` and `shape`
        say how to read it where it does not say so itself (bf16 held as uint16, for one)."""
        if isinstance(source, int) and shape is not None and dtype is not None:
            self._fill(dtype_of(dtype), tuple(shape), source, Place.HOST, None, None)
            return
        wanted = None if dtype is None else dtype_of(dtype)
        found, dims, data, place, owner = describe(source, wanted)
        if shape is not None and wanted is None:
            raise TypeError("a shape needs a dtype")
        if wanted is not None:
            if not is_same_view(found, wanted) and not (found == Dtype.U8 and shape is not None):
                raise TypeError(f"elements are {TEXT[found]}, and cannot be read as {TEXT[wanted]}")
            if BITS[wanted] < 8 and shape is None:
                raise TypeError(f"packed {TEXT[wanted]} needs a shape")
            size, dims = size_of(found, dims), tuple(shape) if shape is not None else dims
            if size_of(wanted, dims) != size:
                raise ValueError(f"{TEXT[wanted]}{list(dims)} has {size_of(wanted, dims)} bytes, the memory {size}")
            found = wanted
        self._fill(found, dims, data, place, owner, None)

    def _fill(self, dtype, shape, data, place, owner, engine):
        self.dtype, self.shape, self.data, self.place, self.owner, self.engine = dtype, shape, data, place, owner, engine

    @classmethod
    def _make(cls, dtype, shape, data, place, owner, engine=None):
        made = cls.__new__(cls)
        made._fill(dtype, shape, data, place, owner, engine)
        return made

    @property
    def nbytes(self):
        """Bytes of the elements."""
        return size_of(self.dtype, self.shape)

    @property
    def ndim(self):
        return len(self.shape)

    def __len__(self):
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __repr__(self):
        return f"<sinter.Tensor {TEXT[self.dtype]}{list(self.shape)} on the {self.place.name.lower()}>"

    def tobytes(self):
        """A copy of the elements."""
        if self.place != Place.DEVICE or self.engine is None:
            self._need_host()
            return ctypes.string_at(self.data, self.nbytes)
        memory = ctypes.create_string_buffer(max(self.nbytes, 1))
        self.engine._copy(ctypes.addressof(memory), Place.HOST, self.data, self.place, self.nbytes)
        return memory.raw[:self.nbytes]

    def _need_host(self):
        if self.place == Place.DEVICE and not (self.engine is not None and self.engine.device == "cpu"):
            raise BufferError("the tensor lies in memory of the device: numpy() copies it")

    def memoryview(self):
        """The elements through the buffer protocol, without a copy: types that Python lacks are bytes."""
        self._need_host()
        raw = (ctypes.c_char * self.nbytes).from_address(self.data)
        raw._owner = self
        view = memoryview(raw).cast("B")
        if self.dtype in FORMAT and self.shape and 0 not in self.shape:
            return view.cast(FORMAT[self.dtype], self.shape)
        return view

    def numpy(self):
        """A NumPy array: of this memory on the host, of a copy where it lies in a device's own memory."""
        np = numpy()
        if np is None:
            raise ImportError("NumPy is not installed; memoryview() and tobytes() give the elements")
        shape = self.shape if BITS[self.dtype] >= 8 else (self.nbytes,)
        if self.place == Place.DEVICE and self.engine is not None and self.engine.device != "cpu":
            return np.frombuffer(self.tobytes(), numpy_type(self.dtype)).reshape(shape)
        if 0 in shape:
            return np.empty(shape, numpy_type(self.dtype))
        return np.asarray(_Interface(self._interface(shape), self))

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if dtype is not None:
            array = array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def copy_from(self, source):
        """Copies elements of a tensor or array of the same type and size into this one."""
        other = source if isinstance(source, Tensor) else Tensor(source, self.dtype)
        if other.nbytes != self.nbytes or other.dtype != self.dtype:
            raise ValueError(f"{other!r} does not fit into {self!r}")
        if self.engine is not None:
            self.engine._copy(self.data, self.place, other.data, other.place, self.nbytes)
        else:
            self._need_host()
            other._need_host()
            ctypes.memmove(self.data, other.data, self.nbytes)

    def _interface(self, shape=None):
        return {"shape": self.shape if shape is None else shape, "typestr": TYPESTR[self.dtype],
                "data": (self.data or 0, False), "version": 3}

    @property
    def __cuda_array_interface__(self):
        if self.place != Place.DEVICE or self.engine is not None and self.engine.device == "cpu":
            raise AttributeError("not in memory of a GPU")
        return self._interface()

    def __dlpack_device__(self):
        from . import _dlpack
        if self.place == Place.DEVICE and not (self.engine is not None and self.engine.device == "cpu"):
            return _dlpack.CUDA, 0 if self.engine is None else self.engine.ordinal
        return _dlpack.CPU, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        from . import _dlpack
        if copy:
            raise BufferError("copies are not made: copy=None")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the tensor is on device {self.__dlpack_device__()}, not on {tuple(dl_device)}")
        return _dlpack.give(self, *self.__dlpack_device__())


class _Interface:
    """What NumPy reads an array from; it keeps the memory's owner alive."""

    def __init__(self, interface, owner):
        self.__array_interface__, self.owner = interface, owner


def describe(source, wanted=None):
    """(dtype, shape, address, place, owner) of what a caller gives. `owner` keeps the memory alive. Arrays that are not
    dense and row-major are copied, and so are lists and numbers; everything else is used where it lies. `wanted` is the
    element type of numbers and lists."""
    if isinstance(source, Tensor):
        return source.dtype, source.shape, source.data, source.place, source
    np = numpy()
    if np is not None and isinstance(source, (np.ndarray, np.generic)):
        return describe_array(np, np.asarray(source))
    interface = getattr(source, "__cuda_array_interface__", None)
    if interface is not None:
        return describe_cuda(source, interface)
    interface = getattr(source, "__array_interface__", None)
    if interface is not None and np is not None:
        return describe_array(np, np.asarray(source))
    if hasattr(source, "__dlpack__"):
        return describe_dlpack(source)
    try:
        view = memoryview(source)
    except TypeError:
        view = None
    if view is not None:
        return describe_view(view)
    if np is not None and (isinstance(source, (int, float, bool, list, tuple)) or hasattr(source, "__array__")):
        return describe_array(np, np.asarray(source, None if wanted is None else numpy_type(wanted)))
    raise TypeError(f"a {type(source).__name__} is no tensor: give an array, a DLPack tensor, or a buffer")


def describe_array(np, array):
    if not array.flags.c_contiguous or not array.dtype.isnative:
        array = np.require(array, array.dtype.newbyteorder("="), ["C"])
    return dtype_of(array.dtype), array.shape, array.__array_interface__["data"][0], Place.HOST, array


def describe_cuda(source, interface):
    dtype, shape = FROM_TYPESTR.get(interface["typestr"][1:]), tuple(interface["shape"])
    if dtype is None:
        raise TypeError(f"elements of type {interface['typestr']} are not known")
    strides, expected = interface.get("strides"), BITS[dtype] // 8
    if strides is not None and 0 not in shape:
        for dim, stride in zip(reversed(shape), reversed(strides)):
            if dim != 1 and stride != expected:
                raise ValueError("the tensor is not dense and row-major: make it contiguous first")
            expected *= dim
    stream = interface.get("stream")
    if stream is not None:
        from . import _cuda
        _cuda.synchronize(stream)
    return dtype, shape, interface["data"][0], Place.DEVICE, source


def describe_dlpack(source):
    from . import _dlpack
    on_gpu = int(source.__dlpack_device__()[0]) in (_dlpack.CUDA, _dlpack.CUDA_MANAGED)
    dtype, shape, data, _, _, owner = _dlpack.take(source, stream=1 if on_gpu else None)
    if on_gpu:                                  # work on the legacy default stream comes first
        from . import _cuda
        _cuda.synchronize(1)
    return dtype, shape, data, Place.DEVICE if on_gpu else Place.HOST, owner


def text_bytes(value, least):
    """Text as the bytes that the library takes for it: u8 with one axis more, filled up with zeros to the longest text, or to `least`
    bytes. Other values are as they are."""
    np = numpy()
    if np is None:
        return value
    if isinstance(value, str) or isinstance(value, (list, tuple)) and value and isinstance(np.ravel(value)[0], (str, bytes)):
        value = np.array(value, object)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "OUS":
        return value
    coded = np.array([t if isinstance(t, bytes) else str(t).encode() for t in value.ravel()] or [b""], "S")
    coded = coded[:value.size].astype(f"S{max(coded.dtype.itemsize, least, 1)}")
    return np.frombuffer(coded.tobytes(), "u1").reshape(*value.shape, coded.dtype.itemsize)


def describe_view(view):
    dtype = FROM_FORMAT.get(view.format.lstrip("@=<"))
    if dtype is None or BITS[dtype] != view.itemsize * 8:
        raise TypeError(f"elements of format '{view.format}' are not known")
    shape, owner = tuple(view.shape), view
    if not view.c_contiguous:
        view = owner = memoryview(view.tobytes())
    if view.readonly:
        np = numpy()
        if np is not None:
            array = np.frombuffer(view, np.uint8)
            return dtype, shape, array.__array_interface__["data"][0], Place.HOST, array
        raw = view.obj if isinstance(view.obj, bytes) and len(view.obj) == view.nbytes else view.tobytes()
        return dtype, shape, ctypes.cast(ctypes.c_char_p(raw), ctypes.c_void_p).value, Place.HOST, raw
    raw = (ctypes.c_char * view.nbytes).from_buffer(view) if view.nbytes else ctypes.create_string_buffer(1)
    return dtype, shape, ctypes.addressof(raw), Place.HOST, raw


def to_struct(dtype, shape, data, place):
    """The sinter_tensor."""
    if len(shape) > _abi.RANK_MAX:
        raise ValueError(f"{len(shape)} axes, at most {_abi.RANK_MAX}")
    made = _abi.sinter_tensor(dtype=dtype, rank=len(shape), data=data, place=place)
    made.dim[:len(shape)] = shape
    return made


def host_struct(source, keep, wanted=None):
    """The sinter_tensor of something on the host; its owner is added to `keep`."""
    tensor = source if isinstance(source, Tensor) else Tensor(source, wanted)
    if tensor.place == Place.DEVICE:
        raise ValueError("a tensor on the host is needed here, this one is in memory of the device")
    keep.append(tensor)
    return to_struct(tensor.dtype, tensor.shape, tensor.data, tensor.place)


def read(path):
    """The tensor in a .npy file or in a .pb file of ONNX. Errors: FileError, InvalidModel, Unsupported."""
    import os
    found, memory = _abi.sinter_tensor(), Buffer()
    call("sinter_tensor_read", os.fsencode(path), None, ctypes.byref(found), ctypes.byref(memory.struct))
    return Tensor._make(Dtype(found.dtype), tuple(found.dim[:found.rank]), found.data or 0, Place.HOST, memory)


def write(path, tensor):
    """Writes a .npy file. It replaces only a .npy file. bf16 and 8-bit floats are written as f32. Errors: FileError."""
    import os
    keep = []
    call("sinter_tensor_write", os.fsencode(path), ctypes.byref(host_struct(tensor, keep)))


class Buffer:
    """Bytes that the library allocated; freed with this object."""

    def __init__(self):
        from ._library import lib
        self.struct, self.free = _abi.sinter_buffer(), lib.sinter_buffer_free

    def __del__(self):
        self.free(ctypes.byref(self.struct))
