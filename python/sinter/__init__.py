# SPDX-License-Identifier: Apache-2.0
"""sinter: turns a trained network into an engine and runs it.

    plan = sinter.build("model.onnx", profiles={"N": (1, 1, 8)})      # once; plan.save("model.sinter")
    engine = sinter.load(plan)                                        # or a path, or bytes
    with engine.context() as context:
        scores = context.run({"image": image})["scores"]              # NumPy arrays in, NumPy arrays out

docs/python.md is the guide. `import sinter.tensorrt as trt` serves scripts that are written for TensorRT."""
import ctypes as _ctypes

from . import _abi
from ._abi import Dtype, LayerKind, Place, Status
from ._build import ModelIO, build, build_save, model_inputs
from ._calibration import Calibration, calibrate
from ._context import Context, RunTime, State, StepTime
from ._engine import IO, Engine, Plan, WeightInfo, load
from ._library import (Cancelled, DeviceError, Error, FileError, Incompatible, InternalError, InvalidArgument, InvalidModel,
                       NoMemory, Unsupported)
from ._library import path as library_path
from ._library import version as __version__
from ._network import Conditional, Layer, Loop, Network, NetworkTensor
from ._parser import Parser, ParserError
from ._plugin import Dim, Launch, Operand, Plugin, Plugins, Spec, plugin
from ._spread import Spread
from ._tensor import Tensor, read, write

__all__ = ["Calibration", "Cancelled", "Conditional", "Context", "DeviceError", "Dim", "Dtype", "Engine", "Error", "FileError",
           "IO", "Incompatible", "InternalError", "InvalidArgument", "InvalidModel", "Launch", "Layer", "LayerKind", "Loop",
           "ModelIO", "Network", "NetworkTensor", "NoMemory", "Operand", "Parser", "ParserError", "Place", "Plan", "Plugin",
           "Plugins", "RunTime", "Spec", "Spread", "State", "Status", "StepTime", "Tensor", "Unsupported", "WeightInfo", "build",
           "build_save", "calibrate", "library_path", "load", "machine", "model_inputs", "operators", "plugin", "read", "write"]


def _printed(function, *arguments):
    from ._library import failure, lib
    parts = []

    @_abi.sinter_write_fn
    def write_part(_user, text, length):
        parts.append(_ctypes.string_at(text, length))

    status = getattr(lib, function)(*arguments, write_part, None)
    if status:
        raise failure(status)
    return b"".join(parts).decode(errors="replace")


def machine():
    """The machine as the library sees it: CPU, GPUs and their libraries, what is missing (sinter doctor). A dict."""
    import json
    return json.loads(_printed("sinter_print_machine", _abi.Print.JSON))


def operators():
    """The ONNX operators that are taken (sinter ops --json)."""
    import json
    return json.loads(_printed("sinter_print_operators", 2))
