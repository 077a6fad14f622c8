# SPDX-License-Identifier: Apache-2.0
"""A serialised ONNX model whose weights are given apart from it."""
import ctypes

MODEL_GRAPH, GRAPH_WEIGHT = 7, 5
NAME, RAW, EXTERNAL, LOCATION = 8, 9, 13, 14
# What holds the elements of a tensor: float_data and its like, raw_data, and where other files have them.
ELEMENTS = {4, 5, 6, 7, RAW, 10, 11, EXTERNAL, LOCATION}


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a number of more than 10 bytes")


def _number(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def _field(number, payload):
    return _number(number << 3 | 2) + _number(len(payload)) + bytes(payload)


def _fields(data):
    """(number, the field with its tag, what it holds) of a message; ValueError or IndexError where it is damaged."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = _varint(data, at)
        kind, from_ = tag & 7, at
        if kind == 0:
            _, at = _varint(data, at)
        elif kind == 2:
            size, from_ = _varint(data, at)
            at = from_ + size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of wire type {kind}")
        if at > len(data):
            raise ValueError("a field behind the end")
        yield tag >> 3, data[begin:at], data[from_:at]


def bytes_of(data, size):
    """`size` bytes at an address, or of anything with a buffer."""
    if isinstance(data, int):
        if not data or size < 0:
            raise ValueError(f"{size} bytes at {data:#x}")
        return ctypes.string_at(data, size)
    view = memoryview(data).cast("B")
    if len(view) < size:
        raise ValueError(f"{len(view)} bytes, {size} are wanted")
    return bytes(view[:size])


def names_of(model):
    """The names of a model's weights."""
    return {bytes(text).decode() for number, _, graph in _fields(memoryview(model)) if number == MODEL_GRAPH
            for kind, _, tensor in _fields(graph) if kind == GRAPH_WEIGHT for k, _, text in _fields(tensor) if k == NAME}


def with_weights(model, weights):
    """The model with these bytes as the elements of its weights: {name: bytes}."""
    parts = []
    for number, whole, graph in _fields(memoryview(model)):
        if number != MODEL_GRAPH:
            parts.append(whole)
            continue
        inner = []
        for kind, field, tensor in _fields(graph):
            name = None
            if kind == GRAPH_WEIGHT:
                name = next((bytes(text).decode() for k, _, text in _fields(tensor) if k == NAME), None)
            if name in weights:
                rest = b"".join(f for k, f, _ in _fields(tensor) if k not in ELEMENTS)
                field = _field(GRAPH_WEIGHT, rest + _field(RAW, weights[name]))
            inner.append(field)
        parts.append(_field(MODEL_GRAPH, b"".join(inner)))
    return b"".join(parts)


class Proto:
    """A model's bytes that are read later, perhaps with weights of their own."""

    def __init__(self, model, path):
        self._model, self._path, self._names, self._weights = model, path, None, {}

    def add(self, name, data, size):
        """Keeps a copy of a weight's bytes. KeyError: the model has no such weight; ValueError: no such bytes, or a damaged model."""
        if self._names is None:
            self._names = names_of(self._model)
        if name not in self._names:
            raise KeyError(f"the model has no weight '{name}'")
        self._weights[name] = bytes_of(data, size)
        return True

    def parts(self):
        """Its bytes, and the file that they are, if any."""
        return (with_weights(self._model, self._weights), None) if self._weights else (self._model, self._path)
