# SPDX-License-Identifier: Apache-2.0
"""PyTorch models on sinter: torch.compile(model, backend="sinter"), and torch_tensorrt's functions. docs/torch.md is the guide."""
import sys as _sys

import torch as _torch

from . import _ops_math, _ops_nn, _ops_rnn, _ops_shape, _upstream              # noqa: F401  operators' files register the converters
from ._backend import backend, register, tensorrt_backend
from ._benchmark import Benchmark, benchmark
from ._compile import compile, convert_exported_program_to_engine, convert_method_to_trt_engine, load, save, with_engines
from ._graph import Report
from ._input import Input
from ._module import CompiledModule
from ._settings import Settings

__all__ = ["Benchmark", "CompiledModule", "Input", "Report", "Settings", "backend", "benchmark", "compile", "convert_exported_program_to_engine",
           "convert_method_to_trt_engine", "install_as_tensorrt", "load", "save"]

register("sinter", backend)
_torch.export.load = with_engines(_torch.export.load)
_SUBMODULES = _upstream.install(_sys.modules[__name__])
__version__ = _upstream.VERSION


def install_as_tensorrt():
    """Registers the backends "tensorrt" and "torch_tensorrt" of torch.compile, and the module torch_tensorrt."""
    for name in ("tensorrt", "torch_tensorrt"):
        register(name, tensorrt_backend)
    _sys.modules["torch_tensorrt"] = _sys.modules[__name__]
    for name in _SUBMODULES:
        _sys.modules[f"torch_tensorrt.{name}"] = _sys.modules[f"{__name__}.{name}"]
