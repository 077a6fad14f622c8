# SPDX-License-Identifier: Apache-2.0
"""A BERT encoder by typed calls, as the BERT demo's builder makes one: embeddings, attention, layer norm out of reductions and
out of the normalisation layer, GELU by elements, several profiles, weights that are refitted by names."""
import sys

import numpy as np
import tensorrt as trt
from cuda import cudart

TRT_LOGGER = trt.Logger(trt.Logger.ERROR)
HIDDEN, HEADS, LAYERS, INTER, VOCAB, POSITIONS = 24, 3, 2, 48, 50, 16


class BertConfig:
    def __init__(self, **kw):
        self.head_size = HIDDEN // HEADS
        self.use_fp16 = kw.get("fp16", False)


def make_weights():
    rng = np.random.default_rng(3)

    def normal(*shape):
        return rng.normal(0, 0.2, shape).astype(np.float32)
    made = {"word": normal(VOCAB, HIDDEN), "position": normal(POSITIONS, HIDDEN), "type": normal(2, HIDDEN),
            "emb_gamma": 1 + normal(HIDDEN), "emb_beta": normal(HIDDEN)}
    for i in range(LAYERS):
        p = f"l{i}_"
        for name, out, cin in (("q", HIDDEN, HIDDEN), ("k", HIDDEN, HIDDEN), ("v", HIDDEN, HIDDEN), ("o", HIDDEN, HIDDEN),
                               ("up", INTER, HIDDEN), ("down", HIDDEN, INTER)):
            made[p + name + "_kernel"], made[p + name + "_bias"] = normal(cin, out), normal(out)
        for name in ("n1", "n2"):
            made[p + name + "_gamma"], made[p + name + "_beta"] = 1 + normal(HIDDEN), normal(HIDDEN)
    return made


def set_tensor_name(tensor, prefix, name):
    tensor.name = prefix + name


def set_output_name(layer, prefix, name, out_idx=0):
    set_tensor_name(layer.get_output(out_idx), prefix, name)


def constant(network, w, name, shape=None):
    layer = network.add_constant(shape or w[name].shape, trt.Weights(np.ascontiguousarray(w[name])))
    layer.name = name
    network.set_weights_name(layer.weights, name)
    return layer.get_output(0)


def dense(network, w, x, name, rank=3):
    kernel, bias = w[name + "_kernel"], w[name + "_bias"]
    k = constant(network, w, name + "_kernel", (1,) * (rank - 2) + kernel.shape)
    mm = network.add_matrix_multiply(x, trt.MatrixOperation.NONE, k, trt.MatrixOperation.NONE)
    mm.name = name + "_mm"
    b = constant(network, w, name + "_bias", (1,) * (rank - 1) + bias.shape)
    return network.add_elementwise(mm.get_output(0), b, trt.ElementWiseOperation.SUM)


def layer_norm_by_parts(network, w, x, gamma, beta):
    axes = 1 << 2
    mean = network.add_reduce(x, trt.ReduceOperation.AVG, axes, True).get_output(0)
    diff = network.add_elementwise(x, mean, trt.ElementWiseOperation.SUB).get_output(0)
    square = network.add_elementwise(diff, diff, trt.ElementWiseOperation.PROD).get_output(0)
    var = network.add_reduce(square, op=trt.ReduceOperation.AVG, axes=axes, keep_dims=True).get_output(0)
    eps = network.add_constant((1, 1, 1), trt.Weights(np.array([1e-5], np.float32))).get_output(0)
    root = network.add_unary(network.add_elementwise(var, eps, trt.ElementWiseOperation.SUM).get_output(0), trt.UnaryOperation.SQRT)
    unit = network.add_elementwise(diff, root.get_output(0), trt.ElementWiseOperation.DIV).get_output(0)
    scaled = network.add_elementwise(unit, constant(network, w, gamma, (1, 1, HIDDEN)), trt.ElementWiseOperation.PROD).get_output(0)
    return network.add_elementwise(scaled, constant(network, w, beta, (1, 1, HIDDEN)), trt.ElementWiseOperation.SUM)


def layer_norm(network, w, x, gamma, beta):
    layer = network.add_normalization(x, constant(network, w, gamma, (1, 1, HIDDEN)), constant(network, w, beta, (1, 1, HIDDEN)), 1 << 2)
    layer.epsilon = 1e-5
    layer.compute_precision = trt.float32
    return layer


def gelu(network, x):
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))"""
    def scalar(value):
        return network.add_constant((1, 1, 1), trt.Weights(np.ascontiguousarray([value], dtype=np.float32))).get_output(0)
    pow3 = network.add_elementwise(x, scalar(3.0), trt.ElementWiseOperation.POW)
    mult = network.add_elementwise(pow3.get_output(0), scalar(0.044715), trt.ElementWiseOperation.PROD)
    both = network.add_elementwise(x, mult.get_output(0), trt.ElementWiseOperation.SUM)
    root = network.add_elementwise(scalar(np.sqrt(2.0 / np.pi)), both.get_output(0), trt.ElementWiseOperation.PROD)
    tanh = network.add_activation(root.get_output(0), type=trt.ActivationType.TANH)
    one = network.add_elementwise(scalar(1.0), tanh.get_output(0), trt.ElementWiseOperation.SUM)
    half = network.add_elementwise(scalar(0.5), one.get_output(0), trt.ElementWiseOperation.PROD)
    made = network.add_elementwise(x, half.get_output(0), trt.ElementWiseOperation.PROD)
    assert made.op == trt.ElementWiseOperation.PROD
    return made


def attention(network, w, config, x, mask, i):
    p, heads = f"l{i}_", []
    for name in "qkv":
        d = dense(network, w, x, p + name)
        shuffle = network.add_shuffle(d.get_output(0))
        shuffle.reshape_dims = (0, 0, HEADS, config.head_size)
        shuffle.second_transpose = (0, 2, 1, 3)
        set_output_name(shuffle, p, "heads_" + name)
        heads.append(shuffle.get_output(0))
    q, k, v = heads
    scores = network.add_matrix_multiply(q, trt.MatrixOperation.NONE, k, trt.MatrixOperation.TRANSPOSE).get_output(0)
    scale = network.add_scale(scores, trt.ScaleMode.UNIFORM, trt.Weights(np.zeros(1, np.float32)),
                              trt.Weights(np.array([config.head_size ** -0.5], np.float32)), trt.Weights(np.ones(1, np.float32)))
    masked = network.add_elementwise(scale.get_output(0), mask, trt.ElementWiseOperation.SUM).get_output(0)
    softmax = network.add_softmax(masked)
    softmax.axes = 1 << 3
    mixed = network.add_matrix_multiply(softmax.get_output(0), trt.MatrixOperation.NONE, v, trt.MatrixOperation.NONE)
    back = network.add_shuffle(mixed.get_output(0))
    back.first_transpose = trt.Permutation([0, 2, 1, 3])
    back.reshape_dims = (0, 0, HIDDEN)
    return dense(network, w, back.get_output(0), p + "o").get_output(0)


def embed(network, w, ids, kinds):
    words = network.add_gather(constant(network, w, "word"), ids, 0).get_output(0)
    types = network.add_gather(constant(network, w, "type"), kinds, axis=0).get_output(0)
    shape = network.add_shape(ids).get_output(0)
    if shape.dtype != trt.int32:
        shape = network.add_cast(shape, trt.int32).get_output(0)
    length = network.add_slice(shape, (1,), (1,), (1,)).get_output(0)
    width = network.add_constant((1,), np.array([HIDDEN], np.int32)).get_output(0)
    size = network.add_concatenation([length, width])
    size.axis = 0
    cut = network.add_slice(constant(network, w, "position"), start=(0, 0), shape=(1, HIDDEN), stride=(1, 1))
    cut.set_input(2, size.get_output(0))
    row = network.add_shuffle(cut.get_output(0))
    one = network.add_constant((1,), np.array([1], np.int32)).get_output(0)
    whole = network.add_concatenation([one, length, width]).get_output(0)
    row.set_input(1, whole)
    both = network.add_elementwise(words, types, trt.ElementWiseOperation.SUM).get_output(0)
    sum_ = network.add_elementwise(both, row.get_output(0), trt.ElementWiseOperation.SUM).get_output(0)
    return layer_norm(network, w, sum_, "emb_gamma", "emb_beta").get_output(0)


def build_engine(w, config, profiles, refit):
    with trt.Builder(TRT_LOGGER) as builder, builder.create_network(
            1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)) as network, builder.create_builder_config() as builder_config:
        builder_config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 26)
        builder_config.avg_timing_iterations = 8
        builder_config.set_tactic_sources(1 << int(trt.TacticSource.CUBLAS) | 1 << int(trt.TacticSource.CUBLAS_LT))
        if refit:
            builder_config.set_flag(trt.BuilderFlag.REFIT)
        for low, opt, high in profiles:
            profile = builder.create_optimization_profile()
            for name in ("input_ids", "segment_ids", "input_mask"):
                profile.set_shape(name, min=low, opt=opt, max=high)
            builder_config.add_optimization_profile(profile)
        ids = network.add_input(name="input_ids", dtype=trt.int32, shape=(-1, -1))
        kinds = network.add_input(name="segment_ids", dtype=trt.int32, shape=(-1, -1))
        mask = network.add_input(name="input_mask", dtype=trt.int32, shape=(-1, -1))
        x = embed(network, w, ids, kinds)
        floats = network.add_cast(mask, trt.float32).get_output(0)
        row = network.add_shuffle(floats)
        shape = network.add_cast(network.add_shape(mask).get_output(0), trt.int32).get_output(0)
        ones = network.add_constant((1,), np.array([1], np.int32)).get_output(0)
        batch = network.add_slice(shape, (0,), (1,), (1,)).get_output(0)
        length = network.add_slice(shape, (1,), (1,), (1,)).get_output(0)
        row.set_input(1, network.add_concatenation([batch, ones, ones, length]).get_output(0))
        off = network.add_elementwise(row.get_output(0), network.add_constant((1, 1, 1, 1), np.ones(1, np.float32)).get_output(0),
                                      trt.ElementWiseOperation.SUB).get_output(0)
        big = network.add_constant((1, 1, 1, 1), np.array([10000], np.float32)).get_output(0)
        added = network.add_elementwise(off, big, trt.ElementWiseOperation.PROD).get_output(0)
        for i in range(LAYERS):
            p = f"l{i}_"
            att = attention(network, w, config, x, added, i)
            skip = network.add_elementwise(x, att, trt.ElementWiseOperation.SUM).get_output(0)
            x = (layer_norm_by_parts if i else layer_norm)(network, w, skip, p + "n1_gamma", p + "n1_beta").get_output(0)
            up = gelu(network, dense(network, w, x, p + "up").get_output(0)).get_output(0)
            down = dense(network, w, up, p + "down").get_output(0)
            skip = network.add_elementwise(x, down, trt.ElementWiseOperation.SUM).get_output(0)
            x = layer_norm(network, w, skip, p + "n2_gamma", p + "n2_beta").get_output(0)
        x.name = "encoder"
        network.mark_output(x)
        plan = builder.build_serialized_network(network, builder_config)
        assert plan, "the build failed"
        return trt.Runtime(TRT_LOGGER).deserialize_cuda_engine(plan)


def reference(w, ids, kinds, mask):
    def norm(x, gamma, beta):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w[gamma] + w[beta]
    w = {k: v.astype(np.float64) for k, v in w.items()}
    n, s = ids.shape
    x = norm(w["word"][ids] + w["type"][kinds] + w["position"][:s], "emb_gamma", "emb_beta")
    for i in range(LAYERS):
        p = f"l{i}_"
        q, k, v = ((x @ w[p + c + "_kernel"] + w[p + c + "_bias"]).reshape(n, s, HEADS, -1).transpose(0, 2, 1, 3) for c in "qkv")
        scores = q @ k.transpose(0, 1, 3, 2) * (HIDDEN // HEADS) ** -0.5 + (mask[:, None, None] - 1.0) * 10000
        e = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (e / e.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(n, s, HIDDEN)
        x = norm(x + mixed @ w[p + "o_kernel"] + w[p + "o_bias"], p + "n1_gamma", p + "n1_beta")
        up = x @ w[p + "up_kernel"] + w[p + "up_bias"]
        up = 0.5 * up * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up ** 3)))
        x = norm(x + up @ w[p + "down_kernel"] + w[p + "down_bias"], p + "n2_gamma", p + "n2_beta")
    return x


def infer(engine, context, profile, feeds):
    stream = cudart.cudaStreamCreate()[1]
    context.set_optimization_profile_async(profile, stream)
    kept = []
    for name, array in feeds.items():
        array = np.ascontiguousarray(array, np.int32)
        at = cudart.cudaMalloc(array.nbytes)[1]
        cudart.cudaMemcpyAsync(at, array.ctypes.data, array.nbytes, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, stream)
        context.set_input_shape(name, array.shape)
        context.set_tensor_address(name, at)
        kept.append((at, array))
    out = np.empty(tuple(context.get_tensor_shape("encoder")), np.float32)
    at = cudart.cudaMalloc(out.nbytes)[1]
    context.set_tensor_address("encoder", at)
    assert context.execute_async_v3(stream)
    cudart.cudaMemcpyAsync(out.ctypes.data, at, out.nbytes, cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost, stream)
    cudart.cudaStreamSynchronize(stream)
    for memory, _ in kept + [(at, None)]:
        assert cudart.cudaFree(memory)[0] == 0
    return out


def main():
    w, rng = make_weights(), np.random.default_rng(9)
    engine = build_engine(w, BertConfig(), [((1, 4), (1, 8), (2, 8)), ((1, 1), (4, 12), (5, 16))], refit=True)
    context = engine.create_execution_context()

    def check(w):
        for profile, n, s in ((0, 1, 4), (1, 5, 16), (0, 2, 7), (1, 3, 1)):
            feeds = {"input_ids": rng.integers(0, VOCAB, (n, s)), "segment_ids": rng.integers(0, 2, (n, s)),
                     "input_mask": (np.arange(s) < rng.integers(1, s + 1, (n, 1))).astype(int)}
            got, want = infer(engine, context, profile, feeds), reference(w, *feeds.values())
            assert got.shape == want.shape and np.abs(got - want).max() < 1e-4 * np.abs(want).max(), np.abs(got - want).max()
    check(w)
    refitter = trt.Refitter(engine, TRT_LOGGER)
    names = refitter.get_all_weights()
    assert set(w) <= set(names), set(w) - set(names)
    other = {name: (array * rng.uniform(0.5, 1.5)).astype(np.float32) for name, array in w.items()}
    for name, array in other.items():
        assert refitter.set_named_weights(name, trt.Weights(array)), name
    assert refitter.refit_cuda_engine()
    check(other)
    print("done")


if __name__ == "__main__":
    main()
