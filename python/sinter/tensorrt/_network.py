# SPDX-License-Identifier: Apache-2.0
"""Networks: what OnnxParser reads, or what scripts make by calls (_layers.py)."""
import mmap
import os

from .. import _build
from .._library import Cancelled, Error, InvalidArgument
from ._core import FROM_TRT, Dims, Managed, Reporter, to_trt
from ._names import DataType, LayerType, NetworkDefinitionCreationFlag, TensorFormat, TensorLocation

# ONNX's operators by the layer that upstream makes of them; all others are IDENTITY here, since only names are shown.
LAYERS = {"Conv": "CONVOLUTION", "ConvTranspose": "DECONVOLUTION", "MaxPool": "POOLING", "AveragePool": "POOLING",
          "GlobalAveragePool": "REDUCE", "GlobalMaxPool": "REDUCE", "Relu": "ACTIVATION", "Sigmoid": "ACTIVATION",
          "Tanh": "ACTIVATION", "LeakyRelu": "ACTIVATION", "Elu": "ACTIVATION", "Selu": "ACTIVATION", "Clip": "ACTIVATION",
          "Softplus": "ACTIVATION", "Gelu": "ACTIVATION", "HardSigmoid": "ACTIVATION", "Softmax": "SOFTMAX",
          "Add": "ELEMENTWISE", "Sub": "ELEMENTWISE", "Mul": "ELEMENTWISE", "Div": "ELEMENTWISE", "Pow": "ELEMENTWISE",
          "Max": "ELEMENTWISE", "Min": "ELEMENTWISE", "And": "ELEMENTWISE", "Or": "ELEMENTWISE", "Xor": "ELEMENTWISE",
          "Equal": "ELEMENTWISE", "Less": "ELEMENTWISE", "Greater": "ELEMENTWISE", "MatMul": "MATRIX_MULTIPLY",
          "Gemm": "MATRIX_MULTIPLY", "Concat": "CONCATENATION", "Reshape": "SHUFFLE", "Transpose": "SHUFFLE",
          "Flatten": "SHUFFLE", "Slice": "SLICE", "Pad": "SLICE", "Split": "SLICE", "Gather": "GATHER", "GatherND": "GATHER",
          "GatherElements": "GATHER", "ScatterND": "SCATTER", "ScatterElements": "SCATTER", "Shape": "SHAPE", "Cast": "CAST",
          "Constant": "CONSTANT", "TopK": "TOPK", "Resize": "RESIZE", "Upsample": "RESIZE", "Where": "SELECT",
          "QuantizeLinear": "QUANTIZE", "DequantizeLinear": "DEQUANTIZE", "Einsum": "EINSUM", "OneHot": "ONE_HOT",
          "NonZero": "NON_ZERO", "NonMaxSuppression": "NMS", "BatchNormalization": "SCALE", "LRN": "LRN",
          "InstanceNormalization": "NORMALIZATION", "LayerNormalization": "NORMALIZATION",
          "GroupNormalization": "NORMALIZATION", "PRelu": "PARAMETRIC_RELU", "GridSample": "GRID_SAMPLE",
          "Squeeze": "SQUEEZE", "Unsqueeze": "UNSQUEEZE", "CumSum": "CUMULATIVE"}
LAYERS.update({f"Reduce{k}": "REDUCE" for k in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare")})
LAYERS.update({k: "UNARY" for k in ("Exp", "Log", "Sqrt", "Reciprocal", "Abs", "Neg", "Sin", "Cos", "Tan", "Sinh", "Cosh",
                                    "Asin", "Acos", "Atan", "Ceil", "Floor", "Erf", "Not", "Sign", "Round", "IsInf", "IsNaN")})


def messages(data, at, end):
    """(field, start, end) of each field of a protobuf message that has a length; others are skipped."""
    def varint(at):
        value = shift = 0
        while True:
            byte = data[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at
    while at < end:
        key, at = varint(at)
        if key & 7 == 2:
            size, at = varint(at)
            yield key >> 3, at, min(at + size, end)
            at += size
        elif key & 7 == 0:
            at = varint(at)[1]
        else:
            at += 8 if key & 7 == 1 else 4


def nodes_of(data):
    """(operator, name, inputs, outputs) of each node of a model's graph. The model has been read by the library before."""
    found = []
    for field, start, end in messages(data, 0, len(data)):
        if field != 7:
            continue
        for inner, begin, stop in messages(data, start, end):
            if inner != 1:
                continue
            parts = {1: [], 2: [], 3: [], 4: []}
            for k, a, b in messages(data, begin, stop):
                if k in parts:
                    parts[k].append(bytes(data[a:b]).decode(errors="replace"))
            found.append(("".join(parts[4]), "".join(parts[3]), parts[1], parts[2]))
    return found


class ITensor:
    """A tensor of a network."""
    ATTRIBUTES = "is_network_output is_network_input"
    is_shape_tensor = False
    is_execution_tensor = True
    broadcast_across_batch = False
    location = TensorLocation.DEVICE
    allowed_formats = 1 << int(TensorFormat.LINEAR)

    def __init__(self, network, name, io=None, is_output=False):
        self.network, self._name, self._io, self.is_network_output = network, name, io, is_output
        self.is_network_input = io is not None and not is_output
        self._range = None

    @property
    def name(self):
        return self._name

    @property
    def shape(self):
        return Dims(self.network._fixed.get(self._name, self._io.shape if self._io is not None else ()))

    @shape.setter
    def shape(self, shape):
        """Of an input: fixes its sizes; -1 leaves one free."""
        self.network._fixed[self._name] = Dims(shape)

    @property
    def dtype(self):
        return to_trt(self._io.dtype, self._name) if self._io is not None else DataType.FLOAT

    @dtype.setter
    def dtype(self, dtype):
        if FROM_TRT[dtype] != self._io.dtype:
            raise NotImplementedError(f"'{self._name}' has the type that the model gives it, {self.dtype}: add a Cast to the model")

    def get_dimension_name(self, index):
        return (self._io.dim_names[index] or "") if self._io is not None else ""

    @property
    def dynamic_range(self):
        return self._range

    @dynamic_range.setter
    def dynamic_range(self, value):
        self._range = tuple(value)

    def set_dynamic_range(self, min, max):
        self._range = (min, max)
        return True

    def reset_dynamic_range(self):
        self._range = None

    def __repr__(self):
        return f"<sinter.tensorrt.ITensor '{self.name}'>"


class ILayer:
    """A node of the model that was parsed."""
    ATTRIBUTES = "name metadata type"
    num_ranks = 1

    def __init__(self, network, operator, name, inputs, outputs):
        self.network, self.operator, self.name, self.metadata = network, operator, name or (outputs[0] if outputs else operator), name
        self.inputs, self.outputs, self.output_types, self._precision = inputs, outputs, {}, None
        self.type = LayerType[LAYERS.get(operator, "IDENTITY")]

    num_inputs = property(lambda self: len(self.inputs))
    num_outputs = property(lambda self: len(self.outputs))

    def get_input(self, index):
        return self.network._tensor(self.inputs[index]) if index < len(self.inputs) else None

    def get_output(self, index):
        return self.network._tensor(self.outputs[index]) if index < len(self.outputs) else None

    @property
    def precision(self):
        return self._precision or DataType.FLOAT

    @precision.setter
    def precision(self, dtype):
        self._precision = dtype

    precision_is_set = property(lambda self: self._precision is not None)

    def reset_precision(self):
        self._precision = None

    def set_output_type(self, index, dtype):
        self.output_types[index] = dtype

    def get_output_type(self, index):
        return self.output_types.get(index, DataType.FLOAT)

    def output_type_is_set(self, index):
        return index in self.output_types

    def reset_output_type(self, index):
        self.output_types.pop(index, None)


class NetworkDefinition(Managed, Reporter):
    """A network. OnnxParser fills it, or layers are added."""
    ATTRIBUTES = "builder flags name"
    has_implicit_batch_dimension = False
    has_explicit_precision = False

    def __init__(self, builder, flags):
        self.builder, self.flags, self.logger, self.name = builder, flags, builder.logger, "Unnamed Network 0"
        self._model, self._parsed, self._fixed, self._layers, self._tensors = None, [], {}, None, {}
        self._net, self._made_layers = None, {}

    def get_flag(self, flag):
        if flag == NetworkDefinitionCreationFlag.EXPLICIT_BATCH:
            return True
        return bool(self.flags >> int(flag) & 1)

    # ---- the model ----

    @property
    def _io(self):
        """The inputs and outputs."""
        return self._parsed if self._net is None else _build.model_inputs(self._net)

    def _set_model(self, model):
        if self._net is not None:
            raise InvalidArgument("the network has layers already: parse into a network of its own")
        self._parsed = _build.model_inputs(model)
        self._model, self._layers, self._tensors = model, None, {}

    def _problem(self):
        """The exception with which the import of the model fails, or None."""
        model = self._model if self._net is None else self._net
        if model is None:
            return ValueError("the network is empty: OnnxParser.parse, or layers, come first")
        free = {n for io in self._io for n in io.dim_names if n and io.is_input}

        def only_import(phase, done):
            return phase != "import"
        try:
            _build.build(model, tune="off", profiles={n: (1, 64, 4096) for n in free} or None, progress=only_import)
        except Cancelled:
            return None
        except Error as e:
            return e
        return None

    def _profiles(self, profiles):
        inputs = {io.name: io for io in self._io if io.is_input}
        made = []
        for shapes in profiles or [{}]:
            ranges = {}
            for name, io in inputs.items():
                if name in shapes:
                    ranges[name] = tuple(tuple(s) for s in shapes[name])
                elif name in self._fixed and tuple(self._fixed[name]) != io.shape and -1 not in self._fixed[name]:
                    ranges[name] = (tuple(self._fixed[name]),) * 3
                elif -1 in self._fixed.get(name, io.shape):
                    raise ValueError(f"input '{name}' has the shape {Dims(io.shape)}, and no optimization profile has a range for it: "
                                     "IOptimizationProfile.set_shape, then IBuilderConfig.add_optimization_profile")
            for name in shapes:
                if name not in inputs:
                    raise ValueError(f"the optimization profile names '{name}', which is no input: {', '.join(inputs)}")
            made.append(ranges)
        return [p for p in made if p] or None

    def _build(self, options):
        model = self._model if self._net is None else self._net
        if model is None:
            raise ValueError("the network is empty: OnnxParser.parse, or layers, come first")
        return _build.build(model, **options)

    def _is_quantized(self):
        return any(layer.type in (LayerType.QUANTIZE, LayerType.DEQUANTIZE) for layer in self._all_layers())

    def _precisions(self):
        layers = self._made_layers.values() if self._net is not None else self._layers or ()
        return [layer.name for layer in layers if layer.precision_is_set or layer.output_types]

    def _all_layers(self):
        if self._net is not None:
            return [self._wrap_layer(layer) for layer in self._net.layers]
        if self._layers is None:
            if self._model is None:
                nodes = []
            elif isinstance(self._model, (str, os.PathLike)):
                with open(self._model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    nodes = nodes_of(data)
            else:
                nodes = nodes_of(self._model)
            self._layers = [ILayer(self, *node) for node in nodes]
        return self._layers

    def _tensor(self, name):
        if name not in self._tensors:
            io = next((io for io in self._io if io.name == name), None)
            self._tensors[name] = ITensor(self, name, io, io is not None and not io.is_input)
        return self._tensors[name] if name else None

    # ---- what scripts ask ----

    num_inputs = property(lambda self: sum(io.is_input for io in self._io))
    num_outputs = property(lambda self: sum(not io.is_input for io in self._io))
    num_layers = property(lambda self: len(self._all_layers()))

    def get_input(self, index):
        if self._net is not None:
            found = self._net.inputs
            return self._wrap(found[index]) if 0 <= index < len(found) else None
        found = [io for io in self._io if io.is_input]
        return self._tensor(found[index].name) if 0 <= index < len(found) else None

    def get_output(self, index):
        if self._net is not None:
            found = self._net.outputs
            return self._wrap(found[index]) if 0 <= index < len(found) else None
        found = [io for io in self._io if not io.is_input]
        return self._tensor(found[index].name) if 0 <= index < len(found) else None

    def get_layer(self, index):
        return self._all_layers()[index]

    def __len__(self):
        return self.num_layers

    def __getitem__(self, index):
        return self.get_layer(index)
