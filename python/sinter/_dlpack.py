# SPDX-License-Identifier: Apache-2.0
"""DLPack, both ways: what __dlpack__ gives is described, and a tensor is put into a capsule. Nothing is copied."""
import ctypes as C

from ._dtype import DLPACK, FROM_DLPACK, TEXT

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13


class DLTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


class DLManagedTensor(C.Structure):
    pass


Deleter = C.CFUNCTYPE(None, C.POINTER(DLManagedTensor))
DLManagedTensor._fields_ = [("tensor", DLTensor), ("manager", C.c_void_p), ("deleter", Deleter)]

Destructor = C.CFUNCTYPE(None, C.c_void_p)
python = C.pythonapi
capsule_new, capsule_pointer, capsule_rename, capsule_is = (python.PyCapsule_New, python.PyCapsule_GetPointer,
                                                            python.PyCapsule_SetName, python.PyCapsule_IsValid)
capsule_new.restype, capsule_new.argtypes = C.py_object, [C.c_void_p, C.c_char_p, Destructor]
capsule_pointer.restype, capsule_pointer.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
capsule_rename.restype, capsule_rename.argtypes = C.c_int, [C.py_object, C.c_char_p]
capsule_is.restype, capsule_is.argtypes = C.c_int, [C.py_object, C.c_char_p]
# The destructor sees a capsule that is being freed: it must not be referenced, so it stays an address.
raw_is, raw_pointer = C.PYFUNCTYPE(C.c_int, C.c_void_p, C.c_char_p)(("PyCapsule_IsValid", python)), \
    C.PYFUNCTYPE(C.c_void_p, C.c_void_p, C.c_char_p)(("PyCapsule_GetPointer", python))
NAME, USED = b"dltensor", b"used_dltensor"
RENAMED = C.create_string_buffer(USED)          # the capsule borrows its name


class Taken:
    """The memory that a capsule gave; it is given back when this object goes."""

    def __init__(self, managed):
        self.managed = managed

    def __del__(self):
        if self.managed and self.managed.contents.deleter:
            self.managed.contents.deleter(self.managed)


def take(source, stream=None):
    """(dtype, shape, address, device type, device id, owner) of an object with __dlpack__. `stream` is passed on for
    memory of a GPU."""
    device = source.__dlpack_device__()
    kind = int(device[0])
    capsule = source.__dlpack__() if kind in (CPU, CUDA_HOST) or stream is None else source.__dlpack__(stream=stream)
    if not capsule_is(capsule, NAME):
        raise TypeError("__dlpack__ gave no capsule of a dltensor")
    managed = C.cast(capsule_pointer(capsule, NAME), C.POINTER(DLManagedTensor))
    capsule_rename(capsule, RENAMED)
    owner, tensor = Taken(managed), managed.contents.tensor
    dtype = FROM_DLPACK.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise TypeError(f"a DLPack tensor of type code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes: unknown")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides and 0 not in shape:
        stride = 1
        for i in reversed(range(tensor.ndim)):
            if shape[i] != 1 and tensor.strides[i] != stride:
                raise ValueError("the tensor is not dense and row-major: make it contiguous first")
            stride *= shape[i]
    return dtype, shape, (tensor.data or 0) + tensor.byte_offset, kind, tensor.device_id, owner


exported = {}                                   # what consumers hold: address -> everything that must live


@Deleter
def free_export(managed):
    exported.pop(C.addressof(managed.contents), None)


@Destructor
def free_capsule(capsule):
    if raw_is(capsule, NAME):                   # nobody took it
        exported.pop(raw_pointer(capsule, NAME), None)


def give(tensor, device_type, device_id):
    """A capsule that shares the memory of a Tensor."""
    if tensor.dtype not in DLPACK:
        raise BufferError(f"DLPack has no type for {TEXT[tensor.dtype]}")
    rank = len(tensor.shape)
    shape, strides = (C.c_int64 * max(rank, 1))(*tensor.shape), (C.c_int64 * max(rank, 1))()
    stride = 1
    for i in reversed(range(rank)):
        strides[i] = stride
        stride *= tensor.shape[i]
    managed = DLManagedTensor()
    code, bits = DLPACK[tensor.dtype]
    managed.tensor = DLTensor(tensor.data, device_type, device_id, rank, code, bits, 1, shape, strides, 0)
    managed.deleter = free_export
    exported[C.addressof(managed)] = (managed, shape, strides, tensor)
    return capsule_new(C.addressof(managed), NAME, free_capsule)
