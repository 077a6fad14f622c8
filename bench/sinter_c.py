# SPDX-License-Identifier: Apache-2.0
"""libsinter.so through ctypes: as much of include/sinter as a bench needs. The declarations are those of the Python
package (python/sinter/_abi.py), without the package: a bench opens the library that it is told to open."""
import ctypes as C
import importlib.util
import os
import pathlib

import numpy as np

_place = pathlib.Path(__file__).resolve().parent.parent / "python" / "sinter" / "_abi.py"
_spec = importlib.util.spec_from_file_location("sinter_abi", _place)
abi = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(abi)

ALLOW = {"fp16": 1, "bf16": 2, "tf32": 4, "int8": 8}
HOST, DEVICE = 0, 1
SPIN_US = 100   # the initial value of the engine's option
TUNES = {"off": 0, "fast": 1, "full": 2}
BRANCHES = {"auto": 0, "off": 1, "small": 2, "all": 3}
DTYPES = {"float32": 1, "float64": 2, "float16": 3, "int8": 5, "int16": 6, "int32": 7, "int64": 8,
          "uint8": 9, "uint16": 10, "uint32": 11, "uint64": 12, "bool": 13}
NUMPY = {value: np.dtype(name) for name, value in DTYPES.items()}


class SinterError(Exception):
    pass


def tensor_of(array):
    """The tensor that lies in a contiguous array, which must outlive it."""
    tensor = abi.sinter_tensor(dtype=DTYPES[str(array.dtype)], rank=array.ndim, data=array.ctypes.data)
    for i, dim in enumerate(array.shape):
        tensor.dim[i] = dim
    return tensor


class Library:
    """The functions, with types. `path` is the shared library's."""

    def __init__(self, path):
        self.c = c = C.CDLL(str(path))
        for name, (result, arguments, _, _) in abi.FUNCTIONS.items():
            if hasattr(c, name):
                function = getattr(c, name)
                function.restype, function.argtypes = result, arguments

    def call(self, function, *arguments):
        error = abi.sinter_error()
        if getattr(self.c, function)(*arguments, C.byref(error)):
            raise SinterError(error.text.decode(errors="replace").strip())

    def version(self):
        return self.c.sinter_version().decode()

    def build(self, path, shapes, device="cpu", threads=1, tune="fast", timing_cache=None, isa=None,
              allow=(), branches="auto", sample=None):
        """An engine's bytes. `shapes`: name -> dims, or name -> (min, opt, max) of dims; `sample`: name -> array, what
        `allow` is measured on."""
        ranges = (abi.sinter_shape_range * max(len(shapes), 1))()
        for item, (name, dims) in zip(ranges, shapes.items()):
            lo, opt, hi = dims if dims and isinstance(dims[0], (list, tuple)) else (dims, dims, dims)
            item.input, item.rank = name.encode(), len(opt)
            for i in range(len(opt)):
                item.min[i], item.opt[i], item.max[i] = lo[i], opt[i], hi[i]
        profile = abi.sinter_profile(ranges, len(shapes))
        values = (abi.sinter_input_value * len(sample or {}))()
        for item, (name, array) in zip(values, (sample or {}).items()):
            item.input, item.value = name.encode(), C.pointer(tensor_of(array))
        options = abi.sinter_build_options(struct_size=C.sizeof(abi.sinter_build_options), device=device.encode(),
                                           threads=threads, tune=TUNES[tune], profile=C.pointer(profile),
                                           profile_count=1 if shapes else 0,
                                           timing_cache=os.fsencode(timing_cache) if timing_cache else None,
                                           isa=isa.encode() if isa else None, allow=sum(ALLOW[name] for name in allow),
                                           branches=BRANCHES[branches], sample_count=1 if sample else 0,
                                           sample=C.pointer(abi.sinter_sample(values, len(values))))
        buffer = abi.sinter_buffer()
        self.call("sinter_build_file", os.fsencode(path), C.byref(options), C.byref(buffer))
        try:
            return C.string_at(buffer.data, buffer.size)
        finally:
            self.c.sinter_buffer_free(C.byref(buffer))

    def load(self, engine_bytes, threads=1, trust_code=False):
        return Engine(self, engine_bytes, threads, trust_code)

    def load_file(self, path, threads=1):
        return Engine(self, None, threads, path=path)


class Engine:
    def __init__(self, library, engine_bytes, threads, trust_code=False, path=None):
        self.library, self.handle = library, C.c_void_p()
        options = abi.sinter_engine_options(struct_size=C.sizeof(abi.sinter_engine_options), threads=threads,
                                            spin=SPIN_US, trust_code=int(trust_code))
        if path:
            library.call("sinter_engine_load", os.fsencode(path), C.byref(options), C.byref(self.handle))
        else:
            library.call("sinter_engine_load_memory", engine_bytes, len(engine_bytes), C.byref(options),
                         C.byref(self.handle))
        self.inputs, self.outputs = [], []
        for i in range(library.c.sinter_engine_io_count(self.handle)):
            io = abi.sinter_io()
            library.c.sinter_engine_io(self.handle, i, 0, C.byref(io))
            (self.inputs if io.is_input else self.outputs).append(io.name.decode())

    def context(self, timing=False, stream=None):
        return Context(self, timing, stream)

    def io(self, index):
        io = abi.sinter_io()
        self.library.c.sinter_engine_io(self.handle, index, 0, C.byref(io))
        return io

    def __del__(self):
        if self.handle:
            self.library.c.sinter_engine_release(self.handle)


class Context:
    def __init__(self, engine, timing, stream=None):
        self.engine, self.library, self.handle, self.kept = engine, engine.library, C.c_void_p(), {}
        options = abi.sinter_context_options(struct_size=C.sizeof(abi.sinter_context_options), timing=int(timing),
                                             stream=stream)
        self.library.call("sinter_context_create", engine.handle, C.byref(options), C.byref(self.handle))
        self.error = abi.sinter_error()

    def set_input(self, name, array):
        array = np.require(array, requirements="CA")
        tensor = tensor_of(array)
        self.library.call("sinter_context_set_input", self.handle, name.encode(), C.byref(tensor))
        self.kept[name] = array

    def set_device_input(self, name, dtype, shape, pointer):
        tensor = abi.sinter_tensor(dtype=DTYPES[dtype], rank=len(shape), data=pointer, place=DEVICE)
        for i, dim in enumerate(shape):
            tensor.dim[i] = dim
        self.library.call("sinter_context_set_input", self.handle, name.encode(), C.byref(tensor))

    def set_device_output(self, name, pointer, size):
        self.library.call("sinter_context_set_output", self.handle, name.encode(), pointer, size, DEVICE)

    def run_async(self):
        if self.library.c.sinter_context_run_async(self.handle, C.byref(self.error)):
            raise SinterError(self.error.text.decode(errors="replace").strip())

    def wait(self):
        self.library.call("sinter_context_wait", self.handle)

    def run(self):
        if self.library.c.sinter_context_run(self.handle, C.byref(self.error)):
            raise SinterError(self.error.text.decode(errors="replace").strip())

    def outputs(self):
        """Copies of the last run's results, in the model's order."""
        results = []
        for name in self.engine.outputs:
            tensor = abi.sinter_tensor()
            self.library.call("sinter_context_output", self.handle, name.encode(), C.byref(tensor))
            shape = tuple(tensor.dim[i] for i in range(tensor.rank))
            if tensor.dtype not in NUMPY:
                raise SinterError(f"output '{name}' has a type that numpy lacks ({tensor.dtype})")
            dtype = NUMPY[tensor.dtype]
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            results.append(np.frombuffer(C.string_at(tensor.data, size), dtype).reshape(shape))
        return results

    def memory(self):
        return self.library.c.sinter_context_memory(self.handle)

    def steps(self):
        """Per-step times (of a context with timing): dicts in the order of execution."""
        found = []
        for i in range(self.library.c.sinter_context_step_count(self.handle)):
            step = abi.sinter_step_time()
            self.library.c.sinter_context_step(self.handle, i, C.byref(step))
            found.append({"name": step.name.decode(), "problem": step.problem.decode(), "kernel": step.kernel.decode(),
                          "runs": step.runs, "total_ns": step.total_ns, "min_ns": step.min_ns})
        return found

    def __del__(self):
        if self.handle:
            self.library.c.sinter_context_destroy(self.handle)
