# SPDX-License-Identifier: Apache-2.0
"""Networks: tensors, layers, and what can be asked. OnnxParser fills a network, or scripts add layers (_layers.py)."""
import contextlib
import functools
import math

from .. import _build
from .._abi import Dtype, LayerKind, ParamKind
from .._calibration import calibrate
from .._library import Cancelled, Error, lib
from .._network import Layer, Network
from .._tensor import Tensor
from . import _batch
from ._core import (DEBUG, FROM_TRT, IMPLICIT, UNFUSED, VALUES, Dims, Managed, NotAvailable, Reporter, Weights, strict, to_trt)
from ._plugin_bridge import Bridges
from ._formats import layout_of, put_shape, said, stored
from ._names import DataType, LayerType, NetworkDefinitionCreationFlag, Severity, TensorFormat, TensorLocation

PRODUCTS = (LayerKind.CONVOLUTION, LayerKind.MATRIX_MULTIPLY)



def kept(name, initial):
    return property(lambda self: self.network._kept.get((self.tensor, name), initial),
                    lambda self, value: self.network._kept.__setitem__((self.tensor, name), value))


@strict
class ITensor:
    """A tensor of a network."""
    ATTRIBUTES = "is_network_output is_network_input"
    is_execution_tensor = True
    is_shape_tensor = property(lambda self: self.tensor in self.network._shape_tensors())

    def __init__(self, network, tensor):
        self.network, self.tensor = network, tensor

    # What the network keeps of a tensor: objects of it are made anew by every call.
    allowed_formats = kept("allowed_formats", 1 << int(TensorFormat.LINEAR))
    location = kept("location", TensorLocation.DEVICE)
    broadcast_across_batch = kept("broadcast_across_batch", False)

    name = property(lambda self: self.tensor.name, lambda self, name: setattr(self.tensor, "name", name))
    shape = property(lambda self: Dims(self.tensor.shape[self.network._hidden:]), lambda self, shape: self._set_shape(shape))
    _quantized = kept("is_quantized", False)                # floats that lie in memory as INT8, with the scale of their range
    dtype = property(lambda self: DataType.INT8 if self._quantized else to_trt(self.tensor.dtype, self.name),
                     lambda self, dtype: self._set_type(dtype))
    is_network_input = property(lambda self: self.tensor.is_input)
    is_network_output = property(lambda self: self.tensor.is_output)

    def _set_shape(self, shape):
        self.tensor.shape = (*self.tensor.shape[:self.network._hidden], *shape)

    def _set_type(self, dtype):
        """Of an input its type; of another tensor the type behind its layer. In a network that is not strongly typed, INT8 of a tensor of
        floats says how the script's memory has it."""
        self._quantized, producer = quantises(self.network, dtype, self.tensor), self.tensor.producer
        if self._quantized:
            return
        if self.tensor.is_input:
            self.tensor.dtype = FROM_TRT[dtype]
            return
        self.network._wrap_layer(producer).set_output_type([t.handle for t in producer.outputs].index(self.tensor.handle), dtype)

    def get_dimension_name(self, index):
        """The name that was given; the library's has other characters where a name is no word."""
        return self.network._kept.get((self.tensor, index)) or self.tensor.dim_names[index] or ""

    def set_dimension_name(self, index, name):
        self.tensor.set_dim_name(index, name)
        self.network._kept[self.tensor, index] = name

    @property
    def dynamic_range(self):
        """(min, max) of what INT8 holds of the tensor, or None. As upstream, the larger magnitude counts for both signs."""
        return self.network._ranges.get(self.tensor)

    @dynamic_range.setter
    def dynamic_range(self, value):
        least, most = map(float, value)
        if not (math.isfinite(least) and math.isfinite(most) and least <= most and (least, most) != (0, 0)):
            raise ValueError(f"the dynamic range of '{self.name}' is {value!r}: two finite numbers are wanted, min <= max, not both 0")
        self.network._ranges[self.tensor] = least, most

    def set_dynamic_range(self, min, max):
        """True: the range was taken."""
        try:
            self.dynamic_range = min, max
        except (TypeError, ValueError):
            return False
        return True

    def reset_dynamic_range(self):
        self.network._ranges.pop(self.tensor, None)

    def __eq__(self, other):
        return isinstance(other, ITensor) and self.tensor == other.tensor

    def __hash__(self):
        return hash(self.tensor)

    def __repr__(self):
        return f"<sinter.tensorrt.ITensor '{self.name}'>"


@strict
class ILayer:
    """A layer of a network. An operator of a model that is no layer of one kind has the type of the layer that upstream's parser makes of
    it, or IDENTITY; `operator` is what ONNX calls it."""
    ATTRIBUTES = "name metadata type"
    num_ranks = 1

    def __init__(self, network, layer):
        self.network, self.layer = network, layer
        self.kind_name = self.added_by = layer.kind.name.lower()
        self.layer_type = type(self).layer_type

    # Of IActivationLayer and IPoolingLayer `type` is their function, as upstream has it.
    type = property(lambda self: self.layer_type or LayerType.__members__.get(self.layer.nearest_kind.name, LayerType.IDENTITY))
    layer_type = None           # of layers whose kind has another name upstream
    name = property(lambda self: self.layer.name, lambda self, name: setattr(self.layer, "name", name))
    metadata = property(lambda self: self.layer.metadata, lambda self, text: setattr(self.layer, "metadata", text))
    num_inputs = property(lambda self: len(self.layer.inputs))
    num_outputs = property(lambda self: len(self.layer.outputs))

    _kept_types = property(lambda self: self.network._kept.setdefault((self.layer, "output types"), {}))
    _other_precision = None     # INT8 or another type that is no constraint here
    precision_is_set = property(lambda self: self.layer.precision is not None or self._other_precision is not None)

    @property
    def precision(self):
        """What the layer is computed in: FLOAT, HALF or BF16, and INT8 of convolutions and matrix products; BuilderFlag says whether it is
        obeyed. Other types, and INT8 of other layers, are kept, with a warning: 8 bits come of ranges, or of the layers that
        quantise."""
        if self._other_precision is not None:
            return self._other_precision
        return DataType.FLOAT if self.layer.precision is None else to_trt(self.layer.precision, self.name)

    @precision.setter
    def precision(self, dtype):
        is_taken = dtype in (DataType.FLOAT, DataType.HALF, DataType.BF16) or dtype == DataType.INT8 and self.layer.kind in PRODUCTS
        self.layer.precision = FROM_TRT[dtype] if is_taken else None
        self._other_precision = None if is_taken else DataType(dtype)
        if not is_taken:
            self.network.say(Severity.WARNING, f"the precision {self._other_precision.name} of layer '{self.name}' changes nothing: FLOAT, HALF "
                                               "and BF16 are constraints, INT8 is one of convolutions and matrix products")

    def _check(self, parameter):
        """A node of a model that no kind of layer stands for has no parameters, whatever its __class__ was set to."""
        if parameter not in self.layer.parameters():
            raise AttributeError(f"layer '{self.name}' is the operator {self.operator} of the model, with inputs or attributes that a "
                                 f"{type(self).__name__} does not have: '{parameter}' cannot be read or set")

    def _put(self, parameter, value):
        """Sets a parameter, to what the script says of axes behind an implicit batch."""
        self._check(parameter)
        if not self.network._hidden:
            self.layer.set(parameter, value)
        elif (self.kind_name, parameter) == ("resize", "size"):
            self.layer.set_input(1, _batch.batch_and(self.network._net, self.layer.inputs[0], value))
        else:
            self.layer.set(parameter, _batch.given(self.kind_name, parameter, value))

    def _get(self, parameter):
        self._check(parameter)
        value = self.layer.get(parameter)
        return _batch.shown(self.kind_name, parameter, value) if self.network._hidden else value

    def reset_precision(self):
        self.layer.precision = self._other_precision = None

    @property
    def operator(self):
        return self.layer.operator[1] if self.kind_name == "op" else None

    def get_input(self, index):
        found = self.layer.inputs
        return self.network._wrap(found[index]) if index < len(found) else None

    def get_output(self, index):
        found = self.layer.outputs
        return self.network._wrap(found[index]) if index < len(found) else None

    def set_input(self, index, tensor):
        self.layer.set_input(index, None if tensor is None else tensor.tensor)

    def set_output_type(self, index, dtype):
        """The type of an output. As upstream, a strongly typed network refuses it by a message alone. INT8 of a layer that computes with
        floats is kept, as a precision is."""
        self._kept_types.pop(index, None)
        if quantises(self.network, dtype, self.layer.outputs[index]):
            self._kept_types[index] = DataType(dtype)
            self.network.say(Severity.WARNING, f"the output type INT8 of layer '{self.name}' changes nothing: 8 bits come of ranges, or of layers "
                                               "that quantise")
            return
        try:
            self.layer.set_output_type(index, FROM_TRT[dtype])
        except Error as e:
            self.network.fail(e)

    def get_output_type(self, index):
        return self._kept_types.get(index) or to_trt(self.layer.output_type(index) or self.layer.outputs[index].dtype, self.name)

    def output_type_is_set(self, index):
        return index in self._kept_types or self.layer.output_type(index) is not None

    def reset_output_type(self, index):
        self._kept_types.pop(index, None)
        self.layer.set_output_type(index, None)

    def __eq__(self, other):
        return isinstance(other, ILayer) and self.layer == other.layer

    def __hash__(self):
        return hash(self.layer)


# How outputs after the first are told apart, where it is not by a number in parentheses; of plugins the first, too.
NTH = {word: "_{}" for word in ("DynamicQuantize", "PluginV2DynamicExt", "PluginV3_V3ONE")}
# The inputs of layers, and of ONNX's operators, whose values are sizes.
SIZES = {"shuffle": (1,), "resize": (1,), "slice": (1, 2, 3), "fill": (0,), "trip_limit": (0,), "loop_output": (1,), "Reshape": (1,),
         "Expand": (1,), "Tile": (1,), "Resize": (3,), "Slice": (1, 2, 4), "ConstantOfShape": (0,), "Range": (0, 1, 2), "Pad": (1,)}


def logged(method, network=lambda self: self):
    """A method of a network, or of a part of one: as upstream, what the library refuses is an error for the logger, and None is the result."""
    @functools.wraps(method)
    def call(self, *values, **named):
        try:
            return method(self, *values, **named)
        except Error as e:
            return network(self).fail(e)
    return call


def tensor_of(value, call, argument):
    """The library's tensor of an ITensor. As upstream, anything else is a TypeError."""
    if not isinstance(value, ITensor):
        raise TypeError(f"{call}(): argument '{argument}' is a {type(value).__name__}, an ITensor is wanted")
    return value.tensor


def quantises(network, dtype, tensor):
    """Is it INT8 for a tensor of floats, which its range quantises?"""
    made_by = None if tensor.producer is None else tensor.producer.kind
    return dtype == DataType.INT8 and tensor.dtype in (Dtype.F32, Dtype.F16, Dtype.BF16) and not network._net.strongly_typed and \
        made_by not in (LayerKind.QUANTIZE, LayerKind.CAST)


def address_of(weights):
    """Where the elements of weights lie: of the caller's memory, by which set_weights_name knows them."""
    tensor = weights.tensor if isinstance(weights, Weights) else Tensor(weights)
    return None if tensor is None else tensor.data


@strict
class NetworkDefinition(Managed, Reporter):
    """A network: OnnxParser fills it, layers are added and changed."""
    ATTRIBUTES = "builder flags"
    has_implicit_batch_dimension = property(lambda self: self._hidden != 0)
    has_explicit_precision = False
    LAYERS = {}                         # kind -> class

    def __init__(self, builder, flags):
        self.builder, self.flags, self.logger, self._maker = builder, flags, builder.logger, builder
        self._restart()

    def _restart(self):
        """Begins with an empty network."""
        self._bridges = Bridges(is_runtime=False)
        self._net = Network(plugins=self._bridges.plugins)
        self._net.strongly_typed = self.get_flag(NetworkDefinitionCreationFlag.STRONGLY_TYPED)
        self._made, self._ranges, self._weights, self._refittable, self._debug = {}, {}, {}, set(), []
        self._stale, self._has_window = {}, False           # _stale: layers with weights that are not in the network yet
        self._marks_unfused, self._hidden = False, 0        # 1: axis 0 of each tensor is an implicit batch
        self.name, self._sized, self._kept = "Unnamed Network 0", None, {}

    def get_flag(self, flag):
        if flag == NetworkDefinitionCreationFlag.EXPLICIT_BATCH:
            return not self._hidden
        return bool(self.flags >> int(flag) & 1)

    name = property(lambda self: self._net.name, lambda self, name: setattr(self._net, "name", name))

    def _wrap(self, tensor):
        return None if tensor is None else ITensor(self, tensor)

    def _wrap_layer(self, layer):
        """The object of a layer: one for each, since scripts set attributes on them."""
        if layer not in self._made:
            self._made[layer] = self.LAYERS.get(layer.kind.name.lower(), ILayer)(self, layer)
        return self._made[layer]

    def _named(self, layer, word):
        """Gives a layer that was just added the name that upstream gives, and its outputs theirs: calibration caches and scripts know
        tensors by them."""
        name = f"(Unnamed Layer* {lib.sinter_network_layer_count(self._net.handle) - 1}) [{word}]"
        layer.name = name
        for i, output in enumerate(layer.outputs):
            output.name = f"{name}_output" + NTH.get(word, " ({})").format(i) * (i > 0 or word.startswith("Plugin"))
        return layer

    # ---- building ----

    def _profiles(self, profiles):
        inputs = {io.name: io for io in _build.model_inputs(self._net) if io.is_input}
        if self._hidden:
            most = self.builder.max_batch_size
            return [{name: tuple((n, *io.shape[1:]) for n in (1, most, most)) for name, io in inputs.items()}]
        made = []
        for shapes in profiles or [{}]:
            ranges = {}
            for name, io in inputs.items():
                if name in shapes:
                    ranges[name] = tuple(tuple(s) for s in shapes[name])
                elif -1 in io.shape:
                    raise ValueError(f"input '{name}' has the shape {Dims(io.shape)}, and no optimization profile has a range for it: "
                                     "IOptimizationProfile.set_shape, then IBuilderConfig.add_optimization_profile")
            for name in shapes:
                if name not in inputs:
                    raise ValueError(f"the optimization profile names '{name}', which is no input: {', '.join(inputs)}")
            made.append(ranges)
        return [p for p in made if p] or None

    def _problem(self):
        """The exception with which the import of the network fails, or None."""
        self._refresh()
        free = {n for t in self._net.inputs for n in t.dim_names if n}

        def only_import(phase, done):
            return phase != "import"
        try:
            _build.build(self._net, tune="off", profiles={n: (1, 64, 4096) for n in free} or None, progress=only_import,
                         plugins=self._bridges.current())
        except Cancelled:
            return None
        except Error as e:
            return e
        return None

    def _build(self, options, profiles=()):
        """A plan. profiles: the IOptimizationProfiles, whose values of inputs the engine tells."""
        self._refresh()
        texts = [f"{VALUES}{i} {';'.join(','.join(map(str, v)) for v in values)} {name}" for i, p in enumerate(profiles)
                 for name, values in p.values.items()]
        with said(self._net, texts + [IMPLICIT] * self._hidden):
            return self._build_stored(options)

    def _build_stored(self, options):
        layouts = {tensor: layout_of(tensor, value) for (tensor, name), value in self._kept.items()
                   if name == "allowed_formats" and (tensor.is_input or tensor.is_output)}
        layouts = {tensor: layout for tensor, layout in layouts.items() if layout is not None}
        scales = {tensor: self._scale(tensor, options) for (tensor, name), value in self._kept.items()
                  if name == "is_quantized" and value and (tensor.is_input or tensor.is_output)}
        if not layouts and not scales:
            return self._build_plain(options)
        by_name = {tensor.name: layout for tensor, layout in layouts.items()}
        profiles = [{name: tuple(by_name[name].stored(s) for s in shapes) if name in by_name else shapes for name, shapes in profile.items()}
                    for profile in options["profiles"] or ()]
        with self._plain_outputs(), stored(self._net, layouts, scales):
            return self._build_plain(dict(options, profiles=profiles or None))

    def _scale(self, tensor, options):
        """What a unit of an INT8 input or output stands for."""
        most = {**dict(options.get("calibration") or {}), **self._dynamic_ranges()}.get(tensor.name)
        if most is None:
            raise ValueError(f"tensor '{tensor.name}' has the type INT8 and no range: ITensor.dynamic_range, or a calibrator with BuilderFlag.INT8")
        return most / 127

    def _build_plain(self, options):
        marks = [(DEBUG, tensor) for tensor in self._debug]
        plan = self._build_marked(marks, options)
        if not self._marks_unfused:
            return plan
        return self._build_marked(marks + [(UNFUSED, tensor) for tensor in self._between_steps(plan)], options)

    def _build_marked(self, marks, options):
        with self._marked_outputs(marks), self._plain_outputs():
            return _build.build(self._net, plugins=self._bridges.current(), **options)

    def _between_steps(self, plan):
        """The tensors that the steps of an engine write for each other, but for debug tensors."""
        engine = plan.load(no_device=True, plugins=self._bridges.current())
        return [tensor for tensor in self._net.unfused(engine) if tensor not in self._debug]

    @contextlib.contextmanager
    def _marked_outputs(self, marks):
        """Debug tensors are outputs of the engine, by a name that says what they are; the network has them during a build alone."""
        made = []
        try:
            for mark, tensor in marks:
                made.append(self._net.add("identity", tensor))
                made[-1].output.name = mark + tensor.name
                self._net.mark_output(made[-1].output)
            yield
        finally:
            for layer in made:
                self._net.mark_output(layer.output, False)
                self._net.remove(layer)

    @contextlib.contextmanager
    def _plain_outputs(self):
        """As upstream, what a dynamic quantization gives is FLOAT as an output of the engine, with the values of the narrow type, unless
        types are strong or a script has set the output's."""
        outputs, made = self._net.outputs, []
        narrow = [t for t in outputs if t.producer is not None and t.producer.kind == LayerKind.DYNAMIC_QUANTIZE and t.dtype != Dtype.F32 and
                  t.producer.output_type([o.handle for o in t.producer.outputs].index(t.handle)) is None and not self._net.strongly_typed]
        try:
            for tensor in outputs if narrow else ():
                self._net.mark_output(tensor, False)
            for tensor in outputs if narrow else ():
                name = tensor.name
                if tensor in narrow:
                    tensor.name = name + " [narrow]"
                    made.append((tensor, name, self._net.add("cast", tensor, to_type=Dtype.F32)))
                    made[-1][2].output.name = name
                self._net.mark_output(made[-1][2].output if tensor in narrow else tensor)
            yield
        finally:
            for tensor in self._net.outputs if narrow else ():
                self._net.mark_output(tensor, False)
            for tensor, name, layer in made:
                self._net.remove(layer)
                tensor.name = name
            for tensor in outputs if narrow else ():
                self._net.mark_output(tensor)

    def _refresh(self):
        for layer in list(self._stale):
            layer._make()

    def _calibrate(self, batches, **options):
        self._refresh()
        return calibrate(self._net, batches, **options)

    def _dynamic_ranges(self):
        """name -> the largest magnitude, of tensors whose range was set."""
        return {tensor.name: max(map(abs, both)) for tensor, both in self._ranges.items()}

    def _is_quantized(self):
        return any(layer.kind in (LayerKind.QUANTIZE, LayerKind.DEQUANTIZE) or
                   layer.kind == LayerKind.OP and layer.operator[1].lower().endswith("quantizelinear") for layer in self._net.layers)

    def _shape_tensors(self):
        """The tensors whose values sizes are computed from: integers without an axis, or with one."""
        layers = self._net.layers
        if self._sized is None or self._sized[0] != len(layers):
            found = set()
            for layer in reversed(layers):
                operator, inputs = layer.kind.name.lower(), layer.inputs
                operator = layer.operator[1] if operator == "op" else operator
                if operator in ("shape", "constant", "Shape", "Size"):
                    continue
                places = range(len(inputs)) if any(t in found for t in layer.outputs) else SIZES.get(operator, ())
                for i in places:
                    if i < len(inputs) and inputs[i] is not None and inputs[i].dtype in (Dtype.I32, Dtype.I64) and len(inputs[i].shape) < 2:
                        found.add(inputs[i])
            self._sized = len(layers), found
        return self._sized[1]

    # ---- inputs and outputs ----

    @logged
    def add_input(self, name, dtype, shape):
        """An input; -1 is a free size, for which optimization profiles give ranges. A network without EXPLICIT_BATCH has an implicit
        batch if the builder was given a max_batch_size, as TensorRT 10's cannot be."""
        if not self.num_inputs and not self._is_explicit and "max_batch_size" in self.builder.__dict__:
            self._hidden = 1
        dims, names = tuple(shape), (None,) * len(tuple(shape))
        if self._hidden:
            dims, names = (-1, *dims), ("batch", *names)
        return self._wrap(self._net.add_input(name, FROM_TRT[dtype], dims, names))

    _is_explicit = property(lambda self: bool(self.flags >> int(NetworkDefinitionCreationFlag.EXPLICIT_BATCH) & 1))

    def _take_batch(self, kind, tensors, parameters):
        """If the first window of two axes has an input [C, H, W], the network has an implicit batch, unless it was made with another one."""
        if self._has_window or kind not in _batch.WINDOWS:
            return
        self._has_window = True
        if not self._hidden and not self._is_explicit and _batch.is_one_axis_short(kind, tensors, parameters) and \
                all(layer.kind.name.lower() in _batch.ANY_RANK for layer in self._net.layers):
            self._hidden = 1
            for tensor in self._net.inputs:
                put_shape(tensor, (-1, *tensor.shape), ("batch", *tensor.dim_names))

    @logged
    def mark_output(self, tensor):
        self._net.mark_output(tensor_of(tensor, "mark_output", "tensor"))

    @logged
    def unmark_output(self, tensor):
        self._net.mark_output(tensor_of(tensor, "unmark_output", "tensor"), False)

    def mark_debug(self, tensor):
        """Hands the tensor to the debug listener of a context, after each run for which its state is on."""
        if not self.is_debug_tensor(tensor):
            self._debug.append(tensor.tensor)
        return True

    def unmark_debug(self, tensor):
        if not self.is_debug_tensor(tensor):
            return False
        self._debug.remove(tensor.tensor)
        return True

    def is_debug_tensor(self, tensor):
        return tensor.tensor in self._debug

    def mark_unfused_tensors_as_debug_tensors(self):
        """Hands what lies between the steps of the engine to the debug listener, while IExecutionContext.unfused_tensors_debug_state is
        true. Which tensors these are a first build finds; the second one keeps them."""
        self._marks_unfused = True
        return True

    def unmark_unfused_tensors_as_debug_tensors(self):
        self._marks_unfused = False
        return True

    def mark_output_for_shapes(self, tensor):
        """Any tensor can be an output: the same as mark_output."""
        self._net.mark_output(tensor.tensor)
        return True

    def unmark_output_for_shapes(self, tensor):
        self._net.mark_output(tensor.tensor, False)
        return True

    @logged
    def remove_tensor(self, tensor):
        """Removes an input that nothing reads."""
        self._net.remove(tensor.tensor)

    def set_weights_name(self, weights, name):
        """The name under which a refit finds weights that were given to a layer, or that a layer shows."""
        address = address_of(weights)
        found = self._weights.get(address) or self._shown_weights(address)
        if address is None or found is None:
            return False
        layer, parameter = found
        layer.set_weights_name(parameter, name)
        return True

    def _shown_weights(self, address):
        """(layer, parameter) of weights at an address of the network's own copies."""
        for layer in self._net.layers:
            for name, row in layer.parameters().items():
                shown = getattr(layer, name) if row[0] == ParamKind.WEIGHTS else None
                if shown is not None and shown.data == address:
                    return layer, name
        return None

    def mark_weights_refittable(self, name):
        """With BuilderFlag.REFIT_INDIVIDUAL the weights that are marked can be replaced, and no others."""
        self._refittable.add(name)
        return True

    def unmark_weights_refittable(self, name):
        self._refittable.discard(name)
        return True

    def are_weights_marked_refittable(self, name):
        return name in self._refittable

    # ---- what scripts ask ----

    num_inputs = property(lambda self: len(self._net.inputs))
    num_outputs = property(lambda self: len(self._net.outputs))
    num_layers = property(lambda self: lib.sinter_network_layer_count(self._net.handle))

    def get_input(self, index):
        found = self._net.inputs
        return self._wrap(found[index]) if 0 <= index < len(found) else None

    def get_output(self, index):
        found = self._net.outputs
        return self._wrap(found[index]) if 0 <= index < len(found) else None

    def _plain(self, layer):
        """A layer as upstream hands it out again: an ILayer, whose `type` is a LayerType. Its __class__ can be set to the class of its
        kind. It shares its attributes with the object that add_NAME gave."""
        made = ILayer.__new__(ILayer)
        made.__dict__ = self._wrap_layer(layer).__dict__
        return made

    def get_layer(self, index):
        found = lib.sinter_network_layer(self._net.handle, index + self.num_layers if index < 0 else index)
        if not found:
            raise IndexError(f"there is no layer {index}: the network has {self.num_layers}")
        return self._plain(Layer(self._net, found))

    def __len__(self):
        return self.num_layers

    def __getitem__(self, index):
        return self.get_layer(index)

    def __iter__(self):
        return iter([self._plain(layer) for layer in self._net.layers])
