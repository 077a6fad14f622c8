# SPDX-License-Identifier: Apache-2.0
"""ONNX models of many shapes and any number of nodes, written as protobuf with Python's library alone.

SHAPES maps a name to a function that adds about n nodes to a Model. Constants differ from node to node where equal
nodes would be united, so that what is imported is also what is built, except where uniting is the point."""
import struct

FLOAT, INT8, INT64, BOOL = 1, 3, 7, 9


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, content):
    """A field of a message: an integer, a text or bytes."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    if isinstance(content, str):
        content = content.encode()
    return varint(number << 3 | 2) + varint(len(content)) + content


def tensor(name, dtype, dims, values):
    raw = struct.pack(f"<{len(values)}{ {FLOAT: 'f', INT8: 'b', INT64: 'q', BOOL: '?'}[dtype] }", *values)
    return b"".join(field(1, d) for d in dims) + field(2, dtype) + field(8, name) + field(9, raw)


def value_info(name, dtype, dims):
    shape = b"".join(field(1, field(2 if isinstance(d, str) else 1, d)) for d in dims or ())
    return field(1, name) + field(2, field(1, field(1, dtype) + (b"" if dims is None else field(2, shape))))


def attribute(name, value):
    if isinstance(value, Graph):
        return field(1, name) + field(6, value.graph_bytes()) + field(20, 5)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)


def node(op, inputs, outputs, attrs, domain):
    return b"".join([*(field(1, v) for v in inputs), *(field(2, v) for v in outputs), field(4, op),
                     *(field(5, attribute(k, v)) for k, v in attrs.items()), field(7, domain) if domain else b""])


class Graph:
    """A graph or, as an attribute, a subgraph; names are unique over the whole model."""
    serial = 0

    def __init__(self):
        self.parts, self.count = [], 0

    def name(self, stem="v"):
        Graph.serial += 1
        return f"{stem}{Graph.serial}"

    def op(self, op, *inputs, outputs=1, domain="", **attrs):
        names = [self.name() for _ in range(outputs)]
        self.parts.append(field(1, node(op, inputs, names, attrs, domain)))
        self.count += 1
        return names[0] if outputs == 1 else names

    def const(self, dims, values, dtype=FLOAT):
        name = self.name("c")
        self.parts.append(field(5, tensor(name, dtype, dims, values)))
        return name

    def input(self, dims, dtype=FLOAT, stem="in"):
        name = self.name(stem)
        self.parts.append(field(11, value_info(name, dtype, dims)))
        return name

    def output(self, name, dims, dtype=FLOAT):
        self.parts.append(field(12, value_info(name, dtype, dims)))

    def join(self, values, arity=32):
        """One value of many, by a tree of concatenations."""
        while len(values) > 1:
            values = [self.op("Concat", *values[i:i + arity], axis=0) if len(values[i:i + arity]) > 1 else values[i]
                      for i in range(0, len(values), arity)]
        return values[0]

    def graph_bytes(self):
        return b"".join(self.parts) + field(2, "g")


class Model(Graph):
    def __init__(self):
        super().__init__()
        Graph.serial = 0
        self.functions = []

    def write(self, path):
        functions = b"".join(field(25, f) for f in self.functions)
        opsets = field(8, field(1, "") + field(2, 17)) + field(8, field(1, "own") + field(2, 1))
        path.write_bytes(field(1, 8) + field(7, self.graph_bytes()) + opsets + functions)


# ---- shapes: every one adds about n nodes ----

def small(i, count=4):
    """Different numbers for every i, that keep chains near 1."""
    return [((i * 7919 + k * 104729) % 2003 - 1001) / 4004 for k in range(count)]


def elementwise_chain(m, n):
    x = m.input([4])
    for i in range(n):
        x = m.op("Tanh" if i % 2 else "Sigmoid", x)
    m.output(x, [4])


def product_chain(m, n):
    x = m.input([2, 4])
    for i in range(n):
        x = m.op("MatMul", x, m.const([4, 4], small(i, 16)))
    m.output(x, [2, 4])


def conv_chain(m, n):
    x = m.input([1, 2, 4, 4])
    for i in range(n):
        x = m.op("Conv", x, m.const([2, 2, 3, 3], small(i, 36)), pads=[1, 1, 1, 1])
    m.output(x, [1, 2, 4, 4])


def concat_of_n(m, n):
    x = m.input([4])
    # An operator takes 4096 operands.
    m.output(m.join([m.op("Add", x, m.const([4], small(i))) for i in range(n)], arity=4096), [4 * n])


def n_outputs(m, n):
    x = m.input([4])
    for i in range(n):
        m.output(m.op("Add", x, m.const([4], small(i))), [4])


def n_inputs(m, n):
    x = m.input([4])
    for _ in range(n):
        x = m.op("Add", x, m.input([4]))
    m.output(x, [4])


def deep_tree(m, n):
    x, total = m.input([4]), m.input([4])
    for i in range(n // 3):
        total = m.op("Mul", total, m.op("Tanh", m.op("Add", x, m.const([4], small(i)))))
    m.output(total, [4])


def wide_tree(m, n):
    x = m.input([4])
    level = [m.op("Add", x, m.const([4], small(i))) for i in range(n // 2)]
    while len(level) > 1:
        level = [m.op("Mul", level[i], level[i + 1]) if i + 1 < len(level) else level[i]
                 for i in range(0, len(level), 2)]
    m.output(level[0], [4])


def n_readers(m, n):
    x = m.op("Softmax", m.input([4]), axis=0)
    m.output(m.join([m.op("Pow", x, m.const([1], small(i, 1))) for i in range(n)]), [4 * n])


def nonzero_chain(m, n):
    x = m.input([4])
    axes = m.const([1], [0], INT64)
    for _ in range(n // 2):
        x = m.op("Squeeze", m.op("NonZero", x), axes)
    m.output(x, ["K"], INT64)


def nested_if(m, cond, x, depth, i):
    other = Graph()
    other.output(other.op("Tanh", x), [4])
    inner = Graph()
    if depth:
        inner.output(nested_if(inner, cond, x, depth - 1, i), [4])
    else:
        inner.output(inner.op("Add", x, inner.const([4], small(i))), [4])
    m.count += other.count + inner.count
    return m.op("If", cond, then_branch=inner, else_branch=other)


def nested_ifs(m, n):
    cond, x = m.input([], BOOL), m.input([4])
    while m.count < n:
        x = nested_if(m, cond, x, 28, m.count)
    m.output(x, [4])


def wide_ifs(m, n):
    cond, x = m.input([], BOOL), m.input([4])
    while m.count < n:
        x = nested_if(m, cond, x, 0, m.count)
    m.output(x, [4])


def loops(m, n):
    trip, cond, x = m.const([], [2], INT64), m.const([], [True], BOOL), m.input([4])
    for i in range(n // 3):
        body = Graph()
        body.input([], INT64)
        go_on, at = body.input([], BOOL), body.input([4])
        body.output(body.op("Identity", go_on), [], BOOL)
        body.output(body.op("Add", at, body.const([4], small(i))), [4])
        x = m.op("Loop", trip, cond, x, body=body)
        m.count += body.count
    m.output(x, [4])


def nested_loop(m, trip, x, depth):
    """Each body's carried value changes its size, which shows only when the innermost body is converted."""
    body = Graph()
    body.input([], INT64)
    go_on, at = body.input([], BOOL), body.input(["K"])
    body.output(body.op("Identity", go_on), [], BOOL)
    body.output(nested_loop(body, trip, at, depth - 1) if depth else body.op("Concat", at, at, axis=0), ["L"])
    m.count += body.count
    return m.op("Loop", trip, "", x, body=body)


def nested_loops(m, n):
    trip, x, four = m.const([], [1], INT64), m.input([4]), m.const([1], [4], INT64)
    while m.count < n:
        total = m.op("ReduceMean", nested_loop(m, trip, x, 8), axes=[0])
        x = m.op("Expand", total, four)
    m.output(x, [4])


def nested_rank(m, cond, x, depth, flat):
    """An If of two ranks; `flat`: behind it, in the same branch, a Reshape that makes them one."""
    then, other = Graph(), Graph()
    then.output(nested_rank(then, cond, x, depth - 1, flat) if depth else then.op("Tanh", x), None)
    other.output(other.op("Unsqueeze", x, other.const([1], [0], INT64)), None)
    m.count += then.count + other.count
    y = m.op("If", cond, then_branch=then, else_branch=other)
    return m.op("Reshape", y, m.const([1], [-1], INT64)) if flat else y


def nested_ranks(m, n):
    cond, x = m.input([], BOOL), m.input([4])
    while m.count < n:
        x = nested_rank(m, cond, x, 6, True)
        y = nested_rank(m, cond, x, 6, False)
        x = m.op("Reshape", y, m.const([1], [4], INT64))
    m.output(x, [4])


def many_symbols(m, n):
    for i in range(n // 2):
        x, y = m.input([f"A{i}", 4]), m.input([f"B{i}", 4])
        m.output(m.op("Concat", m.op("Tanh", x), y, axis=0), [f"C{i}", 4])


def shape_chain(m, n):
    x = m.input(["N", 4, 6])
    at, axes = m.const([], [0], INT64), m.const([1], [0], INT64)
    rest = [m.const([2], [6, 4], INT64), m.const([2], [4, 6], INT64)]
    for i in range(n // 5):
        size = m.op("Gather", m.op("Shape", x), at)
        x = m.op("Reshape", x, m.op("Concat", m.op("Unsqueeze", size, axes), rest[i % 2], axis=0))
    m.output(x, ["N", 6, 4] if n // 5 % 2 else ["N", 4, 6])


def initializers(m, n):
    x = m.input([4])
    for i in range(n // 2):
        x = m.op("Tanh", m.op("Add", x, m.const([4], small(i))))
    m.output(x, [4])


def residual_blocks(m, n):
    x = m.input([2, 4])
    for i in range(n // 3):
        x = m.op("Add", x, m.op("Relu", m.op("MatMul", x, m.const([4, 4], small(i, 16)))))
    m.output(x, [2, 4])


def split_of_n(m, n):
    parts = m.op("Split", m.input([2 * n]), m.const([n], [2] * n, INT64), outputs=n, axis=0)
    m.output(m.join([m.op("Tanh", p) for p in parts]), [2 * n])


def transposes(m, n):
    x = m.input([2, 3, 4])
    for _ in range(n // 3 * 3):
        x = m.op("Transpose", x, perm=[1, 2, 0])
    m.output(m.op("Tanh", x), [2, 3, 4])


def slices(m, n):
    x = m.input([n + 4])
    parts = []
    for i in range(n // 2):
        ends = [m.const([1], [v], INT64) for v in (i, i + 3)]
        parts.append(m.op("Tanh", m.op("Slice", x, *ends)))
    m.output(m.join(parts), [3 * (n // 2)])


def quantized_chain(m, n):
    x, zero = m.input([4]), m.const([], [0], INT8)
    for i in range(n // 3):
        scale = m.const([], [0.01 + (i % 997) / 1e5])
        x = m.op("Tanh", m.op("DequantizeLinear", m.op("QuantizeLinear", x, scale, zero), scale, zero))
    m.output(x, [4])


def functions(m, n):
    body = [node("Add", ["a", "b"], ["s"], {}, ""), node("Tanh", ["s"], ["r"], {}, "")]
    m.functions.append(field(1, "blend") + field(4, "a") + field(4, "b") + field(5, "r") +
                       b"".join(field(7, x) for x in body) + field(9, field(1, "") + field(2, 17)) + field(10, "own"))
    x = m.input([4])
    for i in range(n // 2):
        x = m.op("blend", x, m.const([4], small(i)), domain="own")
    m.output(x, [4])


def attention_blocks(m, n):
    x = m.input([2, 4, 8])
    for i in range(n // 8):
        q, k, v = (m.op("MatMul", x, m.const([8, 8], small(3 * i + j, 64))) for j in range(3))
        scores = m.op("Softmax", m.op("MatMul", q, m.op("Transpose", k, perm=[0, 2, 1])), axis=2)
        x = m.op("Add", x, m.op("MatMul", scores, v))
    m.output(x, [2, 4, 8])


def equal_subgraphs(m, n):
    x, c = m.input([4]), m.const([4], small(1))
    m.output(m.join([m.op("Tanh", m.op("Add", x, c)) for _ in range(n // 2)]), [4 * (n // 2)])


SHAPES = {f.__name__: f for f in (
    elementwise_chain, product_chain, conv_chain, concat_of_n, n_outputs, n_inputs, deep_tree, wide_tree, n_readers,
    nonzero_chain, nested_ifs, wide_ifs, loops, nested_loops, nested_ranks, many_symbols, shape_chain, initializers,
    residual_blocks, split_of_n, transposes, slices, quantized_chain, functions, attention_blocks, equal_subgraphs)}
