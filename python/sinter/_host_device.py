# SPDX-License-Identifier: Apache-2.0
"""A device that is the host: its memory, checked. What pycuda and cudart are made of where there is no GPU."""
import bisect
import contextlib
import ctypes
import itertools
import threading
import time


class HostDevice:
    """Blocks of memory, by address. A copy that leaves a block is an error, as it would be on a GPU."""

    def __init__(self):
        self.blocks, self.starts, self.lock, self.own = {}, [], threading.Lock(), threading.local()

    def alloc(self, size):
        if size < 0:
            raise ValueError(f"{size} bytes")
        raw = (ctypes.c_char * (size + 256))()
        at = -(-ctypes.addressof(raw) // 256) * 256
        with self.lock:
            self.blocks[at] = (raw, size)
            bisect.insort(self.starts, at)
        return at

    def free(self, at):
        """False: no block begins there."""
        with self.lock:
            if at not in self.blocks:
                return False
            del self.blocks[at]
            self.starts.remove(at)
        return True

    def holds(self, at, size):
        """Does the memory lie in one block?"""
        if any(start <= at and at + size <= start + most for start, most in getattr(self.own, "borrowed", ())):
            return True
        with self.lock:
            index = bisect.bisect_right(self.starts, at) - 1
            return index >= 0 and at + size <= self.starts[index] + self.blocks[self.starts[index]][1]

    def room(self, at):
        """The bytes from an address to the end of its block; None: it is in none."""
        with self.lock:
            index = bisect.bisect_right(self.starts, at) - 1
            end = self.starts[index] + self.blocks[self.starts[index]][1] if index >= 0 else at
        return end - at if end > at else None

    @contextlib.contextmanager
    def borrowed(self, blocks):
        """Memory of others, as (address, bytes), that this thread may copy for a while: the operands of a plugin."""
        self.own.borrowed = list(blocks)
        try:
            yield
        finally:
            self.own.borrowed = ()

    def copy(self, to, source, size, to_device, from_device):
        """False: the memory of the device is not as large."""
        if to_device and not self.holds(to, size) or from_device and not self.holds(source, size):
            return False
        ctypes.memmove(to, source, size)
        return True

    def fill(self, at, value, size, width=1):
        if not self.holds(at, size * width):
            return False
        if width == 1:
            ctypes.memset(at, value, size)
        else:
            kind = {2: ctypes.c_uint16, 4: ctypes.c_uint32}[width]
            for i in range(size):
                ctypes.cast(at, ctypes.POINTER(kind))[i] = value
        return True

    def used(self):
        with self.lock:
            return sum(size for _, size in self.blocks.values())


device = HostDevice()


@contextlib.contextmanager
def borrowed(tensors):
    """Functions of cudart and pycuda that work on the host know memory of the library while it is lent to a script: the operands of
    a plugin, a debug tensor."""
    if any(t.place for t in tensors):               # they lie in memory of a GPU
        yield
        return
    with device.borrowed((t.data or 0, t.nbytes) for t in tensors):
        yield


now = time.perf_counter
numbers = itertools.count(0x1000)                   # handles of streams, events, graphs
captures = {}                                       # stream -> the work that its graph will have


def submit(stream, work, *arguments):
    """Does the work of a stream and gives its result; a stream that is being captured keeps it for a graph, and gives True."""
    kept = captures.get(int(stream or 0)) if captures else None
    if kept is None:
        return work(*arguments)
    kept.append((work, arguments))
    return True


def begin_capture(stream):
    """False: the stream is being captured."""
    if int(stream) in captures:
        return False
    captures[int(stream)] = []
    return True


def join_capture(stream, kept):
    """The stream's work belongs to the same graph, for it waits for an event of a captured stream."""
    captures[int(stream)] = kept


def end_capture(stream):
    """The work of the stream, and of those that joined it; None if it is not being captured."""
    kept = captures.get(int(stream))
    for joined in [s for s, work in list(captures.items()) if work is kept]:
        del captures[joined]
    return kept


def launch(graph, stream):
    """Does the work of a graph. False: some of it failed."""
    return all([submit(stream, work, *arguments) for work, arguments in graph])


def total_memory():
    import os
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def address_of(buffer, writable):
    """(address, bytes) of host memory; the caller keeps the buffer."""
    interface = getattr(buffer, "__array_interface__", None)
    if interface is not None and interface.get("strides") is None:
        from ._tensor import Tensor
        if writable and interface["data"][1]:
            raise ValueError("the array cannot be written")
        return interface["data"][0], Tensor(buffer).nbytes if not hasattr(buffer, "nbytes") else buffer.nbytes
    if interface is not None:
        raise ValueError("the array is not row-major")
    view = memoryview(buffer)
    if not view.contiguous:
        raise ValueError("the buffer is not contiguous")
    if view.readonly:
        if writable:
            raise ValueError("the buffer cannot be written")
        data = bytes(view)
        return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value, view.nbytes, data
    raw = (ctypes.c_char * view.nbytes).from_buffer(view)
    return ctypes.addressof(raw), view.nbytes, raw
