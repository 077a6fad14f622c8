# SPDX-License-Identifier: Apache-2.0
"""Networks made by calls (network.h). The library says which kinds of layers there are and which parameters each has; nothing
of that is listed here."""
import ctypes
import os
from ctypes import byref

from . import _abi
from ._abi import Dtype
from ._dtype import dtype_of
from ._library import Env, InvalidArgument, call, choice, failure, lib
from ._tensor import Tensor, to_struct

KINDS = {kind.name.lower(): kind for kind in _abi.LayerKind}


def made(function, *arguments):
    """Calls a function that gives a handle, or NULL and an error."""
    error = _abi.sinter_error()
    handle = getattr(lib, function)(*arguments, byref(error))
    if not handle:
        raise failure(error.status or 1, error)
    return handle


def ints(values):
    values = [int(v) for v in values]
    return (ctypes.c_int64 * max(len(values), 1))(*values), len(values)


def param_rows(function, which):
    """name -> (kind, words, meaning) of each parameter that a function of the library lists for `which`."""
    found, index = {}, 0
    while True:
        row = function(which, index)
        if not row:
            return found
        p = row.contents
        found[p.name.decode()] = (_abi.ParamKind(p.kind), (p.words or b"").decode(), (p.text or b"").decode())
        index += 1


def kind_parameters(kind):
    """name -> (kind, words, meaning) of each parameter of a kind of layers."""
    return param_rows(lib.sinter_layer_kind_param, kind)


class NetworkTensor:
    """A tensor of a network: an edge, without data. `name` and, of inputs, `shape` and `dtype` can be set."""
    __slots__ = ("network", "handle")

    def __init__(self, network, handle):
        self.network, self.handle = network, handle

    def _describe(self):
        found = _abi.sinter_network_shape()
        call("sinter_network_tensor_shape", self.handle, byref(found))
        return found

    @property
    def shape(self):
        """Sizes; -1 where a size is not known before the run. Errors: those of the layers that the tensor depends on."""
        found = self._describe()
        return tuple(found.dim[:found.rank])

    @shape.setter
    def shape(self, shape):
        dims, rank = ints(shape)
        call("sinter_network_tensor_set_shape", self.handle, rank, dims)

    @property
    def dim_names(self):
        """The expression of each free size, else None."""
        found = self._describe()
        return tuple(n.decode() if n else None for n in found.dim_name[:found.rank])

    def set_dim_name(self, axis, name):
        call("sinter_network_tensor_set_dim_name", self.handle, axis, None if name is None else name.encode())

    @property
    def dtype(self):
        return Dtype(self._describe().dtype)

    @dtype.setter
    def dtype(self, dtype):
        call("sinter_network_tensor_set_type", self.handle, dtype_of(dtype))

    @property
    def name(self):
        return lib.sinter_network_tensor_name(self.handle).decode()

    @name.setter
    def name(self, name):
        call("sinter_network_tensor_set_name", self.handle, name.encode())

    @property
    def producer(self):
        """The Layer that makes the tensor; None for an input."""
        found = lib.sinter_network_tensor_producer(self.handle)
        return Layer(self.network, found) if found else None

    is_input = property(lambda self: bool(lib.sinter_network_tensor_is_input(self.handle)))
    is_output = property(lambda self: bool(lib.sinter_network_tensor_is_output(self.handle)))
    is_shape_output = property(lambda self: bool(lib.sinter_network_tensor_is_shape_output(self.handle)))
    is_debug = property(lambda self: bool(lib.sinter_network_tensor_is_debug(self.handle)))

    def values(self, count):
        """The first `count` values of a tensor of integers that is known while building. Errors: InvalidArgument."""
        found = (ctypes.c_int64 * count)()
        call("sinter_network_tensor_values", self.handle, found, count)
        return list(found)

    def __eq__(self, other):
        return isinstance(other, NetworkTensor) and self.handle == other.handle

    def __hash__(self):
        return hash(self.handle)

    def __repr__(self):
        return f"<sinter.NetworkTensor '{self.name}'>"


class Layer:
    """A layer of a network. Its parameters are attributes: layer.stride = (2, 2); `parameters()` lists them. `name`, `metadata`
    and `precision` (an element type, or None) can be set, too."""
    __slots__ = ("network", "handle", "_params")

    def __init__(self, network, handle):
        object.__setattr__(self, "network", network)
        object.__setattr__(self, "handle", handle)
        object.__setattr__(self, "_params", None)

    def parameters(self):
        """name -> (kind, words, meaning) of each parameter."""
        if self._params is None:
            object.__setattr__(self, "_params", param_rows(lib.sinter_layer_param, self.handle))
        return self._params

    kind = property(lambda self: _abi.LayerKind(lib.sinter_layer_get_kind(self.handle)))
    # Of a layer of kind OP what TensorRT's parser makes of the operator.
    nearest_kind = property(lambda self: _abi.LayerKind(lib.sinter_layer_nearest_kind(self.handle)))
    inputs = property(lambda self: [self._tensor(lib.sinter_layer_input(self.handle, i))
                                    for i in range(lib.sinter_layer_input_count(self.handle))])
    outputs = property(lambda self: [self._tensor(lib.sinter_layer_output(self.handle, i))
                                     for i in range(lib.sinter_layer_output_count(self.handle))])
    output = property(lambda self: self.outputs[0])

    def _tensor(self, handle):
        return NetworkTensor(self.network, handle) if handle else None

    def set_input(self, index, tensor):
        """Replaces an input, or gives an optional one; None takes it away."""
        call("sinter_layer_set_input", self.handle, index, None if tensor is None else tensor.handle)

    def set_output_type(self, index, dtype):
        """Converts output `index` behind the layer; None: the layer's own type."""
        call("sinter_layer_set_output_type", self.handle, index, Dtype.NONE if dtype is None else dtype_of(dtype))

    def output_type(self, index):
        found = Dtype(lib.sinter_layer_output_type(self.handle, index))
        return None if found == Dtype.NONE else found

    @property
    def name(self):
        return lib.sinter_layer_name(self.handle).decode()

    @property
    def metadata(self):
        return lib.sinter_layer_metadata(self.handle).decode()

    @property
    def precision(self):
        """The type that the layer is to be computed in: f32, f16, bf16, or None. Network.precision_mode says what it means."""
        found = Dtype(lib.sinter_layer_precision(self.handle))
        return None if found == Dtype.NONE else found

    @property
    def loop(self):
        """The Loop that the layer is a part of, or None."""
        found = lib.sinter_layer_loop(self.handle)
        return Loop(self.network, found) if found else None

    @property
    def conditional(self):
        """The Conditional that the layer is a part of, or None."""
        found = lib.sinter_layer_conditional(self.handle)
        return Conditional(self.network, found) if found else None

    @property
    def operator(self):
        """(domain, type, version) of a layer of kind op. Errors: InvalidArgument for other kinds."""
        domain, type_, version = ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_int64()
        if lib.sinter_layer_operator(self.handle, byref(domain), byref(type_), byref(version)):
            raise InvalidArgument(f"layer '{self.name}' is of kind {self.kind.name.lower()}: a layer of kind op has an operator",
                                  _abi.Status.INVALID_ARG)
        return domain.value.decode(), type_.value.decode(), version.value

    def set_weights_name(self, name, text):
        """The name under which a refit finds the weights of parameter `name`."""
        call("sinter_layer_set_weights_name", self.handle, name.encode(), text.encode())

    def set(self, name, value):
        """Sets a parameter: a number, a word of a choice, a list, an element type, text, or an array of weights."""
        if name not in self.parameters():
            raise AttributeError(f"a layer of kind {self.kind.name.lower()} has no parameter '{name}'; it has "
                                 f"{', '.join(self.parameters())}")
        kind = self.parameters()[name][0]
        key, k = name.encode(), _abi.ParamKind
        if kind in (k.INT, k.FLAG):
            call("sinter_layer_set_int", self.handle, key, int(value))
        elif kind == k.REAL:
            call("sinter_layer_set_real", self.handle, key, float(value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value))
        elif kind == k.INTS:
            values, count = ints(value)
            call("sinter_layer_set_ints", self.handle, key, values, count)
        elif kind == k.REALS:
            values = [float(v) for v in value]
            call("sinter_layer_set_reals", self.handle, key, (ctypes.c_double * max(len(values), 1))(*values), len(values))
        elif kind == k.WEIGHTS:
            keep = []
            call("sinter_layer_set_weights", self.handle, key, byref(weights_struct(value, keep)))
        elif kind == k.TYPE:
            call("sinter_layer_set_int", self.handle, key, dtype_of(value))
        elif isinstance(value, str):
            call("sinter_layer_set_text", self.handle, key, value.encode())
        else:
            call("sinter_layer_set_int", self.handle, key, int(value))

    def get(self, name):
        """A parameter: a number, a list, a word, a Dtype, or a Tensor of weights."""
        kind, words, _ = self.parameters()[name]
        key, k = name.encode(), _abi.ParamKind
        if kind in (k.INTS, k.REALS):
            count = ctypes.c_uint32()
            room = ((ctypes.c_int64 if kind == k.INTS else ctypes.c_double) * _abi.PARAM_INTS_MAX)()
            function = "sinter_layer_get_ints" if kind == k.INTS else "sinter_layer_get_reals"
            call(function, self.handle, key, room, _abi.PARAM_INTS_MAX, byref(count))
            return list(room[:count.value])
        if kind == k.REAL:
            found = ctypes.c_double()
            call("sinter_layer_get_real", self.handle, key, byref(found))
            return found.value
        if kind == k.TEXT:
            found = ctypes.c_char_p()
            call("sinter_layer_get_text", self.handle, key, byref(found))
            return (found.value or b"").decode()
        if kind == k.WEIGHTS:
            found = _abi.sinter_weights()
            call("sinter_layer_get_weights", self.handle, key, byref(found))
            return Tensor._make(Dtype(found.dtype), (found.count,), found.data or 0, _abi.Place.HOST, self) if found.count else None
        found = ctypes.c_int64()
        call("sinter_layer_get_int", self.handle, key, byref(found))
        if kind == k.TYPE:
            return Dtype(found.value)
        if kind == k.FLAG:
            return bool(found.value)
        if kind == k.CHOICE:
            return words.split("|")[found.value]
        return found.value

    def __getattr__(self, name):
        if name.startswith("_") or name not in self.parameters():
            raise AttributeError(f"a layer has no '{name}'")
        return self.get(name)

    def __setattr__(self, name, value):
        if name in ("name", "metadata"):
            call(f"sinter_layer_set_{name}", self.handle, value.encode())
        elif name == "precision":
            call("sinter_layer_set_precision", self.handle, Dtype.NONE if value is None else dtype_of(value))
        else:
            self.set(name, value)

    def __eq__(self, other):
        return isinstance(other, Layer) and self.handle == other.handle

    def __hash__(self):
        return hash(self.handle)

    def __repr__(self):
        return f"<sinter.Layer '{self.name}', {self.kind.name.lower()}>"


def set_attribute(layer, key, value):
    """Sets an attribute of a layer of kind op, whose kind follows from the value."""
    if isinstance(value, str):
        call("sinter_layer_set_text", layer.handle, key, value.encode())
    elif hasattr(value, "__iter__"):
        values = list(value)
        is_real = any(isinstance(v, float) for v in values)
        array = (ctypes.c_double if is_real else ctypes.c_int64) * max(len(values), 1)
        call(f"sinter_layer_set_{'reals' if is_real else 'ints'}", layer.handle, key, array(*values), len(values))
    elif isinstance(value, float):
        call("sinter_layer_set_real", layer.handle, key, value)
    else:
        call("sinter_layer_set_int", layer.handle, key, int(value))
    object.__setattr__(layer, "_params", None)


def weights_struct(value, keep):
    """The sinter_weights of an array; None: no weights. The library copies the elements."""
    if value is None:
        return _abi.sinter_weights(dtype=Dtype.F32)
    tensor = value if isinstance(value, Tensor) else Tensor(value)
    keep.append(tensor)
    count = 1
    for dim in tensor.shape:
        count *= dim
    return _abi.sinter_weights(dtype=tensor.dtype, count=count, data=tensor.data)


class Control:
    """A loop or a conditional: a part of a network with a name of its own."""
    __slots__ = ("network", "handle")
    WORD = ""

    def __init__(self, network, handle):
        self.network, self.handle = network, handle

    @property
    def name(self):
        return getattr(lib, f"sinter_{self.WORD}_name")(self.handle).decode()

    @name.setter
    def name(self, name):
        call(f"sinter_{self.WORD}_set_name", self.handle, name.encode())

    def _layer(self, function, *arguments):
        return Layer(self.network, made(f"sinter_{self.WORD}_{function}", self.handle, *arguments))

    def __eq__(self, other):
        return type(other) is type(self) and self.handle == other.handle

    def __hash__(self):
        return hash(self.handle)

    def __repr__(self):
        return f"<sinter.{type(self).__name__} '{self.name}'>"


class Loop(Control):
    """A loop. It repeats the layers that depend on its recurrences and iterators. Its calls give layers."""
    __slots__ = ()
    WORD = "loop"

    def add_trip_limit(self, tensor, kind="count"):
        """count: a scalar integer from outside; while: a scalar bool that depends on recurrences. One of each kind."""
        return self._layer("add_trip_limit", tensor.handle, choice(_abi.TripLimit, kind))

    def add_recurrence(self, initial):
        """A value that goes from turn to turn; set_input(1, tensor) says what the next turn has."""
        return self._layer("add_recurrence", initial.handle)

    def add_iterator(self, tensor, axis=0, reverse=False):
        """One slice of the tensor along the axis in each turn."""
        return self._layer("add_iterator", tensor.handle, axis, int(reverse))

    def add_output(self, tensor, kind="last_value", axis=0):
        """A result: last_value, or concatenate and reverse with the values of all turns along a new axis."""
        return self._layer("add_output", tensor.handle, choice(_abi.LoopOutput, kind), axis)


class Conditional(Control):
    """Two branches, of which one runs. A layer belongs to a branch if it depends on an input of the conditional."""
    __slots__ = ()
    WORD = "conditional"

    def set_condition(self, condition):
        """A scalar bool from outside. Once for each conditional."""
        return self._layer("set_condition", condition.handle)

    def add_input(self, tensor):
        """Makes a tensor an input of both branches: they read the layer's output."""
        return self._layer("add_input", tensor.handle)

    def add_output(self, then_value, else_value):
        """A result, of one type and rank in both branches."""
        return self._layer("add_output", then_value.handle, else_value.handle)


class Network:
    """A network made by calls; sinter.build takes it like a model.

        net = sinter.Network()
        x = net.add_input("x", "f32", (1, 3, 224, 224))
        conv = net.add("convolution", x, maps=64, kernel_size=(3, 3), kernel=weights)
        net.mark_output(conv.output)

    It belongs to one thread at a time. Layer.parameters() lists what a layer takes, network.h says what it means."""

    def __init__(self, plugins=None):
        """plugins: as for sinter.build, which uses them, too, if it is not given others."""
        handle = ctypes.c_void_p()
        self._env = Env(plugins=plugins)
        call("sinter_network_create", byref(self._env.struct), byref(handle))
        self.handle = handle.value

    plugins = property(lambda self: self._env.plugins)

    def __del__(self):
        handle, self.handle = getattr(self, "handle", None), None
        if handle:
            lib.sinter_network_destroy(handle)

    def add_input(self, name, dtype, shape, dim_names=None):
        """An input; -1 is a free size, for which profiles give ranges. Free axes of one name have one size."""
        dims, rank = ints(shape)
        names = None
        if dim_names is not None:
            names = (ctypes.c_char_p * max(rank, 1))(*(None if n is None else n.encode() for n in dim_names))
        return NetworkTensor(self, made("sinter_network_add_input", self.handle, name.encode(), dtype_of(dtype), rank, dims, names))

    def add(self, kind, *inputs, **parameters):
        """Adds a layer of a kind ("convolution"). `inputs` may hold None where one is optional. What a parameter refuses is
        raised, and the layer is not there."""
        if kind not in KINDS:
            raise ValueError(f"there is no layer '{kind}': {', '.join(KINDS)}")
        handles = (ctypes.c_void_p * max(len(inputs), 1))(*(None if t is None else t.handle for t in inputs))
        layer = Layer(self, made("sinter_network_add", self.handle, KINDS[kind], handles, len(inputs)))
        try:
            for name, value in parameters.items():
                layer.set(name, value)
        except Exception:
            self.remove(layer)
            raise
        return layer

    def add_plugin(self, name, *inputs, outputs=1, version=None, namespace=None, **fields):
        """A layer that calls a plugin, with values of its fields. version, namespace None: any, where only one plugin fits."""
        from ._plugin import given_fields
        handles = (ctypes.c_void_p * max(len(inputs), 1))(*(None if t is None else t.handle for t in inputs))
        values, count, _keep = given_fields(fields)
        texts = (None if text is None else text.encode() for text in (version, namespace))
        return Layer(self, made("sinter_add_plugin", self.handle, name.encode(), *texts, handles, len(inputs), outputs, values, count))

    def add_constant(self, value):
        """A constant: an array, copied."""
        tensor = value if isinstance(value, Tensor) else Tensor(value)
        struct = to_struct(tensor.dtype, tensor.shape, tensor.data, tensor.place)
        return Layer(self, made("sinter_add_constant", self.handle, byref(struct), 0)).output

    def add_op(self, type, *inputs, outputs=1, domain="", version=0, **attributes):
        """Adds a layer that is an ONNX operator; version 0 is the newest. Attributes are numbers, texts, or lists of numbers."""
        handles = (ctypes.c_void_p * max(len(inputs), 1))(*(None if t is None else t.handle for t in inputs))
        layer = Layer(self, made("sinter_add_op", self.handle, domain.encode(), type.encode(), version, handles, len(inputs), outputs))
        try:
            for name, value in attributes.items():
                set_attribute(layer, name.encode(), value)
        except Exception:
            self.remove(layer)
            raise
        return layer

    def add_format(self, tensor, format, rank, channels, to_memory):
        """Adds the layers between a tensor and its memory in a Format (sinter_network_add_format of network.h)."""
        return NetworkTensor(self, made("sinter_network_add_format", self.handle, tensor.handle, int(format), rank, channels, to_memory))

    def add_loop(self):
        """A Loop. Every loop needs a trip limit."""
        return Loop(self, made("sinter_network_add_loop", self.handle))

    def add_conditional(self):
        """A Conditional. It needs a condition."""
        return Conditional(self, made("sinter_network_add_conditional", self.handle))

    def mark_shape_output(self, tensor, is_marked=True):
        """Makes the shape of a tensor an output, i64[rank], named "NAME.shape"; or takes that back."""
        call("sinter_network_mark_shape_output", self.handle, tensor.handle, int(is_marked))

    def mark_debug(self, tensor, is_marked=True):
        """Makes a tensor an output behind all others; or takes that back."""
        call("sinter_network_mark_debug", self.handle, tensor.handle, int(is_marked))

    def unfused(self, engine):
        """The tensors that no kernel of `engine`, a build of this network, fuses away: those between its steps."""
        count = ctypes.c_uint32()
        call("sinter_network_unfused", self.handle, engine._handle, None, 0, byref(count))
        found = (ctypes.c_void_p * count.value)()
        call("sinter_network_unfused", self.handle, engine._handle, found, count.value, byref(count))
        return [NetworkTensor(self, handle) for handle in found]

    def set_precision_mode(self, mode):
        """What precisions of layers mean: "obey" (at first), "prefer" or "ignore"."""
        call("sinter_network_set_precision_mode", self.handle, choice(_abi.PrecisionMode, mode))

    @property
    def strongly_typed(self):
        """Are types those of inputs, constants and casts alone? Then layers have no precision, and builds allow no narrower types."""
        return bool(lib.sinter_network_is_strongly_typed(self.handle))

    @strongly_typed.setter
    def strongly_typed(self, is_strong):
        call("sinter_network_set_strongly_typed", self.handle, int(is_strong))

    def write_onnx(self, path):
        """Writes the network as an ONNX model. Precisions of layers are not expressed. Errors: Unsupported, FileError."""
        call("sinter_network_write_onnx", self.handle, os.fsencode(path))

    def find_layer(self, name):
        """The first layer of that name, or None."""
        found = lib.sinter_network_find_layer(self.handle, name.encode())
        return Layer(self, found) if found else None

    def find_tensor(self, name):
        """The first tensor of that name, or None."""
        found = lib.sinter_network_find_tensor(self.handle, name.encode())
        return NetworkTensor(self, found) if found else None

    def mark_output(self, tensor, is_marked=True):
        """Makes a tensor an output of the engine, or takes that back."""
        call("sinter_network_mark_output" if is_marked else "sinter_network_unmark_output", self.handle, tensor.handle)

    def remove(self, thing):
        """Removes a Layer with its outputs, or an input that nothing reads."""
        is_layer = isinstance(thing, Layer)
        call("sinter_network_remove_layer" if is_layer else "sinter_network_remove_input", self.handle, thing.handle)

    layers = property(lambda self: [Layer(self, lib.sinter_network_layer(self.handle, i))
                                    for i in range(lib.sinter_network_layer_count(self.handle))])
    inputs = property(lambda self: [NetworkTensor(self, lib.sinter_network_input(self.handle, i))
                                    for i in range(lib.sinter_network_input_count(self.handle))])
    outputs = property(lambda self: [NetworkTensor(self, lib.sinter_network_output(self.handle, i))
                                     for i in range(lib.sinter_network_output_count(self.handle))])

    @property
    def name(self):
        return lib.sinter_network_name(self.handle).decode()

    @name.setter
    def name(self, name):
        call("sinter_network_set_name", self.handle, name.encode())

    def __repr__(self):
        return f"<sinter.Network of {len(self.layers)} layers>"
