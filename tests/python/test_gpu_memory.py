# SPDX-License-Identifier: Apache-2.0
"""Who holds a GPU's memory, on random chains of layers: weights streamed within budgets, contexts with memory of three kinds,
runs that wait and runs that do not. Results must be those, to the bit, of the same engine with all weights on the device.

On the GPU that SINTER_TEST_DEVICE names; else on kernels that a CPU runs. SINTER_TEST_SCALE=full: more and larger chains."""
import os

import rig

DEVICE = os.environ.get("SINTER_TEST_DEVICE")
if not DEVICE:
    EMULATED = rig.LIBRARY.parent / "tests" / "libsinter_emulated_cuda.so"
    os.environ.update(SINTER_LIBCUDA=str(EMULATED), SINTER_LIBNVRTC=str(EMULATED), SINTER_KERNEL_CACHE="", SINTER_FAKE_SM="90",
                      SINTER_FAKE_DEVICES="1")
FULL = os.environ.get("SINTER_TEST_SCALE") == "full"
CHAINS, WIDTHS = (40, (512, 1024, 2048, 3000)) if FULL else (3, (16, 40, 64, 96))

import numpy as np  # noqa: E402
import sinter  # noqa: E402
from onnx_bytes import data  # noqa: E402
from random_models import initializer, model, node, value  # noqa: E402


def chain(rng):
    """A model of products with weights of many sizes, and its width."""
    widths = [int(w) for w in rng.choice(WIDTHS, int(rng.integers(3, 9)))]
    parts, last = [], "x"
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        weight = rng.standard_normal((a, b)).astype("f4") / np.float32(np.sqrt(a))
        parts.append(initializer(f"w{i}", weight) + initializer(f"b{i}", rng.standard_normal(b).astype("f4")))
        parts.append(node("MatMul", [last, f"w{i}"], [f"m{i}"]) + node("Add", [f"m{i}", f"b{i}"], [f"a{i}"]))
        parts.append(node("Tanh", [f"a{i}"], [f"y{i}"]))
        last = f"y{i}"
    graph = data(2, "g") + data(11, value("x", "f32", ["N", widths[0]])) + b"".join(parts) + data(12, value(last, "f32", ["N", widths[-1]]))
    return model(graph), widths[0], last


def run_all(rng, made, inputs, wanted, name):
    """Contexts of each kind, each with every input, in a random order."""
    for kind in rng.permutation(["profile", "static", "user"]):
        with made.context(memory=str(kind)) as context:
            lent = None
            for i in rng.permutation(len(inputs)):
                if kind == "user":
                    context.set_input_shape("x", inputs[i].shape)
                    lent = made.empty((max(int(context.memory_size()), 1),), "u8")
                    context.set_memory(lent)
                if rng.integers(2):
                    found = context.run(x=inputs[i])[name]
                else:
                    context.start(x=inputs[i])
                    context.wait()
                    found = context.output(name)
                assert np.array_equal(np.array(found), wanted[i]), (kind, i, inputs[i].shape)
            del lent


def one_chain(seed):
    rng = np.random.default_rng(seed)
    bytes_of, width, name = chain(rng)
    made = sinter.build(bytes_of, device=DEVICE or "cuda", profiles={"N": (1, 4, 40)}, tune="off").load()
    inputs = [rng.standard_normal((int(rng.integers(1, 41)), width)).astype("f4") for _ in range(3)]
    with made.context() as context:
        wanted = [np.array(context.run(x=x)[name]) for x in inputs]
    all_of = made.describe()["streamable_size"]
    assert all_of > 0
    streamed = []
    for budget in (1, int(rng.integers(1, all_of)), int(all_of) // 2, int(all_of), made.automatic_weight_budget(), 0):
        try:
            made.set_weight_budget(budget)
        except sinter.Error as e:  # below the smallest that a step needs: said, with the size that would do
            assert "budget" in str(e), e
            continue
        streamed.append(made.describe()["streamed_size"])
        run_all(rng, made, inputs, wanted, name)
    assert max(streamed) > 0, "no budget made the engine stream"
    assert streamed[-1] == 0, "without a budget all weights are on the device"


def test_chains():
    for seed in range(CHAINS):
        one_chain(seed)


# The emulated driver starts a compiler, which sanitizers that were loaded first do not bear.
if DEVICE or not os.environ.get("SINTER_TEST_PRELOADED"):
    rig.main(__name__)
