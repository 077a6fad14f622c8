# SPDX-License-Identifier: Apache-2.0
"""Runs scripts that import tensorrt, pycuda and cuda:

    python3 -m sinter.shim SCRIPT [ARGUMENT...]
    python3 -m sinter.shim -m MODULE [ARGUMENT...]

The names tensorrt, pycuda and cuda are sinter's from then on. Where engines are built for the CPU, memory of the device is
memory of the host."""
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
import types


def is_host():
    from .tensorrt._core import default_device
    return default_device() == "cpu"


def install():
    """Registers the modules."""
    from . import _library, _shim_cudart, _shim_pycuda, tensorrt
    plugin_library = types.ModuleType("tensorrt.plugin._lib")
    plugin_library.QDP_REGISTRY = tensorrt.plugin.ById()
    plugin_library.__spec__ = importlib.machinery.ModuleSpec("tensorrt.plugin._lib", None)
    for name in ("tensorrt", "tensorrt_bindings", "tensorrt_dispatch", "tensorrt_lean"):
        sys.modules[name] = sys.modules[name + ".tensorrt"] = tensorrt
        sys.modules[name + ".plugin"], sys.modules[name + ".plugin._lib"] = tensorrt.plugin, plugin_library
    tensorrt.tensorrt = tensorrt
    libraries = sys.modules["tensorrt_libs"] = types.ModuleType("tensorrt_libs")        # whose folder scripts ask for
    libraries.__path__ = [os.path.dirname(_library.path)]
    libraries.__spec__ = importlib.machinery.ModuleSpec("tensorrt_libs", None, is_package=True)
    versions = {name: tensorrt.__version__ for name in ("tensorrt", "tensorrt-bindings")}
    for module in (_shim_pycuda, _shim_cudart):
        top = module.NAME
        if is_host() or importlib.util.find_spec(top) is None:
            if not is_host():
                raise ImportError(f"{top} is not installed, and its place is only taken where engines run on the CPU "
                                  "(SINTER_TENSORRT_DEVICE=cpu)")
            made = module.modules()
            for name, each in made.items():              # find_spec() of a script finds them
                each.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=hasattr(each, "__path__"))
            sys.modules.update(made)
            AbsentModules.TOPS.add(top)
            versions.update(module.VERSIONS)
    if AbsentModules.TOPS and not any(isinstance(finder, AbsentModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, AbsentModules())
    sys.meta_path = [finder for finder in sys.meta_path if not isinstance(finder, Versions)] + [Versions(versions)]
    if not any(isinstance(finder, TorchModule) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchModule())
    open_libraries(tensorrt.__version__)
    if is_host():
        if HostMemoryForPolygraphy.NAME not in sys.modules:
            sys.meta_path.insert(0, HostMemoryForPolygraphy())


def open_libraries(version):
    """Scripts that open TensorRT's libraries by ctypes get what such scripts call; on the host libcudart's functions, too. Only the
    lean runtime's library stays absent: there is none."""
    import ctypes
    import ctypes.util
    from ._shim_cudart import Library

    class CDLL(ctypes.CDLL):
        def __new__(cls, name=None, *arguments, **keywords):
            file = os.path.basename(os.fspath(name)) if isinstance(name, (str, os.PathLike)) else ""
            stem = file.partition(".so")[0]
            if stem == "libcudart" and is_host():
                return Library()
            return InferLibrary(stem, version) if stem in InferLibrary.STEMS and file != stem else super().__new__(cls)
    find = ctypes.util.find_library

    def find_library(name):
        return f"lib{name}.so" if "lib" + name in InferLibrary.STEMS or name == "cudart" and is_host() else find(name)
    if ctypes.CDLL.__module__ != __name__:
        ctypes.CDLL = ctypes.cdll._dlltype = CDLL
        ctypes.util.find_library = find_library


class InferLibrary:
    """libnvinfer and its companions, for callers that open them by ctypes: they are loaded with sinter already."""
    STEMS = "libnvinfer", "libnvinfer_plugin", "libnvonnxparser"

    def __init__(self, stem, version):
        self._name = stem
        major, minor, patch = map(int, version.split(".")[:3])
        number = major * 10000 + minor * 100 + patch
        # A function, and not a method: callers set its argtypes and restype.
        functions = {"getInferLibVersion": lambda: number if major >= 10 else major * 1000 + minor * 100 + patch,
                     "getInferLibMajorVersion": lambda: major, "getInferLibMinorVersion": lambda: minor,
                     "getInferLibPatchVersion": lambda: patch} if stem == "libnvinfer" else \
            {"initLibNvInferPlugins": lambda logger, namespace: True} if stem == "libnvinfer_plugin" else {"getNvOnnxParserVersion": lambda: 100}
        self.__dict__.update(functions)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{self._name} has no {name} here: use the module tensorrt, or sinter/compat's headers in C++ (docs/cpp.md)")


class Versions(importlib.metadata.DistributionFinder):
    """Tells importlib.metadata the versions of the packages that are stood in for."""

    def __init__(self, versions):
        self.versions = versions

    def find_spec(self, name, path=None, target=None):
        return None

    def find_distributions(self, context):
        wanted = (context.name or "").lower().replace("_", "-")
        return [Version(name, number) for name, number in self.versions.items() if not wanted or name == wanted]


class Version(importlib.metadata.Distribution):
    """A package that has a name and a version, and no files."""

    def __init__(self, package, number):
        self.text = f"Metadata-Version: 2.1\nName: {package}\nVersion: {number}\n"

    def read_text(self, filename):
        return self.text if filename == "METADATA" else None

    def locate_file(self, path):
        return path


class AbsentModules(importlib.abc.MetaPathFinder):
    """Says why a module of pycuda or cuda is not there."""
    TOPS = set()                    # whose modules are sinter's

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.TOPS:
            raise ModuleNotFoundError(f"{name} is not there where engines run on the CPU (sinter.shim): memory, copies, streams and events "
                                      "are; CUDA kernels need a GPU", name=name)
        return None


class TorchModule(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """torch_tensorrt, which is sinter.torch; PyTorch is imported when it is asked for."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch_tensorrt" or importlib.util.find_spec("torch") is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        from . import torch as module
        module.install_as_tensorrt()
        return types.ModuleType(spec.name)

    def exec_module(self, module):                       # sinter.torch keeps its own name and spec
        sys.modules[module.__name__] = sys.modules[__package__ + ".torch"]


class HostMemoryForPolygraphy(importlib.abc.MetaPathFinder):
    """Polygraphy looks for libcudart's file, and warns where there is none: its wrapper gets the host's functions when it is imported."""
    NAME = "polygraphy.cuda.cuda"

    def find_spec(self, name, path, target=None):
        if name != self.NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                from ._shim_cudart import Library
                run(module)
                module.Cuda.__init__ = lambda self: setattr(self, "handle", Library())
            spec.loader.exec_module = exec_module
        return spec


def main():
    import runpy
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
