#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`sinter compare` on random data: the figures and verdicts against NumPy's, the first layer that diverges where one weight
of a random model was changed, every kind of side, and what is refused."""
import html.parser
import json
import os
import random
import sys
import tempfile

import onnx_bytes as onnx
from cli_rig import check, failures, sinter

try:
    import numpy as np
except ImportError:
    sys.exit(77)

ROUNDS = 200 if os.environ.get("SINTER_TEST_SCALE") == "full" else 12
rng = np.random.default_rng(int(os.environ.get("SINTER_TEST_SEED", 1)))
random.seed(int(os.environ.get("SINTER_TEST_SEED", 1)))


def compared(*words):
    status, out, err = sinter("compare", *words, "--json")
    check(status in (0, 1) and out, words, status, err)
    return status, json.loads(out or "{}")


# ---- figures ----

def random_pair():
    """Two arrays of one shape that are near each other, far, equal, or hold NaN and infinities."""
    shape = tuple(int(d) for d in rng.integers(1, 6, rng.integers(0, 4)))
    dtype = random.choice(["f4", "f8", "f2", "i4", "u1", "i8"])
    want = np.asarray(rng.normal(0, 10 ** rng.uniform(-3, 3), shape))
    if dtype[0] != "f":
        want = np.abs(want) % 100
    got = want + np.asarray(rng.normal(0, 1, shape)) * want * 10 ** rng.uniform(-9, 0) * (rng.random(shape) < 0.7)
    got, want = np.array(got, dtype), np.array(want, dtype)
    if dtype[0] == "f":
        for x in (got, want):
            mask = rng.random(shape) < random.choice([0, 0, 0.2])
            x[mask] = rng.choice([np.nan, np.inf, -np.inf, 0], shape)[mask]
    return got, want


def errors(got, want):
    got, want = got.astype("f8"), want.astype("f8")
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        absolute = np.where(same, 0, np.where(np.isfinite(got) & np.isfinite(want), np.abs(got - want), np.inf))
        relative = np.where(same, 0, np.where((want != 0) & np.isfinite(absolute), absolute / np.abs(want), np.inf))
    return absolute, relative


def quantile(x, share):
    x = np.sort(x.ravel())
    at = share * (len(x) - 1)
    low, high = x[int(at)], x[min(int(at) + 1, len(x) - 1)]
    return low if low == high or at == int(at) else low + (at - int(at)) * (high - low)


def near(a, b):
    if a is None:
        return not np.isfinite(b)
    return a == b or abs(a - b) <= 1e-7 * abs(b) + 1e-300


def figures_are_numpys(folder):
    for turn in range(ROUNDS):
        pairs = {name: random_pair() for name in "pqr"[:random.randint(1, 3)]}
        for side in "ab":
            os.makedirs(f"{folder}/{turn}{side}")
            for name, pair in pairs.items():
                np.save(f"{folder}/{turn}{side}/{name}.npy", pair[side == "b"])
        stat, q = random.choice(["elemwise", "max", "mean", "median", "quantile"]), random.choice([0, 0.5, 0.9, 1])
        atol, rtol = 10 ** rng.uniform(-8, 1), 10 ** rng.uniform(-8, 0)
        own = 10 ** rng.uniform(-8, 1)
        flags = ["--atol", atol, "--rtol", rtol, "--atol", f"q:{own}", "--check-error-stat", stat, "--error-quantile", q]
        flags += ["--validate"] * (turn % 3 == 0)
        status, out = compared(f"{folder}/{turn}a", f"{folder}/{turn}b", *flags)
        is_good = True
        for row in out["outputs"]:
            got, want = pairs[row["name"]]
            absolute, relative = errors(got, want)
            allowed = own if row["name"] == "q" else atol
            with np.errstate(all="ignore"):
                wrong = ~(absolute <= allowed + rtol * np.abs(want.astype("f8")))
            wrong = (wrong | np.isinf(absolute)) & (absolute > 0)
            finite = np.isfinite(got.astype("f8")) & np.isfinite(want.astype("f8"))
            g, w = got[finite].astype("f8"), want[finite].astype("f8")
            for kind, x in (("absolute", absolute), ("relative", relative)):
                for key, value in (("max", x.max()), ("mean", x.mean()), ("median", quantile(x, 0.5)), ("quantile", quantile(x, q))):
                    check(near(row[kind][key], value), turn, row["name"], kind, key, row[kind][key], value)
            check(row["mismatched"] == wrong.sum(), turn, "mismatched", row["mismatched"], wrong.sum())
            check(row["b"]["nan"] == np.isnan(want.astype("f8")).sum() and row["a"]["infinite"] == np.isinf(got.astype("f8")).sum(), turn, "odd values")
            check(sum(row["histogram"]) == got.size and row["histogram"][0] == (absolute == 0).sum(), turn, "histogram")
            if g.any() and w.any():
                check(abs(row["cosine_similarity"] - (g @ w) / np.sqrt((g @ g) * (w @ w))) < 1e-6, turn, "cosine")
            chosen = {"max": "max", "mean": "mean", "median": "median", "quantile": "quantile"}.get(stat)
            good = not wrong.any()
            if chosen:
                good = any((np.inf if row[k][chosen] is None else row[k][chosen]) <= limit for k, limit in (("absolute", allowed), ("relative", rtol)))
            if "--validate" in flags:
                good &= bool(np.isfinite(got.astype("f8")).all() and np.isfinite(want.astype("f8")).all())
            check((row["verdict"] == "passed") == good, turn, row["name"], stat, row["verdict"], row.get("reason"))
            is_good &= good
        check(len(out["outputs"]) == len(pairs) and (status == 0) == is_good, turn, "exit status", status, is_good)


# ---- models ----

def random_model(path, planted=None):
    """A random graph over [2, 6], each node with a weight of its own; the weight of node `planted` is changed. Some values
    reach the next node through a sequence, which is no tensor; its type is told or not."""
    values, body = ["x"], b""
    onnx.state[0] = 7
    shape_of = random.Random(random.getrandbits(32))
    count = shape_of.randint(2, 9)
    for index in range(count):
        op = shape_of.choice(["Add", "Mul", "Sub"])
        weight = [w + 0.75 for w in onnx.numbers(6)]
        if index == planted:
            weight[shape_of.randrange(6)] += 0.5
        source = shape_of.choice(values)
        if index and shape_of.random() < 0.3:
            body += onnx.node("SequenceConstruct", [source], f"s{index}") + onnx.node("SequenceAt", [f"s{index}", "zero"], f"a{index}")
            source, kind = f"a{index}", onnx.data(4, onnx.data(1, onnx.data(1, onnx.num(1, onnx.FLOAT))))
            if shape_of.random() < 0.5:
                body += onnx.data(13, onnx.data(1, f"s{index}") + onnx.data(2, kind))
        body += onnx.tensor(f"w{index}", onnx.FLOAT, [6], weight) + onnx.node(op, [source, f"w{index}"], f"v{index}")
        values.append(f"v{index}")
    body += onnx.data(11, onnx.value("x", ["N", 6])) + onnx.tensor("zero", 7, [], [0])
    for name in {values[-1], shape_of.choice(values[1:])}:
        body += onnx.data(12, onnx.value(name, ["N", 6]))
    onnx.write_model(path, body)
    return count


def the_first_layer_is_named(folder):
    good, bad = f"{folder}/good.onnx", f"{folder}/bad.onnx"
    for turn in range(ROUNDS):
        state = random.getstate()
        count = random_model(good)
        planted = turn % count
        random.setstate(state)
        random_model(bad, planted)
        status, out = compared(bad, random.choice(["", "reference:"]) + good, "--all-layers", "--shape", "N=2")
        check(status == 1 and out["first_divergence"] == f"v{planted}", turn, planted, out["first_divergence"])
        check([r["name"] for r in out["outputs"] if r["name"][0] == "v"] == [f"v{i}" for i in range(count)], turn, "order")
        status, text, _ = sinter("compare", bad, good, "--all-layers", "--shape", "N=2")
        check(f"the first layer that diverges: node 'v{planted}'" in text, turn, text)
        check(compared(good, "reference:" + good, "--all-layers")[0] == 0, turn, "equal models differ")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.wrong = [], []

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)
        self.wrong += [a for a in attrs if a[0] in ("src", "href") or a[0].startswith("on")]

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def sides_of_all_kinds(folder):
    model, engine, saved, page = (f"{folder}/{n}" for n in ("<b>&'.onnx", "m.sinter", "saved", "page.html"))
    random_model(model)
    check(sinter("build", model, "-o", engine, "--tune", "off", "--shape", "N=3")[0] == 0, "build")
    data = rng.random((3, 6)).astype("f4")
    np.save(f"{folder}/x.npy", data)
    given = ["--input", f"x={folder}/x.npy"]
    check(sinter("run", model, *given, "--output-dir", saved, "--output-names")[0] == 0, "run")
    check(sinter("run", model, *given, "--output-dir", saved + "2")[0] == 0, "run")
    sides = [engine, model, "reference:" + model, saved, saved + "2"]
    for a in sides:
        for b in sides:
            if {a, b} == {saved, saved + "2"}:
                continue
            status, text, err = sinter("compare", a, b, *given, "-o", page)
            check(status == 0 and text.endswith("are within the tolerances\n"), a, b, text, err)
            reader = Page()
            reader.feed(open(page).read())
            check(not reader.wrong and not reader.open, "page", a, b, reader.wrong, reader.open)
    for f in os.listdir(saved):
        x = np.load(f"{saved}/{f}")
        x.flat[0] = np.nan
        np.save(f"{saved}/{f}", x)
    status, out = compared(engine, saved, *given)
    check(status == 1 and out["outputs"][0]["b"]["nan"] == 1, "a NaN passes")
    check(compared(saved, saved)[0] == 0 and compared(saved, saved, "--validate")[0] == 1, "--validate")
    check(not [f for f in os.listdir(folder) if f.startswith(".sinter")], "files are left")
    try:
        import onnxruntime
    except ImportError:
        onnxruntime = None
    for a, b in ((engine, "onnxruntime:" + model), ("onnxruntime:" + model, engine)):
        status, text, err = sinter("compare", a, b)
        check(status == 0 if onnxruntime else "cannot run ONNX Runtime" in err, "onnxruntime", status, err)
    if onnxruntime:
        status, out = compared(model, "onnxruntime:" + model, "--all-layers", "--shape", "N=4")
        check(status == 0 and len(out["outputs"]) > 1, "onnxruntime", "--all-layers")


def weights_in_other_files(folder):
    """Copies of such a model have to stand beside it; nothing of them is left."""
    model = f"{folder}/m.onnx"
    weights = rng.random(6).astype("f4")
    weights.tofile(f"{folder}/w.bin")
    where = b"".join(onnx.data(13, onnx.data(1, k) + onnx.data(2, v)) for k, v in (("location", "w.bin"), ("length", "24")))
    tensor = onnx.data(5, onnx.num(1, 6) + onnx.num(2, onnx.FLOAT) + onnx.data(8, "w") + where + onnx.num(14, 1))
    onnx.write_model(model, tensor + onnx.node("Mul", ["x", "w"], "a") + onnx.node("Exp", ["a"], "y") +
                     onnx.data(11, onnx.value("x", ["N", 6])) + onnx.data(12, onnx.value("y", ["N", 6])))
    status, out = compared(model, "reference:" + model, "--all-layers")
    check(status == 0 and [r["name"] for r in out["outputs"]] == ["a", "y"], out)
    check(sorted(os.listdir(folder)) == ["m.onnx", "w.bin"], os.listdir(folder))
    status, _, err = sinter("debug", "reduce", model, "-o", f"{folder}/small.onnx", "--check", "false")
    check(status == 1 and "weights in other files" in err, err)


def simplified_models_are_compared(folder):
    model, small = f"{folder}/m.onnx", f"{folder}/small.onnx"
    for turn in range(3):
        random_model(model)
        status, out, err = sinter("simplify", model, small, 3, "--shape", "N=2")
        check(status == 0 and "the same outputs on 3 sets of inputs" in out, turn, out, err)
        check(compared(small, model)[0] == 0, turn, "the simplified model differs")


def what_is_refused(folder):
    model, engine, empty = f"{folder}/m.onnx", f"{folder}/m.sinter", f"{folder}/empty"
    random_model(model)
    os.makedirs(empty)
    open(f"{folder}/text.html", "w").write("mine")
    for words, text in (
            ((model,), "a file is missing"), ((model, model, model), "too many files"),
            ((model, f"{folder}/none.onnx"), "none.onnx"), ((model, empty), "has no .npy file"),
            ((engine, model, "--allow", "fp16"), "--allow goes with a model"),
            ((model, model, "--atol", "y:"), "expected [NAME:]A"), ((model, model, "--atol", ":1"), "expected [NAME:]A"),
            ((model, model, "--check-error-stat", "maximum"), "expected elemwise|max"),
            ((model, model, "-o", f"{folder}/text.html"), "is no page of HTML"),
            ((model, "reference:" + f"{folder}/text.html", "--all-layers"), "is no ONNX model")):
        if words[0] == engine:
            sinter("build", model, "-o", engine, "--tune", "off")
        status, _, err = sinter("compare", *words)
        check(status != 0 and text in err, words, status, err)


with tempfile.TemporaryDirectory() as work:
    for test in (figures_are_numpys, the_first_layer_is_named, sides_of_all_kinds, weights_in_other_files,
                 simplified_models_are_compared, what_is_refused):
        os.makedirs(f"{work}/{test.__name__}")
        test(f"{work}/{test.__name__}")
sys.exit(1 if failures else 0)
