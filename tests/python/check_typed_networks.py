# SPDX-License-Identifier: Apache-2.0
"""ResNet-50, BERT and GPT-2 made by typed calls of the network API alone: they give what their ONNX imports give, and what the
zoo expects.

    check_typed_networks.py ZOO [resnet50|bert|gpt2]...

Needs the packages numpy and onnx (which reads the weights)."""
import json
import os
import pathlib
import sys

import numpy as np
import onnx
import rig  # noqa: F401: finds the package and the library
from onnx import numpy_helper

os.environ["SINTER_TENSORRT_DEVICE"] = "cpu"
import sinter.tensorrt as trt  # noqa: E402

LOGGER = trt.Logger(trt.Logger.ERROR)
E, U, R = trt.ElementWiseOperation, trt.UnaryOperation, trt.MatrixOperation


class Calls:
    """Short names for calls of a network."""

    def __init__(self, network, weights):
        self.n, self.w = network, weights

    def const(self, value, dtype=np.float32):
        value = np.asarray(value, dtype, order="C")
        return self.n.add_constant(value.shape, value).get_output(0)

    def each(self, a, b, op):
        """Element by element; the operand of less rank gets axes of 1 in front."""
        while len(b.shape) < len(a.shape):
            b = self.reshape(b, (1,) + tuple(b.shape))
        while len(a.shape) < len(b.shape):
            a = self.reshape(a, (1,) + tuple(a.shape))
        return self.n.add_elementwise(a, b, op).get_output(0)

    def scalar(self, like, value):
        return self.const(np.full((1,) * len(like.shape), value))

    def reshape(self, x, dims, first=None, second=None):
        layer = self.n.add_shuffle(x)
        if first:
            layer.first_transpose = first
        if dims:
            layer.reshape_dims = dims
        if second:
            layer.second_transpose = second
        return layer.get_output(0)

    def product(self, x, w, flip=False):
        return self.n.add_matrix_multiply(x, R.NONE, w, R.TRANSPOSE if flip else R.NONE).get_output(0)

    def dense(self, x, kernel, bias, flip=False):
        """x [N, S, C] by a matrix."""
        made = self.product(x, self.const(self.w[kernel][None]), flip)
        return self.each(made, self.const(self.w[bias][None, None]), E.SUM)

    def norm(self, x, name, epsilon):
        shape = (1, 1, -1)
        scale, bias = (self.const(self.w[f"{name}.{p}"].reshape(shape)) for p in ("weight", "bias"))
        layer = self.n.add_normalization(x, scale, bias, 1 << 2)
        layer.epsilon = epsilon
        return layer.get_output(0)

    def activate(self, x, kind):
        return self.n.add_activation(x, kind).get_output(0)

    def size(self, x, axis):
        """The size of an axis, as a tensor [1]."""
        return self.n.add_slice(self.n.add_shape(x).get_output(0), (axis,), (1,), (1,)).get_output(0)

    def join(self, parts, axis=0):
        layer = self.n.add_concatenation(parts)
        layer.axis = axis
        return layer.get_output(0)

    def mark(self, x, name):
        x.name = name
        self.n.mark_output(x)


def resnet50(c, zoo):
    """Batch norms are in the convolutions, as the exporter folds them."""
    convs = iter([n for n in c.w if n.startswith("onnx::Conv")])

    def conv(x, stride=1, pad=0):
        kernel, bias = c.w[next(convs)], c.w[next(convs)]
        layer = c.n.add_convolution_nd(x, kernel.shape[0], kernel.shape[2:], kernel, bias)
        layer.stride_nd, layer.padding_nd = (stride, stride), (pad, pad)
        return layer.get_output(0)

    def relu(x):
        return c.activate(x, trt.ActivationType.RELU)
    x = c.n.add_input("input", trt.float32, (-1, 3, 224, 224))
    pool = c.n.add_pooling_nd(relu(conv(x, 2, 3)), trt.PoolingType.MAX, (3, 3))
    pool.stride_nd, pool.padding_nd = (2, 2), (1, 1)
    x = pool.get_output(0)
    for stage, count in enumerate((3, 4, 6, 3)):
        for block in range(count):
            stride = 2 if stage and not block else 1
            y = conv(relu(conv(relu(conv(x)), stride, 1)))
            x = relu(c.each(y, x if block else conv(x, stride), E.SUM))
    mean = c.n.add_reduce(x, trt.ReduceOperation.AVG, 1 << 2 | 1 << 3, False).get_output(0)
    logits = c.each(c.product(mean, c.const(c.w["fc.weight"]), True), c.const(c.w["fc.bias"][None]), E.SUM)
    c.mark(logits, "logits")


def attend(c, q, k, v, hidden, scale):
    """Attention by hand: q, k, v are [N, H, S, D]; hidden is true where a key is hidden, [N or 1, 1, S or 1, T]."""
    scores = c.product(q, k, True)
    scores = c.each(scores, c.scalar(scores, scale), E.PROD)
    low = c.scalar(scores, np.finfo(np.float32).min)
    softmax = c.n.add_softmax(c.n.add_select(hidden, low, scores).get_output(0))
    softmax.axes = 1 << 3
    return c.reshape(c.product(softmax.get_output(0), v), (0, 0, -1), first=(0, 2, 1, 3))


def bert(c, zoo):
    ids, mask, kinds = (c.n.add_input(n, trt.int64, (-1, -1)) for n in ("input_ids", "attention_mask", "token_type_ids"))
    e = "m.embeddings."
    x = c.each(c.n.add_gather(c.const(c.w[e + "word_embeddings.weight"]), ids, 0).get_output(0),
               c.n.add_gather(c.const(c.w[e + "token_type_embeddings.weight"]), kinds, 0).get_output(0), E.SUM)
    cut = c.n.add_slice(c.const(c.w[e + "position_embeddings.weight"][None]), (0, 0, 0), (1, 1, 1), (1, 1, 1))
    cut.set_input(2, c.join([c.const([1], np.int64), c.size(ids, 1), c.const([768], np.int64)]))
    x = c.norm(c.each(x, cut.get_output(0), E.SUM), e + "LayerNorm", 1e-12)
    hidden = c.n.add_unary(c.n.add_cast(c.reshape(mask, (0, 1, 1, -1)), trt.bool).get_output(0), U.NOT).get_output(0)
    for i in range(12):
        p = f"encoder.layer.{i}."
        q, k, v = (c.reshape(c.dense(x, c.key[p + f"attention.self.{n}.weight"], f"m.{p}attention.self.{n}.bias"), (0, 0, 12, 64),
                             second=(0, 2, 1, 3)) for n in ("query", "key", "value"))
        y = attend(c, q, k, v, hidden, 0.125)
        y = c.dense(y, c.key[p + "attention.output.dense.weight"], f"m.{p}attention.output.dense.bias")
        x = c.norm(c.each(x, y, E.SUM), f"m.{p}attention.output.LayerNorm", 1e-12)
        y = c.dense(x, c.key[p + "intermediate.dense.weight"], f"m.{p}intermediate.dense.bias")
        y = c.dense(c.activate(y, trt.ActivationType.GELU_ERF), c.key[p + "output.dense.weight"], f"m.{p}output.dense.bias")
        x = c.norm(c.each(x, y, E.SUM), f"m.{p}output.LayerNorm", 1e-12)
    first = c.n.add_gather(x, c.const(0, np.int64), 1).get_output(0)
    pooled = c.each(c.product(first, c.const(c.w["m.pooler.dense.weight"]), True), c.const(c.w["m.pooler.dense.bias"][None]), E.SUM)
    c.mark(c.n.add_identity(x).get_output(0), "last_hidden_state")
    c.mark(c.activate(pooled, trt.ActivationType.TANH), "pooler_output")


def gpt2(c, zoo):
    ids, mask, places = (c.n.add_input(n, trt.int64, (-1, -1)) for n in ("input_ids", "attention_mask", "position_ids"))
    past = [[c.n.add_input(f"past_key_values.{i}.{n}", trt.float32, (-1, 12, -1, 64)) for n in ("key", "value")] for i in range(12)]
    t = "m.transformer."
    x = c.each(c.n.add_gather(c.const(c.w[t + "wte.weight"]), ids, 0).get_output(0),
               c.n.add_gather(c.const(c.w[t + "wpe.weight"]), places, 0).get_output(0), E.SUM)
    # Key j is hidden from token i if j > P + i, or if the mask is 0 there.
    columns = c.n.add_fill((1,), trt.FillOperation.LINSPACE, trt.int64)
    columns.set_input(0, c.size(mask, 1))
    columns.set_input(1, c.const(0, np.int64))
    columns.set_input(2, c.const([1], np.int64))
    columns = columns.get_output(0)
    rows = c.n.add_slice(columns, (0,), (1,), (1,))
    rows.set_input(1, c.size(past[0][0], 2))
    rows.set_input(2, c.size(ids, 1))
    late = c.each(c.reshape(columns, (1, 1, 1, -1)), c.reshape(rows.get_output(0), (1, 1, -1, 1)), E.GREATER)
    absent = c.n.add_unary(c.n.add_cast(c.reshape(mask, (0, 1, 1, -1)), trt.bool).get_output(0), U.NOT).get_output(0)
    hidden = c.each(late, absent, E.OR)
    present = []
    for i in range(12):
        p = f"{t}h.{i}."
        y = c.reshape(c.dense(c.norm(x, p + "ln_1", 1e-5), p + "attn.c_attn.weight", p + "attn.c_attn.bias"), (0, 0, 3, 12, 64),
                      second=(2, 0, 3, 1, 4))
        q, k, v = (c.n.add_gather(y, c.const(j, np.int64), 0).get_output(0) for j in range(3))
        k, v = c.join([past[i][0], k], 2), c.join([past[i][1], v], 2)
        present.append((k, v))
        y = attend(c, q, k, v, hidden, 0.125)
        x = c.each(x, c.dense(y, p + "attn.c_proj.weight", p + "attn.c_proj.bias"), E.SUM)
        y = c.dense(c.norm(x, p + "ln_2", 1e-5), p + "mlp.c_fc.weight", p + "mlp.c_fc.bias")
        y = c.activate(y, trt.ActivationType.GELU_TANH)
        x = c.each(x, c.dense(y, p + "mlp.c_proj.weight", p + "mlp.c_proj.bias"), E.SUM)
    head = next(w for w in c.w.values() if w.shape == (768, 50257))
    c.mark(c.product(c.norm(x, t + "ln_f", 1e-5), c.const(head[None])), "logits")
    for i, (k, v) in enumerate(present):
        c.mark(k, f"present.{i}.key")
        c.mark(v, f"present.{i}.value")


NETWORKS = {"resnet50": ("resnet50_ts", resnet50, {"N": (1, 1, 3)}), "bert": ("bert_base_ts", bert, {"N": (1, 2, 2), "S": (1, 24, 128)}),
            "gpt2": ("gpt2", gpt2, {"N": (1, 1, 2), "S": (1, 4, 16), "P": (0, 8, 31), "T": (1, 12, 47)})}


def build(make, folder, case, symbols):
    """(engine, number of layers). make None: from the model's file."""
    builder = trt.Builder(LOGGER)
    network = builder.create_network(0)
    if make is None:
        parser = trt.OnnxParser(network, LOGGER)
        assert parser.parse_from_file(str(folder / "model.onnx")), parser.get_error(0)
    else:
        model = onnx.load(str(folder / "model.onnx"))
        calls = Calls(network, {t.name: numpy_helper.to_array(t) for t in model.graph.initializer})
        calls.key = {t["key"]: t["name"] for t in json.loads((folder / "weights.json").read_text())["tensors"] if "key" in t}
        make(calls, folder)
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    profile = builder.create_optimization_profile()
    for row in case["inputs"]:
        shapes = [[symbols[d][k] if isinstance(d, str) else d for d in row["shape"]] for k in range(3)]
        profile.set_shape(row["name"], *shapes)
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    return trt.Runtime(LOGGER).deserialize_cuda_engine(plan), network.num_layers


def run(engine, feeds):
    """name -> output. An output whose size is computed in the run has memory for the most that it may need."""
    context = engine.create_execution_context()
    for name, array in feeds.items():
        assert context.set_input_shape(name, array.shape)
        assert context.set_tensor_address(name, array.ctypes.data)
    found = {name: np.zeros(context.get_max_output_size(name), np.uint8) for name in engine if name not in feeds}
    for name, memory in found.items():
        assert context.set_tensor_address(name, memory.ctypes.data)
    assert context.execute_async_v3(0)

    def cut(name, memory):
        shape, dtype = tuple(context.get_tensor_shape(name)), trt.nptype(engine.get_tensor_dtype(name))
        return memory.view(dtype)[:int(np.prod(shape))].reshape(shape)
    return {name: cut(name, memory) for name, memory in found.items()}


def compare(zoo, name):
    folder, make, symbols = NETWORKS[name]
    folder = zoo / folder
    case = json.loads((folder / "case.json").read_text())
    data = []
    for row in case["cases"]:
        if all(symbols[s][0] <= row["dims"].get(s, symbols[s][0]) <= symbols[s][2] for s in symbols):
            paths = [folder / row["name"] / f"input_{i}.npy" for i in range(len(case["inputs"]))]
            data.append((row, {i["name"]: np.ascontiguousarray(np.load(p)) for i, p in zip(case["inputs"], paths)}))
    engine, _ = build(None, folder, case, symbols)
    imported = [run(engine, feeds) for _, feeds in data]
    del engine
    engine, layers = build(make, folder, case, symbols)
    for (row, feeds), want in zip(data, imported):
        got = run(engine, feeds)
        assert set(got) == set(want), (set(got), set(want))
        for output in row["outputs"]:
            a, b = got[output["name"]], want[output["name"]]
            limit = output["atol"] + output["rtol"] * np.abs(b)
            assert a.shape == b.shape == tuple(output["shape"]) and (np.abs(a - b) <= limit).all(), \
                f"{name} {row['name']} {output['name']}: {np.abs(a - b).max()} apart"
    print(f"ok   {name}: {layers} layers by calls, {len(data)} cases")
    return len(data)


def main():
    zoo = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or NETWORKS:
        assert compare(zoo, name), f"{name}: no case lies in the profile"


if __name__ == "__main__":
    main()
