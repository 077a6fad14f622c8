# SPDX-License-Identifier: Apache-2.0
"""Engines: loaded, described, refitted. Plans: the bytes of an engine before it is loaded."""
import ctypes
import os
from collections import namedtuple
from ctypes import byref

from . import _abi
from ._abi import Dtype, Place
from ._dtype import TEXT, size_of
from ._library import Env, InvalidArgument, call, collect_text, describe_options, failure, lib, set_options
from ._tensor import Buffer, Tensor, host_struct

IO = namedtuple("IO", "name is_input dtype shape dim_text min opt max value_range")
IO.__doc__ = """An input or an output of an engine.

shape: sizes, -1 where each run chooses the size or data decide it; dim_text: the sizes as expressions ("N", "2*S+1").
min, opt, max: the sizes that the profile permits. value_range: (least, largest) of whole numbers that index no table of
the model from outside, or None."""
WeightInfo = namedtuple("WeightInfo", "name dtype size is_fixed")
WeightInfo.__doc__ = """An initializer of the model. size: bytes. is_fixed: it cannot be replaced by a refit."""
NO_RANGE = (-2**63, 2**63 - 1)
ALL_LAYERS = 2**32 - 1


def print_layers(function, handle, index, format):
    """What Engine.layers and Context.layers give."""
    if format not in ("text", "json", "dict"):
        raise ValueError(f"format is '{format}', it may be text, json or dict")
    kind = _abi.Print.TEXT if format == "text" else _abi.Print.JSON
    text = collect_text(function, handle, ALL_LAYERS if index is None else index, kind)
    if format == "dict":
        import json
        return json.loads(text)
    return text


class Plan:
    """The bytes of an engine. `bytes(plan)`, `len(plan)`, `memoryview(plan.view)`; `report` is a dict with the seconds of each
    phase of the build, empty for a plan that was not built."""

    def __init__(self, buffer, report=None):
        self._buffer, self.report = buffer, report or {}

    def __len__(self):
        return self._buffer.struct.size

    @property
    def view(self):
        """The bytes, without a copy: a memoryview."""
        raw = (ctypes.c_char * len(self)).from_address(self._buffer.struct.data)
        raw._owner = self._buffer
        return memoryview(raw).cast("B")

    def __bytes__(self):
        return ctypes.string_at(self._buffer.struct.data, len(self))

    def save(self, path):
        """Writes the engine file. It replaces only an engine or an empty file, and all at once. Errors: FileError."""
        call("sinter_buffer_save", byref(self._buffer.struct), os.fsencode(path))

    def load(self, **options):
        """An Engine; the options of sinter.load."""
        return load(self, **options)

    def __repr__(self):
        return f"<sinter.Plan of {len(self)} bytes>"


def load(source, *, log=None, log_topics=None, limits=None, plugins=None, **options):
    """Loads an engine from a file's path, from bytes, or from a Plan, and verifies it.

    The memory or the file may change afterwards. An engine may be used by any number of threads.

    log: a function (topic, line); log_topics: "import,opt,select,plan,jit,run"; limits: a dict such as
    {"memory_max": 2**30}; plugins: those of the engine, as for sinter.build.
    Errors: FileError, InvalidModel (damaged), Incompatible (another version or machine), Unsupported, DeviceError, NoMemory.

    Options:
"""
    env, keep = Env(log, log_topics, limits, plugins), []
    struct = _abi.sinter_engine_options(struct_size=ctypes.sizeof(_abi.sinter_engine_options))
    struct.env = ctypes.pointer(env.struct)
    set_options(struct, "engine", options, keep)
    handle = ctypes.c_void_p()
    if isinstance(source, (str, os.PathLike)):
        with env.callbacks():
            call("sinter_engine_load", os.fsencode(source), byref(struct), byref(handle))
    else:
        if isinstance(source, Plan):
            address, size, owner = source._buffer.struct.data, len(source), source
        else:
            view = memoryview(source).cast("B")
            owner = bytes(view) if view.readonly else (ctypes.c_char * view.nbytes).from_buffer(view)
            if isinstance(owner, bytes):
                address, size = ctypes.cast(ctypes.c_char_p(owner), ctypes.c_void_p), len(owner)
            else:
                address, size = ctypes.addressof(owner), view.nbytes
        with env.callbacks():
            call("sinter_engine_load_memory", address, size, byref(struct), byref(handle))
        del owner
    return Engine(handle, env, str(options.get("device") or ""))


load.__doc__ += describe_options("ENGINE_OPTIONS")


class Engine:
    """An optimised model, loaded and verified: immutable, and shared by any number of threads and contexts. Made by
    sinter.load() or Plan.load()."""

    def __init__(self, handle, env, device=""):
        self._handle, self._env = handle, env
        self.device = lib.sinter_engine_device(handle).decode()
        self.ordinal = int(device.partition(":")[2] or 0) if device.partition(":")[2].isdigit() else 0
        self.profile_count = lib.sinter_engine_profile_count(handle)
        io = self.io()
        self.inputs = tuple(i for i in io if i.is_input)
        self.outputs = tuple(i for i in io if not i.is_input)
        self._json = None

    def __del__(self):
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            lib.sinter_engine_release(handle)

    def io(self, profile=0):
        """Inputs, then outputs, each in the model's order, with the ranges of a profile. Errors: InvalidArgument."""
        found = []
        if not 0 <= profile < self.profile_count:
            raise InvalidArgument(f"the engine has no profile {profile}: {self.profile_count} profiles are counted from 0",
                                  _abi.Status.INVALID_ARG)
        for index in range(lib.sinter_engine_io_count(self._handle)):
            io = _abi.sinter_io()
            status = lib.sinter_engine_io(self._handle, index, profile, byref(io))
            if status:
                raise failure(status)
            rank = io.rank
            values = (io.value_min, io.value_max)
            found.append(IO(io.name.decode(), bool(io.is_input), Dtype(io.dtype), tuple(io.dim[:rank]),
                            tuple(io.dim_text[i].decode() for i in range(rank)), tuple(io.min[:rank]),
                            tuple(io.opt[:rank]), tuple(io.max[:rank]), None if values == NO_RANGE else values))
        return found

    def context(self, profile=0, stream=None, **options):
        """A Context: what one caller needs to run. Options: those of sinter.Context."""
        from ._context import Context
        return Context(self, profile, stream, **options)

    # ---- memory ----

    def empty(self, shape, dtype, place="device"):
        """A Tensor in memory of the engine's device ("device"), in host memory that the device reads itself ("pinned") or in
        the host's ("host"). Device memory is zeroed. It is freed with the tensor. Errors: NoMemory, DeviceError."""
        from ._dtype import dtype_of
        dtype, shape, place = dtype_of(dtype), tuple(int(d) for d in shape), Place[place.upper()]
        memory = _Memory(self, place, size_of(dtype, shape))
        return Tensor._make(dtype, shape, memory.data, place, memory, self)

    def put(self, source, place="device"):
        """A Tensor with a copy of `source` in another place, as `empty` makes it."""
        source = Tensor(source)
        made = self.empty(source.shape, source.dtype, place)
        made.copy_from(source)
        return made

    def profile(self, is_on):
        """Tells profilers of the device that wait for it (nsys --capture-range=cudaProfilerApi) to begin to record, or to end."""
        call("sinter_engine_profile", self._handle, int(bool(is_on)))

    def _copy(self, to, to_place, source, from_place, size):
        call("sinter_engine_copy", self._handle, to, to_place, source, from_place, size)

    def describe(self, profile=None):
        """Sizes in bytes and counts, as a dict: of the engine (weights_size, memory_size, streamable_size, weight_budget, ...), or of
        one profile."""
        of_engine = profile is None
        struct = _abi.sinter_engine_info() if of_engine else _abi.sinter_profile_info()
        struct.struct_size = ctypes.sizeof(struct)
        call("sinter_engine_describe" if of_engine else "sinter_engine_describe_profile", self._handle,
             *(() if of_engine else (profile,)), byref(struct))
        return {name: getattr(struct, name) for name, _ in struct._fields_[1:]}

    def set_weight_budget(self, size):
        """How many bytes of a GPU's memory weights may take: runs copy the others from the host. 0: all weights are on the GPU. The
        engine must have no context. Errors: InvalidArgument, NoMemory, DeviceError."""
        call("sinter_engine_set_weight_budget", self._handle, size)

    def automatic_weight_budget(self):
        """A budget that leaves room for one context of the largest profile; 0 on the CPU. Errors: DeviceError."""
        size = ctypes.c_uint64()
        call("sinter_engine_automatic_weight_budget", self._handle, byref(size))
        return size.value

    # ---- reports ----

    def inspect(self, format="text"):
        """The report of `sinter inspect`: "text", "json", or "dict"."""
        if format not in ("text", "json", "dict"):
            raise ValueError(f"format is '{format}', it may be text, json or dict")
        kind = _abi.Print.TEXT if format == "text" else _abi.Print.JSON
        text = collect_text("sinter_engine_print", self._handle, kind)
        if format == "dict":
            import json
            return json.loads(text)
        return text

    def layers(self, index=None, format="dict"):
        """The steps of all profiles as TensorRT's inspector has them, or one of them: "text", "json", or "dict". What they tell is
        the build's option `detail`; a size that runs choose is -1. Errors: InvalidArgument (there is no such layer)."""
        return print_layers("sinter_engine_print_layers", self._handle, index, format)

    @property
    def is_stripped(self):
        """Weights were left out by strip(): the engine has to be refitted before it runs."""
        return bool(lib.sinter_engine_is_stripped(self._handle))

    @property
    def detail(self):
        """A Detail: what the engine tells of its layers."""
        return _abi.Detail(lib.sinter_engine_detail(self._handle))

    @property
    def info(self):
        """The report of inspect as a dict; read once."""
        if self._json is None:
            self._json = self.inspect("dict")
        return self._json

    def __repr__(self):
        io = ", ".join(f"{i.name} {TEXT[i.dtype]}[{','.join(i.dim_text)}]" for i in self.inputs)
        out = ", ".join(f"{i.name} {TEXT[i.dtype]}[{','.join(i.dim_text)}]" for i in self.outputs)
        return f"<sinter.Engine for {self.device}: {io} -> {out}>"

    def _repr_html_(self):
        """Tables for notebooks: inputs and outputs, and the steps of each profile."""
        import html
        rows = ["".join(f"<td>{html.escape(str(c))}</td>" for c in
                        ("input" if i.is_input else "output", i.name, TEXT[i.dtype], "×".join(i.dim_text)))
                for i in self.inputs + self.outputs]
        parts = [table(("", "name", "type", "shape"), rows)]
        for number, profile in enumerate(self.info["profiles"]):
            rows = ["".join(f"<td>{html.escape(str(step.get(k, '')))}</td>" for k in ("name", "kernel", "tactic", "where"))
                    for step in profile["steps"]]
            parts.append(f"<p>profile {number}: {len(rows)} steps, {profile['slab_bytes']} bytes of activations, "
                         f"{profile['weight_bytes']} of weights</p>")
            parts.append(table(("nodes", "kernel", "tactic", "where"), rows))
        return "".join(parts)

    # ---- other weights ----

    def weights(self):
        """The initializers that weights of the engine are made of, or that are fixed: a list of WeightInfo."""
        return self._weights(None)

    def _weights(self, given):
        found = []

        @_abi.FUNCTIONS["sinter_engine_weights"][1][1]
        def visit(_user, weight):
            w = weight.contents
            found.append(WeightInfo(w.name.decode(), Dtype(w.dtype), w.size, bool(w.is_fixed)))
            return 0

        if given is None:
            call("sinter_engine_weights", self._handle, visit, None)
        else:
            names = (ctypes.c_char_p * max(len(given), 1))(*(name.encode() for name in given))
            call("sinter_engine_weights_missing", self._handle, names, len(given), visit, None)
        return found

    def missing_weights(self, names):
        """What refit() with weights of these names would want, too: a weight of the engine that is made of several initializers needs all
        of them, and a stripped engine needs every one."""
        return self._weights(list(names))

    def refit(self, weights):
        """A Plan with other weights. `weights`: a dict from names of initializers to arrays, or the path of an ONNX file
        of the same graph. This engine stays as it is.

        Errors: InvalidArgument (a name that the engine does not have, another type or size, a weight that is fixed and
        differs, an initializer that is missing), Incompatible, NoMemory; of a file FileError, InvalidModel."""
        made = Buffer()
        if isinstance(weights, (str, os.PathLike)):
            call("sinter_engine_refit_file", self._handle, os.fsencode(weights), byref(made.struct))
            return Plan(made)
        keep = []
        array = (_abi.sinter_weight * max(len(weights), 1))()
        for item, (name, value) in zip(array, weights.items()):
            tensor = host_struct(value, keep)
            keep.append(tensor)
            item.name, item.value = name.encode(), ctypes.pointer(tensor)
        call("sinter_engine_refit", self._handle, array, len(weights), byref(made.struct))
        return Plan(made)

    def strip(self):
        """A Plan without the weights that are made of initializers: it can be refitted, and run after that."""
        made = Buffer()
        call("sinter_engine_strip", self._handle, byref(made.struct))
        return Plan(made)

    def plan(self):
        """The engine's own bytes, as a Plan."""
        return self.refit({})

    def save(self, path):
        """Writes the engine file: plan().save(path)."""
        self.plan().save(path)


class _Memory:
    """Memory of an engine's device; it keeps the engine."""

    def __init__(self, engine, place, size):
        self.engine, self.place, self.size = engine, place, size
        found = ctypes.c_void_p()
        call("sinter_engine_alloc", engine._handle, place, size, byref(found))
        self.data = found.value or 0

    def __del__(self):
        if getattr(self, "data", 0) and self.engine._handle:
            lib.sinter_engine_free(self.engine._handle, self.place, self.data, self.size)


def table(heads, rows):
    head = "".join(f"<th>{h}</th>" for h in heads)
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{r}</tr>" for r in rows) + "</table>"
