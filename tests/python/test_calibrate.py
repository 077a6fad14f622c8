# SPDX-License-Identifier: Apache-2.0
"""Calibration: the ranges of each method against its steps in NumPy, caches byte by byte and damaged, and builds that take
a cache."""
import random
import struct

import rig  # noqa: I001
import numpy as np
import sinter
from random_models import data, initializer, model, node, value

BINS, LEVELS = 2048, 128


# ---- a model: y = relu(x W) V ----

def two_products(rng, rows="N"):
    w, v = rng.standard_normal((24, 32)).astype("f4"), rng.standard_normal((32, 16)).astype("f4")
    graph = node("MatMul", ["x", "w"], ["a"]) + node("Relu", ["a"], ["b:0"]) + node("MatMul", ["b:0", "v"], ["y"])
    graph += initializer("w", w) + initializer("v", v)
    graph += data(11, value("x", "f32", [rows, 24])) + data(12, value("y", "f32", [rows, 16]))
    return model(graph), w, v


# ---- the methods, step by step ----

def histogram(x):
    """Step 1 and 2: all data of a tensor, in 2,048 bins of magnitude."""
    x = np.abs(np.concatenate([np.ravel(b) for b in x])).astype("f8")
    most = x.max()
    return np.bincount(np.minimum((x * (BINS / most)).astype(int), BINS - 1), minlength=BINS).astype("f8"), most


def levels_of(kept):
    """kept in 128 levels, each spread over its bins that are not empty."""
    spread, of = np.zeros(len(kept)), np.arange(len(kept)) * LEVELS // len(kept)
    used = kept > 0
    total = np.bincount(of, kept, LEVELS)
    count = np.bincount(of, used, LEVELS)
    spread[used] = (total / np.maximum(count, 1))[of][used]
    return spread


def divergence(bins, i):
    kept = bins[:i]
    p = kept.copy()
    p[-1] += bins[i:].sum()
    q = levels_of(kept)
    if q.sum() == 0 or (q[p > 0] == 0).any():
        return np.inf
    p, q = p / p.sum(), q / q.sum()
    return (p[p > 0] * np.log(p[p > 0] / q[p > 0])).sum()


def entropy(x, is_second):
    bins, most = histogram(x)
    if is_second:
        bins[0] = bins[1]
    found = {i: divergence(bins, i) for i in range(LEVELS, BINS + 1)}
    least = min(found.values())
    # Divergences that differ in the last bits alone are equal.
    return [most / BINS * (i if is_second else i + 0.5) for i, d in found.items() if d <= least + 1e-12]


def part(x, part, cutoff=1):
    bins, most = histogram(x)
    bins = bins[:max(int(cutoff * BINS), 1)]
    return [most * (np.searchsorted(np.cumsum(bins), part * bins.sum()) + 1) / BINS]


METHODS = {"minmax": (lambda x: [histogram(x)[1]], {}),
           "entropy": (lambda x: entropy(x, False), {}),
           "entropy2": (lambda x: entropy(x, True), {}),
           "percentile": (lambda x: part(x, 0.997), {"percentile": 99.7}),
           "legacy": (lambda x: part(x, 0.98, 0.8), {"quantile": 0.98, "cutoff": 0.8})}


def distributions(rng):
    shape = (40, 24)
    return {"normal": rng.standard_normal(shape) * 3,
            "laplace": rng.laplace(0, 0.01, shape),
            "heavy": rng.standard_t(2, shape),
            "positive": np.maximum(rng.standard_normal(shape), 0),
            "uniform": rng.uniform(-7, 7, shape),
            "two": rng.choice([-1.0, 1.0], shape) + rng.standard_normal(shape) * 0.05,
            "outlier": np.where(np.arange(960).reshape(shape) == 7, 1e4, rng.standard_normal(shape)),
            "one": np.full(shape, -0.25),
            "small": rng.standard_normal(shape) * 1e-20,
            "large": rng.standard_normal(shape) * 1e30}


def batches(rng, array):
    """The rows in batches of several sizes."""
    cuts = sorted(rng.choice(np.arange(1, len(array)), 3, replace=False))
    return [b for b in np.split(array.astype("f4"), cuts)]


def test_methods_against_their_steps():
    rng = np.random.default_rng(5)
    for name, array in distributions(rng).items():
        file, _, _ = two_products(rng)
        given = batches(rng, array)
        for method, (steps, options) in METHODS.items():
            got = sinter.calibrate(file, [{"x": b} for b in given], method=method, **options)
            want = [np.float32(r / 127) for r in steps(given)]
            assert any(abs(got.scales["x"] / w - 1) < 2e-7 for w in want), (name, method, got.scales["x"], want[:3])


def test_tensors_inside():
    """What stands inside has its range too, under the model's name; constants have none."""
    rng = np.random.default_rng(6)
    file, w, v = two_products(rng)
    x = rng.standard_normal((64, 24)).astype("f4")
    got = sinter.calibrate(file, [{"x": x}], method="minmax")
    assert set(got) == {"x", "a", "b:0", "y"}, list(got)
    a = x.astype("f8") @ w
    for name, want in {"x": x, "a": a, "b:0": np.maximum(a, 0), "y": np.maximum(a, 0) @ v}.items():
        assert abs(got[name] / np.abs(want).max() - 1) < 1e-5, name


def test_order_does_not_matter():
    rng = np.random.default_rng(7)
    file, _, _ = two_products(rng)
    given = [{"x": b} for b in batches(rng, rng.standard_normal((90, 24)))]
    for method in METHODS:
        first = bytes(sinter.calibrate(file, given, method=method))
        assert first == bytes(sinter.calibrate(file, given, method=method))
        assert first == bytes(sinter.calibrate(file, given[::-1], method=method))
        assert first.startswith(b"TRT-101600-")


def test_data_that_has_no_range():
    rng = np.random.default_rng(8)
    file, _, _ = two_products(rng)
    assert not sinter.calibrate(file, [{"x": np.zeros((2, 24), "f4")}])
    bad = rng.standard_normal((2, 24)).astype("f4")
    bad[1, 3] = np.nan
    assert "x" not in sinter.calibrate(file, [{"x": bad}])
    for wrong, says in (([], "no batch"), ([{"z": bad}], "'z'"), ([{"x": bad.astype("f8")}], "f64"),
                        ([{"x": bad[:, :5]}], "x")):
        rig.raises(sinter.Error, sinter.calibrate, file, wrong, says=says)
    rig.raises(sinter.InvalidArgument, sinter.calibrate, file, [{"x": bad}], method="median", says="median")
    rig.raises(sinter.InvalidArgument, sinter.calibrate, file, [{"x": bad}], percentile=101, says="percentile")


# ---- caches ----

def cache_text(rows, header="TRT-8601-EntropyCalibration2"):
    return (header + "\n" + "".join(f"{name}: {struct.pack('>f', scale).hex()}\n" for name, scale in rows)).encode()


def test_caches_byte_by_byte():
    choose = random.Random(3)
    names = ["x", "b:0", "a: b", " lead", "trail ", "ü/ß", "(Unnamed Layer* 3) [Convolution]_output", "1: 3f800000", ":"]
    for _ in range(200):
        rows = [(name + str(i), struct.unpack(">f", struct.pack(">I", choose.randrange(0x7f800000)))[0])
                for i, name in enumerate(choose.sample(names, choose.randint(0, len(names))))]
        header = f"TRT-{choose.randint(0, 999999)}-{choose.choice(['EntropyCalibration2', 'MinMaxCalibration', 'X'])}"
        text = cache_text(rows, header)
        ranges = sinter.Calibration(text)
        assert bytes(ranges) == text and ranges.header == header
        assert list(ranges.scales.items()) == rows
        # Of Windows, in capitals, with blank lines and no last end of line: the same ranges.
        other = header.encode() + b"\r\n\r\n" + b"\r\n".join(
            b": ".join((line.rsplit(b": ", 1)[0], line.rsplit(b": ", 1)[1].upper())) for line in text.splitlines()[1:])
        assert bytes(sinter.Calibration(other)) == text
    made = sinter.Calibration()
    made["x"] = 127 * 0.5
    made["x"] = 127 * 0.25
    made["y"] = 0
    assert bytes(made) == cache_text([("x", 0.25), ("y", 0)], "TRT-101600-EntropyCalibration2")
    assert made["x"] == 127 * 0.25 and made["y"] == 0
    for name, number in (("", 1), ("a\nb", 1), ("a\r", 1), ("x", -1), ("x", float("nan")), ("x", float("inf")), ("x", 1e300)):
        rig.raises(sinter.InvalidArgument, made.__setitem__, name, number)


def damage(choose, text):
    """A line of the cache with one fault of those that tools and editors make; the number of the line."""
    lines = text.decode().splitlines()
    i = choose.randrange(1, len(lines))
    name, digits = lines[i].rsplit(": ", 1)
    kind = choose.randrange(12)
    if kind == 0:
        lines[i] = f"{name}: {digits[:-1]}"
    elif kind == 1:
        lines[i] = f"{name}: {digits}0"
    elif kind == 2:
        lines[i] = f"{name}: {digits[:-1]}{choose.choice('gGxX- ')}"
    elif kind == 3:
        lines[i] = f"{name}:{digits}"
    elif kind == 4:
        lines[i] = f"{name} {digits}"
    elif kind == 5:
        lines[i] = f": {digits}"
    elif kind == 6:
        lines[i] = f"{name}: {choose.choice(['7f800000', 'ff800000', '7fc00000', 'bf800000', '80000000', 'ffffffff'])}"
    elif kind == 7:
        lines.append(lines[i])
        i = len(lines) - 1
    elif kind == 8:
        lines[i] = f"{name[:1]}\0{name[1:]}: {digits}"
    elif kind == 9:
        i, lines[0] = 0, choose.choice(["", "TRT-", "TRT-8601", "TRT--X", "TRT-8601-", "trt-1-X", "1", lines[1],
                                        "TRT-8601-Entropy Calibration", "TRT-8601-X: 3f800000", "\ufeff" + lines[0]])
    elif kind == 10:
        lines[i] = "# a comment"
    else:
        lines[i] = f"{name}: 0x{digits[:6]}"
    return "\n".join(lines).encode(), i + 1


def test_damaged_caches():
    choose = random.Random(4)
    for _ in range(1500):
        text = cache_text([(f"{choose.choice(['x', 'a:b', 'conv/out'])}{i}", choose.random())
                           for i in range(choose.randint(1, 6))])
        bad, line = damage(choose, text)
        rig.raises(sinter.InvalidModel, sinter.Calibration, bad, says=f"line {line}")
    rig.raises(sinter.InvalidModel, sinter.Calibration, b"", says="empty")
    # Cut anywhere: refused, or a cache with fewer lines.
    text = cache_text([("x", 0.5), ("y", 2)])
    for end in range(1, len(text)):
        try:
            assert text.startswith(bytes(sinter.Calibration(text[:end]))[:-1])
        except sinter.InvalidModel:
            pass
    # Bytes at random: no crash, and what is taken is written again.
    for seed in range(3000):
        some = random.Random(seed)
        bad = bytearray(text)
        for _ in range(some.randint(1, 4)):
            bad[some.randrange(len(bad))] = some.choice(b"0123456789abcdefF:\n\r \0-T\xff" + bytes([some.randrange(256)]))
        try:
            ranges = sinter.Calibration(bytes(bad))
        except sinter.InvalidModel:
            continue
        assert sinter.Calibration(bytes(ranges)).scales == ranges.scales


# ---- builds ----

def run(file, x, **options):
    plan = sinter.build(file, profiles={"x": x.shape}, tune="off", device="cpu", **options)
    with sinter.load(plan).context() as context:
        return context.run({"x": x})["y"].copy(), plan


def quantized(x, scale):
    return np.clip(np.rint(x / np.float32(scale)), -128, 127).astype("f8") * np.float32(scale).astype("f8")


def test_a_build_holds_what_the_cache_says():
    rng = np.random.default_rng(9)
    file, w, v = two_products(rng)
    x = rng.standard_normal((8, 24)).astype("f4")
    always = {"allow": "int8", "lower": "always"}
    weights = [np.clip(np.rint(m / (np.abs(m).max(0) / np.float32(127))), -127, 127) * (np.abs(m).max(0) / 127) for m in (w, v)]
    for scale in (0.01, 0.002):             # the second cuts most of the data off
        cache = cache_text([("x", np.float32(scale))])
        y, plan = run(file, x, calibration=cache, **always)
        want = np.maximum(quantized(x, scale) @ weights[0], 0) @ v
        assert np.abs(y - want).max() < 1e-3 * np.abs(want).max(), scale
        assert "int8: 1 of 2 products" in plan.report["lowered"], plan.report["lowered"]
    both, plan = run(file, x, calibration=cache_text([("x", 0.03), ("b:0", 0.2)]), **always)
    assert "int8: 2 of 2 products" in plan.report["lowered"]
    exact = np.maximum(x @ w, 0) @ v
    assert np.sqrt(((both - exact) ** 2).mean() / (exact ** 2).mean()) < 0.05
    # Found and given are the same engine as found, written, read and given.
    found = sinter.calibrate(file, [{"x": x}])
    assert bytes(run(file, x, calibration=found, **always)[1]) == bytes(run(file, x, calibration=bytes(found), **always)[1])
    plain, plan = run(file, x, calibration=cache_text([("other", 1)]), **always)
    assert "int8: 0 of 2 products" in plan.report["lowered"]
    assert np.array_equal(plain, run(file, x)[0])
    rig.raises(sinter.InvalidArgument, run, file, x, calibration=cache_text([]), says="int8 is not allowed")
    run(file, x, calibration=cache_text([("x", 0.03)]), allow="fp16,int8", lower="always")


if __name__ == "__main__":
    rig.main(__name__)
