# SPDX-License-Identifier: Apache-2.0
"""add_rnn_v2, as versions 5 to 9 had it: every operation, direction and way of input, lengths and first states, against NumPy."""
import itertools
import os

import numpy as np
import rig

os.environ["SINTER_TENSORRT_DEVICE"] = "cpu"
import sinter.tensorrt as trt  # noqa: E402

QUIET = trt.Logger(trt.Logger.ERROR)
G, OP = trt.RNNGateType, trt.RNNOperation
GATES = {OP.LSTM: (G.INPUT, G.FORGET, G.CELL, G.OUTPUT), OP.GRU: (G.UPDATE, G.RESET, G.HIDDEN), OP.TANH: (G.INPUT,),
         OP.RELU: (G.INPUT,)}
BATCH, TIMES, SIZE, LAYERS = 3, 4, 5, 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(op, x, h, c):
    """The next state and cell; x and h: what the gates get of the input and of the state before."""
    if op == OP.LSTM:
        c = sigmoid(x[G.FORGET] + h[G.FORGET]) * c["cell"] + sigmoid(x[G.INPUT] + h[G.INPUT]) * np.tanh(x[G.CELL] + h[G.CELL])
        return sigmoid(x[G.OUTPUT] + h[G.OUTPUT]) * np.tanh(c), c
    if op == OP.GRU:
        z, r = sigmoid(x[G.UPDATE] + h[G.UPDATE]), sigmoid(x[G.RESET] + h[G.RESET])
        return (1 - z) * np.tanh(x[G.HIDDEN] + r * h[G.HIDDEN]) + z * c["state"], c["cell"]
    return (np.tanh if op == OP.TANH else lambda v: np.maximum(v, 0))(x[G.INPUT] + h[G.INPUT]), c["cell"]


def wanted(op, directions, weights, x, lengths, hidden, cells):
    last_h, last_c = np.zeros((BATCH, LAYERS * directions, SIZE)), np.zeros((BATCH, LAYERS * directions, SIZE))
    for first in range(0, LAYERS * directions, directions):
        y = np.zeros((BATCH, TIMES, SIZE * directions))
        for d, n in itertools.product(range(directions), range(BATCH)):
            layer, h, c = first + d, hidden[n, first + d], cells[n, first + d]
            for t in range(lengths[n]) if d == 0 else reversed(range(lengths[n])):
                of = {is_w: {g: weights[layer, g, is_w][0] @ (x[n, t] if is_w else h) + weights[layer, g, is_w][1] for g in GATES[op]}
                      for is_w in (True, False)}
                h, c = step(op, of[True], of[False], {"state": h, "cell": c})
                y[n, t, d * SIZE:(d + 1) * SIZE] = h
            last_h[n, layer], last_c[n, layer] = h, c
        x = y
    return [x, last_h, last_c][:3 if op == OP.LSTM else 2]


def run(op, is_both, is_skipping, has_lengths, has_states, has_more_axes, rng):
    builder = trt.Builder(QUIET)
    network = builder.create_network()
    directions = 2 if is_both else 1
    states = BATCH, LAYERS * directions, SIZE
    first = (1, BATCH) if has_more_axes else (BATCH,)            # any number of axes lie before those of times and of features
    feeds = {"x": rng.standard_normal((BATCH, TIMES, SIZE)).astype("f4")}
    layer = network.add_rnn_v2(network.add_input("x", trt.float32, (*first, TIMES, SIZE)), LAYERS, SIZE, TIMES,
                               OP.LSTM if has_more_axes else op)
    layer.name, layer.op = "rnn", op
    assert (layer.type, layer.op, layer.num_layers, layer.data_length) == (trt.LayerType.RNN_V2, op, LAYERS, SIZE) and layer.name == "rnn"
    if is_both:
        layer.direction = trt.RNNDirection.BIDIRECTION
    weights = {}
    for index, gate, is_w in itertools.product(range(LAYERS * directions), GATES[op], (True, False)):
        width = SIZE * directions if is_w and index >= directions else SIZE
        kernel, bias = rng.standard_normal((SIZE, width)).astype("f4") / 3, rng.standard_normal(SIZE).astype("f4") / 3
        if is_skipping and is_w and index < directions:
            kernel, bias = np.eye(SIZE, dtype="f4"), np.zeros(SIZE, "f4")
        else:
            layer.set_weights_for_gate(index, gate, is_w, trt.Weights(kernel))
            layer.set_bias_for_gate(index, gate, is_w, bias)
            assert np.array_equal(layer.get_bias_for_gate(index, gate, is_w), bias)
        weights[index, gate, is_w] = kernel, bias
    if is_skipping:
        layer.input_mode = trt.RNNInputMode.SKIP
    lengths, hidden, cells = [TIMES] * BATCH, np.zeros(states, "f4"), np.zeros(states, "f4")
    if has_lengths:
        feeds["lengths"] = np.array([4, 2, 3], "i4")
        lengths, layer.seq_lengths = feeds["lengths"], network.add_input("lengths", trt.int32, first)
    if has_states:
        feeds["h0"] = hidden = rng.standard_normal(states).astype("f4")
        layer.hidden_state = network.add_input("h0", trt.float32, (*first, *states[1:]))
        if op == OP.LSTM:
            feeds["c0"] = cells = rng.standard_normal(states).astype("f4")
            layer.cell_state = network.add_input("c0", trt.float32, (*first, *states[1:]))
    expected = wanted(op, directions, weights, feeds["x"], lengths, hidden, cells)
    assert layer.num_outputs == len(expected) and layer.get_output(3) is None
    for i, array in enumerate(expected):
        layer.get_output(i).name = f"y{i}"
        network.mark_output(layer.get_output(i))
        assert tuple(layer.get_output(i).shape) == (*first, *array.shape[1:])
    context = builder.build_engine_with_config(network, builder.create_builder_config()).create_execution_context()
    found = [np.zeros(array.shape, "f4") for array in expected]
    for name, array in [*feeds.items(), *((f"y{i}", array) for i, array in enumerate(found))]:
        assert context.set_tensor_address(name, array.ctypes.data)
    assert context.execute_async_v3(0)
    for i, (got, want) in enumerate(zip(found, expected)):
        assert np.abs(got - want).max() < 1e-5, (op, is_both, is_skipping, has_lengths, has_states, i)


def test_every_form():
    rng = np.random.default_rng(5)
    for op in GATES:
        for i, form in enumerate(itertools.product((False, True), repeat=4)):
            run(op, *form, bool(i % 3 == 1), rng)


def test_what_is_refused():
    network = trt.Builder(QUIET).create_network()
    x = network.add_input("x", trt.float32, (BATCH, TIMES, SIZE))
    layer = network.add_rnn_v2(x, 1, SIZE, TIMES, OP.GRU)
    rig.raises(ValueError, layer.set_bias_for_gate, 0, G.CELL, True, np.zeros(SIZE, "f4"), says="UPDATE")


rig.main(__name__)
