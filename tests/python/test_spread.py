# SPDX-License-Identifier: Apache-2.0
"""`sinter.Spread`: batches of every size over several engines give what one run of one engine gives, in order, with nothing dropped;
inputs that have no batch, engines of a fixed batch, failures of one part, what is refused."""
import random
import threading

import rig  # noqa: I001
import numpy as np
import sinter

rng, choose = np.random.default_rng(4), random.Random(4)


def named_as(name, tensor):
    tensor.name = name
    return tensor


def network(batch, most, extra=False):
    """y = relu(x w) for each row, s = the sum of all weights that `extra` gives; the plan, and the function in NumPy."""
    w = rng.standard_normal((5, 3)).astype("f4")
    net = sinter.Network()
    named = [batch if batch == "N" else None, None]
    x = net.add_input("x", "f32", (-1 if batch == "N" else batch, 5), named)
    y = net.add("activation", net.add("matrix_multiply", x, net.add("constant", shape=w.shape, weights=w).output).output, type="relu").output
    if extra:
        bias = net.add_input("bias", "f32", (1, 3))
        y = net.add("elementwise", y, bias, op="sum").output
        net.mark_output(named_as("same", net.add("activation", bias, type="relu").output))
    net.mark_output(named_as("y", y))
    plan = sinter.build(net, tune="off", threads=1, **({"profiles": {"N": (1, min(2, most), most)}} if batch == "N" else {}))
    return plan, lambda x, bias=0: np.maximum(x @ w, 0) + bias


def test_batches_of_every_size():
    for turn in range(12):
        most, count = choose.choice([1, 2, 5, 16]), choose.randint(1, 4)
        plan, function = network("N", most)
        with sinter.Spread([plan.load(threads=1) for _ in range(count)]) as many:
            for size in [1, count, most, most * count, most * count + 1, choose.randint(1, 60)]:
                x = rng.standard_normal((size, 5)).astype("f4")
                got = many.run({"x": x})
                assert list(got) == ["y"] and got["y"].shape == (size, 3), (turn, size)
                assert np.allclose(got["y"], function(x), atol=1e-5), (turn, size, most, count)
                assert np.array_equal(many.run(x=x)["y"], got["y"])
            parts = many.parts(most * count + 1)
            assert max(parts) <= most and max(parts) - min(parts) <= 1 and sum(parts) == most * count + 1 and len(parts) >= count


def test_what_has_no_batch_is_given_to_all():
    plan, function = network("N", 4, extra=True)
    with sinter.Spread([plan.load(threads=1) for _ in range(3)]) as many:
        x, bias = rng.standard_normal((10, 5)).astype("f4"), rng.standard_normal((1, 3)).astype("f4")
        got = many.run({"x": x, "bias": bias})
        assert np.allclose(got["y"], function(x, bias), atol=1e-5) and np.allclose(got["same"], np.maximum(bias, 0))


def test_fixed_batches():
    """An engine of 4 rows takes 10: the last part is filled up, and what was added is cut off."""
    plan, function = network(4, 4)
    with sinter.Spread([plan.load(threads=1) for _ in range(2)]) as many:
        for size in (1, 3, 4, 5, 10):
            x = rng.standard_normal((size, 5)).astype("f4")
            assert np.allclose(many.run(x=x)["y"], function(x), atol=1e-5) and many.run(x=x)["y"].shape == (size, 3)


def test_threads_share_it():
    plan, function = network("N", 8)
    failures = []
    with sinter.Spread([plan.load(threads=1) for _ in range(2)]) as many:
        def work(seed):
            own = np.random.default_rng(seed)
            for _ in range(20):
                x = own.standard_normal((int(own.integers(1, 30)), 5)).astype("f4")
                if not np.allclose(many.run(x=x)["y"], function(x), atol=1e-5):
                    failures.append(seed)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not failures


def test_one_plan_on_several_devices():
    plan, function = network("N", 8)
    with sinter.Spread(plan, devices=["cpu", "cpu"], threads=1) as many:
        x = rng.standard_normal((9, 5)).astype("f4")
        assert len(many.engines) == 2 and np.allclose(many.run(x=x)["y"], function(x), atol=1e-5)
    path = rig.FOLDER / "many.sinter"
    plan.save(path)
    with sinter.Spread(path, devices=["cpu"]) as many:
        assert np.allclose(many.run(x=x)["y"], function(x), atol=1e-5)


def test_refusals():
    plan, _ = network("N", 4)
    other, _ = network("N", 4, extra=True)
    x = np.ones((3, 5), "f4")
    rig.raises(ValueError, sinter.Spread, [], says="no engine")
    rig.raises(ValueError, sinter.Spread, [plan.load(), other.load()], says="differ")
    rig.raises(ValueError, sinter.Spread, plan, says="devices")
    rig.raises(sinter.Error, sinter.Spread, plan, devices=["cpu", "cuda:77"])
    with sinter.Spread([plan.load(), plan.load()]) as many:
        rig.raises(ValueError, many.run, {}, says="'x'")
        rig.raises(ValueError, many.run, {"x": x, "z": x}, says="'z'")
        rig.raises(ValueError, many.run, {"x": x[:0]}, says="0 rows")
        rig.raises(sinter.InvalidArgument, many.run, {"x": np.ones((3, 4), "f4")}, says="x")
        assert many.run(x=x)["y"].shape == (3, 3)               # a failure leaves it usable
    rig.raises(ValueError, many.run, x=x, says="closed")
    with sinter.Spread([other.load()]) as many:
        rig.raises(ValueError, many.run, {"x": x}, says="'bias'")
    least = sinter.build(two_or_more(), tune="off", profiles={"x": ((2, 5), (4, 5), (4, 5)), "z": ((2, 5), (4, 5), (4, 5))})
    with sinter.Spread([least.load(), least.load()]) as many:
        assert many.parts(6) == [3, 3] and many.parts(3) == [3]
        rig.raises(ValueError, many.run, {"x": x[:1], "z": x[:1]}, says="at least 2")
        rig.raises(ValueError, many.run, {"x": x, "z": x[:2]}, says="2 rows")


def two_or_more():
    net = sinter.Network()
    x, z = (net.add_input(n, "f32", (-1, 5), ("N", None)) for n in "xz")
    net.mark_output(named_as("y", net.add("elementwise", x, z, op="sum").output))
    return net


if __name__ == "__main__":
    rig.main(__name__)
