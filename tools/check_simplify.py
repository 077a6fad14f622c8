#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simplifies models and judges the results from outside: onnx.checker with full_check, and equal outputs in ONNX Runtime.

    tools/check_simplify.py [--sinter PATH] [--keep DIR] [--runs N] MODEL.onnx|FOLDER ...

A folder stands for all models below it. One model at a time, in a process of its own: a model needs a few times its size in
memory. Needs the packages onnx, onnxruntime and numpy. Inputs are those of the model's test data where there are any, else
seeded random numbers, with free dims of 1 to 3."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def data_of(folder, session):
    """Lists of inputs, from test_data*/input_i.npy or .pb."""
    import numpy as np
    import onnx
    from onnx import numpy_helper
    names = [i.name for i in session.get_inputs()]
    for case in sorted([*folder.glob("test_data*"), *folder.glob("set_*")]):
        values = {}
        for index, name in enumerate(names):
            npy, pb = case / f"input_{index}.npy", case / f"input_{index}.pb"
            if npy.exists():
                values[name] = np.load(npy)
            elif pb.exists():
                values[name] = numpy_helper.to_array(onnx.load_tensor(str(pb)))
        if len(values) == len(names):
            yield values


def random_of(session, seed):
    import numpy as np
    rng = np.random.default_rng(seed)
    sizes, values = {}, {}
    types = {"float": np.float32, "double": np.float64, "float16": np.float16}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else sizes.setdefault(d or object(), int(rng.integers(1, 4))) for d in i.shape]
        kind = i.type[7:-1]
        if kind in types:
            values[i.name] = rng.random(shape).astype(types[kind])
        elif kind == "bool":
            values[i.name] = rng.random(shape) < 0.5
        else:
            values[i.name] = rng.integers(0, 4, shape).astype(kind)
    return values


def gap(want, got):
    """The largest difference as a share of the largest number, or inf."""
    import numpy as np
    want, got = np.asarray(want), np.asarray(got)
    if want.shape != got.shape or want.dtype != got.dtype:
        return float("inf")
    if want.dtype == object or not want.size:
        return 0.0 if (want == got).all() else float("inf")
    a, b = want.astype(np.float64), got.astype(np.float64)
    if not (np.isnan(a) == np.isnan(b)).all():
        return float("inf")
    finite = np.isfinite(a) & np.isfinite(b)
    if not (a[~finite & ~np.isnan(a)] == b[~finite & ~np.isnan(a)]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    return float(np.abs(a - b)[finite].max() / max(1e-6, np.abs(a[finite]).max()))


def limits_of(folder, count):
    """For each output the difference that the model's data permits: `atol` of its tolerance.json, or 0."""
    for path in sorted(folder.glob("*/tolerance.json")):
        rows = json.loads(path.read_text())
        return [rows.get(f"output_{i}", {}).get("atol", 0) for i in range(count)]
    return [0] * count


def beyond(want, got, limit):
    """gap(), or 0 where the largest difference is one that the model's data permits: networks in 16 bits round elsewhere."""
    found = gap(want, got)
    return 0.0 if limit and found * max(1e-6, float(abs(want).max())) <= limit else found


def one(model, output, runs):
    import onnx
    import onnxruntime as ort
    onnx.checker.check_model(str(output), full_check=True)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    # What the models say, not what the runtime makes of them: fused products of 8-bit numbers round in other places.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    first = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    sets = list(data_of(model.parent, first))[:runs] or [random_of(first, n) for n in range(runs)]
    wanted = [first.run(None, v) for v in sets]
    faces = [[(v.name, v.type) for v in x] for x in (first.get_inputs(), first.get_outputs())]
    del first
    second = ort.InferenceSession(str(output), options, providers=["CPUExecutionProvider"])
    if faces != [[(v.name, v.type) for v in x] for x in (second.get_inputs(), second.get_outputs())]:
        print("FAIL: other inputs or outputs")
        return 1
    pairs = [(a, b, limit) for v, w in zip(sets, wanted) for a, b, limit in zip(w, second.run(None, v), limits_of(model.parent, len(w)))]
    worst = max((beyond(a, b, limit) for a, b, limit in pairs), default=0.0)
    largest = max((gap(a, b) for a, b, _ in pairs), default=0.0)
    print(f"gap {worst:.2g} beyond the limits ({largest:.2g} in all) in {len(sets)} runs", end="; ")
    return 0


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--sinter", default=ROOT / "build/sinter", type=pathlib.Path)
    parse.add_argument("--keep", type=pathlib.Path)
    parse.add_argument("--runs", type=int, default=1)
    parse.add_argument("--worst", type=float, default=1e-3, help="the gap that still passes")
    parse.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parse.add_argument("models", nargs="+", type=pathlib.Path)
    o = parse.parse_args()
    if o.one:
        return one(o.models[0], o.models[1], o.runs)
    models = [m for p in o.models for m in (sorted(p.rglob("*.onnx")) if p.is_dir() else [p])]
    failed = 0
    with tempfile.TemporaryDirectory() as temp:
        folder = o.keep or pathlib.Path(temp)
        folder.mkdir(parents=True, exist_ok=True)
        for m in models:
            output = folder / f"{m.parent.name}_{m.name}"
            done = subprocess.run([o.sinter, "simplify", m, "-o", output], capture_output=True, text=True)
            nodes = ([line.split()[1:] for line in done.stdout.splitlines() if line.startswith("all ")] or [["?", "?"]])[0]
            what = f"{m.parent.name}: {nodes[0]} -> {nodes[1]} nodes; "
            if done.returncode:
                lines = done.stderr.strip().splitlines()
                print("FAIL", what, "simplify:", (lines or ["?"])[0][:300], flush=True)
                failed += 1
                continue
            judged = subprocess.run([sys.executable, __file__, "--one", "--runs", str(o.runs), m, output], capture_output=True, text=True)
            said = (judged.stdout + judged.stderr.strip()[-600:]).replace("\n", " ")
            worst = float(said.split()[1]) if judged.returncode == 0 and said.startswith("gap") else float("inf")
            failed += worst > o.worst
            print("ok  " if worst <= o.worst else "FAIL", what, said, f"{m.stat().st_size >> 10} -> {output.stat().st_size >> 10} KiB", flush=True)
            if not o.keep:
                output.unlink()
    print(f"{len(models) - failed} of {len(models)} pass")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
