# SPDX-License-Identifier: Apache-2.0
"""Every kind of layer by upstream's calls: names of arguments and properties, and random networks against NumPy."""
import os

import numpy as np
import rig
import sinter

os.environ["SINTER_TENSORRT_DEVICE"] = "cpu"
import sinter.tensorrt as trt  # noqa: E402
from random_layers import CASES, RandomNetwork  # noqa: E402
from sinter import _abi  # noqa: E402
from sinter._network import kind_parameters  # noqa: E402
from sinter.tensorrt import _layer_extras, _layers, _names  # noqa: E402

try:
    import onnx
    import onnxruntime
except ImportError:
    onnxruntime = None

QUIET = trt.Logger(trt.Logger.INTERNAL_ERROR)
SCALE = 20 if os.environ.get("SINTER_TEST_SCALE") == "full" else 1
CONTROL = "TRIP_LIMIT RECURRENCE ITERATOR LOOP_OUTPUT CONDITION CONDITIONAL_INPUT CONDITIONAL_OUTPUT"
# Kinds that are tested elsewhere: collectives need several devices, OnnxParser makes OP, plugins have tests of their own.
OTHERS = "DIST_COLLECTIVE OP PLUGIN"
# Members of upstream's layers that are there by name only.
MISSING = {"IMoELayer.dyn_q_output_scale_type", "IMoELayer.quantization_block_shape", "IMoELayer.set_quantization_dynamic_dbl_q",
           "IKVCacheUpdateLayer.update_form", "IKVCacheUpdateLayer.update_lengths"}


def rows(kind):
    return kind_parameters(_abi.LayerKind[kind.upper()])


def test_every_argument_is_a_parameter():
    for name, (kind, *words) in _names.rows(_layers.METHODS):
        for word in words:
            argument, _, role = word.partition("=")[0].partition(":")
            if role not in ("t", "l", "is_causal", "blocks"):
                assert (role or argument) in rows(kind), f"add_{name}: '{role or argument}' is none of {list(rows(kind))}"


def test_every_choice_has_its_enum():
    used = set()
    for kind in list(CASES) + CONTROL.lower().split():
        for name, (what, words, _) in rows(kind).items():
            if what != _abi.ParamKind.CHOICE:
                continue
            key = (kind, name) if (kind, name) in _layers.ENUM_OF else name
            used.add(key)
            enum = getattr(_names, _layers.ENUM_OF[key])
            for i, word in enumerate(words.split("|")):
                # Upstream's enum has sums only.
                assert (kind, word) == ("cumulative", "prod") or int(enum[word.upper()]) == i, (kind, name, word)
    assert used == set(_layers.ENUM_OF), set(_layers.ENUM_OF) - used
    for kind, name in _layers.RENAMED_OF:
        assert name in dict(_names.rows(_names.CLASSES))[_layers.class_name(kind)] and _layers.RENAMED_OF[kind, name] in rows(kind)


def values(kind, rows, layer, name):
    """What a property is set to: each value of an enum, else one that is not the default."""
    parameter = _layers.parameter_of(kind, name)[0]
    what = rows.get(parameter, (None,))[0]
    k = _abi.ParamKind
    if what == k.CHOICE:
        enum = getattr(_names, _layers.ENUM_OF.get((kind, parameter)) or _layers.ENUM_OF[parameter])
        return [v for v in enum if v.name.lower() in rows[parameter][1].split("|")]
    if what == k.WEIGHTS:
        return [np.arange(4, dtype="f4")]
    if what == k.INTS:
        return [tuple(range(1, 1 + (len(getattr(layer, name)) or 2)))]
    return {k.INT: [2, 1], k.FLAG: [True, False], k.REAL: [0.5], k.REALS: [[1.0, 2.0]], k.TEXT: ["text"],
            k.TYPE: [trt.float16, trt.int8]}[what]


def test_every_property_is_set_and_read():
    count = 0
    for kind, members in _names.rows(_names.CLASSES):
        by_class = {_layers.class_name(k): k for k in CASES}
        if kind not in by_class:
            continue
        kind, class_ = by_class[kind], kind
        random = RandomNetwork(1, QUIET)
        CASES[kind](random)
        layer = [layer for layer in random.net if layer.kind_name == kind][-1]
        assert type(layer) is trt.ILayer and isinstance(layer.type, trt.LayerType)
        layer.__class__ = getattr(trt, class_)
        for name in members:
            if f"{class_}.{name}" in MISSING:
                rig.raises(NotImplementedError, lambda: getattr(layer, name), says=name)
                continue
            if isinstance(getattr(type(layer), name, None), property) and not hasattr(trt.ILayer, name) or name == "type":
                if name in _layer_extras.EXTRA.get(kind, {}):
                    getattr(layer, name)                    # each has a case of its own
                else:
                    for value in values(kind, rows(kind), layer, name):
                        setattr(layer, name, value)
                        found = getattr(layer, name)
                        assert np.array_equal(np.asarray(found), np.asarray(value)), (class_, name, found, value)
                count += 1
            else:
                assert callable(getattr(layer, name)) or hasattr(trt.ILayer, name), (class_, name)
    assert count > 100, count


def test_every_kind_has_a_case():
    assert set(CASES) | set((CONTROL + " " + OTHERS).lower().split()) == {k.name.lower() for k in sinter.LayerKind}


def run(random):
    config = random.builder.create_builder_config()
    config.builder_optimization_level = 0
    plan = random.builder.build_serialized_network(random.net, config)
    assert plan is not None
    with sinter.load(bytes(plan)).context() as context:
        random.check(context.run(random.feeds))


# What ONNX Runtime has no kernel for: identities of 4 bits.
NOT_IN_ONNXRUNTIME = ("dynamic_quantize",)


def written(random, kind):
    """The network as an ONNX model: its results, and what ONNX's checker and ONNX Runtime say of it where they are installed."""
    path = rig.FOLDER / "written.onnx"
    random.net._net.write_onnx(path)
    with sinter.build(path, tune="off").load().context() as context:
        random.check(context.run(random.feeds))
    if onnxruntime is not None and kind not in NOT_IN_ONNXRUNTIME:
        onnx.checker.check_model(str(path), full_check=True)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        feeds = {i.name: random.feeds[i.name] for i in session.get_inputs()}
        random.check(dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds))))


def test_each_kind_alone():
    for kind in CASES:
        for seed in range(6 * SCALE):
            random = RandomNetwork(seed, trt.Logger(trt.Logger.ERROR))
            try:
                CASES[kind](random)
                run(random)
                written(random, kind)
            except Exception:
                print(f"kind {kind}, seed {seed}")
                raise


def test_random_networks():
    """Layers of all kinds that read each other's results."""
    for seed in range(20 * SCALE):
        random = RandomNetwork(1000 + seed, trt.Logger(trt.Logger.ERROR))
        kinds = random.rng.choice(list(CASES), 15)
        try:
            for kind in kinds:
                CASES[kind](random)
            run(random)
        except Exception:
            print(f"seed {seed}: {list(kinds)}")
            raise


def test_arithmetic_of_sizes():
    """What integer arithmetic makes of a shape, negative numbers too, is known as soon as the shape is."""
    functions = {"SUM": np.add, "SUB": np.subtract, "PROD": np.multiply, "MIN": np.minimum, "MAX": np.maximum,
                 "FLOOR_DIV": np.floor_divide, "DIV": lambda a, b: np.trunc(a / b).astype("i8")}
    for seed in range(20 * SCALE):
        rng, builder = np.random.default_rng(seed), trt.Builder(QUIET)
        network = builder.create_network()
        x, steps = network.add_input("x", trt.float32, (-1, -1)), []
        shape = network.add_shape(x).get_output(0)

        def step(tensor, name, other):
            steps.append((name, other))
            constant = network.add_constant((len(other),), np.array(other, "i8")).get_output(0)
            return network.add_elementwise(tensor, constant, trt.ElementWiseOperation[name]).get_output(0)
        sizes = shape
        for name in rng.choice(list(functions), 4):
            low = 1 if name.endswith("DIV") else -9
            other = rng.integers(low, 9, rng.integers(1, 3))
            sizes = step(sizes, name, other * (rng.choice([-1, 1]) if low == 1 else 1))
        layer = network.add_slice(x, (0, 0), (), (1, 1))
        layer.set_input(2, step(step(sizes, "MIN", [7]), "MAX", [0]))
        layer.mode = trt.SampleMode.FILL
        network.mark_output(layer.get_output(0))
        profile, config = builder.create_optimization_profile(), builder.create_builder_config()
        profile.set_shape("x", (1, 1), (4, 6), (20, 20))
        config.add_optimization_profile(profile)
        engine = builder.build_engine_with_config(network, config)
        context = engine.create_execution_context()
        for given in ((1, 1), (4, 6), (20, 3), (7, 20)):
            wanted = np.array(given)
            for name, other in steps:
                wanted = functions[name](wanted, other)
            assert context.set_input_shape("x", given)
            assert tuple(context.get_tensor_shape(engine.get_tensor_name(1))) == tuple(wanted), (seed, given, steps)


rig.main(__name__)
