# SPDX-License-Identifier: Apache-2.0
"""TensorRT's Python module over sinter: `import sinter.tensorrt as trt` replaces `import tensorrt as trt`.

Names, values and behaviour are those of versions 8.6 to 11.1 (docs/python.md). What is there by name only raises an
error that says what to use instead. Without a GPU everything runs on the CPU, where device pointers are host pointers;
SINTER_TENSORRT_DEVICE names the device. install_as_tensorrt() registers the names tensorrt, pycuda and cuda."""
import os as _os
import sys as _sys

from . import _names
from ._builder import Builder, IBuilderConfig, IOptimizationProfile
from ._control import IIfConditional, IIfConditionalBoundaryLayer, ILoop, ILoopBoundaryLayer
from ._core import (Dims, Dims2, Dims3, Dims4, DimsHW, IHostMemory, ILogger, Logger, Managed, Missing, NotAvailable, Permutation, Weights,
                    listed, nptype, volume)
from ._execution import IExecutionContext, IRuntimeConfig
from ._inspector import EngineInspector
from ._interfaces import (FallbackString, IDebugListener, IErrorRecorder, IGpuAllocator, IGpuAsyncAllocator, IInt8Calibrator,
                          IInt8EntropyCalibrator, IInt8EntropyCalibrator2, IInt8LegacyCalibrator, IInt8MinMaxCalibrator,
                          InterfaceInfo, IOutputAllocator, IProfiler, IProgressMonitor, IStreamReader, IStreamReaderV2,
                          IStreamWriter, IVersionedInterface, Profiler)
from ._layers import BY_NAME as _LAYER_CLASSES
from ._layers import IFullyConnectedLayer, INetworkDefinition, IRNNv2Layer
from ._network import ILayer, ITensor
from ._parser import OnnxParser, ParserError
from ._plugin_classes import CLASSES as _PLUGIN_CLASSES
from ._refitter import OnnxParserRefitter, Refitter
from ._registry import (IPluginRegistry, PluginField, PluginFieldCollection_, get_builder_plugin_registry,
                        get_plugin_registry, init_libnvinfer_plugins)
from ._runtime import ICudaEngine, ISerializationConfig, Runtime
from ._timing import ITimingCache, TimingCacheKey, TimingCacheValue

__version__ = _os.environ.get("SINTER_TENSORRT_VERSION") or "10.16.0"
_package_name = "tensorrt"

globals().update({name: value for name, value in vars(_names).items() if isinstance(value, type) and issubclass(value, _names.Enum)})
globals().update(_LAYER_CLASSES)
globals().update({_kind.__name__: _kind for _kind in _PLUGIN_CLASSES})
PluginFieldCollection = PluginFieldCollection_
ResizeMode, SliceMode = _names.InterpolationMode, _names.SampleMode
NodeIndices = SubGraphCollection = list
tensorrt = _sys.modules[__name__]                    # upstream's classes are tensorrt.tensorrt's
_plugin_registry = get_plugin_registry()
float32, float16, bfloat16, int8, int32, int64, uint8, bool, fp8, int4, fp4, e8m0 = (
    _names.DataType[_n] for _n in "FLOAT HALF BF16 INT8 INT32 INT64 UINT8 BOOL FP8 INT4 FP4 E8M0".split())


def get_nv_onnx_parser_version():
    """The version of the parser's interface, which upstream counts by itself: 100 for 0.1.0."""
    return 100


def _itemsize(trt_type):
    return trt_type.itemsize


def shutdown_protobuf_library():
    """There is nothing to shut down."""


def _complete():
    """Makes every name of the tables resolve: classes that nothing implements, and members that a class lacks."""
    here = globals()
    for name, members in _names.rows(_names.CLASSES):
        found = here.get(name)
        if found is None:
            base = ILayer if name.endswith("Layer") else IVersionedInterface if name.startswith("IPlugin") else \
                list if name in ("DimsExprs", "ISymExprs") else Managed
            found = here[name] = type(name, (base,), {"__module__": __name__, "__init__": _begin(name)})
        if found.__dir__ is object.__dir__:
            found.__dir__ = listed
        for member in members:
            if not hasattr(found, member):
                kept = getattr(found, "ATTRIBUTES", "").split()
                setattr(found, member, None if member in kept or name.startswith("IPlugin") else Missing(name, member))


def _begin(name):
    def __init__(self, *_, **__):
        if not name.startswith(("IPlugin", "ISym", "Dims", "Plugin", "IExpr", "Kernel", "Dynamic", "Timing", "IAlgorithm")):
            raise NotAvailable(Missing(name, "__init__").text().replace(".__init__", ""))
    return __init__


_complete()


def __getattr__(name):
    if name == "plugin":
        import importlib
        return importlib.import_module(__name__ + ".plugin")
    raise AttributeError(f"sinter.tensorrt has no '{name}', and neither have TensorRT 8.6, 10.16 and 11.1 (docs/python.md)")


def install_as_tensorrt():
    """Registers the names tensorrt, pycuda and cuda, so that scripts run whose imports cannot be changed. Without a GPU, pycuda
    and cuda are replaced by modules that work on the host; with one, only where they are missing."""
    from .. import shim
    shim.install()
