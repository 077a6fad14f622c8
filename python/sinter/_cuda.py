# SPDX-License-Identifier: Apache-2.0
"""The few calls of NVIDIA's driver that sharing memory needs. The driver is opened when it is first needed."""
import ctypes
import os

_driver = None


def driver():
    global _driver
    if _driver is None:
        try:
            _driver = ctypes.CDLL(os.environ.get("SINTER_LIBCUDA") or "libcuda.so.1")
        except OSError as e:
            raise RuntimeError(f"memory of a GPU was given, but NVIDIA's driver cannot be opened: {e}") from None
        _driver.cuStreamSynchronize.argtypes = [ctypes.c_void_p]
    return _driver


def is_there():
    """Is there a GPU? Nothing is created on it."""
    try:
        found = driver()
    except RuntimeError:
        return False
    count = ctypes.c_int()
    return found.cuInit(0) == 0 and found.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def synchronize(stream):
    """Waits for the work on a stream: 1 the legacy default stream, 2 the thread's, else a handle."""
    status = driver().cuStreamSynchronize(ctypes.c_void_p(stream))
    if status:
        raise RuntimeError(f"the driver reports {status} for the stream of the tensor that was given")
