#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Archives of arrays (.npz) wherever the command reads tensors: random arrays as NumPy and zipfile write them, at every level of
compression, as inputs, as saved outputs of a comparison, as data of a calibration; and what is refused."""
import io
import os
import random
import sys
import tempfile
import zipfile

import onnx_bytes as onnx
from cli_rig import check, failures, sinter

try:
    import numpy as np
except ImportError:
    sys.exit(77)

rng = np.random.default_rng(int(os.environ.get("SINTER_TEST_SEED", 1)))
random.seed(int(os.environ.get("SINTER_TEST_SEED", 1)))
folder = tempfile.mkdtemp()


def write(path, arrays):
    """In one of the forms that there are."""
    form = random.choice(["savez", "compressed", "zipfile", "comment"])
    if form == "savez":
        np.savez(path, **arrays)
    elif form == "compressed":
        np.savez_compressed(path, **arrays)
    else:
        with zipfile.ZipFile(path, "w", random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]), compresslevel=random.randint(0, 9)) as z:
            for name, array in arrays.items():
                data = io.BytesIO()
                np.lib.format.write_array(data, array, version=random.choice([(1, 0), (2, 0), (3, 0)]))
                z.writestr(zipfile.ZipInfo(name + ".npy"), data.getvalue(), random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
            if form == "comment":
                z.comment = os.urandom(random.randint(1, 300))
    return form


def model(path, inputs):
    """y_i = x_i + x_i for each input; inputs: name -> (ONNX type, dims)."""
    graph = b""
    for i, (name, (kind, dims)) in enumerate(inputs.items()):
        sizes = b"".join(onnx.data(1, onnx.num(1, d) if isinstance(d, int) else onnx.data(2, d)) for d in dims)
        typed = onnx.data(2, onnx.data(1, onnx.num(1, kind) + onnx.data(2, sizes)))
        graph += onnx.data(1, onnx.data(1, name) + onnx.data(1, name) + onnx.data(2, f"y{i}") + onnx.data(4, "Add"))
        graph += onnx.data(11, onnx.data(1, name) + typed) + onnx.data(12, onnx.data(1, f"y{i}") + typed)
    with open(path, "wb") as f:
        f.write(onnx.num(1, 9) + onnx.data(7, graph) + onnx.data(8, onnx.num(2, 19)))


def random_array(kind, shape):
    """Numbers of every kind of redundancy: noise, few values, runs."""
    size = int(np.prod(shape))
    x = rng.standard_normal(size) if random.random() < 0.4 else rng.integers(0, random.choice([1, 2, 50]), size)
    if random.random() < 0.3:
        x = np.sort(x)
    return np.asarray(x, {1: "f4", 7: "i8", 6: "i4"}[kind]).reshape(shape)


def inputs_and_saved_outputs():
    forms = set()
    for turn in range(25):
        kinds = {f"in{i}/{random.choice('ab')}": (random.choice([1, 6, 7]), [random.choice([1, 3, 40, 700]) for _ in range(random.randint(1, 3))])
                 for i in range(random.randint(1, 4))}
        if max(int(np.prod(d)) for _, d in kinds.values()) > 500000:
            continue
        path, given, saved, out = f"{folder}/m.onnx", f"{folder}/given.npz", f"{folder}/saved.npz", f"{folder}/out{turn}"
        model(path, kinds)
        arrays = {n: random_array(*k) for n, k in kinds.items()}
        forms.add(write(given, arrays))
        status, _, err = sinter("run", path, "--input", given, "--output-dir", out, "--output-names", "--tune", "off")
        check(status == 0, "run", turn, err)
        if status:
            continue
        results = {f"y{i}": a + a for i, a in enumerate(arrays.values())}
        for name, want in results.items():
            check(np.array_equal(np.load(f"{out}/{name}.npy"), want), "result", turn, name)
        names = list(results) if random.random() < 0.5 else [f"arr_{i}" for i in range(len(results))]
        write(saved, dict(zip(names, results.values())))
        status, text, err = sinter("compare", path, saved, "--input", given, "--tune", "off")
        check(status == 0 and "y0" in text, "compare", turn, text, err)
        wrong = {n: v + (np.ones((), v.dtype) if n == names[-1] else np.zeros((), v.dtype)) for n, v in zip(names, results.values())}
        write(saved, wrong)
        check(sinter("compare", path, saved, "--input", given, "--tune", "off")[0] == 1, "wrong results pass", turn)
        # One array of an archive by the name of the input.
        words = [w for n in arrays for w in ("--input", f"{n}={given}")]
        check(sinter("compare", path, f"{out}", *words, "--tune", "off")[0] == 0, "NAME=FILE.npz", turn)
    check(len(forms) == 4, "forms", forms)


def calibration():
    """The first axis counts samples: the ranges are those of single files."""
    path, given, many = f"{folder}/c.onnx", f"{folder}/c.npz", f"{folder}/many"
    os.makedirs(many, exist_ok=True)
    for dims, rows in (([2, 5], 2), (["N", 5], 1)):
        model(path, {"x": (1, dims)})
        x = rng.standard_normal((6, 5)).astype("f4")
        write(given, {"x": x})
        for f in os.listdir(many):
            os.unlink(f"{many}/{f}")
        for i in range(6 // rows):
            np.save(f"{many}/{i}.npy", x[i * rows:(i + 1) * rows])
        first, second = f"{folder}/1.cache", f"{folder}/2.cache"
        done = sinter("calibrate", path, "--data", given, "-o", first), sinter("calibrate", path, "--data", f"x={many}", "-o", second)
        check(done[0][0] == done[1][0] == 0 and open(first).read() == open(second).read(), "calibration", rows, done)
        check(sinter("calibrate", path, "--data", f"x={given}", "-o", first)[0] == 0 and open(first).read() == open(second).read(), "x=FILE.npz")
    model(path, {"x": (1, [4, 5])})
    status, _, err = sinter("calibrate", path, "--data", given, "-o", first)
    check(status and "6 rows" in err and "4" in err, "rows that are no batches", err)
    write(given, {"z": x})
    status, _, err = sinter("calibrate", path, "--data", given, "-o", first)
    check(status and "no input 'z'" in err, "a name that is no input", err)


def refused():
    path, given = f"{folder}/r.onnx", f"{folder}/r.npz"
    model(path, {"x": (1, [2, 3])})
    x = np.ones((2, 3), "f4")

    def says(text, *words):
        status, _, err = sinter("run", path, "--tune", "off", *(words or ("--input", given)))
        check(status and text in err, text, err)
    with zipfile.ZipFile(given, "w") as z:
        z.writestr("readme.txt", "x")
    says("'readme.txt' in the archive is no .npy file")
    with zipfile.ZipFile(given, "w", zipfile.ZIP_BZIP2) as z:
        z.writestr("x.npy", b"abc" * 100)
    says("compressed by method 12")
    np.savez(given, y=x)
    says("'y'")
    np.savez(given, x=x, y=x)
    says("2 arrays", "--input", f"z={given}")
    np.savez(given, x=np.asfortranarray(x.astype("f4")))
    says("Fortran")
    np.savez(given, x=x)
    whole = open(given, "rb").read()
    at = whole.index(x.tobytes())
    open(given, "wb").write(whole[:at] + b"\1" + whole[at + 1:])
    says("checksum")
    open(given, "wb").write(whole[:-5])
    says("no directory")
    open(given, "wb").write(b"")
    says("no .npz file")
    # A million of zeros of which little is stored: more than the limit.
    np.savez_compressed(given, x=np.zeros(1 << 20, "f4"))
    says("memory_max", "--input", given, "--limit", "memory_max=1000000")


inputs_and_saved_outputs()
calibration()
refused()
sys.exit(bool(failures))
