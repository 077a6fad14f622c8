# SPDX-License-Identifier: Apache-2.0
"""Random models through the package, equal in every bit to what the command gives; arrays of all kinds go in and out."""
import os

import numpy as np
import rig
import sinter
from random_models import TYPES, RandomModel, widened

COUNT = 200 if os.environ.get("SINTER_TEST_SCALE") == "full" else 24


def forms(array, dtype):
    """The same input in the ways in which callers may give it."""
    yield array
    yield sinter.Tensor(array, dtype)
    yield np.asfortranarray(array) if array.ndim > 1 else array
    if array.size:
        yield memoryview(array)
        padded = np.zeros(array.shape + (2,), array.dtype)
        padded[..., 0] = array
        yield padded[..., 0]
    if dtype not in ("bf16", "bool") and not dtype.startswith("f8"):
        class OnlyDlpack:
            def __dlpack__(self, stream=None):
                return array.__dlpack__()

            def __dlpack_device__(self):
                return array.__dlpack_device__()
        yield OnlyDlpack()


def check(seed):
    random = RandomModel(seed)
    sizes = {"N": 1 + seed % 4, "M": 2 + seed % 3}
    named = {k: v for k, v in sizes.items() if k in random.has}
    arrays = random.arrays(sizes)
    folder = rig.FOLDER / str(seed)
    folder.mkdir()
    path = folder / "model.onnx"
    path.write_bytes(random.bytes)
    rig.command("run", path, "--output-dir", folder, *random.write_inputs(folder, arrays),
                *[a for k, v in named.items() for a in ("--shape", f"{k}={v}")])
    wanted = [np.load(folder / f"output_{i}.npy") for i in range(len(random.outputs))]

    plan = sinter.build(random.bytes if seed % 2 else path, profiles=[named] if named else None, tune="off")
    engine = sinter.load(bytes(plan) if seed % 3 else plan)
    assert [i.name for i in engine.inputs] == list(random.inputs)
    assert [sinter.Dtype[t.upper()] for t, _ in random.inputs.values()] == [i.dtype for i in engine.inputs]
    with engine.context() as context:
        found = context.run(arrays)
        for (name, dtype), want in zip(random.outputs.items(), wanted):
            got = found[name]
            assert got.dtype == np.dtype(TYPES[dtype][1]), (name, got.dtype)
            assert np.array_equal(widened(got, dtype), want), f"{name} of seed {seed}"
        # Any form of input gives the same; results go to memory of the caller's.
        for name, array in arrays.items():
            for form in forms(array, random.inputs[name][0]):
                again = context.run({name: form})
                assert all(again[k].tobytes() == found[k].tobytes() for k in found)
        given = {k: np.zeros_like(v) for k, v in found.items()}
        again = context.run(arrays, given)
        assert all(again[k] is given[k] and given[k].tobytes() == found[k].tobytes() for k in found)
        again = context.run_async(arrays, {}).result()
        assert all(again[k] is not given[k] and again[k].tobytes() == found[k].tobytes() for k in found)
        context.start(arrays)
        again = context.wait()
        assert all(again[k].tobytes() == found[k].tobytes() for k in found)
        # As layers of a network, the model computes the same.
        net = sinter.Network()
        sinter.Parser(net).parse(random.bytes if seed % 3 else path)
        parsed = sinter.build(net, profiles=[named] if named else None, tune="off").load().context().run(arrays)
        assert list(parsed) == list(found) and all(parsed[k].tobytes() == found[k].tobytes() for k in found)
        shared = context.output(next(iter(found)))
        assert shared.tobytes() == found[next(iter(found))].tobytes() and shared.nbytes == len(shared.tobytes())


def test_random_models():
    for seed in range(COUNT):
        try:
            check(seed)
        except Exception:
            print(f"seed {seed}")
            raise


rig.main(__name__)
