# SPDX-License-Identifier: Apache-2.0
"""From a model to an engine's bytes."""
import ctypes
import os
from collections import namedtuple
from contextlib import contextmanager
from ctypes import byref

from . import _abi
from ._abi import Dtype
from ._calibration import Calibration
from ._engine import Plan
from ._library import Env, call, describe_options, set_options
from ._network import Network
from ._tensor import Buffer, host_struct

ModelIO = namedtuple("ModelIO", "name is_input dtype shape dim_names part")
ModelIO.__doc__ = "An input or output of a model. shape: -1 where free; dim_names: the symbols of free dims, else None."


@contextmanager
def path_of(model):
    """A path for a model: its own, or that of a file in memory."""
    if isinstance(model, (str, os.PathLike)):
        yield os.fsencode(model)
        return
    file = os.memfd_create("model.onnx")
    try:
        with open(file, "wb", closefd=False) as out:
            out.write(model_bytes(model))
        yield f"/proc/self/fd/{file}".encode()
    finally:
        os.close(file)


def model_bytes(model):
    if hasattr(model, "SerializeToString"):
        return model.SerializeToString()
    return model


def model_inputs(model):
    """The inputs and outputs of a model, without building: a list of ModelIO. `model` as for build().
    Errors: FileError, InvalidModel, Unsupported."""
    if isinstance(model, Network):
        return [ModelIO(t.name, is_input, t.dtype, t.shape, t.dim_names, _abi.Part.WHOLE)
                for is_input, tensors in ((True, model.inputs), (False, model.outputs)) for t in tensors]
    found = []

    @_abi.FUNCTIONS["sinter_model_inputs"][1][2]
    def visit(_user, io):
        m = io.contents
        found.append(ModelIO(m.name.decode(), bool(m.is_input), Dtype(m.dtype), tuple(m.dim[:m.rank]),
                             tuple(None if m.dim_name[i] is None else m.dim_name[i].decode() for i in range(m.rank)),
                             _abi.Part(m.part)))
        return 0

    with path_of(model) as path:
        call("sinter_model_inputs", path, None, visit, None)
    return found


def triple(name, value):
    """(min, opt, max) of one size."""
    if isinstance(value, int):
        return value, value, value
    if len(value) != 3 or not all(isinstance(v, int) for v in value):
        raise ValueError(f"'{name}' is {value!r}: one size, or (min, opt, max)")
    return tuple(value)


def shape_triple(io, value):
    """(min, opt, max) of a shape. That of text may lack the width."""
    name, ranks = io.name, (len(io.shape), len(io.shape) - (io.part == _abi.Part.TEXT))
    if isinstance(value, dict):
        value = (value["min"], value["opt"], value["max"])
    if len(value) == 3 and all(hasattr(v, "__len__") for v in value):
        made = tuple(tuple(int(d) for d in v) for v in value)
    else:
        made = (tuple(int(d) for d in value),) * 3
    if any(len(v) not in ranks for v in made):
        raise ValueError(f"the shapes of '{name}' are {value!r}, its rank is {ranks[0]}")
    return made


def complete_profile(given, inputs):
    """name of input -> (min, opt, max) of its shape, from ranges of inputs and of named sizes."""
    by_name = {io.name: io for io in inputs}
    symbols, made = {}, {}
    for name, value in given.items():
        if name in by_name:
            made[name] = shape_triple(by_name[name], value)
            for dim_name, *sizes in zip(by_name[name].dim_names, *made[name]):
                if dim_name:
                    symbols.setdefault(dim_name, tuple(sizes))
    known = {n for io in inputs for n in io.dim_names if n}
    for name, value in given.items():
        if name in by_name:
            continue
        if name not in known:
            raise ValueError(f"the model has no input and no named size '{name}'; inputs are {', '.join(by_name)}; "
                             f"sizes are {', '.join(sorted(known)) or 'all numbers'}")
        symbols[name] = triple(name, value)
    named = {name for name in given if name not in by_name}
    for io in inputs:
        if io.name not in made and named.intersection(n for n in io.dim_names if n):
            sizes = [(d, d, d) if d >= 0 else symbols.get(n, (1, 1, 1)) for d, n in zip(io.shape, io.dim_names)]
            sizes = sizes[:-1] if io.part == _abi.Part.TEXT else sizes
            made[io.name] = tuple(tuple(s[k] for s in sizes) for k in range(3))
    return made


class _Call:
    """The options of one build, with all that they borrow."""

    def __init__(self, model, profiles, values, samples, state, equal, replaceable, progress, stage, calibration, env, options):
        self.keep, self.failure = [env], None
        self.report = _abi.sinter_build_report(struct_size=ctypes.sizeof(_abi.sinter_build_report))
        self.struct = s = _abi.sinter_build_options(struct_size=ctypes.sizeof(_abi.sinter_build_options))
        for name, _, type_, initial, *_ in _abi.BUILD_OPTIONS:
            if initial and type_ is not ctypes.c_char_p:
                setattr(s, name, initial)
        s.env, s.report = ctypes.pointer(env.struct), ctypes.pointer(self.report)
        set_options(s, "build", options, self.keep)
        self.set_profiles(model, profiles)
        s.value, s.value_count = self.tensors(values or {})
        samples = samples or []
        array = self.array(_abi.sinter_sample, samples)
        for item, sample in zip(array, samples):
            item.value, item.count = self.tensors(sample)
        s.sample, s.sample_count = array, len(samples)
        if calibration is not None:
            given = calibration if isinstance(calibration, Calibration) else Calibration(calibration)
            self.keep.append(given)
            s.calibration = given.handle
        pairs = list((state.items() if hasattr(state, "items") else state) or ())
        array = self.array(_abi.sinter_state, pairs)
        for item, (before, after) in zip(array, pairs):
            item.input, item.output = before.encode(), after.encode()
        s.state, s.state_count = array, len(pairs)
        pairs = list((equal or {}).items())
        array = self.array(_abi.sinter_dim_equal, pairs)
        for item, (dim, same) in zip(array, pairs):
            item.dim, item.equals = dim.encode(), same.encode()
        s.equal, s.equal_count = array, len(pairs)
        names = [name.encode() for name in replaceable or ()]
        array = self.array(ctypes.c_char_p, names)
        array[:len(names)] = names
        s.replaceable, s.replaceable_count = array, len(names)
        # Without a function of the caller's, progress still lets Ctrl-C end a build.
        s.progress = _abi.sinter_progress_fn(lambda _user, phase, done: self.guard(progress, phase.decode(), done))
        if stage is not None:
            s.stage = _abi.sinter_stage_fn(lambda _user, name, text, size: self.guard(
                stage, name.decode(), ctypes.string_at(text, size).decode(errors="replace")) and None)

    def array(self, type_, items):
        made = (type_ * max(len(items), 1))()
        self.keep.append(made)
        return made

    def tensors(self, values):
        array = self.array(_abi.sinter_input_value, values)
        for item, (name, value) in zip(array, values.items()):
            tensor = host_struct(value, self.keep)
            self.keep.append(tensor)
            item.input, item.value = name.encode(), ctypes.pointer(tensor)
        return array, len(values)

    def set_profiles(self, model, profiles):
        profiles = [profiles] if isinstance(profiles, dict) else list(profiles or ())
        if not profiles:
            return
        inputs = [io for io in model_inputs(model) if io.is_input]
        array = self.array(_abi.sinter_profile, profiles)
        for item, given in zip(array, profiles):
            ranges = complete_profile(given, inputs)
            shapes = self.array(_abi.sinter_shape_range, ranges)
            for shape, (name, (least, usual, most)) in zip(shapes, ranges.items()):
                shape.input, shape.rank = name.encode(), len(least)
                shape.min[:len(least)], shape.opt[:len(least)], shape.max[:len(least)] = least, usual, most
            item.shape, item.count = shapes, len(ranges)
        self.struct.profile, self.struct.profile_count = array, len(profiles)

    def guard(self, function, *arguments):
        """Calls a function of the caller's. What it raises ends the build and is raised again behind it."""
        if self.failure is not None:
            return 1
        try:
            return 1 if function is not None and function(*arguments) else 0
        except BaseException as e:
            self.failure = e
            return 1

    def run(self, function, *arguments):
        try:
            with self.keep[0].callbacks():
                call(function, *arguments)
        except Exception:
            if self.failure is not None:
                raise self.failure from None
            raise

    def report_dict(self):
        found = {}
        for name, type_ in self.report._fields_[1:]:
            value = getattr(self.report, name)
            found[name] = value.decode(errors="replace") if isinstance(value, bytes) else value
        return found


def build(model, *, profiles=None, values=None, samples=None, calibration=None, state=None, equal=None, replaceable=None, progress=None,
          stage=None, log=None, log_topics=None, limits=None, plugins=None, **options):
    """Builds an engine from an ONNX model or a Network and gives its bytes: a Plan.

    model       a path, bytes, an onnx.ModelProto, or a Network; external data is read from the path's folder only
    profiles    a dict, or a list of them, one for each profile: input -> shape, or (min, opt, max) of shapes;
                named size -> number, or (min, opt, max). What is not given is 1
    values      input -> array: what it holds in every run
    samples     a list of dicts input -> array: representative data, on which what `allow` does is measured
    calibration what 8 bits hold of tensors: a Calibration, or the bytes or the path of a calibration cache
    state       pairs {input: output} that stay in the context; '*' stands for the same text in both
    equal       named sizes that are computed from others: {"T": "P+S"}
    replaceable with refittable: names of the initializers that can be replaced; the engine knows no others
    progress    a function (phase, part done from 0 to 1); a true result cancels the build
    stage       a function (name of the pass, graph as text)
    log         a function (topic, line); log_topics: "import,opt,select,plan,jit,run"; SINTER_LOG logs to stderr
    limits      {"nodes_max": ..., "memory_max": ...}: what a model may cost (docs/usage.md)
    plugins     a Plugins, a Plugin, or a list of Plugin and paths of libraries: operators from outside (docs/plugins.md)

    Cost: seconds, memory less than twice the weights'. Any thread; several at once; Ctrl-C ends it.
    Errors: FileError, InvalidModel, Unsupported (all nodes at once), InvalidArgument (shapes that do not fit), NoMemory,
    Cancelled; what a callback raises.

    Options:
"""
    setup = _Call(model, profiles, values, samples, state, equal, replaceable, progress, stage, calibration,
                  Env(log, log_topics, limits, plugins), options)
    made = Buffer()
    if isinstance(model, Network):
        setup.run("sinter_network_build", model.handle, byref(setup.struct), byref(made.struct))
    elif isinstance(model, (str, os.PathLike)):
        setup.run("sinter_build_file", os.fsencode(model), byref(setup.struct), byref(made.struct))
    else:
        data = memoryview(model_bytes(model)).cast("B")
        array = bytes(data)
        setup.run("sinter_build_memory", ctypes.cast(ctypes.c_char_p(array), ctypes.c_void_p), len(array),
                  byref(setup.struct), byref(made.struct))
    return Plan(made, setup.report_dict())


build.__doc__ += describe_options("BUILD_OPTIONS")


def build_save(model, path, *, profiles=None, values=None, samples=None, calibration=None, state=None, equal=None, replaceable=None,
               progress=None, stage=None, log=None, log_topics=None, limits=None, plugins=None, **options):
    """Builds as build() does, and writes the engine to the file `path` weight after weight, so that it is never in memory
    as a whole. Gives the report of the build, with "size", the engine's bytes."""
    setup = _Call(model, profiles, values, samples, state, equal, replaceable, progress, stage, calibration,
                  Env(log, log_topics, limits, plugins), options)
    size = ctypes.c_uint64()
    with path_of(model) as source:
        setup.run("sinter_build_save", source, byref(setup.struct), os.fsencode(path), byref(size))
    return dict(setup.report_dict(), size=size.value)
