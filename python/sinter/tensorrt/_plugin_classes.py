# SPDX-License-Identifier: Apache-2.0
"""The classes of plugins that scripts derive from, and what their methods are given: descriptions of tensors, sizes as
expressions."""
from .._plugin import Dim
from ._core import Dims, NotAvailable
from ._interfaces import IVersionedInterface, wanted
from ._names import DataType, DimensionOperation, PluginCapabilityType, TensorFormat


class PluginTensorDesc:
    """A tensor of a plugin's call: sizes, type, format, scale."""
    ATTRIBUTES = "dims format scale type"

    def __init__(self, dims=(), type=DataType.FLOAT, format=TensorFormat.LINEAR, scale=0.0):
        self.dims, self.type, self.format, self.scale = Dims(dims), type, format, scale


class DynamicPluginTensorDesc:
    """A tensor whose sizes have ranges: desc (with -1), min, opt, max."""
    ATTRIBUTES = "desc max min opt"

    def __init__(self, desc=None, min=(), opt=(), max=()):
        self.desc, self.min, self.opt, self.max = desc or PluginTensorDesc(), Dims(min), Dims(opt), Dims(max)


class IDimensionExpr:
    """A size as an expression."""

    def __init__(self, dim, is_late=False):
        self.dim, self._is_late = dim, is_late          # late: a size tensor, or made of one

    def is_constant(self):
        return self.dim.value is not None

    def get_constant_value(self):
        if self.dim.value is None:
            raise RuntimeError("the size is not known while building")
        return self.dim.value

    def is_size_tensor(self):
        return False


class DimsExprs(list):
    """Sizes as expressions: of a number of axes, or of a list."""

    def __init__(self, given=0):
        super().__init__([None] * given if isinstance(given, int) else given)

    nbDims = property(len)


class IExprBuilder:
    """Makes expressions."""

    def __init__(self, table=None):
        self._table = table

    def constant(self, value):
        return IDimensionExpr(self._table.dim(int(value)))

    def operation(self, op, first, second):
        a, b, is_late = first.dim, second.dim, first._is_late or second._is_late
        if op == DimensionOperation.LESS:               # 1 or 0
            return IDimensionExpr((b - a).max(0).min(1), is_late)
        if op == DimensionOperation.EQUAL:
            return IDimensionExpr(1 - (a - b).max(b - a).min(1), is_late)
        return IDimensionExpr({DimensionOperation.SUM: Dim.__add__, DimensionOperation.PROD: Dim.__mul__,
                               DimensionOperation.MAX: Dim.max, DimensionOperation.MIN: Dim.min,
                               DimensionOperation.SUB: Dim.__sub__, DimensionOperation.FLOOR_DIV: Dim.__floordiv__,
                               DimensionOperation.CEIL_DIV: Dim.ceildiv}[op](a, b), is_late)

    def declare_size_tensor(self, output_index, opt, upper):
        """A size that the run tells: enqueue writes it to that output, a scalar."""
        made = IDimensionExpr(self._table.size(output_index, upper.dim), True)
        made.is_size_tensor = lambda: True
        return made


def refuse_inner_late(output, sizes, is_late):
    """Results lie as at the largest size, and plugins write theirs without gaps: the two are one where nothing but axes of 1 is
    further out than a size that the run decides."""
    is_first = True
    for axis, (size, late) in enumerate(zip(sizes, is_late)):
        if late and not is_first:
            raise ValueError(f"output {output} has a size on axis {axis} that the run decides; only its first axis may have one")
        is_first = is_first and (size.value if isinstance(size, Dim) else size) == 1


# ---- version 2 ----

class IPluginV2(IVersionedInterface):
    plugin_type, plugin_version, plugin_namespace, num_outputs, tensorrt_version = "", "1", "", 1, 0
    serialization_size = property(lambda self: len(self.serialize()))

    def __init__(self):
        pass

    def initialize(self):
        return 0

    def terminate(self):
        return None

    def destroy(self):
        return None

    def serialize(self):
        return b""

    clone = wanted("clone")


class IPluginV2Ext(IPluginV2):
    """Plugins of a fixed batch; a subclass of IPluginV2DynamicExt is what a network takes."""

    def attach_to_context(self, cudnn, cublas, allocator):
        return None

    def detach_from_context(self):
        return None


class IPluginV2DynamicExtBase(IPluginV2Ext):
    pass


class IPluginV2DynamicExt(IPluginV2DynamicExtBase):
    """A plugin: get_output_datatype(index, input_types), get_output_dimensions(output_index, inputs, expr_builder),
    supports_format_combination(pos, in_out, num_inputs), enqueue(input_desc, output_desc, inputs, outputs, workspace, stream),
    clone(), and where they matter configure_plugin(in, out), get_workspace_size(in, out), serialize()."""
    FORMAT_COMBINATION_LIMIT = 100

    def get_serialization_size(self):
        return len(self.serialize())

    def configure_plugin(self, input, output):
        return None

    def get_workspace_size(self, input, output):
        return 0

    get_output_datatype, get_output_dimensions, supports_format_combination, enqueue = map(
        wanted, ("get_output_datatype", "get_output_dimensions", "supports_format_combination", "enqueue"))


# ---- version 3 ----

class IPluginV3(IVersionedInterface):
    def __init__(self):
        pass

    def destroy(self):
        return None

    clone, get_capability_interface = map(wanted, ("clone", "get_capability_interface"))


class IPluginCapability(IVersionedInterface):
    def __init__(self):
        pass


class IPluginV3OneCore(IPluginCapability):
    plugin_name, plugin_version, plugin_namespace = "", "1", ""


class IPluginV3OneBuild(IPluginCapability):
    DEFAULT_FORMAT_COMBINATION_LIMIT = format_combination_limit = 100
    num_outputs, timing_cache_id, metadata_string = 1, "", ""

    def configure_plugin(self, input, output):
        return None

    def get_workspace_size(self, input, output):
        return 0

    def get_valid_tactics(self):
        return []

    get_output_data_types, get_output_shapes, supports_format_combination = map(
        wanted, ("get_output_data_types", "get_output_shapes", "supports_format_combination"))


class IPluginV3OneBuildV2(IPluginV3OneBuild):
    def get_aliased_input(self, output_index):
        return -1


class IPluginV3OneRuntime(IPluginCapability):
    def on_shape_change(self, input, output):
        return None

    def set_tactic(self, tactic):
        return None

    def attach_to_context(self, resource_context):
        return self.clone()

    def get_fields_to_serialize(self):
        from ._registry import PluginFieldCollection_
        return PluginFieldCollection_()

    enqueue = wanted("enqueue")


class IPluginV3QuickCore(IPluginV3OneCore):
    pass


class IPluginV3QuickBuild(IPluginCapability):
    """get_output_data_types(input_types, ranks), get_output_shapes(inputs, shape_inputs, expr_builder, ranks),
    get_number_of_outputs(), configure_plugin, get_supported_format_combinations."""


class IPluginV3QuickAOTBuild(IPluginV3QuickBuild):
    pass


class IPluginV3QuickRuntime(IPluginV3OneRuntime):
    pass


class IPluginResource(IVersionedInterface):
    def __init__(self):
        pass

    release, clone = map(wanted, ("release", "clone"))


class IPluginResourceContext:
    """What a plugin gets with its context. Memory is the library's, and errors are exceptions, so both are None."""
    gpu_allocator = error_recorder = None


# ---- creators ----

class IPluginCreatorInterface(IVersionedInterface):
    name, plugin_version, plugin_namespace, field_names = "", "1", "", ()

    def __init__(self):
        pass


class IPluginCreator(IPluginCreatorInterface):
    """Makes plugins of version 2: create_plugin(name, field_collection), deserialize_plugin(name, serialized_plugin)."""
    tensorrt_version = 0
    create_plugin, deserialize_plugin = map(wanted, ("create_plugin", "deserialize_plugin"))


class IPluginCreatorV3One(IPluginCreatorInterface):
    """Makes plugins of version 3: create_plugin(name, field_collection, phase)."""
    create_plugin = wanted("create_plugin")


class IPluginCreatorV3Quick(IPluginCreatorInterface):
    create_plugin = wanted("create_plugin")


def part(plugin, capability):
    """The object that answers for one capability of a plugin of version 3."""
    found = plugin.get_capability_interface(capability)
    if found is None:
        raise TypeError(f"{type(plugin).__name__}.get_capability_interface({capability}) gives None")
    if isinstance(found, IPluginV3QuickBuild):
        raise NotAvailable(f"{type(found).__name__} is an IPluginV3QuickBuild, whose methods upstream does not publish: register the plugin by the "
                           "functions of tensorrt.plugin, or derive from IPluginV3OneBuild")
    return found


CORE, BUILD, RUNTIME = PluginCapabilityType.CORE, PluginCapabilityType.BUILD, PluginCapabilityType.RUNTIME
CLASSES = (PluginTensorDesc, DynamicPluginTensorDesc, IDimensionExpr, DimsExprs, IExprBuilder, IPluginV2, IPluginV2Ext,
           IPluginV2DynamicExtBase, IPluginV2DynamicExt, IPluginV3, IPluginCapability, IPluginV3OneCore, IPluginV3OneBuild,
           IPluginV3OneBuildV2, IPluginV3OneRuntime, IPluginV3QuickCore, IPluginV3QuickBuild, IPluginV3QuickAOTBuild,
           IPluginV3QuickRuntime, IPluginResource, IPluginResourceContext, IPluginCreatorInterface, IPluginCreator,
           IPluginCreatorV3One, IPluginCreatorV3Quick)
