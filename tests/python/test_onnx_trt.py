# SPDX-License-Identifier: Apache-2.0
"""Operators of the domain `trt`, as Model Optimizer writes them: random tensors are quantised in blocks while the model runs, and
dequantised; NumPy with ml_dtypes says what every code and every scale must be."""
import rig  # noqa: I001
import numpy as np
import sinter
from onnx_bytes import num
from random_models import data, initializer, integer, model, node, value

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

FLOAT = {"f32": (1, "f4"), "f16": (10, "f2")}


def trt(op, ins, outs, attrs=b""):
    return node(op, ins, outs, attrs + data(7, "trt"))


def file(graph):
    return model(graph, 24) + data(8, data(1, "trt") + num(2, 1))


def apart(x, axis, block):
    """[..., n / block, block, ...]"""
    shape = list(x.shape)
    shape[axis:axis + 1] = [shape[axis] // block, block]
    return x.reshape(shape)


def rounded_to(x, kind, most):
    return np.clip(x, -most, most).astype(kind)


def blocks(x, axis, block, most, second, scale_kind):
    """(scales as they are stored, scales that are used, with the axis of the block)"""
    peak = np.abs(apart(x, axis, block)).max(axis + 1, keepdims=True)
    scale = peak / np.float32(most)
    if second is not None:
        scale = scale / np.float32(second)
    if scale_kind is None:                                          # a power of two, not below
        stored = np.where(scale > 0, np.exp2(np.ceil(np.log2(np.maximum(scale, np.float32(2.0**-127))))), np.float32(2.0**-127)).astype("f4")
    else:
        stored = rounded_to(scale, scale_kind, 448).astype("f4")
    used = stored * np.float32(second) if second is not None else stored
    return stored, np.where(used == 0, np.float32(1), used).astype("f4")


def inputs(rng, kind):
    rank = int(rng.integers(1, 4))
    axis, block = int(rng.integers(0, rank)), int(rng.choice([16, 32]))
    shape = [int(rng.integers(1, 5)) for _ in range(rank)]
    shape[axis] = block * int(rng.integers(1, 4))
    x = (rng.standard_normal(shape) * np.exp(rng.standard_normal(shape) * 2)).astype(FLOAT[kind][1])
    if rng.integers(3) == 0:
        np.moveaxis(x, axis, 0)[:block] = 0                         # blocks of zeros
    return x, axis, block


def run(graph, x, outputs):
    source = rig.FOLDER / "trt.onnx"
    source.write_bytes(file(graph))
    found = []
    for device in ("reference", "cpu"):
        with sinter.load(sinter.build(str(source), tune="off", device=device)).context() as context:
            found.append(context.run({"x": x}))
    for name in outputs:
        assert np.array_equal(found[0][name], found[1][name], equal_nan=True), name
    return found[0]


def test_fp4_dynamic_quantize():
    if ml_dtypes is None:
        return
    rng = np.random.default_rng(1)
    for turn in range(40):
        kind = ("f32", "f16")[turn % 2]
        x, axis, block = inputs(rng, kind)
        second = float(np.float32(rng.choice([1, 0.01, 0.3])))
        given = axis if rng.integers(2) else axis - x.ndim
        graph = data(11, value("x", kind, x.shape)) + initializer("s2", np.array(second, "f4"))
        graph += trt("TRT_FP4DynamicQuantize", ["x", "s2"], ["q", "s"], integer("axis", given) + integer("block_size", block) + integer("scale_type", 17))
        # As the exporter has it: the scales are dequantised, then the numbers by them.
        graph += (trt if turn % 3 else node)("DequantizeLinear", ["s", "s2"], ["wide"])
        graph += (trt if turn % 3 else node)("DequantizeLinear", ["q", "wide"], ["y"], integer("axis", given) + integer("block_size", block))
        graph += node("Cast", ["s"], ["t"], integer("to", 1))
        small = [d // block if i == axis else d for i, d in enumerate(x.shape)]
        graph += data(12, value("y", "f32", x.shape)) + data(12, value("t", "f32", small))
        found = run(graph, x, ["y", "t"])
        stored, used = blocks(x.astype("f4"), axis, block, 6, second, ml_dtypes.float8_e4m3fn)
        assert np.array_equal(found["t"], stored.reshape(small)), turn
        codes = rounded_to(apart(x.astype("f4"), axis, block) / used, ml_dtypes.float4_e2m1fn, 6).astype("f4")
        assert np.array_equal(found["y"], (codes * (stored * np.float32(second))).reshape(x.shape)), turn


def test_mxfp8_dynamic_quantize():
    if ml_dtypes is None:
        return
    rng = np.random.default_rng(2)
    for turn in range(40):
        kind = ("f32", "f16")[turn % 2]
        x, axis, block = inputs(rng, kind)
        given = axis if rng.integers(2) else axis - x.ndim
        attrs = integer("axis", given) + integer("block_size", block)
        graph = data(11, value("x", kind, x.shape))
        graph += trt("TRT_MXFP8DynamicQuantize", ["x"], ["q", "s"], attrs + integer("output_dtype", 17))
        graph += trt("TRT_MXFP8DequantizeLinear", ["q", "s"], ["y"], attrs + integer("output_dtype", FLOAT[kind][0]))
        graph += node("Cast", ["s"], ["t"], integer("to", 1))
        small = [d // block if i == axis else d for i, d in enumerate(x.shape)]
        graph += data(12, value("y", kind, x.shape)) + data(12, value("t", "f32", small))
        found = run(graph, x, ["y", "t"])
        stored, used = blocks(x.astype("f4"), axis, block, 448, None, None)
        assert np.array_equal(found["t"], stored.reshape(small)), (turn, found["t"], stored)
        codes = rounded_to(apart(x.astype("f4"), axis, block) / used, ml_dtypes.float8_e4m3fn, 448).astype("f4")
        wanted = (codes * stored).reshape(x.shape).astype(FLOAT[kind][1])
        assert found["y"].dtype == wanted.dtype and np.array_equal(found["y"], wanted), turn


def test_stored_weights():
    """Weights and scales of 8 bits that the file stores as bytes; the operators of fp8 and int4 with one scale and with blocks."""
    if ml_dtypes is None:
        return
    rng = np.random.default_rng(3)
    for turn in range(20):
        x = rng.standard_normal((5, 64)).astype("f4")
        codes = rng.standard_normal((64, 24)).astype(ml_dtypes.float8_e4m3fn)
        scale = rng.integers(120, 132, (2, 24)).astype("u1")
        graph = data(11, value("x", "f32", x.shape)) + data(12, value("y", "f32", [5, 24])) + data(12, value("z", "f32", [5, 64]))
        as_bytes = bool(rng.integers(2))
        graph += initializer("w", codes.view("u1"), "u8" if as_bytes else "f8e4m3fn") + initializer("s", scale, "u8")
        graph += trt("TRT_MXFP8DequantizeLinear", ["w", "s"], ["wide"], integer("axis", 0) + integer("block_size", 32) + integer("output_dtype", 1))
        graph += node("MatMul", ["x", "wide"], ["y"])
        step = np.array(0.05, "f4")
        kind = ("FP8", "INT4")[turn % 2]
        graph += initializer("step", step) + trt(f"TRT_{kind}QuantizeLinear", ["x", "step"], ["q"]) + trt(f"TRT_{kind}DequantizeLinear", ["q", "step"], ["z"])
        found = run(graph, x, ["z"])
        dense = codes.astype("f8") * np.repeat(np.exp2(scale.astype("f8") - 127), 32, 0)
        wanted = x.astype("f8") @ dense
        assert np.abs(found["y"] - wanted).max() <= 1e-5 * np.abs(wanted).max(), turn
        q = rounded_to(x / step, ml_dtypes.float8_e4m3fn, 448).astype("f4") if kind == "FP8" else np.clip(np.rint(x / step), -8, 7)
        assert np.array_equal(found["z"], (q * step).astype("f4")), turn


def test_refusals():
    x = value("x", "f32", [4, 20])
    out = data(12, value("y", "f32", [4, 20]))

    def says(text, graph):
        rig.raises(sinter.Error, sinter.build, file(data(11, x) + out + graph), says=text)
    back = node("Cast", ["q"], ["y"], integer("to", 1))
    says("no whole number of blocks", trt("TRT_MXFP8DynamicQuantize", ["x"], ["q", "s"], integer("block_size", 16)) + back)
    says("input 1", trt("TRT_FP4DynamicQuantize", ["x"], ["q", "s"], integer("block_size", 10)) + back)
    says("axis", trt("TRT_MXFP8DynamicQuantize", ["x"], ["q", "s"], integer("axis", 5)) + back)
    says("output_dtype", trt("TRT_MXFP8DynamicQuantize", ["x"], ["q", "s"], integer("block_size", 10) + integer("output_dtype", 1)) + back)
    says("TRT_FP4QDQ", trt("TRT_FP4QDQ", ["x"], ["y"]))


if __name__ == "__main__":
    rig.main(__name__)
