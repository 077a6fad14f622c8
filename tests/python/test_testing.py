# SPDX-License-Identifier: Apache-2.0
"""`sinter.testing.compare`: its figures and verdicts against those of `sinter compare` on random arrays, and every kind of side:
models, engines, networks, plans, functions, saved arrays, types that NumPy does not have."""
import json
import random
import subprocess

import rig  # noqa: I001
import numpy as np
import sinter
import sinter.testing
from random_models import RandomModel, widened

choose = random.Random(3)
rng = np.random.default_rng(3)


def random_pair():
    """Two arrays that are near each other, far, equal, of other types, or hold NaN and infinities."""
    shape = tuple(int(d) for d in rng.integers(0 if choose.random() < 0.1 else 1, 6, rng.integers(0, 4)))
    types = ["f4", "f8", "f2", "i4", "u1", "i8", "i1", "?"]
    dtype = choose.choice(types)
    want = np.asarray(rng.normal(0, 10 ** rng.uniform(-3, 3), shape))
    if dtype[0] != "f":
        want = np.abs(want) % 100
    got = want + np.asarray(rng.normal(0, 1, shape)) * want * 10 ** rng.uniform(-9, 0) * (rng.random(shape) < 0.7)
    got = np.array(got, dtype if choose.random() < 0.8 else choose.choice(types))
    want = np.array(want, dtype)
    for x in (got, want):
        if x.dtype.kind == "f" and choose.random() < 0.2:
            x[rng.random(shape) < 0.2] = choose.choice([np.nan, np.inf, -np.inf, 0])
    return got, want


def by_command(got, want, words):
    a, b = rig.FOLDER / "a.npz", rig.FOLDER / "b.npz"
    np.savez(a, y=got)
    np.savez(b, y=want)
    done = subprocess.run([str(rig.BIN), "compare", str(a), str(b), "--json", *words], capture_output=True, text=True)
    assert done.returncode in (0, 1) and done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["outputs"][0]


def near(a, b):
    a, b = (float("inf") if x in (None, "inf", "Infinity") else float(x) for x in (a, b))
    return a == b or abs(a - b) <= 1e-8 * max(abs(a), abs(b)) or (np.isnan(a) and np.isnan(b))


def test_figures():
    verdicts = []
    for turn in range(150):
        got, want = random_pair()
        words, options = [], {}
        if choose.random() < 0.4:
            options["atol"] = choose.choice([0, 1e-3, 1, 100])
            words += ["--atol", str(options["atol"])]
        if choose.random() < 0.4:
            options["rtol"] = choose.choice([0, 1e-3, 0.5])
            words += ["--rtol", f"y:{options['rtol']}"]
            if choose.random() < 0.5:
                options["rtol"] = {"y": options["rtol"]}
        if choose.random() < 0.3:
            options["cos"] = choose.choice([0, 0.9, 0.9999])
            words += ["--cosine-similarity-threshold", str(options["cos"])]
        if choose.random() < 0.2:
            options["validate"] = True
            words += ["--validate"]
        with np.errstate(all="ignore"):
            status, theirs = by_command(got, want, words)
            ours = sinter.testing.compare({"y": got}, {"y": want}, **options)
        d = ours.outputs["y"]
        assert bool(ours) == (status == 0) == d.is_good == ours.is_good, (turn, words, got, want, d, theirs)
        verdicts.append(status)
        assert d.count == theirs["count"] and d.mismatched == theirs["mismatched"], (turn, d, theirs)
        if got.shape != want.shape or not got.size:
            continue
        for value, name in ((d.max_abs, theirs["absolute"]["max"]), (d.mean_abs, theirs["absolute"]["mean"]), (d.max_rel, theirs["relative"]["max"])):
            assert near(value, name), (turn, d, theirs)
        assert near(round(d.cosine, 9), round(theirs["cosine_similarity"] or 0, 9)), (turn, d, theirs)
    assert 20 < sum(verdicts) < 130


def test_models_of_every_type():
    """An engine agrees with the reference kernels, a plan, an archive of its own results, and a function; other results do not pass."""
    seen = set()
    for seed in range(25):
        made = RandomModel(seed)
        path = rig.FOLDER / "random.onnx"
        path.write_bytes(made.bytes)
        sizes = {name: choose.choice([2, 3]) for name in made.has}
        arrays = made.arrays(sizes)
        profile = {name: array.shape for name, array in arrays.items()}
        plan = sinter.build(str(path), profiles=profile, tune="off")
        first = sinter.testing.compare(plan, f"reference:{path}", arrays)
        assert first and set(first.outputs) == set(made.outputs), (seed, first)
        seen.update(made.outputs.values())
        with plan.load().context() as context:
            results = {name: np.array(widened(np.array(r), made.outputs[name])) for name, r in context.run(arrays).items()}
        saved, engine = rig.FOLDER / "saved.npz", rig.FOLDER / "random.sinter"
        plan.save(engine)
        assert sinter.testing.compare(engine, str(path), arrays), seed
        np.savez(saved, **results)
        assert sinter.testing.compare(plan.load(), saved, arrays) and sinter.testing.compare(str(path), results, arrays, tune="off"), seed
        assert sinter.testing.compare(path, lambda **given: tuple(results.values()), arrays, tune="off"), seed
        name = choose.choice(list(results))
        wrong = dict(results)
        wrong[name] = np.array(~wrong[name] if wrong[name].dtype == bool else wrong[name] + wrong[name].dtype.type(100))
        if wrong[name].size:
            second = sinter.testing.compare(plan, wrong, arrays)
            assert not second and [n for n, d in second.outputs.items() if not d.is_good] == [name], (seed, name, second)
            assert name in str(second) and "failed" in str(second)
            rig.raises(AssertionError, second.check, says=name)
    assert {"bf16", "f8e4m3fn", "f16", "i64", "bool"} <= seen


def test_made_inputs_and_functions():
    """Without inputs both sides get the same random ones. Functions take names or positions, and give one result or several."""
    calls = []

    def named(x, w=None):
        calls.append(x)
        return np.maximum(x, 0)

    def positions(*given):
        return [np.maximum(given[0], 0)]
    net = sinter.Network()
    x = net.add_input("x", "f32", (-1, 5), ("N", None))
    out = net.add("activation", x, type="relu").output
    out.name = "y"
    net.mark_output(out)
    for function in (named, positions, lambda x: {"y": np.maximum(x, 0)}):
        assert sinter.testing.compare(net, function, profiles={"N": (1, 3, 8)}, tune="off")
        assert sinter.testing.compare(function, net, shapes={"x": (4, 5)})
    # Options go to the first side; here that is the function, so the network is built plainly.
    assert calls[0].shape == (3, 5) and calls[1].shape == (4, 5) and calls[0].dtype == np.float32
    assert sinter.testing.compare(named, named, {"x": np.ones((2, 2), "f4")})
    bad = sinter.testing.compare(net, lambda x: np.maximum(x, 0) + 0.5, shapes={"x": (4, 5)})
    assert not bad and abs(bad.outputs["y"].max_abs - 0.5) < 1e-6 and sinter.testing.compare(net, lambda x: np.maximum(x, 0) + 0.5, shapes={"x": (4, 5)}, atol=0.6)
    again = sinter.testing.compare(net, named, seed=5), sinter.testing.compare(net, named, seed=5)
    assert (calls[-1] == calls[-2]).all() and again[0] and again[1]


def test_what_is_refused():
    says = sinter.testing.compare
    rig.raises(ValueError, says, lambda x: x, lambda x: x, says="inputs")
    rig.raises(ValueError, says, {"a": [1]}, {"b": [1], "c": [2]}, says="no output in common")
    rig.raises(TypeError, says, 7, {"y": [1]}, says="int")
    rig.raises(KeyError, says, {"y": [1]}, {"y": [1]}, atol={"z": 1}, says="z")
    rig.raises(TypeError, says, {"y": [1]}, {"y": [1]}, tune="off", says="tune")
    rig.raises(ValueError, says, lambda x: (x, x), {"y": [1.0]}, {"x": np.ones(1)}, says="2 results")
    assert not says({"y": np.ones(3)}, {"y": np.ones(4)}) and "shape" in str(says({"y": np.ones(3)}, {"y": np.ones(4)}))
    assert says({"y": np.ones(3), "z": np.ones(2)}, {"y": np.ones(3)}).outputs.keys() == {"y"}


def test_onnxruntime():
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        return
    result = sinter.testing.compare(str(rig.DIGITS), f"onnxruntime:{rig.DIGITS}", shapes={"image": (2, 1, 28, 28)})
    assert result and 0 < result.outputs["scores"].count


if __name__ == "__main__":
    rig.main(__name__)
