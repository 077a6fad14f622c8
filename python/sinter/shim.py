# SPDX-License-Identifier: Apache-2.0
"""Runs scripts that import tensorrt, pycuda and cuda:

    python3 -m sinter.shim SCRIPT [ARGUMENT...]
    python3 -m sinter.shim -m MODULE [ARGUMENT...]

The names tensorrt, pycuda and cuda are sinter's from then on. Where engines are built for the CPU, memory of the device is
memory of the host."""
import importlib.abc
import importlib.util
import sys


def is_host():
    from .tensorrt._core import default_device
    return default_device() == "cpu"


def install():
    """Registers the modules."""
    from . import _shim_cudart, _shim_pycuda, tensorrt
    sys.modules["tensorrt"] = sys.modules["tensorrt.tensorrt"] = tensorrt
    for name in ("tensorrt_bindings", "tensorrt_dispatch", "tensorrt_lean"):
        sys.modules[name] = tensorrt
    tensorrt.tensorrt = tensorrt
    sys.modules["tensorrt.plugin"] = tensorrt.plugin
    for module in (_shim_pycuda, _shim_cudart):
        top = module.NAME
        if is_host() or importlib.util.find_spec(top) is None:
            if not is_host():
                raise ImportError(f"{top} is not installed, and its place is only taken where engines run on the CPU "
                                  "(SINTER_TENSORRT_DEVICE=cpu)")
            sys.modules.update(module.modules())
            AbsentModules.TOPS.add(top)
    if AbsentModules.TOPS and AbsentModules not in sys.meta_path:
        sys.meta_path.insert(0, AbsentModules)
    if is_host():
        host_libcudart()
        if HostMemoryForPolygraphy.NAME not in sys.modules:
            sys.meta_path.insert(0, HostMemoryForPolygraphy())


def host_libcudart():
    """Scripts that open libcudart by ctypes get the host's functions, too."""
    import ctypes
    import os
    from ._shim_cudart import Library

    class CDLL(ctypes.CDLL):
        def __new__(cls, name=None, *arguments, **keywords):
            is_cudart = isinstance(name, (str, os.PathLike)) and os.path.basename(os.fspath(name)).startswith("libcudart.")
            return Library() if is_cudart else super().__new__(cls)
    if ctypes.CDLL.__module__ != __name__:
        ctypes.CDLL = ctypes.cdll._dlltype = CDLL


class AbsentModules(importlib.abc.MetaPathFinder):
    """Says why a module of pycuda or cuda is not there."""
    TOPS = set()                    # whose modules are sinter's

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in cls.TOPS:
            raise ModuleNotFoundError(f"{name} is not there where engines run on the CPU (sinter.shim): memory, copies, streams and events "
                                      "are; CUDA kernels need a GPU", name=name)
        return None


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
        import os
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
