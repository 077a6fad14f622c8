# SPDX-License-Identifier: Apache-2.0
"""add_rnn_v2 of versions 5 to 9: a stack of LSTM, GRU or RNN operators of ONNX. What is set later (weights, states, the direction)
makes the operators anew behind the same outputs."""
from .._dtype import numpy
from ._core import Weights
from ._network import ILayer
from ._names import LayerType, RNNDirection, RNNGateType, RNNInputMode, RNNOperation

G = RNNGateType
GATES = {RNNOperation.LSTM: (G.INPUT, G.OUTPUT, G.FORGET, G.CELL), RNNOperation.GRU: (G.UPDATE, G.RESET, G.HIDDEN),
         RNNOperation.TANH: (G.INPUT,), RNNOperation.RELU: (G.INPUT,)}                # as ONNX orders them
NAMES = {RNNOperation.LSTM: ("LSTM", {}), RNNOperation.GRU: ("GRU", {"linear_before_reset": 1}), RNNOperation.TANH: ("RNN", {}),
         RNNOperation.RELU: ("RNN", {})}


def remade(name):
    def set(self, value):
        self._kept[name] = value
        self._make()
    return property(lambda self: self._kept[name], set)


class IRNNv2Layer(ILayer):
    """Outputs: all states [N, S, H], the last ones [N, layers, H], and the last cells of an LSTM. With two directions the layers are
    forward and backward in turn, and states of both lie side by side. N stands for any number of axes."""
    ATTRIBUTES = "name metadata type num_layers hidden_size max_seq_length"
    layer_type = LayerType.RNN_V2
    direction, input_mode, op = remade("direction"), remade("input_mode"), remade("op")
    hidden_state, cell_state, seq_lengths = remade("hidden_state"), remade("cell_state"), remade("seq_lengths")

    def __init__(self, network, input, layer_count, hidden_size, max_seq_length, op):
        self.num_layers, self.hidden_size, self.max_seq_length = int(layer_count), int(hidden_size), int(max_seq_length)
        self._kept = dict(direction=RNNDirection.UNIDIRECTION, input_mode=RNNInputMode.LINEAR, op=RNNOperation(op), hidden_state=None, cell_state=None,
                          seq_lengths=None)
        self._input, self._weights, self._made, self._outputs = input, {}, [], []
        self._outputs.append(network._net.add("identity", input.tensor))
        super().__init__(network, self._outputs[0])
        self._make()

    data_length = property(lambda self: self._input.shape[-1])
    num_inputs = property(lambda self: 1 + sum(self._kept[k] is not None for k in ("hidden_state", "cell_state", "seq_lengths")))
    num_outputs = property(lambda self: 3 if self.op == RNNOperation.LSTM else 2)

    def get_input(self, index):
        given = [self._input, self.hidden_state, self.cell_state, self.seq_lengths]
        return given[index] if index < len(given) else None

    def get_output(self, index):
        return self.network._wrap(self._outputs[index].output) if index < self.num_outputs else None

    # ---- weights: of the input (is_w) and of the state before, for each gate ----

    def set_weights_for_gate(self, layer_index, gate, is_w, weights):
        self._set("weights", layer_index, gate, is_w, weights)

    def set_bias_for_gate(self, layer_index, gate, is_w, bias):
        self._set("bias", layer_index, gate, is_w, bias)

    def get_weights_for_gate(self, layer_index, gate, is_w):
        return self._weights.get(("weights", layer_index, gate, bool(is_w)))

    def get_bias_for_gate(self, layer_index, gate, is_w):
        return self._weights.get(("bias", layer_index, gate, bool(is_w)))

    def _set(self, what, layer_index, gate, is_w, given):
        if gate not in GATES[self.op]:
            raise ValueError(f"{self.op} has the gates {', '.join(g.name for g in GATES[self.op])}, not {gate.name}")
        self._weights[what, layer_index, gate, bool(is_w)] = numpy().array(Weights(given).numpy())
        self.network._stale[self] = None            # a build makes the operators: a stack has many weights

    def _stacked(self, what, layers, is_w, width):
        """[directions, gates * H, width] of these layers; zeros where nothing is set yet."""
        np, size = numpy(), self.hidden_size
        made = np.zeros((len(layers), len(GATES[self.op]) * size, width), np.float32)
        for d, layer in enumerate(layers):
            for g, gate in enumerate(GATES[self.op]):
                part = made[d, g * size:(g + 1) * size]
                found = self._weights.get((what, layer, gate, is_w))
                if found is not None:
                    part[:] = found.reshape(part.shape)
                elif what == "weights" and is_w and layer < len(layers) and self.input_mode == RNNInputMode.SKIP:
                    part[:] = np.eye(size, width)
        return made

    # ---- the operators ----

    def _op(self, type, *inputs, outputs=1, **attributes):
        self._made.append(self.network._net.add_op(type, *inputs, outputs=outputs, **attributes))
        return self._made[-1].outputs

    def _constant(self, array):
        tensor = self.network._net.add_constant(array)
        self._made.append(tensor.producer)
        return tensor

    def _states(self, given):
        """States [N, layers, H] as those of each layer, [directions, N, H]."""
        if given is None:
            return [None] * self.num_layers
        turned, = self._op("Transpose", self._with_axes(given.tensor, 3), perm=[1, 0, 2])
        return self._op("Split", turned, outputs=self.num_layers, axis=0, num_outputs=self.num_layers) if self.num_layers > 1 else [turned]

    def _with_axes(self, tensor, count):
        """The tensor with its first axes made one, so that it has `count`."""
        if len(tensor.shape) == count:
            return tensor
        kept = self._op("Shape", tensor, start=1 - count)[0] if count > 1 else None
        sizes = [self._constant(numpy().array([-1], numpy().int64))] + ([kept] if kept is not None else [])
        return self._op("Reshape", tensor, self._op("Concat", *sizes, axis=0)[0])[0]

    def _with_first_axes(self, result):
        """A result [N, ., .] with the first axes of the input instead of one."""
        if len(self._input.shape) == 3:
            return result
        first, last = self._op("Shape", self._input.tensor, end=-2)[0], self._op("Shape", result, start=1)[0]
        return self._op("Reshape", result, self._op("Concat", first, last, axis=0)[0])[0]

    def _make(self):
        self.network._stale.pop(self, None)
        net, np, old = self.network._net, numpy(), self._made
        directions = 2 if self.direction == RNNDirection.BIDIRECTION else 1
        while len(self._outputs) < self.num_outputs:
            self._outputs.append(net.add("identity", self._input.tensor))
        self._made, last = [], [[] for _ in range(1, self.num_outputs)]
        x, = self._op("Transpose", self._with_axes(self._input.tensor, 3), perm=[1, 0, 2])
        hidden, cells = self._states(self.hidden_state), self._states(self.cell_state)
        lengths = None if self.seq_lengths is None else self._with_axes(self.seq_lengths.tensor, 1)
        name, attributes = NAMES[self.op]
        for i in range(self.num_layers):
            layers = range(i * directions, (i + 1) * directions)
            width = self.hidden_size * directions if i else self.data_length
            bias = np.concatenate([self._stacked("bias", layers, is_w, 1)[:, :, 0] for is_w in (True, False)], 1)
            inputs = [x, self._constant(self._stacked("weights", layers, True, width)),
                      self._constant(self._stacked("weights", layers, False, self.hidden_size)), self._constant(bias), lengths, hidden[i]]
            if self.op == RNNOperation.LSTM:
                inputs.append(cells[i])
            while inputs[-1] is None:
                inputs.pop()
            if self.op == RNNOperation.RELU:
                attributes = {"activations": ",".join(["Relu"] * directions)}
            y, *states = self._op(name, *inputs, outputs=self.num_outputs, hidden_size=self.hidden_size,
                                  direction="bidirectional" if directions == 2 else "forward", **attributes)
            for kept, state in zip(last, states):
                kept.append(state)
            y, = self._op("Transpose", y, perm=[0, 2, 1, 3])
            x, = self._op("Reshape", y, self._constant(np.array([0, 0, -1], np.int64)))
        results = self._op("Transpose", x, perm=[1, 0, 2])
        for kept in last:
            joined, = self._op("Concat", *kept, axis=0)
            results += self._op("Transpose", joined, perm=[1, 0, 2])
        for layer, result in zip(self._outputs, results):
            layer.set_input(0, self._with_first_axes(result))
        for layer in self._outputs[self.num_outputs:]:
            layer.set_input(0, self._input.tensor)
        for layer in reversed(old):
            net.remove(layer)
