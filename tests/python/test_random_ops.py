#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random models of one to three ONNX operators, against ONNX Runtime, or ONNX's own reference where that refuses.
Without the packages onnx and onnxruntime there is nothing to do.

    test_random_ops.py [--count N] [--seed S] [--only OP,...] [--save FOLDER] [--seconds S] [--unfit] [--computed]

With --computed the numbers that steer an operator (sizes, axes, pads, scales) are inputs, or computed of inputs."""
import argparse
import collections
import os
import pathlib
import re
import sys
import time

try:
    import numpy as np
    import onnx
    import onnx.reference
    import onnxruntime
    import random_recipes  # noqa: F401  both fill what is drawn from
    import random_recipes_layers  # noqa: F401
    from random_ops import Unfit, draw
except ImportError as e:
    print(f"nothing is compared: {e}")
    sys.exit(0)

import rig  # noqa: F401  the library of this build
import sinter

onnxruntime.set_default_logger_severity(4)
RELATIVE = {"f": 2e-5, "d": 1e-6, "e": 4e-3}
# Where ONNX's own reference is not followed: its text, or ONNX Runtime for other types, says something else.
DOUBTED = set("""
    LSTM GRU RNN Hardmax Softmax LogSoftmax OneHotEncoder GridSample MaxPool AveragePool GlobalMaxPool
    GlobalAveragePool LinearClassifier SVMClassifier SVMRegressor Scaler Imputer ReduceSumSquare LabelEncoder LRN
    LpNormalization QLinearConv
""".split())


def by_onnxruntime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))


def by_reference(model, feeds):
    onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    names = [o.name for o in model.graph.output]
    return dict(zip(names, onnx.reference.ReferenceEvaluator(model).run(None, feeds)))


def judge(d):
    model = d.model()
    d.by = "onnxruntime"
    try:
        return by_onnxruntime(model, d.feeds)
    except Exception as e:
        d.refusal = str(e)
    if len(d.ops) > 1 or d.ops[0] in DOUBTED:
        raise Unfit(f"{d.ops[-1]}: {d.refusal.splitlines()[0]}")
    d.by = "reference"
    try:
        with np.errstate(all="ignore"):
            found = by_reference(model, d.feeds)
    except Exception as e:
        raise Unfit(f"{d.refusal.splitlines()[0]} / {str(e).splitlines()[0] if str(e) else e!r}") from e
    return {k: np.asarray(v) for k, v in found.items()}


def difference(name, found, want):
    if found.dtype != want.dtype or found.shape != want.shape:
        return f"{name} is {found.dtype}{list(found.shape)}, wanted {want.dtype}{list(want.shape)}"
    if not want.size:
        return None
    if want.dtype.kind in "iub":
        if (found == want).all():
            return None
        return f"{name}: other integers: {found.ravel()[:8]}, wanted {want.ravel()[:8]}"
    a, b = found.astype("f8").ravel(), want.astype("f8").ravel()
    finite = np.isfinite(b)
    big = float(np.abs(b[finite]).max()) if finite.any() else 0.0
    limit = 2e-2 if name.endswith("_w") else RELATIVE[want.dtype.char]
    with np.errstate(all="ignore"):
        wrong = (np.isnan(a) != np.isnan(b)) | (np.abs(a - b) > limit * max(1.0, big)) | (np.isinf(a) != np.isinf(b))
    k = int(np.argmax(wrong))
    return f"{name}: other numbers: [{k}] is {a[k]:.7g}, wanted {b[k]:.7g}" if wrong.any() else None


def by_sinter(d, outputs):
    """name -> array, or raises."""
    free = {k: (0, n, 2 * n + 1) for k, n in d.free.items()} if d.is_wide else d.free
    plan = sinter.build(d.model(outputs).SerializeToString(), profiles=[free] if free else None, tune="off")
    with plan.load().context() as context:
        return {k: np.asarray(v) for k, v in context.run(d.feeds).items()}


def check(seed, only=(), save=None, drawn=lambda: None, computed=False):
    """What came of one seed: 'unfit: why', 'same', 'refused: why' or 'differs: how', after the operators' names. drawn() is
    called before sinter is."""
    try:
        d = draw(seed, judge, only=only, computed=computed)
    except Unfit as e:
        return "unfit: " + str(e)
    except ValueError as e:
        return f"unfit: the draw: {e!r}"
    wanted = {k: v for k, v in d.wanted.items() if v.dtype.kind in "fiub"}
    ops = "+".join(d.ops)
    if not wanted:
        return "unfit: no result that NumPy holds"
    if save:
        save_model(d, save, seed)
    drawn()
    try:
        found = by_sinter(d, list(wanted))
    except sinter.Error as e:
        return f"refused: {ops} ({d.by}, {d.opset}): {str(e)}"
    for name, want in wanted.items():
        why = difference(name, found[name], want)
        if why:
            return f"differs: {ops} ({d.by}, {d.opset}): {why}"
    return "same"


def save_model(d, folder, seed):
    path = pathlib.Path(folder) / str(seed)
    path.mkdir(parents=True, exist_ok=True)
    onnx.save(d.model(), path / "model.onnx")
    np.savez(path / "in.npz", **d.feeds)
    np.savez(path / "out.npz", **d.wanted)


def check_apart(seed, only, save, computed):
    """check() in a process of its own, which may die: in sinter, or in the packages that draw and judge a model."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            what = check(seed, only, save, lambda: os.write(write, b"drawn;"), computed)
        except BaseException as e:
            what = f"broken: {e!r}"
        os.write(write, what[:4000].encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        what = f.read().decode(errors="replace")
    status = os.waitpid(child, 0)[1]
    what, is_drawn = what.removeprefix("drawn;"), what.startswith("drawn;")
    return what or f"{'died' if is_drawn else 'unfit'}: its process ended with status {status}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int, default=300)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", default="")
    p.add_argument("--save")
    p.add_argument("--seconds", type=float, default=3600)
    p.add_argument("--unfit", action="store_true")
    p.add_argument("--computed", action="store_true")
    args = p.parse_args()
    counts, started, bad = collections.Counter(), time.time(), 0
    for seed in range(args.seed, args.seed + args.count):
        if time.time() - started > args.seconds:
            break
        what = check_apart(seed, [o for o in args.only.split(",") if o], args.save, args.computed)
        kind = what.split(":")[0]
        if kind == "refused" and not args.computed and "while the model runs; a constant is wanted" in what:
            kind = "late"  # a number that steers an operator, and comes at run time
        counts[kind] += 1
        if kind not in ("same", "unfit", "late") or (args.unfit and kind in ("unfit", "late")):
            bad += kind not in ("same", "unfit", "late")
            print(f"{seed}: {re.sub(chr(10), ' | ', what)}", flush=True)
    print(dict(counts))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
