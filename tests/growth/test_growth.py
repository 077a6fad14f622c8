#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Work grows with the graph, not with its square: instructions and allocated bytes of every phase, at 2,000 and 8,000
nodes of every shape of bench/growth_models.py. Work is counted, so a busy machine changes nothing. Where the system
does not count instructions, the bytes alone are compared."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(os.environ["SINTER_SOURCE_DIR"]) / "bench"))
from growth_models import SHAPES, Model  # noqa: E402

PROGRAM = pathlib.Path(os.environ["SINTER_BIN"]).parent / "tests" / "growth_check_phases"
FEW, MANY = 2000, 8000
# Four times the nodes are at most this many times the work; 16 would be quadratic. What a phase costs however small
# the graph is, is in both.
RATIO = 6.5
FLOOR = {"bytes": 24 << 20, "instructions": 4_000_000}


def work(folder, shape, count):
    model = Model()
    SHAPES[shape](model, count)
    path = folder / "model.onnx"
    model.write(path)
    done = subprocess.run([PROGRAM, path, folder / "engine"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{shape}, {count} nodes: {done.stderr.strip() or done.returncode}")
    lines = [line.split() for line in done.stdout.splitlines()]
    return {phase: {"bytes": int(size), "instructions": int(steps)} for phase, _, _, size, steps in lines}


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES:
            few, many = (work(pathlib.Path(folder), shape, count) for count in (FEW, MANY))
            for phase in many:
                for unit, floor in FLOOR.items():
                    limit = RATIO * max(few[phase][unit], floor)
                    if many[phase][unit] > limit:
                        bad += 1
                        print(f"{shape}: {phase} takes {few[phase][unit]} {unit} at {FEW} nodes and "
                              f"{many[phase][unit]} at {MANY}, at most {limit:.0f} were expected")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
