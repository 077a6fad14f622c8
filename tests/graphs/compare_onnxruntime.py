#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The second judge: runs the models that graphs_test_random_graphs --dump DIR wrote with ONNX Runtime, and compares its
results with what the reference kernels gave. Wants numpy and onnxruntime; without them it says so and ends well.

    compare_onnxruntime.py DIR"""
import collections
import json
import os
import pathlib
import re
import sys

try:
    import numpy as np
    import onnxruntime as ort
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

TYPES = {"f32": "f4", "f64": "f8", "f16": "f2", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2",
         "u32": "u4", "u64": "u8", "bool": "?"}
UNIT = {"f32": 2.0 ** -24, "f64": 2.0 ** -24, "f16": 2.0 ** -11}


def tensor(data, t):
    return np.frombuffer(data, TYPES[t["type"]], offset=t["at"], count=int(np.prod(t["dims"], dtype=np.int64))).reshape(t["dims"])


def difference(found, want, t):
    """None, or how they differ."""
    if found.dtype != want.dtype or found.shape != want.shape:
        return f"is {found.dtype}{list(found.shape)}, wanted {want.dtype}{list(want.shape)}"
    if t["doubtful"] or not found.size:
        return None
    if t["type"] not in UNIT:
        return None if (found == want).all() else "other integers"
    a, b = found.astype("f8"), want.astype("f8")
    within = 1e4 * UNIT[t["type"]] * max(1.0, float(np.abs(b).max()))
    if (np.isnan(a) != np.isnan(b)).any() or (np.abs(a - b) > within).any():
        return f"other numbers: {a.flat[np.nanargmax(np.abs(a - b))]:.7g}, wanted {b.flat[np.nanargmax(np.abs(a - b))]:.7g}"
    return None


def run(path):
    """What came of one model: 'same', 'refused: why' or 'differs: how'."""
    runs = json.loads(path.with_suffix(".json").read_text())
    data = path.with_suffix(".bin").read_bytes()
    if any(t["type"] not in TYPES for r in runs for t in r["in"] + r["out"]):
        return "refused: a type that numpy lacks"
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as e:
        return "refused: " + str(e).splitlines()[0]
    for number, r in enumerate(runs):
        try:
            found = session.run([t["name"] for t in r["out"]], {t["name"]: tensor(data, t) for t in r["in"]})
        except Exception as e:
            return f"refused: run {number}: " + str(e).splitlines()[0]
        for x, t in zip(found, r["out"]):
            why = difference(x, tensor(data, t), t)
            if why:
                return f"differs: run {number}: {t['name']} {why}"
    return "same"


def run_apart(path):
    """run() in a process of its own, which may die."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, run(path)[:4000].encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        what = f.read().decode()
    status = os.waitpid(child, 0)[1]
    return what or f"refused: its process ended with status {status}"


def main():
    counts = collections.Counter()
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
        what = run_apart(path)
        counts[what.split(":")[0]] += 1
        if what != "same":
            counts["  " + re.sub(r"\d+", "#", what)[:110]] += 1
        if what.startswith("differs"):
            print(f"{path}: {what}")
    for what, n in counts.most_common():
        print(f"{n:6} {what}")
    return 1 if counts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
