# SPDX-License-Identifier: Apache-2.0
"""Loops, conditionals, precisions, the parser and models that are written. Random nests of loops and conditionals run in
NumPy, too, with numbers on which f32 is exact; and so do the nests that were written as ONNX."""
import os

import numpy as np
import rig
import sinter

os.environ["SINTER_TENSORRT_DEVICE"] = "cpu"
import sinter.tensorrt as trt  # noqa: E402

QUIET = trt.Logger(trt.Logger.ERROR)
COUNT = 400 if os.environ.get("SINTER_TEST_SCALE") == "full" else 40
SHAPE = (2, 3)


class Nest:
    """A random network. A value is (tensor, function): the function computes what the tensor holds, from the values of inputs,
    recurrences and iterators, which `now` maps from their tensors' handles."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.net = trt.Builder(QUIET).create_network(0)
        self.now, self.counts = {}, {"loop": 0, "if": 0}

    def pick(self, values):
        return values[int(self.rng.integers(len(values)))]

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def source(self, tensor):
        key = tensor.tensor.handle
        return tensor, lambda now: now[key]

    def constant(self, array):
        array = np.asarray(array)
        return self.net.add_constant(array.shape, array).get_output(0), lambda now: array

    def binary(self, name, a, b, function):
        layer = self.net.add_elementwise(a[0], b[0], trt.ElementWiseOperation[name])
        return layer.get_output(0), lambda now: function(a[1](now), b[1](now))

    def step(self, values):
        a, b, form = self.pick(values), self.pick(values), self.int(0, 4)
        if form == 0:
            return self.net.add_unary(a[0], trt.UnaryOperation.NEG).get_output(0), lambda now: -a[1](now)
        if form == 1:
            return self.binary("MAX", a, b, np.maximum)
        if form == 2:
            return self.binary("SUB", a, b, np.subtract)
        if form == 3:
            one = self.constant(np.full((1, 1), self.pick([0.5, 1, 2]), "f4"))
            return self.binary("PROD", a, one, np.multiply)
        return self.binary("SUM", a, b, np.add)

    def clipped(self, a):
        """Values stay small: exact in f32."""
        layer = self.net.add_activation(a[0], trt.ActivationType.CLIP)
        layer.alpha, layer.beta = -16, 16
        return layer.get_output(0), lambda now: np.clip(a[1](now), -16, 16)

    def total(self, a):
        """A scalar."""
        layer = self.net.add_reduce(a[0], trt.ReduceOperation.SUM, 3, False)
        return layer.get_output(0), lambda now: a[1](now).sum()

    def turns(self, values):
        """How often a loop runs: a number, or one that is computed."""
        if self.int(0, 1):
            return self.constant(np.array(self.int(0, 3), "i4"))
        total = self.total(self.pick(values))
        layer = self.net.add_activation(total[0], trt.ActivationType.CLIP)
        layer.alpha, layer.beta = 0, 3
        whole = self.net.add_unary(layer.get_output(0), trt.UnaryOperation.FLOOR).get_output(0)
        return self.net.add_cast(whole, trt.int32).get_output(0), lambda now: int(np.floor(np.clip(total[1](now), 0, 3)))

    def loop(self, values, depth):
        self.counts["loop"] += 1
        loop, count, fixed = self.net.add_loop(), self.turns(values), None
        rows = self.constant(self.rng.integers(-3, 4, (4,) + SHAPE).astype("f4"))
        firsts = [self.pick(values) for _ in range(self.int(1, 2))]
        loop.add_trip_limit(count[0], trt.TripLimit.COUNT)
        recurrences = [loop.add_recurrence(f[0]) for f in firsts]
        carried = [self.source(r.get_output(0)) for r in recurrences]
        reverse = bool(self.int(0, 1))
        iterator = loop.add_iterator(rows[0], 0, reverse)
        assert isinstance(loop, trt.ILoop) and isinstance(iterator, trt.ILoopBoundaryLayer) and isinstance(iterator, trt.IIteratorLayer)
        assert iterator.axis == 0 and iterator.reverse == reverse and iterator.loop == loop
        row = self.source(iterator.get_output(0))
        if self.int(0, 1):
            below = self.constant(np.array(self.int(0, 20), "f4"))
            fixed = self.binary("LESS", self.total(carried[0]), below, np.less)
            assert loop.add_trip_limit(fixed[0], trt.TripLimit.WHILE).kind == trt.TripLimit.WHILE
        inner = self.block(values + carried + [row], depth - 1)
        nexts = [self.clipped(self.binary("SUM", self.pick(inner), c, np.add)) for c in carried]
        for recurrence, value in zip(recurrences, nexts):
            recurrence.set_input(1, value[0])
        keys, at = [c[0].tensor.handle for c in carried], row[0].tensor.handle

        def run(now, seen):
            now = dict(now)
            now.update(zip(keys, [f[1](now) for f in firsts]))
            table = rows[1](now)
            for turn in range(count[1](now)):
                if fixed is not None and not fixed[1](now):
                    break
                now[at] = table[len(table) - 1 - turn if reverse else turn]
                seen(now)
                now.update(zip(keys, [n[1](now) for n in nexts]))
            return now
        made = []
        for recurrence, key in zip(recurrences, keys):
            layer = loop.add_loop_output(recurrence.get_output(0), trt.LoopOutput.LAST_VALUE)
            made.append((layer.get_output(0), lambda now, key=key: run(now, lambda _: None)[key]))
        # All turns, joined; weighted by their place, so that the order counts.
        kind, value = self.pick([trt.LoopOutput.CONCATENATE, trt.LoopOutput.REVERSE]), self.pick(nexts + inner + [row])
        layer = loop.add_loop_output(value[0], kind, 0)
        assert layer.kind == kind and layer.axis == 0
        layer.set_input(1, count[0])
        whole = self.net.add_slice(layer.get_output(0), (0, 0, 0), (3,) + SHAPE, (1, 1, 1))
        whole.mode = trt.SampleMode.FILL
        weights = self.constant(np.array([1, 2, 4], "f4").reshape(3, 1, 1))

        def all_turns(now):
            seen = []
            run(now, lambda inside: seen.append(value[1](inside)))
            seen = seen[::-1] if kind == trt.LoopOutput.REVERSE else seen
            return sum((s * w for s, w in zip(seen, [1, 2, 4])), np.zeros(SHAPE, "f4"))
        # A loop that may end early has no promised length of its result: only its last values are used.
        if fixed is None:
            product = self.net.add_elementwise(whole.get_output(0), weights[0], trt.ElementWiseOperation.PROD).get_output(0)
            joined = self.net.add_reduce(product, trt.ReduceOperation.SUM, 1, False).get_output(0)
            made.append(self.clipped((joined, all_turns)))
        return made

    def conditional(self, values, depth):
        self.counts["if"] += 1
        part = self.net.add_if_conditional()
        go = self.binary("GREATER", self.total(self.pick(values)), self.constant(np.array(self.int(-2, 2), "f4")), np.greater)
        condition = part.set_condition(go[0])
        assert condition.conditional == part and isinstance(part, trt.IIfConditional)
        assert isinstance(condition, trt.IConditionLayer) and isinstance(condition, trt.IIfConditionalBoundaryLayer)
        outer = [self.pick(values) for _ in range(self.int(1, 2))]
        inputs = [(part.add_input(v[0]).get_output(0), v[1]) for v in outer]
        branches = [self.block(inputs, depth - 1), self.block(inputs, depth - 1)]
        made = []
        for _ in range(self.int(1, 2)):
            # What a branch gives depends on an input.
            yes, no = (self.clipped(self.binary("SUM", self.pick(b), self.pick(inputs), np.add)) for b in branches)
            layer = part.add_output(yes[0], no[0])
            made.append((layer.get_output(0), lambda now, yes=yes, no=no: yes[1](now) if go[1](now) else no[1](now)))
        return made

    def block(self, values, depth):
        """More values, that depend on those given."""
        values = list(values)
        for _ in range(self.int(1, 3)):
            form = self.int(0, 3)
            if depth > 0 and form == 0:
                values += self.loop(values, depth)
            elif depth > 0 and form == 1:
                values += self.conditional(values, depth)
            else:
                values.append(self.clipped(self.step(values)))
        return values[-4:]


def run_nest(seed):
    nest = Nest(seed)
    feeds = {f"x{i}": nest.rng.integers(-4, 5, SHAPE).astype("f4") for i in range(2)}
    values = [nest.source(nest.net.add_input(name, trt.float32, SHAPE)) for name in feeds]
    now = {v[0].tensor.handle: feed for v, feed in zip(values, feeds.values())}
    values += nest.loop(values, 2) if seed % 2 else nest.conditional(values, 2)
    values += nest.block(values, 2)
    wanted = {}
    for tensor, function in values[2:]:
        if not tensor.is_network_output and not tensor.is_network_input:
            tensor.name = f"y{len(wanted)}"
            nest.net.mark_output(tensor)
            wanted[tensor.name] = function(now)
    config = nest.net.builder.create_builder_config()
    config.builder_optimization_level = 0
    plan = nest.net.builder.build_serialized_network(nest.net, config)
    assert plan is not None
    path = rig.FOLDER / "nest.onnx"
    nest.net._net.write_onnx(path)
    for which, bytes_ in (("network", bytes(plan)), ("model", bytes(sinter.build(path, tune="off")))):
        found = sinter.load(bytes_).context().run(feeds)
        for name, value in wanted.items():
            assert np.array_equal(found[name], value), (which, name, found[name], value)
    return nest.counts


def test_random_nests():
    counts = {"loop": 0, "if": 0}
    for seed in range(COUNT):
        try:
            for name, count in run_nest(seed).items():
                counts[name] += count
        except Exception:
            print(f"seed {seed}")
            raise
    assert min(counts.values()) > COUNT // 2, counts


def run_loop(net, feeds, profile=None):
    """What the outputs of a network hold, by sinter.tensorrt's context: sizes come from get_tensor_shape, where it knows them."""
    config = net.builder.create_builder_config()
    config.builder_optimization_level = 0
    ranges = net.builder.create_optimization_profile()
    for name, shapes in (profile or {}).items():
        ranges.set_shape(name, *shapes)
    config.add_optimization_profile(ranges)
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(net.builder.build_serialized_network(net, config))
    context, made = engine.create_execution_context(), {}
    for name, array in feeds.items():
        assert context.set_input_shape(name, array.shape) and context.set_tensor_address(name, array.ctypes.data)
    for name in engine:
        if name not in feeds:
            made[name] = np.empty(tuple(context.get_tensor_shape(name)), trt.nptype(engine.get_tensor_dtype(name)))
            context.set_tensor_address(name, made[name].ctypes.data)
    return made if context.execute_async_v3(0) else None


def test_promised_lengths():
    """A loop's output has the length that it was promised: shorter than the loop, longer, a number, or a value that a run gives."""
    turns, x = 4, np.array([[1, 2]], "f4")
    for kind in ("CONCATENATE", "REVERSE"):
        for promised in (0, 2, 4, 7):
            for stops_by in ("COUNT", "WHILE", "input"):
                for of_run in (False, True):
                    net = trt.Builder(QUIET).create_network(0)
                    feeds = {"x": x}

                    def scalar(name, n, is_input):
                        if is_input:
                            feeds[name] = np.array(n, "i4")
                            return net.add_input(name, trt.int32, ())
                        return net.add_constant((), np.array(n, "i4")).get_output(0)
                    loop, of_loop = net.add_loop(), stops_by == "input"
                    length = limit = None
                    if stops_by != "WHILE":
                        limit = scalar("turns", turns, of_loop)
                        loop.add_trip_limit(limit, trt.TripLimit.COUNT)
                    length = limit if of_loop and promised == turns else scalar("length", promised, of_run)
                    value = loop.add_recurrence(net.add_input("x", trt.float32, x.shape))
                    double = net.add_elementwise(value.get_output(0), value.get_output(0), trt.ElementWiseOperation.SUM).get_output(0)
                    value.set_input(1, double)
                    if stops_by == "WHILE":
                        most = net.add_constant((1, 1), np.array([[x[0, 0] * 2 ** turns]], "f4")).get_output(0)
                        first = net.add_slice(value.get_output(0), (0, 0), (1, 1), (1, 1)).get_output(0)
                        goes_on = net.add_shuffle(net.add_elementwise(first, most, trt.ElementWiseOperation.LESS).get_output(0))
                        goes_on.reshape_dims = ()
                        loop.add_trip_limit(goes_on.get_output(0), trt.TripLimit.WHILE)
                    out = loop.add_loop_output(double, trt.LoopOutput[kind], 1)
                    out.set_input(1, length)
                    out.get_output(0).name = "y"
                    net.mark_output(out.get_output(0))
                    wanted = [2.0 ** (i + 1) for i in range(turns)][::1 if kind == "CONCATENATE" else -1]
                    wanted = (wanted + [0] * promised)[:promised]
                    found = run_loop(net, feeds)["y"]
                    what = kind, promised, stops_by, of_run
                    assert np.array_equal(found, x[:, None] * np.array(wanted)[None, :, None]), (what, found)


def test_recurrences_whose_sizes_a_run_knows():
    """A state and what is added to it have sizes of their own: they must be equal, or 1 for what is added."""
    def network():
        net = trt.Builder(QUIET).create_network(0)
        x, h = net.add_input("x", trt.float32, (-1, -1, 3)), net.add_input("h", trt.float32, (-1, 3))
        loop = net.add_loop()
        size = net.add_slice(net.add_shape(x).get_output(0), (1,), (1,), (1,))
        turns = net.add_shuffle(size.get_output(0))
        turns.reshape_dims = ()
        loop.add_trip_limit(turns.get_output(0), trt.TripLimit.COUNT)
        state = loop.add_recurrence(h)
        now = net.add_elementwise(loop.add_iterator(x, 1).get_output(0), state.get_output(0), trt.ElementWiseOperation.SUM).get_output(0)
        now = net.add_activation(now, trt.ActivationType.TANH).get_output(0)
        state.set_input(1, now)
        for name, made in (("y", loop.add_loop_output(now, trt.LoopOutput.CONCATENATE, 1)),
                           ("last", loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE))):
            if name == "y":
                made.set_input(1, turns.get_output(0))
            made.get_output(0).name = name
            net.mark_output(made.get_output(0))
        return net
    profile = {"x": ((1, 1, 3), (2, 2, 3), (4, 5, 3)), "h": ((1, 3), (2, 3), (4, 3))}
    rng = np.random.default_rng(4)
    for rows, states, steps in ((1, 1, 1), (2, 2, 3), (4, 4, 5), (1, 3, 2)):
        x, h = rng.normal(size=(rows, steps, 3)).astype("f4"), rng.normal(size=(states, 3)).astype("f4")
        found, state, seen = run_loop(network(), {"x": x, "h": h}, profile), h, []
        for i in range(steps):
            state = np.tanh(x[:, i] + state)
            seen.append(state)
        assert np.allclose(found["last"], state, atol=1e-5) and np.allclose(found["y"], np.stack(seen, 1), atol=1e-5), (rows, states, steps)
    assert run_loop(network(), {"x": np.zeros((3, 2, 3), "f4"), "h": np.zeros((1, 3), "f4")}, profile) is None


def scores(model, image, **options):
    return sinter.build(model, profiles={"N": 1}, tune="off", **options).load().context().run(image=image)["scores"]


def test_parsed_network_is_changed():
    """A model that was parsed gives the same bits, can be walked, gets layers in front and behind, and is written."""
    image, net = np.load(rig.SEVEN), sinter.Network()
    parser = sinter.Parser(net)
    parser.parse(rig.DIGITS)
    assert parser.errors == [] and [s for _, s in parser.subgraphs] == [True]
    wanted, half = scores(rig.DIGITS, image), scores(rig.DIGITS, image / 2)
    assert np.array_equal(scores(net, image), wanted)
    conv, flat = net.layers[0], net.find_layer("flat_flatten")
    assert conv.kind == sinter.LayerKind.CONVOLUTION and flat.kind == sinter.LayerKind.SHUFFLE and tuple(flat.reshape) == (0, -1)
    norm, product = net.find_layer("norm1_batchnormalization"), net.find_layer("logits_gemm")
    assert norm.operator[:2] == ("", "BatchNormalization") and norm.epsilon > 0 and norm.nearest_kind == sinter.LayerKind.SCALE
    assert product.kind == product.nearest_kind == sinter.LayerKind.MATRIX_MULTIPLY
    rig.raises(sinter.InvalidArgument, lambda: flat.operator, says="layer 'flat_flatten' is of kind shuffle")
    assert net.find_tensor("scores").producer.kind == sinter.LayerKind.SOFTMAX and net.find_layer("nothing") is None
    small = net.add("elementwise", net.inputs[0], net.add_constant(np.full((1, 1, 1, 1), 0.5, "f4")), op="prod")
    conv.set_input(0, small.output)
    last = net.outputs[0]
    net.mark_output(last, False)
    last.name, net.name = "inner", "changed"
    twice = net.add("elementwise", last, last, op="sum").output
    twice.name = "scores"
    net.mark_output(twice)
    assert np.array_equal(scores(net, image), half * 2)
    net.write_onnx(rig.FOLDER / "changed.onnx")
    assert np.allclose(scores(rig.FOLDER / "changed.onnx", image), half * 2, rtol=1e-5, atol=1e-7)
    # The same by upstream's calls.
    network = trt.Builder(QUIET).create_network(0)
    assert trt.OnnxParser(network, QUIET).parse(rig.DIGITS.read_bytes())
    conv, layer = network[0], network.add_scale(network.get_input(0), trt.ScaleMode.UNIFORM, None, np.array(0.5, "f4"), None)
    conv.__class__ = trt.IConvolutionLayer
    assert conv.num_output_maps == conv.kernel.size // 9 and conv.get_input(0).name == "image"
    conv.set_input(0, layer.get_output(0))
    network.get_input(0).shape = image.shape
    plan = network.builder.build_serialized_network(network, network.builder.create_builder_config())
    assert np.allclose(sinter.load(bytes(plan)).context().run(image=image)["scores"], half, rtol=1e-5, atol=1e-7)


def test_models_that_are_not_taken():
    net = sinter.Network()
    parser = sinter.Parser(net)
    rig.raises(sinter.InvalidModel, parser.parse, b"no model")
    from onnx_bytes import data
    from random_models import model, node, value
    bad = model(data(2, "g") + data(11, value("x", "f32", [1])) + data(12, value("y", "f32", [1])) +
                node("Relu", ["x"], ["a"]) + node("Frobnicate", ["a"], ["b"]) + node("Neg", ["b"], ["y"]))
    rig.raises(sinter.Unsupported, parser.parse, bad)
    found = parser.errors[-1]
    assert (found.status, found.node, found.op_type) == (sinter.Status.UNSUPPORTED, 1, "Frobnicate") and found.message
    assert ([0], True) in parser.subgraphs and any(1 in nodes and not taken for nodes, taken in parser.subgraphs)
    parser.clear_errors()
    assert parser.errors == []
    rig.raises(sinter.FileError, sinter.Parser(sinter.Network()).parse, "/nowhere.onnx")


WEIGHTS = (1 + np.arange(64) / 65536).astype("f4").reshape(8, 8)            # f16 rounds them
IMAGE = (1 + np.arange(64) % 7 / 32768).astype("f4").reshape(8, 8)


def product(precision, *flags, strong=False, out=None):
    """The error of a product against f64; None where the build failed."""
    builder = trt.Builder(trt.Logger(trt.Logger.INTERNAL_ERROR))
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED) if strong else 0)
    x = network.add_input("x", trt.float32, (8, 8))
    layer = network.add_matrix_multiply(x, trt.MatrixOperation.NONE, network.add_constant((8, 8), WEIGHTS).get_output(0),
                                        trt.MatrixOperation.NONE)
    assert not layer.precision_is_set and layer.precision == trt.float32
    if precision is not None:
        layer.precision = precision
        assert layer.precision_is_set and layer.precision == precision
        layer.reset_precision()
        assert not layer.precision_is_set and layer.precision == trt.float32
        layer.precision = precision
    if out is not None:
        layer.set_output_type(0, out)
        assert layer.output_type_is_set(0) and layer.get_output_type(0) == out
    y = layer.get_output(0)
    y.name = "y"
    network.mark_output(y)
    config = builder.create_builder_config()
    for flag in flags:
        config.set_flag(flag)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        return None
    found = sinter.load(bytes(plan)).context().run(x=IMAGE)["y"]
    assert found.dtype == (np.float32 if out is None else trt.nptype(out))
    return np.abs(found - IMAGE.astype("f8") @ WEIGHTS).max()


def test_precisions():
    flag, exact, rounded = trt.BuilderFlag, 1e-5, 1e-4
    assert product(trt.int8, flag.OBEY_PRECISION_CONSTRAINTS) is None and product(trt.int8) < exact     # INT8 is not permitted
    assert product(trt.int32, flag.OBEY_PRECISION_CONSTRAINTS) < exact                      # kept, and no constraint
    assert product(None) < exact and product(trt.float16) < exact           # without a flag, precisions are ignored
    assert rounded < product(trt.float16, flag.OBEY_PRECISION_CONSTRAINTS) < 0.1
    assert rounded < product(trt.float16, flag.STRICT_TYPES) < 0.1
    assert product(trt.bfloat16, flag.OBEY_PRECISION_CONSTRAINTS) > 1e-3
    assert product(trt.float32, flag.OBEY_PRECISION_CONSTRAINTS, flag.FP16) < exact
    assert product(trt.float32, flag.PREFER_PRECISION_CONSTRAINTS, flag.FP16) < exact
    assert product(trt.float16, flag.PREFER_PRECISION_CONSTRAINTS) < exact  # FP16 is not permitted
    assert rounded < product(None, out=trt.float16) < 0.1
    assert product(None, strong=True) < exact and product(None, flag.FP16, strong=True) is None
    rig.raises(sinter.InvalidArgument, product, trt.float16, strong=True, says="strongly typed")
    net = sinter.Network()
    x = net.add_input("x", "f32", (8, 8))
    layer = net.add("matrix_multiply", x, net.add_constant(WEIGHTS))
    layer.precision = "f16"
    assert layer.precision == sinter.Dtype.F16
    rig.raises(ValueError, net.set_precision_mode, "force", says="obey")
    rig.raises(sinter.InvalidArgument, setattr, net, "strongly_typed", True)
    layer.precision = None
    net.strongly_typed = True
    assert net.strongly_typed and layer.precision is None
    rig.raises(sinter.InvalidArgument, setattr, layer, "precision", "f16", says="strongly typed")


def test_products_in_8_bits():
    """With INT8, OBEY and a dynamic range a layer of precision INT8 gives what 8 bits give; without OBEY the device decides. Layers
    that are no products keep the word, with a warning."""
    rng = np.random.default_rng(3)
    w, x = rng.uniform(-1, 1, (32, 16)).astype("f4"), rng.uniform(-1, 1, (5, 32)).astype("f4")
    scale = np.abs(w).max(0) / 127
    coded = (np.clip(np.rint(x.astype("f8") * 127), -128, 127) / 127) @ (np.rint(w / scale) * scale)
    lines = []

    class Logger(trt.ILogger):
        def log(self, severity, text):
            lines.append(text)
    builder = trt.Builder(Logger())
    network = builder.create_network()
    given = network.add_input("x", trt.float32, x.shape)
    given.dynamic_range = (-1, 1)
    layer = network.add_matrix_multiply(given, trt.MatrixOperation.NONE, network.add_constant(w.shape, w).get_output(0), trt.MatrixOperation.NONE)
    layer.precision = trt.int8
    out = network.add_activation(layer.get_output(0), trt.ActivationType.RELU)
    assert layer.precision == trt.int8 and layer.precision_is_set and not lines
    out.precision = trt.int8
    assert out.precision == trt.int8 and "RELU" not in lines and any("changes nothing" in line for line in lines)
    out.get_output(0).name = "y"
    network.mark_output(out.get_output(0))
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.INT8)
    config.set_flag(trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    plan = builder.build_serialized_network(network, config)
    found = sinter.load(bytes(plan)).context().run(x=x)["y"]
    assert np.abs(found - np.maximum(coded, 0)).max() < 1e-4 and np.abs(found - np.maximum(x @ w, 0)).max() > 1e-3


def test_small_products_in_8_bits():
    """A product that has to be of integers need not gain by it: few channels, weights with axes of 1 in front."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (1, 3, 4, 4)).astype("f4")
    coded_x = np.clip(np.rint(x.astype("f8") * 127), -128, 127) / 127
    for w in (rng.uniform(-1, 1, (2, 3, 1, 1)).astype("f4"), rng.uniform(-1, 1, (1, 1, 4, 3)).astype("f4")):
        builder = trt.Builder(QUIET)
        network = builder.create_network()
        given = network.add_input("x", trt.float32, x.shape)
        given.dynamic_range = (-1, 1)
        if len(w) == 2:
            scale = np.abs(w).max((1, 2, 3), keepdims=True) / 127
            layer = network.add_convolution_nd(given, 2, (1, 1), w)
        else:
            scale = np.abs(w).max(2, keepdims=True) / 127
            layer = network.add_matrix_multiply(given, trt.MatrixOperation.NONE, network.add_constant(w.shape, w).get_output(0),
                                                trt.MatrixOperation.NONE)
        coded_w = np.rint(w / scale) * scale
        wanted = np.einsum("nchw,kc->nkhw", coded_x, coded_w[:, :, 0, 0]) if len(w) == 2 else coded_x @ coded_w
        layer.precision, layer.get_output(0).name = trt.int8, "y"
        network.mark_output(layer.get_output(0))
        config = builder.create_builder_config()
        config.set_flag(trt.BuilderFlag.INT8)
        config.set_flag(trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
        engine = sinter.load(bytes(builder.build_serialized_network(network, config)))
        assert np.abs(engine.context().run(x=x)["y"] - wanted).max() < 1e-5
        assert any("integer" in step["kernel"] for step in engine.info["profiles"][0]["steps"])


def test_outputs_operators_and_names_of_weights():
    net = sinter.Network()
    x = net.add_input("x", "f32", (-1, 3), ("N", None))
    norm = net.add_op("LpNormalization", x, axis=1, p=1)
    assert norm.operator[:2] == ("", "LpNormalization") and norm.operator[2] > 20 and norm.p == 1 and norm.loop is None and norm.conditional is None
    norm.output.name = "y"
    net.mark_output(norm.output)
    net.mark_shape_output(norm.output)
    negative = net.add("unary", x, op="neg").output
    negative.name = "probe"
    net.mark_debug(negative)
    assert norm.output.is_shape_output and negative.is_debug and not x.is_debug
    a = np.array([[1, 2, 3], [4, -4, 8]], "f4")
    found = sinter.build(net, profiles={"N": (1, 2, 4)}, tune="off").load().context().run(x=a)
    assert list(found) == ["y", "y.shape", "probe"] and found["y.shape"].tolist() == [2, 3]
    assert np.allclose(found["y"], a / np.abs(a).sum(1, keepdims=True)) and np.array_equal(found["probe"], -a)
    rig.raises(sinter.Error, lambda: net.layers[-1].operator)
    network = trt.Builder(QUIET).create_network(0)
    weights = trt.Weights(np.ones((1, 1, 3, 3), "f4"))
    layer = network.add_convolution_nd(network.add_input("x", trt.float32, (1, 1, 3, 3)), 1, (3, 3), weights, None)
    assert network.set_weights_name(weights, "mine") and not network.set_weights_name(np.ones(3, "f4"), "other")
    network.mark_output(layer.get_output(0))
    assert network.mark_weights_refittable("mine") and network.are_weights_marked_refittable("mine")
    assert network.unmark_weights_refittable("mine") and not network.are_weights_marked_refittable("mine")
    config = network.builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    engine = sinter.load(bytes(network.builder.build_serialized_network(network, config)))
    assert [w.name for w in engine.weights()] == ["mine"]
    again = engine.refit({"mine": np.full((1, 1, 3, 3), 2, "f4")}).load()
    assert next(iter(again.context().run([np.ones((1, 1, 3, 3), "f4")]).values())).item() == 18


rig.main(__name__)
