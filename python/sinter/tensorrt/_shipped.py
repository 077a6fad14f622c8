# SPDX-License-Identifier: Apache-2.0
"""The plugins that TensorRT ships and that are operators here. Scripts get them from the registry and add them to networks; models have
them as nodes."""
from .._dtype import numpy
from ._names import PluginFieldType
from ._plugin_classes import IPluginV2DynamicExt

# name: versions, outputs, fields. A field is an integer, or where it has a point a number of any kind; with : two integers; [] is weights.
ROWS = {
    "EfficientNMS_TRT": ("1", 4, "score_threshold. iou_threshold. max_output_boxes background_class score_activation class_agnostic box_coding"),
    "BatchedNMS_TRT": ("1", 4, "shareLocation backgroundLabelId numClasses topK keepTopK scoreThreshold. iouThreshold. isNormalized clipBoxes "
                               "scoreBits caffeSemantics"),
    "ROIAlign_TRT": ("12", 1, "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale."),
    "ModulatedDeformConv2d": ("12", 1, "stride: padding: dilation: group deformable_group"),
    "MultiscaleDeformableAttnPlugin_TRT": ("12", 1, ""),
    "InstanceNormalization_TRT": ("123", 1, "epsilon. scales[] bias[] relu alpha."),
}
ROWS["BatchedNMSDynamic_TRT"] = ROWS["BatchedNMS_TRT"]


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
        self.name, self.plugin_version, self.plugin_namespace, self.kinds = kind, version, space, ROWS[kind][2].split()
        types = {"]": PluginFieldType.FLOAT32, ".": PluginFieldType.FLOAT32}
        self.field_names = PluginFieldCollection_(PluginField(k.rstrip("[].:"), None, types.get(k[-1], PluginFieldType.INT32))
                                                  for k in self.kinds)

    def create_plugin(self, name, field_collection, phase=None):
        """A plugin; ValueError for a field that it does not have."""
        np, values = numpy(), {}
        kinds = {k.rstrip("[].:"): k[-1] for k in self.kinds}
        for field in field_collection or ():
            if field.name in ("plugin_version", "plugin_namespace"):
                continue
            if field.name not in kinds:
                raise ValueError(f"{self.name} has no field '{field.name}': {', '.join(kinds)}")
            data = np.asarray(field.data).reshape(-1)
            if kinds[field.name] == "]":
                values[field.name] = data.astype("f4")
            elif data.size != (wanted := 2 if kinds[field.name] == ":" else 1):
                raise ValueError(f"field '{field.name}' of {self.name} has {data.size} elements, {wanted} is wanted")
            elif wanted == 2:
                values[field.name] = [int(v) for v in data]
            else:
                values[field.name] = float(data[0]) if kinds[field.name] == "." else int(data[0])
        made = ShippedPlugin(self.name, self.plugin_version, values)
        made.plugin_namespace = self.plugin_namespace
        return made

    def deserialize_plugin(self, name, serialized_plugin):
        raise NotImplementedError(f"an engine has no plugin '{self.name}': it is an operator")


def creators(space):
    return {(kind, version, space): ShippedCreator(kind, version, space) for kind, row in ROWS.items() for version in row[0]}
