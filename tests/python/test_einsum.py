# SPDX-License-Identifier: Apache-2.0
"""Random einsum equations of one to three operands, with ellipses, repeated labels and sizes of 1, against NumPy."""
import os
import random

import numpy as np
import rig
import sinter
from onnx_bytes import data, num
from random_models import model, node, value

COUNT = 3000 if os.environ.get("SINTER_TEST_SCALE") == "full" else 150


def text(name, s):
    """An attribute that is a string."""
    return data(5, data(1, name) + data(4, s) + num(20, 3))


def equation(r):
    """Terms, their sizes, and the equation; NumPy decides whether it is one."""
    letters, sizes = "abcdefXY", {}
    dots = [r.choice((1, 2, 3)) for _ in range(r.randint(0, 2))]
    terms, shapes = [], []
    for _ in range(r.choice((1, 2, 2, 2, 3))):
        labels = r.sample(letters[:r.choice((3, 5, 8))], r.randint(0, 3))
        if labels and r.random() < 0.05:
            labels.append(labels[0])
        shape = [sizes.setdefault(k, r.randint(1, 5)) for k in labels]
        term = "".join(labels)
        if dots and r.random() < 0.7:
            at, some = r.randint(0, len(labels)), dots[r.randint(0, len(dots)):] if r.random() < 0.5 else dots
            term = term[:at] + "..." + term[at:]
            shape[at:at] = [1 if r.random() < 0.2 else d for d in some]
        terms.append(term)
        shapes.append(shape)
    result = ",".join(terms)
    if r.random() < 0.85:
        used = sorted(set(result) - set(",."))
        labels = "".join(r.sample(used, r.randint(0, len(used))))
        at = r.randint(0, len(labels))
        result += "->" + labels[:at] + ("..." if "..." in result else "") + labels[at:]
    return result, shapes


def test_einsum():
    tried = 0
    for seed in range(COUNT):
        r = random.Random(seed)
        written, shapes = equation(r)
        arrays = {f"x{i}": np.random.default_rng((seed, i)).standard_normal(s).astype("f4") for i, s in enumerate(shapes)}
        try:
            want = np.einsum(written, *[a.astype("f8") for a in arrays.values()])
        except ValueError:
            continue
        tried += 1
        graph = data(2, "einsum") + node("Einsum", list(arrays), ["y"], text("equation", written)) + b"".join(
            data(11, value(n, "f32", a.shape)) for n, a in arrays.items()) + data(12, data(1, "y") + data(2, data(1, num(1, 1))))
        got = sinter.build(model(graph), tune="off").load().context().run(arrays)["y"]
        assert got.shape == want.shape and np.allclose(got, want, rtol=1e-4, atol=1e-4), (seed, written, shapes)
    assert tried > COUNT / 2


rig.main(__name__)
