# SPDX-License-Identifier: Apache-2.0
"""The engine inspector: steps as TensorRT's layers. `sinter exec --exportLayerInfo` writes the same members."""
import json

from ._core import Reporter
from ._names import LayerInformationFormat

TYPE_WORDS = {"f32": "Float", "f16": "Half", "bf16": "BFloat16", "i8": "Int8", "u8": "UInt8", "i32": "Int32", "i64": "Int64",
              "bool": "Bool", "i4": "Int4", "f8e4m3fn": "FP8", "f4e2m1": "FP4"}


def layer_names(names, profile):
    """The names of a profile's steps, each once: a name that is taken gets " #2" behind it."""
    suffix = profile_suffix(profile)
    taken, made = set(), []
    for first in names:
        name, number = first, 2
        while name in taken:
            name, number = f"{first} #{number}", number + 1
        taken.add(name)
        made.append(name + suffix)
    return made


def tactic_value(kernel, tactic):
    """FNV-1a: equal kernels with equal parameters have equal values."""
    value = 0xcbf29ce484222325
    for byte in (kernel + tactic).encode():
        value = (value ^ byte) * 0x100000001b3 % (1 << 64)
    return f"0x{value:016x}"


def profile_suffix(profile):
    return f" [profile {profile}]" if profile else ""


def tensor(described, profile=0):
    """Sizes that a run may choose are -1, as they are upstream without an execution context. Tensors of further profiles say so."""
    dims = list(described.get("dims", []))
    for axis in described.get("varying", []):
        dims[axis] = -1
    return {"Name": described["name"] + profile_suffix(profile), "Location": "Host" if described["place"] == "host" else "Device",
            "Dimensions": dims, "Format/Datatype": TYPE_WORDS.get(described["dtype"], described["dtype"])}


def layer(step, name, profile):
    kind = step["problem"].partition(":")[0] or step["kernel"]
    tensors = step.get("in", [])
    nodes = filter(None, step.get("name", "").split(" + "))
    return {"Name": name, "LayerType": kind,
            "Inputs": [tensor(t, profile) for t in tensors if t["kind"] != "weight"],
            "Outputs": [tensor(t, profile) for t in step.get("out", []) if t["kind"] != "weight"],
            "Constants": [tensor(t) for t in tensors if t["kind"] == "weight"],
            "ParameterType": kind, "TacticName": step["kernel"], "TacticValue": tactic_value(step["kernel"], step.get("tactic", "")),
            "Tactic": step.get("tactic", ""), "Problem": step["problem"], "Where": step.get("where", ""), "StreamId": 0,
            "Metadata": "\x1e".join(f"[ONNX Layer: {node}]" for node in nodes)}


class EngineInspector(Reporter):
    """Describes an engine and its layers."""
    ATTRIBUTES = "execution_context"

    def __init__(self, engine):
        self.engine, self.logger, self.execution_context = engine, engine.logger, None

    def _layers(self):
        made = []
        for number, profile in enumerate(self.engine._engine.info["profiles"]):
            steps = profile["steps"]
            names = layer_names([step.get("name") or step["kernel"] for step in steps], number)
            made += [layer(step, name, number) for step, name in zip(steps, names)]
        return made

    @staticmethod
    def _line(made):
        return f"{made['Name']}, {made['LayerType']}, {made['TacticName']} {made['Tactic']}".rstrip()

    def get_layer_information(self, layer_index, format):
        made = self._layers()[layer_index]
        return json.dumps(made) if format == LayerInformationFormat.JSON else self._line(made)

    def get_engine_information(self, format):
        layers, names = self._layers(), self.engine._names
        bindings = [name + profile_suffix(p) for p in range(self.engine.num_optimization_profiles) for name in names]
        if format == LayerInformationFormat.JSON:
            return json.dumps({"Layers": layers, "Bindings": bindings}, indent=1)
        return "\n".join(map(self._line, layers)) + "\n\nBindings:\n" + "\n".join(bindings)
