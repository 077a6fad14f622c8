# SPDX-License-Identifier: Apache-2.0
"""Operators of the domain qonnx.custom_op.general, on random tensors, against NumPy."""
import rig  # noqa: I001
import numpy as np
import sinter
from onnx_bytes import num
from random_models import data, initializer, integer, model, node, value

DOMAIN = "qonnx.custom_op.general"
ROUND = {
    "ROUND": np.round, "HALF_EVEN": np.round, "CEIL": np.ceil, "FLOOR": np.floor, "DOWN": np.trunc,
    "UP": lambda x: np.sign(x) * np.ceil(np.abs(x)), "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "HALF_DOWN": lambda x: np.sign(x) * np.ceil(np.abs(x) - 0.5)
}


def text(name, word):
    return data(5, data(1, name) + data(4, word) + num(20, 3))


def run(op, x, operands, attrs, version):
    """The result; operands are constants or inputs, in turns."""
    graph, names, feeds = data(11, value("x", "f32", x.shape)) + data(12, value("y", "f32", x.shape)), ["x"], {"x": x}
    for i, operand in enumerate(operands):
        names.append(f"v{i}")
        operand = np.asarray(operand, "f4")
        if (i + x.size) % 3:
            graph += initializer(names[-1], operand)
        else:
            graph += data(11, value(names[-1], "f32", operand.shape))
            feeds[names[-1]] = operand
    graph += node(op, names, ["y"], attrs + data(7, DOMAIN))
    file = model(graph, 17) + data(8, data(1, DOMAIN) + num(2, version))
    found = []
    for device in ("reference", "cpu"):
        with sinter.load(sinter.build(file, tune="off", device=device)).context() as context:
            found.append(context.run(feeds)["y"])
    assert np.array_equal(*found)
    return found[1]


def limits(bits, signed, narrow):
    if signed:
        return -2.0**(bits - 1) + narrow, 2.0**(bits - 1) - 1
    return 0.0, 2.0**bits - 1 - narrow


def drawn(rng):
    """x in steps of an eighth of the scale, so that no division rounds; scale of a tensor or of its channels; zero point."""
    shape = [int(n) for n in rng.integers(1, 6, rng.integers(1, 5))]
    scale = 2.0**rng.integers(-4, 3, rng.choice([1, shape[-1]])).astype("f4")
    x = (rng.integers(-90, 90, shape) / 8 * scale).astype("f4")
    return x, scale if rng.integers(2) or scale.size > 1 else scale[0], np.float32(rng.integers(-3, 4))


def check(rng, op):
    x, scale, zero = drawn(rng)
    bits, signed, narrow = int(rng.integers(1, 9)), int(rng.integers(2)), int(rng.integers(2))
    mode = str(rng.choice(list(ROUND)))
    low, high = limits(bits, signed, narrow)
    codes = x / scale + zero
    if bits == 1 and signed:
        codes = np.where(codes >= 0, 1, -1)
    else:
        codes = ROUND[mode](np.clip(codes, low, high))
    attrs = integer("signed", signed) + integer("narrow", narrow) + text("rounding_mode", mode if rng.integers(2) else mode.lower())
    found = run(op, x, [scale, zero, bits], attrs, int(rng.integers(1, 3)))
    assert np.array_equal(found, ((codes - zero) * scale).astype("f4")), (x, scale, zero, bits, signed, narrow, mode, found)


def test_quant():
    rng = np.random.default_rng(1)
    for turn in range(120):
        check(rng, ("Quant", "IntQuant")[turn % 2])


def test_bipolar():
    rng = np.random.default_rng(2)
    for _ in range(20):
        x, scale, _ = drawn(rng)
        assert np.array_equal(run("BipolarQuant", x, [scale], b"", 1), (np.where(x >= 0, 1, -1) * scale).astype("f4"))


def test_trunc():
    rng = np.random.default_rng(3)
    for turn in range(60):
        x, scale, zero = drawn(rng)
        bits, left, mode = 8, int(rng.integers(2, 8)), str(rng.choice(list(ROUND)))
        codes, attrs = np.round(x / scale + zero), text("rounding_mode", mode)
        if turn % 2:
            step, then = 2.0**(bits - left), scale
            codes = ROUND[mode](codes / step) - zero
            operands = [scale, zero, bits, left]
        else:
            step, signed, narrow = 2.0**rng.integers(0, 4), int(rng.integers(2)), int(rng.integers(2))
            then = np.float32(scale * step)
            codes = ROUND[mode](np.clip(codes / step, *limits(left, signed, narrow))) - zero / step
            operands = [scale, zero, bits, then, left]
            attrs += integer("signed", signed) + integer("narrow", narrow)
        assert np.array_equal(run("Trunc", x, operands, attrs, 1 + len(operands) % 2), (codes * then).astype("f4")), (turn, mode, x, scale)


def test_unknown_mode():
    x = np.ones(3, "f4")
    rig.raises(sinter.Error, run, "Quant", x, [1, 0, 4], text("rounding_mode", "SIDEWAYS"), 1, says="rounding_mode is 'SIDEWAYS'")


if __name__ == "__main__":
    rig.main(__name__)
