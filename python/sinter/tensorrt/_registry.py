# SPDX-License-Identifier: Apache-2.0
"""Plugins by name: the registry, and the fields that creators take."""
import ctypes
import os

from .._dtype import numpy
from ._core import Managed, Reporter
from ._names import PluginFieldType

NUMPY_TYPES = {PluginFieldType.FLOAT16: "f2", PluginFieldType.FLOAT32: "f4", PluginFieldType.FLOAT64: "f8", PluginFieldType.BF16: "f4",
               PluginFieldType.INT8: "i1", PluginFieldType.INT16: "i2", PluginFieldType.INT32: "i4", PluginFieldType.INT64: "i8",
               PluginFieldType.DIMS: "i4", PluginFieldType.CHAR: "i1"}


class PluginField:
    """A parameter of a plugin: name, data, type. Data of a type that NumPy has, and texts, are arrays with one axis, as upstream
    shows them."""
    ATTRIBUTES = "name data type"

    def __init__(self, name="", data=None, type=PluginFieldType.UNKNOWN):
        self.name, self.type, self.data = name, type, data

    @property
    def data(self):
        return self._data

    @data.setter
    def data(self, data):
        np, dtype = numpy(), NUMPY_TYPES.get(self.type)
        if np is not None and dtype is not None and data is not None:
            data = data.encode() if isinstance(data, str) else data
            data = np.frombuffer(data, dtype) if isinstance(data, (bytes, bytearray, memoryview)) else np.asarray(data, dtype).reshape(-1)
        self._data = data

    @property
    def size(self):
        return 0 if self.data is None else len(self.data) if hasattr(self.data, "__len__") else 1


class PluginFieldCollection_(list):
    """Parameters of a plugin."""

    def __init__(self, fields=()):
        super().__init__(fields)


def loaded_libraries(seen):
    """Paths of the libraries of plugins that the process has opened by itself, with ctypes.CDLL for example. `seen` keeps those that
    were looked at."""
    found = {}
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                parts = line.split(None, 5)
                path = parts[5].rstrip("\n") if len(parts) == 6 else ""
                if ".so" in path and path not in seen:
                    first, last = (int(n, 16) for n in parts[0].split("-"))
                    found.setdefault(path, []).append((first, last))
    except OSError:
        return []
    made = []
    for path, ranges in found.items():
        seen.add(path)
        try:
            # A library that is open already: nothing is loaded.
            entry = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY).sinter_plugin_entry
        except (OSError, AttributeError):
            continue
        address = ctypes.cast(entry, ctypes.c_void_p).value
        if any(first <= address < last for first, last in ranges):     # its own, and not that of a library that it needs
            made.append(path)
    return made


class IPluginRegistry(Managed, Reporter):
    """The creators that were registered."""
    ATTRIBUTES = "error_recorder parent_search_enabled"

    def __init__(self):
        self._creators, self._resources, self.error_recorder, self.parent_search_enabled = {}, {}, None, True
        self._libraries, self._ours, self._seen = [], {}, set()

    @staticmethod
    def _key(creator, namespace):
        return creator.name, str(creator.plugin_version), namespace or getattr(creator, "plugin_namespace", "") or ""

    def register_creator(self, creator, plugin_namespace=""):
        key = self._key(creator, plugin_namespace)
        if key in self._creators:
            return False
        self._creators[key] = creator
        return True

    def deregister_creator(self, creator):
        found = [k for k, c in self._creators.items() if c is creator]
        for key in found:
            del self._creators[key]
        return bool(found)

    def get_creator(self, type, version, plugin_namespace=""):
        """A creator that was registered, or that of a plugin which TensorRT ships; None where there is none."""
        key = type, str(version), plugin_namespace or ""
        return self._creators.get(key) or self._shipped().get(key)

    def _ship(self, space):
        """Gives the plugins that TensorRT ships in another namespace, too."""
        if not any(key[2] == space for key in self._shipped()):
            from ._shipped import creators
            self._ours.update(creators(space))

    def _look(self):
        """Libraries that scripts opened by themselves are used as those of load_library are."""
        for path in loaded_libraries(self._seen):
            if path not in self._libraries:
                self._libraries.append(path)

    def _shipped(self):
        if not self._ours:
            from ._shipped import creators
            self._ours = creators("")
        return self._ours

    def load_library(self, plugin_path):
        """Plugins of sinter's own interface (plugin.h), from a shared library or a .cu file. A handle for deregister_library. The library
        of upstream's own plugins is not loaded: the registry has them."""
        from .._plugin import Plugins
        if os.path.basename(os.fspath(plugin_path)).startswith("libnvinfer_plugin.so"):
            return os.fspath(plugin_path)
        Plugins(os.fspath(plugin_path))         # what is wrong with it is said now
        path = os.path.realpath(os.fspath(plugin_path))
        if path not in self._libraries:
            self._libraries.append(path)
        return path

    def deregister_library(self, handle):
        if handle in self._libraries:
            self._libraries.remove(handle)

    get_plugin_creator = get_creator
    plugin_creator_list = all_creators = all_creators_recursive = property(
        lambda self: list({**self._shipped(), **self._creators}.values()))

    def acquire_plugin_resource(self, key, resource):
        return self._resources.setdefault(key, resource.clone())

    def release_plugin_resource(self, key):
        found = self._resources.pop(key, None)
        if found is not None:
            found.release()
        return 0 if found is not None else -1


_registry = IPluginRegistry()


def get_plugin_registry():
    """The registry of the process."""
    return _registry


def get_builder_plugin_registry(capability=None):
    return _registry


def init_libnvinfer_plugins(logger, namespace):
    """True: the registry has the plugins that are shipped (_shipped.py) in the namespace "" from the beginning."""
    _registry._ship(namespace or "")
    return True
