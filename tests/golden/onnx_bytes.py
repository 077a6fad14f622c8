# SPDX-License-Identifier: Apache-2.0
"""ONNX models as protobuf by hand, seeded numbers and .npy files, for scripts that have Python alone."""
import struct

FLOAT, U8, I8, I64 = 1, 2, 3, 7
PACK = {FLOAT: "f", U8: "B", I8: "b", I64: "q"}
state = [1]


def numbers(count, scale=1.0):
    """In [-scale, scale), others with each call."""
    made = []
    for _ in range(count):
        state[0] = (state[0] * 6364136223846793005 + 1442695040888963407) % 2**64
        made.append(((state[0] >> 40) / 2**23 - 1) * scale)
    return made


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def num(field, n):
    return varint(field << 3) + varint(n & (1 << 64) - 1)


def data(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name, type_, dims, list_):
    """An initializer of the graph."""
    raw = struct.pack("<%d%s" % (len(list_), PACK[type_]), *list_)
    return data(5, b"".join(num(1, d) for d in dims) + num(2, type_) + data(8, name) + data(9, raw))


def value(name, dims):
    """The f32 type of an input (field 11) or output (field 12). A dim may be a name."""
    sizes = b"".join(data(1, num(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
    shape = data(1, num(1, FLOAT) + data(2, sizes))
    return data(1, name) + data(2, shape)


def ints(name, list_):
    return data(5, data(1, name) + b"".join(num(8, v) for v in list_) + num(20, 7))


def integer(name, n):
    return data(5, data(1, name) + num(3, n) + num(20, 2))


def node(op, ins, out, attrs=b""):
    """Named as its output is."""
    return data(1, b"".join(data(1, i) for i in ins) + data(2, out) + data(3, out) + data(4, op) + attrs)


def write_model(path, graph, opset=17):
    with open(path, "wb") as file:
        file.write(num(1, 8) + data(7, graph) + data(8, num(2, opset)))


def write_npy(path, dims, list_):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % "".join("%d, " % d for d in dims)
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack("<%df" % len(list_), *list_))
