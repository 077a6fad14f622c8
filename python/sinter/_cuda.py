# SPDX-License-Identifier: Apache-2.0
"""The few calls of NVIDIA's driver that sharing memory needs. The driver is opened when it is first needed."""
import contextlib
import ctypes
import os
import threading

_driver = None
POINTER, CONTEXT = ctypes.c_void_p, ctypes.c_void_p
# name: (the version whose signature stands here, types)
FUNCTIONS = {"cuInit": (2000, ctypes.c_uint), "cuDeviceGetCount": (2000, POINTER), "cuDeviceGet": (2000, POINTER, ctypes.c_int),
             "cuDevicePrimaryCtxRetain": (7000, POINTER, ctypes.c_int), "cuDevicePrimaryCtxRelease": (11000, ctypes.c_int),
             "cuCtxGetCurrent": (4000, POINTER), "cuCtxPushCurrent": (4000, CONTEXT), "cuCtxPopCurrent": (4000, POINTER),
             "cuStreamSynchronize": (2000, POINTER),
             "cuLibraryLoadData": (12000, POINTER, POINTER, POINTER, POINTER, ctypes.c_uint, POINTER, POINTER, ctypes.c_uint),
             "cuLibraryGetKernel": (12000, POINTER, POINTER, ctypes.c_char_p), "cuKernelGetFunction": (12000, POINTER, POINTER),
             "cuKernelSetAttribute": (12000, ctypes.c_int, ctypes.c_int, POINTER, ctypes.c_int),
             "cuLaunchKernelEx": (11060, POINTER, POINTER, POINTER, POINTER),
             "cuMemcpyDtoHAsync": (3020, POINTER, ctypes.c_uint64, ctypes.c_size_t, POINTER),
             "cuMemcpyDtoDAsync": (3020, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, POINTER)}


class Driver:
    """The functions as attributes; each raises RuntimeError where the driver reports a failure."""

    def __init__(self):
        path = os.environ.get("SINTER_LIBCUDA") or "libcuda.so.1"
        try:
            library = ctypes.CDLL(path)
            get = library.cuGetProcAddress_v2
        except (OSError, AttributeError) as e:
            raise RuntimeError(f"NVIDIA's driver cannot be used: {e}") from None
        get.argtypes = [ctypes.c_char_p, POINTER, ctypes.c_int, ctypes.c_uint64, POINTER]
        self.library = library
        for name, (version, *types) in FUNCTIONS.items():
            found = POINTER()
            status = get(name.encode(), ctypes.byref(found), version, 0, None)
            if status or not found.value:
                raise RuntimeError(f"'{path}' has no {name}")
            setattr(self, name, self.checked(name, ctypes.CFUNCTYPE(ctypes.c_int, *types)(found.value)))
        self.cuInit(0)

    @staticmethod
    def checked(name, function):
        def call_checked(*arguments):
            status = function(*arguments)
            if status:
                raise RuntimeError(f"{name} reports {status}")
        return call_checked

    def count(self):
        found = ctypes.c_int()
        self.cuDeviceGetCount(ctypes.byref(found))
        return found.value

    @contextlib.contextmanager
    def context(self, ordinal):
        """The primary context of a device, current for a while."""
        device, context, old = ctypes.c_int(), CONTEXT(), CONTEXT()
        self.cuDeviceGet(ctypes.byref(device), ordinal)
        self.cuDevicePrimaryCtxRetain(ctypes.byref(context), device.value)
        self.cuCtxPushCurrent(context)
        try:
            yield
        finally:
            self.cuCtxPopCurrent(ctypes.byref(old))
            self.cuDevicePrimaryCtxRelease(device.value)


def driver():
    global _driver
    if _driver is None:
        _driver = Driver()
    return _driver


def is_there():
    """Is there a GPU? Nothing is created on it."""
    try:
        return driver().count() > 0
    except RuntimeError:
        return False


def current():
    """The number of the device whose primary context is current; 0 where none is."""
    found = CONTEXT()
    driver().cuCtxGetCurrent(ctypes.byref(found))
    if found.value not in _ordinals:
        _ordinals[found.value] = _ordinal_of(found)
    return _ordinals[found.value]


_ordinals = {}


def _ordinal_of(found):
    for ordinal in range(driver().count()):
        with driver().context(ordinal):
            own = CONTEXT()
            driver().cuCtxGetCurrent(ctypes.byref(own))
        if own.value == found.value:
            return ordinal
    return 0


def synchronize(stream, ordinal=0):
    """Waits for the work on a stream: 1 the legacy default stream, 2 the thread's, else a handle."""
    with driver().context(ordinal):
        driver().cuStreamSynchronize(stream)


def read(address, size, ordinal=0):
    """A copy of memory of the device."""
    memory = ctypes.create_string_buffer(max(size, 1))
    with driver().context(ordinal):
        driver().cuMemcpyDtoHAsync(ctypes.addressof(memory), address, size, None)
        driver().cuStreamSynchronize(None)
    return memory.raw[:size]


# ---- kernels that others compiled ----

class _Config(ctypes.Structure):
    """CUlaunchConfig."""
    _fields_ = [(n, ctypes.c_uint) for n in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared")] + [
        ("stream", POINTER), ("attributes", POINTER), ("attribute_count", ctypes.c_uint)]


_kernels, _kernels_lock = {}, threading.Lock()
MAX_DYNAMIC_SHARED, SHARED_BEFORE = 8, 48 << 10


def kernel(code, name):
    """The handle of a kernel in a cubin or PTX text, which is loaded once. Errors: RuntimeError."""
    with _kernels_lock:
        if (code, name) not in _kernels:
            library, found = POINTER(), POINTER()
            text = ctypes.create_string_buffer(code)                # PTX ends with a zero
            driver().cuLibraryLoadData(ctypes.byref(library), text, None, None, 0, None, None, 0)
            driver().cuLibraryGetKernel(ctypes.byref(found), library, name)
            _kernels[code, name] = found, text
        return _kernels[code, name][0]


def launch(handle, grid, block, shared, stream, arguments, ordinal=0):
    """Puts a kernel on a stream. arguments: ctypes values, in the order of its parameters. Errors: RuntimeError."""
    function, config = POINTER(), _Config(*grid, *block, shared, stream or None, None, 0)
    addresses = (POINTER * max(len(arguments), 1))(*(ctypes.addressof(a) for a in arguments))
    with driver().context(ordinal):
        device = ctypes.c_int()
        driver().cuDeviceGet(ctypes.byref(device), ordinal)
        if shared > SHARED_BEFORE:
            driver().cuKernelSetAttribute(MAX_DYNAMIC_SHARED, shared, handle, device.value)
        driver().cuKernelGetFunction(ctypes.byref(function), handle)
        driver().cuLaunchKernelEx(ctypes.byref(config), function, addresses, None)
