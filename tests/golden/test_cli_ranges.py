#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges of random models, with a library that writes down the calls: each run is a range, which has one range for each
step, in order; every range ends; and without the variable nothing is opened."""
import json
import os
import random
import sys
import tempfile

import onnx_bytes as onnx
from cli_rig import check, failures, sinter

LIBRARY = os.path.abspath("tests/libsinter_fake_nvtx.so")
ROUNDS = 40 if os.environ.get("SINTER_TEST_SCALE") == "full" else 6
random.seed(int(os.environ.get("SINTER_TEST_SEED", 1)))


def random_model(path):
    """A chain and branches over [2, 6]; one in three ends with a size that only the data decide."""
    values, body = ["x"], b""
    for index in range(random.randint(1, 12)):
        op = random.choice(["MatMul", "Softmax", "Exp", "Add", "CumSum"])
        ins = {"MatMul": ["m"], "Add": [random.choice(values)], "CumSum": ["axis"]}.get(op, [])
        body += onnx.node(op, [values[-1], *ins], f"v{index}")
        values.append(f"v{index}")
    out = onnx.value(values[-1], [2, 6])
    if random.random() < 0.3:
        body += onnx.node("NonZero", [values[-1]], "found")
        out = onnx.data(1, "found") + onnx.data(2, onnx.data(1, onnx.num(1, onnx.I64) + onnx.data(2, onnx.data(1, onnx.num(1, 2)) + onnx.data(1, onnx.data(2, "K")))))
    body += onnx.tensor("m", onnx.FLOAT, [6, 6], onnx.numbers(36, 0.3)) + onnx.tensor("axis", onnx.I64, [], [0])
    onnx.write_model(path, body + onnx.data(11, onnx.value("x", [2, 6])) + onnx.data(12, out))


def ranges(log):
    """(depth, name) of each range in the order in which they begin."""
    depth, found = 0, []
    for line in open(log) if os.path.exists(log) else []:
        if line.startswith("push "):
            found.append((depth, line[5:-1]))
            depth += 1
        else:
            depth -= 1
        check(depth >= 0, "a range ends that nobody began")
    check(depth == 0, "a range has no end")
    return found


def traced(log, *words):
    if os.path.exists(log):
        os.remove(log)
    os.environ.update(SINTER_LIBNVTX=LIBRARY, FAKE_NVTX_LOG=log)
    done = sinter(*words)
    del os.environ["SINTER_LIBNVTX"]
    return done


with tempfile.TemporaryDirectory() as work:
    model, engine, log = f"{work}/m.onnx", f"{work}/m.sinter", f"{work}/log"
    for turn in range(ROUNDS):
        random_model(model)
        check(sinter("build", model, "-o", engine, "--tune", "off")[0] == 0, turn, "build")
        steps = json.loads(sinter("inspect", engine, "--json")[1])["engine"]["profiles"][0]["steps"]
        status, _, err = traced(log, "run", engine)
        found = ranges(log)
        check(status == 0 and found[0] == (0, "sinter run"), turn, err, found)
        names = [name for depth, name in found if depth == 1]
        check(names == [s["name"] for s in steps], turn, names, [s["name"] for s in steps])
        check(all(depth < 2 for depth, _ in found), turn, "deeper than runs and steps")
        check(traced(log, "bench", engine, "--duration", "0", "--warmup", "0", "--iterations", "5")[0] == 0, turn, "bench")
        runs = [i for i, (depth, _) in enumerate(ranges(log)) if depth == 0]
        check(len(runs) >= 5, turn, "runs", len(runs))
    os.remove(log)
    check(sinter("run", engine)[0] == 0 and not os.path.exists(log), "ranges without the variable")
    os.environ["SINTER_LIBNVTX"] = ""
    os.environ["NVTX_INJECTION64_PATH"] = "none"
    check(sinter("run", engine)[0] == 0 and not os.path.exists(log), "an empty variable")
    os.environ["SINTER_LIBNVTX"] = f"{work}/none.so"
    status, _, err = sinter("run", engine)
    check(status == 1 and "SINTER_LIBNVTX" in err and "none.so" in err, err)
sys.exit(1 if failures else 0)
