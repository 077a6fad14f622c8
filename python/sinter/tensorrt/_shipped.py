# SPDX-License-Identifier: Apache-2.0
"""The plugins that TensorRT ships and that are operators here. Scripts get them from the registry and add them to networks; models have
them as nodes."""
from .._abi import SHIPPED_PLUGINS
from .._dtype import numpy
from ._names import PluginFieldType
from ._plugin_classes import IPluginV2DynamicExt

ROWS = {name: row for name, *row in SHIPPED_PLUGINS}


class ShippedPlugin(IPluginV2DynamicExt):
    """A plugin with the fields that a script gave."""

    def __init__(self, kind, version, values):
        super().__init__()
        self.plugin_type = self.plugin_name = kind
        self.plugin_version, self.num_outputs, self.values = version, ROWS[kind][1], values

    def get_capability_interface(self, kind):
        return self

    def clone(self):
        return ShippedPlugin(self.plugin_type, self.plugin_version, dict(self.values))

    def add_to(self, network, tensors):
        """The layer of a network of sinter's."""
        weights = [network.add_constant(self.values[name]) for name in ("scales", "bias") if name in self.values]
        fields = {name: value for name, value in self.values.items() if name not in ("scales", "bias")}
        return network.add_op(self.plugin_type, *tensors, *weights, outputs=self.num_outputs, domain="TRT", **fields)


class ShippedCreator:
    """Makes plugins of one kind."""
    tensorrt_version = 0

    def __init__(self, kind, version, space):
        from ._registry import PluginField, PluginFieldCollection_
        self.name, self.plugin_version, self.plugin_namespace, self.fields = kind, version, space, ROWS[kind][2]
        self.field_names = PluginFieldCollection_(PluginField(name, None, PluginFieldType[type]) for name, type, _ in self.fields)

    def create_plugin(self, name, field_collection, phase=None):
        """A plugin; ValueError for a field that it does not have."""
        np, values = numpy(), {}
        known = {name: (type, count) for name, type, count in self.fields}
        for field in field_collection or ():
            if field.name in ("plugin_version", "plugin_namespace"):
                continue
            if field.name not in known:
                raise ValueError(f"{self.name} has no field '{field.name}': {', '.join(known)}")
            (type, count), data = known[field.name], np.asarray(field.data).reshape(-1)
            if count and data.size != count:
                raise ValueError(f"field '{field.name}' of {self.name} has {data.size} elements, {count} is wanted")
            data = data.astype("f4" if type == "FLOAT32" else "i4")
            values[field.name] = data if not count else data[0].item() if count == 1 else data.tolist()
        made = ShippedPlugin(self.name, self.plugin_version, values)
        made.plugin_namespace = self.plugin_namespace
        return made

    def deserialize_plugin(self, name, serialized_plugin):
        raise NotImplementedError(f"an engine has no plugin '{self.name}': it is an operator")


def creators(space):
    return {(kind, version, space): ShippedCreator(kind, version, space) for kind, row in ROWS.items() for version in row[0]}
