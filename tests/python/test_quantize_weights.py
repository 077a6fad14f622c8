# SPDX-License-Identifier: Apache-2.0
"""`sinter quantize --quantize_mode int4`: random networks of products whose weights become numbers of 4 bits in blocks. The written
model is read again with onnx; NumPy says what its weights must be and what the network must give in f64. sinter and ONNX
Runtime run it. Activation-aware scales must not be worse than rounding alone on the data that they were made with."""
import json

import rig  # noqa: I001
import numpy as np
import sinter
from onnx_bytes import num
from random_models import data, initializer, integer, model, node, value

try:
    import onnx
    import onnxruntime
    from onnx.numpy_helper import to_array
except ImportError:
    onnx = onnxruntime = None


class Net:
    """A random network of products. `forward` computes it in f64 with the weights that are given."""

    def __init__(self, seed, block):
        rng = self.rng = np.random.default_rng(seed)
        self.block, self.weights, self.steps = block, {}, []
        width = int(rng.choice([32, 48, 64, 96, 130, 256]))
        self.shape = [int(rng.integers(1, 4)), int(rng.integers(2, 9)), width] if rng.integers(2) else [int(rng.integers(2, 30)), width]
        last = "x"
        for i in range(int(rng.integers(1, 5))):
            kind = rng.choice(["MatMul", "MatMul", "Gemm", "Add"]) if i else "MatMul"
            columns = int(rng.choice([16, 24, 33, 64, 128]))
            if kind == "Gemm" and len(self.shape) != 2:
                kind = "MatMul"
            made = f"v{i}"
            if kind == "Add":
                self.steps.append(("Add", last, made, self.constant(f"b{i}", (width,)), 0))
            else:
                turned = int(kind == "Gemm" and rng.integers(2))
                w = self.weight(f"w{i}", width, columns, turned)
                self.steps.append((kind, last, made, w, turned))
                width = columns
            last = made
            if rng.integers(2):
                self.steps.append((rng.choice(["Relu", "Tanh"]), last, f"r{i}", None, 0))
                last = f"r{i}"
        self.last, self.width = last, width

    def constant(self, name, shape):
        self.weights[name] = self.rng.standard_normal(shape).astype("f4")
        return name

    def weight(self, name, terms, columns, turned):
        w = self.rng.standard_normal((terms, columns)) / np.sqrt(terms)
        w *= np.exp(self.rng.standard_normal((terms, 1)) * self.rng.choice([0, 1]))          # some terms weigh more
        if self.rng.integers(3) == 0:
            w[:self.block] = 0                                                               # a block of zeros
        self.weights[name] = np.ascontiguousarray(w.T if turned else w).astype("f4")
        return name

    def products(self):
        return [(made, w, turned) for kind, _, made, w, turned in self.steps if kind in ("MatMul", "Gemm")]

    def file(self):
        graph = data(11, value("x", "f32", ["N"] + self.shape[1:])) + data(12, value("y", "f32", ["N"] + self.shape[1:-1] + [self.width]))
        for kind, before, made, w, turned in self.steps:
            graph += node(kind, [before] + ([w] if w else []), [made], (integer("transB", 1) if turned else b"") + data(3, f"{kind}_{made}"))
        for name, w in self.weights.items():
            graph += initializer(name, w)
        return model(graph + node("Identity", [self.last], ["y"]))

    def samples(self, count):
        scale = np.exp(self.rng.standard_normal(self.shape[-1]))                             # some channels are larger
        return [(self.rng.standard_normal(self.shape) * scale).astype("f4") for _ in range(count)]

    def forward(self, x, weights):
        at = {"x": x.astype("f8")}
        for kind, before, made, w, turned in self.steps:
            a = at[before]
            if kind == "Add":
                at[made] = a + weights[w]
            elif w:
                at[made] = a @ (weights[w].T if turned else weights[w]).astype("f8")
            else:
                at[made] = np.maximum(a, 0) if kind == "Relu" else np.tanh(a)
        return at[self.last], at


def blocks_of(w, block):
    """[terms, columns] as [blocks, block, columns], padded with zeros."""
    terms = w.shape[0]
    parts = -(-terms // block)
    return np.pad(w, ((0, parts * block - terms), (0, 0))).reshape(parts, block, -1)


def rounded(w, block):
    """What rounding to nearest gives: the scale of a block is its largest magnitude / 7."""
    b = blocks_of(w, block)
    most = np.abs(b).max(1, keepdims=True)
    scale = np.where(most > 1e-30, most / np.float32(7), np.float32(1)).astype("f4")
    code = np.clip(np.rint(b / scale), -8, 7)
    return (code * scale).reshape(-1, w.shape[1])[:w.shape[0]], scale


def quantize(net, samples, *words):
    source, out = rig.FOLDER / "net.onnx", rig.FOLDER / "net_4.onnx"
    source.write_bytes(net.file())
    given = []
    folder = rig.FOLDER / "samples"
    if samples:
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*"):
            old.unlink()
        for i, x in enumerate(samples):
            np.save(folder / f"{i:03}.npy", x)
        given = ["--data", f"x={folder}"]
    said = rig.command("quantize", source, "-o", out, "--quantize_mode", "int4", "--block_size", net.block, "--json", *given, *words)
    return out, json.loads(said)


def read(path):
    """The weights of the written model by the product that reads them: (dequantised [terms, columns], data's name, block)."""
    graph = onnx.load(str(path)).graph
    made = {o: n for n in graph.node for o in n.output}
    constant = {t.name: t for t in graph.initializer}
    found = {}
    for n in graph.node:
        if n.op_type not in ("MatMul", "Gemm"):
            continue
        dq = made.get(n.input[1])
        turned = any(a.name == "transB" and a.i for a in n.attribute)
        if dq is not None and dq.op_type == "Transpose":
            dq, turned = made[dq.input[0]], True
        if dq is None or dq.op_type != "DequantizeLinear":
            continue
        attrs = {a.name: a.i for a in dq.attribute}
        assert constant[dq.input[0]].data_type == onnx.TensorProto.INT4 and len(dq.input) == 2
        code, scale = to_array(constant[dq.input[0]]).astype("i4"), to_array(constant[dq.input[1]])
        axis = attrs["axis"]
        assert axis == (1 if turned else 0) and scale.shape[1 - axis] == code.shape[1 - axis]
        assert scale.shape[axis] == -(-code.shape[axis] // attrs["block_size"]) and scale.dtype == np.float32
        assert code.min() >= -8 and code.max() <= 7
        w = (code * np.repeat(scale, attrs["block_size"], axis).take(range(code.shape[axis]), axis)).astype("f4")
        found[n.output[0]] = (w.T if turned else w, n.input[0], attrs["block_size"])
    return found


def run(path, x, device="cpu"):
    sizes = (1,) + x.shape[1:], x.shape, x.shape
    with sinter.load(sinter.build(str(path), tune="off", device=device, profiles={"x": sizes})).context() as context:
        return context.run({"x": x})["y"]


def onnxruntime_run(path, x):
    """Its fused product would round the data to 8 bits: level 1 keeps f32."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def near(got, exact, what, least=0):
    """least: what sums are made of, where those may be 0."""
    most = max(np.abs(exact).max(), least) or 1
    assert np.abs(got - exact).max() <= 3e-5 * most, (what, np.abs(got - exact).max(), most)


def check(net, out, x, seed, found, name_of):
    """sinter, on both devices, and ONNX Runtime compute with the weights that stand in the file."""
    used = dict(net.weights)
    for made, w, turned in net.products():
        if name_of(made) in found:
            dense = found[name_of(made)]
            used[w] = dense.T if turned else dense
    exact, at = net.forward(x, used)
    near(run(out, x), exact, seed, max(np.abs(v).max() for v in at.values()))
    near(run(out, x, "reference"), exact, seed)
    near(onnxruntime_run(out, x), exact, seed)
    return exact


def by_order(net, path):
    """The written model keeps the order of products; outputs of products with a bias have the name of the sum."""
    found = read(path)
    order = [n.output[0] for n in onnx.load(str(path)).graph.node if n.op_type in ("MatMul", "Gemm")]
    return {made: found[o] for (made, _, _), o in zip(net.products(), order) if o in found}


def test_rounding():
    if onnx is None:
        return
    seen = 0
    for seed in range(30):
        net = Net(seed, (16, 32, 64, 128)[seed % 4])
        x = net.samples(1)[0]
        out, report = quantize(net, None)
        onnx.checker.check_model(str(out), full_check=True)
        found = by_order(net, out)
        assert report["quantized"] == len(found) == len(net.products()), (seed, report)
        for made, w, turned in net.products():
            wanted, _ = rounded(net.weights[w].T if turned else net.weights[w], net.block)
            got, _, block = found[made]
            assert block == min(net.block, wanted.shape[0]) and np.array_equal(got, wanted.astype("f4")), (seed, made)
            seen += 1
        check(net, out, x, seed, {k: v[0] for k, v in found.items()}, lambda m: m)
    assert seen > 40


def test_activation_aware():
    """The data's own error of the first product, whose data is the sample itself, is not larger than that of rounding, but for what blocks add up to."""
    if onnx is None:
        return
    gain = {}
    for method in ("awq_clip", "awq_lite", "awq_full"):
        ratios = []
        for seed in range(12):
            net = Net(1000 + seed, (32, 64)[seed % 2])
            samples = net.samples(4)
            out, report = quantize(net, samples, "--calibration_method", method)
            assert report["quantized"] == len(net.products())
            onnx.checker.check_model(str(out), full_check=True)
            graph = onnx.load(str(out)).graph
            made = {o: n for n in graph.node for o in n.output}
            constant = {t.name: to_array(t) for t in graph.initializer}
            got, name, _ = by_order(net, out)[net.products()[0][0]]
            factor = np.ones(net.shape[-1], "f4")
            if name != "x":
                mul = made[name]
                assert method != "awq_clip" and mul.op_type == "Mul" and mul.input[0] == "x", (seed, name)
                factor = constant[mul.input[1]]
            w = net.weights[net.products()[0][1]]
            all_rows = np.concatenate([s.reshape(-1, s.shape[-1]) for s in samples])
            ours = np.square(all_rows.astype("f8") @ (factor[:, None].astype("f8") * got - w)).sum()
            plain = np.square(all_rows.astype("f8") @ (rounded(w, net.block)[0].astype("f8") - w)).sum()
            assert ours <= plain * 1.05, (method, seed, ours, plain)
            ratios.append(ours / plain if plain else 1)
            # The same numbers come out of all three runtimes, whatever was searched.
            near(run(out, samples[0]), onnxruntime_run(out, samples[0]), seed, np.abs(samples[0]).max())
        gain[method] = float(np.mean(ratios))
    print("error of the first product, compared with rounding:", {k: round(v, 3) for k, v in gain.items()})
    assert gain["awq_clip"] < 0.95 and gain["awq_lite"] < 0.95 and gain["awq_full"] <= min(gain["awq_clip"], gain["awq_lite"]) * 1.02


def test_data_by_default():
    """With data the scales are searched; without, weights are rounded. The same data gives the same file."""
    net = Net(3, 32)
    samples = net.samples(2)
    rounded_file = quantize(net, None)[0].read_bytes()
    assert quantize(net, samples, "--weight_method", "rtn_dq")[0].read_bytes() == rounded_file
    searched = quantize(net, samples)[0].read_bytes()
    assert searched != rounded_file
    assert quantize(net, samples, "--calibration_method", "awq_clip")[0].read_bytes() == searched


def test_choices_and_refusals():
    net = next(n for n in (Net(s, 32) for s in range(100)) if len(n.products()) == 3)
    name = next(s for s in net.steps if s[3] and s[0] in ("MatMul", "Gemm"))
    _, report = quantize(net, None, "--nodes_to_exclude", f"^{name[0]}_{name[2]}$")
    assert report["quantized"] == 2
    for words, says in ((["--calibration_method", "awq_clip"], "--data"), (["--calibration_method", "max"], "int8 and fp8"),
                        (["--block_size", "24"], "24"), (["--nodes_to_exclude", "."], "none is quantised")):
        rig.raises(AssertionError, quantize, net, None, *words, says=says)
    source = rig.FOLDER / "net.onnx"
    rig.raises(AssertionError, rig.command, "quantize", source, "-o", rig.FOLDER / "o.onnx", "--calibration_method", "awq_clip",
               "--data", f"x={rig.FOLDER / 'samples'}", says="int4")


def test_weights_that_are_not_finite_stay():
    net = next(n for n in (Net(s, 32) for s in range(100)) if len(n.products()) > 1)
    net.weights[net.products()[0][1]][3, 2] = np.inf
    _, report = quantize(net, None)
    why = [p["why_not"] for p in report["products"]]
    assert sum("finite" in w for w in why) == 1 and report["quantized"] == len(why) - 1, why


def test_int4_models_stay_so_when_simplified():
    """`simplify` writes the DequantizeLinear of blocks as it was, also where the last block is short."""
    if onnx is None:
        return
    for seed in range(8):
        net = Net(50 + seed, (16, 32, 64)[seed % 3])
        out, _ = quantize(net, None)
        again = rig.FOLDER / "again.onnx"
        rig.command("simplify", out, again)
        first, second = by_order(net, out), by_order(net, again)
        assert first.keys() == second.keys() and all(np.array_equal(first[k][0], second[k][0]) for k in first), seed
        assert again.stat().st_size <= out.stat().st_size + 200


def test_matmul_nbits_becomes_dequantize_linear():
    """Weights with zero points, in blocks that end inside the last byte or not, and a K that cuts the last block short."""
    rng = np.random.default_rng(11)
    for seed in range(12):
        bits, block = (4, 8)[seed % 2], (16, 32)[seed // 2 % 2]
        k, n = int(rng.integers(2, 6)) * block - int(rng.choice([0, 0, 5])), int(rng.choice([8, 24, 33]))
        blocks, pack = -(-k // block), 8 // bits
        graph = initializer("b", rng.integers(0, 256, (n, blocks, block // pack)).astype("u1"), "u8")
        graph += initializer("s", rng.uniform(0.01, 0.1, n * blocks).astype("f4"))
        ins = ["x", "b", "s"]
        if rng.integers(2):
            graph += initializer("z", rng.integers(0, 256, n * -(-blocks // pack)).astype("u1"), "u8")
            ins.append("z")
        attrs = integer("K", k) + integer("N", n) + integer("bits", bits) + integer("block_size", block) + data(7, "com.microsoft")
        graph += node("MatMulNBits", ins, ["y"], attrs) + data(11, value("x", "f32", ["N", k])) + data(12, value("y", "f32", ["N", n]))
        source, out = rig.FOLDER / "nbits.onnx", rig.FOLDER / "nbits_s.onnx"
        source.write_bytes(model(graph) + data(8, data(1, "com.microsoft") + num(2, 1)))
        rig.command("simplify", source, out)
        x = rng.standard_normal((5, k)).astype("f4")
        before = run(source, x, "reference")
        near(run(out, x, "reference"), before, seed)
        near(run(out, x), before, seed)
        if onnx is None:
            continue
        ops = [m.op_type for m in onnx.load(str(out)).graph.node]
        assert "DequantizeLinear" in ops and "Cast" not in ops and "Pad" not in ops, (seed, ops)
        near(onnxruntime_run(out, x), before, seed)
        near(onnxruntime_run(source, x), before, seed)


if __name__ == "__main__":
    rig.main(__name__)
