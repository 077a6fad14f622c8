# SPDX-License-Identifier: Apache-2.0
"""Plugins written in Python: bodies in NumPy and torch, in models and networks, saved and loaded; and what goes wrong in their
functions."""
import os
import random
import struct

import rig

import numpy as np
import sinter
from onnx_bytes import data, num
from random_models import model, node, value

X = np.random.default_rng(1).standard_normal((3, 8)).astype("f4")


def attribute(name, v):
    """An attribute of a node: int, float, str, or a list of integers."""
    if isinstance(v, list):
        return data(5, data(1, name) + b"".join(num(8, n) for n in v) + num(20, 7))
    form = num(3, v) + num(20, 2) if isinstance(v, int) else data(4, v) + num(20, 3) if isinstance(v, str) else \
        b"\x15" + struct.pack("<f", v) + num(20, 1)
    return data(5, data(1, name) + form)


def one(kind="Twice", outputs=("y",), shape=("N", 8), **attributes):
    """A model of one node."""
    return model(data(2, "g") + data(11, value("x", "f32", list(shape))) +
                 b"".join(data(12, value(o, "f32", [])) for o in outputs) + node(kind, ["x"], list(outputs), b"".join(attribute(*a) for a in attributes.items())))


def run(plan, plugins, **inputs):
    return sinter.load(plan, plugins=plugins).context().run(inputs)


def build(source, plugins, **options):
    return sinter.build(source, plugins=plugins, tune="off", **{"profiles": {"N": (1, 2, 4)}, **options})


def scale(**options):
    def body(inputs, outputs, factor, offset):
        np.multiply(inputs[0], factor, out=outputs[0])
        outputs[0] += sum(offset)
    return sinter.Plugin("Scale", lambda x, factor, offset: x, run=body, fields={"factor": 2.0, "offset": [0]}, **options)


def test_a_model():
    plugins = sinter.Plugins(scale())
    assert plugins.names == [("Scale", "1", "")]
    for attributes, wanted in (({}, X * 2), ({"factor": 3.0}, X * 3), ({"factor": 0.5, "offset": [1, 2]}, X / 2 + 3)):
        plan = build(one("Scale", **attributes), plugins)
        assert np.allclose(run(plan, plugins, x=X)["y"], wanted)
        path = rig.FOLDER / "scale.sinter"
        plan.save(path)
        again = sinter.Plugins(scale())                                      # another process would make its own
        assert np.allclose(run(path, again, x=X[:1])["y"], wanted[:1])
    rig.raises(sinter.Unsupported, sinter.load, plan, says="plugin 'Scale' version '1' in namespace '' is not registered")
    rig.raises(sinter.Unsupported, sinter.build, one("Scale"), says="Scale")
    rig.raises(sinter.InvalidModel, build, one("Scale", speed=3), plugins, says="no field 'speed'")


def test_shapes():
    """Sizes as expressions; several outputs; results by return; a network of calls."""
    def shapes(x, k):
        n, c = x.shape
        assert c.value == 8 and int(c) == 8
        if n.value is None:                                                  # in a run it is a number
            rig.raises(TypeError, int, n, says="not known while building")
        return [("f32", (2 * n + 1, c.ceildiv(k))), (x.dtype, (n.min(c), (c + 1) // 2 - 3 % c)), ("i64", ())]

    def body(inputs, outputs, k):
        x = inputs[0]
        assert [o.shape for o in outputs] == [(2 * len(x) + 1, -(-8 // k)), (min(len(x), 8), 1), ()]
        assert not x.flags.writeable
        first = np.zeros_like(outputs[0])
        first[0] = x.sum()
        return first, x[:, :1], np.array(len(x))

    plugins = sinter.Plugins(sinter.Plugin("Parts", shapes, run=body, fields={"k": int}, outputs=3))
    net = sinter.Network(plugins=plugins)
    x = net.add_input("x", "f32", (-1, 8), ("N", None))
    layer = net.add_plugin("Parts", x, outputs=3, k=3)
    assert [t.shape for t in layer.outputs] == [(-1, 3), (-1, 1), ()]
    assert layer.outputs[0].dim_names[0] == "2*N+1", layer.outputs[0].dim_names
    for tensor in layer.outputs:
        net.mark_output(tensor)
    got = list(run(build(net, plugins), plugins, x=X).values())
    assert got[0].shape == (7, 3) and np.allclose(got[0][0], X.sum()) and not got[0][1:].any()
    assert np.array_equal(got[1], X[:, :1]) and got[2] == 3
    rig.raises(sinter.Error, net.add_plugin("Parts", x, outputs=3).output._describe, says="field 'k' is missing")
    assert np.allclose(run(build(one("Scale"), scale()), scale(), x=X)["y"], 2 * X)        # without a registry of one's own


def test_fields():
    seen = []

    def body(inputs, outputs, **fields):
        seen.append(fields)
        return inputs[0]
    declared = {"i": 7, "f": 0.5, "t": "a b", "raw": b"\0\xff", "ints": (list[int], []), "reals": [1.5, 2.5], "need": str}
    plugins = sinter.Plugins(sinter.Plugin("All", lambda x, **fields: x, run=body, fields=declared))
    run(build(one("All", need="x"), plugins), plugins, x=X)
    assert seen.pop() == {"i": 7, "f": 0.5, "t": "a b", "raw": b"\0\xff", "ints": [], "reals": [1.5, 2.5], "need": "x"}
    net = sinter.Network(plugins=plugins)
    given = {"i": -2**62, "f": 0.1, "t": "\"\\\n", "raw": bytes(range(256)), "ints": list(range(100)), "reals": [1e-300], "need": ""}
    layer = net.add_plugin("All", net.add_input("x", "f32", (3, 8)), **given)
    net.mark_output(layer.output)
    run(build(net, plugins, profiles=None), plugins, x=X)
    assert seen.pop() == given
    # a field of a name that shapes and bodies may ask for
    names = {n: i for i, n in enumerate(("count", "table", "workspace", "workspace_size", "tactic", "state", "stream"), 1)}
    plugins = sinter.Plugins(sinter.Plugin("Words", lambda x, count, table, **more: x, fields=names,
                                           run=lambda inputs, outputs, state, stream, **more: inputs[0] * state + stream))
    assert np.allclose(run(build(one("Words"), plugins), plugins, x=X)["y"], X * 6 + 7)
    for wrong in ({"x": object()}, {"x": {}}, {"x": []}):
        rig.raises(TypeError, sinter.Plugin, "A", lambda x: x, fields=wrong, says="is no field")


def test_state_tactics_workspace():
    made, tactics, log = [], [], []

    class State:
        def __init__(self, shape):
            self.shape = shape
            made.append(1)

        def __del__(self):
            made.pop()

    def body(inputs, outputs, state, tactic, workspace, workspace_size):
        assert state.shape == inputs[0].shape and workspace % 64 == 0 and workspace_size == 4 * 8 * 4
        tactics.append(tactic)
        log.append(len(made))
        return inputs[0] + 1
    plugins = sinter.Plugins(sinter.Plugin(
        "Careful", lambda x: x, run=body, state=lambda inputs, outputs: State(inputs[0].opt), tactics=lambda i, o: [3, 9],
        workspace=lambda i, o: i[0].max[0] * i[0].max[1] * 4))
    plan = sinter.build(one("Careful"), plugins=plugins, tune="full", profiles={"N": (1, 2, 4)})
    assert set(tactics) == {3, 9}, tactics
    engine = sinter.load(plan, plugins=plugins)
    context = engine.context()
    for n in (1, 3, 1, 2):
        assert np.array_equal(context.run(x=X[:n])["y"], X[:n] + 1)
    assert min(log) >= 1
    del context, engine
    assert not made


def test_sizes_of_the_data():
    """Rows above a limit, twice each, and how many there are."""
    def shapes(x, limit, table):
        kept = table.size(1, x.shape[0])
        return [("f32", (2 * kept, x.shape[1])), ("i64", ())]

    def body(inputs, outputs, limit):
        x, y = inputs[0], outputs[0]
        assert y.shape == (2 * len(x), 8)                                    # room for all
        rows = np.repeat(x[x[:, 0] > limit], 2, 0)
        y[:len(rows)] = rows
        outputs[1][...] = len(rows) // 2 if limit < 5 else 10**6
    plugins = sinter.Plugins(sinter.Plugin("Above", shapes, run=body, fields={"limit": 0.0}, outputs=2))
    for limit in (0.0, -9.0, 3.0):
        plan = build(one("Above", ("y", "n"), limit=limit), plugins)
        for n in (1, 2, 3):
            got = run(plan, plugins, x=X[:n])
            wanted = np.repeat(X[:n][X[:n, 0] > limit], 2, 0)
            assert np.array_equal(got["y"], wanted) and got["n"] == len(wanted) // 2
    rig.raises(sinter.Error, run, build(one("Above", ("y", "n"), limit=9.0), plugins), plugins, x=X, says="1000000")
    lost = sinter.Plugins(sinter.Plugin("Lost", lambda x, table: [x, ("f32", (table.size(5, 3),))], run=body, outputs=2))
    rig.raises(sinter.Error, build, one("Lost", ("y", "n")), lost, says="plugin 'Lost' declares output 5 as a size")


def test_layouts():
    """A plugin that takes channels-last images sees them so."""
    seen = set()

    def body(inputs, outputs):
        seen.add(inputs[0].strides)
        assert inputs[0].strides == outputs[0].strides
        outputs[0][...] = np.maximum(inputs[0], 0)
    take = sinter.Plugin("Any", lambda x: x, run=body, supports=lambda i, o: i[0].order == o[0].order)
    net = sinter.Network(plugins=[take])
    plugins, rng = net.plugins, np.random.default_rng(2)
    x = net.add_input("x", "f32", (1, 8, 9, 9))
    w = [rng.standard_normal((8, 8, 1, 1)).astype("f4") for _ in range(2)]
    y = net.add("convolution", x, maps=8, kernel_size=(1, 1), kernel=w[0]).output
    y = net.add("convolution", net.add_plugin("Any", y).output, maps=8, kernel_size=(1, 1), kernel=w[1]).output
    net.mark_output(y)
    image = rng.standard_normal((1, 8, 9, 9)).astype("f4")
    wanted = np.einsum("oi,nihw->nohw", w[1][:, :, 0, 0], np.maximum(np.einsum("oi,nihw->nohw", w[0][:, :, 0, 0], image), 0))
    got = list(run(sinter.build(net, plugins=plugins), plugins, x=image).values())[0]
    assert np.allclose(got, wanted, atol=1e-4) and seen


def test_torch():
    try:
        import torch
        torch.from_dlpack
    except (ImportError, AttributeError):               # a folder of that name is no torch
        return

    def body(inputs, outputs):
        assert isinstance(inputs[0], torch.Tensor)
        torch.mul(inputs[0], 2, out=outputs[0])
    plugins = sinter.Plugins(sinter.Plugin("Twice", lambda x: x, torch=body))
    assert np.allclose(run(build(one(), plugins), plugins, x=X)["y"], 2 * X)


# ---- what goes wrong ----

class Odd(Exception):
    pass


def hostile(rng):
    """A plugin of which one function misbehaves in one way: (plugin, where it must be refused)."""
    wild = {
        "raises": lambda *a, **k: (_ for _ in ()).throw(rng.choice([Odd, ValueError, KeyError, MemoryError, NotImplementedError])("of no use")),
        "none": lambda *a, **k: None, "text": lambda *a, **k: "text", "huge": lambda *a, **k: 2**70, "negative": lambda *a, **k: -5,
        "list": lambda *a, **k: [-1], "object": lambda *a, **k: object(), "large": lambda *a, **k: 2**50}
    shapes = {
        "count": lambda x: [x, x], "rank": lambda x: ("f32", (1,) * 40), "type": lambda x: ("f99", x.shape), "none": lambda x: None,
        "negative": lambda x: ("f32", (-4,)), "huge": lambda x: ("f32", (2**62, 2**62)), "text": lambda x: ("f32", ("N",)),
        "late": lambda x: ("f32", (kept[0] if kept else kept.append(x.shape[0]) or 1, )), "raises": wild["raises"]}
    bodies = {
        "shape": lambda i, o: i[0][:, :3], "count": lambda i, o: (i[0], i[0]), "type": lambda i, o: i[0].astype("f8"),
        "writes": lambda i, o: i[0].__setitem__(0, 1), "raises": wild["raises"], "text": lambda i, o: "text"}
    kept = []
    good = {"shapes": lambda x: x, "run": lambda i, o: i[0]}
    where = rng.choice(["shapes", "run", "supports", "workspace", "tactics", "state"])
    if where == "shapes":
        kind = rng.choice(list(shapes))
        return {**good, "shapes": shapes[kind]}, where, kind
    if where == "run":
        kind = rng.choice(list(bodies))
        return {**good, "run": bodies[kind]}, where, kind
    kind = rng.choice(["raises"] if where == "state" else list(wild))
    return {**good, where: wild[kind]}, where, kind


def test_hostile_plugins():
    """Every mistake is a named failure; none is swallowed, none takes the process."""
    rng, met = random.Random(7), {}
    for _ in range(1000 if os.environ.get("SINTER_TEST_SCALE") == "full" else 150):
        functions, where, kind = hostile(rng)
        made = sinter.Plugin("Bad", functions.pop("shapes"), **functions)
        plugins = sinter.Plugins(made, check=rng.random() < 0.5)
        try:
            plan = build(one("Bad"), plugins)
            got = run(plan, plugins, x=X)["y"]
            met[where, kind] = None
            # what is harmless: an object is true, a negative size is caught, a shape of its own may be right
            assert (where, kind) in {("supports", "text"), ("supports", "huge"), ("supports", "negative"), ("supports", "list"),
                                     ("supports", "object"), ("supports", "large"), ("shapes", "late")}, (where, kind, got)
        except sinter.Error as e:
            met[where, kind] = e
            assert "Bad" in str(e) or kind == "huge" and "'y'" in str(e), (where, kind, e)
            if kind == "raises":
                assert "of no use" in str(e) and e.__cause__ is not None and "of no use" in str(e.__cause__), (where, e)
    assert len(met) > 25, met
    assert sum(e is not None for e in met.values()) > 18


def test_interrupts():
    def body(inputs, outputs):
        raise KeyboardInterrupt
    plugins = sinter.Plugins(sinter.Plugin("Stop", lambda x: x, run=body))
    plan = build(one("Stop"), plugins)
    rig.raises(KeyboardInterrupt, run, plan, plugins, x=X)


def test_refusals():
    rig.raises(sinter.InvalidArgument, sinter.Plugins, sinter.Plugin("a b", lambda x: x), says="'a b'")
    rig.raises(sinter.InvalidArgument, sinter.Plugins, scale(), scale(), says="already")
    rig.raises(sinter.FileError, sinter.Plugins, "nothing.so", says="nothing.so")
    rig.raises(sinter.InvalidArgument, sinter.Plugins, scale(inputs=(3, 1)), says="3 to 1 inputs")
    plugins = sinter.Plugins(scale())
    net = sinter.Network(plugins=plugins)
    x = net.add_input("x", "f32", (3, 8))
    rig.raises(TypeError, net.add_plugin, "Scale", x, factor=object(), says="is no field")
    rig.raises(sinter.Error, lambda: net.add_plugin("Scale", x, x).output.shape, says="has 1 to 1 inputs, the node has 2")
    rig.raises(sinter.Error, lambda: net.add_plugin("Nothing", x).output.shape, says="plugin 'Nothing'")
    assert net.add_plugin("Scale", x, version="1", namespace="").kind == sinter.LayerKind.PLUGIN


rig.main(__name__)
