# SPDX-License-Identifier: Apache-2.0
"""pycuda where memory of the device is memory of the host: pycuda.driver's memory, streams and events, pycuda.autoinit,
pycuda.gpuarray.to_gpu. Copies and runs are done when their calls return."""
import enum
import types

from ._dtype import numpy
from ._host_device import address_of, device, now, numbers, total_memory
from ._shim_cudart import HOST_VALUES, CUdevice_attribute, missing_from

NAME = "pycuda"
VERSIONS = {"pycuda": "2024.1"}


device_attribute = enum.IntEnum("device_attribute", {m.name[len("CU_DEVICE_ATTRIBUTE_"):]: m.value for m in CUdevice_attribute})


class Error(Exception):
    pass


class LogicError(Error):
    pass


class MemoryError(Error):                       # noqa: A001: the name is pycuda's
    pass


class RuntimeError(Error):                      # noqa: A001
    pass


class LaunchError(Error):
    pass


class DeviceAllocation:
    """Memory of the device: int() is its address."""

    def __init__(self, size):
        self.size, self.at = size, device.alloc(size)

    def __int__(self):
        return self.at

    __index__ = __int__

    def __add__(self, offset):
        return self.at + int(offset)

    def __eq__(self, other):
        return int(self) == int(other)

    def __hash__(self):
        return hash(self.at)

    def free(self):
        if self.at is None or not device.free(self.at):
            raise LogicError("cuMemFree failed: invalid argument")
        self.at = None

    def as_buffer(self, size, offset=0):
        import ctypes
        return (ctypes.c_char * size).from_address(self.at + offset)

    def __del__(self):
        if getattr(self, "at", None) is not None:
            device.free(self.at)


def copy(to, source, size, to_device, from_device, name):
    if not device.copy(int(to), int(source), int(size), to_device, from_device):
        raise LogicError(f"{name} failed: invalid argument ({size} bytes do not lie in memory of the device)")


def memcpy_htod(dest, src):
    at, size, *_keep = address_of(src, False)
    copy(dest, at, size, True, False, "cuMemcpyHtoD")


def memcpy_dtoh(dest, src):
    at, size, *_keep = address_of(dest, True)
    copy(at, src, size, False, True, "cuMemcpyDtoH")


def memcpy_dtod(dest, src, size):
    copy(dest, src, size, True, True, "cuMemcpyDtoD")


def memcpy_htod_async(dest, src, stream=None):
    memcpy_htod(dest, src)


def memcpy_dtoh_async(dest, src, stream=None):
    memcpy_dtoh(dest, src)


def memcpy_dtod_async(dest, src, size, stream=None):
    memcpy_dtod(dest, src, size)


def memset(dest, value, count, width):
    if not device.fill(int(dest), int(value), int(count), width):
        raise LogicError("cuMemsetD failed: invalid argument")


def mem_alloc(bytes):
    return DeviceAllocation(int(bytes))


def mem_alloc_pitch(width, height, access_size):
    pitch = -(-width // 256) * 256
    return DeviceAllocation(pitch * height), pitch


def to_device(bf_obj):
    made = mem_alloc(address_of(bf_obj, False)[1])
    memcpy_htod(made, bf_obj)
    return made


def from_device(devptr, shape, dtype, order="C"):
    made = numpy().empty(shape, dtype, order)
    memcpy_dtoh(made, devptr)
    return made


def mem_get_info():
    total = total_memory()
    return total - device.used(), total


def mem_alloc_like(ary):
    return mem_alloc(ary.nbytes)


def from_device_like(devptr, other_ary):
    return from_device(devptr, other_ary.shape, other_ary.dtype)


class ArgumentHandler:
    """An array of the host as an argument that lies in memory of the device, which is made when it is first asked for. What calls
    with it calls pre_call() before and post_call() after."""

    def __init__(self, ary):
        self.array, self.dev_alloc = ary, None

    def get_device_alloc(self):
        if self.dev_alloc is None:
            self.dev_alloc = mem_alloc_like(self.array)
        return self.dev_alloc

    def pre_call(self, stream):
        return None

    def post_call(self, stream):
        return None


class In(ArgumentHandler):
    """It is read: copied to the device before the call."""

    def pre_call(self, stream):
        memcpy_htod(self.get_device_alloc(), self.array)


class Out(ArgumentHandler):
    """It is written: copied from the device after the call."""

    def post_call(self, stream):
        memcpy_dtoh(self.array, self.get_device_alloc())


class InOut(In, Out):
    pass


class HostAllocation:
    """Page-locked memory: the base of the array that lies in it. The device reads it by the same address."""

    def __init__(self, like):
        self.size, self.at = like.nbytes, device.alloc(max(like.nbytes, 1))
        self.__array_interface__ = {"shape": like.shape, "typestr": like.dtype.str, "strides": like.strides, "data": (self.at, False),
                                    "version": 3}

    def get_device_pointer(self):
        return self.at

    def __del__(self):
        if getattr(self, "at", None) is not None:
            device.free(self.at)


def pagelocked_empty(shape, dtype, order="C", mem_flags=0):
    shape = tuple(int(d) for d in shape) if hasattr(shape, "__iter__") else int(shape)
    like = numpy().empty(shape, dtype, order)
    return numpy().asarray(HostAllocation(like)) if like.nbytes else like


def pagelocked_zeros(shape, dtype, order="C", mem_flags=0):
    made = pagelocked_empty(shape, dtype, order)
    made.fill(0)
    return made


def pagelocked_empty_like(array, mem_flags=0):
    return pagelocked_empty(array.shape, array.dtype)


def pagelocked_zeros_like(array, mem_flags=0):
    return pagelocked_zeros(array.shape, array.dtype)


def aligned_empty(shape, dtype, order="C", alignment=4096):
    return pagelocked_empty(shape, dtype, order)


def aligned_zeros(shape, dtype, order="C", alignment=4096):
    return pagelocked_zeros(shape, dtype, order)


def aligned_empty_like(array, alignment=4096):
    return pagelocked_empty_like(array)


def aligned_zeros_like(array, alignment=4096):
    return pagelocked_zeros_like(array)


def memset_rows(dest, pitch, value, width, height, size):
    """Rows of elements of `size` bytes, `pitch` bytes apart."""
    for row in range(int(height)):
        memset(int(dest) + row * int(pitch), value, width, size)


def memcpy_peer(dest, src, size, dest_context=None, src_context=None):
    memcpy_dtod(dest, src, size)


class Stream:
    """Everything on it is done when its call returns."""

    def __init__(self, flags=0):
        self.handle = next(numbers)

    def synchronize(self):
        return None

    def is_done(self):
        return True

    def wait_for_event(self, event):
        return None

    def __int__(self):
        return self.handle


class Event:
    def __init__(self, flags=0):
        self.time = None

    def record(self, stream=None):
        self.time = now()
        return self

    def synchronize(self):
        return self

    def query(self):
        return True

    def time_till(self, event):
        """Milliseconds."""
        return (event.time - self.time) * 1e3

    def time_since(self, event):
        return (self.time - event.time) * 1e3


class Context:
    """A context of the host."""
    stack, limits = [], {}

    def push(self):
        Context.stack.append(self)

    @staticmethod
    def pop():
        if Context.stack:
            Context.stack.pop()

    def detach(self):
        return None

    @staticmethod
    def attach(flags=0):
        return Context.get_current() or Device(0).make_context()

    def get_api_version(self):
        return 3020

    @staticmethod
    def get_limit(limit):
        return Context.limits.get(int(limit), 0)

    @staticmethod
    def set_limit(limit, value):
        Context.limits[int(limit)] = int(value)

    @staticmethod
    def get_cache_config():
        return 0

    @staticmethod
    def set_cache_config(config):
        return None

    @staticmethod
    def synchronize():
        return None

    @staticmethod
    def get_device():
        return Device(0)

    @staticmethod
    def get_current():
        return Context.stack[-1] if Context.stack else None


class Device:
    def __init__(self, number=0):
        if number != 0:
            raise LogicError("cuDeviceGet failed: invalid device ordinal")

    @staticmethod
    def count():
        return 1

    def name(self):
        return "host (sinter)"

    def get_attribute(self, attribute):
        return HOST_VALUES.get(int(attribute), 0)

    def get_attributes(self):
        return {attribute: self.get_attribute(attribute) for attribute in device_attribute}

    def compute_capability(self):
        return 0, 0

    def total_memory(self):
        return total_memory()

    def make_context(self, flags=0):
        made = Context()
        made.push()
        return made

    retain_primary_context = make_context

    def can_access_peer(self, other):
        return False

    def pci_bus_id(self):
        return "0000:00:00.0"


class MemoryPool:
    """Memory of the device, or of the host by numbers of elements. Nothing is kept."""

    def allocate(self, *arguments):
        return mem_alloc(*arguments) if len(arguments) == 1 else pagelocked_empty(*arguments)

    def free_held(self):
        return None

    stop_holding = free_held


class GPUArray:
    """An array in memory of the device, with what scripts use to feed engines."""

    def __init__(self, shape, dtype, allocator=None, order="C", base=None, gpudata=None, strides=None):
        """gpudata: memory that is there already, which `base` keeps."""
        np, self.base = numpy(), base
        self.shape, self.dtype = tuple(map(int, shape)) if hasattr(shape, "__iter__") else (int(shape),), np.dtype(dtype)
        self.size = self.mem_size = int(np.prod(self.shape, dtype=np.int64))
        self.itemsize, self.ndim, self.nbytes = self.dtype.itemsize, len(self.shape), self.size * self.dtype.itemsize
        self.gpudata = mem_alloc(self.nbytes) if gpudata is None else gpudata
        self.ptr = int(self.gpudata)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def get(self, ary=None, pagelocked=False, async_=False, stream=None):
        made = numpy().empty(self.shape, self.dtype) if ary is None else ary
        if made.size != self.size or made.dtype != self.dtype:
            raise TypeError(f"an array of {made.size} {made.dtype} cannot take {self.size} {self.dtype}")
        memcpy_dtoh(made, self.gpudata)
        return made

    def get_async(self, stream=None, ary=None):
        return self.get(ary)

    def set(self, ary, async_=False, stream=None):
        if ary.size != self.size:
            raise ValueError(f"an array of {ary.size} elements is put into one of {self.size}")
        if ary.dtype != self.dtype:
            raise ValueError(f"an array of {ary.dtype} is put into one of {self.dtype}")
        memcpy_htod(self.gpudata, numpy().ascontiguousarray(ary))

    def set_async(self, ary, stream=None):
        self.set(ary)

    def fill(self, value, stream=None):
        self.set(numpy().full(self.shape, value, self.dtype))
        return self

    def copy(self):
        return to_gpu(self.get())

    def astype(self, dtype, stream=None):
        return to_gpu(self.get().astype(dtype))

    def view(self, dtype=None):
        return GPUArray(self.get().view(dtype).shape, self.dtype if dtype is None else dtype, base=self, gpudata=self.gpudata)

    def reshape(self, *shape, order="C"):
        shape = shape[0] if len(shape) == 1 and hasattr(shape[0], "__iter__") else shape
        return GPUArray(numpy().empty(self.shape, bool).reshape(shape).shape, self.dtype, base=self, gpudata=self.gpudata)

    def ravel(self):
        return self.reshape(self.size)

    def squeeze(self):
        return self.reshape([n for n in self.shape if n != 1])

    def transpose(self, axes=None):
        """A copy: elements lie here without gaps."""
        return to_gpu(numpy().ascontiguousarray(self._array().transpose(axes)))

    T = property(transpose)
    strides = property(lambda self: self._array().strides)
    flags = property(lambda self: self._array().flags)

    def item(self):
        return self.get().item()

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.ptr, False), "strides": None, "version": 3}

    def _array(self):
        """The elements where they lie."""
        from ctypes import c_char
        return numpy().frombuffer((c_char * max(self.nbytes, 1)).from_address(self.ptr), self.dtype, self.size).reshape(self.shape)

    def __getitem__(self, index):
        """A part shares the memory where its elements lie without gaps; others are refused, as most functions of pycuda refuse them."""
        index = index if isinstance(index, tuple) else (index,)
        whole = self._array()
        part = whole[index if Ellipsis in index else (*index, Ellipsis)]
        if not part.flags.c_contiguous or part.size and not numpy().may_share_memory(part, whole):
            raise ValueError("only a part of an array without gaps is taken here: use get()[index]")
        return GPUArray(part.shape, self.dtype, base=self, gpudata=part.__array_interface__["data"][0] if part.size else self.ptr)

    def __setitem__(self, index, value):
        self._array()[index] = value.get() if isinstance(value, GPUArray) else value

    def __repr__(self):
        return repr(self.get())


def calculation(name, is_in_place):
    """An operator of arrays, as NumPy has it."""
    def apply(self, *others):
        others = [other._array() if isinstance(other, GPUArray) else other for other in others]
        if not is_in_place:
            return to_gpu(getattr(self._array(), name)(*others))
        self.set(numpy().asarray(getattr(self._array(), name.replace("__i", "__", 1))(*others), self.dtype))
        return self
    return apply


for sign in "add sub mul truediv pow mod floordiv".split():
    for prefix in "", "r", "i":
        setattr(GPUArray, f"__{prefix}{sign}__", calculation(f"__{prefix}{sign}__", prefix == "i"))
for sign in "neg abs eq ne lt le gt ge".split():
    setattr(GPUArray, f"__{sign}__", calculation(f"__{sign}__", False))


def to_gpu(ary, allocator=None):
    made = GPUArray(ary.shape, ary.dtype)
    made.set(ary)
    return made


def zeros(shape, dtype=float, allocator=None, order="C"):
    return GPUArray(shape, dtype).fill(0)


def empty_like(other, dtype=None, order="K"):
    return GPUArray(other.shape, other.dtype if dtype is None else dtype)


def zeros_like(other, dtype=None, order="K"):
    return empty_like(other, dtype).fill(0)


def ones_like(other, dtype=None, order="K"):
    return empty_like(other, dtype).fill(1)


def arange(*arguments, dtype=None, stream=None):
    return to_gpu(numpy().arange(*arguments, dtype=dtype))


def of_arrays(name):
    """A function of NumPy on arrays of the device, alone or in a list; what is no array among the arguments is for NumPy."""
    def apply(*arguments, **keywords):
        keywords = {k: v for k, v in keywords.items() if k not in ("stream", "out", "allocator")}

        def host(x):
            return x._array() if isinstance(x, GPUArray) else [host(each) for each in x] if isinstance(x, (list, tuple)) else x
        return to_gpu(numpy().asarray(getattr(numpy(), name)(*map(host, arguments), **keywords)))
    return apply


def reduction(name):
    """pycuda's reductions are over all elements; the second argument of some is the type of the result."""
    def apply(a, dtype=None, stream=None, **_keywords):
        made = getattr(a._array(), name)() if dtype is None else getattr(a._array(), name)(dtype=dtype)
        return to_gpu(numpy().asarray(made, a.dtype if dtype is None and name in ("sum", "max", "min") else None))
    return apply


OF_ARRAYS = "maximum minimum where concatenate stack logical_and logical_or logical_not dot vdot"
MATH = "exp log log10 sqrt sin cos tan arcsin arccos arctan sinh cosh tanh floor ceil fabs"


class SourceModule:
    """The compiler of CUDA kernels: scripts import it beside what they use."""

    def __init__(self, *_, **__):
        raise NotImplementedError("pycuda.compiler.SourceModule is not there where engines run on the CPU (sinter.shim): CUDA kernels need a GPU")


def modules():
    """The modules by name."""
    top, driver, autoinit, gpuarray, tools, cumath, compiler = (types.ModuleType(n) for n in (
        "pycuda", "pycuda.driver", "pycuda.autoinit", "pycuda.gpuarray", "pycuda.tools", "pycuda.cumath", "pycuda.compiler"))
    compiler.SourceModule = compiler.DynamicSourceModule = SourceModule
    for name in ("Error", "LogicError", "MemoryError", "RuntimeError", "LaunchError", "DeviceAllocation", "memcpy_htod",
                 "memcpy_dtoh", "memcpy_dtod", "memcpy_htod_async", "memcpy_dtoh_async", "memcpy_dtod_async", "mem_alloc",
                 "mem_alloc_pitch", "to_device", "from_device", "mem_get_info", "mem_alloc_like", "from_device_like", "HostAllocation",
                 "pagelocked_empty", "pagelocked_zeros",
                 "pagelocked_empty_like", "pagelocked_zeros_like", "aligned_empty", "aligned_zeros",
                 "aligned_empty_like", "aligned_zeros_like", "memcpy_peer", "ArgumentHandler", "In", "Out", "InOut", "Stream", "Event", "Context",
                 "Device"):
        setattr(driver, name, globals()[name])
    for width, name in ((1, "8"), (2, "16"), (4, "32")):
        setattr(driver, f"memset_d{name}", lambda dest, data, count, width=width: memset(dest, data, count, width))
        setattr(driver, f"memset_d{name}_async", lambda dest, data, count, stream=None, width=width: memset(dest, data, count, width))
        setattr(driver, f"memset_d2d{name}", lambda dest, pitch, data, width, height, size=width: memset_rows(dest, pitch, data, width, height, size))
    driver.init = lambda flags=0: None
    driver.get_version, driver.get_driver_version = lambda: (12, 0, 0), lambda: 12000
    driver.host_alloc_flags = types.SimpleNamespace(PORTABLE=1, DEVICEMAP=2, WRITECOMBINED=4)
    driver.event_flags = types.SimpleNamespace(DEFAULT=0, BLOCKING_SYNC=1, DISABLE_TIMING=2)
    driver.ctx_flags = types.SimpleNamespace(SCHED_AUTO=0, SCHED_SPIN=1, SCHED_YIELD=2, SCHED_BLOCKING_SYNC=4, MAP_HOST=8)
    driver.mem_attach_flags = types.SimpleNamespace(GLOBAL=1, HOST=2, SINGLE=4)
    driver.mem_host_register_flags = types.SimpleNamespace(PORTABLE=1, DEVICEMAP=2)
    driver.memory_type = types.SimpleNamespace(HOST=1, DEVICE=2, ARRAY=3, UNIFIED=4)
    driver.limit = types.SimpleNamespace(STACK_SIZE=0, PRINTF_FIFO_SIZE=1, MALLOC_HEAP_SIZE=2)
    driver.func_cache = types.SimpleNamespace(PREFER_NONE=0, PREFER_SHARED=1, PREFER_L1=2, PREFER_EQUAL=3)
    driver.compute_mode = types.SimpleNamespace(DEFAULT=0, PROHIBITED=2, EXCLUSIVE_PROCESS=3)
    driver.device_attribute = device_attribute
    autoinit.device, autoinit.context = Device(0), Device(0).make_context()
    gpuarray.GPUArray, gpuarray.to_gpu, gpuarray.zeros, gpuarray.empty = GPUArray, to_gpu, zeros, GPUArray
    gpuarray.empty_like, gpuarray.zeros_like, gpuarray.ones_like, gpuarray.arange = empty_like, zeros_like, ones_like, arange
    for module, names in (gpuarray, OF_ARRAYS), (cumath, MATH):
        for name in names.split():
            setattr(module, name, of_arrays(name))
    for name in ("sum", "max", "min", "any", "all"):
        setattr(gpuarray, name, reduction(name))
        setattr(GPUArray, name, reduction(name))
    gpuarray.if_positive = lambda criterion, then_, else_, out=None, stream=None: gpuarray.where(criterion > 0, then_, else_)
    gpuarray.reshape = lambda a, *shape, order="C": a.reshape(*shape)
    gpuarray.transpose = lambda a, axes=None: a.transpose(axes)
    gpuarray.to_gpu_async = lambda ary, allocator=None, stream=None: to_gpu(ary)
    driver.register_host_memory = lambda ary, flags=0: ary
    driver.managed_empty = driver.managed_zeros = lambda shape, dtype, order="C", mem_flags=0: pagelocked_zeros(shape, dtype, order)
    driver.managed_empty_like, driver.managed_zeros_like = pagelocked_empty_like, pagelocked_zeros_like
    driver.start_profiler = driver.stop_profiler = lambda: None
    tools.make_default_context, tools.clear_context_caches = lambda: Device(0).make_context(), lambda: None
    tools.DeviceMemoryPool = tools.PageLockedMemoryPool = MemoryPool
    top.compiler = compiler
    top.driver, top.autoinit, top.gpuarray, top.tools, top.cumath, top.VERSION = driver, autoinit, gpuarray, tools, cumath, (2024, 1)
    top.__path__ = []
    for module in (driver, gpuarray, tools, cumath, compiler):
        module.__getattr__ = missing_from(module.__name__, "memory, copies, streams and events are; CUDA kernels need a GPU")
    top.autoprimaryctx = autoinit
    return {m.__name__: m for m in (top, driver, autoinit, gpuarray, tools, cumath, compiler)} | {"pycuda.autoprimaryctx": autoinit}
