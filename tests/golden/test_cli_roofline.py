#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`sinter bench --roofline`: the counts of random chains of products, and sums that are those of the steps, in text, in
JSON and on the page."""
import json
import os
import random
import re
import sys
import tempfile

import onnx_bytes as onnx
from cli_rig import check, failures, sinter


def chain(path, widths, rows):
    graph, value = b"", "x"
    for i, (k, n) in enumerate(zip(widths, widths[1:])):
        graph += onnx.tensor(f"w{i}", onnx.FLOAT, [k, n], onnx.numbers(k * n)) + onnx.node("MatMul", [value, f"w{i}"], f"y{i}")
        value = f"y{i}"
    graph += onnx.data(11, onnx.value("x", [rows, widths[0]])) + onnx.data(12, onnx.value(value, [rows, widths[-1]]))
    onnx.write_model(path, graph)


def near(a, b):
    return abs(a - b) <= 1e-7 * max(abs(a), abs(b))


def main():
    folder = tempfile.mkdtemp()
    model, page = os.path.join(folder, "chain.onnx"), os.path.join(folder, "page.html")
    for seed in range(4):
        draw = random.Random(seed)
        rows, widths = draw.randint(1, 60), [draw.randint(1, 90) for _ in range(draw.randint(2, 6))]
        chain(model, widths, rows)
        status, out, error = sinter("bench", model, "--roofline", "--json", "--duration", "0.01", "--threads", 1 + seed % 2)
        check(status == 0, error)
        if status:
            continue
        roof = json.loads(out)["roofline"]
        steps = roof["steps"]
        wanted = sum(2 * rows * k * n for k, n in zip(widths, widths[1:]))
        check(sum(step["operations"] for step in steps) == wanted, widths, rows, steps)
        check(sum(step["weight_bytes"] for step in steps) == sum(4 * k * n for k, n in zip(widths, widths[1:])), steps)
        check(near(sum(step["us"] for step in steps), roof["us"]), roof)
        check(near(sum(step["floor_us"] for step in steps), roof["floor_us"]), roof)
        check(near(roof["floor_us"] / roof["us"], roof["share"]), roof)
        for step in steps:
            check(step["floor_us"] > 0 and near(step["share"], step["floor_us"] / step["us"]), step)
            check(step["bound"] in ("compute", "memory"), step)
    status, out, error = sinter("bench", model, "--roofline", "--duration", "0.01", "-o", page)
    check(status == 0, error)
    table = out[out.index("rates:"):].splitlines()
    shown = [float(line.split()[0]) for line in table[2:-1]]
    total = re.fullmatch(r"all steps: ([0-9.]+) us, floor ([0-9.]+) us, share ([0-9.]+) %", table[-1])
    check(total and abs(sum(shown) - float(total[1])) <= 0.06 * len(shown), out)
    check(total and f"All steps take {total[1]} us" in open(page).read(), out)
    check(sinter("bench", model, "-o", page)[0] == 2, "a page without --roofline")
    print("failed" if failures else "passed")
    return 1 if failures else 0


sys.exit(main())
