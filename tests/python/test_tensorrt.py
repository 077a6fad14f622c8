# SPDX-License-Identifier: Apache-2.0
"""sinter.tensorrt: names, values, behaviour; scripts in the style of upstream's samples, with their imports as they are."""
import contextlib
import csv
import io
import os
import re
import subprocess
import sys
import threading

import numpy as np
import rig
import sinter
import sinter.tensorrt as trt
from onnx_bytes import data, num
from random_models import TYPES, initializer, model, node, value
from sinter.tensorrt import _names

os.environ["SINTER_TENSORRT_DEVICE"] = "cpu"
SEVEN = np.load(rig.SEVEN)
QUIET = trt.Logger(trt.Logger.INTERNAL_ERROR)


def add_model(weight):
    return model(data(2, "g") + data(11, value("x", "f32", ["N", 4])) + data(12, value("y", "f32", ["N", 4])) +
                 initializer("w", weight) + node("Add", ["x", "w"], ["y"]))


def digits_engine(logger=QUIET, batch=1, **flags):
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse_from_file(str(rig.DIGITS))
    network.get_input(0).shape = (batch, 1, 28, 28)
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    return builder.build_engine_with_config(network, config)


def test_every_name_resolves():
    count = 0
    for table in (_names.ENUMS, _names.CLASSES):
        for name, members in _names.rows(table):
            found = trt.Logger.Severity if name == "Severity" else getattr(trt, name)
            for member in members:
                getattr(found, member.partition("=")[0])
                count += 1
    assert count > 1200
    # The whole list of names, where there is one: class, kind, name in the columns.
    path = os.environ.get("SINTER_TENSORRT_NAMES")
    for row in list(csv.reader(open(path), delimiter="\t"))[1:] if path else ():
        found = trt
        for part in row[0].replace("baseLoggerBinding", "Logger").split("."):
            found = getattr(found, part) if part else found
        if row[2]:
            getattr(found, row[2])


def test_values_are_upstreams():
    for text, number in (("DataType.FLOAT", 0), ("DataType.HALF", 1), ("DataType.INT8", 2), ("DataType.INT32", 3), ("DataType.BOOL", 4),
                         ("DataType.UINT8", 5), ("DataType.INT64", 8), ("BuilderFlag.FP16", 0), ("BuilderFlag.TF32", 6),
                         ("NetworkDefinitionCreationFlag.EXPLICIT_BATCH", 0), ("NetworkDefinitionCreationFlag.STRONGLY_TYPED", 1),
                         ("MemoryPoolType.WORKSPACE", 0), ("LayerType.CONVOLUTION", 0), ("LayerType.PLUGIN_V2", 21),
                         ("TensorIOMode.INPUT", 1), ("ElementWiseOperation.POW", 6), ("Logger.VERBOSE", 4), ("ActivationType.CLIP", 8)):
        owner, name = text.split(".")
        member = getattr(getattr(trt, owner), name)
        assert int(member) == number, text
        if owner != "Logger":
            assert str(member) == text and repr(member) == f"<{text}: {number}>" and f"{member}" == text
    assert trt.float16 == trt.DataType.HALF and trt.ResizeMode is trt.InterpolationMode and trt.float32.itemsize == 4
    assert trt.nptype(trt.int8) == np.int8 and trt.volume((2, 3, 4)) == 24 and trt.volume(()) == 1
    rig.raises(TypeError, trt.nptype, trt.fp8)


def test_what_is_missing_says_so():
    rig.raises(trt.NotAvailable, trt.CaffeParser, says="ONNX")
    rig.raises(AttributeError, lambda: trt.Frobnicator, says="Frobnicator")
    context = digits_engine().create_execution_context()
    rig.raises(AttributeError, lambda: context.set_communicator, says="set_communicator")


def test_layers_on_a_dla():
    heard = []

    class Listener(trt.ILogger):
        def log(self, severity, msg):
            heard.append(msg)

    builder = trt.Builder(Listener())
    network, config = builder.create_network(0), builder.create_builder_config()
    layer = network.add_unary(network.add_input("x", trt.float32, (2,)), trt.UnaryOperation.NEG)
    network.mark_output(layer.get_output(0))
    config.set_device_type(layer, trt.DeviceType.DLA)
    assert config.get_device_type(layer) == trt.DeviceType.DLA and config.is_device_type_set(layer)
    assert builder.build_serialized_network(network, config) is None and "DLA" in heard[-1]
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    assert builder.build_serialized_network(network, config) is not None


def test_what_tools_walk_over():
    """dir() lists what can be read; enums list their entries; what upstream refuses by a message is no exception."""
    network = trt.Builder(QUIET).create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    x = network.add_input("x", trt.float32, (1, 4))
    layer = network.add_identity(x)
    engine = digits_engine()
    for thing in (network.builder, network, network.builder.create_builder_config(), x, layer, engine, engine.create_execution_context(),
                  trt.Runtime(QUIET), trt.OnnxParser(network, QUIET), engine.create_engine_inspector()):
        names = dir(thing)
        assert len(names) > 5 and all(hasattr(thing, name) for name in names), thing
        assert not any(name.startswith("_") and not name.startswith("__") for name in names), names
    sizes = engine.get_binding_shape(np.int64(1)), engine.get_binding_dtype(np.int32(1))
    assert sizes == (engine.get_tensor_shape(engine[1]), engine.get_tensor_dtype(engine[1]))
    layer.set_output_type(0, trt.float16)
    layer.get_output(0).dtype = trt.float16
    assert layer.get_output(0).dtype == trt.float32 and not layer.output_type_is_set(0)
    entries = getattr(trt.LayerType, "__entries")
    assert entries["CONVOLUTION"][0] == trt.LayerType.CONVOLUTION and len(entries) == len(trt.LayerType.__members__)
    assert trt._itemsize(trt.float16) == 2 and trt.NodeIndices([1, 3]) == [1, 3]


def test_logger():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        logger = trt.Logger(trt.Logger.INFO)
        logger.log(trt.Logger.VERBOSE, "not this")
        logger.log(trt.Logger.INFO, "this")
        logger.log(trt.Logger.INTERNAL_ERROR, "and this")
        trt.Logger().log(trt.Logger.INFO, "not this")
    assert re.fullmatch(r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[TRT\] \[I\] this\n\[[^]]*\] \[TRT\] \[F\] and this\n", out.getvalue())

    class Mine(trt.ILogger):
        def __init__(self):
            trt.ILogger.__init__(self)
            self.lines = []

        def log(self, severity, msg):
            self.lines.append((severity, msg))
    mine = Mine()
    assert digits_engine(mine) is not None
    assert any(s == trt.Logger.INFO and "Engine generation completed" in m for s, m in mine.lines)
    assert any(s == trt.Logger.VERBOSE for s, m in mine.lines)
    rig.raises(TypeError, trt.Builder, None)


def test_config():
    config = trt.Builder(QUIET).create_builder_config()
    assert config.get_flag(trt.BuilderFlag.TF32) and config.flags == 1 << int(trt.BuilderFlag.TF32)
    config.set_flag(trt.BuilderFlag.FP16)
    config.clear_flag(trt.BuilderFlag.TF32)
    assert config.flags == 1 and config.builder_optimization_level == 3 and config.avg_timing_iterations == 1
    config.max_workspace_size = 1 << 20
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == 1 << 20
    assert config.num_optimization_profiles == 0 and config.max_aux_streams == -1 and config.DLA_core == -1
    profile = trt.Builder(QUIET).create_optimization_profile()
    assert profile.get_shape("x") == [] and profile
    profile.set_shape("x", (1, 2), (3, 4), (5, 6))
    assert profile.get_shape("x") == [(1, 2), (3, 4), (5, 6)] and config.add_optimization_profile(profile) == 0
    rig.raises(ValueError, profile.set_shape, "x", (2,), (1,), (3,))


def test_dims_and_weights():
    dims = trt.Dims([1, 3, -1])
    assert dims == (1, 3, -1) and tuple(dims) == (1, 3, -1) and len(dims) == 3 and -1 in dims and str(dims) == "(1, 3, -1)"
    dims[2] = 7
    assert dims[1:] == (3, 7) and np.zeros(dims).shape == (1, 3, 7) and trt.volume(dims) == 21
    assert trt.Dims4(1, 2, 3, 4) == trt.Dims4([1, 2, 3, 4]) and trt.DimsHW([5, 6]).w == 6 and trt.Dims.MAX_DIMS == 8
    rig.raises(ValueError, trt.Dims3, [1, 2])
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    weights = trt.Weights(array)
    assert weights.size == len(weights) == 6 and weights.nbytes == 24 and weights.dtype == trt.float32
    assert np.shares_memory(weights.numpy(), array) and trt.Weights(trt.int8).size == 0
    assert trt.Weights(trt.float32, array.ctypes.data, 6).numpy().tolist() == list(range(6))


def test_parser_errors():
    builder = trt.Builder(QUIET)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, QUIET)
    assert not parser.parse(b"no model") and parser.num_errors > 0
    parser.clear_errors()
    bad = model(data(2, "g") + data(11, value("x", "f32", [1])) + data(12, value("y", "f32", [1])) +
                node("Relu", ["x"], ["a"]) + node("Frobnicate", ["a"], ["b"]) + node("Neg", ["b"], ["y"]))
    assert not parser.parse(bad)
    error = parser.get_error(0)
    assert error.node() == 1 and error.node_operator() == "Frobnicate" and "Frobnicate" in error.desc()
    assert error.code() == trt.ErrorCode.UNSUPPORTED_NODE and error.line() > 0 and "Frobnicate" in str(error)
    assert parser.supports_operator("Conv") and not parser.supports_operator("Frobnicate")
    assert parser.supports_model(bad) == (False, [([0], True), ([2], False)])      # what is behind it may do by itself
    assert parser.supports_model(rig.DIGITS.read_bytes())[0]
    assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    assert not parser.parse_from_file("/nowhere.onnx")
    assert parser.parse(rig.DIGITS.read_bytes()) and network.num_layers == 22 and network.num_inputs == 1
    assert network.get_layer(0).type == trt.LayerType.CONVOLUTION and network.get_output(0).name == "scores"
    assert network.get_input(0).shape == (-1, 1, 28, 28) and network.get_input(0).dtype == trt.float32
    # A free size needs a profile.
    assert builder.build_serialized_network(network, builder.create_builder_config()) is None


def absent(name, array, dtype):
    """A weight whose elements are in a file that is not there."""
    entry = data(13, data(1, "location") + data(2, "nowhere.bin"))
    return data(5, b"".join(num(1, d) for d in array.shape) + num(2, TYPES[dtype][0]) + data(8, name) + entry + num(14, 1))


def test_weights_from_memory():
    """Random models, some of whose weights are given by address or as a buffer once the model's bytes are there."""
    rng = np.random.default_rng(11)
    for turn in range(12):
        shape, count = (int(rng.integers(1, 5)), 4), int(rng.integers(1, 5))
        weights = [rng.standard_normal(shape).astype("f4") for _ in range(count)]
        is_absent = [bool(rng.integers(2)) for _ in weights]
        is_absent[turn % count] = True
        body = data(2, "g") + data(11, value("x", "f32", shape)) + data(12, value(f"v{count}", "f32", shape))
        for i, w in enumerate(weights):
            name = f"w{i}" if i else "a weight with a long name: " + "w" * 200
            body += (absent if is_absent[i] else initializer)(name, w, "f32")
            body += node("Add", [f"v{i}" if i else "x", name], [f"v{i + 1}"])
            weights[i] = (name, w)
        network = trt.Builder(QUIET).create_network(0)
        parser = trt.OnnxParser(network, QUIET)
        assert not parser.parse_model_proto() and not parser.load_initializer("w1", b"1234", 4) and parser.num_errors == 2
        assert parser.load_model_proto(model(body))
        assert not parser.load_initializer("w", b"1234", 4) and "no weight 'w'" in parser.get_error(2).desc()
        assert not parser.load_initializer(weights[0][0], b"1234", 5) and not parser.load_initializer(weights[0][0], 0, 4)
        for i, (name, w) in enumerate(weights):
            if is_absent[i]:
                assert parser.load_initializer(name, w.ctypes.data if rng.integers(2) else w, w.nbytes)
        assert parser.parse_model_proto(), parser.get_error(parser.num_errors - 1)
        config = network.builder.create_builder_config()
        config.set_flag(trt.BuilderFlag.REFIT)
        engine = trt.Runtime(QUIET).deserialize_cuda_engine(network.builder.build_serialized_network(network, config))
        x = rng.standard_normal(shape).astype("f4")

        def result():
            return engine._engine.context().run({"x": x})[f"v{count}"]
        np.testing.assert_allclose(result(), x + sum(w for _, w in weights), rtol=1e-5, atol=1e-5)
        refitter = trt.Refitter(engine, QUIET)
        other = trt.OnnxParserRefitter(refitter, QUIET)
        assert other.load_model_proto(model(body))
        for name, w in weights:
            assert other.load_initializer(name, 2 * w, w.nbytes)
        assert other.refit_model_proto() and refitter.refit_cuda_engine()
        np.testing.assert_allclose(result(), x + sum(2 * w for _, w in weights), rtol=1e-5, atol=1e-5)
        damaged = bytearray(model(body))
        damaged[int(rng.integers(len(damaged)))] ^= 1 << int(rng.integers(8))
        parser.load_model_proto(damaged)
        parser.load_initializer(weights[0][0], w, w.nbytes)  # refused or taken, and nothing else


def test_engine():
    engine = digits_engine(batch=2)
    assert engine.num_io_tensors == engine.num_bindings == len(engine) == 2 and list(engine) == ["image", "scores"]
    assert engine[0] == "image" and engine["scores"] == 1 and engine.get_tensor_name(1) == engine.get_binding_name(1) == "scores"
    assert engine.get_tensor_mode("image") == trt.TensorIOMode.INPUT and engine.binding_is_input(0) and not engine.binding_is_input("scores")
    assert engine.get_tensor_shape("scores") == engine.get_binding_shape(1) == (2, 10)
    assert engine.get_tensor_dtype("image") == trt.float32 and engine.get_tensor_mode("nothing") == trt.TensorIOMode.NONE
    assert engine.get_tensor_location("image") == trt.TensorLocation.DEVICE and engine.get_tensor_format("image") == trt.TensorFormat.LINEAR
    assert engine.num_layers > 3 and engine.device_memory_size > 0 and engine.num_optimization_profiles == 1
    assert engine.get_engine_stat(trt.EngineStat.TOTAL_WEIGHTS_SIZE) > 1000 and not engine.has_implicit_batch_dimension
    plan = engine.serialize()
    assert plan.nbytes == len(plan) == len(bytes(plan)) and bytes(plan) == plan.tobytes() and isinstance(plan, trt.IHostMemory)
    runtime = trt.Runtime(QUIET)
    assert runtime.deserialize_cuda_engine(plan) is not None and runtime.deserialize_cuda_engine(bytes(plan)[:-9]) is None

    class Reader(trt.IStreamReader):
        def __init__(self):
            trt.IStreamReader.__init__(self)
            self.stream = io.BytesIO(bytes(plan))

        def read(self, size):
            return self.stream.read(size)

    class Writer(trt.IStreamWriter):
        def __init__(self):
            trt.IStreamWriter.__init__(self)
            self.data = b""

        def write(self, part):
            self.data += bytes(part)
            return len(part)
    assert len(runtime.deserialize_cuda_engine(Reader())) == 2
    writer, builder = Writer(), trt.Builder(QUIET)
    network = builder.create_network(0)
    trt.OnnxParser(network, QUIET).parse(add_model(np.ones(4, "f4")))
    network.get_input(0).shape = (1, 4)
    assert builder.build_serialized_network_to_stream(network, builder.create_builder_config(), writer)
    assert len(runtime.deserialize_cuda_engine(writer.data)) == 2


def test_runs_equal_sinters():
    engine = digits_engine(batch=2)
    image, scores = np.repeat(SEVEN, 2, 0), np.zeros((2, 10), np.float32)
    wanted = sinter.build(rig.DIGITS, profiles={"N": 2}, tune="off").load().context().run(image=image)["scores"]
    context = engine.create_execution_context()
    for run in (lambda: context.execute_v2([image.ctypes.data, scores.ctypes.data]),
                lambda: context.execute_async_v2([image.ctypes.data, scores.ctypes.data], 0),
                lambda: context.execute(1, [image.ctypes.data, scores.ctypes.data]),
                lambda: context.set_tensor_address("image", image.ctypes.data) and
                context.set_tensor_address("scores", scores.ctypes.data) and context.execute_async_v3(stream_handle=0)):
        scores[:] = 0
        assert run() and np.array_equal(scores, wanted)
    assert context.get_tensor_strides("image") == (784, 784, 28, 1) and context.get_max_output_size("scores") == 80
    fresh = engine.create_execution_context()
    assert not fresh.execute_async_v3(0)                    # no addresses


def test_memory_of_contexts():
    builder = trt.Builder(QUIET)
    network, config = builder.create_network(0), builder.create_builder_config()
    assert trt.OnnxParser(network, QUIET).parse_from_file(str(rig.DIGITS))
    for most in (2, 64):
        profile = builder.create_optimization_profile()
        profile.set_shape("image", (1, 1, 28, 28), (most, 1, 28, 28), (most, 1, 28, 28))
        config.add_optimization_profile(profile)
    config.builder_optimization_level = 0
    engine = builder.build_engine_with_config(network, config)
    strategy = trt.ExecutionContextAllocationStrategy
    small, large = (engine.get_device_memory_size_for_profile(p) for p in (0, 1))
    assert 0 < small < large == engine.device_memory_size and engine.streamable_weights_size == 0
    image, wanted = np.repeat(SEVEN, 2, 0), None
    lent = np.zeros(large + 64, "u1")
    address = (lent.ctypes.data + 63) // 64 * 64
    for kind in strategy:
        context = engine.create_execution_context(kind)
        assert context.get_runtime_config().get_execution_context_allocation_strategy() == kind
        for index in (0, 1, 0):
            assert context.set_optimization_profile_async(index, 0) and context.set_input_shape("image", image.shape)
            scores = np.zeros((2, 10), "f4")
            if kind == strategy.USER_MANAGED and not context.device_memory:
                assert not context.execute_v2([image.ctypes.data, scores.ctypes.data])       # no memory
                need = context.update_device_memory_size_for_shapes()
                assert 0 < need <= small
                context.set_device_memory(address, need - 1)
                assert not context.execute_v2([image.ctypes.data, scores.ctypes.data])
                context.device_memory = address
                assert context.device_memory == address
            assert context.execute_v2([image.ctypes.data, scores.ctypes.data]), (kind, index)
            wanted = scores if wanted is None else wanted
            assert np.array_equal(scores, wanted), (kind, index)
    assert engine.create_execution_context_without_device_memory().device_memory == 0
    config = engine.create_runtime_config()
    config.set_execution_context_allocation_strategy(strategy.USER_MANAGED)
    assert not engine.create_execution_context(runtime_config=config).execute_v2([image.ctypes.data] * 4)


def test_eight_at_once():
    engine = digits_engine()
    failures = []

    def work(seed):
        try:
            image = np.random.default_rng(seed).random((1, 1, 28, 28), np.float32)
            scores, first = np.zeros((1, 10), np.float32), None
            context = engine.create_execution_context()
            for _ in range(20):
                assert context.execute_v2([image.ctypes.data, scores.ctypes.data])
                first = scores.copy() if first is None else first
                assert np.array_equal(first, scores)
        except BaseException as e:
            failures.append(e)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_expressions_of_sizes():
    from sinter._shapes import evaluate
    symbols = {"N": 5, "a b": 3, "S": 4}
    for text, want in (("7", 7), ("N", 5), ("2*S+1", 9), ("-N+8", 3), ("N-S", 1), ("max(N,floordiv(S-1,2))", 5), ("ceildiv(N,2)*2", 6),
                       ("\"a b\"*N", 15), ("(N+1)*(S-1)", 18), ("broadcast(1,N)", 5), ("mod(N,3)", 2), ("min(N,S)-2*S", -4),
                       ("?", None), ("M+1", None), ("floordiv(N,0)", None), ("N N", None), ("(" * 500 + "N" + ")" * 500, None),
                       ("-" * 500 + "N", None), ("", None), ("max(N", None)):
        assert evaluate(text, symbols) == want, text


def test_error_recorders_are_inherited():
    class Recorder(trt.IErrorRecorder):
        def __init__(self):
            trt.IErrorRecorder.__init__(self)
            self.found = []

        def report_error(self, value, description):
            self.found.append(description)

    ours, own = Recorder(), Recorder()
    builder = trt.Builder(QUIET)
    builder.error_recorder = ours
    network = builder.create_network(0)
    assert network.error_recorder is ours
    x = network.add_input("x", trt.float32, (2,))
    network.mark_output(network.add_identity(x).get_output(0))
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    runtime = trt.Runtime(QUIET)
    runtime.error_recorder = ours
    engine = runtime.deserialize_cuda_engine(plan)
    context = engine.create_execution_context()
    assert engine.error_recorder is ours and context.error_recorder is ours and not ours.found
    assert not context.set_input_shape("x", (3,)) and "permits" in ours.found[-1]
    context.error_recorder = own
    assert not context.set_input_shape("x", (3,)) and len(ours.found) == len(own.found) == 1 and engine.error_recorder is ours


def test_ranges_that_inputs_end():
    """The length of a Range of integers is known before the run, where its ends are inputs on the host."""
    for start, step in ((0, 1), (3, 2), (9, -4)):
        graph = data(2, "g") + initializer("start", np.array(start), "i64") + initializer("step", np.array(step), "i64")
        graph += data(11, value("end", "i64", [])) + data(12, value("y", "i64", ["M"])) + node("Range", ["start", "end", "step"], ["y"])
        builder = trt.Builder(QUIET)
        network = builder.create_network(0)
        assert trt.OnnxParser(network, QUIET).parse(model(graph))
        engine = builder.build_engine_with_config(network, builder.create_builder_config())
        assert engine.is_shape_inference_io("end") and engine.get_tensor_location("end") == trt.TensorLocation.HOST
        context = engine.create_execution_context()
        for end in (-5, 0, 3, 4, 10):
            given, wanted = np.array(end), np.arange(start, end, step)
            context.set_tensor_address("end", given.ctypes.data)
            assert tuple(context.get_tensor_shape("y")) == wanted.shape, (start, end, step)
            found = np.full(max(len(wanted), 1), 77)
            context.set_tensor_address("y", found.ctypes.data)
            assert context.execute_async_v3(0) and np.array_equal(found[:len(wanted)], wanted)


def test_attributes_that_are_not_there():
    """A wrong spelling is an error, as upstream; a script's own classes have attributes of their own."""
    builder = trt.Builder(QUIET)
    network = builder.create_network(0)
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    x = network.add_input("x", trt.float32, (2, 3))
    layer = network.add_activation(x, trt.ActivationType.RELU)
    for thing, name in ((builder, "fp16"), (config, "fp16_mode"), (profile, "shape"), (network, "batch"), (x, "shapes"), (layer, "presicion")):
        rig.raises(AttributeError, setattr, thing, name, True, says=name)

    class Mine(trt.Logger):
        def __init__(self):
            super().__init__(trt.Logger.ERROR)
            self.lines = []
    Mine().more = 3
    config.builder_optimization_level = 9                     # the highest there is
    config.default_device_type = trt.DeviceType.DLA
    network.mark_output(layer.get_output(0))
    assert builder.build_serialized_network(network, config) is None
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    assert builder.build_serialized_network(network, config) is not None


def test_attributes_of_tensors_stay():
    class Log(trt.Logger):
        text = ""

        def log(self, severity, msg):
            if severity <= trt.Logger.ERROR:
                self.text += msg
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    network.add_input("x", trt.float32, (2, 3, 4, 5))
    network.mark_output(network.add_identity(network.get_input(0)).get_output(0))
    formats = 1 << int(trt.TensorFormat.LINEAR) | 1 << int(trt.TensorFormat.CHW4)
    assert network.get_input(0).allowed_formats == 1
    network.get_input(0).allowed_formats, network.get_input(0).location = formats, trt.TensorLocation.HOST
    assert network.get_input(0).allowed_formats == formats and network.get_input(0).location == trt.TensorLocation.HOST
    assert builder.build_serialized_network(network, builder.create_builder_config()) is not None
    network.get_output(0).allowed_formats = 1 << int(trt.TensorFormat.DHWC)
    assert builder.build_serialized_network(network, builder.create_builder_config()) is not None
    network.get_output(0).allowed_formats = 1 << int(trt.TensorFormat.DLA_HWC4)
    assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    assert all(word in log.text for word in ("known number of channels", "(2, 3, 4, 5)", "DLA_HWC4", "LINEAR"))
    # A format of which this shape lies as a row-major one does; others; and those that need more axes, or a known size.
    for shape, name, is_taken in (((2, 1, 4, 5), "HWC", True), ((2, 1, 4, 5), "CHW4", True), ((2, 32, 1, 1), "CHW32", True),
                                  ((2, 16, 1, 1), "HWC8", True), ((2, 12, 1, 1), "HWC8", True), ((2, 8, 1, 1, 1), "DHWC8", True),
                                  ((8, 1), "HWC8", False), ((2, -1, 1, 1), "HWC", False)):
        network = builder.create_network()
        network.mark_output(network.add_identity(network.add_input("x", trt.float32, shape)).get_output(0))
        network.get_input(0).allowed_formats = 1 << int(trt.TensorFormat[name])
        config, profile = builder.create_builder_config(), builder.create_optimization_profile()
        if -1 in shape:
            profile.set_shape("x", *[[abs(d) for d in shape]] * 3)
            config.add_optimization_profile(profile)
        assert (builder.build_serialized_network(network, config) is not None) == is_taken, (shape, name)


def test_layers_that_are_asked_for_again():
    """As upstream's they are ILayer, and their type is a LayerType; __class__ makes them what they are."""
    network = trt.Builder(QUIET).create_network()
    x = network.add_input("x", trt.float32, (1, 3, 8, 8))
    relu = network.add_activation(x, trt.ActivationType.RELU)
    pool = network.add_pooling_nd(relu.get_output(0), trt.PoolingType.AVERAGE, (2, 2))
    wide = network.add_fully_connected(pool.get_output(0), 4, np.ones((4, 48), "f4"))
    kinds = [trt.LayerType.ACTIVATION, trt.LayerType.POOLING, trt.LayerType.FULLY_CONNECTED]
    assert [layer.type for layer in network] == [network[i].type for i in range(3)] == kinds and relu.type == trt.ActivationType.RELU
    again = network.get_layer(1)
    assert type(again) is trt.ILayer and again == pool and not hasattr(again, "window_size_nd")
    rig.raises(AttributeError, setattr, again, "window_size_nd", (3, 3), says="window_size_nd")
    again.precision = trt.int8
    assert pool.precision == trt.int8
    again.__class__ = trt.IPoolingLayer
    again.stride_nd = (1, 1)
    assert again.type == trt.PoolingType.AVERAGE and pool.stride_nd == (1, 1) and wide.num_output_channels == 4


def test_builders_of_versions_5_to_7():
    with trt.Builder(QUIET) as builder, builder.create_network(1) as network, trt.OnnxParser(network, QUIET) as parser:
        builder.max_workspace_size, builder.max_batch_size, builder.fp16_mode = 1 << 28, 1, True
        builder.strict_type_constraints = False
        assert builder.max_workspace_size == 1 << 28 and builder.fp16_mode is True and not builder.int8_mode
        parser.parse(rig.DIGITS.read_bytes())
        network.get_input(0).shape = [1, 1, 28, 28]
        layer = network.get_layer(0)
        layer.__class__ = trt.IConvolutionLayer
        assert isinstance(layer.kernel, np.ndarray) and layer.kernel.shape == (72,) and layer.bias.size in (0, 8)
        builder.refittable = True
        engine = builder.build_cuda_engine(network)
        assert engine.refittable and engine.max_batch_size == 1
        scores = np.zeros(10, np.float32)
        assert engine.create_execution_context().execute(1, [SEVEN.ctypes.data, scores.ctypes.data]) and scores.argmax() == 7


def run_script(name, *arguments):
    script = rig.ROOT / "tests" / "python" / "scripts" / name
    done = subprocess.run([sys.executable, "-m", "sinter.shim", str(script)] + [str(a) for a in arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_script_classification():
    assert run_script("classify_onnx.py", rig.DIGITS, rig.SEVEN, rig.FOLDER / "digits.engine").endswith("class 7\n")


def test_script_dynamic_shapes():
    assert run_script("dynamic_shapes.py", rig.DIGITS, rig.SEVEN) == "done\n"


def test_script_refit():
    arrays = np.arange(4, dtype="f4"), np.arange(4, dtype="f4") * 10
    paths = []
    for i, array in enumerate(arrays):
        (rig.FOLDER / f"{i}.onnx").write_bytes(add_model(array))
        np.save(rig.FOLDER / f"{i}.npy", array)
        paths.append(rig.FOLDER / f"{i}.onnx")
    assert run_script("refit_engine.py", *paths, *(p.with_suffix(".npy") for p in paths)) == "done\n"


def test_script_timing_cache():
    assert run_script("timing_cache.py", rig.DIGITS, rig.FOLDER / "cache") == "done\n"


def test_script_output_allocator():
    path = rig.FOLDER / "nonzero.onnx"
    path.write_bytes(model(data(2, "g") + data(11, value("x", "f32", [6])) + data(12, value("found", "i64", [1, "F"])) +
                           node("NonZero", ["x"], ["found"])))
    assert run_script("output_allocator.py", path).endswith("done\n")


def test_polygraphys_wrapper():
    """What Polygraphy does with libcudart, which it opens by ctypes, works on the host."""
    folder = rig.FOLDER / "polygraphy" / "cuda"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    (folder / "__init__.py").write_text("")
    (folder / "cuda.py").write_text("class Cuda:\n    def __init__(self):\n        raise OSError('there is no libcudart')\n")
    script = rig.FOLDER / "use_wrapper.py"
    script.write_text("""
import ctypes
from polygraphy.cuda.cuda import Cuda
handle, at, stream = Cuda().handle, ctypes.c_void_p(), ctypes.c_void_p()
assert handle.cudaMalloc(ctypes.byref(at), 16) == 0 and handle.cudaStreamCreate(ctypes.byref(stream)) == 0
source, target = ctypes.create_string_buffer(b"fifteen letters"), ctypes.create_string_buffer(16)
assert handle.cudaMemcpyAsync(at, ctypes.c_void_p(ctypes.addressof(source)), 16, 1, stream) == 0
assert handle.cudaMemcpy(ctypes.c_void_p(ctypes.addressof(target)), at, 16, ctypes.c_int(2)) == 0
assert target.raw == source.raw and handle.cudaMemcpy(at, at, 17, 1) == 1
assert handle.cudaStreamSynchronize(stream) == handle.cudaStreamDestroy(stream) == handle.cudaFree(at) == 0
print("done")
""")
    done = subprocess.run([sys.executable, "-m", "sinter.shim", str(script)], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stdout + done.stderr


def test_script_calibration():
    assert run_script("calibrate_int8.py", rig.DIGITS, rig.SEVEN, rig.FOLDER / "digits.cache") == "class 7 ranges 11\n"


rig.main(__name__)
