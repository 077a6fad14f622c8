# SPDX-License-Identifier: Apache-2.0
"""Converters of recurrent layers. Without these torch decomposes them into operators for each step of time."""
from ._lowering import Unsupported, as_int, converts
from ._ops_math import FLOATS

# ONNX's operator: torch's gates of a row of weights in ONNX's order; attributes; activations of each direction.
KINDS = {"lstm": ("LSTM", (0, 3, 1, 2), {}, None), "gru": ("GRU", (1, 0, 2), {"linear_before_reset": 1}, None),
         "rnn_tanh": ("RNN", (0,), {}, "Tanh"), "rnn_relu": ("RNN", (0,), {}, "Relu")}


def in_order(c, weight, gates):
    """The rows of a weight or bias [gates * hidden, ...] with the gates in ONNX's order, as [1, gates * hidden, ...]."""
    name = c.x(weight)
    if len(gates) > 1:
        parts = c.op("Split", name, axis=0, num_outputs=len(gates), results=len(gates))
        name = c.op("Concat", *[parts[g] for g in gates], axis=0)
    return c.op("Unsqueeze", name, c.ints([0]))


def joined(c, parts, axis):
    return parts[0] if len(parts) == 1 else c.op("Concat", *parts, axis=axis)


def layer(c, kind, data, states, directions):
    """One layer: (its output as ONNX has it: [time, directions, batch, hidden], last states). directions: the weights of each."""
    op, gates, attributes, activation = KINDS[kind]
    hidden, = c.need_ints("the hidden size", c.shape(directions[0][1])[1:])
    stacked = [joined(c, [in_order(c, weights[i], gates) for weights in directions], 0) for i in range(2)]
    bias = None
    if len(directions[0]) > 2:
        bias = joined(c, [c.op("Concat", in_order(c, w[2], gates), in_order(c, w[3], gates), axis=1) for w in directions], 0)
    attributes = dict(attributes, hidden_size=hidden, direction="bidirectional" if len(directions) > 1 else "forward")
    if activation:
        attributes["activations"] = [activation] * len(directions)
    return c.op(op, data, *stacked, bias, None, *states, results=1 + len(states), **attributes)


@converts("aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input")
def recurrent(c, n, x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    kind = n.target.overloadpacket.__name__
    states, count = hx if kind == "lstm" else [hx], 2 if bidirectional else 1
    each = 4 if has_biases else 2
    if train and dropout:
        raise Unsupported("random numbers")
    if c.dtype(x) not in FLOATS or c.rank(x) != 3:
        raise Unsupported(f"of {c.dtype(x)} with {c.rank(x)} axes")
    if len(params) != each * num_layers * count:
        raise Unsupported("projections of the hidden state")
    if 0 in [as_int(s) for s in c.shape(x)]:
        raise Unsupported("a size of 0")
    data, last = c.x(x), [[] for _ in states]
    if batch_first:
        data = c.op("Transpose", data, perm=[1, 0, 2])
    for i in range(num_layers):
        first = [c.x(s) if num_layers == 1 else
                 c.op("Slice", c.x(s), c.ints([i * count]), c.ints([(i + 1) * count]), c.ints([0])) for s in states]
        given = [params[(i * count + d) * each:(i * count + d + 1) * each] for d in range(count)]
        made, *ends = layer(c, kind, data, first, given)
        data = c.op("Squeeze", made, c.ints([1])) if count == 1 else \
            c.op("Reshape", c.op("Transpose", made, perm=[0, 2, 1, 3]), c.ints([0, 0, -1]))
        for parts, end in zip(last, ends):
            parts.append(end)
    if batch_first:
        data = c.op("Transpose", data, perm=[1, 0, 2])
    return [data] + [joined(c, parts, 0) for parts in last]
