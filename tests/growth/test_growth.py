#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Work grows with the graph, not with its square: allocated bytes and instructions of every phase, at 2,000 and 8,000
nodes of every shape of bench/growth_models.py. Where the system does not count instructions, processor time stands in
for them. Other programs can make processor time longer, never shorter: a shape that seems too slow is measured again,
and the least counts."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(os.environ["SINTER_SOURCE_DIR"]) / "bench"))
from growth_models import SHAPES, Model  # noqa: E402

PROGRAM = pathlib.Path(os.environ["SINTER_BIN"]).parent / "tests" / "growth_check_phases"
FEW, MANY = 2000, 8000
# Four times the nodes are at most `ratio` times the work; 16 would be quadratic. Below `floor` a ratio says nothing: a
# phase has a cost however small the graph is, arrays double, and blocks of up to 4 MB are allocated whole.
LIMITS = {"bytes": (6, 4 << 20), "instructions": (6.5, 4_000_000), "seconds": (9, 0.04)}
TRIES = 4


def work(folder, shape, count):
    model = Model()
    SHAPES[shape](model, count)
    path = folder / "model.onnx"
    model.write(path)
    done = subprocess.run([PROGRAM, path, folder / "engine"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{shape}, {count} nodes: {done.stderr.strip() or done.returncode}")
    phases = {}
    for phase, seconds, _, size, steps in (line.split() for line in done.stdout.splitlines()):
        phases[phase] = {"bytes": int(size)} | ({"instructions": int(steps)} if int(steps) else
                                                {"seconds": float(seconds)})
    return phases


def least(one, other):
    return {phase: {unit: min(value, other[phase][unit]) for unit, value in units.items()}
            for phase, units in one.items()}


def too_much(few, many):
    return [f"{phase} takes {few[phase][unit]} {unit} at {FEW} nodes and {value} at {MANY}, at most "
            f"{ratio * max(few[phase][unit], floor):.3g} were expected"
            for phase, units in many.items() for unit, value in units.items()
            for ratio, floor in [LIMITS[unit]] if value > ratio * max(few[phase][unit], floor)]


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for shape in SHAPES:
            few, many = work(folder, shape, FEW), work(folder, shape, MANY)
            for _ in range(TRIES - 1):
                if not too_much(few, many):
                    break
                few, many = least(few, work(folder, shape, FEW)), least(many, work(folder, shape, MANY))
            for line in too_much(few, many):
                bad += 1
                print(f"{shape}: {line}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
