# SPDX-License-Identifier: Apache-2.0
"""sinter.tensorrt: what published scripts rely on beside results: names that nobody gave, what dir() lists, texts that are printed
and taken apart, codes of errors."""
import os
import subprocess
import sys

import numpy as np
import rig

os.environ["SINTER_TENSORRT_DEVICE"] = "cpu"
import onnx_bytes as ob  # noqa: E402
import sinter  # noqa: E402
import sinter.tensorrt as trt  # noqa: E402

QUIET = trt.Logger(trt.Logger.INTERNAL_ERROR)


class Recorder(trt.IErrorRecorder):
    def __init__(self):
        super().__init__()
        self.codes = []

    def report_error(self, code, text):
        self.codes.append(code)


class Texts(Recorder):
    """A recorder of what errors say."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def report_error(self, code, text):
        self.texts.append(text)


def begin(flags=0):
    builder = trt.Builder(QUIET)
    return builder, builder.create_network(flags)


def engine_of(builder, network, *outputs):
    for tensor in outputs:
        network.mark_output(tensor)
    return builder.build_engine_with_config(network, builder.create_builder_config())


def ran(engine, feeds, types):
    """The outputs of a run, by name."""
    context = engine.create_execution_context()
    found = {name: np.zeros(context.get_tensor_shape(name), dtype) for name, dtype in types.items()}
    for name, array in {**feeds, **found}.items():
        assert context.set_tensor_address(name, array.ctypes.data)
    assert context.execute_async_v3(0)
    return found


def test_weights_that_a_refit_lacks():
    """A convolution and the norm behind it are one weight of the engine: new values of one want those of the others."""
    builder, network = begin()
    parser = trt.OnnxParser(network, QUIET)
    assert parser.parse_from_file(os.path.join(rig.ROOT, "examples/digits/digits.onnx"))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("image", *[(1, 1, 28, 28)] * 3)
    config.add_optimization_profile(profile)
    config.set_flag(trt.BuilderFlag.REFIT)
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    refitter = trt.Refitter(engine, QUIET)
    sizes = {name: refitter.get_weights_prototype(name).size for name in refitter.get_all_weights()}
    assert refitter.get_missing_weights() == []
    assert refitter.set_named_weights("conv1.weight", np.ones(sizes["conv1.weight"], "f4"))
    missing = refitter.get_missing_weights()
    assert "norm1.gamma" in missing and "norm1.var" in missing and "fc.weight" not in missing, missing
    assert not refitter.refit_cuda_engine()
    for name in missing:
        assert refitter.set_named_weights(name, np.ones(sizes[name], "f4"))
    assert refitter.get_missing_weights() == [] and refitter.get_missing() == ([], []) and refitter.refit_cuda_engine()


def test_sizes_that_contradict_each_other():
    builder, network = begin()
    a, b = (network.add_input(name, trt.float32, (-1, 2)) for name in "ab")
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    for t in (a, b):
        t.set_dimension_name(0, "rows")
        profile.set_shape(t.name, (1, 2), (2, 2), (4, 2))
    config.add_optimization_profile(profile)
    network.mark_output(network.add_elementwise(a, b, trt.ElementWiseOperation.SUM).get_output(0))
    context = builder.build_engine_with_config(network, config).create_execution_context()
    assert context.infer_shapes() == ["a", "b"]
    assert context.set_input_shape("a", (2, 2)) and context.set_input_shape("b", (3, 2))
    rig.raises(RuntimeError, context.infer_shapes, says="infer_shapes error code: -1")
    assert context.set_input_shape("b", (2, 2)) and context.infer_shapes() == []


def test_names_of_layers_without_a_name():
    _, network = begin()
    x = network.add_input("x", trt.float32, (1, 4, 8, 8))
    kernel = trt.Weights(np.ones((2, 4, 3, 3), "f4"))
    convolution = network.add_convolution_nd(x, 2, (3, 3), kernel)
    assert convolution.name == "(Unnamed Layer* 0) [Convolution]"
    assert convolution.get_output(0).name == "(Unnamed Layer* 0) [Convolution]_output"
    top = network.add_topk(convolution.get_output(0), trt.TopKOperation.MAX, 2, 2)
    assert [top.get_output(i).name for i in (0, 1)] == [f"(Unnamed Layer* 1) [TopK]_output{end}" for end in ("", " (1)")]
    product = network.add_matrix_multiply(x, trt.MatrixOperation.NONE, x, trt.MatrixOperation.TRANSPOSE)
    assert product.name == "(Unnamed Layer* 2) [Matrix Multiply]"
    quantized = network.add_dynamic_quantize(network.add_input("q", trt.float32, (4, 16)), 1, 16, trt.fp8, trt.float32)
    assert quantized.get_output(1).name == "(Unnamed Layer* 3) [DynamicQuantize]_output_1"
    loop = network.add_loop()
    limit = loop.add_trip_limit(network.add_constant((), np.array(3, "i4")).get_output(0), trt.TripLimit.COUNT)
    assert limit.name == "(Unnamed Layer* 5) [TripLimit]" and loop.add_recurrence(x).name == "(Unnamed Layer* 6) [Recurrence]"
    convolution.name = "mine"                           # tensors keep their names
    assert convolution.name == "mine" and convolution.get_output(0).name == "(Unnamed Layer* 0) [Convolution]_output"


def test_what_dir_lists_can_be_read():
    """Tools that save networks read all that dir() lists, and call what needs no argument."""
    builder, network = begin()
    layer = network.add_activation(network.add_input("x", trt.float32, (2,)), trt.ActivationType.RELU)
    config = builder.create_builder_config()
    listed = {type(thing).__name__: [n for n in dir(thing) if not n.startswith("_")] for thing in (builder, network, config, layer)}
    assert "add_activation" in listed["INetworkDefinition"] and "add_fully_connected" not in listed["INetworkDefinition"]
    assert {"alpha", "beta", "type", "name"} < set(listed["IActivationLayer"]) and "operator" not in listed["IActivationLayer"]
    for word in ("build_cuda_engine", "build_engine", "fp16_mode", "say", "fail", "max_batch_size"):
        assert word not in listed["Builder"] and hasattr(builder, word), word
    assert "max_workspace_size" not in listed["IBuilderConfig"]
    for name in listed["Builder"]:
        getattr(builder, name)
    engine = engine_of(builder, network, layer.get_output(0))
    assert "get_tensor_name" in dir(engine) and "get_binding_name" not in dir(engine) and engine.get_binding_name(0) == "x"
    assert "execute_async_v3" in dir(engine.create_execution_context())


def test_shuffles_that_do_not_reshape():
    """The sizes of a reshape that nobody has set have no length: what saves networks knows it by the exception."""
    _, network = begin()
    layer = network.add_shuffle(network.add_input("x", trt.float32, (1, 1)))
    rig.raises(ValueError, len, layer.reshape_dims)
    rig.raises(ValueError, list, layer.reshape_dims)
    layer.reshape_dims = ()
    assert layer.reshape_dims == () and tuple(layer.get_output(0).shape) == ()
    layer.reshape_dims = (1, -1)
    assert layer.reshape_dims == (1, -1) and network.get_layer(0).metadata == ""


def test_cache_updates_in_place():
    builder, network = begin(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    shapes = {"cache": (1, 2, 8, 4), "update": (1, 2, 2, 4), "at": (1,)}
    inputs = [network.add_input(name, trt.int32 if name == "at" else trt.float16, shape) for name, shape in shapes.items()]
    output = network.add_kv_cache_update(*inputs, trt.KVCacheMode.LINEAR).get_output(0)
    output.name = "new"
    plain = network.add_identity(inputs[1]).get_output(0)
    plain.name = "same"
    engine = engine_of(builder, network, output, plain)
    assert engine.get_aliased_input_tensor("new") == "cache" and engine.get_aliased_input_tensor("same") is None
    cache, update, at = np.zeros(shapes["cache"], "f2"), np.ones(shapes["update"], "f2"), np.array([3], "i4")
    context, same = engine.create_execution_context(), np.zeros(shapes["update"], "f2")
    for name, array in (("cache", cache), ("new", cache), ("update", update), ("at", at), ("same", same)):
        context.set_tensor_address(name, array.ctypes.data)
    assert context.execute_async_v3(0) and (cache[:, :, 3:5] == 1).all() and cache.sum() == update.sum()


def test_models_that_were_asked_about_are_in_the_network():
    """supports_model_v2 leaves the model in the network, as upstream; parse after it does not add it twice."""
    model = open(rig.DIGITS, "rb").read()
    builder, network = begin()
    parser = trt.OnnxParser(network, QUIET)
    assert parser.supports_model_v2(model) and network.num_inputs == 1
    nodes = parser.get_subgraph_nodes(0)
    assert parser.num_subgraphs == 1 and parser.is_subgraph_supported(0) and len(nodes) > 3
    count = network.num_layers
    assert parser.parse(model) and network.num_layers == count and parser.get_subgraph_nodes(0) == nodes
    assert parser.num_subgraphs == 1


def test_outputs_of_dynamic_quantization():
    """They are FLOAT where types are not strong."""
    x = (np.arange(48, dtype="f4").reshape(3, 16) / 24 - 1)
    for kind, scale in ((trt.fp8, trt.float32), (trt.fp4, trt.fp8)):
        builder, network = begin()
        data = network.add_input("x", trt.float32, x.shape)
        layer = network.add_dynamic_quantize(data, 1, 16, kind, scale)
        if kind == trt.fp4:
            layer.set_input(1, network.add_constant((), np.ones(1, "f4")).get_output(0))
        names = "y", "scale", "same"
        outputs = layer.get_output(0), layer.get_output(1), network.add_identity(data).get_output(0)
        for name, tensor in zip(names, outputs):
            tensor.name = name
        engine = engine_of(builder, network, *outputs)
        assert [engine.get_tensor_name(i) for i in range(4)] == ["x", *names]
        assert all(engine.get_tensor_dtype(n) == trt.float32 for n in names) and [t.name for t in outputs] == list(names)
        assert [network.get_output(i).name for i in range(3)] == list(names) and outputs[0].dtype == kind
        found = ran(engine, {"x": x}, dict.fromkeys(names, "f4"))
        most = 448 if kind == trt.fp8 else 6
        assert abs(found["y"]).max() == most and abs(found["y"] * found["scale"] - x).max() < (0.04 if most == 448 else 0.2)
    builder, network = begin(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    layer = network.add_dynamic_quantize(network.add_input("x", trt.float32, x.shape), 1, 16, trt.fp8, trt.float32)
    engine = engine_of(builder, network, layer.get_output(0), layer.get_output(1))
    assert engine.get_tensor_dtype(engine.get_tensor_name(1)) == trt.fp8


def test_texts_that_scripts_print():
    builder, network = begin()
    x = network.add_input("x", trt.float32, (-1, 4))
    x.set_dimension_name(0, "Batch Size")
    assert x.get_dimension_name(0) == "Batch Size" and x.get_dimension_name(1) == ""
    x.shape = (2, 4)
    engine = engine_of(builder, network, network.add_identity(x).get_output(0))
    assert engine.get_tensor_format_desc("x") == "Row major linear FP32 format (kLINEAR)"
    assert engine.create_execution_context().debug_sync is False


def test_plugins_without_a_function():
    """One that is registered, and has no function, is in nobody's way until it is called."""
    import sinter.tensorrt.plugin as trtp

    @trtp.register("habits::never_made")
    def never_made(x: trtp.TensorDesc) -> trtp.TensorDesc:
        return x.like()

    @trtp.register("habits::copied")
    def copied(x: trtp.TensorDesc) -> trtp.TensorDesc:
        return x.like()

    @trtp.impl("habits::copied")
    def copied_impl(x: trtp.Tensor, outputs, stream):
        np.copyto(np.asarray(outputs[0]), np.asarray(x))
    builder, network = begin()
    x = network.add_input("x", trt.float32, (3,))
    y = network.add_plugin(trtp.op.habits.copied(x)).get_output(0)
    y.name = "y"
    rig.raises(LookupError, lambda: network.add_plugin(trtp.op.habits.never_made(x)), says="impl")
    assert ran(engine_of(builder, network, y), {"x": np.arange(3, dtype="f4")}, {"y": "f4"})["y"].tolist() == [0, 1, 2]


def test_tensors_of_further_profiles():
    """Readers of an engine's layers take tensors of equal names for one."""
    import json
    builder, network = begin()
    x = network.add_input("x", trt.float32, (-1, 4))
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    for most in (2, 3):
        profile = builder.create_optimization_profile()
        profile.set_shape("x", (1, 4), (1, 4), (most, 4))
        config.add_optimization_profile(profile)
    network.mark_output(network.add_unary(x, trt.UnaryOperation.SIN).get_output(0))
    inspector = builder.build_engine_with_config(network, config).create_engine_inspector()
    layers = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))["Layers"]
    made = [t["Name"] for layer in layers for t in layer["Outputs"]]
    assert len(set(made)) == len(made) == 2 and made[1] == made[0] + " [profile 1]" and layers[1]["Inputs"][0]["Name"] == "x [profile 1]"


def test_profiling_verbosity():
    """What a build was asked for decides what the inspector of its engine says; a context gives the sizes."""
    import json
    said = {}
    for verbosity in (trt.ProfilingVerbosity.LAYER_NAMES_ONLY, trt.ProfilingVerbosity.NONE, trt.ProfilingVerbosity.DETAILED):
        builder, network = begin()
        x = network.add_input("x", trt.float32, (-1, 4))
        config = builder.create_builder_config()
        config.profiling_verbosity = verbosity
        profile = builder.create_optimization_profile()
        profile.set_shape("x", (1, 4), (2, 4), (8, 4))
        config.add_optimization_profile(profile)
        for _ in range(2):
            layer = network.add_softmax(x)
            layer.name, x = "twice", layer.get_output(0)
        network.mark_output(x)
        engine = trt.Runtime(QUIET).deserialize_cuda_engine(builder.build_serialized_network(network, config))
        assert engine.profiling_verbosity == verbosity
        inspector = engine.create_engine_inspector()
        said[verbosity] = json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))
        if verbosity == trt.ProfilingVerbosity.DETAILED:
            context = engine.create_execution_context()
            context.set_input_shape("x", (5, 4))
            inspector.execution_context = context
            layer = json.loads(inspector.get_layer_information(0, trt.LayerInformationFormat.JSON))
            assert layer["Inputs"][0]["Dimensions"] == [5, 4] and layer["Outputs"][0]["Dimensions"] == [5, 4], layer
            line = inspector.get_layer_information(1, trt.LayerInformationFormat.ONELINE)
            assert line.startswith("Name: twice #2, LayerType: softmax, Inputs: [ { Name: "), line
    names, none, detailed = said.values()
    assert names["Layers"] == ["twice", "twice #2"] and len(names["Bindings"]) == 2 and none == {"Layers": [], "Bindings": []}
    assert [layer["Name"] for layer in detailed["Layers"]] == names["Layers"]
    assert detailed["Layers"][0]["Inputs"] == [{"Name": "x", "Location": "Device", "Dimensions": [-1, 4], "Format/Datatype": "Float"}]


def test_weights_that_are_marked():
    """With REFIT_INDIVIDUAL the weights that are marked can be replaced, and no others; an engine without weights cannot run."""
    def engine(flag, *marks):
        builder, network = begin()
        x = network.add_input("x", trt.float32, (2, 3))
        for name in ("a", "b"):
            weight = np.full((1, 3), 2, "f4")
            layer = network.add_constant((1, 3), weight)
            assert network.set_weights_name(weight, name)
            x = network.add_elementwise(x, layer.get_output(0), trt.ElementWiseOperation.PROD).get_output(0)
        x.name = "y"
        network.mark_output(x)
        for name in marks:
            assert network.mark_weights_refittable(name) and network.are_weights_marked_refittable(name)
        config = builder.create_builder_config()
        config.set_flag(flag)
        return builder.build_engine_with_config(network, config)

    made = engine(trt.BuilderFlag.REFIT_INDIVIDUAL, "b")
    refitter = trt.Refitter(made, QUIET)
    five = trt.Weights(np.full(3, 5, "f4"))
    assert refitter.get_all_weights() == ["b"] and not refitter.set_named_weights("a", five)
    assert refitter.set_named_weights("b", five) and refitter.refit_cuda_engine()
    assert ran(made, {"x": np.ones((2, 3), "f4")}, {"y": "f4"})["y"].tolist() == [[10] * 3] * 2
    assert len(trt.Refitter(engine(trt.BuilderFlag.REFIT, "b"), QUIET).get_all_weights()) == 2
    stripped = engine(trt.BuilderFlag.STRIP_PLAN)
    assert stripped.create_execution_context() is None
    refitter = trt.Refitter(stripped, QUIET)
    assert refitter.get_missing_weights() == ["a", "b"] and all(refitter.set_named_weights(name, five) for name in "ab")
    assert refitter.get_missing_weights() == [] and refitter.refit_cuda_engine()
    assert ran(stripped, {"x": np.ones((2, 3), "f4")}, {"y": "f4"})["y"].tolist() == [[25] * 3] * 2


def test_names_of_bindings():
    """Bindings of profiles after the first have the profile behind the tensor's name; an engine lists its tensors once."""
    builder, network = begin()
    x = network.add_input("x", trt.float32, (-1, 4))
    y = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
    y.name = "y"
    network.mark_output(y)
    config = builder.create_builder_config()
    for most in (2, 8):
        profile = builder.create_optimization_profile()
        profile.set_shape("x", (1, 4), (1, 4), (most, 4))
        config.add_optimization_profile(profile)
    engine = builder.build_engine_with_config(network, config)
    names = ["x", "y", "x [profile 1]", "y [profile 1]"]
    assert [engine.get_binding_name(i) for i in range(engine.num_bindings)] == names and list(engine) == ["x", "y"]
    assert [engine[name] for name in names] == [engine.get_binding_index(name) for name in names] == [0, 1, 2, 3]
    assert engine.get_binding_index("x [profile 2]") == engine.get_binding_index("z") == -1 and engine[-1] == names[3]
    assert engine.binding_is_input(names[2]) and engine.get_binding_shape(names[3]) == (-1, 4) and engine.get_binding_format_desc(3)
    assert engine.get_profile_shape(1, names[2])[2] == (8, 4)
    context, recorder = engine.create_execution_context(), Texts()
    context.error_recorder = recorder
    assert context.set_optimization_profile_async(1, 0) and context.set_binding_shape(2, (5, 4)) and context.get_binding_shape(3) == (5, 4)
    assert not context.set_optimization_profile_async(2, 0)
    assert recorder.texts == ["the engine has no optimization profile 2: 2 profiles are counted from 0"], recorder.texts
    outputs = [name for name in engine if engine.get_tensor_mode(name) == trt.TensorIOMode.OUTPUT]
    assert all(-1 not in shape for name in outputs for shape in engine.get_tensor_profile_shape(name, 1))   # common.py allocates by them
    rig.raises(ValueError, tuple, engine.get_tensor_profile_shape("x", 5)[0])       # sizes that say nothing
    assert context.execute_v2([0]) is False and recorder.texts[-1] == "1 bindings, the engine has 2: x, y", recorder.texts
    engine.error_recorder = recorder
    engine.weight_streaming_budget_v2 = -5
    assert "weight streaming budget is -5" in recorder.texts[-1], recorder.texts


def test_foreign_timing_caches():
    """Bytes of TensorRT's own cache do not end a build: the cache begins empty, a warning says so, and what is saved is sinter's."""
    class Lines(trt.ILogger):
        def __init__(self):
            super().__init__()
            self.lines = []

        def log(self, severity, text):
            self.lines.append((severity, text))

    logger = Lines()
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    x = network.add_input("x", trt.float32, (8, 8))
    network.mark_output(network.add_matrix_multiply(x, trt.MatrixOperation.NONE, x, trt.MatrixOperation.TRANSPOSE).get_output(0))
    config = builder.create_builder_config()
    for data, is_foreign in ((b"\x00\x01\xffptrt\x00" * 9, True), (b"", False), (b"sinter timing cache 1\n", False)):
        cache = config.create_timing_cache(data)
        assert config.set_timing_cache(cache, ignore_mismatch=False) and cache.queryKeys() == []
        del logger.lines[:]
        assert builder.build_serialized_network(network, config) is not None, logger.lines
        said = [text for severity, text in logger.lines if severity == trt.ILogger.WARNING]
        assert (len(said) == 1 and "no timing cache of sinter" in said[0]) if is_foreign else not said, said
        assert bytes(cache.serialize())[:19] in (b"", b"sinter timing cache")
    config.set_flag(trt.BuilderFlag.REFIT_INDIVIDUAL)
    assert builder.build_serialized_network(network, config) is not None
    assert any("REFIT_INDIVIDUAL without INetworkDefinition.mark_weights_refittable" in text for _, text in logger.lines)


def test_layers_of_quantised_models():
    """Scripts look for the layers that quantise, and for convolutions behind them, by type; INT8 has what it wants with such models."""
    class Lines(trt.ILogger):
        def __init__(self):
            super().__init__()
            self.lines = []

        def log(self, severity, text):
            self.lines.append(text)

    made = trt.Builder(QUIET).create_network(0)
    x = made.add_input("x", trt.float32, (1, 2, 4, 4))
    scale = made.add_constant((), np.array(0.02, "f4")).get_output(0)
    kernel = made.add_constant((3, 2, 3, 3), np.ones((3, 2, 3, 3), "f4")).get_output(0)
    pair = []
    for tensor in (x, kernel):
        pair.append(made.add_dequantize(made.add_quantize(tensor, scale).get_output(0), scale).get_output(0))
    convolution = made.add_convolution_nd(pair[0], 3, (3, 3), trt.Weights())
    convolution.set_input(1, pair[1])
    made.mark_output(convolution.get_output(0))
    path = rig.FOLDER / "quantised.onnx"
    made._net.write_onnx(path)
    logger = Lines()
    network = trt.Builder(logger).create_network(0)
    assert trt.OnnxParser(network, logger).parse(path.read_bytes())
    types = [layer.type for layer in network]
    assert types.count(trt.LayerType.QUANTIZE) == types.count(trt.LayerType.DEQUANTIZE) == 1, types
    assert types.count(trt.LayerType.CONVOLUTION) == 1, types
    config = network.builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.INT8)
    assert network.builder.build_serialized_network(network, config) is not None
    assert not any("changes nothing without ranges" in line for line in logger.lines), logger.lines


def test_codes_of_errors():
    builder, network = begin()
    builder.error_recorder = recorder = Recorder()
    assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    engine = engine_of(builder, network, network.add_identity(network.add_input("x", trt.float32, (2,))).get_output(0))
    assert engine.create_execution_context().execute_async_v3(0) is False            # no address
    assert recorder.codes == [trt.ErrorCodeTRT.INVALID_CONFIG, trt.ErrorCodeTRT.INVALID_ARGUMENT]


def test_resizes_and_slices_of_models():
    """Their properties can be read, and changed before a build. Bounds may be Constant nodes."""
    def constant(name, dtype, list_):
        given = ob.data(5, ob.data(1, "value") + ob.tensor("", dtype, [len(list_)], list_) + ob.num(20, 4))
        return ob.node("Constant", [], name, given)

    def text(name, word):
        return ob.data(5, ob.data(1, name) + ob.data(4, word) + ob.num(20, 3))

    for batch in (1, "N"):
        path = rig.FOLDER / "cut.onnx"
        ob.write_model(path, constant("scales", ob.FLOAT, [1, 1, 2, 2]) +
                       ob.node("Resize", ["x", "", "scales"], "big", text("mode", "linear")) +
                       constant("start", ob.I64, [1, -3]) + constant("end", ob.I64, [99, -12]) + constant("axes", ob.I64, [2, -1]) +
                       constant("step", ob.I64, [2, -3]) + ob.node("Slice", ["big", "start", "end", "axes", "step"], "y") +
                       ob.data(11, ob.value("x", [batch, 2, 5, 6])) + ob.data(12, ob.value("y", [batch, 2, "H", "W"])))
        builder, network = begin()
        assert trt.OnnxParser(network, QUIET).parse(path.read_bytes())
        layers = {layer.name: layer for layer in network}
        big, cut = layers["big"], layers["y"]
        assert (big.type, cut.type) == (trt.LayerType.RESIZE, trt.LayerType.SLICE)
        big.__class__, cut.__class__ = trt.IResizeLayer, trt.ISliceLayer
        assert list(big.scales) == [1, 1, 2, 2] and big.resize_mode == trt.InterpolationMode.LINEAR
        assert big.coordinate_transformation == trt.ResizeCoordinateTransformation.HALF_PIXEL
        front = () if batch == "N" else (0, 0)              # of a free batch the lists have the sliced axes alone
        assert tuple(cut.start) == (*front, 1, 9) and tuple(cut.stride) == (*(1 for _ in front), 2, -3)
        assert tuple(cut.shape) == ((5, 3) if batch == "N" else (1, 2, 5, 3))
        big.resize_mode, big.coordinate_transformation = trt.InterpolationMode.NEAREST, trt.ResizeCoordinateTransformation.ASYMMETRIC
        big.nearest_rounding, big.scales = trt.ResizeRoundMode.FLOOR, [1, 1, 3, 2]
        cut.start, cut.shape = (*front, 4, 11), (*(1, 2)[:len(front)], 3, 4)
        config = builder.create_builder_config()
        profile = builder.create_optimization_profile()
        profile.set_shape("x", *[(1, 2, 5, 6)] * 3)
        config.add_optimization_profile(profile)
        engine = builder.build_engine_with_config(network, config)
        x, y = np.arange(60, dtype="f4").reshape(1, 2, 5, 6), np.zeros((1, 2, 3, 4), "f4")
        context = engine.create_execution_context()
        assert context.set_input_shape("x", x.shape) and context.execute_v2([x.ctypes.data, y.ctypes.data])
        assert np.array_equal(y, x.repeat(3, 2).repeat(2, 3)[:, :, 4:9:2, 11:1:-3])


def random_move(rng, opset, shape):
    """A node that moves or bounds numbers, "x" to the outputs "y0", "y1", ..., as versions of ONNX before and after 13 write it: (bytes of
    the graph, how many outputs, the types of the layers that stand for it)."""
    types, rank, new = trt.LayerType, len(shape), opset >= 13
    axis = int(rng.integers(rank))

    def given(op, name, numbers, since, attrs=b"", outputs=1):
        """The numbers are an input from version `since` on."""
        attrs += b"".join(ob.data(2, f"y{i}") for i in range(1, outputs))
        if opset < since:
            return ob.node(op, ["x"], "y0", attrs + ob.ints(name, numbers))
        return ob.tensor(name, ob.I64, [len(numbers)], numbers) + ob.node(op, ["x", name], "y0", attrs)

    def text(name, word):
        return ob.data(5, ob.data(1, name) + ob.data(4, word) + ob.num(20, 3))

    kind = ["pad", "split", "squeeze", "unsqueeze", "transpose", "softmax"][rng.integers(6)]
    if kind == "pad":
        mode = ["constant", "reflect", "edge"][rng.integers(3)]
        pads = [int(rng.integers(0, min(3, shape[i % rank]))) for i in range(2 * rank)]
        pads[axis] += sum(pads) == 0 and shape[axis] > 1
        pads[axis] += sum(pads) == 0 and mode != "reflect"
        return given("Pad", "pads", pads, 11, text("mode", mode)), 1, [types.SLICE] if sum(pads) else []
    if kind == "split":
        first = int(rng.integers(1, shape[axis])) if shape[axis] > 1 else 1
        parts = [first, shape[axis] - first] if shape[axis] > 1 else [1]
        return given("Split", "split", parts, 13, ob.integer("axis", axis - rank * bool(rng.integers(2)) if new else axis),
                     len(parts)), len(parts), [types.SLICE] * len(parts)
    if kind == "squeeze":
        ones = [i for i in range(rank) if shape[i] == 1] or None
        if ones:
            return given("Squeeze", "axes", ones[:1], 13), 1, [types.SQUEEZE]
    if kind in ("squeeze", "unsqueeze"):
        return given("Unsqueeze", "axes", [axis, rank + 1], 13), 1, [types.UNSQUEEZE]
    if kind == "transpose":
        return ob.node("Transpose", ["x"], "y0"), 1, [types.SHUFFLE]
    return ob.node("Softmax", ["x"], "y0", ob.integer("axis", rank - 1)), 1, [types.SOFTMAX]


def test_moves_of_models():
    """Operators that TensorRT's parser makes slices, shuffles and the like of are layers, too, with the results that the operators have."""
    rng = np.random.default_rng(11)
    for turn in range(60):
        opset, rank = (9, 11, 17)[turn % 3], int(rng.integers(2, 5))
        shape = [int(n) for n in rng.integers(1, 5, rank)]
        path = rig.FOLDER / "move.onnx"
        graph, count, types = random_move(rng, opset, shape)
        names = [f"y{i}" for i in range(count)]
        ob.write_model(path, graph + ob.data(11, ob.value("x", shape)) + b"".join(ob.data(12, ob.value(n, [])) for n in names), opset)
        builder, network = begin()
        parser = trt.OnnxParser(network, QUIET)
        assert parser.parse(path.read_bytes()), (turn, opset, shape, str(parser.get_error(0)))
        found = [layer for layer in network if layer.type != trt.LayerType.CONSTANT]
        if types:
            assert [layer.type for layer in found] == types and not any(layer.operator for layer in found), (turn, opset, shape, types)
        for layer in found:
            if layer.type == trt.LayerType.SLICE:
                layer.__class__ = trt.ISliceLayer
                assert len(layer.start) == len(layer.shape) == len(layer.stride)
        plan = builder.build_serialized_network(network, builder.create_builder_config())
        x = rng.standard_normal(shape).astype("f4")
        y = sinter.load(plan).context().run(x=x)
        wanted = sinter.build(path, tune="off", device="cpu").load().context().run(x=x)
        for name in names:
            assert np.array_equal(y[name], wanted[name]), (turn, opset, shape, name)


def test_paddings_by_slices():
    """A slice that begins before its input, or ends behind it, in each mode."""
    rng, modes = np.random.default_rng(12), {"FILL": "constant", "REFLECT": "reflect", "CLAMP": "edge", "WRAP": "wrap"}
    for turn in range(24):
        mode = list(modes)[turn % 4]
        shape = rng.integers(3, 6, 3)
        pads = rng.integers(0, 3, (3, 2))
        builder, network = begin()
        x = network.add_input("x", trt.float32, shape)
        cut = network.add_slice(x, -pads[:, 0], shape + pads.sum(1), (1, 1, 1))
        cut.mode = trt.SampleMode[mode]
        cut.get_output(0).name = "y"
        value = rng.standard_normal(shape).astype("f4")
        y = ran(engine_of(builder, network, cut.get_output(0)), {"x": value}, {"y": "f4"})["y"]
        assert np.array_equal(y, np.pad(value, pads, modes[mode])), (turn, mode, shape, pads)


def test_engines_that_cannot_be_refitted():
    for flag in (None, trt.BuilderFlag.REFIT, trt.BuilderFlag.STRIP_PLAN):
        builder, network = begin()
        x = network.add_input("x", trt.float32, (1, 3, 4, 4))
        conv = network.add_convolution_nd(x, 2, (3, 3), np.ones((2, 3, 3, 3), "f4"))
        network.mark_output(conv.get_output(0))
        config = builder.create_builder_config()
        if flag is not None:
            config.set_flag(flag)
        plan = builder.build_serialized_network(network, config)
        engine = trt.Runtime(QUIET).deserialize_cuda_engine(plan)
        assert engine.refittable == (flag is not None)
        if engine.refittable:
            refitter = trt.Refitter(engine=engine, logger=QUIET)
            assert refitter.get_all_weights() and refitter.get_weights_prototype("nothing").size == -1
        else:                                               # as pybind11 says that a constructor gave nothing
            rig.raises(TypeError, trt.Refitter, engine, QUIET)


def test_tensors_that_are_not_there():
    """What is asked about them is answered as upstream does: an error for the logger, and a value that says nothing."""
    builder, network = begin()
    engine = engine_of(builder, network, network.add_identity(network.add_input("x", trt.float32, (2, 3))).get_output(0))
    engine.error_recorder = said = Texts()
    said.report_error = lambda code, text: said.texts.append(text)
    context = engine.create_execution_context()
    wanted = {"get_tensor_dtype": trt.float32, "get_tensor_location": trt.TensorLocation.DEVICE, "get_tensor_format": trt.TensorFormat.LINEAR,
              "get_tensor_format_desc": "", "get_tensor_bytes_per_component": -1, "get_tensor_components_per_element": -1,
              "get_tensor_vectorized_dim": -1, "is_shape_inference_io": False, "binding_is_input": False, "get_binding_dtype": trt.float32,
              "get_location": trt.TensorLocation.DEVICE}
    for word in ("nothing", "", "x ", 2, -1, 99):
        for name, value in wanted.items():
            said.texts.clear()
            assert getattr(engine, name)(word) == value and len(said.texts) == 1 and str(word) in said.texts[0], (word, name)
        for shape in (engine.get_tensor_shape(word), engine.get_binding_shape(word), context.get_tensor_shape(word), context.get_tensor_strides(word)):
            assert shape.nbDims == -1
            rig.raises(ValueError, len, shape)
        assert context.get_tensor_address(word) == 0 and context.get_max_output_size(word) == -1
    assert not context.set_output_allocator("nothing", None) and engine.get_binding_name(2) is None and engine.get_device_memory_size_for_profile(3) == 0
    for shapes in (engine.get_tensor_profile_shape("nothing", 0), engine.get_tensor_profile_shape("x", 1)):
        assert [d.nbDims for d in shapes] == [-1] * 3
    said.texts.clear()
    inspector = engine.create_engine_inspector()
    inspector.error_recorder = said
    assert inspector.get_layer_information(99, trt.LayerInformationFormat.JSON) is None and len(said.texts) == 1
    assert engine.get_tensor_name(2) is None and engine.get_tensor_name(-1) is None
    assert engine.get_binding_dtype(np.int64(1)) == trt.float32 and engine.get_tensor_shape(name="x") == (2, 3) == engine.get_binding_shape(index=0)


def test_layers_that_are_refused():
    """Whatever a script gives to a call that adds a layer: it is a layer, None with an error in the log, or an error of Python's for a wrong type
    or number. The network has as many layers as before where there is none."""
    import inspect
    from sinter.tensorrt._layers import METHODS
    rng = np.random.default_rng(21)
    counts = {"layer": 0, "none": 0, "error": 0}
    rows = [line.split() for line in METHODS.strip().split("\n")]
    for turn in range(400):
        builder, network = begin()
        network.error_recorder = said = Texts()
        said.report_error = lambda code, text, said=said: said.texts.append(text)
        tensors = [network.add_input(f"x{i}", [trt.float32, trt.int32, trt.bool][i % 3], shape) for i, shape in enumerate(((2, 3), (1, 3, 4, 4), ()))]
        name, before = rows[turn % len(rows)][0].rstrip(":"), network.num_layers
        values = []
        for word in rows[turn % len(rows)][2:]:
            role = word.partition("=")[0].partition(":")[2]
            if role == "t":
                values.append([*tensors, None, "x"][int(rng.integers(5)) if rng.integers(2) else 0])
            elif role == "l":
                values.append([[], tensors[:1], [None], tensors][int(rng.integers(4))])
            else:
                values.append([0, 1, (1, 1), "a", None, np.ones(3, "f4"), trt.float32, -5, [9] * 9][int(rng.integers(9))])
        try:
            layer = getattr(network, f"add_{name}")(*values)
            kind = "none" if layer is None else "layer"
            assert bool(said.texts) == (layer is None), (name, values, said.texts)
        except (TypeError, ValueError, KeyError, trt.NotAvailable, AttributeError) as e:
            assert not isinstance(e, sinter.Error) or isinstance(e, TypeError), (name, values, e)
            kind = "error"
        counts[kind] += 1
        assert kind == "layer" or network.num_layers == before, (name, values)
    assert min(counts.values()) > 20, counts
    parser, config = trt.OnnxParser(network, QUIET), builder.create_builder_config()
    assert not parser.parse(b"") and parser.num_errors == 1 and parser.get_error(0).desc() and parser.get_error(1) is parser.get_error(-1) is None
    for size in (-1, "a"):
        rig.raises(TypeError, config.set_memory_pool_limit, trt.MemoryPoolType.WORKSPACE, size)
    builder, network = begin()
    x = network.add_input("x", trt.float32, (2, 3))
    assert network.add_input("x", trt.float32, (2,)) is None and network.num_inputs == 1
    for call in (network.add_softmax, network.mark_output, network.unmark_output, network.add_loop().add_recurrence, network.add_if_conditional().add_input):
        for wrong in (None, "x"):
            rig.raises(TypeError, call, wrong, says="an ITensor is wanted")
    network.add_softmax(x)
    assert network.remove_tensor(x) is None and network.num_inputs == 1 and network.add_concatenation([]) is None


def test_arguments_by_name():
    """Scripts name arguments as upstream's documentation does."""
    array = np.arange(6, dtype="f4")
    lent = trt.Weights(type=trt.float32, ptr=array.ctypes.data, count=6)
    assert np.array_equal(lent.numpy(), array) and trt.Weights(a=array).size == 6 and trt.Weights(type=trt.int8).dtype == trt.int8
    assert trt.Dims2(dim0=1, dim1=2) == (1, 2) == trt.Dims2((1, 2)) and trt.Dims4(dim0=1, dim1=2, dim2=3, dim3=4) == (1, 2, 3, 4)
    size = trt.DimsHW(h=3, w=4)
    assert (size.h, size.w) == (3, 4) and isinstance(size, trt.Dims2) and isinstance(size, trt.Dims) and trt.DimsHW((5, 6)).w == 6
    rig.raises(TypeError, trt.Dims3, depth=1)
    rig.raises(ValueError, trt.Dims3, 1, 2)

    class Reader(trt.IStreamReader):
        def __init__(self, data):
            super().__init__()
            self.data = data

        def read(self, size):
            part, self.data = self.data[:size], self.data[size:]
            return part
    builder, network = begin()
    network.mark_output(network.add_identity(network.add_input("x", trt.float32, (2, 3))).get_output(0))
    plan = builder.build_serialized_network(network=network, config=builder.create_builder_config())
    runtime = trt.Runtime(logger=QUIET)
    assert runtime.deserialize_cuda_engine(serialized_engine=plan).binding_is_input(index=0)
    assert runtime.deserialize_cuda_engine(stream_reader=Reader(bytes(plan))) is not None


def test_output_types_of_layers_as_int8():
    """Scripts of quantisation set INT8 as the precision and the output type of every layer: ranges quantise, and values stay what they are."""
    rng = np.random.default_rng(8)
    for turn in range(12):
        kinds = rng.integers(0, 4, int(rng.integers(1, 5)))
        results = []
        for is_set in (False, True):
            builder, network = begin()
            t = network.add_input("x", trt.float32, (2, 3, 4, 4))
            for kind in kinds:
                if kind == 0:
                    layer = network.add_convolution_nd(t, 3, (1, 1), np.eye(3, dtype="f4") * 2)
                elif kind == 1:
                    layer = network.add_activation(t, trt.ActivationType.RELU)
                elif kind == 2:
                    layer = network.add_softmax(t)
                else:
                    layer = network.add_elementwise(t, t, trt.ElementWiseOperation.SUM)
                if is_set:
                    layer.precision = trt.int8
                    layer.set_output_type(0, trt.int8)
                    assert layer.output_type_is_set(0) and layer.get_output_type(0) == trt.int8 and network.get_layer(network.num_layers - 1).get_output_type(0) == trt.int8
                    if turn % 3 == 0:
                        layer.reset_output_type(0)
                        assert not layer.output_type_is_set(0) and layer.get_output_type(0) == trt.float32
                t = layer.get_output(0)
            t.name = "y"
            x = np.random.default_rng(turn).standard_normal((2, 3, 4, 4)).astype("f4")
            results.append(ran(engine_of(builder, network, t), {"x": x}, {"y": "f4"})["y"])
        np.testing.assert_allclose(results[1], results[0], rtol=1e-6, err_msg=str((turn, kinds)))


def test_operators_that_are_no_layer_of_a_kind():
    path = rig.FOLDER / "bounds.onnx"
    ob.write_model(path, ob.node("Slice", ["x", "start", "end"], "y") + ob.data(11, ob.value("x", [4])) +
                   ob.tensor("end", ob.I64, [1], [3]) + ob.data(11, ob.data(1, "start") + ob.data(2, ob.data(1, ob.num(1, ob.I64) + ob.data(
                       2, ob.data(1, ob.num(1, 1)))))) + ob.data(12, ob.value("y", ["N"])))
    _, network = begin()
    assert trt.OnnxParser(network, QUIET).parse(path.read_bytes())
    cut = next(layer for layer in network if layer.type == trt.LayerType.SLICE)
    cut.__class__ = trt.ISliceLayer
    rig.raises(AttributeError, getattr, cut, "start", says="operator Slice")
    rig.raises(AttributeError, setattr, cut, "stride", (1,), says="operator Slice")
    path = rig.FOLDER / "scaled.onnx"
    ob.write_model(path, ob.node("Celu", ["x"], "y") + ob.node("Flatten", ["y"], "z", ob.integer("axis", 0)) +
                   b"".join(ob.data(11 if name == "x" else 12, ob.value(name, dims)) for name, dims in (("x", [2, 4]), ("z", [1, 8]))))
    _, network = begin()
    assert trt.OnnxParser(network, QUIET).parse(path.read_bytes())
    for layer, kind in zip(network, (trt.IActivationLayer, trt.IShuffleLayer)):
        was, layer.__class__ = layer.type, kind
        assert was == layer.type                            # tools set the class, then print the type
    rig.raises(AttributeError, getattr, layer, "reshape_dims", says="operator Flatten")
    rig.raises(IndexError, network.get_layer, 2, says="the network has 2")
    assert network[-1].name == "z" and network.num_layers == 2


def test_values_of_profiles():
    """set_shape_input: the profile and the engine, also one that was saved, have the values again."""
    builder, network = begin()
    shuffle = network.add_shuffle(network.add_input("x", trt.float32, (12,)))
    shuffle.set_input(1, network.add_input("sizes", trt.int64, (2,)))
    network.mark_output(shuffle.get_output(0))
    config = builder.create_builder_config()
    for most in (4, 12):
        profile = builder.create_optimization_profile()
        profile.set_shape_input("sizes", (1, 1), [2, 3], np.array([most, 12]))
        assert profile.get_shape_input("sizes") == [[1, 1], [2, 3], [most, 12]] and profile.get_shape_input("x") == []
        config.add_optimization_profile(profile)
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    assert engine.num_io_tensors == 3 and engine.get_tensor_profile_values("x", 0) == []
    for p, most in enumerate((4, 12)):
        assert engine.get_tensor_profile_values(p, "sizes") == engine.get_tensor_profile_values("sizes", p) == [(1, 1), (2, 3), (most, 12)] == engine.get_profile_shape_input(p, 1)
    for text in ("[values] ", "[values] 0 abc", "[values] 0 1;,,;- x"):     # an engine from elsewhere may have any names
        mark = network.add_identity(network.get_input(0)).get_output(0)
        mark.name = text
        network.mark_output(mark)
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    assert engine.get_tensor_profile_values("sizes", 0)[2] == (4, 12) and engine.get_tensor_profile_values("x", 0) == [(1,), (), ()]


def test_algorithm_selectors():
    """One is not asked, and the build says so."""
    recorded = []

    class Logger(trt.ILogger):
        def __init__(self):
            super().__init__()

        def log(self, severity, text):
            recorded.append(text)

    builder = trt.Builder(Logger())
    network = builder.create_network()
    network.mark_output(network.add_activation(network.add_input("x", trt.float32, (4,)), trt.ActivationType.RELU).get_output(0))
    config = builder.create_builder_config()
    config.algorithm_selector = object()
    assert builder.build_serialized_network(network, config) is not None
    assert any("algorithm selector changes nothing" in text for text in recorded)


def test_settings_that_change_nothing():
    """They can be read again, and a warning says so; those that would make another engine are refused."""
    said = []

    class Logger(trt.ILogger):
        def __init__(self):
            super().__init__()

        def log(self, severity, text):
            if severity <= trt.Logger.WARNING:
                said.append((severity, text))

    class Allocator(trt.IGpuAllocator):
        def __init__(self):
            super().__init__()
    logger, own = Logger(), Allocator()
    builder, runtime = trt.Builder(logger), trt.Runtime(logger)
    network = builder.create_network()
    network.mark_output(network.add_activation(network.add_input("x", trt.float32, (4,)), trt.ActivationType.RELU).get_output(0))

    def build(name, value):
        config = builder.create_builder_config()
        setattr(config, name, value)
        assert getattr(config, name) == value
        said.clear()
        return builder.build_serialized_network(network, config)

    plan = build("avg_timing_iterations", 3)
    context = runtime.deserialize_cuda_engine(plan).create_execution_context()
    assert not said
    for holder, name in ((builder, "gpu_allocator"), (runtime, "gpu_allocator"), (context, "temporary_allocator")):
        assert getattr(holder, name) is None
        setattr(holder, name, None)
        assert not said
        setattr(holder, name, own)
        assert getattr(holder, name) is own and len(said) == 1 and said[0][0] == trt.Logger.WARNING and f"{name} changes nothing" in said[0][1]
        said.clear()
    config = builder.create_builder_config()
    config.DLA_core = -1
    assert not said
    config.DLA_core = 0
    assert config.DLA_core == -1 and [s for s, text in said if "there is no DLA" in text] == [trt.Logger.ERROR]
    for name, value, words in (("plugins_to_serialize", ["a.so"], "carries no libraries"), ("build_route", "r", "measured on the machine"),
                               ("hardware_compatibility_level", trt.HardwareCompatibilityLevel.AMPERE_PLUS, "one chip")):
        assert build(name, value) is not None and [s for s, text in said if words in text] == [trt.Logger.WARNING], (name, said)
    for name, value, words in (("engine_capability", trt.EngineCapability.SAFETY, "no safety runtime"),
                               ("engine_capability", trt.EngineCapability.DLA_STANDALONE, "no DLA"),
                               ("runtime_platform", trt.RuntimePlatform.WINDOWS_AMD64, "build on the system")):
        assert build(name, value) is None and [s for s, text in said if words in text] == [trt.Logger.ERROR], (name, said)


def test_members_of_enums_are_true():
    """`dtype if dtype else ...` is what scripts write for `dtype is not None`, and FLOAT is 0."""
    for name, kind in vars(trt).items():
        if isinstance(kind, type) and issubclass(kind, sinter.tensorrt._names.Enum):
            assert all(kind), name


def test_modules_are_found():
    """With the names of upstream's modules taken, Python's machinery of imports works on."""
    script = rig.FOLDER / "modules.py"
    script.write_text("""
import importlib.util
importlib.invalidate_caches()
for name in ("tensorrt", "tensorrt.plugin", "tensorrt.plugin._lib", "tensorrt_libs", "pycuda", "cuda"):
    assert importlib.util.find_spec(name) is not None, name
print("done")
""")
    done = subprocess.run([sys.executable, "-m", "sinter.shim", str(script)], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stdout + done.stderr


rig.main(__name__)
