#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--inputIOFormats and --outputIOFormats with channels behind the other axes, or in groups: random shapes, types and formats; the bytes on
the caller's side are the format's, filled up with zeros, and free axes have the sizes that are said of the tensor's shape. The numbers of
--exportOutput and --loadRefOutputs are the model's tensor. 8 bits have the scales of a calibration cache, or trtexec's own."""
import glob
import itertools
import json
import os
import pathlib
import random
import struct
import sys
import tempfile

from exec_rig import QUICK, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
from onnx_bytes import data, node, tensor, value, write_model  # noqa: E402

COUNT = 60 if os.environ.get("SINTER_TEST_SCALE") == "full" else 12
FORMATS = {"hwc": (1, 2), "hwc8": (8, 2), "hwc16": (16, 2), "dhwc": (1, 3), "dhwc8": (8, 3), "chw2": (2, 2), "chw4": (4, 2), "chw16": (16, 2),
           "chw32": (32, 2), "cdhw32": (32, 3), "chw": (0, 0)}
PACK = {"fp32": ("f", "Float"), "fp16": ("e", "Half"), "int8": ("b", "Int8")}
CACHE = "TRT-101600-EntropyCalibration2\nx: 3f000000\ny: 3e800000\n"        # scales of 0.5 and 0.25
failures = 0


def stored(format, shape, numbers):
    """The sizes in memory, and the numbers as they lie there."""
    lanes, behind = FORMATS[format]
    if not lanes:
        return list(shape), list(numbers)
    channel = len(shape) - behind - 1
    is_one = all(d == 1 for d in shape[channel + 1:])
    if is_one and shape[channel] % lanes == 0 or lanes == 1 and shape[channel] == 1:
        return list(shape), list(numbers)                   # row-major memory is the same
    groups = -(-shape[channel] // lanes)
    front, back = shape[:channel], shape[channel + 1:]
    sizes = [*front, *back, groups * lanes] if "hwc" in format else [*front, groups, *back, lanes]
    strides = [1]
    for d in reversed(shape[1:]):
        strides.insert(0, strides[0] * d)
    found = []
    for at in itertools.product(*map(range, sizes)):
        c = at[-1] if "hwc" in format else at[channel] * lanes + at[-1]
        rest = at[:channel] + (c,) + (at[channel:-1] if "hwc" in format else at[channel + 1:-1])
        found.append(numbers[sum(i * s for i, s in zip(rest, strides))] if c < shape[channel] else 0)
    return sizes, found


def text(shape):
    return "x".join(map(str, shape))


def check(seed, folder):
    global failures
    choose = random.Random(seed)
    formats = [choose.choice(list(FORMATS)) for _ in range(2)]
    rank = max(FORMATS[f][1] for f in formats) + choose.choice([1, 2, 2])
    behind = {FORMATS[f][1] for f in formats if FORMATS[f][1]}
    shape = [choose.randint(1, 4) for _ in range(rank)]
    for b in behind:
        shape[rank - b - 1] = choose.choice([1, 3, 4, 5, 17, 32])
    free = rank > max([*behind, 0]) + 1 and choose.random() < 0.5       # axis 0
    dims = ["N", *shape[1:]] if free else shape
    types = [choose.choice(list(PACK)) for _ in range(2)]
    graph = data(2, "g") + tensor("one", 1, [], [1.0]) + data(11, value("x", dims)) + data(12, value("y", dims)) + node("Add", ["x", "one"], "y")
    write_model(os.path.join(folder, "m.onnx"), graph)
    total = 1
    for d in shape:
        total *= d
    numbers = [choose.randint(-40, 40) for _ in range(total)]
    sizes, lying = stored(formats[0], shape, numbers)
    with open(os.path.join(folder, "x.raw"), "wb") as file:
        file.write(struct.pack(f"<{len(lying)}{PACK[types[0]][0]}", *lying))
    has_cache = types != ["int8", "int8"] or choose.random() < 0.5
    steps = [1 if t != "int8" else s if has_cache else r / 127 for t, s, r in zip(types, (0.5, 0.25), (2, 4))]
    results = [n * steps[0] + 1 for n in numbers]
    if types[1] == "int8":
        results = [max(-128, min(127, round(n / steps[1]))) for n in results]
    with open(os.path.join(folder, "cache"), "w") as file:
        file.write(CACHE)
    code = PACK[types[1]][0]
    with open(os.path.join(folder, "want.raw"), "wb") as file:
        file.write(struct.pack(f"<{total}{code}", *results))
    ask = ["--onnx=m.onnx", f"--inputIOFormats={types[0]}:{formats[0]}", f"--outputIOFormats={types[1]}:{formats[1]}", "--saveEngine=e.trt", "--int8", *["--calib=cache"] * has_cache]
    shapes = [f"--shapes=x:{text(shape)}"] if free else []
    read = [*QUICK, "--loadInputs=x:x.raw", "--dumpRawBindingsToFile", "--exportOutput=o.json", "--loadRefOutputs=y:want.raw", "--accuracyThreshold=0", *shapes]
    wide, wanted = stored(formats[1], shape, results)
    for words in ([*ask, *read], ["--loadEngine=e.trt", *read]):
        for old in glob.glob(os.path.join(folder, "*.raw")):
            if os.path.basename(old) not in ("x.raw", "want.raw"):
                os.unlink(old)
        done = run(*words, cwd=folder)
        path = os.path.join(folder, f"y.output.{'.'.join(map(str, wide))}.{PACK[types[1]][1]}.raw")
        found = pathlib.Path(path).read_bytes() if os.path.exists(path) else b""
        is_right = done.status == 0 and found == struct.pack(f"<{len(wanted)}{code}", *wanted) and "[format]" not in done.out
        if is_right:
            shown = json.loads(pathlib.Path(folder, "o.json").read_text())[0]
            is_right = shown["dimensions"] == text(shape) and shown["values"] == results
        if not is_right or f"Input binding for x with dimensions {text(sizes)} is" not in done.out + done.err:
            failures += 1
            print("FAIL", seed, words, shape, os.listdir(folder), done.err[-500:], done.out[-800:])


for number in range(COUNT):
    with tempfile.TemporaryDirectory() as folder_:
        check(number, folder_)
print("failed" if failures else "ok")
sys.exit(failures != 0)
