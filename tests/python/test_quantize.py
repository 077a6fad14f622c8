# SPDX-License-Identifier: Apache-2.0
"""`sinter quantize`: random networks in NumPy, quantised and run here, against the f32 answer with a bound that follows from the
scales; what is chosen; the flags of Model Optimizer. Where onnx and ONNX Runtime are installed, the checker takes the models, and
ONNX Runtime gives the same numbers."""
import json

import rig  # noqa: I001
import numpy as np
import sinter
from onnx_bytes import ints
from random_models import data, initializer, integer, model, node, value

try:
    import onnx
    import onnxruntime
except ImportError:
    onnx = onnxruntime = None


def onnxruntime_run(path, x):
    """Node by node: its fused products of bytes saturate in 16 bits on a CPU without dot products of bytes."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def conv(x, w):
    """3x3, padding 1."""
    n, _, h, b = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = np.zeros((n, w.shape[0], h, b))
    for i in range(3):
        for k in range(3):
            y += np.einsum("nchw,oc->nohw", padded[:, :, i:i + h, k:k + b], w[:, :, i, k])
    return y


class Net:
    """A random network: in every layer the exact value, and a bound of how far quantising moves it."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.graph, self.products, self.steps = b"", [], 0
        self.is_image = bool(self.rng.integers(2))
        self.channels = int(self.rng.choice([8, 16, 32]))
        shape = (2, self.channels, 6, 6) if self.is_image else (5, self.channels)
        self.x = (self.rng.standard_normal(shape) * self.rng.choice([0.1, 1, 20])).astype("f4")
        self.graph += data(11, value("x", "f32", list(shape)))

    def grow(self):
        at = [("x", self.x.astype("f8"), np.zeros(self.x.shape))]
        for _ in range(self.rng.integers(2, 8)):
            at.append(self.layer(*at[-1], at))
        if not self.products:
            at.append(self.product(*at[-1]))
        self.graph += node("Identity", [at[-1][0]], ["y"]) + data(12, value("y", "f32", list(at[-1][1].shape)))
        return at[-1][1], at[-1][2]

    def layer(self, name, exact, bound, before):
        kind = self.rng.choice(["product", "product", "relu", "tanh", "add"])
        made = f"v{self.steps}"
        self.steps += 1
        if kind == "product":
            return self.product(name, exact, bound)
        if kind == "relu":
            self.graph += node("Relu", [name], [made])
            return made, np.maximum(exact, 0), bound
        if kind == "tanh":
            self.graph += node("Tanh", [name], [made])
            return made, np.tanh(exact), bound
        others = [b for b in before if b[1].shape == exact.shape]
        other = others[self.rng.integers(len(others))]
        self.graph += node("Add", [name, other[0]], [made])
        # One of the two may be quantised behind a product.
        step = max(np.abs(exact).max(), np.abs(other[1]).max()) / 127
        return made, exact + other[1], bound + other[2] + step / 2

    def product(self, name, exact, bound):
        """Both factors move by at most half a step. A range that is the largest magnitude cuts nothing off that was inside."""
        made, weight = f"p{self.steps}", f"w{self.steps}"
        self.steps += 1
        if np.abs(exact).max() < 1e-3:
            self.graph += node("Relu", [name], [made])
            return made, np.maximum(exact, 0), bound
        columns = self.channels if self.is_image else int(self.rng.choice([8, 16, 24]))
        shape = (columns, exact.shape[1], 3, 3) if self.is_image else (exact.shape[1], columns)
        w = (self.rng.standard_normal(shape) / np.sqrt(9 * shape[1] if self.is_image else shape[0])).astype("f4")
        self.graph += initializer(weight, w)
        if self.is_image:
            self.graph += node("Conv", [name, weight], [made], ints("kernel_shape", [3, 3]) + ints("pads", [1] * 4))
            apply, largest = conv, np.abs(w).max((1, 2, 3), keepdims=True)
        else:
            self.graph += node("MatMul", [name, weight], [made])
            apply, largest = np.matmul, np.abs(w).max(0, keepdims=True)
        if w.size // columns >= 16:         # fewer terms stay in f32
            self.products.append(made)
            step, moved = np.abs(exact).max() / 127, np.broadcast_to(largest / 127 / 2, w.shape)
            inside = bound + step / 2
            bound = apply(inside, np.abs(w) + moved) + apply(np.abs(exact), moved)
        else:
            bound = apply(bound, np.abs(w).astype("f8"))
        return made, apply(exact, w.astype("f8")), bound


def quantize(file, x, name, *words):
    source, out, given = rig.FOLDER / f"{name}.onnx", rig.FOLDER / f"{name}_q.onnx", rig.FOLDER / f"{name}.npy"
    source.write_bytes(file)
    np.save(given, x)
    return out, rig.command("quantize", source, "--data", f"x={given}", "-o", out, *words)


def outputs(path, x):
    with sinter.load(sinter.build(str(path), tune="off", device="reference")).context() as context:
        return context.run({"x": x})["y"]


def test_random_networks():
    chosen = 0
    for seed in range(40):
        net = Net(seed)
        exact, bound = net.grow()
        out, said = quantize(model(net.graph), net.x, "net", "--method", "minmax", "--json")
        report = json.loads(said)
        assert report["quantized"] == len(net.products) and {p["op"] for p in report["products"]} <= {"conv", "matmul"}, seed
        chosen += report["quantized"]
        got = outputs(out, net.x)
        rounding = 1e-4 * (np.abs(exact).max() + bound.max())
        assert (np.abs(got - exact) <= bound + rounding).all(), (seed, np.abs(got - exact).max(), bound.max())
        assert np.abs(got - exact).max() > 0, seed
        fast = sinter.load(sinter.build(str(out), tune="off")).context().run({"x": net.x})["y"]
        assert (np.abs(fast - exact) <= bound + rounding).all(), seed
        if onnx is None:
            continue
        onnx.checker.check_model(str(out), full_check=True)
        theirs = onnxruntime_run(out, net.x)
        assert (np.abs(theirs - exact) <= bound + rounding).all(), (seed, np.abs(theirs - exact).max())
    assert chosen > 60


def test_form():
    """Each product reads i8 through DequantizeLinear: data by one scale, the weight by one for each channel, all zero points 0."""
    if onnx is None:
        return
    net = Net(3)
    net.grow()
    for mode, wanted in (("int8", onnx.TensorProto.INT8), ("fp8", onnx.TensorProto.FLOAT8E4M3FN)):
        out, _ = quantize(model(net.graph), net.x, "form", "--quantize_mode", mode)
        graph = onnx.load(str(out)).graph
        producer = {o: n for n in graph.node for o in n.output}
        weights = {w.name: w for w in graph.initializer}
        products = [n for n in graph.node if n.op_type in ("Conv", "MatMul", "Gemm")]
        assert products and len(products) >= len(net.products)
        for n in products:
            x, w = producer[n.input[0]], producer[n.input[1]]
            assert x.op_type == w.op_type == "DequantizeLinear" and producer[x.input[0]].op_type == "QuantizeLinear"
            assert weights[w.input[0]].data_type == weights[w.input[2]].data_type == weights[x.input[2]].data_type == wanted
            assert not weights[x.input[1]].dims and len(weights[w.input[1]].dims) == 1
            for zero in (x.input[2], w.input[2]):
                assert not any(onnx.numpy_helper.to_array(weights[zero]).astype("f4").ravel())
        theirs = None
        try:
            theirs = onnxruntime_run(out, net.x)
        except Exception as e:
            assert mode == "fp8", e
        if theirs is not None:
            ours = outputs(out, net.x)
            assert np.abs(theirs - ours).max() <= 0.05 * np.abs(ours).max(), mode


def two(rng):
    w, v = rng.standard_normal((24, 32)).astype("f4"), rng.standard_normal((32, 16)).astype("f4")
    graph = node("MatMul", ["x", "w"], ["a"], data(3, "first")) + node("Relu", ["a"], ["b"]) + node("MatMul", ["b", "v"], ["y"], data(3, "second"))
    graph += initializer("w", w) + initializer("v", v) + data(11, value("x", "f32", ["N", 24])) + data(12, value("y", "f32", ["N", 16]))
    return model(graph)


def test_flags():
    rng = np.random.default_rng(1)
    file, x = two(rng), rng.standard_normal((7, 24)).astype("f4")

    def count(*words):
        return json.loads(quantize(file, x, "two", "--json", *words)[1])["quantized"]
    assert count() == 2 and count("--op_types_to_quantize", "MatMul,Conv") == 2 and count("--op-types-to-exclude=Conv") == 2
    assert count("--nodes_to_exclude", "fir.*") == 1 and count("--nodes_to_quantize", "^second$", "--dq_only") == 1
    assert count("--calibration_method", "max") == count("--quantize_mode=fp8") == 2
    cache, source, out = rig.FOLDER / "two.cache", rig.FOLDER / "two.onnx", rig.FOLDER / "other.onnx"
    sinter.calibrate(file, [{"x": x}]).save(cache)
    rig.command("quantize", "--onnx_path", source, "--output_path", out, "--calibration_cache_path", cache)
    first = out.read_bytes()
    assert first == quantize(file, x, "two", "--method", "entropy2")[0].read_bytes()
    rig.command("quantize", source, "-o", out, "--calib", cache)
    assert out.read_bytes() == first
    # The batch stays free, and the engine of the model has products of integers.
    got = sinter.build(str(out), tune="off", profiles={"x": ((1, 24), (3, 24), (9, 24))})
    assert got.load().context().run({"x": x[:3]})["y"].shape == (3, 16)
    for words, says in ((["--nodes_to_exclude", "."], "none is quantised"), (["--op_types_to_quantize", "Add"], "Conv, MatMul and Gemm"),
                        (["--nodes_to_exclude", "("], "regular expression"), (["--quantize_mode", "int2"], "int8|fp8|int4")):
        rig.raises(AssertionError, quantize, file, x, "two", *words, says=says)
    # A range that the cache lacks leaves its product as it is.
    less = sinter.Calibration()
    less["x"] = 3
    less.save(cache)
    assert "1 of 2 products" in rig.command("quantize", source, "-o", out, "--calib", cache)
    # What is quantised is left alone.
    rig.raises(AssertionError, rig.command, "quantize", quantize(file, x, "two")[0], "-o", out, "--calib", cache, says="there are none in f32")


def lint(graph):
    path = rig.FOLDER / "lint.onnx"
    path.write_bytes(model(graph))
    done = rig.subprocess.run([str(rig.BIN), "quantize", str(path), "--lint", "--json"], capture_output=True, text=True)
    broken = [b["rule"] for b in json.loads(done.stdout)["broken"]]
    assert done.returncode == bool(broken), done.stderr
    return sorted(broken)


def test_rules():
    """A model with two quantised products, each rule broken in turn."""
    rng = np.random.default_rng(4)
    codes = rng.integers(-127, 128, (32, 32)).astype("i1")

    def build(data_zero=0, data_type="i8", data_scales=1, weight_scales=32, weight_zero=0, plain_weight=False, plain_data=False,
              behind="", residual=None):
        graph = data(11, value("x", "f32", [4, 32])) + data(12, value("y", "f32", [4, 32]))
        graph += initializer("s", np.full(data_scales, 0.05, "f4") if data_scales > 1 else np.array(0.05, "f4"))
        kind = {"i8": "i1", "u8": "u1"}[data_type]
        graph += initializer("z", np.full(data_scales, data_zero, kind) if data_scales > 1 else np.array(data_zero, kind), data_type)
        graph += initializer("t", np.full(weight_scales, 0.01, "f4") if weight_scales > 1 else np.array(0.01, "f4"))
        graph += initializer("u", np.full(weight_scales, weight_zero, "i1") if weight_scales > 1 else np.array(weight_zero, "i1"), "i8")
        graph += initializer("one", np.array(0.05, "f4")) + initializer("none", np.array(0, "i1"), "i8")
        graph += initializer("c", codes, "i8") + initializer("w", codes.astype("f4") * np.float32(0.01))
        if plain_data:
            graph += node("Identity", ["x"], ["xd"])
        else:
            graph += node("QuantizeLinear", ["x", "s", "z"], ["xq"], integer("axis", 1)) + node("DequantizeLinear", ["xq", "s", "z"], ["xd"], integer("axis", 1))
        weight = "w" if plain_weight else "wd"
        graph += node("DequantizeLinear", ["c", "t", "u"], ["wd"], integer("axis", 1)) + node("MatMul", ["xd", weight], ["a"])
        last = "a"
        if behind:
            graph += node("QuantizeLinear", ["a", "one", "none"], ["aq"]) + node("DequantizeLinear", ["aq", "one", "none"], ["ad"])
            graph += node(behind, ["ad"], ["b"])
            last = "b"
        if residual == "plain":
            graph += node("Tanh", ["x"], ["r"]) + node("Add", [last, "r"], ["sum"])
            last = "sum"
        elif residual == "quantized":
            graph += node("Tanh", ["x"], ["t0"]) + node("QuantizeLinear", ["t0", "one", "none"], ["t1"])
            graph += node("DequantizeLinear", ["t1", "one", "none"], ["r"]) + node("Add", [last, "r"], ["sum"])
            last = "sum"
        return graph + node("Relu", [last], ["y"])

    assert lint(build()) == [] and lint(build(residual="quantized")) == []
    assert lint(build(plain_weight=True)) == ["inputs"] and lint(build(plain_data=True)) == ["inputs"]
    assert lint(build(plain_data=True, plain_weight=True)) == []
    assert lint(build(weight_scales=1)) == ["scales"] and lint(build(data_scales=32)) == ["scales"]
    assert lint(build(data_type="u8")) == ["zero"] and lint(build(data_zero=3)) == ["zero"] and lint(build(weight_zero=1)) == ["zero"]
    assert lint(build(behind="Relu")) == ["activation"] and lint(build(behind="Tanh")) == ["output"]
    assert lint(build(residual="plain")) == ["residual"]
    assert lint(build(weight_scales=1, data_type="u8", residual="plain")) == ["residual", "scales", "zero"]


def test_what_quantize_writes_keeps_the_rules():
    sums = 0
    for seed in range(12):
        net = Net(100 + seed)
        net.grow()
        out, _ = quantize(model(net.graph), net.x, "kept", "--method", "minmax")
        done = rig.subprocess.run([str(rig.BIN), "quantize", str(out), "--lint", "--json"], capture_output=True, text=True)
        broken = {b["rule"] for b in json.loads(done.stdout)["broken"]}
        # Where a product's result is the data of the next product, it is quantised at once.
        assert broken <= {"output"}, (seed, done.stdout)
        sums += b"Add" in net.graph
    assert sums > 2


if __name__ == "__main__":
    rig.main(__name__)
