# SPDX-License-Identifier: Apache-2.0
"""How far 8-bit numbers reach, tensor by tensor."""
import ctypes
import os
from collections.abc import MutableMapping
from ctypes import byref

from . import _abi
from ._library import Env, call, describe_options, lib, set_options
from ._tensor import Buffer


class Calibration(MutableMapping):
    """The ranges of tensors: a mapping from the name of a tensor to the largest magnitude that 8 bits hold of it.

        ranges = sinter.calibrate("model.onnx", [{"image": a}, {"image": b}])
        ranges.save("model.cache")                              # a calibration cache as TensorRT writes it
        sinter.build("model.onnx", allow="int8", calibration=ranges)

    `cache`: the bytes of a calibration cache, or its path; None: no ranges. A range of 0 is none.
    Errors: FileError, InvalidModel (the line and what is wrong with it)."""

    def __init__(self, cache=None):
        self.handle = ctypes.c_void_p()
        if cache is None:
            call("sinter_calibration_create", None, byref(self.handle))
            return
        if isinstance(cache, (str, os.PathLike)):
            call("sinter_calibration_load", os.fsencode(cache), None, byref(self.handle))
            return
        cache = bytes(cache)
        call("sinter_calibration_read", ctypes.cast(ctypes.c_char_p(cache), ctypes.c_void_p), len(cache), None,
             byref(self.handle))

    def __del__(self):
        if getattr(self, "handle", None):
            lib.sinter_calibration_destroy(self.handle)
            self.handle = None

    @property
    def header(self):
        """The first line of the cache: "TRT-VERSION-METHOD"."""
        return lib.sinter_calibration_header(self.handle).decode(errors="surrogateescape")

    def _rows(self):
        name, scale = ctypes.c_char_p(), ctypes.c_float()
        for i in range(len(self)):
            call("sinter_calibration_get", self.handle, i, byref(name), byref(scale))
            yield name.value.decode(errors="surrogateescape"), scale.value

    @property
    def scales(self):
        """name -> scale: the range / 127 as f32, which is what a cache holds."""
        return dict(self._rows())

    def __len__(self):
        return lib.sinter_calibration_count(self.handle)

    def __iter__(self):
        return (name for name, _ in self._rows())

    def __getitem__(self, name):
        for known, scale in self._rows():
            if known == name:
                return scale * 127
        raise KeyError(name)

    def __setitem__(self, name, value):
        call("sinter_calibration_set", self.handle, name.encode(errors="surrogateescape"), value)

    def __delitem__(self, name):
        raise TypeError(f"a range is not taken out: set that of '{name}' to 0")

    def __bytes__(self):
        """The calibration cache. The same ranges in the same order give the same bytes."""
        made = Buffer()
        call("sinter_calibration_write", self.handle, byref(made.struct))
        return ctypes.string_at(made.struct.data, made.struct.size)

    def save(self, path):
        """Writes the calibration cache to a file, which is replaced only if it is one. Errors: FileError, InvalidArgument."""
        call("sinter_calibration_save", self.handle, os.fsencode(path))


METHOD_OPTIONS = [row[0] for row in _abi.CALIBRATE_OPTIONS]


def calibrate(model, samples, *, profile=None, values=None, state=None, equal=None, progress=None, log=None,
              log_topics=None, limits=None, **options):
    """Runs a model on data, on the CPU in f32, and gives the ranges of its tensors: a Calibration.

    model       a path, bytes, an onnx.ModelProto, or a Network
    samples     an iterable of dicts input -> array: the batches, in any order
    profile     ranges of inputs that samples do not name (their opt shapes are taken), as `profiles` of build()
    The others are those of build().

    Cost: the batches in memory, and two runs of each. Errors: as build(); InvalidArgument (a batch that does not fit).

    Options:
"""
    from ._build import _Call, model_bytes
    from ._network import Network
    own = {name: options.pop(name) for name in METHOD_OPTIONS if name in options}
    setup = _Call(model, profile, values, list(samples), state, equal, None, progress, None, None,
                  Env(log, log_topics, limits), options)
    how = _abi.sinter_calibrate_options(struct_size=ctypes.sizeof(_abi.sinter_calibrate_options))
    for name, _, _, initial, *_ in _abi.CALIBRATE_OPTIONS:
        setattr(how, name, initial)
    set_options(how, "calibrate", own, setup.keep)
    how.build = ctypes.pointer(setup.struct)
    made = Calibration.__new__(Calibration)
    made.handle = ctypes.c_void_p()
    if isinstance(model, Network):
        setup.run("sinter_calibrate_network", model.handle, byref(how), byref(made.handle))
    elif isinstance(model, (str, os.PathLike)):
        setup.run("sinter_calibrate_file", os.fsencode(model), byref(how), byref(made.handle))
    else:
        data = bytes(memoryview(model_bytes(model)).cast("B"))
        setup.run("sinter_calibrate_memory", ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data), byref(how),
                  byref(made.handle))
    return made


calibrate.__doc__ += describe_options("CALIBRATE_OPTIONS")
