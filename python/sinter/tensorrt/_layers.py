# SPDX-License-Identifier: Apache-2.0
"""Layers that scripts add to a network. Tables say which kind of sinter.Network each call makes, and how properties and
arguments are called there; the library knows the kinds and their parameters."""
from .. import _abi
from .._network import kind_parameters
from .._tensor import Tensor
from . import _batch, _names
from ._control import BOUNDARY, IIfConditional, ILoop
from ._layer_extras import EXTRA, blocks, causal_kind
from ._core import FROM_TRT, Dims, NotAvailable, Weights, to_trt
from ._names import DataType, LayerType, NetworkDefinitionCreationFlag
from ._network import ILayer, NetworkDefinition, address_of, logged, tensor_of
from ._plugin_classes import BUILD, part
from ._rnn import IRNNv2Layer
from ._shipped import ShippedPlugin
from .plugin import IS_AOT

# add_NAME: the kind, then the arguments in order. ARGUMENT:t is a tensor, ARGUMENT:l a list of them, ARGUMENT:PARAMETER a
# parameter that has another name; "=" has the value of an argument that was not given.
METHODS = """
activation: activation input:t type
assertion: assertion condition:t message
attention: attention query:t key:t value:t norm_op causal:is_causal
attention_v2: attention query:t key:t value:t norm_op causal_kind
cast: cast input:t to_type
constant: constant shape weights
convolution: convolution input:t num_output_maps:maps kernel_shape:kernel_size kernel bias=
convolution_nd: convolution input:t num_output_maps:maps kernel_shape:kernel_size kernel bias=
cumulative: cumulative input:t axis:t op exclusive reverse
deconvolution: deconvolution input:t num_output_maps:maps kernel_shape:kernel_size kernel bias=
deconvolution_nd: deconvolution input:t num_output_maps:maps kernel_shape:kernel_size kernel bias=
dequantize: dequantize input:t scale:t output_type:to_type=FLOAT
dynamic_quantize: dynamic_quantize input:t axis block_size output_type:to_type scale_type
dynamic_quantize_v2: dynamic_quantize input:t block_shape:blocks output_type:to_type scale_type
einsum: einsum inputs:l equation
elementwise: elementwise input1:t input2:t op
fill: fill shape:dim op output_type:to_type=FLOAT
gather: gather input:t indices:t axis
gather_v2: gather input:t indices:t mode
grid_sample: grid_sample input:t grid:t
identity: identity input:t
kv_cache_update: kv_cache_update cache:t update:t write_indices:t cache_mode
lrn: lrn input:t window:window_size alpha beta k
matrix_multiply: matrix_multiply input0:t op0 input1:t op1
moe: moe hidden_states:t selected_experts_for_tokens:t scores_for_selected_experts:t
nms: nms boxes:t scores:t max_output_boxes_per_class:t indices_type=INT32
non_zero: non_zero input:t indices_type=INT32
normalization: normalization input:t scale:t bias:t axesMask:axes
normalization_v2: normalization input:t scale:t bias:t axesMask:axes
one_hot: one_hot indices:t values:t depth:t axis
padding: padding input:t pre_padding post_padding
padding_nd: padding input:t pre_padding post_padding
parametric_relu: parametric_relu input:t slopes:t
pooling: pooling input:t type window_size
pooling_nd: pooling input:t type window_size
quantize: quantize input:t scale:t output_type:to_type=INT8
ragged_softmax: ragged_softmax input:t bounds:t
reduce: reduce input:t op axes keep_dims
resize: resize input:t
reverse_sequence: reverse_sequence input:t sequence_lens:t
rotary_embedding: rotary_embedding input:t cos_cache:t sin_cache:t interleaved rotary_embedding_dim
scale: scale input:t mode shift= scale= power=
scale_nd: scale input:t mode shift= scale= power= channel_axis=1
scatter: scatter data:t indices:t updates:t mode
select: select condition:t then_input:t else_input:t
shape: shape input:t
shuffle: shuffle input:t
slice: slice input:t start shape:size stride
softmax: softmax input:t
squeeze: squeeze input:t axes:t
topk: topk input:t op k axes indices_type=INT32
unary: unary input:t op
unsqueeze: unsqueeze input:t axes:t
"""

# The class of each kind whose name does not follow from the kind's.
CLASS_OF = {"lrn": "ILRNLayer", "softmax": "ISoftMaxLayer", "ragged_softmax": "IRaggedSoftMaxLayer", "topk": "ITopKLayer",
            "elementwise": "IElementWiseLayer", "parametric_relu": "IParametricReLULayer", "nms": "INMSLayer",
            "kv_cache_update": "IKVCacheUpdateLayer", "moe": "IMoELayer", "attention": "IAttention", "conditional_input": "IIfConditionalInputLayer",
            "conditional_output": "IIfConditionalOutputLayer"}
# What stands for a kind in the name of a layer without one, where it is not the kind's own.
UNNAMED = {"lrn": "LRN", "topk": "TopK", "elementwise": "ElementWise", "nms": "NMS", "moe": "MoE", "kv_cache_update": "KVCacheUpdate",
           "matrix_multiply": "Matrix Multiply", "ragged_softmax": "Ragged SoftMax", "parametric_relu": "Parametric ReLU",
           "attention": "AttentionOutput", "conditional_input": "Input", "conditional_output": "Output"}
# Properties with another name than their parameter; "padding" is pre_padding and post_padding.
RENAMED = {"num_output_maps": "maps", "kernel_size_nd": "kernel_size", "stride_nd": "stride", "dilation_nd": "dilation",
           "num_groups": "groups", "window_size_nd": "window_size", "padding_nd": "padding", "pre_padding_nd": "pre_padding",
           "post_padding_nd": "post_padding", "reshape_dims": "reshape", "resize_mode": "mode", "operation": "op",
           "swiglu_param_limit": "swiglu_limit", "swiglu_param_alpha": "swiglu_alpha", "swiglu_param_beta": "swiglu_beta"}
RENAMED_OF = {("slice", "shape"): "size", ("resize", "shape"): "size", ("fill", "shape"): "dim"}
# The enum of a parameter that is a choice: by its name in all kinds, or in one kind.
ENUM_OF = {"padding_mode": "PaddingMode", "sample_mode": "SampleMode", "interpolation_mode": "InterpolationMode",
           "op0": "MatrixOperation", "op1": "MatrixOperation", "coordinate_transformation": "ResizeCoordinateTransformation",
           "selector_for_single_pixel": "ResizeSelector", "nearest_rounding": "ResizeRoundMode", "norm_op": "AttentionNormalizationOp",
           "causal_kind": "CausalMaskKind", "query_form": "AttentionIOForm", "key_value_form": "AttentionIOForm",
           "bounding_box_format": "BoundingBoxFormat", "cache_mode": "KVCacheMode", "activation_type": "MoEActType",
           ("trip_limit", "kind"): "TripLimit", ("loop_output", "kind"): "LoopOutput",
           ("activation", "type"): "ActivationType", ("pooling", "type"): "PoolingType", ("elementwise", "op"): "ElementWiseOperation",
           ("unary", "op"): "UnaryOperation", ("reduce", "op"): "ReduceOperation", ("topk", "op"): "TopKOperation",
           ("scale", "mode"): "ScaleMode", ("gather", "mode"): "GatherMode", ("scatter", "mode"): "ScatterMode",
           ("slice", "mode"): "SampleMode", ("resize", "mode"): "InterpolationMode", ("fill", "op"): "FillOperation",
           ("cumulative", "op"): "CumulativeOperation"}


def to_parameter(value):
    """A value of upstream's as the parameter takes it."""
    if isinstance(value, Weights):
        return value.tensor
    if isinstance(value, DataType):
        return FROM_TRT[value]
    return value


def parameter_of(kind, name):
    """The parameters that the property `name` of a kind stands for."""
    parameter = RENAMED_OF.get((kind, name)) or RENAMED.get(name, name)
    return ("pre_padding", "post_padding") if parameter == "padding" else (parameter,)


def layer_property(kind, name):
    """The property `name` of a class of layers."""
    parameters = parameter_of(kind, name)

    def set(self, value):
        for each in parameters:
            self._put(each, to_parameter(value))
    def get(self):
        # A node of a model that no kind of layer stands for has a LayerType at least.
        return ILayer.type.fget(self) if name == "type" and self.kind_name == "op" else layer_value(self, parameters[0])
    return property(get, set)


def shown_weights(weights):
    """A flat array that shares the memory, as upstream shows weights; Weights of types that NumPy lacks."""
    try:
        return weights.numpy()
    except TypeError:
        return weights


def layer_value(self, parameter):
    value, rows, k = self._get(parameter), self.layer.parameters(), _abi.ParamKind
    kind = rows[parameter][0]
    if kind == k.CHOICE:
        enum = ENUM_OF.get((self.kind_name, parameter)) or ENUM_OF[parameter]
        return getattr(_names, enum)[value.upper()]
    if kind == k.TYPE:
        return to_trt(value, self.name) if value else None
    if kind == k.WEIGHTS:
        return shown_weights(Weights() if value is None else Weights(value))
    if kind == k.INTS:
        spatial = "kernel_size" if "kernel_size" in rows else "window_size"
        if not value and parameter in ("stride", "dilation", "pre_padding", "post_padding") and spatial in rows:
            value = [1 if parameter in ("stride", "dilation") else 0] * len(self.layer.get(spatial))
        return Dims(value)
    return value


def class_name(kind):
    return CLASS_OF.get(kind) or "I" + "".join(p.capitalize() for p in kind.split("_")) + "Layer"


def layer_classes():
    """The classes of layers by name, and the class of each kind."""
    by_name, by_kind = {}, {}
    members = dict(_names.rows(_names.CLASSES))
    for kind in (k.name.lower() for k in _abi.LayerKind):
        name = class_name(kind)
        if name not in members:
            continue
        rows = kind_parameters(_abi.LayerKind[kind.upper()])
        body = {m: layer_property(kind, m) for m in members[name] if all(p in rows for p in parameter_of(kind, m))}
        by_kind[kind] = by_name[name] = type(name, (BOUNDARY.get(kind, ILayer),), dict(body, **EXTRA.get(kind, {}), __module__="sinter.tensorrt"))
    return by_name, by_kind


BY_NAME, BY_KIND = layer_classes()
for _name, _type in (("IPluginV2Layer", LayerType.PLUGIN_V2), ("IPluginV3Layer", LayerType.PLUGIN_V3)):
    BY_NAME[_name] = type(_name, (ILayer,), {"__module__": "sinter.tensorrt", "plugin": None, "layer_type": _type})
BY_KIND["plugin"] = BY_NAME["IPluginV3Layer"]


def make_method(name, kind, words):
    arguments = []
    for word in words:
        head, equals, default = word.partition("=")
        argument, _, role = head.partition(":")
        given = None if default == "" else int(default) if default.isdigit() else DataType[default]
        arguments.append((argument, role or argument, bool(equals), given))

    def method(self, *values, **named):
        if len(values) > len(arguments):
            raise TypeError(f"add_{name} takes {len(arguments)} arguments, not {len(values)}")
        given = dict(zip((a[0] for a in arguments), values))
        for key, value in named.items():
            if key in given or key not in (a[0] for a in arguments):
                raise TypeError(f"add_{name} takes {', '.join(a[0] for a in arguments)}; '{key}' is not one of them, or was given twice")
            given[key] = value
        tensors, parameters = [], {}
        for argument, role, is_optional, default in arguments:
            if argument not in given and not is_optional:
                raise TypeError(f"add_{name} needs '{argument}'")
            value = given.get(argument, default)
            if role == "t":
                tensors.append(None if value is None and is_optional else tensor_of(value, f"add_{name}", argument))
            elif role == "l":
                tensors += [tensor_of(t, f"add_{name}", argument) for t in value]
            elif role == "is_causal":
                parameters["causal_kind"] = causal_kind(value)
            elif role == "blocks":
                parameters.update(blocks(value))
            elif value is not None:
                parameters[role] = to_parameter(value)
        while tensors and tensors[-1] is None:
            tensors.pop()
        layer = self._add(kind, tensors, parameters)
        layer.added_by = name
        return layer
    method.__name__ = f"add_{name}"
    method.__doc__ = f"Adds a layer: add_{name}({', '.join(a[0] for a in arguments)})."
    return logged(method)


def methods():
    return {f"add_{name}": make_method(name, words[0], words[1:]) for name, words in _names.rows(METHODS)}


class IFullyConnectedLayer(BY_NAME["IConvolutionLayer"]):
    """A convolution whose window is the whole of its input."""
    num_output_channels = layer_property("convolution", "num_output_maps")


class INetworkDefinition(NetworkDefinition):
    """A network: OnnxParser fills it, layers are added and changed: add_NAME for each row of METHODS, add_loop, add_if_conditional."""
    LAYERS = BY_KIND

    def _add(self, kind, tensors, parameters):
        self._take_batch(kind, tensors, parameters)
        if self._hidden:
            tensors, parameters = _batch.prepared(self._net, kind, tensors, parameters)
        if kind == "constant":
            shape, value = tuple(int(d) for d in parameters["shape"]), parameters["weights"]
            if value is None and 0 in shape:
                value = Tensor(b"", _abi.Dtype.F32, (0,))
            value = value if isinstance(value, Tensor) else Tensor(value)
            # An array of the same number of elements takes the shape that is given.
            layer = self._net.add_constant(Tensor._make(value.dtype, shape, value.data, value.place, value)).producer
            parameters = {"weights": value}
        else:
            layer = self._net.add(kind, *tensors, **parameters)
        for name, value in parameters.items():
            if layer.parameters()[name][0] == _abi.ParamKind.WEIGHTS and value is not None:
                self._weights[address_of(value)] = layer, name
        return self._add_named(layer)

    def _add_named(self, layer):
        kind = layer.kind.name.lower()
        return self._wrap_layer(self._named(layer, UNNAMED.get(kind) or "".join(p.capitalize() for p in kind.split("_"))))

    @logged
    def add_concatenation(self, inputs):
        """Joins tensors along ILayer.axis, which is max(0, rank - 3) as upstream until it is set: the channels of NCHW."""
        tensors = [tensor_of(t, "add_concatenation", "inputs") for t in inputs]
        return self._add("concatenation", tensors, {"axis": max(0, len(inputs[0].shape) - 3) if tensors else 0})

    @logged
    def add_fully_connected(self, input, num_outputs, kernel, bias=None):
        """A product of all elements of a batch's item, [N, C, ...], with a matrix [num_outputs, C * ...]: [N, num_outputs, 1, ...]."""
        front = 2 if self._is_explicit or len(input.tensor.shape) > 3 else 1              # without a batch: it is implicit
        parameters = {"maps": num_outputs, "kernel_size": tuple(input.tensor.shape[front:]), "kernel": to_parameter(kernel),
                      "bias": to_parameter(bias)}
        made = self._add("convolution", [input.tensor], {name: value for name, value in parameters.items() if value is not None})
        self._made[made.layer] = found = IFullyConnectedLayer(self, made.layer)
        found.layer_type = LayerType.FULLY_CONNECTED
        self._named(made.layer, "Fully Connected")
        return found

    def add_rnn_v2(self, input, layer_count, hidden_size, max_seq_length, op):
        """A stack of recurrent layers over input [N, S, E]. Weights are set for each layer and gate; NumPy is needed."""
        made = IRNNv2Layer(self, input, layer_count, hidden_size, max_seq_length, op)
        self._made[made.layer] = made
        return made

    def _add_plugin(self, name, tensors, plugin, kind, outputs, **fields):
        tensors = [t.tensor for t in tensors]
        layer = plugin.add_to(self._net, tensors) if name is None else self._net.add_plugin(name, *tensors, outputs=outputs, **fields)
        self._made[layer] = found = BY_NAME[kind](self, layer)
        found.plugin = plugin
        self._named(layer, "PluginV2DynamicExt" if kind == "IPluginV2Layer" else "PluginV3_V3ONE")
        return found

    def add_plugin_v2(self, inputs, plugin):
        """Adds a layer that calls an IPluginV2DynamicExt."""
        if isinstance(plugin, ShippedPlugin):
            return self._add_plugin(None, inputs, plugin, "IPluginV2Layer", plugin.num_outputs)
        name, fields = self._bridges.live(plugin)
        return self._add_plugin(name, inputs, plugin, "IPluginV2Layer", int(plugin.num_outputs), **fields)

    def add_plugin_v3(self, inputs, shape_inputs, plugin):
        """Adds a layer that calls an IPluginV3."""
        if shape_inputs:
            raise NotAvailable(f"add_plugin_v3 with {len(shape_inputs)} shape inputs is not available: sizes of a plugin's outputs follow from "
                               "the sizes of its inputs")
        if isinstance(plugin, ShippedPlugin):
            return self._add_plugin(None, inputs, plugin, "IPluginV3Layer", plugin.num_outputs)
        name, fields = self._bridges.live(plugin)
        return self._add_plugin(name, inputs, plugin, "IPluginV3Layer", int(part(plugin, BUILD).num_outputs), **fields)

    def add_plugin(self, func, aot=None):
        """Adds a layer for a call of tensorrt.plugin.op. aot: the kernel of trtp.aot_impl, or not; None: what the network's flags prefer,
        where the plugin has both."""
        definition = func.definition
        is_aot = definition.is_aot(aot, self.get_flag(NetworkDefinitionCreationFlag.PREFER_AOT_PYTHON_PLUGINS))
        self._bridges.current()
        count = definition.count_outputs([(len(t.shape), t.dtype) for t in func.tensors], func.attributes)
        return self._add_plugin(definition.name, func.tensors, func, "IPluginV3Layer", count, version="1", namespace=definition.namespace,
                                **func.attributes, **{IS_AOT: int(is_aot)})

    def add_loop(self):
        if self._hidden:
            _batch.refuse("loop")
        return ILoop(self, self._net.add_loop())

    def add_if_conditional(self):
        return IIfConditional(self, self._net.add_conditional())


for _name, _method in methods().items():
    setattr(INetworkDefinition, _name, _method)
