# SPDX-License-Identifier: Apache-2.0
"""Plugins of TensorRT's classes as plugins of sinter: one for each name, version and namespace.

A layer carries what its plugin serializes, or the attributes of its ONNX node; so an engine can be loaded by another process,
whose registered creator makes the plugin again. Each shape of a call has a clone of the plugin, which is configured once."""
import base64
import json
import threading

from .._abi import PLUGIN_NODE
from .._dtype import numpy
from .._host_device import borrowed
from .._plugin import Plugins, WholePlugin
from ._alias import joined
from ._core import FROM_TRT, TO_TRT, to_trt
from ._names import PluginFieldType, TensorRTPhase
from ._plugin_classes import (BUILD, CORE, RUNTIME, DimsExprs, DynamicPluginTensorDesc, IDimensionExpr, IExprBuilder, IPluginCreator,
                              IPluginResourceContext, IPluginV3, PluginTensorDesc, part, refuse_inner_late)
from ._registry import NUMPY_TYPES, PluginField, PluginFieldCollection_, get_plugin_registry

# Fields of a call: the plugin's bytes, the object of this process, the name of the layer.
STATE, OBJECT, NODE = "sinter_serialized", "sinter_object", PLUGIN_NODE


def declared(kind):
    """How a field of a creator is declared; an empty value means that it was not given."""
    found = NUMPY_TYPES.get(kind) if kind != PluginFieldType.CHAR else None
    return (bytes, b"") if found is None else (list[float], []) if found[0] == "f" else (list[int], [])


def is_v3(plugin):
    return isinstance(plugin, IPluginV3) or hasattr(plugin, "get_capability_interface")


def names_of(plugin):
    """(name, version, namespace)."""
    if is_v3(plugin):
        core = part(plugin, CORE)
        return core.plugin_name, str(core.plugin_version), core.plugin_namespace or ""
    return plugin.plugin_type, str(plugin.plugin_version), plugin.plugin_namespace or ""


def serialized(plugin):
    """All of a plugin's state as bytes."""
    if not is_v3(plugin):
        raw = plugin.serialize() or b""
        return b"2" + (raw.encode() if isinstance(raw, str) else bytes(raw))
    np, rows = numpy(), []
    for field in part(plugin, RUNTIME).get_fields_to_serialize() or ():
        is_text = isinstance(field.data, (str, bytes))
        value = np.asarray(0 if field.data is None else field.data) if not is_text else None
        raw = (field.data.encode() if isinstance(field.data, str) else field.data) if is_text else value.tobytes()
        rows.append([field.name, int(field.type), "" if is_text else value.dtype.str, base64.b64encode(raw).decode()])
    return b"3" + json.dumps(rows).encode()


def restored(raw):
    """The fields that serialized() has written."""
    found = []
    for name, kind, dtype, text in json.loads(raw[1:]):
        data = base64.b64decode(text)
        found.append(PluginField(name, numpy().frombuffer(data, dtype) if dtype else data, PluginFieldType(kind)))
    return PluginFieldCollection_(found)


def description(dtype, dims):
    return PluginTensorDesc(dims, to_trt(dtype, "a plugin's operand"))


def ranged(o):
    free = [a if a == b else -1 for a, b in zip(o.min, o.max)]
    return DynamicPluginTensorDesc(description(o.dtype, free), o.min, o.opt, o.max)


def fixed(o, sizes="max"):
    return description(o.dtype, getattr(o, sizes))


class Bridge:
    """The plugins of one name, version and namespace."""

    def __init__(self, key, creator, is_runtime):
        self.key, self.creator, self.is_runtime = key, creator, is_runtime
        self.live, self.made, self.lock = {}, {}, threading.RLock()
        self.kinds = {f.name: f.type for f in (creator.field_names if creator is not None else None) or ()}
        fields = {name: declared(kind) for name, kind in self.kinds.items()}
        fields.update({STATE: b"", OBJECT: 0, NODE: ""})
        name, version, namespace = key
        self.plugin = WholePlugin(name, self.shapes, tensors=self.enqueue, supports=self.supports, workspace=self.workspace, tactics=self.tactics,
                             state=self.state, version=version, namespace=namespace, fields=fields, inputs=(0, 32), outputs=(1, 32))

    # ---- objects ----

    def add(self, plugin):
        """(state, number) that stand for a plugin of this process."""
        raw = serialized(plugin)
        number = next((n for (r, n), p in self.live.items() if r == raw and p is plugin), None)
        if number is None:
            number = sum(r == raw for r, _ in self.live)
            self.live[raw, number] = plugin
        return raw, number

    def _create(self, node, *arguments):
        if self.creator is None:
            raise LookupError(f"no creator is registered for plugin '{self.key[0]}' version '{self.key[1]}'")
        is_old = isinstance(self.creator, IPluginCreator) or hasattr(self.creator, "deserialize_plugin")
        made = self.creator.create_plugin(node or self.key[0], *(arguments[:1] if is_old else arguments))
        return self._checked(made, "create_plugin")

    def _checked(self, made, name):
        if made is None:
            raise ValueError(f"{type(self.creator).__name__}.{name} gives None")
        return made

    def _restore(self, node, raw):
        if raw[:1] == b"2":
            if not hasattr(self.creator, "deserialize_plugin"):
                raise LookupError(f"no creator with deserialize_plugin is registered for plugin '{self.key[0]}'")
            return self._checked(self.creator.deserialize_plugin(node or self.key[0], raw[1:]), "deserialize_plugin")
        return self._create(node, restored(raw), TensorRTPhase.RUNTIME)

    def _make(self, values):
        raw, node = values[STATE], values[NODE]
        if raw:
            found = self.live.get((raw, values[OBJECT]))
            return found if found is not None else self._restore(node, raw)
        given = [PluginField(n, values[n], k) for n, k in self.kinds.items() if len(values[n])]
        made = self._create(node, PluginFieldCollection_(given), TensorRTPhase.BUILD)
        return self._restore(node, serialized(made)) if self.is_runtime else made

    def object(self, values):
        """The plugin for the fields of a call."""
        key = tuple((n, tuple(v) if isinstance(v, list) else v) for n, v in values.items())
        with self.lock:
            if key not in self.made:
                self.made[key] = self._make(values)
            return self.made[key]

    # ---- functions of the plugin ----

    def shapes(self, *inputs, count, table, values):
        with self.lock:
            plugin = self.object(values)
            build = part(plugin, BUILD) if is_v3(plugin) else plugin
            if build.num_outputs != count:
                raise ValueError(f"num_outputs is {build.num_outputs}, the node has {count} outputs")
            types = [to_trt(x.dtype, "a plugin's input") for x in inputs]
            given = [DimsExprs([IDimensionExpr(d) for d in x.shape]) for x in inputs]
            builder = IExprBuilder(table)
            if is_v3(plugin):
                dtypes, dims = list(build.get_output_data_types(types)), list(build.get_output_shapes(given, [], builder))
            else:
                dtypes = [plugin.get_output_datatype(i, types) for i in range(count)]
                dims = [plugin.get_output_dimensions(i, given, builder) for i in range(count)]
            if len(dtypes) != count or len(dims) != count:
                raise ValueError(f"{len(dtypes)} types and {len(dims)} shapes of outputs, num_outputs is {count}")
            made = []
            for i, (t, shape) in enumerate(zip(dtypes, dims)):
                sizes = [d.dim if isinstance(d, IDimensionExpr) else d for d in shape]
                refuse_inner_late(i, sizes, [getattr(d, "_is_late", False) for d in shape])
                made.append((FROM_TRT[t], sizes))
            return made

    def supports(self, inputs, outputs, values):
        operands = inputs + outputs
        if any(o is None or list(o.order) != sorted(o.order) or o.dtype not in TO_TRT for o in operands):
            return False
        with self.lock:
            plugin = self.object(values)
            is_new = is_v3(plugin)
            descs = [ranged(o) if is_new else ranged(o).desc for o in operands]
            build = part(plugin, BUILD) if is_new else plugin
            return all(build.supports_format_combination(i, descs, len(inputs)) for i in range(len(descs)))

    def workspace(self, inputs, outputs, values):
        with self.lock:
            plugin = self.object(values)
            build, make = (part(plugin, BUILD), ranged) if is_v3(plugin) else (plugin, fixed)
            return int(build.get_workspace_size([make(o) for o in inputs], [make(o) for o in outputs]) or 0)

    def tactics(self, inputs, outputs, values):
        with self.lock:
            plugin = self.object(values)
            return list(part(plugin, BUILD).get_valid_tactics() or [0]) if is_v3(plugin) else [0]

    def state(self, inputs, outputs, values):
        """A clone for one shape."""
        with self.lock:
            made = self.object(values).clone()
            if made is None:
                raise TypeError(f"{type(self.object(values)).__name__}.clone() gives None")
            old_style = [ranged(o) for o in inputs], [ranged(o) for o in outputs]
            if not is_v3(made):
                made.configure_plugin(*old_style)
                if made.initialize() not in (None, 0):
                    raise RuntimeError(f"{type(made).__name__}.initialize reports a failure")
                return Started(made, made)
            build = part(made, BUILD)
            build.configure_plugin(*old_style)
            aliases = {i: build.get_aliased_input(i) for i in range(len(outputs))} if hasattr(build, "get_aliased_input") else {}
            attached = part(made, RUNTIME).attach_to_context(IPluginResourceContext())
            made = made if attached is None else attached
            runtime = part(made, RUNTIME)
            runtime.on_shape_change([fixed(o) for o in inputs], [fixed(o) for o in outputs])
            return Started(made, runtime, {i: k for i, k in aliases.items() if k is not None and k >= 0})

    def enqueue(self, inputs, outputs, state, tactic, workspace, stream, values):
        descs = [[description(t.dtype, t.shape) for t in tensors] for tensors in (inputs, outputs)]
        given = joined(inputs, outputs, state.aliases, stream) if state.aliases else inputs
        addresses = [[t.data for t in tensors] for tensors in (given, outputs)]
        if tactic and state.tactic != tactic:
            state.runtime.set_tactic(tactic)
            state.tactic = tactic
        with borrowed(inputs + outputs):
            status = state.runtime.enqueue(*descs, *addresses, workspace or 0, stream or 0)
        if status not in (None, 0):
            raise RuntimeError(f"{type(state.plugin).__name__}.enqueue gives {status!r}; None or 0 is wanted")


class Started:
    """A plugin that was configured for a shape, until its state goes."""

    def __init__(self, plugin, runtime, aliases=None):
        self.plugin, self.runtime, self.tactic, self.aliases = plugin, runtime, None, aliases or {}

    def __del__(self):
        if not is_v3(self.plugin):
            self.plugin.terminate()


class Bridges:
    """The plugins that a network or an engine can use: those whose creators are registered, libraries, and objects of layers."""

    def __init__(self, is_runtime):
        self.is_runtime, self.plugins, self.found, self.loaded = is_runtime, Plugins(), {}, set()

    def current(self):
        """The Plugins, with all that the registry has by now; None where there is nothing at all."""
        from .plugin import registered
        registry = get_plugin_registry()
        for key, creator in registry._creators.items():
            self.bridge(key, creator)
        registry._look()
        for path in registry._libraries:
            if path not in self.loaded:
                self.plugins.add(path)
                self.loaded.add(path)
        for key, made in registered.items():
            if key not in self.found and made.is_complete:      # a call of one without a function says so itself
                self.found[key] = made.plugin()
                self.plugins.add(self.found[key])
        return self.plugins if self.plugins.names else None

    def bridge(self, key, creator=None):
        key = (key[0], str(key[1]), key[2])
        if key not in self.found:
            self.found[key] = Bridge(key, creator, self.is_runtime)
            self.plugins.add(self.found[key].plugin)
        return self.found[key]

    def live(self, plugin):
        """What a layer that calls a plugin of this process says: (name, its keywords)."""
        self.current()
        name, version, namespace = names_of(plugin)
        raw, number = self.bridge((name, version, namespace)).add(plugin)
        return name, {"version": version, "namespace": namespace, STATE: raw, OBJECT: number}
