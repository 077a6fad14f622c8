# SPDX-License-Identifier: Apache-2.0
"""Writes an ONNX model as protobuf, with Python alone. Weights are appended as they lie in memory."""
import struct

OPSET, IR_VERSION = 24, 10
FLOAT, INT, STRING, TENSOR, FLOATS, INTS, STRINGS = 1, 2, 3, 4, 6, 7, 8      # AttributeProto.type


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n & (1 << 64) - 1)


def data(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def attribute(name, value):
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, int):
        body = number(3, value) + number(20, INT)
    elif isinstance(value, float):
        body = varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, FLOAT)
    elif isinstance(value, str):
        body = data(4, value) + number(20, STRING)
    elif isinstance(value, Tensor):
        body = data(5, b"".join(value.parts(None))) + number(20, TENSOR)
    elif value and all(isinstance(v, str) for v in value):
        body = b"".join(data(9, v) for v in value) + number(20, STRINGS)
    elif all(isinstance(v, int) for v in value):
        body = b"".join(number(8, v) for v in value) + number(20, INTS)
    else:
        body = b"".join(varint(7 << 3 | 5) + struct.pack("<f", v) for v in value) + number(20, FLOATS)
    return data(5, data(1, name) + body)


class Tensor:
    """A constant: ONNX's number of the element type, the shape, and the elements (bytes or a buffer, row-major)."""
    __slots__ = ("dtype", "shape", "elements")

    def __init__(self, dtype, shape, elements):
        self.dtype, self.shape, self.elements = dtype, tuple(shape), elements

    def parts(self, name):
        head = b"".join(number(1, d) for d in self.shape) + number(2, self.dtype)
        if name is not None:
            head += data(8, name)
        view = memoryview(self.elements)
        return [head, varint(9 << 3 | 2) + varint(view.nbytes), view]


class Model:
    """A graph in the making. Values are names."""

    def __init__(self):
        self.nodes, self.initializers, self.inputs, self.outputs = [], {}, [], []
        self.count, self.label = 0, ""

    def fresh(self):
        self.count += 1
        return f"_{self.count}"

    def op(self, op, *inputs, results=1, result=None, domain="", **attributes):
        """Adds a node; its result, or a list of several. An input of None is left out. Attributes of None are left out.
        `result` names the result."""
        names = [result] if result else [self.fresh() for _ in range(results)]
        inputs = list(inputs)
        while inputs and inputs[-1] is None:
            inputs.pop()
        # The node's name leads back to the node of the torch graph.
        body = b"".join(data(1, i or "") for i in inputs) + b"".join(data(2, o) for o in names)
        body += data(3, f"{self.label}#{len(self.nodes)}") + data(4, op)
        body += b"".join(attribute(k, v) for k, v in attributes.items() if v is not None)
        if domain:
            body += data(7, domain)
        self.nodes.append(data(1, body))
        return names[0] if results == 1 else names

    def constant(self, dtype, shape, elements, name=None):
        name = name or self.fresh()
        self.initializers[name] = Tensor(dtype, shape, elements)
        return name

    @staticmethod
    def value(name, dtype, dims):
        sizes = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
        return data(1, name) + data(2, data(1, number(1, dtype) + data(2, sizes)))

    def add_input(self, name, dtype, dims):
        self.inputs.append(data(11, self.value(name, dtype, dims)))
        return name

    def add_output(self, name, dtype, dims):
        self.outputs.append(data(12, self.value(name, dtype, dims)))

    def serialize(self):
        """The model's bytes, which hold one copy of the weights."""
        parts = self.nodes + [data(2, "torch")]
        for name, tensor in self.initializers.items():
            pieces = tensor.parts(name)
            size = sum(memoryview(p).nbytes for p in pieces)
            parts += [varint(5 << 3 | 2) + varint(size)] + pieces
        parts += self.inputs + self.outputs
        size = sum(memoryview(p).nbytes for p in parts)
        head = number(1, IR_VERSION) + data(2, "sinter.torch") + varint(7 << 3 | 2) + varint(size)
        domains = data(8, data(1, "") + number(2, OPSET)) + data(8, data(1, "com.microsoft") + number(2, 1))
        return b"".join([head] + parts + [domains])
